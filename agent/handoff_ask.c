/*
 * handoff_ask.c - see handoff_ask.h.
 *
 * Tags and lists, as in summaries: commands and code in JSON strings come back broken. The call goes through ask_side
 * like a compaction's, so it looks at no threshold and triggers nothing (H11). Made-up rules are taken out
 * before anything is read (X2).
 */
#include "agent/handoff_ask.h"

#include <ctype.h>
#include <string.h>

#include "agent/ask.h"
#include "agent/context/epoch.h"
#include "agent/events.h"
#include "agent/state.h"
#include "base/memory.h"
#include "base/text.h"

#define LIST_MOST  30
#define TEXT_BYTES 1500

static const char opening[] =
	"Do not call any tool in this answer: a call is not run, and the answer is then lost.\n\n"
	"This conversation ends here, and the work goes on in a new one that starts from a handoff "
	"document and the working tree alone. Goal, user messages, constraints, changed files, "
	"commits, commands and failing output are put into the document by program. You add what "
	"only you know. Write for somebody who sees nothing of this conversation.\n\n"
	"Form (leave out a section where there is nothing; lists have one item a line):\n"
	"<handoff>\n"
	"<done_means>\n- a criterion that can be checked\n</done_means>\n"
	"<finished>\n- what is finished, and how it was checked\n</finished>\n"
	"<point>\nfile: path\nfunction: name\ntest: name\ncommand: shell line\n"
	"one or two sentences: what is being done there, and how far it is\n</point>\n"
	"<ruled_out>\n- approach: why it does not work\n</ruled_out>\n"
	"<decisions>\n- decision: why\n</decisions>\n"
	"<temporary>\n- what is only for now, and what holds only under which "
	"condition\n</temporary>\n"
	"<risks>\n- what may go wrong\n</risks>\n"
	"<first_action>\nfile: path\ncommand: shell line\none sentence: what to do first, down to "
	"file, "
	"test or command\n</first_action>\n"
	"</handoff>\n"
	"Of `file`, `function`, `test` and `command` write the lines that apply, exactly as they "
	"were "
	"used here.";

static const char closing[] =
	"\nAnswer with the <handoff> block and nothing else. Do not call any tool.";

struct message *handoff_request(const struct handoff *handoff, const char *wrong)
{
	struct message *m = message_new(MESSAGE_USER);
	AUTO_BUF struct buf text = BUF_INIT;

	buf_adds(&text, opening);
	if (handoff->why)
		buf_addf(&text, "\n\nWhy it ends: %s.", handoff->why);
	if (wrong)
		buf_addf(&text,
			 "\n\nYour last answer was checked against the records and refused:\n%s",
			 wrong);
	buf_adds(&text, closing);
	message_add_text(m, ORIGIN_NUDGE, text.data, text.len);
	return m;
}

/* ---- reading ---- */

struct span {
	const char *at;
	size_t n;
};

static struct span trim(const char *at, const char *end)
{
	while (at < end && isspace((unsigned char)*at))
		at++;
	while (end > at && isspace((unsigned char)end[-1]))
		end--;
	return (struct span){at, (size_t)(end - at)};
}

/* The last whole block of this tag; n 0: there is none. */
static struct span find_block(const char *s, size_t n, const char *tag)
{
	AUTO_FREE char *start = mem_printf("<%s>", tag);
	AUTO_FREE char *stop = mem_printf("</%s>", tag);
	const char *at = NULL, *end = NULL;

	for (const char *p = s; (p = memmem(p, n - (size_t)(p - s), stop, strlen(stop))); p++)
		end = p;
	for (const char *p = s; end && (p = memmem(p, (size_t)(end - p), start, strlen(start)));
	     p++)
		at = p + strlen(start);
	return at ? trim(at, end) : (struct span){s, 0};
}

static bool says_nothing(struct span s)
{
	static const char *const words[] = {"none", "none.", "-", "n/a", "nothing", "nothing."};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (s.n == strlen(words[i]) && text_find_nocase(s.at, s.n, words[i]))
			return true;
	return s.n == 0;
}

static struct handoff_statement *add_text(struct handoff *h, enum handoff_part_name part,
					  struct span s)
{
	return handoff_add(h, part, HANDOFF_FROM_MODEL, s.at,
			   text_floor(s.at, s.n, MIN(s.n, (size_t)TEXT_BYTES)));
}

