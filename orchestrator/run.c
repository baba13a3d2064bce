/*
 * run.c - the loop, the signals and the end of a run. Runs in the parent.
 *
 * One turn: events are handled, then records are committed in one write (and one sync), deferred
 * answers go out, channels are flushed, the view is told. Nothing here waits.
 */
#include "orchestrator/run.h"

#include <errno.h>
#include <event2/event.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/spawn.h"
#include "orchestrator/agent_resume.h"
#include "orchestrator/control.h"
#include "orchestrator/outcome.h"
#include "orchestrator/pause.h"
#include "orchestrator/replay.h"
#include "orchestrator/run_limits.h"
#include "orchestrator/run_open.h"
#include "orchestrator/services.h"
#include "orchestrator/warden.h"

#define TICK_MS	       1000
#define SAME_SIGNAL_MS 250
#define FILES_NEEDED   40 /* with one agent it works with 24; those to come need three each */

char *run_path(const struct run *run, const char *fmt, ...)
{
	va_list ap;
	char *tail = NULL;

	va_start(ap, fmt);
	if (vasprintf(&tail, fmt, ap) < 0)
		abort();
	va_end(ap);
	char *path = file_join(run->dir, tail);
	free(tail);
	return path;
}

double run_cost(const struct run *run, double cost)
{
	return run->model && run->model->price.known ? cost : NAN;
}

const char *run_status_name(const struct run *run)
{
	switch (run->exit_status) {
	case EXIT_OK:
	case EXIT_FINDINGS: return "succeeded";
	case EXIT_BUDGET: return "budget";
	case EXIT_INTERRUPTED: return "stopped";
	default: return "failed";
	}
}

static bool agent_was_cut(const struct agent_record *agent)
{
	/* What became of one that an agent started is its starter's to judge. */
	if (!agent->status || agent->family.spawner)
		return false;
	/* What stood against bringing its work home can be put right, and the step be made again. */
	if (agent->kept_for_room || agent->collect_failed)
		return true;
	if (agent->status == OUTCOME_DONE)
		return false;
	/* A full disk or too few descriptors end an agent, and neither lasts. */
	return agent->status == OUTCOME_LOST || agent->status == OUTCOME_STOPPED ||
	       agent_ended_for_room(agent->reason);
}

/* Its work was cut short: by somebody, a limit, a network, or the death of a process. What it was started with
 * wrongly does not become right by going on. */
bool run_is_resumable(const struct run *run)
{
	bool cut = run->exit_status == EXIT_FAILED && agent_ended_for_room(run->stop_reason);

	for (size_t i = 0; i < run->agents.count; i++)
		cut |= agent_was_cut(run->agents.list[i]);
	return run->exit_status == EXIT_BUDGET || run->exit_status == EXIT_UNREACHABLE || cut ||
	       (run->stopping && run->exit_status != EXIT_USAGE);
}

void run_take_up(struct run *run, const char *id, struct replay *replay, int lock_fd)
{
	snprintf(run->id, sizeof(run->id), "%s", id);
	run->replay = replay;
	run->lock_fd = lock_fd;
	run->before_ms = replay->elapsed_ms;
	run->started_ms -= replay->elapsed_ms;
	run->started_wall_ms = replay->started_ms;
	run->budget.used = replay->used;
	run->task = json_str(replay->request, "task", "");
}

/* ---- ending ---- */

static void set_outcome(struct run *run, enum exit_status status, const char *reason)
{
	if (run->finish_wanted)
		return;
	run->finish_wanted = true;
	run->exit_status = status;
	free(run->stop_reason);
	run->stop_reason = mem_strdup(reason);
}

void run_finish(struct run *run, enum exit_status status, const char *reason)
{
	set_outcome(run, status, reason);
}

void run_stop(struct run *run, enum exit_status status, const char *reason)
{
	set_outcome(run, status, reason);
	if (run->stopping)
		return;
	run->stopping = true;
	if (run->journal)
		journal_add(run->journal, RECORD_RUN_STOPPING, "reason:s", reason);
	else if (!run->failure_told) /* there is no view and will be no report */
		fprintf(stderr, "baton: %s\n", reason);
	agents_stop_all(run, reason);
	if (run->children)
		children_stop_all(run->children, CHILD_JOB, 1000);
}

void run_fail(struct run *run, const struct err *err)
{
	if (!run->journal) {
		command_fail(err);
		run->failure_told = true;
	}
	run_stop(run, command_status(err), err->message);
}

