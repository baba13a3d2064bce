/*
 * cmd_watch.c - `baton watch [RUN]`: a run as it goes on, whoever started it and where.
 *
 * Reads the run's journal and nothing else, so it can be started, stopped and repeated without the run noticing. It
 * ends with the run. Ctrl-C ends the watching, not the run.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/env.h"
#include "base/file.h"
#include "base/memory.h"
#include "orchestrator/command.h"
#include "orchestrator/runs.h"
#include "orchestrator/view/viewer.h"

#define LOOK_MS                                                                                    \
	1000 /* a parent that is killed leaves no last record, and some file systems no news */

struct watcher {
	int inotify, lock;
	bool over; /* nobody writes any more: what is there now is read, and then it ends */
};

static void on_resize(int sig)
{
	(void)sig;
}

static bool is_over(struct watcher *w)
{
	if (w->lock < 0)
		return true;
	if (flock(w->lock, LOCK_SH | LOCK_NB) < 0)
		return false;
	flock(w->lock, LOCK_UN);
	return true;
}

static int wait_news(int timeout_ms, void *arg)
{
	struct watcher *w = arg;
	struct pollfd fd = {.fd = w->inotify, .events = POLLIN};
	char events[4096];
	int longest = timeout_ms < 0 ? LOOK_MS : MIN(timeout_ms, LOOK_MS);

	if (w->over)
		return -1;
	w->over = is_over(w);
	if (!w->over && poll(&fd, 1, longest) > 0)
		(void)!read(w->inotify, events, sizeof(events));
	return 1;
}

static enum viewer_mode mode_for(const struct settings *s)
{
	if (settings_flag(s, OPT_JSON))
		return VIEW_JSON;
	return isatty(STDOUT_FILENO) && !env_get("NO_COLOR") ? VIEW_LIVE : VIEW_PLAIN;
}

static int watch(const struct settings *s, const struct past_run *run, struct err *err)
{
	AUTO_FREE char *journal = file_join(run->dir, "run.jsonl");
	AUTO_FREE char *lock = file_join(run->dir, "lock");
	AUTO_FD int news = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	AUTO_FD int lock_fd = open(lock, O_RDONLY | O_CLOEXEC);
	struct watcher w = {.inotify = news, .lock = lock_fd};
	struct viewer v;

	if (news >= 0)
		inotify_add_watch(news, journal, IN_MODIFY);
	int rc = viewer_open(&v, mode_for(s), STDOUT_FILENO, journal, err);
	if (rc == 0)
		rc = viewer_show(&v, wait_news, &w, err);
	viewer_release(&v);
	return rc;
}

int cmd_watch(struct settings *s)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	struct sigaction resize = {.sa_handler = on_resize};
	struct past_run run;
	struct past_agent *agent;
	struct err err = ERR_INIT;

	if (runs_find(s, settings_n_args(s) ? settings_arg(s, 0) : NULL, false, &run, &agent,
		      &err) < 0)
		return command_fail(&err);
	sigaction(SIGPIPE, &ignore, NULL);
	sigaction(SIGWINCH, &resize, NULL);
	int rc = watch(s, &run, &err);
	run_release(&run);
	return rc < 0 && err.sys != EPIPE ? command_fail(&err) : EXIT_OK;
}
