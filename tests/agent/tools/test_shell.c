/* shell: output, ends, limits, environment, the boundary (T5, T6, X10; traps 87, 93, 96 to 104). */
#include "fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"

static void test_output_and_exit_code(void **state)
{
	struct fixture *f = *state;
	assert_int_equal(call(f, "shell", "{'command':'echo out; echo err >&2; pwd'}"), 0);
	assert_ok(f);
	assert_int_equal(f->result.exit_code, 0);
	assert_true(f->result.has_effects);
	AUTO_FREE char *want = mem_printf("out\nerr\n%s\n", f->worktree);
	assert_string_equal(said(f), want);
	call(f, "shell", "{'command':'echo no; exit 3'}");
	assert_error(f);
	assert_int_equal(f->result.exit_code, 3);
	assert_string_equal(said(f), "exit code 3\nno\n");
	call(f, "shell", "{'command':'kill -SEGV $$'}");
	assert_int_equal(f->result.exit_code, 128 + SIGSEGV);
	assert_says(f, "signal 11");
	call(f, "shell", "{'command':'true'}");
	assert_string_equal(said(f), "(no output)\n");
}

/* T6: all of the output is in a file that read takes. */
static void test_output_is_kept_in_results(void **state)
{
	struct fixture *f = *state;
	call(f, "shell", "{'command':'echo kept'}");
	AUTO_FREE char *name = mem_strdup(f->result.full_path);
	assert_non_null(name);
	assert_true(text_starts(name, "results:"));
	call(f, "read", "{'path':'%s'}", name);
	assert_says(f, "kept");
	call(f, "shell", "{'command':'cat $BATON_RESULTS/%s'}", name + strlen("results:"));
	assert_says(f, "kept");
}

/* Trap 87: NUL bytes pass as bytes, counted. */
static void test_trap_87_nul_bytes_are_counted(void **state)
{
	struct fixture *f = *state;
	call(f, "shell", "{'command':'printf \\u0027a\\\\000b\\u0027; head -c 4096 /dev/zero'}");
	assert_ok(f);
	assert_int_equal(f->result.text.len, 3 + 4096 + 1);
	assert_memory_equal(f->result.text.data, "a\0b\0", 4);
}

/* Trap 93: 2,000,000 lines are a few in the result and all in the file. */
static void test_trap_93_large_output_is_bounded(void **state)
{
	struct fixture *f = *state;
	call(f, "shell", "{'command':'seq 1 2000000'}");
	assert_ok(f);
	assert_true(f->result.text.len < 1000);
	assert_says(f,
		    "1\n2\n3\n4\n5\n[1999990 of 2000000 lines left out; all of it is in results:");
	assert_says(f, "1999996\n1999997\n1999998\n1999999\n2000000\n");
	call(f, "read", "{'path':'%s','offset':1234567,'limit':1}", "results:shell-1.txt");
	assert_says(f, "1234567\t1234567\n");
}

/* T5: a failure keeps its exit code, the lines that look like errors, and the tail. */
static void test_failure_is_shortened_to_errors_and_tail(void **state)
{
	struct fixture *f = *state;
	AUTO_BUF struct buf out = BUF_INIT;
	call(f, "shell",
	     "{'command':'for i in $(seq 1 6000); do echo line $i of a long log; "
	     "[ $i = 77 ] && echo src/a.c:3: error: broken; done; exit 2'}");
	assert_error(f);
	assert_true(f->result.text.len > 30000);
	const struct tool *tool = tool_find("shell");
	assert_int_equal(tool->result_limit, 30000);
	tool->shorten(&f->result, 20000, "results:1.txt", &out);
	assert_true(out.len <= 20200);
	assert_true(text_starts(out.data, "exit code 2\n"));
	assert_non_null(strstr(out.data, "src/a.c:3: error: broken\n"));
	assert_non_null(strstr(out.data, "line 6000 of a long log\n"));
	assert_non_null(strstr(out.data, "results:1.txt"));
	/* What fits is not shortened. */
	buf_clear(&out);
	tool->shorten(&f->result, f->result.text.len, NULL, &out);
	assert_int_equal(out.len, f->result.text.len);
}

