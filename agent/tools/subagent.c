/*
 * subagent.c - the tool agent: the model's hand on agents of its own (A1, A3, A5).
 *
 * What may be started is the parent's to decide; this file turns a call into a wish and an end into a result. A call
 * that waits and several in one answer go together: calls.c begins all of them before it waits for the first.
 */
#include "agent/tools/subagent.h"

#include <inttypes.h>

#include "agent/tools/context.h"
#include "base/clock.h"
#include "base/memory.h"

enum { WAIT_MS = 600000 };

const char subagent_description[] =
	"Starts other agents and looks after them. Each has a context window of its own and sees "
	"nothing of this conversation: `task` must say everything (goal, files, what to leave "
	"alone, "
	"how to check, what to report). Only its report comes back. `run` starts one and waits; "
	"several "
	"calls in one answer work at the same time; with `background` it goes on beside you and "
	"its end "
	"is announced. `role`: worker (the default) changes files in a worktree of its own that "
	"begins "
	"from your files as they stand, and its commit comes back for you to merge; explorer "
	"answers a "
	"question by reading your files; others by name. `fork` starts a copy of you in the place "
	"of a "
	"role: it knows all of this conversation, so `task` only says what its part is. Delegate "
	"pieces "
	"that are large, independent of each other and clearly bounded; do a few steps, or work in "
	"which "
	"two would wait for each other, yourself. `list` shows yours and how many more may be "
	"started, "
	"`wait` waits for one, `say` sends it a message, `stop` ends it with its work kept. Agents "
	"end "
	"when you report.";

const char subagent_schema[] =
	"{\"type\":\"object\",\"properties\":{"
	"\"action\":{\"type\":\"string\",\"enum\":[\"run\",\"list\",\"wait\",\"say\",\"stop\"],"
	"\"description\":\"run is the default\"},"
	"\"task\":{\"type\":\"string\",\"description\":\"run: all that it has to know\"},"
	"\"role\":{\"type\":\"string\"},"
	"\"fork\":{\"type\":\"boolean\",\"description\":\"a copy of you, with this conversation\"},"
	"\"background\":{\"type\":\"boolean\"},"
	"\"isolate\":{\"type\":\"string\",\"enum\":[\"worktree\",\"view\"],\"description\":\"a "
	"worktree of its own, or your files, read-only\"},"
	"\"output_schema\":{\"type\":\"object\",\"description\":\"JSON schema of `data` in its "
	"report\"},"
	"\"max_rounds\":{\"type\":\"integer\",\"minimum\":1},"
	"\"max_tokens\":{\"type\":\"integer\",\"minimum\":1000,\"description\":\"input and output "
	"of it and of those that it starts\"},"
	"\"max_cost\":{\"type\":\"number\",\"minimum\":0,\"description\":\"the same in USD\"},"
	"\"agent\":{\"type\":\"string\",\"description\":\"wait, say, stop: its name, such as a2\"},"
	"\"text\":{\"type\":\"string\",\"description\":\"say: the message; stop: why\"},"
	"\"timeout_ms\":{\"type\":\"integer\",\"minimum\":0,\"description\":\"wait: 600000 by "
	"default\"}},\"additionalProperties\":false}";

static bool is_run(struct json_object *input)
{
	return strcmp(json_str(input, "action", "run"), "run") == 0;
}

int subagent_begin(struct tool_context *ctx, const char *call_id, struct json_object *input,
		   struct err *err)
{
	const char *name, *refusal;

	if (!is_run(input) || !json_str(input, "task", NULL))
		return 0;
	return ctx->settings.subagent_ops->start(ctx->settings.subagents, call_id, input, &name,
						 &refusal, err);
}

static int show_end(struct tool_context *ctx, const char *name, struct tool_result *ret)
{
	const char *status =
		ctx->settings.subagent_ops->tell(ctx->settings.subagents, name, &ret->text);

	ret->is_error = strcmp(status, "done") != 0;
	result_summary(ret, "agent %s: %s", name, status);
	return 0;
}

static int run_one(struct tool_context *ctx, const char *call_id, struct json_object *input,
		   struct tool_result *ret, struct err *err)
{
	const struct subagent_ops *ops = ctx->settings.subagent_ops;
	const char *given = "", *refusal = NULL;

