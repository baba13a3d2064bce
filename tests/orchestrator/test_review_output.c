/*
 * test_review_output.c - findings as Markdown, JSON and SARIF 2.1.0 (issue 2, review; I12).
 *
 * The SARIF check is by hand and strict: it knows the properties that the schema of SARIF 2.1.0
 * gives to the objects that are written here, and refuses any other, as additionalProperties: false
 * does there.
 */
#include "tests/base/test_base.h"

#include "base/json.h"
#include "base/text.h"
#include "orchestrator/review/review.h"

static struct finding hostile(void)
{
	return (struct finding){
		.id = 1,
		.file = (char *)"src/a b#\n# c.c",
		.line = 7,
		.severity = SEVERITY_HIGH,
		.category = (char *)"Memory\n## Safety!",
		.claim = (char *)"\\<script>alert(1)</script>\n# Heading\n  - item\n\t* item\n"
				 "![x](http://evil/?q) [l](javascript:x) `code` | cell |\n===\n~~~",
		.evidence = (char *)"```\nnot the end\n````\n<b>",
		.suggestion = (char *)"Use <T> [here](x)",
		.agent = (char *)"a1, a2",
		.verdict = VERDICT_CONFIRMED,
		.verdict_reason = (char *)"> quote <i>",
		.verifier = (char *)"a3",
	};
}

static struct finding plain(int id, enum severity severity, enum verdict verdict)
{
	return (struct finding){.id = id,
				.file = (char *)"src/x.c",
				.line = 3,
				.severity = severity,
				.category = (char *)"logic",
				.claim = (char *)"wrong",
				.evidence = (char *)"",
				.suggestion = (char *)"",
				.agent = (char *)"a1",
				.verdict = verdict};
}

static char *const skipped[] = {(char *)"logo\n# x.png: binary"};
static char *const lost[] = {(char *)"a4: killed by signal 9; files src/[y].c"};

static const struct review_summary summary = {
	.title = "HEAD~1..HEAD <x>",
	.run = "r1",
	.reviewers = 2,
	.verifiers = 1,
	.skipped = skipped,
	.n_skipped = 1,
	.lost = lost,
	.n_lost = 1,
};

/* ---- Markdown ---- */

/* Is there this text with a character before it that does not escape it? */
static bool bare(const char *text, const char *what)
{
	for (const char *p = strstr(text, what); p; p = strstr(p + 1, what)) {
		size_t escapes = 0;
		while (p - escapes > text && p[-1 - (ptrdiff_t)escapes] == '\\')
			escapes++;
		if (escapes % 2 == 0)
			return true;
	}
	return false;
}

/* The text without its fenced blocks. */
static char *outside_fences(const char *text)
{
	struct buf out = BUF_INIT;
	size_t fence = 0;

	while (*text) {
		size_t n = strcspn(text, "\n"), ticks = strspn(text, "`");
		if (fence == 0 && ticks >= 3)
			fence = ticks;
		else if (fence > 0 && ticks >= fence && ticks == n)
			fence = 0;
		else if (fence == 0)
			buf_addf(&out, "%.*s\n", (int)n, text);
		text += n + (text[n] == '\n');
	}
	assert_int_equal(fence, 0);
	return buf_take(&out);
}

static void test_markdown_escapes_hostile_text(void **state)
{
	static const char *const markup[] = {
		"<",  "![",    "](",	"\n# H", "\n# c",  "\n## Sa",	"\n  - ", "\n\t* ",
		"`c", "\n===", "\n~~~", "\n> q", "| cell", "\n# x.png", "[y]"};
	struct finding list[] = {hostile()};
	struct findings f = {.list = list, .count = 1};
	AUTO_BUF struct buf out = BUF_INIT;

	findings_markdown(&f, &summary, &out);
	AUTO_FREE char *text = outside_fences(buf_str(&out));
	for (size_t i = 0; i < ARRAY_SIZE(markup); i++) {
		if (bare(text, markup[i]))
			fail_msg("'%s' stands in\n%s", markup[i], text);
	}
	assert_null(strstr(text, "not the end"));
	assert_non_null(strstr(buf_str(&out), "`````\n```\nnot the end\n````\n<b>\n`````\n"));
	assert_non_null(strstr(text, "Found by a1, a2; confirmed by a3: "));
	assert_non_null(strstr(text, "## Not reviewed\n\n- a4: killed"));
	assert_non_null(strstr(text, "## Left out\n\n- logo # x.png: binary"));
}

