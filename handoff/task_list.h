/*
 * task_list.h - the one list of tasks of a run (A7): what is to be done, in what order, and who has it.
 *
 * It stands outside every agent's context. This part only decides: no file, no clock, no process. Time is an argument in any
 * unit that only grows. The same changes in the same order give the same list, so whoever records the documents of each
 * change can rebuild it (task_list_put).
 *
 *     from           to             when
 *     pending        in progress    claimed: the best that is ready, or one by its id
 *     in progress    pending        given back; its owner died; its lease lapsed; blocked
 *     in progress    completed      by its owner, or a person; never while a part of it is open
 *     pending        completed      by the one whose lease lapsed, while nobody else has it; a person
 *     open           failed         by its owner, or a person; when too many owners died over it
 *     open           cancelled      by its creator, its owner, or a person; its parts too (the caller asks for each)
 *     over           pending        opened again: by its creator or a person
 *
 * A pending task is READY when it is not blocked, all that it needs is completed, and no part of it (a task whose parent it
 * is) is open. A task with parts is therefore handed out last: whoever takes it sees to it that the whole holds.
 *
 * Choice among those that are ready, always the same: one that newer tasks have overtaken TASK_OVERTAKEN times; then
 * priority (a task is as urgent as the most urgent one that waits for it); then the longest chain of work that waits for it,
 * itself included, so that the whole is done soonest; then the older one. One that names a file of a task in progress is not
 * chosen; asked for by its id it is given, with a word about that (X11).
 */
#ifndef BATON_HANDOFF_TASK_LIST_H
#define BATON_HANDOFF_TASK_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"

#define TASKS_MAX	10000
#define TASK_OVERTAKEN	32  /* times that a younger task goes first */
#define TASK_TITLE_MAX	200 /* bytes, as the others */
#define TASK_ID_MAX	64
#define TASK_TEXT_MAX	(64 << 10)
#define TASK_RESULT_MAX (8 << 10) /* a longer one keeps its head and tail (T4) */
#define TASK_NAMES_MAX	200	  /* needs, files */

enum task_status {
	TASK_PENDING,
	TASK_IN_PROGRESS,
	TASK_COMPLETED,
	TASK_FAILED,
	TASK_CANCELLED,
	TASK_STATUSES, /* their number; no status */
};
const char *task_status_name(enum task_status status); /* "in_progress" */
enum task_status task_status_find(const char *name);   /* TASK_STATUSES: none */

/* Why a pending task is not handed out. */
enum task_hold {
	TASK_READY,
	TASK_NOT_PENDING,
	TASK_BLOCKED, /* somebody gave a reason */
	TASK_WAITS,   /* for one that it needs, or a part of it */
	TASK_STUCK, /* one that it needs, or a part of it, failed or was cancelled: nobody will complete it */
	TASK_SHARES, /* a file with one in progress */
	TASK_ROLE,   /* it is for another role */
};

struct task_names {
	char **list;
	size_t n;
};

struct task {
	char *id;	/* "t1", or as whoever made it wished */
	int64_t number; /* the order in which they were made */
	char *title, *details;
	enum task_status status;
	int64_t priority; /* greater ones first; 0 */
	int64_t effort;	  /* its size, compared with others: 1 */
	char *parent, *role;
	struct task_names needs, files; /* ids; paths and folders from the root */
	char *creator;			/* an agent's name, "user", or the name of a file */
	char *owner;			/* who has it, or had it when it was over; NULL */
	char *last_owner;		/* who had it before it was taken away; NULL */
	char *blocked;			/* why it is not to be handed out; NULL */
	char *result;
	int64_t claims; /* times that it was handed out */
	int64_t lapses; /* of them, ended by a death or a lapse */
	bool held; /* its owner is ready; it stays in progress, without a lease, until its work is accepted (merge) */

	int64_t lease_until; /* not on record: a parent that goes on gives a new one */
	int64_t overtaken;

	/* Made anew from the above whenever something changed (task_list_link). */
	struct task **before; /* what it needs, and its parts; entries may be NULL: no such task */
	size_t n_before, cap_before;
	int64_t chain, urgency;
	int64_t ready_mark;   /* list->next_number when it became ready; 0: it is not */
	size_t at;	      /* its place in the list */
	size_t open_after;    /* scratch of the link; left above 0 in a cycle, and before one */
	struct task *next_id; /* in its slot */
};

