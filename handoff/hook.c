/*
 * hook.c - the table of events, matchers, and the reading of a hook's output.
 *
 * What a hook prints is the output of some program: it may be a megabyte, half a JSON value, or text
 * that a web page put into its mouth. So it passes three steps in this order: by its exit status it
 * counts or does not; by its first character it is JSON or plain text; and what of it is text loses
 * control sequences and all above the limit. Nothing in it can make it anything but data (X2).
 *
 *   end of the process       means
 *   exit 0                   stdout counts: a JSON object by its fields, anything else is text
 *   exit 2                   deny, stderr is the reason (a failure where there is nothing to deny)
 *   other status, signal     a failure
 *   time limit               a failure
 *
 * A failure is told to the user and otherwise changes nothing; of a hook that is required it denies.
 */
#include "handoff/hook.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/memory.h"
#include "base/text.h"

#define REASON_CHARS 2000
#define LINE_CHARS   300 /* of a failure's own words */

static const struct {
	const char *name, *subjects;
	unsigned flags;
} events[] = {
#define HOOK_ROW(id, name, subjects, flags) {name, subjects, flags},
	HOOK_EVENTS(HOOK_ROW)
#undef HOOK_ROW
};

static const char *const later[] = {"SubagentStart", "SubagentStop", "PreReset", "Stop"};

const char *hook_event_name(enum hook_event event)
{
	return events[event].name;
}

const char *hook_event_subjects(enum hook_event event)
{
	return events[event].subjects;
}

unsigned hook_event_flags(enum hook_event event)
{
	return events[event].flags;
}

int hook_event_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(events); i++) {
		if (strcmp(events[i].name, name) == 0)
			return (int)i;
	}
	return -1;
}

bool hook_event_is_later(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(later); i++) {
		if (strcmp(later[i], name) == 0)
			return true;
	}
	return false;
}

bool hook_matches(const char *matcher, const char *subject)
{
	if (!matcher || !*matcher)
		return true;
	while (*matcher) {
		size_t n = strcspn(matcher, "|");
		AUTO_FREE char *pattern = mem_strndup(matcher, n);
		if (fnmatch(pattern, subject, FNM_NOESCAPE) == 0)
			return true;
		matcher += n + (matcher[n] == '|');
	}
	return false;
}

/* ---- text ---- */

/* Bytes of the first `chars` characters. */
static size_t head_bytes(const char *s, size_t n, size_t chars)
{
	size_t at = 0;

	while (at < n && chars--)
		at = text_ceil(s, n, at + 1);
	return at;
}

static size_t count_chars(const char *s, size_t n)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++)
		count += ((unsigned char)s[i] & 0xc0) != 0x80;
	return count;
}

/* Appends s printable, blanks at both ends gone; longer than `chars` it keeps its head and its tail (T4). */
static void add_text(struct buf *out, const char *s, size_t n, size_t chars, bool one_line)
{
	AUTO_BUF struct buf clean = BUF_INIT;

	text_printable(&clean, s, n, one_line);
	const char *text = buf_str(&clean);
	size_t from = strspn(text, " \t\n"), to = clean.len;
	while (to > from && strchr(" \t\n", text[to - 1]))
		to--;
	text += from;
	n = to - from;
	size_t count = count_chars(text, n);
	if (count <= chars) {
		buf_add(out, text, n);
		return;
	}
	char mark[80];
	int len = snprintf(mark, sizeof(mark), "\n[... %zu characters of the hook left out ...]\n",
			   count - chars);
	size_t room = chars - MIN((size_t)len, chars / 2), head = room * 2 / 3;
	buf_add(out, text, head_bytes(text, n, head));
	buf_add(out, mark, (size_t)len);
	size_t tail = head_bytes(text, n, count - (room - head));
	buf_add(out, text + tail, n - tail);
}

/* ---- JSON ---- */

static void fail(struct hook_answer *a, const char *what, const char *detail, size_t n)
{
	struct buf line = BUF_INIT;

	buf_adds(&line, what);
	if (n) {
		buf_adds(&line, ": ");
		add_text(&line, detail, n, LINE_CHARS, true);
	}
	free(a->failure);
	a->failure = buf_take(&line);
}

static void deny(struct hook_answer *a, const char *reason, size_t n)
{
	struct buf text = BUF_INIT;

	add_text(&text, reason, n, REASON_CHARS, false);
	if (!text.len)
		buf_adds(&text, "no reason was given");
	a->decision = HOOK_DENY;
	free(a->reason);
	a->reason = buf_take(&text);
}

/* 0 also if the field is not there; -1 and a failure if it is no string. */
static int field(struct hook_answer *a, struct json_object *object, const char *key,
		 struct json_object **ret)
{
	*ret = json_get(object, key);
	if (!*ret || json_object_is_type(*ret, json_type_string))
		return 0;
	fail(a, "its JSON has no text in the field", key, strlen(key));
	return -1;
}

