/*
 * watch_side.c - H11: the calls that compact and keep notes trigger no compaction themselves.
 *
 *   nothing is called while a call is being opened, nor from within its events
 *   the call of a compaction stands alone, and the view does not change while it is under way
 *   a reactive compaction follows trouble with a call of the agent's own, never with one on the side
 *   one at the threshold follows a view above it, one by hand a wish
 *   between two requests there is a bounded number of them
 *
 * That agents share no state is pairs.c's business.
 */
#include <stdlib.h>

#include "base/memory.h"
#include "session.h"

#define SIDE_MOST 16 /* three compactions of five calls, with room */

static void check_alone(struct session *s, const struct server_call *c)
{
	const struct server *v = &s->server;
	const char *name = call_purpose_name(c->purpose);

	if (v->starting)
		watch_fail(s, "H11", "a call (%s) from within the opening of another", name);
	if (v->serving)
		watch_fail(s, "H11", "a call (%s) from within the answer of another", name);
	for (size_t i = 0; i < v->n_open && c->purpose != CALL_BACKGROUND; i++)
		if (v->open[i] != c && v->open[i]->purpose != CALL_BACKGROUND)
			watch_fail(s, "H11", "a call (%s) within a call (%s)", name,
				   call_purpose_name(v->open[i]->purpose));
	for (size_t i = 0; i < v->n_open && c->purpose == CALL_BACKGROUND; i++)
		if (v->open[i] != c && v->open[i]->purpose == CALL_COMPACT)
			watch_fail(s, "H11", "a pass of the notes within a call of a compaction");
}

void watch_call(struct session *s, struct server_call *c)
{
	struct watch *w = &s->watch;

	c->epoch = s->agent.view.epoch;
	check_alone(s, c);
	s->tallies->count[TALLY_APART_CALLS] += c->apart;
	if (c->purpose == CALL_BACKGROUND)
		s->tallies->count[TALLY_BACKGROUND_CALLS]++;
	if (c->purpose != CALL_COMPACT)
		return;
	s->tallies->count[TALLY_SIDE_CALLS]++;
	if (++w->side_calls > SIDE_MOST)
		watch_fail(s, "H11", "%lld calls of compactions without a request in between",
			   (long long)w->side_calls);
}

void watch_call_ends(struct session *s, const struct server_call *c)
{
	if (c->purpose != CALL_BACKGROUND && c->epoch != s->agent.view.epoch)
		watch_fail(s, "H11", "the view was rewritten while a call (%s) was under way",
			   call_purpose_name(c->purpose));
}

void watch_trouble(struct session *s, const struct server_call *c)
{
	s->watch.trouble |= c->purpose == CALL_MAIN;
}

static bool has(const char *body, size_t n, const char *text)
{
	return memmem(body, n, text, strlen(text)) != NULL;
}

static int64_t number(const char *body, size_t n, const char *key)
{
	const char *at = memmem(body, n, key, strlen(key));

	return at ? strtoll(at + strlen(key), NULL, 10) : -1;
}

void watch_cause(struct session *s, const char *body, size_t n)
{
	struct watch *w = &s->watch;
	const struct window_budget *b = &s->agent.budget;
	int64_t before = number(body, n, "\"before\":");

	if (has(body, n, "\"trigger\":\"reactive\"") && !w->trouble)
		watch_fail(s, "H11", "a reactive compaction, and no call of the agent's failed");
	if (has(body, n, "\"trigger\":\"threshold\"") && before <= b->compact)
		watch_fail(s, "H11", "a compaction at %lld tokens, below the threshold of %lld",
			   (long long)before, (long long)b->compact);
	if (has(body, n, "\"trigger\":\"manual\"") && !w->wished)
		watch_fail(s, "H11", "a compaction by hand that nobody asked for");
}
