/*
 * cmd_doctor.c - `baton doctor`: what this machine gives a run, and what is missing.
 *
 * All is put into one document first, so that --json says what the text says. Exit status 1 if
 * something is missing or broken without which runs fail: a helper, git, or a key file that is
 * refused. No key at all is no failure: local models and rehearsals need none.
 */
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "config.h"
#include "orchestrator/command.h"
#include "orchestrator/project.h"
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

/* ---- the document ---- */

static void add_box(struct json_object *doc, const struct box_facts *facts)
{
	const char *notes[BOX_NOTES_MAX];
	struct json_object *list = json_object_new_array();
	size_t n = box_notes(facts, notes);

	json_set_str(doc, "box", box_level_name(facts->best));
	json_set_str(doc, "box_means", level_text(facts->best));
	json_set_i64(doc, "landlock_abi", facts->landlock_abi);
	json_set_bool(doc, "seccomp", facts->seccomp);
	json_set_bool(doc, "user_namespaces", facts->user_namespaces);
	for (size_t i = 0; i < n; i++)
		json_object_array_add(list, json_object_new_string(notes[i]));
	json_set(doc, "notes", list);
}

/* Names to paths; null for one that is missing. True if all are there. */
static bool add_programs(struct json_object *doc)
{
	struct json_object *found = json_object_new_object();
	AUTO_FREE char *git = project_git();
	bool all = access(git, X_OK) == 0;

	json_set(doc, "git", all ? json_object_new_string(git) : NULL);
	for (size_t i = 0; i < ARRAY_SIZE(helpers); i++) {
		AUTO_FREE char *path = file_find_program(helpers[i], NULL);
		json_set(found, helpers[i], path ? json_object_new_string(path) : NULL);
		all &= path != NULL;
	}
	json_set(doc, "helpers", found);
	return all;
}

static void add_key(const struct key_place *place, void *arg)
{
	struct json_object *keys = arg;

	if (!place->in_env && !place->in_file)
		return;
	struct json_object *key = json_object_new_object();
	json_set_str(key, "provider", place->provider);
	json_set_str(key, "from", place->in_env ? place->key_env : "key file");
	json_object_array_add(keys, key);
}

static bool add_keys(const struct settings *s, struct json_object *doc)
{
	struct json_object *keys = json_object_new_array();
	struct json_object *file = json_object_new_object();
	AUTO_FREE char *path = NULL;
	struct err err = ERR_INIT;
	int rc = settings_check_key_file(s, &path, &err);

	settings_each_key(s, add_key, keys);
	json_set(doc, "keys", keys);
	json_set_str(file, "path", path);
	json_set_bool(file, "exists", path && file_exists(path));
	if (rc < 0)
		json_set_str(file, "problem", err.message);
	json_set(doc, "key_file", file);
	return rc == 0;
}

/* ---- as text ---- */

static void print_programs(struct json_object *doc)
{
	json_object_object_foreach (json_obj(doc, "helpers"), name, path)
		command_say("helper       %-15s %s\n", name,
			    path ? json_object_get_string(path) : "MISSING: reinstall baton");
	command_say("git          %s\n",
		    json_str(doc, "git", "MISSING: neither in PATH nor /usr/bin"));
}

static void print_keys(struct json_object *doc)
{
	struct json_object *keys = json_arr(doc, "keys");
	struct json_object *file = json_obj(doc, "key_file");
	const char *path = json_str(file, "path", "keys.yaml");

	for (size_t i = 0; i < json_len(keys); i++) {
		const char *from = json_str(json_at(keys, i), "from", "");
		command_say("key          %-15s %s\n", json_str(json_at(keys, i), "provider", ""),
			    strcmp(from, "key file") == 0 ? path : from);
	}
	if (json_len(keys) == 0)
		command_say("key          none: set ANTHROPIC_API_KEY or OPENAI_API_KEY, or write "
			    "'PROVIDER: KEY' into %s (mode 0600); ollama, llamacpp and "
			    "rehearsal:FILE need none\n",
			    path);
	if (json_has(file, "problem"))
		command_say("key file     REFUSED: %s\n", json_str(file, "problem", ""));
}

static void print_text(struct json_object *doc)
{
	struct json_object *notes = json_arr(doc, "notes");

	command_say("baton        %s on %s\n", BATON_VERSION, json_str(doc, "system", ""));
	command_say("box          %s\n", json_str(doc, "box_means", ""));
	command_say("             Landlock ABI %lld, seccomp %s, user namespaces %s\n",
		    (long long)json_i64(doc, "landlock_abi", 0),
		    json_flag(doc, "seccomp", false) ? "yes" : "no",
		    json_flag(doc, "user_namespaces", false) ? "yes" : "no");
	for (size_t i = 0; i < json_len(notes); i++)
		command_say("             %s\n", json_object_get_string(json_at(notes, i)));
	if (json_flag(doc, "root", false))
		command_say("user         root: an agent's shell can change mode and owner of what "
			    "root "
			    "owns; an ordinary user is safer\n");
	command_say("cleaning up  %s\n", json_str(doc, "cleaning_up", ""));
	print_programs(doc);
	print_keys(doc);
}

int cmd_doctor(struct settings *s)
{
	AUTO_JSON struct json_object *doc = json_object_new_object();
	struct box_facts facts;
	struct utsname host;

	box_probe(&facts);
	uname(&host);
	AUTO_FREE char *system = mem_printf("%s %s", host.sysname, host.release);
	json_set_str(doc, "version", BATON_VERSION);
	json_set_str(doc, "system", system);
	json_set_bool(doc, "root", geteuid() == 0);
	add_box(doc, &facts);
	json_set_str(doc, "cleaning_up",
		     "killed agents and parents leave no process (subreaper); only killing warden, "
		     "parent and agent in one moment can, as there is no pid namespace");
	bool good = add_programs(doc);
	good &= add_keys(s, doc);
	json_set_bool(doc, "ok", good);
	if (settings_flag(s, OPT_JSON))
		command_print_json(doc);
	else
		print_text(doc);
	return good ? EXIT_OK : EXIT_FAILED;
}
