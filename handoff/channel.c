/*
 * channel.c - the byte streams of one peer: a queue outwards, whole frames inwards.
 *
 * Whoever writes with a blocking descriptor while the other side does the same has a deadlock, so
 * nothing here ever waits: a send writes what the socket takes and queues the rest, and the owner's
 * loop calls channel_on_writable when there is room. Bounding the queue is not done here but by the
 * credit of the call protocol (call.h); the hard limit only catches a peer that does not keep it.
 *
 * A failed write does not end the channel at once. A child that says its result and exits makes our
 * next write fail while its last words are still in the socket: they are read and delivered first.
 *
 * The parts of a document are sent one after the other, so the reader refuses anything between
 * them; it then needs one buffer only, and a peer cannot open a document for each type and leave
 * it.
 */
#include "handoff/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/clock.h"
#include "base/memory.h"
#include "handoff/channel_queue.h"

enum {
	READ_CHUNK = 64 << 10,
	READ_PER_CALL = 256 << 10,
	LAST_WORDS_MAX = 4 << 20, /* read from a peer that takes nothing any more */
};

struct channel {
	int fd_in, fd_out;
	enum frame_sender peer;
	channel_frame_fn on_frame;
	void *arg;
	void (*on_queue)(struct channel *ch, void *arg);
	void *on_queue_arg;

	struct buf in;
	size_t need;	/* bytes of `in` from which parsing is worth it */
	struct buf doc; /* the parts so far of the document that is being joined */
	enum frame_type doc_type;
	bool in_doc;
	bool keeps;	  /* pings and hello are dealt with here */
	const char *role; /* of the hello that is expected; NULL: none */
	bool said_hello;

	struct channel_queue out;
	size_t limit;
	bool out_is_socket;
	bool held;   /* sends only queue */
	bool broken; /* writing failed: `why` says how */
	struct err why;
	size_t last_words; /* bytes read since then */
};

