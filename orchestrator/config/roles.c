/*
 * roles.c - finding roles by name; see role.h. Runs in the parent.
 *
 * A project's folders come first, so a repository can bring the roles that fit it; what such a role
 * gets is bounded by the user's settings all the same. A role file of a project is read only if it
 * really lies in the project: a link to elsewhere would send somebody's private file to a model.
 * The user's own .claude/agents come after the project's, as the tools do that they were written
 * for.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "orchestrator/config/builtin_roles.h"
#include "orchestrator/role.h"

#define ROLE_FILE_MAX (256 << 10)

/* 1: loaded, 0: not there, -1: there and wrong. */
static int load_from(const char *dir, const char *below, const char *name, bool claude,
		     bool project, struct role **ret, struct err *err)
{
	AUTO_FREE char *folder = dir ? file_join(dir, below) : NULL;
	AUTO_FREE char *file = mem_printf("%s.md", name);
	AUTO_FREE char *path = folder ? file_join(folder, file) : NULL;
	AUTO_BUF struct buf text = BUF_INIT;

	if (!path || !file_exists(path))
		return 0;
	if (project && !file_lies_in(dir, path))
		return err_set(err, ERR_DENIED, "'%s' leads out of '%s'", path, dir);
	if (file_read(AT_FDCWD, path, ROLE_FILE_MAX, &text, err) < 0)
		return -1;
	return role_parse(buf_str(&text), text.len, path, claude, ret, err) < 0 ? -1 : 1;
}

static int load_builtin(const char *name, struct role **ret, struct err *err)
{
	for (size_t i = 0; i < builtin_roles_count; i++) {
		if (strcmp(builtin_roles[i].name, name) == 0)
			return role_parse(builtin_roles[i].text, builtin_roles[i].size, "built in",
					  false, ret, err) < 0
				       ? -1
				       : 1;
	}
	return 0;
}

/* Names the nearest built-in role: those of folders are the user's own words. */
static int no_such_role(const char *name, struct err *err)
{
	const char *names[64];
	size_t n = 0;

	for (size_t i = 0; i < builtin_roles_count && n < ARRAY_SIZE(names); i++)
		names[n++] = builtin_roles[i].name;
	const char *near = text_nearest(name, names, n);
	return err_set(
		err, ERR_NOT_FOUND,
		"there is no role '%s'%s%s%s; looked in .baton/agents/, the user's configuration, "
		".claude/agents/ and the built-in ones",
		name, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

int role_load(const char *name, const char *project_dir, struct role **ret, struct err *err)
{
	AUTO_FREE char *config = env_config_dir();

	if (!*name || strchr(name, '/') || name[0] == '.')
		return err_set(err, ERR_USAGE, "'%s' is no role name", name);
	int rc = load_from(project_dir, ".baton/agents", name, false, true, ret, err);
	if (rc == 0)
		rc = load_from(config, "agents", name, false, false, ret, err);
	if (rc == 0)
		rc = load_from(project_dir, ".claude/agents", name, true, true, ret, err);
	if (rc == 0)
		rc = load_from(env_home(), ".claude/agents", name, true, false, ret, err);
	if (rc == 0)
		rc = load_builtin(name, ret, err);
	if (rc == 0)
		return no_such_role(name, err);
	if (rc < 0)
		return -1;
	if (!(*ret)->name)
		(*ret)->name = mem_strdup(name);
	return 0;
}
