/*
 * box_try.c - the program box-try: makes one system call inside a box and says what came of it.
 *
 *     box-try NAME [ARG]      prints "NAME ok" or "NAME EPERM" (or what errno says)
 *
 * The calls are raw: libraries fall back, look up names or refuse for reasons of their own.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"

static long reap(long pid)
{
	if (pid == 0)
		_exit(0);
	if (pid > 0)
		waitpid((pid_t)pid, NULL, 0);
	return pid;
}

static long try_traceme(const char *arg)
{
	return ptrace(PTRACE_TRACEME, 0, 0, 0);
}

static long try_attach(const char *arg)
{
	return ptrace(PTRACE_SEIZE, atol(arg), 0, 0);
}

static long vm_readv(pid_t pid)
{
	static char from[8], to[8];
	struct iovec local = {.iov_base = to, .iov_len = 8},
		     remote = {.iov_base = from, .iov_len = 8};

	return syscall(SYS_process_vm_readv, pid, &local, 1, &remote, 1, 0);
}

static long try_vm_readv(const char *arg)
{
	return vm_readv(getpid());
}

static long try_pidfd_getfd(const char *arg)
{
	AUTO_FD int pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);

	return syscall(SYS_pidfd_getfd, pidfd, 0, 0);
}

static long try_io_uring(const char *arg)
{
	static char params[256];

	return syscall(SYS_io_uring_setup, 1, params);
}

static long try_mount(const char *arg)
{
	return syscall(SYS_mount, "none", "/proc", "tmpfs", 0, NULL);
}

static long try_unshare(const char *arg)
{
	return syscall(SYS_unshare, CLONE_NEWUSER | CLONE_NEWNS);
}

static long try_clone_user(const char *arg)
{
	return reap(syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0));
}

/* The kernel drops the upper half; a filter that compares all of it lets this pass. */
static long try_clone_high(const char *arg)
{
	return reap(syscall(SYS_clone, 0x100000000ul | CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0));
}

static long try_clone3(const char *arg)
{
	uint64_t args[8] = {[4] = SIGCHLD};

	return reap(syscall(SYS_clone3, args, sizeof(args)));
}

static long try_setns(const char *arg)
{
	AUTO_FD int fd = open("/proc/self/ns/uts", O_RDONLY | O_CLOEXEC);

	return syscall(SYS_setns, fd, 0);
}

static long try_chroot(const char *arg)
{
	return syscall(SYS_chroot, ".");
}

static long try_open_tree(const char *arg)
{
	return syscall(SYS_open_tree, AT_FDCWD, ".", O_CLOEXEC);
}

static long try_handle(const char *arg)
{
	static char handle[64];

	return syscall(SYS_open_by_handle_at, AT_FDCWD, handle, O_RDONLY);
}

static long try_keyctl(const char *arg)
{
	return syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_PROCESS_KEYRING, 1);
}

static long try_userfaultfd(const char *arg)
{
	return syscall(SYS_userfaultfd, 1 /* user faults only: needs no privilege */);
}

static long try_bpf(const char *arg)
{
	return syscall(SYS_bpf, 0, NULL, 0);
}

static long try_perf(const char *arg)
{
	static char attr[128];

	return syscall(SYS_perf_event_open, attr, 0, -1, -1, 0);
}

static long try_shmget(const char *arg)
{
	long id = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);

	if (id >= 0)
		shmctl((int)id, IPC_RMID, NULL);
	return id;
}

static long try_prlimit(const char *arg)
{
	struct rlimit old;

	return syscall(SYS_prlimit64, atol(arg), RLIMIT_CPU, NULL, &old);
}

static long try_own_limit(const char *arg)
{
	struct rlimit old;

	return getrlimit(RLIMIT_CPU, &old) < 0 ? -1 : setrlimit(RLIMIT_CPU, &old);
}

static long try_kill(const char *arg)
{
	return kill((pid_t)atol(arg), SIGTERM);
}

static long try_kill_own(const char *arg)
{
	pid_t pid = fork();

	if (pid == 0) {
		pause();
		_exit(0);
	}
	long rc = kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return rc;
}

/* Both halves of the argument: the kernel looks at the low one. Not a terminal: ENOTTY outside. */
static long try_tiocsti(const char *arg)
{
	return syscall(SYS_ioctl, STDIN_FILENO, TIOCSTI, "x");
}

static long try_tiocsti_high(const char *arg)
{
	return syscall(SYS_ioctl, STDIN_FILENO, 0x100000000ul | TIOCSTI, "x");
}

static long try_unknown(const char *arg)
{
	return syscall(471);
}

static long try_x32(const char *arg)
{
	return syscall(0x40000000 + SYS_getpid);
}

/* The table of 32-bit calls, by the old door: 20 is getpid there. A kernel without that table ends
 * us by SIGSEGV. */
static long try_int80(const char *arg)
{
#ifdef __x86_64__
	const struct sigaction plain = {.sa_handler = SIG_DFL};
	long rc;

	sigaction(SIGSEGV, &plain, NULL); /* not a sanitizer's report */
	__asm__ volatile("int $0x80" : "=a"(rc) : "0"(20) : "memory");
	if (rc < 0) {
		errno = (int)-rc;
		return -1;
	}
	return rc;
#else
	errno = ENOSYS;
	return -1;
#endif
}

static long try_truncate(const char *arg)
{
	return truncate(arg, 0);
}

static long try_trunc_read(const char *arg)
{
	return open(arg, O_RDONLY | O_TRUNC | O_CLOEXEC);
}

