/*
 * cmd_handoff.c - `baton handoff check|show|edit|import`: handoff documents in a person's hands (R4, docs/handoff.md).
 *
 * For scripts: 0 it is good, 1 it is refused or cannot be read, 2 wrong usage or no such file.
 */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "orchestrator/command.h"
#include "orchestrator/handoff_edit.h"
#include "orchestrator/handoff_import.h"
#include "orchestrator/handoff_run.h"
#include "orchestrator/handoff_source.h"
#include "orchestrator/user_file.h"

/* ---- check ---- */

static struct json_object *finding_json(const struct handoff_finding *f)
{
	struct json_object *out = json_object_new_object();

	json_set_str(out, "part", handoff_part_key(f->part));
	if (f->index != SIZE_MAX)
		json_set_i64(out, "statement", (int64_t)f->index + 1);
	json_set_str(out, "fault", handoff_fault_name(f->fault));
	json_set_bool(out, "refuses", f->fault != HANDOFF_UNPROVED);
	json_set_str(out, "text", f->text);
	return out;
}

static void print_findings_json(const struct handoff_source *source, bool good,
				const struct handoff_findings *findings)
{
	AUTO_JSON struct json_object *out = json_object_new_object();
	struct json_object *list = json_object_new_array();

	json_set_str(out, "file", source->path);
	json_set_bool(out, "good", good);
	for (size_t i = 0; i < findings->n; i++)
		json_object_array_add(list, finding_json(&findings->list[i]));
	json_set(out, "findings", list);
	command_print_json(out);
}

/* The worst that was found of a part, in the order of what a reader has to know. */
static const char *verdict(const struct handoff *handoff, const struct handoff_findings *findings,
			   enum handoff_part_name part)
{
	bool unproved = false;

	for (size_t i = 0; i < findings->n; i++) {
		if (findings->list[i].part != part)
			continue;
		if (findings->list[i].fault != HANDOFF_UNPROVED)
			return handoff_fault_name(findings->list[i].fault);
		unproved = true;
	}
	if (!handoff->parts[part].n)
		return unproved ? "not proved" : NULL;
	return unproved ? "present, concrete, not proved" : "present, concrete, true";
}

static void print_findings(const struct handoff_source *source, bool good,
			   const struct handoff_findings *findings)
{
	for (enum handoff_part_name part = 0; part < HANDOFF_N_PARTS; part++) {
		const char *what = verdict(source->handoff, findings, part);
		if (what)
			command_say("%-13s %s\n", handoff_part_key(part), what);
		for (size_t i = 0; i < findings->n; i++) {
			const struct handoff_finding *f = &findings->list[i];
			if (f->part != part)
				continue;
			if (f->index == SIZE_MAX)
				command_say("  - %s\n", f->text);
			else
				command_say("  %zu. %s\n", f->index + 1, f->text);
		}
	}
	command_say("%s: %s\n", source->path, good ? "good" : "refused");
}

static int check(const struct settings *s, const struct handoff_source *source, struct err *err)
{
	struct git_session *git = NULL;
	AUTO_FREE char *commit = NULL;
	struct handoff_records *records = handoff_source_records(s, source->handoff, &git, &commit);
	struct handoff_findings findings;
	int rc = 0;

	if (settings_flag(s, OPT_RUN))
		rc = handoff_run(source->handoff, git, commit, settings_i64(s, OPT_SHELL_TIMEOUT),
				 records, err);
	if (rc == 0) {
		struct handoff_truth truth = handoff_records_truth(records);
		bool good = handoff_check(source->handoff, &truth, &findings);
		if (settings_flag(s, OPT_JSON))
			print_findings_json(source, good, &findings);
		else
			print_findings(source, good, &findings);
		handoff_findings_release(&findings);
		rc = good ? EXIT_OK : EXIT_FAILED;
	}
	handoff_records_free(records);
	git_session_close(git);
	return rc;
}

/* ---- show ---- */

static int show(const struct settings *s, const struct handoff_source *source, struct err *err)
{
	AUTO_BUF struct buf text = BUF_INIT;

	if (settings_flag(s, OPT_JSON)) {
		AUTO_JSON struct json_object *json = handoff_to_json(source->handoff);
		command_print_json(json);
		return 0;
	}
	handoff_to_markdown(source->handoff, &text);
	command_say("%s", buf_str(&text));
	return 0;
}

/* ---- import ---- */

static int import(const struct settings *s, struct err *err)
{
	struct handoff *handoff = NULL;
	struct import_counts counts;
	AUTO_BUF struct buf text = BUF_INIT;
	const char *output = settings_str(s, OPT_OUTPUT);
	int rc = 0;

	if (output && user_file_check("--output", output, err) < 0)
		return -1;
	if (handoff_import(settings_arg(s, 1), &handoff, &counts, err) < 0)
		return -1;
	if (settings_flag(s, OPT_JSON)) {
		AUTO_JSON struct json_object *json = handoff_to_json(handoff);
		json_write_pretty(&text, json);
	} else {
		handoff_to_markdown(handoff, &text);
	}
	if (output)
		rc = user_file_write("--output", output, &text, err);
	else if (settings_flag(s, OPT_JSON))
		command_write(text.data, text.len);
	else
		command_say("%s", buf_str(&text));
	fprintf(stderr, "baton: %lld records, %lld of unknown types, %lld unreadable lines\n",
		(long long)counts.records, (long long)counts.unknown, (long long)counts.bad);
	handoff_free(handoff);
	return rc;
}

/* ---- the command ---- */

static const struct {
	const char *name;
	int (*run)(const struct settings *s, const struct handoff_source *source, struct err *err);
} actions[] = {
	{"check", check},
	{"show", show},
	{"edit", handoff_edit},
};

static int act(const struct settings *s, struct err *err)
{
	const char *name = settings_n_args(s) > 0 ? settings_arg(s, 0) : "";
	struct handoff_source source;

	if (settings_flag(s, OPT_RUN) && strcmp(name, "check") != 0)
		return err_set(err, ERR_USAGE, "--run belongs to 'baton handoff check'");
	if (settings_str(s, OPT_OUTPUT) && strcmp(name, "import") != 0)
		return err_set(err, ERR_USAGE, "--output belongs to 'baton handoff import'");
	if (strcmp(name, "import") == 0 && settings_n_args(s) > 1)
		return import(s, err);
	for (size_t i = 0; i < ARRAY_SIZE(actions); i++) {
		if (strcmp(actions[i].name, name) != 0)
			continue;
		if (settings_n_args(s) < 2)
			return err_set(err, ERR_USAGE, "handoff %s needs a FILE or RUN/AGENT",
				       name);
		if (handoff_source_open(s, settings_arg(s, 1), &source, err) < 0)
			return -1;
		int rc = actions[i].run(s, &source, err);
		handoff_source_release(&source);
		return rc;
	}
	return err_set(err, ERR_USAGE,
		       "handoff check, show, edit or import, and a FILE or RUN/AGENT; see 'baton "
		       "handoff --help'");
}

int cmd_handoff(struct settings *s)
{
	struct err err = ERR_INIT;
	int rc = act(s, &err);

	return rc < 0 ? command_fail(&err) : rc;
}
