/*
 * remove.c - the end of a worktree.
 *
 * The rule (I7): what the agent wrote is reachable from a ref before a file goes. So: the branch is
 * imported; whatever else the private repository names (other branches, stash, a detached HEAD)
 * becomes parents of a last checkpoint, which also holds the worktree's state. Whatever fails or
 * looks unfinished keeps the worktree, with the reason (traps 118, 120, 130). Only folders with our
 * mark and of the recorded identity are touched (trap 122). What never got ready had no agent in
 * it: its untouched branch goes too.
 */
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "worktrees/disk.h"
#include "worktrees/work.h"
#include "worktrees/ops.h"
#include "worktrees/remove.h"
#include "worktrees/scratch.h"
#include "worktrees/state.h"
#include "worktrees/take.h"

#define DEAD_LOCK_MS 1000
#define YOUNG_MS     (5 * 60 * 1000)

static int keep(char **ret_kept, const char *what, const struct err *why)
{
	*ret_kept = why ? mem_printf("%s: %s", what, why->message) : mem_strdup(what);
	return 0;
}

/* The agent's own index, parsed by git as data: a damaged one means that we do not know (trap 118).
 */
static int check_index(const struct scratch *scratch, struct err *err)
{
	struct git_cmd cmd = scratch_cmd(scratch, GIT_PLAIN);
	AUTO_FREE char *copy = work_path(scratch->work, "agent.index");
	AUTO_BUF struct buf bytes = BUF_INIT;
	struct err why = ERR_INIT;

	if (hostile_read(scratch->work->git_dir, "index", (size_t)1 << 30, &bytes, &why) < 0)
		return why.code == ERR_NOT_FOUND ? 0 : err_set(err, why.code, "%s", why.message);
	char tip[OID_MAX], tree[OID_MAX];
	if (repo_ref(scratch->work->repo, scratch->work->head_ref, tip, NULL) == 0 &&
	    repo_tree_of(scratch->work->repo, tip, tree) &&
	    state_is_our_index(scratch, tree, &bytes))
		return 0;
	unlink(copy);
	if (disk_put(copy, buf_str(&bytes), bytes.len, false, err) < 0)
		return -1;
	cmd.index = copy;
	cmd.work_tree = NULL;
	int rc = git_run(&cmd, GIT_ARGS("ls-files", "-s", "-z"), NULL, err);
	unlink(copy);
	return rc;
}

/* The lines of a buffer as a NULL-terminated array; the buffer's bytes are changed and borrowed. */
static const char **lines_of(struct buf *text)
{
	const char **list = NULL;
	size_t count = 0, cap = 0;
	char *rest = text->data, *line;

	MEM_GROW(list, cap, 1);
	while (rest && (line = strsep(&rest, "\n")) != NULL) {
		if (!*line)
			continue;
		MEM_GROW(list, cap, count + 2);
		list[count++] = line;
	}
	list[count] = NULL;
	return list;
}

/* Files are gone (the user removed the folder): only commits can still be saved. */
static int secure_tips(struct scratch *scratch, const char *const *extra, char **ret_kept)
{
	struct err why = ERR_INIT;
	char pin[OID_MAX], tree[OID_MAX], commit[OID_MAX];

	if (extra[0] &&
	    (repo_ref(scratch->work->repo, scratch->work->pin_ref, pin, &why) < 0 ||
	     scratch_tree_of(scratch, pin, tree, &why) < 0 ||
	     scratch_chain(scratch, tree, extra, "baton: before removal\n", commit, &why) < 0))
		return keep(ret_kept, "its other commits were not stored", &why);
	return 0;
}

int work_save_tips(struct scratch *scratch, char **ret_kept)
{
	AUTO_BUF struct buf tips = BUF_INIT;
	struct err why = ERR_INIT;

	if (take_loose_tips(scratch, &tips, &why) < 0)
		return keep(ret_kept, "its other commits were not imported", &why);
	AUTO_FREE const char **extra = lines_of(&tips);
	return secure_tips(scratch, extra, ret_kept);
}

/* Makes everything reachable. 0 with *ret_kept set if something stands against it. */
static int secure(struct work *work, struct json_object *touched, bool there, char **ret_kept)
{
	AUTO_SCRATCH struct scratch scratch = SCRATCH_INIT;
	AUTO_BUF struct buf tips = BUF_INIT;
	struct take_result taken;
	struct err why = ERR_INIT;
	char commit[OID_MAX];
	bool changed;

	if (scratch_open(&scratch, work, &why) < 0)
		return keep(ret_kept, "the agent's repository cannot be read", &why);
	if (check_index(&scratch, &why) < 0)
		return keep(ret_kept, "the agent's index cannot be read", &why);
	if (take_branch(&scratch, &taken, &why) < 0)
		return keep(ret_kept, "its branch was not imported", &why);
	if (!there)
		return work_save_tips(&scratch, ret_kept);
	if (take_loose_tips(&scratch, &tips, &why) < 0)
		return keep(ret_kept, "its other commits were not imported", &why);
	AUTO_FREE const char **extra = lines_of(&tips);
	if (take_checkpoint(&scratch, "baton: before removal", touched, extra, commit, &changed,
			    ret_kept, &why) < 0)
		return keep(ret_kept, "its files were not stored", &why);
	return 0;
}

