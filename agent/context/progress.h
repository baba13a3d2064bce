/*
 * progress.h - where the present piece of work began (H8 `up_to`): a compaction should not cut through it.
 *
 * By rule: the file that was edited last, and the command that failed last, are the work in progress.
 */
#ifndef BATON_AGENT_CONTEXT_PROGRESS_H
#define BATON_AGENT_CONTEXT_PROGRESS_H

#include <stddef.h>
#include <stdint.h>

#include "agent/context/view.h"
#include "base/buf.h"

/* Index of the answer with which the work began that still goes on at `tail`, at most `tokens` of the view
 * before its end; `tail` if nothing is in progress there. */
size_t progress_begin(const struct view *view, size_t tail, int64_t tokens);

/* Appends what matters most now (H22), by rule: the file in work, the command that fails. Nothing if
 * nothing is in progress. */
void progress_focus(const struct view *view, struct buf *out);

#endif
