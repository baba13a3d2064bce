/*
 * test_rehydrate.c - which files come back after a compaction, as what, and how much of them (H13).
 *
 * The calls are really run, on files of a worktree; the compaction is what would follow them.
 */
#include "tests/agent/file_rig.h"

#include <sys/stat.h>
#include <unistd.h>

#include "agent/context/rehydrate.h"

#define ROOM 50000

/* `lines` lines with a number of their own. */
static void put_lines(struct file_rig *r, const char *name, const char *word, int lines)
{
	AUTO_BUF struct buf text = BUF_INIT;

	for (int i = 1; i <= lines; i++)
		buf_addf(&text, "int %s_%d = %d; /* what stands on this line */\n", word, i, i * 7);
	put(r->f, name, buf_str(&text), text.len);
}

static struct message *read_file(struct file_rig *r, const char *name)
{
	AUTO_FREE char *json = mem_printf("{'path':'%s'}", name);

	return file_round(r, "read", json);
}

static struct rehydrate input(struct file_rig *r, size_t tail)
{
	return (struct rehydrate){
		.files = r->f->ctx,
		.view = &r->view,
		.tail = tail,
		.ledger = &r->ledger,
		.knobs = &r->knobs,
		.summary = "",
		.room = ROOM,
	};
}

/* The head of a compaction after which the messages from `tail` on stay; -1: none does. */
static struct message *again(struct file_rig *r, long tail)
{
	struct rehydrate in = input(r, tail < 0 ? r->view.n : (size_t)tail);
	struct message *head = message_new(MESSAGE_USER);
	struct err e = ERR_INIT;

	if (rehydrate_files(&in, head, &e) < 0)
		fail_msg("%s", e.message);
	return head;
}

static void expect(const struct message *head, const char *part, bool there)
{
	AUTO_FREE char *text = file_blocks(head, ORIGIN_ATTACHMENT);

	if (!!strstr(text, part) != there)
		fail_msg("'%s' is%s in: %s", part, there ? " not" : "", text);
}

/* H13: twelve files of about 9,000 tokens: the newest five, 5,000 tokens each, by the ledger's estimate. */
static void h13_five_files_of_5000_tokens(void **state)
{
	struct file_rig *r = *state;
	int64_t sum = 0;

	for (int i = 0; i < 12; i++) {
		AUTO_FREE char *name = mem_printf("src/f%d.c", i);
		AUTO_FREE char *word = mem_printf("value%d", i);

		put_lines(r, name, word, 600);
		read_file(r, name);
	}
	struct message *head = again(r, -1);
	assert_int_equal(head->n_blocks, 5);
	for (size_t i = 0; i < head->n_blocks; i++) {
		const struct block *b = &head->blocks[i];
		int64_t tokens = ledger_estimate_text(&r->ledger, b->text, b->text_len);
		AUTO_FREE char *first =
			mem_printf("src/f%zu.c, read again from disk now:\n", 11 - i);

		assert_true(tokens <= 5000);
		assert_true(tokens > 4900); /* and not much less: a line is 25 */
		assert_true(text_starts(b->text, first));
		assert_non_null(strstr(b->text, " of 600; use offset and limit to read on]"));
		sum += tokens;
	}
	assert_true(sum <= ROOM);
	message_free(head);
}

/* The knobs are numbers of the budget, and the room holds whatever they say. */
static void h13_the_room_holds(void **state)
{
	struct file_rig *r = *state;
	struct rehydrate in;

	for (int i = 0; i < 12; i++) {
		AUTO_FREE char *name = mem_printf("f%d.c", i);

		put_lines(r, name, "v", 500);
		read_file(r, name);
	}
	r->knobs.rehydrate_files = 12;
	for (int64_t room = 100; room < 60000; room = room * 3 / 2) {
		struct message *head = message_new(MESSAGE_USER);
		int64_t sum = 0;

		in = input(r, r->view.n);
		in.room = room;
		assert_int_equal(rehydrate_files(&in, head, NULL), 0);
		for (size_t i = 0; i < head->n_blocks; i++)
			sum += ledger_estimate_text(&r->ledger, head->blocks[i].text,
						    head->blocks[i].text_len);
		assert_true(sum <= room);
		assert_true(room < 1000 || head->n_blocks >= 3); /* the first takes not all of it */
		message_free(head);
	}
}

