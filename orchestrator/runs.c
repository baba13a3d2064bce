/*
 * runs.c - reading runs from disk; see runs.h. The journal is the only source (I10); run.json is
 * read for runs whose journal is not there yet.
 */
#include "orchestrator/runs.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/jsonl.h"
#include "base/memory.h"
#include "base/text.h"
#include "orchestrator/project.h"
#include "orchestrator/record.h"

static void replace(char **to, const char *text)
{
	if (!text)
		return;
	free(*to);
	*to = mem_strdup(text);
}

/* By name and in the order of first mention: a journal that was cut may lack the record that should
 * have come first (I10), and what follows it still says something of that agent. */
static struct past_agent *agent_of(struct past_run *run, const char *name)
{
	for (size_t i = 0; i < run->n_agents; i++) {
		if (strcmp(run->agents[i].name, name) == 0)
			return &run->agents[i];
	}
	MEM_GROW(run->agents, run->cap_agents, run->n_agents + 1);
	struct past_agent *agent = &run->agents[run->n_agents++];
	memset(agent, 0, sizeof(*agent));
	agent->name = mem_strdup(name);
	agent->status = mem_strdup("working");
	agent->generation = 1;
	return agent;
}

/* ---- the fold ---- */

/* Whatever says something of an agent makes it known. */
static bool on_each(struct json_object *r, void *arg)
{
	const char *type = json_str(r, "type", ""), *name = json_str(r, "agent", NULL);

	if (name && (text_starts(type, "agent.") || text_starts(type, "worktree.")))
		agent_of(arg, name);
	return true;
}

/* NULL: the record names none. */
static struct past_agent *named(struct past_run *run, struct json_object *r)
{
	const char *name = json_str(r, "agent", NULL);

	return name ? agent_of(run, name) : NULL;
}

/* "worktree" is taken from here only: other records name folders of the moment, and clean removes by this one. */
static void on_spawned(struct json_object *r, void *arg)
{
	struct past_agent *agent = named(arg, r);

	if (!agent)
		return;
	replace(&agent->role, json_str(r, "role", NULL));
	replace(&agent->branch, json_str(r, "branch", NULL));
	replace(&agent->base, json_str(r, "base", NULL));
	replace(&agent->worktree, json_str(r, "worktree", NULL));
	replace(&agent->status, "working");
	agent->generation = json_i64(r, "generation", 1);
}

static void on_ended(struct json_object *r, void *arg)
{
	struct past_agent *agent = named(arg, r);

	if (!agent)
		return;
	replace(&agent->status, json_str(r, "status", NULL));
	replace(&agent->reason, json_str(r, "reason", NULL));
}

static void on_done(struct json_object *r, void *arg)
{
	struct past_agent *agent = named(arg, r);

	if (!agent)
		return;
	replace(&agent->status, json_str(r, "status", NULL));
	replace(&agent->branch, json_str(r, "branch", NULL));
	replace(&agent->commit, json_str(r, "commit", NULL));
	replace(&agent->kept, json_str(r, "kept", NULL));
	agent->rounds = json_i64(r, "rounds", 0);
}

static void on_worktree(struct json_object *r, void *arg)
{
	struct past_agent *agent = named(arg, r);

	if (!agent)
		return;
	replace(&agent->branch, json_str(r, "branch", NULL));
	agent->worktree_made = true;
}

static void on_started(struct json_object *r, void *arg)
{
	struct past_run *run = arg;

	run->started_ms = clock_parse_stamp(json_str(r, "t", ""));
	replace(&run->command, json_str(r, "command", NULL));
	replace(&run->task, json_str(r, "task", NULL));
	replace(&run->model, json_str(r, "model", NULL));
	replace(&run->toplevel, json_str(r, "toplevel", NULL));
	run->pid = (pid_t)json_i64(r, "pid", 0);
	run->recorded |= json_obj(r, "settings") != NULL;
}

static void on_resumed(struct json_object *r, void *arg)
{
	struct past_run *run = arg;

	run->pid = (pid_t)json_i64(r, "pid", 0);
	run->recorded |= json_obj(r, "settings") != NULL;
	run->ended_ms = 0;
	run->resumable = false;
	mem_free_ptr(&run->status);
	mem_free_ptr(&run->reason);
}

