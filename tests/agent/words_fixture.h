/*
 * words_fixture.h - what the tests of the user's words share: a ledger in a folder of its own.
 */
#ifndef TEST_WORDS_FIXTURE_H
#define TEST_WORDS_FIXTURE_H

#include "agent_fixture.h"

#include "agent/context/words.h"

extern char *folder;
extern struct user_words words;
extern struct ledger ledger;

void open_words(int64_t generation, int64_t whole_bytes, int64_t effective);
void restart(int64_t generation); /* opens the same folder again, by the first settings */
int words_setup(void **state);
int words_teardown(void **state);
#define WITH_WORDS(test) cmocka_unit_test_setup_teardown(test, words_setup, words_teardown)

/* A message of one block; name: of the speaker, or NULL. */
struct message *message_of(enum block_origin origin, const char *name, const char *text, size_t n);
int say_as(enum block_origin origin, const char *name, const char *text);
void say(const char *text); /* by the user, without a name */

/* Renders into `out` alone; it must succeed. */
void render(int64_t room, struct buf *out, struct user_words_rendered *ret);

/* Texts that try to look like ours, or to break out. */
extern const char *const hostile[];
extern const size_t n_hostile;

#endif
