/*
 * layers.c - configuration files and the environment (M5). Runs in the parent, before anything
 * else.
 *
 * A project's files are written by whoever wrote the repository: they may not set what decides
 * where requests and keys go or what is confined (CFG_TRUSTED), and a command in them counts only
 * after `baton trust` of the file as it stands. A forbidden key is an error and not a warning: a
 * repository that tries it should be looked at, and a user who put it there by mistake should learn
 * where it belongs.
 *
 * Everything is checked where it is read, while file and line are known. What a later part of the
 * program would refuse anyway (a model's field) is tried here for the sake of its place.
 *
 * Options go into the store at once; the store knows which layer is stronger. `providers:` and
 * `models:` are merged field by field in the order of reading, weakest file first.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/model_table.h"
#include "base/text.h"
#include "base/yaml.h"
#include "orchestrator/config/store.h"

#define CONFIG_FILE_MAX (1 << 20)

/* What a provider's row may hold. */
static const struct {
	const char *name;
	enum json_type type;
} provider_keys[] = {
	{"api", json_type_string},	     {"base_url", json_type_string},
	{"key_env", json_type_string},	     {"auth", json_type_string},
	{"headers", json_type_object},	     {"ca_file", json_type_string},
	{"proxy", json_type_string},	     {"concurrency", json_type_int},
	{"default_model", json_type_string},
};

struct layer_file {
	struct settings *s;
	struct yaml_doc *doc;
	const char *path;
	struct buf text; /* of the file: what is trusted is what was read */
	enum layer layer;
	bool project;
};

char *config_pointer(const char *above, const char *key)
{
	struct buf out = BUF_INIT;

	buf_addf(&out, "%s/", above);
	for (; *key; key++) {
		if (*key == '/' || *key == '~')
			buf_adds(&out, *key == '/' ? "~1" : "~0");
		else
			buf_addc(&out, *key);
	}
	return buf_take(&out);
}

/* An error at a node of the file, with the nearest name if there is one. -1. */
static int at(const struct layer_file *f, const char *pointer, struct err *err, const char *what,
	      const char *name, const char *near)
{
	int line = yaml_line(f->doc, pointer);

	if (near)
		return err_set(err, ERR_USAGE, "%s:%d: %s '%s'; did you mean '%s'?", f->path, line,
			       what, name, near);
	return err_set(err, ERR_USAGE, "%s:%d: %s '%s'", f->path, line, what, name);
}

/* Text of a scalar as the option parsers want it; NULL if it is no scalar. */
static const char *scalar_text(struct json_object *value)
{
	switch (json_object_get_type(value)) {
	case json_type_boolean:
	case json_type_int:
	case json_type_double:
	case json_type_string: return json_object_get_string(value);
	default: return NULL;
	}
}

/* Items must be text: YAML would make 8080 or true of a word that was meant as a name, and a list
 * of names is not the place to guess. */
static int read_list(struct layer_file *f, const struct option *o, const char *key,
		     struct json_object *value, const char *where, struct err *err)
{
	AUTO_FREE char *pointer = config_pointer("", key);
	AUTO_FREE char *dir = file_dir(f->path);

	for (size_t i = 0; i < json_len(value); i++) {
		struct json_object *item = json_at(value, i);
		if (!json_object_is_type(item, json_type_string))
			return at(f, pointer, err, "a list of words is expected for", key, NULL);
		if (store_text(f->s, o, json_object_get_string(item), f->layer, where, dir, err) <
		    0)
			return -1;
	}
	return 0;
}

/* May this file set this option? 0: yes. Commands of a project need trust; 1: skip it with a
 * warning. */
static int may_set(struct layer_file *f, const struct option *o, const char *pointer,
		   struct err *err)
{
	if (o->layers == CFG_CLI)
		return at(f, pointer, err, "only the command line sets", o->name, NULL);
	if (f->project && o->layers == CFG_TRUSTED)
		return at(f, pointer, err, "a project's file may not set", o->name, NULL);
	if (f->project && o->id == OPT_SETUP && !trust_holds(f->path, &f->text)) {
		log_warn("%s: 'setup' is ignored until you run 'baton trust %s'", f->path, f->path);
		return 1;
	}
	return 0;
}

/* Keys are written as on the command line (max-cost) or as in other YAML files (max_cost). */
static int read_option(struct layer_file *f, const char *key, struct json_object *value,
		       struct err *err)
{
	AUTO_FREE char *name = mem_strdup(key);
	AUTO_FREE char *pointer = config_pointer("", key);
	AUTO_FREE char *dir = file_dir(f->path);

