/*
 * dialogue.h - a conversation with a rig: what a careful client sends, turn after turn, in either
 * protocol. Tests then break one thing.
 */
#ifndef BATON_TESTS_REHEARSAL_DIALOGUE_H
#define BATON_TESTS_REHEARSAL_DIALOGUE_H

#include "rehearsal_rig.h"

struct dialogue {
	struct rig rig;
	bool openai;
	struct json_object *request, *messages; /* messages is borrowed from request */
	struct json_object *answer;		/* the last one, as a document */
};

static inline struct json_object *json_of(const char *text)
{
	struct json_object *value = NULL;
	struct err err = ERR_INIT;

	if (json_parse(text, strlen(text), &value, &err) < 0)
		fail_msg("%s in %s", err.message, text);
	return value;
}

static inline void dialogue_open(struct dialogue *d, bool openai, const char *scenario)
{
	*d = (struct dialogue){.openai = openai};
	rig_open(&d->rig, scenario);
	d->request = json_of(openai ? "{\"model\":\"m\",\"tools\":[{\"type\":\"function\","
				      "\"function\":{\"name\":\"read\"}},"
				      "{\"type\":\"function\",\"function\":{\"name\":\"report\"}}],"
				      "\"messages\":[]}"
				    : "{\"model\":\"m\",\"max_tokens\":1000,\"thinking\":{\"type\":"
				      "\"adaptive\"},\"tools\":["
				      "{\"name\":\"read\",\"input_schema\":{\"type\":\"object\"}},"
				      "{\"name\":\"report\",\"input_schema\":{\"type\":\"object\"}}"
				      "],\"messages\":[]}");
	d->messages = json_arr(d->request, "messages");
}

static inline void dialogue_close(struct dialogue *d)
{
	json_object_put(d->request);
	json_object_put(d->answer);
	rig_close(&d->rig);
}

static inline void dialogue_say(struct dialogue *d, const char *text)
{
	struct json_object *m = json_of("{\"role\":\"user\"}");

	json_set_str(m, "content", text);
	json_object_array_add(d->messages, m);
}

static inline int dialogue_send(struct dialogue *d)
{
	const char *body = json_object_to_json_string_ext(d->request, JSON_C_TO_STRING_PLAIN);

	return d->openai ? rig_openai(&d->rig, body) : rig_anthropic(&d->rig, body);
}

/* Sends, and puts the answer at the end of the history as a good client does. */
static inline void dialogue_turn(struct dialogue *d)
{
	if (dialogue_send(d) != 200)
		fail_msg("%s", rig_body(&d->rig));
	json_object_put(d->answer);
	d->answer = rig_json(&d->rig);
	if (d->openai) {
		json_object_array_add(
			d->messages,
			json_object_get(
				json_get(json_at(json_arr(d->answer, "choices"), 0), "message")));
		return;
	}
	struct json_object *m = json_of("{\"role\":\"assistant\"}");
	json_set(m, "content", json_object_get(json_get(d->answer, "content")));
	json_object_array_add(d->messages, m);
}

/* The calls of the last answer: id of the i-th, or NULL. */
static inline const char *dialogue_call(const struct dialogue *d, size_t i)
{
	struct json_object *last = json_at(d->messages, json_len(d->messages) - 1);
	struct json_object *list = json_arr(last, d->openai ? "tool_calls" : "content");

	for (size_t k = 0; k < json_len(list); k++) {
		const char *id = json_str(json_at(list, k), "id", NULL);

		if (id && i-- == 0)
			return id;
	}
	return NULL;
}

/* Answers every call of the last answer; results[i] belongs to call i. */
static inline void dialogue_results(struct dialogue *d, const char *const *results, size_t n)
{
	struct json_object *blocks = json_object_new_array();
	const char *ids[8];

	for (size_t i = 0; i < n; i++)
		assert_non_null(ids[i] = dialogue_call(d, i));
	for (size_t i = 0; i < n; i++) {
		struct json_object *r = json_object_new_object();

		json_set_str(r, d->openai ? "role" : "type", d->openai ? "tool" : "tool_result");
		json_set_str(r, d->openai ? "tool_call_id" : "tool_use_id", ids[i]);
		json_set_str(r, "content", results[i]);
		json_object_array_add(d->openai ? d->messages : blocks, r);
	}
	if (d->openai) {
		json_object_put(blocks);
		return;
	}
	struct json_object *m = json_of("{\"role\":\"user\"}");
	json_set(m, "content", blocks);
	json_object_array_add(d->messages, m);
}

/* The input of call i of the last answer, as a tree; the caller frees. */
static inline struct json_object *dialogue_input(const struct dialogue *d, size_t i)
{
	const char *id = dialogue_call(d, i);
	struct json_object *last = json_at(d->messages, json_len(d->messages) - 1);
	struct json_object *list = json_arr(last, d->openai ? "tool_calls" : "content");

	for (size_t k = 0; id && k < json_len(list); k++) {
		struct json_object *call = json_at(list, k);

		if (strcmp(json_str(call, "id", ""), id) != 0)
			continue;
		if (!d->openai)
			return json_object_get(json_get(call, "input"));
		return json_of(json_str(json_get(call, "function"), "arguments", ""));
	}
	fail_msg("there is no call %zu", i);
	return NULL;
}

#endif
