/*
 * run_open.c - the opening of a run. Runs in the parent.
 *
 * Nothing is made on disk before the repository is known; the folder is locked before the journal
 * is opened, so a run that is alive is never taken for one that was cut off.
 */
#include "orchestrator/run_open.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "config.h"
#include "orchestrator/agent_start.h"
#include "orchestrator/control.h"
#include "orchestrator/instructions.h"
#include "orchestrator/replay.h"
#include "orchestrator/run.h"
#include "orchestrator/services.h"

/* ---- repository, folder, lock, journal ---- */

static void make_id(char *out, size_t size)
{
	static const char letters[] = "abcdefghjkmnpqrstuvwxyz23456789";
	unsigned char random[4];
	time_t now = (time_t)(clock_wall_ms() / 1000);
	struct tm tm;

	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		memcpy(random, &now, sizeof(random));
	gmtime_r(&now, &tm);
	snprintf(out, size, "%02d%02d%02d-%c%c%c%c", tm.tm_year % 100, tm.tm_mon + 1, tm.tm_mday,
		 letters[random[0] % 31], letters[random[1] % 31], letters[random[2] % 31],
		 letters[random[3] % 31]);
}

/* Informs only: who holds the lock. */
static int sign_lock(struct run *run, struct err *err)
{
	char text[64];
	int n = snprintf(text, sizeof(text), "%d\n", (int)getpid());

	if (ftruncate(run->lock_fd, 0) < 0 || lseek(run->lock_fd, 0, SEEK_SET) < 0)
		return err_sys(err, "cannot write the lock of run %s", run->id);
	if (file_write_all(run->lock_fd, text, (size_t)n, err) < 0)
		return err_prefix(err, "the lock of run %s", run->id);
	return 0;
}

static int run_lock(struct run *run, struct err *err)
{
	AUTO_FREE char *path = run_path(run, "lock");

	run->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (run->lock_fd < 0)
		return err_sys(err, "cannot open '%s'", path);
	if (flock(run->lock_fd, LOCK_EX) < 0)
		return err_sys(err, "cannot lock '%s'", path);
	return sign_lock(run, err);
}

static struct json_object *arguments(const struct settings *settings)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < settings_n_args(settings); i++)
		json_object_array_add(list, json_object_new_string(settings_arg(settings, i)));
	return list;
}

static int run_write_request(struct run *run, struct err *err)
{
	AUTO_JSON struct json_object *doc = json_object_new_object();
	AUTO_FREE char *path = run_path(run, "run.json");
	AUTO_FREE char *model = mem_printf("%s/%s", run->provider, run->model_name);
	struct buf out = BUF_INIT;
	char stamp[CLOCK_STAMP_SIZE];

	json_set_i64(doc, "version", 2);
	json_set_str(doc, "run", run->id);
	json_set(doc, "arguments", arguments(run->settings));
	json_set(doc, "settings", settings_record(run->settings));
	json_set_str(doc, "command", run->driver->command);
	json_set_str(doc, "task", run->task);
	json_set_str(doc, "model", model);
	json_set_str(doc, "toplevel", run->toplevel);
	json_set_str(doc, "worktrees", run->worktrees_dir);
	json_set_str(doc, "started", clock_stamp(run->started_wall_ms, stamp));
	json_write_pretty(&out, doc);
	/* For people and for runs that died before their journal; the journal's own sync covers the
	 * entry. */
	AUTO_FD int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int rc = fd < 0 ? err_sys(err, "cannot create '%s'", path)
			: file_write_all(fd, out.data, out.len, err);
	buf_release(&out);
	return rc < 0 && fd >= 0 ? err_prefix(err, "'%s'", path) : rc;
}

static int run_make_dirs(struct run *run, struct file_syncs *syncs, struct err *err)
{
	AUTO_FREE char *state = env_state_dir();
	const char *name = json_str(run->repository, "name", "repository");

	if (!state)
		return err_set(err, ERR_USAGE, "neither HOME nor XDG_STATE_HOME is set");
	if (*state != '/')
		return err_set(
			err, ERR_USAGE,
			"HOME or XDG_STATE_HOME is no absolute path: worktrees would go to '%s'",
			state);
	uint64_t hash = text_hash(run->common_dir, strlen(run->common_dir));
	run->worktrees_dir =
		mem_printf("%s/worktrees/%s-%08x/%s", state, name, (unsigned)hash, run->id);
	/* Under a name that no command lists, see open_folder. */
	run->dir = mem_printf("%s/baton/runs/.%s", run->common_dir, run->id);
	return file_mkdirs_later(run->dir, 0700, syncs, err);
}

