/*
 * report.c - the schema of an agent's report, its check, and its bounds.
 *
 * The report is the only thing that crosses from one context to another (A4), and it is written by
 * a model: lists come as one string, as JSON inside a string, or as null; numbers come quoted. What
 * is plainly meant is put right here without a further round; what is not goes back to the model as
 * an error that names the field. Members that we do not know are kept, so that nothing a model said
 * is lost silently.
 *
 * The schema stands as JSON text in one place; the tool definition and the check both use it.
 */
#include "handoff/report.h"

#include "base/memory.h"
#include "base/text.h"

#define STRING_LIST "{\"type\":\"array\",\"items\":{\"type\":\"string\"}"

static const char schema_text[] =
	"{\"type\":\"object\",\"properties\":{"
	"\"status\":{\"type\":\"string\",\"enum\":[\"done\",\"partial\",\"blocked\"],"
	"\"description\":\"done: the task is finished and checked; partial: some of it is; "
	"blocked: "
	"you cannot go on\"},"
	"\"summary\":{\"type\":\"string\",\"description\":\"what was done and found, for a reader "
	"who saw none of it\"},"
	"\"findings\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{"
	"\"file\":{\"type\":\"string\"},\"line\":{\"type\":\"integer\",\"minimum\":0},"
	"\"severity\":{\"type\":\"string\",\"description\":\"critical, high, medium, low or "
	"info\"},"
	"\"category\":{\"type\":\"string\"},"
	"\"claim\":{\"type\":\"string\",\"description\":\"what is the case\"},"
	"\"evidence\":{\"type\":\"string\",\"description\":\"the lines or output that show it\"},"
	"\"suggestion\":{\"type\":\"string\"}},\"required\":[\"claim\"]}},"
	"\"changed_files\":" STRING_LIST ",\"description\":\"paths\"},"
	"\"commits\":" STRING_LIST ",\"description\":\"commit ids\"},"
	"\"tests\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{"
	"\"command\":{\"type\":\"string\"},"
	"\"result\":{\"type\":\"string\",\"enum\":[\"passed\",\"failed\",\"not_run\"]},"
	"\"note\":{\"type\":\"string\"}},\"required\":[\"command\",\"result\"]}},"
	"\"questions\":" STRING_LIST ",\"description\":\"what you need answered\"}},"
	"\"required\":[\"status\",\"summary\"]}";

static const char *const list_names[] = {"findings", "changed_files", "commits", "tests",
					 "questions"};

static struct json_object *schema_tree(struct json_object *data_schema)
{
	struct json_object *schema = NULL;
	if (json_parse(schema_text, sizeof(schema_text) - 1, &schema, NULL) < 0)
		abort();
	if (data_schema) {
		json_set(json_obj(schema, "properties"), "data", json_object_get(data_schema));
		json_object_array_add(json_arr(schema, "required"), json_object_new_string("data"));
	}
	return schema;
}

char *report_schema(struct json_object *data_schema)
{
	AUTO_JSON struct json_object *schema = schema_tree(data_schema);
	struct buf out = BUF_INIT;
	json_write(&out, schema);
	return buf_take(&out);
}

/* ---- what is plainly meant ---- */

static struct json_object *deep_copy(struct json_object *value)
{
	struct json_object *copy = NULL;
	if (value && json_object_deep_copy(value, &copy, NULL) < 0)
		abort();
	return copy;
}

/* The array or object that a string holds as JSON text, or NULL. */
static struct json_object *parse_inside(struct json_object *value)
{
	struct json_object *inner = NULL;
	if (!json_object_is_type(value, json_type_string))
		return NULL;
	const char *s = json_object_get_string(value);
	size_t n = (size_t)json_object_get_string_len(value);
	size_t blanks = strspn(s, " \t\r\n");
	if ((s[blanks] != '[' && s[blanks] != '{') || json_parse(s, n, &inner, NULL) < 0)
		return NULL;
	return inner;
}

/* null for "none" is how strict modes make models write optional members. The names are collected
 * first: json-c's iterators do not survive a deletion. */
