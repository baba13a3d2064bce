/*
 * recall_search.c - which passages of the history match, and which of them are best.
 *
 * Words: a passage with more of the different words is better, then one in which they stand closer
 * together, then the newer one. A regular expression: the passage with more matching lines, then the newer.
 * Only as many hits are kept as may be shown, so the size of the history does not matter (X14).
 *
 * Most lines of a long transcript hold none of the words: they are looked at as raw bytes and not parsed.
 * That is exact, because a word without quotes and backslashes stands in JSON text as it is.
 */
#include <string.h>

#include "agent/tools/recall.h"
#include "base/memory.h"
#include "base/text.h"

#define NEAR	       400 /* bytes: words that stand so close count as together */
#define PLACES	       8   /* matches of a word that are looked at for that */
#define EXCERPT_BEFORE 200
#define EXCERPT_AFTER  400
#define ALIKE	       90 /* per cent of what two excerpts say */

struct word {
	struct matcher *matcher;
	bool plain; /* stands in JSON as it is */
};

struct search {
	const struct recall_query *query;
	struct word words[RECALL_WORDS_MAX];
	size_t n_words;
	struct hits found[RECALL_WORDS_MAX]; /* of the passage in hand */
	int (*check)(void *arg, struct err *err);
	void *arg;
	bool failed;
	struct err err;
	struct recall_hits *hits;
};

/* ---- the query ---- */

static bool is_plain_in_json(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (s[i] == '"' || s[i] == '\\' || (unsigned char)s[i] < 0x20)
			return false;
	return true;
}

static int add_word(struct search *s, const char *text, size_t n, bool literal, struct err *err)
{
	struct matcher_opts opts = {.ignore_case = true, .literal = literal};
	struct word *w = &s->words[s->n_words];

	w->matcher = matcher_new(text, n, &opts, err);
	if (!w->matcher)
		return -1;
	w->plain = literal && is_plain_in_json(text, n);
	s->n_words++;
	return 0;
}

static int take_query(struct search *s, struct err *err)
{
	const char *text = s->query->text, *end = text + s->query->n;

	if (s->query->regex)
		return add_word(s, text, s->query->n, false, err);
	while (text < end) {
		const char *start = text;

		while (text < end && !strchr(" \t\r\n", *text))
			text++;
		if (text > start && s->n_words == RECALL_WORDS_MAX)
			return err_set(err, ERR_INVALID, "a query has at most %d words",
				       RECALL_WORDS_MAX);
		if (text > start && add_word(s, start, (size_t)(text - start), true, err) < 0)
			return -1;
		text += text < end;
	}
	return s->n_words ? 0 : err_set(err, ERR_INVALID, "the query is empty");
}

/* ---- matching ---- */

static void fail(struct search *s, const struct err *e)
{
	if (!s->failed)
		s->err = *e;
	s->failed = true;
}

/* All matching lines of each word; how many of the words there are. */
static size_t match_all(struct search *s, const char *text, size_t n)
{
	size_t there = 0;

	for (size_t i = 0; i < s->n_words; i++) {
		struct err e = ERR_INIT;

		s->found[i].count = s->found[i].kept = 0;
		if (matcher_find(s->words[i].matcher, text, n, &s->found[i], s->check, s->arg, &e) <
		    0)
			fail(s, &e);
		there += s->found[i].kept > 0;
	}
	return s->failed ? 0 : there;
}

static bool want_line(const char *line, size_t n, void *arg)
{
	struct search *s = arg;
	struct err e = ERR_INIT;

	if (s->check && s->check(s->arg, &e) < 0)
		fail(s, &e);
	if (s->failed)
		return true; /* on_passage ends it */
	for (size_t i = 0; i < s->n_words; i++) {
		s->found[i].count = s->found[i].kept = 0;
		if (!s->words[i].plain ||
		    matcher_find(s->words[i].matcher, line, n, &s->found[i], NULL, NULL, &e) < 0 ||
		    s->found[i].count)
			return true;
	}
	return false;
}

