/*
 * test_clear.c - old results give way to a line, when it pays (T3, T7, H2, W11).
 */
#include "tests/base/test_base.h"

#include "agent/context/clear.h"
#include "agent/validate.h"

struct rig {
	struct conversation c;
	struct view view;
	struct ledger ledger;
	struct window_budget budget;
	struct model model;
	struct context_knobs knobs;
	struct rung_input in;
};

static void append(struct rig *r, struct message *m)
{
	conversation_append(&r->c, m);
	ledger_add(&r->ledger, m);
}

/* One call of `tool` and its result of about `words` words. */
static void add_round(struct rig *r, const char *tool, int words)
{
	struct message *answer = message_new(MESSAGE_ASSISTANT),
		       *result = message_new(MESSAGE_USER);
	AUTO_BUF struct buf text = BUF_INIT;
	char id[32];

	snprintf(id, sizeof(id), "c%lld", (long long)conversation_next_round(&r->c));
	for (int i = 0; i < words; i++)
		buf_adds(&text, "word ");
	message_add_thinking(answer, NULL, "hm", 2,
			     "{\"type\":\"thinking\",\"thinking\":\"hm\",\"signature\":\"s\"}");
	message_add_call(answer, id, tool, "{}", 2, NULL);
	append(r, answer);
	message_add_result(result, id, tool, text.data, text.len, false);
	append(r, result);
}

static void start(struct rig *r, int rounds, const char *tool)
{
	struct message *m = message_new(MESSAGE_USER);

	*r = (struct rig){.model = {.window = 50000,
				    .max_output = 4000,
				    .cache = CACHE_EXPLICIT,
				    .price = {.known = true,
					      .input = 3,
					      .output = 15,
					      .cache_read = 0.3,
					      .cache_write = 3.75}}};
	conversation_init(&r->c);
	view_init(&r->view);
	ledger_init(&r->ledger);
	knobs_init(&r->knobs);
	budget_init(&r->budget, &r->model, &r->knobs, NULL);
	message_add_text(m, ORIGIN_USER, "go on", 5);
	append(r, m);
	for (int i = 0; i < rounds; i++)
		add_round(r, tool, 2000);
	view_sync(&r->view, &r->c);
	r->in = (struct rung_input){.view = &r->view,
				    .conversation = &r->c,
				    .model = &r->model,
				    .knobs = &r->knobs,
				    .rounds_left = 50,
				    .ledger = &r->ledger,
				    .budget = &r->budget};
}

static void end(struct rig *r)
{
	view_release(&r->view);
	conversation_release(&r->c);
	ledger_release(&r->ledger);
}

static int64_t run(struct rig *r)
{
	struct err err = ERR_INIT;
	int64_t freed = -1;

	r->in.done = (struct epoch_done){.freed = 0};
	assert_int_equal(clear_run(&r->in, &freed, &err), 0);
	assert_int_equal(validate_all(r->view.list, r->view.n, &err), 0);
	return freed;
}

static size_t count_cleared(const struct rig *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->view.n; i++)
		for (size_t k = 0; k < r->view.list[i]->n_blocks; k++)
			n += strncmp(r->view.list[i]->blocks[k].text
					     ? r->view.list[i]->blocks[k].text
					     : "",
				     CLEARED, strlen(CLEARED)) == 0;
	return n;
}

/* The newest five stay; ids and order too; the ledger knows what went; storage is as it was. */
static void test_the_oldest_go(void **state)
{
	struct rig r;

	start(&r, 14, "read");
	int64_t before = ledger_used(&r.ledger);
	assert_true(clear_wanted(&r.in));
	int64_t freed = run(&r);
	assert_int_equal(count_cleared(&r), 9);
	assert_true(freed > before / 2);
	assert_int_equal(ledger_used(&r.ledger), before - freed);
	for (size_t i = r.view.n - 10; i < r.view.n; i++)
		assert_ptr_equal(r.view.list[i], r.c.messages[i]);
	assert_string_equal(r.view.list[2]->blocks[0].id, r.c.messages[2]->blocks[0].id);
	assert_true(r.c.messages[2]->blocks[0].text_len > 5000);
	assert_int_equal(r.view.epoch, 1);
	/* T3: a second time nothing changes. */
	const struct message *same = r.view.list[2];
	assert_false(clear_wanted(&r.in));
	assert_int_equal(run(&r), 0);
	assert_ptr_equal(r.view.list[2], same);
	assert_int_equal(r.view.epoch, 1);
	end(&r);
}

