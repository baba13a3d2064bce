/*
 * client.c - the parent's side of baton-git.
 *
 * Runs in the parent, so it links neither libgit2 nor anything that waits. Calls stand in one list
 * in the order of sending; answers may come in any order, since checkouts run beside short
 * operations.
 */
#include "worktrees/client.h"

#include <inttypes.h>

#include "base/buf.h"
#include "base/memory.h"

struct call {
	int64_t id;
	git_done_fn fn;
	void *arg;
	struct call *next;
};

struct git_client {
	struct channel *channel;
	struct call *first, **last;
	int64_t next_id;
};

struct git_client *git_client_new(struct channel *channel)
{
	struct git_client *client = mem_alloc(sizeof(*client));

	client->channel = channel;
	client->last = &client->first;
	client->next_id = 1;
	return client;
}

void git_client_free(struct git_client *client)
{
	struct err gone = ERR_INIT;

	if (!client)
		return;
	client->channel = NULL;
	err_set(&gone, ERR_CANCELLED, "the worktree service is no longer used");
	git_client_fail_all(client, &gone);
	free(client);
}

void git_client_set_channel(struct git_client *client, struct channel *channel)
{
	client->channel = channel;
}

void git_client_call(struct git_client *client, const char *op, struct json_object *body,
		     git_done_fn fn, void *arg)
{
	struct err closed = ERR_INIT;
	AUTO_BUF struct buf text = BUF_INIT;

	if (!client->channel) {
		err_set(&closed, ERR_CLOSED, "the worktree service is not running");
		fn(NULL, &closed, arg);
		return;
	}
	struct call *call = mem_alloc(sizeof(*call));
	*call = (struct call){.id = client->next_id++, .fn = fn, .arg = arg};
	*client->last = call;
	client->last = &call->next;
	if (body)
		json_write(&text, body);
	else
		buf_adds(&text, "{}");
	channel_sendf(client->channel, FRAME_GIT, text.data, text.len,
		      "\"id\":%" PRId64 ",\"op\":\"%s\"", call->id, op);
}

static struct call *take_call(struct git_client *client, int64_t id)
{
	for (struct call **at = &client->first; *at; at = &(*at)->next) {
		struct call *call = *at;

		if (call->id != id)
			continue;
		*at = call->next;
		if (!call->next)
			client->last = at;
		return call;
	}
	return NULL;
}

static enum err_code code_of(const char *name)
{
	for (int code = ERR_IO; code <= ERR_NO_SPACE; code++) {
		if (strcmp(err_code_name((enum err_code)code), name) == 0)
			return (enum err_code)code;
	}
	return ERR_INVALID;
}

int git_client_frame(struct git_client *client, const struct frame *frame, struct err *err)
{
	AUTO_JSON struct json_object *answer = NULL;
	struct err failure = ERR_INIT;
	int64_t id = json_i64(frame->header, "id", -1);

	if (json_parse(frame->body, frame->len, &answer, err) < 0)
		return err_prefix(err, "answer of the worktree service");
	if (!json_object_is_type(answer, json_type_object))
		return err_set(err, ERR_INVALID, "the worktree service's answer is no object");
	struct call *call = take_call(client, id);
	if (!call)
		return err_set(err, ERR_INVALID,
			       "the worktree service answers a call %" PRId64 " that nobody made",
			       id);
	git_done_fn fn = call->fn;
	void *arg = call->arg;
	free(call);
	if (json_flag(frame->header, "ok", false)) {
		fn(answer, NULL, arg);
		return 0;
	}
	err_set(&failure, code_of(json_str(frame->header, "code", "")), "%s",
		json_str(answer, "message", "the worktree service gave no reason"));
	fn(answer, &failure, arg);
	return 0;
}

void git_client_fail_all(struct git_client *client, const struct err *failure)
{
	/* A callback may call again: what it adds waits for the next service. */
	struct call *list = client->first;

	client->first = NULL;
	client->last = &client->first;
	while (list) {
		struct call *call = list;

		list = call->next;
		call->fn(NULL, failure, call->arg);
		free(call);
	}
}
