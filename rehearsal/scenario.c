/*
 * scenario.c - reads and checks a scenario file.
 *
 * Each mapping has a table of its keys; unknown keys, wrong types and bad patterns are errors that
 * name file and line. The YAML tree stays alive with the scenario and owns all strings.
 */
#include "rehearsal/scenario.h"

#include <stdio.h>

#include "base/memory.h"
#include "base/text.h"
#include "base/yaml.h"
#include "rehearsal/hash.h"
#include "rehearsal/quirks.h"
#include "rehearsal/template.h"

struct loader {
	struct scenario *s;
	struct err *err;
};

/* A node with its JSON pointer, so that errors can name the line. */
struct spot {
	struct json_object *node;
	char at[200];
};

static int refuse(struct loader *l, const char *pointer, const char *what)
{
	return err_set(l->err, ERR_USAGE, "%s:%d: %s", yaml_name(l->s->doc),
		       yaml_line(l->s->doc, pointer), what);
}

static int refuse_key(struct loader *l, const struct spot *spot, const char *key, const char *what)
{
	AUTO_FREE char *pointer = mem_printf("%s/%s", spot->at, key);
	AUTO_FREE char *text = mem_printf("'%s' %s", key, what);

	return refuse(l, pointer, text);
}

static struct spot spot_at(const struct spot *parent, const char *key)
{
	struct spot spot = {.node = json_get(parent->node, key)};

	if (snprintf(spot.at, sizeof(spot.at), "%s/%s", parent->at, key) >= (int)sizeof(spot.at))
		spot.at[0] = '\0'; /* too deep for a pointer: the root's line is named */
	return spot;
}

static struct spot spot_index(const struct spot *parent, size_t i)
{
	struct spot spot = {.node = json_at(parent->node, i)};

	if (snprintf(spot.at, sizeof(spot.at), "%s/%zu", parent->at, i) >= (int)sizeof(spot.at))
		spot.at[0] = '\0';
	return spot;
}

/* A misspelt filter would change nothing and leave a note in a log. */
static int check_filters(struct loader *l, struct json_object *node, const char *pointer)
{
	int rc = 0;

	if (json_object_is_type(node, json_type_string)) {
		AUTO_FREE char *bad = template_unknown_filter(
			json_object_get_string(node), (size_t)json_object_get_string_len(node));
		AUTO_FREE char *what = bad ? mem_printf("unknown filter '%s'", bad) : NULL;
		return bad ? refuse(l, pointer, what) : 0;
	}
	for (size_t i = 0;
	     rc == 0 && json_object_is_type(node, json_type_array) && i < json_len(node); i++) {
		AUTO_FREE char *below = mem_printf("%s/%zu", pointer, i);
		rc = check_filters(l, json_at(node, i), below);
	}
	if (!json_object_is_type(node, json_type_object))
		return rc;
	json_object_object_foreach (node, key, value) {
		AUTO_FREE char *below = mem_printf("%s/%s", pointer, key);
		if (rc == 0)
			rc = check_filters(l, value, below);
	}
	return rc;
}

/* Unknown keys are errors, since a rule whose condition is misspelt would match everything. */
static int check_keys(struct loader *l, const struct spot *spot, const char *const *keys, size_t n)
{
	if (!json_object_is_type(spot->node, json_type_object))
		return refuse(l, spot->at, "a mapping is expected here");
	json_object_object_foreach (spot->node, key, value) {
		bool known = false;
		const char *nearest;
		AUTO_FREE char *text = NULL;

		(void)value;
		for (size_t i = 0; i < n; i++)
			known |= strcmp(keys[i], key) == 0;
		if (known)
			continue;
		nearest = text_nearest(key, keys, n);
		text = mem_printf("is no key of this place%s%s%s",
				  nearest ? "; did you mean '" : "", nearest ? nearest : "",
				  nearest ? "'?" : "");
		return refuse_key(l, spot, key, text);
	}
	return 0;
}
#define CHECK_KEYS(l, spot, list) check_keys(l, spot, list, ARRAY_SIZE(list))

/* Also as a text: 200k, 1_000. */
static int get_int(struct loader *l, const struct spot *spot, const char *key, int64_t *ret)
{
	struct json_object *node = json_get(spot->node, key);

	if (!node)
		return 0;
	if (json_object_is_type(node, json_type_string)) {
		if (text_parse_count(json_object_get_string(node), ret) == 0)
			return 0;
	} else if (json_object_is_type(node, json_type_int)) {
		*ret = json_object_get_int64(node);
		if (*ret >= 0)
			return 0;
	}
	return refuse_key(l, spot, key, "must be a number that is not negative");
}

