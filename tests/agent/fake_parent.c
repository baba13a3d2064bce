/*
 * fake_parent.c - see fake_parent.h.
 */
#include "fake_parent.h"

#include "agent_fixture.h"

#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/agent.h"
#include "base/clock.h"
#include "base/memory.h"

#define RUN_MS	30000
#define TICK_MS 100
#define PIECE	37 /* bytes of the stream in one frame: splits every line somewhere */

/* ---- streams ---- */

static void add_json(struct buf *out, const char *s)
{
	json_write_cstr(out, s ? s : "");
}

struct fake_call {
	char *id, *name, *args;
};

/* Splits "ID TOOL JSON" lines; calls fn for each. */
static size_t parse_calls(const char *text, struct fake_call calls[8])
{
	size_t n = 0;

	while (text && *text && n < 8) {
		size_t line = strcspn(text, "\n"), a = strcspn(text, " ");
		size_t b = a + 1 + strcspn(text + a + 1, " ");

		calls[n++] = (struct fake_call){
			.id = mem_strndup(text, a),
			.name = mem_strndup(text + a + 1, b - a - 1),
			.args = mem_strndup(text + b + 1, line - b - 1),
		};
		text += line + (text[line] == '\n');
	}
	return n;
}

static void free_calls(struct fake_call *calls, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(calls[i].id);
		free(calls[i].name);
		free(calls[i].args);
	}
}

static void anthropic_block(struct buf *out, size_t i, const char *start, const char *delta_type,
			    const char *key, const char *value)
{
	buf_addf(
		out,
		"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":%zu,"
		"\"content_block\":%s}\n\n"
		"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":%zu,"
		"\"delta\":{\"type\":\"%s\",\"%s\":",
		i, start, i, delta_type, key);
	add_json(out, value);
	buf_addf(out,
		 "}}\n\nevent: content_block_stop\ndata: "
		 "{\"type\":\"content_block_stop\",\"index\":%zu}"
		 "\n\n",
		 i);
}

static void anthropic_stream(struct buf *out, const struct fake_step *s)
{
	struct fake_call calls[8];
	size_t n = parse_calls(s->calls, calls), at = 0;
	const char *stop = s->stop ? s->stop : n ? "tool_use" : "end_turn";
	bool told = s->input >= 0;

	buf_addf(
		out,
		"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\","
		"\"type\":\"message\",\"role\":\"assistant\",\"model\":\"test-model\",\"content\":["
		"],"
		"\"stop_reason\":null");
	if (told)
		buf_addf(out, ",\"usage\":{\"input_tokens\":%lld,\"output_tokens\":1}",
			 (long long)(s->input == FAKE_ZERO ? 0
				     : s->input		   ? s->input
							   : 100));
	buf_adds(out, "}}\n\n");
	if (s->thinking)
		anthropic_block(out, at++,
				"{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"s\"}",
				"thinking_delta", "thinking", s->thinking);
	if (s->text)
		anthropic_block(out, at++, "{\"type\":\"text\",\"text\":\"\"}", "text_delta",
				"text", s->text);
	for (size_t i = 0; i < n; i++) {
		AUTO_FREE char *start = mem_printf(
			"{\"type\":\"tool_use\",\"id\":\"%s\",\"name\":\"%s\",\"input\":{}}",
			calls[i].id, calls[i].name);

		anthropic_block(out, at++, start, "input_json_delta", "partial_json",
				calls[i].args);
	}
	buf_addf(out,
		 "event: message_delta\ndata: "
		 "{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":"
		 "\"%s\"}",
		 stop);
	if (told)
		buf_addf(out, ",\"usage\":{\"output_tokens\":%lld}",
			 (long long)(s->output ? s->output : 20));
	buf_adds(out, "}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n");
	free_calls(calls, n);
}

static void openai_chunk(struct buf *out, const char *delta, const char *finish)
{
	buf_addf(out,
		 "data: "
		 "{\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,"
		 "\"delta\":%s,\"finish_reason\":%s%s%s}]}\n\n",
		 delta, finish ? "\"" : "", finish ? finish : "null", finish ? "\"" : "");
}

