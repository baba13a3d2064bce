/*
 * progress.c - finds the work in progress in the newest rounds.
 *
 * Arguments are looked at as the text that they are: a path or a command in its JSON form is the same
 * bytes in each call that names it, so nothing is parsed.
 */
#include "agent/context/progress.h"

#include <string.h>

#include "base/memory.h"

#define LOOK_BACK 24 /* messages from the end in which something must have happened */
#define GAP	  3  /* rounds without it that end the walk back */

struct text {
	const char *s;
	size_t n;
};

struct work {
	struct text file, command; /* as they stand in arguments, with their quotes; s NULL: none */
};

/* The value of a string member in JSON text, with its quotes. */
static struct text member(const struct block *call, const char *key)
{
	const char *p = strstr(call->text, key), *end;

	if (!p)
		return (struct text){NULL, 0};
	p += strlen(key);
	while (*p == ' ' || *p == ':')
		p++;
	if (*p != '"')
		return (struct text){NULL, 0};
	for (end = p + 1; *end && *end != '"'; end++)
		end += *end == '\\' && end[1];
	return (struct text){p, (size_t)(end - p) + (*end == '"')};
}

static const struct block *find_call(const struct message *answer, const char *id)
{
	for (size_t i = 0; answer && i < answer->n_blocks; i++)
		if (answer->blocks[i].kind == BLOCK_TOOL_CALL && !strcmp(answer->blocks[i].id, id))
			return &answer->blocks[i];
	return NULL;
}

/* The newest result of a command says whether it still fails. */
static bool note_result(struct work *w, const struct message *answer, const struct block *b)
{
	const struct block *call;

	if (b->kind != BLOCK_TOOL_RESULT || strcmp(b->name, "shell") != 0)
		return false;
	call = find_call(answer, b->id);
	if (b->is_error && call)
		w->command = member(call, "\"command\"");
	return true;
}

static struct work find_work(const struct view *view)
{
	struct work w = {{NULL, 0}, {NULL, 0}};
	bool command_seen = false;
	size_t least = view->n > LOOK_BACK ? view->n - LOOK_BACK : 0;

	for (size_t i = view->n; i-- > least;) {
		const struct message *m = view->list[i];

		for (size_t k = m->n_blocks; k-- > 0;) {
			const struct block *b = &m->blocks[k];

			if (!command_seen)
				command_seen = note_result(&w, i ? view->list[i - 1] : NULL, b);
			if (!w.file.s && b->kind == BLOCK_TOOL_CALL &&
			    (!strcmp(b->name, "edit") || !strcmp(b->name, "write")))
				w.file = member(b, "\"path\"");
		}
	}
	return w;
}

static bool names(const struct message *m, const struct work *w)
{
	for (size_t i = 0; i < m->n_blocks; i++) {
		const struct block *b = &m->blocks[i];

		if (b->kind != BLOCK_TOOL_CALL)
			continue;
		if ((w->file.s && memmem(b->text, b->text_len, w->file.s, w->file.n)) ||
		    (w->command.s && memmem(b->text, b->text_len, w->command.s, w->command.n)))
			return true;
	}
	return false;
}

size_t progress_begin(const struct view *view, size_t tail, int64_t tokens)
{
	struct work w = find_work(view);
	size_t best = tail;
	int64_t sum = 0;
	int gap = 0;

	if (!w.file.s && !w.command.s)
		return tail;
	for (size_t i = tail; i < view->n; i++)
		sum += view->list[i]->estimate;
	for (size_t i = tail; i-- > 1 && gap < GAP;) {
		const struct message *m = view->list[i];

		sum += m->estimate;
		if (sum > tokens)
			break;
		if (m->role != MESSAGE_ASSISTANT)
			continue;
		gap = names(m, &w) ? 0 : gap + 1;
		if (!gap && view->list[i - 1]->role == MESSAGE_USER)
			best = i;
	}
	return best;
}

void progress_focus(const struct view *view, struct buf *out)
{
	struct work w = find_work(view);

	if (w.file.s) {
		buf_adds(out, "the work on ");
		buf_add(out, w.file.s, MIN(w.file.n, (size_t)300));
	}
	if (w.command.s) {
		buf_adds(out, out->len ? "; the failing command " : "the failing command ");
		buf_add(out, w.command.s, MIN(w.command.n, (size_t)300));
	}
}