/* ---- rank ---- */

static size_t distance(size_t a, size_t b)
{
	return a > b ? a - b : b - a;
}

/* How many of the words stand near this place. */
static size_t words_near(const struct search *s, size_t place)
{
	size_t near = 0;

	for (size_t i = 0; i < s->n_words; i++) {
		size_t k = 0, n = MIN(s->found[i].kept, (size_t)PLACES);

		while (k < n && distance(s->found[i].items[k].match_start, place) > NEAR)
			k++;
		near += k < n;
	}
	return near;
}

/* The place round which most words stand. */
static const struct hit *best_place(const struct search *s, size_t *ret_near)
{
	const struct hit *best = NULL;
	size_t most = 0;

	for (size_t i = 0; i < s->n_words; i++) {
		for (size_t k = 0; k < MIN(s->found[i].kept, (size_t)PLACES); k++) {
			size_t near = words_near(s, s->found[i].items[k].match_start);

			if (near > most) {
				most = near;
				best = &s->found[i].items[k];
			}
		}
	}
	*ret_near = most;
	return best;
}

/* Of the same words the user's own message is worth more than a file that was read. */
static uint64_t score_of(const struct search *s, const struct recall_passage *p, size_t there,
			 size_t near)
{
	bool said = !strcmp(p->kind, "text");

	if (s->query->regex)
		return MIN(s->found[0].count, (size_t)1000);
	return (uint64_t)there * 100 + near * 10 + said;
}

/* ---- keeping ---- */

static void hit_release(struct recall_hit *h)
{
	free(h->where);
	free(h->excerpt);
	free(h->said.list);
}

void recall_hits_release(struct recall_hits *hits)
{
	for (size_t i = 0; i < hits->n; i++)
		hit_release(&hits->list[i]);
	free(hits->list);
	*hits = (struct recall_hits){.n = 0};
}

static bool is_before(const struct search *s, const struct recall_hit *a,
		      const struct recall_hit *b)
{
	if (!s->query->newest && a->score != b->score)
		return a->score > b->score;
	return a->order > b->order;
}

static char *where_of(const struct recall_passage *p)
{
	static const struct {
		const char *origin, *who;
	} speakers[] = {{"user", "the user"},
			{"task", "the delegating agent"},
			{"evaluator", "an evaluator"},
			{"model", "you"}};

	if (!strcmp(p->kind, "tool_call"))
		return mem_printf("call of %.60s, call %.80s", p->tool, p->call);
	if (!strcmp(p->kind, "tool_result"))
		return mem_printf("%s of %.60s, call %.80s", p->is_error ? "error" : "result",
				  p->tool, p->call);
	for (size_t i = 0; i < ARRAY_SIZE(speakers); i++)
		if (!strcmp(speakers[i].origin, p->origin))
			return mem_printf("text by %s", speakers[i].who);
	return mem_printf("text by baton (%.20s)", p->origin);
}

static char *excerpt_of(const struct recall_passage *p, const struct hit *at)
{
	size_t from = at->match_start > EXCERPT_BEFORE ? at->match_start - EXCERPT_BEFORE : 0;
	size_t to = MIN(at->match_start + EXCERPT_AFTER, p->n);
	struct buf out = BUF_INIT;

	from = text_ceil(p->text, p->n, from);
	to = text_floor(p->text, p->n, to);
	buf_adds(&out, from ? "..." : "");
	buf_add(&out, p->text + from, to - from);
	buf_adds(&out, to < p->n ? "..." : "");
	return buf_take(&out);
}

/* H20: the same output of ten runs of a test is one find. Of alike ones the first in the wanted order stays. True: h is
 * not it. One that has to give way to h goes, and h takes its place in the count. */
