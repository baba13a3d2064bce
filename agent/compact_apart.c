/*
 * compact_apart.c - asks another model than the agent's own for a summary (H16).
 *
 *   call:   a system prompt of its own | the stretch as text, "summarise"
 *
 * Another model cannot read the agent's cached prefix, so it gets no more than it needs: what is to be
 * replaced, without thinking, each block bounded. Tries, checks and what follows a failure are the same as
 * of a call on the prefix (compact_call.c). What does not fit its window is left out from the oldest
 * round on, the opening excepted (H7).
 */
#include <stdio.h>

#include "agent/ask.h"
#include "agent/compact_job.h"
#include "agent/context/retell.h"
#include "agent/context/summary.h"
#include "base/memory.h"

#define BLOCK_BYTES  4000
#define SHRINK_TRIES 3	  /* H7 */
#define SHRINK_KEEP  80	  /* per cent of the room, after each of them */
#define WISH_TOKENS  2000 /* of the words that ask */
#define MARGIN	     8	  /* its tokenizer is not ours: an eighth of its window stays free */
#define OUTPUT_SHARE 4	  /* of its window, at most */

struct apart {
	struct compact_job *job;
	const struct model *model;
	int64_t output; /* the most that it may write */
	int64_t room;	/* tokens of the stretch */
	const char *wrong;
};

static int64_t tokens_of(const struct agent *a, struct message *m)
{
	AUTO_BUF struct buf text = BUF_INIT;

	retell_messages(&m, 1, BLOCK_BYTES, &text);
	return ledger_estimate_text(&a->ledger, buf_str(&text), text.len);
}

/* The first message behind the opening that goes into the call; job->tail: not one round fits. */
static size_t fit(const struct apart *ap)
{
	const struct compact_job *job = ap->job;
	const struct view *view = &job->a->view;
	size_t least = MAX(job->from, (size_t)1), from = job->tail;
	int64_t used = job->from ? 0 : tokens_of(job->a, view->list[0]);

	for (size_t i = job->tail; i-- > least;) {
		used += tokens_of(job->a, view->list[i]);
		if (used > ap->room)
			break;
		if (view->list[i]->role == MESSAGE_ASSISTANT || i == least)
			from = i;
	}
	return from;
}

static struct message *make_request(const struct apart *ap, size_t from)
{
	const struct compact_job *job = ap->job;
	struct message *const *list = job->a->view.list;
	AUTO_BUF struct buf text = BUF_INIT;
	struct summary_wish wish = {
		.focus = job->focus.len ? buf_str(&job->focus) : NULL,
		.wrong = ap->wrong,
	};

	if (!job->from)
		retell_messages(list, 1, BLOCK_BYTES, &text);
	if (from > MAX(job->from, (size_t)1))
		buf_adds(&text, "[... older rounds are left out ...]\n");
	retell_messages(list + from, job->tail - from, BLOCK_BYTES, &text);
	wish.transcript = buf_str(&text);
	wish.transcript_len = text.len;
	return summary_request(&wish);
}

static int make_client(struct agent *a, struct err *err)
{
	struct request_params params = {.system = summary_system, .temperature = -1};

	if (a->compact_client)
		return 0;
	return client_new(a->settings->compact_model, &params, &a->compact_client, err);
}

/* 0: job->summary; 1: job->why and the class; -1: stopped or alone. */
static int call_once(const struct apart *ap, enum call_class *ret_class, struct err *err)
{
	struct agent *a = ap->job->a;
	struct ask_apart apart = {.client = a->compact_client, .model = ap->model};
	struct ask_result r = {.ttft_ms = -1};
	size_t from = fit(ap);
	struct message *request;
	int rc;

	if (from == ap->job->tail) {
		*ret_class = CALL_OVERFLOW;
		snprintf(ap->job->why, sizeof(ap->job->why),
			 "the window of '%.100s' does not hold one round of it", ap->model->name);
		return 1;
	}
	request = make_request(ap, from);
	client_render_message(a->compact_client, request);
	a->counts.compact_calls++;
	rc = ask_apart(a, &apart, CALL_COMPACT, &request, 1,
		       WISH_TOKENS + ledger_estimate_text(&a->ledger, request->blocks[0].text,
							  request->blocks[0].text_len),
		       ap->output, &r, err);
	message_free(request);
	if (rc < 0)
		return -1;
	*ret_class = r.class;
	if (rc == 0)
		return compact_take(ap->job, &r.answer);
	snprintf(ap->job->why, sizeof(ap->job->why), "%s", r.why);
	return 1;
}

static struct apart begin(struct compact_job *job)
{
	const struct model *m = job->a->settings->compact_model;
	int64_t most = m->max_output ? m->max_output : job->a->budget.reserve;
	int64_t reserve = job->a->settings->knobs.summary_reserve;
	struct apart ap = {.job = job, .model = m};

	ap.output = MIN(MIN(most, reserve), m->window / OUTPUT_SHARE);
	ap.room = m->window - m->window / MARGIN - ap.output - WISH_TOKENS;
	if (m->input_limit)
		ap.room = MIN(ap.room, m->input_limit - WISH_TOKENS);
	return ap;
}

int compact_ask_apart(struct compact_job *job, struct err *err)
{
	struct apart ap = begin(job);
	struct agent *a = job->a;
	int rc = 1, shrunk = 0, most = (int)a->settings->knobs.compact_tries;

	if (make_client(a, err) < 0)
		return -1;
	for (int tries = 0; rc > 0 && tries < most;) {
		enum call_class class = CALL_CLASS_NONE;

		rc = call_once(&ap, &class, err);
		if (rc > 0 && class == CALL_OVERFLOW && shrunk++ < SHRINK_TRIES) {
			ap.room = ap.room * SHRINK_KEEP / 100;
			a->counts.shrunk++;
			continue;
		}
		tries++;
		/* Without money or a model a second try is no better than the first. */
		if (class == CALL_BUDGET || class == CALL_AUTH || a->breaker.state == BREAKER_OPEN)
			break;
		ap.wrong = class == CALL_CLASS_NONE ? job->why : ap.wrong;
	}
	return rc;
}
