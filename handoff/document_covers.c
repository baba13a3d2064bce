/*
 * document_covers.c - see document_covers.h.
 */
#include "handoff/document_covers.h"

#include <ctype.h>
#include <string.h>

#include "base/text.h"

bool covers_verbatim(const struct handoff_part *part, const char *text, size_t n)
{
	for (size_t i = 0; i < part->n; i++)
		if (memmem(part->list[i].text, strlen(part->list[i].text), text, n))
			return true;
	return false;
}

size_t covers_left_out(const struct handoff *handoff)
{
	const struct handoff_part *list = &handoff->parts[HANDOFF_MISSING];
	size_t sum = 0;

	for (size_t i = 0; i < list->n; i++) {
		const char *text = list->list[i].text;
		size_t n = 0;

		if (text_starts(text, "words: "))
			text += strlen("words: ");
		for (; isdigit((unsigned char)*text) && n < 1000000; text++)
			n = n * 10 + (size_t)(*text - '0');
		if (text_starts(text, " older messages"))
			sum += n;
	}
	return sum;
}

static bool holds_message(const struct handoff *handoff, const char *text, size_t n)
{
	while (n && isspace((unsigned char)text[n - 1]))
		n--;
	return !n || covers_verbatim(&handoff->parts[HANDOFF_WORDS], text, n) ||
	       covers_verbatim(&handoff->parts[HANDOFF_GOAL], text, n);
}

/* As handoff_add made a statement of it: what no user said has no control characters any more. */
bool covers_message(const struct handoff *handoff, const char *text, size_t n)
{
	AUTO_BUF struct buf said = BUF_INIT, printable = BUF_INIT;

	text_sanitize(&said, text, n);
	text_printable(&printable, text, n, false);
	return holds_message(handoff, buf_str(&said), said.len) ||
	       holds_message(handoff, buf_str(&printable), printable.len);
}
