/*
 * child.c - the registry; runs in the parent's loop.
 *
 * The set owns all struct child. Channel events are libevent's; writing is armed only while a
 * channel holds bytes (children_flush). Reaping is driven by SIGCHLD, which the set's own signal
 * event catches. A child whose channel ended is not gone until it was reaped (a job is done when
 * its pipe is closed *and* its exit status is in), and a child that exited is first read to the end
 * of its channel, so that a last frame is never lost.
 */
#include "orchestrator/child.h"

#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"

#define SWEEP_MS 50 /* a sweep blocks the loop for no longer than this */

struct children {
	struct event_base *base;
	struct event *ev_child;
	struct child *first;
	bool failed[CHILD_JOB + 1]; /* by kind */
};

const char *child_kind_name(enum child_kind kind)
{
	static const char *const names[] = {"agent", "gateway", "git", "view", "rehearsal", "job"};

	return (size_t)kind < ARRAY_SIZE(names) ? names[kind] : "?";
}

const char *child_describe_exit(int wait_status, char *buf, size_t size)
{
	if (WIFSIGNALED(wait_status)) {
		const char *name = sigabbrev_np(WTERMSIG(wait_status));
		snprintf(buf, size, "killed by signal %d (SIG%s)", WTERMSIG(wait_status),
			 name ? name : "?");
	} else {
		snprintf(buf, size, "exited with status %d", WEXITSTATUS(wait_status));
	}
	return buf;
}

static void child_close_channel(struct child *child)
{
	if (child->ev_in)
		event_free(child->ev_in);
	if (child->ev_out)
		event_free(child->ev_out);
	child->ev_in = child->ev_out = NULL;
	if (child->channel && child->handler->on_closed)
		child->handler->on_closed(child);
	channel_free(child->channel);
	child->channel = NULL;
}

static void child_free(struct child *child)
{
	child_close_channel(child);
	if (child->ev_kill)
		event_free(child->ev_kill);
	if (child->pidfd >= 0)
		close(child->pidfd);
	free(child->failure);
	free(child);
}

static void child_signal_group(struct child *child, int sig)
{
	if (kill(-child->pid, sig) < 0 && errno == ESRCH)
		kill(child->pid, sig);
}

static void on_kill_timer(evutil_socket_t fd, short what, void *arg)
{
	struct child *child = arg;

	child->state = CHILD_KILLED;
	child_signal_group(child, SIGKILL);
}

static void arm_kill(struct child *child, int64_t grace_ms)
{
	struct timeval tv = clock_timeval(grace_ms);

	if (!child->ev_kill)
		child->ev_kill = evtimer_new(child->set->base, on_kill_timer, child);
	evtimer_add(child->ev_kill, &tv);
	child->kill_after_ms = clock_mono_ms() + grace_ms;
}

void child_stop(struct child *child, int64_t grace_ms)
{
	if (child->state == CHILD_RUNNING) {
		child->state = CHILD_STOPPING;
		child_signal_group(child, SIGTERM);
		arm_kill(child, grace_ms);
	} else if (child->state == CHILD_STOPPING &&
		   clock_mono_ms() + grace_ms < child->kill_after_ms) {
		arm_kill(child, grace_ms);
	}
}

void child_expect_end(struct child *child, int64_t grace_ms)
{
	if (child->state != CHILD_RUNNING)
		return;
	child->state = CHILD_STOPPING;
	arm_kill(child, grace_ms);
}

void child_fail(struct child *child, const char *fmt, ...)
{
	va_list ap;

	if (!child->failure) {
		char text[512];
		va_start(ap, fmt);
		vsnprintf(text, sizeof(text), fmt, ap);
		va_end(ap);
		child->failure = mem_strdup(text);
		log_warn("%s: %s", child->name, text);
	}
	child_stop(child, 0);
}

static int on_channel_frame(struct channel *ch, const struct frame *frame, void *arg,
			    struct err *err)
{
	struct child *child = arg;

	return child->handler->on_frame(child, frame, err);
}

/* Reads what is there. False when the channel is over (closed or failed). */
static bool child_read(struct child *child)
{
	struct err err = ERR_INIT;

	if (channel_on_readable(child->channel, &err) == 0)
		return true;
	bool clean = err.code == ERR_CLOSED;
	child_close_channel(child);
	if (!clean)
		child_fail(child, "%s", err.message);
	return false;
}

static void on_channel_in(evutil_socket_t fd, short what, void *arg)
{
	struct child *child = arg;

	child_read(child);
}

static void on_channel_out(evutil_socket_t fd, short what, void *arg)
{
	struct child *child = arg;
	struct err err = ERR_INIT;

	if (channel_on_writable(child->channel, &err) < 0) {
		/* The peer closed its reading side: what it had to say is still read until its end.
		 */
		event_del(child->ev_out);
		child->write_broken = true;
		child_read(child);
	}
}

static void child_listen(struct child *child)
{
	struct event_base *base = child->set->base;

	child->ev_in = event_new(base, channel_fd_in(child->channel), EV_READ | EV_PERSIST,
				 on_channel_in, child);
	child->ev_out = event_new(base, channel_fd_out(child->channel), EV_WRITE | EV_PERSIST,
				  on_channel_out, child);
	event_add(child->ev_in, NULL);
}

