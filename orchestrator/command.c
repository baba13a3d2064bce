/*
 * command.c - the table of commands. Adding one: a file cmd_<name>.c and a row here.
 *
 * Help, completion, the man page's check and the parser read these rows and nothing else, in this
 * order: what a newcomer needs first stands first. `scope` says which rows of option_table.h a
 * command takes, so an option is never accepted where it does nothing. `project` makes main find
 * the repository and read its configuration before the command runs; the others find what they need
 * themselves, since they must work (stop, clean, doctor) where that configuration is broken.
 * `run_raw` gets its arguments unparsed: `agent` and `view` are entries for our own children, whose
 * words are not options.
 */
#include "orchestrator/command.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/memory.h"
#include "base/text.h"

#define ARGS_ANY 10000

static const struct command commands[] = {
	{.name = "run",
	 .args = "TASK",
	 .summary = "one agent works on TASK in a worktree of its own",
	 .more = "TASK is one argument; '-' reads it from standard input, --file from a file.",
	 .scope = SCOPE_RUN,
	 .max_args = 1,
	 .project = true,
	 .run = cmd_run},
	{.name = "review",
	 .args = "[RANGE]",
	 .summary = "parallel code review of a range or of changes",
	 .more = "RANGE is A..B, A...B or one revision (that commit); without it HEAD's commit.",
	 .scope = SCOPE_REVIEW,
	 .max_args = 1,
	 .project = true,
	 .run = cmd_review},
	{.name = "resume",
	 .args = "[RUN[/AGENT]]",
	 .summary = "go on with a run that was cut off, stopped, paused or out of budget",
	 .more = "Without RUN it lists those that can go on. What the run was started with holds, "
		 "but for the options given here. A run that works is told: it goes on from a "
		 "pause, and --max-cost and --max-tokens hold from now on.",
	 .scope = SCOPE_RESUME,
	 .max_args = 1,
	 .project = true,
	 .run = cmd_resume},
	{.name = "ls",
	 .args = "",
	 .summary = "runs of this repository",
	 .scope = SCOPE_OTHER,
	 .run = cmd_ls},
	{.name = "show",
	 .args = "[RUN[/AGENT]]",
	 .summary = "report, agents, tokens and money of a run",
	 .scope = SCOPE_OTHER,
	 .max_args = 1,
	 .run = cmd_show},
	{.name = "context",
	 .args = "[RUN[/AGENT]]",
	 .summary = "how an agent's context window is filled",
	 .scope = SCOPE_OTHER,
	 .max_args = 1,
	 .run = cmd_context},
	{.name = "compact",
	 .args = "RUN/AGENT [FOCUS]",
	 .summary = "shorten a working agent's context now, or undo that",
	 .more = "FOCUS says what the summary must keep in full. The agent follows before its next "
		 "request.",
	 .scope = SCOPE_COMPACT,
	 .max_args = 2,
	 .run = cmd_compact},
	{.name = "reset",
	 .args = "RUN/AGENT",
	 .summary = "let a working agent go on in an empty window, from a handoff",
	 .more = "The agent follows before its next request.",
	 .scope = SCOPE_RESET,
	 .max_args = 1,
	 .run = cmd_reset},
	{.name = "say",
	 .args = "RUN/AGENT TEXT",
	 .summary = "tell a working agent something",
	 .more = "The agent reads it before its next request, as words of yours like the task's.",
	 .scope = SCOPE_OTHER,
	 .max_args = 2,
	 .run = cmd_say},
	{.name = "handoff",
	 .args = "check|show|edit|import FILE|RUN/AGENT[/GENERATION]",
	 .summary = "look at, check and change what one agent leaves for the next",
	 .more = "check says what of it is present, concrete and true: exit status 0 good, 1 "
		 "refused, 2 usage.\n"
		 "edit opens it in EDITOR; import makes one from another tool's session file.",
	 .scope = SCOPE_HANDOFF,
	 .max_args = 2,
	 .run = cmd_handoff},
	{.name = "diff",
	 .args = "[RUN[/AGENT]]",
	 .summary = "what an agent changed",
	 .scope = SCOPE_OTHER,
	 .max_args = 1,
	 .run = cmd_diff},
	{.name = "watch",
	 .args = "[RUN]",
	 .summary = "see a run as it goes on, from any terminal",
	 .more = "It ends with the run; Ctrl-C ends the watching alone.",
	 .scope = SCOPE_OTHER,
	 .max_args = 1,
	 .run = cmd_watch},
	{.name = "pause",
	 .args = "[RUN[/AGENT]]",
	 .summary = "hold a run or an agent, and those that it started",
	 .more = "What has left goes on to its end, and no further model call leaves until 'baton "
		 "resume RUN[/AGENT]'.",
	 .scope = SCOPE_OTHER,
	 .max_args = 1,
	 .run = cmd_pause},
	{.name = "stop",
	 .args = "RUN[/AGENT]",
	 .summary = "end a run, or one agent, in good order, its work kept",
	 .scope = SCOPE_OTHER,
	 .max_args = 1,
	 .run = cmd_stop},
	{.name = "adopt",
	 .args = "RUN[/AGENT] [DIR]",
	 .summary = "turn a kept worktree into an ordinary one of yours",
	 .scope = SCOPE_OTHER,
	 .max_args = 2,
	 .run = cmd_adopt},
	{.name = "clean",
	 .args = "[RUN]...",
	 .summary = "remove worktrees and folders of ended runs",
	 .scope = SCOPE_CLEAN,
	 .max_args = ARGS_ANY,
	 .run = cmd_clean},
	{.name = "rehearse",
	 .args = "FILE",
	 .summary = "serve a scripted model on a loopback port",
	 .scope = SCOPE_REHEARSE,
	 .max_args = 1,
	 .run = cmd_rehearse},
	{.name = "config",
	 .args = "",
	 .summary = "the effective settings, each with its origin",
	 .scope = SCOPE_WORK,
	 .project = true,
	 .run = cmd_config},
	{.name = "trust",
	 .args = "[FILE]",
	 .summary = "let a project file's commands run, as it stands now",
	 .scope = SCOPE_OTHER,
	 .max_args = 1,
	 .run = cmd_trust},
	{.name = "doctor",
	 .args = "",
	 .summary = "what this machine gives: box, git, helpers, keys",
	 .scope = SCOPE_OTHER,
	 .run = cmd_doctor},
	{.name = "agent",
	 .args = "",
	 .summary = "the child's entry",
	 .hidden = true,
	 .run_raw = cmd_agent},
	{.name = "view",
	 .args = "",
	 .summary = "the view's entry",
	 .hidden = true,
	 .run_raw = cmd_view},
};

