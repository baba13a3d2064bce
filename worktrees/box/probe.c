/*
 * probe.c - what this kernel gives; cheap enough for the parent at every start.
 *
 * It asks the kernel, not a version number: distributions switch Landlock and namespaces off.
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
#include "worktrees/box/syscall_filter.h"

const char *box_level_name(enum box_level level)
{
	static const char *const names[] = {"none", "partial", "landlock", "namespaces"};

	return (size_t)level < ARRAY_SIZE(names) ? names[level] : "?";
}

static bool has_seccomp(void)
{
	uint32_t action = SECCOMP_RET_ERRNO;

	return SYSCALL_ARCH != 0 && syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
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

void box_probe_level(struct box_facts *ret)
{
	*ret = (struct box_facts){.landlock_abi = landlock_abi(), .seccomp = has_seccomp()};
	ret->best = !ret->seccomp || ret->landlock_abi < 1 ? BOX_NONE
		    : ret->landlock_abi >= 6		   ? BOX_LANDLOCK
							   : BOX_PARTIAL;
}

void box_probe(struct box_facts *ret)
{
	box_probe_level(ret);
	ret->user_namespaces = sysctl_number("/proc/sys/user/max_user_namespaces", 0) > 0 &&
			       sysctl_number("/proc/sys/kernel/unprivileged_userns_clone", 1) > 0;
}

/* A note holds below the ABI that made it untrue; 0: always, at this level. */
static const struct {
	int below_abi;
	const char *text;
} notes[] = {
	{1, "no box: Landlock or seccomp is missing"},
	{0, "not held back: mode, owner, times and extended attributes of the user's files"},
	{0, "not hidden: names and sizes of files, the list of processes"},
	{2, "no rename or link between folders (Landlock ABI 1)"},
	{3, "emptying files is refused by the system call filter only (Landlock ABI below 3)"},
	{5, "requests to devices are not held back (Landlock ABI below 5)"},
	{6, "signals to other processes of the user are not held back (Landlock ABI below 6)"},
};

size_t box_notes(const struct box_facts *facts, const char *ret[BOX_NOTES_MAX])
{
	size_t count = 0;

	if (facts->best == BOX_NONE) {
		ret[count++] = notes[0].text;
		return count;
	}
	for (size_t i = 1; i < ARRAY_SIZE(notes) && count < BOX_NOTES_MAX; i++) {
		if (notes[i].below_abi == 0 || facts->landlock_abi < notes[i].below_abi)
			ret[count++] = notes[i].text;
	}
	return count;
}
