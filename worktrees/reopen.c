/*
 * reopen.c - the worktree of a run that was cut off, made whole again.
 *
 * Between the end of one parent and the next the user had the machine to himself, and a kill may have come in the
 * middle of any operation. So nothing is taken for granted: the entry says how far baton was, the folder whether it
 * is the one that was made. What was never finished is made anew; what is gone is made again from the private
 * repository and the last checkpoint; what somebody put elsewhere is named, with both places, and not touched.
 * Whatever an agent should know of it is a line in `notes`.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "worktrees/disk.h"
#include "worktrees/ops.h"
#include "worktrees/remove.h"
#include "worktrees/reopen.h"
#include "worktrees/scratch.h"

enum place { PLACE_GONE, PLACE_CREATING, PLACE_READY, PLACE_REMOVING };
static const char *const place_names[] = {
	[PLACE_GONE] = "gone",
	[PLACE_CREATING] = "creating",
	[PLACE_READY] = "ready",
	[PLACE_REMOVING] = "removing",
};

void reopen_note(struct json_object *notes, const char *fmt, ...)
{
	AUTO_BUF struct buf text = BUF_INIT;
	va_list ap;

	va_start(ap, fmt);
	buf_addv(&text, fmt, ap);
	va_end(ap);
	json_object_array_add(notes, json_object_new_string(buf_str(&text)));
}

static struct json_object *notes_of(struct json_object *answer)
{
	return json_get(answer, "notes");
}

static int look(const struct work *work, enum place *ret, struct err *err)
{
	enum entry_state state;
	struct err why = ERR_INIT;

	if (entry_check(work, &state, &why) == 0) {
		*ret = state == ENTRY_CREATING ? PLACE_CREATING
		       : state == ENTRY_READY  ? PLACE_READY
					       : PLACE_REMOVING;
		return 0;
	}
	if (why.code == ERR_NOT_FOUND) {
		*ret = PLACE_GONE;
		return 0;
	}
	if (!hostile_exists(work->entry_dir, "baton"))
		return err_set(err, ERR_DENIED,
			       "the worktree of '%s' is yours since you adopted it: its branch "
			       "goes on there",
			       work->agent);
	return err_set(err, why.code, "%s", why.message);
}

/* ---- a folder that is elsewhere ---- */

/* The folder with the recorded identity, among those beside its old place. Caller frees. */
static char *find_moved(const struct work *work)
{
	AUTO_JSON struct json_object *mark = NULL;
	AUTO_FREE char *above = file_dir(work->worktree);
	DIR *dir = opendir(above);
	struct dirent *item;
	char *found = NULL;
	struct stat st;

	if (entry_read(work->entry_dir, &mark, NULL) < 0)
		mark = NULL;
	while (mark && !found && dir && (item = readdir(dir)) != NULL) {
		AUTO_FREE char *path = file_join(above, item->d_name);
		AUTO_FREE char *git_file =
			file_join(path, ".git"); /* a new folder may have got the number */
		if (item->d_name[0] != '.' && file_exists(git_file) && lstat(path, &st) == 0 &&
		    S_ISDIR(st.st_mode) && json_i64(mark, "device", -1) == (int64_t)st.st_dev &&
		    json_i64(mark, "inode", -1) == (int64_t)st.st_ino)
			found = take_ptr(path);
	}
	if (dir)
		closedir(dir);
	return found;
}

/* Where git's registration says that it is; NULL: where we made it. Caller frees. */
static char *registered_elsewhere(const struct work *work)
{
	AUTO_FREE char *path = file_join(work->entry_dir, "gitdir");
	AUTO_BUF struct buf text = BUF_INIT;

	if (file_read(AT_FDCWD, path, 4096, &text, NULL) < 0)
		return NULL;
	buf_truncate(&text, strcspn(buf_str(&text), "\n"));
	AUTO_FREE char *folder = file_dir(buf_str(&text));
	return text.len && strcmp(folder, work->worktree) != 0 ? take_ptr(folder) : NULL;
}

