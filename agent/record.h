/*
 * record.h - what this agent saw itself do: facts for a report by rule, not the model's memory (R3,
 * X5).
 */
#ifndef BATON_AGENT_RECORD_H
#define BATON_AGENT_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"

#define RECORD_COMMANDS 5

struct record_command {
	char *summary;
	int exit_code;
};

struct record {
	int64_t tool_calls, failed_calls;
	struct record_command commands[RECORD_COMMANDS]; /* the newest, as a ring */
	size_t n_commands;				 /* ever */
};

void record_release(struct record *record);
/* A call that ran. exit_code -1: no command. */
void record_call(struct record *record, const char *summary, bool is_error, int exit_code);

/* A report of facts alone: status partial, "by_rule": true. `text` is what the model said last (may
 * be NULL), touched the files that it changed. Caller puts it. */
struct json_object *record_report(const struct record *record, const char *why, const char *text,
				  int64_t rounds, const char *const *touched, size_t n_touched);
/* The exit codes of the newest commands, oldest first. Caller puts it. */
struct json_object *record_exit_codes(const struct record *record);

#endif
