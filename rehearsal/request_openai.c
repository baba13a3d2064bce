/*
 * request_openai.c - reads and checks a Chat Completions request as the API does
 * (wire.md 2.1, 2.3).
 *
 * The texts are the provider's own where they are known. Members of messages that imitations use
 * (reasoning_content, extra_content) are let through; members of the request are not, except a few
 * that local servers know.
 */
#include "rehearsal/request.h"

#include <stdio.h>

#include "rehearsal/hash.h"
#include "rehearsal/thinking.h"

static const char *const top_fields[] = {
	"model",
	"messages",
	"tools",
	"tool_choice",
	"parallel_tool_calls",
	"stream",
	"stream_options",
	"max_tokens",
	"max_completion_tokens",
	"temperature",
	"top_p",
	"n",
	"stop",
	"seed",
	"user",
	"presence_penalty",
	"frequency_penalty",
	"logit_bias",
	"logprobs",
	"top_logprobs",
	"metadata",
	"store",
	"reasoning_effort",
	"response_format",
	"service_tier",
	"modalities",
	"prediction",
	"audio",
	"verbosity",
	"web_search_options",
	"prompt_cache_key",
	"prompt_cache_retention",
	"safety_identifier",
	/* local servers and gateways */
	"top_k",
	"min_p",
	"cache_prompt",
	"chat_template_kwargs",
	"options",
	"keep_alive",
	"think",
	"thinking",
	"enable_thinking",
	"reasoning",
	"provider",
	"usage",
	"extra_body",
	"num_ctx",
};

static bool in_list(const struct doc *doc, uint32_t key, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (doc_is(doc, key, list[i]))
			return true;
	return false;
}

/* A refusal that names the parameter, as this API always does. */
static int refuse_at(struct request *r, const char *rule, const char *code, const char *param,
		     const char *text)
{
	request_refuse(r, rule, "%s", text);
	request_param(r, code, "%s", param);
	return -1;
}

static void add_text(struct request *r, const struct doc_node *node)
{
	struct part *part = request_add_part(r, PART_TEXT);
	uint64_t hash = hash_bytes(3, node->s, node->len);

	part->text = node->s;
	part->len = node->len;
	request_add_unit(r, hash, request_count(r, hash, node->s, node->len), 0);
}

static int refuse_content(struct request *r, const char *got)
{
	request_refuse(r, "content", "Invalid value for 'content': expected a string, got %s.",
		       got);
	request_param(r, NULL, "messages.[%zu].content", r->n_messages - 1);
	return -1;
}

/* Text and pictures; other kinds are known to the API but not to any client of this server. */
static int read_content_parts(struct request *r, uint32_t content)
{
	const struct doc *doc = &r->doc;
	size_t i = 0;

	if (!doc->nodes[content].count)
		return refuse_content(r, "an empty array");
	DOC_EACH(doc, content, block)
	{
		uint32_t type = doc_get(doc, block, "type"), text = doc_get(doc, block, "text");
		uint32_t url = doc_get(doc, doc_get(doc, block, "image_url"), "url");
		const struct doc_node *node = &doc->nodes[url];
		const char *comma = node->s ? memchr(node->s, ',', node->len) : NULL;
		int64_t tokens;

		if (doc_is(doc, type, "text")) {
			if (doc_type(doc, text) != DOC_STRING || !doc->nodes[text].len)
				return refuse_content(r, "an empty text part");
			add_text(r, &doc->nodes[text]);
		} else if (doc_is(doc, type, "image_url")) {
			tokens = comma ? tokens_of_image(comma + 1,
							 node->len - (size_t)(comma + 1 - node->s))
				       : 1600;
			request_add_part(r, PART_IMAGE);
			request_add_unit(r, doc_hash(doc, block, 5, NULL), tokens, 0);
		} else {
			request_refuse(
				r, "block_type",
				"Invalid value: '%.*s'. Supported values are: 'text', 'image_url', "
				"'input_audio', 'refusal', and 'file'.",
				(int)MIN(doc->nodes[type].len, (size_t)60),
				doc->nodes[type].s ? doc->nodes[type].s : "");
			request_param(r, "invalid_value", "messages[%zu].content[%zu].type",
				      r->n_messages - 1, i);
			return -1;
		}
		i++;
	}
	return 0;
}

/* Content of a system or user message: never null, never empty. */
static int read_content(struct request *r, uint32_t content)
{
	const struct doc *doc = &r->doc;

	if (doc_type(doc, content) == DOC_STRING) {
		if (!doc->nodes[content].len)
			return refuse_content(r, "an empty string");
		add_text(r, &doc->nodes[content]);
		return 0;
	}
	if (doc_type(doc, content) == DOC_ARRAY)
		return read_content_parts(r, content);
	return refuse_content(r, content ? "null" : "nothing");
}

