/*
 * text.h - UTF-8, control characters, trimming to a budget, and small string helpers.
 *
 * Model and tool output is data (I12): it passes text_sanitize before it enters a request and
 * text_printable before a terminal sees it.
 */
#ifndef BATON_BASE_TEXT_H
#define BATON_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* Where nobody counted: bytes of text to a token (W6's first guess, and the bound of a report), and
 * of a stream, whose framing is about 20 to 1. */
#define BYTES_PER_TOKEN	       4
#define STREAM_BYTES_PER_TOKEN 80

/* Length in bytes of the longest valid UTF-8 prefix (surrogates D800-DFFF, overlong forms and
 * values above U+10FFFF are invalid; NUL is valid). */
size_t text_valid_prefix(const char *s, size_t n);
bool text_is_utf8(const char *s, size_t n);

/* Appends s as valid UTF-8 (traps 87, 89, 95): each invalid byte, each CESU-8 surrogate and each
 * NUL becomes U+FFFD. */
void text_sanitize(struct buf *out, const char *s, size_t n);

/* Appends s for a terminal or a log line: valid UTF-8, escape sequences (CSI, OSC, DCS ...), C0
 * and C1 controls other than \n and \t removed; bidirectional overrides removed. With one_line,
 * \n, \r and \t become one space. */
void text_printable(struct buf *out, const char *s, size_t n, bool one_line);

/* Largest k <= n so that s[0..k) does not split a UTF-8 character. */
size_t text_floor(const char *s, size_t len, size_t n);
/* Smallest k >= n so that s[k..] starts on a character. */
size_t text_ceil(const char *s, size_t len, size_t n);

/* T4: if n bytes exceed `budget`, keeps 60 % of the budget from the head and 30 % from the tail,
 * cut at line ends where one is near, with a marker line between them that tells how many bytes
 * and about how many tokens are left out and, if `where` is not NULL, where all of it is. Returns
 * true if something was cut. The result is never larger than budget + 200 bytes. */
bool text_clip(struct buf *out, const char *s, size_t n, size_t budget, const char *where);

size_t text_count_lines(const char *s, size_t n); /* a last line without \n counts */
bool text_starts(const char *s, const char *prefix);
bool text_ends(const char *s, const char *suffix);
/* Case-insensitive (ASCII) search in counted bytes; NULL if absent. */
const char *text_find_nocase(const char *hay, size_t n, const char *needle);

/* The candidate nearest to `word` by edit distance (at most 3, and less than half the length), or
 * NULL. For "unknown key 'x'; did you mean 'y'?". */
const char *text_nearest(const char *word, const char *const *candidates, size_t count);

/* Whole-string number parsers: 0 or -1 (nothing set). "64k", "200,000", "1_000" and "2M" are taken
 * by text_parse_count (k = 1,000, m = 1,000,000). Durations: "90", "90s", "10m", "1h30m", "250ms".
 */
int text_parse_i64(const char *s, int64_t *ret);
/* "true", "yes", "on", "1" and their opposites; "" is no. */
int text_parse_bool(const char *s, bool *ret);
int text_parse_count(const char *s, int64_t *ret);
int text_parse_duration_ms(const char *s, int64_t *ret_ms);

/* FNV-1a 64 over bytes, for fingerprints that are not security relevant. */
uint64_t text_hash(const void *p, size_t n);

/* Appends text in which no mark of ours is left whole: each `mark` ("</handoff") begins with "&lt;" instead. */
void text_add_guarded(struct buf *out, const char *text, const char *mark);

#endif
