/*
 * effect.c - one way to ask for all effects: report, checkpoint, hook, reset.
 */
#include "agent/effect.h"

#include <inttypes.h>

#include "agent/state.h"
#include "base/json.h"
#include "base/memory.h"

char *effect_key(const struct agent *a, const char *what, int64_t number)
{
	if (!a->resumes)
		return mem_printf("%s-%" PRId64, what, number);
	return mem_printf("%s-r%" PRId64 "-%" PRId64, what, a->resumes, number);
}

void effect_send(struct agent *a, const struct effect_ask *ask)
{
	AUTO_BUF struct buf fields = BUF_INIT;

	buf_addf(&fields, "\"generation\":%" PRId64 ",\"call\":", a->settings->generation);
	json_write_cstr(&fields, ask->call);
	if (ask->more)
		buf_adds(&fields, ask->more);
	/* Expected before it is sent: the answer may come within the send. */
	waiter_expect_ack(a->waiter, ask->kind, ask->call);
	channel_send(a->channel, ask->type, buf_str(&fields), ask->body, ask->len);
}

int effect_run(struct agent *a, const struct effect_ask *ask, bool *ret_ok, const char **ret_answer,
	       struct err *err)
{
	effect_send(a, ask);
	while (!waiter_acked(a->waiter, ask->kind, ret_ok, ret_answer))
		if (wait_poll(a->waiter, NULL, 0, INT64_MAX, err) < 0)
			return -1;
	return 0;
}
