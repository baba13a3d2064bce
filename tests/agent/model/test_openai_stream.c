/*
 * Streams of the OpenAI form and its imitations: assembly of calls by the rules of wire.md 4,
 * usage, reasoning, errors. Traps by number.
 */
#include "fixture.h"

#define CHUNK(delta) "{\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":" delta "}]}"
#define TEXT(value)  CHUNK("{\"content\":\"" value "\"}")
#define CALLS(list)  CHUNK("{\"tool_calls\":[" list "]}")
#define CALL(head, name, arguments)                                                                \
	"{" head "\"type\":\"function\",\"function\":{\"name\":\"" name                            \
	"\",\"arguments\":" arguments "}}"
#define MORE(head, arguments) "{" head "\"function\":{\"arguments\":" arguments "}}"
#define FINISH(reason)                                                                             \
	"{\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"" reason "\"}]}"
#define DONE "[DONE]"
#define A    "\"{\\\"path\\\":\\\"a.txt\\\"}\""
#define B    "\"{\\\"path\\\":\\\"b.txt\\\"}\""

struct setup {
	struct model model;
	struct model_client *client;
	struct stream_answer answer;
};

static int setup(void **state)
{
	struct setup *s = mem_alloc(sizeof(*s));
	struct request_params params = {.temperature = -1};
	s->model = fixture_openai();
	s->model.reasoning_field = LIT("reasoning_content");
	s->client = fixture_client(&s->model, &params);
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct setup *s = *state;
	stream_answer_release(&s->answer);
	client_free(s->client);
	free(s);
	return 0;
}

/* The answer lives until the test ends. */
#define ANSWER(...) take_answer(*state, fixture_sse(__VA_ARGS__, NULL))
static struct stream_answer *take_answer(struct setup *s, char *sse)
{
	stream_answer_release(&s->answer);
	s->answer = fixture_answer(s->client, sse, 0);
	free(sse);
	return &s->answer;
}

#define FAILURE(message, ...) take_failure(*state, message, fixture_sse(__VA_ARGS__, NULL))
static enum err_code take_failure(struct setup *s, char message[512], char *sse)
{
	enum err_code code = fixture_failure(s->client, sse, message);
	free(sse);
	return code;
}

static void assert_call(const struct stream_answer *a, size_t i, const char *id, const char *name,
			const char *arguments)
{
	assert_true(i < a->message->n_blocks);
	const struct block *b = &a->message->blocks[i];
	assert_int_equal(b->kind, BLOCK_TOOL_CALL);
	if (id)
		assert_string_equal(b->id, id);
	assert_string_equal(b->name, name);
	assert_string_equal(b->text, arguments);
	assert_false(b->partial);
}

/* Two calls on a.txt and b.txt, and nothing else. */
static void assert_two_calls(const struct stream_answer *a, const char *id0, const char *id1)
{
	assert_int_equal(a->message->n_blocks, 2);
	assert_int_equal(a->stop, STOP_TOOL_USE);
	assert_call(a, 0, id0, "read", "{\"path\":\"a.txt\"}");
	assert_call(a, 1, id1, "read", "{\"path\":\"b.txt\"}");
	assert_string_not_equal(a->message->blocks[0].id, a->message->blocks[1].id);
}

static void test_ordinary_answer(void **state)
{
	struct stream_answer *a = ANSWER(
		CHUNK("{\"role\":\"assistant\",\"content\":\"\"}"), TEXT("I "), TEXT("look."),
		CALLS(CALL("\"index\":0,\"id\":\"c1\",", "read", "\"\"")),
		CALLS(MORE("\"index\":0,", "\"{\\\"path\\\":\"")),
		CALLS(MORE("\"index\":0,", "\"\\\"a.txt\\\"}\"")),
		CALLS(CALL("\"index\":1,\"id\":\"c2\",", "ls", "\"{}\"")), FINISH("tool_calls"),
		"{\"id\":\"c\",\"choices\":[],\"usage\":{\"prompt_tokens\":100,\"completion_"
		"tokens\":20}}",
		DONE);
	assert_int_equal(a->stop, STOP_TOOL_USE);
	assert_string_equal(a->message->blocks[0].text, "I look.");
	assert_call(a, 1, "c1", "read", "{\"path\":\"a.txt\"}");
	assert_call(a, 2, "c2", "ls", "{}");
	assert_int_equal(a->usage.input, 100);
	assert_int_equal(a->usage.output, 20);
	assert_null(a->message->blocks[1].raw);
}

