/*
 * test_document.c - the handoff document as JSON (R2): without loss for any text, strict when read, and described by
 * data/handoff.schema.json to the last member.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/memory.h"
#include "document_rig.h"

#define DOCUMENTS 400

static struct json_object *load_schema(void)
{
	struct json_object *schema = NULL;
	struct err err = ERR_INIT;

	if (json_parse_file(HANDOFF_SCHEMA_FILE, 1 << 20, &schema, &err) < 0)
		fail_msg("%s", err.message);
	return schema;
}

static struct handoff *read_json(const char *text, struct err *err)
{
	AUTO_JSON struct json_object *json = NULL;
	struct handoff *handoff = NULL;

	if (json_parse(text, strlen(text), &json, err) < 0)
		fail_msg("%s: %s", text, err->message);
	return handoff_from_json(json, &handoff, err) < 0 ? NULL : handoff;
}

static void test_json_keeps_all(void **state)
{
	AUTO_JSON struct json_object *schema = load_schema();

	for (uint32_t seed = 1; seed <= DOCUMENTS; seed++) {
		struct handoff *first = random_document(seed), *second;
		struct err err = ERR_INIT;
		AUTO_JSON struct json_object *json = handoff_to_json(first);
		AUTO_BUF struct buf text = BUF_INIT;
		json_write_pretty(&text, json);
		second = read_json(buf_str(&text), &err);
		if (!second)
			fail_msg("seed %u: %s", seed, err.message);
		const char *where = document_difference(first, second);
		if (where)
			fail_msg("seed %u: %s", seed, where);
		if (json_check_schema(schema, json, &err) < 0)
			fail_msg("seed %u: %s", seed, err.message);
		handoff_free(first);
		handoff_free(second);
	}
}

/* ---- the schema ---- */

static void expect_names(struct json_object *properties, const char *const *names, size_t n,
			 const char *of)
{
	for (size_t i = 0; i < n; i++)
		if (!json_has(properties, names[i]))
			fail_msg("the schema lacks '%s' in %s", names[i], of);
	if ((size_t)json_object_object_length(properties) != n)
		fail_msg("the schema has %d members in %s instead of %zu",
			 json_object_object_length(properties), of, n);
}

static size_t add_keys(const char **names, size_t n, const struct handoff_member *members,
		       size_t n_members)
{
	for (size_t i = 0; i < n_members; i++)
		names[n++] = members[i].key;
	return n;
}

static void test_schema_and_tables_name_the_same(void **state)
{
	AUTO_JSON struct json_object *schema = load_schema();
	struct json_object *header = json_obj(schema, "properties");
	struct json_object *parts = json_obj(json_obj(header, "parts"), "properties");
	struct json_object *statement =
		json_obj(json_obj(json_obj(schema, "$defs"), "statement"), "properties");
	const char *names[64] = {"schema", "version", "generation", "facts_only", "parts"};
	const char *const own[] = {"text", "origin", "state", "exit_code", "generation", "uid"};
	size_t n;
	const struct handoff_member *members = handoff_heads(&n);

	expect_names(header, names, add_keys(names, 5, members, n), "the header");
	for (size_t i = 0; i < ARRAY_SIZE(own); i++)
		names[i] = own[i];
	members = handoff_fields(&n);
	expect_names(statement, names, add_keys(names, ARRAY_SIZE(own), members, n), "a statement");
	for (enum handoff_part_name part = 0; part < HANDOFF_N_PARTS; part++) {
		const char *kind =
			handoff_part_flags(part) & HANDOFF_ONE ? "#/$defs/one" : "#/$defs/list";
		names[part] = handoff_part_key(part);
		assert_string_equal(json_str(json_obj(parts, names[part]), "$ref", ""), kind);
	}
	expect_names(parts, names, HANDOFF_N_PARTS, "parts");
	assert_int_equal(json_len(json_arr(json_obj(statement, "state"), "enum")),
			 HANDOFF_N_STATES - 1);
	assert_int_equal(json_len(json_arr(json_obj(statement, "origin"), "enum")),
			 HANDOFF_N_ORIGINS);
}

/* ---- what is refused ---- */

#define HEADER		"\"schema\":\"baton.handoff\",\"version\":1"
#define DOCUMENT(parts) "{" HEADER ",\"parts\":{" parts "}}"
#define TEXT		"\"text\":\"x\",\"origin\":\"model\""

