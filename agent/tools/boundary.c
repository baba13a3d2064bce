/*
 * boundary.c - comparing and restoring `.git`, looking at HEAD.
 *
 * A command may write anything in the worktree, so also its `.git` file; whoever then runs git
 * there follows it. baton-git never does, but the user may, so the bytes are put back at once.
 * Whatever else was put in its place (a folder, a symlink) is moved aside, not deleted: it may hold
 * work.
 */
#include "agent/tools/boundary.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"

enum { GIT_FILE_MAX = 8192, ASIDE_TRIES = 1000 };

/* This process or the machine cannot look, whatever is there: no command is to blame. */
static bool is_want(int number)
{
	return number == EMFILE || number == ENFILE || number == ENOMEM || number == EIO;
}

/* Reads a small regular file without following a symlink. */
static int read_small(int dir_fd, const char *name, struct buf *out)
{
	AUTO_FD int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	if (fd < 0 && is_want(errno))
		return -errno;
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > GIT_FILE_MAX)
		return -1;
	while (buf_read(out, fd, GIT_FILE_MAX) > 0)
		if (out->len > GIT_FILE_MAX)
			return -1;
	return 0;
}

/* 0 with the answer; -1: it cannot be asked. */
static int look_at_git_file(const struct tool_context *ctx, bool *ret_ours, struct err *err)
{
	AUTO_BUF struct buf now = BUF_INIT;
	const char *want = ctx->settings.git_file;
	int rc = read_small(ctx->roots.root[ROOT_WORKTREE].fd, ".git", &now);

	errno = rc < -1 ? -rc : 0;
	if (is_want(errno))
		return err_sys(err, "cannot look at the worktree's .git file");
	*ret_ours = rc == 0 && now.len == strlen(want) && memcmp(buf_str(&now), want, now.len) == 0;
	return 0;
}

static void move_aside(int dir_fd)
{
	for (int i = 1; i < ASIDE_TRIES; i++) {
		char name[32];
		snprintf(name, sizeof(name), "git-replaced-%d", i);
		if (renameat2(dir_fd, ".git", dir_fd, name, RENAME_NOREPLACE) == 0 ||
		    errno != EEXIST)
			return;
	}
}

static int restore_git_file(struct tool_context *ctx, struct tool_result *ret, struct err *err)
{
	int dir = ctx->roots.root[ROOT_WORKTREE].fd;
	const char *want = ctx->settings.git_file;
	struct stat st;
	struct err e = ERR_INIT;
	if (fstatat(dir, ".git", &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode))
		move_aside(dir);
	int failed = file_write_atomic(dir, ".git", want, strlen(want), 0644, &e);
	ret->is_error = true;
	buf_addf(&ret->text, "\n[the command changed the worktree's .git file; %s]\n",
		 failed ? "it could not be restored" : "it was restored");
	if (failed)
		return err_set(err, ERR_DENIED, "a command changed the worktree's .git file: %s",
			       e.message);
	return err_set(err, ERR_DENIED,
		       "a command changed the worktree's .git file; it was restored");
}

/* git moves HEAD off the branch by itself in these, and back at their end. */
static bool is_in_progress(int git_fd)
{
	static const char *const marks[] = {
		"rebase-merge", "rebase-apply",	    "BISECT_LOG",  "MERGE_HEAD",
		"sequencer",	"CHERRY_PICK_HEAD", "REVERT_HEAD",
	};
	struct stat st;
	for (size_t i = 0; i < ARRAY_SIZE(marks); i++)
		if (fstatat(git_fd, marks[i], &st, AT_SYMLINK_NOFOLLOW) == 0)
			return true;
	return false;
}

static void check_head(const struct tool_context *ctx, struct tool_result *ret)
{
	AUTO_FD int git = open(ctx->settings.git_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	AUTO_FREE char *want = mem_printf("ref: %s\n", ctx->settings.head_ref);
	AUTO_BUF struct buf head = BUF_INIT;
	bool readable = git >= 0 && read_small(git, "HEAD", &head) == 0;
	if (readable && strcmp(buf_str(&head), want) == 0)
		return;
	if (readable && is_in_progress(git))
		return;
	const char *branch = ctx->settings.head_ref;
	if (text_starts(branch, "refs/heads/"))
		branch += strlen("refs/heads/");
	AUTO_BUF struct buf shown = BUF_INIT;
	text_printable(&shown, buf_str(&head), MIN(head.len, 200), true);
	ret->is_error = true;
	buf_addf(&ret->text,
		 "\n[HEAD left this agent's branch: it is now '%s'. Only %s is taken over at the "
		 "end. Go back with: git checkout %s (bring commits along with git merge or git "
		 "cherry-pick)]\n",
		 readable ? buf_str(&shown) : "unreadable", branch, branch);
}

int boundary_check(struct tool_context *ctx, struct tool_result *ret, struct err *err)
{
	if (ctx->roots.root[ROOT_WORKTREE].fd < 0)
		return 0;
	bool ours = true;
	if (ctx->settings.git_file && look_at_git_file(ctx, &ours, err) < 0)
		return -1;
	if (!ours)
		return restore_git_file(ctx, ret, err);
	if (ctx->settings.git_dir && ctx->settings.head_ref)
		check_head(ctx, ret);
	return 0;
}
