/*
 * box_rig.c - see box_rig.h.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/spawn.h"
#include "box_rig.h"

enum { COMMAND_MS = 90000 };

static char *make_folder(const char *above, const char *name)
{
	char *path = file_join(above, name);

	assert_int_equal(mkdir(path, 0700), 0);
	return path;
}

static void put_file(const char *folder, const char *name, const char *text)
{
	AUTO_FREE char *path = file_join(folder, name);
	struct err err = ERR_INIT;

	if (file_write_atomic(AT_FDCWD, path, text, strlen(text), 0600, &err) < 0)
		fail_msg("%s", err.message);
}

static pid_t start(const char *const *argv, const char *const *envp, const char *cwd,
		   const char *log, int *ret_pidfd)
{
	struct spawn_opts opts = SPAWN_OPTS_INIT;
	AUTO_FD int fd = log ? open(log, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
	struct err err = ERR_INIT;
	pid_t pid;

	opts.path = argv[0];
	opts.argv = argv;
	opts.envp = envp;
	opts.cwd = cwd;
	opts.fd_out = opts.fd_err = fd;
	opts.new_session = true;
	opts.death_signal = SIGKILL;
	if (spawn_process(&opts, &pid, ret_pidfd, &err) < 0)
		fail_msg("%s", err.message);
	return pid;
}

int box_suite_status(void)
{
	struct box_facts facts;

	box_probe(&facts);
	if (facts.best != BOX_NONE)
		return 0;
	fprintf(stderr, "skipped: this kernel gives no box\n");
	return 77;
}

int box_rig_setup(void **state)
{
	struct box_rig *rig = mem_alloc(sizeof(*rig));
	static const char *const waits[] = {"/bin/sleep", "600", NULL};
	static const char *const secret[] = {"OUTSIDER_KEY=" OUTSIDER_SECRET, NULL};

	rig->root = mem_printf("%s/box-XXXXXX", env_get("TMPDIR") ?: "/tmp");
	assert_non_null(mkdtemp(rig->root));
	rig->work = make_folder(rig->root, "work");
	rig->tmp = make_folder(rig->root, "tmp");
	rig->shown = make_folder(rig->root, "shown");
	rig->hidden = make_folder(rig->root, "hidden");
	rig->home = make_folder(rig->root, "home");
	rig->log = file_join(rig->root, "log");
	AUTO_FREE char *ssh = make_folder(rig->home, ".ssh");
	put_file(ssh, "id", "secret");
	put_file(rig->home, ".netrc", "secret");
	put_file(rig->shown, "file", FILE_TEXT);
	put_file(rig->hidden, "file", FILE_TEXT);
	put_file(rig->work, "mine", FILE_TEXT);
	rig->outsider = start(waits, secret, rig->hidden, NULL, NULL);
	box_probe(&rig->facts);
	*state = rig;
	return 0;
}

int box_rig_teardown(void **state)
{
	struct box_rig *rig = *state;

	kill(rig->outsider, SIGKILL);
	waitpid(rig->outsider, NULL, 0);
	file_remove_tree(rig->root, NULL);
	free(rig->root);
	free(rig->work);
	free(rig->tmp);
	free(rig->shown);
	free(rig->hidden);
	free(rig->home);
	free(rig->log);
	free(rig);
	return 0;
}

static int wait_for_end(pid_t pid, int pidfd)
{
	struct pollfd fd = {.fd = pidfd, .events = POLLIN};
	int64_t deadline = clock_mono_ms() + COMMAND_MS;
	int status;

	while (waitpid(pid, &status, WNOHANG) == 0) {
		int64_t left = deadline - clock_mono_ms();

		if (left <= 0 || (poll(&fd, 1, (int)left) < 0 && errno != EINTR)) {
			kill(-pid, SIGKILL);
			waitpid(pid, NULL, 0);
			fail_msg("a command did not end in time");
		}
	}
	kill(-pid, SIGKILL); /* whatever it left behind */
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int run_argv(struct box_rig *rig, const char *const *argv, struct buf *out)
{
	AUTO_FREE char *home = mem_printf("HOME=%s", rig->home);
	AUTO_FREE char *tmp = mem_printf("TMPDIR=%s", rig->tmp);
	AUTO_FREE char *work = mem_printf("WORK=%s", rig->work);
	AUTO_FREE char *shown = mem_printf("SHOWN=%s", rig->shown);
	AUTO_FREE char *hidden = mem_printf("HIDDEN=%s", rig->hidden);
	AUTO_FREE char *repo = mem_printf("REPO=%s/repo", rig->root);
	AUTO_FREE char *outsider = mem_printf("OUTSIDER=%d", (int)rig->outsider);
	AUTO_FREE char *try = mem_printf("TRY=%s", env_get("BOX_TRY") ?: "");
	/* LeakSanitizer stops its own threads by ptrace, which no box allows. */
	const char *envp[] = {"PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
			      "LC_ALL=C.UTF-8",
			      "GIT_CONFIG_NOSYSTEM=1",
			      "ASAN_OPTIONS=detect_leaks=0",
			      home,
			      tmp,
			      work,
			      shown,
			      hidden,
			      repo,
			      outsider,
			      try,
			      NULL};
	AUTO_FD int pidfd = -1;
	pid_t pid = start(argv, envp, rig->work, rig->log, &pidfd);
	int code = wait_for_end(pid, pidfd);

	assert_int_equal(file_read(AT_FDCWD, rig->log, 8 << 20, out, NULL), 0);
	return code;
}

