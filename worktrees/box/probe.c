/*
 * probe.c - what this kernel gives; cheap enough for the parent at every start.
 */
#include <linux/seccomp.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fcntl.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "worktrees/box/box.h"
#include "worktrees/box/landlock.h"

const char *box_level_name(enum box_level level)
{
	static const char *const names[] = {"none", "partial", "landlock", "namespaces"};

	return (size_t)level < ARRAY_SIZE(names) ? names[level] : "?";
}

static bool has_seccomp(void)
{
	uint32_t action = SECCOMP_RET_ERRNO;

	return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

/* A number in a file of /proc/sys; dflt where the file is missing. */
static int64_t sysctl_number(const char *path, int64_t dflt)
{
	AUTO_BUF struct buf text = BUF_INIT;
	int64_t n;

	if (file_read(AT_FDCWD, path, 64, &text, NULL) < 0)
		return dflt;
	while (text.len > 0 && text.data[text.len - 1] == '\n')
		buf_truncate(&text, text.len - 1);
	return text_parse_i64(buf_str(&text), &n) == 0 ? n : dflt;
}

void box_probe(struct box_facts *ret)
{
	ret->landlock_abi = landlock_abi();
	ret->seccomp = has_seccomp();
	ret->user_namespaces = sysctl_number("/proc/sys/user/max_user_namespaces", 0) > 0 &&
			       sysctl_number("/proc/sys/kernel/unprivileged_userns_clone", 1) > 0;
	ret->best = !ret->seccomp || ret->landlock_abi < 1 ? BOX_NONE
		    : ret->landlock_abi >= 6		   ? BOX_LANDLOCK
							   : BOX_PARTIAL;
}
