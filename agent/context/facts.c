/*
 * facts.c - reads facts off calls and results.
 *
 * A command that only looks (cat, git log) is no fact: it can be had again and says nothing of the state
 * of the work; neither is its failure, which is mostly "no match". A failure stays until the same command
 * succeeds. Sentences are taken by what they say of themselves ("next: run ...", "rejected: ..."), in two languages;
 * one that is missed is no loss against a summary, one too many costs a line.
 */
#include "agent/context/facts.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "agent/context/about.h"
#include "handoff/sentences.h"
#include "agent/tools/output.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"

#define FILES_MAX     1000
#define COMMANDS_MAX  500
#define SAYINGS_MAX   60
#define COMMAND_BYTES 300
#define SAYING_BYTES  400
#define LINE_BYTES    200
#define ERRORS_SHOWN  6
#define TAIL_SHOWN    4

void facts_release(struct facts *facts)
{
	for (size_t i = 0; i < facts->n_files; i++)
		free(facts->files[i].path);
	for (size_t i = 0; i < facts->n_commands; i++) {
		free(facts->commands[i].command);
		free(facts->commands[i].failure);
	}
	for (size_t i = 0; i < facts->n_sayings; i++)
		free(facts->sayings[i].text);
	facts_release_names(facts);
	free(facts->files);
	free(facts->commands);
	free(facts->sayings);
	*facts = (struct facts){.files = NULL};
}

/* ---- files ---- */

/* The one that was touched last longest ago goes; changed files stay as long as read ones are there. */
static void drop_file(struct facts *facts)
{
	size_t worst = 0;

	for (size_t i = 1; i < facts->n_files; i++) {
		const struct fact_file *f = &facts->files[i], *w = &facts->files[worst];

		if (f->changed != w->changed ? w->changed : f->round < w->round)
			worst = i;
	}
	free(facts->files[worst].path);
	facts->files[worst] = facts->files[--facts->n_files];
}

static void take_file(struct facts *facts, const char *path, bool changed, int64_t round)
{
	for (size_t i = 0; i < facts->n_files; i++) {
		struct fact_file *f = &facts->files[i];

		if (strcmp(f->path, path) != 0)
			continue;
		f->changed |= changed;
		f->round = round;
		return;
	}
	if (facts->n_files >= FILES_MAX)
		drop_file(facts);
	MEM_GROW(facts->files, facts->cap_files, facts->n_files + 1);
	facts->files[facts->n_files++] =
		(struct fact_file){.path = mem_strdup(path), .changed = changed, .round = round};
}

/* ---- commands ---- */

static void add_line(struct buf *out, const char *line, size_t n)
{
	size_t keep = text_floor(line, n, MIN(n, (size_t)LINE_BYTES));

	buf_adds(out, "    ");
	buf_add(out, line, keep);
	buf_adds(out, keep < n ? " ...\n" : "\n");
}

static const char *line_end(const char *s, const char *end)
{
	const char *lf = memchr(s, '\n', (size_t)(end - s));

	return lf ? lf : end;
}

/* Where the last `lines` lines begin. */
static const char *tail_start(const char *s, size_t n, int lines)
{
	const char *at = s + n;

	while (at > s && (at == s + n || at[-1] != '\n' || --lines > 0))
		at--;
	return at;
}

/* The first lines that look like errors, and the last lines whatever they are. */
static char *failure_lines(const char *s, size_t n)
{
	struct buf out = BUF_INIT;
	int errors = 0;

	while (n && isspace((unsigned char)s[n - 1]))
		n--;
	const char *end = s + n, *tail = tail_start(s, n, TAIL_SHOWN);
	for (const char *line = s, *stop; line < end; line = stop + 1) {
		stop = line_end(line, end);
		bool error = line < tail && errors < ERRORS_SHOWN &&
			     output_is_error_line(line, (size_t)(stop - line));

		errors += error;
		if ((error || line >= tail) && stop > line)
			add_line(&out, line, (size_t)(stop - line));
	}
	return buf_take(&out);
}

void facts_add_failure(const struct block *result, struct buf *out)
{
	static const char mark[] = "\nIt failed:\n";
	AUTO_FREE char *lines = NULL;
	const char *said = strstr(result->text, mark);

	if (!result->is_error || about_kind(result->name) != ABOUT_RUN)
		return;
	if (!said)
		lines = failure_lines(result->text, result->text_len);
	buf_addf(out, "%s%s", mark, said ? said + strlen(mark) : lines);
}

