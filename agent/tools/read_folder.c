/*
 * read_folder.c - listing one folder, with size and time of each entry (T11).
 *
 * Folders first, then files, each by name. Names are shown in the form in which they can be given
 * back (trap 95). The worktree's own `.git` is left out: no file tool opens it.
 */
#include "agent/tools/read.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>

#include "agent/tools/names.h"
#include "base/memory.h"
#include "base/text.h"

enum { FOLDER_SHOWN = 1000, FOLDER_MAX = 200000 };

struct entry {
	char *name;
	bool is_dir;
};

static int entry_order(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	if (x->is_dir != y->is_dir)
		return x->is_dir ? -1 : 1;
	return strcmp(x->name, y->name);
}

static bool entry_is_dir(DIR *dir, const struct dirent *d)
{
	struct stat st;
	if (d->d_type != DT_UNKNOWN)
		return d->d_type == DT_DIR;
	return fstatat(dirfd(dir), d->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

/* All names are read before any is shown: the order is by kind and name, not the file system's. */
static size_t read_entries(DIR *dir, bool is_top, struct entry **ret)
{
	struct entry *list = NULL;
	size_t n = 0, cap = 0;
	struct dirent *d;
	while (n < FOLDER_MAX && (d = readdir(dir))) {
		if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0 ||
		    (is_top && strcmp(d->d_name, ".git") == 0))
			continue;
		MEM_GROW(list, cap, n + 1);
		list[n++] = (struct entry){mem_strdup(d->d_name), entry_is_dir(dir, d)};
	}
	if (n)
		qsort(list, n, sizeof(*list), entry_order);
	*ret = list;
	return n;
}

static void add_size(struct buf *out, const struct stat *st)
{
	AUTO_BUF struct buf size = BUF_INIT;
	if (S_ISREG(st->st_mode))
		name_add_number(&size, (uint64_t)st->st_size);
	else
		buf_adds(&size, "-");
	buf_addf(out, "  %12s  ", buf_str(&size));
}

static void add_entry(struct buf *out, int dir_fd, const struct entry *entry)
{
	struct stat st;
	if (fstatat(dir_fd, entry->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	name_add_time(out, (int64_t)st.st_mtim.tv_sec * 1000);
	add_size(out, &st);
	name_escape(out, entry->name, strlen(entry->name));
	if (S_ISDIR(st.st_mode))
		buf_addc(out, '/');
	if (S_ISLNK(st.st_mode)) {
		char target[1024];
		ssize_t n = readlinkat(dir_fd, entry->name, target, sizeof(target));
		buf_adds(out, " -> ");
		name_escape(out, target, n > 0 ? (size_t)n : 0);
	}
	buf_addc(out, '\n');
}

int read_folder(struct tool_context *ctx, int fd, const struct place *place,
		struct tool_result *ret)
{
	int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	if (!dir) {
		if (copy >= 0)
			close(copy);
		return result_failf(ret, "cannot list '%s'", place->shown);
	}
	struct entry *list;
	bool is_top = place->root == ROOT_WORKTREE && strcmp(place->path, ".") == 0;
	size_t n = read_entries(dir, is_top, &list);
	buf_addf(&ret->text, "%s: %zu entries (time in UTC, size in bytes, name)\n", place->shown,
		 n);
	for (size_t i = 0; i < n; i++) {
		if (i < FOLDER_SHOWN)
			add_entry(&ret->text, dirfd(dir), &list[i]);
		free(list[i].name);
	}
	if (n > FOLDER_SHOWN)
		buf_addf(&ret->text, "[%zu more entries; use glob to narrow it down]\n",
			 n - FOLDER_SHOWN);
	free(list);
	closedir(dir);
	result_summary(ret, "read %s (folder)", place->shown);
	return 0;
}
