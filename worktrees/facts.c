/*
 * facts.c - what the objects say about a handoff document: are its commits on the branch, which blob is a file, does a name
 * stand anywhere in the tree?
 *
 * The answers are given as they are found; what of them is good or bad is for the caller. Everything that is asked for comes from a
 * document that anybody may have written, so it goes to git on stdin or behind `-e` and never as a word of a command line.
 * Of an agent's work history is read through scratch (its repository is data), of the user's directly.
 */
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "worktrees/git.h"
#include "worktrees/ops.h"
#include "worktrees/scratch.h"

#define COMMITS_MAX 1000
#define FILES_MAX   5000
#define NAMES_MAX   64
#define TIPS_MAX    8

struct facts {
	const struct repo *repo;
	struct work work;
	struct scratch scratch;
	struct git_cmd cmd; /* reads all objects in question */
	char tips[TIPS_MAX][OID_MAX];
	size_t n_tips;
	char tree[OID_MAX]; /* commit whose files count; "": the user's checkout */
};

static void facts_close(struct facts *f)
{
	scratch_close(&f->scratch);
	work_release(&f->work);
}

/* ---- where to look ---- */

/* The agent's own tip, and the last commit that was taken over from it. */
static int open_agent(struct facts *f, struct json_object *body, struct err *err)
{
	struct work_heads heads;

	if (work_init(&f->work, f->repo, body, err) < 0 ||
	    scratch_open(&f->scratch, &f->work, err) < 0 || work_heads(&f->work, &heads, err) < 0)
		return -1;
	free(heads.head_ref);
	f->cmd = scratch_cmd(&f->scratch, GIT_PLAIN);
	if (heads.branch[0])
		memcpy(f->tips[f->n_tips++], heads.branch, OID_MAX);
	if (heads.head[0] && strcmp(heads.head, heads.branch) != 0)
		memcpy(f->tips[f->n_tips++], heads.head, OID_MAX);
	return 0;
}

static void add_tips(struct facts *f, struct json_object *tips)
{
	for (size_t i = 0; i < json_len(tips) && f->n_tips < TIPS_MAX; i++) {
		const char *rev = json_object_get_string(json_at(tips, i));
		if (rev && *rev && *rev != '-' &&
		    repo_resolve(f->repo, rev, f->tips[f->n_tips], NULL) == 0)
			f->n_tips++;
	}
}

static int facts_open(struct facts *f, struct json_object *body, struct err *err)
{
	const char *tree = json_str(body, "tree", NULL);

	f->cmd = (struct git_cmd){.repo = f->repo, .scope = GIT_USER};
	if (json_has(body, "agent") && open_agent(f, body, err) < 0)
		return -1;
	add_tips(f, json_arr(body, "tips"));
	if (tree && !oid_valid(tree, f->repo->hex))
		return err_set(err, ERR_INVALID, "'%s' is no commit id", tree);
	if (tree)
		memcpy(f->tree, tree, f->repo->hex + 1);
	else if (!json_flag(body, "worktree", false) && f->n_tips)
		memcpy(f->tree, f->tips[0], OID_MAX);
	if (!f->tree[0] && !f->repo->toplevel)
		return err_set(err, ERR_UNSUPPORTED,
			       "a bare repository has no checkout to look at");
	return 0;
}

/* ---- commits ---- */

/* The line that answers each line of `asked`, in their order. */
static int batch_check(const struct facts *f, const struct buf *asked, struct buf *out,
		       struct err *err)
{
	struct git_cmd cmd = f->cmd;

	cmd.in = asked;
	return asked->len
		       ? git_run(&cmd,
				 GIT_ARGS("cat-file", "--batch-check=%(objecttype) %(objectname)",
					  "--buffer"),
				 out, err)
		       : 0;
}

static bool listed(const struct buf *lines, const char *oid)
{
	size_t n = strlen(oid);

	for (const char *at = lines->data; at && *at; at++) {
		if (strncmp(at, oid, n) == 0 && (at[n] == '\n' || !at[n]))
			return true;
		at = strchr(at, '\n');
		if (!at)
			break;
	}
	return false;
}

