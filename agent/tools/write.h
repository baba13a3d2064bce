/*
 * write.h - replacing a file that the model has seen; shared by write and edit.
 */
#ifndef BATON_AGENT_TOOLS_WRITE_H
#define BATON_AGENT_TOOLS_WRITE_H

#include <fcntl.h>

#include "agent/tools/context.h"

#define TARGET_MAX (INT64_C(64) << 20)

/* The file as it is now. */
struct target {
	bool exists;
	struct stat st;
	struct buf old; /* all its bytes */
};

/* Opens and reads it; a missing file is no error. The place's path becomes the real one. */
int target_open(struct tool_context *ctx, struct place *place, struct target *ret, struct err *err);
void target_release(struct target *target);
/* ERR_CHANGED if the file is not as it was seen last, or was never seen and must_be_read is set. */
int target_check_seen(const struct tool_context *ctx, const struct place *place,
		      const struct target *target, bool must_be_read, struct err *err);
/* Puts the new bytes in its place, makes missing folders, keeps the mode, records the new state. */
int target_replace(struct tool_context *ctx, struct place *place, const struct target *target,
		   const char *bytes, size_t n, struct err *err);

/* Lines of b that are new and lines of a that are gone, outside the common start and end. */
void count_changed_lines(const char *a, size_t na, const char *b, size_t nb, size_t *ret_added,
			 size_t *ret_removed);

static inline void target_release_ptr(struct target *target)
{
	target_release(target);
}
#define AUTO_TARGET __attribute__((cleanup(target_release_ptr)))

#endif
