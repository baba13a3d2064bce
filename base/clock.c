/*
 * clock.c - time and its written forms.
 *
 * Calendar arithmetic is done here and not by gmtime or strptime: those read locale and zone files,
 * and a Retry-After header must not depend on the user's language. All times are UTC; years 1970 to
 * 9999 are understood, anything else a parser refuses.
 */
#include "base/clock.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

static struct {
	int64_t (*mono_us)(void *arg);
	int64_t (*wall_ms)(void *arg);
	void *arg;
} fake;

void clock_fake(int64_t (*mono_us)(void *arg), int64_t (*wall_ms)(void *arg), void *arg)
{
	fake.mono_us = mono_us;
	fake.wall_ms = wall_ms;
	fake.arg = arg;
}

int64_t clock_mono_us(void)
{
	if (fake.mono_us)
		return fake.mono_us(fake.arg);
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

int64_t clock_mono_ms(void)
{
	return clock_mono_us() / 1000;
}

int64_t clock_wall_ms(void)
{
	if (fake.wall_ms)
		return fake.wall_ms(fake.arg);
	struct timespec ts;
	clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

struct civil {
	int year, month, day; /* month and day from 1 */
	int hour, minute, second;
};

static bool is_leap(int year)
{
	return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static int days_in_month(int year, int month)
{
	static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	return month == 2 && is_leap(year) ? 29 : days[month - 1];
}

static int64_t days_before_year(int year)
{
	int64_t y = year - 1;
	return y * 365 + y / 4 - y / 100 + y / 400;
}

/* Seconds since 1970, or -1 if a field is out of range. A leap second counts as the next one. */
static int64_t civil_to_seconds(const struct civil *c)
{
	if (c->year < 1970 || c->year > 9999 || c->month < 1 || c->month > 12 || c->day < 1 ||
	    c->day > days_in_month(c->year, c->month) || c->hour < 0 || c->hour > 23 ||
	    c->minute < 0 || c->minute > 59 || c->second < 0 || c->second > 60)
		return -1;
	int64_t days = days_before_year(c->year) - days_before_year(1970) + c->day - 1;
	for (int month = 1; month < c->month; month++)
		days += days_in_month(c->year, month);
	return ((days * 24 + c->hour) * 60 + c->minute) * 60 + c->second;
}

static struct civil civil_from_seconds(int64_t seconds)
{
	int64_t days = seconds / 86400;
	int rest = (int)(seconds % 86400);
	struct civil c = {.hour = rest / 3600, .minute = rest / 60 % 60, .second = rest % 60};
	c.year = 1970 + (int)(days / 366); /* never too late, at most a few years early */
	while (days_before_year(c.year + 1) - days_before_year(1970) <= days)
		c.year++;
	days -= days_before_year(c.year) - days_before_year(1970);
	c.month = 1;
	while (days >= days_in_month(c.year, c.month))
		days -= days_in_month(c.year, c.month++);
	c.day = (int)days + 1;
	return c;
}

const char *clock_stamp(int64_t wall_ms, char buf[CLOCK_STAMP_SIZE])
{
	const int64_t last = 253402300799999; /* the end of year 9999 */
	if (wall_ms < 0)
		wall_ms = 0;
	if (wall_ms > last)
		wall_ms = last;
	struct civil c = civil_from_seconds(wall_ms / 1000);
	/* Modulo tells the compiler that every field fits. */
	snprintf(buf, CLOCK_STAMP_SIZE, "%04u-%02u-%02uT%02u:%02u:%02u.%03uZ",
		 (unsigned)c.year % 10000, (unsigned)c.month % 100, (unsigned)c.day % 100,
		 (unsigned)c.hour % 100, (unsigned)c.minute % 100, (unsigned)c.second % 100,
		 (unsigned)(wall_ms % 1000));
	return buf;
}

/* Reads exactly n digits and moves on; -1 if they are not there. */
static int take_digits(const char **s, int n)
{
	int value = 0;
	for (int i = 0; i < n; i++) {
		if ((*s)[i] < '0' || (*s)[i] > '9')
			return -1;
		value = value * 10 + ((*s)[i] - '0');
	}
	*s += n;
	return value;
}

static bool take_char(const char **s, char c)
{
	if (**s != c)
		return false;
	(*s)++;
	return true;
}

static bool take_time(const char **s, struct civil *c)
{
	c->hour = take_digits(s, 2);
	if (c->hour < 0 || !take_char(s, ':'))
		return false;
	c->minute = take_digits(s, 2);
	if (c->minute < 0 || !take_char(s, ':'))
		return false;
	c->second = take_digits(s, 2);
	return c->second >= 0;
}

/* "Z" or "+hh:mm": seconds east of UTC in *ret. */
static bool take_zone(const char **s, int64_t *ret)
{
	if (take_char(s, 'Z') || take_char(s, 'z')) {
		*ret = 0;
		return true;
	}
	int sign = **s == '+' ? 1 : **s == '-' ? -1 : 0;
	if (!sign)
		return false;
	(*s)++;
	int hours = take_digits(s, 2);
	if (hours < 0 || hours > 23 || !take_char(s, ':'))
		return false;
	int minutes = take_digits(s, 2);
	if (minutes < 0 || minutes > 59)
		return false;
	*ret = sign * (hours * 3600 + minutes * 60);
	return true;
}

int64_t clock_parse_stamp(const char *s)
{
	struct civil c;
	c.year = take_digits(&s, 4);
	if (c.year < 0 || !take_char(&s, '-'))
		return -1;
	c.month = take_digits(&s, 2);
	if (c.month < 0 || !take_char(&s, '-'))
		return -1;
	c.day = take_digits(&s, 2);
	if (c.day < 0 || (*s != 'T' && *s != 't' && *s != ' '))
		return -1;
	s++;
	if (!take_time(&s, &c))
		return -1;
	int ms = 0;
	if (take_char(&s, '.')) {
		if (*s < '0' || *s > '9')
			return -1;
		for (int scale = 100; *s >= '0' && *s <= '9'; s++, scale /= 10)
			ms += (*s - '0') * scale;
	}
	int64_t east = 0;
	int64_t seconds = civil_to_seconds(&c);
	if (seconds < 0 || !take_zone(&s, &east) || *s || seconds < east)
		return -1;
	return (seconds - east) * 1000 + ms;
}

static int take_month(const char **s)
{
	static const char names[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	for (int month = 1; month <= 12; month++) {
		if (strncasecmp(*s, names + (month - 1) * 3, 3) == 0) {
			*s += 3;
			return month;
		}
	}
	return -1;
}

/* RFC 9110: a two-digit year that seems more than 50 years ahead is in the past. */
static int full_year(int two_digits)
{
	int now = civil_from_seconds(clock_wall_ms() / 1000).year;
	int year = now - now % 100 + two_digits;
	return year > now + 50 ? year - 100 : year;
}

/* "06 Nov 1994 08:49:37 GMT" (IMF-fixdate) or "06-Nov-94 08:49:37 GMT" (RFC 850). */
static int64_t parse_day_first(const char *s)
{
	struct civil c;
	c.day = take_digits(&s, 2);
	char sep = *s;
	if (c.day < 0 || (sep != ' ' && sep != '-'))
		return -1;
	s++;
	c.month = take_month(&s);
	if (c.month < 0 || !take_char(&s, sep))
		return -1;
	c.year = take_digits(&s, 4);
	if (c.year < 0) {
		c.year = take_digits(&s, 2);
		if (c.year >= 0)
			c.year = full_year(c.year);
	}
	if (c.year < 0 || !take_char(&s, ' ') || !take_time(&s, &c))
		return -1;
	if (strcmp(s, " GMT") != 0 && strcmp(s, " UTC") != 0)
		return -1;
	return civil_to_seconds(&c);
}

/* "Nov  6 08:49:37 1994" (asctime). */
static int64_t parse_month_first(const char *s)
{
	struct civil c;
	c.month = take_month(&s);
	if (c.month < 0 || !take_char(&s, ' '))
		return -1;
	c.day = take_char(&s, ' ') ? take_digits(&s, 1) : take_digits(&s, 2);
	if (c.day < 0 || !take_char(&s, ' ') || !take_time(&s, &c) || !take_char(&s, ' '))
		return -1;
	c.year = take_digits(&s, 4);
	return c.year < 0 || *s ? -1 : civil_to_seconds(&c);
}

int64_t clock_parse_http_date(const char *s)
{
	/* The weekday's name tells nothing that the date does not. */
	while ((*s >= 'A' && *s <= 'Z') || (*s >= 'a' && *s <= 'z'))
		s++;
	bool day_first = take_char(&s, ',');
	if (!take_char(&s, ' '))
		return -1;
	int64_t seconds = day_first ? parse_day_first(s) : parse_month_first(s);
	return seconds < 0 ? -1 : seconds * 1000;
}

const char *clock_human(int64_t ms, char *buf, size_t size)
{
	const char *sign = ms < 0 ? "-" : "";
	uint64_t n = ms < 0 ? 0 - (uint64_t)ms : (uint64_t)ms;
	uint64_t s = n / 1000;
	if (n < 1000)
		snprintf(buf, size, "%s%" PRIu64 "ms", sign, n);
	else if (s < 60)
		snprintf(buf, size, "%s%" PRIu64 "s", sign, s);
	else if (s < 3600)
		snprintf(buf, size, "%s%" PRIu64 "m%02" PRIu64 "s", sign, s / 60, s % 60);
	else
		snprintf(buf, size, "%s%" PRIu64 "h%02" PRIu64 "m", sign, s / 3600, s / 60 % 60);
	return buf;
}

struct timeval clock_timeval(int64_t ms)
{
	return (struct timeval){.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
}
