/*
 * views.c - read-only trees of a commit, shared by reviewers.
 *
 * No repository stands behind them: a folder with files that nobody may write. The register in
 * <common>/baton/views says which folders these are, by path and identity, so that nothing else is
 * ever removed (trap 122). The commit may be an agent's, so no filter runs.
 */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "worktrees/checkout.h"
#include "worktrees/disk.h"
#include "worktrees/ops.h"
#include "worktrees/views.h"

static char *register_path(const struct repo *repo, const char *path)
{
	return mem_printf("%s/views/%016" PRIx64 ".json", repo->baton_dir,
			  text_hash(path, strlen(path)));
}

static int need_path(struct json_object *body, const char **ret, struct err *err)
{
	if (json_need_str(body, "path", ret, err) < 0)
		return -1;
	if ((*ret)[0] != '/')
		return err_set(err, ERR_INVALID, "'%s' is no absolute path", *ret);
	return 0;
}

int view_enter(const struct repo *repo, const char *path, struct err *err)
{
	AUTO_FREE char *file = register_path(repo, path);
	AUTO_FREE char *dir = file_dir(file);
	AUTO_JSON struct json_object *entry = json_object_new_object();
	AUTO_BUF struct buf text = BUF_INIT;
	struct stat st;

	if (lstat(path, &st) < 0)
		return err_sys(err, "cannot look at '%s'", path);
	json_set_str(entry, "path", path);
	json_set_i64(entry, "device", (int64_t)st.st_dev);
	json_set_i64(entry, "inode", (int64_t)st.st_ino);
	json_write(&text, entry);
	if (file_mkdirs(dir, 0700, err) < 0)
		return -1;
	return file_write_atomic(AT_FDCWD, file, text.data, text.len, 0600, err);
}

/* Takes the right to write from all files below an open folder, which is closed. */
static int set_read_only(int dir_fd, struct err *err)
{
	DIR *dir = fdopendir(dir_fd);
	struct dirent *item;
	struct stat st;
	int rc = 0;

	if (!dir) {
		close(dir_fd);
		return err_sys(err, "cannot list a folder");
	}
	while (rc == 0 && (item = readdir(dir)) != NULL) {
		const char *name = item->d_name;

		if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
		    fstatat(dirfd(dir), name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (S_ISREG(st.st_mode)) {
			if (fchmodat(dirfd(dir), name, st.st_mode & 0555, 0) < 0)
				rc = err_sys(err, "cannot protect '%s'", name);
		} else if (S_ISDIR(st.st_mode)) {
			int below = openat(dirfd(dir), name,
					   O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
			rc = below < 0 ? err_sys(err, "cannot enter '%s'", name)
				       : set_read_only(below, err);
		}
	}
	closedir(dir);
	return rc;
}

int view_remove(const struct repo *repo, const char *path, struct err *err)
{
	AUTO_JSON struct json_object *entry = NULL;
	AUTO_FREE char *file = register_path(repo, path);
	struct stat st;

	if (json_parse_file(file, 65536, &entry, NULL) < 0 ||
	    strcmp(json_str(entry, "path", ""), path) != 0)
		return err_set(err, ERR_DENIED, "'%s' is no view that baton made", path);
	if (lstat(path, &st) == 0) {
		if (json_i64(entry, "device", -1) != (int64_t)st.st_dev ||
		    json_i64(entry, "inode", -1) != (int64_t)st.st_ino)
			return err_set(err, ERR_CHANGED, "'%s' was replaced by something else",
				       path);
		if (disk_remove(path, err) < 0)
			return -1;
	}
	return unlink(file) < 0 ? err_sys(err, "cannot remove '%s'", file) : 0;
}

/* One of the same run that was cut off: half of the files may be there, so they all go. */
void view_drop_old(const struct repo *repo, const char *path)
{
	view_remove(repo, path, NULL);
	rmdir(path); /* a kill before it was entered in the register */
}

int op_checkout_view(const struct repo *repo, struct json_object *body, struct json_object *answer,
		     struct err *err)
{
	const char *commit, *path;

	if (json_need_str(body, "commit", &commit, err) < 0 || need_path(body, &path, err) < 0)
		return -1;
	if (!oid_valid(commit, repo->hex))
		return err_set(err, ERR_INVALID, "'%s' is no commit id", commit);
	/* Named by the view, so that who makes it again finds what a killed git left. */
	AUTO_FREE char *index = mem_printf("%s/view-%016llx.index", repo->baton_dir,
					   (unsigned long long)text_hash(path, strlen(path)));
	AUTO_FREE char *lock = mem_printf("%s.lock", index);
	AUTO_FREE char *above = file_dir(path);
	if (!file_is_dir(above) && file_mkdirs(above, 0700, err) < 0)
		return -1;
	if (json_flag(body, "again", false))
		view_drop_old(repo, path);
	if (mkdir(path, 0700) < 0)
		return err_sys(err, "cannot make '%s'", path);
	unlink(index);
	unlink(lock);
	int rc = view_enter(repo, path, err);
	if (rc == 0)
		rc = checkout_by_program(repo, commit, index, path, false, err);
	if (rc == 0) {
		int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

		rc = fd < 0 ? err_sys(err, "cannot open '%s'", path) : set_read_only(fd, err);
	}
	json_set_i64(answer, "files", checkout_count(index));
	unlink(index);
	unlink(lock);
	if (rc < 0) {
		AUTO_FREE char *file = register_path(repo, path);

		disk_remove(path, NULL);
		unlink(file);
	}
	return rc;
}

int op_remove_view(const struct repo *repo, struct json_object *body, struct json_object *answer,
		   struct err *err)
{
	const char *path;

	return need_path(body, &path, err) < 0 ? -1 : view_remove(repo, path, err);
}
