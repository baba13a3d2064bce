/*
 * findings.c - taking, checking and merging findings. Pure; runs in the parent.
 *
 * What a reviewer says is data (I12): a place outside its shard is dropped with a note, an unknown
 * severity becomes medium with a note, and texts are bounded and printable. Dropping is told and
 * never silent, since a dropped finding may have been the one that mattered.
 *
 * Merging is by rule, not by a model: the same input gives the same list, and it costs nothing. Two
 * reviewers rarely name the same line for one defect, hence the distance; and they name it in other
 * words, hence either the category or half of the words.
 */
#include "orchestrator/review/review.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "base/text.h"

#define NEAR_LINES 3
#define TEXT_MAX   4000

static const char *const severity_names[] = {"info", "low", "medium", "high", "critical"};

const char *severity_name(enum severity s)
{
	return (size_t)s < ARRAY_SIZE(severity_names) ? severity_names[s] : "?";
}

int severity_parse(const char *name, enum severity *ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(severity_names); i++) {
		if (strcasecmp(severity_names[i], name) == 0) {
			*ret = (enum severity)i;
			return 0;
		}
	}
	return -1;
}

static void add_note(struct findings *f, char *note)
{
	MEM_GROW(f->notes, f->cap_notes, f->n_notes + 1);
	f->notes[f->n_notes++] = note;
}

/* A bounded, printable copy. */
static char *clean(const char *text)
{
	AUTO_BUF struct buf printable = BUF_INIT;
	struct buf out = BUF_INIT;

	text_printable(&printable, text, strlen(text), false);
	text_clip(&out, buf_str(&printable), printable.len, TEXT_MAX, NULL);
	char *result = buf_take(&out);
	return result ? result : mem_strdup("");
}

/* The reviewer saw these lines and no others; what it says of the rest it did not check. */
static bool within_shard(const struct shard *shard, const char *file, int64_t line)
{
	for (size_t i = 0; i < shard->n_ranges; i++) {
		const struct shard_range *r = &shard->ranges[i];
		if (strcmp(r->file, file) == 0 && line >= r->first && line <= r->last)
			return true;
	}
	return false;
}

/* One entry of the list; anything but an object has no file and is dropped like a wrong place. */
static void take_one(struct findings *f, struct json_object *item, const struct shard *shard,
		     const char *agent)
{
	const char *file = json_str(item, "file", "");
	int64_t line = json_i64(item, "line", 0);
	const char *severity = json_str(item, "severity", "medium");
	struct finding finding = {.line = line, .severity = SEVERITY_MEDIUM};

	if (text_starts(file, "./"))
		file += 2;
	if (!within_shard(shard, file, line)) {
		AUTO_FREE char *shown = clean(file);
		add_note(f, mem_printf("%s: dropped a finding at %s:%lld, which is outside its "
				       "part of the "
				       "change",
				       agent, shown, (long long)line));
		return;
	}
	if (severity_parse(severity, &finding.severity) < 0) {
		AUTO_FREE char *shown = clean(severity);
		AUTO_FREE char *place = clean(file);
		add_note(f,
			 mem_printf("%s: unknown severity '%.40s' at %s:%lld was taken as medium",
				    agent, shown, place, (long long)line));
	}
	finding.file = mem_strdup(file);
	finding.category = clean(json_str(item, "category", "defect"));
	finding.claim = clean(json_str(item, "claim", ""));
	finding.evidence = clean(json_str(item, "evidence", ""));
	finding.suggestion = clean(json_str(item, "suggestion", ""));
	finding.agent = mem_strdup(agent);
	MEM_GROW(f->list, f->cap, f->count + 1);
	f->list[f->count++] = finding;
}

void findings_take(struct findings *f, struct json_object *report, const struct shard *shard,
		   const char *agent)
{
	struct json_object *list = json_arr(report, "findings");

	for (size_t i = 0; i < json_len(list); i++)
		take_one(f, json_at(list, i), shard, agent);
}

/* ---- merging ---- */

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || (unsigned char)c >= 0x80;
}

/* The next word of at least three bytes, folded to lower case into out. */
static bool next_word(const char **p, char *out, size_t size)
{
	for (;;) {
		size_t n = 0;
		while (**p && !is_word(**p))
			(*p)++;
		if (!**p)
			return false;
		for (; is_word(**p); (*p)++) {
			char c = **p;
			if (n + 1 < size)
				out[n++] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
		}
		out[n] = '\0';
		if (n >= 3)
			return true;
	}
}

/* Does text, up to end if that is given, hold the word? */
static bool has_word(const char *text, const char *end, const char *word)
{
	char other[64];

	while (next_word(&text, other, sizeof(other)) && (!end || text <= end)) {
		if (strcmp(other, word) == 0)
			return true;
	}
	return false;
}

/* Different words of a, and how many of them stand in b too. */
static size_t count_words(const char *a, const char *b, size_t *ret_common)
{
	const char *p = a, *before = a;
	char word[64];
	size_t words = 0, common = 0;

	while (next_word(&p, word, sizeof(word))) {
		if (!has_word(a, before, word)) {
			words++;
			common += has_word(b, NULL, word);
		}
		before = p;
	}
	*ret_common = common;
	return words;
}

