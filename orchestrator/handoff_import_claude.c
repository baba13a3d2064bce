/*
 * handoff_import_claude.c - records of a Claude Code session: ~/.claude/projects/FOLDER/SESSION.jsonl.
 *
 *   {"type": "user"|"assistant"|"summary"|"system"|..., "message": {"role", "model", "content": text or blocks},
 *    "cwd", "gitBranch", "timestamp", "isSidechain", "isMeta", "isCompactSummary"}
 *   blocks: {"type": "text", "text"}, {"type": "tool_use", "id", "name", "input"},
 *           {"type": "tool_result", "tool_use_id", "content": text or blocks, "is_error"}
 *
 * Side chains are other agents' talk, and a good part of what stands there as the user's is the tool's own: both are left out.
 */
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "orchestrator/handoff_import.h"

static bool own_text(const char *text)
{
	static const char *const marks[] = {"<command-",
					    "<local-command",
					    "<system-reminder>",
					    "<bash-",
					    "<task-notification>",
					    "<user-prompt-submit-hook>",
					    "[Request interrupted",
					    "Caveat: The messages below"};

	for (size_t i = 0; i < ARRAY_SIZE(marks); i++)
		if (text_starts(text, marks[i]))
			return true;
	return false;
}

/* A text, or the texts of blocks with line ends between them. */
static void text_of(struct json_object *content, struct buf *out)
{
	if (json_object_is_type(content, json_type_string)) {
		buf_add(out, json_object_get_string(content),
			(size_t)json_object_get_string_len(content));
		return;
	}
	for (size_t i = 0; i < json_len(content); i++) {
		struct json_object *block = json_at(content, i);
		const char *text = json_str(block, "text", NULL);
		if (!text || strcmp(json_str(block, "type", ""), "text") != 0 || own_text(text))
			continue;
		buf_adds(out, out->len ? "\n" : "");
		buf_add(out, text, json_str_len(block, "text"));
	}
}

static void take_tasks(struct import *im, struct json_object *todos)
{
	import_tasks_begin(im);
	for (size_t i = 0; i < json_len(todos); i++) {
		struct json_object *todo = json_at(todos, i);
		import_task(im, json_str(todo, "content", NULL),
			    strcmp(json_str(todo, "status", ""), "completed") == 0);
	}
}

static void take_call(struct import *im, struct json_object *block)
{
	static const struct {
		const char *tool, *member;
		enum handoff_state state;
	} files[] = {
		{"Read", "file_path", HANDOFF_READ},
		{"Edit", "file_path", HANDOFF_CHANGED},
		{"MultiEdit", "file_path", HANDOFF_CHANGED},
		{"Write", "file_path", HANDOFF_CHANGED},
		{"NotebookEdit", "notebook_path", HANDOFF_CHANGED},
	};
	const char *name = json_str(block, "name", "");
	struct json_object *input = json_obj(block, "input");

	if (strcmp(name, "Bash") == 0)
		import_command(im, json_str(block, "id", NULL), json_str(input, "command", NULL));
	else if (strcmp(name, "TodoWrite") == 0)
		take_tasks(im, json_arr(input, "todos"));
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		if (strcmp(files[i].tool, name) == 0)
			import_file(im, json_str(input, files[i].member, NULL), files[i].state);
}

/* "Exit code 2" stands first in the result of a command that failed. */
static void take_result(struct import *im, struct json_object *block)
{
	AUTO_BUF struct buf text = BUF_INIT;
	bool failed = json_flag(block, "is_error", false);
	int64_t code = 1;

	text_of(json_get(block, "content"), &text);
	const char *at = buf_str(&text);
	if (failed && text_starts(at, "Exit code ")) {
		AUTO_FREE char *number = mem_strndup(at + 10, strspn(at + 10, "0123456789"));
		if (text_parse_i64(number, &code) < 0 || code < 1 || code > 255)
			code = 1;
		at = strchr(at, '\n') ? strchr(at, '\n') + 1 : "";
	}
	import_result(im, json_str(block, "tool_use_id", NULL), failed ? (int)code : 0, at);
}

static void take_blocks(struct import *im, struct json_object *content)
{
	for (size_t i = 0; i < json_len(content); i++) {
		struct json_object *block = json_at(content, i);
		const char *type = json_str(block, "type", "");
		if (strcmp(type, "tool_use") == 0)
			take_call(im, block);
		else if (strcmp(type, "tool_result") == 0)
			take_result(im, block);
	}
}

static void take_message(struct import *im, struct json_object *record, bool user)
{
	struct json_object *message = json_obj(record, "message");
	struct json_object *content = json_get(message, "content");
	const char *name = json_str(message, "model", NULL);
	AUTO_FREE char *model = name && *name != '<' ? mem_printf("anthropic/%s", name) : NULL;
	AUTO_BUF struct buf text = BUF_INIT;

	import_head(im, "Claude Code", model, json_str(record, "cwd", NULL),
		    json_str(record, "gitBranch", NULL), json_str(record, "timestamp", NULL));
	if (json_flag(record, "isSidechain", false))
		return;
	take_blocks(im, content);
	if (!user || json_flag(record, "isMeta", false) ||
	    json_flag(record, "isCompactSummary", false))
		return;
	text_of(content, &text);
	if (text.len && !own_text(buf_str(&text)))
		import_said(im, text.data, text.len);
}

bool import_claude(struct import *im, struct json_object *record)
{
	static const char *const others[] = {"summary", "system", "file-history-snapshot"};
	const char *type = json_str(record, "type", "");
	bool user = strcmp(type, "user") == 0;

	if ((user || strcmp(type, "assistant") == 0) && json_obj(record, "message")) {
		take_message(im, record, user);
		return true;
	}
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (strcmp(type, others[i]) == 0)
			return true;
	return false;
}
