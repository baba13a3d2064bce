/*
 * project.h - where the user's checkout is, without git: for configuration files only.
 */
#ifndef BATON_ORCHESTRATOR_PROJECT_H
#define BATON_ORCHESTRATOR_PROJECT_H

/* The nearest folder at or above -C DIR (looked up in argv) or the working folder that holds
 * `.git`; NULL if there is none. Caller frees. */
char *project_find(int argc, char **argv);
/* The same from a folder; NULL: the working folder. */
char *project_above(const char *dir);

/* baton's folder of the repository that holds dir (NULL: the working folder), be it a checkout or
 * bare; NULL if there is none. Caller frees. */
char *project_store(const char *dir);

/* The <git common dir>/baton folder of that checkout, following a linked worktree's `.git` file;
 * NULL if there is none. Caller frees. */
char *project_baton_dir(const char *toplevel);

/* The git program that PATH names first, else the usual place. Caller frees. */
char *project_git(void);
/* baton-git's start document, with the git program that PATH names; repository may be NULL
 * (discover will name it). Caller frees. */
char *project_git_start(const char *repository);

#endif
