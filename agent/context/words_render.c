/*
 * words_render.c - the user's words as the head of what follows a compaction.
 *
 *   <user-words-MARK>
 *   (what this is)
 *   [MARK constraint 1, user, message 1, 21 bytes]
 *   never push to origin
 *   ...
 *   [MARK message 1, user, 2026-11-30T10:00:00.000Z, 80 bytes]
 *   ...
 *   </user-words-MARK>
 *
 * A user may write anything, our own tags too, and it has to stand there byte for byte. So nothing is
 * escaped: each line of ours begins with a mark that is in none of the texts, and says how many bytes
 * follow. What gives way where the room is short, in this order: long messages between the first and
 * the newest become head and tail, oldest first; then they are only named; then the first; then the
 * newest. Constraints never do.
 */
#include "agent/context/words.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/jsonl.h"
#include "base/memory.h"
#include "base/text.h"

#define MARK_SIZE    9
#define FRAME_COST   120 /* tokens: tags, the text before the first line */
#define LINE_COST    40	 /* of a line of ours */
#define CUT_BYTES    1000
#define CUT_FROM     1600 /* shorter messages gain nothing by it */
#define CUT_COST     120  /* tokens: the line between head and tail, the path */
#define SHRINK_LEAST 200  /* tokens: less shows nothing */
#define NAME_BYTES   60
#define FILE_TRIES   100
#define ALL_FILE     "words.txt"

enum form { FORM_WHOLE, FORM_CUT, FORM_LISTED };

struct plan {
	enum form *form;
	int64_t *cost;	/* tokens, with their line */
	size_t *budget; /* bytes of head and tail, FORM_CUT */
	int64_t total;
};

static const char intro[] =
	"What was said to you in this run, kept word for word by baton's own code and put here "
	"again "
	"because the history was shortened. The constraints hold until whoever gave one takes it "
	"back. "
	"Nothing that stands outside this block is a constraint of the user: a summary cannot add "
	"one.\n";

/* ---- files for the model ---- */

/* All of a message in a file of its own, once. NULL if it cannot be written. */
static const char *file_of(struct user_words *words, size_t index)
{
	struct word *w = &words->list[index];

	for (int i = 0; !w->file && i < FILE_TRIES; i++) {
		AUTO_FREE char *name = i ? mem_printf("words-%zu-%d.txt", index + 1, i)
					 : mem_printf("words-%zu.txt", index + 1);
		AUTO_FREE char *path = file_join(words->results_dir, name);
		AUTO_FD int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

		if (fd < 0 && file_exists(path))
			continue;
		if (fd < 0 || file_write_all(fd, w->text, w->n, NULL) < 0)
			return NULL;
		w->file = mem_printf("results:%s", name);
	}
	return w->file;
}

static const char *file_or_none(struct user_words *words, size_t index)
{
	const char *file = file_of(words, index);

	return file ? file : "no file (it could not be written)";
}

static void label(const struct word *w, struct buf *out)
{
	AUTO_BUF struct buf name = BUF_INIT;

	buf_adds(out, speaker_name(w->speaker));
	if (!w->name || !*w->name)
		return;
	text_printable(&name, w->name, strlen(w->name), true);
	buf_addc(out, ' ');
	buf_add(out, name.data,
		text_floor(buf_str(&name), name.len, MIN(name.len, (size_t)NAME_BYTES)));
}

/* One file with every message, for those that are only named. */
static bool write_all_file(const struct user_words *words)
{
	AUTO_FREE char *path = file_join(words->results_dir, ALL_FILE);
	AUTO_BUF struct buf out = BUF_INIT;

	for (size_t i = 0; i < words->n; i++) {
		const struct word *w = &words->list[i];

		buf_addf(&out, "== message %zu, ", i + 1);
		label(w, &out);
		buf_addf(&out, ", %zu bytes ==\n", w->n);
		buf_add(&out, w->text, w->n);
		buf_addc(&out, '\n');
	}
	return file_write_atomic(AT_FDCWD, path, out.data, out.len, 0600, NULL) == 0;
}

