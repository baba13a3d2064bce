/*
 * subagents.c - see subagents.h. Runs in the parent.
 *
 * What an agent wishes is data of a process that a hostile model may have turned: a wish of the wrong shape is refused
 * like one beyond the limits, with a sentence that the model can act on, and nothing that it says of depth or number is
 * ever read.
 */
#include "orchestrator/subagents.h"

#include <string.h>

#include "base/memory.h"
#include "orchestrator/agent_frames.h"
#include "orchestrator/agent_start.h"
#include "orchestrator/agents.h"
#include "orchestrator/collect.h"
#include "orchestrator/fork.h"
#include "orchestrator/outcome.h"
#include "orchestrator/replay.h"
#include "orchestrator/run.h"

#define SUBAGENTS_WINDOW 32000 /* tokens */
#define TASK_BYTES	 (256 << 10)
#define TASK_TOLD	 300 /* bytes of a task by which its starter knows it again */
#define STOPPED_REASON	 "the agent that started it has ended"

/* ---- the tree ---- */

static bool is_child_of(const struct agent_record *child, const struct agent_record *agent)
{
	return child->family.spawner == agent;
}

static size_t count_live(const struct agent_record *agent)
{
	const struct agent_pool *pool = &agent->run->agents;
	size_t n = 0;

	for (size_t i = 0; i < pool->count; i++)
		n += is_child_of(pool->list[i], agent) && pool->list[i]->state != AGENT_DONE;
	return n;
}

bool subagents_has_live(const struct agent_record *agent)
{
	return count_live(agent) > 0;
}

bool subagents_waits(const struct agent_record *agent)
{
	return agent->activity == ACTIVITY_CHILDREN && subagents_has_live(agent);
}

/* In a small window the tool's own words and the reports would take the room of the work (A10). */
bool subagents_allowed(const struct agent_record *agent)
{
	return agent->model->window >= SUBAGENTS_WINDOW &&
	       fork_origin(agent)->family.depth < settings_i64(agent->run->settings, OPT_MAX_DEPTH);
}

void subagents_stop_children(struct agent_record *agent)
{
	struct agent_pool *pool = &agent->run->agents;

	for (size_t i = 0; i < pool->count; i++) {
		if (is_child_of(pool->list[i], agent) && pool->list[i]->state != AGENT_DONE)
			agent_stop(pool->list[i], STOPPED_REASON);
	}
}

/* Its key is AGENT/GENERATION/CALL of the one that asked. */
const char *subagents_call(const struct agent_record *child)
{
	const char *generation = strchr(child->key, '/');
	const char *call = generation ? strchr(generation + 1, '/') : NULL;

	return call ? call + 1 : "";
}

/* ---- news of a child ---- */

static struct json_object *child_seen(const struct agent_record *child)
{
	struct json_object *seen = json_object_new_object();

	json_set_i64(seen, "rounds", child->rounds);
	json_set_i64(seen, "tool_calls", child->tool_calls);
	json_set_i64(seen, "failed_calls", child->failed_calls);
	json_set_i64(seen, "tokens",
		     child->usage.fresh + child->usage.cache_read + child->usage.cache_write +
			     child->usage.output);
	if (child->usage.cost > 0)
		json_set_double(seen, "cost", child->usage.cost);
	json_set_i64(seen, "files", (int64_t)json_len(json_arr(child->changes, "files")));
	json_set(seen, "commits", json_object_get(json_arr(child->changes, "commits")));
	return seen;
}

/* X5: what was claimed, and beside it what was seen. */
static struct json_object *child_document(const struct agent_record *child)
{
	struct json_object *doc = json_object_new_object();
	AUTO_FREE char *task = mem_strndup(child->task, strnlen(child->task, TASK_TOLD));
	bool done = child->state == AGENT_DONE;

	json_set_str(doc, "agent", child->name);
	json_set_str(doc, "state", done ? "done" : "working");
	json_set_str(doc, "call", subagents_call(child));
	json_set_str(doc, "role", child->role->name);
	json_set_str(doc, "task", task);
	json_set_bool(doc, "told", child->family.told);
	json_set_str(doc, "branch", child->branch);
	if (!done)
		return doc;
	AUTO_FREE char *contradiction = outcome_contradiction(child);
	json_set_str(doc, "status", outcome_name(child->status));
	json_set_str(doc, "reason", child->reason);
	json_set_str(doc, "class", json_str(child->result, "class", NULL));
	json_set_str(doc, "contradiction", contradiction);
	json_set_str(doc, "commit", child->merged_tip);
	json_set_str(doc, "kept", child->kept);
	json_set(doc, "report", json_object_get(child->report));
	json_set(doc, "seen", child_seen(child));
	return doc;
}

