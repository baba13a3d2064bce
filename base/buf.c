/*
 * buf.c - the growable buffer.
 *
 * Two rules keep callers simple. An append either happens whole or not at all, so a buffer never
 * holds half a record. And the maximum is checked before memory is asked for, so what a peer sends
 * can fail (an ordinary -1) but cannot make the process abort for want of memory.
 */
#include "base/buf.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>

#include "base/memory.h"

enum { BUF_FIRST = 64 };

void buf_init(struct buf *buf, size_t max)
{
	*buf = (struct buf){.max = max};
}

void buf_release(struct buf *buf)
{
	free(buf->data);
	*buf = (struct buf){.max = buf->max};
}

void buf_clear(struct buf *buf)
{
	buf->len = 0;
	buf->overflow = false;
	if (buf->data)
		buf->data[0] = '\0';
}

int buf_reserve(struct buf *buf, size_t extra)
{
	size_t limit = buf->max ? buf->max : SIZE_MAX / 2;
	if (buf->len > limit || extra > limit - buf->len) {
		buf->overflow = true;
		return -1;
	}
	size_t need = buf->len + extra + 1; /* and the uncounted NUL */
	if (need <= buf->cap)
		return 0;
	size_t cap = buf->cap ? buf->cap : BUF_FIRST;
	while (cap < need)
		cap *= 2;
	if (buf->max && cap > buf->max + 1)
		cap = buf->max + 1;
	buf->data = mem_resize(buf->data, cap);
	buf->cap = cap;
	buf->data[buf->len] = '\0';
	return 0;
}

int buf_add(struct buf *buf, const void *bytes, size_t n)
{
	if (n == 0)
		return 0;
	if (buf_reserve(buf, n) < 0)
		return -1;
	memcpy(buf->data + buf->len, bytes, n);
	buf->len += n;
	buf->data[buf->len] = '\0';
	return 0;
}

int buf_adds(struct buf *buf, const char *s)
{
	return buf_add(buf, s, strlen(s));
}

int buf_addc(struct buf *buf, char c)
{
	return buf_add(buf, &c, 1);
}

int buf_addv(struct buf *buf, const char *fmt, va_list ap)
{
	char small[256];
	va_list again;
	va_copy(again, ap);
	int n = vsnprintf(small, sizeof(small), fmt, ap);
	int rc = -1;
	if (n >= 0 && (size_t)n < sizeof(small)) {
		rc = buf_add(buf, small, (size_t)n);
	} else if (n >= 0 && buf_reserve(buf, (size_t)n) == 0) {
		vsnprintf(buf->data + buf->len, (size_t)n + 1, fmt, again);
		buf->len += (size_t)n;
		rc = 0;
	}
	va_end(again);
	return rc;
}

int buf_addf(struct buf *buf, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int rc = buf_addv(buf, fmt, ap);
	va_end(ap);
	return rc;
}

void buf_drop(struct buf *buf, size_t n)
{
	if (n >= buf->len) {
		buf_truncate(buf, 0);
		return;
	}
	if (n == 0)
		return;
	memmove(buf->data, buf->data + n, buf->len - n + 1);
	buf->len -= n;
}

void buf_truncate(struct buf *buf, size_t len)
{
	if (len >= buf->len)
		return;
	buf->len = len;
	buf->data[len] = '\0';
}

const char *buf_str(const struct buf *buf)
{
	return buf->data ? buf->data : "";
}

char *buf_take(struct buf *buf)
{
	char *data = buf->data ? buf->data : mem_strdup("");
	buf->data = NULL;
	buf->len = buf->cap = 0;
	buf->overflow = false;
	return data;
}

ssize_t buf_read(struct buf *buf, int fd, size_t n)
{
	if (buf->max) {
		size_t room = buf->len < buf->max ? buf->max - buf->len : 0;
		if (room == 0) {
			buf->overflow = true;
			errno = EOVERFLOW;
			return -1;
		}
		n = MIN(n, room);
	}
	if (buf_reserve(buf, n) < 0) {
		errno = EOVERFLOW;
		return -1;
	}
	ssize_t got;
	do {
		got = read(fd, buf->data + buf->len, n);
	} while (got < 0 && errno == EINTR);
	if (got > 0)
		buf->len += (size_t)got;
	buf->data[buf->len] = '\0';
	return got;
}
