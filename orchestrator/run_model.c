/*
 * run_model.c - which model a run talks to, and its key. Runs before any process is started.
 *
 * The key goes from the environment (or the key file) into a sealed memory file that only gateways
 * inherit; the parent's copy and its environment strings are wiped (I1).
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/env.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "orchestrator/run.h"
#include "orchestrator/run_open.h"

static int seal_keys(struct run *run, const char *name, const char *key, struct err *err)
{
	struct buf doc = BUF_INIT;
	int rc = 0;

	buf_addc(&doc, '{');
	if (key) {
		json_write_cstr(&doc, name);
		buf_addc(&doc, ':');
		json_write_cstr(&doc, key);
	}
	buf_addc(&doc, '}');
	run->key_fd = memfd_create("baton-keys", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (run->key_fd < 0 || file_write_all(run->key_fd, doc.data, doc.len, NULL) < 0 ||
	    lseek(run->key_fd, 0, SEEK_SET) < 0 ||
	    fcntl(run->key_fd, F_ADD_SEALS,
		  F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		rc = err_sys(err, "cannot make the sealed file for keys");
	explicit_bzero(doc.data, doc.len);
	buf_release(&doc);
	return rc;
}

static int open_key(struct run *run, const char *key_env, struct err *err)
{
	static const char *const secret[] = {"*_API_KEY", "*_AUTH_TOKEN", "*_SECRET", NULL};
	char *key = NULL;

	if (key_env && !run->rehearsal) {
		key = settings_key(run->settings, run->provider, key_env, err);
		if (!key)
			return -1;
	}
	int rc = seal_keys(run, run->provider, key, err);
	if (key) {
		explicit_bzero(key, strlen(key));
		free(key);
	}
	const char *own[] = {key_env, NULL};
	env_wipe(own);
	env_wipe(secret);
	return rc;
}

/* "rehearsal:FILE" and "rehearsal+openai:FILE": the server is started for this run, its address
 * comes later. */
static void open_rehearsal(struct run *run)
{
	bool openai = strcmp(run->provider, "rehearsal+openai") == 0;

	run->rehearsal = take_ptr(run->model_name);
	run->model_name = mem_strdup("rehearsal");
	run->provider_json = json_object_new_object();
	json_set_str(run->provider_json, "name", run->provider);
	json_set_str(run->provider_json, "api", openai ? "openai" : "anthropic");
	json_set_str(run->provider_json, "auth", "none");
}

static void set_default(struct json_object *row, const char *key, const char *value)
{
	if (!json_has(row, key))
		json_set_str(row, key, value);
}

/* The configuration's overrides; a provider that the table does not know gets its api's plain
 * dialect, a rehearsal the prices that it is tried with. Caller puts it. */
static struct json_object *model_overrides(const struct run *run, const char *name)
{
	AUTO_FREE char *full = mem_printf("%s/%s", run->provider, name);
	const char *api = json_str(run->provider_json, "api", "openai");
	AUTO_FREE char *dialect = mem_printf("%s-compatible", api);
	struct json_object *all = NULL;

	if (model_provider(run->provider))
		return json_object_get(settings_models(run->settings));
	json_object_deep_copy(settings_models(run->settings), &all, NULL);
	struct json_object *row = json_obj(all, full);
	if (!row) {
		row = json_object_new_object();
		json_set(all, full, row);
	}
	set_default(row, "api", api);
	set_default(row, "dialect", run->rehearsal ? api : dialect);
	/* It is played without money, and budgets are tried with it: in both protocols alike. */
	if (run->rehearsal && !json_has(row, "price"))
		json_set(row, "price",
			 json_object_get(json_get(model_provider("rehearsal"), "price")));
	set_default(row, "cache", strcmp(api, "anthropic") == 0 ? "explicit" : "automatic");
	return all;
}

static enum model_api api_of(const struct run *run)
{
	const char *api = json_str(run->provider_json, "api", "openai");

	return strcmp(api, "anthropic") == 0 ? MODEL_API_ANTHROPIC : MODEL_API_OPENAI;
}

/* One rule for the run's model and those of roles: the user's word stands above the table. */
static void apply_window(const struct run *run, struct model *model)
{
	int64_t window = settings_i64(run->settings, OPT_WINDOW);

	if (window)
		model->window = window;
}

/* The limit may stand in a file that the user has forgotten: it is named. */
static int no_price(const struct run *run, const char *what, const char *full_name, struct err *err)
{
	const char *origin = settings_origin(run->settings, OPT_MAX_COST);
	bool typed = strcmp(origin, "command line") == 0;

	return err_set(err, ERR_USAGE,
		       "--max-cost%s%s%s needs prices, and %s '%s' has none that are known: set "
		       "them under 'models:' in the configuration, or use --max-tokens",
		       typed ? "" : " (", typed ? "" : origin, typed ? "" : ")", what, full_name);
}