/* ---- a long message in the ordinary request ---- */

void user_words_cut(struct user_words *words, size_t index, size_t budget, struct buf *out)
{
	const char *file = file_or_none(words, index);
	const struct word *w = &words->list[index];
	size_t at, hidden = 0;

	buf_addf(
		out,
		"[This message has %zu bytes. All of it is in %s; here are its head and tail.]\n\n",
		w->n, file);
	at = out->len;
	text_clip(out, w->text, w->n, budget, file);
	size_t end = out->len;
	for (size_t i = 0; i < w->constraints.n; i++) {
		const struct text_span *c = &w->constraints.list[i];

		if (memmem(out->data + at, end - at, w->text + c->at, c->n))
			continue;
		if (!hidden++)
			buf_adds(out,
				 "\n\n[What the part that is left out lays down, word for word:]");
		buf_addc(out, '\n');
		buf_add(out, w->text + c->at, c->n);
	}
}

/* ---- the mark ---- */

static bool occurs(const struct user_words *words, const char *mark)
{
	for (size_t i = 0; i < words->n; i++) {
		const struct word *w = &words->list[i];

		if (memmem(w->text, w->n, mark, strlen(mark)) || (w->name && strstr(w->name, mark)))
			return true;
	}
	return false;
}

/* The same words give the same mark: a request that is built again has the same bytes. */
static void make_mark(const struct user_words *words, char mark[MARK_SIZE])
{
	uint64_t seed = 0;

	for (size_t i = 0; i < words->n; i++)
		seed = seed * 31 + text_hash(words->list[i].text, words->list[i].n);
	do {
		seed = text_hash(&seed, sizeof(seed));
		snprintf(mark, MARK_SIZE, "%08" PRIx32, (uint32_t)(seed >> 32));
	} while (occurs(words, mark));
}

/* ---- what has room ---- */

static void set_form(struct plan *p, size_t i, enum form form, int64_t cost)
{
	p->total += cost - p->cost[i];
	p->cost[i] = cost;
	p->form[i] = form;
}

static void cut_to(const struct user_words *words, struct plan *p, size_t i, size_t bytes)
{
	double part = (double)bytes / (double)MAX(words->list[i].n, (size_t)1);

	p->budget[i] = bytes;
	set_form(p, i, FORM_CUT, (int64_t)((double)p->cost[i] * part) + CUT_COST);
}

/* Makes a message fit `tokens`, as far as that shows anything. */
static void shrink(const struct user_words *words, struct plan *p, size_t i, int64_t tokens)
{
	double part = (double)(tokens - CUT_COST) / (double)MAX(p->cost[i], (int64_t)1);

	if (p->cost[i] <= tokens)
		return;
	if (tokens < SHRINK_LEAST)
		set_form(p, i, FORM_LISTED, 0);
	else
		cut_to(words, p, i, (size_t)((double)words->list[i].n * part));
}

static void shrink_ends(const struct user_words *words, struct plan *p, int64_t room)
{
	size_t newest = words->n - 1;
	int64_t left = room - (p->total - p->cost[0] - (newest ? p->cost[newest] : 0));

	if (!newest) {
		shrink(words, p, 0, left);
		return;
	}
	if (p->cost[newest] > left - SHRINK_LEAST)
		shrink(words, p, newest, left * 2 / 3);
	shrink(words, p, 0, left - p->cost[newest]);
}

static void make_room(const struct user_words *words, struct plan *p, int64_t room)
{
	for (size_t i = 1; i + 1 < words->n && p->total > room; i++)
		if (words->list[i].n > CUT_FROM)
			cut_to(words, p, i, CUT_BYTES);
	for (size_t i = 1; i + 1 < words->n && p->total > room; i++)
		set_form(p, i, FORM_LISTED, 0);
	if (words->n && p->total > room)
		shrink_ends(words, p, room);
}

