/*
 * calibration.c - the calibration file: read, merge, replace. Runs in the parent.
 *
 * Two runs that end in the same instant may lose what one of them learned: the file is always whole
 * (it is renamed into place), and the next run learns the same again, so no lock is worth a wait.
 * A file of a later version is left alone; one that is no JSON is replaced. Rates are averages by
 * tokens, and what is old counts for WEIGHT_MAX tokens at most, so that a provider's change of its
 * tokenizer behind the same name is followed.
 */
#include "orchestrator/calibration.h"

#include <fcntl.h>
#include <math.h>
#include <string.h>

#include "base/env.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"

#define VERSION	   1
#define FILE_MAX   (1 << 20)
#define MODELS_MAX 64 /* the one that was longest not used goes first */
#define KINDS_MAX  32
#define WEIGHT_MAX 100000
#define RATE_LEAST 0.1
#define RATE_MOST  10.0

static char *calibration_path(void)
{
	AUTO_FREE char *state = env_state_dir();

	return state && *state == '/' ? file_join(state, "calibration.json") : NULL;
}

static char *model_key(const struct model *model)
{
	return mem_printf("%s/%s", model->provider, model->name);
}

static bool kind_name_is_sane(const char *name)
{
	size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_");

	return n > 0 && n <= 20 && !name[n];
}

/* Puts one rate into a model's entry, averaged with what stands there. */
static void merge_rate(struct json_object *model, const char *kind, double rate, int64_t tokens)
{
	struct json_object *old = json_obj(model, kind);
	struct json_object *entry;
	int64_t weight = json_i64(old, "tokens", 0);
	double before = json_double(old, "rate", rate);

	if (!old && json_object_object_length(model) >= KINDS_MAX)
		return;
	tokens = MIN(tokens, WEIGHT_MAX);
	weight = MIN(MAX(weight, 0), WEIGHT_MAX);
	rate = (rate * (double)tokens + before * (double)weight) / (double)(tokens + weight);
	entry = json_object_new_object();
	json_set_double(entry, "rate", round(rate * 10000) / 10000);
	json_set_i64(entry, "tokens", MIN(tokens + weight, WEIGHT_MAX));
	json_set(model, kind, entry);
}

/* Merges one model's rates into `models`, where it becomes the newest. */
static void merge_model(struct json_object *models, const char *key, struct json_object *rates)
{
	struct json_object *model = json_object_get(json_obj(models, key));

	if (!model)
		model = json_object_new_object();
	json_object_object_del(models, key);
	json_object_object_foreach (rates, kind, entry) {
		double rate = json_double(entry, "rate", -1);
		int64_t tokens = json_i64(entry, "tokens", 0);

		if (kind_name_is_sane(kind) && rate >= RATE_LEAST && rate <= RATE_MOST &&
		    tokens > 0)
			merge_rate(model, kind, rate, tokens);
	}
	json_set(models, key, model);
	while (json_object_object_length(models) > MODELS_MAX) {
		struct json_object_iterator first = json_object_iter_begin(models);

		json_object_object_del(models, json_object_iter_peek_name(&first));
	}
}

/* The models of the file: an empty object if there is none. -1 with err for a file that is not to
 * be used; ERR_INVALID or ERR_TOO_LARGE for one that may be replaced. */
static int load_models(const char *path, struct json_object **ret, struct err *err)
{
	AUTO_JSON struct json_object *doc = NULL;
	struct json_object *models;

	if (!file_exists(path)) {
		*ret = json_object_new_object();
		return 0;
	}
	if (json_parse_file(path, FILE_MAX, &doc, err) < 0)
		return -1;
	if (json_i64(doc, "version", 0) > VERSION)
		return err_set(err, ERR_UNSUPPORTED, "'%s' is of a later version of baton", path);
	models = json_obj(doc, "models");
	if (json_i64(doc, "version", 0) != VERSION || !models)
		return err_set(err, ERR_INVALID, "'%s' is no calibration file", path);
	*ret = json_object_get(models);
	return 0;
}

struct json_object *calibration_recall(struct calibration *c, const struct model *model)
{
	AUTO_FREE char *key = model_key(model);
	AUTO_FREE char *path = c->loaded ? NULL : calibration_path();
	struct err err = ERR_INIT;

	if (path && load_models(path, &c->known, &err) < 0)
		log_warn("what earlier runs learned of tokenizers is not used: %s", err.message);
	c->loaded = true;
	return json_object_get(json_obj(c->known, key));
}

void calibration_learn(struct calibration *c, const struct model *model, struct json_object *rates)
{
	AUTO_FREE char *key = model_key(model);

	if (!rates || json_object_object_length(rates) == 0)
		return;
	if (!c->learned)
		c->learned = json_object_new_object();
	merge_model(c->learned, key, rates);
}

static int save(struct json_object *learned, const char *path, struct err *err)
{
	AUTO_JSON struct json_object *doc = json_object_new_object();
	AUTO_FREE char *dir = file_dir(path);
	AUTO_BUF struct buf out = BUF_INIT;
	struct json_object *models = NULL;
	struct err damaged = ERR_INIT;

	if (load_models(path, &models, &damaged) < 0) {
		if (damaged.code != ERR_INVALID && damaged.code != ERR_TOO_LARGE) {
			*err = damaged;
			return -1;
		}
		models = json_object_new_object();
	}
	json_object_object_foreach (learned, key, rates)
		merge_model(models, key, rates);
	json_set_i64(doc, "version", VERSION);
	json_set(doc, "models", models);
	json_write_pretty(&out, doc);
	if (file_mkdirs(dir, 0700, err) < 0)
		return -1;
	return file_write_atomic(AT_FDCWD, path, out.data, out.len, 0600, err);
}

void calibration_save(struct calibration *c)
{
	AUTO_FREE char *path = c->learned ? calibration_path() : NULL;
	struct err err = ERR_INIT;

	if (path && save(c->learned, path, &err) < 0)
		log_warn("what this run learned of tokenizers is not kept: %s", err.message);
}

void calibration_release(struct calibration *c)
{
	json_object_put(c->known);
	json_object_put(c->learned);
	*c = (struct calibration){.loaded = false};
}
