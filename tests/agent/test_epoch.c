/*
 * test_epoch.c - views are cut at round boundaries, and only here (W11, traps 20 and 22).
 */
#include "tests/base/test_base.h"

#include "agent/context/epoch.h"
#include "agent/validate.h"
#include "base/memory.h"

struct rig {
	struct conversation c;
	struct view view;
	struct ledger ledger;
};

static struct message *say(struct rig *r, enum message_role role, const char *text)
{
	struct message *m = message_new(role);

	message_add_text(m, role == MESSAGE_USER ? ORIGIN_USER : ORIGIN_MODEL, text, strlen(text));
	conversation_append(&r->c, m);
	ledger_add(&r->ledger, m);
	return m;
}

/* A round of two parallel calls and their results. */
static void round_of_calls(struct rig *r, int number, size_t bytes)
{
	struct message *answer = message_new(MESSAGE_ASSISTANT), *results;
	AUTO_FREE char *text = mem_alloc(bytes + 1);
	char id[2][16];

	memset(text, 'x', bytes);
	conversation_next_round(&r->c);
	message_add_thinking(answer, NULL, "hm", 2,
			     "{\"type\":\"thinking\",\"thinking\":\"hm\",\"signature\":\"s\"}");
	for (int k = 0; k < 2; k++) {
		snprintf(id[k], sizeof(id[k]), "c%d_%d", number, k);
		message_add_call(answer, id[k], "read", "{}", 2, NULL);
	}
	conversation_append(&r->c, answer);
	ledger_add(&r->ledger, answer);
	results = message_new(MESSAGE_USER);
	for (int k = 0; k < 2; k++)
		message_add_result(results, id[k], "read", text, bytes, false);
	conversation_append(&r->c, results);
	ledger_add(&r->ledger, results);
}

static void start(struct rig *r, int rounds, size_t bytes)
{
	*r = (struct rig){.view = {.pinned = -1}};
	conversation_init(&r->c);
	view_init(&r->view);
	ledger_init(&r->ledger);
	ledger_fixed(&r->ledger, "You are an agent.", NULL, 0);
	say(r, MESSAGE_USER, "fix the test");
	for (int i = 0; i < rounds; i++)
		round_of_calls(r, i, bytes);
	view_sync(&r->view, &r->c);
}

static void end(struct rig *r)
{
	view_release(&r->view);
	conversation_release(&r->c);
	ledger_release(&r->ledger);
}

static struct message *summary(void)
{
	struct message *m = message_new(MESSAGE_USER);

	message_add_text(m, ORIGIN_SUMMARY, "what was", 8);
	return m;
}

static int64_t newest(const struct rig *r, size_t n)
{
	int64_t sum = 0;

	for (size_t i = r->view.n - n; i < r->view.n; i++)
		sum += r->view.list[i]->estimate;
	return sum;
}

/* Whatever the cut, the tail begins with an answer and the request is well-formed. */
static void test_every_cut_is_valid(void **state)
{
	for (int rounds = 1; rounds < 9; rounds++) {
		for (int64_t tokens = 0; tokens < 4000; tokens += 250) {
			struct rig r;
			struct err err = ERR_INIT;

			start(&r, rounds, 400);
			size_t tail = epoch_tail(&r.view, 0, 6, tokens);
			assert_true(tail >= 1 && tail % 2 == 1);
			if (rounds >= 3 && 2 * tokens >= newest(&r, 6))
				assert_true(r.view.n - tail >= 6);
			epoch_end(&r.view, &r.ledger, &r.c, 0, tail, summary(), false);
			assert_int_equal(validate_all(r.view.list, r.view.n, &err), 0);
			end(&r);
		}
	}
}

static void test_the_tail_takes_what_fits(void **state)
{
	struct rig r;

	start(&r, 20, 400);
	size_t least = epoch_tail(&r.view, 0, 6, 0);
	size_t small = epoch_tail(&r.view, 0, 6, newest(&r, 6) / 2 + 1);
	size_t large = epoch_tail(&r.view, 0, 6, newest(&r, 10));
	assert_int_equal(r.view.n - least, 2); /* the newest round, however large */
	assert_int_equal(r.view.n - small, 6);
	assert_int_equal(r.view.n - large, 10);
	assert_int_equal(epoch_tail(&r.view, 0, 6, 1000000),
			 1); /* all of it: nothing is left to cut */
	end(&r);
}

