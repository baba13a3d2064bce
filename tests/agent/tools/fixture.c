/*
 * fixture.c - the folders, the call and the waiter of the tools' tests.
 *
 * wait_poll is defined here because tools know it only by its header: the agent links its own,
 * which watches a channel that these tests do not have.
 */
#include "fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/spawn.h"

/* The seam: what agent/wait.c is to the agent. */
int wait_poll(struct waiter *w, struct pollfd *fds, size_t n, int64_t deadline_ms, struct err *err)
{
	w->waits++;
	for (;;) {
		int64_t now = clock_mono_ms(), until = deadline_ms;
		if (w->cancel_at_ms && now >= w->cancel_at_ms)
			return err_set(err, ERR_CANCELLED, "cancelled by the test");
		if (w->cancel_at_ms)
			until = MIN(until, w->cancel_at_ms);
		int64_t left = until == INT64_MAX ? 60000 : until - now;
		int rc = poll(fds, n, (int)MAX(MIN(left, 60000), 0));
		if (rc > 0)
			return rc;
		if (clock_mono_ms() >= deadline_ms)
			return err_set(err, ERR_TIMEOUT, "timed out");
	}
}

static char *make_folder(struct fixture *f, const char *name)
{
	char *path = mem_printf("%s/%s", f->top, name);
	assert_int_equal(mkdir(path, 0755), 0);
	return path;
}

int fixture_setup(void **state)
{
	struct fixture *f = mem_alloc(sizeof(*f));
	char template[] = "/tmp/baton-tools-XXXXXX";
	assert_non_null(mkdtemp(template));
	f->top = realpath(template, NULL);
	f->worktree = make_folder(f, "tree");
	f->results = make_folder(f, "results");
	f->scratch = make_folder(f, "scratch");
	f->cache = make_folder(f, "cache");
	f->git_dir = make_folder(f, "git");
	f->settings = (struct tool_settings){
		.worktree = f->worktree,
		.results_dir = f->results,
		.scratch_dir = f->scratch,
		.cache_dir = f->cache,
		.network = "none",
	};
	assert_int_equal(spawn_become_subreaper(NULL), 0);
	fixture_restart(f);
	*state = f;
	return 0;
}

void fixture_restart(struct fixture *f)
{
	struct err err = ERR_INIT;
	tool_context_free(f->ctx);
	f->ctx = tool_context_new(&f->settings, &f->waiter, &err);
	if (!f->ctx)
		fail_msg("%s", err.message);
}

int fixture_teardown(void **state)
{
	struct fixture *f = *state;
	tool_result_release(&f->result);
	tool_context_free(f->ctx);
	umount2(f->results,
		MNT_DETACH); /* of the test with a full disk, if it failed in the middle */
	file_remove_tree(f->top, NULL);
	free(f->top);
	free(f->worktree);
	free(f->results);
	free(f->scratch);
	free(f->cache);
	free(f->git_dir);
	free(f);
	return 0;
}

int call_json(struct fixture *f, const char *name, struct json_object *input)
{
	const struct tool *tool = tool_find(name);
	AUTO_JSON struct json_object *schema = NULL;
	struct err err = ERR_INIT;
	assert_non_null(tool);
	if (json_parse(tool->schema, strlen(tool->schema), &schema, &err) < 0 ||
	    json_check_schema(schema, input, &err) < 0)
		fail_msg("%s: %s", name, err.message);
	tool_result_release(&f->result);
	f->err = (struct err)ERR_INIT;
	return tool->run(f->ctx, "call-1", input, &f->result, &f->err);
}

int call(struct fixture *f, const char *name, const char *json, ...)
{
	AUTO_BUF struct buf text = BUF_INIT;
	AUTO_JSON struct json_object *input = NULL;
	struct err err = ERR_INIT;
	va_list ap;
	va_start(ap, json);
	buf_addv(&text, json, ap);
	va_end(ap);
	for (size_t i = 0; i < text.len; i++)
		if (text.data[i] == '\'')
			text.data[i] = '"';
	if (json_parse(text.data, text.len, &input, &err) < 0)
		fail_msg("%s: %s", text.data, err.message);
	return call_json(f, name, input);
}

const char *said(const struct fixture *f)
{
	return buf_str(&f->result.text);
}

char *in_tree(struct fixture *f, const char *name)
{
	return mem_printf("%s/%s", f->worktree, name);
}

void put(struct fixture *f, const char *name, const char *bytes, size_t n)
{
	AUTO_FREE char *path = in_tree(f, name);
	AUTO_FREE char *folder = file_dir(path);
	assert_int_equal(file_mkdirs(folder, 0755, NULL), 0);
	AUTO_FD int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(file_write_all(fd, bytes, n, NULL), 0);
}

void puts_file(struct fixture *f, const char *name, const char *text)
{
	put(f, name, text, strlen(text));
}

void get(struct fixture *f, const char *name, struct buf *out)
{
	AUTO_FREE char *path = in_tree(f, name);
	struct err err = ERR_INIT;
	if (file_read(AT_FDCWD, path, 1 << 26, out, &err) < 0)
		fail_msg("%s", err.message);
}

void assert_file(struct fixture *f, const char *name, const char *text)
{
	AUTO_BUF struct buf now = BUF_INIT;
	get(f, name, &now);
	assert_string_equal(buf_str(&now), text);
}

static bool environ_holds(const char *pid, const char *entry)
{
	AUTO_FREE char *path = mem_printf("/proc/%s/environ", pid);
	AUTO_BUF struct buf text = BUF_INIT;
	AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && buf_read(&text, fd, 16 << 10) > 0)
		;
	return text.len && memmem(text.data, text.len + 1, entry, strlen(entry) + 1);
}

size_t count_marked(const char *entry)
{
	size_t count = 0;
	DIR *dir = opendir("/proc");
	for (struct dirent *d; (d = readdir(dir));)
		if (d->d_name[0] >= '1' && d->d_name[0] <= '9')
			count += environ_holds(d->d_name, entry);
	closedir(dir);
	return count;
}

size_t count_zombies(void)
{
	size_t count = 0;
	DIR *dir = opendir("/proc");
	for (struct dirent *d; (d = readdir(dir));) {
		AUTO_FREE char *path = mem_printf("/proc/%s/stat", d->d_name);
		AUTO_BUF struct buf text = BUF_INIT;
		AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
		char state;
		int parent;
		if (d->d_name[0] < '1' || d->d_name[0] > '9' || fd < 0 ||
		    buf_read(&text, fd, 4096) <= 0 || !strrchr(text.data, ')'))
			continue;
		if (sscanf(strrchr(text.data, ')') + 1, " %c %d", &state, &parent) == 2)
			count += state == 'Z' && parent == getpid();
	}
	closedir(dir);
	return count;
}

bool wait_until(bool (*holds)(void *arg), void *arg)
{
	int64_t deadline = clock_mono_ms() + 5000;
	while (!holds(arg)) {
		if (clock_mono_ms() > deadline)
			return false;
		poll(NULL, 0, 5);
	}
	return true;
}
