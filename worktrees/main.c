/*
 * main.c - baton-git: the program that does every git work of a run.
 *
 * Started by the parent with its channel on descriptor 3. It exists so that neither the parent nor
 * an agent loads libgit2, and so that what an agent's repository might provoke happens to a process
 * that can be killed and started again: it holds no state that is not on disk.
 */
#include <fcntl.h>
#include <git2.h>
#include <signal.h>
#include <stdio.h>

#include "base/log.h"
#include "base/memory.h"
#include "worktrees/service.h"

#define CHANNEL_FD 3

/* libgit2 reads and parses all certificates of the system when it starts, 8 of the 10 ms that its
 * start takes, for connections that this program never makes: it has no network at all. The loader
 * takes this definition instead of the library's; libgit2 goes on without certificates, so that an
 * https remote could not be trusted either. */
int mbedtls_x509_crt_parse_file(void *chain, const char *path);
int mbedtls_x509_crt_parse_file(void *chain, const char *path)
{
	(void)chain;
	(void)path;
	return 0;
}

int main(int argc, char **argv)
{
	/* Extensions that change nothing for the parts of libgit2 that are used. */
	static const char *extensions[] = {"worktreeConfig", "preciousObjects", "partialClone"};
	struct err err = ERR_INIT;
	struct sigaction ignore = {.sa_handler = SIG_IGN};

	log_init("git", LOG_WARN);
	if (argc > 1 || fcntl(CHANNEL_FD, F_GETFD) < 0) {
		fprintf(stderr, "baton-git is started by baton, with a channel on descriptor 3\n");
		return 2;
	}
	sigaction(SIGPIPE, &ignore, NULL);
	sigaction(SIGXFSZ, &ignore, NULL); /* a limit on file sizes is an error of the write */
	git_libgit2_init();
	/* Refs are synced; asked for when a repository is opened, so before the first one. */
	git_libgit2_opts(GIT_OPT_ENABLE_FSYNC_GITDIR, 1);
	git_libgit2_opts(GIT_OPT_SET_EXTENSIONS, extensions, ARRAY_SIZE(extensions));
	int rc = service_run(CHANNEL_FD, &err);
	if (rc < 0)
		log_error("%s", err.message);
	git_libgit2_shutdown();
	return rc < 0 ? 1 : 0;
}
