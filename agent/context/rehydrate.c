/*
 * rehydrate.c - which files come back, and how much of each.
 *
 * Candidates are all files that read, write or edit had to do with; how many of three places name a file
 * (task and plan, the summary, the newest failed command) decides first, the last access second. A file is
 * opened only when its turn comes, so the cost does not grow with the number of files.
 *
 * A file that fits comes whole. A longer one comes as the part that was seen last, cut at a line's end to
 * the tokens that are left for it, with read's own note about the rest: the model knows that form.
 */
#include "agent/context/rehydrate.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"

#define LEAST_TOKENS  60  /* less shows nothing of a file */
#define NAMED_MAX     12  /* files that are named as not shown */
#define LOOKS	      4	  /* files opened for each that may come */
#define LINE_BYTES    500 /* more on average: no person wrote that */
#define MARK_BYTES    1500
#define BYTES_A_TOKEN 12 /* no text has fewer tokens than bytes / 12 */

/* ---- by name ---- */

static const char *const left_names[] = {
	"AGENTS.md", "CLAUDE.md", "CLAUDE.local.md",	 "package-lock.json",  "pnpm-lock.yaml",
	"bun.lockb", "go.sum",	  "npm-shrinkwrap.json", "packages.lock.json",
};
static const char *const left_endings[] = {
	".log",	  ".lock",	   ".min.js", ".min.css",     ".map",  ".pb.go",
	".pb.cc", ".pb.h",	   "_pb2.py", "_pb2_grpc.py", ".pb.c", ".g.dart",
	".snap",  ".generated.ts", ".gen.go", ".out",
};
static const char *const left_folders[] = {
	"node_modules/", "dist/", "__pycache__/", ".git/", ".baton/rules/", ".claude/rules/",
};

/* At the start of the path or behind a slash. */
static bool in_folder(const char *path, const char *folder)
{
	for (const char *s = path; (s = strstr(s, folder)); s++)
		if (s == path || s[-1] == '/')
			return true;
	return false;
}

bool rehydrate_leaves_out(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	for (size_t i = 0; i < ARRAY_SIZE(left_names); i++)
		if (strcmp(name, left_names[i]) == 0)
			return true;
	for (size_t i = 0; i < ARRAY_SIZE(left_endings); i++)
		if (text_ends(name, left_endings[i]))
			return true;
	for (size_t i = 0; i < ARRAY_SIZE(left_folders); i++)
		if (in_folder(path, left_folders[i]))
			return true;
	return false;
}

/* ---- by importance ---- */

static bool is_name_byte(char c)
{
	unsigned char u = (unsigned char)c;

	return (u >= '0' && u <= '9') || (u >= 'a' && u <= 'z') || (u >= 'A' && u <= 'Z') ||
	       u == '_' || u == '-' || u >= 0x80;
}

/* Does the text name the path? `src/a.c` is named by `./src/a.c:12` and by an absolute path, and not by
 * `src/a.cc`; `a.c` is not named by `src/a.c`. */
static bool names(const char *s, size_t n, const char *path)
{
	size_t len = strlen(path);
	bool deep = strchr(path, '/') != NULL;

	for (const char *p = s; n >= len && (p = memmem(p, n - (size_t)(p - s), path, len)); p++) {
		char before = p > s ? p[-1] : ' ';
		char after = p + len < s + n ? p[len] : ' ';
		char last = p + len + 1 < s + n ? p[len + 1] : ' ';
		bool ends = !is_name_byte(after) && !(after == '.' && is_name_byte(last));

		if (before == '/' && !deep)
			before = p > s + 1 && p[-2] == '.' ? ' ' : 'x';
		if (ends && !is_name_byte(before) && before != '.')
			return true;
	}
	return false;
}

struct candidate {
	struct file_look look;
	int named; /* by how many places */
};

static int by_rank(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->named != y->named)
		return x->named > y->named ? -1 : 1;
	return x->look.access > y->look.access ? -1 : 1;
}

