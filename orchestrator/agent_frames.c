/*
 * agent_frames.c - frames of agents: decode, check, journal, answer. Runs in the parent.
 *
 * Effects carry (agent, generation, call id): the same key again gets the same answer and no second
 * effect. An effect is journaled before it is answered (journal_defer).
 */
#include "orchestrator/agent_frames.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "handoff/report.h"
#include "orchestrator/agent_start.h"
#include "orchestrator/calls.h"
#include "orchestrator/run.h"

struct ack {
	struct agent_record *agent;
	char *call;
	bool failed;
};

static void on_ack_durable(void *arg)
{
	struct ack *ack = arg;
	struct buf fields = BUF_INIT;

	if (ack->agent->child && ack->agent->child->channel) {
		buf_addf(&fields, "\"ok\":%s,\"call\":", ack->failed ? "false" : "true");
		json_write_cstr(&fields, ack->call);
		channel_send(ack->agent->child->channel, FRAME_ACK, buf_str(&fields), "{}", 2);
	}
	buf_release(&fields);
	free(ack->call);
	free(ack);
}

/* Answers a call id after the next commit. */
static void ack_later(struct agent_record *agent, const char *call)
{
	struct ack *ack = mem_alloc(sizeof(*ack));

	ack->agent = agent;
	ack->call = mem_strdup(call);
	journal_defer(agent->run->journal, on_ack_durable, ack);
}

static int body_object(const struct frame *frame, struct json_object **ret, struct err *err)
{
	if (frame->len == 0) {
		*ret = json_object_new_object();
		return 0;
	}
	if (json_parse(frame->body, frame->len, ret, err) < 0)
		return err_prefix(err, "bad body of a '%s' frame", frame_name(frame->type));
	if (!json_object_is_type(*ret, json_type_object)) {
		json_object_put(*ret);
		return err_set(err, ERR_INVALID, "body of a '%s' frame is no object",
			       frame_name(frame->type));
	}
	return 0;
}

static int on_hello(struct agent_record *agent, const struct frame *frame, struct err *err)
{
	if (json_i64(frame->header, "version", 0) != FRAME_VERSION)
		return err_set(err, ERR_INVALID, "it speaks frame version %lld, this is %d",
			       (long long)json_i64(frame->header, "version", 0), FRAME_VERSION);
	if (agent->said_hello)
		return err_set(err, ERR_INVALID, "it said hello twice");
	agent->said_hello = true;
	agent_expect_work(agent);
	agent_start_if_ready(agent);
	return 0;
}

/* X5: what was claimed is kept as it came; what the parent counted stands beside it. */
static int on_report(struct agent_record *agent, const struct frame *frame, struct err *err)
{
	AUTO_JSON struct json_object *body = NULL;
	const char *call = json_str(frame->header, "call", "");

	if (json_i64(frame->header, "generation", 0) != agent->generation)
		return err_set(err, ERR_INVALID, "report of another generation");
	if (agent->report_call && strcmp(agent->report_call, call) == 0) {
		ack_later(agent, call);
		return 0;
	}
	if (body_object(frame, &body, err) < 0)
		return -1;
	struct json_object *report = json_obj(body, "report");
	if (!report)
		return err_set(err, ERR_INVALID, "report frame without 'report'");
	json_object_put(agent->report);
	agent->report = json_object_get(report);
	free(agent->report_call);
	agent->report_call = mem_strdup(call);
	journal_add(agent->run->journal, true, "agent.report", "agent:s generation:i call:s body:j",
		    agent->name, agent->generation, call, body);
	ack_later(agent, call);
	return 0;
}

static void event_round(struct agent_record *agent, struct json_object *body)
{
	agent->rounds = json_i64(body, "round", agent->rounds);
	agent->used = json_i64(body, "used", agent->used);
	agent->window = json_i64(body, "window", agent->window);
}

static void event_tool(struct agent_record *agent, struct json_object *body)
{
	agent->tool_calls++;
	if (!json_flag(body, "ok", true))
		agent->failed_calls++;
}

