/*
 * output.c - what a command printed: in full on disk, in short for the model.
 *
 * Which lines look like errors is a rule, not a judgement: words that compilers, test runners and
 * shells print. A wrong pick costs a line; the tail and the file are always there.
 */
#include "agent/tools/output.h"

#include "agent/tools/output_table.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"

enum {
	OUTPUT_TRIES = 100000,
	OUTPUT_SPACE = 256 << 10, /* below it a disk counts as full */
	ERROR_LINES = 20,
	ERROR_LINE_BYTES = 300,
	LONG_SUCCESS_LINES = 100,
	KEPT_LINES = 5,
	KEPT_LINE_BYTES = 500,
	WORD_SCAN = 400, /* how far into a line words are looked for */
};

/* On a full disk (trap 144) commands must still run: how else could space be made? Their output
 * then stays in memory, within the same bound, and is gone after the call. */
static int open_in_memory(const struct tool_context *ctx, char **ret_name, struct err *err)
{
	int fd = memfd_create("output", MFD_CLOEXEC);
	if (fd < 0)
		return err_sys(err, "no space in '%s' and none in memory",
			       ctx->settings.results_dir);
	/* The commands share one description with O_APPEND, as with a file. */
	if (fcntl(fd, F_SETFL, O_APPEND) < 0)
		err_sys(err, "cannot prepare the output");
	*ret_name = NULL;
	return fd;
}

static bool has_space(int dir)
{
	struct statvfs fs;
	return fstatvfs(dir, &fs) < 0 || fs.f_bavail * fs.f_frsize >= OUTPUT_SPACE;
}