/* The reasoning text that this message brings back, under any of its names. */
static const struct doc_node *reasoning_of(const struct doc *doc, uint32_t message)
{
	static const char *const names[] = {"reasoning_content", "reasoning", "reasoning_text"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		uint32_t node = doc_get(doc, message, names[i]);

		if (doc_type(doc, node) == DOC_STRING && doc->nodes[node].len)
			return &doc->nodes[node];
	}
	return NULL;
}

/* Traps 48 and 50: what came with the call must come back with it. */
static int check_echo(struct request *r, uint32_t message, uint32_t call, const struct part *part)
{
	const struct doc *doc = &r->doc;
	uint64_t sent = call_id_reasoning(part->id, part->id_len);
	const struct doc_node *text = reasoning_of(doc, message);
	uint32_t google = doc_get(doc, doc_get(doc, call, "extra_content"), "google");
	uint32_t signature = doc_get(doc, google, "thought_signature");

	if (r->policy->need_reasoning && sent &&
	    (!text || thinking_hash(text->s, text->len) != sent)) {
		request_refuse(r, "reasoning_missing",
			       "The `reasoning_content` in the thinking mode must be passed back "
			       "to the API.");
		request_param(r, "invalid_request_error", "messages[%zu]", r->n_messages - 1);
		return -1;
	}
	if (r->policy->need_thought_signature) {
		AUTO_BUF struct buf want = BUF_INIT;

		thinking_sign(&want, thinking_hash(part->id, part->id_len), 0);
		if (!doc_is(doc, signature, buf_str(&want)))
			return request_refuse(
				r, "thought_signature",
				"Function call `%.*s` in the %zu. content block is missing a "
				"`thought_signature`.",
				(int)MIN(part->name_len, (size_t)80), part->name, r->n_messages);
	}
	return 0;
}

/* Arguments stay the text that they are: the API does not look into it, and neither must a client
 * rely on it being JSON (wire.md 2.2). */
static int read_call(struct request *r, uint32_t message, uint32_t call, size_t index,
		     struct id_set **ids)
{
	const struct doc *doc = &r->doc;
	uint32_t id = doc_get(doc, call, "id"), function = doc_get(doc, call, "function");
	uint32_t name = doc_get(doc, function, "name"),
		 arguments = doc_get(doc, function, "arguments");
	struct part *part;
	uint64_t hash;
	char param[96];

	snprintf(param, sizeof(param), "messages[%zu].tool_calls[%zu]", r->n_messages - 1, index);
	if (doc_type(doc, id) != DOC_STRING || !doc->nodes[id].len ||
	    doc_type(doc, name) != DOC_STRING || !doc->nodes[name].len ||
	    !doc_is(doc, doc_get(doc, call, "type"), "function"))
		return refuse_at(
			r, "tool_use", "missing_required_parameter", param,
			"Missing required parameter: 'messages.tool_calls' needs 'id', 'type' and "
			"'function.name'.");
	if (doc_type(doc, arguments) != DOC_STRING)
		return refuse_at(
			r, "tool_use", "invalid_type", param,
			"Invalid type for 'messages.tool_calls.function.arguments': expected a "
			"string, but got an object instead.");
	if (!id_set_add(r, ids, doc->nodes[id].s, doc->nodes[id].len))
		return refuse_at(r, "tool_use", "invalid_value", param,
				 "Duplicate value for 'tool_call_id' in the messages.");
	part = request_add_part(r, PART_CALL);
	part->id = doc->nodes[id].s;
	part->id_len = doc->nodes[id].len;
	part->name = doc->nodes[name].s;
	part->name_len = doc->nodes[name].len;
	part->input = arguments;
	hash = hash_bytes(hash_bytes(4, part->id, part->id_len), part->name, part->name_len);
	hash = hash_bytes(hash, doc->nodes[arguments].s, doc->nodes[arguments].len);
	request_add_unit(r, hash,
			 TOKENS_CALL + request_count(r, hash_mix(hash, 1), doc->nodes[arguments].s,
						     doc->nodes[arguments].len),
			 0);
	return check_echo(r, message, call, part);
}

/* Counted as input: the servers that take it back also read it again. */
static void add_reasoning(struct request *r, const struct doc_node *text)
{
	struct part *part = request_add_part(r, PART_THINKING);
	uint64_t hash = hash_bytes(7, text->s, text->len);

	part->text = text->s;
	part->len = text->len;
	request_add_unit(r, hash, request_count(r, hash, text->s, text->len), 0);
}

