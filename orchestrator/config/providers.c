/*
 * providers.c - which provider, model and key a run uses. Runs in the parent.
 *
 * A provider's fields come from the built-in table, then from trusted configuration, then from the
 * variable that the official SDK reads for its base URL, so that what works with the SDK works
 * here. Keys come from the environment or from a file that only the user can read, and go nowhere
 * but into the gateway's sealed file (I1); no message here ever holds one.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/env.h"
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/model_table.h"
#include "base/text.h"
#include "base/yaml.h"
#include "orchestrator/config/store.h"

/* Names of providers; more than these exist nowhere, and the list is for messages and defaults. */
struct names {
	const char *list[128];
	size_t n;
};

static bool is_name(const struct names *names, const char *name)
{
	for (size_t i = 0; i < names->n; i++) {
		if (strcmp(names->list[i], name) == 0)
			return true;
	}
	return false;
}

static void add_name(const char *name, void *arg)
{
	struct names *names = arg;

	/* One that is built in may be changed by configuration. */
	if (!is_name(names, name) && names->n < ARRAY_SIZE(names->list))
		names->list[names->n++] = name;
}

static void all_providers(const struct settings *s, struct names *names)
{
	model_provider_each(add_name, names);
	json_object_object_foreach (s->providers, name, fields) {
		(void)fields;
		add_name(name, names);
	}
}

/* A field from configuration, else from the built-in table, else NULL. */
static const char *field(const struct settings *s, const char *provider, const char *name)
{
	const char *own = json_str(json_obj(s->providers, provider), name, NULL);

	return own ? own : json_str(model_provider(provider), name, NULL);
}

static int unknown_provider(const struct settings *s, const char *name, struct err *err)
{
	struct names names = {.n = 0};
	AUTO_BUF struct buf list = BUF_INIT;

	all_providers(s, &names);
	const char *near = text_nearest(name, names.list, names.n);
	if (near)
		return err_set(err, ERR_USAGE, "unknown provider '%s'; did you mean '%s'?", name,
			       near);
	for (size_t i = 0; i < names.n; i++)
		buf_addf(&list, "%s%s", i ? ", " : "", names.list[i]);
	return err_set(err, ERR_USAGE,
		       "unknown provider '%s'; define it under 'providers:' in the configuration "
		       "with api and "
		       "base_url, or use one of %s",
		       name, buf_str(&list));
}

/* A field as it stands, mappings and numbers too; configuration wins over the built-in table. */
static void copy(struct json_object *to, const struct settings *s, const char *provider,
		 const char *name)
{
	struct json_object *own = json_get(json_obj(s->providers, provider), name);
	struct json_object *value = own ? own : json_get(model_provider(provider), name);

	if (value)
		json_set(to, name, json_object_get(value));
}

int settings_provider(const struct settings *s, const char *name, struct json_object **ret,
		      const char **ret_key_env, struct err *err)
{
	static const char *const copied[] = {"headers", "ca_file", "proxy", "concurrency"};
	const char *api = field(s, name, "api");
	const char *base_url = field(s, name, "base_url");
	const char *url_env = field(s, name, "base_url_env");

	if (!api && !base_url)
		return unknown_provider(s, name, err);
	if (url_env && env_get(url_env))
		base_url = env_get(url_env);
	if (!api || (strcmp(api, "anthropic") != 0 && strcmp(api, "openai") != 0))
		return err_set(err, ERR_USAGE, "provider '%s': api must be 'anthropic' or 'openai'",
			       name);
	if (!base_url || (!text_starts(base_url, "http://") && !text_starts(base_url, "https://")))
		return err_set(err, ERR_USAGE,
			       "provider '%s': base_url must start with http:// or https://", name);
	struct json_object *doc = json_object_new_object();
	const char *auth = field(s, name, "auth");
	*ret_key_env = field(s, name, "key_env");
	if (!auth)
		auth = !*ret_key_env		       ? "none"
		       : strcmp(api, "anthropic") == 0 ? "x-api-key"
						       : "bearer";
	json_set_str(doc, "name", name);
	json_set_str(doc, "api", api);
	json_set_str(doc, "base_url", base_url);
	json_set_str(doc, "auth", auth);
	json_set_str(doc, "key", *ret_key_env ? name : NULL);
	for (size_t i = 0; i < ARRAY_SIZE(copied); i++)
		copy(doc, s, name, copied[i]);
	*ret = doc;
	return 0;
}