static int get_str(struct loader *l, const struct spot *spot, const char *key, const char **ret)
{
	struct json_object *node = json_get(spot->node, key);

	if (!node)
		return 0;
	if (!json_object_is_type(node, json_type_string))
		return refuse_key(l, spot, key, "must be a text");
	*ret = json_object_get_string(node);
	return 0;
}

static int get_bool(struct loader *l, const struct spot *spot, const char *key, bool *ret)
{
	struct json_object *node = json_get(spot->node, key);

	if (!node)
		return 0;
	if (!json_object_is_type(node, json_type_boolean))
		return refuse_key(l, spot, key, "must be true or false");
	*ret = json_object_get_boolean(node);
	return 0;
}

static int get_tristate(struct loader *l, const struct spot *spot, const char *key,
			enum tristate *ret)
{
	bool value = false;

	if (!json_has(spot->node, key))
		return 0;
	if (get_bool(l, spot, key, &value) < 0)
		return -1;
	*ret = value ? YES : NO;
	return 0;
}

/* A pattern with templates can only be compiled when their values are known. */
static int get_pattern(struct loader *l, const struct spot *spot, const char *key,
		       struct pattern_ref *ret)
{
	struct err inner = ERR_INIT;

	if (get_str(l, spot, key, &ret->source) < 0)
		return -1;
	if (!ret->source)
		return 0;
	if (strstr(ret->source, "{{")) {
		struct spot text = spot_at(spot, key);
		return check_filters(l, text.node, text.at);
	}
	if (pattern_compile(ret->source, strlen(ret->source), &ret->fixed, &inner) < 0)
		return refuse_key(l, spot, key, inner.message);
	return 0;
}

/* 3, "2..5", "2..", "..5" */
static int get_range(struct loader *l, const struct spot *spot, const char *key, int64_t less,
		     struct condition *ret)
{
	struct json_object *node = json_get(spot->node, key);
	int64_t low = less, high = NEVER - 1;
	const char *text, *dots;

	if (!node)
		return 0;
	if (json_object_is_type(node, json_type_int)) {
		low = high = json_object_get_int64(node);
	} else {
		AUTO_FREE char *first = NULL;

		text = json_object_is_type(node, json_type_string) ? json_object_get_string(node)
								   : "";
		dots = strstr(text, "..");
		if (!dots)
			return refuse_key(l, spot, key, "must be a number or a range like 2..5");
		first = mem_strndup(text, (size_t)(dots - text));
		if ((*first && text_parse_i64(first, &low) < 0) ||
		    (dots[2] && text_parse_i64(dots + 2, &high) < 0))
			return refuse_key(l, spot, key, "must be a number or a range like 2..5");
	}
	ret->turn_min = low - less;
	ret->turn_max = high - less;
	return 0;
}

static int get_protocol(struct loader *l, const struct spot *spot, int *ret)
{
	const char *name = NULL;

	if (get_str(l, spot, "protocol", &name) < 0)
		return -1;
	if (!name)
		return 0;
	if (strcmp(name, "anthropic") != 0 && strcmp(name, "openai") != 0)
		return refuse_key(l, spot, "protocol", "must be anthropic or openai");
	*ret = strcmp(name, "openai") == 0 ? PROTOCOL_OPENAI : PROTOCOL_ANTHROPIC;
	return 0;
}

