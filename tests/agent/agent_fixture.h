/*
 * agent_fixture.h - what the tests of agent/ share: folders, settings, messages.
 */
#ifndef TEST_AGENT_FIXTURE_H
#define TEST_AGENT_FIXTURE_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/message.h"
#include "agent/start.h"

/* A fresh folder below TMPDIR; caller frees after fixture_remove. */
char *fixture_folder(void);
void fixture_remove(char *folder);

/* A start document for an agent that works below `folder`; "api" is "anthropic" or "openai".
 * `members` is JSON text of an object whose members replace or extend those of the document,
 * objects by member; NULL: none. Caller frees. */
char *fixture_start(const char *folder, const char *api, const char *members);
struct agent_settings *fixture_settings(const char *folder, const char *members);

struct message *fixture_text(enum message_role role, const char *text);
/* An assistant message with calls of these ids, separated by blanks, to the tool `shell`. */
struct message *fixture_calls(const char *ids);
/* A user message with results for these ids. */
struct message *fixture_results(const char *ids);

#endif
