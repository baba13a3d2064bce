/*
 * task_change.c - see task_list.h: how tasks are made, edited and brought to an end.
 *
 * Whatever is asked for is checked whole before anything is changed. Who may do what: the owner ends its own task, whoever
 * made a task may edit it and take it off, a person may do both. Nobody else touches what somebody has in hand.
 */
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "handoff/task_list.h"

/* The field that an error is about. */
static int about(const char **ret_field, const char *field, int rc)
{
	if (ret_field)
		*ret_field = field;
	return rc;
}

static int refuse_over(const struct task *task, struct err *err)
{
	return err_set(err, ERR_INVALID, "task %s is over already: %s", task->id,
		       task_status_name(task->status));
}

/* ---- cycles ---- */

/* Does it wait, by whatever way, for itself? Depth first, with a stack of our own. */
static bool waits_for_itself(const struct task_list *list, const struct task *task)
{
	const struct task **todo = mem_array(NULL, list->n + 1, sizeof(*todo));
	bool *seen = mem_alloc(list->n * sizeof(*seen));
	bool found = false;
	size_t n = 0;

	todo[n++] = task;
	while (n > 0 && !found) {
		const struct task *next = todo[--n];
		for (size_t i = 0; i < next->n_before; i++) {
			const struct task *other = next->before[i];
			found |= other == task;
			if (!other || seen[other->at])
				continue;
			seen[other->at] = true;
			todo[n++] = other;
		}
	}
	free(seen);
	free(todo);
	return found;
}

/* The first one from there on that is part of a circle; NULL: none is. */
static const struct task *find_circle(struct task_list *list, size_t from)
{
	list->changed = true;
	task_list_link(list);
	for (size_t i = from; i < list->n; i++)
		if (list->list[i]->open_after > 0 && waits_for_itself(list, list->list[i]))
			return list->list[i];
	return NULL;
}

/* ---- making ---- */

static int check_others(const struct task_list *list, const struct task *task,
			const char **ret_field, struct err *err)
{
	for (size_t i = 0; i < task->needs.n; i++) {
		if (!task_find(list, task->needs.list[i]))
			return about(ret_field, "needs",
				     err_set(err, ERR_INVALID,
					     "it needs '%s', which is no task of this list",
					     task->needs.list[i]));
	}
	if (task->parent && !task_find(list, task->parent))
		return about(ret_field, "parent",
			     err_set(err, ERR_INVALID, "its parent '%s' is no task of this list",
				     task->parent));
	return 0;
}

static char *free_id(const struct task_list *list, int64_t number)
{
	AUTO_FREE char *id = mem_printf("t%lld", (long long)number);

	while (task_find(list, id)) {
		char *longer = mem_printf("%s-1", id);
		free(id);
		id = longer;
	}
	return take_ptr(id);
}

static int append_wish(struct task_list *list, struct json_object *wish, const char *creator,
		       const char **ret_field, struct err *err)
{
	struct task *task = task_parse(wish, ret_field, err);

	if (!task)
		return -1;
	if (task->id && task_find(list, task->id)) {
		about(ret_field, "id",
		      err_set(err, ERR_EXISTS, "there is a task '%s' already", task->id));
		task_free(task);
		return -1;
	}
	task->number = list->next_number;
	if (!task->id)
		task->id = free_id(list, task->number);
	task_set(&task->creator, creator);
	task_list_append(list, task);
	return 0;
}

static int check_new(struct task_list *list, size_t from, size_t *ret_at, const char **ret_field,
		     struct err *err)
{
	for (size_t i = from; i < list->n; i++) {
		*ret_at = i - from;
		if (check_others(list, list->list[i], ret_field, err) < 0)
			return -1;
		const struct task *parent = task_find(list, list->list[i]->parent);
		if (parent && task_is_over(parent))
			return about(
				ret_field, "parent",
				err_set(err, ERR_INVALID, "its parent '%s' is over", parent->id));
	}
	/* Whoever closes a circle is new, or a part that is new of something old. */
	const struct task *task = find_circle(list, from);
	if (!task)
		return 0;
	*ret_at = task->at - from;
	return about(ret_field, task->needs.n ? "needs" : "parent",
		     err_set(err, ERR_INVALID,
			     "task '%s' waits for itself: what it needs, or a part of it, needs it",
			     task->id));
}

