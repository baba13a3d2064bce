/*
 * test_agent_reset.c - the parent's side of a Context Reset (R1, R4, R5).
 *
 * The test plays the agent on one channel and baton-git on another. Shown: a document is completed from git and checked;
 * what is refused says why; what is accepted is on record before its answer; chains without progress end.
 */
#include "tests/base/test_base.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "handoff/document.h"
#include "orchestrator/agent_frames.h"
#include "orchestrator/agent_reset.h"
#include "orchestrator/config/store.h"
#include "orchestrator/run.h"

#define C1 "1111111111111111111111111111111111111111"
#define C2 "2222222222222222222222222222222222222222"
#define T1 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define T2 "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define B1 "cccccccccccccccccccccccccccccccccccccccc"

struct scene {
	struct run run;
	struct agent_record *agent;
	struct role role;
	struct model model;
	struct child child, git_child;
	struct channel *theirs, *git;
	int acks;
	bool ok;
	struct buf answer;
	const char *head, *head_tree; /* what baton-git says of the branch */
};

static int from_parent(struct channel *ch, const struct frame *frame, void *arg, struct err *err)
{
	struct scene *s = arg;

	s->acks++;
	s->ok = json_flag(frame->header, "ok", false);
	buf_clear(&s->answer);
	buf_add(&s->answer, frame->body, frame->len);
	return 0;
}

static char *git_answer(const struct scene *s, const char *op)
{
	if (strcmp(op, "checkpoint") == 0)
		return mem_strdup("{\"commit\":\"" C2 "\",\"kept\":null}");
	if (strcmp(op, "status") == 0)
		return mem_printf("{\"head\":\"%s\",\"base_tree\":\"" T1
				  "\",\"stat\":\" a.c | 1 +\","
				  "\"commits\":[{\"id\":\"%s\",\"subject\":\"Do a\"}],"
				  "\"trees\":[{\"id\":\"%s\",\"tree\":\"%s\",\"baton\":false}]}",
				  s->head, s->head, s->head, s->head_tree);
	return mem_printf("{\"commits\":{\"%s\":\"on\"},\"files\":{\"a.c\":\"" B1
			  "\",\"gone.c\":\"\"},\"names\":{}}",
			  s->head);
}

static int to_git(struct channel *ch, const struct frame *frame, void *arg, struct err *err)
{
	struct scene *s = arg;
	AUTO_FREE char *body = git_answer(s, json_str(frame->header, "op", ""));

	channel_sendf(s->git, FRAME_GIT_DONE, body, strlen(body), "\"id\":%lld,\"ok\":true",
		      (long long)json_i64(frame->header, "id", 0));
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
	AUTO_FREE char *journal = file_join(folder, "run.jsonl");
	assert_int_equal(journal_open(journal, &s->run.journal, NULL), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, git), 0);
	s->child.channel = channel_new(pair[0], pair[0], FROM_A, from_agent, s);
	s->theirs = channel_new(pair[1], pair[1], FROM_P, from_parent, s);
	s->git = channel_new(git[1], git[1], FROM_P, to_git, s);
	s->git_child.channel = channel_new(git[0], git[0], FROM_W, from_git, s);
	s->run.git = &s->git_child;
	s->run.git_client = git_client_new(s->git_child.channel);
	s->run.settings = store_new();
	s->run.provider = mem_strdup("p");
	s->run.repository = json_object_new_object();
	s->role.name = mem_strdup("lead");
	s->model.name = mem_strdup("m");
	s->model.window = 200000;
	snprintf(s->run.id, sizeof(s->run.id), "r1");
	s->head = C1;
	s->head_tree = T2;
	s->child.arg = s->agent = agent;
	*agent = (struct agent_record){.run = &s->run,
				       .name = "a1",
				       .generation = 1,
				       .role = &s->role,
				       .model = &s->model,
				       .dir = file_join(folder, "a1"),
				       .gen_dir = file_join(folder, "a1/1"),
				       .state = AGENT_WORKING,
				       .child = &s->child,
				       .worktree_made = true,
				       .worktree = mem_strdup("/w"),
				       .git_dir = mem_strdup("/g"),
				       .branch = mem_strdup("b"),
				       .base = mem_strdup(T1)};
	assert_int_equal(file_mkdirs(agent->gen_dir, 0700, NULL), 0);
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;
	void *folder = s->run.dir;
	char *own[] = {s->agent->dir,	 s->agent->gen_dir, s->agent->worktree, s->agent->git_dir,
		       s->agent->branch, s->agent->base,    s->agent->no_reset, s->run.provider,
		       s->role.name,	 s->model.name};

	journal_close(s->run.journal);
	effects_release(&s->agent->effects);
	resets_release(&s->agent->resets);
	settings_free(s->run.settings);
	json_object_put(s->run.repository);
	for (size_t i = 0; i < ARRAY_SIZE(own); i++)
		free(own[i]);
	free(s->agent);
	git_client_free(s->run.git_client);
	channel_free(s->git_child.channel);
	channel_free(s->git);
	channel_free(s->child.channel);
	channel_free(s->theirs);
	buf_release(&s->answer);
	free(s);
	return folder_teardown(&folder);
}

