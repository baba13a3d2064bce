/*
 * cmd_resume.c - `baton resume [RUN]`: a run that was cut off, stopped or out of budget goes on (R6, X12).
 *
 * The lock is taken here, before the warden forks, and stays with both: as long as one of them lives nobody else
 * goes on with the run. What the journal says is read under it. All that speaks against going on is found before a
 * process is started, and says what to do instead.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "orchestrator/command.h"
#include "orchestrator/replay.h"
#include "orchestrator/runs.h"
#include "orchestrator/tell.h"

#define LAST_ONES_MS 6000 /* the processes of a killed parent are ended within 5 s (warden.c) */

/* ---- without a name ---- */

static void offer(const struct past_run *run)
{
	AUTO_BUF struct buf task = BUF_INIT;
	const char *text = run->task ? run->task : "";

	text_printable(&task, text, strlen(text), true);
	buf_truncate(&task, text_floor(task.data, task.len, MIN(task.len, (size_t)60)));
	command_say("baton resume %-12s  %s, %s: %s\n", run->id, run->command ? run->command : "?",
		    run->status, buf_str(&task));
}

static int offer_all(struct settings *s)
{
	struct past_run *runs;
	size_t n, found = 0;
	struct err err = ERR_INIT;
	AUTO_JSON struct json_object *list = json_object_new_array();

	if (runs_list(s, &runs, &n, &err) < 0)
		return command_fail(&err);
	for (size_t i = 0; i < n; i++) {
		if (!runs[i].resumable)
			continue;
		found++;
		json_object_array_add(list, json_object_new_string(runs[i].id));
		if (!settings_flag(s, OPT_JSON))
			offer(&runs[i]);
	}
	if (settings_flag(s, OPT_JSON))
		command_print_json(list);
	else if (!found)
		command_say("no run of this repository can go on; 'baton ls' lists them all\n");
	runs_free(runs, n);
	return EXIT_OK;
}

/* ---- may it go on? ---- */

/* The owner's pid, as it wrote it; 0: it does not say. */
static int owner(int fd)
{
	char text[32] = "";
	int64_t pid = 0;

	if (pread(fd, text, sizeof(text) - 1, 0) <= 0)
		return 0;
	text[strcspn(text, "\n")] = '\0';
	return text_parse_count(text, &pid) == 0 ? (int)pid : 0;
}

static int take_lock(const struct past_run *run, int *ret_fd, struct err *err)
{
	AUTO_FREE char *path = file_join(run->dir, "lock");
	AUTO_FD int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_sys(err, "cannot open '%s'", path);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK)
			return err_sys(err, "cannot lock '%s'", path);
		return err_set(err, ERR_EXISTS,
			       "run %s is alive: process %d works on it; wait for its end, or end "
			       "it with 'baton stop "
			       "%s'",
			       run->id, owner(fd), run->id);
	}
	*ret_fd = take_fd(fd);
	return 0;
}

/* Is it `baton agent`? A pid alone may be anybody's by now. */
static bool is_agent(pid_t pid)
{
	static const char words[] = "baton\0agent";
	AUTO_FREE char *path = mem_printf("/proc/%d/cmdline", (int)pid);
	char text[64] = "";
	AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd >= 0 && read(fd, text, sizeof(text) - 1) >= (ssize_t)sizeof(words) - 1 &&
	       memcmp(text, words, sizeof(words)) == 0;
}

/* Two processes of one agent would write one transcript and one worktree. */
static int wait_for_last_ones(const struct replay *replay, struct err *err)
{
	int64_t deadline = clock_mono_ms() + LAST_ONES_MS;

	for (size_t i = 0; i < replay->n_agents; i++) {
		const struct replay_agent *a = replay->agents[i];
		while (a->pid > 0 && is_agent(a->pid)) {
			if (clock_mono_ms() >= deadline)
				return err_set(err, ERR_EXISTS,
					       "agent %s of this run is still alive as process %d; "
					       "end it first (kill %d)",
					       a->name, (int)a->pid, (int)a->pid);
			poll(NULL, 0, 20);
		}
	}
	return 0;
}

