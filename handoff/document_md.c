/*
 * document_md.c - the handoff document as Markdown: the form that people and models read, and that people edit.
 *
 *   ---
 *   schema: baton.handoff                       the header, as YAML
 *   version: 1
 *   ...
 *   ---
 *   # Handoff
 *
 *   ## Present failures                         a part, by its title
 *
 *   - test_torn_line gives line 0               a statement: its text, further lines indented by two
 *     instead of 7
 *     - origin: record, generation 2, message 41
 *     - command: ninja -C build test            its members, in this order
 *     - exit_code: 1
 *     - output:
 *       ```
 *       test.c:41: expected 7, got 0
 *       ```
 *
 * It is read by its indentation alone, so nothing that a text holds (fences, headings, lists, `---`) can be taken for
 * structure; but for a line that looks like a member, which gets a backslash before it, as Markdown knows it. What no
 * line can hold (\r, escape sequences: only a user's words have them) stands in a member `verbatim` as a JSON string,
 * and the text is what a terminal may see of it.
 */
#include "base/memory.h"
#include "base/text.h"
#include "handoff/document_form.h"

/* ---- shared with the reader ---- */

bool handoff_text_is_plain(const char *text, size_t n)
{
	AUTO_BUF struct buf seen = BUF_INIT;

	text_printable(&seen, text, n, false);
	return seen.len == n && (n == 0 || memcmp(seen.data, text, n) == 0);
}

static bool is_member(const char *key, size_t n)
{
	static const char *const own[] = {"origin", "state", "verbatim", "exit_code"};
	size_t n_fields;
	const struct handoff_member *fields = handoff_fields(&n_fields);

	for (size_t i = 0; i < ARRAY_SIZE(own); i++)
		if (strlen(own[i]) == n && memcmp(own[i], key, n) == 0)
			return true;
	for (size_t i = 0; i < n_fields; i++)
		if (strlen(fields[i].key) == n && memcmp(fields[i].key, key, n) == 0)
			return true;
	return false;
}

size_t handoff_member_mark(const char *s, size_t n, size_t *ret_slashes)
{
	size_t slashes = 0, at, key;

	while (slashes < n && s[slashes] == '\\')
		slashes++;
	at = slashes;
	if (n - at < 3 || memcmp(s + at, "- ", 2) != 0)
		return 0;
	key = at += 2;
	while (at < n && ((s[at] >= 'a' && s[at] <= 'z') || s[at] == '_'))
		at++;
	if (at == n || s[at] != ':' || !is_member(s + key, at - key))
		return 0;
	*ret_slashes = slashes;
	return at + 1;
}

/* ---- statements ---- */

static void add_text_lines(struct buf *out, const char *text, size_t n)
{
	const char *end = text + n;
	bool first = true;

	for (;;) {
		const char *nl = memchr(text, '\n', (size_t)(end - text));
		size_t len = (size_t)((nl ? nl : end) - text), slashes;
		if (len || first)
			buf_adds(out, first ? (len ? "- " : "-") : "  ");
		if (!first && handoff_member_mark(text, len, &slashes))
			buf_addc(out, '\\');
		buf_add(out, text, len);
		buf_addc(out, '\n');
		if (!nl)
			return;
		text = nl + 1;
		first = false;
	}
}

static void add_quoted(struct buf *out, const char *key, const char *text, size_t n)
{
	buf_addf(out, "  - %s: ", key);
	json_write_string(out, text, n);
	buf_addc(out, '\n');
}

/* The fence is longer than any row of backticks within. */
static void add_fenced(struct buf *out, const char *key, const char *text, size_t n)
{
	size_t longest = 2, row = 0;
	const char *end = text + n;

	for (size_t i = 0; i < n; i++) {
		row = text[i] == '`' ? row + 1 : 0;
		longest = MAX(longest, row);
	}
	AUTO_FREE char *fence = mem_alloc(longest + 2);
	memset(fence, '`', longest + 1);
	buf_addf(out, "  - %s:\n    %s\n", key, fence);
	for (;;) {
		const char *nl = memchr(text, '\n', (size_t)(end - text));
		size_t len = (size_t)((nl ? nl : end) - text);
		buf_adds(out, len ? "    " : "");
		buf_add(out, text, len);
		buf_addc(out, '\n');
		if (!nl)
			break;
		text = nl + 1;
	}
	buf_addf(out, "    %s\n", fence);
}

