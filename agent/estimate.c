/*
 * estimate.c - the token estimator: runs of a text, what each is worth, rates that learn.
 *
 * A tokenizer of our own was rejected: each provider has another one, they change with the models,
 * and the tables weigh megabytes. Bytes divided by four is what others use; it is wrong by half for
 * CJK, hex and base64 text, and that is how windows overflow (trap 86). But all tokenizers in use
 * first cut a text by nearly the same rules: a word with the space before it, up to three digits, a
 * run of marks, an end of line. A pass that cuts likewise and knows what a word of seven letters
 * costs on average is within some percent of each of them, and what is left differs by model and
 * kind of run, not by text: one rate per kind takes it up.
 */
#include "agent/estimate.h"

#include "base/memory.h"

#define LEARN_BYTES 1000 /* less text teaches nothing */
#define DENSE_BYTES 8	 /* of a run of letters and digits, from which it can be hex or base64 */

/* What is counted, its kind, and the tokens that one is worth: a least squares fit over the texts
 * and tokenizers of tests/bench/bench_tokens. */
#define FEATURES(X)                                                                                \
	X(WORD1, WORDS, 0.85)	  /* of one letter */                                              \
	X(WORD2, WORDS, 0.90)	  /* of two to four */                                             \
	X(WORD5, WORDS, 1.13)	  /* five to seven */                                              \
	X(WORD8, WORDS, 1.31)	  /* eight to ten */                                               \
	X(WORD11, WORDS, 1.11)	  /* more */                                                       \
	X(WORD_MORE, WORDS, 0.58) /* each letter from the twelfth on */                            \
	X(NAME1, NAMES, 0.87)                                                                      \
	X(NAME2, NAMES, 1.22)                                                                      \
	X(NAME5, NAMES, 0.96)                                                                      \
	X(NAME8, NAMES, 1.28)                                                                      \
	X(NAME11, NAMES, 2.77)                                                                     \
	X(NAME_MORE, NAMES, 0.38)                                                                  \
	X(CAPS, CAPS, 0.81)                                                                        \
	X(CAPS_BYTE, CAPS, 0.10)                                                                   \
	X(DIGIT_RUN, DIGITS, 0.01)                                                                 \
	X(DIGIT, DIGITS, 0.15)                                                                     \
	X(DIGIT3, DIGITS, 1.02)	     /* groups of three */                                         \
	X(DIGIT_SPACE, DIGITS, 0.67) /* one space before digits */                                 \
	X(MARK_WORD, JOINTS, 0.46)   /* one, right before a letter */                              \
	X(MARK1, MARKS, 0.94)                                                                      \
	X(MARK2, MARKS, 1.21)                                                                      \
	X(MARK3, MARKS, 0.82)                                                                      \
	X(MARK4, MARKS, 1.13)                                                                      \
	X(MARK_MORE, MARKS, 0.53) /* each from the fifth on */                                     \
	X(MARK_SAME, MARKS, 0.10) /* such a one that repeats the one before it */                  \
	X(LINE_MARK, ENDS, 0.30)  /* the end of a line after a mark */                             \
	X(LINE, SPACE, 1.24)                                                                       \
	X(LINE_MORE, SPACE, 0.08) /* an empty line */                                              \
	X(INDENT1, SPACE, 0.00)	  /* by one space or tab */                                        \
	X(INDENT, SPACE, 0.56)	  /* by more */                                                    \
	X(GAP, SPACE, 0.67)	  /* two spaces or more within a line */                           \
	X(BASE64, BASE64, 0.72)                                                                    \
	X(HEX, HEX, 0.64)                                                                          \
	X(HAN, HAN, 0.71)                                                                          \
	X(WIDE_MARK, HAN, 0.85) /* full width punctuation */                                       \
	X(KANA, KANA, 0.68)                                                                        \
	X(HANGUL, HANGUL, 0.84)                                                                    \
	X(LATIN, LATIN, 2.00)                                                                      \
	X(ALPHABET, ALPHABETS, 0.36) /* Greek, Cyrillic, Hebrew, Arabic */                         \
	X(INDIC, ALPHABETS, 0.91)    /* three bytes: Indic, Thai and others */                     \
	X(SYMBOL, SYMBOLS, 0.75)                                                                   \
	X(EMOJI, SYMBOLS, 2.20)	 /* four bytes */                                                  \
	X(BROKEN, SYMBOLS, 0.97) /* a control byte or one that is not UTF-8 */

enum feature {
#define FEATURE_ENUM(name, kind, tokens) F_##name,
	FEATURES(FEATURE_ENUM)
#undef FEATURE_ENUM
		FEATURE_COUNT,
};

