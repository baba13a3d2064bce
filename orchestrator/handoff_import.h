/*
 * handoff_import.h - a handoff document from the session file of another tool (Claude Code, Codex), by rule alone.
 *
 * What can be known without a model: the user's words with the constraints in them, the goal (their first message), files
 * touched, the command that failed last, the last task list, the branch. The formats are documented by nobody who promises
 * them; they are read as they are publicly described, and what is not known is skipped and counted, never an error.
 */
#ifndef BATON_ORCHESTRATOR_HANDOFF_IMPORT_H
#define BATON_ORCHESTRATOR_HANDOFF_IMPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/json.h"
#include "handoff/document.h"

struct import_counts {
	int64_t records; /* that were read */
	int64_t unknown; /* of a type that is not known */
	int64_t bad;	 /* lines that are no record: torn, or longer than any should be */
};

/* ERR_INVALID: there is no record of either tool in it. The caller frees. */
int handoff_import(const char *path, struct handoff **ret, struct import_counts *ret_counts,
		   struct err *err);

/* ---- for the readers of one format each ---- */

struct import;

/* One record. False: it is none of this tool's. */
bool import_claude(struct import *im, struct json_object *record);
bool import_codex(struct import *im, struct json_object *record);

void import_unknown(struct import *im);
void import_head(struct import *im, const char *tool, const char *model, const char *cwd,
		 const char *branch, const char *time);
void import_said(struct import *im, const char *text, size_t n);
/* `path` as the tool names it; those outside of its working folder are left out. */
void import_file(struct import *im, const char *path, enum handoff_state state);
void import_command(struct import *im, const char *call, const char *command);
/* What came of a call; of other calls than commands it is passed over. */
void import_result(struct import *im, const char *call, int exit_code, const char *output);
void import_tasks_begin(struct import *im); /* a new list: the one before is forgotten */
void import_task(struct import *im, const char *text, bool done);

#endif
