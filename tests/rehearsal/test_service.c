/*
 * test_service.c - what a provider does with a conversation: thinking that must come back, prefixes
 * that are cached, a window that is enforced, output that is bounded.
 */
#include "dialogue.h"

#include "base/clock.h"
#include "rehearsal/quirks.h"

static const char thinker[] = "name: t\nBIND\nwindow: 100000\nrules:\n"
			      "  - match: {turn: '0..2'}\n"
			      "    answer: {thinking: 'I look at {{turn}}.', text: looking, "
			      "tool_calls: [{name: read, input: {path: a}}]}\n"
			      "  - answer: {text: done}\n";

static char *thinker_scenario(bool bind)
{
	AUTO_BUF struct buf out = BUF_INIT;

	buf_add(&out, thinker, 8);
	buf_adds(&out, bind ? "bind_thinking: true\n" : "");
	buf_adds(&out, strstr(thinker, "window"));
	return buf_take(&out);
}

static void open_thinker(struct dialogue *d, bool bind)
{
	static const char *const result[] = {"file a"};
	AUTO_FREE char *scenario = thinker_scenario(bind);

	dialogue_open(d, false, scenario);
	dialogue_say(d, "look");
	dialogue_turn(d);
	dialogue_results(d, result, 1);
}

static struct json_object *message_block(const struct dialogue *d, size_t message, size_t block)
{
	return json_at(json_arr(json_at(d->messages, message), "content"), block);
}

/* wire.md 1.6 no. 1; trap 44: byte-identical, and not left out in the open loop. */
static void thinking_must_come_back(void **state)
{
	struct dialogue d;

	open_thinker(&d, false);
	assert_int_equal(dialogue_send(&d), 200);
	json_set_str(message_block(&d, 1, 0), "thinking", "I look at 1.");
	assert_int_equal(dialogue_send(&d), 400);
	assert_has(rig_body(&d.rig), "blocks in the latest assistant message cannot be modified");
	json_object_array_del_idx(json_arr(json_at(d.messages, 1), "content"), 0, 1);
	assert_int_equal(dialogue_send(&d), 400);
	assert_has(rig_body(&d.rig),
		   "Expected `thinking` or `redacted_thinking`, but found `text`");
	dialogue_close(&d);
}

/* Trap 46: an old tool result is shortened, then turn 3 is sent. */
static void thinking_is_bound_to_its_prefix(void **state)
{
	static const char *const result[] = {"file b"};

	for (int bind = 0; bind < 2; bind++) {
		struct dialogue d;

		open_thinker(&d, bind);
		dialogue_turn(&d);
		dialogue_results(&d, result, 1);
		assert_int_equal(dialogue_send(&d), 200);
		json_set_str(message_block(&d, 2, 0), "content", "[cleared]");
		assert_int_equal(dialogue_send(&d), bind ? 400 : 200);
		if (bind) {
			assert_has(rig_body(&d.rig),
				   "messages.3.content.0: Invalid `signature` in `thinking` "
				   "block. The block is bound to a different conversation.");
			/* A retry with the same body can never succeed. */
			assert_int_equal(dialogue_send(&d), 400);
		}
		dialogue_close(&d);
	}
}

/* wire.md 1.6 no. 5: the opt-in drops the block and says so. */
static void mismatched_thinking_can_be_dropped(void **state)
{
	static const char *const result[] = {"file b"};
	struct dialogue d;

	open_thinker(&d, true);
	dialogue_turn(&d);
	dialogue_results(&d, result, 1);
	json_set_str(message_block(&d, 2, 0), "content", "[cleared]");
	json_set(d.request, "thinking",
		 json_of("{\"type\":\"adaptive\",\"block_binding\":{\"prefix_mismatch_behavior\":"
			 "\"drop_block\"}}"));
	assert_int_equal(dialogue_send(&d), 400);
	assert_has(rig_body(&d.rig), "thinking.block_binding: Extra inputs are not permitted");
	const char *body = json_object_to_json_string_ext(d.request, JSON_C_TO_STRING_PLAIN);
	assert_int_equal(rig_send(&d.rig, "POST", "/v1/messages", body, strlen(body),
				  "anthropic-version: 2023-06-01\r\nanthropic-beta: "
				  "thinking-binding-controls-2026-08-01\r\n"),
			 200);
	assert_has(rig_body(&d.rig),
		   "\"input_transformations\":[{\"type\":\"thinking_dropped\","
		   "\"path\":\"messages.3.content.0\",\"reason\":\"prefix_mismatch\"}]");
	dialogue_close(&d);
}

