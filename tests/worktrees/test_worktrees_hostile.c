/*
 * test_worktrees_hostile.c - what a box may plant in a worktree and its private repository, and
 * what must not come of it (I12, X10, facts L).
 *
 * Each plant would leave a file "$dir/pwned" if a program of its ran, or bring something into the
 * user's repository that is not the agent's work.
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

static char *begin(struct rig *rig)
{
	rig_make(rig, "git init -q repo");
	free(rig_sh(rig, "",
		    "cd repo; mkdir src; echo one > src/a.c; echo '*.o' > .gitignore; "
		    "git add -A; git commit -qm first; echo dirty > user-file"));
	rig_start(rig, rig->repo);
	json_object_put(rig_create(rig, "r1", "a1"));
	AUTO_FREE char *path = rig_worktree(rig, "r1", "a1");
	return mem_strdup(path + strlen(rig->dir) + 1);
}

static struct json_object *entry(struct rig *rig)
{
	return rig_entry(rig, "r1", "a1", NULL);
}

/* Everything of the user's that must stay byte for byte: checkout, index, config, hooks, HEAD, and
 * all refs but the run's own. */
static char *fingerprint(struct rig *rig)
{
	return rig_sh(rig, "repo",
		      "find . -path ./.git -prune -o -type f -print0 | sort -z | xargs -0 sha1sum; "
		      "sha1sum .git/index .git/config .git/HEAD; find .git/hooks .git/info -type f "
		      "| sort | "
		      "xargs sha1sum; git for-each-ref | grep -v baton/ ; git status --porcelain; "
		      "git stash list");
}

static void run_everything(struct rig *rig)
{
	static const char *const ops[] = {"status",	 "diff",       "checkpoint", "import",
					  "commit_rest", "checkpoint", "status",     "remove"};
	struct err err = ERR_INIT;

	for (size_t i = 0; i < ARRAY_SIZE(ops); i++)
		json_object_put(rig_call(rig, ops[i], entry(rig), &err));
}

static void assert_safe(struct rig *rig, const char *before)
{
	AUTO_FREE char *after = fingerprint(rig);

	assert_int_not_equal(rig_sh_status(rig, "", "test -e pwned"), 0);
	assert_string_equal(before, after);
	free(rig_sh(rig, "repo", "git fsck --strict --no-dangling"));
}

static const char evil[] =
	"E=$(cd ../../../../../..; pwd)/evil.sh; printf '#!/bin/sh\\ntouch %s/pwned\\n"
	"cat\\n' \"$(dirname $E)\" > $E; chmod +x $E; G=$(git rev-parse --absolute-git-dir); ";

/* The plant is live: a git that discovers the repository runs it. */
static void assert_live(struct rig *rig, const char *where, const char *folder)
{
	AUTO_FREE char *path = file_join(where, folder);

	free(rig_sh(rig, path, "git status > /dev/null 2>&1 || :"));
	free(rig_sh(rig, "", "test -e pwned; rm pwned"));
}

static void plant_config(void **state)
{
	struct rig rig;
	AUTO_FREE char *where = begin(&rig);
	AUTO_FREE char *before = fingerprint(&rig);
	AUTO_FREE char *script = mem_printf(
		"%s echo w >> src/a.c; git add -A; git commit -qm w; echo more >> src/a.c; "
		"mkdir $G/hooks; for h in post-checkout reference-transaction pre-commit "
		"post-commit "
		"post-index-change; do cp $E $G/hooks/$h; done; "
		"git config core.fsmonitor $E; git config core.hooksPath $G/hooks; "
		"git config diff.external $E; git config diff.x.textconv $E; git config "
		"filter.x.clean $E; "
		"git config filter.x.smudge $E; git config core.pager $E; git config "
		"core.sshCommand $E; "
		"git config gpg.program $E; git config core.alternateRefsCommand $E; "
		"git config credential.helper $E; git config gc.auto 1; git config alias.status "
		"\"!$E\"; "
		"echo '*.c filter=x diff=x' > .gitattributes; cp .gitattributes $G/info/attributes",
		evil);

	free(rig_sh(&rig, where, script));
	assert_live(&rig, where, "");
	run_everything(&rig);
	assert_safe(&rig, before);
	AUTO_FREE char *seen = rig_sh(&rig, "repo", "git show baton/r1/a1:src/a.c");
	assert_string_equal(seen, "one\nw\nmore");
	rig_free(&rig);
}

