/*
 * merge_check.c - what a merge into the user's checkout would meet, found out before anything is touched.
 *
 * git refuses most of what is found here by itself; but it does so in the middle of a command and in words for a person
 * who typed that command, it overwrites files that are ignored, and a squash would take along what the user had staged. So
 * all is looked at first, in memory, and told by name.
 *
 * Nothing is written but the objects of the merge that was tried.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "worktrees/ask.h"
#include "worktrees/git.h"
#include "worktrees/hostile.h"
#include "worktrees/merge.h"
#include "worktrees/ops.h"

#define NAMES_MAX 100000

struct names {
	char **list;
	size_t n, cap;
};

static void names_add(struct names *names, const char *name)
{
	if (names->n >= NAMES_MAX)
		return;
	MEM_GROW(names->list, names->cap, names->n + 1);
	names->list[names->n++] = mem_strdup(name);
}

static void names_release(struct names *names)
{
	for (size_t i = 0; i < names->n; i++)
		free(names->list[i]);
	free(names->list);
}

static int names_order(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void names_sort(struct names *names)
{
	if (names->n)
		qsort(names->list, names->n, sizeof(*names->list), names_order);
}

static bool names_has(const struct names *names, const char *name)
{
	return names->n &&
	       bsearch(&name, names->list, names->n, sizeof(*names->list), names_order) != NULL;
}

static struct json_object *names_json(const struct names *names)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < names->n; i++)
		json_object_array_add(list, json_object_new_string(names->list[i]));
	return list;
}

struct check {
	const struct repo *repo;
	char head[OID_MAX], tip[OID_MAX];
	struct names files; /* that the merge changes */
	struct names added; /* of them, those that HEAD has not */
	struct names dirty, staged, in_way;
};

static void check_release(struct check *c)
{
	names_release(&c->files);
	names_release(&c->added);
	names_release(&c->dirty);
	names_release(&c->staged);
	names_release(&c->in_way);
}

/* ":modes oids STATUS\0path\0" for each. */
static int changed_files(struct check *c, const char *tree, struct err *err)
{
	struct git_cmd cmd = {.repo = c->repo, .scope = GIT_USER};
	AUTO_BUF struct buf out = BUF_INIT;

	if (git_run(&cmd,
		    GIT_ARGS("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-ext-diff",
			     c->head, tree),
		    &out, err) < 0)
		return -1;
	for (size_t at = 0; at < out.len;) {
		const char *info = out.data + at, *path = info + strlen(info) + 1;

		if (path >= out.data + out.len)
			break;
		names_add(&c->files, path);
		if (text_ends(info, " A"))
			names_add(&c->added, path);
		at = (size_t)(path + strlen(path) + 1 - out.data);
	}
	names_sort(&c->files);
	return 0;
}

/* The path of an entry of `status --porcelain=v2 -z`: after 8 fields for a change, after 10 for an unmerged one. */
static const char *status_path(const char *entry)
{
	int fields = entry[0] == '1' ? 8 : entry[0] == 'u' ? 10 : 0;

	for (; fields > 0 && entry; fields--) {
		entry = strchr(entry, ' ');
		entry = entry ? entry + 1 : NULL;
	}
	return entry && *entry ? entry : NULL;
}

/* His own changes, as his git sees them; renames are told as two files. */
static int look_at_changes(struct check *c, struct err *err)
{
	struct git_cmd cmd = {.repo = c->repo, .scope = GIT_USER};
	AUTO_BUF struct buf out = BUF_INIT;

	if (git_run(&cmd,
		    GIT_ARGS("status", "--porcelain=v2", "-z", "--untracked-files=no",
			     "--no-renames", "--ignore-submodules=dirty"),
		    &out, err) < 0)
		return -1;
	for (size_t at = 0; at < out.len; at += strlen(out.data + at) + 1) {
		const char *entry = out.data + at;
		const char *path = strchr("1u", entry[0]) && entry[0] ? status_path(entry) : NULL;

		if (!path)
			continue;
		if (entry[0] == 'u' || entry[2] != '.')
			names_add(&c->staged, path);
		if (names_has(&c->files, path))
			names_add(&c->dirty, path);
	}
	names_sort(&c->dirty);
	return 0;
}

/* Is there something of the user's where this new file is to be? Ignored files count: nobody else has them. */
static bool is_in_way(const struct check *c, const char *path, char **ret_what)
{
	AUTO_FREE char *at = mem_strdup(path);
	struct stat st;

	for (char *slash = at; (slash = strchr(slash, '/')) != NULL; *slash++ = '/') {
		*slash = '\0';
		AUTO_FREE char *above = file_join(c->repo->toplevel, at);
		if (lstat(above, &st) < 0)
			return false;
		if (S_ISDIR(st.st_mode))
			continue;
		if (names_has(&c->files, at)) /* a file of HEAD that the merge takes away */
			return false;
		*ret_what = mem_strdup(at);
		return true;
	}
	AUTO_FREE char *full = file_join(c->repo->toplevel, path);
	/* A folder there is one of HEAD's, or the empty one of a submodule: git looks into it itself. */
	if (lstat(full, &st) < 0 || S_ISDIR(st.st_mode) || names_has(&c->dirty, path))
		return false;
	*ret_what = mem_strdup(path);
	return true;
}

