/*
 * document_rig.c - random handoff documents. Texts are put together from pieces that mean something in one of
 * the two forms, since what is drawn evenly from all characters hardly ever holds two of them.
 */
#include "document_rig.h"

#include <stdio.h>

#include "base/memory.h"

static const char *const pieces[] = {
	"word",
	"a longer run of words",
	" ",
	"  ",
	"\n",
	"\n\n",
	"\n\n\n",
	"\t",
	"---",
	"\n---\n",
	"```",
	"````",
	"~~~",
	"\n```c\nint x;\n```\n",
	"#",
	"# ",
	"\n# Goal\n",
	"\n## Files touched\n",
	"- ",
	"\n- ",
	"\n  - ",
	"* ",
	"1. ",
	"> ",
	"\n> ",
	"|",
	": ",
	"- file: x",
	"`",
	"``",
	"`x`",
	"\\",
	"\\n",
	"\\u0041",
	"\"",
	"'",
	"<!--",
	"-->",
	"<b>",
	"&amp;",
	"[",
	"]",
	"[x] ",
	"[record]",
	"(user)",
	"{",
	"}",
	"\xe2\x80\xa8",
	"\xc3\xa9",
	"\xe7\xbb\xa7\xe7\xbb\xad",
	"\xf0\x9f\x98\x80",
	"\xef\xbb\xbf",
	"\r",
	"\r\n",
	"\x01",
	"\x1b[31m",
	"\x7f",
	"true",
	"null",
	"~",
	"0",
	"1.5",
	"!!str",
	"&a",
	"*a",
	"%",
	"@",
	"schema: x",
	"exit_code: 1",
};

static uint32_t next(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 8;
}

static void random_text(uint32_t *seed, struct buf *out)
{
	size_t n = next(seed) % 9;

	buf_clear(out);
	buf_adds(out, "");
	while (n--)
		buf_adds(out, pieces[next(seed) % ARRAY_SIZE(pieces)]);
}

static void random_members(uint32_t *seed, void *of, const struct handoff_member *members, size_t n,
			   struct buf *text)
{
	for (size_t i = 0; i < n; i++) {
		if (next(seed) % 3)
			continue;
		random_text(seed, text);
		handoff_set(handoff_member(of, &members[i]), buf_str(text));
	}
}

static void random_statement(uint32_t *seed, struct handoff *handoff, enum handoff_part_name part,
			     struct buf *text)
{
	static const int codes[] = {0, 1, 2, 127, 255, -9, INT32_MAX, INT32_MIN};
	size_t n;
	const struct handoff_member *fields = handoff_fields(&n);

	random_text(seed, text);
	struct handoff_statement *s = handoff_add(handoff, part, next(seed) % HANDOFF_N_ORIGINS,
						  buf_str(text), text->len);
	s->state = next(seed) % HANDOFF_N_STATES;
	random_members(seed, s, fields, n, text);
	s->has_exit = next(seed) % 2;
	s->exit_code = s->has_exit ? codes[next(seed) % ARRAY_SIZE(codes)] : 0;
	s->generation = next(seed) % 2 ? next(seed) % 7 : 0;
	s->uid = next(seed) % 2 ? next(seed) : 0;
	if (next(seed) % 16 == 0)
		s->uid = INT64_MAX;
}

struct handoff *random_document(uint32_t seed)
{
	struct handoff *handoff = handoff_new();
	AUTO_BUF struct buf text = BUF_INIT;
	size_t n;
	const struct handoff_member *heads = handoff_heads(&n);

	next(&seed);
	handoff->generation = next(&seed) % 5;
	handoff->facts_only = next(&seed) % 2;
	random_members(&seed, handoff, heads, n, &text);
	for (enum handoff_part_name part = 0; part < HANDOFF_N_PARTS; part++) {
		size_t many = next(&seed) % 4;
		if (many && (handoff_part_flags(part) & HANDOFF_ONE))
			many = 1;
		while (many--)
			random_statement(&seed, handoff, part, &text);
	}
	return handoff;
}

/* ---- comparing ---- */

static const char *difference(const char *place, size_t i, const char *name, const char *a,
			      const char *b)
{
	static char text[2000];

	snprintf(text, sizeof(text), "%s[%zu].%s: '%s' and '%s'", place, i, name, a ? a : "(none)",
		 b ? b : "(none)");
	return text;
}

static const char *member_difference(const char *place, size_t i, const void *a, const void *b,
				     const struct handoff_member *members, size_t n)
{
	for (size_t k = 0; k < n; k++) {
		const char *x = *handoff_member(a, &members[k]),
			   *y = *handoff_member(b, &members[k]);
		if ((x == NULL) != (y == NULL) || (x && strcmp(x, y) != 0))
			return difference(place, i, members[k].key, x, y);
	}
	return NULL;
}

static const char *statement_difference(const char *part, size_t i,
					const struct handoff_statement *a,
					const struct handoff_statement *b)
{
	size_t n;
	const struct handoff_member *fields = handoff_fields(&n);

	if (strcmp(a->text, b->text) != 0)
		return difference(part, i, "text", a->text, b->text);
	if (a->origin != b->origin)
		return difference(part, i, "origin", handoff_origin_name(a->origin),
				  handoff_origin_name(b->origin));
	if (a->state != b->state)
		return difference(part, i, "state", handoff_state_name(a->state),
				  handoff_state_name(b->state));
	if (a->has_exit != b->has_exit || a->exit_code != b->exit_code)
		return difference(part, i, "exit_code", NULL, NULL);
	if (a->generation != b->generation || a->uid != b->uid)
		return difference(part, i, "generation or uid", NULL, NULL);
	return member_difference(part, i, a, b, fields, n);
}

const char *document_difference(const struct handoff *a, const struct handoff *b)
{
	size_t n;
	const struct handoff_member *heads = handoff_heads(&n);
	const char *found = member_difference("header", 0, a, b, heads, n);

	if (a->generation != b->generation || a->facts_only != b->facts_only)
		return "header: generation or facts_only";
	for (enum handoff_part_name part = 0; !found && part < HANDOFF_N_PARTS; part++) {
		const char *key = handoff_part_key(part);
		if (a->parts[part].n != b->parts[part].n)
			return difference(key, a->parts[part].n, "count", NULL, NULL);
		for (size_t i = 0; !found && i < a->parts[part].n; i++)
			found = statement_difference(key, i, &a->parts[part].list[i],
						     &b->parts[part].list[i]);
	}
	return found;
}
