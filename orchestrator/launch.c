/*
 * launch.c - see launch.h. Runs in the process that the user started, which becomes the warden; the
 * run itself goes on in its child, the parent.
 *
 * Both hold a copy of the run: the child's is the one that works, the warden's is freed here.
 */
#include "orchestrator/launch.h"

#include "base/env.h"
#include "base/file.h"
#include "base/memory.h"
#include "orchestrator/ancestry.h"
#include "orchestrator/command.h"
#include "orchestrator/outcome.h"
#include "orchestrator/run.h"
#include "orchestrator/run_open.h"
#include "orchestrator/warden.h"

/* With --json the view writes to stdout, and says itself what went wrong. */
static bool json_is_incomplete(const struct run *run)
{
	return settings_flag(run->settings, OPT_JSON) && run->children &&
	       children_failed(run->children, CHILD_VIEW);
}

static int run_body(void *arg)
{
	struct run *run = arg;
	int status = run_main(run);

	outcome_print(run);
	status = command_end(status);
	if (json_is_incomplete(run) && (status == EXIT_OK || status == EXIT_FINDINGS))
		status = EXIT_FAILED;
	run_free(run);
	return status;
}

/* A folder that is not there would come to light in the first shell call, when rounds were paid. */
static int check_read_paths(const struct settings *s, struct err *err)
{
	const char *const *list = settings_list(s, OPT_READ_PATHS);

	for (size_t i = 0; list[i]; i++) {
		if (!file_exists(list[i]))
			return err_set(err, ERR_USAGE, "%s: read-paths: there is no '%s'",
				       settings_origin(s, OPT_READ_PATHS), list[i]);
	}
	return 0;
}

/* Worktrees go there, and they are made beside the first request. */
static int check_state_folder(struct err *err)
{
	AUTO_FREE char *state = env_state_dir();

	if (!state || *state != '/' || file_is_dir(state) || file_mkdirs(state, 0700, err) == 0)
		return 0;
	err_prefix(err, "the folder for worktrees (HOME or XDG_STATE_HOME)");
	err->code = ERR_USAGE;
	return -1;
}

/* Its agents would have no limits in common with those of the run that it stands in, and nobody's money. */
static int check_not_nested(struct err *err)
{
	return !ancestry_is_agents()
		       ? 0
		       : err_set(err, ERR_USAGE,
				 "this is an agent's command: agents start others with the tool "
				 "'agent', not with a run of their own");
}

int run_launch(struct run *run)
{
	struct err err = ERR_INIT;
	bool good = check_not_nested(&err) == 0 && check_read_paths(run->settings, &err) == 0 &&
		    check_state_folder(&err) == 0 && run_open_model(run, &err) == 0;
	int status = !good ? command_fail(&err) : warden_run(run_body, run);

	run_free(run);
	return status;
}
