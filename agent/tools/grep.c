/*
 * grep.c - the grep tool: contents by regular expression.
 *
 * Files go one by one through a buffer that is used again; binary ones and very large ones are left
 * out and counted in a note. What is shown is bounded in hits and in bytes per line (trap 91); the
 * numbers are always those of everything. Matching is in grep_match.c, the walk in walk.c.
 */
#include "agent/tools/grep.h"

#include <errno.h>
#include <fcntl.h>

#include "agent/tools/names.h"
#include "agent/tools/walk.h"
#include "agent/tools/wild.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"

enum {
	GREP_SHOWN = 200,
	GREP_OUT_MAX = 256 << 10,
	GREP_CONTEXT_MAX = 100,
	GREP_TIME_MS = 60000,
	GREP_PEEK = 8 << 10,
};
#define GREP_FILE_MAX (INT64_C(128) << 20)

const char grep_description[] =
	"Searches file contents with a Perl-compatible regular expression, line by line. mode "
	"`content` (the default) shows matching lines under each file's name as NUMBER:text, with "
	"context lines as NUMBER-text; `files` only the names; `count` the number of matching "
	"lines per file. Narrow it with path (folder or file, also results:NAME) and glob (such as "
	"*.c or src/**/*.{h,c}). With multiline a match may span lines and `.` matches line ends. "
	"Files that .gitignore names are left out unless include_ignored is set; binary files are "
	"skipped. Long lines show what is round the match.";

const char grep_schema[] =
	"{\"type\":\"object\",\"properties\":{"
	"\"pattern\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":10000},"
	"\"path\":{\"type\":\"string\",\"minLength\":1,\"description\":\"folder or file to search "
	"in\"},"
	"\"glob\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":4000,\"description\":\"only "
	"such files\"},"
	"\"mode\":{\"type\":\"string\",\"enum\":[\"content\",\"files\",\"count\"]},"
	"\"ignore_case\":{\"type\":\"boolean\"},"
	"\"literal\":{\"type\":\"boolean\",\"description\":\"the pattern is plain text\"},"
	"\"multiline\":{\"type\":\"boolean\"},"
	"\"before\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":100,\"description\":\"context "
	"lines before\"},"
	"\"after\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":100,\"description\":\"context "
	"lines after\"},"
	"\"context\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":100,\"description\":\"both\"},"
	"\"head_limit\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":5000,"
	"\"description\":\"most lines (or files) to show, 200 by default\"},"
	"\"include_ignored\":{\"type\":\"boolean\"}},"
	"\"required\":[\"pattern\"],\"additionalProperties\":false}";

enum grep_mode { GREP_CONTENT, GREP_FILES, GREP_COUNT };

struct grepping {
	struct tool_context *ctx;
	struct matcher *matcher;
	const struct place *start;
	struct wild_set only; /* empty: all files */
	enum grep_mode mode;
	size_t before, after, limit;
	struct buf text; /* the present file */
	struct buf *out;
	size_t files, lines, shown; /* with hits; matching lines; hits or files shown */
	size_t binary, large, unreadable;
	int64_t deadline_ms;
	bool out_of_time;
};

/* --- one file --- */

static int check_search(void *arg, struct err *err)
{
	struct grepping *g = arg;
	return tool_check(g->ctx, err);
}

/* Reads a file; false if it is to be left out. */
static bool load_file(struct grepping *g, int fd)
{
	struct stat st;
	buf_clear(&g->text);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	if (st.st_size > GREP_FILE_MAX) {
		g->large++;
		return false;
	}
	/* The first piece alone decides about binary: a large archive is not read in vain. */
	ssize_t n = buf_read(&g->text, fd, GREP_PEEK);
	if (n > 0 && memchr(g->text.data, '\0', (size_t)n)) {
		g->binary++;
		return false;
	}
	while (n > 0 && (int64_t)g->text.len < GREP_FILE_MAX)
		n = buf_read(&g->text, fd, 256 << 10);
	if (n < 0)
		g->unreadable++;
	return n >= 0;
}

