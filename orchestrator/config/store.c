/*
 * store.c - option values: type checks, strength of layers, typed getters. Runs in the parent.
 *
 * Each value remembers the layer that set it (M5): stronger ones override, weaker ones are checked
 * and dropped, so the order in which layers are read does not matter. Lists are the union of all.
 * A value that is out of range is an error in every layer, also where a stronger one hides it: it
 * would come to light on the day on which the stronger one goes.
 *
 * Limits that the user set for himself (money, tokens, time) can be lowered by a project's file and
 * not raised: whoever wrote the repository does not pay.
 */
#include "orchestrator/config/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"

#define NUMBER_MAX 1e15 /* a double holds every whole number up to here */

static const struct option options[] = {
#define OPTION_ROW(id, name, type, scope, layers, min, max, dflt, meta, help)                      \
	{OPT_##id, name, OPTION_##type, scope, layers, min, max, dflt, meta, help},
	OPTION_TABLE(OPTION_ROW)
#undef OPTION_ROW
};

const struct option *option_table(size_t *ret_count)
{
	*ret_count = ARRAY_SIZE(options);
	return options;
}

const struct option *option_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		if (strcmp(options[i].name, name) == 0)
			return &options[i];
	}
	return NULL;
}

const char *option_nearest(const char *name, unsigned scope)
{
	const char *names[OPT_COUNT_];
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		if (options[i].scope & scope)
			names[n++] = options[i].name;
	}
	return text_nearest(name, names, n);
}

bool option_names_paths(const struct option *option)
{
	return option->type == OPTION_PATH || strcmp(option->metavar, "DIR") == 0;
}

/* ---- setting ---- */

/* Limits of the user's purse. Rounds and agents are the work's shape, which a project may know
 * better. */
static bool is_limit(const struct option *o)
{
	return o->id == OPT_MAX_COST || o->id == OPT_MAX_TOKENS || o->id == OPT_TIME_LIMIT;
}

/* Makes the value this layer's, unless a stronger one has it. */
static bool claim(struct value *v, enum layer layer, const char *where)
{
	if (v->set && v->layer > layer)
		return false;
	v->set = true;
	v->layer = layer;
	free(v->origin);
	v->origin = mem_strdup(where);
	return true;
}

void store_flag(struct settings *s, const struct option *option, bool flag, enum layer layer,
		const char *where)
{
	struct value *v = &s->values[option->id];

	if (claim(v, layer, where))
		v->flag = flag;
}

/* Lists of all layers are merged without duplicates (M5). */
static void add_to_list(struct value *v, const char *text, enum layer layer, const char *where)
{
	for (size_t i = 0; i < v->n_list; i++) {
		if (strcmp(v->list[i], text) == 0)
			return;
	}
	v->list = mem_array(v->list, v->n_list + 2, sizeof(*v->list));
	v->list[v->n_list++] = mem_strdup(text);
	v->list[v->n_list] = NULL;
	v->set = true;
	if (!v->origin || v->layer < layer) {
		free(v->origin);
		v->origin = mem_strdup(where);
		v->layer = layer;
	}
}

/* Plain digits with one point: no sign, exponent, "inf", "nan" or hexadecimal form. */
static int parse_money(const char *text, double *ret)
{
	const char *digits = *text == '$' ? text + 1 : text;
	size_t whole = strspn(digits, "0123456789");
	size_t rest = digits[whole] == '.' ? strspn(digits + whole + 1, "0123456789") : 0;
	size_t n = whole + (digits[whole] == '.' ? 1 + rest : 0);

	if (whole + rest == 0 || whole > 12 || digits[n])
		return -1;
	*ret = strtod(digits, NULL);
	return 0;
}

/* All numbers are kept as doubles, which is exact up to NUMBER_MAX. */
static int parse_number(const struct option *o, const char *text, double *ret)
{
	int64_t n = 0;
	int rc;

	switch (o->type) {
	case OPTION_COUNT: rc = text_parse_count(text, &n); break;
	case OPTION_DURATION: rc = text_parse_duration_ms(text, &n); break;
	default: return parse_money(text, ret);
	}
	*ret = (double)n;
	return rc;
}