/* The folder gets its name when its lock is held: a clean that met it without would take the run for
 * one that was cut off. */
static int run_show_dir(struct run *run, struct err *err)
{
	char *dir = mem_printf("%s/baton/runs/%s", run->common_dir, run->id);

	if (rename(run->dir, dir) < 0) {
		err_sys(err, "cannot make the folder '%s'", dir);
		free(dir);
		return -1;
	}
	free(run->dir);
	run->dir = dir;
	return 0;
}

/* What the run has worked begins with this record, as whoever reads the journal counts it (replay.h). */
static void clock_begins(struct run *run)
{
	run->started_ms = clock_mono_ms() - run->before_ms;
}

static void journal_started(struct run *run)
{
	AUTO_FREE char *model = mem_printf("%s/%s", run->provider, run->model_name);
	AUTO_JSON struct json_object *settings = settings_record(run->settings);

	journal_add(run->journal, RECORD_RUN_STARTED,
		    "run:s version:s command:s task:s model:s window:i repository:s toplevel:s "
		    "worktrees:s pid:i box:s "
		    "max_cost:d max_tokens:i time_limit_ms:i settings:j",
		    run->id, BATON_VERSION, run->driver->command, run->task, model,
		    run->model->window, json_str(run->repository, "name", NULL), run->toplevel,
		    run->worktrees_dir, (int64_t)getpid(), box_level_name(run->box_level),
		    run->budget.max_cost, run->budget.max_tokens,
		    settings_i64(run->settings, OPT_TIME_LIMIT), settings);
	clock_begins(run);
}

static void journal_resumed(struct run *run)
{
	const struct replay *past = run->replay;
	AUTO_FREE char *model = mem_printf("%s/%s", run->provider, run->model_name);
	AUTO_JSON struct json_object *settings = settings_record(run->settings);

	journal_add(run->journal, RECORD_RUN_RESUMED,
		    "run:s version:s model:s window:i pid:i box:s max_cost:d max_tokens:i "
		    "time_limit_ms:i "
		    "elapsed_ms:i bad_lines:i duplicates:i unsettled:i settings:j",
		    run->id, BATON_VERSION, model, run->model->window, (int64_t)getpid(),
		    box_level_name(run->box_level), run->budget.max_cost, run->budget.max_tokens,
		    settings_i64(run->settings, OPT_TIME_LIMIT), past->elapsed_ms, past->bad_lines,
		    past->duplicates, past->unsettled, settings);
	clock_begins(run);
}

/* The folder of a run that goes on is there, and locked since before this process (cmd_resume.c). One that died
 * before its journal has none yet. */
static int reopen_folder(struct run *run, struct err *err)
{
	AUTO_FREE char *journal = NULL;
	const char *worktrees = json_str(run->replay->request, "worktrees", NULL);

	if (!worktrees)
		return err_set(err, ERR_INVALID, "run %s does not say where its worktrees are",
			       run->id);
	run->worktrees_dir = mem_strdup(worktrees);
	run->dir = mem_printf("%s/baton/runs/%s", run->common_dir, run->id);
	journal = run_path(run, "run.jsonl");
	if (!file_is_dir(run->dir))
		return err_set(err, ERR_CHANGED, "run %s is not one of the repository '%s'",
			       run->id, run->toplevel);
	if (sign_lock(run, err) < 0 || journal_open(journal, &run->journal, err) < 0)
		return -1;
	if (!run->replay->started)
		journal_started(run);
	journal_resumed(run);
	return 0;
}

/* Nothing is synced here: the commit at the end of this turn does it, while the first agent reads
 * its start document. */
