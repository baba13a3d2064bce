/*
 * star_peers.c - see star_peers.h.
 *
 * The gateway grants every call at once and answers while the body still comes, so both directions
 * of all calls are busy at the same time. It consumes each body in small bites, one per tick.
 */
#include "star_peers.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <sys/timerfd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "handoff/call.h"

enum { BITE = 24 << 10, CALLS_MAX = STAR_AGENTS + STAR_CANCELLERS, CANCEL_AT = 50000 };

static int ticker(void)
{
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	struct itimerspec spec = {.it_interval.tv_nsec = STAR_TICK_MS * 1000000L,
				  .it_value.tv_nsec = STAR_TICK_MS * 1000000L};
	if (fd < 0 || timerfd_settime(fd, 0, &spec, NULL) < 0)
		abort();
	return fd;
}

/* Waits for the channel and the tick; *ret_tick tells the tick. -1 when the channel is over. */
static int turn(struct channel *ch, int timer, bool slow, bool *ret_tick, struct err *err)
{
	uint64_t ticks;
	struct pollfd fds[2] = {{.fd = channel_fd_in(ch), .events = slow ? 0 : POLLIN},
				{.fd = timer, .events = POLLIN}};
	if (channel_wants_write(ch))
		fds[0].events |= POLLOUT;
	(void)poll(fds, 2, 1000);
	*ret_tick = read(timer, &ticks, sizeof(ticks)) == sizeof(ticks);
	if (fds[0].revents & POLLOUT && channel_on_writable(ch, err) < 0)
		return -1;
	if (slow ? *ret_tick : fds[0].revents != 0)
		return channel_on_readable(ch, err);
	return 0;
}

/* ---- an agent ---- */

struct star_agent {
	struct channel *ch;
	struct call_callers *callers;
	char letter;
	char *body;
	struct star_call {
		struct star_agent *agent;
		size_t length, answer;
		bool over, ok, cancels;
		int64_t cancelled_at;
	} main, other;
};

static const char *on_body(void *arg, size_t *ret_len)
{
	struct star_call *call = arg;
	*ret_len = call->length;
	return call->agent->body;
}

static int on_data(void *arg, const char *bytes, size_t n, struct err *err)
{
	struct star_call *call = arg;
	for (size_t i = 0; i < n; i++)
		if (bytes[i] != call->agent->letter)
			return err_set(err, ERR_INVALID, "another agent's byte");
	call->answer += n;
	if (call->cancels && call->answer >= CANCEL_AT && !call->cancelled_at) {
		call->cancelled_at = clock_mono_us();
		return err_set(err, ERR_CANCELLED, "enough of this answer");
	}
	return 0;
}

static void on_again(void *arg, int attempt, int status, const char *reason, int64_t until)
{
}

static void on_waiting(void *arg, const char *reason, int64_t until)
{
}

static void on_end(void *arg, const struct call_end *end)
{
	struct star_call *call = arg;
	call->over = true;
	if (!call->cancels) {
		call->ok = strcmp(end->outcome, "ok") == 0 && call->answer == STAR_ANSWER;
		return;
	}
	call->ok = strcmp(end->outcome, "cancelled") == 0;
	AUTO_FREE char *took = mem_printf("%" PRId64, clock_mono_us() - call->cancelled_at);
	channel_send(call->agent->ch, FRAME_EVENT, "\"name\":\"cancel\"", took, strlen(took));
}

static void start(struct star_agent *agent, struct star_call *call, size_t length)
{
	static const struct call_events events = {on_body, on_data, on_again, on_waiting, on_end};
	struct call_request request = {.provider = "p",
				       .model = "m",
				       .api = "openai",
				       .length = (int64_t)length,
				       .estimate = 1,
				       .max_tokens = 1};
	call->agent = agent;
	call->length = length;
	if (call_start(agent->callers, &request, &events, call, NULL) < 0)
		abort();
}

static int agent_frame(struct channel *ch, const struct frame *frame, void *arg, struct err *err)
{
	struct star_agent *agent = arg;
	return call_callers_frame(agent->callers, frame, err);
}

int star_agent(int fd, int index)
{
	struct star_agent agent = {.letter = (char)('a' + index % 26)};
	struct err err = ERR_INIT;
	bool tick;
	int timer = ticker();
	agent.body = mem_alloc(STAR_CANCEL_BODY);
	memset(agent.body, agent.letter, STAR_CANCEL_BODY);
	agent.ch = channel_new(fd, fd, FROM_P, agent_frame, &agent);
	agent.callers = call_callers_new(agent.ch);
	channel_send_hello(agent.ch, "agent");
	start(&agent, &agent.main, STAR_BODY);
	agent.other.cancels = index < STAR_CANCELLERS;
	agent.other.over = agent.other.ok = !agent.other.cancels;
	if (agent.other.cancels)
		start(&agent, &agent.other, STAR_CANCEL_BODY);
	while (!agent.main.over || !agent.other.over) {
		if (turn(agent.ch, timer, true, &tick, &err) < 0) {
			fprintf(stderr, "agent %d: %s\n", index, err.message);
			return 1;
		}
		call_callers_pump(agent.callers);
	}
	const char *status = agent.main.ok && agent.other.ok ? "done" : "failed";
	channel_sendf(agent.ch, FRAME_RESULT, NULL, 0, "\"status\":\"%s\"", status);
	int rc = channel_drain(agent.ch, clock_mono_ms() + 30000, &err);
	call_callers_free(agent.callers);
	channel_free(agent.ch);
	free(agent.body);
	close(timer);
	return rc < 0;
}