/* Trap 48: DeepSeek's reasoning_content must come back unchanged. */
static void reasoning_must_come_back(void **state)
{
	static const char *const result[] = {"x"};
	struct dialogue d;

	dialogue_open(&d, true,
		      "name: t\nrequire_reasoning: true\nrules:\n"
		      "  - {match: {turn: 0}, answer: {thinking: hm, tool_calls: [{name: read}]}}\n"
		      "  - {answer: {text: done}}\n");
	dialogue_say(&d, "look");
	dialogue_turn(&d);
	dialogue_results(&d, result, 1);
	assert_int_equal(dialogue_send(&d), 200);
	json_object_object_del(json_at(d.messages, 1), "reasoning_content");
	assert_int_equal(dialogue_send(&d), 400);
	assert_has(rig_body(&d.rig), "must be passed back to the API");
	dialogue_close(&d);
}

/* Trap 50: Gemini's thought signature. */
static void thought_signature_must_come_back(void **state)
{
	static const char *const result[] = {"x"};
	struct dialogue d;

	dialogue_open(&d, true,
		      "name: t\nmodels: {m: {quirks: [gemini]}}\nrules:\n"
		      "  - {match: {turn: 0}, answer: {tool_calls: [{name: read}]}}\n"
		      "  - {answer: {text: done}}\n");
	dialogue_say(&d, "look");
	dialogue_turn(&d);
	dialogue_results(&d, result, 1);
	assert_int_equal(dialogue_send(&d), 200);
	json_object_object_del(json_at(json_arr(json_at(d.messages, 1), "tool_calls"), 0),
			       "extra_content");
	assert_int_equal(dialogue_send(&d), 400);
	assert_has(rig_body(&d.rig), "thought_signature");
	dialogue_close(&d);
}

static int64_t now_ms;

static int64_t fake_mono(void *arg)
{
	return now_ms * 1000;
}

static int64_t fake_wall(void *arg)
{
	return now_ms;
}

static void mark_last(struct dialogue *d)
{
	struct json_object *last = json_at(d->messages, json_len(d->messages) - 1);
	struct json_object *blocks = json_arr(last, "content");

	json_set(json_at(blocks, json_len(blocks) - 1), "cache_control",
		 json_of("{\"type\":\"ephemeral\"}"));
}

static void unmark(struct dialogue *d)
{
	for (size_t m = 0; m < json_len(d->messages); m++) {
		struct json_object *blocks = json_arr(json_at(d->messages, m), "content");

		for (size_t i = 0; i < json_len(blocks); i++)
			json_object_object_del(json_at(blocks, i), "cache_control");
	}
}

static const char looper[] =
	"name: c\nrules:\n"
	"  - {match: {turn: '0..40'}, answer: {tool_calls: [{name: read, input: {path: a}}]}}\n";

/* H17, issue 2 item 12: in a run of 30 rounds with one moving marker at least 90 % of the input is
 * read from the cache. */
