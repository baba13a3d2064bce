/*
 * read.c - the read tool: text by lines, images, folders; anything else is described.
 *
 * The file is read once from start to end in pieces, whatever part is shown: the hash of all of it
 * is what write and edit compare (trap 108), and the number of lines tells the model what is left.
 * Only what is shown is kept, so a log of gigabytes costs no memory. The result is bounded here,
 * since the agent never offloads it (T1).
 */
#include "agent/tools/read.h"

#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

#include "agent/tools/names.h"
#include "base/memory.h"
#include "base/text.h"

enum {
	READ_LINE_BYTES = 2000,
	READ_RESULT_BYTES = 100000,
	READ_PIECE = 64 << 10,
};
#define READ_SCAN_MAX (INT64_C(1) << 30)

const char read_description[] =
	"Reads a file or lists a folder. Lines come numbered as in `cat -n`: number, tab, text; "
	"the number is not part of the file. Up to 2,000 lines are shown from `offset` (the first "
	"line is 1); use offset and limit for parts of large files. Lines longer than 2,000 bytes "
	"are cut. PNG and JPEG files are shown as images; other binary files are only described. A "
	"folder is listed with size and time of each entry. Paths are relative to the worktree; "
	"`results:NAME` reads stored output of earlier calls, `scratch:NAME` a file in the scratch "
	"folder. Read a file before you write it.";

const char read_schema[] =
	"{\"type\":\"object\",\"properties\":{"
	"\"path\":{\"type\":\"string\",\"minLength\":1,\"description\":\"file or folder\"},"
	"\"offset\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":1000000000000,\"description\":"
	"\"first line to show\"},"
	"\"limit\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":100000,"
	"\"description\":\"number of lines, 2,000 by default\"}},"
	"\"required\":[\"path\"],\"additionalProperties\":false}";

/* The lines as they come by. A line is kept only up to what is shown of it. */
struct reader {
	struct buf *out;
	int64_t first, last; /* lines wanted, from 1 */
	int64_t line;	     /* number of the line that is being taken */
	struct buf current;  /* its first bytes; one more than are shown, to know of a cut */
	size_t current_len;  /* all its bytes */
	int64_t shown;	     /* number of the last line shown */
	bool full;	     /* the result's bound was reached */
	bool bad_bytes;
};

static bool is_wanted(const struct reader *r)
{
	return r->line >= r->first && r->line <= r->last && !r->full;
}

static void show_line(struct reader *r)
{
	size_t n = r->current.len;
	const char *s = buf_str(&r->current);
	if (n && s[n - 1] == '\r' && n == r->current_len)
		n--;
	size_t keep = n > READ_LINE_BYTES ? text_floor(s, n, READ_LINE_BYTES) : n;
	if (r->out->len + keep + 64 > READ_RESULT_BYTES && r->shown) {
		r->full = true;
		return;
	}
	if (!text_is_utf8(s, keep))
		r->bad_bytes = true;
	buf_addf(r->out, "%6" PRId64 "\t", r->line);
	text_sanitize(r->out, s, keep);
	if (keep < n)
		buf_addf(r->out, " [%zu more bytes in this line]", r->current_len - keep);
	buf_addc(r->out, '\n');
	r->shown = r->line;
}

static void end_line(struct reader *r)
{
	if (is_wanted(r))
		show_line(r);
	buf_clear(&r->current);
	r->current_len = 0;
	r->line++;
}

/* A line may come in many pieces, or be as long as the file: bytes beyond the bound are counted
 * only. */
static void take_part(struct reader *r, const char *s, size_t n)
{
	if (is_wanted(r) && r->current.len <= READ_LINE_BYTES)
		buf_add(&r->current, s, MIN(n, READ_LINE_BYTES + 1 - r->current.len));
	r->current_len += n;
}

static void take_piece(struct reader *r, const char *s, size_t n)
{
	while (n) {
		const char *end = memchr(s, '\n', n);
		size_t len = end ? (size_t)(end - s) : n;
		take_part(r, s, len);
		if (!end)
			return;
		end_line(r);
		s += len + 1;
		n -= len + 1;
	}
}

/* Reads all of the file through the reader. */
static int scan_file(struct tool_context *ctx, int fd, struct reader *r, struct scan *scan,
		     struct err *err)
{
	AUTO_FREE char *piece = mem_alloc(READ_PIECE);
	*scan = (struct scan){.hash = FILE_HASH_START};
	while (scan->bytes < READ_SCAN_MAX) {
		ssize_t n = read(fd, piece, READ_PIECE);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(err, "cannot read");
		if (n == 0) {
			scan->complete = true;
			break;
		}
		const char *s = piece;
		size_t len = (size_t)n;
		scan->hash = file_hash_add(scan->hash, s, len);
		/* A byte order mark belongs to the file, not to its first line. */
		if (scan->bytes == 0 && len >= 3 && memcmp(s, "\xef\xbb\xbf", 3) == 0) {
			s += 3;
			len -= 3;
		}
		take_piece(r, s, len);
		scan->bytes += n;
		if (tool_check(ctx, err) < 0)
			return -1;
	}
	if (r->current_len)
		end_line(r);
	return 0;
}

