/*
 * json_schema.c - checks a value against the part of JSON Schema that tool and stage schemas use.
 *
 * The error is read by a model, which shall repair its call: it names the place as a JSON pointer
 * and says what was expected. One table lists the keywords; a keyword that is not in it is ignored,
 * as JSON Schema demands. A schema is ours or the user's; the value is a model's.
 */
#include <math.h>
#include <stdio.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"

enum { SCHEMA_DEPTH_MAX = 64 };

struct check {
	struct json_object *root; /* where a $ref is looked up */
	struct buf path;	  /* JSON pointer of the value being checked */
	int depth;
	struct err *err;
};

static int check_value(struct check *c, struct json_object *schema, struct json_object *value);

static int expected(struct check *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static int expected(struct check *c, const char *fmt, ...)
{
	AUTO_BUF struct buf text = BUF_INIT;
	va_list ap;
	va_start(ap, fmt);
	buf_addv(&text, fmt, ap);
	va_end(ap);
	return err_set(c->err, ERR_INVALID, "at '%s': %s", c->path.len ? c->path.data : "/",
		       buf_str(&text));
}

/* "~" and "/" are escaped as RFC 6901 says. Returns the length to go back to. */
static size_t path_push(struct check *c, const char *key)
{
	size_t before = c->path.len;
	buf_addc(&c->path, '/');
	for (; *key; key++) {
		if (*key == '~')
			buf_adds(&c->path, "~0");
		else if (*key == '/')
			buf_adds(&c->path, "~1");
		else
			buf_addc(&c->path, *key);
	}
	return before;
}

/* --- keywords --- */

static bool is_whole(struct json_object *value)
{
	if (json_object_is_type(value, json_type_int))
		return true;
	if (!json_object_is_type(value, json_type_double))
		return false;
	double d = json_object_get_double(value);
	return isfinite(d) && d == floor(d);
}

static bool is_number(struct json_object *value)
{
	return json_object_is_type(value, json_type_int) ||
	       json_object_is_type(value, json_type_double);
}

static bool has_type(struct json_object *value, const char *name)
{
	static const struct {
		const char *name;
		enum json_type type;
	} types[] = {
		{"null", json_type_null},     {"boolean", json_type_boolean},
		{"string", json_type_string}, {"array", json_type_array},
		{"object", json_type_object},
	};
	if (strcmp(name, "integer") == 0)
		return is_whole(value);
	if (strcmp(name, "number") == 0)
		return is_number(value);
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (strcmp(name, types[i].name) == 0)
			return json_object_is_type(value, types[i].type);
	return true; /* a type nobody knows forbids nothing */
}

static int check_type(struct check *c, struct json_object *arg, struct json_object *value)
{
	if (json_object_is_type(arg, json_type_string)) {
		const char *name = json_object_get_string(arg);
		if (has_type(value, name))
			return 0;
		return expected(c, "expected %s, got %s", name,
				json_type_to_name(json_object_get_type(value)));
	}
	AUTO_BUF struct buf names = BUF_INIT;
	for (size_t i = 0; i < json_len(arg); i++) {
		const char *name = json_object_get_string(json_at(arg, i));
		if (!name || has_type(value, name))
			return 0;
		buf_addf(&names, "%s%s", i ? " or " : "", name);
	}
	if (!names.len)
		return 0;
	return expected(c, "expected %s, got %s", names.data,
			json_type_to_name(json_object_get_type(value)));
}

static int check_enum(struct check *c, struct json_object *arg, struct json_object *value)
{
	AUTO_BUF struct buf list = BUF_INIT;
	for (size_t i = 0; i < json_len(arg); i++) {
		if (json_object_equal(json_at(arg, i), value))
			return 0;
		buf_adds(&list, i ? ", " : "");
		json_write(&list, json_at(arg, i));
	}
	return expected(c, "expected one of %s", buf_str(&list));
}

static int check_const(struct check *c, struct json_object *arg, struct json_object *value)
{
	if (json_object_equal(arg, value))
		return 0;
	return expected(c, "expected %s", json_object_to_json_string(arg));
}

/* Within the same document only, and names without escapes: "#/$defs/statement". A $ref that leads nowhere
 * forbids nothing, as a type that nobody knows. */
static int check_ref(struct check *c, struct json_object *arg, struct json_object *value)
{
	const char *at =
		json_object_is_type(arg, json_type_string) ? json_object_get_string(arg) : "";
	struct json_object *schema = c->root;

	if (*at++ != '#')
		return 0;
	while (*at == '/') {
		size_t n = strcspn(at + 1, "/");
		AUTO_FREE char *name = mem_strndup(at + 1, n);
		schema = json_get(schema, name);
		at += n + 1;
	}
	return check_value(c, schema, value);
}

static int check_minimum(struct check *c, struct json_object *arg, struct json_object *value)
{
	if (!is_number(value) || json_object_get_double(value) >= json_object_get_double(arg))
		return 0;
	return expected(c, "expected at least %s", json_object_to_json_string(arg));
}

static int check_maximum(struct check *c, struct json_object *arg, struct json_object *value)
{
	if (!is_number(value) || json_object_get_double(value) <= json_object_get_double(arg))
		return 0;
	return expected(c, "expected at most %s", json_object_to_json_string(arg));
}

/* Characters, as JSON Schema counts them; -1 if the value is no string. */
static int64_t string_length(struct json_object *value)
{
	if (!json_object_is_type(value, json_type_string))
		return -1;
	const char *s = json_object_get_string(value);
	int64_t count = 0;
	for (int i = 0; i < json_object_get_string_len(value); i++)
		count += ((unsigned char)s[i] & 0xc0) != 0x80;
	return count;
}

static int check_min_length(struct check *c, struct json_object *arg, struct json_object *value)
{
	int64_t n = string_length(value), min = json_object_get_int64(arg);
	if (n < 0 || n >= min)
		return 0;
	return expected(c, "expected at least %lld characters", (long long)min);
}

static int check_max_length(struct check *c, struct json_object *arg, struct json_object *value)
{
	int64_t n = string_length(value), max = json_object_get_int64(arg);
	if (n <= max)
		return 0;
	return expected(c, "expected at most %lld characters", (long long)max);
}

static int check_min_items(struct check *c, struct json_object *arg, struct json_object *value)
{
	int64_t min = json_object_get_int64(arg);
	if (!json_object_is_type(value, json_type_array) || (int64_t)json_len(value) >= min)
		return 0;
	return expected(c, "expected at least %lld items", (long long)min);
}

static int check_max_items(struct check *c, struct json_object *arg, struct json_object *value)
{
	int64_t max = json_object_get_int64(arg);
	if (!json_object_is_type(value, json_type_array) || (int64_t)json_len(value) <= max)
		return 0;
	return expected(c, "expected at most %lld items", (long long)max);
}

static int check_required(struct check *c, struct json_object *arg, struct json_object *value)
{
	if (!json_object_is_type(value, json_type_object))
		return 0;
	for (size_t i = 0; i < json_len(arg); i++) {
		const char *key = json_object_get_string(json_at(arg, i));
		if (key && !json_has(value, key))
			return expected(c, "missing field '%s'", key);
	}
	return 0;
}

static int check_properties(struct check *c, struct json_object *arg, struct json_object *value)
{
	if (!json_object_is_type(value, json_type_object) ||
	    !json_object_is_type(arg, json_type_object))
		return 0;
	json_object_object_foreach (arg, key, schema) {
		if (!json_has(value, key))
			continue;
		size_t back = path_push(c, key);
		if (check_value(c, schema, json_get(value, key)) < 0)
			return -1;
		buf_truncate(&c->path, back);
	}
	return 0;
}

static int check_items(struct check *c, struct json_object *arg, struct json_object *value)
{
	for (size_t i = 0; i < json_len(value); i++) {
		char index[24];
		snprintf(index, sizeof(index), "%zu", i);
		size_t back = path_push(c, index);
		if (check_value(c, arg, json_at(value, i)) < 0)
			return -1;
		buf_truncate(&c->path, back);
	}
	return 0;
}

/* Needs the whole schema, so it stands outside the table. */
static int check_additional(struct check *c, struct json_object *schema, struct json_object *value)
{
	if (json_flag(schema, "additionalProperties", true) ||
	    !json_object_is_type(value, json_type_object))
		return 0;
	struct json_object *known = json_obj(schema, "properties");
	json_object_object_foreach (value, key, member) {
		(void)member;
		if (json_has(known, key))
			continue;
		const char *names[64];
		size_t n = 0;
		if (known) {
			json_object_object_foreach (known, name, unused) {
				(void)unused;
				if (n < ARRAY_SIZE(names))
					names[n++] = name;
			}
		}
		const char *near = text_nearest(key, names, n);
		if (near)
			return expected(c, "unknown field '%s'; did you mean '%s'?", key, near);
		return expected(c, "unknown field '%s'", key);
	}
	return 0;
}

static const struct {
	const char *name;
	int (*check)(struct check *c, struct json_object *arg, struct json_object *value);
} keywords[] = {
	{"type", check_type},
	{"enum", check_enum},
	{"const", check_const},
	{"$ref", check_ref},
	{"minimum", check_minimum},
	{"maximum", check_maximum},
	{"minLength", check_min_length},
	{"maxLength", check_max_length},
	{"minItems", check_min_items},
	{"maxItems", check_max_items},
	{"required", check_required},
	{"properties", check_properties},
	{"items", check_items},
};

static int check_value(struct check *c, struct json_object *schema, struct json_object *value)
{
	if (!json_object_is_type(schema, json_type_object))
		return 0;
	if (c->depth == SCHEMA_DEPTH_MAX)
		return expected(c, "nesting deeper than %d", SCHEMA_DEPTH_MAX);
	c->depth++;
	for (size_t i = 0; i < ARRAY_SIZE(keywords); i++) {
		struct json_object *arg = json_get(schema, keywords[i].name);
		if (arg && keywords[i].check(c, arg, value) < 0)
			return -1;
	}
	c->depth--;
	return check_additional(c, schema, value);
}

int json_check_schema(struct json_object *schema, struct json_object *value, struct err *err)
{
	struct check c = {.root = schema, .path = BUF_INIT, .err = err};
	int rc = check_value(&c, schema, value);
	buf_release(&c.path);
	return rc;
}
