/*
 * cmd_doctor.c - `baton doctor`: what this machine gives a run, and what is missing.
 */
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/env.h"
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/model_table.h"
#include "config.h"
#include "orchestrator/command.h"
#include "worktrees/box/box.h"

static const char *const helpers[] = {"baton-gateway", "baton-git", "baton-box", "baton-image",
				      "baton-rehearse"};

static const char *level_text(enum box_level level)
{
	switch (level) {
	case BOX_NAMESPACES: return "namespaces, Landlock and seccomp";
	case BOX_LANDLOCK: return "Landlock and seccomp: writes only in the agent's own folders";
	case BOX_PARTIAL: return "partial: an older Landlock; truncation is refused by seccomp";
	default: return "none: agents that write need --unconfined";
	}
}

static void print_keys(const char *name, void *arg)
{
	const char *key_env = json_str(model_provider(name), "key_env", NULL);

	if (key_env && env_get(key_env))
		printf("key          %s (%s)\n", name, key_env);
}

static bool print_helpers(void)
{
	bool all = true;

	for (size_t i = 0; i < ARRAY_SIZE(helpers); i++) {
		AUTO_FREE char *path = file_find_program(helpers[i], NULL);
		printf("helper       %-15s %s\n", helpers[i],
		       path ? path : "MISSING: reinstall baton");
		all &= path != NULL;
	}
	return all;
}

static void print_json(const struct box_facts *facts)
{
	AUTO_JSON struct json_object *doc = json_object_new_object();
	AUTO_BUF struct buf out = BUF_INIT;

	json_set_str(doc, "version", BATON_VERSION);
	json_set_str(doc, "box", box_level_name(facts->best));
	json_set_i64(doc, "landlock_abi", facts->landlock_abi);
	json_set_bool(doc, "seccomp", facts->seccomp);
	json_set_bool(doc, "user_namespaces", facts->user_namespaces);
	json_write_pretty(&out, doc);
	fwrite(out.data, 1, out.len, stdout);
}

int cmd_doctor(struct settings *s)
{
	struct box_facts facts;
	struct utsname host;
	const char *notes[BOX_NOTES_MAX];

	box_probe(&facts);
	if (settings_flag(s, OPT_JSON)) {
		print_json(&facts);
		return EXIT_OK;
	}
	uname(&host);
	printf("baton        %s on %s %s\n", BATON_VERSION, host.sysname, host.release);
	printf("box          %s\n", level_text(facts.best));
	printf("             Landlock ABI %d, seccomp %s, user namespaces %s\n", facts.landlock_abi,
	       facts.seccomp ? "yes" : "no", facts.user_namespaces ? "yes" : "no");
	size_t n_notes = box_notes(&facts, notes);
	for (size_t i = 0; i < n_notes; i++)
		printf("             %s\n", notes[i]);
	printf("cleaning up  killed agents and parents leave no process (subreaper); only killing "
	       "warden, "
	       "parent and agent in one moment can, as there is no pid namespace\n");
	bool all = print_helpers();
	printf("git          %s\n",
	       file_exists("/usr/bin/git") ? "/usr/bin/git" : "not in /usr/bin");
	model_provider_each(print_keys, NULL);
	return all ? EXIT_OK : EXIT_FAILED;
}
