/*
 * test_agent_fork.c - an agent that begins with another one's conversation (A2; X2, X5, R6).
 *
 * The spawner's life ends with SIGKILL in the midst of the batch that holds the call; to the file it is all the same
 * whether it works on. The fork gets a folder of its own and the spawner's folder in its start document.
 */
#include "agent_rig.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"

#define ENDS_IN "sleep 300"

static const struct fake_step report_only[] = {{.calls = REPORT_CALL}};

static const struct fake_step spawner[] = {
	{.text = "I look.", .calls = "a1 read {\"path\":\"AGENTS.md\"}"},
	{.calls = "b1 shell {\"command\":\"seq 1 9000\"}"},
	{.calls = "c1 write {\"path\":\"one.txt\",\"content\":\"1\"}\n"
		  "fork1 agent {\"task\":\"x\",\"fork\":true}\n"
		  "c3 shell {\"command\":\"touch started; " ENDS_IN "\"}"},
};

static void kill_when_started(struct fake_parent *p)
{
	AUTO_FREE char *mark = rig_path("worktree/started");

	if (file_exists(mark))
		kill(p->pid, SIGKILL);
}

static void spawn_and_die(struct fake_parent *p, const char *api)
{
	AUTO_FREE char *mark = rig_path("worktree/started");

	unlink(mark);
	p->on_tick = kill_when_started;
	rig_run(p, api, spawner, ARRAY_SIZE(spawner), NULL);
	assert_int_equal(p->status, -SIGKILL);
}

static char *members_of(const char *more)
{
	AUTO_FREE char *folder = rig_path("generation");
	AUTO_FREE char *own = rig_path("fork");

	return mem_printf(
		"{\"agent\":\"a2\",\"task\":\"The fork's part.\",\"task_origin\":\"agent\","
		"\"dirs\":{\"generation\":\"%s\"},\"fork\":{\"agent\":\"a1\",\"folder\":\"%s\","
		"\"generation\":1,\"call\":\"fork1\",\"worktree\":\"/spawner/tree\"}%s}",
		own, folder, more);
}

static void live(struct fake_parent *p, const char *api, const struct fake_step *script, size_t n,
		 const char *more)
{
	AUTO_FREE char *members = members_of(more);

	rig_run(p, api, script, n, members);
}

/* The messages of `a` are those that `b` begins with, and before them everything is the same but markers. */
static void expect_prefix(const struct buf *a, const struct buf *b)
{
	const char *of_a = strstr(buf_str(a), "\"messages\":[");
	const char *of_b = strstr(buf_str(b), "\"messages\":[");
	const char *end = strrchr(of_a, ']');

	assert_memory_equal(of_a, of_b, (size_t)(end - of_a) - 1);
	assert_memory_equal(buf_str(a), buf_str(b), (size_t)(of_a - buf_str(a)));
}

static char *read_own(const char *name)
{
	AUTO_FREE char *path = rig_path(name);
	AUTO_BUF struct buf bytes = BUF_INIT;

	assert_int_equal(file_read(AT_FDCWD, path, 16 << 20, &bytes, NULL), 0);
	return mem_strdup(buf_str(&bytes));
}

static size_t count(const char *text, const char *needle)
{
	size_t n = 0;

	for (const char *s = text; (s = strstr(s, needle)); s++)
		n++;
	return n;
}

/* ---- what it begins with ---- */

static void a_fork_begins_with_the_same_bytes(void **state)
{
	static const struct fake_step script[] = {
		{.calls = "d1 read {\"path\":\"/spawner/tree/AGENTS.md\"}\n"
			  "d2 read {\"path\":\"results:shell-1.txt\",\"offset\":5000,\"limit\":3}"},
		{.calls = REPORT_CALL},
	};
	static const char *const apis[] = {"openai", "anthropic"};

	for (size_t i = 0; i < ARRAY_SIZE(apis); i++) {
		struct fake_parent first = {.pid = 0}, fork = {.pid = 0};
		AUTO_FREE char *before = rig_path("generation");
		AUTO_FREE char *own = rig_path("fork");

		file_remove_tree(before, NULL);
		file_remove_tree(own, NULL);
		spawn_and_die(&first, apis[i]);
		live(&fork, apis[i], script, ARRAY_SIZE(script), "");
		assert_string_equal(fork.result, "done");
		if (i == 0) /* of the other protocol the markers move with the end */
			expect_prefix(&first.requests[2], &fork.requests[0]);
		fake_expect(&fork, 0, "You are the fork that this call started");
		fake_expect(&fork, 0, "before it forked");		/* c1 */
		fake_expect(&fork, 0, "runs it, later and for itself"); /* c3 */
		fake_expect(&fork, 0, "The fork's part.");
		fake_expect(&fork, 0, "/spawner/tree as the same path in yours");
		fake_expect_not(&fork, 0, "This work was cut off");
		fake_expect_not(&fork, 1, "outside of your worktree");
		fake_expect(&fork, 1, "5001\\t5001"); /* the spawner's results are its own */
		fake_release(&first);
		fake_release(&fork);
	}
}

