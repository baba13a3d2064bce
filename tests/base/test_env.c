/* env: allow list, and values that are gone from /proc too (I1). */
#include "test_base.h"

#include <fcntl.h>
#include <sys/wait.h>

#include "base/env.h"
#include "base/spawn.h"

static const char *find(char **list, const char *name)
{
	size_t n = strlen(name);
	for (; *list; list++)
		if (strncmp(*list, name, n) == 0 && (*list)[n] == '=')
			return *list + n + 1;
	return NULL;
}

static void test_filter(void **state)
{
	setenv("BT_KEEP", "1", 1);
	setenv("BT_PRE_A", "2", 1);
	setenv("BT_PRE_B", "3", 1);
	setenv("BT_SECRET", "4", 1);
	static const char *const allow[] = {"BT_KEEP", "BT_PRE_*", NULL};
	static const char *const extra[] = {"BT_PRE_B=new", "BT_ADDED=5", "BT_ADDED=6", NULL};
	char **list = env_filter(allow, extra);
	assert_string_equal(find(list, "BT_KEEP"), "1");
	assert_string_equal(find(list, "BT_PRE_A"), "2");
	assert_string_equal(find(list, "BT_PRE_B"), "new");
	assert_string_equal(find(list, "BT_ADDED"), "6");
	assert_null(find(list, "BT_SECRET"));
	assert_null(find(list, "PATH"));
	env_list_free(list);
	list = env_filter(NULL, NULL);
	assert_null(list[0]);
	env_list_free(list);
	env_list_free(NULL);
}

static void test_get_treats_empty_as_unset(void **state)
{
	setenv("BT_EMPTY", "", 1);
	assert_null(env_get("BT_EMPTY"));
	assert_null(env_get("BT_NEVER_SET"));
	setenv("BT_FULL", "x", 1);
	assert_string_equal(env_get("BT_FULL"), "x");
}

static void test_folders(void **state)
{
	setenv("HOME", "/h", 1);
	setenv("XDG_STATE_HOME", "/s", 1);
	setenv("XDG_CONFIG_HOME", "relative", 1);
	unsetenv("XDG_CACHE_HOME");
	AUTO_FREE char *state_dir = env_state_dir();
	AUTO_FREE char *config_dir = env_config_dir();
	assert_string_equal(state_dir, "/s/baton");
	assert_string_equal(config_dir, "/h/.config/baton");
	assert_string_equal(env_home(), "/h");
}

/* Runs as a program of its own, since only what exec put there is in /proc/self/environ. */
static int wiped_child(void)
{
	static const char *const names[] = {"BT_KEY", "BT_TOKEN_*", NULL};
	AUTO_BUF struct buf text = BUF_INIT;
	if (!env_get("BT_KEY") || !env_get("BT_TOKEN_A") || !env_get("BT_PLAIN"))
		return 10;
	env_wipe(names);
	if (env_get("BT_KEY") || env_get("BT_TOKEN_A") || env_get("BT_TOKEN_B"))
		return 11;
	if (!env_get("BT_PLAIN"))
		return 12;
	if (file_read(AT_FDCWD, "/proc/self/environ", 1 << 20, &text, NULL) < 0)
		return 13;
	if (memmem(text.data, text.len, "sesame", 6))
		return 14;
	return memmem(text.data, text.len, "harmless", 8) ? 0 : 15;
}

static void test_wiped_values_are_not_in_proc(void **state)
{
	static const char *const argv[] = {"test_env", "wiped", NULL};
	static const char *const envp[] = {"BT_TOKEN_A=sesame1", "BT_KEY=sesame2",
					   "BT_PLAIN=harmless", "BT_TOKEN_B=sesame3", NULL};
	struct spawn_opts opts = SPAWN_OPTS_INIT;
	opts.path = "/proc/self/exe";
	opts.argv = argv;
	opts.envp = envp;
	pid_t pid;
	int status = -1;
	assert_int_equal(spawn_process(&opts, &pid, NULL, NULL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "wiped") == 0)
		return wiped_child();
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_filter),
		cmocka_unit_test(test_get_treats_empty_as_unset),
		cmocka_unit_test(test_folders),
		cmocka_unit_test(test_wiped_values_are_not_in_proc),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
