/*
 * test_handoff_import.c - handoffs from the session files of other tools, by rule alone. The files are the seeds of
 * tests/fuzz/fuzz_session.c: small sessions written by hand, with records of unknown types, torn lines and others' talk.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka needs the four above first */
#include <cmocka.h>

#include <fcntl.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "handoff/document_check.h"
#include "orchestrator/handoff_import.h"

static struct handoff *import_seed(const char *name, struct import_counts *counts)
{
	AUTO_FREE char *path = mem_printf("%s/%s", SESSION_SEEDS, name);
	struct handoff *handoff = NULL;
	struct err err = ERR_INIT;

	if (handoff_import(path, &handoff, counts, &err) < 0)
		fail_msg("%s", err.message);
	return handoff;
}

/* The texts of a part with what counts of their members, one a line. */
static void expect_part(const struct handoff *handoff, enum handoff_part_name part,
			const char *want)
{
	AUTO_BUF struct buf got = BUF_INIT;

	for (size_t i = 0; i < handoff->parts[part].n; i++) {
		const struct handoff_statement *s = &handoff->parts[part].list[i];
		buf_addf(&got, "%s|%s|", s->text, handoff_origin_name(s->origin));
		if (s->state)
			buf_addf(&got, " %s", handoff_state_name(s->state));
		if (s->file)
			buf_addf(&got, " %s", s->file);
		if (s->command)
			buf_addf(&got, " `%s`", s->command);
		if (s->has_exit)
			buf_addf(&got, " %d", s->exit_code);
		if (s->output)
			buf_addf(&got, " <%s>", s->output);
		buf_addc(&got, '\n');
	}
	if (strcmp(buf_str(&got), want) != 0)
		fail_msg("%s:\n%s", handoff_part_key(part), buf_str(&got));
}

/* Nothing refuses what was imported: it is enough to go on from. */
static void expect_good(const struct handoff *handoff)
{
	const struct handoff_truth nobody = {0};
	struct handoff_findings findings;

	if (!handoff_check(handoff, &nobody, &findings))
		for (size_t i = 0; i < findings.n; i++)
			if (findings.list[i].fault != HANDOFF_UNPROVED)
				fail_msg("%s: %s", handoff_part_key(findings.list[i].part),
					 findings.list[i].text);
	handoff_findings_release(&findings);
}

static void test_claude(void **state)
{
	struct import_counts counts;
	struct handoff *h = import_seed("claude", &counts);

	assert_int_equal(counts.unknown, 1); /* queue-operation */
	assert_int_equal(counts.bad, 1);     /* the torn line */
	assert_string_equal(h->model, "anthropic/claude-x-1");
	assert_string_equal(h->branch, "main");
	assert_string_equal(h->repository, "/home/ada/work");
	assert_string_equal(h->reason, "import");
	assert_true(h->facts_only);
	expect_part(h, HANDOFF_GOAL,
		    "Make the reader survive torn lines. Never change the file format.|user|\n");
	expect_part(h, HANDOFF_WORDS,
		    "Make the reader survive torn lines. Never change the file format.|user|\nUse "
		    "tabs, please.|user|\n");
	expect_part(h, HANDOFF_CONSTRAINTS,
		    "Never change the file format.|user|\nUse tabs, please.|user|\n");
	expect_part(h, HANDOFF_FAILURES,
		    "the last command that failed ended with exit code 2|record| failed `make "
		    "check` 2 <test_torn: expected 7, got "
		    "6>\n");
	expect_part(h, HANDOFF_FILES, "changed|record| changed src/reader.c\n");
	expect_part(h, HANDOFF_TASKS,
		    "keep the unfinished line|model| open\nread the code|model| claimed\n");
	expect_part(h, HANDOFF_POINT,
		    "where the session stood when it ended|record| src/reader.c `git diff`\n");
	expect_part(h, HANDOFF_FIRST_ACTION,
		    "run the command that failed last, and see why|record| `make check`\n");
	expect_good(h);
	handoff_free(h);
}

static void test_codex(void **state)
{
	struct import_counts counts;
	struct handoff *h = import_seed("codex", &counts);

	assert_int_equal(counts.unknown, 2); /* new_kind_of_item, world_state */
	assert_int_equal(counts.bad, 2);
	assert_string_equal(h->model, "openai/gpt-x");
	assert_string_equal(h->branch, "fix");
	expect_part(h, HANDOFF_WORDS, "Fix the parser. Do not add dependencies.|user|\n");
	expect_part(h, HANDOFF_CONSTRAINTS, "Do not add dependencies.|user|\n");
	/* ninja passed since. */
	expect_part(h, HANDOFF_FAILURES,
		    "the last command that failed ended with exit code 2|record| failed `make "
		    "test` 2 <Process exited with code "
		    "2\nparse.c:4: error>\n");
	expect_part(h, HANDOFF_FILES,
		    "changed|record| changed src/parse.c\ndeleted|record| deleted old.c\n");
	expect_part(h, HANDOFF_TASKS, "read|model| claimed\nrepair parse_line|model| open\n");
	expect_good(h);
	handoff_free(h);
	h = import_seed("codex-old", &counts);
	expect_part(h, HANDOFF_GOAL, "Do it.|user|\n");
	expect_part(h, HANDOFF_POINT, "where the session stood when it ended|record| `ls -l`\n");
	assert_string_equal(h->branch, "old");
	expect_good(h);
	handoff_free(h);
}