static const struct {
	enum text_kind kind;
	int units;
} features[FEATURE_COUNT] = {
#define FEATURE_ROW(name, kind, tokens) {TEXT_##kind, (int)((tokens)*ESTIMATE_UNIT)},
	FEATURES(FEATURE_ROW)
#undef FEATURE_ROW
};

static const char *const kind_names[TEXT_KINDS] = {
	[TEXT_WORDS] = "words",	    [TEXT_NAMES] = "names", [TEXT_CAPS] = "caps",
	[TEXT_DIGITS] = "digits",   [TEXT_MARKS] = "marks", [TEXT_JOINTS] = "joints",
	[TEXT_ENDS] = "ends",	    [TEXT_SPACE] = "space", [TEXT_BASE64] = "base64",
	[TEXT_HEX] = "hex",	    [TEXT_HAN] = "han",	    [TEXT_KANA] = "kana",
	[TEXT_HANGUL] = "hangul",   [TEXT_LATIN] = "latin", [TEXT_ALPHABETS] = "alphabets",
	[TEXT_SYMBOLS] = "symbols",
};

const char *text_kind_name(enum text_kind kind)
{
	return kind < TEXT_KINDS ? kind_names[kind] : "?";
}

/* ---- the pass over a text ---- */

enum byte_class { B_LOWER, B_UPPER, B_DIGIT, B_MARK, B_SPACE, B_LINE, B_HIGH, B_CONTROL };

#define B8(c)  c, c, c, c, c, c, c, c
#define B64(c) B8(c), B8(c), B8(c), B8(c), B8(c), B8(c), B8(c), B8(c)
#define B26(c) B8(c), B8(c), B8(c), c, c

/* In the order of ASCII. */
static const unsigned char classes[256] = {
	/* 0 */ B8(B_CONTROL),
	B_CONTROL,
	B_SPACE,
	B_LINE,
	B_SPACE,
	B_SPACE,
	B_SPACE,
	B_CONTROL,
	B_CONTROL,
	/* 16 */ B8(B_CONTROL),
	B8(B_CONTROL),
	/* space */ B_SPACE,
	B8(B_MARK),
	B_MARK,
	B_MARK,
	B_MARK,
	B_MARK,
	B_MARK,
	B_MARK,
	B_MARK,
	/* 0 */ B8(B_DIGIT),
	B_DIGIT,
	B_DIGIT,
	/* : */ B_MARK,
	B_MARK,
	B_MARK,
	B_MARK,
	B_MARK,
	B_MARK,
	B_MARK,
	/* A */ B26(B_UPPER),
	/* [ */ B_MARK,
	B_MARK,
	B_MARK,
	B_MARK,
	B_MARK,
	B_MARK,
	/* a */ B26(B_LOWER),
	/* { */ B_MARK,
	B_MARK,
	B_MARK,
	B_MARK,
	B_CONTROL,
	/* 128 */ B64(B_HIGH),
	B64(B_HIGH),
};

struct scan {
	const unsigned char *s;
	size_t n, at;
	int64_t f[FEATURE_COUNT];
	int64_t bytes[TEXT_KINDS];
};

static enum byte_class class_at(const struct scan *c, size_t i)
{
	return classes[c->s[i]];
}

/* A text begins as a line does. */
static enum byte_class class_before(const struct scan *c, size_t i)
{
	return i ? class_at(c, i - 1) : B_LINE;
}

static void add_word(struct scan *c, enum feature first, enum text_kind kind, size_t n)
{
	static const unsigned char bin[] = {0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4};
	size_t place = bin[MIN(n, (size_t)11)];

	c->f[first + place]++;
	if (n > 11)
		c->f[first + 5] += (int64_t)n - 11;
	c->bytes[kind] += (int64_t)n;
}

