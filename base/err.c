/*
 * err.c - filling the error value.
 *
 * Everything here must work when little else does: no allocation, no locks, and errno is read
 * before anything can change it. A message that does not fit is cut at a UTF-8 boundary, because
 * it may end in a JSON document (a journal record, an answer frame), where half a character would
 * be refused by the next reader.
 */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/text.h"

/* vsnprintf cuts bytes, not characters: repair the end when it cut. */
static void cut_at_character(char *message, size_t size, size_t wanted)
{
	if (wanted < size)
		return;
	size_t len = strlen(message);
	message[text_valid_prefix(message, len)] = '\0';
}

__attribute__((format(printf, 2, 0))) static void message_set(struct err *err, const char *fmt,
							      va_list ap)
{
	int n = vsnprintf(err->message, sizeof(err->message), fmt, ap);
	if (n < 0)
		err->message[0] = '\0';
	else
		cut_at_character(err->message, sizeof(err->message), (size_t)n);
}

static void message_append(struct err *err, const char *text)
{
	size_t len = strlen(err->message);
	size_t room = sizeof(err->message) - len;
	int n = snprintf(err->message + len, room, "%s", text);
	cut_at_character(err->message, room, (size_t)n);
}

static enum err_code code_of_errno(int number)
{
	switch (number) {
	case ENOENT:
	case ENOTDIR: /* a part of the path is no folder: nothing is there either */
		return ERR_NOT_FOUND;
	case EEXIST: return ERR_EXISTS;
	case EACCES:
	case EPERM: return ERR_DENIED;
	case ENOSPC:
	case EFBIG: /* ulimit -f: no room for this file */
	case EDQUOT: return ERR_NO_SPACE;
	default: return ERR_IO;
	}
}

/* What the system's words leave open: which limit it is, and how it is raised. */
static void append_limit(struct err *err, int number)
{
	struct rlimit limit;
	char text[96];

	if (number == ENFILE)
		message_append(err, " (in the whole machine: see fs.file-max)");
	if (number == EMFILE && getrlimit(RLIMIT_NOFILE, &limit) == 0)
		snprintf(text, sizeof(text), " (a process may have %llu; 'ulimit -n' raises it)",
			 (unsigned long long)limit.rlim_cur);
	else if (number == EFBIG && getrlimit(RLIMIT_FSIZE, &limit) == 0 &&
		 limit.rlim_cur != RLIM_INFINITY)
		snprintf(text, sizeof(text),
			 " (no file may be over %llu bytes; 'ulimit -f' raises it)",
			 (unsigned long long)limit.rlim_cur);
	else
		return;
	message_append(err, text);
}

int err_set(struct err *err, enum err_code code, const char *fmt, ...)
{
	int number = errno;
	if (!err)
		return -1;
	err->code = code;
	err->sys = code == ERR_IO || code == ERR_NO_SPACE ? number : 0;
	if (code == ERR_IO && code_of_errno(number) == ERR_NO_SPACE)
		err->code = ERR_NO_SPACE;
	va_list ap;
	va_start(ap, fmt);
	message_set(err, fmt, ap);
	va_end(ap);
	return -1;
}

int err_sys(struct err *err, const char *fmt, ...)
{
	int number = errno;
	if (!err)
		return -1;
	err->code = code_of_errno(number);
	err->sys = number;
	va_list ap;
	va_start(ap, fmt);
	message_set(err, fmt, ap);
	va_end(ap);
	message_append(err, ": ");
	message_append(err, strerror(number));
	append_limit(err, number);
	return -1;
}

int err_prefix(struct err *err, const char *fmt, ...)
{
	if (!err)
		return -1;
	/* By way of a copy: a prefix may quote the message that it is put before. */
	struct err next = {.code = err->code, .sys = err->sys};
	va_list ap;
	va_start(ap, fmt);
	message_set(&next, fmt, ap);
	va_end(ap);
	message_append(&next, ": ");
	message_append(&next, err->message);
	*err = next;
	return -1;
}

bool err_is_shortage(const struct err *err)
{
	return err->sys == EMFILE || err->sys == ENFILE || err->sys == ENOMEM;
}

const char *err_code_name(enum err_code code)
{
	switch (code) {
	case ERR_NONE: return "none";
	case ERR_IO: return "io";
	case ERR_NOT_FOUND: return "not_found";
	case ERR_EXISTS: return "exists";
	case ERR_DENIED: return "denied";
	case ERR_INVALID: return "invalid";
	case ERR_TOO_LARGE: return "too_large";
	case ERR_USAGE: return "usage";
	case ERR_TIMEOUT: return "timeout";
	case ERR_CANCELLED: return "cancelled";
	case ERR_CLOSED: return "closed";
	case ERR_CHANGED: return "changed";
	case ERR_UNSUPPORTED: return "unsupported";
	case ERR_BUSY: return "busy";
	case ERR_NO_SPACE: return "no_space";
	}
	return "unknown";
}
