/*
 * box_rig.h - a small world round a box: what it may write, what it may read, and what it may not.
 *
 * Each test gets a folder below TMPDIR, so that the suite passes as any user and leaves nothing.
 */
#ifndef BATON_TESTS_WORKTREES_BOX_BOX_RIG_H
#define BATON_TESTS_WORKTREES_BOX_BOX_RIG_H

#include <sys/types.h>

#include "base/buf.h"
#include "worktrees/box/box.h"

struct box_rig {
	char *root;
	char *work;   /* --write */
	char *tmp;    /* --write, TMPDIR */
	char *shown;  /* --read; has `file` */
	char *hidden; /* in no list: another agent's folder; has `file` */
	char *home;   /* HOME; has .ssh/id and .netrc, in no list */
	char *log;    /* what the last command wrote, a file in no list */
	struct box_facts facts;
	pid_t outsider; /* a process outside, with OUTSIDER_SECRET in its environment */
};
#define OUTSIDER_SECRET "sk-outsider-secret"
#define FILE_TEXT	"as it was"

/* 77 (skipped, to meson), with a line that says so, where this kernel gives no box; else 0. */
int box_suite_status(void);
int box_rig_setup(void **state);
int box_rig_teardown(void **state);

/* Runs `bash -c script` in a box with --write work, --write tmp and --read shown, then `options`
 * (NULL-terminated, may be NULL). The script sees WORK, SHOWN, HIDDEN, REPO, OUTSIDER and TRY (the
 * program box-try). Both outputs are appended to out. Returns the exit status, 128 + n for a
 * signal. */
int box_run(struct box_rig *rig, const char *const *options, const char *script, struct buf *out);
/* As box_run, with "unconfined" in place of the box: what shows that an attempt could succeed. */
int box_run_open(struct box_rig *rig, const char *script, struct buf *out);
/* The program with exactly these words. */
int box_run_words(struct box_rig *rig, const char *const *words, struct buf *out);
/* Outside any box; fails the test if the script does. */
void box_prepare(struct box_rig *rig, const char *script);

bool box_has_line(const struct buf *out, const char *line);
/* Names, sizes and contents of all that lies below a folder; caller frees. */
char *box_fingerprint(struct box_rig *rig, const char *folder);

#endif
