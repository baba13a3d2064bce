/*
 * golden_agent.c - see golden_agent.h.
 */
#include "golden_agent.h"

#include "../agent/agent_fixture.h"

#include <stdio.h>
#include <sys/socket.h>

#include "agent/ask.h"
#include "agent/calls.h"
#include "agent/compact.h"
#include "agent/context/epoch.h"
#include "agent/handoff_take.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"

static void must(int rc, const struct err *e)
{
	if (rc < 0)
		fail_msg("%s", e->message);
}

/* ---- answers ---- */

static void add_chunk(struct buf *out, const char *finish, const struct buf *delta)
{
	buf_addf(out,
		 "data: "
		 "{\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,"
		 "\"delta\":{%s},\"finish_reason\":%s}]}\n\n",
		 delta ? buf_str(delta) : "", finish);
}

static void add_text(struct buf *out, const char *text)
{
	AUTO_BUF struct buf delta = BUF_INIT;

	buf_adds(&delta, "\"content\":");
	json_write_cstr(&delta, text);
	add_chunk(out, "null", &delta);
}

static void add_call(struct buf *out, size_t id, const struct golden_step *step)
{
	AUTO_BUF struct buf delta = BUF_INIT;

	buf_addf(&delta,
		 "\"tool_calls\":[{\"index\":0,\"id\":\"call_%zu\",\"type\":\"function\","
		 "\"function\":{\"name\":\"%s\",\"arguments\":",
		 id, step->tool);
	json_write_cstr(&delta, step->arguments);
	buf_adds(&delta, "}}]");
	add_chunk(out, "null", &delta);
}

/* ---- the same as events of the other API ---- */

static void add_block(struct buf *out, size_t index, const char *start, const char *type,
		      const char *member, const char *value)
{
	buf_addf(
		out,
		"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":%zu,"
		"\"content_block\":%s}\n\nevent: content_block_delta\ndata: "
		"{\"type\":\"content_block_delta\",\"index\":%zu,\"delta\":{\"type\":\"%s\",\"%"
		"s\":",
		index, start, index, type, member);
	json_write_cstr(out, value);
	buf_addf(out,
		 "}}\n\nevent: content_block_stop\ndata: "
		 "{\"type\":\"content_block_stop\",\"index\":%zu}\n\n",
		 index);
}

static void write_events(const char *text, const struct golden_step *call, size_t id,
			 struct buf *out)
{
	buf_adds(
		out,
		"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\","
		"\"type\":\"message\",\"role\":\"assistant\",\"model\":\"m\",\"content\":[],"
		"\"stop_reason\":null}}\n\n");
	if (text)
		add_block(out, 0, "{\"type\":\"text\",\"text\":\"\"}", "text_delta", "text", text);
	if (call) {
		AUTO_FREE char *start = mem_printf(
			"{\"type\":\"tool_use\",\"id\":\"call_%zu\",\"name\":\"%s\",\"input\":{}}",
			id, call->tool);

		add_block(out, text ? 1 : 0, start, "input_json_delta", "partial_json",
			  call->arguments);
	}
	buf_addf(out,
		 "event: message_delta\ndata: "
		 "{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":"
		 "\"%s\"}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
		 call ? "tool_use" : "end_turn");
}

static void write_chunks(const char *text, const struct golden_step *call, size_t id,
			 struct buf *out)
{
	if (text)
		add_text(out, text);
	if (call)
		add_call(out, id, call);
	add_chunk(out, call ? "\"tool_calls\"" : "\"stop\"", NULL);
	buf_adds(out, "data: [DONE]\n\n");
}

static void write_answer(struct golden_agent *ga, const char *text, const struct golden_step *call,
			 struct buf *out)
{
	size_t id = (size_t)ga->agent.conversation.round;

	if (ga->agent.settings->model->api == MODEL_API_ANTHROPIC)
		write_events(text, call, id, out);
	else
		write_chunks(text, call, id, out);
}

