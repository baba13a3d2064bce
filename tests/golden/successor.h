/*
 * successor.h - a model without a model that goes on from a handoff document: it knows the bytes of its first request and
 * what its own calls give, and nothing else.
 *
 * It takes the command from the first action, or, if that names none, from the failures; looks in the output that
 * stands there for the file, the function and the value that is wanted; runs the command to see it fail; reads the
 * file, changes that function and no other, and runs the command again. What it does not find in the bytes it
 * says (`lacks`), and then it does nothing.
 */
#ifndef TEST_SUCCESSOR_H
#define TEST_SUCCESSOR_H

#include "base/buf.h"
#include "golden.h"

#define SUCCESSOR_CALLS 4

struct successor {
	char *command, *test, *file, *function; /* as the request has them */
	int got, want;
	const char *lacks;	 /* what it did not find; NULL: nothing */
	int calls;		 /* so far; SUCCESSOR_CALLS: it is done */
	struct golden_step step; /* its newest call */
	int exit_code;		 /* that the command ended with when it ran last; -1: it did not */
};

/* From the text of the first request. */
void successor_begin(struct successor *s, const char *body, size_t n);
/* The next call, given all of the request; NULL: it is done, or it cannot go on. */
const struct golden_step *successor_next(struct successor *s, const char *body, size_t n);
void successor_release(struct successor *s);

/* The text of a request's messages as a model reads them, or of the newest result of a call alone. */
void request_text(const char *body, size_t n, bool result, struct buf *out);
/* The document in a text: what stands between the marks. False: there is none. */
bool request_document(const char *text, const char **ret, size_t *ret_n);

#endif
