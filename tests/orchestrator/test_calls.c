/*
 * test_calls.c - who may call a model and who waits: budgets of run, stage and agent, pauses (I11, X6, X8).
 *
 * The parent's side without processes: the test says what agents would send, and sees what a gateway would get.
 */
#include "tests/base/test_base.h"

#include <string.h>
#include <sys/socket.h>

#include "orchestrator/calls.h"
#include "orchestrator/config/store.h"
#include "orchestrator/replay.h"
#include "orchestrator/run.h"

#define AGENTS 3

struct seat { /* an agent, and how it hears the parent */
	struct agent_record *agent;
	struct child child;
	struct channel *theirs;
	char heard[200]; /* the last "waiting REASON" or "end CLASS LIMIT" */
};

struct scene {
	struct run run;
	struct model model;
	struct role role;
	struct seat seats[AGENTS];
	struct channel *gateway, *to_gateway;
	int64_t sent; /* requests that reached the gateway */
	char *journal;
};

static int to_agent(struct channel *ch, const struct frame *frame, void *arg, struct err *err)
{
	struct seat *seat = arg;

	if (frame->type == FRAME_WAITING)
		snprintf(seat->heard, sizeof(seat->heard), "waiting %s",
			 json_str(frame->header, "reason", ""));
	else if (frame->type == FRAME_END)
		snprintf(seat->heard, sizeof(seat->heard), "end %s %lld",
			 json_str(frame->header, "class", ""),
			 (long long)json_i64(frame->header, "limit", 0));
	return 0;
}

static int at_gateway(struct channel *ch, const struct frame *frame, void *arg, struct err *err)
{
	((struct scene *)arg)->sent += frame->type == FRAME_REQUEST;
	return 0;
}

static int nothing(struct channel *ch, const struct frame *frame, void *arg, struct err *err)
{
	return 0;
}

static void sit(struct scene *s, int i, struct agent_record *spawner, const char *stage)
{
	struct seat *seat = &s->seats[i];
	struct agent_record *agent = mem_alloc(sizeof(*agent));
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	seat->child.channel = channel_new(pair[0], pair[0], FROM_A, nothing, seat);
	seat->theirs = channel_new(pair[1], pair[1], FROM_P, to_agent, seat);
	seat->agent = seat->child.arg = agent;
	*agent = (struct agent_record){.run = &s->run,
				       .role = &s->role,
				       .model = &s->model,
				       .generation = 1,
				       .state = AGENT_WORKING,
				       .child = &seat->child,
				       .family = {.spawner = spawner}};
	snprintf(agent->name, sizeof(agent->name), "a%d", i + 1);
	run_budget_init(&agent->budget, -1, 0);
	agent->budget.above = spawner ? &spawner->budget
			      : stage ? stage_budget(&s->run, stage)
				      : &s->run.budget;
	MEM_GROW(s->run.agents.list, s->run.agents.cap, s->run.agents.count + 1);
	s->run.agents.list[s->run.agents.count++] = agent;
}

