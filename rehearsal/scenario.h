/*
 * scenario.h - a scenario file: what the scripted model answers (docs/scenarios.md).
 *
 * Loading checks every key and compiles every pattern, so a mistake is an error with file and line
 * at the start and not a strange answer later. Answers stay trees of the YAML document; they are
 * templates that template.h expands for each request.
 */
#ifndef BATON_REHEARSAL_SCENARIO_H
#define BATON_REHEARSAL_SCENARIO_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/json.h"
#include "rehearsal/pattern.h"
#include "rehearsal/request.h"

/* A pattern, or the text of one that holds {{...}} and is compiled for each request. */
struct pattern_ref {
	struct pattern *fixed;
	const char *source; /* borrowed from the document; NULL: no pattern given */
};

enum tristate { ANY, NO, YES };

/* All that is given must hold. */
struct condition {
	const char *role;
	const char *tool_name; /* a result of this tool is in the last message */
	struct pattern_ref system, model, task, last_message, tool_result, any_result, any_text;
	int64_t turn_min, turn_max; /* assistant messages so far */
	int64_t tokens_min;	    /* input tokens at least */
	enum tristate has_tools, is_compaction, is_notes, is_handoff, stream, tool_error, tools_off;
	int protocol;		  /* enum protocol, -1: any */
	struct condition *unless; /* must not hold */
};

enum fault_scope { SCOPE_CONVERSATION, SCOPE_ALL, SCOPE_REQUEST };

#define NEVER INT64_MAX

struct fault {
	bool given;
	int status;		     /* 0: the answer is sent, with the faults below */
	struct json_object *headers; /* object or NULL */
	struct json_object *body;    /* string or tree, NULL: the provider's envelope */
	const char *message, *error_type, *error_code;
	bool overflow;
	int64_t overflow_used, overflow_limit; /* 0: the true numbers */
	int64_t delay_ms;		       /* before the status line */
	int64_t event_ms;		       /* between events; -1: as the scenario says */
	int64_t stall_after, cut_after, reset_after, malformed_after,
		error_after; /* events, NEVER */
	uint32_t quirks;
};

struct rule {
	const char *name; /* or NULL */
	int line;
	struct condition when;
	struct json_object *answer; /* borrowed, NULL: a fault alone */
	struct fault fault;
	int64_t times; /* 0: no limit */
	enum fault_scope per;
	double probability;
	int64_t seed;
	uint32_t quirks;
};

struct scenario_model {
	const char *name;
	int64_t window, max_output, min_cache_prefix;
	uint32_t quirks;
	bool completion_tokens_only;
};

struct scenario {
	struct yaml_doc *doc;
	const char *name;
	int64_t window;	    /* 0: none is enforced */
	int64_t max_output; /* 0: no limit */
	int64_t min_cache_prefix;
	int64_t first_ms, event_ms; /* pace of answers */
	int64_t delta_bytes;	    /* text per stream event */
	bool bind_thinking, require_key, require_reasoning, strict_roles, stop_at_window;
	uint32_t quirks;
	struct rule *rules;
	size_t n_rules;
	struct scenario_model *models;
	size_t n_models;
	struct dynamic_patterns *dynamic;
};

int scenario_load(const char *path, struct scenario **ret, struct err *err);
int scenario_parse(const char *text, size_t n, const char *name, struct scenario **ret,
		   struct err *err);
void scenario_free(struct scenario *scenario); /* NULL allowed */
/* The entry for a model, or one with the scenario's own values. */
struct scenario_model scenario_model(const struct scenario *scenario, const char *name);
/* A compiled form of source, remembered; NULL if it is no valid pattern. Valid until the next call
 * of scenario_settle, which the service makes before each request. */
struct pattern *scenario_pattern(struct scenario *scenario, const char *source, size_t n);
void scenario_settle(struct scenario *scenario);

#endif
