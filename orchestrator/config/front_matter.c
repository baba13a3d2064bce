/*
 * front_matter.c - what YAML refuses and people write all the same. Runs in the parent.
 *
 * Agents' files in public repositories have descriptions such as "Use it when: <example>user: ...",
 * in which YAML sees a mapping inside a text. The tools that they were written for split lines at
 * the first colon; so does this. The result is quoted and goes through the one YAML parser, so that
 * its limits hold here too.
 */
#include "orchestrator/config/front_matter.h"

#include <string.h>

#include "base/buf.h"
#include "base/memory.h"
#include "base/text.h"

struct loose {
	struct buf yaml;  /* the repaired document: JSON strings are YAML */
	struct buf value; /* of the key in hand */
	struct buf items; /* its list, if its text is empty */
	size_t keys;
};

/* What counts as a key; "Context: user says" in the middle of a text has to start its line to be
 * taken for one, as it does for the tools that wrote it. */
static bool is_key_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '-';
}

/* Length of the key at the start of the line, 0 if it does not start with "key:". */
static size_t key_len(const char *line, size_t n)
{
	size_t k = 0;

	while (k < n && is_key_char(line[k]))
		k++;
	return k > 0 && k < n && line[k] == ':' ? k : 0;
}

static void trim(const char **s, size_t *n)
{
	while (*n > 0 && strchr(" \t\r", **s))
		(*s)++, (*n)--;
	while (*n > 0 && strchr(" \t\r", (*s)[*n - 1]))
		(*n)--;
}

/* "|" and ">" announce a block of lines. */
static void drop_block_mark(const char **s, size_t *n)
{
	size_t k = 1;

	if (*n == 0 || !strchr("|>", **s))
		return;
	if (k < *n && strchr("-+", (*s)[k]))
		k++;
	if (k < *n && (*s)[k] == '\n')
		(*s) += k + 1, *n -= k + 1;
}

/* Quotes round the whole of a text are not part of it. */
static void unquote(const char **s, size_t *n)
{
	if (*n >= 2 && (**s == '"' || **s == '\'') && (*s)[*n - 1] == **s)
		(*s)++, *n -= 2;
}

/* Writes the value of the key in hand, which is whole now. */
static void end_key(struct loose *l)
{
	const char *value = buf_str(&l->value);
	size_t n = l->value.len;

	if (l->keys == 0)
		return;
	drop_block_mark(&value, &n);
	unquote(&value, &n);
	if (n == 0 && l->items.len > 0)
		buf_addf(&l->yaml, "[%s]", buf_str(&l->items));
	else
		json_write_string(&l->yaml, value, n);
	buf_addc(&l->yaml, '\n');
	buf_clear(&l->value);
	buf_clear(&l->items);
}

static void add_item(struct loose *l, const char *line, size_t n)
{
	trim(&line, &n);
	unquote(&line, &n);
	if (l->items.len > 0)
		buf_addc(&l->items, ',');
	json_write_string(&l->items, line, n);
}

/* Lines before the first key, blank ones and comments are dropped. */
static void add_line(struct loose *l, const char *line, size_t n)
{
	size_t key = key_len(line, n);

	if (key > 0) {
		end_key(l);
		json_write_string(&l->yaml, line, key);
		buf_addc(&l->yaml, ':');
		buf_addc(&l->yaml, ' ');
		line += key + 1;
		n -= key + 1;
		trim(&line, &n);
		buf_add(&l->value, line, n);
		l->keys++;
		return;
	}
	trim(&line, &n);
	if (l->keys == 0 || n == 0 || *line == '#')
		return;
	if (n > 1 && line[0] == '-' && line[1] == ' ' && l->value.len == 0) {
		add_item(l, line + 2, n - 2);
		return;
	}
	buf_addc(&l->value, '\n');
	buf_add(&l->value, line, n);
}

int front_matter_loose(const char *text, size_t n, const char *name, struct yaml_doc **ret)
{
	struct loose l = {.keys = 0};
	const char *end = text + n;

	while (text < end) {
		const char *nl = memchr(text, '\n', (size_t)(end - text));
		size_t len = (size_t)((nl ? nl : end) - text);
		add_line(&l, text, len);
		text += len + (nl != NULL);
	}
	end_key(&l);
	int rc = l.keys > 0 ? yaml_parse(buf_str(&l.yaml), l.yaml.len, name, 2, ret, NULL) : -1;
	buf_release(&l.yaml);
	buf_release(&l.value);
	buf_release(&l.items);
	return rc;
}
