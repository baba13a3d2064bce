/*
 * handoff_carry.c - see handoff_carry.h.
 */
#include "agent/handoff_carry.h"

#include <string.h>

#include "base/memory.h"
#include "base/text.h"

#define NAMES_BYTES 1500 /* of one kind of names, those of before included */

/* How many statements of a part a document has at most when those of the one before come in. Without an end to it a job of
 * many generations ends up with a document that leaves no room to work. */
static const struct carry {
	enum handoff_part_name part;
	bool commands; /* of `finished`: those that name a command, else those that name none */
	size_t most;
} carries[] = {
	{HANDOFF_DONE_MEANS, false, 20}, {HANDOFF_RULED_OUT, false, 40},
	{HANDOFF_DECISIONS, false, 40},	 {HANDOFF_TEMPORARY, false, 20},
	{HANDOFF_RISKS, false, 20},	 {HANDOFF_FINISHED, false, 30},
	{HANDOFF_FINISHED, true, 20},	 {HANDOFF_FAILURES, false, 20},
	{HANDOFF_FILES, false, 60},
};

bool handoff_was_done(const struct facts *facts, const char *text, int64_t round)
{
	for (size_t i = 0; i < facts->n_commands; i++)
		if (facts->commands[i].round > round && strstr(text, facts->commands[i].command))
			return true;
	return false;
}

/* ---- what is overtaken ---- */

static bool equal(const char *a, const char *b)
{
	return a && b && strcmp(a, b) == 0;
}

static struct handoff_statement *find_file(struct handoff_part *part, const char *file)
{
	for (size_t i = 0; i < part->n; i++)
		if (equal(part->list[i].file, file))
			return &part->list[i];
	return NULL;
}

static bool has_text(const struct handoff_part *part, const struct handoff_statement *s)
{
	for (size_t i = 0; i < part->n; i++)
		if (equal(part->list[i].text, s->text))
			return true;
	return false;
}

static bool was_run(const struct facts *facts, const struct handoff_statement *s)
{
	for (size_t i = 0; s->command && i < facts->n_commands; i++)
		if (equal(facts->commands[i].command, s->command))
			return true;
	return false;
}

/* The parent adds the commits anew. */
static bool is_of(const struct carry *c, const struct handoff_statement *s)
{
	return c->part != HANDOFF_FINISHED || (!s->commit && c->commands == (s->command != NULL));
}

static bool still_holds(struct handoff *h, const struct facts *facts, const struct carry *c,
			const struct handoff_statement *s)
{
	struct handoff_part *part = &h->parts[c->part];

	if (c->part == HANDOFF_FILES)
		return !find_file(part, s->file);
	return is_of(c, s) && !has_text(part, s) && !was_run(facts, s);
}

/* Touched again it counts as it is now, but a change does not become a reading. */
static void keep_changed(struct handoff_part *files, const struct handoff_part *before)
{
	for (size_t i = 0; i < before->n; i++) {
		struct handoff_statement *now = find_file(files, before->list[i].file);

		if (now && before->list[i].state == HANDOFF_CHANGED)
			now->state = HANDOFF_CHANGED;
	}
}

/* ---- taking over ---- */

/* Rounds and messages that it names are those of the generation that wrote it. */
static void copy(struct handoff *h, enum handoff_part_name part, const struct handoff_statement *s,
		 int64_t generation)
{
	struct handoff_statement *to = handoff_add(h, part, s->origin, s->text, strlen(s->text));

	to->state = s->state;
	to->has_exit = s->has_exit;
	to->exit_code = s->exit_code;
	to->generation = s->generation ? s->generation : generation;
	to->uid = s->uid;
#define COPY_FIELD(member, key) handoff_set(&to->member, s->member);
	HANDOFF_FIELDS(COPY_FIELD)
#undef COPY_FIELD
}

/* What was carried stands before what is new: the oldest is the first to go where there is no room. */
static void put_first(struct handoff_part *part, size_t own)
{
	size_t carried = part->n - own;
	AUTO_FREE struct handoff_statement *list = mem_array(NULL, part->n + 1, sizeof(*list));

	memcpy(list, part->list + own, carried * sizeof(*list));
	memcpy(list + carried, part->list, own * sizeof(*list));
	memcpy(part->list, list, part->n * sizeof(*list));
}

