/*
 * document.h - the handoff document: what one generation, stage or person leaves for the next (R2, R3).
 *
 * One structure and two forms of it: JSON for programs (handoff.json, data/handoff.schema.json) and Markdown with
 * YAML front matter for people and models (handoff.md). Both hold all of it and are parsed back without loss, so
 * either can be edited by a person and carried to another clone. docs/handoff.md describes them.
 *
 * A document is a header and parts; a part is a list of statements. Every statement names its origin: a record
 * (then it says which: a message of the transcript, a commit, a command and its exit code), the user (verbatim), or
 * the model. Nobody who reads one has to believe the model: what code saw stands beside it, and handoff_check
 * (document_check.h) tells what of it is present, concrete and true.
 *
 * Built by the agent (its part: goal to risks), completed by the parent (commits, diff, hashes, checkpoint), read by
 * the next generation. This file and its .c open no file and know no git.
 */
#ifndef BATON_HANDOFF_DOCUMENT_H
#define BATON_HANDOFF_DOCUMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"

#define HANDOFF_SCHEMA	  "baton.handoff"
#define HANDOFF_VERSION	  1
#define HANDOFF_BYTES_MAX ((size_t)1 << 20) /* of either form, when read */

/* PART(NAME, "json key", "Markdown title", flags). The first eight are R2's seven parts. */
#define HANDOFF_ONE	 1u /* one statement at most */
#define HANDOFF_REQUIRED 2u /* a document without it names it under `missing`, or does not pass */
#define HANDOFF_PARTS(PART)                                                                        \
	PART(GOAL, "goal", "Goal", HANDOFF_REQUIRED)                                               \
	PART(DONE_MEANS, "done_means", "What done means", 0)                                       \
	PART(FINISHED, "finished", "Finished work", 0)                                             \
	PART(POINT, "point", "Point of work", HANDOFF_ONE | HANDOFF_REQUIRED)                      \
	PART(CONSTRAINTS, "constraints", "Constraints, in the user's words", 0)                    \
	PART(RULED_OUT, "ruled_out", "Tried and ruled out", 0)                                     \
	PART(FAILURES, "failures", "Present failures", 0)                                          \
	PART(FIRST_ACTION, "first_action", "First action", HANDOFF_ONE | HANDOFF_REQUIRED)         \
	PART(COMMITS, "commits", "Commits", 0)                                                     \
	PART(DIFF, "diff_stat", "Changed lines", HANDOFF_ONE)                                      \
	PART(TASKS, "tasks", "Task list", 0)                                                       \
	PART(FILES, "files", "Files touched", 0)                                                   \
	PART(NAMES, "names", "Functions and identifiers", 0)                                       \
	PART(JOBS, "jobs", "Background jobs", 0)                                                   \
	PART(LOGS, "logs", "Logs", 0)                                                              \
	PART(DECISIONS, "decisions", "Decisions, and why", 0)                                      \
	PART(TEMPORARY, "temporary", "Temporary decisions and boundary conditions", 0)             \
	PART(RISKS, "risks", "Risks", 0)                                                           \
	PART(WORDS, "words", "What the user said", 0)                                              \
	PART(TRIED, "tried", "Earlier generations", 0)                                             \
	PART(MISSING, "missing", "What this document could not say", 0)

enum handoff_part_name {
#define HANDOFF_PART_ENUM(name, key, title, flags) HANDOFF_##name,
	HANDOFF_PARTS(HANDOFF_PART_ENUM)
#undef HANDOFF_PART_ENUM
		HANDOFF_N_PARTS
};

enum handoff_origin {
	HANDOFF_FROM_RECORD,
	HANDOFF_FROM_USER,
	HANDOFF_FROM_MODEL,
	HANDOFF_N_ORIGINS
};