static void test_trap_96_returns_when_the_leader_exits(void **state)
{
	struct fixture *f = *state;
	int64_t start = clock_mono_ms();
	call(f, "shell",
	     "{'command':'export MARK=trap96-%d; sleep 300 & until grep -q sleep /proc/$!/comm; do "
	     ":; done; echo ok'}",
	     (int)getpid());
	assert_true(clock_mono_ms() - start < 2000);
	assert_ok(f);
	assert_says(f, "ok\n");
	assert_says(f, "1 process still ran");
	assert_says(f, "sleep");
	AUTO_FREE char *mark = mem_printf("MARK=trap96-%d", (int)getpid());
	assert_int_equal(count_marked(mark), 0);
}

/* Trap 96: also what left the group and the session, and forked twice. */
static void test_trap_96_daemons_are_ended(void **state)
{
	struct fixture *f = *state;
	call(f, "shell",
	     "{'command':'export MARK=daemon-%d; setsid bash -c \\u0027(trap \\u0022\\u0022 TERM "
	     "HUP; sleep 300) "
	     "& disown\\u0027 >/dev/null 2>&1; echo ok'}",
	     (int)getpid());
	assert_says(f, "ok\n");
	AUTO_FREE char *mark = mem_printf("MARK=daemon-%d", (int)getpid());
	assert_int_equal(count_marked(mark), 0);
	assert_int_equal(count_zombies(), 0);
}

static void test_trap_98_timeout_kills_what_ignores_term(void **state)
{
	struct fixture *f = *state;
	int64_t start = clock_mono_ms();
	call(f, "shell",
	     "{'command':'export MARK=trap98-%d; echo before; bash -c \\u0027trap \\u0022\\u0022 "
	     "TERM; sleep "
	     "300\\u0027','timeout_ms':300}",
	     (int)getpid());
	int64_t took = clock_mono_ms() - start;
	assert_true(took >= 300 && took < 300 + 1000 + 1500);
	assert_error(f);
	assert_says(f, "before\n");
	assert_says(f, "timed out after 300ms");
	AUTO_FREE char *mark = mem_printf("MARK=trap98-%d", (int)getpid());
	assert_int_equal(count_marked(mark), 0);
}

static void test_trap_100_stderr_is_drained_too(void **state)
{
	struct fixture *f = *state;
	call(f, "shell",
	     "{'command':'head -c 200000 /dev/zero >&2; echo done','timeout_ms':20000}");
	assert_ok(f);
	assert_int_equal(f->result.text.len, 200005);
	assert_memory_equal(f->result.text.data + 200000, "done\n", 5);
}

static const char git_setup[] =
	"export HOME=$PWD; git init -q . && git config user.name n && git config "
	"user.email e && echo 1 > a && git add a && git commit -qm one && echo 2 > a "
	"&& git commit -qam two && echo 3 > a && git commit -qam three; ";

/* Trap 102: no editor opens, no terminal can be reached. */
static void test_trap_102_editors_are_refused(void **state)
{
	struct fixture *f = *state;
	setenv("EDITOR", "vim", 1);
	setenv("GIT_EDITOR", "vim", 1);
	fixture_restart(f);
	int64_t start = clock_mono_ms();
	call(f, "shell", "{'command':'%secho 4 > a; git commit -a'}", git_setup);
	assert_error(f);
	assert_says(f, "no editor can be opened here");
	call(f, "shell", "{'command':'export HOME=$PWD; git checkout -q a; git rebase -i HEAD~2'}");
	assert_error(f);
	assert_says(f, "no editor can be opened here");
	call(f, "shell", "{'command':'echo x > /dev/tty; read line; echo read $?'}");
	assert_says(f, "/dev/tty");
	assert_says(f, "read 1");
	assert_true(clock_mono_ms() - start < 10000);
	unsetenv("EDITOR");
	unsetenv("GIT_EDITOR");
}

