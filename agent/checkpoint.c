/*
 * checkpoint.c - asks for checkpoints; see checkpoint.h for when.
 *
 * A checkpoint is an effect at the parent with a key, as a report is, but nothing depends on its
 * answer: it is looked at when the next one is due. One that failed is told to the user once (a
 * worktree above the size limit stays so) and tried again after the same time.
 */
#include "agent/checkpoint.h"

#include <inttypes.h>

#include "agent/effect.h"
#include "agent/events.h"
#include "agent/state.h"
#include "base/clock.h"
#include "base/memory.h"

#define TOUCHED_BYTES (48 << 10) /* the frame's body has 64 KiB */

void checkpoint_init(struct agent *a)
{
	a->checkpoints.asked_ms = clock_mono_ms();
}

void checkpoint_changed(struct agent *a)
{
	a->checkpoints.changed = true;
}

/* The names matter only for ignored files, so a list that is too long may lose its end. */
static void add_touched(const struct agent *a, struct json_object *body)
{
	struct json_object *list = json_object_new_array();
	size_t n = 0, bytes = 0;
	const char *const *touched =
		a->toolbox.context ? tool_context_touched(a->toolbox.context, &n) : NULL;

	for (size_t i = 0; i < n; i++) {
		/* Six bytes for each, the most that JSON makes of one. */
		bytes += strlen(touched[i]) * 6 + 3;
		if (bytes > TOUCHED_BYTES)
			break;
		json_object_array_add(list, json_object_new_string(touched[i]));
	}
	json_set(body, "touched", list);
}

/* False while the last one is under way. */
static bool take_answer(struct agent *a)
{
	struct checkpoints *c = &a->checkpoints;
	const char *body = "";
	bool ok = false;

	if (!c->open)
		return true;
	if (!waiter_acked(a->waiter, ACK_CHECKPOINT, &ok, &body))
		return false;
	c->open = false;
	if (ok)
		return true;
	c->changed = true;
	if (!c->warned)
		event_warning(a->channel, "a checkpoint failed: %.300s", body);
	c->warned = true;
	return true;
}

void checkpoint_maybe(struct agent *a)
{
	struct checkpoints *c = &a->checkpoints;
	int64_t every = a->settings->checkpoint_ms, now = clock_mono_ms();
	AUTO_JSON struct json_object *body = NULL;
	AUTO_BUF struct buf text = BUF_INIT;

	if (a->settings->read_only || every <= 0 || !take_answer(a) || !c->changed ||
	    now - c->asked_ms < every)
		return;
	body = json_object_new_object();
	AUTO_FREE char *reason = mem_printf("checkpoint of round %" PRId64, a->conversation.round);
	json_set_str(body, "reason", reason);
	add_touched(a, body);
	json_write(&text, body);
	AUTO_FREE char *key = effect_key(a, "checkpoint", ++c->count);
	struct effect_ask ask = {
		.type = FRAME_CHECKPOINT,
		.kind = ACK_CHECKPOINT,
		.call = key,
		.body = text.data,
		.len = text.len,
	};
	effect_send(a, &ask);
	c->asked_ms = now;
	c->open = true;
	c->changed = false;
}
