/*
 * place.c - from the text that a model gave as a path to a place below a root.
 *
 * Models give absolute paths because other tools taught them to; one that lies in a root is mapped
 * to it, any other is refused with the worktree's path, so that the next try is right (trap 114).
 * Nothing is decided here about symlinks or "..": that is the kernel's part, in roots.c.
 */
#include "agent/tools/roots.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "agent/tools/names.h"
#include "base/memory.h"
#include "base/text.h"

void place_release(struct place *place)
{
	free(place->path);
	free(place->shown);
	*place = (struct place){0};
}

/* What follows the prefix in path, or NULL if path is not below it. */
static const char *strip_folder(const char *path, const char *prefix)
{
	size_t n = prefix ? strlen(prefix) : 0;
	while (n > 1 && prefix[n - 1] == '/')
		n--;
	if (n < 2 || strncmp(path, prefix, n) != 0 || (path[n] != '/' && path[n] != '\0'))
		return NULL;
	path += n;
	return path + strspn(path, "/");
}

static const char *find_root(const struct roots *roots, const char *given, enum root_id *ret_id)
{
	for (int i = 0; i < ROOT_COUNT; i++) {
		const struct root *root = &roots->root[i];
		const char *const names[] = {root->path, root->real, root->former,
					     root->former_real};
		const char *rest = NULL;
		for (size_t k = 0; !rest && k < ARRAY_SIZE(names); k++)
			rest = strip_folder(given, names[k]);
		if (rest) {
			*ret_id = (enum root_id)i;
			return rest;
		}
	}
	return NULL;
}

static bool place_is_there(const struct roots *roots, const struct place *place)
{
	int fd = roots->root[place->root].fd;
	struct stat st;
	/* Only whether to unescape hangs on this; what is opened is decided later. */
	return fd >= 0 && fstatat(fd, place->path, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static void place_name(struct place *place)
{
	AUTO_BUF struct buf shown = BUF_INIT;
	buf_adds(&shown, root_prefix(place->root));
	name_escape(&shown, place->path, strlen(place->path));
	free(place->shown);
	place->shown = buf_take(&shown);
}

void place_make(enum root_id root, const char *path, struct place *ret)
{
	*ret = (struct place){.root = root, .path = mem_strdup(path)};
	place_name(ret);
}

static int parse_root(struct roots *roots, const char *given, enum root_id *ret_id,
		      const char **ret_rest, struct err *err)
{
	for (int i = 1; i < ROOT_COUNT; i++)
		if (text_starts(given, root_prefix((enum root_id)i))) {
			*ret_id = (enum root_id)i;
			*ret_rest = given + strlen(root_prefix((enum root_id)i));
			*ret_rest += strspn(*ret_rest, "/");
			return 0;
		}
	if (given[0] != '/') {
		*ret_id = ROOT_WORKTREE;
		*ret_rest = given;
		return 0;
	}
	*ret_rest = find_root(roots, given, ret_id);
	if (*ret_rest)
		return 0;
	const char *worktree = roots->root[ROOT_WORKTREE].path;
	return err_set(err, ERR_DENIED,
		       "'%s' is outside of your worktree '%s'; use paths relative to it", given,
		       worktree ? worktree : "(not ready yet)");
}

int place_parse(struct roots *roots, const char *given, size_t n, struct place *ret,
		struct err *err)
{
	if (!given || strlen(given) != n)
		return err_set(err, ERR_INVALID, "a path cannot hold a NUL character");
	if (n > 4000)
		return err_set(err, ERR_INVALID, "the path is longer than 4,000 bytes");
	struct place place = {0};
	const char *rest;
	if (parse_root(roots, given, &place.root, &rest, err) < 0)
		return -1;
	place.path = mem_strdup(*rest ? rest : ".");
	char *raw = name_unescape(place.path);
	if (raw && !place_is_there(roots, &place)) {
		free(place.path);
		place.path = take_ptr(raw);
	}
	free(raw);
	size_t len = strlen(place.path);
	while (len > 1 && place.path[len - 1] == '/')
		place.path[--len] = '\0';
	place_name(&place);
	*ret = place;
	return 0;
}
