/*
 * jsonl.c - journals and transcripts: batches out in one write, bad lines in isolated.
 *
 * What a crash can do decides the shape. A write that was cut short by a full disk would leave half
 * a record before the next one: it is truncated back, and the batch stays in memory, so a later
 * flush can bring the records in their order. A machine that died in mid-write leaves a torn last
 * line: it is ended with a newline before anything is appended, else the next record would be glued
 * to it and lost too (trap 140). A failed fsync says nothing about which pages are on disk, and a
 * second one would report success for pages the kernel has dropped: the writer is broken from then
 * on (I10).
 *
 * Who owns what: the writer owns descriptor and batch; the buffer from jsonl_begin is borrowed
 * until jsonl_end.
 */
#include "base/jsonl.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"

enum { JSONL_READ_SIZE = 64 << 10 };

struct jsonl_writer {
	int fd;
	char *path;
	struct buf batch;
	struct file_syncs syncs;
	size_t whole; /* bytes of the batch that are finished records */
	bool open_record;
	int64_t offset;
	bool broken;
	struct err broken_err;
};

/* --- writing --- */

static int isolate_torn_line(int fd, const char *path, int64_t *size, struct err *err)
{
	char last = '\n';
	if (*size > 0 && pread(fd, &last, 1, *size - 1) != 1)
		return err_sys(err, "cannot read '%s'", path);
	if (last == '\n')
		return 0;
	if (file_write_all(fd, "\n", 1, err) < 0)
		return err_prefix(err, "cannot append to '%s'", path);
	*size += 1;
	return 0;
}

/* O_EXCL tells a new file, whose folder must be synced, from one that was there. */
static int open_append(const char *path, bool *ret_new)
{
	const int flags = O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW;
	int fd = open(path, flags | O_CREAT | O_EXCL, 0600);
	*ret_new = fd >= 0;
	if (fd < 0 && errno == EEXIST)
		fd = open(path, flags);
	return fd;
}

int jsonl_open(const char *path, struct jsonl_writer **ret, struct err *err)
{
	bool created;
	AUTO_FD int fd = open_append(path, &created);
	if (fd < 0)
		return err_sys(err, "cannot open '%s'", path);
	struct stat st;
	if (fstat(fd, &st) < 0)
		return err_sys(err, "cannot stat '%s'", path);
	if (!S_ISREG(st.st_mode))
		return err_set(err, ERR_INVALID, "'%s' is not a regular file", path);
	int64_t size = st.st_size;
	if (isolate_torn_line(fd, path, &size, err) < 0)
		return -1;
	struct jsonl_writer *w = mem_alloc(sizeof(*w));
	if (created) {
		AUTO_FREE char *dir = file_dir(path);
		file_syncs_add(&w->syncs, dir);
	}
	w->fd = take_fd(fd);
	w->path = mem_strdup(path);
	w->offset = size;
	*ret = w;
	return 0;
}

void jsonl_close(struct jsonl_writer *w)
{
	if (!w)
		return;
	jsonl_flush(w, false, NULL);
	close(w->fd);
	free(w->path);
	buf_release(&w->batch);
	file_syncs_release(&w->syncs);
	free(w);
}

struct file_syncs *jsonl_syncs(struct jsonl_writer *w)
{
	return &w->syncs;
}

struct buf *jsonl_begin(struct jsonl_writer *w, const char *type)
{
	char stamp[CLOCK_STAMP_SIZE];
	if (w->open_record)
		abort(); /* our own bug: two records would become one broken line */
	w->open_record = true;
	buf_addf(&w->batch, "{\"t\":\"%s\",\"type\":", clock_stamp(clock_wall_ms(), stamp));
	json_write_cstr(&w->batch, type);
	return &w->batch;
}

void jsonl_end(struct jsonl_writer *w)
{
	if (!w->open_record)
		abort();
	buf_adds(&w->batch, "}\n");
	w->open_record = false;
	w->whole = w->batch.len;
}

void jsonl_add(struct jsonl_writer *w, const char *type, struct json_object *members)
{
	struct buf *out = jsonl_begin(w, type);
	if (json_object_is_type(members, json_type_object)) {
		json_object_object_foreach (members, key, value) {
			buf_addc(out, ',');
			json_write_cstr(out, key);
			buf_addc(out, ':');
			json_write(out, value);
		}
	}
	jsonl_end(w);
}

static int break_writer(struct jsonl_writer *w, const struct err *cause, struct err *err)
{
	w->broken = true;
	w->broken_err = *cause;
	if (err)
		*err = *cause;
	return -1;
}

/* A regular file takes less than it was given only where room, quota or the limit on file sizes ends. */
static int reason_of_short_write(int64_t end)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur <= (rlim_t)end ? EFBIG
										     : ENOSPC;
}

/* A write of n bytes gave `got` (possibly -1, with errno set): undo what reached the file. */
static int undo_short_write(struct jsonl_writer *w, ssize_t got, size_t n, struct err *err)
{
	struct err cause = ERR_INIT;
	if (got < 0) {
		err_sys(&cause, "cannot append to '%s'", w->path);
	} else {
		errno = reason_of_short_write(w->offset + got);
		err_sys(&cause, "only %zd of %zu bytes fit into '%s'", got, n, w->path);
	}
	if (got > 0 && ftruncate(w->fd, w->offset) < 0) {
		err_prefix(&cause, "a partial record could not be taken back");
		return break_writer(w, &cause, err);
	}
	if (err)
		*err = cause;
	return -1;
}

