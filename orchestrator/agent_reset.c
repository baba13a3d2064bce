/*
 * agent_reset.c - see agent_reset.h. Runs in the parent; a chain of callbacks from baton-git.
 */
#include "orchestrator/agent_reset.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "handoff/document.h"
#include "orchestrator/agent_frames.h"
#include "orchestrator/agent_start.h"
#include "orchestrator/collect.h"
#include "orchestrator/handoff_truth.h"
#include "orchestrator/run.h"

#define CHAIN_MAX	   3 /* resets in a row without progress (R5) */
#define HANDOFF_TOKENS	   10000
#define HANDOFF_WINDOW_PCT 15 /* R2 */

struct reset_job {
	struct effect *effect;
	struct agent_record *agent;
	struct handoff *handoff;
	char *reason, *why;
	char *checkpoint, *no_checkpoint; /* commit, or why there is none */
	struct json_object *status;	  /* answer of status; NULL */
	struct handoff_records *records;
	size_t given[HANDOFF_N_PARTS]; /* statements of the agent's; those behind them are ours */
};

static void job_free(struct reset_job *job)
{
	handoff_free(job->handoff);
	handoff_records_free(job->records);
	json_object_put(job->status);
	free(job->reason);
	free(job->why);
	free(job->checkpoint);
	free(job->no_checkpoint);
	free(job);
}

/* ---- the answer ---- */

/* The agent may be gone by now: collecting waited for this. */
static void job_over(struct reset_job *job)
{
	struct agent_record *agent = job->agent;

	job_free(job);
	if (agent->state == AGENT_COLLECTING)
		collect_start(agent);
}

static void refuse(struct reset_job *job, bool final, struct json_object *reasons)
{
	struct agent_record *agent = job->agent;
	AUTO_JSON struct json_object *body = json_object_new_object();
	AUTO_BUF struct buf text = BUF_INIT;

	json_set_bool(body, "accepted", false);
	json_set_bool(body, "final", final);
	json_set(body, "reasons", json_object_get(reasons));
	json_write(&text, body);
	if (final) {
		free(agent->no_reset);
		agent->no_reset = mem_strdup(json_object_get_string(json_at(reasons, 0)));
	}
	journal_add(agent->run->journal, RECORD_AGENT_RESET_REFUSED,
		    "agent:s generation:i call:s final:b reasons:j", agent->name, agent->generation,
		    effect_call(job->effect), (int) final, reasons);
	effect_answer(job->effect, false, buf_str(&text));
	job_over(job);
}

static void refuse_for(struct reset_job *job, bool final, const char *why)
{
	AUTO_JSON struct json_object *reasons = json_object_new_array();

	json_object_array_add(reasons, json_object_new_string(why));
	refuse(job, final, reasons);
}

/* ---- what is added ---- */

static void put(char **to, const char *text)
{
	free(*to);
	*to = mem_strdup(text);
}

static struct handoff_statement *add(struct reset_job *job, enum handoff_part_name part,
				     const char *text)
{
	return handoff_add(job->handoff, part, HANDOFF_FROM_RECORD, text, strlen(text));
}

static void fill_header(struct reset_job *job)
{
	const struct agent_record *agent = job->agent;
	struct handoff *h = job->handoff;
	AUTO_FREE char *model = mem_printf("%s/%s", agent->run->provider, agent->model->name);
	char stamp[CLOCK_STAMP_SIZE];

	h->generation = agent->generation;
	put(&h->run, agent->run->id);
	put(&h->agent, agent->name);
	put(&h->role, agent->role->name);
	put(&h->model, model);
	put(&h->reason, job->reason);
	put(&h->why, job->why);
	put(&h->created, clock_stamp(clock_wall_ms(), stamp));
	put(&h->repository, json_str(agent->run->repository, "name", NULL));
	put(&h->branch, agent->branch);
	put(&h->base, agent->base);
	put(&h->head, json_str(job->status, "head", NULL));
	put(&h->checkpoint, job->checkpoint);
}

static bool names_commit(const struct handoff_part *part, const char *id)
{
	for (size_t i = 0; i < part->n; i++) {
		if (part->list[i].commit && strcmp(part->list[i].commit, id) == 0)
			return true;
	}
	return false;
}

