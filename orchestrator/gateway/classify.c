/*
 * classify.c - from an error's envelope to a class.
 *
 * Steps, the first that knows decides: codes and types that are unmistakable; tokens-per-minute
 * rows; the veto of rate-limit types; the "too long" table for the statuses in which it can occur;
 * the status itself. Phrases about quota and policy are looked for only in the statuses where
 * providers are known to use them.
 *
 *   judge_rate_row  tokens per minute: overflow if the request alone is above it, else rate limit
 *   judge_coded     quota, refusal, a key that is named invalid with 400
 *   judge_overflow  codes, 413, an empty 400, then the table unless the veto speaks
 *   judge_status    all the rest
 *
 * 429 is never overflow but by the first step: a throttling server counts tokens in its text too
 * (wire.md 1.10, the Bedrock row).
 */
#include "orchestrator/gateway/classify.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"
#include "orchestrator/gateway/phrases.h"

/* An error as the envelopes give it; strings are borrowed from doc or from the struct's own text.
 */
struct envelope {
	struct json_object *doc;   /* owned; NULL if the body is not JSON */
	struct json_object *error; /* the object with message, type, code; borrowed; may be NULL */
	char *text;		 /* message and a proxy's raw cause: what phrases are matched on */
	const char *type, *code; /* "" if absent */
	int number;		 /* a numeric code or status inside the body; 0 if none */
	bool empty;		 /* there was no body at all */
};

void verdict_release(struct verdict *v)
{
	free(v->message);
	v->message = NULL;
}

static bool blank(const char *s, size_t n)
{
	while (n > 0 && isspace((unsigned char)s[n - 1]))
		n--;
	return n == 0;
}

/* The error object of a document: {"error":{}}, [{"error":{}}], {"object":"error"}, {"message"}. */
static struct json_object *find_error(struct json_object *doc)
{
	if (json_len(doc) > 0)
		doc = json_at(doc, 0);
	struct json_object *error = json_obj(doc, "error");
	if (error)
		return error;
	if (strcmp(json_str(doc, "object", ""), "error") == 0 ||
	    strcmp(json_str(doc, "type", ""), "error") == 0)
		return doc;
	/* llama.cpp's stream field carries the object itself; Bedrock has message and __type. */
	if (json_has(doc, "message") &&
	    (json_has(doc, "code") || json_has(doc, "type") || json_has(doc, "__type")))
		return doc;
	return NULL;
}

/* Counted, since a server's text may hold a NUL. False if there is no such string. */
static bool add_string(struct buf *out, struct json_object *obj, const char *key)
{
	const char *s = json_str(obj, key, NULL);
	if (s)
		buf_add(out, s, json_str_len(obj, key));
	return s != NULL;
}

static void add_message(struct buf *out, struct json_object *doc, struct json_object *error)
{
	if (error && add_string(out, error, "message"))
		return;
	if (json_object_is_type(doc, json_type_string))
		buf_adds(out, json_object_get_string(doc));
	else if (!add_string(out, doc, "error") && !add_string(out, doc, "detail"))
		add_string(out, doc, "message");
}

static int error_number(struct json_object *error)
{
	static const char *const names[] = {"code", "status", "status_code"};
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		int64_t n = json_i64(error, names[i], 0);
		const char *s = json_str(error, names[i], NULL);
		if (n == 0 && s && strlen(s) == 3)
			text_parse_i64(s, &n);
		if (n >= 400 && n <= 599)
			return (int)n;
	}
	return 0;
}

static void envelope_read(struct envelope *e, const char *body, size_t n)
{
	struct buf text = BUF_INIT;
	*e = (struct envelope){.type = "", .code = "", .empty = blank(body, n)};
	struct json_object *doc = NULL;
	if (!e->empty && json_parse(body, n, &doc, NULL) == 0) {
		e->doc = doc;
		e->error = find_error(doc);
		add_message(&text, doc, e->error);
		e->type = json_str(e->error, "type", json_str(e->error, "__type", ""));
		e->code = json_str(e->error, "code", json_str(e->error, "status", ""));
		e->number = error_number(e->error);
		/* OpenRouter and others hide the true cause behind their own message. */
		const char *raw = json_str(json_obj(e->error, "metadata"), "raw", NULL);
		if (raw)
			buf_addf(&text, "%s%s", text.len ? "\n" : "", raw);
	}
	if (text.len == 0 && !e->empty)
		buf_add(&text, body, MIN(n, (size_t)CLASSIFY_MESSAGE_MAX));
	/* More than a person is shown is not searched either: a hostile text costs time. */
	buf_truncate(&text, MIN(text.len, (size_t)CLASSIFY_MESSAGE_MAX));
	/* Phrases are C strings: a NUL from outside ends nothing. */
	for (size_t i = 0; i < text.len; i++) {
		if (text.data[i] == '\0')
			text.data[i] = ' ';
	}
	e->text = text.len ? buf_take(&text) : mem_strdup("");
	buf_release(&text);
}

