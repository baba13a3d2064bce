/*
 * model_table.c - the table of data/models.json and the fields of a model.
 *
 * One table of fields (`fields` below) serves reading and writing, so that a new field stands in
 * the struct and in one row. A model is put together from layers, each of which sets what it names:
 *
 *   built-in defaults < provider's row < model's row < overrides of the configuration
 *
 * The rows are part of the program, each parsed when it is first asked for: a run needs two of
 * sixty, and a process that only relays frames none. What was parsed lives as long as the process.
 */
#include "base/model_table.h"

#include <stddef.h>
#include <stdio.h>

#include "base/memory.h"
#include "base/model_rows.h"
#include "base/text.h"

enum field_kind { FIELD_TEXT, FIELD_COUNT, FIELD_BOOL, FIELD_WORD, FIELD_PRICE };

static const char *const api_words[] = {"anthropic", "openai", NULL};
static const char *const reasoning_words[] = {"none", "effort", "budget", "always", NULL};
static const char *const cache_words[] = {"none", "automatic", "explicit", NULL};

/* FIELD_WORD: the enum's value is the index of the word; all three enums have the size of an int.
 */
static const struct field {
	const char *name;
	enum field_kind kind;
	size_t offset;
	const char *const *words;
} fields[] = {
	{"api", FIELD_WORD, offsetof(struct model, api), api_words},
	{"window", FIELD_COUNT, offsetof(struct model, window), NULL},
	{"input_limit", FIELD_COUNT, offsetof(struct model, input_limit), NULL},
	{"max_output", FIELD_COUNT, offsetof(struct model, max_output), NULL},
	{"price", FIELD_PRICE, offsetof(struct model, price), NULL},
	{"tier_above", FIELD_COUNT, offsetof(struct model, tier_above), NULL},
	{"tier_price", FIELD_PRICE, offsetof(struct model, tier_price), NULL},
	{"temperature_ok", FIELD_BOOL, offsetof(struct model, temperature_ok), NULL},
	{"reasoning", FIELD_WORD, offsetof(struct model, reasoning), reasoning_words},
	{"reasoning_field", FIELD_TEXT, offsetof(struct model, reasoning_field), NULL},
	{"max_tokens_field", FIELD_TEXT, offsetof(struct model, max_tokens_field), NULL},
	{"system_role", FIELD_TEXT, offsetof(struct model, system_role), NULL},
	{"cache", FIELD_WORD, offsetof(struct model, cache), cache_words},
	{"min_cache_prefix", FIELD_COUNT, offsetof(struct model, min_cache_prefix), NULL},
	{"preserved_thinking", FIELD_BOOL, offsetof(struct model, preserved_thinking), NULL},
	{"no_anxiety", FIELD_BOOL, offsetof(struct model, no_anxiety), NULL},
	{"keeps_thinking", FIELD_BOOL, offsetof(struct model, keeps_thinking), NULL},
	{"context_edits", FIELD_BOOL, offsetof(struct model, context_edits), NULL},
	{"usage_in_stream", FIELD_BOOL, offsetof(struct model, usage_in_stream), NULL},
	{"parallel_tools", FIELD_BOOL, offsetof(struct model, parallel_tools), NULL},
	{"images", FIELD_BOOL, offsetof(struct model, images), NULL},
	{"dialect", FIELD_TEXT, offsetof(struct model, dialect), NULL},
};

/* Keys that are no fields here: who the model is (never overridden), the gateway's and the
 * settings' part of a provider's row, and the hint that leads from one name to another. */
static const char *const other_keys[] = {"provider", "name",	      "base_url", "base_url_env",
					 "key_env",  "default_model", "same_as"};

_Static_assert(sizeof(enum model_api) == sizeof(int) && sizeof(enum model_cache) == sizeof(int) &&
		       sizeof(enum model_reasoning) == sizeof(int),
	       "FIELD_WORD stores an int");

struct section {
	const struct model_table_row *rows;
	const size_t *count;
	struct json_object **parsed; /* as many as rows; NULL: nobody asked yet */
};