/* `not` holds a condition of the same kind, so this calls itself; YAML's depth limit bounds it. */
static int load_condition(struct loader *l, const struct spot *spot, struct condition *c)
{
	static const char *const keys[] = {
		"role",	      "system",	    "model",  "task",	    "last_message", "tool_result",
		"any_result", "tool_name",  "turn",   "round",	    "has_tools",    "is_compaction",
		"is_notes",   "is_handoff", "stream", "tool_error", "tools_off",    "protocol",
		"min_tokens", "any_text",   "not",
	};
	struct spot inner = spot_at(spot, "not");

	*c = (struct condition){.turn_max = NEVER, .protocol = -1};
	if (!spot->node)
		return 0;
	if (CHECK_KEYS(l, spot, keys) < 0 || get_str(l, spot, "role", &c->role) < 0 ||
	    get_str(l, spot, "tool_name", &c->tool_name) < 0 ||
	    get_pattern(l, spot, "system", &c->system) < 0 ||
	    get_pattern(l, spot, "model", &c->model) < 0 ||
	    get_pattern(l, spot, "task", &c->task) < 0 ||
	    get_pattern(l, spot, "last_message", &c->last_message) < 0 ||
	    get_pattern(l, spot, "tool_result", &c->tool_result) < 0 ||
	    get_pattern(l, spot, "any_result", &c->any_result) < 0 ||
	    get_pattern(l, spot, "any_text", &c->any_text) < 0 ||
	    get_range(l, spot, "turn", 0, c) < 0 || get_range(l, spot, "round", 1, c) < 0 ||
	    get_tristate(l, spot, "has_tools", &c->has_tools) < 0 ||
	    get_tristate(l, spot, "is_compaction", &c->is_compaction) < 0 ||
	    get_tristate(l, spot, "is_notes", &c->is_notes) < 0 ||
	    get_tristate(l, spot, "is_handoff", &c->is_handoff) < 0 ||
	    get_tristate(l, spot, "stream", &c->stream) < 0 ||
	    get_tristate(l, spot, "tool_error", &c->tool_error) < 0 ||
	    get_tristate(l, spot, "tools_off", &c->tools_off) < 0 ||
	    get_int(l, spot, "min_tokens", &c->tokens_min) < 0 ||
	    get_protocol(l, spot, &c->protocol) < 0)
		return -1;
	if (!inner.node)
		return 0;
	c->unless = mem_alloc(sizeof(*c->unless));
	return load_condition(l, &inner, c->unless);
}

/* Names become bits at once: nothing later works with names. */
static int load_quirks(struct loader *l, const struct spot *spot, const char *key, uint32_t *ret)
{
	struct spot list = spot_at(spot, key);

	if (!list.node)
		return 0;
	if (!json_object_is_type(list.node, json_type_array))
		return refuse_key(l, spot, key, "must be a list of names");
	for (size_t i = 0; i < json_len(list.node); i++) {
		struct json_object *item = json_at(list.node, i);
		const char *name = json_object_is_type(item, json_type_string)
					   ? json_object_get_string(item)
					   : "";
		uint32_t bits = quirk_bits(name);
		AUTO_FREE char *text = NULL;
		size_t n = 0;
		const char *nearest;

		*ret |= bits;
		if (bits)
			continue;
		while (quirk_names()[n])
			n++;
		nearest = text_nearest(name, quirk_names(), n);
		text = mem_printf("names no quirk with '%s'%s%s%s", name,
				  nearest ? "; did you mean '" : "", nearest ? nearest : "",
				  nearest ? "'?" : "");
		return refuse_key(l, spot, key, text);
	}
	return 0;
}

/* `cut: 3` and `cut: true` (before the first event). */
static int get_after(struct loader *l, const struct spot *spot, const char *key, int64_t *ret)
{
	struct json_object *node = json_get(spot->node, key);

	if (!node)
		return 0;
	if (json_object_is_type(node, json_type_boolean)) {
		*ret = json_object_get_boolean(node) ? 0 : NEVER;
		return 0;
	}
	return get_int(l, spot, key, ret);
}

static int load_overflow(struct loader *l, const struct spot *spot, struct fault *f)
{
	static const char *const keys[] = {"used", "limit"};
	struct spot overflow = spot_at(spot, "overflow");

	if (!overflow.node)
		return 0;
	if (json_object_is_type(overflow.node, json_type_boolean)) {
		f->overflow = json_object_get_boolean(overflow.node);
		return 0;
	}
	f->overflow = true;
	return CHECK_KEYS(l, &overflow, keys) < 0 ||
			       get_int(l, &overflow, "used", &f->overflow_used) < 0 ||
			       get_int(l, &overflow, "limit", &f->overflow_limit) < 0
		       ? -1
		       : 0;
}

static int load_error_event(struct loader *l, const struct spot *spot, struct fault *f)
{
	static const char *const keys[] = {"after", "type", "code", "message"};
	struct spot event = spot_at(spot, "error_event");

	if (!event.node)
		return 0;
	f->error_after = 0;
	return CHECK_KEYS(l, &event, keys) < 0 ||
			       get_int(l, &event, "after", &f->error_after) < 0 ||
			       get_str(l, &event, "type", &f->error_type) < 0 ||
			       get_str(l, &event, "code", &f->error_code) < 0 ||
			       get_str(l, &event, "message", &f->message) < 0
		       ? -1
		       : 0;
}

