/*
 * review.h - the pure parts of `baton review`: shards, findings, merging, outputs.
 *
 * No processes here: cmd_review.c drives agents and calls these. A diff comes as baton-git's answer
 * to `range` (docs/documents.md). Findings are data (I12): paths and lines are checked against the
 * diff before anybody trusts them.
 */
#ifndef BATON_ORCHESTRATOR_REVIEW_H
#define BATON_ORCHESTRATOR_REVIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"

enum severity { SEVERITY_INFO, SEVERITY_LOW, SEVERITY_MEDIUM, SEVERITY_HIGH, SEVERITY_CRITICAL };
const char *severity_name(enum severity s);
int severity_parse(const char *name, enum severity *ret); /* -1: unknown */

/* A shard: some files of the diff, or some hunks of one large file; fits `budget` tokens (4 bytes
 * each). Files that belong together by folder stay together. Binary files are named, not shown. */
struct shard {
	char **files; /* paths of the new side (old side for deletions) */
	size_t n_files;
	char *patch; /* text for the reviewer */
	size_t patch_len;
	struct shard_range { /* lines of the new side inside its hunks, with context */
		char *file;
		int64_t first, last;
	} * ranges;
	size_t n_ranges;
};
struct shards {
	struct shard *list;
	size_t count;
	char **skipped; /* "logo.png: binary" ... */
	size_t n_skipped;
};
/* range: the answer's body. A single hunk larger than the budget is cut into line runs that overlap
 * by 10 lines. */
int shards_make(struct json_object *range, int64_t budget_tokens, struct shards *ret,
		struct err *err);
void shards_release(struct shards *s);

struct finding {
	int id; /* 1, 2, ... after merging, in order of severity, file, line */
	char *file;
	int64_t line; /* of the new side */
	enum severity severity;
	char *category, *claim, *evidence, *suggestion;
	char *agent; /* who found it: "a3" or "a3, a5" after merging */
	enum verdict {
		VERDICT_NONE,
		VERDICT_CONFIRMED,
		VERDICT_REFUTED,
		VERDICT_UNCERTAIN
	} verdict;
	char *verdict_reason, *verifier;
};
struct findings {
	struct finding *list;
	size_t count, cap;
	char **notes; /* dropped findings and why: "a2: src/x.c:9 is outside its shard" */
	size_t n_notes, cap_notes;
};
/* Takes the findings of one reviewer's report (checked object of handoff/report.h): unknown
 * severities become medium with a note; a finding whose file or line is not within its shard's
 * ranges is dropped with a note. */
void findings_take(struct findings *f, struct json_object *report, const struct shard *shard,
		   const char *agent);
/* Merges duplicates by rule: same file, lines within 3, and the same category or claims whose word
 * sets overlap by half or more; the strongest severity and the longest evidence win. Numbers the
 * rest. */
void findings_merge(struct findings *f);
/* The task text of a verifier for one finding. */
void finding_task(const struct finding *finding, struct buf *out);
void finding_verdict(struct finding *finding, struct json_object *data, const char *verifier);
void findings_release(struct findings *f);
/* Does any finding that is not refuted reach this severity? */
bool findings_reach(const struct findings *f, enum severity s);

struct review_summary {
	const char *title; /* of the range */
	const char *run;
	const char *model;
	size_t reviewers, verifiers, lost_agents;
	char *const *skipped;
	size_t n_skipped;
	const char *failure; /* why the review as a whole did not come to its end, or NULL */
	char *const *lost;   /* "a4: killed by signal 9; files src/x.c" : parts of the diff nobody
				reviewed */
	size_t n_lost;
};
void findings_markdown(const struct findings *f, const struct review_summary *s, struct buf *out);
struct json_object *findings_json(const struct findings *f, const struct review_summary *s);
/* SARIF 2.1.0: refuted findings are left out, uncertain ones carry a property. URIs are
 * percent-encoded relative paths with uriBaseId SRCROOT. */
struct json_object *findings_sarif(const struct findings *f, const struct review_summary *s);

#endif
