/*
 * session_notes.c - opens and takes the passes of the notes.
 *
 *   cached:    the conversation as it was last sent | "bring the notes up to date"     reads the cache
 *   otherwise: a head of its own | notes and what happened since, as text              is new in full
 *
 * The cheaper form by the model's prices is taken. The cached one leaves the last round out: what the
 * provider has just read costs a tenth, and one more round would be written to its cache twice.
 */
#include "agent/session_notes.h"

#include <fcntl.h>
#include <stdio.h>

#include "agent/context/retell.h"
#include "agent/events.h"
#include "agent/side_call.h"
#include "agent/state.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"

#define KEEP_SHARE     35 /* per cent of the threshold: what may stay behind the notes */
#define BEGIN_SHARE    25 /* a pass begins when less is left until the threshold */
#define FIRST_SHARE    40 /* of a small window's threshold, instead of notes_first */
#define OCCUPANCY      8  /* per cent of what is used: least growth between two passes */
#define TOOL_CALLS     3
#define FAILURES       3
#define REST_ROUNDS    5
#define OUTPUT_TOKENS  4000
#define REQUEST_TOKENS 600
#define BLOCK_BYTES    2000
#define FILE_MAX       (4 << 20)
#define BYTES_A_TOKEN  6

static struct notes_limits limits_of(const struct agent *a)
{
	const struct context_knobs *k = &a->settings->knobs;
	int64_t total = a->budget.notes;

	return (struct notes_limits){.section = MIN(k->notes_section, MAX(total / 4, 100)),
				     .total = total};
}

/* ---- the file ---- */

static char *file_path(const struct agent *a)
{
	return file_join(a->settings->dir_generation, "notes.md");
}

void session_notes_init(struct agent *a)
{
	AUTO_FREE char *path = file_path(a);
	AUTO_BUF struct buf text = BUF_INIT;

	if (file_read(AT_FDCWD, path, FILE_MAX, &text, NULL) == 0)
		notes_parse(&a->notes.notes, buf_str(&text), text.len);
}

void session_notes_release(struct agent *a)
{
	side_call_free(a->notes.call);
	client_free(a->notes.client);
	notes_release(&a->notes.notes);
	a->notes = (struct session_notes){.covered = 0};
}

/* For people and for a handoff; the agent itself goes on without it. */
static void store(const struct agent *a)
{
	AUTO_FREE char *path = file_path(a);
	AUTO_BUF struct buf text = BUF_INIT;
	struct err e = ERR_INIT;

	notes_render(&a->notes.notes, &text);
	if (file_write_atomic(AT_FDCWD, path, text.data, text.len, 0600, &e) < 0)
		log_warn("the notes are not on disk: %s", e.message);
}

/* ---- taking a pass ---- */

/* Trap 16: a rule that nobody gave does not become one by standing in notes. */
static void drop_inventions(struct agent *a, struct buf *section)
{
	struct user_words_check check = {.summary = buf_str(section), .summary_len = section->len};
	struct user_words_findings found = {0};
	struct buf clean = BUF_INIT;

	if (!section->len)
		return;
	user_words_check(&a->words, &check, &found);
	user_words_clean(buf_str(section), section->len, &found, &clean);
	buf_release(section);
	*section = clean;
	user_words_findings_release(&found);
}

static void failed(struct agent *a, const char *why)
{
	struct session_notes *s = &a->notes;

	a->counts.notes_failed++;
	log_debug("notes: %s", why);
	if (++s->failures >= FAILURES)
		s->rest_until = a->conversation.round + REST_ROUNDS * s->failures;
}

