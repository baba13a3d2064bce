/*
 * snip.c - finds superseded rounds in one walk from the newest to the oldest.
 *
 * What stays is entered in a table by its call, and what a call is about; an older call looks there for a
 * later one that makes it needless. Since only calls of rounds that stay are entered, the reason for a
 * removal is always still in the view. A round goes only if all of its calls go. The table holds pointers
 * into the view, and texts are compared only where the calls are the same, so a walk over thousands of
 * rounds reads little more than their inputs.
 */
#include "agent/context/snip.h"

#include <stdio.h>

#include "agent/context/about.h"
#include "agent/context/price.h"
#include "agent/context/rounds.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"

#define MARKER_TOKENS 60  /* about: what a removed stretch leaves behind */
#define NAMES_MAX     240 /* bytes of a marker's list */
#define CHAIN_MAX     16  /* later calls about one thing that are looked at */
#define OUTCOME_MAX   4096

/* A call of a round that stays. */
struct later {
	uint64_t key;
	const struct block *call, *result;
	int64_t first, last; /* lines that a read shows; last 0: not known */
	size_t next;	     /* index + 1 of an older entry of the same slot; 0: none */
};

struct table {
	struct later *list;
	size_t n, cap;
	size_t *slots; /* index + 1 */
	size_t n_slots;
};

/* A stretch of rounds that goes; the message before it gets the marker. */
struct stretch {
	size_t from, to, rounds;
};

struct search {
	const struct rung_input *in;
	struct table table;
	struct stretch *list; /* from the newest to the oldest */
	size_t n, cap;
	int64_t gain;
};

/* ---- the table ---- */

static uint64_t key_of(char purpose, const char *tool, const char *text, size_t n)
{
	uint64_t parts[3] = {(uint64_t)purpose, text_hash(tool, strlen(tool)), text_hash(text, n)};

	return text_hash(parts, sizeof(parts));
}

static uint64_t same_call(const struct block *call)
{
	return key_of('=', call->name, call->text, call->text_len);
}

static uint64_t same_target(const struct block *call, const char *target)
{
	return key_of('@', call->name, target, strlen(target));
}

static void enter(struct table *t, struct later later)
{
	size_t *slot = &t->slots[later.key % t->n_slots];

	later.next = *slot;
	MEM_GROW(t->list, t->cap, t->n + 1);
	t->list[t->n++] = later;
	*slot = t->n;
}

static const struct later *at(const struct table *t, size_t index_plus_1)
{
	return index_plus_1 ? &t->list[index_plus_1 - 1] : NULL;
}

/* ---- what a read shows ---- */

static const char *last_line(const struct block *b)
{
	const char *end = b->text + b->text_len, *lf;

	while (end > b->text && end[-1] == '\n')
		end--;
	lf = memrchr(b->text, '\n', (size_t)(end - b->text));
	return lf ? lf + 1 : b->text;
}

/* The note at the end says which lines were shown; without one the file was shown whole. */
static void lines_of(const struct block *result, int64_t *first, int64_t *last)
{
	const char *note = last_line(result);
	long long from, to, all;

	*first = 1;
	*last = INT64_MAX;
	if (sscanf(note, "[lines %lld to %lld of %lld", &from, &to, &all) == 3) {
		*first = from;
		*last = to;
	} else if (*note == '[') {
		*last = 0;
	}
}

/* A result that was cut or cleared says less than it seems to. */
static bool is_whole(const struct block *result)
{
	return !about_is_cleared(result) &&
	       !memmem(result->text, result->text_len, "left out", strlen("left out"));
}

/* ---- is a call superseded? ---- */

/* An interrupted call may have had effects although it failed. */
static bool failed_without_effect(const struct block *call, const struct block *result)
{
	AUTO_FREE char *command = NULL;

	if (result->text_len > OUTCOME_MAX ||
	    text_find_nocase(result->text, result->text_len, "interrupted"))
		return false;
	if (about_kind(call->name) != ABOUT_RUN)
		return about_kind(call->name) != ABOUT_OTHER;
	command = about_target(call);
	return command && about_only_looks(command);
}

