/*
 * role.h - roles: Markdown with YAML front matter and the system prompt as body.
 *
 * Looked up in .baton/agents/NAME.md, $XDG_CONFIG_HOME/baton/agents/, .claude/agents/ (as found in
 * the wild: `tools` as a comma list with the names Read, Edit, Bash ..., `model:
 * inherit|sonnet|...`, unknown keys tolerated there with a warning), then the built-in ones
 * (data/roles/, embedded): lead, worker, explorer, reviewer, verifier and the others of design.md.
 * A project's role may narrow, never widen: `network: open` and `write` beyond what the command
 * gives are reduced with a note.
 */
#ifndef BATON_ORCHESTRATOR_ROLE_H
#define BATON_ORCHESTRATOR_ROLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/json.h"

struct role {
	char *name, *description;
	char *prompt;	     /* never empty */
	char *path;	     /* where it came from; "built in" */
	char **tools;	     /* NULL-terminated; NULL: all that its rights allow */
	char *model;	     /* "provider/name" or NULL: the run's */
	char *compact_model; /* the same of `context:`; "inherit": the agent's own; NULL: no word */
	char *effort;	     /* or NULL */
	char *reset;	     /* R1: "auto", "never", "per_stage" of `context:`; NULL: no word */
	bool write;
	char *network;			   /* "none", "loopback", "open" */
	int64_t max_rounds;		   /* 0: the run's */
	struct json_object *output_schema; /* or NULL */
	struct json_object *context;	   /* the `context:` mapping as it stands, or NULL */
	struct json_object *knobs;	   /* its numbers of handoff/knobs.h, checked; or NULL */
	char **notes;			   /* NULL-terminated warnings for the user */
};

/* project_dir may be NULL. ERR_NOT_FOUND with the nearest name and the places that were searched.
 */
int role_load(const char *name, const char *project_dir, struct role **ret, struct err *err);
/* Parses one file's text (also a fuzz target). claude_form tolerates unknown keys. */
int role_parse(const char *text, size_t n, const char *path, bool claude_form, struct role **ret,
	       struct err *err);
void role_free(struct role *role); /* NULL allowed */

#endif
