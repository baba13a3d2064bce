/*
 * handoff_import_codex.c - records of a Codex rollout: ~/.codex/sessions/YYYY/MM/DD/rollout-*.jsonl.
 *
 *   {"timestamp", "type": "session_meta", "payload": {"id", "cwd", "git": {"branch", "commit_hash"}}}
 *   {"timestamp", "type": "turn_context", "payload": {"cwd", "model"}}
 *   {"timestamp", "type": "response_item", "payload": ITEM}, or in older files ITEM itself
 *   ITEM: {"type": "message", "role", "content": [{"type": "input_text", "text"}]},
 *         {"type": "function_call", "name", "arguments": JSON text, "call_id"},
 *         {"type": "function_call_output", "call_id", "output": text, JSON text or an object},
 *         {"type": "custom_tool_call", "name": "apply_patch", "input": a patch, "call_id"}
 *
 * `event_msg` records tell the screen what the items say already.
 */
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "orchestrator/handoff_import.h"

static bool own_text(const char *text)
{
	static const char *const marks[] = {"<environment_context>",	"<user_instructions>",
					    "# AGENTS.md instructions", "<permissions",
					    "<turn_aborted>",		"<INSTRUCTIONS>",
					    "<user_shell_command>"};

	for (size_t i = 0; i < ARRAY_SIZE(marks); i++)
		if (text_starts(text, marks[i]))
			return true;
	return false;
}

static void take_message(struct import *im, struct json_object *item)
{
	struct json_object *content = json_arr(item, "content");
	AUTO_BUF struct buf text = BUF_INIT;

	if (strcmp(json_str(item, "role", ""), "user") != 0)
		return;
	for (size_t i = 0; i < json_len(content); i++) {
		struct json_object *block = json_at(content, i);
		const char *part = json_str(block, "text", NULL);
		if (!part || own_text(part))
			continue;
		buf_adds(&text, text.len ? "\n" : "");
		buf_add(&text, part, json_str_len(block, "text"));
	}
	if (text.len)
		import_said(im, text.data, text.len);
}

/* ---- calls ---- */

