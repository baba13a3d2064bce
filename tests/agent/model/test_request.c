/*
 * Requests over a conversation: they only grow at their end (W11, I4), and their cache markers
 * stand where the provider finds them (H17, trap 30).
 */
#include "fixture.h"

#define MARK "\"cache_control\":{\"type\":\"ephemeral\"}"

/* n rounds of one call each: 2n + 1 messages. */
static size_t build_rounds(struct message **view, size_t rounds, const char *provider)
{
	size_t n = 0;
	view[n++] = fixture_user("the task", 1);
	for (size_t i = 0; i < rounds; i++) {
		AUTO_FREE char *id = mem_printf("call_%zu", i);
		struct message *a = message_new(MESSAGE_ASSISTANT);
		struct message *u = message_new(MESSAGE_USER);
		a->provider = mem_strdup(provider);
		a->uid = n + 1;
		u->uid = n + 2;
		message_add_text(a, ORIGIN_MODEL, "next", 4);
		message_add_call(a, id, "read", "{\"path\":\"a\"}", 12, NULL);
		message_add_result(u, id, "read", "text", 4, false);
		view[n++] = a;
		view[n++] = u;
	}
	return n;
}

/* The messages of a request without its tail: up to the "]," that ends the list. */
static size_t messages_len(const struct buf *request, int64_t max_tokens)
{
	AUTO_FREE char *tail = mem_printf("],\"max_tokens\":%lld", (long long)max_tokens);
	AUTO_FREE char *other =
		mem_printf("],\"max_completion_tokens\":%lld", (long long)max_tokens);
	const char *at = strstr(request->data, tail);
	if (!at)
		at = strstr(request->data, other);
	assert_non_null(at);
	return (size_t)(at - request->data);
}

static void check_prefixes(struct model model)
{
	struct request_params params = fixture_params();
	struct model_client *client = fixture_client(&model, &params);
	struct message *view[64];
	size_t n = build_rounds(view, 25, model.provider);
	AUTO_BUF struct buf before = BUF_INIT;
	for (size_t k = 1; k <= n; k += 2) {
		AUTO_BUF struct buf now = BUF_INIT;
		fixture_request(client, view, k, 0, &now);
		assert_true(fixture_count(now.data, MARK) <= 4);
		fixture_strip_marks(&now);
		if (before.len) {
			size_t len = messages_len(&before, 4096);
			assert_true(now.len > len);
			assert_memory_equal(now.data, before.data, len);
		}
		buf_clear(&before);
		buf_add(&before, now.data, now.len);
	}
	fixture_free(view, n);
	client_free(client);
}

/* W11, I4: request n+1 without markers and tail starts with request n's. */
static void test_requests_grow_at_their_end_anthropic(void **state)
{
	check_prefixes(fixture_anthropic());
}

static void test_requests_grow_at_their_end_openai(void **state)
{
	check_prefixes(fixture_openai());
}

static void test_requests_grow_at_their_end_mistral(void **state)
{
	struct model model = fixture_openai();
	model.dialect = LIT("mistral");
	check_prefixes(model);
}

/* I4: a message is rendered once; a marker never enters its bytes. */
static void test_rendered_bytes_stay_i4(void **state)
{
	struct model model = fixture_anthropic();
	struct request_params params = fixture_params();
	struct model_client *client = fixture_client(&model, &params);
	struct message *view[DIALOGUE];
	fixture_dialogue(view, &model);
	AUTO_BUF struct buf first = BUF_INIT;
	fixture_request(client, view, 3, -1, &first);
	char *rendered = view[2]->rendered;
	AUTO_FREE char *copy = mem_strdup(rendered);
	AUTO_BUF struct buf second = BUF_INIT;
	fixture_request(client, view, DIALOGUE, -1, &second);
	assert_ptr_equal(view[2]->rendered, rendered);
	assert_string_equal(rendered, copy);
	assert_null(strstr(rendered, "cache_control"));
	fixture_free(view, DIALOGUE);
	client_free(client);
}

/* The same request again (a retry) is the same bytes. */
static void test_sent_again_is_the_same(void **state)
{
	struct model model = fixture_anthropic();
	struct request_params params = fixture_params();
	struct model_client *client = fixture_client(&model, &params);
	struct message *view[64];
	size_t n = build_rounds(view, 20, "anthropic");
	AUTO_BUF struct buf start = BUF_INIT;
	fixture_request(client, view, 3, 0, &start);
	AUTO_BUF struct buf one = BUF_INIT;
	AUTO_BUF struct buf two = BUF_INIT;
	fixture_request(client, view, n, 0, &one);
	fixture_request(client, view, n, 0, &two);
	assert_string_equal(one.data, two.data);
	fixture_free(view, n);
	client_free(client);
}

static void test_four_markers_with_pinned_h17(void **state)
{
	struct model model = fixture_anthropic();
	struct request_params params = fixture_params();
	struct model_client *client = fixture_client(&model, &params);
	struct message *view[64];
	size_t n = build_rounds(view, 3, "anthropic");
	AUTO_BUF struct buf out = BUF_INIT;
	fixture_request(client, view, n, 0, &out);
	assert_int_equal(fixture_count(out.data, MARK), 4);
	assert_non_null(strstr(out.data, "\"text\":\"the task\"," MARK));
	assert_non_null(strstr(out.data, "\"content\":\"text\"," MARK "}]}],\"max_tokens\""));
	fixture_free(view, n);
	client_free(client);
}

