/*
 * test_worktrees_user.c - the user's side: what is shown of his repository, what is taken from it,
 * and that it stays his (I8); odd repositories work or are refused with the reason.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "rig.h"

static const char first[] =
	"cd repo; mkdir src; printf 'one\\ntwo\\nthree\\n' > src/a.c; echo '*.o' > "
	".gitignore; git add -A; git commit -qm first";

static struct json_object *body_of(const char *key, const char *value)
{
	struct json_object *body = json_object_new_object();

	json_set_str(body, key, value);
	return body;
}

static char *inside(struct rig *rig, const char *run, const char *agent)
{
	AUTO_FREE char *path = rig_worktree(rig, run, agent);

	return mem_strdup(path + strlen(rig->dir) + 1);
}

static const char state_of_user[] =
	"sha1sum .git/index .git/config .git/HEAD; git for-each-ref; "
	"git status --porcelain; git stash list; find .git/hooks | sort";

/* --dirty: tracked, untracked and deleted files are in, ignored ones are not, the index is
 * untouched. */
static void a_snapshot_leaves_the_user_alone(void **state)
{
	struct rig rig;

	rig_make(&rig, "git init -q repo");
	free(rig_sh(&rig, "", first));
	free(rig_sh(
		&rig, "repo",
		"echo gone > gone; echo s > staged; git add gone; git commit -qm 2; rm gone; "
		"git add staged; echo s2 >> staged; echo four >> src/a.c; echo u > 'un tracked'; "
		"echo o > x.o"));
	rig_start(&rig, rig.repo);
	AUTO_FREE char *before = rig_sh(&rig, "repo", state_of_user);
	AUTO_JSON struct json_object *shot = rig_ok(&rig, "snapshot", body_of("message", "dirty"));
	AUTO_FREE char *after = rig_sh(&rig, "repo", state_of_user);
	assert_string_equal(before, after);
	const char *commit = json_str(shot, "commit", "");
	AUTO_FREE char *script =
		mem_printf("git diff --name-status HEAD %s; git rev-parse %s^", commit, commit);
	AUTO_FREE char *seen = rig_sh(&rig, "repo", script);
	AUTO_FREE char *head = rig_sh(&rig, "repo", "git rev-parse HEAD");
	AUTO_FREE char *want =
		mem_printf("M\tsrc/a.c\nD\tgone\nA\tstaged\nA\tun tracked\n%s", head);
	AUTO_FREE char *sorted =
		mem_printf("D\tgone\nM\tsrc/a.c\nA\tstaged\nA\tun tracked\n%s", head);
	assert_true(strcmp(seen, want) == 0 || strcmp(seen, sorted) == 0);
	json_object_put(rig_ok(&rig, "create", rig_entry(&rig, "r1", "a1", commit)));
	AUTO_FREE char *where = inside(&rig, "r1", "a1");
	AUTO_FREE char *there = rig_sh(&rig, where, "cat staged; ls; git status --porcelain");
	assert_string_equal(there, "s\ns2\nsrc\nstaged\nun tracked");
	/* Clean: the snapshot is HEAD itself. */
	free(rig_sh(&rig, "repo", "git stash -qu"));
	AUTO_JSON struct json_object *clean = rig_ok(&rig, "snapshot", NULL);
	assert_string_equal(json_str(clean, "commit", ""), head);
	rig_free(&rig);
}

static struct json_object *range(struct rig *rig, const char *spec)
{
	return rig_ok(rig, "range", body_of("spec", spec));
}

static struct json_object *only_file(struct json_object *answer)
{
	assert_int_equal(json_len(json_arr(answer, "files")), 1);
	return json_at(json_arr(answer, "files"), 0);
}

