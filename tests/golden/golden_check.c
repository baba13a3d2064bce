/*
 * golden_check.c - see golden_check.h.
 */
#include "golden_check.h"

#include <string.h>

#include "base/json.h"
#include "base/memory.h"

bool golden_holds(const char *body, size_t n, const char *text)
{
	AUTO_BUF struct buf escaped = BUF_INIT;

	json_write_string(&escaped, text, strlen(text));
	return memmem(body, n, escaped.data + 1, escaped.len - 2) != NULL;
}

static bool holds_fact(const struct fact *fact, const char *body, size_t n)
{
	for (size_t i = 0; i < fact->n; i++)
		if (!golden_holds(body, n, fact->texts[i]))
			return false;
	return true;
}

void golden_check(const struct golden *golden, int round, const char *body, size_t n,
		  const char *who, struct golden_score *score)
{
	for (size_t i = 0; i < golden->n_facts; i++) {
		const struct fact *f = &golden->facts[i];

		if (f->at > round)
			continue;
		score->all[f->class]++;
		if (holds_fact(f, body, n))
			score->found[f->class]++;
		else
			buf_addf(&score->missing, "%s %s: %s (round %d): %.70s\n", golden->name,
				 who, fact_class_name(f->class), f->at, f->texts[0]);
	}
}

void golden_check_lies(const char *const *lies, size_t n_lies, const char *body, size_t n,
		       const char *who, struct golden_score *score)
{
	for (size_t i = 0; i < n_lies; i++) {
		if (!golden_holds(body, n, lies[i]))
			continue;
		score->invented++;
		buf_addf(&score->missing, "%s: INVENTED: %s\n", who, lies[i]);
	}
}

void golden_score_add(struct golden_score *sum, const struct golden_score *score)
{
	for (size_t i = 0; i < FACT_CLASSES; i++) {
		sum->found[i] += score->found[i];
		sum->all[i] += score->all[i];
	}
	sum->invented += score->invented;
	buf_add(&sum->missing, score->missing.data, score->missing.len);
}

void golden_score_release(struct golden_score *score)
{
	buf_release(&score->missing);
	*score = (struct golden_score){.invented = 0};
}

int golden_recall(const struct golden_score *score, unsigned classes)
{
	size_t found = 0, all = 0;

	for (size_t i = 0; i < FACT_CLASSES; i++) {
		if (!(classes & 1u << i))
			continue;
		found += score->found[i];
		all += score->all[i];
	}
	return all ? (int)(found * 100 / all) : 100;
}