/* After a commit of the journal, so that nobody hears of an end that a crash takes back. */
static void send_child(void *arg)
{
	const struct agent_record *child = arg;
	const struct agent_record *agent = child->family.spawner;
	AUTO_JSON struct json_object *doc = NULL;
	AUTO_BUF struct buf body = BUF_INIT;

	if (!agent->sent_start || !agent->child || !agent->child->channel)
		return; /* its start document says it */
	doc = child_document(child);
	json_write(&body, doc);
	channel_sendf(agent->child->channel, FRAME_CHILD, body.data, body.len,
		      "\"agent\":\"%s\",\"state\":\"%s\"", child->name, json_str(doc, "state", ""));
}

void subagents_child_over(struct agent_record *child)
{
	struct agent_record *agent = child->family.spawner;

	journal_defer(child->run->journal, send_child, child);
	if (agent->state == AGENT_COLLECTING && !subagents_has_live(agent))
		collect_start(agent);
}

struct json_object *subagents_document(const struct agent_record *agent)
{
	const struct agent_pool *pool = &agent->run->agents;
	struct json_object *list = NULL;

	for (size_t i = 0; i < pool->count; i++) {
		if (!is_child_of(pool->list[i], agent))
			continue;
		if (!list)
			list = json_object_new_array();
		json_object_array_add(list, child_document(pool->list[i]));
	}
	return list;
}

void subagents_told(struct agent_record *agent, const char *child)
{
	struct agent_pool *pool = &agent->run->agents;

	for (size_t i = 0; i < pool->count; i++) {
		if (is_child_of(pool->list[i], agent) && strcmp(pool->list[i]->name, child) == 0)
			pool->list[i]->family.told = true;
	}
}

/* ---- a wish ---- */

struct spawn {
	struct effect *effect;
	struct agent_record *agent;
	struct json_object *wish;
};

static void spawn_free(struct spawn *spawn)
{
	json_object_put(spawn->wish);
	free(spawn);
}

static void refuse(struct effect *effect, const char *why)
{
	AUTO_JSON struct json_object *body = json_object_new_object();
	AUTO_BUF struct buf text = BUF_INIT;

	json_set_str(body, "message", why);
	json_write(&text, body);
	effect_answer(effect, false, buf_str(&text));
}

/* NULL: it may. What to do instead stands in each (X6). Caller frees. */
static char *refusal_by_limits(const struct agent_record *agent)
{
	const struct run *run = agent->run;
	int64_t depth = settings_i64(run->settings, OPT_MAX_DEPTH);
	int64_t children = settings_i64(run->settings, OPT_MAX_CHILDREN);
	int64_t total = settings_i64(run->settings, OPT_MAX_AGENTS);

	if (run->stopping)
		return mem_strdup("the run is being stopped: report what you have");
	if (agent->family.depth >= depth)
		return mem_printf("agents may start agents %lld levels deep, and this is the last: "
				  "do it yourself",
				  (long long)depth);
	if ((int64_t)(count_live(agent) + agent->family.asked) >= children)
		return mem_printf("%lld agents that you started are not done, and that is the "
				  "limit: wait for one or stop one first",
				  (long long)children);
	if ((int64_t)(run->agents.count + agent->family.asked) >= total)
		return mem_printf(
			"the run has had %zu agents, and %lld is its limit (--max-agents): "
			"do it yourself",
			run->agents.count, (long long)total);
	return NULL;
}

static char *refusal_by_shape(const struct agent_record *agent, struct json_object *wish)
{
	const char *task = json_str(wish, "task", "");
	const char *isolate = json_str(wish, "isolate", "worktree");

	if (!task[strspn(task, " \t\r\n")])
		return mem_strdup("'task' is empty");
	if (strlen(task) > TASK_BYTES)
		return mem_printf(
			"'task' has more than %d bytes: name files instead of copying them",
			TASK_BYTES);
	if (strcmp(isolate, "worktree") != 0 && strcmp(isolate, "view") != 0)
		return mem_strdup("'isolate' is neither \"worktree\" nor \"view\"");
	if (json_has(wish, "max_cost") && !agent->model->price.known)
		return mem_strdup("prices are not known here: use 'max_tokens'");
	if (json_i64(wish, "max_rounds", 0) < 0 || json_i64(wish, "max_tokens", 0) < 0 ||
	    json_double(wish, "max_cost", 0) < 0)
		return mem_strdup("a limit is below 0");
	return fork_refusal(agent, wish);
}

/* A worktree of its own is for one that writes, and nobody gives a right that he has not. */
static bool wants_own_tree(const struct agent_record *agent, const struct role *role,
			   struct json_object *wish)
{
	const char *isolate = json_str(wish, "isolate", role->write ? "worktree" : "view");

	return strcmp(isolate, "worktree") == 0 && role->write && agent->role->write &&
	       !agent->view && agent->worktree_made;
}

