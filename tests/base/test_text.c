/*
 * text: UTF-8 repair (traps 87, 89, 95), terminal hygiene (I12), clipping (T4), helpers, numbers.
 */
#include "test_base.h"

#include "base/text.h"

#define FFFD "\xef\xbf\xbd"

static void check_sanitized(const char *in, size_t n, const char *want)
{
	AUTO_BUF struct buf out = BUF_INIT;
	text_sanitize(&out, in, n);
	assert_string_equal(buf_str(&out), want);
	assert_int_equal(out.len, strlen(want));
	assert_true(text_is_utf8(buf_str(&out), out.len));
}

#define check_clean(in, want) check_sanitized(in, sizeof(in) - 1, want)

static void test_trap_87_nul_is_replaced(void **state)
{
	check_clean("a\0b", "a" FFFD "b");
	check_clean("\0", FFFD);
	check_clean("a\0\0", "a" FFFD FFFD);
}

static void test_trap_89_cesu_surrogates(void **state)
{
	check_clean("a\xed\xa0\xbd"
		    "b",
		    "a" FFFD "b");
	check_clean("\xed\xbf\xbf", FFFD);
	check_clean("\xed\xa0\xbd\xed\xb2\xa9", FFFD FFFD);
	check_clean("\xed\xa0", FFFD FFFD);	     /* cut */
	check_clean("\xed\x9f\xbf", "\xed\x9f\xbf"); /* U+D7FF is fine */
	check_clean("\xee\x80\x80", "\xee\x80\x80"); /* U+E000 too */
}

static void test_trap_95_invalid_bytes(void **state)
{
	check_clean("\xff", FFFD);
	check_clean("caf\xe9", "caf" FFFD);
	check_clean("\xe9t\xe9", FFFD "t" FFFD);
	check_clean("\x80\xbf", FFFD FFFD); /* stray continuation */
	check_clean("\xc0\xaf", FFFD FFFD); /* overlong, 2 bytes */
	check_clean("\xc1\xbf", FFFD FFFD);
	check_clean("\xe0\x80\xaf", FFFD FFFD FFFD); /* overlong, 3 bytes */
	check_clean("\xe0\x9f\xbf", FFFD FFFD FFFD);
	check_clean("\xf0\x80\x80\xaf", FFFD FFFD FFFD FFFD); /* overlong, 4 bytes */
	check_clean("\xf0\x8f\xbf\xbf", FFFD FFFD FFFD FFFD);
	check_clean("\xf4\x90\x80\x80", FFFD FFFD FFFD FFFD); /* above U+10FFFF */
	check_clean("\xf5\x80\x80\x80", FFFD FFFD FFFD FFFD);
	check_clean("\xe2\x82", FFFD FFFD);	 /* cut at the end */
	check_clean("\xe2\x82x", FFFD FFFD "x"); /* cut in the middle */
	check_clean("\xf0\x9f\x98", FFFD FFFD FFFD);
	check_clean("\xc3(", FFFD "(");
	check_clean("\xf0\x9f\x98\x80\xe2\x82\xac\xc3\xa9z",
		    "\xf0\x9f\x98\x80\xe2\x82\xac\xc3\xa9z");
	check_clean("\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf");
	check_clean("", "");
}

/* Every pair of bytes at every place in the words of the fast path. */
static void test_any_two_bytes_give_valid_utf8(void **state)
{
	AUTO_BUF struct buf out = BUF_INIT;
	for (unsigned pair = 0; pair < 65536; pair++) {
		char s[24];
		memset(s, 'a', sizeof(s));
		size_t at = pair % 20;
		s[at] = (char)(pair >> 8);
		s[at + 1] = (char)pair;
		buf_clear(&out);
		text_sanitize(&out, s, sizeof(s));
		assert_true(text_is_utf8(out.data, out.len));
		assert_null(memchr(out.data, 0, out.len));
		assert_true(out.len >= sizeof(s));
	}
}

static void test_valid_prefix(void **state)
{
	assert_int_equal(text_valid_prefix("abcdefghijkl\xff", 13), 12);
	assert_int_equal(text_valid_prefix("abcdefgh\xe2\x82\xac\xe2\x82", 13), 11);
	assert_int_equal(text_valid_prefix("a\0b", 3), 3);
	assert_int_equal(text_valid_prefix("", 0), 0);
}