/* Nobody replays a call whose effect stands. */
static void test_effects_are_told(void **state)
{
	struct rig r;

	start(&r, 14, "shell");
	run(&r);
	assert_string_equal(r.view.list[2]->blocks[0].text, CLEARED_EFFECT);
	end(&r);
	start(&r, 14, "grep");
	run(&r);
	assert_string_equal(r.view.list[2]->blocks[0].text, CLEARED);
	end(&r);
}

/* A failed command whose reason is nearly all of it: the line and the reason would be longer. */
static void test_nothing_grows(void **state)
{
	static const char line[] = "error: 0xdeadbeef 0x1f2e3d4c 9a8b7c6d !!! {}[]<> $%& "
				   "(a=1,b=2,c=3,d=4,e=5,f=6,g=7,h=8) 11.22.33.44:5566 77/88/99 "
				   "#1#2#3#4#5 @@ ^^ ~~ ?? :: ;; || && ++ -- == != <= >= << >>";
	struct message *answer = message_new(MESSAGE_ASSISTANT),
		       *result = message_new(MESSAGE_USER);
	struct rig r;

	start(&r, 0, "shell");
	conversation_next_round(&r.c);
	message_add_call(answer, "e1", "shell", "{}", 2, NULL);
	append(&r, answer);
	message_add_result(result, "e1", "shell", line, strlen(line), true);
	append(&r, result);
	for (int i = 0; i < 13; i++)
		add_round(&r, "read", 2000);
	view_sync(&r.view, &r.c);
	assert_true(r.view.list[2]->blocks[0].estimate > 60);
	assert_true(run(&r) > 0);
	assert_ptr_equal(r.view.list[2], r.c.messages[2]);
	end(&r);
}

/* What cannot be had again is never cleared. */
static void test_only_listed_tools(void **state)
{
	struct rig r;

	start(&r, 14, "agent");
	assert_int_equal(run(&r), 0);
	end(&r);
}

/* Below 40 % of effective, or with less than a tenth to gain, nothing is done. */
static void test_the_trigger(void **state)
{
	struct rig r;

	start(&r, 7, "read"); /* about 14,000 of 46,000 */
	assert_false(clear_wanted(&r.in));
	end(&r);
	start(&r, 5, "read");
	for (int i = 0; i < 5; i++)
		add_round(&r, "read", 6000); /* the large ones are the newest */
	view_sync(&r.view, &r.c);
	assert_true(clear_wanted(&r.in));
	assert_true(run(&r) > 0);
	end(&r);
}

/* W11: by the prices. Few rounds to come do not pay for writing the prefix again; no prices, no early
 * clearing; above the threshold it always pays. */
static void test_it_must_pay(void **state)
{
	struct rig r;

	start(&r, 12, "read");
	assert_true(ledger_used(&r.ledger) < r.budget.compact);
	assert_true(clear_wanted(&r.in));
	r.in.rounds_left = 2;
	assert_int_equal(run(&r), 0);
	r.in.rounds_left = 50;
	r.model.price.known = false;
	assert_int_equal(run(&r), 0);
	for (int i = 0; i < 12; i++)
		add_round(&r, "read", 2000);
	view_sync(&r.view, &r.c);
	assert_true(ledger_used(&r.ledger) > r.budget.compact);
	assert_true(run(&r) > 0);
	end(&r);
}

/* Bound thinking behind the first change goes (wire.md 1.6). */
static void test_bound_thinking(void **state)
{
	struct rig r;

	start(&r, 14, "read");
	r.model.preserved_thinking = true;
	run(&r);
	assert_int_equal(message_count(r.view.list[1], BLOCK_THINKING), 1); /* before the change */
	for (size_t i = 3; i < r.view.n; i++)
		assert_int_equal(message_count(r.view.list[i], BLOCK_THINKING), 0);
	end(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_grows),	 cmocka_unit_test(test_the_oldest_go),
		cmocka_unit_test(test_effects_are_told), cmocka_unit_test(test_only_listed_tools),
		cmocka_unit_test(test_the_trigger),	 cmocka_unit_test(test_it_must_pay),
		cmocka_unit_test(test_bound_thinking),
	};
	return cmocka_run_group_tests_name("agent/clear", tests, NULL, NULL);
}
