/*
 * document_check.c - is a handoff present, concrete and true? See document_check.h (R4).
 *
 * One table row for each part says what a statement of it needs; the rest follows from the members that a statement has:
 * a commit is looked up, a user's sentence is compared, a command is asked for. What the caller cannot answer at all is
 * told once, and not for each statement.
 */
#include "handoff/document_check.h"

#include <ctype.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "handoff/document_covers.h"
#include "handoff/document_vague.h"

/* What each statement of a part has to have. */
#define NEED_TARGET   1u /* file, function, test or command */
#define NEED_SENSE    2u /* more than words that fit any task, unless the user said it */
#define NEED_STATE    4u /* verified, claimed or failed */
#define NEED_FILE     8u
#define NEED_COMMIT   16u
#define ASK_FILE      32u /* the file has to be there */
#define ASK_COMMAND   64u
#define ONLY_VERBATIM 128u /* no model's words */
#define NEED_REPEAT   256u /* how to see it again */

static const unsigned needs[HANDOFF_N_PARTS] = {
	[HANDOFF_GOAL] = NEED_SENSE,
	[HANDOFF_DONE_MEANS] = NEED_SENSE | ASK_COMMAND,
	[HANDOFF_FINISHED] = NEED_SENSE | NEED_STATE | ASK_COMMAND,
	[HANDOFF_POINT] = NEED_SENSE | NEED_TARGET | ASK_FILE | ASK_COMMAND,
	[HANDOFF_CONSTRAINTS] = ONLY_VERBATIM,
	[HANDOFF_RULED_OUT] = NEED_SENSE,
	[HANDOFF_FAILURES] = NEED_SENSE | NEED_REPEAT | ASK_FILE | ASK_COMMAND,
	[HANDOFF_FIRST_ACTION] = NEED_SENSE | NEED_TARGET | ASK_COMMAND,
	[HANDOFF_COMMITS] = NEED_COMMIT,
	[HANDOFF_TASKS] = NEED_SENSE,
	[HANDOFF_FILES] = NEED_FILE | ASK_FILE,
	[HANDOFF_DECISIONS] = NEED_SENSE,
	[HANDOFF_WORDS] = ONLY_VERBATIM,
};

enum question { ASK_COMMIT, ASK_HASH, ASK_SAID, ASK_RUN, ASK_RECENT, N_QUESTIONS };

struct check {
	const struct handoff *handoff;
	const struct handoff_truth *truth;
	struct handoff_findings *findings;
	bool told[N_QUESTIONS]; /* that nobody can answer it */
};

struct where {
	enum handoff_part_name part;
	size_t index;
};

