/*
 * document_form.h - what the two forms of a handoff document share; nobody else's.
 */
#ifndef BATON_HANDOFF_DOCUMENT_FORM_H
#define BATON_HANDOFF_DOCUMENT_FORM_H

#include "handoff/document.h"

/* The header: `json` is the whole document or the front matter. The error names the member. */
int handoff_header_from_json(struct handoff *handoff, struct json_object *json, struct err *err);

/* Appends ": x is not known; did you mean 'y'?" without the colon. */
void handoff_unknown(struct buf *out, const char *name, const char *const *known, size_t n);

/* Does a terminal obey something in it, or a reader of lines stumble over it? */
bool handoff_text_is_plain(const char *text, size_t n);

/* Length of "- KEY:" at `s`, where KEY is a member of a statement in Markdown, backslashes before it included; 0: there
 * is none. `ret_slashes`: how many of those. */
size_t handoff_member_mark(const char *s, size_t n, size_t *ret_slashes);

/* One statement of the Markdown form. */
void handoff_statement_markdown(struct buf *out, const struct handoff_statement *s);

#define HANDOFF_MD_TITLE "# Handoff"

#endif
