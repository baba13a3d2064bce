/*
 * test_recall.c - the tool recall (X4): what it finds, how much it says, and that it reads lazily (X14).
 */
#include "fixture.h"

#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/jsonl.h"

struct world {
	struct fixture *f;
	char *folder;
	struct jsonl_writer *writer;
};

/* agents/a1/GENERATION, and a transcript there. */
static void begin(struct world *w, int64_t generation)
{
	AUTO_FREE char *path = NULL;

	jsonl_close(w->writer);
	free(w->folder);
	w->folder = mem_printf("%s/agents/a1/%d", w->f->top, (int)generation);
	assert_int_equal(file_mkdirs(w->folder, 0700, NULL), 0);
	path = file_join(w->folder, "transcript.jsonl");
	assert_int_equal(jsonl_open(path, &w->writer, NULL), 0);
	w->f->settings.generation_dir = w->folder;
	w->f->settings.generation = generation;
	fixture_restart(w->f);
}

static int setup(void **state)
{
	struct world *w = mem_alloc(sizeof(*w));
	void *f = NULL;

	fixture_setup(&f);
	w->f = f;
	begin(w, 1);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;
	void *f = w->f;

	jsonl_close(w->writer);
	free(w->folder);
	free(w);
	return fixture_teardown(&f);
}

static void add_str(struct buf *out, const char *key, const char *value)
{
	buf_addf(out, ",\"%s\":", key);
	json_write_cstr(out, value);
}

/* A message of one block, as transcript.c writes it. */
static void record(struct world *w, int64_t round, const char *kind, const char *origin,
		   const char *name, const char *id, const char *text)
{
	struct buf *out = jsonl_begin(w->writer, "message");

	buf_addf(out, ",\"role\":\"user\",\"round\":%d,\"uid\":%d,\"blocks\":[{\"kind\":\"%s\"",
		 (int)round, (int)round * 2, kind);
	add_str(out, "origin", origin);
	if (name)
		add_str(out, "name", name);
	if (id)
		add_str(out, "id", id);
	add_str(out, "text", text);
	buf_adds(out, "}]");
	jsonl_end(w->writer);
}

static void spoke(struct world *w, int64_t round, const char *origin, const char *text)
{
	record(w, round, "text", origin, NULL, NULL, text);
}

static void result(struct world *w, int64_t round, const char *tool, const char *id,
		   const char *text)
{
	record(w, round, "tool_result", "tool", tool, id, text);
}

static void flush(struct world *w)
{
	assert_int_equal(jsonl_flush(w->writer, false, NULL), 0);
}

#undef assert_says
#define assert_says(w, part)                                                                       \
	do {                                                                                       \
		if (!strstr(buf_str(&(w)->f->result.text), part))                                  \
			fail_msg("'%s' is not in: %s", part, buf_str(&(w)->f->result.text));       \
	} while (0)
#undef assert_says_not
#define assert_says_not(w, part)                                                                   \
	do {                                                                                       \
		if (strstr(buf_str(&(w)->f->result.text), part))                                   \
			fail_msg("'%s' is in: %s", part, buf_str(&(w)->f->result.text));           \
	} while (0)

static void fill(struct world *w)
{
	spoke(w, 0, "user", "Mend the parser. Never push.");
	record(w, 1, "tool_call", "model", "shell", "c1", "{\"command\":\"make test\"}");
	result(w, 1, "shell", "c1", "line one\nparse.c:14: error: expected ';'\nline three");
	spoke(w, 2, "model", "The parser fails at the semicolon: Größe \"x\\y\".");
	result(w, 3, "read", "c3", "parser parser parser");
	spoke(w, 4, "nudge", "parser: a nudge of baton");
	spoke(w, 5, "memory", "parser: a copy of the memory");
	result(w, 6, "recall", "c6", "parser: what was recalled");
	flush(w);
}

