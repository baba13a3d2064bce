/*
 * thinking.h - what the server hides in signatures and call ids so that it needs no memory.
 *
 * A provider refuses a conversation whose thinking was changed (wire.md 1.6). The server must know
 * what it sent, over restarts and for hundreds of conversations, so each signature carries the
 * fingerprint of its text and of the prefix before it, and each call id says whether thinking came
 * with the call, and of which text.
 */
#ifndef BATON_REHEARSAL_THINKING_H
#define BATON_REHEARSAL_THINKING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum thinking_verdict {
	THINKING_GOOD,
	THINKING_FOREIGN,      /* no signature of this server */
	THINKING_MODIFIED,     /* the text is not the one that was signed */
	THINKING_OTHER_PREFIX, /* what stands before the block has changed (trap 46) */
};

uint64_t thinking_hash(const char *text, size_t n);
/* Appends the signature of a block whose prefix has the fingerprint `prefix`. */
void thinking_sign(struct buf *out, uint64_t text_hash, uint64_t prefix);
/* With `bound` the prefix is compared too. */
enum thinking_verdict thinking_verify(const char *signature, size_t n, uint64_t text_hash,
				      uint64_t prefix, bool bound);

/* Appends the id of call `index` in an answer to the request with fingerprint `seed`: the same
 * request gets the same ids. `reasoning` is thinking_hash of the thinking sent with it, 0 for none.
 */
void call_id_write(struct buf *out, const char *prefix, uint64_t seed, size_t index,
		   uint64_t reasoning);
/* The `reasoning` of an id made by call_id_write; 0 if none or if the id is not ours. */
uint64_t call_id_reasoning(const char *id, size_t n);

#endif