/* Oldest first: what was done is read in the order in which it was done. */
static void add_commits(struct reset_job *job)
{
	struct json_object *commits = json_arr(job->status, "commits");
	static const enum handoff_part_name parts[] = {HANDOFF_COMMITS, HANDOFF_FINISHED};

	for (size_t i = json_len(commits); i-- > 0;) {
		const char *id = json_str(json_at(commits, i), "id", "");
		for (size_t k = 0; k < ARRAY_SIZE(parts); k++) {
			if (names_commit(&job->handoff->parts[parts[k]], id))
				continue;
			struct handoff_statement *s =
				add(job, parts[k],
				    json_str(json_at(commits, i), "subject", "(no subject)"));
			s->commit = mem_strdup(id);
			s->state = HANDOFF_VERIFIED;
		}
	}
}

static void add_tried(struct reset_job *job)
{
	const struct agent_resets *resets = &job->agent->resets;

	for (size_t i = 0; i < resets->n; i++) {
		const struct agent_reset *r = &resets->list[i];
		AUTO_FREE char *text =
			mem_printf("generation %lld ended (%s)%s%s%s%s%s", (long long)r->generation,
				   r->reason ? r->reason : "?", r->why && *r->why ? ": " : "",
				   r->why ? r->why : "",
				   r->first_action ? "; its successor was to begin with: " : "",
				   r->first_action ? r->first_action : "",
				   r->progress ? "" : "; no progress was made in it");
		add(job, HANDOFF_TRIED, text)->generation = r->generation;
	}
}

static void complete(struct reset_job *job)
{
	const char *stat = json_str(job->status, "stat", "");

	for (int i = 0; i < HANDOFF_N_PARTS; i++)
		job->given[i] = job->handoff->parts[i].n;
	fill_header(job);
	add_commits(job);
	if (*stat && !handoff_the(job->handoff, HANDOFF_DIFF))
		add(job, HANDOFF_DIFF, stat);
	add_tried(job);
	if (job->no_checkpoint) {
		AUTO_FREE char *text = mem_printf(
			"the state of the worktree could not be stored: %s", job->no_checkpoint);
		add(job, HANDOFF_MISSING, text);
	}
}

/* As they are in the tree of the checkpoint; the agent gives none. */
static void add_hashes(struct reset_job *job, struct json_object *facts)
{
	struct handoff_part *files = &job->handoff->parts[HANDOFF_FILES];
	struct json_object *known = json_obj(facts, "files");

	for (size_t i = 0; i < files->n; i++) {
		struct handoff_statement *s = &files->list[i];
		const char *blob = s->file ? json_str(known, s->file, NULL) : NULL;

		if (!blob)
			continue;
		put(&s->hash, *blob ? blob : NULL);
		if (!*blob)
			s->state = HANDOFF_DELETED;
	}
}

/* ---- progress (R5) ---- */

/* Is this tree the base's, or one at which a generation before ended? */
static bool tree_seen(const struct reset_job *job, const char *tree)
{
	const struct agent_resets *resets = &job->agent->resets;

	if (strcmp(tree, json_str(job->status, "base_tree", "")) == 0)
		return true;
	for (size_t i = 0; i < resets->n; i++) {
		if (resets->list[i].tree && strcmp(resets->list[i].tree, tree) == 0)
			return true;
	}
	return false;
}

/* `trees` is newest first and ends at the base. */
static bool new_commit(const struct reset_job *job)
{
	const struct agent_resets *resets = &job->agent->resets;
	const char *last = resets->n ? resets->list[resets->n - 1].head : NULL;
	struct json_object *trees = json_arr(job->status, "trees");

	for (size_t i = 0; i < json_len(trees); i++) {
		struct json_object *c = json_at(trees, i);
		if (last && strcmp(json_str(c, "id", ""), last) == 0)
			return false;
		if (!json_flag(c, "baton", false) && !tree_seen(job, json_str(c, "tree", "")))
			return true;
	}
	return false;
}

static bool verified_now(const struct handoff *handoff, const char *command)
{
	const struct handoff_part *done = &handoff->parts[HANDOFF_FINISHED];

	for (size_t i = 0; i < done->n; i++) {
		if (done->list[i].state == HANDOFF_VERIFIED && done->list[i].command &&
		    strcmp(done->list[i].command, command) == 0)
			return true;
	}
	return false;
}