/* Content may be null beside calls, and only there. */
static int read_assistant(struct request *r, uint32_t message, struct id_set **ids)
{
	const struct doc *doc = &r->doc;
	uint32_t content = doc_get(doc, message, "content"),
		 calls = doc_get(doc, message, "tool_calls");
	const struct doc_node *reasoning = reasoning_of(doc, message);
	size_t index = 0;

	if (calls && doc_type(doc, calls) == DOC_NULL)
		calls = 0;
	if (calls && (doc_type(doc, calls) != DOC_ARRAY || !doc->nodes[calls].count)) {
		request_refuse(r, "tool_use",
			       "Invalid 'messages[%zu].tool_calls': empty array. Expected an array "
			       "with minimum "
			       "length 1, but got an empty array instead.",
			       r->n_messages - 1);
		request_param(r, "empty_array", "messages[%zu].tool_calls", r->n_messages - 1);
		return -1;
	}
	if (!calls && (doc_type(doc, content) == DOC_NULL ||
		       (doc_type(doc, content) == DOC_STRING && !doc->nodes[content].len))) {
		/* Trap 32: the wording is that of the strictest server that users met. */
		request_refuse(
			r, "assistant_empty",
			"Assistant message must have either content or tool_calls, but not none.");
		request_param(r, NULL, "messages.[%zu].content", r->n_messages - 1);
		return -1;
	}
	if (reasoning)
		add_reasoning(r, reasoning);
	if (doc_type(doc, content) == DOC_STRING && doc->nodes[content].len)
		add_text(r, &doc->nodes[content]);
	else if (doc_type(doc, content) == DOC_ARRAY && read_content_parts(r, content) < 0)
		return -1;
	if (!calls)
		return 0;
	DOC_EACH(doc, calls, call)
	if (read_call(r, message, call, index++, ids) < 0)
		return -1;
	return 0;
}

/* The index of the assistant message that tool message m answers, or m if there is none. */
static size_t calling_message(const struct request *r, size_t m)
{
	size_t at = m;

	while (at > 0 && r->messages[at - 1].speaker == SPEAKER_TOOL)
		at--;
	return at > 0 && r->messages[at - 1].speaker == SPEAKER_ASSISTANT ? at - 1 : m;
}

static int refuse_tool_role(struct request *r)
{
	request_refuse(r, "result_orphan",
		       "Invalid parameter: messages with role 'tool' must be a response to a "
		       "preceeding message "
		       "with 'tool_calls'.");
	request_param(r, NULL, "messages.[%zu].role", r->n_messages - 1);
	return -1;
}

/* Directly after the calls, with nothing but other tool messages between (wire.md 2.1). */
static int read_tool(struct request *r, uint32_t message)
{
	const struct doc *doc = &r->doc;
	uint32_t id = doc_get(doc, message, "tool_call_id"),
		 content = doc_get(doc, message, "content");
	size_t from = calling_message(r, r->n_messages - 1);
	const struct req_message *first;
	struct part *part;
	uint64_t hash;

	if (from == r->n_messages - 1)
		return refuse_tool_role(r);
	if (doc_type(doc, content) == DOC_ARRAY && doc->nodes[content].count == 1)
		content = doc_get(doc, doc_first(content), "text");
	if (doc_type(doc, content) != DOC_STRING)
		return refuse_content(r, content ? "null" : "nothing");
	part = request_add_part(r, PART_RESULT);
	part->id = doc->nodes[id].s ? doc->nodes[id].s : "";
	part->id_len = doc->nodes[id].len;
	part->text = doc->nodes[content].s;
	part->len = doc->nodes[content].len;
	part->call = request_find_call(r, from, part->id, part->id_len);
	if (part->call == NO_PART)
		return refuse_tool_role(r);
	first = &r->messages[from + 1];
	for (uint32_t i = first->first; i + 1 < r->n_parts; i++)
		if (r->parts[i].call == part->call)
			return request_refuse(r, "result_twice",
					      "Duplicate tool message for 'tool_call_id' %.*s.",
					      (int)MIN(part->id_len, (size_t)80), part->id);
	hash = hash_bytes(hash_bytes(6, part->id, part->id_len), part->text, part->len);
	request_add_unit(r, hash,
			 TOKENS_RESULT + request_count(r, hash_mix(hash, 1), part->text, part->len),
			 0);
	return 0;
}

