/*
 * syscall_filter.c - see syscall_filter.h. Runs in baton-box; the only home of libseccomp.
 *
 * A list of refusals, not of permissions: builds and test suites use whatever they use. Refused is
 * what reaches round Landlock (tracing and descriptors of other processes, io_uring, mounts,
 * namespaces, keys, handles, Unix sockets of services) and what a build never needs (modules,
 * clocks, reboot). Refusals are EPERM, so that programs see an ordinary failure; clone3 and openat2
 * are ENOSYS where their arguments would have to be looked at, so that libraries fall back to calls
 * that can be.
 */
#include "worktrees/box/syscall_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/memory.h"

static const int refused[] = {
	/* other processes */
	SCMP_SYS(ptrace),
	SCMP_SYS(process_vm_readv),
	SCMP_SYS(process_vm_writev),
	SCMP_SYS(kcmp),
	SCMP_SYS(pidfd_getfd),
	SCMP_SYS(process_madvise),
	/* other ways to do I/O and to reach files */
	SCMP_SYS(io_uring_setup),
	SCMP_SYS(io_uring_enter),
	SCMP_SYS(io_uring_register),
	SCMP_SYS(open_by_handle_at),
	SCMP_SYS(userfaultfd),
	SCMP_SYS(fanotify_init),
	/* mounts and namespaces */
	SCMP_SYS(mount),
	SCMP_SYS(umount2),
	SCMP_SYS(pivot_root),
	SCMP_SYS(chroot),
	SCMP_SYS(unshare),
	SCMP_SYS(setns),
	SCMP_SYS(open_tree),
	SCMP_SYS(move_mount),
	SCMP_SYS(fsopen),
	SCMP_SYS(fsconfig),
	SCMP_SYS(fsmount),
	SCMP_SYS(fspick),
	SCMP_SYS(mount_setattr),
	/* the kernel itself */
	SCMP_SYS(bpf),
	SCMP_SYS(perf_event_open),
	SCMP_SYS(init_module),
	SCMP_SYS(finit_module),
	SCMP_SYS(delete_module),
	SCMP_SYS(kexec_load),
	SCMP_SYS(kexec_file_load),
	SCMP_SYS(reboot),
	SCMP_SYS(swapon),
	SCMP_SYS(swapoff),
	SCMP_SYS(acct),
	SCMP_SYS(quotactl),
	SCMP_SYS(syslog),
	SCMP_SYS(settimeofday),
	SCMP_SYS(clock_settime),
	SCMP_SYS(clock_adjtime),
	SCMP_SYS(adjtimex),
	SCMP_SYS(sethostname),
	SCMP_SYS(setdomainname),
	SCMP_SYS(iopl),
	SCMP_SYS(ioperm),
	/* keys of the session */
	SCMP_SYS(keyctl),
	SCMP_SYS(add_key),
	SCMP_SYS(request_key),
};

static int refuse_list(scmp_filter_ctx ctx)
{
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		if (refused[i] >= 0 &&
		    seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), refused[i], 0) < 0)
			return -1;
	}
	return 0;
}

/* New namespaces by clone; keystrokes into a terminal. */
static int refuse_arguments(scmp_filter_ctx ctx)
{
	static const unsigned long flags[] = {CLONE_NEWUSER,  CLONE_NEWNS,  CLONE_NEWPID,
					      CLONE_NEWNET,   CLONE_NEWIPC, CLONE_NEWUTS,
					      CLONE_NEWCGROUP};
	int rc = 0;

	for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
		rc |= seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
				       SCMP_A0(SCMP_CMP_MASKED_EQ, flags[i], flags[i]));
	rc |= seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	rc |= seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(ioctl), 1,
			       SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffffu, TIOCSTI));
	rc |= seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(ioctl), 1,
			       SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffffu, TIOCLINUX));
	return rc;
}

/* The kernel looks at the low half of the register only, so a filter must as well. */
static int refuse_family(scmp_filter_ctx ctx, int family)
{
	return seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(socket), 1,
				SCMP_A0(SCMP_CMP_MASKED_EQ, 0xffffffffu, (unsigned)family));
}

/*
 * Sockets. Landlock sees neither UDP nor the paths of Unix sockets, and a filter cannot look at
 * addresses: so whole families are refused. Without network: all but AF_UNIX, and connect (a Unix
 * socket of a service is a way out). With network: connect is needed, so AF_UNIX sockets cannot be
 * made (socketpair still can).
 */
static int refuse_network(scmp_filter_ctx ctx, enum box_network network)
{
	int rc = 0;

	if (network == BOX_NETWORK_NONE) {
		rc |= seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(socket), 1,
				       SCMP_A0(SCMP_CMP_NE, AF_UNIX));
		rc |= seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(connect), 0);
		/* A datagram needs no connect to reach a service. */
		rc |= seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(socket), 2,
				       SCMP_A0(SCMP_CMP_EQ, AF_UNIX),
				       SCMP_A1(SCMP_CMP_MASKED_EQ, 0xf, SOCK_DGRAM));
		return rc;
	}
	rc |= refuse_family(ctx, AF_UNIX);
	rc |= refuse_family(ctx, AF_PACKET);
	rc |= refuse_family(ctx, AF_VSOCK);
	return rc;
}

/* Below ABI 3: a file that may only be read could be emptied. */
static int refuse_truncation(scmp_filter_ctx ctx)
{
	const unsigned mask = O_ACCMODE | O_TRUNC;
	int rc = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(truncate), 0);

	rc |= seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(open), 1,
			       SCMP_A1(SCMP_CMP_MASKED_EQ, mask, O_RDONLY | O_TRUNC));
	rc |= seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(openat), 1,
			       SCMP_A2(SCMP_CMP_MASKED_EQ, mask, O_RDONLY | O_TRUNC));
	rc |= seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(openat2), 0);
	return rc;
}

int syscall_filter_apply(enum box_network network, bool guard_truncate, struct err *err)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);

	if (!ctx)
		return err_set(err, ERR_UNSUPPORTED, "cannot make a system call filter");
	/* Calls of other architectures' tables (32-bit) are refused as a whole: the default
	 * bad-arch action. */
	int rc = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS));
	rc |= seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	rc |= refuse_list(ctx);
	rc |= refuse_arguments(ctx);
	rc |= refuse_network(ctx, network);
	if (guard_truncate)
		rc |= refuse_truncation(ctx);
	if (rc == 0)
		rc = seccomp_load(ctx);
	seccomp_release(ctx);
	return rc < 0 ? err_set(err, ERR_UNSUPPORTED, "cannot install the system call filter") : 0;
}