/* Errors are left to the first read or write: a descriptor that is none shows there. */
static void fd_prepare(int fd)
{
	int flags = fcntl(fd, F_GETFL);
	if (flags >= 0)
		(void)fcntl(fd, F_SETFL, flags | O_NONBLOCK);
	(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
}

struct channel *channel_new(int fd_in, int fd_out, enum frame_sender peer,
			    channel_frame_fn on_frame, void *arg)
{
	struct channel *ch = mem_alloc(sizeof(*ch));
	int type;
	socklen_t size = sizeof(type);
	fd_prepare(fd_in);
	fd_prepare(fd_out);
	ch->fd_in = fd_in;
	ch->fd_out = fd_out;
	ch->peer = peer;
	ch->on_frame = on_frame;
	ch->arg = arg;
	ch->limit = CHANNEL_HARD_LIMIT;
	ch->out_is_socket = getsockopt(fd_out, SOL_SOCKET, SO_TYPE, &type, &size) == 0;
	return ch;
}

void channel_free(struct channel *ch)
{
	if (!ch)
		return;
	if (ch->fd_out != ch->fd_in)
		close(ch->fd_out);
	close(ch->fd_in);
	buf_release(&ch->in);
	channel_queue_release(&ch->out);
	buf_release(&ch->doc);
	free(ch);
}

int channel_fd_in(const struct channel *ch)
{
	return ch->fd_in;
}

int channel_fd_out(const struct channel *ch)
{
	return ch->fd_out;
}

void channel_on_queue(struct channel *ch, void (*fn)(struct channel *ch, void *arg), void *arg)
{
	ch->on_queue = fn;
	ch->on_queue_arg = arg;
}

void channel_set_limit(struct channel *ch, size_t bytes)
{
	ch->limit = bytes;
}

size_t channel_queued(const struct channel *ch)
{
	return channel_queue_size(&ch->out);
}

/* A broken channel wants to write too: the owner's poll reports it at once, and channel_on_writable
 * ends it, where a silent peer on a second descriptor would never wake the reading side. */
bool channel_wants_write(const struct channel *ch)
{
	return ch->broken || channel_queued(ch) > 0;
}

/* ---- outwards ---- */

/* The first reason counts: what follows is mostly its echo (EPIPE after a limit). The queue goes at
 * once, as nobody will take it, and the owner is told so that its loop comes round to the end. */
static void channel_break(struct channel *ch, const struct err *why)
{
	if (!ch->broken)
		ch->why = *why;
	ch->broken = true;
	channel_queue_clear(&ch->out);
	if (ch->on_queue)
		ch->on_queue(ch, ch->on_queue_arg);
}

/* One write of up to two pieces. Bytes written; 0 if there is no room; -1 if the channel broke. A
 * pipe's SIGPIPE is ignored by every program of ours; on sockets not even that is relied upon. */
static ssize_t write_pieces(struct channel *ch, struct iovec *pieces, int count)
{
	ssize_t n;
	do {
		struct msghdr msg = {.msg_iov = pieces, .msg_iovlen = (size_t)count};
		n = ch->out_is_socket ? sendmsg(ch->fd_out, &msg, MSG_NOSIGNAL)
				      : writev(ch->fd_out, pieces, count);
	} while (n < 0 && errno == EINTR);
	if (n >= 0)
		return n;
	if (errno == EAGAIN || errno == EWOULDBLOCK)
		return 0;
	struct err why;
	if (errno == EPIPE || errno == ECONNRESET)
		err_set(&why, ERR_CLOSED, "the peer closed the channel");
	else
		err_sys(&why, "cannot write to the channel");
	channel_break(ch, &why);
	return -1;
}

static void queue_write(struct channel *ch)
{
	struct iovec piece;
	const char *bytes;
	while (!ch->broken && (piece.iov_len = channel_queue_next(&ch->out, &bytes)) > 0) {
		piece.iov_base = (void *)(uintptr_t)bytes;
		ssize_t n = write_pieces(ch, &piece, 1);
		if (n <= 0)
			break;
		channel_queue_wrote(&ch->out, (size_t)n);
	}
}

/* With an empty queue the body goes out from where it is; only what is left is copied. */
static void send_one(struct channel *ch, enum frame_type type, const char *fields, const char *body,
		     size_t len, bool more, bool urgent)
{
	size_t sent = 0;
	AUTO_BUF struct buf head = BUF_INIT;
	frame_write_header(&head, type, fields, len, more);
	if (channel_queued(ch) == 0 && !ch->held) {
		struct iovec pieces[2] = {{head.data, head.len}, {(void *)(uintptr_t)body, len}};
		ssize_t n = write_pieces(ch, pieces, len ? 2 : 1);
		if (n < 0)
			return;
		sent = (size_t)n;
	}
	if (sent < head.len)
		channel_queue_add(&ch->out, head.data + sent, head.len - sent, urgent);
	size_t body_sent = sent > head.len ? sent - head.len : 0;
	if (body_sent < len)
		channel_queue_add(&ch->out, body + body_sent, len - body_sent, urgent);
}

/* Our own bug or a caller's oversized text: the peer gets nothing of it, and the channel fails like
 * one that broke, so that no half document is left on the wire. */
static bool send_refused(struct channel *ch, const struct frame_info *info, const char *fields,
			 size_t len)
{
	struct err why;
	if (ch->broken)
		return true;
	if (len > info->max_body)
		err_set(&why, ERR_TOO_LARGE, "a body of %zu bytes is too large for frame '%s'", len,
			info->wire);
	else if (fields && strlen(fields) > FRAME_FIELDS_MAX)
		err_set(&why, ERR_TOO_LARGE, "the fields of a frame '%s' are too large",
			info->wire);
	else
		return false;
	channel_break(ch, &why);
	return true;
}

/* Checked after the fact: one document may pass the limit by its own size, which max_body bounds.
 */
static void check_limit(struct channel *ch)
{
	struct err why;
	if (ch->broken || channel_queued(ch) <= ch->limit)
		return;
	err_set(&why, ERR_TOO_LARGE, "the peer does not read: %zu bytes are queued for it",
		channel_queued(ch));
	channel_break(ch, &why);
}

/* A frame or a whole document as one unit of the queue. `first` is taken before anything is
 * written: the first unit in an empty queue is begun (or counts as begun), and nothing overtakes
 * it. */
static void send_unit(struct channel *ch, enum frame_type type, const char *fields,
		      const char *body, size_t len, bool urgent)
{
	bool first = channel_queued(ch) == 0;
	size_t begun = channel_queue_begin(&ch->out);
	while (len > FRAME_BODY_MAX && !ch->broken) {
		send_one(ch, type, fields, body, FRAME_BODY_MAX, true, urgent);
		body += FRAME_BODY_MAX;
		len -= FRAME_BODY_MAX;
	}
	if (!ch->broken)
		send_one(ch, type, fields, body, len, false, urgent);
	if (ch->broken)
		return;
	if (!urgent)
		channel_queue_end(&ch->out, begun, first);
	check_limit(ch);
	if (first && channel_queued(ch) > 0 && ch->on_queue)
		ch->on_queue(ch, ch->on_queue_arg);
}

void channel_send(struct channel *ch, enum frame_type type, const char *fields, const void *body,
		  size_t len)
{
	const struct frame_info *info = frame_info(type);
	if (!info)
		abort();
	if (!send_refused(ch, info, fields, len))
		send_unit(ch, type, fields, body, len, info->flags & FRAME_URGENT);
}

void channel_send_urgent(struct channel *ch, enum frame_type type, const char *fields,
			 const void *body, size_t len)
{
	const struct frame_info *info = frame_info(type);
	if (!info || len > FRAME_BODY_MAX)
		abort();
	if (!send_refused(ch, info, fields, len))
		send_unit(ch, type, fields, body, len, true);
}

void channel_sendf(struct channel *ch, enum frame_type type, const void *body, size_t len,
		   const char *fmt, ...)
{
	AUTO_BUF struct buf fields = BUF_INIT;
	va_list ap;
	va_start(ap, fmt);
	buf_addv(&fields, fmt, ap);
	va_end(ap);
	channel_send(ch, type, buf_str(&fields), body, len);
}

void channel_hold(struct channel *ch, bool hold)
{
	ch->held = hold;
}

void channel_send_hello(struct channel *ch, const char *role)
{
	channel_sendf(ch, FRAME_HELLO, NULL, 0, "\"version\":%d,\"role\":\"%s\",\"pid\":%ld",
		      FRAME_VERSION, role, (long)getpid());
}

void channel_keep(struct channel *ch, const char *role)
{
	ch->keeps = true;
	ch->role = role;
}

/* A broken channel is read from here: the owner may poll for writing only, or the reading side may
 * never wake (two pipes). */
int channel_on_writable(struct channel *ch, struct err *err)
{
	queue_write(ch);
	return ch->broken ? channel_on_readable(ch, err) : 0;
}

int channel_drain(struct channel *ch, int64_t deadline_ms, struct err *err)
{
	for (;;) {
		queue_write(ch);
		if (ch->broken) {
			if (err)
				*err = ch->why;
			return -1;
		}
		if (channel_queued(ch) == 0)
			return 0;
		int64_t left = deadline_ms - clock_mono_ms();
		if (left <= 0)
			return err_set(err, ERR_TIMEOUT, "the peer does not read");
		struct pollfd pfd = {.fd = ch->fd_out, .events = POLLOUT};
		(void)poll(&pfd, 1, (int)MIN(left, (int64_t)1000));
	}
}

/* ---- inwards ---- */

static int check_hello(const struct frame *frame, const char *role, struct err *err)
{
	if (frame->type != FRAME_HELLO)
		return err_set(err, ERR_INVALID, "the first frame is '%s', not 'hello'",
			       frame_name(frame->type));
	int64_t version = json_i64(frame->header, "version", 0);
	if (version != FRAME_VERSION)
		return err_set(err, ERR_UNSUPPORTED,
			       "the peer speaks version %" PRId64
			       " of the channel, this program %d: "
			       "install both from the same release",
			       version, FRAME_VERSION);
	const char *got = json_str(frame->header, "role", "");
	if (strcmp(got, role) != 0)
		return err_set(err, ERR_INVALID, "the peer says that it is '%.40s', not '%s'", got,
			       role);
	return 0;
}

/* What holds on every channel, before any owner sees the frame: a child of another release must not
 * be able to do half of its work before somebody asks who it is. */
static int pass_frame(struct channel *ch, const struct frame *frame, struct err *err)
{
	if (ch->keeps && ch->role && !ch->said_hello) {
		if (check_hello(frame, ch->role, err) < 0)
			return -1;
		ch->said_hello = true;
	} else if (ch->keeps && frame->type == FRAME_HELLO) {
		return err_set(err, ERR_INVALID, "a hello that nobody expected");
	} else if (ch->keeps && frame->type == FRAME_PING) {
		channel_sendf(ch, FRAME_PONG, NULL, 0, "\"seq\":%" PRId64,
			      json_i64(frame->header, "seq", 0));
		return 0;
	} else if (ch->keeps && frame->type == FRAME_PONG) {
		return 0;
	}
	return ch->on_frame(ch, frame, ch->arg, err);
}

/* Hands one frame to the owner, or keeps it as a part. Most documents are one frame and are never
 * copied; the joined ones are given back after the call, so an idle channel holds no memory. */
static int deliver(struct channel *ch, struct frame *frame, struct err *err)
{
	if (ch->in_doc && frame->type != ch->doc_type)
		return err_set(err, ERR_INVALID, "a frame '%s' inside a document '%s'",
			       frame_name(frame->type), frame_name(ch->doc_type));
	if (!ch->in_doc && !frame->more)
		return pass_frame(ch, frame, err);
	if (!ch->in_doc)
		buf_init(&ch->doc, frame_info(frame->type)->max_body);
	if (buf_add(&ch->doc, frame->body, frame->len) < 0)
		return err_set(err, ERR_TOO_LARGE, "a document '%s' exceeds %zu bytes",
			       frame_name(frame->type), ch->doc.max);
	ch->in_doc = frame->more;
	ch->doc_type = frame->type;
	if (frame->more)
		return 0;
	frame->body = buf_str(&ch->doc);
	frame->len = ch->doc.len;
	int rc = pass_frame(ch, frame, err);
	buf_release(&ch->doc);
	return rc;
}

/* All whole frames of the input buffer. The front is dropped once for all of them, not per frame,
 * and a buffer that is empty afterwards is freed: 256 idle channels must cost nothing. */
static int take_frames(struct channel *ch, struct err *err)
{
	size_t used = 0;
	while (used < ch->in.len && ch->in.len - used >= ch->need) {
		struct frame frame;
		size_t size = 0;
		int got = frame_read(ch->in.data + used, ch->in.len - used, ch->peer, &frame, &size,
				     err);
		if (got < 0)
			return -1;
		ch->need = got ? 0 : size;
		if (!got)
			break;
		used += size;
		int rc = deliver(ch, &frame, err);
		json_object_put(frame.header);
		if (rc != 0)
			return -1;
	}
	buf_drop(&ch->in, used);
	if (ch->in.len == 0)
		buf_release(&ch->in);
	return 0;
}

/* The end of the peer's words. A protocol reason of our own (a limit) says more than "closed". */
static int channel_closed(struct channel *ch, struct err *err)
{
	if (ch->broken && err && ch->why.code != ERR_CLOSED) {
		*err = ch->why;
		return -1;
	}
	bool cut = ch->in.len > 0 || ch->in_doc;
	return err_set(err, ERR_CLOSED, "the peer closed the channel%s",
		       cut ? " in the middle of a frame" : "");
}

/* One read and the frames that it completes. 1 go on, 0 nothing more for now, -1. */
static int read_once(struct channel *ch, size_t *total, struct err *err)
{
	ssize_t n = buf_read(&ch->in, ch->fd_in, READ_CHUNK);
	if (n < 0 && errno == EINTR)
		return 1;
	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return 0;
	if (n == 0 || (n < 0 && errno == ECONNRESET))
		return channel_closed(ch, err);
	if (n < 0)
		return err_sys(err, "cannot read from the channel");
	*total += (size_t)n;
	return take_frames(ch, err) < 0 ? -1 : 1;
}

/* Bounded per call, so that one chatty peer does not keep the loop from the others. */
int channel_on_readable(struct channel *ch, struct err *err)
{
	size_t total = 0;
	int go = 1;
	while (go == 1 && total < READ_PER_CALL)
		go = read_once(ch, &total, err);
	if (go < 0)
		return -1;
	if (!ch->broken)
		return 0;
	/* The last words end where the socket is empty; a peer that goes on talking is cut off. */
	ch->last_words += total;
	return go == 0 || ch->last_words > LAST_WORDS_MAX ? channel_closed(ch, err) : 0;
}
