/*
 * landlock.h - Landlock as far as this kernel's ABI goes (internal to box/).
 *
 * Debian 12's headers know ABI 3; what came later is declared here and picked by the ABI number at
 * run time.
 */
#ifndef BATON_WORKTREES_BOX_LANDLOCK_H
#define BATON_WORKTREES_BOX_LANDLOCK_H

#include <stdbool.h>

#include "base/err.h"
#include "worktrees/box/box.h"

int landlock_abi(void); /* 0: none */

struct landlock_rules;
/* A ruleset that denies all that this ABI can handle. With tcp, TCP bind and connect are left
 * alone. */
struct landlock_rules *landlock_new(bool tcp, struct err *err);
void landlock_free(struct landlock_rules *rules); /* NULL allowed */
/* A folder or a file. ERR_NOT_FOUND if it is not there. */
int landlock_allow_read(struct landlock_rules *rules, const char *path, struct err *err);
int landlock_allow_write(struct landlock_rules *rules, const char *path, struct err *err);
/* Skips what is not there or cannot be reached. */
int landlock_allow_if_there(struct landlock_rules *rules, const char *path, bool write,
			    struct err *err);
/* The file or device that fd has open, with the access that fd has. Nothing else (pipes and
 * sockets need no rule), and no failure: it is a convenience. */
void landlock_allow_open(struct landlock_rules *rules, int fd);
/* Puts the calling thread into the domain, for good. Needs no_new_privs. */
int landlock_enter(struct landlock_rules *rules, struct err *err);

#endif
