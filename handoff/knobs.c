/*
 * knobs.c - the table of knobs.h as data, and its values as text.
 *
 * Values are checked here for all who take them from people: files, the environment, the command line and
 * roles. The agent checks what it gets once more, as any field of its start document.
 */
#include "handoff/knobs.h"

#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

static const struct knob knobs[] = {
#define KNOB_ROW(field, name, kind, min, max, dflt, help)                                          \
	{name, KNOB_##kind, min, max, dflt, help, offsetof(struct context_knobs, field)},
	CONTEXT_KNOBS(KNOB_ROW)
#undef KNOB_ROW
};

const struct knob *knob_table(size_t *ret_count)
{
	*ret_count = ARRAY_SIZE(knobs);
	return knobs;
}

void knobs_init(struct context_knobs *k)
{
	*k = (struct context_knobs){
#define KNOB_DEFAULT(field, name, kind, min, max, dflt, help) .field = (dflt),
		CONTEXT_KNOBS(KNOB_DEFAULT)
#undef KNOB_DEFAULT
	};
}

/* "compact-pct" is "compact_pct", as for options. */
static bool same_name(const char *name, const char *word)
{
	for (; *name && *word; name++, word++)
		if (*name != (*word == '-' ? '_' : *word))
			return false;
	return *name == *word;
}

const struct knob *knob_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(knobs); i++)
		if (same_name(knobs[i].name, name))
			return &knobs[i];
	return NULL;
}

const char *knob_nearest(const char *name)
{
	const char *names[ARRAY_SIZE(knobs)];
	AUTO_FREE char *word = mem_strdup(name);

	for (char *p = word; *p; p++)
		*p = *p == '-' ? '_' : *p;
	for (size_t i = 0; i < ARRAY_SIZE(knobs); i++)
		names[i] = knobs[i].name;
	return text_nearest(word, names, ARRAY_SIZE(names));
}

static int parse_number(const struct knob *k, const char *text, int64_t *ret, struct err *err)
{
	bool learned = k->kind == KNOB_LEARNED;
	AUTO_FREE char *bare = mem_strdup(text);
	size_t n = strlen(bare);
	int64_t number;

	if (learned && strcmp(text, "auto") == 0) {
		*ret = KNOB_AUTO;
		return 0;
	}
	if (k->kind == KNOB_PERCENT && n && bare[n - 1] == '%')
		bare[n - 1] = '\0';
	if (text_parse_count(bare, &number) < 0)
		return err_set(err, ERR_USAGE, "'%s' must be a number%s, not '%.60s'", k->name,
			       learned ? " or auto" : "", text);
	if (number < k->min || number > k->max)
		return err_set(err, ERR_USAGE,
			       "'%s' must be from %" PRId64 " to %" PRId64 ", not '%.60s'", k->name,
			       k->min, k->max, text);
	*ret = number;
	return 0;
}

int knob_parse(const struct knob *k, const char *text, int64_t *ret, struct err *err)
{
	bool flag;

	if (k->kind != KNOB_FLAG)
		return parse_number(k, text, ret, err);
	if (text_parse_bool(text, &flag) < 0)
		return err_set(err, ERR_USAGE, "'%s' must be true or false, not '%.60s'", k->name,
			       text);
	*ret = flag;
	return 0;
}

void knob_print(const struct knob *k, int64_t value, struct buf *out)
{
	if (k->kind == KNOB_FLAG)
		buf_adds(out, value ? "true" : "false");
	else if (k->kind == KNOB_LEARNED && value == KNOB_AUTO)
		buf_adds(out, "auto");
	else
		buf_addf(out, "%" PRId64, value);
}