static void openai_stream(struct buf *out, const struct fake_step *s)
{
	struct fake_call calls[8];
	size_t n = parse_calls(s->calls, calls);

	if (s->text) {
		AUTO_BUF struct buf delta = BUF_INIT;

		buf_adds(&delta, "{\"role\":\"assistant\",\"content\":");
		add_json(&delta, s->text);
		buf_addc(&delta, '}');
		openai_chunk(out, delta.data, NULL);
	}
	for (size_t i = 0; i < n; i++) {
		AUTO_BUF struct buf delta = BUF_INIT;

		buf_addf(&delta,
			 "{\"tool_calls\":[{\"index\":%zu,\"id\":\"%s\",\"type\":\"function\","
			 "\"function\":{\"name\":\"%s\",\"arguments\":",
			 i, calls[i].id, calls[i].name);
		add_json(&delta, calls[i].args);
		buf_adds(&delta, "}}]}");
		openai_chunk(out, delta.data, NULL);
	}
	openai_chunk(out, "{}", s->stop ? s->stop : n ? "tool_calls" : "stop");
	buf_addf(out,
		 "data: {\"id\":\"x\",\"choices\":[],\"usage\":{\"prompt_tokens\":%lld,"
		 "\"completion_tokens\":%lld}}\n\ndata: [DONE]\n\n",
		 (long long)(s->input ? s->input : 100), (long long)(s->output ? s->output : 20));
	free_calls(calls, n);
}

/* ---- calls ---- */

static void send_bytes(struct fake_parent *p, const char *bytes, size_t n)
{
	for (size_t at = 0; at < n;) {
		size_t part = MIN(n - at, (size_t)PIECE);
		size_t sent = call_window_send(&p->call.window, p->channel, p->call.req, bytes + at,
					       part);

		assert_int_equal(sent, part); /* answers of these tests fit into the credit */
		at += sent;
	}
}

static void send_end(struct fake_parent *p, const char *outcome, const char *class,
		     const char *body)
{
	AUTO_FREE char *more = class ? mem_printf(",\"class\":\"%s\",\"status\":400", class) : NULL;
	int64_t req = p->call.req;

	p->call.req = 0;
	channel_sendf(p->channel, FRAME_END, body, strlen(body),
		      "\"req\":%lld,\"outcome\":\"%s\",\"ttft_ms\":3%s", (long long)req, outcome,
		      more ? more : "");
}

static void grant(struct fake_parent *p)
{
	buf_clear(&p->call.body);
	call_window_granted(&p->call.window);
	channel_sendf(p->channel, FRAME_GRANT, NULL, 0, "\"req\":%lld,\"attempt\":%d",
		      (long long)p->call.req, ++p->call.attempt);
}

static void send_again(struct fake_parent *p, int status)
{
	p->call.answered_again = true;
	call_window_voided(&p->call.window);
	channel_sendf(p->channel, FRAME_AGAIN, NULL, 0,
		      "\"req\":%lld,\"attempt\":%d,\"reason\":\"cut\",\"status\":%d",
		      (long long)p->call.req, p->call.attempt, status);
	grant(p);
}

static void answer(struct fake_parent *p, const struct fake_step *s)
{
	AUTO_BUF struct buf stream = BUF_INIT;
	bool whole = s->kind == FAKE_ANSWER || (s->kind == FAKE_AGAIN && p->call.answered_again);

	if (s->kind == FAKE_500) {
		send_again(p, 500);
		return;
	}
	if (s->kind == FAKE_FAIL) {
		send_end(p, "failed", s->text, "the server says no");
		return;
	}
	if (!strcmp(p->api, "anthropic"))
		anthropic_stream(&stream, s);
	else
		openai_stream(&stream, s);
	send_bytes(p, stream.data, whole ? stream.len : stream.len / 2);
	if (s->kind == FAKE_AGAIN && !p->call.answered_again)
		send_again(p, 0);
	else if (s->kind != FAKE_STALL)
		send_end(p, "ok", NULL, "");
}

static void on_background(struct fake_parent *p)
{
	static const struct fake_step refusal = {.kind = FAKE_FAIL, .text = "overload"};

	p->n_background++;
	buf_clear(&p->background_body);
	buf_add(&p->background_body, p->call.body.data, p->call.body.len);
	answer(p, p->background ? p->background : &refusal);
}

/* The body is there: the next step of the script. */
static void on_body(struct fake_parent *p)
{
	size_t i = p->n_requests;
	bool repeated = p->call.answered_again;

	if (repeated)
		i--;
	else
		p->n_requests++;
	assert_true(i < FAKE_MAX);
	if (repeated) /* the same bytes once more */
		assert_memory_equal(p->requests[i].data, p->call.body.data, p->call.body.len);
	buf_clear(&p->requests[i]);
	buf_add(&p->requests[i], p->call.body.data, p->call.body.len);
	if (i >= p->n_script)
		fail_msg("request %zu is beyond the script: %s", i + 1, buf_str(&p->call.body));
	answer(p, &p->script[i]);
	if (p->on_request && !repeated)
		p->on_request(p, i);
}

static void select_call(struct fake_parent *p, bool background)
{
	struct fake_call_state call = p->call;

	if (p->in_background == background)
		return;
	p->call = p->other;
	p->other = call;
	p->in_background = background;
}

