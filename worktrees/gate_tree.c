/*
 * gate_tree.c - a clean checkout of a commit, for a command that judges it.
 *
 * As an agent's worktree it has a private repository behind it, so that a build which asks `git describe` gets its answer
 * and no box meets the user's repository. Unlike one it is no place of work: no branch, no entry among the user's
 * worktrees, nothing in it is ever taken home. The register of views says that the folder is ours to remove.
 *
 * The commit may hold what agents wrote, so no filter runs.
 */
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "worktrees/checkout.h"
#include "worktrees/disk.h"
#include "worktrees/ops.h"
#include "worktrees/views.h"
#include "worktrees/work.h"

/* The private repository lies among a run's records, and is removed by this path alone. */
static int open_work(struct work *work, const struct repo *repo, struct json_object *body,
		     struct err *err)
{
	AUTO_FREE char *runs = mem_printf("%s/runs/", repo->baton_dir);

	if (work_init(work, repo, body, err) < 0)
		return -1;
	if (!text_starts(work->git_dir, runs) || strstr(work->git_dir, "/../"))
		return err_set(err, ERR_DENIED, "'%s' is not below '%s'", work->git_dir, runs);
	return 0;
}

static int fill(const struct work *work, struct json_object *answer, struct err *err)
{
	AUTO_FREE char *index = file_join(work->git_dir, "index");
	AUTO_FREE char *git_file = file_join(work->worktree, ".git");

	if (private_make(work, err) < 0 ||
	    checkout_by_program(work->repo, work->base, index, work->worktree, false, err) < 0)
		return -1;
	json_set_i64(answer, "files", checkout_count(index));
	return disk_put(git_file, work->git_file, strlen(work->git_file), false, err);
}

int op_checkout_gate(const struct repo *repo, struct json_object *body, struct json_object *answer,
		     struct err *err)
{
	AUTO_WORK struct work work = WORK_INIT;

	if (open_work(&work, repo, body, err) < 0)
		return -1;
	AUTO_FREE char *above = file_dir(work.worktree);
	view_drop_old(repo, work.worktree);
	if (disk_remove(work.git_dir, err) < 0 || disk_mkdirs(above, err) < 0)
		return -1;
	if (mkdir(work.worktree, 0700) < 0)
		return err_sys(err, "cannot make '%s'", work.worktree);
	if (view_enter(repo, work.worktree, err) == 0 && fill(&work, answer, err) == 0)
		return 0;
	view_drop_old(repo, work.worktree);
	disk_remove(work.git_dir, NULL);
	return -1;
}

int op_remove_gate(const struct repo *repo, struct json_object *body, struct json_object *answer,
		   struct err *err)
{
	AUTO_WORK struct work work = WORK_INIT;

	if (open_work(&work, repo, body, err) < 0 || view_remove(repo, work.worktree, err) < 0)
		return -1;
	return disk_remove(work.git_dir, err);
}