/* Parts of a run of letters and digits, as tokenizers part them: before capitals and digits. */
static void add_parts(struct scan *c, size_t end)
{
	bool word = class_before(c, c->at) == B_SPACE || class_before(c, c->at) == B_LINE;

	while (c->at < end) {
		size_t from = c->at, i = from;
		enum byte_class class = class_at(c, i);

		while (++i < end && class_at(c, i) == class)
			;
		if (class == B_DIGIT) {
			c->f[F_DIGIT_RUN]++;
			c->f[F_DIGIT] += (int64_t)(i - from);
			c->f[F_DIGIT3] += (int64_t)(i - from + 2) / 3;
			c->bytes[TEXT_DIGITS] += (int64_t)(i - from);
		} else {
			if (class == B_UPPER && i < end && class_at(c, i) == B_LOWER) {
				if (i - from > 1)
					i--; /* the last capital begins the next part */
				else
					while (++i < end && class_at(c, i) == B_LOWER)
						;
			}
			if (class == B_UPPER && i - from > 1 && class_at(c, i - 1) == B_UPPER) {
				c->f[F_CAPS]++;
				c->f[F_CAPS_BYTE] += (int64_t)(i - from);
				c->bytes[TEXT_CAPS] += (int64_t)(i - from);
			} else if (word) {
				add_word(c, F_WORD1, TEXT_WORDS, i - from);
			} else {
				add_word(c, F_NAME1, TEXT_NAMES, i - from);
			}
		}
		word = false;
		c->at = i;
	}
}

static bool is_hex(const unsigned char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if ((s[i] | 32) > 'f')
			return false;
	return true;
}

/* Random bytes change between letters, capitals and digits at every second or third place; names do
 * not. The pointer is copied because a byte may alias the counters, and the loop would load it anew
 * each time. */
static void scan_solid(struct scan *c)
{
	const unsigned char *s = c->s, *p = s + c->at, *end = s + c->n;
	size_t changes = 0, digits = 0, n;
	unsigned char last = classes[*p], now;

	while (p < end && classes[*p] == B_LOWER)
		p++;
	for (; p < end && (now = classes[*p]) <= B_DIGIT; p++) {
		changes += now != last;
		digits += now == B_DIGIT;
		last = now;
	}
	n = (size_t)(p - s) - c->at;
	if (digits && c->at && s[c->at - 1] == ' ' && class_at(c, c->at) == B_DIGIT)
		c->f[F_DIGIT_SPACE]++;
	if (n >= DENSE_BYTES && digits && changes * 3 >= n) {
		bool hex = is_hex(s + c->at, n);

		c->f[hex ? F_HEX : F_BASE64] += (int64_t)n;
		c->bytes[hex ? TEXT_HEX : TEXT_BASE64] += (int64_t)n;
		c->at += n;
		return;
	}
	if (changes == 0 && last == B_LOWER) {
		bool word = class_before(c, c->at) == B_SPACE || class_before(c, c->at) == B_LINE;

		add_word(c, word ? F_WORD1 : F_NAME1, word ? TEXT_WORDS : TEXT_NAMES, n);
		c->at += n;
		return;
	}
	add_parts(c, c->at + n);
}

static void scan_marks(struct scan *c)
{
	size_t i = c->at, n, same = 0;

	while (++i < c->n && class_at(c, i) == B_MARK)
		same += i - c->at >= 4 && c->s[i] == c->s[i - 1];
	n = i - c->at;
	if (n == 1 && i < c->n && class_at(c, i) <= B_UPPER && class_before(c, c->at) != B_SPACE) {
		c->f[F_MARK_WORD]++;
		c->bytes[TEXT_JOINTS]++;
		c->at = i;
		return;
	}
	c->f[F_MARK1 + MIN(n, (size_t)4) - 1]++;
	if (n > 4) {
		c->f[F_MARK_MORE] += (int64_t)(n - 4 - same);
		c->f[F_MARK_SAME] += (int64_t)same;
	}
	c->bytes[TEXT_MARKS] += (int64_t)n;
	c->at = i;
}

/* One space within a line belongs to the word after it and is free. */
static void scan_space(struct scan *c)
{
	size_t i = c->at, lines = 0, line_end = i, width;
	enum byte_class class;

	if (c->s[i] == ' ' && i + 1 < c->n && class_at(c, i + 1) <= B_MARK) {
		c->bytes[TEXT_SPACE]++;
		c->at++;
		return;
	}
	for (; i < c->n && ((class = class_at(c, i)) == B_SPACE || class == B_LINE); i++) {
		if (class == B_LINE) {
			lines++;
			line_end = i + 1;
		}
	}
	width = i - line_end;
	if (lines) {
		bool mark = class_before(c, c->at) == B_MARK;

		c->f[mark ? F_LINE_MARK : F_LINE]++;
		c->bytes[mark ? TEXT_ENDS : TEXT_SPACE]++;
		c->f[F_LINE_MORE] += (int64_t)lines - 1;
		c->f[F_INDENT1] += width == 1;
		c->f[F_INDENT] += width > 1;
	} else {
		c->f[F_GAP] += width > 1;
	}
	c->bytes[TEXT_SPACE] += (int64_t)(i - c->at) - (lines > 0);
	c->at = i;
}

