/*
 * parts.h - the grammar below a request body: values, strings, content blocks.
 */
#ifndef SIMULATOR_PARTS_H
#define SIMULATOR_PARTS_H

#include "reading.h"

struct parts {
	struct reading *reading;
	const char *begin, *at, *end;
	const char *copied; /* up to here the present message is in reading->bytes */
	int64_t weight;	    /* of the strings that were passed, 1/1000 token */
	bool error;
};

struct parts_string {
	const char *s; /* raw, between the quotes */
	size_t n;
	int64_t weight;
	bool blank, escaped;
};

void parts_fail(struct parts *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
bool parts_failed(const struct parts *p);
void parts_expect(struct parts *p, char c);
/* Behind an item or at the start of a list: true at its end (moved over), else over the comma if there is one. */
bool parts_next(struct parts *p, char close);
void parts_string(struct parts *p, struct parts_string *ret);
bool parts_is(const struct parts_string *s, const char *word);
int64_t parts_number(struct parts *p);
void parts_skip(struct parts *p);		   /* any value; strings are weighed */
bool parts_has(struct parts *p, const char *word); /* any value; does it hold this text? */

void parts_edits(struct parts *p); /* the value of context_management */
void parts_message(struct parts *p);
void parts_copy(struct parts *p); /* what was read since `copied` belongs to the message */
/* Bytes of a cache marker with its comma at `s`, 0 if there is none. */
size_t parts_mark_len(const char *s, const char *end);

#endif
