/*
 * dialect.c - the table of deviations; sources stand in wire.md 4.
 *
 * Adding a server is adding a row. A new kind of deviation is a member of struct dialect and one
 * place in a renderer that reads it.
 */
#include "agent/model/dialect.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

#define ANTHROPIC .api = MODEL_API_ANTHROPIC, .id_form = CALL_ID_WORD
#define OPENAI	  .api = MODEL_API_OPENAI

/* The first row of each API is its plain form. */
static const struct dialect rows[] = {
	{"anthropic", ANTHROPIC, .effort = EFFORT_OUTPUT, .betas = true},
	/* Kimi, Qwen, DeepSeek, vLLM, Ollama in Anthropic form: unknown betas and fields are a 400.
	 */
	{"anthropic-compatible", ANTHROPIC},

	{"openai", OPENAI, .id_form = CALL_ID_SHORT, .effort = EFFORT_FIELD,
	 .echo = ECHO_WITH_CALLS, .parallel_field = true},
	/* A server of which nothing is known: the least that all of them take. */
	{"openai-compatible", OPENAI, .echo = ECHO_WITH_CALLS, .max_tokens_only = true,
	 .no_developer = true},
	{"azure", OPENAI, .id_form = CALL_ID_SHORT, .effort = EFFORT_FIELD, .parallel_field = true,
	 .no_extra = true},
	{"llamacpp", OPENAI, .echo = ECHO_WITH_CALLS, .max_tokens_only = true,
	 .no_developer = true},
	/* Arguments in the history must be valid JSON (500 otherwise): the renderer sees to it. */
	{"ollama", OPENAI, .effort = EFFORT_FIELD, .echo = ECHO_WITH_CALLS, .max_tokens_only = true,
	 .no_developer = true, .empty_content = true},
	{"vllm", OPENAI, .echo = ECHO_WITH_CALLS, .max_tokens_only = true, .no_developer = true,
	 .parallel_field = true},
	{"lmstudio", OPENAI, .echo = ECHO_WITH_CALLS, .max_tokens_only = true, .no_developer = true,
	 .empty_content = true},
	{"openrouter", OPENAI, .effort = EFFORT_OBJECT, .echo = ECHO_ALWAYS,
	 .max_tokens_only = true, .no_developer = true},
	{"deepseek", OPENAI, .echo = ECHO_CALLS_DEMANDED, .max_tokens_only = true,
	 .no_developer = true},
	/* The signature of a thought travels in the calls' extra_content (trap 50). */
	{"google", OPENAI, .effort = EFFORT_FIELD, .max_tokens_only = true, .no_developer = true},
	{"mistral", OPENAI, .id_form = CALL_ID_ALNUM9, .max_tokens_only = true,
	 .no_developer = true, .no_stream_options = true, .parallel_field = true, .tool_name = true,
	 .assistant_after_tool = true, .empty_content = true, .no_extra = true},
	{"groq", OPENAI, .effort = EFFORT_FIELD, .no_developer = true, .parallel_field = true,
	 .no_extra = true},
	{"moonshotai", OPENAI, .echo = ECHO_CALLS_DEMANDED, .max_tokens_only = true,
	 .no_developer = true},
	{"xai", OPENAI, .echo = ECHO_WITH_CALLS, .max_tokens_only = true, .no_developer = true},
	{"zai", OPENAI, .echo = ECHO_WITH_CALLS, .max_tokens_only = true, .no_developer = true},
	{"cerebras", OPENAI, .max_tokens_only = true, .no_developer = true, .no_extra = true},
	{"together", OPENAI, .echo = ECHO_WITH_CALLS, .max_tokens_only = true,
	 .no_developer = true},
	{"chutes", OPENAI, .echo = ECHO_WITH_CALLS, .max_tokens_only = true, .no_developer = true},
	{"alibaba", OPENAI, .echo = ECHO_WITH_CALLS, .max_tokens_only = true, .no_developer = true,
	 .parallel_field = true},
	{"minimax", OPENAI, .echo = ECHO_ALWAYS, .max_tokens_only = true, .no_developer = true},
	{"litellm", OPENAI, .effort = EFFORT_FIELD, .echo = ECHO_WITH_CALLS,
	 .max_tokens_only = true, .no_developer = true, .tools_always = true},
};

const struct dialect *dialect_at(size_t i)
{
	return i < ARRAY_SIZE(rows) ? &rows[i] : NULL;
}

/* The plain rows stand first. A provider that speaks both protocols names but one of them. */
static bool is_plain(const char *name)
{
	return !name || !*name || strcmp(name, "anthropic") == 0 || strcmp(name, "openai") == 0;
}

int dialect_find(const char *name, enum model_api api, const struct dialect **ret, struct err *err)
{
	const char *names[ARRAY_SIZE(rows)];
	size_t count = 0;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (rows[i].api != api)
			continue;
		if (is_plain(name) || strcmp(rows[i].name, name) == 0) {
			*ret = &rows[i];
			return 0;
		}
		names[count++] = rows[i].name;
	}
	const char *near = text_nearest(name, names, count);
	if (!near)
		near = names[0];
	return err_set(err, ERR_USAGE, "unknown dialect '%s' of the %s API; did you mean '%s'?",
		       name, api == MODEL_API_ANTHROPIC ? "anthropic" : "openai", near);
}

static bool is_alnum(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool has_form(enum call_id_form form, const char *id, size_t n)
{
	if (form == CALL_ID_ANY)
		return n > 0;
	if (form == CALL_ID_SHORT)
		return n > 0 && n <= 40;
	if (form == CALL_ID_ALNUM9 ? n != 9 : n == 0 || n > 64)
		return false;
	for (size_t i = 0; i < n; i++)
		if (!is_alnum(id[i]) && (form == CALL_ID_ALNUM9 || !strchr("_-", id[i])))
			return false;
	return true;
}

void dialect_write_id(const struct dialect *dialect, const char *id, struct buf *out)
{
	static const char digits[] =
		"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	size_t n = id ? strlen(id) : 0;
	if (has_form(dialect->id_form, id, n)) {
		buf_add(out, id, n);
		return;
	}
	uint64_t hash = text_hash(id ? id : "", n);
	if (dialect->id_form != CALL_ID_ALNUM9) {
		buf_addf(out, "call_%016" PRIx64, hash);
		return;
	}
	for (int i = 0; i < 9; i++, hash /= 62)
		buf_addc(out, digits[hash % 62]);
}