static void test_no_markers_unless_explicit_h17(void **state)
{
	struct model model = fixture_anthropic();
	struct request_params params = fixture_params();
	struct message *view[8];
	size_t n = build_rounds(view, 2, "anthropic");
	AUTO_BUF struct buf out = BUF_INIT;
	model.cache = CACHE_AUTOMATIC;
	struct model_client *client = fixture_client(&model, &params);
	fixture_request(client, view, n, 0, &out);
	assert_null(strstr(out.data, "cache_control"));
	fixture_free(view, n);
	client_free(client);
}

static void test_long_lived_markers_stand_before_short_ones(void **state)
{
	struct model model = fixture_anthropic();
	struct request_params params = fixture_params();
	struct message *view[8];
	size_t n = build_rounds(view, 2, "anthropic");
	AUTO_BUF struct buf out = BUF_INIT;
	params.cache_1h = true;
	struct model_client *client = fixture_client(&model, &params);
	fixture_request(client, view, n, -1, &out);
	const char *messages = strstr(out.data, "\"messages\"");
	assert_int_equal(fixture_count(out.data, "\"ttl\":\"1h\""), 2);
	assert_int_equal(fixture_count(messages, "\"ttl\":\"1h\""), 0);
	assert_int_equal(fixture_count(messages, MARK), 1);
	fixture_free(view, n);
	client_free(client);
}

/* Content blocks between the old marker's message and the first marker behind it. */
static size_t blocks_before_mark(const char *from)
{
	const char *mark = strstr(from, MARK);
	size_t n = 0;
	assert_non_null(mark);
	for (const char *s = from; s < mark; s++)
		n += strncmp(s, "{\"type\":\"tool_", 14) == 0 ||
		     strncmp(s, "{\"type\":\"text\"", 14) == 0;
	return n;
}

/* H17: an append of more than 20 blocks gets a marker that still sees the last one. */
static void test_large_append_gets_an_intermediate_marker_h17(void **state)
{
	struct model model = fixture_anthropic();
	struct request_params params = fixture_params();
	struct model_client *client = fixture_client(&model, &params);
	struct message *view[3] = {fixture_user("the task", 1), message_new(MESSAGE_ASSISTANT),
				   message_new(MESSAGE_USER)};
	for (int i = 0; i < 30; i++) {
		AUTO_FREE char *id = mem_printf("call_%d", i);
		message_add_call(view[1], id, "read", "{\"path\":\"a } b\"}", 16, NULL);
		message_add_result(view[2], id, "read", "{\"x\":[", 6, false);
	}
	view[1]->uid = 2;
	view[2]->uid = 3;
	AUTO_BUF struct buf first = BUF_INIT;
	AUTO_BUF struct buf second = BUF_INIT;
	AUTO_BUF struct buf small = BUF_INIT;
	fixture_request(client, view, 1, -1, &first);
	fixture_request(client, view, 3, -1, &second);
	assert_int_equal(fixture_count(second.data, MARK), 4);
	const char *assistant = strstr(second.data, "{\"role\":\"assistant\"");
	assert_int_equal(blocks_before_mark(assistant), 20);
	/* A call on the side does not make it forget where the main view's end was. */
	struct message *side[2] = {view[0], fixture_user("summarise", 99)};
	fixture_request(client, side, 2, -1, &small);
	AUTO_BUF struct buf again = BUF_INIT;
	fixture_request(client, view, 3, -1, &again);
	assert_string_equal(again.data, second.data);
	message_free(side[1]);
	fixture_free(view, 3);
	client_free(client);
}

/* The intermediate one keeps to cacheable blocks too (trap 30). */
static void test_intermediate_marker_skips_thinking_trap_30(void **state)
{
	struct model model = fixture_anthropic();
	struct request_params params = {.temperature = -1};
	struct model_client *client = fixture_client(&model, &params);
	struct message *view[2] = {fixture_user("the task", 1), message_new(MESSAGE_ASSISTANT)};
	view[1]->uid = 2;
	view[1]->provider = mem_strdup("anthropic");
	message_add_text(view[1], ORIGIN_MODEL, "first", 5);
	for (int i = 0; i < 30; i++)
		message_add_thinking(view[1], NULL, "", 0, "{\"type\":\"thinking\",\"x\":{}}");
	message_add_text(view[1], ORIGIN_MODEL, "last", 4);
	AUTO_BUF struct buf first = BUF_INIT;
	AUTO_BUF struct buf second = BUF_INIT;
	fixture_request(client, view, 1, -1, &first);
	fixture_request(client, view, 2, -1, &second);
	assert_int_equal(fixture_count(second.data, MARK), 2);
	assert_non_null(strstr(second.data, "\"first\"," MARK));
	assert_non_null(strstr(second.data, "\"last\"," MARK));
	fixture_free(view, 2);
	client_free(client);
}