static int read_message(struct request *r, uint32_t message, struct id_set **ids)
{
	static const struct {
		const char *role;
		enum speaker speaker;
	} roles[] = {{"system", SPEAKER_SYSTEM},
		     {"developer", SPEAKER_SYSTEM},
		     {"user", SPEAKER_USER},
		     {"assistant", SPEAKER_ASSISTANT},
		     {"tool", SPEAKER_TOOL}};
	const struct doc *doc = &r->doc;
	uint32_t role = doc_get(doc, message, "role");
	int result;

	for (size_t i = 0; i < ARRAY_SIZE(roles); i++) {
		if (!doc_is(doc, role, roles[i].role))
			continue;
		request_add_message(r, roles[i].speaker);
		if (roles[i].speaker == SPEAKER_ASSISTANT)
			result = read_assistant(r, message, ids);
		else if (roles[i].speaker == SPEAKER_TOOL)
			result = read_tool(r, message);
		else
			result = read_content(r, doc_get(doc, message, "content"));
		for (uint32_t p = r->messages[r->n_messages - 1].first;
		     roles[i].speaker == SPEAKER_SYSTEM && p < r->n_parts; p++)
			request_use_system(r, r->parts[p].text, r->parts[p].len);
		request_end_message(r);
		return result;
	}
	request_refuse(r, "role",
		       "Invalid value: '%.*s'. Supported values are: 'system', 'assistant', "
		       "'user', 'function', "
		       "'tool', and 'developer'.",
		       (int)MIN(doc->nodes[role].len, (size_t)60),
		       doc->nodes[role].s ? doc->nodes[role].s : "");
	request_param(r, "invalid_value", "messages[%zu].role", r->n_messages);
	return -1;
}

/* Answers stand in the run of tool messages right behind the calls. */
static bool is_answered(const struct request *r, size_t m, uint32_t call)
{
	for (size_t t = m + 1; t < r->n_messages && r->messages[t].speaker == SPEAKER_TOOL; t++)
		for (uint32_t i = 0; i < r->messages[t].count; i++)
			if (r->parts[r->messages[t].first + i].call == call)
				return true;
	return false;
}

static int check_calls_answered(struct request *r, size_t m)
{
	char missing[300] = "";
	size_t at = 0;

	for (uint32_t i = 0; i < r->messages[m].count; i++) {
		uint32_t call = r->messages[m].first + i;
		const struct part *part = &r->parts[call];

		if (part->kind == PART_CALL && !is_answered(r, m, call) && at < sizeof(missing) - 1)
			at += (size_t)snprintf(missing + at, sizeof(missing) - at, "%s%.*s",
					       at ? ", " : "", (int)MIN(part->id_len, (size_t)80),
					       part->id);
	}
	if (!at)
		return 0;
	request_refuse(r, "result_missing",
		       "An assistant message with 'tool_calls' must be followed by tool messages "
		       "responding to "
		       "each 'tool_call_id'. The following tool_call_ids did not have response "
		       "messages: %s",
		       missing);
	request_param(r, NULL, "messages.[%zu].role", m + 1);
	return -1;
}

static int read_messages(struct request *r)
{
	const struct doc *doc = &r->doc;
	uint32_t messages = doc_get(doc, DOC_ROOT, "messages");
	struct id_set *ids = NULL;

	if (doc_type(doc, messages) != DOC_ARRAY)
		return refuse_at(r, "messages", "missing_required_parameter", "messages",
				 "Missing required parameter: 'messages'.");
	if (!doc->nodes[messages].count)
		return refuse_at(
			r, "messages", "empty_array", "messages",
			"Invalid 'messages': empty array. Expected an array with minimum length 1, "
			"but got an empty array instead.");
	DOC_EACH(doc, messages, message)
	if (read_message(r, message, &ids) < 0)
		return -1;
	for (size_t m = 0; m < r->n_messages; m++)
		if (check_calls_answered(r, m) < 0)
			return -1;
	return 0;
}

/* An empty list is an error here, where the other API takes it: leave the member out. */
static int read_tools(struct request *r)
{
	const struct doc *doc = &r->doc;

	r->tools = doc_get(doc, DOC_ROOT, "tools");
	if (!r->tools)
		return 0;
	if (doc_type(doc, r->tools) != DOC_ARRAY || !doc->nodes[r->tools].count)
		return refuse_at(r, "tools", "empty_array", "tools",
				 "Invalid 'tools': empty array. Expected an array with minimum "
				 "length 1, but "
				 "got an empty array instead.");
	r->n_tools = doc->nodes[r->tools].count;
	DOC_EACH(doc, r->tools, tool)
	{
		uint32_t function = doc_get(doc, tool, "function"),
			 name = doc_get(doc, function, "name");

		if (!doc_is(doc, doc_get(doc, tool, "type"), "function") ||
		    doc_type(doc, name) != DOC_STRING || !doc->nodes[name].len ||
		    doc->nodes[name].len > 64)
			return refuse_at(r, "tools", "missing_required_parameter",
					 "tools[].function.name",
					 "Missing required parameter: 'tools[].function.name'.");
		request_add_unit(r, doc_hash(doc, tool, 1, NULL),
				 TOKENS_TOOL + request_count_node(r, tool), 0);
	}
	request_end_message(r);
	return 0;
}

