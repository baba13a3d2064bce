/*
 * create.c - making an agent's worktree.
 *
 * Order, so that a kill at any point leaves what prune recognises:
 *
 * 1. under the lock of the common dir (traps 110, 112): the entry, whole and locked, in state
 *    `creating`; its HEAD keeps the base from the user's gc from here on
 * 2. the private repository, then both refs (the branch, and the pin)
 * 3. without the lock, in parallel: the folder, its .git file, the files
 * 4. a copy of the index for baton's own use
 * 5. all of it durable, then state `ready`: a power cut leaves a worktree that is whole, or one that says that it is
 *    not and is made anew
 *
 * A failure undoes the steps in reverse; only what this call made is removed.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "worktrees/checkout.h"
#include "worktrees/disk.h"
#include "worktrees/ops.h"
#include "worktrees/work.h"

#define ENTRY_LOCK_WAIT_MS 30000

static int check_ways(const struct work *work, struct err *err)
{
	if (repo_has_ref(work->repo, work->head_ref))
		return err_set(err, ERR_EXISTS, "the branch '%s' exists already", work->branch);
	if (repo_has_ref(work->repo, work->pin_ref))
		return err_set(err, ERR_EXISTS, "the ref '%s' exists already", work->pin_ref);
	if (file_exists(work->git_dir))
		return err_set(err, ERR_EXISTS, "'%s' exists already", work->git_dir);
	return 0;
}

static int make_refs(const struct work *work, struct err *err)
{
	const char *const refs[] = {work->pin_ref, work->head_ref};
	const char *const oids[] = {work->base, work->base};

	return repo_make_refs(work->repo, refs, oids, 2, err);
}

/* No agent has seen the private repository yet, so its list of refs is still the one we wrote. */
static int make_state(const struct work *work, struct err *err)
{
	AUTO_FREE char *given = file_join(work->git_dir, "packed-refs");
	AUTO_FREE char *start = work_path(work, WORK_START_REFS);

	if (mkdir(work->state_dir, 0700) < 0)
		return err_sys(err, "cannot make '%s'", work->state_dir);
	return disk_copy(given, start, err);
}

/* Everything that two creations must not do at once. */
static int make_entry(const struct work *work, struct err *err)
{
	if (check_ways(work, err) < 0 || entry_make(work, err) < 0)
		return -1;
	if (disk_remove(work->state_dir, err) == 0 && private_make(work, err) == 0 &&
	    make_refs(work, err) == 0) {
		if (make_state(work, err) == 0)
			return 0;
		repo_move_ref(work->repo, work->head_ref, NULL, work->base, "baton: undone", NULL);
		repo_move_ref(work->repo, work->pin_ref, NULL, work->base, "baton: undone", NULL);
	}
	disk_remove(work->git_dir, NULL);
	disk_remove(work->state_dir, NULL);
	entry_remove(work, NULL);
	return -1;
}

static void undo(const struct work *work)
{
	struct err why = ERR_INIT;

	if (repo_move_ref(work->repo, work->head_ref, NULL, work->base, "baton: undone", &why) <
		    0 ||
	    repo_move_ref(work->repo, work->pin_ref, NULL, work->base, "baton: undone", &why) < 0 ||
	    disk_remove(work->git_dir, &why) < 0 || disk_remove(work->state_dir, &why) < 0 ||
	    entry_remove(work, &why) < 0)
		log_warn("a failed creation could not be undone whole: %s", why.message);
}

static void note(struct json_object *answer, const char *text)
{
	json_object_array_add(json_get(answer, "notes"), json_object_new_string(text));
}

/* A folder that is in the way is moved aside, never removed (trap 122). */
int work_make_folder(const struct work *work, struct json_object *answer, bool *ret_made,
		     struct err *err)
{
	AUTO_FREE char *above = file_dir(work->worktree);
	AUTO_FREE char *git_file = file_join(work->worktree, ".git");

	if (disk_mkdirs(above, err) < 0)
		return -1;
	if (mkdir(work->worktree, 0700) < 0) {
		if (errno != EEXIST)
			return err_sys(err, "cannot make '%s'", work->worktree);
		AUTO_FREE char *aside = disk_free_name(work->worktree, ".leftover-");
		AUTO_FREE char *text = mem_printf("'%s' existed already and was moved to '%s'",
						  work->worktree, aside);
		if (rename(work->worktree, aside) < 0 || mkdir(work->worktree, 0700) < 0)
			return err_sys(err, "'%s' exists and cannot be moved aside",
				       work->worktree);
		note(answer, text);
	}
	*ret_made = true;
	return disk_put(git_file, work->git_file, strlen(work->git_file), false, err);
}

