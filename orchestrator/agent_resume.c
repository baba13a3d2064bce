/*
 * agent_resume.c - see agent_resume.h. Runs in the parent.
 */
#include "orchestrator/agent_resume.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/jsonl.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "handoff/call.h"
#include "orchestrator/agent_start.h"
#include "orchestrator/collect.h"
#include "orchestrator/replay.h"
#include "orchestrator/run.h"

#define LINE_MAX_BYTES	   (64 << 20)
#define LATE_FILES_MAX	   20
#define LAST_WORD_GRACE_MS 2000 /* files may be a little younger than the last record */

/* ---- who it is ---- */

static int free_number(const struct run *run)
{
	int number = (int)run->agents.count + 1;

	while (run->replay && replay_number_taken(run->replay, number))
		number++;
	for (size_t i = 0; i < run->agents.count; i++)
		number = MAX(number, run->agents.list[i]->number + 1);
	return number;
}

static void recall_effects(struct agent_record *agent)
{
	const struct replay_agent *past = agent->past;

	for (size_t i = 0; i < past->n_effects; i++) {
		const struct replay_effect *e = &past->effects[i];
		effect_restore(agent, e->type, e->generation, e->call, e->ok, e->body);
	}
}

void agent_recall(struct agent_record *agent)
{
	struct run *run = agent->run;

	agent->generation = 1;
	agent->past = run->replay ? replay_by_key(run->replay, agent->key) : NULL;
	agent->number = agent->past && agent->past->number ? agent->past->number : free_number(run);
	snprintf(agent->name, sizeof(agent->name), "a%d", agent->number);
	if (!agent->past)
		return;
	const struct replay_agent *past = agent->past;
	agent->generation = past->generation;
	agent->rounds = past->rounds;
	agent->rounds_before = past->rounds_before;
	agent->tool_calls = past->tool_calls;
	agent->failed_calls = past->failed_calls;
	agent->usage = past->usage;
	agent->compactions = past->compactions;
	agent->worked_ms = past->worked_ms;
	agent->report = json_object_get(past->report);
	resets_copy(&agent->resets, &past->resets);
	recall_effects(agent);
	if (past->memory)
		project_memory_learn(&run->memory, past->memory);
}

/* ---- what becomes of it ---- */

enum fate { FATE_GO_ON, FATE_SUCCEED, FATE_COLLECT, FATE_LOOK };

/* Reasons are for people; what the system said stands in them as it says it (err_sys). */
bool agent_ended_for_room(const char *reason)
{
	static const int numbers[] = {ENOSPC, EDQUOT, EFBIG, EMFILE, ENFILE,
				      ENOMEM, EAGAIN, EIO,   EROFS};

	for (size_t i = 0; reason && i < ARRAY_SIZE(numbers); i++) {
		if (strstr(reason, strerror(numbers[i])))
			return true;
	}
	/* How an agent says of its own files what trap 144 demands. */
	return reason && strstr(reason, "no space on '") != NULL;
}

/* Would it end in the same way if it were started once more? */
static bool ended_for_good(const struct agent_record *agent)
{
	const struct replay_agent *past = agent->past;
	enum call_class class = call_class_parse(past->class);
	int64_t rounds = past->rounds - past->rounds_before;

	if (past->status == OUTCOME_DONE)
		return true;
	if (past->status == OUTCOME_STOPPED || past->status == OUTCOME_LOST ||
	    (!agent->view && !past->worktree_made) || agent_ended_for_room(past->reason))
		return false;
	if (class == CALL_BUDGET || call_class_unreachable(class))
		return false;
	/* --max-rounds may have been raised. */
	return past->status != OUTCOME_LIMIT || past->class || rounds >= agent->max_rounds;
}

/* Of one that an agent started: nobody waits for more of it. */
static bool is_unwanted(const struct agent_record *agent)
{
	const struct agent_record *spawner = agent->family.spawner;
	const struct replay_agent *past = agent->past;

	return spawner && (past->unwanted || (past->done && past->told) ||
			   spawner->state == AGENT_COLLECTING || spawner->state == AGENT_DONE);
}

