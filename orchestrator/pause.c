/*
 * pause.c - see pause.h. Runs in the parent.
 */
#include "orchestrator/pause.h"

#include "base/clock.h"
#include "orchestrator/calls.h"
#include "orchestrator/run.h"

static const char *why_name(enum pause_why why)
{
	return why == PAUSE_PERSON ? "person" : "budget";
}

bool agent_is_paused(const struct agent_record *agent)
{
	if (agent->run->pause.why & PAUSE_PERSON)
		return true;
	while (agent && !agent->paused)
		agent = agent->family.spawner;
	return agent != NULL;
}

bool run_is_paused(const struct run *run)
{
	return run->pause.why != 0;
}

int64_t run_paused_ms(const struct run *run)
{
	const struct run_pause *p = &run->pause;

	return p->total_ms + (p->why & PAUSE_PERSON ? clock_mono_ms() - p->since_ms : 0);
}

bool run_pause(struct run *run, enum pause_why why, const char *reason)
{
	if (run->pause.why & why)
		return false;
	if (why == PAUSE_PERSON)
		run->pause.since_ms = clock_mono_ms();
	run->pause.why |= why;
	journal_add(run->journal, RECORD_RUN_PAUSED, "why:s reason:s", why_name(why), reason);
	return true;
}

/* What waited here would look idle to the watchdog that looks next. */
static void go_on(struct run *run)
{
	int64_t now = clock_mono_ms();

	for (size_t i = 0; i < run->agents.count; i++)
		run->agents.list[i]->last_progress_ms = now;
	calls_retry_held(run);
	agents_pump(run);
}

bool run_unpause(struct run *run, enum pause_why why)
{
	if (!(run->pause.why & why))
		return false;
	run->pause.total_ms = run_paused_ms(run);
	run->pause.since_ms = clock_mono_ms();
	run->pause.why &= ~(unsigned)why;
	journal_add(run->journal, RECORD_RUN_CONTINUED, "why:s", why_name(why));
	go_on(run);
	return true;
}

bool agent_pause(struct agent_record *agent)
{
	if (agent->paused)
		return false;
	agent->paused = true;
	journal_add(agent->run->journal, RECORD_AGENT_PAUSED, "agent:s", agent->name);
	return true;
}

bool agent_unpause(struct agent_record *agent)
{
	if (!agent->paused)
		return false;
	agent->paused = false;
	journal_add(agent->run->journal, RECORD_AGENT_CONTINUED, "agent:s", agent->name);
	go_on(agent->run);
	return true;
}
