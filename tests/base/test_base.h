/*
 * test_base.h - what every test of base needs: cmocka in its order of includes, and a folder of its
 * own that is gone afterwards.
 */
#ifndef BATON_TESTS_BASE_H
#define BATON_TESTS_BASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/env.h"
#include "base/err.h"
#include "base/file.h"
#include "base/memory.h"

/* Setup and teardown: *state is the path of a new folder. */
static inline int folder_setup(void **state)
{
	const char *tmp = env_get("TMPDIR");
	char *path = mem_printf("%s/baton-test-XXXXXX", tmp ? tmp : "/tmp");
	*state = path;
	return mkdtemp(path) ? 0 : -1;
}

static inline int folder_teardown(void **state)
{
	int rc = file_remove_tree(*state, NULL);
	free(*state);
	return rc;
}

#define folder_test(f) cmocka_unit_test_setup_teardown(f, folder_setup, folder_teardown)

#endif
