/*
 * names.h - file names as the model sees and gives them.
 *
 * A file name is bytes; the model speaks UTF-8. Bytes that are no valid UTF-8, control characters
 * and a backslash before an x are shown as \xNN, and the same form is taken back (trap 95), so
 * every file that a listing shows can be named again.
 */
#ifndef BATON_AGENT_TOOLS_NAMES_H
#define BATON_AGENT_TOOLS_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* Appends the name in its shown form: valid UTF-8, one line. */
void name_escape(struct buf *out, const char *name, size_t n);

/* The bytes that a shown name stands for, or NULL if it holds no escape (then it stands for
 * itself). \x00 stays as it is: no file name holds a NUL. Caller frees. */
char *name_unescape(const char *shown);

/* Appends "2026-11-30 10:57" (UTC) and a size with thousands separated, for listings (T11). */
void name_add_time(struct buf *out, int64_t wall_ms);
void name_add_number(struct buf *out, uint64_t number);

#endif