/* A body without a status is sent with 200: servers do that too (wire.md 3, rows 13 to 16). */
static int load_fault(struct loader *l, const struct spot *spot, struct fault *f)
{
	static const char *const keys[] = {
		"status",   "headers",	   "body",	 "message", "type",  "code",
		"delay_ms", "slow",	   "stall",	 "cut",	    "reset", "malformed",
		"overflow", "error_event", "drop_usage", "quirks",
	};
	int64_t status = 0;
	bool drop_usage = false;

	*f = (struct fault){.event_ms = -1,
			    .stall_after = NEVER,
			    .cut_after = NEVER,
			    .reset_after = NEVER,
			    .malformed_after = NEVER,
			    .error_after = NEVER};
	if (!spot->node)
		return 0;
	f->given = true;
	if (CHECK_KEYS(l, spot, keys) < 0 || get_int(l, spot, "status", &status) < 0 ||
	    get_str(l, spot, "message", &f->message) < 0 ||
	    get_str(l, spot, "type", &f->error_type) < 0 ||
	    get_str(l, spot, "code", &f->error_code) < 0 ||
	    get_int(l, spot, "delay_ms", &f->delay_ms) < 0 ||
	    get_int(l, spot, "slow", &f->event_ms) < 0 ||
	    get_after(l, spot, "stall", &f->stall_after) < 0 ||
	    get_after(l, spot, "cut", &f->cut_after) < 0 ||
	    get_after(l, spot, "reset", &f->reset_after) < 0 ||
	    get_after(l, spot, "malformed", &f->malformed_after) < 0 ||
	    load_overflow(l, spot, f) < 0 || load_error_event(l, spot, f) < 0 ||
	    get_bool(l, spot, "drop_usage", &drop_usage) < 0 ||
	    load_quirks(l, spot, "quirks", &f->quirks) < 0)
		return -1;
	if (status && (status < 200 || status > 599))
		return refuse_key(l, spot, "status", "must be from 200 to 599");
	f->status = (int)status;
	f->headers = json_obj(spot->node, "headers");
	f->body = json_get(spot->node, "body");
	if (f->body && !f->status)
		f->status = 200;
	if (drop_usage)
		f->quirks |= QUIRK_NO_USAGE;
	return 0;
}

/* The rest of a call is a template and can be checked only when it is expanded. */
static int check_call(struct loader *l, const struct spot *call)
{
	static const char *const keys[] = {"name", "input", "for_each_match"};

	if (CHECK_KEYS(l, call, keys) < 0)
		return -1;
	if (!json_has(call->node, "for_each_match") && !json_str(call->node, "name", NULL))
		return refuse(l, call->at, "a tool call needs a 'name'");
	return 0;
}

static int check_answer(struct loader *l, const struct spot *spot, struct rule *rule)
{
	static const char *const keys[] = {"text",	   "thinking", "redacted_thinking",
					   "tool_calls",   "usage",    "stop_reason",
					   "stop_details", "quirks"};
	static const char *const usage_keys[] = {"input", "output", "cache_read", "cache_write"};
	struct spot calls = spot_at(spot, "tool_calls"), usage = spot_at(spot, "usage");

	if (!spot->node)
		return 0;
	if (CHECK_KEYS(l, spot, keys) < 0 || load_quirks(l, spot, "quirks", &rule->quirks) < 0)
		return -1;
	if (usage.node && CHECK_KEYS(l, &usage, usage_keys) < 0)
		return -1;
	if (calls.node && !json_object_is_type(calls.node, json_type_array))
		return refuse(l, calls.at, "'tool_calls' must be a list");
	for (size_t i = 0; i < json_len(calls.node); i++) {
		struct spot call = spot_index(&calls, i);

		if (check_call(l, &call) < 0)
			return -1;
	}
	rule->answer = spot->node;
	return check_filters(l, spot->node, spot->at);
}

static int load_times(struct loader *l, const struct spot *spot, struct rule *rule)
{
	const char *per = "conversation";
	struct json_object *share = json_get(spot->node, "probability");

	if (get_int(l, spot, "times", &rule->times) < 0 || get_str(l, spot, "per", &per) < 0 ||
	    get_int(l, spot, "seed", &rule->seed) < 0)
		return -1;
	rule->probability = json_double(spot->node, "probability", 1.0);
	if (share && (rule->probability < 0 || rule->probability > 1))
		return refuse_key(l, spot, "probability", "must be from 0 to 1");
	if (strcmp(per, "conversation") == 0)
		rule->per = SCOPE_CONVERSATION;
	else if (strcmp(per, "all") == 0)
		rule->per = SCOPE_ALL;
	else if (strcmp(per, "request") == 0)
		rule->per = SCOPE_REQUEST;
	else
		return refuse_key(l, spot, "per", "must be conversation, all or request");
	return 0;
}

