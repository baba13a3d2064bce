/*
 * mend.c - an agent's git after a power cut.
 *
 * git syncs what it writes (core.fsync=all in the configuration that we give it) and never a folder, so a cut may take
 * commits that were made and leave a HEAD or an index that names them. Then every git of the agent's fails, and so does
 * ours. The worktree's files are another matter: what of them is lost nobody can tell from here.
 *
 * A HEAD that leads nowhere goes back to the branch as the user's repository has it; the files stay, so that what the lost
 * commits held is there to be committed again. An index with holes is made anew from HEAD. Our own indexes are worth
 * nothing but time and are not synced: they go.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "worktrees/disk.h"
#include "worktrees/hostile.h"
#include "worktrees/reopen.h"
#include "worktrees/scratch.h"

#define INDEX_MAX ((size_t)1 << 30)

static void drop_own_indexes(const struct work *work)
{
	DIR *dir = opendir(work->state_dir);
	struct dirent *item;

	while (dir && (item = readdir(dir)) != NULL) {
		/* That of the base is synced with the worktree's making. */
		if (text_ends(item->d_name, ".index") && strcmp(item->d_name, "base.index") != 0)
			unlinkat(dirfd(dir), item->d_name, 0);
	}
	if (dir)
		closedir(dir);
}

/* Is everything there that this commit has and the user's repository may lack? */
static bool is_whole(const struct scratch *scratch, const char *commit)
{
	struct git_cmd cmd = scratch_cmd(scratch, GIT_PLAIN);
	AUTO_FREE char *without = mem_printf("^%s", scratch->work->base);

	cmd.work_tree = cmd.index = NULL;
	return git_run(&cmd, GIT_ARGS("rev-list", "--objects", "--quiet", commit, without), NULL,
		       NULL) == 0;
}

static int set_head(const struct work *work, const char *commit, struct err *err)
{
	AUTO_FREE char *tip = mem_printf("%s\n", commit);
	AUTO_FREE char *head = mem_printf("ref: %s\n", work->head_ref);

	if (hostile_write(work->git_dir, work->head_ref, tip, strlen(tip), err) < 0)
		return -1;
	return hostile_write(work->git_dir, "HEAD", head, strlen(head), err);
}

/* Sets ret_head. */
static int mend_head(const struct scratch *scratch, struct json_object *notes,
		     char ret_head[OID_MAX], struct err *err)
{
	const struct work *work = scratch->work;
	struct work_heads heads = {.head_ref = NULL};
	char good[OID_MAX];
	bool whole = work_heads(work, &heads, NULL) == 0 && heads.head[0] &&
		     is_whole(scratch, heads.head) &&
		     (!heads.branch[0] || strcmp(heads.branch, heads.head) == 0 ||
		      is_whole(scratch, heads.branch));

	free(heads.head_ref);
	if (whole) {
		memcpy(ret_head, heads.head, OID_MAX);
		return 0;
	}
	if (repo_ref(work->repo, work->head_ref, good, NULL) < 0 && entry_head(work, good, err) < 0)
		return -1;
	if (set_head(work, good, err) < 0)
		return err_prefix(err, "HEAD of the agent's repository leads nowhere");
	reopen_note(notes,
		    "commits that were not yet on disk are lost: HEAD is back at %.12s; the files "
		    "are as they were "
		    "found, commit them again",
		    good);
	memcpy(ret_head, good, OID_MAX);
	return 0;
}

/* "MODE OID STAGE\tPATH", each ended by NUL. False: an entry that no git would write. */
static bool list_objects(const struct buf *listed, size_t hex, struct buf *out)
{
	for (const char *p = buf_str(listed), *end = p + listed->len; p < end; p += strlen(p) + 1) {
		const char *oid = strchr(p, ' ');
		if (!oid || strlen(++oid) < hex || strspn(oid, "0") >= hex)
			return false;
		if (!text_starts(p, "160000"))
			buf_addf(out, "%.*s\n", (int)hex, oid);
	}
	return true;
}

/* Can it be read, and are the contents that it names there? */
static bool index_is_whole(const struct scratch *scratch)
{
	struct git_cmd cmd = scratch_cmd(scratch, GIT_PLAIN);
	AUTO_BUF struct buf bytes = BUF_INIT;
	AUTO_BUF struct buf listed = BUF_INIT;
	AUTO_BUF struct buf oids = BUF_INIT;
	AUTO_BUF struct buf types = BUF_INIT;

	cmd.work_tree = NULL; /* it may be gone, and is made again from what is mended here */
	unlink(scratch->index);
	if (hostile_read(scratch->work->git_dir, "index", INDEX_MAX, &bytes, NULL) < 0 ||
	    disk_put(scratch->index, bytes.data, bytes.len, false, NULL) < 0 ||
	    git_run(&cmd, GIT_ARGS("ls-files", "-s", "-z"), &listed, NULL) < 0 ||
	    !list_objects(&listed, scratch->work->repo->hex, &oids))
		return false;
	cmd.index = NULL;
	cmd.in = &oids;
	return git_run(&cmd, GIT_ARGS("cat-file", "--batch-check", "--buffer"), &types, NULL) ==
		       0 &&
	       !strstr(buf_str(&types), " missing\n");
}

static int mend_index(const struct scratch *scratch, const char *head, struct json_object *notes,
		      struct err *err)
{
	struct git_cmd cmd = scratch_cmd(scratch, GIT_PLAIN);
	AUTO_BUF struct buf bytes = BUF_INIT;

	cmd.work_tree = NULL;
	bool whole = index_is_whole(scratch);
	unlink(scratch->index);
	if (whole)
		return 0;
	if (git_run(&cmd, GIT_ARGS("read-tree", head), NULL, err) < 0 ||
	    file_read(AT_FDCWD, scratch->index, INDEX_MAX, &bytes, err) < 0 ||
	    hostile_write(scratch->work->git_dir, "index", bytes.data, bytes.len, err) < 0)
		return err_prefix(err, "the agent's index is damaged");
	unlink(scratch->index);
	reopen_note(notes,
		    "git's index was damaged and was made anew from HEAD: what was staged is not");
	return 0;
}

int reopen_mend_git(struct work *work, struct json_object *notes, struct err *err)
{
	AUTO_SCRATCH struct scratch scratch = SCRATCH_INIT;
	char head[OID_MAX];

	drop_own_indexes(work);
	if (scratch_open(&scratch, work, err) < 0 || mend_head(&scratch, notes, head, err) < 0)
		return -1;
	return mend_index(&scratch, head, notes, err);
}
