/*
 * job_tool.c - the job tool: poll, wait for, kill and list background jobs.
 *
 * poll and wait show what was printed since the last look, so a server's log is not sent twice. The
 * end of a job that the model sees here is not announced again.
 */
#include "agent/tools/boundary.h"
#include "agent/tools/job.h"
#include "agent/tools/output.h"
#include "agent/tools/shell.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"

enum { JOB_WAIT_MS = 30000 };

const char job_description[] =
	"Looks after background jobs that shell started. action `poll` shows a job's state and "
	"what it printed since the last look; `wait` does so when the job ends or timeout_ms "
	"(30000 by default) is over; `kill` ends it and everything that it started; `list` names "
	"all jobs. A job's end is announced without being asked for; jobs do not outlive the run.";

const char job_schema[] =
	"{\"type\":\"object\",\"properties\":{"
	"\"action\":{\"type\":\"string\",\"enum\":[\"poll\",\"wait\",\"kill\",\"list\"]},"
	"\"id\":{\"type\":\"string\",\"description\":\"job id, such as j1; not needed for list\"},"
	"\"timeout_ms\":{\"type\":\"integer\",\"minimum\":0,\"description\":\"for wait, in "
	"milliseconds\"}},"
	"\"required\":[\"action\"],\"additionalProperties\":false}";

static void list_jobs(struct tool_context *ctx, struct buf *out)
{
	size_t count = 0;
	for (struct job *job = ctx->jobs; job; job = job->next) {
		if (!job->id[0])
			continue;
		buf_addf(out, "%s: ", job->id);
		job_describe(job, out);
		buf_addf(out, "; %s; output: %s\n", job->command, job_where(job));
		count++;
	}
	if (!count)
		buf_adds(out, "there are no background jobs\n");
}

static void show_job(struct tool_context *ctx, struct job *job, struct tool_result *ret)
{
	buf_addf(&ret->text, "job %s: ", job->id);
	job_describe(job, &ret->text);
	off_t size = output_size(job->out_fd), from = job->told;
	buf_addf(&ret->text, "; output: %s%s\n", job_where(job),
		 size > from ? (from ? ", new since the last look:" : ":") : ", nothing new");
	job->told = shell_add_output(ctx, job, from, &ret->text);
	shell_add_left(job, &ret->text);
	job->announced |= !job->running;
	ret->exit_code = job->running ? -1 : job->exit_code;
	ret->full_path = mem_strdup(job->output);
	result_summary(ret, "job %s: %s", job->id, job->running ? "running" : "ended");
}

static int act_on_job(struct tool_context *ctx, struct job *job, const char *action,
		      int64_t timeout, struct err *err)
{
	if (strcmp(action, "kill") == 0) {
		job->killed = job->running;
		job_stop(ctx, job);
	}
	if (strcmp(action, "wait") == 0) {
		struct err e = ERR_INIT;
		int64_t most = MIN(timeout, ctx->settings.shell_timeout_max_ms);
		if (job_wait(ctx, job, clock_mono_ms() + most, &e) < 0 && e.code != ERR_TIMEOUT) {
			if (err)
				*err = e;
			return -1;
		}
	}
	return 0;
}

int job_run(struct tool_context *ctx, const char *call_id, struct json_object *input,
	    struct tool_result *ret, struct err *err)
{
	const char *action = json_str(input, "action", "list");
	const char *id = json_str(input, "id", "");
	ret->exit_code = -1;
	jobs_collect(ctx);
	if (strcmp(action, "list") == 0) {
		list_jobs(ctx, &ret->text);
		result_summary(ret, "job list");
		return boundary_check(ctx, ret, err);
	}
	struct job *job = job_find(ctx, id);
	if (!job)
		return result_failf(ret, "there is no background job '%s'; use action list", id);
	ret->has_effects = strcmp(action, "kill") == 0;
	if (act_on_job(ctx, job, action, json_i64(input, "timeout_ms", JOB_WAIT_MS), err) < 0)
		return -1;
	show_job(ctx, job, ret);
	return boundary_check(ctx, ret, err);
}
