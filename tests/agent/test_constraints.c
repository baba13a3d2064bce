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

#include "agent/context/constraints.h"
#include "agent/context/sentences.h"
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

/* Figures on sentences that the rules were not written for. */
static void x2_recall_on_80_held_out_sentences(void **state)
{
	measure("constraints-heldout.tsv", 46, 34, 0.90);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(x2_recall_on_200_labelled_sentences),
		cmocka_unit_test(x2_recall_on_the_80_of_the_second_set),
		cmocka_unit_test(x2_recall_on_80_held_out_sentences),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
