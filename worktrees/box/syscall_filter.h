/*
 * syscall_filter.h - the system calls that a box refuses (internal to box/).
 */
#ifndef BATON_WORKTREES_BOX_SYSCALL_FILTER_H
#define BATON_WORKTREES_BOX_SYSCALL_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/audit.h>
#include <linux/filter.h>

#include "base/err.h"
#include "worktrees/box/box.h"

/* What the kernel calls the one system call table that the filter knows; 0: none of ours. */
#if defined(__x86_64__) && defined(__LP64__)
#define SYSCALL_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define SYSCALL_ARCH AUDIT_ARCH_AARCH64
#elif defined(__riscv) && __riscv_xlen == 64
#define SYSCALL_ARCH AUDIT_ARCH_RISCV64
#else
#define SYSCALL_ARCH 0
#endif

/* The first rule that matches decides; a call that none matches is allowed. Arguments are compared
 * in their low half: the kernel looks at no more of those that stand in our rules. */
struct syscall_rule {
	int nr;
	int arg;	      /* 0 to 5; -1: whatever the arguments are */
	uint32_t mask, value; /* matches if (argument & mask) == value */
	int error;	      /* EPERM or ENOSYS: what the call fails with; 0: allowed */
};

struct syscall_rules {
	struct syscall_rule list[160];
	size_t count;
};

/* The list for one box. With guard_truncate, truncation that Landlock below ABI 3 does not see is
 * refused too. */
void syscall_rules_fill(struct syscall_rules *rules, enum box_network network, bool guard_truncate);

/* Calls above it are unknown to the rules (and might be io_uring's successor): ENOSYS. x32 numbers
 * are far above it. */
#define SYSCALL_NEWEST	   470
#define SYSCALL_FILTER_MAX 512

/* Writes the program that decides as that list does, and returns its length. */
size_t syscall_filter_build(enum box_network network, bool guard_truncate,
			    struct sock_filter code[SYSCALL_FILTER_MAX]);
/* Builds the filter from that list and installs it for the calling thread, for good. Needs
 * no_new_privs. */
int syscall_filter_apply(enum box_network network, bool guard_truncate, struct err *err);

#endif
