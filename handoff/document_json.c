/*
 * document_json.c - the handoff document as JSON: the form that programs read (data/handoff.schema.json).
 *
 *   {"schema": "baton.handoff", "version": 1, "generation": 2, "run": "...", ..., "facts_only": false,
 *    "parts": {"goal": [{"text": "...", "origin": "user", "generation": 1, "uid": 3}], "failures": [...], ...}}
 *
 * What is absent in memory is left out. Reading is strict: a member that nobody knows, a wrong type or a second
 * statement where one may stand is an error that names its place, for a person may have edited the file, and what they misspelt
 * would else be lost without a word.
 */
#include <limits.h>

#include "base/memory.h"
#include "base/text.h"
#include "handoff/document_form.h"

/* ---- writing ---- */

static struct json_object *statement_json(const struct handoff_statement *s)
{
	struct json_object *out = json_object_new_object();
	size_t n;
	const struct handoff_member *fields = handoff_fields(&n);

	json_set_str(out, "text", s->text ? s->text : "");
	json_set_str(out, "origin", handoff_origin_name(s->origin));
	json_set_str(out, "state", handoff_state_name(s->state));
	for (size_t i = 0; i < n; i++)
		json_set_str(out, fields[i].key, *handoff_member(s, &fields[i]));
	if (s->has_exit)
		json_set_i64(out, "exit_code", s->exit_code);
	if (s->generation)
		json_set_i64(out, "generation", s->generation);
	if (s->uid)
		json_set_i64(out, "uid", (int64_t)s->uid);
	return out;
}

static struct json_object *parts_json(const struct handoff *handoff)
{
	struct json_object *out = json_object_new_object();

	for (enum handoff_part_name part = 0; part < HANDOFF_N_PARTS; part++) {
		const struct handoff_part *list = &handoff->parts[part];
		if (!list->n)
			continue;
		struct json_object *array = json_object_new_array();
		for (size_t i = 0; i < list->n; i++)
			json_object_array_add(array, statement_json(&list->list[i]));
		json_set(out, handoff_part_key(part), array);
	}
	return out;
}

struct json_object *handoff_to_json(const struct handoff *handoff)
{
	struct json_object *out = json_object_new_object();
	size_t n;
	const struct handoff_member *heads = handoff_heads(&n);

	json_set_str(out, "schema", HANDOFF_SCHEMA);
	json_set_i64(out, "version", HANDOFF_VERSION);
	json_set_i64(out, "generation", handoff->generation);
	for (size_t i = 0; i < n; i++)
		json_set_str(out, heads[i].key, *handoff_member(handoff, &heads[i]));
	json_set_bool(out, "facts_only", handoff->facts_only);
	json_set(out, "parts", parts_json(handoff));
	return out;
}

/* ---- reading ---- */

/* Members that are no row of a table. */
static const char *const header_names[] = {"schema", "version", "generation", "facts_only",
					   "parts"};
static const char *const statement_names[] = {"text",	   "origin",	 "state",
					      "exit_code", "generation", "uid"};

struct place { /* of what is being read, for messages */
	const char *part;
	size_t i;
	struct err *err;
};

static int wrong(const struct place *place, const char *name, const char *what)
{
	if (!place->part)
		return err_set(place->err, ERR_INVALID, "%s %s", name, what);
	return err_set(place->err, ERR_INVALID, "parts.%s[%zu].%s %s", place->part, place->i, name,
		       what);
}

void handoff_unknown(struct buf *out, const char *name, const char *const *known, size_t n)
{
	const char *near = text_nearest(name, known, n);

	buf_addf(out, "'%s' is not known", name);
	if (near)
		buf_addf(out, "; did you mean '%s'?", near);
}

static int unknown(const struct place *place, const char *name, const char *const *known, size_t n)
{
	AUTO_BUF struct buf what = BUF_INIT;

	handoff_unknown(&what, name, known, n);
	if (!place->part)
		return err_set(place->err, ERR_INVALID, "%s", buf_str(&what));
	return err_set(place->err, ERR_INVALID, "parts.%s[%zu]: %s", place->part, place->i,
		       buf_str(&what));
}