static void on_finished(struct json_object *r, void *arg)
{
	struct past_run *run = arg;

	run->resumable = json_flag(r, "resumable", false);
	run->ended_ms = clock_parse_stamp(json_str(r, "t", ""));
	replace(&run->status, json_str(r, "status", NULL));
	replace(&run->reason, json_str(r, "reason", NULL));
	run->cost_known = json_has(r, "cost");
	run->cost = json_double(r, "cost", 0);
}

/* Money comes from the last settlement as long as no end is there, so that a run that was cut off shows what it spent. */
static void on_settled(struct json_object *r, void *arg)
{
	struct past_run *run = arg;

	run->cost_known |= json_has(r, "total_cost");
	run->cost = json_double(r, "total_cost", run->cost);
}

/* A field that a record lacks changes nothing, a later one wins; only what is of the agent that the record names is
 * taken: `base` of agent.asked is that of another one. */
static const struct record_fold run_fold = {
	.each = on_each,
	.on =
		{
			[RECORD_RUN_STARTED] = on_started,
			[RECORD_RUN_RESUMED] = on_resumed,
			[RECORD_RUN_FINISHED] = on_finished,
			[RECORD_CALL_SETTLED] = on_settled,
			[RECORD_AGENT_SPAWNED] = on_spawned,
			[RECORD_AGENT_ENDED] = on_ended,
			[RECORD_AGENT_DONE] = on_done,
			[RECORD_WORKTREE_CREATED] = on_worktree,
			[RECORD_WORKTREE_REOPENED] = on_worktree,
		},
};

/* ---- worktrees that the user took over ---- */

static char *note_path(const struct past_run *run, const struct past_agent *agent)
{
	return mem_printf("%s/agents/%s/adopted", run->dir, agent->name);
}

/* One line of a small file; NULL if it is not there or empty. Caller frees. */
static char *first_line(const char *dir, const char *name)
{
	AUTO_FREE char *path = file_join(dir, name);
	AUTO_BUF struct buf text = BUF_INIT;

	if (file_read(AT_FDCWD, path, PATH_MAX + 16, &text, NULL) < 0)
		return NULL;
	buf_truncate(&text, strcspn(buf_str(&text), "\n"));
	return text.len ? buf_take(&text) : NULL;
}

/* The entry tells best where it is now: git moves it with the worktree. It lost our mark and got a
 * branch when it was adopted (worktrees/adopt.c). The note is for the time after the user removed
 * it. */
static char *find_adopted(const struct past_run *run, const struct past_agent *agent)
{
	AUTO_FREE char *entry =
		mem_printf("%s/../../../worktrees/baton+%s+%s", run->dir, run->id, agent->name);
	AUTO_FREE char *mark = file_join(entry, "baton");
	AUTO_FREE char *head = first_line(entry, "HEAD");
	AUTO_FREE char *gitdir = first_line(entry, "gitdir");

	if (head && gitdir && text_starts(head, "ref: refs/heads/") && !file_exists(mark))
		return file_dir(gitdir);
	AUTO_FREE char *note = note_path(run, agent);
	return first_line("/", note);
}

int past_agent_adopted(const struct past_run *run, const struct past_agent *agent, const char *path,
		       struct err *err)
{
	AUTO_FREE char *note = note_path(run, agent);
	AUTO_FREE char *line = mem_printf("%s\n", path);

	return file_write_atomic(AT_FDCWD, note, line, strlen(line), 0600, err);
}

struct json_object *past_run_adopted(const struct past_run *run)
{
	struct json_object *doc = NULL;

	for (size_t i = 0; i < run->n_agents; i++) {
		if (!run->agents[i].adopted)
			continue;
		doc = doc ? doc : json_object_new_object();
		json_set_str(doc, run->agents[i].name, run->agents[i].adopted);
	}
	return doc;
}

/* The lock is the truth; pids only inform. */
static bool is_alive(const char *dir)
{
	AUTO_FREE char *path = file_join(dir, "lock");
	AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0;
}

/* run.json first, then the journal over it: the first is written before the second is opened, so a
 * run that died in between has a name, a task and a place to clean. `alive` is looked at after the
 * journal was read: a run that ends meanwhile then shows as cut off and not as running for ever, and
 * the next look puts it right. */
