/*
 * task_json.c - see task_list.h: a task as somebody wishes it, and as a journal keeps it.
 *
 * Wishes come from models, people and files: each field is checked by itself here, with words that name it. Documents come
 * from our own journal, and may be damaged: what is not understood is left as it was.
 */
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "handoff/task_list.h"

enum kind { KIND_ID, KIND_TEXT, KIND_NUMBER, KIND_NAMES, KIND_PATHS };

static const struct field {
	const char *name;
	enum kind kind;
	int64_t least, most; /* KIND_TEXT: most is bytes */
	size_t offset;
} fields[] = {
	{"id", KIND_ID, 0, TASK_ID_MAX, offsetof(struct task, id)},
	{"title", KIND_TEXT, 0, TASK_TITLE_MAX, offsetof(struct task, title)},
	{"details", KIND_TEXT, 0, TASK_TEXT_MAX, offsetof(struct task, details)},
	{"priority", KIND_NUMBER, -1000, 1000, offsetof(struct task, priority)},
	{"effort", KIND_NUMBER, 1, 1000, offsetof(struct task, effort)},
	{"parent", KIND_ID, 0, TASK_ID_MAX, offsetof(struct task, parent)},
	{"role", KIND_ID, 0, TASK_ID_MAX, offsetof(struct task, role)},
	{"needs", KIND_NAMES, 0, TASK_ID_MAX, offsetof(struct task, needs)},
	{"files", KIND_PATHS, 0, 1024, offsetof(struct task, files)},
};

/* ---- a wish ---- */

static bool is_id(const char *text)
{
	size_t n = strlen(text);

	return n > 0 && n <= TASK_ID_MAX &&
	       strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
		       n;
}

/* "./src/x.c", "src/", "src/" with a pattern behind it: the file or folder that is meant, from the root. NULL: none of ours. */
static char *clean_path(const char *path)
{
	AUTO_BUF struct buf out = BUF_INIT;
	size_t n = strcspn(path, "*?[{");

	if (*path == '/' || strchr(path, '\n'))
		return NULL;
	if (path[n]) /* only what stands before a pattern is known */
		while (n > 0 && path[n - 1] != '/')
			n--;
	for (size_t at = 0; at < n;) {
		size_t end = at + strcspn(path + at, "/");
		size_t part = MIN(end, n) - at;
		if (part == 2 && memcmp(path + at, "..", 2) == 0)
			return NULL;
		if (part > 0 && !(part == 1 && path[at] == '.')) {
			if (out.len)
				buf_addc(&out, '/');
			buf_add(&out, path + at, part);
		}
		at = end + 1;
	}
	return mem_strdup(buf_str(&out));
}

static int wrong(const struct field *field, struct err *err, const char *must)
{
	return err_set(err, ERR_INVALID, "'%s' must be %s", field->name, must);
}

static int parse_text(const struct field *field, struct json_object *value, char **to,
		      struct err *err)
{
	if (!json_object_is_type(value, json_type_string))
		return wrong(field, err, "a text");
	const char *text = json_object_get_string(value);
	size_t n = (size_t)json_object_get_string_len(value);
	if (strlen(text) != n)
		return wrong(field, err, "a text without NUL characters");
	if (n > (size_t)field->most)
		return err_set(err, ERR_TOO_LARGE, "'%s' has %zu bytes, more than %lld",
			       field->name, n, (long long)field->most);
	if (field->kind == KIND_ID && *text && !is_id(text))
		return wrong(field, err, "letters, digits, '.', '_' and '-', 64 at most");
	task_set(to, text[strspn(text, " \t\r\n")] ? text : NULL);
	return 0;
}

static int parse_number(const struct field *field, struct json_object *value, int64_t *to,
			struct err *err)
{
	int64_t n = json_object_get_int64(value);

