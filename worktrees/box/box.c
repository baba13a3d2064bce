/*
 * box.c - the boundary as a whole: network namespace if asked for, privileges, Landlock, seccomp.
 * Runs in baton-box.
 *
 * The order matters: a user namespace gives capabilities, so those are dropped after it; Landlock
 * needs no_new_privs; seccomp comes last, because it refuses what the others need.
 */
#include "worktrees/box/box.h"

#include "base/file.h"
#include "base/memory.h"
#include "worktrees/box/landlock.h"
#include "worktrees/box/loopback.h"
#include "worktrees/box/privileges.h"
#include "worktrees/box/syscall_filter.h"

/* What every command may read and execute; what is not there is skipped. */
static const char *const system_read[] = {
	"/usr",
	"/bin",
	"/sbin",
	"/lib",
	"/lib32",
	"/lib64",
	"/libx32",
	"/etc",
	"/opt",
	"/proc",
	"/sys",
	"/var/lib/dpkg",
	"/var/lib/rpm",
	"/var/lib/ca-certificates",
	"/nix",
	"/gnu",
	"/home/linuxbrew/.linuxbrew",
	"/dev/random",
	"/dev/urandom",
	"/dev/fd",
	"/run/current-system",
	/* what /etc/resolv.conf points to */
	"/run/systemd/resolve",
	"/run/resolvconf",
	"/run/NetworkManager/resolv.conf",
};
static const char *const system_write[] = {"/dev/null", "/dev/zero", "/dev/full"};

/* Tool folders of HOME. Files with credentials stand beside them, so never their parents. */
static const char *const home_read[] = {
	".config/git/ignore",
	".config/git/attributes",
	".gitignore",
	".gitignore_global",
	".cargo/bin",
	".cargo/config.toml",
	".cargo/registry",
	".cargo/git",
	".rustup",
	"go/bin",
	"go/pkg",
	".pyenv",
	".nvm",
	".local/bin",
	".local/lib",
	".local/share/mise",
	".local/share/uv",
	".local/share/pnpm",
	".bun/bin",
	".deno/bin",
	".rbenv",
	".gem/ruby",
	".volta",
	".sdkman/candidates",
	".m2/repository",
	".asdf",
};

static int allow_defaults(struct landlock_rules *rules, const char *home, struct err *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(system_read); i++) {
		if (landlock_allow_if_there(rules, system_read[i], false, err) < 0)
			return -1;
	}
	for (size_t i = 0; i < ARRAY_SIZE(system_write); i++) {
		if (landlock_allow_if_there(rules, system_write[i], true, err) < 0)
			return -1;
	}
	for (size_t i = 0; home && i < ARRAY_SIZE(home_read); i++) {
		AUTO_FREE char *path = file_join(home, home_read[i]);

		if (landlock_allow_if_there(rules, path, false, err) < 0)
			return -1;
	}
	return 0;
}

static int allow_all(struct landlock_rules *rules, const struct box_policy *policy, struct err *err)
{
	if (allow_defaults(rules, policy->home, err) < 0)
		return -1;
	/* `echo x >/dev/stderr` opens by name what is open already. */
	for (int fd = 0; fd <= 2; fd++)
		landlock_allow_open(rules, fd);
	for (const char *const *p = policy->read; p && *p; p++) {
		if (landlock_allow_read(rules, *p, err) < 0)
			return -1;
	}
	for (const char *const *p = policy->write; p && *p; p++) {
		if (landlock_allow_write(rules, *p, err) < 0)
			return -1;
	}
	return 0;
}

static int enter_landlock(const struct box_policy *policy, struct err *err)
{
	/* In a network of its own TCP reaches nobody; Landlock then need not forbid it. */
	struct landlock_rules *rules = landlock_new(policy->network != BOX_NETWORK_NONE, err);
	int rc = -1;

	if (rules && allow_all(rules, policy, err) == 0)
		rc = landlock_enter(rules, err);
	landlock_free(rules);
	return rc;
}

int box_apply(const struct box_policy *policy, struct err *err)
{
	struct box_facts facts;

	box_probe_level(&facts);
	if (policy->level > facts.best)
		return err_set(err, ERR_UNSUPPORTED,
			       "this kernel gives box level '%s' at best (Landlock ABI %d, seccomp "
			       "%s), not '%s'",
			       box_level_name(facts.best), facts.landlock_abi,
			       facts.seccomp ? "yes" : "no", box_level_name(policy->level));
	if (policy->level == BOX_NONE)
		return err_set(err, ERR_UNSUPPORTED, "no box can be made on this kernel");
	if (policy->network == BOX_NETWORK_LOOPBACK && loopback_enter(err) < 0)
		return -1;
	if (privileges_drop(err) < 0 || enter_landlock(policy, err) < 0)
		return -1;
	return syscall_filter_apply(policy->network, facts.landlock_abi < 3, err);
}
