/*
 * repo_config.h - which of the user's configuration a git dir of baton's gets.
 */
#ifndef BATON_WORKTREES_REPO_CONFIG_H
#define BATON_WORKTREES_REPO_CONFIG_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"

struct repo;

/* Fills repo->config, drivers, filters, sparse, partial, user_name, user_email from the user's
 * configuration. */
int repo_config_read(struct repo *repo, struct err *err);

/* Appends the text of a config file. `private`: for the agent's repository, that is with its filter
 * and merge drivers and identity; else for plain_dir and raw_dir, which must start no program. */
void repo_config_write(const struct repo *repo, bool private, struct buf *out);

#endif
