/*
 * shards.c - a diff becomes shards that fit a reviewer's budget. Pure; runs in the parent.
 *
 * Files stay whole where they fit and keep their order (paths of one folder are neighbours in a
 * diff), so that what belongs together is read together. A file that is too large is cut at hunks,
 * a hunk that is too large into runs of lines that overlap.
 */
#include "orchestrator/review/review.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

#define OVERLAP_LINES 10
#define HUNK_LINE_MAX 128 /* "@@ -a +b @@ ..." and the note of a cut line */

/* A shard that is being filled. */
struct builder {
	struct shards *out;
	size_t budget; /* bytes */
	struct buf patch;
	struct shard current;
	size_t cap_files, cap_ranges;
};

/* Ends the shard in hand, if there is anything in it. */
static void builder_flush(struct builder *b)
{
	if (b->patch.len == 0)
		return;
	b->current.patch_len = b->patch.len;
	b->current.patch = buf_take(&b->patch);
	struct shards *out = b->out;
	out->list = mem_array(out->list, out->count + 1, sizeof(*out->list));
	out->list[out->count++] = b->current;
	memset(&b->current, 0, sizeof(b->current));
	b->cap_files = b->cap_ranges = 0;
}

/* Hunks of one file come in a row, so the last name is enough to compare with. */
static void builder_add_file(struct builder *b, const char *path)
{
	struct shard *s = &b->current;

	if (s->n_files > 0 && strcmp(s->files[s->n_files - 1], path) == 0)
		return;
	MEM_GROW(s->files, b->cap_files, s->n_files + 1);
	s->files[s->n_files++] = mem_strdup(path);
}

static void builder_add_range(struct builder *b, const char *path, int64_t first, int64_t last)
{
	struct shard *s = &b->current;

	MEM_GROW(s->ranges, b->cap_ranges, s->n_ranges + 1);
	s->ranges[s->n_ranges++] = (struct shard_range){mem_strdup(path), first, last};
}

/* ---- hunks ---- */

struct hunk {
	const char *text; /* from its @@ line */
	size_t len;
	size_t body; /* offset of the line after @@ */
	int64_t old_first, new_first, new_count;
};

/* Digits at *p; -1 if there are none or too many. sscanf would measure the whole patch each time.
 */
static int64_t take_number(const char **p)
{
	const char *start = *p;
	int64_t n = 0;

	for (; **p >= '0' && **p <= '9' && *p - start < 18; (*p)++)
		n = n * 10 + (**p - '0');
	return *p > start ? n : -1;
}

/* "a,b": *ret_count is 1 without b. */
static int take_range(const char **p, int64_t *ret_first, int64_t *ret_count)
{
	*ret_first = take_number(p);
	*ret_count = 1;
	if (**p == ',') {
		(*p)++;
		*ret_count = take_number(p);
	}
	return *ret_first < 0 || *ret_count < 0 ? -1 : 0;
}

/* Reads "@@ -a,b +c,d @@". 0 or -1. */
static int hunk_header(const char *line, struct hunk *h)
{
	const char *p = line + strlen("@@ -");
	int64_t old_count;

	if (take_range(&p, &h->old_first, &old_count) < 0 || p[0] != ' ' || p[1] != '+')
		return -1;
	p += 2;
	return take_range(&p, &h->new_first, &h->new_count);
}

static const char *next_line(const char *p, const char *end)
{
	const char *nl = memchr(p, '\n', (size_t)(end - p));

	return nl ? nl + 1 : end;
}

/* Finds the hunk that starts at or after p; false at the end. */
static bool hunk_next(const char **p, const char *end, struct hunk *ret)
{
	const char *start = *p;

	while (start < end && !(end - start > 3 && memcmp(start, "@@ -", 4) == 0))
		start = next_line(start, end);
	if (start >= end || hunk_header(start, ret) < 0)
		return false;
	const char *stop = next_line(start, end);
	ret->body = (size_t)(stop - start);
	while (stop < end && !(end - stop > 3 && memcmp(stop, "@@ -", 4) == 0))
		stop = next_line(stop, end);
	ret->text = start;
	ret->len = (size_t)(stop - start);
	*p = stop;
	return true;
}

/* A hunk that only deletes has the place of its line, which may be 0. */
static void add_hunk(struct builder *b, const char *path, const struct hunk *h)
{
	buf_add(&b->patch, h->text, h->len);
	builder_add_range(b, path, h->new_first, h->new_first + MAX(h->new_count, 1) - 1);
}

/* A run of lines of a hunk that is too large, and where the next one begins. */
struct run {
	const char *start, *end;
	int64_t old_first, new_first, new_last;
	const char *next; /* lines overlap: before end, unless the hunk ends here */
	int64_t next_old, next_new;
};

/* Where a line stood, for the overlap. */
struct place {
	const char *text;
	int64_t old_line, new_line;
};

/* Takes lines while they fit, one at least. Where the next run begins is known from the last ten,
 * kept in a ring; short runs do not overlap, or they would not get on. */
static void run_take(const char *p, const char *end, int64_t old_line, int64_t new_line,
		     size_t room, struct run *ret)
{
	struct place back[OVERLAP_LINES];
	size_t n = 0;

	*ret = (struct run){.start = p, .old_first = old_line, .new_first = new_line};
	while (p < end && (n == 0 || (size_t)(next_line(p, end) - ret->start) <= room)) {
		back[n++ % OVERLAP_LINES] = (struct place){p, old_line, new_line};
		old_line += *p != '+' && *p != '\\';
		new_line += *p != '-' && *p != '\\';
		p = next_line(p, end);
	}
	ret->end = ret->next = p;
	ret->new_last = MAX(ret->new_first, new_line - 1);
	ret->next_old = old_line;
	ret->next_new = new_line;
	if (p < end && n > 2 * OVERLAP_LINES) {
		const struct place *oldest = &back[n % OVERLAP_LINES];
		ret->next = oldest->text;
		ret->next_old = oldest->old_line;
		ret->next_new = oldest->new_line;
	}
}

