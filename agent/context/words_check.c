/*
 * words_check.c - proves the presence of every constraint, and finds what a summary made up (X2, R4).
 *
 * Presence is a matter of bytes: a constraint stands in the body of the request as the JSON writer
 * escapes it, or it does not. Invention is a matter of words: a sentence of the summary that our own
 * rules call a constraint must be one that somebody said (said.h). In doubt it is invented: dropping a true
 * sentence of a summary costs nothing, since the words themselves stand in the request.
 */
#include "agent/context/words.h"

#include <ctype.h>

#include "agent/context/said.h"
#include "handoff/sentences.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"

#define TAG "user-words"

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

struct speech { /* what rules may come from */
	const struct said *words, *also;
};

static void check_unit(const struct speech *speech, const char *summary, struct text_span span,
		       struct user_words_findings *ret)
{
	const char *text = summary + span.at;

	if (reads_as_constraint(text, span.n) &&
	    !said_follows(speech->words, speech->also, text, span.n))
		find(ret, fault_of(text, span.n), 0, span);
}

static void check_units(const struct speech *speech, const struct user_words_check *check,
			struct user_words_findings *ret)
{
	struct sentences s;

	sentences_split(check->summary, check->summary_len, &s);
	for (size_t i = 0; i < s.n; i++) {
		struct text_span span = {.at = s.list[i].at};
		size_t end = s.list[i].at + s.list[i].n;

		for (; s.list[i].kind != SENTENCE_CODE && span.at < end; span.at += span.n + 1) {
			span.n = unit_len(check->summary + span.at, end - span.at);
			check_unit(speech, check->summary, span, ret);
		}
	}
	sentences_release(&s);
}

/* The ledger's own table takes what is new; words that were put together by hand have none. */
static void check_summary(const struct user_words *words, const struct user_words_check *check,
			  struct user_words_findings *ret)
{
	struct said *own = words->said ? NULL : said_new();
	struct said *said = own ? own : words->said;
	struct said *also = check->n_also ? said_new() : NULL;

	for (size_t i = said_texts(said); i < words->n; i++)
		said_add(said, words->list[i].text, words->list[i].n);
	for (size_t i = 0; i < check->n_also; i++)
		said_add(also, check->also[i], strlen(check->also[i]));
	check_units(&(struct speech){said, also}, check, ret);
	said_free(own);
	said_free(also);
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
