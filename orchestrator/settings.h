/*
 * settings.h - the effective value of each option, from the layers of M5, each with its origin.
 *
 * Layers, strongest first: managed (/etc/baton/config.yaml), command line, environment
 * (BATON_<NAME>), project local (.baton/config.local.yaml), project shared (.baton/config.yaml),
 * user
 * ($XDG_CONFIG_HOME/baton/config.yaml). Scalars override; lists are merged. Unknown keys and wrong
 * types are errors with file, line and the nearest name. Beside options a file may hold
 * `providers:` (name -> api, base_url, key_env, auth, headers, ca_file, proxy, concurrency),
 * `models:` (overrides, base/model_table.h), `context:` (numbers of the context engine, handoff/knobs.h) and `trust:`-free notes; providers and models are taken
 * from trusted layers only (never from project files).
 */
#ifndef BATON_ORCHESTRATOR_SETTINGS_H
#define BATON_ORCHESTRATOR_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/json.h"
#include "handoff/knobs.h"
#include "handoff/hook.h"
#include "orchestrator/option_table.h"

enum option_type {
	OPTION_FLAG,
	OPTION_COUNT,
	OPTION_DURATION,
	OPTION_MONEY,
	OPTION_PERCENT,
	OPTION_STRING,
	OPTION_PATH,
	OPTION_LIST,
	OPTION_CHOICE,
};

enum option_scope {
	SCOPE_RUN = 1,
	SCOPE_REVIEW = 2,
	SCOPE_CLEAN = 4,
	SCOPE_REHEARSE = 8,
	SCOPE_OTHER = 16,
	SCOPE_COMPACT = 32,
	SCOPE_RESUME = 64,
	SCOPE_RESET = 128,
	SCOPE_HANDOFF = 256,
	SCOPE_WORK = SCOPE_RUN | SCOPE_REVIEW | SCOPE_RESUME,
	SCOPE_PARALLEL = SCOPE_RUN | SCOPE_REVIEW | SCOPE_RESUME,
	SCOPE_SHELLS = SCOPE_WORK | SCOPE_HANDOFF,
	SCOPE_WRITERS = SCOPE_REVIEW | SCOPE_HANDOFF,
	SCOPE_REPLY = SCOPE_WORK | SCOPE_CLEAN | SCOPE_OTHER | SCOPE_COMPACT | SCOPE_RESET |
		      SCOPE_HANDOFF, /* those that answer something */
	SCOPE_ALL = 511,
};

enum config_layers { CFG_ANY, CFG_TRUSTED, CFG_CLI };

enum option_id {
#define OPTION_ENUM(id, name, type, scope, layers, min, max, dflt, meta, help) OPT_##id,
	OPTION_TABLE(OPTION_ENUM)
#undef OPTION_ENUM
		OPT_COUNT_
};

struct option {
	enum option_id id;
	const char *name;
	enum option_type type;
	unsigned scope;
	enum config_layers layers;
	double min, max;
	const char *dflt; /* for CHOICE: the values, the first is the default; "" means unset */
	const char *metavar;
	const char *help;
};
const struct option *option_table(size_t *ret_count);

struct settings;

/* Parses argv (after the command's name) for a command of this scope: long options as --name VALUE
 * and
 * --name=VALUE, -C, -q, -v, --no-NAME for flags, "--" ends options. Then reads the layers.
 * cwd-relative paths become absolute. project_dir is the top of the user's checkout, NULL if there
 * is none (then no project layers). Positional arguments are kept in order. ERR_USAGE with the
 * nearest name. --help is reported through settings_wants_help. */
int settings_load(int argc, char **argv, enum option_scope scope, const char *project_dir,
		  struct settings **ret, struct err *err);
void settings_free(struct settings *s);

bool settings_wants_help(const struct settings *s);
size_t settings_n_args(const struct settings *s);
const char *settings_arg(const struct settings *s, size_t i);

bool settings_is_set(const struct settings *s, enum option_id id); /* not the built-in default */
bool settings_flag(const struct settings *s, enum option_id id);
int64_t settings_i64(const struct settings *s,
		     enum option_id id); /* COUNT; DURATION in ms; 0 if unset */
