/*
 * task_claim.c - see task_list.h: which task is ready, which comes next, and for how long its owner has it.
 */
#include <string.h>

#include "base/memory.h"
#include "handoff/task_list.h"

/* ---- files (X11) ---- */

/* One is the other, or a folder above it. */
static bool path_covers(const char *a, const char *b)
{
	size_t n = strlen(a);

	return strncmp(a, b, n) == 0 && (b[n] == '\0' || b[n] == '/' || n == 0);
}

bool task_shares(const struct task *a, const struct task *b, const char **ret_file)
{
	for (size_t i = 0; i < a->files.n; i++) {
		for (size_t k = 0; k < b->files.n; k++) {
			const char *x = a->files.list[i], *y = b->files.list[k];
			if (!path_covers(x, y) && !path_covers(y, x))
				continue;
			*ret_file = strlen(x) > strlen(y) ? x : y;
			return true;
		}
	}
	return false;
}

static const struct task *sharer(const struct task_list *list, const struct task *task,
				 const char **ret_file)
{
	for (size_t i = 0; task->files.n && i < list->n; i++) {
		const struct task *other = list->list[i];
		if (other != task && other->status == TASK_IN_PROGRESS &&
		    task_shares(task, other, ret_file))
			return other;
	}
	return NULL;
}

static void say_shares(struct buf *why, const struct task *other, const char *file)
{
	buf_addf(why, "'%s' is also a file of task %s, which is in progress (%s)",
		 *file ? file : ".", other->id, other->owner ? other->owner : "?");
}

/* ---- ready ---- */

static bool is_part(const struct task *other, const struct task *task)
{
	return other->parent && strcmp(other->parent, task->id) == 0;
}

static enum task_hold hold_by_others(const struct task *task, struct buf *why)
{
	enum task_hold hold = TASK_READY;

	for (size_t i = 0; i < task->n_before; i++) {
		const struct task *other = task->before[i];
		bool part = other && is_part(other, task);
		if (!other) {
			if (why)
				buf_adds(why, "it needs a task that is not on the list");
			return TASK_STUCK;
		}
		if (other->status == TASK_COMPLETED || (part && other->status == TASK_CANCELLED))
			continue;
		bool lost = task_is_over(other);
		if (why)
			buf_addf(why, "%s%s %s%s", why->len ? ", " : "",
				 part ? "its part" : "it needs", other->id,
				 other->status == TASK_FAILED ? ", which failed"
				 : lost			      ? ", which was cancelled"
							      : "");
		if (lost)
			hold = TASK_STUCK;
		else if (hold == TASK_READY)
			hold = TASK_WAITS;
	}
	return hold;
}

enum task_hold task_hold(struct task_list *list, const struct task *task, const char *role,
			 struct buf *why)
{
	const char *file = "";

	task_list_link(list);
	if (task->status != TASK_PENDING)
		return TASK_NOT_PENDING;
	if (task->blocked) {
		if (why)
			buf_addf(why, "blocked: %s", task->blocked);
		return TASK_BLOCKED;
	}
	enum task_hold hold = hold_by_others(task, why);
	if (hold != TASK_READY || !role)
		return hold;
	if (task->role && strcmp(task->role, role) != 0) {
		if (why)
			buf_addf(why, "it is for the role %s", task->role);
		return TASK_ROLE;
	}
	const struct task *other = sharer(list, task, &file);
	if (other && why)
		say_shares(why, other, file);
	return other ? TASK_SHARES : TASK_READY;
}

/* ---- choice ---- */

static bool is_overdue(const struct task *task)
{
	return task->overtaken >= TASK_OVERTAKEN;
}

/* Does a come before b? */
static bool comes_first(const struct task *a, const struct task *b)
{
	if (is_overdue(a) != is_overdue(b))
		return is_overdue(a);
	if (is_overdue(a))
		return a->number < b->number;
	if (a->urgency != b->urgency)
		return a->urgency > b->urgency;
	if (a->chain != b->chain)
		return a->chain > b->chain;
	return a->number < b->number;
}

/* One that has waited too long keeps its files from those behind it, else they would be taken before it for ever. */
static bool takes_from_overdue(const struct task_list *list, const struct task *task)
{
	const char *file;

	for (size_t i = 0; task->files.n && i < list->n; i++) {
		const struct task *other = list->list[i];
		if (other != task && other->ready_mark && is_overdue(other) && !is_overdue(task) &&
		    task_shares(task, other, &file))
			return true;
	}
	return false;
}

static struct task *best_for(struct task_list *list, const char *role)
{
	struct task *best = NULL;

	for (size_t i = 0; i < list->n; i++) {
		struct task *task = list->list[i];
		if (task->ready_mark && (!best || comes_first(task, best)) &&
		    task_hold(list, task, role, NULL) == TASK_READY &&
		    !takes_from_overdue(list, task))
			best = task;
	}
	return best;
}