/* The part behind the slash; NULL: another provider's. */
static const char *own_name(const struct run *run, const char *full_name)
{
	size_t n = strlen(run->provider);

	return strncmp(full_name, run->provider, n) == 0 && full_name[n] == '/' && full_name[n + 1]
		       ? full_name + n + 1
		       : NULL;
}

/* `what` is for the error. The window is what the table says. */
static int find_other(const struct run *run, const char *what, const char *full_name,
		      struct model **ret, struct err *err)
{
	const char *name = own_name(run, full_name);
	AUTO_JSON struct json_object *overrides = NULL;

	if (!name)
		return err_set(err, ERR_USAGE,
			       "%s '%s' is not of this run's provider '%s': a run talks to one "
			       "provider",
			       what, full_name, run->provider);
	overrides = model_overrides(run, name);
	if (model_find(run->provider, name, overrides, ret, err) < 0)
		return -1;
	(*ret)->api = api_of(run);
	return 0;
}

/* Frees it where it cannot be used: then *ret is NULL. */
static int check_other(const struct run *run, const char *what, const char *full_name,
		       struct model **ret, struct err *err)
{
	if ((*ret)->window &&
	    ((*ret)->price.known || settings_double(run->settings, OPT_MAX_COST) < 0))
		return 0;
	if ((*ret)->window)
		no_price(run, what, full_name, err);
	else
		err_set(err, ERR_USAGE, "%s '%s' has no known window: set it under 'models:'", what,
			full_name);
	model_free(*ret);
	*ret = NULL;
	return -1;
}

int run_role_model(const struct run *run, const char *full_name, struct model **ret,
		   struct err *err)
{
	static const char what[] = "the role's model";

	*ret = NULL;
	if (run->rehearsal)
		return 0;
	if (find_other(run, what, full_name, ret, err) < 0)
		return -1;
	apply_window(run, *ret);
	return check_other(run, what, full_name, ret, err);
}

int run_compact_model(const struct run *run, const char *full_name, struct model **ret,
		      struct err *err)
{
	static const char what[] = "the model of compactions";

	*ret = NULL;
	if (run->rehearsal && !own_name(run, full_name))
		return 0;
	if (find_other(run, what, full_name, ret, err) < 0)
		return -1;
	if (!(*ret)->window)
		apply_window(run, *ret);
	if (!(*ret)->window && run->rehearsal)
		(*ret)->window = run->model->window;
	return check_other(run, what, full_name, ret, err);
}

struct model_names {
	char *list[512];
	size_t n;
};

static void add_model(const char *full_name, void *arg)
{
	struct model_names *names = arg;

	if (names->n < ARRAY_SIZE(names->list))
		names->list[names->n++] = mem_strdup(full_name);
}

/* A misspelt name looks like a model that nobody has heard of: following the advice to give its
 * window would send the mistake to the provider. */
static int unknown_window(const struct run *run, struct err *err)
{
	AUTO_FREE char *full = mem_printf("%s/%s", run->provider, run->model_name);
	struct model_names names = {.n = 0};

	model_each(add_model, &names);
	json_object_object_foreach (settings_models(run->settings), name, fields) {
		(void)fields;
		add_model(name, &names);
	}
	const char *near = text_nearest(full, (const char *const *)names.list, names.n);
	if (near)
		err_set(err, ERR_USAGE,
			"the model '%s' is not known; did you mean '%s'? If not, give its context "
			"window with --window TOKENS",
			full, near);
	else
		err_set(err, ERR_USAGE,
			"the context window of '%s' is not known: give it with --window TOKENS",
			full);
	for (size_t i = 0; i < names.n; i++)
		free(names.list[i]);
	return -1;
}

static int check_window(struct run *run, struct err *err)
{
	apply_window(run, run->model);
	if (!run->model->window && run->rehearsal)
		run->model->window = 200000;
	if (run->model->window)
		return 0;
	return unknown_window(run, err);
}

static int check_price(struct run *run, struct err *err)
{
	if (settings_double(run->settings, OPT_MAX_COST) < 0 || run->model->price.known)
		return 0;
	AUTO_FREE char *full = mem_printf("%s/%s", run->provider, run->model_name);
	return no_price(run, "the model", full, err);
}

int run_open_model(struct run *run, struct err *err)
{
	const char *key_env = NULL;

	if (settings_model(run->settings, &run->provider, &run->model_name, err) < 0)
		return -1;
	AUTO_JSON struct json_object *overrides = NULL;
	if (text_starts(run->provider, "rehearsal"))
		open_rehearsal(run);
	else if (settings_provider(run->settings, run->provider, &run->provider_json, &key_env,
				   err) < 0)
		return -1;
	overrides = model_overrides(run, run->model_name);
	if (model_find(run->provider, run->model_name, overrides, &run->model, err) < 0)
		return -1;
	run->model->api = api_of(run);
	if (check_window(run, err) < 0 || check_price(run, err) < 0)
		return -1;
	return open_key(run, key_env, err);
}
