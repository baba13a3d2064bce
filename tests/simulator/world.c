/*
 * world.c - files with revisions, and the memory of calls.
 */
#include "world.h"

#include <fcntl.h>
#include <stdio.h>

#include "base/file.h"
#include "base/memory.h"
#include "session.h"

#define FILE_MOST 40000 /* bytes */

void world_release(struct world *w)
{
	for (size_t i = 0; i < WORLD_RECENT; i++)
		free(w->recent[i].arguments);
	for (size_t i = 0; i < WORLD_MEMOS; i++)
		free(w->memos[i]);
}

int64_t world_index(const char *path)
{
	int index = 0;

	return sscanf(path, "src/file_%d.c", &index) == 1 && index > 0 && index <= WORLD_FILES
		       ? index
		       : 0;
}

static char *path_of(const struct session *s, int64_t index)
{
	return mem_printf("%s/worktree/src/file_%lld.c", s->folder, (long long)index);
}

void world_write_file(struct session *s, int64_t index)
{
	struct world_file *f = &s->world.files[index];
	AUTO_FREE char *path = path_of(s, index);
	AUTO_BUF struct buf text = BUF_INIT;
	int64_t size = random_log_normal(&s->random, (double)s->plan.result_size, 1.0, FILE_MOST);

	f->state = FILE_THERE;
	f->revision = ++s->numbers;
	buf_addf(&text, "/* file_%lld revision %lld */\n", (long long)index,
		 (long long)f->revision);
	sample_add(&text, &s->random, random_chance(&s->random, 8000) ? SAMPLE_C : SAMPLE_PYTHON,
		   (size_t)size);
	buf_addc(&text, '\n');
	if (file_write_atomic(AT_FDCWD, path, text.data, text.len, 0600, NULL) < 0)
		watch_fail(s, "X1", "bug of the simulator: no file at %s", path);
}

void world_need(struct session *s, int64_t index)
{
	if (s->world.files[index].state == FILE_UNMADE)
		world_write_file(s, index);
}

void world_touch(struct session *s)
{
	int64_t index = random_between(&s->random, 1, s->plan.files);
	struct world_file *f = &s->world.files[index];
	AUTO_FREE char *path = NULL;

	if (!random_chance(&s->random, 1200))
		return;
	if (f->state == FILE_THERE && random_chance(&s->random, 1500)) {
		path = path_of(s, index);
		if (unlink(path) == 0)
			f->state = FILE_GONE;
		return;
	}
	world_write_file(s, index);
}

void world_remember(struct session *s, const char *tool, const struct buf *arguments)
{
	struct world_call *call = &s->world.recent[random_next(&s->random) % WORLD_RECENT];

	free(call->arguments);
	*call = (struct world_call){tool, mem_strndup(arguments->data, arguments->len)};
}

bool world_recall(struct session *s, const char **ret_tool, char **ret_arguments)
{
	struct world_call *call = &s->world.recent[random_next(&s->random) % WORLD_RECENT];

	if (!call->arguments)
		return false;
	*ret_tool = call->tool;
	*ret_arguments = take_ptr(call->arguments);
	return true;
}
