/*
 * hooks.c - an agent's questions to its hooks: which commands run, in which order, and what the agent hears
 * of them. Runs in the parent.
 *
 * One command after another, weakest layer first: their texts stand in a known order, and a deny ends the
 * question. What a command printed is read by handoff/hook.c, here and not in the agent: an agent in anybody's
 * hands learns no more of a hook than a well-behaved one would.
 *
 * A question has a key, as effects have, but is none: a decision is about this very moment, and whoever asks
 * again wants to know anew. So a successor that asks after a crash runs the commands again.
 */
#include "orchestrator/hooks.h"

#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "orchestrator/agent_frames.h"
#include "orchestrator/collect.h"
#include "orchestrator/hook_job.h"
#include "orchestrator/run.h"

#define TEXTS_MAX 200000 /* bytes of all texts of an answer: it has to fit into one document */

struct hook_question {
	struct agent_record *agent;
	char *call;
	enum hook_event event;
	char *subject; /* a tool's name, a trigger */
	struct buf input;
	size_t next;	      /* index of the setting to look at */
	struct hook_job *job; /* runs; NULL */
	struct json_object *answer;
	bool decided; /* denied: no further command */
	size_t text_bytes;
};

struct json_object *hooks_document(const struct settings *settings)
{
	struct json_object *list = json_object_new_array();
	size_t n;
	const struct hook_setting *hooks = settings_hooks(settings, &n);

	for (size_t i = 0; i < n; i++) {
		struct json_object *entry = json_object_new_object();
		json_set_str(entry, "event", hook_event_name(hooks[i].event));
		json_set_str(entry, "matcher", hooks[i].matcher ? hooks[i].matcher : "*");
		json_object_array_add(list, entry);
	}
	return list;
}

/* ---- the input ---- */

/* What the agent tells, and over it what the parent knows: those fields are not the agent's to choose. */
static void make_input(struct hook_question *q, struct json_object *body)
{
	const struct agent_record *agent = q->agent;
	AUTO_FREE char *transcript = mem_printf("%s/transcript.jsonl", agent->gen_dir);

	json_set_str(body, "hook_event_name", hook_event_name(q->event));
	json_set_str(body, "run", agent->run->id);
	json_set_str(body, "agent", agent->name);
	json_set_i64(body, "generation", agent->generation);
	json_set_str(body, "role", agent->role->name);
	json_set_str(body, "cwd", agent->worktree);
	json_set_str(body, "transcript_path", transcript);
	if (agent->run->toplevel)
		json_set_str(body, "project_dir", agent->run->toplevel);
	json_write(&q->input, body);
	buf_addc(&q->input, '\n');
}

/* ---- the answer ---- */

void hooks_free(struct hook_question *q)
{
	if (!q)
		return;
	hook_job_free(q->job);
	free(q->call);
	free(q->subject);
	buf_release(&q->input);
	json_object_put(q->answer);
	free(q);
}

/* The question is over, answered or not. */
static void finish(struct hook_question *q)
{
	struct agent_record *agent = q->agent;

	agent->hook = NULL;
	hooks_free(q);
	if (agent->state == AGENT_COLLECTING)
		collect_start(agent); /* the agent was gone before its hook */
}

static void answer(struct hook_question *q)
{
	struct agent_record *agent = q->agent;
	AUTO_BUF struct buf fields = BUF_INIT;
	AUTO_BUF struct buf body = BUF_INIT;

	if (agent->child && agent->child->channel) {
		buf_adds(&fields, "\"ok\":true,\"call\":");
		json_write_cstr(&fields, q->call);
		json_write(&body, q->answer);
		channel_send(agent->child->channel, FRAME_ACK, buf_str(&fields), body.data,
			     body.len);
	}
	finish(q);
}

static void add_text(struct hook_question *q, const struct hook_setting *hook,
		     const struct buf *text)
{
	struct json_object *entry = json_object_new_object();

	json_set_str(entry, "from", hook->layer);
	json_set_strn(entry, "text", text->data, text->len);
	json_object_array_add(json_arr(q->answer, "texts"), entry);
}

static void add_decision(struct hook_question *q, const struct hook_setting *hook,
			 const struct hook_answer *a)
{
	if (a->decision == HOOK_UNDECIDED)
		return;
	json_set_str(q->answer, "decision", a->decision == HOOK_DENY ? "deny" : "allow");
	q->decided = a->decision == HOOK_DENY;
	if (!q->decided)
		return;
	json_set_str(q->answer, "reason", a->reason);
	json_set_str(q->answer, "from", hook->layer);
}

/* Each hook's first failure in a run; the journal has them all. */
static void warn(struct hook_question *q, const struct hook_setting *hook, const char *failure)
{
	struct run *run = q->agent->run;
	size_t n;
	uint64_t bit = UINT64_C(1) << (hook - settings_hooks(run->settings, &n));

	if (run->hooks_told & bit)
		return;
	run->hooks_told |= bit;
	AUTO_FREE char *text =
		mem_printf("hook %s (%s): %s", hook_event_name(hook->event), hook->origin, failure);
	journal_add(run->journal, RECORD_AGENT_WARNING, "agent:s message:s", q->agent->name, text);
}

