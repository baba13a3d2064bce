/*
 * run_seeds.c - runs a fuzz target over its seed files, so that each build keeps them working.
 *
 * Linked with any fuzz_*.c in place of libFuzzer's main: feeds every regular file of the folders
 * that are given to LLVMFuzzerTestOneInput and prints their number. A folder without files is a
 * failure: a misspelt path must not pass as a test.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/memory.h"
#include "fuzz.h"

enum { SEED_MAX = 16 << 20 };

static int run_file(const char *path)
{
	AUTO_BUF struct buf bytes = BUF_INIT;
	struct err err = ERR_INIT;
	if (file_read(AT_FDCWD, path, SEED_MAX, &bytes, &err) < 0) {
		fprintf(stderr, "%s\n", err.message);
		return -1;
	}
	/* An exact copy: a sanitizer then sees every read behind the end. */
	AUTO_FREE uint8_t *exact = bytes.len ? mem_dup(bytes.data, bytes.len) : NULL;
	LLVMFuzzerTestOneInput(exact, bytes.len);
	return 0;
}

static int run_folder(const char *folder)
{
	int count = 0;
	DIR *dir = opendir(folder);
	if (!dir) {
		fprintf(stderr, "cannot open '%s'\n", folder);
		return -1;
	}
	struct dirent *entry;
	while ((entry = readdir(dir)) && count >= 0) {
		struct stat st;
		AUTO_FREE char *path = file_join(folder, entry->d_name);
		if (stat(path, &st) < 0 || !S_ISREG(st.st_mode))
			continue;
		count = run_file(path) < 0 ? -1 : count + 1;
	}
	closedir(dir);
	return count;
}

int main(int argc, char **argv)
{
	int all = 0;
	for (int i = 1; i < argc; i++) {
		int count = run_folder(argv[i]);
		if (count <= 0) {
			fprintf(stderr, "no seeds were run in '%s'\n", argv[i]);
			return 1;
		}
		all += count;
	}
	printf("%d seeds\n", all);
	return all == 0;
}
