/*
 * recall.c - the tool recall: what left the window stays searchable (X4).
 *
 * Two operations. `search` gives passages with their round and call; `show` gives one round, or one call with
 * its result, by lines. What comes back is data of the past: a file that was read may be another one by now.
 * Both are bounded, so that looking something up never fills the window that was just cleared.
 */
#include "agent/tools/recall.h"

#include <inttypes.h>
#include <string.h>

#include "agent/tools/context.h"
#include "base/memory.h"
#include "base/text.h"

#define HITS_SHOWN  8
#define HITS_MOST   30
#define LINES_SHOWN 200
#define LINES_MOST  2000
#define LINE_SHOWN  1000  /* bytes of a line */
#define OUT_MAX	    16000 /* bytes of a result */

const char recall_description[] = "Searches what was said and done earlier in your own work, also "
				  "what has left this conversation "
				  "(of all rounds up to your present answer). `search` takes a "
				  "query: words (the best passages hold "
				  "most of them), or with regex true a regular expression; upper "
				  "and lower case are the same. Each "
				  "hit names its round and call. `show` gives a whole round, or "
				  "one call and its result, by lines. "
				  "Use it for a detail that a summary left out, such as an error "
				  "text or a reason; for files as they "
				  "are now use read.";

const char recall_schema[] =
	"{\"type\":\"object\",\"properties\":{"
	"\"operation\":{\"type\":\"string\",\"enum\":[\"search\",\"show\"]},"
	"\"query\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":1000,\"description\":\"for "
	"search\"},"
	"\"regex\":{\"type\":\"boolean\"},"
	"\"order\":{\"type\":\"string\",\"enum\":[\"best\",\"newest\"],\"description\":\"best by "
	"default\"},"
	"\"tool\":{\"type\":\"string\",\"description\":\"for search: only calls and results of "
	"this "
	"tool\"},"
	"\"round\":{\"type\":\"integer\",\"minimum\":0,\"description\":\"for show\"},"
	"\"call\":{\"type\":\"string\",\"description\":\"for show: only this call\"},"
	"\"generation\":{\"type\":\"integer\",\"minimum\":1,\"description\":\"where a hit names "
	"another one\"},"
	"\"offset\":{\"type\":\"integer\",\"minimum\":0,\"description\":\"search: hits to skip; "
	"show: "
	"first line, from 1\"},"
	"\"limit\":{\"type\":\"integer\",\"minimum\":1,\"description\":\"search: 8 hits, 30 at "
	"most; "
	"show: 200 lines, 2000 at most\"}},"
	"\"required\":[\"operation\"],\"additionalProperties\":false}";

static int check_call(void *arg, struct err *err)
{
	return tool_check(arg, err);
}

static void say_bad_lines(int64_t bad, struct buf *out)
{
	if (bad)
		buf_addf(out, "(%" PRId64 " damaged line%s of the history could not be read)\n",
			 bad, bad == 1 ? "" : "s");
}

/* ---- search ---- */

static void indent(const char *text, struct buf *out)
{
	for (const char *nl; *text; text = nl) {
		nl = strchr(text, '\n');
		nl = nl ? nl + 1 : text + strlen(text);
		buf_adds(out, "    ");
		buf_add(out, text, (size_t)(nl - text));
	}
	buf_addc(out, '\n');
}

static void say_hit(const struct recall_hit *h, size_t number, struct buf *out)
{
	buf_addf(out, "[%zu] generation %" PRId64 ", round %" PRId64 ", %s", number, h->generation,
		 h->round, h->where);
	if (h->lines > 1)
		buf_addf(out, ", line %zu of %zu", h->line, h->lines);
	if (h->alike)
		buf_addf(out, " (and %zu more like it)", h->alike);
	buf_addc(out, '\n');
	indent(h->excerpt, out);
}

static void say_hits(const struct recall_hits *hits, const struct recall_query *q, struct buf *out)
{
	size_t next = q->offset + hits->n;

	if (!hits->total)
		buf_adds(out, "nothing in the history matches\n");
	else if (!hits->n)
		buf_addf(out, "there are only %zu hits\n", hits->total);
	for (size_t i = 0; i < hits->n; i++) {
		say_hit(&hits->list[i], q->offset + i + 1, out);
		if (out->len < OUT_MAX || i + 1 == hits->n)
			continue;
		next = q->offset + i + 1;
		break;
	}
	if (hits->n && hits->total > next)
		buf_addf(out, "%zu more hits%s\n", hits->total - next,
			 next < RECALL_HITS_MAX ? "" : ": make the query narrower");
	if (hits->n && hits->total > next && next < RECALL_HITS_MAX)
		buf_addf(out, "(the next ones: offset %zu)\n", next);
}

static int search(struct tool_context *ctx, struct json_object *input, struct tool_result *ret,
		  struct err *err)
{
	struct recall_query q = {
		.folder = ctx->settings.generation_dir,
		.own = ctx->settings.generation,
		.text = json_str(input, "query", ""),
		.n = json_str_len(input, "query"),
		.regex = json_flag(input, "regex", false),
		.newest = !strcmp(json_str(input, "order", "best"), "newest"),
		.tool = json_str(input, "tool", NULL),
		.generation = json_i64(input, "generation", 0),
		.offset = (size_t)MIN(json_i64(input, "offset", 0), INT64_C(1000000)),
		.limit = (size_t)MIN(json_i64(input, "limit", HITS_SHOWN), (int64_t)HITS_MOST),
	};
	struct recall_hits hits = {.n = 0};
	struct err e = ERR_INIT;
	int rc;

