/*
 * facts_names.c - names that the work hangs on: functions that the model spoke of, identifiers that were seen.
 *
 * A function counts when it is spoken of as one, `name()` in the model's own words, or stands first in what it wrote:
 * source that was read has hundreds, and they can be read again. An identifier (a ticket, a trace, a digest) often stands once, in a
 * result that cannot be had again. What has a few of them was asked for them; a log has a line full each, and
 * those are looked up in the log. Names only, of letters, digits and a few marks: no sentence of a hostile output
 * comes back this way.
 */
#include "agent/context/facts.h"

#include <stdint.h>
#include <string.h>

#include "base/memory.h"

#define NAMES_MAX	  200
#define FUNCTION_SHORTEST 4
#define ID_SHORTEST	  8
#define HASH_SHORTEST	  12 /* a shorter one is a commit, and git log has it */
#define LONGEST		  64
#define ID_DIGITS	  3    /* in one part of it: x86_64-linux is none */
#define LOOKED_AT	  8192 /* bytes of a result */
#define IDS_OF_A_RESULT	  4
#define FUNCTIONS_WRITTEN 4 /* of one edit */

/* One look at a byte: every result is gone through. */
enum { DIGIT = 1, HEX = 2, ALPHA = 4, NAME = 8, ID = 16, ALNUM = DIGIT | ALPHA };

static const uint8_t classes[256] = {
	['0' ... '9'] = DIGIT | HEX | NAME | ID,
	['a' ... 'f'] = ALPHA | HEX | NAME | ID,
	['g' ... 'z'] = ALPHA | NAME | ID,
	['A' ... 'F'] = ALPHA | HEX | NAME | ID,
	['G' ... 'Z'] = ALPHA | NAME | ID,
	['_'] = NAME | ID,
	['-'] = ID,
	[':'] = ID,
};

static bool is_a(char c, uint8_t class)
{
	return classes[(unsigned char)c] & class;
}

/* ---- the list ---- */

/* The one that was named least, and of these last longest ago. */
static void drop_name(struct facts *facts)
{
	size_t worst = 0;

	for (size_t i = 1; i < facts->n_names; i++) {
		const struct fact_name *f = &facts->names[i], *w = &facts->names[worst];

		if (f->times != w->times ? f->times < w->times : f->round < w->round)
			worst = i;
	}
	free(facts->names[worst].text);
	facts->names[worst] = facts->names[--facts->n_names];
}

static void take_name(struct facts *facts, enum fact_name_kind kind, const char *s, size_t n,
		      int64_t round)
{
	for (size_t i = 0; i < facts->n_names; i++) {
		struct fact_name *f = &facts->names[i];

		if (f->kind != kind || f->n != n || memcmp(f->text, s, n) != 0)
			continue;
		f->times++;
		f->round = round;
		return;
	}
	if (facts->n_names >= NAMES_MAX)
		drop_name(facts);
	MEM_GROW(facts->names, facts->cap_names, facts->n_names + 1);
	facts->names[facts->n_names++] = (struct fact_name){
		.kind = kind, .text = mem_strndup(s, n), .n = n, .times = 1, .round = round};
}

/* ---- functions ---- */

static bool is_keyword(const char *s, size_t n)
{
	static const char *const words[] = {"while",  "switch", "return",
					    "sizeof", "catch",	"print"};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (strlen(words[i]) == n && !memcmp(words[i], s, n))
			return true;
	return false;
}

static void take_functions(struct facts *facts, const char *s, size_t n, size_t most, int64_t round)
{
	const char *open = s;

	for (size_t taken = 0; taken < most && (open = memchr(open, '(', (size_t)(s + n - open)));
	     open++) {
		const char *from = open;

		while (from > s && is_a(from[-1], NAME))
			from--;
		size_t len = (size_t)(open - from);
		if (len >= FUNCTION_SHORTEST && len <= LONGEST && !is_a(*from, DIGIT) &&
		    !is_keyword(from, len)) {
			take_name(facts, NAME_FUNCTION, from, len, round);
			taken++;
		}
	}
}

/* ---- identifiers ---- */

static bool is_date(const char *s, size_t n)
{
	return n >= 10 && s[4] == '-' && s[7] == '-' && is_a(s[0], DIGIT) && is_a(s[3], DIGIT) &&
	       is_a(s[5], DIGIT);
}

static bool is_id(const char *s, size_t n)
{
	size_t digits = 0, most = 0, letters = 0, hex = 0;

	for (size_t i = 0; i < n; i++) {
		uint8_t class = classes[(unsigned char)s[i]];

		digits = class & ALNUM ? digits + (class & DIGIT) : 0;
		most = MAX(most, digits);
		letters += (class & ALPHA) != 0;
		hex += (class & HEX) != 0;
	}
	return letters && most >= ID_DIGITS && (hex < n || n >= HASH_SHORTEST) &&
	       !(s[0] == '0' && (s[1] | 0x20) == 'x') && !is_date(s, n);
}

struct found {
	const char *at;
	size_t n;
};

static bool is_known(const struct found *list, size_t n, const char *s, size_t len)
{
	for (size_t i = 0; i < n; i++)
		if (list[i].n == len && !memcmp(list[i].at, s, len))
			return true;
	return false;
}

/* The next identifier from `at` on; n 0: there is none. */
static struct found next_id(const char *at, const char *end)
{
	while (at < end) {
		const char *from = at, *to;

		if (!is_a(*from, ALNUM)) {
			at++;
			continue;
		}
		for (to = from; to < end && is_a(*to, ID); to++)
			if (to[0] == ':' && to + 1 < end && to[1] == ':')
				break;
		at = to;
		while (!is_a(to[-1], ALNUM))
			to--;
		size_t n = (size_t)(to - from);
		if (n >= ID_SHORTEST && n <= LONGEST && (to == end || *to != '(') && is_id(from, n))
			return (struct found){from, n};
	}
	return (struct found){end, 0};
}

static void take_ids(struct facts *facts, const char *s, size_t n, int64_t round)
{
	struct found list[IDS_OF_A_RESULT];
	size_t n_list = 0;

	n = MIN(n, (size_t)LOOKED_AT);
	for (struct found f = next_id(s, s + n); f.n; f = next_id(f.at + f.n, s + n)) {
		if (is_known(list, n_list, f.at, f.n))
			continue;
		if (n_list == IDS_OF_A_RESULT)
			return;
		list[n_list++] = f;
	}
	for (size_t i = 0; i < n_list; i++)
		take_name(facts, NAME_ID, list[i].at, list[i].n, round);
}

/* ---- */

void facts_take_spoken(struct facts *facts, const char *s, size_t n, int64_t round)
{
	take_functions(facts, s, n, SIZE_MAX, round);
	take_ids(facts, s, n, round);
}

/* A few: whoever writes a file says what it is for at its top, and the file can be read again. */
void facts_take_written(struct facts *facts, const char *s, size_t n, int64_t round)
{
	take_functions(facts, s, n, FUNCTIONS_WRITTEN, round);
	take_ids(facts, s, n, round);
}

void facts_take_shown(struct facts *facts, const char *s, size_t n, int64_t round)
{
	take_ids(facts, s, n, round);
}

void facts_release_names(struct facts *facts)
{
	for (size_t i = 0; i < facts->n_names; i++)
		free(facts->names[i].text);
	free(facts->names);
}
