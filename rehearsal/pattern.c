/*
 * pattern.c - the scenario side of PCRE2. One match context and one match block serve the whole
 * process: the server has one thread and never matches inside a match.
 */
#include "rehearsal/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/memory.h"

#define MATCH_LIMIT 2000000
#define DEPTH_LIMIT 100000

struct pattern {
	pcre2_code *code;
	pcre2_match_data *match;
};

static pcre2_match_context *match_context(void)
{
	static pcre2_match_context *context;

	if (!context) {
		context = pcre2_match_context_create(NULL);
		pcre2_set_match_limit(context, MATCH_LIMIT);
		pcre2_set_depth_limit(context, DEPTH_LIMIT);
	}
	return context;
}

int pattern_compile(const char *source, size_t n, struct pattern **ret, struct err *err)
{
	struct pattern *pattern;
	PCRE2_SIZE at;
	int code;
	pcre2_code *compiled =
		pcre2_compile((PCRE2_SPTR)source, n, PCRE2_UTF | PCRE2_MULTILINE, &code, &at, NULL);

	if (!compiled) {
		PCRE2_UCHAR text[120];

		pcre2_get_error_message(code, text, sizeof(text));
		return err_set(err, ERR_USAGE, "bad pattern '%.*s' at character %zu: %s",
			       (int)MIN(n, (size_t)80), source, (size_t)at, (const char *)text);
	}
	pcre2_jit_compile(compiled, PCRE2_JIT_COMPLETE);
	pattern = mem_alloc(sizeof(*pattern));
	pattern->code = compiled;
	pattern->match = pcre2_match_data_create(PATTERN_MAX_GROUPS, NULL);
	*ret = pattern;
	return 0;
}

void pattern_free(struct pattern *pattern)
{
	if (!pattern)
		return;
	pcre2_code_free(pattern->code);
	pcre2_match_data_free(pattern->match);
	free(pattern);
}

bool pattern_match(const struct pattern *pattern, const char *text, size_t n, size_t from,
		   struct captures *caps)
{
	PCRE2_SIZE *ovector;
	int count;

	if (from > n)
		return false;
	count = pcre2_match(pattern->code, (PCRE2_SPTR)(text ? text : ""), n, from,
			    PCRE2_NO_UTF_CHECK, pattern->match, match_context());
	if (count < 0)
		return false;
	if (!caps)
		return true;
	ovector = pcre2_get_ovector_pointer(pattern->match);
	caps->of = pattern;
	caps->text = text ? text : "";
	caps->count = count ? (unsigned)count : PATTERN_MAX_GROUPS; /* 0: more groups than kept */
	for (unsigned i = 0; i < caps->count; i++) {
		bool set = ovector[2 * i] != PCRE2_UNSET;

		caps->start[i] = set ? ovector[2 * i] : 1;
		caps->end[i] = set ? ovector[2 * i + 1] : 0;
	}
	return true;
}

/* Digits are a number, everything else a name; a name that the pattern lacks is no error here,
 * since templates ask several captures one after the other. */
static bool group_number(const struct captures *caps, const char *name, size_t len, unsigned *ret)
{
	AUTO_FREE char *key = mem_strndup(name, len);
	char *end;
	unsigned long number = strtoul(key, &end, 10);
	int named;

	if (len && !*end) {
		*ret = (unsigned)MIN(number, 1000UL);
		return true;
	}
	named = pcre2_substring_number_from_name(caps->of->code, (PCRE2_SPTR)key);
	if (named < 0)
		return false;
	*ret = (unsigned)named;
	return true;
}

bool captures_get(const struct captures *caps, const char *name, size_t name_len, const char **ret,
		  size_t *ret_len)
{
	unsigned group;

	if (!caps->of || !group_number(caps, name, name_len, &group) || group >= caps->count ||
	    caps->start[group] > caps->end[group])
		return false;
	*ret = caps->text + caps->start[group];
	*ret_len = caps->end[group] - caps->start[group];
	return true;
}