static void add_file_name(struct grepping *g, const char *path)
{
	const struct place *start = g->start;
	if (!path)
		buf_adds(g->out, start->shown);
	else if (strcmp(start->path, ".") == 0)
		buf_adds(g->out, root_prefix(start->root));
	else
		buf_addf(g->out, "%s/", start->shown);
	if (path)
		name_escape(g->out, path, strlen(path));
}

/* Beyond the limits hits are still counted: the model must know how many there are. */
static void show_hits(struct grepping *g, const char *path, const struct hits *hits)
{
	if (g->shown >= g->limit || g->out->len > GREP_OUT_MAX)
		return;
	if (g->mode == GREP_CONTENT && g->out->len)
		buf_addc(g->out, '\n');
	add_file_name(g, path);
	if (g->mode == GREP_COUNT)
		buf_addf(g->out, ": %zu", hits->count);
	buf_addc(g->out, '\n');
	if (g->mode == GREP_CONTENT)
		g->shown += hits_print(hits, buf_str(&g->text), g->text.len, g->before, g->after,
				       g->limit - g->shown, g->out);
	else
		g->shown++;
}

/* path: NULL for the start itself. */
static int search_file(struct grepping *g, int fd, const char *path, struct err *err)
{
	struct hits hits = {0};
	if (!load_file(g, fd))
		return 0;
	struct err e = ERR_INIT;
	int rc = matcher_find(g->matcher, buf_str(&g->text), g->text.len, &hits, check_search, g,
			      &e);
	if (rc < 0 && e.code != ERR_CANCELLED && e.code != ERR_CLOSED)
		err_prefix(&e, "%s", path ? path : g->start->shown);
	if (rc < 0 && err)
		*err = e;
	if (rc == 0 && hits.count) {
		g->files++;
		g->lines += hits.count;
		show_hits(g, path, &hits);
	}
	free(hits.items);
	return rc;
}

static int on_grep_file(const struct walk_file *file, void *arg, struct err *err)
{
	struct grepping *g = arg;
	if (file->is_link || (g->only.count && !wild_set_match(&g->only, file->path)))
		return 0;
	if (clock_mono_ms() > g->deadline_ms) {
		g->out_of_time = true;
		return 1;
	}
	AUTO_FD int fd =
		openat(file->dir_fd, file->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0) {
		g->unreadable += errno == EACCES;
		return 0;
	}
	return search_file(g, fd, file->path, err);
}

/* --- the call --- */

static void add_notes(const struct grepping *g, const struct walk *walk)
{
	if (!g->files)
		buf_adds(g->out, "no matches\n");
	size_t all = g->mode == GREP_CONTENT ? g->lines : g->files;
	if (g->shown < all)
		buf_addf(g->out,
			 "\n[%zu of %zu matching %s shown (%zu lines in %zu files match); narrow "
			 "the search or raise head_limit]\n",
			 g->shown, all, g->mode == GREP_CONTENT ? "lines" : "files", g->lines,
			 g->files);
	if (g->binary)
		buf_addf(g->out, "\n[%zu binary files skipped]\n", g->binary);
	if (g->large)
		buf_addf(g->out, "\n[%zu files above 128 MiB skipped; use grep in the shell]\n",
			 g->large);
	if (g->unreadable)
		buf_addf(g->out, "\n[%zu files could not be read]\n", g->unreadable);
	if (g->out_of_time || walk->cut)
		buf_adds(g->out,
			 "\n[stopped before all files were searched: too many; give a path]\n");
}

static void take_options(struct grepping *g, struct json_object *input)
{
	const char *mode = json_str(input, "mode", "content");
	int64_t both = json_i64(input, "context", 0);
	g->mode = strcmp(mode, "files") == 0   ? GREP_FILES
		  : strcmp(mode, "count") == 0 ? GREP_COUNT
					       : GREP_CONTENT;
	g->before = (size_t)MIN(json_i64(input, "before", both), GREP_CONTEXT_MAX);
	g->after = (size_t)MIN(json_i64(input, "after", both), GREP_CONTEXT_MAX);
	g->limit = (size_t)json_i64(input, "head_limit", GREP_SHOWN);
	g->deadline_ms = clock_mono_ms() + GREP_TIME_MS;
	if (json_has(input, "glob"))
		wild_set_init(&g->only, json_str(input, "glob", "*"));
}

