/*
 * test_worktrees_end.c - how worktrees end: checkpoints and their limits, adoption, prune, and
 * kills at any point of a creation.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "rig.h"

static void begin(struct rig *rig)
{
	rig_make(rig, "git init -q repo");
	free(rig_sh(rig, "",
		    "cd repo; mkdir src; echo one > src/a.c; echo '*.o' > .gitignore; git add -A; "
		    "git commit -qm first"));
	rig_start(rig, rig->repo);
}

static char *inside(struct rig *rig, const char *run, const char *agent)
{
	AUTO_FREE char *path = rig_worktree(rig, run, agent);

	return mem_strdup(path + strlen(rig->dir) + 1);
}

static struct json_object *prune(struct rig *rig, const char *ended)
{
	struct json_object *body = json_object_new_object();
	struct json_object *runs = json_object_new_array();

	if (ended)
		json_object_array_add(runs, json_object_new_string(ended));
	json_set(body, "ended", runs);
	return rig_ok(rig, "prune", body);
}

/* I7: ignored files that write or edit touched are in, by name; other ignored ones are not. */
static void touched_ignored_files_are_in_the_checkpoint(void **state)
{
	struct rig rig;

	begin(&rig);
	json_object_put(rig_create(&rig, "r1", "a1"));
	AUTO_FREE char *where = inside(&rig, "r1", "a1");
	free(rig_sh(&rig, where, "echo k > kept.o; echo b > built.o; rm src/a.c"));
	struct json_object *body = rig_entry(&rig, "r1", "a1", NULL);
	struct json_object *touched = json_object_new_array();
	json_object_array_add(touched, json_object_new_string("kept.o"));
	json_object_array_add(touched, json_object_new_string("never/was.o"));
	json_set(body, "touched", touched);
	json_set_str(body, "message", "before compaction");
	json_object_put(rig_ok(&rig, "checkpoint", body));
	AUTO_FREE char *seen =
		rig_sh(&rig, "repo",
		       "git ls-tree -r --name-only refs/baton/r1/a1/ckpt; "
		       "git log --format=%s refs/baton/r1/a1/ckpt; git fsck --strict");
	assert_string_equal(seen, ".gitignore\nkept.o\nbefore compaction\nfirst");
	rig_free(&rig);
}

/* I7: above 20,000 files the worktree is kept instead, and nothing entered the user's objects. */
static void too_much_is_kept_instead(void **state)
{
	struct rig rig;

	begin(&rig);
	json_object_put(rig_create(&rig, "r1", "a1"));
	AUTO_FREE char *where = inside(&rig, "r1", "a1");
	free(rig_sh(&rig, where, "mkdir many; cd many; seq 20001 | xargs touch"));
	AUTO_FREE char *before = rig_sh(&rig, "repo", "find .git/objects | sort");
	AUTO_JSON struct json_object *point =
		rig_ok(&rig, "checkpoint", rig_entry(&rig, "r1", "a1", NULL));
	assert_non_null(strstr(json_str(point, "kept", ""), "20000 changed files"));
	assert_null(json_str(point, "commit", NULL));
	AUTO_JSON struct json_object *kept =
		rig_ok(&rig, "remove", rig_entry(&rig, "r1", "a1", NULL));
	assert_false(json_flag(kept, "removed", true));
	AUTO_FREE char *after = rig_sh(&rig, "repo", "find .git/objects | sort");
	assert_string_equal(before, after);
	free(rig_sh(&rig, where, "rm many/*; truncate -s 201M many/large"));
	AUTO_JSON struct json_object *large =
		rig_ok(&rig, "checkpoint", rig_entry(&rig, "r1", "a1", NULL));
	assert_non_null(strstr(json_str(large, "kept", ""), "200 MB"));
	rig_free(&rig);
}

static void an_adopted_worktree_is_an_ordinary_one(void **state)
{
	struct rig rig;
	struct err err = ERR_INIT;

	begin(&rig);
	json_object_put(rig_create(&rig, "r1", "a1"));
	AUTO_FREE char *where = inside(&rig, "r1", "a1");
	free(rig_sh(&rig, where, "echo w > w; git add w; git commit -qm w; echo loose > loose"));
	struct json_object *body = rig_entry(&rig, "r1", "a1", NULL);
	AUTO_FREE char *target = file_join(rig.dir, "mine");
	json_set_str(body, "path", target);
	AUTO_JSON struct json_object *answer = rig_ok(&rig, "adopt", body);
	assert_string_equal(json_str(answer, "path", ""), target);
	AUTO_FREE char *seen =
		rig_sh(&rig, "mine",
		       "git status --porcelain -b; git log --format=%s; "
		       "git add loose; git commit -qm more; git worktree list --porcelain | "
		       "grep -c locked || :; cd ../repo; git fsck; "
		       "git log -1 --format=%s baton/r1/a1");
	assert_string_equal(seen, "## baton/r1/a1\n?? loose\nw\nfirst\n0\nmore");
	/* It is the user's now. */
	assert_null(rig_call(&rig, "remove", rig_entry(&rig, "r1", "a1", NULL), &err));
	assert_int_equal(err.code, ERR_DENIED);
	json_object_put(prune(&rig, "r1"));
	free(rig_sh(&rig, "repo",
		    "test -f ../mine/loose; git worktree remove ../mine; test ! -e ../mine"));
	rig_free(&rig);
}

