/*
 * read.h - the parts of the read tool that have a file of their own.
 */
#ifndef BATON_AGENT_TOOLS_READ_H
#define BATON_AGENT_TOOLS_READ_H

#include "agent/tools/context.h"

enum {
	READ_LINES = 2000,   /* shown at most, unless asked */
	READ_HEAD = 8 << 10, /* bytes by which a file's kind is told */
};

/* All of a file, as it went by. */
struct scan {
	uint64_t hash;
	int64_t bytes;
	bool complete; /* its end was reached */
};

struct read_lines {
	int64_t first, last; /* lines that are shown; last 0: none */
	int64_t total;	     /* lines of the file */
	bool bad_bytes;
	struct scan scan;
};

/* Appends the lines [first, first + count) in the form of the read tool, and no more than fits into a
 * result. The descriptor is read from its present place to the end. -1 only if the agent is to stop or
 * the file cannot be read. */
int read_lines(struct tool_context *ctx, int fd, int64_t first, int64_t count, struct buf *out,
	       struct read_lines *ret, struct err *err);
/* The line behind them that says what is not shown; nothing if all is. */
void read_note(struct buf *out, const char *shown, const struct read_lines *lines);
/* From now on this is what the model has seen of the file (trap 108). */
void read_seen(struct tool_context *ctx, const struct place *place, const struct stat *st,
	       const struct scan *scan);
bool read_is_binary(const char *head, size_t n);

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
