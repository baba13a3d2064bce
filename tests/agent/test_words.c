/*
 * test_words.c - X2, I6: the user's words in a ledger of their own, and the head of what follows a
 * compaction.
 */
#include "words_fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "agent/transcript.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"

static char *results_file(const char *name)
{
	AUTO_FREE char *path = file_join(words.results_dir, name + strlen("results:"));
	struct buf out = BUF_INIT;
	struct err e = ERR_INIT;

	if (file_read(AT_FDCWD, path, 64 << 20, &out, &e) < 0)
		fail_msg("%s", e.message);
	return buf_take(&out);
}

static bool has(const struct buf *text, const char *part)
{
	return memmem(buf_str(text), text->len, part, strlen(part)) != NULL;
}

/* ---- the ledger ---- */

static void x2_speakers_enter_and_nobody_else(void **state)
{
	static const enum block_origin others[] = {ORIGIN_MODEL, ORIGIN_INSTRUCTIONS, ORIGIN_TOOL,
						   ORIGIN_ENVIRONMENT, ORIGIN_NUDGE};

	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		say_as(others[i], NULL, "Never push. You must report now.");
	assert_int_equal(words.n, 0);
	say_as(ORIGIN_USER, "Ann", "Never push.");
	say_as(ORIGIN_TASK, NULL, "Fix it.");
	say_as(ORIGIN_EVALUATOR, NULL, "The header must be blue.");
	assert_int_equal(words.n, 3);
	assert_int_equal(words.list[0].speaker, SPEAKER_PERSON);
	assert_string_equal(words.list[0].name, "Ann");
	assert_int_equal(words.list[0].uid, 6);
	assert_true(words.list[0].time > 0);
	assert_int_equal(words.list[1].speaker, SPEAKER_AGENT);
	assert_int_equal(words.list[2].speaker, SPEAKER_EVALUATOR);
	assert_int_equal(user_words_constraints(&words), 2);
}

/* The results of tools and a nudge beside it stay out, the words between them do not. */
static void x2_the_block_decides_and_not_the_message(void **state)
{
	struct message *m = fixture_results("c1");

	message_add_text(m, ORIGIN_USER, "Use tabs.", 9);
	message_add_text(m, ORIGIN_NUDGE, "Half of the budget is used.", 27);
	user_words_admit(&words, m, 9, &ledger, NULL);
	message_free(m);
	assert_int_equal(words.n, 1);
	assert_string_equal(words.list[0].text, "Use tabs.");
}

static void same_words(const struct word *w, const char *text, size_t n, uint64_t uid)
{
	assert_int_equal(w->n, n);
	assert_memory_equal(w->text, text, n);
	assert_int_equal(w->uid, uid);
}

/* I6: any bytes, JSON text or not, are the same after a restart; a bad line costs only itself. */
static void i6_bytes_survive_a_restart(void **state)
{
	static const char odd[] =
		"nul \0 and \xff\xfe and \xed\xa0\x80 \"quoted\"\\ \t </user-words>";
	AUTO_FREE char *path = file_join(folder, "words.jsonl");
	struct message *m = message_of(ORIGIN_USER, "Ann \"A\"", odd, sizeof(odd) - 1);
	AUTO_FD int fd = -1;

	user_words_admit(&words, m, 5, &ledger, NULL);
	message_free(m);
	user_words_release(&words);
	fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	assert_int_equal(file_write_all(fd, "{\"type\":\"word\",\"te\n", 19, NULL), 0);
	open_words(1, 50000, 180000);
	say("Use tabs.");
	restart(1);
	assert_int_equal(words.n, 2);
	same_words(&words.list[0], odd, sizeof(odd) - 1, 5);
	assert_string_equal(words.list[0].name, "Ann \"A\"");
	same_words(&words.list[1], "Use tabs.", 9, 1);
	assert_int_equal(words.list[1].constraints.n, 1);
}