static int make_durable(struct jsonl_writer *w, struct err *err)
{
	struct err cause = ERR_INIT;

	if (fdatasync(w->fd) < 0)
		err_sys(&cause, "cannot sync '%s'", w->path);
	else if (file_syncs_run(&w->syncs, &cause) == 0)
		return 0;
	return break_writer(w, &cause, err);
}

int jsonl_flush(struct jsonl_writer *w, bool durable, struct err *err)
{
	if (w->broken) {
		if (err)
			*err = w->broken_err;
		return -1;
	}
	if (w->whole) {
		ssize_t got;
		do {
			got = write(w->fd, w->batch.data, w->whole);
		} while (got < 0 && errno == EINTR);
		if (got < 0 || (size_t)got < w->whole)
			return undo_short_write(w, got, w->whole, err);
		w->offset += got;
		buf_drop(&w->batch, w->whole);
		w->whole = 0;
	}
	return durable ? make_durable(w, err) : 0;
}

int64_t jsonl_offset(const struct jsonl_writer *w)
{
	return w->offset;
}

bool jsonl_pending(const struct jsonl_writer *w)
{
	return w->whole > 0;
}

/* --- reading --- */

struct scan {
	int64_t line;	/* number of the line in hand, from 1 */
	int64_t offset; /* where it starts */
	size_t max_line;
	bool skipping; /* the line in hand is above max_line: its bytes are dropped */
	struct jsonl_stats stats;
	jsonl_want_fn want; /* NULL: all lines */
	jsonl_record_fn on_record;
	void *arg;
};

static void count_bad(struct scan *scan)
{
	scan->stats.bad_lines++;
	if (!scan->stats.first_bad_line)
		scan->stats.first_bad_line = scan->line;
}

static bool is_blank(const char *s, size_t n)
{
	while (n && (s[n - 1] == ' ' || s[n - 1] == '\t' || s[n - 1] == '\r'))
		n--;
	return n == 0;
}

static int take_line(struct scan *scan, const char *s, size_t n)
{
	AUTO_JSON struct json_object *record = NULL;
	if (n > scan->max_line) {
		count_bad(scan);
		return 0;
	}
	if (is_blank(s, n) || (scan->want && !scan->want(s, n, scan->arg)))
		return 0;
	if (json_parse(s, n, &record, NULL) < 0 || !json_object_is_type(record, json_type_object)) {
		count_bad(scan);
		return 0;
	}
	scan->stats.records++;
	return scan->on_record(record, scan->offset, scan->arg);
}

/* Takes the whole lines out of `text`. Returns the callback's value. */
static int take_lines(struct scan *scan, struct buf *text)
{
	size_t at = 0;
	int rc = 0;
	while (rc == 0 && at < text->len) {
		const char *s = text->data + at;
		const char *nl = memchr(s, '\n', text->len - at);
		if (!nl)
			break;
		size_t n = (size_t)(nl - s);
		if (scan->skipping)
			count_bad(scan);
		else
			rc = take_line(scan, s, n);
		scan->skipping = false;
		scan->line++;
		scan->offset += (int64_t)n + 1;
		at += n + 1;
	}
	buf_drop(text, at);
	if (text->len > scan->max_line) {
		scan->skipping = true;
		scan->offset += (int64_t)text->len;
		buf_clear(text);
	}
	return rc;
}

static int scan_file(struct scan *scan, const char *path, int64_t from,
		     struct jsonl_stats *ret_stats, struct err *err)
{
	AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return err_sys(err, "cannot open '%s'", path);
	if (from > 0 && lseek(fd, from, SEEK_SET) < 0)
		return err_sys(err, "cannot seek in '%s'", path);
	AUTO_BUF struct buf text = BUF_INIT;
	int rc = 0;
	while (rc == 0) {
		/* Doubling reads: a long line is searched for its end once, not once a read. */
		ssize_t got = buf_read(&text, fd, MAX(text.len, JSONL_READ_SIZE));
		if (got < 0)
			return err_sys(err, "cannot read '%s'", path);
		if (got == 0)
			break;
		rc = take_lines(scan, &text);
	}
	if (rc == 0 && (text.len || scan->skipping))
		count_bad(scan); /* torn: the newline is what makes a record whole */
	if (ret_stats)
		*ret_stats = scan->stats;
	return rc;
}

int jsonl_read(const char *path, int64_t from, size_t max_line, jsonl_record_fn on_record,
	       void *arg, struct jsonl_stats *ret_stats, struct err *err)
{
	struct scan scan = {.line = 1,
			    .offset = from,
			    .max_line = max_line,
			    .on_record = on_record,
			    .arg = arg};

	return scan_file(&scan, path, from, ret_stats, err);
}

int jsonl_search(const char *path, size_t max_line, jsonl_want_fn want, jsonl_record_fn on_record,
		 void *arg, struct jsonl_stats *ret_stats, struct err *err)
{
	struct scan scan = {
		.line = 1, .max_line = max_line, .want = want, .on_record = on_record, .arg = arg};

	return scan_file(&scan, path, 0, ret_stats, err);
}
