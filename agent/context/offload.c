/*
 * offload.c - T1, T2, T4, T5, T10 and W7 for the results of one round.
 *
 * Three passes, each only over what is still too large: each result against its tool's limit, then
 * all of them against the total of the round (the largest first), then all of them against the room
 * that the window has left, where the read tool is no longer exempt. All of a shortened result is
 * in a file of the agent, named in the text; a result that fits is not touched. A preview is a
 * quarter of the limit: enough to see what it is, and reading on is one call.
 */
#include "agent/context/offload.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>

#include "agent/tools/output_table.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"

#define DEFAULT_LIMIT 50000
#define PREVIEW_SHARE 4
#define PREVIEW_MIN   400
#define FILE_TRIES    10000

int offload_init(struct offload *offload, const struct agent_settings *settings,
		 const struct window_budget *budget, struct err *err)
{
	*offload = (struct offload){
		.results_dir = file_join(settings->dir_generation, "results"),
		.next_file = 1,
		.knobs = &settings->knobs,
		.budget = budget,
	};
	return file_mkdirs(offload->results_dir, 0700, err);
}

void offload_release(struct offload *offload)
{
	free(offload->results_dir);
	*offload = (struct offload){.results_dir = NULL};
}

static int64_t total_chars(const struct offload *o)
{
	return MAX(o->budget->results * BYTES_PER_TOKEN, PREVIEW_MIN);
}

/* The limit of T1: two tools have settings of their own, others bring theirs. */
static int64_t limit_of(const struct offload *o, const struct tool *tool)
{
	int64_t limit = o->knobs->result_chars;

	if (tool && tool->result_limit && tool->result_limit < DEFAULT_LIMIT)
		limit = MIN(limit, (int64_t)tool->result_limit);
	if (tool && !strcmp(tool->name, "shell"))
		limit = o->knobs->shell_chars;
	if (tool && !strcmp(tool->name, "grep"))
		limit = o->knobs->grep_chars;
	return MIN(limit, total_chars(o));
}

/* T1: the read tool is spared, else a read of an offloaded file would be offloaded again. */
static bool is_exempt(const struct arrival *a)
{
	return a->tool && (a->tool->flags & TOOL_NO_OFFLOAD);
}

/* Characters, not bytes: a text of 3-byte characters may be three times as long. */
static int64_t count_chars(const struct buf *text, int64_t limit)
{
	int64_t chars = 0;

	if ((int64_t)text->len <= limit)
		return (int64_t)text->len;
	for (size_t i = 0; i < text->len; i++)
		chars += ((unsigned char)text->data[i] & 0xc0) != 0x80;
	return chars;
}

/* A new file N.txt in the results folder; never one that is there. */
static int create_file(struct offload *o, char **ret_name, struct err *err)
{
	for (int i = 0; i < FILE_TRIES; i++) {
		AUTO_FREE char *name = mem_printf("%" PRId64 ".txt", o->next_file++);
		AUTO_FREE char *path = file_join(o->results_dir, name);
		int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

		if (fd >= 0) {
			*ret_name = mem_printf("results:%s", name);
			return fd;
		}
		if (errno != EEXIST)
			return err_sys(err, "cannot create '%s'", path);
	}
	return err_set(err, ERR_EXISTS, "no free name in '%s'", o->results_dir);
}

/* Makes sure that all of the result is in a file. NULL if it cannot be kept. */
static const char *keep_whole(struct offload *o, struct arrival *a)
{
	AUTO_FREE char *name = NULL;
	AUTO_FD int fd = -1;

	if (a->file)
		return a->file;
	if (a->result.full_path)
		return a->file = mem_strdup(a->result.full_path);
	fd = create_file(o, &name, NULL);
	if (fd < 0)
		return NULL;
	if (file_write_all(fd, a->result.text.data, a->result.text.len, NULL) < 0)
		return NULL; /* a part of it would pass for all of it */
	return a->file = take_ptr(name);
}

/* T10: not even a preview by head and tail says much; its size and first lines do. */
static void write_huge(const struct arrival *a, size_t budget, const char *where, struct buf *out)
{
	const struct buf *full = &a->result.text;
	size_t head = text_floor(full->data, full->len, MIN(budget, full->len));

	buf_addf(out,
		 "[too large for any context: %zu bytes, %zu lines; written to %s. The first "
		 "lines:]\n",
		 full->len, text_count_lines(full->data, full->len), where ? where : "no file");
	buf_add(out, full->data, head);
}

/* T10 is about the context, not about the tool: it holds for the read tool too. */
static bool is_huge(const struct offload *o, const struct arrival *a)
{
	return (int64_t)(a->result.text.len / BYTES_PER_TOKEN) > o->budget->effective;
}

/* Replaces what the model sees of a result by a preview of about `budget` bytes. */
static void shorten(struct offload *o, struct arrival *a, size_t budget)
{
	AUTO_BUF struct buf raw = BUF_INIT;
	const char *where = keep_whole(o, a);
	const char *named = where ? where : "no file (it could not be written)";
	const struct buf *full = &a->result.text;

	if (is_huge(o, a))
		write_huge(a, budget, where, &raw);
	else if (a->tool && a->tool->shorten)
		a->tool->shorten(&a->result, budget, named, &raw);
	else if (!output_shorten_table(&raw, full->data, full->len, budget, named))
		text_clip(&raw, full->data, full->len, budget, named);
	buf_clear(&a->text);
	text_sanitize(&a->text, raw.data, raw.len);
}

