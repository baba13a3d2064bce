/*
 * watch_events.c - what the agent tells: rungs by their events.
 *
 * A rung that lands later needs one row here and its row in tally.h.
 */
#include <stdio.h>

#include "base/memory.h"
#include "session.h"

enum event_meaning {
	MEANS_NOTHING,
	MEANS_BREAK,   /* a cache break: the view was rewritten */
	MEANS_COMPACT, /* and that was a compaction */
};

static const struct {
	const char *event, *text; /* text: in the body */
	enum event_meaning meaning;
	enum tally tally; /* TALLY_COUNT: counted elsewhere */
} rows[] = {
	{"compact", "\"trigger\":", MEANS_BREAK, TALLY_COUNT},
	{"compact", "\"kind\":", MEANS_COMPACT, TALLY_COUNT},
	{"compact", "\"trigger\":\"snip\"", MEANS_NOTHING, TALLY_H1_SNIP},
	{"compact", "\"trigger\":\"idle\"", MEANS_NOTHING, TALLY_T8_IDLE},
	{"compact", "\"trigger\":\"clear\"", MEANS_NOTHING, TALLY_H2_CLEAR},
	{"compact", "\"trigger\":\"collapse\"", MEANS_NOTHING, TALLY_H3_COLLAPSE},
	{"compact", "\"trigger\":\"decay\"", MEANS_NOTHING, TALLY_T9_DECAY},
	{"warning", "the last compaction was undone", MEANS_BREAK, TALLY_COUNT},
	{"warning", "a reset is wanted", MEANS_NOTHING, TALLY_BREAKER_OPEN},
};

void watch_event(struct session *s, const char *name, const char *body, size_t n)
{
	struct watch *w = &s->watch;

	if (s->trace && strcmp(name, "tool") != 0 && strcmp(name, "state") != 0)
		printf("  %s %.*s\n", name, (int)MIN(n, (size_t)400), body);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (strcmp(rows[i].event, name) != 0 ||
		    !memmem(body, n, rows[i].text, strlen(rows[i].text)))
			continue;
		if (rows[i].tally != TALLY_COUNT)
			s->tallies->count[rows[i].tally]++;
		w->breaks_told += rows[i].meaning != MEANS_NOTHING;
		if (rows[i].meaning != MEANS_COMPACT)
			continue;
		watch_cause(s, body, n);
		w->compactions++;
		w->all_compactions++;
	}
}
