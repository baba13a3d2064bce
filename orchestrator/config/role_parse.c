/*
 * role_parse.c - one role file's text becomes a struct role; see role.h. Runs in the parent.
 *
 * Two forms exist: our own, in which an unknown key or a wrong type is an error with its line, and
 * the .claude/agents files that are found in the wild, in which it is a note. What a file says
 * about rights is never read as more than it says: an unknown tool is no tool, a list of unknown
 * tools is an empty list, and what is not plainly true is false. The one exception is a limit
 * within a tool ("Bash(git:*)"), which nothing enforces: the whole tool is given and a note says
 * so, since a role without its shell would be of no use at all.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "base/text.h"
#include "base/yaml.h"
#include "orchestrator/config/front_matter.h"
#include "orchestrator/config/store.h"
#include "orchestrator/role.h"

static const char *const role_keys[] = {"name",	      "description",  "tools",	 "model",
					"effort",     "write",	      "network", "context",
					"max_rounds", "output_schema"};

/* Names that other tools give to what we have. NULL: we have none. */
static const struct {
	const char *theirs, *ours;
} tool_names[] = {
	{"Read", "read"},      {"Write", "write"},   {"Edit", "edit"},	  {"MultiEdit", "edit"},
	{"Glob", "glob"},      {"LS", "glob"},	     {"Grep", "grep"},	  {"Bash", "shell"},
	{"BashOutput", "job"}, {"KillShell", "job"}, {"KillBash", "job"}, {"TodoWrite", "notes"},
	{"TodoRead", "notes"}, {"Task", "agent"},    {"Agent", "agent"},
};
static const char *const our_tools[] = {"read", "write", "edit",   "glob",  "grep",  "shell",
					"job",	"notes", "recall", "agent", "report"};

struct parser {
	struct role *role;
	struct yaml_doc *doc;
	const char *path;
	bool claude;
	size_t n_notes, n_tools;
};

/* For the user, shown once when the agent starts. */
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

/* An error in our form, a note in the other; then the field counts as not given. */
static int wrong(struct parser *p, const char *key, struct err *err, const char *what,
		 const char *subject)
{
	if (!p->claude)
		return at(p, key, err, what, subject);
	add_note(p, what, subject);
	return 0;
}

/* ---- tools ---- */

const char *role_tool_name(const char *word)
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

/* Names of both worlds are taken in both forms, whatever their case. */
static int take_tool(struct parser *p, const char *word, struct err *err)
{
	const char *limit = strchr(word, '('); /* Bash(git:*) */
	AUTO_FREE char *name = mem_strndup(word, strcspn(word, "( "));
	const char *ours = role_tool_name(name);

	if (!ours)
		return wrong(p, "tools", err, "there is no tool", word);
	if (limit && !p->claude)
		return at(p, "tools", err, "a tool is named without limits, not as", word);
	if (limit)
		add_note(p, "the tool is given without the limits of", word);
	add_tool(p, ours);
	return 0;
}

/* Length of the first entry of "Read, Bash(git add:*, git commit:*), Edit". */
static size_t entry_len(const char *text)
{
	size_t n = 0;

	for (int depth = 0; text[n] && (depth > 0 || text[n] != ','); n++)
		depth += text[n] == '(' ? 1 : text[n] == ')' && depth > 0 ? -1 : 0;
	return n;
}

static int take_tool_words(struct parser *p, const char *text, struct err *err)
{
	while (*text) {
		text += strspn(text, ", \t\n");
		size_t n = entry_len(text);
		AUTO_FREE char *word = mem_strndup(text, n);
		for (size_t k = n; k > 0 && strchr(" \t\n", word[k - 1]); k--)
			word[k - 1] = '\0';
		if (*word && take_tool(p, word, err) < 0)
			return -1;
		text += n;
	}
	return 0;
}

static int take_tool_list(struct parser *p, struct json_object *value, struct err *err)
{
	for (size_t i = 0; i < json_len(value); i++) {
		struct json_object *item = json_at(value, i);
		if (!json_object_is_type(item, json_type_string)) {
			if (wrong(p, "tools", err, "a list of names is expected for", "tools") < 0)
				return -1;
		} else if (take_tool(p, json_object_get_string(item), err) < 0) {
			return -1;
		}
	}
	return 0;
}

/* A list, or "Read, Edit, Bash" in one string; "*" and "all" stand for all, as does no `tools`. */
static int take_tools(struct parser *p, struct json_object *value, struct err *err)
{
	const char *text =
		json_object_is_type(value, json_type_string) ? json_object_get_string(value) : NULL;

	if (!value || (text && (strcmp(text, "*") == 0 || strcmp(text, "all") == 0)))
		return 0;
	p->role->tools = mem_alloc(sizeof(*p->role->tools)); /* a list, if an empty one */
	if (text)
		return take_tool_words(p, text, err);
	if (json_object_is_type(value, json_type_array))
		return take_tool_list(p, value, err);
	return wrong(p, "tools", err, "a list of names is expected for", "tools");
}

