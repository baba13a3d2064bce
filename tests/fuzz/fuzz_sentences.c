/*
 * fuzz_sentences.c - any bytes as a message of a person, and as a model's summary.
 *
 * Properties beside "no crash": sentences are in order, apart, not empty, not longer than they may be,
 * have no blanks at their ends and leave out nothing but blanks; constraints are whole sentences; a text
 * is no invention against itself as what was said; a cleaned summary holds no tag of ours and is not
 * changed by a second cleaning.
 */
#include <ctype.h>

#include "handoff/sentences.h"
#include "agent/context/words.h"
#include "base/memory.h"
#include "fuzz.h"

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void check_blank(const char *text, size_t from, size_t to)
{
	check(from <= to);
	for (size_t i = from; i < to; i++)
		check(isspace((unsigned char)text[i]));
}

static void check_sentences(const char *text, size_t n)
{
	struct sentences s;
	size_t end = 0;

	sentences_split(text, n, &s);
	for (size_t i = 0; i < s.n; i++) {
		const struct sentence *one = &s.list[i];

		check_blank(text, end, one->at);
		check(one->n > 0 && (one->n <= SENTENCE_MAX || one->kind == SENTENCE_CODE));
		check(!isspace((unsigned char)text[one->at + one->n - 1]));
		end = one->at + one->n;
		check(end <= n);
	}
	check_blank(text, end, n);
	sentences_release(&s);
}

static void check_constraints(const char *text, size_t n)
{
	struct constraints c;
	size_t end = 0;

	constraints_find(text, n, &c);
	for (size_t i = 0; i < c.n; i++) {
		check(c.list[i].at >= end && c.list[i].n > 0);
		end = c.list[i].at + c.list[i].n;
		check(end <= n);
	}
	constraints_release(&c);
}

static void check_words(const char *text, size_t n)
{
	struct word word = {.text = (char *)text, .n = n};
	struct user_words words = {.list = &word, .n = 1};
	struct user_words_check in = {.summary = text, .summary_len = n};
	struct user_words_findings f;
	AUTO_BUF struct buf once = BUF_INIT, twice = BUF_INIT;

	user_words_check(&words, &in, &f);
	for (size_t i = 0; i < f.n; i++)
		check(f.list[i].fault == USER_WORDS_FORGED);
	user_words_clean(text, n, &f, &once);
	user_words_findings_release(&f);
	in.summary = buf_str(&once);
	in.summary_len = once.len;
	user_words_check(&words, &in, &f);
	for (size_t i = 0; i < f.n; i++)
		check(f.list[i].fault != USER_WORDS_FORGED);
	user_words_clean(buf_str(&once), once.len, NULL, &twice);
	check(once.len == twice.len && !memcmp(buf_str(&once), buf_str(&twice), once.len));
	user_words_findings_release(&f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = size ? (const char *)data : "";

	check_sentences(text, size);
	check_constraints(text, size);
	check_words(text, size);
	return 0;
}
