/*
 * scratch.c - work on one agent's state, and the one door into the user's objects.
 *
 * Runs in workers. Objects are made in a folder of their own and enter the user's repository as one
 * pack: pack-objects reads scratch, the staged private objects and the user's; index-pack --strict
 * sees the user's alone, so nothing that the commit needs can be missing or come from elsewhere,
 * and nothing that is broken gets in. Half an operation leaves no objects in the user's repository.
 */
#include "worktrees/scratch.h"

#include <git2.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "worktrees/ask.h"
#include "worktrees/disk.h"

#define PACK_MAX    "2147483648" /* bytes that one import may bring */
#define COMMITS_MAX ((size_t)1 << 20)

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

/* Git commands that need no worktree are kept out of it. */
static struct git_cmd objects_cmd(const struct scratch *scratch)
{
	struct git_cmd cmd = scratch_cmd(scratch, GIT_PLAIN);

	cmd.work_tree = NULL;
	cmd.index = NULL;
	return cmd;
}

#define OWN_NAME "baton"
#define OWN_MAIL "baton@localhost"

static int add_person(struct buf *out, const char *role, const char *name, const char *mail)
{
	git_signature *who = NULL;

	/* Both drop the same characters at the ends of a name; what else is odd is for the program. */
	if (strpbrk(name, "<>\n") || strpbrk(mail, "<>\n") ||
	    git_signature_now(&who, name, mail) < 0)
		return -1;
	int offset = abs(who->when.offset);
	buf_addf(out, "%s %s <%s> %lld %c%02d%02d\n", role, who->name, who->email,
		 (long long)who->when.time, who->when.offset < 0 ? '-' : '+', offset / 60,
		 offset % 60);
	git_signature_free(who);
	return 0;
}

/* Into scratch, which is thrown away and not worth a sync, or into the user's objects, durable and with the modes of
 * repo_make_refs. */
static int write_commit(const struct scratch *scratch, bool home, const struct buf *text,
			git_oid *ret)
{
	const struct repo *repo = scratch->work->repo;
	mode_t mask = umask(home ? ~repo->mode & 022 : 077);
	git_odb *odb = NULL;

	git_libgit2_opts(GIT_OPT_ENABLE_FSYNC_GITDIR, (int)home);
	int rc = home ? git_repository_odb(&odb, repo->handle)
		      : git_odb_open(&odb, scratch->objects);
	if (rc == 0)
		rc = git_odb_write(ret, odb, text->data, text->len, GIT_OBJECT_COMMIT);
	git_libgit2_opts(GIT_OPT_ENABLE_FSYNC_GITDIR, 1);
	git_odb_free(odb);
	umask(mask);
	return rc;
}

struct commit {
	const char *tree, *const *parents; /* NULL-terminated, or NULL */
	const char *name, *mail;
	struct buf message;
	bool home; /* straight into the user's objects: see tree_is_home */
};

/* In process: the bytes are our own, and nothing of a box's is read. -1: it is the program's turn. */
static int commit_here(const struct scratch *scratch, const struct commit *c, char ret_oid[OID_MAX])
{
	const struct repo *repo = scratch->work->repo;
	AUTO_BUF struct buf text = BUF_INIT;
	git_oid oid;

	if (repo->sha256 || (c->home && (!repo->handle || !repo->mode)))
		return -1;
	buf_addf(&text, "tree %s\n", c->tree);
	for (const char *const *parent = c->parents; parent && *parent; parent++)
		buf_addf(&text, "parent %s\n", *parent);
	if (add_person(&text, "author", c->name, c->mail) < 0 ||
	    add_person(&text, "committer", OWN_NAME, OWN_MAIL) < 0)
		return -1;
	buf_addf(&text, "\n%s", buf_str(&c->message));
	if (write_commit(scratch, c->home, &text, &oid) < 0)
		return -1;
	git_oid_tostr(ret_oid, GIT_OID_HEXSZ + 1, &oid);
	return 0;
}