	if (!json_object_is_type(value, json_type_int) || n < field->least || n > field->most)
		return err_set(err, ERR_INVALID, "'%s' must be a whole number from %lld to %lld",
			       field->name, (long long)field->least, (long long)field->most);
	*to = n;
	return 0;
}

static int parse_name(const struct field *field, struct json_object *value, struct task_names *to,
		      struct err *err)
{
	const char *text =
		json_object_is_type(value, json_type_string) ? json_object_get_string(value) : "";

	if (!*text || strlen(text) > (size_t)field->most)
		return wrong(field, err, "a list of short texts");
	if (field->kind == KIND_NAMES && !is_id(text))
		return err_set(err, ERR_INVALID, "'%s' holds '%.80s', which is no id of a task",
			       field->name, text);
	char *name = field->kind == KIND_NAMES ? mem_strdup(text) : clean_path(text);
	if (!name)
		return err_set(err, ERR_INVALID,
			       "'%s' holds '%.80s': paths go from the root of the repository and "
			       "stay below it",
			       field->name, text);
	for (size_t i = 0; i < to->n; i++) {
		if (strcmp(to->list[i], name) == 0) {
			free(name);
			return 0;
		}
	}
	to->list = mem_array(to->list, to->n + 1, sizeof(*to->list));
	to->list[to->n++] = name;
	return 0;
}

/* One text stands for a list of one. */
static int parse_names(const struct field *field, struct json_object *value, struct task_names *to,
		       struct err *err)
{
	if (json_object_is_type(value, json_type_string))
		return parse_name(field, value, to, err);
	if (!json_object_is_type(value, json_type_array))
		return wrong(field, err, "a list of texts");
	if (json_len(value) > TASK_NAMES_MAX)
		return err_set(err, ERR_TOO_LARGE, "'%s' has more than %d entries", field->name,
			       TASK_NAMES_MAX);
	for (size_t i = 0; i < json_len(value); i++)
		if (parse_name(field, json_at(value, i), to, err) < 0)
			return -1;
	return 0;
}

static int parse_field(const struct field *field, struct json_object *value, struct task *task,
		       struct err *err)
{
	void *to = (char *)task + field->offset;

	if (!value)
		return 0; /* null: as if it were not there */
	switch (field->kind) {
	case KIND_NUMBER: return parse_number(field, value, to, err);
	case KIND_NAMES:
	case KIND_PATHS: return parse_names(field, value, to, err);
	default: return parse_text(field, value, to, err);
	}
}

static const char *unknown_field(struct json_object *wish)
{
	json_object_object_foreach (wish, name, value) {
		bool known = false;
		(void)value;
		for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
			known |= strcmp(fields[i].name, name) == 0;
		if (!known)
			return name;
	}
	return NULL;
}

static int parse_fields(struct json_object *wish, struct task *task, const char **ret_field,
			struct err *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		if (parse_field(&fields[i], json_get(wish, fields[i].name), task, err) < 0) {
			*ret_field = fields[i].name;
			return -1;
		}
	}
	if (!task->title) {
		*ret_field = "title";
		return err_set(err, ERR_INVALID, "a task needs a 'title'");
	}
	return 0;
}

struct task *task_parse(struct json_object *wish, const char **ret_field, struct err *err)
{
	const char *none;
	const char **field = ret_field ? ret_field : &none;

	*field = NULL;
	if (!json_object_is_type(wish, json_type_object)) {
		err_set(err, ERR_INVALID, "a task is a set of fields, with a 'title' at least");
		return NULL;
	}
	const char *unknown = unknown_field(wish);
	if (unknown) {
		*field = unknown; /* borrowed from the wish, which the caller still has */
		err_set(err, ERR_INVALID, "a task has no field '%.80s'", unknown);
		return NULL;
	}
	struct task *task = mem_alloc(sizeof(*task));
	task->effort = 1;
	if (parse_fields(wish, task, field, err) == 0)
		return task;
	task_free(task);
	return NULL;
}

/* ---- a record ---- */