/* A command that the document before this one named as failing. */
static bool repaired(const struct reset_job *job)
{
	const struct agent_resets *resets = &job->agent->resets;
	AUTO_BUF struct buf text = BUF_INIT;
	struct handoff *before = NULL;
	bool found = false;

	if (!resets->n || !resets->list[resets->n - 1].handoff ||
	    file_read(AT_FDCWD, resets->list[resets->n - 1].handoff, HANDOFF_BYTES_MAX, &text,
		      NULL) < 0 ||
	    handoff_parse(buf_str(&text), text.len, &before, NULL) < 0)
		return false;
	const struct handoff_part *failures = &before->parts[HANDOFF_FAILURES];
	for (size_t i = 0; i < failures->n && !found; i++)
		found = failures->list[i].command &&
			verified_now(job->handoff, failures->list[i].command);
	handoff_free(before);
	return found;
}

/* ---- the verdict ---- */

static int write_files(struct reset_job *job, char **ret_path, struct err *err)
{
	const struct agent_record *agent = job->agent;
	AUTO_JSON struct json_object *json = handoff_to_json(job->handoff);
	AUTO_FREE char *path = file_join(agent->gen_dir, "handoff.json");
	AUTO_FREE char *readable = file_join(agent->gen_dir, "handoff.md");
	AUTO_BUF struct buf text = BUF_INIT;
	AUTO_BUF struct buf md = BUF_INIT;

	json_write_pretty(&text, json);
	handoff_to_markdown(job->handoff, &md);
	if (file_write_atomic(AT_FDCWD, readable, md.data, md.len, 0600, err) < 0 ||
	    file_write_atomic(AT_FDCWD, path, text.data, text.len, 0600, err) < 0)
		return -1;
	*ret_path = take_ptr(path);
	return 0;
}

static const char *head_tree(const struct reset_job *job)
{
	struct json_object *trees = json_arr(job->status, "trees");

	return json_len(trees) ? json_str(json_at(trees, 0), "tree", NULL)
			       : json_str(job->status, "base_tree", NULL);
}

static void journal_reset(struct reset_job *job, const struct agent_reset *r)
{
	const struct agent_record *agent = job->agent;

	journal_add(agent->run->journal, RECORD_AGENT_RESET,
		    "agent:s generation:i call:s reason:s why:s handoff:s checkpoint:s head:s "
		    "tree:s facts_only:b "
		    "progress:b chain:i first_action:s",
		    agent->name, agent->generation, effect_call(job->effect), r->reason, r->why,
		    r->handoff, r->checkpoint, r->head, r->tree, (int)r->facts_only,
		    (int)r->progress, r->chain, r->first_action);
}

static void accept(struct reset_job *job, bool progress, int64_t chain)
{
	struct agent_record *agent = job->agent;
	int64_t room = agent->window ? agent->window : agent->model->window;
	AUTO_JSON struct json_object *body = json_object_new_object();
	AUTO_BUF struct buf text = BUF_INIT;
	char *path = NULL;
	struct err err = ERR_INIT;

	handoff_bound(job->handoff, MIN((int64_t)HANDOFF_TOKENS, room * HANDOFF_WINDOW_PCT / 100),
		      NULL, NULL);
	if (write_files(job, &path, &err) < 0) {
		refuse_for(job, true, err.message);
		return;
	}
	const struct handoff_statement *first = handoff_the(job->handoff, HANDOFF_FIRST_ACTION);
	struct agent_reset *r = resets_add(&agent->resets);
	*r = (struct agent_reset){.generation = agent->generation,
				  .reason = mem_strdup(job->reason),
				  .why = mem_strdup(job->why),
				  .handoff = path,
				  .checkpoint = mem_strdup(job->checkpoint),
				  .head = mem_strdup(json_str(job->status, "head", NULL)),
				  .tree = mem_strdup(head_tree(job)),
				  .first_action = first ? mem_strdup(first->text) : NULL,
				  .facts_only = job->handoff->facts_only,
				  .progress = progress,
				  .chain = chain};
	journal_reset(job, r);
	agent->succeed = true;
	json_set_bool(body, "accepted", true);
	json_set_str(body, "file", path);
	json_write(&text, body);
	effect_answer(job->effect, true, buf_str(&text));
	job_over(job);
}

