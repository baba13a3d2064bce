/* job: background commands, their end, and that they die with the context (A5, I9). */
#include "fixture.h"

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"

static bool has_ended(void *arg)
{
	struct fixture *f = arg;
	call(f, "job", "{'action':'list'}");
	return strstr(said(f), "running") == NULL;
}

static void test_end_is_announced_once(void **state)
{
	struct fixture *f = *state;
	struct job_end end;
	call(f, "shell", "{'command':'echo hello; exit 4','background':true}");
	assert_ok(f);
	assert_says(f, "background job j1");
	assert_int_equal(f->result.exit_code, -1);
	assert_true(wait_until(has_ended, f));
	assert_int_equal(tool_context_running_jobs(f->ctx), 0);
	assert_true(tool_context_next_end(f->ctx, &end));
	assert_string_equal(end.id, "j1");
	assert_int_equal(end.exit_code, 4);
	assert_non_null(strstr(end.line.data, "background job j1 ended: exit code 4"));
	assert_non_null(strstr(end.line.data, "results:shell-1.txt"));
	assert_null(strchr(end.line.data, '\n'));
	buf_release(&end.line);
	assert_false(tool_context_next_end(f->ctx, &end));
}

static void test_wait_shows_output_and_exit_code(void **state)
{
	struct fixture *f = *state;
	struct job_end end;
	call(f, "shell", "{'command':'read x; echo a; echo b','background':true}");
	assert_int_equal(call(f, "job", "{'action':'wait','id':'j1'}"), 0);
	assert_ok(f);
	assert_says(f, "exit code 0");
	assert_says(f, "a\nb\n");
	assert_int_equal(f->result.exit_code, 0);
	/* Seen here, so not announced again. */
	assert_false(tool_context_next_end(f->ctx, &end));
	call(f, "job", "{'action':'poll','id':'j1'}");
	assert_says(f, "nothing new");
}

struct expected {
	struct fixture *f;
	const char *text;
};

static bool poll_shows(void *arg)
{
	struct expected *e = arg;
	call(e->f, "job", "{'action':'poll','id':'j1'}");
	return strstr(said(e->f), e->text) != NULL;
}

static void test_poll_shows_what_is_new(void **state)
{
	struct fixture *f = *state;
	call(f, "shell",
	     "{'command':'echo first; until [ -e go ]; do sleep 0.01; done; echo second; sleep "
	     "300',"
	     "'background':true}");
	assert_true(wait_until(poll_shows, &(struct expected){f, "first\n"}));
	assert_says(f, "running for");
	assert_int_equal(f->result.exit_code, -1);
	call(f, "job", "{'action':'poll','id':'j1'}");
	assert_says(f, "nothing new");
	puts_file(f, "go", "");
	assert_true(wait_until(poll_shows, &(struct expected){f, "second\n"}));
	assert_says_not(f, "first");
	assert_int_equal(tool_context_running_jobs(f->ctx), 1);
	int64_t start = clock_mono_ms();
	call(f, "job", "{'action':'wait','id':'j1','timeout_ms':50}");
	assert_ok(f);
	assert_says(f, "running for");
	assert_true(clock_mono_ms() - start < 2000);
}

static void test_kill_ends_all_of_it(void **state)
{
	struct fixture *f = *state;
	call(f, "shell",
	     "{'command':'export MARK=jobkill-%d; (trap \\u0022\\u0022 TERM; sleep 300) & sleep "
	     "300',"
	     "'background':true}",
	     (int)getpid());
	assert_int_equal(call(f, "job", "{'action':'kill','id':'j1'}"), 0);
	assert_says(f, "ended by signal 15");
	assert_true(f->result.has_effects);
	AUTO_FREE char *mark = mem_printf("MARK=jobkill-%d", (int)getpid());
	assert_int_equal(count_marked(mark), 0);
	assert_int_equal(count_zombies(), 0);
	call(f, "job", "{'action':'kill','id':'j1'}");
	assert_ok(f);
}

/* A foreground call ends its own leftovers and no process of a running job, even a daemon of it. */
static void test_foreground_spares_running_jobs(void **state)
{
	struct fixture *f = *state;
	call(f, "shell",
	     "{'command':'export MARK=spare-%d; (setsid sleep 300 &); (sleep 300 &); touch "
	     "up; sleep 300',"
	     "'background':true}",
	     (int)getpid());
	AUTO_FREE char *mark = mem_printf("MARK=spare-%d", (int)getpid());
	call(f, "shell",
	     "{'command':'until [ -e up ]; do sleep 0.01; done; sleep 300 & echo done'}");
	assert_says(f, "done\n");
	assert_says(f, "1 process still ran");
	/* bash itself keeps the environment that it began with */
	assert_int_equal(count_marked(mark), 3);
	call(f, "job", "{'action':'kill','id':'j1'}");
	assert_int_equal(count_marked(mark), 0);
}