/* R3. An absent state is written in no form. */
enum handoff_state {
	HANDOFF_NO_STATE,
	HANDOFF_VERIFIED, /* a record shows it */
	HANDOFF_CLAIMED,
	HANDOFF_FAILED,	 /* tried, and a record shows that it does not hold */
	HANDOFF_OPEN,	 /* tasks, jobs */
	HANDOFF_CHANGED, /* files: what happened to them */
	HANDOFF_READ,
	HANDOFF_DELETED,
	HANDOFF_N_STATES,
};

/* Text members of a statement beside `text`: FIELD(member, "json key"). NULL: absent. */
#define HANDOFF_FIELDS(FIELD)                                                                      \
	FIELD(speaker, "speaker") /* of words: "person", "agent", "evaluator", or a name */        \
	FIELD(file, "file")	  /* relative to the root of the worktree; `results:NAME` */       \
	FIELD(function, "function")                                                                \
	FIELD(test, "test")                                                                        \
	FIELD(command, "command") /* a shell line */                                               \
	FIELD(commit, "commit")	  /* full id */                                                    \
	FIELD(hash, "hash")	  /* git blob id of `file` when the document was written */        \
	FIELD(output, "output")	  /* the lines of a failure; bounded by who writes it */           \
	FIELD(log, "log")	  /* path of the whole output */                                   \
	FIELD(id, "id")		  /* of a task or job */

struct handoff_statement {
	char *text; /* never NULL in a finished document */
	enum handoff_origin origin;
	enum handoff_state state;
#define HANDOFF_FIELD_MEMBER(member, key) char *member;
	HANDOFF_FIELDS(HANDOFF_FIELD_MEMBER)
#undef HANDOFF_FIELD_MEMBER
	bool has_exit;
	int exit_code;	    /* of `command` when it ran last */
	int64_t generation; /* of the transcript that `uid` is in; 0: absent */
	uint64_t uid;	    /* of a message there; 0: absent */
};

struct handoff_part {
	struct handoff_statement *list;
	size_t n, cap;
};

/* Header texts: HEAD(member, "key"). NULL: absent. */
#define HANDOFF_HEAD(HEAD)                                                                         \
	HEAD(run, "run")                                                                           \
	HEAD(agent, "agent")                                                                       \
	HEAD(role, "role")                                                                         \
	HEAD(model, "model")	 /* provider/name of who wrote it */                               \
	HEAD(reason, "reason")	 /* handoff_reason_name; "person", "import" */                     \
	HEAD(why, "why")	 /* the same in words */                                           \
	HEAD(created, "created") /* RFC 3339, UTC */                                               \
	HEAD(repository, "repository")                                                             \
	HEAD(branch, "branch")                                                                     \
	HEAD(base, "base")	       /* commit that the work began from */                       \
	HEAD(head, "head")	       /* commit of the branch */                                  \
	HEAD(checkpoint, "checkpoint") /* commit that holds uncommitted work too */

struct handoff {
	int64_t generation; /* that wrote it; 0: a person, another tool */
#define HANDOFF_HEAD_MEMBER(member, key) char *member;
	HANDOFF_HEAD(HANDOFF_HEAD_MEMBER)
#undef HANDOFF_HEAD_MEMBER
	bool facts_only; /* no model had a word in it */
	struct handoff_part parts[HANDOFF_N_PARTS];
};

struct handoff *handoff_new(void);
void handoff_free(struct handoff *handoff); /* NULL allowed */

/* A new statement at the end of a part, for the caller to fill in (all strings are owned by the document); valid
 * until the next one is added to that part. `text` is copied, and cleaned of control sequences unless a user said it. */
struct handoff_statement *handoff_add(struct handoff *handoff, enum handoff_part_name part,
				      enum handoff_origin origin, const char *text, size_t n);
/* Sets a text member of the header or of a statement (not `text`): copied, cleaned of control sequences, the old one
 * freed. NULL takes it away. */
