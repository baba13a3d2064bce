/*
 * grep_match.c - PCRE2 with limits, and printing of hits.
 *
 * A pattern comes from a model and a text from anywhere, so every match has a step limit: a
 * catastrophic pattern ends as an error that says so. The search goes line by line (a pattern like
 * `\s+$` must not reach into the next line); a pattern without any special character is looked up
 * by memmem first, which makes the usual search for a name fast. PCRE2_MATCH_INVALID_UTF makes
 * texts of any bytes searchable.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "agent/tools/grep.h"

#include <string.h>

#include "base/memory.h"
#include "base/text.h"

enum {
	STEPS_MAX = 2000000,
	HEAP_MAX_KIB = 64 << 10,
	JIT_STACK_START = 32 << 10,
	JIT_STACK_MAX = 4 << 20,
	CHECK_LINES = 4096,
	LINE_SHOWN = 500,
	LINE_BEFORE_MATCH = 150,
};

struct matcher {
	pcre2_code *code;
	pcre2_match_data *data;
	pcre2_match_context *context;
	pcre2_jit_stack *stack;
	char *literal; /* set if each hit must hold it byte for byte */
	size_t literal_len;
	bool multiline;
};

void matcher_free(struct matcher *m)
{
	if (!m)
		return;
	pcre2_code_free(m->code);
	pcre2_match_data_free(m->data);
	pcre2_match_context_free(m->context);
	pcre2_jit_stack_free(m->stack);
	free(m->literal);
	free(m);
}

static pcre2_code *compile(const char *pattern, size_t n, const struct matcher_opts *opts,
			   struct err *err)
{
	uint32_t flags = PCRE2_UTF | PCRE2_MATCH_INVALID_UTF;
	int code;
	PCRE2_SIZE at;
	if (opts->ignore_case)
		flags |= PCRE2_CASELESS;
	if (opts->literal)
		flags |= PCRE2_LITERAL;
	else
		flags |= PCRE2_NEVER_BACKSLASH_C;
	if (opts->multiline && !opts->literal)
		flags |= PCRE2_MULTILINE | PCRE2_DOTALL;
	pcre2_code *re = pcre2_compile((PCRE2_SPTR)pattern, n, flags, &code, &at, NULL);
	if (re)
		return re;
	PCRE2_UCHAR message[200];
	pcre2_get_error_message(code, message, sizeof(message));
	err_set(err, ERR_INVALID,
		"the pattern is not a valid regular expression: %s at offset %zu; escape special "
		"characters with a backslash or set literal",
		(const char *)message, (size_t)at);
	return NULL;
}

/* Such a pattern means the same to memmem, which is many times faster than any regular expression.
 */
static bool is_plain(const char *pattern, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strchr("\\^$.[]|()?*+{}", pattern[i])) /* NUL too */
			return false;
	return n > 0;
}

struct matcher *matcher_new(const char *pattern, size_t n, const struct matcher_opts *opts,
			    struct err *err)
{
	pcre2_code *code = compile(pattern, n, opts, err);
	if (!code)
		return NULL;
	struct matcher *m = mem_alloc(sizeof(*m));
	m->code = code;
	m->multiline = opts->multiline;
	m->data = pcre2_match_data_create_from_pattern(code, NULL);
	m->context = pcre2_match_context_create(NULL);
	pcre2_set_match_limit(m->context, STEPS_MAX);
	pcre2_set_heap_limit(m->context, HEAP_MAX_KIB);
	/* Without JIT (a hardened kernel may refuse executable memory) the same search runs slower.
	 */
	if (pcre2_jit_compile(code, PCRE2_JIT_COMPLETE) == 0) {
		m->stack = pcre2_jit_stack_create(JIT_STACK_START, JIT_STACK_MAX, NULL);
		pcre2_jit_stack_assign(m->context, NULL, m->stack);
	}
	if (!opts->ignore_case && n && (opts->literal || is_plain(pattern, n))) {
		m->literal = mem_strndup(pattern, n);
		m->literal_len = n;
	}
	return m;
}

