/*
 * cmd_clean.c - `baton clean [RUN]...`: removes what ended runs left, and nothing that is not ours.
 *
 * A worktree goes only through baton-git, which first makes its state reachable from a ref (I7) and
 * keeps what it cannot save. The run's records (journal, report, transcripts) go when all its
 * worktrees are gone or the user's own. Without a name that would be the history of all runs, so
 * what goes is listed first and has to be agreed to. In the folder of worktrees only what is proved
 * to be baton's goes; anything else stays and is named. Branches are the user's to delete; saved states
 * go if a branch holds the same.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"
#include "orchestrator/command.h"
#include "orchestrator/git_session.h"
#include "orchestrator/runs.h"

#define UNBORN_MS (5 * 60 * 1000)

struct cleaning {
	struct git_session *git;
	bool force, checkpoints, json;
	struct json_object *removed, *kept; /* run ids; {"path", "reason"} */
	struct json_object *dropped;	    /* {"ref", "branch" or "commit"} */
};

static void say(const struct cleaning *c, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void say(const struct cleaning *c, const char *fmt, ...)
{
	AUTO_BUF struct buf text = BUF_INIT;
	va_list ap;

	if (c->json)
		return;
	va_start(ap, fmt);
	buf_addv(&text, fmt, ap);
	va_end(ap);
	command_say("%s\n", buf_str(&text));
}

static void keep(struct cleaning *c, const char *path, const char *reason)
{
	struct json_object *one = json_object_new_object();

	json_set_str(one, "path", path);
	json_set_str(one, "reason", reason);
	json_object_array_add(c->kept, one);
	say(c, "kept %s: %s", path, reason);
}

/* ---- one run ---- */

/* Is anything of the agent left that may hold work or block later runs: checkout, private
 * repository, entry in the user's list of worktrees? */
static bool has_remains(const struct past_run *run, const struct past_agent *agent)
{
	AUTO_FREE char *git_dir = mem_printf("%s/agents/%s/git", run->dir, agent->name);
	AUTO_FREE char *entry =
		mem_printf("%s/../../../worktrees/baton+%s+%s", run->dir, run->id, agent->name);

	return agent->branch && agent->worktree &&
	       (file_exists(agent->worktree) || file_exists(git_dir) || file_exists(entry));
}

static bool clean_worktree(struct cleaning *c, const struct past_run *run,
			   const struct past_agent *agent)
{
	AUTO_JSON struct json_object *entry = past_agent_entry(run, agent);
	AUTO_JSON struct json_object *answer = NULL;
	struct err err = ERR_INIT;

	if (agent->adopted && file_exists(agent->adopted)) {
		say(c, "left %s: you adopted it, so it is yours", agent->adopted);
		return true;
	}
	if (agent->adopted || !has_remains(run, agent))
		return true;
	json_set_bool(entry, "force", c->force);
	if (git_session_call(c->git, "remove", entry, &answer, &err) < 0) {
		keep(c, agent->worktree, err.message);
		return false;
	}
	if (!json_flag(answer, "removed", false)) {
		keep(c, agent->worktree, json_str(answer, "kept", "no reason given"));
		return false;
	}
	if (json_flag(answer, "at_base", false))
		say(c, "removed %s (nothing was committed to %s)", agent->worktree, agent->branch);
	else if (json_flag(answer, "branch", false))
		say(c, "removed %s (its commits are on %s)", agent->worktree, agent->branch);
	else
		say(c, "removed %s", agent->worktree);
	return true;
}

/* What is dropped is said, with where the same is or how to have it back as long as git has it. */
static void say_dropped(const struct cleaning *c, struct json_object *answer)
{
	const char *ref = json_str(answer, "ref", "");
	const char *branch = json_str(answer, "branch", NULL);
	const char *commit = json_str(answer, "commit", NULL);

	if (branch || commit) {
		struct json_object *one = json_object_new_object();
		json_set_str(one, "ref", ref);
		json_set_str(one, branch ? "branch" : "commit", branch ? branch : commit);
		json_object_array_add(c->dropped, one);
	}
	if (branch)
		say(c, "dropped %s: branch %s holds the same files", ref, branch);
	else if (commit && c->checkpoints)
		say(c, "dropped %s, as --checkpoints says: 'git update-ref %s %s' undoes it", ref,
		    ref, commit);
}

/* A state that no branch holds outlives the run's records, unless the user says otherwise. */
static void clean_checkpoints(struct cleaning *c, const struct past_run *run,
			      const struct past_agent *agent)
{
	AUTO_JSON struct json_object *entry = past_agent_entry(run, agent);
	AUTO_JSON struct json_object *answer = NULL;
	struct err err = ERR_INIT;

	if (!agent->branch || !agent->base || !agent->worktree)
		return;
	json_set_bool(entry, "force", c->checkpoints);
	if (git_session_call(c->git, "drop_pin", entry, &answer, &err) < 0) {
		AUTO_FREE char *ref = mem_printf("refs/baton/%s/%s/ckpt", run->id, agent->name);
		keep(c, ref, err.message);
		return;
	}
	const char *why = json_str(answer, "kept", NULL);
	const char *ref = json_str(answer, "ref", "");
	if (!why) {
		say_dropped(c, answer);
		return;
	}
	AUTO_FREE char *reason =
		mem_printf("%s; 'git checkout %s -- .' brings its files back, 'git branch NAME %s' "
			   "makes a branch of it, 'git update-ref -d %s' drops it",
			   why, ref, ref, ref);
	keep(c, ref, reason);
}

/* The path comes out of a file: it is removed only where baton makes such folders, and links lead
 * nowhere else. */
static bool is_ours(const struct past_run *run)
{
	AUTO_FREE char *state = env_state_dir();
	AUTO_FREE char *root = state ? file_join(state, "worktrees") : NULL;
	AUTO_FREE char *real = realpath(run->worktrees, NULL);
	AUTO_FREE char *real_root = root ? realpath(root, NULL) : NULL;

	return real && real_root && strcmp(real, real_root) != 0 && file_lies_in(real_root, real) &&
	       strcmp(file_base(real), run->id) == 0;
}

/* Is an adopted worktree this folder, or somewhere in it? It may have been adopted in place, or to a
 * folder that the user made here. */
static bool holds_adopted(const struct past_run *run, const char *path)
{
	for (size_t i = 0; i < run->n_agents; i++) {
		const char *adopted = run->agents[i].adopted;

		if (adopted && file_exists(adopted) && file_lies_in(path, adopted))
			return true;
	}
	return false;
}

/* Goes: an empty folder, and the view of a review that was killed, which its register proves. */
static bool remove_leftover(struct cleaning *c, const char *path)
{
	AUTO_JSON struct json_object *request = json_object_new_object();
	AUTO_JSON struct json_object *answer = NULL;
	struct err why = ERR_INIT;

	if (rmdir(path) == 0)
		return true;
	json_set_str(request, "path", path);
	return git_session_call(c->git, "remove_view", request, &answer, &why) == 0 &&
	       !file_exists(path);
}

/* The run's folder of worktrees, after baton-git took out those that it knows. What is left may be
 * anybody's: an adopted worktree, a folder that was moved aside when a worktree was made, files that
 * the user put there. Emptying it by force would delete all of that. False: something is left that
 * nobody spoke of yet. */
static bool remove_worktrees_folder(struct cleaning *c, const struct past_run *run)
{
	bool all = true;
	DIR *dir = opendir(run->worktrees);

	for (struct dirent *item; dir && (item = readdir(dir));) {
		AUTO_FREE char *path = file_join(run->worktrees, item->d_name);

		if (strcmp(item->d_name, ".") == 0 || strcmp(item->d_name, "..") == 0 ||
		    holds_adopted(run, path) || remove_leftover(c, path))
			continue;
		keep(c, path, "it is no worktree of the run's; move it away or remove it yourself");
		all = false;
	}
	if (dir)
		closedir(dir);
	AUTO_FREE char *above = file_dir(run->worktrees);
	/* Both fail on purpose as long as anything is in them. */
	if (rmdir(run->worktrees) == 0)
		rmdir(above);
	return all;
}

static int remove_folders(struct cleaning *c, const struct past_run *run, struct err *err)
{
	if (run->worktrees && file_exists(run->worktrees)) {
		if (!is_ours(run)) {
			keep(c, run->worktrees, "it does not lie in baton's folder of worktrees");
			return 0;
		}
		if (!remove_worktrees_folder(c, run))
			return 0;
	}
	if (holds_adopted(run, run->dir)) {
		keep(c, run->dir,
		     "the worktree that you adopted lies in it; 'git worktree move' "
		     "takes it elsewhere");
		return 0;
	}
	if (file_remove_tree(run->dir, err) < 0)
		return -1;
	json_object_array_add(c->removed, json_object_new_string(run->id));
	say(c, "removed run %s", run->id);
	return 0;
}

static int clean_run(struct cleaning *c, struct past_run *run, struct err *err)
{
	bool all = true;

	if (run->alive) {
		keep(c, run->id, "the run is at work");
		return 0;
	}
	/* An agent that the list does not know would lose its repository with the run's folder. */
	run_reread(run);
	for (size_t i = 0; i < run->n_agents; i++)
		all &= clean_worktree(c, run, &run->agents[i]);
	if (!all)
		return 0;
	for (size_t i = 0; i < run->n_agents; i++)
		clean_checkpoints(c, run, &run->agents[i]);
	return remove_folders(c, run, err);
}

/* What dead runs left that no journal tells of: entries made just before a kill. Which runs are dead
 * is for baton-git to see at the moment itself: our list is as old as the prompt. It needs to be told
 * only of those whose records went just now. */
static int prune(struct cleaning *c, struct err *err)
{
	AUTO_JSON struct json_object *request = json_object_new_object();
	AUTO_JSON struct json_object *answer = NULL;

	json_set(request, "ended", json_object_get(c->removed));
	if (git_session_call(c->git, "prune", request, &answer, err) < 0)
		return -1;
	struct json_object *kept = json_arr(answer, "kept");
	for (size_t i = 0; i < json_len(kept); i++)
		keep(c, json_str(json_at(kept, i), "path", "?"),
		     json_str(json_at(kept, i), "reason", ""));
	return 0;
}

/* A run that was killed while it opened its folder never got its name, and no command lists it. One that is being
 * opened right now is young, or holds its lock. */
static void remove_unborn(const char *runs_dir)
{
	DIR *dir = opendir(runs_dir);
	struct stat st;

	for (struct dirent *item; dir && (item = readdir(dir));) {
		AUTO_FREE char *path = file_join(runs_dir, item->d_name);
		AUTO_FREE char *lock = file_join(path, "lock");
		AUTO_FD int fd = -1;

		if (item->d_name[0] != '.' || strlen(item->d_name) < 3 || lstat(path, &st) < 0 ||
		    !S_ISDIR(st.st_mode) ||
		    clock_wall_ms() - (int64_t)st.st_mtime * 1000 < UNBORN_MS)
			continue;
		fd = open(lock, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
		if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0)
			continue;
		unlink(lock);
		rmdir(path); /* it holds nothing else yet */
	}
	if (dir)
		closedir(dir);
}

/* ---- which ---- */

/* Marks what is to be cleaned: the named ones, or all that ended. */
static int choose(const struct settings *s, const struct past_run *runs, size_t n, bool *chosen,
		  struct err *err)
{
	for (size_t k = 0; k < n; k++)
		chosen[k] = settings_n_args(s) == 0 && !runs[k].alive;
	for (size_t i = 0; i < settings_n_args(s); i++) {
		const char *name = settings_arg(s, i);
		if (!*name || strchr(name, '/'))
			return err_set(err, ERR_USAGE, "'%s' is no RUN: clean removes whole runs",
				       name);
		long k = runs_pick(runs, n, name, err);
		if (k < 0)
			return -1;
		chosen[k] = true;
	}
	return 0;
}

static void print_plan(const struct past_run *runs, size_t n, const bool *chosen)
{
	char stamp[CLOCK_STAMP_SIZE];

	for (size_t i = 0; i < n; i++) {
		size_t worktrees = 0;
		if (!chosen[i])
			continue;
		for (size_t k = 0; k < runs[i].n_agents; k++) {
			const struct past_agent *a = &runs[i].agents[k];
			worktrees += !a->adopted && a->worktree && file_exists(a->worktree);
		}
		command_say("%s  %.16s  %-7s %-10s", runs[i].id,
			    clock_stamp(runs[i].started_ms, stamp),
			    runs[i].command ? runs[i].command : "?", runs[i].status);
		if (worktrees)
			command_say("  %zu worktree%s", worktrees, worktrees == 1 ? "" : "s");
		putchar('\n');
	}
}

/* All runs at once is much to lose: their reports and transcripts exist nowhere else. */
static int agree(const struct settings *s, const struct past_run *runs, size_t n,
		 const bool *chosen, struct err *err)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++)
		count += chosen[i];
	if (settings_n_args(s) > 0 || settings_flag(s, OPT_YES) || count == 0)
		return 0;
	AUTO_FREE char *what =
		count == 1 ? mem_strdup("this run") : mem_printf("these %zu runs", count);
	bool ask = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && !settings_flag(s, OPT_JSON);
	if (!settings_flag(s, OPT_JSON))
		print_plan(runs, n, chosen);
	if (!ask)
		return err_set(err, ERR_USAGE,
			       "nothing was removed: 'baton clean --yes' removes journal, report, "
			       "transcripts and worktrees of %s (branches stay), 'baton clean RUN' "
			       "those of one",
			       what);
	printf("Remove journal, report, transcripts and worktrees of %s? Branches stay. [y/N] ",
	       what);
	if (command_answer() != 'y')
		return err_set(err, ERR_CANCELLED, "nothing was removed");
	return 0;
}