static void drop_oldest_command(struct facts *facts)
{
	size_t worst = 0;

	for (size_t i = 1; i < facts->n_commands; i++) {
		const struct fact_command *c = &facts->commands[i], *w = &facts->commands[worst];

		if (!c->failure != !w->failure ? !!w->failure : c->round < w->round)
			worst = i;
	}
	free(facts->commands[worst].command);
	free(facts->commands[worst].failure);
	facts->commands[worst] = facts->commands[--facts->n_commands];
}

static struct fact_command *find_command(struct facts *facts, const char *command)
{
	for (size_t i = 0; i < facts->n_commands; i++)
		if (strcmp(facts->commands[i].command, command) == 0)
			return &facts->commands[i];
	if (facts->n_commands >= COMMANDS_MAX)
		drop_oldest_command(facts);
	MEM_GROW(facts->commands, facts->cap_commands, facts->n_commands + 1);
	facts->commands[facts->n_commands] = (struct fact_command){.command = mem_strdup(command)};
	return &facts->commands[facts->n_commands++];
}

static void take_command(struct facts *facts, const char *command, const struct block *result,
			 int64_t round)
{
	const char *text = result->text;
	int exit_code = output_exit_code(text, result->is_error);

	if (exit_code < 0 || about_only_looks(command))
		return;
	if (exit_code > 0) { /* the line that says so is no part of its output */
		text = line_end(text, text + result->text_len);
		text += *text == '\n';
	}
	struct fact_command *c = find_command(facts, command);
	c->exit_code = exit_code;
	c->times++;
	c->round = round;
	free(c->failure);
	c->failure = exit_code
			     ? failure_lines(text, result->text_len - (size_t)(text - result->text))
			     : NULL;
}

/* ---- calls with their results ---- */

static const struct block *find_call(const struct message *answer, const char *id)
{
	for (size_t i = 0; answer && i < answer->n_blocks; i++)
		if (answer->blocks[i].kind == BLOCK_TOOL_CALL &&
		    strcmp(answer->blocks[i].id, id) == 0)
			return &answer->blocks[i];
	return NULL;
}

static void take_change(struct facts *facts, const char *path, struct json_object *input,
			int64_t round)
{
	static const char *const members[] = {"new_string", "content"};

	take_file(facts, path, true, round);
	for (size_t i = 0; i < ARRAY_SIZE(members); i++)
		facts_take_written(facts, json_str(input, members[i], ""),
				   json_str_len(input, members[i]), round);
}

static void take_result(struct facts *facts, const struct block *result, int64_t round)
{
	const struct block *call = find_call(facts->answer, result->id);
	AUTO_JSON struct json_object *input = NULL;
	const char *path, *command;

	if (!call || call->partial || json_parse(call->text, call->text_len, &input, NULL) < 0)
		return;
	path = json_str(input, "path", NULL);
	command = json_str(input, "command", NULL);
	if (!strcmp(call->name, "shell") && command && !json_flag(input, "background", false))
		take_command(facts, command, result, round);
	else if (path && !result->is_error &&
		 (!strcmp(call->name, "edit") || !strcmp(call->name, "write")))
		take_change(facts, path, input, round);
	else if (path && !result->is_error && !strcmp(call->name, "read"))
		take_file(facts, path, false, round);
}

/* ---- sayings ---- */

static bool starts_with_next(const char *s, size_t n)
{
	static const char *const starts[] = {"next",	"the next step",    "my next step",
					     "so next", "as the next step", "下一步",
					     "接下来"};

	for (size_t i = 0; i < ARRAY_SIZE(starts); i++) {
		size_t len = strlen(starts[i]);

		if (n > len && text_find_nocase(s, len, starts[i]) &&
		    !isalnum((unsigned char)s[len]) && s[len] != '_')
			return true;
	}
	return false;
}

static bool says_next(const char *s, size_t n)
{
	if (starts_with_next(s, n))
		return true;
	return memchr(s, '`', n) &&
	       (text_find_nocase(s, n, " next") || text_find_nocase(s, n, "still have to") ||
		text_find_nocase(s, n, "下一步") || text_find_nocase(s, n, "接下来"));
}

static bool says_decision(const char *s, size_t n)
{
	static const char *const marks[] = {"decision:", "decided", "rejected", "ruled out",
					    "i reject",	 "we use",  "决定",	"放弃",
					    "否决",	 "排除"};

	for (size_t i = 0; i < ARRAY_SIZE(marks); i++)
		if (text_find_nocase(s, n, marks[i]))
			return true;
	return false;
}

