/*
 * output.c - findings as Markdown, JSON and SARIF 2.1.0. Pure; runs in the parent.
 *
 * All text in them comes from models and from the names of files, so none of it may become markup
 * (I12). What nobody reviewed stands in each of the three beside what was found: a review that lost
 * a part must not look like one that found nothing.
 */
#include "orchestrator/review/review.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "config.h"
#include "orchestrator/review/markdown.h"

static const char *verdict_name(enum verdict v)
{
	static const char *const names[] = {"not verified", "confirmed", "refuted", "uncertain"};

	return (size_t)v < ARRAY_SIZE(names) ? names[v] : "?";
}

/* ---- Markdown ---- */

/* Claim, evidence, suggestion, and who says so: a reader can judge without the files. */
static void add_finding(struct buf *out, const struct finding *f)
{
	buf_addf(out, "### %d. %s: ", f->id, severity_name(f->severity));
	markdown_word(out, f->file);
	buf_addf(out, ":%lld (", (long long)f->line);
	markdown_word(out, f->category);
	buf_adds(out, ")\n\n");
	markdown_text(out, f->claim);
	buf_adds(out, "\n\n");
	if (*f->evidence)
		markdown_fenced(out, f->evidence);
	if (*f->suggestion) {
		buf_adds(out, "\nSuggestion: ");
		markdown_text(out, f->suggestion);
		buf_addc(out, '\n');
	}
	buf_addf(out, "\nFound by %s; %s", f->agent, verdict_name(f->verdict));
	if (f->verifier)
		buf_addf(out, " by %s", f->verifier);
	if (f->verdict_reason && *f->verdict_reason) {
		buf_adds(out, ": ");
		markdown_text(out, f->verdict_reason);
	}
	buf_adds(out, "\n\n");
}

static void add_list(struct buf *out, const char *title, char *const *list, size_t n)
{
	if (n == 0)
		return;
	buf_addf(out, "## %s\n\n", title);
	for (size_t i = 0; i < n; i++) {
		buf_adds(out, "- ");
		markdown_word(out, list[i]);
		buf_addc(out, '\n');
	}
	buf_addc(out, '\n');
}

static size_t count_verdict(const struct findings *f, enum verdict v)
{
	size_t n = 0;

	for (size_t i = 0; i < f->count; i++)
		n += f->list[i].verdict == v;
	return n;
}

/* Refuted findings stay in the report, apart: a verifier can be wrong too. */
void findings_markdown(const struct findings *f, const struct review_summary *s, struct buf *out)
{
	size_t refuted = count_verdict(f, VERDICT_REFUTED);

	/* What failed before anybody looked has no counts: zero findings would read as a result. */
	if (s->reviewers == 0 && s->failure) {
		buf_adds(out, "Nothing of ");
		markdown_word(out, s->title);
		buf_adds(out, " was reviewed.\n\n");
		return;
	}
	buf_adds(out, "Review of ");
	markdown_word(out, s->title);
	size_t standing = f->count - refuted;
	buf_addf(out, ": %zu finding%s, %zu of %zu refuted; %zu reviewer%s, %zu verifier%s.\n\n",
		 standing, standing == 1 ? "" : "s", refuted, f->count, s->reviewers,
		 s->reviewers == 1 ? "" : "s", s->verifiers, s->verifiers == 1 ? "" : "s");
	if (s->reviewers == 0 && !s->failure)
		buf_adds(out, "There was nothing to review: no changed lines.\n\n");
	add_list(out, "Not reviewed", s->lost, s->n_lost);
	if (f->count > refuted)
		buf_adds(out, "## Findings\n\n");
	for (size_t i = 0; i < f->count; i++) {
		if (f->list[i].verdict != VERDICT_REFUTED)
			add_finding(out, &f->list[i]);
	}
	if (refuted)
		buf_adds(out, "## Refuted\n\n");
	for (size_t i = 0; i < f->count; i++) {
		if (f->list[i].verdict == VERDICT_REFUTED)
			add_finding(out, &f->list[i]);
	}
	add_list(out, "Left out", s->skipped, s->n_skipped);
	add_list(out, "Notes", f->notes, f->n_notes);
}

/* ---- JSON ---- */

/* Absent texts are left out; the file's name stands as it is, JSON can hold it. */
static struct json_object *finding_json(const struct finding *f)
{
	struct json_object *doc = json_object_new_object();

