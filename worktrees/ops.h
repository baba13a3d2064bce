/*
 * ops.h - the operations of baton-git: one function each, one table (ops.c).
 *
 * An operation is straight-line code: it reads its request, does its work and fills an answer
 * object (docs/documents.md is the contract). It runs in the service itself when it is quick, else
 * in a forked worker, and does not know which.
 */
#ifndef BATON_WORKTREES_OPS_H
#define BATON_WORKTREES_OPS_H

#include <stdbool.h>

#include "base/err.h"
#include "base/json.h"
#include "worktrees/repo.h"

enum op_lane {
	OP_INLINE,   /* a few milliseconds at most: in the service */
	OP_CHECKOUT, /* writes many files: two at a time */
	OP_WORK,     /* everything else: two at a time, beside the checkouts */
};

typedef int (*op_fn)(const struct repo *repo, struct json_object *body, struct json_object *answer,
		     struct err *err);

struct op {
	const char *name;
	enum op_lane lane;
	op_fn run;
	op_fn quick; /* tried in the service first; ERR_BUSY means: not quick, take the lane */
};

const struct op *op_find(const char *name); /* NULL if unknown */

#define OP_DECLARE(name)                                                                           \
	int name(const struct repo *repo, struct json_object *body, struct json_object *answer,    \
		 struct err *err)
OP_DECLARE(op_discover);
OP_DECLARE(op_check_prefix);
OP_DECLARE(op_resolve);
OP_DECLARE(op_instructions);
OP_DECLARE(op_snapshot);
OP_DECLARE(op_create);
OP_DECLARE(op_create_quick);
OP_DECLARE(op_reopen);
OP_DECLARE(op_status);
OP_DECLARE(op_diff);
OP_DECLARE(op_checkpoint);
OP_DECLARE(op_commit_rest);
OP_DECLARE(op_fork_base);
OP_DECLARE(op_import);
OP_DECLARE(op_range);
OP_DECLARE(op_facts);
OP_DECLARE(op_checkout_view);
OP_DECLARE(op_checkout_gate);
OP_DECLARE(op_remove_gate);
OP_DECLARE(op_merge_try);
OP_DECLARE(op_merge_land);
OP_DECLARE(op_merge_check);
OP_DECLARE(op_remove_view);
OP_DECLARE(op_remove);
OP_DECLARE(op_adopt);
OP_DECLARE(op_prune);
OP_DECLARE(op_drop_pin);

#endif
