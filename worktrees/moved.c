/*
 * moved.c - the user's repository is another folder than when a worktree was made.
 *
 * Somebody renamed it, or put it on another disk, with all that baton keeps in it. The agent's worktree stands where
 * it stood, and three files name the old place: its `.git`, the private repository's list of alternates, and our
 * mark. They are written anew, the mark last, so that a kill on the way only means that it is done again.
 *
 * A copy is not a move: where the old repository still stands, the worktree is that one's, and writing for two would
 * be the end of both.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "worktrees/hostile.h"
#include "worktrees/work.h"

static bool same_folder(const char *a, const char *b)
{
	struct stat x, y;

	return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* <common>/baton/runs/RUN/agents/AGENT/git: the place inside a repository does not change. Caller frees. */
static char *common_of(const struct work *work, const char *git_dir)
{
	AUTO_FREE char *tail = mem_printf("/baton/runs/%s/agents/%s/git", work->run, work->agent);

	return text_ends(git_dir, tail) ? mem_strndup(git_dir, strlen(git_dir) - strlen(tail))
					: NULL;
}

static int point_here(const struct work *work, struct json_object *mark, struct err *err)
{
	AUTO_BUF struct buf text = BUF_INIT;
	AUTO_FREE char *path = file_join(work->entry_dir, "baton");

	if (private_point(work, err) < 0)
		return -1;
	if (entry_owns_folder(work) &&
	    hostile_write(work->worktree, ".git", work->git_file, strlen(work->git_file), err) < 0)
		return -1;
	json_set_str(mark, "git_dir", work->git_dir);
	json_write_pretty(&text, mark);
	return file_write_atomic(AT_FDCWD, path, text.data, text.len, 0600, err);
}

int entry_follow(const struct work *work, struct json_object *mark, struct err *err)
{
	const char *before = json_str(mark, "git_dir", "");
	AUTO_FREE char *old = common_of(work, before);
	AUTO_FREE char *now = common_of(work, work->git_dir);

	if (strcmp(before, work->git_dir) == 0 || same_folder(before, work->git_dir))
		return 0;
	if (!old || !now || !same_folder(now, work->repo->common_dir))
		return err_set(err, ERR_DENIED, "'%s' is marked as another worktree's",
			       work->entry_dir);
	if (file_exists(before))
		return err_set(err, ERR_DENIED,
			       "this repository is a copy of '%s', to which the worktree '%s' "
			       "belongs: go on "
			       "there, or remove '%s' and '%s/baton/runs/%s' here",
			       old, work->worktree, work->entry_dir, now, work->run);
	return point_here(work, mark, err);
}
