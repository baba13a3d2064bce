/*
 * wait.c - the one place where the agent waits, and where everything that comes in is taken.
 *
 * poll(2) over the channel, a signalfd and the caller's descriptors. Frames are handled here at
 * once, so a ping is answered and a stop is seen whatever the agent waits for: a model's answer, a
 * command, a checkout. What a frame means for the work is only noted; the straight-line code looks
 * at the notes when its wait returns. After a stop every wait fails at once, so clean-up code
 * cannot hang.
 */
#include "agent/waiter.h"

#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"

#define POLL_MAX_MS 60000

struct ack {
	char *key, *body;
	bool acked, ok;
};

struct waiter {
	struct channel *channel;
	struct call_callers *calls;
	int signal_fd;
	struct pollfd *polled; /* the caller's descriptors and ours */
	size_t cap_polled;

	struct buf start;
	bool started;
	enum waiter_worktree worktree;
	char *worktree_message;

	struct ack acks[ACK_KINDS];

	bool stopping, gone, interruptible, interrupted;
	int report_wishes; /* not yet taken */
	bool report_taken;
	struct json_object *compact;	     /* a wish */
	char *reset;			     /* a wish, and why */
	struct json_object *children, *said; /* lists of what was not taken yet; NULL */
	char *reason, *report_reason;
	struct err failure;
	bool news; /* a frame or a signal was handled in this wait */
};

/* The first reason stays: a TERM that follows a stop says nothing new. */
static void begin_stop(struct waiter *w, const char *reason)
{
	if (w->stopping)
		return;
	w->stopping = true;
	w->reason = mem_strdup(reason);
}

static int on_start(struct waiter *w, const struct frame *f, struct err *err)
{
	if (w->started)
		return err_set(err, ERR_INVALID, "a second start document");
	w->started = true;
	buf_add(&w->start, f->body, f->len);
	return 0;
}

/* A second ready overrides: the parent may have tried once more. */
static int on_ready(struct waiter *w, const struct frame *f, struct err *err)
{
	AUTO_JSON struct json_object *body = NULL;

	if (json_parse(f->body, f->len, &body, err) < 0)
		return err_prefix(err, "ready");
	free(w->worktree_message);
	w->worktree_message = mem_strdup(json_str(body, "message", "no reason was given"));
	w->worktree = json_flag(body, "ok", false) ? WORKTREE_READY : WORKTREE_FAILED;
	return 0;
}

/* A second wish to report, or one after the first was taken, is a stop (docs/documents.md). */
static void on_report_wish(struct waiter *w, const char *reason)
{
	if (w->report_wishes || w->report_taken) {
		begin_stop(w, reason);
		return;
	}
	w->report_wishes = 1;
	w->report_reason = mem_strdup(reason);
	if (w->interruptible)
		w->interrupted = true;
}

static int on_compact_wish(struct waiter *w, const struct frame *f, struct err *err)
{
	struct json_object *body = NULL;

	if (json_parse(f->body, f->len, &body, err) < 0)
		return err_prefix(err, "control compact");
	json_object_put(w->compact);
	w->compact = body;
	return 0;
}

static void on_reset_wish(struct waiter *w, const char *reason)
{
	free(w->reset);
	w->reset = mem_strdup(reason);
}

/* One more for a list that somebody takes from the front. */
static int keep_document(struct json_object **list, const struct frame *f, struct err *err)
{
	struct json_object *body = NULL;

	if (json_parse(f->body, f->len, &body, err) < 0)
		return err_prefix(err, "body of a '%s' frame", frame_name(f->type));
	if (!*list)
		*list = json_object_new_array();
	json_object_array_add(*list, body);
	return 0;
}

/* An action that we do not know is an error, not a thing to ignore: it may have been the newer word
 * for stop, and an agent that does not hear is killed anyway. */
static int on_control(struct waiter *w, const struct frame *f, struct err *err)
{
	const char *action = json_str(f->header, "action", "");
	const char *reason = json_str(f->header, "reason", "");

	if (!strcmp(action, "stop"))
		begin_stop(w, reason);
	else if (!strcmp(action, "report"))
		on_report_wish(w, reason);
	else if (!strcmp(action, "compact"))
		return on_compact_wish(w, f, err);
	else if (!strcmp(action, "reset"))
		on_reset_wish(w, reason);
	else if (!strcmp(action, "say"))
		return keep_document(&w->said, f, err);
	else
		return err_set(err, ERR_INVALID, "unknown control action '%.40s'", action);
	return 0;
}

static void on_ack(struct waiter *w, const struct frame *f)
{
	const char *key = json_str(f->header, "call", "");

	for (size_t i = 0; i < ACK_KINDS; i++) {
		struct ack *ack = &w->acks[i];

		/* An answer to a key that nobody waits for is a repeated one: it means nothing. */
		if (!ack->key || ack->acked || strcmp(key, ack->key) != 0)
			continue;
		ack->acked = true;
		ack->ok = json_flag(f->header, "ok", false);
		ack->body = mem_strndup(f->body ? f->body : "", f->len);
	}
}

