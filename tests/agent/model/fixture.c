/*
 * fixture.c - see fixture.h.
 */
#include "fixture.h"

#include <fcntl.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/file.h"

struct model fixture_anthropic(void)
{
	return (struct model){
		.provider = LIT("anthropic"),
		.name = LIT("claude-opus-5"),
		.api = MODEL_API_ANTHROPIC,
		.window = 200000,
		.max_output = 32000,
		.temperature_ok = false,
		.reasoning = REASONING_ALWAYS,
		.cache = CACHE_EXPLICIT,
		.keeps_thinking = true,
		.usage_in_stream = true,
		.parallel_tools = true,
		.images = true,
		.dialect = LIT("anthropic"),
	};
}

struct model fixture_openai(void)
{
	return (struct model){
		.provider = LIT("openai"),
		.name = LIT("gpt-5"),
		.api = MODEL_API_OPENAI,
		.window = 400000,
		.max_output = 32000,
		.temperature_ok = true,
		.reasoning = REASONING_EFFORT,
		.max_tokens_field = LIT("max_completion_tokens"),
		.system_role = LIT("developer"),
		.cache = CACHE_AUTOMATIC,
		.usage_in_stream = true,
		.parallel_tools = true,
		.images = true,
		.dialect = LIT("openai"),
	};
}

static const struct tool_spec tools[] = {
	{"read", "Reads a file.",
	 "{ \"type\": \"object\", \"properties\": { \"path\": { \"type\": \"string\" } }, "
	 "\"required\": [\"path\"] }"},
	{"shell", "Runs a \"command\".", "{\"type\":\"object\",\"properties\":{}}"},
};

struct request_params fixture_params(void)
{
	return (struct request_params){
		.system = "You are careful.\nTools are \"read\" and \"shell\".",
		.tools = tools,
		.n_tools = ARRAY_SIZE(tools),
		.effort = "medium",
		.temperature = -1,
	};
}

struct model_client *fixture_client(const struct model *model, const struct request_params *params)
{
	struct model_client *client = NULL;
	struct err err = ERR_INIT;
	if (client_new(model, params, &client, &err) < 0)
		fail_msg("client_new: %s", err.message);
	return client;
}

struct message *fixture_user(const char *text, uint64_t uid)
{
	struct message *m = message_new(MESSAGE_USER);
	message_add_text(m, ORIGIN_USER, text, strlen(text));
	m->uid = uid;
	return m;
}

static struct message *assistant(const struct model *model, uint64_t uid)
{
	struct message *m = message_new(MESSAGE_ASSISTANT);
	m->provider = mem_strdup(model->provider);
	m->model = mem_strdup(model->name);
	m->uid = uid;
	return m;
}

void fixture_dialogue(struct message *ret[DIALOGUE], const struct model *model)
{
	ret[0] = fixture_user("Fix the test in src/a.c, please: \"expected 3\" – got 4.", 1);
	message_add_text(ret[0], ORIGIN_ENVIRONMENT, "branch: main", 12);

	ret[1] = assistant(model, 2);
	if (model->api == MODEL_API_ANTHROPIC)
		message_add_thinking(ret[1], NULL, "hm", 2,
				     "{\"type\":\"thinking\",\"thinking\":\"hm\","
				     "\"signature\":\"c2ln\"}");
	else
		message_add_thinking(ret[1], "reasoning_content", "hm", 2, NULL);
	message_add_text(ret[1], ORIGIN_MODEL, "I look.", 7);
	message_add_call(ret[1], "toolu_1", "read", "{\"path\":\"src/a.c\"}", 18, NULL);
	message_add_call(ret[1], "toolu_2", "shell", "{}", 2, NULL);

	ret[2] = message_new(MESSAGE_USER);
	ret[2]->uid = 3;
	message_add_text(ret[2], ORIGIN_NUDGE, "Half of the budget is used.", 27);
	message_add_result(ret[2], "toolu_1", "read", "int a;\n", 7, false);
	message_add_image(ret[2], "toolu_1", "image/png", "iVBORw0=", 8);
	message_add_result(ret[2], "toolu_2", "shell", "", 0, true);

	ret[3] = assistant(model, 4);
	message_add_text(ret[3], ORIGIN_MODEL, "Done.", 5);
	ret[4] = fixture_user("Thanks. And b.c?", 5);
}

void fixture_free(struct message **messages, size_t n)
{
	for (size_t i = 0; i < n; i++)
		message_free(messages[i]);
}