static void take(struct agent *a)
{
	struct session_notes *s = &a->notes;
	struct stream_answer answer = {.message = NULL};
	struct notes_limits limits = limits_of(a);
	struct err e = ERR_INIT;
	char why[300];

	if (side_call_take(s->call, &answer, why, sizeof(why)) > 0) {
		failed(a, why);
	} else {
		bool cut = answer.stop == STOP_MAX_TOKENS || answer.stop == STOP_WINDOW;

		if (notes_take(&s->notes, answer.message, cut,
			       (size_t)(2 * limits.total * BYTES_A_TOKEN), &e) < 0) {
			failed(a, e.message);
		} else {
			for (size_t i = 0; i < NOTES_SECTIONS; i++)
				drop_inventions(a, &s->notes.section[i]);
			s->covered = s->call_covers;
			s->failures = 0;
			store(a);
		}
	}
	stream_answer_release(&answer);
	side_call_free(take_ptr(s->call));
}

/* ---- opening one ---- */

static void count_growth(struct agent *a)
{
	struct session_notes *s = &a->notes;

	for (; s->counted < a->conversation.n; s->counted++)
		s->grown += a->conversation.messages[s->counted]->estimate;
}

/* Tokens of what they do not cover. */
static int64_t uncovered(const struct agent *a)
{
	int64_t sum = 0;

	for (size_t i = a->notes.covered; i < a->conversation.n; i++)
		sum += a->conversation.messages[i]->estimate;
	return sum;
}

/* The cheap questions first: this is asked before each round. */
static bool due(struct agent *a, int64_t threshold)
{
	const struct context_knobs *k = &a->settings->knobs;
	struct session_notes *s = &a->notes;
	int64_t used = ledger_used(&a->ledger), left = threshold - used;
	int64_t rounds = MAX(a->conversation.round, 1);
	int64_t first = MIN(k->notes_first, threshold * FIRST_SHARE / 100);
	int64_t next = MIN(k->notes_next, threshold / OCCUPANCY);

	if (!k->notes || s->call || used < first || a->conversation.round < s->rest_until)
		return false;
	if (s->grown < MAX(next, used * OCCUPANCY / 100))
		return false;
	if (a->record.tool_calls - s->calls_then < TOOL_CALLS &&
	    message_count(conversation_last(&a->conversation), BLOCK_TOOL_RESULT))
		return false;
	/* Would a compaction at the threshold have to repeat it? Two rounds ahead at least. */
	int64_t begin = MIN(MAX(threshold * BEGIN_SHARE / 100, 2 * used / rounds),
			    threshold * KEEP_SHARE / 100);
	if (left > begin || (s->covered && uncovered(a) + left < threshold * KEEP_SHARE / 100)) {
		a->counts.notes_skipped++;
		return false;
	}
	return true;
}

/* The view as it was last sent, if it still is a beginning of the present one. */
static size_t sent_part(const struct agent *a, size_t *ret_covers)
{
	if (a->sent_n && a->sent_epoch == a->view.epoch && a->sent_n <= a->view.n) {
		*ret_covers = a->sent_taken;
		return a->sent_n;
	}
	*ret_covers = a->view.taken;
	return a->view.n;
}

/* Reading the prefix from the cache against sending what is new, without one. */
static bool cached_form_is_cheaper(const struct agent *a)
{
	const struct model *m = a->settings->model;
	double read = m->price.known ? m->price.cache_read : 0.1;
	double fresh = m->price.known ? m->price.input : 1;
	int64_t known = notes_tokens(&a->notes.notes, &a->ledger);

	if (m->cache == CACHE_NONE)
		return false;
	return (double)ledger_used(&a->ledger) * read <
	       (double)(uncovered(a) + known) * fresh + (double)known * read;
}

static struct side_call *open_cached(struct agent *a, const struct notes_limits *limits,
				     struct err *err)
{
	size_t n = sent_part(a, &a->notes.call_covers);
	AUTO_FREE struct message **list = mem_array(NULL, n + 1, sizeof(*list));
	struct message *request = notes_request(&a->notes.notes, limits, &a->ledger, NULL, 0);
	struct side_call_spec spec = {
		.client = a->client,
		.list = list,
		.n = n + 1,
		.estimate = ledger_used(&a->ledger) +
			    ledger_estimate_text(&a->ledger, request->blocks[0].text,
						 request->blocks[0].text_len),
		.max_tokens = MIN(MIN(limits->total, OUTPUT_TOKENS), a->budget.max_output),
	};
	struct side_call *call = NULL;

