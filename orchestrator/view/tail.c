/*
 * tail.c - see tail.h. A half-written line waits for its end.
 *
 * The parent writes whole batches of lines in one write, but a reader can still see the first part
 * of one; and after a crash the last line may never end. No watch of the file is set up: the parent
 * pokes the view when there is news.
 */
#include "orchestrator/view/tail.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "orchestrator/record.h"

int tail_open(struct tail *tail, const char *path, struct err *err)
{
	buf_init(&tail->partial, RECORD_LINE_MAX);
	tail->fd = open(path, O_RDONLY | O_CLOEXEC);
	return tail->fd < 0 ? err_sys(err, "cannot open '%s'", path) : 0;
}

void tail_release(struct tail *tail)
{
	buf_release(&tail->partial);
	if (tail->fd >= 0)
		close(tail->fd);
	tail->fd = -1;
}

int tail_read(struct tail *tail, void (*on_line)(const char *line, size_t n, void *arg), void *arg,
	      struct err *err)
{
	ssize_t n;

	while ((n = buf_read(&tail->partial, tail->fd, 65536)) > 0) {
		size_t used = 0;
		char *end;
		while ((end = memchr(tail->partial.data + used, '\n', tail->partial.len - used))) {
			size_t len = (size_t)(end - tail->partial.data) - used;
			on_line(tail->partial.data + used, len, arg);
			used += len + 1;
		}
		buf_drop(&tail->partial, used);
	}
	return n < 0 ? err_sys(err, "cannot read the journal") : 0;
}
