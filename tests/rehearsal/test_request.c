/*
 * test_request.c - the checks of both protocols: one table of broken bodies each, by rule.
 *
 * The strictness is what makes the rehearsal an examiner (I2): sections C and D of the traps, 46,
 * 48, 50, and the marker rules of wire.md 1.7.
 */
#include "rehearsal_rig.h"

static const char scenario[] = "name: t\nwindow: 1000000\nmax_output: 64000\nrules:\n"
			       "  - answer: {text: fine}\n";

struct broken {
	const char *rule, *text, *body;
};

#define A(messages) "{\"model\":\"m\",\"max_tokens\":100,\"messages\":[" messages "]}"
#define AX(extra, messages)                                                                        \
	"{\"model\":\"m\",\"max_tokens\":100," extra ",\"messages\":[" messages "]}"
#define USER	   "{\"role\":\"user\",\"content\":\"go\"}"
#define CALL(id)   "{\"type\":\"tool_use\",\"id\":\"" id "\",\"name\":\"read\",\"input\":{}}"
#define RESULT(id) "{\"type\":\"tool_result\",\"tool_use_id\":\"" id "\",\"content\":\"x\"}"
#define SAID(c)	   "{\"role\":\"assistant\",\"content\":[" c "]}"
#define ASKED(c)   "{\"role\":\"user\",\"content\":[" c "]}"
#define TEXT(t)	   "{\"type\":\"text\",\"text\":\"" t "\"}"
#define MARK	   "\"cache_control\":{\"type\":\"ephemeral\"}"
#define MARKED(t)  "{\"type\":\"text\",\"text\":\"" t "\"," MARK "}"

static const struct broken anthropic_broken[] = {
	{"model", "model: Field required", "{\"max_tokens\":1,\"messages\":[" USER "]}"},
	{"max_tokens", "max_tokens: Field required", "{\"model\":\"m\",\"messages\":[" USER "]}"},
	{"max_tokens", "maximum allowed number of output tokens for m",
	 "{\"model\":\"m\",\"max_tokens\":64001,\"messages\":[" USER "]}"},
	{"extra", "strange: Extra inputs are not permitted", AX("\"strange\":1", USER)},
	{"messages", "at least one message is required", A("")},
	{"role", "first message must use the", A(SAID(TEXT("a")) "," USER)},
	{"role", "Input should be 'user' or 'assistant'",
	 A("{\"role\":\"system\",\"content\":\"x\"}")},
	{"prefill", "must end with a user message", A(USER "," SAID(TEXT("a")))},
	/* traps 20 to 24 */
	{"result_missing", "without `tool_result` blocks immediately after: t1",
	 A(USER "," SAID(CALL("t1")) "," USER)},
	{"result_missing", "immediately after: t2",
	 A(USER "," SAID(CALL("t1") "," CALL("t2")) "," ASKED(RESULT("t1")))},
	{"result_missing", "immediately after: t1",
	 A(USER "," SAID(CALL("t1")) "," ASKED(TEXT("news") "," RESULT("t1")))},
	{"result_orphan", "unexpected `tool_use_id` found in `tool_result` blocks: t9",
	 A(USER "," SAID(TEXT("a")) "," ASKED(RESULT("t9")))},
	{"result_twice", "each tool_use must have a single result",
	 A(USER "," SAID(CALL("t1")) "," ASKED(RESULT("t1") "," RESULT("t1")))},
	{"tool_use", "ids must be unique",
	 A(USER "," SAID(CALL("t1")) "," ASKED(RESULT("t1")) "," SAID(CALL("t1")) "," ASKED(
		 RESULT("t1")))},
	{"block_role", "`tool_result` blocks can only be in `user` messages",
	 A(USER "," SAID(RESULT("t1")) "," USER)},
	{"tool_use", "Input should be a valid dictionary",
	 A(USER "," SAID("{\"type\":\"tool_use\",\"id\":\"t1\",\"name\":\"n\",\"input\":"
			 "\"x\"}") "," ASKED(RESULT("t1")))},
	/* traps 28, 30 */
	{"empty_text", "text content blocks must be non-empty", A(ASKED(TEXT("")))},
	{"empty_text", "must contain non-whitespace text", A(ASKED(TEXT(" \\n")))},
	{"empty_text", "must have non-empty content", A("{\"role\":\"user\",\"content\":\"\"}")},
	{"empty_content", "all messages must have non-empty content",
	 A(USER "," SAID("") "," USER)},
	{"empty_text", "cache_control cannot be set for empty text blocks", A(ASKED(MARKED("")))},
	{"empty_text", "system: text content blocks must be non-empty",
	 AX("\"system\":[" TEXT("") "]", USER)},
	{"cache_control", "A maximum of 4 blocks with cache_control may be provided. Found 5.",
	 A(ASKED(MARKED("a") "," MARKED("b") "," MARKED("c") "," MARKED("d") "," MARKED("e")))},
	{"cache_control", "thinking.cache_control: Extra inputs are not permitted",
	 A(USER "," SAID("{\"type\":\"thinking\",\"thinking\":\"h\",\"signature\":\"s\"," MARK
			 "}") "," USER)},
	{"cache_control", "must not come after a ttl='5m'",
	 A(ASKED(MARKED("a") ",{\"type\":\"text\",\"text\":\"b\",\"cache_control\":"
			     "{\"type\":\"ephemeral\",\"ttl\":\"1h\"}}"))},
	{"thinking_signature", "Invalid `signature` in `thinking` block",
	 A(USER
	   "," SAID("{\"type\":\"thinking\",\"thinking\":\"h\",\"signature\":\"bad\"}") "," USER)},
	{"thinking", "greater than or equal to 1024",
	 AX("\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":10}", USER)},
	{"tools", "Tool names must be unique",
	 AX("\"tools\":[{\"name\":\"a\",\"input_schema\":{\"type\":\"object\"}},{\"name\":\"a\","
	    "\"input_schema\":{\"type\":\"object\"}}]",
	    USER)},
	{"tools", "input_schema.type: Field required", AX("\"tools\":[{\"name\":\"a\"}]", USER)},
	/* traps 87, 89 */
	{"json", "not valid JSON: no low surrogate in string: line 1 column",
	 A(ASKED(TEXT("\\ud83d")))},
	{"json", "not valid JSON: unexpected end of data", "{\"model\":\"m\",\"messages\":[{\"ro"},
};

static void check(struct rig *rig, const struct broken *b, int (*send)(struct rig *, const char *))
{
	AUTO_JSON struct json_object *stats = NULL;
	struct json_object *list, *last;

	if (send(rig, b->body) != 400)
		fail_msg("accepted: %s", b->body);
	assert_has(rig_body(rig), b->text);
	stats = stats_json(service_stats(rig->service));
	list = json_arr(stats, "violations");
	last = json_at(list, json_len(list) - 1);
	assert_string_equal(json_str(last, "rule", ""), b->rule);
}

static void anthropic_refuses(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(anthropic_broken); i++) {
		struct rig rig;

		rig_open(&rig, scenario);
		check(&rig, &anthropic_broken[i], rig_anthropic);
		rig_close(&rig);
	}
}

