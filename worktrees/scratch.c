/*
 * scratch.c - work on one agent's state, and the one door into the user's objects.
 *
 * Runs in workers. Objects are made in a folder of their own and enter the user's repository as one
 * pack: pack-objects reads scratch, the staged private objects and the user's; index-pack --strict
 * sees the user's alone, so nothing that the commit needs can be missing or come from elsewhere,
 * and nothing that is broken gets in. Half an operation leaves no objects in the user's repository.
 */
#include "worktrees/scratch.h"

#include <stdio.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "worktrees/disk.h"

#define PACK_MAX "2147483648" /* bytes that one import may bring */

static char *path_list(const char *a, const char *b)
{
	AUTO_BUF struct buf list = BUF_INIT;

	disk_quote(&list, a);
	buf_addc(&list, ':');
	disk_quote(&list, b);
	return buf_take(&list);
}

int scratch_open(struct scratch *scratch, struct work *work, struct err *err)
{
	AUTO_FREE char *index_lock = work_path(work, "scratch.index.lock");

	*scratch = (struct scratch){.work = work};
	scratch->objects = work_path(work, "scratch");
	scratch->incoming = work_path(work, "incoming");
	scratch->index = work_path(work, "scratch.index");
	scratch->read_list = path_list(work->repo->objects, scratch->incoming);
	scratch->publish_list = path_list(scratch->objects, scratch->incoming);
	if (work_lock(work, err) < 0)
		return -1;
	unlink(scratch->index);
	/* Under our lock no git of ours lives: this is the lock file of one that was killed. */
	unlink(index_lock);
	if (disk_remove(scratch->objects, err) < 0 || disk_remove(scratch->incoming, err) < 0)
		return -1;
	if (mkdir(scratch->objects, 0700) < 0)
		return err_sys(err, "cannot make '%s'", scratch->objects);
	return hostile_stage(work->git_dir, scratch->incoming, work->repo->hex, err);
}

void scratch_close(struct scratch *scratch)
{
	if (!scratch->work)
		return;
	scratch_settle(scratch);
	unlink(scratch->index);
	disk_remove(scratch->objects, NULL);
	disk_remove(scratch->incoming, NULL);
	free(scratch->objects);
	free(scratch->incoming);
	free(scratch->index);
	free(scratch->read_list);
	free(scratch->publish_list);
	mem_close_fd(&scratch->work->lock_fd);
	scratch->work = NULL;
}

struct git_cmd scratch_cmd(const struct scratch *scratch, enum git_scope scope)
{
	return (struct git_cmd){.repo = scratch->work->repo,
				.scope = scope,
				.work_tree = scratch->work->worktree,
				.index = scratch->index,
				.objects = scratch->objects,
				.alternates = scratch->read_list};
}

static int take_oid(const struct scratch *scratch, const char *line, char ret_oid[OID_MAX],
		    struct err *err)
{
	if (!line || !oid_valid(line, scratch->work->repo->hex))
		return err_set(err, ERR_INVALID, "git gave no object id");
	memcpy(ret_oid, line, scratch->work->repo->hex + 1);
	return 0;
}

/* Git commands that need no worktree are kept out of it. */
static struct git_cmd objects_cmd(const struct scratch *scratch)
{
	struct git_cmd cmd = scratch_cmd(scratch, GIT_PLAIN);

	cmd.work_tree = NULL;
	cmd.index = NULL;
	return cmd;
}

int scratch_commit(const struct scratch *scratch, const char *tree, const char *const *parents,
		   const char *message, bool identity, char ret_oid[OID_MAX], struct err *err)
{
	const struct repo *repo = scratch->work->repo;
	bool user = identity && repo->user_name && repo->user_email;
	AUTO_FREE char *author = mem_printf("GIT_AUTHOR_NAME=%s", user ? repo->user_name : "baton");
	AUTO_FREE char *author_mail =
		mem_printf("GIT_AUTHOR_EMAIL=%s", user ? repo->user_email : "baton@localhost");
	const char *const env[] = {author, author_mail, "GIT_COMMITTER_NAME=baton",
				   "GIT_COMMITTER_EMAIL=baton@localhost", NULL};
	struct git_cmd cmd = objects_cmd(scratch);
	AUTO_BUF struct buf text = BUF_INIT;
	AUTO_FREE const char **args = NULL;
	AUTO_FREE char *line = NULL;
	size_t n = 0, count = 0;

	while (parents && parents[count])
		count++;
	args = mem_array(NULL, 2 * count + 5, sizeof(*args));
	args[n++] = "commit-tree";
	args[n++] = tree;
	for (size_t i = 0; i < count; i++) {
		args[n++] = "-p";
		args[n++] = parents[i];
	}
	args[n] = NULL;
	text_sanitize(&text, message, strlen(message));
	cmd.env = env;
	cmd.in = &text;
	if (git_line(&cmd, args, &line, err) < 0)
		return -1;
	return take_oid(scratch, line, ret_oid, err);
}

/* --- into the user's objects --- */

static void negative(const struct scratch *scratch, const char *ref, struct buf *in)
{
	char oid[OID_MAX];

	if (repo_ref(scratch->work->repo, ref, oid, NULL) == 0)
		buf_addf(in, "^%s\n", oid);
}