/* A document that passes; `action` is what it would do first. */
static struct handoff *document(const char *action)
{
	struct handoff *h = handoff_new();
	struct handoff_statement *st;

	handoff_add(h, HANDOFF_GOAL, HANDOFF_FROM_USER, "Make a.c right.", 15);
	st = handoff_add(h, HANDOFF_POINT, HANDOFF_FROM_RECORD, "in a.c, the test fails", 22);
	st->file = mem_strdup("a.c");
	st = handoff_add(h, HANDOFF_FAILURES, HANDOFF_FROM_RECORD, "make test failed", 16);
	st->command = mem_strdup("make test");
	st->has_exit = true;
	st->exit_code = 2;
	st->output = mem_strdup("a.c:3: wrong");
	st = handoff_add(h, HANDOFF_FIRST_ACTION, HANDOFF_FROM_MODEL, action, strlen(action));
	st->file = mem_strdup("a.c");
	st->command = mem_strdup("make test");
	st = handoff_add(h, HANDOFF_FILES, HANDOFF_FROM_RECORD, "changed", 7);
	st->file = mem_strdup("a.c");
	st->state = HANDOFF_CHANGED;
	return h;
}

static void ask(struct scene *s, const char *call, struct handoff *h)
{
	AUTO_JSON struct json_object *body = json_object_new_object();
	AUTO_BUF struct buf text = BUF_INIT;

	json_set_str(body, "reason", "breaker");
	json_set_str(body, "why", "three summaries failed");
	json_set_bool(body, "facts_only", h->facts_only);
	json_set(body, "handoff", handoff_to_json(h));
	json_write(&text, body);
	channel_sendf(s->theirs, FRAME_RESET, text.data, text.len,
		      "\"generation\":%lld,\"call\":\"%s\"", (long long)s->agent->generation, call);
	assert_int_equal(channel_on_readable(s->child.channel, NULL), 0);
	for (int i = 0; i < 3 && s->agent->effects.open > 0; i++) {
		assert_int_equal(channel_on_readable(s->git, NULL), 0);
		assert_int_equal(channel_on_readable(s->git_child.channel, NULL), 0);
	}
	assert_int_equal(s->agent->effects.open, 0);
	int before = s->acks;
	assert_int_equal(journal_commit(s->run.journal, NULL), 0);
	assert_int_equal(channel_on_readable(s->theirs, NULL), 0);
	assert_int_equal(s->acks, before + 1);
	handoff_free(h);
}

static void expect(const struct scene *s, bool ok, const char *part)
{
	if (s->ok != ok || !strstr(s->answer.data, part))
		fail_msg("ok %d, '%s' lacks '%s'", s->ok, s->answer.data, part);
}

/* The successor of an accepted one, as agents.c starts it. */
static void next_generation(struct scene *s)
{
	assert_true(s->agent->succeed);
	s->agent->succeed = false;
	s->agent->generation++;
	free(s->agent->gen_dir);
	s->agent->gen_dir = mem_printf("%s/%lld", s->agent->dir, (long long)s->agent->generation);
	assert_int_equal(file_mkdirs(s->agent->gen_dir, 0700, NULL), 0);
}

static void test_an_accepted_document_is_completed(void **state)
{
	struct scene *s = *state;
	AUTO_BUF struct buf text = BUF_INIT;
	struct handoff *h = NULL;
	struct stat st;

	ask(s, "reset-1", document("Run make test and repair a.c line 3"));
	expect(s, true, "\"accepted\":true");
	assert_true(s->agent->succeed);
	AUTO_FREE char *path = file_join(s->agent->gen_dir, "handoff.json");
	AUTO_FREE char *md = file_join(s->agent->gen_dir, "handoff.md");
	assert_int_equal(stat(md, &st), 0);
	assert_int_equal(file_read(AT_FDCWD, path, HANDOFF_BYTES_MAX, &text, NULL), 0);
	assert_int_equal(handoff_parse(text.data, text.len, &h, NULL), 0);
	assert_string_equal(h->checkpoint, C2);
	assert_string_equal(h->head, C1);
	assert_string_equal(h->model, "p/m");
	assert_int_equal(h->generation, 1);
	assert_string_equal(h->parts[HANDOFF_COMMITS].list[0].commit, C1);
	assert_string_equal(h->parts[HANDOFF_FILES].list[0].hash, B1);
	assert_non_null(handoff_the(h, HANDOFF_DIFF));
	handoff_free(h);
	/* What the successor gets. */
	next_generation(s);
	AUTO_JSON struct json_object *doc = agent_handoff_document(s->agent);
	assert_string_equal(json_str(doc, "file", ""), path);
	assert_int_equal(json_i64(doc, "from", 0), 1);
	assert_string_equal(json_str(doc, "reason", ""), "breaker");
	/* The next document says what was tried before it. */
	ask(s, "reset-1", document("Run make test and repair a.c line 4"));
	assert_true(s->ok);
	text.len = 0;
	AUTO_FREE char *second = file_join(s->agent->gen_dir, "handoff.json");
	assert_int_equal(file_read(AT_FDCWD, second, HANDOFF_BYTES_MAX, &text, NULL), 0);
	assert_non_null(
		strstr(buf_str(&text), "generation 1 ended (breaker): three summaries failed"));
}

