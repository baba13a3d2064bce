/*
 * reading.c - a strict reader of request bodies of both wire forms (wire.md 1, 2).
 *
 * It knows the JSON grammar, the members that both renderers write, and nothing of how they write them. What a
 * provider refuses is an error here: control characters, lone surrogates, broken UTF-8, unknown roles, blank text,
 * a marker on thinking. Whether calls and results pair is refusal.c's business.
 */
#include "reading.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/memory.h"
#include "parts.h"

/* ---- tokens ---- */

void tokenizer_make(struct tokenizer *t, struct random *r, bool stubborn)
{
	double letter = 1000.0 / (3.1 + (double)random_between(r, 0, 120) / 100);
	double scale = stubborn ? (double)random_between(r, 14, 20) / 10 : 1;
	double digit = letter * (double)random_between(r, 110, 190) / 100;
	double mark = letter * (double)random_between(r, 120, 220) / 100;
	double blank = letter * (double)random_between(r, 20, 60) / 100;
	double wide = (double)random_between(r, 260, 480);

	for (int c = 0; c < 256; c++) {
		bool letters = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
		double w = c >= 0x80		   ? wide
			   : letters		   ? letter
			   : c >= '0' && c <= '9'  ? digit
			   : c == ' ' || c == '\t' ? blank
						   : mark;

		t->byte[c] = (uint16_t)(w * scale);
	}
	t->block = (uint32_t)random_between(r, 3000, 9000);
	t->message = (uint32_t)random_between(r, 2000, 5000);
	t->image = (uint32_t)random_between(r, 900, 2000) * 1000;
}

int64_t tokenizer_weigh(const struct tokenizer *t, const char *s, size_t n)
{
	int64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += t->byte[(unsigned char)s[i]];
	return sum;
}

int64_t reading_tokens(const struct reading *r)
{
	int64_t sum = r->head_weight;

	for (size_t i = 0; i < r->n; i++)
		sum += r->list[i].weight;
	return sum / READING_WEIGHT_UNIT + 1;
}

void reading_mark(struct reading *r, size_t message, size_t block)
{
	r->marks++;
	if (r->n_marks < SEEN_MARKS)
		r->mark_list[r->n_marks++] = (struct seen_mark){.message = message, .block = block};
}

/* ---- life ---- */

void reading_init(struct reading *r, enum model_api api, const struct tokenizer *tokenizer)
{
	*r = (struct reading){.api = api, .tokenizer = tokenizer};
}

void reading_release(struct reading *r)
{
	buf_release(&r->head);
	buf_release(&r->bytes);
	free(r->list);
	free(r->blocks);
	*r = (struct reading){.n = 0};
}

static void truncate_to(struct reading *r, size_t n)
{
	if (n >= r->n)
		return;
	buf_truncate(&r->bytes, r->list[n].at);
	r->n_blocks = r->list[n].first_block;
	r->n = n;
}

/* ---- messages ---- */

static void begin_message(struct reading *r)
{
	struct seen_message *before = r->n ? &r->list[r->n - 1] : NULL;
	uint64_t chain = before ? hash_mix(before->before, before->hash)
				: hash_bytes(r->head.data, r->head.len);

	MEM_GROW(r->list, r->cap, r->n + 1);
	r->list[r->n] = (struct seen_message){.at = r->bytes.len,
					      .first_block = r->n_blocks,
					      .before = chain,
					      .weight = r->tokenizer->message};
}

/* The members of one message; its canonical bytes are what was copied since it began. */
static void read_message(struct parts *p)
{
	struct reading *r = p->reading;
	struct seen_message *m;

	begin_message(r);
	p->copied = p->at;
	parts_message(p);
	parts_copy(p);
	m = &r->list[r->n];
	m->len = r->bytes.len - m->at;
	m->hash = hash_bytes(r->bytes.data + m->at, m->len);
	m->n_blocks = r->n_blocks - m->first_block;
	r->n++;
}

