/*
 * spare.c - one waiting agent process. Runs in the parent.
 *
 * It stands in the registry like every child and is reaped there. Until it is taken, the only frame
 * that it may send is hello; what it says while it is ended unused is not heard. Its stderr is this program's until the start document names its file:
 * what it says before (a library that is missing) concerns the user, not a run's folder.
 */
#include "orchestrator/spare.h"

#include <signal.h>
#include <unistd.h>

#include "base/env.h"
#include "base/log.h"
#include "base/memory.h"
#include "orchestrator/run.h"

#define SPARE_GRACE_MS 1000

int spare_spawn(struct run *run, const char *name, const struct child_handler *handler, void *arg,
		struct child **ret, struct err *err)
{
	static const char *const allow[] = {"PATH",  "HOME",	     "LANG",	      "LC_*",
					    "TZ",    "USER",	     "LOGNAME",	      "SHELL",
					    "XDG_*", "ASAN_OPTIONS", "UBSAN_OPTIONS", NULL};
	const char *argv[] = {"baton", "agent", NULL};
	char **env = env_filter_more(allow, settings_list(run->settings, OPT_PASS_ENV), NULL);
	struct child_spec spec = {
		.kind = CHILD_AGENT,
		.name = name,
		.handler = handler,
		.arg = arg,
		.channel = true,
		.sender = FROM_A,
		.hello = "agent",
		.opts = SPAWN_OPTS_INIT,
	};

	spec.opts.path = "/proc/self/exe";
	spec.opts.argv = argv;
	spec.opts.envp = (const char *const *)env;
	spec.opts.cwd = "/";
	spec.opts.fd_err = STDERR_FILENO;
	spec.opts.death_signal = SIGTERM;
	int rc = children_spawn(run->children, &spec, ret, err);
	env_list_free(env);
	return rc;
}

static int on_spare_frame(struct child *child, const struct frame *frame, struct err *err)
{
	struct run *run = child->arg;

	/* Asked to end it sends a result, as every agent does: nobody asked it for one. */
	if (child->state != CHILD_RUNNING)
		return 0;
	if (frame->type != FRAME_HELLO || run->spare_said_hello)
		return err_set(err, ERR_INVALID, "a waiting agent sent '%s'",
			       frame_name(frame->type));
	run->spare_said_hello = true;
	return 0;
}

static void on_spare_exit(struct child *child, int wait_status, const char *failure)
{
	struct run *run = child->arg;

	run->spare = NULL;
}

static const struct child_handler spare_handler = {
	.on_frame = on_spare_frame,
	.on_exit = on_spare_exit,
};

void spare_start(struct run *run)
{
	struct err err = ERR_INIT;

	run->spare_said_hello = false;
	if (spare_spawn(run, "spare", &spare_handler, run, &run->spare, &err) < 0)
		log_debug("no spare agent: %s", err.message);
}

struct child *spare_take(struct run *run, const char *name, const struct child_handler *handler,
			 void *arg, bool *ret_said_hello)
{
	struct child *child = run->spare;

	if (!child || child->state != CHILD_RUNNING || !child->channel)
		return NULL;
	run->spare = NULL;
	child_hand_over(child, name, handler, arg);
	*ret_said_hello = run->spare_said_hello;
	return child;
}

void spare_stop(struct run *run)
{
	if (run->spare)
		child_stop(run->spare, SPARE_GRACE_MS);
}
