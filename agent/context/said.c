/*
 * said.c - sentences as the words that carry their meaning, and the comparison of two.
 *
 * A statement follows from a sentence if it drops words of it, but adds none, keeps their order and loses no
 * "not"; so "never push" does not allow for "push", nor "use tabs, never spaces" for "never use tabs". Words
 * that only hold a sentence together are left out, and endings are cut.
 *
 * What was said is split once, when it is said: the notes of a session are checked every few rounds, and a
 * person who talks along says more than all notes together.
 */
#include "agent/context/said.h"

#include <ctype.h>
#include <stdlib.h>

#include "handoff/sentences.h"
#include "base/memory.h"
#include "base/text.h"

#define TOKEN_NOT  ((uint64_t)1)
#define TOKEN_STOP ((uint64_t)2) /* a clause ends */

/* ---- a sentence as the words that carry its meaning ---- */

struct gist {
	uint64_t *list;
	size_t n, cap;
	size_t nots, words;
};

static const char *const nots[] = {"not",     "no",	"never",  "don't",     "dont",
				   "without", "avoid",	"nor",	  "none",      "nothing",
				   "nobody",  "cannot", "forbid", "forbidden", "prohibited",
				   "refrain", "stop",	"neither"};

static const char *const idle[] = {
	"a",	       "an",	       "the",	   "to",	  "of",		  "in",
	"on",	       "at",	       "is",	   "are",	  "be",		  "it",
	"this",	       "that",	       "and",	   "or",	  "but",	  "with",
	"for",	       "from",	       "by",	   "as",	  "any",	  "ever",
	"please",      "user",	       "user's",   "users",	  "said",	  "says",
	"wants",       "want",	       "asked",	   "told",	  "requires",	  "required",
	"hard",	       "rule",	       "rules",	   "constraint",  "constraints",  "recorded",
	"requirement", "requirements", "must",	   "should",	  "shall",	  "has",
	"have",	       "will",	       "would",	   "can",	  "may",	  "need",
	"needs",       "do",	       "does",	   "did",	  "you",	  "i",
	"we",	       "they",	       "he",	   "she",	  "his",	  "her",
	"their",       "our",	       "your",	   "my",	  "all",	  "stated",
	"explicitly",  "explicit",     "strictly", "instruction", "instructions", "preference",
	"preferences", "also",	       "so",	   "then",	  "there",	  "always",
	"important",   "note",	       "remember", "key",	  "section",	  "insists",
	"insisted",    "messages",     "message",  "pending",	  "tasks",	  "primary",
	"request",     "intent",       "summary",  "following",	  "were",	  "was"};

static const char *const idle_chinese[] = {"用户", "使用者", "要求", "约束", "规则", "说过",
					   "说",   "明确",   "必须", "务必", "需要", "应该",
					   "应当", "请",     "的",   "了",   "吧",   "也",
					   "就",   "都",     "要",   "会",   "记录", "强制"};

static const char *const nots_chinese[] = {"不", "别", "勿", "禁", "未", "无", "没", "莫"};

static bool is_in(const char *s, size_t n, const char *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strlen(list[i]) == n && !memcmp(list[i], s, n))
			return true;
	return false;
}

static void gist_add(struct gist *g, uint64_t token)
{
	/* "must not" and "never ever not" are one negation each, an empty clause is none. */
	if (g->n && g->list[g->n - 1] == token && token <= TOKEN_STOP)
		return;
	MEM_GROW(g->list, g->cap, g->n + 1);
	g->list[g->n++] = token;
	g->nots += token == TOKEN_NOT;
	g->words += token > TOKEN_STOP;
}

/* "pushing", "pushes", "pushed", "push" are one word; so are "use" and "using". */
static size_t stem_len(const char *s, size_t n)
{
	if (n > 5 && !memcmp(s + n - 3, "ing", 3))
		n -= 3;
	else if (n > 4 && (!memcmp(s + n - 2, "ed", 2) || !memcmp(s + n - 2, "es", 2)))
		n -= 2;
	else if (n > 3 && s[n - 1] == 's' && s[n - 2] != 's')
		n -= 1;
	if (n > 2 && s[n - 1] == 'e')
		n--;
	return n;
}

static void add_latin(struct gist *g, const char *s, size_t n)
{
	while (n && strchr("./-'", s[n - 1]))
		n--;
	while (n && strchr("./-'#~+", *s)) {
		s++;
		n--;
	}
	if (!n || (!g->n && strspn(s, "0123456789.") >= n)) /* a section's or an item's number */
		return;
	if (is_in(s, n, nots, ARRAY_SIZE(nots)) || (n > 3 && !memcmp(s + n - 3, "n't", 3)))
		gist_add(g, TOKEN_NOT);
	else if (!is_in(s, n, idle, ARRAY_SIZE(idle)))
		gist_add(g, text_hash(s, stem_len(s, n)) | 4);
}

static size_t idle_len(const char *s, size_t n)
{
	for (size_t i = 0; i < ARRAY_SIZE(idle_chinese); i++) {
		size_t len = strlen(idle_chinese[i]);

		if (n >= len && !memcmp(s, idle_chinese[i], len))
			return len;
	}
	return 0;
}

