/*
 * fuzz_yaml.c - any file in place of a configuration file or a role.
 *
 * Input: one byte that says which (see `readers`), then the bytes of the file. Both come from
 * repositories that strangers wrote. Properties beside "no crash": a refusal says why and where; a
 * project's file never sets what only trusted layers may (M5); a role has a prompt, knows only our
 * tools, and has no more rights than its tools give it unless it says so; and the document's places
 * are lines of the file.
 */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/yaml.h"
#include "fuzz.h"
#include "orchestrator/config/store.h"
#include "orchestrator/role.h"

#define NAME "f.yaml"

static void need(bool holds)
{
	if (!holds)
		abort();
}

/* A refusal names the file and is text that a user can read. */
static void check_error(const struct err *err)
{
	need(err->code != ERR_NONE && *err->message);
	need(text_is_utf8(err->message, strlen(err->message)));
	need(strstr(err->message, NAME) != NULL);
}

/* ---- YAML ---- */

static void check_lines(const struct yaml_doc *doc, struct json_object *value, const char *pointer,
			int lines)
{
	int line = yaml_line(doc, pointer);

	need(line >= 1 && line <= lines);
	if (!json_object_is_type(value, json_type_object) || strlen(pointer) > 200)
		return;
	json_object_object_foreach (value, key, member) {
		AUTO_FREE char *below = config_pointer(pointer, key);
		check_lines(doc, member, below, lines);
	}
}

/* A bare carriage return ends a line too, as YAML has it. */
static int count_lines(const char *text, size_t n)
{
	int lines = 1;

	for (size_t i = 0; i < n; i++)
		lines += text[i] == '\n' || text[i] == '\r';
	return lines;
}

static void read_yaml(const char *text, size_t n)
{
	struct yaml_doc *doc = NULL;
	struct err err = ERR_INIT;
	AUTO_BUF struct buf json = BUF_INIT;
	AUTO_JSON struct json_object *again = NULL;

	if (yaml_parse(text, n, NAME, 1, &doc, &err) < 0) {
		check_error(&err);
		return;
	}
	if (yaml_root(doc))
		check_lines(doc, yaml_root(doc), "", count_lines(text, n));
	json_write(&json, yaml_root(doc));
	need(json_parse(json.data, json.len, &again, NULL) == 0);
	yaml_free(doc);
}

/* ---- configuration ---- */

static void read_user(const char *text, size_t n)
{
	struct settings *s = store_new();
	struct err err = ERR_INIT;
	AUTO_BUF struct buf out = BUF_INIT;
	AUTO_FREE char *provider = NULL;
	AUTO_FREE char *model = NULL;

	if (layer_parse(s, NAME, text, n, LAYER_USER, &err) < 0)
		check_error(&err);
	settings_print_effective(s, true, &out);
	settings_print_effective(s, false, &out);
	if (settings_is_set(s, OPT_MODEL))
		(void)settings_model(s, &provider, &model, NULL);
	json_object_object_foreach (s->providers, name, fields) {
		struct json_object *doc = NULL;
		const char *key_env;
		(void)fields;
		if (settings_provider(s, name, &doc, &key_env, NULL) == 0)
			json_object_put(doc);
	}
	settings_free(s);
}

static void read_project(const char *text, size_t n)
{
	struct settings *s = store_new();
	struct err err = ERR_INIT;
	size_t n_options;
	const struct option *table = option_table(&n_options);

	if (layer_parse(s, NAME, text, n, LAYER_PROJECT, &err) < 0)
		check_error(&err);
	for (size_t i = 0; i < n_options; i++)
		need(table[i].layers == CFG_ANY || !settings_is_set(s, table[i].id));
	need(!settings_is_set(s, OPT_SETUP)); /* nobody trusted it */
	need(json_object_object_length(s->providers) == 0);
	need(json_object_object_length(s->models) == 0);
	settings_free(s);
}

/* ---- roles ---- */

static void check_role(const struct role *role)
{
	static const char *const ours[] = {"read", "write", "edit",   "glob",  "grep",	"shell",
					   "job",  "notes", "recall", "agent", "report"};

	need(role->prompt && *role->prompt);
	need(role->max_rounds >= 0);
	need(json_i64(role->knobs, "compact_buffer", 0) >= KNOB_AUTO);
	for (char **tool = role->tools; tool && *tool; tool++) {
		size_t i = 0;
		while (i < ARRAY_SIZE(ours) && strcmp(ours[i], *tool) != 0)
			i++;
		need(i < ARRAY_SIZE(ours));
	}
}

static void read_role(const char *text, size_t n, bool claude)
{
	struct role *role = NULL;
	struct err err = ERR_INIT;

	if (role_parse(text, n, NAME, claude, &role, &err) < 0) {
		check_error(&err);
		return;
	}
	check_role(role);
	need(claude || !role->notes); /* our form has errors, no notes */
	role_free(role);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	log_init("fuzz", LOG_ERROR); /* what is skipped for want of trust is no news here */
	const char *text = (const char *)data + 1;
	switch (data[0] % 5) {
	case 0: read_yaml(text, size - 1); break;
	case 1: read_user(text, size - 1); break;
	case 2: read_project(text, size - 1); break;
	case 3: read_role(text, size - 1, false); break;
	case 4: read_role(text, size - 1, true); break;
	}
	return 0;
}