static void test_a_refusal_says_why_and_facts_do_all_the_same(void **state)
{
	struct scene *s = *state;
	struct handoff *h = document("Continue the remaining tasks");
	AUTO_BUF struct buf text = BUF_INIT;

	ask(s, "reset-1", h);
	expect(s, false, "first_action");
	expect(s, false, "\"final\":false");
	assert_false(s->agent->succeed);
	h = document("x");
	h->facts_only = true;
	handoff_remove(h, HANDOFF_FIRST_ACTION, 0);
	struct handoff_statement *st =
		handoff_add(h, HANDOFF_FINISHED, HANDOFF_FROM_RECORD, "did it", 6);
	st->commit = mem_strdup("3333333333333333333333333333333333333333");
	st->state = HANDOFF_VERIFIED;
	s->head = C1;
	ask(s, "reset-2", h);
	expect(s, true, "accepted");
	AUTO_FREE char *path = file_join(s->agent->gen_dir, "handoff.json");
	assert_int_equal(file_read(AT_FDCWD, path, HANDOFF_BYTES_MAX, &text, NULL), 0);
	assert_true(s->agent->resets.list[0].facts_only);
}

/* Three in a row bring nothing; the fourth is refused for good, and work in between starts the count anew. */
static void test_a_chain_without_progress_ends(void **state)
{
	struct scene *s = *state;

	s->head_tree = T1; /* commits, but the tree is the base's */
	for (int i = 0; i < 3; i++) {
		if (i == 1) {
			s->head = C2;
			s->head_tree = T2;
		}
		ask(s, "reset-1", document("Run make test and repair a.c line 3"));
		assert_true(s->ok);
		next_generation(s);
	}
	assert_int_equal(s->agent->resets.list[0].chain, 1);
	assert_true(s->agent->resets.list[1].progress);
	assert_int_equal(s->agent->resets.list[2].chain, 1);
	for (int i = 0; i < 2; i++) {
		ask(s, "reset-1", document("Run make test and repair a.c line 3"));
		assert_true(s->ok);
		next_generation(s);
	}
	/* Another commit with a tree that was there before is no progress either. */
	s->head = C1;
	s->head_tree = T1;
	ask(s, "reset-1", document("Run make test and repair a.c line 3"));
	expect(s, false, "3 resets in a row brought no progress");
	expect(s, false, "\"final\":true");
	assert_non_null(s->agent->no_reset);
}

static void test_when_no_reset_may_follow(void **state)
{
	struct scene *s = *state;
	const struct option *most = option_find("max-resets"), *reset = option_find("reset");

	assert_int_equal(
		store_text(s->run.settings, most, "0", LAYER_COMMAND_LINE, "cl", "/", NULL), 0);
	ask(s, "reset-1", document("Run make test"));
	expect(s, false, "--max-resets is 0");
	assert_int_equal(
		store_text(s->run.settings, most, "5", LAYER_COMMAND_LINE, "cl", "/", NULL), 0);
	s->role.reset = mem_strdup("never");
	ask(s, "reset-2", document("Run make test"));
	expect(s, false, "switched off");
	/* The user's word stands above the role's. */
	assert_int_equal(
		store_text(s->run.settings, reset, "auto", LAYER_COMMAND_LINE, "cl", "/", NULL), 0);
	assert_string_equal(agent_reset_policy(s->agent), "auto");
	free(s->role.reset);
	s->role.reset = NULL;
	s->run.stopping = true;
	ask(s, "reset-3", document("Run make test"));
	expect(s, false, "being stopped");
	/* A result that says reset without an accepted document breaks the protocol. */
	s->run.stopping = false;
	channel_sendf(s->theirs, FRAME_RESULT, "{}", 2, "\"status\":\"reset\"");
	assert_int_equal(channel_on_readable(s->child.channel, NULL), -1);
}

/* I12: a word for a reason that there is not goes nowhere. */
static void test_a_reason_that_nobody_knows(void **state)
{
	static const char body[] = "{\"reason\":\"whim\",\"handoff\":{}}";
	struct scene *s = *state;
	struct err e = ERR_INIT;

	channel_sendf(s->theirs, FRAME_RESET, body, strlen(body),
		      "\"generation\":1,\"call\":\"r\"");
	assert_int_equal(channel_on_readable(s->child.channel, &e), -1);
	assert_non_null(strstr(e.message, "whim"));
}

#define scene_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		scene_test(test_an_accepted_document_is_completed),
		scene_test(test_a_refusal_says_why_and_facts_do_all_the_same),
		scene_test(test_a_chain_without_progress_ends),
		scene_test(test_when_no_reset_may_follow),
		scene_test(test_a_reason_that_nobody_knows),
	};

	return cmocka_run_group_tests_name("orchestrator/agent_reset", tests, NULL, NULL);
}
