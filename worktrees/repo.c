/*
 * repo.c - opening the user's repository, with libgit2 where it can and by the git program where
 * not.
 *
 * Runs in baton-git. The repository and its configuration belong to the user and are trusted as git
 * trusts them: git's own rule about owners holds (trap 132) and nothing is ever added to
 * safe.directory on disk.
 */
#include "worktrees/repo.h"

#include <fcntl.h>
#include <git2.h>
#include <sys/stat.h>

#include "base/env.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "worktrees/disk.h"
#include "worktrees/git.h"
#include "worktrees/repo_config.h"

static char *without_slash(const char *path)
{
	size_t n = path ? strlen(path) : 0;

	while (n > 1 && path[n - 1] == '/')
		n--;
	return path ? mem_strndup(path, n) : NULL;
}

/* A path below the folder of baton's worktrees leads to what an agent wrote, whatever its .git
 * says. */
static int refuse_own_worktree(const char *path, struct err *err)
{
	AUTO_FREE char *real = realpath(path, NULL);
	AUTO_FREE char *state = env_state_dir();
	AUTO_FREE char *below = state ? file_join(state, "worktrees") : NULL;
	AUTO_FREE char *real_below = below ? realpath(below, NULL) : NULL;
	size_t n = real_below ? strlen(real_below) : 0;

	if (!real)
		return err_sys(err, "cannot enter '%s'", path);
	if (n && strncmp(real, real_below, n) == 0 && (real[n] == '/' || real[n] == '\0'))
		return err_set(err, ERR_DENIED,
			       "'%s' is an agent's worktree; start baton in your own checkout",
			       path);
	return 0;
}

static int denied(const char *path, struct err *err)
{
	return err_set(
		err, ERR_DENIED,
		"the repository at '%s' belongs to another user; if you trust it: git config "
		"--global --add safe.directory '%s'",
		path, path);
}

static void fill_from_handle(struct repo *repo, git_repository *handle)
{
	repo->handle = handle;
	repo->common_dir = without_slash(git_repository_commondir(handle));
	repo->git_dir = without_slash(git_repository_path(handle));
	repo->toplevel = without_slash(git_repository_workdir(handle));
	repo->bare = git_repository_is_bare(handle);
	repo->linked = git_repository_is_worktree(handle);
}

/* One run for what every repository has, one for the top of a checkout. */
static int git_discover(const char *git, const char *path, struct buf *out, struct err *err)
{
	struct repo nothing = {.git = (char *)git};
	struct git_cmd cmd = {.repo = &nothing, .scope = GIT_USER, .cwd = path};

	if (git_run(&cmd,
		    GIT_ARGS("rev-parse", "--show-object-format", "--is-bare-repository",
			     "--path-format=absolute", "--git-dir", "--git-common-dir"),
		    out, err) < 0)
		return -1;
	if (strstr(buf_str(out), "\ntrue\n"))
		return 0;
	return git_run(&cmd, GIT_ARGS("rev-parse", "--show-toplevel"), out, err);
}

/* git's own discovery, from the user's folder: `git -C PATH rev-parse ...`, one answer a line. */
static int fill_from_program(struct repo *repo, const char *path, struct err *err)
{
	AUTO_BUF struct buf out = BUF_INIT;
	char *lines[4] = {NULL};
	struct err why = ERR_INIT;

	if (git_discover(repo->git, path, &out, &why) < 0) {
		if (why.code == ERR_DENIED)
			return denied(path, err);
		if (strstr(why.message, "not a git repository"))
			return err_set(err, ERR_NOT_FOUND, "no git repository at '%s' or above it",
				       path);
		return err_set(err, ERR_UNSUPPORTED, "git cannot use the repository at '%s': %s",
			       path, why.message);
	}
	char *rest = out.data;
	for (int i = 0; i < 4 && rest; i++)
		lines[i] = strsep(&rest, "\n");
	if (!lines[3])
		return err_set(err, ERR_UNSUPPORTED, "git gave no answer about '%s'", path);
	repo->sha256 = strcmp(lines[0], "sha256") == 0;
	repo->bare = strcmp(lines[1], "true") == 0;
	repo->git_dir = without_slash(lines[2]);
	repo->common_dir = without_slash(lines[3]);
	repo->linked = strcmp(repo->git_dir, repo->common_dir) != 0;
	size_t n = rest ? strlen(rest) : 0;
	if (!repo->bare && n > 1)
		repo->toplevel = mem_strndup(rest, n - 1);
	return 0;
}

