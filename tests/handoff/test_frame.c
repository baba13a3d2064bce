/*
 * test_frame.c - the catalogue's rows, and a reader that hostile bytes cannot pass.
 *
 * Issue 2, "Channel": size limits, sender checks, lengths of 1 GiB, half frames. Everything here is
 * a pure function over buffers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/memory.h"
#include "handoff/frame.h"

/* Values for every field of a row; optional ones too if asked. */
static void fill_fields(struct buf *out, const struct frame_info *info, bool optional)
{
	const char *fields = info->fields;
	struct frame_field field;
	while (frame_field_next(&fields, &field)) {
		if (field.optional && !optional)
			continue;
		const char *value = field.kind == 'i'	? "7"
				    : field.kind == 's' ? "\"text\""
							: "true";
		buf_addf(out, "%s\"%s\":%s", out->len ? "," : "", field.name, value);
	}
}

static enum frame_sender first_sender(const struct frame_info *info)
{
	return (enum frame_sender)(info->senders & -info->senders);
}

static int read_all(const struct buf *bytes, enum frame_sender sender, struct frame *ret,
		    size_t *ret_size, struct err *err)
{
	return frame_read(bytes->data, bytes->len, sender, ret, ret_size, err);
}

static void expect_refused(const char *text, enum frame_sender sender, const char *part)
{
	struct frame frame;
	struct err err = ERR_INIT;
	size_t size;
	int rc = frame_read(text, strlen(text), sender, &frame, &size, &err);
	if (rc != -1 || !strstr(err.message, part))
		fail_msg("'%s' gave %d '%s'", text, rc, err.message);
}

static void test_rows_are_sound(void **state)
{
	size_t count;
	const struct frame_info *rows = frame_table(&count);
	assert_true(count >= 20);
	for (size_t i = 0; i < count; i++) {
		assert_ptr_equal(frame_info(rows[i].type), &rows[i]);
		assert_string_equal(frame_name(rows[i].type), rows[i].wire);
		assert_true(rows[i].senders != 0);
		assert_true(!(rows[i].flags & FRAME_NO_BODY) || rows[i].max_body == 0);
		assert_true((rows[i].flags & FRAME_PARTS) || rows[i].max_body <= FRAME_BODY_MAX);
		for (size_t j = i + 1; j < count; j++) {
			assert_int_not_equal(rows[i].type, rows[j].type);
			assert_string_not_equal(rows[i].wire, rows[j].wire);
		}
	}
	assert_null(frame_info((enum frame_type)999));
	assert_string_equal(frame_name((enum frame_type)999), "?");
}

static void check_round_trip(const struct frame_info *info, bool optional)
{
	AUTO_BUF struct buf fields = BUF_INIT;
	AUTO_BUF struct buf bytes = BUF_INIT;
	const char body[] = "a\0b\n{}";
	size_t len = MIN(sizeof(body), info->max_body);
	fill_fields(&fields, info, optional);
	frame_write(&bytes, info->type, buf_str(&fields), body, len, false);
	size_t whole = bytes.len;
	buf_adds(&bytes, "the next frame");

	struct frame frame;
	size_t size = 0;
	struct err err = ERR_INIT;
	if (read_all(&bytes, first_sender(info), &frame, &size, &err) != 1)
		fail_msg("%s: %s", info->wire, err.message);
	assert_int_equal(size, whole);
	assert_int_equal(frame.type, info->type);
	assert_int_equal(frame.len, len);
	assert_false(frame.more);
	assert_memory_equal(frame.body, body, len);
	const char *p = info->fields;
	struct frame_field field;
	while (frame_field_next(&p, &field))
		assert_int_equal(json_has(frame.header, field.name), optional || !field.optional);
	json_object_put(frame.header);
}

static void test_round_trip_of_each_row(void **state)
{
	size_t count;
	const struct frame_info *rows = frame_table(&count);
	for (size_t i = 0; i < count; i++) {
		check_round_trip(&rows[i], false);
		check_round_trip(&rows[i], true);
	}
}

static void test_each_prefix_asks_for_more(void **state)
{
	AUTO_BUF struct buf bytes = BUF_INIT;
	frame_write(&bytes, FRAME_DATA, "\"req\":3", "hello", 5, false);
	for (size_t n = 0; n < bytes.len; n++) {
		AUTO_FREE char *exact = mem_dup(bytes.data, n ? n : 1); /* ASan sees over-reads */
		struct frame frame;
		size_t size = 0;
		struct err err = ERR_INIT;
		assert_int_equal(frame_read(exact, n, FROM_A, &frame, &size, &err), 0);
		assert_true(size > n && size <= bytes.len);
	}
}