static void check_print(const char *in, size_t n, bool one_line, const char *want)
{
	AUTO_BUF struct buf out = BUF_INIT;
	text_printable(&out, in, n, one_line);
	assert_string_equal(buf_str(&out), want);
	assert_int_equal(out.len, strlen(want));
}

#define check_printable(in, want) check_print(in, sizeof(in) - 1, false, want)
#define check_one_line(in, want)  check_print(in, sizeof(in) - 1, true, want)

static void test_i12_escape_sequences_are_removed(void **state)
{
	check_printable("a\033[31mred\033[0m", "ared");
	check_printable("a\033[2J\033[?25lb", "ab");
	check_printable("\033]0;title\007x", "x");
	check_printable("\033]8;;http://x\033\\link\033]8;;\033\\", "link");
	check_printable("\033]52;c;Zm9v\xc2\x9cx", "x");
	check_printable("\033P1$r0m\033\\x", "x");
	check_printable("\033_app\033\\x\033^pm\033\\y\033Xsos\033\\z", "xyz");
	check_printable("\033cx\033(By\0337z", "xyz");
	check_printable("\xc2\x9b"
			"31mx",
			"x"); /* C1 CSI */
	check_printable("\xc2\x9d"
			"0;t\007x",
			"x"); /* C1 OSC */
	check_printable("a\x9b"
			"b",
			"a" FFFD "b"); /* a bare byte is no C1 */
	check_printable("\033", "");
	check_printable("\033[", "");
	check_printable("\033[31", "");
	/* One without an end takes its introducer only: the text after it is shown. */
	check_printable("\033]0;the rest", "0;the rest");
	/* What is left must not form a new sequence. */
	check_printable("\033\033[31mx", "x");
	check_printable("\033[\033[31mx", "x");
}

static void test_i12_controls_and_bidi_are_removed(void **state)
{
	check_printable("a\r\b\007\0b\x7f"
			"c",
			"abc");
	check_printable("a\tb\nc", "a\tb\nc");
	check_printable("a\xc2\x85"
			"b\xc2\x80",
			"ab");
	check_printable("x\xe2\x80\xae"
			"gnp\xe2\x80\xac.\xe2\x81\xa6y\xe2\x81\xa9",
			"xgnp.y");
	check_printable("\xc3\xa9\xf0\x9f\x98\x80", "\xc3\xa9\xf0\x9f\x98\x80");
	check_printable("\xff", FFFD);
}

static void test_one_line(void **state)
{
	check_one_line("a\r\nb\tc", "a b c");
	check_one_line("a\n\n\nb", "a b");
	check_one_line("a\xe2\x80\xa8"
		       "b",
		       "a b");
	check_one_line("\n", " ");
}

/* No byte string leaves an escape, a control or bad UTF-8; and many unended strings stay linear. */
static void test_printable_of_anything(void **state)
{
	AUTO_BUF struct buf out = BUF_INIT;
	uint64_t seed = 42;
	for (int round = 0; round < 20000; round++) {
		static const char bits[] = "\033[]P\\\007m;1\xc2\x9b\x9d\x9c\n\ra\xe2\x80\xae";
		char s[24];
		for (size_t i = 0; i < sizeof(s); i++) {
			seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
			s[i] = bits[(seed >> 33) % (sizeof(bits) - 1)];
		}
		buf_clear(&out);
		text_printable(&out, s, sizeof(s), round % 2);
		assert_true(text_is_utf8(buf_str(&out), out.len));
		for (size_t i = 0; i < out.len; i++) {
			unsigned char c = (unsigned char)out.data[i];
			assert_true(c >= 0x20 || c == '\n' || c == '\t');
			assert_false(c == 0xc2 && (unsigned char)out.data[i + 1] < 0xa0);
		}
	}
	AUTO_BUF struct buf many = BUF_INIT;
	for (int i = 0; i < 500000; i++)
		buf_adds(&many, "\033]");
	buf_clear(&out);
	text_printable(&out, many.data, many.len, false);
	assert_int_equal(out.len, 0);
}

