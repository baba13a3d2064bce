/*
 * channel_queue.c - see channel_queue.h.
 *
 * With nothing urgent the whole queue is one piece for write(2). Only when something urgent waits
 * is the piece cut at the end of the unit in progress. Once a byte of the urgent lane is out, the
 * lane is finished before anything else; `head` is 0 then, because the lane starts at a boundary
 * only.
 */
#include "handoff/channel_queue.h"

#include "base/memory.h"

enum { QUEUE_KEEP = 1 << 20 };

static void empty_buf(struct buf *buf)
{
	if (buf->cap > QUEUE_KEEP)
		buf_release(buf);
	else
		buf_clear(buf);
}

void channel_queue_clear(struct channel_queue *q)
{
	empty_buf(&q->bytes);
	empty_buf(&q->sizes);
	empty_buf(&q->urgent);
	q->start = q->head = q->sizes_start = q->urgent_start = 0;
}

void channel_queue_release(struct channel_queue *q)
{
	buf_release(&q->bytes);
	buf_release(&q->sizes);
	buf_release(&q->urgent);
}

size_t channel_queue_size(const struct channel_queue *q)
{
	return q->bytes.len - q->start + q->urgent.len - q->urgent_start;
}

size_t channel_queue_begin(const struct channel_queue *q)
{
	return q->bytes.len;
}

void channel_queue_add(struct channel_queue *q, const void *bytes, size_t n, bool urgent)
{
	buf_add(urgent ? &q->urgent : &q->bytes, bytes, n);
}

void channel_queue_end(struct channel_queue *q, size_t begun, bool first)
{
	size_t size = q->bytes.len - begun;
	if (size == 0)
		return;
	if (first)
		q->head = size;
	else
		buf_add(&q->sizes, &size, sizeof(size));
}

size_t channel_queue_next(const struct channel_queue *q, const char **ret)
{
	size_t urgent = q->urgent.len - q->urgent_start;
	if (urgent > 0 && q->head == 0) {
		*ret = q->urgent.data + q->urgent_start;
		return urgent;
	}
	*ret = buf_str(&q->bytes) + q->start;
	return urgent > 0 ? q->head : q->bytes.len - q->start;
}

/* Moves the boundary on by n bytes of ordinary units. */
static void pass_units(struct channel_queue *q, size_t n)
{
	while (n > q->head) {
		n -= q->head;
		memcpy(&q->head, q->sizes.data + q->sizes_start, sizeof(q->head));
		q->sizes_start += sizeof(q->head);
	}
	q->head -= n;
}

/* The written front is moved away only when it is the larger half: each byte moves once at most. */
static void trim(struct buf *buf, size_t *start)
{
	if (*start == buf->len)
		empty_buf(buf);
	else if (*start > buf->len / 2)
		buf_drop(buf, *start);
	else
		return;
	*start = 0;
}

void channel_queue_wrote(struct channel_queue *q, size_t n)
{
	if (q->urgent.len > q->urgent_start && q->head == 0) {
		q->urgent_start += n;
		trim(&q->urgent, &q->urgent_start);
		return;
	}
	pass_units(q, n);
	q->start += n;
	trim(&q->bytes, &q->start);
	trim(&q->sizes, &q->sizes_start);
}
