/*
 * git.c - running git with an environment of our own, its input and outputs pumped by one poll
 * loop.
 *
 * Runs in baton-git and its workers. A git may be made to hang by what a box planted (a FIFO called
 * .gitignore), so everything has a deadline and is killed by its process group. What git says on
 * stderr becomes the error's text: it names the cause better than we could.
 */
#include "worktrees/git.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/memory.h"
#include "base/spawn.h"
#include "base/text.h"
#include "worktrees/repo.h"

#define GIT_TIMEOUT_MS 300000
#define GIT_OUT_MAX    ((size_t)256 << 20)
#define GIT_ERR_MAX    65536

struct strings {
	char **items;
	size_t count, cap;
	size_t configs; /* GIT_CONFIG_KEY_n used so far */
};

static void strings_free(struct strings *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->items[i]);
	free(list->items);
}

static void strings_push(struct strings *list, char *item)
{
	MEM_GROW(list->items, list->cap, list->count + 2);
	list->items[list->count++] = item;
	list->items[list->count] = NULL;
}

static void env_set(struct strings *list, const char *name, const char *value)
{
	if (value)
		strings_push(list, mem_printf("%s=%s", name, value));
}

static void env_config(struct strings *list, const char *key, const char *value)
{
	strings_push(list, mem_printf("GIT_CONFIG_KEY_%zu=%s", list->configs, key));
	strings_push(list, mem_printf("GIT_CONFIG_VALUE_%zu=%s", list->configs, value));
	list->configs++;
}

/* The overrides that stand above every configuration file, also for what git itself starts. They go
 * through the environment and not as `-c` options, because a git that git starts (upload-pack,
 * submodule, maintenance) inherits the one and not always the other. Each row is something that a
 * repository's configuration could otherwise make git do: run a program (fsmonitor, hooks, a
 * credential helper), talk to the network, rewrite what is being read (gc), or write an index in a
 * form that our own reader does not take (split, sparse, untracked cache). */
