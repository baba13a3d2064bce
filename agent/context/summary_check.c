/*
 * summary_check.c - finds paths in a text and looks for them.
 *
 * Only words with a slash and an extension count: `parser.c` alone may be short for something, `src/a` may
 * be a branch. Addresses of web pages are no files.
 */
#include "agent/context/summary_check.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/memory.h"

#define NAME_MAX_LEN 300
#define EXTENSION    6
#define NAMES_TOLD   3

static bool is_path_byte(char c)
{
	return isalnum((unsigned char)c) || strchr("/._-+@", c) != NULL;
}

/* ".c", ".tar", ".py3", but not ".5" and not a sentence's end. */
static bool has_extension(const char *s, size_t n)
{
	size_t dot = n;

	while (dot > 0 && s[dot - 1] != '.' && s[dot - 1] != '/')
		dot--;
	if (!dot || s[dot - 1] != '.' || dot < 2 || s[dot - 2] == '/')
		return false;
	if (n - dot == 0 || n - dot > EXTENSION || !isalpha((unsigned char)s[dot]))
		return false;
	for (size_t i = dot; i < n; i++)
		if (!isalnum((unsigned char)s[i]))
			return false;
	return true;
}

static bool is_address(const char *text, const char *word)
{
	return word - text >= 1 && word[-1] == ':';
}

void summary_each_file(const char *text, size_t n,
		       bool (*fn)(const char *name, size_t len, void *arg), void *arg)
{
	for (size_t i = 0; i < n;) {
		size_t end = i;

		while (end < n && text[end] && is_path_byte(text[end]))
			end++;
		size_t len = end - i;
		while (len && strchr(".-+@/", text[i + len - 1]))
			len--; /* the sentence's, not the name's */
		if (len > 3 && len < NAME_MAX_LEN && memchr(text + i, '/', len) &&
		    !is_address(text, text + i) && text[i] != '/' && text[i] != '.' &&
		    has_extension(text + i, len) && !fn(text + i, len, arg))
			return;
		i = end > i ? end : i + 1;
	}
}

struct search {
	const struct summary_check *check;
	struct buf unknown;
	size_t n_unknown;
};

static bool was_spoken_of(const struct summary_check *check, const char *name, size_t len)
{
	for (size_t i = 0; i < check->n; i++) {
		const struct message *m = check->list[i];

		for (size_t k = 0; k < m->n_blocks; k++)
			if (m->blocks[k].text &&
			    memmem(m->blocks[k].text, m->blocks[k].text_len, name, len))
				return true;
	}
	return false;
}

static bool look_for(const char *name, size_t len, void *arg)
{
	struct search *s = arg;
	char path[NAME_MAX_LEN + 1];

	snprintf(path, sizeof(path), "%.*s", (int)len, name);
	if ((s->check->exists && s->check->exists(path, s->check->arg)) ||
	    was_spoken_of(s->check, name, len))
		return true;
	buf_addf(&s->unknown, "%s%s", s->n_unknown ? ", " : "", path);
	return ++s->n_unknown < NAMES_TOLD;
}

int summary_check_files(const char *summary, size_t n, const struct summary_check *check,
			struct err *err)
{
	struct search s = {.check = check, .unknown = BUF_INIT};
	int rc = 0;

	summary_each_file(summary, n, look_for, &s);
	if (s.n_unknown)
		rc = err_set(err, ERR_INVALID, "the summary names files that are not there: %s",
			     buf_str(&s.unknown));
	buf_release(&s.unknown);
	return rc;
}