/* A rewritten .git file, and a commondir in the private repository (tried: either makes git status
 * run a planted program). */
static void plant_git_file_and_commondir(void **state)
{
	struct rig rig;
	AUTO_FREE char *where = begin(&rig);
	AUTO_FREE char *before = fingerprint(&rig);
	AUTO_FREE char *script = mem_printf(
		"%s echo w >> src/a.c; git commit -qam w; echo loose > loose; git init -q --bare "
		"trap.git; "
		"git -C trap.git config core.fsmonitor $E; git -C trap.git config core.bare false; "
		"echo \"$PWD/trap.git\" > $G/commondir; echo \"gitdir: $PWD/trap.git\" > .git",
		evil);

	free(rig_sh(&rig, where, script));
	assert_live(&rig, where, "");
	run_everything(&rig);
	assert_safe(&rig, before);
	AUTO_FREE char *seen = rig_sh(&rig, "repo", "git show baton/r1/a1:loose");
	assert_string_equal(seen, "loose");
	rig_free(&rig);
}

/* A nested repository with a configuration of its own: its files are stored as a tree (I7), its
 * programs never run. */
static void plant_nested_repository(void **state)
{
	struct rig rig;
	AUTO_FREE char *where = begin(&rig);
	AUTO_FREE char *before = fingerprint(&rig);
	AUTO_FREE char *script =
		mem_printf("%s mkdir -p deep/nest; cd deep/nest; git init -q .; echo n > n; echo "
			   "'*.log' > .gitignore; "
			   "echo l > x.log; git add n; git commit -qm n; git config core.fsmonitor "
			   "$E; mkdir inner; "
			   "cd inner; git init -q .; echo i > i; cd ..; echo later > later",
			   evil);

	free(rig_sh(&rig, where, script));
	assert_live(&rig, where, "deep/nest");
	AUTO_JSON struct json_object *point = rig_ok(&rig, "checkpoint", entry(&rig));
	AUTO_FREE char *list =
		rig_sh(&rig, "repo", "git ls-tree -r --name-only refs/baton/r1/a1/ckpt deep");
	assert_string_equal(
		list, "deep/nest/.gitignore\ndeep/nest/inner/i\ndeep/nest/later\ndeep/nest/n");
	assert_true(json_flag(point, "changed", false));
	run_everything(&rig);
	assert_safe(&rig, before);
	rig_free(&rig);
}

static void assert_import_fails(struct rig *rig, const char *word)
{
	struct err err = ERR_INIT;

	if (rig_call(rig, "import", entry(rig), &err))
		fail_msg("the import succeeded");
	if (!strstr(err.message, word))
		fail_msg("'%s' does not say '%s'", err.message, word);
	AUTO_FREE char *tip = rig_sh(rig, "repo", "git show -s --format=%s baton/r1/a1");
	assert_string_equal(tip, "first");
	AUTO_JSON struct json_object *kept = rig_ok(rig, "remove", entry(rig));
	assert_false(json_flag(kept, "removed", true));
}

/* A corrupt object does not get in, and the worktree stays. */
static void plant_corrupt_object(void **state)
{
	struct rig rig;
	AUTO_FREE char *where = begin(&rig);
	AUTO_FREE char *before = fingerprint(&rig);

	free(rig_sh(
		&rig, where,
		"echo w > w; git add w; git commit -qm w; G=$(git rev-parse --absolute-git-dir); "
		"b=$(git rev-parse HEAD:w); f=$G/objects/$(echo $b | cut -c1-2)/$(echo $b | cut "
		"-c3-); "
		"chmod u+w $f; g=$(echo other | git hash-object -w --stdin); "
		"cp -f $G/objects/$(echo $g | cut -c1-2)/$(echo $g | cut -c3-) $f"));
	assert_import_fails(&rig, "not taken over");
	assert_safe(&rig, before);
	rig_free(&rig);
}