void run_output_failed(struct run *run, const struct err *err)
{
	command_fail(err);
	if (run->exit_status != EXIT_OK && run->exit_status != EXIT_FINDINGS)
		return;
	run->exit_status = EXIT_FAILED;
	free(run->stop_reason);
	run->stop_reason = mem_strdup(err->message);
}

/* WORKING -> CLOSING, once nobody works any more. */
static void begin_closing(struct run *run)
{
	run->state = RUN_CLOSING;
	if (run->journal) {
		outcome_write(run);
		struct err err = ERR_INIT;
		if (journal_commit(run->journal, &err) < 0)
			run_output_failed(run, &err);
		services_poke_view(run);
	}
	control_close(run->control);
	run->control = NULL;
	services_stop(run);
}

static void advance(struct run *run)
{
	if (run->state < RUN_CLOSING && run->finish_wanted && run->agents.live == 0 &&
	    run->pending == 0)
		begin_closing(run);
	if (run->state == RUN_CLOSING && children_count(run->children, -1) == 0)
		run->state = RUN_CLOSED;
}

/* ---- signals and timers ---- */

static void on_stop_signal(evutil_socket_t sig, short what, void *arg)
{
	struct run *run = arg;
	int64_t now = clock_mono_ms();

	/* One Ctrl-C may come twice: from the terminal and through the warden. */
	if (run->interrupts > 0 && now - run->interrupted_ms < SAME_SIGNAL_MS)
		return;
	run->interrupted_ms = now;
	run->interrupts++;
	if (run->interrupts == 1) {
		run_stop(run, EXIT_INTERRUPTED,
			 sig == SIGINT	 ? "interrupted"
			 : sig == SIGHUP ? "the terminal was closed"
					 : "stopped from outside (baton stop, SIGTERM)");
		return;
	}
	/* Twice: at once. Worktrees stay, no report is waited for. */
	agents_kill_all(run);
	children_stop_all(run->children, -1, 0);
}

/* The time in which a person held the run is not the run's. */
static void arm_time_limit(struct run *run)
{
	int64_t limit = settings_i64(run->settings, OPT_TIME_LIMIT);
	int64_t worked = clock_mono_ms() - run->started_ms - run_paused_ms(run);
	struct timeval tv = clock_timeval(MAX(limit - worked, INT64_C(1)));

	evtimer_add(run->ev_time, &tv);
}

static void on_time_limit(evutil_socket_t fd, short what, void *arg)
{
	struct run *run = arg;
	int64_t limit = settings_i64(run->settings, OPT_TIME_LIMIT);

	if (clock_mono_ms() - run->started_ms - run_paused_ms(run) < limit) {
		arm_time_limit(run);
		return;
	}
	if (run->journal)
		journal_add(run->journal, RECORD_BUDGET_REACHED, "kind:s", "time");
	free(run->way_on);
	run->way_on = mem_printf("baton resume %s --time-limit %llds", run->id,
				 (long long)(2 * limit / 1000 + 1));
	run_stop(run, EXIT_BUDGET, "the time limit was reached");
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct run *run = arg;

	if (run->sweep_wanted && children_sweep(run->children))
		run->sweep_wanted = false;
	if (run->state == RUN_WORKING) {
		agents_watch(run);
		run_limits_look(run);
	}
	/* The parent's own death signal can be lost when the warden died first. */
	if (getppid() != run->warden_pid && run->warden_pid)
		run_stop(run, EXIT_INTERRUPTED, "the warden died");
}

static struct event *signal_event(struct run *run, int sig)
{
	struct event *ev = evsignal_new(run->base, sig, on_stop_signal, run);

	event_add(ev, NULL);
	return ev;
}

static void arm_timers(struct run *run)
{
	struct timeval tick = clock_timeval(TICK_MS);

	run->ev_int = signal_event(run, SIGINT);
	run->ev_term = signal_event(run, SIGTERM);
	run->ev_hup = signal_event(run, SIGHUP);
	run->ev_tick = event_new(run->base, -1, EV_PERSIST, on_tick, run);
	event_add(run->ev_tick, &tick);
	if (settings_i64(run->settings, OPT_TIME_LIMIT)) {
		run->ev_time = evtimer_new(run->base, on_time_limit, run);
		arm_time_limit(run);
	}
}

/* ---- life ---- */

struct run *run_new(struct settings *settings, const struct run_driver *driver, void *arg)
{
	struct run *run = mem_alloc(sizeof(*run));

