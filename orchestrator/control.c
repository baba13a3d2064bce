/*
 * control.c - listens in the parent, asks in a command.
 *
 * The path of such a socket has room for 107 bytes and a run's folder may be longer, so both sides go
 * through a descriptor of the folder (/proc/self/fd/N/control).
 */
#include "orchestrator/control.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "orchestrator/ancestry.h"
#include "orchestrator/control_requests.h"
#include "orchestrator/run.h"

#define NAME	    "control"
#define REQUEST_MAX (1 << 20)
#define ANSWER_MAX  (1 << 20)
#define CLIENTS_MAX 8
#define WAIT_S	    10

struct client {
	struct control *control; /* NULL: the slot is free */
	int fd;
	pid_t peer; /* that connected; 0: of another pid namespace */
	struct event *ev;
	struct buf in;
};

struct control {
	struct run *run;
	int dir_fd, fd;
	struct event *ev;
	struct client clients[CLIENTS_MAX];
};

/* ---- the parent's side ---- */

static void client_end(struct client *c)
{
	event_free(c->ev);
	close(c->fd);
	buf_release(&c->in);
	*c = (struct client){.control = NULL};
}

/* An answer is a few hundred bytes: a socket that cannot take them has no reader. */
static void answer(struct client *c)
{
	struct err err = ERR_INIT;
	AUTO_JSON struct json_object *request = NULL;
	AUTO_JSON struct json_object *reply = json_object_new_object();
	AUTO_BUF struct buf out = BUF_INIT;
	struct run *run = c->control->run;
	int rc = json_parse(c->in.data, c->in.len, &request, &err);

	if (rc == 0 && ancestry_has(c->peer, getpid()))
		rc = err_set(&err, ERR_DENIED, "what a run started does not control it");
	if (rc == 0)
		rc = control_request(run, request, &err);
	json_set_bool(reply, "ok", rc == 0);
	if (rc < 0)
		json_set_str(reply, "error", err.message);
	json_write(&out, reply);
	buf_addc(&out, '\n');
	if (send(c->fd, out.data, out.len, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		log_debug("control: an answer was not taken");
}

static void on_client(evutil_socket_t fd, short what, void *arg)
{
	struct client *c = arg;
	char part[4096];
	ssize_t n = what & EV_TIMEOUT ? 0 : recv(fd, part, sizeof(part), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0 || c->in.len + (size_t)n > REQUEST_MAX) {
		client_end(c);
		return;
	}
	buf_add(&c->in, part, (size_t)n);
	if (!memchr(part, '\n', (size_t)n))
		return;
	answer(c);
	client_end(c);
}

/* Only the same user, whatever the modes of the folders above say. The pid is that of the process that connected. */
static bool is_ours(int fd, pid_t *ret_peer)
{
	struct ucred peer = {.uid = (uid_t)-1};
	socklen_t n = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) < 0)
		return false;
	*ret_peer = peer.pid;
	return peer.uid == geteuid() || peer.uid == 0;
}

static void on_listen(evutil_socket_t fd, short what, void *arg)
{
	struct control *control = arg;
	struct timeval limit = {.tv_sec = WAIT_S};
	int got = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct client *c = NULL;
	pid_t peer = 0;

	(void)what;
	if (got < 0)
		return;
	for (size_t i = 0; i < CLIENTS_MAX && !c; i++)
		if (!control->clients[i].control)
			c = &control->clients[i];
	if (!c || !is_ours(got, &peer)) {
		close(got);
		return;
	}
	*c = (struct client){.control = control, .fd = got, .peer = peer, .in = BUF_INIT};
	c->ev = event_new(control->run->base, got, EV_READ | EV_PERSIST, on_client, c);
	event_add(c->ev, &limit);
}

static struct sockaddr_un address(int dir_fd)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/" NAME, dir_fd);
	return a;
}

static int listen_at(int dir_fd, struct err *err)
{
	struct sockaddr_un a = address(dir_fd);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return err_sys(err, "cannot make a socket");
	unlinkat(dir_fd, NAME, 0); /* of a parent that died: the run's lock is ours */
	if (bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 || fchmodat(dir_fd, NAME, 0600, 0) < 0 ||
	    listen(fd, CLIENTS_MAX) < 0) {
		err_sys(err, "cannot listen at '" NAME "'");
		close(fd);
		return -1;
	}
	return fd;
}

struct control *control_open(struct run *run, struct err *err)
{
	struct control *control = mem_alloc(sizeof(*control));

	control->run = run;
	control->fd = -1;
	control->dir_fd = open(run->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (control->dir_fd < 0)
		err_sys(err, "cannot open '%s'", run->dir);
	else
		control->fd = listen_at(control->dir_fd, err);
	if (control->fd < 0) {
		control_close(control);
		return NULL;
	}
	control->ev = event_new(run->base, control->fd, EV_READ | EV_PERSIST, on_listen, control);
	event_add(control->ev, NULL);
	return control;
}

void control_close(struct control *control)
{
	if (!control)
		return;
	for (size_t i = 0; i < CLIENTS_MAX; i++)
		if (control->clients[i].control)
			client_end(&control->clients[i]);
	if (control->ev)
		event_free(control->ev);
	if (control->fd >= 0) {
		close(control->fd);
		unlinkat(control->dir_fd, NAME, 0);
	}
	if (control->dir_fd >= 0)
		close(control->dir_fd);
	free(control);
}

/* ---- a command's side ---- */

static int connect_to(const char *dir, struct err *err)
{
	AUTO_FD int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct sockaddr_un a = address(dir_fd);
	struct timeval limit = {.tv_sec = WAIT_S};
	int fd;

	if (dir_fd < 0)
		return err_sys(err, "cannot open '%s'", dir);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_sys(err, "cannot make a socket");
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	if (connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0)
		return fd;
	err_set(err, ERR_NOT_FOUND, "the run does not listen: %s", strerror(errno));
	close(fd);
	return -1;
}

static int exchange(int fd, struct json_object *request, struct buf *in, struct err *err)
{
	AUTO_BUF struct buf out = BUF_INIT;
	char part[4096];
	ssize_t n;

	json_write(&out, request);
	buf_addc(&out, '\n');
	for (size_t at = 0; at < out.len; at += (size_t)n) {
		n = send(fd, out.data + at, out.len - at, MSG_NOSIGNAL);
		if (n < 0)
			return err_sys(err, "cannot ask the run");
	}
	while (in->len < ANSWER_MAX && (n = recv(fd, part, sizeof(part), 0)) > 0)
		buf_add(in, part, (size_t)n);
	if (in->len == 0)
		return err_set(err, ERR_TIMEOUT, "the run does not answer");
	return 0;
}

int control_ask(const char *dir, struct json_object *request, struct json_object **ret,
		struct err *err)
{
	AUTO_FD int fd = connect_to(dir, err);
	AUTO_BUF struct buf in = BUF_INIT;
	struct json_object *got = NULL;

	if (fd < 0 || exchange(fd, request, &in, err) < 0 ||
	    json_parse(buf_str(&in), in.len, &got, err) < 0)
		return -1;
	if (json_flag(got, "ok", false)) {
		*ret = got;
		return 0;
	}
	err_set(err, ERR_INVALID, "%s", json_str(got, "error", "the run refused"));
	json_object_put(got);
	return -1;
}
