/*
 * test_instructions.c - nested instructions and rules with path patterns (M1), and what follows a compaction (H14).
 */
#include "tests/agent/file_rig.h"

#include <unistd.h>

#include "agent/instruction_rules.h"
#include "agent/instructions.h"
#include "agent/tools/files.h"
#include "tests/agent/agent_fixture.h"

struct state {
	struct file_rig *r;
	struct agent_settings *settings;
	struct instructions in;
	struct buf warnings;
	char *folder;
	int64_t room;
	bool opening_stays;
};

static int setup_with(void **state, const char *members)
{
	struct state *s = mem_alloc(sizeof(*s));
	void *r = NULL;

	if (file_rig_setup(&r) < 0)
		return -1;
	s->r = r;
	s->folder = fixture_folder();
	s->settings = fixture_settings(s->folder, members);
	s->room = 100000;
	instructions_init(&s->in, s->settings);
	puts_file(s->r->f, "AGENTS.md", "Use tabs."); /* as the start document has it */
	*state = s;
	return 0;
}

static int setup(void **state)
{
	return setup_with(state, NULL);
}

static int setup_user_only(void **state)
{
	return setup_with(state, "{\"instructions\":[{\"origin\":\"user\",\"path\":\"AGENTS.md\","
				 "\"text\":\"Be brief.\"}]}");
}

static int teardown(void **state)
{
	struct state *s = *state;
	void *r = s->r;

	instructions_release(&s->in);
	agent_settings_free(s->settings);
	buf_release(&s->warnings);
	fixture_remove(s->folder);
	free(s);
	return file_rig_teardown(&r);
}

#define TEST(test)	     cmocka_unit_test_setup_teardown(test, setup, teardown)
#define WITH_USER_ONLY(test) cmocka_unit_test_setup_teardown(test, setup_user_only, teardown)

/* A round, and what baton adds behind its results. Caller frees the text. */
static char *after(struct state *s, const char *tool, const char *json)
{
	struct message *m = file_round(s->r, tool, json);
	struct instructions_round round = {
		.files = s->r->f->ctx,
		.view = &s->r->view,
		.ledger = &s->r->ledger,
		.room = s->room,
		.warnings = &s->warnings,
	};

	instructions_add(&s->in, &round, m);
	return file_blocks(m, ORIGIN_INSTRUCTIONS);
}

static void expect_after(struct state *s, const char *tool, const char *json, const char *want)
{
	AUTO_FREE char *text = after(s, tool, json);

	assert_string_equal(text, want);
}

static struct message *head_of(struct state *s)
{
	struct message *head = message_new(MESSAGE_USER);

	instructions_add_head(&s->in, s->r->f->ctx, s->opening_stays, head, &s->warnings);
	return head;
}

static void expect_head(struct state *s, const char *want)
{
	struct message *head = head_of(s);
	AUTO_FREE char *text = file_blocks(head, ORIGIN_INSTRUCTIONS);

	assert_string_equal(text, want);
	message_free(head);
}

#define SRC                                                                                        \
	"Instructions from src/AGENTS.md (project; for files below src):\n\nNo globals in src.\n"

/* M1: the outermost first, AGENTS.md before CLAUDE.md, each with its origin, once. */
static void m1_nested_files(void **state)
{
	struct state *s = *state;

	puts_file(s->r->f, "src/AGENTS.md", "No globals in src.\n");
	puts_file(s->r->f, "src/CLAUDE.md", "Not this one.\n");
	puts_file(s->r->f, "src/net/CLAUDE.md", "Time limits.\n");
	puts_file(s->r->f, "src/net/a.c", "int a;\n");
	puts_file(s->r->f, "src/b.c", "int b;\n");
	puts_file(s->r->f, "c.c", "int c;\n");
	expect_after(s, "read", "{'path':'c.c'}", "");
	expect_after(s, "grep", "{'pattern':'int'}", "");
	expect_after(s, "read", "{'path':'src/net/a.c'}",
		     SRC "Instructions from src/net/CLAUDE.md (project; for files below "
			 "src/net):\n\nTime limits.\n");
	expect_after(s, "read", "{'path':'src/b.c'}", "");
	expect_after(s, "edit", "{'path':'src/net/a.c','old_string':'a','new_string':'z'}", "");
}

