/*
 * cmd_review.c - `baton review`: shards to reviewers, findings to verifiers, a report in three
 * forms.
 *
 * Phases: RANGE (baton-git splits the change), VIEW (a shared read-only checkout of the new side),
 * REVIEW (one reviewer a shard), VERIFY (one verifier a finding that matters), then the view is
 * removed and the run ends. The pure parts (shards, merging, outputs) are in review/.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "orchestrator/launch.h"
#include "orchestrator/replay.h"
#include "orchestrator/review/review.h"
#include "orchestrator/run.h"
#include "orchestrator/user_file.h"

#define RANGE_MAX_BYTES	   (16 << 20)
#define SHARD_LEAST_TOKENS 400

enum review_phase { PHASE_RANGE, PHASE_REVIEW, PHASE_VERIFY, PHASE_OVER };

struct review {
	struct run *run;
	enum review_phase phase;
	char *spec, *view, *title;
	struct shards shards;
	struct findings findings;
	bool merged, budget, unreachable;
	size_t reviewers, verifiers, open;
	char **lost;
	size_t n_lost, cap_lost;
	struct json_object *verdict_schema;
	struct buf markdown, sarif; /* for --output and --sarif; empty before the end */
};

/* An agent's work: exactly one of both is set. */
struct review_job {
	const struct shard *shard;
	int finding_id;
};

static const char verdict_schema[] =
	"{\"type\":\"object\",\"required\":[\"verdict\",\"reason\"],\"additionalProperties\":false,"
	"\"properties\":{\"verdict\":{\"type\":\"string\",\"enum\":[\"confirmed\",\"refuted\","
	"\"uncertain\"]},\"reason\":{\"type\":\"string\"},\"evidence\":{\"type\":\"string\"}}}";

static void review_end(struct review *review);

static struct agent_record *queue(struct review *review, const char *key, const char *role,
				  const char *task, const char *brief, struct review_job job,
				  struct json_object *schema)
{
	struct err err = ERR_INIT;
	struct agent_spec spec = {
		.key = key,
		.role = role,
		.task = task,
		.brief = brief,
		.view = review->view,
		.foreign_role = true,
		.output_schema = schema,
		.arg = mem_dup(&job, sizeof(job)),
	};
	struct agent_record *agent = agent_queue(review->run, &spec, &err);

	if (agent) {
		review->open++;
		return agent;
	}
	free(spec.arg);
	run_fail(review->run, &err);
	return NULL;
}

/* ---- verify ---- */

static bool wants_verification(const struct review *review, const struct finding *finding)
{
	enum severity from;
	const char *verify = settings_str(review->run->settings, OPT_VERIFY);

	return verify && severity_parse(verify, &from) == 0 && finding->severity >= from;
}

static void start_verifiers(struct review *review)
{
	findings_merge(&review->findings);
	review->merged = true;
	review->phase = PHASE_VERIFY;
	for (size_t i = 0; i < review->findings.count && !review->run->stopping; i++) {
		struct finding *finding = &review->findings.list[i];
		struct buf task = BUF_INIT;
		if (!wants_verification(review, finding))
			continue;
		finding_task(finding, &task);
		struct review_job job = {.finding_id = finding->id};
		/* By what it says: its number depends on who reported first. */
		AUTO_FREE char *key = mem_printf(
			"verify:%016llx", (unsigned long long)text_hash(buf_str(&task), task.len));
		if (queue(review, key, "verifier", buf_str(&task), NULL, job,
			  review->verdict_schema))
			review->verifiers++;
		buf_release(&task);
	}
	if (review->open == 0 && review->phase != PHASE_OVER)
		review_end(review);
}

static void take_verdict(struct review *review, const struct agent_record *agent, int id)
{
	for (size_t i = 0; i < review->findings.count; i++) {
		struct finding *finding = &review->findings.list[i];
		if (finding->id == id && agent->report)
			finding_verdict(finding, json_obj(agent->report, "data"), agent->name);
	}
}

/* ---- review ---- */