/* "So load() must round by account": a conclusion that is drawn aloud is a decision, too. */
static bool says_conclusion(const char *s, size_t n)
{
	static const char *const starts[] = {"so", "therefore", "hence", "thus", "因此", "所以"};
	static const char *const musts[] = {" must ", " has to ", " have to ", "必须", "要"};
	bool found = false;

	for (size_t i = 0; i < ARRAY_SIZE(starts); i++) {
		size_t len = strlen(starts[i]);

		found |= n > len && text_find_nocase(s, len, starts[i]) &&
			 !isalnum((unsigned char)s[len]);
	}
	for (size_t i = 0; found && i < ARRAY_SIZE(musts); i++)
		if (text_find_nocase(s, n, musts[i]))
			return true;
	return false;
}

/* "Decision:" at the end of a line is said of the sentence behind it. */
static bool ends_in_colon(const char *s, size_t n)
{
	while (n && isspace((unsigned char)s[n - 1]))
		n--;
	return n && (s[n - 1] == ':' || (n >= 3 && !memcmp(s + n - 3, "：", 3)));
}

static void drop_saying(struct facts *facts, size_t at)
{
	free(facts->sayings[at].text);
	facts->n_sayings--;
	memmove(facts->sayings + at, facts->sayings + at + 1,
		(facts->n_sayings - at) * sizeof(*facts->sayings));
}

static void add_saying(struct facts *facts, enum fact_saying_kind kind, const char *text, size_t n,
		       int64_t round)
{
	size_t keep = text_floor(text, n, MIN(n, (size_t)SAYING_BYTES));
	AUTO_BUF struct buf line = BUF_INIT;

	for (size_t i = 0; i < keep; i++)
		buf_addc(&line, text[i] == '\n' ? ' ' : text[i]);
	if (keep < n)
		buf_adds(&line, " ...");
	for (size_t i = 0; kind == SAID_NEXT && i < facts->n_sayings; i++)
		if (facts->sayings[i].kind == SAID_NEXT) /* what was next is not any more */
			drop_saying(facts, i--);
	if (facts->n_sayings >= SAYINGS_MAX)
		drop_saying(facts, 0);
	MEM_GROW(facts->sayings, facts->cap_sayings, facts->n_sayings + 1);
	facts->sayings[facts->n_sayings++] =
		(struct fact_saying){.kind = kind, .text = buf_take(&line), .round = round};
}

/* What is next is said to the end of the text: "Next: the guard, then `make check`." */
static void take_sayings(struct facts *facts, const struct block *b, int64_t round)
{
	struct sentences s;

	sentences_split(b->text, b->text_len, &s);
	for (size_t i = 0; i < s.n; i++) {
		const char *text = b->text + s.list[i].at;
		size_t n = s.list[i].n;

		if (s.list[i].kind == SENTENCE_CODE || s.list[i].kind == SENTENCE_QUOTE)
			continue;
		if (says_next(text, n)) {
			add_saying(facts, SAID_NEXT, text, b->text_len - s.list[i].at, round);
			break;
		}
		if (says_decision(text, n) && ends_in_colon(text, n) && i + 1 < s.n) {
			const struct sentence *last = &s.list[++i];

			n = last->at + last->n - (size_t)(text - b->text);
		} else if (!says_decision(text, n) && !says_conclusion(text, n)) {
			continue;
		}
		add_saying(facts, SAID_DECISION, text, n, round);
	}
	sentences_release(&s);
}

static void take_message(struct facts *facts, const struct message *m)
{
	for (size_t i = 0; i < m->n_blocks; i++) {
		const struct block *b = &m->blocks[i];

		if (b->kind == BLOCK_TOOL_RESULT) {
			take_result(facts, b, m->round);
			facts_take_shown(facts, b->text, b->text_len, m->round);
		} else if (b->kind == BLOCK_TEXT && m->role == MESSAGE_ASSISTANT) {
			take_sayings(facts, b, m->round);
			facts_take_spoken(facts, b->text, b->text_len, m->round);
		}
	}
	if (m->role == MESSAGE_ASSISTANT)
		facts->answer = m;
}

void facts_take(struct facts *facts, const struct conversation *conversation)
{
	while (facts->taken < conversation->n)
		take_message(facts, conversation->messages[facts->taken++]);
}
