/*
 * wild.h - wildcard patterns for paths: * ? [a-z] ** and {a,b}.
 *
 * Both patterns and paths come from outside, so matching is free of exponential cases: a star goes
 * back to its newest fork only, which is enough for patterns of this kind.
 */
#ifndef BATON_AGENT_TOOLS_WILD_H
#define BATON_AGENT_TOOLS_WILD_H

#include <stdbool.h>
#include <stddef.h>

/* One component: no meaning for '/'. A backslash takes the next character as it is. */
bool wild_match_name(const char *pattern, size_t pattern_len, const char *name, size_t n);

/* A whole relative path. A component ** stands for any number of components, at the end for at
 * least one. */
bool wild_match_path(const char *pattern, const char *path);

/* Patterns as glob and grep take them: braces are expanded (at most 256 ways); one without a slash
 * matches the last component at any depth. */
struct wild_set {
	char **items;
	size_t count, cap;
};
void wild_set_init(struct wild_set *set, const char *pattern);
void wild_set_release(struct wild_set *set);
bool wild_set_match(const struct wild_set *set, const char *path);

#endif