static void on_call_frame(struct fake_parent *p, const struct frame *f)
{
	int64_t req = json_i64(f->header, "req", 0);

	if (f->type == FRAME_REQUEST)
		select_call(p, !strcmp(json_str(f->header, "class", ""), "background"));
	else if (req == p->other.req && req)
		select_call(p, !p->in_background);
	if (f->type == FRAME_REQUEST) {
		assert_int_equal(p->call.req, 0);
		p->call.req = req;
		p->call.attempt = 0;
		p->call.answered_again = false;
		p->call.window = (struct call_window){.open = false};
		grant(p);
		return;
	}
	if (f->type == FRAME_CANCEL) {
		p->cancels++;
		if (req == p->call.req)
			send_end(p, "cancelled", NULL, "");
		return;
	}
	if (req != p->call.req)
		return;
	if (f->type == FRAME_CREDIT) {
		call_window_credit(&p->call.window, json_i64(f->header, "bytes", 0));
	} else if (f->type == FRAME_DATA &&
		   call_window_received(&p->call.window, f->len, NULL) == 1) {
		buf_add(&p->call.body, f->body, f->len);
		call_window_consumed(&p->call.window, p->channel, p->call.req, f->len);
	} else if (f->type == FRAME_END && p->call.window.open) {
		p->in_background ? on_background(p) : on_body(p);
	}
}

/* ---- other frames ---- */

static void on_event_frame(struct fake_parent *p, const struct frame *f)
{
	const char *name = json_str(f->header, "name", "");
	AUTO_JSON struct json_object *body = NULL;

	assert_int_equal(json_parse(f->body, f->len, &body, NULL), 0);
	buf_addf(&p->events, "%s %.*s\n", name, (int)f->len, f->body);
	if (p->on_event)
		p->on_event(p, name, body);
}

static void on_report(struct fake_parent *p, const struct frame *f)
{
	AUTO_BUF struct buf fields = BUF_INIT;

	json_object_put(p->report);
	p->report = NULL;
	assert_int_equal(json_parse(f->body, f->len, &p->report, NULL), 0);
	free(p->report_call);
	p->report_call = mem_strdup(json_str(f->header, "call", ""));
	if (p->mute_reports)
		return;
	buf_adds(&fields, "\"call\":");
	json_write_cstr(&fields, p->report_call);
	buf_addf(&fields, ",\"ok\":%s", p->refuse_reports ? "false" : "true");
	p->acks++;
	channel_send(p->channel, FRAME_ACK, buf_str(&fields), "{}", 2);
}

static void on_reset(struct fake_parent *p, const struct frame *f)
{
	const char *answer = NULL;

	json_object_put(p->reset);
	p->reset = NULL;
	assert_int_equal(json_parse(f->body, f->len, &p->reset, NULL), 0);
	p->n_resets++;
	if (p->on_reset)
		answer = p->on_reset(p, p->n_resets, p->reset);
	bool ok = !answer;
	if (!answer)
		answer = "{\"accepted\":true}";
	channel_sendf(p->channel, FRAME_ACK, answer, strlen(answer), "\"call\":\"%s\",\"ok\":%s",
		      json_str(f->header, "call", ""), ok ? "true" : "false");
}

static void on_hook(struct fake_parent *p, const struct frame *f)
{
	const char *event = json_str(f->header, "event", "");
	const char *subject = json_str(f->header, "subject", "");
	AUTO_JSON struct json_object *body = NULL;
	AUTO_BUF struct buf fields = BUF_INIT;

	assert_int_equal(json_parse(f->body, f->len, &body, NULL), 0);
	buf_addf(&p->hooks, "%s %s\n", event, subject);
	const char *answer = p->on_hook ? p->on_hook(p, event, subject, body) : "{}";
	if (!answer)
		return;
	buf_adds(&fields, "\"ok\":true,\"call\":");
	json_write_cstr(&fields, json_str(f->header, "call", ""));
	channel_send(p->channel, FRAME_ACK, buf_str(&fields), answer, strlen(answer));
}

static void on_result(struct fake_parent *p, const struct frame *f)
{
	assert_null(p->result); /* it is the last frame */
	p->result = mem_strdup(json_str(f->header, "status", ""));
	p->reason = mem_strdup(json_str(f->header, "reason", ""));
	assert_int_equal(json_parse(f->body, f->len, &p->result_body, NULL), 0);
}

static int on_frame(struct channel *ch, const struct frame *f, void *arg, struct err *err)
{
	struct fake_parent *p = arg;

	switch (f->type) {
	case FRAME_HELLO: p->hello = true; return 0;
	case FRAME_EVENT: on_event_frame(p, f); return 0;
	case FRAME_REPORT: on_report(p, f); return 0;
	case FRAME_RESULT: on_result(p, f); return 0;
	case FRAME_HOOK: on_hook(p, f); return 0;
	case FRAME_RESET: on_reset(p, f); return 0;
	case FRAME_USAGE:
		p->usages++;
		p->estimated_usages += json_flag(f->header, "estimated", false);
		return 0;
	default: on_call_frame(p, f); return 0;
	}
}

