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
#include <stdio.h>
#include <string.h>

#include "base/env.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"

#define VERSION		   1
#define FILE_MAX	   (1 << 20)
#define MODELS_MAX	   64 /* the one that was longest not used goes first */
#define KINDS_MAX	   32
#define WEIGHT_MAX	   100000
#define RATE_LEAST	   0.1
#define RATE_MOST	   10.0

#define ROLES_MAX	   16
#define BUCKETS_A_DOUBLING 8
#define BUCKET_MAX	   (24 * BUCKETS_A_DOUBLING) /* 16 million tokens */
#define LENGTHS_LEAST	   200 /* fewer say nothing of the longest hundredth */
#define LENGTHS_MAX	   20000
#define PERCENTILE	   99

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

/* Makes room for a newer entry: an object keeps the order in which its members came. */
static void drop_oldest(struct json_object *map, int most)
{
	while (json_object_object_length(map) > most) {
		struct json_object_iterator first = json_object_iter_begin(map);

		json_object_object_del(map, json_object_iter_peek_name(&first));
	}
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
	drop_oldest(models, MODELS_MAX);
}

/* ---- how long answers are ---- */

/*
 * Per model and role a histogram: member "i" counts answers of up to 2^(i / 8) tokens. So it is small, two of
 * them are merged by adding, and a percentile is right within 9 %. When a role has LENGTHS_MAX answers, all
 * counts are halved: what is old weighs less and less.
 */
static int length_bucket(int64_t tokens)
{
	return (int)ceil(log2((double)MAX(tokens, 1)) * BUCKETS_A_DOUBLING);
}

static void halve(struct json_object *buckets)
{
	json_object_object_foreach (buckets, name, value)
		json_object_set_int64(value, json_object_get_int64(value) / 2), (void)name;
}

static int64_t lengths_count(struct json_object *buckets)
{
	int64_t n = 0;

	if (buckets) {
		json_object_object_foreach (buckets, name, value)
			n += MAX(json_object_get_int64(value), 0), (void)name;
	}
	return n;
}

static struct json_object *member(struct json_object *map, const char *name)
{
	struct json_object *have = json_obj(map, name);

	if (have)
		return have;
	have = json_object_new_object();
	json_set(map, name, have);
	return have;
}

static void lengths_add(struct json_object *lengths, const char *model, const char *role,
			int bucket, int64_t n)
{
	struct json_object *roles = member(lengths, model);
	struct json_object *buckets = member(roles, role);
	char name[16];

	snprintf(name, sizeof(name), "%d", bucket);
	json_set_i64(buckets, name, json_i64(buckets, name, 0) + n);
	drop_oldest(roles, ROLES_MAX);
	drop_oldest(lengths, MODELS_MAX);
}

static void merge_role(struct json_object *lengths, const char *model, const char *role,
		       struct json_object *buckets)
{
	if (!json_object_is_type(buckets, json_type_object))
		return;
	json_object_object_foreach (buckets, name, value) {
		int64_t bucket = -1, n = json_object_get_int64(value);

		if (text_parse_i64(name, &bucket) == 0 && bucket >= 0 && bucket <= BUCKET_MAX &&
		    n > 0 && n <= LENGTHS_MAX)
			lengths_add(lengths, model, role, (int)bucket, n);
	}
	struct json_object *merged = json_obj(json_obj(lengths, model), role);
	while (lengths_count(merged) > LENGTHS_MAX)
		halve(merged);
}

static void lengths_merge(struct json_object *lengths, struct json_object *more)
{
	if (!more)
		return;
	json_object_object_foreach (more, model, roles) {
		if (!json_object_is_type(roles, json_type_object))
			continue;
		json_object_object_foreach (roles, role, buckets)
			merge_role(lengths, model, role, buckets);
	}
}

/* From a file that may hold anything: a copy of what makes sense. */
static struct json_object *lengths_read(struct json_object *file)
{
	struct json_object *lengths = json_object_new_object();

	lengths_merge(lengths, file);
	return lengths;
}