static char *own_prefix(const struct work *work)
{
	size_t n = strcspn(work->branch, "/");

	return mem_printf("refs/heads/%.*s/", (int)n, work->branch);
}

static int fill_large(const struct work *work, struct json_object *answer, struct err *err)
{
	AUTO_FREE char *index = file_join(work->git_dir, "index");
	AUTO_FREE char *prefix = own_prefix(work);
	bool trusted = !work->repo->filters || checkout_is_trusted(work->repo, work->base, prefix);

	if (!trusted)
		note(answer, "filters (LFS and the like) were not run: the base is not in a branch "
			     "of yours");
	return checkout_by_program(work->repo, work->base, index, work->worktree, trusted, err);
}

static void note_submodules(const struct work *work, struct json_object *answer)
{
	AUTO_JSON struct json_object *list = repo_submodules(work->repo, work->base);
	AUTO_FREE char *path = work_path(work, "gitlinks");
	AUTO_BUF struct buf names = BUF_INIT;

	for (size_t i = 0; i < json_len(list); i++) {
		const char *name = json_object_get_string(json_at(list, i));
		AUTO_FREE char *text = mem_printf("submodule '%s' is empty", name);

		note(answer, text);
		buf_add(&names, name, strlen(name) + 1);
	}
	if (names.len)
		disk_put(path, names.data, names.len, false, NULL);
}

static int fill(const struct work *work, bool small, struct json_object *answer, struct err *err)
{
	AUTO_FREE char *index = file_join(work->git_dir, "index");
	AUTO_FREE char *base_index = work_path(work, "base.index");
	bool made = false;
	int rc = work_make_folder(work, answer, &made, err);

	if (rc == 0 && small)
		rc = checkout_in_process(work->repo, work->base, work->git_dir, work->worktree,
					 err);
	else if (rc == 0)
		rc = fill_large(work, answer, err);
	/* From here on a box may write the private index; this copy stays what we wrote. */
	if (rc == 0 && disk_copy(index, base_index, err) == 0 &&
	    disk_settle(work->repo->common_dir, work->worktree, err) == 0 &&
	    entry_set_state(work, ENTRY_READY, err) == 0) {
		json_set_i64(answer, "files", checkout_count(index));
		return 0;
	}
	if (made)
		disk_remove(work->worktree, NULL);
	undo(work);
	return -1;
}

static int create(const struct repo *repo, struct json_object *body, struct json_object *answer,
		  bool quick, struct err *err)
{
	AUTO_WORK struct work work = WORK_INIT;
	AUTO_FD int lock = -1;
	char oid[OID_MAX];

	int rc = work_init(&work, repo, body, err);
	if (rc < 0)
		return -1;
	bool small = checkout_is_small(repo, work.base);
	if (quick && !small)
		return err_set(err, ERR_BUSY, "a worker's work");
	AUTO_FREE char *commit = mem_printf("%s^{commit}", work.base);
	if (repo_resolve(repo, commit, oid, err) < 0)
		return -1;
	if (entry_lock(repo, quick ? 0 : ENTRY_LOCK_WAIT_MS, &lock, err) < 0)
		return -1;
	if (make_entry(&work, err) < 0)
		return -1;
	mem_close_fd(&lock);
	json_set(answer, "notes", json_object_new_array());
	if (fill(&work, small, answer, err) < 0)
		return -1;
	note_submodules(&work, answer);
	if (repo->sparse)
		note(answer, "sparse checkout: only the files of your patterns are there");
	json_set_str(answer, "branch", work.branch);
	json_set_str(answer, "base", work.base);
	json_set_str(answer, "worktree", work.worktree);
	json_set_str(answer, "git_file", work.git_file);
	json_set_str(answer, "head_ref", work.head_ref);
	return 0;
}

int op_create(const struct repo *repo, struct json_object *body, struct json_object *answer,
	      struct err *err)
{
	return create(repo, body, answer, false, err);
}

int op_create_quick(const struct repo *repo, struct json_object *body, struct json_object *answer,
		    struct err *err)
{
	return create(repo, body, answer, true, err);
}
