/*
 * instructions.h - project instructions while an agent works: nested AGENTS.md files, rules with path
 * patterns, and the root's file after a compaction (M1, H14).
 *
 * What holds for the whole project came with the start document and stands in the opening. What holds for a
 * part of it is loaded when the model reads or changes a file there: for each folder above the file its
 * AGENTS.md (else CLAUDE.md), outermost first, and each rule of .baton/rules and .claude/rules with a
 * matching pattern. It is added behind the results of that round, once per epoch; when a compaction took it
 * out of the view, it comes back with the next matching read and not before.
 *
 * They are no user words (X2): their origin is ORIGIN_INSTRUCTIONS, and what they lay down may stand in a
 * summary as a rule (instructions_texts).
 */
#ifndef BATON_AGENT_INSTRUCTIONS_H
#define BATON_AGENT_INSTRUCTIONS_H

#include "agent/context/view.h"
#include "agent/ledger.h"
#include "agent/start.h"

#define INSTRUCTIONS_BYTES 20000 /* of one file; a longer one is shown as head and tail */
#define INSTRUCTIONS_ROUND 8	 /* files that one round may add; the others come with the next */

struct tool_context;
struct instruction_rule;

enum instructions_why {
	INSTRUCTIONS_START,	 /* in the start document */
	INSTRUCTIONS_NESTED,	 /* of a folder above a file */
	INSTRUCTIONS_RULE,	 /* a pattern matches a file */
	INSTRUCTIONS_COMPACTION, /* the root's, read again */
};
const char *instructions_why_name(enum instructions_why why);

struct instructions_load {   /* one time that a file was put into the window */
	char *path, *origin; /* "project" or "user" */
	enum instructions_why why;
	char *file; /* that was read or changed; NULL: none */
	size_t bytes;
};

struct instruction_file {    /* one that was loaded at least once */
	char *path, *origin; /* real, from the worktree's root; of a user's file: its name */
	char *text;	     /* as it was put into the window last */
	bool in_view;
};

struct instructions {
	const struct agent_settings *settings;
	struct instruction_file *files;
	size_t n_files, cap_files;
	struct instructions_load *loads;
	size_t n_loads, cap_loads;

	int64_t epoch;	/* of the view, to which what follows belongs */
	uint64_t clock; /* accesses to files that were dealt with */
	char **folders; /* looked into */
	size_t n_folders, cap_folders;
	struct instruction_rule *rules;
	size_t n_rules;
	bool rules_read;
};

/* Settings are borrowed. */
void instructions_init(struct instructions *in, const struct agent_settings *settings);
void instructions_release(struct instructions *in); /* also of a zeroed struct */

/* All times that a file was loaded, oldest first; the list only grows. For hooks and events: who tells
 * them on keeps the number of those that he told. */
const struct instructions_load *instructions_loads(const struct instructions *in, size_t *ret_n);

/* Texts that may lay down rules beside the user: all that was ever loaded. Caller frees the list. */
const char **instructions_texts(const struct instructions *in, size_t *ret_n);

struct instructions_round {
	struct tool_context *files;
	const struct view *view;
	const struct ledger *ledger;
	int64_t room;	      /* tokens that the blocks may take */
	struct buf *warnings; /* lines about files that could not be loaded */
};

/* Adds to m what the files call for that were read or changed since the last call. What does not fit the
 * room or INSTRUCTIONS_ROUND waits for the next round. */
void instructions_add(struct instructions *in, const struct instructions_round *round,
		      struct message *m);

/* The instructions of the opening for the head of what follows a compaction: the user's as they were, the
 * project's as they are on disk, byte for byte, in the form of conversation_opening. One that is gone or
 * cannot be read is kept as it was, and its first line says so; one that changed or is new says that.
 * files may be NULL: then all are as they were. `opening_stays`: only those that are not what the window
 * has already. */
void instructions_add_head(struct instructions *in, struct tool_context *files, bool opening_stays,
			   struct message *head, struct buf *warnings);

#endif