void handoff_set(char **member, const char *text);
void handoff_setn(char **member, const char *text, size_t n);
/* Takes the i-th away. */
void handoff_remove(struct handoff *handoff, enum handoff_part_name part, size_t i);
/* The one of a HANDOFF_ONE part, or NULL. */
struct handoff_statement *handoff_the(const struct handoff *handoff, enum handoff_part_name part);

/* The finders give 0, or -1 for a name that there is not. */
const char *handoff_part_key(enum handoff_part_name part);
int handoff_part_find(const char *key, enum handoff_part_name *ret);
const char *handoff_part_title(enum handoff_part_name part);
unsigned handoff_part_flags(enum handoff_part_name part);
const char *handoff_origin_name(enum handoff_origin origin); /* "record", "user", "model" */
int handoff_origin_find(const char *name, enum handoff_origin *ret);
const char *handoff_state_name(enum handoff_state state); /* "verified", ...; NULL: none */
int handoff_state_find(const char *name, enum handoff_state *ret);

/* The text members by number, for those who walk all of them. */
struct handoff_member {
	const char *key;
	size_t offset; /* of the char * in struct handoff_statement or struct handoff */
};
const struct handoff_member *handoff_fields(size_t *ret_n);
const struct handoff_member *handoff_heads(size_t *ret_n);
static inline char **handoff_member(const void *of, const struct handoff_member *member)
{
	return (char **)((char *)(uintptr_t)of + member->offset);
}

/* ---- document_json.c ---- */

struct json_object *handoff_to_json(const struct handoff *handoff); /* caller puts it */
/* ERR_INVALID names the member ("parts.failures[2].exit_code must be an integer"), ERR_UNSUPPORTED a newer version.
 * Unknown members are an error: a person who misspelt one hears of it. */
int handoff_from_json(struct json_object *json, struct handoff **ret, struct err *err);

/* ---- document_md.c, document_md_read.c ---- */

void handoff_to_markdown(const struct handoff *handoff, struct buf *out);
/* ERR_INVALID names the line. */
int handoff_from_markdown(const char *text, size_t n, struct handoff **ret, struct err *err);

/* Either form, told apart by the first byte that is no white space. */
int handoff_parse(const char *bytes, size_t n, struct handoff **ret, struct err *err);

/* ---- document_bound.c ---- */

/* R2: at most so many tokens (by `estimate`; NULL: a token has four bytes) in the form for models. Outputs become
 * shorter first, then what is oldest of logs, words, commits, finished work, files and at last of judgement goes, each with a line
 * in `missing` that says how many and where they are. Goal, constraints, point, failures, open tasks and first action stay whole. Returns the tokens that it
 * has afterwards. */
int64_t handoff_bound(struct handoff *handoff, int64_t tokens,
		      int64_t (*estimate)(const void *arg, const char *text, size_t n),
		      const void *arg);

/* How much of a long message stands as the goal: up to the end of a sentence, so that it is still what was said; all of
 * it stands under `words`. */
size_t handoff_goal_len(const char *text, size_t n);

/* Why a generation ends (R1, R7). */
enum handoff_reason {
	HANDOFF_BREAKER,     /* compaction has given up (H10) */
	HANDOFF_SUMMARY,     /* a summary did not pass the check twice (R4) */
	HANDOFF_COMPACTIONS, /* max_compactions in one generation */
	HANDOFF_ROUNDS,	     /* max_rounds (W8) */
	HANDOFF_STAGE,	     /* a stage ended that asks for it */
	HANDOFF_REQUEST,     /* somebody asked (baton reset) */
	HANDOFF_ANXIETY,     /* it wanted to end with work open and a full window (R7) */
	HANDOFF_WINDOW,	     /* no valid request fits any more (X1) */
	HANDOFF_N_REASONS,
};
const char *handoff_reason_name(enum handoff_reason reason); /* "breaker", ... */
int handoff_reason_find(const char *name, enum handoff_reason *ret);

#endif
