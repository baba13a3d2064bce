/*
 * agent_rig.h - a scripted run of a whole agent, and what the tests look at afterwards.
 */
#ifndef TEST_AGENT_RIG_H
#define TEST_AGENT_RIG_H

#include "agent_fixture.h"
#include "fake_parent.h"

#include "agent/conversation.h"
#include "base/memory.h"

extern char *rig_folder; /* of the present test */

int rig_setup(void **state);
int rig_teardown(void **state);
#define WITH_FOLDER(test) cmocka_unit_test_setup_teardown(test, rig_setup, rig_teardown)

/* Runs a script to the agent's end. members as in fixture_start. */
void rig_run(struct fake_parent *p, const char *api, const struct fake_step *script, size_t n,
	     const char *members);
#define RUN(p, script, members) rig_run(p, "anthropic", script, ARRAY_SIZE(script), members)

#define REPORT_CALL                                                                                \
	"r1 report {\"status\":\"done\",\"summary\":\"The test "                                   \
	"passes.\",\"changed_files\":[\"a.txt\"]}"

struct json_object *rig_report(const struct fake_parent *p); /* what was delivered */
void rig_load(struct conversation *c);			     /* the transcript, well-formed */
/* The same for a transcript that may lack the results of its last calls. */
void rig_load_repaired(struct conversation *c);
bool rig_transcript_has(const char *text);
char *rig_path(const char *name); /* below the folder; caller frees */
/* A hook: stops the agent at its first request. */
void rig_stop_at_request(struct fake_parent *p, size_t index);

#endif
