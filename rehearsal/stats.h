/*
 * stats.h - what the server counts, and its log.
 *
 * A rehearsal is also a check of the client: every broken rule is counted by its short name with
 * the first texts, so that a test can ask for "no violations" in one line.
 */
#ifndef BATON_REHEARSAL_STATS_H
#define BATON_REHEARSAL_STATS_H

#include "base/err.h"
#include "base/json.h"
#include "rehearsal/cache.h"

struct stats;

/* One request as it is counted and logged. Strings are borrowed. */
struct stats_record {
	int64_t number;
	const char *path, *protocol, *model, *role, *rule, *fault, *notes;
	size_t role_len, path_len;
	int status;
	bool stream, counted; /* counted: it was answered with tokens */
	uint64_t conversation;
	size_t turn, messages, tools, markers, bytes;
	int64_t input, output;
	struct cache_usage cache;
	const struct refusal *refusal; /* or NULL */
	const char *body;	       /* for --log-bodies, or NULL */
	size_t body_len;
	int64_t duration_us;
};

struct stats *stats_new(void);
void stats_free(struct stats *stats); /* writes the closing record; NULL allowed */
/* Opens the log; without it nothing is written. */
int stats_open_log(struct stats *stats, const char *path, struct err *err);
void stats_add(struct stats *stats, const struct stats_record *record);
/* A fault of the transport that no request could be read for. */
void stats_add_bad_http(struct stats *stats, const char *why);
struct json_object *stats_json(const struct stats *stats); /* caller frees */

#endif