/* The result of the newest command that failed; NULL: none did. */
static const struct block *newest_failure(const struct view *view)
{
	for (size_t i = view->n; i-- > 0;) {
		const struct message *m = view->list[i];

		for (size_t k = m->n_blocks; k-- > 0;) {
			const struct block *b = &m->blocks[k];

			if (b->kind == BLOCK_TOOL_RESULT && b->is_error &&
			    strcmp(b->name, "shell") == 0)
				return b;
		}
	}
	return NULL;
}

/* The user's words and the plan; instructions name files that nobody works on. */
static bool head_names(const struct message *head, const char *path)
{
	for (size_t i = 0; i < head->n_blocks; i++) {
		const struct block *b = &head->blocks[i];
		bool counts = b->kind == BLOCK_TEXT && b->origin != ORIGIN_INSTRUCTIONS &&
			      b->origin != ORIGIN_SUMMARY && b->origin != ORIGIN_ATTACHMENT &&
			      b->origin != ORIGIN_HOOK;

		if (counts && names(b->text, b->text_len, path))
			return true;
	}
	return false;
}

static size_t find_candidates(const struct rehydrate *in, const struct message *head,
			      struct candidate **ret)
{
	const struct block *failed = newest_failure(in->view);
	AUTO_FREE struct file_look *looks = NULL;
	size_t n_looks = files_looked_at(in->files, 0, &looks), n = 0;
	struct candidate *list = mem_array(NULL, n_looks + 1, sizeof(*list));

	for (size_t i = 0; i < n_looks; i++) {
		const char *path = looks[i].path;

		if (looks[i].stored || rehydrate_leaves_out(path))
			continue;
		list[n].look = looks[i];
		list[n++].named = head_names(head, path) +
				  names(in->summary, in->summary_len, path) +
				  (failed && names(failed->text, failed->text_len, path));
	}
	qsort(list, n, sizeof(*list), by_rank);
	*ret = list;
	return n;
}

/* ---- what stays anyway ---- */

static const struct block *result_of(const struct message *m, const char *call_id)
{
	for (size_t i = 0; i < m->n_blocks; i++)
		if (m->blocks[i].kind == BLOCK_TOOL_RESULT && strcmp(m->blocks[i].id, call_id) == 0)
			return m->blocks[i].is_error ? NULL : &m->blocks[i];
	return NULL;
}

/* Bytes of the numbered lines at the start of a read's result: the notes behind them begin with a bracket. */
static size_t numbered(const char *s, size_t n)
{
	size_t at = 0;

	while (at < n && (s[at] == ' ' || (s[at] >= '0' && s[at] <= '9'))) {
		const char *end = memchr(s + at, '\n', n - at);

		at = end ? (size_t)(end - s) + 1 : n;
	}
	return at;
}

/* What is to be shown: the file, and the lines of it that fit. */
struct shown {
	const struct file_again *again;
	const char *text;
	size_t n;
};

/* Is it in this call's result or input already? A part of it counts from a half on. */
static bool call_shows(const struct block *call, const struct block *result,
		       struct json_object *input, const struct shown *shown)
{
	const struct file_again *again = shown->again;
	size_t n = numbered(result->text, result->text_len);

	if (strcmp(call->name, "write") == 0)
		return again->complete && (int64_t)json_str_len(input, "content") == again->bytes &&
		       text_hash(json_str(input, "content", ""), (size_t)again->bytes) ==
			       again->hash;
	return memmem(result->text, n, shown->text, shown->n) ||
	       (n * 2 >= shown->n && memmem(shown->text, shown->n, result->text, n));
}

/* An earlier compaction put it there. */
static bool is_attached(const struct message *m, const struct shown *shown)
{
	for (size_t i = 0; i < m->n_blocks; i++)
		if (m->blocks[i].origin == ORIGIN_ATTACHMENT &&
		    memmem(m->blocks[i].text, m->blocks[i].text_len, shown->text, shown->n))
			return true;
	return false;
}

