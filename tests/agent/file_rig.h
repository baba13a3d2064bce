/*
 * file_rig.h - a conversation whose tool calls are really run on a worktree, without an agent: for what looks at
 * files and at the view together.
 */
#ifndef TEST_AGENT_FILE_RIG_H
#define TEST_AGENT_FILE_RIG_H

#include "tests/agent/tools/fixture.h"

#include "agent/context/epoch.h"
#include "agent/context/view.h"
#include "agent/ledger.h"
#include "handoff/knobs.h"

struct file_rig {
	struct fixture *f;
	struct conversation c;
	struct view view;
	struct ledger ledger;
	struct context_knobs knobs;
};

int file_rig_setup(void **state); /* *state: struct file_rig */
int file_rig_teardown(void **state);
#define ON_FILES(test) cmocka_unit_test_setup_teardown(test, file_rig_setup, file_rig_teardown)

/* One round: the call (quotes as in `call`) and its result, which is returned; it is in the view. */
struct message *file_round(struct file_rig *r, const char *tool, const char *json);
/* The view from `from` on stays, all before it gives way to a head, which is taken over. */
void file_compact(struct file_rig *r, size_t from, struct message *head);
/* All text blocks of an origin, one after the other. Caller frees. */
char *file_blocks(const struct message *m, enum block_origin origin);
size_t file_count(const struct message *m, enum block_origin origin);

#endif
