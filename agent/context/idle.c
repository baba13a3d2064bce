/*
 * idle.c - clears without asking for a price, because the price is paid already.
 */
#include "agent/context/idle.h"

#include "agent/context/clear.h"
#include "base/memory.h"

bool idle_wanted(const struct rung_input *in)
{
	return in->knobs->clear_idle && rung_cache_lapsed(in) && ledger_results(in->ledger) > 0;
}

int idle_run(struct rung_input *in, int64_t *ret_freed, struct err *err)
{
	clear_old(in, "idle", (size_t)in->knobs->clear_keep);
	*ret_freed = in->done.freed;
	return 0;
}

/* ---- what changed meanwhile ---- */

struct names {
	char **list;
	size_t n, cap;
};

/* Takes the path over. False: it was there. */
static bool add_new(struct names *names, char *path)
{
	for (size_t i = 0; i < names->n; i++) {
		if (!strcmp(names->list[i], path)) {
			free(path);
			return false;
		}
	}
	MEM_GROW(names->list, names->cap, names->n + 1);
	names->list[names->n++] = path;
	return true;
}

static void look_at(const struct block *call, struct names *seen, idle_changed_fn changed,
		    void *arg, struct names *ret)
{
	enum about_kind kind = about_kind(call->name);
	char *path;

	if (call->kind != BLOCK_TOOL_CALL || (kind != ABOUT_READ && kind != ABOUT_CHANGE))
		return;
	path = about_target(call);
	if (path && add_new(seen, path) && changed(arg, path))
		add_new(ret, mem_strdup(path));
}

static void names_release(struct names *names)
{
	for (size_t i = 0; i < names->n; i++)
		free(names->list[i]);
	free(names->list);
}

static void write_note(const struct names *names, struct buf *out)
{
	buf_adds(out, "[These files changed since you last saw them; read them again before you "
		      "rely on what stands above:");
	for (size_t i = 0; i < MIN(names->n, (size_t)IDLE_NAMED); i++)
		buf_addf(out, "%s %s", i ? "," : "", names->list[i]);
	if (names->n > IDLE_NAMED)
		buf_addf(out, " and %zu more", names->n - IDLE_NAMED);
	buf_addc(out, ']');
}

size_t idle_name_changed(const struct view *view, idle_changed_fn changed, void *arg,
			 struct buf *out)
{
	struct names seen = {.n = 0}, found = {.n = 0};
	size_t n;

	for (size_t i = view->n; i-- > 0;)
		for (size_t k = view->list[i]->n_blocks; k-- > 0;)
			look_at(&view->list[i]->blocks[k], &seen, changed, arg, &found);
	n = found.n;
	if (n)
		write_note(&found, out);
	names_release(&seen);
	names_release(&found);
	return n;
}
