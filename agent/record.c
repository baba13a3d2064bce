/*
 * record.c - counts calls and keeps the last commands.
 *
 * Needs no model and no disk, so that a report is there even when the window is full, the network
 * is gone or the budget is spent.
 */
#include "agent/record.h"

#include <inttypes.h>

#include "base/memory.h"

void record_release(struct record *record)
{
	for (size_t i = 0; i < RECORD_COMMANDS; i++)
		free(record->commands[i].summary);
	*record = (struct record){.tool_calls = 0};
}

void record_call(struct record *record, const char *summary, bool is_error, int exit_code)
{
	struct record_command *c;

	record->tool_calls++;
	record->failed_calls += is_error || exit_code > 0;
	if (exit_code < 0)
		return;
	c = &record->commands[record->n_commands++ % RECORD_COMMANDS];
	free(c->summary);
	c->summary = mem_strdup(summary ? summary : "");
	c->exit_code = exit_code;
}

static const struct record_command *command_at(const struct record *record, size_t i)
{
	size_t kept = MIN(record->n_commands, (size_t)RECORD_COMMANDS);

	if (i >= kept)
		return NULL;
	return &record->commands[(record->n_commands - kept + i) % RECORD_COMMANDS];
}

/* Plain facts in one paragraph: this is read where nothing else came back. */
static void add_facts(struct buf *out, const struct record *record, const char *why, int64_t rounds)
{
	const struct record_command *c;

	buf_addf(out,
		 "This report was made by rule: %s. Seen: %" PRId64 " round%s, %" PRId64
		 " tool call%s, %" PRId64 " of them failed.",
		 why, rounds, rounds == 1 ? "" : "s", record->tool_calls,
		 record->tool_calls == 1 ? "" : "s", record->failed_calls);
	for (size_t i = 0; (c = command_at(record, i)); i++)
		buf_addf(out, "%s%s (exit code %d)", i ? "; " : " Last commands: ", c->summary,
			 c->exit_code);
}

struct json_object *record_report(const struct record *record, const char *why, const char *text,
				  int64_t rounds, const char *const *touched, size_t n_touched)
{
	struct json_object *report = json_object_new_object();
	struct json_object *files = json_object_new_array();
	AUTO_BUF struct buf summary = BUF_INIT;

	if (text)
		buf_addf(&summary, "%s\n\n", text);
	add_facts(&summary, record, why, rounds);
	for (size_t i = 0; i < n_touched; i++)
		json_object_array_add(files, json_object_new_string(touched[i]));
	json_set_str(report, "status", "partial");
	json_set_strn(report, "summary", summary.data, summary.len);
	json_set(report, "findings", json_object_new_array());
	json_set(report, "changed_files", files);
	json_set(report, "commits", json_object_new_array());
	json_set(report, "tests", json_object_new_array());
	json_set(report, "questions", json_object_new_array());
	json_set_bool(report, "by_rule", true);
	return report;
}

struct json_object *record_exit_codes(const struct record *record)
{
	struct json_object *list = json_object_new_array();
	const struct record_command *c;

	for (size_t i = 0; (c = command_at(record, i)); i++)
		json_object_array_add(list, json_object_new_int(c->exit_code));
	return list;
}
