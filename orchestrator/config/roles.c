/*
 * roles.c - finding and parsing roles; see role.h. Runs in the parent.
 *
 * Two forms exist: our own, in which an unknown key is an error with its line, and the
 * .claude/agents files that are found in the wild, in which it is a note.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/env.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/yaml.h"
#include "orchestrator/config/builtin_roles.h"
#include "orchestrator/role.h"

#define ROLE_FILE_MAX (256 << 10)

static const char *const role_keys[] = {"name",	      "description",  "tools",	 "model",
					"effort",     "write",	      "network", "context",
					"max_rounds", "output_schema"};

/* Names that other tools give to what we have. NULL: we have none. */
static const struct {
	const char *theirs, *ours;
} tool_names[] = {
	{"Read", "read"},      {"Write", "write"},   {"Edit", "edit"},	  {"MultiEdit", "edit"},
	{"Glob", "glob"},      {"LS", "glob"},	     {"Grep", "grep"},	  {"Bash", "shell"},
	{"BashOutput", "job"}, {"KillShell", "job"}, {"KillBash", "job"},
};
static const char *const our_tools[] = {"read", "write", "edit", "glob",
					"grep", "shell", "job",	 "report"};

struct parser {
	struct role *role;
	struct yaml_doc *doc;
	const char *path;
	bool claude;
	size_t n_notes, n_tools;
};

static void add_note(struct parser *p, const char *what, const char *subject)
{
	struct role *role = p->role;

	role->notes = mem_array(role->notes, p->n_notes + 2, sizeof(*role->notes));
	role->notes[p->n_notes++] = mem_printf("%s: %s '%s'", p->path, what, subject);
	role->notes[p->n_notes] = NULL;
}

static int at(const struct parser *p, const char *key, struct err *err, const char *what,
	      const char *subject)
{
	AUTO_FREE char *pointer = mem_printf("/%s", key);

	return err_set(err, ERR_USAGE, "%s:%d: %s '%s'", p->path, yaml_line(p->doc, pointer), what,
		       subject);
}

/* ---- tools ---- */

static const char *tool_of(const char *word)
{
	for (size_t i = 0; i < ARRAY_SIZE(our_tools); i++) {
		if (strcasecmp(our_tools[i], word) == 0)
			return our_tools[i];
	}
	for (size_t i = 0; i < ARRAY_SIZE(tool_names); i++) {
		if (strcasecmp(tool_names[i].theirs, word) == 0)
			return tool_names[i].ours;
	}
	return NULL;
}

static void add_tool(struct parser *p, const char *name)
{
	struct role *role = p->role;

	for (size_t i = 0; i < p->n_tools; i++) {
		if (strcmp(role->tools[i], name) == 0)
			return;
	}
	role->tools = mem_array(role->tools, p->n_tools + 2, sizeof(*role->tools));
	role->tools[p->n_tools++] = mem_strdup(name);
	role->tools[p->n_tools] = NULL;
}

static int take_tool(struct parser *p, const char *word, struct err *err)
{
	AUTO_FREE char *name = mem_strndup(word, strcspn(word, "(")); /* Bash(git:*) */
	const char *ours = tool_of(name);

	if (ours)
		add_tool(p, ours);
	else if (p->claude)
		add_note(p, "there is no tool like", word);
	else
		return at(p, "tools", err, "unknown tool", word);
	return 0;
}

/* A list, or "Read, Edit, Bash" in one string; "*" and "all" stand for all. */
static int take_tools(struct parser *p, struct json_object *value, struct err *err)
{
	for (size_t i = 0; i < json_len(value); i++) {
		if (take_tool(p, json_object_get_string(json_at(value, i)), err) < 0)
			return -1;
	}
	if (!json_object_is_type(value, json_type_string))
		return 0;
	const char *text = json_object_get_string(value);
	if (strcmp(text, "*") == 0 || strcmp(text, "all") == 0)
		return 0;
	while (*text) {
		text += strspn(text, ", \t");
		size_t n = strcspn(text, ",");
		AUTO_FREE char *word = mem_strndup(text, n);
		for (size_t k = n; k > 0 && (word[k - 1] == ' ' || word[k - 1] == '\t'); k--)
			word[k - 1] = '\0';
		if (*word && take_tool(p, word, err) < 0)
			return -1;
		text += n;
	}
	return 0;
}

/* ---- fields ---- */

