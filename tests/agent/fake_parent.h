/*
 * fake_parent.h - a parent and gateway in one, for an agent in a process of its own.
 *
 * It forks, runs agent_main in the child over a socketpair, hands over a start document and answers
 * the agent's model calls from a script, as bytes of the provider's stream in small pieces through
 * the call protocol. All that the agent sent is kept for the test to look at.
 */
#ifndef TEST_FAKE_PARENT_H
#define TEST_FAKE_PARENT_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/json.h"
#include "handoff/call.h"

#define FAKE_MAX 64

enum fake_kind {
	FAKE_ANSWER, /* a whole answer */
	FAKE_CUT,    /* the answer without its last part, and still `ok` */
	FAKE_STALL,  /* half an answer, and nothing more */
	FAKE_AGAIN,  /* half an answer, `again`, then the whole one */
	FAKE_FAIL,   /* end: failed with class `text` */
	FAKE_500,    /* `again` because of HTTP 500, for ever */
};

#define FAKE_ZERO INT64_MAX

struct fake_call_state { /* of an open call */
	int64_t req;	 /* 0: none is open */
	struct call_window window;
	struct buf body;
	int attempt;
	bool answered_again;
};

struct fake_step {
	enum fake_kind kind;
	const char *text;
	const char *calls;     /* lines of "ID TOOL JSON" */
	const char *stop;      /* the provider's word; NULL: by what the answer holds */
	int64_t input, output; /* usage; 0: 100 and 20, -1: none is told, FAKE_ZERO: 0 is told */
	const char *thinking;
};

struct fake_parent {
	const char *api;
	const struct fake_step *script;
	size_t n_script;
	const struct fake_step
		*background; /* the answer to every background call; NULL: it fails */
	/* Hooks, all optional. */
	void (*on_event)(struct fake_parent *p, const char *name, struct json_object *body);
	void (*on_request)(struct fake_parent *p, size_t index);
	void (*on_tick)(struct fake_parent *p); /* a few times a second */
	/* The answer to a `hook` frame, as JSON; NULL: none is sent. */
	const char *(*on_hook)(struct fake_parent *p, const char *event, const char *subject,
			       struct json_object *body);
	/* The answer to the n-th `reset` frame, as JSON; NULL: {"accepted": true}. */
	const char *(*on_reset)(struct fake_parent *p, size_t n, struct json_object *body);
	bool refuse_reports, mute_reports;
	size_t file_limit; /* the largest file that the agent can write; 0: none */
	void *arg;

	pid_t pid;
	struct channel *channel;
	bool closed; /* the agent closed the channel */
	int status;  /* its exit status, -signal */

	struct buf requests[FAKE_MAX]; /* bodies */
	size_t n_requests;
	struct fake_call_state call;  /* the one that a frame is about */
	struct fake_call_state other; /* of the other class: main or background */
	bool in_background;	      /* `call` is the background one */
	struct buf background_body;   /* of the last background call */
	size_t n_background;

	bool hello;
	struct buf hooks; /* "EVENT SUBJECT\n" of each hook that was asked for */
	size_t cancels, usages, estimated_usages, acks;
	struct buf events;	   /* "NAME BODY\n" each */
	struct json_object *reset; /* the body of the last reset frame */
	size_t n_resets;
	struct json_object *report; /* the body of the report frame */
	char *report_call;
	char *result; /* status */
	char *reason;
	struct json_object *result_body;
};

/* document: the start document; NULL: none is sent. */
void fake_start(struct fake_parent *p, const char *document);
/* One look at the channel, a tenth of a second at most. */
void fake_serve(struct fake_parent *p);
/* Serves until the agent has ended; fails the test after 30 s. */
void fake_run(struct fake_parent *p);
void fake_control(struct fake_parent *p, const char *action, const char *reason);
/* With a body of JSON. */
void fake_control_body(struct fake_parent *p, const char *action, const char *body);
void fake_ready(struct fake_parent *p, const char *body);
/* Goes away as a dead parent does, and waits until the agent has ended. */
void fake_die(struct fake_parent *p);
void fake_release(struct fake_parent *p);

/* The i-th request holds / does not hold this text. */
void fake_expect(const struct fake_parent *p, size_t i, const char *text);
void fake_expect_not(const struct fake_parent *p, size_t i, const char *text);
bool fake_event_seen(const struct fake_parent *p, const char *name, const char *text);

#endif
