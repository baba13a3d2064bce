/*
 * test_agent_frames.c - reports and checkpoints of an agent that may be in anybody's hands.
 *
 * The parent's side of one agent without its process: the test plays the agent on one channel and
 * baton-git on another. Shown: an effect is on record before it is answered and is carried out once
 * per (agent, generation, call id); a report of a wrong shape is that child's failure (I12, A4).
 */
#include "tests/base/test_base.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "orchestrator/agent_frames.h"
#include "orchestrator/config/store.h"
#include "orchestrator/hooks.h"
#include "orchestrator/run.h"

struct scene {
	struct run run;
	struct agent_record *agent;
	struct role role;
	struct child child;
	struct channel *theirs; /* the agent's end */
	struct channel *git;	/* baton-git's end */
	char *journal;
	int acks;
	bool ok;
	char answer[400];
	int git_calls;
	int64_t git_id;
	char git_op[20];
};

static int from_parent(struct channel *ch, const struct frame *frame, void *arg, struct err *err)
{
	struct scene *s = arg;

	assert_int_equal(frame->type, FRAME_ACK);
	s->acks++;
	s->ok = json_flag(frame->header, "ok", false);
	snprintf(s->answer, sizeof(s->answer), "%s %.*s", json_str(frame->header, "call", ""),
		 (int)frame->len, frame->body);
	return 0;
}

static int to_git(struct channel *ch, const struct frame *frame, void *arg, struct err *err)
{
	struct scene *s = arg;

	s->git_calls++;
	s->git_id = json_i64(frame->header, "id", -1);
	snprintf(s->git_op, sizeof(s->git_op), "%s", json_str(frame->header, "op", ""));
	return 0;
}

static int from_git(struct channel *ch, const struct frame *frame, void *arg, struct err *err)
{
	struct scene *s = arg;

	return git_client_frame(s->run.git_client, frame, err);
}

static int from_agent(struct channel *ch, const struct frame *frame, void *arg, struct err *err)
{
	struct scene *s = arg;

	return agent_on_frame(&s->child, frame, err);
}

static int setup(void **state)
{
	struct scene *s = mem_alloc(sizeof(*s));
	struct agent_record *agent = mem_alloc(sizeof(*agent));
	int pair[2], git[2];
	void *folder = NULL;

	assert_int_equal(folder_setup(&folder), 0);
	s->run.dir = folder;
	s->journal = file_join(folder, "run.jsonl");
	assert_int_equal(journal_open(s->journal, &s->run.journal, NULL), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, git), 0);
	s->child.channel = channel_new(pair[0], pair[0], FROM_A, from_agent, s);
	s->theirs = channel_new(pair[1], pair[1], FROM_P, from_parent, s);
	s->git = channel_new(git[1], git[1], FROM_P, to_git, s);
	s->run.git = mem_alloc(sizeof(*s->run.git));
	s->run.git->channel = channel_new(git[0], git[0], FROM_W, from_git, s);
	s->run.git_client = git_client_new(s->run.git->channel);
	s->run.settings = store_new();
	s->child.arg = s->agent = agent;
	*agent = (struct agent_record){.run = &s->run,
				       .name = "a1",
				       .generation = 1,
				       .role = &s->role,
				       .gen_dir = s->run.dir,
				       .state = AGENT_WORKING,
				       .child = &s->child,
				       .said_hello = true,
				       .worktree_made = true,
				       .worktree = mem_strdup("/w"),
				       .git_dir = mem_strdup("/g"),
				       .branch = mem_strdup("b"),
				       .base = mem_strdup("0")};
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;
	void *folder = s->run.dir;

	journal_close(s->run.journal);
	effects_release(&s->agent->effects);
	settings_free(s->run.settings);
	json_object_put(s->agent->report);
	json_object_put(s->agent->output_schema);
	free(s->agent->worktree);
	free(s->agent->git_dir);
	free(s->agent->branch);
	free(s->agent->base);
	free(s->agent);
	git_client_free(s->run.git_client);
	channel_free(s->run.git->channel);
	free(s->run.git);
	channel_free(s->git);
	channel_free(s->child.channel);
	channel_free(s->theirs);
	free(s->journal);
	free(s);
	return folder_teardown(&folder);
}

