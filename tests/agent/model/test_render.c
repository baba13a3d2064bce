/*
 * Requests of both APIs byte for byte (golden files), and what must never be in one.
 */
#include "fixture.h"

static void render_dialogue(const struct model *model, const char *golden)
{
	struct request_params params = fixture_params();
	struct model_client *client = fixture_client(model, &params);
	struct message *view[DIALOGUE];
	AUTO_BUF struct buf out = BUF_INIT;
	fixture_dialogue(view, model);
	fixture_request(client, view, DIALOGUE, 0, &out);
	fixture_golden(golden, &out);
	fixture_free(view, DIALOGUE);
	client_free(client);
}

static void test_golden_anthropic(void **state)
{
	struct model model = fixture_anthropic();
	render_dialogue(&model, "anthropic_dialogue.json");
}

/* wire.md 1.6 rule 5, trap 46: stale thinking is dropped and no 400 for ever. */
static void test_golden_anthropic_preserved_trap_46(void **state)
{
	struct model model = fixture_anthropic();
	model.preserved_thinking = true;
	model.name = LIT("claude-opus-5-5");
	render_dialogue(&model, "anthropic_preserved.json");
}

static void test_golden_anthropic_compatible(void **state)
{
	struct model model = fixture_anthropic();
	model.dialect = LIT("anthropic-compatible");
	model.cache = CACHE_NONE;
	model.preserved_thinking = true;
	model.reasoning = REASONING_NONE;
	model.parallel_tools = false;
	render_dialogue(&model, "anthropic_compatible.json");
}

static void test_golden_openai(void **state)
{
	struct model model = fixture_openai();
	render_dialogue(&model, "openai_dialogue.json");
}

/* Trap 48: the reasoning of a message with calls goes back. */
static void test_golden_openai_deepseek_trap_48(void **state)
{
	struct model model = fixture_openai();
	model.provider = LIT("deepseek");
	model.dialect = LIT("deepseek");
	model.reasoning_field = LIT("reasoning_content");
	model.images = false;
	render_dialogue(&model, "openai_deepseek.json");
}

static void test_golden_openai_mistral(void **state)
{
	struct model model = fixture_openai();
	model.provider = LIT("mistral");
	model.dialect = LIT("mistral");
	model.parallel_tools = false;
	render_dialogue(&model, "openai_mistral.json");
}

static void test_beta_header(void **state)
{
	struct model model = fixture_anthropic();
	struct request_params params = fixture_params();
	struct message *view[1] = {fixture_user("hi", 1)};
	const char *want[] = {NULL, "thinking-binding-controls-2026-08-01"};
	for (int i = 0; i < 2; i++) {
		AUTO_BUF struct buf out = BUF_INIT;
		const char *beta = "unset";
		model.preserved_thinking = i;
		struct model_client *client = fixture_client(&model, &params);
		assert_int_equal(client_render_request(client, view, 1, 100, -1, &out, &beta, NULL),
				 0);
		if (want[i])
			assert_string_equal(beta, want[i]);
		else
			assert_null(beta);
		client_free(client);
	}
	fixture_free(view, 1);
}

/* Renders one message alone. Caller frees. */
static char *render_one(const struct model *model, struct message *m)
{
	struct request_params params = {.temperature = -1};
	struct model_client *client = fixture_client(model, &params);
	client_render_message(client, m);
	client_free(client);
	return m->rendered;
}

/* Trap 28: an empty turn is never sent, by neither API. */
static void test_empty_turn_is_left_out_trap_28(void **state)
{
	struct model models[2] = {fixture_anthropic(), fixture_openai()};
	for (int i = 0; i < 2; i++) {
		struct request_params params = fixture_params();
		struct model_client *client = fixture_client(&models[i], &params);
		struct message *view[3] = {fixture_user("hi", 1), message_new(MESSAGE_ASSISTANT),
					   fixture_user("continue", 3)};
		AUTO_BUF struct buf out = BUF_INIT;
		assert_null(message_add_text(view[1], ORIGIN_MODEL, " \n\xc2\xa0", 4));
		fixture_request(client, view, 3, -1, &out);
		assert_int_equal(view[1]->rendered_len, 0);
		assert_null(strstr(out.data, "\"role\":\"assistant\""));
		fixture_free(view, 3);
		client_free(client);
	}
}