	run->settings = settings;
	run->driver = driver;
	run->driver_arg = arg;
	run->task = "";
	run->lock_fd = run->key_fd = run->poke_fd = run->rehearsal_out = -1;
	run->started_ms = clock_mono_ms();
	run->started_wall_ms = clock_wall_ms();
	run->agents.limit = (size_t)settings_i64(settings, OPT_AGENTS);
	run_budget_init(&run->budget, settings_double(settings, OPT_MAX_COST),
			settings_i64(settings, OPT_MAX_TOKENS));
	return run;
}

static int run_prepare(struct run *run, struct err *err)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	struct box_facts facts;

	prctl(PR_SET_DUMPABLE, 0);
	sigaction(SIGPIPE, &ignore, NULL);
	run->warden_pid = getppid();
	if (spawn_raise_nofile(FILES_NEEDED, err) < 0)
		return -1;
	run->base = event_base_new();
	if (!run->base)
		return err_set(err, ERR_IO, "cannot make an event loop");
	arm_timers(run);
	warden_unblock_signals();
	if (spawn_become_subreaper(err) < 0)
		return -1;
	run->children = children_new(run->base);
	run->relay = call_relay_new();
	if (services_start_gateway(run, err) < 0 || services_start_git(run, err) < 0)
		return -1;
	run_open_repository(run);
	if (services_start(run, err) < 0)
		return -1;
	box_probe(&facts);
	run->box_level = facts.best; /* --unconfined only allows to go on where there is none */
	return 0;
}

/* What the reserve left is for the end: agents are stopped, their work is kept, and the report is written. */
static void stop_for_room(struct run *run)
{
	struct err err = ERR_INIT;

	err_set(&err, ERR_NO_SPACE, "%s; the work is kept: make room, then 'baton resume %s'",
		journal_low(run->journal), run->id);
	command_fail(&err);
	run_stop(run, EXIT_FAILED, err.message);
}

static void turn(struct run *run)
{
	struct err err = ERR_INIT;

	event_base_loop(run->base, EVLOOP_ONCE);
	while (run->journal && journal_pending(run->journal)) {
		if (journal_commit(run->journal, &err) < 0) {
			command_fail(&err);
			run_stop(run, EXIT_FAILED, err.message);
			break;
		}
		if (journal_low(run->journal) && !run->stopping)
			stop_for_room(run);
		services_poke_view(run);
	}
	advance(run);
	children_flush(run->children);
}

int run_main(struct run *run)
{
	struct err err = ERR_INIT;

	if (run_prepare(run, &err) < 0) {
		run_fail(run, &err);
		if (!run->children)
			return run->exit_status;
	}
	/* What failed before the loop may have left nothing that could wake it. */
	advance(run);
	children_flush(run->children);
	while (run->state != RUN_CLOSED)
		turn(run);
	spawn_kill_descendants(NULL, 0, clock_mono_ms() + 3000);
	calibration_save(&run->calibration);
	return run->exit_status;
}

void run_free(struct run *run)
{
	struct event *events[] = {run->ev_int,	run->ev_term,	run->ev_hup,	  run->ev_time,
				  run->ev_tick, run->ev_budget, run->ev_rehearsal};
	struct json_object *trees[] = {run->repository, run->instructions, run->provider_json,
				       run->report};
	char *strings[] = {run->common_dir,    run->toplevel,	 run->dir,
			   run->worktrees_dir, run->provider,	 run->model_name,
			   run->rehearsal,     run->stop_reason, run->way_on};
	int fds[] = {run->lock_fd, run->key_fd, run->poke_fd, run->rehearsal_out};

	control_close(run->control);
	journal_close(run->journal);
	agents_release(&run->agents);
	stage_budgets_release(&run->stages);
	replay_free(run->replay);
	for (size_t i = 0; i < ARRAY_SIZE(events); i++) {
		if (events[i])
			event_free(events[i]);
	}
	git_client_free(run->git_client);
	children_free(run->children);
	call_relay_free(run->relay);
	if (run->base)
		event_base_free(run->base);
	for (size_t i = 0; i < ARRAY_SIZE(trees); i++)
		json_object_put(trees[i]);
	for (size_t i = 0; i < ARRAY_SIZE(strings); i++)
		free(strings[i]);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		if (fds[i] >= 0)
			close(fds[i]);
	}
	model_free(run->model);
	calibration_release(&run->calibration);
	project_memory_release(&run->memory);
	buf_release(&run->rehearsal_line);
	free(run);
}
