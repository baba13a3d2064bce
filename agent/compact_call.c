/*
 * compact_call.c - asks for a summary.
 *
 *   call:   head | r1 r2 ... | tail | "summarise"      same head, same prefix: it reads the cache
 *
 * Two tries. Where the call itself does not fit, the oldest rounds are left out of it (H7). It passes
 * through ask_side, which never looks at thresholds, so it cannot trigger another compaction (H11).
 * What comes back must pass the check (R4); what was wrong with it stands in the next try.
 */
#include "agent/compact_job.h"

#include <inttypes.h>
#include <stdio.h>

#include "agent/ask.h"
#include "agent/context/epoch.h"
#include "agent/context/summary.h"
#include "agent/context/summary_check.h"
#include "agent/events.h"
#include "agent/tools/tool.h"
#include "base/memory.h"
#include "base/text.h"

#define SHRINK_TRIES  3	 /* H7 */
#define NEAR_RESERVE  85 /* per cent of the reserve */
#define BYTES_A_TOKEN 8
#define WISH_TOKENS   2000 /* of the words that ask */
#define SMALL_SUMMARY 1000 /* tokens: no reason to refuse one, our count of little text is rough */
#define DESCRIBED     160  /* bytes of what a round began with */

int64_t compact_estimate(const struct view *view, size_t from, size_t to)
{
	int64_t sum = 0;

	for (size_t i = from; i < to; i++)
		sum += view->list[i]->estimate;
	return sum;
}

/* Rounds begin with an answer: the index of the first one at or behind `from` (H7 never parts a call
 * from its result). */
static size_t round_start(const struct view *view, size_t from)
{
	while (from < view->n && view->list[from]->role != MESSAGE_ASSISTANT)
		from++;
	return from;
}

/* Before a provider has counted anything, our own count may be an eighth off. */
static int64_t margin(const struct agent *a)
{
	return a->budget.window / (a->ledger.base ? 100 : 8);
}

/* The first message that stands in the call behind the head: 1, or later where all do not fit. */
static size_t fit_call(const struct compact_job *job, int64_t output)
{
	const struct agent *a = job->a;
	int64_t asked = WISH_TOKENS +
			ledger_estimate_text(&a->ledger, buf_str(&job->focus), job->focus.len);
	int64_t room = a->budget.window - margin(a) - output - asked;
	int64_t used = job->before;
	size_t from = 1;

	while (used > room && from < job->tail) {
		size_t next = round_start(&a->view, from + 1);

		used -= compact_estimate(&a->view, from, next);
		from = next;
	}
	return MIN(from, job->tail);
}

/* X2, trap 16: a rule that nobody gave does not become one by standing in a summary. */
static void drop_inventions(struct compact_job *job)
{
	struct agent *a = job->a;
	struct user_words_check check = {.summary = buf_str(&job->summary),
					 .summary_len = job->summary.len};
	size_t n_also;
	AUTO_FREE const char **also = instructions_texts(&a->instructions, &n_also);
	struct user_words_findings found = {0};
	struct buf clean = BUF_INIT;

	check.also = also;
	check.n_also = n_also;
	if (!user_words_check(&a->words, &check, &found) && found.invented)
		event_warning(a->channel, "%zu rules that nobody gave were taken out of a summary",
			      found.invented);
	user_words_clean(buf_str(&job->summary), job->summary.len, &found, &clean);
	buf_release(&job->summary);
	job->summary = clean;
	user_words_findings_release(&found);
}

static bool file_exists(const char *name, void *arg)
{
	struct agent *a = arg;

	return a->toolbox.context && tool_context_file_exists(a->toolbox.context, name);
}

/* R4: the files that it names are there, or were spoken of. A failed check counts by itself. */
static int check_summary(struct compact_job *job, struct err *why)
{
	struct agent *a = job->a;
	struct summary_check check = {
		.list = a->view.list,
		.n = a->view.n,
		.exists = file_exists,
		.arg = a,
	};

	if (summary_check_files(buf_str(&job->summary), job->summary.len, &check, why) == 0)
		return 0;
	a->counts.refused_check++;
	breaker_check_failed(&a->breaker);
	return -1;
}

static int take_answer(struct compact_job *job, struct stream_answer *answer)
{
	bool cut = answer->stop == STOP_MAX_TOKENS || answer->stop == STOP_WINDOW;
	struct err why = ERR_INIT;
	int rc;

	buf_clear(&job->summary);
	rc = summary_take(answer->message, cut, (size_t)job->replaced * BYTES_A_TOKEN,
			  &job->summary, &why);
	/* X3: bytes are only a bound; what counts is what it takes in the window. */
	if (rc == 0 && ledger_estimate_text(&job->a->ledger, buf_str(&job->summary),
					    job->summary.len) > MAX(job->replaced, SMALL_SUMMARY))
		rc = err_set(&why, ERR_INVALID, "the summary is larger than what it replaces");
	if (rc == 0)
		rc = check_summary(job, &why);
	if (rc == 0)
		drop_inventions(job);
	else
		snprintf(job->why, sizeof(job->why), "%.290s", why.message);
	return rc < 0;
}

