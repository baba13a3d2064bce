/*
 * tokens.c - the counter of tokens.h: one pass over the bytes, one table look-up each.
 *
 * Pieces never cross a change of class, so the count of a concatenation is at least the larger
 * part's and at most the sum: what window arithmetic relies on.
 */
#include "rehearsal/tokens.h"

#include <string.h>

#include "base/memory.h"

enum byte_class { OTHER, LETTER, DIGIT, BLANK, LINE_END, LEAD2, LEAD3, LEAD4, CONTINUATION };

static enum byte_class class_of(unsigned char c)
{
	static const unsigned char ascii[128] = {
		['\t'] = BLANK,		[' '] = BLANK,	       ['\n'] = LINE_END,
		['\r'] = LINE_END,	['0' ... '9'] = DIGIT, ['A' ... 'Z'] = LETTER,
		['a' ... 'z'] = LETTER,
	};

	if (c < 0x80)
		return ascii[c];
	if (c < 0xc0)
		return CONTINUATION;
	return c < 0xe0 ? LEAD2 : c < 0xf0 ? LEAD3 : LEAD4;
}

/* Characters of one class from *i on; for multi-byte leads the continuation bytes are skipped. */
static size_t take_run(const unsigned char *s, size_t n, size_t *i, enum byte_class class)
{
	size_t count = 0;

	while (*i < n && class_of(s[*i]) == class) {
		(*i)++;
		count++;
		if (class >= LEAD2)
			while (*i < n && class_of(s[*i]) == CONTINUATION)
				(*i)++;
	}
	return count;
}

static size_t take_same(const unsigned char *s, size_t n, size_t *i)
{
	size_t from = *i;

	while (*i < n && s[*i] == s[from])
		(*i)++;
	return *i - from;
}

/* Rules and rulers (-----, =====) are cheap in every encoding, operators are not. */
static int64_t count_punctuation(const unsigned char *s, size_t n, size_t *i)
{
	size_t mixed = 0;
	int64_t total = 0;

	while (*i < n && class_of(s[*i]) == OTHER) {
		size_t same = take_same(s, n, i);

		if (same < 3)
			mixed += same;
		else
			total += (int64_t)(same + 7) / 8;
	}
	return total + (int64_t)(mixed + 1) / 2;
}

int64_t tokens_count(const char *text, size_t n)
{
	const unsigned char *s = (const unsigned char *)text;
	int64_t total = 0;
	size_t i = 0;

	while (i < n) {
		enum byte_class class = class_of(s[i]);
		size_t run;

		if (class == OTHER) {
			total += count_punctuation(s, n, &i);
			continue;
		}
		run = take_run(s, n, &i, class);
		switch (class) {
		case LETTER: total += run <= 8 ? 1 : 1 + (int64_t)(run - 8 + 4) / 5; break;
		case DIGIT: total += (int64_t)(run + 2) / 3; break;
		case BLANK: total += run == 1 && i < n ? 0 : 1 + (int64_t)run / 16; break;
		case LINE_END: total += (int64_t)(run + 3) / 4; break;
		case LEAD2: total += (int64_t)(run + 1) / 2; break;
		case LEAD4: total += 2 * (int64_t)run; break;
		default: total += (int64_t)run; break;
		}
	}
	return total;
}

#define CACHE_SLOTS  (1U << 16)
#define CACHE_WORTHY 64 /* below this, counting is as cheap as looking up */

struct token_cache {
	struct {
		uint64_t hash;
		int64_t tokens;
	} slots[CACHE_SLOTS]; /* direct-mapped: a collision only costs a count */
};

struct token_cache *token_cache_new(void)
{
	return mem_alloc(sizeof(struct token_cache));
}

void token_cache_free(struct token_cache *cache)
{
	free(cache);
}

int64_t token_cache_find(const struct token_cache *cache, uint64_t hash)
{
	size_t slot = (size_t)(hash % CACHE_SLOTS);

	return cache && cache->slots[slot].hash == hash ? cache->slots[slot].tokens : -1;
}

void token_cache_put(struct token_cache *cache, uint64_t hash, int64_t tokens)
{
	size_t slot = (size_t)(hash % CACHE_SLOTS);

	if (!cache)
		return;
	cache->slots[slot].hash = hash;
	cache->slots[slot].tokens = tokens;
}

int64_t token_cache_count(struct token_cache *cache, uint64_t hash, const char *s, size_t n)
{
	int64_t tokens;

	if (n < CACHE_WORTHY)
		return tokens_count(s, n);
	tokens = token_cache_find(cache, hash);
	if (tokens < 0) {
		tokens = tokens_count(s, n);
		token_cache_put(cache, hash, tokens);
	}
	return tokens;
}

static int base64_value(char c)
{
	static const char set[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *hit = c ? strchr(set, c) : NULL;

	return hit ? (int)(hit - set) : -1;
}

/* Width and height stand at fixed places of a PNG; nothing else of it is looked at. */
int64_t tokens_of_image(const char *base64, size_t n)
{
	unsigned char head[24];
	size_t len = 0;
	uint32_t width, height;

	for (size_t i = 0; i + 4 <= n && len + 3 <= sizeof(head); i += 4) {
		uint32_t word = 0;

		for (size_t k = 0; k < 4; k++)
			word = word << 6 | (uint32_t)(base64_value(base64[i + k]) & 63);
		head[len++] = (unsigned char)(word >> 16);
		head[len++] = (unsigned char)(word >> 8);
		head[len++] = (unsigned char)word;
	}
	if (len < sizeof(head) || memcmp(head, "\x89PNG\r\n\x1a\n", 8) != 0)
		return 1600;
	width = (uint32_t)head[16] << 24 | (uint32_t)head[17] << 16 | (uint32_t)head[18] << 8 |
		head[19];
	height = (uint32_t)head[20] << 24 | (uint32_t)head[21] << 16 | (uint32_t)head[22] << 8 |
		 head[23];
	if (width > 100000 || height > 100000)
		return 1600;
	return MAX((int64_t)width * height / 750, 1);
}