static bool reported(const struct replay_agent *past)
{
	return past->report && past->report_call && strcmp(past->report_call, "by-rule") != 0;
}

/* It was killed or stopped between the acknowledgement of its report and its last word: the work is reported, and a second
 * process would report it twice. */
static bool cut_after_report(const struct replay_agent *past)
{
	return past->ended && past->status && reported(past) &&
	       (past->status == OUTCOME_LOST || past->status == OUTCOME_STOPPED);
}

static enum fate fate_of(const struct agent_record *agent)
{
	const struct replay_agent *past = agent->past;

	if (!past->spawned)
		return FATE_GO_ON;
	if (is_unwanted(agent))
		return past->done && !past->incomplete ? FATE_LOOK : FATE_COLLECT;
	if (past->reset)
		return FATE_SUCCEED;
	if (!past->ended)
		return reported(past) ? FATE_COLLECT : FATE_GO_ON;
	if (cut_after_report(past))
		return FATE_COLLECT;
	if (!past->status || !ended_for_good(agent))
		return FATE_GO_ON;
	return past->done && !past->incomplete ? FATE_LOOK : FATE_COLLECT;
}

/* ---- a process goes on ---- */

static bool is_answer(const char *line, size_t n, void *arg)
{
	return memmem(line, n, "\"role\":\"assistant\"", 18) != NULL;
}

static int stop_at_answer(struct json_object *record, int64_t offset, void *arg)
{
	return strcmp(json_str(record, "type", ""), "message") == 0 &&
	       strcmp(json_str(record, "role", ""), "assistant") == 0;
}

static bool has_answer(const struct agent_record *agent, const char *folder)
{
	AUTO_FREE char *path = file_join(folder, "transcript.jsonl");

	return jsonl_search(path, LINE_MAX_BYTES, is_answer, stop_at_answer, NULL, NULL, NULL) == 1;
}

/* A process that never heard of the model left nothing to go on with; what it wrote is kept beside. */
static void set_aside(const char *folder, const char *name)
{
	AUTO_FREE char *path = file_join(folder, name);

	for (int i = 1; file_exists(path) && i < 1000; i++) {
		AUTO_FREE char *aside = mem_printf("%s.%d", path, i);
		if (file_exists(aside))
			continue;
		if (rename(path, aside) < 0)
			log_warn("'%s' stands in the way of a new one: %s", path, strerror(errno));
		return;
	}
}

/* The report by rule of the process that is gone was about its end. */
static void forget_end(struct agent_record *agent)
{
	if (!agent->past->report_call || strcmp(agent->past->report_call, "by-rule") == 0 ||
	    agent->past->ended) {
		json_object_put(agent->report);
		agent->report = NULL;
	}
}

static void go_on(struct agent_record *agent)
{
	AUTO_FREE char *folder = mem_printf("%s/%lld", agent->dir, (long long)agent->generation);

	forget_end(agent);
	agent->resume = agent->past->spawned && has_answer(agent, folder);
	if (!agent->resume) {
		set_aside(folder, "transcript.jsonl");
		set_aside(folder, "words.jsonl");
	}
	agent_launch(agent);
}

/* The paths that carry this mark, LATE_FILES_MAX at most; "" for none. */
static void list_marked(struct json_object *answer, const char *mark, struct buf *out)
{
	struct json_object *files = json_arr(answer, "files");
	size_t n = 0;

	for (size_t i = 0; i < json_len(files); i++) {
		if (json_flag(json_at(files, i), mark, false) && n++ < LATE_FILES_MAX)
			buf_addf(out, "%s%s", out->len ? ", " : "",
				 json_str(json_at(files, i), "path", ""));
	}
	if (n > LATE_FILES_MAX)
		buf_adds(out, " and more");
}

static void add_note(struct agent_record *agent, const struct buf *text)
{
	json_object_array_add(agent->notes, json_object_new_string(buf_str(text)));
}

