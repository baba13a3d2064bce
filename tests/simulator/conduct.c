/*
 * conduct.c - decides what comes of a call: an answer, or one of the faults.
 *
 * A prompt that the server's own count puts above its window is refused in the session's form (wire.md 1.10, 3).
 * Everything else is drawn from the table of faults, and what is left is an honest answer.
 */
#include "conduct.h"

#include <stdio.h>

#include "base/memory.h"
#include "calls.h"

#define FORCED_WORDS "This is the last request of this conversation"
#define LATE_MS	     (48 * INT64_C(3600000))

/* ---- overflow ---- */

/* 500 in a row; the gateway gives up after some. */
static void overflow_500(struct server_call *c)
{
	for (int i = 0; i < 5; i++)
		server_again(c, 500, "Internal Server Error", 1000 << i);
	server_end(c, "failed", CALL_OVERLOAD, 500, "Internal Server Error");
}

/* An answer of nothing whose numbers say that the prompt did not fit (rows 16, 26, 39, 40). */
static void overflow_by_numbers(struct session *s, struct server_call *c, enum fault form)
{
	int64_t window = c->window;
	struct speech_usage usage = {.told = true, .prompt = c->prompt, .output = 0};
	const char *stop = "end_turn";

	if (form == FAULT_OVERFLOW_FILLED) {
		usage.prompt = window;
		stop = "max_tokens";
	} else if (form == FAULT_OVERFLOW_STOP) {
		stop = "model_context_window_exceeded";
	}
	speech_end(&c->speech, stop, &usage);
	server_say(c, 0, c->speech.out.len);
	server_end(c, "ok", CALL_CLASS_NONE, 200, "");
}

static void overflow(struct session *s, struct server_call *c, enum fault form)
{
	struct call_end *end;

	s->tallies->faults[form]++;
	watch_trouble(s, c);
	switch (form) {
	case FAULT_OVERFLOW_500: overflow_500(c); return;
	case FAULT_OVERFLOW_EMPTY:
	case FAULT_OVERFLOW_FILLED:
	case FAULT_OVERFLOW_STOP: overflow_by_numbers(s, c, form); return;
	case FAULT_OVERFLOW_IN_BAND:
		speech_text(&c->speech, "I", 1);
		server_say(c, 0, c->speech.out.len);
		server_end(c, "failed", CALL_OVERFLOW, 200, "the prompt is too long");
		return;
	case FAULT_OVERFLOW_BYTES:
		server_end(c, "failed", CALL_OVERFLOW, 413, "Request exceeds the maximum size");
		return;
	case FAULT_OVERFLOW_NUMBERS:
		end = server_end(c, "failed", CALL_OVERFLOW, 400, "prompt is too long");
		end->used = c->prompt;
		end->limit = c->window;
		return;
	default:
		server_end(c, "failed", CALL_OVERFLOW, 400, "context window exceeds limit");
		return;
	}
}

/* Row 26: the oldest messages are dropped silently until the rest fits; the total is always the same. */
static void cut_silently(struct server_call *c)
{
	int64_t room = c->window - speech_tokens(&c->speech);

	c->prompt = MIN(c->prompt, MAX(room, 1));
}

/* ---- honest answers ---- */

static bool is_forced(const struct reading *r, const char *body, size_t n)
{
	return memmem(body + r->last_at, n - r->last_at, FORCED_WORDS, strlen(FORCED_WORDS)) !=
	       NULL;
}

static void say_text(struct session *s, struct server_call *c, int parts)
{
	AUTO_BUF struct buf text = BUF_INIT;
	bool chinese = random_chance(&s->random, 1500);

	sample_add(&text, &s->random, chinese ? SAMPLE_CHINESE : SAMPLE_PROSE,
		   calls_size(s, c, s->plan.text_size, parts));
	speech_text(&c->speech, text.data, text.len);
}

static void say_thinking(struct session *s, struct server_call *c, const struct reading *r)
{
	const struct seen_message *last = &r->list[r->n - 1];
	AUTO_BUF struct buf text = BUF_INIT;

	sample_add(&text, &s->random, SAMPLE_PROSE, calls_size(s, c, s->plan.text_size * 3, 3));
	speech_thinking(&c->speech, text.data, text.len, hash_mix(last->before, last->hash));
	s->tallies->count[TALLY_THINKING]++;
}

