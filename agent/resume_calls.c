/*
 * resume_calls.c - says what can be seen of calls whose results are lost.
 *
 * Calls of one answer run one after another, so behind the first one of which no end is on record the others had most
 * likely not begun. "Most likely" is all: the record of an end is not synced, and a power cut may have taken it.
 */
#include "agent/resume_calls.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/context/about.h"
#include "agent/state.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"

#define TAIL_BYTES 1500
#define FILE_BYTES ((size_t)4 << 20)

struct ended {
	char *call, *file;
	bool ok;
	int exit_code;
};

struct resume_calls {
	bool open, begun; /* begun: one without an end was told */
	int64_t cut_ms;
	struct ended *list;
	size_t n, cap;
};

struct resume_calls *resume_calls_new(bool open, int64_t cut_ms)
{
	struct resume_calls *calls = mem_alloc(sizeof(*calls));

	calls->open = open;
	calls->cut_ms = cut_ms;
	return calls;
}

void resume_calls_free(struct resume_calls *calls)
{
	if (!calls)
		return;
	for (size_t i = 0; i < calls->n; i++) {
		free(calls->list[i].call);
		free(calls->list[i].file);
	}
	free(calls->list);
	free(calls);
}

bool resume_calls_open(const struct resume_calls *calls)
{
	return calls->open;
}

int64_t resume_calls_cut(const struct resume_calls *calls)
{
	return calls->cut_ms;
}

void resume_calls_note(struct resume_calls *calls, struct json_object *record)
{
	MEM_GROW(calls->list, calls->cap, calls->n + 1);
	calls->list[calls->n++] = (struct ended){
		.call = mem_strdup(json_str(record, "call", "")),
		.file = mem_strdup(json_str(record, "file", NULL)),
		.ok = json_flag(record, "ok", false),
		.exit_code = (int)json_i64(record, "exit", -1),
	};
}

static const struct ended *find_end(const struct resume_calls *calls, const char *id)
{
	for (size_t i = calls->n; i > 0; i--)
		if (!strcmp(calls->list[i - 1].call, id))
			return &calls->list[i - 1];
	return NULL;
}

bool resume_may_run(const struct agent *a, const struct block *call)
{
	const struct toolbox_entry *entry = toolbox_find(&a->toolbox, call->name);
	AUTO_FREE char *target = NULL;

	/* The unknown and the cut are refused before anything runs; the parent knows a report by its key. */
	if (!entry || call->partial || (entry->tool->flags & (TOOL_READS | TOOL_SPAWNS)))
		return true;
	if (about_kind(call->name) != ABOUT_RUN)
		return false;
	target = about_target(call);
	return target && about_only_looks(target);
}

/* ---- what can be seen ---- */

/* The last bytes of a file of results, from a line's beginning. */
static void add_tail(const struct agent *a, const char *name, struct buf *out)
{
	AUTO_FREE char *path = mem_printf("%s/results/%s", a->settings->dir_generation, name);
	AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	char bytes[TAIL_BYTES];
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return;
	off_t from = MAX(st.st_size - TAIL_BYTES, (off_t)0);
	ssize_t n = pread(fd, bytes, sizeof(bytes), from);
	const char *at = bytes;
	if (from > 0 && n > 0) {
		const char *lf = memchr(bytes, '\n', (size_t)n);
		at = lf ? lf + 1 : bytes;
	}
	buf_addf(out, " Its output is in results:%s, %lld bytes", name, (long long)st.st_size);
	if (n > at - bytes) {
		buf_adds(out, "; it ends with:\n");
		buf_add(out, at, (size_t)(n - (at - bytes)));
	} else {
		buf_addc(out, '.');
	}
}

static bool is_known(const struct resume_calls *calls, const char *name)
{
	for (size_t i = 0; i < calls->n; i++)
		if (calls->list[i].file && text_ends(calls->list[i].file, name))
			return true;
	return false;
}

/* The file of the command that ran when everything ended: the newest of all. Commands that ended have theirs on
 * record, and then the last one had made none. */
