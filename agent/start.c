/*
 * start.c - reads the start document by one table of fields.
 *
 * The table says for each field where it stands, its kind, whether it may be absent, its range and
 * its place in struct agent_settings. So the check, the typed copy and the error text come from the
 * same row, and a new field is one line. What does not fit a row (the instructions list, the model)
 * has a function of its own below. This runs once, in the agent's process, before anything else is
 * made; nothing here reads a file or the environment.
 */
#include "agent/start.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/memory.h"

enum field_kind {
	FIELD_STR,    /* const char * */
	FIELD_I64,    /* int64_t, range min..max */
	FIELD_FLAG,   /* bool */
	FIELD_CHOICE, /* const char *, one of `choices`, separated by '|' */
	FIELD_LIST,   /* const char **, NULL-terminated */
	FIELD_OBJECT, /* struct json_object * */
};

enum field_flag {
	FIELD_OPTIONAL = 1, /* may be absent or null: `dflt` */
	FIELD_FILLED = 2,   /* a string that must not be empty */
};

struct field {
	const char *object; /* NULL: top level */
	const char *key;
	enum field_kind kind;
	unsigned flags;
	size_t offset;
	int64_t min, max, dflt;
	const char *choices;
};

#define AT(member)  .offset = offsetof(struct agent_settings, member)
#define TIME_MAX_MS (7LL * 24 * 3600 * 1000)

static const struct field fields[] = {
	{NULL, "run", FIELD_STR, FIELD_FILLED, AT(run)},
	{NULL, "agent", FIELD_STR, FIELD_FILLED, AT(agent)},
	{NULL, "generation", FIELD_I64, 0, AT(generation), .min = 1, .max = INT32_MAX},
	{NULL, "resume_note", FIELD_STR, FIELD_OPTIONAL, AT(resume_note)},
	{NULL, "resume", FIELD_FLAG, FIELD_OPTIONAL, AT(resume)},
	{"handoff", "file", FIELD_STR, FIELD_OPTIONAL, AT(handoff_file)},
	{"handoff", "from", FIELD_I64, FIELD_OPTIONAL, AT(handoff_from), .max = INT32_MAX},
	{"handoff", "reason", FIELD_STR, FIELD_OPTIONAL, AT(handoff_reason)},
	{"fork", "agent", FIELD_STR, FIELD_OPTIONAL, AT(fork_agent)},
	{"fork", "folder", FIELD_STR, FIELD_OPTIONAL, AT(fork_folder)},
	{"fork", "call", FIELD_STR, FIELD_OPTIONAL, AT(fork_call)},
	{"fork", "worktree", FIELD_STR, FIELD_OPTIONAL, AT(fork_worktree)},
	{"fork", "generation", FIELD_I64, FIELD_OPTIONAL, AT(fork_generation), .max = INT32_MAX},
	{"role", "reset", FIELD_CHOICE, FIELD_OPTIONAL, AT(reset),
	 .choices = "auto|never|per_stage"},
	{"role", "name", FIELD_STR, FIELD_FILLED, AT(role)},
	{"role", "prompt", FIELD_STR, 0, AT(prompt)},
	{"role", "tools", FIELD_LIST, 0, AT(tools)},
	{"role", "write", FIELD_FLAG, 0, AT(write)},
	{"role", "network", FIELD_CHOICE, 0, AT(network), .choices = "none|loopback|open"},
	{"role", "effort", FIELD_CHOICE, FIELD_OPTIONAL, AT(effort), .choices = "low|medium|high"},
	{"role", "max_rounds", FIELD_I64, FIELD_OPTIONAL, AT(max_rounds), .min = 1, .max = 1000000,
	 .dflt = 100},
	{"role", "max_output", FIELD_I64, FIELD_OPTIONAL, AT(max_output), .min = 1, .max = 10000000,
	 .dflt = 16000},
	{"role", "output_schema", FIELD_OBJECT, FIELD_OPTIONAL, AT(output_schema)},
	{NULL, "task", FIELD_STR, FIELD_FILLED, AT(task)},
	{NULL, "brief", FIELD_STR, FIELD_OPTIONAL, AT(brief)},
	{NULL, "memory", FIELD_STR, FIELD_OPTIONAL, AT(memory)},
	{"environment", "branch", FIELD_STR, FIELD_OPTIONAL, AT(branch)},
	{"environment", "base", FIELD_STR, FIELD_OPTIONAL, AT(base)},
	{"environment", "platform", FIELD_STR, FIELD_OPTIONAL, AT(platform)},
	{"environment", "date", FIELD_STR, FIELD_OPTIONAL, AT(date)},
	{"environment", "repository", FIELD_STR, FIELD_OPTIONAL, AT(repository)},
	{"dirs", "generation", FIELD_STR, FIELD_FILLED, AT(dir_generation)},
	{"dirs", "worktree", FIELD_STR, FIELD_FILLED, AT(dir_worktree)},
	{"dirs", "git", FIELD_STR, FIELD_OPTIONAL, AT(dir_git)},
	{"dirs", "scratch", FIELD_STR, FIELD_FILLED, AT(dir_scratch)},
	{"dirs", "cache", FIELD_STR, FIELD_FILLED, AT(dir_cache)},
	{"dirs", "stderr", FIELD_STR, FIELD_OPTIONAL, AT(stderr_path)},
	{NULL, "git_file", FIELD_STR, FIELD_OPTIONAL, AT(git_file)},
	{NULL, "head_ref", FIELD_STR, FIELD_OPTIONAL, AT(head_ref)},
	{NULL, "worktree_ready", FIELD_FLAG, 0, AT(worktree_ready)},
	{NULL, "verbose", FIELD_FLAG, FIELD_OPTIONAL, AT(verbose)},
	{NULL, "subagents", FIELD_FLAG, FIELD_OPTIONAL, AT(subagents)},
	{NULL, "read_only", FIELD_FLAG, FIELD_OPTIONAL, AT(read_only)},
	{"box", "program", FIELD_STR, FIELD_OPTIONAL, AT(box_program)},
	{"box", "level", FIELD_CHOICE, 0, AT(box_level),
	 .choices = "auto|landlock|partial|unconfined"},
	{"box", "read_paths", FIELD_LIST, FIELD_OPTIONAL, AT(read_paths)},
	{"box", "pass_env", FIELD_LIST, FIELD_OPTIONAL, AT(pass_env)},
	{NULL, "image_program", FIELD_STR, FIELD_OPTIONAL, AT(image_program)},
	{"limits", "shell_timeout_ms", FIELD_I64, FIELD_OPTIONAL, AT(shell_timeout_ms), .min = 1,
	 .max = TIME_MAX_MS, .dflt = 120000},
	{"limits", "shell_timeout_max_ms", FIELD_I64, FIELD_OPTIONAL, AT(shell_timeout_max_ms),
	 .min = 1, .max = TIME_MAX_MS, .dflt = 600000},
	{"limits", "checkpoint_ms", FIELD_I64, FIELD_OPTIONAL, AT(checkpoint_ms), .max = INT64_MAX},
	{"limits", "report_tokens", FIELD_I64, FIELD_OPTIONAL, AT(report_tokens), .min = 100,
	 .max = 1000000, .dflt = 2000},
	{"context", "calibration", FIELD_OBJECT, FIELD_OPTIONAL, AT(calibration)},
};