static void record(struct hook_question *q, const struct hook_setting *hook,
		   const struct hook_job_end *end, const struct hook_answer *a)
{
	static const char *const words[] = {NULL, "allow", "deny"};
	int status = end->result.wait_status;
	AUTO_JSON struct json_object *exit_code = WIFEXITED(status) && !end->result.timed_out
							  ? json_object_new_int(WEXITSTATUS(status))
							  : NULL;

	journal_add(q->agent->run->journal, RECORD_HOOK_RAN,
		    "agent:s event:s subject:s hook:s duration_ms:i exit:j timed_out:b bytes:i "
		    "used:i decision:s reason:s failure:s",
		    q->agent->name, hook_event_name(q->event), q->subject, hook->origin,
		    end->duration_ms, exit_code, (int)end->result.timed_out, end->out_bytes,
		    (int64_t)a->text.len, words[a->decision], a->reason, a->failure);
}

static void take(struct hook_question *q, const struct hook_setting *hook,
		 const struct hook_job_end *end, struct hook_answer *a)
{
	if (q->text_bytes + a->text.len > TEXTS_MAX) {
		a->failure = mem_strdup("what all hooks of this event printed is too much");
		buf_clear(&a->text);
	}
	q->text_bytes += a->text.len;
	record(q, hook, end, a);
	if (a->failure)
		warn(q, hook, a->failure);
	if (a->text.len)
		add_text(q, hook, &a->text);
	add_decision(q, hook, a);
}

/* ---- the commands ---- */

static void pump(struct hook_question *q);

static const struct hook_setting *current(const struct hook_question *q)
{
	size_t n;

	return &settings_hooks(q->agent->run->settings, &n)[q->next - 1];
}

static void on_done(const struct hook_job_end *end, void *arg)
{
	struct hook_question *q = arg;
	struct hook_answer a;

	q->job = NULL;
	hook_read(&end->result, &a);
	take(q, current(q), end, &a);
	hook_answer_release(&a);
	if (q->agent->state == AGENT_COLLECTING)
		finish(q);
	else
		pump(q);
}

/* A command that could not even be started has failed as one that exits with 126. */
static void not_started(struct hook_question *q, const struct hook_setting *hook,
			const struct err *why)
{
	struct hook_job_end end = {
		.result = {.event = q->event,
			   .wait_status = 126 << 8,
			   .required = hook->required,
			   .err = why->message,
			   .err_len = strlen(why->message)},
	};
	struct hook_answer a;

	hook_read(&end.result, &a);
	take(q, hook, &end, &a);
	hook_answer_release(&a);
}

/* Starts the next command that wants this event, or answers. */
static void pump(struct hook_question *q)
{
	size_t n;
	const struct hook_setting *hooks = settings_hooks(q->agent->run->settings, &n);

	while (!q->decided && q->next < n) {
		const struct hook_setting *hook = &hooks[q->next++];
		struct err err = ERR_INIT;

		if (hook->event != q->event || !hook_matches(hook->matcher, q->subject))
			continue;
		if (hook_job_start(q->agent, hook, buf_str(&q->input), q->input.len, on_done, q,
				   &q->job, &err) == 0)
			return;
		not_started(q, hook, &err);
	}
	answer(q);
}

static bool has_worktree(const struct agent_record *agent)
{
	return agent->view || agent->ready == READY_OK;
}

static struct hook_question *question_new(struct agent_record *agent, const struct frame *frame,
					  enum hook_event event)
{
	struct hook_question *q = mem_alloc(sizeof(*q));

	q->agent = agent;
	q->event = event;
	q->call = mem_strdup(json_str(frame->header, "call", ""));
	q->subject = mem_strdup(json_str(frame->header, "subject", ""));
	q->answer = json_object_new_object();
	json_set(q->answer, "texts", json_object_new_array());
	return q;
}

int hooks_on_frame(struct agent_record *agent, const struct frame *frame, struct err *err)
{
	int event = hook_event_find(json_str(frame->header, "event", ""));
	AUTO_JSON struct json_object *body = NULL;

	if (json_i64(frame->header, "generation", 0) != agent->generation)
		return err_set(err, ERR_INVALID, "a 'hook' of another generation");
	if (event < 0)
		return err_set(err, ERR_INVALID, "a 'hook' for an event that there is not");
	if (agent->hook)
		return err_set(err, ERR_INVALID, "a second 'hook' before the first is answered");
	if (agent_frame_body(frame, &body, err) < 0)
		return -1;
	agent->hook = question_new(agent, frame, (enum hook_event)event);
	make_input(agent->hook, body);
	if (has_worktree(agent))
		pump(agent->hook);
	return 0;
}

void hooks_worktree_ready(struct agent_record *agent)
{
	struct hook_question *q = agent->hook;

	if (q && !q->job && has_worktree(agent))
		pump(q);
}

void hooks_agent_gone(struct agent_record *agent)
{
	struct hook_question *q = agent->hook;

	if (!q)
		return;
	if (q->job) {
		hook_job_stop(q->job);
		return;
	}
	agent->hook = NULL;
	hooks_free(q);
}
