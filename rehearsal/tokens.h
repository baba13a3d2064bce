/*
 * tokens.h - a deterministic token counter that behaves like a byte-pair encoding.
 *
 * No provider publishes the encoder of its current models, and a real vocabulary would be megabytes
 * of data for a number that is only compared with itself. The rules below give what matters to a
 * harness: about 4.4 bytes per token for English prose, about 3 for code and JSON, about 1.5
 * characters for hexadecimal text, one token per CJK character (trap 86).
 *
 *   a run of ASCII letters        1 up to 8 letters, then 1 more for every 5
 *   a run of digits               1 for every 3
 *   one space before anything     0 (it is part of the next piece)
 *   a longer run of blanks        1, and 1 more for every 16
 *   a run of line ends            1 for every 4
 *   one punctuation mark repeated 1 for every 8
 *   mixed punctuation             1 for every 2
 *   2-byte characters             1 for every 2 (Latin, Greek, Cyrillic)
 *   3-byte characters             1 each (CJK and others)
 *   4-byte characters             2 each (emoji)
 *
 * The counts of long strings are remembered by fingerprint, since a conversation sends the same
 * strings again with every request.
 */
#ifndef BATON_REHEARSAL_TOKENS_H
#define BATON_REHEARSAL_TOKENS_H

#include <stddef.h>
#include <stdint.h>

int64_t tokens_count(const char *s, size_t n);

struct token_cache;
struct token_cache *token_cache_new(void);
void token_cache_free(struct token_cache *cache); /* NULL allowed */
/* `hash` is the caller's fingerprint of the bytes. cache may be NULL. */
int64_t token_cache_count(struct token_cache *cache, uint64_t hash, const char *s, size_t n);
/* For counts that are sums over a tree. Find gives -1 if the fingerprint is not known. */
int64_t token_cache_find(const struct token_cache *cache, uint64_t hash);
void token_cache_put(struct token_cache *cache, uint64_t hash, int64_t tokens);

/* Tokens of a base64 picture: width * height / 750, at least 1 (PNG header read; other formats
 * 1,600). */
int64_t tokens_of_image(const char *base64, size_t n);

#endif
