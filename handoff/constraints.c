/*
 * constraints.c - finds the constraints of a message: sentences in, spans out.
 *
 * Quoted words and `code` are blanked out before the rules look, since "never use goto" within
 * quotation marks is somebody else's sentence; unless nothing else is left, or the speaker says that
 * it is the rule. A question is none, unless it asks the agent to do so, or is only a tag ("ok?").
 */
#include "handoff/constraints.h"

#include <ctype.h>

#include "handoff/sentences.h"
#include "base/buf.h"
#include "base/memory.h"
#include "base/text.h"

/* ---- one sentence ---- */

static const char *const quotes[][2] = {{"`", "`"},   {"\"", "\""}, {"“", "”"},
					{"「", "」"}, {"『", "』"}, {"‘", "’"}};

/* The speaker makes quoted words his own. */
static const char *const adopting[] = {
	"follow", "obey", "rule", "observe", "respect", "comply", "stick", "policy", "constraint",
	"遵守",	  "遵循", "规则", "規則",    "按照",	"规定",	  "规范",  "要求",   "注意"};

static size_t quote_len(const char *p, size_t left)
{
	for (size_t i = 0; i < ARRAY_SIZE(quotes); i++) {
		size_t open = strlen(quotes[i][0]);
		const char *close;

		if (left <= open || memcmp(p, quotes[i][0], open) != 0)
			continue;
		close = memmem(p + open, left - open, quotes[i][1], strlen(quotes[i][1]));
		if (close)
			return (size_t)(close - p) + strlen(quotes[i][1]);
	}
	return 0;
}

/* ’ is an apostrophe within a word: it must not look like the end of a quotation. */
static void add_plain(struct buf *out, const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (n - i >= 3 && !memcmp(s + i, "’", 3)) {
			buf_addc(out, '\'');
			i += 2;
		} else {
			buf_addc(out, (char)tolower((unsigned char)s[i]));
		}
	}
}

static bool has_letters(const struct buf *b)
{
	for (size_t i = 0; i < b->len; i++)
		if (isalpha((unsigned char)b->data[i]) || (unsigned char)b->data[i] >= 0x80)
			return true;
	return false;
}

static bool contains_any(const struct buf *text, const char *const *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (memmem(buf_str(text), text->len, words[i], strlen(words[i])))
			return true;
	return false;
}

static void make_bare(const char *s, size_t n, struct buf *out)
{
	AUTO_BUF struct buf all = BUF_INIT;

	add_plain(&all, s, n);
	for (size_t i = 0; i < n;) {
		size_t len = quote_len(s + i, n - i);

		if (len)
			buf_adds(out, " it ");
		else
			add_plain(out, s + i,
				  len = 1 + (n - i >= 3 && !memcmp(s + i, "’", 3) ? 2 : 0));
		i += len;
	}
	AUTO_BUF struct buf rest = BUF_INIT;
	for (size_t i = 0; i + 4 <= out->len; i++)
		if (!memcmp(out->data + i, " it ", 4))
			i += 3;
		else
			buf_addc(&rest, out->data[i]);
	if (contains_any(&all, adopting, ARRAY_SIZE(adopting)) || !has_letters(&rest)) {
		buf_clear(out);
		buf_add(out, all.data, all.len);
	}
}

static void trim_end(const char *s, size_t *n)
{
	while (*n && (isspace((unsigned char)s[*n - 1]) || strchr(")\"'*_", s[*n - 1])))
		(*n)--;
}

static bool ends(const char *s, size_t n, const char *suffix)
{
	size_t k = strlen(suffix);

	return n >= k && !memcmp(s + n - k, suffix, k);
}

/* "..., ok?" asks for assent, not for an answer: cuts it off. */
static bool drop_tag(const char *s, size_t *n)
{
	static const char *const tags[] = {
		", ok?",	", okay?",    ", right?",    ", please?",    ", alright?",
		", all right?", ", yes?",     ", will you?", ", would you?", "，好吗？",
		"，行吗？",	"，可以吗？", "，好吧？",    "，好不好？",   "，行不行？",
		"，明白吗？",	"，懂吗？",   "，好嗎？",    "，可以嗎？"};

	for (size_t i = 0; i < ARRAY_SIZE(tags); i++)
		if (ends(s, *n, tags[i])) {
			*n -= strlen(tags[i]);
			return true;
		}
	return false;
}

/* A question that is a polite order. */
static bool is_request(const struct buf *bare)
{
	static const char *const asks[] = {"can you",
					   "could you",
					   "would you",
					   "will you",
					   "please",
					   "can we",
					   "could we",
					   "why don't we",
					   "how about",
					   "what about",
					   "would you mind",
					   "能不能",
					   "可不可以",
					   "可否",
					   "能否",
					   "请",
					   "請",
					   "可以不",
					   "麻烦"};

	return contains_any(bare, asks, ARRAY_SIZE(asks)) &&
	       !memmem(buf_str(bare), bare->len, "explain", 7) &&
	       !memmem(buf_str(bare), bare->len, "解释", 6) &&
	       !memmem(buf_str(bare), bare->len, "tell me", 7);
}

