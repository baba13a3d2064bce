/*
 * room.c - runs the ladder before a request.
 *
 * First of all that a request needs, so that one large result does not force an end that room would avert.
 *
 *   wish of a person    compacted now, or undone (H6, X4)
 *   above threshold     compacted now; a pass of the notes that is under way is waited for while there is
 *                       room, since the compaction is free with it
 *   above the price's   the same, at a natural break if one comes soon, and only if it pays for the rounds
 *                       that are likely to come
 *   natural break       above proactive_pct (H22), with a focus by rule
 */
#include "agent/room.h"

#include "agent/compact_review.h"
#include "agent/context/pace.h"
#include "agent/context/rungs.h"
#include "agent/events.h"
#include "agent/memory_show.h"
#include "base/clock.h"
#include "base/memory.h"

#define SUMMARY_TOKENS 3000 /* output that a summary is taken to need */
#define LEAST_SHARE    25   /* per cent of the threshold under which prices never compact */
#define OVERDUE	       115  /* per cent of the price's threshold: no break is waited for any more */
#define ROUNDS_KNOWN   8    /* until the growth of a round is known well enough */
#define EARLY_REST     20   /* rounds after an early compaction that failed */

/* H15: one event a rung. What passed the validator was another list (I2). */
static void on_done(void *arg, const struct rung *rung, const struct epoch_done *done,
		    int64_t before, int64_t after)
{
	struct agent *a = arg;
	struct event_compact_facts facts = {
		.trigger = rung->name,
		.before = before,
		.after = after,
		.messages = done->messages,
		.cache_lost = done->cache_lost,
		.reason = "",
	};

	a->validator = (struct validator){.n = 0};
	event_compact(a->channel, &facts);
}

static struct rung_input rung_input(struct agent *a)
{
	return (struct rung_input){
		.view = &a->view,
		.conversation = &a->conversation,
		.model = a->settings->model,
		.knobs = &a->settings->knobs,
		.rounds_left = a->settings->max_rounds - fork_own_rounds(a),
		.idle_ms = a->asked_ms ? clock_mono_ms() - a->asked_ms : 0,
		.ledger = &a->ledger,
		.budget = &a->budget,
		.offload = &a->offload,
		.on_done = on_done,
		.arg = a,
	};
}

/* The rungs that need no model call. */
static int run_rungs(struct agent *a, struct err *err)
{
	struct rung_input in = rung_input(a);
	int64_t freed = 0;

	view_sync(&a->view, &a->conversation);
	if (rungs_run(RUNG_REQUEST, &in, room_threshold(a), &freed, err) < 0)
		return -1;
	memory_show_again(a);
	return 0;
}

/* T9: what is old in the tail fades when a compaction ended the epoch anyway. */
static int join_decay(struct agent *a, int64_t epoch, struct err *err)
{
	struct rung_input in = rung_input(a);
	int64_t freed = 0;

	in.epoch = epoch;
	return rungs_join(&in, &freed, err);
}

/* ---- the threshold ---- */

static struct pace_input pace_of(const struct agent *a)
{
	int64_t fixed = a->ledger.category[LEDGER_SYSTEM] + a->ledger.category[LEDGER_TOOLS];
	int64_t base = a->compact_base;
	int64_t rounds = a->conversation.round - (base ? a->compact_round : 0);

	/* Before the first compaction: what one would leave. */
	if (!base)
		base = fixed + a->conversation.messages[0]->estimate + SUMMARY_TOKENS +
		       a->budget.compact / 10;
	return (struct pace_input){
		.model = a->settings->model,
		.asked = a->settings->compact_model,
		.base = base,
		.growth = rounds >= ROUNDS_KNOWN ? MAX(ledger_used(&a->ledger) - base, 0) / rounds
						 : 0,
		.summary = SUMMARY_TOKENS,
		.least = a->budget.compact * LEAST_SHARE / 100,
		.threshold = a->budget.compact,
	};
}

int64_t room_threshold(const struct agent *a)
{
	const struct context_knobs *k = &a->settings->knobs;

	if (a->compact_hold)
		return a->budget.closing;
	if (!k->compact_price || k->compact_pct || !a->conversation.n)
		return a->budget.compact;
	struct pace_input in = pace_of(a);
	return pace_threshold(&in);
}

/* Nobody knows how long the work lasts: as long again as it has lasted, at most to its limit. */
static int64_t rounds_to_come(const struct agent *a)
{
	return MIN(a->settings->max_rounds - fork_own_rounds(a), a->conversation.round);
}

/* ---- compacting ---- */

