/*
 * instruction_rules.h - rules for files that match a pattern: .baton/rules and .claude/rules (M1).
 *
 * A rule is a Markdown file, in a folder below these too. Its front matter names patterns, as `paths:` or as
 * `globs:`: a list, or a text with commas. Patterns are those of the glob tool, relative to the worktree; one
 * without a slash matches file names at any depth. A rule without patterns holds for every file.
 */
#ifndef BATON_AGENT_INSTRUCTION_RULES_H
#define BATON_AGENT_INSTRUCTION_RULES_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/tools/wild.h"
#include "base/buf.h"

struct tool_context;

struct instruction_rule {
	char *path; /* real, from the worktree's root */
	char *text; /* behind the front matter */
	size_t n;
	char *shown; /* the patterns as one line; NULL: there are none */
	struct wild_set *patterns;
	size_t n_patterns;
};

/* Appends all rules of the worktree, in the order of their names; a file that cannot be read leaves a line in
 * `warnings` (NULL allowed). Caller frees. */
void instruction_rules_read(struct tool_context *files, struct instruction_rule **ret,
			    size_t *ret_n, struct buf *warnings);
void instruction_rules_free(struct instruction_rule *rules, size_t n);
bool instruction_rule_matches(const struct instruction_rule *rule, const char *path);

/* A rule from its bytes. Front matter that is no YAML is taken by lines: patterns that begin with a star are
 * written without quotes in the wild. */
void instruction_rule_parse(const char *path, const char *s, size_t n,
			    struct instruction_rule *ret);

#endif