static bool is_called(const struct rehydrate *in, size_t at, const struct file_look *look,
		      const struct shown *shown)
{
	const struct message *m = in->view->list[at];

	for (size_t k = 0; k < m->n_blocks && at + 1 < in->view->n; k++) {
		const struct block *call = &m->blocks[k], *result;
		AUTO_JSON struct json_object *input = NULL;

		if (call->kind != BLOCK_TOOL_CALL ||
		    (strcmp(call->name, "read") != 0 && strcmp(call->name, "write") != 0))
			continue;
		result = result_of(in->view->list[at + 1], call->id);
		if (!result || json_parse(call->text, call->text_len, &input, NULL) < 0)
			continue;
		if (files_same(in->files, json_str(input, "path", ""), json_str_len(input, "path"),
			       look) &&
		    call_shows(call, result, input, shown))
			return true;
	}
	return false;
}

/* Compared are the bytes: a result that was cleared or shortened, or one from before the file changed,
 * does not keep the file away. */
static bool is_shown(const struct rehydrate *in, const struct file_look *look,
		     const struct shown *shown)
{
	for (size_t i = 0; i < in->view->n; i++) {
		if (i >= in->from && i < in->tail)
			continue;
		if (is_attached(in->view->list[i], shown) || is_called(in, i, look, shown))
			return true;
	}
	return false;
}

/* ---- one file ---- */

/* Such a file is made anew by a command, and its text tells nothing that its source does not. */
static bool is_generated(const struct file_again *again)
{
	const char *s = buf_str(&again->text);
	size_t n = MIN(again->text.len, (size_t)MARK_BYTES);

	if (again->lines && again->bytes / again->lines > LINE_BYTES)
		return true;
	return text_find_nocase(s, n, "@generated") ||
	       (text_find_nocase(s, n, "generated") && text_find_nocase(s, n, "do not edit"));
}

/* Returns where the lines begin. */
static size_t write_block(const struct file_again *again, int64_t lines, struct buf *out)
{
	size_t start;

	buf_clear(out);
	buf_addf(out, "%s, read again from disk now:\n", again->shown);
	start = out->len;
	files_again_write(again, lines, out);
	return start;
}

static int64_t tokens_of(const struct rehydrate *in, const struct buf *text)
{
	return ledger_estimate_text(in->ledger, buf_str(text), text->len);
}

/* The block with as many lines as fit `cap` tokens; returns their number. */
static int64_t fit(const struct rehydrate *in, const struct file_again *again, int64_t cap,
		   struct buf *out)
{
	int64_t lines = (int64_t)text_count_lines(buf_str(&again->text), again->text.len);
	int64_t low = 0, high = lines;

	write_block(again, lines, out);
	if ((int64_t)out->len <= cap * BYTES_A_TOKEN && tokens_of(in, out) <= cap)
		return lines;
	while (low + 1 < high) {
		int64_t middle = low + (high - low) / 2;

		write_block(again, middle, out);
		if ((int64_t)out->len <= cap * BYTES_A_TOKEN && tokens_of(in, out) <= cap)
			low = middle;
		else
			high = middle;
	}
	write_block(again, low, out);
	return low;
}

static int64_t text_lines(const struct file_again *again)
{
	return (int64_t)text_count_lines(buf_str(&again->text), again->text.len);
}

/* `out` is only for the measuring. */
static int read_part(const struct rehydrate *in, const struct file_look *look, int64_t cap,
		     struct file_again *again, struct buf *out, struct err *err)
{
	bool fits = again->whole && fit(in, again, cap, out) == text_lines(again);

	if (fits || look->first <= 1 || look->first > again->lines)
		return 0;
	files_again_release(again);
	return files_read_again(in->files, look, look->first, MAX(look->lines, INT64_C(1)), again,
				err);
}

enum outcome { LEFT_OUT, ADDED, NO_ROOM };

/* The state is recorded for what is shown only: an edit of a file that did not come back is still
 * compared with what the model saw. */
static int show_file(const struct rehydrate *in, const struct file_look *look, int64_t cap,
		     struct message *head, enum outcome *ret, struct err *err)
{
	AUTO_AGAIN struct file_again again = {.own = NULL};
	AUTO_BUF struct buf text = BUF_INIT;

