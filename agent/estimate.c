/*
 * estimate.c - the token estimator: byte classes, kinds, rates that learn.
 *
 * A tokenizer of our own was rejected: each provider has another one, they change with the models,
 * and the tables weigh megabytes. Bytes divided by four is what others use; it is wrong by half for
 * CJK, hex and base64 text, and that is how windows overflow (trap 86). Here a text is cut into
 * windows of 1 KiB; what is not ASCII, and long runs of letters with digits in them, are counted
 * apart; the rest of a window is prose, code or JSON by its punctuation. The start rates lean to
 * the high side: too high costs some room, too low costs a refused request.
 */
#include "agent/estimate.h"

#include <stdbool.h>

#include "base/memory.h"

#define WINDOW	    1024
#define DENSE_RUN   32	 /* bytes of a word from which it can be hex or base64 */
#define LEARN_BYTES 1000 /* less text teaches nothing */
#define LEARN_GAIN  0.6
#define RATE_LOW    0.5
#define RATE_HIGH   2.5

static const double start_rates[TEXT_KINDS] = {
	[TEXT_PROSE] = 1 / 4.2, [TEXT_CODE] = 1 / 3.3,	[TEXT_JSON] = 1 / 3.0,
	[TEXT_CJK] = 1 / 2.6,	[TEXT_DENSE] = 1 / 1.6,
};

void estimator_init(struct estimator *estimator)
{
	memcpy(estimator->rate, start_rates, sizeof(start_rates));
}

/* What one window of text holds. */
struct window_count {
	int64_t high, dense, letters, digits, punct, quotes;
};

/* The end of a word: as dense if it is long and has both letters and a good part of digits. */
static void word_end(struct window_count *c, size_t run, size_t digits)
{
	if (run >= DENSE_RUN && digits * 16 >= run) {
		c->dense += (int64_t)run;
		c->digits -= (int64_t)digits;
		c->letters -= (int64_t)(run - digits);
	}
}

/* One pass, no lookups beyond the byte itself: a result of 50 KB costs some 50 microseconds. */
static void window_scan(struct window_count *c, const unsigned char *s, size_t n)
{
	size_t run = 0, digits = 0;

	for (size_t i = 0; i < n; i++) {
		unsigned char ch = s[i];
		bool digit = (unsigned)(ch - '0') < 10;
		bool word = digit || (unsigned)((ch | 32) - 'a') < 26 || ch == '_' || ch == '/' ||
			    ch == '+' || ch == '=';

		if (word) {
			run++;
			digits += digit;
			c->digits += digit;
			c->letters += !digit;
			continue;
		}
		word_end(c, run, digits);
		run = digits = 0;
		if (ch >= 0x80)
			c->high++;
		else if (ch == '"')
			c->quotes++;
		else if (ch > ' ')
			c->punct++;
	}
	word_end(c, run, digits);
}

/* The kind of a window's ASCII rest. */
static enum text_kind window_kind(const struct window_count *c)
{
	int64_t marks = c->punct + c->quotes;
	int64_t solid = c->letters + c->digits + marks;

	if (c->digits * 3 > solid)
		return TEXT_DENSE;
	if (c->quotes * 16 > solid && marks * 5 > solid)
		return TEXT_JSON;
	return marks * 11 > solid ? TEXT_CODE : TEXT_PROSE;
}

void estimate_count(struct text_counts *counts, const char *text, size_t n)
{
	const unsigned char *s = (const unsigned char *)text;

	for (size_t at = 0; at < n; at += WINDOW) {
		struct window_count c = {0};
		size_t size = MIN(n - at, (size_t)WINDOW);

		window_scan(&c, s + at, size);
		counts->bytes[TEXT_CJK] += c.high;
		counts->bytes[TEXT_DENSE] += c.dense;
		counts->bytes[window_kind(&c)] += (int64_t)size - c.high - c.dense;
	}
}

void estimate_merge(struct text_counts *counts, const struct text_counts *more)
{
	for (size_t k = 0; k < TEXT_KINDS; k++)
		counts->bytes[k] += more->bytes[k];
	counts->images += more->images;
	counts->overhead += more->overhead;
}

static int64_t counts_bytes(const struct text_counts *counts)
{
	int64_t sum = 0;

	for (size_t k = 0; k < TEXT_KINDS; k++)
		sum += counts->bytes[k];
	return sum;
}

static double counts_text(const struct estimator *e, const struct text_counts *counts)
{
	double sum = 0;

	for (size_t k = 0; k < TEXT_KINDS; k++)
		sum += (double)counts->bytes[k] * e->rate[k];
	return sum;
}

int64_t estimate_tokens(const struct estimator *estimator, const struct text_counts *counts)
{
	int64_t text = (int64_t)(counts_text(estimator, counts) + 0.999);

	return MAX(text, counts_bytes(counts) / 8) + counts->images * ESTIMATE_IMAGE +
	       counts->overhead;
}

void estimator_learn(struct estimator *estimator, const struct text_counts *counts, int64_t actual)
{
	double text = counts_text(estimator, counts);
	double told = (double)(actual - counts->images * ESTIMATE_IMAGE - counts->overhead);
	double ratio;

	if (counts_bytes(counts) < LEARN_BYTES || told <= 0 || text <= 0)
		return;
	ratio = told / text;
	ratio = MAX(MIN(ratio, 2.0), 0.5);
	for (size_t k = 0; k < TEXT_KINDS; k++) {
		double part = (double)counts->bytes[k] * estimator->rate[k] / text;
		double rate = estimator->rate[k] * (1 + LEARN_GAIN * part * (ratio - 1));

		rate = MAX(rate, start_rates[k] * RATE_LOW);
		estimator->rate[k] = MIN(rate, start_rates[k] * RATE_HIGH);
	}
}