static void note_lost(struct review *review, const struct agent_record *agent,
		      const struct shard *shard)
{
	struct buf text = BUF_INIT;

	buf_addf(&text, "%s (%s): %s", agent->name, agent->role->name,
		 agent->reason ? agent->reason : outcome_name(agent->status));
	if (shard)
		buf_adds(&text, "; not reviewed:");
	for (size_t i = 0; shard && i < shard->n_files; i++)
		buf_addf(&text, " %s", shard->files[i]);
	review->budget |= agent_exit_status(agent) == EXIT_BUDGET;
	review->unreachable |= agent_exit_status(agent) == EXIT_UNREACHABLE;
	MEM_GROW(review->lost, review->cap_lost, review->n_lost + 1);
	review->lost[review->n_lost++] = buf_take(&text);
}

/* Findings that did not fit into a report are as bad as files that nobody read. */
static void note_cut(struct review *review, const struct agent_record *agent)
{
	MEM_GROW(review->lost, review->cap_lost, review->n_lost + 1);
	review->lost[review->n_lost++] =
		mem_printf("%s: its report was too long and was cut", agent->name);
}

static void review_agent_done(struct run *run, struct agent_record *agent, void *arg)
{
	struct review *review = arg;
	struct review_job *job = agent->arg;

	review->open--;
	/* A report made by rule is no review: nobody looked, or what he found was not readable. */
	if (!agent->report || json_flag(agent->report, "by_rule", false) ||
	    agent->status != OUTCOME_DONE)
		note_lost(review, agent, job->shard);
	else if (job->shard) {
		findings_take(&review->findings, agent->report, job->shard, agent->name);
		if (json_flag(agent->report, "truncated", false))
			note_cut(review, agent);
	} else
		take_verdict(review, agent, job->finding_id);
	free(job);
	agent->arg = NULL;
	if (review->open > 0 || review->phase == PHASE_OVER)
		return;
	if (review->phase == PHASE_REVIEW && !run->stopping)
		start_verifiers(review);
	else
		review_end(review);
}

static void start_reviewers(struct review *review)
{
	static const char task[] =
		"Review the part of a change that follows. Read the files round it with your tools "
		"before "
		"you judge. Report every real defect as a finding with file, line of the new side, "
		"severity, "
		"category, claim and evidence; report none that you have not checked in the files.";

	review->phase = PHASE_REVIEW;
	for (size_t i = 0; i < review->shards.count && !review->run->stopping; i++) {
		struct review_job job = {.shard = &review->shards.list[i]};
		AUTO_FREE char *key = mem_printf("shard:%zu", i + 1);
		if (queue(review, key, "reviewer", task, review->shards.list[i].patch, job, NULL))
			review->reviewers++;
	}
	if (review->open == 0 && review->phase != PHASE_OVER)
		review_end(review);
	agents_pump(review->run);
}

static void on_view(struct json_object *answer, const struct err *failure, void *arg)
{
	struct review *review = arg;

	review->run->pending--;
	if (failure)
		run_fail(review->run, failure);
	else if (review->run->stopping)
		review_end(review);
	else
		start_reviewers(review);
}

/* Shards fit a reviewer, and a change that would fit one is still spread over the agents that may
 * work at the same time, down to a size below which a part says too little. */
static int64_t shard_budget(const struct run *run, struct json_object *range)
{
	const struct replay *past = run->replay;

	/* The shards must be those of before: their reviewers are known by number. */
	if (past && past->sharded)
		return json_i64(past->sharded, "budget", SHARD_LEAST_TOKENS);
	struct json_object *files = json_arr(range, "files");
	int64_t most = MIN(settings_i64(run->settings, OPT_SHARD_TOKENS), run->model->window / 4);
	size_t bytes = 0;

	for (size_t i = 0; i < json_len(files); i++)
		bytes += json_str_len(json_at(files, i), "patch");
	int64_t spread = (int64_t)(bytes / BYTES_PER_TOKEN / run->agents.limit) + 1;
	return MIN(most, MAX(spread, (int64_t)SHARD_LEAST_TOKENS));
}

