/*
 * names.c - the \xNN form of file names, and the figures of listings.
 *
 * The escape is its own inverse for every name that a file system can hold: the only text that
 * could be mistaken for an escape, a real backslash followed by x, has that backslash escaped too.
 */
#include "agent/tools/names.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"

static bool needs_escape(const char *s, size_t n)
{
	unsigned char c = (unsigned char)s[0];
	if (c < 0x20 || c == 0x7f)
		return true;
	return c == '\\' && n > 1 && s[1] == 'x';
}

void name_escape(struct buf *out, const char *name, size_t n)
{
	size_t good = text_valid_prefix(name, n);
	for (size_t i = 0; i < n; i++) {
		if (i == good) {
			buf_addf(out, "\\x%02x", (unsigned char)name[i]);
			good = i + 1 + text_valid_prefix(name + i + 1, n - i - 1);
		} else if (needs_escape(name + i, n - i)) {
			buf_addf(out, "\\x%02x", (unsigned char)name[i]);
		} else {
			buf_addc(out, name[i]);
		}
	}
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* The byte of an escape at s, or -1. */
static int escape_at(const char *s)
{
	if (s[0] != '\\' || s[1] != 'x')
		return -1;
	int high = hex_digit(s[2]);
	int low = high < 0 ? -1 : hex_digit(s[3]);
	int byte = low < 0 ? -1 : high * 16 + low;
	return byte == 0 ? -1 : byte;
}

char *name_unescape(const char *shown)
{
	AUTO_BUF struct buf out = BUF_INIT;
	bool any = false;
	for (const char *s = shown; *s; s++) {
		int byte = escape_at(s);
		if (byte < 0) {
			buf_addc(&out, *s);
			continue;
		}
		buf_addc(&out, (char)byte);
		s += 3;
		any = true;
	}
	return any ? buf_take(&out) : NULL;
}

void name_add_time(struct buf *out, int64_t wall_ms)
{
	char stamp[CLOCK_STAMP_SIZE];
	clock_stamp(wall_ms, stamp);
	buf_addf(out, "%.10s %.5s", stamp, stamp + 11);
}

void name_add_number(struct buf *out, uint64_t number)
{
	char digits[24];
	int n = snprintf(digits, sizeof(digits), "%" PRIu64, number);
	for (int i = 0; i < n; i++) {
		if (i && (n - i) % 3 == 0)
			buf_addc(out, ',');
		buf_addc(out, digits[i]);
	}
}