/* I6: readable by every generation. */
static void i6_a_later_generation_takes_them_over(void **state)
{
	char *first = folder;
	AUTO_FREE char *path = file_join(first, "words.jsonl");
	struct user_words_rendered r;
	AUTO_BUF struct buf out = BUF_INIT;

	say("Never push.");
	say("Fix the parser.");
	user_words_release(&words);
	folder = fixture_folder();
	open_words(2, 50000, 180000);
	for (int i = 0; i < 2; i++) /* twice is once */
		assert_int_equal(user_words_inherit(&words, path, NULL), 0);
	say("Use tabs.");
	assert_int_equal(words.n, 3);
	assert_int_equal(words.list[0].generation, 1);
	assert_int_equal(words.list[2].generation, 2);
	restart(2);
	assert_int_equal(words.n, 3);
	render(0, &out, &r);
	assert_true(has(&out, "Never push.") && has(&out, "Use tabs."));
	fixture_remove(first);
}

static void i6_transcript_sync_brings_the_words_out_first(void **state)
{
	AUTO_FREE char *path = file_join(folder, "words.jsonl");
	AUTO_BUF struct buf file = BUF_INIT;
	struct transcript *t = NULL;

	assert_int_equal(transcript_open(folder, &t, NULL), 0);
	transcript_follow(t, words.writer);
	say("Never push.");
	assert_int_equal(file_read(AT_FDCWD, path, 1 << 20, &file, NULL), 0);
	assert_int_equal(file.len, 0);
	assert_int_equal(transcript_sync(t, NULL), 0);
	assert_int_equal(file_read(AT_FDCWD, path, 1 << 20, &file, NULL), 0);
	assert_true(has(&file, "Never push."));
	transcript_close(t);
}

/* X12: what words.jsonl lost, the transcript gives; what it has does not come twice. */
static void x12_a_loaded_conversation_gives_what_is_missing(void **state)
{
	struct conversation c;
	struct message *m = message_of(ORIGIN_USER, NULL, "Never push.", 11);

	conversation_init(&c);
	user_words_admit(&words, m, c.next_uid, &ledger, NULL);
	conversation_append(&c, m);
	conversation_append(&c, fixture_text(MESSAGE_ASSISTANT, "You must not."));
	conversation_append(&c, message_of(ORIGIN_USER, NULL, "Use tabs.", 9));
	for (int i = 0; i < 2; i++)
		user_words_take_conversation(&words, &c);
	assert_int_equal(words.n, 2);
	same_words(&words.list[1], "Use tabs.", 9, c.messages[2]->uid);
	conversation_release(&c);
}

/* ---- long messages ---- */

static void make_long(struct buf *out, size_t lines)
{
	buf_adds(out, "Read this story.\n");
	for (size_t i = 0; i < lines; i++) {
		if (i == lines / 2)
			buf_adds(out, "By the way: never touch net.c.\n");
		buf_addf(out, "He walked %zu miles and then slept.\n", i);
	}
	buf_adds(out, "What do you think of it?");
}

/* I6, T3: decided when it is appended; the constraint from the middle is whole. */
static void i6_a_long_message_is_head_tail_path_and_constraints(void **state)
{
	AUTO_BUF struct buf text = BUF_INIT;
	AUTO_FREE char *kept = NULL;
	struct message *m;

	make_long(&text, 3000);
	m = message_of(ORIGIN_USER, NULL, text.data, text.len);
	assert_int_equal(user_words_admit(&words, m, 1, &ledger, NULL), 0);
	assert_true(m->blocks[0].text_len < 15000);
	assert_non_null(strstr(m->blocks[0].text, "results:words-1.txt"));
	assert_non_null(strstr(m->blocks[0].text, "Read this story."));
	assert_non_null(strstr(m->blocks[0].text, "By the way: never touch net.c."));
	assert_non_null(strstr(m->blocks[0].text, "What do you think of it?"));
	kept = results_file("results:words-1.txt");
	assert_string_equal(kept, buf_str(&text));
	same_words(&words.list[0], text.data, text.len, 1);
	/* After a crash the short form is known for what it is. */
	struct conversation c;
	conversation_init(&c);
	m->uid = 1;
	conversation_append(&c, m);
	restart(1);
	user_words_take_conversation(&words, &c);
	assert_int_equal(words.n, 1);
	conversation_release(&c);
}