/* Trap 33: every parallel call has index 0. */
static void test_same_index_new_id_trap_33(void **state)
{
	assert_two_calls(ANSWER(CALLS(CALL("\"index\":0,\"id\":\"c1\",", "read", A)),
				CALLS(CALL("\"index\":0,\"id\":\"c2\",", "read", B)),
				FINISH("tool_calls")),
			 "c1", "c2");
}

/* Rule 1: a name behind complete arguments, without any id. */
static void test_same_index_no_id(void **state)
{
	assert_two_calls(ANSWER(CALLS(CALL("\"index\":0,", "read", A)),
				CALLS(CALL("\"index\":0,", "read", B)), FINISH("tool_calls")),
			 NULL, NULL);
}

/* Trap 35: no index, one complete call each, finish_reason "stop". */
static void test_no_index_trap_35(void **state)
{
	assert_two_calls(ANSWER(CALLS(CALL("\"id\":\"c1\",", "read", A)),
				CALLS(CALL("\"id\":\"c2\",", "read", B)), FINISH("stop")),
			 "c1", "c2");
	assert_two_calls(ANSWER(CALLS(CALL("\"id\":\"\",", "read", A)), CALLS(CALL("", "read", B)),
				FINISH("stop")),
			 NULL, NULL);
}

/* Rule 2: neither index nor id: position in the array. */
static void test_position_in_the_array(void **state)
{
	assert_two_calls(
		ANSWER(CALLS(CALL("", "read", "\"\"") "," CALL("", "read", "\"\"")),
		       CALLS(MORE("", "\"{\\\"path\\\":\"") "," MORE("", "\"{\\\"path\\\":\"")),
		       CALLS(MORE("", "\"\\\"a.txt\\\"}\"") "," MORE("", "\"\\\"b.txt\\\"}\"")),
		       FINISH("tool_calls")),
		NULL, NULL);
}

/* Fragments of two calls may alternate; the index tells. */
static void test_interleaved_fragments(void **state)
{
	assert_two_calls(
		ANSWER(CALLS(CALL("\"index\":0,\"id\":\"c1\",", "read", "\"{\\\"path\\\":\"")),
		       CALLS(CALL("\"index\":1,\"id\":\"c2\",", "read", "\"{\\\"path\\\":\"")),
		       CALLS(MORE("\"index\":0,", "\"\\\"a.txt\\\"}\"")),
		       CALLS(MORE("\"index\":1,", "\"\\\"b.txt\\\"}\"")), FINISH("tool_calls")),
		"c1", "c2");
}

/* OCI by way of LiteLLM: a new id on each fragment and "stop". */
static void test_new_id_on_each_fragment(void **state)
{
	struct stream_answer *a =
		ANSWER(CALLS(CALL("\"index\":0,\"id\":\"x1\",", "read", "\"{\\\"path\\\":\"")),
		       CALLS(MORE("\"index\":0,\"id\":\"x2\",", "\"\\\"a.txt\\\"\"")),
		       CALLS(MORE("\"index\":0,\"id\":\"x3\",", "\"}\"")),
		       CALLS(MORE("\"index\":0,\"id\":\"x4\",", "\"\"")), FINISH("stop"));
	assert_int_equal(a->message->n_blocks, 1);
	assert_call(a, 0, "x1", "read", "{\"path\":\"a.txt\"}");
	assert_int_equal(a->stop, STOP_TOOL_USE);
}

