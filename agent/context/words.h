/*
 * words.h - the user's words: a ledger of their own, kept by code (X2, I6).
 *
 * Every message of a person, of the agent that delegated the task, or of an evaluator, verbatim, with its
 * speaker, uid and time; the constraints in it are marked (constraints.h). Append-only, in memory and as
 * words.jsonl in the generation's folder (docs/words.md). The origin of a block decides what enters:
 * nudges, hook output, rehydration, budget notes and handoff text have another one and never do.
 *
 * After a compaction user_words_render writes the head of what follows it, and user_words_check proves on the
 * bytes of the request that nothing is missing and that the summary has added nothing.
 */
#ifndef BATON_AGENT_CONTEXT_WORDS_H
#define BATON_AGENT_CONTEXT_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "handoff/constraints.h"
#include "agent/conversation.h"
#include "agent/ledger.h"
#include "agent/message.h"
#include "base/buf.h"
#include "base/err.h"

#define USER_WORDS_VERSION 1

struct jsonl_writer;
struct said;

enum speaker_kind { SPEAKER_PERSON, SPEAKER_AGENT, SPEAKER_EVALUATOR };

struct word { /* one message of one speaker */
	enum speaker_kind speaker;
	char *name;	    /* of the speaker; NULL: not known */
	int64_t generation; /* in which it was said */
	uint64_t uid;	    /* of its message there */
	int64_t time;	    /* wall ms */
	char *text;	    /* the bytes as they came */
	size_t n;
	struct constraints constraints; /* spans of text */
	bool cut;			/* stands in the conversation as head, tail and file */
	char *file; /* where all of it is for the model, "results:words-3.txt"; NULL: no file yet */
};

struct user_words {
	struct word *list; /* oldest first; number i of the rendered text is list[i - 1] */
	size_t n, cap;
	struct jsonl_writer *writer;
	struct said *said; /* the first of them by sentence (said.h); NULL: made for each check */
	char *results_dir; /* behind `results:` */
	int64_t generation;
	int64_t whole_bytes; /* a longer message is cut when it is admitted */
	int64_t room;	     /* tokens: a quarter of effective, for one message and for all */
	uint64_t own_hash;   /* of the last rendered text; 0: none */
	size_t own_len;
};

struct user_words_settings {
	const char *dir_generation;
	int64_t generation;
	int64_t whole_bytes;
	int64_t room; /* tokens, for all of them (budget.words) */
};

/* Opens DIR/words.jsonl and takes what is in it (after a crash of this generation); bad lines are
 * skipped. The caller releases. */
int user_words_init(struct user_words *words, const struct user_words_settings *settings,
		    struct err *err);
void user_words_release(struct user_words *words); /* also of a zeroed struct */

/* The window turned out to be another one: for messages and renderings from now on. `room` in tokens. */
void user_words_resize(struct user_words *words, int64_t room);

/* Takes over the words.jsonl of an earlier generation: what this ledger does not have yet. */
int user_words_inherit(struct user_words *words, const char *path, struct err *err);

/* What somebody said elsewhere (a handoff from another place); nothing if it is known. */
void user_words_enter(struct user_words *words, enum speaker_kind speaker, const char *text,
		      size_t n);

/* A user message that is about to be appended as `uid`. Blocks of a speaker are entered, verbatim; one
 * above whole_bytes or above a quarter of effective is replaced in `m` by its head and tail, all its
 * constraints and the path of a file with all of it: decided here, once (T3, I4). -1 and a text for the
 * user if its constraints alone exceed the quarter: it is entered and replaced all the same. */
int user_words_admit(struct user_words *words, struct message *m, uint64_t uid,
		     const struct ledger *ledger, struct err *err);
/* After transcript_load: enters what words.jsonl does not hold. */
void user_words_take_conversation(struct user_words *words,
				  const struct conversation *conversation);

const char *speaker_name(enum speaker_kind speaker);
size_t user_words_constraints(const struct user_words *words); /* their number */

/* ---- words_render.c ---- */

struct user_words_rendered {
	int64_t tokens, constraint_tokens; /* estimates */
	size_t constraints;
	size_t whole, cut, listed; /* messages: as they are; head and tail; only named */
};

/* Appends the block that follows a compaction: all constraints, then the messages, by speaker where
 * there are several. Constraints are whole and verbatim always; the first and the newest message are
 * whole while all of it fits `room` tokens (words->room if 0), the oldest long ones become head, tail
 * and path first. -1 if the constraints alone exceed the room: `out` and `ret` hold them all the same,
 * every message is only named. Every line of ours carries a mark that occurs in no user's text. */
int user_words_render(struct user_words *words, int64_t room, const struct ledger *ledger,
		      struct buf *out, struct user_words_rendered *ret, struct err *err);
/* Is this, byte for byte, what was rendered last? Also after a restart. */
bool user_words_own(const struct user_words *words, const char *text, size_t n);

/* The form of a long message in a request: head, tail, path, and the constraints of what is left out.
 * `budget` is that of head and tail, in bytes. For words.c. */
void user_words_cut(struct user_words *words, size_t index, size_t budget, struct buf *out);

/* ---- words_check.c ---- */

enum user_words_fault {
	USER_WORDS_MISSING,		/* a constraint is not in the request */
	USER_WORDS_INVENTED_ATTRIBUTED, /* the summary lays it in the user's mouth, or calls it a rule */
	USER_WORDS_INVENTED_ORDER,	/* the summary gives an order that nobody gave */
	USER_WORDS_INVENTED_STATEMENT, /* sounds like a constraint: "the parser must ..." */
	USER_WORDS_FORGED,	       /* the summary holds our own tag */
};

struct user_words_finding {
	enum user_words_fault fault;
	size_t word;	       /* USER_WORDS_MISSING: index of the message */
	struct text_span span; /* there, or in the summary */
};

struct user_words_findings {
	struct user_words_finding *list;
	size_t n, cap;
	size_t missing, invented; /* statements do not count as invented, forged tags do */
};

struct user_words_check {
	const char *request; /* the body, JSON text: NULL: not looked at */
	size_t request_len;
	const char *summary; /* what the model wrote; NULL: none */
	size_t summary_len;
	const char *const *also; /* further texts that may lay down rules: project instructions */
	size_t n_also;
};

/* Returns true if nothing is missing and nothing is invented. The caller releases `ret`. */
bool user_words_check(const struct user_words *words, const struct user_words_check *check,
		      struct user_words_findings *ret);
void user_words_findings_release(struct user_words_findings *findings);

/* Appends a model's text with every tag that looks like ours made harmless, and without the sentences
 * that `findings` (of this very text) calls invented. */
void user_words_clean(const char *summary, size_t n, const struct user_words_findings *findings,
		      struct buf *out);

#endif