/* Two names for one number; o-series models know only the newer one. */
static int read_max_tokens(struct request *r)
{
	const struct doc *doc = &r->doc;
	uint32_t old = doc_get(doc, DOC_ROOT, "max_tokens");
	uint32_t completion = doc_get(doc, DOC_ROOT, "max_completion_tokens");

	if (old && completion)
		return refuse_at(
			r, "max_tokens", "invalid_parameter_combination", "max_tokens",
			"Setting 'max_tokens' and 'max_completion_tokens' at the same time is not "
			"supported.");
	if (old && r->policy->completion_tokens_only)
		return refuse_at(
			r, "max_tokens", "unsupported_parameter", "max_tokens",
			"Unsupported parameter: 'max_tokens' is not supported with this model. Use "
			"'max_completion_tokens' instead.");
	r->max_tokens = doc_i64(doc, old ? old : completion, 0);
	if ((old || completion) && r->max_tokens < 1)
		return refuse_at(r, "max_tokens", "integer_below_min_value", "max_tokens",
				 "Invalid 'max_tokens': integer below minimum value. Expected a "
				 "value >= 1.");
	if (r->policy->max_output && r->max_tokens > r->policy->max_output) {
		request_refuse(r, "max_tokens",
			       "max_tokens is too large: %lld. This model supports at most %lld "
			       "completion "
			       "tokens, whereas you provided %lld.",
			       (long long)r->max_tokens, (long long)r->policy->max_output,
			       (long long)r->max_tokens);
		request_param(r, "invalid_value", "max_tokens");
		return -1;
	}
	return 0;
}

static int read_tool_choice(struct request *r)
{
	const struct doc *doc = &r->doc;
	uint32_t choice = doc_get(doc, DOC_ROOT, "tool_choice");
	uint32_t parallel = doc_get(doc, DOC_ROOT, "parallel_tool_calls");

	if (choice && !r->n_tools)
		return refuse_at(r, "tool_choice", NULL, "tool_choice",
				 "Invalid value for 'tool_choice': 'tool_choice' is only allowed "
				 "when 'tools' "
				 "are specified.");
	if (parallel && !r->n_tools)
		return refuse_at(r, "tool_choice", NULL, "parallel_tool_calls",
				 "Invalid value for 'parallel_tool_calls': 'parallel_tool_calls' "
				 "is only allowed "
				 "when 'tools' are specified.");
	r->tools_off = doc_is(doc, choice, "none");
	r->one_call = doc_type(doc, parallel) == DOC_FALSE;
	r->params = choice ? doc_hash(doc, choice, HASH_SEED, NULL) : HASH_SEED;
	return 0;
}

int openai_read(struct request *r)
{
	const struct doc *doc = &r->doc;
	uint32_t model = doc_get(doc, DOC_ROOT, "model");
	uint32_t options = doc_get(doc, DOC_ROOT, "stream_options");

	if (doc_type(doc, model) != DOC_STRING || !doc->nodes[model].len)
		return request_refuse(r, "model", "you must provide a model parameter");
	request_use_model(r, model);
	r->stream = doc_type(doc, doc_get(doc, DOC_ROOT, "stream")) == DOC_TRUE;
	r->include_usage = doc_type(doc, doc_get(doc, options, "include_usage")) == DOC_TRUE;
	if (options && doc_type(doc, options) != DOC_NULL && !r->stream)
		return refuse_at(
			r, "stream_options", NULL, "stream_options",
			"The 'stream_options' parameter is only allowed when 'stream' is enabled.");
	DOC_EACH_KEY(doc, DOC_ROOT, key)
	if (!in_list(doc, key, top_fields, ARRAY_SIZE(top_fields)))
		return request_refuse(r, "extra", "Unrecognized request argument supplied: %.*s",
				      (int)MIN(doc->nodes[key].len, (size_t)80), doc->nodes[key].s);
	if (read_max_tokens(r) < 0 || read_tools(r) < 0 || read_tool_choice(r) < 0)
		return -1;
	return read_messages(r);
}
