/*
 * sentences.c - splits a message into sentences.
 *
 * Two levels. Lines first: a fence opens or closes code, > is a quote, a bullet begins an item, an
 * empty line ends a paragraph. Then the text of a paragraph: an end mark ends a sentence where
 * something else follows than the rest of a file name, a version, an address or an abbreviation. A
 * line's end ends a sentence too, unless the line was wrapped: people type one rule a line and leave
 * the full stop out, and a rule that is glued to its neighbour is still whole, while one that is cut
 * in two is not. So where it is unclear nothing is cut.
 */
#include "handoff/sentences.h"

#include <ctype.h>

#include "base/memory.h"
#include "base/text.h"

#define WRAP_BYTES 55  /* shorter lines were not ended by a wrapping editor */
#define QUOTE_MAX  400 /* bytes: a quotation mark without a partner is an inch sign */

struct splitter {
	const char *text;
	size_t n;
	struct sentences *out;
	size_t start; /* of the present sentence; (size_t)-1: none */
	enum sentence_kind kind;
	bool gap; /* an empty line came since the last sentence */
};

#define NO_START ((size_t)-1)

static const char *const abbreviations[] = {
	"e.g", "i.e", "etc", "vs", "cf",  "resp", "approx", "ca",  "mr",   "mrs",  "dr",
	"st",  "no",  "fig", "eq", "sec", "ver",  "max",    "min", "incl", "excl", "z.b"};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\v' || c == '\f';
}

/* ---- what was found ---- */

static void push(struct splitter *s, size_t at, size_t end, bool piece)
{
	struct sentences *o = s->out;

	MEM_GROW(o->list, o->cap, o->n + 1);
	o->list[o->n++] = (struct sentence){
		.at = at, .n = end - at, .kind = s->kind, .follows = !s->gap, .piece = piece};
	s->gap = false;
}

/* Where an overlong sentence is cut: behind a blank or a comma if there is one in its last half. */
static size_t piece_end(const struct splitter *s, size_t at, size_t end)
{
	size_t limit = at + text_floor(s->text + at, end - at, SENTENCE_MAX);

	for (size_t i = limit; i > at + SENTENCE_MAX / 2; i--)
		if (is_blank(s->text[i - 1]) || s->text[i - 1] == ',' || s->text[i - 1] == ';')
			return i;
	/* Bytes that are no UTF-8 have no character to cut at. */
	return limit > at ? limit : at + SENTENCE_MAX;
}

/* Ends the present sentence before `end`. */
static void finish(struct splitter *s, size_t end)
{
	size_t at = s->start;
	bool piece = false;

	s->start = NO_START;
	if (at == NO_START)
		return;
	while (end > at && is_blank(s->text[end - 1]))
		end--;
	while (end > at) {
		size_t stop = end;

		if (end - at > SENTENCE_MAX && s->kind != SENTENCE_CODE)
			stop = piece_end(s, at, end);
		size_t trimmed = stop;
		while (trimmed > at && is_blank(s->text[trimmed - 1]))
			trimmed--;
		if (trimmed > at)
			push(s, at, trimmed, piece);
		piece = true;
		at = stop;
		while (at < end && is_blank(s->text[at]))
			at++;
	}
}

static void begin(struct splitter *s, size_t at, enum sentence_kind kind)
{
	if (s->start != NO_START)
		return;
	s->start = at;
	s->kind = kind;
}

/* ---- end marks ---- */

/* The word before the full stop at `i` is an abbreviation, a number of a list, or one letter. */
static bool is_abbreviation(const struct splitter *s, size_t i)
{
	size_t from = i;

	while (from > s->start && !is_blank(s->text[from - 1]) && s->text[from - 1] != '(' &&
	       i - from < 8)
		from--;
	for (size_t k = 0; k < ARRAY_SIZE(abbreviations); k++) {
		size_t n = strlen(abbreviations[k]);

		if (i - from == n && text_find_nocase(s->text + from, n, abbreviations[k]))
			return true;
	}
	if (i - from == 1 && isalpha((unsigned char)s->text[from]))
		return true;
	if (from != s->start)
		return false;
	for (size_t k = from; k < i; k++)
		if (!isdigit((unsigned char)s->text[k]))
			return false;
	return i > from; /* "3." at the start */
}

