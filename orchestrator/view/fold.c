/*
 * fold.c - records to state and to plain lines. Runs in the view process.
 *
 * Everything that came from a model or a tool passes text_printable (I12): what the table shows on
 * its way into a field (copy_text), plain lines as a whole at their end (display_fold).
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "orchestrator/record.h"
#include "orchestrator/view/display.h"

void display_init(struct display *v)
{
	*v = (struct display){0};
	snprintf(v->status, sizeof(v->status), "running");
}

void display_release(struct display *v)
{
	free(v->agents);
	v->agents = NULL;
}

/* Copies printable text, cut at a character. */
static void copy_text(char *to, size_t size, const char *text)
{
	struct buf out = BUF_INIT;

	text_printable(&out, text, strlen(text), true);
	size_t n = text_floor(buf_str(&out), out.len, MIN(out.len, size - 1));
	memcpy(to, buf_str(&out), n);
	to[n] = '\0';
	buf_release(&out);
}

/* Names are compared as they are shown, so a long one does not become a new agent each time. */
static struct display_agent *agent_of(struct display *v, const char *name)
{
	char shown[sizeof(v->agents->name)];

	copy_text(shown, sizeof(shown), name);
	for (size_t i = 0; i < v->n_agents; i++) {
		if (strcmp(v->agents[i].name, shown) == 0)
			return &v->agents[i];
	}
	MEM_GROW(v->agents, v->cap_agents, v->n_agents + 1);
	struct display_agent *a = &v->agents[v->n_agents++];
	memset(a, 0, sizeof(*a));
	memcpy(a->name, shown, sizeof(shown));
	snprintf(a->state, sizeof(a->state), "starting");
	a->started_ms = v->now_ms;
	return a;
}

/* One record being folded. */
struct folding {
	struct display *display;
	struct display_agent *agent; /* that it is about; NULL: about the run */
	struct buf *line;	     /* raw: control characters go at the end, in display_fold */
};