/* The 99th percentile; 0 if too few are known. */
static int64_t lengths_percentile(struct json_object *buckets)
{
	int64_t total = lengths_count(buckets), seen = 0;
	char name[16];

	if (total < LENGTHS_LEAST)
		return 0;
	for (int i = 0; i <= BUCKET_MAX; i++) {
		snprintf(name, sizeof(name), "%d", i);
		seen += json_i64(buckets, name, 0);
		if (seen * 100 >= total * PERCENTILE)
			return (int64_t)exp2((double)i / BUCKETS_A_DOUBLING);
	}
	return 0;
}

/* ---- the file ---- */

/* The models of the file and its lengths, empty objects if there is none. -1 with err for a file that is
 * not to be used; ERR_INVALID or ERR_TOO_LARGE for one that may be replaced. */
static int load_file(const char *path, struct json_object **ret, struct json_object **ret_lengths,
		     struct err *err)
{
	AUTO_JSON struct json_object *doc = NULL;
	struct json_object *models;

	if (!file_exists(path)) {
		*ret = json_object_new_object();
		*ret_lengths = json_object_new_object();
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
	*ret_lengths = lengths_read(json_obj(doc, "responses"));
	return 0;
}

static void load_once(struct calibration *c)
{
	AUTO_FREE char *path = c->loaded ? NULL : calibration_path();
	struct err err = ERR_INIT;

	if (path && load_file(path, &c->known, &c->lengths, &err) < 0)
		log_warn("what earlier runs learned of models is not used: %s", err.message);
	c->loaded = true;
}

struct json_object *calibration_recall(struct calibration *c, const struct model *model)
{
	AUTO_FREE char *key = model_key(model);

	load_once(c);
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

void calibration_response(struct calibration *c, const struct model *model, const char *role,
			  int64_t tokens)
{
	AUTO_FREE char *key = model_key(model);

	if (tokens <= 0 || !role)
		return;
	if (!c->seen)
		c->seen = json_object_new_object();
	lengths_add(c->seen, key, role, length_bucket(tokens), 1);
}

int64_t calibration_buffer(struct calibration *c, const struct model *model, const char *role)
{
	AUTO_FREE char *key = model_key(model);
	int64_t length;

	load_once(c);
	length = lengths_percentile(json_obj(json_obj(c->lengths, key), role));
	return length + length / 5;
}

static int save(const struct calibration *c, const char *path, struct err *err)
{
	AUTO_JSON struct json_object *doc = json_object_new_object();
	AUTO_FREE char *dir = file_dir(path);
	AUTO_BUF struct buf out = BUF_INIT;
	struct json_object *models = NULL, *lengths = NULL;
	struct err damaged = ERR_INIT;

	if (load_file(path, &models, &lengths, &damaged) < 0) {
		if (damaged.code != ERR_INVALID && damaged.code != ERR_TOO_LARGE) {
			*err = damaged;
			return -1;
		}
		models = json_object_new_object();
		lengths = json_object_new_object();
	}
	if (c->learned) {
		json_object_object_foreach (c->learned, key, rates)
			merge_model(models, key, rates);
	}
	lengths_merge(lengths, c->seen);
	json_set_i64(doc, "version", VERSION);
	json_set(doc, "models", models);
	json_set(doc, "responses", lengths);
	json_write_pretty(&out, doc);
	if (file_mkdirs(dir, 0700, err) < 0)
		return -1;
	return file_write_atomic(AT_FDCWD, path, out.data, out.len, 0600, err);
}

void calibration_save(struct calibration *c)
{
	AUTO_FREE char *path = c->learned || c->seen ? calibration_path() : NULL;
	struct err err = ERR_INIT;

	if (path && save(c, path, &err) < 0)
		log_warn("what this run learned of models is not kept: %s", err.message);
}

void calibration_release(struct calibration *c)
{
	json_object_put(c->known);
	json_object_put(c->learned);
	json_object_put(c->lengths);
	json_object_put(c->seen);
	*c = (struct calibration){.loaded = false};
}
