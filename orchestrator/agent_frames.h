/*
 * agent_frames.h - what the parent does with each frame of an agent.
 */
#ifndef BATON_ORCHESTRATOR_AGENT_FRAMES_H
#define BATON_ORCHESTRATOR_AGENT_FRAMES_H

#include "base/err.h"
#include "base/json.h"
#include "handoff/frame.h"

struct child;

/* The body of a frame, an object; empty is {}. Caller puts it. */
int agent_frame_body(const struct frame *frame, struct json_object **ret, struct err *err);
int agent_on_frame(struct child *child, const struct frame *frame, struct err *err);

#endif
