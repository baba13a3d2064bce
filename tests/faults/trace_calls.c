/*
 * trace_calls.c - one row for each traced call: its number, what it counts as, and where its arguments stand.
 *
 * The filter, the decoding and the names come from this table. x86-64 only: registers and numbers are that machine's.
 * Arguments lie in the memory of a process that stands still, so what is read here is what the kernel reads, but for
 * threads and processes that share that memory; ours do not write into paths.
 */
#include "tests/faults/trace_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/memory.h"

#define ANY_OP TRACE_OPS /* by the descriptor: write or frame */

enum { FRAME_HEAD = 64 };

/* Where the arguments are: the registers rdi, rsi, rdx, r10 are 0 to 3 here. */
enum shape {
	FD,	     /* 0: descriptor */
	BYTES,	     /* 0: descriptor, 1: bytes, 2: length */
	VECTOR,	     /* 0: descriptor, 1: iovec, 2: count */
	MESSAGE,     /* 0: descriptor, 1: msghdr */
	PATH,	     /* 0: path, 1: flags or length */
	AT_PATH,     /* 0: folder, 1: path, 2: flags */
	TWO_PATHS,   /* 0 and 1 */
	TWO_AT,	     /* 0: folder, 1: path, 2: folder, 3: path */
	TEXT_PATH,   /* 0: text, 1: path */
	TEXT_AT,     /* 0: text, 1: folder, 2: path */
	FD_LENGTH,   /* 0: descriptor, 1: length */
	FD_RANGE,    /* 0: descriptor, 2: offset, 3: length */
	NEW_PROCESS, /* 0: flags of clone */
	HIDE,	     /* prctl */
};

static const struct call_row {
	unsigned number;
	const char *name;
	enum trace_op op;
	enum shape shape;
} calls[] = {
	{SYS_write, "write", ANY_OP, BYTES},
	{SYS_pwrite64, "pwrite64", ANY_OP, BYTES},
	{SYS_writev, "writev", ANY_OP, VECTOR},
	{SYS_pwritev, "pwritev", ANY_OP, VECTOR},
	{SYS_sendto, "sendto", ANY_OP, BYTES},
	{SYS_sendmsg, "sendmsg", ANY_OP, MESSAGE},
	{SYS_fsync, "fsync", TRACE_FSYNC, FD},
	{SYS_fdatasync, "fdatasync", TRACE_FSYNC, FD},
	{SYS_syncfs, "syncfs", TRACE_FSYNC, FD},
	{SYS_rename, "rename", TRACE_RENAME, TWO_PATHS},
	{SYS_renameat, "renameat", TRACE_RENAME, TWO_AT},
	{SYS_renameat2, "renameat2", TRACE_RENAME, TWO_AT},
	{SYS_link, "link", TRACE_LINK, TWO_PATHS},
	{SYS_linkat, "linkat", TRACE_LINK, TWO_AT},
	{SYS_symlink, "symlink", TRACE_LINK, TEXT_PATH},
	{SYS_symlinkat, "symlinkat", TRACE_LINK, TEXT_AT},
	{SYS_unlink, "unlink", TRACE_UNLINK, PATH},
	{SYS_unlinkat, "unlinkat", TRACE_UNLINK, AT_PATH},
	{SYS_rmdir, "rmdir", TRACE_UNLINK, PATH},
	{SYS_mkdir, "mkdir", TRACE_MKDIR, PATH},
	{SYS_mkdirat, "mkdirat", TRACE_MKDIR, AT_PATH},
	{SYS_open, "open", TRACE_CREATE, PATH},
	{SYS_openat, "openat", TRACE_CREATE, AT_PATH},
	{SYS_openat2, "openat2", TRACE_CREATE, AT_PATH},
	{SYS_creat, "creat", TRACE_CREATE, PATH},
	{SYS_truncate, "truncate", TRACE_TRUNCATE, PATH},
	{SYS_ftruncate, "ftruncate", TRACE_TRUNCATE, FD_LENGTH},
	{SYS_fallocate, "fallocate", TRACE_TRUNCATE, FD_RANGE},
	{SYS_fork, "fork", TRACE_FORK, NEW_PROCESS},
	{SYS_vfork, "vfork", TRACE_FORK, NEW_PROCESS},
	{SYS_clone, "clone", TRACE_FORK, NEW_PROCESS},
	{SYS_clone3, "clone3", TRACE_FORK, NEW_PROCESS},
	{SYS_prctl, "prctl", TRACE_OPS, HIDE},
};