/* An edit of a file that was never read asks for them too. */
static void m1_edit_counts(void **state)
{
	struct state *s = *state;

	puts_file(s->r->f, "src/AGENTS.md", "No globals in src.\n");
	puts_file(s->r->f, "src/b.c", "int b;\n");
	expect_after(s, "edit", "{'path':'src/b.c','old_string':'b','new_string':'z'}", SRC);
	puts_file(s->r->f, "lib/AGENTS.md", "In lib.\n");
	expect_after(
		s, "write", "{'path':'lib/new.c','content':'int n;'}",
		"Instructions from lib/AGENTS.md (project; for files below lib):\n\nIn lib.\n");
}

/* H14: after an epoch's end they come back only with the next matching read, and once. */
static void h14_nested_files_come_back_with_a_read(void **state)
{
	struct state *s = *state;

	puts_file(s->r->f, "src/AGENTS.md", "No globals in src.\n");
	puts_file(s->r->f, "src/b.c", "int b;\n");
	puts_file(s->r->f, "c.c", "int c;\n");
	expect_after(s, "read", "{'path':'src/b.c'}", SRC);
	file_compact(s->r, s->r->view.n, head_of(s));
	for (size_t i = 0; i < s->r->view.n; i++) {
		AUTO_FREE char *text = file_blocks(s->r->view.list[i], ORIGIN_INSTRUCTIONS);
		assert_null(strstr(text, "No globals"));
	}
	expect_after(s, "read", "{'path':'c.c'}", "");
	puts_file(s->r->f, "src/AGENTS.md", "Some globals.\n"); /* read afresh */
	expect_after(s, "read", "{'path':'src/b.c'}",
		     "Instructions from src/AGENTS.md (project; for files below src):\n\n"
		     "Some globals.\n");
	expect_after(s, "read", "{'path':'src/b.c'}", "");
}

/* An epoch's end that left the block in the view adds no second one (T7, or a tail that stays). */
static void what_the_view_still_holds_is_not_added(void **state)
{
	struct state *s = *state;

	puts_file(s->r->f, "src/AGENTS.md", "No globals in src.\n");
	puts_file(s->r->f, "src/b.c", "int b;\n");
	puts_file(s->r->f, "c.c", "int c;\n");
	expect_after(s, "read", "{'path':'c.c'}", "");
	expect_after(s, "read", "{'path':'src/b.c'}", SRC);
	file_compact(s->r, s->r->view.n - 2, head_of(s));
	expect_after(s, "read", "{'path':'src/b.c'}", "");
}

/* M1: rules of both folders, by paths or globs, as lists and as texts; without patterns: for all files. */
static void m1_rules_with_patterns(void **state)
{
	struct state *s = *state;

	puts_file(s->r->f, ".claude/rules/api.md",
		  "---\npaths:\n  - \"src/api/**\"\n---\nCheck input.\n");
	puts_file(s->r->f, ".baton/rules/deep/sql.md", "---\nglobs: *.sql, db/\n---\nNo joins.\n");
	puts_file(s->r->f, "src/api/a.c", "int a;\n");
	puts_file(s->r->f, "src/apix.c", "int b;\n");
	puts_file(s->r->f, "q/x.sql", "select 1;\n");
	expect_after(s, "read", "{'path':'src/apix.c'}", "");
	expect_after(s, "read", "{'path':'src/api/a.c'}",
		     "Instructions from .claude/rules/api.md (project; for files that match "
		     "src/api/**):\n\nCheck input.\n");
	expect_after(s, "read", "{'path':'src/api/a.c'}", "");
	expect_after(s, "read", "{'path':'q/x.sql'}",
		     "Instructions from .baton/rules/deep/sql.md (project; for files that match "
		     "*.sql, db/**):\n\nNo joins.\n");
}

static void m1_a_rule_without_patterns_is_for_all(void **state)
{
	struct state *s = *state;

	puts_file(s->r->f, ".baton/rules/all.md", "Be kind.\n");
	puts_file(s->r->f, "c.c", "int c;\n");
	expect_after(s, "read", "{'path':'c.c'}",
		     "Instructions from .baton/rules/all.md (project; for all files):\n\nBe "
		     "kind.\n");
}

