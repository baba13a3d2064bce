/*
 * take.c - import of the branch, checkpoints, and what else an agent's repository names.
 *
 * Only one branch is ever moved, by compare-and-swap against what was imported last: if the user
 * committed onto it or deleted it, that is his, and the import fails with the reason. Since the
 * private refs are data, a tip that is a tree, or has holes, ends at the checks of scratch_publish.
 */
#include "worktrees/take.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "worktrees/state.h"

#define CHECKPOINT_BYTES ((int64_t)200 << 20) /* I7 */
#define CHECKPOINT_FILES 20000
#define TIPS_MAX	 1000
#define START_REFS_MAX	 ((size_t)64 << 20)

/* The agent's tip, "" if there is none. */
static int take_tip(const struct scratch *scratch, char ret_oid[OID_MAX], bool *ret_from_head,
		    struct err *err)
{
	struct work_heads heads;
	bool ahead = false;

	*ret_from_head = false;
	if (work_heads(scratch->work, &heads, err) < 0)
		return -1;
	free(heads.head_ref);
	memcpy(ret_oid, heads.branch, sizeof(heads.branch));
	if (heads.on_branch || !heads.head[0] || strcmp(heads.head, heads.branch) == 0)
		return 0;
	const char *from = heads.branch[0] ? heads.branch : scratch->work->base;
	/* An unreadable HEAD elsewhere is no reason not to take the branch. */
	if (scratch_is_ancestor(scratch, from, heads.head, &ahead, NULL) < 0 || !ahead)
		return 0;
	memcpy(ret_oid, heads.head, sizeof(heads.head));
	*ret_from_head = true;
	return 0;
}

/* HEAD of a worktree of the user's that stands on the branch: moving it would change what he sees.
 */
static int check_head_file(const struct work *work, const char *dir, const char *shown,
			   struct err *err)
{
	AUTO_FREE char *path = file_join(dir, "HEAD");
	AUTO_BUF struct buf text = BUF_INIT;
	AUTO_FREE char *want = mem_printf("ref: %s\n", work->head_ref);

	if (file_read(AT_FDCWD, path, 4096, &text, NULL) < 0 || strcmp(buf_str(&text), want) != 0)
		return 0;
	return err_set(
		err, ERR_BUSY,
		"the branch '%s' is checked out in '%s'; switch to another branch there first",
		work->branch, shown);
}

static int check_not_checked_out(const struct work *work, struct err *err)
{
	AUTO_FREE char *root = entry_root(work->repo);
	DIR *dir = opendir(root);
	struct dirent *item;
	int rc = check_head_file(work, work->repo->common_dir, work->repo->common_dir, err);

	while (rc == 0 && dir && (item = readdir(dir)) != NULL) {
		AUTO_FREE char *entry = file_join(root, item->d_name);

		if (item->d_name[0] != '.')
			rc = check_head_file(work, entry, entry, err);
	}
	if (dir)
		closedir(dir);
	return rc;
}

/* What the branch pointed to before a rewrite stays reachable by the chain. */
static int keep_old(struct scratch *scratch, const char *old, struct err *err)
{
	char tree[OID_MAX], commit[OID_MAX];
	const char *const extra[] = {old, NULL};

	if (scratch_tree_of(scratch, old, tree, err) < 0)
		return -1;
	return scratch_chain(scratch, tree, extra, "baton: the branch before it was rewritten\n",
			     commit, err);
}

static int move_branch(struct scratch *scratch, struct take_result *r, struct err *err)
{
	const struct work *work = scratch->work;
	char tip[OID_MAX + 1], real[OID_MAX];
	bool contains;

	/* Proves that it is a commit before anything is copied. */
	if (scratch_tree_of(scratch, r->new_oid, real, err) < 0 ||
	    scratch_is_ancestor(scratch, r->old_oid, r->new_oid, &contains, err) < 0 ||
	    check_not_checked_out(work, err) < 0)
		return -1;
	r->rewritten = !contains;
	snprintf(tip, sizeof(tip), "%s\n", r->new_oid);
	if (scratch_publish(scratch, tip, err) < 0)
		return -1;
	if (r->rewritten) {
		/* keep_old publishes too, and settles the pack: it has to come after the tip's. */
		char *keep = take_ptr(scratch->keep);
		int rc = keep_old(scratch, r->old_oid, err);

		scratch_settle(scratch);
		scratch->keep = keep;
		if (rc < 0)
			return -1;
	}
	if (repo_move_ref(work->repo, work->head_ref, r->new_oid, r->old_oid, "baton: import",
			  err) < 0)
		return -1;
	scratch_settle(scratch);
	return entry_set_head(work, r->new_oid, err);
}

