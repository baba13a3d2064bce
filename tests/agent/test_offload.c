/*
 * test_offload.c - T1, T2, T4, T5, T10, W7: what of a result the model sees, and where the rest is.
 */
#include "agent_fixture.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "agent/context/offload.h"
#include "agent/context/rungs.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"

static char *folder;
static struct agent_settings *settings;
static struct offload offload;
static struct ledger ledger;
static struct window_budget budget;

static int setup(void **state)
{
	folder = fixture_folder();
	settings = fixture_settings(folder, NULL);
	ledger_init(&ledger);
	assert_int_equal(budget_init(&budget, settings->model, &settings->knobs, NULL), 0);
	assert_int_equal(offload_init(&offload, settings, &budget, NULL), 0);
	return 0;
}

static int teardown(void **state)
{
	offload_release(&offload);
	ledger_release(&ledger);
	agent_settings_free(settings);
	fixture_remove(folder);
	return 0;
}

static void fill(struct arrival *a, const char *tool, size_t lines)
{
	*a = (struct arrival){.tool = tool_find(tool)};
	assert_non_null(a->tool);
	a->result.exit_code = strcmp(tool, "shell") ? -1 : 0;
	for (size_t i = 0; i < lines; i++)
		buf_addf(&a->result.text, "line %zu of the output, as it came\n", i);
}

static char *read_result(const char *name)
{
	struct buf out = BUF_INIT;
	AUTO_FREE char *path = file_join(offload.results_dir, name + strlen("results:"));

	assert_int_equal(file_read(AT_FDCWD, path, 64 << 20, &out, NULL), 0);
	return buf_take(&out);
}

static void t1_what_fits_is_not_touched(void **state)
{
	struct arrival a;

	fill(&a, "glob", 100);
	offload_admit(&offload, &ledger, &a, 1, 100000);
	assert_null(a.file);
	assert_int_equal(a.text.len, a.result.text.len);
	assert_memory_equal(a.text.data, a.result.text.data, a.text.len);
	arrival_release(&a);
}

static void t1_t4_long_results_go_to_a_file(void **state)
{
	struct arrival a;
	AUTO_FREE char *kept = NULL;
	struct stat st;
	AUTO_FREE char *path = NULL;

	fill(&a, "glob", 3000);
	offload_admit(&offload, &ledger, &a, 1, 100000);
	assert_non_null(a.file);
	assert_non_null(strstr(buf_str(&a.text), a.file));
	assert_true(text_starts(buf_str(&a.text), "line 0 of"));
	assert_non_null(strstr(buf_str(&a.text), "line 2999 of")); /* the tail too (trap 148) */
	assert_true(a.text.len < 15000);
	kept = read_result(a.file);
	assert_string_equal(kept, buf_str(&a.result.text));
	path = file_join(offload.results_dir, a.file + strlen("results:"));
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	arrival_release(&a);
}

static void t1_a_file_that_is_there_is_never_overwritten(void **state)
{
	struct arrival a;
	AUTO_FREE char *path = file_join(offload.results_dir, "1.txt");

	assert_int_equal(file_write_atomic(AT_FDCWD, path, "mine", 4, 0600, NULL), 0);
	fill(&a, "glob", 3000);
	offload_admit(&offload, &ledger, &a, 1, 100000);
	assert_string_equal(a.file, "results:2.txt");
	arrival_release(&a);
}

static void t1_a_tool_that_wrote_its_output_names_it(void **state)
{
	struct arrival a;

	fill(&a, "shell", 3000);
	a.result.full_path = mem_strdup("results:shell-9.txt");
	offload_admit(&offload, &ledger, &a, 1, 100000);
	assert_string_equal(a.file, "results:shell-9.txt");
	assert_non_null(strstr(buf_str(&a.text), "results:shell-9.txt"));
	arrival_release(&a);
}

static void t1_read_is_exempt(void **state)
{
	struct arrival a;

	fill(&a, "read", 3000);
	offload_admit(&offload, &ledger, &a, 1, 100000);
	assert_null(a.file);
	assert_int_equal(a.text.len, a.result.text.len);
	arrival_release(&a);
}

