/*
 * context.c - the life of a tool context, and the few helpers that every tool uses.
 *
 * One agent has one context. It owns the roots' descriptors and every process that a tool started;
 * freeing it ends them all (jobs die with the run).
 */
#include "agent/tools/context.h"

#include <stdarg.h>
#include <stdio.h>

#include "agent/tools/job.h"
#include "agent/tools/output.h"
#include "base/clock.h"
#include "base/env.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"

enum { CHECK_EVERY_MS = 25 };

#define DEFAULT_OUTPUT_MAX	 (INT64_C(64) << 20)
#define DEFAULT_SHELL_TIMEOUT_MS 120000
#define DEFAULT_TIMEOUT_MAX_MS	 600000

static void set_defaults(struct tool_settings *s)
{
	if (s->shell_output_max <= 0)
		s->shell_output_max = DEFAULT_OUTPUT_MAX;
	if (s->shell_timeout_ms <= 0)
		s->shell_timeout_ms = DEFAULT_SHELL_TIMEOUT_MS;
	if (s->shell_timeout_max_ms <= 0)
		s->shell_timeout_max_ms = DEFAULT_TIMEOUT_MAX_MS;
	s->shell_timeout_max_ms = MAX(s->shell_timeout_max_ms, s->shell_timeout_ms);
}

struct tool_context *tool_context_new(const struct tool_settings *settings, struct waiter *waiter,
				      struct err *err)
{
	struct tool_context *ctx = mem_alloc(sizeof(*ctx));
	ctx->settings = *settings;
	ctx->waiter = waiter;
	ctx->next_output_fd = -1;
	set_defaults(&ctx->settings);
	roots_init(&ctx->roots);
	if (roots_open(&ctx->roots, ROOT_RESULTS, settings->results_dir, false, err) < 0 ||
	    roots_open(&ctx->roots, ROOT_SCRATCH, settings->scratch_dir, true, err) < 0) {
		tool_context_free(ctx);
		return NULL;
	}
	if (settings->former_worktree)
		roots_map(&ctx->roots, ROOT_WORKTREE, settings->former_worktree);
	/* A worktree that is still being made is no error: tools say so until it is opened. */
	tool_context_open_worktree(ctx, NULL);
	return ctx;
}

int tool_context_open_worktree(struct tool_context *ctx, struct err *err)
{
	return roots_open(&ctx->roots, ROOT_WORKTREE, ctx->settings.worktree,
			  !ctx->settings.read_only, err);
}

void tool_context_free(struct tool_context *ctx)
{
	if (!ctx)
		return;
	jobs_end_all(ctx);
	output_drop_prepared(ctx);
	roots_release(&ctx->roots);
	file_states_release(&ctx->files);
	env_list_free(ctx->shell_env);
	for (size_t i = 0; i < ctx->n_touched; i++)
		free(ctx->touched[i]);
	free(ctx->touched);
	free(ctx);
}

void tool_context_idle(struct tool_context *ctx)
{
	output_prepare(ctx);
}

void tool_touch(struct tool_context *ctx, const struct place *place)
{
	if (place->root != ROOT_WORKTREE)
		return;
	for (size_t i = 0; i < ctx->n_touched; i++)
		if (strcmp(ctx->touched[i], place->path) == 0)
			return;
	MEM_GROW(ctx->touched, ctx->cap_touched, ctx->n_touched + 1);
	ctx->touched[ctx->n_touched++] = mem_strdup(place->path);
}

const char *const *tool_context_touched(const struct tool_context *ctx, size_t *ret_count)
{
	*ret_count = ctx->n_touched;
	return (const char *const *)ctx->touched;
}

int tool_check(struct tool_context *ctx, struct err *err)
{
	int64_t now = clock_mono_ms();
	if (now < ctx->next_check_ms)
		return 0;
	struct err e = ERR_INIT;
	int rc = wait_poll(ctx->waiter, NULL, 0, now, &e);
	ctx->next_check_ms = clock_mono_ms() + CHECK_EVERY_MS;
	if (rc >= 0 || e.code == ERR_TIMEOUT)
		return 0;
	if (err)
		*err = e;
	return -1;
}

