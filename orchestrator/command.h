/*
 * command.h - the table of commands; one file cmd_<name>.c each.
 */
#ifndef BATON_ORCHESTRATOR_COMMAND_H
#define BATON_ORCHESTRATOR_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include "orchestrator/settings.h"

enum exit_status {
	EXIT_OK = 0,
	EXIT_FAILED = 1,      /* the work failed, or stdout could not be written */
	EXIT_USAGE = 2,	      /* wrong usage or configuration */
	EXIT_UNREACHABLE = 3, /* no model reachable */
	EXIT_BUDGET = 4,
	EXIT_FINDINGS = 5, /* review found what --fail-on names */
	EXIT_INTERRUPTED = 130,
};

struct command {
	const char *name;
	const char *args; /* "TASK" */
	const char *summary;
	const char *more; /* for --help: what arguments mean; NULL: goes without saying */
	enum option_scope scope;
	unsigned max_args;
	bool project; /* reads the project's configuration */
	bool hidden;
	/* settings is NULL for commands with raw = true (they get argc, argv themselves). */
	int (*run)(struct settings *settings);
	int (*run_raw)(int argc, char **argv);
};
const struct command *command_table(size_t *ret_count);
const struct command *command_find(const char *name);

/* The one mapping of failures to exit statuses. */
enum exit_status command_status(const struct err *err);
/* Prints "baton: message" to stderr (printable) and returns the exit status that fits err->code. */
int command_fail(const struct err *err);

/* All that goes to stdout in pieces of any size: remembers why a write failed. */
void command_write(const void *bytes, size_t n);
/* To be called last: what stdout could not take is told, and work that went well has failed. A reader
 * that went away is neither (as with git). Returns the exit status. */
int command_end(int status);
/* The first character of a line that the user types, in lower case; '\n': an empty line, 0: end of input. */
int command_answer(void);
/* Text of models, names of files and paths on stdout: no control characters reach a terminal (I12).
 */
void command_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void command_print_json(struct json_object *doc);

int cmd_run(struct settings *s);
int cmd_review(struct settings *s);
int cmd_resume(struct settings *s);
/* `baton resume` of a run of that command: both are the run's from here on (run_take_up). */
struct replay;
int cmd_run_go_on(struct settings *s, const char *id, struct replay *replay, int lock_fd);
int cmd_review_go_on(struct settings *s, const char *id, struct replay *replay, int lock_fd);
int cmd_reset(struct settings *s);
int cmd_say(struct settings *s);
int cmd_ls(struct settings *s);
int cmd_show(struct settings *s);
int cmd_context(struct settings *s);
int cmd_compact(struct settings *s);
int cmd_handoff(struct settings *s);
int cmd_diff(struct settings *s);
int cmd_stop(struct settings *s);
int cmd_pause(struct settings *s);
int cmd_watch(struct settings *s);
int cmd_clean(struct settings *s);
int cmd_adopt(struct settings *s);
int cmd_doctor(struct settings *s);
int cmd_config(struct settings *s);
int cmd_trust(struct settings *s);
int cmd_rehearse(struct settings *s);
int cmd_agent(int argc, char **argv);
int cmd_view(int argc, char **argv);

#endif