static void prune_takes_dead_runs_only(void **state)
{
	struct rig rig;

	begin(&rig);
	json_object_put(rig_create(&rig, "r1", "a1"));
	json_object_put(rig_create(&rig, "r2", "a1"));
	json_object_put(rig_create(&rig, "r2", "a2"));
	json_object_put(rig_create(&rig, "r2", "a3"));
	AUTO_FREE char *busy = inside(&rig, "r2", "a1");
	AUTO_FREE char *worked = inside(&rig, "r2", "a2");
	free(rig_sh(&rig, busy, "touch $(git rev-parse --git-dir)/MERGE_HEAD"));
	free(rig_sh(&rig, worked, "echo w > w"));
	free(rig_sh(&rig, "repo", "git worktree add -q ../users -b users"));
	AUTO_JSON struct json_object *answer = prune(&rig, "r2");
	assert_int_equal(json_len(json_arr(answer, "removed")), 2);
	assert_int_equal(json_len(json_arr(answer, "kept")), 1);
	assert_non_null(
		strstr(json_str(json_at(json_arr(answer, "kept"), 0), "reason", ""), "merge"));
	AUTO_FREE char *seen =
		rig_sh(&rig, "repo",
		       "git worktree list | wc -l; git show refs/baton/r2/a2/ckpt:w; "
		       "git branch --list 'baton/*' | wc -l");
	/* a3 did nothing: its branch is gone; a1 of both runs and a2 have theirs. */
	assert_string_equal(seen, "4\nw\n3");
	rig_free(&rig);
}

/* Killed between the making of the .git file and its bytes; what else lies there is somebody's. */
static void a_half_written_git_file_is_our_creation(void **state)
{
	static const char script[] =
		"sed -i 's/\"ready\"/\"creating\"/' .git/worktrees/baton+r1+*/baton; "
		"cd ../state/baton/worktrees/repo-1/r1; find a? -mindepth 1 -delete; "
		": > a1/.git; printf 'gitdir: /' > a2/.git; : > a3/.git; : > a3/stranger";
	struct rig rig;

	begin(&rig);
	json_object_put(rig_create(&rig, "r1", "a1"));
	json_object_put(rig_create(&rig, "r1", "a2"));
	json_object_put(rig_create(&rig, "r1", "a3"));
	free(rig_sh(&rig, "repo", script));
	AUTO_JSON struct json_object *answer = prune(&rig, "r1");
	assert_int_equal(json_len(json_arr(answer, "removed")), 2);
	assert_int_equal(json_len(json_arr(answer, "kept")), 1);
	AUTO_FREE char *left = rig_sh(&rig, "state/baton/worktrees/repo-1/r1", "ls *");
	assert_string_equal(left, "stranger");
	rig_free(&rig);
}

/* A folder that the user removed by hand: commits are saved, the last checkpoint is not an empty
 * one. */
static void a_worktree_deleted_by_hand_goes_quietly(void **state)
{
	struct rig rig;

	begin(&rig);
	json_object_put(rig_create(&rig, "r1", "a1"));
	AUTO_FREE char *where = inside(&rig, "r1", "a1");
	free(rig_sh(&rig, where,
		    "git checkout -qb other; echo w > w; git add w; git commit -qm w; "
		    "git checkout -q -; echo x > x; git add x; git commit -qm x"));
	AUTO_FREE char *script = mem_printf("rm -r %s", where);
	free(rig_sh(&rig, "", script));
	AUTO_JSON struct json_object *gone =
		rig_ok(&rig, "remove", rig_entry(&rig, "r1", "a1", NULL));
	assert_true(json_flag(gone, "removed", false));
	AUTO_FREE char *seen = rig_sh(&rig, "repo",
				      "git show baton/r1/a1:x; git show refs/baton/r1/a1/ckpt^2:w; "
				      "git ls-tree -r --name-only refs/baton/r1/a1/ckpt");
	assert_string_equal(seen, "x\nw\n.gitignore\nsrc/a.c");
	rig_free(&rig);
}