static char *newest_output(const struct agent *a)
{
	AUTO_FREE char *folder = mem_printf("%s/results", a->settings->dir_generation);
	DIR *dir = opendir(folder);
	unsigned newest = 0, number;

	for (struct dirent *entry; dir && (entry = readdir(dir));)
		if (sscanf(entry->d_name, "shell-%u.txt", &number) == 1)
			newest = MAX(newest, number);
	if (dir)
		closedir(dir);
	AUTO_FREE char *name = mem_printf("shell-%u.txt", newest);
	return newest && !is_known(a->resumed, name) ? take_ptr(name) : NULL;
}

static void add_shell(const struct agent *a, struct buf *out)
{
	AUTO_FREE char *name = newest_output(a);

	if (name)
		add_tail(a, name, out);
}

/* Does the file hold what the call was to bring about? */
static void add_file(const struct agent *a, const struct block *call, struct json_object *input,
		     struct buf *out)
{
	const char *path = json_str(input, "path", "");
	AUTO_BUF struct buf bytes = BUF_INIT_MAX(FILE_BYTES);

	if (a->toolbox.context)
		tool_context_file_tidy(a->toolbox.context, path);
	if (!a->toolbox.context || tool_context_file_read(a->toolbox.context, path, &bytes) < 0) {
		buf_addf(out, " There is no file '%s' that could be read now.", path);
		return;
	}
	bool write = !strcmp(call->name, "write");
	const char *wanted = json_str(input, write ? "content" : "new_string", "");
	const char *old = json_str(input, "old_string", "");
	size_t n = strlen(wanted);
	bool same = write && bytes.len == n && !memcmp(buf_str(&bytes), wanted, n);
	bool has_new = !write && n && memmem(buf_str(&bytes), bytes.len, wanted, n);
	bool has_old = !write && *old && memmem(buf_str(&bytes), bytes.len, old, strlen(old));

	if (same || (has_new && !has_old))
		buf_addf(out, " '%s' holds the new text: the call took effect.", path);
	else if (write || (has_old && !has_new))
		buf_addf(out, " '%s' does not hold the new text: the call took no effect.", path);
	else
		buf_addf(out, " '%s' has to be read to know.", path);
}

static void add_seen(const struct agent *a, const struct block *call, struct buf *out)
{
	AUTO_JSON struct json_object *input = NULL;

	if (about_kind(call->name) == ABOUT_RUN)
		add_shell(a, out);
	else if (about_kind(call->name) == ABOUT_CHANGE &&
		 json_parse(call->text, call->text_len, &input, NULL) == 0)
		add_file(a, call, input, out);
}

static void tell_end(const struct agent *a, const struct ended *end, struct buf *out)
{
	buf_adds(out, "interrupted: this call had ended");
	if (end->exit_code >= 0)
		buf_addf(out, " with exit code %d", end->exit_code);
	else
		buf_adds(out, end->ok ? ", and well" : " with an error");
	buf_adds(out,
		 " when the work was cut off, and its result was lost. What it did stands; it was "
		 "not run again.");
	if (end->file && text_starts(end->file, "results:"))
		add_tail(a, end->file + strlen("results:"), out);
}

void resume_tell(struct agent *a, const struct block *call, struct buf *out)
{
	struct resume_calls *calls = a->resumed;
	const struct ended *end = find_end(calls, call->id);

	if (end) {
		record_call(&a->record, call->name, !end->ok, end->exit_code);
		tell_end(a, end, out);
	} else if (!calls->begun) {
		calls->begun = true;
		record_call(&a->record, call->name, true, -1);
		buf_adds(out,
			 "interrupted: the outcome of this call is unknown. It was about to run or "
			 "running when the work was cut off, and may have had effects in part; it "
			 "was "
			 "not run again. Look before you do.");
		add_seen(a, call, out);
	} else {
		buf_adds(
			out,
			"interrupted: this call had not begun when the work was cut off, as far as "
			"is on record. Look before you run it again.");
	}
}