/* Trap 30: never on thinking, never on what is empty: the last cacheable block takes it. */
static void test_marker_skips_thinking_trap_30(void **state)
{
	struct model model = fixture_anthropic();
	struct request_params params = {.temperature = -1};
	struct model_client *client = fixture_client(&model, &params);
	struct message *view[2] = {message_new(MESSAGE_USER), message_new(MESSAGE_ASSISTANT)};
	message_add_result(view[0], "c1", "shell", "", 0, false);
	assert_null(message_add_text(view[0], ORIGIN_TOOL, "", 0));
	view[1]->provider = mem_strdup("anthropic");
	message_add_opaque(view[1], "{\"type\":\"server_tool_use\",\"id\":\"s\"}");
	AUTO_BUF struct buf out = BUF_INIT;
	fixture_request(client, view, 2, -1, &out);
	assert_non_null(strstr(out.data, "\"content\":\"(no output)\"," MARK "}]}"));
	assert_int_equal(fixture_count(out.data, MARK), 1);
	fixture_free(view, 2);
	client_free(client);
}

/* Dialect: an assistant message between a tool's and a user's, also over two messages. */
static void test_bridge_between_tool_and_user(void **state)
{
	struct model model = fixture_openai();
	struct request_params params = {.temperature = -1};
	struct message *view[2] = {message_new(MESSAGE_USER), fixture_user("go on", 2)};
	message_add_result(view[0], "c1", "shell", "ok", 2, false);
	for (int i = 0; i < 2; i++) {
		AUTO_BUF struct buf out = BUF_INIT;
		model.dialect = LIT(i ? "mistral" : "openai");
		struct model_client *client = fixture_client(&model, &params);
		fixture_request(client, view, 2, -1, &out);
		assert_int_equal(strstr(out.data,
					"},{\"role\":\"assistant\",\"content\":\"Understood.\"},"
					"{\"role\":\"user\"") != NULL,
				 i);
		client_free(client);
		free(view[0]->rendered);
		view[0]->rendered = NULL;
	}
	fixture_free(view, 2);
}

/* H2, wire.md 1.9: only where it is wanted and the model offers it, with its beta header; left out for good
 * once a server did not know it (wire.md 4). */
static void test_provider_edits_h2(void **state)
{
	static const char *const exclude[] = {"notes", "agent", NULL};
	struct model model = fixture_anthropic();
	struct request_params params = {
		.temperature = -1, .edits_keep = 5, .edits_least = 8000, .edits_exclude = exclude};
	struct message *view[1] = {fixture_user("the task", 1)};

	for (int i = 0; i < 4; i++) {
		AUTO_BUF struct buf out = BUF_INIT;
		const char *beta = NULL;

		params.edits_trigger = i ? 64000 : 0;
		model.context_edits = i > 1;
		model.preserved_thinking = i == 3;
		struct model_client *client = fixture_client(&model, &params);
		assert_int_equal(
			client_render_request(client, view, 1, 4096, -1, &out, &beta, NULL), 0);
		assert_int_equal(strstr(out.data, "context_management") != NULL, i > 1);
		if (i < 2) {
			assert_null(beta);
			assert_false(client_drop_edits(client));
		} else {
			assert_non_null(strstr(
				out.data,
				",\"context_management\":{\"edits\":[{\"type\":\"clear_tool_uses_"
				"20250919\","
				"\"trigger\":{\"type\":\"input_tokens\",\"value\":64000},\"keep\":{"
				"\"type\":"
				"\"tool_uses\",\"value\":5},\"clear_at_least\":{\"type\":\"input_"
				"tokens\","
				"\"value\":8000},\"exclude_tools\":[\"notes\",\"agent\"]}]}}"));
			assert_non_null(strstr(beta, "context-management-2025-06-27"));
			assert_int_equal(strstr(beta, "thinking-binding") != NULL, i == 3);
			assert_true(client_drop_edits(client));
			buf_clear(&out);
			client_render_request(client, view, 1, 4096, -1, &out, &beta, NULL);
			assert_null(strstr(out.data, "context_management"));
		}
		client_free(client);
	}
	fixture_free(view, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_requests_grow_at_their_end_anthropic),
		cmocka_unit_test(test_requests_grow_at_their_end_openai),
		cmocka_unit_test(test_requests_grow_at_their_end_mistral),
		cmocka_unit_test(test_rendered_bytes_stay_i4),
		cmocka_unit_test(test_sent_again_is_the_same),
		cmocka_unit_test(test_four_markers_with_pinned_h17),
		cmocka_unit_test(test_no_markers_unless_explicit_h17),
		cmocka_unit_test(test_long_lived_markers_stand_before_short_ones),
		cmocka_unit_test(test_large_append_gets_an_intermediate_marker_h17),
		cmocka_unit_test(test_intermediate_marker_skips_thinking_trap_30),
		cmocka_unit_test(test_marker_skips_thinking_trap_30),
		cmocka_unit_test(test_bridge_between_tool_and_user),
		cmocka_unit_test(test_provider_edits_h2),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
