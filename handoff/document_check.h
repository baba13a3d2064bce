/*
 * document_check.h - is a handoff to be trusted? (R4)
 *
 * For every part: present, concrete, true. Whether something is true is asked of the caller's records through
 * `struct handoff_truth`: the parent answers from baton-git, its journal and the agent's transcript, a command from
 * the repository that it stands in. A question that cannot be answered here is `unknown`, is told as such, and does
 * not refuse the document.
 */
#ifndef BATON_HANDOFF_DOCUMENT_CHECK_H
#define BATON_HANDOFF_DOCUMENT_CHECK_H

#include <stddef.h>

#include "handoff/document.h"

enum handoff_answer { HANDOFF_YES, HANDOFF_NO, HANDOFF_UNKNOWN };

/* NULL members answer unknown. `why`: for NO, what is so instead (appended). */
struct handoff_truth {
	void *arg;
	/* Is it a commit, and on the document's branch? */
	enum handoff_answer (*commit)(void *arg, const char *id, struct buf *why);
	/* Is there such a file now; with this blob id (NULL: whatever it holds)? */
	enum handoff_answer (*file)(void *arg, const char *path, const char *hash, struct buf *why);
	/* Did the user say this, byte for byte? */
	enum handoff_answer (*said)(void *arg, const struct handoff_statement *statement,
				    struct buf *why);
	/* Is there such a test or command? With --run: does it end as stated? */
	enum handoff_answer (*command)(void *arg, const struct handoff_statement *statement,
				       struct buf *why);
	/* Does it (a file, test, function or command) stand in the last 20 calls? The document's failures and
	 * open tasks are looked at by the check itself. */
	enum handoff_answer (*recent)(void *arg, const char *target);
	/* What the user said that a document must hold: the i-th constraint, verbatim; NULL after the last one. */
	const char *(*constraint)(void *arg, size_t i, size_t *ret_n);
	/* The i-th message that somebody said, whole; NULL after the last one. Each is covered: it stands in the
	 * document, or `missing` says that so many do not. */
	const char *(*message)(void *arg, size_t i, size_t *ret_n);
};

enum handoff_fault {
	HANDOFF_ABSENT,	  /* a required part is not there and `missing` does not name it */
	HANDOFF_VAGUE,	  /* not concrete */
	HANDOFF_UNTRUE,	  /* the records say otherwise */
	HANDOFF_UNPROVED, /* could not be asked: told only */
};

struct handoff_finding {
	enum handoff_part_name part;
	enum handoff_fault fault;
	size_t index; /* of the statement; SIZE_MAX: of the part */
	char *text;   /* for people and for the model that has to do it again */
};

struct handoff_findings {
	struct handoff_finding *list;
	size_t n, cap;
	size_t refusing; /* all but HANDOFF_UNPROVED */
};

/* True if nothing refuses it. A facts-only document may lack what only a model can say. Caller releases. */
bool handoff_check(const struct handoff *handoff, const struct handoff_truth *truth,
		   struct handoff_findings *ret);
void handoff_findings_release(struct handoff_findings *findings);
const char *
handoff_fault_name(enum handoff_fault fault); /* "absent", "vague", "untrue", "unproved" */

#endif