static void note_late_files(struct agent_record *agent, struct json_object *answer)
{
	AUTO_BUF struct buf names = BUF_INIT;
	AUTO_BUF struct buf text = BUF_INIT;

	list_marked(answer, "late", &names);
	if (!names.len)
		return;
	buf_addf(&text, "files that changed while the run was cut off: %s", buf_str(&names));
	add_note(agent, &text);
}

/* Did the machine start after the last record? By a power cut or not: nobody wrote down which. */
static bool machine_restarted(const struct replay *past)
{
	struct timespec up;

	if (!past->last_ms || clock_gettime(CLOCK_BOOTTIME, &up) < 0)
		return false;
	return clock_wall_ms() - ((int64_t)up.tv_sec * 1000 + up.tv_nsec / 1000000) > past->last_ms;
}

/* Edits are synced one by one; what a command writes is synced by nobody, and syncing a whole file system after each
 * command would cost each round more than all the rest of it. So the transcript may tell of effects that are gone. */
static void note_restart(struct agent_record *agent, struct json_object *answer)
{
	const char *checkpoint = json_str(answer, "checkpoint", NULL);
	AUTO_BUF struct buf names = BUF_INIT;
	AUTO_BUF struct buf text = BUF_INIT;

	if (!machine_restarted(agent->run->replay))
		return;
	list_marked(answer, "damaged", &names);
	buf_adds(&text, "the machine was restarted meanwhile: what commands wrote shortly before "
			"may be lost or incomplete, "
			"commits too (what the edit and write tools wrote is kept); look before "
			"you rely on it");
	if (names.len)
		buf_addf(&text, "; empty or ended by zeros, as a power cut leaves files: %s",
			 buf_str(&names));
	if (checkpoint)
		buf_addf(&text,
			 "; the last checkpoint has them as they were then (git show %.12s:FILE)",
			 checkpoint);
	add_note(agent, &text);
}

/* Whatever it did is in the worktree and nowhere else: it would do it once more without a word (R6). */
static void note_lost_transcript(struct agent_record *agent)
{
	const struct replay_agent *past = agent->past;

	if (agent->resume || past->reset || past->generation > 1 || past->tool_calls == 0)
		return;
	AUTO_FREE char *line = mem_printf(
		"this work was begun before: %lld tool calls were made in this worktree, and what "
		"was said and seen then is lost; look at the git log, git status and the files "
		"first, and do nothing twice",
		(long long)past->tool_calls);
	json_object_array_add(agent->notes, json_object_new_string(line));
}

static void tell_reopened(struct agent_record *agent, const char *how, const char *commit)
{
	agent->reopening = false;
	note_lost_transcript(agent);
	journal_add(agent->run->journal, RECORD_WORKTREE_REOPENED,
		    "agent:s path:s how:s commit:s notes:j", agent->name, agent->worktree, how,
		    commit, agent->notes);
	if (strcmp(how, "made") == 0) {
		agent_worktree_made(agent);
		return;
	}
	/* The setup command has succeeded before the first request left. */
	agent->setup_pending = agent->setup_pending && !agent->resume;
	agent_worktree_made(agent);
}

static void on_changed(struct json_object *answer, const struct err *failure, void *arg)
{
	struct agent_record *agent = arg;

	agent->create_pending = false;
	if (agent->state == AGENT_COLLECTING) {
		agent->reopening = false;
		collect_start(agent);
		return;
	}
	if (!failure) {
		note_late_files(agent, answer);
		note_restart(agent, answer);
	}
	tell_reopened(agent, "kept", NULL);
}

static void ask_what_changed(struct agent_record *agent)
{
	AUTO_JSON struct json_object *request = agent_git_entry(agent);

	json_set_i64(request, "since_ms", agent->run->replay->last_ms + LAST_WORD_GRACE_MS);
	json_set_bool(request, "damaged", true);
	git_client_call(agent->run->git_client, "status", request, on_changed, agent);
}