/* The environment is an allow list; GIT_* of the outside never passes. */
static void test_environment_is_an_allow_list(void **state)
{
	struct fixture *f = *state;
	const char *const pass[] = {"WANTED", "GIT_DIR", "GIT_W*", NULL};
	setenv("SECRET_API_KEY", "sk-1", 1);
	setenv("WANTED", "yes", 1);
	setenv("GIT_DIR", "/nowhere", 1);
	setenv("GIT_WORK_TREE", "/nowhere", 1);
	setenv("BASH_ENV", "/nowhere", 1);
	f->settings.pass_env = pass;
	fixture_restart(f);
	call(f, "shell", "{'command':'env'}");
	assert_says(f, "WANTED=yes\n");
	assert_says(f, "GIT_PAGER=cat\n");
	assert_says(f, "GIT_TERMINAL_PROMPT=0\n");
	assert_says(f, "TERM=dumb\n");
	assert_says(f, "NO_COLOR=1\n");
	AUTO_FREE char *tmp = mem_printf("TMPDIR=%s\n", f->scratch);
	AUTO_FREE char *cache = mem_printf("XDG_CACHE_HOME=%s/xdg\n", f->cache);
	assert_says(f, tmp);
	assert_says(f, cache);
	assert_says_not(f, "SECRET");
	assert_says_not(f, "nowhere");
	unsetenv("GIT_DIR");
	unsetenv("GIT_WORK_TREE");
	unsetenv("BASH_ENV");
}

/* Trap 104: 50 calls started and cancelled leave no zombie. Cancel answers within 100 ms. */
static void test_trap_104_cancelled_calls_are_reaped(void **state)
{
	struct fixture *f = *state;
	int64_t slowest = 0;
	for (int i = 0; i < 50; i++) {
		f->waiter.cancel_at_ms = clock_mono_ms() + 5;
		int rc = call(f, "shell",
			      "{'command':'export MARK=trap104-%d; sleep 60 & sleep 60'}",
			      (int)getpid());
		int64_t late = clock_mono_ms() - f->waiter.cancel_at_ms;
		slowest = MAX(slowest, late);
		assert_int_equal(rc, -1);
		assert_int_equal(f->err.code, ERR_CANCELLED);
	}
	f->waiter.cancel_at_ms = 0;
	AUTO_FREE char *mark = mem_printf("MARK=trap104-%d", (int)getpid());
	assert_int_equal(count_marked(mark), 0);
	assert_int_equal(count_zombies(), 0);
	/* The bound is 100 ms; a loaded test machine gets some more. */
	assert_true(slowest < 600);
	call(f, "shell", "{'command':'echo alive'}");
	assert_says(f, "alive");
}

static void test_cancel_is_told_even_if_term_is_ignored(void **state)
{
	struct fixture *f = *state;
	f->waiter.cancel_at_ms = clock_mono_ms() + 300;
	int rc = call(f, "shell",
		      "{'command':'trap \\u0022\\u0022 TERM; while :; do sleep 1; done'}");
	assert_int_equal(rc, -1);
	assert_true(clock_mono_ms() - f->waiter.cancel_at_ms < 1000);
	assert_int_equal(count_zombies(), 0);
	f->waiter.cancel_at_ms = 0;
}

static void test_output_bound_ends_the_command(void **state)
{
	struct fixture *f = *state;
	struct stat st;
	f->settings.shell_output_max = 1 << 20;
	fixture_restart(f);
	int64_t start = clock_mono_ms();
	call(f, "shell", "{'command':'yes','timeout_ms':20000}");
	assert_true(clock_mono_ms() - start < 10000);
	assert_error(f);
	assert_says(f, "output passed 1048576 bytes");
	AUTO_FREE char *path = mem_printf("%s/shell-1.txt", f->results);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, 1 << 20);
}

