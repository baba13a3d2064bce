/*
 * test_runs.c - what ls and show know of a run, folded from its journal, damaged lines and all
 * (I10).
 */
#include "config_rig.h"

#include <sys/file.h>
#include <unistd.h>

#include "base/clock.h"
#include "orchestrator/config/store.h"
#include "orchestrator/runs.h"

#define RUNS "project/.git/baton/runs/"

static const char journal[] =
	"{\"t\":\"2026-11-30T10:00:00.000Z\",\"type\":\"run.started\",\"command\":\"run\",\"task\":"
	"\"fix\","
	"\"model\":\"p/m\",\"pid\":7}\n"
	"{\"t\":\"2026-11-30T10:00:01.000Z\",\"type\":\"agent.spawned\",\"agent\":\"a1\",\"role\":"
	"\"lead\","
	"\"worktree\":\"/w/a1\",\"branch\":\"baton/r/a1\",\"base\":\"b0\"}\n"
	"{\"type\":\"agent.spawned\",\"agent\":\"a2\",\"ro\n"
	"garbage \xff\n"
	"\n"
	"[1]\n"
	"{\"type\":\"worktree.created\",\"agent\":\"a1\"}\n"
	"{\"type\":\"agent.tool\"}\n"
	"{\"type\":\"agent.asked\",\"agent\":\"a1\",\"child\":\"a2\",\"base\":\"b9\"}\n"
	"{\"type\":\"call.settled\",\"agent\":\"a1\",\"total_cost\":0.5}\n"
	"{\"type\":\"agent.ended\",\"agent\":\"a1\",\"status\":\"done\",\"reason\":\"ok\"}\n"
	"{\"type\":\"agent.done\",\"agent\":\"a1\",\"commit\":\"c1\",\"rounds\":4,\"kept\":\"why\"}"
	"\n";
static const char finish[] = "{\"t\":\"2026-11-30T10:05:00.000Z\",\"type\":\"run.finished\","
			     "\"status\":\"succeeded\",\"cost\":0.75}\n";

static struct settings *settings_of(void **state)
{
	AUTO_FREE char *project = rig_path(state, "project");
	const char *argv[] = {"-C", project};
	struct settings *s = NULL;

	assert_int_equal(settings_load(2, (char **)argv, SCOPE_OTHER, NULL, &s, NULL), 0);
	return s;
}

static int list(void **state, struct past_run **ret, size_t *ret_n, struct err *err)
{
	struct settings *s = settings_of(state);
	int rc = runs_list(s, ret, ret_n, err);

	settings_free(s);
	return rc;
}

static int find(void **state, const char *name, bool want_agent, struct past_run *ret,
		struct past_agent **ret_agent, struct err *err)
{
	struct settings *s = settings_of(state);
	int rc = runs_find(s, name, want_agent, ret, ret_agent, err);

	settings_free(s);
	return rc;
}

static void no_run(void **state, const char *name, bool want_agent, const char *part)
{
	struct past_run run;
	struct past_agent *agent;
	struct err err = ERR_INIT;

	assert_int_equal(find(state, name, want_agent, &run, &agent, &err), -1);
	if (!strstr(err.message, part))
		fail_msg("'%s' lacks '%s'", err.message, part);
}

static void test_folds_a_damaged_journal(void **state)
{
	struct past_run run;
	struct past_agent *agent = NULL;

	rig_write(state, RUNS "r1/run.jsonl", journal);
	assert_int_equal(find(state, "r1/a1", true, &run, &agent, NULL), 0);
	assert_string_equal(run.command, "run");
	assert_string_equal(run.task, "fix");
	assert_string_equal(run.model, "p/m");
	assert_string_equal(run.status, "cut off"); /* no run.finished, and nobody holds the lock */
	assert_int_equal(run.started_ms, clock_parse_stamp("2026-11-30T10:00:00.000Z"));
	assert_int_equal(run.ended_ms, 0);
	assert_true(run.cost == 0.5);
	assert_true(run.bad_lines >= 2);
	assert_int_equal(run.n_agents, 1);
	assert_ptr_equal(agent, &run.agents[0]);
	assert_string_equal(agent->role, "lead");
	assert_string_equal(agent->status, "done");
	assert_string_equal(agent->reason, "ok");
	assert_string_equal(agent->commit, "c1");
	assert_string_equal(agent->kept, "why");
	assert_string_equal(agent->worktree, "/w/a1");
	assert_string_equal(agent->base, "b0"); /* not that of the agent which it asked for */
	assert_true(agent->worktree_made);
	assert_int_equal(agent->rounds, 4);
	AUTO_JSON struct json_object *entry = past_agent_entry(&run, agent);
	AUTO_FREE char *git = mem_printf("%s/agents/a1/git", run.dir);
	assert_string_equal(json_str(entry, "git_dir", ""), git);
	assert_string_equal(json_str(entry, "branch", ""), "baton/r/a1");
	run_release(&run);
}