static int remove_files(struct work *work, char **ret_kept)
{
	struct err why = ERR_INIT;

	/* A kill from here on must not make the next removal store what is half deleted. */
	if (entry_set_state(work, ENTRY_REMOVING, &why) < 0)
		return keep(ret_kept, "it could not be marked", &why);
	if (disk_remove(work->worktree, &why) < 0 || entry_remove(work, &why) < 0)
		return keep(ret_kept, "it could not be removed", &why);
	/* After the entry nothing leads here any more; what remains is in the run's own folder. */
	if (disk_remove(work->git_dir, &why) < 0 || disk_remove(work->state_dir, &why) < 0)
		return keep(ret_kept, "its private repository could not be removed", &why);
	return 0;
}

/* A killed creation may have left the lock file of a ref, which then blocks the user's gc too. A
 * git that lives holds it for less than a millisecond: the same file a second later is a dead
 * one's. */
static void drop_dead_lock(const struct work *work, const char *ref)
{
	AUTO_FREE char *lock = mem_printf("%s/%s.lock", work->repo->common_dir, ref);
	int64_t deadline = clock_mono_ms() + DEAD_LOCK_MS;
	struct stat first, now;

	if (lstat(lock, &first) < 0)
		return;
	do {
		poll(NULL, 0, 20);
		if (lstat(lock, &now) < 0 || now.st_ino != first.st_ino)
			return;
	} while (clock_mono_ms() < deadline);
	unlink(lock);
}

/* Deletes a ref that is still at the base; one that moved is somebody's work and stays. */
static void drop_ref(const struct work *work, const char *ref, const char *why)
{
	drop_dead_lock(work, ref);
	if (repo_has_ref(work->repo, ref))
		repo_move_ref(work->repo, ref, NULL, work->base, why, NULL);
}

/* A creation that was killed: at most a checkout of the base, which our .git file identifies, or a folder with nothing
 * in it, or with the first bytes of that file. */
static bool is_our_creation(const struct work *work)
{
	AUTO_FREE char *git_file = file_join(work->worktree, ".git");
	AUTO_BUF struct buf text = BUF_INIT;

	if (hostile_read(work->worktree, ".git", 65536, &text, NULL) == 0) {
		if (strcmp(buf_str(&text), work->git_file) == 0)
			return true;
		if (strncmp(buf_str(&text), work->git_file, text.len) == 0)
			unlink(git_file);
	}
	return rmdir(work->worktree) == 0 || errno == ENOENT;
}

static int remove_unfinished(struct work *work, char **ret_kept)
{
	if (!is_our_creation(work))
		return keep(ret_kept, "its folder was not made by baton", NULL);
	drop_ref(work, work->head_ref, "baton: unfinished");
	drop_ref(work, work->pin_ref, "baton: unfinished");
	return remove_files(work, ret_kept);
}

int work_remove(struct work *work, struct json_object *touched, bool force, char **ret_kept,
		struct err *err)
{
	bool there = file_exists(work->worktree);
	enum entry_state state;

	*ret_kept = NULL;
	if (entry_check(work, &state, err) < 0)
		return -1;
	if (state == ENTRY_CREATING)
		return remove_unfinished(work, ret_kept);
	if (there && !entry_owns_folder(work))
		return keep(ret_kept, "its folder is not the one that baton made", NULL);
	if (state == ENTRY_REMOVING)
		return remove_files(work, ret_kept);
	const char *doing = hostile_in_progress(work->git_dir);
	if (doing && !force) {
		*ret_kept = mem_printf("a %s is in progress", doing);
		return 0;
	}
	secure(work, touched, there, ret_kept);
	return *ret_kept ? 0 : remove_files(work, ret_kept);
}

int op_remove(const struct repo *repo, struct json_object *body, struct json_object *answer,
	      struct err *err)
{
	AUTO_WORK struct work work = WORK_INIT;
	AUTO_FREE char *kept = NULL;
	char tip[OID_MAX];

	if (work_init(&work, repo, body, err) < 0)
		return -1;
	/* Neither is there: an earlier call did it and was not heard. */
	bool gone = !file_exists(work.worktree) && !file_exists(work.entry_dir);
	if (!gone && work_remove(&work, json_arr(body, "touched"), json_flag(body, "force", false),
				 &kept, err) < 0)
		return -1;
	json_set_bool(answer, "removed", kept == NULL);
	json_set(answer, "kept", NULL);
	json_set_str(answer, "kept", kept);
	bool branch = repo_ref(repo, work.head_ref, tip, NULL) == 0;
	json_set_bool(answer, "branch", branch);
	json_set_bool(answer, "at_base", branch && strcmp(tip, work.base) == 0);
	return 0;
}

/* --- prune --- */

