/*
 * fixture.h - what the tests of the model clients share: models, an ordinary dialogue, streams fed
 * from text, golden files.
 */
#ifndef BATON_TESTS_AGENT_MODEL_FIXTURE_H
#define BATON_TESTS_AGENT_MODEL_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/model/client.h"
#include "base/memory.h"

/* The table's strings are owned by it and not const; these models borrow literals. */
#define LIT(s) ((char *)(s))

/* Plain models of each API; change the fields you need. Strings are literals: never model_free. */
struct model fixture_anthropic(void);
struct model fixture_openai(void);
/* Two tools, read and shell, and a system prompt. */
struct request_params fixture_params(void);
struct model_client *fixture_client(const struct model *model, const struct request_params *params);

/* user task, assistant with thinking, text and two calls, results (one an error, one with an
 * image), assistant text, user. Rendered by nobody yet. */
enum { DIALOGUE = 5 };
void fixture_dialogue(struct message *ret[DIALOGUE], const struct model *model);
void fixture_free(struct message **messages, size_t n);
struct message *fixture_user(const char *text, uint64_t uid);

/* Renders a request; fails the test on an error. */
void fixture_request(struct model_client *client, struct message *const *view, size_t n,
		     long pinned, struct buf *out);
/* Removes every cache marker from the text. */
void fixture_strip_marks(struct buf *text);
size_t fixture_count(const char *hay, const char *needle);

/* Compares with tests/golden/NAME (one line, a newline behind it); BATON_UPDATE_GOLDEN=1 writes it.
 */
void fixture_golden(const char *name, const struct buf *text);

/* Feeds `text` in pieces of `step` bytes (0: at once) and finishes; fails the test on an error. */
struct stream_answer fixture_answer(const struct model_client *client, const char *text,
				    size_t step);
/* The same, expecting an error: returns its code and copies the text. */
enum err_code fixture_failure(const struct model_client *client, const char *text,
			      char ret_message[512]);
/* Everything of an answer as text, to compare two. Caller frees. */
char *fixture_describe(const struct stream_answer *answer);

/* Events as server-sent events, each argument one JSON text; ends with NULL. Caller frees. */
char *fixture_sse(const char *first, ...) __attribute__((sentinel));

#endif
