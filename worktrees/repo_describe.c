/*
 * repo_describe.c - what `discover` tells of the user's checkout, and files at the root of a
 * commit.
 *
 * In process by libgit2 for checkouts of up to some thousand files without filters; else by the git
 * program, whose status is faster on large ones and knows split and sparse indexes. Neither writes:
 * the index stays byte for byte as the user left it (I8).
 */
#include <git2.h>
#include <stdio.h>

#include "base/memory.h"
#include "base/text.h"
#include "worktrees/git.h"
#include "worktrees/repo.h"

#define IN_PROCESS_MAX 3000 /* index entries */
#define LINK_MAX       200

static int read_blob(const struct repo *repo, const char *commit, const char *name, size_t max,
		     struct buf *out, bool *ret_link)
{
	git_oid oid;
	git_commit *c = NULL;
	git_tree *tree = NULL;
	git_blob *blob = NULL;
	const git_tree_entry *entry = NULL;
	int rc = git_oid_fromstr(&oid, commit);

	if (rc == 0)
		rc = git_commit_lookup(&c, repo->handle, &oid);
	if (rc == 0)
		rc = git_commit_tree(&tree, c);
	if (rc == 0)
		entry = git_tree_entry_byname(tree, name);
	if (entry && git_tree_entry_type(entry) == GIT_OBJECT_BLOB)
		rc = git_blob_lookup(&blob, repo->handle, git_tree_entry_id(entry));
	if (rc == 0 && blob) {
		size_t n = (size_t)git_blob_rawsize(blob);

		*ret_link = git_tree_entry_filemode(entry) == GIT_FILEMODE_LINK;
		buf_add(out, git_blob_rawcontent(blob), MIN(n, max));
	}
	bool found = rc == 0 && blob;
	git_blob_free(blob);
	git_tree_free(tree);
	git_commit_free(c);
	return found ? 0 : -1;
}

static int read_by_program(const struct repo *repo, const char *commit, const char *name,
			   size_t max, struct buf *out, bool *ret_link)
{
	struct git_cmd cmd = {.repo = repo, .scope = GIT_USER};
	AUTO_BUF struct buf line = BUF_INIT;
	AUTO_FREE char *spec = mem_printf("%s:%s", commit, name);

	if (git_run(&cmd, GIT_ARGS("ls-tree", "-z", commit, "--", name), &line, NULL) < 0 ||
	    line.len < 6)
		return -1;
	*ret_link = text_starts(line.data, "120000");
	if (git_run(&cmd, GIT_ARGS("cat-file", "blob", spec), out, NULL) < 0)
		return -1;
	if (out->len > max)
		buf_truncate(out, max);
	return 0;
}

/* The text of a file at the root of a commit; ERR_NOT_FOUND. One link to a neighbour is followed.
 */
static int root_file(const struct repo *repo, const char *commit, const char *name, size_t max,
		     struct buf *out, struct err *err)
{
	AUTO_FREE char *at = mem_strdup(name);

	for (int hops = 0; hops < 2; hops++) {
		bool link = false;
		int rc = repo->handle ? read_blob(repo, commit, at, max, out, &link)
				      : read_by_program(repo, commit, at, max, out, &link);

		if (rc == 0 && !link)
			return 0;
		if (rc < 0 || out->len > LINK_MAX || strchr(buf_str(out), '/'))
			break;
		free(at);
		at = mem_strdup(buf_str(out));
		buf_clear(out);
	}
	buf_clear(out);
	return err_set(err, ERR_NOT_FOUND, "'%s' is not in the commit", name);
}

struct json_object *repo_instructions(const struct repo *repo, const char *commit)
{
	static const char *const names[] = {"AGENTS.md", "CLAUDE.md"};
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		AUTO_BUF struct buf raw = BUF_INIT;
		AUTO_BUF struct buf text = BUF_INIT;

		if (root_file(repo, commit, names[i], 256 << 10, &raw, NULL) < 0)
			continue;
		text_sanitize(&text, raw.data ? raw.data : "", raw.len);
		struct json_object *one = json_object_new_object();
		json_set_str(one, "path", names[i]);
		json_set_strn(one, "text", buf_str(&text), text.len);
		json_object_array_add(list, one);
		break;
	}
	return list;
}

struct json_object *repo_submodules(const struct repo *repo, const char *commit)
{
	struct json_object *list = json_object_new_array();
	struct git_cmd cmd = {.repo = repo, .scope = GIT_USER};
	AUTO_BUF struct buf probe = BUF_INIT;
	AUTO_BUF struct buf out = BUF_INIT;
	AUTO_BUF struct buf path = BUF_INIT;

	if (root_file(repo, commit, ".gitmodules", 1 << 20, &probe, NULL) < 0)
		return list;
	if (git_run(&cmd, GIT_ARGS("ls-tree", "-r", "-z", commit), &out, NULL) < 0)
		return list;
	for (const char *p = out.data, *end = p + out.len; p < end; p += strlen(p) + 1) {
		const char *tab = strchr(p, '\t');

		if (!tab || !text_starts(p, "160000 "))
			continue;
		buf_clear(&path);
		text_sanitize(&path, tab + 1, strlen(tab + 1));
		json_object_array_add(list, json_object_new_string(buf_str(&path)));
	}
	return list;
}

