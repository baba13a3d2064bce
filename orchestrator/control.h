/*
 * control.h - the way of a person into a run that works: a socket in the run's folder.
 *
 *   runs/<run>/control   AF_UNIX, SOCK_STREAM, mode 0600; one request and one answer a connection,
 *                        each a line of JSON (docs/control.md)
 *
 * Boxes cannot reach it: they may not connect to such sockets, and the folder is hidden from them. A run
 * without it works all the same.
 */
#ifndef BATON_ORCHESTRATOR_CONTROL_H
#define BATON_ORCHESTRATOR_CONTROL_H

#include "base/err.h"
#include "base/json.h"

struct control;
struct run;

/* NULL with err where the socket cannot be made. */
struct control *control_open(struct run *run, struct err *err);
void control_close(struct control *control); /* removes the socket; NULL allowed */

/* The other side, in a command: sends `request` to the run whose folder is `dir` and waits for its answer, 10 s
 * at most. ERR_NOT_FOUND: nobody listens there. An answer of {"ok":false} is ERR_INVALID with its text. */
int control_ask(const char *dir, struct json_object *request, struct json_object **ret,
		struct err *err);

#endif
