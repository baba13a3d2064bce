/*
 * cmd_stop.c - `baton stop RUN`: SIGTERM to the run's parent, then wait until its lock is free.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "orchestrator/command.h"
#include "orchestrator/runs.h"

static int stop(const struct past_run *run, struct err *err)
{
	AUTO_FREE char *path = file_join(run->dir, "lock");
	AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (!run->alive) {
		printf("run %s is not running (%s)\n", run->id, run->status);
		return 0;
	}
	if (fd < 0 || run->pid <= 1 || kill(run->pid, SIGTERM) < 0)
		return err_sys(err, "cannot signal process %d of run %s", (int)run->pid, run->id);
	/* The lock is held for the parent's life: getting it is the end of the run. */
	if (flock(fd, LOCK_SH) < 0)
		return err_sys(err, "cannot wait for run %s", run->id);
	printf("run %s has ended; its work is kept: baton show %s\n", run->id, run->id);
	return 0;
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
	int rc = stop(&run, &err);
	run_release(&run);
	return rc < 0 ? command_fail(&err) : EXIT_OK;
}
