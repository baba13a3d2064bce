/*
 * words_check.c - proves the presence of every constraint, and finds what a summary made up (X2, R4).
 *
 * Presence is a matter of bytes: a constraint stands in the body of the request as the JSON writer
 * escapes it, or it does not. Invention is a matter of words: a sentence of the summary that our own
 * rules call a constraint must be one that somebody said. It may drop words of its source, but not add
 * any, turn their order, or lose a "not"; so "never push" does not allow for "push", nor "use tabs, never
 * spaces" for "never use tabs". In doubt it is invented: dropping a true sentence of a summary costs
 * nothing, since the words themselves stand in the request.
 */
#include "agent/context/words.h"

#include <ctype.h>

#include "agent/context/sentences.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"

#define TAG	   "user-words"
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

static void gist_release(struct gist *g)
{
	free(g->list);
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

/* All that was said, by sentence: made once for a check. */
struct sayings {
	struct gist *list;
	size_t n, cap;
};

static void sayings_add(struct sayings *s, const char *text, size_t n)
{
	struct sentences split;

	sentences_split(text, n, &split);
	MEM_GROW(s->list, s->cap, s->n + split.n);
	for (size_t i = 0; i < split.n; i++)
		gist_make(text + split.list[i].at, split.list[i].n, &s->list[s->n++]);
	sentences_release(&split);
}

static void sayings_make(struct sayings *s, const struct user_words *words,
			 const struct user_words_check *check)
{
	*s = (struct sayings){.list = NULL};
	for (size_t i = 0; i < words->n; i++)
		sayings_add(s, words->list[i].text, words->list[i].n);
	for (size_t i = 0; i < check->n_also; i++)
		sayings_add(s, check->also[i], strlen(check->also[i]));
}

static void sayings_release(struct sayings *s)
{
	for (size_t i = 0; i < s->n; i++)
		gist_release(&s->list[i]);
	free(s->list);
}

static bool part_was_said(const struct sayings *s, const struct gist *a, size_t from, size_t to)
{
	for (size_t i = 0; i < s->n; i++)
		if (part_in_sentence(a, from, to, &s->list[i]))
			return true;
	return false;
}

static bool was_said(const struct sayings *s, const struct gist *a)
{
	if (!a->words || part_was_said(s, a, 0, a->n))
		return true;
	/* Two sentences of the user in one of the summary. */
	for (size_t at = 0; at < a->n; at = clause_end(a, at) + 1)
		if (!part_was_said(s, a, at, clause_end(a, at)))
			return false;
	return true;
}

/* ---- the summary ---- */

static bool has_word(const char *s, size_t n, const char *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (text_find_nocase(s, n, list[i]))
			return true;
	return false;
}

static enum user_words_fault fault_of(const char *s, size_t n)
{
	static const char *const attributed[] = {
		"user",	      "constraint",  "instruct",  "requirement", "prefer", "rule",
		"told",	      "asked",	     "insist",	  "policy",	 "用户",   "约束",
		"要求",	      "规则",	     "指示",	  "限制",	 "规定",   "forbidden",
		"prohibited", "not allowed", "mandatory", "不允许"};
	static const char *const orders[] = {
		"please ",   "you must", "you may", "you should", "never", "do not", "don't",
		"always",    "use ",	 "only ",   "avoid ",	  "keep ", "no ",    "ensure ",
		"make sure", "must ",	 "不",	    "别",	  "勿",	   "禁",     "必须",
		"务必",	     "只",	 "请",	    "严禁",	  "绝"};

	if (has_word(s, n, attributed, ARRAY_SIZE(attributed)))
		return USER_WORDS_INVENTED_ATTRIBUTED;
	while (n && !isalpha((unsigned char)*s) && (unsigned char)*s < 0x80) {
		s++;
		n--;
	}
	for (size_t i = 0; i < ARRAY_SIZE(orders); i++)
		if (text_find_nocase(s, MIN(n, strlen(orders[i])), orders[i]))
			return USER_WORDS_INVENTED_ORDER;
	return USER_WORDS_INVENTED_STATEMENT;
}

static void find(struct user_words_findings *f, enum user_words_fault fault, size_t word,
		 struct text_span span)
{
	MEM_GROW(f->list, f->cap, f->n + 1);
	f->list[f->n++] = (struct user_words_finding){.fault = fault, .word = word, .span = span};
	if (fault == USER_WORDS_MISSING)
		f->missing++;
	else if (fault != USER_WORDS_INVENTED_STATEMENT)
		f->invented++;
}

/* "The user insists that ...", "User requirement: ...": a rule by its first words, whatever follows. */
static bool is_demand(const char *s, size_t n)
{
	static const char *const verbs[] = {"insist",  "requires", "demand",	  "forbid",
					    "mandate", "prefers",  "requirement", "constraint",
					    "always",  "only",	   "never",	  "must",
					    "坚持",    "要求",	   "规定"};
	size_t head = MIN(n, (size_t)48);

	while (n && strchr("-*# \t0123456789.)", *s)) {
		s++;
		n--;
		head = MIN(n, (size_t)48);
	}
	bool user = (n > 8 && text_find_nocase(s, 8, "user")) || (n > 6 && !memcmp(s, "用户", 6));
	return user && has_word(s, head, verbs, ARRAY_SIZE(verbs));
}

/* A rule in quotation marks is a rule here: a summary quotes the user. */
static bool reads_as_constraint(const char *s, size_t n)
{
	AUTO_BUF struct buf plain = BUF_INIT;

	while (n && (*s == '>' || *s == ' ')) {
		s++;
		n--;
	}
	for (size_t i = 0; i < n; i++) {
		if (s[i] == '"' || s[i] == '`' || s[i] == '*')
			continue;
		if (n - i >= 3 && (!memcmp(s + i, "“", 3) || !memcmp(s + i, "”", 3)))
			i += 2;
		else
			buf_addc(&plain, s[i]);
	}
	return constraint_level(buf_str(&plain), plain.len) == CONSTRAINT_CLEAR ||
	       is_demand(buf_str(&plain), plain.len);
}

/* A model that makes a list writes lines without bullets and full stops: the next one is a sentence of its
 * own if it begins as one. In a wrapped sentence it begins with a small letter. */
static size_t unit_len(const char *s, size_t n)
{
	for (size_t i = 0; i + 1 < n; i++) {
		unsigned char next = (unsigned char)s[i + 1];

		if (s[i] == '\n' && !islower(next) && !isspace(next))
			return i;
	}
	return n;
}

static void check_unit(const struct sayings *said, const char *summary, struct text_span span,
		       struct user_words_findings *ret)
{
	const char *text = summary + span.at;
	struct gist gist;

	if (!reads_as_constraint(text, span.n))
		return;
	gist_make(text, span.n, &gist);
	if (!was_said(said, &gist))
		find(ret, fault_of(text, span.n), 0, span);
	gist_release(&gist);
}

static void check_summary(const struct user_words *words, const struct user_words_check *check,
			  struct user_words_findings *ret)
{
	struct sayings said;
	struct sentences s;

	sayings_make(&said, words, check);
	sentences_split(check->summary, check->summary_len, &s);
	for (size_t i = 0; i < s.n; i++) {
		struct text_span span = {.at = s.list[i].at};
		size_t end = s.list[i].at + s.list[i].n;

		for (; s.list[i].kind != SENTENCE_CODE && span.at < end; span.at += span.n + 1) {
			span.n = unit_len(check->summary + span.at, end - span.at);
			check_unit(&said, check->summary, span, ret);
		}
	}
	sentences_release(&s);
	sayings_release(&said);
}

/* Bytes of "<", blanks, "/", blanks before our tag's name at `s`, 0 if it is not there. */
static size_t tag_len(const char *s, size_t n)
{
	size_t i = 1;

	if (!n || *s != '<')
		return 0;
	while (i < n && (isspace((unsigned char)s[i]) || s[i] == '/'))
		i++;
	if (n - i < strlen(TAG) || !text_find_nocase(s + i, strlen(TAG), TAG))
		return 0;
	return i;
}

static void check_tags(const struct user_words_check *check, struct user_words_findings *ret)
{
	for (size_t i = 0; i < check->summary_len; i++)
		if (tag_len(check->summary + i, check->summary_len - i))
			find(ret, USER_WORDS_FORGED, 0, (struct text_span){.at = i, .n = 1});
}

/* ---- the request ---- */

static bool stands_in(const char *request, size_t n, const char *text, size_t len)
{
	AUTO_BUF struct buf escaped = BUF_INIT;

	json_write_string(&escaped, text, len);
	return memmem(request, n, escaped.data + 1, escaped.len - 2) != NULL;
}

static void check_request(const struct user_words *words, const struct user_words_check *check,
			  struct user_words_findings *ret)
{
	for (size_t i = 0; i < words->n; i++) {
		const struct word *w = &words->list[i];

		for (size_t k = 0; k < w->constraints.n; k++) {
			const struct text_span *c = &w->constraints.list[k];

			if (!stands_in(check->request, check->request_len, w->text + c->at, c->n))
				find(ret, USER_WORDS_MISSING, i, *c);
		}
	}
}

bool user_words_check(const struct user_words *words, const struct user_words_check *check,
		      struct user_words_findings *ret)
{
	*ret = (struct user_words_findings){.list = NULL};
	if (check->request)
		check_request(words, check, ret);
	if (check->summary) {
		check_summary(words, check, ret);
		check_tags(check, ret);
	}
	return !ret->missing && !ret->invented;
}

void user_words_findings_release(struct user_words_findings *findings)
{
	free(findings->list);
	*findings = (struct user_words_findings){.list = NULL};
}

/* ---- a summary that may be used ---- */

/* Bytes of an invented sentence at `at`, 0 if there is none. */
static size_t invented_len(const struct user_words_findings *f, size_t at)
{
	for (size_t i = 0; f && i < f->n; i++)
		if ((f->list[i].fault == USER_WORDS_INVENTED_ATTRIBUTED ||
		     f->list[i].fault == USER_WORDS_INVENTED_ORDER) &&
		    f->list[i].span.at == at)
			return f->list[i].span.n;
	return 0;
}

void user_words_clean(const char *summary, size_t n, const struct user_words_findings *findings,
		      struct buf *out)
{
	for (size_t i = 0; i < n;) {
		size_t skip = invented_len(findings, i);

		if (skip) {
			i += skip;
		} else if (tag_len(summary + i, n - i)) {
			buf_adds(out, "&lt;");
			i++;
		} else {
			buf_addc(out, summary[i++]);
		}
	}
}
