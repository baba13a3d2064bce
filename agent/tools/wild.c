/*
 * wild.c - matching of wildcard patterns.
 *
 * Two levels of the same idea: characters within a component with *, components within a path with
 * **. On a mismatch the newest star takes one more and the match goes on from there; earlier stars
 * never need to be looked at again, so the cost is at most length times length.
 */
#include "agent/tools/wild.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

enum { WILD_EXPANSIONS = 256 };

/* --- one component --- */

/* Bytes of the character at s and its code; a byte that is no UTF-8 counts as one above all codes.
 */
static size_t next_char(const char *s, size_t n, uint32_t *ret)
{
	static const uint8_t first_mask[5] = {0, 0x7f, 0x1f, 0x0f, 0x07};
	unsigned char c = (unsigned char)s[0];
	size_t len = c < 0x80 ? 1 : c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
	if (len > n || !text_is_utf8(s, len)) {
		*ret = 0x110000u + c;
		return 1;
	}
	uint32_t code = c & first_mask[len];
	for (size_t i = 1; i < len; i++)
		code = code << 6 | ((unsigned char)s[i] & 0x3f);
	*ret = code;
	return len;
}

static bool in_named_class(const char *name, size_t n, uint32_t code)
{
	static const struct {
		const char *name;
		int (*is)(int);
	} classes[] = {
		{"alpha", isalpha}, {"digit", isdigit}, {"alnum", isalnum}, {"upper", isupper},
		{"lower", islower}, {"space", isspace}, {"punct", ispunct}, {"xdigit", isxdigit},
	};
	for (size_t i = 0; i < ARRAY_SIZE(classes); i++)
		if (strlen(classes[i].name) == n && strncmp(classes[i].name, name, n) == 0)
			return code < 128 && classes[i].is((int)code);
	return false;
}

/* One item of a bracket expression at p; moves it on. */
static bool in_item(const char **p, const char *end, uint32_t code)
{
	uint32_t low, high;
	if (*p + 1 < end && (*p)[0] == '[' && (*p)[1] == ':') {
		const char *close_ = memmem(*p + 2, (size_t)(end - *p - 2), ":]", 2);
		if (close_) {
			const char *name = *p + 2;
			*p = close_ + 2;
			return in_named_class(name, (size_t)(close_ - name), code);
		}
	}
	if (**p == '\\' && *p + 1 < end)
		(*p)++;
	*p += next_char(*p, (size_t)(end - *p), &low);
	if (*p + 1 >= end || **p != '-')
		return code == low;
	(*p)++;
	if (**p == '\\' && *p + 1 < end)
		(*p)++;
	*p += next_char(*p, (size_t)(end - *p), &high);
	return code >= low && code <= high;
}

/* The end of the bracket expression at p ("[..."): its ']', or NULL if there is none. */
static const char *bracket_end(const char *p, const char *end)
{
	const char *s = p + 1;
	if (s < end && (*s == '!' || *s == '^'))
		s++;
	if (s < end && *s == ']')
		s++;
	for (; s < end && *s != ']'; s++) {
		if (*s == '\\' && s + 1 < end)
			s++;
		else if (*s == '[' && s + 1 < end && s[1] == ':') {
			const char *close_ = memmem(s + 2, (size_t)(end - s - 2), ":]", 2);
			s = close_ ? close_ + 1 : s;
		}
	}
	return s < end ? s : NULL;
}

static bool in_bracket(const char *p, const char *close_, uint32_t code)
{
	bool negated = p[1] == '!' || p[1] == '^';
	bool found = false;
	for (p += negated ? 2 : 1; p < close_;)
		found |= in_item(&p, close_, code);
	return found != negated;
}

/* Matches one element that is no star against one character; moves both on. */
static bool match_element(const char **p, const char *p_end, const char **s, const char *s_end)
{
	uint32_t code, want;
	size_t len = next_char(*s, (size_t)(s_end - *s), &code);
	const char *close_ = **p == '[' ? bracket_end(*p, p_end) : NULL;
	bool matches;
	if (close_) {
		matches = in_bracket(*p, close_, code);
		*p = close_ + 1;
	} else if (**p == '?') {
		matches = true;
		(*p)++;
	} else {
		if (**p == '\\' && *p + 1 < p_end)
			(*p)++;
		*p += next_char(*p, (size_t)(p_end - *p), &want);
		matches = code == want;
	}
	*s += len;
	return matches;
}