int task_list_add(struct task_list *list, struct json_object *wishes, const char *creator,
		  size_t *ret_bad, const char **ret_field, struct err *err)
{
	size_t from = list->n, at = 0;
	int64_t number = list->next_number;
	int rc = 0;

	if (ret_field)
		*ret_field = NULL;
	if (json_len(wishes) == 0)
		return err_set(err, ERR_INVALID, "there is no task in it");
	if (json_len(wishes) > TASKS_MAX - list->n)
		return err_set(err, ERR_TOO_LARGE, "a list has %d tasks at most", TASKS_MAX);
	for (size_t i = 0; rc == 0 && i < json_len(wishes); i++) {
		at = i;
		rc = append_wish(list, json_at(wishes, i), creator, ret_field, err);
	}
	if (rc == 0)
		rc = check_new(list, from, &at, ret_field, err);
	if (rc < 0)
		task_list_truncate(list, from, number);
	if (rc < 0 && ret_bad)
		*ret_bad = at;
	task_list_link(list);
	return rc;
}

/* ---- editing ---- */

const char *task_refusal_to(const struct task *task, const char *by)
{
	if (!by)
		return NULL;
	bool owns = task->owner && strcmp(task->owner, by) == 0 && task->status == TASK_IN_PROGRESS;
	bool made = task->creator && strcmp(task->creator, by) == 0;

	if (task->status == TASK_IN_PROGRESS && !owns)
		return "another agent has it in hand";
	return owns || made ? NULL : "you did not make it, and you do not have it in hand";
}

/* The document of the task with the changes laid over it, so that one check serves both. */
static struct json_object *overlay(const struct task *task, struct json_object *changes)
{
	static const char *const fields[] = {"title",  "details", "priority", "effort",
					     "parent", "role",	  "needs",    "files"};
	struct json_object *doc = task_document(task);
	struct json_object *wish = json_object_new_object();

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		struct json_object *from = json_has(changes, fields[i]) ? changes : doc;
		if (json_has(from, fields[i]))
			json_set(wish, fields[i], json_object_get(json_get(from, fields[i])));
	}
	json_object_put(doc);
	return wish;
}

static void swap_names(struct task_names *a, struct task_names *b)
{
	struct task_names kept = *a;

	*a = *b;
	*b = kept;
}

static void swap_texts(char **a, char **b)
{
	char *kept = *a;

	*a = *b;
	*b = kept;
}

/* What may be edited passes from one to the other, and back when the result does not hold. */
static void swap_words(struct task *task, struct task *other)
{
	int64_t priority = task->priority, effort = task->effort;

	swap_texts(&task->title, &other->title);
	swap_texts(&task->details, &other->details);
	swap_texts(&task->parent, &other->parent);
	swap_texts(&task->role, &other->role);
	swap_names(&task->needs, &other->needs);
	swap_names(&task->files, &other->files);
	task->priority = other->priority;
	task->effort = other->effort;
	other->priority = priority;
	other->effort = effort;
}

int task_edit(struct task_list *list, struct task *task, struct json_object *changes,
	      const char **ret_field, struct err *err)
{
	bool blocks = json_has(changes, "blocked");
	AUTO_JSON struct json_object *wish = overlay(task, changes);
	struct task *now;
	int rc;

	if (blocks && task_is_over(task))
		return about(ret_field, "blocked", refuse_over(task, err));
	now = task_parse(wish, ret_field, err);
	if (!now)
		return -1;
	rc = check_others(list, now, ret_field, err);
	if (rc == 0) {
		swap_words(task, now);
		if (find_circle(list, 0)) {
			swap_words(task, now);
			rc = about(ret_field, json_has(changes, "needs") ? "needs" : "parent",
				   err_set(err, ERR_INVALID, "task '%s' would wait for itself",
					   task->id));
		}
	}
	list->changed = true;
	task_free(now);
	if (rc == 0 && blocks)
		rc = task_block(list, task, json_str(changes, "blocked", ""), err);
	return rc;
}

