/*
 * env.c - the environment, read and cleaned in this one place.
 *
 * The allow list (env_filter) is how a tool's shell gets an environment without keys; env_wipe is
 * how the parent's own copy stops being readable through /proc/PID/environ (I1). unsetenv alone
 * does not do that: it moves a pointer and leaves the bytes where the kernel shows them.
 */
#include "base/env.h"

#include <pwd.h>
#include <stdlib.h>

#include "base/memory.h"

const char *env_get(const char *name)
{
	const char *value = getenv(name);
	return value && *value ? value : NULL;
}

/* Length of the name in "NAME=value"; 0 for an entry without '='. */
static size_t name_len(const char *entry)
{
	const char *eq = strchr(entry, '=');
	return eq ? (size_t)(eq - entry) : 0;
}

static bool name_matches(const char *entry, size_t len, const char *pattern)
{
	size_t n = strlen(pattern);
	if (n && pattern[n - 1] == '*')
		return len >= n - 1 && strncmp(entry, pattern, n - 1) == 0;
	return len == n && strncmp(entry, pattern, n) == 0;
}

static bool name_listed(const char *entry, const char *const *patterns)
{
	size_t len = name_len(entry);
	for (; len && patterns && *patterns; patterns++)
		if (name_matches(entry, len, *patterns))
			return true;
	return false;
}

/* The entry of this list that sets the same name, or NULL. */
static char **list_find(char **list, size_t count, const char *entry)
{
	size_t len = name_len(entry);
	for (size_t i = 0; i < count; i++)
		if (name_len(list[i]) == len && strncmp(list[i], entry, len) == 0)
			return &list[i];
	return NULL;
}

char **env_filter(const char *const *allow, const char *const *extra)
{
	char **list = NULL;
	size_t count = 0, cap = 0;
	for (char **e = environ; e && *e; e++) {
		if (!name_listed(*e, allow) || list_find(list, count, *e))
			continue;
		MEM_GROW(list, cap, count + 2);
		list[count++] = mem_strdup(*e);
	}
	for (; extra && *extra; extra++) {
		char **old = list_find(list, count, *extra);
		if (old) {
			free(*old);
			*old = mem_strdup(*extra);
			continue;
		}
		MEM_GROW(list, cap, count + 2);
		list[count++] = mem_strdup(*extra);
	}
	MEM_GROW(list, cap, count + 1);
	list[count] = NULL;
	return list;
}

char **env_filter_more(const char *const *allow, const char *const *more, const char *const *extra)
{
	size_t n = 0, m = 0;

	while (allow[n])
		n++;
	while (more && more[m])
		m++;
	AUTO_FREE const char **both = mem_alloc((n + m + 1) * sizeof(*both));
	memcpy(both, allow, n * sizeof(*both));
	if (m > 0)
		memcpy(both + n, more, m * sizeof(*both));
	return env_filter(both, extra);
}

void env_list_free(char **list)
{
	for (char **e = list; e && *e; e++)
		free(*e);
	free(list);
}

void env_wipe(const char *const *names)
{
	char **e = environ;
	while (e && *e) {
		if (!name_listed(*e, names)) {
			e++;
			continue;
		}
		size_t len = name_len(*e);
		AUTO_FREE char *name = mem_strndup(*e, len);
		char *value = *e + len + 1;
		memset(value, ' ', strlen(value));
		/* Shifts the rest of the list down, so that *e is the next entry (or frees a
		 * copy of ours; the value is blank either way). */
		unsetenv(name);
	}
}

const char *env_home(void)
{
	const char *home = env_get("HOME");
	if (home)
		return home;
	const struct passwd *pw = getpwuid(getuid());
	return pw && pw->pw_dir && *pw->pw_dir ? pw->pw_dir : NULL;
}

static char *base_dir(const char *xdg_name, const char *below_home)
{
	const char *xdg = env_get(xdg_name);
	/* The XDG rules: a relative value is invalid and is ignored. */
	if (xdg && xdg[0] == '/')
		return mem_printf("%s/baton", xdg);
	const char *home = env_home();
	return home ? mem_printf("%s/%s/baton", home, below_home) : NULL;
}

char *env_state_dir(void)
{
	return base_dir("XDG_STATE_HOME", ".local/state");
}

char *env_config_dir(void)
{
	return base_dir("XDG_CONFIG_HOME", ".config");
}