static void test_floor_and_ceil(void **state)
{
	const char *s = "a\xe2\x82\xac"
			"b\xf0\x9f\x98\x80"; /* 1 3 1 4 */
	static const size_t floors[] = {0, 1, 1, 1, 4, 5, 5, 5, 5, 9, 9};
	static const size_t ceils[] = {0, 1, 4, 4, 4, 5, 9, 9, 9, 9, 9};
	for (size_t n = 0; n < ARRAY_SIZE(floors); n++) {
		assert_int_equal(text_floor(s, 9, n), floors[n]);
		assert_int_equal(text_ceil(s, 9, n), ceils[n]);
	}
	for (size_t n = 0; n <= 6; n++) { /* no characters at all: nothing to keep together */
		assert_int_equal(text_floor("\x80\x80\x80\x80\x80\x80", 6, n), n);
		assert_int_equal(text_ceil("\x80\x80\x80\x80\x80\x80", 6, n), n);
	}
	assert_int_equal(text_floor("\xe2\x82", 2, 1), 1); /* a cut one is no character */
}

static void test_t4_clip_keeps_head_and_tail(void **state)
{
	AUTO_BUF struct buf in = BUF_INIT;
	AUTO_BUF struct buf out = BUF_INIT;
	for (int i = 0; i < 10000; i++)
		buf_addf(&in, "line %d\n", i);
	assert_true(text_clip(&out, in.data, in.len, 10000, "/state/out.txt"));
	assert_true(out.len <= 10200);
	assert_true(text_starts(out.data, "line 0\nline 1\n"));
	assert_true(text_ends(out.data, "line 9999\n"));
	const char *marker = strstr(out.data, "[... ");
	assert_non_null(marker);
	assert_non_null(strstr(marker, "/state/out.txt"));
	assert_non_null(strstr(marker, " tokens) left out"));
	size_t head = (size_t)(marker - out.data);
	size_t tail = strlen(strchr(marker, '\n') + 1);
	assert_in_range(head, 5500, 6000);
	assert_in_range(tail, 2700, 3000);
	assert_int_equal(marker[-1], '\n');
	long left_out = strtol(marker + 5, NULL, 10);
	assert_int_equal((size_t)left_out, in.len - head - tail);
}

static void test_t4_what_fits_is_whole(void **state)
{
	AUTO_BUF struct buf out = BUF_INIT;
	assert_false(text_clip(&out, "abc", 3, 3, NULL));
	assert_string_equal(out.data, "abc");
}

/* One line without end, characters of three bytes, every small budget, a path longer than the
 * budget. */
static void test_t4_clip_bounds(void **state)
{
	AUTO_BUF struct buf in = BUF_INIT;
	for (int i = 0; i < 5000; i++)
		buf_adds(&in, "\xe2\x82\xac");
	AUTO_FREE char *where = mem_alloc(4000);
	memset(where, 'p', 3999);
	for (size_t budget = 0; budget < 1500; budget++) {
		AUTO_BUF struct buf out = BUF_INIT;
		assert_true(text_clip(&out, in.data, in.len, budget, budget % 2 ? where : NULL));
		assert_true(out.len <= budget + 200);
		assert_true(text_is_utf8(out.data, out.len));
		assert_non_null(strstr(out.data, "left out"));
	}
	AUTO_BUF struct buf out = BUF_INIT;
	text_clip(&out, in.data, in.len, 9000, where);
	assert_non_null(strstr(out.data, where));
	assert_true(out.len <= 9200);
}

static void test_lines_and_affixes(void **state)
{
	assert_int_equal(text_count_lines("", 0), 0);
	assert_int_equal(text_count_lines("a", 1), 1);
	assert_int_equal(text_count_lines("a\n", 2), 1);
	assert_int_equal(text_count_lines("a\n\nb", 4), 3);
	assert_true(text_starts("abc", "ab"));
	assert_false(text_starts("a", "ab"));
	assert_true(text_ends("abc", "bc"));
	assert_false(text_ends("c", "bc"));
	const char *hay = "Prompt is TOO\0Long";
	assert_ptr_equal(text_find_nocase(hay, 18, "too"), hay + 10);
	assert_ptr_equal(text_find_nocase(hay, 18, "long"), hay + 14);
	assert_null(text_find_nocase(hay, 17, "long"));
	assert_null(text_find_nocase("", 0, "x"));
}

