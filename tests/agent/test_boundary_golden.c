/*
 * test_boundary_golden.c - the records that compactions leave in transcript.jsonl, byte for byte (H12).
 *
 * Others read them to show and to resume a session, so a changed member is a changed interface. The golden
 * file has a line for each record of a case: the case's name, a tab, the record without its time and
 * with one moment for all that stand in texts.
 */
#include "agent_rig.h"

#include <fcntl.h>
#include <stdio.h>

#include "base/env.h"
#include "base/file.h"

#define GOLDEN_FILE GOLDEN_DIR "/boundary.jsonl"
#define RENEW	    "BATON_GOLDEN_RENEW"

#define SUMMARY                                                                                    \
	"<analysis>dropped</analysis><summary>\n1. Primary request and intent:\nfix the test\n2. " \
	"Key technical concepts:\nC\n3. Files and code sections:\na.txt\n4. Errors and "           \
	"fixes:\nnone\n5. Problem solving:\nnone\n6. All user messages:\nFix the test.\n7. "       \
	"Pending tasks:\nnone\n8. Current work:\na.txt\n9. Optional next "                         \
	"step:\nreport\n</summary>"
#define SETTINGS(knobs)                                                                            \
	"{\"model\":{\"window\":60000,\"max_output\":2000},"                                       \
	"\"context\":{\"compact\":true,\"collapse\":false" knobs "}}"
#define FULL 47000 /* above compact, below closing */

#define CALL(n, tokens)                                                                            \
	{                                                                                          \
		.calls = "c" #n " shell {\"command\":\"seq " #n "000 " #n "900\"}",                \
		.input = (tokens)                                                                  \
	}
/* The wish of a person is there before this call is over. */
#define HELD                                                                                       \
	{                                                                                          \
		.calls = "c4 shell {\"command\":\"sleep 0.3; echo four\"}", .input = 12000         \
	}

struct kept_case {
	const char *name;
	const struct fake_step *script;
	size_t n_script;
	const char *settings;
	const char *wish, *second_wish; /* at the 4th and the 6th request */
	const struct fake_step *background;
};

static const struct fake_step threshold[] = {CALL(1, 0),
					     CALL(2, 0),
					     CALL(3, 0),
					     CALL(4, 0),
					     CALL(5, FULL),
					     {.text = SUMMARY},
					     {.calls = REPORT_CALL}};
static const struct fake_step noted[] = {CALL(1, 0),	 CALL(2, 0),	CALL(3, 36000),
					 CALL(4, 38000), CALL(5, FULL), {.calls = REPORT_CALL}};
static const struct fake_step by_hand[] = {CALL(1, 0), CALL(2, 0),	  CALL(3, 0),
					   HELD,       {.text = SUMMARY}, {.calls = REPORT_CALL}};
static const struct fake_step undone[] = {
	CALL(1, 0),
	CALL(2, 0),
	CALL(3, 0),
	HELD,
	{.text = SUMMARY},
	{.calls = "c5 shell {\"command\":\"sleep 0.3; echo five\"}", .input = 9000},
	{.calls = REPORT_CALL}};
static const struct fake_step failing[] = {
	CALL(1, 0),    CALL(2, 0),	 CALL(3, 0),	   CALL(4, 0),
	CALL(5, FULL), {.text = "none"}, {.text = "none"}, {.calls = REPORT_CALL}};
static const struct fake_step notes = {.text = "<section name=\"current state\">the state</section>"
					       "<section name=\"worklog\">the work</section>"};

#define SCRIPT(steps) steps, ARRAY_SIZE(steps)
static const struct kept_case cases[] = {
	{"full", SCRIPT(threshold), SETTINGS(""), NULL, NULL, NULL},
	{"from", SCRIPT(by_hand), SETTINGS(""), "{\"mode\":\"from\",\"round\":2}", NULL, NULL},
	{"up_to", SCRIPT(by_hand), SETTINGS(""), "{\"mode\":\"up_to\",\"round\":3}", NULL, NULL},
	{"notes", SCRIPT(noted), SETTINGS(",\"notes\":true"), NULL, NULL, &notes},
	{"rule", SCRIPT(failing), SETTINGS(""), NULL, NULL, NULL},
	{"undone", SCRIPT(undone), SETTINGS(""), "{}", "{\"undo\":true}", NULL},
};

/* ---- what is there now ---- */

static void send_wishes(struct fake_parent *p, size_t index)
{
	const struct kept_case *c = p->arg;

	if (index == 3 && c->wish)
		fake_control_body(p, "compact", c->wish);
	if (index == 5 && c->second_wish)
		fake_control_body(p, "compact", c->second_wish);
}

static bool is_of_compaction(struct json_object *record)
{
	const char *subtype = json_str(record, "subtype", "");

	if (strcmp(json_str(record, "type", ""), "system") != 0)
		return false;
	return strcmp(subtype, "context_edit") != 0 ||
	       strcmp(json_str(record, "rung", ""), "compact") == 0 ||
	       json_flag(record, "undo", false);
}