static int open_folder(struct run *run, struct err *err)
{
	struct file_syncs made = {0};
	AUTO_FREE char *journal = NULL;

	int rc = run_make_dirs(run, &made, err);
	if (rc == 0)
		rc = run_lock(run, err);
	/* Before the folder has its name: what bears one can be resumed. */
	if (rc == 0)
		rc = run_write_request(run, err);
	if (rc == 0)
		rc = run_show_dir(run, err);
	if (rc == 0) {
		journal = run_path(run, "run.jsonl");
		rc = journal_open(journal, &run->journal, err);
	}
	for (size_t i = 0; rc == 0 && i < made.n; i++)
		file_syncs_add(journal_syncs(run->journal), made.paths[i]);
	file_syncs_release(&made);
	if (rc == 0)
		journal_started(run);
	else if (run->dir)
		file_remove_tree(run->dir, NULL); /* nothing has begun: no trace of it */
	return rc;
}

static void start_work(struct run *run)
{
	struct err err = ERR_INIT;

	if (services_start_view(run, &err) < 0)
		log_warn("no view: %s", err.message);
	run->control = control_open(run, &err);
	if (!run->control)
		log_warn("nobody can be heard while this run works: %s", err.message);
	run->state = RUN_WORKING;
	if (run->driver->start(run, run->driver_arg, &err) < 0) {
		run_fail(run, &err);
		return;
	}
	agents_pump(run);
}

/* A branch that is not born yet has a name; a HEAD that names neither branch nor commit is damaged,
 * and a first commit would not help. */
static int check_head(struct json_object *repository, struct err *err)
{
	if (json_str(repository, "head", NULL))
		return 0;
	const char *missing = json_str(repository, "head_missing", NULL);
	if (missing)
		return err_set(err, ERR_USAGE,
			       "the repository's HEAD names %s, which is no commit in it: see 'git "
			       "fsck'",
			       missing);
	if (json_str(repository, "head_ref", NULL))
		return err_set(err, ERR_USAGE,
			       "the repository has no commits yet: make a first one, so that there "
			       "is something to start from");
	return err_set(err, ERR_USAGE,
		       "the repository's HEAD cannot be read: its file HEAD has to hold 'ref: "
		       "refs/heads/BRANCH' or a commit");
}

static void on_discovered(struct json_object *answer, const struct err *failure, void *arg)
{
	struct run *run = arg;
	struct err err = ERR_INIT;

	if (run->stopping) /* a service could not be started, or Ctrl-C: leave no trace */
		return;
	if (failure) {
		run_fail(run, failure);
		return;
	}
	run->repository = json_object_get(answer);
	if (!run->replay && check_head(answer, &err) < 0) {
		run_fail(run, &err);
		return;
	}
	run->common_dir = mem_strdup(json_str(answer, "common_dir", NULL));
	run->toplevel =
		mem_strdup(json_str(answer, "toplevel", json_str(answer, "common_dir", NULL)));
	if (settings_flag(run->settings, OPT_MEMORY))
		project_memory_open(&run->memory, run->common_dir);
	if (instructions_load(run, &err) < 0 ||
	    (run->replay ? reopen_folder(run, &err) : open_folder(run, &err)) < 0) {
		run_fail(run, &err);
		return;
	}
	start_work(run);
}

void run_open_repository(struct run *run)
{
	AUTO_JSON struct json_object *request = json_object_new_object();
	AUTO_FREE char *cwd = getcwd(NULL, 0);
	const char *dir = settings_str(run->settings, OPT_DIRECTORY);

	/* Where the run began, which may be another worktree than the one that the user stands in. */
	if (run->replay && run->replay->toplevel)
		dir = run->replay->toplevel;
	const char *path = dir ? dir : cwd;
	if (path && !text_is_utf8(path, strlen(path))) {
		struct err err = ERR_INIT;
		err_set(&err, ERR_USAGE,
			"the path '%s' is not UTF-8, and all records are: rename the folder", path);
		run_fail(run, &err);
		return;
	}
	json_set_str(request, "path", path);
	json_set_bool(request, "quick", true);
	if (!run->replay)
		make_id(run->id, sizeof(run->id));
	if (run->driver->branches && !run->replay) {
		json_set_str(request, "prefix", settings_str(run->settings, OPT_BRANCH_PREFIX));
		json_set_str(request, "run", run->id);
	}
	git_client_call(run->git_client, "discover", request, on_discovered, run);
}