static void ranges_give_files_with_patches(void **state)
{
	struct rig rig;
	struct err err = ERR_INIT;

	rig_make(&rig, "git init -q repo");
	free(rig_sh(&rig, "", first));
	free(rig_sh(
		&rig, "repo",
		"git checkout -qb topic; sed -i s/two/TWO/ src/a.c; git commit -qam topic; "
		"git checkout -q main; echo m > m; git add m; git commit -qm main2; "
		"git mv m moved; echo stage > s; git add s; echo wt > wt; printf 'a\\0b' > bin"));
	rig_start(&rig, rig.repo);
	AUTO_FREE char *before = rig_sh(&rig, "repo", state_of_user);
	AUTO_JSON struct json_object *three = range(&rig, "main...topic");
	struct json_object *file = only_file(three);
	assert_string_equal(json_str(file, "path", ""), "src/a.c");
	assert_non_null(strstr(json_str(file, "patch", ""), "-two\n+TWO\n"));
	assert_int_equal(json_i64(file, "added", 0), 1);
	AUTO_JSON struct json_object *two = range(&rig, "main..topic");
	assert_int_equal(json_len(json_arr(two, "files")), 2);
	AUTO_JSON struct json_object *one = range(&rig, "topic");
	assert_string_equal(json_str(only_file(one), "status", ""), "M");
	AUTO_JSON struct json_object *root = range(&rig, "topic~1");
	assert_int_equal(json_len(json_arr(root, "files")), 2);
	AUTO_JSON struct json_object *staged = range(&rig, "staged");
	struct json_object *moved = json_at(json_arr(staged, "files"), 0);
	assert_int_equal(json_len(json_arr(staged, "files")), 2);
	assert_string_equal(json_str(moved, "path", ""), "moved");
	assert_string_equal(json_str(moved, "old_path", ""), "m");
	assert_non_null(strstr(json_str(moved, "patch", ""), "rename from m"));
	AUTO_JSON struct json_object *tree = range(&rig, "worktree");
	assert_int_equal(json_len(json_arr(tree, "files")), 4);
	assert_true(json_flag(json_at(json_arr(tree, "files"), 0), "binary", false));
	AUTO_FREE char *after = rig_sh(&rig, "repo", state_of_user);
	assert_string_equal(before, after);
	/* A new side is a commit that a view can be made of. */
	AUTO_FREE char *view = file_join(rig.dir, "state/view");
	struct json_object *body = body_of("commit", json_str(tree, "new", ""));
	json_set_str(body, "path", view);
	AUTO_JSON struct json_object *made = rig_ok(&rig, "checkout_view", body);
	assert_int_equal(json_i64(made, "files", 0), 6);
	AUTO_FREE char *modes = rig_sh(&rig, "state/view",
				       "cat wt; find . -type f -perm /222 | wc -l; test ! -e .git");
	assert_string_equal(modes, "wt\n0");
	json_object_put(rig_ok(&rig, "remove_view", body_of("path", view)));
	assert_false(file_exists(view));
	assert_null(rig_call(&rig, "remove_view", body_of("path", rig.repo), &err));
	assert_int_equal(err.code, ERR_DENIED);
	assert_null(rig_call(&rig, "range", body_of("spec", "--output=x..HEAD"), &err));
	assert_int_equal(err.code, ERR_INVALID);
	assert_null(rig_call(&rig, "range", body_of("spec", "nosuch..HEAD"), &err));
	assert_int_equal(err.code, ERR_NOT_FOUND);
	rig_free(&rig);
}

/* The user packs refs, collects garbage and deletes a branch that the base was on, while agents
 * work. */
static void user_gc_and_pack_refs_during_the_run(void **state)
{
	struct rig rig;

	rig_make(&rig, "git init -q repo");
	free(rig_sh(&rig, "", first));
	free(rig_sh(&rig, "repo",
		    "git checkout -qb doomed; echo d > d; git add d; git commit -qm doomed; "
		    "git checkout -q main"));
	rig_start(&rig, rig.repo);
	AUTO_FREE char *base = rig_sh(&rig, "repo", "git rev-parse doomed");
	json_object_put(rig_ok(&rig, "create", rig_entry(&rig, "r1", "a1", base)));
	AUTO_FREE char *where = inside(&rig, "r1", "a1");
	free(rig_sh(&rig, "repo",
		    "git branch -qD doomed; git pack-refs --all --prune; "
		    "git reflog expire --expire=now --all; git gc -q --prune=now"));
	free(rig_sh(&rig, where, "echo w >> d; git commit -qam w; git gc -q; git log --oneline"));
	json_object_put(rig_ok(&rig, "checkpoint", rig_entry(&rig, "r1", "a1", base)));
	json_object_put(rig_ok(&rig, "import", rig_entry(&rig, "r1", "a1", base)));
	free(rig_sh(&rig, "repo",
		    "git pack-refs --all; git gc -q --prune=now; git worktree prune --expire=now; "
		    "git fsck --strict"));
	json_object_put(rig_create(&rig, "r1", "a2"));
	free(rig_sh(&rig, where, "echo w2 >> d; git commit -qam w2"));
	json_object_put(rig_ok(&rig, "import", rig_entry(&rig, "r1", "a1", base)));
	AUTO_FREE char *seen = rig_sh(&rig, "repo",
				      "git show baton/r1/a1:d; git worktree list | wc -l; "
				      "git fsck --strict --no-dangling");
	assert_string_equal(seen, "d\nw\nw2\n3");
	rig_free(&rig);
}