/* Why nothing is ready for this role. *ret_over: no task is open. */
static char *say_none(struct task_list *list, const char *role, bool *ret_over)
{
	AUTO_BUF struct buf why = BUF_INIT;
	struct task_counts c;
	size_t shares = 0, others = 0;

	for (size_t i = 0; i < list->n; i++) {
		enum task_hold hold = task_hold(list, list->list[i], role, NULL);
		shares += hold == TASK_SHARES;
		others += hold == TASK_ROLE;
	}
	task_list_count(list, &c);
	*ret_over = c.ready + c.waiting + c.blocked + c.stuck + c.in_progress == 0;
	if (*ret_over) {
		buf_addf(&why, "no task is open: %zu completed, %zu failed, %zu cancelled",
			 c.completed, c.failed, c.cancelled);
		return buf_take(&why);
	}
	buf_addf(&why,
		 "no task is ready for you: %zu in progress, %zu waiting for others, %zu blocked, "
		 "%zu "
		 "stuck behind failed or cancelled ones",
		 c.in_progress, c.waiting, c.blocked, c.stuck);
	if (shares)
		buf_addf(&why, ", %zu held until a task that names the same files is over", shares);
	if (others)
		buf_addf(&why, ", %zu for other roles", others);
	return buf_take(&why);
}

/* ---- claim ---- */

void task_handed_out(struct task_list *list, struct task *task)
{
	for (size_t i = 0; i < list->n; i++) {
		struct task *other = list->list[i];
		/* Younger than the moment at which the other one got ready: it has overtaken it. */
		if (other != task && other->ready_mark && other->ready_mark <= task->number)
			other->overtaken++;
	}
	task->overtaken = 0;
	list->changed = true;
}

static struct task *owned_by(const struct task_list *list, const char *owner)
{
	for (size_t i = 0; i < list->n; i++) {
		struct task *task = list->list[i];
		if (task->status == TASK_IN_PROGRESS && !task->held &&
		    strcmp(task->owner, owner) == 0)
			return task;
	}
	return NULL;
}

/* By its id: it has to be ready, but a shared file or another role only makes a note. */
static int check_wished(struct task_list *list, struct task *task, const char *owner,
			const char *role, struct buf *note, struct err *err)
{
	AUTO_BUF struct buf why = BUF_INIT;

	if (task->status == TASK_IN_PROGRESS)
		return err_set(err, ERR_BUSY, "task %s is in progress: %s has it", task->id,
			       task->owner);
	if (task_is_over(task))
		return err_set(err, ERR_INVALID, "task %s is over: %s", task->id,
			       task_status_name(task->status));
	switch (task_hold(list, task, role, &why)) {
	case TASK_READY: return 0;
	case TASK_SHARES:
	case TASK_ROLE: buf_adds(note, buf_str(&why)); return 0;
	default:
		return err_set(err, ERR_INVALID, "task %s is not ready: %.400s", task->id,
			       buf_str(&why));
	}
}

static void hand_out(struct task_list *list, struct task *task, const char *owner, int64_t now)
{
	task->status = TASK_IN_PROGRESS;
	task_set(&task->owner, owner);
	task_set(&task->last_owner, NULL);
	task_set(&task->result, NULL);
	task->lease_until = now + list->lease;
	task->claims++;
	task_handed_out(list, task);
}

int task_claim(struct task_list *list, const char *id, const char *owner, const char *role,
	       int64_t now, struct task_claim *ret, struct err *err)
{
	struct task *task = id ? task_find(list, id) : owned_by(list, owner);
	AUTO_BUF struct buf note = BUF_INIT;

	*ret = (struct task_claim){.task = NULL};
	task_list_link(list);
	if (id && !task)
		return err_set(err, ERR_NOT_FOUND, "there is no task '%.64s'", id);
	if (task && task->status == TASK_IN_PROGRESS && strcmp(task->owner, owner) == 0) {
		ret->task = task;
		ret->again = true;
		return 0;
	}
	if (!id)
		task = best_for(list, role ? role : "");
	if (!task) {
		ret->note = say_none(list, role ? role : "", &ret->over);
		return 0;
	}
	if (id && check_wished(list, task, owner, role ? role : "", &note, err) < 0)
		return -1;
	hand_out(list, task, owner, now);
	ret->task = task;
	ret->note = note.len ? buf_take(&note) : NULL;
	return 0;
}

/* ---- leases ---- */

void task_list_renew(struct task_list *list, const char *owner, int64_t until)
{
	for (size_t i = 0; i < list->n; i++) {
		struct task *task = list->list[i];
		if (task->status == TASK_IN_PROGRESS && strcmp(task->owner, owner) == 0)
			task->lease_until = MAX(task->lease_until, until);
	}
}

/* Nobody is to try for ever what ends everybody who tries it. */
static struct task *take_away(struct task_list *list, struct task *task)
{
	free(task->last_owner);
	task->last_owner = take_ptr(task->owner);
	task->lapses++;
	task->status = TASK_PENDING;
	list->changed = true;
	if (list->lapses_max > 0 && task->lapses >= list->lapses_max) {
		AUTO_FREE char *why = mem_printf(
			"%lld owners of it died or were not heard of any more, at last %s",
			(long long)task->lapses, task->last_owner);
		task->status = TASK_FAILED;
		task_set(&task->result, why);
	}
	return task;
}

struct task *task_list_lapse(struct task_list *list, int64_t now)
{
	for (size_t i = 0; i < list->n; i++) {
		struct task *task = list->list[i];
		if (task->status == TASK_IN_PROGRESS && !task->held && task->lease_until <= now)
			return take_away(list, task);
	}
	return NULL;
}

struct task *task_list_owner_gone(struct task_list *list, const char *owner)
{
	struct task *task = owned_by(list, owner);

	return task ? take_away(list, task) : NULL;
}
