/*
 * test_constraints.c - X2: the sentences of a message, and which of them are constraints.
 *
 * Labelled sentences of tests/golden: constraints.tsv was written before the rules, heldout after
 * they were frozen. The figures are printed and guarded; what is labelled as a constraint and not
 * found is printed too.
 */
#include "agent_fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "handoff/constraints.h"
#include "handoff/sentences.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/memory.h"

#ifndef GOLDEN
#error "GOLDEN is the folder of the labelled sentences"
#endif

struct score {
	int hit, missed, extra, right;
};

static void unescape(struct buf *out, const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (s[i] != '\\' || i + 1 == n) {
			buf_addc(out, s[i]);
			continue;
		}
		i++;
		buf_addc(out, s[i] == 'n' ? '\n' : s[i] == 't' ? '\t' : s[i]);
	}
}

static bool is_marked(const struct buf *text)
{
	struct constraints c;
	bool found;

	constraints_find(text->data, text->len, &c);
	found = c.n > 0;
	constraints_release(&c);
	return found;
}

static void take_line(const char *line, size_t n, struct score *all)
{
	AUTO_BUF struct buf text = BUF_INIT;
	const char *tab = memchr(line, '\t', n), *second;
	bool label, marked;

	if (*line == '#' || !tab)
		return;
	second = memchr(tab + 1, '\t', n - (size_t)(tab + 1 - line));
	assert_non_null(second);
	label = *line == '1';
	unescape(&text, second + 1, n - (size_t)(second + 1 - line));
	marked = is_marked(&text);
	struct score *s = &all[tab[1] == 'z'];
	s->hit += label && marked;
	s->missed += label && !marked;
	s->extra += !label && marked;
	s->right += !label && !marked;
	if (label != marked)
		printf("%s: %.*s\n", label ? "missed" : "extra ", (int)n, line);
}

static void measure(const char *name, int want_en, int want_zh, double least)
{
	AUTO_BUF struct buf file = BUF_INIT;
	AUTO_FREE char *path = file_join(GOLDEN, name);
	struct score all[2] = {{.hit = 0}, {.hit = 0}};
	int hit, missed, extra;

	assert_int_equal(file_read(AT_FDCWD, path, 1 << 20, &file, NULL), 0);
	for (size_t at = 0; at < file.len;) {
		const char *nl = memchr(file.data + at, '\n', file.len - at);

		assert_non_null(nl);
		take_line(file.data + at, (size_t)(nl - file.data) - at, all);
		at = (size_t)(nl - file.data) + 1;
	}
	hit = all[0].hit + all[1].hit;
	missed = all[0].missed + all[1].missed;
	extra = all[0].extra + all[1].extra;
	for (int i = 0; i < 2; i++)
		printf("%s %s: recall %d/%d, precision %d/%d\n", name, i ? "zh" : "en", all[i].hit,
		       all[i].hit + all[i].missed, all[i].hit, all[i].hit + all[i].extra);
	printf("%s: recall %.1f %%, precision %.1f %%\n", name, 100.0 * hit / (hit + missed),
	       100.0 * hit / (hit + extra));
	assert_int_equal(all[0].hit + all[0].missed + all[0].extra + all[0].right, want_en);
	assert_int_equal(all[1].hit + all[1].missed + all[1].extra + all[1].right, want_zh);
	assert_true(hit >= least * (hit + missed));
	/* A marking of everything would have this recall too. */
	assert_true(hit >= 0.75 * (hit + extra));
}

static void x2_recall_on_200_labelled_sentences(void **state)
{
	measure("constraints.tsv", 110, 90, 0.98);
}

static void x2_recall_on_the_80_of_the_second_set(void **state)
{
	measure("constraints-second.tsv", 46, 34, 0.97);
}

/* ---- sentences ---- */

struct split {
	const char *text;
	const char *sentences[8];
};

static const struct split splits[] = {
	{"Fix it. Don't push! Ok?", {"Fix it.", "Don't push!", "Ok?"}},
	{"Edit src/main.c and v2.3.1 of lib.so. Then stop.",
	 {"Edit src/main.c and v2.3.1 of lib.so.", "Then stop."}},
	{"Use tools, e.g. awk, i.e. Not sed. See https://x.org/a?b=c.d for it.",
	 {"Use tools, e.g. awk, i.e. Not sed.", "See https://x.org/a?b=c.d for it."}},
	{"Ask Dr. Who. Wait...", {"Ask Dr. Who.", "Wait..."}},
	{"不要推送。用 Go 写！好吗？行；走", {"不要推送。", "用 Go 写！", "好吗？", "行；", "走"}},
	{"She said \"no. Never. Stop.\" to me. Bye.",
	 {"She said \"no. Never. Stop.\" to me.", "Bye."}},
	{"他说“不能。请重试。”怎么办？", {"他说“不能。请重试。”怎么办？"}},
	{"Run `a. b. c` now. Go.", {"Run `a. b. c` now.", "Go."}},
	{"Rules:\n- never push\n  1. use tabs\n2) stop. Now.\n",
	 {"Rules:", "- never push", "1. use tabs", "2) stop.", "Now."}},
	{"never push\nuse tabs\n\n  keep it  ", {"never push", "use tabs", "keep it"}},
	{"This is a line that an editor has wrapped because it was\ntoo long for it. Next.",
	 {"This is a line that an editor has wrapped because it was\ntoo long for it.", "Next."}},
	{"Look:\n```c\nif (x. y) {\n\n}\n```\nGood.",
	 {"Look:", "```c\nif (x. y) {\n\n}\n```", "Good."}},
	{"> he says. So.\n> and more\nRight.", {"> he says.", "So.", "> and more", "Right."}},
	{"~~~\n```\nopen to the end.", {"~~~\n```\nopen to the end."}},
	{" \r\n\t\n", {NULL}},
};

