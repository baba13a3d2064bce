/*
 * summaries.c - what the model writes when it is asked to summarise, well or badly, and notes of the session.
 *
 * A summary that is of no use carries a text that must never be seen again; one that lies carries the rule that it
 * invents (X2, X3).
 */
#include "conduct.h"

#include "base/memory.h"

static const char *const titles[] = {
	"Primary request and intent",
	"Key technical concepts",
	"Files and code sections",
	"Errors and fixes",
	"Problem solving",
	"All user messages",
	"Pending tasks",
	"Current work",
	"Optional next step",
};

static void add_section(struct session *s, struct buf *out, size_t i, size_t size)
{
	buf_addf(out, "%zu. %s:\n", i + 1, titles[i]);
	sample_add(out, &s->random, SAMPLE_PROSE, size);
	buf_addc(out, '\n');
}

static void add_lie(struct session *s, struct buf *out)
{
	size_t at = out->len;

	sample_lie(out, &s->random, ++s->numbers);
	watch_keep(&s->watch.lies, out->data + at, out->len - at);
	buf_addc(out, '\n');
	s->tallies->count[TALLY_LIES]++;
}

/* Sections without `missing` (9: none). */
static void add_summary(struct session *s, struct server_call *c, struct buf *out, enum fault fault,
			size_t missing)
{
	int64_t most = MAX(c->max_tokens / 12, 20);
	size_t size = (size_t)random_log_normal(&s->random, (double)MIN(most / 2, 250), 0.6, most);

	if (fault == FAULT_SUMMARY_LAZY)
		size = 12;
	buf_adds(out, "<analysis>\n");
	sample_add(out, &s->random, SAMPLE_PROSE, size);
	buf_adds(out, "\n</analysis>\n<summary>\n");
	for (size_t i = 0; i < ARRAY_SIZE(titles); i++) {
		if (i == missing)
			continue;
		add_section(s, out, i, size);
		if (fault == FAULT_SUMMARY_FILES && i == 2)
			buf_addf(out, "lib/unknown_%lld.c\n", (long long)++s->numbers);
		if (fault == FAULT_SUMMARY_LIES && (i == 1 || i == 6))
			add_lie(s, out);
	}
	buf_adds(out, "</summary>");
}

/* A text that no request may hold, since what it stands in was thrown away. */
static void add_refuse(struct session *s, struct buf *out)
{
	size_t at;

	buf_addc(out, '\n');
	at = out->len;
	buf_addf(out, "refuse-%lld-of-a-summary", (long long)++s->numbers);
	watch_keep(&s->watch.refuse, out->data + at, out->len - at);
	buf_addc(out, '\n');
	s->tallies->count[TALLY_BAD_SUMMARIES]++;
}

static void add_large(struct session *s, const struct server_call *c, struct buf *out)
{
	buf_adds(out, "<summary>\n");
	add_refuse(s, out);
	/* 8 bytes for each token that there was cannot be a summary of it. */
	sample_add(out, &s->random, SAMPLE_C, (size_t)MAX(c->prompt * 9, 1000));
	for (size_t i = 0; i < ARRAY_SIZE(titles); i++)
		add_section(s, out, i, 20);
	buf_adds(out, "</summary>");
}

const char *conduct_summary(struct session *s, struct server_call *c, enum fault fault)
{
	AUTO_BUF struct buf text = BUF_INIT;

	switch (fault) {
	case FAULT_SUMMARY_EMPTY: return "end_turn";
	case FAULT_SUMMARY_LARGE: add_large(s, c, &text); break;
	case FAULT_SUMMARY_MALFORMED:
		add_refuse(s, &text);
		add_summary(s, c, &text, fault, (size_t)random_between(&s->random, 0, 8));
		break;
	case FAULT_SUMMARY_TRUNCATED:
	case FAULT_SUMMARY_CALLS:
		add_refuse(s, &text);
		add_summary(s, c, &text, fault, 9);
		break;
	case FAULT_SUMMARY_FILES:
		add_refuse(s, &text);
		add_summary(s, c, &text, fault, 9);
		break;
	default: add_summary(s, c, &text, fault, 9); break;
	}
	speech_text(&c->speech, text.data, text.len);
	if (fault == FAULT_SUMMARY_CALLS) {
		speech_call(&c->speech, "call_summary", "read", "{\"path\":\"a\",\"text\":\"b\"}",
			    23);
		return "tool_use";
	}
	return fault == FAULT_SUMMARY_TRUNCATED ? "max_tokens" : "end_turn";
}

/* ---- notes ---- */

static const char *const notes_names[] = {
	"current state",
	"task specification",
	"files and functions",
	"workflow",
	"errors and corrections",
	"learnings",
	"results",
	"worklog",
};

/* Some of the sections, as a pass has to say only what changes. */
static void add_notes(struct session *s, const struct server_call *c, struct buf *out,
		      enum fault fault)
{
	int64_t most = MAX(c->max_tokens / 12, 20);

	for (size_t i = 0; i < ARRAY_SIZE(notes_names); i++) {
		if (i && random_chance(&s->random, 4000))
			continue;
		buf_addf(out, "<section name=\"%s\">\n", notes_names[i]);
		sample_add(out, &s->random, SAMPLE_PROSE,
			   fault == FAULT_NOTES_LARGE
				   ? 30000
				   : (size_t)random_log_normal(&s->random, 120, 0.8, most));
		if (fault == FAULT_NOTES_LIE && i % 3 == 0) {
			buf_addc(out, '\n');
			add_lie(s, out);
		}
		buf_adds(out, "\n</section>\n");
	}
}

const char *conduct_notes(struct session *s, struct server_call *c, enum fault fault)
{
	AUTO_BUF struct buf text = BUF_INIT;

	if (fault == FAULT_NOTES_EMPTY)
		return "end_turn";
	if (fault == FAULT_NOTES_FORMLESS || fault == FAULT_NOTES_CUT || fault == FAULT_NOTES_CALL)
		add_refuse(s, &text);
	if (fault == FAULT_NOTES_FORMLESS)
		sample_add(&text, &s->random, SAMPLE_PROSE, 400);
	else
		add_notes(s, c, &text, fault);
	speech_text(&c->speech, text.data, text.len);
	if (fault == FAULT_NOTES_CALL) {
		speech_call(&c->speech, "call_notes", "read", "{\"path\":\"a\",\"text\":\"b\"}",
			    23);
		return "tool_use";
	}
	return fault == FAULT_NOTES_CUT ? "max_tokens" : "end_turn";
}
