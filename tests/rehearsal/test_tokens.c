/*
 * test_tokens.c - the counter: known values, ratios per kind of text (trap 86), the cache.
 */
#include "rehearsal_rig.h"

#include "rehearsal/hash.h"
#include "rehearsal/tokens.h"

static int64_t count(const char *s)
{
	return tokens_count(s, strlen(s));
}

static void known_values(void **state)
{
	assert_int_equal(count(""), 0);
	assert_int_equal(count("hello"), 1);
	assert_int_equal(count("hello world"), 2);
	assert_int_equal(count("internationalisation"), 1 + 3); /* 20 letters: 8, then 12 / 5 */
	assert_int_equal(count("1234567"), 3);
	assert_int_equal(count("a  b"), 3);
	assert_int_equal(count("a\n\n\nb"), 3);
	assert_int_equal(count("f();"), 3);
	assert_int_equal(count("----------------"), 2);
	assert_int_equal(count("\xe6\xbc\xa2\xe5\xad\x97"), 2); /* two CJK characters */
	assert_int_equal(count("\xf0\x9f\x98\x80"), 2);		/* an emoji */
	assert_int_equal(count("\xc3\xa4\xc3\xb6\xc3\xbc"), 2); /* three umlauts */
}

static double ratio(const char *s)
{
	return (double)strlen(s) / (double)count(s);
}

/* Trap 86: four bytes per token is wrong for code and far off for hexadecimal text. */
static void ratios_by_kind(void **state)
{
	double prose =
		ratio("The quick brown fox jumps over the lazy dog, and nobody in the village "
		      "seemed to notice what had happened there that evening.");
	double code =
		ratio("for (size_t i = 0; i < n; i++) {\n\tif (p[i] == NULL)\n\t\treturn -1;\n}");
	double hex = ratio("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08");

	assert_true(prose > 4.0 && prose < 6.0);
	assert_true(code > 1.8 && code < 3.5);
	assert_true(hex > 1.0 && hex < 2.0);
}

static void cache_gives_the_same(void **state)
{
	struct token_cache *cache = token_cache_new();
	char text[1000];

	memset(text, 'a', sizeof(text));
	uint64_t hash = hash_bytes(HASH_SEED, text, sizeof(text));
	assert_int_equal(token_cache_find(cache, hash), -1);
	assert_int_equal(token_cache_count(cache, hash, text, sizeof(text)),
			 tokens_count(text, sizeof(text)));
	/* The second time the text is not looked at any more. */
	assert_int_equal(token_cache_count(cache, hash, NULL, sizeof(text)),
			 tokens_count(text, sizeof(text)));
	token_cache_free(cache);
}

static void image_by_its_size(void **state)
{
	/* A PNG head with 1500 x 1000 pixels. */
	static const char png[] = "iVBORw0KGgoAAAANSUhEUgAABdwAAAPoCAYAAAA=";

	assert_int_equal(tokens_of_image(png, sizeof(png) - 1), 1500 * 1000 / 750);
	assert_int_equal(tokens_of_image("/9j/4AAQ", 8), 1600);
	assert_int_equal(tokens_of_image("", 0), 1600);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_values),
		cmocka_unit_test(ratios_by_kind),
		cmocka_unit_test(cache_gives_the_same),
		cmocka_unit_test(image_by_its_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
