/*
 * watch.c - see watch.h.
 *
 * Events are scanned for keys, not parsed: a key is `"name"` followed by a colon, which cannot
 * occur inside a JSON string, where the quotes would be escaped. Only what looks like an error is
 * parsed, since tool arguments may be objects that have an `error` of their own.
 *
 * OpenAI's form is whole with a finish_reason, since some servers send nothing after it;
 * Anthropic's only with message_stop, because blocks and usage before it may still be missing.
 */
#include "orchestrator/gateway/watch.h"

#include <string.h>

#include "base/json.h"
#include "base/memory.h"

#define ERROR_MAX (64 << 10)

static int on_event(const char *name, const char *data, size_t n, void *arg, struct err *err);

void watch_init(struct watch *w, bool anthropic)
{
	*w = (struct watch){.anthropic = anthropic, .error = BUF_INIT_MAX(ERROR_MAX)};
	sse_init(&w->sse, on_event, w);
}

void watch_release(struct watch *w)
{
	sse_release(&w->sse);
	buf_release(&w->error);
}

/* The first byte of the value of the next `"key":` in [at, end), or NULL. */
static const char *find_value(const char *at, const char *end, const char *key)
{
	size_t len = strlen(key);
	while ((at = memmem(at, (size_t)(end - at), key, len))) {
		at += len;
		while (at < end && (*at == ' ' || *at == '\t' || *at == '\n'))
			at++;
		if (at < end && *at == ':') {
			for (at++; at < end && (*at == ' ' || *at == '\t' || *at == '\n');)
				at++;
			return at < end ? at : NULL;
		}
	}
	return NULL;
}

/* Some value of that key is neither null nor empty ("", [], {}). */
static bool has_filled(const char *data, size_t n, const char *key)
{
	const char *end = data + n;
	for (const char *at = data; (at = find_value(at, end, key));) {
		bool empty =
			end - at >= 2 && (memcmp(at, "\"\"", 2) == 0 || memcmp(at, "[]", 2) == 0 ||
					  memcmp(at, "{}", 2) == 0);
		if (!empty && *at != 'n')
			return true;
	}
	return false;
}

static bool value_is(const char *data, size_t n, const char *key, const char *value)
{
	const char *at = find_value(data, data + n, key);
	size_t len = strlen(value);
	return at && (size_t)(data + n - at) > len + 1 && *at == '"' &&
	       memcmp(at + 1, value, len) == 0 && at[len + 1] == '"';
}

static void take_error(struct watch *w, const char *data, size_t n)
{
	w->failed = true;
	buf_add(&w->error, data, MIN(n, (size_t)ERROR_MAX));
}

static bool top_level_error(const char *data, size_t n)
{
	if (!has_filled(data, n, "\"error\""))
		return false;
	AUTO_JSON struct json_object *doc = NULL;
	if (json_parse(data, n, &doc, NULL))
		return false;
	struct json_object *first = json_len(doc) > 0 ? json_at(doc, 0) : doc;
	return json_get(first, "error") != NULL;
}

static void look_anthropic(struct watch *w, const char *name, const char *data, size_t n)
{
	/* Imitations leave the event's name out; then its type stands in the data, first. */
	bool named = strcmp(name, "message") != 0;
#define IS(word) (named ? strcmp(name, word) == 0 : value_is(data, n, "\"type\"", word))
	if (IS("ping"))
		return;
	if (IS("error") || (!named && top_level_error(data, n))) {
		take_error(w, data, n);
		return;
	}
	w->progress = true;
	if (IS("message_stop"))
		w->finished = w->last = true;
	else if (IS("content_block_delta") || IS("content_block_start"))
		w->content = true;
	else if (IS("message_delta"))
		w->usage = true;
#undef IS
}

static bool openai_content(const char *data, size_t n)
{
	static const char *const keys[] = {"\"content\"",	    "\"tool_calls\"",
					   "\"reasoning_content\"", "\"reasoning\"",
					   "\"reasoning_text\"",    "\"reasoning_details\"",
					   "\"refusal\"",	    "\"function_call\""};
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		if (has_filled(data, n, keys[i]))
			return true;
	}
	return false;
}

/* Finish reasons that say that the answer is not whole through the server's fault (trap 58). */
static bool broken_finish(const char *data, size_t n)
{
	static const char *const words[] = {"error", "network_error",
					    "insufficient_system_resource"};
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (value_is(data, n, "\"finish_reason\"", words[i]))
			return true;
	}
	return false;
}

static void look_openai(struct watch *w, const char *name, const char *data, size_t n)
{
	if (n >= 6 && memcmp(data, "[DONE]", 6) == 0) {
		/* Counts without any answer are for the agent to judge: a local server whose window
		 * was overrun ends so (wire.md 3, row 16). */
		w->finished = w->finished || (w->usage && !w->content);
		w->last = w->finished;
		return;
	}
	if (strcmp(name, "error") == 0 || top_level_error(data, n) || broken_finish(data, n)) {
		take_error(w, data, n);
		return;
	}
	if (openai_content(data, n))
		w->content = w->progress = true;
	if (has_filled(data, n, "\"finish_reason\""))
		w->finished = w->progress = true;
	if (has_filled(data, n, "\"usage\""))
		w->usage = true;
}

static int on_event(const char *name, const char *data, size_t n, void *arg, struct err *err)
{
	struct watch *w = arg;
	if (w->failed || w->last)
		return 0;
	if (w->anthropic)
		look_anthropic(w, name, data, n);
	else
		look_openai(w, name, data, n);
	return 0;
}

int watch_feed(struct watch *w, const char *bytes, size_t n, struct err *err)
{
	return w->failed || w->last ? 0 : sse_feed(&w->sse, bytes, n, err);
}

int watch_end(struct watch *w, struct err *err)
{
	return w->failed || w->last ? 0 : sse_finish(&w->sse, err);
}
