/*
 * syscall_rules.c - which system calls a box refuses, and why. See syscall_filter.h.
 *
 * A list of refusals, not of permissions: builds and test suites use whatever they use. Refused is
 * what reaches round Landlock (tracing, memory, descriptors and limits of other processes,
 * io_uring, mounts, namespaces, keys, handles, shared memory by number, Unix sockets of services)
 * and what a build never needs (modules, clocks, reboot). Refusals are EPERM, so that programs see
 * an ordinary failure; clone3 and openat2 are ENOSYS where their arguments would have to be looked
 * at behind a pointer, so that libraries fall back to calls that can be.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/memory.h"
#include "worktrees/box/syscall_filter.h"

#ifndef SYS_open_tree_attr
#define SYS_open_tree_attr 467 /* the same number everywhere; newer than Debian 12's headers */
#endif
#define LOW_HALF 0xffffffffu

static const int refused[] = {
	/* other processes */
	SYS_ptrace,
	SYS_process_vm_readv,
	SYS_process_vm_writev,
	SYS_kcmp,
	SYS_pidfd_getfd,
	SYS_process_madvise,
	SYS_migrate_pages,
	SYS_move_pages,
	/* other ways to do I/O and to reach files */
	SYS_io_uring_setup,
	SYS_io_uring_enter,
	SYS_io_uring_register,
	SYS_open_by_handle_at,
	SYS_userfaultfd,
	SYS_fanotify_init,
	/* mounts and namespaces */
	SYS_mount,
	SYS_umount2,
	SYS_pivot_root,
	SYS_chroot,
	SYS_unshare,
	SYS_setns,
	SYS_open_tree,
	SYS_open_tree_attr,
	SYS_move_mount,
	SYS_fsopen,
	SYS_fsconfig,
	SYS_fsmount,
	SYS_fspick,
	SYS_mount_setattr,
	/* the kernel itself */
	SYS_bpf,
	SYS_perf_event_open,
	SYS_init_module,
	SYS_finit_module,
	SYS_delete_module,
	SYS_kexec_load,
	SYS_kexec_file_load,
	SYS_reboot,
	SYS_swapon,
	SYS_swapoff,
	SYS_acct,
	SYS_quotactl,
	SYS_quotactl_fd,
	SYS_syslog,
	SYS_settimeofday,
	SYS_clock_settime,
	SYS_clock_adjtime,
	SYS_adjtimex,
	SYS_sethostname,
	SYS_setdomainname,
#ifdef SYS_iopl
	SYS_iopl,
	SYS_ioperm,
#endif
	/* keys of the session */
	SYS_keyctl,
	SYS_add_key,
	SYS_request_key,
};

/* Shared memory and queues that every process of the user finds by number or name. */
static const int shared[] = {
	SYS_shmget, SYS_shmat, SYS_msgget,     SYS_msgsnd,  SYS_msgrcv,
	SYS_semget, SYS_semop, SYS_semtimedop, SYS_mq_open,
};

static void add(struct syscall_rules *rules, struct syscall_rule rule)
{
	if (rules->count == ARRAY_SIZE(rules->list))
		abort();
	rules->list[rules->count++] = rule;
}

static void add_call(struct syscall_rules *rules, int nr, int error)
{
	add(rules, (struct syscall_rule){.nr = nr, .arg = -1, .error = error});
}

static void add_if(struct syscall_rules *rules, int nr, int arg, unsigned long mask,
		   unsigned long value, int error)
{
	add(rules, (struct syscall_rule){.nr = nr,
					 .arg = arg,
					 .mask = (uint32_t)mask,
					 .value = (uint32_t)value,
					 .error = error});
}

/* New namespaces by clone; keystrokes into a terminal; limits of another process (a CPU limit of
 * one second ends it as surely as the signal that Landlock refuses). */
static void refuse_arguments(struct syscall_rules *rules)
{
	static const unsigned long flags[] = {CLONE_NEWUSER,  CLONE_NEWNS,  CLONE_NEWPID,
					      CLONE_NEWNET,   CLONE_NEWIPC, CLONE_NEWUTS,
					      CLONE_NEWCGROUP};

	for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
		add_if(rules, SYS_clone, 0, flags[i], flags[i], EPERM);
	add_call(rules, SYS_clone3, ENOSYS);
	add_if(rules, SYS_ioctl, 1, LOW_HALF, TIOCSTI, EPERM);
	add_if(rules, SYS_ioctl, 1, LOW_HALF, TIOCLINUX, EPERM);
	add_if(rules, SYS_prlimit64, 0, LOW_HALF, 0, 0);
	add_call(rules, SYS_prlimit64, EPERM);
}

/*
 * Sockets. Landlock sees neither UDP nor the paths of Unix sockets, and a filter cannot look at
 * addresses: so whole families are refused. Without network: all but AF_UNIX, and connect (a Unix
 * socket of a service is a way out). With network connect is needed, so AF_UNIX sockets cannot be
 * made. Pairs still can, but not of datagrams: those send to any path without connect, and
 * SOCK_RAW is SOCK_DGRAM to a Unix socket.
 */
static void refuse_network(struct syscall_rules *rules, enum box_network network)
{
	add_if(rules, SYS_socketpair, 1, 0xf, SOCK_DGRAM, EPERM);
	add_if(rules, SYS_socketpair, 1, 0xf, SOCK_RAW, EPERM);
	if (network == BOX_NETWORK_NONE) {
		add_if(rules, SYS_socket, 1, 0xf, SOCK_DGRAM, EPERM);
		add_if(rules, SYS_socket, 1, 0xf, SOCK_RAW, EPERM);
		add_if(rules, SYS_socket, 0, LOW_HALF, AF_UNIX, 0);
		add_call(rules, SYS_connect, EPERM);
	} else {
		add_if(rules, SYS_socket, 0, LOW_HALF, AF_INET, 0);
		add_if(rules, SYS_socket, 0, LOW_HALF, AF_INET6, 0);
		add_if(rules, SYS_socket, 0, LOW_HALF, AF_NETLINK, 0);
	}
	add_call(rules, SYS_socket, EPERM);
}

/* Below ABI 3 a file that may only be read could be emptied. Access mode 3 ("for ioctl only")
 * truncates too, and Landlock asks no right for it. */
static void refuse_truncation(struct syscall_rules *rules)
{
	static const unsigned modes[] = {O_RDONLY | O_TRUNC, O_ACCMODE | O_TRUNC};

	add_call(rules, SYS_truncate, EPERM);
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
#ifdef SYS_open
		add_if(rules, SYS_open, 1, O_ACCMODE | O_TRUNC, modes[i], EPERM);
#endif
		add_if(rules, SYS_openat, 2, O_ACCMODE | O_TRUNC, modes[i], EPERM);
	}
	add_call(rules, SYS_openat2, ENOSYS);
}

void syscall_rules_fill(struct syscall_rules *rules, enum box_network network, bool guard_truncate)
{
	rules->count = 0;
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++)
		add_call(rules, refused[i], EPERM);
	/* A network of one's own comes with an IPC namespace of one's own. */
	for (size_t i = 0; network != BOX_NETWORK_LOOPBACK && i < ARRAY_SIZE(shared); i++)
		add_call(rules, shared[i], EPERM);
	refuse_arguments(rules);
	refuse_network(rules, network);
	if (guard_truncate)
		refuse_truncation(rules);
}
