/*
 * test_box_git.c - all of git works in a worktree with a private repository behind it, and nothing
 * that a box can do reaches the user's repository (facts L; traps 128, 134).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "box_rig.h"

/* The layout of design.md, by hand: the box must not depend on who made it. */
static const char layout[] =
	"exec 2>&1\n"
	"export GIT_CONFIG_GLOBAL=/dev/null\n"
	"git init -q -b main $REPO && cd $REPO\n"
	"git config user.name U; git config user.email u@example.org; git config gc.auto 0\n"
	"echo one >file; git add file; git commit -qm one\n"
	"echo two >>file; git commit -qam two; git tag v1; git pack-refs --all\n"
	"E=.git/worktrees/a1; mkdir -p $E\n"
	"echo ../.. >$E/commondir; echo $WORK/.git >$E/gitdir; git rev-parse HEAD >$E/HEAD\n"
	"echo 'run r' >$E/locked\n"
	"P=$WORK/../private; mkdir -p $P/objects/info $P/objects/pack $P/refs/heads/baton $P/info\n"
	"echo $REPO/.git/objects >$P/objects/info/alternates\n"
	"cp .git/packed-refs $P/; git rev-parse HEAD >$P/refs/heads/baton/a1\n"
	"echo 'ref: refs/heads/baton/a1' >$P/HEAD\n"
	"printf '[core]\\n\\trepositoryformatversion = 0\\n\\tbare = false\\n"
	"[user]\\n\\tname = A\\n\\temail = a@example.org\\n' >$P/config\n"
	"rm $WORK/mine; echo \"gitdir: $P\" >$WORK/.git; cd $WORK; git reset -q --hard\n";

static const char work[] =
	"exec 2>&1; set -ex; export GIT_CONFIG_GLOBAL=/dev/null GIT_EDITOR=true\n"
	"git status; git log --oneline main; git show v1 >/dev/null\n"
	"echo three >>file; git add file; git commit -qm three\n"
	"echo stashed >>file; git stash; git stash pop; git commit -qam stashed\n"
	"git branch other HEAD~1; git checkout -q other; echo x >new; git add new; git commit -qm "
	"x\n"
	"git rebase baton/a1; git checkout -q baton/a1; git merge -q other; git tag t1\n"
	"git checkout -q -b topic; echo y >y; git add y; git commit -qm y\n"
	"git commit -q --amend -m 'y again'; git rebase -q --onto other baton/a1 topic\n"
	"git checkout -q baton/a1; git branch -D topic; git config a.b c; git gc -q --prune=now\n"
	"git reflog >/dev/null; git fsck --no-dangling; git blame file >/dev/null\n"
	"git archive HEAD | tar t >/dev/null; git worktree list\n"
	"git init -q -b main $TMPDIR/there; cd $TMPDIR/there; git config user.name B\n"
	"git config user.email b@example.org; echo a >a; git add a; git commit -qm a\n"
	"git clone -q $TMPDIR/there $TMPDIR/copy; git clone -q --no-local $TMPDIR/there "
	"$TMPDIR/copy2\n"
	"cd $TMPDIR/copy2; git pull -q; git log --oneline | grep a\n"
	"git clone -q $WORK $TMPDIR/copy3; cd $TMPDIR/copy3; git log --oneline | grep two\n"
	"git submodule --quiet foreach true; echo ALL DONE\n";

static const char user_side[] =
	"set -e; export GIT_CONFIG_GLOBAL=/dev/null; cd $REPO\n"
	"git fsck --strict; git log --all --oneline | grep two\n"
	"test \"$(git rev-parse main)\" = \"$(cat .git/worktrees/a1/HEAD)\"\n"
	"git diff --exit-code; git diff --cached --exit-code\n";

struct paths {
	char *private, *objects, *repo;
	const char *options[7];
};

static void prepare(struct box_rig *rig, struct paths *p)
{
	box_prepare(rig, layout);
	*p = (struct paths){.private = file_join(rig->root, "private"),
			    .repo = file_join(rig->root, "repo"),
			    .objects = file_join(rig->root, "repo/.git/objects")};
	p->options[0] = "--write";
	p->options[1] = p->private;
	p->options[2] = "--read";
	p->options[3] = p->objects;
}

static void release(struct paths *p)
{
	free(p->private);
	free(p->repo);
	free(p->objects);
}

static void test_all_of_git_works(void **state)
{
	struct box_rig *rig = *state;
	AUTO_BUF struct buf out = BUF_INIT;
	struct paths paths;

	prepare(rig, &paths);
	AUTO_FREE char *was = box_fingerprint(rig, paths.repo);
	int code = box_run(rig, paths.options, work, &out);
	if (code != 0 || !box_has_line(&out, "ALL DONE"))
		fail_msg("exit %d: %s", code, buf_str(&out));
	AUTO_FREE char *is = box_fingerprint(rig, paths.repo);
	assert_string_equal(was, is);
	box_prepare(rig, user_side);
	release(&paths);
}

static void test_rm_of_all_in_reach_leaves_the_users_repository_whole(void **state)
{
	struct box_rig *rig = *state;
	AUTO_BUF struct buf out = BUF_INIT;
	struct paths paths;

	prepare(rig, &paths);
	AUTO_FREE char *was = box_fingerprint(rig, paths.repo);
	box_run(rig, paths.options,
		"rm -rf $REPO $REPO/.git/objects/?? $WORK/.git $WORK/* $WORK/../private/* "
		"$TMPDIR/* $HOME $SHOWN $HIDDEN; chmod -R 777 $WORK; echo x >$REPO/.git/config; "
		"cd $REPO && git update-ref refs/heads/main HEAD~1; git -C $REPO commit "
		"--allow-empty "
		"-m x; git -C $REPO config core.fsmonitor /bin/false; ls $WORK/../private",
		&out);
	AUTO_FREE char *is = box_fingerprint(rig, paths.repo);
	assert_string_equal(was, is);
	box_prepare(rig, user_side);
	box_prepare(rig, "test -f $HOME/.netrc && test -f $SHOWN/file && test -f $HIDDEN/file");
	box_prepare(rig, "test -z \"$(ls $WORK/../private)\""); /* what it may remove is gone */
	release(&paths);
}

/* Git gives up on a configuration that is there and cannot be read: baton-box says there is none.
 */
static void test_a_hidden_user_configuration_does_not_stop_git(void **state)
{
	struct box_rig *rig = *state;
	AUTO_BUF struct buf out = BUF_INIT;
	struct paths paths;

	prepare(rig, &paths);
	box_prepare(rig, "printf '[user]\\n\\tname = Secret\\n' >$HOME/.gitconfig");
	int code = box_run(rig, paths.options,
			   "echo z >z && git add z && git commit -qm z && git log -1 --format=%an",
			   &out);
	assert_null(strstr(buf_str(&out), "Secret"));
	if (code != 0 || !box_has_line(&out, "A"))
		fail_msg("exit %d: %s", code, buf_str(&out));
	release(&paths);
}

int main(void)
{
#define BOX_TEST(f) cmocka_unit_test_setup_teardown(f, box_rig_setup, box_rig_teardown)
	const struct CMUnitTest tests[] = {
		BOX_TEST(test_all_of_git_works),
		BOX_TEST(test_rm_of_all_in_reach_leaves_the_users_repository_whole),
		BOX_TEST(test_a_hidden_user_configuration_does_not_stop_git),
	};

	return box_suite_status() ?: cmocka_run_group_tests(tests, NULL, NULL);
}