static const char *const kind_names[] = {
	[FIELD_STR] = "a string",	    [FIELD_I64] = "an integer",
	[FIELD_FLAG] = "true or false",	    [FIELD_CHOICE] = "a string",
	[FIELD_LIST] = "a list of strings", [FIELD_OBJECT] = "an object",
};

static const enum json_type kind_types[] = {
	[FIELD_STR] = json_type_string,	  [FIELD_I64] = json_type_int,
	[FIELD_FLAG] = json_type_boolean, [FIELD_CHOICE] = json_type_string,
	[FIELD_LIST] = json_type_array,	  [FIELD_OBJECT] = json_type_object,
};

/* "role.name" or "run"; valid until the next call. */
static const char *field_path(const struct field *f)
{
	static char path[80];

	snprintf(path, sizeof(path), "%s%s%s", f->object ? f->object : "", f->object ? "." : "",
		 f->key);
	return path;
}

/* json-c clamps what does not fit 64 bits, so a huge number fails the range and does not wrap. */
static int field_i64(const struct field *f, struct json_object *value, int64_t *ret,
		     struct err *err)
{
	int64_t n = json_object_get_int64(value);

	if (n < f->min || n > f->max)
		return err_set(err, ERR_INVALID,
			       "field '%s' is %" PRId64 ", it must be from %" PRId64 " to %" PRId64,
			       field_path(f), n, f->min, f->max);
	*ret = n;
	return 0;
}

static int field_str(const struct field *f, struct json_object *value, const char **ret,
		     struct err *err)
{
	const char *s = json_object_get_string(value);

	if ((f->flags & FIELD_FILLED) && !*s)
		return err_set(err, ERR_INVALID, "field '%s' must not be empty", field_path(f));
	*ret = s;
	return 0;
}

/* Whole words only: 'non' is not 'none'. */
static int field_choice(const struct field *f, struct json_object *value, const char **ret,
			struct err *err)
{
	const char *s = json_object_get_string(value);
	size_t n = strlen(s);

