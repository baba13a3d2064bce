/*
 * control_requests.h - what a person can ask of a run that works, one function a request (docs/control.md).
 */
#ifndef BATON_ORCHESTRATOR_CONTROL_REQUESTS_H
#define BATON_ORCHESTRATOR_CONTROL_REQUESTS_H

#include <stdbool.h>

#include "base/err.h"
#include "base/json.h"
#include "worktrees/box/box.h"

struct run;

/* Carries one out. */
int control_request(struct run *run, struct json_object *request, struct err *err);
/* A box that cannot keep agents from the socket leaves them only what spoils nothing. */
bool control_box_allows(enum box_level level, struct json_object *request);

#endif