static void envelope_release(struct envelope *e)
{
	json_object_put(e->doc);
	free(e->text);
}

static bool has_word(const char *s, const char *word)
{
	return text_find_nocase(s, strlen(s), word) != NULL;
}

static bool one_of(const struct envelope *e, const char *const *words, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (strcasecmp(e->type, words[i]) == 0 || strcasecmp(e->code, words[i]) == 0)
			return true;
	}
	return false;
}

static bool any_phrase(const char *text, const char *const *phrases, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (has_word(text, phrases[i]))
			return true;
	}
	return false;
}
#define ONE_OF(e, table)	one_of((e), (table), ARRAY_SIZE(table))
#define ANY_PHRASE(text, table) any_phrase((text), (table), ARRAY_SIZE(table))

static const char *const overflow_codes[] = {"context_length_exceeded", "exceed_context_size_error",
					     "request_too_large", "model_context_window_exceeded",
					     "context_window_exceeded"};
static const char *const quota_codes[] = {"insufficient_quota",	  "billing_hard_limit_reached",
					  "billing_error",	  "billing_not_active",
					  "spend_limit_exceeded", "insufficient_balance"};
/* Anthropic says with 400 or 429 that money is out. Gemini's "exceeded your current quota" is not
 * here: it is also the text of its per-minute limits. */
static const char *const quota_phrases[] = {
	"credit balance is too low",  "spend limit",	      "spending limit",
	"specified api usage limits", "insufficient balance", "insufficient credits"};
static const char *const rate_codes[] = {"rate_limit_error",	"rate_limit_exceeded",
					 "throttlingexception", "throttling",
					 "too_many_requests",	"rate_limit_reached"};
static const char *const rate_phrases[] = {"rate limit", "rate_limit", "too many requests",
					   "throttl", "too many tokens, please wait"};
static const char *const refusal_codes[] = {"content_filter", "content_policy_violation",
					    "responsibleaipolicyviolation", "moderation_blocked"};
static const char *const refusal_phrases[] = {"output blocked by content filtering policy",
					      "content management policy",
					      "requires moderation on"};
static const char *const auth_codes[] = {"authentication_error", "invalid_api_key",
					 "permission_error"};
static const char *const false_friends[] = {"string_above_max_length"};

/* What an error inside a 200 stands for, when it names no number. */
static int status_of_type(const struct envelope *e)
{
	static const struct {
		const char *word;
		int status;
	} table[] = {
		{"invalid_request_error", 400}, {"authentication_error", 401},
		{"billing_error", 402},		{"permission_error", 403},
		{"not_found_error", 404},	{"conflict_error", 409},
		{"request_too_large", 413},	{"rate_limit_error", 429},
		{"rate_limit_exceeded", 429},	{"api_error", 500},
		{"server_error", 500},		{"internal_server_error", 500},
		{"timeout_error", 504},		{"overloaded_error", 529},
		{"BadRequestError", 400},	{"INVALID_ARGUMENT", 400},
		{"RESOURCE_EXHAUSTED", 429},	{"UNAVAILABLE", 503},
	};
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		if (strcasecmp(e->type, table[i].word) == 0 ||
		    strcasecmp(e->code, table[i].word) == 0)
			return table[i].status;
	}
	return 0;
}

static void take_numbers(const struct phrase *p, const int64_t *numbers, struct verdict *v)
{
	if (p->used)
		v->used = numbers[p->used - 1];
	if (p->used_too)
		v->used += numbers[p->used_too - 1];
	if (p->limit)
		v->limit = numbers[p->limit - 1];
	if (p->excess)
		v->excess = numbers[p->excess - 1];
}

static bool judge_rate_row(const struct envelope *e, struct verdict *v)
{
	int64_t numbers[PHRASE_NUMBERS];
	const struct phrase *row = phrase_find(e->text, false, true, numbers);
	if (!row)
		return false;
	struct verdict got = {0};
	take_numbers(row, numbers, &got);
	if (got.used > got.limit) {
		v->class = CALL_OVERFLOW;
		v->used = got.used;
		v->limit = got.limit;
	} else {
		v->class = CALL_RATE_LIMIT;
		v->retryable = v->congestion = true;
	}
	return true;
}