static int on_frame(struct channel *ch, const struct frame *f, void *arg, struct err *err)
{
	struct waiter *w = arg;

	w->news = true;
	switch (f->type) {
	case FRAME_START: return on_start(w, f, err);
	case FRAME_READY: return on_ready(w, f, err);
	case FRAME_CONTROL: return on_control(w, f, err);
	case FRAME_ACK: on_ack(w, f); return 0;
	case FRAME_CHILD: return keep_document(&w->children, f, err);
	case FRAME_WAITING:
	case FRAME_GRANT:
	case FRAME_DATA:
	case FRAME_END:
	case FRAME_AGAIN:
	case FRAME_CREDIT: return call_callers_frame(w->calls, f, err);
	default:
		return err_set(err, ERR_INVALID, "a frame '%s' is not for an agent",
			       frame_name(f->type));
	}
}

/* A signalfd and not handlers: there is then one place where things come in, and no code that runs
 * between two others. Children get a clean mask by spawn. */
static int open_signals(struct err *err)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return err_sys(err, "cannot block signals");
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return err_sys(err, "cannot open a signalfd");
	return fd;
}

struct waiter *waiter_new(int fd_in, int fd_out, struct err *err)
{
	struct waiter *w = mem_alloc(sizeof(*w));

	w->channel = channel_new(fd_in, fd_out, FROM_P, on_frame, w);
	channel_keep(w->channel, NULL);
	w->calls = call_callers_new(w->channel);
	w->signal_fd = open_signals(err);
	if (w->signal_fd < 0) {
		waiter_free(w);
		return NULL;
	}
	return w;
}

void waiter_free(struct waiter *w)
{
	if (!w)
		return;
	call_callers_free(w->calls);
	channel_free(w->channel);
	if (w->signal_fd >= 0)
		close(w->signal_fd);
	buf_release(&w->start);
	free(w->polled);
	free(w->worktree_message);
	for (size_t i = 0; i < ACK_KINDS; i++) {
		free(w->acks[i].key);
		free(w->acks[i].body);
	}
	json_object_put(w->compact);
	json_object_put(w->children);
	json_object_put(w->said);
	free(w->reason);
	free(w->report_reason);
	free(w->reset);
	free(w);
}

/* Several signals of one kind are one entry: SIGCHLD says "look at your children", never how many.
 */