/* Access mode 3, "for ioctl only", truncates as well. */
static long try_trunc_three(const char *arg)
{
	return open(arg, O_ACCMODE | O_TRUNC | O_CLOEXEC);
}

static long try_exchange(const char *arg)
{
	return syscall(SYS_renameat2, AT_FDCWD, "mine", AT_FDCWD, arg, 2 /* RENAME_EXCHANGE */);
}

static long try_death_signal(const char *arg)
{
	int sig = 0;

	prctl(PR_GET_PDEATHSIG, &sig);
	errno = ESRCH;
	return sig == SIGKILL ? 0 : -1;
}

/* /proc/kcore is everybody's memory; root could read it. */
static long try_kcore(const char *arg)
{
	return open("/proc/kcore", O_RDONLY | O_CLOEXEC);
}

static long try_tcp(const char *arg)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_port = htons((uint16_t)atol(arg)),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return fd < 0 ? -1 : connect(fd, (struct sockaddr *)&to, sizeof(to));
}

static long try_udp(const char *arg)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_port = htons((uint16_t)atol(arg)),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	return fd < 0 ? -1 : sendto(fd, "x", 1, 0, (struct sockaddr *)&to, sizeof(to));
}

/* A server and a client of our own, both in here. */
static long try_own_tcp(const char *arg)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(at);
	int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (server < 0 || client < 0 || bind(server, (struct sockaddr *)&at, n) < 0 ||
	    listen(server, 1) < 0 || getsockname(server, (struct sockaddr *)&at, &n) < 0)
		return -1;
	return connect(client, (struct sockaddr *)&at, n);
}

/* A leading '@' is an abstract name. */
static socklen_t unix_address(const char *name, struct sockaddr_un *ret)
{
	*ret = (struct sockaddr_un){.sun_family = AF_UNIX};
	size_t n = MIN(strlen(name), sizeof(ret->sun_path) - 1);

	memcpy(ret->sun_path, name, n);
	if (*name == '@')
		ret->sun_path[0] = '\0';
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + (*name != '@'));
}

static long try_unix(const char *arg)
{
	struct sockaddr_un to;
	socklen_t n = unix_address(arg, &to);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return fd < 0 ? -1 : connect(fd, (struct sockaddr *)&to, n);
}

static long unix_datagram(int fd, const char *arg)
{
	struct sockaddr_un to;
	socklen_t n = unix_address(arg, &to);

	return fd < 0 ? -1 : sendto(fd, "x", 1, 0, (struct sockaddr *)&to, n);
}

static long try_unix_dgram(const char *arg)
{
	return unix_datagram(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), arg);
}

/* To a Unix socket SOCK_RAW is SOCK_DGRAM. */
static long try_unix_raw(const char *arg)
{
	return unix_datagram(socket(AF_UNIX, SOCK_RAW | SOCK_CLOEXEC, 0), arg);
}

/* One of a connected pair may send elsewhere all the same. */
static long try_unix_pair_dgram(const char *arg)
{
	int fds[2] = {-1, -1};

	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, fds) < 0)
		return -1;
	return unix_datagram(fds[0], arg);
}

static long try_unix_pair(const char *arg)
{
	int fds[2];

	return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds);
}

static long try_vsock(const char *arg)
{
	return socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

static long try_packet(const char *arg)
{
	return socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

static const struct {
	const char *name;
	long (*run)(const char *arg);
} tries[] = {
	{"traceme", try_traceme},
	{"attach", try_attach},
	{"vm_readv", try_vm_readv},
	{"pidfd_getfd", try_pidfd_getfd},
	{"io_uring", try_io_uring},
	{"mount", try_mount},
	{"unshare", try_unshare},
	{"clone_user", try_clone_user},
	{"clone_high", try_clone_high},
	{"clone3", try_clone3},
	{"setns", try_setns},
	{"chroot", try_chroot},
	{"open_tree", try_open_tree},
	{"handle", try_handle},
	{"keyctl", try_keyctl},
	{"userfaultfd", try_userfaultfd},
	{"bpf", try_bpf},
	{"perf", try_perf},
	{"shmget", try_shmget},
	{"prlimit", try_prlimit},
	{"own_limit", try_own_limit},
	{"kill", try_kill},
	{"kill_own", try_kill_own},
	{"tiocsti", try_tiocsti},
	{"tiocsti_high", try_tiocsti_high},
	{"unknown", try_unknown},
	{"x32", try_x32},
	{"int80", try_int80},
	{"truncate", try_truncate},
	{"trunc_read", try_trunc_read},
	{"trunc_three", try_trunc_three},
	{"exchange", try_exchange},
	{"death_signal", try_death_signal},
	{"kcore", try_kcore},
	{"tcp", try_tcp},
	{"udp", try_udp},
	{"own_tcp", try_own_tcp},
	{"unix", try_unix},
	{"unix_dgram", try_unix_dgram},
	{"unix_raw", try_unix_raw},
	{"unix_pair_dgram", try_unix_pair_dgram},
	{"unix_pair", try_unix_pair},
	{"vsock", try_vsock},
	{"packet", try_packet},
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc >= 2 && i < ARRAY_SIZE(tries); i++) {
		if (strcmp(tries[i].name, argv[1]) != 0)
			continue;
		errno = 0;
		long rc = tries[i].run(argc > 2 ? argv[2] : "");
		printf("%s %s\n", argv[1], rc >= 0 ? "ok" : strerrorname_np(errno));
		return 0;
	}
	fprintf(stderr, "box-try: no such call\n");
	return 2;
}
