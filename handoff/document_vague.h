/*
 * document_vague.h - words that say nothing: for document_check.c, and for those who must not write what it refuses.
 */
#ifndef BATON_HANDOFF_DOCUMENT_VAGUE_H
#define BATON_HANDOFF_DOCUMENT_VAGUE_H

#include <stdbool.h>
#include <stddef.h>

/* "continue the remaining tasks", "see above", an empty one: nothing is left when the words that fit any task are taken
 * away. In English and Chinese. */
bool vague_text(const char *text);

/* Of a vague text: does it point at a plan or a rest, instead of being short ("run it again")? */
bool vague_evades(const char *text);

/* A shell line that does nothing: empty, a comment, `true`, `:`, `echo done`, and rows of these. */
bool vague_command(const char *command);

/* The next thing at or after *at that a text names by its form: `in backticks`, a/path, file.c, some_name, call().
 * Borrowed; false: there is none. */
bool vague_next_target(const char **at, const char **ret, size_t *ret_n);

/* Does `target` stand in `text`, not as a part of a longer word? */
bool vague_stands_in(const char *text, const char *target, size_t n);

#endif
