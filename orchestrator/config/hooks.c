/*
 * hooks.c - `hooks:` of a configuration file (M6). Runs in the parent, before anything is started.
 *
 *   hooks:
 *     PreToolUse:
 *       - matcher: shell|write
 *         command: hooks/guard.sh
 *         timeout: 5s
 *         required: true
 *
 * Checked strictly, with the line: a matcher that can never match is an error and not a hook that never
 * runs, since somebody relies on it. Events of later versions are refused for the same reason. Hooks of
 * all layers add up; none takes another's away.
 */
#include <fnmatch.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/yaml.h"
#include "orchestrator/config/store.h"

#define TIMEOUT_MAX_MS (10 * 60 * 1000)

struct reader {
	struct settings *s;
	const struct yaml_doc *doc;
	const char *path;
	enum layer layer;
	bool trusted;
	enum hook_event event;
};

/* -1, with file and line of the node. */
static int wrong(const struct reader *r, const char *pointer, struct err *err, const char *what,
		 const char *subject)
{
	return err_set(err, ERR_USAGE, "%s:%d: %s '%.100s'", r->path, yaml_line(r->doc, pointer),
		       what, subject);
}

static const char *layer_word(enum layer layer)
{
	return layer == LAYER_MANAGED ? "managed" : layer == LAYER_USER ? "user" : "project";
}

/* ---- matchers ---- */

/* Can this pattern match one of "a|b|c"? */
static bool can_match(const char *pattern, const char *subjects)
{
	while (*subjects) {
		size_t n = strcspn(subjects, "|");
		AUTO_FREE char *subject = mem_strndup(subjects, n);
		if (fnmatch(pattern, subject, FNM_NOESCAPE) == 0)
			return true;
		subjects += n + (subjects[n] == '|');
	}
	return false;
}

/* A tool's name in our words. Patterns and tools of MCP servers are taken as they stand: which of the
 * latter there are is known only once a server runs. */
static const char *tool_word(const char *word)
{
	if (strpbrk(word, "*?[") || text_starts(word, "mcp__"))
		return word;
	return role_tool_name(word);
}

static int take_alternative(const struct reader *r, const char *pointer, const char *word,
			    struct buf *out, struct err *err)
{
	bool tools = hook_event_flags(r->event) & HOOK_OF_TOOLS;
	const char *ours = tools ? tool_word(word) : word;

	if (!ours)
		return wrong(r, pointer, err, "there is no tool", word);
	if (strcmp(ours, "report") == 0)
		return wrong(r, pointer, err, "no hook runs for the tool", word);
	if (!tools && !can_match(word, hook_event_subjects(r->event)))
		return err_set(err, ERR_USAGE, "%s:%d: a matcher of %s is one of %s, not '%.100s'",
			       r->path, yaml_line(r->doc, pointer), hook_event_name(r->event),
			       hook_event_subjects(r->event), word);
	buf_addf(out, "%s%s", out->len ? "|" : "", ours);
	return 0;
}

static int take_matcher(const struct reader *r, const char *pointer, const char *text, char **ret,
			struct err *err)
{
	AUTO_BUF struct buf out = BUF_INIT;
	AUTO_FREE char *copy = mem_strdup(text);

	for (char *rest = copy, *word; (word = strsep(&rest, "|"));) {
		if (!*word && *text)
			return wrong(r, pointer, err, "an empty word stands in the matcher", text);
		if (*word && take_alternative(r, pointer, word, &out, err) < 0)
			return -1;
	}
	free(*ret);
	*ret = out.len ? buf_take(&out) : NULL;
	return 0;
}

/* ---- one hook ---- */

static int take_timeout(const struct reader *r, const char *pointer, const char *text, int64_t *ret,
			struct err *err)
{
	if (text_parse_duration_ms(text, ret) < 0 || *ret < 1 || *ret > TIMEOUT_MAX_MS)
		return wrong(r, pointer, err,
			     "timeout must be a time such as 5s or 2m, at most 10m, not", text);
	return 0;
}

/* Fields of a hook: all are scalars. `type: command` is what others write; it is the only type. */
static int take_field(const struct reader *r, const char *pointer, const char *key,
		      struct json_object *value, struct hook_setting *hook, struct err *err)
{
	static const char *const keys[] = {"matcher", "command", "timeout", "required", "type"};
	enum json_type type = json_object_get_type(value);
	const char *text = value ? json_object_get_string(value) : "";