/* Counts are not told: the ledger rests on its own. */
static void write_stream(struct golden_agent *ga, enum call_purpose purpose, const char *body,
			 size_t n, struct buf *out)
{
	AUTO_BUF struct buf written = BUF_INIT;
	const struct golden_step *call = NULL;
	const char *text = "Understood.";

	if (purpose == CALL_COMPACT && ga->judgement) {
		text = ga->judgement;
	} else if (purpose == CALL_COMPACT) {
		summarise(ga->options.summariser, ga->golden, (int)ga->agent.conversation.round,
			  &ga->random, &ga->lies, &written);
		text = buf_str(&written);
	} else if (purpose == CALL_BACKGROUND) {
		take_notes(ga->options.summariser, ga->golden, body, n, &ga->random, &ga->lies,
			   &written);
		text = buf_str(&written);
	} else if (ga->step) {
		call = ga->step;
		text = call->say;
	}
	write_answer(ga, text, call, out);
}

void golden_agent_stream(struct golden_agent *ga, const struct golden_step *call, struct buf *out)
{
	write_answer(ga, call ? call->say : "Done.", call, out);
}

/* ---- the transport ---- */

/* One call that is waited for, and beside it a pass of the notes. */
static int64_t start(void *arg, const struct call_request *request,
		     const struct call_events *events, void *user, struct err *err)
{
	struct golden_agent *ga = arg;
	struct golden_call *call = &ga->calls[request->purpose == CALL_BACKGROUND];

	(void)err;
	assert_null(call->events);
	*call = (struct golden_call){events, user, *request, ++ga->req};
	return call->req;
}

static void cancel(void *arg, int64_t req)
{
	struct golden_agent *ga = arg;

	for (size_t i = 0; i < ARRAY_SIZE(ga->calls); i++)
		if (req == ga->calls[i].req)
			ga->calls[i].events = NULL;
}

static void keep_body(struct golden_agent *ga, enum call_purpose purpose, const char *body,
		      size_t n)
{
	struct buf *copy = purpose == CALL_COMPACT ? &ga->question : &ga->body;

	if (purpose == CALL_BACKGROUND)
		return;
	buf_clear(copy);
	buf_add(copy, body, n);
}

static void answer(struct golden_agent *ga, struct golden_call *open, struct err *err)
{
	struct golden_call call = *open;
	struct call_end end = {.outcome = "ok", .ttft_ms = 1, .message = ""};
	AUTO_BUF struct buf stream = BUF_INIT;
	size_t n;

	if (!call.events)
		return;
	const char *body = call.events->body(call.user, &n);
	keep_body(ga, call.request.purpose, body, n);
	if (!ga->options.model || ga->judgement || (ga->step && call.request.purpose == CALL_MAIN))
		write_stream(ga, call.request.purpose, body, n, &stream);
	else if (ga->options.model(ga->options.arg, &call.request, body, n, &stream) < 0)
		end = (struct call_end){.outcome = "failed",
					.class = CALL_NETWORK,
					.ttft_ms = -1,
					.message = "the live model gave no answer"};
	open->events = NULL;
	if (!strcmp(end.outcome, "ok"))
		call.events->on_data(call.user, stream.data, stream.len, err);
	call.events->on_end(call.user, &end);
}

static int wait_answer(void *arg, int64_t deadline_ms, struct err *err)
{
	struct golden_agent *ga = arg;

	(void)deadline_ms;
	for (size_t i = 0; i < ARRAY_SIZE(ga->calls); i++)
		answer(ga, &ga->calls[i], err);
	return 0;
}

static void settle(void *arg, int64_t req, const struct transport_usage *usage)
{
}

/* ---- the tools ---- */

/* Tools have no argument of ours: the agent whose call runs. */
static struct golden_agent *current;

static int run_recorded(struct tool_context *ctx, const char *call_id, struct json_object *input,
			struct tool_result *ret, struct err *err)
{
	const struct golden_step *step = current->step;