void read_note(struct buf *out, const char *shown, const struct read_lines *lines)
{
	if (lines->bad_bytes)
		buf_adds(out, "[bytes that are not UTF-8 are shown as \xef\xbf\xbd; the file "
			      "has them as they were]\n");
	if (lines->scan.bytes == 0)
		buf_addf(out, "[%s is empty]\n", shown);
	else if (!lines->last)
		buf_addf(out, "[%s has only %" PRId64 " lines]\n", shown, lines->total);
	else if (lines->last < lines->total || lines->first > 1)
		buf_addf(out, "[lines %" PRId64 " to %" PRId64 " of %" PRId64 "%s%s]\n",
			 lines->first, lines->last, lines->total,
			 lines->scan.complete ? "" : " or more",
			 lines->last < lines->total ? "; use offset and limit to read on" : "");
}

int read_lines(struct tool_context *ctx, int fd, int64_t first, int64_t count, struct buf *out,
	       struct read_lines *ret, struct err *err)
{
	struct reader r = {.out = out, .line = 1, .first = first, .last = first - 1 + count};
	struct scan scan;
	int rc = scan_file(ctx, fd, &r, &scan, err);

	buf_release(&r.current);
	if (rc < 0)
		return -1;
	*ret = (struct read_lines){.first = first,
				   .last = r.shown,
				   .total = r.line - 1,
				   .bad_bytes = r.bad_bytes,
				   .scan = scan};
	return 0;
}

/* The state is that of the bytes that were seen, should the file have grown meanwhile. */
void read_seen(struct tool_context *ctx, const struct place *place, const struct stat *st,
	       const struct scan *scan)
{
	struct stat seen = *st;

	if (scan->complete)
		seen.st_size = scan->bytes;
	file_states_set(&ctx->files, place, &seen, scan->complete, scan->hash);
}

static int read_text(struct tool_context *ctx, int fd, const struct stat *st,
		     const struct place *place, struct json_object *input, struct tool_result *ret,
		     struct err *err)
{
	int64_t first = json_i64(input, "offset", 1);
	int64_t count = json_i64(input, "limit", READ_LINES);
	struct read_lines lines;

	if (read_lines(ctx, fd, first, count, &ret->text, &lines, err) < 0)
		return -1;
	read_note(&ret->text, place->shown, &lines);
	read_seen(ctx, place, st, &lines.scan);
	struct file_state *state = file_states_touch(&ctx->files, place);
	state->first = first;
	state->lines = count;
	result_summary(ret, "read %s (%" PRId64 " lines)", place->shown,
		       lines.last ? lines.last - first + 1 : 0);
	return 0;
}

/* Enough for the model to choose the right command for the file. */
static const char *binary_kind(const char *s, size_t n)
{
	static const struct {
		const char *magic, *kind;
		size_t n;
	} kinds[] = {
		{"\177ELF", "an ELF program or library", 4},
		{"\x1f\x8b", "gzip data", 2},
		{"PK\x03\x04", "a zip archive", 4},
		{"%PDF", "a PDF document", 4},
		{"\xff\xfe", "UTF-16 text (little endian); iconv in the shell converts it", 2},
		{"\xfe\xff", "UTF-16 text (big endian); iconv in the shell converts it", 2},
		{"SQLite format 3", "an SQLite database", 15},
		{"GIF8", "a GIF image", 4},
	};
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (n >= kinds[i].n && memcmp(s, kinds[i].magic, kinds[i].n) == 0)
			return kinds[i].kind;
	return "of unknown type";
}

static void describe_binary(const char *head, size_t n, const struct stat *st,
			    const struct place *place, struct tool_result *ret)
{
	buf_addf(&ret->text, "%s is a binary file, ", place->shown);
	name_add_number(&ret->text, (uint64_t)st->st_size);
	buf_addf(&ret->text, " bytes, %s. First bytes:", binary_kind(head, n));
	for (size_t i = 0; i < MIN(n, 32); i++)
		buf_addf(&ret->text, " %02x", (unsigned char)head[i]);
	buf_addc(&ret->text, '\n');
	result_summary(ret, "read %s (binary)", place->shown);
}

/* A NUL near the start is what git and grep take for binary too. */
bool read_is_binary(const char *head, size_t n)
{
	return memchr(head, '\0', n) != NULL;
}

static int read_file(struct tool_context *ctx, int fd, const struct stat *st,
		     const struct place *place, struct json_object *input, struct tool_result *ret,
		     struct err *err)
{
	char head[READ_HEAD];
	ssize_t n = pread(fd, head, sizeof(head), 0);
	if (n < 0)
		return result_failf(ret, "cannot read '%s'", place->shown);
	file_states_touch(&ctx->files, place);
	if (image_type(head, (size_t)n))
		return read_image(ctx, fd, place, ret, err);
	if (read_is_binary(head, (size_t)n)) {
		describe_binary(head, (size_t)n, st, place, ret);
		return 0;
	}
	return read_text(ctx, fd, st, place, input, ret, err);
}

int read_run(struct tool_context *ctx, const char *call_id, struct json_object *input,
	     struct tool_result *ret, struct err *err)
{
	AUTO_PLACE struct place place = {0};
	struct err e = ERR_INIT;
	struct stat st;
	ret->exit_code = -1;
	if (input_place(ctx, input, "path", &place, &e) < 0)
		return result_fail(ret, &e);
	AUTO_FD int fd = place_open(&ctx->roots, &place, &st, &e);
	if (fd < 0)
		return result_fail(ret, &e);
	if (S_ISDIR(st.st_mode))
		return read_folder(ctx, fd, &place, ret);
	if (read_file(ctx, fd, &st, &place, input, ret, &e) == 0)
		return 0;
	return result_end(ret, &e, err);
}
