/*
 * agent_stop.c - how agents are asked to end, and made to: control frames, deadlines, watchdogs. Runs in the parent.
 *
 * One timer an agent. Each of its steps is stronger than the one before: a request to report, a request to stop, TERM
 * to its group, KILL.
 */
#include <event2/event.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "orchestrator/agents.h"
#include "orchestrator/pause.h"
#include "orchestrator/run.h"
#include "orchestrator/subagents.h"

#define STOP_GRACE_MS	5000  /* from the polite stop to TERM */
#define TERM_GRACE_MS	3000  /* from TERM to KILL */
#define END_GRACE_MS	10000 /* from the result to the end of the process */
#define REPORT_GRACE_MS 60000 /* from the request to report to the stop */

static void on_stop_step(evutil_socket_t fd, short what, void *arg)
{
	struct agent_record *agent = arg;

	if (!agent->child)
		return;
	if (!agent->said_hello)
		child_fail(agent->child, "it said no hello within %d s", AGENT_HELLO_MS / 1000);
	else if (agent->stop_step == 0 && agent_is_paused(agent))
		agent_arm(agent, REPORT_GRACE_MS); /* its report cannot leave */
	else if (agent->stop_step == 0)
		agent_stop(agent, agent->reason);
	else
		child_stop(agent->child, TERM_GRACE_MS);
}

void agent_arm(struct agent_record *agent, int64_t ms)
{
	struct timeval tv = clock_timeval(ms);

	if (!agent->ev_deadline)
		agent->ev_deadline = evtimer_new(agent->run->base, on_stop_step, agent);
	evtimer_add(agent->ev_deadline, &tv);
}

void agent_expect_end(struct agent_record *agent)
{
	agent->stop_step = 1;
	agent_arm(agent, END_GRACE_MS);
}

void agent_expect_work(struct agent_record *agent)
{
	if (agent->stop_step == 0 && agent->ev_deadline)
		event_del(agent->ev_deadline);
}

static void agent_control(struct agent_record *agent, const char *action, const char *reason)
{
	struct buf fields = BUF_INIT;

	if (!agent->child || !agent->child->channel)
		return;
	buf_addf(&fields, "\"action\":\"%s\",\"reason\":", action);
	json_write_cstr(&fields, reason);
	channel_send(agent->child->channel, FRAME_CONTROL, buf_str(&fields), NULL, 0);
	buf_release(&fields);
}

bool agent_ask_compact(struct agent_record *agent, const char *wish, size_t n)
{
	if (agent->state != AGENT_WORKING || !agent->child || !agent->child->channel)
		return false;
	channel_send(agent->child->channel, FRAME_CONTROL, "\"action\":\"compact\"", wish, n);
	return true;
}

bool agent_say(struct agent_record *agent, const char *from, const char *text)
{
	AUTO_JSON struct json_object *body = NULL;
	AUTO_BUF struct buf out = BUF_INIT;

	if (agent->state != AGENT_WORKING || !agent->child || !agent->child->channel)
		return false;
	body = json_object_new_object();
	json_set_str(body, "from", from);
	json_set_str(body, "text", text);
	json_write(&out, body);
	channel_send(agent->child->channel, FRAME_CONTROL, "\"action\":\"say\"", out.data, out.len);
	return true;
}

bool agent_ask_reset(struct agent_record *agent, const char *why)
{
	if (agent->state != AGENT_WORKING || !agent->child || !agent->child->channel)
		return false;
	agent_control(agent, "reset", why);
	return true;
}

void agent_stop(struct agent_record *agent, const char *reason)
{
	if (agent->state == AGENT_QUEUED) {
		agent->state = AGENT_DONE;
		agent->status = OUTCOME_STOPPED;
		agent->reason = mem_strdup(reason);
		agent_over(agent);
		return;
	}
	if (!agent->child || agent->stop_step > 0)
		return;
	agent->stop_step = 1;
	char *kept = mem_strdup(reason);
	free(agent->reason);
	agent->reason = kept;
	if (!agent->sent_start) {
		child_stop(agent->child, TERM_GRACE_MS); /* it has nothing to bring to an end */
		return;
	}
	agent_control(agent, "stop", reason);
	agent_arm(agent, STOP_GRACE_MS);
}

void agent_fail(struct agent_record *agent, const char *reason)
{
	agent->status = OUTCOME_FAILED;
	free(agent->reason);
	agent->reason = mem_strdup(reason);
	agent->stop_step = 1; /* what the process says from now on changes neither */
	if (agent->child)
		child_stop(agent->child, TERM_GRACE_MS);
}

void agent_ask_report(struct agent_record *agent, const char *reason)
{
	if (!agent->child || agent->stop_step > 0 || agent->asked_report)
		return;
	agent->asked_report = true;
	free(agent->reason);
	agent->reason = mem_strdup(reason);
	agent_control(agent, "report", reason);
	agent_arm(agent, REPORT_GRACE_MS);
}

void agents_stop_all(struct run *run, const char *reason)
{
	for (size_t i = 0; i < run->agents.count; i++)
		agent_stop(run->agents.list[i], reason);
}

void agents_kill_all(struct run *run)
{
	for (size_t i = 0; i < run->agents.count; i++) {
		struct agent_record *agent = run->agents.list[i];
		if (agent->child)
			child_stop(agent->child, 0);
	}
}

/* ---- watchdogs ---- */

void agents_watch(struct run *run)
{
	int64_t now = clock_mono_ms();

	for (size_t i = 0; i < run->agents.count; i++) {
		struct agent_record *agent = run->agents.list[i];
		enum watch watch = activity_watch(agent->activity);
		bool tool = watch == WATCH_TOOL;
		int64_t limit = settings_i64(run->settings, tool ? OPT_TOOL_IDLE : OPT_MODEL_IDLE);
		/* Hooks have limits of their own, and one may follow the other. */
		if (agent->hook || agent_is_paused(agent))
			agent->last_progress_ms = now;
		if (agent->state != AGENT_WORKING || now - agent->last_progress_ms < limit ||
		    watch == WATCH_NONE || subagents_waits(agent))
			continue;
		agent->last_progress_ms = now;
		journal_add(run->journal, RECORD_AGENT_WARNING, "agent:s message:s", agent->name,
			    tool ? "one tool takes longer than --tool-idle"
				 : "no model progress for --model-idle");
		agent_ask_report(agent, tool ? "watchdog: no end of a tool call"
					     : "watchdog: no model progress");
	}
}