	if (strcmp(key, "required") == 0) {
		if (type != json_type_boolean)
			return wrong(r, pointer, err, "true or false is expected, not", text);
		if (!(hook_event_flags(r->event) & HOOK_DECIDES))
			return wrong(r, pointer, err, "'required' is for hooks that decide, not of",
				     hook_event_name(r->event));
		hook->required = json_object_get_boolean(value);
		return 0;
	}
	if (strcmp(key, "timeout") == 0 && (type == json_type_int || type == json_type_string))
		return take_timeout(r, pointer, text, &hook->timeout_ms, err);
	if (type != json_type_string)
		return wrong(r, pointer, err, "text is expected for", key);
	if (strcmp(key, "matcher") == 0)
		return take_matcher(r, pointer, text, &hook->matcher, err);
	if (strcmp(key, "type") == 0)
		return strcmp(text, "command") == 0
			       ? 0
			       : wrong(r, pointer, err, "the type of a hook is command, not", text);
	if (strcmp(key, "command") == 0) {
		free(hook->command);
		hook->command = mem_strdup(text);
		return 0;
	}
	const char *near = text_nearest(key, keys, ARRAY_SIZE(keys));
	return err_set(err, ERR_USAGE, "%s:%d: unknown key '%.100s'%s%s%s", r->path,
		       yaml_line(r->doc, pointer), key, near ? "; did you mean '" : "",
		       near ? near : "", near ? "'?" : "");
}

static void hook_release(struct hook_setting *hook)
{
	free(hook->matcher);
	free(hook->command);
	free(hook->origin);
	free(hook->folder);
}

/* Keeps the hook or, of an untrusted file, forgets it. */
static int keep(const struct reader *r, const char *pointer, struct hook_setting *hook,
		struct err *err)
{
	struct settings *s = r->s;

	if (!hook->command || !*hook->command)
		return wrong(r, pointer, err, "a command is missing in a hook of",
			     hook_event_name(r->event));
	if (!r->trusted) {
		hook_release(hook);
		return 0;
	}
	if (s->n_hooks == HOOKS_MAX)
		return err_set(err, ERR_USAGE, "%s:%d: there are more than %d hooks", r->path,
			       yaml_line(r->doc, pointer), HOOKS_MAX);
	hook->event = r->event;
	hook->origin = mem_printf("%s:%d", r->path, yaml_line(r->doc, pointer));
	hook->folder = file_dir(r->path);
	hook->layer = layer_word(r->layer);
	s->hooks = mem_array(s->hooks, s->n_hooks + 1, sizeof(*s->hooks));
	s->hooks[s->n_hooks++] = *hook;
	return 0;
}

static int take_hook(const struct reader *r, const char *pointer, struct json_object *fields,
		     struct err *err)
{
	struct hook_setting hook = {.command = NULL};
	int rc = 0;

	if (!json_object_is_type(fields, json_type_object))
		return wrong(r, pointer, err, "a mapping with a command is expected in",
			     hook_event_name(r->event));
	json_object_object_foreach (fields, key, value) {
		AUTO_FREE char *below = config_pointer(pointer, key);
		rc = rc < 0 ? rc : take_field(r, below, key, value, &hook, err);
	}
	if (rc == 0)
		rc = keep(r, pointer, &hook, err);
	if (rc < 0)
		hook_release(&hook);
	return rc;
}

/* ---- all ---- */

static int unknown_event(const struct reader *r, const char *pointer, const char *name,
			 struct err *err)
{
	const char *names[HOOK_EVENTS_COUNT];

	if (hook_event_is_later(name))
		return err_set(err, ERR_USAGE,
			       "%s:%d: hooks of '%s' do not run in this version of baton: "
			       "take them out",
			       r->path, yaml_line(r->doc, pointer), name);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		names[i] = hook_event_name((enum hook_event)i);
	const char *near = text_nearest(name, names, ARRAY_SIZE(names));
	return err_set(err, ERR_USAGE, "%s:%d: there is no hook event '%.100s'%s%s%s", r->path,
		       yaml_line(r->doc, pointer), name, near ? "; did you mean '" : "",
		       near ? near : "", near ? "'?" : "");
}

static int take_event(struct reader *r, const char *name, struct json_object *list, struct err *err)
{
	AUTO_FREE char *pointer = config_pointer("/hooks", name);
	int event = hook_event_find(name);

	if (event < 0)
		return unknown_event(r, pointer, name, err);
	r->event = (enum hook_event)event;
	if (!json_object_is_type(list, json_type_array))
		return wrong(r, pointer, err, "a list of hooks is expected for", name);
	for (size_t i = 0; i < json_len(list); i++) {
		AUTO_FREE char *below = mem_printf("%s/%zu", pointer, i);
		if (take_hook(r, below, json_at(list, i), err) < 0)
			return -1;
	}
	return 0;
}

int hooks_read(struct settings *s, const struct yaml_doc *doc, struct json_object *value,
	       const char *path, enum layer layer, bool trusted, struct err *err)
{
	struct reader r = {.s = s, .doc = doc, .path = path, .layer = layer, .trusted = trusted};

	if (!json_object_is_type(value, json_type_object))
		return wrong(&r, "/hooks", err, "a mapping from events to lists is expected for",
			     "hooks");
	json_object_object_foreach (value, name, list) {
		if (take_event(&r, name, list, err) < 0)
			return -1;
	}
	return 0;
}

const struct hook_setting *settings_hooks(const struct settings *s, size_t *ret_n)
{
	*ret_n = s->n_hooks;
	return s->hooks;
}

void hooks_release(struct settings *s)
{
	for (size_t i = 0; i < s->n_hooks; i++)
		hook_release(&s->hooks[i]);
	free(s->hooks);
	s->hooks = NULL;
	s->n_hooks = 0;
}