static int take_string(struct parser *p, const char *key, char **to, struct err *err)
{
	struct json_object *value = json_get(yaml_root(p->doc), key);

	if (!value)
		return 0;
	if (!json_object_is_type(value, json_type_string))
		return at(p, key, err, "text is expected for", key);
	free(*to);
	*to = mem_strdup(json_object_get_string(value));
	return 0;
}

static int check_keys(struct parser *p, struct err *err)
{
	struct json_object *root = yaml_root(p->doc);

	json_object_object_foreach (root, key, value) {
		size_t i = 0;
		(void)value;
		while (i < ARRAY_SIZE(role_keys) && strcmp(role_keys[i], key) != 0)
			i++;
		if (i < ARRAY_SIZE(role_keys))
			continue;
		if (p->claude) {
			add_note(p, "not used here:", key);
			continue;
		}
		const char *near = text_nearest(key, role_keys, ARRAY_SIZE(role_keys));
		AUTO_FREE char *text =
			near ? mem_printf("unknown key '%s'; did you mean '%s'?", key, near)
			     : mem_printf("unknown key '%s'", key);
		return at(p, key, err, "%s", text);
	}
	return 0;
}

static int take_choice(struct parser *p, const char *key, const char *const *choices, char **to,
		       struct err *err)
{
	if (take_string(p, key, to, err) < 0)
		return -1;
	if (!*to)
		return 0;
	for (; *choices; choices++) {
		if (strcmp(*choices, *to) == 0)
			return 0;
	}
	if (!p->claude)
		return at(p, key, err, "unknown value", *to);
	add_note(p, "not used here:", *to);
	free(*to);
	*to = NULL;
	return 0;
}

/* "inherit" and family names of other tools leave the run's model. */
static int take_model(struct parser *p, struct err *err)
{
	struct role *role = p->role;

	if (take_string(p, "model", &role->model, err) < 0)
		return -1;
	if (!role->model || strchr(role->model, '/'))
		return 0;
	if (!p->claude && strcmp(role->model, "inherit") != 0)
		return at(p, "model", err, "write PROVIDER/NAME or inherit, not", role->model);
	if (strcmp(role->model, "inherit") != 0)
		add_note(p, "the run's model is used instead of", role->model);
	free(role->model);
	role->model = NULL;
	return 0;
}

static int take_numbers(struct parser *p, struct err *err)
{
	struct json_object *root = yaml_root(p->doc);
	struct json_object *context = json_get(root, "context");
	struct role *role = p->role;

	if (context && !json_object_is_type(context, json_type_object))
		return at(p, "context", err, "a mapping is expected for", "context");
	role->context = json_object_get(context);
	role->max_rounds = json_i64(context, "max_rounds", json_i64(root, "max_rounds", 0));
	role->compact_buffer = json_i64(context, "compact_buffer", 0);
	if (role->max_rounds < 0 || role->compact_buffer < 0)
		return at(p, "context", err, "a negative number stands in", "context");
	struct json_object *schema = json_get(root, "output_schema");
	if (schema && !json_object_is_type(schema, json_type_object))
		return at(p, "output_schema", err, "a mapping is expected for", "output_schema");
	role->output_schema = json_object_get(schema);
	return 0;
}

/* A role writes if it says so, or if its tools can. */
static void decide_write(struct parser *p)
{
	struct json_object *value = json_get(yaml_root(p->doc), "write");
	struct role *role = p->role;

	role->write = value ? json_object_get_boolean(value) : !role->tools;
	for (char **tool = role->tools; !value && tool && *tool; tool++) {
		if (strcmp(*tool, "write") == 0 || strcmp(*tool, "edit") == 0 ||
		    strcmp(*tool, "shell") == 0)
			role->write = true;
	}
}

static int take_fields(struct parser *p, struct err *err)
{
	static const char *const efforts[] = {"low", "medium", "high", NULL};
	static const char *const networks[] = {"none", "loopback", "open", NULL};
	struct role *role = p->role;
	struct json_object *root = yaml_root(p->doc);

	if (root && !json_object_is_type(root, json_type_object))
		return err_set(err, ERR_USAGE, "%s: the front matter must be a mapping", p->path);
	if (check_keys(p, err) < 0 || take_string(p, "name", &role->name, err) < 0 ||
	    take_string(p, "description", &role->description, err) < 0 || take_model(p, err) < 0 ||
	    take_choice(p, "effort", efforts, &role->effort, err) < 0 ||
	    take_choice(p, "network", networks, &role->network, err) < 0 ||
	    take_numbers(p, err) < 0 || take_tools(p, json_get(root, "tools"), err) < 0)
		return -1;
	decide_write(p);
	return 0;
}

