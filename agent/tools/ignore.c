/*
 * ignore.c - parsing and matching of .gitignore files (gitignore(5)).
 *
 * That a file below an ignored folder cannot be taken back by `!` is not shown by a rule here: the
 * walk does not enter such a folder. Rules are outside data: their number, the size of a file and
 * the cost of a match are bounded.
 */
#include "agent/tools/ignore.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/tools/wild.h"
#include "base/buf.h"
#include "base/memory.h"

enum { IGNORE_FILE_MAX = 1 << 20, IGNORE_RULES_MAX = 20000 };

struct ignore_rule {
	char *pattern;
	bool negated, dir_only, anchored;
};

struct ignore_list {
	char *base;
	struct ignore_rule *rules;
	size_t count, cap;
};

void ignore_init(struct ignore *ignore)
{
	*ignore = (struct ignore){0};
}

static void list_release(struct ignore_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->rules[i].pattern);
	free(list->rules);
	free(list->base);
}

void ignore_release(struct ignore *ignore)
{
	while (ignore->count)
		ignore_pop(ignore);
	free(ignore->lists);
	*ignore = (struct ignore){0};
}

void ignore_pop(struct ignore *ignore)
{
	list_release(&ignore->lists[--ignore->count]);
}

/* Trailing blanks do not count unless a backslash protects them. */
static size_t rule_length(const char *s, size_t n)
{
	while (n && (s[n - 1] == ' ' || s[n - 1] == '\t') && !(n > 1 && s[n - 2] == '\\'))
		n--;
	return n;
}

/* One line of the file. A slash that is not at the end ties the pattern to the file's own folder.
 */
static void add_rule(struct ignore_list *list, const char *s, size_t n)
{
	struct ignore_rule rule = {0};
	if (n && s[n - 1] == '\r')
		n--;
	n = rule_length(s, n);
	if (!n || s[0] == '#' || list->count >= IGNORE_RULES_MAX)
		return;
	if (s[0] == '!') {
		rule.negated = true;
		s++, n--;
	}
	if (n && s[n - 1] == '/') {
		rule.dir_only = true;
		n--;
	}
	rule.anchored = memchr(s, '/', n) != NULL;
	if (n && s[0] == '/')
		s++, n--;
	if (!n || memchr(s, '\0', n))
		return;
	rule.pattern = mem_strndup(s, n);
	MEM_GROW(list->rules, list->cap, list->count + 1);
	list->rules[list->count++] = rule;
}

static void load_rules(struct ignore_list *list, int dir_fd, const char *file)
{
	AUTO_FD int fd = openat(dir_fd, file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	AUTO_BUF struct buf text = BUF_INIT_MAX(IGNORE_FILE_MAX);
	struct stat st;
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return;
	while (buf_read(&text, fd, 16 << 10) > 0)
		;
	const char *s = buf_str(&text), *end = s + text.len;
	while (s < end) {
		const char *lf = memchr(s, '\n', (size_t)(end - s));
		size_t n = (size_t)((lf ? lf : end) - s);
		add_rule(list, s, n);
		s += n + 1;
	}
}

void ignore_push(struct ignore *ignore, const char *base, int dir_fd, const char *file)
{
	MEM_GROW(ignore->lists, ignore->cap, ignore->count + 1);
	struct ignore_list *list = &ignore->lists[ignore->count++];
	*list = (struct ignore_list){.base = mem_strdup(base)};
	load_rules(list, dir_fd, file);
}

static bool rule_matches(const struct ignore_rule *rule, const char *path, const char *name,
			 bool is_dir)
{
	if (rule->dir_only && !is_dir)
		return false;
	if (rule->anchored)
		return wild_match_path(rule->pattern, path);
	return wild_match_name(rule->pattern, strlen(rule->pattern), name, strlen(name));
}

/* From the innermost list outwards and from the last rule back: the first that matches decides. */
bool ignore_match(const struct ignore *ignore, const char *path, bool is_dir)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	for (size_t i = ignore->count; i-- > 0;) {
		const struct ignore_list *list = &ignore->lists[i];
		size_t n = strlen(list->base);
		const char *below = n && strncmp(path, list->base, n) == 0 ? path + n + 1 : path;
		for (size_t k = list->count; k-- > 0;)
			if (rule_matches(&list->rules[k], below, name, is_dir))
				return !list->rules[k].negated;
	}
	return false;
}