static void test_markdown_counts(void **state)
{
	struct finding list[] = {plain(1, SEVERITY_HIGH, VERDICT_NONE),
				 plain(2, SEVERITY_LOW, VERDICT_REFUTED)};
	struct findings f = {.list = list, .count = 2};
	struct review_summary s = {.title = "staged", .reviewers = 3};
	AUTO_BUF struct buf out = BUF_INIT;
	AUTO_BUF struct buf none = BUF_INIT;

	findings_markdown(&f, &s, &out);
	const char *text = buf_str(&out);
	assert_true(text_starts(text, "Review of staged: 1 finding, 1 of 2 refuted; 3 reviewers"));
	assert_true(strstr(text, "### 1. high: src/x.c:3 (logic)") < strstr(text, "## Refuted"));
	assert_true(strstr(text, "### 2. low") > strstr(text, "## Refuted"));
	f.count = 0;
	findings_markdown(&f, &s, &none);
	assert_null(strstr(buf_str(&none), "##"));
}

/* ---- JSON ---- */

static void test_json(void **state)
{
	struct finding list[] = {hostile(), plain(2, SEVERITY_LOW, VERDICT_REFUTED)};
	struct findings f = {.list = list, .count = 2};
	AUTO_JSON struct json_object *doc = findings_json(&f, &summary);
	AUTO_JSON struct json_object *again = NULL;
	AUTO_BUF struct buf text = BUF_INIT;

	json_write(&text, doc);
	assert_int_equal(json_parse(text.data, text.len, &again, NULL), 0);
	struct json_object *first = json_at(json_arr(again, "findings"), 0);
	assert_string_equal(json_str(first, "file", ""), list[0].file);
	assert_string_equal(json_str(first, "claim", ""), list[0].claim);
	assert_string_equal(json_str(first, "severity", ""), "high");
	assert_string_equal(json_str(first, "verdict", ""), "confirmed");
	assert_string_equal(json_str(first, "verified_by", ""), "a3");
	assert_string_equal(json_str(json_at(json_arr(again, "findings"), 1), "verdict", ""),
			    "refuted");
	assert_int_equal(json_len(json_arr(again, "not_reviewed")), 1);
	assert_int_equal(json_len(json_arr(again, "left_out")), 1);
}

/* ---- SARIF ---- */

/* One object type of the schema: the members that it may have here ('*' before those it must have).
 */
static const struct sarif_type {
	const char *name;
	const char
		*members; /* "name:type ...": s text, i integer, b boolean, or a type; [] a list */
} sarif_types[] = {
	{"log", "*version:s *runs:run[] $schema:s"},
	{"run",
	 "*tool:tool automationDetails:automation invocations:invocation[] results:result[]"},
	{"tool", "*driver:driver"},
	{"driver", "*name:s version:s rules:rule[]"},
	{"rule", "*id:s shortDescription:text"},
	{"text", "*text:s"}, /* multiformatMessageString and message */
	{"automation", "id:s"},
	{"invocation", "*executionSuccessful:b toolExecutionNotifications:notification[]"},
	{"notification", "*message:text level:s"},
	{"result", "ruleId:s level:s *message:text locations:location[] properties:bag"},
	{"bag", NULL}, /* propertyBag: anything */
	{"location", "physicalLocation:physical"},
	{"physical", "*artifactLocation:artifact region:region"},
	{"artifact", "uri:s uriBaseId:s"},
	{"region", "startLine:i"},
};

static void check_type(struct json_object *value, const char *type);

