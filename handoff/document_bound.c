/*
 * document_bound.c - a handoff document cut to the room that a successor has for it (R2).
 *
 * What a successor cannot do without stays whole: goal, constraints, point, failures, first action. Room is made in the order in
 * which it hurts least: outputs of commands, which stand in logs; files that were only read, logs, the user's older messages
 * (their constraints have a part of their own), commits (git has them), why earlier generations ended, other files, finished work. Judgement
 * goes last, and of each part the oldest first: no part may grow without an end, since a job of many generations adds to
 * all of them. Each loss leaves a line in `missing`.
 */
#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "handoff/document_form.h"

#define GOAL_BYTES 6000

struct measure {
	int64_t (*estimate)(const void *arg, const char *text, size_t n);
	const void *arg;
};

static int64_t tokens_of(const struct measure *m, const char *text, size_t n)
{
	return m->estimate ? m->estimate(m->arg, text, n)
			   : (int64_t)((n + BYTES_PER_TOKEN - 1) / BYTES_PER_TOKEN);
}

static int64_t document_tokens(const struct measure *m, const struct handoff *handoff)
{
	AUTO_BUF struct buf text = BUF_INIT;

	handoff_to_markdown(handoff, &text);
	return tokens_of(m, buf_str(&text), text.len);
}

static int64_t statement_tokens(const struct measure *m, const struct handoff_statement *s)
{
	AUTO_BUF struct buf text = BUF_INIT;

	handoff_statement_markdown(&text, s);
	return tokens_of(m, buf_str(&text), text.len);
}

/* Head and tail of an output, and the whole where the log is. True if something was cut. */
static bool shorten(struct handoff_statement *s, size_t bytes)
{
	AUTO_BUF struct buf out = BUF_INIT;

	if (!s->output || strlen(s->output) <= bytes + 200)
		return false;
	text_clip(&out, s->output, strlen(s->output), bytes, s->log);
	handoff_setn(&s->output, buf_str(&out), out.len);
	return true;
}

static bool shorten_all(struct handoff *handoff, size_t bytes)
{
	bool any = false;

	for (enum handoff_part_name part = 0; part < HANDOFF_N_PARTS; part++)
		for (size_t i = 0; i < handoff->parts[part].n; i++)
			any = shorten(&handoff->parts[part].list[i], bytes) || any;
	return any;
}

static void say_missing(struct handoff *handoff, size_t count, const char *what, const char *where)
{
	AUTO_FREE char *text =
		mem_printf("%zu %s were left out for want of room; %s", count, what, where);

	handoff_add(handoff, HANDOFF_MISSING, HANDOFF_FROM_RECORD, text, strlen(text));
}

static const struct {
	enum handoff_part_name part;
	enum handoff_state state; /* only these; HANDOFF_NO_STATE: all */
	const char *what, *where;
} losses[] = {
	{HANDOFF_FILES, HANDOFF_READ, "files that were only read", "the transcript names them"},
	{HANDOFF_LOGS, HANDOFF_NO_STATE, "logs", "they lie in the results folder of the run"},
	{HANDOFF_WORDS, HANDOFF_NO_STATE, "older messages of the user",
	 "words.jsonl of the run holds all of them"},
	{HANDOFF_COMMITS, HANDOFF_NO_STATE, "older commits", "git log shows them"},
	{HANDOFF_FINISHED, HANDOFF_VERIFIED, "older finished steps",
	 "git log and the transcripts show them"},
	{HANDOFF_TRIED, HANDOFF_NO_STATE, "earlier generations", "the run's journal names them"},
	{HANDOFF_FILES, HANDOFF_NO_STATE, "files", "git diff from the base shows what was changed"},
	{HANDOFF_FINISHED, HANDOFF_NO_STATE, "older finished steps", "the transcripts name them"},
	{HANDOFF_DIFF, HANDOFF_NO_STATE, "lists of changed lines", "git diff from the base has it"},
	{HANDOFF_DECISIONS, HANDOFF_NO_STATE, "older decisions", "the transcripts hold them"},
	{HANDOFF_RISKS, HANDOFF_NO_STATE, "older risks", "the transcripts hold them"},
	{HANDOFF_TEMPORARY, HANDOFF_NO_STATE, "older temporary decisions",
	 "the transcripts hold them"},
	{HANDOFF_RULED_OUT, HANDOFF_NO_STATE, "older approaches that were ruled out",
	 "the transcripts hold them"},
	{HANDOFF_DONE_MEANS, HANDOFF_NO_STATE, "older criteria", "the goal's own words hold"},
};

/* The oldest stand first. By the statements' own tokens, which are a little more than their share of the whole. */
static size_t lose_some(struct handoff *handoff, const struct measure *m, size_t which,
			int64_t too_many)
{
	struct handoff_part *part = &handoff->parts[losses[which].part];
	size_t lost = 0;

	for (size_t i = 0; i < part->n && too_many > 0;) {
		if (losses[which].state && part->list[i].state != losses[which].state) {
			i++;
			continue;
		}
		too_many -= statement_tokens(m, &part->list[i]);
		handoff_remove(handoff, losses[which].part, i);
		lost++;
	}
	return lost;
}

static void lose(struct handoff *handoff, const struct measure *m, size_t which, int64_t tokens,
		 int64_t *now)
{
	const int64_t line = 40; /* what telling of it costs */
	size_t lost = 0, more;

	while (*now + line > tokens &&
	       (more = lose_some(handoff, m, which, *now + line - tokens)) > 0) {
		lost += more;
		*now = document_tokens(m, handoff);
	}
	if (!lost)
		return;
	say_missing(handoff, lost, losses[which].what, losses[which].where);
	*now = document_tokens(m, handoff);
}

static bool ends_sentence(const char *text, size_t at)
{
	return memchr(".!?;:\n", text[at - 1], 6) ||
	       (at >= 3 && (!memcmp(text + at - 3, "。", 3) || !memcmp(text + at - 3, "！", 3) ||
			    !memcmp(text + at - 3, "？", 3)));
}

size_t handoff_goal_len(const char *text, size_t n)
{
	size_t at = MIN(n, (size_t)GOAL_BYTES);

	if (n <= GOAL_BYTES)
		return n;
	while (at > 0 && !ends_sentence(text, at))
		at--;
	return at ? at : n;
}

int64_t handoff_bound(struct handoff *handoff, int64_t tokens,
		      int64_t (*estimate)(const void *arg, const char *text, size_t n),
		      const void *arg)
{
	static const size_t sizes[] = {8000, 4000, 2000, 1000};
	struct measure m = {estimate, arg};
	int64_t now = document_tokens(&m, handoff);

	for (size_t i = 0; i < ARRAY_SIZE(sizes) && now > tokens; i++)
		if (shorten_all(handoff, sizes[i]))
			now = document_tokens(&m, handoff);
	for (size_t i = 0; i < ARRAY_SIZE(losses) && now > tokens; i++)
		lose(handoff, &m, i, tokens, &now);
	if (now > tokens && shorten_all(handoff, 400))
		now = document_tokens(&m, handoff);
	return now;
}
