/*
 * repo_refs.c - refs of the user's repository: reading, making and moving by compare-and-swap.
 *
 * Only baton-git writes refs of a run, and of all refs only these. libgit2 does it in process for
 * the creation of worktrees, where every millisecond counts; later moves are the git program's,
 * whose lock retries and reflog rules are the user's own.
 */
#include <git2.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "worktrees/git.h"
#include "worktrees/repo.h"

static const char no_commits[] =
	"the repository has no commits yet; make one first (git commit), or use --dirty";

static int git2_fail(int rc, const char *what, struct err *err)
{
	const git_error *why = git_error_last();
	enum err_code code = rc == GIT_ENOTFOUND   ? ERR_NOT_FOUND
			     : rc == GIT_EEXISTS   ? ERR_EXISTS
			     : rc == GIT_EMODIFIED ? ERR_CHANGED
			     : rc == GIT_ELOCKED   ? ERR_BUSY
						   : ERR_INVALID;

	return err_set(err, code, "%s: %s", what, why ? why->message : "libgit2 gave no reason");
}

static int resolve_handle(const struct repo *repo, const char *rev, char ret_oid[OID_MAX])
{
	git_object *found = NULL, *commit = NULL;
	int rc = git_revparse_single(&found, repo->handle, rev);

	if (rc == 0)
		rc = git_object_peel(&commit, found, GIT_OBJECT_COMMIT);
	if (rc == 0)
		git_oid_tostr(ret_oid, GIT_OID_HEXSZ + 1, git_object_id(commit));
	git_object_free(found);
	git_object_free(commit);
	return rc == 0 ? 0 : -1;
}

static int resolve_program(const struct repo *repo, const char *rev, char ret_oid[OID_MAX],
			   struct err *err)
{
	struct git_cmd cmd = {.repo = repo, .scope = GIT_USER};
	AUTO_FREE char *spec = mem_printf("%s^{commit}", rev);
	AUTO_FREE char *line = NULL;

	if (git_line(&cmd, GIT_ARGS("rev-parse", "--verify", "--end-of-options", spec), &line,
		     err) < 0)
		return -1;
	if (!oid_valid(line, repo->hex))
		return err_set(err, ERR_INVALID, "git named no commit for '%s'", rev);
	memcpy(ret_oid, line, repo->hex + 1);
	return 0;
}

int repo_resolve(const struct repo *repo, const char *rev, char ret_oid[OID_MAX], struct err *err)
{
	if (repo->handle && resolve_handle(repo, rev, ret_oid) == 0)
		return 0;
	if (resolve_program(repo, rev, ret_oid, NULL) == 0)
		return 0;
	if (repo_head(repo, ret_oid, NULL) < 0)
		return err_set(err, ERR_NOT_FOUND, "%s", no_commits);
	return err_set(err, ERR_NOT_FOUND, "'%s' names no commit of the repository", rev);
}

int repo_ref(const struct repo *repo, const char *ref, char ret_oid[OID_MAX], struct err *err)
{
	if (repo->handle) {
		git_oid oid;

		if (git_reference_name_to_id(&oid, repo->handle, ref) == 0) {
			git_oid_tostr(ret_oid, GIT_OID_HEXSZ + 1, &oid);
			return 0;
		}
	} else if (resolve_program(repo, ref, ret_oid, NULL) == 0) {
		return 0;
	}
	return err_set(err, ERR_NOT_FOUND, "the ref '%s' does not exist", ref);
}

bool repo_tree_of(const struct repo *repo, const char *commit, char ret_oid[OID_MAX])
{
	git_commit *found = NULL;
	git_oid oid;

	if (!repo->handle || !oid_valid(commit, GIT_OID_HEXSZ) ||
	    git_oid_fromstr(&oid, commit) < 0 || git_commit_lookup(&found, repo->handle, &oid) < 0)
		return false;
	git_oid_tostr(ret_oid, GIT_OID_HEXSZ + 1, git_commit_tree_id(found));
	git_commit_free(found);
	return true;
}

int repo_head(const struct repo *repo, char ret_oid[OID_MAX], struct err *err)
{
	if (repo_ref(repo, "HEAD", ret_oid, NULL) < 0)
		return err_set(err, ERR_NOT_FOUND, "%s", no_commits);
	return 0;
}

bool repo_has_ref(const struct repo *repo, const char *ref)
{
	struct git_cmd cmd = {.repo = repo, .scope = GIT_USER};
	int status = 1;

	if (repo->handle) {
		git_reference *found = NULL;
		int rc = git_reference_lookup(&found, repo->handle, ref);

		git_reference_free(found);
		return rc == 0;
	}
	cmd.ret_status = &status;
	git_run(&cmd, GIT_ARGS("show-ref", "--verify", "--quiet", "--", ref), NULL, NULL);
	return status == 0;
}

/* --- what git leaves to the file system --- */