static const char *bound_text(const struct option *o, double bound, char text[32])
{
	snprintf(text, 32, "%.0f%s", bound, o->type == OPTION_DURATION ? "ms" : "");
	return text;
}

static int set_number(struct value *v, const struct option *o, const char *text, enum layer layer,
		      const char *where, struct err *err)
{
	static const char *const kinds[] = {[OPTION_COUNT] = "a number such as 200000 or 200k",
					    [OPTION_DURATION] = "a time such as 90s, 10m or 2h",
					    [OPTION_MONEY] = "an amount in USD such as 2.50",
					    [OPTION_PERCENT] = "a percentage"};
	char bound[32];
	double number;

	if (parse_number(o, text, &number) < 0)
		return err_set(err, ERR_USAGE, "%s: '%s' must be %s, not '%s'", where, o->name,
			       kinds[o->type], text);
	if (number < o->min)
		return err_set(err, ERR_USAGE, "%s: '%s' must be at least %s, not '%s'", where,
			       o->name, bound_text(o, o->min, bound), text);
	if (number > (o->max > 0 ? o->max : NUMBER_MAX))
		return err_set(err, ERR_USAGE, "%s: '%s' must be at most %s, not '%s'", where,
			       o->name, bound_text(o, o->max > 0 ? o->max : NUMBER_MAX, bound),
			       text);
	bool project = layer == LAYER_PROJECT || layer == LAYER_PROJECT_LOCAL;
	if (project && is_limit(o) && v->has_ceiling && number > v->ceiling) {
		log_warn("%s: '%s' is ignored: a project may only lower the user's limit", where,
			 o->name);
		return 0;
	}
	if (layer == LAYER_USER) {
		v->ceiling = number;
		v->has_ceiling = true;
	}
	if (claim(v, layer, where))
		v->number = number;
	return 0;
}

/* Is text one of "a|b|c"? */
static bool is_choice(const char *choices, const char *text)
{
	size_t n = strlen(text);

	for (const char *p = choices;; p++) {
		size_t len = strcspn(p, "|");
		if (len == n && strncmp(p, text, n) == 0)
			return true;
		p += len;
		if (!*p)
			return false;
	}
}

static int wrong_choice(const struct option *o, const char *choices, const char *text,
			const char *where, struct err *err)
{
	AUTO_FREE char *copy = mem_strdup(choices);
	const char *names[16];
	size_t n = 0;

	for (char *rest = copy, *word; n < ARRAY_SIZE(names) && (word = strsep(&rest, "|"));)
		names[n++] = word;
	const char *near = text_nearest(text, names, n);
	return err_set(err, ERR_USAGE, "%s: '%s' must be one of %s, not '%s'%s%s%s", where, o->name,
		       choices, text, near ? "; did you mean '" : "", near ? near : "",
		       near ? "'?" : "");
}

/* The empty text is no choice, also where the default is none. */
static int set_choice(struct value *v, const struct option *o, const char *text, enum layer layer,
		      const char *where, struct err *err)
{
	const char *choices = *o->dflt == '|' ? o->dflt + 1 : o->dflt;

	if (!is_choice(choices, text))
		return wrong_choice(o, choices, text, where, err);
	if (claim(v, layer, where)) {
		free(v->text);
		v->text = mem_strdup(text);
	}
	return 0;
}

static int store_value(struct settings *s, const struct option *o, const char *text,
		       enum layer layer, const char *where, const char *base_dir, struct err *err)
{
	struct value *v = &s->values[o->id];
	bool flag;