struct task_list {
	struct task **list; /* in the order of their numbers */
	size_t n, cap;
	int64_t next_number;
	int64_t lease;	    /* of an owner of whom nothing is heard, in the caller's unit */
	int64_t lapses_max; /* after so many deaths and lapses a task has failed; 0: never */
	bool changed;	    /* since the last link */
	struct task **slots;
	size_t n_slots;
};

struct task_counts {
	size_t ready, waiting, blocked, stuck, in_progress, completed, failed, cancelled;
};

void task_list_init(struct task_list *list, int64_t lease, int64_t lapses_max);
void task_list_release(struct task_list *list);

struct task *task_find(const struct task_list *list,
		       const char *id); /* NULL: none; id may be NULL */
void task_list_count(struct task_list *list, struct task_counts *ret);
bool task_is_over(const struct task *task);
/* Why it cannot be handed out to this role (NULL: any); words for it are appended to `why` (may be NULL). */
enum task_hold task_hold(struct task_list *list, const struct task *task, const char *role,
			 struct buf *why);

/* ---- changes; -1 with words for whoever asked, and nothing has changed ---- */

/* All tasks of `wishes` (an array of objects with the fields of task_json.c) or none of them: they may name each other, in any order. The
 * new ones stand at list->list[old n] and behind. ret_bad: which one is wrong, ret_field: the field (static, or a name in
 * `wishes`; NULL: the whole of it); both may be NULL. */
int task_list_add(struct task_list *list, struct json_object *wishes, const char *creator,
		  size_t *ret_bad, const char **ret_field, struct err *err);
/* Fields that stand in `changes` replace the task's; `blocked` "" takes the reason away. */
int task_edit(struct task_list *list, struct task *task, struct json_object *changes,
	      const char **ret_field, struct err *err);

struct task_claim {
	struct task *task; /* NULL: nothing is ready for it */
	bool again;	   /* it has this one already: nothing changed */
	bool over;	   /* no task is open */
	char *note; /* why none; or what to know of the task (a file that another one's task names). Caller frees; NULL */
};
/* id NULL: the best one. An owner that has a task in progress gets that one again; others it asks for by their id. */
int task_claim(struct task_list *list, const char *id, const char *owner, const char *role,
	       int64_t now, struct task_claim *ret, struct err *err);

/* `by` NULL: a person, who may do whatever the table above allows. */
int task_finish(struct task_list *list, struct task *task, enum task_status status, const char *by,
		const char *result, struct err *err);
/* Its owner is ready with it and its work is looked at: only task_finish, task_block and task_reopen end that. */
int task_hold_back(struct task_list *list, struct task *task, const char *by, const char *result,
		   struct err *err);
/* Back to the list. by as above. */
int task_release(struct task_list *list, struct task *task, const char *by, struct err *err);
int task_block(struct task_list *list, struct task *task, const char *reason, struct err *err);
int task_reopen(struct task_list *list, struct task *task, const char *by, struct err *err);
/* May this one change its words, its place in the order, or cancel it? NULL: yes; else why not (static). */
const char *task_refusal_to(const struct task *task, const char *by);
/* A part of it, or of a part, that is open: for whoever cancels the whole, one after the other. */
struct task *task_open_part(struct task_list *list, const struct task *task);

/* ---- owners and their leases ---- */

/* Something was heard of the owner: its tasks are its own until then. */
void task_list_renew(struct task_list *list, const char *owner, int64_t until);
/* The next task whose lease lapsed by now: it is pending again, or failed. NULL: none. */
struct task *task_list_lapse(struct task_list *list, int64_t now);
/* The next task of an owner that is gone for good; likewise. Those that are held back stay. */
struct task *task_list_owner_gone(struct task_list *list, const char *owner);

/* ---- records ---- */

/* All of it but what only a living parent knows; caller puts it. */
struct json_object *task_document(const struct task *task);
/* One change: each document of the array stands for the task of its id, which it makes or replaces. What is no document of
 * a task changes nothing. handed_out: the change was a claim, which counts for those that it overtook. */
void task_list_put(struct task_list *list, struct json_object *docs, bool handed_out);

/* ---- between the files of this part ---- */

void task_list_link(struct task_list *list);
struct task *task_list_append(struct task_list *list, struct task *task); /* takes it over */
void task_list_truncate(struct task_list *list, size_t n, int64_t next_number);
void task_free(struct task *task);
/* The task that `wish` describes, without number; checks each field by itself. NULL with err. */
struct task *task_parse(struct json_object *wish, const char **ret_field, struct err *err);
bool task_shares(const struct task *a, const struct task *b, const char **ret_file);
void task_handed_out(struct task_list *list, struct task *task);
void task_set(char **to, const char *text); /* NULL or "": none */

#endif
