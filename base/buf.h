/*
 * buf.h - a growable byte buffer with a maximum.
 *
 * Bytes are counted, never strlen'd: NUL bytes are data. data[len] is always a NUL that is not
 * counted, so a buffer of text can be read as a C string. A buffer that meets outside data gets a
 * maximum; reaching it makes the append fail with -1 and sets `overflow`, and nothing is written.
 */
#ifndef BATON_BASE_BUF_H
#define BATON_BASE_BUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct buf {
	char *data; /* NULL while empty: use buf_str for a string that is never NULL */
	size_t len;
	size_t cap;
	size_t max; /* 0: no maximum */
	bool overflow;
};

#define BUF_INIT                                                                                   \
	{                                                                                          \
		.data = NULL                                                                       \
	}
#define BUF_INIT_MAX(n)                                                                            \
	{                                                                                          \
		.data = NULL, .max = (n)                                                           \
	}

void buf_init(struct buf *buf, size_t max);
void buf_release(struct buf *buf);		/* frees the bytes; the struct can be used again */
void buf_clear(struct buf *buf);		/* len = 0, overflow = false, memory kept */
int buf_reserve(struct buf *buf, size_t extra); /* -1 if max would be passed */
int buf_add(struct buf *buf, const void *bytes, size_t n);
int buf_adds(struct buf *buf, const char *s);
int buf_addc(struct buf *buf, char c);
int buf_addf(struct buf *buf, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int buf_addv(struct buf *buf, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));
void buf_drop(struct buf *buf, size_t n); /* removes n bytes from the front */
void buf_truncate(struct buf *buf, size_t len);
const char *buf_str(const struct buf *buf); /* never NULL; borrowed until the next change */
char *buf_take(struct buf *buf);	    /* caller frees; the buffer is empty afterwards */

/* One read(2) of up to n bytes appended. Returns bytes, 0 at end, -1 with errno (EOVERFLOW at max).
 */
ssize_t buf_read(struct buf *buf, int fd, size_t n);

static inline void buf_release_ptr(struct buf *buf)
{
	buf_release(buf);
}
#define AUTO_BUF __attribute__((cleanup(buf_release_ptr)))

#endif