static void its_counts_begin_with_it(void **state)
{
	struct fake_parent first = {.pid = 0}, fork = {.pid = 0};
	static const struct fake_step script[] = {
		{.calls = "d1 read {\"path\":\"AGENTS.md\"}"},
		{.calls = "d2 read {\"path\":\"AGENTS.md\"}"},
		{.calls = REPORT_CALL},
	};

	spawn_and_die(&first, "anthropic");
	/* Two rounds are allowed, and the conversation has three already. */
	live(&fork, "anthropic", script, ARRAY_SIZE(script), ",\"role\":{\"max_rounds\":2}");
	assert_int_equal(json_i64(fork.report, "tool_calls", 0), 2);
	fake_expect_not(&fork, 1, "the limit of 2 rounds is reached");
	fake_expect(&fork, 2, "the limit of 2 rounds is reached");
	assert_int_equal(json_i64(fork.result_body, "rounds", 0), 3);
	fake_release(&first);
	fake_release(&fork);
}

/* X2: who said what stays; what was said to the spawner afterwards was not said to the fork. */
static void the_words_of_the_user_come_along(void **state)
{
	struct fake_parent first = {.pid = 0}, fork = {.pid = 0};
	static const char later[] =
		"{\"t\":\"2026-12-01T00:00:00.000Z\",\"type\":\"word\",\"version\":1,"
		"\"speaker\":\"user\",\"generation\":1,\"uid\":99,\"said\":\"2026-12-01T00:"
		"00:00.000Z\",\"text\":\"Said later.\",\"constraints\":[]}\n";
	AUTO_FREE char *path = rig_path("generation/words.jsonl");

	spawn_and_die(&first, "anthropic");
	int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	assert_int_equal(file_write_all(fd, later, sizeof(later) - 1, NULL), 0);
	close(fd);
	live(&fork, "anthropic", report_only, ARRAY_SIZE(report_only), "");
	AUTO_FREE char *words = read_own("fork/words.jsonl");
	assert_int_equal(count(words, "Fix the test."), 1);
	assert_int_equal(count(words, "The fork's part."), 1);
	assert_null(strstr(words, "Said later."));
	assert_non_null(strstr(words, "\"speaker\":\"agent\""));
	fake_release(&first);
	fake_release(&fork);
}

/* ---- killed ---- */

static void kill_at_request(struct fake_parent *p, size_t index)
{
	kill(p->pid, SIGKILL);
}

/* Its first message may not be on disk then: it is made again, and nobody's calls are run in its place. */
static void a_fork_that_dies_early_begins_again(void **state)
{
	struct fake_parent first = {.pid = 0}, early = {.pid = 0}, again = {.pid = 0};
	AUTO_FREE char *transcript = rig_path("fork/transcript.jsonl");

	spawn_and_die(&first, "openai");
	early.on_request = kill_at_request;
	live(&early, "openai", report_only, ARRAY_SIZE(report_only), "");
	AUTO_FREE char *bytes = read_own("fork/transcript.jsonl");
	char *introduction = strstr(bytes, "You are the fork");
	if (introduction) { /* as a power cut may take it */
		while (introduction[-1] != '\n')
			introduction--;
		assert_int_equal(truncate(transcript, introduction - bytes), 0);
	}
	live(&again, "openai", report_only, ARRAY_SIZE(report_only), ",\"resume\":true");
	assert_string_equal(again.result, "done");
	expect_prefix(&first.requests[2], &again.requests[0]);
	assert_int_equal(count(buf_str(&again.requests[0]), "You are the fork"), 1);
	fake_expect_not(&again, 0, "This work was cut off");
	fake_release(&first);
	fake_release(&early);
	fake_release(&again);
}

static void a_fork_goes_on_like_any_other(void **state)
{
	static const struct fake_step script[] = {
		{.calls = "d1 read {\"path\":\"AGENTS.md\"}"},
		{.calls = "d2 shell {\"command\":\"touch started; " ENDS_IN "\"}"},
	};
	struct fake_parent first = {.pid = 0}, fork = {.pid = 0}, again = {.pid = 0};
	AUTO_FREE char *mark = rig_path("worktree/started");

	spawn_and_die(&first, "openai");
	unlink(mark);
	fork.on_tick = kill_when_started;
	live(&fork, "openai", script, ARRAY_SIZE(script), "");
	assert_int_equal(fork.status, -SIGKILL);
	live(&again, "openai", report_only, ARRAY_SIZE(report_only), ",\"resume\":true");
	expect_prefix(&fork.requests[1], &again.requests[0]);
	fake_expect(&again, 0, "This work was cut off");
	assert_int_equal(count(buf_str(&again.requests[0]), "You are the fork"), 1);
	/* The first message's results are of no calls of its own (X5). */
	assert_int_equal(json_i64(again.report, "tool_calls", 0), 2);
	assert_int_equal(json_i64(again.result_body, "rounds", 0), 3);
	fake_release(&first);
	fake_release(&fork);
	fake_release(&again);
}

