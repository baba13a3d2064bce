/*
 * test_http.c - the request reader: heads, lengths, chunks in any split, and what is refused.
 */
#include "rehearsal_rig.h"

#include "rehearsal/http.h"

static int parse(const char *text, struct http_head *head)
{
	return http_parse_head(text, strlen(text), head, NULL);
}

static void reads_a_head(void **state)
{
	static const char text[] =
		"POST /v1/messages?beta=true HTTP/1.1\r\nHost: h\r\nContent-Length: 12\r\n"
		"X-Api-Key:  k \r\nExpect: 100-continue\r\n\r\n";
	struct http_head head;

	assert_int_equal(http_head_length(text, sizeof(text) - 1), sizeof(text) - 1);
	assert_int_equal(http_head_length(text, sizeof(text) - 2), 0);
	assert_int_equal(parse(text, &head), 0);
	assert_true(http_slice_is(head.method, "POST"));
	assert_true(http_slice_is(http_path(&head), "/v1/messages"));
	assert_true(http_slice_is(http_header(&head, "x-api-key"), "k"));
	assert_int_equal(head.length, 12);
	assert_true(head.keep_alive && head.expect_continue && !head.chunked);
	assert_null(http_header(&head, "absent").s);
	assert_int_equal(parse("GET / HTTP/1.0\r\n\r\n", &head), 0);
	assert_false(head.keep_alive);
}

static void refuses_bad_heads(void **state)
{
	static const char *const bad[] = {
		"GET /\r\n\r\n",
		"GET / HTTP/2.0\r\n\r\n",
		"GET nopath HTTP/1.1\r\nhost: h\r\n\r\n",
		"GET / HTTP/1.1\r\n\r\n", /* no host */
		"GET / HTTP/1.1\r\nhost: h\r\nbad line\r\n\r\n",
		"GET / HTTP/1.1\r\nhost: h\r\n folded\r\n\r\n",
		"GET / HTTP/1.1\r\nhost: h\nx: y\r\n\r\n",
		"GET / HTTP/1.1\r\nhost: h\r\nna me: y\r\n\r\n",
		"POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 1\r\ncontent-length: 1\r\n\r\n",
		"P / HTTP/1.0\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n",
		"POST / HTTP/1.1\r\nhost: h\r\ncontent-length: -1\r\n\r\n",
		"POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: gzip\r\n\r\n",
	};
	struct http_head head;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (parse(bad[i], &head) == 0)
			fail_msg("accepted: %s", bad[i]);
}

static void chunks_in_any_split(void **state)
{
	static const char text[] =
		"5\r\nhello\r\n1A;x=y\r\nabcdefghijklmnopqrstuvwxyz\r\n0\r\nt: v\r\n\r\n";
	size_t n = sizeof(text) - 1;

	for (size_t cut = 0; cut <= n; cut++) {
		struct http_chunks chunks = {.state = CHUNK_SIZE};
		AUTO_BUF struct buf out = BUF_INIT, in = BUF_INIT;
		size_t used;

		buf_add(&in, text, cut);
		int done = http_chunks_feed(&chunks, buf_str(&in), in.len, &used, &out, NULL);
		assert_int_equal(done, cut == n);
		buf_drop(&in, used);
		buf_add(&in, text + cut, n - cut);
		if (!done)
			assert_int_equal(
				http_chunks_feed(&chunks, buf_str(&in), in.len, &used, &out, NULL),
				1);
		assert_string_equal(buf_str(&out), "helloabcdefghijklmnopqrstuvwxyz");
	}
}

static void refuses_bad_chunks(void **state)
{
	static const char *const bad[] = {"x\r\n", "5\r\nhelloX\r\n", "\r\n", "fffffffffffff\r\n"};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct http_chunks chunks = {.state = CHUNK_SIZE};
		AUTO_BUF struct buf out = BUF_INIT;
		size_t used;

		assert_int_equal(
			http_chunks_feed(&chunks, bad[i], strlen(bad[i]), &used, &out, NULL), -1);
	}
	struct http_chunks chunks = {.state = CHUNK_SIZE};
	AUTO_BUF struct buf small = BUF_INIT_MAX(3);
	size_t used;
	struct err err = ERR_INIT;
	assert_int_equal(http_chunks_feed(&chunks, "5\r\nhello\r\n", 10, &used, &small, &err), -1);
	assert_int_equal(err.code, ERR_TOO_LARGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_a_head),
		cmocka_unit_test(refuses_bad_heads),
		cmocka_unit_test(chunks_in_any_split),
		cmocka_unit_test(refuses_bad_chunks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