static int check_moved(const struct work *work, struct err *err)
{
	AUTO_FREE char *there = registered_elsewhere(work);

	if (!there || !file_is_dir(there)) {
		free(there);
		there = file_is_dir(work->worktree) ? NULL : find_moved(work);
	}
	if (!there)
		return 0;
	return err_set(err, ERR_CHANGED,
		       "the worktree of agent %s was moved: it was made as '%s' and is now '%s'; "
		       "move it back "
		       "(mv '%s' '%s') and resume again",
		       work->agent, work->worktree, there, there, work->worktree);
}

/* ---- a folder that is gone ---- */

/* HEAD as it was at the last checkpoint, "" if it says nothing. */
static void checkpoint_head(const struct scratch *scratch, const char *pin, char ret[OID_MAX])
{
	struct git_cmd cmd = {.repo = scratch->work->repo, .scope = GIT_PLAIN};
	AUTO_FREE char *line = NULL;
	size_t hex = scratch->work->repo->hex;

	ret[0] = '\0';
	if (git_line(&cmd,
		     GIT_ARGS("log", "-1", "--format=%(trailers:key=Baton-Head,valueonly)", pin),
		     &line, NULL) < 0 ||
	    !line || strlen(line) < hex)
		return;
	line[hex] = '\0';
	if (oid_valid(line, hex))
		memcpy(ret, line, hex + 1);
}

/* The last checkpoint, unless commits came after it: its files would undo them. */
static int choose_source(const struct scratch *scratch, char ret[OID_MAX],
			 enum git_scope *ret_scope, struct err *err)
{
	const struct work *work = scratch->work;
	struct work_heads heads;
	char pin[OID_MAX], then[OID_MAX];

	if (work_heads(work, &heads, err) < 0)
		return -1;
	free(heads.head_ref);
	const char *head = heads.head[0] ? heads.head : work->base;
	*ret_scope = GIT_PLAIN;
	memcpy(ret, head, strlen(head) + 1);
	if (repo_ref(work->repo, work->pin_ref, pin, NULL) < 0 || strcmp(pin, work->base) == 0)
		return 0;
	checkpoint_head(scratch, pin, then);
	if (strcmp(then, head) != 0)
		return 0;
	*ret_scope = GIT_RAW;
	memcpy(ret, pin, sizeof(pin));
	return 0;
}

static int fill_again(const struct scratch *scratch, const char *commit, enum git_scope scope,
		      struct err *err)
{
	struct git_cmd cmd = scratch_cmd(scratch, scope);

	if (git_run(&cmd, GIT_ARGS("read-tree", commit), NULL, err) < 0)
		return -1;
	return git_run(&cmd, GIT_ARGS("checkout-index", "-a", "-f", "-q"), NULL, err);
}

static int restore(struct work *work, struct json_object *answer, struct err *err)
{
	AUTO_SCRATCH struct scratch scratch = SCRATCH_INIT;
	enum git_scope scope;
	char commit[OID_MAX];
	bool made;

	if (scratch_open(&scratch, work, err) < 0 ||
	    choose_source(&scratch, commit, &scope, err) < 0 ||
	    work_make_folder(work, answer, &made, err) < 0 ||
	    fill_again(&scratch, commit, scope, err) < 0 ||
	    disk_settle(work->worktree, work->repo->common_dir, err) < 0 ||
	    entry_set_state(work, ENTRY_READY, err) < 0)
		return err_prefix(err, "the worktree is gone and could not be made again");
	reopen_note(notes_of(answer),
		    "the worktree was gone and was made again from %s %.12s; what was in it and in "
		    "neither is lost",
		    scope == GIT_RAW ? "the checkpoint" : "the commit", commit);
	json_set_str(answer, "how", "restored");
	json_set_str(answer, "commit", commit);
	return 0;
}

/* ---- nothing but the refs, and perhaps the private repository ---- */

