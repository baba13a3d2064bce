/*
 * cmd_stop.c - `baton stop RUN`: SIGTERM to the run's parent, then wait until its lock is free. `baton stop RUN/AGENT`:
 * a word to the parent, which ends that agent and those that it started; the others work on.
 *
 * The pid stands in the lock file, written by whoever holds the lock. A number alone may be another
 * process's by now, or one of another pid namespace, so the kernel's own list of locks has to name
 * it before it gets a signal.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"
#include "orchestrator/command.h"
#include "orchestrator/runs.h"
#include "orchestrator/tell.h"

#define LOCKS_MAX (16 << 20)

/* Does this process hold a flock? The lock is held by somebody, and only its holder writes a pid
 * into the file; a number that was given to another process since then is not on the list. Inodes
 * are not compared: overlay file systems show others here than stat does. A system without the
 * list (gVisor) leaves nothing to compare with. */
static bool holds_lock(pid_t pid)
{
	AUTO_FD int locks = open("/proc/locks", O_RDONLY | O_CLOEXEC);
	struct buf text = BUF_INIT_MAX(LOCKS_MAX);
	bool found = false;

	while (locks >= 0 && buf_read(&text, locks, 65536) > 0)
		;
	if (text.len == 0)
		found = true;
	for (const char *line = buf_str(&text); line && *line && !found;) {
		int holder = 0;
		found = sscanf(line, "%*d: FLOCK %*s %*s %d", &holder) == 1 && holder == (int)pid;
		line = strchr(line, '\n');
		line += line != NULL;
	}
	buf_release(&text);
	return found;
}

static int read_pid(int fd, pid_t *ret)
{
	char text[32] = "";
	int64_t pid;
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	if (n <= 0)
		return -1;
	text[strcspn(text, "\n")] = '\0';
	if (text_parse_i64(text, &pid) < 0 || pid <= 1 || pid > INT32_MAX)
		return -1;
	*ret = (pid_t)pid;
	return 0;
}

/* 1: it was stopped, 0: it was over before. */
static int stop(const struct past_run *run, struct err *err)
{
	AUTO_FREE char *path = file_join(run->dir, "lock");
	AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
	pid_t pid;

	if (!run->alive)
		return 0;
	if (fd < 0)
		return err_sys(err, "cannot open '%s'", path);
	if (read_pid(fd, &pid) < 0)
		return err_set(err, ERR_BUSY, "run %s is just starting; try again", run->id);
	if (!holds_lock(pid))
		return err_set(err, ERR_UNSUPPORTED,
			       "run %s is held by a process that cannot be seen from here (process "
			       "%d of '%s', perhaps of another container); stop it there",
			       run->id, (int)pid, path);
	if (kill(pid, SIGTERM) < 0 && errno != ESRCH)
		return err_sys(err, "cannot signal process %d of run %s", (int)pid, run->id);
	/* The lock is held for the parent's life: getting it is the end of the run. */
	if (flock(fd, LOCK_SH) < 0)
		return err_sys(err, "cannot wait for run %s", run->id);
	return 1;
}

static void print_stopped(const struct settings *s, const struct past_run *run, bool stopped)
{
	AUTO_JSON struct json_object *doc = json_object_new_object();

	json_set_str(doc, "run", run->id);
	json_set_bool(doc, "stopped", stopped);
	if (!stopped)
		json_set_str(doc, "status", run->status);
	if (settings_flag(s, OPT_JSON))
		command_print_json(doc);
	else if (stopped)
		command_say("run %s has ended; its work is kept: baton show %s\n", run->id,
			    run->id);
	else
		command_say("run %s is not running (%s)\n", run->id, run->status);
}

static int stop_agent(const struct settings *s, const struct past_run *run,
		      const struct past_agent *agent, struct err *err)
{
	AUTO_JSON struct json_object *request = json_object_new_object();

	json_set_str(request, "op", "stop");
	return tell_run(s, run, agent, request,
			"is being stopped, with those that it started; its work is kept", err);
}

int cmd_stop(struct settings *s)
{
	struct past_run run;
	struct past_agent *agent;
	struct err err = ERR_INIT;

	if (settings_n_args(s) != 1) {
		err_set(&err, ERR_USAGE, "stop needs the name of a RUN; see 'baton ls'");
		return command_fail(&err);
	}
	if (runs_find(s, settings_arg(s, 0), false, &run, &agent, &err) < 0)
		return command_fail(&err);
	int rc = agent ? stop_agent(s, &run, agent, &err) : stop(&run, &err);
	if (rc >= 0 && !agent)
		print_stopped(s, &run, rc > 0);
	run_release(&run);
	return rc < 0 ? command_fail(&err) : EXIT_OK;
}