static void say_left(struct handoff *h, const struct carry *c, size_t left)
{
	AUTO_FREE char *text =
		mem_printf("%s: %zu older ones stand in the documents of earlier generations; "
			   "`recall` finds them",
			   handoff_part_key(c->part), left);

	if (left && !c->commands)
		handoff_add(h, HANDOFF_MISSING, HANDOFF_FROM_RECORD, text, strlen(text));
}

static void carry_part(struct handoff *h, const struct handoff *before, const struct facts *facts,
		       const struct carry *c)
{
	const struct handoff_part *from = &before->parts[c->part];
	struct handoff_part *to = &h->parts[c->part];
	size_t own = to->n, same = 0, wanted = 0, skip;

	for (size_t i = 0; i < own; i++)
		same += is_of(c, &to->list[i]);
	for (size_t i = 0; i < from->n; i++)
		wanted += still_holds(h, facts, c, &from->list[i]);
	skip = same + wanted > c->most ? MIN(wanted, same + wanted - c->most) : 0;
	say_left(h, c, skip);
	for (size_t i = 0; i < from->n; i++) {
		if (!still_holds(h, facts, c, &from->list[i]))
			continue;
		if (skip)
			skip--;
		else
			copy(h, c->part, &from->list[i], before->generation);
	}
	if (to->n)
		put_first(to, own);
}

/* ---- the announced step ---- */

static const struct handoff_statement *find_next(const struct handoff *h)
{
	const struct handoff_part *tasks = &h->parts[HANDOFF_TASKS];

	for (size_t i = 0; i < tasks->n; i++)
		if (equal(tasks->list[i].id, HANDOFF_NEXT_ID))
			return &tasks->list[i];
	return NULL;
}

static void carry_next(struct handoff *h, const struct handoff *before, const struct facts *facts)
{
	const struct handoff_statement *then = find_next(before);

	if (then && !find_next(h) && !handoff_was_done(facts, then->text, 0))
		copy(h, HANDOFF_TASKS, then, before->generation);
}

/* ---- names ---- */

/* "Functions spoken of: a b c": up to the colon it says of which kind they are. */
static size_t title_len(const char *text)
{
	const char *colon = strchr(text, ':');

	return colon ? (size_t)(colon - text) + 1 : 0;
}

static struct handoff_statement *find_kind(struct handoff *h, const char *text)
{
	struct handoff_part *names = &h->parts[HANDOFF_NAMES];
	size_t n = title_len(text);

	for (size_t i = 0; i < names->n; i++)
		if (n && !strncmp(names->list[i].text, text, n))
			return &names->list[i];
	return NULL;
}

static bool has_word(const char *text, const char *word, size_t n)
{
	for (const char *at = text; (at = memmem(at, strlen(at), word, n)); at++)
		if (at > text && at[-1] == ' ' && (at[n] == ' ' || at[n] == '\0'))
			return true;
	return false;
}

/* New ones first, as far as there is room: what is spoken of no more fades. */
static void add_old_names(struct handoff_statement *now, const char *before)
{
	AUTO_BUF struct buf text = BUF_INIT;

	buf_adds(&text, now->text);
	for (const char *at = before + title_len(before); *at;) {
		size_t n = strcspn(at += strspn(at, " "), " ");

		if (n && text.len + n < NAMES_BYTES && !has_word(buf_str(&text), at, n)) {
			buf_addc(&text, ' ');
			buf_add(&text, at, n);
		}
		at += n;
	}
	free(now->text);
	now->text = mem_strndup(buf_str(&text), text.len);
}

static void carry_names(struct handoff *h, const struct handoff *before)
{
	const struct handoff_part *names = &before->parts[HANDOFF_NAMES];

	for (size_t i = 0; i < names->n; i++) {
		struct handoff_statement *now = find_kind(h, names->list[i].text);

		if (now)
			add_old_names(now, names->list[i].text);
		else
			copy(h, HANDOFF_NAMES, &names->list[i], before->generation);
	}
}

void handoff_carry(struct handoff *h, const struct handoff *before, const struct facts *facts)
{
	keep_changed(&h->parts[HANDOFF_FILES], &before->parts[HANDOFF_FILES]);
	for (size_t i = 0; i < ARRAY_SIZE(carries); i++)
		carry_part(h, before, facts, &carries[i]);
	carry_next(h, before, facts);
	carry_names(h, before);
}
