/*
 * state.c - what an agent's worktree holds, as a tree.
 *
 * `git add -A` would do most of it, but stores nested repositories as bare links (facts L) and asks
 * git inside them for their status, with their configuration. So the list of paths comes from
 * ls-files, which only reads, is sorted here by what each path is on disk, and goes to update-index
 * path by path. A nested repository is listed by a run of its own with our git dir and no index, so
 * its files are just files; `.git` is never entered.
 */
#include "worktrees/state.h"

#include <fcntl.h>
#include <stdio.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/memory.h"
#include "worktrees/disk.h"

#define NESTED_MAX 1000 /* nested repositories in one worktree */

struct sorter {
	const struct scratch *scratch;
	const struct state_opts *opts;
	struct buf add, drop; /* NUL-separated, relative to the worktree */
	struct buf nested;    /* the same: folders that are repositories */
	size_t nested_count;
	bool changed; /* the index is no longer at the tree that it began with */
	int64_t files, bytes;
	char *good_dir; /* the last folder seen to be reachable without a link */
};

enum kind { KIND_FILE, KIND_DIR, KIND_GONE };

/* Is every folder above the last component a real one? */
static bool parents_real(struct sorter *s, const char *path)
{
	const char *last = strrchr(path, '/');
	size_t n = last ? (size_t)(last - path) : 0;
	struct stat st;

	if (n == 0 ||
	    (s->good_dir && strlen(s->good_dir) == n && memcmp(s->good_dir, path, n) == 0))
		return true;
	for (size_t i = 1; i <= n; i++) {
		if (path[i] != '/')
			continue;
		AUTO_FREE char *full =
			mem_printf("%s/%.*s", s->scratch->work->worktree, (int)i, path);
		if (lstat(full, &st) < 0 || !S_ISDIR(st.st_mode))
			return false;
	}
	free(s->good_dir);
	s->good_dir = mem_strndup(path, n);
	return true;
}

static enum kind look(struct sorter *s, const char *path, int64_t *ret_size)
{
	AUTO_FREE char *full = file_join(s->scratch->work->worktree, path);
	struct stat st;

	if (!parents_real(s, path) || lstat(full, &st) < 0)
		return KIND_GONE;
	if (S_ISDIR(st.st_mode))
		return KIND_DIR;
	*ret_size = st.st_size;
	/* Sockets, FIFOs and devices are nothing that a tree can hold. */
	return S_ISREG(st.st_mode) || S_ISLNK(st.st_mode) ? KIND_FILE : KIND_GONE;
}

static int over_limit(const struct sorter *s, struct err *err)
{
	const struct state_opts *o = s->opts;

	if (o->max_files && s->files > o->max_files)
		return err_set(err, ERR_TOO_LARGE, "more than %lld changed files",
			       (long long)o->max_files);
	if (o->max_bytes && s->bytes > o->max_bytes)
		return err_set(err, ERR_TOO_LARGE, "changed files of more than %lld MB",
			       (long long)(o->max_bytes >> 20));
	return 0;
}

static int sort_path(struct sorter *s, const char *path, struct err *err)
{
	size_t n = strlen(path);
	int64_t size = 0;

	if (n == 0)
		return 0;
	if (path[n - 1] == '/') {
		if (++s->nested_count > NESTED_MAX)
			return err_set(err, ERR_TOO_LARGE, "more than %d nested repositories",
				       NESTED_MAX);
		return buf_add(&s->nested, path, n + 1);
	}
	if (look(s, path, &size) != KIND_FILE)
		return buf_add(&s->drop, path, n + 1);
	s->files++;
	s->bytes += size;
	buf_add(&s->add, path, n + 1);
	return over_limit(s, err);
}

/* Submodules of the base that have files now are nested repositories like others. */
static int sort_gitlinks(struct sorter *s, struct err *err)
{
	AUTO_FREE char *path = work_path(s->scratch->work, "gitlinks");
	AUTO_BUF struct buf names = BUF_INIT;

	if (!file_exists(path))
		return 0;
	if (file_read(AT_FDCWD, path, 1 << 20, &names, err) < 0)
		return -1;
	for (const char *p = buf_str(&names), *end = p + names.len; p < end; p += strlen(p) + 1) {
		AUTO_FREE char *full = file_join(s->scratch->work->worktree, p);
		AUTO_FREE char *inside = file_join(full, ".git");
		struct stat st;

		if (lstat(inside, &st) == 0)
			buf_add(&s->drop, p, strlen(p) + 1);
	}
	return 0;
}

