/*
 * front_matter.h - internal to config/: front matter that is nearly YAML.
 */
#ifndef BATON_ORCHESTRATOR_CONFIG_FRONT_MATTER_H
#define BATON_ORCHESTRATOR_CONFIG_FRONT_MATTER_H

#include "base/yaml.h"

/* Reads lines "key: text" whose text need not be YAML; indented lines go on with the text above,
 * and "- item" lines below a key without text make a list. 0 with a document whose scalars are all
 * text, or -1 if there is no such line. */
int front_matter_loose(const char *text, size_t n, const char *name, struct yaml_doc **ret);

#endif