static void anthropic_accepts(void **state)
{
	static const char *const good[] = {
		A(USER),
		A(USER "," USER), /* consecutive user messages are merged by the API */
		A(USER "," SAID(TEXT("a") "," CALL("t1") "," CALL("t2")) "," ASKED(
			RESULT("t2") "," RESULT("t1") "," TEXT("news"))),
		A(ASKED(MARKED("a") "," MARKED("b") "," MARKED("c") "," MARKED("d"))),
		A(ASKED("{\"type\":\"tool_result\",\"tool_use_id\":\"x\"}")),
	};
	struct rig rig;

	rig_open(&rig, scenario);
	for (size_t i = 0; i + 1 < ARRAY_SIZE(good); i++)
		if (rig_anthropic(&rig, good[i]) != 200)
			fail_msg("refused: %s", rig_body(&rig));
	/* The last one shows that this test can fail. */
	assert_int_equal(rig_anthropic(&rig, good[ARRAY_SIZE(good) - 1]), 400);
	rig_close(&rig);
}

static void anthropic_needs_its_version_header(void **state)
{
	struct rig rig;

	rig_open(&rig, scenario);
	assert_int_equal(rig_send(&rig, "POST", "/v1/messages", A(USER), strlen(A(USER)), ""), 400);
	assert_has(rig_body(&rig), "anthropic-version: header is required");
	rig_close(&rig);
}

#define O(messages)	    "{\"model\":\"m\",\"messages\":[" messages "]}"
#define OX(extra, messages) "{\"model\":\"m\"," extra ",\"messages\":[" messages "]}"
#define OCALL(id)                                                                                  \
	"{\"id\":\"" id                                                                            \
	"\",\"type\":\"function\",\"function\":{\"name\":\"read\",\"arguments\":\"{}\"}}"