/* What stands in the way is for the user to move, and then it can go on: it is stopped, not failed. */
static void not_reopened(struct agent_record *agent, const char *why)
{
	AUTO_FREE char *reason = mem_printf("no worktree: %s", why);

	journal_add(agent->run->journal, RECORD_WORKTREE_FAILED, "agent:s message:s", agent->name,
		    why);
	agent_fail(agent, reason);
	agent->status = OUTCOME_STOPPED;
}

static void on_reopened(struct json_object *answer, const struct err *failure, void *arg)
{
	struct agent_record *agent = arg;

	if (failure || agent->state == AGENT_COLLECTING)
		agent->create_pending = agent->reopening = false;
	if (!failure)
		agent->worktree_made = true;
	if (agent->state == AGENT_COLLECTING) {
		collect_start(agent); /* the agent was gone before its worktree was there */
		return;
	}
	if (failure) {
		not_reopened(agent, failure->message);
		return;
	}
	agent->notes = json_object_get(json_arr(answer, "notes"));
	if (!agent->notes)
		agent->notes = json_object_new_array();
	if (strcmp(json_str(answer, "how", ""), "kept") == 0) {
		ask_what_changed(agent);
		return;
	}
	agent->create_pending = false;
	tell_reopened(agent, json_str(answer, "how", "restored"), json_str(answer, "commit", NULL));
}

void agent_reopen_worktree(struct agent_record *agent)
{
	AUTO_JSON struct json_object *request = agent_git_entry(agent);

	agent->setup_pending = settings_str(agent->run->settings, OPT_SETUP) != NULL;
	agent->create_pending = agent->reopening = true;
	git_client_call(agent->run->git_client, "reopen", request, on_reopened, agent);
}

/* ---- no process ---- */

static void on_looked(struct json_object *answer, const struct err *failure, void *arg)
{
	struct agent_record *agent = arg;
	const char *place = json_str(answer, "place", "gone");

	if (failure || strcmp(place, "ready") == 0)
		collect_start(
			agent); /* a failure comes to light there again, and keeps the worktree */
	else
		collect_gone(agent, strcmp(place, "removing") == 0);
}

/* Its steps may have been done before, some of them or all: each can be done twice. */
static void bring_home(struct agent_record *agent)
{
	const struct replay_agent *past = agent->past;
	AUTO_JSON struct json_object *request = NULL;
	enum outcome_status status = past->status   ? past->status
				     : past->report ? OUTCOME_DONE
						    : OUTCOME_STOPPED;
	bool cut = cut_after_report(past);

	agent->status = cut ? OUTCOME_DONE : status;
	agent->reason = cut ? NULL : mem_strdup(past->reason);
	if (!past->ended || cut)
		agent_journal_ended(agent);
	agent->state = AGENT_COLLECTING;
	agent->worktree_made = past->worktree_made;
	agent->merged_tip = mem_strdup(past->tip);
	if (agent->view || !agent->worktree_made) {
		collect_start(agent);
		return;
	}
	request = agent_git_entry(agent);
	json_set_bool(request, "look", true);
	git_client_call(agent->run->git_client, "reopen", request, on_looked, agent);
}

/* All is on record but what its work looks like. */
static void look_at(struct agent_record *agent)
{
	const struct replay_agent *past = agent->past;

	agent->status = past->status;
	agent->reason = mem_strdup(past->reason);
	agent->kept = mem_strdup(past->kept);
	agent->merged_tip = mem_strdup(past->tip);
	agent->worktree_made = past->worktree_made;
	agent->state = AGENT_COLLECTING;
	collect_look(agent);
}

static void succeed(struct agent_record *agent)
{
	agent->rounds_before = agent->rounds;
	agent->generation++;
	json_object_put(agent->report);
	agent->report = NULL;
	agent_launch(agent);
}

void agent_resume(struct agent_record *agent)
{
	switch (fate_of(agent)) {
	case FATE_GO_ON: go_on(agent); break;
	case FATE_SUCCEED: succeed(agent); break;
	case FATE_COLLECT: bring_home(agent); break;
	case FATE_LOOK: look_at(agent); break;
	}
}