/* 0 with *ret_fd -1: the disk is full. */
static int make_file(struct tool_context *ctx, char **ret_name, int *ret_fd, struct err *err)
{
	int dir = ctx->roots.root[ROOT_RESULTS].fd;
	*ret_fd = -1;
	if (!has_space(dir))
		return 0;
	for (int i = 0; i < OUTPUT_TRIES; i++) {
		/* A resumed generation finds the files of its first life: those names are taken. */
		AUTO_FREE char *name = mem_printf("shell-%u.txt", ++ctx->last_output);
		int fd =
			openat(dir, name,
			       O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (fd >= 0) {
			*ret_name = mem_printf("results:%s", name);
			*ret_fd = fd;
			return 0;
		}
		if (errno == ENOSPC || errno == EDQUOT)
			return 0;
		if (errno != EEXIST)
			return err_sys(err, "cannot store the output in '%s'",
				       ctx->settings.results_dir);
	}
	return err_set(err, ERR_EXISTS, "too many output files in '%s'", ctx->settings.results_dir);
}

int output_open(struct tool_context *ctx, char **ret_name, struct err *err)
{
	int fd = ctx->next_output_fd;
	if (fd >= 0 && has_space(ctx->roots.root[ROOT_RESULTS].fd)) {
		ctx->next_output_fd = -1;
		*ret_name = take_ptr(ctx->next_output);
		return fd;
	}
	if (fd >= 0)
		return open_in_memory(ctx, ret_name, err); /* the disk filled up meanwhile */
	if (make_file(ctx, ret_name, &fd, err) < 0)
		return -1;
	return fd >= 0 ? fd : open_in_memory(ctx, ret_name, err);
}

/* Only for agents that run commands: a reader's results stay empty. */
void output_prepare(struct tool_context *ctx)
{
	if (ctx->next_output_fd < 0 && ctx->last_output > 0)
		make_file(ctx, &ctx->next_output, &ctx->next_output_fd, NULL);
}

void output_drop_prepared(struct tool_context *ctx)
{
	if (ctx->next_output_fd < 0)
		return;
	unlinkat(ctx->roots.root[ROOT_RESULTS].fd, strchr(ctx->next_output, ':') + 1, 0);
	close(ctx->next_output_fd);
	ctx->next_output_fd = -1;
	free(ctx->next_output);
}

off_t output_size(int fd)
{
	struct stat st;
	return fstat(fd, &st) < 0 ? 0 : st.st_size;
}

void output_read(int fd, off_t from, off_t to, struct buf *out)
{
	while (from < to) {
		size_t want = (size_t)MIN(to - from, (off_t)1 << 20);
		if (buf_reserve(out, want) < 0)
			return;
		ssize_t n = pread(fd, out->data + out->len, want, from);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		out->len += (size_t)n;
		out->data[out->len] = '\0';
		from += n;
	}
}

/* --- shortening --- */

struct lines {
	const char *s;
	size_t n, at;
};

static bool take_line(struct lines *l, const char **ret, size_t *ret_n)
{
	if (l->at >= l->n)
		return false;
	const char *start = l->s + l->at;
	const char *lf = memchr(start, '\n', l->n - l->at);
	*ret_n = lf ? (size_t)(lf - start) : l->n - l->at;
	*ret = start;
	l->at += *ret_n + 1;
	return true;
}

/* The shell tool's first line says how a command ended, if it did not succeed. A result without it is a success, or of
 * a command that was never run. */
int output_exit_code(const char *text, bool is_error)
{
	static const char mark[] = "exit code ";

	if (text_starts(text, mark))
		return (int)strtol(text + strlen(mark), NULL, 10);
	return is_error ? -1 : 0;
}

/* Only the start of a line is looked at: a minified file in the output is one line of a megabyte.
 */
bool output_is_error_line(const char *line, size_t n)
{
	static const char *const words[] = {
		"error",     "fail",	  "fatal",     "exception", "traceback", "panic",
		"undefined", "not found", "no such",   "assert",    "cannot",	 "denied",
		"segfault",  "sigsegv",	  "expected:", "refused",   "aborted",
	};
	n = MIN(n, WORD_SCAN);
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (text_find_nocase(line, n, words[i]))
			return true;
	return false;
}

static void add_cut_line(struct buf *out, const char *line, size_t n, size_t most)
{
	size_t keep = text_floor(line, n, MIN(n, most));
	buf_add(out, line, keep);
	if (keep < n)
		buf_addf(out, " [%zu more bytes]", n - keep);
	buf_addc(out, '\n');
}

/* Error-looking lines of s, which is what stands before the tail. */
static void add_errors(struct buf *out, const char *s, size_t n)
{
	struct lines l = {s, n, 0};
	const char *line;
	size_t len, found = 0;
	while (take_line(&l, &line, &len)) {
		if (!output_is_error_line(line, len))
			continue;
		if (found++ == 0)
			buf_adds(out, "[lines that look like errors:]\n");
		if (found <= ERROR_LINES)
			add_cut_line(out, line, len, ERROR_LINE_BYTES);
	}
	if (found > ERROR_LINES)
		buf_addf(out, "[%zu more such lines]\n", found - ERROR_LINES);
}

static void add_where(struct buf *out, const char *where)
{
	if (where)
		buf_addf(out, "; all of it is in %s", where);
	buf_adds(out, "]\n");
}

static void shorten_failure(struct buf *out, const char *s, size_t n, int exit_code, size_t budget,
			    const char *where)
{
	/* Errors take at most a third or so; the rest is the tail, from the start of a line. */
	size_t errors_most = ERROR_LINES * (ERROR_LINE_BYTES + 24) + 100;
	size_t tail = budget > errors_most * 2 ? budget - errors_most : budget / 2;
	size_t from = n > tail ? text_ceil(s, n, n - tail) : 0;
	const char *lf = memchr(s + from, '\n', n - from);
	if (from && lf && (size_t)(lf - s) + 1 < n && (size_t)(lf - s) - from < tail / 2)
		from = (size_t)(lf - s) + 1;
	AUTO_BUF struct buf errors = BUF_INIT;
	add_errors(&errors, s, from);
	size_t keep = text_floor(buf_str(&errors), errors.len, MIN(errors.len, budget - tail));
	buf_addf(out, "exit code %d\n", exit_code);
	buf_add(out, buf_str(&errors), keep);
	buf_addf(out, "[the last %zu of %zu bytes, %zu lines in all", n - from, n,
		 text_count_lines(s, n));
	add_where(out, where);
	buf_add(out, s + from, n - from);
}

/* What went well is not read; that it did, how much there was and how it ended is. */
static void shorten_success(struct buf *out, const char *s, size_t n, size_t total, size_t budget,
			    const char *where)
{
	struct lines l = {s, n, 0};
	const char *line;
	size_t len, most = MAX(MIN(budget / (2 * KEPT_LINES + 2), KEPT_LINE_BYTES), 1);
	for (size_t i = 1; take_line(&l, &line, &len); i++) {
		if (i == KEPT_LINES + 1) {
			buf_addf(out, "[%zu of %zu lines left out", total - 2 * KEPT_LINES, total);
			add_where(out, where);
		}
		if (i <= KEPT_LINES || i > total - KEPT_LINES)
			add_cut_line(out, line, len, most);
	}
}

void output_shorten(struct buf *out, const char *s, size_t n, int exit_code, size_t budget,
		    const char *where)
{
	size_t lines = n > budget ? text_count_lines(s, n) : 0;
	if (n <= budget)
		buf_add(out, s, n);
	else if (exit_code > 0)
		shorten_failure(out, s, n, exit_code, budget, where);
	else if (output_shorten_table(out, s, n, budget, where))
		return;
	else if (lines > LONG_SUCCESS_LINES)
		shorten_success(out, s, n, lines, budget, where);
	else
		text_clip(out, s, n, budget, where);
}

void shell_shorten(const struct tool_result *full, size_t budget, const char *where,
		   struct buf *out)
{
	output_shorten(out, buf_str(&full->text), full->text.len, full->exit_code, budget, where);
}
