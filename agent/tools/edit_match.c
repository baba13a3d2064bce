/*
 * edit_match.c - exact replacement that respects the file's line ends.
 *
 * Models write LF. In a file with CRLF both the file and the wanted text are compared in a form
 * without the CR of each CRLF, and a match is mapped back to the file's own bytes; the new text
 * then gets the line end of the place where it goes. Normalising the whole file and writing that
 * back is what destroyed other people's files (trap 106).
 *
 * A text that is not there is the model's most common mistake, so the error carries the line that
 * comes nearest: the one that differs in white space only, else the one that shares the most letter
 * pairs.
 */
#include "agent/tools/edit_match.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

enum { SHOWN_MATCHES = 8, HINT_LINE = 160, HINT_SCAN_LINES = 50000 };

/* --- line ends --- */

static void add_without_cr(struct buf *out, const char *s, size_t n)
{
	buf_reserve(out, n);
	while (n) {
		const char *cr = memchr(s, '\r', n);
		size_t len = cr ? (size_t)(cr - s) : n;
		buf_add(out, s, len);
		s += len;
		n -= len;
		if (!n)
			return;
		if (n == 1 || s[1] != '\n')
			buf_addc(out, '\r');
		s++;
		n--;
	}
}

static void add_with_cr(struct buf *out, const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (s[i] == '\n')
			buf_addc(out, '\r');
		buf_addc(out, s[i]);
	}
}

/* Walks from the normalised form back to the file: *at is an offset in the file, *norm the same
 * place in the normalised form; moves both on until *norm is `want`. A place before a CRLF stays
 * before it. */
static void map_back(const char *file, size_t n, size_t *at, size_t *norm, size_t want)
{
	while (*norm < want && *at < n) {
		*at += file[*at] == '\r' && *at + 1 < n && file[*at + 1] == '\n' ? 2 : 1;
		(*norm)++;
	}
}

/* Whether the line end at or after `at` (else the last one before it) is CRLF. */
static bool is_crlf_at(const char *file, size_t n, size_t at)
{
	const char *lf = memchr(file + at, '\n', n - at);
	if (!lf)
		lf = memrchr(file, '\n', at);
	return lf && lf > file && lf[-1] == '\r';
}

/* --- errors --- */

static size_t line_number(const char *s, size_t at)
{
	size_t line = 1;
	for (size_t i = 0; i < at; i++)
		line += s[i] == '\n';
	return line;
}

struct span {
	const char *s;
	size_t n;
};

static struct span trimmed(const char *s, size_t n)
{
	while (n && strchr(" \t\r\n", s[n - 1]) && s[n - 1])
		n--;
	while (n && strchr(" \t\r\n", *s) && *s)
		s++, n--;
	return (struct span){s, n};
}

/* Next line of s at *at; false at the end. */
static bool next_line(const char *s, size_t n, size_t *at, struct span *ret)
{
	if (*at >= n)
		return false;
	const char *lf = memchr(s + *at, '\n', n - *at);
	size_t len = lf ? (size_t)(lf - s) - *at : n - *at;
	*ret = (struct span){s + *at, len};
	*at += len + 1;
	return true;
}

/* Share of letter pairs in common, 0 to 100; `seen` marks the pairs of the wanted line. */
static unsigned pair_score(const uint8_t *seen, size_t wanted_len, struct span line)
{
	size_t common = 0;
	size_t n = MIN(line.n, 400);
	for (size_t i = 0; i + 1 < n; i++) {
		unsigned pair = (unsigned char)line.s[i] * 31u + (unsigned char)line.s[i + 1];
		common += seen[pair % 4096];
	}
	size_t total = wanted_len + n;
	return total > 2 ? (unsigned)MIN(200 * common / (total - 2), 100) : 0;
}

static void mark_pairs(uint8_t *seen, struct span line)
{
	for (size_t i = 0; i + 1 < line.n; i++)
		seen[((unsigned char)line.s[i] * 31u + (unsigned char)line.s[i + 1]) % 4096] = 1;
}

/* The line of the file nearest to the first line of the wanted text; 0 if none is near. */
static size_t nearest_line(const char *file, size_t n, struct span wanted, struct span *ret,
			   bool *ret_blanks_only)
{
	uint8_t seen[4096] = {0};
	size_t at = 0, number = 0, best = 0;
	unsigned best_score = 50;
	struct span line;
	mark_pairs(seen, wanted);
	while (number < HINT_SCAN_LINES && next_line(file, n, &at, &line)) {
		struct span t = trimmed(line.s, line.n);
		number++;
		bool same = t.n == wanted.n && memcmp(t.s, wanted.s, t.n) == 0;
		unsigned score = same ? 101 : pair_score(seen, wanted.n, t);
		if (score <= best_score)
			continue;
		best_score = score;
		best = number;
		*ret = line;
		*ret_blanks_only = same;
		if (same)
			break;
	}
	return best;
}