/* index-pack says "keep\tHASH" or "pack\tHASH". */
static void remember_keep(struct scratch *scratch, const char *said)
{
	const char *tab = strchr(said, '\t');

	if (!tab || !text_starts(said, "keep"))
		return;
	scratch_settle(scratch);
	scratch->keep = mem_printf("%s/pack/pack-%.*s.keep", scratch->work->repo->objects,
				   (int)strcspn(tab + 1, "\n"), tab + 1);
}

int scratch_publish(struct scratch *scratch, const char *tips, struct err *err)
{
	const struct work *work = scratch->work;
	AUTO_BUF struct buf in = BUF_INIT;
	AUTO_BUF struct buf said = BUF_INIT;
	AUTO_FREE char *keep = mem_printf("--keep=baton %s", work->run);
	struct git_cmd from = {.repo = work->repo,
			       .scope = GIT_USER,
			       .alternates = scratch->publish_list,
			       .in = &in};
	struct git_cmd to = {.repo = work->repo, .scope = GIT_USER, .durable = true};

	buf_adds(&in, tips);
	buf_addf(&in, "^%s\n", work->base);
	negative(scratch, work->pin_ref, &in);
	negative(scratch, work->head_ref, &in);
	negative(scratch, "HEAD", &in);
	if (git_pipe(&from,
		     GIT_ARGS("-c", "core.multiPackIndex=false", "-c", "core.commitGraph=false",
			      "pack-objects", "--revs", "--stdout", "-q", "--threads=1",
			      "--delta-base-offset", "--no-use-bitmap-index"),
		     &to,
		     GIT_ARGS("index-pack", "--stdin", "--strict", keep,
			      "--max-input-size=" PACK_MAX),
		     &said, err) < 0)
		return err_prefix(err, "the agent's objects were not taken over");
	remember_keep(scratch, buf_str(&said));
	return 0;
}

void scratch_settle(struct scratch *scratch)
{
	if (scratch->keep)
		unlink(scratch->keep);
	free(scratch->keep);
	scratch->keep = NULL;
}

/* --- questions about commits --- */

int scratch_is_ancestor(const struct scratch *scratch, const char *older, const char *newer,
			bool *ret, struct err *err)
{
	struct git_cmd cmd = objects_cmd(scratch);
	int status = 0;

	cmd.ret_status = &status;
	if (git_run(&cmd, GIT_ARGS("merge-base", "--is-ancestor", older, newer), NULL, err) < 0)
		return -1;
	if (status > 1)
		return err_set(err, ERR_INVALID, "the history of %s cannot be read", newer);
	*ret = status == 0;
	return 0;
}

int scratch_tree_of(const struct scratch *scratch, const char *commit, char ret_oid[OID_MAX],
		    struct err *err)
{
	struct git_cmd cmd = objects_cmd(scratch);
	AUTO_FREE char *spec = mem_printf("%s^{tree}", commit);
	AUTO_FREE char *line = NULL;

	if (git_line(&cmd, GIT_ARGS("rev-parse", "--verify", "--end-of-options", spec), &line,
		     err) < 0)
		return -1;
	return take_oid(scratch, line, ret_oid, err);
}

struct json_object *scratch_commits(const struct scratch *scratch, const char *from, const char *to,
				    struct err *err)
{
	struct git_cmd cmd = objects_cmd(scratch);
	AUTO_FREE char *range = mem_printf("%s..%s", from, to);
	AUTO_BUF struct buf out = BUF_INIT;
	struct json_object *list;

	if (git_run(&cmd,
		    GIT_ARGS("log", "-z", "--format=%H %s", "--no-show-signature",
			     "--max-count=500", range),
		    &out, err) < 0)
		return NULL;
	list = json_object_new_array();
	for (const char *p = buf_str(&out), *end = p + out.len; p < end; p += strlen(p) + 1) {
		size_t hex = scratch->work->repo->hex;
		struct json_object *one;

		if (strlen(p) < hex)
			continue;
		one = json_object_new_object();
		json_set_strn(one, "id", p, hex);
		json_set_str(one, "subject", p[hex] ? p + hex + 1 : "");
		json_object_array_add(list, one);
	}
	return list;
}

/* --- the chain of checkpoints --- */

int scratch_chain(struct scratch *scratch, const char *tree, const char *const *extra,
		  const char *message, char ret_oid[OID_MAX], struct err *err)
{
	const struct work *work = scratch->work;
	AUTO_FREE const char **parents = NULL;
	char pin[OID_MAX], tip[OID_MAX + 1];
	size_t n = 0;

	if (repo_ref(work->repo, work->pin_ref, pin, err) < 0)
		return -1;
	while (extra && extra[n])
		n++;
	parents = mem_array(NULL, n + 2, sizeof(*parents));
	parents[0] = pin;
	for (size_t i = 0; i < n; i++)
		parents[i + 1] = extra[i];
	parents[n + 1] = NULL;
	if (scratch_commit(scratch, tree, parents, message, false, ret_oid, err) < 0)
		return -1;
	snprintf(tip, sizeof(tip), "%s\n", ret_oid);
	if (scratch_publish(scratch, tip, err) < 0 ||
	    repo_move_ref(work->repo, work->pin_ref, ret_oid, pin, "baton: checkpoint", err) < 0)
		return -1;
	scratch_settle(scratch);
	return 0;
}
