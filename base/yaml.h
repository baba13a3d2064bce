/*
 * yaml.h - the only home of libfyaml: a YAML document becomes a json-c tree with line numbers.
 *
 * Limits: 1 MiB, depth 64, 100,000 nodes, aliases resolved but refused when they would grow the
 * document beyond the node limit. Duplicate keys are an error. Scalars follow the JSON schema of
 * YAML 1.2 (true/false, null/~, integers, floats); everything else is a string; quoted scalars are
 * always strings.
 */
#ifndef BATON_BASE_YAML_H
#define BATON_BASE_YAML_H

#include <stddef.h>

#include "base/err.h"
#include "base/json.h"

struct yaml_doc; /* a tree and, for each node, its place in the source */

/* `name` (a path) is used in messages: "roles/x.md:12: duplicate key 'tools'". first_line is the
 * number of the document's first line in its file (1, or more for front matter). Caller frees. */
int yaml_parse(const char *s, size_t n, const char *name, int first_line, struct yaml_doc **ret,
	       struct err *err);
int yaml_parse_file(const char *path, struct yaml_doc **ret, struct err *err);
void yaml_free(struct yaml_doc *doc); /* NULL allowed */

struct json_object *yaml_root(struct yaml_doc *doc); /* borrowed */
const char *yaml_name(const struct yaml_doc *doc);
/* The line of the node at a JSON pointer ("/context/max_rounds", "" is the root): for a member the
 * line of its key. 0 if there is no such node. */
int yaml_line(const struct yaml_doc *doc, const char *pointer);

/* Splits "---\nYAML\n---\nBODY". Without front matter *ret_yaml is NULL and the body is all of it.
 * Both are borrowed from s. Returns the line on which the body starts. */
int yaml_front_matter(const char *s, size_t n, const char **ret_yaml, size_t *ret_yaml_len,
		      const char **ret_body, size_t *ret_body_len);

#endif