static void rules_as_they_are_written(void **state)
{
	static const struct {
		const char *front, *yes, *no;
	} cases[] = {
		{"paths: src/**/*.ts", "src/a/b.ts", "lib/a.ts"},
		{"globs: **/*.ts, *.tsx", "a/b.tsx", "a.js"},
		{"globs: [\"*.py\", \"/tools/\"]", "tools/x/y", "a/tools.c"},
		{"paths: {src,lib}/**/*.ts, t/*.ts", "lib/q.ts", "bin/q.ts"},
		{"paths:\n  - ./docs/*.md\n  - *.rst", "a/b.rst", "b.md"},
		{"description: x\nglobs: '*.{c,h}'\nalwaysApply: false", "a.h", "a.hh"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		AUTO_FREE char *text = mem_printf("---\n%s\n---\nBody.\n", cases[i].front);
		struct instruction_rule rule;

		instruction_rule_parse("r.md", text, strlen(text), &rule);
		assert_string_equal(rule.text, "Body.\n");
		if (!instruction_rule_matches(&rule, cases[i].yes))
			fail_msg("%s does not match %s", cases[i].front, cases[i].yes);
		if (instruction_rule_matches(&rule, cases[i].no))
			fail_msg("%s matches %s", cases[i].front, cases[i].no);
		struct instruction_rule *list = mem_dup(&rule, sizeof(rule));
		instruction_rules_free(list, 1);
	}
}

/* Bounded: 20,000 characters each, 8 files a round; what waits comes with the next. */
static void m1_bounds(void **state)
{
	struct state *s = *state;
	AUTO_BUF struct buf big = BUF_INIT;
	AUTO_BUF struct buf path = BUF_INIT;

	for (int i = 0; i < 9000; i++)
		buf_adds(&big, "rule ");
	for (int i = 0; i < 10; i++) {
		AUTO_FREE char *name = NULL;

		buf_addf(&path, "d%d/", i);
		name = mem_printf("%sAGENTS.md", buf_str(&path));
		put(s->r->f, name, buf_str(&big), big.len);
	}
	AUTO_FREE char *file = mem_printf("%sa.c", buf_str(&path));
	AUTO_FREE char *json = mem_printf("{'path':'%s'}", file);
	puts_file(s->r->f, file, "int a;\n");
	AUTO_FREE char *first = after(s, "read", json);
	assert_int_equal(file_count(s->r->view.list[s->r->view.n - 1], ORIGIN_INSTRUCTIONS), 8);
	assert_true(strlen(first) < 8 * 20500);
	assert_true(strlen(first) > 8 * 17000);
	puts_file(s->r->f, "c.c", "int c;\n");
	AUTO_FREE char *second = after(s, "read", "{'path':'c.c'}");
	assert_int_equal(file_count(s->r->view.list[s->r->view.n - 1], ORIGIN_INSTRUCTIONS), 2);
	assert_non_null(strstr(second, "d8/AGENTS.md"));
	assert_non_null(strstr(second, "d9/AGENTS.md"));
}

/* W7: without room nothing is added, and nothing is lost. */
static void without_room_they_wait(void **state)
{
	struct state *s = *state;

	puts_file(s->r->f, "src/AGENTS.md", "No globals in src.\n");
	puts_file(s->r->f, "src/b.c", "int b;\n");
	puts_file(s->r->f, "c.c", "int c;\n");
	s->room = 50;
	expect_after(s, "read", "{'path':'src/b.c'}", "");
	s->room = 10000;
	expect_after(s, "read", "{'path':'c.c'}", SRC);
}

/* X10: a link that leads out is refused and named; one to a file that the view holds adds nothing. */
static void m1_symlinks(void **state)
{
	struct state *s = *state;
	AUTO_FREE char *out = in_tree(s->r->f, "out/AGENTS.md");
	AUTO_FREE char *rule = in_tree(s->r->f, ".baton/rules/x.md");
	AUTO_FREE char *inside = in_tree(s->r->f, "in/CLAUDE.md");

	puts_file(s->r->f, "out/a.c", "int a;\n");
	puts_file(s->r->f, "in/a.c", "int a;\n");
	puts_file(s->r->f, ".baton/rules/y.md", "---\npaths: nothing\n---\nY.\n");
	assert_int_equal(symlink("/etc/passwd", out), 0);
	assert_int_equal(symlink("../../../../../../etc/passwd", rule), 0);
	assert_int_equal(symlink("../AGENTS.md", inside), 0);
	expect_after(s, "read", "{'path':'out/a.c'}", "");
	assert_non_null(strstr(buf_str(&s->warnings), "out/AGENTS.md"));
	assert_non_null(strstr(buf_str(&s->warnings), ".baton/rules/x.md"));
	expect_after(s, "read", "{'path':'in/a.c'}", "");
}

/* H14, trap 14: the head's block is that of the opening, byte for byte, as the file is. */
static void h14_the_root_is_read_again(void **state)
{
	struct state *s = *state;
	struct message *opening = conversation_opening(s->settings);
	AUTO_FREE char *text = file_blocks(opening, ORIGIN_INSTRUCTIONS);

	expect_head(s, text);
	puts_file(s->r->f, "AGENTS.md", "Use blanks.\n");
	expect_head(s, "Instructions from AGENTS.md (project; the text is not the one that stood "
		       "here at the start):\n\nUse blanks.\n");
	message_free(opening);
}

static void h14_what_is_gone_is_kept(void **state)
{
	struct state *s = *state;
	AUTO_FREE char *path = in_tree(s->r->f, "AGENTS.md");

	assert_int_equal(unlink(path), 0);
	expect_head(s, "Instructions from AGENTS.md (project; the file is gone from the worktree, "
		       "this is its text of the start):\n\nUse tabs.");
	assert_int_equal(s->warnings.len, 0);
	assert_int_equal(symlink("/etc/passwd", path), 0);
	expect_head(s, "Instructions from AGENTS.md (project; the file cannot be read now, this is "
		       "its text of the start):\n\nUse tabs.");
	assert_non_null(strstr(buf_str(&s->warnings), "AGENTS.md"));
}

/* A summary behind another one (H8): the opening stays, so only what differs is put in again. */
static void h14_behind_an_opening_that_stays(void **state)
{
	struct state *s = *state;

	s->opening_stays = true;
	expect_head(s, "");
	puts_file(s->r->f, "AGENTS.md", "Use blanks.\n");
	expect_head(s, "Instructions from AGENTS.md (project; the text is not the one that stood "
		       "here at the start):\n\nUse blanks.\n");
	expect_head(s, "");
}

/* The user's file is not the project's, though it has its name. */
static void h14_users_files_stay_and_new_ones_come(void **state)
{
	struct state *s = *state;
	AUTO_FREE char *path = in_tree(s->r->f, "AGENTS.md");

	puts_file(s->r->f, "a.c", "int a;\n");
	expect_after(s, "read", "{'path':'a.c'}",
		     "Instructions from AGENTS.md (project; for files below .):\n\nUse tabs.");
	expect_head(s, "Instructions from AGENTS.md (user):\n\nBe brief."
		       "Instructions from AGENTS.md (project; new since the start):\n\nUse tabs.");
	assert_int_equal(unlink(path), 0);
	expect_head(s, "Instructions from AGENTS.md (user):\n\nBe brief.");
}

/* X2: what was loaded may lay down rules; hooks and events see each load with its reason. */
static void loads_are_on_record(void **state)
{
	struct state *s = *state;
	const struct instructions_load *loads;
	size_t n;

	puts_file(s->r->f, "src/AGENTS.md", "No globals in src.\n");
	puts_file(s->r->f, "src/b.c", "int b;\n");
	expect_after(s, "read", "{'path':'src/b.c'}", SRC);
	message_free(head_of(s));
	loads = instructions_loads(&s->in, &n);
	assert_int_equal(n, 3);
	assert_int_equal(loads[0].why, INSTRUCTIONS_START);
	assert_string_equal(loads[1].path, "src/AGENTS.md");
	assert_string_equal(loads[1].file, "src/b.c");
	assert_int_equal(loads[1].why, INSTRUCTIONS_NESTED);
	assert_int_equal(loads[2].why, INSTRUCTIONS_COMPACTION);
	AUTO_FREE const char **texts = instructions_texts(&s->in, &n);
	bool found = false;
	for (size_t i = 0; i < n; i++)
		found |= strstr(texts[i], "No globals") != NULL;
	assert_true(found);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(m1_nested_files),
		TEST(m1_edit_counts),
		TEST(h14_nested_files_come_back_with_a_read),
		TEST(what_the_view_still_holds_is_not_added),
		TEST(m1_rules_with_patterns),
		TEST(m1_a_rule_without_patterns_is_for_all),
		cmocka_unit_test(rules_as_they_are_written),
		TEST(m1_bounds),
		TEST(without_room_they_wait),
		TEST(m1_symlinks),
		TEST(h14_the_root_is_read_again),
		TEST(h14_what_is_gone_is_kept),
		TEST(h14_behind_an_opening_that_stays),
		WITH_USER_ONLY(h14_users_files_stay_and_new_ones_come),
		TEST(loads_are_on_record),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