/* One system call further. False when it waits in poll after it made something: the creation is
 * over. *failed: it is not to be traced. */
static bool step(pid_t pid, bool *made, bool *failed)
{
	struct __ptrace_syscall_info info;
	int status;

	for (int half = 0; half < 2; half++) {
		*failed = ptrace(PTRACE_SYSCALL, pid, NULL, NULL) < 0 ||
			  waitpid(pid, &status, 0) < 0 || !WIFSTOPPED(status) ||
			  ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info) < 0;
		if (*failed)
			return false;
		if (info.op != PTRACE_SYSCALL_INFO_ENTRY)
			continue;
		*made = *made || info.entry.nr == SYS_mkdir;
		if (*made && info.entry.nr == SYS_poll)
			return false;
	}
	return true;
}

/* Stops baton-git where it waits for a request. */
static bool trace(struct rig *rig)
{
	int status;

	return ptrace(PTRACE_SEIZE, rig->pid, NULL, PTRACE_O_TRACESYSGOOD) == 0 &&
	       ptrace(PTRACE_INTERRUPT, rig->pid, NULL, NULL) == 0 &&
	       waitpid(rig->pid, &status, 0) == rig->pid;
}

/* Lets it make `steps` system calls. 1: it is in the middle; 0: the creation was over; -1: it is
 * not to be traced. */
static int run_steps(struct rig *rig, int steps)
{
	bool made = false, failed = false;

	for (int i = 0; i < steps; i++) {
		if (!step(rig->pid, &made, &failed))
			return failed ? -1 : 0;
	}
	return 1;
}

static void ignore_answer(struct json_object *answer, const struct err *failure, void *arg)
{
}

/* R6: a kill at any point of a creation leaves what prune takes away whole, and a user's repository
 * without a scratch. */
static void a_kill_at_any_point_of_a_creation_is_pruned(void **state)
{
	struct rig rig;

	begin(&rig);
	json_object_put(rig_create(&rig, "r0", "warm"));
	int going = 1;
	for (int steps = 1; going == 1; steps += 29) {
		struct json_object *body = rig_entry(&rig, "r1", "a1", NULL);

		if (!trace(&rig))
			skip();
		git_client_call(rig.client, "create", body, ignore_answer, NULL);
		json_object_put(body);
		going = run_steps(&rig, steps);
		if (going < 0) {
			rig_kill(&rig);
			rig_free(&rig);
			skip();
		}
		rig_kill(&rig);
		free(rig_sh(&rig, "repo", "git fsck --strict; git worktree list > /dev/null"));
		rig_start(&rig, rig.repo);
		AUTO_JSON struct json_object *answer = prune(&rig, "r1");
		if (json_len(json_arr(answer, "kept")))
			fail_msg("after %d steps: kept because %s", steps,
				 json_str(json_at(json_arr(answer, "kept"), 0), "reason", ""));
		AUTO_FREE char *left =
			rig_sh(&rig, "repo",
			       "git worktree list | wc -l; git for-each-ref | grep -c r1 || :; "
			       "ls -A ../state/baton/worktrees/repo-1/r1 2>/dev/null | wc -l; "
			       "ls -A .git/baton/runs/r1/agents/a1 2>/dev/null | wc -l; find .git "
			       "-name '*.lock' | wc -l; git gc -q; git fsck --strict");
		if (strcmp(left, "2\n0\n0\n0\n0") != 0)
			fail_msg("after %d steps: %s", steps, left);
	}
	rig_free(&rig);
}

/* A service that is killed while workers run takes them along, and the next one starts clean. */
static void a_killed_service_leaves_no_worker(void **state)
{
	struct rig rig;

	begin(&rig);
	json_object_put(rig_create(&rig, "r1", "a1"));
	struct json_object *body = rig_entry(&rig, "r1", "a1", NULL);
	for (int i = 0; i < 4; i++)
		git_client_call(rig.client, "status", body, ignore_answer, NULL);
	json_object_put(body);
	struct json_object *rev = json_object_new_object();
	json_set_str(rev, "rev", "HEAD");
	json_object_put(rig_ok(&rig, "resolve", rev));
	rig_kill(&rig);
	rig_start(&rig, rig.repo);
	AUTO_JSON struct json_object *status =
		rig_ok(&rig, "status", rig_entry(&rig, "r1", "a1", NULL));
	assert_int_equal(json_len(json_arr(status, "files")), 0);
	rig_free(&rig);
}

/* A git that was killed leaves the lock files of our scratch index and of the ref that it moved: the next operation goes on. A
 * removal that was done and not heard can be asked for again. */