static const char *const op_names[TRACE_OPS] = {
	"write",  "fsync", "rename",   "link", "unlink",
	"create", "mkdir", "truncate", "fork", "frame",
};

const char *trace_op_name(enum trace_op op)
{
	return op < TRACE_OPS ? op_names[op] : "?";
}

bool trace_op_named(const char *name, enum trace_op *ret)
{
	for (unsigned op = 0; op < TRACE_OPS; op++) {
		if (strcmp(op_names[op], name) == 0) {
			*ret = op;
			return true;
		}
	}
	return false;
}

/* --- the filter --- */

#define LOAD(field)  BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define ARG(n)	     (offsetof(struct seccomp_data, args) + 8 * (n)) /* its low half, on this machine */
#define RETURN(what) BPF_STMT(BPF_RET | BPF_K, what)

/* Opens are by far the most frequent calls of the table; those that make nothing are told apart in the kernel. */
static size_t add_row(struct sock_filter *out, const struct call_row *row)
{
	size_t n = 0;
	bool open = row->number == SYS_open || row->number == SYS_openat;

	out[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, row->number, 0,
						open ? 4 : 1);
	if (open) {
		out[n++] = (struct sock_filter)BPF_STMT(
			BPF_LD | BPF_W | BPF_ABS, (unsigned)ARG(row->number == SYS_open ? 1 : 2));
		out[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_CREAT, 1, 0);
		out[n++] = (struct sock_filter)RETURN(SECCOMP_RET_ALLOW);
	}
	out[n++] = (struct sock_filter)RETURN(SECCOMP_RET_TRACE);
	return n;
}

int trace_filter_install(void)
{
	struct sock_filter code[5 * ARRAY_SIZE(calls) + 5] = {
		LOAD(arch),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
		RETURN(SECCOMP_RET_ALLOW),
		LOAD(nr),
	};
	size_t n = 4;

	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		n += add_row(code + n, &calls[i]);
	code[n++] = (struct sock_filter)RETURN(SECCOMP_RET_ALLOW);
	struct sock_fprog program = {.len = (unsigned short)n, .filter = code};
	/* As root it is installed without no_new_privs, so that programs run as they would without us. */
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0)
		return 0;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -1;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* --- reading a process that stands still --- */

static size_t read_memory(pid_t tid, unsigned long at, void *out, size_t n)
{
	struct iovec here = {out, n},
		     there = {(void *)at, n}; /* NOLINT: an address of the other process */
	ssize_t got = process_vm_readv(tid, &here, 1, &there, 1, 0);

	return got < 0 ? 0 : (size_t)got;
}

/* Page by page: the string may end just before memory that is not there. */
static bool read_string(pid_t tid, unsigned long at, char *out, size_t max)
{
	size_t n = 0;

	while (n < max) {
		size_t page = MIN(4096 - ((at + n) & 4095), max - n);
		size_t got = read_memory(tid, at + n, out + n, page);
		if (memchr(out + n, '\0', got))
			return true;
		if (got < page)
			break;
		n += got;
	}
	out[0] = '\0';
	return false;
}

static bool read_link_of(pid_t tid, int fd, char *out, size_t max)
{
	char name[64];

	if (fd == AT_FDCWD)
		snprintf(name, sizeof(name), "/proc/%d/cwd", tid);
	else
		snprintf(name, sizeof(name), "/proc/%d/fd/%d", tid, fd);
	ssize_t n = readlink(name, out, max - 1);
	out[n < 0 ? 0 : n] = '\0';
	return n >= 0;
}