/* Syncs a folder, or the nearest above it that is there: an empty one goes with its last ref. */
static int sync_folder(const char *path, struct err *err)
{
	AUTO_FREE char *folder = mem_strdup(path);

	while (!file_is_dir(folder)) {
		char *above = file_dir(folder);
		free(folder);
		folder = above;
	}
	return file_sync_dir(folder, err);
}

/* git syncs the bytes of an object and never the folder that names it, and a ref must not be on disk without what it
 * stands at. What it stands at came as a pack, or is this one object. */
static int sync_objects(const struct repo *repo, const char *oid, struct err *err)
{
	AUTO_FREE char *pack = file_join(repo->objects, "pack");
	AUTO_FREE char *loose = mem_printf("%s/%.2s", repo->objects, oid);

	if (sync_folder(pack, err) < 0 || (file_is_dir(loose) && file_sync_dir(loose, err) < 0))
		return -1;
	return file_sync_dir(repo->objects, err);
}

static int sync_ref(const struct repo *repo, const char *ref, struct err *err)
{
	AUTO_FREE char *path = file_join(repo->common_dir, ref);
	AUTO_FREE char *folder = file_dir(path);

	return sync_folder(folder, err);
}

static int make_by_program(const struct repo *repo, const char *const refs[],
			   const char *const oids[], size_t count, struct err *err)
{
	AUTO_BUF struct buf in = BUF_INIT;
	struct git_cmd cmd = {.repo = repo, .scope = GIT_USER, .durable = true, .in = &in};
	struct err why = ERR_INIT;

	for (size_t i = 0; i < count; i++)
		buf_addf(&in, "create %s %s\n", refs[i], oids[i]);
	if (git_run(&cmd, GIT_ARGS("update-ref", "--stdin"), NULL, &why) == 0)
		return 0;
	bool there = strstr(why.message, "already exists") != NULL;
	return err_set(err, there ? ERR_EXISTS : why.code, "%s", why.message);
}

/* Our own of an attempt before: the ref stood, and its folder could not be synced. */
static bool stands_at(const struct repo *repo, const char *ref, const git_oid *oid)
{
	git_oid there;

	return git_reference_name_to_id(&there, repo->handle, ref) == 0 &&
	       git_oid_equal(&there, oid);
}

/* A `git pack-refs` of the user's may remove the folder between its making and the lock file's. */
static int make_one(const struct repo *repo, const char *ref, const git_oid *oid)
{
	git_reference *made = NULL;
	int rc = 0;

	for (int attempt = 0; attempt < 5; attempt++) {
		rc = git_reference_create(&made, repo->handle, ref, oid, 0, "baton: created");
		if (rc == GIT_EEXISTS && attempt > 0 && stands_at(repo, ref, oid))
			rc = 0;
		if (rc == 0 || rc == GIT_EEXISTS || rc == GIT_EINVALIDSPEC)
			break;
	}
	git_reference_free(made);
	return rc;
}

int repo_make_refs(const struct repo *repo, const char *const refs[], const char *const oids[],
		   size_t count, struct err *err)
{
	git_oid oid;

	if (!repo->handle)
		return make_by_program(repo, refs, oids, count, err);
	/* The folders of new refs are synced by who makes a worktree, with all the rest of it (disk_settle).
	 * Readable for those who can read the repository, searchable folders with it. */
	mode_t closed = repo->mode ? ~repo->mode & 066 : 022;
	mode_t mask = umask(closed | (closed & 044) >> 2);
	int result = 0;
	for (size_t i = 0; i < count && result == 0; i++) {
		int rc = git_oid_fromstr(&oid, oids[i]);

		if (rc == 0)
			rc = make_one(repo, refs[i], &oid);
		if (rc == 0)
			continue;
		result = git2_fail(rc, refs[i], err);
		while (i-- > 0)
			git_reference_remove(repo->handle, refs[i]);
		break;
	}
	umask(mask);
	return result;
}

/* A git of ours dies with its worker, and leaves the lock file of the ref that it was moving. One of the user's holds
 * such a lock for milliseconds. */
void repo_drop_dead_lock(const struct repo *repo, const char *ref, int grace_ms)
{
	AUTO_FREE char *path = mem_printf("%s/%s.lock", repo->common_dir, ref);
	int64_t until = clock_mono_ms() + grace_ms;

	while (file_exists(path)) {
		if (clock_mono_ms() >= until) {
			unlink(path);
			return;
		}
		poll(NULL, 0, 20);
	}
}

int repo_move_ref(const struct repo *repo, const char *ref, const char *new_oid,
		  const char *old_oid, const char *why, struct err *err)
{
	static const char zero[] =
		"0000000000000000000000000000000000000000000000000000000000000000";
	struct git_cmd cmd = {.repo = repo, .scope = GIT_USER, .durable = true};
	AUTO_FREE char *none = mem_strndup(zero, repo->hex);
	const char *const move[] = {
		"update-ref", "--no-deref", "-m", why, ref, new_oid, old_oid ? old_oid : none,
		NULL};
	const char *const drop[] = {"update-ref", "--no-deref", "-m",	 why,
				    "-d",	  ref,		old_oid, NULL};
	struct err cause = ERR_INIT;

	if (new_oid && sync_objects(repo, new_oid, err) < 0)
		return -1;
	if (git_run(&cmd, new_oid ? move : drop, NULL, &cause) == 0) {
		/* Deleted may be a packed one: then a new packed-refs stands in the common dir. */
		if (!new_oid && file_sync_dir(repo->common_dir, err) < 0)
			return -1;
		return sync_ref(repo, ref, err);
	}
	if (strstr(cause.message, "but expected") || strstr(cause.message, "already exists"))
		return err_set(err, ERR_CHANGED, "'%s' was moved by somebody else: %s", ref,
			       cause.message);
	if (err)
		*err = cause;
	return -1;
}