/* T1 counts characters: three bytes each are still one. */
static void t1_characters_not_bytes(void **state)
{
	struct arrival a = {.tool = tool_find("glob")};

	for (int i = 0; i < 30000; i++)
		buf_adds(&a.result.text, "字");
	offload_admit(&offload, &ledger, &a, 1, 100000);
	assert_null(a.file);
	arrival_release(&a);
}

static void t2_largest_first_until_the_total_fits(void **state)
{
	struct arrival list[6];
	size_t total = 0;

	for (size_t i = 0; i < 5; i++)
		fill(&list[i], "glob", i == 3 ? 1300 : 1200); /* 42,000 to 46,000 characters */
	fill(&list[5], "glob", 20);
	offload_admit(&offload, &ledger, list, 6, 1000000);
	for (size_t i = 0; i < 6; i++)
		total += list[i].text.len;
	assert_true(total <= 200000);
	assert_non_null(list[3].file);
	assert_null(list[5].file);
	assert_null(list[0].file && list[1].file && list[2].file && list[4].file ? "x" : NULL);
	for (size_t i = 0; i < 6; i++)
		arrival_release(&list[i]);
}

/* T5: a failed command keeps its last lines and what looks like an error. */
static void t5_shell_failure_keeps_errors_and_tail(void **state)
{
	struct arrival a;

	fill(&a, "shell", 700);
	buf_adds(&a.result.text, "src/a.c:7: error: no such thing\n");
	for (int i = 0; i < 1000; i++)
		buf_addf(&a.result.text, "more output %d\n", i);
	a.result.exit_code = 2;
	offload_admit(&offload, &ledger, &a, 1, 100000);
	assert_non_null(a.file);
	assert_non_null(strstr(buf_str(&a.text), "error: no such thing"));
	assert_non_null(strstr(buf_str(&a.text), "more output 999"));
	arrival_release(&a);
}

static void t10_too_large_for_any_context(void **state)
{
	struct arrival a;

	fill(&a, "read", 30000); /* about a million bytes: above 180,000 tokens */
	offload_admit(&offload, &ledger, &a, 1, 100000);
	assert_non_null(a.file);
	assert_non_null(strstr(buf_str(&a.text), "written to results:1.txt"));
	assert_non_null(strstr(buf_str(&a.text), "30000 lines"));
	assert_non_null(strstr(buf_str(&a.text), "line 0 of"));
	assert_true(a.text.len < 15000);
	arrival_release(&a);
}

/* W7: near the limit even a read is cut, with advice, and never more than the room comes in. */
static void w7_a_read_never_overflows(void **state)
{
	static const int64_t rooms[] = {0, 100, 500, 3000, 9000};

	for (size_t i = 0; i < ARRAY_SIZE(rooms); i++) {
		struct arrival a;
		int64_t tokens;

		fill(&a, "read", 2000);
		offload_admit(&offload, &ledger, &a, 1, rooms[i]);
		tokens = ledger_estimate_text(&ledger, a.text.data, a.text.len);
		assert_true(tokens <= MAX(rooms[i], 250));
		assert_non_null(strstr(buf_str(&a.text), "offset and limit"));
		arrival_release(&a);
	}
}

static void w7_room_is_shared_fairly(void **state)
{
	struct arrival list[3];
	int64_t tokens = 0;

	fill(&list[0], "read", 2000);
	fill(&list[1], "grep", 3);
	fill(&list[2], "read", 1500);
	offload_admit(&offload, &ledger, list, 3, 8000);
	assert_int_equal(list[1].text.len, list[1].result.text.len); /* the small one is whole */
	for (size_t i = 0; i < 3; i++)
		tokens += ledger_estimate_text(&ledger, list[i].text.data, list[i].text.len);
	assert_true(tokens <= 8000);
	assert_true(tokens > 6000);
	for (size_t i = 0; i < 3; i++)
		arrival_release(&list[i]);
}

