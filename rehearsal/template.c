/*
 * template.c - expands the answers of a scenario for one request. See template.h.
 *
 * Names are looked up from the narrow to the wide: the item of a for_each_match, the tool result
 * that the rule matched, any result, the last message, the task. A name without a value becomes
 * nothing and is noted in the log, so that a typing error is found.
 */
#include "rehearsal/template.h"

#include <inttypes.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "rehearsal/hash.h"

#define MAX_ITEMS 1000

void scope_release(struct scope *scope)
{
	buf_release(&scope->notes);
}

/* Bounded: a loop over a thousand items must not write a thousand notes. */
static void note(struct scope *scope, const char *what, const char *s, size_t n)
{
	if (scope->notes.len < 2000)
		buf_addf(&scope->notes, "%s%s '%.*s'", scope->notes.len ? "; " : "", what,
			 (int)MIN(n, (size_t)80), s);
}

static void write_node(const struct doc *doc, uint32_t node, struct buf *out)
{
	const struct doc_node *it = &doc->nodes[node];

	switch (it->type) {
	case DOC_STRING:
	case DOC_NUMBER: buf_add(out, it->s, it->len); break;
	case DOC_TRUE: buf_adds(out, "true"); break;
	case DOC_FALSE: buf_adds(out, "false"); break;
	default: break; /* lists and mappings have no text form that a template could use */
	}
}

/* An argument of a call as text; false if absent. The two protocols carry arguments as a tree and
 * as a text. The text is parsed each time it is asked for: few scenarios ask, and none asks often.
 */
static bool call_argument(const struct request *r, const struct part *call, const char *name,
			  struct buf *out)
{
	AUTO_JSON struct json_object *input = NULL;
	struct json_object *value;
	uint32_t node;

	if (r->protocol == PROTOCOL_ANTHROPIC) {
		node = doc_get(&r->doc, call->input, name);
		write_node(&r->doc, node, out);
		return node != 0;
	}
	if (json_parse(r->doc.nodes[call->input].s, r->doc.nodes[call->input].len, &input, NULL) <
	    0)
		return false;
	value = json_get(input, name);
	if (!value)
		return false;
	if (json_object_is_type(value, json_type_string))
		buf_add(out, json_object_get_string(value),
			(size_t)json_object_get_string_len(value));
	else
		json_write(out, value);
	return true;
}

static bool lookup_call(struct scope *scope, const char *name, size_t n, struct buf *out)
{
	const struct part *result = scope->item_part ? scope->item_part : scope->result_part;
	AUTO_FREE char *key = mem_strndup(name, n);

	return result && result->call != NO_PART &&
	       call_argument(scope->request, &scope->request->parts[result->call], key, out);
}

static bool lookup_tool(struct scope *scope, struct buf *out)
{
	const struct part *result = scope->item_part ? scope->item_part : scope->result_part;
	const struct part *call;

	if (!result || result->call == NO_PART)
		return false;
	call = &scope->request->parts[result->call];
	buf_add(out, call->name, call->name_len);
	return true;
}

static bool lookup_builtin(struct scope *scope, const char *name, size_t n, struct buf *out)
{
	AUTO_FREE char *key = mem_strndup(name, n);

	if (strcmp(key, "turn") == 0)
		buf_addf(out, "%zu", scope->request->turn);
	else if (strcmp(key, "round") == 0)
		buf_addf(out, "%zu", scope->request->turn + 1);
	else if (strcmp(key, "model") == 0)
		buf_adds(out, scope->request->model);
	else if (strcmp(key, "input_tokens") == 0)
		buf_addf(out, "%" PRId64, scope->request->input_tokens);
	else if (strcmp(key, "conversation") == 0)
		buf_addf(out, "%016" PRIx64, scope->request->conversation);
	else if (strcmp(key, "tool") == 0)
		return lookup_tool(scope, out);
	else
		return false;
	return true;
}

/* A prefix asks one place and no other; a bare name asks them all. */
static bool lookup(struct scope *scope, const char *name, size_t n, struct buf *out)
{
	const struct {
		const char *prefix;
		const struct captures *caps;
	} places[] = {{"item.", &scope->item},	  {"result.", &scope->result},
		      {"any.", &scope->any},	  {"seen.", &scope->seen},
		      {"last.", &scope->last},	  {"task.", &scope->task},
		      {"system.", &scope->system}};
	const char *value;
	size_t len;

	if (n > 5 && memcmp(name, "call.", 5) == 0)
		return lookup_call(scope, name + 5, n - 5, out);
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		size_t prefix = strlen(places[i].prefix);
		bool named = n > prefix && memcmp(name, places[i].prefix, prefix) == 0;

		if (named &&
		    captures_get(places[i].caps, name + prefix, n - prefix, &value, &len)) {
			buf_add(out, value, len);
			return true;
		}
		if (named)
			return false;
	}
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		if (captures_get(places[i].caps, name, n, &value, &len)) {
			buf_add(out, value, len);
			return true;
		}
	}
	return lookup_builtin(scope, name, n, out);
}

