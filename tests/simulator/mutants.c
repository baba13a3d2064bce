/*
 * mutants.c - the table of mutants.
 *
 * Each is as small as it can be, so that nothing but the rule in question can notice it.
 */
#include "mutants.h"

#include <fcntl.h>
#include <stdio.h>

#include "agent/compact.h"
#include "base/file.h"
#include "base/memory.h"

#define LATE 4 /* main requests before something old is touched */

/* ---- tools of a saboteur ---- */

static void put(struct buf *body, size_t at, size_t remove, const char *text)
{
	AUTO_BUF struct buf copy = BUF_INIT;

	buf_add(&copy, body->data, at);
	buf_adds(&copy, text);
	buf_add(&copy, body->data + at + remove, body->len - at - remove);
	buf_clear(body);
	buf_add(body, copy.data, copy.len);
}

/* Offset behind the first (or last) occurrence of a text; 0: there is none. */
static size_t behind(const struct buf *body, const char *text, bool last)
{
	size_t n = strlen(text), found = 0;

	for (size_t at = 0; at + n <= body->len; at++) {
		const char *hit = memmem(body->data + at, body->len - at, text, n);

		if (!hit)
			break;
		at = (size_t)(hit - body->data);
		found = at + n;
		if (!last)
			break;
	}
	return found;
}

/* Behind the object that begins at `at`. */
static size_t object_end(const struct buf *body, size_t at)
{
	int depth = 0;
	bool in_string = false;

	for (; at < body->len; at++) {
		char c = body->data[at];

		if (in_string && c == '\\')
			at++;
		else if (c == '"')
			in_string = !in_string;
		else if (!in_string && c == '{')
			depth++;
		else if (!in_string && c == '}' && --depth == 0)
			return at + 1;
	}
	return 0;
}

static bool is_late(const struct session *s, const struct server_call *c)
{
	return c->purpose == CALL_MAIN && s->watch.main_requests >= LATE;
}

static bool is_compacted(const struct session *s, const struct server_call *c)
{
	return c->purpose == CALL_MAIN && s->watch.all_compactions > 0;
}

static void anthropic(struct session_plan *p)
{
	p->api = MODEL_API_ANTHROPIC;
	p->dialect = "anthropic";
	p->demands_reasoning = false;
}

static void small(struct session_plan *p)
{
	anthropic(p);
	p->window = p->true_window = 10000;
	p->max_output = p->wanted_output = 2000;
	p->rounds = 60;
	p->max_rounds = 80;
	p->fault_percent = p->interrupt = p->shrink = p->bad_summaries = 0;
	p->compact_off = false;
}

/* ---- I2 ---- */

static void drop_result(struct session *s, const struct server_call *c, struct buf *body)
{
	static const char start[] = "{\"type\":\"tool_result\"";
	size_t at = behind(body, start, true), end;

	if (!at)
		return;
	at -= strlen(start);
	end = object_end(body, at);
	if (body->data[end] == ',')
		end++;
	else if (body->data[at - 1] == ',')
		at--;
	put(body, at, end - at, "");
}

static void wrong_id(struct session *s, const struct server_call *c, struct buf *body)
{
	size_t at = behind(body, "\"tool_use_id\":\"", true);

	if (at)
		put(body, at, 1, "X");
}

static void empty_text(struct session *s, const struct server_call *c, struct buf *body)
{
	size_t at = behind(body, "\"role\":\"user\",\"content\":[", false);

	put(body, at, 0, "{\"type\":\"text\",\"text\":\" \\n\"},");
}

static void bad_bytes(struct session *s, const struct server_call *c, struct buf *body)
{
	put(body, behind(body, "\"text\":\"", false), 0, "\xed\xa0\xbd");
}

static void cut_body(struct session *s, const struct server_call *c, struct buf *body)
{
	buf_truncate(body, body->len - 1);
}

/* ---- I4, T3, W11, W12 ---- */

static void old_message(struct session *s, const struct server_call *c, struct buf *body)
{
	if (is_late(s, c))
		put(body, behind(body, "Environment:", false), 0, " here");
}

static void new_head(struct session *s, const struct server_call *c, struct buf *body)
{
	if (is_late(s, c))
		put(body, behind(body, "You work", false), 0, " well");
}

static void changed_result(struct session *s, const struct server_call *c, struct buf *body)
{
	size_t at = is_compacted(s, c) ? behind(body, "\"tool_use_id\":\"", false) : 0;

	if (at)
		put(body, at + strcspn(body->data + at, "\"") + strlen("\",\"content\":\""), 0,
		    "again ");
}

