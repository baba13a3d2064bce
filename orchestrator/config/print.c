/*
 * print.c - the option table as help, and the effective values with their origins.
 *
 * Values are printed as a user would write them, so that a line of `baton config` can go into a
 * file. What came from outside (values, paths of files) loses its control characters on the way.
 */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"
#include "orchestrator/config/store.h"

void settings_print_options(enum option_scope scope, struct buf *out)
{
	size_t n;
	const struct option *table = option_table(&n);

	for (size_t i = 0; i < n; i++) {
		const struct option *o = &table[i];
		char left[64];
		if (!(o->scope & scope))
			continue;
		snprintf(left, sizeof(left), "--%s %s", o->name, o->metavar);
		buf_addf(out, "  %-26s %s", left, o->help);
		if (o->type == OPTION_CHOICE)
			buf_addf(out, " (%s)", *o->dflt == '|' ? o->dflt + 1 : o->dflt);
		else if (*o->dflt)
			buf_addf(out, " (%s)", o->dflt);
		buf_addc(out, '\n');
	}
}

/* In the largest unit that says it in whole numbers. */
static void duration_text(int64_t ms, struct buf *out)
{
	static const struct {
		int64_t ms;
		const char *name;
	} units[] = {{3600000, "h"}, {60000, "m"}, {1000, "s"}, {1, "ms"}};
	size_t i = 0;

	while (ms % units[i].ms != 0)
		i++;
	buf_addf(out, "%lld%s", (long long)(ms / units[i].ms), units[i].name);
}

/* The value as the user would write it. */
static void value_text(const struct settings *s, const struct option *o, struct buf *out,
		       const char **ret_origin)
{
	const char *const *list = settings_list(s, o->id);

	*ret_origin = settings_origin(s, o->id);
	if (store_option_text(s, o, out, ret_origin) || !s->values[o->id].set)
		return;
	switch (o->type) {
	case OPTION_FLAG: buf_adds(out, settings_flag(s, o->id) ? "true" : "false"); break;
	case OPTION_COUNT: buf_addf(out, "%lld", (long long)settings_i64(s, o->id)); break;
	case OPTION_DURATION: duration_text(settings_i64(s, o->id), out); break;
	case OPTION_MONEY:
	case OPTION_PERCENT: buf_addf(out, "%g", settings_double(s, o->id)); break;
	case OPTION_LIST:
		for (size_t i = 0; list[i]; i++)
			buf_addf(out, "%s%s", i ? " " : "", list[i]);
		break;
	default: buf_adds(out, s->values[o->id].text ? s->values[o->id].text : ""); break;
	}
}

static void add_row(struct json_object *doc, const char *name, const char *value,
		    const char *origin)
{
	struct json_object *entry = json_object_new_object();

	json_set_str(entry, "value", value);
	json_set_str(entry, "origin", origin);
	json_set(doc, name, entry);
}

/* Which model runs would use if none is named; why there is none is for `baton run` to say. */
static void add_model(const struct settings *s, struct json_object *doc)
{
	AUTO_FREE char *provider = NULL;
	AUTO_FREE char *name = NULL;

	if (settings_str(s, OPT_MODEL) || settings_model(s, &provider, &name, NULL) < 0)
		return;
	AUTO_FREE char *full = mem_printf("%s/%s", provider, name);
	AUTO_FREE char *origin = mem_printf("the one key that is set, of %s", provider);
	add_row(doc, "model", full, origin);
}

/* Where requests go. Headers are left out: they may hold a secret. */
static void add_tables(const struct settings *s, struct json_object *doc)
{
	json_object_object_foreach (s->providers, name, fields) {
		AUTO_FREE char *row = mem_printf("providers.%s", name);
		AUTO_FREE char *text = mem_printf(
			"api: %s, base_url: %s, key_env: %s", json_str(fields, "api", "-"),
			json_str(fields, "base_url", "-"), json_str(fields, "key_env", "-"));
		add_row(doc, row, text, "configuration of the machine or the user");
	}
	json_object_object_foreach (s->models, model, values) {
		AUTO_FREE char *row = mem_printf("models.%s", model);
		AUTO_BUF struct buf text = BUF_INIT;
		json_write(&text, values);
		add_row(doc, row, buf_str(&text), "configuration of the machine or the user");
	}
}

/* All of them, also those that are options: here they have the names that files and roles use. */
static void add_knobs(const struct settings *s, struct json_object *doc)
{
	size_t n;
	const struct knob *table = knob_table(&n);

	for (size_t i = 0; i < n; i++) {
		AUTO_FREE char *row = mem_printf("context.%s", table[i].name);
		AUTO_BUF struct buf value = BUF_INIT;

		knob_print(&table[i], settings_knob(s, &table[i], NULL), &value);
		add_row(doc, row, buf_str(&value), settings_knob_origin(s, &table[i]));
	}
}

/* Each with its place in its file. What waits for trust is not here: a warning has named it. */
static void add_hooks(const struct settings *s, struct json_object *doc)
{
	size_t n, count[HOOK_EVENTS_COUNT] = {0};
	const struct hook_setting *hooks = settings_hooks(s, &n);

	for (size_t i = 0; i < n; i++) {
		const struct hook_setting *h = &hooks[i];
		AUTO_FREE char *row =
			mem_printf("hooks.%s.%zu", hook_event_name(h->event), ++count[h->event]);
		AUTO_BUF struct buf text = BUF_INIT;
		int64_t limit = h->timeout_ms ? h->timeout_ms : settings_i64(s, OPT_HOOK_TIMEOUT);

		buf_addf(&text, "matcher: %s, timeout: ", h->matcher ? h->matcher : "*");
		duration_text(limit, &text);
		buf_addf(&text, ", required: %s, command: %s", h->required ? "true" : "false",
			 h->command);
		add_row(doc, row, buf_str(&text), h->origin);
	}
}

/* Options of the command line alone are left out: no layer gives them a value. */
void settings_print_effective(const struct settings *s, bool json, struct buf *out)
{
	size_t n;
	const struct option *table = option_table(&n);
	AUTO_JSON struct json_object *doc = json_object_new_object();

	for (size_t i = 0; i < n; i++) {
		AUTO_BUF struct buf value = BUF_INIT;
		const char *origin;
		if (table[i].layers == CFG_CLI || table[i].id == OPT_CONTEXT)
			continue;
		value_text(s, &table[i], &value, &origin);
		add_row(doc, table[i].name, buf_str(&value), origin);
	}
	add_knobs(s, doc);
	add_model(s, doc);
	add_tables(s, doc);
	add_hooks(s, doc);
	if (json) {
		json_write_pretty(out, doc);
		return;
	}
	json_object_object_foreach (doc, name, entry) {
		AUTO_BUF struct buf row = BUF_INIT;
		buf_addf(&row, "%-28s %-24s %s", name, json_str(entry, "value", ""),
			 json_str(entry, "origin", ""));
		text_printable(out, buf_str(&row), row.len, true);
		buf_addc(out, '\n');
	}
}