static void take_signals(struct waiter *w)
{
	struct signalfd_siginfo info;

	while (read(w->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		w->news = true;
		if (info.ssi_signo != SIGCHLD)
			begin_stop(w, "the process was told to end by a signal");
	}
}

/* A broken protocol is handled as a gone parent: nothing that it says can be trusted any more. */
static void parent_is_gone(struct waiter *w, const struct err *failure)
{
	w->gone = true;
	w->failure = *failure;
	if (failure->code != ERR_CLOSED)
		log_error("channel to the parent: %s", failure->message);
}

/* Reading comes first, so that credit and stops are known before more is written. */
static void serve_channel(struct waiter *w, bool readable, bool writable)
{
	struct err e = ERR_INIT;

	if (readable && channel_on_readable(w->channel, &e) < 0) {
		parent_is_gone(w, &e);
		return;
	}
	if (writable) {
		if (channel_on_writable(w->channel, &e) < 0) {
			parent_is_gone(w, &e);
			return;
		}
		call_callers_pump(w->calls);
	}
}

/* Fills the poll list: the caller's n, then the signals, then the channel's one or two. */
static size_t fill_polled(struct waiter *w, const struct pollfd *fds, size_t n)
{
	int in = channel_fd_in(w->channel), out = channel_fd_out(w->channel);
	bool writes = channel_wants_write(w->channel);
	size_t count = n;

	MEM_GROW(w->polled, w->cap_polled, n + 3);
	if (n)
		memcpy(w->polled, fds, n * sizeof(*fds));
	w->polled[count++] = (struct pollfd){.fd = w->signal_fd, .events = POLLIN};
	w->polled[count] = (struct pollfd){.fd = in, .events = POLLIN};
	if (writes && in == out)
		w->polled[count].events |= POLLOUT;
	count++;
	if (writes && in != out)
		w->polled[count++] = (struct pollfd){.fd = out, .events = POLLOUT};
	return count;
}

/* The table of waiter.h, in its order of rank. */
static int check_state(const struct waiter *w, struct err *err)
{
	if (w->gone)
		return err_set(err, ERR_CLOSED, "the parent is gone: %s", w->failure.message);
	if (w->stopping || w->interrupted)
		return err_set(err, ERR_CANCELLED, "the agent is to %s",
			       w->stopping ? "stop" : "report now");
	return 0;
}

/* One poll. Returns the number of the caller's ready descriptors, or -1. */
static int poll_once(struct waiter *w, struct pollfd *fds, size_t n, int timeout, struct err *err)
{
	if (channel_wants_write(w->channel)) /* news that was held back, in one write */
		serve_channel(w, false, true);
	size_t count = fill_polled(w, fds, n);
	int ready = 0, in = channel_fd_in(w->channel);
	bool readable = false, writable = false;

	if (poll(w->polled, count, timeout) < 0) {
		if (errno == EINTR)
			return 0;
		return err_sys(err, "cannot wait");
	}
	for (size_t i = 0; i < n; i++) {
		fds[i].revents = w->polled[i].revents;
		ready += fds[i].revents != 0;
	}
	if (w->polled[n].revents)
		take_signals(w);
	for (size_t i = n + 1; i < count; i++) {
		short got = w->polled[i].revents;

		readable |= w->polled[i].fd == in && (got & (POLLIN | POLLHUP | POLLERR));
		writable |=
			(w->polled[i].events & POLLOUT) && (got & (POLLOUT | POLLERR | POLLHUP));
	}
	serve_channel(w, readable, writable);
	return ready;
}

int wait_poll(struct waiter *w, struct pollfd *fds, size_t n, int64_t deadline_ms, struct err *err)
{
	int64_t left;
	int ready;

	w->news = false;
	for (;;) {
		if (check_state(w, err) < 0)
			return -1;
		left = deadline_ms - clock_mono_ms();
		/* poll takes an int: long waits go round the loop once a minute. */
		if (deadline_ms == INT64_MAX)
			left = POLL_MAX_MS;
		ready = poll_once(w, fds, n, (int)MAX(MIN(left, POLL_MAX_MS), 0), err);
		if (ready < 0 || check_state(w, err) < 0)
			return -1;
		if (ready || w->news)
			return ready;
		if (left <= 0)
			return err_set(err, ERR_TIMEOUT, "the time is over");
	}
}

struct channel *waiter_channel(struct waiter *w)
{
	return w->channel;
}

struct call_callers *waiter_calls(struct waiter *w)
{
	return w->calls;
}

const struct buf *waiter_start(const struct waiter *w)
{
	return w->started ? &w->start : NULL;
}

void waiter_drop_start(struct waiter *w)
{
	buf_release(&w->start);
}

enum waiter_worktree waiter_worktree(const struct waiter *w, const char **ret_message)
{
	if (ret_message)
		*ret_message = w->worktree_message ? w->worktree_message : "";
	return w->worktree;
}

/* A key is expected before its frame is sent: the answer may come within the send. */
void waiter_expect_ack(struct waiter *w, enum ack_kind kind, const char *key)
{
	struct ack *ack = &w->acks[kind];

	free(ack->key);
	free(ack->body);
	*ack = (struct ack){.key = mem_strdup(key)};
}

bool waiter_acked(const struct waiter *w, enum ack_kind kind, bool *ret_ok, const char **ret_body)
{
	const struct ack *ack = &w->acks[kind];

	if (ack->acked) {
		*ret_ok = ack->ok;
		*ret_body = ack->body;
	}
	return ack->acked;
}

bool waiter_stopping(const struct waiter *w)
{
	return w->stopping;
}

bool waiter_parent_gone(const struct waiter *w)
{
	return w->gone;
}

bool waiter_report_wanted(const struct waiter *w, const char **ret_reason)
{
	if (ret_reason)
		*ret_reason = w->report_reason ? w->report_reason : "";
	return w->report_wishes > 0;
}

void waiter_take_report(struct waiter *w)
{
	w->report_wishes = 0;
	w->report_taken = true;
	w->interrupted = false;
}

struct json_object *waiter_take_compact(struct waiter *w)
{
	return take_ptr(w->compact);
}

static struct json_object *take_first(struct json_object **list)
{
	struct json_object *first = NULL;

	if (json_len(*list)) {
		first = json_object_get(json_at(*list, 0));
		json_object_array_del_idx(*list, 0, 1);
	}
	return first;
}

struct json_object *waiter_take_child(struct waiter *w)
{
	return take_first(&w->children);
}

struct json_object *waiter_take_said(struct waiter *w)
{
	return take_first(&w->said);
}

bool waiter_has_said(const struct waiter *w)
{
	return json_len(w->said) > 0;
}

const char *waiter_reason(const struct waiter *w)
{
	return w->reason ? w->reason : "";
}

char *waiter_take_reset(struct waiter *w)
{
	return take_ptr(w->reset);
}

/* A wish that came just before counts as well, else a tool could start that nobody interrupts. */
void waiter_interruptible(struct waiter *w, bool on)
{
	w->interruptible = on;
	if (on && w->report_wishes)
		w->interrupted = true;
}

void waiter_resume(struct waiter *w)
{
	w->interrupted = false;
	w->interruptible = false;
}
