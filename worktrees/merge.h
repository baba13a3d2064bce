/*
 * merge.h - two commits merged in memory: no checkout, no index, no ref.
 */
#ifndef BATON_WORKTREES_MERGE_H
#define BATON_WORKTREES_MERGE_H

#include <stdbool.h>

#include "base/err.h"
#include "base/json.h"
#include "worktrees/repo.h"

struct merge_result {
	char tree[OID_MAX];
	bool fast_forward;	       /* theirs holds ours: the result is theirs */
	bool already;		       /* ours holds theirs: the result is ours */
	struct json_object *conflicts; /* paths; NULL: none. Then tree is not set */
};
void merge_result_release(struct merge_result *result);

/* Merges `theirs` into `ours`, both among the user's objects. Objects of the result are written there; nothing names
 * them. No driver and no filter of anybody's configuration runs. A conflict is no failure. */
int merge_trees(const struct repo *repo, const char *ours, const char *theirs,
		struct merge_result *ret, struct err *err);

#endif
