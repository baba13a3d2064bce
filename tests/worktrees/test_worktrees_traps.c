/*
 * test_worktrees_traps.c - section N of the traps, by number, against a real baton-git.
 */
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "rig.h"

#define BEGIN(rig, init)                                                                           \
	struct rig rig;                                                                            \
	rig_make(&rig, init);                                                                      \
	free(rig_sh(&rig, "",                                                                      \
		    "cd repo; mkdir src; echo one > src/a.c; echo '*.o' > .gitignore; "            \
		    "git add -A; git commit -qm first"))

static char *inside(struct rig *rig, const char *run, const char *agent)
{
	AUTO_FREE char *path = rig_worktree(rig, run, agent);

	return mem_strdup(path + strlen(rig->dir) + 1);
}

static void on_created(struct json_object *answer, const struct err *failure, void *arg)
{
	int *left = arg;

	if (failure)
		fail_msg("create: %s", failure->message);
	--*left;
}

/* Trap 110: many at the same moment, from a branch with an upstream. */
static void trap_110_parallel_creation(void **state)
{
	enum { COUNT = 16 };
	struct json_object *bodies[COUNT];
	int left = COUNT;

	BEGIN(rig, "git init -q repo");
	/* Above the size that is done in process: workers make these. */
	free(rig_sh(&rig, "",
		    "cd repo; for i in $(seq 400); do echo $i > src/n$i; done; git add -A; "
		    "git commit -qm more; git clone -q --bare . ../up; git remote add up "
		    "../up; git fetch -q up; git branch -q -u up/main"));
	rig_start(&rig, rig.repo);
	for (int i = 0; i < COUNT; i++) {
		AUTO_FREE char *agent = mem_printf("a%d", i);

		bodies[i] = rig_entry(&rig, "r1", agent, NULL);
		git_client_call(rig.client, "create", bodies[i], on_created, &left);
	}
	int64_t deadline = clock_mono_ms() + 60000;
	while (left > 0)
		assert_true(rig_turn(&rig, deadline));
	AUTO_FREE char *seen =
		rig_sh(&rig, "repo",
		       "git branch --list 'baton/r1/*' | wc -l; "
		       "git worktree list | grep -c locked; ls .git/*.lock "
		       ".git/refs/heads/baton/r1/*.lock 2>/dev/null | wc -l; "
		       "cat ../state/baton/worktrees/repo-1/r1/a7/src/n400; "
		       "git fsck --strict; git config -l --local | grep -c baton || :");
	assert_string_equal(seen, "16\n16\n0\n400\n0");
	for (int i = 0; i < COUNT; i++)
		json_object_put(bodies[i]);
	rig_free(&rig);
}

/* Trap 112: somebody else holds the creation lock. The quick way is not taken past it, nor the
 * slow. */
