/*
 * service.c - the routes and the order of decisions. See service.h.
 */
#include "rehearsal/service.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "rehearsal/hash.h"
#include "rehearsal/quirks.h"

struct service {
	struct scenario *scenario;
	struct match_counts *counts;
	struct token_cache *tokens;
	struct prefix_cache *cache;
	struct stats *stats;
	int64_t window; /* 0: the scenario's */
	bool log_bodies;
	int64_t n_requests;
};

/* One model call on its way through the service. */
struct call {
	struct service *s;
	const struct http_head *head;
	enum protocol protocol;
	struct scenario_model model;
	struct request_policy policy;
	struct request request;
	struct scope scope;
	struct decision decision;
	struct answer answer;
	struct reply *reply;
	const char *fault; /* name for the log */
	bool answered;
};

int service_new(struct scenario *scenario, const struct service_opts *opts, struct service **ret,
		struct err *err)
{
	struct service *s = mem_alloc(sizeof(*s));

	s->scenario = scenario;
	s->counts = match_counts_new();
	s->tokens = token_cache_new();
	s->cache = prefix_cache_new();
	s->stats = stats_new();
	s->window = opts->window;
	s->log_bodies = opts->log_bodies;
	if (opts->log && stats_open_log(s->stats, opts->log, err) < 0) {
		service_free(s);
		return -1;
	}
	*ret = s;
	return 0;
}

void service_free(struct service *s)
{
	if (!s)
		return;
	stats_free(s->stats);
	prefix_cache_free(s->cache);
	token_cache_free(s->tokens);
	match_counts_free(s->counts);
	scenario_free(s->scenario);
	free(s);
}

struct stats *service_stats(struct service *s)
{
	return s->stats;
}

/* Base URLs carry prefixes (/v1, /openai/deployments/x), so only the end of a path is compared. */
static bool path_ends(struct http_slice path, const char *end)
{
	size_t n = strlen(end);

	return path.n >= n && memcmp(path.s + path.n - n, end, n) == 0;
}

static bool has_beta(const struct http_head *head, const char *name)
{
	struct http_slice beta = http_header(head, "anthropic-beta");

	return beta.s && memmem(beta.s, beta.n, name, strlen(name));
}

/* Called by the reader as soon as the name is known: what is checked after it depends on the model.
 */
static void on_model(struct request_policy *policy, const char *name)
{
	struct call *call = policy->arg;
	const struct scenario *s = call->s->scenario;

	call->model = scenario_model(s, name);
	if (call->s->window)
		call->model.window = call->s->window;
	policy->max_output = call->model.max_output;
	policy->completion_tokens_only = call->model.completion_tokens_only;
	policy->free_thinking = call->model.quirks & QUIRK_NO_SIGNATURE;
	policy->need_thought_signature = call->model.quirks & QUIRK_THOUGHT_SIGNATURE;
}

static void set_policy(struct call *call, bool count_only)
{
	const struct scenario *s = call->s->scenario;

	call->policy = (struct request_policy){
		.tokens = call->s->tokens,
		.bind_thinking = s->bind_thinking,
		.need_reasoning = s->require_reasoning,
		.strict_roles = s->strict_roles,
		.drop_header = has_beta(call->head, "thinking-binding-controls-2026-08-01"),
		.edits_header = has_beta(call->head, "context-management-2025-06-27"),
		.count_only = count_only,
		.on_model = on_model,
		.arg = call,
	};
}

/* Key and version, as the front door checks them. */
static int check_headers(struct call *call)
{
	struct request *r = &call->request;
	struct http_slice key = http_header(call->head, "x-api-key");
	struct http_slice bearer = http_header(call->head, "authorization");

	if (call->s->scenario->require_key && !key.n && !bearer.n) {
		request_refuse(r, "key",
			       call->protocol == PROTOCOL_ANTHROPIC
				       ? "x-api-key header is required"
				       : "You didn't provide an API key. You need to provide your "
					 "API key in an "
					 "Authorization header using Bearer auth (i.e. "
					 "Authorization: Bearer YOUR_KEY).");
		r->refusal.status = 401;
		r->refusal.type = error_type_of(call->protocol, 401);
		return -1;
	}
	if (call->protocol == PROTOCOL_ANTHROPIC && !http_header(call->head, "anthropic-version").n)
		return request_refuse(r, "version", "anthropic-version: header is required");
	return 0;
}