/* Trap 32: thinking alone makes no assistant message of the OpenAI form. */
static void test_thinking_alone_is_left_out_trap_32(void **state)
{
	struct model model = fixture_openai();
	model.reasoning_field = LIT("reasoning_content");
	model.dialect = LIT("openrouter");
	struct message *m = message_new(MESSAGE_ASSISTANT);
	m->provider = mem_strdup(model.provider);
	message_add_thinking(m, "reasoning", "hm", 2, NULL);
	assert_string_equal(render_one(&model, m), "");
	message_free(m);

	m = message_new(MESSAGE_ASSISTANT);
	message_add_opaque(m, "{\"type\":\"server_tool_use\"}");
	assert_string_equal(render_one(&model, m), "");
	message_free(m);
}

static struct message *thinking_message(const char *provider)
{
	struct message *m = message_new(MESSAGE_ASSISTANT);
	m->provider = mem_strdup(provider);
	message_add_thinking(m, NULL, "x", 1,
			     "{\"signature\":\"s\\/1\", \"type\":\"thinking\",\"thinking\":\"x\"}");
	message_add_opaque(m, "{\"type\":\"server_tool_use\",\"id\":\"s1\"}");
	message_add_call(m, "toolu_1", "ls", "{}", 2,
			 "{\"caller\":{\"type\":\"direct\"},\"id\":7}");
	return m;
}

/* Trap 44, wire.md 1.6 rule 1: byte for byte. */
static void test_thinking_is_echoed_as_it_came_trap_44(void **state)
{
	struct model model = fixture_anthropic();
	struct message *m = thinking_message("anthropic");
	assert_string_equal(
		render_one(&model, m),
		"{\"role\":\"assistant\",\"content\":["
		"{\"signature\":\"s\\/1\", \"type\":\"thinking\",\"thinking\":\"x\"},"
		"{\"type\":\"server_tool_use\",\"id\":\"s1\"},"
		"{\"type\":\"tool_use\",\"id\":\"toolu_1\",\"name\":\"ls\",\"input\":{},"
		"\"caller\":{\"type\":\"direct\"}}]}");
	message_free(m);
}

static void test_foreign_parts_are_dropped(void **state)
{
	struct model model = fixture_anthropic();
	struct message *m = thinking_message("openai");
	assert_string_equal(render_one(&model, m),
			    "{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":"
			    "\"toolu_1\",\"name\":\"ls\",\"input\":{}}]}");
	message_free(m);
}

static void test_cut_thinking_is_never_echoed(void **state)
{
	struct model model = fixture_anthropic();
	struct message *m = thinking_message("anthropic");
	m->blocks[0].partial = true;
	assert_null(strstr(render_one(&model, m), "thinking"));
	message_free(m);
}

/* Trap 50: unknown fields of a call, at both levels. */
static void test_call_fields_are_echoed_trap_50(void **state)
{
	struct model model = fixture_openai();
	model.provider = LIT("google");
	model.dialect = LIT("google");
	struct message *m = message_new(MESSAGE_ASSISTANT);
	m->provider = mem_strdup("google");
	message_add_call(m, "c1", "ls", "{}", 2,
			 "{\"extra_content\":{\"google\":{\"thought_signature\":\"sig-77\"}},"
			 "\"function\":{\"strict\":true}}");
	assert_string_equal(
		render_one(&model, m),
		"{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"c1\","
		"\"type\":\"function\",\"function\":{\"name\":\"ls\",\"arguments\":\"{}\","
		"\"strict\":true},\"extra_content\":{\"google\":{\"thought_signature\":"
		"\"sig-77\"}}}]}");
	message_free(m);
}

