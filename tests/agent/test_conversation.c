/*
 * test_conversation.c - append-only messages, rounds, the opening (W10), the user's words (X2).
 */
#include "agent_fixture.h"

#include "agent/conversation.h"
#include "base/memory.h"

static void uids_and_rounds_grow(void **state)
{
	struct conversation c;

	conversation_init(&c);
	conversation_append(&c, fixture_text(MESSAGE_USER, "task"));
	assert_int_equal(conversation_last(&c)->round, 0);
	conversation_next_round(&c);
	conversation_append(&c, fixture_calls("x"));
	conversation_append(&c, fixture_results("x"));
	assert_int_equal(c.messages[1]->round, 1);
	assert_int_equal(c.messages[2]->round, 1);
	assert_true(c.messages[0]->uid < c.messages[1]->uid);
	assert_true(c.messages[1]->uid < c.messages[2]->uid);
	conversation_release(&c);
}

static void x2_user_words_are_verbatim_and_nothing_else(void **state)
{
	struct conversation c;
	struct message *nudge = message_new(MESSAGE_USER);

	conversation_init(&c);
	conversation_append(&c, fixture_text(MESSAGE_USER, "  Never touch gen/.\n"));
	message_add_text(nudge, ORIGIN_NUDGE, "Go on.", 6);
	conversation_append(&c, nudge);
	conversation_append(&c, fixture_text(MESSAGE_USER, "And be quick."));
	assert_string_equal(conversation_user_word(&c, 0)->text, "  Never touch gen/.\n");
	assert_string_equal(conversation_user_word(&c, 1)->text, "And be quick.");
	assert_null(conversation_user_word(&c, 2));
	conversation_release(&c);
}

static void w10_opening_in_order(void **state)
{
	char *folder = fixture_folder();
	struct agent_settings *s = fixture_settings(folder, "{\"brief\":\"shard 1 of 4\"}");
	struct message *m = conversation_opening(s);

	assert_int_equal(m->role, MESSAGE_USER);
	assert_int_equal(m->n_blocks, 4);
	assert_int_equal(m->blocks[0].origin, ORIGIN_INSTRUCTIONS);
	assert_non_null(strstr(m->blocks[0].text, "AGENTS.md (project)"));
	assert_non_null(strstr(m->blocks[0].text, "Use tabs."));
	assert_int_equal(m->blocks[1].origin, ORIGIN_ENVIRONMENT);
	assert_non_null(strstr(m->blocks[1].text, "baton/r-1/a1"));
	assert_null(strstr(m->blocks[1].text, folder)); /* no absolute path */
	assert_int_equal(m->blocks[2].origin, ORIGIN_USER);
	assert_string_equal(m->blocks[2].text, "Fix the test.");
	assert_string_equal(m->blocks[3].text, "shard 1 of 4");
	message_free(m);
	agent_settings_free(s);
	fixture_remove(folder);
}

static void x2_a_delegated_task_is_not_the_users(void **state)
{
	char *folder = fixture_folder();
	struct agent_settings *s = fixture_settings(folder, "{\"task_origin\":\"agent\"}");
	struct conversation c;

	conversation_init(&c);
	conversation_append(&c, conversation_opening(s));
	assert_null(conversation_user_word(&c, 0));
	conversation_release(&c);
	agent_settings_free(s);
	fixture_remove(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(uids_and_rounds_grow),
		cmocka_unit_test(x2_user_words_are_verbatim_and_nothing_else),
		cmocka_unit_test(w10_opening_in_order),
		cmocka_unit_test(x2_a_delegated_task_is_not_the_users),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
