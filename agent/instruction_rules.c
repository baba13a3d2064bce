/*
 * instruction_rules.c - front matter as patterns.
 *
 * These files come from other programs, whose parsers take more than YAML does: `globs: *.ts` is an alias
 * that nobody defined, `paths: {src,lib}/x` is a mapping with rubbish behind it. What YAML refuses is read by
 * lines instead, since a rule that silently holds for everything is worse than a lenient parser.
 */
#include "agent/instruction_rules.h"

#include <stdlib.h>

#include "agent/tools/files.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/yaml.h"

#define RULES_MAX    200
#define RULE_BYTES   (256 << 10)
#define PATTERNS_MAX 64

static const char *const folders[] = {".baton/rules", ".claude/rules"};
static const char *const keys[] = {"paths", "globs"};

/* ---- patterns ---- */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* Blanks and one pair of quotes round it, and what makes it relative to the root, go. */
static void trim(const char **s, size_t *n)
{
	while (*n && is_blank(**s))
		(*s)++, (*n)--;
	while (*n && is_blank((*s)[*n - 1]))
		(*n)--;
	if (*n >= 2 && (**s == '"' || **s == '\'') && (*s)[*n - 1] == **s)
		(*s)++, *n -= 2;
	if (*n >= 2 && (*s)[0] == '.' && (*s)[1] == '/')
		*s += 2, *n -= 2;
	else if (*n >= 1 && **s == '/')
		(*s)++, (*n)--;
}

static void add_pattern(struct instruction_rule *rule, const char *s, size_t n)
{
	trim(&s, &n);
	if (!n || rule->n_patterns >= PATTERNS_MAX)
		return;
	/* A folder stands for what is below it. */
	AUTO_FREE char *one = mem_printf("%.*s%s", (int)n, s, s[n - 1] == '/' ? "**" : "");
	char *shown =
		mem_printf("%s%s%s", rule->shown ? rule->shown : "", rule->shown ? ", " : "", one);

	free(rule->shown);
	rule->shown = shown;
	rule->patterns = mem_array(rule->patterns, rule->n_patterns + 1, sizeof(*rule->patterns));
	wild_set_init(&rule->patterns[rule->n_patterns++], one);
}

/* Commas part patterns, but for those within braces. */
static void add_patterns(struct instruction_rule *rule, const char *s, size_t n)
{
	size_t start = 0;
	int depth = 0;

	for (size_t i = 0; i < n; i++) {
		if (s[i] == '{')
			depth++;
		else if (s[i] == '}')
			depth--;
		else if (s[i] == ',' && depth <= 0) {
			add_pattern(rule, s + start, i - start);
			start = i + 1;
		}
	}
	add_pattern(rule, s + start, n - start);
}

static void take_value(struct instruction_rule *rule, struct json_object *value)
{
	for (size_t i = 0; i < json_len(value); i++)
		take_value(rule, json_at(value, i));
	if (json_object_is_type(value, json_type_string))
		add_patterns(rule, json_object_get_string(value),
			     (size_t)json_object_get_string_len(value));
}

/* ---- front matter that is no YAML ---- */

static const char *value_of_key(const char *line, size_t n)
{
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		size_t len = strlen(keys[i]);

		if (n > len && strncmp(line, keys[i], len) == 0 && line[len] == ':')
			return line + len + 1;
	}
	return NULL;
}

static void take_lines(struct instruction_rule *rule, const char *s, size_t n)
{
	bool in_list = false;

	for (size_t at = 0, len; at < n; at += len + 1) {
		const char *line = s + at, *end = memchr(line, '\n', n - at);
		const char *value;

		len = end ? (size_t)(end - line) : n - at;
		value = value_of_key(line, len);
		size_t blanks = strspn(line, " \t");
		if (value) {
			add_patterns(rule, value, len - (size_t)(value - line));
			in_list = true;
		} else if (in_list && blanks < len && line[blanks] == '-') {
			add_pattern(rule, line + blanks + 1, len - blanks - 1);
		} else {
			in_list = false;
		}
	}
}

void instruction_rule_parse(const char *path, const char *s, size_t n, struct instruction_rule *ret)
{
	const char *yaml, *body;
	size_t yaml_len = 0, body_len = 0;
	struct yaml_doc *doc = NULL;

	*ret = (struct instruction_rule){.path = mem_strdup(path)};
	yaml_front_matter(s, n, &yaml, &yaml_len, &body, &body_len);
	ret->text = mem_strndup(body, body_len);
	ret->n = body_len;
	if (!yaml)
		return;
	if (yaml_parse(yaml, yaml_len, path, 2, &doc, NULL) < 0) {
		take_lines(ret, yaml, yaml_len);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		take_value(ret, json_get(yaml_root(doc), keys[i]));
	yaml_free(doc);
}

/* ---- all of them ---- */

void instruction_rules_read(struct tool_context *files, struct instruction_rule **ret,
			    size_t *ret_n, struct buf *warnings)
{
	struct instruction_rule *rules = NULL;
	size_t n = 0, cap = 0;

	for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
		char **paths = NULL;
		size_t n_paths = files_list(files, folders[i], ".md", RULES_MAX, &paths);

		for (size_t k = 0; k < n_paths; k++) {
			AUTO_BUF struct buf text = BUF_INIT;
			AUTO_FREE char *real = NULL;
			struct err e = ERR_INIT;

			if (files_read(files, paths[k], RULE_BYTES, &text, &real, &e) == 0) {
				MEM_GROW(rules, cap, n + 1);
				instruction_rule_parse(real, buf_str(&text), text.len, &rules[n++]);
			} else if (warnings) {
				buf_addf(warnings, "a rule is not loaded: %s\n", e.message);
			}
			free(paths[k]);
		}
		free(paths);
	}
	*ret = rules;
	*ret_n = n;
}

void instruction_rules_free(struct instruction_rule *rules, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(rules[i].path);
		free(rules[i].text);
		free(rules[i].shown);
		for (size_t k = 0; k < rules[i].n_patterns; k++)
			wild_set_release(&rules[i].patterns[k]);
		free(rules[i].patterns);
	}
	free(rules);
}

bool instruction_rule_matches(const struct instruction_rule *rule, const char *path)
{
	for (size_t i = 0; i < rule->n_patterns; i++)
		if (wild_set_match(&rule->patterns[i], path))
			return true;
	return rule->n_patterns == 0;
}
