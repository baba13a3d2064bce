/*
 * client.h - the model clients: render a request, parse a streamed answer, for each API one.
 *
 * A message is rendered once; a request is a concatenation: head (model, system, tools), the
 * messages joined by commas, tail (max_tokens, thinking, ...). Cache markers are inserted at splice
 * points while copying, so the message bytes themselves never change (I4). Answers are parsed
 * incrementally: any split of the bytes gives the same result (traps 52, 54).
 *
 * Deviations of servers are rows of one table (model/dialect.c), never scattered ifs.
 * No I/O here: bytes in, bytes out.
 */
#ifndef BATON_AGENT_MODEL_CLIENT_H
#define BATON_AGENT_MODEL_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/message.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/model_table.h"

struct model_usage {   /* tokens; wire.md 1.3, 2.2, traps 80, 82 */
	int64_t input; /* fresh: neither read from nor written to the cache */
	int64_t cache_read;
	int64_t cache_write; /* all of it, any lifetime */
	int64_t cache_write_1h;
	int64_t output;
	int64_t thinking; /* part of output; 0 if not told */
	bool known;	  /* the server said something */
};
static inline int64_t usage_prompt(const struct model_usage *u)
{
	return u->input + u->cache_read + u->cache_write;
}

enum stop_reason {
	STOP_NONE, /* none seen: the stream is incomplete */
	STOP_END,  /* end_turn, stop, stop_sequence */
	STOP_TOOL_USE,
	STOP_MAX_TOKENS, /* length, max_tokens: the last block is cut */
	STOP_WINDOW,	 /* model_context_window_exceeded */
	STOP_REFUSAL,	 /* refusal, content_filter */
	STOP_PAUSE,	 /* pause_turn: send the content back and go on */
	STOP_ERROR,	 /* finish_reason "error", insufficient_system_resource: retryable */
};
const char *stop_reason_name(enum stop_reason reason);

struct tool_spec { /* what the model sees of a tool */
	const char *name;
	const char *description;
	const char *schema; /* JSON text of the input schema */
};

struct request_params {
	const char *system; /* may be NULL */
	const struct tool_spec *tools;
	size_t n_tools;
	const char *effort;	 /* "low", "medium", "high" or NULL */
	int64_t thinking_budget; /* tokens within max_tokens; 0: the model's default */
	double temperature;	 /* < 0: not sent; never sent where the model refuses it */
	/* H2: the provider clears old results from this many tokens of input on; 0: it does not. Only where the
	 * model offers it. */
	int64_t edits_trigger;
	int64_t edits_keep, edits_least;  /* newest results that stay; least tokens to be gained */
	const char *const *edits_exclude; /* names of tools, NULL-terminated; NULL: none */
	bool cache_1h; /* H17: the markers of tools and system prompt live for an hour */
};

struct model_client;

/* The head is rendered here once and stays for the client's life (W11). model is borrowed and must
 * outlive the client. */
int client_new(const struct model *model, const struct request_params *params,
	       struct model_client **ret, struct err *err);
void client_free(struct model_client *client); /* NULL allowed */

/* The server knows no context_management: it is not sent again. False if it was not sent. */
bool client_drop_edits(struct model_client *client);

/* Renders one message (sets rendered, rendered_len, splice). No-op if it was rendered. One neutral
 * message may become several of the provider's (tool results of the OpenAI form). Blank messages
 * render to 0 bytes and are left out of requests. */
void client_render_message(struct model_client *client, struct message *message);

/* Appends the whole request body. `view` is the list of messages in order; max_tokens goes into the
 * tail. Markers: on tools, on system, on the last message's splice point and at most one more (an
 * append of more than 20 blocks gets an intermediate one; else `pinned`, an index into view, -1:
 * none), never more than 4, none if the model's cache is not explicit (H17). *ret_beta is the value
 * of the anthropic-beta header or NULL (static string). */
int client_render_request(struct model_client *client, struct message *const *view, size_t n_view,
			  int64_t max_tokens, long pinned, struct buf *out, const char **ret_beta,
			  struct err *err);

/* A request that another process sent ended with this message: the provider may hold its prefix (H17). */
void client_sent_end(struct model_client *client, const struct message *message);

struct stream_parser;

struct stream_events { /* all optional */
	void (*on_text)(void *arg, const char *text, size_t n);
	void (*on_thinking)(void *arg, const char *text, size_t n);
	void (*on_call)(void *arg, const char *name); /* a tool call begins */
};

struct stream_parser *stream_new(const struct model_client *client,
				 const struct stream_events *events, void *arg);
void stream_free(struct stream_parser *parser); /* NULL allowed */
/* What came is void (again): back to the state after stream_new. */
void stream_reset(struct stream_parser *parser);
/* -1: the bytes are not of this protocol (ERR_INVALID), the answer is too large (ERR_TOO_LARGE), or
 * an in-band error came (err->message has its text): ERR_BUSY if a new attempt may cure it,
 * ERR_DENIED if it is the server's last word on this request. */
int stream_feed(struct stream_parser *parser, const char *bytes, size_t n, struct err *err);

struct stream_answer {
	struct message *message; /* owned by the caller; may have no blocks */
	enum stop_reason stop;
	struct model_usage usage;
	char *refusal;	     /* explanation if stop is STOP_REFUSAL; else NULL; caller frees */
	int64_t cleared;     /* tokens of results that the provider left out of this prompt (H2) */
	bool dropped_blocks; /* input_transformations told of dropped thinking blocks */
};
/* End of stream. ERR_CLOSED if it is incomplete (no stop reason seen: wire.md 4 rule 5, trap 60).
 * Cut blocks have `partial`; calls whose arguments are no JSON object have `partial` too and keep
 * the text (they are answered with an error result, never run: traps 37, 39). "" and null arguments
 * are {} (43). */
int stream_finish(struct stream_parser *parser, struct stream_answer *ret, struct err *err);
void stream_answer_release(struct stream_answer *answer);

#endif