/* Bytes that two texts have in common. */
static size_t common(const char *a, const char *b, size_t n)
{
	size_t i = 0;

	while (i < n) {
		size_t step = MIN((size_t)256, n - i);

		if (memcmp(a + i, b + i, step) != 0)
			break;
		i += step;
	}
	while (i < n && a[i] == b[i])
		i++;
	return i;
}

/* Does message `index` of the request before stand at the cursor, markers aside? Moves on if so. */
static bool is_same_message(struct parts *p, size_t index)
{
	struct reading *r = p->reading;
	const struct seen_message *m = &r->list[index];
	const char *known = r->bytes.data + m->at, *at = p->at;
	size_t done = 0, marks = 0;

	while (done < m->len) {
		size_t room = MIN(m->len - done, (size_t)(p->end - at));
		size_t same = common(known + done, at, room);

		done += same;
		at += same;
		if (done < m->len) {
			size_t mark = parts_mark_len(at, p->end);

			if (!mark)
				return false;
			at += mark;
			marks++;
		}
	}
	if (at >= p->end || (*at != ',' && *at != ']'))
		return false;
	p->at = at;
	/* Of a message that was seen before, the marker stands at the end. */
	for (size_t i = 0; i < marks; i++)
		reading_mark(r, index, m->n_blocks - 1);
	return true;
}

static void read_messages(struct parts *p, bool whole)
{
	struct reading *r = p->reading;
	bool follows = !whole;

	parts_expect(p, '[');
	if (whole)
		truncate_to(r, 0);
	size_t count = 0;
	for (size_t i = 0; !parts_failed(p); i++) {
		count = i + 1;
		r->last_at = (size_t)(p->at - p->begin);
		if (follows && i < r->n && is_same_message(p, i)) {
			r->kept++;
		} else {
			follows = false;
			truncate_to(r, i);
			read_message(p);
		}
		if (parts_next(p, ']'))
			break;
	}
	truncate_to(r, count);
}

/* ---- the whole body ---- */

/* Tools, system prompt and what else stands before the messages: the same bytes in every request of a session. */
static bool is_same_head(struct parts *p)
{
	struct reading *r = p->reading;
	size_t n = (size_t)(p->end - p->at);

	if (!r->head.len || n < r->head.len || memcmp(p->at, r->head.data, r->head.len) != 0)
		return false;
	p->at += r->head.len;
	return true;
}

static void read_tail(struct parts *p)
{
	while (!parts_failed(p) && !parts_next(p, '}')) {
		struct parts_string key;

		parts_string(p, &key);
		parts_expect(p, ':');
		if (parts_is(&key, "max_tokens") || parts_is(&key, "max_completion_tokens"))
			p->reading->max_tokens = parts_number(p);
		else if (parts_is(&key, "thinking"))
			p->reading->drops_thinking = parts_has(p, "drop_block");
		else if (parts_is(&key, "context_management"))
			parts_edits(p);
		else
			parts_skip(p);
	}
	if (!parts_failed(p) && p->at != p->end)
		parts_fail(p, "bytes behind the body");
}

static void read_head(struct parts *p)
{
	struct reading *r = p->reading;
	int64_t weight = 0;

	parts_expect(p, '{');
	while (!parts_failed(p)) {
		struct parts_string key;

		parts_string(p, &key);
		parts_expect(p, ':');
		if (parts_is(&key, "messages"))
			break;
		p->weight = 0;
		parts_skip(p);
		weight += p->weight;
		parts_expect(p, ',');
	}
	buf_clear(&r->head);
	buf_add(&r->head, p->begin, (size_t)(p->at - p->begin));
	r->head_weight = weight;
}

int reading_take(struct reading *r, const char *body, size_t n, bool whole)
{
	struct parts p = {.reading = r, .begin = body, .at = body, .end = body + n};

	r->kept = r->marks = r->n_marks = 0;
	r->max_tokens = 0;
	r->drops_thinking = false;
	r->edits = (struct seen_edits){.present = false};
	r->wrong[0] = '\0';
	r->same_head = is_same_head(&p);
	if (!r->same_head) {
		read_head(&p);
		whole = true;
	}
	read_messages(&p, whole);
	read_tail(&p);
	return parts_failed(&p) ? -1 : 0;
}