/* Its acknowledgement lies in the channel when the agent waits for it. */
static void say_report(struct session *s, struct server_call *c)
{
	static const char wrong[] = "{\"status\":\"well\",\"summary\":\"\"}";
	static const char right[] = "{\"status\":\"done\",\"summary\":\"The work is done.\"}";
	bool bad = random_chance(&s->random, 500);
	const char *arguments = bad ? wrong : right;
	char id[40];

	snprintf(id, sizeof(id), "call_%lld", (long long)++s->numbers);
	speech_call(&c->speech, id, "report", arguments, strlen(arguments));
	if (!bad)
		session_acknowledge(s, id);
}

/* Returns the stop reason. */
static const char *say_main(struct session *s, struct server_call *c, const struct reading *r,
			    bool forced, enum fault fault)
{
	bool thinks = s->plan.thinks && random_chance(&s->random, 6000);

	if (fault == FAULT_BLANK)
		return "end_turn";
	if (fault == FAULT_REFUSAL)
		return "refusal";
	if (thinks)
		say_thinking(s, c, r);
	if (forced ? random_chance(&s->random, 9000) : s->answers >= s->plan.rounds) {
		say_report(s, c);
		return "tool_use";
	}
	if (fault == FAULT_TEXT_ONLY) {
		say_text(s, c, 2);
		return "end_turn";
	}
	if (random_chance(&s->random, 5000))
		say_text(s, c, 4);
	if (fault == FAULT_ANSWER_CUT && random_chance(&s->random, 3000)) {
		say_text(s, c, 2);
		return "max_tokens";
	}
	calls_say(s, c, fault == FAULT_ANSWER_CUT);
	return fault == FAULT_ANSWER_CUT ? "max_tokens" : "tool_use";
}

static void end_answer(struct session *s, struct server_call *c, const char *stop, enum fault fault)
{
	struct speech_usage usage = {
		.told = fault != FAULT_NO_USAGE,
		.output = -1,
		.cached = c->purpose == CALL_MAIN || s->plan.fixed ? s->server.hit.tokens : 0,
		.cleared = c->cleared,
		.cleared_uses = c->cleared_uses,
		.marked = s->plan.fixed};

	if (s->plan.overflow == FAULT_OVERFLOW_SILENT && !c->apart && c->prompt > c->window) {
		s->tallies->faults[FAULT_OVERFLOW_SILENT]++;
		watch_trouble(s, c);
		cut_silently(c);
	}
	if (!usage.told)
		watch_unjudged(s, c);
	usage.prompt = c->prompt;
	usage.cached = MIN(usage.cached, usage.prompt);
	speech_end(&c->speech, stop, &usage);
}

/* ---- faults of the way ---- */

/* True if nothing is to be said: the call ends without an answer. */
static bool fails(struct session *s, struct server_call *c, enum fault fault)
{
	struct call_end *end;

	switch (fault) {
	case FAULT_OVERLOAD:
		server_again(c, 529, "overloaded", 1000);
		server_end(c, "failed", CALL_OVERLOAD, 529, "Overloaded");
		return true;
	case FAULT_LATE_LIMIT:
		end = server_end(c, "failed", CALL_RATE_LIMIT, 429, "the limit ends in two days");
		end->until = s->now_us / 1000 + LATE_MS;
		return true;
	case FAULT_AUTH: server_end(c, "failed", CALL_AUTH, 401, "invalid x-api-key"); return true;
	case FAULT_BUDGET:
		end = server_end(c, "failed", CALL_BUDGET, 0, "the budget does not cover it");
		end->limit = random_chance(&s->random, 5000) ? c->max_tokens / 2 : 0;
		return true;
	default: return false;
	}
}

