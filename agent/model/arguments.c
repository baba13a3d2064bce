/*
 * arguments.c - see arguments.h.
 *
 * There are two looks at the same text. The scan is cheap and only separates calls that a server
 * glued together; the parse at the end of the stream decides whether a call may run.
 */
#include "agent/model/arguments.h"

#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"

static bool is_space(char c)
{
	return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

/* Copying is right only for what every strict parser takes: no raw control character, no broken
 * UTF-8, no surrogate escape that may be unpaired (trap 89). */
static bool is_strict(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if ((unsigned char)s[i] < 0x20)
			return false;
		if (s[i] == '\\' && i + 2 < n && s[i + 1] == 'u' && (s[i + 2] | 0x20) == 'd')
			return false;
	}
	return text_is_utf8(s, n);
}

bool arguments_normalise(struct buf *out, const char *text, size_t n)
{
	while (n && is_space(text[0])) {
		text++;
		n--;
	}
	while (n && is_space(text[n - 1]))
		n--;
	if (n == 0 || (n == 4 && memcmp(text, "null", 4) == 0)) {
		buf_adds(out, "{}");
		return true;
	}
	AUTO_JSON struct json_object *value = NULL;
	if (json_parse(text, n, &value, NULL) < 0 || !json_object_is_type(value, json_type_object))
		return false;
	if (is_strict(text, n))
		buf_add(out, text, n);
	else
		json_write(out, value);
	return true;
}

static void scan_string(struct arguments_scan *scan, char c)
{
	if (scan->escaped)
		scan->escaped = false;
	else if (c == '\\')
		scan->escaped = true;
	else if (c == '"')
		scan->in_string = false;
}

void arguments_scan(struct arguments_scan *scan, const char *piece, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char c = piece[i];
		if (scan->in_string)
			scan_string(scan, c);
		else if (c == '"')
			scan->in_string = true;
		else if (c == '{' || c == '[')
			scan->depth++;
		else if ((c == '}' || c == ']') && scan->depth > 0 && --scan->depth == 0)
			scan->complete = true;
	}
}
