/*
 * idle.h - microcompaction after a pause (T8, knob clear_idle, off by default): when the last request is older
 * than the provider keeps its cache, the prefix has to be written again anyway, and what is old in it
 * need not be. On a resume after such a time files may have changed behind the agent's back: they are
 * named.
 */
#ifndef BATON_AGENT_CONTEXT_IDLE_H
#define BATON_AGENT_CONTEXT_IDLE_H

#include "agent/context/rungs.h"

bool idle_wanted(const struct rung_input *in);
int idle_run(struct rung_input *in, int64_t *ret_freed, struct err *err);

/* Was this file, a path as the model gave it, changed or removed since the agent last saw it? */
typedef bool (*idle_changed_fn)(void *arg, const char *path);

/* Appends a note that names the files which the view has shown (read, edit, write) and that changed since, each
 * once, the latest first, IDLE_NAMED at most; nothing if there are none. Returns how many changed. */
#define IDLE_NAMED 20
size_t idle_name_changed(const struct view *view, idle_changed_fn changed, void *arg,
			 struct buf *out);

#endif
