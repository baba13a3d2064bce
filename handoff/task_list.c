/*
 * task_list.c - see task_list.h: the tasks by their ids, and what follows from how they hang together.
 *
 * What a task waits for is a graph: of what it needs and of its parts. Changes keep it free of cycles (task_change.c), but a
 * list that was put together from a damaged journal may hold one: the walk here takes tasks whose followers are all done
 * with, so it ends in any graph, and a cycle's tasks simply never get ready.
 */
#include "handoff/task_list.h"

#include <string.h>

#include "base/memory.h"
#include "base/text.h"

static const char *const status_names[] = {
	[TASK_PENDING] = "pending",	[TASK_IN_PROGRESS] = "in_progress",
	[TASK_COMPLETED] = "completed", [TASK_FAILED] = "failed",
	[TASK_CANCELLED] = "cancelled",
};

const char *task_status_name(enum task_status status)
{
	return status < TASK_STATUSES ? status_names[status] : "unknown";
}

enum task_status task_status_find(const char *name)
{
	for (size_t i = 0; name && i < ARRAY_SIZE(status_names); i++)
		if (strcmp(status_names[i], name) == 0)
			return (enum task_status)i;
	return TASK_STATUSES;
}

bool task_is_over(const struct task *task)
{
	return task->status == TASK_COMPLETED || task->status == TASK_FAILED ||
	       task->status == TASK_CANCELLED;
}

/* ---- life ---- */

void task_list_init(struct task_list *list, int64_t lease, int64_t lapses_max)
{
	*list = (struct task_list){.next_number = 1, .lease = lease, .lapses_max = lapses_max};
}

static void names_release(struct task_names *names)
{
	for (size_t i = 0; i < names->n; i++)
		free(names->list[i]);
	free(names->list);
}

void task_free(struct task *task)
{
	if (!task)
		return;
	char *const texts[] = {task->id,      task->title,   task->details, task->parent,
			       task->role,    task->creator, task->owner,   task->last_owner,
			       task->blocked, task->result};
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		free(texts[i]);
	names_release(&task->needs);
	names_release(&task->files);
	free(task->before);
	free(task);
}

void task_list_release(struct task_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		task_free(list->list[i]);
	free(list->list);
	free(list->slots);
	*list = (struct task_list){.next_number = 1};
}

void task_set(char **to, const char *text)
{
	char *kept = text && *text ? mem_strdup(text) : NULL;

	free(*to);
	*to = kept;
}

/* ---- by id ---- */

static struct task **slot_of(const struct task_list *list, const char *id)
{
	return &list->slots[text_hash(id, strlen(id)) & (list->n_slots - 1)];
}

struct task *task_find(const struct task_list *list, const char *id)
{
	struct task *task = id && list->n_slots ? *slot_of(list, id) : NULL;

	while (task && strcmp(task->id, id) != 0)
		task = task->next_id;
	return task;
}

static void slot_add(struct task_list *list, struct task *task)
{
	struct task **slot = slot_of(list, task->id);

	task->next_id = *slot;
	*slot = task;
}

static void fill_slots(struct task_list *list, size_t n_slots)
{
	free(list->slots);
	list->n_slots = n_slots;
	list->slots = mem_alloc(n_slots * sizeof(*list->slots));
	for (size_t i = 0; i < list->n; i++)
		slot_add(list, list->list[i]);
}

struct task *task_list_append(struct task_list *list, struct task *task)
{
	if (list->n >= list->n_slots)
		fill_slots(list, MAX(list->n_slots * 2, (size_t)64));
	MEM_GROW(list->list, list->cap, list->n + 1);
	task->at = list->n;
	list->list[list->n++] = task;
	slot_add(list, task);
	list->next_number = MAX(list->next_number, task->number + 1);
	list->changed = true;
	return task;
}

void task_list_truncate(struct task_list *list, size_t n, int64_t next_number)
{
	while (list->n > n)
		task_free(list->list[--list->n]);
	if (list->n_slots)
		fill_slots(list, list->n_slots);
	list->next_number = next_number;
	list->changed = true;
}

/* ---- how they hang together ---- */

static void add_before(struct task *task, struct task *other)
{
	MEM_GROW(task->before, task->cap_before, task->n_before + 1);
	task->before[task->n_before++] = other;
	if (other)
		other->open_after++;
}

static void link_names(struct task_list *list)
{
	for (size_t i = 0; i < list->n; i++) {
		struct task *task = list->list[i];
		task->n_before = task->open_after = 0;
		task->chain = task->effort;
		task->urgency = task->priority;
	}
	for (size_t i = 0; i < list->n; i++) {
		struct task *task = list->list[i];
		struct task *parent = task_find(list, task->parent);
		for (size_t k = 0; k < task->needs.n; k++)
			add_before(task, task_find(list, task->needs.list[k]));
		if (parent)
			add_before(parent, task);
	}
}

/* What waits for `other` makes it as urgent and as long as itself, unless it is over. */
static void pass_on(const struct task *task, struct task *other)
{
	if (task_is_over(task))
		return;
	other->urgency = MAX(other->urgency, task->urgency);
	other->chain = MAX(other->chain, other->effort + task->chain);
}

/* From those for which nobody waits, back to those that need nothing. */
static void link_chains(struct task_list *list)
{
	struct task **todo = mem_array(NULL, list->n + 1, sizeof(*todo));
	size_t n = 0;

	for (size_t i = 0; i < list->n; i++)
		if (list->list[i]->open_after == 0)
			todo[n++] = list->list[i];
	while (n > 0) {
		const struct task *task = todo[--n];
		for (size_t k = 0; k < task->n_before; k++) {
			struct task *other = task->before[k];
			if (!other)
				continue;
			pass_on(task, other);
			if (--other->open_after == 0)
				todo[n++] = other;
		}
	}
	free(todo);
}

void task_list_link(struct task_list *list)
{
	if (!list->changed)
		return;
	list->changed = false;
	link_names(list);
	link_chains(list);
	for (size_t i = 0; i < list->n; i++) {
		struct task *task = list->list[i];
		if (task_hold(list, task, NULL, NULL) != TASK_READY)
			task->ready_mark = 0;
		else if (task->ready_mark == 0)
			task->ready_mark = list->next_number;
	}
}

void task_list_count(struct task_list *list, struct task_counts *ret)
{
	*ret = (struct task_counts){0};
	for (size_t i = 0; i < list->n; i++) {
		switch (list->list[i]->status) {
		case TASK_IN_PROGRESS: ret->in_progress++; continue;
		case TASK_COMPLETED: ret->completed++; continue;
		case TASK_FAILED: ret->failed++; continue;
		case TASK_CANCELLED: ret->cancelled++; continue;
		default: break;
		}
		switch (task_hold(list, list->list[i], NULL, NULL)) {
		case TASK_BLOCKED: ret->blocked++; break;
		case TASK_STUCK: ret->stuck++; break;
		case TASK_WAITS: ret->waiting++; break;
		default: ret->ready++;
		}
	}
}

struct task *task_open_part(struct task_list *list, const struct task *task)
{
	for (size_t i = 0; i < list->n; i++) {
		struct task *part = list->list[i];
		if (part->parent && !task_is_over(part) && strcmp(part->parent, task->id) == 0)
			return part;
	}
	return NULL;
}