static void x4_words_find_passages(void **state)
{
	struct world *w = *state;

	fill(w);
	call(w->f, "recall", "{'operation':'search','query':'EXPECTED error'}");
	assert_ok(w->f);
	assert_says(w, "[1] generation 1, round 1, result of shell, call c1, line 2 of 3");
	assert_says(w, "    parse.c:14: error: expected ';'");
	assert_says_not(w, "[2]");
	call(w->f, "recall", "{'operation':'search','query':'never'}");
	assert_says(w, "round 0, text by the user");
	call(w->f, "recall", "{'operation':'search','query':'make','tool':'shell'}");
	assert_says(w, "call of shell, call c1");
	call(w->f, "recall", "{'operation':'search','query':'größe'}");
	assert_says(w, "round 2, text by you");
	call(w->f, "recall", "{'operation':'search','query':'\\\"x\\\\y\\\"'}");
	assert_says(w, "round 2, text by you");
	call(w->f, "recall", "{'operation':'search','query':'nowhere'}");
	assert_ok(w->f);
	assert_says(w, "nothing in the history matches");
}

/* What baton wrote, the memory's copies and earlier recalls would only hide what is sought. */
static void what_is_no_source_is_not_found(void **state)
{
	struct world *w = *state;

	fill(w);
	call(w->f, "recall", "{'operation':'search','query':'parser'}");
	assert_says(w, "round 0");
	assert_says(w, "round 2");
	assert_says(w, "round 3");
	assert_says_not(w, "round 4");
	assert_says_not(w, "round 5");
	assert_says_not(w, "round 6");
}

static void best_first_or_newest_first(void **state)
{
	struct world *w = *state;

	spoke(w, 1, "model", "alpha and beta together");
	result(w, 2, "read", "c2", "only alpha here");
	spoke(w, 3, "model", "beta alone");
	flush(w);
	call(w->f, "recall", "{'operation':'search','query':'alpha beta'}");
	assert_says(w, "[1] generation 1, round 1");
	assert_says(w, "[2] generation 1, round 3");
	assert_says(w, "[3] generation 1, round 2");
	call(w->f, "recall", "{'operation':'search','query':'alpha beta','order':'newest'}");
	assert_says(w, "[1] generation 1, round 3");
	assert_says(w, "[3] generation 1, round 1");
}

static void regular_expressions(void **state)
{
	struct world *w = *state;

	fill(w);
	call(w->f, "recall", "{'operation':'search','query':'^parse\\\\.c:\\\\d+','regex':true}");
	assert_says(w, "round 1, result of shell");
	call(w->f, "recall", "{'operation':'search','query':'(','regex':true}");
	assert_error(w->f);
	assert_says(w, "not a valid regular expression");
	call(w->f, "recall", "{'operation':'search','query':'a b c d e f g h i j k l m n'}");
	assert_error(w->f);
	call(w->f, "recall", "{'operation':'search','query':'  '}");
	assert_error(w->f);
	call(w->f, "recall", "{'operation':'search'}");
	assert_error(w->f);
}

static void hits_are_paged_and_bounded(void **state)
{
	struct world *w = *state;

	for (int i = 1; i <= 40; i++) {
		AUTO_BUF struct buf text = BUF_INIT;

		for (int k = 0; k < 400; k++)
			buf_addf(&text, "needle %x in a line of text\n",
				 (uint32_t)(i * 400 + k) * 2654435761u);
		result(w, i, "read", "c", buf_str(&text));
	}
	flush(w);
	call(w->f, "recall", "{'operation':'search','query':'needle'}");
	assert_says(w, "[8] generation 1, round 33");
	assert_says(w, "32 more hits");
	assert_says(w, "offset 8");
	call(w->f, "recall", "{'operation':'search','query':'needle','offset':38,'limit':30}");
	assert_says(w, "[39] generation 1, round 2");
	assert_says(w, "[40] generation 1, round 1,");
	assert_says_not(w, "more hits");
	call(w->f, "recall", "{'operation':'search','query':'needle','limit':30}");
	assert_true(w->f->result.text.len < 20000);
	call(w->f, "recall", "{'operation':'search','query':'needle','offset':40}");
	assert_says(w, "only 40 hits");
}