static void i6_a_message_within_the_bound_is_not_touched(void **state)
{
	AUTO_BUF struct buf text = BUF_INIT;
	struct message *m;

	make_long(&text, 800);
	m = message_of(ORIGIN_USER, NULL, text.data, text.len);
	user_words_admit(&words, m, 1, &ledger, NULL);
	assert_int_equal(m->blocks[0].text_len, text.len);
	assert_false(words.list[0].cut);
	message_free(m);
}

/* A quarter of a small window is the bound where it is the smaller one. */
static void x2_a_small_window_bounds_a_message_too(void **state)
{
	AUTO_BUF struct buf text = BUF_INIT;
	struct message *m;

	user_words_resize(&words, 1500);
	make_long(&text, 400);
	m = message_of(ORIGIN_USER, NULL, text.data, text.len);
	assert_int_equal(user_words_admit(&words, m, 1, &ledger, NULL), 0);
	assert_true(words.list[0].cut);
	assert_true(ledger_estimate_text(&ledger, m->blocks[0].text, m->blocks[0].text_len) < 1500);
	message_free(m);
}

static void x2_constraints_beyond_the_room_are_whole_and_told(void **state)
{
	AUTO_BUF struct buf text = BUF_INIT, out = BUF_INIT;
	struct user_words_rendered r;
	struct message *m;
	struct err e = ERR_INIT;

	user_words_release(&words);
	open_words(1, 50000, 6000);
	for (int i = 0; i < 400; i++)
		buf_addf(&text, "You must never touch file%d.c in the folder src.\n", i);
	m = message_of(ORIGIN_USER, NULL, text.data, text.len);
	assert_int_equal(user_words_admit(&words, m, 1, &ledger, &e), -1);
	assert_non_null(strstr(e.message, "constraints"));
	assert_non_null(strstr(m->blocks[0].text, "file200.c"));
	message_free(m);
	assert_int_equal(user_words_render(&words, 0, &ledger, &out, &r, &e), -1);
	assert_int_equal(e.code, ERR_TOO_LARGE);
	assert_int_equal(r.constraints, 400);
	assert_int_equal(r.whole, 0);
	for (int i = 0; i < 400; i++) {
		AUTO_FREE char *line = mem_printf("touch file%d.c in the folder src.", i);

		assert_true(has(&out, line));
	}
}

/* ---- the head of what follows a compaction ---- */

static void x2_all_is_whole_where_it_fits(void **state)
{
	struct user_words_rendered r;
	AUTO_BUF struct buf out = BUF_INIT, again = BUF_INIT;

	say("Fix the parser. Never push.\nUse tabs.");
	say("Test the lexer, too.");
	render(0, &out, &r);
	assert_int_equal(r.whole, 2);
	assert_int_equal(r.cut + r.listed, 0);
	assert_int_equal(r.constraints, 2);
	assert_true(r.tokens > 0 && r.tokens < 1000);
	assert_true(has(&out, "]\nFix the parser. Never push.\nUse tabs.\n["));
	assert_true(has(&out, "]\nNever push.\n["));
	assert_false(has(&out, "constraints of")); /* one speaker: no sections */
	render(0, &again, &r);
	assert_string_equal(buf_str(&out), buf_str(&again)); /* I4 */
}

static void x2_a_section_for_each_person(void **state)
{
	struct user_words_rendered r;
	AUTO_BUF struct buf out = BUF_INIT;
	const char *ann, *bob;

	say_as(ORIGIN_USER, "Ann", "Never push.");
	say_as(ORIGIN_USER, "Bob", "Use tabs.");
	say_as(ORIGIN_USER, "Ann", "Do not rename it.");
	render(0, &out, &r);
	ann = strstr(buf_str(&out), "constraints of user Ann]");
	bob = strstr(buf_str(&out), "constraints of user Bob]");
	assert_true(ann && bob && ann < bob);
	assert_true(strstr(ann, "Do not rename it.") < bob);
	assert_non_null(strstr(bob, "messages of user Ann]"));
}

