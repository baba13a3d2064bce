/*
 * test_worktrees_basic.c - one worktree from discover to remove, as the parent drives it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "rig.h"

static const char twenty_files[] =
	"cd repo; mkdir -p src/deep; for i in $(seq 18); do echo line $i > src/f$i.c; done; "
	"echo '*.o' > .gitignore; echo be good > AGENTS.md; chmod +x src/f1.c; ln -s f2.c "
	"src/link; "
	"git add -A; git commit -qm first; git tag v1; git branch other";

static void make(struct rig *rig)
{
	rig_make(rig, "git init -q repo");
	free(rig_sh(rig, "", twenty_files));
	rig_start(rig, rig->repo);
}

static struct json_object *path_body(const char *key, const char *value)
{
	struct json_object *body = json_object_new_object();

	json_set_str(body, key, value);
	return body;
}

static void discover_tells_what_the_repository_is(void **state)
{
	struct rig rig;

	make(&rig);
	AUTO_FREE char *sub = file_join(rig.repo, "src");
	AUTO_JSON struct json_object *answer = rig_ok(&rig, "discover", path_body("path", sub));
	AUTO_FREE char *git_dir = file_join(rig.repo, ".git");
	AUTO_FREE char *head = rig_sh(&rig, "repo", "git rev-parse HEAD");

	assert_string_equal(json_str(answer, "toplevel", ""), rig.repo);
	assert_string_equal(json_str(answer, "git_dir", ""), git_dir);
	assert_string_equal(json_str(answer, "common_dir", ""), git_dir);
	assert_string_equal(json_str(answer, "head", ""), head);
	assert_string_equal(json_str(answer, "head_ref", ""), "refs/heads/main");
	assert_string_equal(json_str(answer, "format", ""), "sha1");
	assert_string_equal(json_str(answer, "name", ""), "repo");
	assert_int_equal(json_i64(answer, "tracked", 0), 21);
	assert_false(json_flag(answer, "dirty", true));
	assert_false(json_flag(answer, "bare", true));
	struct json_object *one = json_at(json_arr(answer, "instructions"), 0);
	assert_string_equal(json_str(one, "text", ""), "be good\n");
	free(rig_sh(&rig, "repo", "echo new > new.txt"));
	AUTO_JSON struct json_object *dirty = rig_ok(&rig, "discover", path_body("path", sub));
	assert_true(json_flag(dirty, "dirty", false));
	rig_free(&rig);
}

static void discover_without_repository_is_not_found(void **state)
{
	struct rig rig;
	struct err err = ERR_INIT;

	rig_make(&rig, "mkdir repo");
	rig_start(&rig, NULL);
	assert_null(rig_call(&rig, "discover", path_body("path", rig.repo), &err));
	assert_int_equal(err.code, ERR_NOT_FOUND);
	rig_free(&rig);
}

static void create_makes_a_worktree_that_git_understands(void **state)
{
	struct rig rig;

	make(&rig);
	AUTO_JSON struct json_object *made = rig_create(&rig, "r1", "a1");
	AUTO_FREE char *worktree = rig_worktree(&rig, "r1", "a1");
	const char *inside = worktree + strlen(rig.dir) + 1;

	assert_int_equal(json_i64(made, "files", 0), 21);
	assert_string_equal(json_str(made, "head_ref", ""), "refs/heads/baton/r1/a1");
	/* In the worktree git works as the agent sees it. */
	AUTO_FREE char *status = rig_sh(&rig, inside,
					"git status --porcelain; git symbolic-ref HEAD; "
					"git log --format=%s main; cat src/link");
	assert_string_equal(status, "refs/heads/baton/r1/a1\nfirst\nline 2");
	free(rig_sh(&rig, inside, "test -x src/f1.c; test ! -x src/f2.c; git fsck --strict"));
	/* The user sees it, locked, and his fsck is clean. */
	AUTO_FREE char *list = rig_sh(&rig, "repo",
				      "git worktree list --porcelain; git fsck --strict; "
				      "git rev-parse refs/baton/r1/a1/ckpt HEAD | uniq | wc -l");
	assert_non_null(strstr(list, worktree));
	assert_non_null(strstr(list, "locked baton run r1, agent a1"));
	assert_true(text_ends(list, "1"));
	assert_int_not_equal(rig_sh_status(&rig, "repo",
					   "git worktree remove -f ../state/baton/worktrees/"
					   "repo-1/r1/a1 2>/dev/null"),
			     0);
	rig_free(&rig);
}