/* The test: a file that was edited between its last read and the compaction shows the new bytes, and
 * the edit that follows is not refused. */
static void h13_new_bytes(void **state)
{
	struct file_rig *r = *state;

	puts_file(r->f, "a.c", "int old_bytes;\n");
	read_file(r, "a.c");
	puts_file(r->f, "a.c", "int new_bytes;\n");
	file_round(r, "edit", "{'path':'a.c','old_string':'new_bytes','new_string':'x'}");
	assert_error(r->f); /* trap 108: changed since it was read */
	struct message *head = again(r, -1);
	expect(head, "     1\tint new_bytes;\n", true);
	expect(head, "old_bytes", false);
	file_round(r, "edit", "{'path':'a.c','old_string':'new_bytes','new_string':'newer'}");
	assert_ok(r->f);
	assert_file(r->f, "a.c", "int newer;\n");
	message_free(head);
}

/* A file that did not come back is still compared with what the model saw. */
static void a_file_that_is_not_shown_is_not_seen(void **state)
{
	struct file_rig *r = *state;
	struct rehydrate in;
	struct message *head = message_new(MESSAGE_USER);

	puts_file(r->f, "a.c", "int old_bytes;\n");
	read_file(r, "a.c");
	puts_file(r->f, "a.c", "int new_bytes;\n");
	in = input(r, r->view.n);
	in.room = 10;
	assert_int_equal(rehydrate_files(&in, head, NULL), 0);
	assert_int_equal(head->n_blocks, 0);
	file_round(r, "write", "{'path':'a.c','content':'x'}");
	assert_error(r->f);
	message_free(head);
}

/* Nothing doubles the tail; bytes decide, so a file that changed since comes all the same. */
static void h13_nothing_doubles_the_tail(void **state)
{
	struct file_rig *r = *state;

	puts_file(r->f, "before.c", "int before;\n");
	puts_file(r->f, "sub/tail.c", "int tail;\n");
	puts_file(r->f, "changed.c", "int was;\n");
	read_file(r, "before.c");
	size_t tail = r->view.n;
	read_file(r, "./sub/../sub/tail.c");
	read_file(r, "changed.c");
	file_round(r, "write", "{'path':'new.c','content':'int new_file;\\n'}");
	puts_file(r->f, "changed.c", "int is;\n");
	struct message *head = again(r, (long)tail);
	expect(head, "int before;", true);
	expect(head, "int is;", true);
	expect(head, "tail.c", false);
	expect(head, "new.c", false);
	message_free(head);
	head = again(r, -1);
	expect(head, "int tail;", true);
	expect(head, "int new_file;", true);
	message_free(head);
}

/* A file that an earlier compaction put there, before an opening that stays (H8), does not come twice. */
static void h13_nothing_doubles_what_stays_in_front(void **state)
{
	struct file_rig *r = *state;
	struct rehydrate in;

	puts_file(r->f, "a.c", "int a;\n");
	puts_file(r->f, "b.c", "int b;\n");
	read_file(r, "a.c");
	file_compact(r, r->view.n, again(r, -1));
	read_file(r, "b.c");
	struct message *head = message_new(MESSAGE_USER);
	in = input(r, r->view.n);
	in.from = 1;
	assert_int_equal(rehydrate_files(&in, head, NULL), 0);
	expect(head, "int a;", false);
	expect(head, "int b;", true);
	message_free(head);
}

/* A long file that the tail shows from its start is not shown as far as 5,000 tokens reach. */
static void h13_a_cut_file_doubles_no_tail(void **state)
{
	struct file_rig *r = *state;

	put_lines(r, "long.c", "v", 900);
	size_t tail = r->view.n;
	file_round(r, "read", "{'path':'long.c','limit':800}");
	struct message *head = again(r, (long)tail);
	expect(head, "long.c", false);
	message_free(head);
}