static void anthropic_prefix_is_cached(void **state)
{
	struct dialogue d;
	AUTO_BUF struct buf text = BUF_INIT;

	for (int i = 0; i < 300; i++)
		buf_addf(&text, "line %d of the file\n", i);
	dialogue_open(&d, false, looper);
	dialogue_say(&d, buf_str(&text));
	for (int round = 0; round < 30; round++) {
		const char *const result[] = {"some result of forty letters or thereabouts"};

		dialogue_turn(&d);
		struct json_object *usage = json_obj(d.answer, "usage");
		int64_t read = json_i64(usage, "cache_read_input_tokens", -1);
		if (round == 1)
			assert_true(json_i64(usage, "cache_creation_input_tokens", 0) > 1000);
		if (round > 1)
			assert_true(read > 1000);
		dialogue_results(&d, result, 1);
		unmark(&d);
		mark_last(&d);
	}
	AUTO_JSON struct json_object *stats = stats_json(service_stats(d.rig.service));
	struct json_object *cache = json_obj(stats, "cache");
	double read = json_double(cache, "read", 0);
	double all = read + json_double(cache, "write", 0) + json_double(cache, "fresh", 0);
	assert_true(read / all >= 0.9);
	assert_int_equal(json_i64(stats, "n_violations", -1), 0);
	dialogue_close(&d);
}

static int64_t cache_read(struct dialogue *d)
{
	AUTO_JSON struct json_object *doc = NULL;

	assert_int_equal(dialogue_send(d), 200);
	doc = rig_json(&d->rig);
	if (d->openai)
		return json_i64(json_obj(json_obj(doc, "usage"), "prompt_tokens_details"),
				"cached_tokens", -1);
	return json_i64(json_obj(doc, "usage"), "cache_read_input_tokens", -1);
}

static void open_cached(struct dialogue *d, bool openai, size_t words)
{
	AUTO_BUF struct buf text = BUF_INIT;

	for (size_t i = 0; i < words; i++)
		buf_adds(&text, "word ");
	dialogue_open(d, openai, "name: c\nrules: [{answer: {text: ok}}]\n");
	dialogue_say(d, buf_str(&text));
	if (openai)
		return;
	json_set(json_at(d->messages, 0), "content", json_object_new_array());
	struct json_object *block = json_of("{\"type\":\"text\"}");
	json_set_str(block, "text", buf_str(&text));
	json_object_array_add(json_arr(json_at(d->messages, 0), "content"), block);
}

/* Lifetime by the clock, minimum prefix, and what breaks a prefix. */
static void anthropic_cache_ends(void **state)
{
	struct dialogue d;

	now_ms = 1000000;
	clock_fake(fake_mono, fake_wall, NULL);
	open_cached(&d, false, 2000);
	mark_last(&d);
	assert_int_equal(cache_read(&d), 0);
	assert_true(cache_read(&d) > 2000);
	now_ms += 4 * 60000;
	assert_true(cache_read(&d) > 2000); /* renewed by the hit */
	now_ms += 4 * 60000;
	assert_true(cache_read(&d) > 2000);
	now_ms += 5 * 60000 + 1;
	assert_int_equal(cache_read(&d), 0);
	assert_true(cache_read(&d) > 2000);
	json_set_str(d.request, "system", "a new first block");
	assert_int_equal(cache_read(&d), 0);
	dialogue_close(&d);
	open_cached(&d, false, 900);
	mark_last(&d);
	assert_int_equal(cache_read(&d), 0);
	assert_int_equal(cache_read(&d), 0); /* below the minimum: no error, no entry */
	dialogue_close(&d);
	clock_fake(NULL, NULL, NULL);
}

/* wire.md 1.7: only 20 blocks are looked back, so a large append needs a marker between. */
static void anthropic_look_back_is_20_blocks(void **state)
{
	for (int extra = 19; extra <= 21; extra++) {
		struct dialogue d;
		struct json_object *blocks;

		open_cached(&d, false, 2000);
		mark_last(&d);
		assert_int_equal(cache_read(&d), 0);
		unmark(&d);
		blocks = json_arr(json_at(d.messages, 0), "content");
		for (int i = 0; i < extra; i++)
			json_object_array_add(blocks,
					      json_of("{\"type\":\"text\",\"text\":\"more\"}"));
		mark_last(&d);
		assert_int_equal(cache_read(&d) > 0, extra <= 20);
		dialogue_close(&d);
	}
}