/* a1 of stage "build" starts a2; a3 is of no stage. */
static int setup(void **state)
{
	struct scene *s = mem_alloc(sizeof(*s));
	void *folder = NULL;
	int pair[2];

	assert_int_equal(folder_setup(&folder), 0);
	s->run.dir = folder;
	s->journal = file_join(folder, "run.jsonl");
	assert_int_equal(journal_open(s->journal, &s->run.journal, NULL), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	s->to_gateway = channel_new(pair[0], pair[0], FROM_G, nothing, s);
	s->gateway = channel_new(pair[1], pair[1], FROM_P, at_gateway, s);
	s->run.relay = call_relay_new();
	call_relay_gateway(s->run.relay, s->to_gateway);
	s->run.settings = store_new();
	s->model = (struct model){
		.provider = (char *)"p", .name = (char *)"m", .api = MODEL_API_ANTHROPIC};
	s->run.model = &s->model;
	run_budget_init(&s->run.budget, -1, 0);
	sit(s, 0, NULL, "build");
	sit(s, 1, s->seats[0].agent, NULL);
	sit(s, 2, NULL, NULL);
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;
	void *folder = s->run.dir;

	for (int i = 0; i < AGENTS; i++) {
		channel_free(s->seats[i].child.channel);
		channel_free(s->seats[i].theirs);
		free(s->seats[i].agent);
	}
	call_relay_free(s->run.relay);
	channel_free(s->gateway);
	channel_free(s->to_gateway);
	journal_close(s->run.journal);
	stage_budgets_release(&s->run.stages);
	settings_free(s->run.settings);
	free(s->run.agents.list);
	free(s->journal);
	free(s);
	return folder_teardown(&folder);
}

static void turn(struct scene *s)
{
	struct channel *ends[] = {s->to_gateway, s->seats[0].child.channel,
				  s->seats[1].child.channel, s->seats[2].child.channel};
	struct err err = ERR_INIT;

	while (journal_pending(s->run.journal))
		assert_int_equal(journal_commit(s->run.journal, NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		channel_on_writable(ends[i], &err);
	channel_on_readable(s->gateway, &err);
	for (int i = 0; i < AGENTS; i++)
		channel_on_readable(s->seats[i].theirs, &err);
}

static void from(struct scene *s, int i, enum frame_type type, const char *fields)
{
	AUTO_FREE char *text = mem_printf("{%s}", fields);
	struct frame frame = {.type = type};

	assert_int_equal(json_parse(text, strlen(text), &frame.header, NULL), 0);
	assert_int_equal(calls_from_agent(s->seats[i].agent, &frame, NULL), 0);
	json_object_put(frame.header);
	turn(s);
}

static void ask(struct scene *s, int i, int req, const char *class, int length, int estimate,
		int max_tokens)
{
	AUTO_FREE char *fields = mem_printf("\"req\":%d,\"class\":\"%s\",\"provider\":\"p\","
					    "\"model\":\"m\",\"api\":\"anthropic\","
					    "\"length\":%d,\"estimate\":%d,\"max_tokens\":%d",
					    req, class, length, estimate, max_tokens);

	s->seats[i].heard[0] = '\0';
	from(s, i, FRAME_REQUEST, fields);
}

static void settle(struct scene *s, int i, int req, int input, int output)
{
	AUTO_FREE char *fields = mem_printf("\"req\":%d,\"input\":%d,\"cache_read\":0,"
					    "\"cache_write\":0,\"output\":%d",
					    req, input, output);

	from(s, i, FRAME_USAGE, fields);
}

static void test_an_estimate_far_too_low_is_raised(void **state)
{
	struct scene *s = *state;

	ask(s, 0, 1, "main", 80000, 5, 1000);
	assert_int_equal(s->sent, 1);
	assert_int_equal(s->seats[0].agent->calls[0].reservation.tokens, 11000);
	ask(s, 2, 1, "main", 80000, 30000, 1000);
	assert_int_equal(s->seats[2].agent->calls[0].reservation.tokens, 31000);
}

/* X8: wait for settlements; then less output; then the tree pauses. A call that nobody waits for does none of it. */
static void test_the_order_of_X8(void **state)
{
	struct scene *s = *state;

	s->run.budget.max_tokens = 10000;
	ask(s, 0, 1, "main", 0, 4000, 2000);
	ask(s, 2, 1, "main", 0, 4000, 2000);
	assert_string_equal(s->seats[2].heard, "waiting budget");
	ask(s, 0, 2, "background", 0, 4000, 2000);
	assert_string_equal(s->seats[0].heard, "end budget 0");
	assert_int_equal(s->sent, 1);
	settle(s, 0, 1, 4000, 500); /* 4,500 are gone: the other one has room for 1,500 */
	assert_string_equal(s->seats[2].heard, "end budget 1500");
	ask(s, 2, 2, "main", 0, 4000, 1500);
	assert_int_equal(s->sent, 2);
	settle(s, 2, 2, 4000, 1500);
	assert_false(run_is_paused(&s->run));
	ask(s, 2, 3, "main", 0, 4000, 1500);
	assert_string_equal(s->seats[2].heard, "waiting budget");
	assert_int_equal(s->run.pause.why, PAUSE_BUDGET);
	assert_ptr_equal(calls_short_of(s->seats[2].agent), &s->run.budget);
	assert_int_equal(s->run.budget.used.calls, 2);
}

/* What agents of a stage and those that they start spend together; others are not held by it. */
static void test_a_stage_has_a_budget(void **state)
{
	struct scene *s = *state;

	stage_budget_limit(&s->run, "build", -1, 10000);
	ask(s, 0, 1, "main", 0, 2000, 2000);
	settle(s, 0, 1, 2000, 2000);
	ask(s, 1, 1, "main", 0, 2000, 2000);
	settle(s, 1, 1, 2000, 2000);
	assert_int_equal(stage_budget(&s->run, "build")->used.output, 4000);
	assert_int_equal(s->run.budget.used.output, 4000);
	ask(s, 1, 2, "main", 0, 2000, 2000);
	assert_string_equal(s->seats[1].heard, "waiting budget");
	assert_ptr_equal(calls_short_of(s->seats[1].agent), stage_budget(&s->run, "build"));
	ask(s, 2, 1, "main", 0, 20000, 2000);
	assert_int_equal(s->sent, 3);
}

/* Of a run that goes on a stage begins with what its agents spent, the run with what all did: nothing counts twice. */
static void test_a_stage_remembers(void **state)
{
	struct scene *s = *state;
	struct replay_agent one = {.stage = (char *)"old", .usage = {.output = 700}};
	struct replay_agent two = {.stage = NULL, .usage = {.output = 50}};
	struct replay_agent *all[] = {&one, &two};
	struct replay past = {.agents = all, .n_agents = 2};

	s->run.replay = &past;
	s->run.budget.used.output = 750;
	assert_int_equal(stage_budget(&s->run, "old")->used.output, 700);
	assert_int_equal(s->run.budget.used.output, 750);
	s->run.replay = NULL;
}

static void test_a_pause_holds_a_family(void **state)
{
	struct scene *s = *state;

	assert_true(agent_pause(s->seats[0].agent));
	assert_false(agent_pause(s->seats[0].agent));
	for (int i = 0; i < AGENTS; i++)
		ask(s, i, 1, "main", 0, 100, 1000);
	assert_string_equal(s->seats[0].heard, "waiting pause");
	assert_string_equal(s->seats[1].heard, "waiting pause");
	assert_int_equal(s->sent, 1);
	assert_true(run_pause(&s->run, PAUSE_PERSON, "x"));
	assert_true(agent_unpause(s->seats[0].agent));
	turn(s);
	assert_int_equal(s->sent, 1); /* the run is held too */
	assert_true(run_unpause(&s->run, PAUSE_PERSON));
	turn(s);
	assert_int_equal(s->sent, 3);
	assert_false(calls_wait(s->seats[0].agent));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_an_estimate_far_too_low_is_raised, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_the_order_of_X8, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_stage_has_a_budget, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_stage_remembers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_pause_holds_a_family, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