static void whole_life(struct rig *rig)
{
	json_object_put(rig_create(rig, "r1", "a1"));
	AUTO_FREE char *where = inside(rig, "r1", "a1");
	free(rig_sh(
		rig, where,
		"test -z \"$(git status --porcelain)\"; echo w > w; git add w; git commit -qm w; "
		"echo x > x"));
	AUTO_JSON struct json_object *status =
		rig_ok(rig, "status", rig_entry(rig, "r1", "a1", NULL));
	assert_int_equal(json_len(json_arr(status, "files")), 2);
	AUTO_JSON struct json_object *point =
		rig_ok(rig, "checkpoint", rig_entry(rig, "r1", "a1", NULL));
	assert_true(json_flag(point, "changed", false));
	AUTO_JSON struct json_object *again =
		rig_ok(rig, "checkpoint", rig_entry(rig, "r1", "a1", NULL));
	assert_false(json_flag(again, "changed", true));
	assert_string_equal(json_str(again, "commit", "1"), json_str(point, "commit", "2"));
	json_object_put(rig_ok(rig, "import", rig_entry(rig, "r1", "a1", NULL)));
	json_object_put(rig_ok(rig, "commit_rest", rig_entry(rig, "r1", "a1", NULL)));
	AUTO_JSON struct json_object *gone =
		rig_ok(rig, "remove", rig_entry(rig, "r1", "a1", NULL));
	assert_string_equal(json_str(gone, "kept", ""), "");
	free(rig_sh(
		rig, "repo",
		"git show baton/r1/a1:x refs/baton/r1/a1/ckpt:w; git fsck --strict --no-dangling"));
}

static void sha256_repositories_work(void **state)
{
	struct rig rig;

	rig_make(&rig, "git init -q --object-format=sha256 repo");
	free(rig_sh(&rig, "", first));
	rig_start(&rig, NULL);
	AUTO_JSON struct json_object *found = rig_ok(&rig, "discover", body_of("path", rig.repo));
	assert_string_equal(json_str(found, "format", ""), "sha256");
	assert_int_equal(strlen(json_str(found, "head", "")), 64);
	assert_int_equal(json_i64(found, "tracked", 0), 2);
	whole_life(&rig);
	AUTO_JSON struct json_object *tree = range(&rig, "HEAD");
	assert_int_equal(json_len(json_arr(tree, "files")), 2);
	rig_free(&rig);
}

/* Names with blanks, quotes, newlines and bytes that are no UTF-8; also in the repository's own
 * path. */
