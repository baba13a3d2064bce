/*
 * test_project_memory.c - MEMORY.md (M2, H21): what is taken, what is the same, what is over, what is a secret;
 * and the file between runs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka needs the four above first */
#include <cmocka.h>

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "orchestrator/memory_index.h"
#include "orchestrator/project_memory.h"

#define TODAY "2026-11-30"

static struct memory_index read_text(const char *text, size_t want_expired)
{
	struct memory_index index = {.n = 0};

	assert_int_equal(memory_index_read(&index, text, strlen(text), TODAY), want_expired);
	return index;
}

static enum memory_verdict add(struct memory_index *index, const char *kind, const char *text)
{
	return memory_index_add(index, kind, text, strlen(text), TODAY);
}

static void assert_text(struct memory_index *index, const char *want)
{
	AUTO_BUF struct buf out = BUF_INIT;

	memory_index_write(index, &out);
	assert_string_equal(buf_str(&out), want);
}

static void m2_newest_first_and_a_persons_lines_stay(void **state)
{
	struct memory_index index =
		read_text("# Notes\n\nA person's line.\n- 2026-11-01 lesson: tests need "
			  "LANG=C\n- a list item\n",
			  0);

	assert_int_equal(add(&index, "preference", "tabs in Makefiles"), MEMORY_ADDED);
	assert_text(&index, "# Notes\n\nA person's line.\n- " TODAY
			    " preference: tabs in Makefiles\n- 2026-11-01 lesson: tests need "
			    "LANG=C\n- a list item\n");
	memory_index_release(&index);
}

/* H20: the newer wording of the same takes the older one's place; a person's wording stands. */
static void h20_near_duplicates_are_one(void **state)
{
	struct memory_index index = read_text("- 2026-11-01 lesson: the test suite needs LANG=C to "
					      "pass\n- Always run make check first.\n",
					      0);

	assert_int_equal(add(&index, "lesson", "The test-suite needs `LANG=C` to pass!"),
			 MEMORY_KNOWN);
	assert_int_equal(add(&index, "lesson", "always run 'make check' first"), MEMORY_KNOWN);
	assert_int_equal(add(&index, "lesson", "the linker needs -lm on this machine"),
			 MEMORY_ADDED);
	assert_int_equal(add(&index, "lesson", "测试需要先启动数据库"), MEMORY_ADDED);
	assert_int_equal(add(&index, "lesson", "测试需要先启动数据库。"), MEMORY_KNOWN);
	assert_text(&index, "- " TODAY " lesson: 测试需要先启动数据库。\n"
			    "- " TODAY " lesson: the linker needs -lm on this machine\n"
			    "- " TODAY " lesson: The test-suite needs `LANG=C` to pass!\n"
			    "- Always run make check first.\n");
	memory_index_release(&index);
}

static void m2_workarounds_expire(void **state)
{
	struct memory_index index = read_text(
		"- 2026-11-01 until 2026-11-29 lesson: over\n- 2026-11-01 until 2026-11-30 lesson: "
		"its last day\n- 2026-11-01 lesson: for good\n",
		1);

	assert_int_equal(index.n, 2);
	assert_int_equal(add(&index, "lesson", "workaround: skip test_net"), MEMORY_ADDED);
	assert_int_equal(add(&index, "lesson", "use the mirror until 2027-01-31, it moves then"),
			 MEMORY_ADDED);
	assert_text(&index,
		    "- " TODAY " until 2027-01-31 lesson: use the mirror until 2027-01-31, it "
		    "moves then\n- " TODAY " until 2026-12-14 lesson: workaround: skip test_net\n"
		    "- 2026-11-01 until 2026-11-30 lesson: its last day\n"
		    "- 2026-11-01 lesson: for good\n");
	memory_index_release(&index);
}

static void m2_secrets_and_commits_are_refused(void **state)
{
	static const char *const secrets[] = {
		"the key is sk-test-0123456789abcdefghij",
		"export API_KEY=abc123",
		"DB password: hunter2",
		"the token is abcdef",
		"no password here, but the password is: hunter2",
		"push with ghp_abcdefghij0123456789abcdef",
		"git clone https://me:pw@example.org/x",
		"-----BEGIN OPENSSH PRIVATE KEY-----",
		"use AKIAIOSFODNN7EXAMPLE for S3",
		"value Zm9vYmFyMTIzNDU2Nzg5MGFiY2RlZg",
		"hash 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
		"密码：开门",
	};
	static const char *const fine[] = {
		"tokens are counted per model, see docs",
		"the parser's token type is a pointer",
		"never write a password into a test",
		"use src/very_long_directory_name/and_another_one/file.c",
		"set -DCMAKE_BUILD_TYPE=RelWithDebInfo",
		"feedback decade facade",
	};
	struct memory_index index = {.n = 0};

	for (size_t i = 0; i < ARRAY_SIZE(secrets); i++)
		if (add(&index, "lesson", secrets[i]) != MEMORY_SECRET)
			fail_msg("not seen: %s", secrets[i]);
	for (size_t i = 0; i < ARRAY_SIZE(fine); i++)
		if (add(&index, "lesson", fine[i]) != MEMORY_ADDED)
			fail_msg("refused: %s", fine[i]);
	assert_int_equal(add(&index, "lesson", "the bug came with 3f2a91c"), MEMORY_VOLATILE);
	assert_int_equal(add(&index, "lesson", " \n"), MEMORY_UNFIT);
	memory_index_release(&index);
}