static const char *wished_role(const struct agent_record *agent, struct json_object *wish)
{
	if (fork_is_wished(wish))
		return agent->role->name;
	return json_str(wish, "role", "worker");
}

static struct agent_record *queue_child(struct agent_record *agent, struct json_object *record,
					struct err *err)
{
	struct json_object *wish = json_obj(record, "wish");
	struct agent_spec spec = {
		.key = json_str(record, "key", ""),
		.role = wished_role(agent, wish),
		.task = json_str(wish, "task", ""),
		.base = json_str(record, "base", agent->base),
		.view = json_str(record, "base", NULL) ? NULL
			: agent->view		       ? agent->view
						       : agent->worktree,
		.foreign_role = agent->family.foreign_role,
		.output_schema = json_obj(wish, "output_schema"),
		.max_rounds = json_i64(wish, "max_rounds", 0),
		.family = {.spawner = agent,
			   .depth = agent->family.depth + 1,
			   .max_tokens = json_i64(wish, "max_tokens", 0),
			   .max_cost = json_double(wish, "max_cost", 0)},
	};

	fork_mold(agent, record, &spec);
	return agent_queue(agent->run, &spec, err);
}

/* The record is written when the name is known, and before anything is started. */
static void spawn_now(struct spawn *spawn, const char *base)
{
	struct agent_record *agent = spawn->agent;
	AUTO_JSON struct json_object *record = json_object_new_object();
	AUTO_JSON struct json_object *body = json_object_new_object();
	AUTO_BUF struct buf text = BUF_INIT;
	struct err err = ERR_INIT;
	const char *call = effect_call(spawn->effect);
	AUTO_FREE char *key =
		mem_printf("%s/%lld/%s", agent->name, (long long)agent->generation, call);

	json_set_str(record, "key", key);
	json_set_i64(record, "generation", agent->generation);
	json_set_str(record, "base", base);
	json_set(record, "wish", json_object_get(spawn->wish));
	struct agent_record *child = queue_child(agent, record, &err);
	if (!child) {
		refuse(spawn->effect, err.message);
		return;
	}
	journal_add(agent->run->journal, RECORD_AGENT_ASKED,
		    "agent:s generation:i call:s child:s key:s base:s wish:j", agent->name,
		    agent->generation, call, child->name, key, base, spawn->wish);
	json_set_str(body, "agent", child->name);
	json_write(&text, body);
	effect_answer(spawn->effect, true, buf_str(&text));
}

static void on_base(struct json_object *answer, const struct err *failure, void *arg)
{
	struct spawn *spawn = arg;
	struct agent_record *agent = spawn->agent;
	struct run *run = agent->run;

	agent->family.asked--;
	if (failure) {
		AUTO_FREE char *why = mem_printf("your worktree as it stands could not be made the "
						 "base of another one: %s",
						 failure->message);
		refuse(spawn->effect, why);
	} else if (run->stopping || agent->state == AGENT_COLLECTING) {
		refuse(spawn->effect, "too late: you are ending");
	} else {
		spawn_now(spawn, json_str(answer, "commit", NULL));
	}
	spawn_free(spawn);
	if (agent->state == AGENT_COLLECTING)
		collect_start(agent);
	agents_pump(run);
}

static void ask_base(struct spawn *spawn)
{
	struct agent_record *agent = spawn->agent;
	AUTO_JSON struct json_object *request = agent_git_entry(agent);
	AUTO_FREE char *message =
		mem_printf("The work of %s so far, where another agent begins", agent->name);

	json_set_str(request, "message", message);
	json_set(request, "touched", json_object_get(json_arr(spawn->wish, "touched")));
	agent->family.asked++;
	git_client_call(agent->run->git_client, "fork_base", request, on_base, spawn);
}

int subagents_on_spawn(struct agent_record *agent, const struct frame *frame, struct err *err)
{
	AUTO_JSON struct json_object *wish = NULL;
	struct effect *effect = NULL;
	struct role *role = NULL;
	struct err why = ERR_INIT;

	if (agent_frame_body(frame, &wish, err) < 0)
		return -1;
	int fresh = effect_begin(agent, frame, &effect, err);
	if (fresh <= 0)
		return fresh;
	AUTO_FREE char *refusal = refusal_by_limits(agent);
	if (!refusal)
		refusal = refusal_by_shape(agent, wish);
	if (!refusal &&
	    role_load(wished_role(agent, wish),
		      agent->family.foreign_role ? NULL : agent->run->toplevel, &role, &why) < 0)
		refusal = mem_strdup(why.message);
	if (refusal) {
		refuse(effect, refusal);
		return 0;
	}
	struct spawn *spawn = mem_alloc(sizeof(*spawn));
	*spawn = (struct spawn){.effect = effect, .agent = agent, .wish = json_object_get(wish)};
	bool own_tree = wants_own_tree(agent, role, wish);
	role_free(role);
	if (own_tree) {
		ask_base(spawn);
		return 0;
	}
	spawn_now(spawn, NULL);
	spawn_free(spawn);
	agents_pump(agent->run);
	return 0;
}