static size_t mark_len(const char *p, size_t left, const char *const *marks, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		size_t n = strlen(marks[i]);

		if (left >= n && !memcmp(p, marks[i], n))
			return n;
	}
	return 0;
}

/* Ends of a Chinese or Japanese sentence need no blank behind them. */
static size_t wide_end(const char *p, size_t left)
{
	static const char *const marks[] = {"。", "！", "？", "；"};

	return mark_len(p, left, marks, ARRAY_SIZE(marks));
}

static size_t closer(const char *p, size_t left)
{
	static const char *const marks[] = {"\"", "'",	")",  "]",  "*", "”",
					    "’",  "」", "』", "）", "》"};

	return mark_len(p, left, marks, ARRAY_SIZE(marks));
}

/* Bytes up to the end of the sentence if an end mark stands at `i`, else 0. `end`: of the line. */
static size_t end_here(const struct splitter *s, size_t i, size_t end)
{
	size_t n = wide_end(s->text + i, end - i), k;
	bool wide = n > 0;
	char c = s->text[i];

	if (!wide && c != '.' && c != '!' && c != '?')
		return 0;
	if (!wide && c == '.' && is_abbreviation(s, i))
		return 0;
	k = i + (wide ? n : 1);
	while (k < end) {
		n = closer(s->text + k, end - k);
		if (!n)
			n = wide_end(s->text + k, end - k);
		if (!n && strchr(".!?", s->text[k]) && s->text[k])
			n = 1;
		if (!n)
			break;
		k += n;
	}
	if (wide || k >= end || is_blank(s->text[k]))
		return k - i;
	return 0;
}

/* What must not be cut: `code`, "quoted words", and their Chinese forms. Bytes to skip, or 0. */
static size_t span_here(const struct splitter *s, size_t i, size_t end)
{
	static const char *const pairs[][2] = {{"`", "`"},   {"\"", "\""}, {"“", "”"},
					       {"「", "」"}, {"『", "』"}, {"《", "》"}};

	for (size_t p = 0; p < ARRAY_SIZE(pairs); p++) {
		size_t open = strlen(pairs[p][0]);
		const char *close;

		if (end - i <= open || memcmp(s->text + i, pairs[p][0], open) != 0)
			continue;
		close = memmem(s->text + i + open, MIN(end - i - open, (size_t)QUOTE_MAX),
			       pairs[p][1], strlen(pairs[p][1]));
		return close ? (size_t)(close - s->text) + strlen(pairs[p][1]) - i : 0;
	}
	return 0;
}

/* A quotation that ends in an end mark may end its sentence: what comes next tells. */
static bool quote_ends(const struct splitter *s, size_t i, size_t end)
{
	size_t last = i;

	while (last > s->start && closer(s->text + last - 1, 1))
		last--;
	return last > s->start && strchr(".!?", s->text[last - 1]) && s->text[last - 1] &&
	       i + 1 < end && is_blank(s->text[i]) && isupper((unsigned char)s->text[i + 1]);
}

/* The text of one line, from `at` on. */
static void take_text(struct splitter *s, size_t at, size_t end, enum sentence_kind kind)
{
	size_t i = at;

	while (i < end) {
		size_t n;

		if (s->start == NO_START && is_blank(s->text[i])) {
			i++;
			continue;
		}
		begin(s, i, kind);
		n = span_here(s, i, end);
		if (n) {
			i += n;
			if (quote_ends(s, i, end))
				finish(s, i);
			continue;
		}
		n = end_here(s, i, end);
		i += n ? n : 1;
		if (n) {
			finish(s, i);
			kind = kind == SENTENCE_ITEM ? SENTENCE_PLAIN : kind;
		}
	}
}

/* ---- lines ---- */

static size_t skip_indent(const char *text, size_t at, size_t end)
{
	while (at < end && (text[at] == ' ' || text[at] == '\t'))
		at++;
	return at;
}

/* Length of a fence's row of ` or ~ at the start of a line, 0 if it is none. */
static size_t fence_len(const char *text, size_t at, size_t end)
{
	size_t n = 0;

	at = skip_indent(text, at, end);
	while (at + n < end && (text[at] == '`' || text[at] == '~') && text[at + n] == text[at])
		n++;
	return n >= 3 ? n : 0;
}