static void test_too_long_command_and_nul(void **state)
{
	struct fixture *f = *state;
	AUTO_BUF struct buf text = BUF_INIT;
	for (int i = 0; i < 140000; i++)
		buf_addc(&text, ' ');
	call(f, "shell", "{'command':'%s'}", text.data);
	assert_error(f);
	assert_says(f, "longer than");
	call(f, "shell", "{'command':'echo \\u0000x'}");
	assert_error(f);
	assert_says(f, "NUL");
}

static void set_git(struct fixture *f)
{
	AUTO_FREE char *head = mem_printf("%s/HEAD", f->git_dir);
	FILE *file = fopen(head, "w");
	fputs("ref: refs/heads/baton/r/a1\n", file);
	fclose(file);
	puts_file(f, ".git", "gitdir: /somewhere\n");
	f->settings.git_dir = f->git_dir;
	f->settings.git_file = "gitdir: /somewhere\n";
	f->settings.head_ref = "refs/heads/baton/r/a1";
	fixture_restart(f);
}

/* X10: whatever happens to `.git`, it is put back, and the agent stops. */
static void test_x10_git_file_is_restored(void **state)
{
	struct fixture *f = *state;
	static const char *const commands[] = {
		"echo gitdir: /evil > .git",
		"rm .git",
		"rm .git; mkdir .git; echo x > .git/config",
		"rm .git; ln -s /evil .git",
		"rm .git; mkfifo .git",
	};
	set_git(f);
	assert_int_equal(call(f, "shell", "{'command':'true'}"), 0);
	assert_ok(f);
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		assert_int_equal(call(f, "shell", "{'command':'%s'}", commands[i]), -1);
		assert_int_equal(f->err.code, ERR_DENIED);
		assert_says(f, "it was restored");
		assert_file(f, ".git", "gitdir: /somewhere\n");
	}
	/* What stood there was moved aside, not deleted. */
	assert_file(f, "git-replaced-1/config", "x\n");
}

/* X10: HEAD on another branch fails the call; within a rebase it may be anywhere. */
static void test_x10_head_must_stay(void **state)
{
	struct fixture *f = *state;
	set_git(f);
	assert_int_equal(
		call(f, "shell", "{'command':'echo ref: refs/heads/main > %s/HEAD'}", f->git_dir),
		0);
	assert_error(f);
	assert_says(f, "HEAD left this agent's branch: it is now 'ref: refs/heads/main");
	assert_says(f, "git checkout baton/r/a1");
	call(f, "shell", "{'command':'mkdir %s/rebase-merge'}", f->git_dir);
	assert_ok(f);
	call(f, "shell", "{'command':'rmdir %s/rebase-merge'}", f->git_dir);
	assert_error(f);
	call(f, "shell", "{'command':'echo ref: refs/heads/baton/r/a1 > %s/HEAD'}", f->git_dir);
	assert_ok(f);
}

