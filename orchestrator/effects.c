/*
 * effects.c - the keys of one agent's effects and what was answered to them. Runs in the parent.
 *
 * A list and no table: an agent asks for a report and a checkpoint now and then, and its keys are
 * few. Entries are never freed before the agent, because answers wait for the journal by pointer
 * and a process that is gone may be followed by one that asks again.
 */
#include "orchestrator/effects.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/memory.h"
#include "orchestrator/agents.h"
#include "orchestrator/run.h"

/* Of one generation: a working one makes some hundred. Not of the agent: a job may have generations without end. */
#define EFFECTS_MAX 10000

struct effect {
	struct agent_record *agent;
	enum frame_type type;
	int64_t generation;
	char *call;
	bool answered, ok;
	char *body;
	struct effect *next;
};

/* Runs after a commit. The agent may be gone by then: what was promised stands in the journal. */
static void on_durable(void *arg)
{
	const struct effect *effect = arg;
	const struct agent_record *agent = effect->agent;
	AUTO_BUF struct buf fields = BUF_INIT;

	if (!agent->child || !agent->child->channel)
		return;
	buf_addf(&fields, "\"ok\":%s,\"call\":", effect->ok ? "true" : "false");
	json_write_cstr(&fields, effect->call);
	channel_send(agent->child->channel, FRAME_ACK, buf_str(&fields), effect->body,
		     strlen(effect->body));
}

static struct effect *effect_find(const struct effects *effects, int64_t generation,
				  const char *call)
{
	for (struct effect *e = effects->first; e; e = e->next) {
		if (e->generation == generation && strcmp(e->call, call) == 0)
			return e;
	}
	return NULL;
}

static struct effect *effect_add(struct agent_record *agent, enum frame_type type,
				 int64_t generation, const char *call)
{
	struct effect *effect = mem_alloc(sizeof(*effect));

	effect->agent = agent;
	effect->type = type;
	effect->generation = generation;
	effect->call = mem_strdup(call);
	effect->next = agent->effects.first;
	agent->effects.first = effect;
	return effect;
}

int effect_begin(struct agent_record *agent, const struct frame *frame, struct effect **ret,
		 struct err *err)
{
	int64_t generation = json_i64(frame->header, "generation", 0);
	const char *call = json_str(frame->header, "call", "");

	if (generation != agent->generation)
		return err_set(err, ERR_INVALID, "a '%s' of another generation",
			       frame_name(frame->type));
	struct effect *known = effect_find(&agent->effects, generation, call);
	if (known && known->type != frame->type)
		return err_set(err, ERR_INVALID, "a '%s' under the key of a '%s'",
			       frame_name(frame->type), frame_name(known->type));
	if (known) {
		/* Not yet answered: the one answer that is to come serves both. */
		if (known->answered)
			journal_defer(agent->run->journal, on_durable, known);
		return 0;
	}
	if (agent->effects.generation != generation) {
		agent->effects.generation = generation;
		agent->effects.count = 0;
	}
	if (agent->effects.count == EFFECTS_MAX)
		return err_set(err, ERR_TOO_LARGE, "it asked for more than %d effects",
			       EFFECTS_MAX);
	*ret = effect_add(agent, frame->type, generation, call);
	agent->effects.count++;
	agent->effects.open++;
	return 1;
}

void effect_restore(struct agent_record *agent, enum frame_type type, int64_t generation,
		    const char *call, bool ok, const char *body)
{
	if (effect_find(&agent->effects, generation, call))
		return;
	struct effect *effect = effect_add(agent, type, generation, call);
	effect->answered = true;
	effect->ok = ok;
	effect->body = mem_strdup(body);
}

void effect_answer(struct effect *effect, bool ok, const char *body)
{
	effect->answered = true;
	effect->ok = ok;
	effect->body = mem_strdup(body);
	effect->agent->effects.open--;
	journal_defer(effect->agent->run->journal, on_durable, effect);
}

const char *effect_call(const struct effect *effect)
{
	return effect->call;
}

struct agent_record *effect_agent(const struct effect *effect)
{
	return effect->agent;
}

void effects_release(struct effects *effects)
{
	while (effects->first) {
		struct effect *effect = effects->first;

		effects->first = effect->next;
		free(effect->call);
		free(effect->body);
		free(effect);
	}
	*effects = (struct effects){0};
}
