/*
 * trust.c - which project files the user trusts, as they stood when he said so (M5).
 *
 * A setup command runs with the user's rights in a box, and a pull can change it: so trust is given
 * to content, not to a path or a repository. The record is a copy of the file in the user's state
 * folder, compared byte for byte: trust never outlives an edit, and no hash can be fooled.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "orchestrator/config/store.h"

#define TRUST_FILE_MAX (1 << 20)

/* The record's path, and the line that it starts with: the file's real path, which also tells two
 * paths of one hash apart. */
static int trust_record(const char *path, char **ret_record, struct buf *expected, struct err *err)
{
	AUTO_FREE char *state = env_state_dir();
	AUTO_FREE char *real = realpath(path, NULL);

	if (!state)
		return err_set(err, ERR_USAGE, "neither HOME nor XDG_STATE_HOME is set");
	if (!real)
		return err_sys(err, "cannot find '%s'", path);
	buf_addf(expected, "%s\n", real);
	*ret_record = mem_printf("%s/trust/%016llx", state,
				 (unsigned long long)text_hash(real, strlen(real)));
	return 0;
}

bool trust_holds(const char *path, const struct buf *content)
{
	AUTO_FREE char *record = NULL;
	AUTO_BUF struct buf expected = BUF_INIT;
	AUTO_BUF struct buf trusted = BUF_INIT;

	if (trust_record(path, &record, &expected, NULL) < 0)
		return false;
	buf_add(&expected, content->data, content->len);
	return file_read(AT_FDCWD, record, 2 * TRUST_FILE_MAX, &trusted, NULL) == 0 &&
	       trusted.len == expected.len &&
	       memcmp(trusted.data, expected.data, expected.len) == 0;
}

int trust_grant(const char *path, struct err *err)
{
	AUTO_FREE char *record = NULL;
	AUTO_BUF struct buf content = BUF_INIT;

	if (trust_record(path, &record, &content, err) < 0 ||
	    file_read(AT_FDCWD, path, TRUST_FILE_MAX, &content, err) < 0)
		return -1;
	AUTO_FREE char *dir = file_dir(record);
	if (file_mkdirs(dir, 0700, err) < 0)
		return -1;
	return file_write_atomic(AT_FDCWD, record, content.data, content.len, 0600, err);
}
