/*
 * entry.c - <common>/worktrees/baton+RUN+AGENT, what the user's git knows of an agent's worktree.
 *
 * gitdir, commondir, HEAD (a commit id, which keeps it from the user's gc) and `locked` are git's
 * own files; `baton` is our mark, which git does not look at. The folder is filled in
 * <common>/baton/tmp and renamed into place: git never sees half an entry, and since there is no
 * index the user's git neither reads the worktree nor removes it ("git worktree remove" says that
 * it does not point back).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/memory.h"
#include "worktrees/disk.h"
#include "worktrees/work.h"

#define MARK_MAX 65536

char *entry_root(const struct repo *repo)
{
	return file_join(repo->common_dir, "worktrees");
}

static const char *const state_names[] = {
	[ENTRY_CREATING] = "creating",
	[ENTRY_READY] = "ready",
	[ENTRY_REMOVING] = "removing",
};

static struct json_object *mark_new(const struct work *work, enum entry_state state)
{
	struct json_object *mark = json_object_new_object();

	json_set_i64(mark, "version", 1);
	json_set_str(mark, "state", state_names[state]);
	json_set_str(mark, "run", work->run);
	json_set_str(mark, "agent", work->agent);
	json_set_str(mark, "branch", work->branch);
	json_set_str(mark, "base", work->base);
	json_set_str(mark, "worktree", work->worktree);
	json_set_str(mark, "git_dir", work->git_dir);
	return mark;
}

static int put_in(const char *dir, const char *name, const char *text, bool sync, struct err *err)
{
	AUTO_FREE char *path = file_join(dir, name);

	return disk_put(path, text, strlen(text), sync, err);
}

static int fill(const struct work *work, const char *dir, struct err *err)
{
	AUTO_JSON struct json_object *mark = mark_new(work, ENTRY_CREATING);
	AUTO_BUF struct buf text = BUF_INIT;
	AUTO_FREE char *gitdir = mem_printf("%s/.git\n", work->worktree);
	AUTO_FREE char *head = mem_printf("%s\n", work->base);
	AUTO_FREE char *locked = mem_printf("baton run %s, agent %s\n", work->run, work->agent);

	json_write_pretty(&text, mark);
	if (put_in(dir, "locked", locked, false, err) < 0 ||
	    put_in(dir, "baton", buf_str(&text), true, err) < 0 ||
	    put_in(dir, "commondir", "../..\n", false, err) < 0 ||
	    put_in(dir, "gitdir", gitdir, false, err) < 0)
		return -1;
	/* A HEAD without bytes after a power cut would break the user's gc, and without our mark nobody could tell
	 * what the entry is: the two files worth a sync. */
	if (put_in(dir, "HEAD", head, true, err) < 0)
		return -1;
	return file_sync_dir(dir, err);
}

/* The first worktree of a repository makes the folder of entries. */
static int make_root(const struct repo *repo, const char *root, struct err *err)
{
	if (mkdir(root, 0777) == 0)
		return file_sync_dir(repo->common_dir, err);
	return errno == EEXIST ? 0 : err_sys(err, "cannot make '%s'", root);
}

int entry_make(const struct work *work, struct err *err)
{
	AUTO_FREE char *root = entry_root(work->repo);
	AUTO_FREE char *temp_root = file_join(work->repo->baton_dir, "tmp");
	AUTO_FREE char *temp = mem_printf("%s/entry+%s+%s", temp_root, work->run, work->agent);

	if (file_exists(work->entry_dir))
		return err_set(err, ERR_EXISTS, "run '%s' has a worktree for agent '%s' already",
			       work->run, work->agent);
	if (!file_is_dir(temp_root) && file_mkdirs(temp_root, 0700, err) < 0)
		return -1;
	if (make_root(work->repo, root, err) < 0)
		return -1;
	if (disk_remove(temp, err) <
	    0) /* of a killed creation of the same name: we hold the lock */
		return -1;
	if (mkdir(temp, 0700) < 0)
		return err_sys(err, "cannot make '%s'", temp);
	if (fill(work, temp, err) < 0)
		return -1;
	if (rename(temp, work->entry_dir) < 0)
		return err_sys(err, "cannot make '%s'", work->entry_dir);
	/* Nothing else of the worktree may be on disk without its entry: what is there without one is not ours. */
	return file_sync_dir(root, err);
}

int entry_read(const char *entry_dir, struct json_object **ret, struct err *err)
{
	AUTO_FREE char *path = file_join(entry_dir, "baton");
	struct err why = ERR_INIT;

	if (!file_is_dir(entry_dir))
		return err_set(err, ERR_NOT_FOUND, "there is no worktree entry '%s'", entry_dir);
	if (json_parse_file(path, MARK_MAX, ret, &why) < 0 || !*ret)
		return err_set(err, ERR_DENIED, "'%s' does not carry baton's mark", entry_dir);
	return 0;
}