/* -1: there is no such file, or it is out of reach. */
static int open_named(struct tool_context *ctx, const char *name)
{
	AUTO_PLACE struct place place = {.root = ROOT_WORKTREE};

	if (place_parse(&ctx->roots, name, strlen(name), &place, NULL) < 0)
		return -1;
	return place_open(&ctx->roots, &place, NULL, NULL);
}

bool tool_context_file_exists(struct tool_context *ctx, const char *name)
{
	AUTO_FD int fd = open_named(ctx, name);

	return fd >= 0;
}

bool tool_context_file_time(struct tool_context *ctx, const char *name, int64_t *ret_ms)
{
	AUTO_FD int fd = open_named(ctx, name);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return false;
	*ret_ms = (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000;
	return true;
}

int tool_context_file_read(struct tool_context *ctx, const char *name, struct buf *out)
{
	AUTO_FD int fd = open_named(ctx, name);
	ssize_t n = fd < 0 ? -1 : 1;

	while (n > 0)
		n = buf_read(out, fd, 65536);
	return n < 0 ? -1 : 0;
}

void tool_context_file_tidy(struct tool_context *ctx, const char *name)
{
	AUTO_PLACE struct place place = {0};
	AUTO_FREE char *base = NULL;

	if (place_parse(&ctx->roots, name, strlen(name), &place, NULL) < 0)
		return;
	AUTO_FD int file =
		place_open(&ctx->roots, &place, NULL, NULL); /* behind a link, if it is one */
	AUTO_FD int dir = place_open_parent(&ctx->roots, &place, false, &base, NULL);
	if (dir >= 0)
		file_drop_temporaries(dir, base);
}

/* --- results --- */

void tool_result_release(struct tool_result *result)
{
	buf_release(&result->text);
	free(result->summary);
	free(result->full_path);
	for (size_t i = 0; i < result->n_images; i++) {
		free(result->images[i].media_type);
		free(result->images[i].base64);
	}
	free(result->images);
	*result = (struct tool_result){.exit_code = -1};
}

int result_fail(struct tool_result *ret, const struct err *e)
{
	ret->is_error = true;
	ret->shortage = err_is_shortage(e);
	buf_clear(&ret->text);
	buf_adds(&ret->text, e->message);
	return 0;
}

int result_failf(struct tool_result *ret, const char *fmt, ...)
{
	va_list ap;
	ret->is_error = true;
	buf_clear(&ret->text);
	va_start(ap, fmt);
	buf_addv(&ret->text, fmt, ap);
	va_end(ap);
	return 0;
}

int result_end(struct tool_result *ret, const struct err *e, struct err *err)
{
	if (e->code != ERR_CANCELLED && e->code != ERR_CLOSED)
		return result_fail(ret, e);
	if (err)
		*err = *e;
	return -1;
}

void result_summary(struct tool_result *ret, const char *fmt, ...)
{
	AUTO_BUF struct buf text = BUF_INIT;
	AUTO_BUF struct buf line = BUF_INIT;
	va_list ap;
	va_start(ap, fmt);
	buf_addv(&text, fmt, ap);
	va_end(ap);
	text_printable(&line, buf_str(&text), text.len, true);
	buf_truncate(&line, text_floor(buf_str(&line), line.len, MIN(line.len, 120)));
	free(ret->summary);
	ret->summary = line.data ? buf_take(&line) : mem_strdup("");
}

/* --- input --- */

int input_place(struct tool_context *ctx, struct json_object *input, const char *key,
		struct place *ret, struct err *err)
{
	const char *given = json_str(input, key, ".");
	size_t n = json_has(input, key) ? json_str_len(input, key) : 1;
	return place_parse(&ctx->roots, given, n, ret, err);
}
