/*
 * bench_baseline.c - what a round cannot cost less than: a command in its box, and two fdatasyncs.
 *
 * bench_baseline RUNS FOLDER PROGRAM ARG... starts PROGRAM that often through base/spawn.h, as the
 * shell tool does and with its own environment, and appends 4 KiB to a file in FOLDER with fdatasync
 * as often as a round does.
 * Prints one line of JSON with medians in microseconds. bench_run.py prints it beside the measured
 * rounds of the same run.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/spawn.h"
#include "base/text.h"

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

static int64_t median(int64_t *values, size_t n)
{
	qsort(values, n, sizeof(*values), by_value);
	return values[n / 2];
}

static int64_t time_command(char **argv)
{
	struct spawn_opts opts = SPAWN_OPTS_INIT;
	struct err err = ERR_INIT;
	int64_t start = clock_mono_us();
	pid_t pid;

	opts.path = argv[0];
	opts.argv = (const char *const *)argv;
	opts.envp = (const char *const *)environ;
	opts.new_session = true;
	if (spawn_process(&opts, &pid, NULL, &err) < 0) {
		fprintf(stderr, "bench_baseline: %s\n", err.message);
		return -1;
	}
	int status;
	if (waitpid(pid, &status, 0) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
		fprintf(stderr, "bench_baseline: '%s' failed\n", argv[0]);
		return -1;
	}
	return clock_mono_us() - start;
}

static int64_t time_syncs(const char *folder)
{
	static char block[4096];
	AUTO_FREE char *path = file_join(folder, "baseline.bin");
	AUTO_FD int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	int64_t start = clock_mono_us();

	if (fd < 0 || file_write_all(fd, block, sizeof(block), NULL) < 0 || fdatasync(fd) < 0 ||
	    file_write_all(fd, block, sizeof(block), NULL) < 0 || fdatasync(fd) < 0)
		return -1;
	return clock_mono_us() - start;
}

int main(int argc, char **argv)
{
	int64_t runs;

	if (argc < 4 || text_parse_i64(argv[1], &runs) < 0 || runs < 1 || runs > 10000) {
		fputs("usage: bench_baseline RUNS FOLDER PROGRAM ARG...\n", stderr);
		return 2;
	}
	int64_t *command = mem_alloc((size_t)runs * sizeof(*command));
	int64_t *syncs = mem_alloc((size_t)runs * sizeof(*syncs));
	for (int64_t i = 0; i < runs; i++) {
		command[i] = time_command(argv + 3);
		syncs[i] = time_syncs(argv[2]);
		if (command[i] < 0 || syncs[i] < 0)
			return 1;
	}
	printf("{\"command_us\": %lld, \"two_syncs_us\": %lld}\n",
	       (long long)median(command, (size_t)runs), (long long)median(syncs, (size_t)runs));
	free(command);
	free(syncs);
	return 0;
}
