/*
 * effect.c - one way to ask for all effects: report, checkpoint, hook, reset.
 */
#include "agent/effect.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/events.h"
#include "agent/state.h"
#include "base/json.h"
#include "base/memory.h"

char *effect_key(const struct agent *a, const char *what, int64_t number)
{
	if (!a->resumes)
		return mem_printf("%s-%" PRId64, what, number);
	return mem_printf("%s-r%" PRId64 "-%" PRId64, what, a->resumes, number);
}

void effect_send(struct agent *a, const struct effect_ask *ask)
{
	AUTO_BUF struct buf fields = BUF_INIT;

	buf_addf(&fields, "\"generation\":%" PRId64 ",\"call\":", a->settings->generation);
	json_write_cstr(&fields, ask->call);
	if (ask->more)
		buf_adds(&fields, ask->more);
	/* Expected before it is sent: the answer may come within the send. */
	waiter_expect_ack(a->waiter, ask->kind, ask->call);
	channel_send(a->channel, ask->type, buf_str(&fields), ask->body, ask->len);
}

void effect_settle(const struct agent *a)
{
	/* The second is where the private repository lies. */
	const char *folders[] = {a->settings->dir_worktree, a->settings->dir_generation};
	struct stat st;
	dev_t done = 0;

	for (size_t i = 0; i < ARRAY_SIZE(folders) && !a->settings->read_only; i++) {
		AUTO_FD int fd =
			folders[i] ? open(folders[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
		if (fd < 0 || fstat(fd, &st) < 0 || st.st_dev == done)
			continue; /* one that is gone is reported as it is: the parent looks at it next */
		done = st.st_dev;
		if (syncfs(fd) < 0)
			event_warning(a->channel, "'%s' could not be synced: %s", folders[i],
				      strerror(errno));
	}
}

int effect_run(struct agent *a, const struct effect_ask *ask, bool *ret_ok, const char **ret_answer,
	       struct err *err)
{
	effect_send(a, ask);
	while (!waiter_acked(a->waiter, ask->kind, ret_ok, ret_answer))
		if (wait_poll(a->waiter, NULL, 0, INT64_MAX, err) < 0)
			return -1;
	return 0;
}
