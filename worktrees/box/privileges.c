/*
 * privileges.c - see privileges.h. Runs in baton-box.
 *
 * Agents started by root (in containers, in CI) are root in their box too. Landlock then still
 * decides about files, but not about /proc/kcore (the memory of everybody), raw sockets, limits or
 * the immutable flag: those go with the capabilities. What is kept lets `make install`, `tar` and
 * package builds do as root what they do, on files that Landlock allows. Under no_new_privs an exec
 * by root gains nothing back. As an ordinary user there is nothing to give up.
 */
#include "worktrees/box/privileges.h"

#include <linux/capability.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define KEPT                                                                                       \
	(1u << CAP_CHOWN | 1u << CAP_DAC_OVERRIDE | 1u << CAP_FOWNER | 1u << CAP_FSETID |          \
	 1u << CAP_SETGID | 1u << CAP_SETUID | 1u << CAP_NET_BIND_SERVICE | 1u << CAP_IPC_LOCK)

int privileges_drop(struct err *err)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
	struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3];

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_sys(err, "cannot give up new privileges");
	if (syscall(SYS_capget, &head, caps) < 0)
		return err_sys(err, "cannot read the capabilities");
	caps[0].permitted &= KEPT;
	caps[0].effective &= KEPT;
	caps[0].inheritable = 0;
	caps[1].permitted = caps[1].effective = caps[1].inheritable = 0;
	if (syscall(SYS_capset, &head, caps) < 0)
		return err_sys(err, "cannot give up capabilities");
	return 0;
}