static int list_changed(struct sorter *s, struct err *err)
{
	struct git_cmd cmd = scratch_cmd(s->scratch, s->opts->scope);
	AUTO_BUF struct buf out = BUF_INIT;

	if (git_run(&cmd, GIT_ARGS("ls-files", "-z", "-m", "-o", "--exclude-standard"), &out, err) <
	    0)
		return -1;
	for (const char *p = buf_str(&out), *end = p + out.len; p < end; p += strlen(p) + 1) {
		if (sort_path(s, p, err) < 0)
			return -1;
	}
	return 0;
}

/* Files of one nested repository; repositories inside it are appended to the list being walked. */
static int list_nested(struct sorter *s, const char *dir, struct err *err)
{
	AUTO_FREE char *top = file_join(s->scratch->work->worktree, dir);
	AUTO_FREE char *no_index = work_path(s->scratch->work, "no.index");
	struct git_cmd cmd = scratch_cmd(s->scratch, s->opts->scope);
	AUTO_BUF struct buf out = BUF_INIT;
	int64_t size;

	AUTO_FREE char *bare = mem_strndup(dir, strlen(dir) - 1);
	if (look(s, bare, &size) != KIND_DIR)
		return 0;
	cmd.work_tree = top;
	cmd.index = no_index;
	if (git_run(&cmd, GIT_ARGS("ls-files", "-z", "-o", "--exclude-standard"), &out, err) < 0)
		return -1;
	for (const char *p = buf_str(&out), *end = p + out.len; p < end; p += strlen(p) + 1) {
		AUTO_FREE char *path = mem_printf("%s%s", dir, p);

		if (sort_path(s, path, err) < 0)
			return -1;
	}
	return 0;
}

static bool plain_path(const char *path)
{
	if (!*path || *path == '/')
		return false;
	while (*path) {
		size_t n = strcspn(path, "/");

		if (n == 0 || (n == 1 && path[0] == '.') ||
		    (n == 2 && memcmp(path, "..", 2) == 0) ||
		    (n == 4 && strncasecmp(path, ".git", 4) == 0))
			return false;
		path += n + (path[n] == '/');
	}
	return true;
}

static int list_touched(struct sorter *s, struct err *err)
{
	struct json_object *touched = s->opts->touched;
	int64_t size;

	for (size_t i = 0; i < json_len(touched); i++) {
		const char *path = json_object_get_string(json_at(touched, i));

		if (path && plain_path(path) && look(s, path, &size) == KIND_FILE &&
		    sort_path(s, path, err) < 0)
			return -1;
	}
	return 0;
}

/* Takes paths out of the list whose content a filter of the user's would have to make first. */
static int leave_filtered(struct sorter *s, struct err *err)
{
	struct git_cmd cmd = scratch_cmd(s->scratch, s->opts->scope);
	AUTO_BUF struct buf out = BUF_INIT;
	AUTO_BUF struct buf kept = BUF_INIT;

	if (!s->opts->skip_filtered || !s->scratch->work->repo->filters || !s->add.len)
		return 0;
	cmd.in = &s->add;
	if (git_run(&cmd, GIT_ARGS("check-attr", "-z", "--stdin", "filter"), &out, err) < 0)
		return -1;
	for (const char *p = buf_str(&out), *end = p + out.len; p < end;) {
		const char *path = p, *attr = path + strlen(path) + 1;
		const char *value = attr + strlen(attr) + 1;
		bool none = strcmp(value, "unspecified") == 0 || strcmp(value, "unset") == 0;

		p = value + strlen(value) + 1;
		if (none) {
			buf_add(&kept, path, strlen(path) + 1);
		} else if (s->opts->notes) {
			AUTO_FREE char *text =
				mem_printf("'%s' is not committed: its filter '%s' runs programs, "
					   "which baton does not do on an agent's files",
					   path, value);
			json_object_array_add(s->opts->notes, json_object_new_string(text));
		}
	}
	buf_release(&s->add);
	s->add = kept;
	kept = (struct buf)BUF_INIT;
	return 0;
}

static int update(struct sorter *s, const struct buf *paths, const char *mode, struct err *err)
{
	struct git_cmd cmd = scratch_cmd(s->scratch, s->opts->scope);

	if (!paths->len)
		return 0;
	cmd.in = paths;
	s->changed = true;
	return git_run(&cmd, GIT_ARGS("update-index", "-z", "--add", "--replace", mode, "--stdin"),
		       NULL, err);
}

static int sort_all(struct sorter *s, struct err *err)
{
	if (sort_gitlinks(s, err) < 0 || update(s, &s->drop, "--force-remove", err) < 0)
		return -1;
	buf_clear(&s->drop);
	if (list_changed(s, err) < 0)
		return -1;
	for (size_t at = 0; at < s->nested.len;) {
		/* The buffer may move while it grows. */
		AUTO_FREE char *dir = mem_strdup(s->nested.data + at);

		at += strlen(dir) + 1;
		if (list_nested(s, dir, err) < 0)
			return -1;
	}
	return list_touched(s, err);
}