int box_run_words(struct box_rig *rig, const char *const *words, struct buf *out)
{
	const char *argv[32] = {env_get("BATON_BOX")};

	for (size_t i = 0; words[i]; i++)
		argv[i + 1] = words[i];
	return run_argv(rig, argv, out);
}

int box_run(struct box_rig *rig, const char *const *options, const char *script, struct buf *out)
{
	AUTO_FREE char *try_folder = file_dir(env_get("BOX_TRY") ?: "/usr/bin/x");
	const char *words[32] = {"--write", rig->work,	"--write", rig->tmp,
				 "--read",  rig->shown, "--read",  try_folder};
	size_t n = 8;

	for (size_t i = 0; options && options[i]; i++)
		words[n++] = options[i];
	words[n++] = "--";
	words[n++] = "/bin/bash";
	words[n++] = "-c";
	words[n++] = script;
	return box_run_words(rig, words, out);
}

int box_run_open(struct box_rig *rig, const char *script, struct buf *out)
{
	const char *words[] = {"--level", "unconfined", "--", "/bin/bash", "-c", script, NULL};

	return box_run_words(rig, words, out);
}

void box_prepare(struct box_rig *rig, const char *script)
{
	const char *argv[] = {"/bin/bash", "-ec", script, NULL};
	AUTO_BUF struct buf out = BUF_INIT;

	if (run_argv(rig, argv, &out) != 0)
		fail_msg("outside the box: %s", buf_str(&out));
}

bool box_has_line(const struct buf *out, const char *line)
{
	size_t n = strlen(line);

	for (const char *p = buf_str(out); p && *p; p = strchr(p, '\n')) {
		p += *p == '\n';
		if (strncmp(p, line, n) == 0 && (p[n] == '\n' || p[n] == '\0'))
			return true;
	}
	return false;
}

char *box_fingerprint(struct box_rig *rig, const char *folder)
{
	AUTO_FREE char *script =
		mem_printf("cd '%s' && find . -printf '%%p %%y %%m %%s %%l\\n' | sort "
			   "&& find . -type f -print0 | sort -z | xargs -0 -r sha256sum",
			   folder);
	const char *argv[] = {"/bin/bash", "-ec", script, NULL};
	struct buf out = BUF_INIT;

	assert_int_equal(run_argv(rig, argv, &out), 0);
	return buf_take(&out);
}