int take_branch(struct scratch *scratch, struct take_result *ret, struct err *err)
{
	const struct work *work = scratch->work;
	char now[OID_MAX];

	*ret = (struct take_result){.rewritten = false};
	if (entry_head(work, ret->old_oid, err) < 0)
		return -1;
	if (repo_ref(work->repo, work->head_ref, now, NULL) < 0)
		return err_set(err, ERR_CHANGED,
			       "the branch '%s' was deleted; 'git branch %s %.12s' makes it again",
			       work->branch, work->branch, ret->old_oid);
	if (take_tip(scratch, ret->new_oid, &ret->from_head, err) < 0)
		return -1;
	if (!ret->new_oid[0])
		return err_set(err, ERR_NOT_FOUND, "the agent's repository has no branch '%s'",
			       work->branch);
	/* A kill between the ref's move and the entry's: the branch is where we wanted it. */
	if (strcmp(now, ret->new_oid) == 0)
		return entry_set_head(work, now, err);
	if (strcmp(now, ret->old_oid) != 0)
		return err_set(err, ERR_CHANGED,
			       "the branch '%s' was moved by somebody else to %s; the agent's work "
			       "was not put there",
			       work->branch, now);
	return move_branch(scratch, ret, err);
}

/* --- checkpoints --- */

static int chain_tree(const struct scratch *scratch, char ret_pin[OID_MAX], char ret_tree[OID_MAX],
		      struct err *err)
{
	if (repo_ref(scratch->work->repo, scratch->work->pin_ref, ret_pin, err) < 0)
		return -1;
	return scratch_tree_of(scratch, ret_pin, ret_tree, err);
}

/* What the commit says beside the caller's words: where HEAD was and what was unfinished. */
static char *full_message(const struct scratch *scratch, const char *message)
{
	AUTO_BUF struct buf text = BUF_INIT;
	struct work_heads heads = {.head = ""};
	const char *doing = hostile_in_progress(scratch->work->git_dir);

	buf_addf(&text, "%s\n\n", message);
	if (work_heads(scratch->work, &heads, NULL) == 0) {
		buf_addf(&text, "Baton-Head: %s %s\n", heads.head,
			 heads.head_ref ? heads.head_ref : "detached");
		buf_addf(&text, "Baton-Branch: %s %s\n", heads.branch, scratch->work->branch);
		free(heads.head_ref);
	}
	if (doing)
		buf_addf(&text, "Baton-In-Progress: %s\n", doing);
	return buf_take(&text);
}

int take_checkpoint(struct scratch *scratch, const char *message, struct json_object *touched,
		    const char *const *extra, char ret_commit[OID_MAX], bool *ret_changed,
		    char **ret_kept, struct err *err)
{
	AUTO_FREE char *own = work_path(scratch->work, "raw.index");
	AUTO_START struct state_start start = {.index = NULL};
	struct state_opts opts = {.scope = GIT_RAW,
				  .index_from = own,
				  .touched = touched,
				  .max_bytes = CHECKPOINT_BYTES,
				  .max_files = CHECKPOINT_FILES};
	char tree[OID_MAX], before[OID_MAX];
	struct err why = ERR_INIT;

	*ret_changed = false;
	if (!file_exists(own)) {
		/* That of a branch would do as well, were its files not stored as git converts them. */
		state_start(scratch, NULL, &start);
		opts.index_from = start.index;
		opts.index_tree = start.tree[0] ? start.tree : NULL;
	}
	if (state_tree(scratch, &opts, tree, &why) < 0) {
		if (why.code == ERR_TOO_LARGE) {
			*ret_kept = mem_strdup(why.message);
			return 0;
		}
		return err_set(err, why.code, "%s", why.message);
	}
	if (chain_tree(scratch, ret_commit, before, err) < 0)
		return -1;
	if (strcmp(tree, before) == 0 && !(extra && extra[0]))
		return 0;
	AUTO_FREE char *text = full_message(scratch, message);
	if (scratch_chain(scratch, tree, extra, text, ret_commit, err) < 0)
		return -1;
	*ret_changed = true;
	/* Only now do the blobs that this index names exist outside scratch. */
	return rename(scratch->index, own) < 0 ? err_sys(err, "cannot keep '%s'", own) : 0;
}

/* --- everything else that has a name --- */

/* A set of lines, sorted; the text is changed and borrowed. */
struct lines {
	char **items;
	size_t n, cap;
};

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void lines_of(struct lines *set, struct buf *text)
{
	char *rest = text->data, *line;

	while (rest && (line = strsep(&rest, "\n")) != NULL) {
		if (!*line)
			continue;
		MEM_GROW(set->items, set->cap, set->n + 1);
		set->items[set->n++] = line;
	}
	if (set->n)
		qsort(set->items, set->n, sizeof(*set->items), by_text);
}

static bool lines_have(const struct lines *set, const char *line)
{
	return set->n && bsearch(&line, set->items, set->n, sizeof(*set->items), by_text);
}

static void lines_release(struct lines *set)
{
	free(set->items);
}
#define AUTO_LINES __attribute__((cleanup(lines_release)))

/* What all refs of the user's stand at, and what those stood at that the private repository was
 * given: a branch that the user deleted since is no work of the agent's. */
static int users_tips(const struct scratch *scratch, struct buf *now, struct buf *given,
		      struct err *err)
{
	AUTO_FREE char *start = work_path(scratch->work, WORK_START_REFS);
	AUTO_BUF struct buf text = BUF_INIT;

