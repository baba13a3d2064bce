/*
 * layers.c - configuration files and the environment (M5).
 *
 * A project's files are written by whoever wrote the repository: they may not set what decides
 * where requests and keys go or what is confined (CFG_TRUSTED), and a command in them counts only
 * after `baton trust` of the file as it stands.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/env.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/yaml.h"
#include "orchestrator/config/store.h"

static const char *const provider_keys[] = {"api",   "base_url", "key_env",
					    "auth",  "headers",	 "ca_file",
					    "proxy", "dialect",	 "concurrency"};

struct layer_file {
	struct settings *s;
	struct yaml_doc *doc;
	const char *path;
	enum layer layer;
	bool project;
};

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

static int read_list(struct layer_file *f, const struct option *o, const char *key,
		     struct json_object *value, const char *where, struct err *err)
{
	AUTO_FREE char *pointer = mem_printf("/%s", key);

	for (size_t i = 0; i < json_len(value); i++) {
		const char *text = scalar_text(json_at(value, i));
		if (!text)
			return at(f, pointer, err, "a list of words is expected for", key, NULL);
		if (store_text(f->s, o, text, f->layer, where, "/", err) < 0)
			return -1;
	}
	return 0;
}

/* May this file set this option? Commands of a project need trust; 1: skip it with a warning. */
static int may_set(struct layer_file *f, const struct option *o, const char *pointer,
		   struct err *err)
{
	if (o->layers == CFG_CLI)
		return at(f, pointer, err, "only the command line sets", o->name, NULL);
	if (f->project && o->layers == CFG_TRUSTED)
		return at(f, pointer, err, "a project's file may not set", o->name, NULL);
	if (f->project && o->id == OPT_SETUP && !trust_holds(f->path)) {
		log_warn("%s: 'setup' is ignored until you run 'baton trust %s'", f->path, f->path);
		return 1;
	}
	return 0;
}

static int read_option(struct layer_file *f, const char *key, struct json_object *value,
		       struct err *err)
{
	AUTO_FREE char *name = mem_strdup(key);
	AUTO_FREE char *pointer = mem_printf("/%s", key);
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
	return store_text(f->s, o, text, f->layer, where, dir, err);
}

/* Copies `providers:` or `models:`; stronger layers come later and win field by field. */
static int read_table(struct layer_file *f, const char *key, struct json_object *value,
		      struct json_object *into, struct err *err)
{
	AUTO_FREE char *pointer = mem_printf("/%s", key);

	if (f->project)
		return at(f, pointer, err, "a project's file may not set", key, NULL);
	if (!json_object_is_type(value, json_type_object))
		return at(f, pointer, err, "a mapping is expected for", key, NULL);
	json_object_object_foreach (value, name, fields) {
		AUTO_FREE char *below = mem_printf("/%s/%s", key, name);
		if (!json_object_is_type(fields, json_type_object))
			return at(f, below, err, "a mapping is expected for", name, NULL);
		struct json_object *have = json_obj(into, name);
		if (!have) {
			have = json_object_new_object();
			json_set(into, name, have);
		}
		json_object_object_foreach (fields, field, text) {
			json_set(have, field, json_object_get(text));
		}
	}
	return 0;
}

static int check_providers(struct layer_file *f, struct json_object *value, struct err *err)
{
	json_object_object_foreach (value, name, fields) {
		if (!json_object_is_type(fields, json_type_object))
			continue;
		json_object_object_foreach (fields, field, text) {
			AUTO_FREE char *pointer = mem_printf("/providers/%s/%s", name, field);
			size_t i = 0;
			(void)text;
			while (i < ARRAY_SIZE(provider_keys) &&
			       strcmp(provider_keys[i], field) != 0)
				i++;
			if (i == ARRAY_SIZE(provider_keys))
				return at(f, pointer, err, "unknown key", field,
					  text_nearest(field, provider_keys,
						       ARRAY_SIZE(provider_keys)));
		}
	}
	return 0;
}

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
			rc = read_table(f, key, value, f->s->providers, err) < 0
				     ? -1
				     : check_providers(f, value, err);
		else if (strcmp(key, "models") == 0)
			rc = read_table(f, key, value, f->s->models, err);
		else
			rc = read_option(f, key, value, err);
		if (rc < 0)
			return -1;
	}
	return 0;
}

int layer_read_file(struct settings *s, const char *path, enum layer layer, struct err *err)
{
	struct layer_file f = {.s = s, .path = path, .layer = layer};

	if (!file_exists(path))
		return 0;
	f.project = layer == LAYER_PROJECT || layer == LAYER_PROJECT_LOCAL;
	if (yaml_parse_file(path, &f.doc, err) < 0) {
		if (err && err->code == ERR_INVALID)
			err->code = ERR_USAGE;
		return -1;
	}
	int rc = read_root(&f, err);
	yaml_free(f.doc);
	return rc;
}

int layer_read_environment(struct settings *s, struct err *err)
{
	size_t n;
	const struct option *table = option_table(&n);

	for (size_t i = 0; i < n; i++) {
		AUTO_FREE char *name = mem_printf("BATON_%s", table[i].name);
		for (char *p = name; *p; p++)
			*p = *p == '-' ? '_' : *p >= 'a' && *p <= 'z' ? (char)(*p - 'a' + 'A') : *p;
		const char *text = env_get(name);
		if (!text || table[i].layers == CFG_CLI)
			continue;
		AUTO_FREE char *where = mem_printf("environment %s", name);
		if (store_text(s, &table[i], text, LAYER_ENVIRONMENT, where, "/", err) < 0)
			return -1;
	}
	return 0;
}