static void run_read(struct past_run *run, const char *runs_dir, const char *id)
{
	struct jsonl_stats stats = {0};
	AUTO_JSON struct json_object *request = NULL;

	memset(run, 0, sizeof(*run));
	run->id = mem_strdup(id);
	run->dir = file_join(runs_dir, id);
	AUTO_FREE char *journal = file_join(run->dir, "run.jsonl");
	AUTO_FREE char *json = file_join(run->dir, "run.json");
	if (json_parse_file(json, 1 << 20, &request, NULL) == 0) {
		replace(&run->command, json_str(request, "command", NULL));
		replace(&run->task, json_str(request, "task", NULL));
		replace(&run->toplevel, json_str(request, "toplevel", NULL));
		replace(&run->worktrees, json_str(request, "worktrees", NULL));
		run->started_ms = clock_parse_stamp(json_str(request, "started", ""));
		run->recorded = json_obj(request, "settings") != NULL;
	}
	journal_fold(journal, &run_fold, run, &stats, NULL);
	run->bad_lines = stats.bad_lines;
	run->alive = is_alive(run->dir);
	for (size_t i = 0; !run->alive && i < run->n_agents; i++)
		run->agents[i].adopted = find_adopted(run, &run->agents[i]);
	if (!run->status) {
		run->status = mem_strdup(run->alive ? "running" : "cut off");
		run->resumable = !run->alive;
	}
	run->resumable = run->resumable && run->recorded && !run->alive;
}

void run_release(struct past_run *run)
{
	char *strings[] = {run->id,	run->dir,    run->command,  run->task,	   run->model,
			   run->status, run->reason, run->toplevel, run->worktrees};

	for (size_t i = 0; i < ARRAY_SIZE(strings); i++)
		free(strings[i]);
	for (size_t i = 0; i < run->n_agents; i++) {
		struct past_agent *a = &run->agents[i];
		char *own[] = {a->name, a->role,     a->status, a->reason, a->branch,
			       a->base, a->worktree, a->commit, a->kept,   a->adopted};
		for (size_t k = 0; k < ARRAY_SIZE(own); k++)
			free(own[k]);
	}
	free(run->agents);
	memset(run, 0, sizeof(*run));
}

void run_reread(struct past_run *run)
{
	AUTO_FREE char *id = mem_strdup(run->id);
	AUTO_FREE char *runs_dir = file_dir(run->dir);
	AUTO_FREE char *toplevel = take_ptr(run->toplevel);

	run_release(run);
	run_read(run, runs_dir, id);
	replace(&run->toplevel, toplevel);
}

void runs_free(struct past_run *runs, size_t count)
{
	for (size_t i = 0; i < count; i++)
		run_release(&runs[i]);
	free(runs);
}

/* A run remembers where its repository stood. It may have been moved since, and another may stand there now: what
 * leads to the store that the run was found in is right, else the folder that the user named. */
static void find_toplevel(struct past_run *run, const char *runs_dir, const char *from)
{
	AUTO_FREE char *store = file_dir(runs_dir);
	AUTO_FREE char *then = run->toplevel ? project_store(run->toplevel) : NULL;

	if (then && strcmp(then, store) == 0)
		return;
	AUTO_FREE char *above = project_above(from);
	AUTO_FREE char *common = file_dir(store);
	replace(&run->toplevel, above ? above : common);
}

/* <common>/baton/runs of the user's repository. */
char *runs_folder(const struct settings *s, struct err *err)
{
	const char *dir = settings_str(s, OPT_DIRECTORY);
	AUTO_FREE char *baton = project_store(dir);

	if (!baton) {
		err_set(err, ERR_NOT_FOUND, "'%s' is in no git repository; name one with -C DIR",
			dir ? dir : ".");
		return NULL;
	}
	return file_join(baton, "runs");
}

static int by_start(const void *a, const void *b)
{
	const struct past_run *x = a, *y = b;

	return x->started_ms < y->started_ms ? -1 : x->started_ms > y->started_ms;
}