#define SUMMARY                                                                                    \
	"<analysis>dropped</analysis><summary>\n1. Primary request and intent:\nthe part\n2. Key " \
	"technical concepts:\nC\n3. Files and code sections:\na.txt\n4. Errors and "               \
	"fixes:\nnone\n5. Problem solving:\nnone\n6. All user messages:\nFix the test.\n7. "       \
	"Pending "                                                                                 \
	"tasks:\nnone\n8. Current work:\nKEPT-FACT\n9. Optional next step:\nreport\n</summary>"

/* H5, X4: its window is compacted like any other, the words of both who spoke stay, and what gave way is found again,
 * the spawner's rounds too. */
static void a_fork_compacts_and_recalls(void **state)
{
	static const struct fake_step script[] = {
		{.calls = "d1 shell {\"command\":\"echo OLD-1; seq 5000\"}"},
		{.calls = "d2 shell {\"command\":\"echo NEW-2\"}"},
		{.calls = "d3 shell {\"command\":\"echo NEW-3\"}"},
		{.calls = "d4 shell {\"command\":\"echo NEW-4\"}", .input = 47000},
		{.text = SUMMARY, .input = 47000},
		{.calls = "d5 recall {\"query\":\"Use tabs\",\"tool\":\"read\"}"},
		{.calls = REPORT_CALL},
	};
	static const char more[] =
		",\"model\":{\"window\":60000,\"max_output\":2000},"
		"\"role\":{\"tools\":[\"read\",\"shell\",\"recall\"]},"
		"\"context\":{\"compact\":true,\"collapse\":false,\"notes\":false}";
	struct fake_parent first = {.pid = 0}, fork = {.pid = 0};

	spawn_and_die(&first, "anthropic");
	live(&fork, "anthropic", script, ARRAY_SIZE(script), more);
	assert_string_equal(fork.result, "done");
	assert_int_equal(fork.n_requests, 7);
	fake_expect(&fork, 5, "KEPT-FACT");
	fake_expect(&fork, 5, "Fix the test.");
	fake_expect(&fork, 5, "The fork's part.");
	fake_expect_not(&fork, 5, "OLD-1\\n");
	fake_expect(&fork, 6, "round 1");
	fake_release(&first);
	fake_release(&fork);
}

/* After a reset it is no copy any more, but paths that it wrote down are meant as before. */
static void a_later_generation_has_the_paths_alone(void **state)
{
	static const struct fake_step script[] = {
		{.calls = "d1 read {\"path\":\"/spawner/tree/AGENTS.md\"}"},
		{.calls = REPORT_CALL},
	};
	struct fake_parent first = {.pid = 0}, fork = {.pid = 0};

	spawn_and_die(&first, "anthropic");
	live(&fork, "anthropic", script, ARRAY_SIZE(script), ",\"generation\":2");
	assert_string_equal(fork.result, "done");
	fake_expect(&fork, 0, "The fork's part.");
	fake_expect_not(&fork, 0, "I look.");
	fake_expect_not(&fork, 1, "outside of your worktree");
	fake_release(&first);
	fake_release(&fork);
}

/* It must not begin with nothing: its task says only what its part is. */
static void without_the_conversation_there_is_no_fork(void **state)
{
	struct fake_parent fork = {.pid = 0};

	live(&fork, "anthropic", report_only, ARRAY_SIZE(report_only), "");
	assert_string_equal(fork.result, "failed");
	assert_int_equal(fork.n_requests, 0);
	assert_non_null(strstr(fork.reason, "the conversation of a1 cannot be taken over"));
	fake_release(&fork);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FOLDER(a_fork_begins_with_the_same_bytes),
		WITH_FOLDER(its_counts_begin_with_it),
		WITH_FOLDER(the_words_of_the_user_come_along),
		WITH_FOLDER(a_fork_that_dies_early_begins_again),
		WITH_FOLDER(a_fork_goes_on_like_any_other),
		WITH_FOLDER(a_fork_compacts_and_recalls),
		WITH_FOLDER(a_later_generation_has_the_paths_alone),
		WITH_FOLDER(without_the_conversation_there_is_no_fork),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