/* At least half of the smaller set of words stands in the other. */
static bool claims_overlap(const char *a, const char *b)
{
	size_t common, common_b;
	size_t words_a = count_words(a, b, &common);
	size_t words_b = count_words(b, a, &common_b);
	size_t fewer = MIN(words_a, words_b);

	return fewer > 0 && 2 * common >= fewer;
}

static bool same_finding(const struct finding *a, const struct finding *b)
{
	int64_t gap = a->line > b->line ? a->line - b->line : b->line - a->line;

	return strcmp(a->file, b->file) == 0 && gap <= NEAR_LINES &&
	       (strcmp(a->category, b->category) == 0 || claims_overlap(a->claim, b->claim));
}

static void finding_free(struct finding *f)
{
	char *strings[] = {f->file,	  f->category, f->claim,	  f->evidence,
			   f->suggestion, f->agent,    f->verdict_reason, f->verifier};

	for (size_t i = 0; i < ARRAY_SIZE(strings); i++)
		free(strings[i]);
}

static void keep_longer(char **to, char **from)
{
	if (strlen(*from) > strlen(*to)) {
		char *swap = *to;
		*to = *from;
		*from = swap;
	}
}

/* Does "a3, a12" name a1? */
static bool names_agent(const char *list, const char *agent)
{
	size_t n = strlen(agent);

	while (*list) {
		size_t len = strcspn(list, ",");
		if (len == n && strncmp(list, agent, n) == 0)
			return true;
		list += len;
		list += strspn(list, ", ");
	}
	return false;
}

/* b goes into a. */
static void merge_into(struct finding *a, struct finding *b)
{
	if (b->severity > a->severity) {
		char *category = a->category;
		a->severity = b->severity;
		a->line = b->line;
		a->category = b->category;
		b->category = category;
	}
	keep_longer(&a->claim, &b->claim);
	keep_longer(&a->evidence, &b->evidence);
	keep_longer(&a->suggestion, &b->suggestion);
	if (!names_agent(a->agent, b->agent)) {
		char *both = mem_printf("%s, %s", a->agent, b->agent);
		free(a->agent);
		a->agent = both;
	}
	finding_free(b);
}

/* A total order, so that reports of equal findings are equal byte for byte. */
static int by_weight(const void *x, const void *y)
{
	const struct finding *a = x, *b = y;

	if (a->severity != b->severity)
		return a->severity > b->severity ? -1 : 1;
	int order = strcmp(a->file, b->file);
	if (order)
		return order;
	if (a->line != b->line)
		return a->line < b->line ? -1 : 1;
	return strcmp(a->claim, b->claim);
}

void findings_merge(struct findings *f)
{
	size_t kept = 0;

	for (size_t i = 0; i < f->count; i++) {
		size_t k = 0;
		while (k < kept && !same_finding(&f->list[k], &f->list[i]))
			k++;
		if (k < kept)
			merge_into(&f->list[k], &f->list[i]);
		else
			f->list[kept++] = f->list[i];
	}
	f->count = kept;
	if (kept > 1)
		qsort(f->list, kept, sizeof(*f->list), by_weight);
	for (size_t i = 0; i < kept; i++)
		f->list[i].id = (int)i + 1;
}

/* ---- verdicts ---- */

void finding_task(const struct finding *finding, struct buf *out)
{
	AUTO_JSON struct json_object *doc = json_object_new_object();

	json_set_str(doc, "file", finding->file);
	json_set_i64(doc, "line", finding->line);
	json_set_str(doc, "severity", severity_name(finding->severity));
	json_set_str(doc, "category", finding->category);
	json_set_str(doc, "claim", finding->claim);
	json_set_str(doc, "evidence", finding->evidence);
	buf_adds(out, "Try to refute this finding of a code review:\n\n");
	json_write_pretty(out, doc);
}

/* Anything but the two clear words leaves the finding standing, marked as uncertain. */
void finding_verdict(struct finding *finding, struct json_object *data, const char *verifier)
{
	const char *verdict = json_str(data, "verdict", "");

	finding->verdict = strcmp(verdict, "confirmed") == 0 ? VERDICT_CONFIRMED
			   : strcmp(verdict, "refuted") == 0 ? VERDICT_REFUTED
							     : VERDICT_UNCERTAIN;
	free(finding->verdict_reason);
	finding->verdict_reason = clean(json_str(data, "reason", ""));
	free(finding->verifier);
	finding->verifier = mem_strdup(verifier);
}

bool findings_reach(const struct findings *f, enum severity s)
{
	for (size_t i = 0; i < f->count; i++) {
		if (f->list[i].verdict != VERDICT_REFUTED && f->list[i].severity >= s)
			return true;
	}
	return false;
}

void findings_release(struct findings *f)
{
	for (size_t i = 0; i < f->count; i++)
		finding_free(&f->list[i]);
	for (size_t i = 0; i < f->n_notes; i++)
		free(f->notes[i]);
	free(f->list);
	free(f->notes);
	memset(f, 0, sizeof(*f));
}