static const char *read_path(pid_t tid, int folder, unsigned long at, char *out)
{
	char name[PATH_MAX];

	if (!read_string(tid, at, name, sizeof(name)))
		return NULL;
	if (name[0] == '/') {
		memcpy(out, name, strlen(name) + 1); /* both are PATH_MAX */
		return out;
	}
	if (!read_link_of(tid, folder, out, PATH_MAX))
		return NULL;
	size_t n = strlen(out);
	snprintf(out + n, PATH_MAX - n, "/%s", name);
	return out;
}

/* --- what an event touches --- */

/* The first bytes and the length of all of it. */
static uint64_t read_vector(pid_t tid, unsigned long at, unsigned long count, char *head,
			    size_t *ret_head)
{
	struct iovec parts[64];
	uint64_t total = 0;
	size_t have =
		read_memory(tid, at, parts, MIN(count, ARRAY_SIZE(parts)) * sizeof(parts[0])) /
		sizeof(parts[0]);

	*ret_head = 0;
	for (size_t i = 0; i < have; i++) {
		if (*ret_head < FRAME_HEAD)
			*ret_head +=
				read_memory(tid, (unsigned long)parts[i].iov_base, head + *ret_head,
					    MIN(FRAME_HEAD - *ret_head, parts[i].iov_len));
		total += parts[i].iov_len;
	}
	return total;
}

static uint64_t read_payload(pid_t tid, const struct user_regs_struct *regs, enum shape shape,
			     char *head, size_t *ret_head)
{
	struct msghdr message;

	if (shape == VECTOR)
		return read_vector(tid, regs->rsi, regs->rdx, head, ret_head);
	if (shape == MESSAGE) {
		if (read_memory(tid, regs->rsi, &message, sizeof(message)) < sizeof(message))
			return 0;
		return read_vector(tid, (unsigned long)message.msg_iov, message.msg_iovlen, head,
				   ret_head);
	}
	*ret_head = read_memory(tid, regs->rsi, head, MIN(FRAME_HEAD, regs->rdx));
	return regs->rdx;
}

/* {"type":"report",... gives report; a body that goes out after its header, and what is sent to the network, "-". */
static void name_frame(const char *head, size_t n, char *out)
{
	static const char start[] = "{\"type\":\"";
	const char *name = head + sizeof(start) - 1;
	const char *end = n > sizeof(start) ? memchr(name, '"', n - (sizeof(start) - 1)) : NULL;

	if (end && memcmp(head, start, sizeof(start) - 1) == 0)
		snprintf(out, FRAME_HEAD, "%.*s", (int)(end - name), name);
	else
		snprintf(out, FRAME_HEAD, "-");
}

/* A regular file, a socket, or nothing that interests us (pipes, terminals, event descriptors, memory files). */
static bool decode_send(pid_t tid, const struct user_regs_struct *regs, enum shape shape,
			struct trace_event *e, struct trace_strings *s)
{
	char name[64], head[FRAME_HEAD] = "";
	struct stat st;
	size_t n = 0;

	snprintf(name, sizeof(name), "/proc/%d/fd/%d", tid, e->fd);
	if (stat(name, &st) < 0 || (!S_ISREG(st.st_mode) && !S_ISSOCK(st.st_mode)))
		return false;
	e->length = read_payload(tid, regs, shape, head, &n);
	if (S_ISSOCK(st.st_mode)) {
		e->op = TRACE_FRAME;
		name_frame(head, n, s->path);
		e->path = s->path;
		return e->length > 1; /* one byte: an event loop that wakes itself */
	}
	e->op = TRACE_WRITE;
	e->path = read_link_of(tid, e->fd, s->path, sizeof(s->path)) ? s->path : NULL;
	return e->path && strncmp(e->path, "/memfd:", 7) != 0 && strncmp(e->path, "/proc/", 6) != 0;
}