/* The box gets its folders and the command behind "--"; a script plays the box here. */
static void test_box_command_line(void **state)
{
	struct fixture *f = *state;
	AUTO_FREE char *box = mem_printf("%s/box", f->top);
	const char *const paths[] = {"/opt/extra", NULL};
	FILE *file = fopen(box, "w");
	fputs("#!/bin/bash\nprintf '%s\\n' \"$@\"\n", file);
	fclose(file);
	assert_int_equal(chmod(box, 0755), 0);
	f->settings.box_program = box;
	f->settings.git_dir = f->git_dir;
	f->settings.read_paths = paths;
	fixture_restart(f);
	call(f, "shell", "{'command':'echo hi'}");
	AUTO_FREE char *want =
		mem_printf("--level\nauto\n--write\n%s\n--write\n%s\n--write\n%s\n--write\n%s\n--"
			   "read\n%s\n--read\n"
			   "/opt/extra\n--network\nnone\n--\n/bin/bash\n-c\necho hi\n",
			   f->worktree, f->git_dir, f->scratch, f->cache, f->results);
	assert_string_equal(said(f), want);
	/* The box hides HOME: git must not stumble over a configuration that it cannot read. */
	FILE *env = fopen(box, "w");
	fputs("#!/bin/bash\nenv; cat \"$GIT_CONFIG_GLOBAL\"\n", env);
	fclose(env);
	call(f, "shell", "{'command':'true'}");
	AUTO_FREE char *global = mem_printf("GIT_CONFIG_GLOBAL=%s/gitconfig\n", f->cache);
	assert_says(f, global);
	assert_says(f, "name = baton\n");
	FILE *again = fopen(box, "w");
	fputs("#!/bin/bash\nprintf '%s\\n' \"$@\"\n", again);
	fclose(again);
	f->settings.read_only = true;
	fixture_restart(f);
	call(f, "shell", "{'command':'echo hi'}");
	AUTO_FREE char *tree = mem_printf("--read\n%s\n", f->worktree);
	assert_says(f, tree);
}

/* Trap 144: results: on a file system of 64 KiB; a command runs, its output is told, with a note.
 */
static void test_trap_144_full_disk(void **state)
{
	struct fixture *f = *state;
	if (mount("tmpfs", f->results, "tmpfs", 0, "size=64k") < 0)
		skip();
	fixture_restart(f);
	call(f, "shell", "{'command':'echo still works; df . | tail -1'}");
	assert_ok(f);
	assert_says(f, "still works\n");
	assert_says(f, "is full: this output is stored nowhere");
	assert_null(f->result.full_path);
	call(f, "shell", "{'command':'echo out; echo err >&2; echo again'}");
	assert_says(f, "out\nerr\nagain\n");
	tool_context_free(f->ctx);
	f->ctx = NULL;
	assert_int_equal(umount(f->results), 0);
}

static size_t open_descriptors(void)
{
	size_t n = 0;
	DIR *dir = opendir("/proc/self/fd");
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void test_no_descriptor_leaks(void **state)
{
	struct fixture *f = *state;
	call(f, "shell", "{'command':'true'}");
	size_t before = open_descriptors();
	for (int i = 0; i < 10; i++) {
		call(f, "shell", "{'command':'ls /proc/self/fd'}");
		/* 0, 1, 2 and ls's own: nothing of ours is open in a command. */
		assert_string_equal(said(f), "0\n1\n2\n3\n");
		call(f, "read", "{'path':'.'}");
		call(f, "write", "{'path':'f/%d','content':'x'}", i);
		call(f, "read", "{'path':'missing'}");
		call(f, "glob", "{'pattern':'**'}");
		call(f, "grep", "{'pattern':'x'}");
	}
	assert_int_equal(open_descriptors(), before);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		T(test_output_and_exit_code),
		T(test_output_is_kept_in_results),
		T(test_trap_87_nul_bytes_are_counted),
		T(test_trap_93_large_output_is_bounded),
		T(test_failure_is_shortened_to_errors_and_tail),
		T(test_trap_96_returns_when_the_leader_exits),
		T(test_trap_96_daemons_are_ended),
		T(test_trap_98_timeout_kills_what_ignores_term),
		T(test_trap_100_stderr_is_drained_too),
		T(test_trap_102_editors_are_refused),
		T(test_environment_is_an_allow_list),
		T(test_trap_104_cancelled_calls_are_reaped),
		T(test_cancel_is_told_even_if_term_is_ignored),
		T(test_output_bound_ends_the_command),
		T(test_too_long_command_and_nul),
		T(test_x10_git_file_is_restored),
		T(test_x10_head_must_stay),
		T(test_box_command_line),
		T(test_trap_144_full_disk),
		T(test_no_descriptor_leaks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