static void test_nothing_of_theirs(void **state)
{
	struct handoff *handoff = NULL;
	struct import_counts counts;
	struct err err = ERR_INIT;
	AUTO_FREE char *path = mem_printf("%s/../handoff/json.json", SESSION_SEEDS);

	assert_int_equal(handoff_import(path, &handoff, &counts, &err), -1);
	assert_int_equal(err.code, ERR_INVALID);
	assert_int_equal(handoff_import("/nowhere/session.jsonl", &handoff, &counts, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
}

/* A line that no tool should have written, and a session that is larger than a handoff may be. */
static void test_huge(void **state)
{
	char dir[] = "/tmp/baton-import-XXXXXX";
	AUTO_BUF struct buf text = BUF_INIT;
	AUTO_FREE char *line = mem_alloc((33u << 20) + 1);
	struct handoff *handoff = NULL;
	struct import_counts counts;
	struct err err = ERR_INIT;
	AUTO_BUF struct buf out = BUF_INIT;

	assert_non_null(mkdtemp(dir));
	AUTO_FREE char *path = file_join(dir, "s.jsonl");
	memset(line, 'x', 33u << 20);
	buf_addf(&text, "{\"type\":\"user\",\"message\":{\"content\":\"%s\"}}\n", line);
	for (int i = 0; i < 3000; i++)
		buf_addf(&text,
			 "{\"type\":\"user\",\"message\":{\"content\":\"Is this the %dth message "
			 "of many?\"}}\n",
			 i);
	if (file_write_atomic(AT_FDCWD, path, text.data, text.len, 0600, &err) < 0 ||
	    handoff_import(path, &handoff, &counts, &err) < 0)
		fail_msg("%s", err.message);
	assert_int_equal(counts.bad, 1);
	assert_int_equal(counts.records, 3000);
	handoff_to_markdown(handoff, &out);
	assert_in_range(out.len, 1000, 40000);
	assert_non_null(strstr(buf_str(&out), "the 2999th message"));
	assert_non_null(strstr(buf_str(&out), "older messages of the user were left out"));
	assert_string_equal(handoff->parts[HANDOFF_LOGS].list[0].log, path);
	handoff_free(handoff);
	file_remove_tree(dir, NULL);
}

/* R2: a session that lays down more than a document has room for; what is left out can be found. */
static void r2_constraints_are_bounded(void **state)
{
	char dir[] = "/tmp/baton-import-XXXXXX";
	AUTO_BUF struct buf text = BUF_INIT, out = BUF_INIT;
	struct handoff *handoff = NULL;
	struct import_counts counts;
	struct err err = ERR_INIT;

	assert_non_null(mkdtemp(dir));
	AUTO_FREE char *path = file_join(dir, "s.jsonl");
	for (int i = 0; i < 1500; i++)
		buf_addf(&text,
			 "{\"type\":\"user\",\"message\":{\"content\":\"Never change the file "
			 "src/part%d.c.\"}}\n",
			 i);
	if (file_write_atomic(AT_FDCWD, path, text.data, text.len, 0600, &err) < 0 ||
	    handoff_import(path, &handoff, &counts, &err) < 0)
		fail_msg("%s", err.message);
	handoff_to_markdown(handoff, &out);
	assert_in_range(out.len, 30000, 40000);
	const struct handoff_part *list = &handoff->parts[HANDOFF_CONSTRAINTS];
	assert_in_range(list->n, 100, 1499);
	assert_string_equal(list->list[list->n - 1].text, "Never change the file src/part1499.c.");
	assert_non_null(strstr(buf_str(&out), " of 1500 were left out for want of room"));
	assert_non_null(strstr(buf_str(&out), path));
	assert_string_equal(handoff->parts[HANDOFF_LOGS].list[0].log, path);
	expect_good(handoff);
	handoff_free(handoff);
	file_remove_tree(dir, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_claude),
		cmocka_unit_test(test_codex),
		cmocka_unit_test(test_nothing_of_theirs),
		cmocka_unit_test(test_huge),
		cmocka_unit_test(r2_constraints_are_bounded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