	if (!json_str(input, "task", NULL))
		return result_failf(ret, "run needs 'task'");
	if (ops->start(ctx->settings.subagents, call_id, input, &given, &refusal, err) < 0)
		return -1;
	if (refusal)
		return result_failf(ret, "Not started: %s", refusal);
	AUTO_FREE char *name = mem_strdup(given);
	if (json_flag(input, "background", false)) {
		buf_addf(&ret->text, "Agent %s works in the background; its end will be announced.",
			 name);
		result_summary(ret, "agent %s started", name);
		return 0;
	}
	if (ops->wait(ctx->settings.subagents, name, INT64_MAX, err) < 0) {
		buf_addf(&ret->text, "Agent %s goes on in the background.", name);
		return -1;
	}
	return show_end(ctx, name, ret);
}

static int list_all(struct tool_context *ctx, const char *call_id, struct tool_result *ret,
		    struct err *err)
{
	const struct subagent_ops *ops = ctx->settings.subagent_ops;
	struct subagents *s = ctx->settings.subagents;
	AUTO_JSON struct json_object *answer = NULL;
	bool ok = false;

	if (ops->message(s, call_id, "capacity", "", "", &ok, &answer, err) < 0)
		return -1;
	ops->list(s, &ret->text);
	if (!ret->text.len)
		buf_adds(&ret->text, "You started no agents.\n");
	buf_addf(&ret->text,
		 "%" PRId64 " of yours are not done (limit %" PRId64 "); the run has had %" PRId64
		 " (limit %" PRId64 "); %" PRId64
		 " work at the same time; you are on level %" PRId64 " of %" PRId64 ".\n",
		 json_i64(answer, "children", 0), json_i64(answer, "max_children", 0),
		 json_i64(answer, "agents", 0), json_i64(answer, "max_agents", 0),
		 json_i64(answer, "at_once", 0), json_i64(answer, "depth", 0),
		 json_i64(answer, "max_depth", 0));
	result_summary(ret, "agent list");
	return 0;
}

static int wait_for(struct tool_context *ctx, struct json_object *input, struct tool_result *ret,
		    struct err *err)
{
	const struct subagent_ops *ops = ctx->settings.subagent_ops;
	const char *name = json_str(input, "agent", "");
	int64_t ms = json_i64(input, "timeout_ms", WAIT_MS);
	struct err e = ERR_INIT;

	if (!ops->known(ctx->settings.subagents, name))
		return result_failf(ret, "'%s' is no agent that you started; use action list",
				    name);
	if (ops->wait(ctx->settings.subagents, name, clock_mono_ms() + ms, &e) == 0)
		return show_end(ctx, name, ret);
	if (e.code != ERR_TIMEOUT)
		return result_end(ret, &e, err);
	buf_addf(&ret->text, "Agent %s still works.", name);
	result_summary(ret, "agent %s: works", name);
	return 0;
}

static int send_word(struct tool_context *ctx, const char *call_id, struct json_object *input,
		     struct tool_result *ret, struct err *err)
{
	const char *action = json_str(input, "action", "");
	const char *name = json_str(input, "agent", ""), *text = json_str(input, "text", "");
	AUTO_JSON struct json_object *answer = NULL;
	bool ok = false;

	if (strcmp(action, "say") == 0 && !*text)
		return result_failf(ret, "say needs 'text'");
	if (ctx->settings.subagent_ops->message(ctx->settings.subagents, call_id, action, name,
						text, &ok, &answer, err) < 0)
		return -1;
	if (!ok)
		return result_failf(ret, "Not done: %s", json_str(answer, "message", ""));
	ret->has_effects = true;
	buf_addf(&ret->text,
		 strcmp(action, "say") == 0
			 ? "Agent %s reads it before its next request."
			 : "Agent %s is asked to stop; its end will be announced.",
		 name);
	result_summary(ret, "agent %s: %s", name, action);
	return 0;
}

int subagent_run(struct tool_context *ctx, const char *call_id, struct json_object *input,
		 struct tool_result *ret, struct err *err)
{
	const char *action = json_str(input, "action", "run");

	ret->exit_code = -1;
	if (is_run(input))
		return run_one(ctx, call_id, input, ret, err);
	if (strcmp(action, "list") == 0)
		return list_all(ctx, call_id, ret, err);
	if (strcmp(action, "wait") == 0)
		return wait_for(ctx, input, ret, err);
	return send_word(ctx, call_id, input, ret, err);
}