	for (char *p = name; *p; p++)
		*p = *p == '_' ? '-' : *p;
	const struct option *o = option_find(name);
	if (!o)
		return at(f, pointer, err, "unknown key", key, option_nearest(name, SCOPE_ALL));
	int verdict = may_set(f, o, pointer, err);
	if (verdict)
		return verdict < 0 ? -1 : 0;
	AUTO_FREE char *where = mem_printf("%s:%d", f->path, yaml_line(f->doc, pointer));
	if (o->type == OPTION_LIST && json_object_is_type(value, json_type_array))
		return read_list(f, o, key, value, where, err);
	const char *text = scalar_text(value);
	if (!text)
		return at(f, pointer, err, "a single value is expected for", key, NULL);
	if (o->type != OPTION_FLAG && json_object_is_type(value, json_type_boolean))
		return at(f, pointer, err, "true and false are no values of", key, NULL);
	return store_text(f->s, o, text, f->layer, where, dir, err);
}

/* ---- providers and models ---- */

static int check_api(const struct layer_file *f, const char *pointer, const char *api,
		     struct err *err)
{
	static const char *const apis[] = {"anthropic", "openai"};

	for (size_t i = 0; i < ARRAY_SIZE(apis); i++) {
		if (strcmp(apis[i], api) == 0)
			return 0;
	}
	return at(f, pointer, err, "api must be anthropic or openai, not", api,
		  text_nearest(api, apis, ARRAY_SIZE(apis)));
}

/* All types are checked here, since the getters that read a provider later take a wrong type for an
 * absent field, and an absent base_url means the built-in one: keys would go where nobody meant. */
static int check_provider_field(struct layer_file *f, const char *pointer, const char *field,
				struct json_object *value, struct err *err)
{
	static const char *const auths[] = {"x-api-key", "bearer", "api-key", "none"};
	const char *names[ARRAY_SIZE(provider_keys)];
	size_t i = 0, k = 0;

	while (i < ARRAY_SIZE(provider_keys) && strcmp(provider_keys[i].name, field) != 0)
		i++;
	for (size_t n = 0; n < ARRAY_SIZE(names); n++)
		names[n] = provider_keys[n].name;
	if (i == ARRAY_SIZE(names))
		return at(f, pointer, err, "unknown key", field,
			  text_nearest(field, names, ARRAY_SIZE(names)));
	if (!json_object_is_type(value, provider_keys[i].type))
		return at(f, pointer, err, "wrong type for", field, NULL);
	if (strcmp(field, "concurrency") == 0 && json_object_get_int64(value) < 0)
		return at(f, pointer, err, "a negative number stands in", field, NULL);
	if (strcmp(field, "api") == 0)
		return check_api(f, pointer, json_object_get_string(value), err);
	if (strcmp(field, "auth") != 0)
		return 0;
	while (k < ARRAY_SIZE(auths) && strcmp(auths[k], json_object_get_string(value)) != 0)
		k++;
	return k < ARRAY_SIZE(auths)
		       ? 0
		       : at(f, pointer, err, "not one of x-api-key, bearer, api-key, none:",
			    json_object_get_string(value), NULL);
}

static int check_headers(struct layer_file *f, const char *pointer, struct json_object *headers,
			 struct err *err)
{
	json_object_object_foreach (headers, name, value) {
		AUTO_FREE char *below = config_pointer(pointer, name);
		if (!json_object_is_type(value, json_type_string))
			return at(f, below, err, "text is expected for the header", name, NULL);
	}
	return 0;
}

/* The model table itself judges a field (base/model_table.h); here its error gets a place. */
static int check_model_field(struct layer_file *f, const char *pointer, const char *name,
			     const char *field, struct json_object *value, struct err *err)
{
	AUTO_JSON struct json_object *all = json_object_new_object();
	struct json_object *row = json_object_new_object();
	size_t n = strcspn(name, "/");
	AUTO_FREE char *provider = mem_strndup(name, n);
	struct model *model;
	struct err why = ERR_INIT;

	json_set(all, name, row);
	json_set_str(row, "api", "openai");
	json_set(row, field, json_object_get(value));
	if (model_find(provider, name + n + 1, all, &model, &why) < 0)
		return err_set(err, ERR_USAGE, "%s:%d: %s", f->path, yaml_line(f->doc, pointer),
			       why.message);
	model_free(model);
	return 0;
}

/* "PROVIDER/NAME" is split at its first slash, so a provider cannot have one. */
static int check_name(struct layer_file *f, const char *pointer, const char *name, bool model,
		      struct err *err)
{
	const char *slash = strchr(name, '/');
	bool good = model ? slash && slash > name && slash[1] : *name && !slash;

	if (good)
		return 0;
	return at(f, pointer, err,
		  model ? "a model is named PROVIDER/NAME, not"
			: "a provider's name has no '/', but this one is",
		  name, NULL);
}

