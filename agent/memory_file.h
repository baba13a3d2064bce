/*
 * memory_file.h - memory.json and plan.md of a working memory; for memory.c alone.
 */
#ifndef BATON_AGENT_MEMORY_FILE_H
#define BATON_AGENT_MEMORY_FILE_H

#include "agent/memory.h"

/* Replaces the file atomically. ERR_IO, ERR_NO_SPACE. */
int memory_file_store(const struct working_memory *m, struct err *err);
int memory_file_store_plan(const struct working_memory *m, struct err *err);
/* The fields are empty afterwards; the files stay as they are. In memory.c. */
void memory_forget_fields(struct working_memory *m);

#endif