static bool judge_overflow(const struct envelope *e, struct verdict *v)
{
	bool request = v->status == 400 || v->status == 413 || v->status == 422 || v->status == 0 ||
		       v->status == 200;
	if (ONE_OF(e, false_friends) || v->status == 429)
		return false;
	/* Mistral and Cerebras answer an overflow with a bare status (rows 31 and 35). */
	bool coded =
		ONE_OF(e, overflow_codes) || v->status == 413 || (v->status == 400 && e->empty);
	if (!coded && ANY_PHRASE(e->text, rate_phrases))
		return false;
	int64_t numbers[PHRASE_NUMBERS];
	const struct phrase *row = phrase_find(e->text, !request, false, numbers);
	if (!row && !coded)
		return false;
	v->class = CALL_OVERFLOW;
	if (row) {
		take_numbers(row, numbers, v);
		v->retryable = v->congestion = row->retries >= 0;
		v->max_retries = row->retries;
	}
	/* llama.cpp has the numbers as fields (row 11). */
	if (v->used == 0)
		v->used = json_i64(e->error, "n_prompt_tokens", 0);
	if (v->limit == 0)
		v->limit = json_i64(e->error, "n_ctx", 0);
	return true;
}

static bool judge_coded(const struct envelope *e, struct verdict *v)
{
	bool client = v->status >= 400 && v->status < 500;
	if (v->status == 402 || ONE_OF(e, quota_codes) ||
	    ((client || v->status == 0) && ANY_PHRASE(e->text, quota_phrases)))
		v->class = CALL_QUOTA;
	else if (ONE_OF(e, refusal_codes) ||
		 ((v->status == 400 || v->status == 403) && ANY_PHRASE(e->text, refusal_phrases)))
		v->class = CALL_REFUSED;
	else if (v->status == 400 && has_word(e->text, "api key not valid"))
		v->class = CALL_AUTH;
	else
		return false;
	return true;
}

static void judge_status(const struct envelope *e, struct verdict *v)
{
	int status = v->status;
	if (status == 429 || ONE_OF(e, rate_codes)) {
		v->class = CALL_RATE_LIMIT;
		v->retryable = v->congestion = true;
	} else if (status == 401 || status == 403 || status == 407 || ONE_OF(e, auth_codes)) {
		v->class = CALL_AUTH;
	} else if (status == 408 || status == 409 || status >= 500) {
		v->class = CALL_OVERLOAD;
		v->retryable = true;
		v->congestion = status == 503 || status == 529;
	} else if (status >= 300) {
		v->class = CALL_BAD_REQUEST;
	} else {
		/* An error in a stream that says nothing of its kind: the server's own trouble. */
		v->class = CALL_OVERLOAD;
		v->retryable = true;
	}
}

/* Some texts are pages of HTML or empty: what a person reads must still say what happened. */
static char *make_message(int status, const struct envelope *e)
{
	struct buf out = BUF_INIT;
	if (blank(e->text, strlen(e->text)))
		buf_addf(&out, "the provider answered with status %d and no text", status);
	else
		text_printable(&out, e->text, strlen(e->text), false);
	buf_truncate(&out, text_floor(buf_str(&out), out.len,
				      MIN(out.len, (size_t)CLASSIFY_MESSAGE_MAX)));
	return buf_take(&out);
}

void classify_error(int status, const char *body, size_t n, struct verdict *ret)
{
	struct envelope e;
	envelope_read(&e, body, n);
	*ret = (struct verdict){.status = status, .max_retries = -1};
	/* Inside a 200 the number in the body is the status; one that contradicts an HTTP status is
	 * ignored (early llama.cpp: 400 with code 500). */
	if (status < 300)
		ret->status = e.number ? e.number : status_of_type(&e);
	if (!judge_rate_row(&e, ret) && !judge_coded(&e, ret) && !judge_overflow(&e, ret))
		judge_status(&e, ret);
	ret->message = make_message(status, &e);
	envelope_release(&e);
}

bool classify_is_error(const char *body, size_t n)
{
	AUTO_JSON struct json_object *doc = NULL;
	if (json_parse(body, n, &doc, NULL))
		return false;
	struct json_object *first = json_len(doc) > 0 ? json_at(doc, 0) : doc;
	return find_error(doc) || json_str(first, "error", NULL) || json_str(first, "detail", NULL);
}
