/*
 * test_replay.c - a journal folded into what a parent has to know to go on (I10, R6; traps 138, 140).
 */
#include "tests/base/test_base.h"

#include <fcntl.h>
#include <string.h>

#include "orchestrator/config/store.h"
#include "orchestrator/replay.h"

#define STARTED                                                                                    \
	"{\"t\":\"2026-11-30T10:00:00.000Z\",\"type\":\"run.started\",\"command\":\"run\","        \
	"\"task\":\"fix\","                                                                        \
	"\"pid\":7,\"settings\":{\"options\":{},\"context\":{}}}\n"
#define SPAWNED                                                                                    \
	"{\"t\":\"2026-11-30T10:00:01.000Z\",\"type\":\"agent.spawned\",\"agent\":\"a1\",\"key\":" \
	"\"lead\","                                                                                \
	"\"generation\":1,\"pid\":9}\n"
#define SETTLED                                                                                    \
	"{\"t\":\"2026-11-30T10:00:02.000Z\",\"type\":\"call.settled\",\"agent\":\"a1\",\"req\":"  \
	"1,\"fresh\":10,"                                                                          \
	"\"output\":5,\"cost\":0.5}\n"
#define RESERVED                                                                                   \
	"{\"t\":\"2026-11-30T10:00:03.000Z\",\"type\":\"call.reserved\",\"agent\":\"a1\",\"req\":" \
	"2,"                                                                                       \
	"\"tokens\":1000,\"cost\":0.25}\n"
#define REPORT                                                                                     \
	"{\"t\":\"2026-11-30T10:00:04.000Z\",\"type\":\"agent.report\",\"agent\":\"a1\","          \
	"\"generation\":1,"                                                                        \
	"\"call\":\"%s\",\"body\":{\"report\":{\"status\":\"done\",\"summary\":\"s\"}}}\n"

static struct replay *read_text(void **state, const char *text)
{
	AUTO_FREE char *path = file_join(*state, "run.jsonl");
	struct replay *replay = NULL;

	assert_int_equal(file_write_atomic(AT_FDCWD, path, text, strlen(text), 0600, NULL), 0);
	assert_int_equal(replay_read(*state, &replay, NULL), 0);
	return replay;
}

static void test_settles_what_nobody_settled(void **state)
{
	struct replay *r = read_text(state, STARTED SPAWNED SETTLED RESERVED);
	struct replay_agent *a = replay_by_key(r, "lead");

	assert_non_null(a);
	assert_string_equal(a->name, "a1");
	assert_int_equal(a->pid, 9);
	assert_true(a->spawned && !a->ended);
	assert_int_equal(r->unsettled, 1);
	assert_int_equal(r->used.fresh, 1010);
	assert_int_equal(r->used.calls, 2);
	assert_int_equal(r->used.estimated_calls, 1);
	assert_true(r->used.cost > 0.749 && r->used.cost < 0.751);
	assert_int_equal(a->usage.fresh, 1010);
	assert_int_equal(r->elapsed_ms, 3000);
	assert_null(replay_refusal(r, "x"));
	replay_free(r);
}

/* A call that left no byte was given back: nothing counts. */
static void test_released_call_costs_nothing(void **state)
{
	struct replay *r = read_text(state, STARTED SPAWNED RESERVED
				     "{\"type\":\"call.released\",\"agent\":\"a1\",\"req\":2}\n");

	assert_int_equal(r->unsettled, 0);
	assert_int_equal(r->used.fresh, 0);
	replay_free(r);
}

#define ASKED                                                                                      \
	"{\"type\":\"agent.asked\",\"agent\":\"a1\",\"generation\":1,\"call\":\"c1\","             \
	"\"child\":\"a2\",\"key\":\"a1.1.c1\",\"wish\":{\"task\":\"x\"}}\n"
#define CHILD(agent, name)                                                                         \
	"{\"type\":\"agent.child\",\"agent\":\"" agent "\",\"data\":{\"child\":\"" name "\"}}\n"

/* What an agent says of its children is believed of those that it asked for, and makes no agent of a name. */
static void test_ends_are_told_to_who_asked(void **state)
{
	struct replay *r = read_text(state, STARTED SPAWNED ASKED CHILD("a2", "a2")
						    CHILD("a1", "a77") CHILD("a1", "a1"));

	assert_int_equal(r->n_agents, 2);
	assert_false(replay_by_key(r, "a1.1.c1")->told);
	assert_false(replay_by_key(r, "lead")->told);
	replay_free(r);
	r = read_text(state, STARTED SPAWNED ASKED CHILD("a1", "a2"));
	assert_true(replay_by_key(r, "a1.1.c1")->told);
	replay_free(r);
}

