/*
 * viewer.h - a journal shown while it grows: as its own lines, as plain lines, or as a table that is drawn anew.
 *
 * Used by the view's process (cmd_view.c), which its parent pokes, and by `baton watch` (cmd_watch.c), which looks at
 * the file itself. Who waits for news, and how, is the caller's.
 */
#ifndef BATON_ORCHESTRATOR_VIEW_VIEWER_H
#define BATON_ORCHESTRATOR_VIEW_VIEWER_H

#include "orchestrator/view/display.h"
#include "orchestrator/view/tail.h"

enum viewer_mode { VIEW_JSON, VIEW_PLAIN, VIEW_LIVE };

struct viewer {
	enum viewer_mode mode;
	int fd;	      /* where it is shown; live: a terminal, or nothing is drawn well */
	int64_t told; /* bytes of the journal that an earlier part of the run has shown */
	/* the viewer's own: */
	struct display state;
	struct tail tail;
	struct buf out;
	struct buf table; /* what stands on the screen */
	bool dirty;
};

int viewer_open(struct viewer *v, enum viewer_mode mode, int fd, const char *journal,
		struct err *err);
void viewer_release(struct viewer *v);
/* Until wait_news says that no more comes (-1); 1: there is some, 0: only time passed. It gets the longest wait in ms
 * (-1: any). An error of the reader that went away has sys EPIPE. */
int viewer_show(struct viewer *v, int (*wait_news)(int timeout_ms, void *arg), void *arg,
		struct err *err);

#endif
