/*
 * test_transcript.c - records, durability, and a loader that survives what a crash leaves (I5,
 * I10).
 */
#include "agent_fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "agent/transcript.h"
#include "agent/validate.h"
#include "base/file.h"
#include "base/memory.h"

static char *folder;

static int setup(void **state)
{
	folder = fixture_folder();
	return 0;
}

static int teardown(void **state)
{
	fixture_remove(folder);
	return 0;
}

/* A transcript of a task and two rounds with a call each. */
static void write_sample(void)
{
	struct conversation c;
	struct transcript *t = NULL;

	conversation_init(&c);
	assert_int_equal(transcript_open(folder, &t, NULL), 0);
	transcript_message(t, conversation_append(&c, fixture_text(MESSAGE_USER, "task")));
	for (int i = 0; i < 2; i++) {
		const char *id = i ? "c2" : "c1";

		conversation_next_round(&c);
		transcript_message(t, conversation_append(&c, fixture_calls(id)));
		transcript_tools_started(t, conversation_last(&c));
		assert_int_equal(transcript_sync(t, NULL), 0);
		transcript_message(t, conversation_append(&c, fixture_results(id)));
		assert_int_equal(transcript_sync(t, NULL), 0);
	}
	transcript_close(t);
	conversation_release(&c);
}

static char *transcript_path(void)
{
	return file_join(folder, "transcript.jsonl");
}

static void read_lines(struct buf *out)
{
	AUTO_FREE char *path = transcript_path();

	assert_int_equal(file_read(AT_FDCWD, path, 1 << 20, out, NULL), 0);
}

static void write_text(const char *bytes, size_t n)
{
	AUTO_FREE char *path = transcript_path();

	assert_int_equal(file_write_atomic(AT_FDCWD, path, bytes, n, 0600, NULL), 0);
}

static void load(struct conversation *c, struct transcript_stats *stats)
{
	AUTO_FREE char *path = transcript_path();
	struct err e = ERR_INIT;

	conversation_init(c);
	if (transcript_load(path, c, stats, &e) < 0)
		fail_msg("%s", e.message);
	if (validate_all(c->messages, c->n, &e) < 0)
		fail_msg("what was loaded is not well-formed: %s", e.message);
}

static void round_trip(void **state)
{
	struct conversation c;
	struct transcript_stats stats;

	write_sample();
	load(&c, &stats);
	assert_int_equal(c.n, 5);
	assert_int_equal(c.round, 2);
	assert_int_equal(stats.bad_lines, 0);
	assert_int_equal(stats.repaired, 0);
	assert_string_equal(conversation_user_word(&c, 0)->text, "task");
	assert_string_equal(c.messages[3]->blocks[0].id, "c2");
	assert_int_equal(c.messages[3]->round, 2);
	assert_true(c.next_uid > c.messages[4]->uid);
	conversation_release(&c);
}

/* I5: the message and the starts of its calls stand in the file before tools run. */
static void i5_started_calls_are_on_record(void **state)
{
	AUTO_BUF struct buf text = BUF_INIT;
	const char *call, *started;
	struct stat st;
	AUTO_FREE char *path = transcript_path();

	write_sample();
	read_lines(&text);
	call = strstr(buf_str(&text), "\"tool_call\"");
	started = strstr(buf_str(&text), "\"type\":\"tool_started\"");
	assert_true(call && started && call < started);
	assert_non_null(strstr(started, "\"call\":\"c1\""));
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
}

/* Traps 138, 140: whatever line is lost or cut, the rest is loaded and is well-formed. */
static void trap_138_any_lost_line_is_survived(void **state)
{
	AUTO_BUF struct buf whole = BUF_INIT;
	size_t lines = 0;

	write_sample();
	read_lines(&whole);
	for (size_t at = 0; at < whole.len; lines++) {
		AUTO_BUF struct buf text = BUF_INIT;
		struct conversation c;
		struct transcript_stats stats;
		size_t end = at + strcspn(whole.data + at, "\n") + 1;

		/* the line is cut in its middle and keeps its newline */
		buf_add(&text, whole.data, at + (end - at) / 2);
		buf_addc(&text, '\n');
		buf_add(&text, whole.data + end, whole.len - end);
		write_text(text.data, text.len);
		load(&c, &stats);
		assert_int_equal(stats.bad_lines, 1);
		assert_int_equal(stats.first_bad_line, (int64_t)lines + 1);
		assert_true(c.n >= 3); /* a lost answer takes its results with it */
		conversation_release(&c);
		at = end;
	}
	assert_true(lines >= 7);
}

/* Trap 142: a call that was started and has no result is told as unknown, never run again. */
static void trap_142_unfinished_call(void **state)
{
	AUTO_BUF struct buf whole = BUF_INIT;
	struct conversation c;
	struct transcript_stats stats;
	const struct block *result;
	char *last;

	write_sample();
	read_lines(&whole);
	whole.data[whole.len - 1] = '\0';
	last = strrchr(whole.data, '\n');
	write_text(whole.data, (size_t)(last - whole.data) + 1);
	load(&c, &stats);
	assert_int_equal(c.n, 5);
	result = validate_find_result(c.messages[4], "c2");
	assert_true(result->is_error);
	assert_non_null(strstr(result->text, "unknown"));
	assert_int_equal(stats.repaired, 1);
	conversation_release(&c);
}