/* One frame of the agent's. The code of the failure that it is to the parent. */
static enum err_code say(struct scene *s, enum frame_type type, int generation, const char *call,
			 const char *body)
{
	struct err err = ERR_INIT;

	channel_sendf(s->theirs, type, body, strlen(body), "\"generation\":%d,\"call\":\"%s\"",
		      generation, call);
	return channel_on_readable(s->child.channel, &err) < 0 ? err.code : ERR_NONE;
}

/* What a commit of the journal lets out. */
static void commit(struct scene *s)
{
	assert_int_equal(journal_commit(s->run.journal, NULL), 0);
	assert_int_equal(channel_on_readable(s->theirs, NULL), 0);
}

static int records(struct scene *s, const char *type)
{
	AUTO_BUF struct buf text = BUF_INIT;
	AUTO_FREE char *mark = mem_printf("\"type\":\"%s\"", type);
	int n = 0;

	assert_int_equal(file_read(AT_FDCWD, s->journal, 1 << 20, &text, NULL), 0);
	for (const char *p = buf_str(&text); (p = strstr(p, mark)); p++)
		n++;
	return n;
}

#define REPORT(fields) "{\"report\":{\"status\":\"done\",\"summary\":\"It works.\"" fields "}}"

static void test_a_report_is_recorded_before_its_answer(void **state)
{
	struct scene *s = *state;

	assert_int_equal(say(s, FRAME_REPORT, 1, "c1", REPORT("")), ERR_NONE);
	assert_int_equal(channel_on_readable(s->theirs, NULL), 0);
	assert_int_equal(s->acks, 0);
	commit(s);
	assert_int_equal(s->acks, 1);
	assert_true(s->ok);
	assert_string_equal(s->answer, "c1 {}");
	assert_int_equal(records(s, "agent.report"), 1);
}

static void test_the_same_key_has_one_effect(void **state)
{
	struct scene *s = *state;

	assert_int_equal(say(s, FRAME_REPORT, 1, "c1", REPORT("")), ERR_NONE);
	commit(s);
	/* Another body under the same key: the first stands. */
	assert_int_equal(say(s, FRAME_REPORT, 1, "c1", REPORT(",\"commits\":[\"abc\"]")), ERR_NONE);
	commit(s);
	assert_int_equal(s->acks, 2);
	assert_string_equal(s->answer, "c1 {}");
	assert_int_equal(records(s, "agent.report"), 1);
	assert_int_equal(json_len(json_arr(s->agent->report, "commits")), 0);
}

static void test_keys_of_others(void **state)
{
	struct scene *s = *state;

	assert_int_equal(say(s, FRAME_REPORT, 2, "c1", REPORT("")), ERR_INVALID);
	assert_int_equal(records(s, "agent.report"), 0);
}

static void test_a_key_is_of_one_kind(void **state)
{
	struct scene *s = *state;

	assert_int_equal(say(s, FRAME_REPORT, 1, "c1", REPORT("")), ERR_NONE);
	assert_int_equal(say(s, FRAME_CHECKPOINT, 1, "c1", "{}"), ERR_INVALID);
	assert_int_equal(s->git_calls, 0);
}