static void test_damage_is_isolated_and_counted(void **state)
{
	struct replay *r = read_text(state, STARTED
				     "{\"type\":\"agent.spaw\n" SPAWNED SETTLED SETTLED
				     "garbage\n\n[1]\n{\"type\":\"agent.ended\",\"agent\":\"a1\"");

	assert_int_equal(r->bad_lines, 4);
	assert_int_equal(r->first_bad_line, 2);
	assert_int_equal(r->duplicates, 1);
	assert_int_equal(r->used.fresh, 10);
	assert_false(replay_by_key(r, "lead")->ended);
	replay_free(r);
}

/* The process that restarts is not bound by a report that its predecessor's end made (by-rule). */
static void test_a_restart_forgets_how_it_ended(void **state)
{
	AUTO_FREE char *by_rule =
		mem_printf(STARTED SPAWNED REPORT
			   "{\"type\":\"agent.ended\",\"agent\":\"a1\",\"status\":\"stopped\"}\n"
			   "{\"type\":\"run.resumed\",\"pid\":11}\n%s",
			   "by-rule", SPAWNED);
	/* The second spawn differs from the first, else it would be a duplicate. */
	char *again = strstr(strstr(by_rule, "run.resumed"), "\"pid\":9");
	again[6] = '8';
	struct replay *r = read_text(state, by_rule);
	struct replay_agent *a = replay_by_key(r, "lead");

	assert_null(a->report);
	assert_int_equal(a->status, OUTCOME_NONE);
	assert_int_equal(a->n_effects, 0);
	assert_int_equal(a->pid, 8);
	assert_int_equal(r->resumes, 1);
	assert_int_equal(r->pid, 11);
	replay_free(r);
}

static void test_effects_keep_their_answers(void **state)
{
	AUTO_FREE char *text = mem_printf(
		STARTED SPAWNED REPORT "{\"type\":\"agent.checkpoint\",\"agent\":\"a1\","
				       "\"generation\":1,\"call\":\"k\",\"commit\":\"c1\"}\n"
				       "{\"type\":\"agent.reset_refused\",\"agent\":\"a1\","
				       "\"generation\":1,\"call\":\"reset-1\",\"final\":false,"
				       "\"reasons\":[\"goal: x\"]}\n"
				       "{\"type\":\"agent.reset\",\"agent\":\"a1\",\"generation\":"
				       "1,\"call\":\"reset-2\",\"reason\":\"breaker\","
				       "\"handoff\":\"/h.json\",\"progress\":true,\"chain\":0}\n",
		"t1");
	struct replay *r = read_text(state, text);
	struct replay_agent *a = replay_by_key(r, "lead");

	assert_int_equal(a->n_effects, 4);
	assert_string_equal(a->effects[0].body, "{}");
	assert_non_null(strstr(a->effects[1].body, "c1"));
	assert_false(a->effects[2].ok);
	assert_non_null(strstr(a->effects[2].body, "goal: x"));
	assert_non_null(strstr(a->effects[3].body, "/h.json"));
	assert_true(a->reset);
	assert_int_equal(a->resets.n, 1);
	assert_true(a->resets.list[0].progress);
	assert_string_equal(a->checkpoint, "c1");
	replay_free(r);
}

static void test_what_may_go_on(void **state)
{
	static const struct {
		const char *end;
		const char *refusal; /* NULL: it may */
	} cases[] = {
		{"", NULL},
		{"{\"type\":\"run.finished\",\"status\":\"stopped\",\"resumable\":true}\n", NULL},
		{"{\"type\":\"run.finished\",\"status\":\"succeeded\",\"resumable\":false}\n",
		 "has finished"},
		{"{\"type\":\"run.finished\",\"status\":\"failed\",\"resumable\":false}\n{\"type\":"
		 "\"run.resumed\"}\n",
		 NULL},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		AUTO_FREE char *text = mem_printf("%s%s", STARTED, cases[i].end);
		struct replay *r = read_text(state, text);
		AUTO_FREE char *refusal = replay_refusal(r, "x");

		assert_true((refusal == NULL) == (cases[i].refusal == NULL));
		if (refusal)
			assert_non_null(strstr(refusal, cases[i].refusal));
		replay_free(r);
	}
	struct replay *old = read_text(state, "{\"type\":\"run.started\",\"command\":\"run\"}\n");
	AUTO_FREE char *refusal = replay_refusal(old, "x");
	assert_non_null(strstr(refusal, "did not record its settings"));
	replay_free(old);
}