/* The files of a patch stand in lines of their own. */
static void take_patch(struct import *im, const char *patch)
{
	static const struct {
		const char *mark;
		enum handoff_state state;
	} marks[] = {
		{"*** Update File: ", HANDOFF_CHANGED},
		{"*** Add File: ", HANDOFF_CHANGED},
		{"*** Move to: ", HANDOFF_CHANGED},
		{"*** Delete File: ", HANDOFF_DELETED},
	};

	for (const char *line = patch; line && *line;
	     line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
		for (size_t i = 0; i < ARRAY_SIZE(marks); i++) {
			if (!text_starts(line, marks[i].mark))
				continue;
			const char *from = line + strlen(marks[i].mark);
			AUTO_FREE char *path = mem_strndup(from, strcspn(from, "\r\n"));
			import_file(im, path, marks[i].state);
		}
}

static void take_plan(struct import *im, struct json_object *plan)
{
	import_tasks_begin(im);
	for (size_t i = 0; i < json_len(plan); i++) {
		struct json_object *step = json_at(plan, i);
		import_task(im, json_str(step, "step", NULL),
			    strcmp(json_str(step, "status", ""), "completed") == 0);
	}
}

/* Text of a word, "" where it is none. */
static const char *word_at(struct json_object *command, size_t i)
{
	const char *word = json_object_get_string(json_at(command, i));

	return word ? word : "";
}

/* ["bash", "-lc", LINE], another list of words, or a line. */
static char *command_line(struct json_object *command)
{
	AUTO_BUF struct buf line = BUF_INIT;
	size_t n = json_len(command);
	bool shell = n == 3 && word_at(command, 1)[0] == '-' && strchr(word_at(command, 1), 'c');

	if (json_object_is_type(command, json_type_string))
		return mem_strdup(json_object_get_string(command));
	for (size_t i = shell ? 2 : 0; i < n; i++)
		buf_addf(&line, "%s%s", line.len ? " " : "", word_at(command, i));
	return line.len ? buf_take(&line) : NULL;
}

static void take_command(struct import *im, const char *call, struct json_object *command)
{
	AUTO_FREE char *line = command_line(command);

	if (line && strstr(line, "*** Begin Patch"))
		take_patch(im, line);
	else
		import_command(im, call, line);
}

static void take_call(struct import *im, struct json_object *item)
{
	const char *call = json_str(item, "call_id", NULL), *text = json_str(item, "arguments", "");
	AUTO_JSON struct json_object *arguments = NULL;

	if (json_parse(text, json_str_len(item, "arguments"), &arguments, NULL) < 0)
		return;
	if (strcmp(json_str(item, "name", ""), "update_plan") == 0)
		take_plan(im, json_arr(arguments, "plan"));
	else if (strcmp(json_str(item, "name", ""), "apply_patch") == 0)
		take_patch(im, json_str(arguments, "input", ""));
	else if (json_has(arguments, "command"))
		take_command(im, call, json_get(arguments, "command"));
	else if (json_has(arguments, "cmd"))
		take_command(im, call, json_get(arguments, "cmd"));
}

/* ---- results ---- */

static int code_in(const char *text)
{
	static const char *const marks[] = {"Exit code: ", "exited with code "};
	int64_t code = 0;

	for (size_t i = 0; i < ARRAY_SIZE(marks); i++) {
		const char *at = strstr(text, marks[i]);
		if (!at)
			continue;
		at += strlen(marks[i]);
		AUTO_FREE char *number = mem_strndup(at, strspn(at, "-0123456789"));
		if (text_parse_i64(number, &code) == 0 && code >= -255 && code <= 255)
			return (int)code;
	}
	return 0;
}

static void take_output(struct import *im, struct json_object *item)
{
	struct json_object *output = json_get(item, "output");
	AUTO_JSON struct json_object *inner = NULL;
	const char *call = json_str(item, "call_id", NULL);
	const char *text = json_str(item, "output", json_str(output, "content", ""));

	if (json_parse(text, strlen(text), &inner, NULL) == 0 && json_has(inner, "output")) {
		int64_t code = json_i64(json_obj(inner, "metadata"), "exit_code", 0);
		import_result(im, call, (int)MIN(MAX(code, (int64_t)-255), (int64_t)255),
			      json_str(inner, "output", ""));
		return;
	}
	/* The head of the output tells how it ended; below it anything may stand. */
	AUTO_FREE char *head = mem_strndup(text, strnlen(text, 300));
	import_result(im, call, code_in(head), text);
}

/* ---- records ---- */

static bool take_item(struct import *im, struct json_object *item)
{
	static const char *const others[] = {"reasoning", "web_search_call",
					     "custom_tool_call_output", "ghost_snapshot"};
	const char *type = json_str(item, "type", "");

	if (strcmp(type, "message") == 0 && json_has(item, "role"))
		take_message(im, item);
	else if (strcmp(type, "function_call") == 0)
		take_call(im, item);
	else if (strcmp(type, "function_call_output") == 0)
		take_output(im, item);
	else if (strcmp(type, "custom_tool_call") == 0)
		take_patch(im, json_str(item, "input", ""));
	else if (strcmp(type, "local_shell_call") == 0)
		take_command(im, json_str(item, "call_id", NULL),
			     json_get(json_obj(item, "action"), "command"));
	else
		for (size_t i = 0;; i++) {
			if (i == ARRAY_SIZE(others))
				return false;
			if (strcmp(type, others[i]) == 0)
				break;
		}
	return true;
}

static void take_head(struct import *im, struct json_object *payload, const char *time)
{
	const char *name = json_str(payload, "model", NULL);
	AUTO_FREE char *model = name ? mem_printf("openai/%s", name) : NULL;

	import_head(im, "Codex", model, json_str(payload, "cwd", NULL),
		    json_str(json_obj(payload, "git"), "branch", NULL), time);
}

bool import_codex(struct import *im, struct json_object *record)
{
	const char *type = json_str(record, "type", ""),
		   *time = json_str(record, "timestamp", NULL);
	struct json_object *payload = json_obj(record, "payload");

	if (payload && (strcmp(type, "session_meta") == 0 || strcmp(type, "turn_context") == 0)) {
		take_head(im, payload, time);
		return true;
	}
	if (payload && (strcmp(type, "event_msg") == 0 || strcmp(type, "compacted") == 0))
		return true;
	if (strcmp(type, "response_item") == 0 && payload) {
		import_head(im, "Codex", NULL, NULL, NULL, time);
		return take_item(im, payload);
	}
	/* Older: the first line has no type, and items stand by themselves. */
	if (!*type && json_has(record, "id") &&
	    (json_has(record, "instructions") || json_has(record, "git"))) {
		take_head(im, record, time);
		return true;
	}
	if (json_has(record, "message") || !take_item(im, record))
		return false;
	import_head(im, "Codex", NULL, NULL, NULL, time);
	return true;
}