/* Trap 24: two recoverers both closed the call: the first result counts. */
static void trap_24_second_result_is_a_no_op(void **state)
{
	struct conversation c;
	struct transcript *t = NULL;
	struct transcript_stats stats;
	struct message *twice = fixture_results("c1");

	write_sample();
	message_add_result(twice, "c2", "shell", "second writer", 13, true);
	twice->uid = 90;
	assert_int_equal(transcript_open(folder, &t, NULL), 0);
	transcript_message(t, twice);
	assert_int_equal(transcript_sync(t, NULL), 0);
	transcript_close(t);
	message_free(twice);
	load(&c, &stats);
	assert_int_equal(c.n, 5);
	assert_string_equal(validate_find_result(c.messages[4], "c2")->text, "ok");
	conversation_release(&c);
}

/* Trap 140: a torn last line is isolated before the next record. */
static void trap_140_append_after_a_torn_line(void **state)
{
	AUTO_BUF struct buf whole = BUF_INIT;
	struct transcript *t = NULL;
	struct conversation c;
	struct transcript_stats stats;
	struct message *m;

	write_sample();
	read_lines(&whole);
	write_text(whole.data, whole.len - 20);
	assert_int_equal(transcript_open(folder, &t, NULL), 0);
	m = fixture_text(MESSAGE_USER, "after the crash");
	m->uid = 50;
	transcript_message(t, m);
	message_free(m);
	assert_int_equal(transcript_sync(t, NULL), 0);
	transcript_close(t);
	load(&c, &stats);
	assert_int_equal(stats.bad_lines, 1);
	m = conversation_last(&c);
	assert_string_equal(m->blocks[m->n_blocks - 1].text, "after the crash");
	conversation_release(&c);
}

/* A file that holds itself twice, as a backup put behind the original does: each message counts once. */
static void repeated_messages_count_once(void **state)
{
	AUTO_BUF struct buf text = BUF_INIT;
	struct conversation c;
	struct transcript_stats stats;

	write_sample();
	read_lines(&text);
	AUTO_FREE char *twice = mem_printf("%s%s", buf_str(&text), buf_str(&text));
	write_text(twice, strlen(twice));
	load(&c, &stats);
	assert_int_equal(c.n, 5);
	assert_int_equal(stats.repaired, 5);
	assert_string_equal(c.messages[3]->blocks[0].id, "c2");
	conversation_release(&c);
}

static void nothing_readable_is_an_error(void **state)
{
	AUTO_FREE char *path = transcript_path();
	struct conversation c;
	struct transcript_stats stats;
	struct err e = ERR_INIT;

	conversation_init(&c);
	assert_int_equal(transcript_load(path, &c, &stats, &e), -1);
	assert_int_equal(e.code, ERR_NOT_FOUND);
	write_text("garbage\n{}\n[1]\n", 15);
	assert_int_equal(transcript_load(path, &c, &stats, &e), -1);
	assert_int_equal(e.code, ERR_INVALID);
	conversation_release(&c);
}

/* Trap 144: a full disk is named by its path, and leaves no half record. A file size limit stands
 * for the full disk: the write is cut short in the same way. */
static void trap_144_full_disk(void **state)
{
	struct rlimit old, small = {.rlim_cur = 4096};
	struct transcript *t = NULL;
	struct conversation c;
	struct transcript_stats stats;
	struct err e = ERR_INIT;
	AUTO_FREE char *big = mem_alloc(8001);
	struct message *m;

	write_sample();
	memset(big, 'x', 8000);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	small.rlim_max = old.rlim_max;
	assert_int_equal(transcript_open(folder, &t, NULL), 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	m = fixture_text(MESSAGE_USER, big);
	transcript_message(t, m);
	message_free(m);
	assert_int_equal(transcript_sync(t, &e), -1);
	assert_int_equal(e.code, ERR_NO_SPACE);
	assert_non_null(strstr(e.message, "no space on '"));
	assert_non_null(strstr(e.message, "transcript.jsonl"));
	transcript_close(t);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	load(&c, &stats);
	assert_int_equal(stats.bad_lines, 0);
	assert_int_equal(c.n, 5);
	conversation_release(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(round_trip, setup, teardown),
		cmocka_unit_test_setup_teardown(i5_started_calls_are_on_record, setup, teardown),
		cmocka_unit_test_setup_teardown(trap_138_any_lost_line_is_survived, setup,
						teardown),
		cmocka_unit_test_setup_teardown(trap_142_unfinished_call, setup, teardown),
		cmocka_unit_test_setup_teardown(trap_24_second_result_is_a_no_op, setup, teardown),
		cmocka_unit_test_setup_teardown(trap_140_append_after_a_torn_line, setup, teardown),
		cmocka_unit_test_setup_teardown(repeated_messages_count_once, setup, teardown),
		cmocka_unit_test_setup_teardown(nothing_readable_is_an_error, setup, teardown),
		cmocka_unit_test_setup_teardown(trap_144_full_disk, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
