/*
 * hash.h - the 64-bit mixing hash of the rehearsal server.
 *
 * It fingerprints blocks, prefixes and conversations: eight bytes per step, because each request is
 * hashed whole and a bench sends hundreds of megabytes. Not for anything security relevant: the
 * signatures made from it only catch a client that changes what it was given.
 */
#ifndef BATON_REHEARSAL_HASH_H
#define BATON_REHEARSAL_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define HASH_SEED UINT64_C(0x9e3779b97f4a7c15)

static inline uint64_t hash_mix(uint64_t h, uint64_t word)
{
	h ^= word;
	h *= UINT64_C(0xff51afd7ed558ccd);
	h ^= h >> 32;
	return h;
}

/* The length is mixed in, so that ("ab","c") and ("a","bc") differ when chained. */
static inline uint64_t hash_bytes(uint64_t h, const void *p, size_t n)
{
	const unsigned char *s = p;
	uint64_t word;

	h = hash_mix(h, n);
	for (; n >= 8; s += 8, n -= 8) {
		memcpy(&word, s, 8);
		h = hash_mix(h, word);
	}
	word = 0;
	if (n)
		memcpy(&word, s, n);
	return hash_mix(hash_mix(h, word), UINT64_C(0xc4ceb9fe1a85ec53));
}

static inline uint64_t hash_cstr(uint64_t h, const char *s)
{
	return hash_bytes(h, s, strlen(s));
}

#endif