static enum feature three_byte_feature(unsigned char lead, unsigned char next)
{
	if (lead >= 0xe4 && lead <= 0xe9)
		return F_HAN;
	if (lead == 0xe3)
		return next == 0x80 ? F_WIDE_MARK : next <= 0x83 ? F_KANA : F_HAN;
	if (lead >= 0xea && lead <= 0xed)
		return lead == 0xea && next < 0xb0 ? F_INDIC : F_HANGUL;
	if (lead == 0xef)
		return next == 0xbc || next == 0xbd ? F_WIDE_MARK : F_SYMBOL;
	return lead < 0xe2 ? F_INDIC : F_SYMBOL;
}

/* By the lead byte; a character whose other bytes are missing is broken, byte by byte. */
static void scan_high(struct scan *c)
{
	const unsigned char *s = c->s + c->at;
	size_t size = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : s[0] >= 0xc2 ? 2 : 1;
	enum feature feature = F_BROKEN;

	for (size_t i = 1; i < size; i++)
		if (c->at + i >= c->n || (s[i] & 0xc0) != 0x80)
			size = 1;
	if (size == 2)
		feature = s[0] == 0xc2 ? F_SYMBOL : s[0] < 0xcd ? F_LATIN : F_ALPHABET;
	else if (size == 3)
		feature = three_byte_feature(s[0], s[1]);
	else if (size == 4)
		feature = F_EMOJI;
	c->f[feature]++;
	c->bytes[features[feature].kind] += (int64_t)size;
	c->at += size;
}

static void scan_text(struct scan *c)
{
	while (c->at < c->n) {
		switch (class_at(c, c->at)) {
		case B_LOWER:
		case B_UPPER:
		case B_DIGIT: scan_solid(c); break;
		case B_MARK: scan_marks(c); break;
		case B_SPACE:
		case B_LINE: scan_space(c); break;
		case B_HIGH: scan_high(c); break;
		case B_CONTROL:
			c->f[F_BROKEN]++;
			c->bytes[TEXT_SYMBOLS]++;
			c->at++;
			break;
		}
	}
}

void estimate_count(struct text_counts *counts, const char *text, size_t n)
{
	struct scan c = {.s = (const unsigned char *)text, .n = n};

	scan_text(&c);
	for (size_t i = 0; i < FEATURE_COUNT; i++)
		counts->units[features[i].kind] += c.f[i] * features[i].units;
	for (size_t k = 0; k < TEXT_KINDS; k++)
		counts->bytes[k] += c.bytes[k];
}

void estimate_merge(struct text_counts *counts, const struct text_counts *more)
{
	for (size_t k = 0; k < TEXT_KINDS; k++) {
		counts->bytes[k] += more->bytes[k];
		counts->units[k] += more->units[k];
	}
	counts->images += more->images;
	counts->overhead += more->overhead;
}

int64_t estimate_bytes(const struct text_counts *counts)
{
	int64_t sum = 0;

	for (size_t k = 0; k < TEXT_KINDS; k++)
		sum += counts->bytes[k];
	return sum;
}

/* ---- rates ---- */

/* How real tokenizers differ from their average, as standard deviations of the rates: each kind by
 * itself, all kinds together, and in two ways that move several kinds at once. Older tokenizers
 * join no mark to the word or the end of line after it, and have fewer words of other scripts;
 * some take digits one by one. So a usage of C source says something of a log that comes later. */
#define SPREAD_ALL 0.1
static const struct {
	double own, older, digits;
} spreads[TEXT_KINDS] = {
	[TEXT_WORDS] = {0.06, 0.05, 0},	   [TEXT_NAMES] = {0.1, 0.07, 0},
	[TEXT_CAPS] = {0.15, 0.12, 0},	   [TEXT_DIGITS] = {0.2, -0.15, 0.35},
	[TEXT_MARKS] = {0.1, 0.03, 0},	   [TEXT_JOINTS] = {0.3, 0.65, 0},
	[TEXT_SPACE] = {0.2, -0.4, 0},	   [TEXT_ENDS] = {0.4, 0.35, 0},
	[TEXT_BASE64] = {0.1, 0, 0},	   [TEXT_HEX] = {0.12, 0, 0.22},
	[TEXT_HAN] = {0.2, 0.1, 0},	   [TEXT_KANA] = {0.15, 0.3, 0},
	[TEXT_HANGUL] = {0.2, 0.3, 0},	   [TEXT_LATIN] = {0.3, 0.15, 0},
	[TEXT_ALPHABETS] = {0.25, 0.3, 0}, [TEXT_SYMBOLS] = {0.3, 0.2, 0},
};