/* The line is kept: it names a rule without a name in the log. */
static int load_rule(struct loader *l, const struct spot *spot, struct rule *rule)
{
	static const char *const keys[] = {"name",  "match", "answer",	    "fault",
					   "times", "per",   "probability", "seed"};
	struct spot match = spot_at(spot, "match"), answer = spot_at(spot, "answer");
	struct spot fault = spot_at(spot, "fault");

	rule->line = yaml_line(l->s->doc, spot->at);
	if (CHECK_KEYS(l, spot, keys) < 0 || get_str(l, spot, "name", &rule->name) < 0 ||
	    load_condition(l, &match, &rule->when) < 0 || check_answer(l, &answer, rule) < 0 ||
	    load_fault(l, &fault, &rule->fault) < 0 || load_times(l, spot, rule) < 0)
		return -1;
	if (!rule->answer && !rule->fault.given)
		return refuse(l, spot->at, "a rule needs an 'answer' or a 'fault'");
	return 0;
}

static int load_rules(struct loader *l, const struct spot *root)
{
	struct spot rules = spot_at(root, "rules");

	if (!json_object_is_type(rules.node, json_type_array) || !json_len(rules.node))
		return refuse(l, root->at, "'rules' is missing: a list with at least one rule");
	l->s->rules = mem_alloc(json_len(rules.node) * sizeof(*l->s->rules));
	for (size_t i = 0; i < json_len(rules.node); i++) {
		struct spot rule = spot_index(&rules, i);

		if (load_rule(l, &rule, &l->s->rules[l->s->n_rules++]) < 0)
			return -1;
	}
	return 0;
}

/* A model starts with the values of the file and changes what it names. */
static int load_models(struct loader *l, const struct spot *root)
{
	static const char *const keys[] = {"window", "max_output", "min_cache_prefix", "quirks",
					   "completion_tokens_only"};
	struct spot models = spot_at(root, "models");

	if (!models.node)
		return 0;
	if (!json_object_is_type(models.node, json_type_object))
		return refuse(l, models.at, "'models' must be a mapping of names");
	l->s->models =
		mem_alloc((size_t)json_object_object_length(models.node) * sizeof(*l->s->models));
	json_object_object_foreach (models.node, name, value) {
		struct scenario_model *m = &l->s->models[l->s->n_models];
		struct spot spot = spot_at(&models, name);

		(void)value;
		*m = scenario_model(l->s, "");
		l->s->n_models++;
		m->name = name;
		if (CHECK_KEYS(l, &spot, keys) < 0 || get_int(l, &spot, "window", &m->window) < 0 ||
		    get_int(l, &spot, "max_output", &m->max_output) < 0 ||
		    get_int(l, &spot, "min_cache_prefix", &m->min_cache_prefix) < 0 ||
		    load_quirks(l, &spot, "quirks", &m->quirks) < 0 ||
		    get_bool(l, &spot, "completion_tokens_only", &m->completion_tokens_only) < 0)
			return -1;
	}
	return 0;
}

/* Models after quirks and windows, which they inherit; rules last. */
static int load_root(struct loader *l)
{
	static const char *const keys[] = {
		"name",
		"description",
		"window",
		"max_output",
		"min_cache_prefix",
		"first_ms",
		"event_ms",
		"delta_bytes",
		"bind_thinking",
		"require_key",
		"require_reasoning",
		"strict_roles",
		"stop_at_window",
		"quirks",
		"models",
		"rules",
	};
	struct scenario *s = l->s;
	struct spot root = {.node = yaml_root(s->doc)};

	s->window = 200000;
	s->delta_bytes = 48;
	if (CHECK_KEYS(l, &root, keys) < 0 || get_str(l, &root, "name", &s->name) < 0 ||
	    get_int(l, &root, "window", &s->window) < 0 ||
	    get_int(l, &root, "max_output", &s->max_output) < 0 ||
	    get_int(l, &root, "min_cache_prefix", &s->min_cache_prefix) < 0 ||
	    get_int(l, &root, "first_ms", &s->first_ms) < 0 ||
	    get_int(l, &root, "event_ms", &s->event_ms) < 0 ||
	    get_int(l, &root, "delta_bytes", &s->delta_bytes) < 0 ||
	    get_bool(l, &root, "bind_thinking", &s->bind_thinking) < 0 ||
	    get_bool(l, &root, "require_key", &s->require_key) < 0 ||
	    get_bool(l, &root, "require_reasoning", &s->require_reasoning) < 0 ||
	    get_bool(l, &root, "strict_roles", &s->strict_roles) < 0 ||
	    get_bool(l, &root, "stop_at_window", &s->stop_at_window) < 0 ||
	    load_quirks(l, &root, "quirks", &s->quirks) < 0 || load_models(l, &root) < 0)
		return -1;
	if (s->delta_bytes < 1)
		return refuse_key(l, &root, "delta_bytes", "must be at least 1");
	return load_rules(l, &root);
}