/* ---- fields ---- */

/* Absent and null are the same: the field keeps what it has. */
static int take_string(struct parser *p, const char *key, char **to, struct err *err)
{
	struct json_object *value = json_get(yaml_root(p->doc), key);

	if (!value)
		return 0;
	if (!json_object_is_type(value, json_type_string))
		return wrong(p, key, err, "text is expected for", key);
	free(*to);
	*to = mem_strdup(json_object_get_string(value));
	return 0;
}

/* Keys that we do not know: a typing error in our form, another tool's setting in the other. */
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
		AUTO_FREE char *pointer = config_pointer("", key);
		AUTO_FREE char *what = near ? mem_printf("unknown key (did you mean '%s'?)", near)
					    : mem_strdup("unknown key");
		return at(p, pointer + 1, err, what, key);
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
	if (wrong(p, key, err, "unknown value", *to) < 0)
		return -1;
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

/* `pointer` is the field's place for the message, without its first slash. */
#define NUMBER_MAX 1000000

static int take_number(struct parser *p, struct json_object *from, const char *pointer,
		       const char *key, int64_t *to, struct err *err)
{
	struct json_object *value = json_get(from, key);

	if (!value)
		return 0;
	if (!json_object_is_type(value, json_type_int) || json_object_get_int64(value) < 0 ||
	    json_object_get_int64(value) > NUMBER_MAX)
		return wrong(p, pointer, err, "a number from 0 to 1,000,000 is expected for", key);
	*to = json_object_get_int64(value);
	return 0;
}

static int take_mapping(struct parser *p, const char *key, struct json_object **to, struct err *err)
{
	struct json_object *value = json_get(yaml_root(p->doc), key);

	if (value && !json_object_is_type(value, json_type_object))
		return wrong(p, key, err, "a mapping is expected for", key);
	*to = json_object_get(value);
	return 0;
}

/* What `context:` may hold beside numbers of the context engine. */
static bool is_other_member(const char *name)
{
	static const char *const names[] = {"max_rounds", "compact_model", "reset"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (strcmp(names[i], name) == 0)
			return true;
	}
	return false;
}

/* What is wrong is an error in our form; in the other it is somebody else's setting. */
static int take_knobs(struct parser *p, struct json_object *context, struct err *err)
{
	struct role *role = p->role;

	if (!context)
		return 0;
	role->knobs = json_object_new_object();
	json_object_object_foreach (context, name, value) {
		AUTO_FREE char *pointer = config_pointer("/context", name);
		const struct knob *knob = NULL;
		int64_t number = 0;

		if (is_other_member(name))
			continue;
		if (knob_member(name, value, p->path, p->doc, pointer, &knob, &number,
				p->claude ? NULL : err) == 0)
			json_set_i64(role->knobs, knob->name, number);
		else if (p->claude)
			add_note(p, "not used here: context", name);
		else
			return -1;
	}
	return 0;
}

static int take_compact_model(struct parser *p, struct json_object *context, struct err *err)
{
	static const char pointer[] = "context/compact_model";
	struct json_object *value = json_get(context, "compact_model");
	const char *name = json_object_get_string(value);

	if (!value)
		return 0;
	if (!json_object_is_type(value, json_type_string) ||
	    (!strchr(name, '/') && strcmp(name, "inherit") != 0))
		return wrong(p, pointer, err, "write PROVIDER/NAME or inherit, not", name);
	p->role->compact_model = mem_strdup(name);
	return 0;
}

static int take_reset_mapping(struct parser *p, struct json_object *value, struct err *err)
{
	static const char pointer[] = "context/reset";
	struct json_object *n = json_get(value, "after_compactions");
	struct role *role = p->role;

	if (!json_object_is_type(n, json_type_int) || json_len(value) > 1 ||
	    json_object_get_int64(n) < 1 || json_object_get_int64(n) > NUMBER_MAX)
		return wrong(p, pointer, err, "after_compactions wants a number of 1 or more in",
			     "reset");
	if (!role->knobs)
		role->knobs = json_object_new_object();
	json_set_i64(role->knobs, "max_compactions", json_object_get_int64(n));
	role->reset = mem_strdup("auto");
	return 0;
}

/* A word, or {after_compactions: N}, which is the word auto with the number of the context engine. */
static int take_reset(struct parser *p, struct json_object *context, struct err *err)
{
	static const char *const words[] = {"auto", "never", "per_stage"};
	struct json_object *value = json_get(context, "reset");
	const char *word = json_object_get_string(value);

	if (!value)
		return 0;
	if (json_object_is_type(value, json_type_object))
		return take_reset_mapping(p, value, err);
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (json_object_is_type(value, json_type_string) && strcmp(words[i], word) == 0) {
			p->role->reset = mem_strdup(word);
			return 0;
		}
	}
	return wrong(p, "context/reset", err,
		     "write auto, never, per_stage or after_compactions: N, not", word);
}

