/*
 * adopt.c - an agent's worktree becomes an ordinary linked worktree of the user's.
 *
 * Its .git file is pointed at the entry, which gets an index and a symbolic HEAD and loses lock and
 * mark (tried, facts L). From then on the user's git works in it with the user's configuration, as
 * in any branch that he checks out. The branch's commits are in the user's repository from the
 * import; what else the private repository names becomes a last checkpoint, since that repository
 * goes with the run's records.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "base/file.h"
#include "base/memory.h"
#include "worktrees/checkout.h"
#include "worktrees/disk.h"
#include "worktrees/ops.h"
#include "worktrees/remove.h"
#include "worktrees/scratch.h"
#include "worktrees/take.h"

static int write_in(const char *dir, const char *name, const char *text, struct err *err)
{
	AUTO_FREE char *path = file_join(dir, name);

	return file_write_atomic(AT_FDCWD, path, text, strlen(text), 0600, err);
}

/* The index of the branch's tip. What it knows of the files on disk is left to the user's first git
 * status: a refresh here would have to look at the agent's files with his filters. */
static int write_index(const struct work *work, const char *tip, struct err *err)
{
	AUTO_FREE char *path = file_join(work->entry_dir, "index");
	struct git_cmd cmd = {.repo = work->repo, .scope = GIT_PLAIN, .index = path};

	return git_run(&cmd, GIT_ARGS("read-tree", tip), NULL, err);
}

static int turn_over(const struct work *work, const char *path, const char *tip, struct err *err)
{
	AUTO_FREE char *lock = file_join(work->entry_dir, "locked");
	AUTO_FREE char *mark = file_join(work->entry_dir, "baton");
	AUTO_FREE char *head = mem_printf("ref: %s\n", work->head_ref);
	AUTO_FREE char *gitdir = mem_printf("%s/.git\n", path);
	AUTO_FREE char *git_file = mem_printf("gitdir: %s\n", work->entry_dir);

	if (write_index(work, tip, err) < 0)
		return -1;
	if (strcmp(path, work->worktree) != 0 && rename(work->worktree, path) < 0)
		return errno == EXDEV ? err_set(err, ERR_UNSUPPORTED,
						"'%s' is on another filesystem; adopt it in place, "
						"then use git worktree move",
						path)
				      : err_sys(err, "cannot move the worktree to '%s'", path);
	if (write_in(work->entry_dir, "gitdir", gitdir, err) < 0 ||
	    write_in(work->entry_dir, "HEAD", head, err) < 0 ||
	    hostile_write(path, ".git", git_file, strlen(git_file), err) < 0)
		return -1;
	/* The mark goes last: until then a repeated adopt can finish what a kill interrupted. */
	unlink(lock);
	if (unlink(mark) < 0)
		return err_sys(err, "cannot take the mark off '%s'", work->entry_dir);
	return 0;
}

int op_adopt(const struct repo *repo, struct json_object *body, struct json_object *answer,
	     struct err *err)
{
	AUTO_WORK struct work work = WORK_INIT;
	AUTO_SCRATCH struct scratch scratch = SCRATCH_INIT;
	const char *path = json_str(body, "path", NULL);
	AUTO_FREE char *kept = NULL;
	struct take_result taken;

	if (work_init(&work, repo, body, err) < 0 || entry_need_ready(&work, err) < 0)
		return -1;
	if (!entry_owns_folder(&work))
		return err_set(err, ERR_CHANGED, "'%s' is not the folder that baton made",
			       work.worktree);
	const char *doing = hostile_in_progress(work.git_dir);
	if (doing)
		return err_set(err, ERR_BUSY, "a %s is in progress in '%s'; end it first", doing,
			       work.worktree);
	if (path && path[0] != '/')
		return err_set(err, ERR_INVALID, "'%s' is no absolute path", path);
	if (path && file_exists(path))
		return err_set(err, ERR_EXISTS, "'%s' exists already", path);
	if (scratch_open(&scratch, &work, err) < 0 || take_branch(&scratch, &taken, err) < 0)
		return -1;
	work_save_tips(&scratch, &kept);
	if (kept)
		return err_set(err, ERR_BUSY, "%s", kept);
	if (turn_over(&work, path ? path : work.worktree, taken.new_oid, err) < 0)
		return -1;
	json_set_str(answer, "path", path ? path : work.worktree);
	json_set_str(answer, "branch", work.branch);
	return 0;
}