bool wild_match_name(const char *pattern, size_t pattern_len, const char *name, size_t n)
{
	const char *p = pattern, *p_end = pattern + pattern_len;
	const char *s = name, *s_end = name + n;
	const char *star = NULL, *fork = NULL;
	for (;;) {
		if (p < p_end && *p == '*') {
			star = ++p;
			fork = s;
			continue;
		}
		if (s == s_end && p == p_end)
			return true;
		if (s < s_end && p < p_end && match_element(&p, p_end, &s, s_end))
			continue;
		if (!star || fork == s_end)
			return false;
		p = star;
		s = ++fork;
	}
}

/* --- paths --- */

struct walker {
	const char *at; /* start of a component; NULL behind the last */
	size_t n;
};

static struct walker component(const char *s)
{
	return (struct walker){s, s ? strcspn(s, "/") : 0};
}

static struct walker following(struct walker w)
{
	return component(w.at[w.n] == '/' ? w.at + w.n + 1 : NULL);
}

bool wild_match_path(const char *pattern, const char *path)
{
	struct walker p = component(pattern), s = component(path);
	struct walker star = {0}, fork = {0};
	bool has_star = false;
	for (;;) {
		if (p.at && p.n == 2 && p.at[0] == '*' && p.at[1] == '*') {
			p = following(p);
			if (!p.at)
				return s.at != NULL;
			star = p;
			fork = s;
			has_star = true;
		} else if (p.at && s.at && wild_match_name(p.at, p.n, s.at, s.n)) {
			p = following(p);
			s = following(s);
		} else if (!p.at && !s.at) {
			return true;
		} else {
			if (!has_star || !fork.at)
				return false;
			fork = following(fork);
			p = star;
			s = fork;
		}
	}
}

/* --- sets --- */

static void set_add(struct wild_set *set, const char *s)
{
	if (set->count >= WILD_EXPANSIONS)
		return;
	MEM_GROW(set->items, set->cap, set->count + 1);
	set->items[set->count++] = mem_strdup(s);
}

/* Finds the first group with a comma: its '{' and '}'. */
static bool find_group(const char *s, const char **ret_open, const char **ret_close)
{
	for (const char *open = strchr(s, '{'); open; open = strchr(open + 1, '{')) {
		int depth = 0;
		bool comma = false;
		for (const char *p = open; *p; p++) {
			depth += *p == '{';
			comma |= *p == ',' && depth == 1;
			if (*p != '}' || --depth)
				continue;
			if (!comma)
				break;
			*ret_open = open;
			*ret_close = p;
			return true;
		}
	}
	return false;
}

static void expand(struct wild_set *set, const char *s, int depth)
{
	const char *open, *close_;
	if (depth > 16 || !find_group(s, &open, &close_)) {
		set_add(set, s);
		return;
	}
	const char *start = open + 1;
	int level = 0;
	for (const char *p = start; p <= close_ && set->count < WILD_EXPANSIONS; p++) {
		if (p == close_ || (*p == ',' && level == 0)) {
			AUTO_FREE char *one = mem_printf("%.*s%.*s%s", (int)(open - s), s,
							 (int)(p - start), start, close_ + 1);
			expand(set, one, depth + 1);
			start = p + 1;
		}
		level += *p == '{';
		level -= *p == '}';
	}
}

void wild_set_init(struct wild_set *set, const char *pattern)
{
	*set = (struct wild_set){0};
	while (text_starts(pattern, "./"))
		pattern += 2;
	expand(set, pattern, 0);
}

void wild_set_release(struct wild_set *set)
{
	for (size_t i = 0; i < set->count; i++)
		free(set->items[i]);
	free(set->items);
	*set = (struct wild_set){0};
}

bool wild_set_match(const struct wild_set *set, const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	for (size_t i = 0; i < set->count; i++) {
		const char *pattern = set->items[i];
		bool by_name = !strchr(pattern, '/') && strcmp(pattern, "**") != 0;
		if (by_name ? wild_match_name(pattern, strlen(pattern), name, strlen(name))
			    : wild_match_path(pattern, path))
			return true;
	}
	return false;
}