/* A server that repeats id and name with every fragment. */
static void test_repeated_id_and_name(void **state)
{
	struct stream_answer *a =
		ANSWER(CALLS(CALL("\"index\":0,\"id\":\"c1\",", "read", "\"{\\\"path\\\":\"")),
		       CALLS(CALL("\"index\":0,\"id\":\"c1\",", "read", "\"\\\"a.txt\\\"}\"")),
		       CALLS(CALL("\"index\":0,\"id\":\"c1\",", "read", "\"\"")), FINISH("stop"));
	assert_int_equal(a->message->n_blocks, 1);
	assert_call(a, 0, "c1", "read", "{\"path\":\"a.txt\"}");
}

/* And one that gives the finished call once more. */
static void test_repeated_whole_call(void **state)
{
	struct stream_answer *a =
		ANSWER(CALLS(CALL("\"index\":0,\"id\":\"c1\",", "read", A)),
		       CALLS(CALL("\"index\":0,\"id\":\"c1\",", "read", A)), FINISH("stop"));
	assert_int_equal(a->message->n_blocks, 1);
	assert_call(a, 0, "c1", "read", "{\"path\":\"a.txt\"}");
	/* The same id with other arguments is nothing that may run. */
	a = ANSWER(CALLS(CALL("\"index\":0,\"id\":\"c1\",", "read", A)),
		   CALLS(CALL("\"index\":0,\"id\":\"c1\",", "read", B)), FINISH("stop"));
	assert_int_equal(a->message->n_blocks, 1);
	assert_true(a->message->blocks[0].partial);
}

/* A call has one name: another one begins another call, arguments or not. */
static void test_another_name_is_another_call(void **state)
{
	struct stream_answer *a = ANSWER(CALLS(CALL("", "ls", "\"\"")),
					 CALLS(CALL("", "pwd", "\"\"")), FINISH("stop"));
	assert_int_equal(a->message->n_blocks, 2);
	assert_call(a, 0, NULL, "ls", "{}");
	assert_call(a, 1, NULL, "pwd", "{}");
}

static void test_blank_data_is_ignored(void **state)
{
	assert_int_equal(ANSWER("", "  ", TEXT("x"), FINISH("stop") "   ", "[DONE] ")->stop,
			 STOP_END);
}

static void test_same_id_twice_is_made_unique(void **state)
{
	struct stream_answer *a =
		ANSWER(CALLS(CALL("\"index\":0,\"id\":\"c\",", "read", A)),
		       CALLS(CALL("\"index\":1,\"id\":\"c\",", "read", B)), FINISH("tool_calls"));
	assert_two_calls(a, "c", NULL);
}

/* Trap 37: known to be cut, though its arguments are complete. */
static void test_call_cut_by_limit_trap_37(void **state)
{
	struct stream_answer *a =
		ANSWER(CALLS(CALL("\"index\":0,\"id\":\"c1\",", "read", A)),
		       CALLS(CALL("\"index\":1,\"id\":\"c2\",", "write", B)), FINISH("length"));
	assert_int_equal(a->stop, STOP_MAX_TOKENS);
	assert_false(a->message->blocks[0].partial);
	assert_true(a->message->blocks[1].partial);
	a = ANSWER(CALLS(CALL("\"index\":0,\"id\":\"c1\",", "read", A)), TEXT("and th"),
		   FINISH("length"));
	assert_true(a->message->blocks[0].partial); /* the text */
	assert_false(a->message->blocks[1].partial);
	/* A proxy's second, friendlier reason changes nothing. */
	a = ANSWER(CALLS(CALL("\"index\":0,\"id\":\"c1\",", "read", A)), FINISH("length"),
		   FINISH("stop"));
	assert_int_equal(a->stop, STOP_MAX_TOKENS);
	assert_true(a->message->blocks[0].partial);
}