static bool join_alike(struct search *s, struct recall_hit *h)
{
	struct recall_hits *hits = s->hits;

	for (size_t i = 0; i < hits->n; i++) {
		struct recall_hit *other = &hits->list[i];

		if (hashes_alike(&other->said, &h->said) < ALIKE)
			continue;
		hits->total--;
		if (is_before(s, other, h)) {
			other->alike++;
			return true;
		}
		h->alike += other->alike + 1;
		hit_release(other);
		memmove(other, other + 1, (hits->n - i - 1) * sizeof(*other));
		hits->n--;
		return false;
	}
	return false;
}

/* Sorted insertion: the list is as long as what can be shown. */
static void keep(struct search *s, const struct recall_passage *p, const struct hit *at,
		 uint64_t score)
{
	struct recall_hits *hits = s->hits;
	struct recall_hit h = {.generation = p->generation,
			       .round = p->round,
			       .score = score,
			       .order = hits->seen};
	size_t i;

	if (hits->n == hits->keep && !is_before(s, &h, &hits->list[hits->n - 1]))
		return;
	h.excerpt = excerpt_of(p, at);
	shingles_make(h.excerpt, strlen(h.excerpt), &h.said);
	if (join_alike(s, &h)) {
		hit_release(&h);
		return;
	}
	if (hits->n == hits->keep)
		hit_release(&hits->list[--hits->n]);
	MEM_GROW(hits->list, hits->cap, hits->n + 1);
	for (i = hits->n; i > 0 && is_before(s, &h, &hits->list[i - 1]); i--)
		hits->list[i] = hits->list[i - 1];
	h.where = where_of(p);
	h.line = at->line;
	h.lines = text_count_lines(p->text, p->n);
	hits->list[i] = h;
	hits->n++;
}

/* What baton wrote into the conversation stands elsewhere, and what was recalled was found before. */
static bool is_sought(const struct search *s, const struct recall_passage *p)
{
	static const char *const ours[] = {"nudge",  "environment", "instructions",
					   "memory", "attachment",  "summary"};

	for (size_t i = 0; i < ARRAY_SIZE(ours); i++)
		if (!strcmp(p->origin, ours[i]))
			return false;
	if (p->tool && !strcmp(p->tool, "recall"))
		return false;
	return !s->query->tool || (p->tool && !strcmp(p->tool, s->query->tool));
}

static int on_passage(const struct recall_passage *p, void *arg)
{
	struct search *s = arg;
	const struct hit *at;
	size_t there = 0, near;

	if (!s->failed && is_sought(s, p))
		there = match_all(s, p->text, p->n);
	if (s->failed)
		return -1;
	if (!there)
		return 0;
	at = best_place(s, &near);
	s->hits->total++;
	s->hits->seen++;
	keep(s, p, at, score_of(s, p, there, near));
	return 0;
}

/* ---- the search ---- */

static void search_release(struct search *s)
{
	for (size_t i = 0; i < RECALL_WORDS_MAX; i++) {
		matcher_free(s->words[i].matcher);
		free(s->found[i].items);
	}
}

static void drop_first(struct recall_hits *hits, size_t n)
{
	n = MIN(n, hits->n);
	for (size_t i = 0; i < n; i++)
		hit_release(&hits->list[i]);
	if (n)
		memmove(hits->list, hits->list + n, (hits->n - n) * sizeof(*hits->list));
	hits->n -= n;
}

int recall_search(const struct recall_query *query, int (*check)(void *arg, struct err *err),
		  void *arg, struct recall_hits *ret, struct err *err)
{
	struct search s = {.query = query, .check = check, .arg = arg, .hits = ret};
	struct recall_source source = {
		.folder = query->folder,
		.own = query->own,
		.generation = query->generation,
		.want = want_line,
		.on_passage = on_passage,
		.arg = &s,
	};
	int rc;

	*ret = (struct recall_hits){
		.keep = MIN(query->offset + query->limit, (size_t)RECALL_HITS_MAX)};
	rc = take_query(&s, err);
	if (!rc)
		rc = recall_read(&source, err);
	if (s.failed && err)
		*err = s.err;
	ret->bad_lines = source.bad_lines;
	drop_first(ret, query->offset);
	search_release(&s);
	return rc ? -1 : 0;
}