/* Failed again in the same words, or succeeded since at the same thing. */
static bool failure_is_past(const struct table *t, const struct block *call,
			    const struct block *result)
{
	uint64_t same = same_call(call), about;
	AUTO_FREE char *target = NULL;
	size_t seen = 0;

	if (!failed_without_effect(call, result))
		return false;
	for (const struct later *l = at(t, t->slots[same % t->n_slots]); l && seen++ < CHAIN_MAX;
	     l = at(t, l->next))
		if (l->key == same && (!l->result->is_error ||
				       (l->result->text_len == result->text_len &&
					!memcmp(l->result->text, result->text, result->text_len))))
			return true;
	target = about_kind(call->name) == ABOUT_SEARCH ? NULL : about_target(call);
	if (!target)
		return false;
	about = same_target(call, target);
	for (const struct later *l = at(t, t->slots[about % t->n_slots]);
	     l && seen++ < 2 * CHAIN_MAX; l = at(t, l->next))
		if (l->key == about && !l->result->is_error)
			return true;
	return false;
}

static bool made_again(const struct table *t, const struct block *call)
{
	uint64_t same = same_call(call);
	size_t seen = 0;

	for (const struct later *l = at(t, t->slots[same % t->n_slots]); l && seen++ < CHAIN_MAX;
	     l = at(t, l->next))
		if (l->key == same && !l->result->is_error && is_whole(l->result))
			return true;
	return false;
}

static bool shown_again(const struct table *t, const struct block *call, const struct block *result)
{
	AUTO_FREE char *target = about_target(call);
	int64_t first, last;
	uint64_t about;
	size_t seen = 0;

	if (!target)
		return false;
	lines_of(result, &first, &last);
	about = same_target(call, target);
	for (const struct later *l = at(t, t->slots[about % t->n_slots]);
	     last && l && seen++ < CHAIN_MAX; l = at(t, l->next))
		if (l->key == about && !l->result->is_error && l->last && l->first <= first &&
		    l->last >= last && is_whole(l->result))
			return true;
	return false;
}

static bool is_superseded(const struct table *t, const struct block *call,
			  const struct block *result)
{
	AUTO_FREE char *command = NULL;

	if (result->is_error)
		return failure_is_past(t, call, result);
	switch (about_kind(call->name)) {
	case ABOUT_READ: return made_again(t, call) || shown_again(t, call, result);
	case ABOUT_SEARCH: return made_again(t, call);
	case ABOUT_RUN:
		if (!made_again(t, call))
			return false;
		command = about_target(call);
		return command && about_only_looks(command);
	case ABOUT_CHANGE:
	case ABOUT_OTHER: break;
	}
	return false;
}

/* ---- rounds ---- */

/* Results stand in the order of the calls, with images between them. */
static const struct block *result_of(const struct message *results, const struct block *call)
{
	for (size_t i = 0; i < results->n_blocks; i++)
		if (results->blocks[i].kind == BLOCK_TOOL_RESULT &&
		    !strcmp(results->blocks[i].id, call->id))
			return &results->blocks[i];
	return NULL;
}

static void enter_call(struct table *t, const struct block *call, const struct block *result)
{
	struct later later = {.key = same_call(call), .call = call, .result = result, .first = 1};
	AUTO_FREE char *target = NULL;

	if (about_kind(call->name) == ABOUT_OTHER)
		return;
	if (about_kind(call->name) == ABOUT_READ && !result->is_error)
		lines_of(result, &later.first, &later.last);
	enter(t, later);
	/* A search's pattern alone does not say where it looked. */
	target = about_kind(call->name) == ABOUT_SEARCH ? NULL : about_target(call);
	if (!target)
		return;
	later.key = same_target(call, target);
	enter(t, later);
}

static void enter_round(struct table *t, const struct view *view, const struct view_round *r)
{
	const struct message *answer = view->list[r->from];

	if (r->to < r->from + 2)
		return;
	for (size_t i = 0; i < answer->n_blocks; i++) {
		const struct block *call = &answer->blocks[i], *result;

		if (call->kind == BLOCK_TOOL_CALL &&
		    (result = result_of(view->list[r->from + 1], call)))
			enter_call(t, call, result);
	}
}