/* Trap 48: the field is demanded beside calls even if another provider's model made them. */
static void test_demanded_reasoning_field_trap_48(void **state)
{
	struct model model = fixture_openai();
	model.provider = LIT("deepseek");
	model.dialect = LIT("deepseek");
	model.reasoning_field = LIT("reasoning_content");
	struct message *m = thinking_message("anthropic");
	assert_non_null(strstr(render_one(&model, m), "\"reasoning_content\":\"\""));
	message_free(m);
}

/* A cut call is answered by an error result, so it is sent, with arguments that any server parses
 * (wire.md 4: Ollama answers 500 to others). */
static void test_cut_call_has_valid_arguments(void **state)
{
	struct model models[2] = {fixture_anthropic(), fixture_openai()};
	const char *want[2] = {"\"input\":{}", "\"arguments\":\"{}\""};
	for (int i = 0; i < 2; i++) {
		struct message *m = message_new(MESSAGE_ASSISTANT);
		struct block *b =
			message_add_call(m, "c1", "shell", "{\"command\":\"rm -rf /srv", 23, NULL);
		b->partial = true;
		char *text = render_one(&models[i], m);
		assert_non_null(strstr(text, want[i]));
		assert_null(strstr(text, "rm -rf"));
		message_free(m);
	}
}

static void test_odd_names_and_ids_are_made_valid(void **state)
{
	struct model model = fixture_anthropic();
	struct message *m = message_new(MESSAGE_ASSISTANT);
	message_add_call(m, "functions.read:0", "functions.read \"x\"", "{}", 2, NULL);
	struct message *answer = message_new(MESSAGE_USER);
	message_add_result(answer, "functions.read:0", "read", "ok", 2, false);
	char *call = render_one(&model, m), *result = render_one(&model, answer);
	const char *id = strstr(call, "\"call_");
	assert_non_null(id);
	assert_non_null(strstr(call, "\"name\":\"functions_read__x_\""));
	char quoted[24] = "";
	memcpy(quoted, id, 23);
	assert_non_null(strstr(result, quoted));
	message_free(m);
	message_free(answer);
}

/* Traps 87, 89, 95: whatever is in a result, the body is valid JSON and UTF-8. */
static void test_hostile_bytes_traps_87_89_95(void **state)
{
	struct model models[2] = {fixture_anthropic(), fixture_openai()};
	for (int i = 0; i < 2; i++) {
		struct request_params params = fixture_params();
		struct model_client *client = fixture_client(&models[i], &params);
		struct message *view[1] = {message_new(MESSAGE_USER)};
		AUTO_BUF struct buf out = BUF_INIT;
		message_add_result(view[0], "c1", "shell", "a\0b\xed\xa0\xbd\xff\x1b[0m", 11,
				   false);
		fixture_request(client, view, 1, -1, &out);
		assert_int_equal(strlen(out.data), out.len);
		assert_int_equal(fixture_count(out.data, "\xef\xbf\xbd"), 3);
		assert_non_null(strstr(out.data, "\\u001b[0m"));
		fixture_free(view, 1);
		client_free(client);
	}
}

static void test_thinking_budget_is_part_of_max_tokens(void **state)
{
	struct model model = fixture_anthropic();
	struct request_params params = {.temperature = 0.5, .thinking_budget = 8000};
	struct message *view[1] = {fixture_user("hi", 1)};
	static const struct {
		int64_t max_tokens;
		const char *want;
	} rows[] = {
		{20000, "\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":8000}"},
		{5000, "\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":3976}"},
		{1500, "\"temperature\":0.5"},
	};
	model.reasoning = REASONING_BUDGET;
	model.temperature_ok = true;
	struct model_client *client = fixture_client(&model, &params);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		AUTO_BUF struct buf out = BUF_INIT;
		const char *beta;
		client_render_request(client, view, 1, rows[i].max_tokens, -1, &out, &beta, NULL);
		assert_non_null(strstr(out.data, rows[i].want));
		/* Any temperature is refused beside thinking. */
		assert_true(!strstr(out.data, "temperature") || !strstr(out.data, "thinking"));
	}
	fixture_free(view, 1);
	client_free(client);
}

