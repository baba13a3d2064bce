/*
 * write.c - the write tool: creates a file or replaces all of it.
 *
 * An existing file is replaced only if the model has seen it as it is now (trap 108): never read,
 * or changed since, is refused, and the message says what to do. The bytes go to a new file beside
 * it and are renamed into place, so a reader sees the old or the new file, and a hard link or
 * symlink swapped in meanwhile is replaced, never written through.
 */
#include "agent/tools/write.h"

#include <inttypes.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"

const char write_description[] =
	"Writes a whole file: creates it, with missing folders, or replaces all of its content. An "
	"existing file must have been read before, and the call is refused if it changed since "
	"then: read it again "
	"first. For changes within a file edit is the better tool. Paths are relative to the "
	"worktree; `scratch:NAME` is a place for temporary files outside of it.";

const char write_schema[] =
	"{\"type\":\"object\",\"properties\":{"
	"\"path\":{\"type\":\"string\",\"minLength\":1,\"description\":\"file to write\"},"
	"\"content\":{\"type\":\"string\",\"description\":\"all of its new content\"}},"
	"\"required\":[\"path\",\"content\"],\"additionalProperties\":false}";

int target_open(struct tool_context *ctx, struct place *place, struct target *ret, struct err *err)
{
	*ret = (struct target){0};
	struct err e = ERR_INIT;
	AUTO_FD int fd = place_open(&ctx->roots, place, &ret->st, &e);
	if (fd < 0 && e.code == ERR_NOT_FOUND)
		return 0;
	if (fd < 0) {
		if (err)
			*err = e;
		return -1;
	}
	if (S_ISDIR(ret->st.st_mode))
		return err_set(err, ERR_INVALID, "'%s' is a folder", place->shown);
	ret->exists = true;
	if (ret->st.st_size > TARGET_MAX)
		return err_set(err, ERR_TOO_LARGE,
			       "'%s' is larger than 64 MiB; change it with a command in the shell",
			       place->shown);
	ssize_t n;
	while ((n = buf_read(&ret->old, fd, (size_t)ret->st.st_size + 1 - ret->old.len)) > 0)
		if (ret->old.len > (size_t)ret->st.st_size)
			return err_set(err, ERR_CHANGED,
				       "'%s' grew while it was read; read it again", place->shown);
	if (n < 0)
		return err_sys(err, "cannot read '%s'", place->shown);
	return 0;
}

void target_release(struct target *target)
{
	buf_release(&target->old);
}

int target_check_seen(const struct tool_context *ctx, const struct place *place,
		      const struct target *target, bool must_be_read, struct err *err)
{
	if (!target->exists)
		return 0;
	const struct file_state *state = file_states_find(&ctx->files, place);
	if (!state && must_be_read)
		return err_set(
			err, ERR_CHANGED,
			"'%s' exists and was not read yet; read it first, then write or edit it",
			place->shown);
	if (state && !file_state_holds(state, &target->st, buf_str(&target->old), target->old.len))
		return err_set(err, ERR_CHANGED,
			       "'%s' has changed since it was read; nothing was written; read it "
			       "again and repeat the change on its present content",
			       place->shown);
	return 0;
}

/* Between reading the old bytes and the rename somebody else may have written: looked at last. */
static int check_still(int dir_fd, const char *name, const struct place *place,
		       const struct target *target, struct err *err)
{
	struct stat st;
	bool there = fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
	bool same = there && st.st_ino == target->st.st_ino && st.st_size == target->st.st_size &&
		    st.st_mtim.tv_sec == target->st.st_mtim.tv_sec &&
		    st.st_mtim.tv_nsec == target->st.st_mtim.tv_nsec;
	if (there && S_ISLNK(st.st_mode))
		return err_set(err, ERR_DENIED, "'%s' is a symlink to something that is not there",
			       place->shown);
	if (there == target->exists && (same || !there))
		return 0;
	return err_set(err, ERR_CHANGED, "'%s' is being changed by somebody else; read it again",
		       place->shown);
}

/* New files get 0644 whatever our umask: git keeps the x bit only, and an adopted tree is the
 * user's. */
int target_replace(struct tool_context *ctx, struct place *place, const struct target *target,
		   const char *bytes, size_t n, struct err *err)
{
	AUTO_FREE char *name = NULL;
	AUTO_FD int dir = place_open_parent(&ctx->roots, place, true, &name, err);
	if (dir < 0 || check_still(dir, name, place, target, err) < 0)
		return -1;
	mode_t mode = target->exists ? target->st.st_mode & 07777 : 0644;
	if (file_write_atomic(dir, name, bytes, n, mode, err) < 0)
		return -1;
	/* Opened again: the state is that of the file in place, under its real path. */
	struct stat st;
	AUTO_FD int fd = place_open(&ctx->roots, place, &st, NULL);
	if (fd >= 0)
		file_states_set(&ctx->files, place, &st, true,
				file_hash_add(FILE_HASH_START, bytes, n));
	file_states_touch(&ctx->files, place);
	tool_touch(ctx, place);
	return 0;
}

/* Bytes of whole lines with which both start. */
static size_t common_head(const char *a, size_t na, const char *b, size_t nb)
{
	size_t i = 0, whole = 0;
	while (i < na && i < nb && a[i] == b[i])
		if (a[i++] == '\n')
			whole = i;
	return i == na && i == nb ? i : whole;
}

/* Bytes of whole lines with which both end; position 0 of each counts as the start of a line. */
static size_t common_tail(const char *a, size_t na, const char *b, size_t nb)
{
	size_t whole = 0;
	for (size_t i = 1; i <= na && i <= nb && a[na - i] == b[nb - i]; i++) {
		bool a_starts = i == na || a[na - i - 1] == '\n';
		bool b_starts = i == nb || b[nb - i - 1] == '\n';
		if (a_starts && b_starts)
			whole = i;
	}
	return whole;
}

void count_changed_lines(const char *a, size_t na, const char *b, size_t nb, size_t *ret_added,
			 size_t *ret_removed)
{
	size_t head = common_head(a, na, b, nb);
	size_t tail = common_tail(a + head, na - head, b + head, nb - head);
	*ret_removed = text_count_lines(a + head, na - head - tail);
	*ret_added = text_count_lines(b + head, nb - head - tail);
}

int write_run(struct tool_context *ctx, const char *call_id, struct json_object *input,
	      struct tool_result *ret, struct err *err)
{
	AUTO_PLACE struct place place = {0};
	AUTO_TARGET struct target target = {0};
	struct err e = ERR_INIT;
	const char *content = json_str(input, "content", "");
	size_t n = json_str_len(input, "content");
	size_t added, removed;
	ret->exit_code = -1;
	if (input_place(ctx, input, "path", &place, &e) < 0 ||
	    target_open(ctx, &place, &target, &e) < 0 ||
	    target_check_seen(ctx, &place, &target, true, &e) < 0 ||
	    target_replace(ctx, &place, &target, content, n, &e) < 0)
		return result_fail(ret, &e);
	file_states_touch(&ctx->files, &place)->first = 1; /* what was shown of the old is gone */
	ret->has_effects = true;
	count_changed_lines(buf_str(&target.old), target.old.len, content, n, &added, &removed);
	buf_addf(&ret->text, "%s %s (%zu lines, %zu bytes)", target.exists ? "replaced" : "created",
		 place.shown, text_count_lines(content, n), n);
	result_summary(ret, "write %s (+%zu -%zu)", place.shown, added, removed);
	return 0;
}
