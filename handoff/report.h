/*
 * report.h - what comes back from an agent (A4, X5, X7): its schema, its check, its bounds.
 *
 * A report is a JSON object made by the model through the `report` tool:
 *   status        "done", "partial" or "blocked"
 *   summary       text, required, not blank
 *   findings      [{file?, line?, severity?, category?, claim, evidence?, suggestion?}]
 *   changed_files [path]
 *   commits       [id]
 *   tests         [{command, result: "passed" | "failed" | "not_run", note?}]
 *   questions     [text]
 * and, for a role with an output schema, `data` that is checked against it. What the parent saw is
 * put beside it, never into it.
 */
#ifndef BATON_HANDOFF_REPORT_H
#define BATON_HANDOFF_REPORT_H

#include <stddef.h>

#include "base/err.h"
#include "base/json.h"

/* The JSON schema of the tool's input as text; `data_schema` (may be NULL) becomes properties.data,
 * required. Caller frees. */
char *report_schema(struct json_object *data_schema);

/* Checks and normalises what the model gave. Error texts go back to the model: they name the field.
 * *ret is owned by the caller. */
int report_check(struct json_object *input, struct json_object *data_schema,
		 struct json_object **ret, struct err *err);

/* Bounds the report to about max_tokens (4 bytes each): long strings keep head and tail (T4), lists
 * keep their first and last entries; "truncated": true, "whole": where and "left_out" (entries lost
 * of each list) are added. `where` names the file of the whole and may be NULL. Returns a new
 * object; a report that fits is unchanged. */
struct json_object *report_bound(struct json_object *report, size_t max_tokens, const char *where);

#endif