/* A summary that a person or the prices wanted and that failed costs nothing but itself. */
static int compact_with_focus(struct agent *a, enum compact_trigger trigger, struct err *err)
{
	AUTO_BUF struct buf focus = BUF_INIT;
	struct compact_request request = {.trigger = trigger};
	struct err why = ERR_INIT;
	int rc;

	if (trigger == COMPACT_BREAK) {
		breaks_focus(a, &focus);
		request.focus = focus.len ? buf_str(&focus) : NULL;
	}
	rc = compact_now(a, &request, &why, err);
	if (rc > 0 && (trigger == COMPACT_PRICE || trigger == COMPACT_BREAK))
		a->early_rest = a->conversation.round + EARLY_REST;
	return rc < 0 ? -1 : 0;
}

/* R1: another compaction in this generation would be one too many, and a reset is to be had. */
static bool too_many(const struct agent *a)
{
	int64_t most = a->settings->knobs.max_compactions;

	return most && a->boundaries >= most && reset_possible(a);
}

/* Which reason to compact there is now; false: none. */
static bool choose_trigger(struct agent *a, enum compact_trigger *ret)
{
	int64_t used = ledger_used(&a->ledger), cheap = room_threshold(a);
	bool at_break;

	/* The notes are nearly there, and then it needs no call. */
	if (session_notes_pending(a) && used < a->budget.closing &&
	    a->conversation.round - a->notes.call_round <= 2)
		return false;
	at_break = breaks_take(a);
	if (used > MIN(cheap, a->budget.compact) && too_many(a)) {
		a->resets.due = true;
		return false;
	}
	if (used > (a->compact_hold ? cheap : a->budget.compact)) {
		*ret = COMPACT_THRESHOLD;
		return true;
	}
	if (a->conversation.round < a->early_rest)
		return false;
	if (at_break && a->budget.proactive && used > a->budget.proactive) {
		*ret = COMPACT_BREAK;
		return true;
	}
	struct pace_input in = pace_of(a);
	*ret = COMPACT_PRICE;
	return used > cheap && (at_break || used * 100 > cheap * OVERDUE) &&
	       pace_pays(&in, used, rounds_to_come(a));
}

static int compact_if_wanted(struct agent *a, struct err *err)
{
	enum compact_trigger trigger;

	if (!choose_trigger(a, &trigger))
		return 0;
	if (trigger == COMPACT_THRESHOLD)
		breaker_wanted(&a->breaker, a->conversation.round);
	return compact_with_focus(a, trigger, err);
}

/* ---- a person's wish ---- */

static int take_wish(struct agent *a, struct err *err)
{
	AUTO_JSON struct json_object *wish = waiter_take_compact(a->waiter);
	struct compact_request request = {.trigger = COMPACT_MANUAL};
	struct err why = ERR_INIT;
	const char *mode;
	int rc;

	if (!wish)
		return 0;
	if (json_flag(wish, "undo", false)) {
		if (compact_undo(a, &why) > 0)
			event_warning(a->channel, "not undone: %s", why.message);
		return 0;
	}
	if (compact_is_word(wish)) {
		event_warning(a->channel, "no compaction waits for a word any more");
		return 0;
	}
	mode = json_str(wish, "mode", "");
	request.focus = json_str(wish, "focus", NULL);
	request.pivot = json_i64(wish, "round", 0);
	request.mode = !strcmp(mode, "from")	? COMPACT_FROM
		       : !strcmp(mode, "up_to") ? COMPACT_UP_TO
						: COMPACT_BY_RULE;
	rc = compact_now(a, &request, &why, err);
	if (rc > 0)
		event_warning(a->channel, "not compacted: %s", why.message);
	return rc < 0 ? -1 : 0;
}

/* An alarm, once (H15). */
void room_tell_breaker(struct agent *a)
{
	if (a->breaker.state != BREAKER_OPEN || a->breaker.told)
		return;
	a->breaker.told = true;
	a->counts.reset_wanted++;
	event_warning(a->channel, "compaction is given up (%s): a reset is wanted", a->breaker.why);
	event_alarm(a->channel, "breaker", a->breaker.why);
}

static int make(struct agent *a, struct err *err)
{
	const struct context_knobs *k = &a->settings->knobs;

	if (a->forced || !k->compact_any || waiter_report_wanted(a->waiter, NULL))
		return 0;
	if (a->conversation.round && take_wish(a, err) < 0)
		return -1;
	if (!k->compact_auto)
		return 0;
	view_sync(&a->view, &a->conversation);
	session_notes_tick(a, room_threshold(a));
	int64_t epoch = a->view.epoch;
	if (run_rungs(a, err) < 0 || compact_if_wanted(a, err) < 0)
		return -1;
	return join_decay(a, epoch, err);
}

int room_make(struct agent *a, struct err *err)
{
	int rc = make(a, err);

	room_tell_breaker(a);
	return rc;
}
