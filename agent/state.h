/*
 * state.h - all that one agent is, in one struct, for the files that make up its loop.
 *
 * The files of the loop: round.c decides what comes next, ask.c makes one model call, calls.c runs
 * the tool calls of an answer, report_tool.c delivers. They share this struct and nothing else;
 * every part in it is a module of its own with its own header.
 *
 * Return values in these files: 0 go on; 1 the work has ended and `outcome` says how; -1 an error
 * that agent.c turns into an outcome (cancelled: stopped; closed: nobody is left to tell; else:
 * failed).
 */
#ifndef BATON_AGENT_STATE_H
#define BATON_AGENT_STATE_H

#include "agent/breaks.h"
#include "agent/checkpoint.h"
#include "agent/compact_return.h"
#include "agent/context/breaker.h"
#include "agent/context/counts.h"
#include "agent/context/budget.h"
#include "agent/context/facts.h"
#include "agent/context/offload.h"
#include "agent/context/prefix.h"
#include "agent/context/view.h"
#include "agent/context/words.h"
#include "agent/conversation.h"
#include "agent/fork.h"
#include "agent/hooks.h"
#include "agent/instructions.h"
#include "agent/ledger.h"
#include "agent/memory.h"
#include "agent/model/client.h"
#include "agent/occupancy.h"
#include "agent/record.h"
#include "agent/repeat.h"
#include "agent/reset.h"
#include "agent/session_notes.h"
#include "agent/subagents.h"
#include "agent/start.h"
#include "agent/toolbox.h"
#include "agent/transcript.h"
#include "agent/transport.h"
#include "agent/validate.h"
#include "agent/waiter.h"
#include "handoff/outcome.h"

struct outcome {
	enum outcome_status status;
	enum call_class class; /* of the model call that ended it */
	int64_t until;	       /* wall ms at which a limit ends; 0 */
	char reason[512];
};

/* Why the model may only report now. */
enum forced { FORCED_NOT, FORCED_PARENT, FORCED_ROUNDS, FORCED_WINDOW, FORCED_RESET };

struct compact_undo { /* the view before the last compaction; list NULL: there was none */
	struct message **list;
	size_t n, taken, words_shown;
	int64_t epoch; /* that the compaction began */
};

struct agent {
	struct agent_settings *settings;
	struct waiter *waiter;
	struct channel *channel;
	struct transport transport; /* of model calls */
	struct toolbox toolbox;
	char *system;
	struct model_client *client;
	struct model_client *compact_client; /* of settings->compact_model; made when needed */
	struct conversation conversation;
	struct view view;
	struct ledger ledger;
	struct window_budget budget;
	struct breaker breaker;
	struct validator validator;
	struct transcript *transcript;
	struct offload offload;
	struct user_words words;      /* of the user, verbatim (X2) */
	struct working_memory memory; /* the model's own (H18) */
	struct subagents subagents;   /* that it started (A5) */
	struct instructions instructions;
	size_t instructions_told; /* loads that the parent knows of */
	struct repeats repeats;
	struct breaks breaks; /* natural ones (H22) */
	struct record record;
	struct facts facts; /* of the conversation: what a summary is not trusted with (R3) */
	struct checkpoints checkpoints;
	struct agent_hooks hooks;
	struct buf body; /* of the present request */

	enum forced forced;
	char forced_why[256];
	int forced_requests;	   /* made since it is forced */
	int blank, cut, paused;	   /* such answers in a row */
	size_t sent_n, sent_taken; /* of the view that was sent last, ... */
	int64_t provider_cleared;  /* tokens that the provider left out of the last prompt (H2) */
	int64_t sent_epoch;	   /* ... in this epoch */
	int64_t asked_ms;	   /* clock_mono_ms of the last answered request; 0: none (T8) */
	struct session_notes notes;
	struct compact_undo undo;
	struct context_counts counts;
	size_t words_shown;    /* of the user's words, in the heads of the view */
	int64_t compact_base;  /* tokens after the last compaction; 0: there was none */
	int64_t compact_round; /* of it */
	int64_t early_rest;    /* round until which the prices are not asked again */
	struct resets resets;
	struct handoff *handoff;      /* from which this generation began; NULL: none */
	struct fork_point fork;	      /* A2 */
	struct resume_calls *resumed; /* of a generation that was cut off; NULL: a new one */
	int64_t resumes;	      /* times that this generation was resumed (R6) */
	int64_t boundaries;	      /* compactions of this generation that hold (R1) */
	size_t n_compactions;	      /* of this process: the files of compact_review.h */
	bool compact_hold;	      /* after an undo: only a full window compacts */
	int64_t proved_epoch; /* of the view: the user's constraints were found in its request */
	int overflows;	      /* requests in a row that the server found too long */
	bool tried_500;	      /* room was made because of server errors; until an answer comes */
	int wrong_reports;
	bool reported;		    /* the parent has a report on record */
	bool told_to_report;	    /* an answer without calls was answered by the nudge */
	char *end_text;		    /* the best text of such answers: a report by rule takes it */
	struct occupancy occupancy; /* what was told of the window */
	struct prefix prefix;	    /* what the provider's cache should hold (H17) */
	struct compact_account account; /* of the last compaction (H15) */
	struct outcome outcome;
};

/* All parts from a->settings; a->waiter, a->channel (NULL: news goes nowhere) and a->transport are the caller's.
 * Everything that can fail before the first request fails here: a wrong start costs no money. The caller
 * releases, also after a failure. */
int agent_make(struct agent *a, const struct tool *tools, size_t n_tools, struct err *err);
void agent_release(struct agent *a);

/* Sets the outcome, unless there is one, and returns 1. */
int agent_end(struct agent *a, enum outcome_status status, enum call_class class, const char *fmt,
	      ...) __attribute__((format(printf, 4, 5)));

/* The thresholds by the settings and what the model's window is known to be now. ERR_USAGE. */
int agent_set_budget(struct agent *a, struct err *err);
/* A user message goes into the conversation: rendered, booked, in the transcript's batch. */
void agent_add_user(struct agent *a, struct message *m);
/* A nudge of baton as a new message. */
void agent_nudge(struct agent *a, const char *text);

#endif
