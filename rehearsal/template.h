/*
 * template.h - scopes of captures, and the expansion of answers (docs/scenarios.md, "Templates").
 *
 * Texts may hold {{name|filter|...}}; a mapping with the member for_each_match becomes a list with
 * one item per match over tool results or other texts of the request. That is all the computing a
 * scenario can do: what it answers comes from what the agent really saw.
 */
#ifndef BATON_REHEARSAL_TEMPLATE_H
#define BATON_REHEARSAL_TEMPLATE_H

#include "base/buf.h"
#include "base/json.h"
#include "rehearsal/pattern.h"
#include "rehearsal/request.h"
#include "rehearsal/scenario.h"

/* What names mean while one rule is matched and answered. */
struct scope {
	struct scenario *scenario;
	struct request *request;
	struct captures task, last, result, any, seen, system, item;
	const struct part *result_part,
		*item_part; /* results whose calls {{call.x}} reads; or NULL */
	struct buf notes; /* what looked wrong, for the log: names without a value, bad patterns */
};

void scope_release(struct scope *scope);

/* A tree with all templates replaced; owned by the caller. NULL for null and for a list's absent
 * item. */
struct json_object *template_expand(struct scope *scope, struct json_object *node);
/* The first filter in a text's templates that does not exist; NULL: all do. Caller frees. */
char *template_unknown_filter(const char *text, size_t n);
/* The pattern behind a reference: fixed, or made from its template now. NULL if there is none. */
const struct pattern *template_pattern(struct scope *scope, const struct pattern_ref *ref);

#endif
