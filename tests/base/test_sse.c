/* sse: the same events for any split and any line end (traps 52, 54, 56; wire.md 1.2, row 13). */
#include "test_base.h"

#include "base/sse.h"

struct log {
	struct buf text; /* "name|data\n" of each event */
	int stop_after;	 /* events until the callback refuses; 0: never */
};

static int on_event(const char *name, const char *data, size_t n, void *arg, struct err *err)
{
	struct log *log = arg;
	assert_int_equal(strlen(data), n); /* ends in a NUL that is not counted */
	buf_addf(&log->text, "%s|%.*s\n", name, (int)n, data);
	if (log->stop_after && --log->stop_after == 0)
		return err_set(err, ERR_CANCELLED, "stop");
	return 0;
}

/* Parses s in pieces of at most `step` bytes, with one more cut at `cut`. */
static void check_events(const char *s, size_t n, size_t step, size_t cut, const char *want)
{
	struct log log = {.text = BUF_INIT};
	struct sse_parser p;
	sse_init(&p, on_event, &log);
	for (size_t at = 0; at < n;) {
		size_t len = MIN(step, n - at);
		if (at < cut && at + len > cut)
			len = cut - at;
		/* A copy of the exact size: reading past it is seen by the sanitizer. */
		AUTO_FREE char *piece = mem_dup(s + at, len);
		assert_int_equal(sse_feed(&p, piece, len, NULL), 0);
		at += len;
	}
	assert_int_equal(sse_finish(&p, NULL), 0);
	assert_string_equal(buf_str(&log.text), want);
	buf_release(&log.text);
	sse_release(&p);
}

static const char stream_lf[] = "\xef\xbb\xbf: OPENROUTER PROCESSING\n"
				"\n"
				": keep-alive\n"
				"event: message_start\n"
				"data: {\"a\":1}   \n"
				"\n"
				"data:{\"no\":\"space\"}\n"
				"\n"
				"event:ping\n"
				"\n"
				"id: 7\n"
				"retry: 5\n"
				"unknown\n"
				"data:  two\n"
				"data: lines\n"
				"data\n"
				"\n"
				"data:\n"
				"\n"
				"\n"
				"event: error\n"
				"data: \xc3\xa9\xe2\x82\xac\n"
				"\n"
				"error: {\"code\":400}\n"
				"\n"
				"data: [DONE]";

static const char stream_events[] = "message_start|{\"a\":1}   \n"
				    "message|{\"no\":\"space\"}\n"
				    "message| two\nlines\n\n"
				    "message|\n"
				    "error|\xc3\xa9\xe2\x82\xac\n"
				    "error|{\"code\":400}\n"
				    "message|[DONE]\n";

/* Trap 52: LF, CRLF, CR, and CRLF split between CR and LF. Trap 54: cut at every byte offset. */
static void test_traps_52_54_56_every_form_and_split(void **state)
{
	static const char *const ends[] = {"\n", "\r\n", "\r"};
	for (size_t form = 0; form < ARRAY_SIZE(ends); form++) {
		AUTO_BUF struct buf s = BUF_INIT;
		for (const char *c = stream_lf; *c; c++) {
			if (*c == '\n')
				buf_adds(&s, ends[form]);
			else
				buf_addc(&s, *c);
		}
		for (size_t cut = 0; cut <= s.len; cut++) /* includes each CR from its LF */
			check_events(s.data, s.len, s.len, cut, stream_events);
		for (size_t step = 1; step < 9; step++)
			check_events(s.data, s.len, step, 0, stream_events);
	}
}