static void thinking_plan(struct session_plan *p)
{
	anthropic(p);
	p->thinks = p->bound = true;
}

static void changed_signature(struct session *s, const struct server_call *c, struct buf *body)
{
	size_t at = behind(body, "\"signature\":\"", true);

	if (at)
		put(body, at, 1, body->data[at] == '0' ? "1" : "0");
}

static void more_tokens(struct session *s, const struct server_call *c, struct buf *body)
{
	put(body, behind(body, "\"max_tokens\":", true), 0, "9");
}

static void fifth_marker(struct session *s, const struct server_call *c, struct buf *body)
{
	static const char text[] = "{\"type\":\"text\",\"text\":\"m\",\"cache_control\":{\"type\":"
				   "\"ephemeral\"}},";

	for (int i = 0; i < 5; i++)
		put(body, behind(body, "\"role\":\"user\",\"content\":[", false), 0, text);
}

static void lost_marker(struct session *s, const struct server_call *c, struct buf *body)
{
	static const char mark[] = ",\"cache_control\":{\"type\":\"ephemeral\"}";
	size_t at = behind(body, mark, true);

	if (at)
		put(body, at - strlen(mark), strlen(mark), "");
}

/* ---- X2, X3 ---- */

static void words_plan(struct session_plan *p)
{
	small(p);
	p->interject = 2000;
	p->bad_summaries = 200;
}

static void skip_words(struct session *s, const struct server_call *c, struct buf *body)
{
	const struct buf *list = &s->watch.constraints;

	for (size_t at; is_compacted(s, c) && list->len && (at = behind(body, list->data, false));)
		put(body, at - 2, 1, "");
}

static void put_text(const struct session *s, const struct server_call *c, const struct buf *list,
		     struct buf *body)
{
	if (is_compacted(s, c) && list->len)
		put(body, behind(body, "Environment:", false), 0, list->data);
}

static void keep_invention(struct session *s, const struct server_call *c, struct buf *body)
{
	put_text(s, c, &s->watch.lies, body);
}

static void use_bad_summary(struct session *s, const struct server_call *c, struct buf *body)
{
	put_text(s, c, &s->watch.refuse, body);
}

/* ---- H13, H18 ---- */

static void real_plan(struct session_plan *p)
{
	small(p);
	p->window = p->true_window = 24000;
	p->max_output = p->wanted_output = 4000;
	p->real = true;
	p->files = 6;
	p->rounds = 200;
	p->max_rounds = 220;
}

static void stale_file(struct session *s, const struct server_call *c, struct buf *body)
{
	static const char title[] = ", read again from disk now:", word[] = " revision ";
	size_t at = is_compacted(s, c) ? behind(body, title, true) : 0;
	const char *first = at ? memmem(body->data + at, MIN(body->len - at, (size_t)200), word,
					sizeof(word) - 1)
			       : NULL;

	if (first)
		put(body, (size_t)(first - body->data) + sizeof(word) - 1, 0, "9");
}

static void lose_memory(struct session *s, const struct server_call *c, struct buf *body)
{
	size_t at;

	for (size_t i = 0; i < WORLD_MEMOS && s->world.memos[i]; i++)
		while ((at = behind(body, s->world.memos[i], false)))
			put(body, at - 2, 1, "");
}

/* ---- I3, W2, H10, H11, H12, X1 ---- */

static void uncompacted(struct session_plan *p)
{
	small(p);
	p->true_window = 100000;
	p->compact_off = true;
}

static void above_blocking(struct session *s)
{
	s->agent.budget.closing = s->agent.budget.blocking = INT64_MAX / 2;
	s->agent.forced = FORCED_NOT;
}

static void thresholds_again(struct session *s, const struct server_call *c)
{
	agent_set_budget(&s->agent, NULL);
}

static void warning_late(struct session *s)
{
	s->agent.budget.warning = s->agent.budget.compact + 1;
}

static void full_plan(struct session_plan *p)
{
	small(p);
	p->instructions = 9000;
}

/* A threshold that the fixed part alone passes, and a breaker that forgets. */
static void ignore_breaker(struct session *s)
{
	struct window_budget *b = &s->agent.budget;

	breaker_init(&s->agent.breaker);
	b->compact = b->effective / 5;
	b->warning = b->compact - 1;
}

static void nested(struct session *s, const struct server_call *c)
{
	struct compact_request request = {.trigger = COMPACT_THRESHOLD};

	if (c->purpose == CALL_COMPACT && !s->watch.finding.found)
		compact_now(&s->agent, &request, NULL, NULL);
}

