/*
 * compact_review.c - waits for a person, and leaves texts for one.
 *
 * Nobody has to come: an unattended run goes on when the time is over. A compaction because the provider
 * refused the request is never held up, since nothing else can be done meanwhile.
 */
#include "agent/compact_review.h"

#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

#include "agent/context/retell.h"
#include "agent/events.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"

static char *path_of(const struct compact_job *job, const char *what)
{
	const struct agent *a = job->a;

	return mem_printf("%s/compactions/%zu.%s.md", a->settings->dir_generation,
			  a->n_compactions + 1, what);
}

static void write_text(struct compact_job *job, const char *what, const struct buf *text)
{
	AUTO_FREE char *path = path_of(job, what);
	AUTO_FREE char *folder = file_join(job->a->settings->dir_generation, "compactions");
	struct err e = ERR_INIT;
	int fd;

	if (file_mkdirs(folder, 0700, &e) == 0) {
		/* For people: not worth a sync. */
		fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (fd < 0)
			err_sys(&e, "cannot open '%s'", path);
		else
			file_write_all(fd, text->data, text->len, &e);
		if (fd >= 0)
			close(fd);
	}
	if (e.code != ERR_NONE)
		event_warning(job->a->channel, "what a compaction kept is not on disk: %s",
			      e.message);
}

void compact_keep_texts(struct compact_job *job, const struct message *with)
{
	struct agent *a = job->a;
	AUTO_BUF struct buf before = BUF_INIT;
	AUTO_BUF struct buf after = BUF_INIT;
	struct message *const list[1] = {(struct message *)with};

	retell_messages(a->view.list + job->from, job->tail - job->from, 0, &before);
	retell_messages(list, 1, 0, &after);
	write_text(job, "before", &before);
	write_text(job, "after", &after);
	a->n_compactions++;
}

/* ---- review ---- */

/* Wishes of another kind have waited long enough to be repeated. */
static int take_word(struct compact_job *job, struct json_object *word)
{
	const char *text = json_str(word, "summary", NULL);

	if (json_flag(word, "reject", false))
		return 1;
	if (!text)
		return 0;
	buf_clear(&job->summary);
	buf_add(&job->summary, text, json_str_len(word, "summary"));
	return 0;
}

bool compact_is_word(struct json_object *wish)
{
	return json_flag(wish, "accept", false) || json_flag(wish, "reject", false) ||
	       json_str(wish, "summary", NULL) != NULL;
}

int compact_review(struct compact_job *job, struct err *err)
{
	struct agent *a = job->a;
	const struct context_knobs *k = &a->settings->knobs;
	int64_t deadline = clock_mono_ms() + k->compact_review_ms;

	if (!k->compact_review || job->request->trigger == COMPACT_REACTIVE)
		return 0;
	AUTO_FREE char *path = path_of(job, "summary");
	write_text(job, "summary", &job->summary);
	event_review(a->channel, path, k->compact_review_ms);
	event_state(a->channel, ACTIVITY_WAITING,
		    "compact_review"); /* no watchdog counts it (X6) */
	while (clock_mono_ms() < deadline && !waiter_report_wanted(a->waiter, NULL)) {
		AUTO_JSON struct json_object *wish = waiter_take_compact(a->waiter);

		if (wish && compact_is_word(wish))
			return take_word(job, wish);
		if (wish)
			event_warning(a->channel, "not followed: a compaction waits for --accept, "
						  "--reject or --edit first");
		if (a->transport.wait(a->transport.arg, deadline, err) < 0)
			return -1;
	}
	return 0;
}