static bool has_line_numbers(struct span old)
{
	size_t i = 0;
	while (i < old.n && old.s[i] == ' ')
		i++;
	size_t digits = i;
	while (i < old.n && old.s[i] >= '0' && old.s[i] <= '9')
		i++;
	return i > digits && i < old.n && old.s[i] == '\t';
}

static int err_not_found(const struct edit *edit, const char *file, size_t n, struct err *err)
{
	struct span old = {edit->old_text, edit->old_len};
	struct span wanted = {0}, line, near = {0};
	size_t at = 0;
	bool blanks_only = false;
	if (has_line_numbers(old))
		return err_set(err, ERR_NOT_FOUND,
			       "old_string is not in the file: leave out the line numbers and tabs "
			       "that read puts before each line");
	while (!wanted.n && next_line(old.s, old.n, &at, &line))
		wanted = trimmed(line.s, line.n);
	wanted.n = MIN(wanted.n, 400);
	size_t number = wanted.n ? nearest_line(file, n, wanted, &near, &blanks_only) : 0;
	if (!number)
		return err_set(err, ERR_NOT_FOUND,
			       "old_string is not in the file, nor anything like its first line; "
			       "read it again");
	AUTO_BUF struct buf shown = BUF_INIT;
	text_printable(&shown, near.s, text_floor(near.s, near.n, MIN(near.n, HINT_LINE)), true);
	return err_set(
		err, ERR_NOT_FOUND,
		blanks_only
			? "old_string is not in the file as it stands; its first line is line %zu "
			  "(mind the white space), so a later line differs or the indent does: %s"
			: "old_string is not in the file; the nearest line is %zu: %s",
		number, buf_str(&shown));
}

static int err_several(const char *hay, const size_t *found, size_t count, struct err *err)
{
	AUTO_BUF struct buf lines = BUF_INIT;
	for (size_t i = 0; i < MIN(count, SHOWN_MATCHES); i++)
		buf_addf(&lines, "%s%zu", i ? ", " : "", line_number(hay, found[i]));
	return err_set(err, ERR_INVALID,
		       "old_string stands in the file %zu times, at lines %s%s; add lines around "
		       "it to make it unique, or set replace_all",
		       count, buf_str(&lines), count > SHOWN_MATCHES ? " ..." : "");
}

/* --- applying --- */

static size_t find_all(const char *hay, size_t n, const char *needle, size_t len, size_t **ret)
{
	size_t *list = NULL;
	size_t count = 0, cap = 0;
	const char *s = hay;
	while ((s = memmem(s, n - (size_t)(s - hay), needle, len))) {
		MEM_GROW(list, cap, count + 1);
		list[count++] = (size_t)(s - hay);
		s += len;
	}
	*ret = list;
	return count;
}

static void replace_all(const struct edit *edit, const char *file, size_t n, const size_t *found,
			size_t count, size_t old_len, bool crlf, struct buf *out, size_t *ret_first)
{
	size_t at = 0, norm = 0;
	AUTO_BUF struct buf lf_only = BUF_INIT;
	add_without_cr(&lf_only, edit->new_text, edit->new_len);
	for (size_t i = 0; i < count; i++) {
		size_t start = at;
		map_back(file, n, &at, &norm, found[i]);
		buf_add(out, file + start, at - start);
		if (i == 0)
			*ret_first = out->len;
		if (!crlf)
			buf_add(out, edit->new_text, edit->new_len);
		else if (is_crlf_at(file, n, at))
			add_with_cr(out, buf_str(&lf_only), lf_only.len);
		else
			buf_add(out, buf_str(&lf_only), lf_only.len);
		map_back(file, n, &at, &norm, found[i] + old_len);
	}
	buf_add(out, file + at, n - at);
}

int edit_apply(const struct edit *edit, const char *file, size_t n, struct buf *out,
	       size_t *ret_first, size_t *ret_count, struct err *err)
{
	if (!edit->old_len)
		return err_set(
			err, ERR_INVALID,
			"old_string is empty; use write to create a file or replace all of it");
	if (edit->old_len == edit->new_len &&
	    !memcmp(edit->old_text, edit->new_text, edit->old_len))
		return err_set(err, ERR_INVALID, "old_string and new_string are the same");
	bool crlf = memmem(file, n, "\r\n", 2) != NULL;
	AUTO_BUF struct buf hay = BUF_INIT;
	AUTO_BUF struct buf needle = BUF_INIT;
	if (crlf) {
		add_without_cr(&hay, file, n);
		add_without_cr(&needle, edit->old_text, edit->old_len);
	} else {
		buf_add(&needle, edit->old_text, edit->old_len);
	}
	const char *s = crlf ? buf_str(&hay) : file;
	AUTO_FREE size_t *found = NULL;
	size_t count = find_all(s, crlf ? hay.len : n, buf_str(&needle), needle.len, &found);
	if (!count)
		return err_not_found(edit, file, n, err);
	if (count > 1 && !edit->all)
		return err_several(s, found, count, err);
	replace_all(edit, file, n, found, count, needle.len, crlf, out, ret_first);
	*ret_count = count;
	return 0;
}