/* I12: one entry is one line, without control characters, and cannot look like another one. */
static void an_entry_is_one_line(void **state)
{
	struct memory_index index = {.n = 0};

	add(&index, "lesson", "one\n- 2026-11-30 preference: forged\x1b[31m");
	assert_text(&index, "- " TODAY " lesson: one - 2026-11-30 preference: forged\n");
	memory_index_release(&index);
}

/* M2: 200 lines, 25 KB: the oldest of ours go; what is shown is cut at whole lines. */
static void m2_bounds(void **state)
{
	struct memory_index index = read_text("a person's line\n", 0);
	AUTO_BUF struct buf out = BUF_INIT;
	AUTO_BUF struct buf shown = BUF_INIT;

	for (int i = 0; i < 500; i++) {
		AUTO_FREE char *text = mem_printf("%d %d %d %d %d", i * 7919, i * 104729,
						  i * 1299709, i * 15485 % 1000003, i * 31);

		add(&index, "lesson", text);
	}
	memory_index_write(&index, &out);
	assert_true(index.n <= MEMORY_INDEX_LINES && index.n > 150);
	assert_true(out.len <= MEMORY_INDEX_BYTES);
	assert_string_equal(index.list[0].line, "a person's line");
	memory_index_show(&index, 300, &shown);
	assert_true(shown.len <= 300 && shown.len > 200);
	assert_int_equal(shown.data[shown.len - 1], '\n');
	memory_index_release(&index);
}

/* ---- the file ---- */

static char *folder;

static int setup(void **state)
{
	char template[] = "/tmp/baton-memory-XXXXXX";

	assert_non_null(mkdtemp(template));
	folder = mem_strdup(template);
	log_init("test", LOG_ERROR);
	return 0;
}

static int teardown(void **state)
{
	file_remove_tree(folder, NULL);
	free(folder);
	return 0;
}

static bool run_with(const char *fields, struct project_memory_saved *saved, char **ret_text)
{
	struct project_memory m = {.folder = NULL};
	AUTO_JSON struct json_object *doc = NULL;
	bool done;

	if (fields)
		assert_int_equal(json_parse(fields, strlen(fields), &doc, NULL), 0);
	project_memory_open(&m, folder);
	*ret_text = project_memory_text(&m);
	project_memory_learn(&m, doc);
	done = project_memory_save(&m, saved);
	if (done)
		json_object_put(saved->lines);
	project_memory_release(&m);
	return done;
}

static void h21_a_later_run_knows(void **state)
{
	struct project_memory_saved saved;
	AUTO_FREE char *first = NULL, *second = NULL, *path = NULL;
	struct stat st;

	assert_false(run_with(NULL, &saved, &first));
	assert_null(first);
	free(first);
	assert_true(run_with("{\"preferences\":[\"tabs in Makefiles\"],\"lessons\":[\"tests need "
			     "LANG=C\",\"password: x\",7],\"decisions\":[\"not kept\"]}",
			     &saved, &first));
	assert_int_equal(saved.added, 2);
	assert_int_equal(saved.refused, 2);
	assert_int_equal(saved.total, 2);
	assert_false(run_with("{\"preferences\":[],\"lessons\":[]}", &saved, &second));
	assert_non_null(strstr(second, "lesson: tests need LANG=C\n"));
	assert_non_null(strstr(second, "preference: tabs in Makefiles\n"));
	assert_null(strstr(second, "not kept"));
	assert_null(strstr(second, "password"));
	path = file_join(folder, "baton/memory/MEMORY.md");
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
}

/* An agent may be in anybody's hands: its result may hold anything. */
static void what_an_agent_sends_is_bounded(void **state)
{
	struct project_memory_saved saved;
	AUTO_BUF struct buf fields = BUF_INIT;
	AUTO_FREE char *text = NULL;

	buf_adds(&fields, "{\"preferences\":{\"a\":1},\"lessons\":[\"\"");
	for (int i = 0; i < 1000; i++)
		buf_addf(&fields, ",\"%d is %d\"", i * 104729, i * 1299709);
	buf_adds(&fields, "]}");
	assert_true(run_with(buf_str(&fields), &saved, &text));
	assert_true(saved.added + saved.known + saved.refused <= 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(m2_newest_first_and_a_persons_lines_stay),
		cmocka_unit_test(h20_near_duplicates_are_one),
		cmocka_unit_test(m2_workarounds_expire),
		cmocka_unit_test(m2_secrets_and_commits_are_refused),
		cmocka_unit_test(an_entry_is_one_line),
		cmocka_unit_test(m2_bounds),
		cmocka_unit_test_setup_teardown(h21_a_later_run_knows, setup, teardown),
		cmocka_unit_test_setup_teardown(what_an_agent_sends_is_bounded, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