static void nested_notes(struct session *s, const struct server_call *c)
{
	struct compact_request request = {.trigger = COMPACT_THRESHOLD};

	if (c->purpose == CALL_BACKGROUND && !s->watch.finding.found)
		compact_now(&s->agent, &request, NULL, NULL);
}

static void long_small(struct session_plan *p)
{
	small(p);
	p->window = p->true_window = 20000;
	p->max_output = p->wanted_output = 4000;
}

/* As if a pass of the notes that is under way were reason enough to make room. */
static void notes_make_room(struct session *s)
{
	const struct compact_request reactive = {.trigger = COMPACT_REACTIVE};
	struct err e = ERR_INIT;

	if (s->agent.notes.call && !s->watch.finding.found)
		compact_now(&s->agent, &reactive, NULL, &e);
}

/* One agent's threshold becomes that of the other. */
static void share_state(struct session *s, struct session *other)
{
	s->agent.budget.compact = MIN(s->agent.budget.compact, other->agent.budget.compact);
	other->agent.budget.compact = s->agent.budget.compact;
	s->agent.budget.warning = other->agent.budget.warning = s->agent.budget.compact / 2;
}

static void lose_boundary(struct session *s, const char *path)
{
	AUTO_BUF struct buf all = BUF_INIT;
	AUTO_BUF struct buf kept = BUF_INIT;

	if (file_read(AT_FDCWD, path, (size_t)1 << 30, &all, NULL) < 0)
		return;
	for (size_t at = 0; at < all.len;) {
		const char *end = memchr(all.data + at, '\n', all.len - at);
		size_t n = end ? (size_t)(end + 1 - (all.data + at)) : all.len - at;

		if (!memmem(all.data + at, n, "compact_boundary", 16))
			buf_add(&kept, all.data + at, n);
		at += n;
	}
	file_write_atomic(AT_FDCWD, path, kept.data, kept.len, 0600, NULL);
}

static void failing(struct session_plan *p)
{
	small(p);
	p->fault_percent = 2000;
}

static void forget_report(struct session *s)
{
	s->agent.reported = true;
}

static void endless_plan(struct session_plan *p)
{
	small(p);
	p->window = p->true_window = 200000;
	p->rounds = p->max_rounds = 5;
}

static void endless(struct session *s)
{
	s->agent.conversation.round = 1;
	s->answers = 0;
	s->agent.forced = FORCED_NOT;
	s->agent.forced_requests = 0;
}

static const struct mutant mutants[] = {
	{"drop_result", "I2", anthropic, .body = drop_result},
	{"wrong_id", "I2", anthropic, .body = wrong_id},
	{"empty_text", "I2", anthropic, .body = empty_text},
	{"bad_bytes", "I2", anthropic, .body = bad_bytes},
	{"cut_body", "I2", NULL, .body = cut_body},
	{"above_blocking", "I3", uncompacted, .round = above_blocking, .call = thresholds_again},
	{"old_message", "I4", NULL, .body = old_message},
	{"new_head", "I4", NULL, .body = new_head},
	{"warning_late", "W2", NULL, .round = warning_late},
	{"changed_signature", "W11", thinking_plan, .body = changed_signature},
	{"more_tokens", "W12", NULL, .body = more_tokens},
	{"fifth_marker", "H17", anthropic, .body = fifth_marker},
	{"lost_marker", "H17", anthropic, .body = lost_marker},
	{"changed_result", "T3", small, .body = changed_result},
	{"skip_words", "X2", words_plan, .body = skip_words},
	{"keep_invention", "X2", words_plan, .body = keep_invention},
	{"use_bad_summary", "X3", words_plan, .body = use_bad_summary},
	{"ignore_breaker", "H10", full_plan, .round = ignore_breaker},
	{"nested", "H11", small, .call = nested},
	{"nested_notes", "H11", long_small, .call = nested_notes},
	{"notes_make_room", "H11", long_small, .round = notes_make_room},
	{"share_state", "H11", NULL, .pair = share_state},
	{"stale_file", "H13", real_plan, .body = stale_file},
	{"lose_memory", "H18", real_plan, .body = lose_memory},
	{"lose_boundary", "H12", small, .transcript = lose_boundary},
	{"forget_report", "X1", failing, .round = forget_report},
	{"endless", "X1", endless_plan, .round = endless},
};

const struct mutant *mutant_table(size_t *ret_count)
{
	*ret_count = ARRAY_SIZE(mutants);
	return mutants;
}

const struct mutant *mutant_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(mutants); i++)
		if (!strcmp(mutants[i].name, name))
			return &mutants[i];
	return NULL;
}