static int on_event(struct agent_record *agent, const struct frame *frame, struct err *err)
{
	AUTO_JSON struct json_object *body = NULL;
	const char *name = json_str(frame->header, "name", "");
	static const char *const known[] = {"round",   "tool",	"state", "text",
					    "warning", "retry", "job"};
	char type[32];

	if (body_object(frame, &body, err) < 0)
		return -1;
	size_t i = 0;
	while (i < ARRAY_SIZE(known) && strcmp(known[i], name) != 0)
		i++;
	if (i == ARRAY_SIZE(known))
		return 0; /* a newer agent says more */
	if (i == 0)
		event_round(agent, body);
	else if (i == 1)
		event_tool(agent, body);
	else if (i == 2)
		snprintf(agent->activity, sizeof(agent->activity), "%s",
			 json_str(body, "state", ""));
	snprintf(type, sizeof(type), "agent.%s", name);
	json_set_str(body, "agent", agent->name);
	journal_add(agent->run->journal, false, type, "agent:s data:j", agent->name, body);
	return 0;
}

static int on_result(struct agent_record *agent, const struct frame *frame, struct err *err)
{
	AUTO_JSON struct json_object *body = NULL;
	static const char *const known[] = {"done", "failed", "stopped", "limit", "lost", "budget"};
	const char *status = json_str(frame->header, "status", "");

	if (body_object(frame, &body, err) < 0)
		return -1;
	size_t i = 0;
	while (i < ARRAY_SIZE(known) && strcmp(known[i], status) != 0)
		i++;
	if (i == ARRAY_SIZE(known))
		return err_set(err, ERR_INVALID, "unknown result status '%s'", status);
	if (!agent->status)
		agent->status = mem_strdup(status);
	const char *reason = json_str(frame->header, "reason", NULL);
	if (reason && (!agent->reason || !agent->stop_step)) {
		free(agent->reason);
		agent->reason = mem_strdup(reason);
	}
	json_object_put(agent->result);
	agent->result = json_object_get(body);
	agent->rounds = json_i64(body, "rounds", agent->rounds);
	agent->state = AGENT_ENDING;
	agent_expect_end(agent);
	return 0;
}

/* The commit is made by baton-git; the agent goes on when it is there. */
static void on_checkpoint_done(struct json_object *answer, const struct err *failure, void *arg)
{
	struct ack *ack = arg;
	struct agent_record *agent = ack->agent;

	journal_add(agent->run->journal, true, "agent.checkpoint", "agent:s commit:s message:s",
		    agent->name, json_str(answer, "commit", NULL),
		    failure ? failure->message : NULL);
	ack->failed = failure != NULL;
	journal_defer(agent->run->journal, on_ack_durable, ack);
}

static int on_checkpoint(struct agent_record *agent, const struct frame *frame, struct err *err)
{
	AUTO_JSON struct json_object *body = NULL;
	const char *call = json_str(frame->header, "call", "");

	if (body_object(frame, &body, err) < 0)
		return -1;
	if (agent->view) {
		ack_later(agent, call);
		return 0;
	}
	AUTO_JSON struct json_object *request = agent_git_entry(agent);
	json_set_str(request, "message", json_str(body, "reason", "checkpoint"));
	json_set(request, "touched", json_object_get(json_arr(body, "touched")));
	struct ack *ack = mem_alloc(sizeof(*ack));
	ack->agent = agent;
	ack->call = mem_strdup(call);
	git_client_call(agent->run->git_client, "checkpoint", request, on_checkpoint_done, ack);
	return 0;
}

int agent_on_frame(struct child *child, const struct frame *frame, struct err *err)
{
	struct agent_record *agent = child->arg;

	if (!agent->said_hello && frame->type != FRAME_HELLO)
		return err_set(err, ERR_INVALID, "its first frame is '%s', not 'hello'",
			       frame_name(frame->type));
	agent->last_progress_ms = clock_mono_ms();
	switch (frame->type) {
	case FRAME_HELLO: return on_hello(agent, frame, err);
	case FRAME_EVENT: return on_event(agent, frame, err);
	case FRAME_REPORT: return on_report(agent, frame, err);
	case FRAME_RESULT: return on_result(agent, frame, err);
	case FRAME_CHECKPOINT: return on_checkpoint(agent, frame, err);
	case FRAME_PONG: return 0;
	default: return calls_from_agent(agent, frame, err);
	}
}
