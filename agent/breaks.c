/*
 * breaks.c - notices natural breaks by what calls did, and says what is under way.
 *
 * All of it is by rule: a plan says that an item is done, a branch names another commit, a command's exit
 * code is another one. A test is known by its command, so nothing is assumed of how a project is tested.
 */
#include "agent/breaks.h"

#include <fcntl.h>
#include <string.h>

#include "agent/context/arrival.h"
#include "agent/context/progress.h"
#include "agent/state.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"

#define COMMAND_BYTES 300 /* a longer one is cut: it is for a focus, and two alike are one */
#define FOCUS_LINES   5	  /* of each field */
#define FOCUS_BYTES   160 /* of each line */

/* ---- the commit ---- */

/* One small file: no git and no library is asked. A reference that is packed counts as not known. */
static void read_head(const struct agent *a, char head[BREAKS_HEAD_SIZE])
{
	const struct agent_settings *s = a->settings;
	AUTO_FREE char *path = NULL;
	AUTO_BUF struct buf text = BUF_INIT;
	size_t n;

	head[0] = '\0';
	if (!s->dir_git || !s->head_ref)
		return;
	path = file_join(s->dir_git, s->head_ref);
	if (file_read(AT_FDCWD, path, 256, &text, NULL) < 0)
		return;
	n = MIN(strcspn(buf_str(&text), "\n"), (size_t)BREAKS_HEAD_SIZE - 1);
	memcpy(head, buf_str(&text), n);
	head[n] = '\0';
}

static bool head_moved(struct agent *a)
{
	struct breaks *b = &a->breaks;
	char head[BREAKS_HEAD_SIZE];
	bool moved;

	read_head(a, head);
	moved = *b->head && *head && strcmp(head, b->head) != 0;
	if (*head)
		memcpy(b->head, head, sizeof(head));
	return moved;
}

/* ---- commands that fail ---- */

static bool forget_failing(struct breaks *b, const char *command)
{
	for (size_t i = 0; i < b->n_failing; i++) {
		if (strcmp(b->failing[i], command) != 0)
			continue;
		free(b->failing[i]);
		memmove(b->failing + i, b->failing + i + 1,
			(--b->n_failing - i) * sizeof(*b->failing));
		return true;
	}
	return false;
}

/* Whether a command passes that failed. */
static bool note_command(struct breaks *b, const char *text, int exit_code)
{
	size_t n = strlen(text);
	AUTO_FREE char *command =
		mem_strndup(text, text_floor(text, n, MIN(n, (size_t)COMMAND_BYTES)));
	bool failed = forget_failing(b, command);

	if (exit_code == 0)
		return failed;
	if (b->n_failing == BREAKS_FAILING) {
		free(b->failing[0]);
		memmove(b->failing, b->failing + 1, --b->n_failing * sizeof(*b->failing));
	}
	b->failing[b->n_failing++] = take_ptr(command);
	return false;
}

/* ---- breaks ---- */

void breaks_init(struct agent *a)
{
	a->breaks.done = a->memory.plan.done;
	read_head(a, a->breaks.head);
}

void breaks_release(struct breaks *breaks)
{
	for (size_t i = 0; i < breaks->n_failing; i++)
		free(breaks->failing[i]);
	*breaks = (struct breaks){.now = false};
}

void breaks_after_call(struct agent *a, const struct arrival *arrival, struct json_object *input)
{
	const struct context_knobs *k = &a->settings->knobs;
	const char *command = json_str(input, "command", NULL);
	struct breaks *b = &a->breaks;
	size_t done = a->memory.plan.done;

	if (done > b->done)
		b->now |= k->break_task;
	b->done = done;
	/* A job in the background has no exit code yet, and a file tool makes no commit. */
	if (!command || arrival->result.exit_code < 0)
		return;
	if (note_command(b, command, arrival->result.exit_code))
		b->now |= k->break_pass;
	if (k->break_commit && head_moved(a))
		b->now = true;
}

void breaks_repeated(struct agent *a)
{
	a->breaks.now |= a->settings->knobs.break_repeat;
}

bool breaks_take(struct agent *a)
{
	bool is = a->breaks.now;

	a->breaks.now = false;
	return is;
}

/* ---- the focus ---- */

static void begin_part(struct buf *out, const char *title)
{
	buf_addf(out, "%s%s ", out->len ? "; " : "", title);
}

/* The newest ones. */
static void add_list(struct buf *out, const char *title, const char *const *list, size_t n)
{
	size_t from = n > FOCUS_LINES ? n - FOCUS_LINES : 0;

	if (!n)
		return;
	begin_part(out, title);
	for (size_t i = from; i < n; i++) {
		size_t len = strlen(list[i]);

		buf_adds(out, i > from ? ", " : "");
		buf_add(out, list[i], text_floor(list[i], len, MIN(len, (size_t)FOCUS_BYTES)));
	}
}

static void add_field(const struct agent *a, enum memory_field field, const char *title,
		      struct buf *out)
{
	const struct memory_lines *lines = &a->memory.fields[field];

	add_list(out, title, (const char *const *)lines->list, lines->n);
}

/* But for the one that the work in progress names already. */
static void add_failing(const struct breaks *b, struct buf *out)
{
	const char *list[BREAKS_FAILING];
	size_t n = 0;

	for (size_t i = 0; i < b->n_failing; i++)
		if (!strstr(buf_str(out), b->failing[i]))
			list[n++] = b->failing[i];
	add_list(out, "what fails:", list, n);
}

void breaks_focus(const struct agent *a, struct buf *out)
{
	size_t n = 0;
	const char *const *touched =
		a->toolbox.context ? tool_context_touched(a->toolbox.context, &n) : NULL;

	progress_focus(&a->view, out);
	/* What the model calls important stands above what it happened to write. */
	if (a->memory.fields[MEMORY_FILES].n)
		add_field(a, MEMORY_FILES, "the files", out);
	else
		add_list(out, "the files", touched, n);
	add_field(a, MEMORY_REJECTED, "what was tried and ruled out:", out);
	add_failing(&a->breaks, out);
}
