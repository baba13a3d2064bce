/*
 * handoff_truth.c - see handoff_truth.h.
 *
 * A user's sentence counts as said where it stands in a message between ends of sentences: "push" is a part of "Never
 * push." and the opposite of it. A name counts as recent where it stands in one of the last calls or in what came of it.
 */
#include "orchestrator/handoff_truth.h"

#include <ctype.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/env.h"
#include "base/file.h"
#include "base/jsonl.h"
#include "base/memory.h"
#include "base/text.h"
#include "handoff/document_vague.h"

#define LINE_MAX_BYTES	((size_t)64 << 20)
#define RECENT_CALLS	20
#define RECENT_BYTES	((int64_t)8 << 20) /* of the end of a transcript */
#define WORDS_MAX_BYTES ((size_t)256 << 20)

struct message {
	int64_t generation, uid;
	char *text;
	size_t n;
};

struct span {
	size_t message, at, n;
};

struct call {
	char *id;
	struct buf text; /* its name, its input, what came of it */
};

struct ran {
	char *command, *why;
	int exit_code;
};

struct handoff_records {
	struct json_object *git;
	struct message *messages;
	size_t n_messages, cap_messages;
	struct span *constraints;
	size_t n_constraints, cap_constraints;
	struct call calls[RECENT_CALLS]; /* a ring */
	size_t n_calls;
	bool calls_known;
	struct ran *ran;
	size_t n_ran, cap_ran;
};

struct handoff_records *handoff_records_new(void)
{
	return mem_alloc(sizeof(struct handoff_records));
}

void handoff_records_free(struct handoff_records *r)
{
	if (!r)
		return;
	json_object_put(r->git);
	for (size_t i = 0; i < r->n_messages; i++)
		free(r->messages[i].text);
	for (size_t i = 0; i < RECENT_CALLS; i++) {
		free(r->calls[i].id);
		buf_release(&r->calls[i].text);
	}
	for (size_t i = 0; i < r->n_ran; i++) {
		free(r->ran[i].command);
		free(r->ran[i].why);
	}
	free(r->messages);
	free(r->constraints);
	free(r->ran);
	free(r);
}

/* ---- git ---- */

/* The names by which a test may stand in the tree: "tests/x.py::test_a", "suite.test_a". */
static void add_names(struct json_object *names, const char *test)
{
	const char *last = test;

	for (const char *at = test; *at; at++)
		if ((*at == '/' || *at == ':' || *at == ' ') && at[1])
			last = at + 1;
	json_object_array_add(names, json_object_new_string(last));
	const char *dot = strrchr(last, '.');
	if (dot && dot[1])
		json_object_array_add(names, json_object_new_string(dot + 1));
}

static void add_string(struct json_object *list, const char *text)
{
	if (text)
		json_object_array_add(list, json_object_new_string(text));
}

/* The program of a shell line behind its assignments, or NULL. */
static char *program_of(const char *command)
{
	for (;;) {
		size_t n, equals;
		command += strspn(command, " \t\n({");
		n = strcspn(command, " \t\n;&|<>)}");
		equals = strcspn(command, "=");
		if (!n)
			return NULL;
		if (equals >= n || equals == 0)
			return mem_strndup(command, n);
		command += n;
	}
}

struct json_object *handoff_facts_question(const struct handoff *handoff)
{
	struct json_object *body = json_object_new_object();
	struct json_object *commits = json_object_new_array(), *files = json_object_new_array();
	struct json_object *names = json_object_new_array();

	add_string(commits, handoff->base);
	add_string(commits, handoff->head);
	for (enum handoff_part_name part = 0; part < HANDOFF_N_PARTS; part++) {
		for (size_t i = 0; i < handoff->parts[part].n; i++) {
			const struct handoff_statement *s = &handoff->parts[part].list[i];
			AUTO_FREE char *program = s->command ? program_of(s->command) : NULL;
			add_string(commits, s->commit);
			if (s->file && !text_starts(s->file, "results:"))
				add_string(files, s->file);
			if (program && strchr(program, '/'))
				add_string(files, program);
			if (s->test && *s->test) {
				add_string(files, s->test);
				add_names(names, s->test);
			}
		}
	}
	json_set(body, "commits", commits);
	json_set(body, "files", files);
	json_set(body, "names", names);
	return body;
}