/* The texts of wire.md 1.10 and of rows 1 and 2 of section 3, to the letter: clients read the
 * numbers. */
static int refuse_window(struct call *call, int64_t used, int64_t limit, bool with_output)
{
	struct request *r = &call->request;

	if (call->protocol == PROTOCOL_ANTHROPIC && with_output)
		request_refuse(r, "window",
			       "input length and `max_tokens` exceed context limit: %" PRId64
			       " + %" PRId64 " > %" PRId64
			       ", decrease input length or `max_tokens` and try again",
			       used, r->max_tokens, limit);
	else if (call->protocol == PROTOCOL_ANTHROPIC)
		request_refuse(r, "window",
			       "prompt is too long: %" PRId64 " tokens > %" PRId64 " maximum", used,
			       limit);
	else if (with_output)
		request_refuse(r, "window",
			       "This model's maximum context length is %" PRId64
			       " tokens. However, you requested %" PRId64 " tokens (%" PRId64
			       " in the messages, %" PRId64
			       " in the completion). Please reduce the length of the messages or "
			       "completion.",
			       limit, used + r->max_tokens, used, r->max_tokens);
	else
		request_refuse(r, "window",
			       "This model's maximum context length is %" PRId64
			       " tokens. However, your messages resulted in %" PRId64
			       " tokens. Please reduce the length of the messages.",
			       limit, used);
	request_param(r, "context_length_exceeded", "messages");
	r->refusal.violation = false;
	return -1;
}

/* Newer models stop at the window instead of refusing the sum (wire.md 1.4): a setting of the file.
 */
static int check_window(struct call *call)
{
	const struct request *r = &call->request;
	int64_t window = call->model.window;

	if (!window)
		return 0;
	if (r->input_tokens > window)
		return refuse_window(call, r->input_tokens, window, false);
	if (!call->s->scenario->stop_at_window && r->input_tokens + r->max_tokens > window)
		return refuse_window(call, r->input_tokens, window, true);
	return 0;
}

static void add_headers(struct reply *reply, struct json_object *headers)
{
	if (!headers)
		return;
	json_object_object_foreach (headers, name, value)
		buf_addf(&reply->headers, "%s: %s\r\n", name, json_object_get_string(value));
}

/* A fault that is an answer of its own: a status, a body, or an overflow. */
static void reply_fault(struct call *call, const struct fault *f)
{
	struct request *r = &call->request;
	char text[80];

	if (f->overflow) {
		call->fault = "overflow";
		refuse_window(call, f->overflow_used ? f->overflow_used : r->input_tokens,
			      f->overflow_limit ? f->overflow_limit
						: MAX(r->input_tokens - 1, (int64_t)1),
			      false);
		render_error(call->reply, call->protocol, 400, r->refusal.type, r->refusal.code,
			     r->refusal.param, r->refusal.text);
		r->refusal.status = 0;
		return;
	}
	call->fault = "status";
	snprintf(text, sizeof(text), "scripted fault with status %d", f->status);
	if (!f->body) {
		render_error(call->reply, call->protocol, f->status, f->error_type, f->error_code,
			     NULL, f->message ? f->message : text);
		return;
	}
	call->reply->status = f->status;
	if (json_object_is_type(f->body, json_type_string)) {
		const char *body = json_object_get_string(f->body);

		buf_add(&call->reply->body, body, (size_t)json_object_get_string_len(f->body));
		call->reply->content_type = body[0] == '<' ? "text/html" : "text/plain";
		if (text_starts(body, "data:") || text_starts(body, "event:") || body[0] == ':')
			call->reply->content_type = "text/event-stream";
	} else {
		json_write(&call->reply->body, f->body);
	}
}