	if (!n && (f->flags & FIELD_OPTIONAL))
		return 0; /* a setting that was left empty */
	for (const char *p = f->choices; n && p; p = strchr(p, '|'), p = p ? p + 1 : NULL) {
		if (!strncmp(p, s, n) && (p[n] == '|' || !p[n])) {
			*ret = s;
			return 0;
		}
	}
	return err_set(err, ERR_INVALID, "field '%s' is '%.40s', it must be one of %s",
		       field_path(f), s, f->choices);
}

/* The list's strings stay in the document; only the array is ours. */
static int field_list(const struct field *f, struct json_object *value, const char ***ret,
		      struct err *err)
{
	size_t n = json_len(value);
	const char **list = mem_array(NULL, n + 1, sizeof(*list));

	for (size_t i = 0; i < n; i++) {
		struct json_object *item = json_at(value, i);

		if (!json_object_is_type(item, json_type_string)) {
			free(list);
			return err_set(err, ERR_INVALID, "field '%s[%zu]' must be a string",
				       field_path(f), i);
		}
		list[i] = json_object_get_string(item);
	}
	list[n] = NULL;
	*ret = list;
	return 0;
}

/* The value of an absent optional field. Lists and texts that callers walk are empty, not NULL. */
static void field_default(const struct field *f, void *place)
{
	if (f->kind == FIELD_I64)
		*(int64_t *)place = f->dflt;
	else if (f->kind == FIELD_LIST)
		*(const char ***)place = mem_alloc(sizeof(char *));
}

static int field_read(const struct field *f, struct json_object *doc, void *place, struct err *err)
{
	struct json_object *object = f->object ? json_obj(doc, f->object) : doc;
	struct json_object *value = json_get(object, f->key);

	if (!value) {
		if (!(f->flags & FIELD_OPTIONAL))
			return err_set(err, ERR_INVALID, "missing field '%s'", field_path(f));
		field_default(f, place);
		return 0;
	}
	if (!json_object_is_type(value, kind_types[f->kind]))
		return err_set(err, ERR_INVALID, "field '%s' must be %s", field_path(f),
			       kind_names[f->kind]);
	switch (f->kind) {
	case FIELD_STR: return field_str(f, value, place, err);
	case FIELD_I64: return field_i64(f, value, place, err);
	case FIELD_CHOICE: return field_choice(f, value, place, err);
	case FIELD_LIST: return field_list(f, value, place, err);
	case FIELD_FLAG: *(bool *)place = json_object_get_boolean(value); return 0;
	case FIELD_OBJECT: *(struct json_object **)place = value; return 0;
	}
	return 0;
}

/* A list of objects does not fit a row. An absent list is an empty one: a repository without
 * AGENTS.md. */
static int read_instructions(struct agent_settings *s, struct err *err)
{
	struct json_object *list = NULL;
	size_t n;

	if (!json_get(s->doc, "instructions"))
		return 0;
	if (json_need_arr(s->doc, "instructions", &list, err) < 0)
		return -1;
	n = json_len(list);
	s->instructions = mem_alloc((n + 1) * sizeof(*s->instructions));
	for (size_t i = 0; i < n; i++) {
		struct start_instructions *in = &s->instructions[i];
		struct json_object *item = json_at(list, i);

		if (json_need_str(item, "origin", &in->origin, err) < 0 ||
		    json_need_str(item, "path", &in->path, err) < 0 ||
		    json_need_str(item, "text", &in->text, err) < 0)
			return err_prefix(err, "instructions[%zu]", i);
		s->n_instructions++;
	}
	return 0;
}

static int read_hooks(struct agent_settings *s, struct err *err)
{
	struct json_object *list = json_arr(s->doc, "hooks");
	size_t n = json_len(list);

	s->hooks = mem_alloc((n + 1) * sizeof(*s->hooks));
	for (size_t i = 0; i < n; i++) {
		const char *name = "";
		struct json_object *item = json_at(list, i);

		if (json_need_str(item, "event", &name, err) < 0 ||
		    json_need_str(item, "matcher", &s->hooks[i].matcher, err) < 0)
			return err_prefix(err, "hooks[%zu]", i);
		int event = hook_event_find(name);
		if (event < 0)
			return err_set(err, ERR_INVALID, "hooks[%zu]: no event '%.40s'", i, name);
		s->hooks[i].event = (enum hook_event)event;
		s->n_hooks++;
	}
	return 0;
}

