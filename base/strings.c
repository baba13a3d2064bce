/*
 * strings.c - the small helpers of text.h: comparing, finding, spelling help, numbers.
 *
 * The number parsers take the whole string or nothing and never round or wrap: a limit such as
 * "64k" comes from a flag, a file or the environment, and a silent 0 there would be a limit of 0.
 */
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

size_t text_count_lines(const char *s, size_t n)
{
	size_t lines = 0, at = 0;
	while (at < n) {
		const char *nl = memchr(s + at, '\n', n - at);
		lines++;
		if (!nl)
			break;
		at = (size_t)(nl - s) + 1;
	}
	return lines;
}

bool text_starts(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool text_ends(const char *s, const char *suffix)
{
	size_t n = strlen(s), k = strlen(suffix);
	return n >= k && memcmp(s + n - k, suffix, k) == 0;
}

/* ASCII only, whatever the locale: 'I' is 'i' for error texts of servers, also in Turkey. */
static unsigned char lower(char c)
{
	return (unsigned char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
}

const char *text_find_nocase(const char *hay, size_t n, const char *needle)
{
	size_t k = strlen(needle);
	for (size_t i = 0; k <= n && i <= n - k; i++) {
		size_t j = 0;
		while (j < k && lower(hay[i + j]) == lower(needle[j]))
			j++;
		if (j == k)
			return hay + i;
	}
	return NULL;
}

enum { NEAREST_MAX = 64 };

/* Edit distance with swapped neighbours counted once ("modle"): the usual typing error. */
static size_t edit_distance(const char *a, size_t na, const char *b, size_t nb)
{
	size_t rows[3][NEAREST_MAX + 1];
	size_t *before = rows[0], *last = rows[1], *now = rows[2];
	for (size_t j = 0; j <= nb; j++)
		last[j] = before[j] = j;
	for (size_t i = 1; i <= na; i++) {
		now[0] = i;
		for (size_t j = 1; j <= nb; j++) {
			bool same = lower(a[i - 1]) == lower(b[j - 1]);
			size_t best = last[j - 1] + (same ? 0 : 1);
			best = MIN(best, last[j] + 1);
			best = MIN(best, now[j - 1] + 1);
			if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
			    lower(a[i - 2]) == lower(b[j - 1]))
				best = MIN(best, before[j - 2] + 1);
			now[j] = best;
		}
		size_t *spare = before;
		before = last;
		last = now;
		now = spare;
	}
	return last[nb];
}

/* A suggestion that is wrong is worse than none: half of the letters must agree. Of equals the
 * first wins, so the order of the candidates decides and the answer is stable. */
const char *text_nearest(const char *word, const char *const *candidates, size_t count)
{
	size_t n = strlen(word), best = 4;
	const char *found = NULL;
	if (n > NEAREST_MAX)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		size_t k = strlen(candidates[i]);
		if (k > NEAREST_MAX)
			continue;
		size_t distance = edit_distance(word, n, candidates[i], k);
		if (distance < best && distance * 2 < MAX(n, k)) {
			best = distance;
			found = candidates[i];
		}
	}
	return found;
}

int text_parse_bool(const char *s, bool *ret)
{
	static const char *const yes[] = {"1", "true", "yes", "on"};
	static const char *const no[] = {"0", "false", "no", "off", ""};

	for (size_t i = 0; i < ARRAY_SIZE(yes); i++) {
		if (strcmp(yes[i], s) == 0) {
			*ret = true;
			return 0;
		}
	}
	for (size_t i = 0; i < ARRAY_SIZE(no); i++) {
		if (strcmp(no[i], s) == 0) {
			*ret = false;
			return 0;
		}
	}
	return -1;
}

int text_parse_i64(const char *s, int64_t *ret)
{
	bool negative = *s == '-';
	uint64_t value = 0, limit = (uint64_t)INT64_MAX + (negative ? 1 : 0);
	if (*s == '-' || *s == '+')
		s++;
	if (!*s)
		return -1;
	for (; *s; s++) {
		if (*s < '0' || *s > '9' || value > (limit - (uint64_t)(*s - '0')) / 10)
			return -1;
		value = value * 10 + (uint64_t)(*s - '0');
	}
	*ret = negative ? (int64_t)(0 - value) : (int64_t)value;
	return 0;
}

/* Digits at *s, with single ',' or '_' between them if asked for. -1 without digits or above
 * INT64_MAX. */
static int take_number(const char **s, bool separators, int64_t *ret)
{
	int64_t value = 0;
	const char *p = *s;
	if (*p < '0' || *p > '9')
		return -1;
	for (; *p; p++) {
		if (separators && (*p == ',' || *p == '_') && p[1] >= '0' && p[1] <= '9')
			continue;
		if (*p < '0' || *p > '9')
			break;
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, *p - '0', &value))
			return -1;
	}
	*s = p;
	*ret = value;
	return 0;
}

/* k and M are decimal, as providers state their windows ("200k"). */
int text_parse_count(const char *s, int64_t *ret)
{
	int64_t value, scale = 1;
	if (take_number(&s, true, &value) < 0)
		return -1;
	if (lower(*s) == 'k')
		scale = 1000;
	else if (lower(*s) == 'm')
		scale = 1000000;
	if (scale > 1)
		s++;
	if (*s || __builtin_mul_overflow(value, scale, &value))
		return -1;
	*ret = value;
	return 0;
}

/* "ms" stands before "m", of which it is a longer form. Units must fall from left to right. */
static const struct {
	const char *name;
	int64_t ms;
} duration_units[] = {{"h", 3600000}, {"ms", 1}, {"m", 60000}, {"s", 1000}};

static int64_t take_unit(const char **s)
{
	for (size_t i = 0; i < ARRAY_SIZE(duration_units); i++) {
		if (text_starts(*s, duration_units[i].name)) {
			*s += strlen(duration_units[i].name);
			return duration_units[i].ms;
		}
	}
	return 0;
}

int text_parse_duration_ms(const char *s, int64_t *ret_ms)
{
	int64_t total = 0, last_unit = INT64_MAX;
	if (!*s)
		return -1;
	while (*s) {
		int64_t value;
		if (take_number(&s, false, &value) < 0)
			return -1;
		/* A bare number is seconds, but only alone: "1h30" could mean either. */
		int64_t unit = *s ? take_unit(&s) : last_unit == INT64_MAX ? 1000 : 0;
		if (unit == 0 || unit >= last_unit || __builtin_mul_overflow(value, unit, &value) ||
		    __builtin_add_overflow(total, value, &total))
			return -1;
		last_unit = unit;
	}
	*ret_ms = total;
	return 0;
}

uint64_t text_hash(const void *p, size_t n)
{
	const unsigned char *bytes = p;
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	for (size_t i = 0; i < n; i++)
		hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
	return hash;
}