static void test_strict(void **state)
{
	static const struct {
		const char *json, *want;
	} rows[] = {
		{"[]", "a handoff must be a JSON object"},
		{"{}", "this is no handoff: schema must be \"baton.handoff\""},
		{"{\"schema\":\"baton.handoff\"}", "version is missing"},
		{"{\"schema\":\"baton.handoff\",\"version\":0}", "version is out of range"},
		{"{\"schema\":\"baton.handoff\",\"version\":\"1\"}", "version must be an integer"},
		{"{" HEADER "}", "parts must be an object"},
		{"{" HEADER ",\"brunch\":\"x\",\"parts\":{}}",
		 "'brunch' is not known; did you mean 'branch'?"},
		{"{" HEADER ",\"run\":7,\"parts\":{}}", "run must be a string"},
		{"{" HEADER ",\"run\":null,\"parts\":{}}", "run must be a string"},
		{"{" HEADER ",\"generation\":-1,\"parts\":{}}", "generation is out of range"},
		{"{" HEADER ",\"facts_only\":0,\"parts\":{}}", "facts_only must be true or false"},
		{DOCUMENT("\"gaol\":[]"), "parts: 'gaol' is not known; did you mean 'goal'?"},
		{DOCUMENT("\"goal\":{}"), "parts.goal must be an array"},
		{DOCUMENT("\"goal\":[null]"), "parts.goal[0] must be an object"},
		{DOCUMENT("\"point\":[{" TEXT "},{" TEXT "}]"),
		 "parts.point must hold one statement"},
		{DOCUMENT("\"goal\":[{\"text\":\"x\"}]"),
		 "parts.goal[0].origin must be \"record\", \"user\" or \"model\""},
		{DOCUMENT("\"goal\":[{\"origin\":\"user\"}]"),
		 "parts.goal[0].text must be a string"},
		{DOCUMENT("\"failures\":[{" TEXT "},{" TEXT ",\"exit_code\":\"1\"}]"),
		 "parts.failures[1].exit_code must be an integer"},
		{DOCUMENT("\"failures\":[{" TEXT ",\"exit_code\":9999999999}]"),
		 "parts.failures[0].exit_code is out of range"},
		{DOCUMENT("\"failures\":[{" TEXT ",\"comand\":\"x\"}]"),
		 "parts.failures[0]: 'comand' is not known; did you mean 'command'?"},
		{DOCUMENT("\"failures\":[{" TEXT ",\"uid\":0}]"),
		 "parts.failures[0].uid is out of range"},
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct err err = ERR_INIT;
		assert_null(read_json(rows[i].json, &err));
		if (strcmp(err.message, rows[i].want) != 0)
			fail_msg("%s: '%s' instead of '%s'", rows[i].json, err.message,
				 rows[i].want);
		assert_int_equal(err.code, ERR_INVALID);
	}
}

/* A newer document may have what we do not know, so its version is what is told. */
static void test_newer_version(void **state)
{
	struct err err = ERR_INIT;

	assert_null(read_json("{\"schema\":\"baton.handoff\",\"version\":2,\"news\":1}", &err));
	assert_int_equal(err.code, ERR_UNSUPPORTED);
	assert_string_equal(err.message, "the handoff has version 2, this baton reads up to 1");
}

static void test_statements(void **state)
{
	struct handoff *handoff = handoff_new();
	const char raw[] = "do \x1b[31mnot\x1b[0m\r\n\xff";
	struct handoff_statement *s;

	assert_null(handoff_the(handoff, HANDOFF_GOAL));
	s = handoff_add(handoff, HANDOFF_GOAL, HANDOFF_FROM_MODEL, raw, sizeof(raw) - 1);
	assert_string_equal(s->text, "do not\n\xef\xbf\xbd");
	s = handoff_add(handoff, HANDOFF_GOAL, HANDOFF_FROM_USER, raw, sizeof(raw) - 1);
	assert_string_equal(s->text, "do \x1b[31mnot\x1b[0m\r\n\xef\xbf\xbd");
	handoff_set(&s->file, "a");
	handoff_set(&s->file, s->file);
	handoff_set(&handoff->parts[HANDOFF_GOAL].list[0].file, "gone");
	handoff_remove(handoff, HANDOFF_GOAL, 0);
	assert_int_equal(handoff->parts[HANDOFF_GOAL].n, 1);
	assert_string_equal(handoff_the(handoff, HANDOFF_GOAL)->file, "a");
	handoff_set(&handoff_the(handoff, HANDOFF_GOAL)->file, NULL);
	assert_null(handoff_the(handoff, HANDOFF_GOAL)->file);
	handoff_free(handoff);
	handoff_free(NULL);
}

static void test_names(void **state)
{
	enum handoff_part_name part;
	enum handoff_state found;
	enum handoff_origin origin;
	enum handoff_reason reason;

	for (enum handoff_part_name i = 0; i < HANDOFF_N_PARTS; i++) {
		assert_int_equal(handoff_part_find(handoff_part_key(i), &part), 0);
		assert_int_equal(part, i);
	}
	for (enum handoff_state i = HANDOFF_VERIFIED; i < HANDOFF_N_STATES; i++) {
		assert_int_equal(handoff_state_find(handoff_state_name(i), &found), 0);
		assert_int_equal(found, i);
	}
	for (enum handoff_reason i = 0; i < HANDOFF_N_REASONS; i++) {
		assert_int_equal(handoff_reason_find(handoff_reason_name(i), &reason), 0);
		assert_int_equal(reason, i);
	}
	assert_null(handoff_state_name(HANDOFF_NO_STATE));
	assert_int_equal(handoff_state_find("", &found), -1);
	assert_int_equal(handoff_part_find("none", &part), -1);
	assert_int_equal(handoff_origin_find("god", &origin), -1);
	assert_int_equal(handoff_reason_find("", &reason), -1);
}

/* A goal that is cut within a sentence is not what the user said any more, and a check refuses it. */
static void test_goal_ends_with_a_sentence(void **state)
{
	AUTO_BUF struct buf text = BUF_INIT;

	assert_int_equal(handoff_goal_len("Fix it", 6), 6);
	while (text.len < 9000)
		buf_addf(&text, "Sentence %zu is one of many. ", text.len);
	size_t n = handoff_goal_len(text.data, text.len);
	assert_in_range(n, 5900, 6000);
	assert_int_equal(text.data[n - 1], '.');
	buf_clear(&text);
	while (text.len < 9000)
		buf_adds(&text, "word ");
	assert_int_equal(handoff_goal_len(text.data, text.len), text.len);
	buf_clear(&text);
	while (text.len < 9000)
		buf_adds(&text, "\xe5\x8f\xa5\xe5\xad\x90\xe3\x80\x82");
	n = handoff_goal_len(text.data, text.len);
	assert_in_range(n, 5900, 6000);
	assert_int_equal(n % 9, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_json_keeps_all),
		cmocka_unit_test(test_schema_and_tables_name_the_same),
		cmocka_unit_test(test_strict),
		cmocka_unit_test(test_newer_version),
		cmocka_unit_test(test_statements),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_goal_ends_with_a_sentence),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