void handoff_records_git(struct handoff_records *r, struct json_object *answer)
{
	json_object_put(r->git);
	r->git = json_object_get(answer);
}

static enum handoff_answer know_commit(void *arg, const char *id, struct buf *why)
{
	const struct handoff_records *r = arg;
	const char *found = json_str(json_obj(r->git, "commits"), id, NULL);

	if (!found)
		return HANDOFF_UNKNOWN;
	if (strcmp(found, "on") == 0)
		return HANDOFF_YES;
	if (why)
		buf_adds(why,
			 strcmp(found, "off") == 0 ? "is not on the branch" : "does not exist");
	return HANDOFF_NO;
}

static enum handoff_answer know_file(void *arg, const char *path, const char *hash, struct buf *why)
{
	const struct handoff_records *r = arg;
	struct json_object *files = json_obj(r->git, "files");
	const char *found = json_str(files, path, NULL);

	if (!found) /* not asked; or a link, which is there */
		return json_has(files, path) && !hash ? HANDOFF_YES : HANDOFF_UNKNOWN;
	if (!*found) {
		if (why)
			buf_adds(why, "is not there");
		return HANDOFF_NO;
	}
	if (!hash || strcmp(found, hash) == 0)
		return HANDOFF_YES;
	if (why)
		buf_addf(why, "was changed since: it is %.12s now, not %.12s", found, hash);
	return HANDOFF_NO;
}

/* ---- tests and commands ---- */

static bool in_path(const char *program)
{
	const char *path = env_get("PATH");

	while (path && *path) {
		size_t n = strcspn(path, ":");
		AUTO_FREE char *whole = mem_printf("%.*s/%s", (int)n, path, program);
		if (n && access(whole, X_OK) == 0)
			return true;
		path += n + (path[n] == ':');
	}
	return false;
}

/* `$CC`, `f() {`, `"my tool"`: only a shell knows what they are. */
static bool is_shell_syntax(const char *program)
{
	return program[strspn(program, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				       "0123456789_.+-/~")] != '\0';
}

static bool builtin(const char *program)
{
	static const char *const words[] = {
		"!",	  ".",	      ":",	  "[",	     "[[",   "alias", "bash",	 "bg",
		"case",	  "cd",	      "command",  "declare", "eval", "exec",  "exit",	 "export",
		"for",	  "function", "if",	  "jobs",    "kill", "let",   "local",	 "popd",
		"pushd",  "read",     "readonly", "select",  "set",  "sh",    "shift",	 "shopt",
		"source", "test",     "time",	  "timeout", "trap", "type",  "typeset", "ulimit",
		"umask",  "unalias",  "unset",	  "until",   "wait", "while"};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (strcmp(words[i], program) == 0)
			return true;
	return false;
}

static enum handoff_answer know_test(struct handoff_records *r, const char *test, struct buf *why)
{
	AUTO_JSON struct json_object *names = json_object_new_array();
	struct json_object *found = json_obj(r->git, "names");
	bool asked = false;

	if (know_file(r, test, NULL, NULL) == HANDOFF_YES)
		return HANDOFF_YES;
	add_names(names, test);
	for (size_t i = 0; i < json_len(names); i++) {
		const char *name = json_object_get_string(json_at(names, i));
		if (json_flag(found, name, false))
			return HANDOFF_YES;
		asked = asked || json_has(found, name);
	}
	if (asked)
		buf_addf(why, "stands nowhere in the files");
	return asked ? HANDOFF_NO : HANDOFF_UNKNOWN;
}

/* A program of a build is no file of the tree, so it is not known whether there will be one. */
static enum handoff_answer know_program(struct handoff_records *r, const char *command,
					struct buf *why)
{
	AUTO_FREE char *program = program_of(command);

