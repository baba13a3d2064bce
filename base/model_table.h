/*
 * model_table.h - what is known of each model: windows, prices, abilities, dialect (wire.md 5).
 *
 * The shipped table is data/models.json, built into the program; configuration and --window
 * override single fields. An unknown model is allowed: its window must be given or learned, its
 * prices are absent (then --max-cost is refused). Prices are USD per million tokens.
 */
#ifndef BATON_BASE_MODEL_TABLE_H
#define BATON_BASE_MODEL_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/json.h"

enum model_api { MODEL_API_ANTHROPIC, MODEL_API_OPENAI };
enum model_reasoning { REASONING_NONE, REASONING_EFFORT, REASONING_BUDGET, REASONING_ALWAYS };
enum model_cache { CACHE_NONE, CACHE_AUTOMATIC, CACHE_EXPLICIT };

struct model_price {
	bool known;
	double input, output, cache_read, cache_write, cache_write_1h;
};

struct model {
	char *provider; /* "anthropic" */
	char *name;	/* "claude-opus-5" */
	enum model_api api;
	int64_t window;	     /* tokens; 0: unknown */
	int64_t input_limit; /* 0: same as window */
	int64_t max_output;  /* 0: unknown, 8,192 is assumed */
	struct model_price price;
	int64_t tier_above; /* input tokens from which tier_price holds; 0: one tier */
	struct model_price tier_price;
	bool temperature_ok;
	enum model_reasoning reasoning;
	char *reasoning_field;	/* the field of an assistant message to echo; NULL: none */
	char *max_tokens_field; /* "max_tokens" or "max_completion_tokens" */
	char *system_role;	/* "system" or "developer" */
	enum model_cache cache;
	int64_t min_cache_prefix;
	bool preserved_thinking; /* history must be append-only */
	bool no_anxiety; /* R7: it does not end early because its window fills; to be measured for each version */
	bool keeps_thinking; /* W9: thinking after the loop stays in the window */
	bool context_edits;  /* the provider can clear old tool results itself (wire.md 1.9) */
	bool usage_in_stream;
	bool parallel_tools;
	bool images;
	char *dialect; /* row of the deviations table; "anthropic" or "openai" if plain */
};

/* Finds provider/name in the built-in table overlaid by `overrides` (an object keyed by
 * "provider/name" with the fields of data/models.json; may be NULL). A model that is not in the
 * table gets the provider's defaults with window 0. Caller frees. Unknown provider: api must be
 * given by the caller's configuration through `api` (else ERR_NOT_FOUND with the nearest name). */
int model_find(const char *provider, const char *name, struct json_object *overrides,
	       struct model **ret, struct err *err);
void model_free(struct model *model); /* NULL allowed */

/* Round trip for the `start` frame. */
struct json_object *model_to_json(const struct model *model);
int model_from_json(struct json_object *json, struct model **ret, struct err *err);

/* Cost in USD of one call; -1.0 if the price is unknown. The tier is chosen by the sum of the three
 * input counts. cache_write_1h is the part of cache_write with the longer life and its own price. */
double model_cost(const struct model *model, int64_t fresh, int64_t cache_read, int64_t cache_write,
		  int64_t cache_write_1h, int64_t output);

/* All names of the built-in table, for errors and completion: calls fn("provider/name"). */
void model_each(void (*fn)(const char *full_name, void *arg), void *arg);

/* A row of the built-in `providers` table, borrowed: api, base_url, base_url_env, key_env (absent:
 * no key is needed), default_model, and the model fields that hold for all of its models. NULL if
 * unknown. */
struct json_object *model_provider(const char *name);
/* `pairs` of data/golden_results.json: which model may summarise for which (H16). Borrowed. */
struct json_object *model_golden_results(void);
void model_provider_each(void (*fn)(const char *name, void *arg), void *arg);

#endif