	json_set_i64(doc, "id", f->id);
	json_set_str(doc, "file", f->file);
	json_set_i64(doc, "line", f->line);
	json_set_str(doc, "severity", severity_name(f->severity));
	json_set_str(doc, "category", f->category);
	json_set_str(doc, "claim", f->claim);
	json_set_str(doc, "evidence", f->evidence);
	json_set_str(doc, "suggestion", f->suggestion);
	json_set_str(doc, "found_by", f->agent);
	json_set_str(doc, "verdict", verdict_name(f->verdict));
	json_set_str(doc, "verdict_reason", f->verdict_reason);
	json_set_str(doc, "verified_by", f->verifier);
	return doc;
}

static struct json_object *string_list(char *const *list, size_t n)
{
	struct json_object *array = json_object_new_array();

	for (size_t i = 0; i < n; i++)
		json_object_array_add(array, json_object_new_string(list[i]));
	return array;
}

struct json_object *findings_json(const struct findings *f, const struct review_summary *s)
{
	struct json_object *doc = json_object_new_object();
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < f->count; i++)
		json_object_array_add(list, finding_json(&f->list[i]));
	json_set_str(doc, "title", s->title);
	json_set_i64(doc, "reviewers", (int64_t)s->reviewers);
	json_set_i64(doc, "verifiers", (int64_t)s->verifiers);
	json_set(doc, "findings", list);
	json_set(doc, "not_reviewed", string_list(s->lost, s->n_lost));
	json_set(doc, "left_out", string_list(s->skipped, s->n_skipped));
	json_set(doc, "notes", string_list(f->notes, f->n_notes));
	return doc;
}

/* ---- SARIF ---- */

/* SARIF knows three levels; our own severity goes into the properties. */
static const char *sarif_level(enum severity s)
{
	return s >= SEVERITY_HIGH ? "error" : s == SEVERITY_MEDIUM ? "warning" : "note";
}

/* A relative path as a URI reference: everything but unreserved characters and '/' percent-encoded.
 */
static char *sarif_uri(const char *path)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/";
	struct buf out = BUF_INIT;

	for (; *path; path++) {
		if (strchr(plain, *path))
			buf_addc(&out, *path);
		else
			buf_addf(&out, "%%%02X", (unsigned char)*path);
	}
	return buf_take(&out);
}

/* Rule ids are stable words made of the category. */
static char *sarif_rule(const char *category)
{
	struct buf out = BUF_INIT;

	for (; *category && out.len < 60; category++) {
		char c = *category;
		bool word = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
		if (c >= 'A' && c <= 'Z')
			buf_addc(&out, (char)(c - 'A' + 'a'));
		else if (word)
			buf_addc(&out, c);
		else if (out.len > 0 && out.data[out.len - 1] != '-')
			buf_addc(&out, '-');
	}
	if (out.len > 0 && out.data[out.len - 1] == '-')
		buf_truncate(&out, out.len - 1);
	if (out.len == 0)
		buf_adds(&out, "defect");
	return buf_take(&out);
}

/* A message's own syntax (SARIF 3.11): links in brackets, placeholders in braces. Neither is meant.
 */
static struct json_object *message_object(const char *text)
{
	AUTO_BUF struct buf out = BUF_INIT;
	struct json_object *doc = json_object_new_object();

	for (; *text; text++) {
		if (strchr("\\[]", *text))
			buf_addc(&out, '\\');
		if (strchr("{}", *text))
			buf_addc(&out, *text);
		buf_addc(&out, *text);
	}
	json_set_str(doc, "text", buf_str(&out));
	return doc;
}

static struct json_object *text_object(const char *text)
{
	struct json_object *doc = json_object_new_object();

	json_set_str(doc, "text", text);
	return doc;
}

/* The base is the root of the sources, wherever the reader has them. */
static struct json_object *sarif_location(const struct finding *f)
{
	struct json_object *location = json_object_new_object();
	struct json_object *physical = json_object_new_object();
	struct json_object *artifact = json_object_new_object();
	AUTO_FREE char *uri = sarif_uri(f->file);

	json_set_str(artifact, "uri", uri);
	json_set_str(artifact, "uriBaseId", "SRCROOT");
	json_set(physical, "artifactLocation", artifact);
	if (f->line >= 1) { /* a deleted file has no lines on the new side */
		struct json_object *region = json_object_new_object();
		json_set_i64(region, "startLine", f->line);
		json_set(physical, "region", region);
	}
	json_set(location, "physicalLocation", physical);
	return location;
}