	if (!program)
		return HANDOFF_NO;
	if (is_shell_syntax(program) && !builtin(program))
		return HANDOFF_UNKNOWN;
	if (strchr(program, '/')) {
		if (*program == '/')
			return access(program, X_OK) == 0 ? HANDOFF_YES : HANDOFF_UNKNOWN;
		if (know_file(r, program, NULL, NULL) == HANDOFF_YES)
			return HANDOFF_YES;
		buf_addf(why, "runs '%s', which is no file of the tree", program);
		return HANDOFF_UNKNOWN;
	}
	if (builtin(program) || in_path(program))
		return HANDOFF_YES;
	buf_addf(why, "runs '%s', which is not installed", program);
	return HANDOFF_NO;
}

static enum handoff_answer compare_run(const struct ran *ran, const struct handoff_statement *s,
				       struct buf *why)
{
	if (ran->why) {
		buf_adds(why, ran->why);
		return HANDOFF_UNKNOWN;
	}
	if (s->has_exit && s->exit_code == ran->exit_code)
		return HANDOFF_YES;
	/* Which failure it is, 1 or 2, is the tool's affair; whether it fails is the statement. */
	if (!s->has_exit || (s->exit_code != 0) == (ran->exit_code != 0))
		return HANDOFF_YES;
	buf_addf(why, "ended with exit code %d, not %d", ran->exit_code, s->exit_code);
	return HANDOFF_NO;
}

static enum handoff_answer know_command(void *arg, const struct handoff_statement *s,
					struct buf *why)
{
	struct handoff_records *r = arg;
	enum handoff_answer test = HANDOFF_YES, program = HANDOFF_YES;

	for (size_t i = 0; s->command && i < r->n_ran; i++)
		if (strcmp(r->ran[i].command, s->command) == 0)
			return compare_run(&r->ran[i], s, why);
	if (s->command && *s->command)
		program = know_program(r, s->command, why);
	if (program == HANDOFF_YES && s->test && *s->test)
		test = know_test(r, s->test, why);
	if (program == HANDOFF_NO || test == HANDOFF_NO)
		return HANDOFF_NO;
	return program == HANDOFF_UNKNOWN || test == HANDOFF_UNKNOWN ? HANDOFF_UNKNOWN
								     : HANDOFF_YES;
}

void handoff_records_ran(struct handoff_records *r, const char *command, int exit_code,
			 const char *why)
{
	MEM_GROW(r->ran, r->cap_ran, r->n_ran + 1);
	r->ran[r->n_ran++] = (struct ran){mem_strdup(command), mem_strdup(why), exit_code};
}

/* ---- what the user said ---- */

static void text_of_word(struct json_object *record, struct buf *out)
{
	const char *hex = json_str(record, "hex", NULL);
	const char *text = json_str(record, "text", "");

	if (!hex) {
		buf_add(out, text, json_str_len(record, "text"));
		return;
	}
	for (; isxdigit((unsigned char)hex[0]) && isxdigit((unsigned char)hex[1]); hex += 2) {
		char digits[3] = {hex[0], hex[1], '\0'};
		buf_addc(out, (char)strtol(digits, NULL, 16));
	}
}

static bool known_word(const struct handoff_records *r, int64_t generation, int64_t uid,
		       const struct buf *text)
{
	for (size_t i = 0; i < r->n_messages; i++) {
		const struct message *m = &r->messages[i];
		if (m->generation == generation && m->uid == uid && m->n == text->len &&
		    memcmp(m->text, buf_str(text), m->n) == 0)
			return true;
	}
	return false;
}

