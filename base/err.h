/*
 * err.h - the error value that every fallible function fills.
 *
 * A function that can fail for more than one reason returns int (0 or -1) and takes
 * `struct err *err` last. The value is untouched on success. Messages are lower case, without a
 * full stop, cause first, the subject in quotes, and say what to do next where a user reads them.
 * An err owns nothing: it can be copied and dropped freely. `err` may be NULL everywhere.
 */
#ifndef BATON_BASE_ERR_H
#define BATON_BASE_ERR_H

#include <stdbool.h>
#include <stddef.h>

/* Only the codes that some caller branches on. */
enum err_code {
	ERR_NONE = 0,
	ERR_IO,	       /* a system call failed; sys holds errno */
	ERR_NOT_FOUND, /* the named thing does not exist */
	ERR_EXISTS,    /* the named thing is there already */
	ERR_DENIED,    /* permission, boundary or policy says no */
	ERR_INVALID,   /* input from outside is malformed */
	ERR_TOO_LARGE, /* a stated maximum was reached */
	ERR_USAGE,     /* wrong flags or configuration: exit status 2 */
	ERR_TIMEOUT,
	ERR_CANCELLED,
	ERR_CLOSED,	 /* the peer went away */
	ERR_CHANGED,	 /* the thing changed since it was last looked at */
	ERR_UNSUPPORTED, /* this machine, repository or peer cannot do it */
	ERR_BUSY,	 /* somebody else holds it; trying later may work */
	ERR_NO_SPACE,	 /* ENOSPC, EDQUOT, EFBIG */
};

struct err {
	enum err_code code;
	int sys;	   /* errno, or 0 */
	char message[512]; /* UTF-8, NUL-terminated, cut at a character boundary */
};

#define ERR_INIT                                                                                   \
	{                                                                                          \
		.code = ERR_NONE                                                                   \
	}

/* Fills *err (if not NULL) and returns -1. errno is kept in err->sys when code is ERR_IO (and
 * ENOSPC/EDQUOT/EFBIG become ERR_NO_SPACE); strerror text is NOT added, see err_sys. */
int err_set(struct err *err, enum err_code code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* As err_set with ERR_IO (ERR_NOT_FOUND for ENOENT and ENOTDIR, ERR_DENIED for EACCES/EPERM,
 * ERR_EXISTS for EEXIST, ERR_NO_SPACE for ENOSPC/EDQUOT/EFBIG) and ": strerror(errno)" appended; a
 * limit of this process is named with its value and the command that raises it. Returns -1. */
int err_sys(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Puts "prefix: " before the message; the code stays. Returns -1 so that callers can end on it. */
int err_prefix(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* This process or the machine is short of descriptors or memory: the next thing that is tried will fail as well. */
bool err_is_shortage(const struct err *err);

const char *err_code_name(enum err_code code);

#endif