/* ---- the process ---- */

/* A limit stands for a full disk: a write is cut short in the same way. */
static void limit_files(size_t bytes)
{
	struct rlimit limit = {.rlim_cur = bytes, .rlim_max = bytes};

	if (bytes)
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

void fake_start(struct fake_parent *p, const char *document)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	p->pid = fork();
	assert_true(p->pid >= 0);
	if (!p->pid) {
		close(pair[0]);
		limit_files(p->file_limit);
		_exit(agent_main(pair[1], pair[1]));
	}
	close(pair[1]);
	p->channel = channel_new(pair[0], pair[0], FROM_A, on_frame, p);
	channel_keep(p->channel, "agent");
	if (document)
		channel_send(p->channel, FRAME_START, "", document, strlen(document));
}

static void reap(struct fake_parent *p, int64_t deadline)
{
	int status = 0;
	pid_t pid;

	while ((pid = waitpid(p->pid, &status, WNOHANG)) == 0 && clock_mono_ms() < deadline)
		poll(NULL, 0, 5);
	if (!pid) {
		kill(p->pid, SIGKILL);
		waitpid(p->pid, NULL, 0);
		fail_msg("the agent did not end");
	}
	p->status = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
	p->pid = 0;
}

void fake_serve(struct fake_parent *p)
{
	struct pollfd fd = {.fd = channel_fd_in(p->channel), .events = POLLIN};
	struct err e = ERR_INIT;
	int rc = 0;

	if (channel_wants_write(p->channel))
		fd.events |= POLLOUT;
	poll(&fd, 1, TICK_MS);
	if (fd.revents & POLLOUT)
		rc = channel_on_writable(p->channel, &e);
	if (!rc && (fd.revents & (POLLIN | POLLHUP | POLLERR)))
		rc = channel_on_readable(p->channel, &e);
	if (rc < 0) {
		p->closed = true;
		if (e.code != ERR_CLOSED && e.code != ERR_IO)
			fail_msg("the agent broke the protocol: %s", e.message);
	}
	if (p->on_tick)
		p->on_tick(p);
}

void fake_run(struct fake_parent *p)
{
	int64_t deadline = clock_mono_ms() + RUN_MS;

	while (!p->closed && clock_mono_ms() < deadline)
		fake_serve(p);
	if (!p->closed)
		fail_msg("the agent works on after %d ms:\n%s", RUN_MS, buf_str(&p->events));
	reap(p, deadline + 1000);
}

void fake_control(struct fake_parent *p, const char *action, const char *reason)
{
	channel_sendf(p->channel, FRAME_CONTROL, NULL, 0, "\"action\":\"%s\",\"reason\":\"%s\"",
		      action, reason);
}

void fake_control_body(struct fake_parent *p, const char *action, const char *body)
{
	channel_sendf(p->channel, FRAME_CONTROL, body, strlen(body), "\"action\":\"%s\"", action);
}

void fake_ready(struct fake_parent *p, const char *body)
{
	channel_send(p->channel, FRAME_READY, "", body, strlen(body));
}

void fake_die(struct fake_parent *p)
{
	channel_free(p->channel);
	p->channel = NULL;
	reap(p, clock_mono_ms() + RUN_MS);
}

void fake_release(struct fake_parent *p)
{
	channel_free(p->channel);
	for (size_t i = 0; i < FAKE_MAX; i++)
		buf_release(&p->requests[i]);
	buf_release(&p->call.body);
	buf_release(&p->other.body);
	buf_release(&p->background_body);
	buf_release(&p->events);
	buf_release(&p->hooks);
	json_object_put(p->reset);
	json_object_put(p->report);
	json_object_put(p->result_body);
	free(p->report_call);
	free(p->result);
	free(p->reason);
}

void fake_expect(const struct fake_parent *p, size_t i, const char *text)
{
	assert_true(i < p->n_requests);
	if (!strstr(buf_str(&p->requests[i]), text))
		fail_msg("request %zu lacks '%s': %s", i, text, buf_str(&p->requests[i]));
}

void fake_expect_not(const struct fake_parent *p, size_t i, const char *text)
{
	assert_true(i < p->n_requests);
	if (strstr(buf_str(&p->requests[i]), text))
		fail_msg("request %zu has '%s'", i, text);
}

bool fake_event_seen(const struct fake_parent *p, const char *name, const char *text)
{
	const char *at = buf_str(&p->events);

	while (*at) {
		size_t n = strcspn(at, "\n");
		AUTO_FREE char *line = mem_strndup(at, n);

		if (!strncmp(line, name, strlen(name)) && line[strlen(name)] == ' ' &&
		    strstr(line, text))
			return true;
		at += n + (at[n] == '\n');
	}
	return false;
}
