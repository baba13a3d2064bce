/*
 * test_control.c - who may say what to a run that works (issue 5, item 10); whole runs: tests/integration/test_control.py.
 */
#include "tests/base/test_base.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "orchestrator/ancestry.h"
#include "orchestrator/control_requests.h"

static bool allowed(enum box_level level, const char *text)
{
	AUTO_JSON struct json_object *request = NULL;

	assert_int_equal(json_parse(text, strlen(text), &request, NULL), 0);
	return control_box_allows(level, request);
}

static void test_a_partial_box_leaves_pause_and_stop(void **state)
{
	static const char *const harmless[] = {"{\"op\":\"pause\"}",
					       "{\"op\":\"continue\",\"agent\":\"a1\"}",
					       "{\"op\":\"stop\",\"agent\":\"a1\"}"};
	static const char *const others[] = {"{\"op\":\"say\",\"agent\":\"a1\",\"text\":\"x\"}",
					     "{\"op\":\"compact\"}", "{\"op\":\"reset\"}",
					     "{\"op\":\"continue\",\"max_cost\":100}",
					     "{\"op\":\"continue\",\"max_tokens\":100}"};

	for (size_t i = 0; i < ARRAY_SIZE(harmless); i++)
		assert_true(allowed(BOX_PARTIAL, harmless[i]));
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		assert_false(allowed(BOX_PARTIAL, others[i]));
		assert_true(allowed(BOX_LANDLOCK, others[i]));
	}
}

/* In a process of its own, whose word is its exit status. */
static bool in_child(bool detached, pid_t ancestor)
{
	int status = 0;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		pid_t grandchild = detached ? fork() : 0;
		if (grandchild > 0)
			_exit(0); /* what it left is its grandparent's now */
		if (detached)
			setsid();
		while (detached && getppid() != ancestor)
			;
		_exit(ancestry_has(getpid(), ancestor) ? 10 : 11);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (detached)
		assert_true(wait(&status) > 0);
	return WEXITSTATUS(status) == 10;
}

static void test_who_descends_from_whom(void **state)
{
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	assert_true(ancestry_has(getpid(), getpid()));
	assert_true(in_child(false, getpid()));
	assert_true(in_child(true, getpid()));
	assert_false(ancestry_has(getppid(), getpid()));
	assert_false(ancestry_has(1, getpid()));
	assert_false(ancestry_has(0, getpid())); /* of another pid namespace */
	/* One that cannot be looked up is not let in. */
	assert_true(ancestry_has(INT32_MAX, getpid()));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_partial_box_leaves_pause_and_stop),
		cmocka_unit_test(test_who_descends_from_whom),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