/* What was recorded holds with its layer's strength; the new command line stands above it. */
static void test_settings_come_back(void **state)
{
	struct settings *first = store_new(), *then = store_new();
	const struct option *cost = option_find("max-cost"), *window = option_find("window"),
			    *paths = option_find("read-paths"), *time = option_find("time-limit");
	size_t n;
	const struct knob *knob = &knob_table(&n)[0];

	assert_int_equal(store_text(first, cost, "2.5", LAYER_USER, "u:1", "/", NULL), 0);
	assert_int_equal(store_text(first, window, "30k", LAYER_COMMAND_LINE, "cl", "/", NULL), 0);
	assert_int_equal(store_text(first, paths, "/a b", LAYER_COMMAND_LINE, "cl", "/", NULL), 0);
	assert_int_equal(store_text(first, time, "90s", LAYER_PROJECT, "p:1", "/", NULL), 0);
	first->knobs[0] =
		(struct knob_value){.layer = LAYER_USER, .number = 77, .origin = mem_strdup("u:2")};
	AUTO_JSON struct json_object *record = settings_record(first);
	AUTO_FREE char *text = mem_strdup(json_object_to_json_string(record));
	AUTO_JSON struct json_object *read = NULL;
	assert_int_equal(json_parse(text, strlen(text), &read, NULL), 0);

	assert_int_equal(store_text(then, window, "9k", LAYER_COMMAND_LINE, "cl", "/", NULL), 0);
	assert_int_equal(store_text(then, cost, "9", LAYER_ENVIRONMENT, "e", "/", NULL), 0);
	assert_int_equal(settings_restore(then, read, "r1", NULL), 0);
	assert_true(settings_double(then, OPT_MAX_COST) == 2.5);
	assert_int_equal(settings_i64(then, OPT_WINDOW), 9000);
	assert_int_equal(settings_i64(then, OPT_TIME_LIMIT), 90000);
	assert_string_equal(settings_list(then, OPT_READ_PATHS)[0], "/a b");
	assert_string_equal(settings_origin(then, OPT_MAX_COST), "u:1, of run r1");
	assert_int_equal(settings_knob(then, knob, NULL), 77);
	assert_int_equal(then->knobs[0].layer, LAYER_USER);
	settings_free(first);
	settings_free(then);
}

/* A person's pause is no time of the run's; limits that were raised meanwhile hold on; a child that a person stopped is
 * not started again. */
static void test_words_of_a_person(void **state)
{
	struct replay *r = read_text(
		state, STARTED
		"{\"t\":\"2026-11-30T10:00:02.000Z\",\"type\":\"run.paused\",\"why\":\"person\"}\n"
		"{\"t\":\"2026-11-30T10:10:00.000Z\",\"type\":\"run.continued\",\"why\":\"person\"}"
		"\n"
		"{\"t\":\"2026-11-30T10:10:01.000Z\",\"type\":\"run.paused\",\"why\":\"budget\"}\n"
		"{\"t\":\"2026-11-30T10:10:02.000Z\",\"type\":\"run.limits\",\"max_cost\":2.5,"
		"\"max_tokens\":0}\n" SPAWNED "{\"t\":\"2026-11-30T10:10:03.000Z\",\"type\":"
		"\"agent.stop_asked\",\"agent\":\"a1\"}\n");
	struct settings *s = store_new();

	assert_int_equal(r->elapsed_ms, 5000);
	assert_int_equal(settings_restore(s, r->settings, "x", NULL), 0);
	assert_true(settings_double(s, OPT_MAX_COST) == 2.5);
	assert_int_equal(settings_i64(s, OPT_MAX_TOKENS), 0);
	assert_true(replay_by_key(r, "lead")->unwanted);
	settings_free(s);
	replay_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		folder_test(test_settles_what_nobody_settled),
		folder_test(test_released_call_costs_nothing),
		folder_test(test_ends_are_told_to_who_asked),
		folder_test(test_damage_is_isolated_and_counted),
		folder_test(test_a_restart_forgets_how_it_ended),
		folder_test(test_effects_keep_their_answers),
		folder_test(test_what_may_go_on),
		folder_test(test_settings_come_back),
		folder_test(test_words_of_a_person),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
