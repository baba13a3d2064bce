/*
 * server.h - the gateway's loop: the channel to the parent, the open calls, the queue.
 */
#ifndef BATON_ORCHESTRATOR_GATEWAY_SERVER_H
#define BATON_ORCHESTRATOR_GATEWAY_SERVER_H

#include "base/err.h"
#include "base/json.h"

/* Serves until the channel ends: 0, or -1 if the parent broke the protocol or the machine refused.
 * keys is borrowed; it is needed until the start document came. */
int server_run(int fd_channel, struct json_object *keys, struct err *err);

#endif
