/*
 * notes.c - the tool notes: the model's hand on its working memory and its plan (H18).
 *
 * The memory is the agent's (agent/memory.h); this file turns a call into one change of it and says how large
 * it is now. What changed is shown to the model by the agent, behind the results of the round, so the
 * result itself stays a line.
 */
#include <inttypes.h>

#include "agent/memory.h"
#include "agent/tools/context.h"
#include "base/memory.h"

const char notes_description[] = "Keeps your working memory and your plan. Older parts of the "
				 "conversation give way to summaries "
				 "when the window fills; what stands here is shown to you again. "
				 "Memory: `set`, `add` and `remove` "
				 "take a field and short lines (remove: a line, or a part of it "
				 "that is unique): what you work on "
				 "(task), decisions with reasons, constraints as you understand "
				 "them, approaches you rejected and "
				 "why, files you modified, pending actions, preferences of the "
				 "user, known errors, and lessons: "
				 "what a later run in this repository should know. Keep it short, "
				 "and remove what is over. Plan: "
				 "`plan_write` takes all of it as Markdown with one checkbox an "
				 "item (- [ ] step), `plan_add` adds "
				 "items (lines), `plan_tick` marks items by number as done (or "
				 "open again: done false). `show` gives "
				 "both.";

const char notes_schema[] =
	"{\"type\":\"object\",\"properties\":{"
	"\"operation\":{\"type\":\"string\",\"enum\":[\"set\",\"add\",\"remove\",\"show\","
	"\"plan_write\",\"plan_add\",\"plan_tick\"]},"
	"\"field\":{\"type\":\"string\",\"enum\":[\"task\",\"decisions\",\"constraints\","
	"\"rejected\",\"files\",\"pending\",\"preferences\",\"errors\",\"lessons\"],"
	"\"description\":\"for set, add and remove\"},"
	"\"lines\":{\"type\":\"array\",\"items\":{\"type\":\"string\"},\"description\":\"for set "
	"(an "
	"empty list clears the field), add, remove and plan_add\"},"
	"\"plan\":{\"type\":\"string\",\"description\":\"for plan_write: Markdown\"},"
	"\"numbers\":{\"type\":\"array\",\"items\":{\"type\":\"integer\",\"minimum\":1},"
	"\"description\":\"for plan_tick: items, from 1\"},"
	"\"done\":{\"type\":\"boolean\",\"description\":\"for plan_tick; true by default\"}},"
	"\"required\":[\"operation\"],\"additionalProperties\":false}";

/* ---- what the result says ---- */

static void say_memory(const struct working_memory *m, struct buf *out)
{
	int64_t tokens = memory_tokens(m);

	buf_addf(out, "Working memory: %zu lines, %" PRId64 " of %" PRId64 " tokens.",
		 memory_lines_count(m), tokens, m->settings.soft);
	if (tokens > m->settings.soft)
		buf_addf(out,
			 " That is more than it should take: condense it now (fewer and shorter "
			 "lines; remove what is done). Above %" PRId64 " a change is refused.",
			 m->settings.hard);
}

static void say_plan(const struct working_memory *m, struct buf *out)
{
	int64_t tokens = memory_plan_tokens(m);

	buf_addf(out, "Plan: %zu done, %zu open.", m->plan.done, m->plan.items - m->plan.done);
	if (tokens > m->settings.soft)
		buf_addf(out,
			 " It takes %" PRId64 " tokens: shorten it when its first part is done "
			 "(above %" PRId64 " it is refused).",
			 tokens, m->settings.hard);
}

static int show(const struct working_memory *m, struct tool_result *ret)
{
	memory_show(m, &ret->text);
	memory_show_plan(m, &ret->text);
	if (!ret->text.len)
		buf_adds(&ret->text, "Nothing is noted, and there is no plan.");
	result_summary(ret, "notes show");
	return 0;
}

/* ---- the memory ---- */

/* The strings stay in the input. */
static struct memory_line *lines_of(struct json_object *input, size_t *ret_n)
{
	struct json_object *list = json_arr(input, "lines");
	size_t n = json_len(list);
	struct memory_line *lines = mem_array(NULL, n + 1, sizeof(*lines));

	for (size_t i = 0; i < n; i++) {
		struct json_object *item = json_at(list, i);

		lines[i].text = json_object_get_string(item);
		lines[i].n = (size_t)json_object_get_string_len(item);
	}
	*ret_n = n;
	return lines;
}