/* Replaces event `at` by the first half of itself, with its line ends: no valid JSON any more. */
static void make_malformed(struct reply *reply, int64_t at, uint32_t quirks)
{
	size_t event = (size_t)at, from, half;
	AUTO_BUF struct buf rest = BUF_INIT;

	if (!reply->stream) {
		buf_truncate(&reply->body, reply->body.len / 2);
		return;
	}
	if (event >= reply->n_ends)
		return;
	from = event ? reply->ends[event - 1] : 0;
	half = from + (reply->ends[event] - from) * 2 / 3;
	buf_add(&rest, reply->body.data + reply->ends[event], reply->body.len - reply->ends[event]);
	buf_truncate(&reply->body, half);
	buf_adds(&reply->body, quirks & QUIRK_CR ? "\r\r" : "\n\n");
	for (size_t i = event + 1; i < reply->n_ends; i++)
		reply->ends[i] = reply->ends[i] - reply->ends[event] + reply->body.len;
	reply->ends[event] = reply->body.len;
	buf_add(&reply->body, buf_str(&rest), rest.len);
}

/* The stream ends in good order after the error, as the real ones do; a whole body becomes a
 * status. */
static void make_error_event(struct call *call, const struct fault *f, uint32_t quirks)
{
	struct reply *reply = call->reply;
	size_t keep = MIN((size_t)f->error_after, reply->n_ends);

	if (!reply->stream) {
		render_error(reply, call->protocol,
			     call->protocol == PROTOCOL_ANTHROPIC ? 529 : 503, f->error_type,
			     f->error_code, NULL, f->message ? f->message : "Overloaded");
		return;
	}
	buf_truncate(&reply->body, keep ? reply->ends[keep - 1] : 0);
	reply->n_ends = keep;
	render_error_event(reply, call->protocol, quirks, f->error_type, f->error_code, f->message);
}

static const char *fault_name(const struct fault *f)
{
	if (f->reset_after != NEVER)
		return "reset";
	if (f->cut_after != NEVER)
		return "cut";
	if (f->stall_after != NEVER)
		return "stall";
	if (f->malformed_after != NEVER)
		return "malformed";
	if (f->error_after != NEVER)
		return "error_event";
	return f->event_ms >= 0 ? "slow" : f->delay_ms ? "delay" : f->quirks ? "quirks" : "headers";
}

/* Faults of the delivery, laid over an answer. */
static void shape_reply(struct call *call, const struct fault *f)
{
	struct reply *reply = call->reply;
	uint32_t quirks = call->answer.quirks;

	if (!f->given)
		return;
	add_headers(reply, f->headers);
	if (!call->fault)
		call->fault = fault_name(f);
	if (f->malformed_after != NEVER)
		make_malformed(reply, f->malformed_after, quirks);
	if (f->error_after != NEVER)
		make_error_event(call, f, quirks);
	reply->delay_ms = MAX(reply->delay_ms, f->delay_ms);
	if (f->event_ms >= 0)
		reply->event_ms = f->event_ms;
	reply->stall_after = MIN(reply->stall_after, f->stall_after);
	reply->cut_after = MIN(reply->cut_after, f->cut_after);
	reply->reset_after = MIN(reply->reset_after, f->reset_after);
}

/* The cache is used when the answer begins, so a refused request leaves no entries. */
static void reply_answer(struct call *call)
{
	struct service *s = call->s;
	const struct rule *overlay = call->decision.overlay;
	uint32_t quirks = call->model.quirks | (overlay ? overlay->fault.quirks : 0);
	int64_t now = clock_wall_ms();
	struct answer *a = &call->answer;

	a->usage = prefix_cache_use(s->cache, &call->request, call->model.min_cache_prefix, now);
	answer_build(a, call->decision.rule, &call->scope, quirks, call->model.window);
	if (call->protocol == PROTOCOL_ANTHROPIC)
		anthropic_render(call->reply, &call->request, a, (size_t)s->scenario->delta_bytes);
	else
		openai_render(call->reply, &call->request, a, (size_t)s->scenario->delta_bytes,
			      now);
	call->reply->split = a->quirks & QUIRK_SPLIT;
	call->reply->delay_ms = s->scenario->first_ms;
	call->reply->event_ms = s->scenario->event_ms;
	call->answered = true;
}

