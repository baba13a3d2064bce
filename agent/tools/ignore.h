/*
 * ignore.h - .gitignore rules, nested as folders are.
 *
 * A stack of rule lists: info/exclude of the repository, then one list per folder from the root
 * down. The newest list decides first and within a list the last rule, as git does. The user's
 * global ignore file is not read: what an agent sees must not depend on whose machine it runs on.
 */
#ifndef BATON_AGENT_TOOLS_IGNORE_H
#define BATON_AGENT_TOOLS_IGNORE_H

#include <stdbool.h>
#include <stddef.h>

struct ignore_list;

struct ignore {
	struct ignore_list *lists;
	size_t count, cap;
};

void ignore_init(struct ignore *ignore);
void ignore_release(struct ignore *ignore);

/* Pushes the rules of a file in dir_fd (a missing or unreadable one gives an empty list). base: the
 * folder for which they hold, relative to the root, "" for the root. A symlink is not followed. */
void ignore_push(struct ignore *ignore, const char *base, int dir_fd, const char *file);
void ignore_pop(struct ignore *ignore);

/* Whether the path (relative to the root, its parents not ignored) is ignored. */
bool ignore_match(const struct ignore *ignore, const char *path, bool is_dir);

#endif
