/*
 * clock.h - the time, through one seam that tests can turn.
 */
#ifndef BATON_BASE_CLOCK_H
#define BATON_BASE_CLOCK_H

#include <stddef.h>
#include <stdint.h>
#include <sys/time.h>

int64_t clock_mono_ms(void); /* CLOCK_MONOTONIC, milliseconds */
int64_t clock_mono_us(void);
int64_t clock_wall_ms(void); /* CLOCK_REALTIME, milliseconds since 1970 */

/* Tests: a function that gives both clocks, NULL restores the real ones. */
void clock_fake(int64_t (*mono_us)(void *arg), int64_t (*wall_ms)(void *arg), void *arg);

#define CLOCK_STAMP_SIZE 25
/* RFC 3339, UTC, milliseconds: "2026-11-30T10:57:52.123Z". Returns buf. */
const char *clock_stamp(int64_t wall_ms, char buf[CLOCK_STAMP_SIZE]);
/* Parsers: milliseconds since 1970, or -1. HTTP dates in the three forms of RFC 9110. */
int64_t clock_parse_stamp(const char *s);
int64_t clock_parse_http_date(const char *s);
/* "850ms", "12s", "3m10s", "2h05m": for people. Returns buf. */
const char *clock_human(int64_t ms, char *buf, size_t size);

/* For libevent's timers. */
struct timeval clock_timeval(int64_t ms);

#endif
