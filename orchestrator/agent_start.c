/*
 * agent_start.c - start documents and worktrees. Runs in the parent.
 *
 * The agent's process, its worktree and its first request overlap: the document goes out as soon as
 * the agent said hello, and tools wait for `ready`.
 */
#include "orchestrator/agent_start.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "orchestrator/agent_reset.h"
#include "orchestrator/collect.h"
#include "orchestrator/fork.h"
#include "orchestrator/hooks.h"
#include "orchestrator/run.h"
#include "orchestrator/setup.h"
#include "orchestrator/subagents.h"

struct json_object *agent_git_entry(const struct agent_record *agent)
{
	struct json_object *entry = json_object_new_object();

	json_set_str(entry, "run", agent->run->id);
	json_set_str(entry, "agent", agent->name);
	json_set_str(entry, "branch", agent->branch);
	json_set_str(entry, "base", agent->base);
	json_set_str(entry, "worktree", agent->worktree);
	json_set_str(entry, "git_dir", agent->git_dir);
	return entry;
}

/* Tells the agent what became of its worktree, once both sides are so far. */
static void send_ready(struct agent_record *agent)
{
	AUTO_JSON struct json_object *body = NULL;
	struct buf out = BUF_INIT;

	if (!agent->sent_start || agent->ready == READY_UNKNOWN || !agent->child ||
	    !agent->child->channel)
		return;
	body = json_object_new_object();
	json_set_bool(body, "ok", agent->ready == READY_OK);
	json_set_str(body, "message", agent->ready_message);
	json_write(&out, body);
	channel_send(agent->child->channel, FRAME_READY, NULL, out.data, out.len);
	buf_release(&out);
}

static void worktree_ready(struct agent_record *agent, const char *failure)
{
	agent->ready = failure ? READY_FAILED : READY_OK;
	free(agent->ready_message);
	agent->ready_message = mem_strdup(failure);
	bool started = agent->sent_start;
	agent_start_if_ready(agent); /* it may have waited for the setup command */
	if (started)
		send_ready(agent);
	hooks_worktree_ready(agent);
}

/* Trap 126: a failed setup is told before the model starts, and nothing is spent. */
static void on_setup_done(struct agent_record *agent, const char *failure)
{
	if (agent->state == AGENT_COLLECTING) {
		collect_start(agent); /* the agent was gone before its setup was over */
		return;
	}
	if (!failure) {
		agent->setup_pending = false;
		worktree_ready(agent, NULL);
		return;
	}
	journal_add(agent->run->journal, RECORD_WORKTREE_SETUP_FAILED, "agent:s message:s",
		    agent->name, failure);
	agent_fail(agent, failure);
}

static void note_worktree(struct agent_record *agent, struct json_object *answer,
			  const struct err *failure)
{
	struct run *run = agent->run;

	if (failure) {
		journal_add(run->journal, RECORD_WORKTREE_FAILED, "agent:s message:s", agent->name,
			    failure->message);
		return;
	}
	agent->worktree_made = true;
	journal_add(run->journal, RECORD_WORKTREE_CREATED,
		    "agent:s path:s branch:s files:i notes:j", agent->name, agent->worktree,
		    agent->branch, json_i64(answer, "files", 0), json_arr(answer, "notes"));
}

void agent_worktree_made(struct agent_record *agent)
{
	if (agent->setup_pending && agent->child)
		setup_run(agent, settings_str(agent->run->settings, OPT_SETUP), on_setup_done);
	else
		worktree_ready(agent, NULL);
}

static void on_worktree(struct json_object *answer, const struct err *failure, void *arg)
{
	struct agent_record *agent = arg;

	agent->create_pending = false;
	note_worktree(agent, answer, failure);
	if (agent->state == AGENT_COLLECTING) {
		collect_start(agent); /* the agent was gone before its worktree was there */
		return;
	}
	if (failure) {
		AUTO_FREE char *reason = mem_printf("no worktree: %s", failure->message);
		agent_fail(agent, reason);
		return;
	}
	agent_worktree_made(agent);
}