/* --- finding --- */

/* 1 with offsets, 0 for no match, -1 with err. */
static int match_at(struct matcher *m, const char *s, size_t n, size_t from, size_t *ret_start,
		    size_t *ret_end, struct err *err)
{
	int rc = pcre2_match(m->code, (PCRE2_SPTR)s, n, from, 0, m->data, m->context);
	if (rc == PCRE2_ERROR_NOMATCH)
		return 0;
	if (rc == PCRE2_ERROR_MATCHLIMIT || rc == PCRE2_ERROR_DEPTHLIMIT ||
	    rc == PCRE2_ERROR_HEAPLIMIT || rc == PCRE2_ERROR_JIT_STACKLIMIT)
		return err_set(err, ERR_TOO_LARGE,
			       "the pattern needs too many steps (nested repetition such as (a+)+ "
			       "makes it explode); use a simpler one");
	if (rc < 0) {
		PCRE2_UCHAR message[200];
		pcre2_get_error_message(rc, message, sizeof(message));
		return err_set(err, ERR_INVALID, "the search failed: %s", (const char *)message);
	}
	PCRE2_SIZE *at = pcre2_get_ovector_pointer(m->data);
	*ret_start = MIN(at[0], at[1]); /* \K can put the start behind the end */
	*ret_end = at[1];
	return 1;
}

/* All are counted, a bounded number is kept. */
static void add_hit(struct hits *hits, struct hit hit)
{
	hits->count++;
	if (hits->kept >= HITS_KEPT)
		return;
	MEM_GROW(hits->items, hits->cap, hits->kept + 1);
	hits->items[hits->kept++] = hit;
}

static size_t count_newlines(const char *s, size_t n)
{
	size_t count = 0;
	for (const char *end = s + n; (s = memchr(s, '\n', (size_t)(end - s))); s++)
		count++;
	return count;
}

static size_t line_end(const char *text, size_t n, size_t at)
{
	const char *lf = at < n ? memchr(text + at, '\n', n - at) : NULL;
	return lf ? (size_t)(lf - text) : n;
}

static size_t line_start(const char *text, size_t at)
{
	const char *lf = at ? memrchr(text, '\n', at) : NULL;
	return lf ? (size_t)(lf - text) + 1 : 0;
}

/* Each line is a subject of its own, so ^, $ and \s see nothing of its neighbours. A CR before the
 * line end is no part of the line: `;$` finds what it should in a file with CRLF. */
static int find_in_lines(struct matcher *m, const char *text, size_t n, struct hits *hits,
			 int (*check)(void *, struct err *), void *arg, struct err *err)
{
	size_t at = 0, line = 1;
	for (size_t looked = 1; at < n; looked++) {
		if (m->literal) {
			const char *next = memmem(text + at, n - at, m->literal, m->literal_len);
			if (!next)
				return 0;
			size_t start = line_start(text, (size_t)(next - text));
			line += count_newlines(text + at, start > at ? start - at : 0);
			at = MAX(at, start);
		}
		size_t end = line_end(text, n, at), s, e;
		size_t shown_end = end > at && text[end - 1] == '\r' ? end - 1 : end;
		int rc = match_at(m, text + at, shown_end - at, 0, &s, &e, err);
		if (rc < 0)
			return err_prefix(err, "line %zu", line);
		if (rc)
			add_hit(hits, (struct hit){line, at, shown_end, at + s, at + e});
		at = end + 1;
		line++;
		if (looked % CHECK_LINES == 0 && check && check(arg, err) < 0)
			return -1;
	}
	return 0;
}

/* multiline: the next search starts behind the last line that a match touched, so each line is
 * shown once. */