/* CR alone ends an event at once: nothing waits for a byte that may never come. */
static void test_cr_is_not_held_back(void **state)
{
	struct log log = {.text = BUF_INIT};
	struct sse_parser p;
	sse_init(&p, on_event, &log);
	assert_int_equal(sse_feed(&p, "data: x\r\r", 9, NULL), 0);
	assert_string_equal(buf_str(&log.text), "message|x\n");
	assert_int_equal(sse_feed(&p, "\ndata: y\r\n\r", 11, NULL), 0);
	assert_string_equal(buf_str(&log.text), "message|x\nmessage|y\n");
	assert_int_equal(sse_finish(&p, NULL), 0);
	buf_release(&log.text);
	sse_release(&p);
}

static void test_trap_56_comments_alone_are_no_event(void **state)
{
	check_events(": a\n\n: b\n\n:\n\n", 13, 13, 0, "");
	check_events("\n\n\r\r\n", 5, 1, 0, "");
	check_events("event: x\n\n", 10, 10, 0, "");
}

static void test_cut_stream_is_flushed(void **state)
{
	check_events("data: a\ndata: b", 15, 15, 0, "message|a\nb\n");
	check_events("event: x\ndata: a\n", 17, 17, 0, "x|a\n");
	check_events("error: oops", 11, 4, 0, "error|oops\n");
	check_events("da", 2, 2, 0, "");
	/* A byte order mark counts at the start only. */
	check_events("\xef\xbb\xbf"
		     "data: a\n\n\xef\xbb\xbf"
		     "data: b\n\n",
		     23, 1, 0, "message|a\n");
}

static void test_callback_can_stop(void **state)
{
	struct log log = {.text = BUF_INIT, .stop_after = 2};
	struct sse_parser p;
	struct err err = ERR_INIT;
	sse_init(&p, on_event, &log);
	static const char s[] = "data: 1\n\ndata: 2\n\ndata: 3\n\n";
	assert_int_equal(sse_feed(&p, s, sizeof(s) - 1, &err), -1);
	assert_int_equal(err.code, ERR_CANCELLED);
	assert_string_equal(log.text.data, "message|1\nmessage|2\n");
	buf_release(&log.text);
	sse_release(&p);
}

static int ignore_event(const char *name, const char *data, size_t n, void *arg, struct err *err)
{
	*(size_t *)arg += n;
	return 0;
}

static void test_limits(void **state)
{
	size_t total = 0;
	struct err err = ERR_INIT;
	struct sse_parser p;
	AUTO_FREE char *mib = mem_alloc(1 << 20);
	memset(mib, 'x', 1 << 20);
	sse_init(&p, ignore_event, &total);
	for (int i = 0; i < 8; i++)
		assert_int_equal(sse_feed(&p, mib, 1 << 20, &err), 0);
	assert_int_equal(sse_feed(&p, "x", 1, &err), -1);
	assert_int_equal(err.code, ERR_TOO_LARGE);
	sse_release(&p);

	sse_init(&p, ignore_event, &total);
	int rc = 0, lines = 0;
	for (; rc == 0 && lines < 20; lines++) {
		assert_int_equal(sse_feed(&p, "data: ", 6, &err), 0);
		assert_int_equal(sse_feed(&p, mib, 1 << 20, &err), 0);
		rc = sse_feed(&p, "\n", 1, &err);
	}
	assert_int_equal(rc, -1);
	assert_int_equal(lines, 16); /* 16 MiB and 15 newlines do not fit */
	assert_int_equal(err.code, ERR_TOO_LARGE);
	assert_int_equal(total, 0);
	sse_release(&p);
}

static void test_nul_bytes_pass(void **state)
{
	size_t total = 0;
	struct sse_parser p;
	sse_init(&p, ignore_event, &total);
	assert_int_equal(sse_feed(&p, "data: a\0b\n\n", 11, NULL), 0);
	assert_int_equal(total, 3);
	sse_release(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_traps_52_54_56_every_form_and_split),
		cmocka_unit_test(test_cr_is_not_held_back),
		cmocka_unit_test(test_trap_56_comments_alone_are_no_event),
		cmocka_unit_test(test_cut_stream_is_flushed),
		cmocka_unit_test(test_callback_can_stop),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_nul_bytes_pass),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