/* Each is a protocol failure of the child, and none gets into the journal. */
static void test_malformed_reports(void **state)
{
	static const char *const bodies[] = {
		"[]",
		"{}",
		"{\"report\":[]}",
		"{\"report\":{\"status\":\"done\"}}",
		"{\"report\":{\"status\":\"whatever\",\"summary\":\"x\"}}",
		"{\"report\":{\"status\":\"done\",\"summary\":\"  \"}}",
		REPORT(",\"tests\":[{\"command\":\"x\",\"result\":\"\\u001b[2J\"}]"),
		REPORT(",\"findings\":[{\"line\":-7}]"),
		REPORT(",\"commits\":[7]"),
	};
	struct scene *s = *state;

	for (size_t i = 0; i < ARRAY_SIZE(bodies); i++) {
		char call[8];
		struct err err = ERR_INIT;
		AUTO_JSON struct json_object *header = json_object_new_object();
		struct frame frame = {.type = FRAME_REPORT,
				      .header = header,
				      .body = bodies[i],
				      .len = strlen(bodies[i])};

		snprintf(call, sizeof(call), "c%zu", i);
		json_set_i64(header, "generation", 1);
		json_set_str(header, "call", call);
		assert_int_equal(agent_on_frame(&s->child, &frame, &err), -1);
		assert_int_equal(err.code, ERR_INVALID);
	}
	assert_null(s->agent->report);
	commit(s);
	assert_int_equal(s->acks, 0);
	assert_int_equal(records(s, "agent.report"), 0);
}

/* The role's schema is asked of a whole report, not of one that says that it is cut. */
static void test_the_roles_schema(void **state)
{
	static const char schema[] = "{\"type\":\"object\",\"properties\":{\"n\":{\"type\":"
				     "\"integer\"}},\"required\":[\"n\"]}";
	struct scene *s = *state;

	assert_int_equal(json_parse(schema, strlen(schema), &s->agent->output_schema, NULL), 0);
	assert_int_equal(say(s, FRAME_REPORT, 1, "c1", REPORT(",\"data\":{\"n\":1}")), ERR_NONE);
	assert_int_equal(say(s, FRAME_REPORT, 1, "c2", REPORT(",\"by_rule\":true")), ERR_NONE);
	assert_int_equal(say(s, FRAME_REPORT, 1, "c3", REPORT(",\"truncated\":true")), ERR_NONE);
	assert_int_equal(say(s, FRAME_REPORT, 1, "c4", REPORT("")), ERR_INVALID);
	assert_int_equal(s->agent->effects.open, 0); /* or the agent's work is never collected */
}

static void git_answers(struct scene *s, bool ok, const char *body)
{
	channel_sendf(s->git, FRAME_GIT_DONE, body, strlen(body), "\"id\":%lld,\"ok\":%s%s",
		      (long long)s->git_id, ok ? "true" : "false", ok ? "" : ",\"code\":\"io\"");
	assert_int_equal(channel_on_readable(s->run.git->channel, NULL), 0);
}

static void test_a_checkpoint_and_its_repetition(void **state)
{
	struct scene *s = *state;

	assert_int_equal(say(s, FRAME_CHECKPOINT, 1, "k1", "{\"reason\":\"r\"}"), ERR_NONE);
	assert_int_equal(channel_on_readable(s->git, NULL), 0);
	assert_string_equal(s->git_op, "checkpoint");
	/* Asked again before there is an answer: one effect, one answer. */
	assert_int_equal(say(s, FRAME_CHECKPOINT, 1, "k1", "{\"reason\":\"r\"}"), ERR_NONE);
	git_answers(s, true, "{\"commit\":\"abc\",\"changed\":true}");
	commit(s);
	assert_int_equal(s->acks, 1);
	assert_true(s->ok);
	assert_string_equal(s->answer, "k1 {\"commit\":\"abc\"}");
	assert_int_equal(say(s, FRAME_CHECKPOINT, 1, "k1", "{\"reason\":\"r\"}"), ERR_NONE);
	commit(s);
	assert_int_equal(s->acks, 2);
	assert_string_equal(s->answer, "k1 {\"commit\":\"abc\"}");
	assert_int_equal(channel_on_readable(s->git, NULL), 0);
	assert_int_equal(s->git_calls, 1);
	assert_int_equal(records(s, "agent.checkpoint"), 1);
	assert_int_equal(s->agent->effects.open, 0);
}