static void on_range(struct json_object *answer, const struct err *failure, void *arg)
{
	struct review *review = arg;
	struct run *run = review->run;
	AUTO_JSON struct json_object *request = json_object_new_object();
	struct err err = ERR_INIT;

	if (failure || run->stopping) {
		if (failure)
			run_fail(run, failure);
		return;
	}
	struct json_object *past = run->replay ? run->replay->sharded : NULL;
	int64_t budget = shard_budget(run, answer);
	review->title =
		mem_strdup(json_str(past, "title", json_str(answer, "title", review->spec)));
	if (shards_make(answer, budget, &review->shards, &err) < 0) {
		run_fail(run, &err);
		return;
	}
	if (!past)
		journal_add(run->journal, RECORD_REVIEW_SHARDED,
			    "title:s files:i shards:i budget:i old:s new:s", review->title,
			    (int64_t)json_len(json_arr(answer, "files")),
			    (int64_t)review->shards.count, budget, json_str(answer, "old", NULL),
			    json_str(answer, "new", NULL));
	if (review->shards.count == 0) {
		review_end(review);
		return;
	}
	review->view = mem_printf("%s/view", run->worktrees_dir);
	json_set_str(request, "path", review->view);
	json_set_str(request, "commit", json_str(answer, "new", NULL));
	json_set_str(request, "repository", run->toplevel);
	json_set_bool(request, "again", run->replay != NULL);
	run->pending++;
	git_client_call(run->git_client, "checkout_view", request, on_view, review);
}

static int review_start(struct run *run, void *arg, struct err *err)
{
	struct review *review = arg;
	AUTO_JSON struct json_object *request = json_object_new_object();

	review->run = run;
	json_set_str(request, "path", run->toplevel);
	json_set_str(request, "spec", review->spec);
	/* HEAD, the index and the files may have changed since: what was reviewed is gone on with. */
	if (run->replay && run->replay->sharded) {
		json_set_str(request, "old", json_str(run->replay->sharded, "old", NULL));
		json_set_str(request, "new", json_str(run->replay->sharded, "new", NULL));
	}
	json_set_i64(request, "context", 3);
	json_set_i64(request, "max", RANGE_MAX_BYTES);
	git_client_call(run->git_client, "range", request, on_range, review);
	return 0;
}

/* ---- end ---- */

static enum exit_status review_status(const struct review *review)
{
	enum severity threshold;
	const char *fail_on = settings_str(review->run->settings, OPT_FAIL_ON);

	if (fail_on && severity_parse(fail_on, &threshold) == 0 &&
	    findings_reach(&review->findings, threshold))
		return EXIT_FINDINGS;
	if (review->budget)
		return EXIT_BUDGET;
	if (review->unreachable)
		return EXIT_UNREACHABLE;
	return review->n_lost > 0 ? EXIT_FAILED : EXIT_OK;
}

static void on_view_removed(struct json_object *answer, const struct err *failure, void *arg)
{
	struct review *review = arg;

	review->run->pending--;
	if (failure)
		log_warn("the review's checkout '%s' is left: %s", review->view, failure->message);
	run_finish(review->run, review_status(review),
		   review->n_lost > 0 ? "parts of the change were not reviewed or verified" : NULL);
}

static void review_end(struct review *review)
{
	AUTO_JSON struct json_object *request = json_object_new_object();

	review->phase = PHASE_OVER;
	if (!review->view) {
		run_finish(review->run, review_status(review), NULL);
		return;
	}
	json_set_str(request, "path", review->view);
	json_set_str(request, "repository", review->run->toplevel);
	review->run->pending++;
	git_client_call(review->run->git_client, "remove_view", request, on_view_removed, review);
}

/* A file that the user asked for and does not get is a failure: whoever reads it would take its
 * absence for a clean review. */
static void write_extra(struct run *run, const char *what, const char *path, const struct buf *text)
{
	struct err err = ERR_INIT;

	if (path && user_file_write(what, path, text, &err) < 0)
		run_output_failed(run, &err);
}