/* `context:` is kept whole for the parts that read more of it. */
static int take_limits(struct parser *p, struct err *err)
{
	struct json_object *root = yaml_root(p->doc);
	struct role *role = p->role;

	if (take_mapping(p, "context", &role->context, err) < 0 ||
	    take_mapping(p, "output_schema", &role->output_schema, err) < 0 ||
	    take_number(p, root, "max_rounds", "max_rounds", &role->max_rounds, err) < 0)
		return -1;
	struct json_object *context = role->context;
	if (take_number(p, context, "context/max_rounds", "max_rounds", &role->max_rounds, err) < 0)
		return -1;
	if (take_compact_model(p, context, err) < 0)
		return -1;
	return take_knobs(p, context, err) < 0 ? -1 : take_reset(p, context, err);
}

/* A role writes if it says so, or if its tools can. YAML's "no" and "off" are words, not false. */
static int take_write(struct parser *p, struct err *err)
{
	struct json_object *value = json_get(yaml_root(p->doc), "write");
	struct role *role = p->role;

	role->write = false;
	if (value && !json_object_is_type(value, json_type_boolean))
		return wrong(p, "write", err, "true or false is expected for", "write");
	role->write = value ? json_object_get_boolean(value) : !role->tools;
	for (char **tool = role->tools; !value && tool && *tool; tool++) {
		if (strcmp(*tool, "write") == 0 || strcmp(*tool, "edit") == 0 ||
		    strcmp(*tool, "shell") == 0)
			role->write = true;
	}
	return 0;
}

static int take_fields(struct parser *p, struct err *err)
{
	static const char *const efforts[] = {"low", "medium", "high", NULL};
	static const char *const networks[] = {"none", "loopback", "open", NULL};
	struct role *role = p->role;
	struct json_object *root = yaml_root(p->doc);

	if (root && !json_object_is_type(root, json_type_object))
		return err_set(err, ERR_USAGE, "%s: the front matter must be a mapping", p->path);
	if ((root && check_keys(p, err) < 0) || take_string(p, "name", &role->name, err) < 0 ||
	    take_string(p, "description", &role->description, err) < 0 || take_model(p, err) < 0 ||
	    take_choice(p, "effort", efforts, &role->effort, err) < 0 ||
	    take_choice(p, "network", networks, &role->network, err) < 0 ||
	    take_limits(p, err) < 0 || take_tools(p, json_get(root, "tools"), err) < 0)
		return -1;
	return take_write(p, err);
}

/* The front matter's document, NULL if there is none. Files in the wild hold text that is no YAML
 * ("description: Use it for: this"); their plain lines are taken then. */
static int parse_front(struct parser *p, const char *yaml, size_t n, bool *ret_loose,
		       struct err *err)
{
	struct err why = ERR_INIT;

	if (!yaml || yaml_parse(yaml, n, p->path, 2, &p->doc, &why) == 0)
		return 0;
	if (p->claude && front_matter_loose(yaml, n, p->path, &p->doc) == 0) {
		*ret_loose = true;
		return 0;
	}
	return err_set(err, ERR_USAGE, "%s", why.message);
}

static int parse_body(struct parser *p, const char *body, size_t n, struct err *err)
{
	while (n > 0 && strchr("\n\r\t ", *body))
		body++, n--;
	if (n == 0)
		return err_set(err, ERR_USAGE, "%s: the role has no prompt below its front matter",
			       p->path);
	p->role->prompt = mem_strndup(body, n);
	return 0;
}

int role_parse(const char *text, size_t n, const char *path, bool claude_form, struct role **ret,
	       struct err *err)
{
	const char *yaml, *body;
	size_t yaml_len, body_len;
	struct parser p = {.path = path, .claude = claude_form};
	bool loose = false;

	if (!text_is_utf8(text, n) || memchr(text, '\0', n))
		return err_set(err, ERR_USAGE, "%s: the file is not UTF-8 text", path);
	yaml_front_matter(text, n, &yaml, &yaml_len, &body, &body_len);
	if (parse_front(&p, yaml, yaml_len, &loose, err) < 0)
		return -1;
	p.role = mem_alloc(sizeof(*p.role));
	p.role->path = mem_strdup(path);
	p.role->write = true;
	if (loose)
		add_note(&p, "its front matter is no YAML and was read line by line; check",
			 "tools");
	int rc = p.doc ? take_fields(&p, err) : 0;
	if (rc == 0)
		rc = parse_body(&p, body, body_len, err);
	yaml_free(p.doc);
	if (rc < 0) {
		role_free(p.role);
		return -1;
	}
	*ret = p.role;
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
	free(role->compact_model);
	free(role->effort);
	free(role->reset);
	free(role->network);
	json_object_put(role->output_schema);
	json_object_put(role->context);
	json_object_put(role->knobs);
	free(role);
}