static void work_comes_back_by_import_and_is_removed_safely(void **state)
{
	struct rig rig;

	make(&rig);
	json_object_put(rig_create(&rig, "r1", "a1"));
	AUTO_FREE char *worktree = rig_worktree(&rig, "r1", "a1");
	const char *inside = worktree + strlen(rig.dir) + 1;
	free(rig_sh(&rig, inside,
		    "echo changed >> src/f3.c; git mv src/f4.c src/moved.c; "
		    "git commit -qam 'second thoughts'; echo loose > loose.txt; "
		    "echo x > built.o"));

	AUTO_JSON struct json_object *status =
		rig_ok(&rig, "status", rig_entry(&rig, "r1", "a1", NULL));
	assert_true(json_flag(status, "uncommitted", false));
	assert_int_equal(json_len(json_arr(status, "commits")), 1);
	struct json_object *files = json_arr(status, "files");
	assert_int_equal(json_len(files), 3);
	assert_string_equal(json_str(json_at(files, 0), "path", ""), "loose.txt");
	assert_string_equal(json_str(json_at(files, 0), "status", ""), "?");
	assert_string_equal(json_str(json_at(files, 1), "path", ""), "src/f3.c");
	assert_int_equal(json_i64(json_at(files, 1), "added", 0), 1);
	assert_string_equal(json_str(json_at(files, 2), "status", ""), "R");
	assert_string_equal(json_str(json_at(files, 2), "old_path", ""), "src/f4.c");

	AUTO_JSON struct json_object *import =
		rig_ok(&rig, "import", rig_entry(&rig, "r1", "a1", NULL));
	assert_string_equal(json_str(json_at(json_arr(import, "commits"), 0), "subject", ""),
			    "second thoughts");
	free(rig_sh(&rig, "repo",
		    "git fsck --strict --no-dangling; git show baton/r1/a1:src/moved.c"));

	struct json_object *body = rig_entry(&rig, "r1", "a1", NULL);
	json_set_bool(body, "patch", true);
	AUTO_JSON struct json_object *diff = rig_ok(&rig, "diff", body);
	assert_non_null(strstr(json_str(diff, "patch", ""), "+changed"));
	assert_non_null(strstr(json_str(diff, "stat", ""), "3 files changed"));

	AUTO_JSON struct json_object *rest =
		rig_ok(&rig, "commit_rest", rig_entry(&rig, "r1", "a1", NULL));
	assert_non_null(json_str(rest, "commit", NULL));
	AUTO_FREE char *clean =
		rig_sh(&rig, inside, "git status --porcelain; git log --format=%s -1");
	assert_string_equal(clean, "baton: uncommitted work");

	AUTO_JSON struct json_object *gone =
		rig_ok(&rig, "remove", rig_entry(&rig, "r1", "a1", NULL));
	assert_true(json_flag(gone, "removed", false));
	assert_false(file_exists(worktree));
	AUTO_FREE char *after =
		rig_sh(&rig, "repo",
		       "git fsck --strict --no-dangling; git show baton/r1/a1:loose.txt; "
		       "git worktree list | wc -l; git status --porcelain");
	assert_string_equal(after, "loose\n1");
	rig_free(&rig);
}

static bool has_changes(struct rig *rig)
{
	AUTO_JSON struct json_object *status =
		rig_ok(rig, "status", rig_entry(rig, "r1", "a1", NULL));

	return json_flag(status, "uncommitted", false);
}

/* What baton keeps to look faster (an index at the tip, a list of commits) never hides a change that came later:
 * not one of the same size in the same moment, not one that takes the last one back. */
static void what_is_kept_from_the_last_look_hides_nothing(void **state)
{
	struct rig rig;

	make(&rig);
	json_object_put(rig_create(&rig, "r1", "a1"));
	AUTO_FREE char *worktree = rig_worktree(&rig, "r1", "a1");
	const char *inside = worktree + strlen(rig.dir) + 1;
	assert_false(has_changes(&rig));
	for (int i = 0; i < 3; i++) {
		AUTO_FREE char *change = mem_printf("echo %d > src/f3.c; echo %d > new.txt", i, i);
		AUTO_FREE char *subject = mem_printf("round %d", i);
		struct json_object *body = rig_entry(&rig, "r1", "a1", NULL);

		free(rig_sh(&rig, inside, change));
		assert_true(has_changes(&rig));
		json_set_str(body, "message", subject);
		AUTO_JSON struct json_object *rest = rig_ok(&rig, "commit_rest", body);
		assert_non_null(json_str(rest, "commit", NULL));
		assert_string_equal(json_str(rest, "new", ""), json_str(rest, "commit", "?"));
		assert_int_equal(json_len(json_arr(rest, "commits")), 1);
		assert_false(has_changes(&rig));
	}
	free(rig_sh(&rig, inside, "git reset -q --hard HEAD~3; echo x > built.o"));
	assert_false(has_changes(&rig));
	struct json_object *body = rig_entry(&rig, "r1", "a1", NULL);
	json_set_bool(body, "stat", true);
	AUTO_JSON struct json_object *back = rig_ok(&rig, "status", body);
	assert_int_equal(json_len(json_arr(back, "files")), 0);
	assert_int_equal(json_len(json_arr(back, "commits")), 0);
	assert_string_equal(json_str(back, "stat", "?"), "");
	free(rig_sh(
		&rig, "repo",
		"git fsck --strict --no-dangling; test \"$(git log --format=%s main..baton/r1/a1 | "
		"tr '\\n' ,)\" = 'round 2,round 1,round 0,'"));
	rig_free(&rig);
}