/* The findings go into the run's report; the same texts then into the files that the user asked for. */
static void review_report(struct run *run, void *arg)
{
	struct review *review = arg;
	AUTO_FREE char *model = mem_printf("%s/%s", run->provider, run->model_name);
	struct review_summary summary = {
		.title = review->title ? review->title : review->spec,
		.run = run->id,
		.model = model,
		.reviewers = review->reviewers,
		.verifiers = review->verifiers,
		.lost_agents = review->n_lost,
		.skipped = review->shards.skipped,
		.n_skipped = review->shards.n_skipped,
		.failure = run->exit_status == EXIT_OK || run->exit_status == EXIT_FINDINGS
				   ? NULL
				   : run->stop_reason,
		.lost = review->lost,
		.n_lost = review->n_lost,
	};
	AUTO_FREE char *sarif_path = run_path(run, "report.sarif");

	if (!review->merged)
		findings_merge(&review->findings);
	run->report = findings_json(&review->findings, &summary);
	findings_markdown(&review->findings, &summary, &review->markdown);
	json_set_strn(run->report, "markdown", buf_str(&review->markdown), review->markdown.len);
	AUTO_JSON struct json_object *sarif = findings_sarif(&review->findings, &summary);
	json_write_pretty(&review->sarif, sarif);
	write_extra(run, NULL, sarif_path, &review->sarif);
}

static void review_deliver(struct run *run, void *arg)
{
	struct review *review = arg;

	write_extra(run, "--output", settings_str(run->settings, OPT_OUTPUT), &review->markdown);
	write_extra(run, "--sarif", settings_str(run->settings, OPT_SARIF), &review->sarif);
}

static const struct run_driver review_driver = {
	.command = "review",
	.start = review_start,
	.agent_done = review_agent_done,
	.report = review_report,
	.deliver = review_deliver,
};

static int review_spec(struct settings *s, char **ret, struct err *err)
{
	bool staged = settings_flag(s, OPT_STAGED), worktree = settings_flag(s, OPT_WORKTREE);

	if (staged + worktree + (settings_n_args(s) > 0) > 1 || settings_n_args(s) > 1)
		return err_set(err, ERR_USAGE, "give one of RANGE, --staged and --worktree");
	*ret = mem_strdup(staged	       ? "staged"
			  : worktree	       ? "worktree"
			  : settings_n_args(s) ? settings_arg(s, 0)
					       : "HEAD");
	return 0;
}

static void review_release(struct review *review)
{
	for (size_t i = 0; i < review->n_lost; i++)
		free(review->lost[i]);
	free(review->lost);
	free(review->spec);
	free(review->view);
	free(review->title);
	shards_release(&review->shards);
	findings_release(&review->findings);
	buf_release(&review->markdown);
	buf_release(&review->sarif);
	json_object_put(review->verdict_schema);
}

/* Before anything is paid for: a review whose outcome cannot be written is of no use. */
static int check_outputs(const struct settings *s, struct err *err)
{
	const char *sarif = settings_str(s, OPT_SARIF), *output = settings_str(s, OPT_OUTPUT);

	if (sarif && user_file_check("--sarif", sarif, err) < 0)
		return -1;
	return output ? user_file_check("--output", output, err) : 0;
}

/* A new one if `replay` is NULL. The spec is the review's from here on. */
static int review_work(struct settings *s, char *spec, const char *id, struct replay *replay,
		       int lock_fd)
{
	struct review review = {
		.phase = PHASE_RANGE, .spec = spec, .markdown = BUF_INIT, .sarif = BUF_INIT};
	struct err err = ERR_INIT;

	if (json_parse(verdict_schema, strlen(verdict_schema), &review.verdict_schema, &err) < 0)
		return command_fail(&err);
	struct run *run = run_new(s, &review_driver, &review);
	if (replay)
		run_take_up(run, id, replay, lock_fd);
	run->task = review.spec;
	int status = run_launch(run);
	review_release(&review);
	return status;
}

int cmd_review(struct settings *s)
{
	struct err err = ERR_INIT;
	char *spec = NULL;

	if (check_outputs(s, &err) < 0 || review_spec(s, &spec, &err) < 0)
		return command_fail(&err);
	return review_work(s, spec, NULL, NULL, -1);
}

int cmd_review_go_on(struct settings *s, const char *id, struct replay *replay, int lock_fd)
{
	char *spec = mem_strdup(json_str(replay->request, "task", "HEAD"));

	return review_work(s, spec, id, replay, lock_fd);
}