void agent_make_worktree(struct agent_record *agent)
{
	AUTO_JSON struct json_object *request = agent_git_entry(agent);

	agent->setup_pending = settings_str(agent->run->settings, OPT_SETUP) != NULL;
	agent->create_pending = true;
	git_client_call(agent->run->git_client, "create", request, on_worktree, agent);
}

/* ---- the document ---- */

static struct json_object *strings(const char *const *list)
{
	struct json_object *array = json_object_new_array();

	for (; list && *list; list++)
		json_object_array_add(array, json_object_new_string(*list));
	return array;
}

/* The user's --network is the most that a role can get; a role may ask for less. */
const char *agent_network(const struct agent_record *agent)
{
	static const char *const modes[] = {"none", "loopback", "open"};
	const char *allowed = settings_str(agent->run->settings, OPT_NETWORK);
	const char *wanted = agent->role->network;

	if (!wanted || !allowed)
		return allowed ? allowed : "none";
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		if (strcmp(modes[i], allowed) == 0 || strcmp(modes[i], wanted) == 0)
			return modes[i];
	}
	return "none";
}

static struct json_object *document_role(const struct agent_record *agent)
{
	static const char *const all_tools[] = {"read",	  "write", "edit",   "glob",
						"grep",	  "shell", "job",    "notes",
						"recall", "agent", "report", NULL};
	const struct role *role = agent->role;
	const struct settings *s = agent->run->settings;
	struct json_object *doc = json_object_new_object();
	const char *effort = role->effort ? role->effort : settings_str(s, OPT_EFFORT);

	json_set_str(doc, "name", role->name);
	json_set_str(doc, "prompt", role->prompt);
	json_set(doc, "tools", strings(role->tools ? (const char *const *)role->tools : all_tools));
	json_set_bool(doc, "write", role->write && !fork_origin(agent)->view);
	json_set_str(doc, "network", agent_network(agent));
	json_set_str(doc, "effort", effort);
	json_set_str(doc, "reset", agent_reset_policy(agent));
	json_set_i64(doc, "max_rounds", agent->max_rounds);
	json_set_i64(doc, "max_output", settings_i64(s, OPT_MAX_OUTPUT));
	json_set(doc, "output_schema", json_object_get(agent->output_schema));
	return doc;
}

static struct json_object *document_environment(const struct agent_record *agent)
{
	struct json_object *doc = json_object_new_object();
	struct utsname host;
	char stamp[CLOCK_STAMP_SIZE];

	uname(&host);
	AUTO_FREE char *platform = mem_printf("%s %s", host.sysname, host.machine);
	json_set_str(doc, "branch", agent->branch);
	json_set_str(doc, "base", agent->base);
	json_set_str(doc, "platform", platform);
	clock_stamp(clock_wall_ms(), stamp);
	json_set_strn(doc, "date", stamp, 10);
	json_set_str(doc, "repository", json_str(agent->run->repository, "name", ""));
	return doc;
}

static struct json_object *document_dirs(const struct agent_record *agent)
{
	struct json_object *doc = json_object_new_object();
	AUTO_FREE char *scratch = file_join(agent->gen_dir, "scratch");
	AUTO_FREE char *cache = file_join(agent->dir, "cache");

	json_set_str(doc, "generation", agent->gen_dir);
	json_set_str(doc, "worktree", agent->worktree);
	json_set_str(doc, "git", agent->git_dir);
	json_set_str(doc, "scratch", scratch);
	if (!settings_flag(agent->run->settings, OPT_VERBOSE)) {
		AUTO_FREE char *log = file_join(agent->gen_dir, "stderr.log");
		json_set_str(doc, "stderr", log);
	}
	json_set_str(doc, "cache", cache);
	return doc;
}

struct list { /* of owned strings */
	char **items;
	size_t count, cap;
};