static void odd_names_work(void **state)
{
	struct rig rig;

	rig_make(&rig,
		 "mkdir 'a:b \"c' && git init -q 'a:b \"c/re po' && ln -s 'a:b \"c/re po' repo");
	free(rig.repo);
	rig.repo = mem_printf("%s/a:b \"c/re po", rig.dir);
	free(rig_sh(&rig, "",
		    "cd repo; echo 1 > 'sp ace'; printf x > \"$(printf 'new\\nline')\"; "
		    "printf y > \"$(printf 'latin\\351')\"; git add -A; git commit -qm odd"));
	rig_start(&rig, rig.repo);
	whole_life(&rig);
	json_object_put(rig_create(&rig, "r2", "a1"));
	AUTO_FREE char *where = inside(&rig, "r2", "a1");
	free(rig_sh(&rig, where,
		    "echo 2 >> 'sp ace'; echo 2 >> \"$(printf 'new\\nline')\"; "
		    "echo 2 >> \"$(printf 'latin\\351')\"; echo 2 > \"$(printf 'more\\n\\377')\""));
	AUTO_JSON struct json_object *status =
		rig_ok(&rig, "status", rig_entry(&rig, "r2", "a1", NULL));
	assert_int_equal(json_len(json_arr(status, "files")), 4);
	json_object_put(rig_ok(&rig, "commit_rest", rig_entry(&rig, "r2", "a1", NULL)));
	AUTO_FREE char *count = rig_sh(
		&rig, "repo", "git diff --name-only -z HEAD baton/r2/a1 | tr -cd '\\0' | wc -c");
	assert_string_equal(count, "4");
	rig_free(&rig);
}

static void odd_repositories_work_or_say_why(void **state)
{
	struct rig rig;
	struct err err = ERR_INIT;

	/* Bare: works from a commit, has no uncommitted state. */
	rig_make(&rig, "git init -q work && cd work && echo b > b && git add b && git commit -qm b "
		       "&& cd .. && "
		       "git clone -q --bare work repo");
	rig_start(&rig, rig.repo);
	AUTO_JSON struct json_object *bare = rig_ok(&rig, "discover", body_of("path", rig.repo));
	assert_true(json_flag(bare, "bare", false));
	assert_null(json_str(bare, "toplevel", NULL));
	assert_null(rig_call(&rig, "snapshot", NULL, &err));
	assert_int_equal(err.code, ERR_UNSUPPORTED);
	whole_life(&rig);
	rig_free(&rig);
	/* No commits yet. */
	rig_make(&rig, "git init -q repo");
	rig_start(&rig, rig.repo);
	AUTO_JSON struct json_object *unborn = rig_ok(&rig, "discover", body_of("path", rig.repo));
	assert_null(json_str(unborn, "head", NULL));
	assert_string_equal(json_str(unborn, "head_ref", ""), "refs/heads/main");
	assert_null(rig_call(&rig, "resolve", body_of("rev", "HEAD"), &err));
	assert_non_null(strstr(err.message, "no commits yet"));
	/* ... but uncommitted work can be the base. */
	free(rig_sh(&rig, "repo", "echo 1 > f"));
	AUTO_JSON struct json_object *shot = rig_ok(&rig, "snapshot", NULL);
	json_object_put(
		rig_ok(&rig, "create", rig_entry(&rig, "r1", "a1", json_str(shot, "commit", ""))));
	rig_free(&rig);
	/* An extension that git does not know. */
	rig_make(&rig, "git init -q repo && git -C repo config core.repositoryformatversion 1 && "
		       "git -C repo config extensions.refstorage reftable");
	rig_start(&rig, NULL);
	assert_null(rig_call(&rig, "discover", body_of("path", rig.repo), &err));
	assert_int_equal(err.code, ERR_UNSUPPORTED);
	assert_non_null(strstr(err.message, "refstorage"));
	rig_free(&rig);
}

/* Detached HEAD, split index, fsmonitor of the user's: nothing of it is written or started. */
static void odd_checkouts_work(void **state)
{
	struct rig rig;

	rig_make(&rig, "git init -q repo");
	free(rig_sh(&rig, "", first));
	free(rig_sh(&rig, "repo",
		    "git update-index --split-index; git checkout -q --detach; "
		    "git config core.fsmonitor true; git config core.untrackedCache true"));
	rig_start(&rig, rig.repo);
	AUTO_JSON struct json_object *found = rig_ok(&rig, "discover", body_of("path", rig.repo));
	assert_null(json_str(found, "head_ref", NULL));
	assert_int_equal(json_i64(found, "tracked", 0), 2);
	AUTO_FREE char *before = rig_sh(&rig, "repo", "sha1sum .git/index; ls .git/shared*");
	json_object_put(rig_ok(&rig, "snapshot", NULL));
	AUTO_FREE char *after = rig_sh(&rig, "repo",
				       "sha1sum .git/index; ls .git/shared*; "
				       "test ! -e .git/fsmonitor--daemon.ipc");
	assert_string_equal(before, after);
	whole_life(&rig);
	rig_free(&rig);
}