static void env_overrides(struct strings *env, const struct git_cmd *cmd)
{
	static const char *const fixed[][2] = {
		{"core.fsmonitor", "false"},
		{"core.hooksPath", "/dev/null"},
		{"gc.auto", "0"},
		{"maintenance.auto", "false"},
		{"credential.helper", ""},
		{"protocol.allow", "never"},
		{"core.splitIndex", "false"},
		{"core.untrackedCache", "false"},
		{"index.sparse", "false"},
		{"core.safecrlf", "false"},
		{"submodule.recurse", "false"},
		{"core.filesRefLockTimeout", "5000"},
		{"core.packedRefsTimeout", "5000"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(fixed); i++)
		env_config(env, fixed[i][0], fixed[i][1]);
	env_config(env, "core.fsync", cmd->durable ? "all" : "none");
	if (cmd->repo->toplevel)
		env_config(env, "safe.directory", cmd->repo->toplevel);
	if (cmd->repo->git_dir)
		env_config(env, "safe.directory", cmd->repo->git_dir);
	if (cmd->repo->mode) {
		char mode[16];

		/* The spawn function's umask 077 must not hide new objects and refs from those who
		 * could read the old ones. */
		snprintf(mode, sizeof(mode), "0%03o", (unsigned)cmd->repo->mode);
		env_config(env, "core.sharedRepository", mode);
	}
	strings_push(env, mem_printf("GIT_CONFIG_COUNT=%zu", env->configs));
}

/* Built from nothing: what the user's shell exported (GIT_DIR above all, when baton is started from
 * a hook) must not reach a git of ours. The three scopes differ in whose configuration counts:
 * GIT_USER is the user's own command on his repository and reads his files; GIT_RAW and the plain
 * one read a configuration that we wrote, so none that a box could have written is ever read. No lock
 * is optional for us: a refreshed index would be a change to the user's checkout. A lazy fetch would
 * open a connection from a process that has no business on the network. */
static void env_build(struct strings *env, const struct git_cmd *cmd)
{
	static const char *const kept[] = {
		"PATH", "HOME", "TMPDIR", "USER", "XDG_CONFIG_HOME", "LD_LIBRARY_PATH"};
	static const char *const user_config[] = {"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM",
						  "GIT_CONFIG_NOSYSTEM"};
	const struct repo *repo = cmd->repo;
	bool user = cmd->scope == GIT_USER;

	for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
		env_set(env, kept[i], env_get(kept[i]));
	for (size_t i = 0; i < ARRAY_SIZE(user_config) && user; i++)
		env_set(env, user_config[i], env_get(user_config[i]));
	if (!user) {
		env_set(env, "GIT_CONFIG_GLOBAL", "/dev/null");
		env_set(env, "GIT_CONFIG_NOSYSTEM", "1");
	}
	env_set(env, "LC_ALL", "C");
	env_set(env, "GIT_TERMINAL_PROMPT", "0");
	env_set(env, "GIT_OPTIONAL_LOCKS", "0");
	env_set(env, "GIT_NO_LAZY_FETCH", "1");
	env_set(env, "GIT_ASKPASS", "/bin/false");
	env_set(env, "GIT_EDITOR", "/bin/false");
	env_set(env, "GIT_DIR",
		cmd->git_dir		? cmd->git_dir
		: user			? repo->git_dir
		: cmd->scope == GIT_RAW ? repo->raw_dir
					: repo->plain_dir);
	env_set(env, "GIT_WORK_TREE",
		cmd->work_tree ? cmd->work_tree
		: user	       ? repo->toplevel
			       : NULL);
	env_set(env, "GIT_INDEX_FILE", cmd->index);
	env_set(env, "GIT_OBJECT_DIRECTORY", cmd->objects ? cmd->objects : repo->objects);
	env_set(env, "GIT_ALTERNATE_OBJECT_DIRECTORIES", cmd->alternates);
	for (const char *const *extra = cmd->env; extra && *extra; extra++)
		strings_push(env, mem_strdup(*extra));
	env_overrides(env, cmd);
}

/* One running git: what it is fed, what it says. */
struct proc {
	pid_t pid;
	int in, err_fd;
	struct buf said;
	const struct buf *feed;
	size_t fed;
	int status;
};

static int pipe_make(int ends[2], struct err *err)
{
	return pipe2(ends, O_CLOEXEC) < 0 ? err_sys(err, "cannot make a pipe") : 0;
}

/* The ends that the child gets are closed here at once, whether it started or not: an end that stays
 * open in this process would keep the pipe from ever reading as ended. Workers of the service are
 * single-threaded, so no other spawn can inherit them in between; they are CLOEXEC all the same. */
static int proc_start(struct proc *proc, const struct git_cmd *cmd, const char *const *args,
		      int fd_in, int fd_out, struct err *err)
{
	struct strings env = {0}, argv = {0};
	struct spawn_opts opts = SPAWN_OPTS_INIT;
	int said[2] = {-1, -1}, feed[2] = {-1, -1};

	if (pipe_make(said, err) < 0 || (cmd->in && pipe_make(feed, err) < 0)) {
		mem_close_fd(&said[0]);
		mem_close_fd(&said[1]);
		return -1;
	}
	env_build(&env, cmd);
	strings_push(&argv, mem_strdup("git"));
	for (; *args; args++)
		strings_push(&argv, mem_strdup(*args));
	opts.path = cmd->repo->git;
	opts.argv = (const char *const *)argv.items;
	opts.envp = (const char *const *)env.items;
	opts.cwd = cmd->cwd ? cmd->cwd : cmd->work_tree ? cmd->work_tree : "/";
	if (!cmd->cwd && !cmd->work_tree && cmd->scope == GIT_USER && cmd->repo->toplevel)
		opts.cwd = cmd->repo->toplevel;
	opts.fd_in = cmd->in ? feed[0] : fd_in;
	opts.fd_out = fd_out;
	opts.fd_err = said[1];
	opts.death_signal = SIGKILL;
	int result = spawn_process(&opts, &proc->pid, NULL, err);
	strings_free(&env);
	strings_free(&argv);
	mem_close_fd(&said[1]);
	mem_close_fd(&feed[0]);
	proc->err_fd = said[0];
	proc->in = feed[1];
	if (proc->in >= 0)
		fcntl(proc->in, F_SETFL, O_NONBLOCK);
	proc->feed = cmd->in;
	return result;
}

/* A git that closes its input early has what it wanted (or fails, and says why on stderr): EPIPE is
 * no error of its own. SIGPIPE is ignored in main. */
static void proc_feed(struct proc *proc)
{
	ssize_t n = 0;

	if (proc->fed < proc->feed->len)
		n = write(proc->in, proc->feed->data + proc->fed, proc->feed->len - proc->fed);
	if (n > 0)
		proc->fed += (size_t)n;
	bool broken = n < 0 && errno != EAGAIN && errno != EINTR;
	if (broken || proc->fed == proc->feed->len)
		mem_close_fd(&proc->in);
}

/* Reads what is there; closes at the end. -1 when the buffer's maximum is reached. */
static int drain(int *fd, struct buf *out)
{
	char sink[8192];
	ssize_t n = out ? buf_read(out, *fd, 1 << 16) : read(*fd, sink, sizeof(sink));

	if (n < 0 && errno == EOVERFLOW)
		return -1;
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		mem_close_fd(fd);
	return 0;
}

/* Input, output and both stderrs in one poll: feeding one git to the end before reading it deadlocks
 * as soon as it answers more than a pipe holds. A descriptor that is closed stands as -1 in its slot,
 * which poll skips, so the numbers of the slots stay the same. */
static int pump_step(struct proc *procs, size_t count, int *fd_out, struct buf *out,
		     int64_t deadline, struct err *err)
{
	struct pollfd polls[5];
	int *fds[5];
	size_t n = 0;

	polls[n] = (struct pollfd){.fd = *fd_out, .events = POLLIN};
	fds[n++] = fd_out;
	for (size_t i = 0; i < count; i++) {
		polls[n] = (struct pollfd){.fd = procs[i].in, .events = POLLOUT};
		fds[n++] = &procs[i].in;
		polls[n] = (struct pollfd){.fd = procs[i].err_fd, .events = POLLIN};
		fds[n++] = &procs[i].err_fd;
	}
	int64_t left = deadline - clock_mono_ms();
	if (left <= 0)
		return err_set(err, ERR_TIMEOUT, "git did not end within %d s",
			       GIT_TIMEOUT_MS / 1000);
	if (poll(polls, n, (int)left) < 0 && errno != EINTR)
		return err_sys(err, "cannot wait for git");
	for (size_t i = 0; i < n; i++) {
		if (*fds[i] < 0 || !polls[i].revents)
			continue;
		struct proc *proc = i == 0 ? NULL : &procs[(i - 1) / 2];
		if (proc && fds[i] == &proc->in) {
			proc_feed(proc);
		} else if (drain(fds[i], proc ? &proc->said : out) < 0) {
			if (!proc)
				return err_set(err, ERR_TOO_LARGE, "git said more than %zu bytes",
					       out->max);
			mem_close_fd(fds[i]); /* enough of its complaints */
		}
	}
	return 0;
}

static bool pumping(const struct proc *procs, size_t count, int fd_out)
{
	bool any = fd_out >= 0;

	for (size_t i = 0; i < count; i++)
		any = any || procs[i].err_fd >= 0 || procs[i].in >= 0;
	return any;
}

/* Only after a failure is there anything to kill; the group, since git may have started another git.
 * A pid is reaped once and nowhere else in a worker, so its number is still its own here. */
static void procs_end(struct proc *procs, size_t count, bool kill_first)
{
	for (size_t i = 0; i < count; i++) {
		if (procs[i].pid <= 0)
			continue;
		if (kill_first)
			kill(-procs[i].pid, SIGKILL);
		while (waitpid(procs[i].pid, &procs[i].status, 0) < 0 && errno == EINTR)
			;
		mem_close_fd(&procs[i].in);
		mem_close_fd(&procs[i].err_fd);
	}
}

/* git's own words without "fatal: " and beyond the first few lines. */
static int complain(const struct proc *proc, const char *const *args, struct err *err)
{
	AUTO_BUF struct buf text = BUF_INIT;
	const char *said = buf_str(&proc->said);
	static const char *const lead[] = {"fatal: ", "error: "};

	for (size_t i = 0; i < ARRAY_SIZE(lead); i++) {
		if (text_starts(said, lead[i]))
			said += strlen(lead[i]);
	}
	text_printable(&text, said, strnlen(said, 400), true);
	while (text.len && text.data[text.len - 1] == ' ')
		buf_truncate(&text, text.len - 1);
	if (strstr(said, "dubious ownership"))
		return err_set(err, ERR_DENIED, "%s", buf_str(&text));
	if (WIFSIGNALED(proc->status))
		return err_set(err, ERR_INVALID, "git %s was killed by signal %d", args[0],
			       WTERMSIG(proc->status));
	return err_set(err, ERR_INVALID, "git %s failed: %s", args[0],
		       text.len ? buf_str(&text) : "no reason given");
}

static int pump(struct proc *procs, size_t count, int *fd_out, struct buf *out, struct err *err)
{
	int64_t deadline = clock_mono_ms() + GIT_TIMEOUT_MS;
	int result = 0;

	while (result == 0 && pumping(procs, count, *fd_out))
		result = pump_step(procs, count, fd_out, out, deadline, err);
	procs_end(procs, count, result < 0);
	mem_close_fd(fd_out);
	return result;
}

static void limit_out(struct buf *out, const struct git_cmd *cmd)
{
	if (out)
		out->max = cmd->max_out ? cmd->max_out : GIT_OUT_MAX;
}

int git_run(const struct git_cmd *cmd, const char *const *args, struct buf *out, struct err *err)
{
	struct proc proc = {.in = -1, .err_fd = -1, .said = BUF_INIT_MAX(GIT_ERR_MAX)};
	int ends[2];

	if (pipe_make(ends, err) < 0)
		return -1;
	limit_out(out, cmd);
	int result = proc_start(&proc, cmd, args, -1, ends[1], err);
	mem_close_fd(&ends[1]);
	if (result == 0) {
		result = pump(&proc, 1, &ends[0], out, err);
	} else {
		mem_close_fd(&proc.in);
		mem_close_fd(&proc.err_fd);
		mem_close_fd(&ends[0]);
	}
	if (result == 0 && cmd->ret_status && WIFEXITED(proc.status))
		*cmd->ret_status = WEXITSTATUS(proc.status);
	else if (result == 0 && proc.status != 0)
		result = complain(&proc, args, err);
	buf_release(&proc.said);
	return result;
}

int git_line(const struct git_cmd *cmd, const char *const *args, char **ret, struct err *err)
{
	AUTO_BUF struct buf out = BUF_INIT;

	if (git_run(cmd, args, &out, err) < 0)
		return -1;
	*ret = mem_strndup(buf_str(&out), strcspn(buf_str(&out), "\n"));
	return 0;
}

/* Both statuses count, the first one first: when the source of a pack dies, the second git complains
 * about a short pack, and that is not the cause. */
int git_pipe(const struct git_cmd *from, const char *const *from_args, const struct git_cmd *to,
	     const char *const *to_args, struct buf *out, struct err *err)
{
	struct proc procs[2] = {
		{.in = -1, .err_fd = -1, .said = BUF_INIT_MAX(GIT_ERR_MAX)},
		{.in = -1, .err_fd = -1, .said = BUF_INIT_MAX(GIT_ERR_MAX)},
	};
	int middle[2], ends[2] = {-1, -1};

	if (pipe_make(middle, err) < 0)
		return -1;
	limit_out(out, to);
	int result = pipe_make(ends, err);
	if (result == 0)
		result = proc_start(&procs[0], from, from_args, -1, middle[1], err);
	if (result == 0)
		result = proc_start(&procs[1], to, to_args, middle[0], ends[1], err);
	mem_close_fd(&middle[0]);
	mem_close_fd(&middle[1]);
	mem_close_fd(&ends[1]);
	if (result == 0)
		result = pump(procs, 2, &ends[0], out, err);
	else
		procs_end(procs, 2, true);
	mem_close_fd(&ends[0]);
	if (result == 0 && procs[0].status != 0)
		result = complain(&procs[0], from_args, err);
	else if (result == 0 && procs[1].status != 0)
		result = complain(&procs[1], to_args, err);
	buf_release(&procs[0].said);
	buf_release(&procs[1].said);
	return result;
}
