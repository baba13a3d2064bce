/*
 * test_notes.c - the tool notes and the memory behind it (H18): limits, disk, crash, damage, generations.
 */
#include "fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/memory.h"
#include "base/file.h"
#include "base/json.h"

struct world {
	struct fixture *f;
	struct working_memory memory;
	char *folder; /* of the generation */
	struct buf warning;
};

static void open_memory(struct world *w, int64_t generation)
{
	AUTO_FREE char *folder = mem_printf("%s/a1/%d", w->f->top, (int)generation);
	struct memory_settings settings = {
		.dir_generation = folder, .generation = generation, .soft = 500, .hard = 2000};
	struct err e = ERR_INIT;

	memory_release(&w->memory);
	buf_clear(&w->warning);
	assert_int_equal(file_mkdirs(folder, 0700, NULL), 0);
	if (memory_open(&w->memory, &settings, &w->warning, &e) < 0)
		fail_msg("%s", e.message);
	free(w->folder);
	w->folder = take_ptr(folder);
	w->f->settings.memory = &w->memory;
	fixture_restart(w->f);
}

static int setup(void **state)
{
	struct world *w = mem_alloc(sizeof(*w));
	void *f = NULL;

	fixture_setup(&f);
	w->f = f;
	open_memory(w, 1);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;
	void *f = w->f;

	memory_release(&w->memory);
	buf_release(&w->warning);
	free(w->folder);
	free(w);
	return fixture_teardown(&f);
}

static void read_file(const struct world *w, const char *name, struct buf *out)
{
	AUTO_FREE char *path = file_join(w->folder, name);
	struct err e = ERR_INIT;

	buf_clear(out);
	if (file_read(AT_FDCWD, path, 1 << 20, out, &e) < 0)
		fail_msg("%s", e.message);
}

static void write_file(const struct world *w, const char *name, const char *text)
{
	AUTO_FREE char *path = file_join(w->folder, name);

	assert_int_equal(file_write_atomic(AT_FDCWD, path, text, strlen(text), 0600, NULL), 0);
}

static void h18_lines_are_on_disk_when_the_call_returns(void **state)
{
	struct world *w = *state;
	AUTO_BUF struct buf bytes = BUF_INIT;
	AUTO_FREE char *path = file_join(w->folder, "memory.json");
	struct stat st;

	call(w->f, "notes",
	     "{'operation':'set','field':'task','lines':['  - mend\\n the parser ']}");
	assert_ok(w->f);
	call(w->f, "notes", "{'operation':'add','field':'decisions','lines':['A, for speed','B']}");
	call(w->f, "notes", "{'operation':'add','field':'decisions','lines':['b','C']}");
	assert_says(w->f, "decisions: 3 lines");
	call(w->f, "notes", "{'operation':'remove','field':'decisions','lines':['speed']}");
	assert_ok(w->f);
	read_file(w, "memory.json", &bytes);
	assert_non_null(strstr(buf_str(&bytes), "\"mend the parser\""));
	assert_null(strstr(buf_str(&bytes), "for speed"));
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	open_memory(w, 1); /* after a crash */
	assert_int_equal(w->warning.len, 0);
	assert_int_equal(w->memory.fields[MEMORY_DECISIONS].n, 2);
	assert_string_equal(w->memory.fields[MEMORY_TASK].list[0], "mend the parser");
	assert_int_equal(w->memory.changes, 4);
	call(w->f, "notes", "{'operation':'set','field':'decisions','lines':[]}");
	assert_ok(w->f);
	assert_int_equal(w->memory.fields[MEMORY_DECISIONS].n, 0);
}