static void trap_112_a_held_lock_is_never_passed(void **state)
{
	struct err err = ERR_INIT;
	int left = 1;

	BEGIN(rig, "git init -q repo");
	rig_start(&rig, rig.repo);
	AUTO_FREE char *git_dir = file_join(rig.repo, ".git");
	AUTO_FD int fd = open(git_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	struct json_object *body = rig_entry(&rig, "r1", "a1", NULL);
	git_client_call(rig.client, "create", body, on_created, &left);
	/* Other operations are answered meanwhile; nothing was made. */
	for (int i = 0; i < 5; i++) {
		struct json_object *rev = json_object_new_object();
		json_set_str(rev, "rev", "HEAD");
		json_object_put(rig_ok(&rig, "resolve", rev));
	}
	assert_int_equal(left, 1);
	AUTO_FREE char *none =
		rig_sh(&rig, "repo", "git branch --list 'baton/*'; git worktree list | wc -l");
	assert_string_equal(none, "1");
	flock(fd, LOCK_UN);
	int64_t deadline = clock_mono_ms() + 20000;
	while (left > 0)
		assert_true(rig_turn(&rig, deadline));
	json_object_put(body);
	/* And a second creation of the same agent is an error, not a second worktree. */
	assert_null(rig_call(&rig, "create", rig_entry(&rig, "r1", "a1", NULL), &err));
	assert_int_equal(err.code, ERR_EXISTS);
	rig_free(&rig);
}

/* Trap 116: the run starts in a linked worktree of the user's. */
static void trap_116_start_from_a_linked_worktree(void **state)
{
	BEGIN(rig, "git init -q repo");
	free(rig_sh(&rig, "repo",
		    "git worktree add -q ../linked -b side; cd ../linked; echo 2 > two; "
		    "git add two; git commit -qm two"));
	AUTO_FREE char *linked = file_join(rig.dir, "linked");
	rig_start(&rig, linked);
	struct json_object *body = json_object_new_object();
	json_set_str(body, "path", linked);
	AUTO_JSON struct json_object *found = rig_ok(&rig, "discover", body);
	assert_true(json_flag(found, "linked", false));
	assert_string_equal(json_str(found, "head_ref", ""), "refs/heads/side");
	assert_string_equal(json_str(found, "name", ""), "repo");
	const char *head = json_str(found, "head", "");
	json_object_put(rig_ok(&rig, "create", rig_entry(&rig, "r1", "a1", head)));
	AUTO_FREE char *where = inside(&rig, "r1", "a1");
	AUTO_FREE char *seen = rig_sh(&rig, where, "cat two; echo f > f; git status --porcelain");
	assert_string_equal(seen, "2\n?? f");
	AUTO_JSON struct json_object *status =
		rig_ok(&rig, "status", rig_entry(&rig, "r1", "a1", head));
	assert_int_equal(json_len(json_arr(status, "files")), 1);
	rig_free(&rig);
}

static void assert_kept(struct rig *rig, const char *word)
{
	AUTO_JSON struct json_object *answer =
		rig_ok(rig, "remove", rig_entry(rig, "r1", "a1", NULL));
	AUTO_FREE char *path = rig_worktree(rig, "r1", "a1");

	assert_false(json_flag(answer, "removed", true));
	if (!strstr(json_str(answer, "kept", ""), word))
		fail_msg("'%s' does not say '%s'", json_str(answer, "kept", ""), word);
	assert_true(file_is_dir(path));
}

/* Trap 118: an inspection that fails is no "clean". */
static void trap_118_a_failing_inspection_keeps(void **state)
{
	BEGIN(rig, "git init -q repo");
	rig_start(&rig, rig.repo);
	json_object_put(rig_create(&rig, "r1", "a1"));
	AUTO_FREE char *where = inside(&rig, "r1", "a1");
	free(rig_sh(&rig, where,
		    "echo u > untracked; printf garbage > \"$(git rev-parse --git-dir)/index\""));
	assert_kept(&rig, "index");
	AUTO_FREE char *still = rig_sh(&rig, where, "cat untracked");
	assert_string_equal(still, "u");
	rig_free(&rig);
}

/* Trap 120: commits on a detached HEAD are the agent's work. */
static void trap_120_commits_on_a_detached_head_come_back(void **state)
{
	BEGIN(rig, "git init -q repo");
	rig_start(&rig, rig.repo);
	json_object_put(rig_create(&rig, "r1", "a1"));
	AUTO_FREE char *where = inside(&rig, "r1", "a1");
	free(rig_sh(&rig, where,
		    "git checkout -q --detach; echo x > x; git add x; git commit -qm detached"));
	AUTO_JSON struct json_object *status =
		rig_ok(&rig, "status", rig_entry(&rig, "r1", "a1", NULL));
	assert_int_equal(json_len(json_arr(status, "commits")), 1);
	assert_int_equal(json_len(json_arr(status, "files")), 1);
	AUTO_JSON struct json_object *import =
		rig_ok(&rig, "import", rig_entry(&rig, "r1", "a1", NULL));
	assert_true(json_flag(import, "from_head", false));
	AUTO_FREE char *seen = rig_sh(&rig, "repo", "git show -s --format=%s baton/r1/a1");
	assert_string_equal(seen, "detached");
	rig_free(&rig);
}

/* Trap 120, the rest: branches and stashes that only the private repository knows survive removal.
 */
static void trap_120_other_branches_and_stashes_survive_removal(void **state)
{
	BEGIN(rig, "git init -q repo");
	rig_start(&rig, rig.repo);
	json_object_put(rig_create(&rig, "r1", "a1"));
	AUTO_FREE char *where = inside(&rig, "r1", "a1");
	AUTO_FREE char *oids = rig_sh(&rig, where,
				      "git checkout -qb idea; echo i > i; git add i; git commit "
				      "-qm idea; git checkout -q -; "
				      "echo s1 >> src/a.c; git stash -q; echo s2 >> src/a.c; git "
				      "stash -q; git pack-refs --all; "
				      "git rev-parse idea stash@{0} stash@{1}");
	AUTO_JSON struct json_object *gone =
		rig_ok(&rig, "remove", rig_entry(&rig, "r1", "a1", NULL));
	assert_string_equal(json_str(gone, "kept", ""), "");
	AUTO_FREE char *script =
		mem_printf("for o in %s; do git merge-base --is-ancestor $o "
			   "refs/baton/r1/a1/ckpt; done; git gc -q --prune=now; git fsck",
			   oids);
	for (char *p = script; *p; p++)
		*p = *p == '\n' ? ' ' : *p;
	free(rig_sh(&rig, "repo", script));
	rig_free(&rig);
}

/* Trap 122: an unknown folder at the target is moved aside; its files live. */
static void trap_122_a_leftover_is_moved_aside(void **state)
{
	BEGIN(rig, "git init -q repo");
	rig_start(&rig, rig.repo);
	AUTO_FREE char *where = inside(&rig, "r1", "a1");
	AUTO_FREE char *script = mem_printf("mkdir -p %s; echo precious > %s/file", where, where);
	free(rig_sh(&rig, "", script));
	AUTO_JSON struct json_object *made = rig_create(&rig, "r1", "a1");
	const char *note = json_object_get_string(json_at(json_arr(made, "notes"), 0));
	assert_non_null(strstr(note, "leftover-1"));
	AUTO_FREE char *look = mem_printf("cat %s.leftover-1/file; cat %s/src/a.c", where, where);
	AUTO_FREE char *seen = rig_sh(&rig, "", look);
	assert_string_equal(seen, "precious\none");
	rig_free(&rig);
}

/* Trap 122, removal: a folder that took the place of ours is not touched. */
static void trap_122_a_replaced_folder_is_not_removed(void **state)
{
	BEGIN(rig, "git init -q repo");
	rig_start(&rig, rig.repo);
	json_object_put(rig_create(&rig, "r1", "a1"));
	AUTO_FREE char *where = inside(&rig, "r1", "a1");
	AUTO_FREE char *script =
		mem_printf("mv %s moved; mkdir %s; echo mine > %s/f", where, where, where);
	free(rig_sh(&rig, "", script));
	assert_kept(&rig, "not the one");
	rig_free(&rig);
}

/* Trap 124: a submodule is told to be empty, and stays in what is committed. */
static void trap_124_submodules_are_told(void **state)
{
	BEGIN(rig, "git init -q repo && git init -q sub && cd sub && echo s > s && git add s && "
		   "git commit -qm s && cd ..");
	free(rig_sh(&rig, "repo",
		    "git -c protocol.file.allow=always submodule --quiet add ../sub sub; "
		    "git commit -qm sub"));
	rig_start(&rig, rig.repo);
	AUTO_JSON struct json_object *made = rig_create(&rig, "r1", "a1");
	assert_string_equal(json_object_get_string(json_at(json_arr(made, "notes"), 0)),
			    "submodule 'sub' is empty");
	AUTO_FREE char *where = inside(&rig, "r1", "a1");
	free(rig_sh(&rig, where, "echo more >> src/a.c"));
	json_object_put(rig_ok(&rig, "commit_rest", rig_entry(&rig, "r1", "a1", NULL)));
	AUTO_FREE char *seen = rig_sh(&rig, "repo",
				      "git diff --name-only main baton/r1/a1; git ls-tree "
				      "baton/r1/a1 sub | cut -c1-6");
	assert_string_equal(seen, "src/a.c\n160000");
	rig_free(&rig);
}

/* Trap 128: stashes are each agent's own. */
static void trap_128_stashes_are_isolated(void **state)
{
	BEGIN(rig, "git init -q repo");
	rig_start(&rig, rig.repo);
	json_object_put(rig_create(&rig, "r1", "a1"));
	json_object_put(rig_create(&rig, "r1", "a2"));
	AUTO_FREE char *a = inside(&rig, "r1", "a1");
	AUTO_FREE char *b = inside(&rig, "r1", "a2");
	free(rig_sh(&rig, a, "echo of-a >> src/a.c; git stash -q"));
	free(rig_sh(&rig, b, "echo of-b >> src/a.c; git stash -q"));
	AUTO_FREE char *popped =
		rig_sh(&rig, a, "git stash pop -q; tail -1 src/a.c; git stash list | wc -l");
	assert_string_equal(popped, "of-a\n0");
	AUTO_FREE char *user = rig_sh(&rig, "repo", "git stash list | wc -l");
	assert_string_equal(user, "0");
	rig_free(&rig);
}

/* Trap 130: a clean status in the middle of a merge is unfinished work. */
static void trap_130_a_merge_in_progress_keeps(void **state)
{
	struct err err = ERR_INIT;

	BEGIN(rig, "git init -q repo");
	rig_start(&rig, rig.repo);
	json_object_put(rig_create(&rig, "r1", "a1"));
	AUTO_FREE char *where = inside(&rig, "r1", "a1");
	free(rig_sh(&rig, where,
		    "git checkout -qb side; echo s > s; git add s; git commit -qm s; "
		    "git checkout -q -; echo m > m; git add m; git commit -qm m; "
		    "git merge -q --no-commit -s ours side"));
	AUTO_JSON struct json_object *status =
		rig_ok(&rig, "status", rig_entry(&rig, "r1", "a1", NULL));
	assert_string_equal(json_str(status, "in_progress", ""), "merge");
	assert_kept(&rig, "merge");
	assert_null(rig_call(&rig, "commit_rest", rig_entry(&rig, "r1", "a1", NULL), &err));
	assert_int_equal(err.code, ERR_BUSY);
	/* Forced, the other parent is reachable all the same. */
	AUTO_FREE char *side = rig_sh(&rig, where, "git rev-parse side");
	struct json_object *body = rig_entry(&rig, "r1", "a1", NULL);
	json_set_bool(body, "force", true);
	AUTO_JSON struct json_object *gone = rig_ok(&rig, "remove", body);
	assert_true(json_flag(gone, "removed", false));
	AUTO_FREE char *script =
		mem_printf("git merge-base --is-ancestor %s refs/baton/r1/a1/ckpt; "
			   "git log -1 --format=%%b refs/baton/r1/a1/ckpt",
			   side);
	AUTO_FREE char *said = rig_sh(&rig, "repo", script);
	assert_non_null(strstr(said, "Baton-In-Progress: merge"));
	rig_free(&rig);
}

/* Trap 132: another owner's repository is refused with the way out; no configuration is edited. */
static void trap_132_dubious_ownership(void **state)
{
	struct err err = ERR_INIT;

	if (geteuid() != 0)
		skip(); /* only root can give a file away */
	BEGIN(rig, "git init -q repo");
	rig_start(&rig, NULL);
	AUTO_FREE char *before = rig_sh(&rig, "", "chown -R 12345 repo; cat home/.gitconfig");
	struct json_object *body = json_object_new_object();
	json_set_str(body, "path", rig.repo);
	assert_null(rig_call(&rig, "discover", body, &err));
	assert_int_equal(err.code, ERR_DENIED);
	assert_non_null(strstr(err.message, "safe.directory"));
	AUTO_FREE char *after = rig_sh(&rig, "", "cat home/.gitconfig");
	assert_string_equal(before, after);
	/* With the user's trust it works. */
	AUTO_FREE char *trust =
		mem_printf("git config --global --add safe.directory '%s'", rig.repo);
	free(rig_sh(&rig, "", trust));
	body = json_object_new_object();
	json_set_str(body, "path", rig.repo);
	json_object_put(rig_ok(&rig, "discover", body));
	json_object_put(rig_create(&rig, "r1", "a1"));
	rig_free(&rig);
}

/* Trap 136, the part that is ours: the branch moves by compare-and-swap, whatever is checked out.
 */
static void trap_136_import_does_not_care_what_is_checked_out(void **state)
{
	struct err err = ERR_INIT;

	BEGIN(rig, "git init -q repo");
	rig_start(&rig, rig.repo);
	json_object_put(rig_create(&rig, "r1", "a1"));
	AUTO_FREE char *where = inside(&rig, "r1", "a1");
	free(rig_sh(&rig, where, "echo w > w; git add w; git commit -qm w"));
	free(rig_sh(&rig, "repo", "git checkout -qb elsewhere"));
	json_object_put(rig_ok(&rig, "import", rig_entry(&rig, "r1", "a1", NULL)));
	AUTO_FREE char *seen = rig_sh(&rig, "repo",
				      "git symbolic-ref HEAD; git status --porcelain; "
				      "git show -s --format=%s baton/r1/a1 elsewhere");
	assert_string_equal(seen, "refs/heads/elsewhere\nw\nfirst");
	/* Checked out by the user, it is not moved under his feet. */
	free(rig_sh(&rig, "repo", "git checkout -q baton/r1/a1"));
	free(rig_sh(&rig, where, "echo w2 > w; git commit -qam w2"));
	assert_null(rig_call(&rig, "import", rig_entry(&rig, "r1", "a1", NULL), &err));
	assert_int_equal(err.code, ERR_BUSY);
	/* Committed onto by the user, it is his. */
	free(rig_sh(&rig, "repo",
		    "echo u > u; git add u; git commit -qm user; git checkout -q elsewhere"));
	assert_null(rig_call(&rig, "import", rig_entry(&rig, "r1", "a1", NULL), &err));
	assert_int_equal(err.code, ERR_CHANGED);
	assert_kept(&rig, "moved by somebody else");
	AUTO_FREE char *user = rig_sh(&rig, "repo", "git show -s --format=%s baton/r1/a1");
	assert_string_equal(user, "user");
	rig_free(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(trap_110_parallel_creation),
		cmocka_unit_test(trap_112_a_held_lock_is_never_passed),
		cmocka_unit_test(trap_116_start_from_a_linked_worktree),
		cmocka_unit_test(trap_118_a_failing_inspection_keeps),
		cmocka_unit_test(trap_120_commits_on_a_detached_head_come_back),
		cmocka_unit_test(trap_120_other_branches_and_stashes_survive_removal),
		cmocka_unit_test(trap_122_a_leftover_is_moved_aside),
		cmocka_unit_test(trap_122_a_replaced_folder_is_not_removed),
		cmocka_unit_test(trap_124_submodules_are_told),
		cmocka_unit_test(trap_128_stashes_are_isolated),
		cmocka_unit_test(trap_130_a_merge_in_progress_keeps),
		cmocka_unit_test(trap_132_dubious_ownership),
		cmocka_unit_test(trap_136_import_does_not_care_what_is_checked_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
