/*
 * record.c - the settings of a run, kept with it and taken back when it goes on. Runs in the parent.
 *
 * A run that was cut off goes on as it was begun, whatever configuration files and environment say by now: what was
 * set then holds, with the strength of the layer that set it, since a role's own words stand between the layers.
 * Above it stand the new command line and the machine's managed file. Tables (providers, models, hooks) are not
 * recorded: where requests go and which commands run is for the present configuration to say.
 *
 * Options that only say where and how to answer (-C, --json, -v) are the new command's own.
 */
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "orchestrator/config/store.h"

static const char *const layer_names[] = {
	[LAYER_DEFAULT] = "default",
	[LAYER_USER] = "user",
	[LAYER_PROJECT] = "project",
	[LAYER_PROJECT_LOCAL] = "project local",
	[LAYER_ROLE] = "role",
	[LAYER_ENVIRONMENT] = "environment",
	[LAYER_COMMAND_LINE] = "command line",
	[LAYER_MANAGED] = "managed",
};

/* As it was recorded, but below the command line that resumes. */
static enum layer layer_of(const char *name)
{
	for (size_t i = LAYER_USER; i <= LAYER_ENVIRONMENT; i++) {
		if (strcmp(layer_names[i], name) == 0)
			return (enum layer)i;
	}
	return LAYER_ENVIRONMENT;
}

static bool is_of_run(const struct option *o)
{
	return (o->scope & (SCOPE_RUN | SCOPE_REVIEW)) && !(o->scope & SCOPE_OTHER) &&
	       o->id != OPT_CONTEXT && o->id != OPT_FILE && o->id != OPT_PLAIN &&
	       o->id != OPT_QUIET;
}

static struct json_object *value_json(const struct option *o, const struct value *v)
{
	if (o->type == OPTION_FLAG)
		return json_object_new_boolean(v->flag);
	if (o->type == OPTION_LIST) {
		struct json_object *list = json_object_new_array();
		for (size_t i = 0; i < v->n_list; i++)
			json_object_array_add(list, json_object_new_string(v->list[i]));
		return list;
	}
	if (o->type == OPTION_MONEY || o->type == OPTION_PERCENT)
		return json_object_new_double(v->number);
	if (o->type == OPTION_COUNT || o->type == OPTION_DURATION)
		return json_object_new_int64((int64_t)v->number);
	return json_object_new_string(v->text ? v->text : "");
}

static void add(struct json_object *doc, const char *name, struct json_object *value,
		enum layer layer, const char *origin)
{
	struct json_object *entry = json_object_new_object();

	json_set(entry, "value", value);
	json_set_str(entry, "layer", layer_names[layer]);
	json_set_str(entry, "origin", origin);
	json_set(doc, name, entry);
}

struct json_object *settings_record(const struct settings *s)
{
	struct json_object *doc = json_object_new_object();
	struct json_object *options = json_object_new_object();
	struct json_object *context = json_object_new_object();
	size_t n;
	const struct option *table = option_table(&n);

	for (size_t i = 0; i < n; i++) {
		const struct value *v = &s->values[table[i].id];
		if (is_of_run(&table[i]) && v->set && v->layer > LAYER_DEFAULT)
			add(options, table[i].name, value_json(&table[i], v), v->layer, v->origin);
	}
	const struct knob *knobs = knob_table(&n);
	for (size_t i = 0; i < n; i++) {
		const struct knob_value *v = &s->knobs[i];
		if (v->layer > LAYER_DEFAULT)
			add(context, knobs[i].name, json_object_new_int64(v->number), v->layer,
			    v->origin);
	}
	json_set(doc, "options", options);
	json_set(doc, "context", context);
	return doc;
}

/* A later word of the user's, in a record that stands already. A limit that is none (below or at 0) says nothing. */
void settings_record_limit(struct json_object *record, const char *option,
			   struct json_object *value)
{
	struct json_object *options = json_obj(record, "options");

	if (options && json_object_get_double(value) > 0)
		add(options, option, json_object_get(value), LAYER_COMMAND_LINE, "baton resume");
}

/* ---- taking back ---- */

static bool is_newer_word(enum layer layer)
{
	return layer == LAYER_COMMAND_LINE || layer == LAYER_MANAGED;
}

static int put_option(struct settings *s, const struct option *o, struct json_object *entry,
		      const char *run, struct err *err)
{
	struct json_object *value = json_get(entry, "value");
	enum layer layer = layer_of(json_str(entry, "layer", ""));
	AUTO_FREE char *where = mem_printf("%s, of run %s", json_str(entry, "origin", "?"), run);
	const char *suffix = o->type == OPTION_DURATION ? "ms" : "";

	if (!json_object_is_type(value, json_type_array)) {
		AUTO_FREE char *text = mem_printf("%s%s", json_object_get_string(value), suffix);
		return store_text(s, o, text, layer, where, "/", err);
	}
	for (size_t i = 0; i < json_len(value); i++) {
		const char *item = json_object_get_string(json_at(value, i));
		if (item && store_text(s, o, item, layer, where, "/", err) < 0)
			return -1;
	}
	return 0;
}

/* The value of the new run's layers gives way to the table's default. */
static void swap_value(struct settings *s, struct settings *fresh, enum option_id id)
{
	struct value kept = s->values[id];

	s->values[id] = fresh->values[id];
	fresh->values[id] = kept;
}

static int take_options(struct settings *s, struct settings *fresh, struct json_object *options,
			const char *run, struct err *err)
{
	size_t n;
	const struct option *table = option_table(&n);

	for (size_t i = 0; i < n; i++) {
		const struct option *o = &table[i];
		struct json_object *entry = json_obj(options, o->name);
		bool newer = s->values[o->id].set && is_newer_word(s->values[o->id].layer);
		if (!is_of_run(o))
			continue;
		if (!newer)
			swap_value(s, fresh, o->id);
		if (entry && (!newer || o->type == OPTION_LIST) &&
		    put_option(s, o, entry, run, err) < 0)
			return err_prefix(err, "the run's setting '%s'", o->name);
	}
	return 0;
}

static void take_knobs(struct settings *s, struct settings *fresh, struct json_object *context,
		       const char *run)
{
	size_t n;
	const struct knob *table = knob_table(&n);

	for (size_t i = 0; i < n; i++) {
		struct json_object *entry = json_obj(context, table[i].name);
		struct knob_value *v = &s->knobs[i];
		if (is_newer_word(v->layer))
			continue;
		free(v->origin);
		*v = fresh->knobs[i];
		fresh->knobs[i].origin = NULL;
		if (!entry)
			continue;
		v->number = json_i64(entry, "value", v->number);
		v->layer = layer_of(json_str(entry, "layer", ""));
		v->origin = mem_printf("%s, of run %s", json_str(entry, "origin", "?"), run);
	}
}

int settings_restore(struct settings *s, struct json_object *record, const char *run,
		     struct err *err)
{
	struct settings *fresh = store_new();
	struct err why = ERR_INIT;
	int rc = take_options(s, fresh, json_obj(record, "options"), run, &why);

	/* After the options: some of them are knobs under another name. */
	if (rc == 0)
		take_knobs(s, fresh, json_obj(record, "context"), run);
	settings_free(fresh);
	return rc < 0 ? err_set(err, ERR_USAGE, "%s", why.message) : 0;
}