	if (current->live) {
		current->options.live(current->options.arg, current->live, input, ret);
		return 0;
	}
	buf_add(&ret->text, step->result.data, step->result.len);
	ret->exit_code = step->exit_code;
	ret->is_error = step->exit_code > 0;
	ret->has_effects = !strcmp(step->tool, "edit") || !strcmp(step->tool, "write");
	ret->summary = step->exit_code < 0
			       ? mem_printf("%s", step->tool)
			       : mem_printf("shell: %s (exit %d, 1.0 s)",
					    json_str(input, "command", ""), step->exit_code);
	return 0;
}

static const struct tool *recorded_tools(size_t *ret_n)
{
	static struct tool copies[32];
	const struct tool *table = tool_table(ret_n);

	assert_true(*ret_n <= ARRAY_SIZE(copies));
	for (size_t i = 0; i < *ret_n; i++) {
		copies[i] = table[i];
		copies[i].run = run_recorded;
	}
	return copies;
}

/* ---- life ---- */

static char *start_members(const struct golden *g, const struct golden_options *o)
{
	struct buf out = BUF_INIT;

	buf_addf(&out,
		 "{\"model\":{\"window\":%lld,\"max_output\":4000},\"role\":{\"max_rounds\":1000},"
		 "\"generation\":%lld,\"context\":%s,\"task\":",
		 (long long)o->window, (long long)MAX(o->generation, (int64_t)1),
		 o->context ? o->context : "{}");
	json_write_cstr(&out, g->task);
	buf_adds(&out, ",\"instructions\":[");
	if (g->instructions) {
		buf_adds(&out, "{\"origin\":\"project\",\"path\":\"AGENTS.md\",\"text\":");
		json_write_cstr(&out, g->instructions);
		buf_addc(&out, '}');
	}
	buf_addc(&out, ']');
	if (o->home)
		buf_addf(&out, ",\"dirs\":{\"generation\":\"%s/%lld\"}", o->home,
			 (long long)o->generation);
	if (o->handoff)
		buf_addf(&out, ",\"handoff\":{\"file\":\"%s\",\"from\":%lld,\"reason\":\"rounds\"}",
			 o->handoff, (long long)o->generation - 1);
	buf_addc(&out, '}');
	return buf_take(&out);
}

/* A transcript is synced before each request: 100 lives on a disk are minutes, in memory seconds. */
static char *memory_folder(void)
{
	char *path = mem_strdup("/dev/shm/baton-golden-XXXXXX");

	if (mkdtemp(path))
		return path;
	free(path);
	return fixture_folder();
}

static void make_settings(struct golden_agent *ga)
{
	AUTO_FREE char *members = start_members(ga->golden, &ga->options);
	AUTO_FREE char *document = fixture_start(ga->folder, "openai", members);
	struct err e = ERR_INIT;

	must(agent_settings_parse(document, strlen(document), &ga->agent.settings, &e), &e);
	if (!ga->options.model_row)
		return;
	model_free(ga->agent.settings->model);
	ga->agent.settings->model = ga->options.model_row;
	ga->agent.settings->model->window = ga->options.window;
}

struct golden_agent *golden_agent_new(const struct golden *golden,
				      const struct golden_options *options)
{
	struct golden_agent *ga = mem_alloc(sizeof(*ga));
	struct err e = ERR_INIT;
	size_t n_tools;
	const struct tool *tools = recorded_tools(&n_tools);
	int pair[2];

	*ga = (struct golden_agent){.golden = golden, .options = *options, .random = options->seed};
	ga->folder = memory_folder();
	make_settings(ga);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	close(pair[1]);
	ga->agent.waiter = waiter_new(pair[0], pair[0], &e);
	assert_non_null(ga->agent.waiter);
	ga->agent.transport = (struct transport){start, cancel, wait_answer, settle, ga};
	must(agent_make(&ga->agent, tools, n_tools, &e), &e);
	ga->agent.toolbox.needs_nothing = true;
	agent_add_user(&ga->agent,
		       handoff_opening(&ga->agent, conversation_opening(ga->agent.settings)));
	return ga;
}