#define NOISE	    0.03 /* relative error that a text has although all rates are right */
#define NOISE_FIXED 20.0 /* tokens of a request that are no text: the provider's own frame */
#define DRIFT	    0.01 /* how far a rate moves from text to text */
#define START_HIGH  1.03 /* too high costs some room, too low costs a refused request */

void estimator_init(struct estimator *e)
{
	*e = (struct estimator){.rate = {0}};
	for (size_t k = 0; k < TEXT_KINDS; k++) {
		e->rate[k] = START_HIGH;
		for (size_t j = 0; j < TEXT_KINDS; j++)
			e->spread[k][j] = SPREAD_ALL * SPREAD_ALL +
					  spreads[k].older * spreads[j].older +
					  spreads[k].digits * spreads[j].digits;
		e->spread[k][k] += spreads[k].own * spreads[k].own;
	}
}

/* The expected tokens of the text alone. */
static double counts_text(const struct estimator *e, const struct text_counts *counts)
{
	double sum = 0;

	for (size_t k = 0; k < TEXT_KINDS; k++)
		sum += (double)counts->units[k] * e->rate[k];
	return sum / ESTIMATE_UNIT;
}

int64_t estimate_tokens(const struct estimator *estimator, const struct text_counts *counts)
{
	int64_t text = (int64_t)(counts_text(estimator, counts) + 0.999);

	return MAX(text, estimate_bytes(counts) / 8) + counts->images * ESTIMATE_IMAGE +
	       counts->overhead;
}

/* A rate that was stopped at its bound no longer says how others are off: without this the fit
 * would go on to blame it alone for every miss. */
static void rate_bound(struct estimator *e, size_t kind)
{
	double rate = MIN(MAX(e->rate[kind], ESTIMATE_RATE_LOW), ESTIMATE_RATE_HIGH);

	if (rate == e->rate[kind])
		return;
	e->rate[kind] = rate;
	for (size_t j = 0; j < TEXT_KINDS; j++)
		if (j != kind)
			e->spread[kind][j] = e->spread[j][kind] = 0;
}

/* One step of recursive least squares: the rates, each by its share, were seen to be off by `miss`,
 * a figure with an error of its own of variance `noise`. */
static void estimator_step(struct estimator *e, const double share[TEXT_KINDS], double miss,
			   double noise)
{
	double along[TEXT_KINDS] = {0}, total = noise;

	for (size_t k = 0; k < TEXT_KINDS; k++) {
		for (size_t j = 0; j < TEXT_KINDS; j++)
			along[k] += e->spread[k][j] * share[j];
		total += along[k] * share[k];
	}
	for (size_t k = 0; k < TEXT_KINDS; k++) {
		e->rate[k] += along[k] / total * miss;
		for (size_t j = 0; j < TEXT_KINDS; j++)
			e->spread[k][j] -= along[k] * along[j] / total;
	}
	for (size_t k = 0; k < TEXT_KINDS; k++)
		rate_bound(e, k);
}

void estimator_recall(struct estimator *e, enum text_kind kind, double rate, int64_t tokens)
{
	double share[TEXT_KINDS] = {0};
	double noise = NOISE * NOISE + NOISE * 1000.0 / (double)MAX(tokens, 1);

	share[kind] = 1;
	rate = MIN(MAX(rate, ESTIMATE_RATE_LOW), ESTIMATE_RATE_HIGH);
	estimator_step(e, share, rate - e->rate[kind], noise);
}

bool estimator_learn(struct estimator *e, const struct text_counts *counts, int64_t actual)
{
	double told = (double)(actual - counts->images * ESTIMATE_IMAGE - counts->overhead);
	double text = counts_text(e, counts), miss;
	int64_t bytes = estimate_bytes(counts);
	double share[TEXT_KINDS];

	if (bytes < LEARN_BYTES || text <= 0 || told < (double)bytes / 8 || told > (double)bytes)
		return false;
	for (size_t k = 0; k < TEXT_KINDS; k++) {
		share[k] = (double)counts->units[k] / ESTIMATE_UNIT / text;
		e->learned[k] += (int64_t)(share[k] * told);
		if (share[k] > 0 && e->spread[k][k] < spreads[k].own * spreads[k].own)
			e->spread[k][k] += DRIFT * DRIFT;
	}
	miss = MIN(MAX(told / text - 1, -0.5), 1.0);
	estimator_step(e, share, miss, NOISE * NOISE + NOISE_FIXED * NOISE_FIXED / (text * text));
	return true;
}
