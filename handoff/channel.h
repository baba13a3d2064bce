/*
 * channel.h - frames over a pair of byte streams, without an event loop of its own.
 *
 * The owner polls the descriptors (libevent in the parent and the gateway, poll(2) in the agent)
 * and calls channel_on_readable and channel_on_writable; frames come out through one callback. Both
 * descriptors are non-blocking; nobody ever blocks in a write: what does not fit is queued, and the
 * queue's size is bounded by the credit of open calls plus small frames. A queue that passes the
 * hard limit (HARD) means that the peer has stopped reading against the protocol: the channel
 * fails.
 *
 * Documents (FRAME_PARTS) are cut on sending and joined on receiving; on_frame sees whole
 * documents.
 */
#ifndef BATON_HANDOFF_CHANNEL_H
#define BATON_HANDOFF_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "handoff/frame.h"

#define CHANNEL_HARD_LIMIT (48 << 20) /* above it the channel fails */

struct channel;

/* Called for each frame. A non-zero return (with err set) fails the channel. The callback may send,
 * and may call channel_free only through a later turn of the loop. */
typedef int (*channel_frame_fn)(struct channel *ch, const struct frame *frame, void *arg,
				struct err *err);

/* peer says who is on the other side (for the sender check). fd_in and fd_out may be the same; they
 * are made non-blocking and CLOEXEC and are closed by channel_free. */
struct channel *channel_new(int fd_in, int fd_out, enum frame_sender peer,
			    channel_frame_fn on_frame, void *arg);
void channel_free(struct channel *ch); /* NULL allowed */
int channel_fd_in(const struct channel *ch);
int channel_fd_out(const struct channel *ch);

/* Queues a frame or a document of any size up to the type's max_body; `fields` as frame_write. A
 * first direct write is tried when the queue is empty. Never blocks, never fails at once: a broken
 * channel shows at the next channel_on_* call, and so does a body or fields above the maximum. */
void channel_send(struct channel *ch, enum frame_type type, const char *fields, const void *body,
		  size_t len);
/* The same for one frame that overtakes what is queued, as those of FRAME_URGENT types always do.
 */
void channel_send_urgent(struct channel *ch, enum frame_type type, const char *fields,
			 const void *body, size_t len);
/* printf form for the fields. */
void channel_sendf(struct channel *ch, enum frame_type type, const void *body, size_t len,
		   const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* From now on pings are answered here and pongs end here. With `role` (a static string; NULL: this
 * side expects none) the peer's first frame must be its hello of that role and of our version (else
 * ERR_UNSUPPORTED), and its only one; it still reaches on_frame. Every process of baton keeps its channels so; a raw one is for tests. */
void channel_keep(struct channel *ch, const char *role);
/* The first frame of a child. */
void channel_send_hello(struct channel *ch, const char *role);

/* While held, what is sent is only queued, and goes out with the next frame or when the owner writes
 * (channel_on_writable): several pieces of news then wake the peer once. Urgent frames wait too. */
void channel_hold(struct channel *ch, bool hold);
/* fn is called when channel_wants_write becomes true by a send, so that the owner can watch fd_out;
 * it must only note the fact. */
void channel_on_queue(struct channel *ch, void (*fn)(struct channel *ch, void *arg), void *arg);
/* Another hard limit, for a channel that carries the calls of many (the relay sets the gateway's).
 */
void channel_set_limit(struct channel *ch, size_t bytes);

bool channel_wants_write(const struct channel *ch);
size_t channel_queued(const struct channel *ch); /* bytes */

/* Reads what is there (at most 256 KiB a call) and calls on_frame. 0; or -1 with ERR_CLOSED at end
 * of stream (err says if a frame was cut), or the protocol error. After -1 only channel_free is
 * legal. When writing fails, what the peer had said before is still delivered before -1 is returned
 * (its last words may be a result), by either function. */
int channel_on_readable(struct channel *ch, struct err *err);
int channel_on_writable(struct channel *ch, struct err *err);

/* Writes out the queue until clock_mono_ms() passes deadline_ms, reading nothing. For the last
 * words of a process. -1 on a broken peer or at the deadline. */
int channel_drain(struct channel *ch, int64_t deadline_ms, struct err *err);

#endif