/* Trap 39, both cases. */
static void test_control_characters_and_cut_arguments_trap_39(void **state)
{
	struct stream_answer *a =
		ANSWER(CALLS(CALL("\"index\":0,\"id\":\"c1\",", "shell",
				  "\"{\\\"command\\\":\\\"printf 'a\\tb\\n'\\\"}\"")),
		       CALLS(CALL("\"index\":1,\"id\":\"c2\",", "shell",
				  "\"{\\\"command\\\":\\\"rm -rf /srv/app/tm\"")),
		       FINISH("tool_calls"));
	assert_call(a, 0, "c1", "shell", "{\"command\":\"printf 'a\\tb\\n'\"}");
	assert_true(a->message->blocks[1].partial);
}

/* Trap 41: "stop" although there is a call. */
static void test_stop_with_a_call_trap_41(void **state)
{
	struct stream_answer *a =
		ANSWER(CALLS(CALL("\"index\":0,\"id\":\"c1\",", "read", A)), FINISH("stop"));
	assert_int_equal(a->stop, STOP_TOOL_USE);
}

/* Trap 43: "", null, "null", nothing; rule 3: a whole object. */
static void test_forms_of_arguments_trap_43(void **state)
{
	static const char *const forms[] = {"\"\"", "null", "\"null\"", "{}", "\" \\n\""};
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		AUTO_FREE char *chunk = mem_printf(
			CALLS("{\"id\":\"c1\",\"function\":{\"name\":\"ls\",\"arguments\":%s}}"),
			forms[i]);
		assert_call(ANSWER(chunk, FINISH("tool_calls")), 0, "c1", "ls", "{}");
	}
	assert_call(ANSWER(CALLS("{\"id\":\"c1\",\"function\":{\"name\":\"ls\"}}"), FINISH("stop")),
		    0, "c1", "ls", "{}");
	assert_two_calls(
		ANSWER(CALLS(CALL("\"index\":0,\"id\":\"c1\",", "read", "{\"path\":\"a.txt\"}")),
		       CALLS(CALL("\"index\":0,\"id\":\"c2\",", "read", "{\"path\":\"b.txt\"}")),
		       FINISH("stop")),
		"c1", "c2");
}

static void test_arguments_that_are_no_object(void **state)
{
	struct stream_answer *a = ANSWER(
		CALLS(CALL("\"index\":0,\"id\":\"c1\",", "read", "\"[1]\"")), FINISH("tool_calls"));
	assert_true(a->message->blocks[0].partial);
	assert_string_equal(a->message->blocks[0].text, "[1]");
}

/* Trap 48: what came in a reasoning field goes back in it. */
static void test_reasoning_is_echoed_trap_48(void **state)
{
	struct setup *s = *state;
	struct stream_answer *a = ANSWER(CHUNK("{\"reasoning_content\":\"let \"}"),
					 CHUNK("{\"reasoning_content\":\"me\",\"content\":null}"),
					 CALLS(CALL("\"index\":0,\"id\":\"c1\",", "ls", "\"\"")),
					 FINISH("tool_calls"));
	assert_string_equal(a->message->blocks[0].name, "reasoning_content");
	client_render_message(s->client, a->message);
	assert_non_null(strstr(a->message->rendered, "\"reasoning_content\":\"let me\""));
}

/* The same text in two fields counts once. */
static void test_first_reasoning_field_counts(void **state)
{
	struct stream_answer *a = ANSWER(
		CHUNK("{\"reasoning_content\":\"\",\"reasoning\":\"a\",\"reasoning_text\":\"a\"}"),
		TEXT("b"), FINISH("stop"));
	assert_string_equal(a->message->blocks[0].text, "a");
	assert_string_equal(a->message->blocks[0].name, "reasoning");
}