static bool is_wide_mark(const char *s)
{
	static const char *const marks[] = {"，", "。", "、", "；", "：", "！", "？",
					    "“",  "”",	"（", "）", "「", "」"};

	return is_in(s, 3, marks, ARRAY_SIZE(marks));
}

/* One character that is not ASCII; returns its bytes. */
static size_t add_wide(struct gist *g, const char *s, size_t n)
{
	size_t len = idle_len(s, n);

	if (len)
		return len;
	len = text_ceil(s, n, 1);
	if (len == 3 && is_wide_mark(s))
		gist_add(g, TOKEN_STOP);
	else if (is_in(s, len, nots_chinese, ARRAY_SIZE(nots_chinese)))
		gist_add(g, TOKEN_NOT);
	else
		gist_add(g, text_hash(s, len) | 4);
	return len;
}

static bool is_word_char(unsigned char c)
{
	return isalnum(c) || (c && strchr("_./-'+#@~", c));
}

static void gist_make(const char *text, size_t n, struct gist *g)
{
	AUTO_BUF struct buf low = BUF_INIT;

	*g = (struct gist){.list = NULL};
	for (size_t i = 0; i < n; i++) {
		bool apostrophe = n - i >= 3 && !memcmp(text + i, "’", 3);

		buf_addc(&low, apostrophe ? '\'' : (char)tolower((unsigned char)text[i]));
		i += apostrophe ? 2 : 0;
	}
	for (size_t i = 0; i < low.len;) {
		size_t k = i;

		while (k < low.len && is_word_char((unsigned char)low.data[k]))
			k++;
		if (k > i)
			add_latin(g, low.data + i, k - i);
		else if ((unsigned char)low.data[i] >= 0x80)
			k = i + add_wide(g, low.data + i, low.len - i);
		else if (low.data[k++] != ' ' && low.data[i] && strchr(",;:()\n", low.data[i]))
			gist_add(g, TOKEN_STOP);
		i = k;
	}
}

/* ---- was it said? ---- */

/* Are the words of a[from..to) in b[at..end), in order? A "not" of b that stands before one of them in its
 * clause is one of them: "mark it, and do not skip it" does not follow from "do not mark it and do not skip it". */
static bool follows(const struct gist *a, size_t from, size_t to, const struct gist *b, size_t at,
		    size_t end)
{
	for (size_t i = from; i < to; i++) {
		bool after_not = i > from && a->list[i - 1] == TOKEN_NOT; /* any of b's will do */
		bool lost = false;

		if (a->list[i] == TOKEN_STOP)
			continue;
		for (; at < end && b->list[at] != a->list[i]; at++)
			lost = (b->list[at] == TOKEN_NOT && !after_not) ||
			       (lost && b->list[at] != TOKEN_STOP);
		if (at++ >= end || lost)
			return false;
	}
	return true;
}

static bool has_not(const struct gist *g, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++)
		if (g->list[i] == TOKEN_NOT)
			return true;
	return false;
}

static size_t clause_end(const struct gist *g, size_t at)
{
	while (at < g->n && g->list[at] != TOKEN_STOP)
		at++;
	return at;
}

/* A part of a statement against one sentence that was said: both negate or neither does. */
static bool part_in_sentence(const struct gist *a, size_t from, size_t to, const struct gist *said)
{
	bool negated = has_not(a, from, to);

	if (has_not(said, 0, said->n) == negated && follows(a, from, to, said, 0, said->n))
		return true;
	for (size_t at = 0; at < said->n; at = clause_end(said, at) + 1)
		if (has_not(said, at, clause_end(said, at)) == negated &&
		    follows(a, from, to, said, at, clause_end(said, at)))
			return true;
	return false;
}

/* ---- the table ---- */

struct said {
	struct gist *list; /* by sentence */
	size_t n, cap;
	size_t texts;
};

struct said *said_new(void)
{
	return mem_alloc(sizeof(struct said));
}

void said_free(struct said *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n; i++)
		free(s->list[i].list);
	free(s->list);
	free(s);
}

size_t said_texts(const struct said *s)
{
	return s->texts;
}

void said_add(struct said *s, const char *text, size_t n)
{
	struct sentences split;

	sentences_split(text, n, &split);
	MEM_GROW(s->list, s->cap, s->n + split.n);
	for (size_t i = 0; i < split.n; i++)
		gist_make(text + split.list[i].at, split.list[i].n, &s->list[s->n++]);
	sentences_release(&split);
	s->texts++;
}

static bool part_was_said(const struct said *s, const struct gist *a, size_t from, size_t to)
{
	for (size_t i = 0; s && i < s->n; i++)
		if (part_in_sentence(a, from, to, &s->list[i]))
			return true;
	return false;
}

static bool was_said(const struct said *s, const struct said *also, const struct gist *a,
		     size_t from, size_t to)
{
	return part_was_said(s, a, from, to) || part_was_said(also, a, from, to);
}

bool said_follows(const struct said *s, const struct said *also, const char *text, size_t n)
{
	struct gist a;
	bool found;

	gist_make(text, n, &a);
	found = !a.words || was_said(s, also, &a, 0, a.n);
	/* Two sentences of the user in one of the summary. */
	if (!found) {
		found = true;
		for (size_t at = 0; found && at < a.n; at = clause_end(&a, at) + 1)
			found = was_said(s, also, &a, at, clause_end(&a, at));
	}
	free(a.list);
	return found;
}