static int search(struct grepping *g, struct json_object *input, struct place *start,
		  struct err *err)
{
	struct stat st;
	struct walk walk = {
		.ctx = g->ctx,
		.include_ignored = json_flag(input, "include_ignored", false),
		.on_file = on_grep_file,
		.arg = g,
	};
	AUTO_FD int fd = place_open(&g->ctx->roots, start, &st, err);
	if (fd < 0)
		return -1;
	int rc = S_ISDIR(st.st_mode) ? walk_tree(&walk, start, fd, err)
				     : search_file(g, fd, NULL, err);
	if (rc < 0)
		return -1;
	add_notes(g, &walk);
	return 0;
}

int grep_run(struct tool_context *ctx, const char *call_id, struct json_object *input,
	     struct tool_result *ret, struct err *err)
{
	AUTO_PLACE struct place start = {0};
	struct grepping g = {.ctx = ctx, .start = &start, .out = &ret->text};
	struct err e = ERR_INIT;
	struct matcher_opts opts = {
		.ignore_case = json_flag(input, "ignore_case", false),
		.literal = json_flag(input, "literal", false),
		.multiline = json_flag(input, "multiline", false),
	};
	const char *pattern = json_str(input, "pattern", "");
	ret->exit_code = -1;
	if (input_place(ctx, input, "path", &start, &e) < 0)
		return result_fail(ret, &e);
	g.matcher = matcher_new(pattern, json_str_len(input, "pattern"), &opts, &e);
	if (!g.matcher)
		return result_fail(ret, &e);
	take_options(&g, input);
	int rc = search(&g, input, &start, &e);
	result_summary(ret, "grep %s (%zu lines in %zu files)", pattern, g.lines, g.files);
	matcher_free(g.matcher);
	wild_set_release(&g.only);
	buf_release(&g.text);
	return rc < 0 ? result_end(ret, &e, err) : 0;
}

/* --- shortening (T5) --- */

static bool is_numbered(const char *s, size_t n, char mark)
{
	size_t i = 0;
	while (i < n && s[i] >= '0' && s[i] <= '9')
		i++;
	return i && i < n && s[i] == mark;
}

/* The text is parsed back: a heading is the first line or follows an empty one, and no line of a
 * file is shown as an empty one, since its number stands before it. */
struct tally {
	struct buf *out;
	size_t budget;
	const char *name;
	size_t name_len, lines, left_out;
};

static void tally_file(struct tally *t)
{
	if (!t->name)
		return;
	if (t->out->len + t->name_len + 40 > t->budget)
		t->left_out++;
	else
		buf_addf(t->out, "%.*s: %zu\n", (int)t->name_len, t->name, t->lines);
}

/* Files and counts instead of lines; what is no list of lines is clipped as any text. */
void grep_shorten(const struct tool_result *full, size_t budget, const char *where, struct buf *out)
{
	const char *s = buf_str(&full->text), *end = s + full->text.len;
	AUTO_BUF struct buf list = BUF_INIT;
	struct tally t = {.out = &list, .budget = budget > 400 ? budget - 400 : 0};
	bool heading = true;
	size_t total = 0;
	for (const char *line = s; line < end;) {
		const char *lf = memchr(line, '\n', (size_t)(end - line));
		size_t n = (size_t)((lf ? lf : end) - line);
		if (n && heading && line[0] != '[') {
			tally_file(&t);
			t.name = line;
			t.name_len = n;
			t.lines = 0;
		} else if (is_numbered(line, n, ':')) {
			t.lines++;
			total++;
		}
		heading = n == 0;
		line += n + 1;
	}
	tally_file(&t);
	if (full->is_error || !total) {
		text_clip(out, s, full->text.len, budget, where);
		return;
	}
	buf_adds(out, "[too long to show; matching lines per file:]\n");
	buf_add(out, buf_str(&list), list.len);
	if (t.left_out)
		buf_addf(out, "[%zu more files]\n", t.left_out);
	if (where)
		buf_addf(out, "[all of it is in %s]\n", where);
}
