/*
 * work.c - names, paths and locks of one agent's worktree.
 *
 * Runs in baton-git. Names come from the parent and are checked all the same: they become parts of
 * refs and of paths.
 */
#include "worktrees/work.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"

#define AGENT_LOCK_MS  120000
#define BRANCH_LOCK_MS 1000

bool work_name_valid(const char *name)
{
	size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_");

	return n > 0 && n <= 64 && name[n] == '\0' && name[0] != '-';
}

bool branch_name_valid(const char *name)
{
	if (!*name || strlen(name) > 200 || strchr("/-.", name[0]) || strstr(name, "..") ||
	    strstr(name, "//") || strstr(name, "/.") || strstr(name, ".lock") ||
	    strstr(name, "@{") || text_ends(name, "/") || text_ends(name, "."))
		return false;
	for (const unsigned char *p = (const unsigned char *)name; *p; p++) {
		if (*p <= 32 || *p == 127 || strchr("~^:?*[\\", *p))
			return false;
	}
	return true;
}

static int need(struct json_object *body, const char *key, char **ret, struct err *err)
{
	const char *value;

	if (json_need_str(body, key, &value, err) < 0)
		return -1;
	*ret = mem_strdup(value);
	return 0;
}

static int check_names(const struct work *work, struct err *err)
{
	if (!work_name_valid(work->run))
		return err_set(err, ERR_INVALID, "'%s' is no run id", work->run);
	if (!work_name_valid(work->agent))
		return err_set(err, ERR_INVALID, "'%s' is no agent id", work->agent);
	if (!branch_name_valid(work->branch))
		return err_set(err, ERR_INVALID, "'%s' is no branch name", work->branch);
	if (!oid_valid(work->base, work->repo->hex))
		return err_set(err, ERR_INVALID, "base '%s' is no commit id", work->base);
	if (work->worktree[0] != '/' || work->git_dir[0] != '/')
		return err_set(err, ERR_INVALID, "worktree and git_dir must be absolute paths");
	return 0;
}

int work_init(struct work *work, const struct repo *repo, struct json_object *body, struct err *err)
{
	*work = (struct work)WORK_INIT;
	work->repo = repo;
	if (need(body, "run", &work->run, err) < 0 || need(body, "agent", &work->agent, err) < 0 ||
	    need(body, "branch", &work->branch, err) < 0 ||
	    need(body, "base", &work->base, err) < 0 ||
	    need(body, "worktree", &work->worktree, err) < 0 ||
	    need(body, "git_dir", &work->git_dir, err) < 0 || check_names(work, err) < 0)
		return -1;
	AUTO_FREE char *root = entry_root(repo);
	work->head_ref = mem_printf("refs/heads/%s", work->branch);
	work->pin_ref = mem_printf("refs/baton/%s/%s/ckpt", work->run, work->agent);
	work->state_dir = mem_printf("%s.state", work->git_dir);
	work->entry_dir = mem_printf("%s/baton+%s+%s", root, work->run, work->agent);
	work->git_file = mem_printf("gitdir: %s\n", work->git_dir);
	return 0;
}

void work_release(struct work *work)
{
	free(work->run);
	free(work->agent);
	free(work->branch);
	free(work->base);
	free(work->worktree);
	free(work->git_dir);
	free(work->head_ref);
	free(work->pin_ref);
	free(work->state_dir);
	free(work->entry_dir);
	free(work->git_file);
	mem_close_fd(&work->lock_fd);
}

char *work_path(const struct work *work, const char *name)
{
	return file_join(work->state_dir, name);
}

/* flock with a deadline: LOCK_NB and short waits, since a blocking flock cannot be timed without a
 * signal. */
static int lock_folder(const char *path, int wait_ms, int *ret_fd, struct err *err)
{
	AUTO_FD int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int64_t deadline = clock_mono_ms() + wait_ms;

	if (fd < 0)
		return err_sys(err, "cannot open '%s'", path);
	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return err_sys(err, "cannot lock '%s'", path);
		if (clock_mono_ms() >= deadline)
			return err_set(err, ERR_BUSY,
				       "another baton holds the lock on '%s'; try again later",
				       path);
		poll(NULL, 0, 5);
	}
	*ret_fd = take_fd(fd);
	return 0;
}

int entry_lock(const struct repo *repo, int wait_ms, int *ret_fd, struct err *err)
{
	return lock_folder(repo->common_dir, wait_ms, ret_fd, err);
}

/* Under our lock no other git of ours lives; the branch may be moved by one of the user's. */
int work_lock(struct work *work, struct err *err)
{
	if (lock_folder(work->state_dir, AGENT_LOCK_MS, &work->lock_fd, err) < 0)
		return -1;
	repo_drop_dead_lock(work->repo, work->pin_ref, 0);
	repo_drop_dead_lock(work->repo, work->head_ref, BRANCH_LOCK_MS);
	return 0;
}

int work_heads(const struct work *work, struct work_heads *ret, struct err *err)
{
	struct err why = ERR_INIT;
	char *ref = NULL;

	*ret = (struct work_heads){.branch = ""};
	if (hostile_ref(work->git_dir, work->head_ref, work->repo->hex, ret->branch, &why) < 0) {
		ret->branch[0] = '\0';
		if (why.code != ERR_NOT_FOUND)
			return err_set(err, why.code, "%s", why.message);
	}
	if (hostile_head(work->git_dir, work->repo->hex, &ref, ret->head, &why) < 0) {
		ret->head[0] = '\0';
		if (why.code != ERR_NOT_FOUND || !ref) {
			free(ref);
			return err_set(err, why.code, "HEAD of the agent's repository: %s",
				       why.message);
		}
	}
	ret->head_ref = ref;
	ret->on_branch = ref && strcmp(ref, work->head_ref) == 0;
	return 0;
}
