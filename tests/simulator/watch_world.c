/*
 * watch_world.c - what the model must have before it beside the conversation: files as they are now (H13), the working
 * memory (H18).
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "session.h"

#define LOOK 400 /* bytes behind the title of a file: its first line */

/* "src/file_3.c, read again from disk now:", then the lines. */
static void check_file(struct session *s, const char *title, const char *end)
{
	static const char word[] = " revision ";
	const char *at = memmem(title, (size_t)MIN(end - title, LOOK), word, sizeof(word) - 1);
	const char *from = at;
	const struct world_file *f;
	int64_t index, revision;

	s->tallies->count[TALLY_FILES_BACK]++;
	while (from && from > title && from[-1] >= '0' && from[-1] <= '9')
		from--;
	index = from ? strtoll(from, NULL, 10) : 0;
	if (index < 1 || index > WORLD_FILES)
		return; /* a later part of the file */
	f = &s->world.files[index];
	revision = strtoll(at + sizeof(word) - 1, NULL, 10);
	if (f->state != FILE_THERE || f->revision != revision)
		watch_fail(s, "H13", "file %lld came back with revision %lld; on disk it is %lld",
			   (long long)index, (long long)revision,
			   f->state == FILE_THERE ? (long long)f->revision : -1LL);
}

/* Right after a compaction nothing has run since. What came back by it stands in the first message that is new. One
 * before it may hold what an earlier compaction brought back. */
static void check_files(struct session *s, const struct reading *r)
{
	static const char title[] = ", read again from disk now:";
	const struct seen_message *m = &r->list[MIN(r->kept, r->n - 1)];
	const char *end = r->bytes.data + m->at + m->len;

	for (const char *at = r->bytes.data + m->at;
	     (at = memmem(at, (size_t)(end - at), title, sizeof(title) - 1)); at += sizeof(title))
		check_file(s, at, end);
}

static void check_memory(struct session *s, const char *body, size_t n)
{
	for (size_t i = 0; i < WORLD_MEMOS; i++) {
		const char *memo = s->world.memos[i];

		if (memo && !memmem(body, n, memo, strlen(memo)))
			watch_fail(s, "H18", "what was noted is not in the request: \"%s\"", memo);
	}
}

void watch_world(struct session *s, const struct reading *r, const char *body, size_t n)
{
	if (!s->plan.real)
		return;
	/* Each compaction tells of its break and of itself: no rung has moved older messages beside it. */
	if (s->watch.compactions && s->watch.breaks_told == 2 * s->watch.compactions)
		check_files(s, r);
	if (s->watch.checked_request == s->watch.main_requests)
		check_memory(s, body, n);
}