static int change_memory(struct working_memory *m, const char *operation, struct json_object *input,
			 struct tool_result *ret)
{
	static const struct {
		const char *name;
		int (*fn)(struct working_memory *m, enum memory_field field,
			  const struct memory_line *lines, size_t n, struct err *err);
	} changes[] = {{"set", memory_set}, {"add", memory_add}, {"remove", memory_remove}};
	const char *name = json_str(input, "field", "");
	enum memory_field field;
	struct err e = ERR_INIT;
	size_t n = 0;
	AUTO_FREE struct memory_line *lines = lines_of(input, &n);

	if (memory_field_find(name, &field) < 0)
		return result_failf(ret, "`%s` needs a field", operation);
	if (!json_arr(input, "lines") || (!n && strcmp(operation, "set") != 0))
		return result_failf(ret, "`%s` needs lines", operation);
	for (size_t i = 0; i < ARRAY_SIZE(changes); i++)
		if (!strcmp(changes[i].name, operation) &&
		    changes[i].fn(m, field, lines, n, &e) < 0)
			return result_fail(ret, &e);
	buf_addf(&ret->text, "%s: %zu lines. ", name, m->fields[field].n);
	say_memory(m, &ret->text);
	result_summary(ret, "notes %s %s (%zu)", operation, name, n);
	return 0;
}

/* ---- the plan ---- */

static int write_plan(struct working_memory *m, struct json_object *input, struct plan *plan,
		      struct tool_result *ret, struct err *err)
{
	const char *text = json_str(input, "plan", NULL);
	size_t n = json_str_len(input, "plan"), kept;

	if (!text)
		return err_set(err, ERR_INVALID, "`plan_write` needs the plan");
	if (plan_parse(plan, text, n, err) < 0)
		return -1;
	kept = plan_keep_done(plan, &m->plan, text, n);
	if (kept)
		buf_addf(&ret->text, "%zu items were done before and stay so. ", kept);
	return 0;
}

static int add_to_plan(struct working_memory *m, struct json_object *input, struct plan *plan,
		       struct err *err)
{
	size_t n = 0;
	AUTO_FREE struct memory_line *lines = lines_of(input, &n);

	if (!n)
		return err_set(err, ERR_INVALID, "`plan_add` needs lines");
	plan_copy(&m->plan, plan);
	for (size_t i = 0; i < n; i++)
		if (plan_add(plan, lines[i].text, lines[i].n, err) < 0)
			return -1;
	return 0;
}

static int tick_plan(struct working_memory *m, struct json_object *input, struct plan *plan,
		     struct err *err)
{
	struct json_object *list = json_arr(input, "numbers");
	size_t n = json_len(list);
	AUTO_FREE size_t *numbers = mem_array(NULL, n + 1, sizeof(*numbers));

	if (!n)
		return err_set(err, ERR_INVALID, "`plan_tick` needs numbers");
	for (size_t i = 0; i < n; i++)
		numbers[i] = (size_t)json_object_get_int64(json_at(list, i));
	plan_copy(&m->plan, plan);
	return plan_tick(plan, numbers, n, json_flag(input, "done", true), err);
}

static int change_plan(struct working_memory *m, const char *operation, struct json_object *input,
		       struct tool_result *ret)
{
	struct plan plan = {.n = 0};
	struct err e = ERR_INIT;
	int rc;

	if (!strcmp(operation, "plan_write"))
		rc = write_plan(m, input, &plan, ret, &e);
	else if (!strcmp(operation, "plan_add"))
		rc = add_to_plan(m, input, &plan, &e);
	else
		rc = tick_plan(m, input, &plan, &e);
	if (rc == 0)
		rc = memory_set_plan(m, &plan, &e);
	plan_release(&plan);
	if (rc < 0)
		return result_fail(ret, &e);
	say_plan(m, &ret->text);
	result_summary(ret, "notes %s (%zu of %zu done)", operation, m->plan.done, m->plan.items);
	return 0;
}

int notes_run(struct tool_context *ctx, const char *call_id, struct json_object *input,
	      struct tool_result *ret, struct err *err)
{
	struct working_memory *m = ctx->settings.memory;
	const char *operation = json_str(input, "operation", "");

	ret->exit_code = -1;
	if (!m)
		return result_failf(ret, "there is no working memory in this conversation");
	if (!strcmp(operation, "show"))
		return show(m, ret);
	if (!strncmp(operation, "plan_", 5))
		return change_plan(m, operation, input, ret);
	return change_memory(m, operation, input, ret);
}
