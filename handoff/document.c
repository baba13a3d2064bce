/*
 * document.c - the handoff document in memory: its parts, its statements, and the names of everything.
 *
 * Both forms and the check walk the tables that are made here from the X-macros of document.h, so a part, a member
 * of a statement or one of the header is one row there and is written, read, documented and checked at once.
 *
 * Every text that comes in is valid UTF-8 without NUL afterwards, and without what a terminal would obey, except for what a
 * user said: that has to be found again byte for byte.
 */
#include "handoff/document.h"

#include "base/memory.h"
#include "base/text.h"

static const struct {
	const char *key, *title;
	unsigned flags;
} parts[] = {
#define PART_ROW(name, key, title, flags) {key, title, flags},
	HANDOFF_PARTS(PART_ROW)
#undef PART_ROW
};

static const struct handoff_member fields[] = {
#define FIELD_ROW(member, key) {key, offsetof(struct handoff_statement, member)},
	HANDOFF_FIELDS(FIELD_ROW)
#undef FIELD_ROW
};

static const struct handoff_member heads[] = {
#define HEAD_ROW(member, key) {key, offsetof(struct handoff, member)},
	HANDOFF_HEAD(HEAD_ROW)
#undef HEAD_ROW
};

static const char *const origin_names[HANDOFF_N_ORIGINS] = {"record", "user", "model"};

static const char *const state_names[HANDOFF_N_STATES] = {
	[HANDOFF_VERIFIED] = "verified", [HANDOFF_CLAIMED] = "claimed", [HANDOFF_FAILED] = "failed",
	[HANDOFF_OPEN] = "open",	 [HANDOFF_CHANGED] = "changed", [HANDOFF_READ] = "read",
	[HANDOFF_DELETED] = "deleted",
};

static const char *const reason_names[HANDOFF_N_REASONS] = {
	[HANDOFF_BREAKER] = "breaker",
	[HANDOFF_SUMMARY] = "summary",
	[HANDOFF_COMPACTIONS] = "compactions",
	[HANDOFF_ROUNDS] = "rounds",
	[HANDOFF_STAGE] = "stage",
	[HANDOFF_REQUEST] = "request",
	[HANDOFF_ANXIETY] = "anxiety",
	[HANDOFF_WINDOW] = "window",
};

/* ---- life ---- */

struct handoff *handoff_new(void)
{
	return mem_alloc(sizeof(struct handoff));
}

static void statement_release(struct handoff_statement *statement)
{
	free(statement->text);
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		free(*handoff_member(statement, &fields[i]));
}

void handoff_free(struct handoff *handoff)
{
	if (!handoff)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(heads); i++)
		free(*handoff_member(handoff, &heads[i]));
	for (size_t part = 0; part < HANDOFF_N_PARTS; part++) {
		for (size_t i = 0; i < handoff->parts[part].n; i++)
			statement_release(&handoff->parts[part].list[i]);
		free(handoff->parts[part].list);
	}
	free(handoff);
}

static char *cleaned(const char *text, size_t n, bool verbatim)
{
	struct buf out = BUF_INIT;

	buf_reserve(&out, n + 1);
	if (verbatim)
		text_sanitize(&out, text, n);
	else
		text_printable(&out, text, n, false);
	buf_adds(&out, "");
	return out.data ? buf_take(&out) : mem_strdup("");
}

void handoff_setn(char **member, const char *text, size_t n)
{
	char *old = *member; /* the text may lie in it */

	*member = text ? cleaned(text, n, false) : NULL;
	free(old);
}

void handoff_set(char **member, const char *text)
{
	handoff_setn(member, text, text ? strlen(text) : 0);
}

struct handoff_statement *handoff_add(struct handoff *handoff, enum handoff_part_name part,
				      enum handoff_origin origin, const char *text, size_t n)
{
	struct handoff_part *list = &handoff->parts[part];
	struct handoff_statement *statement;

	MEM_GROW(list->list, list->cap, list->n + 1);
	statement = &list->list[list->n++];
	*statement = (struct handoff_statement){.origin = origin};
	statement->text = cleaned(text, n, origin == HANDOFF_FROM_USER);
	return statement;
}

void handoff_remove(struct handoff *handoff, enum handoff_part_name part, size_t i)
{
	struct handoff_part *list = &handoff->parts[part];

	statement_release(&list->list[i]);
	list->n--;
	memmove(list->list + i, list->list + i + 1, (list->n - i) * sizeof(*list->list));
}

struct handoff_statement *handoff_the(const struct handoff *handoff, enum handoff_part_name part)
{
	return handoff->parts[part].n ? &handoff->parts[part].list[0] : NULL;
}

/* ---- names ---- */

static int find_name(const char *const *names, size_t n, const char *name, size_t *ret)
{
	for (size_t i = 0; i < n; i++) {
		if (!names[i] || strcmp(names[i], name) != 0)
			continue;
		*ret = i;
		return 0;
	}
	return -1;
}

const char *handoff_part_key(enum handoff_part_name part)
{
	return parts[part].key;
}

const char *handoff_part_title(enum handoff_part_name part)
{
	return parts[part].title;
}

unsigned handoff_part_flags(enum handoff_part_name part)
{
	return parts[part].flags;
}

int handoff_part_find(const char *key, enum handoff_part_name *ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		if (strcmp(parts[i].key, key) != 0)
			continue;
		*ret = (enum handoff_part_name)i;
		return 0;
	}
	return -1;
}

const char *handoff_origin_name(enum handoff_origin origin)
{
	return origin_names[origin];
}

int handoff_origin_find(const char *name, enum handoff_origin *ret)
{
	size_t i;

	if (find_name(origin_names, HANDOFF_N_ORIGINS, name, &i) < 0)
		return -1;
	*ret = (enum handoff_origin)i;
	return 0;
}

const char *handoff_state_name(enum handoff_state state)
{
	return state_names[state];
}

int handoff_state_find(const char *name, enum handoff_state *ret)
{
	size_t i;

	if (find_name(state_names, HANDOFF_N_STATES, name, &i) < 0)
		return -1;
	*ret = (enum handoff_state)i;
	return 0;
}

const char *handoff_reason_name(enum handoff_reason reason)
{
	return reason_names[reason];
}

int handoff_reason_find(const char *name, enum handoff_reason *ret)
{
	size_t i;

	if (find_name(reason_names, HANDOFF_N_REASONS, name, &i) < 0)
		return -1;
	*ret = (enum handoff_reason)i;
	return 0;
}

const struct handoff_member *handoff_fields(size_t *ret_n)
{
	*ret_n = ARRAY_SIZE(fields);
	return fields;
}

const struct handoff_member *handoff_heads(size_t *ret_n)
{
	*ret_n = ARRAY_SIZE(heads);
	return heads;
}
