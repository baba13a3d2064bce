/*
 * rounds.c - finds rounds, and knows a decision when it sees one, rather too often than too seldom.
 */
#include "agent/context/rounds.h"

#include "base/memory.h"
#include "base/text.h"

#define CHATTER_MAX 120 /* bytes: "Let me look at the tests first." and the like */

bool round_before(const struct view *view, size_t end, struct view_round *ret)
{
	size_t i = end;

	while (i-- > 1) {
		if (view->list[i]->role != MESSAGE_ASSISTANT)
			continue;
		/* After a pause the answer goes on in the next message: one round. */
		while (i > 1 && view->list[i - 1]->role == MESSAGE_ASSISTANT)
			i--;
		*ret = (struct view_round){.from = i, .to = end};
		return true;
	}
	return false;
}

size_t rounds_begin(const struct view *view)
{
	size_t i = 0;

	while (i < view->n && view->list[i]->role != MESSAGE_ASSISTANT)
		i++;
	return i;
}

static bool is_results(const struct message *m)
{
	for (size_t i = 0; i < m->n_blocks; i++) {
		const struct block *b = &m->blocks[i];

		if (b->kind != BLOCK_TOOL_RESULT && !(b->kind == BLOCK_IMAGE && b->id))
			return false;
	}
	return true;
}

bool round_is_calls(const struct view *view, const struct view_round *round)
{
	const struct message *answer = view->list[round->from];

	return round->to == round->from + 2 && message_count(answer, BLOCK_TOOL_CALL) &&
	       !message_count(answer, BLOCK_OPAQUE) &&
	       view->list[round->from + 1]->role == MESSAGE_USER &&
	       is_results(view->list[round->from + 1]);
}

bool text_has_substance(const char *text, size_t n)
{
	static const char *const signs[] = {
		"because",
		"decid",
		"decision",
		"instead",
		"must",
		"never",
		"should",
		"not ",
		"n't",
		"use ",
		"rather",
		"chose",
		"avoid",
		"keep",
		"reject",
		"fail",
		"wrong",
		"found",
		"cause",
		"constraint",
		"\xe5\x9b\xa0\xe4\xb8\xba", /* because */
		"\xe5\x86\xb3\xe5\xae\x9a", /* decide */
		"\xe4\xb8\x8d",		    /* not */
		"\xe6\x94\xb9\xe7\x94\xa8", /* use instead */
		"\xe9\x87\x87\xe7\x94\xa8", /* adopt */
		"\xe5\xbf\x85\xe9\xa1\xbb", /* must */
	};

	if (n > CHATTER_MAX)
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(signs); i++)
		if (text_find_nocase(text, n, signs[i]))
			return true;
	return false;
}
