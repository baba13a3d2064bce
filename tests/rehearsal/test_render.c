/*
 * test_render.c - the streams of both protocols, and each quirk: what deviates, and only that.
 *
 * The expected bytes are written out here, from wire.md 1.2, 2.2 and 4, since clients are tested
 * against what this server sends.
 */
#include "dialogue.h"

#include <fcntl.h>

#include "base/file.h"
#include "rehearsal/quirks.h"

/* Thinking, text, a call with arguments and one without. */
static const char answer[] =
	"rules:\n  - answer:\n      thinking: I think.\n      text: I say.\n      tool_calls:\n"
	"        - {name: read, input: {path: \"a\\tb\", n: 12345}}\n        - {name: list}\n";

/* Streams the answer under a quirk; the dialogue stays open for its reply. */
static void stream(struct dialogue *d, bool openai, const char *quirk)
{
	AUTO_FREE char *scenario = mem_printf("name: q\n%s%s%s%s", *quirk ? "quirks: [" : "", quirk,
					      *quirk ? "]\n" : "", answer);

	dialogue_open(d, openai, scenario);
	dialogue_say(d, "go");
	json_set_bool(d->request, "stream", true);
	if (openai)
		json_set(d->request, "stream_options", json_of("{\"include_usage\":true}"));
	assert_int_equal(dialogue_send(d), 200);
}

static size_t count_of(const char *text, const char *part)
{
	size_t n = 0;

	for (; (text = strstr(text, part)); text += strlen(part))
		n++;
	return n;
}

struct deviation {
	const char *quirk;
	const char *has, *lacks; /* NULL: not looked for */
	const char *counted;	 /* how often it stands there */
	size_t count;
};

static void check(const struct deviation *v, bool openai)
{
	struct dialogue d;
	const char *body;

	stream(&d, openai, v->quirk);
	body = rig_body(&d.rig);
	if (v->has)
		assert_has(body, v->has);
	if (v->lacks)
		assert_lacks(body, v->lacks);
	if (v->counted && count_of(body, v->counted) != v->count)
		fail_msg("%s: %zu times '%s' in %s", v->quirk, count_of(body, v->counted),
			 v->counted, body);
	dialogue_close(&d);
}

#define PATH_ARGS "\"arguments\":\"{\\\"path\\\":\\\"a\\\\tb\\\",\\\"n\\\":12345}\""

