/*
 * peer.c - see peer.h.
 */
#include "peer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/json.h"
#include "base/memory.h"

void peer_clean_environment(void)
{
	static const char *const names[] = {
		"http_proxy", "https_proxy", "HTTPS_PROXY",    "all_proxy",	"ALL_PROXY",
		"no_proxy",   "NO_PROXY",    "CURL_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR"};
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		unsetenv(names[i]);
}

static struct peer_call *find(struct peer *p, int64_t req)
{
	for (size_t i = 0; i < p->n_calls; i++) {
		if (p->calls[i]->req == req)
			return p->calls[i];
	}
	fail_msg("the gateway speaks of call %" PRId64 ", which is not open", req);
	return NULL;
}

void peer_send_body(struct peer *p, struct peer_call *c)
{
	while (c->sent < c->len && c->credit > 0) {
		size_t n = MIN(MIN(c->len - c->sent, (size_t)c->credit), (size_t)FRAME_BODY_MAX);
		channel_sendf(p->channel, FRAME_DATA, c->body + c->sent, n, "\"req\":%" PRId64,
			      c->req);
		c->sent += n;
		c->credit -= (int64_t)n;
		if (c->sent == c->len)
			channel_sendf(p->channel, FRAME_END, NULL, 0, "\"req\":%" PRId64, c->req);
	}
}

void peer_credit(struct peer *p, struct peer_call *c)
{
	if (c->owed > 0)
		channel_sendf(p->channel, FRAME_CREDIT, NULL, 0,
			      "\"req\":%" PRId64 ",\"bytes\":%" PRId64, c->req, c->owed);
	c->owed = 0;
}

static void on_grant(struct peer *p, struct peer_call *c)
{
	c->grants++;
	c->granted = true;
	c->granted_at = clock_mono_ms();
	c->sent = 0;
	c->owed = 0;
	c->credit = CALL_CREDIT;
	channel_sendf(p->channel, FRAME_CREDIT, NULL, 0, "\"req\":%" PRId64 ",\"bytes\":0", c->req);
	if (!c->hold_body)
		peer_send_body(p, c);
}

static void on_end(struct peer_call *c, const struct frame *f)
{
	struct json_object *h = f->header;
	assert_false(c->over);
	c->over = true;
	c->over_at = clock_mono_ms();
	snprintf(c->outcome, sizeof(c->outcome), "%s", json_str(h, "outcome", ""));
	snprintf(c->class, sizeof(c->class), "%s", json_str(h, "class", ""));
	c->status = (int)json_i64(h, "status", 0);
	c->used = json_i64(h, "used", 0);
	c->limit = json_i64(h, "limit", 0);
	c->end_until = json_i64(h, "until", 0);
	c->ttft_ms = json_i64(h, "ttft_ms", -1);
	c->message = mem_strndup(f->body ? f->body : "", f->len);
}

static void on_answer(struct peer *p, struct peer_call *c, const struct frame *f)
{
	assert_true(c->granted);
	buf_add(&c->answer, f->body, f->len);
	c->datas++;
	c->owed += (int64_t)f->len;
	p->most_out = MAX(p->most_out, c->owed);
	if (!c->hold_credit)
		peer_credit(p, c);
}

static void on_call_frame(struct peer *p, const struct frame *f)
{
	struct json_object *h = f->header;
	struct peer_call *c = find(p, json_i64(h, "req", -1));
	switch (f->type) {
	case FRAME_GRANT:
		c->attempt = (int)json_i64(h, "attempt", 0);
		on_grant(p, c);
		break;
	case FRAME_DATA: on_answer(p, c, f); break;
	case FRAME_END: on_end(c, f); break;
	case FRAME_CREDIT:
		c->credit += json_i64(h, "bytes", 0);
		if (!c->hold_body)
			peer_send_body(p, c);
		break;
	case FRAME_WAITING:
		c->waits++;
		c->waiting_until = json_i64(h, "until", 0);
		snprintf(c->waiting + strlen(c->waiting), sizeof(c->waiting) - strlen(c->waiting),
			 "%s ", json_str(h, "reason", ""));
		break;
	default:
		c->agains++;
		c->granted = false;
		c->until = json_i64(h, "until", 0);
		snprintf(c->reason, sizeof(c->reason), "%s", json_str(h, "reason", ""));
		buf_clear(&c->answer);
		break;
	}
}

static int on_frame(struct channel *ch, const struct frame *f, void *arg, struct err *err)
{
	struct peer *p = arg;
	switch (f->type) {
	case FRAME_HELLO:
		p->hello = strcmp(json_str(f->header, "role", ""), "gateway") == 0;
		return 0;
	case FRAME_READY: p->ready = true; return 0;
	case FRAME_PONG: p->pongs++; return 0;
	case FRAME_NOTE:
		buf_addf(&p->notes, "%s %.*s\n", json_str(f->header, "name", ""), (int)f->len,
			 f->body);
		return 0;
	default: on_call_frame(p, f); return 0;
	}
}