/* What was cleared from the tail (T7) is not shown there. */
static void h13_a_cleared_result_shows_nothing(void **state)
{
	struct file_rig *r = *state;
	struct message *copy = message_new(MESSAGE_USER);
	struct epoch_edit edit;
	struct epoch_done done;

	puts_file(r->f, "a.c", "int value;\n");
	size_t tail = r->view.n;
	read_file(r, "a.c");
	message_add_result(copy, "c1", "read", "[Old tool result content cleared]", 33, false);
	epoch_begin(&edit, "clear", &r->view, &r->ledger, &r->c, false);
	epoch_change(&edit, r->view.n - 1, r->view.n, copy);
	epoch_apply(&edit, &done);
	struct message *head = again(r, (long)tail);
	expect(head, "int value;", true);
	message_free(head);
}

static void h13_a_deleted_file_is_named_as_gone(void **state)
{
	struct file_rig *r = *state;
	AUTO_FREE char *gone = in_tree(r->f, "src/gone.c");
	AUTO_FREE char *link = in_tree(r->f, "src/out.c");

	puts_file(r->f, "src/gone.c", "int gone;\n");
	puts_file(r->f, "src/out.c", "int out;\n");
	puts_file(r->f, "src/here.c", "int here;\n");
	read_file(r, "src/gone.c");
	read_file(r, "src/out.c");
	read_file(r, "src/here.c");
	assert_int_equal(unlink(gone), 0);
	assert_int_equal(unlink(link), 0);
	assert_int_equal(symlink("/etc/passwd", link), 0);
	struct message *head = again(r, -1);
	expect(head, "src/gone.c is gone", true);
	expect(head, "src/out.c cannot be read now", true); /* X10: never outside */
	expect(head, "root:", false);
	expect(head, "int here;", true);
	message_free(head);
}

/* Files that the summary, a task or the failing test name come before newer ones. */
static void h13_named_files_come_first(void **state)
{
	static const char *const names[] = {"t/test_a.c", "plan.c", "src/a.c", "x.c",
					    "y.c",	  "z.c",    "a.c",     "w.c"};
	struct file_rig *r = *state;
	struct message *head = message_new(MESSAGE_USER);
	struct rehydrate in;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		puts_file(r->f, names[i], names[i]);
		read_file(r, names[i]);
	}
	file_round(r, "shell", "{'command':'echo ./t/test_a.c:12: assertion failed; false'}");
	assert_error(r->f);
	message_add_text(head, ORIGIN_MEMORY, "next: plan.c", 12);
	in = input(r, r->view.n);
	in.summary = "3. Files: `src/a.c`, and never mind x.cc or the folder x.c2.";
	in.summary_len = strlen(in.summary);
	assert_int_equal(rehydrate_files(&in, head, NULL), 0);
	assert_int_equal(head->n_blocks, 6);
	assert_true(text_starts(head->blocks[1].text, "src/a.c,"));
	assert_true(text_starts(head->blocks[2].text, "plan.c,"));
	assert_true(text_starts(head->blocks[3].text, "t/test_a.c,"));
	assert_true(text_starts(head->blocks[4].text, "w.c,"));
	assert_true(text_starts(head->blocks[5].text, "a.c,")); /* not named by src/a.c */
	message_free(head);
}