/* The branch says where the work is. The entry keeps the base that the run began from. */
static int make_from_branch(struct work *work, const char *tip, struct err *err)
{
	char *base = work->base;
	AUTO_FREE char *here = mem_strdup(tip);
	AUTO_FREE char *given = file_join(work->git_dir, "packed-refs");
	AUTO_FREE char *start = NULL;
	AUTO_FD int lock = -1;
	int rc = entry_lock(work->repo, 30000, &lock, err);

	work->base = here;
	if (rc == 0)
		rc = entry_make(work, err);
	if (rc == 0 && !file_is_dir(work->git_dir)) {
		rc = disk_remove(work->state_dir, err) == 0 ? private_make(work, err) : -1;
		start = work_path(work, WORK_START_REFS);
		if (rc == 0 && mkdir(work->state_dir, 0700) < 0)
			rc = err_sys(err, "cannot make '%s'", work->state_dir);
		if (rc == 0)
			rc = disk_copy(given, start, err);
	}
	work->base = base;
	return rc;
}

/* What `create` keeps for status and checkpoints, and the agent's own index where it has none. */
static int make_indexes(const struct work *work, const char *tip, struct err *err)
{
	AUTO_FREE char *base_index = work_path(work, "base.index");
	AUTO_FREE char *temp = work_path(work, "again.index");
	struct git_cmd cmd = {.repo = work->repo, .scope = GIT_PLAIN, .index = base_index};
	AUTO_BUF struct buf bytes = BUF_INIT;

	if (!file_exists(base_index) &&
	    git_run(&cmd, GIT_ARGS("read-tree", work->base), NULL, err) < 0)
		return -1;
	if (hostile_exists(work->git_dir, "index"))
		return 0;
	cmd.index = temp;
	if (git_run(&cmd, GIT_ARGS("read-tree", tip), NULL, err) < 0 ||
	    file_read(AT_FDCWD, temp, (size_t)1 << 30, &bytes, err) < 0)
		return -1;
	unlink(temp);
	return hostile_write(work->git_dir, "index", bytes.data, bytes.len, err);
}

static int make_again(struct work *work, const char *tip, struct json_object *answer,
		      struct err *err)
{
	if (make_from_branch(work, tip, err) < 0 || make_indexes(work, tip, err) < 0)
		return err_prefix(err, "the worktree is gone and could not be made again");
	return restore(work, answer, err);
}

static int make_whole(struct work *work, struct json_object *body, struct json_object *answer,
		      struct err *err)
{
	char tip[OID_MAX];

	if (repo_ref(work->repo, work->head_ref, tip, NULL) == 0)
		return make_again(work, tip, answer, err);
	if (file_is_dir(work->git_dir))
		return err_set(
			err, ERR_CHANGED,
			"the branch '%s' was deleted, and '%s' still holds the agent's commits: "
			"make the branch "
			"again (git branch %s COMMIT) or remove that folder, and resume again",
			work->branch, work->git_dir, work->branch);
	if (repo_has_ref(work->repo, work->pin_ref))
		return err_set(err, ERR_CHANGED,
			       "the branch '%s' was deleted; its saved states are in '%s': make "
			       "the branch again (git "
			       "branch %s %s) and resume again",
			       work->branch, work->pin_ref, work->branch, work->pin_ref);
	json_set_str(answer, "how", "made");
	return op_create(work->repo, body, answer, err);
}

/* ---- a folder that is there ---- */

/* A copy or a backup is as good, if it leads to the same repository. */
static int check_folder(const struct work *work, struct json_object *answer, struct err *err)
{
	AUTO_BUF struct buf text = BUF_INIT;
	bool ours = entry_owns_folder(work);
	bool leads = hostile_read(work->worktree, ".git", 65536, &text, NULL) == 0 &&
		     strcmp(buf_str(&text), work->git_file) == 0;

	if (!ours && !leads)
		return err_set(err, ERR_CHANGED,
			       "'%s' is not the folder that baton made for agent %s; move it away "
			       "and resume again: the "
			       "worktree is then made from the last checkpoint",
			       work->worktree, work->agent);
	if (!leads &&
	    hostile_write(work->worktree, ".git", work->git_file, strlen(work->git_file), err) < 0)
		return -1;
	if (!ours) {
		reopen_note(
			notes_of(answer),
			"the worktree's folder is another one than before (a copy, or restored)");
		if (entry_set_state(work, ENTRY_READY, err) < 0)
			return -1;
	}
	json_set_str(answer, "how", "kept");
	return 0;
}

