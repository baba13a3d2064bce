/*
 * edit_match.h - finding the text to be replaced, without regard to line ends.
 */
#ifndef BATON_AGENT_TOOLS_EDIT_MATCH_H
#define BATON_AGENT_TOOLS_EDIT_MATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

struct edit {
	const char *old_text, *new_text; /* counted bytes */
	size_t old_len, new_len;
	bool all;
};

/* Appends to out the file's bytes with the edit applied. Text with LF matches a file with CRLF and
 * takes its line ends; no byte outside the matches changes (trap 106). ret_first is the first
 * changed offset in out, ret_count the number of replacements. ERR_NOT_FOUND with the nearest line,
 * ERR_INVALID for several matches with their lines. */
int edit_apply(const struct edit *edit, const char *file, size_t n, struct buf *out,
	       size_t *ret_first, size_t *ret_count, struct err *err);

#endif