static void h13_what_is_left_out(void **state)
{
	static const char *const left[] = {
		"build.log",	      "package-lock.json", "Cargo.lock",
		"site/app.min.js",    "AGENTS.md",	   "sub/CLAUDE.md",
		".claude/rules/a.md", "proto/a.pb.go",	   "node_modules/x/i.js",
	};
	struct file_rig *r = *state;
	AUTO_BUF struct buf wide = BUF_INIT;

	for (size_t i = 0; i < ARRAY_SIZE(left); i++) {
		assert_true(rehydrate_leaves_out(left[i]));
		puts_file(r->f, left[i], "LEFT-OUT\n");
		read_file(r, left[i]);
	}
	assert_false(rehydrate_leaves_out("src/logs.c"));
	assert_false(rehydrate_leaves_out("distance/map.c"));
	puts_file(r->f, "tables.c", "/* Code generated by mk.py. DO NOT EDIT. */\nLEFT-OUT\n");
	read_file(r, "tables.c");
	for (int i = 0; i < 400; i++)
		buf_adds(&wide, "LEFT-OUT ");
	put(r->f, "bundle.js", buf_str(&wide), wide.len);
	read_file(r, "bundle.js");
	put(r->f, "a.bin", "LEFT-OUT\0x", 10);
	read_file(r, "a.bin");
	puts_file(r->f, "src/a.c", "int a;\n");
	read_file(r, "src/a.c");
	file_round(r, "shell", "{'command':'seq 90000'}");
	struct message *head = again(r, -1);
	expect(head, "LEFT-OUT", false);
	expect(head, "int a;", true);
	assert_int_equal(head->n_blocks, 1);
	message_free(head);
}

/* A longer file comes as the part that was read last; one that was only edited, round the change. */
static void h13_the_part_that_was_seen_last(void **state)
{
	struct file_rig *r = *state;

	put_lines(r, "read.c", "r", 2500);
	put_lines(r, "edit.c", "e", 2500);
	file_round(r, "read", "{'path':'read.c','offset':1200,'limit':30}");
	file_round(r, "edit", "{'path':'edit.c','old_string':'e_2000 =','new_string':'e_here ='}");
	assert_ok(r->f);
	struct message *head = again(r, -1);
	expect(head, "[lines 1200 to 1229 of 2500; use offset", true);
	expect(head, "  1200\tint r_1200", true);
	expect(head, "r_1230", false);
	expect(head, "int e_here =", true);
	expect(head, "[lines 1998 to 2009 of 2500", true);
	message_free(head);
}

/* The order is that of the model's calls: what was put before it again does not become newer. */
static void showing_a_file_is_no_access(void **state)
{
	struct file_rig *r = *state;

	puts_file(r->f, "a.c", "int a;\n");
	puts_file(r->f, "b.c", "int b;\n");
	read_file(r, "a.c");
	read_file(r, "b.c");
	uint64_t clock = files_clock(r->f->ctx);
	for (int i = 0; i < 2; i++) {
		struct message *head = again(r, -1);

		assert_true(text_starts(head->blocks[0].text, "b.c,"));
		assert_true(text_starts(head->blocks[1].text, "a.c,"));
		message_free(head);
	}
	assert_int_equal(files_clock(r->f->ctx), clock);
}

/* H16: a stop is seen while files are read. */
static void a_stop_ends_it(void **state)
{
	struct file_rig *r = *state;
	struct rehydrate in;
	struct message *head = message_new(MESSAGE_USER);
	struct err e = ERR_INIT;

	puts_file(r->f, "a.c", "int a;\n");
	read_file(r, "a.c");
	r->f->waiter.cancel_at_ms = 1;
	r->f->ctx->next_check_ms = 0;
	in = input(r, r->view.n);
	assert_int_equal(rehydrate_files(&in, head, &e), -1);
	assert_int_equal(e.code, ERR_CANCELLED);
	r->f->waiter.cancel_at_ms = 0;
	message_free(head);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_FILES(h13_five_files_of_5000_tokens),
		ON_FILES(h13_the_room_holds),
		ON_FILES(h13_new_bytes),
		ON_FILES(a_file_that_is_not_shown_is_not_seen),
		ON_FILES(h13_nothing_doubles_the_tail),
		ON_FILES(h13_nothing_doubles_what_stays_in_front),
		ON_FILES(h13_a_cut_file_doubles_no_tail),
		ON_FILES(h13_a_cleared_result_shows_nothing),
		ON_FILES(h13_a_deleted_file_is_named_as_gone),
		ON_FILES(h13_named_files_come_first),
		ON_FILES(h13_what_is_left_out),
		ON_FILES(h13_the_part_that_was_seen_last),
		ON_FILES(showing_a_file_is_no_access),
		ON_FILES(a_stop_ends_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