	if (repo_tips(scratch->work->repo, now, err) < 0)
		return -1;
	/* Older worktrees lack it: then a little too much is kept. */
	if (file_read(AT_FDCWD, start, START_REFS_MAX, &text, NULL) < 0)
		return 0;
	char *rest = text.data, *line;
	while (rest && (line = strsep(&rest, "\n")) != NULL)
		buf_addf(given, "%.*s\n", (int)strcspn(line, " "), line);
	return 0;
}

/* Each must be there, or the private repository has holes. `out`: those that may be commits. */
static int check_there(const struct scratch *scratch, const struct buf *tips, struct buf *out,
		       struct err *err)
{
	struct git_cmd all = scratch_cmd(scratch, GIT_PLAIN);
	AUTO_BUF struct buf types = BUF_INIT;

	all.work_tree = NULL;
	all.in = tips;
	if (git_run(&all,
		    GIT_ARGS("cat-file", "--batch-check=%(objectname) %(objecttype)", "--buffer"),
		    &types, err) < 0)
		return -1;
	char *rest = types.data, *line;
	while (rest && (line = strsep(&rest, "\n")) != NULL) {
		if (text_ends(line, " missing"))
			return err_set(err, ERR_INVALID,
				       "the agent's repository lacks the object %.*s",
				       (int)scratch->work->repo->hex, line);
		if (*line)
			buf_addf(out, "%.*s^{commit}\n", (int)scratch->work->repo->hex, line);
	}
	return 0;
}

/* Of the oids in `named` those that are neither the user's own nor where one of his refs stands, if
 * they are commits, each once. Nearly always that leaves none, at the price of one git. */
static int new_tips(const struct scratch *scratch, struct buf *named, struct buf *now,
		    struct buf *out, struct err *err)
{
	AUTO_BUF struct buf known = BUF_INIT;
	AUTO_BUF struct buf given = BUF_INIT;
	AUTO_BUF struct buf fresh = BUF_INIT;
	AUTO_BUF struct buf commits = BUF_INIT;
	AUTO_LINES struct lines tips = {0}, users = {0};
	struct git_cmd cmd = scratch_cmd(scratch, GIT_PLAIN);

	if (users_tips(scratch, now, &given, err) < 0)
		return -1;
	buf_addf(&known, "%s%s", buf_str(now), buf_str(&given));
	lines_of(&users, &known);
	lines_of(&tips, named);
	for (size_t i = 0; i < tips.n; i++) {
		if ((i == 0 || strcmp(tips.items[i], tips.items[i - 1]) != 0) &&
		    !lines_have(&users, tips.items[i]))
			buf_addf(&fresh, "%s\n", tips.items[i]);
	}
	if (!fresh.len)
		return 0;
	if (check_there(scratch, &fresh, &commits, err) < 0)
		return -1;
	cmd.work_tree = NULL;
	cmd.in = &commits;
	/* --no-walk peels tags and says each commit once. */
	return git_run(&cmd, GIT_ARGS("rev-list", "--no-walk=unsorted", "--stdin"), out, err);
}

/* Of these commits those that no ref of the user's reaches. That his objects have one says nothing:
 * a fetch from the private repository, or an import that was killed, leaves objects that the next gc
 * takes. */
static int unreached_only(const struct scratch *scratch, struct buf *tips, struct buf *now,
			  struct buf *out, struct err *err)
{
	struct git_cmd cmd = scratch_cmd(scratch, GIT_PLAIN);
	AUTO_BUF struct buf in = BUF_INIT;
	AUTO_BUF struct buf walked = BUF_INIT;
	AUTO_LINES struct lines list = {0}, unreached = {0}, refs = {0};
	size_t count = 0;

	buf_adds(&in, buf_str(tips));
	lines_of(&refs, now);
	for (size_t i = 0; i < refs.n; i++)
		buf_addf(&in, "^%s\n", refs.items[i]);
	cmd.work_tree = NULL;
	cmd.in = &in;
	/* A broken ref of the user's reaches nothing; the tips are known to be there. */
	if (git_run(&cmd, GIT_ARGS("rev-list", "--ignore-missing", "--stdin"), &walked, err) < 0)
		return -1;
	lines_of(&unreached, &walked);
	lines_of(&list, tips);
	for (size_t i = 0; i < list.n; i++) {
		if (!lines_have(&unreached, list.items[i]))
			continue;
		buf_addf(out, "%s\n", list.items[i]);
		count++;
	}
	if (count > TIPS_MAX)
		return err_set(err, ERR_TOO_LARGE,
			       "the agent's repository has %zu unknown branches", count);
	return 0;
}

int take_loose_tips(const struct scratch *scratch, struct buf *out, struct err *err)
{
	AUTO_BUF struct buf named = BUF_INIT;
	AUTO_BUF struct buf now = BUF_INIT;
	AUTO_BUF struct buf tips = BUF_INIT;

	if (hostile_tips(scratch->work->git_dir, scratch->work->repo->hex, &named, err) < 0 ||
	    new_tips(scratch, &named, &now, &tips, err) < 0)
		return -1;
	return tips.len ? unreached_only(scratch, &tips, &now, out, err) : 0;
}
