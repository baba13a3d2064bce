/*
 * trace_role.c - see trace_role.h.
 */
#include "tests/faults/trace_role.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"

struct trace_role *trace_role_named(struct trace_roles *roles, const char *name)
{
	for (size_t i = 0; i < roles->n; i++)
		if (strcmp(roles->list[i]->name, name) == 0)
			return roles->list[i];
	struct trace_role *role = mem_alloc(sizeof(*role));
	role->name = mem_strdup(name);
	role->tool = strcmp(name, "tool") == 0;
	MEM_GROW(roles->list, roles->cap, roles->n + 1);
	roles->list[roles->n++] = role;
	return role;
}

void trace_roles_release(struct trace_roles *roles)
{
	for (size_t i = 0; i < roles->n; i++) {
		free(roles->list[i]->name);
		free(roles->list[i]);
	}
	free(roles->list);
	*roles = (struct trace_roles){0};
}

struct trace_role *trace_role_first(struct trace_roles *roles)
{
	return trace_role_named(roles, "warden");
}

/* The warden's first child is the parent; what the parent forks is its copy until it runs a program. */
struct trace_role *trace_role_forked(struct trace_roles *roles, struct trace_role *parent)
{
	if (!parent)
		return trace_role_named(roles, "other");
	return strcmp(parent->name, "warden") == 0 ? trace_role_named(roles, "parent") : parent;
}

/* The first words of a command line, NUL between them. */
static void read_command(pid_t pid, char *out, size_t max)
{
	char name[64];

	snprintf(name, sizeof(name), "/proc/%d/cmdline", pid);
	AUTO_FD int fd = open(name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, out, max - 2);
	n = n < 0 ? 0 : n;
	out[n] = out[n + 1] = '\0';
}

static const char *baton_role(const char *word, const char *before)
{
	if (strcmp(word, "agent") == 0 || strcmp(word, "view") == 0)
		return word;
	return before; /* the command itself, started through a shell or env */
}

struct trace_role *trace_role_executed(struct trace_roles *roles, struct trace_role *before,
				       pid_t pid)
{
	char command[4096], path[64], exe[4096];

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	ssize_t n = readlink(path, exe, sizeof(exe) - 1);
	exe[n < 0 ? 0 : n] = '\0';
	const char *slash = strrchr(exe, '/'), *program = slash ? slash + 1 : exe;
	if (before->tool)
		return before;
	if (strcmp(program, "baton-gateway") == 0)
		return trace_role_named(roles, "gateway");
	if (strcmp(program, "baton-rehearse") == 0)
		return trace_role_named(roles, "rehearsal");
	if (strcmp(program, "baton-git") == 0)
		return trace_role_named(roles, "git");
	if (strcmp(before->name, "git") == 0 || strcmp(before->name, "warden") == 0)
		return before; /* the git program that baton-git runs works for it */
	if (strcmp(program, "baton") != 0)
		return trace_role_named(roles, "tool");
	read_command(pid, command, sizeof(command));
	return trace_role_named(roles, baton_role(command + strlen(command) + 1, before->name));
}

struct trace_role *trace_role_touched(struct trace_roles *roles, struct trace_role *role,
				      const char *path)
{
	char name[64];
	unsigned agent, generation;

	if (!path || strcmp(role->name, "agent") != 0)
		return role;
	for (const char *at = strstr(path, "/agents/a"); at; at = strstr(at + 1, "/agents/a")) {
		if (sscanf(at, "/agents/a%u/%u", &agent, &generation) == 2) {
			snprintf(name, sizeof(name), "a%u.%u", agent, generation);
			return trace_role_named(roles, name);
		}
	}
	return role;
}
