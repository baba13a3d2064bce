/*
 * model_rows.h - the rows of data/models.json and the text of data/golden_results.json as embed_models.py writes them into the program. Only
 * model_table.c reads them.
 */
#ifndef BATON_BASE_MODEL_ROWS_H
#define BATON_BASE_MODEL_ROWS_H

#include <stddef.h>

struct model_table_row {
	const char *key;  /* "anthropic", "anthropic/claude-opus-5" */
	const char *json; /* an object */
};

extern const struct model_table_row model_table_providers[], model_table_models[];
extern const size_t model_table_providers_count, model_table_models_count;
extern const char model_golden_text[]; /* data/golden_results.json */

#endif
