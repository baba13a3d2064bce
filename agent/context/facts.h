/*
 * facts.h - what happened, as calls and results show it (R3, H21): put back after a compaction by code.
 *
 * A summary is a model's memory of the work, and models forget, are lazy, or make things up. What was
 * run and how it ended, which files were touched, which failure was never seen to go away, and what was
 * announced as the next step can be read off the conversation, so no summary is trusted with it. The user's own words are
 * words.h's business.
 *
 * Filled from the conversation, which stays whole behind the view: each message is looked at once. Bounded in
 * memory; what is written is bounded in tokens and chosen by resample.h.
 */
#ifndef BATON_AGENT_CONTEXT_FACTS_H
#define BATON_AGENT_CONTEXT_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/conversation.h"
#include "agent/ledger.h"
#include "base/buf.h"

struct fact_file {
	char *path; /* as the call named it */
	bool changed;
	int64_t round; /* of the last call */
};

struct fact_command {
	char *command;
	int exit_code; /* of its last run */
	int times;
	int64_t round;
	char *failure; /* lines of its output, if the last run failed; NULL else */
};

enum fact_saying_kind { SAID_NEXT, SAID_DECISION };

struct fact_saying { /* the model's words, of the time when they were true */
	enum fact_saying_kind kind;
	char *text;
	int64_t round;
};

enum fact_name_kind { NAME_FUNCTION, NAME_ID };

struct fact_name {
	enum fact_name_kind kind;
	char *text;
	size_t n;
	int times;     /* that it was named; of an identifier: that a result showed it */
	int64_t round; /* of the last time */
};

struct facts {
	struct fact_file *files;
	size_t n_files, cap_files;
	struct fact_command *commands; /* those that do more than look */
	size_t n_commands, cap_commands;
	struct fact_saying *sayings;
	size_t n_sayings, cap_sayings;
	struct fact_name *names;
	size_t n_names, cap_names;
	size_t taken;		      /* messages of the conversation that were looked at */
	const struct message *answer; /* whose results come next */
};

void facts_release(struct facts *facts); /* also of a zeroed struct */

/* Looks at what was appended since the last time. */
void facts_take(struct facts *facts, const struct conversation *conversation);

/* facts_names.c: functions and identifiers that the model spoke of, those at the beginning of what it wrote into a file,
 * identifiers that a result shows. */
void facts_take_spoken(struct facts *facts, const char *s, size_t n, int64_t round);
void facts_take_written(struct facts *facts, const char *s, size_t n, int64_t round);
void facts_take_shown(struct facts *facts, const char *s, size_t n, int64_t round);
/* The names alone, at most so many tokens of each kind. */
void facts_write_names(const struct facts *facts, int64_t tokens, struct buf *out);
void facts_release_names(struct facts *facts);

/* Of a failed command's result: appends why it failed, some lines that look like errors and the last ones. For
 * rungs that put a line in the place of a result: a test that fails now may fail otherwise when it is run again,
 * and what is to be mended is known by these lines. Of a result that was shortened so before, the same lines. */
void facts_add_failure(const struct block *result, struct buf *out);

struct facts_spec {
	const char *task; /* its words say what matters; NULL: none */
	size_t task_len;
	int64_t tokens; /* at most */
	const struct ledger *ledger;
};

/* Appends what calls and results show: failures not seen to pass, files, commands, names. Nothing if there is
 * nothing. */
void facts_write(const struct facts *facts, const struct facts_spec *spec, struct buf *out);
/* Appends what the model said of decisions and of the next step: words, so whoever puts them into a request lets
 * user_words_check look for made-up rules first. */
void facts_write_sayings(const struct facts *facts, const struct facts_spec *spec, struct buf *out);

#endif