/* --- the checkout --- */

static int count_by_handle(const struct repo *repo, struct json_object *answer, bool *ret_small)
{
	git_index *index = NULL;

	if (git_repository_index(&index, repo->handle) < 0)
		return -1;
	size_t n = git_index_entrycount(index);
	struct json_object *subs = json_object_new_array();
	for (size_t i = 0; i < n; i++) {
		const git_index_entry *entry = git_index_get_byindex(index, i);
		if (entry->mode == GIT_FILEMODE_COMMIT)
			json_object_array_add(subs, json_object_new_string(entry->path));
	}
	git_index_free(index);
	json_set_i64(answer, "tracked", (int64_t)n);
	json_set(answer, "submodules", subs);
	*ret_small = n <= IN_PROCESS_MAX;
	return 0;
}

static int count_by_program(const struct repo *repo, struct json_object *answer, struct err *err)
{
	struct git_cmd cmd = {.repo = repo, .scope = GIT_USER};
	struct json_object *subs = json_object_new_array();
	AUTO_BUF struct buf out = BUF_INIT;
	int64_t n = 0;

	json_set(answer, "submodules", subs);
	if (git_run(&cmd, GIT_ARGS("ls-files", "-s", "-z"), &out, err) < 0)
		return -1;
	for (const char *p = out.data, *end = p + out.len; p < end; p += strlen(p) + 1) {
		const char *tab = strchr(p, '\t');

		if (tab && text_starts(p, "160000 "))
			json_object_array_add(subs, json_object_new_string(tab + 1));
		n++;
	}
	json_set_i64(answer, "tracked", n);
	return 0;
}

static int dirty_by_handle(const struct repo *repo, bool *ret_dirty)
{
	git_status_options opts = GIT_STATUS_OPTIONS_INIT;
	git_status_list *list = NULL;

	opts.flags = GIT_STATUS_OPT_INCLUDE_UNTRACKED | GIT_STATUS_OPT_EXCLUDE_SUBMODULES;
	if (git_status_list_new(&list, repo->handle, &opts) < 0)
		return -1;
	*ret_dirty = git_status_list_entrycount(list) > 0;
	git_status_list_free(list);
	return 0;
}

static int dirty_by_program(const struct repo *repo, bool *ret_dirty, struct err *err)
{
	struct git_cmd cmd = {.repo = repo, .scope = GIT_USER};
	AUTO_BUF struct buf out = BUF_INIT;

	if (git_run(&cmd,
		    GIT_ARGS("status", "--porcelain", "-z", "--untracked-files=normal",
			     "--ignore-submodules=all"),
		    &out, err) < 0)
		return -1;
	*ret_dirty = out.len > 0;
	return 0;
}

static int describe_head(const struct repo *repo, struct json_object *answer)
{
	struct git_cmd cmd = {.repo = repo, .scope = GIT_USER};
	char oid[OID_MAX];
	int status = 1;

	json_set(answer, "head", NULL);
	/* The commit itself is looked for: its absence would else be found when a request was paid. */
	if (repo_resolve(repo, "HEAD^{commit}", oid, NULL) == 0)
		json_set_str(answer, "head", oid);
	else if (repo_head(repo, oid, NULL) == 0)
		json_set_str(answer, "head_missing", oid);
	json_set(answer, "head_ref", NULL);
	if (repo->handle) {
		git_reference *head = NULL;

		if (git_reference_lookup(&head, repo->handle, "HEAD") == 0 &&
		    git_reference_type(head) == GIT_REFERENCE_SYMBOLIC)
			json_set_str(answer, "head_ref", git_reference_symbolic_target(head));
		git_reference_free(head);
		return 0;
	}
	AUTO_FREE char *ref = NULL;
	cmd.ret_status = &status;
	if (git_line(&cmd, GIT_ARGS("symbolic-ref", "-q", "HEAD"), &ref, NULL) == 0 && status == 0)
		json_set_str(answer, "head_ref", ref);
	return 0;
}

int repo_describe(const struct repo *repo, bool quick, struct json_object *answer, struct err *err)
{
	bool small = false, dirty = false;

	describe_head(repo, answer);
	if (quick)
		return 0;
	if (repo->bare) {
		json_set_i64(answer, "tracked", 0);
		json_set(answer, "submodules", json_object_new_array());
		json_set_bool(answer, "dirty", false);
		return 0;
	}
	if ((!repo->handle || count_by_handle(repo, answer, &small) < 0) &&
	    count_by_program(repo, answer, err) < 0)
		return -1;
	bool in_process = small && !repo->filters && !repo->sparse;
	if ((!in_process || dirty_by_handle(repo, &dirty) < 0) &&
	    dirty_by_program(repo, &dirty, err) < 0)
		return -1;
	json_set_bool(answer, "dirty", dirty);
	return 0;
}
