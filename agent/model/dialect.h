/*
 * dialect.h - the deviations of servers from the two protocols, as data (wire.md 4).
 *
 * One row per server. A row says how a request must differ from the protocol's plain form. Answers
 * need no row: the parsers accept every known form from everybody, because servers stand behind
 * proxies and nobody knows which one really speaks.
 */
#ifndef BATON_AGENT_MODEL_DIALECT_H
#define BATON_AGENT_MODEL_DIALECT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/model_table.h"

enum call_id_form {
	CALL_ID_ANY,	/* sent back as it came (Kimi insists on its own ids) */
	CALL_ID_SHORT,	/* at most 40 characters */
	CALL_ID_WORD,	/* [A-Za-z0-9_-], at most 64 */
	CALL_ID_ALNUM9, /* exactly 9 of [A-Za-z0-9] (Mistral) */
};

enum effort_form {
	EFFORT_NOT_SENT,
	EFFORT_FIELD,  /* "reasoning_effort":"high" */
	EFFORT_OBJECT, /* "reasoning":{"effort":"high"} */
	EFFORT_OUTPUT, /* "output_config":{"effort":"high"} */
};

enum reasoning_echo {
	ECHO_NEVER,
	ECHO_WITH_CALLS,     /* an assistant message that has tool calls gets its reasoning back */
	ECHO_ALWAYS,	     /* every assistant message does */
	ECHO_CALLS_DEMANDED, /* as WITH_CALLS, and the field stands there even if empty */
};

struct dialect {
	const char *name;
	enum model_api api;
	enum call_id_form id_form;
	enum effort_form effort;
	enum reasoning_echo echo; /* applies where the model has a reasoning_field */
	bool max_tokens_only;	  /* knows "max_tokens" only, whatever the model table says */
	bool no_developer;	  /* refuses the role "developer" */
	bool no_stream_options;
	bool parallel_field;	   /* takes parallel_tool_calls: false */
	bool tool_name;		   /* wants "name" on tool messages */
	bool assistant_after_tool; /* wants an assistant message between a tool's and a user's */
	bool empty_content;	   /* "" and not null beside tool calls */
	bool tools_always;	   /* "tools":[] when there are none */
	bool no_extra;		   /* refuses unknown fields of calls that come back */
	bool betas;		   /* takes the anthropic-beta header and what hangs on it */
};

/* The row of that name and API; NULL, "", "anthropic" and "openai" give the API's plain row.
 * ERR_USAGE with the nearest name if there is none. */
int dialect_find(const char *name, enum model_api api, const struct dialect **ret, struct err *err);
const struct dialect *dialect_at(size_t i); /* NULL past the end */

/* Appends the call id in the row's form. An id that has it already is copied; any other becomes
 * one derived from its hash, so that call and result agree without a table. */
void dialect_write_id(const struct dialect *dialect, const char *id, struct buf *out);

#endif