static int locate(struct repo *repo, const char *path, struct err *err)
{
	git_repository *handle = NULL;
	int rc = git_repository_open_ext(&handle, path, 0, NULL);

	if (rc == 0) {
		fill_from_handle(repo, handle);
		return 0;
	}
	/* libgit2 1.5.1 says "not found" also when it only lacks the setting safe.directory: unless
	 * it looked for a repository and found none, git has the last word. */
	const git_error *why = git_error_last();
	if (rc == GIT_ENOTFOUND && why && strstr(why->message, "could not find repository"))
		return err_set(err, ERR_NOT_FOUND, "no git repository at '%s' or above it", path);
	return fill_from_program(repo, path, err);
}

/* Sparse and partial are told by files: libgit2 knows neither. */
static void look_closer(struct repo *repo)
{
	struct stat st;

	repo->objects = file_join(repo->common_dir, "objects");
	repo->baton_dir = file_join(repo->common_dir, "baton");
	repo->plain_dir = file_join(repo->baton_dir, "git/plain");
	repo->raw_dir = file_join(repo->baton_dir, "git/raw");
	repo->hex = repo->sha256 ? 64 : 40;
	repo->mode = stat(repo->common_dir, &st) == 0 ? (st.st_mode & 0666) | 0600 : 0600;
}

int repo_open(const char *path, const char *git, struct repo **ret, struct err *err)
{
	struct repo *repo = mem_alloc(sizeof(*repo));

	repo->git = mem_strdup(git);
	repo->refs = mem_alloc(sizeof(*repo->refs));
	if (refuse_own_worktree(path, err) < 0 || locate(repo, path, err) < 0) {
		repo_free(repo);
		return -1;
	}
	look_closer(repo);
	if (repo_config_read(repo, err) < 0) {
		repo_free(repo);
		return -1;
	}
	*ret = repo;
	return 0;
}

void repo_free(struct repo *repo)
{
	if (!repo)
		return;
	git_repository_free(repo->handle);
	free(repo->refs->text);
	free(repo->refs->prefix);
	free(repo->refs);
	free(repo->git);
	free(repo->common_dir);
	free(repo->git_dir);
	free(repo->toplevel);
	free(repo->objects);
	free(repo->baton_dir);
	free(repo->plain_dir);
	free(repo->raw_dir);
	free(repo->config);
	free(repo->drivers);
	free(repo->user_name);
	free(repo->user_email);
	free(repo);
}

/* Files that change what history or which files git sees have to stand in every git dir of ours. */
/* With attributes of its own a folder never shows the user's, not even for a moment: another run's git may
 * be at work in it. */
static int copy_shared(const struct repo *repo, const char *dir, bool own_attributes,
		       struct err *err)
{
	static const char *const shared[] = {"shallow", "info/exclude", "info/attributes"};

	for (size_t i = 0; i < ARRAY_SIZE(shared); i++) {
		AUTO_FREE char *from = file_join(repo->common_dir, shared[i]);
		AUTO_FREE char *to = file_join(dir, shared[i]);

		if (own_attributes && strcmp(shared[i], "info/attributes") == 0)
			continue;
		if (file_exists(from) && disk_copy(from, to, err) < 0)
			return -1;
	}
	AUTO_FREE char *sparse = file_join(repo->git_dir, "info/sparse-checkout");
	AUTO_FREE char *copy = file_join(dir, "info/sparse-checkout");
	return repo->sparse && file_exists(sparse) ? disk_copy(sparse, copy, err) : 0;
}

static int make_git_dir(const struct repo *repo, const char *dir, const char *attributes,
			struct err *err)
{
	static const char *const folders[] = {"refs", "objects", "info"};
	static const char head[] = "ref: refs/heads/none\n";
	AUTO_FREE char *head_path = file_join(dir, "HEAD");
	AUTO_FREE char *config = file_join(dir, "config");
	AUTO_FREE char *attr_path = file_join(dir, "info/attributes");
	AUTO_BUF struct buf text = BUF_INIT;

	for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
		AUTO_FREE char *folder = file_join(dir, folders[i]);
		if (file_mkdirs(folder, 0700, err) < 0)
			return -1;
	}
	repo_config_write(repo, false, &text);
	if (copy_shared(repo, dir, attributes != NULL, err) < 0)
		return -1;
	if (attributes &&
	    file_write_atomic(AT_FDCWD, attr_path, attributes, strlen(attributes), 0600, err) < 0)
		return -1;
	if (file_write_atomic(AT_FDCWD, config, text.data, text.len, 0600, err) < 0)
		return -1;
	return file_write_atomic(AT_FDCWD, head_path, head, strlen(head), 0600, err);
}

int repo_prepare(const struct repo *repo, struct err *err)
{
	if (make_git_dir(repo, repo->plain_dir, NULL, err) < 0)
		return -1;
	return make_git_dir(repo, repo->raw_dir,
			    "* -text -eol -filter -ident -working-tree-encoding\n", err);
}
