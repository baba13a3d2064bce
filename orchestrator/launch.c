/*
 * launch.c - see launch.h. Runs in the process that the user started, which becomes the warden; the
 * run itself goes on in its child, the parent.
 *
 * Both hold a copy of the run: the child's is the one that works, the warden's is freed here.
 */
#include "orchestrator/launch.h"

#include "orchestrator/command.h"
#include "orchestrator/outcome.h"
#include "orchestrator/run.h"
#include "orchestrator/run_open.h"
#include "orchestrator/warden.h"

static int run_body(void *arg)
{
	struct run *run = arg;
	int status = run_main(run);

	outcome_print(run);
	run_free(run);
	return status;
}

int run_launch(struct run *run)
{
	struct err err = ERR_INIT;
	int status = run_open_model(run, &err) < 0 ? command_fail(&err) : warden_run(run_body, run);

	run_free(run);
	return status;
}
