/*
 * env.h - the one place that reads the environment.
 */
#ifndef BATON_BASE_ENV_H
#define BATON_BASE_ENV_H

#include <stdbool.h>
#include <stddef.h>

const char *env_get(const char *name); /* borrowed; NULL if unset or empty */

/* A NULL-terminated copy of the environment reduced to an allow list of names; a name ending in '*'
 * is a prefix. Extra "NAME=value" strings are added last and win. Caller frees with env_list_free.
 */
char **env_filter(const char *const *allow, const char *const *extra);
/* The same with a second allow list (the user's --pass-env). */
char **env_filter_more(const char *const *allow, const char *const *more, const char *const *extra);
void env_list_free(char **list); /* NULL allowed */

/* Overwrites the value of each named variable in place (so /proc/PID/environ shows blanks) and
 * unsets it. A name ending in '*' is a prefix. */
void env_wipe(const char *const *names);

/* Base folders, caller frees: $XDG_STATE_HOME or ~/.local/state, and so on, with "/baton" added.
 * NULL if neither XDG nor HOME is set. */
char *env_state_dir(void);
char *env_config_dir(void);
const char *env_home(void); /* HOME or the passwd entry; NULL if neither */

#endif