/* Every member is one of the fixed names or of the table. */
static int check_names(const struct place *place, struct json_object *obj, const char *const *fixed,
		       size_t n_fixed, const struct handoff_member *table, size_t n_table)
{
	const char *known[48];
	size_t n = 0;

	for (size_t i = 0; i < n_fixed; i++)
		known[n++] = fixed[i];
	for (size_t i = 0; i < n_table && n < ARRAY_SIZE(known); i++)
		known[n++] = table[i].key;
	json_object_object_foreach (obj, name, value) {
		size_t i = 0;
		(void)value;
		while (i < n && strcmp(known[i], name) != 0)
			i++;
		if (i == n)
			return unknown(place, name, known, n);
	}
	return 0;
}

static int read_text(const struct place *place, struct json_object *obj, const char *name,
		     char **ret)
{
	struct json_object *value = json_get(obj, name);

	if (!json_has(obj, name))
		return 0;
	if (!json_object_is_type(value, json_type_string))
		return wrong(place, name, "must be a string");
	handoff_setn(ret, json_object_get_string(value), json_str_len(obj, name));
	return 0;
}

static int read_number(const struct place *place, struct json_object *obj, const char *name,
		       int64_t min, int64_t max, int64_t *ret)
{
	struct json_object *value = json_get(obj, name);

	if (!json_has(obj, name))
		return 0;
	if (!json_object_is_type(value, json_type_int))
		return wrong(place, name, "must be an integer");
	if (json_object_get_int64(value) < min || json_object_get_int64(value) > max)
		return wrong(place, name, "is out of range");
	*ret = json_object_get_int64(value);
	return 0;
}

static int read_flag(const struct place *place, struct json_object *obj, const char *name,
		     bool *ret)
{
	if (!json_has(obj, name))
		return 0;
	if (!json_object_is_type(json_get(obj, name), json_type_boolean))
		return wrong(place, name, "must be true or false");
	*ret = json_flag(obj, name, false);
	return 0;
}

static int read_numbers(const struct place *place, struct json_object *obj,
			struct handoff_statement *s)
{
	int64_t exit_code = 0, uid = 0;

	if (read_number(place, obj, "exit_code", INT_MIN, INT_MAX, &exit_code) < 0 ||
	    read_number(place, obj, "generation", 1, INT64_MAX, &s->generation) < 0 ||
	    read_number(place, obj, "uid", 1, INT64_MAX, &uid) < 0)
		return -1;
	s->has_exit = json_has(obj, "exit_code");
	s->exit_code = (int)exit_code;
	s->uid = (uint64_t)uid;
	return 0;
}

static int read_statement(const struct place *place, struct json_object *obj,
			  struct handoff *handoff, enum handoff_part_name part)
{
	enum handoff_origin origin;
	enum handoff_state state = HANDOFF_NO_STATE;
	struct json_object *text = json_get(obj, "text");
	size_t n;
	const struct handoff_member *fields = handoff_fields(&n);

	if (check_names(place, obj, statement_names, ARRAY_SIZE(statement_names), fields, n) < 0)
		return -1;
	if (!json_object_is_type(text, json_type_string))
		return wrong(place, "text", "must be a string");
	if (handoff_origin_find(json_str(obj, "origin", ""), &origin) < 0)
		return wrong(place, "origin", "must be \"record\", \"user\" or \"model\"");
	if (json_has(obj, "state") && handoff_state_find(json_str(obj, "state", ""), &state) < 0)
		return wrong(place, "state",
			     "must be \"verified\", \"claimed\", \"failed\", \"open\", "
			     "\"changed\", \"read\" or \"deleted\"");
	struct handoff_statement *s =
		handoff_add(handoff, part, origin, json_object_get_string(text),
			    (size_t)json_object_get_string_len(text));
	s->state = state;
	for (size_t i = 0; i < n; i++)
		if (read_text(place, obj, fields[i].key, handoff_member(s, &fields[i])) < 0)
			return -1;
	return read_numbers(place, obj, s);
}

