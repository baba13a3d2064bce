/*
 * cmd_rehearse.c - `baton rehearse FILE`: the scripted model as a server of its own, in the
 * foreground.
 *
 * The server is a program of its own; this command becomes it.
 */
#include <stdio.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "orchestrator/command.h"

int cmd_rehearse(struct settings *s)
{
	struct err err = ERR_INIT;
	AUTO_FREE char *path = NULL;
	AUTO_FREE char *port = mem_printf("%lld", (long long)settings_i64(s, OPT_PORT));
	const char *log = settings_str(s, OPT_LOG);
	const char *argv[10] = {"baton-rehearse", "--port", port};
	size_t n = 3;

	if (settings_n_args(s) != 1) {
		err_set(&err, ERR_USAGE, "rehearse needs one scenario FILE");
		return command_fail(&err);
	}
	path = file_find_program("baton-rehearse", &err);
	if (!path)
		return command_fail(&err);
	if (settings_flag(s, OPT_CHECK))
		argv[n++] = "--check";
	if (log) {
		argv[n++] = "--log";
		argv[n++] = log;
	}
	if (settings_flag(s, OPT_LOG_BODIES))
		argv[n++] = "--log-bodies";
	argv[n++] = "--";
	argv[n] = settings_arg(s, 0);
	execv(path, (char *const *)argv);
	err_sys(&err, "cannot start '%s'", path);
	return command_fail(&err);
}
