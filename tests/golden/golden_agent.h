/*
 * golden_agent.h - an agent that lives through a golden conversation.
 *
 * It is the product's agent: its loop's parts, its rungs, its compaction, its checks. Only the two ends are
 * ours: model calls go to a transport that answers from the conversation (and a summariser where a summary
 * is asked for), and tools are rows of a table that give the recorded result.
 */
#ifndef TEST_GOLDEN_AGENT_H
#define TEST_GOLDEN_AGENT_H

#include "summarisers.h"

#include "agent/context/rungs.h"
#include "agent/state.h"

/* Answers a call that a real model is wanted for: appends the bytes of a stream of the model's API. -1: it failed. */
typedef int (*golden_model)(void *arg, const struct call_request *request, const char *body,
			    size_t n, struct buf *stream);

/* What is broken on purpose behind a compaction, to show that the test notices. */
enum golden_mutant {
	MUTANT_NONE,
	MUTANT_NO_WORDS,  /* the block of the user's words is gone */
	MUTANT_CUT_WORDS, /* its last third is gone */
	MUTANT_NO_FACTS,  /* what is put back by rule is gone */
	MUTANT_NO_CHECK,  /* rules that the summary made up stay in it */
	MUTANTS,
};

struct golden_options {
	enum golden_mutant mutant;
	enum summariser summariser;
	uint64_t seed;
	int64_t window;
	golden_model model; /* writes summaries and the answer at the end; NULL: the script does */
	struct model
		*model_row;  /* of that model: taken over; NULL: one for tests, of the openai API */
	const char *context; /* members of the start document's `context`, JSON text; NULL: none */
	void *arg;
	/* A generation behind a reset: its number, the folder of all of them, and the document it begins from. 0 and
	 * NULL: the first, in a folder of its own. */
	int64_t generation;
	const char *home, *handoff;
	/* Runs a call that is not recorded (golden_agent_act). */
	void (*live)(void *arg, const char *tool, struct json_object *input,
		     struct tool_result *ret);
};

struct golden_call { /* events NULL: none is open */
	const struct call_events *events;
	void *user;
	struct call_request request; /* its texts are the product's constants */
	int64_t req;
};

struct golden_agent {
	struct agent agent;
	const struct golden *golden;
	struct golden_options options;
	char *folder;
	size_t at;	       /* the next step */
	int played;	       /* rounds of the conversation, here and in generations before */
	const char *judgement; /* the answer to handoff_ask; NULL: there is none */
	const struct golden_step *step;
	const char *live; /* the tool of a call that options.live runs */
	uint64_t random;
	struct lies lies;
	int compactions;
	struct buf body;	     /* of the newest request for the agent itself */
	struct buf question;	     /* of the newest compaction request */
	struct golden_call calls[2]; /* that is waited for; in the background */
	int64_t req;
};

/* The tests fail here if the product refuses anything. */
struct golden_agent *golden_agent_new(const struct golden *golden,
				      const struct golden_options *options);
void golden_agent_free(struct golden_agent *ga);
/* Goes on until `round` is over. Notes are kept (H4) unless the context says `"notes":false`. */
void golden_agent_play(struct golden_agent *ga, int round);
/* A round whose call is made by options.live: this one, or with NULL what the model answers. False: it called
 * nothing. */
bool golden_agent_act(struct golden_agent *ga, const struct golden_step *step);
/* The bytes of an answer with this call, or without one, as the model's API has them. */
void golden_agent_stream(struct golden_agent *ga, const struct golden_step *call, struct buf *out);
/* A compaction now: by the notes if there are any and they can be used, else by a summary. */
void golden_agent_compact(struct golden_agent *ga);
/* One rung of the ladder on its own; returns the tokens that it freed. */
int64_t golden_agent_rung(struct golden_agent *ga, const struct rung *rung);
/* Makes the next request without playing its answer: ga->body. With a live model the answer's text is
 * appended to `answer` (NULL: not wanted). `ask`: words of the user before it; NULL: none. */
void golden_agent_request(struct golden_agent *ga, const char *ask, struct buf *answer);

#endif
