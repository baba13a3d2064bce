/*
 * test_gate.c - a gate is a command in a box: what it may write, what is told of it, how it ends (issue 5, item 6; X5).
 *
 * Only children, a loop and a folder of a run are real here; the commands are real, too, and so is their box where this
 * machine has one.
 */
#include "tests/base/test_base.h"

#include <event2/event.h>
#include <sys/stat.h>

#include "base/file.h"
#include "orchestrator/gate.h"
#include "orchestrator/run.h"

struct rig {
	struct run run;
	char *dir, *tree;
	int over;
	struct gate_result result;
	char tail[8192];
	char *path;
};

static int setup(void **state)
{
	struct rig *rig = mem_alloc(sizeof(*rig));
	char *argv[] = {(char[]){"run"}, NULL};
	struct err err = ERR_INIT;
	void *dir = NULL;

	assert_int_equal(folder_setup(&dir), 0);
	rig->dir = dir;
	rig->tree = file_join(rig->dir, "tree");
	rig->run.dir = file_join(rig->dir, "run");
	rig->run.common_dir = file_join(rig->dir, "common");
	assert_int_equal(mkdir(rig->tree, 0700), 0);
	assert_int_equal(mkdir(rig->run.dir, 0700), 0);
	assert_int_equal(settings_load(0, argv, SCOPE_RUN, NULL, &rig->run.settings, &err), 0);
	rig->run.base = event_base_new();
	rig->run.children = children_new(rig->run.base);
	struct box_facts facts;
	box_probe_level(&facts);
	rig->run.box_level = facts.best;
	*state = rig;
	return 0;
}

static int teardown(void **state)
{
	struct rig *rig = *state;

	children_free(rig->run.children);
	event_base_free(rig->run.base);
	settings_free(rig->run.settings);
	file_remove_tree(rig->dir, NULL);
	free(rig->run.dir);
	free(rig->run.common_dir);
	free(rig->tree);
	free(rig->path);
	free(rig->dir);
	free(rig);
	return 0;
}

static void on_over(void *arg, const struct gate_result *result)
{
	struct rig *rig = arg;

	rig->over++;
	rig->result = *result;
	snprintf(rig->tail, sizeof(rig->tail), "%s", result->tail);
	free(rig->path);
	rig->path = mem_strdup(result->path);
}

static struct gate *begin(struct rig *rig, const char *command, bool write, int64_t timeout_ms)
{
	struct err err = ERR_INIT;
	struct gate_spec spec = {.name = "stage one",
				 .command = command,
				 .tree = rig->tree,
				 .timeout_ms = timeout_ms,
				 .write = write};
	struct gate *gate = gate_start(&rig->run, &spec, on_over, rig, &err);

	if (!gate)
		fail_msg("%s", err.message);
	assert_int_equal(rig->run.pending, 1);
	return gate;
}

/* Until the gate is over and what it left behind is gone, too. */
static void finish(struct rig *rig)
{
	while (rig->over == 0 || children_count(rig->run.children, -1) > 0)
		event_base_loop(rig->run.base, EVLOOP_ONCE);
	assert_int_equal(rig->over, 1);
	assert_int_equal(rig->run.pending, 0);
	rig->over = 0;
}

static void run_one(struct rig *rig, const char *command, bool write)
{
	begin(rig, command, write, 60000);
	finish(rig);
}

static void status_and_the_end_of_the_output_are_told(void **state)
{
	struct rig *rig = *state;
	char how[64];

	run_one(rig, "seq 2000; printf '\\033[31mFAIL\\033[0m: two\\n'; exit 3", false);
	assert_false(gate_passed(&rig->result));
	assert_int_equal(rig->result.exit_code, 3);
	assert_string_equal(gate_describe(&rig->result, how, sizeof(how)), "exited with status 3");
	assert_non_null(strstr(rig->tail, "\n2000\nFAIL: two\n"));
	assert_true(rig->tail[0] >= '1' && rig->tail[0] <= '9'); /* a whole line */
	assert_null(strstr(rig->tail, "\n100\n"));
	assert_non_null(strstr(rig->path, "/gates/stage-one/1.log"));
	run_one(rig, "true", false);
	assert_true(gate_passed(&rig->result));
	assert_non_null(strstr(rig->path, "/gates/stage-one/2.log"));
	assert_string_equal(rig->tail, "");
}

static void a_box_writes_where_it_may(void **state)
{
	struct rig *rig = *state;
	AUTO_FREE char *file = file_join(rig->tree, "made");
	AUTO_FREE char *scratch = file_join(rig->run.dir, "gates/stage-one/2.tmp");

	if (rig->run.box_level == BOX_NONE) {
		print_message("this machine has no box: what it confines is not shown here\n");
		skip();
	}
	run_one(rig, "echo x > made", false);
	assert_false(gate_passed(&rig->result));
	assert_false(file_exists(file));
	run_one(rig, "echo x > made && echo y > \"$TMPDIR/z\" && echo w > \"$CCACHE_DIR.w\"", true);
	assert_true(gate_passed(&rig->result));
	assert_true(file_exists(file));
	assert_false(file_exists(scratch)); /* its TMPDIR went with it */
	run_one(rig, "echo x > ../run/outside", true);
	assert_false(gate_passed(&rig->result));
}

static void a_gate_ends_at_its_limit_and_by_word(void **state)
{
	struct rig *rig = *state;
	char how[64];

	begin(rig, "trap '' TERM; tail -f /dev/null", false, 50);
	finish(rig);
	assert_true(rig->result.timed_out && rig->result.signalled && !rig->result.cancelled);
	assert_string_equal(gate_describe(&rig->result, how, sizeof(how)),
			    "reached its time limit");
	gate_cancel(begin(rig, "trap 'exit 0' TERM; tail -f /dev/null & wait", false, 60000));
	finish(rig);
	assert_true(rig->result.cancelled);
	assert_false(gate_passed(&rig->result)); /* whatever its status */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(status_and_the_end_of_the_output_are_told, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_box_writes_where_it_may, setup, teardown),
		cmocka_unit_test_setup_teardown(a_gate_ends_at_its_limit_and_by_word, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
