/*
 * The neutral message and its record form (X12).
 */
#include "fixture.h"

static void assert_same(const struct message *a, const struct message *b)
{
	assert_int_equal(a->role, b->role);
	assert_int_equal(a->round, b->round);
	assert_true(a->uid == b->uid);
	assert_int_equal(a->n_blocks, b->n_blocks);
	for (size_t i = 0; i < a->n_blocks; i++) {
		const struct block *x = &a->blocks[i], *y = &b->blocks[i];
		assert_int_equal(x->kind, y->kind);
		assert_int_equal(x->origin, y->origin);
		assert_int_equal(x->text_len, y->text_len);
		assert_memory_equal(x->text, y->text, x->text_len + 1);
		assert_int_equal(x->is_error, y->is_error);
		assert_int_equal(x->partial, y->partial);
		const char *pairs[][2] = {{x->id, y->id}, {x->name, y->name}, {x->raw, y->raw}};
		for (size_t k = 0; k < ARRAY_SIZE(pairs); k++) {
			assert_int_equal(pairs[k][0] == NULL, pairs[k][1] == NULL);
			if (pairs[k][0])
				assert_string_equal(pairs[k][0], pairs[k][1]);
		}
	}
}

/* By way of text, as the transcript does it. */
static struct message *round_trip(const struct message *m)
{
	AUTO_JSON struct json_object *out = message_to_json(m);
	AUTO_JSON struct json_object *in = NULL;
	AUTO_BUF struct buf text = BUF_INIT;
	struct message *back = NULL;
	struct err err = ERR_INIT;
	json_write(&text, out);
	if (json_parse(text.data, text.len, &in, &err) < 0 ||
	    message_from_json(in, &back, &err) < 0)
		fail_msg("%s", err.message);
	return back;
}

static void test_round_trip(void **state)
{
	struct model models[2] = {fixture_anthropic(), fixture_openai()};
	for (int k = 0; k < 2; k++) {
		struct message *view[DIALOGUE];
		fixture_dialogue(view, &models[k]);
		message_add_opaque(view[1], "{ \"type\":\"x\",\"n\":1.50 }");
		view[1]->round = 3;
		view[1]->uid = UINT64_C(1) << 40;
		view[1]->blocks[2].partial = true;
		for (size_t i = 0; i < DIALOGUE; i++) {
			struct message *back = round_trip(view[i]);
			assert_same(view[i], back);
			assert_null(back->rendered);
			message_free(back);
		}
		fixture_free(view, DIALOGUE);
	}
}

/* The same bytes after a resume: what came back renders as before (I4, I10). */
static void test_renders_alike_after_a_round_trip_i10(void **state)
{
	struct model model = fixture_anthropic();
	struct request_params params = fixture_params();
	struct model_client *client = fixture_client(&model, &params);
	struct message *view[DIALOGUE];
	fixture_dialogue(view, &model);
	for (size_t i = 0; i < DIALOGUE; i++) {
		struct message *back = round_trip(view[i]);
		client_render_message(client, view[i]);
		client_render_message(client, back);
		assert_string_equal(view[i]->rendered, back->rendered);
		assert_int_equal(view[i]->splice, back->splice);
		message_free(back);
	}
	fixture_free(view, DIALOGUE);
	client_free(client);
}

/* Traps 28, 30: no blank text is ever stored, by any notion of blank. */
static void test_blank_text_is_refused_traps_28_30(void **state)
{
	static const char *const blanks[] = {
		"", " ", "\n\t\r\v\f", "\xc2\xa0", "\xe2\x80\x83\xe3\x80\x80 ", "\xe2\x80\xa8\x1f",
	};
	struct message *m = message_new(MESSAGE_USER);
	for (size_t i = 0; i < ARRAY_SIZE(blanks); i++)
		assert_null(message_add_text(m, ORIGIN_USER, blanks[i], strlen(blanks[i])));
	assert_null(message_add_text(m, ORIGIN_USER, NULL, 0));
	assert_int_equal(m->n_blocks, 0);
	assert_non_null(message_add_text(m, ORIGIN_USER, "\xe2\x80\x8b.", 4));
	assert_non_null(message_add_text(m, ORIGIN_USER, "\xe2", 1));
	message_free(m);
}

static void test_blank_message_trap_26(void **state)
{
	struct message *m = message_new(MESSAGE_ASSISTANT);
	assert_true(message_is_blank(m));
	message_add_thinking(m, NULL, "hm", 2, "{}");
	assert_true(message_is_blank(m));
	message_add_call(m, "c", "ls", "{}", 2, NULL);
	assert_false(message_is_blank(m));
	assert_int_equal(message_count(m, BLOCK_TOOL_CALL), 1);
	message_free(m);
}

static void test_bad_records_are_errors(void **state)
{
#define RECORD(role, blocks) "{\"role\":\"" role "\",\"round\":0,\"uid\":0,\"blocks\":" blocks "}"
	static const char *const records[] = {
		"{}",
		RECORD("system", "[]"),
		RECORD("user", "{}"),
		RECORD("user", "[{\"kind\":\"song\"}]"),
		RECORD("user", "[3]"),
		RECORD("user", "[{\"kind\":\"text\",\"origin\":\"?\"}]"),
		RECORD("user", "[{\"kind\":\"tool_call\",\"id\":\"c\"}]"),
		RECORD("user", "[{\"kind\":\"image\",\"name\":\"image/png\"}]"),
	};
	for (size_t i = 0; i < ARRAY_SIZE(records); i++) {
		AUTO_JSON struct json_object *json = NULL;
		struct message *m = NULL;
		struct err err = ERR_INIT;
		assert_int_equal(json_parse(records[i], strlen(records[i]), &json, NULL), 0);
		assert_int_equal(message_from_json(json, &m, &err), -1);
		assert_int_equal(err.code, ERR_INVALID);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_renders_alike_after_a_round_trip_i10),
		cmocka_unit_test(test_blank_text_is_refused_traps_28_30),
		cmocka_unit_test(test_blank_message_trap_26),
		cmocka_unit_test(test_bad_records_are_errors),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
