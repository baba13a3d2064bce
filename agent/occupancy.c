/*
 * occupancy.c - thresholds that were passed, as events and notes.
 *
 * A threshold is told when it is passed upwards. A compaction takes the window below it, and then it may be
 * told again; a window that wavers round it tells it once.
 */
#include "agent/occupancy.h"

#include "agent/events.h"
#include "agent/prompt.h"
#include "agent/state.h"
#include "base/clock.h"
#include "base/memory.h"

#define REARM 10 /* per cent of effective below a threshold at which it may be told again */

void occupancy_start(struct agent *a)
{
	const int64_t *by = a->ledger.category;
	struct event_budget_facts facts = {
		.budget = &a->budget,
		.system = by[LEDGER_SYSTEM],
		.tools = by[LEDGER_TOOLS],
	};

	facts.working_space = budget_working_space(&a->budget, facts.system + facts.tools);
	event_budget(a->channel, &facts);
}

/* True once per passage. */
static bool passes(struct agent *a, bool *told, int64_t threshold, int64_t used)
{
	if (*told) {
		*told = used > threshold - a->budget.effective * REARM / 100;
		return false;
	}
	*told = threshold > 0 && used >= threshold;
	return *told;
}

/* The next step, for the user. */
static void warn(struct agent *a, int64_t used, bool again)
{
	const struct window_budget *b = &a->budget;
	const struct agent_settings *s = a->settings;
	AUTO_BUF struct buf next = BUF_INIT;

	if (b->automatic && a->breaker.state == BREAKER_CLOSED)
		buf_addf(&next, "it is compacted at %lld", (long long)b->compact);
	else if (s->knobs.compact_any && a->breaker.state == BREAKER_CLOSED)
		buf_addf(&next,
			 "the agent is asked to report at %lld; 'baton compact %s/%s' makes room",
			 (long long)b->closing, s->run, s->agent);
	else
		buf_addf(&next, "the agent is asked to report at %lld", (long long)b->closing);
	event_warning(a->channel, "%s%lld of %lld tokens of the context are used; %s",
		      again ? "once more: " : "", (long long)used, (long long)b->effective,
		      buf_str(&next));
}

void occupancy_look(struct agent *a, int64_t used)
{
	struct occupancy *o = &a->occupancy;

	if (passes(a, &o->reminded, a->budget.reminder, used))
		event_reminder(a->channel, used, a->budget.reminder, a->budget.effective);
	if (passes(a, &o->warned, a->budget.warning, used))
		warn(a, used, false);
	else if (!a->budget.automatic && passes(a, &o->repeated, a->budget.repeated, used))
		warn(a, used, true);
}

void occupancy_sent(struct agent *a)
{
	prefix_sent(&a->prefix, &a->view, a->system, a->toolbox.specs, a->toolbox.n_specs,
		    clock_mono_ms());
}

void occupancy_answered(struct agent *a, const struct model_usage *usage)
{
	struct prefix_break broken;
	struct event_cache_facts facts = {.broken = &broken};

	if (!prefix_answered(&a->prefix, &a->view, a->system, a->toolbox.specs, a->toolbox.n_specs,
			     usage, &broken))
		return;
	if (broken.part == PREFIX_MESSAGE)
		facts.round = a->view.list[broken.index]->round;
	event_cache_break(a->channel, &facts);
}

static int marks_passed(const struct agent *a, int64_t used)
{
	int n = 0;

	while (n < BUDGET_MARKS && used >= a->budget.marks[n])
		n++;
	return n;
}

void occupancy_add_note(struct agent *a, struct message *m)
{
	struct occupancy *o = &a->occupancy;
	int64_t used = ledger_used(&a->ledger);
	int passed = marks_passed(a, used);
	AUTO_FREE char *text = NULL;

	if (!a->settings->knobs.budget_notes)
		return;
	/* What an epoch begins with is not news. */
	if (o->noted_epoch != a->view.epoch) {
		o->noted_epoch = a->view.epoch;
		o->noted = passed;
	}
	if (passed <= o->noted)
		return;
	o->noted = passed;
	text = mem_printf(NOTE_BUDGET, passed * 100 / (BUDGET_MARKS + 1), (long long)used,
			  (long long)(a->budget.effective - used), (long long)a->conversation.round,
			  (long long)a->settings->max_rounds);
	message_add_text(m, ORIGIN_NUDGE, text, strlen(text));
}