/* A git that was killed in the box leaves its lock, and nobody lives who holds it. */
static void drop_lock(const struct work *work, const char *folder, const char *file,
		      struct json_object *answer)
{
	AUTO_FD int fd = hostile_open_dir(work->git_dir, folder, NULL);
	AUTO_FREE char *name = mem_printf("%s.lock", file);

	if (fd >= 0 && unlinkat(fd, name, 0) == 0)
		reopen_note(notes_of(answer), "git's %s, left by a killed git, was removed", name);
}

/* Those that a commit takes, one after the other. */
static void drop_locks(const struct work *work, struct json_object *answer)
{
	static const char *const files[] = {"index", "HEAD", "packed-refs", "config"};
	AUTO_FREE char *folder = file_dir(work->head_ref);

	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		drop_lock(work, "", files[i], answer);
	drop_lock(work, folder, file_base(work->head_ref), answer);
}

static void note_branch(const struct work *work, struct json_object *answer)
{
	char now[OID_MAX], before[OID_MAX], tip[OID_MAX];

	if (entry_head(work, before, NULL) < 0)
		return;
	if (repo_ref(work->repo, work->head_ref, now, NULL) < 0) {
		reopen_note(notes_of(answer),
			    "the branch '%s' was deleted in the user's repository: the work will "
			    "not be "
			    "put there",
			    work->branch);
		return;
	}
	bool own = hostile_ref(work->git_dir, work->head_ref, work->repo->hex, tip, NULL) == 0 &&
		   strcmp(tip, now) == 0;
	if (strcmp(now, before) != 0 && !own)
		reopen_note(
			notes_of(answer),
			"the branch '%s' was moved to %.12s in the user's repository by somebody "
			"else: the work will "
			"not be put there while it stands so",
			work->branch, now);
}

/* ---- the operation ---- */

static int drop_unfinished(struct work *work, struct err *err)
{
	AUTO_FREE char *kept = NULL;

	if (work_remove(work, NULL, false, &kept, err) < 0)
		return -1;
	return kept ? err_set(err, ERR_CHANGED, "the worktree was not whole and is in the way: %s",
			      kept)
		    : 0;
}

static int reopen(struct work *work, enum place place, struct json_object *body,
		  struct json_object *answer, struct err *err)
{
	if ((place == PLACE_CREATING || place == PLACE_REMOVING) && drop_unfinished(work, err) < 0)
		return -1;
	if (place != PLACE_READY)
		return make_whole(work, body, answer, err);
	if (check_moved(work, err) < 0)
		return -1;
	drop_locks(work, answer);
	if (reopen_mend_git(work, notes_of(answer), err) < 0)
		return -1;
	note_branch(work, answer);
	if (!file_exists(work->worktree))
		return restore(work, answer, err);
	return check_folder(work, answer, err);
}

int op_reopen(const struct repo *repo, struct json_object *body, struct json_object *answer,
	      struct err *err)
{
	AUTO_WORK struct work work = WORK_INIT;
	enum place place = PLACE_GONE;
	char tip[OID_MAX];

	json_set(answer, "notes", json_object_new_array());
	json_set(answer, "commit", NULL);
	if (work_init(&work, repo, body, err) < 0 || look(&work, &place, err) < 0)
		return -1;
	json_set_str(answer, "place", place_names[place]);
	json_set(answer, "branch_tip", NULL);
	if (repo_ref(repo, work.head_ref, tip, NULL) == 0)
		json_set_str(answer, "branch_tip", tip);
	if (!json_flag(body, "look", false))
		return reopen(&work, place, body, answer, err);
	/* Its work is brought home next. */
	return place == PLACE_READY ? reopen_mend_git(&work, notes_of(answer), err) : 0;
}
