/*
 * run_base.c - see run_base.h.
 */
#include "orchestrator/run_base.h"

#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "orchestrator/replay.h"
#include "orchestrator/run.h"

/* baton-git allows a branch's name 200 bytes; the run's and the agent's follow. */
#define PREFIX_MAX 160

struct choice {
	struct run *run;
	run_base_done_fn done;
};

static void on_base(struct json_object *answer, const struct err *failure, void *arg)
{
	AUTO_FREE struct choice *choice = arg;

	if (failure)
		run_fail(choice->run, failure);
	else if (!choice->run->stopping)
		choice->done(choice->run, json_str(answer, "commit", NULL));
}

static void ask(struct run *run, run_base_done_fn done, const char *op, struct json_object *request)
{
	struct choice choice = {.run = run, .done = done};

	git_client_call(run->git_client, op, request, on_base, mem_dup(&choice, sizeof(choice)));
}

void run_base_choose(struct run *run, run_base_done_fn done)
{
	AUTO_JSON struct json_object *request = json_object_new_object();
	const char *rev = settings_str(run->settings, OPT_BASE);

	if (run->replay && run->replay->base) {
		done(run, run->replay->base);
	} else if (settings_flag(run->settings, OPT_DIRTY)) {
		json_set_str(request, "message", "uncommitted work, as baton found it");
		json_set_bool(request, "untracked", true);
		ask(run, done, "snapshot", request);
	} else if (rev) {
		json_set_str(request, "rev", rev);
		ask(run, done, "resolve", request);
	} else {
		done(run, json_str(run->repository, "head", NULL));
	}
}

void run_base_record(struct run *run, const char *base)
{
	if (!run->replay || !run->replay->base)
		journal_add(run->journal, RECORD_RUN_BASE, "commit:s", base);
}

/* What git would refuse as the beginning of a branch's name, and no less than baton-git refuses in the
 * whole of it (worktrees/work.c), which is asked when the run is under way. */
static int check_branch_prefix(const char *prefix, struct err *err)
{
	bool bad = !*prefix || strchr("/.-", *prefix) || strstr(prefix, "..") ||
		   strstr(prefix, "//") || strstr(prefix, "/.") || strstr(prefix, "@{") ||
		   strstr(prefix, ".lock") || text_ends(prefix, "/") || text_ends(prefix, ".");

	if (strlen(prefix) > PREFIX_MAX)
		return err_set(err, ERR_USAGE, "--branch-prefix: more than %d bytes", PREFIX_MAX);
	for (const char *p = prefix; *p; p++)
		bad |= (unsigned char)*p <= ' ' || *p == 127 || strchr("~^:?*[\\", *p) != NULL;
	return bad ? err_set(err, ERR_USAGE, "--branch-prefix: '%s' cannot begin a branch's name",
			     prefix)
		   : 0;
}

int run_base_check(const struct settings *s, struct err *err)
{
	if (settings_flag(s, OPT_DIRTY) && settings_str(s, OPT_BASE))
		return err_set(err, ERR_USAGE, "--dirty and --base exclude each other");
	return check_branch_prefix(settings_str(s, OPT_BRANCH_PREFIX), err);
}

int run_box_check(struct run *run, const struct agent_record *agent, struct err *err)
{
	if (!agent->role->write || run->box_level != BOX_NONE ||
	    settings_flag(run->settings, OPT_UNCONFINED))
		return 0;
	return err_set(
		err, ERR_UNSUPPORTED,
		"this kernel gives no boundary round an agent that writes (see 'baton doctor'); "
		"--unconfined runs it all the same, with your rights");
}