	switch (o->type) {
	case OPTION_FLAG:
		if (text_parse_bool(text, &flag) < 0)
			return err_set(err, ERR_USAGE, "%s: '%s' must be true or false, not '%s'",
				       where, o->name, text);
		store_flag(s, o, flag, layer, where);
		return 0;
	case OPTION_LIST:
		if (option_names_paths(o)) {
			AUTO_FREE char *path = file_join(base_dir, text);
			add_to_list(v, path, layer, where);
		} else {
			add_to_list(v, text, layer, where);
		}
		return 0;
	case OPTION_CHOICE: return set_choice(v, o, text, layer, where, err);
	case OPTION_STRING:
	case OPTION_PATH:
		if (!*text)
			return err_set(err, ERR_USAGE, "%s: '%s' must not be empty", where,
				       o->name);
		if (claim(v, layer, where)) {
			free(v->text);
			v->text = o->type == OPTION_PATH ? file_join(base_dir, text)
							 : mem_strdup(text);
		}
		return 0;
	default: return set_number(v, o, text, layer, where, err);
	}
}

int store_text(struct settings *s, const struct option *o, const char *text, enum layer layer,
	       const char *where, const char *base_dir, struct err *err)
{
	if (o->id == OPT_CONTEXT)
		return store_knob_pair(s, text, layer, where, err);
	if (store_value(s, o, text, layer, where, base_dir, err) < 0)
		return -1;
	if (s->values[o->id].layer == layer)
		store_knob_of_option(s, o);
	return 0;
}

static int set_defaults(struct settings *s, struct err *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		const struct option *o = &options[i];
		AUTO_FREE char *first = mem_strndup(o->dflt, strcspn(o->dflt, "|"));
		const char *text = o->type == OPTION_CHOICE ? first : o->dflt;
		if (*text && store_text(s, o, text, LAYER_DEFAULT, "default", "/", err) < 0)
			return -1;
	}
	return 0;
}

struct settings *store_new(void)
{
	struct settings *s = mem_alloc(sizeof(*s));
	struct err err = ERR_INIT;

	s->providers = json_object_new_object();
	s->models = json_object_new_object();
	store_knobs_init(s);
	if (set_defaults(s, &err) < 0) {
		fprintf(stderr, "option table: %s\n", err.message);
		abort(); /* part of the program: our own bug */
	}
	return s;
}

/* ---- reading ---- */

bool settings_wants_help(const struct settings *s)
{
	return s->wants_help;
}

size_t settings_n_args(const struct settings *s)
{
	return s->n_args;
}

const char *settings_arg(const struct settings *s, size_t i)
{
	return i < s->n_args ? s->args[i] : NULL;
}

bool settings_is_set(const struct settings *s, enum option_id id)
{
	return s->values[id].set && s->values[id].layer > LAYER_DEFAULT;
}

bool settings_flag(const struct settings *s, enum option_id id)
{
	return s->values[id].flag;
}

int64_t settings_i64(const struct settings *s, enum option_id id)
{
	return (int64_t)s->values[id].number;
}

double settings_double(const struct settings *s, enum option_id id)
{
	return s->values[id].set ? s->values[id].number : -1;
}

const char *settings_str(const struct settings *s, enum option_id id)
{
	const char *text = s->values[id].text;

	return text && *text ? text : NULL;
}

const char *const *settings_list(const struct settings *s, enum option_id id)
{
	static const char *const none[] = {NULL};

	return s->values[id].list ? (const char *const *)s->values[id].list : none;
}

const char *settings_origin(const struct settings *s, enum option_id id)
{
	return s->values[id].origin ? s->values[id].origin : "default";
}

struct json_object *settings_models(const struct settings *s)
{
	return s->models;
}

void settings_free(struct settings *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < OPT_COUNT_; i++) {
		free(s->values[i].origin);
		free(s->values[i].text);
		for (size_t k = 0; k < s->values[i].n_list; k++)
			free(s->values[i].list[k]);
		free(s->values[i].list);
	}
	for (size_t i = 0; i < s->n_args; i++)
		free(s->args[i]);
	free(s->args);
	store_knobs_release(s);
	json_object_put(s->providers);
	json_object_put(s->models);
	hooks_release(s);
	free(s);
}
