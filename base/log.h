/*
 * log.h - diagnostics of a process to its stderr, and nothing else.
 *
 * An error is logged once, where it is handled. Each line: stamp, process name, level, text, made
 * printable (I12). What users must see is an event or a message of the command, not a log line.
 */
#ifndef BATON_BASE_LOG_H
#define BATON_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

void log_init(const char *process, enum log_level level); /* process: "parent", "agent a1" */
void log_set_fd(int fd);
/* --verbose: everything from now on, also after another log_init. A child is told in its start. */
void log_be_verbose(void);
bool log_is_verbose(void);
/* At most so many bytes in all, then one line that says so and nothing more: for a log in a file,
 * which nobody watches while it grows. 0: no limit. */
void log_set_limit(size_t bytes);
void log_at(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
#define log_error(...) log_at(LOG_ERROR, __VA_ARGS__)
#define log_warn(...)  log_at(LOG_WARN, __VA_ARGS__)
#define log_info(...)  log_at(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_at(LOG_DEBUG, __VA_ARGS__)

#endif
