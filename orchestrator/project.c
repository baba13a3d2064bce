/*
 * project.c - see project.h. Reads `.git` files as data; runs no git.
 */
#include "orchestrator/project.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/env.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"

/* The last one counts, as for the option parser. */
static const char *directory_option(int argc, char **argv)
{
	const char *dir = ".";

	for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
		bool named = strcmp(argv[i], "-C") == 0 || strcmp(argv[i], "--directory") == 0;
		if (named && i + 1 < argc)
			dir = argv[++i];
		else if (text_starts(argv[i], "--directory="))
			dir = argv[i] + strlen("--directory=");
	}
	return dir;
}

char *project_above(const char *from)
{
	char *dir = realpath(from ? from : ".", NULL);

	while (dir) {
		AUTO_FREE char *dot_git = file_join(dir, ".git");
		if (file_exists(dot_git))
			return dir;
		char *up = strcmp(dir, "/") == 0 ? NULL : file_dir(dir);
		free(dir);
		dir = up;
	}
	return NULL;
}

char *project_find(int argc, char **argv)
{
	return project_above(directory_option(argc, argv));
}

/* "gitdir: PATH\n" of a `.git` file, made absolute; NULL if it is none. */
static char *linked_git_dir(const char *toplevel, const char *dot_git)
{
	struct buf text = BUF_INIT;
	char *result = NULL;

	if (file_read(AT_FDCWD, dot_git, PATH_MAX + 16, &text, NULL) == 0 &&
	    text_starts(buf_str(&text), "gitdir: ")) {
		text.data[strcspn(text.data, "\n")] = '\0';
		result = file_join(toplevel, text.data + strlen("gitdir: "));
	}
	buf_release(&text);
	return result;
}

/* The common dir of a linked worktree's git dir, from its commondir file. */
static char *common_of(const char *git_dir)
{
	AUTO_FREE char *path = file_join(git_dir, "commondir");
	struct buf text = BUF_INIT;
	char *result = NULL;

	if (file_read(AT_FDCWD, path, PATH_MAX, &text, NULL) == 0) {
		text.data[strcspn(text.data, "\n")] = '\0';
		result = file_join(git_dir, text.data);
	}
	buf_release(&text);
	return result ? result : mem_strdup(git_dir);
}

char *project_baton_dir(const char *toplevel)
{
	AUTO_FREE char *dot_git = file_join(toplevel, ".git");
	AUTO_FREE char *git_dir = NULL;
	AUTO_FREE char *common = NULL;

	git_dir = file_is_dir(dot_git) ? mem_strdup(dot_git) : linked_git_dir(toplevel, dot_git);
	if (!git_dir)
		return NULL;
	common = common_of(git_dir);
	AUTO_FREE char *real = realpath(common, NULL);
	return real ? file_join(real, "baton") : NULL;
}

/* What git itself looks for in a repository without a checkout. */
static bool is_bare(const char *dir)
{
	static const char *const parts[] = {"HEAD", "objects", "refs"};
	bool all = true;

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		AUTO_FREE char *path = file_join(dir, parts[i]);
		all &= i == 0 ? file_exists(path) : file_is_dir(path);
	}
	return all;
}

char *project_store(const char *from)
{
	AUTO_FREE char *top = project_above(from);
	char *dir = top ? NULL : realpath(from ? from : ".", NULL);

	if (top)
		return project_baton_dir(top);
	while (dir && !is_bare(dir)) {
		char *up = strcmp(dir, "/") == 0 ? NULL : file_dir(dir);
		free(dir);
		dir = up;
	}
	char *store = dir ? file_join(dir, "baton") : NULL;
	free(dir);
	return store;
}

char *project_git(void)
{
	const char *path = env_get("PATH");

	while (path && *path) {
		size_t n = strcspn(path, ":");
		AUTO_FREE char *dir = mem_strndup(path, n);
		char *git = file_join(dir, "git");
		if (*dir == '/' && access(git, X_OK) == 0)
			return git;
		free(git);
		path += n + (path[n] == ':');
	}
	return mem_strdup("/usr/bin/git");
}

char *project_git_start(const char *repository)
{
	AUTO_FREE char *git = project_git();
	struct buf doc = BUF_INIT;

	buf_adds(&doc, "{\"repository\":");
	if (repository)
		json_write_cstr(&doc, repository);
	else
		buf_adds(&doc, "null");
	buf_adds(&doc, ",\"git\":");
	json_write_cstr(&doc, git);
	buf_adds(&doc, log_is_verbose() ? ",\"verbose\":true}" : "}");
	return buf_take(&doc);
}