/* The view changes, storage does not; the ledger counts the new payload. */
static void test_end_of_an_epoch(void **state)
{
	struct rig r;

	start(&r, 10, 4000);
	int64_t before = ledger_used(&r.ledger);
	size_t tail = epoch_tail(&r.view, 0, 6, 8000), kept = r.view.n - tail;
	uint64_t uid = r.view.list[tail]->uid;
	epoch_end(&r.view, &r.ledger, &r.c, 0, tail, summary(), false);
	assert_int_equal(r.view.n, kept + 1);
	assert_int_equal(r.view.list[1]->uid, uid);
	assert_int_equal(r.view.epoch, 1);
	assert_int_equal(r.c.n, 21);
	assert_true(ledger_used(&r.ledger) < before / 2);
	assert_true(r.ledger.category[LEDGER_SUMMARY] > 0);
	assert_true(r.ledger.category[LEDGER_SYSTEM] > 0);
	/* What comes later is appended as ever. */
	round_of_calls(&r, 99, 10);
	view_sync(&r.view, &r.c);
	assert_int_equal(r.view.n, kept + 3);
	end(&r);
}

/* W11: thinking that is bound to a prefix goes with it; the conversation keeps it. */
static void test_bound_thinking_goes(void **state)
{
	struct rig r;

	start(&r, 6, 100);
	epoch_end(&r.view, &r.ledger, &r.c, 0, 7, summary(), true);
	for (size_t i = 0; i < r.view.n; i++)
		assert_int_equal(message_count(r.view.list[i], BLOCK_THINKING), 0);
	assert_int_equal(message_count(r.c.messages[11], BLOCK_THINKING), 1);
	assert_int_equal(message_count(r.view.list[1], BLOCK_TOOL_CALL), 2);
	end(&r);
	start(&r, 6, 100);
	epoch_end(&r.view, &r.ledger, &r.c, 0, 7, summary(), false);
	assert_int_equal(message_count(r.view.list[1], BLOCK_THINKING), 1);
	end(&r);
}

/* H7, W11: a call that leaves the oldest rounds out cannot bring thinking that is bound to them. */
static void test_a_message_without_its_thinking(void **state)
{
	struct message *with, *without;
	struct rig r;

	start(&r, 6, 100);
	with = r.view.list[11];
	assert_int_equal(message_count(with, BLOCK_THINKING), 1);
	without = epoch_unbound(&r.view, &r.c, with);
	assert_ptr_not_equal(without, with);
	assert_int_equal(message_count(without, BLOCK_THINKING), 0);
	assert_int_equal(without->n_blocks, with->n_blocks - 1);
	assert_int_equal(without->estimate, with->estimate);
	assert_int_not_equal(without->uid, with->uid);
	assert_ptr_equal(r.view.list[11], with);
	assert_ptr_equal(epoch_unbound(&r.view, &r.c, without), without);
	end(&r);
}

/* X14: what rewrites put in goes when no undo can want it back, and so do the bytes of what is not sent any more. */
static void x14_replaced_messages_do_not_stay(void **state)
{
	struct rig r;

	start(&r, 40, 100);
	for (size_t i = 0; i < r.c.n; i++)
		r.c.messages[i]->rendered = mem_strdup("bytes");
	for (int i = 0; i < 30; i++) {
		epoch_end(&r.view, &r.ledger, &r.c, 0, 3, summary(), true);
		assert_true(r.view.n_own <= r.view.n + 2);
	}
	assert_null(r.c.messages[0]->rendered);
	assert_null(r.c.messages[10]->rendered);
	assert_non_null(r.c.messages[r.c.n - 1]);
	assert_int_equal(r.c.messages[10]->n_blocks, 2); /* the conversation keeps what it says */
	end(&r);
}

/* X4: an undo brings back what the last rewrite took out, among it what earlier ones had put in. */
static void x4_the_last_rewrite_can_be_undone(void **state)
{
	struct rig r;
	struct message *before[64];
	size_t n, taken;

	start(&r, 20, 100);
	epoch_end(&r.view, &r.ledger, &r.c, 0, 5, summary(), true);
	n = r.view.n;
	taken = r.view.taken;
	assert_true(n < ARRAY_SIZE(before));
	memcpy(before, r.view.list, n * sizeof(*before));
	epoch_end(&r.view, &r.ledger, &r.c, 0, 9, summary(), true);
	assert_true(r.view.n < n);
	round_of_calls(&r, 99, 10);
	epoch_restore(&r.view, &r.ledger, &r.c, before, n, taken, true);
	assert_int_equal(r.view.n, n + 2);
	assert_string_equal(r.view.list[0]->blocks[0].text, "what was");
	for (size_t i = 1; i < n; i++)
		assert_int_equal(r.view.list[i]->n_blocks, 2);
	assert_true(r.view.n_own <= r.view.n);
	end(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_cut_is_valid),
		cmocka_unit_test(test_the_tail_takes_what_fits),
		cmocka_unit_test(test_end_of_an_epoch),
		cmocka_unit_test(test_bound_thinking_goes),
		cmocka_unit_test(test_a_message_without_its_thinking),
		cmocka_unit_test(x14_replaced_messages_do_not_stay),
		cmocka_unit_test(x4_the_last_rewrite_can_be_undone),
	};
	return cmocka_run_group_tests_name("agent/epoch", tests, NULL, NULL);
}