static void openai_cache_is_automatic(void **state)
{
	struct dialogue d;
	int64_t read;

	open_cached(&d, true, 2000);
	assert_int_equal(cache_read(&d), 0);
	dialogue_say(&d, "and more");
	read = cache_read(&d);
	assert_true(read >= 1920);
	assert_int_equal(read % 128, 0);
	dialogue_close(&d);
	open_cached(&d, true, 900);
	cache_read(&d);
	assert_int_equal(cache_read(&d), 0);
	dialogue_close(&d);
}

/* wire.md 1.10 and 3 rows 1 and 2: the exact texts, with the true numbers. */
static void window_is_enforced(void **state)
{
	static const char *const texts[2][2] = {
		{"prompt is too long: 120 tokens > 100 maximum",
		 "input length and `max_tokens` exceed context limit: 120 + 200 > 300, decrease"},
		{"This model's maximum context length is 100 tokens. However, your messages "
		 "resulted in 120 tokens.",
		 "This model's maximum context length is 300 tokens. However, you requested 320 "
		 "tokens (120 in the "
		 "messages, 200 in the completion)."},
	};

	for (int openai = 0; openai < 2; openai++) {
		struct dialogue d;
		AUTO_BUF struct buf words = BUF_INIT;

		dialogue_open(&d, openai,
			      "name: w\nmodels: {small: {window: 100}, medium: {window: 300}}\n"
			      "rules: [{answer: {text: ok}}]\n");
		json_object_object_del(d.request, "tools");
		json_object_object_del(d.request, "thinking");
		for (int i = 0; i < 120 - TOKENS_REQUEST - TOKENS_MESSAGE; i++)
			buf_addf(&words, "%sw", i ? " " : "");
		dialogue_say(&d, buf_str(&words));
		json_set_i64(d.request, "max_tokens", 200);
		json_set_str(d.request, "model", "small");
		assert_int_equal(dialogue_send(&d), 400);
		assert_has(rig_body(&d.rig), texts[openai][0]);
		json_set_str(d.request, "model", "medium");
		assert_int_equal(dialogue_send(&d), 400);
		assert_has(rig_body(&d.rig), texts[openai][1]);
		if (openai)
			assert_has(rig_body(&d.rig),
				   "\"param\":\"messages\",\"code\":\"context_length_exceeded\"");
		json_set_i64(d.request, "max_tokens", 180);
		assert_int_equal(dialogue_send(&d), 200);
		AUTO_JSON struct json_object *stats = stats_json(service_stats(d.rig.service));
		assert_int_equal(json_i64(stats, "n_violations", -1), 0);
		assert_int_equal(json_i64(stats, "refused", -1), 2);
		dialogue_close(&d);
	}
}

/* Trap 37: an answer that is cut by max_tokens holds half a call. */
static void output_is_bounded(void **state)
{
	struct dialogue d;

	dialogue_open(&d, false,
		      "name: o\nrules: [{answer: {text: start, tool_calls: [{name: read, input: "
		      "{path: {repeat: 'word ', "
		      "times: 100}}}, {name: read}]}}]\n");
	dialogue_say(&d, "go");
	json_set_i64(d.request, "max_tokens", 40);
	json_set_bool(d.request, "stream", true);
	assert_int_equal(dialogue_send(&d), 200);
	assert_has(rig_body(&d.rig), "\"stop_reason\":\"max_tokens\"");
	assert_has(rig_body(&d.rig), "\"output_tokens\":40");
	assert_has(rig_body(&d.rig), "\\\"path\\\":\\\"word");
	assert_lacks(rig_body(&d.rig), "\\\"}\"");
	/* wire.md 1.2: the cut block lacks its stop; only the first block has one. */
	assert_has(rig_body(&d.rig), "content_block_stop\",\"index\":0");
	assert_lacks(rig_body(&d.rig), "content_block_stop\",\"index\":1");
	dialogue_close(&d);
}