/* A run whose limit is used up would end before it began. */
static int check_limits(const struct settings *s, const struct replay *replay, struct err *err)
{
	const struct budget_usage *u = &replay->used;
	int64_t tokens = u->fresh + u->cache_read + u->cache_write + u->output;
	int64_t max_tokens = settings_i64(s, OPT_MAX_TOKENS);
	int64_t limit = settings_i64(s, OPT_TIME_LIMIT);
	double max_cost = settings_double(s, OPT_MAX_COST);

	if (limit && replay->elapsed_ms >= limit)
		return err_set(err, ERR_USAGE,
			       "the run has worked for %lld s, and its --time-limit is %lld s: "
			       "give it a larger one",
			       (long long)(replay->elapsed_ms / 1000), (long long)(limit / 1000));
	if (max_tokens && tokens >= max_tokens)
		return err_set(
			err, ERR_USAGE,
			"the run has used %lld tokens, and its --max-tokens is %lld: give it more",
			(long long)tokens, (long long)max_tokens);
	if (max_cost >= 0 && u->cost >= max_cost)
		return err_set(
			err, ERR_USAGE,
			"the run has cost %.4f USD, and its --max-cost is %.4f: give it more",
			u->cost, max_cost);
	return 0;
}

static int read_run(struct settings *s, const struct past_run *run, struct replay **ret,
		    struct err *err)
{
	struct replay *replay;

	if (replay_read(run->dir, &replay, err) < 0)
		return -1;
	AUTO_FREE char *refusal = replay_refusal(replay, run->id);
	int rc = refusal ? err_set(err, ERR_USAGE, "%s", refusal) : 0;
	if (rc == 0)
		rc = settings_restore(s, replay->settings, run->id, err);
	if (rc == 0)
		rc = check_limits(s, replay, err);
	if (rc == 0)
		rc = wait_for_last_ones(replay, err);
	if (rc < 0) {
		replay_free(replay);
		return -1;
	}
	replay->toplevel = mem_strdup(run->toplevel);
	*ret = replay;
	return 0;
}

/* What was skipped is told before the run speaks: it may explain what comes. */
static void warn(const struct replay *replay)
{
	if (replay->bad_lines)
		fprintf(stderr,
			"baton: %lld damaged line%s of the journal (the first is line %lld) passed "
			"over\n",
			(long long)replay->bad_lines, replay->bad_lines == 1 ? " was" : "s were",
			(long long)replay->first_bad_line);
	if (replay->unsettled)
		fprintf(stderr,
			"baton: %lld model call%s under way when the run was cut off; %s as spent "
			"by estimate\n",
			(long long)replay->unsettled, replay->unsettled == 1 ? " was" : "s were",
			replay->unsettled == 1 ? "it counts" : "they count");
}

static bool is_typed(const struct settings *s, enum option_id id)
{
	return strcmp(settings_origin(s, id), "command line") == 0;
}

/* It works, paused or not: what was given becomes a word to its parent. Only limits can change while it does. */
static int go_on_alive(const struct settings *s, const struct past_run *run,
		       const struct past_agent *agent, struct err *err)
{
	AUTO_JSON struct json_object *request = json_object_new_object();

	json_set_str(request, "op", "continue");
	if (is_typed(s, OPT_MAX_COST))
		json_set_double(request, "max_cost", settings_double(s, OPT_MAX_COST));
	if (is_typed(s, OPT_MAX_TOKENS))
		json_set_i64(request, "max_tokens", settings_i64(s, OPT_MAX_TOKENS));
	int rc = tell_run(s, run, agent, request, "goes on", err);
	if (rc < 0 && err->code == ERR_INVALID)
		err->code = ERR_USAGE; /* its parent's own words: nothing there could go on */
	return rc;
}

int cmd_resume(struct settings *s)
{
	struct past_run run;
	struct past_agent *agent;
	struct replay *replay = NULL;
	struct err err = ERR_INIT;
	int lock_fd = -1;

	if (settings_n_args(s) == 0)
		return offer_all(s);
	if (runs_find(s, settings_arg(s, 0), false, &run, &agent, &err) < 0)
		return command_fail(&err);
	if (run.alive || agent) {
		int told = go_on_alive(s, &run, agent, &err);
		run_release(&run);
		return told < 0 ? command_fail(&err) : EXIT_OK;
	}
	int rc = take_lock(&run, &lock_fd, &err);
	if (rc == 0)
		rc = read_run(s, &run, &replay, &err);
	AUTO_FREE char *id = mem_strdup(run.id);
	run_release(&run);
	if (rc < 0) {
		mem_close_fd(&lock_fd);
		return command_fail(&err);
	}
	warn(replay);
	bool review = strcmp(json_str(replay->request, "command", ""), "review") == 0;
	return review ? cmd_review_go_on(s, id, replay, lock_fd)
		      : cmd_run_go_on(s, id, replay, lock_fd);
}