void golden_agent_free(struct golden_agent *ga)
{
	toolbox_release(&ga->agent.toolbox);
	agent_release(&ga->agent);
	waiter_free(ga->agent.waiter);
	fixture_remove(ga->folder);
	lies_release(&ga->lies);
	buf_release(&ga->body);
	buf_release(&ga->question);
	free(ga);
}

/* ---- rounds ---- */

static void say(struct golden_agent *ga, const char *words)
{
	struct message *m = message_new(MESSAGE_USER);

	message_add_text(m, ORIGIN_USER, words, strlen(words));
	agent_add_user(&ga->agent, m);
}

/* As round.c does it. */
static void append_answer(struct golden_agent *ga, struct stream_answer *answer)
{
	struct agent *a = &ga->agent;
	struct message *m;

	conversation_next_round(&a->conversation);
	m = conversation_append(&a->conversation, take_ptr(answer->message));
	client_render_message(a->client, m);
	ledger_answer(&a->ledger, m, &answer->usage);
	transcript_message(a->transcript, m);
}

static void ask(struct golden_agent *ga, struct ask_result *r)
{
	struct err e = ERR_INIT;
	int rc = ask_model(&ga->agent, r, &e);

	must(rc, &e);
	if (rc > 0)
		fail_msg("%s: %s", ga->golden->name, ga->agent.outcome.reason);
}

/* With notes a compaction may be asked for at any moment, so the threshold is always near. */
static void play_round(struct golden_agent *ga)
{
	struct agent *a = &ga->agent;
	struct ask_result r = {.ttft_ms = -1};
	struct err e = ERR_INIT;

	view_sync(&a->view, &a->conversation);
	session_notes_tick(a, ledger_used(&a->ledger) + 1);
	ask(ga, &r);
	append_answer(ga, &r.answer);
	stream_answer_release(&r.answer);
	current = ga;
	must(calls_run(a, conversation_last(&a->conversation), false, &e), &e);
}

void golden_agent_play(struct golden_agent *ga, int round)
{
	const struct golden *g = ga->golden;

	while (ga->at < g->n_steps && (ga->played < round || g->steps[ga->at].user)) {
		ga->step = &g->steps[ga->at];
		if (ga->step->user)
			say(ga, ga->step->user);
		else
			play_round(ga);
		ga->played += !ga->step->user;
		ga->at++;
	}
	ga->step = NULL;
}

/* As round.c does it with an answer that calls nothing. */
static void nudge(struct golden_agent *ga)
{
	struct message *m = message_new(MESSAGE_USER);

	message_add_text(m, ORIGIN_NUDGE, "Go on.", 6);
	agent_add_user(&ga->agent, m);
}

bool golden_agent_act(struct golden_agent *ga, const struct golden_step *step)
{
	struct agent *a = &ga->agent;
	struct ask_result r = {.ttft_ms = -1};
	struct err e = ERR_INIT;
	const struct message *m;

	ga->step = step;
	view_sync(&a->view, &a->conversation);
	ask(ga, &r);
	append_answer(ga, &r.answer);
	stream_answer_release(&r.answer);
	m = conversation_last(&a->conversation);
	for (size_t i = 0; i < m->n_blocks; i++)
		if (m->blocks[i].kind == BLOCK_TOOL_CALL)
			ga->live = m->blocks[i].name;
	bool called = ga->live != NULL;
	current = ga;
	if (called)
		must(calls_run(a, m, false, &e), &e);
	else
		nudge(ga);
	ga->live = NULL;
	ga->step = NULL;
	return called;
}

/* ---- mutants ---- */

static bool is_words(const struct block *b)
{
	return b->origin == ORIGIN_NUDGE && strstr(b->text, "<user-words-");
}

static bool is_facts(const struct block *b)
{
	return b->origin == ORIGIN_ATTACHMENT && strstr(b->text, "On record from the calls");
}

