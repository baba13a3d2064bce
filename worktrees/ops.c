/*
 * ops.c - the table of operations, and those that only look.
 */
#include "worktrees/ops.h"

#include "base/file.h"
#include "base/memory.h"
#include "worktrees/work.h"

static const struct op table[] = {
	{"discover", OP_INLINE, op_discover, NULL},
	{"check_prefix", OP_INLINE, op_check_prefix, NULL},
	{"resolve", OP_INLINE, op_resolve, NULL},
	{"instructions", OP_INLINE, op_instructions, NULL},
	{"snapshot", OP_WORK, op_snapshot, NULL},
	{"create", OP_CHECKOUT, op_create, op_create_quick},
	{"reopen", OP_WORK, op_reopen, NULL},
	{"status", OP_WORK, op_status, NULL},
	{"checkpoint", OP_WORK, op_checkpoint, NULL},
	{"commit_rest", OP_WORK, op_commit_rest, NULL},
	{"fork_base", OP_WORK, op_fork_base, NULL},
	{"import", OP_WORK, op_import, NULL},
	{"diff", OP_WORK, op_diff, NULL},
	{"range", OP_WORK, op_range, NULL},
	{"facts", OP_WORK, op_facts, NULL},
	{"merge_try", OP_WORK, op_merge_try, NULL},
	{"merge_land", OP_WORK, op_merge_land, NULL},
	{"merge_check", OP_WORK, op_merge_check, NULL},
	{"checkout_gate", OP_CHECKOUT, op_checkout_gate, NULL},
	{"remove_gate", OP_WORK, op_remove_gate, NULL},
	{"checkout_view", OP_CHECKOUT, op_checkout_view, NULL},
	{"remove_view", OP_WORK, op_remove_view, NULL},
	{"remove", OP_WORK, op_remove, NULL},
	{"adopt", OP_WORK, op_adopt, NULL},
	{"prune", OP_WORK, op_prune, NULL},
	{"drop_pin", OP_WORK, op_drop_pin, NULL},
};

const struct op *op_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		if (strcmp(table[i].name, name) == 0)
			return &table[i];
	}
	return NULL;
}

static char *repo_name(const struct repo *repo)
{
	AUTO_FREE char *above = NULL;

	if (repo->toplevel && !repo->linked)
		return mem_strdup(file_base(repo->toplevel));
	/* A linked worktree has the name of its main checkout, a bare repository its own. */
	if (strcmp(file_base(repo->common_dir), ".git") != 0)
		return mem_strdup(file_base(repo->common_dir));
	above = file_dir(repo->common_dir);
	return mem_strdup(file_base(above));
}

int op_discover(const struct repo *repo, struct json_object *body, struct json_object *answer,
		struct err *err)
{
	AUTO_FREE char *name = repo_name(repo);
	char head[OID_MAX];

	json_set_str(answer, "common_dir", repo->common_dir);
	json_set_str(answer, "git_dir", repo->git_dir);
	json_set(answer, "toplevel", NULL);
	json_set_str(answer, "toplevel", repo->toplevel);
	json_set_bool(answer, "bare", repo->bare);
	json_set_str(answer, "format", repo->sha256 ? "sha256" : "sha1");
	json_set_bool(answer, "linked", repo->linked);
	json_set_bool(answer, "sparse", repo->sparse);
	json_set_str(answer, "name", name);
	if (repo_head(repo, head, NULL) == 0)
		json_set(answer, "instructions", repo_instructions(repo, head));
	else
		json_set(answer, "instructions", json_object_new_array());
	/* Asked in the same breath, so that a run with branches that cannot be made leaves no trace. */
	if (json_has(body, "prefix") && op_check_prefix(repo, body, NULL, err) < 0)
		return -1;
	return repo_describe(repo, json_flag(body, "quick", false), answer, err);
}

/* A ref that is a file where a folder is needed, or the other way round (I8, design.md). */
static int clash(const struct repo *repo, const char *ref, struct err *err)
{
	if (!repo_has_ref(repo, ref))
		return 0;
	return err_set(
		err, ERR_EXISTS,
		"the ref '%s' is in the way of baton's branches; rename it or choose another with "
		"--branch-prefix",
		ref);
}

int op_check_prefix(const struct repo *repo, struct json_object *body, struct json_object *answer,
		    struct err *err)
{
	const char *prefix, *run;

	if (json_need_str(body, "prefix", &prefix, err) < 0 ||
	    json_need_str(body, "run", &run, err) < 0)
		return -1;
	if (!work_name_valid(run))
		return err_set(err, ERR_INVALID, "'%s' is no run id", run);
	AUTO_FREE char *run_ref = mem_printf("refs/heads/%s/%s", prefix, run);
	AUTO_FREE char *pins = mem_printf("refs/baton/%s", run);
	AUTO_FREE char *path = mem_printf("refs/heads/%s", prefix);
	/* Every leading part of the prefix: "team/baton" is blocked by a branch "team" too. */
	for (char *slash = path + strlen("refs/heads/"); (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		if (clash(repo, path, err) < 0)
			return -1;
		*slash = '/';
	}
	if (clash(repo, path, err) < 0 || clash(repo, run_ref, err) < 0 ||
	    clash(repo, "refs/baton", err) < 0)
		return -1;
	return clash(repo, pins, err);
}

int op_resolve(const struct repo *repo, struct json_object *body, struct json_object *answer,
	       struct err *err)
{
	const char *rev;
	char oid[OID_MAX];

	if (json_need_str(body, "rev", &rev, err) < 0 || repo_resolve(repo, rev, oid, err) < 0)
		return -1;
	json_set_str(answer, "commit", oid);
	return 0;
}

int op_instructions(const struct repo *repo, struct json_object *body, struct json_object *answer,
		    struct err *err)
{
	const char *commit;

	if (json_need_str(body, "commit", &commit, err) < 0)
		return -1;
	if (!oid_valid(commit, repo->hex))
		return err_set(err, ERR_INVALID, "'%s' is no commit id", commit);
	json_set(answer, "instructions", repo_instructions(repo, commit));
	return 0;
}