static int clean_all(struct cleaning *c, const struct settings *s, struct past_run *runs, size_t n,
		     const bool *chosen, struct err *err)
{
	int rc = git_session_open(runs[n - 1].toplevel, &c->git, err);

	for (size_t i = 0; rc == 0 && i < n; i++) {
		if (chosen[i])
			rc = clean_run(c, &runs[i], err);
	}
	if (rc == 0 && settings_n_args(s) == 0)
		rc = prune(c, err);
	git_session_close(c->git);
	if (rc == 0 && json_len(c->removed) == 0 && json_len(c->kept) == 0)
		say(c, "there is nothing to clean");
	return rc;
}

int cmd_clean(struct settings *s)
{
	struct cleaning c = {.force = settings_flag(s, OPT_FORCE),
			     .checkpoints = settings_flag(s, OPT_CHECKPOINTS),
			     .json = settings_flag(s, OPT_JSON),
			     .removed = json_object_new_array(),
			     .kept = json_object_new_array(),
			     .dropped = json_object_new_array()};
	AUTO_JSON struct json_object *doc = json_object_new_object();
	struct past_run *runs = NULL;
	size_t n = 0;
	struct err err = ERR_INIT;

	json_set(doc, "removed", c.removed);
	json_set(doc, "kept", c.kept);
	json_set(doc, "dropped", c.dropped);
	AUTO_FREE char *folder = runs_folder(s, NULL);
	int rc = runs_list(s, &runs, &n, &err);
	AUTO_FREE bool *chosen = mem_alloc(n + 1);
	if (rc == 0)
		rc = choose(s, runs, n, chosen, &err);
	if (rc == 0)
		rc = agree(s, runs, n, chosen, &err);
	if (rc == 0 && folder && settings_n_args(s) == 0)
		remove_unborn(folder);
	if (rc == 0 && n > 0)
		rc = clean_all(&c, s, runs, n, chosen, &err);
	else if (rc == 0)
		say(&c, "there is nothing to clean");
	if (c.json && rc == 0)
		command_print_json(doc);
	runs_free(runs, n);
	return rc < 0 ? command_fail(&err) : EXIT_OK;
}
