/*
 * warden.c - see warden.h. Runs as the process that the user started.
 *
 * It holds no run state and does almost nothing, so that hardly anything can make it fail. Signals
 * that the terminal sends reach the parent by themselves (same process group); those that a process
 * sends to the warden are forwarded: si_code tells them apart. When the warden itself is killed,
 * the parent gets its death signal (TERM) and stops in good order.
 */
#include "orchestrator/warden.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/spawn.h"

#define CLEANUP_MS 4500 /* no process is left within 5 seconds */

static volatile sig_atomic_t parent_pid;

static void on_signal(int sig, siginfo_t *info, void *context)
{
	int saved = errno;

	if (info->si_code <= 0 && parent_pid > 0)
		kill((pid_t)parent_pid, sig);
	errno = saved;
}

static void catch_signals(void)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
	struct sigaction ignore = {.sa_handler = SIG_IGN};

	sigfillset(&action.sa_mask);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaction(signals[i], &action, NULL);
	sigaction(SIGQUIT, &ignore, NULL);
	sigaction(SIGPIPE, &ignore, NULL);
}

void warden_unblock_signals(void)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static int parent_main(pid_t warden, int (*body)(void *arg), void *arg)
{
	struct sigaction plain = {.sa_handler = SIG_DFL};

	sigaction(SIGQUIT, &plain, NULL);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != warden)
		return 1;
	return body(arg);
}

/* Waits for the parent; strays that were given to the warden are reaped on the way. */
static int wait_for_parent(pid_t parent)
{
	int status = 0;

	for (;;) {
		pid_t pid = waitpid(-1, &status, 0);
		if (pid == parent)
			return status;
		if (pid < 0 && errno != EINTR)
			return 1 << 8;
	}
}

int warden_run(int (*body)(void *arg), void *arg)
{
	struct err err = ERR_INIT;
	sigset_t block, old;
	pid_t warden = getpid();

	prctl(PR_SET_DUMPABLE, 0);
	if (spawn_become_subreaper(&err) < 0)
		log_warn("%s: a killed parent may leave processes", err.message);
	fflush(NULL);
	sigfillset(&block);
	sigprocmask(SIG_BLOCK, &block, &old); /* no signal is lost between fork and handlers */
	pid_t pid = fork();
	if (pid == 0) {
		int status = parent_main(warden, body, arg);
		fflush(NULL);
		_exit(status);
	}
	if (pid < 0) {
		sigprocmask(SIG_SETMASK, &old, NULL);
		log_error("cannot fork: out of processes or memory");
		return 1;
	}
	parent_pid = pid;
	catch_signals();
	sigprocmask(SIG_SETMASK, &old, NULL);
	int status = wait_for_parent(pid);
	spawn_kill_descendants(NULL, 0, clock_mono_ms() + CLEANUP_MS);
	if (!WIFSIGNALED(status))
		return WEXITSTATUS(status);
	fprintf(stderr,
		"baton: the parent process was killed by signal %d; all its processes were ended. "
		"Finished work is kept: see 'baton ls'\n",
		WTERMSIG(status));
	return 128 + WTERMSIG(status);
}
