/*
 * private.c - the repository behind an agent's worktree, as it is before the agent starts.
 *
 * Tried layout (facts L): own objects with the user's as an alternate, one packed-refs file with
 * the user's refs, HEAD on the agent's branch, a configuration of ours, no hooks folder, no
 * remotes. Written file by file: `git init` and `git clone --reference` cost 5 to 20 ms and would
 * run templates.
 */
#include <stdio.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/memory.h"
#include "worktrees/disk.h"
#include "worktrees/hostile.h"
#include "worktrees/repo_config.h"
#include "worktrees/work.h"

static int put(const struct work *work, const char *name, const struct buf *text, struct err *err)
{
	AUTO_FREE char *path = file_join(work->git_dir, name);

	return disk_put(path, buf_str(text), text->len, false, err);
}

static int copy_if_there(const char *from_dir, const struct work *work, const char *name,
			 struct err *err)
{
	AUTO_FREE char *from = file_join(from_dir, name);
	AUTO_FREE char *to = file_join(work->git_dir, name);

	return file_exists(from) ? disk_copy(from, to, err) : 0;
}

static int make_folders(const struct work *work, struct err *err)
{
	static const char *const folders[] = {"objects", "objects/info", "objects/pack",
					      "refs",	 "refs/heads",	 "info"};
	AUTO_FREE char *ref = file_join(work->git_dir, work->head_ref);
	AUTO_FREE char *ref_dir = file_dir(ref);
	AUTO_FREE char *above = file_dir(work->git_dir);

	if (disk_mkdirs(above, err) < 0)
		return -1;
	if (mkdir(work->git_dir, 0700) < 0)
		return err_sys(err, "cannot make '%s'", work->git_dir);
	for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
		AUTO_FREE char *folder = file_join(work->git_dir, folders[i]);

		if (mkdir(folder, 0700) < 0)
			return err_sys(err, "cannot make '%s'", folder);
	}
	return disk_mkdirs(ref_dir, err);
}

static int write_refs(const struct work *work, struct err *err)
{
	AUTO_BUF struct buf text = BUF_INIT;
	const char *slash = strchr(work->branch, '/');
	AUTO_FREE char *prefix = mem_printf(
		"refs/heads/%.*s", slash ? (int)(slash - work->branch) + 1 : 0, work->branch);

	if (!slash) {
		free(prefix);
		prefix = mem_strdup(work->head_ref);
	}
	if (repo_packed_refs(work->repo->refs, work->repo, prefix, &text, err) < 0 ||
	    put(work, "packed-refs", &text, err) < 0)
		return -1;
	buf_clear(&text);
	buf_addf(&text, "%s\n", work->base);
	if (put(work, work->head_ref, &text, err) < 0)
		return -1;
	buf_clear(&text);
	buf_addf(&text, "ref: %s\n", work->head_ref);
	return put(work, "HEAD", &text, err);
}

static void alternates(const struct work *work, struct buf *out)
{
	disk_quote(out, work->repo->objects);
	buf_addc(out, '\n');
}

/* A box may have written there since, so no link is followed. */
int private_point(const struct work *work, struct err *err)
{
	AUTO_BUF struct buf text = BUF_INIT;

	alternates(work, &text);
	return hostile_write(work->git_dir, "objects/info/alternates", text.data, text.len, err);
}

int private_make(const struct work *work, struct err *err)
{
	const struct repo *repo = work->repo;
	AUTO_BUF struct buf text = BUF_INIT;

	if (make_folders(work, err) < 0)
		return -1;
	alternates(work, &text);
	if (put(work, "objects/info/alternates", &text, err) < 0)
		return -1;
	buf_clear(&text);
	repo_config_write(repo, true, &text);
	if (put(work, "config", &text, err) < 0 || write_refs(work, err) < 0)
		return -1;
	if (copy_if_there(repo->common_dir, work, "shallow", err) < 0 ||
	    copy_if_there(repo->common_dir, work, "info/exclude", err) < 0 ||
	    copy_if_there(repo->common_dir, work, "info/attributes", err) < 0)
		return -1;
	return repo->sparse ? copy_if_there(repo->git_dir, work, "info/sparse-checkout", err) : 0;
}