/* Those of the commits that no tip reaches are the ones that this lists: one walk for all of them. */
static int find_off(const struct facts *f, struct json_object *found, struct buf *off,
		    struct err *err)
{
	AUTO_BUF struct buf asked = BUF_INIT;
	struct git_cmd cmd = f->cmd;

	json_object_object_foreach (found, id, value) {
		if (strcmp(json_object_get_string(value), "off") == 0)
			buf_addf(&asked, "%s\n", id);
	}
	if (!asked.len || !f->n_tips)
		return 0;
	for (size_t i = 0; i < f->n_tips; i++)
		buf_addf(&asked, "^%s\n", f->tips[i]);
	cmd.in = &asked;
	return git_run(&cmd, GIT_ARGS("rev-list", "--stdin"), off, err);
}

static int answer_commits(const struct facts *f, struct json_object *ids,
			  struct json_object *answer, struct err *err)
{
	struct json_object *found = json_object_new_object();
	AUTO_BUF struct buf asked = BUF_INIT;
	AUTO_BUF struct buf types = BUF_INIT;
	AUTO_BUF struct buf off = BUF_INIT;
	size_t n = MIN(json_len(ids), (size_t)COMMITS_MAX);

	json_set(answer, "commits", found);
	for (size_t i = 0; i < n; i++) {
		const char *id = json_object_get_string(json_at(ids, i));
		if (id && oid_valid(id, f->repo->hex) && !json_has(found, id)) {
			json_set_str(found, id, "none");
			buf_addf(&asked, "%s\n", id);
		}
	}
	if (batch_check(f, &asked, &types, err) < 0)
		return -1;
	char *rest = types.data, *line;
	while (rest && (line = strsep(&rest, "\n")) != NULL)
		if (text_starts(line, "commit "))
			json_set_str(found, line + strlen("commit "), "off");
	if (find_off(f, found, &off, err) < 0)
		return -1;
	for (size_t i = 0; i < n && f->n_tips; i++) {
		const char *id = json_object_get_string(json_at(ids, i));
		if (id && strcmp(json_str(found, id, ""), "off") == 0 && !listed(&off, id))
			json_set_str(found, id, "on");
	}
	return 0;
}

/* ---- files ---- */

/* As git names it within a tree; NULL: no such path can be there. */
static const char *path_in_tree(const char *path)
{
	while (path && text_starts(path, "./"))
		path += 2;
	if (!path || !*path || *path == '/' || strchr(path, '\n') || strcmp(path, "..") == 0 ||
	    text_starts(path, "../") || strstr(path, "/../") || text_ends(path, "/.."))
		return NULL;
	return path;
}

/* The paths that git is asked for, in the order of the lines of its answer. */
struct asked_paths {
	const char *list[FILES_MAX];
	size_t n;
	struct buf lines;
};

static void take_answers(struct asked_paths *asked, char *text, struct json_object *found)
{
	for (size_t i = 0; i < asked->n && text; i++) {
		const char *line = strsep(&text, "\n");
		if (text_starts(line, "blob ") || text_starts(line, "tree "))
			json_set_str(found, asked->list[i], line + 5);
	}
}

static int files_of_tree(const struct facts *f, struct json_object *paths,
			 struct json_object *found, struct asked_paths *asked, struct err *err)
{
	AUTO_BUF struct buf out = BUF_INIT;

	for (size_t i = 0; i < json_len(paths) && asked->n < FILES_MAX; i++) {
		const char *name = json_object_get_string(json_at(paths, i));
		const char *path = path_in_tree(name);
		json_set_str(found, name ? name : "", "");
		if (!path)
			continue;
		asked->list[asked->n++] = name;
		buf_addf(&asked->lines, "%s:%s\n", f->tree, path);
	}
	if (batch_check(f, &asked->lines, &out, err) < 0)
		return -1;
	take_answers(asked, out.data, found);
	return 0;
}

