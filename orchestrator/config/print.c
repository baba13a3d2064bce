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

/* The value as the user would write it. */
static void value_text(const struct settings *s, const struct option *o, struct buf *out)
{
	const char *const *list = settings_list(s, o->id);

	if (!s->values[o->id].set)
		return;
	switch (o->type) {
	case OPTION_FLAG: buf_adds(out, settings_flag(s, o->id) ? "true" : "false"); break;
	case OPTION_COUNT: buf_addf(out, "%lld", (long long)settings_i64(s, o->id)); break;
	case OPTION_DURATION: buf_addf(out, "%lldms", (long long)settings_i64(s, o->id)); break;
	case OPTION_MONEY:
	case OPTION_PERCENT: buf_addf(out, "%g", settings_double(s, o->id)); break;
	case OPTION_LIST:
		for (size_t i = 0; list[i]; i++)
			buf_addf(out, "%s%s", i ? " " : "", list[i]);
		break;
	default: buf_adds(out, s->values[o->id].text ? s->values[o->id].text : ""); break;
	}
}

void settings_print_effective(const struct settings *s, bool json, struct buf *out)
{
	size_t n;
	const struct option *table = option_table(&n);
	AUTO_JSON struct json_object *doc = json_object_new_object();

	for (size_t i = 0; i < n; i++) {
		AUTO_BUF struct buf value = BUF_INIT;
		AUTO_BUF struct buf row = BUF_INIT;
		value_text(s, &table[i], &value);
		if (json) {
			struct json_object *entry = json_object_new_object();
			json_set_str(entry, "value", buf_str(&value));
			json_set_str(entry, "origin", settings_origin(s, table[i].id));
			json_set(doc, table[i].name, entry);
			continue;
		}
		buf_addf(&row, "%-16s %-24s %s", table[i].name, buf_str(&value),
			 settings_origin(s, table[i].id));
		text_printable(out, buf_str(&row), row.len, true);
		buf_addc(out, '\n');
	}
	if (json)
		json_write_pretty(out, doc);
}
