/*
 * knobs.c - numbers of the context engine in the layers of M5. Runs in the parent.
 *
 * They are a table of their own (handoff/knobs.h) and not options: there are many, few are ever set, and a
 * role may set them too. Between the layers a role stands above all files of the project and the user, since it
 * knows its own work (W3), and below the environment and the command line, which are this run's word.
 *
 * A few of them have been options all along. Those names stay, and both names set the same number.
 */
#include <stdio.h>
#include <string.h>

#include "base/env.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/yaml.h"
#include "orchestrator/config/store.h"

/* `on`: the word of a choice that stands for 1. */
static const struct {
	enum option_id option;
	const char *knob, *on, *off;
} aliases[] = {
	{OPT_CEILING, "working_ceiling", NULL, NULL},
	{OPT_USER_MESSAGE, "user_message_bytes", NULL, NULL},
	{OPT_COMPACT_PCT, "compact_pct", NULL, NULL},
	{OPT_COMPACT, "compact", "auto", "off"},
	{OPT_CACHE_LIFE, "cache_1h", "1h", "5m"},
};

/* W4's names that say the opposite of a knob's. */
static const struct {
	const char *variable, *knob;
} negations[] = {
	{"BATON_DISABLE_COMPACT", "compact_any"},
	{"BATON_DISABLE_AUTO_COMPACT", "compact"},
};

static struct knob_value *value_of(struct settings *s, const struct knob *knob)
{
	size_t n;

	return &s->knobs[knob - knob_table(&n)];
}

void store_knobs_init(struct settings *s)
{
	size_t n;
	const struct knob *table = knob_table(&n);

	for (size_t i = 0; i < n; i++)
		s->knobs[i] = (struct knob_value){.layer = LAYER_DEFAULT, .number = table[i].dflt};
}

void store_knobs_release(struct settings *s)
{
	for (size_t i = 0; i < KNOBS; i++)
		free(s->knobs[i].origin);
}

static void claim(struct settings *s, const struct knob *knob, int64_t number, enum layer layer,
		  const char *where)
{
	struct knob_value *v = value_of(s, knob);

	if (v->layer > layer)
		return;
	v->layer = layer;
	v->number = number;
	free(v->origin);
	v->origin = mem_strdup(where);
}

/* ---- reading ---- */