static int commit_by_program(const struct scratch *scratch, const struct commit *c,
			     char ret_oid[OID_MAX], struct err *err)
{
	AUTO_FREE char *author = mem_printf("GIT_AUTHOR_NAME=%s", c->name);
	AUTO_FREE char *author_mail = mem_printf("GIT_AUTHOR_EMAIL=%s", c->mail);
	const char *const env[] = {author, author_mail, "GIT_COMMITTER_NAME=" OWN_NAME,
				   "GIT_COMMITTER_EMAIL=" OWN_MAIL, NULL};
	struct git_cmd cmd = objects_cmd(scratch);

	if (c->home)
		cmd = (struct git_cmd){.repo = cmd.repo, .scope = GIT_USER, .durable = true};
	cmd.env = env;
	cmd.in = &c->message;
	return ask_commit_tree(&cmd, c->tree, c->parents, ret_oid, err);
}

static int make_commit(const struct scratch *scratch, struct commit *c, const char *message,
		       char ret_oid[OID_MAX], struct err *err)
{
	text_sanitize(&c->message, message, strlen(message));
	int rc = commit_here(scratch, c, ret_oid);
	if (rc < 0)
		rc = commit_by_program(scratch, c, ret_oid, err);
	buf_release(&c->message);
	return rc;
}

int scratch_commit(const struct scratch *scratch, const char *tree, const char *const *parents,
		   const char *message, bool identity, char ret_oid[OID_MAX], struct err *err)
{
	const struct repo *repo = scratch->work->repo;
	bool user = identity && repo->user_name && repo->user_email;
	struct commit commit = {.tree = tree,
				.parents = parents,
				.name = user ? repo->user_name : OWN_NAME,
				.mail = user ? repo->user_email : OWN_MAIL,
				.message = BUF_INIT};

	return make_commit(scratch, &commit, message, ret_oid, err);
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

	return ask_is_ancestor(&cmd, older, newer, ret, err);
}

int scratch_tree_of(const struct scratch *scratch, const char *commit, char ret_oid[OID_MAX],
		    struct err *err)
{
	struct git_cmd cmd = objects_cmd(scratch);

	return ask_tree_of(&cmd, commit, ret_oid, err);
}

static struct json_object *list_commits(const struct scratch *scratch, const char *from,
					const char *to, struct err *err)
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

/* A list never changes, and an agent's end asks for the same one several times: the last is kept. */
struct json_object *scratch_commits(const struct scratch *scratch, const char *from, const char *to,
				    struct err *err)
{
	AUTO_FREE char *path = work_path(scratch->work, "commits.json");
	AUTO_JSON struct json_object *kept = NULL;
	AUTO_BUF struct buf text = BUF_INIT;

	if (strcmp(from, to) == 0)
		return json_object_new_array();
	if (json_parse_file(path, COMMITS_MAX, &kept, NULL) == 0 &&
	    strcmp(json_str(kept, "from", ""), from) == 0 &&
	    strcmp(json_str(kept, "to", ""), to) == 0 && json_arr(kept, "commits"))
		return json_object_get(json_arr(kept, "commits"));
	struct json_object *list = list_commits(scratch, from, to, err);
	if (!list)
		return NULL;
	json_object_put(kept);
	kept = json_object_new_object();
	json_set_str(kept, "from", from);
	json_set_str(kept, "to", to);
	json_set(kept, "commits", json_object_get(list));
	json_write(&text, kept);
	unlink(path);
	disk_put(path, text.data, text.len, false, NULL); /* a gain, and no more */
	return list;
}

/* --- the chain of checkpoints --- */

/* A tree that a ref of the user's holds already needs only a commit: everything that it names passed
 * scratch_publish before, or was his own. */
static bool tree_is_home(const struct work *work, const char *tree, const char *pin)
{
	char tip[OID_MAX], have[OID_MAX];

	return (repo_tree_of(work->repo, pin, have) && strcmp(have, tree) == 0) ||
	       (repo_ref(work->repo, work->head_ref, tip, NULL) == 0 &&
		repo_tree_of(work->repo, tip, have) && strcmp(have, tree) == 0);
}

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
	struct commit commit = {.tree = tree,
				.parents = parents,
				.name = OWN_NAME,
				.mail = OWN_MAIL,
				.message = BUF_INIT,
				.home = n == 0 && tree_is_home(work, tree, pin)};
	if (make_commit(scratch, &commit, message, ret_oid, err) < 0)
		return -1;
	snprintf(tip, sizeof(tip), "%s\n", ret_oid);
	if ((!commit.home && scratch_publish(scratch, tip, err) < 0) ||
	    repo_move_ref(work->repo, work->pin_ref, ret_oid, pin, "baton: checkpoint", err) < 0)
		return -1;
	scratch_settle(scratch);
	return 0;
}
