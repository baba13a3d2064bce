/*
 * report_bound.c - a report cut to what its reader has room for (X7).
 *
 * Long strings keep head and tail, lists their first and last entries; the shape stays, so a reader
 * needs no second kind of report. Caps are halved from generous to tiny until the text fits: which
 * part of a report is the large one differs (one log in `evidence`, or 300 findings), and trying is
 * simpler and fairer than weighing. Only when even tiny caps do not fit (a `data` of many members)
 * nothing but status and summary is kept.
 */
#include "handoff/report.h"

#include "base/memory.h"
#include "base/text.h"

enum {
	LIST_START = 128, /* entries of a list that the first try keeps */
	LIST_LEAST = 2,
	STRING_LEAST = 60,
	MARKER_ROOM = 400, /* below this a string is cut without text_clip's marker line */
	BUDGET_LEAST = 400,
};

struct caps {
	size_t string, list;
	const char *where;
};

static struct json_object *bound_value(struct json_object *value, const struct caps *caps);

/* text_clip's marker may be 200 bytes long: for short ones an ellipsis has to do. */
static struct json_object *bound_string(struct json_object *value, const struct caps *caps)
{
	const char *s = json_object_get_string(value);
	size_t n = (size_t)json_object_get_string_len(value);
	if (n <= caps->string)
		return json_object_new_string_len(s, (int)n);
	AUTO_BUF struct buf out = BUF_INIT;
	if (caps->string >= MARKER_ROOM) {
		text_clip(&out, s, n, caps->string, caps->where);
	} else {
		size_t head = text_floor(s, n, caps->string * 6 / 10);
		size_t tail = text_ceil(s, n, n - caps->string * 3 / 10);
		buf_add(&out, s, head);
		buf_adds(&out, " ... ");
		buf_add(&out, s + tail, n - tail);
	}
	return json_object_new_string_len(buf_str(&out), (int)out.len);
}

/* The first half and the last: findings come in the order of importance or of place, and either way
 * the ends tell most of what the list is about. */
static struct json_object *bound_list(struct json_object *value, const struct caps *caps)
{
	struct json_object *list = json_object_new_array();
	size_t count = json_len(value);
	size_t keep = MIN(count, caps->list);
	size_t head = (keep + 1) / 2;
	for (size_t i = 0; i < keep; i++) {
		size_t at = i < head ? i : count - keep + i;
		json_object_array_add(list, bound_value(json_at(value, at), caps));
	}
	return list;
}

static struct json_object *bound_object(struct json_object *value, const struct caps *caps)
{
	struct json_object *copy = json_object_new_object();
	struct json_object_iterator it = json_object_iter_begin(value);
	struct json_object_iterator end = json_object_iter_end(value);
	for (; !json_object_iter_equal(&it, &end); json_object_iter_next(&it))
		json_set(copy, json_object_iter_peek_name(&it),
			 bound_value(json_object_iter_peek_value(&it), caps));
	return copy;
}

static struct json_object *bound_value(struct json_object *value, const struct caps *caps)
{
	switch (json_object_get_type(value)) {
	case json_type_string: return bound_string(value, caps);
	case json_type_array: return bound_list(value, caps);
	case json_type_object: return bound_object(value, caps);
	default: return json_object_get(value); /* numbers and the like never change: shared */
	}
}

static size_t text_size(struct json_object *value)
{
	AUTO_BUF struct buf text = BUF_INIT;
	json_write(&text, value);
	return text.len;
}

/* How many entries each list of the report lost. */
static void add_left_out(struct json_object *bounded, struct json_object *report)
{
	struct json_object *left_out = json_object_new_object();
	struct json_object_iterator it = json_object_iter_begin(report);
	struct json_object_iterator end = json_object_iter_end(report);
	for (; !json_object_iter_equal(&it, &end); json_object_iter_next(&it)) {
		const char *name = json_object_iter_peek_name(&it);
		size_t before = json_len(json_object_iter_peek_value(&it));
		size_t after = json_len(json_get(bounded, name));
		if (before > after)
			json_set_i64(left_out, name, (int64_t)(before - after));
	}
	if (json_object_object_length(left_out) > 0)
		json_set(bounded, "left_out", left_out);
	else
		json_object_put(left_out);
}

/* One try; its own members are added before it is measured. */
static struct json_object *bound_try(struct json_object *report, const struct caps *caps)
{
	struct json_object *bounded = bound_object(report, caps);
	json_set_bool(bounded, "truncated", true);
	json_set_str(bounded, "whole", caps->where);
	add_left_out(bounded, report);
	return bounded;
}

/* When nothing else fits. Half of the budget for the summary leaves room for its escapes. */
static struct json_object *bound_least(struct json_object *report, size_t budget, const char *where)
{
	struct caps caps = {.string = budget / 2, .list = 0, .where = where};
	struct json_object *bounded = json_object_new_object();
	json_set_str(bounded, "status", json_str(report, "status", NULL));
	if (json_has(report, "summary"))
		json_set(bounded, "summary", bound_value(json_get(report, "summary"), &caps));
	json_set_bool(bounded, "truncated", true);
	json_set_str(bounded, "whole", where);
	return bounded;
}

/* At most about 20 tries, each linear in the report: a report is at most 1 MiB and comes once. */
struct json_object *report_bound(struct json_object *report, size_t max_tokens, const char *where)
{
	size_t budget = MAX(max_tokens * BYTES_PER_TOKEN, (size_t)BUDGET_LEAST);
	struct caps caps = {.string = SIZE_MAX, .list = SIZE_MAX, .where = where};
	if (text_size(report) <= budget)
		return bound_value(report, &caps);
	caps.string = budget / 2;
	caps.list = LIST_START;
	while (caps.string >= STRING_LEAST || caps.list > LIST_LEAST) {
		struct json_object *bounded = bound_try(report, &caps);
		if (text_size(bounded) <= budget)
			return bounded;
		json_object_put(bounded);
		caps.string = MAX(caps.string / 2, (size_t)STRING_LEAST / 2);
		caps.list = MAX(caps.list / 2, (size_t)LIST_LEAST);
	}
	return bound_least(report, budget, where);
}