/* Of the user's checkout as it is, with his filters. A link, or what a link leads to, is not hashed: null. */
static int files_of_checkout(const struct facts *f, struct json_object *paths,
			     struct json_object *found, struct asked_paths *asked, struct err *err)
{
	AUTO_BUF struct buf out = BUF_INIT;
	struct git_cmd cmd = f->cmd;

	for (size_t i = 0; i < json_len(paths) && asked->n < FILES_MAX; i++) {
		const char *name = json_object_get_string(json_at(paths, i));
		const char *path = path_in_tree(name);
		AUTO_FREE char *whole = path ? file_join(f->repo->toplevel, path) : NULL;
		struct stat st;
		json_set_str(found, name ? name : "", "");
		if (!whole || lstat(whole, &st) < 0)
			continue;
		json_set(found, name, NULL);
		if (!S_ISREG(st.st_mode) || access(whole, R_OK) < 0 ||
		    !file_lies_in(f->repo->toplevel, whole))
			continue;
		asked->list[asked->n++] = name;
		buf_addf(&asked->lines, "%s\n", path);
	}
	cmd.in = &asked->lines;
	if (asked->n && git_run(&cmd, GIT_ARGS("hash-object", "--stdin-paths"), &out, err) < 0)
		return -1;
	char *text = out.data;
	for (size_t i = 0; i < asked->n && text; i++)
		json_set_str(found, asked->list[i], strsep(&text, "\n"));
	return 0;
}

static int answer_files(const struct facts *f, struct json_object *paths,
			struct json_object *answer, struct err *err)
{
	struct json_object *found = json_object_new_object();
	struct asked_paths *asked = mem_alloc(sizeof(*asked));
	int rc;

	json_set(answer, "files", found);
	rc = f->tree[0] ? files_of_tree(f, paths, found, asked, err)
			: files_of_checkout(f, paths, found, asked, err);
	buf_release(&asked->lines);
	free(asked);
	return rc;
}

/* ---- names ---- */

static int answer_names(const struct facts *f, struct json_object *names,
			struct json_object *answer, struct err *err)
{
	struct json_object *found = json_object_new_object();

	json_set(answer, "names", found);
	for (size_t i = 0; i < json_len(names) && i < NAMES_MAX; i++) {
		const char *name = json_object_get_string(json_at(names, i));
		struct git_cmd cmd = f->cmd;
		int status = 0;
		cmd.ret_status = &status;
		if (!name || !*name || strchr(name, '\n') || json_has(found, name))
			continue;
		const char *const in_tree[] = {"grep", "-q", "-F", "-e", name, f->tree, "--", NULL};
		const char *const in_checkout[] = {"grep", "-q", "-F", "--untracked",
						   "-e",   name, "--", NULL};
		if (git_run(&cmd, f->tree[0] ? in_tree : in_checkout, NULL, err) < 0)
			return -1;
		if (status == 0 || status == 1)
			json_set_bool(found, name, status == 0);
	}
	return 0;
}

int op_facts(const struct repo *repo, struct json_object *body, struct json_object *answer,
	     struct err *err)
{
	__attribute__((cleanup(facts_close))) struct facts f = {
		.repo = repo, .work = WORK_INIT, .scratch = SCRATCH_INIT};

	if (facts_open(&f, body, err) < 0)
		return -1;
	json_set(answer, "tip", NULL);
	json_set(answer, "tree", NULL);
	if (f.n_tips)
		json_set_str(answer, "tip", f.tips[0]);
	if (f.tree[0])
		json_set_str(answer, "tree", f.tree);
	if (answer_commits(&f, json_arr(body, "commits"), answer, err) < 0 ||
	    answer_files(&f, json_arr(body, "files"), answer, err) < 0)
		return -1;
	return answer_names(&f, json_arr(body, "names"), answer, err);
}