/* X2 hangs on it: only a task in the user's own words counts as his words. */
static int read_task_origin(struct agent_settings *s, struct err *err)
{
	const char *origin = json_str(s->doc, "task_origin", "");

	if (!strcmp(origin, "user"))
		s->task_origin = ORIGIN_USER;
	else if (!strcmp(origin, "agent"))
		s->task_origin = ORIGIN_TASK;
	else
		return err_set(err, ERR_INVALID, "field 'task_origin' must be 'user' or 'agent'");
	return 0;
}

#define WINDOW_MAX 1000000000 /* tokens; no model comes near, and shares of it never overflow */

/* The window is refused here and not guessed: a wrong guess shows itself as an overflow in an hour.
 */
static int read_model(struct agent_settings *s, struct err *err)
{
	struct json_object *model = NULL;

	if (json_need_obj(s->doc, "model", &model, err) < 0)
		return -1;
	if (model_from_json(model, &s->model, err) < 0)
		return err_prefix(err, "field 'model'");
	if (s->model->window > WINDOW_MAX)
		return err_set(err, ERR_INVALID, "field 'model.window' is above %d", WINDOW_MAX);
	if (s->model->window <= 0)
		return err_set(err, ERR_USAGE,
			       "the context window of model '%s/%s' is not known: give it with "
			       "--window TOKENS",
			       s->model->provider, s->model->name);
	return 0;
}

static int read_compact_model(struct agent_settings *s, struct err *err)
{
	struct json_object *model = json_obj(s->doc, "compact_model");

	if (!model)
		return 0;
	if (model_from_json(model, &s->compact_model, err) < 0)
		return err_prefix(err, "field 'compact_model'");
	if (s->compact_model->window <= 0 || s->compact_model->window > WINDOW_MAX)
		return err_set(err, ERR_INVALID, "field 'compact_model.window' is not from 1 to %d",
			       WINDOW_MAX);
	return 0;
}

/* The numbers of the context engine: every row of knobs.h is an optional member of `context`. */
static int read_knobs(struct agent_settings *s, struct err *err)
{
	size_t n;
	const struct knob *table = knob_table(&n);

	for (size_t i = 0; i < n; i++) {
		const struct knob *k = &table[i];
		bool flag = k->kind == KNOB_FLAG;
		bool value = k->dflt;
		struct field f = {.object = "context",
				  .key = k->name,
				  .kind = flag ? FIELD_FLAG : FIELD_I64,
				  .flags = FIELD_OPTIONAL,
				  .min = k->min,
				  .max = k->max,
				  .dflt = k->dflt};
		int64_t *place = (int64_t *)((char *)&s->knobs + k->offset);

		if (field_read(&f, s->doc, flag ? (void *)&value : (void *)place, err) < 0)
			return -1;
		if (flag)
			*place = value;
	}
	return 0;
}

static int settings_read(struct agent_settings *s, struct err *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		if (field_read(&fields[i], s->doc, (char *)s + fields[i].offset, err) < 0)
			return -1;
	if (read_knobs(s, err) < 0)
		return -1;
	if (!s->brief)
		s->brief = "";
	if (!s->reset)
		s->reset = "never";
	if (s->fork_call && (!s->fork_agent || !s->fork_folder))
		return err_set(err, ERR_INVALID, "field 'fork' names no agent or no folder");
	/* A default above the maximum means that the maximum was forgotten. */
	if (s->shell_timeout_max_ms < s->shell_timeout_ms)
		s->shell_timeout_max_ms = s->shell_timeout_ms;
	if (read_task_origin(s, err) < 0 || read_instructions(s, err) < 0 || read_hooks(s, err) < 0)
		return -1;
	return read_model(s, err) < 0 ? -1 : read_compact_model(s, err);
}

int agent_settings_parse(const char *bytes, size_t n, struct agent_settings **ret, struct err *err)
{
	struct agent_settings *s = mem_alloc(sizeof(*s));

	if (json_parse(bytes, n, &s->doc, err) < 0) {
		err_prefix(err, "start document");
		agent_settings_free(s);
		return -1;
	}
	if (!json_object_is_type(s->doc, json_type_object)) {
		agent_settings_free(s);
		return err_set(err, ERR_INVALID, "start document: it must be an object");
	}
	if (settings_read(s, err) < 0) {
		agent_settings_free(s);
		return err_prefix(err, "start document");
	}
	*ret = s;
	return 0;
}

void agent_settings_free(struct agent_settings *settings)
{
	if (!settings)
		return;
	free(settings->tools);
	free(settings->read_paths);
	free(settings->pass_env);
	free(settings->instructions);
	free(settings->hooks);
	model_free(settings->model);
	model_free(settings->compact_model);
	json_object_put(settings->doc);
	free(settings);
}