static void test_wrong_sender_is_refused_for_each_row(void **state)
{
	size_t count;
	const struct frame_info *rows = frame_table(&count);
	static const enum frame_sender all[] = {FROM_A, FROM_P, FROM_G, FROM_W};
	for (size_t i = 0; i < count; i++) {
		AUTO_BUF struct buf fields = BUF_INIT;
		AUTO_BUF struct buf bytes = BUF_INIT;
		fill_fields(&fields, &rows[i], true);
		frame_write(&bytes, rows[i].type, buf_str(&fields), NULL, 0, false);
		for (size_t k = 0; k < ARRAY_SIZE(all); k++) {
			struct frame frame = {.header = NULL};
			size_t size;
			struct err err = ERR_INIT;
			bool lawful = rows[i].senders & all[k];
			assert_int_equal(read_all(&bytes, all[k], &frame, &size, &err),
					 lawful ? 1 : -1);
			if (!lawful)
				assert_int_equal(err.code, ERR_DENIED);
			json_object_put(frame.header);
		}
	}
}

/* Each field of each row: absent (error unless optional), and of a wrong kind (always an error). */
static void test_fields_are_checked_for_each_row(void **state)
{
	size_t count;
	const struct frame_info *rows = frame_table(&count);
	for (size_t i = 0; i < count; i++) {
		const char *p = rows[i].fields;
		struct frame_field broken;
		while (frame_field_next(&p, &broken)) {
			static const char *const wrong[] = {NULL, "[]", "-1", "1.5", "null"};
			for (size_t w = 0; w < ARRAY_SIZE(wrong); w++) {
				AUTO_BUF struct buf bytes = BUF_INIT;
				buf_addf(&bytes, "{\"type\":\"%s\",\"len\":0", rows[i].wire);
				const char *q = rows[i].fields;
				struct frame_field field;
				while (frame_field_next(&q, &field)) {
					bool here = strcmp(field.name, broken.name) == 0;
					if (here && !wrong[w])
						continue;
					buf_addf(&bytes, ",\"%s\":%s", field.name,
						 here		     ? wrong[w]
						 : field.kind == 'i' ? "1"
						 : field.kind == 's' ? "\"\""
								     : "false");
				}
				buf_adds(&bytes, "}\n");
				struct frame frame = {.header = NULL};
				size_t size;
				int rc = read_all(&bytes, first_sender(&rows[i]), &frame, &size,
						  NULL);
				assert_int_equal(rc, !wrong[w] && broken.optional ? 1 : -1);
				json_object_put(frame.header);
			}
		}
	}
}

static void test_malformed_headers(void **state)
{
	expect_refused("\n", FROM_A, "frame header");
	expect_refused("garbage\n", FROM_A, "frame header");
	expect_refused("[]\n", FROM_A, "not a JSON object");
	expect_refused("null\n", FROM_A, "not a JSON object");
	expect_refused("{}\n", FROM_A, "unknown type");
	expect_refused("{\"type\":7,\"len\":0}\n", FROM_A, "unknown type");
	expect_refused("{\"type\":\"nonsense\",\"len\":0}\n", FROM_A, "unknown type");
	expect_refused("{\"type\":\"ping\\u0000x\",\"len\":0,\"seq\":1}\n", FROM_A, "unknown type");
	expect_refused("{\"type\":\"ping\",\"seq\":1}\n", FROM_A, "length");
	expect_refused("{\"type\":\"ping\",\"len\":-1,\"seq\":1}\n", FROM_A, "length");
	expect_refused("{\"type\":\"ping\",\"len\":\"0\",\"seq\":1}\n", FROM_A, "length");
	expect_refused("{\"type\":\"event\",\"len\":0,\"name\":\"a\\u0000b\"}\n", FROM_A, "kind");
}

/* A length of 1 GiB, and of 2^64, is refused at the header: no byte of it is waited for. */
static void test_lengths_are_refused_at_the_header(void **state)
{
	expect_refused("{\"type\":\"data\",\"len\":1073741824,\"req\":1}\n", FROM_A, "1073741824");
	expect_refused("{\"type\":\"data\",\"len\":65537,\"req\":1}\n", FROM_A, "65537");
	expect_refused("{\"type\":\"data\",\"len\":18446744073709551616,\"req\":1}\n", FROM_A,
		       "data");
	expect_refused("{\"type\":\"result\",\"len\":65537,\"status\":\"done\"}\n", FROM_A,
		       "65537");
	expect_refused("{\"type\":\"ping\",\"len\":1,\"seq\":1}\n", FROM_A, "body of 1 bytes");
}

