/*
 * output.h - the file that holds all of a command's output, and shortening it (T5).
 */
#ifndef BATON_AGENT_TOOLS_OUTPUT_H
#define BATON_AGENT_TOOLS_OUTPUT_H

#include <sys/types.h>

#include "agent/tools/context.h"

/* Makes a new file in results: for reading and appending. ret_name: "results:shell-3.txt", caller
 * frees; NULL if the disk is full and the output stays in memory. */
int output_open(struct tool_context *ctx, char **ret_name, struct err *err);

/* Makes the file of the next output_open beforehand: creating one takes half a millisecond, which
 * nobody notices while the model answers. */
void output_prepare(struct tool_context *ctx);
void output_drop_prepared(struct tool_context *ctx); /* at the end: what was not needed goes */

/* Appends the bytes [from, to) of the file; what cannot be read is left out. */
void output_read(int fd, off_t from, off_t to, struct buf *out);
off_t output_size(int fd);

/* How a command ended, by the first line of its result in a conversation; -1: it was not run. */
int output_exit_code(const char *text, bool is_error);

/* Does a line look like a part of an error message? */
bool output_is_error_line(const char *line, size_t n);

/* T5. Failed (exit_code != 0): up to 20 lines that look like errors, and the tail. Succeeded: of a table its first
 * rows and the total (T11); of more than 100 lines the first 5, the last 5 and the number of lines. Else head and tail (T4). A
 * text within the budget is appended as it is. */
void output_shorten(struct buf *out, const char *s, size_t n, int exit_code, size_t budget,
		    const char *where);

#endif
