/*
 * project_memory.c - reads and replaces MEMORY.md. Runs in the parent.
 *
 * Several runs may end at once, and a person may have edited the file meanwhile: it is read again, under a
 * lock, before it is replaced. The lock is held for one small write, so it is waited for a moment only.
 */
#include "orchestrator/project_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "orchestrator/memory_index.h"

#define FILE_NAME    "MEMORY.md"
#define FILE_MAX     ((size_t)4 << 20)
#define LEARN_MAX    20 /* entries of one agent */
#define LOCK_WAIT_MS 2000

static const char heading[] =
	"# What runs of baton noted for later runs in this repository\n"
	"\n"
	"Lines may be edited and deleted. An entry begins with the day on which it was noted.\n"
	"\n";

static void today(char out[CLOCK_STAMP_SIZE])
{
	clock_stamp(clock_wall_ms(), out);
	out[10] = 0; /* the date alone */
}

/* 0: read, or there is none. */
static int read_index(const char *folder, struct memory_index *index, size_t *ret_expired,
		      struct err *err)
{
	AUTO_FREE char *path = file_join(folder, FILE_NAME);
	AUTO_BUF struct buf bytes = BUF_INIT;
	char date[CLOCK_STAMP_SIZE];
	struct err e = ERR_INIT;

	if (file_read(AT_FDCWD, path, FILE_MAX, &bytes, &e) < 0) {
		if (e.code == ERR_NOT_FOUND)
			return 0;
		if (err)
			*err = e;
		return -1;
	}
	today(date);
	*ret_expired = memory_index_read(index, buf_str(&bytes), bytes.len, date);
	return 0;
}

void project_memory_open(struct project_memory *m, const char *common_dir)
{
	struct memory_index index = {.n = 0};
	AUTO_BUF struct buf text = BUF_INIT;
	struct err err = ERR_INIT;
	size_t expired = 0;

	m->folder = file_join(common_dir, "baton/memory");
	if (read_index(m->folder, &index, &expired, &err) < 0)
		log_warn("the memory of earlier runs is not used: %s", err.message);
	memory_index_show(&index, MEMORY_INDEX_BYTES, &text);
	memory_index_release(&index);
	if (text.len)
		m->text = buf_take(&text);
}

void project_memory_release(struct project_memory *m)
{
	free(m->folder);
	free(m->text);
	json_object_put(m->learned);
	*m = (struct project_memory){.folder = NULL};
}

char *project_memory_text(const struct project_memory *m)
{
	return m->text ? mem_strdup(m->text) : NULL;
}

void project_memory_learn(struct project_memory *m, struct json_object *fields)
{
	static const char *const kinds[][2] = {{"preferences", "preference"},
					       {"lessons", "lesson"}};

	if (!m->folder || !fields)
		return;
	if (!m->learned)
		m->learned = json_object_new_array();
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct json_object *list = json_arr(fields, kinds[i][0]);

		for (size_t k = 0; k < MIN(json_len(list), (size_t)LEARN_MAX); k++) {
			struct json_object *entry = json_object_new_object();

			json_set_str(entry, "kind", kinds[i][1]);
			json_set(entry, "text", json_object_get(json_at(list, k)));
			json_object_array_add(m->learned, entry);
		}
	}
}

static int lock(const char *folder, struct err *err)
{
	AUTO_FREE char *path = file_join(folder, ".lock");
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	int64_t deadline = clock_mono_ms() + LOCK_WAIT_MS;

	if (fd < 0)
		return err_sys(err, "cannot open '%s'", path);
	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK || clock_mono_ms() > deadline) {
			close(fd);
			return err_set(err, ERR_BUSY, "'%s' is held by another run", path);
		}
		poll(NULL, 0, 10);
	}
	return fd;
}

static void add_all(const struct project_memory *m, struct memory_index *index,
		    struct project_memory_saved *saved)
{
	char date[CLOCK_STAMP_SIZE];

	today(date);
	for (size_t i = 0; i < json_len(m->learned); i++) {
		struct json_object *entry = json_at(m->learned, i);
		const char *text = json_str(entry, "text", "");

		switch (memory_index_add(index, json_str(entry, "kind", "lesson"), text,
					 json_str_len(entry, "text"), date)) {
		case MEMORY_ADDED:
			saved->added++;
			json_object_array_add(saved->lines, json_object_new_string(text));
			break;
		case MEMORY_KNOWN: saved->known++; break;
		case MEMORY_SECRET:
		case MEMORY_VOLATILE:
		case MEMORY_UNFIT: saved->refused++; break;
		}
	}
}

static int replace(const char *folder, struct memory_index *index, bool fresh, struct err *err)
{
	AUTO_FREE char *path = file_join(folder, FILE_NAME);
	AUTO_BUF struct buf text = BUF_INIT;

	buf_adds(&text, fresh ? heading : "");
	memory_index_write(index, &text);
	return file_write_atomic(AT_FDCWD, path, buf_str(&text), text.len, 0600, err);
}

static int merge(const struct project_memory *m, struct project_memory_saved *saved,
		 struct err *err)
{
	struct memory_index index = {.n = 0};
	AUTO_FD int fd = -1;
	size_t expired = 0;
	bool fresh;
	int rc = 0;

	if (file_mkdirs(m->folder, 0700, err) < 0 || (fd = lock(m->folder, err)) < 0 ||
	    read_index(m->folder, &index, &expired, err) < 0)
		return -1;
	fresh = !index.n;
	add_all(m, &index, saved);
	saved->expired = (int64_t)expired;
	if (saved->added || saved->known || expired)
		rc = replace(m->folder, &index, fresh, err);
	for (size_t i = 0; i < index.n; i++)
		saved->total += index.list[i].text > 0;
	memory_index_release(&index);
	return rc;
}

bool project_memory_save(struct project_memory *m, struct project_memory_saved *ret)
{
	struct err err = ERR_INIT;

	if (!m->folder || !json_len(m->learned))
		return false;
	*ret = (struct project_memory_saved){.lines = json_object_new_array()};
	if (merge(m, ret, &err) == 0)
		return true;
	log_warn("what this run learned is not kept: %s", err.message);
	json_object_put(ret->lines);
	return false;
}