/* Objects that fsck refuses: a tree with an entry .git, and a commit without an author. */
static void plant_objects_that_fsck_refuses(void **state)
{
	struct rig rig;
	AUTO_FREE char *where = begin(&rig);
	AUTO_FREE char *before = fingerprint(&rig);

	free(rig_sh(&rig, where,
		    "b=$(echo '[core] fsmonitor = touch pwned' | git hash-object -w --stdin); "
		    "t=$(printf '100644 .git\\0%b' \"$(echo $b | sed 's/../\\\\x&/g')\" | "
		    "git hash-object -w -t tree --literally --stdin); "
		    "c=$(git commit-tree $t -p HEAD -m evil); git update-ref "
		    "refs/heads/baton/r1/a1 $c"));
	assert_import_fails(&rig, "not taken over");
	assert_safe(&rig, before);
	rig_free(&rig);
}

/* A list of alternates that leads to another agent's objects (or anybody's): they are not the
 * agent's to bring. */
static void plant_alternates(void **state)
{
	struct rig rig;
	AUTO_FREE char *where = begin(&rig);
	AUTO_FREE char *before = fingerprint(&rig);

	free(rig_sh(&rig, where,
		    "G=$(git rev-parse --absolute-git-dir); git init -q ../foreign; cd ../foreign; "
		    "echo secret > s; git add s; git commit -qm secret; c=$(git rev-parse HEAD); "
		    "cd - > "
		    "/dev/null; realpath ../foreign/.git/objects >> $G/objects/info/alternates; "
		    "git update-ref refs/heads/baton/r1/a1 $c"));
	assert_import_fails(&rig, "");
	assert_safe(&rig, before);
	rig_free(&rig);
}

/* Refs, objects and HEAD that are links or FIFOs: refused without blocking. */
static void plant_links_and_fifos(void **state)
{
	struct rig rig;
	AUTO_FREE char *where = begin(&rig);
	AUTO_FREE char *before = fingerprint(&rig);

	free(rig_sh(
		&rig, where,
		"G=$(git rev-parse --absolute-git-dir); echo w > w; git add w; git commit -qm w; "
		"git rev-parse HEAD > ../elsewhere; rm $G/refs/heads/baton/r1/a1; "
		"ln -s $(realpath ../elsewhere) $G/refs/heads/baton/r1/a1"));
	assert_import_fails(&rig, "link");
	free(rig_sh(&rig, where,
		    "G=../../../../../../repo/.git/baton/runs/r1/agents/a1/git; "
		    "rm $G/refs/heads/baton/r1/a1; mkfifo $G/refs/heads/baton/r1/a1"));
	assert_import_fails(&rig, "regular file");
	/* FIFOs among objects and files are passed over. */
	free(rig_sh(&rig, where,
		    "G=../../../../../../repo/.git/baton/runs/r1/agents/a1/git; "
		    "rm $G/refs/heads/baton/r1/a1; cp ../elsewhere $G/refs/heads/baton/r1/a1; "
		    "mkdir -p $G/objects/00; mkfifo "
		    "$G/objects/00/00000000000000000000000000000000000000; "
		    "mkfifo $G/objects/info/commit-graph fifo"));
	json_object_put(rig_ok(&rig, "import", entry(&rig)));
	json_object_put(rig_ok(&rig, "checkpoint", entry(&rig)));
	assert_safe(&rig, before);
	rig_free(&rig);
}

/* A folder of the worktree that became a link to the user's files: nothing outside is read or
 * removed. */
