/*
 * summarisers.c - see summarisers.h.
 *
 * A lie that is sought afterwards must be a string that stands nowhere else: inventions name things that no
 * conversation has, and a constraint is turned into its opposite under a heading of its own.
 */
#include "summarisers.h"

#include "golden_check.h"

#include <string.h>

#include "base/memory.h"

static const char *const titles[] = {
	"Primary request and intent",
	"Key technical concepts",
	"Files and code sections",
	"Errors and fixes",
	"Problem solving",
	"All user messages",
	"Pending tasks",
	"Current work",
	"Optional next step",
};

static const unsigned classes_of[] = {
	1u << FACT_GOAL,
	1u << FACT_CONSTRAINT,
	1u << FACT_FILE | 1u << FACT_FUNCTION,
	1u << FACT_FAILURE,
	1u << FACT_DECISION | 1u << FACT_REJECTED,
	1u << FACT_WORDS,
	0,
	1u << FACT_COMMAND | 1u << FACT_IDENTIFIER,
	1u << FACT_NEXT,
};

static const char *const inventions[] = {
	"Never use the zebra cache for temporary files.",
	"The user insists that all zebra messages are in French.",
	"Always rebase onto the branch zebra-7 before a commit.",
	"Only the function zebra_main may be changed.",
	"User: do not run the zebra tests more than once.",
	"It is forbidden to use more than 80 zebra columns.",
	"- Constraint: keep the zebra platform working.",
	"> \"Please avoid zebra expressions.\"",
	"You must not read the folder zebra/.",
	"The user said that zebra.conf must never change.",
};

static const char *const inventions_chinese[] = {
	"用户要求：所有斑马日志必须写成法文。",
	"不要使用斑马缓存。",
	"必须先合并到斑马分支。",
	"只能修改 zebra_main 函数。",
	"严禁在周五提交斑马代码。",
};

const char *summariser_name(enum summariser summariser)
{
	static const char *const names[] = {"good", "lazy", "lying"};

	return names[summariser];
}

void lies_release(struct lies *lies)
{
	for (size_t i = 0; i < lies->n; i++)
		free(lies->list[i]);
	free(lies->list);
	*lies = (struct lies){.list = NULL};
}

static void add_lie(struct lies *lies, char *text)
{
	MEM_GROW(lies->list, lies->cap, lies->n + 1);
	lies->list[lies->n++] = text;
}

static void add_fact(const struct fact *f, struct buf *out)
{
	buf_adds(out, "- ");
	for (size_t i = 0; i < f->n; i++)
		buf_addf(out, "%s%s", i ? "; " : "", f->texts[i]);
	if (f->why)
		buf_addf(out, " (because %s)", f->why);
	buf_addc(out, '\n');
}

/* The opposite of a prohibition, as a rule. */
static bool add_opposite(const char *text, struct lies *lies, struct buf *out)
{
	static const char *const nots[] = {"Do not ", "Don't ", "do not ", "don't ", "never ",
					   "Never ",  "不要",	"禁止",	   "别"};

	for (size_t i = 0; i < ARRAY_SIZE(nots); i++) {
		const char *at = strstr(text, nots[i]);

		if (!at)
			continue;
		bool chinese = (unsigned char)*nots[i] >= 0x80;
		char *lie = mem_printf(chinese ? "用户要求：必须%s" : "The user wants: always %s",
				       at + strlen(nots[i]));

		buf_addf(out, "- %s\n", lie);
		add_lie(lies, lie);
		return true;
	}
	return false;
}

/* Letters change places and numbers change: what stands there is no fact any more. */
static void add_reworded(const struct fact *f, struct lies *lies, uint64_t *random, struct buf *out)
{
	if (f->class == FACT_CONSTRAINT && add_opposite(f->texts[0], lies, out))
		return;
	buf_adds(out, "- about ");
	for (const char *s = f->texts[0]; *s; s++) {
		if (*s >= '0' && *s <= '9')
			buf_addc(out, (char)('0' + golden_random(random) % 10));
		else if (*s == '_' || *s == '/' || *s == '.')
			buf_addc(out, '-');
		else
			buf_addc(out, *s);
	}
	buf_addc(out, '\n');
}

