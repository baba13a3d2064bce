/*
 * test_agent_user_words.c - a whole agent keeps the user's words (X2, I6): on disk before the request that
 * carries them is answered, a long task as head, tail and path, the same bytes in every request.
 */
#include "agent_rig.h"

#include <fcntl.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"

static const struct fake_step one_look[] = {
	{.calls = "c1 shell {\"command\":\"true\"}"},
	{.calls = REPORT_CALL},
};

static char *read_below(const char *name)
{
	AUTO_FREE char *path = rig_path(name);
	struct buf out = BUF_INIT;
	struct err e = ERR_INIT;

	if (file_read(AT_FDCWD, path, 16 << 20, &out, &e) < 0)
		fail_msg("%s", e.message);
	return buf_take(&out);
}

static void i6_the_task_is_on_disk_and_nudges_are_not(void **state)
{
	static const struct fake_step script[] = {{.text = "I think I am done."},
						  {.calls = REPORT_CALL}};
	struct fake_parent p = {.pid = 0};
	AUTO_FREE char *words = NULL;

	RUN(&p, script, "{\"task\":\"Fix the test. Never push.\"}");
	assert_string_equal(p.result, "done");
	words = read_below("generation/words.jsonl");
	assert_non_null(strstr(words, "\"speaker\":\"user\""));
	assert_non_null(strstr(words, "\"text\":\"Fix the test. Never push.\""));
	assert_non_null(strstr(words, "\"constraints\":[[14,11]]"));
	assert_null(strstr(words, "call `report`")); /* the nudge that answered the text */
	assert_null(strstr(words, "Use tabs."));     /* the project's instructions */
	fake_release(&p);
}

static void i6_a_delegated_task_names_the_agent(void **state)
{
	struct fake_parent p = {.pid = 0};
	AUTO_FREE char *words = NULL;

	RUN(&p, one_look, "{\"task_origin\":\"agent\"}");
	words = read_below("generation/words.jsonl");
	assert_non_null(strstr(words, "\"speaker\":\"agent\""));
	fake_release(&p);
}

static char *long_task(void)
{
	struct buf task = BUF_INIT;
	AUTO_BUF struct buf members = BUF_INIT;

	buf_adds(&task, "Here begins the tale.\n");
	for (int i = 0; i < 300; i++)
		buf_adds(&task,
			 i == 150 ? "Never touch net.c.\n" : "He walked on and saw nothing new.\n");
	buf_adds(&task, "Here ends the tale.");
	buf_adds(&members, "{\"context\":{\"user_message_bytes\":4000},\"task\":");
	json_write_string(&members, task.data, task.len);
	buf_addc(&members, '}');
	buf_release(&task);
	return buf_take(&members);
}

/* T3, I4: decided once, and the same in the second request. */
static void i6_a_long_task_is_cut_once(void **state)
{
	struct fake_parent p = {.pid = 0};
	AUTO_FREE char *members = long_task();
	AUTO_FREE char *file = NULL, *words = NULL;

	RUN(&p, one_look, members);
	assert_string_equal(p.result, "done");
	for (size_t i = 0; i < 2; i++) {
		fake_expect(&p, i, "Here begins the tale.");
		fake_expect(&p, i, "Here ends the tale.");
		fake_expect(&p, i, "\\nNever touch net.c.");
		fake_expect(&p, i, "results:words-1.txt");
	}
	file = read_below("generation/results/words-1.txt");
	assert_true(strlen(file) > 9000);
	words = read_below("generation/words.jsonl");
	assert_non_null(strstr(words, "\"cut\":true"));
	assert_non_null(strstr(words, "\"file\":\"results:words-1.txt\""));
	fake_release(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FOLDER(i6_the_task_is_on_disk_and_nudges_are_not),
		WITH_FOLDER(i6_a_delegated_task_names_the_agent),
		WITH_FOLDER(i6_a_long_task_is_cut_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
