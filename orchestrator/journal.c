/*
 * journal.c - group commit over base/jsonl.h; see journal.h for the promise.
 *
 * Runs in the parent. A commit that fails breaks the journal for good: the caller stops the run in
 * good order, since an effect that cannot be recorded must not happen.
 */
#include "orchestrator/journal.h"

#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/jsonl.h"
#include "base/log.h"
#include "base/memory.h"

#define RESERVE_BYTES (1 << 20) /* the last records and both reports */

struct deferred {
	journal_deferred_fn fn;
	void *arg;
};

struct journal {
	struct jsonl_writer *writer;
	struct deferred *deferred;
	size_t n_deferred, cap_deferred;
	bool durable; /* some pending record must be synced */
	bool broken;
	char *reserve;	/* path; NULL: there is none, or it was given up */
	struct err low; /* why it was given up */
};

/* Blocks that are taken when there is room, and given back when there is none. Without it a run goes all the same. */
static void make_reserve(struct journal *j, const char *path)
{
	AUTO_FREE char *name = mem_printf("%s.reserve", path);
	AUTO_FD int fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return;
	if (posix_fallocate(fd, 0, RESERVE_BYTES) == 0)
		j->reserve = take_ptr(name);
	else
		unlink(name);
}

static void drop_reserve(struct journal *j)
{
	if (j->reserve)
		unlink(j->reserve);
	mem_free_ptr(&j->reserve);
}

int journal_open(const char *path, struct journal **ret, struct err *err)
{
	struct jsonl_writer *writer;

	if (jsonl_open(path, &writer, err) < 0)
		return -1;
	struct journal *j = mem_alloc(sizeof(*j));
	j->writer = writer;
	make_reserve(j, path);
	*ret = j;
	return 0;
}

void journal_last(struct journal *j)
{
	drop_reserve(j);
}

void journal_close(struct journal *j)
{
	struct err err = ERR_INIT;

	if (!j)
		return;
	if (!j->broken && journal_commit(j, &err) < 0)
		log_error("journal: %s", err.message);
	jsonl_close(j->writer);
	drop_reserve(j);
	free(j->deferred);
	free(j);
}

struct file_syncs *journal_syncs(struct journal *j)
{
	return jsonl_syncs(j->writer);
}

static void add_value(struct buf *out, char kind, va_list *ap)
{
	switch (kind) {
	case 'i': buf_addf(out, "%lld", (long long)va_arg(*ap, int64_t)); break;
	case 'b': buf_adds(out, va_arg(*ap, int) ? "true" : "false"); break;
	}
}

/* One "name:kind" of the format; returns what follows it. */
static const char *add_field(struct buf *out, const char *fmt, va_list *ap)
{
	const char *colon = strchr(fmt, ':');
	char kind = colon[1];
	const char *text = kind == 's' ? va_arg(*ap, const char *) : NULL;
	struct json_object *tree = kind == 'j' ? va_arg(*ap, struct json_object *) : NULL;
	double number = kind == 'd' ? va_arg(*ap, double) : 0;

	if ((kind != 's' || text) && (kind != 'j' || tree) && !isnan(number)) {
		buf_addf(out, ",\"%.*s\":", (int)(colon - fmt), fmt);
		if (kind == 's')
			json_write_cstr(out, text);
		else if (kind == 'd')
			buf_addf(out, "%.6f", number);
		else if (kind == 'j')
			json_write(out, tree);
		else
			add_value(out, kind, ap);
	}
	fmt = colon + 2;
	return *fmt == ' ' ? fmt + 1 : fmt;
}

void journal_add(struct journal *j, enum record_type type, const char *fmt, ...)
{
	va_list ap;

	if (j->broken)
		return;
	struct buf *out = jsonl_begin(j->writer, record_info(type)->type);
	va_start(ap, fmt);
	while (*fmt)
		fmt = add_field(out, fmt, &ap);
	va_end(ap);
	jsonl_end(j->writer);
	j->durable |= record_info(type)->sync == SYNC_DURABLE;
}

void journal_sync(struct journal *j)
{
	j->durable = true;
}

void journal_defer(struct journal *j, journal_deferred_fn fn, void *arg)
{
	MEM_GROW(j->deferred, j->cap_deferred, j->n_deferred + 1);
	j->deferred[j->n_deferred++] = (struct deferred){fn, arg};
}

/* The batch of a write that found no room is still there, in its order: it goes into the room of the reserve. */
static int flush(struct journal *j, struct err *err)
{
	struct err why = ERR_INIT;

	if (jsonl_flush(j->writer, j->durable, &why) == 0)
		return 0;
	if (why.code == ERR_NO_SPACE && j->reserve) {
		drop_reserve(j);
		j->low = why;
		if (jsonl_flush(j->writer, j->durable, &why) == 0)
			return 0;
	}
	if (err)
		*err = why;
	return -1;
}

const char *journal_low(const struct journal *j)
{
	return j->low.code ? j->low.message : NULL;
}

int journal_commit(struct journal *j, struct err *err)
{
	if (j->broken)
		return err_set(err, ERR_IO, "the journal is broken");
	if (jsonl_pending(j->writer) && flush(j, err) < 0) {
		j->broken = true;
		return -1;
	}
	j->durable = false;
	struct deferred *run = j->deferred;
	size_t n = j->n_deferred;
	j->deferred = NULL;
	j->n_deferred = j->cap_deferred = 0;
	for (size_t i = 0; i < n; i++)
		run[i].fn(run[i].arg);
	free(run);
	return 0;
}

bool journal_pending(const struct journal *j)
{
	return !j->broken && (jsonl_pending(j->writer) || j->n_deferred > 0);
}