int entry_set_state(const struct work *work, enum entry_state state, struct err *err)
{
	AUTO_JSON struct json_object *mark = mark_new(work, state);
	AUTO_FREE char *path = file_join(work->entry_dir, "baton");
	AUTO_FREE char *temp = file_join(work->entry_dir, "baton.new");
	AUTO_BUF struct buf text = BUF_INIT;
	struct stat st;

	if (lstat(work->worktree, &st) == 0) {
		json_set_i64(mark, "device", (int64_t)st.st_dev);
		json_set_i64(mark, "inode", (int64_t)st.st_ino);
	} else if (state == ENTRY_READY) {
		return err_sys(err, "cannot look at '%s'", work->worktree);
	}
	json_write_pretty(&text, mark);
	unlink(temp);
	if (disk_put(temp, text.data, text.len, true, err) < 0)
		return -1;
	if (rename(temp, path) < 0)
		return err_sys(err, "cannot write '%s'", path);
	return file_sync_dir(work->entry_dir, err);
}

static bool same(struct json_object *mark, const char *key, const char *value)
{
	return strcmp(json_str(mark, key, ""), value) == 0;
}

int entry_check(const struct work *work, enum entry_state *ret, struct err *err)
{
	AUTO_JSON struct json_object *mark = NULL;

	if (entry_read(work->entry_dir, &mark, err) < 0)
		return -1;
	if (!same(mark, "run", work->run) || !same(mark, "agent", work->agent) ||
	    !same(mark, "worktree", work->worktree) || !same(mark, "branch", work->branch))
		return err_set(err, ERR_DENIED, "'%s' is marked as another worktree's",
			       work->entry_dir);
	if (entry_follow(work, mark, err) < 0)
		return -1;
	for (int state = ENTRY_CREATING; state <= ENTRY_REMOVING; state++) {
		if (same(mark, "state", state_names[state])) {
			*ret = (enum entry_state)state;
			return 0;
		}
	}
	return err_set(err, ERR_INVALID, "'%s' is in an unknown state", work->entry_dir);
}

int entry_need_ready(const struct work *work, struct err *err)
{
	enum entry_state state;

	if (entry_check(work, &state, err) < 0)
		return -1;
	if (state != ENTRY_READY)
		return err_set(err, ERR_CHANGED,
			       "the worktree '%s' is not whole: %s was interrupted", work->worktree,
			       state == ENTRY_CREATING ? "its creation" : "its removal");
	return 0;
}

bool entry_owns_folder(const struct work *work)
{
	AUTO_JSON struct json_object *mark = NULL;
	struct stat st;

	return entry_read(work->entry_dir, &mark, NULL) == 0 && lstat(work->worktree, &st) == 0 &&
	       S_ISDIR(st.st_mode) && json_i64(mark, "device", -1) == (int64_t)st.st_dev &&
	       json_i64(mark, "inode", -1) == (int64_t)st.st_ino;
}

int entry_head(const struct work *work, char ret_oid[OID_MAX], struct err *err)
{
	AUTO_FREE char *path = file_join(work->entry_dir, "HEAD");
	AUTO_BUF struct buf text = BUF_INIT;
	size_t hex = work->repo->hex;

	if (file_read(AT_FDCWD, path, 256, &text, err) < 0)
		return -1;
	if (text.len && text.data[text.len - 1] == '\n')
		buf_truncate(&text, text.len - 1);
	if (!oid_valid(buf_str(&text), hex))
		return err_set(err, ERR_CHANGED,
			       "'%s' holds no commit id: somebody switched this worktree", path);
	memcpy(ret_oid, buf_str(&text), hex + 1);
	return 0;
}

int entry_set_head(const struct work *work, const char *oid, struct err *err)
{
	AUTO_FREE char *path = file_join(work->entry_dir, "HEAD");
	AUTO_FREE char *text = mem_printf("%s\n", oid);

	return file_write_atomic(AT_FDCWD, path, text, strlen(text), 0600, err);
}

int entry_remove(const struct work *work, struct err *err)
{
	AUTO_FREE char *root = file_join(work->repo->baton_dir, "tmp");
	AUTO_FREE char *temp = mem_printf("%s/gone+%s+%s", root, work->run, work->agent);

	AUTO_FREE char *entries = entry_root(work->repo);
	AUTO_FREE char *above = file_dir(work->worktree);

	if (disk_mkdirs(root, err) < 0 || disk_remove(temp, err) < 0)
		return -1;
	/* The entry goes last, on disk too: a folder that comes back without one is nobody's. */
	if (file_is_dir(above) && file_sync_dir(above, err) < 0)
		return -1;
	if (rename(work->entry_dir, temp) < 0)
		return err_sys(err, "cannot remove '%s'", work->entry_dir);
	if (file_sync_dir(entries, err) < 0)
		return -1;
	return disk_remove(temp, err);
}
