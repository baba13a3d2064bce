/*
 * diffs.c - reading the output of git diff-tree.
 *
 * The plumbing is used since it ignores the user's settings for display. Names come from the -z
 * output, never from a patch, where they may be quoted; patches are matched to them by their order,
 * which is the same. A line that starts with "diff --git " in column one is a file's start: content
 * lines begin with ' ', '+', '-' or '\'.
 */
#include "worktrees/diffs.h"

#include <stdio.h>

#include "base/memory.h"

#define DIFF "diff-tree", "-r", "-M", "--no-ext-diff", "--no-textconv", "--no-color"

static const char *next_field(const char **at, const char *end)
{
	const char *field = *at;

	if (field >= end)
		return NULL;
	*at = field + strlen(field) + 1;
	return field;
}

/* ":100644 100644 OID OID R090" NUL path NUL (path NUL) */
static int raw_entry(const char *head, const char **at, const char *end, struct json_object *list,
		     struct err *err)
{
	const char *status = strrchr(head, ' ');
	const char *first = next_field(at, end), *second = NULL;
	struct json_object *file;
	char letter[2] = "M";

	if (!status || !first)
		return err_set(err, ERR_INVALID, "git's diff cannot be read");
	letter[0] = status[1];
	if (letter[0] == 'R' || letter[0] == 'C')
		second = next_field(at, end);
	file = json_object_new_object();
	json_set_str(file, "path", second ? second : first);
	json_set(file, "old_path", NULL);
	if (second)
		json_set_str(file, "old_path", first);
	json_set_str(file, "status", letter[0] == 'T' ? "M" : letter);
	json_object_array_add(list, file);
	return 0;
}

/* "3\t1\tpath" NUL, or for a rename "3\t1\t" NUL old NUL new NUL; "-" for binary files. */
static int numstat_entry(const char *head, const char **at, const char *end,
			 struct json_object *file, struct err *err)
{
	const char *tab = strchr(head, '\t'), *tab2 = tab ? strchr(tab + 1, '\t') : NULL;
	bool binary = head[0] == '-';

	if (!tab2 || !file)
		return err_set(err, ERR_INVALID, "git's diff cannot be read");
	if (tab2[1] == '\0') {
		next_field(at, end);
		next_field(at, end);
	}
	json_set_bool(file, "binary", binary);
	json_set_i64(file, "added", binary ? 0 : strtoll(head, NULL, 10));
	json_set_i64(file, "deleted", binary ? 0 : strtoll(tab + 1, NULL, 10));
	return 0;
}

/* After the last of the counts, of which there is one for each file, stands the stat in lines. */
struct json_object *diffs_files(const struct git_cmd *cmd, const char *from, const char *to,
				struct buf *stat, struct err *err)
{
	AUTO_BUF struct buf out = BUF_INIT;
	AUTO_JSON struct json_object *list = json_object_new_array();
	size_t counted = 0;

	if (git_run(cmd,
		    stat ? GIT_ARGS(DIFF, "-z", "--raw", "--numstat", "--stat=100", from, to)
			 : GIT_ARGS(DIFF, "-z", "--raw", "--numstat", from, to),
		    &out, err) < 0)
		return NULL;
	const char *at = buf_str(&out), *end = at + out.len, *head;
	while (at < end && (*at == ':' || counted < json_len(list))) {
		head = next_field(&at, end);
		int rc = head[0] == ':'
				 ? raw_entry(head, &at, end, list, err)
				 : numstat_entry(head, &at, end, json_at(list, counted++), err);
		if (rc < 0)
			return NULL;
	}
	if (stat && at < end)
		buf_add(stat, at, (size_t)(end - at));
	return take_ptr(list);
}

static const char *next_patch(const char *at, const char *end)
{
	static const char mark[] = "\ndiff --git ";
	const char *found = memmem(at, (size_t)(end - at), mark, strlen(mark));

	return found ? found + 1 : end;
}

int diffs_patches(const struct git_cmd *cmd, const char *from, const char *to, int context,
		  size_t max, struct json_object *files, bool *ret_cut, struct err *err)
{
	AUTO_BUF struct buf out = BUF_INIT;
	char lines[32];
	size_t used = 0;

	snprintf(lines, sizeof(lines), "-U%d", context);
	*ret_cut = false;
	if (git_run(cmd, GIT_ARGS(DIFF, "-p", lines, from, to), &out, err) < 0)
		return -1;
	const char *at = buf_str(&out), *end = at + out.len;
	for (size_t i = 0; i < json_len(files); i++) {
		struct json_object *file = json_at(files, i);
		const char *stop = at < end ? next_patch(at, end) : end;
		size_t n = (size_t)(stop - at);

		if (used + n > max) {
			json_set(file, "patch", NULL);
			json_set_bool(file, "omitted", true);
			*ret_cut = true;
		} else {
			json_set_strn(file, "patch", at, n);
			used += n;
		}
		at = stop;
	}
	return 0;
}

int diffs_whole(const struct git_cmd *cmd, const char *from, const char *to, size_t max,
		struct buf *out, bool *ret_cut, struct err *err)
{
	*ret_cut = false;
	if (git_run(cmd, GIT_ARGS(DIFF, "-p", from, to), out, err) < 0)
		return -1;
	if (out->len <= max)
		return 0;
	const char *stop = memrchr(out->data, '\n', max);
	buf_truncate(out, stop ? (size_t)(stop + 1 - out->data) : max);
	*ret_cut = true;
	return 0;
}