static void drop_nulls(struct json_object *obj)
{
	struct json_object_iterator it = json_object_iter_begin(obj);
	struct json_object_iterator end = json_object_iter_end(obj);
	AUTO_BUF struct buf names = BUF_INIT; /* NUL-terminated, one after the other */
	for (; !json_object_iter_equal(&it, &end); json_object_iter_next(&it)) {
		const char *name = json_object_iter_peek_name(&it);
		if (!json_object_iter_peek_value(&it))
			buf_add(&names, name, strlen(name) + 1);
	}
	for (size_t at = 0; at < names.len; at += strlen(names.data + at) + 1)
		json_object_object_del(obj, names.data + at);
}

/* Makes a member a list: JSON text is read, a single value becomes a list of one, "" and absence an
 * empty one, so that readers need not ask whether it is there. */
static void repair_list(struct json_object *report, const char *name)
{
	struct json_object *value = json_get(report, name);
	struct json_object *inner = parse_inside(value);
	struct json_object *list = NULL;
	if (json_object_is_type(inner, json_type_array)) {
		json_set(report, name, inner);
		return;
	}
	if (json_object_is_type(value, json_type_array)) {
		json_object_put(inner);
		return;
	}
	list = json_object_new_array();
	if (inner)
		json_object_array_add(list, inner);
	else if (json_object_is_type(value, json_type_string) && *json_object_get_string(value))
		json_object_array_add(list, json_object_get(value));
	else if (value && !json_object_is_type(value, json_type_string))
		json_object_array_add(list, json_object_get(value));
	json_set(report, name, list);
}

static void repair_number(struct json_object *obj, const char *name)
{
	int64_t number;
	const char *text = json_str(obj, name, NULL);
	if (text && text_parse_i64(text, &number) == 0)
		json_set_i64(obj, name, number);
}

/* Lower case, and the words that models use for ours. */
static void repair_word(struct json_object *obj, const char *name)
{
	static const struct {
		const char *name, *said, *meant;
	} words[] = {
		{"status", "completed", "done"},  {"status", "complete", "done"},
		{"status", "success", "done"},	  {"result", "pass", "passed"},
		{"result", "ok", "passed"},	  {"result", "fail", "failed"},
		{"result", "skipped", "not_run"}, {"result", "not run", "not_run"},
	};
	AUTO_FREE char *word = mem_strdup(json_str(obj, name, NULL));
	if (!word)
		return;
	for (char *p = word; *p; p++)
		if (*p >= 'A' && *p <= 'Z')
			*p = (char)(*p - 'A' + 'a');
	const char *meant = word;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (strcmp(words[i].name, name) == 0 && strcmp(words[i].said, word) == 0)
			meant = words[i].meant;
	json_set_str(obj, name, meant);
}

/* Works on a copy; what is not an object where one is expected is left for the schema to name. */
static void repair_report(struct json_object *report)
{
	drop_nulls(report);
	repair_word(report, "status");
	for (size_t i = 0; i < ARRAY_SIZE(list_names); i++)
		repair_list(report, list_names[i]);
	struct json_object *findings = json_arr(report, "findings");
	for (size_t i = 0; i < json_len(findings); i++) {
		struct json_object *finding = json_at(findings, i);
		if (!json_object_is_type(finding, json_type_object))
			continue;
		drop_nulls(finding);
		repair_number(finding, "line");
		repair_word(finding, "severity");
	}
	struct json_object *tests = json_arr(report, "tests");
	for (size_t i = 0; i < json_len(tests); i++) {
		if (!json_object_is_type(json_at(tests, i), json_type_object))
			continue;
		drop_nulls(json_at(tests, i));
		repair_word(json_at(tests, i), "result");
	}
	struct json_object *data = parse_inside(json_get(report, "data"));
	if (data)
		json_set(report, "data", data);
}

int report_check(struct json_object *input, struct json_object *data_schema,
		 struct json_object **ret, struct err *err)
{
	AUTO_JSON struct json_object *report = parse_inside(input);
	AUTO_JSON struct json_object *schema = schema_tree(data_schema);
	if (!report)
		report = deep_copy(input);
	if (!json_object_is_type(report, json_type_object))
		return err_set(err, ERR_INVALID, "the report must be a JSON object");
	repair_report(report);
	if (json_check_schema(schema, report, err) < 0)
		return err_prefix(err, "report");
	const char *summary = json_str(report, "summary", "");
	if (summary[strspn(summary, " \t\r\n")] == '\0')
		return err_set(err, ERR_INVALID,
			       "report: '/summary' is blank; say what was done and found");
	*ret = take_ptr(report);
	return 0;
}