/* Words of both generations of the public form. A person's answer ("ask") cannot be had here. */
static int take_decision(struct hook_answer *a, struct json_object *object, const char *key,
			 const char *reason_key)
{
	struct json_object *word, *reason;

	if (field(a, object, key, &word) < 0 || field(a, object, reason_key, &reason) < 0)
		return -1;
	if (!word)
		return 0;
	const char *text = json_object_get_string(word);
	if (!strcmp(text, "block") || !strcmp(text, "deny")) {
		deny(a, reason ? json_object_get_string(reason) : "",
		     reason ? (size_t)json_object_get_string_len(reason) : 0);
	} else if (!strcmp(text, "approve") || !strcmp(text, "allow")) {
		a->decision = HOOK_ALLOW;
	} else {
		fail(a, "its decision is none of allow, approve, deny, block", text, strlen(text));
		return -1;
	}
	return 0;
}

static int take_text(struct hook_answer *a, struct json_object *object, const char *key)
{
	struct json_object *value;

	if (field(a, object, key, &value) < 0)
		return -1;
	if (!value)
		return 0;
	if (a->text.len)
		buf_addc(&a->text, '\n');
	buf_add(&a->text, json_object_get_string(value), (size_t)json_object_get_string_len(value));
	return 0;
}

/* Fills a->text with what is still raw. */
static int take_object(struct hook_answer *a, struct json_object *object)
{
	struct json_object *nested = json_obj(object, "hookSpecificOutput");

	if (take_decision(a, object, "decision", "reason") < 0 ||
	    take_text(a, object, "additionalContext") < 0 ||
	    take_text(a, object, "instructions") < 0)
		return -1;
	if (!nested)
		return 0;
	if (take_decision(a, nested, "permissionDecision", "permissionDecisionReason") < 0)
		return -1;
	return take_text(a, nested, "additionalContext");
}

static void take_output(struct hook_answer *a, const struct hook_result *r)
{
	size_t blanks = 0;
	AUTO_JSON struct json_object *object = NULL;
	struct err err = ERR_INIT;

	while (blanks < r->out_len && memchr(" \t\r\n", r->out[blanks], 4))
		blanks++;
	if (blanks == r->out_len)
		return;
	if (r->out[blanks] != '{') {
		buf_add(&a->text, r->out, r->out_len);
		return;
	}
	if (json_parse(r->out, r->out_len, &object, &err) < 0)
		fail(a, "it printed what begins as JSON and is none", err.message,
		     strlen(err.message));
	else
		take_object(a, object);
}

/* ---- one result ---- */

static void take_status(struct hook_answer *a, const struct hook_result *r)
{
	char how[80];
	int status = r->wait_status;

	if (r->timed_out) {
		snprintf(how, sizeof(how), "it reached its time limit of %lld ms",
			 (long long)r->limit_ms);
		fail(a, how, "", 0);
	} else if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
		take_output(a, r);
	} else if (WIFEXITED(status) && WEXITSTATUS(status) == 2) {
		deny(a, r->err, r->err_len);
	} else {
		if (WIFSIGNALED(status))
			snprintf(how, sizeof(how), "it was killed by signal %d", WTERMSIG(status));
		else
			snprintf(how, sizeof(how), "it exited with status %d", WEXITSTATUS(status));
		fail(a, how, r->err, r->err_len);
	}
}

/* A failed hook says nothing: half of what it meant may mean the opposite. */
static void drop(struct hook_answer *a)
{
	a->decision = HOOK_UNDECIDED;
	free(take_ptr(a->reason));
	buf_release(&a->text);
}

void hook_read(const struct hook_result *r, struct hook_answer *ret)
{
	unsigned flags = hook_event_flags(r->event);
	struct buf raw;

	*ret = (struct hook_answer){.text = BUF_INIT};
	take_status(ret, r);
	if (ret->decision == HOOK_DENY && !(flags & HOOK_DECIDES))
		fail(ret, "there is nothing that it could deny", ret->reason, strlen(ret->reason));
	if (ret->failure) {
		drop(ret);
		if (r->required && (flags & HOOK_DECIDES)) {
			AUTO_FREE char *why = mem_printf("the hook failed: %s", ret->failure);
			deny(ret, why, strlen(why));
		}
		return;
	}
	raw = ret->text;
	ret->text = (struct buf)BUF_INIT;
	if (flags & HOOK_ADDS)
		add_text(&ret->text, buf_str(&raw), raw.len, HOOK_TEXT_CHARS, false);
	buf_release(&raw);
}

void hook_answer_release(struct hook_answer *answer)
{
	free(answer->reason);
	free(answer->failure);
	buf_release(&answer->text);
	*answer = (struct hook_answer){.text = BUF_INIT};
}