static void decode_paths(pid_t tid, const struct user_regs_struct *regs, enum shape shape,
			 struct trace_event *e, struct trace_strings *s)
{
	switch (shape) {
	case PATH: e->path = read_path(tid, AT_FDCWD, regs->rdi, s->path); break;
	case AT_PATH: e->path = read_path(tid, (int)regs->rdi, regs->rsi, s->path); break;
	case TWO_PATHS:
		e->path = read_path(tid, AT_FDCWD, regs->rdi, s->path);
		e->path2 = read_path(tid, AT_FDCWD, regs->rsi, s->path2);
		break;
	case TWO_AT:
		e->path = read_path(tid, (int)regs->rdi, regs->rsi, s->path);
		e->path2 = read_path(tid, (int)regs->rdx, regs->r10, s->path2);
		break;
	case TEXT_PATH:
	case TEXT_AT:
		e->path = read_string(tid, regs->rdi, s->path, sizeof(s->path)) ? s->path : NULL;
		e->path2 = shape == TEXT_PATH ? read_path(tid, AT_FDCWD, regs->rsi, s->path2)
					      : read_path(tid, (int)regs->rsi, regs->rdx, s->path2);
		break;
	default: e->path = read_link_of(tid, e->fd, s->path, sizeof(s->path)) ? s->path : NULL;
	}
}

/* Flags of an open. openat2 has them in memory, and the filter cannot look there: most of its calls make nothing. */
static bool decode_open(pid_t tid, const struct user_regs_struct *regs, struct trace_event *e)
{
	uint64_t flags = 0;

	switch (regs->orig_rax) {
	case SYS_creat: e->flags = O_CREAT | O_WRONLY | O_TRUNC; return true;
	case SYS_open: e->flags = (int)regs->rsi; return true;
	case SYS_openat: e->flags = (int)regs->rdx; return true;
	}
	read_memory(tid, regs->rdx, &flags, sizeof(flags));
	e->flags = (int)flags;
	return flags & O_CREAT;
}

static bool makes_process(pid_t tid, const struct user_regs_struct *regs)
{
	uint64_t flags = regs->rdi;

	if (regs->orig_rax == SYS_fork || regs->orig_rax == SYS_vfork)
		return true;
	if (regs->orig_rax == SYS_clone3 &&
	    read_memory(tid, regs->rdi, &flags, sizeof(flags)) < sizeof(flags))
		return false;
	return !(flags & CLONE_THREAD);
}

static const struct call_row *row_of(unsigned long long number)
{
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		if (calls[i].number == number)
			return &calls[i];
	return NULL;
}

bool trace_hides(const struct user_regs_struct *regs)
{
	return regs->orig_rax == SYS_prctl && regs->rdi == PR_SET_DUMPABLE && regs->rsi == 0;
}

bool trace_decode(pid_t tid, const struct user_regs_struct *regs, struct trace_event *ret,
		  struct trace_strings *strings)
{
	const struct call_row *row = row_of(regs->orig_rax);

	if (!row || row->shape == HIDE)
		return false;
	*ret = (struct trace_event){.call = row->name, .op = row->op, .fd = -1, .entry = true};
	if (row->shape == NEW_PROCESS)
		return makes_process(tid, regs);
	if (row->op == TRACE_CREATE && !decode_open(tid, regs, ret))
		return false;
	if (row->shape == FD || row->shape >= FD_LENGTH || row->op == ANY_OP)
		ret->fd = (int)regs->rdi;
	if (regs->orig_rax == SYS_pwrite64 || regs->orig_rax == SYS_pwritev)
		ret->offset = regs->r10;
	if (row->op == ANY_OP)
		return decode_send(tid, regs, row->shape, ret, strings);
	decode_paths(tid, regs, row->shape, ret, strings);
	if (row->op == TRACE_TRUNCATE)
		ret->length = row->shape == FD_RANGE ? regs->rdx + regs->r10 : regs->rsi;
	return true;
}

uint64_t trace_write_offset(const struct trace_event *e)
{
	char name[64], text[256];
	unsigned long long at = 0;

	if (strncmp(e->call, "pwrite", 6) == 0)
		return e->offset;
	snprintf(name, sizeof(name), "/proc/%d/fdinfo/%d", e->pid, e->fd);
	AUTO_FD int fd = open(name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	text[n < 0 ? 0 : n] = '\0';
	if (sscanf(text, "pos:\t%llu", &at) != 1 || e->result < 0 ||
	    at < (unsigned long long)e->result)
		return 0;
	return at - (unsigned long long)e->result;
}