/* Nobody can mend what came from git: a subject may be as vague as it likes. */
static bool refuses(const struct reset_job *job, const struct handoff_finding *f)
{
	return f->fault != HANDOFF_UNPROVED &&
	       (f->index == SIZE_MAX || f->index < job->given[f->part]);
}

static struct json_object *reasons_of(const struct reset_job *job,
				      const struct handoff_findings *findings)
{
	struct json_object *reasons = json_object_new_array();

	for (size_t i = 0; i < findings->n; i++) {
		const struct handoff_finding *f = &findings->list[i];
		if (!refuses(job, f))
			continue;
		AUTO_FREE char *line = mem_printf("%s: %s", handoff_part_key(f->part), f->text);
		json_object_array_add(reasons, json_object_new_string(line));
	}
	return reasons;
}

/* Of a document of facts alone what is not so is left out, since nobody can be asked to mend it. From the end,
 * so that the places of the others hold. */
static void drop_untrue(struct reset_job *job, const struct handoff_findings *findings)
{
	for (int part = 0; part < HANDOFF_N_PARTS; part++) {
		for (size_t i = job->handoff->parts[part].n; i-- > 0;) {
			const char *why = NULL;
			for (size_t k = 0; k < findings->n; k++) {
				const struct handoff_finding *f = &findings->list[k];
				if ((int)f->part == part && f->index == i &&
				    f->fault == HANDOFF_UNTRUE)
					why = f->text;
			}
			if (!why)
				continue;
			AUTO_FREE char *line =
				mem_printf("left out of '%s', since the records say otherwise: %s",
					   handoff_part_key((enum handoff_part_name)part), why);
			handoff_remove(job->handoff, (enum handoff_part_name)part, i);
			add(job, HANDOFF_MISSING, line);
		}
	}
}

static void judge(struct reset_job *job)
{
	const struct agent_resets *resets = &job->agent->resets;
	struct handoff_truth truth = handoff_records_truth(job->records);
	struct handoff_findings findings = {.n = 0};

	handoff_check(job->handoff, &truth, &findings);
	AUTO_JSON struct json_object *reasons = reasons_of(job, &findings);
	bool good = json_len(reasons) == 0;
	bool progress = new_commit(job) || repaired(job);
	int64_t chain = progress ? 0 : 1 + (resets->n ? resets->list[resets->n - 1].chain : 0);

	if (chain > CHAIN_MAX) {
		refuse_for(job, true,
			   "3 resets in a row brought no progress: no new commit, and nothing that "
			   "failed passes now");
	} else if (good || job->handoff->facts_only) {
		if (!good)
			drop_untrue(job, &findings);
		accept(job, progress, chain);
	} else {
		refuse(job, false, reasons);
	}
	handoff_findings_release(&findings);
}

/* ---- the chain ---- */

static void on_facts(struct json_object *answer, const struct err *failure, void *arg)
{
	struct reset_job *job = arg;

	if (!failure) {
		add_hashes(job, answer);
		handoff_records_git(job->records, answer);
	}
	judge(job); /* what could not be asked is unknown, and does not refuse it */
}

static void read_records(struct reset_job *job)
{
	const struct agent_record *agent = job->agent;
	AUTO_FREE char *transcript = file_join(agent->gen_dir, "transcript.jsonl");

	for (int64_t g = 1; g <= agent->generation; g++) {
		AUTO_FREE char *words = mem_printf("%s/%lld/words.jsonl", agent->dir, (long long)g);
		handoff_records_words(job->records, words, NULL);
	}
	handoff_records_calls(job->records, transcript, NULL);
}

static void on_status(struct json_object *answer, const struct err *failure, void *arg)
{
	struct reset_job *job = arg;
	const char *head = json_str(answer, "head", NULL);

	job->status = failure ? NULL : json_object_get(answer);
	complete(job);
	AUTO_JSON struct json_object *question = handoff_facts_question(job->handoff);
	AUTO_JSON struct json_object *entry = agent_git_entry(job->agent);
	json_object_object_foreach (entry, key, value)
		json_set(question, key, json_object_get(value));
	json_set_str(question, "tree", job->checkpoint ? job->checkpoint : head);
	git_client_call(job->agent->run->git_client, "facts", question, on_facts, job);
}