/* Is the run over, and are its records gone? Looked at just before something of it is touched, since
 * a run may start at any time. A run that is at work has its folder, which gets its name with the
 * lock held; as long as a dead one's is there, its journal says what is to go. Without a folder only
 * age speaks: the user may have removed that of a run at work. `ended`: those whose folder the caller
 * removed under their lock. */
static bool is_over(const struct repo *repo, struct json_object *ended, const char *run,
		    const char *made)
{
	AUTO_FREE char *dir = mem_printf("%s/runs/%s", repo->baton_dir, run);
	struct stat st;

	for (size_t i = 0; i < json_len(ended); i++) {
		const char *id = json_object_get_string(json_at(ended, i));

		if (id && strcmp(id, run) == 0)
			return true;
	}
	return work_name_valid(run) && !file_exists(dir) && lstat(made, &st) == 0 &&
	       clock_wall_ms() - (int64_t)st.st_mtime * 1000 > YOUNG_MS;
}

static void report(struct json_object *answer, const char *path, const char *kept)
{
	struct json_object *one;

	if (!kept) {
		json_object_array_add(json_get(answer, "removed"), json_object_new_string(path));
		return;
	}
	one = json_object_new_object();
	json_set_str(one, "path", path);
	json_set_str(one, "reason", kept);
	json_object_array_add(json_get(answer, "kept"), one);
}

/* A branch that never left its base, of an agent that is gone, is only litter (trap 110). */
static void drop_unused_refs(const struct work *work)
{
	char branch[OID_MAX], pin[OID_MAX];

	if (repo_ref(work->repo, work->head_ref, branch, NULL) < 0 ||
	    repo_ref(work->repo, work->pin_ref, pin, NULL) < 0 || strcmp(branch, work->base) != 0 ||
	    strcmp(pin, work->base) != 0)
		return;
	drop_ref(work, work->head_ref, "baton: unused");
	drop_ref(work, work->pin_ref, "baton: unused");
}

/* The user's worktree since `adopt`: it has no mark of ours and stands on a branch. */
static bool is_adopted(const char *entry)
{
	AUTO_BUF struct buf head = BUF_INIT;

	return !hostile_exists(entry, "baton") &&
	       hostile_read(entry, "HEAD", 4096, &head, NULL) == 0 &&
	       text_starts(buf_str(&head), "ref: refs/heads/");
}

static void prune_entry(const struct repo *repo, const char *entry, struct json_object *ended,
			struct json_object *answer)
{
	AUTO_JSON struct json_object *mark = NULL;
	AUTO_WORK struct work work = WORK_INIT;
	AUTO_FREE char *kept = NULL;
	struct err why = ERR_INIT;

	if (entry_read(entry, &mark, &why) < 0) {
		if (!is_adopted(entry))
			report(answer, entry, why.message);
		return;
	}
	const char *path = json_str(mark, "worktree", entry);
	if (!is_over(repo, ended, json_str(mark, "run", ""), entry))
		return;
	if (work_init(&work, repo, mark, &why) < 0 ||
	    work_remove(&work, NULL, false, &kept, &why) < 0)
		kept = mem_strdup(why.message);
	if (!kept)
		drop_unused_refs(&work);
	report(answer, path, kept);
}

/* .keep files of packs that an interrupted import left behind. */
static void prune_keeps(const struct repo *repo, struct json_object *ended)
{
	AUTO_FREE char *packs = file_join(repo->objects, "pack");
	DIR *dir = opendir(packs);
	struct dirent *item;

	while (dir && (item = readdir(dir)) != NULL) {
		AUTO_FREE char *path = file_join(packs, item->d_name);
		AUTO_BUF struct buf text = BUF_INIT;

		if (!text_ends(item->d_name, ".keep") ||
		    hostile_read(packs, item->d_name, 4096, &text, NULL) < 0 ||
		    !text_starts(buf_str(&text), "baton "))
			continue;
		AUTO_FREE char *run = mem_strndup(text.data + 6, strcspn(text.data + 6, "\n"));
		if (is_over(repo, ended, run, path))
			unlink(path);
	}
	if (dir)
		closedir(dir);
}

int op_prune(const struct repo *repo, struct json_object *body, struct json_object *answer,
	     struct err *err)
{
	AUTO_FREE char *root = entry_root(repo);
	AUTO_FREE char *temp = file_join(repo->baton_dir, "tmp");
	AUTO_FD int lock = -1;
	struct json_object *ended;
	struct dirent *item;

	if (json_need_arr(body, "ended", &ended, err) < 0 ||
	    entry_lock(repo, 30000, &lock, err) < 0)
		return -1;
	json_set(answer, "removed", json_object_new_array());
	json_set(answer, "kept", json_object_new_array());
	/* Half-made and half-removed entries: under the lock nobody works on one. */
	if (disk_remove(temp, err) < 0)
		return -1;
	DIR *dir = opendir(root);
	while (dir && (item = readdir(dir)) != NULL) {
		AUTO_FREE char *entry = file_join(root, item->d_name);

		if (text_starts(item->d_name, "baton+"))
			prune_entry(repo, entry, ended, answer);
	}
	if (dir)
		closedir(dir);
	prune_keeps(repo, ended);
	return 0;
}