static void sparse_checkouts_stay_sparse(void **state)
{
	struct rig rig;

	rig_make(&rig, "git init -q repo");
	free(rig_sh(&rig, "", first));
	free(rig_sh(&rig, "repo",
		    "mkdir big; echo b > big/b; git add -A; git commit -qm big; "
		    "git sparse-checkout set src 2>/dev/null; test ! -e big"));
	rig_start(&rig, rig.repo);
	AUTO_JSON struct json_object *found = rig_ok(&rig, "discover", body_of("path", rig.repo));
	assert_true(json_flag(found, "sparse", false));
	assert_false(json_flag(found, "dirty", true));
	AUTO_JSON struct json_object *made = rig_create(&rig, "r1", "a1");
	assert_non_null(
		strstr(json_object_get_string(json_at(json_arr(made, "notes"), 0)), "sparse"));
	AUTO_FREE char *where = inside(&rig, "r1", "a1");
	free(rig_sh(&rig, where,
		    "test ! -e big; test -e src/a.c; test -z \"$(git status --porcelain)\"; echo w "
		    "> src/w"));
	json_object_put(rig_ok(&rig, "commit_rest", rig_entry(&rig, "r1", "a1", NULL)));
	json_object_put(rig_ok(&rig, "checkpoint", rig_entry(&rig, "r1", "a1", NULL)));
	AUTO_FREE char *seen = rig_sh(&rig, "repo",
				      "git diff --name-only HEAD baton/r1/a1; "
				      "git diff --name-only HEAD refs/baton/r1/a1/ckpt");
	assert_string_equal(seen, "src/w\nsrc/w");
	rig_free(&rig);
}

/* LFS and the like: run on the user's commits, never on what an agent wrote. */
static void filters_run_for_the_user_only(void **state)
{
	struct rig rig;

	rig_make(&rig, "git init -q repo");
	free(rig_sh(&rig, "", first));
	free(rig_sh(
		&rig, "repo",
		"git config filter.up.smudge 'echo x >> ../../../../../../smudged; tr a-z A-Z'; "
		"git config filter.up.clean 'echo x >> ../../../../../../cleaned; tr A-Z a-z'; "
		"echo '*.up filter=up' > .gitattributes; echo abc > f.up; git add -A; git commit "
		"-qm up"));
	rig_start(&rig, rig.repo);
	json_object_put(rig_create(&rig, "r1", "a1"));
	AUTO_FREE char *where = inside(&rig, "r1", "a1");
	AUTO_FREE char *smudged =
		rig_sh(&rig, where,
		       "cat f.up; cat ../../../../../../smudged; "
		       "rm -f ../../../../../../smudged ../../../../../../cleaned");
	assert_string_equal(smudged, "ABC\nx");
	free(rig_sh(&rig, where, "echo MORE >> f.up; echo plain > p"));
	json_object_put(rig_ok(&rig, "checkpoint", rig_entry(&rig, "r1", "a1", NULL)));
	AUTO_JSON struct json_object *rest =
		rig_ok(&rig, "commit_rest", rig_entry(&rig, "r1", "a1", NULL));
	assert_non_null(
		strstr(json_object_get_string(json_at(json_arr(rest, "notes"), 0)), "f.up"));
	AUTO_FREE char *seen =
		rig_sh(&rig, "repo",
		       "git show baton/r1/a1:f.up; git show refs/baton/r1/a1/ckpt:f.up; "
		       "git show baton/r1/a1:p; test ! -e ../cleaned; test ! -e ../smudged");
	assert_string_equal(seen, "abc\nABC\nMORE\nplain");
	/* An agent's commit as the base: no filter. */
	AUTO_FREE char *base = rig_sh(&rig, "repo", "git rev-parse baton/r1/a1");
	AUTO_JSON struct json_object *next =
		rig_ok(&rig, "create", rig_entry(&rig, "r1", "a2", base));
	assert_non_null(
		strstr(json_object_get_string(json_at(json_arr(next, "notes"), 0)), "not run"));
	free(rig_sh(&rig, "", "test ! -e smudged"));
	rig_free(&rig);
}