/* A model says again what stood in the document that it began from: once is enough, in the place of the newest. What a user or a
 * record says keeps its own. */
static void say_once(struct handoff *h, enum handoff_part_name part)
{
	const struct handoff_part *list = &h->parts[part];
	size_t newest = list->n - 1;

	for (size_t i = 0; i < newest; i++) {
		if (strcmp(list->list[i].text, list->list[newest].text) != 0)
			continue;
		handoff_remove(h, part, list->list[i].origin == HANDOFF_FROM_MODEL ? i : newest);
		return;
	}
}

/* Items begin with a dash; lines without one go on with the item before. */
static size_t take_list(struct handoff *h, enum handoff_part_name part, struct span block)
{
	const char *end = block.at + block.n, *at = block.at;
	size_t taken = 0;

	while (at < end && taken < LIST_MOST) {
		const char *next = at;

		do {
			const char *lf = memchr(next, '\n', (size_t)(end - next));
			next = lf ? lf + 1 : end;
		} while (next < end && *next != '-' && *next != '*');
		struct span item = trim(at, next);
		if (item.n && (*item.at == '-' || *item.at == '*'))
			item = trim(item.at + 1, item.at + item.n);
		if (!says_nothing(item)) {
			struct handoff_statement *s = add_text(h, part, item);

			s->state = part == HANDOFF_FINISHED ? HANDOFF_CLAIMED : HANDOFF_NO_STATE;
			say_once(h, part);
			taken++;
		}
		at = next;
	}
	return taken;
}

/* "file: src/a.c" with or without marks of code round the value. */
static bool take_field(struct handoff_statement *s, struct span line)
{
	const struct {
		const char *name;
		char **member;
	} rows[] = {{"file", &s->file},
		    {"function", &s->function},
		    {"test", &s->test},
		    {"command", &s->command}};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		size_t len = strlen(rows[i].name);

		if (line.n <= len || line.at[len] != ':' || memcmp(line.at, rows[i].name, len) != 0)
			continue;
		struct span value = trim(line.at + len + 1, line.at + line.n);
		if (value.n > 2 && *value.at == '`' && value.at[value.n - 1] == '`')
			value = (struct span){value.at + 1, value.n - 2};
		if (!says_nothing(value))
			handoff_setn(rows[i].member, value.at, value.n);
		return true;
	}
	return false;
}

/* In the place of what records said, whose fields stay where the model names none. Text alone replaces nothing that
 * is concrete. */
static bool take_one(struct handoff *h, enum handoff_part_name part, struct span block)
{
	struct handoff_statement given = {.text = NULL};
	const struct handoff_statement *old = handoff_the(h, part);
	AUTO_BUF struct buf text = BUF_INIT;
	const char *end = block.at + block.n;

	for (const char *at = block.at; at < end;) {
		const char *lf = memchr(at, '\n', (size_t)(end - at));
		struct span line = trim(at, lf ? lf : end);

		if (line.n && !take_field(&given, line)) {
			buf_adds(&text, text.len ? " " : "");
			buf_add(&text, line.at, line.n);
		}
		at = lf ? lf + 1 : end;
	}
	bool concrete = given.file || given.function || given.test || given.command;
	bool good = text.len && (concrete || !old);
	if (good) {
		if (old)
			handoff_remove(h, part, 0);
		struct handoff_statement *s = add_text(h, part, (struct span){text.data, text.len});
		s->file = take_ptr(given.file);
		s->function = take_ptr(given.function);
		s->test = take_ptr(given.test);
		s->command = take_ptr(given.command);
	}
	free(given.file);
	free(given.function);
	free(given.test);
	free(given.command);
	return good;
}

/* A part that the model filled is not missing any more. */
static void no_longer_missing(struct handoff *h, const char *key)
{
	struct handoff_part *missing = &h->parts[HANDOFF_MISSING];
	size_t n = strlen(key);

	for (size_t i = missing->n; i > 0; i--) {
		const char *text = missing->list[i - 1].text;

		if (!strncmp(text, key, n) && text[n] == ':')
			handoff_remove(h, HANDOFF_MISSING, i - 1);
	}
}