static int on_word(struct json_object *record, int64_t offset, void *arg)
{
	struct handoff_records *r = arg;
	struct json_object *spans = json_arr(record, "constraints");
	int64_t generation = json_i64(record, "generation", 0), uid = json_i64(record, "uid", 0);
	struct buf text = BUF_INIT;

	if (strcmp(json_str(record, "type", ""), "word") != 0)
		return 0;
	text_of_word(record, &text);
	/* A later generation's file holds those of the earlier ones too. */
	if (known_word(r, generation, uid, &text)) {
		buf_release(&text);
		return 0;
	}
	for (size_t i = 0; i < json_len(spans); i++) {
		int64_t at = json_object_get_int64(json_at(json_at(spans, i), 0));
		int64_t n = json_object_get_int64(json_at(json_at(spans, i), 1));
		if (at < 0 || n <= 0 || (size_t)at > text.len || (size_t)n > text.len - (size_t)at)
			continue;
		MEM_GROW(r->constraints, r->cap_constraints, r->n_constraints + 1);
		r->constraints[r->n_constraints++] =
			(struct span){r->n_messages, (size_t)at, (size_t)n};
	}
	MEM_GROW(r->messages, r->cap_messages, r->n_messages + 1);
	size_t n = text.len;
	buf_adds(&text, "");
	r->messages[r->n_messages++] =
		(struct message){generation, uid, text.data ? buf_take(&text) : mem_strdup(""), n};
	return 0;
}

int handoff_records_words(struct handoff_records *r, const char *path, struct err *err)
{
	struct jsonl_stats stats;

	return jsonl_read(path, 0, LINE_MAX_BYTES, on_word, r, &stats, err) < 0 ? -1 : 0;
}

static bool ends_chinese(const char *s, size_t at)
{
	return at >= 3 && (memcmp(s + at - 3, "\xe3\x80\x82", 3) == 0 || /* ideographic full stop */
			   memcmp(s + at - 3, "\xef\xbc\x81", 3) == 0 || /* full-width ! ? ; : */
			   memcmp(s + at - 3, "\xef\xbc\x9f", 3) == 0 ||
			   memcmp(s + at - 3, "\xef\xbc\x9b", 3) == 0 ||
			   memcmp(s + at - 3, "\xef\xbc\x9a", 3) == 0);
}

static bool ends_sentence(const char *s, size_t at)
{
	return (at && memchr(".!?;:\n", s[at - 1], 6)) || ends_chinese(s, at);
}

/* Does a sentence, a line or the message begin here? Bullets and brackets may stand before it. */
static bool begins_here(const char *s, size_t at)
{
	while (at && memchr(" \t\r-*>+#\"'(`0123456789", s[at - 1], 22))
		at--;
	return at == 0 || ends_sentence(s, at);
}

static bool ends_here(const char *s, size_t n, size_t at)
{
	if (at == n || ends_sentence(s, at))
		return true;
	while (at < n && memchr(" \t\r\"')`", s[at], 7))
		at++;
	return at == n || ends_sentence(s, at + 1) || (n - at >= 3 && ends_chinese(s, at + 3));
}

static bool says(const struct message *m, const char *text, size_t n)
{
	const char *at = m->text, *end = m->text + m->n;

	while (n && (at = memmem(at, (size_t)(end - at), text, n)) != NULL) {
		size_t from = (size_t)(at - m->text);
		if (begins_here(m->text, from) && ends_here(m->text, m->n, from + n))
			return true;
		at++;
	}
	return false;
}

static enum handoff_answer know_said(void *arg, const struct handoff_statement *s, struct buf *why)
{
	struct handoff_records *r = arg;
	size_t n = strlen(s->text);

	if (!r->n_messages)
		return HANDOFF_UNKNOWN;
	for (size_t i = 0; i < r->n_messages; i++) {
		const struct message *m = &r->messages[i];
		AUTO_BUF struct buf clean = BUF_INIT; /* as handoff_add made the statement */
		text_sanitize(&clean, m->text, m->n);
		struct message seen = {m->generation, m->uid, (char *)(uintptr_t)buf_str(&clean),
				       clean.len};
		if (says(&seen, s->text, n))
			return HANDOFF_YES;
	}
	for (size_t i = 0; i < r->n_messages && s->uid; i++) {
		const struct message *m = &r->messages[i];
		if ((uint64_t)m->uid != s->uid || m->generation != s->generation)
			continue;
		buf_adds(why, "the message says '");
		text_printable(why, m->text, text_floor(m->text, m->n, MIN(m->n, (size_t)200)),
			       true);
		buf_adds(why, m->n > 200 ? "...'" : "'");
		break;
	}
	return HANDOFF_NO;
}