void peer_turn(struct peer *p, int ms)
{
	struct err err = ERR_INIT;
	struct pollfd fd = {.fd = channel_fd_in(p->channel), .events = POLLIN};
	if (channel_wants_write(p->channel))
		fd.events |= POLLOUT;
	if (poll(&fd, 1, ms) <= 0)
		return;
	int rc = 0;
	if (fd.revents & POLLOUT)
		rc = channel_on_writable(p->channel, &err);
	if (rc == 0 && (fd.revents & (POLLIN | POLLHUP | POLLERR)))
		rc = channel_on_readable(p->channel, &err);
	if (rc && err.code != ERR_CLOSED)
		fail_msg("channel: %s", err.message);
	p->closed |= rc != 0;
}

void peer_wait(struct peer *p, bool (*cond)(void *arg), void *arg)
{
	int64_t deadline = clock_mono_ms() + PEER_DEADLINE_MS;
	while (!cond(arg)) {
		if (p->closed)
			fail_msg("the gateway is gone");
		if (clock_mono_ms() > deadline)
			fail_msg("the condition did not come true; notes:\n%s", buf_str(&p->notes));
		peer_turn(p, 20);
	}
}

static bool is_over(void *arg)
{
	return ((struct peer_call *)arg)->over;
}

void peer_wait_over(struct peer *p, struct peer_call *c)
{
	peer_wait(p, is_over, c);
}

static bool is_ready(void *arg)
{
	return ((struct peer *)arg)->ready;
}

static void exec_gateway(int channel, int keys)
{
	const char *program = env_get("BATON_GATEWAY");
	if (!program || dup2(channel, 10) < 0 || dup2(keys, 11) < 0 || dup2(10, 3) < 0 ||
	    dup2(11, 4) < 0)
		_exit(120);
	close_range(5, ~0U, 0);
	execl(program, program, (char *)NULL);
	_exit(121);
}

void peer_start(struct peer *p, const char *keys, const char *start)
{
	int pair[2];
	*p = (struct peer){.pid = -1};
	int memfd = memfd_create("keys", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_true(memfd >= 0);
	if (keys)
		assert_int_equal(write(memfd, keys, strlen(keys)), strlen(keys));
	assert_int_equal(fcntl(memfd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	p->pid = fork();
	if (p->pid == 0)
		exec_gateway(pair[1], memfd);
	close(pair[1]);
	close(memfd);
	p->channel = channel_new(pair[0], pair[0], FROM_G, on_frame, p);
	channel_send(p->channel, FRAME_START, NULL, start, strlen(start));
	peer_wait(p, is_ready, p);
	assert_true(p->hello);
}

void peer_start_one(struct peer *p, int port, const char *api, const char *more, const char *top)
{
	bool openai = strcmp(api, "openai") == 0;
	char *start =
		mem_printf("{\"providers\":[{\"name\":\"p\",\"api\":\"%s\",\"base_url\":\"http://"
			   "127.0.0.1:%d%s\","
			   "\"key\":\"p\",\"auth\":\"%s\"%s}],\"timeouts\":{\"connect_ms\":2000,"
			   "\"bytes_idle_ms\":250,\"content_idle_ms\":500,\"max_sleep_ms\":5000},"
			   "\"retries\":4,\"backoff_ms\":20,\"backoff_max_ms\":100%s}",
			   api, port, openai ? "/v1" : "", openai ? "bearer" : "x-api-key",
			   more ? more : "", top ? top : "");
	peer_start(p, "{\"p\":\"sk-secret-of-the-test\"}", start);
	free(start);
}

void peer_stop(struct peer *p)
{
	channel_free(p->channel);
	int status = -1;
	while (waitpid(p->pid, &status, 0) < 0 && errno == EINTR)
		;
	for (size_t i = 0; i < p->n_calls; i++) {
		buf_release(&p->calls[i]->answer);
		free(p->calls[i]->message);
		free(p->calls[i]);
	}
	buf_release(&p->notes);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), p->expected_status);
}

struct peer_call *peer_call_as(struct peer *p, const char *agent, const char *purpose,
			       const char *api, const char *body, size_t len, bool hold)
{
	struct peer_call *c = mem_alloc(sizeof(*c));
	assert_true(p->n_calls < ARRAY_SIZE(p->calls));
	c->req = (int64_t)p->n_calls + 100;
	c->body = body;
	c->len = len;
	c->hold_body = hold;
	p->calls[p->n_calls++] = c;
	AUTO_FREE char *attempt =
		p->first_attempt ? mem_printf(",\"attempt\":%d", p->first_attempt) : mem_strdup("");
	channel_sendf(p->channel, FRAME_REQUEST, NULL, 0,
		      "\"req\":%" PRId64 ",\"class\":\"%s\",\"provider\":\"p\",\"model\":\"m\","
		      "\"api\":\"%s\",\"length\":%zu,\"estimate\":1000,\"max_tokens\":100,"
		      "\"agent\":\"%s\"%s",
		      c->req, purpose ? purpose : "main", api, len, agent ? agent : "a1", attempt);
	return c;
}

struct peer_call *peer_call(struct peer *p, const char *api, const char *body, size_t len)
{
	return peer_call_as(p, NULL, NULL, api, body, len, false);
}

void peer_cancel(struct peer *p, struct peer_call *c)
{
	channel_sendf(p->channel, FRAME_CANCEL, NULL, 0, "\"req\":%" PRId64, c->req);
}

void peer_abort(struct peer *p, struct peer_call *c)
{
	channel_sendf(p->channel, FRAME_ABORT, NULL, 0, "\"req\":%" PRId64, c->req);
}