static void w7_an_image_without_room_is_left_out(void **state)
{
	struct arrival a;

	fill(&a, "read", 1);
	a.result.images = mem_alloc(sizeof(*a.result.images));
	a.result.images[0].media_type = mem_strdup("image/png");
	a.result.images[0].base64 = mem_strdup("AAAA");
	a.result.n_images = 1;
	offload_admit(&offload, &ledger, &a, 1, 1500);
	assert_true(a.images_left_out);
	assert_non_null(strstr(buf_str(&a.text), "image was left out"));
	arrival_release(&a);
}

/* Traps 87, 89, 95: any bytes become valid text; nothing becomes something. */
static void trap_87_any_bytes(void **state)
{
	struct arrival a = {.tool = tool_find("shell")}, empty = {.tool = tool_find("shell")};

	buf_add(&a.result.text, "a\0b\xff\xed\xa0\xbd.", 8);
	offload_admit(&offload, &ledger, &a, 1, 10000);
	assert_true(text_is_utf8(a.text.data, a.text.len));
	assert_non_null(strstr(buf_str(&a.text), "b"));
	arrival_release(&a);
	offload_admit(&offload, &ledger, &empty, 1, 10000);
	assert_string_equal(buf_str(&empty.text), "(no output)");
	arrival_release(&empty);
}

/* A results folder that takes no file: the preview is still there and says so. */
static void a_file_that_cannot_be_written(void **state)
{
	struct arrival a;

	fill(&a, "glob", 3000);
	free(offload.results_dir);
	offload.results_dir = file_join(folder, "nowhere");
	offload_admit(&offload, &ledger, &a, 1, 100000);
	assert_null(a.file);
	assert_non_null(strstr(buf_str(&a.text), "could not be written"));
	arrival_release(&a);
}

/* The ladder is a table: offload is its first row and runs on arrival only. */
static void h0_is_the_first_rung(void **state)
{
	size_t n = 0;
	const struct rung *rungs = rung_table(&n);
	struct arrival a;
	struct context_knobs knobs;
	struct view view;
	struct rung_input in = {.view = &view,
				.ledger = &ledger,
				.knobs = &knobs,
				.budget = &budget,
				.offload = &offload,
				.arriving = &a,
				.n_arriving = 1};
	int64_t freed = 0;

	knobs_init(&knobs);
	view_init(&view);
	assert_true(n >= 1);
	assert_string_equal(rungs[0].name, "offload");
	fill(&a, "glob", 3000);
	assert_int_equal(rungs_run(RUNG_REQUEST, &in, 0, &freed, NULL), 0);
	assert_int_equal(freed, 0);
	assert_int_equal(a.text.len, 0);
	assert_int_equal(rungs_run(RUNG_ARRIVAL, &in, 0, &freed, NULL), 0);
	assert_true(freed > 10000);
	assert_int_equal(ledger.removed, 0); /* it never was in the window */
	arrival_release(&a);
}

#define WITH_FOLDER(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FOLDER(t1_what_fits_is_not_touched),
		WITH_FOLDER(t1_t4_long_results_go_to_a_file),
		WITH_FOLDER(t1_a_file_that_is_there_is_never_overwritten),
		WITH_FOLDER(t1_a_tool_that_wrote_its_output_names_it),
		WITH_FOLDER(t1_read_is_exempt),
		WITH_FOLDER(t1_characters_not_bytes),
		WITH_FOLDER(t2_largest_first_until_the_total_fits),
		WITH_FOLDER(t5_shell_failure_keeps_errors_and_tail),
		WITH_FOLDER(t10_too_large_for_any_context),
		WITH_FOLDER(w7_a_read_never_overflows),
		WITH_FOLDER(w7_room_is_shared_fairly),
		WITH_FOLDER(w7_an_image_without_room_is_left_out),
		WITH_FOLDER(trap_87_any_bytes),
		WITH_FOLDER(a_file_that_cannot_be_written),
		WITH_FOLDER(h0_is_the_first_rung),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