/* Steps around a stream that is in the call's speech. */
static void send(struct session *s, struct server_call *c, enum fault fault)
{
	size_t n = c->speech.out.len;
	size_t part = (size_t)random_between(&s->random, 1, (int64_t)n - 1);
	int times = (int)random_between(&s->random, 1, 3);

	switch (fault) {
	case FAULT_RATE_LIMIT:
	case FAULT_SERVER_ERROR:
		for (int i = 0; i < times; i++)
			server_again(c, fault == FAULT_RATE_LIMIT ? 429 : 503, "try later", 4000);
		break;
	case FAULT_STALL: server_again(c, 0, "stalled", 300000); break;
	case FAULT_HALF:
		server_say(c, 0, part);
		server_again(c, 200, "the stream broke", 1000);
		break;
	case FAULT_CUT:
		server_say(c, 0, MIN(part, n / 2));
		server_end(c, "ok", CALL_CLASS_NONE, 200, "");
		return;
	default: break;
	}
	server_say(c, 0, n);
	server_end(c, "ok", CALL_CLASS_NONE, 200, "");
}

static void garble(struct server_call *c)
{
	buf_clear(&c->speech.out);
	buf_adds(&c->speech.out,
		 "data: {\"type\":\"content_block_start\",\"choices\":[{\"delta\":4\n\n"
		 "data: [[[\n\n");
}

/* wire.md 4: a member that this server does not know. */
static void refuse_edits(struct session *s, struct server_call *c)
{
	s->tallies->count[TALLY_EDITS_REFUSED]++;
	s->server.edits_refused = s->server.next_req;
	server_end(c, "failed", CALL_BAD_REQUEST, 400,
		   "context_management: Extra inputs are not permitted");
}

static enum fault draw(struct session *s, const struct server_call *c)
{
	enum fault fault;

	if (c->purpose == CALL_MAIN)
		return fault_draw(&s->random, FAULT_OVERFLOW_NUMBERS, FAULT_NO_USAGE,
				  s->plan.fault_percent);
	fault = fault_draw(&s->random, FAULT_OVERFLOW_NUMBERS, FAULT_BUDGET, s->plan.fault_percent);
	if (fault != FAULT_NONE)
		return fault;
	if (c->purpose == CALL_BACKGROUND)
		return fault_draw(&s->random, FAULT_NOTES_EMPTY, FAULT_NOTES_LIE,
				  s->plan.bad_summaries);
	return fault_draw(&s->random, FAULT_SUMMARY_MALFORMED, FAULT_SUMMARY_FILES,
			  s->plan.bad_summaries);
}

static const char *say(struct session *s, struct server_call *c, const struct reading *r,
		       const char *body, size_t n, enum fault fault)
{
	if (c->purpose == CALL_COMPACT)
		return conduct_summary(s, c, fault);
	if (c->purpose == CALL_BACKGROUND)
		return conduct_notes(s, c, fault);
	s->answers++;
	return say_main(s, c, r, is_forced(r, body, n), fault);
}

void conduct_answer(struct session *s, struct server_call *c, const struct reading *r,
		    const char *body, size_t n)
{
	enum fault fault = draw(s, c);
	bool silent = s->plan.overflow == FAULT_OVERFLOW_SILENT && !c->apart;
	const char *stop;

	if (s->plan.fixed)
		random_init(&s->random, hash_mix(s->plan.seed, c->purpose == CALL_MAIN
								       ? (uint64_t)s->answers
								       : ~(uint64_t)++s->numbers));
	speech_begin(&c->speech, c->apart ? s->plan.apart_api : s->plan.api,
		     c->apart ? &s->tokenizer_apart : &s->tokenizer);
	if (s->plan.refuses_edits && r->edits.present) {
		refuse_edits(s, c);
		return;
	}
	if (c->prompt + c->max_tokens > c->window && !silent) {
		overflow(s, c, s->plan.overflow);
		return;
	}
	if (fault < OVERFLOW_FORMS) {
		overflow(s, c, fault);
		return;
	}
	if (fault != FAULT_NONE) {
		s->tallies->faults[fault]++;
		watch_trouble(s, c);
	}
	if (fails(s, c, fault))
		return;
	stop = say(s, c, r, body, n, fault);
	end_answer(s, c, stop, fault);
	if (fault == FAULT_GARBAGE)
		garble(c);
	send(s, c, fault);
}