/* As it is where it can stand so; lines in a fence; anything else as a JSON string. */
static void add_member(struct buf *out, const char *key, const char *value)
{
	size_t n = strlen(value);

	if (!handoff_text_is_plain(value, n) || !n || strchr(" \t\"", value[0]))
		add_quoted(out, key, value, n);
	else if (strchr(value, '\n'))
		add_fenced(out, key, value, n);
	else if (strchr(" \t", value[n - 1]))
		add_quoted(out, key, value, n);
	else
		buf_addf(out, "  - %s: %s\n", key, value);
}

void handoff_statement_markdown(struct buf *out, const struct handoff_statement *s)
{
	const char *text = s->text ? s->text : "";
	size_t n = strlen(text), n_fields;
	const struct handoff_member *fields = handoff_fields(&n_fields);

	if (handoff_text_is_plain(text, n)) {
		add_text_lines(out, text, n);
	} else {
		AUTO_BUF struct buf seen = BUF_INIT;
		text_printable(&seen, text, n, false);
		add_text_lines(out, buf_str(&seen), seen.len);
	}
	buf_addf(out, "  - origin: %s", handoff_origin_name(s->origin));
	if (s->generation)
		buf_addf(out, ", generation %lld", (long long)s->generation);
	if (s->uid)
		buf_addf(out, ", message %llu", (unsigned long long)s->uid);
	buf_addc(out, '\n');
	if (!handoff_text_is_plain(text, n))
		add_quoted(out, "verbatim", text, n);
	if (s->state)
		buf_addf(out, "  - state: %s\n", handoff_state_name(s->state));
	for (size_t i = 0; i < n_fields; i++) {
		const char *value = *handoff_member(s, &fields[i]);
		if (value)
			add_member(out, fields[i].key, value);
		if (s->has_exit && strcmp(fields[i].key, "command") == 0)
			buf_addf(out, "  - exit_code: %d\n", s->exit_code);
	}
}

/* ---- the document ---- */

/* A word that no reader of YAML takes for anything else. */
static bool is_word(const char *s)
{
	static const char *const others[] = {"true", "false", "null", "yes", "no", "on", "off"};

	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (strcasecmp(s, others[i]) == 0)
			return false;
	if (!((*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z')))
		return false;
	return s[strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-")] ==
	       '\0';
}

static void add_head(struct buf *out, const char *key, const char *value)
{
	buf_addf(out, "%s: ", key);
	if (is_word(value))
		buf_adds(out, value);
	else
		json_write_cstr(out, value);
	buf_addc(out, '\n');
}

void handoff_to_markdown(const struct handoff *handoff, struct buf *out)
{
	size_t n;
	const struct handoff_member *heads = handoff_heads(&n);

	buf_addf(out, "---\nschema: %s\nversion: %d\ngeneration: %lld\n", HANDOFF_SCHEMA,
		 HANDOFF_VERSION, (long long)handoff->generation);
	for (size_t i = 0; i < n; i++) {
		const char *value = *handoff_member(handoff, &heads[i]);
		if (value)
			add_head(out, heads[i].key, value);
	}
	buf_addf(out, "facts_only: %s\n---\n" HANDOFF_MD_TITLE "\n",
		 handoff->facts_only ? "true" : "false");
	for (enum handoff_part_name part = 0; part < HANDOFF_N_PARTS; part++) {
		const struct handoff_part *list = &handoff->parts[part];
		if (!list->n)
			continue;
		buf_addf(out, "\n## %s\n\n", handoff_part_title(part));
		for (size_t i = 0; i < list->n; i++)
			handoff_statement_markdown(out, &list->list[i]);
	}
}