static void test_nearest(void **state)
{
	static const char *const names[] = {"tools", "model", "description", "max_rounds"};
	assert_string_equal(text_nearest("tool", names, 4), "tools");
	assert_string_equal(text_nearest("modle", names, 4), "model");
	assert_string_equal(text_nearest("Description", names, 4), "description");
	assert_string_equal(text_nearest("max-round", names, 4), "max_rounds");
	assert_null(text_nearest("x", names, 4));
	assert_null(text_nearest("temperature", names, 4));
	assert_null(text_nearest("", names, 4));
	assert_null(text_nearest("tools", names, 0));
}

static void test_numbers(void **state)
{
	int64_t n = 1;
	assert_int_equal(text_parse_i64("9223372036854775807", &n), 0);
	assert_true(n == INT64_MAX);
	assert_int_equal(text_parse_i64("-9223372036854775808", &n), 0);
	assert_true(n == INT64_MIN);
	static const char *const bad[] = {"",	 "-",  "9223372036854775808", "1 ", " 1", "1.0",
					  "0x1", "1k", "-9223372036854775809"};
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(text_parse_i64(bad[i], &n), -1);
	assert_true(n == INT64_MIN); /* untouched */
}

static void test_counts(void **state)
{
	static const struct {
		const char *text;
		int64_t want;
	} good[] = {{"0", 0},	     {"64k", 64000},	  {"200,000", 200000}, {"1_000", 1000},
		    {"2M", 2000000}, {"1,000K", 1000000}, {"007", 7}};
	static const char *const bad[] = {
		"", "k", "-1", "1,", ",1", "1,,0", "1kk", "1.5k", "9223372036854775807k", "1 k"};
	int64_t n;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		assert_int_equal(text_parse_count(good[i].text, &n), 0);
		assert_int_equal(n, good[i].want);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(text_parse_count(bad[i], &n), -1);
}

static void test_durations(void **state)
{
	static const struct {
		const char *text;
		int64_t want;
	} good[] = {{"90", 90000},  {"90s", 90000},    {"10m", 600000}, {"1h30m", 5400000},
		    {"250ms", 250}, {"1s500ms", 1500}, {"0", 0},	{"2h", 7200000}};
	static const char *const bad[] = {"",	  "s",	  "-1", "1h30", "30m1h",
					  "1m1m", "1.5s", "1d", "1 s",	"9223372036854775807h"};
	int64_t n;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		assert_int_equal(text_parse_duration_ms(good[i].text, &n), 0);
		assert_int_equal(n, good[i].want);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(text_parse_duration_ms(bad[i], &n), -1);
}

static void test_hash(void **state)
{
	/* The published values of FNV-1a 64. */
	assert_true(text_hash("", 0) == UINT64_C(0xcbf29ce484222325));
	assert_true(text_hash("a", 1) == UINT64_C(0xaf63dc4c8601ec8c));
	assert_true(text_hash("foobar", 6) == UINT64_C(0x85944171f73967e8));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_trap_87_nul_is_replaced),
		cmocka_unit_test(test_trap_89_cesu_surrogates),
		cmocka_unit_test(test_trap_95_invalid_bytes),
		cmocka_unit_test(test_any_two_bytes_give_valid_utf8),
		cmocka_unit_test(test_valid_prefix),
		cmocka_unit_test(test_i12_escape_sequences_are_removed),
		cmocka_unit_test(test_i12_controls_and_bidi_are_removed),
		cmocka_unit_test(test_one_line),
		cmocka_unit_test(test_printable_of_anything),
		cmocka_unit_test(test_floor_and_ceil),
		cmocka_unit_test(test_t4_clip_keeps_head_and_tail),
		cmocka_unit_test(test_t4_what_fits_is_whole),
		cmocka_unit_test(test_t4_clip_bounds),
		cmocka_unit_test(test_lines_and_affixes),
		cmocka_unit_test(test_nearest),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_durations),
		cmocka_unit_test(test_hash),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