static void list_add(struct list *list, char *item)
{
	MEM_GROW(list->items, list->cap, list->count + 1);
	list->items[list->count++] = item;
}

/* The user's objects, and those that they borrow from: the private repository reads all of them. */
static void add_object_stores(struct list *read, const char *common_dir)
{
	AUTO_FREE char *objects = file_join(common_dir, "objects");
	AUTO_FREE char *path = file_join(objects, "info/alternates");
	AUTO_BUF struct buf text = BUF_INIT;

	list_add(read, mem_strdup(objects));
	if (file_read(AT_FDCWD, path, 64 << 10, &text, NULL) < 0)
		return;
	for (char *line = text.data; line && *line;) {
		size_t n = strcspn(line, "\n");
		AUTO_FREE char *name = mem_strndup(line, n);
		AUTO_FREE char *folder = file_join(objects, name);
		if (n > 0 && *name != '#' && file_is_dir(folder))
			list_add(read, mem_strdup(folder));
		line += n + (line[n] == '\n');
	}
}

char **run_read_paths(const struct run *run, bool objects)
{
	const char *const *more = settings_list(run->settings, OPT_READ_PATHS);
	struct list read = {0};

	for (size_t i = 0; more && more[i]; i++)
		list_add(&read, mem_strdup(more[i]));
	if (objects)
		add_object_stores(&read, run->common_dir);
	list_add(&read, NULL);
	return read.items;
}

char **agent_read_paths(const struct agent_record *agent)
{
	return run_read_paths(agent->run, !agent->view);
}

static struct json_object *document_box(const struct agent_record *agent)
{
	const struct settings *s = agent->run->settings;
	struct json_object *doc = json_object_new_object();
	bool unconfined = agent->run->box_level == BOX_NONE;
	AUTO_FREE char *program = unconfined ? NULL : file_find_program("baton-box", NULL);
	char **read = agent_read_paths(agent);

	json_set_str(doc, "program", program);
	json_set_str(doc, "level", unconfined ? "unconfined" : "auto");
	json_set(doc, "read_paths", strings((const char *const *)read));
	env_list_free(read);
	json_set(doc, "pass_env", strings(settings_list(s, OPT_PASS_ENV)));
	return doc;
}

static struct json_object *document_limits(const struct agent_record *agent)
{
	struct json_object *doc = json_object_new_object();
	int64_t shell = settings_i64(agent->run->settings, OPT_SHELL_TIMEOUT);

	json_set_i64(doc, "shell_timeout_ms", shell);
	json_set_i64(doc, "shell_timeout_max_ms", MAX(shell, 600000));
	json_set_i64(doc, "checkpoint_ms", settings_i64(agent->run->settings, OPT_CHECKPOINT));
	/* A4 bounds what another agent has to read; a review is read by this program, whole. */
	json_set_i64(doc, "report_tokens", agent->view && !agent->family.spawner ? 200000 : 2000);
	return doc;
}

/* W3: what this role's answers took so far with this model; the built-in buffer until enough is known. */
static int64_t learned_buffer(const struct agent_record *agent, const struct knob *knob)
{
	struct run *run = agent->run;
	int64_t learned = run->rehearsal ? 0
					 : calibration_buffer(&run->calibration, agent->model,
							      agent->role->name);

	return learned > 0 ? learned : knob->dflt;
}

/* Every number of the context engine, by its table. */
static struct json_object *document_context(const struct agent_record *agent)
{
	struct json_object *doc = json_object_new_object();
	struct run *run = agent->run;
	size_t n;
	const struct knob *table = knob_table(&n);

