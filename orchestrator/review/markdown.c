/*
 * markdown.c - see markdown.h. Pure; runs in the parent.
 */
#include "orchestrator/review/markdown.h"

#include <stdbool.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

/* Text inside a paragraph (I12): what could become HTML, a link, an image that a viewer loads, a
 * code span, a table or a block of its own is escaped; emphasis can do no harm and stays. */
void markdown_text(struct buf *out, const char *text)
{
	bool line_start = true;

	for (; *text; text++) {
		if (strchr("\\<>`[]|", *text) || (line_start && strchr("#*+-=~", *text)))
			buf_addc(out, '\\');
		buf_addc(out, *text);
		line_start = *text == '\n' || (line_start && strchr(" \t", *text));
	}
}

/* The same for names of files and the like, which are one line whatever they hold. */
void markdown_word(struct buf *out, const char *text)
{
	AUTO_BUF struct buf line = BUF_INIT;

	text_printable(&line, text, strlen(text), true);
	markdown_text(out, buf_str(&line));
}

/* A fenced block whose fence is longer than any run of backticks inside. */
void markdown_fenced(struct buf *out, const char *text)
{
	size_t longest = 2, run = 0;

	for (const char *p = text; *p; p++) {
		run = *p == '`' ? run + 1 : 0;
		longest = MAX(longest, run);
	}
	for (size_t i = 0; i <= longest; i++)
		buf_addc(out, '`');
	buf_addf(out, "\n%s%s", text, *text && text[strlen(text) - 1] == '\n' ? "" : "\n");
	for (size_t i = 0; i <= longest; i++)
		buf_addc(out, '`');
	buf_addc(out, '\n');
}

void markdown_quote(struct buf *out, const char *text)
{
	AUTO_BUF struct buf clean = BUF_INIT;
	AUTO_BUF struct buf escaped = BUF_INIT;

	text_printable(&clean, text, strlen(text), false);
	markdown_text(&escaped, buf_str(&clean));
	const char *p = buf_str(&escaped);
	while (*p) {
		size_t n = strcspn(p, "\n");
		buf_adds(out, n ? "> " : ">");
		buf_add(out, p, n);
		buf_addc(out, '\n');
		p += n + (p[n] == '\n');
	}
}

/* Length of the backticks at the start of a line, if they are a fence. */
static size_t fence_length(const char *line)
{
	size_t n = strspn(line, "`");

	return n >= 3 ? n : 0;
}

static void plain_line(struct buf *out, const char *line, size_t n)
{
	bool quoted = n > 1 && line[0] == '>' && line[1] == ' ';
	size_t start = strspn(line, " \t");

	for (size_t i = 0; i < n; i++) {
		bool escape = line[i] == '\\' && i + 1 < n &&
			      strchr("\\<>`[]|#*+-=~", line[i + 1]) && (quoted || i > start);
		i += escape;
		buf_addc(out, line[i]);
	}
}

void markdown_plain(struct buf *out, const char *text)
{
	size_t fence = 0;

	while (*text) {
		size_t n = strcspn(text, "\n"), ticks = fence_length(text);
		if (fence > 0 || ticks > 0)
			buf_add(out, text, n);
		else
			plain_line(out, text, n);
		if (fence == 0)
			fence = ticks;
		else if (ticks >= fence && text[ticks] == '\n')
			fence = 0;
		text += n;
		if (*text) {
			buf_addc(out, '\n');
			text++;
		}
	}
}
