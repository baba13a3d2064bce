/*
 * user_file.h - a file that the user asked for by name (--sarif, --output).
 */
#ifndef BATON_ORCHESTRATOR_USER_FILE_H
#define BATON_ORCHESTRATOR_USER_FILE_H

#include "base/buf.h"
#include "base/err.h"

/* Can it be written? Asked before the work that is to go into it is paid for; nothing is made. `what`
 * names it in the message ("--sarif"). ERR_USAGE. */
int user_file_check(const char *what, const char *path, struct err *err);

/* Into a device or a pipe (/dev/stdout) it is written; a link keeps being one, also when nothing is
 * where it leads yet; a file is replaced whole where its folder allows that. A pipe
 * without a reader is an error; one that takes its time (a pager) is waited for until INT, TERM or HUP
 * comes, which then reaches its handler. `what` as above; NULL: a file of our own. */
int user_file_write(const char *what, const char *path, const struct buf *text, struct err *err);

#endif
