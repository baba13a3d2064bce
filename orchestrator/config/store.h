/*
 * store.h - internal to config/: the store of option values that all layers write into.
 */
#ifndef BATON_ORCHESTRATOR_CONFIG_STORE_H
#define BATON_ORCHESTRATOR_CONFIG_STORE_H

#include "orchestrator/settings.h"

/* Rank of a layer; a stronger one overrides. */
enum layer {
	LAYER_DEFAULT,
	LAYER_USER,
	LAYER_PROJECT,
	LAYER_PROJECT_LOCAL,
	LAYER_ROLE, /* of knobs only: a role's `context:` */
	LAYER_ENVIRONMENT,
	LAYER_COMMAND_LINE,
	LAYER_MANAGED,
};

struct value {
	enum layer layer; /* of the scalar that holds */
	bool set;
	char *origin;
	bool flag;
	double number; /* COUNT, DURATION (ms), MONEY, PERCENT */
	bool has_ceiling;
	double ceiling; /* what the user's own file says */
	char *text;	/* STRING, PATH, CHOICE */
	char **list;	/* LIST, NULL-terminated */
	size_t n_list;
};

/* A number of the context engine, in the order of handoff/knobs.h. */
struct knob_value {
	enum layer layer;
	int64_t number;
	char *origin; /* NULL: default */
};

struct settings {
	struct value values[OPT_COUNT_];
	struct knob_value knobs[KNOBS];
	char **args;
	size_t n_args;
	bool wants_help;
	struct json_object *providers; /* name -> fields, from trusted layers */
	struct json_object *models;    /* overrides, from trusted layers */
	struct hook_setting *hooks;
	size_t n_hooks;
};

const struct option *option_find(const char *name);
const char *option_nearest(const char *name, unsigned scope);
/* "true", "12k", ... as the option's type wants it. where is the origin, used in the error.
 * base_dir makes PATH values absolute. */
int store_text(struct settings *s, const struct option *option, const char *text, enum layer layer,
	       const char *where, const char *base_dir, struct err *err);
void store_flag(struct settings *s, const struct option *option, bool flag, enum layer layer,
		const char *where);

/* Does a value of this option name a file or folder, so that a relative one needs a base? */
bool option_names_paths(const struct option *option);

/* All knobs at their defaults; and the end of them. */
void store_knobs_init(struct settings *s);
void store_knobs_release(struct settings *s);
/* "NAME=VALUE" of --context. */
int store_knob_pair(struct settings *s, const char *pair, enum layer layer, const char *where,
		    struct err *err);
/* `context:` of a configuration file, with the lines of doc. */
struct yaml_doc;
int store_knob_mapping(struct settings *s, struct json_object *mapping, const char *path,
		       const struct yaml_doc *doc, enum layer layer, struct err *err);
/* One member of such a mapping, checked; `pointer` is its place in doc. Also for roles. */
int knob_member(const char *name, struct json_object *value, const char *path,
		const struct yaml_doc *doc, const char *pointer, const struct knob **ret_knob,
		int64_t *ret, struct err *err);
/* BATON_<KNOB> for each, and W4's variables that switch something off. */
int store_knobs_of_environment(struct settings *s, struct err *err);
/* Some options are knobs under a name of their own: what an option just got counts for its knob. */
void store_knob_of_option(struct settings *s, const struct option *option);
/* The knob's value in the option's words. False if the option is no knob. */
bool store_option_text(const struct settings *s, const struct option *option, struct buf *out,
		       const char **ret_origin);
/* The variables that are read beside those of options, for "did you mean": the i-th, NULL behind the last. The
 * caller frees. */
char *store_knob_variable(size_t i);
/* "max-cost" as "MAX_COST"; caller frees. */
char *config_upper_name(const char *option);

/* Reads one configuration file if it is there. */
int layer_read_file(struct settings *s, const char *path, enum layer layer, struct err *err);
/* The same from its text; path is for messages and trust (also a fuzz target). */
int layer_parse(struct settings *s, const char *path, const void *text, size_t n, enum layer layer,
		struct err *err);
int layer_read_environment(struct settings *s, struct err *err);

/* `hooks:` of one file, checked whole. trusted: they are kept; else only checked (M5). */
struct yaml_doc;
int hooks_read(struct settings *s, const struct yaml_doc *doc, struct json_object *value,
	       const char *path, enum layer layer, bool trusted, struct err *err);
void hooks_release(struct settings *s);
/* Our name of a tool that a role or a hook names in its own words; NULL: there is none. */
const char *role_tool_name(const char *word);

/* An empty store, of the table's defaults. Frees with settings_free. */
struct settings *store_new(void);

/* A JSON pointer one step longer, '/' and '~' of the key escaped. Caller frees. */
char *config_pointer(const char *above, const char *key);

/* Trust (M5): whether this content of the file was trusted by the user; trust_grant records the
 * present one. */
bool trust_holds(const char *path, const struct buf *content);
int trust_grant(const char *path, struct err *err);

#endif