/* Last words: frames that the child wrote before it died. */
static void child_read_rest(struct child *child)
{
	for (int turns = 0; child->channel && turns < 4096; turns++) {
		char byte;
		ssize_t n = recv(channel_fd_in(child->channel), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
		if (n < 0)
			return; /* a grandchild holds the other end open: nothing more is there now
				 */
		if (!child_read(child))
			return;
	}
}

static void child_gone(struct child *child, int wait_status)
{
	struct children *set = child->set;

	if (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) != 0)
		set->failed[child->kind] = true;
	child->state = CHILD_GONE; /* its pid is free: a failure in its last words signals nobody */
	child_read_rest(child);
	for (struct child **p = &set->first; *p; p = &(*p)->next) {
		if (*p == child) {
			*p = child->next;
			break;
		}
	}
	child_close_channel(child);
	if (child->handler->on_exit)
		child->handler->on_exit(child, wait_status, child->failure);
	child_free(child);
}

static struct child *child_by_pid(struct children *set, pid_t pid)
{
	for (struct child *c = set->first; c; c = c->next) {
		if (c->pid == pid)
			return c;
	}
	return NULL;
}

static void on_sigchld(evutil_socket_t sig, short what, void *arg)
{
	struct children *set = arg;
	siginfo_t info;

	for (;;) {
		memset(&info, 0, sizeof(info));
		if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || !info.si_pid)
			return;
		struct child *child = child_by_pid(set, info.si_pid);
		int status;
		if (child) /* its pid is still taken, so its group's number cannot have been reused
			    */
			kill(-child->pid, SIGKILL);
		if (waitpid(info.si_pid, &status, 0) < 0)
			return;
		if (child)
			child_gone(child, status);
		else
			log_debug("reaped stray process %d", (int)info.si_pid);
	}
}

struct children *children_new(struct event_base *base)
{
	struct children *set = mem_alloc(sizeof(*set));

	set->base = base;
	set->ev_child = evsignal_new(base, SIGCHLD, on_sigchld, set);
	event_add(set->ev_child, NULL);
	return set;
}

void children_free(struct children *set)
{
	if (!set)
		return;
	while (set->first) {
		struct child *child = set->first;
		set->first = child->next;
		child_signal_group(child, SIGKILL);
		waitpid(child->pid, NULL, 0);
		child_free(child);
	}
	event_free(set->ev_child);
	free(set);
}

static int make_socketpair(int ret[2], struct err *err)
{
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ret) < 0)
		return err_sys(err, "cannot make a channel");
	return 0;
}

int children_spawn(struct children *set, const struct child_spec *spec, struct child **ret,
		   struct err *err)
{
	struct spawn_opts opts = spec->opts;
	int pair[2] = {-1, -1};
	AUTO_FD int ours = -1;
	AUTO_FD int theirs = -1;

	if (spec->channel && make_socketpair(pair, err) < 0)
		return -1;
	ours = pair[0];
	theirs = pair[1];
	if (spec->channel)
		opts.fd_channel = theirs;
	struct child *child = mem_alloc(sizeof(*child));
	child->pidfd = -1;
	if (spawn_process(&opts, &child->pid, &child->pidfd, err) < 0) {
		free(child);
		return err_prefix(err, "cannot start the %s", child_kind_name(spec->kind));
	}
	child->kind = spec->kind;
	child->state = CHILD_RUNNING;
	snprintf(child->name, sizeof(child->name), "%s", spec->name);
	child->arg = spec->arg;
	child->handler = spec->handler;
	child->set = set;
	child->next = set->first;
	set->first = child;
	if (spec->channel) {
		int fd = take_fd(ours);
		child->channel = channel_new(fd, fd, spec->sender, on_channel_frame, child);
		channel_keep(child->channel, spec->hello);
		child_listen(child);
	}
	*ret = child;
	return 0;
}

void child_hand_over(struct child *child, const char *name, const struct child_handler *handler,
		     void *arg)
{
	snprintf(child->name, sizeof(child->name), "%s", name);
	child->handler = handler;
	child->arg = arg;
}

size_t children_count(const struct children *set, int kind)
{
	size_t n = 0;

	for (const struct child *c = set->first; c; c = c->next)
		n += kind < 0 || c->kind == (enum child_kind)kind;
	return n;
}

bool children_failed(const struct children *set, enum child_kind kind)
{
	return set->failed[kind];
}

void children_stop_all(struct children *set, int kind, int64_t grace_ms)
{
	for (struct child *c = set->first; c; c = c->next) {
		if (kind < 0 || c->kind == (enum child_kind)kind)
			child_stop(c, grace_ms);
	}
}

void children_flush(struct children *set)
{
	for (struct child *c = set->first; c; c = c->next) {
		if (!c->channel || c->write_broken)
			continue;
		bool wants = channel_wants_write(c->channel);
		if (wants && !c->writing)
			event_add(c->ev_out, NULL);
		else if (!wants && c->writing)
			event_del(c->ev_out);
		c->writing = wants;
	}
}

bool children_sweep(struct children *set)
{
	AUTO_FREE pid_t *keep = NULL;
	size_t n = 0;

	keep = mem_array(NULL, children_count(set, -1) + 1, sizeof(*keep));
	for (struct child *c = set->first; c; c = c->next)
		keep[n++] = c->pid;
	return spawn_kill_descendants(keep, n, clock_mono_ms() + SWEEP_MS) >= 0;
}