/* H15: a summary that nearly fills its reserve will be cut one day. */
static void note_usage(struct compact_job *job, const struct model_usage *u)
{
	struct agent *a = job->a;

	job->spent.input += u->input;
	job->spent.cache_read += u->cache_read;
	job->spent.cache_write += u->cache_write;
	job->spent.cache_write_1h += u->cache_write_1h;
	job->spent.output += u->output;
	if (u->output * 100 >= a->budget.reserve * NEAR_RESERVE)
		event_warning(a->channel,
			      "a summary took %lld of the %lld tokens that are reserved for it "
			      "(context number summary_reserve)",
			      (long long)u->output, (long long)a->budget.reserve);
}

int compact_take(struct compact_job *job, struct stream_answer *answer)
{
	int rc;

	job->call_input += usage_prompt(&answer->usage);
	job->call_output += answer->usage.output;
	note_usage(job, &answer->usage);
	rc = take_answer(job, answer);
	stream_answer_release(answer);
	return rc;
}

/* One call without the messages [1, from). 0: its answer's summary is in job->summary. */
static int call_once(struct compact_job *job, struct message *request, size_t from,
		     enum call_class *ret_class, struct err *err)
{
	struct agent *a = job->a;
	size_t n = a->view.n - (from - 1) + 1;
	AUTO_FREE struct message **list = mem_array(NULL, n, sizeof(*list));
	int64_t estimate = job->before - compact_estimate(&a->view, 1, from) +
			   ledger_estimate_text(&a->ledger, request->blocks[0].text,
						request->blocks[0].text_len);
	struct ask_result r = {.ttft_ms = -1};

	list[0] = a->view.list[0];
	memcpy(list + 1, a->view.list + from, (a->view.n - from) * sizeof(*list));
	list[n - 1] = request;
	/* W11: what is left out is missing before the thinking that stays. */
	for (size_t i = 1; from > 1 && a->settings->model->preserved_thinking && i + 1 < n; i++)
		list[i] = epoch_unbound(&a->view, &a->conversation, list[i]);
	/* I3: what the server is bound to refuse needs no call to be known. */
	if (estimate > a->budget.effective) {
		*ret_class = CALL_OVERFLOW;
		snprintf(job->why, sizeof(job->why),
			 "the newest messages alone leave no room for it");
		return 1;
	}
	a->counts.compact_calls++;
	int rc = ask_side(a, CALL_COMPACT, list, n, estimate,
			  MIN(a->budget.reserve, a->budget.max_output), &r, err);
	if (rc < 0)
		return -1;
	*ret_class = r.class;
	if (rc > 0) {
		snprintf(job->why, sizeof(job->why), "%s", r.why);
		return 1;
	}
	return compact_take(job, &r.answer);
}

/* Drops a fifth of what the call holds, at least a round. */
static size_t shrink(const struct compact_job *job, size_t from)
{
	const struct view *view = &job->a->view;
	int64_t drop = compact_estimate(view, from, job->tail) / 5, sum = 0;

	job->a->counts.shrunk++;
	do {
		size_t next = round_start(view, from + 1);

		sum += compact_estimate(view, from, next);
		from = next;
	} while (sum < drop && from < job->tail);
	return MIN(from, job->tail);
}

/* What a round began with, for a model that knows no numbers of ours. */
static void describe(const struct message *m, struct buf *out)
{
	for (size_t i = 0; i < m->n_blocks; i++) {
		const struct block *b = &m->blocks[i];

		if (b->kind == BLOCK_TEXT || b->kind == BLOCK_TOOL_CALL) {
			buf_adds(out, b->kind == BLOCK_TEXT ? "" : b->name);
			buf_add(out, b->text,
				text_floor(b->text, b->text_len,
					   MIN(b->text_len, (size_t)DESCRIBED)));
			return;
		}
	}
	buf_adds(out, "your next answer");
}

static struct message *make_request(const struct compact_job *job, const char *wrong)
{
	struct agent *a = job->a;
	AUTO_BUF struct buf first = BUF_INIT;
	struct summary_wish wish = {
		.focus = job->focus.len ? buf_str(&job->focus) : NULL,
		.wrong = wrong && *wrong ? wrong : NULL,
	};
	struct message *m;

	if (job->kind == KIND_FROM)
		describe(a->view.list[job->from], &first);
	wish.after = job->kind == KIND_FROM ? buf_str(&first) : NULL;
	m = summary_request(&wish);
	m->uid = conversation_take_uid(&a->conversation);
	view_own(&a->view, m);
	return m;
}

int compact_ask(struct compact_job *job, struct err *err)
{
	struct agent *a = job->a;

	if (a->settings->compact_model)
		return compact_ask_apart(job, err);
	size_t from = fit_call(job, a->budget.reserve);
	int rc = 1, shrunk = 0, most = (int)a->settings->knobs.compact_tries;
	struct message *request = make_request(job, NULL);

	for (int tries = 0; rc > 0 && tries < most && from < a->view.n;) {
		enum call_class class = CALL_CLASS_NONE;

		rc = call_once(job, request, from, &class, err);
		if (rc <= 0)
			break;
		if (class == CALL_OVERFLOW && shrunk++ < SHRINK_TRIES && from < job->tail) {
			from = shrink(job, from);
			continue;
		}
		tries++;
		/* Without money or a model a second try is no better than the first. */
		if (class == CALL_BUDGET || class == CALL_AUTH || a->breaker.state == BREAKER_OPEN)
			break;
		if (class == CALL_CLASS_NONE && tries < most)
			request = make_request(job, job->why);
	}
	return rc;
}
