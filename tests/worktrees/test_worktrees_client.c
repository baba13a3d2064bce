/*
 * test_worktrees_client.c - the parent's client against a scripted service on the other end of a
 * socketpair: matching of answers, failures, a dead service.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "base/memory.h"
#include "handoff/channel.h"
#include "worktrees/client.h"

struct ends {
	struct channel *parent, *service;
	struct git_client *client;
	int64_t ids[8];
	size_t asked;
	int frame_result; /* of the last git_client_frame */
	struct err frame_err;
};

static int on_parent(struct channel *channel, const struct frame *frame, void *arg, struct err *err)
{
	struct ends *ends = arg;

	ends->frame_result = git_client_frame(ends->client, frame, &ends->frame_err);
	return 0;
}

static int on_service(struct channel *channel, const struct frame *frame, void *arg,
		      struct err *err)
{
	struct ends *ends = arg;

	ends->ids[ends->asked++] = json_i64(frame->header, "id", -1);
	return 0;
}

static void open_ends(struct ends *ends)
{
	int pair[2];

	*ends = (struct ends){.frame_result = 0};
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	ends->parent = channel_new(pair[0], pair[0], FROM_W, on_parent, ends);
	ends->service = channel_new(pair[1], pair[1], FROM_P, on_service, ends);
	ends->client = git_client_new(ends->parent);
}

static void close_ends(struct ends *ends)
{
	git_client_free(ends->client);
	channel_free(ends->parent);
	channel_free(ends->service);
}

struct outcome {
	int calls;
	enum err_code code;
	char text[sizeof(((struct err *)0)->message)];
};

static void on_done(struct json_object *answer, const struct err *failure, void *arg)
{
	struct outcome *outcome = arg;

	outcome->calls++;
	outcome->code = failure ? failure->code : ERR_NONE;
	snprintf(outcome->text, sizeof(outcome->text), "%s",
		 failure ? failure->message : json_str(answer, "commit", ""));
}

static void answer(struct ends *ends, int64_t id, const char *fields, const char *body)
{
	struct err err = ERR_INIT;

	channel_sendf(ends->service, FRAME_GIT_DONE, body, strlen(body), "\"id\":%lld,%s",
		      (long long)id, fields);
	assert_int_equal(channel_on_readable(ends->parent, &err), 0);
}

static void answers_find_their_calls_in_any_order(void **state)
{
	struct ends ends;
	struct outcome a = {0}, b = {0};
	struct err err = ERR_INIT;

	open_ends(&ends);
	git_client_call(ends.client, "resolve", NULL, on_done, &a);
	git_client_call(ends.client, "import", NULL, on_done, &b);
	assert_int_equal(channel_on_readable(ends.service, &err), 0);
	assert_int_equal(ends.asked, 2);
	answer(&ends, ends.ids[1], "\"ok\":false,\"code\":\"changed\"", "{\"message\":\"moved\"}");
	assert_int_equal(a.calls, 0);
	assert_int_equal(b.calls, 1);
	assert_string_equal(b.text, "moved");
	answer(&ends, ends.ids[0], "\"ok\":true", "{\"commit\":\"c0ffee\"}");
	assert_int_equal(a.code, ERR_NONE);
	assert_string_equal(a.text, "c0ffee");
	close_ends(&ends);
}

static void every_code_survives_the_way(void **state)
{
	for (int code = ERR_IO; code <= ERR_NO_SPACE; code++) {
		struct ends ends;
		struct outcome a = {0};
		struct err err = ERR_INIT;
		AUTO_FREE char *fields = mem_printf("\"ok\":false,\"code\":\"%s\"",
						    err_code_name((enum err_code)code));

		open_ends(&ends);
		git_client_call(ends.client, "status", NULL, on_done, &a);
		assert_int_equal(channel_on_readable(ends.service, &err), 0);
		answer(&ends, ends.ids[0], fields, "{\"message\":\"m\"}");
		assert_int_equal(a.code, code);
		close_ends(&ends);
	}
}

static void an_answer_to_nobody_breaks_the_protocol(void **state)
{
	struct ends ends;
	struct outcome a = {0};

	open_ends(&ends);
	git_client_call(ends.client, "status", NULL, on_done, &a);
	answer(&ends, 77, "\"ok\":true", "{}");
	assert_int_equal(ends.frame_result, -1);
	assert_int_equal(a.calls, 0);
	answer(&ends, 1, "\"ok\":true", "[1]");
	assert_int_equal(ends.frame_result, -1);
	assert_int_equal(a.calls, 0);
	close_ends(&ends);
	assert_int_equal(a.calls, 1);
	assert_int_equal(a.code, ERR_CANCELLED);
}

static void a_dead_service_fails_each_call_once(void **state)
{
	struct ends ends;
	struct outcome a = {0}, b = {0}, c = {0};
	struct err gone = ERR_INIT;

	open_ends(&ends);
	git_client_call(ends.client, "create", NULL, on_done, &a);
	git_client_call(ends.client, "create", NULL, on_done, &b);
	err_set(&gone, ERR_CLOSED, "baton-git died");
	git_client_fail_all(ends.client, &gone);
	assert_int_equal(a.calls + b.calls, 2);
	assert_int_equal(b.code, ERR_CLOSED);
	git_client_set_channel(ends.client, NULL);
	git_client_call(ends.client, "create", NULL, on_done, &c);
	assert_int_equal(c.code, ERR_CLOSED);
	git_client_set_channel(ends.client, ends.parent);
	close_ends(&ends);
	assert_int_equal(a.calls + b.calls + c.calls, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_find_their_calls_in_any_order),
		cmocka_unit_test(every_code_survives_the_way),
		cmocka_unit_test(an_answer_to_nobody_breaks_the_protocol),
		cmocka_unit_test(a_dead_service_fails_each_call_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
