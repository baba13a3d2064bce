/*
 * agent_frames.h - what the parent does with each frame of an agent.
 */
#ifndef BATON_ORCHESTRATOR_AGENT_FRAMES_H
#define BATON_ORCHESTRATOR_AGENT_FRAMES_H

#include "base/err.h"
#include "handoff/frame.h"

struct child;

int agent_on_frame(struct child *child, const struct frame *frame, struct err *err);

#endif
