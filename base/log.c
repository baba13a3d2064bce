/*
 * log.c - diagnostic lines on stderr.
 *
 * Every line goes out in one write, so that lines of several processes on one file do not mix, and
 * passes text_printable first: a log line may quote what a model or a tool said, and a terminal
 * must not obey it (I12). Nothing here fails visibly: a log that cannot be written is dropped.
 */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/text.h"

enum { LOG_LINE_MAX = 4096 };

static struct {
	char process[64];
	enum log_level level;
	int fd;
	bool verbose;
	size_t written, limit;
} log_state = {.process = "baton", .level = LOG_WARN, .fd = STDERR_FILENO};

void log_init(const char *process, enum log_level level)
{
	snprintf(log_state.process, sizeof(log_state.process), "%s", process);
	log_state.level = level;
}

void log_set_fd(int fd)
{
	log_state.fd = fd;
}

void log_be_verbose(void)
{
	log_state.verbose = true;
}

bool log_is_verbose(void)
{
	return log_state.verbose;
}

void log_set_limit(size_t bytes)
{
	log_state.limit = bytes;
	log_state.written = 0;
}

/* The line that passes the limit is replaced by one that says so. */
static bool log_is_full(struct buf *line)
{
	size_t before = log_state.written;

	if (!log_state.limit)
		return false;
	log_state.written += line->len;
	if (log_state.written <= log_state.limit)
		return false;
	if (before > log_state.limit)
		return true;
	buf_clear(line);
	buf_adds(line, "(the log has reached its limit; no more of it is kept)\n");
	return false;
}

static const char *level_name(enum log_level level)
{
	static const char *const names[] = {"error", "warning", "info", "debug"};
	return names[level];
}

void log_at(enum log_level level, const char *fmt, ...)
{
	if (level > log_state.level && !log_state.verbose)
		return;
	int saved = errno;
	char text[LOG_LINE_MAX];
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	size_t len = n < 0 ? 0 : (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1;

	AUTO_BUF struct buf line = BUF_INIT;
	char stamp[CLOCK_STAMP_SIZE];
	buf_addf(&line, "%s %s %s: ", clock_stamp(clock_wall_ms(), stamp), log_state.process,
		 level_name(level));
	text_printable(&line, text, text_floor(text, len, len), true);
	buf_addc(&line, '\n');
	if (log_is_full(&line))
		return;
	ssize_t ignored = write(log_state.fd, line.data, line.len);
	(void)ignored;
	errno = saved;
}