/* A 400, which no client retries: a gap in the scenario must be seen at once. */
static int refuse_unmatched(struct call *call)
{
	const struct request *r = &call->request;
	char text[300];
	const char *role = "-";
	size_t role_len = 1;

	request_role(r, &role, &role_len);
	snprintf(text, sizeof(text),
		 "rehearsal: no rule of scenario '%s' answers this request (role %.*s, turn %zu, "
		 "%zu tools, "
		 "model %.60s)",
		 call->s->scenario->name ? call->s->scenario->name : "",
		 (int)MIN(role_len, (size_t)40), role, r->turn, r->n_tools, r->model);
	render_error(call->reply, call->protocol, 400, NULL, NULL, NULL, text);
	return -1;
}

/* The answering rule's own fault shapes first, then the overlay's. */
static void decide(struct call *call)
{
	const struct rule *rule;

	call->decision =
		match_rules(call->s->scenario, call->s->counts, &call->request, &call->scope);
	rule = call->decision.rule;
	if (!rule) {
		refuse_unmatched(call);
		return;
	}
	if (rule->fault.overflow || rule->fault.status)
		reply_fault(call, &rule->fault);
	else if (rule->answer)
		reply_answer(call);
	else
		call->fault = fault_name(&rule->fault);
	shape_reply(call, &rule->fault);
	if (call->decision.overlay)
		shape_reply(call, &call->decision.overlay->fault);
}

static void reply_refusal(struct call *call)
{
	const struct refusal *f = &call->request.refusal;

	render_error(call->reply, call->protocol, f->status, f->type, f->code, f->param, f->text);
}

/* The role is that of the prompt, else that of the rule; the latter only groups the figures. */
static void record_call(struct call *call, const char *body, size_t bytes, int64_t started_us)
{
	const struct request *r = &call->request;
	const struct rule *rule = call->decision.rule;
	struct http_slice path = http_path(call->head);
	char line[32];
	struct stats_record record = {
		.number = call->s->n_requests,
		.path = path.s,
		.path_len = path.n,
		.protocol = call->protocol == PROTOCOL_ANTHROPIC ? "anthropic" : "openai",
		.model = r->model,
		.role = "-",
		.role_len = 1,
		.fault = call->fault,
		.notes = buf_str(&call->scope.notes),
		.status = call->reply->status,
		.stream = r->stream,
		.counted = call->answered,
		.conversation = r->conversation,
		.turn = r->turn,
		.messages = r->n_messages,
		.tools = r->n_tools,
		.markers = r->n_markers,
		.bytes = bytes,
		.input = r->input_tokens,
		.output = call->answer.output_tokens,
		.cache = call->answer.usage,
		.refusal = r->refusal.status ? &r->refusal : NULL,
		.body = body,
		.body_len = bytes,
		.duration_us = clock_mono_us() - started_us,
	};

	if (rule) {
		snprintf(line, sizeof(line), "line %d", rule->line);
		record.rule = rule->name ? rule->name : line;
	}
	if (!request_role(r, &record.role, &record.role_len) && rule && rule->when.role) {
		record.role = rule->when.role;
		record.role_len = strlen(rule->when.role);
	}
	stats_add(call->s->stats, &record);
}