/* X2: beyond a quarter the oldest long messages are head, tail and path; first and newest whole. */
static void x2_the_oldest_long_messages_give_way(void **state)
{
	struct user_words_rendered r;
	AUTO_BUF struct buf text = BUF_INIT, out = BUF_INIT;
	AUTO_FREE char *kept = NULL;
	int64_t all;

	make_long(&text, 150);
	say("Write a story. Never push.");
	for (int i = 0; i < 4; i++)
		say(buf_str(&text));
	say("Make it shorter.");
	render(40000, &out, &r);
	assert_int_equal(r.whole, 6);
	all = r.tokens;
	render(all * 2 / 3, &out, &r);
	assert_true(r.cut >= 1 && r.cut <= 3);
	assert_int_equal(r.listed, 0);
	assert_true(r.tokens <= all * 2 / 3);
	assert_true(has(&out, "of 5"));
	assert_true(has(&out, "all of it in results:words-2.txt]"));
	assert_false(has(&out, "results:words-5.txt"));
	assert_true(has(&out, "]\nWrite a story. Never push.\n["));
	assert_true(has(&out, "]\nMake it shorter.\n<"));
	kept = results_file("results:words-2.txt");
	assert_string_equal(kept, buf_str(&text));
}

static void x2_many_short_messages_are_named(void **state)
{
	struct user_words_rendered r;
	AUTO_BUF struct buf out = BUF_INIT;
	AUTO_FREE char *kept = NULL;

	say("Write a story. Never push.");
	for (int i = 0; i < 200; i++) {
		AUTO_FREE char *text =
			mem_printf("I ran it again, that was run %d of many today.", i);

		say(text);
	}
	say("Go on.");
	render(3000, &out, &r);
	assert_true(r.listed > 100 && r.whole > 10);
	assert_int_equal(r.listed + r.whole, 202);
	assert_true(r.tokens <= 3000);
	assert_true(has(&out, "not repeated here: messages 2-"));
	assert_true(has(&out, "run 199 of"));
	assert_false(has(&out, "run 3 of"));
	assert_true(has(&out, "]\nWrite a story. Never push.\n["));
	kept = results_file("results:words.txt");
	assert_non_null(strstr(kept, "run 3 of"));
}

/* Where even two messages are too much, they become head and tail of what there is. */
static void x2_first_and_newest_shrink_last(void **state)
{
	struct user_words_rendered r;
	AUTO_BUF struct buf text = BUF_INIT, out = BUF_INIT;

	make_long(&text, 400);
	say(buf_str(&text));
	say(buf_str(&text));
	for (int64_t room = 400; room < 12000; room += 400) {
		render(room, &out, &r);
		assert_true(r.tokens <= room);
		assert_true(has(&out, "By the way: never touch net.c."));
		assert_int_equal(r.whole + r.cut + r.listed, 2);
	}
	render(3000, &out, &r);
	assert_int_equal(r.cut, 2);
}

static void x2_the_same_constraint_stands_once(void **state)
{
	struct user_words_rendered r;
	AUTO_BUF struct buf out = BUF_INIT;

	for (int i = 0; i < 5; i++)
		say("Never push.");
	render(0, &out, &r);
	assert_int_equal(r.constraints, 1);
}

/* ---- hostile texts: what was put in comes out ---- */

struct item {
	char kind; /* c, m */
	struct text_span span;
};

static const char *after(const char *p, const char *word)
{
	const char *found = strstr(p, word);

	assert_non_null(found);
	return found + strlen(word);
}

