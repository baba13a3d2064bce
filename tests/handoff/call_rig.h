/*
 * call_rig.h - agent, parent and gateway of the call protocol in one process, for test_call.c.
 *
 * Two socketpairs, three sides, no loop: each side reads only when the test says so, so that a test
 * can lay frames across each other in any order (a late mark, a cancel that crosses an end).
 * rig_settle lets all of them run until nothing moves.
 */
#ifndef BATON_TESTS_CALL_RIG_H
#define BATON_TESTS_CALL_RIG_H

#include "base/buf.h"
#include "handoff/call.h"

struct rig_call { /* what the agent saw of one call */
	struct rig *rig;
	char fill;  /* the body of attempt n is made of the letter fill + n - 1 */
	size_t len; /* of the body */
	char *body;
	int bodies; /* times that the body was asked for */
	struct buf answer;
	int agains, waits, ends;
	int last_again;
	char reason[32];
	char outcome[16];
	char message[128];
	enum call_class class;
	int status;
	int64_t used, limit, until, ttft_ms;
	size_t fail_at; /* on_data fails when the answer is that long; 0: never */
};

struct rig {
	struct channel *agent, *parent_a; /* the pair between agent and parent */
	struct channel *parent_g, *gateway;
	struct call_callers *callers;
	struct call_relay *relay;
	bool hold; /* the parent keeps requests */
	struct call_entry *opened;
	struct err parent_err; /* of the last refused request */
	int closed;	       /* entries that drop_agent and gateway_died gave to fn */

	/* The gateway's one call. */
	int64_t number;
	int64_t attempt; /* of the request frame */
	char agent_name[40];
	struct call_window window;
	struct buf body;
	int requests, body_ends, cancels, aborts;
	bool eat; /* consume body bytes at once */
};

void rig_init(struct rig *rig);
void rig_release(struct rig *rig);
void rig_settle(struct rig *rig);
void rig_new_gateway(struct rig *rig); /* a fresh pair, given to the relay */
void rig_kill_gateway(struct rig *rig);

/* One pass of one side: write what is queued, read what is there. -1 with err as the channel says.
 */
int rig_run(struct channel *ch, struct err *err);

int64_t rig_start(struct rig *rig, struct rig_call *call, size_t len);
void rig_call_release(struct rig_call *call);

void rig_grant(struct rig *rig, int attempt);
void rig_again(struct rig *rig, int attempt, const char *reason);
/* Sends n bytes of the letter within credit as the agent returns it. */
void rig_answer(struct rig *rig, char letter, size_t n);
void rig_end(struct rig *rig, const char *fields, const char *message);

#endif