static void test_reasoning_details_are_joined_and_echoed(void **state)
{
	struct setup *s = *state;
	struct stream_answer *a = ANSWER(CHUNK("{\"reasoning_details\":[{\"type\":\"reasoning."
					       "text\",\"index\":0,\"text\":\"a\"}]}"),
					 CHUNK("{\"reasoning_details\":[{\"type\":\"reasoning."
					       "text\",\"index\":0,\"text\":\"b\","
					       "\"signature\":\"s\"}]}"),
					 CHUNK("{\"reasoning_details\":[{\"type\":\"reasoning."
					       "encrypted\",\"index\":0,\"id\":"
					       "\"c1\",\"data\":\"xx\"}]}"),
					 CALLS(CALL("\"index\":0,\"id\":\"c1\",", "ls", "\"\"")),
					 FINISH("tool_calls"));
	client_render_message(s->client, a->message);
	assert_non_null(
		strstr(a->message->rendered,
		       "\"reasoning_details\":[{\"type\":\"reasoning.text\",\"index\":0,"
		       "\"text\":\"ab\",\"signature\":\"s\"},{\"type\":\"reasoning.encrypted\","
		       "\"index\":0,\"id\":\"c1\",\"data\":\"xx\"}]"));
}

static void test_content_as_parts(void **state)
{
	struct stream_answer *a = ANSWER(CHUNK("{\"content\":[{\"type\":\"thinking\",\"thinking\":["
					       "{\"type\":\"text\",\"text\":"
					       "\"hm\"}]},{\"type\":\"text\",\"text\":\"yes\"}]}"),
					 FINISH("stop"));
	assert_string_equal(a->message->blocks[0].text, "hm");
	assert_string_equal(a->message->blocks[1].text, "yes");
}

/* Trap 50: fields of a call that nobody knows, also in a delta of their own. */
static void test_unknown_fields_of_calls_trap_50(void **state)
{
	struct setup *s = *state;
	struct stream_answer *a =
		ANSWER(CALLS(CALL("\"id\":\"c1\",", "read", A)),
		       CALLS("{\"extra_content\":{\"google\":{\"thought_signature\":\"sig-77\"}}}"),
		       FINISH("stop"));
	assert_int_equal(a->message->n_blocks, 1);
	assert_call(a, 0, "c1", "read", "{\"path\":\"a.txt\"}");
	client_render_message(s->client, a->message);
	assert_non_null(
		strstr(a->message->rendered,
		       "},\"extra_content\":{\"google\":{\"thought_signature\":\"sig-77\"}}}"));
}

/* Trap 56: comments before the first data. */
static void test_comments_are_ignored_trap_56(void **state)
{
	struct setup *s = *state;
	static const char sse[] = ": OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\n"
				  ": OPENROUTER PROCESSING\n\ndata: " TEXT(
					  "x") "\n\n"
					       ": keep-alive\n\ndata: " FINISH("stop") "\n\n";
	s->answer = fixture_answer(s->client, sse, 0);
	assert_string_equal(s->answer.message->blocks[0].text, "x");
}

/* Trap 58: half a call, then an error: retryable, nothing is run. */
static void test_error_finish_trap_58(void **state)
{
	char message[512];
	assert_int_equal(FAILURE(message,
				 CALLS(CALL("\"index\":0,\"id\":\"c1\",", "shell",
					    "\"{\\\"command\\\":\\\"rm\"")),
				 "{\"error\":{\"code\":503,\"message\":\"provider went "
				 "away\"},\"choices\":[{"
				 "\"index\":0,\"delta\":{},\"finish_reason\":\"error\"}]}"),
			 ERR_BUSY);
	assert_string_equal(message, "503: provider went away");
	struct stream_answer *a = ANSWER(
		CALLS(CALL("\"index\":0,\"id\":\"c1\",", "shell", "\"{}\"")), FINISH("error"));
	assert_int_equal(a->stop, STOP_ERROR);
	assert_true(a->message->blocks[0].partial);
}

