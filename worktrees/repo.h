/*
 * repo.h - the user's repository: found once, then only ever named.
 *
 * Discovery walks upwards from the path that the user gave, as git does, and refuses what lies
 * below baton's own worktrees. libgit2 keeps the repository open where it can; where it cannot
 * (SHA-256, an index with unknown extensions) `handle` is NULL and everything goes through the git
 * program.
 */
#ifndef BATON_WORKTREES_REPO_H
#define BATON_WORKTREES_REPO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "worktrees/hostile.h"

struct git_repository;

struct repo_refs_cache {
	char *text, *prefix;
	int64_t made_ms;
};

struct repo {
	char *git;	  /* the program */
	char *common_dir; /* no slash at the end, as all paths here */
	char *git_dir;
	char *toplevel; /* NULL: bare */
	char *objects;
	char *baton_dir;	   /* <common>/baton */
	char *plain_dir, *raw_dir; /* see git.h */
	bool bare, linked, sha256, sparse, partial;
	bool filters;		      /* some filter driver is configured */
	size_t hex;		      /* digits of an object id */
	mode_t mode;		      /* permission bits for files that are made in it */
	char *config, *drivers;	      /* parts of the user's configuration, see repo_config.h */
	char *user_name, *user_email; /* NULL if not configured */
	struct git_repository *handle;
	struct repo_refs_cache *refs; /* the one thing that changes after opening */
};

/* ERR_NOT_FOUND: no repository there. ERR_DENIED: owned by somebody else and not marked safe (trap
 * 132), or a worktree of baton's. ERR_UNSUPPORTED: git cannot read it either. `git` is the
 * program's path. */
int repo_open(const char *path, const char *git, struct repo **ret, struct err *err);
void repo_free(struct repo *repo); /* NULL allowed */

/* Writes plain_dir and raw_dir where they are missing or old. Before the first git_run in these
 * scopes. */
int repo_prepare(const struct repo *repo, struct err *err);

/* The commit that a revision of the user's names. */
int repo_resolve(const struct repo *repo, const char *rev, char ret_oid[OID_MAX], struct err *err);
/* The commit of a ref by its full name, ERR_NOT_FOUND if there is none. */
int repo_ref(const struct repo *repo, const char *ref, char ret_oid[OID_MAX], struct err *err);
/* The tree of a commit that is among the user's own objects; false: it is not, or only the program can read
 * them. Never looks into an agent's objects: those are for the git program, which a deadline can end. */
bool repo_tree_of(const struct repo *repo, const char *commit, char ret_oid[OID_MAX]);
/* What all refs stand at, one a line. */
int repo_tips(const struct repo *repo, struct buf *out, struct err *err);
/* HEAD's commit; ERR_NOT_FOUND with a message that says what to do when there are no commits yet.
 */
int repo_head(const struct repo *repo, char ret_oid[OID_MAX], struct err *err);
/* True if a branch or other ref has exactly this name. */
bool repo_has_ref(const struct repo *repo, const char *ref);
/* Creates each ref at its commit, or none of them; an existing one is ERR_EXISTS. Synced. */
int repo_make_refs(const struct repo *repo, const char *const refs[], const char *const oids[],
		   size_t count, struct err *err);
/* The lock file of a ref that a killed git of ours left. One that is younger than grace_ms may be somebody's who lives. */
void repo_drop_dead_lock(const struct repo *repo, const char *ref, int grace_ms);
/* Compare-and-swap: old_oid NULL deletes nothing and creates; new_oid NULL deletes. ERR_CHANGED. */
int repo_move_ref(const struct repo *repo, const char *ref, const char *new_oid,
		  const char *old_oid, const char *why, struct err *err);

/* AGENTS.md, else CLAUDE.md: [{"path", "text"}], owned by the caller. */
struct json_object *repo_instructions(const struct repo *repo, const char *commit);

/* The refs that a private repository starts with, as the text of a packed-refs file: all of the
 * user's but the stash and baton's own (at most two seconds old). */
int repo_packed_refs(struct repo_refs_cache *cache, const struct repo *repo, const char *own_prefix,
		     struct buf *out, struct err *err);

/* What discover tells beyond the fields above: head, head_ref, tracked, dirty, submodules. */
/* quick leaves out what needs a look at the whole checkout: tracked, submodules, dirty. */
int repo_describe(const struct repo *repo, bool quick, struct json_object *answer, struct err *err);

/* Paths of a commit's submodules: array owned by the caller. */
struct json_object *repo_submodules(const struct repo *repo, const char *commit);

#endif
