/*
 * control_requests.c - see control_requests.h. Runs in the parent.
 *
 * What is asked is a record before it is done. The answer says that it was taken; what came of it is in the journal.
 */
#include "orchestrator/control_requests.h"

#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "orchestrator/agent_reset.h"
#include "orchestrator/pause.h"
#include "orchestrator/run.h"
#include "orchestrator/run_limits.h"

/* NULL with err: there is none of this name. */
static struct agent_record *need_agent(struct run *run, struct json_object *request,
				       struct err *err)
{
	const char *name = json_str(request, "agent", "");

	for (size_t i = 0; i < run->agents.count; i++)
		if (!strcmp(run->agents.list[i]->name, name))
			return run->agents.list[i];
	err_set(err, ERR_NOT_FOUND, "run %s has no agent '%.40s'", run->id, name);
	return NULL;
}

static int is_idle(const struct agent_record *agent, struct err *err)
{
	return err_set(err, ERR_BUSY, "agent %s does not work now", agent->name);
}

/* {"op":"compact","agent":"a1","wish":{...}}: handed to the agent, which does it before its next request. */
static int do_compact(struct run *run, struct json_object *request, struct err *err)
{
	struct json_object *wish = json_obj(request, "wish");
	AUTO_BUF struct buf body = BUF_INIT;

	if (!wish)
		return err_set(err, ERR_INVALID, "the request has no object 'wish'");
	struct agent_record *agent = need_agent(run, request, err);
	if (!agent)
		return -1;
	json_write(&body, wish);
	if (!agent_ask_compact(agent, body.data, body.len))
		return is_idle(agent, err);
	journal_add(run->journal, RECORD_AGENT_COMPACT_ASKED, "agent:s wish:j", agent->name, wish);
	return 0;
}

/* {"op":"reset","agent":"a1","why":"..."}: the agent writes its handoff before its next request. */
static int do_reset(struct run *run, struct json_object *request, struct err *err)
{
	const char *why = json_str(request, "why", "somebody asked for it");
	struct agent_record *agent = need_agent(run, request, err);

	if (!agent)
		return -1;
	if (strcmp(agent_reset_policy(agent), "never") == 0)
		return err_set(err, ERR_DENIED,
			       "resets are switched off for agent %s (--reset never, or its role)",
			       agent->name);
	if (!agent_ask_reset(agent, why))
		return is_idle(agent, err);
	journal_add(run->journal, RECORD_AGENT_RESET_ASKED, "agent:s why:s", agent->name, why);
	return 0;
}

/* {"op":"say","agent":"a1","text":"..."}: behind the results of its present round. */
static int do_say(struct run *run, struct json_object *request, struct err *err)
{
	const char *text = json_str(request, "text", "");
	struct agent_record *agent = need_agent(run, request, err);

	if (!agent)
		return -1;
	if (!*text)
		return err_set(err, ERR_INVALID, "the request has no 'text'");
	if (!agent_say(agent, "user", text))
		return is_idle(agent, err);
	journal_add(run->journal, RECORD_AGENT_SAID, "agent:s text:s", agent->name, text);
	return 0;
}

/* {"op":"pause"}, or with "agent": no further request leaves. */
static int do_pause(struct run *run, struct json_object *request, struct err *err)
{
	if (!json_has(request, "agent"))
		return run_pause(run, PAUSE_PERSON, "baton pause")
			       ? 0
			       : err_set(err, ERR_EXISTS, "run %s is paused already", run->id);
	struct agent_record *agent = need_agent(run, request, err);
	if (!agent)
		return -1;
	if (agent->state == AGENT_DONE)
		return is_idle(agent, err);
	return agent_pause(agent)
		       ? 0
		       : err_set(err, ERR_EXISTS, "agent %s is paused already", agent->name);
}

/* {"op":"continue"}, or with "agent"; with "max_cost" or "max_tokens" that limit holds from now on. */
static int do_continue(struct run *run, struct json_object *request, struct err *err)
{
	if (json_has(request, "agent")) {
		struct agent_record *agent = need_agent(run, request, err);
		if (!agent)
			return -1;
		return agent_unpause(agent)
			       ? 0
			       : err_set(err, ERR_EXISTS, "agent %s is not paused%s", agent->name,
					 agent_is_paused(agent) ? " by itself: go on with the run, "
								  "or the one that started it"
								: "");
	}
	int raised = run_limits_raise(run, request, err);
	if (raised < 0)
		return -1;
	if (!run_unpause(run, PAUSE_PERSON) && !raised)
		return err_set(
			err, ERR_EXISTS,
			"run %s works (process %d), and is not paused; 'baton watch %s' shows "
			"it, 'baton stop %s' ends it",
			run->id, (int)getpid(), run->id, run->id);
	return 0;
}

/* {"op":"stop","agent":"a1"}: it ends in good order, its work kept; those that it started too. */
static int do_stop(struct run *run, struct json_object *request, struct err *err)
{
	struct agent_record *agent = need_agent(run, request, err);

	if (!agent)
		return -1;
	if (agent->state == AGENT_DONE || agent->state == AGENT_COLLECTING)
		return err_set(err, ERR_BUSY, "agent %s has ended", agent->name);
	journal_add(run->journal, RECORD_AGENT_STOP_ASKED, "agent:s", agent->name);
	agent_stop(agent, "stopped from outside (baton stop)");
	return 0;
}

static const struct {
	const char *op;
	int (*run)(struct run *run, struct json_object *request, struct err *err);
	bool harmless;
} requests[] = {
	{"compact", do_compact, false}, {"reset", do_reset, false},	 {"say", do_say, false},
	{"pause", do_pause, true},	{"continue", do_continue, true}, {"stop", do_stop, true},
};

/* A limit is the user's to raise, wherever the word may come from. */
bool control_box_allows(enum box_level level, struct json_object *request)
{
	const char *op = json_str(request, "op", "");
	bool raises = json_has(request, "max_cost") || json_has(request, "max_tokens");

	for (size_t i = 0; i < ARRAY_SIZE(requests); i++)
		if (!strcmp(requests[i].op, op))
			return level != BOX_PARTIAL || (requests[i].harmless && !raises);
	return true; /* an unknown one is refused as such */
}

int control_request(struct run *run, struct json_object *request, struct err *err)
{
	const char *op = json_str(request, "op", "");

	if (run->state != RUN_WORKING || run->stopping)
		return err_set(err, ERR_BUSY, "run %s is not working", run->id);
	if (!control_box_allows(run->box_level, request))
		return err_set(err, ERR_DENIED,
			       "the box of this kernel (partial) does not keep agents from this "
			       "socket, so only pause and stop are taken here");
	for (size_t i = 0; i < ARRAY_SIZE(requests); i++)
		if (!strcmp(requests[i].op, op))
			return requests[i].run(run, request, err);
	return err_set(err, ERR_INVALID, "unknown request '%.40s'", op);
}