static void check_object(struct json_object *value, const struct sarif_type *t)
{
	size_t known = 0;

	assert_true(json_object_is_type(value, json_type_object));
	for (const char *p = t->members; p && *p; p += strspn(p, " ")) {
		char name[40], type[40];
		bool must = *p == '*';
		assert_int_equal(sscanf(p + must, "%39[^:]:%39s", name, type), 2);
		p += strcspn(p, " ");
		if (must && !json_has(value, name))
			fail_msg("%s lacks '%s'", t->name, name);
		if (json_has(value, name)) {
			known++;
			check_type(json_get(value, name), type);
		}
	}
	if (t->members && known != (size_t)json_object_object_length(value))
		fail_msg("%s has unknown members: %s", t->name, json_object_to_json_string(value));
}

static void check_type(struct json_object *value, const char *type)
{
	AUTO_FREE char *single = mem_strndup(type, strcspn(type, "["));

	if (strchr(type, '[')) {
		assert_true(json_object_is_type(value, json_type_array));
		for (size_t i = 0; i < json_len(value); i++)
			check_type(json_at(value, i), single);
	} else if (strcmp(type, "s") == 0) {
		assert_true(json_object_is_type(value, json_type_string));
	} else if (strcmp(type, "i") == 0) {
		assert_true(json_object_is_type(value, json_type_int));
		assert_true(json_object_get_int64(value) >= 1); /* startLine: minimum 1 */
	} else if (strcmp(type, "b") == 0) {
		assert_true(json_object_is_type(value, json_type_boolean));
	} else {
		size_t i = 0;
		while (i < ARRAY_SIZE(sarif_types) && strcmp(sarif_types[i].name, single) != 0)
			i++;
		assert_true(i < ARRAY_SIZE(sarif_types));
		check_object(value, &sarif_types[i]);
	}
}

/* RFC 3986: a relative reference of unreserved characters, '/' and escapes, no ':' in the first
 * part. */
static void check_uri(const char *uri)
{
	assert_true(*uri && *uri != '/');
	for (; *uri; uri++) {
		if (*uri == '%') {
			assert_int_equal(strspn(uri + 1, "0123456789ABCDEF") >= 2, 1);
			continue;
		}
		assert_non_null(
			strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
			       "-._~/",
			       *uri));
	}
}

static bool has_rule(struct json_object *rules, const char *id)
{
	size_t n = 0;

	for (size_t i = 0; i < json_len(rules); i++)
		n += strcmp(json_str(json_at(rules, i), "id", ""), id) == 0;
	assert_true(n <= 1); /* uniqueItems */
	return n == 1;
}

static void check_result(struct json_object *result, struct json_object *rules)
{
	static const char *const levels[] = {"none", "note", "warning", "error"};
	struct json_object *location = json_at(json_arr(result, "locations"), 0);
	struct json_object *artifact =
		json_obj(json_obj(location, "physicalLocation"), "artifactLocation");
	size_t i = 0;

	while (i < ARRAY_SIZE(levels) && strcmp(levels[i], json_str(result, "level", "")) != 0)
		i++;
	assert_true(i < ARRAY_SIZE(levels));
	assert_true(has_rule(rules, json_str(result, "ruleId", "?")));
	assert_true(*json_str(json_obj(result, "message"), "text", ""));
	check_uri(json_str(artifact, "uri", ""));
	assert_string_equal(json_str(artifact, "uriBaseId", ""), "SRCROOT");
}

/* The document after a trip through its text, checked. */
static struct json_object *sarif(const struct findings *f, const struct review_summary *s)
{
	AUTO_JSON struct json_object *doc = findings_sarif(f, s);
	AUTO_BUF struct buf text = BUF_INIT;
	struct json_object *again = NULL;

	json_write_pretty(&text, doc);
	assert_int_equal(json_parse(text.data, text.len, &again, NULL), 0);
	check_type(again, "log");
	assert_string_equal(json_str(again, "version", ""), "2.1.0");
	struct json_object *run = json_at(json_arr(again, "runs"), 0);
	struct json_object *rules = json_arr(json_obj(json_obj(run, "tool"), "driver"), "rules");
	for (size_t i = 0; i < json_len(json_arr(run, "results")); i++)
		check_result(json_at(json_arr(run, "results"), i), rules);
	return again;
}

