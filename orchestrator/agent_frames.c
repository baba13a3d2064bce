/*
 * agent_frames.c - frames of agents: decode, check, journal, answer. Runs in the parent.
 *
 * What comes in is data of a process that a hostile model may have turned: whatever is not as it
 * must be fails that child, and nothing else. Effects are keyed and answered by effects.c.
 */
#include "orchestrator/agent_frames.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "handoff/report.h"
#include "orchestrator/agent_reset.h"
#include "orchestrator/agent_start.h"
#include "orchestrator/calls.h"
#include "orchestrator/collect.h"
#include "orchestrator/hooks.h"
#include "orchestrator/run.h"
#include "orchestrator/subagents.h"

int agent_frame_body(const struct frame *frame, struct json_object **ret, struct err *err)
{
	if (frame->len == 0) {
		*ret = json_object_new_object();
		return 0;
	}
	if (json_parse(frame->body, frame->len, ret, err) < 0)
		return err_prefix(err, "bad body of a '%s' frame", frame_name(frame->type));
	if (!json_object_is_type(*ret, json_type_object)) {
		json_object_put(*ret);
		*ret = NULL; /* the caller's cleanup would put it once more */
		return err_set(err, ERR_INVALID, "body of a '%s' frame is no object",
			       frame_name(frame->type));
	}
	return 0;
}

/* The registry checked it: it is the first, of this version, and an agent's. */
static int on_hello(struct agent_record *agent)
{
	agent->said_hello = true;
	agent_expect_work(agent);
	agent_start_if_ready(agent);
	agents_pump(agent->run); /* one less is being loaded */
	return 0;
}

/* The report of a process that may be in anybody's hands: the shape that the agent's own check gives
 * is demanded here again (I12), with the role's schema. That one is not asked of a report by rule or
 * one that was cut to its reader's room: both say so, and nobody takes them for whole. */
static int check_report(const struct agent_record *agent, struct json_object *body,
			struct json_object **ret, struct err *err)
{
	struct json_object *claimed = json_obj(body, "report");
	bool whole =
		!json_flag(claimed, "by_rule", false) && !json_flag(claimed, "truncated", false);

	if (!claimed)
		return err_set(err, ERR_INVALID, "report frame without 'report'");
	return report_check(claimed, whole ? agent->output_schema : NULL, ret, err);
}

/* X5: what was claimed is kept as it came; what the parent counted stands beside it. */
static int on_report(struct agent_record *agent, const struct frame *frame, struct err *err)
{
	AUTO_JSON struct json_object *body = NULL;
	struct json_object *report = NULL;
	struct effect *effect = NULL;

	if (agent_frame_body(frame, &body, err) < 0 || check_report(agent, body, &report, err) < 0)
		return -1;
	int fresh = effect_begin(agent, frame, &effect, err);
	if (fresh <= 0) {
		json_object_put(report);
		return fresh;
	}
	json_object_put(agent->report);
	agent->report = report;
	json_set(body, "report", json_object_get(report));
	journal_add(agent->run->journal, RECORD_AGENT_REPORT, "agent:s generation:i call:s body:j",
		    agent->name, agent->generation, effect_call(effect), body);
	effect_answer(effect, true, "{}");
	return 0;
}

static void event_round(struct agent_record *agent, struct json_object *body)
{
	agent->rounds = agent->rounds_before + json_i64(body, "round", 0);
	agent->used = json_i64(body, "used", agent->used);
	agent->window = json_i64(body, "window", agent->window);
	if (!agent->run->rehearsal && agent->model)
		calibration_response(&agent->run->calibration, agent->model, agent->role->name,
				     json_i64(body, "output", 0));
}

static void event_tool(struct agent_record *agent, struct json_object *body)
{
	agent->tool_calls++;
	if (!json_flag(body, "ok", true))
		agent->failed_calls++;
}

/* One that begins to wait for others leaves its place to them. */
static void event_state(struct agent_record *agent, struct json_object *body)
{
	agent->activity = activity_find(json_str(body, "state", ""));
	if (subagents_waits(agent))
		agents_pump(agent->run);
}

static const enum record_type event_records[] = {
#define EVENT_RECORD(name, wire) [EVENT_##name] = RECORD_AGENT_##name,
	AGENT_EVENTS(EVENT_RECORD)
#undef EVENT_RECORD
};

static int on_event(struct agent_record *agent, const struct frame *frame, struct err *err)
{
	AUTO_JSON struct json_object *body = NULL;
	const char *name = json_str(frame->header, "name", "");
	enum agent_event event = agent_event_find(name);

	if (agent_frame_body(frame, &body, err) < 0)
		return -1;
	if (event == EVENT_TYPES)
		return 0; /* a newer agent says more */
	if (event == EVENT_ROUND)
		event_round(agent, body);
	else if (event == EVENT_TOOL)
		event_tool(agent, body);
	else if (event == EVENT_STATE)
		event_state(agent, body);
	else if (event == EVENT_COMPACT)
		agent->compactions += !record_room_made_by(body);
	else if (event == EVENT_CHILD)
		subagents_told(agent, json_str(body, "child", ""));
	json_set_str(body, "agent", agent->name);
	journal_add(agent->run->journal, event_records[event], "agent:s data:j", agent->name, body);
	return 0;
}