static void replace(struct buf *value, struct buf *with)
{
	buf_clear(value);
	buf_add(value, buf_str(with), with->len);
}

static void trim(struct buf *value)
{
	const char *s = buf_str(value);
	size_t from = 0, to = value->len;
	AUTO_BUF struct buf out = BUF_INIT;

	while (from < to && strchr(" \t\r\n", s[from]))
		from++;
	while (to > from && strchr(" \t\r\n", s[to - 1]))
		to--;
	buf_add(&out, s + from, to - from);
	replace(value, &out);
}

static void map_case(struct buf *value, char from, int delta)
{
	for (size_t i = 0; i < value->len; i++)
		if (value->data[i] >= from && value->data[i] <= from + 25)
			value->data[i] = (char)(value->data[i] + delta);
}

static void add_number(struct buf *value, const char *argument)
{
	int64_t number = 0, more = 0;
	AUTO_BUF struct buf out = BUF_INIT;

	trim(value);
	text_parse_i64(buf_str(value), &number);
	text_parse_i64(argument, &more);
	buf_addf(&out, "%" PRId64, MAX(number + more, (int64_t)1)); /* lines begin at 1 */
	replace(value, &out);
}

static void quote_json(struct buf *value)
{
	AUTO_BUF struct buf out = BUF_INIT;

	json_write_string(&out, buf_str(value), value->len);
	buf_truncate(&out, out.len - 1);
	buf_clear(value);
	buf_adds(value, buf_str(&out) + 1);
}

/* Those of apply_filter; a colon wants an argument. */
static bool filter_is_known(const char *filter)
{
	static const char *const names[] = {"int",  "trim", "lower", "upper",
					    "json", "base", "add:",  "default:"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (text_ends(names[i], ":") ? text_starts(filter, names[i])
					     : strcmp(filter, names[i]) == 0)
			return true;
	}
	return false;
}

char *template_unknown_filter(const char *text, size_t n)
{
	const char *end = text + n, *open, *close;

	for (const char *p = text; p < end; p = close + 2) {
		open = memmem(p, (size_t)(end - p), "{{", 2);
		close = open ? memmem(open, (size_t)(end - open), "}}", 2) : NULL;
		if (!close)
			break;
		AUTO_FREE char *copy = mem_strndup(open + 2, (size_t)(close - open - 2));
		char *rest = copy, *word;
		strsep(&rest, "|"); /* the name */
		while ((word = strsep(&rest, "|")) != NULL) {
			AUTO_BUF struct buf filter = BUF_INIT;
			buf_adds(&filter, word);
			trim(&filter);
			if (filter.len > 0 && !filter_is_known(buf_str(&filter)))
				return buf_take(&filter);
		}
	}
	return NULL;
}

/* One filter; *number is set by `int`. */
static void apply_filter(struct scope *scope, struct buf *value, bool *found, bool *number,
			 const char *filter)
{
	if (strcmp(filter, "int") == 0) {
		trim(value);
		*number = true;
	} else if (strcmp(filter, "trim") == 0) {
		trim(value);
	} else if (strcmp(filter, "lower") == 0) {
		map_case(value, 'A', 32);
	} else if (strcmp(filter, "upper") == 0) {
		map_case(value, 'a', -32);
	} else if (strcmp(filter, "json") == 0) {
		quote_json(value);
	} else if (strcmp(filter, "base") == 0) {
		AUTO_FREE char *base = mem_strdup(file_base(buf_str(value)));

		buf_clear(value);
		buf_adds(value, base);
	} else if (text_starts(filter, "add:")) {
		add_number(value, filter + 4);
	} else if (text_starts(filter, "default:")) {
		if (!*found)
			buf_adds(value, filter + 8);
		*found = true;
	} else {
		note(scope, "unknown filter", filter, strlen(filter));
	}
}

/* Evaluates what stands between {{ and }}. */
static void evaluate(struct scope *scope, const char *expr, size_t n, struct buf *value,
		     bool *number)
{
	AUTO_FREE char *copy = mem_strndup(expr, n);
	char *save = NULL, *word = strtok_r(copy, "|", &save);
	AUTO_BUF struct buf name = BUF_INIT;
	bool found;

	buf_adds(&name, word ? word : "");
	trim(&name);
	found = lookup(scope, buf_str(&name), name.len, value);
	while ((word = strtok_r(NULL, "|", &save))) {
		AUTO_BUF struct buf filter = BUF_INIT;

		buf_adds(&filter, word);
		trim(&filter);
		apply_filter(scope, value, &found, number, buf_str(&filter));
	}
	if (!found)
		note(scope, "no value for", buf_str(&name), name.len);
}

