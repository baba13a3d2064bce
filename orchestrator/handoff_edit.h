/*
 * handoff_edit.h - `baton handoff edit`: a document in the user's editor, checked when it comes back.
 */
#ifndef BATON_ORCHESTRATOR_HANDOFF_EDIT_H
#define BATON_ORCHESTRATOR_HANDOFF_EDIT_H

#include "base/err.h"
#include "orchestrator/handoff_source.h"

/* As Markdown, whatever form the file has. What cannot be read, with its line, or is refused by the check goes back into the
 * editor if the user wishes; else it is left in a file beside and the document stays as it was. A document that is
 * replaced is kept as FILE.old-N. Returns an exit status, or -1. */
int handoff_edit(const struct settings *s, const struct handoff_source *source, struct err *err);

#endif