/* H20: the newest of what says the same, once, and what says something else beside it. */
static void h20_alike_hits_are_one(void **state)
{
	struct world *w = *state;
	AUTO_BUF struct buf text = BUF_INIT;

	result(w, 1, "shell", "c1", "needle: the one that differs, seen on board 7");
	for (int i = 2; i <= 30; i++) {
		buf_clear(&text);
		buf_addf(&text,
			 "test_parser: 14 passed, test_lexer: 3 passed, needle FAILED at line 77, "
			 "expected a semicolon and got the end of the file; took %d ms\n",
			 100 + i);
		result(w, i, "shell", "c", buf_str(&text));
	}
	flush(w);
	call(w->f, "recall", "{'operation':'search','query':'needle'}");
	assert_says(w, "generation 1, round 30, result of shell, call c (and 28 more like it)");
	assert_says(w, "seen on board 7");
	assert_says_not(w, "round 29");
	assert_says_not(w, "more hits");
	call(w->f, "recall", "{'operation':'search','query':'needle','offset':2}");
	assert_says(w, "only 2 hits");
}

static void show_gives_a_round_by_lines(void **state)
{
	struct world *w = *state;

	fill(w);
	call(w->f, "recall", "{'operation':'show','round':1}");
	assert_ok(w->f);
	assert_says(w, "     1\t== call of shell, call c1 ==");
	assert_says(w, "make test");
	assert_says(w, "     3\t== result of shell, call c1 ==");
	assert_says(w, "     6\tline three");
	assert_says_not(w, "semicolon");
	call(w->f, "recall", "{'operation':'show','round':1,'offset':5,'limit':1}");
	assert_says(w, "     5\tparse.c:14");
	assert_says_not(w, "line three");
	assert_says(w, "(6 lines in all; go on with offset 6)");
	call(w->f, "recall", "{'operation':'show','call':'c3'}");
	assert_says(w, "parser parser parser");
	call(w->f, "recall", "{'operation':'show','round':77}");
	assert_error(w->f);
	call(w->f, "recall", "{'operation':'show','round':1,'offset':100}");
	assert_error(w->f);
	call(w->f, "recall", "{'operation':'show'}");
	assert_error(w->f);
}

static void show_is_bounded(void **state)
{
	struct world *w = *state;
	AUTO_BUF struct buf text = BUF_INIT;

	for (int i = 0; i < 3000; i++)
		buf_addf(&text, "line %d of a long result\n", i);
	for (int i = 0; i < 5000; i++)
		buf_addc(&text, 'x');
	result(w, 1, "shell", "c1", buf_str(&text));
	flush(w);
	call(w->f, "recall", "{'operation':'show','round':1,'limit':2000}");
	assert_true(w->f->result.text.len < 20000);
	assert_says(w, "(3002 lines in all; go on with offset ");
	call(w->f, "recall", "{'operation':'show','round':1,'offset':3002}");
	assert_says(w, "[4000 bytes cut]");
}

/* Trap 138, 140: bad lines and a torn end are passed over and named. */
static void damage_is_passed_over(void **state)
{
	struct world *w = *state;
	AUTO_FREE char *path = file_join(w->folder, "transcript.jsonl");

	spoke(w, 1, "model", "before the needle");
	flush(w);
	AUTO_FD int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	assert_int_equal(file_write_all(fd, "{\"type\":\"message\",needle}\n", 26, NULL), 0);
	spoke(w, 2, "model", "behind the needle");
	flush(w);
	assert_int_equal(file_write_all(fd, "{\"type\":\"message\",\"round\":3,\"blocks\":[needle",
					44, NULL),
			 0);
	call(w->f, "recall", "{'operation':'search','query':'needle'}");
	assert_ok(w->f);
	assert_says(w, "before the needle");
	assert_says(w, "behind the needle");
	assert_says(w, "(2 damaged lines of the history could not be read)");
}

