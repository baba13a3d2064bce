/*
 * agent.c - the life of an agent's process: hello, start, work, end.
 *
 *   hello -> start document -> (refused: result, status 2)
 *         -> conversation, client, tools -> work_run -> outcome
 *         -> kill descendants -> end record -> result frame -> drain
 *
 * This process is a subreaper: whatever its tools leave behind becomes its child, and it ends no
 * sooner than they do (I9). Its death signal is set by whoever spawned it. It holds no key, opens
 * no connection and reads no configuration: all that it knows came in the start document (I1).
 */
#include "agent/agent.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "agent/calibration.h"
#include "agent/events.h"
#include "agent/layers.h"
#include "agent/round.h"
#include "agent/state.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/spawn.h"

#define KILL_MS	 5000
#define DRAIN_MS 5000
#define LOG_MAX	 (1 << 20) /* bytes: stderr is a file of the run, which outlives it */

/* NONE is only reached by a bug of ours: the parent must hear of a failure rather than of an end that did not happen. */
static const char *end_word(enum outcome_status status)
{
	return status == OUTCOME_NONE ? "failed" : outcome_name(status);
}

/* W2: a fixed part above half of what there is leaves no room to work in. */
static int check_fixed_part(struct agent *a)
{
	struct text_counts counts = {.overhead = 0};
	int64_t instructions, fixed;

	for (size_t i = 0; i < a->settings->n_instructions; i++) {
		const char *text = a->settings->instructions[i].text;

		estimate_count(&counts, text, strlen(text));
	}
	instructions = estimate_tokens(&a->ledger.estimator, &counts);
	fixed = a->ledger.category[LEDGER_SYSTEM] + a->ledger.category[LEDGER_TOOLS] + instructions;
	if (fixed <= a->budget.fixed)
		return 0;
	return agent_end(a, OUTCOME_FAILED, CALL_OVERFLOW,
			 "system prompt (%" PRId64 "), tools (%" PRId64
			 ") and instructions (%" PRId64 ") take %" PRId64 " of %" PRId64
			 " tokens, more than half: shorten them or use a "
			 "model with a larger window",
			 a->ledger.category[LEDGER_SYSTEM], a->ledger.category[LEDGER_TOOLS],
			 instructions, fixed, a->budget.effective);
}

/* ---- the end ---- */

/* An error that reached this file. A wish to stop explains every error that came with it: a
 * cancelled wait, a tool that was killed. */
static void set_outcome(struct agent *a, const struct err *e)
{
	if (waiter_stopping(a->waiter))
		agent_end(a, OUTCOME_STOPPED, CALL_CLASS_NONE, "%s", waiter_reason(a->waiter));
	else
		agent_end(a, OUTCOME_FAILED, CALL_CLASS_NONE, "%s", e->message);
}

/* `until` lets the parent wait for the end of a provider's limit instead of giving the run up. */
static void send_result(struct agent *a)
{
	const struct outcome *o = &a->outcome;
	AUTO_BUF struct buf fields = BUF_INIT;
	AUTO_BUF struct buf body = BUF_INIT;

	buf_addf(&fields, "\"status\":\"%s\"", end_word(o->status));
	if (*o->reason) {
		buf_adds(&fields, ",\"reason\":");
		json_write_cstr(&fields, o->reason);
	}
	buf_addf(&body, "{\"rounds\":%" PRId64 ",\"tool_calls\":%" PRId64 ",\"class\":",
		 fork_own_rounds(a), a->record.tool_calls);
	if (o->class)
		buf_addf(&body, "\"%s\"", call_class_name(o->class));
	else
		buf_adds(&body, "null");
	if (o->until)
		buf_addf(&body, ",\"until\":%" PRId64, o->until);
	else
		buf_adds(&body, ",\"until\":null");
	buf_adds(&body, ",\"calibration\":");
	calibration_write(&a->ledger.estimator, &body);
	buf_adds(&body, ",\"memory\":");
	layers_end(a, &body);
	buf_addc(&body, '}');
	channel_send(a->channel, FRAME_RESULT, buf_str(&fields), body.data, body.len);
}