/* -, *, +, •, 1., 2), (3), 3、 and a blank where Latin usage asks for one. */
static bool is_item(const char *p, size_t n)
{
	size_t digits = 0, i = 0;

	if (n >= 2 && strchr("-*+", *p) && *p)
		return is_blank(p[1]);
	if (n >= 4 && !memcmp(p, "•", 3))
		return true;
	if (n && *p == '(')
		i = 1;
	while (i + digits < n && isdigit((unsigned char)p[i + digits]))
		digits++;
	if (!digits || digits > 3 || i + digits >= n)
		return false;
	p += i + digits;
	n -= i + digits;
	if ((n >= 3 && (!memcmp(p, "、", 3) || !memcmp(p, "．", 3))) ||
	    (n >= 3 && !memcmp(p, "）", 3)))
		return true;
	return n >= 2 && (*p == '.' || *p == ')') && is_blank(p[1]);
}

/* Does the sentence go on in the line at `at`? Only where the line before was full, or ended with a
 * comma, and what comes looks like the middle of a sentence. */
static bool goes_on(const struct splitter *s, size_t line_before, size_t end_before, size_t at)
{
	unsigned char c = (unsigned char)s->text[at];

	while (end_before > line_before && is_blank(s->text[end_before - 1]))
		end_before--;
	if (end_before > line_before && strchr(",(-", s->text[end_before - 1]) &&
	    s->text[end_before - 1])
		return true;
	if (end_before >= line_before + 3 && !memcmp(s->text + end_before - 3, "，", 3))
		return true;
	if (end_before > line_before && s->text[end_before - 1] == ':')
		return false;
	return end_before - line_before >= WRAP_BYTES && (islower(c) || c >= 0x80);
}

/* A fenced block from its first line at `at`; returns the offset behind it. One without an end goes
 * to the end of the text, as every renderer has it. */
static size_t take_fence(struct splitter *s, size_t at, size_t n_fence)
{
	size_t line = at;
	char mark = s->text[skip_indent(s->text, at, s->n)];

	finish(s, at);
	begin(s, at, SENTENCE_CODE);
	for (bool first = true; line < s->n; first = false) {
		const char *nl = memchr(s->text + line, '\n', s->n - line);
		size_t end = nl ? (size_t)(nl - s->text) : s->n,
		       row = fence_len(s->text, line, end);
		size_t from = skip_indent(s->text, line, end);

		line = nl ? end + 1 : s->n;
		if (!first && row >= n_fence && s->text[from] == mark &&
		    skip_indent(s->text, from + row, end) >=
			    end - (end > from && s->text[end - 1] == '\r'))
			break;
	}
	finish(s, line);
	return line;
}

static void take_line(struct splitter *s, size_t line_before, size_t line, size_t end)
{
	size_t at = skip_indent(s->text, line, end);
	enum sentence_kind kind = SENTENCE_PLAIN;

	if (at == end || (at + 1 == end && s->text[at] == '\r')) {
		finish(s, line);
		s->gap = true;
		return;
	}
	if (s->text[at] == '>')
		kind = SENTENCE_QUOTE;
	else if (is_item(s->text + at, end - at))
		kind = SENTENCE_ITEM;
	if (s->start != NO_START && (kind != SENTENCE_PLAIN || s->kind == SENTENCE_QUOTE ||
				     !goes_on(s, line_before, line ? line - 1 : 0, at)))
		finish(s, line);
	take_text(s, at, end, kind);
}

void sentences_split(const char *text, size_t n, struct sentences *ret)
{
	struct splitter s = {.text = text, .n = n, .out = ret, .start = NO_START, .gap = true};
	size_t line = 0, before = 0;

	*ret = (struct sentences){.list = NULL};
	while (line < n) {
		const char *nl = memchr(text + line, '\n', n - line);
		size_t end = nl ? (size_t)(nl - text) : n;
		size_t fence = fence_len(text, line, end);

		if (fence) {
			before = line;
			line = take_fence(&s, line, fence);
			continue;
		}
		take_line(&s, before, line, end);
		before = line;
		line = nl ? end + 1 : n;
	}
	finish(&s, n);
}

void sentences_release(struct sentences *sentences)
{
	free(sentences->list);
	*sentences = (struct sentences){.list = NULL};
}