/* The operations at the end of an agent, as orchestrator/collect.c asks for them; the number of processes. */
static size_t count_end(struct rig *rig, const char *agent, const char *change)
{
	AUTO_FREE char *worktree = rig_worktree(rig, "r1", agent);

	json_object_put(rig_create(rig, "r1", agent));
	free(rig_sh(rig, worktree + strlen(rig->dir) + 1, change));
	free(rig_sh(rig, "repo", ": >../started"));
	json_object_put(rig_ok(rig, "commit_rest", rig_entry(rig, "r1", agent, NULL)));
	struct json_object *body = rig_entry(rig, "r1", agent, NULL);
	json_set_bool(body, "stat", true);
	json_object_put(rig_ok(rig, "status", body));
	AUTO_JSON struct json_object *gone =
		rig_ok(rig, "remove", rig_entry(rig, "r1", agent, NULL));
	assert_true(json_flag(gone, "removed", false));
	AUTO_FREE char *count = rig_sh(rig, "repo", "wc -l <../started");
	return (size_t)strtoul(count, NULL, 10);
}

/* What an agent's end costs the user is the start of these processes: 10 ms of a processor each. They were 24, 40
 * and 34. */
static void an_agents_end_starts_few_processes(void **state)
{
	struct rig rig;

	make(&rig);
	AUTO_FREE char *counter = file_join(rig.dir, "counter");
	free(rig_sh(&rig, "repo",
		    "printf '#!/bin/sh\\necho \"$*\" >>%s/started\\nexec /usr/bin/git \"$@\"\\n' "
		    "\"$(dirname $PWD)\" >../counter; chmod 755 ../counter"));
	rig_stop(&rig);
	rig.git = counter;
	rig_start(&rig, rig.repo);
	assert_in_range(count_end(&rig, "a1", "cat src/f1.c"), 1, 3);
	assert_in_range(count_end(&rig, "a2", "echo new >new.c"), 4, 13);
	assert_in_range(count_end(&rig, "a3", "echo new >n.c; git add n.c; git commit -qm Own"), 4,
			15);
	rig_free(&rig);
}

/* A6: another agent begins from the files of this one as they stand, and this one sees nothing of it. */
static void another_agent_begins_from_the_files_as_they_stand(void **state)
{
	struct rig rig;

	make(&rig);
	json_object_put(rig_create(&rig, "r1", "a1"));
	AUTO_FREE char *tree = rig_worktree(&rig, "r1", "a1");
	const char *inside = tree + strlen(rig.dir) + 1;
	AUTO_JSON struct json_object *clean =
		rig_ok(&rig, "fork_base", rig_entry(&rig, "r1", "a1", NULL));
	AUTO_FREE char *head = rig_sh(&rig, "repo", "git rev-parse HEAD");
	assert_string_equal(json_str(clean, "commit", ""), head);
	assert_false(json_flag(clean, "uncommitted", true));

	free(rig_sh(&rig, inside,
		    "echo two >b.txt; git add b.txt; git commit -qm second; echo three >a.txt"));
	AUTO_FREE char *before = rig_sh(&rig, inside, "git status --porcelain; git rev-parse HEAD");
	AUTO_JSON struct json_object *dirty =
		rig_ok(&rig, "fork_base", rig_entry(&rig, "r1", "a1", NULL));
	AUTO_FREE char *after = rig_sh(&rig, inside, "git status --porcelain; git rev-parse HEAD");
	assert_string_equal(before, after);
	assert_true(json_flag(dirty, "uncommitted", false));
	const char *commit = json_str(dirty, "commit", "");
	AUTO_FREE char *tip = rig_sh(&rig, inside, "git rev-parse HEAD");
	assert_string_equal(json_str(dirty, "tip", ""), tip);
	AUTO_FREE char *script =
		mem_printf("git gc -q --prune=now; git show %s:a.txt %s:b.txt; git rev-parse %s^",
			   commit, commit, commit);
	AUTO_FREE char *shown = rig_sh(&rig, "repo", script); /* pinned: gc leaves it */
	AUTO_FREE char *want = mem_printf("three\ntwo\n%s", tip);
	assert_string_equal(shown, want);

	AUTO_JSON struct json_object *made =
		rig_ok(&rig, "create", rig_entry(&rig, "r1", "a2", commit));
	assert_non_null(made);
	AUTO_FREE char *other = rig_worktree(&rig, "r1", "a2");
	AUTO_FREE char *text = rig_sh(&rig, other + strlen(rig.dir) + 1,
				      "cat a.txt b.txt; git status --porcelain");
	assert_string_equal(text, "three\ntwo");
	rig_free(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(discover_tells_what_the_repository_is),
		cmocka_unit_test(discover_without_repository_is_not_found),
		cmocka_unit_test(create_makes_a_worktree_that_git_understands),
		cmocka_unit_test(work_comes_back_by_import_and_is_removed_safely),
		cmocka_unit_test(what_is_kept_from_the_last_look_hides_nothing),
		cmocka_unit_test(another_agent_begins_from_the_files_as_they_stand),
		cmocka_unit_test(an_agents_end_starts_few_processes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
