/*
 * fixture.h - a worktree, results and scratch folder in a temporary place, a tool context on them,
 * and calls as the agent makes them: JSON text in, checked against the tool's schema, a result out.
 *
 * fixture.c also holds the test's own wait_poll: the seam by which a test cancels a call.
 */
#ifndef BATON_TESTS_TOOLS_FIXTURE_H
#define BATON_TESTS_TOOLS_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka needs the four above first */
#include <cmocka.h>

#include "agent/tools/context.h"
#include "base/memory.h"
#include "base/text.h"

struct waiter {
	int64_t cancel_at_ms; /* monotonic; 0: never */
	size_t waits;
};

struct fixture {
	char *top, *worktree, *results, *scratch, *cache, *git_dir;
	struct tool_settings settings;
	struct waiter waiter;
	struct tool_context *ctx;
	struct tool_result result; /* of the last call */
	struct err err;		   /* of the last call that returned -1 */
};

int fixture_setup(void **state);
int fixture_teardown(void **state);
/* A new context on the same folders, with f->settings as they are now. */
void fixture_restart(struct fixture *f);

/* Runs a tool; single quotes in the JSON text stand for double ones. Returns what the tool
 * returned. */
int call(struct fixture *f, const char *tool, const char *json, ...)
	__attribute__((format(printf, 3, 4)));
/* The same without the exchange of quotes. */
int call_json(struct fixture *f, const char *tool, struct json_object *input);
const char *said(const struct fixture *f); /* text of the last result */

#define assert_says(f, part)                                                                       \
	do {                                                                                       \
		if (!strstr(said(f), part))                                                        \
			fail_msg("'%s' is not in: %s", part, said(f));                             \
	} while (0)
#define assert_says_not(f, part)                                                                   \
	do {                                                                                       \
		if (strstr(said(f), part))                                                         \
			fail_msg("'%s' is in: %s", part, said(f));                                 \
	} while (0)
#define assert_ok(f)                                                                               \
	do {                                                                                       \
		if ((f)->result.is_error)                                                          \
			fail_msg("error: %s", said(f));                                            \
	} while (0)
#define assert_error(f)                                                                            \
	do {                                                                                       \
		if (!(f)->result.is_error)                                                         \
			fail_msg("no error: %s", said(f));                                         \
	} while (0)

/* Files in the worktree, made and read without the tools. */
void put(struct fixture *f, const char *name, const char *bytes, size_t n);
void puts_file(struct fixture *f, const char *name, const char *text);
void get(struct fixture *f, const char *name, struct buf *out);
void assert_file(struct fixture *f, const char *name, const char *text);
char *in_tree(struct fixture *f, const char *name); /* absolute path; caller frees */

/* Number of processes whose environment holds this entry, and of zombies that are our children. */
size_t count_marked(const char *entry);
size_t count_zombies(void);
/* Waits until the condition holds, at most 5 s. */
bool wait_until(bool (*holds)(void *arg), void *arg);

#endif
