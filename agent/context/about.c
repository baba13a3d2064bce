/*
 * about.c - the table of tools as the rungs see them.
 *
 * Which commands only look is a matter of trust in a short list: a command that is wrongly taken for one
 * with effects costs a few tokens, the other mistake costs a round that somebody may need. So anything
 * with a redirection, a substitution or an unknown program has effects.
 */
#include "agent/context/about.h"

#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"

static const struct row {
	const char *tool;
	enum about_kind kind;
	const char *member;
	const char *placeholder; /* T7's white list; NULL: the result stays */
} rows[] = {
	{"read", ABOUT_READ, "path", CLEARED},
	{"grep", ABOUT_SEARCH, "pattern", CLEARED},
	{"glob", ABOUT_SEARCH, "pattern", CLEARED},
	{"recall", ABOUT_SEARCH, "query", CLEARED},
	{"web_fetch", ABOUT_SEARCH, "url", CLEARED},
	{"web_search", ABOUT_SEARCH, "query", CLEARED},
	{"edit", ABOUT_CHANGE, "path", CLEARED_EFFECT},
	{"write", ABOUT_CHANGE, "path", CLEARED_EFFECT},
	{"shell", ABOUT_RUN, "command", CLEARED_EFFECT},
};

#define MCP_TOOL "mcp_call"

static const struct row *find(const char *tool)
{
	for (size_t i = 0; tool && i < ARRAY_SIZE(rows); i++)
		if (!strcmp(rows[i].tool, tool))
			return &rows[i];
	return NULL;
}

enum about_kind about_kind(const char *tool)
{
	const struct row *row = find(tool);

	return row ? row->kind : ABOUT_OTHER;
}

/* Behind a string that begins at s[i], the quote; n if it does not end. */
static size_t skip_string(const char *s, size_t i, size_t n)
{
	for (i++; i < n && s[i] != '"'; i++)
		if (s[i] == '\\')
			i++;
	return i < n ? i + 1 : n;
}

static size_t skip_blanks(const char *s, size_t i, size_t n)
{
	while (i < n && strchr(" \t\r\n", s[i]))
		i++;
	return i;
}

/* Rungs ask this of thousands of calls in a few milliseconds, and a tree for each would take most of them:
 * a string without escapes is found by looking. NULL: not so simple. */
static char *simple_member(const char *s, size_t n, const char *member)
{
	size_t len = strlen(member);
	int depth = 0;

	for (size_t i = 0; i < n;) {
		size_t from = i, end;

		if (s[i] != '"') {
			depth += s[i] == '{' || s[i] == '['   ? 1
				 : s[i] == '}' || s[i] == ']' ? -1
							      : 0;
			i++;
			continue;
		}
		i = end = skip_string(s, i, n);
		i = skip_blanks(s, i, n);
		if (i == n || s[i] != ':')
			continue;
		i = skip_blanks(s, i + 1, n);
		if (depth != 1 || end - from != len + 2 || memcmp(s + from + 1, member, len))
			continue;
		if (i == n || s[i] != '"')
			return NULL;
		end = skip_string(s, i, n);
		if (end - i < 2 || s[end - 1] != '"')
			return NULL;
		return memchr(s + i, '\\', end - i) ? NULL : mem_strndup(s + i + 1, end - i - 2);
	}
	return NULL;
}

char *about_target(const struct block *call)
{
	const struct row *row = find(call->name);
	AUTO_JSON struct json_object *input = NULL;
	const char *target;
	char *simple;

	if (!row || call->partial)
		return NULL;
	simple = simple_member(call->text, call->text_len, row->member);
	if (simple || json_parse(call->text, call->text_len, &input, NULL) < 0)
		return simple;
	target = json_str(input, row->member, NULL);
	return target ? mem_strdup(target) : NULL;
}

/* ---- commands ---- */

static const char *const lookers[] = {
	"cat",	  "cd",	  "cut",   "date", "df",       "diff", "dirname", "du",	    "echo",
	"env",	  "file", "fgrep", "grep", "head",     "id",   "jq",	  "ls",	    "nl",
	"printf", "seq",  "pwd",   "rg",   "realpath", "sort", "stat",	  "tail",   "test",
	"tree",	  "true", "tr",	   "uniq", "uname",    "wc",   "which",	  "whoami",
};
static const char *const git_lookers[] = {"status", "log",	"diff",	    "show",
					  "blame",  "ls-files", "rev-parse"};

static bool is_one_of(const char *word, size_t n, const char *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strlen(list[i]) == n && !memcmp(list[i], word, n))
			return true;
	return false;
}

static const char *skip_spaces(const char *s)
{
	return s + strspn(s, " \t");
}

/* `sed -n 2,9p`: prints lines. Any other script of sed may write, and so may further options. */
static bool sed_prints(const char *s, size_t n)
{
	const char *at = skip_spaces(s + 3), *end = s + n;

	if (end - at < 4 || memcmp(at, "-n", 2) != 0 || (at[2] != ' ' && at[2] != '\t'))
		return false;
	at = skip_spaces(at + 2);
	char quote = *at == '\'' || *at == '"' ? *at++ : ' ';
	at += strspn(at, "0123456789,$+");
	return at < end && *at == 'p' && (at + 1 == end || at[1] == quote) &&
	       !memmem(at, (size_t)(end - at), " -", 2);
}

/* One command of a line: everything up to the next separator. `env X` runs X, `sort -o` writes, `find`
 * may delete: what has such options is not on the list or is taken out here. */
static bool part_looks(const char *s, size_t n)
{
	size_t len = strcspn(s, " \t|&;\n");

	if (len == 3 && !memcmp(s, "git", 3)) {
		const char *sub = skip_spaces(s + 3);

		return is_one_of(sub, strcspn(sub, " \t|&;\n"), git_lookers,
				 ARRAY_SIZE(git_lookers)) &&
		       !memmem(s, n, "--output", 8);
	}
	if (len == 3 && !memcmp(s, "sed", 3))
		return sed_prints(s, n);
	if (!is_one_of(s, len, lookers, ARRAY_SIZE(lookers)))
		return false;
	if (len == 3 && !memcmp(s, "env", 3))
		return n == 3 || !*skip_spaces(s + 3);
	return !(len == 4 && !memcmp(s, "sort", 4) && memmem(s, n, "-o", 2));
}

bool about_only_looks(const char *command)
{
	const char *s = skip_spaces(command);

	if (!*s || strpbrk(s, ">`\\") || strstr(s, "$(") || strstr(s, "<("))
		return false;
	while (*s) {
		size_t n = strcspn(s, "|&;\n");

		if (n && !part_looks(s, n))
			return false;
		s = skip_spaces(s + n + strspn(s + n, "|&;\n"));
	}
	return true;
}

/* ---- results ---- */

static const char *placeholder_of(const char *tool, const struct context_knobs *knobs)
{
	const struct row *row = find(tool);

	if (row)
		return row->placeholder;
	return knobs->clear_mcp && tool && !strcmp(tool, MCP_TOOL) ? CLEARED_EFFECT : NULL;
}

const char *about_placeholder(const struct block *result, const struct context_knobs *knobs)
{
	return result->kind == BLOCK_TOOL_RESULT ? placeholder_of(result->name, knobs) : NULL;
}

bool about_may_clear(const char *tool, const struct context_knobs *knobs)
{
	return placeholder_of(tool, knobs) != NULL;
}

bool about_is_cleared(const struct block *result)
{
	return result->kind == BLOCK_TOOL_RESULT && result->text &&
	       text_starts(result->text, CLEARED);
}