static void on_stored(struct json_object *answer, const struct err *failure, void *arg)
{
	struct reset_job *job = arg;
	AUTO_JSON struct json_object *request = agent_git_entry(job->agent);
	const char *kept = json_str(answer, "kept", NULL);

	if (failure || kept)
		job->no_checkpoint = mem_strdup(failure ? failure->message : kept);
	else
		job->checkpoint = mem_strdup(json_str(answer, "commit", NULL));
	json_set_bool(request, "stat", true);
	json_set_bool(request, "trees", true);
	git_client_call(job->agent->run->git_client, "status", request, on_status, job);
}

static void begin(struct reset_job *job)
{
	struct agent_record *agent = job->agent;
	AUTO_JSON struct json_object *request = NULL;

	read_records(job);
	if (agent->view || !agent->worktree_made) {
		complete(job);
		judge(job);
		return;
	}
	request = agent_git_entry(agent);
	AUTO_FREE char *message =
		mem_printf("baton: handoff of generation %lld", (long long)agent->generation);
	json_set_str(request, "message", message);
	git_client_call(agent->run->git_client, "checkpoint", request, on_stored, job);
}

/* Why no reset may follow whatever the document says; NULL: one may. */
static char *forbidden(const struct agent_record *agent)
{
	const struct run *run = agent->run;
	int64_t most = settings_i64(run->settings, OPT_MAX_RESETS);

	if (run->stopping || agent->stop_step > 0)
		return mem_strdup("the run is being stopped");
	if (strcmp(agent_reset_policy(agent), "never") == 0)
		return mem_strdup("resets are switched off for this agent");
	if ((int64_t)agent->resets.n >= most)
		return mem_printf("it had %zu resets, and --max-resets is %lld", agent->resets.n,
				  (long long)most);
	return NULL;
}

int agent_on_reset(struct agent_record *agent, const struct frame *frame, struct err *err)
{
	AUTO_JSON struct json_object *body = NULL;
	struct effect *effect = NULL;
	struct err why = ERR_INIT;

	if (agent_frame_body(frame, &body, err) < 0)
		return -1;
	const char *name = json_str(body, "reason", "");
	enum handoff_reason reason;
	if (handoff_reason_find(name, &reason) < 0)
		return err_set(err, ERR_INVALID, "a 'reset' frame with the reason '%.40s'", name);
	int fresh = effect_begin(agent, frame, &effect, err);
	if (fresh <= 0)
		return fresh;
	struct reset_job *job = mem_alloc(sizeof(*job));
	job->effect = effect;
	job->agent = agent;
	job->reason = mem_strdup(name);
	job->why = mem_strdup(json_str(body, "why", ""));
	job->records = handoff_records_new();
	AUTO_FREE char *no = forbidden(agent);
	if (no) {
		refuse_for(job, true, no);
	} else if (agent->succeed) {
		refuse_for(job, true, "a handoff of this generation was accepted already");
	} else if (handoff_from_json(json_obj(body, "handoff"), &job->handoff, &why) < 0) {
		refuse_for(job, false, why.message);
	} else {
		job->handoff->facts_only |= json_flag(body, "facts_only", false);
		begin(job);
	}
	return 0;
}

/* ---- the start document ---- */

const char *agent_reset_policy(const struct agent_record *agent)
{
	const char *policy = settings_str_for(agent->run->settings, OPT_RESET, agent->role->reset);

	return policy ? policy : "auto";
}

struct json_object *agent_handoff_document(const struct agent_record *agent)
{
	const struct agent_resets *resets = &agent->resets;
	const struct agent_reset *last = resets->n ? &resets->list[resets->n - 1] : NULL;
	AUTO_FREE char *given = file_join(agent->dir, "handoff-0.json");
	struct json_object *doc = json_object_new_object();

	if (last && last->generation == agent->generation - 1) {
		json_set_str(doc, "file", last->handoff);
		json_set_i64(doc, "from", last->generation);
		json_set_str(doc, "reason", last->reason);
	} else if (agent->generation == 1 && file_exists(given)) {
		json_set_str(doc, "file", given);
		json_set_i64(doc, "from", 0);
		json_set_str(doc, "reason", "person");
	} else {
		json_object_put(doc);
		return NULL;
	}
	return doc;
}