/* ---- of a run that goes on ---- */

bool subagents_drop_orphan(struct agent_record *agent)
{
	const struct agent_record *spawner = agent->family.spawner;

	if (!spawner || (agent->past && agent->past->spawned) ||
	    (spawner->state != AGENT_COLLECTING && spawner->state != AGENT_DONE))
		return false;
	agent_stop(agent, STOPPED_REASON);
	return true;
}

static bool is_queued(const struct run *run, const char *key)
{
	for (size_t i = 0; i < run->agents.count; i++) {
		if (strcmp(run->agents.list[i]->key, key) == 0)
			return true;
	}
	return false;
}

void subagents_restore(struct agent_record *agent)
{
	const struct replay *replay = agent->run->replay;
	struct err err = ERR_INIT;

	for (size_t i = 0; replay && i < replay->n_agents; i++) {
		const struct replay_agent *past = replay->agents[i];
		if (!past->asked || strcmp(json_str(past->asked, "agent", ""), agent->name) != 0 ||
		    is_queued(agent->run, past->key))
			continue;
		struct agent_record *child = queue_child(agent, past->asked, &err);
		if (!child)
			journal_add(agent->run->journal, RECORD_AGENT_WARNING, "agent:s message:s",
				    agent->name, err.message);
		else
			child->family.told = past->told;
	}
}

/* ---- messages ---- */

static struct agent_record *find_child(const struct agent_record *agent, const char *name)
{
	const struct agent_pool *pool = &agent->run->agents;

	for (size_t i = 0; i < pool->count; i++) {
		if (is_child_of(pool->list[i], agent) && strcmp(pool->list[i]->name, name) == 0)
			return pool->list[i];
	}
	return NULL;
}

static void answer_capacity(const struct agent_record *agent, struct effect *effect)
{
	const struct settings *s = agent->run->settings;
	AUTO_JSON struct json_object *body = json_object_new_object();
	AUTO_BUF struct buf text = BUF_INIT;

	json_set_i64(body, "children", (int64_t)count_live(agent));
	json_set_i64(body, "max_children", settings_i64(s, OPT_MAX_CHILDREN));
	json_set_i64(body, "agents", (int64_t)agent->run->agents.count);
	json_set_i64(body, "max_agents", settings_i64(s, OPT_MAX_AGENTS));
	json_set_i64(body, "at_once", settings_i64(s, OPT_AGENTS));
	json_set_i64(body, "depth", agent->family.depth);
	json_set_i64(body, "max_depth", settings_i64(s, OPT_MAX_DEPTH));
	json_write(&text, body);
	effect_answer(effect, true, buf_str(&text));
}

/* To one that it started and that can still hear. */
static void act_on_child(struct agent_record *agent, const char *action, const char *to,
			 struct json_object *body, struct effect *effect)
{
	struct agent_record *child = find_child(agent, to);
	const char *text = json_str(body, "text", "");
	AUTO_FREE char *why = NULL;

	if (!child)
		why = mem_printf("'%.40s' is no agent that you started", to);
	else if (child->state == AGENT_DONE)
		why = mem_printf("%s has ended already (%s)", child->name,
				 outcome_name(child->status));
	else if (strcmp(action, "stop") == 0)
		agent_stop(child, *text ? text : "the agent that started it wants no more of it");
	else if (!agent_say(child, agent->name, text))
		why = mem_printf("%s does not work yet: say it later", child->name);
	if (why) {
		refuse(effect, why);
		return;
	}
	journal_add(agent->run->journal, RECORD_AGENT_MESSAGE,
		    "agent:s generation:i call:s action:s to:s text:s", agent->name,
		    agent->generation, effect_call(effect), action, to, text);
	effect_answer(effect, true, "{}");
}

int subagents_on_message(struct agent_record *agent, const struct frame *frame, struct err *err)
{
	const char *action = json_str(frame->header, "action", "");
	AUTO_JSON struct json_object *body = NULL;
	struct effect *effect = NULL;

	if (agent_frame_body(frame, &body, err) < 0)
		return -1;
	if (strcmp(action, "say") != 0 && strcmp(action, "stop") != 0 &&
	    strcmp(action, "capacity") != 0)
		return err_set(err, ERR_INVALID, "unknown action '%.40s' of a message", action);
	int fresh = effect_begin(agent, frame, &effect, err);
	if (fresh <= 0)
		return fresh;
	if (strcmp(action, "capacity") == 0)
		answer_capacity(agent, effect);
	else
		act_on_child(agent, action, json_str(frame->header, "to", ""), body, effect);
	return 0;
}