static void add_mutated(struct golden_agent *ga, struct message *copy, const struct block *b)
{
	enum golden_mutant mutant = ga->options.mutant;
	AUTO_BUF struct buf text = BUF_INIT;

	if ((mutant == MUTANT_NO_WORDS && is_words(b)) ||
	    (mutant == MUTANT_NO_FACTS && is_facts(b)))
		return;
	buf_add(&text, b->text, b->text_len);
	if (mutant == MUTANT_CUT_WORDS && is_words(b))
		buf_truncate(&text, text_floor(b->text, b->text_len, b->text_len * 2 / 3));
	for (size_t i = 0;
	     mutant == MUTANT_NO_CHECK && b->origin == ORIGIN_SUMMARY && i < ga->lies.n; i++)
		buf_addf(&text, "\n%s", ga->lies.list[i]);
	message_add_text(copy, b->origin, text.data, text.len);
}

static struct message *mutated(struct golden_agent *ga, const struct message *m)
{
	struct message *copy = message_new(MESSAGE_USER);

	for (size_t i = 0; i < m->n_blocks; i++)
		add_mutated(ga, copy, &m->blocks[i]);
	copy->round = m->round;
	return copy;
}

/* Replaces what a compaction has put in, behind the back of the agent's own proof. */
static void mutate(struct golden_agent *ga)
{
	struct agent *a = &ga->agent;
	struct epoch_edit edit;
	struct epoch_done done;

	epoch_begin(&edit, "mutant", &a->view, &a->ledger, &a->conversation, false);
	for (size_t at = 0; at < a->view.n; at++) {
		const struct message *m = a->view.list[at];
		bool ours = false;

		for (size_t i = 0; i < m->n_blocks; i++)
			ours |= is_words(&m->blocks[i]) || is_facts(&m->blocks[i]) ||
				m->blocks[i].origin == ORIGIN_SUMMARY;
		if (ours && m->role == MESSAGE_USER)
			epoch_change(&edit, at, at + 1, mutated(ga, m));
	}
	epoch_apply(&edit, &done);
	a->proved_epoch = a->view.epoch;
	a->validator = (struct validator){.n = 0};
}

void golden_agent_compact(struct golden_agent *ga)
{
	struct compact_request request = {.trigger = COMPACT_THRESHOLD};
	struct err e = ERR_INIT, why = ERR_INIT;
	int64_t epoch = ga->agent.view.epoch;
	int rc = compact_now(&ga->agent, &request, &why, &e);

	must(rc, &e);
	if (rc > 0 || ga->agent.view.epoch == epoch)
		fail_msg("%s: no compaction at round %lld (%s)", ga->golden->name,
			 (long long)ga->agent.conversation.round, why.message);
	ga->compactions++;
	if (ga->options.mutant)
		mutate(ga);
}

/* A window that is nearly full, so that every rung has a reason. */
static void fill_window(struct agent *a)
{
	struct err e = ERR_INIT;

	a->settings->model->window = ledger_used(&a->ledger) * 100 / 92 + 4000;
	must(agent_set_budget(a, &e), &e);
}

int64_t golden_agent_rung(struct golden_agent *ga, const struct rung *rung)
{
	struct agent *a = &ga->agent;
	struct rung_input in = {
		.view = &a->view,
		.conversation = &a->conversation,
		.model = a->settings->model,
		.knobs = &a->settings->knobs,
		.rounds_left = 100,
		.ledger = &a->ledger,
		.budget = &a->budget,
		.offload = &a->offload,
	};
	int64_t freed = 0;
	struct err e = ERR_INIT;

	view_sync(&a->view, &a->conversation);
	fill_window(a);
	must(rung->run(&in, &freed, &e), &e);
	a->validator = (struct validator){.n = 0};
	return freed;
}

void golden_agent_request(struct golden_agent *ga, const char *words, struct buf *answer)
{
	struct ask_result r = {.ttft_ms = -1};

	if (words)
		say(ga, words);
	ga->step = NULL;
	ask(ga, &r);
	for (size_t i = 0; answer && i < r.answer.message->n_blocks; i++)
		if (r.answer.message->blocks[i].kind == BLOCK_TEXT)
			buf_adds(answer, r.answer.message->blocks[i].text);
	stream_answer_release(&r.answer);
}