/* ---- ends ---- */

/* The result of an owner, of one whose lease lapsed while nobody else took the task, or of a person. */
static int check_owner(const struct task *task, const char *by, struct err *err)
{
	if (!by || (task->status == TASK_IN_PROGRESS && strcmp(task->owner, by) == 0) ||
	    (task->status == TASK_PENDING && task->last_owner && !task->blocked &&
	     strcmp(task->last_owner, by) == 0))
		return 0;
	if (task->status == TASK_IN_PROGRESS)
		return err_set(
			err, ERR_BUSY,
			"task %s is not yours: %s has it in hand; leave it, and claim another one",
			task->id, task->owner);
	return err_set(err, ERR_INVALID, "task %s is not yours: claim it first", task->id);
}

static void set_result(struct task *task, const char *result)
{
	AUTO_BUF struct buf text = BUF_INIT;

	if (!result)
		return;
	text_clip(&text, result, strlen(result), TASK_RESULT_MAX, NULL);
	task_set(&task->result, buf_str(&text));
}

static void settle(struct task_list *list, struct task *task, enum task_status status,
		   const char *by)
{
	if (by)
		task_set(&task->owner, by);
	task->status = status;
	task->held = false;
	task_set(&task->last_owner, NULL);
	if (status == TASK_COMPLETED)
		task_set(&task->blocked, NULL);
	list->changed = true;
}

int task_finish(struct task_list *list, struct task *task, enum task_status status, const char *by,
		const char *result, struct err *err)
{
	const char *why = task_refusal_to(task, by);
	const struct task *part = task_open_part(list, task);

	if (task_is_over(task))
		return refuse_over(task, err);
	if (status == TASK_CANCELLED && why)
		return err_set(err, ERR_DENIED, "task %s is not yours to cancel: %s", task->id,
			       why);
	if (status != TASK_CANCELLED && check_owner(task, by, err) < 0)
		return -1;
	if (status == TASK_COMPLETED && part)
		return err_set(err, ERR_INVALID, "task %s has a part that is not over: %s",
			       task->id, part->id);
	set_result(task, result);
	settle(list, task, status, status == TASK_CANCELLED ? NULL : by);
	return 0;
}

int task_hold_back(struct task_list *list, struct task *task, const char *by, const char *result,
		   struct err *err)
{
	const struct task *part = task_open_part(list, task);

	if (task_is_over(task))
		return refuse_over(task, err);
	if (check_owner(task, by, err) < 0)
		return -1;
	if (part)
		return err_set(err, ERR_INVALID, "task %s has a part that is not over: %s",
			       task->id, part->id);
	set_result(task, result);
	settle(list, task, TASK_IN_PROGRESS, by);
	task->held = true;
	return 0;
}

static void put_back(struct task_list *list, struct task *task)
{
	task->status = TASK_PENDING;
	task->held = false;
	task_set(&task->owner, NULL);
	task_set(&task->last_owner, NULL);
	list->changed = true;
}

int task_release(struct task_list *list, struct task *task, const char *by, struct err *err)
{
	if (task->status != TASK_IN_PROGRESS)
		return err_set(err, ERR_INVALID, "task %s is not in progress: %s", task->id,
			       task_status_name(task->status));
	if (check_owner(task, by, err) < 0)
		return -1;
	put_back(list, task);
	return 0;
}

int task_block(struct task_list *list, struct task *task, const char *reason, struct err *err)
{
	if (task_is_over(task))
		return refuse_over(task, err);
	if (reason && *reason && task->status == TASK_IN_PROGRESS)
		put_back(list, task);
	task_set(&task->blocked, reason);
	list->changed = true;
	return 0;
}

int task_reopen(struct task_list *list, struct task *task, const char *by, struct err *err)
{
	const char *why = task_refusal_to(task, by);

	if (!task_is_over(task) && !task->held)
		return err_set(err, ERR_INVALID, "task %s is not over: %s", task->id,
			       task_status_name(task->status));
	if (why)
		return err_set(err, ERR_DENIED, "task %s is not yours to open again: %s", task->id,
			       why);
	put_back(list, task);
	task->lapses = 0;
	return 0;
}