void fixture_request(struct model_client *client, struct message *const *view, size_t n,
		     long pinned, struct buf *out)
{
	const char *beta = NULL;
	struct err err = ERR_INIT;
	struct json_object *json = NULL;
	if (client_render_request(client, view, n, 4096, pinned, out, &beta, &err) < 0)
		fail_msg("client_render_request: %s", err.message);
	if (json_parse(out->data, out->len, &json, &err) < 0)
		fail_msg("the request is no JSON: %s\n%s", err.message, out->data);
	json_object_put(json);
}

void fixture_strip_marks(struct buf *text)
{
	static const char mark[] = ",\"cache_control\":{\"type\":\"ephemeral\"}";
	size_t n = strlen(mark);
	char *at;
	while ((at = strstr(text->data, mark))) {
		memmove(at, at + n, text->len - (size_t)(at - text->data) - n + 1);
		text->len -= n;
	}
}

size_t fixture_count(const char *hay, const char *needle)
{
	size_t n = 0;
	for (; (hay = strstr(hay, needle)); hay += strlen(needle))
		n++;
	return n;
}

void fixture_golden(const char *name, const struct buf *text)
{
	AUTO_FREE char *path = mem_printf("%s/%s", GOLDEN_DIR, name);
	AUTO_BUF struct buf want = BUF_INIT;
	AUTO_BUF struct buf have = BUF_INIT;
	struct err err = ERR_INIT;
	buf_add(&have, text->data, text->len);
	buf_addc(&have, '\n');
	if (env_get("BATON_UPDATE_GOLDEN") &&
	    file_write_atomic(AT_FDCWD, path, have.data, have.len, 0644, &err) < 0)
		fail_msg("%s", err.message);
	if (file_read(AT_FDCWD, path, 1 << 20, &want, &err) < 0)
		fail_msg("%s", err.message);
	assert_string_equal(buf_str(&have), buf_str(&want));
}

static int feed(struct stream_parser *parser, const char *text, size_t step, struct err *err)
{
	size_t n = strlen(text);
	for (size_t i = 0; i < n; i += step)
		if (stream_feed(parser, text + i, MIN(step, n - i), err) < 0)
			return -1;
	return 0;
}

static int64_t fixed_time(void *arg)
{
	return 1700000000000;
}

struct stream_answer fixture_answer(const struct model_client *client, const char *text,
				    size_t step)
{
	clock_fake(NULL, fixed_time, NULL); /* ids that are made up depend on it */
	struct stream_parser *parser = stream_new(client, NULL, NULL);
	struct stream_answer answer = {.message = NULL};
	struct err err = ERR_INIT;
	if (feed(parser, text, step ? step : strlen(text) + 1, &err) < 0)
		fail_msg("stream_feed: %s", err.message);
	if (stream_finish(parser, &answer, &err) < 0)
		fail_msg("stream_finish: %s", err.message);
	stream_free(parser);
	return answer;
}

enum err_code fixture_failure(const struct model_client *client, const char *text,
			      char ret_message[512])
{
	struct stream_parser *parser = stream_new(client, NULL, NULL);
	struct stream_answer answer = {.message = NULL};
	struct err err = ERR_INIT;
	if (feed(parser, text, strlen(text) + 1, &err) == 0 &&
	    stream_finish(parser, &answer, &err) == 0)
		fail_msg("the stream was taken for a whole answer");
	stream_free(parser);
	if (ret_message)
		memcpy(ret_message, err.message, sizeof(err.message));
	return err.code;
}

char *fixture_describe(const struct stream_answer *a)
{
	struct buf out = BUF_INIT;
	AUTO_JSON struct json_object *json = message_to_json(a->message);
	json_write(&out, json);
	buf_addf(&out,
		 " stop=%s usage=%lld/%lld/%lld/%lld/%lld/%lld known=%d refusal=%s dropped=%d",
		 stop_reason_name(a->stop), (long long)a->usage.input,
		 (long long)a->usage.cache_read, (long long)a->usage.cache_write,
		 (long long)a->usage.cache_write_1h, (long long)a->usage.output,
		 (long long)a->usage.thinking, a->usage.known, a->refusal ? a->refusal : "-",
		 a->dropped_blocks);
	return buf_take(&out);
}

char *fixture_sse(const char *first, ...)
{
	struct buf out = BUF_INIT;
	va_list ap;
	va_start(ap, first);
	for (const char *json = first; json; json = va_arg(ap, const char *))
		buf_addf(&out, "data: %s\n\n", json);
	va_end(ap);
	return buf_take(&out);
}
