/*
 * memory_index.c - the lines of MEMORY.md: which are taken, which are the same, which are over.
 *
 * What comes in was written by a model that had read anything: it is cleaned to one line, bounded, and what
 * looks like a secret never gets into a file that later prompts are made of. Sameness is by shingles (H20):
 * the three-byte pieces of two texts, in any language.
 */
#include "orchestrator/memory_index.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "base/text.h"

#define LINE_MAX_BYTES 500
#define TEMPORARY_DAYS 14
#define SAME_PERCENT   60 /* of the pieces of both */
#define DATE_LEN       10

/* ---- dates ---- */

static bool is_date(const char *s)
{
	for (int i = 0; i < DATE_LEN; i++)
		if (i == 4 || i == 7 ? s[i] != '-' : !isdigit((unsigned char)s[i]))
			return false;
	return true;
}

static void days_later(const char *today, int days, char out[11])
{
	struct tm tm = {.tm_hour = 12};
	char *end = strptime(today, "%Y-%m-%d", &tm);
	time_t at = end ? timegm(&tm) + (time_t)days * 86400 : 0;

	gmtime_r(&at, &tm);
	strftime(out, DATE_LEN + 1, "%Y-%m-%d", &tm);
}

/* "until 2026-12-31" anywhere in the text; else a word that says that it is for now. */
static void find_end(const char *text, const char *today, char out[11])
{
	static const char *const words[] = {"workaround",     "temporar", "for now",
					    "for the moment", "临时",	  "暂时"};
	const char *until = text_find_nocase(text, strlen(text), "until ");

	*out = 0;
	if (until && strlen(until) >= 6 + DATE_LEN && is_date(until + 6)) {
		snprintf(out, DATE_LEN + 1, "%.10s", until + 6);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (text_find_nocase(text, strlen(text), words[i]))
			days_later(today, TEMPORARY_DAYS, out);
}

/* ---- what does not belong there ---- */

static bool is_word_char(char c)
{
	return isalnum((unsigned char)c) || strchr("+/=_-", c);
}

/* A run of such characters with figures and both cases, as keys are. */
static bool is_random(const char *s, size_t n)
{
	size_t digits = 0, upper = 0, lower = 0;

	for (size_t i = 0; i < n; i++) {
		digits += isdigit((unsigned char)s[i]) != 0;
		upper += isupper((unsigned char)s[i]) != 0;
		lower += islower((unsigned char)s[i]) != 0;
	}
	return n >= 24 && digits >= 3 && lower >= 3 && (upper >= 3 || digits >= 8);
}

static bool is_hex(const char *s, size_t n)
{
	size_t digits = 0;

	for (size_t i = 0; i < n; i++) {
		if (!isxdigit((unsigned char)s[i]) || isupper((unsigned char)s[i]))
			return false;
		digits += isdigit((unsigned char)s[i]) != 0;
	}
	return digits > 1 && digits < n;
}

/* Starts of keys as their makers give them out. */
static bool has_key_start(const char *word, size_t n)
{
	static const char *const starts[] = {"sk-",    "ghp_",	"gho_",	 "ghs_", "github_pat_",
					     "glpat-", "xoxb-", "xoxp-", "AKIA", "ASIA",
					     "AIza",   "eyJ",	"npm_",	 "hf_",	 "pypi-"};

	for (size_t i = 0; i < ARRAY_SIZE(starts); i++) {
		size_t len = strlen(starts[i]);

		if (n >= len + 12 && !memcmp(word, starts[i], len))
			return true;
	}
	return false;
}

/* Behind the name of a secret: does its value follow? ": x", "=x", " is x". */
static bool value_follows(const char *s)
{
	s += strspn(s, "s\"'` ");
	if (!strncmp(s, "is", 2) && s[2] && strchr(" :=", s[2]))
		return true;
	if (!strncmp(s, "：", 3) || !strncmp(s, "是", 3))
		return true;
	return (*s == ':' || *s == '=') && s[1 + strspn(s + 1, " \"'`")];
}

static bool names_secret(const char *text)
{
	static const char *const names[] = {"password",	  "passwd",  "passphrase", "secret",
					    "token",	  "api_key", "api key",	   "apikey",
					    "credential", "密码",    "口令"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		for (const char *at = text; (at = text_find_nocase(at, strlen(at), names[i]));) {
			at += strlen(names[i]);
			if (value_follows(at))
				return true;
		}
	}
	return false;
}

/* scheme://user:word@host */
static bool has_login(const char *text)
{
	const char *at = strstr(text, "://");
	size_t n = at ? strcspn(at + 3, "/ ") : 0;

	return at && memchr(at + 3, '@', n) && memchr(at + 3, ':', n);
}

static enum memory_verdict judge_words(const char *text)
{
	enum memory_verdict verdict = MEMORY_ADDED;

	for (const char *s = text; *s;) {
		size_t n = 0;

		while (s[n] && is_word_char(s[n]))
			n++;
		if (has_key_start(s, n) || (is_random(s, n) && !is_hex(s, n)))
			return MEMORY_SECRET;
		if (n >= 7 && n <= 64 && is_hex(s, n))
			verdict = n > 40 ? MEMORY_SECRET : MEMORY_VOLATILE;
		s += n ? n : 1;
	}
	return verdict;
}

static enum memory_verdict judge(const char *text)
{
	if (strstr(text, "-----BEGIN") || names_secret(text) || has_login(text))
		return MEMORY_SECRET;
	return judge_words(text);
}

/* ---- sameness ---- */

#define PIECES_MAX LINE_MAX_BYTES

struct pieces {
	uint32_t list[PIECES_MAX];
	size_t n;
};

static int compare_pieces(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* The different three-byte pieces, without case, white space and punctuation. */
static void take_pieces(const char *text, struct pieces *p)
{
	uint32_t piece = 0;
	size_t seen = 0, n = 0;

	p->n = 0;
	for (const char *c = text; *c && p->n < PIECES_MAX; c++) {
		unsigned char byte = (unsigned char)*c;

		if (byte < 0x80 && !isalnum(byte))
			continue;
		piece = (piece << 8 | (unsigned)tolower(byte)) & 0xffffff;
		if (++seen >= 3)
			p->list[p->n++] = piece;
	}
	qsort(p->list, p->n, sizeof(*p->list), compare_pieces);
	for (size_t i = 0; i < p->n; i++)
		if (!i || p->list[i] != p->list[i - 1])
			p->list[n++] = p->list[i];
	p->n = n;
}

static bool is_same(const struct pieces *a, const struct pieces *b)
{
	size_t both = 0;

	for (size_t i = 0, k = 0; i < a->n && k < b->n;) {
		both += a->list[i] == b->list[k];
		if (a->list[i] <= b->list[k]) {
			k += a->list[i] == b->list[k];
			i++;
		} else {
			k++;
		}
	}
	return both && both * 100 >= (a->n + b->n - both) * SAME_PERCENT;
}

/* ---- the list ---- */

static void entry_release(struct memory_entry *e)
{
	free(e->line);
}

void memory_index_release(struct memory_index *index)
{
	for (size_t i = 0; i < index->n; i++)
		entry_release(&index->list[i]);
	free(index->list);
	*index = (struct memory_index){.n = 0};
}

static void insert(struct memory_index *index, size_t at, const struct memory_entry *e)
{
	MEM_GROW(index->list, index->cap, index->n + 1);
	memmove(index->list + at + 1, index->list + at, (index->n - at) * sizeof(*index->list));
	index->list[at] = *e;
	index->n++;
}

static void drop(struct memory_index *index, size_t at)
{
	entry_release(&index->list[at]);
	memmove(index->list + at, index->list + at + 1, (index->n - at - 1) * sizeof(*index->list));
	index->n--;
}

/* Knows an entry of ours by its form. */
static struct memory_entry parse(const char *line, size_t n)
{
	static const char *const kinds[] = {"preference: ", "lesson: "};
	struct memory_entry e = {.line = mem_strndup(line, n)};
	const char *s = e.line;

	if (strncmp(s, "- ", 2) != 0 || strlen(s) < 3 + DATE_LEN || !is_date(s + 2) ||
	    s[2 + DATE_LEN] != ' ')
		return e;
	s += 3 + DATE_LEN;
	if (!strncmp(s, "until ", 6) && strlen(s) > 6 + DATE_LEN && is_date(s + 6)) {
		snprintf(e.until, sizeof(e.until), "%.10s", s + 6);
		s += 6 + DATE_LEN;
		s += *s == ' ';
	}
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		size_t len = strlen(kinds[i]);

		if (!strncmp(s, kinds[i], len) && s[len])
			e.text = (size_t)(s + len - e.line);
	}
	return e;
}

size_t memory_index_read(struct memory_index *index, const char *text, size_t n, const char *today)
{
	AUTO_BUF struct buf clean = BUF_INIT;
	size_t over = 0;

	text_printable(&clean, text, n, false);
	for (const char *s = buf_str(&clean), *end = s + clean.len; s < end;) {
		size_t len = strcspn(s, "\n");
		struct memory_entry e = parse(s, len);

		s += len + 1;
		if (e.text && *e.until && strcmp(e.until, today) < 0) {
			over++;
			entry_release(&e);
		} else {
			insert(index, index->n, &e);
		}
	}
	return over;
}

/* Behind the title and what a person wrote above the first entry. */
static size_t top(const struct memory_index *index)
{
	for (size_t i = 0; i < index->n; i++)
		if (index->list[i].text)
			return i;
	return index->n;
}

enum memory_verdict memory_index_add(struct memory_index *index, const char *kind, const char *text,
				     size_t n, const char *today)
{
	struct memory_entry e = {.text = 0};
	AUTO_BUF struct buf clean = BUF_INIT;
	enum memory_verdict verdict;
	struct pieces mine, other;
	size_t at;

	text_printable(&clean, text, n, true);
	if (!clean.len || clean.len > LINE_MAX_BYTES || strspn(buf_str(&clean), " ") == clean.len)
		return MEMORY_UNFIT;
	verdict = judge(buf_str(&clean));
	if (verdict != MEMORY_ADDED)
		return verdict;
	at = top(index); /* before the entry goes that marks it */
	take_pieces(buf_str(&clean), &mine);
	for (size_t i = 0; i < index->n; i++) {
		const struct memory_entry *old = &index->list[i];

		take_pieces(old->line + old->text, &other);
		if (!is_same(&mine, &other))
			continue;
		verdict = MEMORY_KNOWN;
		if (!old->text)
			return verdict; /* a person's wording stands */
		drop(index, i--);
	}
	find_end(buf_str(&clean), today, e.until);
	e.line = mem_printf("- %s %s%s%s%s: %s", today, *e.until ? "until " : "", e.until,
			    *e.until ? " " : "", kind, buf_str(&clean));
	e.text = strlen(e.line) - clean.len;
	insert(index, at, &e);
	return verdict;
}

/* ---- writing ---- */

static size_t size_of(const struct memory_index *index)
{
	size_t sum = 0;

	for (size_t i = 0; i < index->n; i++)
		sum += strlen(index->list[i].line) + 1;
	return sum;
}

/* What would not be loaded is not kept, if it is ours. */
static void shrink(struct memory_index *index)
{
	for (size_t i = index->n; i-- > 0;)
		if (index->list[i].text &&
		    (index->n > MEMORY_INDEX_LINES || size_of(index) > MEMORY_INDEX_BYTES))
			drop(index, i);
}

void memory_index_write(struct memory_index *index, struct buf *out)
{
	shrink(index);
	for (size_t i = 0; i < index->n; i++)
		buf_addf(out, "%s\n", index->list[i].line);
}

void memory_index_show(const struct memory_index *index, size_t max, struct buf *out)
{
	size_t start = out->len;

	max = MIN(max, (size_t)MEMORY_INDEX_BYTES);
	for (size_t i = 0; i < index->n && i < MEMORY_INDEX_LINES; i++) {
		if (out->len - start + strlen(index->list[i].line) + 1 > max)
			break;
		buf_addf(out, "%s\n", index->list[i].line);
	}
}