#define DYNAMIC_SLOTS 1024

struct dynamic_patterns {
	struct {
		uint64_t hash;
		struct pattern *pattern; /* NULL with a hash: not valid */
	} slots[DYNAMIC_SLOTS];
	struct pattern **retired; /* may still be named by captures of this request */
	size_t n_retired, cap_retired;
};

static int finish_load(struct scenario *s, struct scenario **ret, struct err *err)
{
	struct loader loader = {.s = s, .err = err};

	s->dynamic = mem_alloc(sizeof(*s->dynamic));
	if (load_root(&loader) < 0) {
		scenario_free(s);
		return -1;
	}
	*ret = s;
	return 0;
}

int scenario_load(const char *path, struct scenario **ret, struct err *err)
{
	struct yaml_doc *doc;
	struct scenario *s;

	if (yaml_parse_file(path, &doc, err) < 0)
		return -1;
	s = mem_alloc(sizeof(*s));
	s->doc = doc;
	return finish_load(s, ret, err);
}

int scenario_parse(const char *text, size_t n, const char *name, struct scenario **ret,
		   struct err *err)
{
	struct yaml_doc *doc;
	struct scenario *s;

	if (yaml_parse(text, n, name, 1, &doc, err) < 0)
		return -1;
	s = mem_alloc(sizeof(*s));
	s->doc = doc;
	return finish_load(s, ret, err);
}

static void condition_release(struct condition *c)
{
	struct pattern_ref *refs[] = {&c->system,	&c->model,	 &c->task,
				      &c->last_message, &c->tool_result, &c->any_result,
				      &c->any_text};

	for (size_t i = 0; i < ARRAY_SIZE(refs); i++)
		pattern_free(refs[i]->fixed);
	if (c->unless) {
		condition_release(c->unless);
		free(c->unless);
	}
}

void scenario_free(struct scenario *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n_rules; i++)
		condition_release(&s->rules[i].when);
	for (size_t i = 0; s->dynamic && i < DYNAMIC_SLOTS; i++)
		pattern_free(s->dynamic->slots[i].pattern);
	scenario_settle(s);
	free(s->dynamic ? s->dynamic->retired : NULL);
	free(s->dynamic);
	free(s->rules);
	free(s->models);
	yaml_free(s->doc);
	free(s);
}

struct scenario_model scenario_model(const struct scenario *s, const char *name)
{
	for (size_t i = 0; i < s->n_models; i++)
		if (strcmp(s->models[i].name, name) == 0)
			return s->models[i];
	return (struct scenario_model){.name = name,
				       .window = s->window,
				       .max_output = s->max_output,
				       .min_cache_prefix = s->min_cache_prefix,
				       .quirks = s->quirks};
}

void scenario_settle(struct scenario *s)
{
	if (!s->dynamic)
		return;
	while (s->dynamic->n_retired)
		pattern_free(s->dynamic->retired[--s->dynamic->n_retired]);
}

/* Direct-mapped: a newcomer retires the one before it in its slot. */
struct pattern *scenario_pattern(struct scenario *s, const char *source, size_t n)
{
	uint64_t hash = hash_bytes(HASH_SEED, source, n);
	size_t i = (size_t)(hash % DYNAMIC_SLOTS);
	struct dynamic_patterns *d = s->dynamic;
	struct pattern *fresh = NULL;

	if (d->slots[i].hash == hash)
		return d->slots[i].pattern;
	pattern_compile(source, n, &fresh, NULL);
	if (d->slots[i].pattern) {
		MEM_GROW(d->retired, d->cap_retired, d->n_retired + 1);
		d->retired[d->n_retired++] = d->slots[i].pattern;
	}
	d->slots[i].hash = hash;
	d->slots[i].pattern = fresh;
	return fresh;
}
