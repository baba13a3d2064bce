/*
 * retry.c - see retry.h.
 *
 * All numbers come from outside: they are parsed as decimals by hand (no locale, no overflow), and
 * anything above ten years counts as ten years.
 *
 * What cannot be understood is no hint (-1) and never a wait of 0: a client that reads "NaN" as "at
 * once" becomes part of the storm (trap 64). Full jitter: with a fixed back-off all agents that
 * were refused together come back together.
 */
#include "orchestrator/gateway/retry.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"

#define WAIT_MAX_MS (3650ll * 86400 * 1000)

/* A decimal number times `unit`, rounded down; false if there is none at *s. */
static bool take_number(const char **s, double unit, int64_t *ret)
{
	const char *p = *s;
	double value = 0, scale = 1;
	bool digits = false;
	for (; isdigit((unsigned char)*p); p++, digits = true)
		value = value * 10 + (*p - '0');
	if (*p == '.' && isdigit((unsigned char)p[1])) {
		for (p++; isdigit((unsigned char)*p); p++, digits = true)
			value += (*p - '0') * (scale /= 10);
	}
	if (!digits)
		return false;
	value = value * unit + 0.5;
	*ret = value > (double)WAIT_MAX_MS ? WAIT_MAX_MS : (int64_t)value;
	*s = p;
	return true;
}

static bool whole_number(const char *s, double unit, int64_t *ret)
{
	while (isspace((unsigned char)*s))
		s++;
	int64_t value;
	if (!take_number(&s, unit, &value))
		return false;
	while (isspace((unsigned char)*s))
		s++;
	if (*s)
		return false;
	*ret = value;
	return true;
}

void retry_take_header(struct retry_hints *h, const char *name, const char *value)
{
	int64_t ms;
	if (strcasecmp(name, "x-should-retry") == 0) {
		if (strcasecmp(value, "true") == 0)
			h->should_retry = 1;
		else if (strcasecmp(value, "false") == 0)
			h->should_retry = 0;
	} else if (strcasecmp(name, "retry-after-ms") == 0) {
		if (whole_number(value, 1, &ms)) {
			h->after_ms = ms;
			h->exact = true;
		}
	} else if (strcasecmp(name, "retry-after") == 0) {
		if (whole_number(value, 1000, &ms)) {
			if (!h->exact)
				h->after_ms = ms;
		} else {
			h->after_date = clock_parse_http_date(value);
		}
	} else if (strcasecmp(name, "date") == 0) {
		h->server_date = clock_parse_http_date(value);
	}
}

int64_t retry_asked_ms(const struct retry_hints *h, const char *text, int64_t now_wall_ms)
{
	if (h->after_ms >= 0)
		return h->after_ms;
	if (h->after_date >= 0) {
		int64_t now = h->server_date >= 0 ? h->server_date : now_wall_ms;
		return h->after_date > now ? MIN(h->after_date - now, WAIT_MAX_MS) : 0;
	}
	return text ? retry_parse_text(text) : -1;
}

static int64_t random_upto(int64_t max)
{
	if (max <= 0)
		return 0;
	uint64_t bits = 0;
	/* Without entropy (early boot) all would wait the same time: harmless. */
	if (getrandom(&bits, sizeof(bits), GRND_NONBLOCK) != sizeof(bits))
		return max / 2;
	return (int64_t)(bits % ((uint64_t)max + 1));
}

int64_t retry_after_jitter(int64_t asked_ms)
{
	return random_upto(MAX(50, MIN(asked_ms / 10, 1000)));
}

int64_t retry_backoff_ms(int attempt, int64_t base_ms, int64_t max_ms)
{
	int64_t ceiling = base_ms;
	for (int i = 1; i < attempt && ceiling < max_ms; i++)
		ceiling *= 2;
	return random_upto(MIN(ceiling, max_ms));
}

int64_t retry_parse_duration(const char *s, const char **ret_end)
{
	static const struct {
		const char *name;
		double ms;
	} units[] = {{"ms", 1}, {"h", 3600000}, {"m", 60000}, {"s", 1000}};
	int64_t total = 0;
	bool any = false;

	while (isdigit((unsigned char)*s)) {
		const char *number = s;
		int64_t dummy;
		size_t u;
		if (!take_number(&s, 1, &dummy))
			break;
		for (u = 0; u < ARRAY_SIZE(units); u++) {
			if (text_starts(s, units[u].name))
				break;
		}
		if (u == ARRAY_SIZE(units)) {
			s = number;
			break;
		}
		const char *after = s + strlen(units[u].name);
		int64_t part;
		s = number;
		take_number(&s, units[u].ms, &part);
		s = after;
		total = MIN(total + part, WAIT_MAX_MS);
		any = true;
	}
	if (!any || (!ret_end && *s))
		return -1;
	if (ret_end)
		*ret_end = s;
	return total;
}

/* The time written at s: a Go duration, or a number with a word ("20 seconds"), seconds if bare. */
static int64_t parse_spoken(const char *s)
{
	const char *end;
	while (*s == ' ')
		s++;
	int64_t ms = retry_parse_duration(s, &end);
	if (ms >= 0 && !isalpha((unsigned char)*end))
		return ms;
	const char *unit = s;
	int64_t dummy;
	if (!take_number(&unit, 1, &dummy))
		return -1;
	while (*unit == ' ')
		unit++;
	double scale = 1000;
	if (strncasecmp(unit, "millisecond", 11) == 0 || strncasecmp(unit, "ms", 2) == 0)
		scale = 1;
	else if (strncasecmp(unit, "min", 3) == 0)
		scale = 60000;
	else if (strncasecmp(unit, "hour", 4) == 0)
		scale = 3600000;
	return take_number(&s, scale, &ms) ? ms : -1;
}

int64_t retry_parse_text(const char *text)
{
	static const char *const phrases[] = {"try again in ",	    "retry after ",
					      "retry in ",	    "try again after ",
					      "\"retryDelay\": \"", "\"retryDelay\":\""};
	for (size_t i = 0; i < ARRAY_SIZE(phrases); i++) {
		const char *at = text_find_nocase(text, strlen(text), phrases[i]);
		if (at) {
			int64_t ms = parse_spoken(at + strlen(phrases[i]));
			if (ms >= 0)
				return ms;
		}
	}
	return -1;
}
