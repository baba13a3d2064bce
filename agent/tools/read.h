/*
 * read.h - the parts of the read tool that have a file of their own.
 */
#ifndef BATON_AGENT_TOOLS_READ_H
#define BATON_AGENT_TOOLS_READ_H

#include "agent/tools/context.h"

/* "image/png" or "image/jpeg" by the first bytes, NULL for anything else. */
const char *image_type(const char *head, size_t n);
/* Puts the image, scaled down to W6's 2,000 tokens by the image program, into the result. Failures
 * that the model should see are in the result; -1 only if the agent is to stop. */
int read_image(struct tool_context *ctx, int fd, const struct place *place, struct tool_result *ret,
	       struct err *err);
/* Lists a folder with sizes and times (T11). */
int read_folder(struct tool_context *ctx, int fd, const struct place *place,
		struct tool_result *ret);

#endif