static struct section providers = {model_table_providers, &model_table_providers_count, NULL};
static struct section models = {model_table_models, &model_table_models_count, NULL};

static struct json_object *section_row(struct section *section, const char *key)
{
	size_t i = 0;
	while (i < *section->count && strcmp(section->rows[i].key, key) != 0)
		i++;
	if (i == *section->count)
		return NULL;
	if (!section->parsed)
		section->parsed = mem_alloc(*section->count * sizeof(*section->parsed));
	if (!section->parsed[i]) {
		const char *text = section->rows[i].json;
		struct err err = ERR_INIT;
		if (json_parse(text, strlen(text), &section->parsed[i], &err) < 0) {
			fprintf(stderr, "data/models.json: %s\n", err.message);
			abort(); /* part of the program: our own bug */
		}
	}
	return section->parsed[i];
}

/* --- fields --- */

static int set_word(void *at, const struct field *f, struct json_object *value, struct err *err)
{
	const char *word = json_object_get_string(value);
	AUTO_BUF struct buf list = BUF_INIT;
	for (int i = 0; f->words[i]; i++) {
		if (json_object_is_type(value, json_type_string) &&
		    strcmp(f->words[i], word) == 0) {
			*(int *)at = i;
			return 0;
		}
		buf_addf(&list, "%s'%s'", i ? ", " : "", f->words[i]);
	}
	return err_set(err, ERR_INVALID, "field '%s' must be one of %s", f->name, buf_str(&list));
}

/* Without a price of their own, cached tokens cost what fresh ones cost. */
static int set_price(struct model_price *price, const struct field *f, struct json_object *value,
		     struct err *err)
{
	struct model_price p = {.known = true};
	p.input = json_double(value, "input", -1);
	p.output = json_double(value, "output", -1);
	p.cache_read = json_double(value, "cache_read", p.input);
	p.cache_write = json_double(value, "cache_write", p.input);
	p.cache_write_1h = json_double(value, "cache_write_1h", p.cache_write);
	if (!(p.input >= 0 && p.output >= 0 && p.cache_read >= 0 && p.cache_write >= 0 &&
	      p.cache_write_1h >= 0))
		return err_set(err, ERR_INVALID,
			       "field '%s' must have 'input' and 'output' in USD per million "
			       "tokens, none of its prices below 0",
			       f->name);
	*price = p;
	return 0;
}

static int set_count(int64_t *at, const struct field *f, struct json_object *row, struct err *err)
{
	int64_t value;
	if (json_need_i64(row, f->name, &value, err) < 0)
		return -1;
	if (value < 0)
		return err_set(err, ERR_INVALID, "field '%s' must not be negative", f->name);
	*at = value;
	return 0;
}

static int set_text(char **at, const struct field *f, struct json_object *value, struct err *err)
{
	if (!json_object_is_type(value, json_type_string))
		return err_set(err, ERR_INVALID, "field '%s' must be a string", f->name);
	free(*at);
	*at = mem_strdup(json_object_get_string(value));
	return 0;
}

/* A null takes a text or a price away again (an override of reasoning_field, of a wrong price). */
static int clear_field(void *at, const struct field *f, struct err *err)
{
	if (f->kind == FIELD_TEXT) {
		free(*(char **)at);
		*(char **)at = NULL;
		return 0;
	}
	if (f->kind == FIELD_PRICE) {
		*(struct model_price *)at = (struct model_price){.known = false};
		return 0;
	}
	return err_set(err, ERR_INVALID, "field '%s' must not be null", f->name);
}

static int set_field(struct model *model, const struct field *f, struct json_object *row,
		     struct err *err)
{
	void *at = (char *)model + f->offset;
	struct json_object *value = json_get(row, f->name);
	if (!value)
		return clear_field(at, f, err);
	switch (f->kind) {
	case FIELD_TEXT: return set_text(at, f, value, err);
	case FIELD_COUNT: return set_count(at, f, row, err);
	case FIELD_WORD: return set_word(at, f, value, err);
	case FIELD_PRICE: return set_price(at, f, value, err);
	case FIELD_BOOL:
		if (!json_object_is_type(value, json_type_boolean))
			return err_set(err, ERR_INVALID, "field '%s' must be true or false",
				       f->name);
		*(bool *)at = json_object_get_boolean(value);
		return 0;
	}
	return 0;
}