static void add_invention(const struct golden *g, struct lies *lies, uint64_t *random,
			  struct buf *out)
{
	bool chinese = !strcmp(g->language, "zh") && golden_random(random) % 2;
	const char *text =
		chinese ? inventions_chinese[golden_random(random) % ARRAY_SIZE(inventions_chinese)]
			: inventions[golden_random(random) % ARRAY_SIZE(inventions)];

	buf_addf(out, "%s\n", text);
	add_lie(lies, mem_strdup(text));
}

/* One fact as this one remembers it: right, reworded or not at all. */
static void add_remembered(enum summariser s, const struct fact *f, uint64_t *random,
			   struct lies *lies, struct buf *out)
{
	uint64_t third = s == SUMMARISER_LYING ? golden_random(random) % 3 : 0;

	if (third == 0)
		add_fact(f, out);
	else if (third == 1)
		add_reworded(f, lies, random, out);
}

static void add_section(enum summariser s, const struct golden *g, int round, size_t section,
			uint64_t *random, struct lies *lies, struct buf *out)
{
	for (size_t i = 0; i < g->n_facts; i++) {
		const struct fact *f = &g->facts[i];

		if (f->at <= round && classes_of[section] & 1u << f->class)
			add_remembered(s, f, random, lies, out);
	}
	if (s == SUMMARISER_LYING && golden_random(random) % 2)
		add_invention(g, lies, random, out);
}

void summarise(enum summariser s, const struct golden *g, int round, uint64_t *random,
	       struct lies *lies, struct buf *out)
{
	buf_adds(out, "<analysis>\nI go through it in order.\n</analysis>\n<summary>\n");
	for (size_t i = 0; i < ARRAY_SIZE(titles); i++) {
		buf_addf(out, "%zu. %s:\n", i + 1, titles[i]);
		if (s == SUMMARISER_LAZY)
			buf_adds(out, i ? "none\n" : "The work goes on as before.\n");
		else
			add_section(s, g, round, i, random, lies, out);
	}
	buf_adds(out, "</summary>\n");
}

/* ---- notes ---- */

static const struct {
	const char *title;
	unsigned classes;
} note_sections[] = {
	{"current state", 1u << FACT_NEXT},
	{"task specification", 1u << FACT_GOAL | 1u << FACT_CONSTRAINT},
	{"files and functions", 1u << FACT_FILE | 1u << FACT_FUNCTION},
	{"workflow", 1u << FACT_COMMAND},
	{"errors and corrections", 1u << FACT_FAILURE | 1u << FACT_REJECTED},
	{"learnings", 1u << FACT_DECISION},
	{"results", 1u << FACT_IDENTIFIER},
};

static bool is_shown(const struct fact *f, const char *body, size_t n)
{
	for (size_t i = 0; i < f->n; i++)
		if (!golden_holds(body, n, f->texts[i]))
			return false;
	return true;
}

static void add_notes(enum summariser s, const struct golden *g, const char *body, size_t n,
		      unsigned classes, uint64_t *random, struct lies *lies, struct buf *out)
{
	for (size_t i = 0; i < g->n_facts; i++)
		if (classes & 1u << g->facts[i].class && is_shown(&g->facts[i], body, n))
			add_remembered(s, &g->facts[i], random, lies, out);
	if (s == SUMMARISER_LYING && golden_random(random) % 2)
		add_invention(g, lies, random, out);
}

void take_notes(enum summariser s, const struct golden *g, const char *body, size_t n,
		uint64_t *random, struct lies *lies, struct buf *out)
{
	if (s == SUMMARISER_LAZY) {
		buf_adds(out, "<section name=\"current state\">\nThe work goes on.\n</section>\n");
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(note_sections); i++) {
		AUTO_BUF struct buf text = BUF_INIT;

		add_notes(s, g, body, n, note_sections[i].classes, random, lies, &text);
		if (text.len)
			buf_addf(out, "<section name=\"%s\">\n%s</section>\n",
				 note_sections[i].title, buf_str(&text));
	}
}
