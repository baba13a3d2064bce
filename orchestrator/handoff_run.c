/*
 * handoff_run.c - see handoff_run.h.
 *
 * A document may come from anywhere, so its commands are strangers': they get the box of an agent's shell, without network,
 * and a copy of the commit's files that is thrown away, never the user's checkout. Where there is no box, nothing is run.
 */
#include "orchestrator/handoff_run.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/spawn.h"
#include "handoff/box_command.h"

#define BOX_FAILED 125 /* docs/documents.md, baton-box */

struct place {
	char *dir, *tree, *scratch, *cache, *box;
	struct git_session *git;
};

/* The view of a commit is made for readers; tests write beside their sources. Nothing of others is in it: no link is
 * followed. */
static void let_write(int dir_fd)
{
	DIR *dir = fdopendir(dir_fd);
	struct dirent *item;
	struct stat st;

	if (!dir) {
		close(dir_fd);
		return;
	}
	while ((item = readdir(dir)) != NULL) {
		const char *name = item->d_name;
		if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
		    fstatat(dirfd(dir), name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		/* One that stays as it is will be told by the command that fails on it. */
		if (S_ISREG(st.st_mode) &&
		    fchmodat(dirfd(dir), name, (st.st_mode & 0777) | 0200, 0) < 0)
			continue;
		if (S_ISDIR(st.st_mode)) {
			int below = openat(dirfd(dir), name,
					   O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
			if (below >= 0)
				let_write(below);
		}
	}
	closedir(dir);
}

static int place_open(struct place *place, struct git_session *git, const char *commit,
		      struct err *err)
{
	const char *tmp = env_get("TMPDIR");
	AUTO_JSON struct json_object *body = json_object_new_object();
	AUTO_JSON struct json_object *answer = NULL;

	place->git = git;
	place->box = file_find_program("baton-box", err);
	if (!place->box)
		return -1;
	place->dir = mem_printf("%s/baton-check-XXXXXX", tmp && *tmp == '/' ? tmp : "/tmp");
	if (!mkdtemp(place->dir)) {
		free(take_ptr(place->dir));
		return err_sys(err, "cannot make a temporary folder");
	}
	place->tree = file_join(place->dir, "tree");
	place->scratch = file_join(place->dir, "scratch");
	place->cache = file_join(place->dir, "cache");
	json_set_str(body, "commit", commit);
	json_set_str(body, "path", place->tree);
	if (mkdir(place->scratch, 0700) < 0 || mkdir(place->cache, 0700) < 0)
		return err_sys(err, "cannot make a folder below '%s'", place->dir);
	if (git_session_call(git, "checkout_view", body, &answer, err) < 0) {
		free(take_ptr(place->tree));
		return -1;
	}
	int fd = open(place->tree, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0)
		let_write(fd);
	return 0;
}

static void place_close(struct place *place)
{
	if (place->tree) {
		AUTO_JSON struct json_object *body = json_object_new_object();
		AUTO_JSON struct json_object *answer = NULL;
		json_set_str(body, "path", place->tree);
		git_session_call(place->git, "remove_view", body, &answer, NULL);
	}
	if (place->dir)
		file_remove_tree(place->dir, NULL);
	free(place->dir);
	free(place->tree);
	free(place->scratch);
	free(place->cache);
	free(place->box);
}

static int start(const struct place *place, const char *command, pid_t *ret_pid, int *ret_fd,
		 struct err *err)
{
	struct box_command box = {.program = place->box,
				  .network = "none",
				  .worktree = place->tree,
				  .scratch = place->scratch,
				  .cache = place->cache};
	struct words argv = {0};
	struct spawn_opts opts = SPAWN_OPTS_INIT;
	char **env = box_command_env(&box);

	box_command_argv(&box, &argv);
	words_add(&argv, "/bin/bash");
	words_add(&argv, "-c");
	words_add(&argv, command);
	opts.path = argv.items[0];
	opts.argv = argv.items;
	opts.envp = (const char *const *)env;
	opts.cwd = place->tree;
	opts.new_session = true;
	opts.death_signal = SIGKILL;
	opts.restore_nofile = true;
	int rc = spawn_process(&opts, ret_pid, ret_fd, err);
	env_list_free(env);
	words_release(&argv);
	return rc;
}

/* Its group goes with it, whichever way it ends. */
static int wait_for(pid_t pid, int pidfd, int64_t limit_ms, bool *ret_late)
{
	int64_t deadline = clock_mono_ms() + limit_ms, left;
	struct pollfd at = {.fd = pidfd, .events = POLLIN};
	int status = 0;

	while ((left = deadline - clock_mono_ms()) > 0 &&
	       poll(&at, 1, (int)MIN(left, (int64_t)1000000)) <= 0)
		;
	*ret_late = left <= 0;
	kill(-pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

static void run_one(const struct place *place, const char *command, int64_t limit_ms,
		    struct handoff_records *records)
{
	struct err err = ERR_INIT;
	pid_t pid;
	AUTO_FD int pidfd = -1;
	bool late = false;

	if (start(place, command, &pid, &pidfd, &err) < 0) {
		handoff_records_ran(records, command, 0, err.message);
		return;
	}
	int status = wait_for(pid, pidfd, limit_ms, &late);
	if (late)
		handoff_records_ran(records, command, 0, "reached its time limit");
	else if (WIFEXITED(status) && WEXITSTATUS(status) == BOX_FAILED)
		handoff_records_ran(records, command, 0, "could not be confined here");
	else
		handoff_records_ran(
			records, command,
			WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), NULL);
}

static bool ran_before(const char **done, size_t n, const char *command)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(done[i], command) == 0)
			return true;
	return false;
}

int handoff_run(const struct handoff *handoff, struct git_session *git, const char *commit,
		int64_t limit_ms, struct handoff_records *records, struct err *err)
{
	__attribute__((cleanup(place_close))) struct place place = {.dir = NULL};
	AUTO_FREE const char **done = NULL;
	size_t n = 0, cap = 0;

	if (!git || !commit)
		return err_set(err, ERR_USAGE,
			       "--run needs the commits of the handoff, which are not in a "
			       "repository here");
	if (place_open(&place, git, commit, err) < 0)
		return -1;
	for (enum handoff_part_name part = 0; part < HANDOFF_N_PARTS; part++) {
		for (size_t i = 0; i < handoff->parts[part].n; i++) {
			const struct handoff_statement *s = &handoff->parts[part].list[i];
			if (!s->has_exit || !s->command || ran_before(done, n, s->command))
				continue;
			MEM_GROW(done, cap, n + 1);
			done[n++] = s->command;
			run_one(&place, s->command, limit_ms, records);
		}
	}
	return 0;
}