static void test_sarif_is_valid(void **state)
{
	struct finding list[] = {hostile(),
				 plain(2, SEVERITY_LOW, VERDICT_REFUTED),
				 plain(3, SEVERITY_MEDIUM, VERDICT_UNCERTAIN),
				 plain(4, SEVERITY_LOW, VERDICT_NONE),
				 plain(5, SEVERITY_CRITICAL, VERDICT_NONE),
				 plain(6, SEVERITY_INFO, VERDICT_NONE)};
	static const char *const levels[] = {"error", "warning", "note", "error", "note"};
	struct findings f = {.list = list, .count = ARRAY_SIZE(list)};
	AUTO_JSON struct json_object *doc = sarif(&f, &summary);
	struct json_object *run = json_at(json_arr(doc, "runs"), 0);
	struct json_object *results = json_arr(run, "results");

	assert_int_equal(json_len(results), 5); /* without the refuted one */
	for (size_t i = 0; i < ARRAY_SIZE(levels); i++)
		assert_string_equal(json_str(json_at(results, i), "level", ""), levels[i]);
	assert_string_equal(json_str(json_obj(json_at(results, 1), "properties"), "verdict", ""),
			    "uncertain");
	assert_string_equal(json_str(json_at(results, 0), "ruleId", ""), "memory-safety");
	struct json_object *physical = json_obj(
		json_at(json_arr(json_at(results, 0), "locations"), 0), "physicalLocation");
	assert_string_equal(json_str(json_obj(physical, "artifactLocation"), "uri", ""),
			    "src/a%20b%23%0A%23%20c.c");
	assert_int_equal(json_i64(json_obj(physical, "region"), "startLine", 0), 7);
}

/* What was lost is told there too: an empty list must not pass for a clean bill. */
static void test_sarif_tells_what_was_lost(void **state)
{
	struct findings f = {0};
	struct review_summary whole = {.title = "t", .run = NULL};
	AUTO_JSON struct json_object *doc = sarif(&f, &summary);
	AUTO_JSON struct json_object *clean = sarif(&f, &whole);
	struct json_object *invocation =
		json_at(json_arr(json_at(json_arr(doc, "runs"), 0), "invocations"), 0);

	assert_false(json_flag(invocation, "executionSuccessful", true));
	assert_string_equal(
		json_str(json_obj(json_at(json_arr(invocation, "toolExecutionNotifications"), 0),
				  "message"),
			 "text", ""),
		"a4: killed by signal 9; files src/\\[y\\].c"); /* brackets would be a link */
	invocation = json_at(json_arr(json_at(json_arr(clean, "runs"), 0), "invocations"), 0);
	assert_true(json_flag(invocation, "executionSuccessful", false));
}

/* A file that was deleted has no line on the new side; an empty claim is still a message. */
static void test_sarif_of_odd_findings(void **state)
{
	struct finding list[] = {plain(1, SEVERITY_LOW, VERDICT_NONE),
				 plain(2, SEVERITY_LOW, VERDICT_NONE)};
	struct findings f = {.list = list, .count = 2};

	list[0].line = 0;
	list[1].claim = (char *)"";
	list[1].category = (char *)"\xc3\xa9!";
	list[1].file = (char *)"\xc3\xa9:c";
	AUTO_JSON struct json_object *doc = sarif(&f, &summary);
	struct json_object *results = json_arr(json_at(json_arr(doc, "runs"), 0), "results");
	struct json_object *location = json_at(json_arr(json_at(results, 0), "locations"), 0);
	assert_false(json_has(json_obj(location, "physicalLocation"), "region"));
	assert_string_equal(json_str(json_at(results, 1), "ruleId", ""), "defect");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_markdown_escapes_hostile_text),
		cmocka_unit_test(test_markdown_counts),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_sarif_is_valid),
		cmocka_unit_test(test_sarif_tells_what_was_lost),
		cmocka_unit_test(test_sarif_of_odd_findings),
	};
	return cmocka_run_group_tests_name("orchestrator/review_output", tests, NULL, NULL);
}