int runs_list(const struct settings *s, struct past_run **ret, size_t *ret_count, struct err *err)
{
	AUTO_FREE char *dir = runs_folder(s, err);
	struct past_run *runs = NULL;
	size_t n = 0, cap = 0;

	if (!dir)
		return -1;
	DIR *d = opendir(dir);
	for (struct dirent *e; d && (e = readdir(d));) {
		if (e->d_name[0] == '.')
			continue;
		MEM_GROW(runs, cap, n + 1);
		run_read(&runs[n], dir, e->d_name);
		find_toplevel(&runs[n++], dir, settings_str(s, OPT_DIRECTORY));
	}
	if (d)
		closedir(d);
	if (n > 1)
		qsort(runs, n, sizeof(*runs), by_start);
	*ret = runs;
	*ret_count = n;
	return 0;
}

static int no_such_run(const struct past_run *runs, size_t n, const char *name, struct err *err)
{
	AUTO_FREE const char **ids = mem_array(NULL, n + 1, sizeof(*ids));

	for (size_t i = 0; i < n; i++)
		ids[i] = runs[i].id;
	const char *near = text_nearest(name, ids, n);
	if (near)
		return err_set(err, ERR_NOT_FOUND, "there is no run '%s'; did you mean '%s'?", name,
			       near);
	return err_set(err, ERR_NOT_FOUND, "there is no run '%s'; see 'baton ls'", name);
}

long runs_pick(const struct past_run *runs, size_t n, const char *name, struct err *err)
{
	size_t len = name ? strcspn(name, "/") : 0;
	AUTO_BUF struct buf names = BUF_INIT;
	long found = -1;

	if (n == 0)
		return err_set(err, ERR_NOT_FOUND, "this repository has no runs yet");
	if (len == 0)
		return (long)n - 1;
	for (size_t i = 0; i < n; i++) {
		if (strncmp(runs[i].id, name, len) != 0)
			continue;
		if (runs[i].id[len] == '\0')
			return (long)i;
		buf_addf(&names, " %s", runs[i].id);
		found = found == -1 ? (long)i : -2;
	}
	if (found >= 0)
		return found;
	if (found == -2)
		return err_set(err, ERR_USAGE, "'%.*s' could mean:%s", (int)len, name,
			       buf_str(&names));
	AUTO_FREE char *id = mem_strndup(name, len);
	return no_such_run(runs, n, id, err);
}

static int pick_agent(struct past_run *run, const char *name, bool want, struct past_agent **ret,
		      struct err *err)
{
	const char *slash = name ? strchr(name, '/') : NULL;
	AUTO_BUF struct buf names = BUF_INIT;

	*ret = NULL;
	if (!slash && !want)
		return 0;
	if (!slash && run->n_agents == 1) {
		*ret = &run->agents[0];
		return 0;
	}
	for (size_t i = 0; i < run->n_agents; i++) {
		if (slash && strcmp(run->agents[i].name, slash + 1) == 0) {
			*ret = &run->agents[i];
			return 0;
		}
		buf_addf(&names, " %s/%s", run->id, run->agents[i].name);
	}
	return err_set(err, ERR_NOT_FOUND, "name one agent of run %s:%s", run->id, buf_str(&names));
}

int runs_find(const struct settings *s, const char *name, bool want_agent, struct past_run *ret,
	      struct past_agent **ret_agent, struct err *err)
{
	struct past_run *runs;
	size_t n;

	if (runs_list(s, &runs, &n, err) < 0)
		return -1;
	long i = runs_pick(runs, n, name, err);
	if (i < 0 || pick_agent(&runs[i], name, want_agent, ret_agent, err) < 0) {
		runs_free(runs, n);
		return -1;
	}
	*ret = runs[i];
	memset(&runs[i], 0, sizeof(runs[i]));
	runs_free(runs, n);
	return 0;
}

struct json_object *past_agent_entry(const struct past_run *run, const struct past_agent *agent)
{
	struct json_object *entry = json_object_new_object();
	AUTO_FREE char *git_dir = mem_printf("%s/agents/%s/git", run->dir, agent->name);

	json_set_str(entry, "run", run->id);
	json_set_str(entry, "agent", agent->name);
	json_set_str(entry, "branch", agent->branch);
	json_set_str(entry, "base", agent->base);
	json_set_str(entry, "worktree", agent->worktree);
	json_set_str(entry, "git_dir", git_dir);
	return entry;
}