static void test_finished_run(void **state)
{
	struct past_run run;
	struct past_agent *agent;
	AUTO_FREE char *text = mem_printf("%s%s", journal, finish);

	rig_write(state, RUNS "r1/run.jsonl", text);
	assert_int_equal(find(state, NULL, false, &run, &agent, NULL), 0);
	assert_null(agent);
	assert_string_equal(run.status, "succeeded");
	assert_true(run.cost == 0.75);
	assert_int_equal(run.ended_ms - run.started_ms, 300000);
	run_release(&run);
}

/* The lock is the truth, not the pid in the journal. */
static void test_living_run(void **state)
{
	struct past_run run;
	struct past_agent *agent;
	AUTO_FREE char *lock = rig_path(state, RUNS "r1/lock");

	rig_write(state, RUNS "r1/run.jsonl", journal);
	rig_write(state, RUNS "r1/lock", "");
	AUTO_FD int fd = open(lock, O_RDWR | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	assert_int_equal(find(state, "r1", false, &run, &agent, NULL), 0);
	assert_true(run.alive);
	assert_string_equal(run.status, "running");
	run_release(&run);
	assert_int_equal(flock(fd, LOCK_UN), 0);
	assert_int_equal(find(state, "r1", false, &run, &agent, NULL), 0);
	assert_false(run.alive);
	run_release(&run);
}

/* A run that died before its journal: run.json tells what was asked. */
static void test_run_without_a_journal(void **state)
{
	struct past_run run;
	struct past_agent *agent;

	rig_write(state, RUNS "r1/run.json", "{\"command\":\"review\",\"task\":\"x\"}");
	assert_int_equal(find(state, "r1", true, &run, &agent, NULL), -1);
	assert_int_equal(find(state, "r1", false, &run, &agent, NULL), 0);
	assert_string_equal(run.command, "review");
	assert_string_equal(run.status, "cut off");
	assert_int_equal(run.bad_lines, 0);
	run_release(&run);
}

static void test_list_is_in_order(void **state)
{
	struct past_run *runs = NULL;
	size_t n = 99;
	struct err err = ERR_INIT;

	rig_write(state, "project/.git/HEAD", "ref: refs/heads/main\n");
	assert_int_equal(list(state, &runs, &n, &err), 0);
	assert_int_equal(n, 0);
	runs_free(runs, n);
	for (int i = 0; i < 3; i++) {
		AUTO_FREE char *name = mem_printf(RUNS "r%d/run.jsonl", i);
		AUTO_FREE char *text = mem_printf(
			"{\"t\":\"2026-11-%dT10:00:00.000Z\",\"type\":\"run.started\"}\n", 29 - i);
		rig_write(state, name, text);
	}
	rig_write(state, RUNS ".hidden/run.jsonl", "");
	assert_int_equal(list(state, &runs, &n, &err), 0);
	assert_int_equal(n, 3);
	assert_string_equal(runs[0].id, "r2");
	assert_string_equal(runs[2].id, "r0");
	runs_free(runs, n);
}

static void test_names(void **state)
{
	struct past_run run;
	struct past_agent *agent;
	static const char two[] = "{\"type\":\"agent.spawned\",\"agent\":\"a1\"}\n"
				  "{\"type\":\"agent.spawned\",\"agent\":\"a2\"}\n";

	rig_write(state, "project/.git/HEAD", "");
	no_run(state, "r1", false, "no runs yet");
	rig_write(state, RUNS "r1-one/run.jsonl", journal);
	rig_write(state, RUNS "r1-two/run.jsonl", two);
	rig_write(state, RUNS "r1/run.jsonl", two);
	no_run(state, "x", false, "there is no run 'x'");
	no_run(state, "r1-", false, "'r1-' could mean:");
	no_run(state, "r1-two", true, "r1-two/a1 r1-two/a2");
	no_run(state, "r1-two/a3", false, "name one agent");
	assert_int_equal(find(state, "r1", false, &run, &agent, NULL), 0); /* whole before prefix */
	assert_string_equal(run.id, "r1");
	run_release(&run);
	assert_int_equal(find(state, "r1-o", true, &run, &agent, NULL), 0);
	assert_string_equal(run.id, "r1-one");
	assert_string_equal(agent->name, "a1"); /* the only one */
	run_release(&run);
	assert_int_equal(find(state, "r1-t/a2", false, &run, &agent, NULL), 0);
	assert_string_equal(agent->name, "a2");
	run_release(&run);
}

static void test_outside_a_repository(void **state)
{
	struct past_run *runs;
	size_t n;
	struct err err = ERR_INIT;

	assert_int_equal(list(state, &runs, &n, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	assert_non_null(strstr(err.message, "in no git repository"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(test_folds_a_damaged_journal),
		rig_test(test_finished_run),
		rig_test(test_living_run),
		rig_test(test_run_without_a_journal),
		rig_test(test_list_is_in_order),
		rig_test(test_names),
		rig_test(test_outside_a_repository),
	};
	return cmocka_run_group_tests_name("orchestrator/runs", tests, NULL, NULL);
}
