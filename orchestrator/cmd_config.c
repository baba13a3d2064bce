/*
 * cmd_config.c - `baton config`: each effective value with its origin.
 */
#include "base/buf.h"
#include "orchestrator/command.h"

int cmd_config(struct settings *s)
{
	AUTO_BUF struct buf out = BUF_INIT;

	settings_print_effective(s, settings_flag(s, OPT_JSON), &out);
	command_write(out.data, out.len);
	return EXIT_OK;
}