int role_parse(const char *text, size_t n, const char *path, bool claude_form, struct role **ret,
	       struct err *err)
{
	const char *yaml, *body;
	size_t yaml_len, body_len;
	struct parser p = {.path = path, .claude = claude_form};

	if (!text_is_utf8(text, n))
		return err_set(err, ERR_USAGE, "%s: the file is not valid UTF-8", path);
	yaml_front_matter(text, n, &yaml, &yaml_len, &body, &body_len);
	if (yaml && yaml_parse(yaml, yaml_len, path, 2, &p.doc, err) < 0) {
		if (err)
			err->code = ERR_USAGE;
		return -1;
	}
	p.role = mem_alloc(sizeof(*p.role));
	p.role->path = mem_strdup(path);
	int rc = 0;
	if (p.doc)
		rc = take_fields(&p, err);
	else
		p.role->write = true;
	while (body_len > 0 && (*body == '\n' || *body == '\r' || *body == ' '))
		body++, body_len--;
	if (rc == 0 && body_len == 0)
		rc = err_set(err, ERR_USAGE, "%s: the role has no prompt below its front matter",
			     path);
	p.role->prompt = mem_strndup(body, body_len);
	yaml_free(p.doc);
	if (rc < 0) {
		role_free(p.role);
		return -1;
	}
	*ret = p.role;
	return 0;
}

/* ---- finding ---- */

/* 1: loaded, 0: not there, -1: there and wrong. */
static int load_from(const char *dir, const char *below, const char *name, bool claude,
		     struct role **ret, struct err *err)
{
	AUTO_FREE char *folder = dir ? file_join(dir, below) : NULL;
	AUTO_FREE char *file = mem_printf("%s.md", name);
	AUTO_FREE char *path = folder ? file_join(folder, file) : NULL;
	AUTO_BUF struct buf text = BUF_INIT;

	if (!path || !file_exists(path))
		return 0;
	if (file_read(AT_FDCWD, path, ROLE_FILE_MAX, &text, err) < 0)
		return -1;
	return role_parse(buf_str(&text), text.len, path, claude, ret, err) < 0 ? -1 : 1;
}

static int load_builtin(const char *name, struct role **ret, struct err *err)
{
	for (size_t i = 0; i < builtin_roles_count; i++) {
		if (strcmp(builtin_roles[i].name, name) == 0)
			return role_parse(builtin_roles[i].text, builtin_roles[i].size, "built in",
					  false, ret, err) < 0
				       ? -1
				       : 1;
	}
	return 0;
}

static int no_such_role(const char *name, struct err *err)
{
	const char *names[64];
	size_t n = 0;

	for (size_t i = 0; i < builtin_roles_count && n < ARRAY_SIZE(names); i++)
		names[n++] = builtin_roles[i].name;
	const char *near = text_nearest(name, names, n);
	return err_set(
		err, ERR_NOT_FOUND,
		"there is no role '%s'%s%s%s; looked in .baton/agents/, the user's configuration, "
		".claude/agents/ and the built-in ones",
		name, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

int role_load(const char *name, const char *project_dir, struct role **ret, struct err *err)
{
	AUTO_FREE char *config = env_config_dir();

	if (!*name || strchr(name, '/') || name[0] == '.')
		return err_set(err, ERR_USAGE, "'%s' is no role name", name);
	int rc = load_from(project_dir, ".baton/agents", name, false, ret, err);
	if (rc == 0)
		rc = load_from(config, "agents", name, false, ret, err);
	if (rc == 0)
		rc = load_from(project_dir, ".claude/agents", name, true, ret, err);
	if (rc == 0)
		rc = load_from(env_home(), ".claude/agents", name, true, ret, err);
	if (rc == 0)
		rc = load_builtin(name, ret, err);
	if (rc == 0)
		return no_such_role(name, err);
	if (rc < 0)
		return -1;
	if (!(*ret)->name)
		(*ret)->name = mem_strdup(name);
	return 0;
}

void role_free(struct role *role)
{
	if (!role)
		return;
	for (size_t i = 0; role->tools && role->tools[i]; i++)
		free(role->tools[i]);
	for (size_t i = 0; role->notes && role->notes[i]; i++)
		free(role->notes[i]);
	free(role->tools);
	free(role->notes);
	free(role->name);
	free(role->description);
	free(role->prompt);
	free(role->path);
	free(role->model);
	free(role->effort);
	free(role->network);
	json_object_put(role->output_schema);
	json_object_put(role->context);
	free(role);
}
