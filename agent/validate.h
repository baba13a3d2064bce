/*
 * validate.h - the check that every request passes before it is sent (I2).
 *
 * The rules hold for every provider: the first message is the user's; every tool call is answered
 * by the next message with exactly one result, results first; two assistant messages follow each
 * other only after server tool blocks (pause_turn); no blank text; valid UTF-8; a cut call only
 * with an error result. A violation is our own bug: the agent ends with a report of the place
 * rather than with a session that the provider refuses for ever.
 *
 * The check is incremental: messages are immutable, so what passed once is not looked at again as
 * long as the view only grows.
 */
#ifndef BATON_AGENT_VALIDATE_H
#define BATON_AGENT_VALIDATE_H

#include <stddef.h>
#include <stdint.h>

#include "agent/message.h"
#include "base/err.h"

struct validator {
	size_t n;	   /* messages of the view that passed */
	uint64_t last_uid; /* of view[n - 1] */
};

/* Checks what is new in the view, or all of it if it is not the old one with something appended.
 * ERR_INVALID names the message and the rule. */
int validator_check(struct validator *validator, struct message *const *view, size_t n,
		    struct err *err);
/* All of it, whatever passed before. */
int validate_all(struct message *const *view, size_t n, struct err *err);

/* Is this call answered by that message? */
const struct block *validate_find_result(const struct message *results, const char *call_id);

/* Repair: a user message that answers each call of `assistant` which `results` (may be NULL) does
 * not answer, with an error result of this text, after the results that are there. NULL if nothing
 * is missing. The new message holds copies; the caller owns it. */
struct message *validate_close_calls(const struct message *assistant, const struct message *results,
				     const char *text);

#endif