static void a_killed_gits_lock_file_holds_nobody(void **state)
{
	struct rig rig;

	begin(&rig);
	json_object_put(rig_create(&rig, "r1", "a1"));
	AUTO_FREE char *where = inside(&rig, "r1", "a1");
	free(rig_sh(&rig, where, "echo two > src/a.c"));
	static const char *const ops[] = {"checkpoint", "diff", "remove"};
	for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
		free(rig_sh(&rig, "repo",
			    "touch .git/baton/runs/r1/agents/a1/git.state/scratch.index.lock; "
			    "mkdir -p .git/refs/baton/r1/a1; touch .git/refs/baton/r1/a1/ckpt.lock "
			    ".git/refs/heads/baton/r1/a1.lock"));
		struct json_object *body = rig_entry(&rig, "r1", "a1", NULL);
		json_set_str(body, "message", "saved");
		json_object_put(rig_ok(&rig, ops[i], body));
	}
	AUTO_FREE char *left = rig_sh(&rig, "repo", "find .git -name '*.lock' | wc -l");
	assert_string_equal(left, "0");
	AUTO_JSON struct json_object *again =
		rig_ok(&rig, "remove", rig_entry(&rig, "r1", "a1", NULL));
	assert_true(json_flag(again, "removed", false));
	rig_free(&rig);
}

/* X12, I10: git syncs no folders, so after a power cut HEAD and index may name what is not there. */
static void a_head_and_an_index_that_lead_nowhere_are_mended(void **state)
{
	struct rig rig;

	begin(&rig);
	json_object_put(rig_create(&rig, "r1", "a1"));
	AUTO_FREE char *where = inside(&rig, "r1", "a1");
	free(rig_sh(
		&rig, where,
		"echo two > src/b.c; git add -A; git commit -qm two; "
		"d=$(git rev-parse --git-dir); h=$(git rev-parse HEAD); b=$(git rev-parse "
		"HEAD:src/b.c); "
		"rm -f $d/objects/$(echo $h | cut -c1-2)/* $d/objects/$(echo $b | cut -c1-2)/*"));
	assert_int_not_equal(rig_sh_status(&rig, where, "git log -1 2>/dev/null"), 0);
	AUTO_JSON struct json_object *answer =
		rig_ok(&rig, "reopen", rig_entry(&rig, "r1", "a1", NULL));
	assert_string_equal(json_str(answer, "how", ""), "kept");
	assert_int_equal(json_len(json_arr(answer, "notes")), 2);
	AUTO_FREE char *now = rig_sh(&rig, where, "git log --format=%s; git status --porcelain");
	assert_string_equal(now, "first\n?? src/b.c");
	AUTO_JSON struct json_object *again =
		rig_ok(&rig, "reopen", rig_entry(&rig, "r1", "a1", NULL));
	assert_int_equal(json_len(json_arr(again, "notes")), 0);
	rig_free(&rig);
}

static void files_as_a_power_cut_leaves_them_are_named(void **state)
{
	struct rig rig;

	begin(&rig);
	json_object_put(rig_create(&rig, "r1", "a1"));
	AUTO_FREE char *where = inside(&rig, "r1", "a1");
	free(rig_sh(&rig, where, "printf 'half\\0\\0' > half; : > src/a.c; echo whole > whole"));
	struct json_object *body = rig_entry(&rig, "r1", "a1", NULL);
	json_set_bool(body, "damaged", true);
	AUTO_JSON struct json_object *answer = rig_ok(&rig, "status", body);
	struct json_object *files = json_arr(answer, "files");
	assert_int_equal(json_len(files), 3);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(json_flag(json_at(files, i), "damaged", false),
				 strcmp(json_str(json_at(files, i), "path", ""), "whole") != 0);
	assert_non_null(json_str(answer, "checkpoint", NULL));
	rig_free(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(touched_ignored_files_are_in_the_checkpoint),
		cmocka_unit_test(too_much_is_kept_instead),
		cmocka_unit_test(an_adopted_worktree_is_an_ordinary_one),
		cmocka_unit_test(prune_takes_dead_runs_only),
		cmocka_unit_test(a_half_written_git_file_is_our_creation),
		cmocka_unit_test(a_worktree_deleted_by_hand_goes_quietly),
		cmocka_unit_test(a_kill_at_any_point_of_a_creation_is_pruned),
		cmocka_unit_test(a_killed_service_leaves_no_worker),
		cmocka_unit_test(a_head_and_an_index_that_lead_nowhere_are_mended),
		cmocka_unit_test(files_as_a_power_cut_leaves_them_are_named),
		cmocka_unit_test(a_killed_gits_lock_file_holds_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