int handoff_take_judgement(struct handoff *h, const char *answer, size_t n, struct err *err)
{
	static const enum handoff_part_name parts[] = {
		HANDOFF_DONE_MEANS, HANDOFF_FINISHED,  HANDOFF_POINT, HANDOFF_RULED_OUT,
		HANDOFF_DECISIONS,  HANDOFF_TEMPORARY, HANDOFF_RISKS, HANDOFF_FIRST_ACTION,
	};
	struct span all = find_block(answer, n, "handoff");
	size_t taken = 0;

	if (!all.n)
		return err_set(err, ERR_INVALID, "the answer has no whole <handoff> block");
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		const char *key = handoff_part_key(parts[i]);
		struct span block = find_block(all.at, all.n, key);
		bool one = handoff_part_flags(parts[i]) & HANDOFF_ONE;
		size_t got = !block.n ? 0
			     : one    ? take_one(h, parts[i], block)
				      : take_list(h, parts[i], block);

		if (got)
			no_longer_missing(h, key);
		taken += got;
	}
	if (!taken)
		return err_set(err, ERR_INVALID, "the <handoff> block says nothing");
	h->facts_only = false;
	return 0;
}

/* ---- asking ---- */

/* X2, trap 16: as in summaries. */
static void drop_inventions(struct agent *a, const char *said, size_t n, struct buf *clean)
{
	struct user_words_check check = {.summary = said, .summary_len = n};
	AUTO_FREE const char **also = instructions_texts(&a->instructions, &check.n_also);
	struct user_words_findings found = {0};

	check.also = also;
	if (!user_words_check(&a->words, &check, &found) && found.invented)
		event_warning(a->channel, "%zu rules that nobody gave were taken out of a handoff",
			      found.invented);
	user_words_clean(said, n, &found, clean);
	user_words_findings_release(&found);
}

static int take_answer(struct agent *a, struct handoff *h, struct stream_answer *answer,
		       struct err *why)
{
	AUTO_BUF struct buf said = BUF_INIT, clean = BUF_INIT;
	const struct message *m = answer->message;

	if (message_count(m, BLOCK_TOOL_CALL))
		return err_set(why, ERR_INVALID, "the answer calls a tool");
	if (answer->stop == STOP_MAX_TOKENS || answer->stop == STOP_WINDOW)
		return err_set(why, ERR_INVALID, "the answer was cut at its limit");
	for (size_t i = 0; i < m->n_blocks; i++)
		if (m->blocks[i].kind == BLOCK_TEXT)
			buf_add(&said, m->blocks[i].text, m->blocks[i].text_len);
	drop_inventions(a, buf_str(&said), said.len, &clean);
	return handoff_take_judgement(h, buf_str(&clean), clean.len, why);
}

static int ask_once(struct agent *a, struct handoff *h, struct message *request, struct err *why,
		    struct err *err)
{
	size_t n = a->view.n + 1;
	AUTO_FREE struct message **list = mem_array(NULL, n, sizeof(*list));
	int64_t estimate =
		ledger_used(&a->ledger) + ledger_estimate_text(&a->ledger, request->blocks[0].text,
							       request->blocks[0].text_len);
	struct ask_result r = {.ttft_ms = -1};
	int rc;

	memcpy(list, a->view.list, a->view.n * sizeof(*list));
	list[n - 1] = request;
	/* I3: what the server is bound to refuse needs no call to be known. */
	if (estimate > a->budget.effective) {
		err_set(why, ERR_TOO_LARGE, "the window leaves no room to ask");
		return 1;
	}
	event_state(a->channel, ACTIVITY_COMPACTING, "handoff");
	rc = ask_side(a, CALL_COMPACT, list, n, estimate,
		      MIN(a->budget.reserve, a->budget.max_output), &r, err);
	if (rc < 0)
		return -1;
	if (rc > 0) {
		err_set(why, ERR_INVALID, "%s", r.why);
		return 1;
	}
	rc = take_answer(a, h, &r.answer, why) < 0;
	stream_answer_release(&r.answer);
	return rc;
}

int handoff_ask(struct agent *a, struct handoff *handoff, const char *wrong, struct err *why,
		struct err *err)
{
	struct message *request = handoff_request(handoff, wrong);

	view_sync(&a->view, &a->conversation);
	request->uid = conversation_take_uid(&a->conversation);
	view_own(&a->view, request);
	return ask_once(a, handoff, request, why, err);
}
