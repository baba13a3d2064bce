/*
 * image.h - what of some folders is on the disk and would be there after a power cut, by what POSIX promises.
 *
 * Promised is: of a file what it held at its last fsync or fdatasync; of a folder the names that it held at its last
 * fsync; after a syncfs everything. A sync of a file does not keep its name, nor a sync of a folder the contents of its
 * files. All else may be there or not. No file system loses everything that it may lose, and most lose less; baton has to
 * live with each of them, so image_cut() chooses by a seed.
 *
 * An image is an observer of the tracer: it is told of each sync, also of those of tools, and looks at what the descriptor
 * leads to. Writes and renames need not be watched: what they did is read when it becomes durable, and at the cut.
 *
 * Left out: hard links come apart; sockets and pipes; that a rename from one folder into another is one step (after a
 * sync of the new folder alone the file has both names, of the old one alone none).
 */
#ifndef BATON_TESTS_FAULTS_IMAGE_H
#define BATON_TESTS_FAULTS_IMAGE_H

#include "tests/faults/trace.h"

struct image;

/* All that is in these folders now counts as durable. The folders themselves always are. They lie on one file system. */
struct image *image_start(const char *const folders[], size_t n, struct err *err);
void image_free(struct image *image); /* NULL allowed */

struct trace_observer image_observer(struct image *image);

enum image_names {
	IMAGE_SYNCED, /* unsynced creations, renames and removals did not happen */
	IMAGE_ALL,    /* they did, and contents lag behind: a journal of names alone */
	IMAGE_MIXED,  /* folder by folder the one or the other */
	IMAGE_NAMES
};
const char *image_names_name(enum image_names names);
bool image_names_named(const char *name, enum image_names *ret);

/* Writes folder number `which` as it is after the cut into `target`, which must not exist. Nobody writes there any more.
 * The same seed gives the same choices. */
int image_cut(struct image *image, size_t which, enum image_names names, uint64_t seed,
	      const char *target, struct err *err);

#endif
