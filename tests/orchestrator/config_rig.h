/*
 * config_rig.h - for tests of orchestrator/config: a home of their own, with no key and no setting.
 *
 * *state is the folder; config/, state/ and project/ lie in it, where the XDG variables and
 * project_dir point. /etc/baton is the machine's: what a managed file does is shown through
 * layer_parse.
 */
#ifndef BATON_TESTS_CONFIG_RIG_H
#define BATON_TESTS_CONFIG_RIG_H

#include "tests/base/test_base.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

static inline char *rig_path(void **state, const char *name)
{
	return file_join(*state, name);
}

static inline void rig_write(void **state, const char *name, const char *text)
{
	AUTO_FREE char *path = rig_path(state, name);
	AUTO_FREE char *dir = file_dir(path);

	assert_int_equal(file_mkdirs(dir, 0700, NULL), 0);
	assert_int_equal(file_write_atomic(AT_FDCWD, path, text, strlen(text), 0600, NULL), 0);
}

static inline int rig_setup(void **state)
{
	static const char *const names[] = {"HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"};
	static const char *const below[] = {".", "config", "state"};

	if (folder_setup(state) < 0)
		return -1;
	clearenv();
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		AUTO_FREE char *path = rig_path(state, below[i]);
		setenv(names[i], path, 1);
	}
	AUTO_FREE char *project = rig_path(state, "project");
	return file_mkdirs(project, 0700, NULL);
}

#define rig_test(f) cmocka_unit_test_setup_teardown(f, rig_setup, folder_teardown)

#endif
