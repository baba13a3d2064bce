/*
 * output_table.h - tables in outputs: the first rows and the total (T11).
 */
#ifndef BATON_AGENT_TOOLS_OUTPUT_TABLE_H
#define BATON_AGENT_TOOLS_OUTPUT_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/* Is this the output of a query, or a table else, of 20 rows or more? Then its head, its first rows, the number of all
 * and what the program itself said at the end are appended, in about `budget` bytes. false: it is none, and nothing is
 * appended. `where`: the file with all of it; NULL: none. */
bool output_shorten_table(struct buf *out, const char *s, size_t n, size_t budget,
			  const char *where);

#endif
