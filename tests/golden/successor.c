/*
 * successor.c - see successor.h.
 */
#include "successor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"

#define OPEN_MARK  "<handoff>\n"
#define CLOSE_MARK "</handoff>"

/* ---- the request as a text ---- */

static void add_content(struct json_object *content, struct buf *out)
{
	if (json_object_is_type(content, json_type_string))
		buf_addf(out, "%s\n", json_object_get_string(content));
	for (size_t i = 0; json_object_is_type(content, json_type_array) && i < json_len(content);
	     i++)
		buf_addf(out, "%s\n", json_str(json_at(content, i), "text", ""));
}

void request_text(const char *body, size_t n, bool result, struct buf *out)
{
	AUTO_JSON struct json_object *request = NULL;
	struct json_object *messages;

	if (json_parse(body, n, &request, NULL) < 0)
		return;
	messages = json_arr(request, "messages");
	for (size_t i = 0; i < json_len(messages); i++) {
		struct json_object *m = json_at(messages, i), *content = NULL;

		if (result && strcmp(json_str(m, "role", ""), "tool") != 0)
			continue;
		if (result)
			buf_clear(out);
		json_object_object_get_ex(m, "content", &content);
		add_content(content, out);
	}
}

bool request_document(const char *text, const char **ret, size_t *ret_n)
{
	const char *from = strstr(text, OPEN_MARK);
	const char *to = from ? strstr(from, CLOSE_MARK) : NULL;

	if (!to)
		return false;
	*ret = from + strlen(OPEN_MARK);
	*ret_n = (size_t)(to - *ret);
	return true;
}

/* ---- reading ---- */

/* A section of the document; n 0: it is not there. Caller frees. */
static char *section(const char *document, size_t n, const char *title)
{
	AUTO_FREE char *head = mem_printf("\n## %s\n", title);
	const char *from = memmem(document, n, head, strlen(head));
	const char *end = document + n, *to;

	if (!from)
		return mem_strdup("");
	from += strlen(head);
	to = memmem(from, (size_t)(end - from), "\n## ", 4);
	return mem_strndup(from, (size_t)((to ? to : end) - from));
}

/* The last member of this name in a section. Caller frees; NULL. */
static char *member(const char *text, const char *name)
{
	AUTO_FREE char *head = mem_printf("\n  - %s: ", name);
	const char *found = NULL;

	for (const char *at = text; (at = strstr(at, head)); at++)
		found = at + strlen(head);
	return found ? mem_strndup(found, strcspn(found, "\n")) : NULL;
}

/* Where in the failures this command's statement has its output. */
static const char *output_of(const char *failures, const char *command)
{
	AUTO_FREE char *line = mem_printf("\n  - command: %s\n", command);
	const char *at = strstr(failures, line);

	at = at ? strstr(at, "- output:") : NULL;
	return at ? at + strcspn(at, "\n") : NULL;
}

static void take_line(struct successor *s, const char *line)
{
	char name[100], file[100], function[100];
	int number, got, want;

	if (sscanf(line, " %99[^ ] FAILED", name) == 1 && strstr(line, " FAILED")) {
		free(s->test);
		s->test = mem_strdup(name);
	}
	if (sscanf(line, " %99[^: ]:%d: %99[a-z_]() returned %d, expected %d", file, &number,
		   function, &got, &want) != 5)
		return;
	free(s->file);
	free(s->function);
	s->file = mem_strdup(file);
	s->function = mem_strdup(function);
	s->got = got;
	s->want = want;
}

/* Up to the next statement. */
static void read_output(struct successor *s, const char *at)
{
	while (*at && !s->want) {
		AUTO_FREE char *line = mem_strndup(at, strcspn(at, "\n"));

		if (!strncmp(line, "- ", 2))
			return;
		take_line(s, line);
		at += strlen(line) + (at[strlen(line)] == '\n');
	}
}

void successor_begin(struct successor *s, const char *body, size_t n)
{
	AUTO_BUF struct buf text = BUF_INIT;
	AUTO_FREE char *failures = NULL, *action = NULL;
	const char *document, *output;
	size_t len;

	*s = (struct successor){.calls = 0};
	request_text(body, n, false, &text);
	if (!request_document(buf_str(&text), &document, &len)) {
		s->lacks = "a document";
		return;
	}
	action = section(document, len, "First action");
	failures = section(document, len, "Present failures");
	s->command = member(action, "command");
	if (!s->command)
		s->command = member(failures, "command");
	output = s->command ? output_of(failures, s->command) : NULL;
	if (output)
		read_output(s, output);
	s->lacks = !s->command ? "a command"
		   : !output   ? "the output of its command"
		   : !s->test  ? "a failing test"
		   : !s->want  ? "file, function and value"
			       : NULL;
}

/* ---- acting ---- */

static const struct golden_step *call(struct successor *s, const char *tool, const char *key,
				      const char *value, const char *old, const char *new)
{
	AUTO_JSON struct json_object *o = json_object_new_object();
	struct buf text = BUF_INIT;

	json_set_str(o, key, value);
	if (old) {
		json_set_str(o, "old_string", old);
		json_set_str(o, "new_string", new);
	}
	json_write(&text, o);
	free(s->step.arguments);
	s->step = (struct golden_step){.say = "I go on.", .tool = tool, .exit_code = -1};
	s->step.arguments = buf_take(&text);
	return &s->step;
}

/* The line behind that of the function, as the file was just shown, numbers and all. */
static const struct golden_step *mend(struct successor *s, const char *shown)
{
	AUTO_FREE char *head = mem_printf("%s() {", s->function);
	AUTO_FREE char *was = mem_printf("echo %d", s->got);
	const char *at = strstr(shown, head);
	const char *value = at ? strstr(at, was) : NULL;

	if (!value) {
		s->lacks = "the function in the file";
		return NULL;
	}
	AUTO_FREE char *old = mem_printf("%s\n\t%s\n", head, was);
	AUTO_FREE char *new = mem_printf("%s\n\techo %d\n", head, s->want);

	return call(s, "edit", "path", s->file, old, new);
}

const struct golden_step *successor_next(struct successor *s, const char *body, size_t n)
{
	AUTO_BUF struct buf newest = BUF_INIT;

	request_text(body, n, true, &newest);
	if (s->calls == 0)
		successor_begin(s, body, n);
	else if (s->calls == 1 && !text_starts(buf_str(&newest), "exit code "))
		s->lacks = "a command that fails";
	if (s->lacks)
		return NULL;
	switch (s->calls++) {
	case 0:
	case 3: return call(s, "shell", "command", s->command, NULL, NULL);
	case 1: return call(s, "read", "path", s->file, NULL, NULL);
	case 2: return mend(s, buf_str(&newest));
	default: return NULL;
	}
}

void successor_release(struct successor *s)
{
	free(s->command);
	free(s->test);
	free(s->file);
	free(s->function);
	free(s->step.arguments);
	*s = (struct successor){.calls = 0};
}
