/*
 * agent_fixture.c - see agent_fixture.h.
 */
#include "agent_fixture.h"

#include <string.h>

#include "base/env.h"
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"

char *fixture_folder(void)
{
	const char *base = env_get("TMPDIR");
	char *path = mem_printf("%s/baton-test-XXXXXX", base ? base : "/tmp");

	assert_non_null(mkdtemp(path));
	return path;
}

void fixture_remove(char *folder)
{
	struct err e = ERR_INIT;

	if (file_remove_tree(folder, &e) < 0)
		fail_msg("%s", e.message);
	free(folder);
}

static void merge(struct json_object *into, struct json_object *members)
{
	json_object_object_foreach (members, key, value) {
		struct json_object *old = json_obj(into, key);

		if (old && json_object_is_type(value, json_type_object))
			merge(old, value);
		else
			json_object_object_add(into, key, json_object_get(value));
	}
}

static const char document[] =
	"{\"run\":\"r-1\",\"agent\":\"a1\",\"generation\":1,"
	"\"role\":{\"name\":\"worker\",\"prompt\":\"You work.\","
	"\"tools\":[\"read\",\"write\",\"edit\",\"shell\",\"grep\",\"glob\",\"job\"],\"write\":"
	"true,"
	"\"network\":\"none\",\"max_rounds\":20,\"max_output\":4000},"
	"\"task\":\"Fix the test.\",\"task_origin\":\"user\",\"brief\":\"\","
	"\"instructions\":[{\"origin\":\"project\",\"path\":\"AGENTS.md\",\"text\":\"Use tabs.\"}],"
	"\"environment\":{\"branch\":\"baton/r-1/"
	"a1\",\"platform\":\"Linux\",\"date\":\"2026-11-30\"},"
	"\"context\":{\"notes\":false},\"worktree_ready\":true,\"box\":{\"level\":\"unconfined\"}}";

static struct json_object *model_json(const char *api)
{
	bool anthropic = !strcmp(api, "anthropic");
	struct json_object *m = json_object_new_object();

	json_set_str(m, "provider", anthropic ? "anthropic" : "openai");
	json_set_str(m, "name", "test-model");
	json_set_str(m, "api", api);
	json_set_i64(m, "window", 200000);
	json_set_i64(m, "max_output", 20000);
	json_set_str(m, "reasoning", "none");
	json_set_str(m, "max_tokens_field", "max_tokens");
	json_set_str(m, "system_role", "system");
	json_set_str(m, "cache", anthropic ? "explicit" : "automatic");
	json_set_bool(m, "usage_in_stream", true);
	json_set_bool(m, "parallel_tools", true);
	json_set_str(m, "dialect", api);
	return m;
}

static void set_dirs(struct json_object *doc, const char *folder)
{
	static const char *const names[] = {"generation", "worktree", "scratch", "cache"};
	struct json_object *dirs = json_object_new_object();

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		AUTO_FREE char *path = file_join(folder, names[i]);

		json_set_str(dirs, names[i], path);
		assert_int_equal(file_mkdirs(path, 0700, NULL), 0);
	}
	json_set(doc, "dirs", dirs);
}

char *fixture_start(const char *folder, const char *api, const char *members)
{
	AUTO_JSON struct json_object *doc = NULL;
	AUTO_JSON struct json_object *more = NULL;
	struct buf out = BUF_INIT;

	assert_int_equal(json_parse(document, strlen(document), &doc, NULL), 0);
	json_set(doc, "model", model_json(api));
	set_dirs(doc, folder);
	if (members) {
		assert_int_equal(json_parse(members, strlen(members), &more, NULL), 0);
		merge(doc, more);
	}
	json_write(&out, doc);
	return buf_take(&out);
}

struct agent_settings *fixture_settings(const char *folder, const char *members)
{
	AUTO_FREE char *text = fixture_start(folder, "anthropic", members);
	struct agent_settings *settings = NULL;
	struct err e = ERR_INIT;

	if (agent_settings_parse(text, strlen(text), &settings, &e) < 0)
		fail_msg("%s", e.message);
	return settings;
}

struct message *fixture_text(enum message_role role, const char *text)
{
	struct message *m = message_new(role);

	message_add_text(m, role == MESSAGE_USER ? ORIGIN_USER : ORIGIN_MODEL, text, strlen(text));
	return m;
}

struct message *fixture_calls(const char *ids)
{
	struct message *m = message_new(MESSAGE_ASSISTANT);

	for (size_t n; (n = strcspn(ids, " ")); ids += n, ids += *ids == ' ') {
		AUTO_FREE char *id = mem_strndup(ids, n);

		message_add_call(m, id, "shell", "{}", 2, NULL);
	}
	return m;
}

struct message *fixture_results(const char *ids)
{
	struct message *m = message_new(MESSAGE_USER);

	for (size_t n; (n = strcspn(ids, " ")); ids += n, ids += *ids == ' ') {
		AUTO_FREE char *id = mem_strndup(ids, n);

		message_add_result(m, id, "shell", "ok", 2, false);
	}
	return m;
}
