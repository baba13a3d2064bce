/*
 * landlock.c - see landlock.h. Runs in baton-box (and the probe in the parent).
 *
 * What is not handled by a ruleset is allowed: chmod, chown, utime and extended attributes are
 * outside Landlock's reach at every ABI so far (tried), which doctor says.
 */
#include "worktrees/box/landlock.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/memory.h"

#define CREATE_VERSION	1u
#define RULE_PATH	1
#define FS_EXECUTE	(1ull << 0)
#define FS_WRITE_FILE	(1ull << 1)
#define FS_READ_FILE	(1ull << 2)
#define FS_READ_DIR	(1ull << 3)
#define FS_REMOVE_DIR	(1ull << 4)
#define FS_REMOVE_FILE	(1ull << 5)
#define FS_MAKE_CHAR	(1ull << 6)
#define FS_MAKE_DIR	(1ull << 7)
#define FS_MAKE_REG	(1ull << 8)
#define FS_MAKE_SOCK	(1ull << 9)
#define FS_MAKE_FIFO	(1ull << 10)
#define FS_MAKE_BLOCK	(1ull << 11)
#define FS_MAKE_SYM	(1ull << 12)
#define FS_REFER	(1ull << 13) /* ABI 2 */
#define FS_TRUNCATE	(1ull << 14) /* ABI 3 */
#define FS_IOCTL_DEV	(1ull << 15) /* ABI 5 */
#define NET_BIND_TCP	(1ull << 0)  /* ABI 4 */
#define NET_CONNECT_TCP (1ull << 1)
#define SCOPE_ABSTRACT	(1ull << 0) /* ABI 6 */
#define SCOPE_SIGNAL	(1ull << 1)

#define FS_READ		(FS_EXECUTE | FS_READ_FILE | FS_READ_DIR)
#define FS_WRITE                                                                                   \
	(FS_READ | FS_WRITE_FILE | FS_REMOVE_DIR | FS_REMOVE_FILE | FS_MAKE_DIR | FS_MAKE_REG |    \
	 FS_MAKE_SOCK | FS_MAKE_FIFO | FS_MAKE_SYM | FS_REFER | FS_TRUNCATE)
#define FS_OF_FILES (FS_EXECUTE | FS_WRITE_FILE | FS_READ_FILE | FS_TRUNCATE | FS_IOCTL_DEV)

struct ruleset_attr {
	uint64_t handled_access_fs;
	uint64_t handled_access_net; /* ABI 4 */
	uint64_t scoped;	     /* ABI 6 */
};

struct path_attr {
	uint64_t allowed_access;
	int32_t parent_fd;
} __attribute__((packed));

struct landlock_rules {
	int fd;
	uint64_t handled_fs;
};

int landlock_abi(void)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, CREATE_VERSION);

	return abi > 0 ? (int)abi : 0;
}

static uint64_t handled_fs(int abi)
{
	uint64_t fs = FS_WRITE | FS_MAKE_CHAR | FS_MAKE_BLOCK | FS_IOCTL_DEV;

	if (abi < 2)
		fs &= ~FS_REFER;
	if (abi < 3)
		fs &= ~FS_TRUNCATE;
	if (abi < 5)
		fs &= ~FS_IOCTL_DEV;
	return fs;
}

struct landlock_rules *landlock_new(bool tcp, struct err *err)
{
	int abi = landlock_abi();
	struct ruleset_attr attr = {.handled_access_fs = handled_fs(abi)};
	size_t size = abi >= 6 ? sizeof(attr) : abi >= 4 ? 2 * sizeof(uint64_t) : sizeof(uint64_t);

	if (abi >= 4 && !tcp)
		attr.handled_access_net = NET_BIND_TCP | NET_CONNECT_TCP;
	if (abi >= 6)
		attr.scoped = SCOPE_ABSTRACT | SCOPE_SIGNAL;
	long fd = syscall(SYS_landlock_create_ruleset, &attr, size, 0);
	if (fd < 0) {
		err_sys(err, "cannot make a Landlock ruleset");
		return NULL;
	}
	struct landlock_rules *rules = mem_alloc(sizeof(*rules));
	rules->fd = (int)fd;
	rules->handled_fs = attr.handled_access_fs;
	return rules;
}

void landlock_free(struct landlock_rules *rules)
{
	if (!rules)
		return;
	close(rules->fd);
	free(rules);
}

static int allow_fd(struct landlock_rules *rules, const char *path, int fd, uint64_t access,
		    struct err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_sys(err, "cannot look at '%s' for the box", path);
	/* Requests to devices (terminals) only on device files that are named one by one. */
	access &= S_ISDIR(st.st_mode) ? ~FS_IOCTL_DEV : FS_OF_FILES;
	struct path_attr attr = {.allowed_access = access & rules->handled_fs, .parent_fd = fd};
	if (syscall(SYS_landlock_add_rule, rules->fd, RULE_PATH, &attr, 0) < 0)
		return err_sys(err, "cannot allow '%s' in the box", path);
	return 0;
}

static int allow(struct landlock_rules *rules, const char *path, uint64_t access, struct err *err)
{
	AUTO_FD int fd = open(path, O_PATH | O_CLOEXEC);

	if (fd < 0)
		return err_sys(err, "cannot open '%s' for the box", path);
	return allow_fd(rules, path, fd, access, err);
}

int landlock_allow_read(struct landlock_rules *rules, const char *path, struct err *err)
{
	return allow(rules, path, FS_READ, err);
}

int landlock_allow_write(struct landlock_rules *rules, const char *path, struct err *err)
{
	return allow(rules, path, FS_WRITE | FS_IOCTL_DEV, err);
}

int landlock_allow_if_there(struct landlock_rules *rules, const char *path, bool write,
			    struct err *err)
{
	AUTO_FD int fd = open(path, O_PATH | O_CLOEXEC);

	return fd < 0 ? 0
		      : allow_fd(rules, path, fd, write ? FS_WRITE | FS_IOCTL_DEV : FS_READ, err);
}

void landlock_allow_open(struct landlock_rules *rules, int fd)
{
	int flags = fcntl(fd, F_GETFL);
	struct stat st;
	uint64_t access = 0;

	if (flags < 0 || (flags & O_PATH) || fstat(fd, &st) < 0 ||
	    !(S_ISREG(st.st_mode) || S_ISCHR(st.st_mode)))
		return;
	if ((flags & O_ACCMODE) == O_RDONLY || (flags & O_ACCMODE) == O_RDWR)
		access |= FS_READ_FILE;
	if ((flags & O_ACCMODE) == O_WRONLY || (flags & O_ACCMODE) == O_RDWR)
		access |= FS_WRITE_FILE | FS_TRUNCATE;
	struct path_attr attr = {.allowed_access = access & rules->handled_fs, .parent_fd = fd};
	if (attr.allowed_access)
		syscall(SYS_landlock_add_rule, rules->fd, RULE_PATH, &attr, 0);
}

int landlock_enter(struct landlock_rules *rules, struct err *err)
{
	if (syscall(SYS_landlock_restrict_self, rules->fd, 0) < 0)
		return err_sys(err, "cannot enter the Landlock domain");
	return 0;
}