/* Named to the user and in every report: nothing is left out in silence. */
static void note_left_out(struct shards *out, const char *path, const char *why)
{
	out->skipped = mem_array(out->skipped, out->n_skipped + 1, sizeof(*out->skipped));
	out->skipped[out->n_skipped++] = mem_printf("%s: %s", path, why);
}

/* One line can be larger than the room (a minified file): its start has to do. Its reviewer sees
 * that in the patch; the reader of the review, who does not, is told beside the findings. */
static void add_run(struct builder *b, const char *path, const struct run *run, size_t room)
{
	struct buf *out = &b->patch;
	size_t n = (size_t)(run->end - run->start);
	size_t kept = n <= room ? n : text_floor(run->start, n, room);

	buf_add(out, run->start, kept);
	if (kept == n)
		return;
	buf_addf(out, " [%zu bytes of this line are left out]\n", n - kept);
	AUTO_FREE char *why = mem_printf("not reviewed: %zu bytes of line %lld", n - kept,
					 (long long)run->new_first);
	note_left_out(b->out, path, why);
}

/* One hunk larger than a shard: runs of lines, each with a header of its own. */
static void add_cut_hunk(struct builder *b, const char *path, const char *header, size_t header_len,
			 const struct hunk *h)
{
	size_t room = b->budget > header_len + 2 * HUNK_LINE_MAX
			      ? b->budget - header_len - HUNK_LINE_MAX
			      : HUNK_LINE_MAX;
	const char *end = h->text + h->len;
	struct run run = {
		.next = h->text + h->body, .next_old = h->old_first, .next_new = h->new_first};

	while (run.next < end) {
		run_take(run.next, end, run.next_old, run.next_new, room, &run);
		builder_flush(b);
		builder_add_file(b, path);
		buf_add(&b->patch, header, header_len);
		buf_addf(&b->patch, "@@ -%lld +%lld @@ (part of a larger hunk)\n",
			 (long long)run.old_first, (long long)run.new_first);
		add_run(b, path, &run, room);
		builder_add_range(b, path, run.new_first, run.new_last);
	}
	builder_flush(b);
}

/* ---- files ---- */

/* Each shard repeats the file's header, or its reader would not know which file it reads. */
static void add_large_file(struct builder *b, const char *path, const char *patch, size_t n)
{
	const char *p = patch, *end = patch + n;
	struct hunk h;
	const char *first = strstr(patch, "\n@@ -");
	size_t header_len = first ? (size_t)(first + 1 - patch) : 0;

	builder_flush(b);
	while (hunk_next(&p, end, &h)) {
		if (header_len + h.len > b->budget) {
			add_cut_hunk(b, path, patch, header_len, &h);
			continue;
		}
		if (b->patch.len > 0 && b->patch.len + h.len > b->budget)
			builder_flush(b);
		if (b->patch.len == 0) {
			builder_add_file(b, path);
			buf_add(&b->patch, patch, header_len);
		}
		add_hunk(b, path, &h);
	}
	builder_flush(b);
}

static void add_whole_file(struct builder *b, const char *path, const char *patch, size_t n)
{
	const char *p = patch, *end = patch + n;
	struct hunk h;

	if (b->patch.len > 0 && b->patch.len + n > b->budget)
		builder_flush(b);
	builder_add_file(b, path);
	buf_add(&b->patch, patch, n);
	if (n > 0 && patch[n - 1] != '\n')
		buf_addc(&b->patch, '\n');
	while (hunk_next(&p, end, &h))
		builder_add_range(b, path, h.new_first, h.new_first + MAX(h.new_count, 1) - 1);
}

static void add_file(struct builder *b, struct json_object *file)
{
	const char *path = json_str(file, "path", NULL);
	const char *patch = json_str(file, "patch", NULL);
	size_t n = json_str_len(file, "patch");

	if (!path)
		return;
	if (json_flag(file, "binary", false))
		note_left_out(b->out, path, "binary");
	else if (!patch || !strstr(patch, "@@ -"))
		note_left_out(b->out, path, "no changed lines");
	else if (n > b->budget)
		add_large_file(b, path, patch, n);
	else
		add_whole_file(b, path, patch, n);
}

int shards_make(struct json_object *range, int64_t budget_tokens, struct shards *ret,
		struct err *err)
{
	struct json_object *files = json_arr(range, "files");
	struct builder b = {.out = ret};

	memset(ret, 0, sizeof(*ret));
	if (!files)
		return err_set(err, ERR_INVALID, "the change has no list of files");
	b.budget = (size_t)MAX(budget_tokens, (int64_t)100) * BYTES_PER_TOKEN;
	for (size_t i = 0; i < json_len(files); i++)
		add_file(&b, json_at(files, i));
	builder_flush(&b);
	buf_release(&b.patch);
	return 0;
}

void shards_release(struct shards *s)
{
	for (size_t i = 0; i < s->count; i++) {
		struct shard *shard = &s->list[i];
		for (size_t k = 0; k < shard->n_files; k++)
			free(shard->files[k]);
		for (size_t k = 0; k < shard->n_ranges; k++)
			free(shard->ranges[k].file);
		free(shard->files);
		free(shard->ranges);
		free(shard->patch);
	}
	for (size_t i = 0; i < s->n_skipped; i++)
		free(s->skipped[i]);
	free(s->list);
	free(s->skipped);
	memset(s, 0, sizeof(*s));
}