/* Calls and results and no decision. */
static bool may_go(const struct view *view, const struct view_round *r)
{
	const struct message *answer = view->list[r->from];

	if (!round_is_calls(view, r))
		return false;
	for (size_t i = 0; i < answer->n_blocks; i++) {
		const struct block *b = &answer->blocks[i];

		if (b->kind == BLOCK_TEXT && text_has_substance(b->text, b->text_len))
			return false;
	}
	return true;
}

static bool round_is_superseded(const struct table *t, const struct view *view,
				const struct view_round *r)
{
	const struct message *answer = view->list[r->from];

	for (size_t i = 0; i < answer->n_blocks; i++) {
		const struct block *call = &answer->blocks[i], *result;

		if (call->kind != BLOCK_TOOL_CALL)
			continue;
		result = result_of(view->list[r->from + 1], call);
		if (!result || !is_superseded(t, call, result))
			return false;
	}
	return true;
}

static void add_round(struct search *s, const struct view_round *r)
{
	const struct view *view = s->in->view;
	struct stretch *last = s->n ? &s->list[s->n - 1] : NULL;

	for (size_t i = r->from; i < r->to; i++)
		s->gain += view->list[i]->estimate;
	if (last && last->from == r->to) {
		last->from = r->from;
		last->rounds++;
		return;
	}
	s->gain -= MARKER_TOKENS;
	MEM_GROW(s->list, s->cap, s->n + 1);
	s->list[s->n++] = (struct stretch){.from = r->from, .to = r->to, .rounds = 1};
}

static void search_begin(struct search *s, const struct rung_input *in)
{
	*s = (struct search){.in = in};
	s->table.n_slots = in->view->n + 64;
	s->table.slots = mem_alloc(s->table.n_slots * sizeof(*s->table.slots));
}

static void search_end(struct search *s)
{
	free(s->table.list);
	free(s->table.slots);
	free(s->list);
}

static void find_superseded(struct search *s)
{
	const struct view *view = s->in->view;
	struct view_round r;
	int64_t keep = s->in->knobs->snip_keep;

	for (size_t end = view->n; round_before(view, end, &r); end = r.from) {
		if (keep-- <= 0 && may_go(view, &r) && round_is_superseded(&s->table, view, &r))
			add_round(s, &r);
		else
			enter_round(&s->table, view, &r);
	}
}

/* ---- the marker ---- */

#define MARKER_START "["
#define MARKER_WHAT  " of superseded reads and repeated calls removed here"

/* "3 rounds" of a marker that an earlier snip left at the end of this message; 0: none. */
static size_t earlier_marker(const struct message *m, const char **ret_names)
{
	const struct block *b = m->n_blocks ? &m->blocks[m->n_blocks - 1] : NULL;
	size_t rounds = 0;
	const char *what;

	if (!b || b->kind != BLOCK_TEXT || b->origin != ORIGIN_NUDGE ||
	    sscanf(b->text, MARKER_START "%zu round", &rounds) != 1 ||
	    !(what = strstr(b->text, MARKER_WHAT)))
		return 0;
	*ret_names = what + strlen(MARKER_WHAT);
	return rounds;
}

static void add_name(struct buf *names, const struct block *call)
{
	AUTO_FREE char *target = names->len < NAMES_MAX ? about_target(call) : NULL;
	AUTO_BUF struct buf name = BUF_INIT;

	if (!target)
		return;
	buf_addf(&name, "%s %.*s", call->name,
		 (int)text_floor(target, strlen(target), MIN(strlen(target), (size_t)80)), target);
	if (names->len && strstr(buf_str(names), buf_str(&name)))
		return;
	buf_addf(names, "%s%s", names->len ? ", " : "", buf_str(&name));
}