#define OSAID(calls) "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[" calls "]}"
#define OTOOL(id)    "{\"role\":\"tool\",\"tool_call_id\":\"" id "\",\"content\":\"x\"}"

static const struct broken openai_broken[] = {
	{"model", "you must provide a model parameter", "{\"messages\":[" USER "]}"},
	{"messages", "Missing required parameter: 'messages'.", "{\"model\":\"m\"}"},
	{"messages", "empty array", O("")},
	{"extra", "Unrecognized request argument supplied: strange", OX("\"strange\":1", USER)},
	{"role", "Supported values are: 'system'", O("{\"role\":\"model\",\"content\":\"x\"}")},
	{"content", "Invalid value for 'content': expected a string, got null.",
	 O("{\"role\":\"user\",\"content\":null}")},
	/* trap 32 */
	{"assistant_empty", "either content or tool_calls, but not none",
	 O(USER ",{\"role\":\"assistant\",\"content\":\"\"}," USER)},
	{"assistant_empty", "either content or tool_calls, but not none",
	 O(USER ",{\"role\":\"assistant\",\"content\":null}," USER)},
	{"tool_use", "empty array", O(USER "," OSAID("") "," USER)},
	/* traps 20 to 24 in this form */
	{"result_orphan", "must be a response to a preceeding message with 'tool_calls'",
	 O(USER "," OTOOL("c1"))},
	{"result_orphan", "must be a response to a preceeding message",
	 O(USER "," OSAID(OCALL("c1")) "," USER "," OTOOL("c1"))},
	{"result_missing", "did not have response messages: c2",
	 O(USER "," OSAID(OCALL("c1") "," OCALL("c2")) "," OTOOL("c1"))},
	{"result_twice", "Duplicate tool message",
	 O(USER "," OSAID(OCALL("c1")) "," OTOOL("c1") "," OTOOL("c1"))},
	{"tool_use", "expected a string, but got an object",
	 O(USER ",{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"c\",\"type\":\"function\","
		"\"function\":{\"name\":\"n\",\"arguments\":{}}}]}," OTOOL("c"))},
	{"tools", "Invalid 'tools': empty array", OX("\"tools\":[]", USER)},
	{"tool_choice", "only allowed when 'tools' are specified",
	 OX("\"tool_choice\":\"none\"", USER)},
	{"stream_options", "only allowed when 'stream' is enabled",
	 OX("\"stream_options\":{\"include_usage\":true}", USER)},
	{"max_tokens", "at the same time is not supported",
	 OX("\"max_tokens\":5,\"max_completion_tokens\":5", USER)},
	{"json", "could not parse the JSON body", "{\"model\":"},
};

static void openai_refuses(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(openai_broken); i++) {
		struct rig rig;

		rig_open(&rig, scenario);
		check(&rig, &openai_broken[i], rig_openai);
		assert_has(rig_body(&rig), "\"param\":");
		rig_close(&rig);
	}
}

static void openai_accepts(void **state)
{
	static const char *const good[] = {
		O("{\"role\":\"developer\",\"content\":\"s\"}," USER),
		O(USER
		  "," OSAID(OCALL("c1") "," OCALL("c2")) "," OTOOL("c2") "," OTOOL("c1") "," USER),
		OX("\"stream\":true,\"stream_options\":{\"include_usage\":true}", USER),
	};
	struct rig rig;

	rig_open(&rig, scenario);
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		if (rig_openai(&rig, good[i]) != 200)
			fail_msg("refused: %s", rig_body(&rig));
	rig_close(&rig);
}

/* o-series: max_tokens is refused for a model that says so (wire.md 2.1). */
static void openai_completion_tokens_only(void **state)
{
	struct rig rig;

	rig_open(&rig, "name: t\nmodels: {o9: {completion_tokens_only: true}}\nrules: [{answer: "
		       "{text: a}}]\n");
	assert_int_equal(
		rig_openai(&rig, "{\"model\":\"o9\",\"max_tokens\":5,\"messages\":[" USER "]}"),
		400);
	assert_has(rig_body(&rig), "unsupported_parameter");
	assert_int_equal(
		rig_openai(&rig, "{\"model\":\"other\",\"max_tokens\":5,\"messages\":[" USER "]}"),
		200);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(anthropic_refuses),
		cmocka_unit_test(anthropic_accepts),
		cmocka_unit_test(anthropic_needs_its_version_header),
		cmocka_unit_test(openai_refuses),
		cmocka_unit_test(openai_accepts),
		cmocka_unit_test(openai_completion_tokens_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