static int check_key(const char *key, struct err *err)
{
	const char *names[ARRAY_SIZE(fields)];
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		names[i] = fields[i].name;
		if (strcmp(key, names[i]) == 0)
			return 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(other_keys); i++)
		if (strcmp(key, other_keys[i]) == 0)
			return 0;
	const char *near = text_nearest(key, names, ARRAY_SIZE(names));
	if (near)
		return err_set(err, ERR_INVALID, "unknown field '%s'; did you mean '%s'?", key,
			       near);
	return err_set(err, ERR_INVALID, "unknown field '%s'", key);
}

/* Sets what the row names. A new price without a tier of its own ends the old tier. */
static int apply_row(struct model *model, struct json_object *row, struct err *err)
{
	if (!row)
		return 0;
	json_object_object_foreach (row, key, value) {
		(void)value;
		if (check_key(key, err) < 0)
			return -1;
	}
	if (json_has(row, "price") && !json_has(row, "tier_price"))
		model->tier_above = 0;
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		if (json_has(row, fields[i].name) && set_field(model, &fields[i], row, err) < 0)
			return -1;
	return 0;
}

/* --- finding --- */

static struct model *model_new(const char *provider, const char *name)
{
	struct model *model = mem_alloc(sizeof(*model));
	model->provider = mem_strdup(provider);
	model->name = mem_strdup(name);
	model->temperature_ok = true;
	model->usage_in_stream = true;
	model->parallel_tools = true;
	return model;
}

/* What no row has named follows from the API. */
static void fill_rest(struct model *model)
{
	bool anthropic = model->api == MODEL_API_ANTHROPIC;
	if (!model->max_tokens_field)
		model->max_tokens_field = mem_strdup("max_tokens");
	if (!model->system_role)
		model->system_role = mem_strdup("system");
	if (!model->dialect)
		model->dialect = mem_strdup(anthropic ? "anthropic" : "openai");
	if (!model->tier_price.known)
		model->tier_above = 0;
}

/* Length of the name without a release date: "claude-haiku-4-5-20251001". */
static size_t undated_len(const char *name)
{
	size_t n = strlen(name);
	if (n < 10 || name[n - 9] != '-' || strspn(name + n - 8, "0123456789") != 8)
		return n;
	return n - 9;
}

/* The built-in row of a model, or NULL; other names of the same model lead to its row. */
static struct json_object *model_row(const char *provider, const char *name)
{
	AUTO_FREE char *full = mem_printf("%s/%s", provider, name);
	struct json_object *row = section_row(&models, full);
	if (!row) {
		full[strlen(provider) + 1 + undated_len(name)] = '\0';
		row = section_row(&models, full);
	}
	const char *same_as = json_str(row, "same_as", NULL);
	return same_as ? section_row(&models, same_as) : row;
}

struct json_object *model_provider(const char *name)
{
	return section_row(&providers, name);
}

static int unknown_provider(const char *provider, struct err *err)
{
	const char *names[64];
	size_t n = 0;
	while (n < *providers.count && n < ARRAY_SIZE(names)) {
		names[n] = providers.rows[n].key;
		n++;
	}
	const char *near = text_nearest(provider, names, n);
	if (near)
		return err_set(err, ERR_NOT_FOUND, "unknown provider '%s'; did you mean '%s'?",
			       provider, near);
	return err_set(err, ERR_NOT_FOUND,
		       "unknown provider '%s'; define it in the configuration with its 'api'",
		       provider);
}