static int make_tree(struct sorter *s, char ret_tree[OID_MAX], struct err *err)
{
	struct git_cmd cmd = scratch_cmd(s->scratch, s->opts->scope);
	AUTO_FREE char *line = NULL;

	if (sort_all(s, err) < 0 || leave_filtered(s, err) < 0 ||
	    update(s, &s->drop, "--force-remove", err) < 0 ||
	    update(s, &s->add, "--remove", err) < 0)
		return -1;
	/* Most agents look more often than they change something. */
	const char *known = s->opts->over ? s->opts->over : s->opts->index_tree;
	if (known && !s->changed) {
		memcpy(ret_tree, known, s->scratch->work->repo->hex + 1);
		return 0;
	}
	cmd.work_tree = NULL;
	if (git_line(&cmd, GIT_ARGS("write-tree"), &line, err) < 0)
		return -1;
	if (!oid_valid(line, s->scratch->work->repo->hex))
		return err_set(err, ERR_INVALID, "git wrote no tree");
	memcpy(ret_tree, line, s->scratch->work->repo->hex + 1);
	return 0;
}

/* Entries that are the same keep what the index knows of their files. */
static int start_over(const struct scratch *scratch, const struct state_opts *opts, struct err *err)
{
	struct git_cmd cmd = scratch_cmd(scratch, opts->scope);

	if (!opts->over || (opts->index_tree && strcmp(opts->over, opts->index_tree) == 0))
		return 0;
	return git_run(&cmd, GIT_ARGS("read-tree", "--reset", opts->over), NULL, err);
}

int state_tree(const struct scratch *scratch, const struct state_opts *opts, char ret_tree[OID_MAX],
	       struct err *err)
{
	struct sorter s = {.scratch = scratch, .opts = opts};
	struct stat st;

	if (lstat(scratch->work->worktree, &st) < 0 || !S_ISDIR(st.st_mode))
		return err_set(err, ERR_NOT_FOUND, "the worktree '%s' is gone",
			       scratch->work->worktree);
	if (opts->index_from && disk_copy(opts->index_from, scratch->index, err) < 0)
		return -1;
	int rc = start_over(scratch, opts, err);
	if (rc == 0)
		rc = make_tree(&s, ret_tree, err);
	buf_release(&s.add);
	buf_release(&s.drop);
	buf_release(&s.nested);
	free(s.good_dir);
	return rc;
}

/* --- indexes that are kept --- */

static char *tip_index(const struct scratch *scratch, const char *tree)
{
	AUTO_FREE char *name = mem_printf("tip-%s.index", tree);

	return work_path(scratch->work, name);
}

/* The index of the base has no entries for submodules where libgit2 wrote the files: then it is at no known
 * tree. */
static bool base_index_whole(const struct scratch *scratch)
{
	AUTO_FREE char *gitlinks = work_path(scratch->work, "gitlinks");

	return !file_exists(gitlinks);
}

void state_start(const struct scratch *scratch, const char *tree, struct state_start *ret)
{
	AUTO_FREE char *tip = tree ? tip_index(scratch, tree) : NULL;

	*ret = (struct state_start){.tree = ""};
	if (tip && file_exists(tip)) {
		ret->index = take_ptr(tip);
		memcpy(ret->tree, tree, scratch->work->repo->hex + 1);
		return;
	}
	ret->index = work_path(scratch->work, "base.index");
	if (!base_index_whole(scratch) ||
	    !repo_tree_of(scratch->work->repo, scratch->work->base, ret->tree))
		ret->tree[0] = '\0';
}

void state_start_release(struct state_start *start)
{
	free(start->index);
}

void state_keep_index(const struct scratch *scratch, const char *tree, const char *old)
{
	AUTO_FREE char *path = tip_index(scratch, tree);
	AUTO_FREE char *before = tip_index(scratch, old);

	/* Without it everything works as well, only slower. */
	if (rename(scratch->index, path) == 0 && strcmp(tree, old) != 0)
		unlink(before);
}

static bool has_bytes(const char *path, const struct buf *bytes)
{
	AUTO_BUF struct buf own = BUF_INIT;

	return file_read(AT_FDCWD, path, bytes->len + 1, &own, NULL) == 0 &&
	       own.len == bytes->len && memcmp(buf_str(&own), bytes->data, own.len) == 0;
}

bool state_is_our_index(const struct scratch *scratch, const char *tree, const struct buf *bytes)
{
	AUTO_FREE char *base = work_path(scratch->work, "base.index");
	AUTO_FREE char *tip = tip_index(scratch, tree);

	return bytes->len && (has_bytes(base, bytes) || has_bytes(tip, bytes));
}