/* A message may not be empty: viewers show nothing else. */
static struct json_object *sarif_result(const struct finding *f, const char *rule)
{
	struct json_object *doc = json_object_new_object();
	struct json_object *locations = json_object_new_array();
	struct json_object *properties = json_object_new_object();
	AUTO_FREE char *text =
		mem_printf("%s%s%s", f->claim, *f->evidence ? "\n\n" : "", f->evidence);

	json_set_str(doc, "ruleId", rule);
	json_set_str(doc, "level", sarif_level(f->severity));
	json_set(doc, "message", message_object(*text ? text : "defect"));
	json_object_array_add(locations, sarif_location(f));
	json_set(doc, "locations", locations);
	json_set_str(properties, "severity", severity_name(f->severity));
	json_set_str(properties, "verdict", verdict_name(f->verdict));
	json_set_str(properties, "suggestion", f->suggestion);
	json_set(doc, "properties", properties);
	return doc;
}

/* Each rule once (the schema wants unique items); the first category's words describe it. */
static void add_rule(struct json_object *rules, const char *id, const char *category)
{
	for (size_t i = 0; i < json_len(rules); i++) {
		if (strcmp(json_str(json_at(rules, i), "id", ""), id) == 0)
			return;
	}
	struct json_object *rule = json_object_new_object();
	json_set_str(rule, "id", id);
	json_set(rule, "shortDescription", text_object(*category ? category : id));
	json_object_array_add(rules, rule);
}

/* What nobody reviewed is told, so that an empty list of results is not taken for a clean bill. */
static void add_notification(struct json_object *notifications, const char *level, const char *text)
{
	struct json_object *notification = json_object_new_object();

	json_set_str(notification, "level", level);
	json_set(notification, "message", message_object(text));
	json_object_array_add(notifications, notification);
}

static struct json_object *sarif_invocations(const struct review_summary *s)
{
	struct json_object *list = json_object_new_array();
	struct json_object *invocation = json_object_new_object();
	struct json_object *notifications = json_object_new_array();

	if (s->failure)
		add_notification(notifications, "error", s->failure);
	for (size_t i = 0; i < s->n_lost; i++)
		add_notification(notifications, "error", s->lost[i]);
	for (size_t i = 0; i < s->n_skipped; i++)
		add_notification(notifications, "note", s->skipped[i]);
	json_set_bool(invocation, "executionSuccessful", s->n_lost == 0 && !s->failure);
	json_set(invocation, "toolExecutionNotifications", notifications);
	json_object_array_add(list, invocation);
	return list;
}

static struct json_object *sarif_tool(struct json_object *rules)
{
	struct json_object *tool = json_object_new_object();
	struct json_object *driver = json_object_new_object();

	json_set_str(driver, "name", "baton");
	json_set_str(driver, "version", BATON_VERSION);
	json_set(driver, "rules", rules);
	json_set(tool, "driver", driver);
	return tool;
}

static struct json_object *sarif_run(const struct findings *f, const struct review_summary *s)
{
	struct json_object *run = json_object_new_object();
	struct json_object *rules = json_object_new_array();
	struct json_object *results = json_object_new_array();
	struct json_object *automation = json_object_new_object();
	AUTO_FREE char *id = mem_printf("baton-review/%s", s->run ? s->run : "");

	for (size_t i = 0; i < f->count; i++) {
		AUTO_FREE char *rule = sarif_rule(f->list[i].category);
		if (f->list[i].verdict == VERDICT_REFUTED)
			continue;
		add_rule(rules, rule, f->list[i].category);
		json_object_array_add(results, sarif_result(&f->list[i], rule));
	}
	json_set_str(automation, "id", id);
	json_set(run, "tool", sarif_tool(rules));
	json_set(run, "automationDetails", automation);
	json_set(run, "invocations", sarif_invocations(s));
	json_set(run, "results", results);
	return run;
}

struct json_object *findings_sarif(const struct findings *f, const struct review_summary *s)
{
	struct json_object *doc = json_object_new_object();
	struct json_object *runs = json_object_new_array();

	json_object_array_add(runs, sarif_run(f, s));
	json_set_str(doc, "$schema",
		     "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/"
		     "sarif-schema-2.1.0.json");
	json_set_str(doc, "version", "2.1.0");
	json_set(doc, "runs", runs);
	return doc;
}