double settings_double(const struct settings *s, enum option_id id);   /* MONEY; < 0 if unset */
const char *settings_str(const struct settings *s, enum option_id id); /* NULL if unset */
const char *const *settings_list(const struct settings *s, enum option_id id); /* NULL-terminated */
/* "command line", "environment BATON_MODEL", "/home/u/.config/baton/config.yaml:3", "default". */
const char *settings_origin(const struct settings *s, enum option_id id);
/* A number of the context engine for an agent of a role (its checked `context:`, struct role's knobs, or
 * NULL): managed, command line and environment stand above the role, files below it. KNOB_AUTO if that
 * is what was asked for. */
int64_t settings_knob(const struct settings *s, const struct knob *knob, struct json_object *role);
/* By the same order an option that a role may set too: `role` is its word, or NULL. NULL: neither did. */
const char *settings_str_for(const struct settings *s, enum option_id id, const char *role);
const char *settings_knob_origin(const struct settings *s, const struct knob *knob);
struct json_object *
settings_models(const struct settings *s); /* model overrides or NULL; borrowed */

/* One hook (M6, docs/hooks.md). */
struct hook_setting {
	enum hook_event event;
	char *matcher; /* NULL: always; of tools by our names */
	char *command;
	int64_t timeout_ms; /* 0: --hook-timeout */
	bool required;	    /* where it decides: its failure denies */
	char *origin;	    /* "FILE:LINE" */
	char *folder;	   /* of that file: the command works there, and may read hooks/ below it */
	const char *layer; /* "managed", "user" or "project" */
};
/* Those of all layers that may run: what a project's untrusted file names is not among them. */
const struct hook_setting *settings_hooks(const struct settings *s, size_t *ret_n);

/* A provider as the gateway's start document wants it (docs/documents.md), from the built-in table
 * (data/models.json `providers`), configuration and the SDKs' variables (ANTHROPIC_BASE_URL,
 * OPENAI_BASE_URL, http(s)_proxy, SSL_CERT_FILE). *ret_key_env names the variable that holds its
 * key (NULL: it needs none). An unknown provider is ERR_USAGE with the nearest name. */
int settings_provider(const struct settings *s, const char *name, struct json_object **ret,
		      const char **ret_key_env, struct err *err);
/* One provider and where its key would come from, for `baton doctor`. */
struct key_place {
	const char *provider;
	const char *key_env; /* NULL: it needs no key */
	bool in_env, in_file;
};
void settings_each_key(const struct settings *s,
		       void (*fn)(const struct key_place *place, void *arg), void *arg);
/* The key file: its path (caller frees, NULL without a home), and as an error what is wrong with it
 * (mode, owner, YAML, a provider that nobody knows). 0 also if there is none. */
int settings_check_key_file(const struct settings *s, char **ret_path, struct err *err);
/* The key: from the variable key_env or a file with mode 0600 ($XDG_CONFIG_HOME/baton/keys.yaml;
 * wider modes are refused). NULL with err naming both places if there is none. Caller frees and
 * wipes. */
char *settings_key(const struct settings *s, const char *provider, const char *key_env,
		   struct err *err);
/* Splits "provider/name" (the model's own name may hold slashes); with no model set picks a
 * sensible model of the one provider whose key is set (or ERR_USAGE that says what to do).
 * rehearsal:FILE gives provider "rehearsal" and name FILE. Both owned by the caller. */
int settings_model(const struct settings *s, char **ret_provider, char **ret_name, struct err *err);

/* What was set, each value with its layer and origin, for run.json; and back into settings that were loaded for
 * `baton resume`: what was recorded holds, but for what the new command line and the managed file say. Options and
 * numbers that this program does not know any more are passed over; one that it refuses is ERR_USAGE. */
struct json_object *settings_record(const struct settings *s);
void settings_record_limit(struct json_object *record, const char *option,
			   struct json_object *value);
int settings_restore(struct settings *s, struct json_object *record, const char *run,
		     struct err *err);

/* Prints --help of a scope's options; and the effective values with origins for `baton config`. */
void settings_print_options(enum option_scope scope, struct buf *out);
void settings_print_effective(const struct settings *s, bool json, struct buf *out);

#endif