/* Head and tail of this size are what a person would look at first. */
static size_t preview_of(int64_t limit)
{
	return (size_t)MAX(limit / PREVIEW_SHARE, PREVIEW_MIN);
}

/* T1, and T10 for the tools that T1 spares. */
static void admit_one(struct offload *o, struct arrival *a)
{
	int64_t limit = limit_of(o, a->tool);

	if (is_huge(o, a) || (!is_exempt(a) && count_chars(&a->result.text, limit) > limit)) {
		shorten(o, a, preview_of(limit));
		return;
	}
	buf_clear(&a->text);
	text_sanitize(&a->text, a->result.text.data, a->result.text.len);
}

static int64_t total_bytes(const struct arrival *list, size_t n)
{
	int64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += (int64_t)list[i].text.len;
	return sum;
}

/* T2: the largest first, each only once. */
static void admit_total(struct offload *o, struct arrival *list, size_t n)
{
	while (total_bytes(list, n) > total_chars(o)) {
		struct arrival *largest = NULL;

		for (size_t i = 0; i < n; i++) {
			struct arrival *a = &list[i];

			if (is_exempt(a) || a->file || a->text.len <= PREVIEW_MIN * 2)
				continue;
			if (!largest || a->text.len > largest->text.len)
				largest = a;
		}
		if (!largest)
			return;
		shorten(o, largest,
			MIN(preview_of(limit_of(o, largest->tool)), largest->text.len / 2));
	}
}

/* The largest cap such that the texts, each cut to it, have at most `room` bytes in all. */
static size_t fair_cap(const struct arrival *list, size_t n, int64_t room)
{
	size_t low = 0, high = (size_t)MAX(room, 0);

	while (low < high) {
		size_t cap = low + (high - low + 1) / 2;
		int64_t sum = 0;

		for (size_t i = 0; i < n; i++)
			sum += (int64_t)MIN(list[i].text.len, cap);
		if (sum <= room)
			low = cap;
		else
			high = cap - 1;
	}
	return low;
}

/* W7: cuts what the model would see to `cap` bytes, and says how to read on. */
static void cut_to(struct offload *o, struct arrival *a, size_t cap)
{
	AUTO_BUF struct buf cut = BUF_INIT;
	const char *where = is_exempt(a)
				    ? "the file itself: read it in parts, with offset and limit"
				    : keep_whole(o, a);

	/* text_clip may add a marker of up to 200 bytes. */
	text_clip(&cut, a->text.data, a->text.len, cap > 300 ? cap - 200 : 100, where);
	buf_clear(&a->text);
	buf_add(&a->text, cut.data, cut.len);
}

/* W6: an image is kept or dropped whole. They come before the texts: their size is fixed, a text's
 * is not. */
static int64_t drop_images(const struct ledger *ledger, struct arrival *list, size_t n,
			   int64_t room)
{
	for (size_t i = 0; i < n; i++) {
		int64_t tokens = (int64_t)list[i].result.n_images * ESTIMATE_IMAGE;

		if (!tokens)
			continue;
		if (tokens <= room) {
			room -= tokens;
			continue;
		}
		list[i].images_left_out = true;
		buf_adds(&list[i].text,
			 "\n[the image was left out: the context window has no room for it]");
	}
	return room;
}

static int64_t estimate_texts(const struct ledger *ledger, const struct arrival *list, size_t n)
{
	int64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += ledger_estimate_text(ledger, buf_str(&list[i].text), list[i].text.len);
	return sum;
}

/* W7: the read tool too. */
static void admit_room(struct offload *o, const struct ledger *ledger, struct arrival *list,
		       size_t n, int64_t room)
{
	int64_t tokens, bytes;
	size_t cap;

	room = drop_images(ledger, list, n, room);
	tokens = estimate_texts(ledger, list, n);
	if (tokens <= room)
		return;
	/* In the measure of these very texts: dense ones have few bytes a token. */
	bytes = (int64_t)((double)total_bytes(list, n) * (double)room / (double)tokens);
	cap = fair_cap(list, n, bytes);
	for (size_t i = 0; i < n; i++)
		if (list[i].text.len > MAX(cap, PREVIEW_MIN))
			cut_to(o, &list[i], cap);
}

int64_t offload_admit(struct offload *offload, const struct ledger *ledger, struct arrival *list,
		      size_t n, int64_t room)
{
	int64_t before = 0, after = 0;

	for (size_t i = 0; i < n; i++) {
		before += (int64_t)list[i].result.text.len / BYTES_PER_TOKEN;
		admit_one(offload, &list[i]);
	}
	admit_total(offload, list, n);
	admit_room(offload, ledger, list, n, room);
	for (size_t i = 0; i < n; i++) {
		after += (int64_t)list[i].text.len / BYTES_PER_TOKEN;
		if (!list[i].text.len)
			buf_adds(&list[i].text, "(no output)");
	}
	return MAX(before - after, 0);
}
