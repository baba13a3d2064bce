/*
 * compact_wait.c - see compact_wait.h.
 */
#include "orchestrator/compact_wait.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "orchestrator/runs.h"

#define LOOK_MS 1000 /* a run that was killed writes no last record */

int compact_wait_begin(struct compact_wait *w, const char *dir, const char *agent, struct err *err)
{
	AUTO_FREE char *path = file_join(dir, "run.jsonl");

	*w = (struct compact_wait){.dir = dir, .agent = agent, .journal = {.fd = -1}, .watch = -1};
	if (tail_open(&w->journal, path, err) < 0)
		return -1;
	if (lseek(w->journal.fd, 0, SEEK_END) < 0)
		return err_sys(err, "cannot read '%s'", path);
	/* Without a watch the file is looked at each second. */
	w->watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (w->watch >= 0)
		inotify_add_watch(w->watch, path, IN_MODIFY);
	return 0;
}

void compact_wait_end(struct compact_wait *w)
{
	tail_release(&w->journal);
	if (w->watch >= 0)
		close(w->watch);
	json_object_put(w->end);
}

static void on_line(const char *line, size_t n, void *arg)
{
	static const char *const ends[] = {"agent.compact_wish", "agent.compact_review",
					   "agent.done", "run.finished"};
	struct compact_wait *w = arg;
	struct json_object *record = NULL;

	if (w->end || json_parse(line, n, &record, NULL) < 0)
		return;
	const char *type = json_str(record, "type", "");
	bool ours =
		!strcmp(type, "run.finished") || !strcmp(json_str(record, "agent", ""), w->agent);
	for (size_t i = 0; ours && i < ARRAY_SIZE(ends) && !w->end; i++)
		if (!strcmp(type, ends[i]))
			w->end = json_object_get(record);
	json_object_put(record);
}

static void wait_for_news(const struct compact_wait *w, int64_t most_ms)
{
	struct pollfd fd = {.fd = w->watch, .events = POLLIN};
	char events[4096];

	if (poll(&fd, 1, (int)MIN(most_ms, (int64_t)LOOK_MS)) > 0)
		while (read(w->watch, events, sizeof(events)) > 0)
			;
}

int compact_wait_for(struct compact_wait *w, int64_t most_ms, struct json_object **ret,
		     struct err *err)
{
	int64_t deadline = clock_mono_ms() + most_ms, left;
	bool alive = true;

	for (;;) {
		if (tail_read(&w->journal, on_line, w, err) < 0)
			return -1;
		if (w->end && (*ret = json_obj(w->end, "data")))
			return 0;
		if (w->end || !alive)
			return err_set(err, ERR_CLOSED, "it ended before its next request");
		left = deadline - clock_mono_ms();
		if (left <= 0)
			return err_set(err, ERR_TIMEOUT,
				       "it has made no request for %" PRId64
				       " s, and follows when it makes the next",
				       most_ms / 1000);
		wait_for_news(w, left);
		/* Asked before the last look at the file, so that nothing of it is missed. */
		alive = runs_is_alive(w->dir);
	}
}
