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

static void say(struct buf *line, const struct display_agent *a, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* The raw text of a plain line; control characters go at the end, in display_fold. */
static void say(struct buf *line, const struct display_agent *a, const char *fmt, ...)
{
	va_list ap;

	if (a)
		buf_addf(line, "%s: ", a->name);
	va_start(ap, fmt);
	buf_addv(line, fmt, ap);
	va_end(ap);
}

/* ---- agents ---- */

static void on_spawned(struct display_agent *a, struct json_object *r, struct buf *line)
{
	int64_t generation = json_i64(r, "generation", 1);

	copy_text(a->role, sizeof(a->role), json_str(r, "role", ""));
	a->over = false;
	if (generation > 1)
		say(line, a, "%s, generation %lld, started", a->role, (long long)generation);
	else
		say(line, a, "%s started", a->role);
}

/* Rounds and context change too often for a line of their own. */
static void on_round(struct display_agent *a, struct json_object *data)
{
	a->round = json_i64(data, "round", a->round);
	a->used = json_i64(data, "used", a->used);
	a->window = json_i64(data, "window", a->window);
}

/* W5, at the start; a review's many agents have the same window and no line each. */
static void on_budget(const struct display *v, struct display_agent *a, struct json_object *data,
		      struct buf *line)
{
	a->window = json_i64(data, "window", a->window);
	if (v->n_agents == 1 && json_has(data, "working_space"))
		say(line, a, "working space %lld of a window of %lld tokens",
		    (long long)json_i64(data, "working_space", 0), (long long)a->window);
}

static void on_tool(struct display_agent *a, struct json_object *data, struct buf *line)
{
	const char *text = json_str(data, "summary", json_str(data, "tool", ""));

	copy_text(a->action, sizeof(a->action), text);
	say(line, a, "%s%s", text, json_flag(data, "ok", true) ? "" : " (failed)");
}

static void on_message(struct display_agent *a, const char *prefix, const char *text,
		       struct buf *line)
{
	copy_text(a->action, sizeof(a->action), text);
	say(line, a, "%s%s", prefix, text);
}

static void on_ended(struct display *v, struct display_agent *a, struct json_object *r,
		     struct buf *line)
{
	const char *reason = json_str(r, "reason", "");

	copy_text(a->state, sizeof(a->state), json_str(r, "status", "ended"));
	a->over = true;
	a->ended_ms = v->now_ms;
	int64_t rounds = json_i64(r, "rounds", a->round);
	say(line, a, "%s after %lld round%s%s%s", a->state, (long long)rounds,
	    rounds == 1 ? "" : "s", *reason ? ": " : "", reason);
}

/* Tokens are shown as they are billed, cached ones too; the run's total is the parent's sum. */
static void on_settled(struct display *v, struct display_agent *a, struct json_object *r)
{
	a->input += json_i64(r, "fresh", 0) + json_i64(r, "cache_read", 0) +
		    json_i64(r, "cache_write", 0);
	a->output += json_i64(r, "output", 0);
	a->cost += json_double(r, "cost", 0);
	v->cost = json_double(r, "total_cost", v->cost);
	v->unpriced = !json_has(r, "total_cost");
}

/* The rungs of the ladder that need no summary, by the trigger's name (docs/journal.md). */
static const char *room_made_by(const char *trigger)
{
	static const struct {
		const char *trigger, *text;
	} rungs[] = {
		{"snip", "superseded rounds removed from the context"},
		{"clear", "old tool results cleared"},
		{"idle", "old tool results cleared after a pause"},
		{"collapse", "finished rounds shown as a snapshot"},
		{"decay", "old tool results shortened"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rungs); i++)
		if (!strcmp(rungs[i].trigger, trigger))
			return rungs[i].text;
	return "context compacted";
}

static void on_compact(struct display_agent *a, struct json_object *data, struct buf *line)
{
	a->used = json_i64(data, "after", a->used);
	say(line, a, "%s%s: %lld to %lld tokens", room_made_by(json_str(data, "trigger", "")),
	    json_flag(data, "by_rule", false) ? " by rule, without a summary" : "",
	    (long long)json_i64(data, "before", 0), (long long)a->used);
}

/* Its window is empty again; what comes is the next generation's. */
static void on_reset(struct display_agent *a, struct json_object *r, struct buf *line)
{
	int64_t generation = json_i64(r, "generation", 1);

	a->used = 0;
	copy_text(a->action, sizeof(a->action), "goes on from a handoff");
	say(line, a, "generation %lld ends with a handoff (%s), %lld goes on: %s",
	    (long long)generation, json_str(r, "reason", "?"), (long long)generation + 1,
	    json_str(r, "why", ""));
}

/* Records that are not named here change nothing: later versions will write more of them. */
static void fold_agent(struct display *v, const char *type, struct json_object *r, struct buf *line)
{
	struct display_agent *a = agent_of(v, json_str(r, "agent", "?"));
	struct json_object *data = json_obj(r, "data");

	if (strcmp(type, "agent.spawned") == 0)
		on_spawned(a, r, line);
	else if (strcmp(type, "agent.round") == 0)
		on_round(a, data);
	else if (strcmp(type, "agent.budget") == 0)
		on_budget(v, a, data, line);
	else if (strcmp(type, "agent.tool") == 0)
		on_tool(a, data, line);
	else if (strcmp(type, "agent.state") == 0 && !a->over)
		copy_text(a->state, sizeof(a->state), json_str(data, "state", ""));
	else if (strcmp(type, "agent.text") == 0)
		on_message(a, "", json_str(data, "text", ""), line);
	else if (strcmp(type, "agent.warning") == 0)
		on_message(a, "warning: ", json_str(data, "message", json_str(r, "message", "")),
			   line);
	else if (strcmp(type, "agent.retry") == 0)
		on_message(a, "asking again: ", json_str(data, "reason", ""), line);
	else if (strcmp(type, "agent.compact") == 0)
		on_compact(a, data, line);
	else if (strcmp(type, "agent.reset") == 0)
		on_reset(a, r, line);
	else if (strcmp(type, "agent.reset_refused") == 0)
		on_message(a, "a reset was refused: ",
			   json_object_get_string(json_at(json_arr(r, "reasons"), 0)), line);
	else if (strcmp(type, "agent.ended") == 0)
		on_ended(v, a, r, line);
	else if (strcmp(type, "call.settled") == 0)
		on_settled(v, a, r);
	else if (strcmp(type, "worktree.kept") == 0)
		on_message(a, "worktree kept: ", json_str(r, "reason", ""), line);
	else if (strcmp(type, "worktree.setup_failed") == 0 || strcmp(type, "worktree.failed") == 0)
		on_message(a, "", json_str(r, "message", ""), line);
}

static void fold_run(struct display *v, const char *type, struct json_object *r, struct buf *line)
{
	if (strcmp(type, "run.started") == 0) {
		copy_text(v->run, sizeof(v->run), json_str(r, "run", ""));
		copy_text(v->command, sizeof(v->command), json_str(r, "command", ""));
		copy_text(v->model, sizeof(v->model), json_str(r, "model", ""));
		v->started_ms = v->now_ms;
		say(line, NULL, "baton %s %s on %s, window %lld, box: %s", v->command, v->run,
		    v->model, (long long)json_i64(r, "window", 0), json_str(r, "box", "?"));
	} else if (strcmp(type, "run.resumed") == 0) {
		v->finished = false;
		v->status[0] = '\0';
		say(line, NULL, "baton goes on with %s %s, on %s", v->command, v->run,
		    json_str(r, "model", v->model));
	} else if (strcmp(type, "run.stopping") == 0) {
		say(line, NULL, "stopping: %s", json_str(r, "reason", ""));
	} else if (strcmp(type, "run.finished") == 0) {
		copy_text(v->status, sizeof(v->status), json_str(r, "status", ""));
		v->finished = true;
	} else if (strcmp(type, "gateway.died") == 0) {
		say(line, NULL, "the gateway %s; it is started again",
		    json_str(r, "reason", "died"));
	} else if (strcmp(type, "budget.reached") == 0) {
		say(line, NULL, "a budget is reached");
	}
}

void display_fold(struct display *v, struct json_object *record, struct buf *line)
{
	const char *type = json_str(record, "type", "");
	AUTO_BUF struct buf raw = BUF_INIT;
	int64_t t = clock_parse_stamp(json_str(record, "t", ""));

	if (t > 0)
		v->now_ms = t;
	if (json_str(record, "agent", NULL))
		fold_agent(v, type, record, &raw);
	else
		fold_run(v, type, record, &raw);
	if (raw.len == 0)
		return;
	text_printable(line, raw.data, raw.len, true);
	buf_addc(line, '\n');
}
