/*
 * text.c - UTF-8 repair, removal of what a terminal would obey, and clipping to a budget.
 *
 * Tool output and model output are bytes of unknown origin. Three functions stand between them and
 * everything else: text_sanitize before a request (the API refuses invalid UTF-8 for ever, since
 * the bytes stay in the history), text_printable before a terminal, text_clip before the context
 * window. All work on counted bytes and in linear time, whatever the input.
 *
 * Small string and number helpers stand in strings.c.
 */
#include "base/text.h"

#include <stdio.h>

#include "base/memory.h"

#define REPLACEMENT "\xef\xbf\xbd"

/* Length of the valid character at s, or 0. The table of well-formed sequences is Unicode's 3-7:
 * the second byte's range depends on the first, which keeps out overlong forms, surrogates and
 * values above U+10FFFF. */
static size_t char_len(const unsigned char *s, size_t n)
{
	unsigned char c = s[0];
	unsigned char low = 0x80, high = 0xbf;
	size_t len;
	if (c < 0x80)
		return 1;
	if (c >= 0xc2 && c <= 0xdf)
		len = 2;
	else if (c >= 0xe0 && c <= 0xef)
		len = 3;
	else if (c >= 0xf0 && c <= 0xf4)
		len = 4;
	else
		return 0;
	if (c == 0xe0)
		low = 0xa0;
	else if (c == 0xed)
		high = 0x9f;
	else if (c == 0xf0)
		low = 0x90;
	else if (c == 0xf4)
		high = 0x8f;
	if (n < len || s[1] < low || s[1] > high)
		return 0;
	for (size_t i = 2; i < len; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	return len;
}

size_t text_valid_prefix(const char *s, size_t n)
{
	size_t i = 0;
	while (i < n) {
		uint64_t word;
		while (n - i >= sizeof(word)) {
			memcpy(&word, s + i, sizeof(word));
			if (word & UINT64_C(0x8080808080808080))
				break;
			i += sizeof(word);
		}
		if (i == n)
			break;
		size_t len = char_len((const unsigned char *)s + i, n - i);
		if (len == 0)
			break;
		i += len;
	}
	return i;
}

bool text_is_utf8(const char *s, size_t n)
{
	return text_valid_prefix(s, n) == n;
}

/* A surrogate written as three bytes (CESU-8) is one character of its writer: one U+FFFD. */
static size_t bad_len(const char *s, size_t n)
{
	const unsigned char *u = (const unsigned char *)s;
	if (n >= 3 && u[0] == 0xed && u[1] >= 0xa0 && u[1] <= 0xbf && (u[2] & 0xc0) == 0x80)
		return 3;
	return 1;
}

static void add_without_nul(struct buf *out, const char *s, size_t n)
{
	while (n) {
		const char *nul = memchr(s, '\0', n);
		size_t len = nul ? (size_t)(nul - s) : n;
		buf_add(out, s, len);
		if (!nul)
			return;
		buf_adds(out, REPLACEMENT);
		s += len + 1;
		n -= len + 1;
	}
}

void text_sanitize(struct buf *out, const char *s, size_t n)
{
	while (n) {
		size_t good = text_valid_prefix(s, n);
		add_without_nul(out, s, good);
		s += good;
		n -= good;
		if (!n)
			return;
		size_t bad = bad_len(s, n);
		buf_adds(out, REPLACEMENT);
		s += bad;
		n -= bad;
	}
}

/* --- what a terminal would obey --- */

/* The code point of a valid sequence of `len` bytes. */
static uint32_t decode(const unsigned char *s, size_t len)
{
	static const unsigned char mask[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
	uint32_t c = s[0] & mask[len];
	for (size_t i = 1; i < len; i++)
		c = c << 6 | (s[i] & 0x3f);
	return c;
}

/* Sequences begin with ESC and a byte, or with one C1 control that means the same. The latter is
 * given as the byte that would follow ESC: U+009B is '[' + 0x40. */
enum intro { INTRO_NONE, INTRO_CSI, INTRO_STRING };

static enum intro intro_of(uint32_t after_esc)
{
	switch (after_esc) {
	case '[': return INTRO_CSI;
	case ']': /* OSC */
	case 'P': /* DCS */
	case 'X': /* SOS */
	case '^': /* PM */
	case '_': /* APC */ return INTRO_STRING;
	default: return INTRO_NONE;
	}
}

/* Bytes of a CSI sequence after its introducer. */
static size_t csi_len(const char *s, size_t n)
{
	size_t i = 0;
	while (i < n && (unsigned char)s[i] >= 0x20 && (unsigned char)s[i] <= 0x3f)
		i++;
	if (i < n && (unsigned char)s[i] >= 0x40 && (unsigned char)s[i] <= 0x7e)
		i++;
	return i;
}

/* Bytes of a control string after its introducer, with its end (BEL, ESC \, or U+009C). One without
 * an end gives 0: only the introducer goes, so a stray one cannot swallow the rest of the text.
 * *unended saves later introducers the same vain search, else many of them cost n squared. */
static size_t string_len(const char *s, size_t n, bool *unended)
{
	for (size_t i = 0; i < n && !*unended; i++) {
		if (s[i] == '\a')
			return i + 1;
		if (i + 1 < n && ((s[i] == '\033' && s[i + 1] == '\\') ||
				  (s[i] == '\xc2' && s[i + 1] == '\x9c')))
			return i + 2;
	}
	*unended = true;
	return 0;
}

/* Bytes of the escape sequence at s, which begins with ESC. */
static size_t escape_len(const char *s, size_t n, bool *unended)
{
	if (n < 2)
		return n;
	switch (intro_of((unsigned char)s[1])) {
	case INTRO_CSI: return 2 + csi_len(s + 2, n - 2);
	case INTRO_STRING: return 2 + string_len(s + 2, n - 2, unended);
	case INTRO_NONE: break;
	}
	size_t i = 1;
	while (i < n && s[i] >= 0x20 && s[i] <= 0x2f)
		i++;
	if (i < n && s[i] >= 0x30 && s[i] <= 0x7e)
		i++;
	return i;
}

/* Bytes to leave out at s because of the C1 control c there (two bytes long). */
static size_t c1_len(uint32_t c, const char *s, size_t n, bool *unended)
{
	switch (intro_of(c - 0x40)) {
	case INTRO_CSI: return 2 + csi_len(s + 2, n - 2);
	case INTRO_STRING: return 2 + string_len(s + 2, n - 2, unended);
	case INTRO_NONE: break;
	}
	return 2;
}

static bool is_bidi_override(uint32_t c)
{
	return (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

static bool is_line_blank(uint32_t c)
{
	return c == '\n' || c == '\r' || c == '\t' || c == 0x2028 || c == 0x2029;
}

void text_printable(struct buf *out, const char *s, size_t n, bool one_line)
{
	bool unended = false, blank = false;
	while (n) {
		size_t len = char_len((const unsigned char *)s, n);
		uint32_t c = len ? decode((const unsigned char *)s, len) : 0xfffd;
		bool was_blank = blank;
		blank = one_line && is_line_blank(c);
		if (!len) {
			len = bad_len(s, n);
			buf_adds(out, REPLACEMENT);
		} else if (blank) {
			if (!was_blank)
				buf_addc(out, ' ');
		} else if (c == '\033') {
			len = escape_len(s, n, &unended);
		} else if (c >= 0x80 && c <= 0x9f) {
			len = c1_len(c, s, n, &unended);
		} else if ((c >= 0x20 && c != 0x7f && !is_bidi_override(c)) || c == '\n' ||
			   c == '\t') {
			buf_add(out, s, len);
		}
		s += len;
		n -= len;
	}
}

/* --- clipping --- */

size_t text_floor(const char *s, size_t len, size_t n)
{
	if (n >= len)
		return len;
	for (size_t back = 0; back < 4 && back <= n; back++) {
		unsigned char c = (unsigned char)s[n - back];
		if ((c & 0xc0) == 0x80)
			continue;
		/* A character that reaches past n is left out; anything else is not split. */
		size_t k = char_len((const unsigned char *)s + n - back, len - (n - back));
		return k > back ? n - back : n;
	}
	return n;
}

size_t text_ceil(const char *s, size_t len, size_t n)
{
	if (n >= len)
		return len;
	size_t start = text_floor(s, len, n);
	if (start == n)
		return n;
	return start + char_len((const unsigned char *)s + start, len - start);
}

/* The end of the head: a line end in the last quarter if there is one. */
static size_t head_cut(const char *s, size_t n, size_t want)
{
	want = text_floor(s, n, want);
	const char *nl = memrchr(s + want - want / 4, '\n', want / 4);
	return nl ? (size_t)(nl - s) + 1 : want;
}

/* The start of the tail: a line start in its first quarter if there is one. */
static size_t tail_cut(const char *s, size_t n, size_t want)
{
	size_t from = text_ceil(s, n, n - want);
	const char *nl = memchr(s + from, '\n', MIN(want / 4, n - from));
	return nl ? (size_t)(nl - s) + 1 : from;
}

static char *clip_marker(size_t left_out, const char *where)
{
	/* Four bytes a token: a figure for a reader, not for the ledger. */
	if (where)
		return mem_printf(
			"[... %zu bytes (about %zu tokens) left out; all of it is in %s ...]\n",
			left_out, (left_out + 3) / 4, where);
	return mem_printf("[... %zu bytes (about %zu tokens) left out ...]\n", left_out,
			  (left_out + 3) / 4);
}

bool text_clip(struct buf *out, const char *s, size_t n, size_t budget, const char *where)
{
	if (n <= budget) {
		buf_add(out, s, n);
		return false;
	}
	size_t head_want = budget / 10 * 6 + budget % 10 * 6 / 10;
	size_t tail_want = budget / 10 * 3 + budget % 10 * 3 / 10;
	/* A long path makes a long marker: it is paid for by the head and the tail. */
	AUTO_FREE char *longest = clip_marker(n, where);
	size_t cost = strlen(longest) + 1, room = budget + 200;
	if (head_want + tail_want + cost > room) {
		size_t text = room > cost ? room - cost : 0;
		if (!text)
			where = NULL;
		head_want = MIN(head_want, text * 2 / 3);
		tail_want = MIN(tail_want, text / 3);
	}
	size_t head = head_cut(s, n, head_want);
	size_t tail = MAX(head, tail_cut(s, n, tail_want));
	AUTO_FREE char *marker = clip_marker(tail - head, where);
	buf_add(out, s, head);
	if (head && s[head - 1] != '\n')
		buf_addc(out, '\n');
	buf_adds(out, marker);
	buf_add(out, s + tail, n - tail);
	return true;
}

void text_add_guarded(struct buf *out, const char *text, const char *mark)
{
	for (const char *at; (at = strstr(text, mark)); text = at + 1) {
		buf_add(out, text, (size_t)(at - text));
		buf_adds(out, "&lt;");
	}
	buf_adds(out, text);
}
