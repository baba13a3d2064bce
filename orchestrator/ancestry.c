/*
 * ancestry.c - see ancestry.h. Used by the parent, of those who knock at its control socket, and by commands, of
 * themselves.
 *
 * A parent is the subreaper of all that its agents start, so whatever detaches itself stays below it. The walk is not
 * atomic; a process that ends meanwhile leaves its children to that same subreaper, so they are met all the same.
 */
#include "orchestrator/ancestry.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"
#include "base/memory.h"

#define DEPTH_MAX 1000

static ssize_t read_entry(pid_t pid, const char *name, char *text, size_t size)
{
	AUTO_FREE char *path = mem_printf("/proc/%d/%s", (int)pid, name);
	AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

	text[n > 0 ? n : 0] = '\0';
	return n;
}

/* -1: it cannot be looked up. The name of a program may hold anything, also ") S 1". */
static pid_t parent_of(pid_t pid)
{
	char text[512];
	int parent = -1;

	if (read_entry(pid, "stat", text, sizeof(text)) <= 0)
		return -1;
	const char *rest = strrchr(text, ')');
	if (!rest || sscanf(rest, ") %*c %d", &parent) != 1)
		return -1;
	return parent;
}

bool ancestry_has(pid_t pid, pid_t ancestor)
{
	for (int i = 0; pid > 1 && i < DEPTH_MAX; i++) {
		if (pid == ancestor)
			return true;
		pid = parent_of(pid);
	}
	return pid < 0 || pid == ancestor;
}

static bool is_agent(pid_t pid)
{
	static const char words[] = "baton\0agent";
	char text[64];

	return read_entry(pid, "cmdline", text, sizeof(text)) >= (ssize_t)sizeof(words) - 1 &&
	       memcmp(text, words, sizeof(words)) == 0;
}

bool ancestry_is_agents(void)
{
	pid_t pid = getppid();

	if (env_get("BATON_BOX"))
		return true;
	for (int i = 0; pid > 1 && i < DEPTH_MAX; i++) {
		if (is_agent(pid))
			return true;
		pid = parent_of(pid);
	}
	return false;
}