static void one_call_when_parallel_is_off(void **state)
{
	static const char scenario[] =
		"name: o\nrules: [{answer: {text: t, tool_calls: [{name: read}, {name: read}]}}]\n";
	struct dialogue d;

	dialogue_open(&d, true, scenario);
	dialogue_say(&d, "go");
	json_set_bool(d.request, "parallel_tool_calls", false);
	dialogue_turn(&d);
	assert_non_null(dialogue_call(&d, 0));
	assert_null(dialogue_call(&d, 1));
	dialogue_close(&d);
	dialogue_open(&d, false, scenario);
	dialogue_say(&d, "go");
	json_set(d.request, "tool_choice", json_of("{\"type\":\"none\"}"));
	dialogue_turn(&d);
	assert_null(dialogue_call(&d, 0));
	assert_string_equal(json_str(d.answer, "stop_reason", ""), "end_turn");
	dialogue_close(&d);
}

static void count_tokens_agrees_with_usage(void **state)
{
	struct dialogue d;

	dialogue_open(&d, false, "name: o\nrules: [{answer: {text: t}}]\n");
	dialogue_say(&d, "count this, please");
	dialogue_turn(&d);
	int64_t input = json_i64(json_obj(d.answer, "usage"), "input_tokens", -1);
	json_object_array_del_idx(d.messages, 1, 1);
	json_object_object_del(d.request, "max_tokens");
	const char *body = json_object_to_json_string_ext(d.request, JSON_C_TO_STRING_PLAIN);
	assert_int_equal(rig_send(&d.rig, "POST", "/v1/messages/count_tokens", body, strlen(body),
				  "anthropic-version: 2023-06-01\r\n"),
			 200);
	AUTO_JSON struct json_object *count = rig_json(&d.rig);
	assert_int_equal(json_i64(count, "input_tokens", 0), input);
	dialogue_close(&d);
}

static void models_and_stats(void **state)
{
	struct rig rig;

	rig_open(&rig, "name: o\nmodels: {alpha: {}, beta: {}}\nrules: [{answer: {text: t}}]\n");
	assert_int_equal(rig_send(&rig, "GET", "/v1/models", "", 0, ""), 200);
	assert_has(rig_body(&rig),
		   "{\"object\":\"list\",\"data\":[{\"id\":\"alpha\",\"object\":\"model\"");
	assert_int_equal(rig_send(&rig, "GET", "/v1/models", "", 0, "anthropic-version: 1\r\n"),
			 200);
	assert_has(rig_body(&rig), "\"has_more\":false");
	assert_int_equal(rig_send(&rig, "GET", "/__rehearsal/stats", "", 0, ""), 200);
	assert_has(rig_body(&rig), "\"requests\":0");
	assert_int_equal(rig_send(&rig, "GET", "/nowhere", "", 0, ""), 404);
	assert_int_equal(rig_send(&rig, "GET", "/v1/messages", "", 0, "anthropic-version: 1\r\n"),
			 404);
	rig_close(&rig);
}

static void key_can_be_required(void **state)
{
	struct rig rig;

	rig_open(&rig, "name: k\nrequire_key: true\nrules: [{answer: {text: t}}]\n");
	static const char body[] =
		"{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}";
	assert_int_equal(rig_openai(&rig, body), 401);
	assert_int_equal(rig_send(&rig, "POST", "/v1/chat/completions", body, sizeof(body) - 1,
				  "authorization: Bearer k\r\n"),
			 200);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(thinking_must_come_back),
		cmocka_unit_test(thinking_is_bound_to_its_prefix),
		cmocka_unit_test(mismatched_thinking_can_be_dropped),
		cmocka_unit_test(reasoning_must_come_back),
		cmocka_unit_test(thought_signature_must_come_back),
		cmocka_unit_test(anthropic_prefix_is_cached),
		cmocka_unit_test(anthropic_cache_ends),
		cmocka_unit_test(anthropic_look_back_is_20_blocks),
		cmocka_unit_test(openai_cache_is_automatic),
		cmocka_unit_test(window_is_enforced),
		cmocka_unit_test(output_is_bounded),
		cmocka_unit_test(one_call_when_parallel_is_off),
		cmocka_unit_test(count_tokens_agrees_with_usage),
		cmocka_unit_test(models_and_stats),
		cmocka_unit_test(key_can_be_required),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
