/*
 * glob.c - the glob tool: files by name, newest first, with size and time (T11).
 *
 * Newest first, because what was changed last is what one mostly looks for, and because a cut list
 * then loses the least. The walk and the ignore rules are in walk.c, the patterns in wild.c.
 */
#include <fcntl.h>

#include "agent/tools/names.h"
#include "agent/tools/walk.h"
#include "agent/tools/wild.h"
#include "base/memory.h"
#include "base/text.h"

enum { GLOB_SHOWN = 200, GLOB_KEPT = 200000 };

const char glob_description[] =
	"Finds files by name: `*` and `?` within a path component, `**` for any number of "
	"components, `[a-z]`, `{a,b}`. A pattern without a slash matches file names at any depth; "
	"one with a slash matches the path from the worktree, or from `path`. Files that "
	".gitignore names are left out unless include_ignored is "
	"set. The result is newest first, with time (UTC) and size of each file.";

const char glob_schema[] =
	"{\"type\":\"object\",\"properties\":{"
	"\"pattern\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":4000,"
	"\"description\":\"such as src/**/*.c or *.{h,hpp}\"},"
	"\"path\":{\"type\":\"string\",\"minLength\":1,\"description\":\"folder to look in\"},"
	"\"include_ignored\":{\"type\":\"boolean\"},"
	"\"limit\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":5000,"
	"\"description\":\"most files to show, 200 by default\"}},"
	"\"required\":[\"pattern\"],\"additionalProperties\":false}";

struct found {
	char *path;
	int64_t mtime_ns;
	uint64_t size;
};

/* All matches are kept before any is shown: the newest may come last. */
struct globbing {
	struct wild_set patterns;
	struct found *files;
	size_t count, cap, kept;
};

static int newest_first(const void *a, const void *b)
{
	const struct found *x = a, *y = b;
	if (x->mtime_ns != y->mtime_ns)
		return x->mtime_ns > y->mtime_ns ? -1 : 1;
	return strcmp(x->path, y->path);
}

/* Names alone decide; a file is looked at only if it matches. Symlinks are shown as such. */
static int on_glob_file(const struct walk_file *file, void *arg, struct err *err)
{
	struct globbing *g = arg;
	struct stat st;
	if (!wild_set_match(&g->patterns, file->path) ||
	    fstatat(file->dir_fd, file->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	g->count++;
	if (g->kept >= GLOB_KEPT)
		return 0;
	MEM_GROW(g->files, g->cap, g->kept + 1);
	g->files[g->kept++] = (struct found){
		.path = mem_strdup(file->path),
		.mtime_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec,
		.size = (uint64_t)st.st_size,
	};
	return 0;
}

static void add_found(struct buf *out, const struct place *folder, const struct found *f)
{
	AUTO_BUF struct buf size = BUF_INIT;
	name_add_time(out, f->mtime_ns / 1000000);
	name_add_number(&size, f->size);
	buf_addf(out, "  %11s  ", buf_str(&size));
	if (strcmp(folder->path, ".") == 0)
		buf_adds(out, root_prefix(folder->root));
	else
		buf_addf(out, "%s/", folder->shown);
	name_escape(out, f->path, strlen(f->path));
	buf_addc(out, '\n');
}

static void fill_glob(struct globbing *g, const struct walk *walk, const struct place *folder,
		      size_t limit, struct tool_result *ret)
{
	if (g->kept)
		qsort(g->files, g->kept, sizeof(*g->files), newest_first);
	for (size_t i = 0; i < MIN(g->kept, limit); i++)
		add_found(&ret->text, folder, &g->files[i]);
	if (!g->count)
		buf_adds(&ret->text, "no files match\n");
	else if (g->count > limit)
		buf_addf(&ret->text,
			 "[the newest %zu of %zu files; narrow the pattern or raise limit]\n",
			 limit, g->count);
	if (walk->cut)
		buf_adds(&ret->text, "[the tree is too large: not all of it was looked at]\n");
}

/* The folder to start in. A pattern may name a root itself ("results:*.txt") or be absolute. */
static int glob_start(struct tool_context *ctx, struct json_object *input, struct place *ret_folder,
		      struct wild_set *ret_patterns, struct err *err)
{
	AUTO_PLACE struct place place = {0};
	const char *pattern = json_str(input, "pattern", "");
	if (place_parse(&ctx->roots, pattern, json_str_len(input, "pattern"), &place, err) < 0)
		return -1;
	bool own_root = place.root != ROOT_WORKTREE || pattern[0] == '/';
	if (own_root || !json_has(input, "path")) {
		const char *top = own_root ? root_prefix(place.root) : ".";
		if (place_parse(&ctx->roots, *top ? top : ".", MAX(strlen(top), 1), ret_folder,
				err) < 0)
			return -1;
	} else if (input_place(ctx, input, "path", ret_folder, err) < 0) {
		return -1;
	}
	wild_set_init(ret_patterns, place.path);
	return 0;
}

int glob_run(struct tool_context *ctx, const char *call_id, struct json_object *input,
	     struct tool_result *ret, struct err *err)
{
	AUTO_PLACE struct place folder = {0};
	struct globbing g = {0};
	struct err e = ERR_INIT;
	struct stat st;
	ret->exit_code = -1;
	if (glob_start(ctx, input, &folder, &g.patterns, &e) < 0)
		return result_fail(ret, &e);
	AUTO_FD int fd = place_open(&ctx->roots, &folder, &st, &e);
	struct walk walk = {
		.ctx = ctx,
		.include_ignored = json_flag(input, "include_ignored", false),
		.on_file = on_glob_file,
		.arg = &g,
	};
	int rc = fd < 0 ? -1 : 0;
	if (fd >= 0 && !S_ISDIR(st.st_mode))
		rc = err_set(&e, ERR_INVALID, "'%s' is not a folder", folder.shown);
	if (rc == 0)
		rc = walk_tree(&walk, &folder, fd, &e);
	if (rc == 0)
		fill_glob(&g, &walk, &folder, (size_t)json_i64(input, "limit", GLOB_SHOWN), ret);
	result_summary(ret, "glob %s (%zu files)", json_str(input, "pattern", ""), g.count);
	for (size_t i = 0; i < g.kept; i++)
		free(g.files[i].path);
	free(g.files);
	wild_set_release(&g.patterns);
	return rc < 0 ? result_end(ret, &e, err) : 0;
}