const struct command *command_table(size_t *ret_count)
{
	*ret_count = ARRAY_SIZE(commands);
	return commands;
}

const struct command *command_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	}
	return NULL;
}

/* What the user can put right by another command line or configuration is 2, so that scripts can tell
 * it from work that failed. */
enum exit_status command_status(const struct err *err)
{
	switch (err->code) {
	case ERR_USAGE:
	case ERR_NOT_FOUND:
	case ERR_EXISTS:
	case ERR_UNSUPPORTED: return EXIT_USAGE;
	case ERR_CANCELLED: return EXIT_INTERRUPTED;
	default: return EXIT_FAILED;
	}
}

/* The one place where an error of a command becomes text. Made printable, as it may hold a file's name
 * or a line of a configuration (I12). */
int command_fail(const struct err *err)
{
	struct buf out = BUF_INIT;

	buf_adds(&out, "baton: ");
	text_printable(&out, err->message, strlen(err->message), false);
	buf_addc(&out, '\n');
	fputs(buf_str(&out), stderr);
	buf_release(&out);
	return command_status(err);
}

/* The C library forgets the reason: after a flush that failed its buffer is empty, and the last flush
 * succeeds. */
static int write_errno;

void command_write(const void *bytes, size_t n)
{
	if (fwrite(bytes, 1, n, stdout) < n && !write_errno)
		write_errno = errno;
}

int command_end(int status)
{
	struct err err = ERR_INIT;
	bool failed = ferror(stdout) != 0;

	if (fflush(stdout) != 0) {
		failed = true;
		if (!write_errno)
			write_errno = errno;
	}
	if (!failed || write_errno == EPIPE)
		return status;
	errno = write_errno ? write_errno : EIO;
	err_sys(&err, "cannot write to standard output");
	command_fail(&err);
	return status == EXIT_OK || status == EXIT_FINDINGS ? EXIT_FAILED : status;
}

int command_answer(void)
{
	AUTO_FREE char *line = NULL;
	size_t size = 0;

	fflush(stdout);
	return getline(&line, &size, stdin) > 0 ? tolower((unsigned char)*line) : 0;
}

void command_say(const char *fmt, ...)
{
	AUTO_BUF struct buf raw = BUF_INIT;
	AUTO_BUF struct buf clean = BUF_INIT;
	va_list ap;

	va_start(ap, fmt);
	buf_addv(&raw, fmt, ap);
	va_end(ap);
	text_printable(&clean, buf_str(&raw), raw.len, false);
	command_write(buf_str(&clean), clean.len);
}

void command_print_json(struct json_object *doc)
{
	AUTO_BUF struct buf out = BUF_INIT;

	json_write_pretty(&out, doc);
	command_write(out.data, out.len);
}