int model_find(const char *provider, const char *name, struct json_object *overrides,
	       struct model **ret, struct err *err)
{
	AUTO_FREE char *full = mem_printf("%s/%s", provider, name);
	struct json_object *override = json_obj(overrides, full);
	struct json_object *defaults = model_provider(provider);
	if (!defaults && !json_has(override, "api"))
		return unknown_provider(provider, err);
	struct model *model = model_new(provider, name);
	if (apply_row(model, defaults, err) < 0 ||
	    apply_row(model, model_row(provider, name), err) < 0 ||
	    apply_row(model, override, err) < 0) {
		model_free(model);
		return err_prefix(err, "model '%s'", full);
	}
	fill_rest(model);
	*ret = model;
	return 0;
}

void model_free(struct model *model)
{
	if (!model)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		if (fields[i].kind == FIELD_TEXT)
			free(*(char **)((char *)model + fields[i].offset));
	free(model->provider);
	free(model->name);
	free(model);
}

static void each_key(const struct section *section, void (*fn)(const char *key, void *arg),
		     void *arg)
{
	for (size_t i = 0; i < *section->count; i++)
		fn(section->rows[i].key, arg);
}

void model_each(void (*fn)(const char *full_name, void *arg), void *arg)
{
	each_key(&models, fn, arg);
}

void model_provider_each(void (*fn)(const char *name, void *arg), void *arg)
{
	each_key(&providers, fn, arg);
}

struct json_object *model_golden_results(void)
{
	static struct json_object *doc;
	struct err err = ERR_INIT;

	if (!doc && json_parse(model_golden_text, strlen(model_golden_text), &doc, &err) < 0) {
		fprintf(stderr, "data/golden_results.json: %s\n", err.message);
		abort(); /* part of the program: our own bug */
	}
	return json_arr(doc, "pairs");
}

/* --- the round trip --- */

static struct json_object *price_to_json(const struct model_price *price)
{
	struct json_object *obj = json_object_new_object();
	json_set_double(obj, "input", price->input);
	json_set_double(obj, "output", price->output);
	json_set_double(obj, "cache_read", price->cache_read);
	json_set_double(obj, "cache_write", price->cache_write);
	json_set_double(obj, "cache_write_1h", price->cache_write_1h);
	return obj;
}

struct json_object *model_to_json(const struct model *model)
{
	struct json_object *obj = json_object_new_object();
	json_set_str(obj, "provider", model->provider);
	json_set_str(obj, "name", model->name);
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		const struct field *f = &fields[i];
		const void *at = (const char *)model + f->offset;
		const struct model_price *price = at;
		switch (f->kind) {
		case FIELD_TEXT: json_set_str(obj, f->name, *(char *const *)at); break;
		case FIELD_COUNT: json_set_i64(obj, f->name, *(const int64_t *)at); break;
		case FIELD_BOOL: json_set_bool(obj, f->name, *(const bool *)at); break;
		case FIELD_WORD: json_set_str(obj, f->name, f->words[*(const int *)at]); break;
		case FIELD_PRICE:
			if (price->known)
				json_set(obj, f->name, price_to_json(price));
			break;
		}
	}
	return obj;
}

int model_from_json(struct json_object *json, struct model **ret, struct err *err)
{
	const char *provider, *name, *api;
	if (json_need_str(json, "provider", &provider, err) < 0 ||
	    json_need_str(json, "name", &name, err) < 0 ||
	    json_need_str(json, "api", &api, err) < 0)
		return -1;
	struct model *model = model_new(provider, name);
	if (apply_row(model, json, err) < 0) {
		model_free(model);
		return -1;
	}
	fill_rest(model);
	*ret = model;
	return 0;
}

double model_cost(const struct model *model, int64_t fresh, int64_t cache_read, int64_t cache_write,
		  int64_t cache_write_1h, int64_t output)
{
	double input = (double)fresh + (double)cache_read + (double)cache_write;
	const struct model_price *price = &model->price;
	if (model->tier_above > 0 && input > (double)model->tier_above)
		price = &model->tier_price;
	if (!price->known)
		return -1.0;
	double short_lived = (double)(cache_write - MIN(cache_write, cache_write_1h));
	return ((double)fresh * price->input + (double)cache_read * price->cache_read +
		short_lived * price->cache_write +
		((double)cache_write - short_lived) * price->cache_write_1h +
		(double)output * price->output) /
	       1e6;
}
