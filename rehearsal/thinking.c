/*
 * thinking.c - the forms are fixed-width hexadecimal behind a mark, so that checking is a parse:
 *   signature  RHS1 <text 16> <prefix 16> <seal 16>
 *   call id    PREFIX rh <seed and index 16> <reasoning 16>
 * The seal only tells a signature of ours from a made-up one.
 */
#include "rehearsal/thinking.h"

#include <inttypes.h>
#include <string.h>

#include "rehearsal/hash.h"

#define SIGNATURE_MARK "RHS1"
#define SIGNATURE_LEN  (4 + 3 * 16)
#define SEAL_SALT      UINT64_C(0x7265686561727365)

static bool read_hex16(const char *s, uint64_t *ret)
{
	uint64_t value = 0;

	for (size_t i = 0; i < 16; i++) {
		static const char digits[] = "0123456789abcdef";
		const char *hit = s[i] ? strchr(digits, s[i]) : NULL;

		if (!hit)
			return false;
		value = value << 4 | (uint64_t)(hit - digits);
	}
	*ret = value;
	return true;
}

static uint64_t seal_of(uint64_t text, uint64_t prefix)
{
	return hash_mix(hash_mix(SEAL_SALT, text), prefix);
}

uint64_t thinking_hash(const char *text, size_t n)
{
	uint64_t h = hash_bytes(HASH_SEED, text, n);

	return h ? h : 1; /* 0 means "no thinking" in call ids */
}

void thinking_sign(struct buf *out, uint64_t text_hash, uint64_t prefix)
{
	buf_addf(out, SIGNATURE_MARK "%016" PRIx64 "%016" PRIx64 "%016" PRIx64, text_hash, prefix,
		 seal_of(text_hash, prefix));
}

enum thinking_verdict thinking_verify(const char *signature, size_t n, uint64_t text_hash,
				      uint64_t prefix, bool bound)
{
	uint64_t text, before, seal;

	if (n != SIGNATURE_LEN || memcmp(signature, SIGNATURE_MARK, 4) != 0 ||
	    !read_hex16(signature + 4, &text) || !read_hex16(signature + 20, &before) ||
	    !read_hex16(signature + 36, &seal) || seal != seal_of(text, before))
		return THINKING_FOREIGN;
	if (text != text_hash)
		return THINKING_MODIFIED;
	return bound && before != prefix ? THINKING_OTHER_PREFIX : THINKING_GOOD;
}

void call_id_write(struct buf *out, const char *prefix, uint64_t seed, size_t index,
		   uint64_t reasoning)
{
	buf_addf(out, "%srh%016" PRIx64 "%016" PRIx64, prefix, hash_mix(seed, index + 1),
		 reasoning);
}

uint64_t call_id_reasoning(const char *id, size_t n)
{
	uint64_t value;

	if (n < 34 || memcmp(id + n - 34, "rh", 2) != 0 || !read_hex16(id + n - 16, &value))
		return 0;
	return value;
}