static void a_branch_in_the_way_is_named(void **state)
{
	static const char *const clashes[] = {
		"git branch baton", "git branch baton; git pack-refs --all", "git branch baton/r1",
		"git branch baton/r1; git pack-refs --all"};
	struct rig rig;
	struct err err = ERR_INIT;

	rig_make(&rig, "git init -q repo");
	free(rig_sh(&rig, "", first));
	rig_start(&rig, rig.repo);
	for (size_t i = 0; i < ARRAY_SIZE(clashes); i++) {
		struct json_object *body = body_of("prefix", "baton");

		json_set_str(body, "run", "r1");
		json_object_put(rig_ok(&rig, "check_prefix", json_object_get(body)));
		free(rig_sh(&rig, "repo", clashes[i]));
		assert_null(rig_call(&rig, "check_prefix", body, &err));
		assert_int_equal(err.code, ERR_EXISTS);
		assert_non_null(strstr(err.message, "refs/heads/baton"));
		assert_non_null(strstr(err.message, "--branch-prefix"));
		/* Even without the check nothing half-made stays. */
		assert_null(rig_call(&rig, "create", rig_entry(&rig, "r1", "a1", NULL), &err));
		AUTO_FREE char *left =
			rig_sh(&rig, "repo",
			       "git worktree list | wc -l; git for-each-ref refs/baton | wc -l; "
			       "ls .git/baton/runs/r1/agents/a1 2>/dev/null | wc -l; "
			       "git branch -q -D $(git branch --list 'baton*')");
		assert_string_equal(left, "1\n0\n0");
	}
	rig_free(&rig);
}

/* Files as git add would store them for the agent's branch, and byte by byte in the checkpoint. */
static void line_ends_follow_the_attributes(void **state)
{
	struct rig rig;

	rig_make(&rig, "git init -q repo");
	free(rig_sh(&rig, "", first));
	free(rig_sh(&rig, "repo",
		    "echo '*.txt text eol=crlf' > .gitattributes; printf 'a\\r\\nb\\r\\n' > t.txt; "
		    "git add -A; git commit -qm t"));
	rig_start(&rig, rig.repo);
	json_object_put(rig_create(&rig, "r1", "a1"));
	AUTO_FREE char *where = inside(&rig, "r1", "a1");
	AUTO_JSON struct json_object *clean =
		rig_ok(&rig, "status", rig_entry(&rig, "r1", "a1", NULL));
	assert_false(json_flag(clean, "uncommitted", true));
	free(rig_sh(&rig, where, "printf 'c\\r\\n' >> t.txt"));
	json_object_put(rig_ok(&rig, "checkpoint", rig_entry(&rig, "r1", "a1", NULL)));
	json_object_put(rig_ok(&rig, "commit_rest", rig_entry(&rig, "r1", "a1", NULL)));
	AUTO_FREE char *seen =
		rig_sh(&rig, "repo",
		       "git show baton/r1/a1:t.txt | od -An -c | tr -d ' \\n'; "
		       "git show refs/baton/r1/a1/ckpt:t.txt | od -An -c | tr -d ' \\n'");
	assert_string_equal(seen, "a\\nb\\nc\\na\\r\\nb\\r\\nc\\r\\n");
	rig_free(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_snapshot_leaves_the_user_alone),
		cmocka_unit_test(ranges_give_files_with_patches),
		cmocka_unit_test(user_gc_and_pack_refs_during_the_run),
		cmocka_unit_test(sha256_repositories_work),
		cmocka_unit_test(odd_names_work),
		cmocka_unit_test(odd_repositories_work_or_say_why),
		cmocka_unit_test(odd_checkouts_work),
		cmocka_unit_test(sparse_checkouts_stay_sparse),
		cmocka_unit_test(filters_run_for_the_user_only),
		cmocka_unit_test(a_branch_in_the_way_is_named),
		cmocka_unit_test(line_ends_follow_the_attributes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
