/*
 * prompt.h - the texts that baton itself says to the model: the system prompt's fixed part and the
 * nudges.
 */
#ifndef BATON_AGENT_PROMPT_H
#define BATON_AGENT_PROMPT_H

#include "agent/start.h"

/* The role's prompt and the advice on tools. No absolute path and no agent id (W11: the prefix is
 * shared by all agents of a role); what differs stands in a message. Caller frees. */
char *prompt_system(const struct agent_settings *settings);

/* Nudges: new user messages at the end, never edits (W11). printf forms where they have a %s. */
#define NUDGE_BLANK                                                                                \
	"Your last answer was empty. Go on with the task: call a tool, or call `report`."
#define NUDGE_CUT                                                                                  \
	"Your last answer was cut at the output limit. Go on from there, in smaller parts."
#define NUDGE_PAUSED "Go on."
#define NUDGE_NO_REPORT                                                                            \
	"Text does not end the work. If the task is finished, or if you cannot go on, call "       \
	"`report` now; else go on with the next step."
#define NUDGE_JOBS "Background jobs still run; they end with your report."
#define NUDGE_FORCED                                                                               \
	"This is the last request of this conversation: %s. Call `report` now, and nothing else. " \
	"Say what is finished, what is checked, and what is left (status `partial` if anything "   \
	"is)."
#define NUDGE_REPEAT                                                                               \
	"The same call of `%s` has now given the same result %d times. Doing it again will not "   \
	"change it: try something else, or report what blocks you."

/* W13: a fact, never a call to finish. */
#define NOTE_BUDGET                                                                                \
	"[Context window: %d %% are used (%lld tokens, %lld are left); older rounds are "          \
	"condensed when it fills, and the work goes on. Round %lld of %lld.]"

/* Results that baton gives in a tool's place. */
#define RESULT_CUT                                                                                 \
	"Not run: your answer was cut at the output limit inside this call. Do it in smaller "     \
	"parts: "                                                                                  \
	"for a long file, write its first part and add the rest with further calls."
#define RESULT_NO_OBJECT                                                                           \
	"Not run: the arguments are not one whole JSON object. Send the call again."
#define RESULT_INTERRUPTED                                                                         \
	"Interrupted: the call was ended before it was done; it may have had effects."
#define RESULT_NOT_RUN	   "Not run: the work was stopped before this call began."
#define RESULT_ONLY_REPORT "Not run: only `report` may be called now."
#define RESULT_GOES_ON	   "Not delivered: work is still open, and it goes on in a fresh window."
#define NUDGE_NO_RESET                                                                             \
	"There is no fresh window to go on in. If you cannot go on here, call `report` again."
#define RESULT_ACCEPTED "The report was delivered."

#endif