static const char *know_constraint(void *arg, size_t i, size_t *ret_n)
{
	const struct handoff_records *r = arg;

	if (i >= r->n_constraints)
		return NULL;
	*ret_n = r->constraints[i].n;
	return r->messages[r->constraints[i].message].text + r->constraints[i].at;
}

static const char *know_message(void *arg, size_t i, size_t *ret_n)
{
	const struct handoff_records *r = arg;

	if (i >= r->n_messages)
		return NULL;
	*ret_n = r->messages[i].n;
	return r->messages[i].text;
}

/* ---- the last calls ---- */

static struct call *call_named(struct handoff_records *r, const char *id)
{
	for (size_t i = 0; i < RECENT_CALLS; i++)
		if (r->calls[i].id && strcmp(r->calls[i].id, id) == 0)
			return &r->calls[i];
	return NULL;
}

static void take_block(struct handoff_records *r, struct json_object *block)
{
	const char *kind = json_str(block, "kind", ""), *id = json_str(block, "id", "");
	struct call *call;

	if (strcmp(kind, "tool_call") == 0) {
		call = &r->calls[r->n_calls++ % RECENT_CALLS];
		free(call->id);
		call->id = mem_strdup(id);
		buf_clear(&call->text);
	} else if (strcmp(kind, "tool_result") == 0) {
		call = call_named(r, id);
	} else {
		return;
	}
	if (call)
		buf_addf(&call->text, "%s\n", json_str(block, "text", ""));
}

static int on_record(struct json_object *record, int64_t offset, void *arg)
{
	struct json_object *blocks = json_arr(record, "blocks");

	if (strcmp(json_str(record, "type", ""), "message") != 0)
		return 0;
	for (size_t i = 0; i < json_len(blocks); i++)
		take_block(arg, json_at(blocks, i));
	return 0;
}

int handoff_records_calls(struct handoff_records *r, const char *path, struct err *err)
{
	struct jsonl_stats stats;
	struct stat st;

	if (stat(path, &st) < 0)
		return err_sys(err, "cannot look at '%s'", path);
	/* A line that is entered in its middle cannot be read, and is passed over. */
	if (jsonl_read(path, MAX((int64_t)st.st_size - RECENT_BYTES, (int64_t)0), LINE_MAX_BYTES,
		       on_record, r, &stats, err) < 0)
		return -1;
	r->calls_known = true;
	return 0;
}

/* An input is JSON, in which a quoted command stands with backslashes. */
static bool stands_in(const struct buf *text, const char *target)
{
	AUTO_BUF struct buf quoted = BUF_INIT;

	if (vague_stands_in(buf_str(text), target, strlen(target)))
		return true;
	json_write_cstr(&quoted, target);
	return quoted.len > 2 && vague_stands_in(buf_str(text), quoted.data + 1, quoted.len - 2);
}

static enum handoff_answer know_recent(void *arg, const char *target)
{
	const struct handoff_records *r = arg;

	if (!r->calls_known)
		return HANDOFF_UNKNOWN;
	for (size_t i = 0; i < RECENT_CALLS; i++)
		if (r->calls[i].id && stands_in(&r->calls[i].text, target))
			return HANDOFF_YES;
	return HANDOFF_NO;
}

struct handoff_truth handoff_records_truth(struct handoff_records *r)
{
	return (struct handoff_truth){.arg = r,
				      .commit = r->git ? know_commit : NULL,
				      .file = r->git ? know_file : NULL,
				      .said = know_said,
				      .command = know_command,
				      .recent = know_recent,
				      .constraint = know_constraint,
				      .message = know_message};
}