static int unknown(const char *where, const char *name, struct err *err)
{
	const char *near = knob_nearest(name);

	return err_set(err, ERR_USAGE, "%s: unknown number of the context '%.60s'%s%s%s", where,
		       name, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

int store_knob_pair(struct settings *s, const char *pair, enum layer layer, const char *where,
		    struct err *err)
{
	const char *equals = strchr(pair, '=');
	AUTO_FREE char *name = mem_strndup(pair, strcspn(pair, "="));
	const struct knob *knob = knob_find(name);
	int64_t number;

	if (!knob)
		return unknown(where, name, err);
	if (!equals)
		return err_set(err, ERR_USAGE, "%s: '%s' needs a value: --context %s=VALUE", where,
			       knob->name, knob->name);
	if (knob_parse(knob, equals + 1, &number, err) < 0)
		return err_prefix(err, "%s", where);
	claim(s, knob, number, layer, where);
	return 0;
}

/* Scalars only. Words for yes and no are a flag's: a number that is `true` was meant otherwise. */
static const char *scalar(const struct knob *knob, struct json_object *value)
{
	switch (json_object_get_type(value)) {
	case json_type_boolean:
		return knob->kind == KNOB_FLAG ? json_object_get_string(value) : NULL;
	case json_type_int:
	case json_type_string: return json_object_get_string(value);
	default: return NULL;
	}
}

int knob_member(const char *name, struct json_object *value, const char *path,
		const struct yaml_doc *doc, const char *pointer, const struct knob **ret_knob,
		int64_t *ret, struct err *err)
{
	AUTO_FREE char *where = mem_printf("%s:%d", path, yaml_line(doc, pointer));
	const struct knob *knob = knob_find(name);
	const char *text = knob ? scalar(knob, value) : NULL;

	if (!knob)
		return unknown(where, name, err);
	if (!text)
		return err_set(err, ERR_USAGE, "%s: %s is expected for '%s'", where,
			       knob->kind == KNOB_FLAG ? "true or false" : "a number", name);
	if (knob_parse(knob, text, ret, err) < 0)
		return err_prefix(err, "%s", where);
	*ret_knob = knob;
	return 0;
}

int store_knob_mapping(struct settings *s, struct json_object *mapping, const char *path,
		       const struct yaml_doc *doc, enum layer layer, struct err *err)
{
	if (!json_object_is_type(mapping, json_type_object))
		return err_set(err, ERR_USAGE, "%s:%d: a mapping is expected for 'context'", path,
			       yaml_line(doc, "/context"));
	json_object_object_foreach (mapping, name, value) {
		AUTO_FREE char *pointer = config_pointer("/context", name);
		AUTO_FREE char *where = mem_printf("%s:%d", path, yaml_line(doc, pointer));
		const struct knob *knob = NULL;
		int64_t number = 0;

		if (knob_member(name, value, path, doc, pointer, &knob, &number, err) < 0)
			return -1;
		claim(s, knob, number, layer, where);
	}
	return 0;
}

static int read_variable(struct settings *s, const char *variable, const struct knob *knob,
			 bool negated, struct err *err)
{
	const char *text = env_get(variable);
	AUTO_FREE char *where = mem_printf("environment %s", variable);
	int64_t number;

	if (!text)
		return 0;
	if (knob_parse(knob, text, &number, err) < 0)
		return err_prefix(err, "%s", where);
	claim(s, knob, negated ? !number : number, LAYER_ENVIRONMENT, where);
	return 0;
}

/* NULL where an option has the same name: then the option's form of value is the one that counts. */
static char *variable_of(const struct knob *knob)
{
	AUTO_FREE char *option = mem_strdup(knob->name);
	AUTO_FREE char *upper = config_upper_name(knob->name);

	for (char *p = option; *p; p++)
		*p = *p == '_' ? '-' : *p;
	return option_find(option) ? NULL : mem_printf("BATON_%s", upper);
}

int store_knobs_of_environment(struct settings *s, struct err *err)
{
	size_t n;
	const struct knob *table = knob_table(&n);

	for (size_t i = 0; i < n; i++) {
		AUTO_FREE char *variable = variable_of(&table[i]);

		if (variable && read_variable(s, variable, &table[i], false, err) < 0)
			return -1;
	}
	for (size_t i = 0; i < ARRAY_SIZE(negations); i++) {
		if (read_variable(s, negations[i].variable, knob_find(negations[i].knob), true,
				  err) < 0)
			return -1;
	}
	return 0;
}

char *store_knob_variable(size_t i)
{
	size_t n;
	const struct knob *table = knob_table(&n);

	if (i < ARRAY_SIZE(negations))
		return mem_strdup(negations[i].variable);
	i -= ARRAY_SIZE(negations);
	return i < n ? mem_printf("BATON_%s", table[i].name) : NULL;
}

/* ---- options that are knobs ---- */

void store_knob_of_option(struct settings *s, const struct option *o)
{
	const struct value *v = &s->values[o->id];

	for (size_t i = 0; i < ARRAY_SIZE(aliases); i++) {
		if (aliases[i].option != o->id)
			continue;
		int64_t number = aliases[i].on ? v->text && strcmp(v->text, aliases[i].on) == 0
					       : (int64_t)v->number;
		claim(s, knob_find(aliases[i].knob), number, v->layer, v->origin);
	}
}

bool store_option_text(const struct settings *s, const struct option *o, struct buf *out,
		       const char **ret_origin)
{
	for (size_t i = 0; i < ARRAY_SIZE(aliases); i++) {
		if (aliases[i].option != o->id)
			continue;
		size_t n;
		const struct knob_value *v = &s->knobs[knob_find(aliases[i].knob) - knob_table(&n)];

		if (aliases[i].on)
			buf_adds(out, v->number ? aliases[i].on : aliases[i].off);
		else if (v->number || v->layer > LAYER_DEFAULT)
			buf_addf(out, "%lld", (long long)v->number);
		*ret_origin = v->origin ? v->origin : "default";
		return true;
	}
	return false;
}

/* ---- for others ---- */

int64_t settings_knob(const struct settings *s, const struct knob *knob, struct json_object *role)
{
	size_t n;
	const struct knob_value *v = &s->knobs[knob - knob_table(&n)];

	if (v->layer > LAYER_ROLE || !json_has(role, knob->name))
		return v->number;
	return json_i64(role, knob->name, v->number);
}

const char *settings_str_for(const struct settings *s, enum option_id id, const char *role)
{
	bool above = settings_is_set(s, id) && s->values[id].layer > LAYER_ROLE;

	return role && !above ? role : settings_str(s, id);
}

const char *settings_knob_origin(const struct settings *s, const struct knob *knob)
{
	size_t n;
	const struct knob_value *v = &s->knobs[knob - knob_table(&n)];

	return v->origin ? v->origin : "default";
}