	memcpy(list, a->view.list, n * sizeof(*list));
	list[n] = request;
	request->uid = conversation_take_uid(&a->conversation);
	client_render_message(a->client, request);
	if (spec.estimate + spec.max_tokens < a->budget.window)
		call = side_call_open(a, &spec, err);
	else
		err_set(err, ERR_TOO_LARGE, "no room for a pass");
	message_free(request);
	return call;
}

static int make_client(struct agent *a, struct err *err)
{
	struct request_params params = {.system = notes_system, .temperature = -1};

	if (a->notes.client)
		return 0;
	return client_new(a->settings->model, &params, &a->notes.client, err);
}

static struct side_call *open_apart(struct agent *a, const struct notes_limits *limits,
				    struct err *err)
{
	struct conversation *c = &a->conversation;
	AUTO_BUF struct buf text = BUF_INIT;
	struct message *request;
	struct side_call *call = NULL;

	if (make_client(a, err) < 0)
		return NULL;
	a->notes.call_covers = c->n;
	retell_messages(c->messages + a->notes.covered, c->n - a->notes.covered, BLOCK_BYTES,
			&text);
	request = notes_request(&a->notes.notes, limits, &a->ledger, buf_str(&text), text.len);
	struct side_call_spec spec = {
		.client = a->notes.client,
		.list = &request,
		.n = 1,
		.estimate = ledger_estimate_text(&a->ledger, request->blocks[0].text,
						 request->blocks[0].text_len),
		.max_tokens = MIN(MIN(limits->total, OUTPUT_TOKENS), a->budget.max_output),
	};
	client_render_message(a->notes.client, request);
	if (spec.estimate + spec.max_tokens + REQUEST_TOKENS < a->budget.window)
		call = side_call_open(a, &spec, err);
	else
		err_set(err, ERR_TOO_LARGE, "what happened since does not fit one call");
	message_free(request);
	return call;
}

static void begin(struct agent *a)
{
	struct session_notes *s = &a->notes;
	struct notes_limits limits = limits_of(a);
	struct err e = ERR_INIT;

	s->call = cached_form_is_cheaper(a) ? open_cached(a, &limits, &e)
					    : open_apart(a, &limits, &e);
	s->grown = 0;
	s->calls_then = a->record.tool_calls;
	s->call_round = a->conversation.round;
	if (s->call)
		a->counts.notes_calls++;
	else
		failed(a, e.message);
}

void session_notes_tick(struct agent *a, int64_t threshold)
{
	struct session_notes *s = &a->notes;

	count_growth(a);
	if (s->call && side_call_over(s->call))
		take(a);
	if (due(a, threshold))
		begin(a);
}

/* ---- using them ---- */

bool session_notes_pending(const struct agent *a)
{
	return a->notes.call != NULL;
}

enum notes_use session_notes_use(const struct agent *a, size_t *ret_tail)
{
	const struct session_notes *s = &a->notes;
	uint64_t uid;
	size_t i = 0;

	if (!s->covered || notes_empty(&s->notes))
		return NOTES_NONE;
	if (s->covered >= a->conversation.n)
		return NOTES_NONE; /* cannot be: the answer came after the pass was opened */
	uid = a->conversation.messages[s->covered]->uid;
	while (i < a->view.n && message_position(a->view.list[i]) < uid)
		i++;
	if (i == 0 || i >= a->view.n || message_is_summary(a->view.list[i]))
		return NOTES_LOST;
	*ret_tail = i;
	return NOTES_USABLE;
}