static int on_result(struct agent_record *agent, const struct frame *frame, struct err *err)
{
	AUTO_JSON struct json_object *body = NULL;
	const char *status = json_str(frame->header, "status", "");
	enum outcome_status outcome = outcome_find(status);

	if (agent_frame_body(frame, &body, err) < 0)
		return -1;
	if (outcome == OUTCOME_NONE)
		return err_set(err, ERR_INVALID, "unknown result status '%s'", status);
	bool reset = outcome == OUTCOME_RESET;
	if (reset && !agent->succeed && !agent->run->stopping)
		return err_set(err, ERR_INVALID, "it ended with a reset that was not accepted");
	if (!agent->status && !reset)
		agent->status = outcome;
	const char *reason = json_str(frame->header, "reason", NULL);
	if (reason && (!agent->reason || !agent->stop_step)) {
		free(agent->reason);
		agent->reason = mem_strdup(reason);
	}
	json_object_put(agent->result);
	agent->result = json_object_get(body);
	if (json_has(body, "rounds"))
		agent->rounds = agent->rounds_before + json_i64(body, "rounds", 0);
	if (!agent->run->rehearsal && agent->model)
		calibration_learn(&agent->run->calibration, agent->model,
				  json_obj(body, "calibration"));
	project_memory_learn(&agent->run->memory, json_obj(body, "memory"));
	agent->state = AGENT_ENDING;
	agent_expect_end(agent);
	return 0;
}

static void checkpoint_answer(struct effect *effect, const char *commit, const char *failure)
{
	AUTO_JSON struct json_object *body = json_object_new_object();
	AUTO_BUF struct buf text = BUF_INIT;

	json_set(body, "commit", NULL);
	json_set_str(body, "commit", commit);
	json_set_str(body, "message", failure);
	json_write(&text, body);
	effect_answer(effect, failure == NULL, buf_str(&text));
}

/* What is too large to be stored is a failure to the agent too: its work is not safe yet. */
static void on_checkpoint_done(struct json_object *answer, const struct err *failure, void *arg)
{
	struct effect *effect = arg;
	struct agent_record *agent = effect_agent(effect);
	const char *why = failure ? failure->message : json_str(answer, "kept", NULL);
	const char *commit = why ? NULL : json_str(answer, "commit", NULL);

	journal_add(agent->run->journal, RECORD_AGENT_CHECKPOINT,
		    "agent:s generation:i call:s commit:s message:s", agent->name,
		    agent->generation, effect_call(effect), commit, why);
	checkpoint_answer(effect, commit, why);
	if (agent->state == AGENT_COLLECTING)
		collect_start(agent); /* the agent ended before its checkpoint */
}

/* The commit is made by baton-git, while the agent works on: it does not wait for the answer. */
static int on_checkpoint(struct agent_record *agent, const struct frame *frame, struct err *err)
{
	AUTO_JSON struct json_object *body = NULL;
	struct effect *effect = NULL;
	bool busy = agent->effects.open > 0;

	if (agent_frame_body(frame, &body, err) < 0)
		return -1;
	int fresh = effect_begin(agent, frame, &effect, err);
	if (fresh <= 0)
		return fresh;
	if (busy || agent->view || !agent->worktree_made) {
		/* Two at once would store the same tree twice, in any order. */
		checkpoint_answer(effect, NULL,
				  busy		? "another checkpoint is under way"
				  : agent->view ? NULL
						: "there is no worktree yet");
		return 0;
	}
	AUTO_JSON struct json_object *request = agent_git_entry(agent);
	AUTO_FREE char *message =
		mem_printf("baton: %.200s", json_str(body, "reason", "checkpoint"));
	json_set_str(request, "message", message);
	json_set(request, "touched", json_object_get(json_arr(body, "touched")));
	git_client_call(agent->run->git_client, "checkpoint", request, on_checkpoint_done, effect);
	return 0;
}

int agent_on_frame(struct child *child, const struct frame *frame, struct err *err)
{
	struct agent_record *agent = child->arg;

	agent->last_progress_ms = clock_mono_ms();
	switch (frame->type) {
	case FRAME_HELLO: return on_hello(agent);
	case FRAME_EVENT: return on_event(agent, frame, err);
	case FRAME_REPORT: return on_report(agent, frame, err);
	case FRAME_RESULT: return on_result(agent, frame, err);
	case FRAME_RESET: return agent_on_reset(agent, frame, err);
	case FRAME_CHECKPOINT: return on_checkpoint(agent, frame, err);
	case FRAME_HOOK: return hooks_on_frame(agent, frame, err);
	case FRAME_SPAWN: return subagents_on_spawn(agent, frame, err);
	case FRAME_MESSAGE: return subagents_on_message(agent, frame, err);
	default: return calls_from_agent(agent, frame, err);
	}
}