static void set_names(struct json_object *doc, const char *key, const struct task_names *names)
{
	struct json_object *list = names->n ? json_object_new_array() : NULL;

	for (size_t i = 0; i < names->n; i++)
		json_object_array_add(list, json_object_new_string(names->list[i]));
	if (list)
		json_set(doc, key, list);
}

struct json_object *task_document(const struct task *task)
{
	struct json_object *doc = json_object_new_object();

	json_set_str(doc, "id", task->id);
	json_set_i64(doc, "number", task->number);
	json_set_str(doc, "title", task->title);
	json_set_str(doc, "status", task_status_name(task->status));
	json_set_str(doc, "details", task->details);
	json_set_i64(doc, "priority", task->priority);
	json_set_i64(doc, "effort", task->effort);
	json_set_str(doc, "parent", task->parent);
	json_set_str(doc, "role", task->role);
	set_names(doc, "needs", &task->needs);
	set_names(doc, "files", &task->files);
	json_set_str(doc, "creator", task->creator);
	json_set_str(doc, "owner", task->owner);
	json_set_str(doc, "last_owner", task->last_owner);
	json_set_str(doc, "blocked", task->blocked);
	json_set_str(doc, "result", task->result);
	json_set_i64(doc, "claims", task->claims);
	json_set_i64(doc, "lapses", task->lapses);
	if (task->held)
		json_set_bool(doc, "held", true);
	return doc;
}

static struct json_object *wish_of(struct json_object *doc)
{
	struct json_object *wish = json_object_new_object();

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		if (json_has(doc, fields[i].name))
			json_set(wish, fields[i].name,
				 json_object_get(json_get(doc, fields[i].name)));
	return wish;
}

static struct task *read_document(struct json_object *doc)
{
	AUTO_JSON struct json_object *wish = wish_of(doc);
	enum task_status status = task_status_find(json_str(doc, "status", NULL));
	struct task *task = status == TASK_STATUSES ? NULL : task_parse(wish, NULL, NULL);

	if (!task)
		return NULL;
	task->status = status;
	task->number = json_i64(doc, "number", 0);
	task_set(&task->creator, json_str(doc, "creator", NULL));
	task_set(&task->owner, json_str(doc, "owner", NULL));
	task_set(&task->last_owner, json_str(doc, "last_owner", NULL));
	task_set(&task->blocked, json_str(doc, "blocked", NULL));
	task_set(&task->result, json_str(doc, "result", NULL));
	task->claims = json_i64(doc, "claims", 0);
	task->lapses = json_i64(doc, "lapses", 0);
	task->held = json_flag(doc, "held", false);
	bool sound = task->id && task->number > 0 && task->number < INT64_MAX &&
		     (task->status != TASK_IN_PROGRESS || task->owner);
	if (sound)
		return task;
	task_free(task);
	return NULL;
}

/* Its place stays, and what hangs on it. */
static void replace(struct task *old, struct task *task)
{
	struct task kept = *old;

	*old = *task;
	*task = kept;
	old->before = kept.before;
	old->n_before = kept.n_before;
	old->cap_before = kept.cap_before;
	old->next_id = kept.next_id;
	old->at = kept.at;
	old->number = kept.number;
	old->overtaken = kept.overtaken;
	old->ready_mark = kept.ready_mark;
	task->before = NULL;
	task_free(task);
}

void task_list_put(struct task_list *list, struct json_object *docs, bool handed_out)
{
	task_list_link(list);
	for (size_t i = 0; i < json_len(docs); i++) {
		struct task *task = read_document(json_at(docs, i));
		struct task *old = task ? task_find(list, task->id) : NULL;
		if (!task)
			continue;
		if (old)
			replace(old, task);
		else if (list->n < TASKS_MAX)
			old = task_list_append(list, task);
		else
			task_free(task);
		if (old && handed_out)
			task_handed_out(list, old);
	}
	list->changed = true;
	task_list_link(list);
}
