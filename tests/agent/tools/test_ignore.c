/* wild and ignore: the patterns of glob, grep and gitignore(5). */
#include "fixture.h"

#include <fcntl.h>
#include <unistd.h>

#include "agent/tools/ignore.h"
#include "agent/tools/names.h"
#include "agent/tools/wild.h"
#include "base/clock.h"

static bool name_matches(const char *pattern, const char *name)
{
	return wild_match_name(pattern, strlen(pattern), name, strlen(name));
}

static void test_names(void **state)
{
	assert_true(name_matches("*.c", "a.c"));
	assert_true(name_matches("*", ""));
	assert_true(name_matches("a*b*c", "axxbyyc"));
	assert_true(name_matches("?.c", "\xc3\xa9.c"));
	assert_true(name_matches("[a-c]x", "bx"));
	assert_true(name_matches("[!a-c]x", "dx"));
	assert_true(name_matches("[]]", "]"));
	assert_true(name_matches("[[:digit:]]x", "7x"));
	assert_true(name_matches("[\xc3\xa0-\xc3\xbf]", "\xc3\xa9"));
	assert_true(name_matches("\\*", "*"));
	assert_true(name_matches("[", "["));
	assert_true(name_matches("a\xff*", "a\xff"
					   "b"));
	assert_false(name_matches("a", "b"));
	assert_false(name_matches("*.c", "a.h"));
	assert_false(name_matches("?", ""));
	assert_false(name_matches("[!a-c]x", "bx"));
	assert_false(name_matches("\\*", "x"));
	assert_false(name_matches("ab", "a"));
	assert_false(name_matches("a", "ab"));
}

static void test_paths(void **state)
{
	assert_true(wild_match_path("src/*.c", "src/a.c"));
	assert_true(wild_match_path("**/a.c", "a.c"));
	assert_true(wild_match_path("**/a.c", "x/y/a.c"));
	assert_true(wild_match_path("a/**/b", "a/b"));
	assert_true(wild_match_path("a/**/b", "a/x/y/b"));
	assert_true(wild_match_path("a/**/b/**/c", "a/1/b/2/b/3/c"));
	assert_true(wild_match_path("a/**", "a/x/y"));
	assert_true(wild_match_path("**", "a/b"));
	assert_false(wild_match_path("a/**", "a"));
	assert_false(wild_match_path("src/*.c", "src/x/a.c"));
	assert_false(wild_match_path("*.c", "src/a.c"));
	assert_false(wild_match_path("a/**/b", "a/x/c"));
}

/* A hostile pattern costs length times length, not more. */
static void test_no_exponential_pattern(void **state)
{
	AUTO_BUF struct buf name = BUF_INIT, pattern = BUF_INIT;
	for (int i = 0; i < 3000; i++)
		buf_addc(&name, 'a');
	for (int i = 0; i < 500; i++)
		buf_adds(&pattern, "*a");
	buf_addc(&pattern, 'b');
	int64_t start = clock_mono_ms();
	assert_false(name_matches(pattern.data, name.data));
	assert_true(clock_mono_ms() - start < 2000);
}

static void test_sets(void **state)
{
	struct wild_set set;
	wild_set_init(&set, "./src/{a,b{1,2}}/*.{c,h}");
	assert_int_equal(set.count, 6);
	assert_true(wild_set_match(&set, "src/b2/x.h"));
	assert_false(wild_set_match(&set, "src/c/x.h"));
	wild_set_release(&set);
	wild_set_init(&set, "*.{c,h}");
	assert_true(wild_set_match(&set, "deep/er/x.h"));
	wild_set_release(&set);
	wild_set_init(&set, "{single}");
	assert_int_equal(set.count, 1);
	assert_true(wild_set_match(&set, "{single}"));
	wild_set_release(&set);
	wild_set_init(&set, "{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}");
	assert_int_equal(set.count, 256);
	wild_set_release(&set);
}

static bool ignored(struct fixture *f, const char *rules, const char *path, bool is_dir)
{
	struct ignore ignore;
	puts_file(f, ".gitignore", rules);
	AUTO_FD int fd = open(f->worktree, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ignore_init(&ignore);
	ignore_push(&ignore, "", fd, ".gitignore");
	bool yes = ignore_match(&ignore, path, is_dir);
	ignore_release(&ignore);
	return yes;
}

static void test_rules(void **state)
{
	struct fixture *f = *state;
	assert_true(ignored(f, "*.o\n", "deep/a.o", false));
	assert_true(ignored(f, "/a\n", "a", false));
	assert_false(ignored(f, "/a\n", "x/a", false));
	assert_true(ignored(f, "x/a\n", "x/a", false));
	assert_false(ignored(f, "x/a\n", "y/x/a", false));
	assert_true(ignored(f, "build/\n", "sub/build", true));
	assert_false(ignored(f, "build/\n", "sub/build", false));
	assert_false(ignored(f, "*.log\n!keep.log\n", "keep.log", false));
	assert_true(ignored(f, "!keep.log\n*.log\n", "keep.log", false));
	assert_false(ignored(f, "# *.c\n\n   \n", "# *.c", false));
	assert_true(ignored(f, "\\#x\n", "#x", false));
	assert_true(ignored(f, "\\!x\n", "!x", false));
	assert_true(ignored(f, "trailing   \n", "trailing", false));
	assert_true(ignored(f, "crlf\r\nlast", "crlf", false));
	assert_true(ignored(f, "crlf\r\nlast", "last", false));
	assert_true(ignored(f, "doc/**/x\n", "doc/a/b/x", false));
	assert_true(ignored(f, "**/logs\n", "a/logs", true));
}

static void test_nested_rules(void **state)
{
	struct fixture *f = *state;
	struct ignore ignore;
	puts_file(f, ".gitignore", "*.tmp\n");
	puts_file(f, "sub/.gitignore", "!keep.tmp\n/top\n");
	AUTO_FD int root = open(f->worktree, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	AUTO_FD int sub = openat(root, "sub", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ignore_init(&ignore);
	ignore_push(&ignore, "", root, ".gitignore");
	ignore_push(&ignore, "sub", sub, ".gitignore");
	assert_true(ignore_match(&ignore, "sub/a.tmp", false));
	assert_false(ignore_match(&ignore, "sub/keep.tmp", false));
	assert_true(ignore_match(&ignore, "sub/top", false));
	assert_false(ignore_match(&ignore, "sub/x/top", false));
	ignore_pop(&ignore);
	assert_true(ignore_match(&ignore, "keep.tmp", false));
	ignore_release(&ignore);
}

/* Trap 95: the escape is its own inverse for any bytes. */
static void test_trap_95_escape_round_trip(void **state)
{
	static const char *const names[] = {"plain",   "caf\xff",      "a\\x41",	"tab\tnl\n",
					    "\\\\xff", "\xed\xa0\xbd", "\xc3\xa9t\xc3", "end\\"};
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		AUTO_BUF struct buf shown = BUF_INIT;
		name_escape(&shown, names[i], strlen(names[i]));
		assert_true(text_is_utf8(shown.data, shown.len));
		assert_null(strpbrk(shown.data, "\t\n"));
		AUTO_FREE char *back = name_unescape(shown.data);
		assert_string_equal(back ? back : shown.data, names[i]);
	}
	AUTO_FREE char *nul = name_unescape("a\\x00b");
	assert_null(nul);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_no_exponential_pattern),
		cmocka_unit_test(test_sets),
		T(test_rules),
		T(test_nested_rules),
		cmocka_unit_test(test_trap_95_escape_round_trip),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
