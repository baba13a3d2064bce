/*
 * faults.h - what goes wrong on the other side, as a table.
 *
 * One row a fault: FAULT(NAME, "name", per 10,000 calls that it concerns). How a server says that a prompt is too
 * long is one of the OVERFLOW rows (wire.md 1.10 and 3, as the gateway classifies them) for a whole session: their
 * rate is that of saying so although it fits.
 */
#ifndef SIMULATOR_FAULTS_H
#define SIMULATOR_FAULTS_H

#include "random.h"

#define FAULTS(FAULT)                                                                              \
	FAULT(OVERFLOW_NUMBERS, "overflow, with numbers", 5)                                       \
	FAULT(OVERFLOW_BARE, "overflow, without numbers", 5)                                       \
	FAULT(OVERFLOW_BYTES, "overflow, 413", 5)                                                  \
	FAULT(OVERFLOW_500, "overflow as a bare 500", 0)                                           \
	FAULT(OVERFLOW_IN_BAND, "overflow within a 200", 5)                                        \
	FAULT(OVERFLOW_EMPTY, "overflow as an empty answer with usage", 0)                         \
	FAULT(OVERFLOW_SILENT, "overflow as a silent cut of the prompt", 0)                        \
	FAULT(OVERFLOW_FILLED, "overflow as a filled window and no output", 0)                     \
	FAULT(OVERFLOW_STOP, "overflow as a stop reason", 3)                                       \
	FAULT(RATE_LIMIT, "429, then well", 60)                                                    \
	FAULT(SERVER_ERROR, "5xx, then well", 60)                                                  \
	FAULT(STALL, "stall, then well", 30)                                                       \
	FAULT(HALF, "half an answer, then all of it", 40)                                          \
	FAULT(CUT, "cut in mid-stream", 40)                                                        \
	FAULT(GARBAGE, "bytes that are no answer", 6)                                              \
	FAULT(OVERLOAD, "overload for good", 3)                                                    \
	FAULT(LATE_LIMIT, "a limit that ends too late", 2)                                         \
	FAULT(AUTH, "authentication", 1)                                                           \
	FAULT(BUDGET, "budget for a short answer", 10)                                             \
	FAULT(BLANK, "blank answer", 60)                                                           \
	FAULT(ANSWER_CUT, "answer cut at its limit", 60)                                           \
	FAULT(TEXT_ONLY, "text without calls", 40)                                                 \
	FAULT(REFUSAL, "refusal", 3)                                                               \
	FAULT(NO_USAGE, "no usage told", 40)                                                       \
	FAULT(SUMMARY_MALFORMED, "malformed summary", 500)                                         \
	FAULT(SUMMARY_TRUNCATED, "truncated summary", 400)                                         \
	FAULT(SUMMARY_CALLS, "summary that calls a tool", 400)                                     \
	FAULT(SUMMARY_EMPTY, "empty summary", 300)                                                 \
	FAULT(SUMMARY_LARGE, "summary as large as the history", 300)                               \
	FAULT(SUMMARY_LIES, "summary that invents rules", 1500)                                    \
	FAULT(SUMMARY_LAZY, "summary that drops things", 1500)                                     \
	FAULT(SUMMARY_FILES, "summary that names files nobody knows", 700)                         \
	FAULT(NOTES_EMPTY, "empty notes", 300)                                                     \
	FAULT(NOTES_FORMLESS, "notes without a section", 300)                                      \
	FAULT(NOTES_CUT, "truncated notes", 300)                                                   \
	FAULT(NOTES_CALL, "notes that call a tool", 300)                                           \
	FAULT(NOTES_LARGE, "notes that are too large", 1800)                                       \
	FAULT(NOTES_LIE, "notes that invent rules", 1500)

enum fault {
#define FAULT_ENUM(name, text, rate) FAULT_##name,
	FAULTS(FAULT_ENUM)
#undef FAULT_ENUM
		FAULT_COUNT,
	FAULT_NONE = FAULT_COUNT,
};
#define OVERFLOW_FORMS (FAULT_OVERFLOW_STOP + 1)

const char *fault_name(enum fault fault);
/* The first of [from, to] that happens now; FAULT_NONE. `percent` of the table's rates. */
enum fault fault_draw(struct random *r, enum fault from, enum fault to, unsigned percent);

#endif
