/*
 * test_worktrees_disk.c - copies that several runs make to the same place at the same moment.
 */
#include "tests/base/test_base.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "worktrees/disk.h"

enum { COPIERS = 6, COPIES = 200, BYTES = 20000 };

static int copy_often(const char *from, const char *to)
{
	struct err err = ERR_INIT;

	for (int i = 0; i < COPIES; i++) {
		AUTO_BUF struct buf text = BUF_INIT;

		if (disk_copy(from, to, &err) < 0 ||
		    file_read(AT_FDCWD, to, 2 * BYTES, &text, &err) < 0) {
			fprintf(stderr, "%s\n", err.message);
			return 1;
		}
		if (text.len != BYTES)
			return 2; /* half a file */
	}
	return 0;
}

/* Each copy succeeds, and no reader ever sees a part. */
static void test_copies_at_once(void **state)
{
	AUTO_FREE char *from = file_join(*state, "from");
	AUTO_FREE char *to = file_join(*state, "to");
	AUTO_FREE char *bytes = mem_alloc(BYTES);
	struct err err = ERR_INIT;
	pid_t pids[COPIERS];

	memset(bytes, 'x', BYTES);
	assert_int_equal(disk_put(from, bytes, BYTES, false, &err), 0);
	for (int i = 0; i < COPIERS; i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			_exit(copy_often(from, to));
		assert_true(pids[i] > 0);
	}
	for (int i = 0; i < COPIERS; i++) {
		int status;

		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(status, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_copies_at_once, folder_setup, folder_teardown),
	};
	return cmocka_run_group_tests_name("worktrees/disk", tests, NULL, NULL);
}