static void add_names(struct buf *names, const struct view *view, const struct stretch *s)
{
	for (size_t i = s->from; i < s->to; i++)
		for (size_t k = 0; k < view->list[i]->n_blocks; k++)
			if (view->list[i]->blocks[k].kind == BLOCK_TOOL_CALL)
				add_name(names, &view->list[i]->blocks[k]);
}

/* A copy of the message before the stretch, which is the user's, with the marker at its end: behind the
 * results, as a block of baton's own. */
static struct message *marked(const struct view *view, const struct stretch *s)
{
	const struct message *m = view->list[s->from - 1];
	struct message *copy = message_new(m->role);
	AUTO_BUF struct buf names = BUF_INIT;
	AUTO_BUF struct buf text = BUF_INIT;
	const char *before = "";
	size_t earlier = earlier_marker(m, &before), rounds = s->rounds + earlier;

	add_names(&names, view, s);
	buf_addf(&text, MARKER_START "%zu round%s" MARKER_WHAT, rounds, rounds == 1 ? "" : "s");
	if (earlier && strlen(before) > 2 && strlen(before) < NAMES_MAX)
		buf_add(&text, before, strlen(before) - 1);
	if (names.len)
		buf_addf(&text, "%s %s", earlier && strlen(before) > 2 ? "," : ":",
			 buf_str(&names));
	buf_addc(&text, ']');
	for (size_t k = 0; k < m->n_blocks - (earlier ? 1 : 0); k++)
		message_add_block(copy, &m->blocks[k]);
	message_add_text(copy, ORIGIN_NUDGE, text.data, text.len);
	copy->round = m->round;
	return copy;
}

/* ---- the rung ---- */

static void apply(struct search *s, struct rung_input *in)
{
	struct epoch_edit edit;

	rung_begin(in, "snip", &edit);
	for (size_t i = 0; i < s->n; i++) {
		epoch_change(&edit, s->list[i].from, s->list[i].to, NULL);
		epoch_change(&edit, s->list[i].from - 1, s->list[i].from,
			     marked(in->view, &s->list[i]));
	}
	epoch_apply(&edit, &in->done);
}

bool snip_wanted(const struct rung_input *in)
{
	return in->knobs->snip && ledger_results(in->ledger) >= in->budget->clear_gain;
}

int snip_run(struct rung_input *in, int64_t *ret_freed, struct err *err)
{
	struct search s;

	search_begin(&s, in);
	find_superseded(&s);
	if (s.n && rung_earns(in, s.list[s.n - 1].from - 1, s.gain))
		apply(&s, in);
	search_end(&s);
	*ret_freed = in->done.freed;
	return 0;
}

/* Effects are looked at here, since nothing says that a later call made this one needless. */
static bool has_effects(const struct view *view, const struct view_round *r)
{
	const struct message *answer = view->list[r->from];

	for (size_t i = 0; i < answer->n_blocks; i++) {
		const struct block *call = &answer->blocks[i];
		enum about_kind kind = about_kind(call->name);
		AUTO_FREE char *command = NULL;

		if (call->kind != BLOCK_TOOL_CALL || kind == ABOUT_READ || kind == ABOUT_SEARCH)
			continue;
		command = kind == ABOUT_RUN ? about_target(call) : NULL;
		if (!command || !about_only_looks(command))
			return true;
	}
	return false;
}

int snip_rounds(struct rung_input *in, int64_t first, int64_t last, size_t *ret_kept,
		int64_t *ret_freed, struct err *err)
{
	struct search s;
	struct view_round r;
	int64_t keep = in->knobs->snip_keep;
	size_t kept = 0;

	in->done = (struct epoch_done){.freed = 0};
	search_begin(&s, in);
	for (size_t end = in->view->n; round_before(in->view, end, &r); end = r.from) {
		int64_t round = in->view->list[r.from]->round;
		bool newest = keep-- > 0;

		if (round < first || round > last)
			continue;
		if (newest || !may_go(in->view, &r) || has_effects(in->view, &r))
			kept++;
		else
			add_round(&s, &r);
	}
	if (s.n)
		apply(&s, in);
	search_end(&s);
	*ret_kept = kept;
	*ret_freed = in->done.freed;
	return 0;
}