static void checkpoint_fails(struct scene *s, const char *call, bool ok, const char *answer)
{
	assert_int_equal(say(s, FRAME_CHECKPOINT, 1, call, "{}"), ERR_NONE);
	assert_int_equal(channel_on_readable(s->git, NULL), 0);
	git_answers(s, ok, answer);
	commit(s);
	assert_false(s->ok);
	assert_non_null(strstr(s->answer, "no room"));
	assert_non_null(strstr(s->answer, "\"commit\":null"));
}

static void test_a_failed_checkpoint_is_not_ok(void **state)
{
	struct scene *s = *state;

	checkpoint_fails(s, "k1", false, "{\"message\":\"no room\"}");
	checkpoint_fails(s, "k2", true, "{\"commit\":null,\"kept\":\"no room\"}");
	assert_int_equal(records(s, "agent.checkpoint"), 2);
	/* The same key again: the same answer, and no second try. */
	assert_int_equal(say(s, FRAME_CHECKPOINT, 1, "k1", "{}"), ERR_NONE);
	commit(s);
	assert_false(s->ok);
	assert_int_equal(s->acks, 3);
	assert_int_equal(s->git_calls, 2);
}

static void test_one_checkpoint_at_a_time(void **state)
{
	struct scene *s = *state;

	assert_int_equal(say(s, FRAME_CHECKPOINT, 1, "k1", "{}"), ERR_NONE);
	assert_int_equal(say(s, FRAME_CHECKPOINT, 1, "k2", "{}"), ERR_NONE);
	commit(s);
	assert_false(s->ok);
	assert_int_equal(channel_on_readable(s->git, NULL), 0);
	assert_int_equal(s->git_calls, 1);
	git_answers(s, true, "{\"commit\":\"abc\"}");
}

/* ---- hooks: what a question must be; that commands run is tests/integration/test_hooks.py ---- */

static enum err_code ask_hook(struct scene *s, int generation, const char *event, const char *body)
{
	struct err err = ERR_INIT;

	channel_sendf(s->theirs, FRAME_HOOK, body, strlen(body),
		      "\"generation\":%d,\"call\":\"h1\",\"event\":\"%s\",\"subject\":\"shell\"",
		      generation, event);
	return channel_on_readable(s->child.channel, &err) < 0 ? err.code : ERR_NONE;
}

static void test_a_hook_without_commands_is_answered(void **state)
{
	struct scene *s = *state;

	s->agent->ready = READY_OK;
	assert_int_equal(ask_hook(s, 1, "PreToolUse", "{}"), ERR_NONE);
	assert_int_equal(channel_on_readable(s->theirs, NULL), 0);
	assert_string_equal(s->answer, "h1 {\"texts\":[]}");
	assert_null(s->agent->hook);
	/* Its key is not kept: the same question again is a new one. */
	assert_int_equal(ask_hook(s, 1, "PreToolUse", "{}"), ERR_NONE);
	assert_int_equal(channel_on_readable(s->theirs, NULL), 0);
	assert_int_equal(s->acks, 2);
	assert_int_equal(s->agent->effects.count, 0);
}

/* Commands look at the worktree, so a question waits for it; the end of the agent ends the question. */
static void test_a_hook_waits_for_the_worktree(void **state)
{
	struct scene *s = *state;

	assert_int_equal(ask_hook(s, 1, "SessionStart", "{}"), ERR_NONE);
	assert_non_null(s->agent->hook);
	s->agent->ready = READY_OK;
	hooks_worktree_ready(s->agent);
	assert_null(s->agent->hook);
	assert_int_equal(channel_on_readable(s->theirs, NULL), 0);
	assert_int_equal(s->acks, 1);
	s->agent->ready = READY_UNKNOWN;
	assert_int_equal(ask_hook(s, 1, "SessionStart", "{}"), ERR_NONE);
	hooks_agent_gone(s->agent);
	assert_null(s->agent->hook);
}