static void find(struct check *c, struct where at, enum handoff_fault fault, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

static void find(struct check *c, struct where at, enum handoff_fault fault, const char *fmt, ...)
{
	struct handoff_findings *f = c->findings;
	struct buf text = BUF_INIT;
	va_list ap;

	va_start(ap, fmt);
	buf_addv(&text, fmt, ap);
	va_end(ap);
	MEM_GROW(f->list, f->cap, f->n + 1);
	f->list[f->n++] = (struct handoff_finding){
		.part = at.part, .fault = fault, .index = at.index, .text = buf_take(&text)};
	f->refusing += fault != HANDOFF_UNPROVED;
}

/* A question that this caller answers never. */
static void cannot_ask(struct check *c, struct where at, enum question question)
{
	static const char *const what[N_QUESTIONS] = {
		[ASK_COMMIT] = "commits were not looked up",
		[ASK_HASH] = "files were not looked up",
		[ASK_SAID] = "what the user said was not compared with the records",
		[ASK_RUN] = "tests and commands were not looked for",
		[ASK_RECENT] = "the last calls are not known",
	};

	if (!c->told[question])
		find(c, (struct where){at.part, SIZE_MAX}, HANDOFF_UNPROVED, "%s", what[question]);
	c->told[question] = true;
}

/* A line of it, for messages. */
static const char *shown(const char *text, struct buf *out)
{
	size_t n = strcspn(text, "\n");

	buf_clear(out);
	text_printable(out, text, text_floor(text, n, MIN(n, (size_t)80)), true);
	if (n > 80)
		buf_adds(out, "...");
	return buf_str(out);
}

/* ---- concrete ---- */

static bool blank(const char *text)
{
	return !text || text[strspn(text, " \t\r\n")] == '\0';
}

static bool has_target(const struct handoff_statement *s)
{
	const char *at = s->text, *name;
	size_t n;

	return !blank(s->file) || !blank(s->function) || !blank(s->test) || !blank(s->command) ||
	       vague_next_target(&at, &name, &n);
}

/* Something that a record can be found by. */
static bool has_evidence(const struct handoff_statement *s)
{
	return !blank(s->commit) || (!blank(s->command) && s->has_exit) || s->uid ||
	       !blank(s->hash) || !blank(s->id);
}

static void check_finished(struct check *c, struct where at, const struct handoff_statement *s)
{
	if (s->state != HANDOFF_VERIFIED && s->state != HANDOFF_CLAIMED &&
	    s->state != HANDOFF_FAILED)
		find(c, at, HANDOFF_VAGUE,
		     "say of finished work whether it is verified, claimed or failed");
	if (s->state == HANDOFF_VERIFIED && !has_evidence(s))
		find(c, at, HANDOFF_VAGUE,
		     "'verified' needs a record: a commit, a command with its exit code, a message "
		     "or a task");
	if (s->state == HANDOFF_VERIFIED && s->has_exit && s->exit_code != 0)
		find(c, at, HANDOFF_UNTRUE, "'verified', but its command ended with exit code %d",
		     s->exit_code);
}

static void check_failure(struct check *c, struct where at, const struct handoff_statement *s)
{
	if (blank(s->command) && blank(s->test) && blank(s->output) && blank(s->log))
		find(c, at, HANDOFF_VAGUE,
		     "say how the failure is seen again: a command, a test, its output or a log");
	if (s->has_exit && s->exit_code == 0)
		find(c, at, HANDOFF_UNTRUE, "exit code 0 is no failure");
}

/* "Run the test again" is enough where the test is named beside it; "continue as planned" is not. */
static bool names_what_to_run(const struct handoff_statement *s)
{
	return ((!blank(s->command) && !vague_command(s->command)) || !blank(s->test)) &&
	       !vague_evades(s->text);
}

static void check_concrete(struct check *c, struct where at, const struct handoff_statement *s)
{
	unsigned need = needs[at.part];

	if (blank(s->text))
		find(c, at, HANDOFF_VAGUE, "it says nothing");
	else if ((need & NEED_SENSE) && s->origin != HANDOFF_FROM_USER && vague_text(s->text) &&
		 !(at.part == HANDOFF_FIRST_ACTION && names_what_to_run(s)))
		find(c, at, HANDOFF_VAGUE, "'%s' fits any task; say what exactly", s->text);
	if ((need & NEED_TARGET) && !has_target(s))
		find(c, at, HANDOFF_VAGUE, "name a file, function, test or command");
	if ((need & (NEED_TARGET | NEED_REPEAT | NEED_STATE)) && s->command &&
	    vague_command(s->command))
		find(c, at, HANDOFF_VAGUE, "the command '%s' does nothing", s->command);
	if (s->has_exit && blank(s->command))
		find(c, at, HANDOFF_VAGUE, "an exit code needs the command that gave it");
	if ((need & NEED_FILE) && blank(s->file))
		find(c, at, HANDOFF_VAGUE, "name the file");
	if ((need & NEED_COMMIT) && blank(s->commit))
		find(c, at, HANDOFF_VAGUE, "give the id of the commit");
	if ((need & ONLY_VERBATIM) && s->origin == HANDOFF_FROM_MODEL)
		find(c, at, HANDOFF_UNTRUE, "these are no words of a model");
	if (need & NEED_STATE)
		check_finished(c, at, s);
	if (need & NEED_REPEAT)
		check_failure(c, at, s);
}

/* ---- true ---- */

static bool is_commit_id(const char *id)
{
	size_t n = strspn(id, "0123456789abcdef");

	return (n == 40 || n == 64) && id[n] == '\0';
}

static void ask_commit(struct check *c, struct where at, const char *name, const char *id)
{
	AUTO_BUF struct buf why = BUF_INIT;
	enum handoff_answer answer;

	if (!is_commit_id(id)) {
		find(c, at, HANDOFF_VAGUE, "%s '%s' is no full commit id", name, id);
		return;
	}
	if (!c->truth->commit) {
		cannot_ask(c, at, ASK_COMMIT);
		return;
	}
	answer = c->truth->commit(c->truth->arg, id, &why);
	if (answer == HANDOFF_NO)
		find(c, at, HANDOFF_UNTRUE, "%s %.12s %s", name, id,
		     why.len ? why.data : "is not on the branch");
	else if (answer == HANDOFF_UNKNOWN)
		find(c, at, HANDOFF_UNPROVED, "%s %.12s could not be looked up", name, id);
}

/* Outside the worktree there is nothing that a document could speak of. */
static bool path_leaves(const char *path)
{
	return *path == '/' || *path == '~' || strcmp(path, "..") == 0 ||
	       text_starts(path, "../") || strstr(path, "/../") || text_ends(path, "/..");
}

static void ask_deleted(struct check *c, struct where at, const struct handoff_statement *s)
{
	if (c->truth->file(c->truth->arg, s->file, NULL, NULL) == HANDOFF_YES)
		find(c, at, HANDOFF_UNTRUE, "'%s' is said to be deleted and is there", s->file);
}

static void ask_file(struct check *c, struct where at, const struct handoff_statement *s)
{
	AUTO_BUF struct buf why = BUF_INIT;
	enum handoff_answer answer;

	if (!s->file || text_starts(s->file, "results:"))
		return;
	if (path_leaves(s->file)) {
		find(c, at, HANDOFF_UNTRUE, "'%s' lies outside of the worktree", s->file);
		return;
	}
	if (!(needs[at.part] & ASK_FILE) && !s->hash)
		return;
	if (!c->truth->file) {
		cannot_ask(c, at, ASK_HASH);
		return;
	}
	if (s->state == HANDOFF_DELETED) {
		ask_deleted(c, at, s);
		return;
	}
	answer = c->truth->file(c->truth->arg, s->file, s->hash, &why);
	if (answer == HANDOFF_NO)
		find(c, at, HANDOFF_UNTRUE, "'%s' %s", s->file,
		     why.len ? why.data : "is not there");
	else if (answer == HANDOFF_UNKNOWN)
		find(c, at, HANDOFF_UNPROVED, "'%s' could not be looked up", s->file);
}

static void ask_said(struct check *c, struct where at, const struct handoff_statement *s)
{
	AUTO_BUF struct buf why = BUF_INIT;
	AUTO_BUF struct buf text = BUF_INIT;
	enum handoff_answer answer;

	if (s->origin != HANDOFF_FROM_USER)
		return;
	if (!c->truth->said) {
		cannot_ask(c, at, ASK_SAID);
		return;
	}
	answer = c->truth->said(c->truth->arg, s, &why);
	if (answer == HANDOFF_NO)
		find(c, at, HANDOFF_UNTRUE, "the user did not say '%s'%s%s", shown(s->text, &text),
		     why.len ? ": " : "", buf_str(&why));
	else if (answer == HANDOFF_UNKNOWN)
		cannot_ask(c, at, ASK_SAID);
}

static void ask_command(struct check *c, struct where at, const struct handoff_statement *s)
{
	AUTO_BUF struct buf why = BUF_INIT;
	const char *name = !blank(s->command) ? s->command : s->test;
	enum handoff_answer answer;

	if (!(needs[at.part] & ASK_COMMAND) || blank(name))
		return;
	if (!c->truth->command) {
		cannot_ask(c, at, ASK_RUN);
		return;
	}
	answer = c->truth->command(c->truth->arg, s, &why);
	if (answer == HANDOFF_NO)
		find(c, at, HANDOFF_UNTRUE, "'%s' %s", name, why.len ? why.data : "is not there");
	else if (answer == HANDOFF_UNKNOWN)
		find(c, at, HANDOFF_UNPROVED, "'%s' %s", name,
		     why.len ? why.data : "could not be looked for");
}

/* ---- the first action ---- */

static bool statement_has(const struct handoff_statement *s, const char *target, size_t n)
{
	size_t n_fields;
	const struct handoff_member *fields = handoff_fields(&n_fields);

	if (vague_stands_in(s->text, target, n))
		return true;
	for (size_t i = 0; i < n_fields; i++)
		if (vague_stands_in(*handoff_member(s, &fields[i]), target, n))
			return true;
	return false;
}

static bool part_has(const struct handoff *handoff, enum handoff_part_name part, bool open_only,
		     const char *target, size_t n)
{
	const struct handoff_part *list = &handoff->parts[part];

	for (size_t i = 0; i < list->n; i++)
		if ((!open_only || list->list[i].state == HANDOFF_OPEN) &&
		    statement_has(&list->list[i], target, n))
			return true;
	return false;
}

static enum handoff_answer stands(struct check *c, const char *target, size_t n)
{
	AUTO_FREE char *name = mem_strndup(target, n);

	if (blank(name))
		return HANDOFF_NO;
	if (part_has(c->handoff, HANDOFF_FAILURES, false, target, n) ||
	    part_has(c->handoff, HANDOFF_TASKS, true, target, n))
		return HANDOFF_YES;
	return c->truth->recent ? c->truth->recent(c->truth->arg, name) : HANDOFF_UNKNOWN;
}

/* The best answer of all that it names: it needs one foot on known ground. */
static void check_first_action(struct check *c, struct where at, const struct handoff_statement *s)
{
	const char *const named[] = {s->file, s->function, s->test, s->command};
	enum handoff_answer best = HANDOFF_NO;
	const char *text = s->text, *name;
	size_t n;

	for (size_t i = 0; i < ARRAY_SIZE(named) && best != HANDOFF_YES; i++) {
		if (!named[i])
			continue;
		enum handoff_answer answer = stands(c, named[i], strlen(named[i]));
		best = answer == HANDOFF_NO ? best : answer;
	}
	while (best != HANDOFF_YES && vague_next_target(&text, &name, &n)) {
		enum handoff_answer answer = stands(c, name, n);
		best = answer == HANDOFF_NO ? best : answer;
	}
	if (best == HANDOFF_NO && has_target(s))
		find(c, at, HANDOFF_UNTRUE,
		     "what it names stands neither in the last 20 calls nor in the failures nor in "
		     "an open "
		     "task");
	else if (best == HANDOFF_UNKNOWN)
		cannot_ask(c, at, ASK_RECENT);
}

/* ---- present ---- */

static bool named_missing(const struct handoff *handoff, enum handoff_part_name part)
{
	const struct handoff_part *list = &handoff->parts[HANDOFF_MISSING];
	const char *key = handoff_part_key(part), *title = handoff_part_title(part);

	for (size_t i = 0; i < list->n; i++) {
		const struct handoff_statement *s = &list->list[i];
		if ((s->id && strcmp(s->id, key) == 0) || text_starts(s->text, key) ||
		    text_find_nocase(s->text, strlen(s->text), title))
			return true;
	}
	return false;
}

static void check_present(struct check *c)
{
	for (enum handoff_part_name part = 0; part < HANDOFF_N_PARTS; part++) {
		if (!(handoff_part_flags(part) & HANDOFF_REQUIRED) || c->handoff->parts[part].n ||
		    named_missing(c->handoff, part))
			continue;
		/* Records do not say what to do first. */
		if (c->handoff->facts_only && part == HANDOFF_FIRST_ACTION)
			continue;
		find(c, (struct where){part, SIZE_MAX}, HANDOFF_ABSENT,
		     "the part '%s' is missing, and 'missing' does not say so",
		     handoff_part_key(part));
	}
}

static void check_constraints(struct check *c)
{
	const char *text;
	size_t n = 0;

	for (size_t i = 0;
	     c->truth->constraint && (text = c->truth->constraint(c->truth->arg, i, &n)) != NULL;
	     i++) {
		AUTO_BUF struct buf clean = BUF_INIT;
		AUTO_BUF struct buf line = BUF_INIT;
		text_sanitize(&clean, text, n);
		if (!covers_verbatim(&c->handoff->parts[HANDOFF_CONSTRAINTS], buf_str(&clean),
				     clean.len))
			find(c, (struct where){HANDOFF_CONSTRAINTS, SIZE_MAX}, HANDOFF_ABSENT,
			     "a constraint of the user's is not there word for word: '%s'",
			     shown(buf_str(&clean), &line));
	}
}

/* ---- every message (R4) ---- */

static void check_messages(struct check *c)
{
	const struct where words = {HANDOFF_WORDS, SIZE_MAX};
	size_t allowed = covers_left_out(c->handoff), n = 0;
	const char *text;

	for (size_t i = 0;
	     c->truth->message && (text = c->truth->message(c->truth->arg, i, &n)) != NULL; i++) {
		AUTO_BUF struct buf line = BUF_INIT;

		if (covers_message(c->handoff, text, n))
			continue;
		if (allowed)
			allowed--;
		else
			find(c, words, HANDOFF_ABSENT,
			     "a message is not there word for word, and 'missing' does not say so: "
			     "'%s'",
			     shown(text, &line));
	}
}

/* ---- all of it ---- */

static void check_statement(struct check *c, struct where at, const struct handoff_statement *s)
{
	check_concrete(c, at, s);
	if (s->commit)
		ask_commit(c, at, "commit", s->commit);
	ask_file(c, at, s);
	ask_said(c, at, s);
	ask_command(c, at, s);
	if (at.part == HANDOFF_FIRST_ACTION)
		check_first_action(c, at, s);
}

bool handoff_check(const struct handoff *handoff, const struct handoff_truth *truth,
		   struct handoff_findings *ret)
{
	struct check c = {.handoff = handoff, .truth = truth, .findings = ret};
	struct where header = {HANDOFF_COMMITS, SIZE_MAX};

	*ret = (struct handoff_findings){.n = 0};
	check_present(&c);
	check_constraints(&c);
	check_messages(&c);
	if (handoff->base)
		ask_commit(&c, header, "base", handoff->base);
	if (handoff->head)
		ask_commit(&c, header, "head", handoff->head);
	for (enum handoff_part_name part = 0; part < HANDOFF_N_PARTS; part++)
		for (size_t i = 0; i < handoff->parts[part].n; i++)
			check_statement(&c, (struct where){part, i}, &handoff->parts[part].list[i]);
	return ret->refusing == 0;
}

void handoff_findings_release(struct handoff_findings *findings)
{
	for (size_t i = 0; i < findings->n; i++)
		free(findings->list[i].text);
	free(findings->list);
	*findings = (struct handoff_findings){.n = 0};
}

const char *handoff_fault_name(enum handoff_fault fault)
{
	static const char *const names[] = {"absent", "vague", "untrue", "unproved"};

	return names[fault];
}
