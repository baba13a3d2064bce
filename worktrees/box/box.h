/*
 * box.h - the kernel boundary round what agents execute: what this kernel gives, and applying it.
 *
 * Levels of design.md, best first: namespaces (1, a later issue), landlock (2: Landlock ABI >= 6
 * and seccomp), partial (3: an older Landlock with seccomp that also refuses truncate), none. Only
 * the program baton-box applies a box (to itself, before it executes the command); others just
 * probe.
 */
#ifndef BATON_WORKTREES_BOX_BOX_H
#define BATON_WORKTREES_BOX_BOX_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum box_level { BOX_NONE, BOX_PARTIAL, BOX_LANDLOCK, BOX_NAMESPACES };
const char *box_level_name(enum box_level level); /* "none", "partial", "landlock", "namespaces" */

struct box_facts {
	int landlock_abi;     /* 0: none */
	bool seccomp;	      /* filters can be installed */
	bool user_namespaces; /* for doctor: level 1 would be possible */
	enum box_level best;  /* what baton-box --level auto gives */
};
/* Cheap (a few system calls, no process): safe to call in the parent. */
void box_probe(struct box_facts *ret);
/* The same without user_namespaces (false), which is the half that takes time. */
void box_probe_level(struct box_facts *ret);

#define BOX_NOTES_MAX 8
/* What a box on this kernel does not hold back, one sentence each, for doctor and the report.
 * Returns how many of ret are set; the texts are static and free of characters that JSON escapes.
 */
size_t box_notes(const struct box_facts *facts, const char *ret[BOX_NOTES_MAX]);

enum box_network { BOX_NETWORK_NONE, BOX_NETWORK_LOOPBACK, BOX_NETWORK_OPEN };

struct box_policy {
	enum box_level level; /* wanted; BOX_NAMESPACES is refused for now */
	enum box_network network;
	const char *const *read;  /* NULL-terminated folders and files: read and execute */
	const char *const *write; /* NULL-terminated: read, execute, write, create, remove */
	const char *home;	  /* known tool folders below it can be read; NULL: none */
};
/* Restricts the calling thread for good. What does not exist among the paths is skipped if it is a
 * default, an error if it was asked for. Files that descriptors 0 to 2 have open may be opened
 * again by name, with no more rights than the descriptor has. */
int box_apply(const struct box_policy *policy, struct err *err);

#endif