static void plan_init(struct plan *p, const struct user_words *words, const struct ledger *ledger)
{
	*p = (struct plan){
		.form = mem_alloc((words->n + 1) * sizeof(*p->form)),
		.cost = mem_alloc((words->n + 1) * sizeof(*p->cost)),
		.budget = mem_alloc((words->n + 1) * sizeof(*p->budget)),
	};
	for (size_t i = 0; i < words->n; i++) {
		const struct word *w = &words->list[i];

		set_form(p, i, FORM_WHOLE, ledger_estimate_text(ledger, w->text, w->n) + LINE_COST);
	}
}

static void plan_release(struct plan *p)
{
	free(p->form);
	free(p->cost);
	free(p->budget);
}

/* ---- writing ---- */

struct render {
	struct user_words *words;
	const struct plan *plan;
	const char *mark;
	struct buf *out;
	struct user_words_rendered *ret;
};

static bool same_speaker(const struct word *a, const struct word *b)
{
	if (a->speaker != b->speaker || !a->name != !b->name)
		return false;
	return !a->name || !strcmp(a->name, b->name);
}

static bool is_first_of_speaker(const struct user_words *words, size_t index)
{
	for (size_t i = 0; i < index; i++)
		if (same_speaker(&words->list[i], &words->list[index]))
			return false;
	return true;
}

static size_t count_speakers(const struct user_words *words)
{
	size_t count = 0;

	for (size_t i = 0; i < words->n; i++)
		count += is_first_of_speaker(words, i);
	return count;
}

/* The same words of the same speaker once: what is said twice does not hold twice. */
static bool is_repeated(const struct user_words *words, size_t index, size_t k)
{
	const struct word *w = &words->list[index];
	const struct text_span *span = &w->constraints.list[k];

	for (size_t i = 0; i <= index; i++) {
		const struct word *o = &words->list[i];
		size_t end = i < index ? o->constraints.n : k;

		for (size_t j = 0; same_speaker(o, w) && j < end; j++) {
			const struct text_span *other = &o->constraints.list[j];

			if (other->n == span->n &&
			    !memcmp(o->text + other->at, w->text + span->at, span->n))
				return true;
		}
	}
	return false;
}

static void put_constraints(struct render *r, size_t index)
{
	const struct word *w = &r->words->list[index];

	for (size_t k = 0; k < w->constraints.n; k++) {
		const struct text_span *c = &w->constraints.list[k];

		if (is_repeated(r->words, index, k))
			continue;
		buf_addf(r->out, "[%s constraint %zu, ", r->mark, ++r->ret->constraints);
		label(w, r->out);
		buf_addf(r->out, ", message %zu, %zu bytes]\n", index + 1, c->n);
		buf_add(r->out, w->text + c->at, c->n);
		buf_addc(r->out, '\n');
	}
}

static void put_cut(struct render *r, size_t index, const struct buf *start)
{
	AUTO_BUF struct buf text = BUF_INIT;
	const char *file = file_or_none(r->words, index);
	const struct word *w = &r->words->list[index];

	text_clip(&text, w->text, w->n, r->plan->budget[index], file);
	buf_addf(r->out, "%s, %zu bytes of %zu, all of it in %s]\n", buf_str(start), text.len, w->n,
		 file);
	buf_add(r->out, text.data, text.len);
	buf_addc(r->out, '\n');
	r->ret->cut++;
}

static void put_message(struct render *r, size_t index)
{
	AUTO_BUF struct buf start = BUF_INIT;
	const struct word *w = &r->words->list[index];
	char stamp[CLOCK_STAMP_SIZE];

	if (r->plan->form[index] == FORM_LISTED)
		return;
	buf_addf(&start, "[%s message %zu, ", r->mark, index + 1);
	label(w, &start);
	buf_addf(&start, ", %s", clock_stamp(w->time, stamp));
	if (r->plan->form[index] == FORM_CUT) {
		put_cut(r, index, &start);
		return;
	}
	buf_addf(r->out, "%s, %zu bytes]\n", buf_str(&start), w->n);
	buf_add(r->out, w->text, w->n);
	buf_addc(r->out, '\n');
	r->ret->whole++;
}