static void test_temperature_is_not_sent_where_refused(void **state)
{
	struct model model = fixture_openai();
	struct request_params params = {.temperature = 0.25};
	struct message *view[1] = {fixture_user("hi", 1)};
	for (int ok = 0; ok < 2; ok++) {
		AUTO_BUF struct buf out = BUF_INIT;
		model.temperature_ok = ok;
		struct model_client *client = fixture_client(&model, &params);
		fixture_request(client, view, 1, -1, &out);
		assert_int_equal(strstr(out.data, "\"temperature\":0.25") != NULL, ok);
		client_free(client);
	}
	fixture_free(view, 1);
}

static void test_bad_input_is_an_error(void **state)
{
	struct model model = fixture_anthropic();
	struct request_params params = fixture_params();
	struct model_client *client = NULL;
	struct err err = ERR_INIT;
	struct tool_spec bad_schema = {"x", "d", "[1]"}, bad_name = {"a b", "d", "{}"};
	params.n_tools = 1;
	params.tools = &bad_schema;
	assert_int_equal(client_new(&model, &params, &client, &err), -1);
	assert_string_equal(err.message, "the schema of tool 'x' is no object");
	params.tools = &bad_name;
	assert_int_equal(client_new(&model, &params, &client, &err), -1);
	params = fixture_params();
	model.dialect = LIT("antropic");
	assert_int_equal(client_new(&model, &params, &client, &err), -1);
	assert_int_equal(err.code, ERR_USAGE);
	assert_non_null(strstr(err.message, "did you mean 'anthropic'"));

	model.dialect = NULL;
	client = fixture_client(&model, &params);
	AUTO_BUF struct buf out = BUF_INIT_MAX(64);
	const char *beta;
	struct message *view[1] = {fixture_user("hi", 1)};
	assert_int_equal(client_render_request(client, view, 0, 10, -1, &out, &beta, &err), -1);
	assert_int_equal(client_render_request(client, view, 1, 0, -1, &out, &beta, &err), -1);
	assert_int_equal(client_render_request(client, view, 1, 10, -1, &out, &beta, &err), -1);
	assert_int_equal(err.code, ERR_TOO_LARGE);
	fixture_free(view, 1);
	client_free(client);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden_anthropic),
		cmocka_unit_test(test_golden_anthropic_preserved_trap_46),
		cmocka_unit_test(test_golden_anthropic_compatible),
		cmocka_unit_test(test_golden_openai),
		cmocka_unit_test(test_golden_openai_deepseek_trap_48),
		cmocka_unit_test(test_golden_openai_mistral),
		cmocka_unit_test(test_beta_header),
		cmocka_unit_test(test_empty_turn_is_left_out_trap_28),
		cmocka_unit_test(test_thinking_alone_is_left_out_trap_32),
		cmocka_unit_test(test_thinking_is_echoed_as_it_came_trap_44),
		cmocka_unit_test(test_foreign_parts_are_dropped),
		cmocka_unit_test(test_cut_thinking_is_never_echoed),
		cmocka_unit_test(test_call_fields_are_echoed_trap_50),
		cmocka_unit_test(test_demanded_reasoning_field_trap_48),
		cmocka_unit_test(test_cut_call_has_valid_arguments),
		cmocka_unit_test(test_odd_names_and_ids_are_made_valid),
		cmocka_unit_test(test_hostile_bytes_traps_87_89_95),
		cmocka_unit_test(test_thinking_budget_is_part_of_max_tokens),
		cmocka_unit_test(test_temperature_is_not_sent_where_refused),
		cmocka_unit_test(test_bad_input_is_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
