/*
 * ledger.h - the token ledger: what the window holds, in all and by category (W5, W6).
 *
 * The provider's last usage is the base; what was added since is estimated; what was removed since
 * is subtracted, because usage cannot know of it. Categories are estimates of their own, kept per
 * block: their sum says how the window is divided, `ledger_used` says how full it is. All in
 * tokens.
 */
#ifndef BATON_AGENT_LEDGER_H
#define BATON_AGENT_LEDGER_H

#include <stddef.h>
#include <stdint.h>

#include "agent/context/budget.h"
#include "agent/estimate.h"
#include "agent/message.h"
#include "agent/model/client.h"

enum ledger_category {
	LEDGER_SYSTEM,
	LEDGER_TOOLS,
	LEDGER_INSTRUCTIONS,
	LEDGER_SKILLS, /* nothing yet (M3) */
	LEDGER_ENVIRONMENT,
	LEDGER_USER, /* the user's words and the task */
	LEDGER_ASSISTANT,
	LEDGER_THINKING,
	LEDGER_RESULTS, /* of all tools; by tool: ledger_tool */
	LEDGER_REPORTS, /* of subagents: nothing yet (A4) */
	LEDGER_ATTACHMENTS,
	LEDGER_HOOKS,	/* what hooks printed */
	LEDGER_MEMORY,	/* the model's notes, plan, working memory */
	LEDGER_NOTES,	/* what baton wrote: nudges, job ends */
	LEDGER_SUMMARY, /* of what was compacted away */
	LEDGER_CATEGORIES,
};

struct ledger_tool {
	char *name;
	int64_t tokens;
};

struct ledger {
	struct estimator estimator;
	int64_t base;	 /* prompt and answer of the last usage; 0 before the first */
	int64_t since;	 /* estimate of what was added after it */
	int64_t removed; /* freed by rungs after it */
	int64_t category[LEDGER_CATEGORIES];
	/* W5: the last known prompt, divided among the categories by what they were estimated at. */
	int64_t share[LEDGER_CATEGORIES];
	int64_t share_total;	/* the provider's number; 0 before the first usage */
	int64_t share_estimate; /* what the sum was by our estimate */
	struct ledger_tool *tools;
	size_t n_tools, cap_tools;
	struct text_counts
		unmeasured;	  /* what no usage has covered yet: the next one teaches by it */
	struct text_counts fixed; /* system prompt and tools */
	int64_t text_bytes;	  /* of all but thinking, which a server may strip */
	/* Trap 84: a server that cuts the prompt silently reports the same total every time. */
	int64_t pinned_total;
	int pinned_times;
};

void ledger_init(struct ledger *ledger);
void ledger_release(struct ledger *ledger);

/* The parts of a request that never change: once, at the start. */
void ledger_fixed(struct ledger *ledger, const char *system, const struct tool_spec *tools,
		  size_t n_tools);
/* A user message that was appended: its blocks are estimated once; sets m->estimate. */
void ledger_add(struct ledger *ledger, struct message *m);
/* An answer and the usage of the request that led to it. With usage known the ledger rests on it
 * and the estimator learns; else the answer is estimated like any message. `m` may be NULL (a blank
 * answer that is not kept: its output does not count). */
void ledger_answer(struct ledger *ledger, struct message *m, const struct model_usage *usage);
void ledger_removed(struct ledger *ledger, int64_t tokens);
/* Results of the categories below were cleared by the provider (H2). ledger_removed books the sum. */
void ledger_cleared(struct ledger *ledger, int64_t tokens);
/* An epoch's end (context/epoch.h): the view lost this message, or got that one. Both return its tokens; a
 * block whose estimate is known is not counted again, so the cost is that of what is new. */
int64_t ledger_take_out(struct ledger *ledger, const struct message *m);
int64_t ledger_put_in(struct ledger *ledger, struct message *m);
/* The view was rewritten: everything but the fixed part is counted anew, and no usage is known yet. */
void ledger_restart(struct ledger *ledger, struct message *const *view, size_t n);

int64_t ledger_used(const struct ledger *ledger);
int64_t ledger_results(const struct ledger *ledger); /* of all tools, with their images */
int64_t ledger_tool(const struct ledger *ledger, const char *name);
/* The estimate of a text that is not in the conversation yet. */
int64_t ledger_estimate_text(const struct ledger *ledger, const char *text, size_t n);

/* The window that the server really has, if three usages in a row gave the same total far below
 * what was sent (trap 84); else 0. */
int64_t ledger_learned_window(const struct ledger *ledger);

/* The same of the last usage: ,"by":{...},"results_by_tool":{...} whose sums are the provider's number;
 * nothing before the first. Meant for the moment right after ledger_answer. */
void ledger_write_shares(const struct ledger *ledger, struct buf *out);

/* Appends ,"by":{...},"results_by_tool":{...} for the transcript's request record (W5). */
void ledger_write(const struct ledger *ledger, const struct window_budget *budget,
		  int64_t answer_room, struct buf *out);

#endif
