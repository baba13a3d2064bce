/*
 * call_rig.c - see call_rig.h. The parent here does what the real one does, less the budget.
 */
#include "call_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include <inttypes.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/memory.h"

/* ---- the agent ---- */

static const char *on_body(void *arg, size_t *ret_len)
{
	struct rig_call *call = arg;
	memset(call->body, call->fill + call->bodies, call->len);
	call->bodies++;
	*ret_len = call->len;
	return call->body;
}

static int on_data(void *arg, const char *bytes, size_t n, struct err *err)
{
	struct rig_call *call = arg;
	buf_add(&call->answer, bytes, n);
	if (call->fail_at && call->answer.len >= call->fail_at)
		return err_set(err, ERR_INVALID, "the stream makes no sense");
	return 0;
}

static void on_again(void *arg, int attempt, int status, const char *reason, int64_t until)
{
	struct rig_call *call = arg;
	call->agains++;
	call->last_again = attempt;
	snprintf(call->reason, sizeof(call->reason), "%s", reason);
	buf_clear(&call->answer);
}

static void on_waiting(void *arg, const char *reason, int64_t until)
{
	struct rig_call *call = arg;
	call->waits++;
	call->until = until;
	snprintf(call->reason, sizeof(call->reason), "%s", reason);
}

static void on_end(void *arg, const struct call_end *end)
{
	struct rig_call *call = arg;
	call->ends++;
	snprintf(call->outcome, sizeof(call->outcome), "%s", end->outcome);
	snprintf(call->message, sizeof(call->message), "%s", end->message);
	call->class = end->class;
	call->status = end->status;
	call->used = end->used;
	call->limit = end->limit;
	call->until = end->until;
	call->ttft_ms = end->ttft_ms;
}

static const struct call_events events = {on_body, on_data, on_again, on_waiting, on_end};

int64_t rig_start(struct rig *rig, struct rig_call *call, size_t len)
{
	struct call_request request = {
		.purpose = CALL_MAIN,
		.provider = "p\"1",
		.model = "m",
		.api = "openai",
		.length = (int64_t)len,
		.estimate = 1000,
		.max_tokens = 500,
		.beta = "b",
	};
	struct err err = ERR_INIT;
	*call = (struct rig_call){.rig = rig, .fill = 'a', .len = len};
	call->body = mem_alloc(len + 1);
	return call_start(rig->callers, &request, &events, call, &err);
}

void rig_call_release(struct rig_call *call)
{
	free(call->body);
	buf_release(&call->answer);
}

static int agent_frame(struct channel *ch, const struct frame *frame, void *arg, struct err *err)
{
	struct rig *rig = arg;
	return call_callers_frame(rig->callers, frame, err);
}

/* ---- the parent ---- */

static int parent_from_agent(struct channel *ch, const struct frame *frame, void *arg,
			     struct err *err)
{
	struct rig *rig = arg;
	if (frame->type == FRAME_REQUEST) {
		struct call_entry *entry =
			call_relay_open(rig->relay, ch, rig, frame, "a1", &rig->parent_err);
		if (!entry)
			return err_set(err, ERR_INVALID, "%s", rig->parent_err.message);
		rig->opened = entry;
		if (!rig->hold)
			call_relay_release(rig->relay, entry);
		return 0;
	}
	return call_relay_from_agent(rig->relay, ch, frame, err);
}

static int parent_from_gateway(struct channel *ch, const struct frame *frame, void *arg,
			       struct err *err)
{
	struct rig *rig = arg;
	struct call_entry *entry;
	bool over;
	if (call_relay_from_gateway(rig->relay, frame, &entry, &over, err) < 0)
		return -1;
	if (over)
		call_relay_close(rig->relay, entry);
	return 0;
}

/* ---- the gateway ---- */

static int on_body_part(struct rig *rig, const struct frame *frame, struct err *err)
{
	int take = call_window_received(&rig->window, frame->len, err);
	if (take <= 0)
		return take;
	buf_add(&rig->body, frame->body, frame->len);
	if (rig->eat)
		call_window_consumed(&rig->window, rig->gateway, rig->number, frame->len);
	return 0;
}

