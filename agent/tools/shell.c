/*
 * shell.c - the shell tool: one command, to its end or in the background.
 *
 * The command is argv `/bin/bash -c SCRIPT`, in the box if there is one, in a session of its own
 * without a terminal. What the model gets is read from the output file after the end: everything if
 * it is small, else the short form of T5; a foreground call leaves no process behind. The life of
 * the processes is in job.c, box and environment in handoff/box_command.c, the check of `.git` afterwards in
 * boundary.c.
 */
#include "agent/tools/shell.h"

#include <inttypes.h>
#include <string.h>

#include "agent/tools/boundary.h"
#include "agent/tools/output.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"

#define COMMAND_SHOWN 80 /* bytes of a command in one line of progress */

enum {
	SHELL_COMMAND_MAX = 131000, /* the kernel's bound for one argument is 128 KiB */
	SHELL_TEXT_MAX = 1 << 20,   /* above it the short form is made here */
	SHELL_SHORT = 7500,	    /* as the agent would: a quarter of the tool's limit */
};

const char shell_description[] =
	"Runs a command with bash in the worktree and returns what it printed (stdout and stderr "
	"together) and its exit code. There is no terminal, stdin is empty, and each call is a new "
	"shell: `cd` and variables do not carry over. Long output is shortened; all of it is kept "
	"in a `results:` file that read and grep take (in commands: $BATON_RESULTS). A command "
	"ends when its first process ends; whatever it left running is then ended too. For "
	"servers, watchers and long jobs set background: the answer is a job id for the job tool. "
	"timeout_ms bounds the call; at the limit the command is ended. Temporary files go to "
	"$TMPDIR. Prefer read, grep and glob to cat, grep and find. Editors and pagers cannot be "
	"opened: use `git commit -m`.";

const char shell_schema[] =
	"{\"type\":\"object\",\"properties\":{"
	"\"command\":{\"type\":\"string\",\"minLength\":1,\"description\":\"bash script\"},"
	"\"timeout_ms\":{\"type\":\"integer\",\"minimum\":1,"
	"\"description\":\"time limit in milliseconds; two minutes unless set otherwise\"},"
	"\"background\":{\"type\":\"boolean\",\"description\":\"return at once with a job id\"}},"
	"\"required\":[\"command\"],\"additionalProperties\":false}";

static int check_command(struct tool_context *ctx, const char *command, size_t n, struct err *err)
{
	if (strlen(command) != n)
		return err_set(err, ERR_INVALID, "a command cannot hold a NUL character");
	if (n > SHELL_COMMAND_MAX)
		return err_set(err, ERR_TOO_LARGE,
			       "the command is longer than 131,000 bytes; write it to a file in "
			       "scratch: and run that");
	if (ctx->roots.root[ROOT_WORKTREE].fd < 0)
		return err_set(err, ERR_NOT_FOUND, "the worktree is not ready yet");
	return 0;
}

/* What this agent's commands may see, write and reach, by settings (docs/documents.md). */
static struct box_command command_box(const struct tool_settings *s)
{
	return (struct box_command){
		.program = s->box_program,
		.level = s->box_level,
		.network = s->network,
		.read_only = s->read_only,
		.worktree = s->worktree,
		.git_dir = s->git_dir,
		.scratch = s->scratch_dir,
		.cache = s->cache_dir,
		.results = s->results_dir,
		.read_paths = s->read_paths,
		.pass_env = s->pass_env,
	};
}

char **shell_environment(struct tool_context *ctx)
{
	struct box_command box = command_box(&ctx->settings);

	if (!ctx->shell_env)
		ctx->shell_env = box_command_env(&box);
	return ctx->shell_env;
}

/* The working folder is the worktree's descriptor, as for the file tools: both use one root. */
static int start_command(struct tool_context *ctx, const char *command, bool background,
			 struct job **ret, struct err *err)
{
	struct words argv = {0}, envp = {0};
	AUTO_FREE char *mark = mem_printf("BATON_JOB=%u", ctx->last_start + 1);
	struct box_command box = command_box(&ctx->settings);
	char **env = shell_environment(ctx);
	box_command_argv(&box, &argv);
	words_add(&argv, "/bin/bash");
	words_add(&argv, "-c");
	words_add(&argv, command);
	for (size_t i = 0; env[i]; i++)
		words_add(&envp, env[i]);
	words_add(&envp, mark);
	struct job_start start = {
		.argv = argv.items,
		.envp = envp.items,
		.command = command,
		.cwd_fd = ctx->roots.root[ROOT_WORKTREE].fd,
		.background = background,
	};
	int rc = job_start(ctx, &start, ret, err);
	words_release(&argv);
	words_release(&envp);
	return rc;
}

/* --- what the model sees --- */

/* n without a last character whose end is missing. */
static size_t whole_characters(const char *s, size_t n)
{
	for (size_t back = 1; back <= 3 && back <= n; back++) {
		unsigned char c = (unsigned char)s[n - back];
		if ((c & 0xc0) == 0x80)
			continue;
		size_t need = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;
		return need > back ? n - back : n;
	}
	return n;
}