static void test_more_only_on_documents(void **state)
{
	expect_refused("{\"type\":\"data\",\"len\":0,\"more\":true,\"req\":1}\n", FROM_A,
		       "more parts");
	expect_refused("{\"type\":\"ping\",\"len\":0,\"more\":false,\"seq\":1}\n", FROM_A,
		       "more parts");
	expect_refused("{\"type\":\"result\",\"len\":0,\"more\":1,\"status\":\"done\"}\n", FROM_A,
		       "more parts");
	AUTO_BUF struct buf bytes = BUF_INIT;
	struct frame frame;
	size_t size;
	frame_write(&bytes, FRAME_RESULT, "\"status\":\"done\"", "x", 1, true);
	assert_int_equal(read_all(&bytes, FROM_A, &frame, &size, NULL), 1);
	assert_true(frame.more);
	json_object_put(frame.header);
}

/* A header of exactly 4,096 bytes with its newline passes; one byte more does not, with or without
 * its newline in sight. */
static void test_header_bound(void **state)
{
	static const char start[] = "{\"type\":\"ping\",\"len\":0,\"seq\":1,\"pad\":\"";
	for (int extra = 0; extra <= 1; extra++) {
		AUTO_BUF struct buf bytes = BUF_INIT;
		buf_adds(&bytes, start);
		while (bytes.len < FRAME_HEADER_MAX - 3 + (size_t)extra)
			buf_addc(&bytes, 'x');
		buf_adds(&bytes, "\"}\n");
		struct frame frame = {.header = NULL};
		struct err err = ERR_INIT;
		size_t size;
		assert_int_equal(read_all(&bytes, FROM_A, &frame, &size, &err), extra ? -1 : 1);
		assert_int_equal(err.code, extra ? ERR_TOO_LARGE : ERR_NONE);
		json_object_put(frame.header);
		buf_truncate(&bytes, FRAME_HEADER_MAX - 1 + (size_t)extra);
		assert_int_equal(read_all(&bytes, FROM_A, &frame, &size, NULL), extra ? -1 : 0);
	}
}

static void test_unknown_fields_are_ignored(void **state)
{
	static const char text[] = "{\"new\":{\"a\":[1]},\"type\":\"ping\",\"len\":0,\"seq\":1}\n";
	struct frame frame;
	size_t size;
	assert_int_equal(frame_read(text, sizeof(text) - 1, FROM_A, &frame, &size, NULL), 1);
	json_object_put(frame.header);
}

/* The long form of the catalogue keeps up with the table. */
static void test_document_names_each_row(void **state)
{
	AUTO_BUF struct buf doc = BUF_INIT;
	struct err err = ERR_INIT;
	size_t count;
	const struct frame_info *rows = frame_table(&count);
	if (file_read(-100, FRAMES_DOC, 1 << 20, &doc, &err) < 0)
		fail_msg("%s", err.message);
	for (size_t i = 0; i < count; i++) {
		AUTO_FREE char *name = mem_printf("### %d `%s`\n", rows[i].type, rows[i].wire);
		char *section = strstr(doc.data, name);
		if (!section)
			fail_msg("docs/frames.md has no section '### %d `%s`'", rows[i].type,
				 rows[i].wire);
		char *next = strstr(section + 4, "\n### ");
		AUTO_FREE char *text =
			mem_strndup(section, next ? (size_t)(next - section) : strlen(section));
		const char *p = rows[i].fields;
		struct frame_field field;
		while (frame_field_next(&p, &field)) {
			AUTO_FREE char *code = mem_printf("`%s`", field.name);
			if (!strstr(text, code))
				fail_msg("docs/frames.md: '%s' lacks its field %s", rows[i].wire,
					 code);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows_are_sound),
		cmocka_unit_test(test_round_trip_of_each_row),
		cmocka_unit_test(test_each_prefix_asks_for_more),
		cmocka_unit_test(test_wrong_sender_is_refused_for_each_row),
		cmocka_unit_test(test_fields_are_checked_for_each_row),
		cmocka_unit_test(test_malformed_headers),
		cmocka_unit_test(test_lengths_are_refused_at_the_header),
		cmocka_unit_test(test_more_only_on_documents),
		cmocka_unit_test(test_header_bound),
		cmocka_unit_test(test_unknown_fields_are_ignored),
		cmocka_unit_test(test_document_names_each_row),
	};
	return cmocka_run_group_tests_name("handoff/frame", tests, NULL, NULL);
}