	*ret = LEFT_OUT;
	if (files_read_again(in->files, look, 1, 0, &again, err) < 0)
		return -1;
	if (again.binary || is_generated(&again))
		return 0;
	if (read_part(in, look, cap, &again, &text, err) < 0)
		return -1;
	if (again.binary)
		return 0;
	int64_t lines = fit(in, &again, cap, &text);
	if ((!lines && again.bytes) || tokens_of(in, &text) > cap) {
		*ret = NO_ROOM;
		return 0;
	}
	size_t start = write_block(&again, lines, &text);
	const char *body = buf_str(&text) + start;
	struct shown shown = {&again, body, numbered(body, text.len - start)};
	if (is_shown(in, look, &shown))
		return 0;
	message_add_text(head, ORIGIN_ATTACHMENT, text.data, text.len);
	files_again_seen(in->files, &again);
	*ret = ADDED;
	return 0;
}

/* ---- all of them ---- */

struct progress {
	int64_t room;
	int64_t left; /* files that may still come */
	struct buf missing;
	size_t n_missing;
};

static void name_missing(struct progress *p, const char *path, const char *why)
{
	if (p->n_missing++ >= NAMED_MAX)
		return;
	buf_addf(&p->missing, "%s", p->missing.len ? "\n- " : "- ");
	text_printable(&p->missing, path, strlen(path), true);
	buf_addf(&p->missing, " %s", why);
}

/* In a small window the files share what there is: the first takes a third, and what it leaves is the
 * others'. */
static int64_t share(const struct rehydrate *in, const struct progress *p)
{
	int64_t cap = p->room / MIN(p->left, INT64_C(3));

	return MIN(cap, in->knobs->rehydrate_file);
}

/* 0, or -1 where the agent is to stop. What cannot be read is named and is no error. */
static int take_candidate(const struct rehydrate *in, const struct file_look *look,
			  struct progress *p, struct message *head, struct err *err)
{
	struct err e = ERR_INIT;
	enum outcome outcome = LEFT_OUT;
	size_t blocks = head->n_blocks;
	int rc = show_file(in, look, share(in, p), head, &outcome, &e);

	if (rc < 0 && (e.code == ERR_CANCELLED || e.code == ERR_CLOSED)) {
		if (err)
			*err = e;
		return -1;
	}
	if (rc < 0 && e.code == ERR_NOT_FOUND)
		name_missing(p, look->path, "is gone: it is not on disk any more");
	else if (rc < 0)
		name_missing(p, look->path, "cannot be read now");
	else if (outcome == NO_ROOM)
		name_missing(p, look->path, "does not fit here; read it when you need it");
	if (outcome != ADDED)
		return 0;
	const struct block *b = &head->blocks[blocks];
	p->room -= ledger_estimate_text(in->ledger, b->text, b->text_len);
	p->left--;
	return 0;
}

static void add_missing(const struct rehydrate *in, struct progress *p, struct message *head)
{
	AUTO_BUF struct buf text = BUF_INIT;

	if (!p->n_missing)
		return;
	buf_addf(&text, "Files that you worked with and that are not shown again:\n%s",
		 buf_str(&p->missing));
	if (p->n_missing > NAMED_MAX)
		buf_addf(&text, "\n- and %zu more", p->n_missing - NAMED_MAX);
	if (tokens_of(in, &text) <= p->room)
		message_add_text(head, ORIGIN_ATTACHMENT, text.data, text.len);
}

int rehydrate_files(const struct rehydrate *in, struct message *head, struct err *err)
{
	struct progress p = {.room = in->room, .left = in->knobs->rehydrate_files};
	AUTO_FREE struct candidate *list = NULL;
	size_t n = find_candidates(in, head, &list);
	size_t most = MIN(n, (size_t)in->knobs->rehydrate_files * LOOKS);
	int rc = 0;

	for (size_t i = 0; i < most && rc == 0 && p.left > 0 && p.room >= LEAST_TOKENS; i++)
		rc = take_candidate(in, &list[i].look, &p, head, err);
	if (rc == 0)
		add_missing(in, &p, head);
	buf_release(&p.missing);
	return rc;
}