/* A file that is named beside the configuration is meant to lie beside it. */
static struct json_object *absolute_path(const struct layer_file *f, struct json_object *value)
{
	AUTO_FREE char *dir = file_dir(f->path);
	AUTO_FREE char *path = file_join(dir, json_object_get_string(value));

	return json_object_new_string(path);
}

static int read_provider(struct layer_file *f, const char *pointer, struct json_object *fields,
			 struct json_object *into, struct err *err)
{
	json_object_object_foreach (fields, field, value) {
		AUTO_FREE char *below = config_pointer(pointer, field);
		if (check_provider_field(f, below, field, value, err) < 0 ||
		    (strcmp(field, "headers") == 0 && check_headers(f, below, value, err) < 0))
			return -1;
		json_set(into, field,
			 strcmp(field, "ca_file") == 0 ? absolute_path(f, value)
						       : json_object_get(value));
	}
	return 0;
}

static int read_model(struct layer_file *f, const char *pointer, const char *name,
		      struct json_object *fields, struct json_object *into, struct err *err)
{
	json_object_object_foreach (fields, field, value) {
		AUTO_FREE char *below = config_pointer(pointer, field);
		if (check_model_field(f, below, name, field, value, err) < 0)
			return -1;
		json_set(into, field, json_object_get(value));
	}
	return 0;
}

/* Copies `providers:` or `models:`; stronger layers come later and win field by field. */
static int read_table(struct layer_file *f, const char *key, struct json_object *value,
		      struct json_object *into, struct err *err)
{
	AUTO_FREE char *pointer = config_pointer("", key);
	bool model = into == f->s->models;

	if (f->project)
		return at(f, pointer, err, "a project's file may not set", key, NULL);
	if (!json_object_is_type(value, json_type_object))
		return at(f, pointer, err, "a mapping is expected for", key, NULL);
	json_object_object_foreach (value, name, fields) {
		AUTO_FREE char *below = config_pointer(pointer, name);
		if (!json_object_is_type(fields, json_type_object))
			return at(f, below, err, "a mapping is expected for", name, NULL);
		struct json_object *have = json_obj(into, name);
		if (!have) {
			have = json_object_new_object();
			json_set(into, name, have);
		}
		if (check_name(f, below, name, model, err) < 0 ||
		    (model ? read_model(f, below, name, fields, have, err)
			   : read_provider(f, below, fields, have, err)) < 0)
			return -1;
	}
	return 0;
}

/* ---- hooks ---- */

/* Checked in any case: a mistake is told when the file is read, not on the day on which it is trusted. */
static int read_hooks(struct layer_file *f, struct json_object *value, struct err *err)
{
	bool trusted = !f->project || trust_holds(f->path, &f->text);

	if (hooks_read(f->s, f->doc, value, f->path, f->layer, trusted, err) < 0)
		return -1;
	if (!trusted)
		log_warn("%s: 'hooks' are ignored until you run 'baton trust %s'", f->path,
			 f->path);
	return 0;
}

/* ---- files ---- */

/* The first error ends the file and the load: half a configuration is worse than none. */
static int read_root(struct layer_file *f, struct err *err)
{
	struct json_object *root = yaml_root(f->doc);

	if (!root)
		return 0;
	if (!json_object_is_type(root, json_type_object))
		return err_set(err, ERR_USAGE, "%s: the file must be a mapping of options",
			       f->path);
	json_object_object_foreach (root, key, value) {
		int rc;
		if (strcmp(key, "providers") == 0)
			rc = read_table(f, key, value, f->s->providers, err);
		else if (strcmp(key, "models") == 0)
			rc = read_table(f, key, value, f->s->models, err);
		else if (strcmp(key, "context") == 0)
			rc = store_knob_mapping(f->s, value, f->path, f->doc, f->layer, err);
		else if (strcmp(key, "hooks") == 0)
			rc = read_hooks(f, value, err);
		else
			rc = read_option(f, key, value, err);
		if (rc < 0)
			return -1;
	}
	return 0;
}

int layer_parse(struct settings *s, const char *path, const void *text, size_t n, enum layer layer,
		struct err *err)
{
	struct layer_file f = {.s = s, .path = path, .layer = layer};

	f.project = layer == LAYER_PROJECT || layer == LAYER_PROJECT_LOCAL;
	if (yaml_parse(text, n, path, 1, &f.doc, err) < 0) {
		if (err && err->code == ERR_INVALID)
			err->code = ERR_USAGE;
		return -1;
	}
	buf_add(&f.text, text, n);
	int rc = read_root(&f, err);
	buf_release(&f.text);
	yaml_free(f.doc);
	return rc;
}

static bool layer_of_project(enum layer layer)
{
	return layer == LAYER_PROJECT || layer == LAYER_PROJECT_LOCAL;
}