/* Earlier generations of this agent are read; another agent's folder never is. */
static void generations_of_this_agent_alone(void **state)
{
	struct world *w = *state;
	AUTO_FREE char *other = mem_printf("%s/agents/a2/1", w->f->top);
	AUTO_FREE char *path = file_join(other, "transcript.jsonl");
	AUTO_BUF struct buf bytes = BUF_INIT;

	spoke(w, 1, "model", "needle of the first");
	flush(w);
	AUTO_FREE char *first = file_join(w->folder, "transcript.jsonl");
	assert_int_equal(file_read(AT_FDCWD, first, 1 << 20, &bytes, NULL), 0);
	assert_int_equal(file_mkdirs(other, 0700, NULL), 0);
	assert_int_equal(file_write_atomic(AT_FDCWD, path, bytes.data, bytes.len, 0600, NULL), 0);
	begin(w, 2);
	spoke(w, 1, "model", "needle of the second");
	flush(w);
	begin(w, 3);
	spoke(w, 1, "model", "needle of the third");
	flush(w);
	call(w->f, "recall", "{'operation':'search','query':'needle','order':'newest'}");
	assert_says(w, "[1] generation 3");
	assert_says(w, "[2] generation 2");
	assert_says(w, "[3] generation 1");
	assert_says_not(w, "[4]");
	call(w->f, "recall", "{'operation':'search','query':'needle','generation':2}");
	assert_says(w, "needle of the second");
	assert_says_not(w, "needle of the third");
	call(w->f, "recall", "{'operation':'show','round':1}");
	assert_says(w, "needle of the third");
	call(w->f, "recall", "{'operation':'show','round':1,'generation':1}");
	assert_says(w, "needle of the first");
	call(w->f, "recall", "{'operation':'search','query':'needle','generation':9}");
	assert_error(w->f);
}

/* A sanitizer keeps what was freed, so that the peak says nothing there. */
extern void __asan_init(void) __attribute__((weak));

static long peak_kib(void)
{
	struct rusage usage;

	assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
	return usage.ru_maxrss;
}

/* X14: a history of 40 MB is searched without being held. */
static void x14_memory_stays_flat(void **state)
{
	struct world *w = *state;
	AUTO_BUF struct buf text = BUF_INIT;
	long before;

	for (int i = 0; i < 1000; i++)
		buf_adds(&text, "some words of a long result, and more of them\n");
	for (int i = 1; i <= 900; i++) {
		result(w, i, "shell", "c", i == 450 ? "the needle" : buf_str(&text));
		flush(w);
	}
	before = peak_kib();
	call(w->f, "recall", "{'operation':'search','query':'needle'}");
	assert_says(w, "round 450");
	call(w->f, "recall", "{'operation':'search','query':'w[o]rds','regex':true}");
	assert_says(w, "more like it");
	call(w->f, "recall", "{'operation':'show','round':899}");
	assert_says(w, "some words");
	assert_true(__asan_init || peak_kib() - before < 12 * 1024);
}

static void a_cancel_ends_the_search(void **state)
{
	struct world *w = *state;

	fill(w);
	w->f->waiter.cancel_at_ms = clock_mono_ms() - 1;
	assert_int_equal(call(w->f, "recall", "{'operation':'search','query':'parser'}"), -1);
	assert_int_equal(w->f->err.code, ERR_CANCELLED);
	fixture_restart(w->f);
	assert_int_equal(call(w->f, "recall", "{'operation':'show','round':1}"), -1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(x4_words_find_passages),	   TEST(what_is_no_source_is_not_found),
		TEST(best_first_or_newest_first),  TEST(regular_expressions),
		TEST(hits_are_paged_and_bounded),  TEST(h20_alike_hits_are_one),
		TEST(show_gives_a_round_by_lines), TEST(show_is_bounded),
		TEST(damage_is_passed_over),	   TEST(generations_of_this_agent_alone),
		TEST(x14_memory_stays_flat),	   TEST(a_cancel_ends_the_search),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