off_t shell_add_output(struct tool_context *ctx, struct job *job, off_t from, struct buf *out)
{
	AUTO_BUF struct buf text = BUF_INIT;
	output_read(job->out_fd, from,
		    MIN(output_size(job->out_fd), ctx->settings.shell_output_max), &text);
	if (job->running)
		buf_truncate(&text, whole_characters(buf_str(&text), text.len));
	off_t next = from + (off_t)text.len;
	if (text.len <= SHELL_TEXT_MAX)
		buf_add(out, buf_str(&text), text.len);
	else
		output_shorten(out, buf_str(&text), text.len, job->exit_code, SHELL_SHORT,
			       job_where(job));
	if (out->len && out->data[out->len - 1] != '\n')
		buf_addc(out, '\n');
	return next;
}

void shell_add_left(const struct job *job, struct buf *out)
{
	if (job->n_left)
		buf_addf(out,
			 "[%zu process%s still ran when the command ended and %s ended: %s; use "
			 "background for what is to go on]\n",
			 job->n_left, job->n_left == 1 ? "" : "es",
			 job->n_left == 1 ? "was" : "were", buf_str(&job->left));
}

/* The exit code stands first, where shortening by head and tail keeps it, and only if it says
 * something. */
static void add_head(const struct job *job, struct buf *out)
{
	if (job->exit_code == 0 && !job->timed_out && !job->over_size)
		return;
	if (job->timed_out || job->over_size || job->killed)
		buf_addf(out, "exit code %d (ended by the tool)\n", job->exit_code);
	else if (job->signal)
		buf_addf(out, "exit code %d (signal %d, %s)\n", job->exit_code, job->signal,
			 strsignal(job->signal));
	else
		buf_addf(out, "exit code %d\n", job->exit_code);
}

static void add_end_notes(const struct tool_context *ctx, const struct job *job, int64_t timeout_ms,
			  struct buf *out)
{
	char limit[32];
	if (job->timed_out)
		buf_addf(out,
			 "[timed out after %s and was ended; ask for a longer timeout_ms (at most "
			 "%" PRId64 ") or use background]\n",
			 clock_human(timeout_ms, limit, sizeof(limit)),
			 ctx->settings.shell_timeout_max_ms);
	if (job->over_size)
		buf_addf(out,
			 "[ended because its output passed %" PRId64
			 " bytes; what came until then is in %s; redirect or filter it]\n",
			 ctx->settings.shell_output_max, job_where(job));
	if (job->running)
		buf_adds(out, "[its process cannot be ended: it is stuck in the kernel]\n");
	if (!job->output)
		buf_addf(out, "[the disk with '%s' is full: this output is stored nowhere]\n",
			 ctx->settings.results_dir);
	shell_add_left(job, out);
}

static void fill_result(struct tool_context *ctx, struct job *job, int64_t timeout_ms,
			struct tool_result *ret)
{
	char took[32];
	ret->exit_code = job->running ? 128 + 9 : job->exit_code;
	ret->is_error = ret->exit_code != 0 || job->timed_out;
	ret->full_path = mem_strdup(job->output);
	add_head(job, &ret->text);
	size_t before = ret->text.len;
	shell_add_output(ctx, job, 0, &ret->text);
	if (ret->text.len == before)
		buf_adds(&ret->text, "(no output)\n");
	add_end_notes(ctx, job, timeout_ms, &ret->text);
	clock_human(job->ended_ms - job->started_ms, took, sizeof(took));
	/* A long command is cut here and not at the line's end: how it ended is what counts. */
	size_t len = strlen(job->command);
	size_t shown = text_floor(job->command, len, MIN(len, (size_t)COMMAND_SHOWN));
	result_summary(ret, "shell: %.*s%s (exit %d, %s)", (int)shown, job->command,
		       shown < len ? "..." : "", ret->exit_code, took);
}

static void fill_background(const struct job *job, struct tool_result *ret)
{
	ret->full_path = NULL;
	buf_addf(&ret->text,
		 "started background job %s; its output goes to %s. Its end will be announced; use "
		 "the job tool to poll, wait for or kill it.",
		 job->id, job_where(job));
	result_summary(ret, "shell in background (%s): %s", job->id, job->command);
}

int shell_run(struct tool_context *ctx, const char *call_id, struct json_object *input,
	      struct tool_result *ret, struct err *err)
{
	struct err e = ERR_INIT;
	struct job *job;
	const char *command = json_str(input, "command", "");
	bool background = json_flag(input, "background", false);
	int64_t timeout = json_i64(input, "timeout_ms", ctx->settings.shell_timeout_ms);
	timeout = MAX(MIN(timeout, ctx->settings.shell_timeout_max_ms), 1);
	ret->exit_code = -1;
	if (check_command(ctx, command, json_str_len(input, "command"), &e) < 0 ||
	    start_command(ctx, command, background, &job, &e) < 0)
		return result_fail(ret, &e);
	ret->has_effects = true;
	if (background) {
		fill_background(job, ret);
		return 0;
	}
	/* Whatever ends the wait, the processes end before this returns, and the result tells what
	 * came. */
	int rc = job_wait(ctx, job, job->started_ms + timeout, &e);
	if (rc < 0 && e.code == ERR_TIMEOUT) {
		job->timed_out = true;
		job_stop(ctx, job);
		rc = 0;
	} else if (rc < 0) {
		job->killed = true;
		job_kill_now(ctx, job);
	}
	fill_result(ctx, job, timeout, ret);
	if (!job->running)
		job_drop(ctx, job);
	if (boundary_check(ctx, ret, err) < 0)
		return -1;
	if (rc < 0 && err)
		*err = e;
	return rc;
}
