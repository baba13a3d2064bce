/* roots: nothing leads out, by openat2 and by the fallback (X10, trap 114). */
#include "fixture.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"

/* Each test runs in both ways. */
static int setup_by_component(void **state)
{
	int rc = fixture_setup(state);
	struct fixture *f = *state;
	f->ctx->roots.by_component = true;
	return rc;
}

/* A main checkout beside the worktree, with one file. */
static char *make_outside(struct fixture *f)
{
	puts_file(f, "../main/src/a.c", "main checkout\n");
	return mem_printf("%s/main", f->top);
}

static void assert_refused(struct fixture *f, const char *path)
{
	call(f, "write", "{'path':'%s','content':'evil'}", path);
	assert_error(f);
	assert_says(f, f->worktree);
	call(f, "edit", "{'path':'%s','old_string':'main','new_string':'evil'}", path);
	assert_error(f);
	call(f, "read", "{'path':'%s'}", path);
	assert_error(f);
	assert_says_not(f, "checkout\n");
	assert_file(f, "../main/src/a.c", "main checkout\n");
}

static void test_trap_114_all_ways_out_are_refused(void **state)
{
	struct fixture *f = *state;
	AUTO_FREE char *main_ = make_outside(f);
	AUTO_FREE char *file = mem_printf("%s/src/a.c", main_);
	AUTO_FREE char *sneaky = mem_printf("%s/../main/src/a.c", f->worktree);
	AUTO_FREE char *twin = mem_printf("%s-2/a.c", f->worktree);
	AUTO_FREE char *link = in_tree(f, "link");
	AUTO_FREE char *folder = in_tree(f, "folder");
	puts_file(f, "sub/x", "x");
	assert_int_equal(symlink(file, link), 0);
	assert_int_equal(symlink("../main", folder), 0);
	assert_refused(f, file);
	assert_refused(f, "../main/src/a.c");
	assert_refused(f, "sub/../../main/src/a.c");
	assert_refused(f, sneaky);
	assert_refused(f, twin);
	assert_refused(f, "link");
	assert_refused(f, "folder/src/a.c");
	assert_refused(f, "folder/src/new/deeper.c");
	assert_refused(f, "/etc/passwd");
	assert_refused(f, "/");
	call(f, "glob", "{'pattern':'**/*.c'}");
	assert_says_not(f, "a.c");
	call(f, "grep", "{'pattern':'checkout'}");
	assert_says(f, "no matches");
	call(f, "grep", "{'pattern':'checkout','path':'folder'}");
	assert_error(f);
}

static void test_other_roots_do_not_lead_out(void **state)
{
	struct fixture *f = *state;
	AUTO_FREE char *main_ = make_outside(f);
	AUTO_FREE char *link = mem_printf("%s/out", f->scratch);
	assert_int_equal(symlink(main_, link), 0);
	call(f, "read", "{'path':'scratch:../main/src/a.c'}");
	assert_error(f);
	call(f, "read", "{'path':'scratch:out/src/a.c'}");
	assert_error(f);
	call(f, "write", "{'path':'scratch:out/src/a.c','content':'evil'}");
	assert_error(f);
	call(f, "write", "{'path':'scratch:../results/1','content':'evil'}");
	assert_error(f);
	assert_file(f, "../main/src/a.c", "main checkout\n");
}

static void test_absolute_paths_inside_are_mapped(void **state)
{
	struct fixture *f = *state;
	AUTO_FREE char *alias = mem_printf("%s/alias", f->top);
	AUTO_FREE char *path = in_tree(f, "src/a.c");
	call(f, "write", "{'path':'%s','content':'x'}", path);
	assert_ok(f);
	assert_file(f, "src/a.c", "x");
	call(f, "read", "{'path':'%s'}", f->worktree);
	assert_says(f, "src/");
	/* A worktree configured by way of a symlink is known by both names. */
	assert_int_equal(symlink(f->worktree, alias), 0);
	f->settings.worktree = alias;
	bool by_component = f->ctx->roots.by_component;
	fixture_restart(f);
	f->ctx->roots.by_component = by_component;
	call(f, "read", "{'path':'%s'}", path);
	assert_ok(f);
	call(f, "read", "{'path':'%s/src/a.c'}", alias);
	assert_ok(f);
}

static void test_git_is_refused(void **state)
{
	struct fixture *f = *state;
	AUTO_FREE char *link = in_tree(f, "g");
	static const char *const paths[] = {
		".git",	    "./.git",	      ".git/config", "sub/../.git/config",
		"g/config", ".git/hooks/new", "g",
	};
	puts_file(f, ".git/config", "[core]\n");
	puts_file(f, "sub/x", "");
	puts_file(f, ".gitignore", "");
	assert_int_equal(symlink(".git", link), 0);
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		call(f, "read", "{'path':'%s'}", paths[i]);
		assert_error(f);
		call(f, "write", "{'path':'%s','content':'evil'}", paths[i]);
		assert_error(f);
	}
	AUTO_FREE char *hook = in_tree(f, ".git/hooks");
	assert_int_equal(access(hook, F_OK), -1);
	assert_file(f, ".git/config", "[core]\n");
	call(f, "read", "{'path':'.gitignore'}");
	assert_ok(f);
}