int layer_read_file(struct settings *s, const char *path, enum layer layer, struct err *err)
{
	AUTO_BUF struct buf text = BUF_INIT;

	if (!file_exists(path))
		return 0;
	/* Its content may be shown in messages: a link of the repository's must not lead to a
	 * secret. */
	AUTO_FREE char *dir = file_dir(path);
	AUTO_FREE char *top = file_dir(dir);
	if (layer_of_project(layer) && !file_lies_in(top, path))
		return err_set(err, ERR_USAGE,
			       "%s: the file is a link that leads out of the project", path);
	if (file_read(AT_FDCWD, path, CONFIG_FILE_MAX, &text, err) < 0)
		return -1;
	return layer_parse(s, path, buf_str(&text), text.len, layer, err);
}

/* ---- environment ---- */

/* A list in one variable: folders are parted by ':', as in PATH, words by ','. */
static int read_environment_list(struct settings *s, const struct option *o, const char *text,
				 const char *where, struct err *err)
{
	const char *parting = option_names_paths(o) ? ":" : ",";
	AUTO_FREE char *cwd = getcwd(NULL, 0);

	while (*text) {
		size_t n = strcspn(text, parting);
		AUTO_FREE char *word = mem_strndup(text, n);
		if (*word &&
		    store_text(s, o, word, LAYER_ENVIRONMENT, where, cwd ? cwd : "/", err) < 0)
			return -1;
		text += n + (text[n] != '\0');
	}
	return 0;
}

#define PREFIX "BATON_"

/* Other names of options' variables (W4). */
static const struct {
	const char *variable;
	enum option_id option;
} other_names[] = {{PREFIX "CONTEXT_WINDOW", OPT_WINDOW}};

static bool is_other_name(const char *variable)
{
	for (size_t i = 0; i < ARRAY_SIZE(other_names); i++) {
		if (strcmp(other_names[i].variable, variable) == 0)
			return true;
	}
	return false;
}

char *config_upper_name(const char *option)
{
	char *name = mem_strdup(option);

	for (char *p = name; *p; p++)
		*p = *p == '-' ? '_' : *p >= 'a' && *p <= 'z' ? (char)(*p - 'a' + 'A') : *p;
	return name;
}

/* A variable that nearly has an option's name was meant to be one. Others are none of our business:
 * scripts of the user's may call theirs BATON_ too. */
static void warn_misspelt(void)
{
	static const char *const ours[] = {PREFIX "*", NULL};
	char **list = env_filter(ours, NULL);
	size_t n_options, n = 0, cap = 0;
	const struct option *table = option_table(&n_options);
	const char **names = NULL;

	for (size_t i = 0; i < n_options; i++) {
		MEM_GROW(names, cap, n + 1);
		names[n++] = config_upper_name(table[i].name);
	}
	for (char *variable; (variable = store_knob_variable(n - n_options)); n++) {
		MEM_GROW(names, cap, n + 1);
		names[n] = config_upper_name(variable + strlen(PREFIX));
		free(variable);
	}
	for (size_t i = 0; list[i]; i++) {
		AUTO_FREE char *name = mem_strndup(list[i], strcspn(list[i], "="));
		const char *near = text_nearest(name + strlen(PREFIX), names, n);
		if (near && strcmp(near, name + strlen(PREFIX)) != 0 && !is_other_name(name))
			log_warn("the variable %s is no option; did you mean " PREFIX "%s?", name,
				 near);
	}
	for (size_t i = 0; i < n; i++)
		free((void *)names[i]);
	free(names);
	env_list_free(list);
}

static int read_variable(struct settings *s, const struct option *o, const char *name,
			 struct err *err)
{
	const char *text = env_get(name);
	AUTO_FREE char *where = mem_printf("environment %s", name);

	if (!text || o->layers == CFG_CLI)
		return 0;
	if (o->type == OPTION_LIST)
		return read_environment_list(s, o, text, where, err);
	return store_text(s, o, text, LAYER_ENVIRONMENT, where, "/", err);
}

/* BATON_<OPTION> for every option that is not the command line's alone (W4); empty is unset. */
int layer_read_environment(struct settings *s, struct err *err)
{
	size_t n;
	const struct option *table = option_table(&n);

	for (size_t i = 0; i < n; i++) {
		AUTO_FREE char *upper = config_upper_name(table[i].name);
		AUTO_FREE char *name = mem_printf(PREFIX "%s", upper);

		if (read_variable(s, &table[i], name, err) < 0)
			return -1;
	}
	for (size_t i = 0; i < ARRAY_SIZE(other_names); i++) {
		if (read_variable(s, &table[other_names[i].option], other_names[i].variable, err) <
		    0)
			return -1;
	}
	if (store_knobs_of_environment(s, err) < 0)
		return -1;
	warn_misspelt();
	return 0;
}