/* Trap 60: no finish_reason and no [DONE]; [DONE] alone is no end either. */
static void test_incomplete_stream_trap_60(void **state)
{
	assert_int_equal(FAILURE(NULL, TEXT("a"), TEXT("b"), TEXT("c"), TEXT("d"), TEXT("e")),
			 ERR_CLOSED);
	assert_int_equal(FAILURE(NULL, TEXT("a"), DONE), ERR_CLOSED);
	assert_int_equal(ANSWER(TEXT("a"), FINISH("stop"))->stop,
			 STOP_END); /* [DONE] is optional */
}

/* Trap 62: Azure's first chunk, and its last choice without a delta. */
static void test_azure_chunks_trap_62(void **state)
{
	struct stream_answer *a =
		ANSWER("{\"id\":\"\",\"choices\":[],\"prompt_filter_results\":[]}", TEXT("x"),
		       FINISH("stop"),
		       "{\"id\":\"\",\"choices\":[{\"index\":0,\"content_filter_offsets\":{},"
		       "\"finish_reason\":"
		       "null}]}",
		       DONE);
	assert_int_equal(a->stop, STOP_END);
	assert_string_equal(a->message->blocks[0].text, "x");
}

/* Trap 82: cached tokens are a part of the prompt. */
static void test_cached_is_a_part_trap_82(void **state)
{
	struct stream_answer *a =
		ANSWER(TEXT("x"), FINISH("stop"),
		       "{\"choices\":[],\"usage\":{\"prompt_tokens\":47000,\"completion_tokens\":9,"
		       "\"prompt_tokens_details\":{\"cached_tokens\":42000},"
		       "\"completion_tokens_details\":{\"reasoning_tokens\":5}}}");
	assert_int_equal(usage_prompt(&a->usage), 47000);
	assert_int_equal(a->usage.cache_read, 42000);
	assert_int_equal(a->usage.input, 5000);
	assert_int_equal(a->usage.thinking, 5);
}

/* Ollama: on the finish chunk; Moonshot: within the choice; trap 80: replaced, not added. */
static void test_places_of_usage(void **state)
{
	struct stream_answer *a =
		ANSWER("{\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":1}}",
		       "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"},\"finish_reason\":"
		       "\"stop\"}],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":3}}");
	assert_int_equal(usage_prompt(&a->usage), 7);
	assert_int_equal(a->usage.output, 3);
	a = ANSWER("{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"},\"finish_reason\":"
		   "\"stop\","
		   "\"usage\":{\"prompt_tokens\":8,\"completion_tokens\":4,\"cached_tokens\":2}}],"
		   "\"usage\":null}");
	assert_int_equal(usage_prompt(&a->usage), 8);
	assert_int_equal(a->usage.cache_read, 2);
	assert_false(ANSWER(TEXT("x"), FINISH("stop"))->usage.known);
}

static void test_refusal(void **state)
{
	struct stream_answer *a = ANSWER(CHUNK("{\"refusal\":\"I can\"}"),
					 CHUNK("{\"refusal\":\"not\"}"), FINISH("stop"));
	assert_int_equal(a->stop, STOP_REFUSAL);
	assert_string_equal(a->refusal, "I cannot");
	assert_int_equal(ANSWER(TEXT("x"), FINISH("content_filter"))->stop, STOP_REFUSAL);
}

