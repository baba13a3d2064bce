/* clock: the seam, stamps, the three HTTP date forms, durations for people. */
#include "test_base.h"

#include "base/clock.h"

static int64_t fake_now(void *arg)
{
	return *(int64_t *)arg;
}

static void test_fake_and_real(void **state)
{
	int64_t now = 5000;
	clock_fake(fake_now, fake_now, &now);
	assert_int_equal(clock_mono_us(), 5000);
	assert_int_equal(clock_mono_ms(), 5);
	assert_int_equal(clock_wall_ms(), 5000);
	clock_fake(NULL, NULL, NULL);
	int64_t before = clock_mono_us();
	assert_true(clock_mono_us() >= before);
	assert_true(clock_wall_ms() > INT64_C(1700000000000));
}

static void test_stamp_round_trip(void **state)
{
	static const struct {
		int64_t ms;
		const char *text;
	} cases[] = {
		{0, "1970-01-01T00:00:00.000Z"},
		{INT64_C(951782399999), "2000-02-28T23:59:59.999Z"},
		{INT64_C(951782400000), "2000-02-29T00:00:00.000Z"},
		{INT64_C(1796036272123), "2026-11-30T10:57:52.123Z"},
		{INT64_C(253402300799999), "9999-12-31T23:59:59.999Z"},
	};
	char buf[CLOCK_STAMP_SIZE];
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_string_equal(clock_stamp(cases[i].ms, buf), cases[i].text);
		assert_int_equal(clock_parse_stamp(cases[i].text), cases[i].ms);
	}
	/* Every day of 1970 to 2110, so that no month or leap rule is wrong. */
	for (int64_t day = 0; day < 51000; day++) {
		clock_stamp(day * 86400000 + 1, buf);
		assert_int_equal(clock_parse_stamp(buf), day * 86400000 + 1);
	}
}

static void test_stamp_forms(void **state)
{
	assert_int_equal(clock_parse_stamp("1970-01-01T01:00:00+01:00"), 0);
	assert_int_equal(clock_parse_stamp("1970-01-01T00:00:00-00:30"), 1800000);
	assert_int_equal(clock_parse_stamp("1970-01-01t00:00:00.5z"), 500);
	assert_int_equal(clock_parse_stamp("1970-01-01T00:00:00.123456Z"), 123);
	static const char *const bad[] = {
		"",
		"1970",
		"1970-01-01",
		"1970-13-01T00:00:00Z",
		"1970-02-29T00:00:00Z",
		"1970-01-01T24:00:00Z",
		"1970-01-01T00:00:00",
		"1970-01-01T00:00:00Zx",
		"1970-01-01T00:00:00.Z",
		"1969-12-31T23:59:59Z",
		"1970-01-01T00:00:00+01:00",
	};
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(clock_parse_stamp(bad[i]), -1);
}

/* RFC 9110, 5.6.7: a Retry-After may come in any of the three. */
static void test_http_dates(void **state)
{
	int64_t now = INT64_C(1796036272123);
	clock_fake(NULL, fake_now, &now);
	const int64_t want = INT64_C(784111777000);
	assert_int_equal(clock_parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT"), want);
	assert_int_equal(clock_parse_http_date("Sunday, 06-Nov-94 08:49:37 GMT"), want);
	assert_int_equal(clock_parse_http_date("Sun Nov  6 08:49:37 1994"), want);
	assert_int_equal(clock_parse_http_date("Sun Nov 16 08:49:37 1994"),
			 want + INT64_C(10) * 86400000);
	/* A two-digit year at most 50 years ahead is in the future. */
	assert_true(clock_parse_http_date("Monday, 06-Nov-30 08:49:37 GMT") > now);
	static const char *const bad[] = {
		"",
		"120",
		"Sun, 06 Nov 1994 08:49:37",
		"Sun, 06 Nov 1994 08:49:37 CET",
		"Sun, 31 Feb 1994 08:49:37 GMT",
		"Sun, 06 Xyz 1994 08:49:37 GMT",
		"Sun Nov  6 08:49:37 199",
		"Sun,06 Nov 1994 08:49:37 GMT",
	};
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(clock_parse_http_date(bad[i]), -1);
	clock_fake(NULL, NULL, NULL);
}

static void test_human(void **state)
{
	char buf[32];
	assert_string_equal(clock_human(0, buf, sizeof(buf)), "0ms");
	assert_string_equal(clock_human(850, buf, sizeof(buf)), "850ms");
	assert_string_equal(clock_human(12999, buf, sizeof(buf)), "12s");
	assert_string_equal(clock_human(190000, buf, sizeof(buf)), "3m10s");
	assert_string_equal(clock_human(7500000, buf, sizeof(buf)), "2h05m");
	assert_string_equal(clock_human(-1500, buf, sizeof(buf)), "-1s");
	assert_true(strlen(clock_human(INT64_MIN, buf, sizeof(buf))) > 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fake_and_real), cmocka_unit_test(test_stamp_round_trip),
		cmocka_unit_test(test_stamp_forms),   cmocka_unit_test(test_http_dates),
		cmocka_unit_test(test_human),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
