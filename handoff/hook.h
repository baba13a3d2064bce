/*
 * hook.h - hooks (M6): which events there are, whom a matcher matches, what a hook's output means.
 *
 * A hook is a command of the user's that runs at a point of an agent's life. The parent runs it (in a box, with
 * a time limit) and reads its output by the functions here; the agent gets what is left of it: texts that
 * are data, and a decision. Configuration, parent and agent read the same table. docs/hooks.md is the
 * user's side. Nothing here opens a file or starts a process.
 */
#ifndef BATON_HANDOFF_HOOK_H
#define BATON_HANDOFF_HOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/json.h"

#define HOOK_OUTPUT_MAX (1 << 20)  /* bytes of stdout that are read; what is beyond is dropped */
#define HOOK_ERROR_MAX	(64 << 10) /* the same of stderr */
#define HOOK_TEXT_CHARS 10000	   /* characters of a hook's text that are used (M6) */
#define HOOKS_MAX	64	   /* in all layers of a configuration */

enum hook_flag {
	HOOK_ADDS = 1,	  /* its text goes into the window, or into a compaction's request */
	HOOK_DECIDES = 2, /* it may deny */
	HOOK_OF_TOOLS = 4 /* the matcher is held against a tool's name */
};

/* EVENT(ID, "name", "what a matcher can match, by '|'; empty: anything", flags) */
#define HOOK_EVENTS(EVENT)                                                                         \
	EVENT(SESSION_START, "SessionStart", "startup|compact", HOOK_ADDS)                         \
	EVENT(INSTRUCTIONS_LOADED, "InstructionsLoaded", "start|compact|nested|rule", 0)           \
	EVENT(PRE_TOOL_USE, "PreToolUse", "", HOOK_DECIDES | HOOK_OF_TOOLS)                        \
	EVENT(POST_TOOL_USE, "PostToolUse", "", HOOK_OF_TOOLS)                                     \
	EVENT(PRE_COMPACT, "PreCompact", "auto|manual|reactive", HOOK_ADDS | HOOK_DECIDES)         \
	EVENT(POST_COMPACT, "PostCompact", "auto|manual|reactive", HOOK_ADDS)

enum hook_event {
#define HOOK_ID(id, name, subjects, flags) HOOK_##id,
	HOOK_EVENTS(HOOK_ID)
#undef HOOK_ID
		HOOK_EVENTS_COUNT
};

const char *hook_event_name(enum hook_event event);
const char *hook_event_subjects(enum hook_event event);
unsigned hook_event_flags(enum hook_event event);
/* The event of this name; -1: none. */
int hook_event_find(const char *name);
/* Is it an event of M6 that this version does not have yet? */
bool hook_event_is_later(const char *name);

/* A matcher is shell patterns parted by '|' ("write|mcp__*"); NULL, "" and "*" match all. */
bool hook_matches(const char *matcher, const char *subject);

/* ---- the output of one hook ---- */

enum hook_decision { HOOK_UNDECIDED, HOOK_ALLOW, HOOK_DENY };

struct hook_result { /* what the process left; borrowed */
	enum hook_event event;
	int wait_status;
	bool timed_out;
	int64_t limit_ms;
	bool required; /* a hook that decides and fails denies */
	const char *out, *err;
	size_t out_len, err_len;
};

struct hook_answer {
	enum hook_decision decision;
	char *reason; /* of HOOK_DENY; else NULL */
	struct buf
		text; /* at most HOOK_TEXT_CHARS characters, printable; empty where nothing is added */
	char *failure; /* one line for the user: the hook counts for nothing because ...; else NULL */
};

/* Reads a result by the rules of docs/hooks.md. Never fails: what makes no sense is `failure`. */
void hook_read(const struct hook_result *result, struct hook_answer *ret);
void hook_answer_release(struct hook_answer *answer);

#endif