static void test_stop_reasons(void **state)
{
	static const struct {
		const char *event;
		enum stop_reason want;
	} rows[] = {
		{FINISH("stop"), STOP_END},
		{FINISH("length"), STOP_MAX_TOKENS},
		{FINISH("model_context_window_exceeded"), STOP_WINDOW}, /* row 39 */
		{FINISH("insufficient_system_resource"), STOP_ERROR},
		{FINISH("tool_calls"), STOP_END}, /* there is none */
		{"{\"choices\":[{\"finish_reason\":\"\",\"native_finish_reason\":\"length\"}]}",
		 STOP_MAX_TOKENS},
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_int_equal(ANSWER(TEXT("x"), rows[i].event)->stop, rows[i].want);
	/* Some servers send an empty reason with every chunk. */
	assert_int_equal(FAILURE(NULL, FINISH("")), ERR_CLOSED);
}

static void test_errors_in_the_stream(void **state)
{
	struct setup *s = *state;
	char message[512];
	assert_int_equal(FAILURE(message, TEXT("x"),
				 "{\"error\":\"tokens to keep from the initial prompt\"}"),
			 ERR_DENIED); /* LM Studio, row 14 */
	assert_string_equal(message, "tokens to keep from the initial prompt");
	assert_int_equal(FAILURE(message, "[{\"x\":1}]", DONE), ERR_CLOSED);
	/* llama.cpp, row 13: the field itself is error. */
	assert_int_equal(
		fixture_failure(
			s->client,
			"error: {\"code\":400,\"message\":\"the request exceeds the "
			"available context size\",\"type\":\"exceed_context_size_error\"}\n\n",
			message),
		ERR_DENIED);
	assert_string_equal(message, "exceed_context_size_error: the request exceeds the available "
				     "context size");
	assert_int_equal(
		fixture_failure(s->client, "event: error\ndata: out of memory\n\n", message),
		ERR_DENIED);
	assert_string_equal(message, "out of memory");
	/* A null error is none. */
	assert_int_equal(ANSWER("{\"error\":null,\"choices\":[{\"delta\":{\"content\":\"x\"},"
				"\"finish_reason\":\"stop\"}]}")
				 ->stop,
			 STOP_END);
}

/* vLLM: a line end as text between calls is no text (trap 28). */
static void test_blank_text_between_calls(void **state)
{
	assert_two_calls(ANSWER(TEXT("\\n"), CALLS(CALL("\"index\":0,\"id\":\"c1\",", "read", A)),
				TEXT("\\n"), CALLS(CALL("\"index\":0,\"id\":\"c2\",", "read", B)),
				FINISH("tool_calls")),
			 "c1", "c2");
}

static void test_old_function_call_form(void **state)
{
	struct stream_answer *a =
		ANSWER(CHUNK("{\"function_call\":{\"name\":\"ls\",\"arguments\":\"{\"}}"),
		       CHUNK("{\"function_call\":{\"arguments\":\"}\"}}"), FINISH("function_call"));
	assert_int_equal(a->message->n_blocks, 1);
	assert_call(a, 0, NULL, "ls", "{}");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_ordinary_answer),
		TEST(test_same_index_new_id_trap_33),
		TEST(test_same_index_no_id),
		TEST(test_no_index_trap_35),
		TEST(test_position_in_the_array),
		TEST(test_interleaved_fragments),
		TEST(test_new_id_on_each_fragment),
		TEST(test_repeated_id_and_name),
		TEST(test_repeated_whole_call),
		TEST(test_another_name_is_another_call),
		TEST(test_blank_data_is_ignored),
		TEST(test_same_id_twice_is_made_unique),
		TEST(test_call_cut_by_limit_trap_37),
		TEST(test_control_characters_and_cut_arguments_trap_39),
		TEST(test_stop_with_a_call_trap_41),
		TEST(test_forms_of_arguments_trap_43),
		TEST(test_arguments_that_are_no_object),
		TEST(test_reasoning_is_echoed_trap_48),
		TEST(test_first_reasoning_field_counts),
		TEST(test_reasoning_details_are_joined_and_echoed),
		TEST(test_content_as_parts),
		TEST(test_unknown_fields_of_calls_trap_50),
		TEST(test_comments_are_ignored_trap_56),
		TEST(test_error_finish_trap_58),
		TEST(test_incomplete_stream_trap_60),
		TEST(test_azure_chunks_trap_62),
		TEST(test_cached_is_a_part_trap_82),
		TEST(test_places_of_usage),
		TEST(test_refusal),
		TEST(test_stop_reasons),
		TEST(test_errors_in_the_stream),
		TEST(test_blank_text_between_calls),
		TEST(test_old_function_call_form),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