/* ---- the gateway ---- */

struct gateway_call {
	int64_t number;
	char letter;
	struct call_window window;
	size_t length, came, hungry; /* hungry: bytes that came and were not consumed */
	size_t answered;
	bool body_over, over;
};

struct gateway {
	struct gateway_call calls[CALLS_MAX];
	size_t count;
};

static void end_call(struct channel *ch, struct gateway_call *call, const char *outcome)
{
	channel_sendf(ch, FRAME_END, NULL, 0, "\"req\":%" PRId64 ",\"outcome\":\"%s\"",
		      call->number, outcome);
	call->over = true;
}

static int on_request(struct gateway *gw, struct channel *ch, const struct frame *frame,
		      struct err *err)
{
	if (gw->count == CALLS_MAX)
		return err_set(err, ERR_INVALID, "too many calls");
	struct gateway_call *call = &gw->calls[gw->count++];
	call->number = json_i64(frame->header, "req", 0);
	call->length = (size_t)json_i64(frame->header, "length", 0);
	call->letter = (char)('a' + atoll(json_str(frame->header, "agent", "a0") + 1) % 26);
	call_window_granted(&call->window);
	channel_sendf(ch, FRAME_GRANT, NULL, 0, "\"req\":%" PRId64 ",\"attempt\":1", call->number);
	return 0;
}

static int on_body_part(struct gateway_call *call, const struct frame *frame, struct err *err)
{
	if (call_window_received(&call->window, frame->len, err) != 1)
		return err_set(err, ERR_INVALID, "call %" PRId64 ": a part out of turn or credit",
			       call->number);
	for (size_t i = 0; i < frame->len; i++)
		if (frame->body[i] != call->letter)
			return err_set(err, ERR_INVALID, "another call's byte");
	call->came += frame->len;
	call->hungry += frame->len;
	return 0;
}

static int gateway_frame(struct channel *ch, const struct frame *frame, void *arg, struct err *err)
{
	struct gateway *gw = arg;
	if (frame->type == FRAME_REQUEST)
		return on_request(gw, ch, frame, err);
	struct gateway_call *call = NULL;
	for (size_t i = 0; i < gw->count; i++)
		if (gw->calls[i].number == json_i64(frame->header, "req", 0))
			call = &gw->calls[i];
	if (!call || call->over)
		return 0;
	switch (frame->type) {
	case FRAME_CREDIT:
		call_window_credit(&call->window, json_i64(frame->header, "bytes", 0));
		return 0;
	case FRAME_DATA: return on_body_part(call, frame, err);
	case FRAME_END:
		call->body_over = call->came == call->length;
		return call->body_over ? 0 : err_set(err, ERR_INVALID, "a body is incomplete");
	case FRAME_CANCEL: end_call(ch, call, "cancelled"); return 0;
	default: return 0;
	}
}

/* A cancelled call would be answered for ever: its answer is as long as the agent takes it. */
static void feed_call(struct channel *ch, struct gateway_call *call, bool tick)
{
	static char answer[64 << 10];
	size_t left =
		call->length == STAR_CANCEL_BODY ? sizeof(answer) : STAR_ANSWER - call->answered;
	if (call->over)
		return;
	memset(answer, call->letter, sizeof(answer));
	call->answered += call_window_send(&call->window, ch, call->number, answer,
					   MIN(left, sizeof(answer)));
	if (tick && call->hungry > 0) {
		size_t bite = MIN(call->hungry, (size_t)BITE);
		call_window_consumed(&call->window, ch, call->number, bite);
		call->hungry -= bite;
	}
	if (call->body_over && call->hungry == 0 && call->answered == STAR_ANSWER)
		end_call(ch, call, "ok");
}

int star_gateway(int fd)
{
	AUTO_FREE struct gateway *gw = mem_alloc(sizeof(*gw));
	struct channel *ch = channel_new(fd, fd, FROM_P, gateway_frame, gw);
	struct err err = ERR_INIT;
	bool tick;
	int timer = ticker();
	while (turn(ch, timer, false, &tick, &err) == 0)
		for (size_t i = 0; i < gw->count; i++)
			feed_call(ch, &gw->calls[i], tick);
	bool clean = err.code == ERR_CLOSED;
	if (!clean)
		fprintf(stderr, "gateway: %s\n", err.message);
	channel_free(ch);
	close(timer);
	return !clean;
}