static void test_hooks_of_a_wrong_form(void **state)
{
	static const struct {
		int generation;
		const char *event, *body;
	} cases[] = {{2, "PreToolUse", "{}"},
		     {1, "Stop", "{}"},
		     {1, "PreToolUse", "[]"},
		     {1, "PreToolUse", "{"},
		     {1, "", "{}"}};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct scene *s = *state;

		assert_int_equal(ask_hook(s, cases[i].generation, cases[i].event, cases[i].body),
				 ERR_INVALID);
		assert_null(s->agent->hook);
		assert_int_equal(s->acks, 0);
		teardown(state);
		setup(state);
	}
}

/* An agent that asks twice could pile commands up. */
static void test_one_hook_at_a_time(void **state)
{
	struct scene *s = *state;

	assert_int_equal(ask_hook(s, 1, "PreToolUse", "{}"), ERR_NONE);
	assert_int_equal(ask_hook(s, 1, "PostToolUse", "{}"), ERR_INVALID);
	hooks_agent_gone(s->agent);
}

/* Price and budget are those of its own model, so no other may be asked for; what goes into a header
 * is a word. */
static void test_requests_of_another_service(void **state)
{
	static const struct {
		const char *provider, *model, *api, *beta;
	} rows[] = {
		{"p", "other", "openai", ""},
		{"other", "m", "openai", ""},
		{"p", "m", "anthropic", ""},
		{"p", "m", "openai", "x\\r\\nauthorization: y"},
	};
	struct scene *s = *state;
	struct model model = {
		.provider = (char[]){"p"}, .name = (char[]){"m"}, .api = MODEL_API_OPENAI};

	s->agent->model = &model;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		AUTO_JSON struct json_object *header = json_object_new_object();
		struct frame frame = {.type = FRAME_REQUEST, .header = header};
		struct err err = ERR_INIT;

		json_set_i64(header, "req", 1);
		json_set_str(header, "provider", rows[i].provider);
		json_set_str(header, "model", rows[i].model);
		json_set_str(header, "api", rows[i].api);
		json_set_str(header, "beta", rows[i].beta);
		assert_int_equal(agent_on_frame(&s->child, &frame, &err), -1);
		assert_non_null(strstr(err.message, "than its own"));
	}
}

#define scene_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

/* X14: no agent asks without an end, but a job of many generations does not run out of effects. */
static void test_effects_are_bounded_by_generation(void **state)
{
	struct scene *s = *state;
	AUTO_JSON struct json_object *header = json_object_new_object();
	const struct frame frame = {.type = FRAME_CHECKPOINT, .header = header};
	struct effect *effect = NULL;
	struct err e = ERR_INIT;

	s->agent->generation = 1;
	json_set_i64(header, "generation", 1);
	for (int i = 0; i < 10000; i++) {
		AUTO_FREE char *call = mem_printf("ckpt-%d", i);
		json_set_str(header, "call", call);
		assert_int_equal(effect_begin(s->agent, &frame, &effect, &e), 1);
	}
	json_set_str(header, "call", "one more");
	assert_int_equal(effect_begin(s->agent, &frame, &effect, &e), -1);
	assert_int_equal(e.code, ERR_TOO_LARGE);
	s->agent->generation = 2;
	json_set_i64(header, "generation", 2);
	assert_int_equal(effect_begin(s->agent, &frame, &effect, &e), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scene_test(test_a_report_is_recorded_before_its_answer),
		scene_test(test_the_same_key_has_one_effect),
		scene_test(test_keys_of_others),
		scene_test(test_a_key_is_of_one_kind),
		scene_test(test_malformed_reports),
		scene_test(test_the_roles_schema),
		scene_test(test_a_checkpoint_and_its_repetition),
		scene_test(test_a_failed_checkpoint_is_not_ok),
		scene_test(test_one_checkpoint_at_a_time),
		scene_test(test_a_hook_without_commands_is_answered),
		scene_test(test_a_hook_waits_for_the_worktree),
		scene_test(test_hooks_of_a_wrong_form),
		scene_test(test_one_hook_at_a_time),
		scene_test(test_requests_of_another_service),
		scene_test(test_effects_are_bounded_by_generation),
	};
	return cmocka_run_group_tests_name("orchestrator/agent_frames", tests, NULL, NULL);
}