static void x2_sentences_of_a_message(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(splits); i++) {
		struct sentences s;
		size_t n = 0;

		sentences_split(splits[i].text, strlen(splits[i].text), &s);
		for (; n < 8 && splits[i].sentences[n]; n++) {
			AUTO_FREE char *got =
				n < s.n ? mem_strndup(splits[i].text + s.list[n].at, s.list[n].n)
					: mem_strdup("(none)");

			assert_string_equal(got, splits[i].sentences[n]);
		}
		assert_int_equal(s.n, n);
		sentences_release(&s);
	}
}

static void x2_an_overlong_sentence_is_in_pieces(void **state)
{
	AUTO_BUF struct buf text = BUF_INIT;
	struct sentences s;
	struct constraints c;

	for (int i = 0; i < 2000; i++)
		buf_adds(&text, i == 1500 ? "字must字" : "字word ");
	sentences_split(text.data, text.len, &s);
	assert_true(s.n >= text.len / SENTENCE_MAX);
	for (size_t i = 0; i < s.n; i++) {
		assert_true(s.list[i].n <= SENTENCE_MAX);
		assert_int_equal(s.list[i].piece, i > 0);
	}
	sentences_release(&s);
	constraints_find(text.data, text.len, &c);
	assert_int_equal(c.n, 1); /* all of it: a rule is not parted from its exception */
	assert_int_equal(c.list[0].n, text.len - 1);
	constraints_release(&c);
}

static void find_in(const char *text, const char *want)
{
	struct constraints c;

	constraints_find(text, strlen(text), &c);
	if (!want) {
		assert_int_equal(c.n, 0);
	} else {
		assert_int_equal(c.n, 1);
		assert_int_equal(c.list[0].n, strlen(want));
		assert_memory_equal(text + c.list[0].at, want, strlen(want));
	}
	constraints_release(&c);
}

/* A line that announces rules takes them with it: "push" alone says nothing. */
/* An order and a report differ by their subject only. */
static void x2_not_running_is_an_order_or_a_report(void **state)
{
	static const char *const orders[] = {
		"Do not run the migrations.", "Don't run the job again.",
		"Please do not build the image yourself.", "Do not work on main."};
	static const char *const reports[] = {"The tests don't run.", "It does not build.",
					      "They do not work.", "The examples do not compile."};

	for (size_t i = 0; i < ARRAY_SIZE(orders); i++)
		assert_int_equal(constraint_level(orders[i], strlen(orders[i])), CONSTRAINT_CLEAR);
	for (size_t i = 0; i < ARRAY_SIZE(reports); i++)
		assert_int_not_equal(constraint_level(reports[i], strlen(reports[i])),
				     CONSTRAINT_CLEAR);
}

static void x2_a_lead_takes_its_list_with_it(void **state)
{
	find_in("Fix it.\n\nDo not:\n- push\n- fix\n  the docs\n\nThanks!",
		"Do not:\n- push\n- fix\n  the docs");
	find_in("The rules:\n```\nfix(core): x\n```\nThanks!",
		"The rules:\n```\nfix(core): x\n```");
	find_in("The log:\n```\nmust not be null\n```\n", NULL);
	find_in("不要：\n- 推送\n- 改文档\n\n谢谢！", "不要：\n- 推送\n- 改文档");
}

/* A long text was pasted: only what a rule names counts, or it would all be constraints. */
static void x2_pasted_texts_are_marked_by_rules_only(void **state)
{
	AUTO_BUF struct buf text = BUF_INIT;

	while (text.len <= CONSTRAINT_TYPED_MAX)
		buf_adds(&text, "Vue 3 with the composition API.\n");
	buf_adds(&text, "Never push.\n");
	find_in(buf_str(&text), "Never push.");
	find_in("Vue 3 with the composition API.", "Vue 3 with the composition API.");
}

/* ---- figures ---- */

/* Figures on sentences that the rules were not written for. */
static void x2_recall_on_80_held_out_sentences(void **state)
{
	measure("constraints-heldout.tsv", 46, 34, 0.90);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(x2_sentences_of_a_message),
		cmocka_unit_test(x2_an_overlong_sentence_is_in_pieces),
		cmocka_unit_test(x2_a_lead_takes_its_list_with_it),
		cmocka_unit_test(x2_not_running_is_an_order_or_a_report),
		cmocka_unit_test(x2_pasted_texts_are_marked_by_rules_only),
		cmocka_unit_test(x2_recall_on_200_labelled_sentences),
		cmocka_unit_test(x2_recall_on_the_80_of_the_second_set),
		cmocka_unit_test(x2_recall_on_80_held_out_sentences),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