/* ---- keys ---- */

static int unknown_key_name(const char *path, int line, const struct names *names, const char *name,
			    struct err *err)
{
	const char *near = text_nearest(name, names->list, names->n);

	return err_set(err, ERR_USAGE, "%s:%d: '%s' is no provider%s%s%s", path, line, name,
		       near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

/* A name that no provider has is a misspelt one, whose key would never be found; a value that is a
 * number or nothing is a key that was forgotten or wants quotes. No message shows a value. */
static int check_key_entries(const struct settings *s, const char *path, struct yaml_doc *doc,
			     struct err *err)
{
	struct names names = {.n = 0};
	struct json_object *root = yaml_root(doc);

	if (root && !json_object_is_type(root, json_type_object))
		return err_set(err, ERR_USAGE, "%s: lines 'PROVIDER: KEY' are expected", path);
	if (!root)
		return 0;
	all_providers(s, &names);
	json_object_object_foreach (root, name, key) {
		AUTO_FREE char *pointer = config_pointer("", name);
		int line = yaml_line(doc, pointer);
		if (!is_name(&names, name))
			return unknown_key_name(path, line, &names, name, err);
		if (!json_object_is_type(key, json_type_string) ||
		    json_object_get_string_len(key) == 0)
			return err_set(err, ERR_USAGE,
				       "%s:%d: the key of '%s' must be text that is not empty; put "
				       "it into quotes",
				       path, line, name);
	}
	return 0;
}

/* The key file's entry; NULL without err if there is no file or no entry. A file with anything
 * wrong in it is refused as a whole, so that `doctor` and a run say the same of it. The mode is an
 * error and not a warning: a key that others could read should be changed, and the user should
 * learn of it before it is used again. Caller wipes and frees. */
static char *key_from_file(const struct settings *s, const char *provider, const char *path,
			   struct err *err)
{
	struct yaml_doc *doc;
	struct stat st;
	char *key = NULL;

	if (stat(path, &st) < 0)
		return NULL;
	if ((st.st_mode & 077) || (st.st_uid != geteuid() && st.st_uid != 0)) {
		err_set(err, ERR_USAGE, "'%s' is open to others: make it yours and chmod 600 it",
			path);
		return NULL;
	}
	if (yaml_parse_file(path, &doc, err) < 0) {
		if (err)
			err->code = ERR_USAGE;
		return NULL;
	}
	if (check_key_entries(s, path, doc, err) == 0)
		key = mem_strdup(json_str(yaml_root(doc), provider, NULL));
	yaml_free(doc);
	return key;
}

static char *key_file_path(void)
{
	AUTO_FREE char *config = env_config_dir();

	return config ? file_join(config, "keys.yaml") : NULL;
}

int settings_check_key_file(const struct settings *s, char **ret_path, struct err *err)
{
	struct err failure = ERR_INIT;
	char *path = key_file_path();

	*ret_path = path;
	if (!path || !file_exists(path))
		return 0;
	free(key_from_file(s, "", path, &failure));
	if (failure.code == ERR_NONE)
		return 0;
	return err_set(err, failure.code, "%s", failure.message);
}

void settings_each_key(const struct settings *s,
		       void (*fn)(const struct key_place *place, void *arg), void *arg)
{
	AUTO_FREE char *path = key_file_path();
	struct names names = {.n = 0};

	all_providers(s, &names);
	for (size_t i = 0; i < names.n; i++) {
		struct key_place place = {.provider = names.list[i],
					  .key_env = field(s, names.list[i], "key_env")};
		char *key = path ? key_from_file(s, place.provider, path, NULL) : NULL;
		place.in_file = key != NULL;
		place.in_env = place.key_env && env_get(place.key_env);
		if (key)
			explicit_bzero(key, strlen(key));
		free(key);
		fn(&place, arg);
	}
}

char *settings_key(const struct settings *s, const char *provider, const char *key_env,
		   struct err *err)
{
	AUTO_FREE char *path = key_file_path();
	struct err failure = ERR_INIT;

	if (env_get(key_env))
		return mem_strdup(env_get(key_env));
	char *key = path ? key_from_file(s, provider, path, &failure) : NULL;
	if (key)
		return key;
	if (failure.code != ERR_NONE)
		err_set(err, failure.code, "%s", failure.message);
	else
		err_set(err, ERR_USAGE,
			"no key for '%s': set %s, or write '%s: KEY' into %s with mode 0600",
			provider, key_env, provider, path ? path : "keys.yaml");
	return NULL;
}

/* ---- model ---- */

/* A key file that is refused is the likely reason why no key was found. */
static bool key_file_refused(const struct settings *s, struct err *err)
{
	AUTO_FREE char *path = key_file_path();
	struct err failure = ERR_INIT;

	if (path)
		free(key_from_file(s, "", path, &failure));
	if (failure.code != ERR_NONE && err)
		*err = failure;
	return failure.code != ERR_NONE;
}

/* With one key set and no model named: that provider's sensible model. With several, guessing would
 * send the user's code to a company that he did not name. */
static int default_model(const struct settings *s, char **ret_provider, char **ret_name,
			 struct err *err)
{
	struct names names = {.n = 0};
	const char *found = NULL, *nameless = NULL;

	all_providers(s, &names);
	for (size_t i = 0; i < names.n; i++) {
		const char *key_env = field(s, names.list[i], "key_env");
		AUTO_FREE char *key =
			key_env ? settings_key(s, names.list[i], key_env, NULL) : NULL;
		if (key && !field(s, names.list[i], "default_model")) {
			nameless = names.list[i];
			continue;
		}
		if (key && found)
			return err_set(err, ERR_USAGE,
				       "keys of several providers are set ('%s', '%s'): name the "
				       "model with --model PROVIDER/NAME",
				       found, names.list[i]);
		if (key)
			found = names.list[i];
	}
	if (!found && nameless)
		return err_set(
			err, ERR_USAGE,
			"there is a key for '%s', which has no model of its own: name a model "
			"of %s with --model %s/NAME",
			nameless, nameless, nameless);
	if (!found && key_file_refused(s, err))
		return -1;
	if (!found)
		return err_set(err, ERR_USAGE,
			       "no model: set ANTHROPIC_API_KEY or OPENAI_API_KEY, or name one "
			       "with --model PROVIDER/NAME (rehearsal:FILE needs no key)");
	*ret_provider = mem_strdup(found);
	*ret_name = mem_strdup(field(s, found, "default_model"));
	return 0;
}

int settings_model(const struct settings *s, char **ret_provider, char **ret_name, struct err *err)
{
	const char *model = settings_str(s, OPT_MODEL);

	if (!model)
		return default_model(s, ret_provider, ret_name, err);
	if (text_starts(model, "rehearsal:") || text_starts(model, "rehearsal+openai:")) {
		const char *path = strchr(model, ':') + 1;
		*ret_name = realpath(path, NULL);
		if (!*ret_name)
			return err_set(err, ERR_USAGE, "there is no scenario '%s'", path);
		*ret_provider = mem_strndup(model, strcspn(model, ":"));
		return 0;
	}
	const char *slash = strchr(model, '/');
	if (!slash || slash == model || !slash[1])
		return err_set(err, ERR_USAGE, "'%s' (%s) is no model: write PROVIDER/NAME", model,
			       settings_origin(s, OPT_MODEL));
	*ret_provider = mem_strndup(model, (size_t)(slash - model));
	*ret_name = mem_strdup(slash + 1);
	return 0;
}