/* Moments inside texts ("message 1, user, 2026-11-30T19:49:40.998Z") become one and the same. */
static void fix_stamps(char *text)
{
	static const char form[] = "0000-00-00T00:00:00.000Z";
	const size_t n = sizeof(form) - 1;

	for (char *at = text; strlen(at) >= n; at++) {
		size_t i = 0;

		while (i < n && (form[i] == '0' ? at[i] >= '0' && at[i] <= '9' : at[i] == form[i]))
			i++;
		if (i == n)
			memcpy(at, form, n);
	}
}

/* The line as it is in the file, but for its time, which stands first. */
static void add_line(const char *name, const char *line, size_t n, struct buf *out)
{
	static const char behind[] = "\"type\":";
	AUTO_JSON struct json_object *record = NULL;
	const char *type = memmem(line, n, behind, strlen(behind));

	assert_int_equal(json_parse(line, n, &record, NULL), 0);
	if (!is_of_compaction(record))
		return;
	assert_non_null(type);
	buf_addf(out, "%s\t{", name);
	buf_add(out, type, n - (size_t)(type - line));
	buf_addc(out, '\n');
}

static void play(const struct kept_case *c, struct buf *out)
{
	struct fake_parent p = {
		.on_request = send_wishes, .arg = (void *)c, .background = c->background};
	AUTO_FREE char *path = rig_path("generation/transcript.jsonl");
	AUTO_BUF struct buf text = BUF_INIT;

	rig_run(&p, "anthropic", c->script, c->n_script, c->settings);
	assert_string_equal(p.result, "done");
	fake_release(&p);
	assert_int_equal(file_read(AT_FDCWD, path, 64 << 20, &text, NULL), 0);
	fix_stamps(text.data);
	for (const char *line = buf_str(&text), *end; (end = strchr(line, '\n')); line = end + 1)
		add_line(c->name, line, (size_t)(end - line), out);
}

static void play_all(struct buf *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		play(&cases[i], out);
		rig_teardown(NULL);
		rig_setup(NULL);
	}
}

/* ---- against what was ---- */

static void tell_difference(const char *want, const char *got)
{
	for (size_t number = 1; *want || *got; number++) {
		size_t n = strcspn(want, "\n"), m = strcspn(got, "\n");

		if (n != m || memcmp(want, got, n) != 0) {
			print_error("line %zu of " GOLDEN_FILE "\n- %.*s\n+ %.*s\n", number, (int)n,
				    want, (int)m, got);
			break;
		}
		want += n + (want[n] == '\n');
		got += m + (got[m] == '\n');
	}
	print_error("If that is meant: " RENEW "=1 build/tests/agent/test_agent_boundary_golden "
		    "writes the file anew;\nsay in docs/transcript.md what has changed.\n");
}

static void h12_records_are_what_they_were(void **state)
{
	AUTO_BUF struct buf got = BUF_INIT;
	AUTO_BUF struct buf want = BUF_INIT;

	play_all(&got);
	if (env_get(RENEW)) {
		assert_int_equal(
			file_write_atomic(AT_FDCWD, GOLDEN_FILE, got.data, got.len, 0644, NULL), 0);
		print_message("written: " GOLDEN_FILE "\n");
		return;
	}
	assert_int_equal(file_read(AT_FDCWD, GOLDEN_FILE, 4 << 20, &want, NULL), 0);
	if (want.len == got.len && memcmp(want.data, got.data, got.len) == 0)
		return;
	tell_difference(buf_str(&want), buf_str(&got));
	fail();
}

/* What the file has to hold whatever else it holds: one boundary a case with H12's members. */
static void h12_members(void **state)
{
	static const char *const names[] = {"headUuid", "anchorUuid", "tailUuid"};
	AUTO_BUF struct buf text = BUF_INIT;
	size_t boundaries = 0;

	assert_int_equal(file_read(AT_FDCWD, GOLDEN_FILE, 4 << 20, &text, NULL), 0);
	for (const char *line = buf_str(&text), *end; (end = strchr(line, '\n')); line = end + 1) {
		AUTO_JSON struct json_object *record = NULL;
		const char *json = memchr(line, '{', (size_t)(end - line));
		struct json_object *data, *kept;

		assert_non_null(json);
		assert_int_equal(json_parse(json, (size_t)(end - json), &record, NULL), 0);
		if (strcmp(json_str(record, "subtype", ""), "compact_boundary") != 0)
			continue;
		boundaries++;
		data = json_obj(record, "compactMetadata");
		kept = json_obj(data, "preservedSegment");
		assert_string_equal(json_str(record, "type", ""), "system");
		assert_true(json_str_len(record, "content") > 0);
		assert_non_null(json_str(data, "trigger", NULL));
		assert_true(json_i64(data, "preTokens", 0) > json_i64(data, "postTokens", 0));
		for (size_t i = 0; i < ARRAY_SIZE(names); i++)
			assert_non_null(json_str(kept, names[i], NULL));
	}
	assert_int_equal(boundaries, ARRAY_SIZE(cases));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FOLDER(h12_records_are_what_they_were),
		cmocka_unit_test(h12_members),
	};
	return cmocka_run_group_tests_name("agent/boundary_golden", tests, NULL, NULL);
}