	if (!q.n)
		return result_failf(ret, "`search` needs a query");
	rc = recall_search(&q, check_call, ctx, &hits, &e);
	if (rc == 0) {
		say_hits(&hits, &q, &ret->text);
		say_bad_lines(hits.bad_lines, &ret->text);
		result_summary(ret, "recall '%.60s' (%zu hits)", q.text, hits.total);
	}
	recall_hits_release(&hits);
	return rc < 0 ? result_end(ret, &e, err) : 0;
}

/* ---- show ---- */

struct show {
	struct tool_context *ctx;
	int64_t round;	  /* -1: by call alone */
	const char *call; /* NULL: the whole round */
	size_t first, limit;
	size_t line; /* so far */
	size_t next; /* the first line that is not shown; 0: none was left out */
	bool any;
	struct buf *out;
	bool failed;
	struct err err;
};

/* In a record of a message the round stands before all text, and no text can hold these bytes
 * unescaped. */
static bool want_round(const char *line, size_t n, int64_t round)
{
	static const char key[] = "\"round\":";
	const char *at = memmem(line, n, key, strlen(key));
	int64_t number = 0;

	if (!at)
		return false;
	for (at += strlen(key); at < line + n && *at >= '0' && *at <= '9' && number < INT32_MAX;
	     at++)
		number = number * 10 + (*at - '0');
	return number >= round; /* a later one ends the reading */
}

static bool want_line(const char *line, size_t n, void *arg)
{
	struct show *s = arg;

	if (tool_check(s->ctx, &s->err) < 0)
		s->failed = true;
	if (s->failed)
		return true;
	if (s->round >= 0)
		return want_round(line, n, s->round);
	return memmem(line, n, s->call, strlen(s->call)) != NULL;
}

static void add_line(struct show *s, const char *text, size_t n)
{
	size_t shown = n > LINE_SHOWN ? text_floor(text, n, LINE_SHOWN) : n;

	s->line++;
	if (s->line < s->first)
		return;
	if (s->line >= s->first + s->limit || s->out->len > OUT_MAX) {
		s->next = s->next ? s->next : s->line;
		return;
	}
	buf_addf(s->out, "%6zu\t", s->line);
	buf_add(s->out, text, shown);
	if (shown < n)
		buf_addf(s->out, " [%zu bytes cut]", n - shown);
	buf_addc(s->out, '\n');
}

static void add_lines(struct show *s, const char *text, size_t n)
{
	for (const char *end = text + n; text < end;) {
		const char *nl = memchr(text, '\n', (size_t)(end - text));
		size_t len = nl ? (size_t)(nl - text) : (size_t)(end - text);

		add_line(s, text, len);
		text += len + 1;
	}
}

static int on_passage(const struct recall_passage *p, void *arg)
{
	struct show *s = arg;
	AUTO_FREE char *title = NULL;

	if (s->failed)
		return -1;
	if (s->round >= 0 && p->round > s->round)
		return 1;
	if ((s->round >= 0 && p->round != s->round) ||
	    (s->call && (!p->call || strcmp(p->call, s->call) != 0)))
		return 0;
	s->any = true;
	title = p->tool ? mem_printf("== %s of %.60s, call %.80s%s ==",
				     strcmp(p->kind, "tool_call") ? "result" : "call", p->tool,
				     p->call, p->is_error ? " (error)" : "")
			: mem_printf("== text (%.20s) ==", p->origin);
	add_line(s, title, strlen(title));
	add_lines(s, p->text, p->n);
	return 0;
}

static int say_shown(const struct show *s, int64_t bad_lines, struct tool_result *ret)
{
	if (!s->any)
		return result_failf(ret, "the history has no such round or call");
	if (s->line < s->first)
		return result_failf(ret, "it has only %zu lines", s->line);
	if (s->next)
		buf_addf(&ret->text, "(%zu lines in all; go on with offset %zu)\n", s->line,
			 s->next);
	say_bad_lines(bad_lines, &ret->text);
	return 0;
}

static int show(struct tool_context *ctx, struct json_object *input, struct tool_result *ret,
		struct err *err)
{
	struct show s = {
		.ctx = ctx,
		.round = json_i64(input, "round", -1),
		.call = json_str(input, "call", NULL),
		.first = (size_t)MAX(json_i64(input, "offset", 1), INT64_C(1)),
		.limit = (size_t)MIN(json_i64(input, "limit", LINES_SHOWN), (int64_t)LINES_MOST),
		.out = &ret->text,
	};
	struct recall_source source = {
		.folder = ctx->settings.generation_dir,
		.own = ctx->settings.generation,
		.generation = json_i64(input, "generation", 0),
		.want = want_line,
		.on_passage = on_passage,
		.arg = &s,
	};
	struct err e = ERR_INIT;

	if (s.round < 0 && (!s.call || !*s.call))
		return result_failf(ret, "`show` needs a round or a call");
	if (s.round >= 0 && !source.generation)
		source.generation = ctx->settings.generation;
	if (recall_read(&source, &e) < 0)
		return result_end(ret, s.failed ? &s.err : &e, err);
	if (s.round >= 0)
		result_summary(ret, "recall round %" PRId64, s.round);
	else
		result_summary(ret, "recall call %.80s", s.call);
	return say_shown(&s, source.bad_lines, ret);
}

int recall_run(struct tool_context *ctx, const char *call_id, struct json_object *input,
	       struct tool_result *ret, struct err *err)
{
	ret->exit_code = -1;
	if (!ctx->settings.generation_dir)
		return result_failf(ret, "there is no history in this conversation");
	if (!strcmp(json_str(input, "operation", ""), "show"))
		return show(ctx, input, ret, err);
	return search(ctx, input, ret, err);
}
