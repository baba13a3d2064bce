/*
 * bench_worktrees.c - worktrees by baton-git beside `git worktree add`, in one run.
 *
 * Usage: bench_worktrees [FILE.json]. Makes repositories of 20, 2,000 and, with BATON_BENCH_LARGE
 * set, 50,000 files in $TMPDIR, which should be a tmpfs: ext4 creates files 5 to 10 times slower
 * for minutes after a mass deletion (facts H), so nothing is deleted before the end either. Both
 * sides take turns, so that a busy machine hits both. Figures are milliseconds of wall time;
 * baton's go from the request to the answer. With a file, one line of JSON is appended to it.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/file.h"
#include "base/memory.h"
#include "rig.h"

#define ROUNDS 5
#define MANY   16

struct figures {
	double ours_one, git_one, ours_many, git_many;
};

static void make_files(struct rig *rig, int files)
{
	/* Small text files in many folders, like source. */
	AUTO_FREE char *script = mem_printf(
		"cd repo && awk 'BEGIN { for (i = 0; i < %d; i++) { d = \"d\" int(i / 25); "
		"if (i %% 25 == 0) system(\"mkdir \" d); f = d \"/f\" i \".c\"; "
		"for (k = 0; k < 100; k++) print \"line of a file \" i, k, i * k > f; close(f) } "
		"}' "
		"&& git config gc.auto 0 && git add -A && git commit -qm first && git gc -q",
		files);

	free(rig_sh(rig, "", script));
}

static double since(int64_t start_us)
{
	return (double)(clock_mono_us() - start_us) / 1000.0;
}

static void on_created(struct json_object *answer, const struct err *failure, void *arg)
{
	int *left = arg;

	if (failure)
		fail_msg("create: %s", failure->message);
	--*left;
}

/* All at once, as the parent asks for them. */
static double ours(struct rig *rig, const char *run, int count)
{
	struct json_object *bodies[MANY];
	int left = count;

	for (int i = 0; i < count; i++) {
		AUTO_FREE char *agent = mem_printf("a%d", i + 1);
		bodies[i] = rig_entry(rig, run, agent, NULL);
	}
	int64_t start = clock_mono_us();
	for (int i = 0; i < count; i++)
		git_client_call(rig->client, "create", bodies[i], on_created, &left);
	while (left > 0) {
		if (!rig_turn(rig, start / 1000 + 600000))
			fail_msg("creation takes too long");
	}
	double ms = since(start);
	for (int i = 0; i < count; i++)
		json_object_put(bodies[i]);
	return ms;
}

/* One shell that runs them one after the other; its own start is taken off. */
static double theirs(struct rig *rig, const char *run, int count)
{
	AUTO_FREE char *script = mem_printf("for i in $(seq %d); do git worktree add -q -b g/%s/$i "
					    "../git-%s-$i HEAD; done",
					    count, run, run);
	int64_t start = clock_mono_us();
	free(rig_sh(rig, "repo", "true"));
	double shell = since(start);

	start = clock_mono_us();
	free(rig_sh(rig, "repo", script));
	return since(start) - shell;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static struct figures measure(int files)
{
	double one[ROUNDS], git_one[ROUNDS];
	struct figures f;
	struct rig rig;

	rig_make(&rig, "git init -q repo");
	make_files(&rig, files);
	rig_start(&rig, rig.repo);
	ours(&rig, "warm", 1);
	for (int i = 0; i < ROUNDS; i++) {
		AUTO_FREE char *run = mem_printf("one%d", i);

		git_one[i] = theirs(&rig, run, 1);
		one[i] = ours(&rig, run, 1);
	}
	qsort(one, ROUNDS, sizeof(*one), by_size);
	qsort(git_one, ROUNDS, sizeof(*git_one), by_size);
	f.ours_one = one[ROUNDS / 2];
	f.git_one = git_one[ROUNDS / 2];
	f.git_many = theirs(&rig, "many", MANY);
	f.ours_many = ours(&rig, "many", MANY);
	rig_free(&rig);
	return f;
}

static void append(const char *path, int files, const struct figures *f)
{
	AUTO_FREE char *line = mem_printf(
		"{\"bench\":\"worktrees\",\"files\":%d,\"one_ms\":%.2f,\"git_one_ms\":%.2f,"
		"\"sixteen_ms\":%.2f,\"git_sixteen_ms\":%.2f}\n",
		files, f->ours_one, f->git_one, f->ours_many, f->git_many);
	AUTO_FD int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	struct err err = ERR_INIT;

	if (fd < 0 || file_write_all(fd, line, strlen(line), &err) < 0)
		fprintf(stderr, "cannot append to '%s'\n", path);
}

static const char *json_path;

static void bench(void **state)
{
	static const int sizes[] = {20, 2000, 50000};
	size_t count = env_get("BATON_BENCH_LARGE") ? 3 : 2;

	printf("%8s %14s %14s %16s %16s   (ms)\n", "files", "1 worktree", "git, 1", "16 worktrees",
	       "git, 16");
	for (size_t i = 0; i < count; i++) {
		struct figures f = measure(sizes[i]);

		printf("%8d %14.1f %14.1f %16.1f %16.1f\n", sizes[i], f.ours_one, f.git_one,
		       f.ours_many, f.git_many);
		if (json_path)
			append(json_path, sizes[i], &f);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(bench)};

	json_path = argc > 1 ? argv[1] : NULL;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