/* A job that ends while a foreground call runs takes nothing of that call with it. */
static void test_end_of_a_job_spares_the_foreground(void **state)
{
	struct fixture *f = *state;
	call(f, "shell",
	     "{'command':'echo $$ > bg; until [ -e fg ]; do sleep 0.01; done','background':true}");
	call(f, "shell",
	     "{'command':'(setsid bash -c \\u0027echo $$ > helper; sleep 300\\u0027 &); "
	     "until [ -s helper -a -s bg ]; do sleep 0.01; done; touch fg; "
	     "while kill -0 $(cat bg) 2>/dev/null; do sleep 0.01; done; kill -0 $(cat helper) && "
	     "echo alive'}");
	assert_ok(f);
	assert_says(f, "alive\n");
	assert_says(f, "still ran");
}

static bool no_zombie(void *arg)
{
	call(arg, "job", "{'action':'list'}");
	return count_zombies() == 0;
}

static bool is_up(void *arg)
{
	struct fixture *f = arg;
	AUTO_FREE char *up = in_tree(f, "up");
	return access(up, F_OK) == 0;
}

/* Trap 104: what a long job orphans is reaped while it runs. */
static void test_trap_104_orphans_of_a_job_are_reaped(void **state)
{
	struct fixture *f = *state;
	call(f, "shell",
	     "{'command':'for i in 1 2 3; do (true & true &); done; touch up; sleep "
	     "300','background':true}");
	assert_true(wait_until(is_up, f));
	assert_true(wait_until(no_zombie, f));
	assert_int_equal(tool_context_running_jobs(f->ctx), 1);
}

static void test_jobs_die_with_the_context(void **state)
{
	struct fixture *f = *state;
	AUTO_FREE char *mark = mem_printf("MARK=die-%d", (int)getpid());
	for (int i = 0; i < 3; i++)
		call(f, "shell",
		     "{'command':'export MARK=die-%d; trap \\u0022\\u0022 TERM; setsid sleep 300 & "
		     "sleep 300 & "
		     "wait','background':true}",
		     (int)getpid());
	assert_int_equal(tool_context_running_jobs(f->ctx), 3);
	fixture_restart(f);
	assert_int_equal(count_marked(mark), 0);
	assert_int_equal(count_zombies(), 0);
	assert_int_equal(tool_context_running_jobs(f->ctx), 0);
}

static void test_unknown_job_and_empty_list(void **state)
{
	struct fixture *f = *state;
	call(f, "job", "{'action':'poll','id':'j9'}");
	assert_error(f);
	call(f, "job", "{'action':'poll'}");
	assert_error(f);
	call(f, "job", "{'action':'list'}");
	assert_ok(f);
	assert_says(f, "no background jobs");
}

static void test_output_bound_holds_for_jobs(void **state)
{
	struct fixture *f = *state;
	f->settings.shell_output_max = 1 << 20;
	fixture_restart(f);
	call(f, "shell", "{'command':'yes','background':true}");
	call(f, "job", "{'action':'wait','id':'j1','timeout_ms':20000}");
	assert_says(f, "output was too large");
	assert_true(f->result.text.len < (1 << 20) + 1000);
}

static void test_cancel_during_wait(void **state)
{
	struct fixture *f = *state;
	call(f, "shell", "{'command':'sleep 300','background':true}");
	f->waiter.cancel_at_ms = clock_mono_ms() + 20;
	assert_int_equal(call(f, "job", "{'action':'wait','id':'j1'}"), -1);
	assert_int_equal(f->err.code, ERR_CANCELLED);
	f->waiter.cancel_at_ms = 0;
	assert_int_equal(tool_context_running_jobs(f->ctx), 1);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		T(test_end_is_announced_once),
		T(test_wait_shows_output_and_exit_code),
		T(test_poll_shows_what_is_new),
		T(test_kill_ends_all_of_it),
		T(test_foreground_spares_running_jobs),
		T(test_end_of_a_job_spares_the_foreground),
		T(test_trap_104_orphans_of_a_job_are_reaped),
		T(test_jobs_die_with_the_context),
		T(test_unknown_job_and_empty_list),
		T(test_output_bound_holds_for_jobs),
		T(test_cancel_during_wait),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