static void openai_quirks(void **state)
{
	static const struct deviation list[] = {
		{"", "data: [DONE]\n\n", "error", "\"index\":1,", 2},
		{"", "\"delta\":{},\"finish_reason\":\"tool_calls\"}],\"usage\":null}", NULL,
		 "\"choices\":[],\"usage\":{\"prompt_tokens\":", 1},
		{"", "{\"index\":1,\"id\":\"call_", NULL, "\"id\":\"call_", 2},
		{"", "\"function\":{\"name\":\"read\",\"arguments\":\"\"}", NULL,
		 "\"reasoning_content\":\"I think.\"", 1},
		{"no_done", NULL, "[DONE]", NULL, 0},
		{"azure",
		 "data: "
		 "{\"id\":\"\",\"object\":\"\",\"created\":0,\"model\":\"\",\"choices\":[],"
		 "\"prompt_filter_results\"",
		 NULL, NULL, 0},
		{"openai_index_zero", NULL, "\"index\":1,", "\"tool_calls\":[{\"index\":0,", 4},
		{"openai_no_index", "\"tool_calls\":[{\"id\":", "\"tool_calls\":[{\"index\"", NULL,
		 0},
		{"whole_args", PATH_ARGS, NULL, "\"tool_calls\":[", 2},
		{"args_object", "\"arguments\":{\"path\":\"a\\tb\",\"n\":12345}", NULL,
		 "\"arguments\":{}", 1},
		{"args_null", NULL, NULL, "\"arguments\":null", 2},
		{"new_ids", "-1\",\"function\":{\"arguments\"", NULL, "\"id\":\"call_", 4},
		{"finish_stop", "\"finish_reason\":\"stop\"", "\"finish_reason\":\"tool_calls\"",
		 NULL, 0},
		{"reasoning", "\"reasoning\":\"I think.\"", "reasoning_content", NULL, 0},
		{"reasoning_twice", "\"reasoning_content\":\"I think.\",\"reasoning\":\"I think.\"",
		 NULL, NULL, 0},
		{"usage_on_finish",
		 "\"finish_reason\":\"tool_calls\"}],\"usage\":{\"prompt_tokens\":",
		 "\"choices\":[],", NULL, 0},
		{"usage_in_choice",
		 "\"finish_reason\":\"tool_calls\",\"usage\":{\"prompt_tokens\":",
		 "\"choices\":[],", NULL, 0},
		{"drop_usage", NULL, "\"usage\"", NULL, 0},
		{"thought_signature", NULL, NULL,
		 "\"extra_content\":{\"google\":{\"thought_signature\":\"RHS1", 2},
		{"raw_controls", "\\\"a\\tb\\\"", "a\\\\tb", NULL, 0},
		{"gemini", "\"finish_reason\":\"stop\"", "\"tool_calls\":[{\"index\"",
		 "\"tool_calls\":[", 2},
		{"ollama", PATH_ARGS, "\"choices\":[],", "\"reasoning\":\"I think.\"", 1},
		{"comments", ": PROCESSING\n\n", NULL, NULL, 0},
		{"no_space", "data:{", "data: ", NULL, 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(list); i++)
		check(&list[i], true);
}

static void anthropic_quirks(void **state)
{
	static const struct deviation list[] = {
		{"",
		 "event: message_start\ndata: "
		 "{\"type\":\"message_start\",\"message\":{\"id\":\"msg_",
		 NULL, "event: ping\n", 1},
		{"",
		 "\"content_block\":{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}",
		 NULL, "\"signature_delta\",\"signature\":\"RHS1", 1},
		{"", "\"type\":\"tool_use\",\"id\":\"toolu_", NULL, "\"partial_json\":\"\"", 2},
		{"",
		 "\"delta\":{\"stop_reason\":\"tool_use\",\"stop_sequence\":null},\"usage\":{"
		 "\"input_tokens\":",
		 NULL, "event: content_block_stop\n", 4},
		{"no_ping", NULL, "ping", NULL, 0},
		{"no_signature", NULL, "signature_delta", NULL, 0},
		{"no_block_stop", NULL, NULL, "event: content_block_stop\n", 3},
		{"no_input_delta", NULL, NULL, "\"partial_json\":\"\"", 1},
		{"usage_late", "\"usage\":{\"input_tokens\":0,", NULL, "\"input_tokens\":0,", 1},
		{"drop_usage", NULL, "\"stop_sequence\":null},\"usage\"", NULL, 0},
		{"padded", "}          \n\n", NULL, NULL, 0},
		{"crlf", "event: message_stop\r\ndata: {\"type\":\"message_stop\"}\r\n\r\n", "}\n",
		 NULL, 0},
		{"cr", "event: message_stop\rdata: {\"type\":\"message_stop\"}\r\r", "\n", NULL, 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(list); i++)
		check(&list[i], false);
}

/* docs/scenarios.md lists them all. */
static void quirk_names_are_known(void **state)
{
	AUTO_BUF struct buf doc = BUF_INIT;
	size_t n = 0;

	assert_int_equal(file_read(AT_FDCWD, SCENARIOS_DOC, 1 << 20, &doc, NULL), 0);
	for (; quirk_names()[n]; n++) {
		AUTO_FREE char *quoted = mem_printf("`%s`", quirk_names()[n]);

		assert_int_not_equal(quirk_bits(quirk_names()[n]), 0);
		assert_has(buf_str(&doc), quoted);
	}
	assert_true(n > 30);
	assert_int_equal(quirk_bits("no such quirk"), 0);
	assert_int_equal(quirk_bits("gemini") & QUIRK_NO_INDEX, QUIRK_NO_INDEX);
}

static void documents_hold_the_same(void **state)
{
	struct dialogue d;

	for (int openai = 0; openai < 2; openai++) {
		AUTO_FREE char *scenario = mem_printf("name: q\n%s", answer);

		dialogue_open(&d, openai, scenario);
		dialogue_say(&d, "go");
		dialogue_turn(&d);
		AUTO_JSON struct json_object *input = dialogue_input(&d, 0);
		assert_string_equal(json_str(input, "path", ""), "a\tb");
		assert_int_equal(json_i64(input, "n", 0), 12345);
		assert_non_null(dialogue_call(&d, 1));
		assert_has(rig_body(&d.rig), "I say.");
		assert_has(rig_body(&d.rig), "I think.");
		dialogue_close(&d);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(openai_quirks),
		cmocka_unit_test(anthropic_quirks),
		cmocka_unit_test(quirk_names_are_known),
		cmocka_unit_test(documents_hold_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
