/*
 * cmd_trust.c - `baton trust [FILE]`: commands in a project's file may run, as the file stands now.
 */
#include <stdio.h>

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "orchestrator/command.h"
#include "orchestrator/config/store.h"
#include "orchestrator/project.h"

int cmd_trust(struct settings *s)
{
	const char *dir = settings_str(s, OPT_DIRECTORY);
	AUTO_FREE char *top = project_above(dir);
	AUTO_FREE char *dflt = top ? file_join(top, ".baton/config.yaml") : NULL;
	const char *path = settings_n_args(s) ? settings_arg(s, 0) : dflt;
	AUTO_JSON struct json_object *doc = json_object_new_object();
	struct err err = ERR_INIT;

	if (!path)
		err_set(&err, ERR_NOT_FOUND, "'%s' is in no git repository; name the FILE to trust",
			dir ? dir : ".");
	if (!path || trust_grant(path, &err) < 0)
		return command_fail(&err);
	json_set_str(doc, "trusted", path);
	if (settings_flag(s, OPT_JSON))
		command_print_json(doc);
	else
		command_say("'%s' is trusted until it changes\n", path);
	return EXIT_OK;
}
