/*
 * walk.c - the recursive walk. Entries of a folder are sorted before they are visited, so that
 * results do not depend on the file system. Depth and number are bounded: a tree is outside data
 * too.
 */
#include "agent/tools/walk.h"

#include <dirent.h>
#include <fcntl.h>

#include "agent/tools/ignore.h"
#include "base/memory.h"

enum { WALK_DEPTH = 128, WALK_ENTRIES = 2000000 };

/* The state of one walk. Two paths, since rules count from the root and results from the start. */
struct step {
	struct walk *walk;
	struct ignore ignore;
	struct buf path;      /* relative to the start */
	struct buf from_root; /* relative to the root, for the rules */
	bool rules;
};

struct entry {
	char *name;
	unsigned char type;
};

static int entry_order(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	return strcmp(x->name, y->name);
}

/* Some file systems do not say the type in the folder. */
static unsigned char type_of(int dir_fd, const struct dirent *d)
{
	struct stat st;
	if (d->d_type != DT_UNKNOWN)
		return d->d_type;
	if (fstatat(dir_fd, d->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return DT_UNKNOWN;
	return S_ISDIR(st.st_mode)   ? DT_DIR
	       : S_ISLNK(st.st_mode) ? DT_LNK
	       : S_ISREG(st.st_mode) ? DT_REG
				     : DT_FIFO;
}

static size_t list_entries(struct step *step, DIR *dir, struct entry **ret)
{
	struct entry *list = NULL;
	size_t n = 0, cap = 0;
	struct dirent *d;
	while ((d = readdir(dir))) {
		if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0 ||
		    strcmp(d->d_name, ".git") == 0)
			continue;
		if (++step->walk->visited > WALK_ENTRIES) {
			step->walk->cut = true;
			break;
		}
		MEM_GROW(list, cap, n + 1);
		list[n++] = (struct entry){mem_strdup(d->d_name), type_of(dirfd(dir), d)};
	}
	if (n)
		qsort(list, n, sizeof(*list), entry_order);
	*ret = list;
	return n;
}

static void path_push(struct buf *path, const char *name)
{
	if (path->len)
		buf_addc(path, '/');
	buf_adds(path, name);
}

static int walk_folder(struct step *step, int fd, int depth, struct err *err);

static int visit(struct step *step, int dir_fd, const struct entry *entry, int depth,
		 struct err *err)
{
	bool is_dir = entry->type == DT_DIR;
	if (step->rules && ignore_match(&step->ignore, buf_str(&step->from_root), is_dir))
		return 0;
	if (is_dir) {
		if (depth >= WALK_DEPTH) {
			step->walk->cut = true;
			return 0;
		}
		int fd = openat(dir_fd, entry->name,
				O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		return fd < 0 ? 0 : walk_folder(step, fd, depth + 1, err);
	}
	if (entry->type != DT_REG && entry->type != DT_LNK)
		return 0;
	struct walk_file file = {
		.dir_fd = dir_fd,
		.name = entry->name,
		.path = buf_str(&step->path),
		.is_link = entry->type == DT_LNK,
	};
	return step->walk->on_file(&file, step->walk->arg, err);
}

/* Takes the descriptor over. */
static int walk_folder(struct step *step, int fd, int depth, struct err *err)
{
	DIR *dir = fdopendir(fd);
	if (!dir) {
		close(fd);
		return 0;
	}
	struct entry *list;
	size_t n = list_entries(step, dir, &list);
	int rc = tool_check(step->walk->ctx, err);
	if (step->rules)
		ignore_push(&step->ignore, buf_str(&step->from_root), fd, ".gitignore");
	for (size_t i = 0; i < n; i++) {
		size_t path_len = step->path.len, root_len = step->from_root.len;
		path_push(&step->path, list[i].name);
		path_push(&step->from_root, list[i].name);
		if (rc == 0)
			rc = visit(step, fd, &list[i], depth, err);
		buf_truncate(&step->path, path_len);
		buf_truncate(&step->from_root, root_len);
		free(list[i].name);
	}
	free(list);
	if (step->rules)
		ignore_pop(&step->ignore);
	closedir(dir);
	return rc;
}

/* The private repository's, or that of a plain checkout. A linked worktree's `.git` file is not
 * followed: what it names may have been written by a command. */
static void push_exclude(struct step *step)
{
	struct tool_context *ctx = step->walk->ctx;
	const char *git_dir = ctx->settings.git_dir;
	AUTO_FREE char *info = git_dir ? mem_printf("%s/info", git_dir) : mem_strdup(".git/info");
	AUTO_FD int fd = openat(ctx->roots.root[ROOT_WORKTREE].fd, info,
				O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0)
		ignore_push(&step->ignore, "", fd, "exclude");
}

/* The rules of the folders above the start (its own are pushed when it is entered). */
static void push_parents(struct step *step, const char *path)
{
	AUTO_FREE char *copy = mem_strdup(path);
	AUTO_FD int fd = fcntl(step->walk->ctx->roots.root[ROOT_WORKTREE].fd, F_DUPFD_CLOEXEC, 3);
	AUTO_BUF struct buf base = BUF_INIT;
	for (char *s = copy; fd >= 0 && *s;) {
		ignore_push(&step->ignore, buf_str(&base), fd, ".gitignore");
		size_t n = strcspn(s, "/");
		char *next = s[n] ? s + n + 1 : s + n;
		s[n] = '\0';
		path_push(&base, s);
		int below = openat(fd, s, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		close(fd);
		fd = below;
		s = next;
	}
}

int walk_tree(struct walk *walk, const struct place *folder, int fd, struct err *err)
{
	struct step step = {.walk = walk};
	int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (copy < 0)
		return err_sys(err, "cannot list '%s'", folder->shown);
	step.rules = folder->root == ROOT_WORKTREE && !walk->include_ignored;
	ignore_init(&step.ignore);
	bool at_root = strcmp(folder->path, ".") == 0;
	if (!at_root)
		buf_adds(&step.from_root, folder->path);
	if (step.rules) {
		push_exclude(&step);
		if (!at_root)
			push_parents(&step, folder->path);
	}
	int rc = walk_folder(&step, copy, 0, err);
	ignore_release(&step.ignore);
	buf_release(&step.path);
	buf_release(&step.from_root);
	return rc;
}