static void test_devices_fifos_sockets_are_refused(void **state)
{
	struct fixture *f = *state;
	AUTO_FREE char *fifo = in_tree(f, "fifo");
	AUTO_FREE char *sock = in_tree(f, "sock");
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", sock);
	AUTO_FD int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	call(f, "read", "{'path':'fifo'}");
	assert_error(f);
	assert_says(f, "neither a regular file");
	call(f, "read", "{'path':'sock'}");
	assert_error(f);
	call(f, "write", "{'path':'fifo','content':'x'}");
	assert_error(f);
	call(f, "grep", "{'pattern':'x'}");
	assert_ok(f);
}

static void test_symlinks_inside(void **state)
{
	struct fixture *f = *state;
	AUTO_FREE char *link = in_tree(f, "link");
	AUTO_FREE char *absolute = in_tree(f, "absolute");
	AUTO_FREE char *real = in_tree(f, "real");
	puts_file(f, "real", "inside\n");
	/* RESOLVE_BENEATH: an absolute symlink is refused even if it leads back in. */
	assert_int_equal(symlink(real, absolute), 0);
	call(f, "read", "{'path':'absolute'}");
	assert_error(f);
	assert_int_equal(symlink("real", link), 0);
	call(f, "read", "{'path':'link'}");
	if (f->ctx->roots.by_component) {
		assert_error(f);
		assert_says(f, "symlink");
	} else {
		assert_ok(f);
		assert_says(f, "inside");
	}
}

/* A folder is exchanged with a symlink that leads out, again and again, while files are written and
 * read through it: what is outside is neither shown nor changed. */
struct swapper {
	char *a, *b;
	int stop;
};

static void *swap(void *arg)
{
	struct swapper *s = arg;
	while (!__atomic_load_n(&s->stop, __ATOMIC_RELAXED))
		renameat2(AT_FDCWD, s->a, AT_FDCWD, s->b, RENAME_EXCHANGE);
	return NULL;
}

static void test_symlink_race(void **state)
{
	struct fixture *f = *state;
	AUTO_FREE char *main_ = make_outside(f);
	AUTO_FREE char *target = mem_printf("%s/src", main_);
	struct swapper s = {.a = in_tree(f, "dir"), .b = in_tree(f, "other")};
	pthread_t thread;
	puts_file(f, "dir/a.c", "mine\n");
	assert_int_equal(symlink(target, s.b), 0);
	assert_int_equal(pthread_create(&thread, NULL, swap, &s), 0);
	int64_t end = clock_mono_ms() + 400;
	size_t seen = 0, refused = 0;
	while (clock_mono_ms() < end) {
		call(f, "read", "{'path':'dir/a.c'}");
		assert_says_not(f, "main checkout");
		f->result.is_error ? refused++ : seen++;
		call(f, "write", "{'path':'dir/a.c','content':'mine\\n'}");
		call(f, "write", "{'path':'dir/new/b.c','content':'x'}");
		call(f, "grep", "{'pattern':'checkout'}");
		assert_says_not(f, "main checkout");
	}
	__atomic_store_n(&s.stop, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	assert_true(seen > 0 && refused > 0);
	assert_file(f, "../main/src/a.c", "main checkout\n");
	AUTO_FREE char *new_ = mem_printf("%s/new", target);
	assert_int_equal(access(new_, F_OK), -1);
	free(s.a);
	free(s.b);
}

static void test_flat_paths(void **state)
{
	struct fixture *f = *state;
	puts_file(f, "a/b/c", "deep\n");
	call(f, "read", "{'path':'a//./b/../b/c'}");
	assert_ok(f);
	call(f, "write", "{'path':'a/../x/./y','content':'1'}");
	assert_ok(f);
	assert_file(f, "x/y", "1");
	/* One file, one state, however it is named. */
	call(f, "write", "{'path':'x//y','content':'2'}");
	assert_ok(f);
	call(f, "read", "{'path':'a/b/c/'}");
	assert_ok(f);
	call(f, "read", "{'path':'..'}");
	assert_error(f);
}

int main(void)
{
#define T(name)                                                                                    \
	cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown),                    \
	{                                                                                          \
#name " by component", name, setup_by_component, fixture_teardown, NULL            \
	}
	const struct CMUnitTest tests[] = {
		T(test_trap_114_all_ways_out_are_refused),
		T(test_other_roots_do_not_lead_out),
		T(test_absolute_paths_inside_are_mapped),
		T(test_git_is_refused),
		T(test_devices_fifos_sockets_are_refused),
		T(test_symlinks_inside),
		T(test_symlink_race),
		T(test_flat_paths),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
