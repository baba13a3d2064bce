/*
 * git_session.h - baton-git for commands that are no run: one operation at a time, waited for.
 */
#ifndef BATON_ORCHESTRATOR_GIT_SESSION_H
#define BATON_ORCHESTRATOR_GIT_SESSION_H

#include "base/err.h"
#include "base/json.h"

struct git_session;

/* repository: the top of the user's checkout, or any folder below it. */
int git_session_open(const char *repository, struct git_session **ret, struct err *err);
void git_session_close(struct git_session *session); /* NULL allowed */
/* body is borrowed; *ret is owned by the caller. At most 10 minutes. */
int git_session_call(struct git_session *session, const char *op, struct json_object *body,
		     struct json_object **ret, struct err *err);

#endif
