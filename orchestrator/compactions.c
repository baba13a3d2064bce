/*
 * compactions.c - a diff of the window before and after a compaction.
 *
 * A compaction replaces one stretch of text by another, so what both have at their beginning and their end
 * is the same and what lies between is one hunk: no search for a shortest script is needed.
 */
#include "orchestrator/compactions.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "orchestrator/command.h"

#define FILE_MAX (256 << 20)
#define CONTEXT	 3

struct lines {
	struct buf text;
	const char **line; /* each up to its newline */
	size_t n, cap;
};

static size_t line_len(const struct lines *l, size_t i)
{
	const char *end = buf_str(&l->text) + l->text.len;
	const char *nl = memchr(l->line[i], '\n', (size_t)(end - l->line[i]));

	return (size_t)((nl ? nl : end) - l->line[i]);
}

static int read_lines(const char *path, struct lines *ret, struct err *err)
{
	if (file_read(AT_FDCWD, path, FILE_MAX, &ret->text, err) < 0)
		return -1;
	const char *p = buf_str(&ret->text), *end = p + ret->text.len;
	while (p < end) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));

		MEM_GROW(ret->line, ret->cap, ret->n + 1);
		ret->line[ret->n++] = p;
		p = nl ? nl + 1 : end;
	}
	return 0;
}

static void lines_release(struct lines *l)
{
	buf_release(&l->text);
	free(l->line);
}

static bool same(const struct lines *a, size_t i, const struct lines *b, size_t k)
{
	size_t n = line_len(a, i);

	return n == line_len(b, k) && memcmp(a->line[i], b->line[k], n) == 0;
}

/* What models and tools wrote never reaches a terminal as it is (I12). */
static void print_lines(const struct lines *l, size_t from, size_t to, char mark)
{
	for (size_t i = from; i < to; i++) {
		AUTO_BUF struct buf out = BUF_INIT;

		buf_addc(&out, mark);
		text_printable(&out, l->line[i], line_len(l, i), false);
		buf_addc(&out, '\n');
		command_write(buf_str(&out), out.len);
	}
}

static void print_hunk(const struct lines *a, const struct lines *b)
{
	size_t head = 0, tail = 0;

	while (head < a->n && head < b->n && same(a, head, b, head))
		head++;
	while (tail < a->n - head && tail < b->n - head &&
	       same(a, a->n - 1 - tail, b, b->n - 1 - tail))
		tail++;
	size_t before = MIN(head, (size_t)CONTEXT), after = MIN(tail, (size_t)CONTEXT);
	command_say("@@ -%zu,%zu +%zu,%zu @@\n", head - before + 1,
		    a->n - head - tail + before + after, head - before + 1,
		    b->n - head - tail + before + after);
	print_lines(a, head - before, head, ' ');
	print_lines(a, head, a->n - tail, '-');
	print_lines(b, head, b->n - tail, '+');
	print_lines(a, a->n - tail, a->n - tail + after, ' ');
}

/* The greatest number that begins a name in this folder; 0: none. */
static long newest(const char *folder)
{
	struct dirent *entry;
	DIR *dir = opendir(folder);
	long best = 0;

	while (dir && (entry = readdir(dir)))
		best = MAX(best, strtol(entry->d_name, NULL, 10));
	if (dir)
		closedir(dir);
	return best;
}

int compactions_show(const struct past_run *run, const struct past_agent *agent, struct err *err)
{
	AUTO_FREE char *agents = mem_printf("%s/agents/%s", run->dir, agent->name);
	AUTO_FREE char *folder = mem_printf("%s/%ld/compactions", agents, newest(agents));
	long n = newest(folder);
	AUTO_FREE char *before = mem_printf("%s/%ld.before.md", folder, n);
	AUTO_FREE char *after = mem_printf("%s/%ld.after.md", folder, n);
	struct lines a = {.text = BUF_INIT}, b = {.text = BUF_INIT};
	int rc = -1;

	if (n <= 0)
		err_set(err, ERR_NOT_FOUND, "the window of %s/%s was not compacted", run->id,
			agent->name);
	else if (read_lines(before, &a, err) == 0 && read_lines(after, &b, err) == 0) {
		command_say("--- %s/%s before compaction %ld\n+++ after\n", run->id, agent->name,
			    n);
		print_hunk(&a, &b);
		rc = 0;
	}
	lines_release(&a);
	lines_release(&b);
	return rc;
}
