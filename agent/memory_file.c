/*
 * memory_file.c - the working memory on disk (docs/memory.md), and back after a crash.
 *
 * Both files are replaced whole, so a reader sees the old or the new state. What cannot be read is moved
 * aside and not deleted: it may be all that is left of hours of work, and a person can look at it. A later
 * generation starts from the files of the newest earlier one that has any, and writes its own.
 */
#include "agent/memory_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"

#define MEMORY_NAME "memory.json"
#define PLAN_NAME   "plan.md"
#define FILE_MAX    ((size_t)1 << 20)
#define ASIDE_MAX   100

/* ---- writing ---- */

static int store(const struct working_memory *m, const char *name, const struct buf *bytes,
		 struct err *err)
{
	AUTO_FREE char *path = file_join(m->folder, name);

	return file_write_atomic(AT_FDCWD, path, buf_str(bytes), bytes->len, 0600, err);
}

int memory_file_store(const struct working_memory *m, struct err *err)
{
	AUTO_JSON struct json_object *doc = json_object_new_object();
	struct json_object *all = json_object_new_object();
	AUTO_BUF struct buf bytes = BUF_INIT;
	char stamp[CLOCK_STAMP_SIZE];

	clock_stamp(clock_wall_ms(), stamp);
	json_set_i64(doc, "version", MEMORY_VERSION);
	json_set_str(doc, "t", stamp);
	json_set_i64(doc, "generation", m->settings.generation);
	json_set_i64(doc, "changes", (int64_t)m->changes);
	for (size_t i = 0; i < MEMORY_FIELDS; i++) {
		struct json_object *list = json_object_new_array();

		for (size_t k = 0; k < m->fields[i].n; k++)
			json_object_array_add(list, json_object_new_string(m->fields[i].list[k]));
		json_set(all, memory_field_name((enum memory_field)i), list);
	}
	json_set(doc, "fields", all);
	json_write_pretty(&bytes, doc);
	return store(m, MEMORY_NAME, &bytes, err);
}

int memory_file_store_plan(const struct working_memory *m, struct err *err)
{
	AUTO_BUF struct buf bytes = BUF_INIT;

	plan_write(&m->plan, &bytes);
	return store(m, PLAN_NAME, &bytes, err);
}

/* ---- reading ---- */

static int take_field(struct working_memory *m, enum memory_field field, struct json_object *list,
		      struct err *err)
{
	struct memory_lines *l = &m->fields[field];

	for (size_t i = 0; i < json_len(list); i++) {
		struct json_object *item = json_at(list, i);
		AUTO_BUF struct buf text = BUF_INIT;

		if (!json_object_is_type(item, json_type_string))
			return err_set(err, ERR_INVALID, "field '%s' must hold strings",
				       memory_field_name(field));
		/* Lines were clean when they were written; a file that was edited may not be. */
		text_printable(&text, json_object_get_string(item),
			       (size_t)json_object_get_string_len(item), true);
		buf_truncate(&text,
			     text_floor(buf_str(&text), text.len, MIN(text.len, MEMORY_LINE_MAX)));
		MEM_GROW(l->list, l->cap, l->n + 1);
		l->list[l->n++] = mem_strdup(buf_str(&text));
	}
	return 0;
}

static int take_document(struct working_memory *m, struct json_object *doc, struct err *err)
{
	struct json_object *all = NULL;
	int64_t version = 0;

	if (json_need_i64(doc, "version", &version, err) < 0 ||
	    json_need_obj(doc, "fields", &all, err) < 0)
		return -1;
	if (version != MEMORY_VERSION)
		return err_set(err, ERR_INVALID, "version %" PRId64 " is not known", version);
	for (size_t i = 0; i < MEMORY_FIELDS; i++)
		if (take_field(m, (enum memory_field)i,
			       json_arr(all, memory_field_name((enum memory_field)i)), err) < 0)
			return -1;
	m->changes = (uint64_t)MAX(json_i64(doc, "changes", 0), INT64_C(1));
	return 0;
}

/* Of this generation a damaged file is moved aside; of an earlier one it stays where it is. */
static void isolate(const char *path, bool own, const struct err *why, struct buf *warning)
{
	AUTO_FREE char *aside = NULL;

	for (int i = 1; own && i < ASIDE_MAX; i++) {
		free(aside);
		aside = i == 1 ? mem_printf("%s.damaged", path)
			       : mem_printf("%s.damaged-%d", path, i);
		if (renameat2(AT_FDCWD, path, AT_FDCWD, aside, RENAME_NOREPLACE) == 0 ||
		    errno != EEXIST)
			break;
	}
	buf_addf(warning, "%s'%s' cannot be read (%s) and is not used%s%s",
		 warning->len ? "; " : "", file_base(path), why->message,
		 own ? "; it was kept as " : "", own ? file_base(aside) : "");
}

static int read_memory(struct working_memory *m, const char *path, struct err *err)
{
	AUTO_JSON struct json_object *doc = NULL;

	if (json_parse_file(path, FILE_MAX, &doc, err) < 0)
		return -1;
	return take_document(m, doc, err);
}

static int read_plan(struct working_memory *m, const char *path, struct err *err)
{
	AUTO_BUF struct buf bytes = BUF_INIT;

	if (file_read(AT_FDCWD, path, FILE_MAX, &bytes, err) < 0)
		return -1;
	if (!text_is_utf8(buf_str(&bytes), bytes.len) || memchr(buf_str(&bytes), '\0', bytes.len))
		return err_set(err, ERR_INVALID, "it is no text");
	if (plan_parse(&m->plan, buf_str(&bytes), bytes.len, err) < 0)
		return -1;
	m->plan_changes = m->plan.n > 0;
	return 0;
}

/* 1: read; 0: it is not there, or damaged. -1: the disk. */
static int open_one(struct working_memory *m, const char *folder, bool plan, bool own,
		    struct buf *warning, struct err *err)
{
	AUTO_FREE char *path = file_join(folder, plan ? PLAN_NAME : MEMORY_NAME);
	struct err e = ERR_INIT;

	if ((plan ? read_plan : read_memory)(m, path, &e) == 0)
		return 1;
	if (e.code == ERR_NOT_FOUND)
		return 0;
	if (e.code == ERR_IO) {
		if (err)
			*err = e;
		return -1;
	}
	if (!plan)
		memory_forget_fields(m);
	isolate(path, own, &e, warning);
	return 0;
}

/* From this generation down to the first: the newest that has the file. */
static int open_newest(struct working_memory *m, bool plan, struct buf *warning, struct err *err)
{
	AUTO_FREE char *agent = file_dir(m->folder);

	for (int64_t g = m->settings.generation; g > 0; g--) {
		AUTO_FREE char *number = mem_printf("%" PRId64, g);
		AUTO_FREE char *folder = g == m->settings.generation ? mem_strdup(m->folder)
								     : file_join(agent, number);
		bool own = g == m->settings.generation;
		int rc = open_one(m, folder, plan, own, warning, err);

		if (rc < 0)
			return -1;
		if (rc && own)
			return 0;
		if (rc)
			return plan ? memory_file_store_plan(m, err) : memory_file_store(m, err);
	}
	return 0;
}

int memory_open(struct working_memory *m, const struct memory_settings *settings,
		struct buf *warning, struct err *err)
{
	*m = (struct working_memory){.folder = mem_strdup(settings->dir_generation),
				     .settings = *settings};
	m->settings.dir_generation = m->folder;
	if (open_newest(m, false, warning, err) < 0 || open_newest(m, true, warning, err) < 0)
		return -1;
	return 0;
}
