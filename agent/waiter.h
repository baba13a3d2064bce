/*
 * waiter.h - what the agent's waiting place holds: the channel, its calls, signals, the parent's
 * wishes.
 *
 * wait.h is the face for everybody who waits; this one is for the agent's own files, which make the
 * waiter and read what came: the start document, readiness of the worktree, an acknowledgement, a
 * wish to stop or to report.
 *
 *   state        set by                                   wait_poll then
 *   running      -                                        waits
 *   interrupted  control `report` while it may interrupt  -1 ERR_CANCELLED until waiter_resume
 *   stopping     control `stop`, a second `report`, TERM  -1 ERR_CANCELLED for ever
 *   gone         end of the channel, or a broken one      -1 ERR_CLOSED for ever
 */
#ifndef BATON_AGENT_WAITER_H
#define BATON_AGENT_WAITER_H

#include <stdbool.h>

#include "agent/wait.h"
#include "base/buf.h"
#include "handoff/call.h"
#include "handoff/channel.h"

enum waiter_worktree { WORKTREE_PENDING, WORKTREE_READY, WORKTREE_FAILED };

/* Takes both descriptors over, also on failure. Blocks SIGCHLD, SIGTERM, SIGINT and SIGHUP for the
 * process and reads them from a signalfd. */
struct waiter *waiter_new(int fd_in, int fd_out, struct err *err);
void waiter_free(struct waiter *w); /* NULL allowed; closes the channel */

struct channel *waiter_channel(struct waiter *w);
struct call_callers *waiter_calls(struct waiter *w);

/* The start document, borrowed, once it has come; NULL before. */
const struct buf *waiter_start(const struct waiter *w);
void waiter_drop_start(struct waiter *w);

enum waiter_worktree waiter_worktree(const struct waiter *w, const char **ret_message);

/* The acknowledgement of an effect: expect, send, wait, look. One effect of each kind at a time. */
enum ack_kind {
	ACK_REPORT,
	ACK_CHECKPOINT,
	ACK_HOOK,
	ACK_RESET,
	ACK_SPAWN,
	ACK_MESSAGE,
	ACK_KINDS
};
void waiter_expect_ack(struct waiter *w, enum ack_kind kind, const char *key);
bool waiter_acked(const struct waiter *w, enum ack_kind kind, bool *ret_ok, const char **ret_body);

bool waiter_stopping(const struct waiter *w);
bool waiter_parent_gone(const struct waiter *w);
/* `report` was asked for and not yet taken; the reason is borrowed ("" if none was given). */
bool waiter_report_wanted(const struct waiter *w, const char **ret_reason);
void waiter_take_report(struct waiter *w);
const char *waiter_reason(const struct waiter *w); /* of the stop */

/* A wish of a person to compact or to undo (docs/documents.md, "control"): the newest one, once; the
 * caller puts it. NULL: none. */
struct json_object *waiter_take_compact(struct waiter *w);

/* A person wants a Context Reset (R1): why, the caller's, once; NULL: nobody does. */
char *waiter_take_reset(struct waiter *w);

/* The next news of an agent that this one started (frame `child`), the next words for this one's model
 * ({"from","text"}): the caller puts them. NULL: none. */
struct json_object *waiter_take_child(struct waiter *w);
struct json_object *waiter_take_said(struct waiter *w);
bool waiter_has_said(const struct waiter *w);

/* While on, a wish to report ends the current wait (a tool is running). */
void waiter_interruptible(struct waiter *w, bool on);
void waiter_resume(struct waiter *w);

#endif