/* By speaker, in the order of their first word; a heading only where there are several. */
static void put_sections(struct render *r, const char *title,
			 void (*put)(struct render *r, size_t index), bool several)
{
	const struct user_words *words = r->words;

	for (size_t i = 0; i < words->n; i++) {
		if (!is_first_of_speaker(words, i))
			continue;
		if (several) {
			buf_addf(r->out, "[%s %s of ", r->mark, title);
			label(&words->list[i], r->out);
			buf_adds(r->out, "]\n");
		}
		for (size_t k = i; k < words->n; k++)
			if (same_speaker(&words->list[i], &words->list[k]))
				put(r, k);
	}
}

static void put_listed(struct render *r)
{
	const struct user_words *words = r->words;
	AUTO_BUF struct buf ranges = BUF_INIT;

	for (size_t i = 0; i < words->n; i++) {
		size_t end = i;

		while (end < words->n && r->plan->form[end] == FORM_LISTED)
			end++;
		if (end == i)
			continue;
		buf_addf(&ranges, "%s%zu", ranges.len ? ", " : "", i + 1);
		if (end > i + 1)
			buf_addf(&ranges, "-%zu", end);
		r->ret->listed += end - i;
		i = end;
	}
	if (ranges.len)
		buf_addf(r->out,
			 "[%s not repeated here: messages %s; all of them, verbatim, are in %s]\n",
			 r->mark, buf_str(&ranges),
			 write_all_file(words) ? "results:" ALL_FILE
					       : "no file (it could not be written)");
}

static void remember(struct user_words *words, const char *text, size_t n)
{
	struct buf *out = jsonl_begin(words->writer, "rendered");

	words->own_hash = text_hash(text, n);
	words->own_len = n;
	buf_addf(out, ",\"bytes\":%zu,\"hash\":%" PRId64, n, (int64_t)words->own_hash);
	jsonl_end(words->writer);
}

bool user_words_own(const struct user_words *words, const char *text, size_t n)
{
	return words->own_len && n == words->own_len && text_hash(text, n) == words->own_hash;
}

static void put_block(struct render *r)
{
	bool several = count_speakers(r->words) > 1;

	buf_addf(r->out, "<user-words-%s>\n%s", r->mark, intro);
	put_sections(r, "constraints", put_constraints, several);
	put_sections(r, "messages", put_message, several);
	put_listed(r);
	buf_addf(r->out, "</user-words-%s>\n", r->mark);
}

/* What all constraints take, with their lines. */
static int64_t cost_constraints(const struct user_words *words, const struct ledger *ledger)
{
	int64_t sum = 0;

	for (size_t i = 0; i < words->n; i++) {
		const struct word *w = &words->list[i];

		for (size_t k = 0; k < w->constraints.n; k++) {
			const struct text_span *c = &w->constraints.list[k];

			if (!is_repeated(words, i, k))
				sum += ledger_estimate_text(ledger, w->text + c->at, c->n) +
				       LINE_COST;
		}
	}
	return sum;
}

int user_words_render(struct user_words *words, int64_t room, const struct ledger *ledger,
		      struct buf *out, struct user_words_rendered *ret, struct err *err)
{
	char mark[MARK_SIZE];
	struct plan plan;
	struct render r = {.words = words, .plan = &plan, .mark = mark, .out = out, .ret = ret};
	size_t start = out->len;

	if (room <= 0)
		room = words->room;
	*ret = (struct user_words_rendered){.constraint_tokens = cost_constraints(words, ledger)};
	make_mark(words, mark);
	plan_init(&plan, words, ledger);
	plan.total += FRAME_COST + LINE_COST + ret->constraint_tokens;
	make_room(words, &plan, room);
	put_block(&r);
	plan_release(&plan);
	ret->tokens = ledger_estimate_text(ledger, out->data + start, out->len - start);
	remember(words, out->data + start, out->len - start);
	if (ret->constraint_tokens + FRAME_COST <= room)
		return 0;
	return err_set(err, ERR_TOO_LARGE,
		       "%zu constraints of the user take about %" PRId64
		       " tokens, more than the %" PRId64 " that all user words may take",
		       ret->constraints, ret->constraint_tokens + FRAME_COST, room);
}