static void look_for_obstacles(struct check *c)
{
	for (size_t i = 0; i < c->added.n; i++) {
		AUTO_FREE char *what = NULL;

		if (is_in_way(c, c->added.list[i], &what) &&
		    (c->in_way.n == 0 || strcmp(c->in_way.list[c->in_way.n - 1], what) != 0))
			names_add(&c->in_way, what);
	}
}

/* How much comes, and from where on. */
static int describe_commits(const struct check *c, struct json_object *answer, struct err *err)
{
	struct git_cmd cmd = {.repo = c->repo, .scope = GIT_USER};
	AUTO_FREE char *range = mem_printf("%s..%s", c->head, c->tip);
	AUTO_FREE char *count = NULL;
	AUTO_FREE char *merges = NULL;
	AUTO_FREE char *base = NULL;
	int64_t n = 0, m = 0;
	int status = 0;

	if (git_line(&cmd, GIT_ARGS("rev-list", "--count", range), &count, err) < 0 ||
	    git_line(&cmd, GIT_ARGS("rev-list", "--count", "--merges", range), &merges, err) < 0)
		return -1;
	cmd.ret_status = &status;
	if (git_line(&cmd, GIT_ARGS("merge-base", c->head, c->tip), &base, err) < 0)
		return -1;
	text_parse_i64(count, &n);
	text_parse_i64(merges, &m);
	json_set_i64(answer, "commits", n);
	json_set_i64(answer, "merges", m);
	json_set_str(answer, "base", oid_valid(base, c->repo->hex) ? base : NULL);
	return 0;
}

static int look(struct check *c, struct json_object *answer, struct err *err)
{
	struct merge_result result = {.conflicts = NULL};

	if (describe_commits(c, answer, err) < 0 ||
	    merge_trees(c->repo, c->head, c->tip, &result, err) < 0)
		return -1;
	json_set_bool(answer, "already", result.already);
	json_set_bool(answer, "fast_forward", result.fast_forward);
	json_set(answer, "conflicts", result.conflicts);
	if (result.conflicts)
		return 0;
	json_set_str(answer, "tree", result.tree);
	if (changed_files(c, result.tree, err) < 0 || look_at_changes(c, err) < 0)
		return -1;
	look_for_obstacles(c);
	json_set(answer, "files", names_json(&c->files));
	json_set(answer, "dirty", names_json(&c->dirty));
	json_set(answer, "staged", names_json(&c->staged));
	json_set(answer, "in_way", names_json(&c->in_way));
	return 0;
}

static bool on_checkout(const char *path, const char *branch, void *arg)
{
	struct json_object *one = json_object_new_object();

	json_set_str(one, "branch", branch);
	json_set_str(one, "path", path);
	json_object_array_add(arg, one);
	return true;
}

/* [{"branch", "path"}] of all checkouts, so that whoever stands in the wrong one is told the right one. */
static int checkouts(const struct repo *repo, struct json_object *answer, struct err *err)
{
	struct json_object *list = json_object_new_array();

	json_set(answer, "checkouts", list);
	return ask_each_checkout(repo, on_checkout, list, err);
}

/* NULL: HEAD is detached. */
static char *head_branch(const struct repo *repo)
{
	AUTO_JSON struct json_object *facts = json_object_new_object();
	static const char heads[] = "refs/heads/";

	if (repo_describe(repo, true, facts, NULL) < 0)
		return NULL;
	const char *ref = json_str(facts, "head_ref", NULL);
	return mem_strdup(ref && text_starts(ref, heads) ? ref + strlen(heads) : ref);
}

int op_merge_check(const struct repo *repo, struct json_object *body, struct json_object *answer,
		   struct err *err)
{
	struct check c = {.repo = repo};
	AUTO_FREE char *branch = head_branch(repo);
	const char *tip;

	if (json_need_str(body, "tip", &tip, err) < 0 || repo_resolve(repo, tip, c.tip, err) < 0)
		return -1;
	json_set_bool(answer, "bare", !repo->toplevel);
	json_set_str(answer, "toplevel", repo->toplevel);
	json_set_str(answer, "git_dir", repo->git_dir);
	json_set_str(answer, "branch", branch);
	json_set_str(answer, "tip", c.tip);
	json_set_str(answer, "in_progress", hostile_in_progress(repo->git_dir));
	if (checkouts(repo, answer, err) < 0)
		return -1;
	if (repo_head(repo, c.head, NULL) < 0)
		return 0; /* a branch without commits */
	json_set_str(answer, "head", c.head);
	int rc = repo->toplevel ? look(&c, answer, err) : 0;
	check_release(&c);
	return rc;
}