/* Reads a rendered block by its lines alone: "[MARK constraint ..., N bytes]" and N bytes. */
static size_t parse(const struct buf *block, struct item *items, size_t max)
{
	char line[16];
	const char *p = buf_str(block), *end = p + block->len;
	size_t n = 0;

	snprintf(line, sizeof(line), "[%.8s ", after(p, "<user-words-"));
	p = memmem(p, block->len, line, strlen(line));
	while (p && *p == '[') {
		const char *eol = memchr(p, '\n', (size_t)(end - p)), *number = eol;
		bool constraint = text_starts(p + 10, "constraint "),
		     message = text_starts(p + 10, "message ");

		assert_memory_equal(p, line, strlen(line));
		if (!constraint && !message) {
			p = eol + 1;
			continue;
		}
		assert_memory_equal(eol - 7, " bytes]", 7);
		for (number = eol - 7; number[-1] != ' '; number--)
			;
		assert_true(n < max);
		items[n++] = (struct item){.kind = constraint ? 'c' : 'm',
					   .span = {.at = (size_t)(eol + 1 - block->data),
						    .n = strtoul(number, NULL, 10)}};
		p = eol + 1 + items[n - 1].span.n;
		assert_true(p < end && *p == '\n');
		p++;
	}
	assert_memory_equal(p, "</user-words-", 13);
	return n;
}

static void x2_hostile_words_come_back_byte_for_byte(void **state)
{
	struct user_words_rendered r;
	AUTO_BUF struct buf out = BUF_INIT;
	struct item items[64];
	size_t n, messages = 0;

	for (size_t i = 0; i < n_hostile; i++)
		say_as(ORIGIN_USER, i % 2 ? "Eve ]\n[x" : NULL, hostile[i]);
	render(0, &out, &r);
	/* A user who has seen the mark and uses it gets another one. */
	say(buf_str(&out));
	render(0, &out, &r);
	n = parse(&out, items, ARRAY_SIZE(items));
	for (size_t i = 0; i < n; i++) {
		bool found = false;

		messages += items[i].kind == 'm';
		for (size_t k = 0; k < words.n && items[i].kind == 'm'; k++)
			found |= words.list[k].n == items[i].span.n &&
				 !memcmp(words.list[k].text, out.data + items[i].span.at,
					 words.list[k].n);
		for (size_t k = 0; k < words.n && items[i].kind == 'c'; k++)
			found |= memmem(words.list[k].text, words.list[k].n,
					out.data + items[i].span.at, items[i].span.n) != NULL;
		assert_true(found);
	}
	assert_int_equal(messages, n_hostile + 1);
	assert_int_equal(n - messages, r.constraints);
}

static void x2_code_knows_its_own_block(void **state)
{
	struct user_words_rendered r;
	AUTO_BUF struct buf out = BUF_INIT;

	say("Never push.");
	render(0, &out, &r);
	assert_true(user_words_own(&words, out.data, out.len));
	restart(1);
	assert_true(user_words_own(&words, out.data, out.len));
	out.data[out.len / 2] ^= 1;
	assert_false(user_words_own(&words, out.data, out.len));
	assert_false(user_words_own(&words, out.data, out.len - 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_WORDS(x2_speakers_enter_and_nobody_else),
		WITH_WORDS(x2_the_block_decides_and_not_the_message),
		WITH_WORDS(i6_bytes_survive_a_restart),
		WITH_WORDS(i6_a_later_generation_takes_them_over),
		WITH_WORDS(i6_transcript_sync_brings_the_words_out_first),
		WITH_WORDS(x12_a_loaded_conversation_gives_what_is_missing),
		WITH_WORDS(i6_a_long_message_is_head_tail_path_and_constraints),
		WITH_WORDS(i6_a_message_within_the_bound_is_not_touched),
		WITH_WORDS(x2_a_small_window_bounds_a_message_too),
		WITH_WORDS(x2_constraints_beyond_the_room_are_whole_and_told),
		WITH_WORDS(x2_all_is_whole_where_it_fits),
		WITH_WORDS(x2_a_section_for_each_person),
		WITH_WORDS(x2_the_oldest_long_messages_give_way),
		WITH_WORDS(x2_many_short_messages_are_named),
		WITH_WORDS(x2_first_and_newest_shrink_last),
		WITH_WORDS(x2_the_same_constraint_stands_once),
		WITH_WORDS(x2_hostile_words_come_back_byte_for_byte),
		WITH_WORDS(x2_code_knows_its_own_block),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