static int read_part(struct handoff *handoff, enum handoff_part_name part, const char *key,
		     struct json_object *list, struct err *err)
{
	struct place place = {.part = key, .err = err};

	if (!json_object_is_type(list, json_type_array))
		return err_set(err, ERR_INVALID, "parts.%s must be an array", key);
	if ((handoff_part_flags(part) & HANDOFF_ONE) && json_len(list) > 1)
		return err_set(err, ERR_INVALID, "parts.%s must hold one statement", key);
	for (place.i = 0; place.i < json_len(list); place.i++) {
		struct json_object *obj = json_at(list, place.i);
		if (!json_object_is_type(obj, json_type_object))
			return err_set(err, ERR_INVALID, "parts.%s[%zu] must be an object", key,
				       place.i);
		if (read_statement(&place, obj, handoff, part) < 0)
			return -1;
	}
	return 0;
}

static int read_parts(struct handoff *handoff, struct json_object *json, struct err *err)
{
	struct json_object *parts = json_obj(json, "parts");

	if (!parts)
		return err_set(err, ERR_INVALID, "parts must be an object");
	json_object_object_foreach (parts, key, list) {
		enum handoff_part_name part;
		const char *keys[HANDOFF_N_PARTS];
		struct place place = {.err = err};
		if (handoff_part_find(key, &part) == 0) {
			if (read_part(handoff, part, key, list, err) < 0)
				return -1;
			continue;
		}
		for (part = 0; part < HANDOFF_N_PARTS; part++)
			keys[part] = handoff_part_key(part);
		unknown(&place, key, keys, HANDOFF_N_PARTS);
		return err_prefix(err, "parts");
	}
	return 0;
}

/* The version is looked at first: a newer document may well have members that we do not know. */
static int read_version(struct json_object *json, struct err *err)
{
	struct place place = {.err = err};
	int64_t version = 0;

	if (strcmp(json_str(json, "schema", ""), HANDOFF_SCHEMA) != 0)
		return err_set(err, ERR_INVALID, "this is no handoff: schema must be \"%s\"",
			       HANDOFF_SCHEMA);
	if (!json_has(json, "version"))
		return wrong(&place, "version", "is missing");
	if (read_number(&place, json, "version", 1, INT64_MAX, &version) < 0)
		return -1;
	if (version > HANDOFF_VERSION)
		return err_set(err, ERR_UNSUPPORTED,
			       "the handoff has version %lld, this baton reads up to %d",
			       (long long)version, HANDOFF_VERSION);
	return 0;
}

int handoff_header_from_json(struct handoff *handoff, struct json_object *json, struct err *err)
{
	struct place place = {.err = err};
	size_t n;
	const struct handoff_member *heads = handoff_heads(&n);

	if (read_version(json, err) < 0 ||
	    check_names(&place, json, header_names, ARRAY_SIZE(header_names), heads, n) < 0)
		return -1;
	for (size_t i = 0; i < n; i++)
		if (read_text(&place, json, heads[i].key, handoff_member(handoff, &heads[i])) < 0)
			return -1;
	if (read_number(&place, json, "generation", 0, INT64_MAX, &handoff->generation) < 0)
		return -1;
	return read_flag(&place, json, "facts_only", &handoff->facts_only);
}

int handoff_from_json(struct json_object *json, struct handoff **ret, struct err *err)
{
	struct handoff *handoff;

	if (!json_object_is_type(json, json_type_object))
		return err_set(err, ERR_INVALID, "a handoff must be a JSON object");
	handoff = handoff_new();
	if (handoff_header_from_json(handoff, json, err) < 0 ||
	    read_parts(handoff, json, err) < 0) {
		handoff_free(handoff);
		return -1;
	}
	*ret = handoff;
	return 0;
}
