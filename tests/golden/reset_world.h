/*
 * reset_world.h - the repository that a golden conversation is about, for real: files that can be edited, a test command that
 * runs, and baton-git beside it, which answers what a handoff is asked.
 *
 * The recorded rounds tell of programs that nobody has; their edits are made here all the same, so that what a document
 * says of files is true. At each cut one more thing is broken, in a file, a function and a test of its own: what is mended
 * and run there is mended and run.
 */
#ifndef TEST_RESET_WORLD_H
#define TEST_RESET_WORLD_H

#include "golden.h"

#include "../worktrees/rig.h"
#include "agent/tools/tool.h"
#include "handoff/document.h"

struct reset_world {
	struct rig rig; /* its repo is the worktree */
	char *base;
	char *path; /* PATH as it was: while this world is, it has the conversation's programs too */
	uint64_t random;
};

/* What is broken at a cut. The file is written by a round of the agent's, `content`; the test is there before. */
struct defect {
	char *file, *function, *test, *command, *content;
	int got, want;
};

void reset_world_make(struct reset_world *w, const struct golden *golden);
void reset_world_free(struct reset_world *w);

/* The next edit or write of a conversation, done. Other steps change nothing. */
void reset_world_replay(struct reset_world *w, const struct golden_step *step);

void reset_world_break(struct reset_world *w, size_t cut, struct defect *ret);
void defect_release(struct defect *defect);

/* A call of read, edit, write or shell in the worktree. For golden_options.live: arg is the world. */
void reset_world_call(void *arg, const char *tool, struct json_object *input,
		      struct tool_result *ret);

/* All files of the worktree by name. Caller puts it. */
struct json_object *reset_world_files(struct reset_world *w);
/* Names of those that are not any more what they were, a line each. Caller frees. */
char *reset_world_changed(struct reset_world *w, struct json_object *before);
/* What git knows of this document's commits, and of its files and names as they are (op facts). Caller puts it. */
struct json_object *reset_world_facts(struct reset_world *w, const struct handoff *handoff);
/* As it was made, whatever was done since. */
void reset_world_restore(struct reset_world *w);

#endif