static bool is_question(const struct buf *bare)
{
	static const char *const chinese[] = {"为什么", "為什麼", "怎么", "怎麼", "怎样",  "吗",
					      "嗎",	"呢",	  "什么", "什麼", "是不是"};
	size_t n = bare->len;
	bool mark;

	trim_end(buf_str(bare), &n);
	mark = ends(buf_str(bare), n, "?") || ends(buf_str(bare), n, "？");
	if (mark)
		return true;
	/* Without the mark only where the question word is at the end. */
	while (n && !isalnum((unsigned char)bare->data[n - 1]) &&
	       (unsigned char)bare->data[n - 1] < 0x80)
		n--;
	if (ends(buf_str(bare), n, "。"))
		n -= 3;
	for (size_t i = 0; i < ARRAY_SIZE(chinese); i++)
		if (ends(buf_str(bare), n, chinese[i]))
			return true;
	return false;
}

static enum constraint_level level_of(const struct buf *bare)
{
	const char *s = buf_str(bare);
	bool unclear;

	if (constraint_in_english(s, bare->len) || constraint_in_chinese(s, bare->len))
		return CONSTRAINT_CLEAR;
	if (constraint_is_chinese(s, bare->len))
		unclear = constraint_unclear_chinese(s, bare->len);
	else
		unclear = constraint_unclear_english(s, bare->len);
	return unclear ? CONSTRAINT_UNCLEAR : CONSTRAINT_NONE;
}

enum constraint_level constraint_level(const char *sentence, size_t n)
{
	AUTO_BUF struct buf bare = BUF_INIT;
	size_t len;

	make_bare(sentence, n, &bare);
	len = bare.len;
	trim_end(buf_str(&bare), &len);
	buf_truncate(&bare, len);
	if (drop_tag(buf_str(&bare), &len))
		buf_truncate(&bare, len);
	else if (is_question(&bare) && !is_request(&bare))
		return CONSTRAINT_NONE;
	return level_of(&bare);
}

/* ---- a message ---- */

static bool is_lead(const char *text, const struct sentence *s)
{
	return ends(text + s->at, s->n, ":") || ends(text + s->at, s->n, "：") ||
	       ends(text + s->at, s->n, ":**") || ends(text + s->at, s->n, "：**");
}

/* "Title: only a word" in a heading is a lead too: what follows it belongs to it. */
static bool is_heading(const char *text, const struct sentence *s)
{
	return s->n && text[s->at] == '#';
}

/* Sentences that a marked lead at `i` takes with it: the list after it with what its items go on
 * with, or the one block or the quoted lines. Returns the index behind them. */
static size_t lead_end(const struct sentences *s, size_t i)
{
	size_t k = i + 1;
	enum sentence_kind kind;

	if (k >= s->n)
		return k;
	kind = s->list[k].kind;
	if (kind == SENTENCE_CODE)
		return k + 1;
	if (kind == SENTENCE_PLAIN)
		return s->list[k].follows ? k + 1 : k;
	while (k < s->n && (s->list[k].kind == kind ||
			    (s->list[k].kind == SENTENCE_PLAIN && s->list[k].follows)))
		k++;
	return k;
}

static void push(struct constraints *c, const struct sentences *s, size_t from, size_t to)
{
	size_t at = s->list[from].at, end = s->list[to - 1].at + s->list[to - 1].n;

	MEM_GROW(c->list, c->cap, c->n + 1);
	c->list[c->n++] = (struct text_span){.at = at, .n = end - at};
}

/* The sentence at `i` with its pieces, as one: a rule must not be parted from its exception. */
static size_t whole_end(const struct sentences *s, size_t i)
{
	size_t k = i + 1;

	while (k < s->n && s->list[k].piece)
		k++;
	return k;
}

static enum constraint_level highest(const char *text, const struct sentences *s, size_t from,
				     size_t to)
{
	enum constraint_level level = CONSTRAINT_NONE;

	for (size_t i = from; i < to; i++)
		if (s->list[i].kind != SENTENCE_QUOTE && s->list[i].kind != SENTENCE_CODE)
			level = MAX(level, constraint_level(text + s->list[i].at, s->list[i].n));
	return level;
}

/* Where the constraint ends that begins with the sentences from `i` to `end`; `i` if there is none.
 * "The log:" is unclear and says nothing alone: it counts with a list only. */
static size_t constraint_end(const char *text, const struct sentences *s, size_t i, size_t end,
			     enum constraint_level least)
{
	enum constraint_level level = highest(text, s, i, end);
	bool lead = is_lead(text, &s->list[end - 1]) || is_heading(text, &s->list[i]);

	if (level < least)
		return i;
	if (!lead)
		return end;
	if (level == CONSTRAINT_UNCLEAR && (end == s->n || s->list[end].kind != SENTENCE_ITEM))
		return i;
	return lead_end(s, end - 1);
}

void constraints_find(const char *text, size_t n, struct constraints *ret)
{
	enum constraint_level least =
		n > CONSTRAINT_TYPED_MAX ? CONSTRAINT_CLEAR : CONSTRAINT_UNCLEAR;
	struct sentences s;

	*ret = (struct constraints){.list = NULL};
	sentences_split(text, n, &s);
	for (size_t i = 0; i < s.n;) {
		size_t next = whole_end(&s, i), end = constraint_end(text, &s, i, next, least);

		if (end > i) {
			push(ret, &s, i, end);
			next = end;
		}
		i = next;
	}
	sentences_release(&s);
}

void constraints_release(struct constraints *constraints)
{
	free(constraints->list);
	*constraints = (struct constraints){.list = NULL};
}