/* Everything that means something in PCRE2, so that a path or a line number only matches itself. */
static void quote_pattern(const char *s, size_t n, struct buf *out)
{
	for (size_t i = 0; i < n; i++) {
		if (strchr("\\^$.[]|()?*+{}#-/", s[i]) && s[i])
			buf_addc(out, '\\');
		buf_addc(out, s[i]);
	}
}

/* Returns true if the text is one expression alone that gave a number. */
static bool expand(struct scope *scope, const char *text, size_t n, bool for_pattern,
		   struct buf *out)
{
	const char *end = text + n;
	bool whole = false;

	for (const char *p = text; p < end;) {
		const char *open = memmem(p, (size_t)(end - p), "{{", 2);
		const char *close = open ? memmem(open, (size_t)(end - open), "}}", 2) : NULL;
		AUTO_BUF struct buf value = BUF_INIT;
		bool number = false;

		if (!close) {
			buf_add(out, p, (size_t)(end - p));
			break;
		}
		buf_add(out, p, (size_t)(open - p));
		evaluate(scope, open + 2, (size_t)(close - open - 2), &value, &number);
		if (for_pattern)
			quote_pattern(buf_str(&value), value.len, out);
		else
			buf_add(out, buf_str(&value), value.len);
		p = close + 2;
		whole = number && open == text && p == end;
	}
	return whole;
}

/* A text with its templates replaced; for_pattern quotes the values for use in a pattern. */
static void template_text(struct scope *scope, const char *text, size_t n, bool for_pattern,
			  struct buf *out)
{
	expand(scope, text, n, for_pattern, out);
}

const struct pattern *template_pattern(struct scope *scope, const struct pattern_ref *ref)
{
	AUTO_BUF struct buf source = BUF_INIT;
	const struct pattern *pattern;

	if (ref->fixed || !ref->source)
		return ref->fixed;
	template_text(scope, ref->source, strlen(ref->source), true, &source);
	pattern = scenario_pattern(scope->scenario, buf_str(&source), source.len);
	if (!pattern)
		note(scope, "bad pattern", buf_str(&source), source.len);
	return pattern;
}

/* A for_each_match that is being worked off. */
struct loop {
	struct scope *scope;
	struct json_object *spec, *list;
	const struct pattern *pattern;
	int64_t limit;
	bool distinct;
};

static bool is_known(struct json_object *list, struct json_object *item)
{
	for (size_t i = 0; i < json_len(list); i++)
		if (json_object_equal(json_at(list, i), item))
			return true;
	return false;
}

/* `unless` and `if` are patterns over the same text, made with the item's captures. */
static bool is_wanted(struct loop *loop, const char *text, size_t n)
{
	static const struct {
		const char *key;
		bool wanted;
	} tests[] = {{"if", true}, {"unless", false}};

	for (size_t i = 0; i < ARRAY_SIZE(tests); i++) {
		struct pattern_ref ref = {.source = json_str(loop->spec, tests[i].key, NULL)};
		AUTO_BUF struct buf source = BUF_INIT;
		const struct pattern *pattern;

		if (!ref.source)
			continue;
		template_text(loop->scope, ref.source, strlen(ref.source), true, &source);
		pattern = scenario_pattern(loop->scope->scenario, buf_str(&source), source.len);
		if (!pattern)
			note(loop->scope, "bad pattern", buf_str(&source), source.len);
		else if (pattern_match(pattern, text, n, 0, NULL) != tests[i].wanted)
			return false;
	}
	return true;
}

/* One item per match. An empty match moves on by one byte, or the loop would never end. The outer
 * item is put back afterwards: loops can be nested. */
static void loop_over(struct loop *loop, const char *text, size_t n, const struct part *part)
{
	struct captures outer = loop->scope->item;
	const struct part *outer_part = loop->scope->item_part;
	size_t from = 0;

	while (from <= n && (int64_t)json_len(loop->list) < loop->limit) {
		struct captures caps = {.of = NULL};
		struct json_object *item;

		if (!pattern_match(loop->pattern, text, n, from, &caps))
			break;
		from = caps.end[0] > caps.start[0] ? caps.end[0] : caps.end[0] + 1;
		loop->scope->item = caps;
		loop->scope->item_part = part;
		if (!is_wanted(loop, text, n))
			continue;
		item = template_expand(loop->scope, json_get(loop->spec, "item"));
		if (loop->distinct && is_known(loop->list, item))
			json_object_put(item);
		else
			json_object_array_add(loop->list, item);
	}
	loop->scope->item = outer;
	loop->scope->item_part = outer_part;
}

