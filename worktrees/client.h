/*
 * client.h - the parent's side of baton-git: requests out, answers matched by id.
 *
 * No descriptors, no event loop: it sends through a channel that the parent owns and is handed the
 * git_done frames that come back. Every call is answered exactly once: by its answer, or by
 * git_client_fail_all when the service has died.
 */
#ifndef BATON_WORKTREES_CLIENT_H
#define BATON_WORKTREES_CLIENT_H

#include <stddef.h>

#include "base/err.h"
#include "base/json.h"
#include "handoff/channel.h"

struct git_client;

/* answer is borrowed and an object; failure is NULL on success (then answer is not NULL). The
 * callback may make further calls, but not free the client. */
typedef void (*git_done_fn)(struct json_object *answer, const struct err *failure, void *arg);

/* `channel` is borrowed and may be replaced after a restart of the service. */
struct git_client *git_client_new(struct channel *channel);
/* Pending calls are failed with ERR_CANCELLED first; NULL allowed. */
void git_client_free(struct git_client *client);
void git_client_set_channel(struct git_client *client, struct channel *channel);

/* Sends {op, body}. `body` stays the caller's; NULL is {}. Without a channel the call fails at once
 * with ERR_CLOSED (through fn). */
void git_client_call(struct git_client *client, const char *op, struct json_object *body,
		     git_done_fn fn, void *arg);

/* Takes a FRAME_GIT_DONE. -1: the frame breaks the protocol (unknown id, no object as body); the
 * service is to be dropped. */
int git_client_frame(struct git_client *client, const struct frame *frame, struct err *err);

/* Fails every pending call, oldest first. */
void git_client_fail_all(struct git_client *client, const struct err *failure);

#endif
