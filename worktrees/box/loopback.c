/*
 * loopback.c - see loopback.h. Runs in baton-box.
 *
 * Neither Landlock nor seccomp can tell 127.0.0.1 from another address, so `--network loopback`
 * takes a network namespace; where those are not to be had it is refused, never widened. Shared
 * memory by number comes along, because test suites that start a database need both.
 */
#include "worktrees/box/loopback.h"

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"

static int write_file(const char *path, const char *text, struct err *err)
{
	AUTO_FD int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return err_sys(err, "cannot open '%s'", path);
	return file_write_all(fd, text, strlen(text), err);
}

static int map_ids(uid_t uid, gid_t gid, struct err *err)
{
	char line[64];

	snprintf(line, sizeof(line), "%u %u 1\n", uid, uid);
	if (write_file("/proc/self/uid_map", line, err) < 0 ||
	    write_file("/proc/self/setgroups", "deny", err) < 0)
		return -1;
	snprintf(line, sizeof(line), "%u %u 1\n", gid, gid);
	return write_file("/proc/self/gid_map", line, err);
}

int loopback_enter(struct err *err)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP};

	if (unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWIPC) < 0)
		return err_sys(err, "--network loopback needs user and network namespaces");
	if (map_ids(uid, gid, err) < 0)
		return -1;
	AUTO_FD int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &lo) < 0)
		return err_sys(err, "cannot bring up the loopback interface");
	return 0;
}