static void plant_links_in_the_worktree(void **state)
{
	struct rig rig;
	AUTO_FREE char *where = begin(&rig);
	AUTO_FREE char *before = fingerprint(&rig);

	free(rig_sh(&rig, where,
		    "rm -r src; ln -s ../../../../../../repo src; ln -s /etc/passwd pw; "
		    "mkdir real; ln -s ../../../../../../../home real/home"));
	json_object_put(rig_ok(&rig, "checkpoint", entry(&rig)));
	AUTO_FREE char *list =
		rig_sh(&rig, "repo", "git ls-tree -r refs/baton/r1/a1/ckpt | cut -c1-6,53-");
	assert_string_equal(list, "100644\t.gitignore\n120000\tpw\n120000\treal/home\n120000\tsrc");
	struct json_object *body = entry(&rig);
	struct json_object *touched = json_object_new_array();
	json_object_array_add(touched, json_object_new_string("src/user-file"));
	json_object_array_add(touched, json_object_new_string("../../../../../../repo/user-file"));
	json_object_array_add(touched, json_object_new_string(".git/config"));
	json_set(body, "touched", touched);
	AUTO_JSON struct json_object *again = rig_ok(&rig, "checkpoint", body);
	assert_false(json_flag(again, "changed", true));
	AUTO_JSON struct json_object *gone = rig_ok(&rig, "remove", entry(&rig));
	assert_true(json_flag(gone, "removed", false));
	assert_safe(&rig, before);
	free(rig_sh(&rig, "", "test -f home/.gitconfig; test -f repo/user-file"));
	rig_free(&rig);
}

/* rm -rf of all that the box can reach leaves the user's repository whole (facts L). */
static void everything_deleted_by_the_agent(void **state)
{
	struct rig rig;
	AUTO_FREE char *where = begin(&rig);
	AUTO_FREE char *before = fingerprint(&rig);

	free(rig_sh(&rig, where, "echo w > w; git add w; git commit -qm w"));
	json_object_put(rig_ok(&rig, "import", entry(&rig)));
	free(rig_sh(&rig, where,
		    "G=$(git rev-parse --absolute-git-dir); rm -rf $G/* ./* .git .gitignore"));
	run_everything(&rig);
	assert_safe(&rig, before);
	AUTO_FREE char *seen = rig_sh(&rig, "repo", "git show -s --format=%s baton/r1/a1");
	assert_string_equal(seen, "w");
	rig_free(&rig);
}

/* A tip that is no commit. */
static void plant_a_tip_that_is_a_tree(void **state)
{
	struct rig rig;
	AUTO_FREE char *where = begin(&rig);
	AUTO_FREE char *before = fingerprint(&rig);

	free(rig_sh(
		&rig, where,
		"G=$(git rev-parse --absolute-git-dir); echo w > w; git add w; git write-tree > "
		"$G/refs/heads/baton/r1/a1"));
	assert_import_fails(&rig, "");
	assert_safe(&rig, before);
	rig_free(&rig);
}

/* History rewritten so that it does not contain what was imported: taken, and the old commits stay.
 */
static void a_rewritten_branch_keeps_the_old_commits(void **state)
{
	struct rig rig;
	AUTO_FREE char *where = begin(&rig);

	AUTO_FREE char *old =
		rig_sh(&rig, where, "echo w > w; git add w; git commit -qm w; git rev-parse HEAD");
	json_object_put(rig_ok(&rig, "import", entry(&rig)));
	free(rig_sh(&rig, where, "git commit -q --amend -m better"));
	AUTO_JSON struct json_object *import = rig_ok(&rig, "import", entry(&rig));
	assert_true(json_flag(import, "rewritten", false));
	AUTO_FREE char *script =
		mem_printf("git gc -q --prune=now; git show -s --format=%%s baton/r1/a1; "
			   "git merge-base --is-ancestor %s refs/baton/r1/a1/ckpt; "
			   "ls .git/objects/pack/*.keep 2>/dev/null | wc -l; git fsck",
			   old);
	AUTO_FREE char *seen = rig_sh(&rig, "repo", script);
	assert_string_equal(seen, "better\n0");
	rig_free(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plant_config),
		cmocka_unit_test(plant_git_file_and_commondir),
		cmocka_unit_test(plant_nested_repository),
		cmocka_unit_test(plant_corrupt_object),
		cmocka_unit_test(plant_objects_that_fsck_refuses),
		cmocka_unit_test(plant_alternates),
		cmocka_unit_test(plant_links_and_fifos),
		cmocka_unit_test(plant_links_in_the_worktree),
		cmocka_unit_test(everything_deleted_by_the_agent),
		cmocka_unit_test(plant_a_tip_that_is_a_tree),
		cmocka_unit_test(a_rewritten_branch_keeps_the_old_commits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
