/*
 * handoff_take.c - see handoff_take.h.
 *
 * The user's words never come from the document while the ledgers of earlier generations are there: those are
 * verbatim, and a document may have been edited on the way (X2, I6). For the same reason the document is shown without
 * its words: they stand beside it by code.
 */
#include "agent/handoff_take.h"

#include <fcntl.h>
#include <inttypes.h>

#include "agent/events.h"
#include "agent/layers.h"
#include "agent/state.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"

#define SHARE 15 /* per cent of effective (R2) */
#define MOST  10000

static int64_t estimate(const void *arg, const char *text, size_t n)
{
	const struct agent *a = arg;

	return ledger_estimate_text(&a->ledger, text, n);
}

/* ---- the user's words ---- */

static void inherit(struct agent *a)
{
	AUTO_FREE char *agent_dir = file_dir(a->settings->dir_generation);

	for (int64_t g = 1; g < a->settings->generation; g++) {
		AUTO_FREE char *path = mem_printf("%s/%" PRId64 "/words.jsonl", agent_dir, g);
		struct err e = ERR_INIT;

		if (user_words_inherit(&a->words, path, &e) < 0)
			event_warning(a->channel, "words of generation %" PRId64 ": %s", g,
				      e.message);
	}
}

static enum speaker_kind speaker_of(const struct handoff_statement *s)
{
	if (s->origin == HANDOFF_FROM_USER)
		return SPEAKER_PERSON;
	return s->speaker && !strcmp(s->speaker, speaker_name(SPEAKER_EVALUATOR))
		       ? SPEAKER_EVALUATOR
		       : SPEAKER_AGENT;
}

/* Of a document that came from elsewhere. Its constraints are part of its words, unless a person added some. */
static void enter_words(struct agent *a)
{
	const enum handoff_part_name parts[] = {HANDOFF_WORDS, HANDOFF_CONSTRAINTS};

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		const struct handoff_part *part = &a->handoff->parts[parts[i]];

		for (size_t k = 0; k < part->n; k++) {
			const struct handoff_statement *s = &part->list[k];

			if (s->origin != HANDOFF_FROM_MODEL)
				user_words_enter(&a->words, speaker_of(s), s->text,
						 strlen(s->text));
		}
	}
}

int handoff_load(struct agent *a, struct err *err)
{
	const struct agent_settings *s = a->settings;
	AUTO_BUF struct buf bytes = BUF_INIT;

	if (!s->handoff_file)
		return 0;
	if (file_read(AT_FDCWD, s->handoff_file, HANDOFF_BYTES_MAX, &bytes, err) < 0 ||
	    handoff_parse(buf_str(&bytes), bytes.len, &a->handoff, err) < 0)
		return err_prefix(err, "handoff '%s'", s->handoff_file);
	if (s->generation > 1)
		inherit(a);
	if (!a->words.n)
		enter_words(a);
	return 0;
}

/* ---- the opening ---- */

/* A copy without what stands beside it, within its bounds. */
static void add_document(struct agent *a, struct message *m)
{
	static const enum handoff_part_name beside[] = {HANDOFF_WORDS, HANDOFF_CONSTRAINTS};
	AUTO_JSON struct json_object *json = handoff_to_json(a->handoff);
	struct handoff *shown = NULL;
	AUTO_BUF struct buf text = BUF_INIT, markdown = BUF_INIT;

	if (handoff_from_json(json, &shown, NULL) < 0)
		return; /* it was read by the same rules */
	for (size_t i = 0; i < ARRAY_SIZE(beside); i++)
		while (shown->parts[beside[i]].n)
			handoff_remove(shown, beside[i], 0);
	handoff_bound(shown, MIN((int64_t)MOST, a->budget.effective * SHARE / 100), estimate, a);
	buf_addf(&text,
		 "This work was begun in %s, which ended (%s). You go on from the handoff document "
		 "that "
		 "follows and from the files as they are; nothing else of it is in your window. "
		 "`recall` "
		 "finds what was said and done then. Statements of origin `record` were seen by "
		 "program, "
		 "those of origin `model` were only said.\n\n<handoff>\n",
		 a->settings->handoff_from ? "an earlier conversation" : "another place",
		 a->settings->handoff_reason ? a->settings->handoff_reason : "no reason given");
	handoff_to_markdown(shown, &markdown);
	/* The marks can be relied on: nothing in a document closes them (I12). */
	text_add_guarded(&text, buf_str(&markdown), "</handoff");
	buf_adds(&text, "</handoff>");
	message_add_text(m, ORIGIN_HANDOFF, text.data, text.len);
	handoff_free(shown);
}

/* Has somebody said this already? */
static bool is_said(const struct user_words *words, const struct block *b)
{
	for (size_t i = 0; i < words->n; i++)
		if (words->list[i].n == b->text_len &&
		    !memcmp(words->list[i].text, b->text, b->text_len))
			return true;
	return false;
}

struct message *handoff_opening(struct agent *a, struct message *opening)
{
	struct message *m;

	if (!a->handoff)
		return opening;
	m = message_new(MESSAGE_USER);
	for (size_t i = 0; i < opening->n_blocks; i++) {
		const struct block *b = &opening->blocks[i];
		bool task = b->origin == ORIGIN_USER || b->origin == ORIGIN_TASK;

		if (task)
			layers_add_words(a, m);
		/* A task that is new (a document from elsewhere) is said as it is. */
		if (!task || !is_said(&a->words, b))
			message_add_block(m, b);
	}
	add_document(a, m);
	message_free(opening);
	return m;
}