static void wrong_calls_change_nothing(void **state)
{
	struct world *w = *state;

	call(w->f, "notes", "{'operation':'add','lines':['x']}");
	assert_error(w->f);
	call(w->f, "notes", "{'operation':'add','field':'files'}");
	assert_error(w->f);
	call(w->f, "notes", "{'operation':'add','field':'files','lines':['a.c','  ']}");
	assert_error(w->f);
	call(w->f, "notes", "{'operation':'add','field':'files','lines':['src/a.c','src/b.c']}");
	call(w->f, "notes", "{'operation':'remove','field':'files','lines':['a.c','src/z']}");
	assert_error(w->f);
	assert_says(w->f, "nothing was removed");
	assert_int_equal(w->memory.fields[MEMORY_FILES].n, 2);
	call(w->f, "notes", "{'operation':'remove','field':'files','lines':['.c']}");
	assert_says(w->f, "more than one line");
	assert_int_equal(w->memory.changes, 1);
}

/* `n` lines of about 25 tokens each. */
static void add_lines(struct world *w, const char *field, int n)
{
	for (int i = 0; i < n; i++)
		call(w->f, "notes",
		     "{'operation':'add','field':'%s','lines':['%s line %03d ......................"
		     "..............................................................']}",
		     field, field, i);
}

/* Soft 500: the result asks to condense; hard 2,000: refused with the figures. */
static void h18_limits(void **state)
{
	struct world *w = *state;
	int64_t before;
	size_t lines;

	add_lines(w, "errors", 12);
	assert_ok(w->f);
	assert_says_not(w->f, "condense");
	add_lines(w, "pending", 20);
	assert_ok(w->f);
	assert_says(w->f, "of 500 tokens");
	assert_says(w->f, "condense it now");
	add_lines(w, "decisions", 80);
	assert_error(w->f);
	before = memory_tokens(&w->memory);
	assert_true(before <= 2000 && before > 1900);
	assert_says(w->f, "at most 2000");
	assert_says(w->f, "nothing was changed");
	lines = memory_lines_count(&w->memory);
	open_memory(w, 1);
	assert_int_equal(memory_lines_count(&w->memory), lines);
	call(w->f, "notes", "{'operation':'remove','field':'errors','lines':['errors line 000']}");
	assert_ok(w->f);
}

/* A smaller window makes the limit smaller: what is too much already may shrink, not grow. */
static void less_is_never_refused(void **state)
{
	struct world *w = *state;

	add_lines(w, "errors", 12);
	w->memory.settings.hard = 100;
	call(w->f, "notes", "{'operation':'remove','field':'errors','lines':['errors line 000']}");
	assert_ok(w->f);
	call(w->f, "notes", "{'operation':'add','field':'errors','lines':['new']}");
	assert_error(w->f);
}

static void h18_the_plan(void **state)
{
	struct world *w = *state;
	AUTO_BUF struct buf bytes = BUF_INIT;

	call(w->f, "notes", "{'operation':'plan_write','plan':'# Way\\n- [ ] one\\n- [ ] two\\n'}");
	assert_says(w->f, "Plan: 0 done, 2 open.");
	call(w->f, "notes", "{'operation':'plan_tick','numbers':[1]}");
	assert_says(w->f, "Plan: 1 done, 1 open.");
	call(w->f, "notes", "{'operation':'plan_add','lines':['three','four']}");
	assert_says(w->f, "Plan: 1 done, 3 open.");
	call(w->f, "notes", "{'operation':'plan_tick','numbers':[9]}");
	assert_error(w->f);
	read_file(w, "plan.md", &bytes);
	assert_string_equal(buf_str(&bytes),
			    "# Way\n\n- [x] one\n- [ ] two\n- [ ] three\n- [ ] four\n");
	open_memory(w, 1);
	assert_int_equal(w->memory.plan.done, 1);
	call(w->f, "notes", "{'operation':'plan_write','plan':'1. one\\n2. two\\n'}");
	assert_says(w->f, "1 items were done before");
	call(w->f, "notes", "{'operation':'show'}");
	assert_says(w->f, "1 done, 1 open");
	assert_says(w->f, "- [x] 1. one");
}

static void the_plan_has_a_limit_too(void **state)
{
	struct world *w = *state;

	for (int i = 0; i < 120; i++)
		call(w->f, "notes",
		     "{'operation':'plan_add','lines':['step %03d ..........................."
		     ".............................................']}",
		     i);
	assert_error(w->f);
	assert_says(w->f, "at most 2000");
	assert_true(w->memory.plan.items > 80 && w->memory.plan.items < 120);
}

