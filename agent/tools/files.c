/*
 * files.c - looks through the roots for others than the tools.
 *
 * A file is read again by its real path, as the tool noted it after it had opened the file; that the path
 * means another file by now, or a link that leads out, is the kernel's to find out, as in every call.
 */
#include "agent/tools/files.h"

#include <stdlib.h>

#include "agent/tools/read.h"
#include "agent/tools/walk.h"
#include "base/memory.h"
#include "base/text.h"

#define AGAIN_MAX (INT64_C(64) << 20)

struct again {
	struct place place;
	struct stat st;
	struct read_lines lines;
};

/* ---- what was looked at ---- */

uint64_t files_clock(const struct tool_context *ctx)
{
	return ctx->files.clock;
}

static int by_access(const void *a, const void *b)
{
	const struct file_look *x = a, *y = b;

	return x->access < y->access ? -1 : 1;
}

size_t files_looked_at(const struct tool_context *ctx, uint64_t since, struct file_look **ret)
{
	const struct file_states *states = &ctx->files;
	struct file_look *list = mem_array(NULL, states->count + 1, sizeof(*list));
	size_t n = 0;

	for (size_t i = 0; i < states->count; i++) {
		const struct file_state *s = &states->items[i];

		if (s->access <= since)
			continue;
		list[n++] = (struct file_look){
			.path = s->path,
			.in_tree = s->root == ROOT_WORKTREE,
			.stored = s->root != ROOT_WORKTREE && s->root != ROOT_SCRATCH,
			.access = s->access,
			.root = s->root,
			.first = s->first,
			.lines = s->lines,
		};
	}
	qsort(list, n, sizeof(*list), by_access);
	*ret = list;
	return n;
}

/* ---- reading again ---- */

static int open_again(struct tool_context *ctx, struct again *own, struct err *err)
{
	AUTO_FD int fd = place_open(&ctx->roots, &own->place, &own->st, err);

	if (fd < 0)
		return -1;
	if (!S_ISREG(own->st.st_mode))
		return err_set(err, ERR_INVALID, "'%s' is a folder now", own->place.shown);
	if (own->st.st_size > AGAIN_MAX)
		return err_set(err, ERR_TOO_LARGE, "'%s' is larger than 64 MiB", own->place.shown);
	return take_fd(fd);
}

static int read_again(struct tool_context *ctx, int fd, int64_t first, int64_t lines,
		      struct file_again *ret, struct err *err)
{
	struct read_lines *got = &ret->own->lines;
	char head[READ_HEAD];
	ssize_t n = pread(fd, head, sizeof(head), 0);

	if (n < 0)
		return err_sys(err, "cannot read '%s'", ret->shown);
	ret->binary = read_is_binary(head, (size_t)n);
	if (ret->binary)
		return 0;
	if (read_lines(ctx, fd, first, lines ? lines : READ_LINES, &ret->text, got, err) < 0)
		return -1;
	ret->lines = got->total;
	ret->bytes = got->scan.bytes;
	ret->hash = got->scan.hash;
	ret->complete = got->scan.complete;
	ret->whole = got->scan.complete && first == 1 && got->last == got->total;
	return 0;
}

int files_read_again(struct tool_context *ctx, const struct file_look *look, int64_t first,
		     int64_t lines, struct file_again *ret, struct err *err)
{
	struct file_again again = {.own = mem_alloc(sizeof(*again.own))};

	place_make((enum root_id)look->root, look->path, &again.own->place);
	again.shown = mem_strdup(again.own->place.shown);
	AUTO_FD int fd = open_again(ctx, again.own, err);
	if (fd < 0 || read_again(ctx, fd, first, lines, &again, err) < 0) {
		files_again_release(&again);
		return -1;
	}
	*ret = again;
	return 0;
}

void files_again_write(const struct file_again *again, int64_t n, struct buf *out)
{
	struct read_lines shown = again->own->lines;
	const char *s = buf_str(&again->text), *end = s + again->text.len;

	shown.last = shown.last ? MIN(shown.last, shown.first + n - 1) : 0;
	for (int64_t line = shown.first; shown.last && line <= shown.last; line++)
		s = (const char *)memchr(s, '\n', (size_t)(end - s)) + 1;
	buf_add(out, buf_str(&again->text), (size_t)(s - buf_str(&again->text)));
	read_note(out, again->shown, &shown);
}

void files_again_seen(struct tool_context *ctx, const struct file_again *again)
{
	read_seen(ctx, &again->own->place, &again->own->st, &again->own->lines.scan);
}

void files_again_release(struct file_again *again)
{
	if (again->own)
		place_release(&again->own->place);
	free(again->own);
	free(again->shown);
	buf_release(&again->text);
	*again = (struct file_again){.own = NULL};
}

/* ---- bytes and names ---- */

int files_read(struct tool_context *ctx, const char *path, size_t max, struct buf *out,
	       char **ret_real, struct err *err)
{
	AUTO_PLACE struct place place;
	struct stat st;
	ssize_t n;

	place_make(ROOT_WORKTREE, path, &place);
	AUTO_FD int fd = place_open(&ctx->roots, &place, &st, err);
	if (fd < 0)
		return -1;
	if (!S_ISREG(st.st_mode))
		return err_set(err, ERR_DENIED, "'%s' is not a regular file", place.shown);
	if ((uint64_t)st.st_size > max)
		return err_set(err, ERR_TOO_LARGE, "'%s' is larger than %zu bytes", place.shown,
			       max);
	while ((n = buf_read(out, fd, max + 1)) > 0)
		if (out->len > max)
			return err_set(err, ERR_TOO_LARGE, "'%s' grows", place.shown);
	if (n < 0)
		return err_sys(err, "cannot read '%s'", place.shown);
	*ret_real = take_ptr(place.path);
	return 0;
}

struct listing {
	const char *folder, *ending;
	size_t max;
	char **list;
	size_t n, cap;
};

static int on_listed(const struct walk_file *file, void *arg, struct err *err)
{
	struct listing *l = arg;

	(void)err;
	if (!text_ends(file->name, l->ending))
		return 0;
	MEM_GROW(l->list, l->cap, l->n + 1);
	l->list[l->n++] = mem_printf("%s/%s", l->folder, file->path);
	return l->n >= l->max;
}

size_t files_list(struct tool_context *ctx, const char *folder, const char *ending, size_t max,
		  char ***ret)
{
	AUTO_PLACE struct place place;
	struct listing l = {.folder = folder, .ending = ending, .max = max};
	struct walk walk = {.ctx = ctx, .include_ignored = true, .on_file = on_listed, .arg = &l};
	struct stat st;

	place_make(ROOT_WORKTREE, folder, &place);
	AUTO_FD int fd = place_open(&ctx->roots, &place, &st, NULL);
	if (fd >= 0 && S_ISDIR(st.st_mode))
		walk_tree(&walk, &place, fd, NULL);
	*ret = l.list;
	return l.n;
}

/* A call may name a file in many ways; what it opened is what counts. */
bool files_same(struct tool_context *ctx, const char *given, size_t n, const struct file_look *look)
{
	AUTO_PLACE struct place place = {0};

	if (place_parse(&ctx->roots, given, n, &place, NULL) < 0 || (int)place.root != look->root)
		return false;
	if (strcmp(place.path, look->path) == 0)
		return true;
	AUTO_FD int fd = place_open(&ctx->roots, &place, NULL, NULL);
	return fd >= 0 && strcmp(place.path, look->path) == 0;
}