/* --- the copy of refs for a private repository --- */

static bool is_copied(const char *ref, const char *own_prefix)
{
	return text_starts(ref, "refs/") && strcmp(ref, "refs/stash") != 0 &&
	       !text_starts(ref, "refs/baton/") && !text_starts(ref, own_prefix);
}

static int packed_by_handle(const struct repo *repo, const char *own_prefix, struct buf *out,
			    struct err *err)
{
	git_reference_iterator *each = NULL;
	git_reference *ref = NULL;
	char oid[OID_MAX];
	int rc = git_reference_iterator_new(&each, repo->handle);

	while (rc == 0 && (rc = git_reference_next(&ref, each)) == 0) {
		const char *name = git_reference_name(ref);

		if (git_reference_type(ref) == GIT_REFERENCE_DIRECT &&
		    is_copied(name, own_prefix)) {
			git_oid_tostr(oid, sizeof(oid), git_reference_target(ref));
			buf_addf(out, "%s %s\n", oid, name);
		}
		git_reference_free(ref);
	}
	git_reference_iterator_free(each);
	return rc == GIT_ITEROVER ? 0 : git2_fail(rc, "the refs cannot be read", err);
}

static int packed_by_program(const struct repo *repo, const char *own_prefix, struct buf *out,
			     struct err *err)
{
	struct git_cmd cmd = {.repo = repo, .scope = GIT_USER};
	AUTO_BUF struct buf text = BUF_INIT;

	if (git_run(&cmd,
		    GIT_ARGS("for-each-ref",
			     "--format=%(objectname) %(refname)%(if)%(symref)%(then) %(end)"),
		    &text, err) < 0)
		return -1;
	char *rest = text.data, *line;
	while (rest && (line = strsep(&rest, "\n")) != NULL) {
		size_t n = strlen(line);

		if (n > repo->hex + 1 && line[n - 1] != ' ' &&
		    is_copied(line + repo->hex + 1, own_prefix))
			buf_addf(out, "%s\n", line);
	}
	return 0;
}

static int tips_by_handle(const struct repo *repo, struct buf *out)
{
	git_reference_iterator *each = NULL;
	git_reference *ref = NULL;
	char oid[OID_MAX];
	int rc = git_reference_iterator_new(&each, repo->handle);

	while (rc == 0 && (rc = git_reference_next(&ref, each)) == 0) {
		/* What a symbolic one stands at is another ref's. */
		if (git_reference_type(ref) == GIT_REFERENCE_DIRECT)
			buf_addf(out, "%s\n",
				 git_oid_tostr(oid, sizeof(oid), git_reference_target(ref)));
		git_reference_free(ref);
	}
	git_reference_iterator_free(each);
	return rc == GIT_ITEROVER ? 0 : -1;
}

int repo_tips(const struct repo *repo, struct buf *out, struct err *err)
{
	struct git_cmd cmd = {.repo = repo, .scope = GIT_USER};
	size_t start = out->len;

	if (repo->handle && tips_by_handle(repo, out) == 0)
		return 0;
	buf_truncate(out, start);
	return git_run(&cmd, GIT_ARGS("for-each-ref", "--format=%(objectname)"), out, err);
}

#define REFS_FRESH_MS 2000

/* Sixteen worktrees that are asked for at once would list all refs, with the growing number of
 * their own, sixteen times; so the list is kept for a moment. */
int repo_packed_refs(struct repo_refs_cache *cache, const struct repo *repo, const char *own_prefix,
		     struct buf *out, struct err *err)
{
	int64_t now = clock_mono_ms();
	AUTO_BUF struct buf text = BUF_INIT;

	if (!cache->text || now - cache->made_ms > REFS_FRESH_MS ||
	    strcmp(cache->prefix, own_prefix) != 0) {
		/* Without "sorted" git sorts on reading; without "peeled" it peels when asked. */
		buf_adds(&text, "# pack-refs with:\n");
		int rc = repo->handle ? packed_by_handle(repo, own_prefix, &text, err)
				      : packed_by_program(repo, own_prefix, &text, err);
		if (rc < 0)
			return -1;
		free(cache->text);
		free(cache->prefix);
		*cache = (struct repo_refs_cache){
			.text = buf_take(&text), .prefix = mem_strdup(own_prefix), .made_ms = now};
	}
	return buf_adds(out, cache->text);
}
