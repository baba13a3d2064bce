/*
 * markdown.h - text of models and names of files inside Markdown, without becoming markup (I12).
 */
#ifndef BATON_ORCHESTRATOR_REVIEW_MARKDOWN_H
#define BATON_ORCHESTRATOR_REVIEW_MARKDOWN_H

#include "base/buf.h"

/* Inside a paragraph of our own; line ends stay. */
void markdown_text(struct buf *out, const char *text);
/* On one line, whatever it holds: names of files, reasons. */
void markdown_word(struct buf *out, const char *text);
/* A code block whose fence the text cannot close. */
void markdown_fenced(struct buf *out, const char *text);
/* Somebody else's words as a quotation: no line of them can be taken for one of ours. */
void markdown_quote(struct buf *out, const char *text);

/* Markdown made by the functions above, for a terminal: without their backslashes, but for those at
 * the start of a line of our own, where the text would pass for baton's. */
void markdown_plain(struct buf *out, const char *text);

#endif