static int gateway_frame(struct channel *ch, const struct frame *frame, void *arg, struct err *err)
{
	struct rig *rig = arg;
	switch (frame->type) {
	case FRAME_REQUEST:
		rig->requests++;
		rig->number = json_i64(frame->header, "req", 0);
		rig->attempt = json_i64(frame->header, "attempt", 1);
		snprintf(rig->agent_name, sizeof(rig->agent_name), "%s",
			 json_str(frame->header, "agent", ""));
		assert_string_equal(json_str(frame->header, "provider", ""), "p\"1");
		assert_string_equal(json_str(frame->header, "beta", ""), "b");
		return 0;
	case FRAME_CREDIT:
		call_window_credit(&rig->window, json_i64(frame->header, "bytes", 0));
		return 0;
	case FRAME_DATA: return on_body_part(rig, frame, err);
	case FRAME_END: rig->body_ends += rig->window.open; return 0;
	case FRAME_CANCEL: rig->cancels++; return 0;
	case FRAME_ABORT: rig->aborts++; return 0;
	default: return err_set(err, ERR_INVALID, "unexpected '%s'", frame_name(frame->type));
	}
}

void rig_grant(struct rig *rig, int attempt)
{
	buf_clear(&rig->body);
	call_window_granted(&rig->window);
	channel_sendf(rig->gateway, FRAME_GRANT, NULL, 0, "\"req\":%" PRId64 ",\"attempt\":%d",
		      rig->number, attempt);
}

void rig_again(struct rig *rig, int attempt, const char *reason)
{
	call_window_voided(&rig->window);
	channel_sendf(rig->gateway, FRAME_AGAIN, NULL, 0,
		      "\"req\":%" PRId64 ",\"attempt\":%d,\"reason\":\"%s\"", rig->number, attempt,
		      reason);
}

void rig_answer(struct rig *rig, char letter, size_t n)
{
	AUTO_FREE char *bytes = mem_alloc(n + 1);
	memset(bytes, letter, n);
	for (size_t sent = 0; sent < n;) {
		size_t part = call_window_send(&rig->window, rig->gateway, rig->number,
					       bytes + sent, n - sent);
		sent += part;
		if (sent == n)
			return;
		rig_settle(rig);
		assert_true(part > 0 || rig->window.may_send > 0);
	}
}

void rig_end(struct rig *rig, const char *fields, const char *message)
{
	channel_sendf(rig->gateway, FRAME_END, message, strlen(message), "\"req\":%" PRId64 ",%s",
		      rig->number, fields);
}

/* ---- the rig ---- */

static void make_pair(int fds[2])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
}

void rig_new_gateway(struct rig *rig)
{
	int fds[2];
	make_pair(fds);
	rig->parent_g = channel_new(fds[0], fds[0], FROM_G, parent_from_gateway, rig);
	rig->gateway = channel_new(fds[1], fds[1], FROM_P, gateway_frame, rig);
	rig->window = (struct call_window){.open = false};
	buf_clear(&rig->body);
	call_relay_gateway(rig->relay, rig->parent_g);
}

static void count_closed(struct call_entry *entry, void *arg)
{
	struct rig *rig = arg;
	rig->closed++;
}

void rig_kill_gateway(struct rig *rig)
{
	channel_free(take_ptr(rig->gateway));
	call_relay_gateway_died(rig->relay, count_closed, rig);
	channel_free(take_ptr(rig->parent_g));
}

void rig_init(struct rig *rig)
{
	int fds[2];
	*rig = (struct rig){.eat = true};
	make_pair(fds);
	rig->parent_a = channel_new(fds[0], fds[0], FROM_A, parent_from_agent, rig);
	rig->agent = channel_new(fds[1], fds[1], FROM_P, agent_frame, rig);
	rig->callers = call_callers_new(rig->agent);
	rig->relay = call_relay_new();
	rig_new_gateway(rig);
}

void rig_release(struct rig *rig)
{
	call_callers_free(rig->callers);
	call_relay_free(rig->relay);
	channel_free(rig->agent);
	channel_free(rig->parent_a);
	channel_free(rig->parent_g);
	channel_free(rig->gateway);
	buf_release(&rig->body);
}

int rig_run(struct channel *ch, struct err *err)
{
	if (channel_wants_write(ch) && channel_on_writable(ch, err) < 0)
		return -1;
	return channel_on_readable(ch, err);
}

void rig_settle(struct rig *rig)
{
	for (;;) {
		struct channel *all[4] = {rig->agent, rig->parent_a, rig->parent_g, rig->gateway};
		struct pollfd fds[4];
		for (int i = 0; i < 4; i++)
			fds[i] = (struct pollfd){
				.fd = all[i] ? channel_fd_in(all[i]) : -1,
				.events = (short)(POLLIN |
						  (all[i] && channel_wants_write(all[i]) ? POLLOUT
											 : 0))};
		if (poll(fds, 4, 0) <= 0)
			return;
		for (int i = 0; i < 4; i++) {
			struct err err = ERR_INIT;
			if (fds[i].revents && rig_run(all[i], &err) < 0)
				fail_msg("side %d: %s", i, err.message);
		}
		call_callers_pump(rig->callers);
	}
}