/* Nothing that this agent started outlives it; the last record and the last frame say how it ended.
 */
static int end_agent(struct agent *a)
{
	struct err e = ERR_INIT;

	/* Jobs first: their owner knows them by name. What is left is nobody's, and dies as it is
	 * found. */
	toolbox_release(&a->toolbox);
	if (spawn_kill_descendants(NULL, 0, clock_mono_ms() + KILL_MS) < 0)
		log_error("some processes that this agent's tools started could not be killed");
	if (a->transcript) {
		transcript_end(a->transcript, end_word(a->outcome.status), a->outcome.reason);
		if (transcript_sync(a->transcript, &e) < 0)
			log_error("the end is not on record: %s", e.message);
	}
	if (waiter_parent_gone(a->waiter)) {
		log_error("%s", "the parent is gone; there is nobody to tell the result");
		return 1;
	}
	send_result(a);
	return channel_drain(a->channel, clock_mono_ms() + DRAIN_MS, NULL) < 0 ? 1 : 0;
}

/* ---- the start ---- */

/* 0: the document is there; -1: stopped or alone before it came. */
static int await_start(struct waiter *w, struct err *err)
{
	while (!waiter_start(w))
		if (wait_poll(w, NULL, 0, INT64_MAX, err) < 0)
			return -1;
	return 0;
}

/* This process may be older than its agent: until here it wrote to the user's stderr. */
static int open_log(const char *path, struct err *err)
{
	AUTO_FD int fd = -1;

	if (!path)
		return 0;
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 || dup2(fd, STDERR_FILENO) < 0)
		return err_sys(err, "cannot open '%s'", path);
	return 0;
}

static int take_start(struct agent *a, struct err *err)
{
	const struct buf *start = waiter_start(a->waiter);
	AUTO_FREE char *name = NULL;

	if (agent_settings_parse(buf_str(start), start->len, &a->settings, err) < 0)
		return -1;
	waiter_drop_start(a->waiter);
	if (open_log(a->settings->stderr_path, err) < 0)
		return -1;
	name = mem_printf("agent %s", a->settings->agent);
	log_init(name, LOG_INFO);
	if (a->settings->verbose)
		log_be_verbose();
	return 0;
}

/* Each branch ends in an outcome; only a refused start has an exit status of its own. */
static int run_agent(struct agent *a)
{
	struct err e = ERR_INIT;
	size_t n_tools;
	const struct tool *table = tool_table(&n_tools);
	int refused = 0;

	if (await_start(a->waiter, &e) < 0) {
		set_outcome(a, &e);
	} else if (take_start(a, &e) < 0 || agent_make(a, table, n_tools, &e) < 0) {
		refused = 2;
		log_error("%s", e.message);
		set_outcome(a, &e);
	} else if (occupancy_start(a), !check_fixed_part(a) && work_run(a, &e) < 0) {
		set_outcome(a, &e);
	}
	return MAX(end_agent(a), refused);
}

static int prepare_process(struct err *err)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN};

	/* A parent that is gone is an error of the write, not a signal. */
	if (sigaction(SIGPIPE, &ignore, NULL) < 0)
		return err_sys(err, "cannot ignore SIGPIPE");
	return spawn_become_subreaper(err);
}

int agent_main(int fd_in, int fd_out)
{
	struct agent a = {.forced = FORCED_NOT};
	struct err e = ERR_INIT;
	int status;

	log_init("agent", LOG_INFO);
	log_set_limit(LOG_MAX);
	if (prepare_process(&e) < 0 || !(a.waiter = waiter_new(fd_in, fd_out, &e))) {
		log_error("%s", e.message);
		return 1;
	}
	a.channel = waiter_channel(a.waiter);
	a.transport = transport_channel(a.waiter);
	channel_send_hello(a.channel, "agent");
	status = run_agent(&a);
	agent_release(&a);
	waiter_free(a.waiter);
	return status;
}