/* The order is that of a provider's front door: body, headers, size, and only then the model. */
static void handle_call(struct service *s, const struct http_head *head, enum protocol protocol,
			bool count_only, char *body, size_t n, struct reply *reply)
{
	struct call call = {.s = s, .head = head, .protocol = protocol, .reply = reply};
	int64_t started = clock_mono_us();
	AUTO_FREE char *kept = s->log_bodies ? mem_strndup(body, n) : NULL;

	s->n_requests++;
	scenario_settle(s->scenario);
	call.model = scenario_model(s->scenario, "");
	set_policy(&call, count_only);
	if (request_read(&call.request, protocol, body, n, &call.policy) < 0 ||
	    check_headers(&call) < 0)
		reply_refusal(&call);
	else if (count_only)
		buf_addf(&reply->body, "{\"input_tokens\":%" PRId64 "}", call.request.input_tokens);
	else if (check_window(&call) < 0)
		reply_refusal(&call);
	else
		decide(&call);
	buf_addf(&reply->headers, "%s: req_rehearsal%06" PRId64 "\r\n",
		 protocol == PROTOCOL_ANTHROPIC ? "request-id" : "x-request-id", s->n_requests);
	record_call(&call, kept, n, started);
	scope_release(&call.scope);
	answer_release(&call.answer);
	request_release(&call.request);
}

static void add_model(struct buf *out, const char *name, bool anthropic, bool first)
{
	buf_adds(out, first ? "{\"id\":" : ",{\"id\":");
	json_write_cstr(out, name);
	if (anthropic) {
		buf_adds(out, ",\"type\":\"model\",\"created_at\":\"2026-01-01T00:00:00Z\","
			      "\"display_name\":");
		json_write_cstr(out, name);
		buf_adds(out, "}");
	} else {
		buf_adds(
			out,
			",\"object\":\"model\",\"created\":1767225600,\"owned_by\":\"rehearsal\"}");
	}
}

static void handle_models(struct service *s, const struct http_head *head, struct reply *reply)
{
	bool anthropic = http_header(head, "anthropic-version").n > 0;
	const struct scenario *sc = s->scenario;

	buf_adds(&reply->body, anthropic ? "{\"data\":[" : "{\"object\":\"list\",\"data\":[");
	for (size_t i = 0; i < sc->n_models; i++)
		add_model(&reply->body, sc->models[i].name, anthropic, i == 0);
	if (!sc->n_models)
		add_model(&reply->body, sc->name ? sc->name : "rehearsal", anthropic, true);
	buf_adds(&reply->body, anthropic ? "],\"has_more\":false}" : "]}");
}

static void handle_other(struct service *s, const struct http_head *head, struct reply *reply)
{
	struct http_slice path = http_path(head);
	bool get = http_slice_is(head->method, "GET");
	char text[200];

	if (get && http_slice_is(path, "/__rehearsal/stats")) {
		AUTO_JSON struct json_object *stats = stats_json(s->stats);

		json_write(&reply->body, stats);
		return;
	}
	if (get && path_ends(path, "/models")) {
		handle_models(s, head, reply);
		return;
	}
	snprintf(text, sizeof(text), "Not found: %.*s %.*s", (int)MIN(head->method.n, (size_t)16),
		 head->method.s, (int)MIN(path.n, (size_t)100), path.s);
	render_error(reply,
		     http_header(head, "anthropic-version").n ? PROTOCOL_ANTHROPIC
							      : PROTOCOL_OPENAI,
		     404, NULL, NULL, NULL, text);
}

void service_handle(struct service *s, const struct http_head *head, char *body, size_t n,
		    struct reply *reply)
{
	struct http_slice path = http_path(head);
	bool post = http_slice_is(head->method, "POST");

	if (post && path_ends(path, "/messages"))
		handle_call(s, head, PROTOCOL_ANTHROPIC, false, body, n, reply);
	else if (post && path_ends(path, "/messages/count_tokens"))
		handle_call(s, head, PROTOCOL_ANTHROPIC, true, body, n, reply);
	else if (post && path_ends(path, "/chat/completions"))
		handle_call(s, head, PROTOCOL_OPENAI, false, body, n, reply);
	else
		handle_other(s, head, reply);
}