/* A damaged file is moved aside, with a warning, and the work goes on. */
static void h18_damage_is_isolated(void **state)
{
	static const char *const damaged[] = {
		"", "{\"version\":1,\"fields\":{", "[]", "{\"version\":99,\"fields\":{}}",
		"{\"version\":1,\"fields\":{\"task\":[\"kept?\"],\"errors\":[7]}}"};
	struct world *w = *state;
	AUTO_BUF struct buf bytes = BUF_INIT;

	call(w->f, "notes", "{'operation':'plan_write','plan':'- [x] one'}");
	for (size_t i = 0; i < ARRAY_SIZE(damaged); i++) {
		AUTO_FREE char *name = i ? mem_printf("memory.json.damaged-%zu", i + 1)
					 : mem_strdup("memory.json.damaged");

		write_file(w, "memory.json", damaged[i]);
		open_memory(w, 1);
		if (!strstr(buf_str(&w->warning), name))
			fail_msg("%zu: %s", i, buf_str(&w->warning));
		read_file(w, name, &bytes);
		assert_string_equal(buf_str(&bytes), damaged[i]);
		assert_int_equal(memory_lines_count(&w->memory), 0);
		assert_int_equal(w->memory.plan.done, 1); /* the other file stands */
	}
	write_file(w, "plan.md", "- [x] \xff\xfe");
	open_memory(w, 1);
	assert_non_null(strstr(buf_str(&w->warning), "plan.md.damaged"));
	assert_int_equal(w->memory.plan.n, 0);
}

/* What a later generation starts from; its own file, once there, is what counts. */
static void a_later_generation_goes_on(void **state)
{
	struct world *w = *state;
	AUTO_BUF struct buf bytes = BUF_INIT;

	call(w->f, "notes", "{'operation':'set','field':'task','lines':['first']}");
	call(w->f, "notes", "{'operation':'plan_write','plan':'- [x] one\\n- [ ] two'}");
	open_memory(w, 3);
	assert_string_equal(w->memory.fields[MEMORY_TASK].list[0], "first");
	assert_int_equal(w->memory.plan.done, 1);
	read_file(w, "memory.json", &bytes);
	assert_non_null(strstr(buf_str(&bytes), "\"generation\": 3"));
	call(w->f, "notes", "{'operation':'set','field':'task','lines':['third']}");
	open_memory(w, 3);
	assert_string_equal(w->memory.fields[MEMORY_TASK].list[0], "third");
	open_memory(w, 1);
	assert_string_equal(w->memory.fields[MEMORY_TASK].list[0], "first");
}

/* X2: what the model understood is marked as that. */
static void x2_constraints_are_the_models_own(void **state)
{
	struct world *w = *state;

	call(w->f, "notes", "{'operation':'add','field':'constraints','lines':['never push']}");
	call(w->f, "notes", "{'operation':'show'}");
	assert_says(w->f, "as you understood them (not the user's words");
}

/* A change that is not on disk is none. */
static void a_change_that_cannot_be_stored_is_refused(void **state)
{
	struct world *w = *state;
	AUTO_FREE char *moved = mem_printf("%s-gone", w->folder);

	assert_int_equal(rename(w->folder, moved), 0);
	call(w->f, "notes", "{'operation':'set','field':'task','lines':['x']}");
	assert_error(w->f);
	assert_int_equal(memory_lines_count(&w->memory), 0);
	call(w->f, "notes", "{'operation':'plan_write','plan':'- [ ] x'}");
	assert_error(w->f);
	assert_int_equal(w->memory.plan.n, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(h18_lines_are_on_disk_when_the_call_returns),
		TEST(wrong_calls_change_nothing),
		TEST(h18_limits),
		TEST(less_is_never_refused),
		TEST(h18_the_plan),
		TEST(the_plan_has_a_limit_too),
		TEST(h18_damage_is_isolated),
		TEST(a_later_generation_goes_on),
		TEST(x2_constraints_are_the_models_own),
		TEST(a_change_that_cannot_be_stored_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