static void say(struct folding *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void say(struct folding *f, const char *fmt, ...)
{
	va_list ap;

	if (f->agent)
		buf_addf(f->line, "%s: ", f->agent->name);
	va_start(ap, fmt);
	buf_addv(f->line, fmt, ap);
	va_end(ap);
}

/* ---- agents ---- */

static void on_spawned(struct json_object *r, void *arg)
{
	struct folding *f = arg;
	struct display_agent *a = f->agent;
	int64_t generation = json_i64(r, "generation", 1);

	copy_text(a->role, sizeof(a->role), json_str(r, "role", ""));
	a->over = false;
	if (generation > 1)
		say(f, "%s, generation %lld, started", a->role, (long long)generation);
	else
		say(f, "%s started", a->role);
}

/* Rounds and context change too often for a line of their own. */
static void on_round(struct json_object *r, void *arg)
{
	struct folding *f = arg;
	struct display_agent *a = f->agent;
	struct json_object *data = json_obj(r, "data");

	a->round = json_i64(data, "round", a->round);
	a->used = json_i64(data, "used", a->used);
	a->window = json_i64(data, "window", a->window);
}

/* W5, at the start; a review's many agents have the same window and no line each. */
static void on_budget(struct json_object *r, void *arg)
{
	struct folding *f = arg;
	struct display_agent *a = f->agent;
	struct json_object *data = json_obj(r, "data");

	a->window = json_i64(data, "window", a->window);
	if (f->display->n_agents == 1 && json_has(data, "working_space"))
		say(f, "working space %lld of a window of %lld tokens",
		    (long long)json_i64(data, "working_space", 0), (long long)a->window);
}

static void on_tool(struct json_object *r, void *arg)
{
	struct folding *f = arg;
	struct display_agent *a = f->agent;
	struct json_object *data = json_obj(r, "data");
	const char *text = json_str(data, "summary", json_str(data, "tool", ""));

	copy_text(a->action, sizeof(a->action), text);
	say(f, "%s%s", text, json_flag(data, "ok", true) ? "" : " (failed)");
}

static void tell(struct folding *f, const char *prefix, const char *text)
{
	copy_text(f->agent->action, sizeof(f->agent->action), text);
	say(f, "%s%s", prefix, text);
}

static void on_state(struct json_object *r, void *arg)
{
	struct display_agent *a = ((struct folding *)arg)->agent;

	if (!a->over)
		copy_text(a->state, sizeof(a->state), json_str(json_obj(r, "data"), "state", ""));
}

static void on_text(struct json_object *r, void *arg)
{
	tell(arg, "", json_str(json_obj(r, "data"), "text", ""));
}

static void on_warning(struct json_object *r, void *arg)
{
	tell(arg,
	     "warning: ", json_str(json_obj(r, "data"), "message", json_str(r, "message", "")));
}

static void on_retry(struct json_object *r, void *arg)
{
	tell(arg, "asking again: ", json_str(json_obj(r, "data"), "reason", ""));
}

static void on_reset_refused(struct json_object *r, void *arg)
{
	tell(arg,
	     "a reset was refused: ", json_object_get_string(json_at(json_arr(r, "reasons"), 0)));
}

static void on_kept(struct json_object *r, void *arg)
{
	tell(arg, "worktree kept: ", json_str(r, "reason", ""));
}

static void on_no_worktree(struct json_object *r, void *arg)
{
	tell(arg, "", json_str(r, "message", ""));
}

static void on_ended(struct json_object *r, void *arg)
{
	struct folding *f = arg;
	struct display_agent *a = f->agent;
	const char *reason = json_str(r, "reason", "");

	copy_text(a->state, sizeof(a->state), json_str(r, "status", "ended"));
	a->over = true;
	a->ended_ms = f->display->now_ms;
	int64_t rounds = json_i64(r, "rounds", a->round);
	say(f, "%s after %lld round%s%s%s", a->state, (long long)rounds, rounds == 1 ? "" : "s",
	    *reason ? ": " : "", reason);
}

/* Tokens are shown as they are billed, cached ones too; the run's total is the parent's sum. */
static void on_settled(struct json_object *r, void *arg)
{
	struct folding *f = arg;
	struct display *v = f->display;
	struct display_agent *a = f->agent;

	a->input += json_i64(r, "fresh", 0) + json_i64(r, "cache_read", 0) +
		    json_i64(r, "cache_write", 0);
	a->output += json_i64(r, "output", 0);
	a->cost += json_double(r, "cost", 0);
	v->cost = json_double(r, "total_cost", v->cost);
	v->unpriced = !json_has(r, "total_cost");
}

static void on_compact(struct json_object *r, void *arg)
{
	struct folding *f = arg;
	struct display_agent *a = f->agent;
	struct json_object *data = json_obj(r, "data");
	const char *room = record_room_made_by(data);

	a->used = json_i64(data, "after", a->used);
	say(f, "%s%s: %lld to %lld tokens", room ? room : "context compacted",
	    json_flag(data, "by_rule", false) ? " by rule, without a summary" : "",
	    (long long)json_i64(data, "before", 0), (long long)a->used);
}

static void on_paused(struct json_object *r, void *arg)
{
	struct folding *f = arg;

	f->agent->paused = true;
	say(f, "paused");
}

static void on_continued(struct json_object *r, void *arg)
{
	struct folding *f = arg;

	f->agent->paused = false;
	say(f, "goes on");
}

static void on_stop_asked(struct json_object *r, void *arg)
{
	say(arg, "is to stop");
}

/* Its window is empty again; what comes is the next generation's. */
static void on_reset(struct json_object *r, void *arg)
{
	struct folding *f = arg;
	struct display_agent *a = f->agent;
	int64_t generation = json_i64(r, "generation", 1);

	a->used = 0;
	copy_text(a->action, sizeof(a->action), "goes on from a handoff");
	say(f, "generation %lld ends with a handoff (%s), %lld goes on: %s", (long long)generation,
	    json_str(r, "reason", "?"), (long long)generation + 1, json_str(r, "why", ""));
}

static const struct record_fold agent_fold = {
	.on =
		{
			[RECORD_AGENT_SPAWNED] = on_spawned,
			[RECORD_AGENT_ROUND] = on_round,
			[RECORD_AGENT_BUDGET] = on_budget,
			[RECORD_AGENT_TOOL] = on_tool,
			[RECORD_AGENT_STATE] = on_state,
			[RECORD_AGENT_TEXT] = on_text,
			[RECORD_AGENT_WARNING] = on_warning,
			[RECORD_AGENT_RETRY] = on_retry,
			[RECORD_AGENT_COMPACT] = on_compact,
			[RECORD_AGENT_RESET] = on_reset,
			[RECORD_AGENT_RESET_REFUSED] = on_reset_refused,
			[RECORD_AGENT_PAUSED] = on_paused,
			[RECORD_AGENT_CONTINUED] = on_continued,
			[RECORD_AGENT_STOP_ASKED] = on_stop_asked,
			[RECORD_AGENT_ENDED] = on_ended,
			[RECORD_CALL_SETTLED] = on_settled,
			[RECORD_WORKTREE_KEPT] = on_kept,
			[RECORD_WORKTREE_SETUP_FAILED] = on_no_worktree,
			[RECORD_WORKTREE_FAILED] = on_no_worktree,
		},
};

/* ---- the run ---- */

static void on_started(struct json_object *r, void *arg)
{
	struct folding *f = arg;
	struct display *v = f->display;

	copy_text(v->run, sizeof(v->run), json_str(r, "run", ""));
	copy_text(v->command, sizeof(v->command), json_str(r, "command", ""));
	copy_text(v->model, sizeof(v->model), json_str(r, "model", ""));
	v->started_ms = v->now_ms;
	say(f, "baton %s %s on %s, window %lld, box: %s", v->command, v->run, v->model,
	    (long long)json_i64(r, "window", 0), json_str(r, "box", "?"));
}

static void on_resumed(struct json_object *r, void *arg)
{
	struct folding *f = arg;
	struct display *v = f->display;

	v->finished = false;
	v->status[0] = '\0';
	say(f, "baton goes on with %s %s, on %s", v->command, v->run,
	    json_str(r, "model", v->model));
}

static void on_stopping(struct json_object *r, void *arg)
{
	say(arg, "stopping: %s", json_str(r, "reason", ""));
}

static void on_finished(struct json_object *r, void *arg)
{
	struct display *v = ((struct folding *)arg)->display;

	copy_text(v->status, sizeof(v->status), json_str(r, "status", ""));
	v->finished = true;
}

static void on_run_paused(struct json_object *r, void *arg)
{
	struct folding *f = arg;
	struct display *v = f->display;

	snprintf(v->status, sizeof(v->status), "paused");
	say(f, "paused: %s", json_str(r, "reason", ""));
}

static void on_run_continued(struct json_object *r, void *arg)
{
	struct folding *f = arg;
	struct display *v = f->display;

	snprintf(v->status, sizeof(v->status), "running");
	say(f, "goes on");
}

static void on_limits(struct json_object *r, void *arg)
{
	struct folding *f = arg;

	say(f, "new limits:");
	if (json_double(r, "max_cost", -1) >= 0)
		say(f, " %.4g USD", json_double(r, "max_cost", 0));
	if (json_i64(r, "max_tokens", 0) > 0)
		say(f, " %lld tokens", (long long)json_i64(r, "max_tokens", 0));
}

static void on_gateway_died(struct json_object *r, void *arg)
{
	say(arg, "the gateway %s; it is started again", json_str(r, "reason", "died"));
}

static void on_budget_reached(struct json_object *r, void *arg)
{
	say(arg, "a budget is reached");
}

static const struct record_fold run_fold = {
	.on =
		{
			[RECORD_RUN_STARTED] = on_started,
			[RECORD_RUN_RESUMED] = on_resumed,
			[RECORD_RUN_PAUSED] = on_run_paused,
			[RECORD_RUN_CONTINUED] = on_run_continued,
			[RECORD_RUN_LIMITS] = on_limits,
			[RECORD_RUN_STOPPING] = on_stopping,
			[RECORD_RUN_FINISHED] = on_finished,
			[RECORD_GATEWAY_DIED] = on_gateway_died,
			[RECORD_BUDGET_REACHED] = on_budget_reached,
		},
};

void display_fold(struct display *v, struct json_object *record, struct buf *line)
{
	const char *name = json_str(record, "agent", NULL);
	AUTO_BUF struct buf raw = BUF_INIT;
	int64_t t = clock_parse_stamp(json_str(record, "t", ""));

	if (t > 0)
		v->now_ms = t;
	struct folding f = {.display = v, .agent = name ? agent_of(v, name) : NULL, .line = &raw};
	record_fold(f.agent ? &agent_fold : &run_fold, record, &f);
	if (raw.len == 0)
		return;
	text_printable(line, raw.data, raw.len, true);
	buf_addc(line, '\n');
}