static int find_in_text(struct matcher *m, const char *text, size_t n, struct hits *hits,
			int (*check)(void *, struct err *), void *arg, struct err *err)
{
	size_t at = 0, counted = 0, line = 1, s, e;
	while (at <= n) {
		int rc = match_at(m, text, n, at, &s, &e, err);
		if (rc <= 0)
			return rc;
		size_t start = line_start(text, s);
		/* A match that ends with a line end does not touch the next line. */
		size_t end = line_end(text, n, e > s && text[e - 1] == '\n' ? e - 1 : e);
		line += count_newlines(text + counted, start > counted ? start - counted : 0);
		counted = MAX(counted, start);
		add_hit(hits, (struct hit){line, start, end, s, e});
		at = MAX(end + 1, e);
		if (check && check(arg, err) < 0)
			return -1;
	}
	return 0;
}

int matcher_find(struct matcher *m, const char *text, size_t n, struct hits *hits,
		 int (*check)(void *arg, struct err *err), void *arg, struct err *err)
{
	if (m->multiline)
		return find_in_text(m, text, n, hits, check, arg, err);
	return find_in_lines(m, text, n, hits, check, arg, err);
}

/* --- printing --- */

/* One line, at most LINE_SHOWN bytes of it: those round the match if there is one in it. */
static void print_line(struct buf *out, size_t number, char mark, const char *s, size_t n,
		       size_t match)
{
	buf_addf(out, "%zu%c", number, mark);
	if (n && s[n - 1] == '\r')
		n--;
	if (n <= LINE_SHOWN) {
		buf_add(out, s, n);
		buf_addc(out, '\n');
		return;
	}
	size_t from = match > LINE_BEFORE_MATCH ? match - LINE_BEFORE_MATCH : 0;
	from = text_ceil(s, n, MIN(from, n - LINE_SHOWN));
	size_t to = text_floor(s, n, MIN(from + LINE_SHOWN, n));
	if (from)
		buf_addf(out, "[%zu bytes cut] ", from);
	buf_add(out, s + from, to > from ? to - from : 0);
	if (to < n)
		buf_addf(out, " [%zu bytes cut]", n - to);
	buf_addc(out, '\n');
}

struct printer {
	const char *text;
	size_t n;
	struct buf *out;
	size_t next; /* offset of the first line that was not printed yet */
	size_t next_line;
};

static void print_hit(struct printer *p, const struct hit *hit)
{
	size_t at = hit->start, line = hit->line;
	while (at <= hit->end) {
		size_t end = MIN(line_end(p->text, p->n, at), hit->end);
		size_t match = hit->match_start > at ? hit->match_start - at : 0;
		print_line(p->out, line++, ':', p->text + at, end - at, match);
		at = line_end(p->text, p->n, at) + 1;
	}
	p->next = at;
	p->next_line = line;
}

static void print_after(struct printer *p, size_t count, size_t stop)
{
	for (size_t i = 0; i < count && p->next < p->n && p->next < stop; i++) {
		size_t end = line_end(p->text, p->n, p->next);
		print_line(p->out, p->next_line++, '-', p->text + p->next, end - p->next, 0);
		p->next = end + 1;
	}
}

/* Context never goes back over what is printed; where it leaves a gap, "--" says so. */
static void print_before(struct printer *p, const struct hit *hit, size_t count, bool first)
{
	size_t at = hit->start, back = 0;
	while (back < count && at > p->next) {
		at = line_start(p->text, at - 1);
		back++;
	}
	if (!first && at > p->next)
		buf_adds(p->out, "--\n");
	p->next = MAX(at, p->next);
	p->next_line = hit->line - back;
	print_after(p, back, hit->start);
}

size_t hits_print(const struct hits *hits, const char *text, size_t n, size_t before, size_t after,
		  size_t most, struct buf *out)
{
	struct printer p = {.text = text, .n = n, .out = out, .next_line = 1};
	size_t shown = MIN(hits->kept, most);
	for (size_t i = 0; i < shown; i++) {
		const struct hit *hit = &hits->items[i];
		if (before || after)
			print_before(&p, hit, before, i == 0);
		print_hit(&p, hit);
		print_after(&p, after, i + 1 < hits->kept ? hits->items[i + 1].start : n);
	}
	return shown;
}
