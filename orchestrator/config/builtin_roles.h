/*
 * builtin_roles.h - the roles that ship inside the program (data/roles/), embedded at build time.
 */
#ifndef BATON_ORCHESTRATOR_CONFIG_BUILTIN_ROLES_H
#define BATON_ORCHESTRATOR_CONFIG_BUILTIN_ROLES_H

#include <stddef.h>

struct builtin_role {
	const char *name;
	const char *text; /* the Markdown file, front matter and body; NUL-terminated */
	size_t size;
};
extern const struct builtin_role builtin_roles[];
extern const size_t builtin_roles_count;

#endif