	for (size_t i = 0; i < n; i++) {
		const struct knob *k = &table[i];
		int64_t value = settings_knob(run->settings, k, agent->role->knobs);

		if (k->kind == KNOB_LEARNED && value == KNOB_AUTO)
			value = learned_buffer(agent, k);
		if (k->kind == KNOB_FLAG)
			json_set_bool(doc, k->name, value);
		else
			json_set_i64(doc, k->name, value);
	}
	run->budget.long_cache |= json_flag(doc, "cache_1h", false);
	/* A scripted model counts as it likes. */
	if (!run->rehearsal)
		json_set(doc, "calibration", calibration_recall(&run->calibration, agent->model));
	return doc;
}

/* What was found out about its worktree while nobody worked; NULL: nothing. Caller frees. */
static char *resume_note(const struct agent_record *agent)
{
	AUTO_BUF struct buf text = BUF_INIT;

	for (size_t i = 0; i < json_len(agent->notes); i++)
		buf_addf(&text, "%s%s.", i ? " " : "",
			 json_object_get_string(json_at(agent->notes, i)));
	return text.len ? mem_strdup(buf_str(&text)) : NULL;
}

static struct json_object *start_document(const struct agent_record *agent)
{
	struct run *run = agent->run;
	struct json_object *doc = json_object_new_object();
	AUTO_FREE char *image = file_find_program("baton-image", NULL);
	AUTO_FREE char *head_ref =
		agent->branch ? mem_printf("refs/heads/%s", agent->branch) : NULL;

	json_set_str(doc, "run", run->id);
	json_set_str(doc, "agent", agent->name);
	json_set_i64(doc, "generation", agent->generation);
	json_set_bool(doc, "resume", agent->resume);
	AUTO_FREE char *note = resume_note(agent);
	json_set_str(doc, "resume_note", note);
	json_set(doc, "handoff", agent_handoff_document(agent));
	json_set_bool(doc, "subagents", subagents_allowed(agent));
	json_set(doc, "children", subagents_document(agent));
	json_set(doc, "fork", fork_document(agent));
	json_set(doc, "role", document_role(agent));
	json_set_str(doc, "task", agent->task);
	json_set_str(doc, "task_origin", agent->task_of_user ? "user" : "agent");
	json_set_str(doc, "brief", agent->brief ? agent->brief : "");
	json_set(doc, "instructions", json_object_get(run->instructions));
	AUTO_FREE char *memory = project_memory_text(&run->memory);
	json_set_str(doc, "memory", memory);
	json_set(doc, "environment", document_environment(agent));
	json_set(doc, "model", model_to_json(agent->model));
	if (agent->compact_model)
		json_set(doc, "compact_model", model_to_json(agent->compact_model));
	json_set(doc, "dirs", document_dirs(agent));
	AUTO_FREE char *git_file =
		agent->git_dir ? mem_printf("gitdir: %s\n", agent->git_dir) : NULL;
	json_set_str(doc, "git_file", git_file);
	json_set_str(doc, "head_ref", head_ref);
	json_set_bool(doc, "verbose", log_is_verbose());
	json_set_bool(doc, "worktree_ready", agent->view != NULL);
	json_set_bool(doc, "read_only", agent->view != NULL || !agent->role->write);
	json_set(doc, "box", document_box(agent));
	json_set_str(doc, "image_program", image);
	json_set(doc, "limits", document_limits(agent));
	json_set(doc, "hooks", hooks_document(run->settings));
	json_set(doc, "context", document_context(agent));
	return doc;
}

void agent_start_if_ready(struct agent_record *agent)
{
	if (agent->said_hello && !agent->sent_start && !agent->setup_pending && !agent->reopening &&
	    agent->child && agent->child->channel)
		agent_send_start(agent);
}

void agent_send_start(struct agent_record *agent)
{
	AUTO_JSON struct json_object *doc = start_document(agent);
	struct buf out = BUF_INIT;

	json_write(&out, doc);
	channel_send(agent->child->channel, FRAME_START, NULL, out.data, out.len);
	buf_release(&out);
	agent->sent_start = true;
	agent->state = AGENT_WORKING;
	agent->last_progress_ms = clock_mono_ms();
	send_ready(agent);
}