static bool is_result_wanted(struct loop *loop, const struct part *part)
{
	const char *tool = json_str(loop->spec, "tool", NULL);
	const struct part *call;

	if (part->kind != PART_RESULT || part->call == NO_PART)
		return false;
	call = &loop->scope->request->parts[part->call];
	return !tool ||
	       (call->name_len == strlen(tool) && memcmp(call->name, tool, call->name_len) == 0);
}

static void loop_over_results(struct loop *loop, size_t first_message)
{
	const struct request *r = loop->scope->request;

	for (size_t m = first_message; m < r->n_messages; m++) {
		for (uint32_t i = 0; i < r->messages[m].count; i++) {
			const struct part *part = &r->parts[r->messages[m].first + i];

			if (is_result_wanted(loop, part))
				loop_over(loop, part->text ? part->text : "", part->len, part);
		}
	}
}

static void loop_run(struct loop *loop)
{
	struct request *r = loop->scope->request;
	const char *in = json_str(loop->spec, "in", "tool_results");
	const char *last;
	size_t len;

	if (strcmp(in, "tool_results") == 0) {
		loop_over_results(loop, 0);
	} else if (strcmp(in, "last_tool_result") == 0) {
		loop_over_results(loop, r->tail);
	} else if (strcmp(in, "task") == 0) {
		loop_over(loop, r->task, r->task_len, NULL);
	} else if (strcmp(in, "system") == 0) {
		loop_over(loop, r->system, r->system_len, NULL);
	} else if (strcmp(in, "last_message") == 0) {
		last = request_last_text(r, &len);
		loop_over(loop, last, len, NULL);
	} else {
		note(loop->scope, "for_each_match: unknown 'in'", in, strlen(in));
	}
}

/* Expands `spec`, the value of a for_each_match, into items appended to list. */
static void expand_loop(struct scope *scope, struct json_object *spec, struct json_object *list)
{
	struct pattern_ref ref = {.source = json_str(spec, "pattern", NULL)};
	struct loop loop = {.scope = scope,
			    .spec = spec,
			    .list = json_object_new_array(),
			    .limit = json_i64(spec, "limit", MAX_ITEMS),
			    .distinct = json_flag(spec, "distinct", false)};
	AUTO_BUF struct buf source = BUF_INIT;

	if (ref.source) {
		template_text(scope, ref.source, strlen(ref.source), true, &source);
		loop.pattern = scenario_pattern(scope->scenario, buf_str(&source), source.len);
	}
	if (loop.pattern)
		loop_run(&loop);
	else
		note(scope, "for_each_match: bad pattern", buf_str(&source), source.len);
	for (size_t i = 0; i < json_len(loop.list); i++)
		json_object_array_add(list, json_object_get(json_at(loop.list, i)));
	json_object_put(loop.list);
}

/* Items of a for_each_match are spliced in, so that a list can mix fixed items with found ones. */
static struct json_object *expand_list(struct scope *scope, struct json_object *node)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < json_len(node); i++) {
		struct json_object *spec = json_obj(json_at(node, i), "for_each_match");

		if (spec)
			expand_loop(scope, spec, list);
		else
			json_object_array_add(list, template_expand(scope, json_at(node, i)));
	}
	return list;
}

/* {repeat: TEXT, times: N}: a long text without a long file. */
static struct json_object *expand_repeat(struct scope *scope, struct json_object *node)
{
	int64_t times = MIN(json_i64(node, "times", 1), (int64_t)1000000);
	const char *text = json_str(node, "repeat", "");
	AUTO_BUF struct buf out = BUF_INIT_MAX(64U << 20);

	while (times-- > 0)
		if (template_text(scope, text, strlen(text), false, &out), out.overflow)
			break;
	return json_object_new_string_len(buf_str(&out), (int)out.len);
}

static struct json_object *expand_mapping(struct scope *scope, struct json_object *node)
{
	struct json_object *spec = json_obj(node, "for_each_match"), *out;

	if (spec) {
		out = json_object_new_array();
		expand_loop(scope, spec, out);
		return out;
	}
	if (json_has(node, "repeat"))
		return expand_repeat(scope, node);
	out = json_object_new_object();
	json_object_object_foreach (node, key, value)
		json_object_object_add(out, key, template_expand(scope, value));
	return out;
}

/* Only texts are templates; numbers, flags and nulls of the YAML stay what they are. */
struct json_object *template_expand(struct scope *scope, struct json_object *node)
{
	AUTO_BUF struct buf text = BUF_INIT;
	int64_t number;

	switch (json_object_get_type(node)) {
	case json_type_object: return expand_mapping(scope, node);
	case json_type_array: return expand_list(scope, node);
	case json_type_string:
		if (expand(scope, json_object_get_string(node),
			   (size_t)json_object_get_string_len(node), false, &text) &&
		    text_parse_i64(buf_str(&text), &number) == 0)
			return json_object_new_int64(number);
		return json_object_new_string_len(buf_str(&text), (int)text.len);
	default: return json_object_get(node);
	}
}
