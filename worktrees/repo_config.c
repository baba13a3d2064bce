/*
 * repo_config.c - the user's configuration, reduced by an allow list.
 *
 * A private repository lies inside a box and gets what changes how files look and what commits say.
 * It gets no remotes (their URLs carry passwords), no credential helpers, no aliases, no signing
 * (the keys are outside). The git dirs that baton itself uses get even less: a driver is a program,
 * started in a worktree that an agent wrote (`python -m x` would import from there), so there is
 * none.
 */
#include "worktrees/repo_config.h"

#include <git2.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "worktrees/repo.h"

/* Exact names, or prefixes that end with a dot. `driver`: only for the private repository. */
static const struct {
	const char *name;
	bool driver;
} allowed[] = {
	{"core.autocrlf", false},
	{"core.eol", false},
	{"core.filemode", false},
	{"core.symlinks", false},
	{"core.ignorecase", false},
	{"core.precomposeunicode", false},
	{"core.excludesfile", false},
	{"core.attributesfile", false},
	{"core.whitespace", false},
	{"core.bigfilethreshold", false},
	{"core.longpaths", false},
	{"core.protecthfs", false},
	{"core.protectntfs", false},
	{"core.abbrev", true},
	{"core.quotepath", true},
	{"core.commentchar", true},
	{"user.name", true},
	{"user.email", true},
	{"author.", true},
	{"committer.", true},
	{"filter.", true},
	{"merge.", true},
	{"diff.", true},
	{"i18n.", true},
	{"pull.", true},
	{"rebase.", true},
	{"init.defaultbranch", true},
};

struct item {
	char *name, *value;
	int level;
};

struct items {
	struct item *list;
	size_t count, cap;
};

static int is_allowed(const char *name, bool *ret_driver)
{
	for (size_t i = 0; i < ARRAY_SIZE(allowed); i++) {
		const char *want = allowed[i].name;

		*ret_driver = allowed[i].driver;
		if (text_ends(want, ".") ? text_starts(name, want) : strcmp(name, want) == 0)
			return 1;
	}
	return 0;
}

static int on_entry(const git_config_entry *entry, void *arg)
{
	struct items *items = arg;

	MEM_GROW(items->list, items->cap, items->count + 1);
	items->list[items->count++] = (struct item){.name = mem_strdup(entry->name),
						    .value = mem_strdup(entry->value ?: "true"),
						    .level = (int)entry->level};
	return 0;
}

static void items_release(struct items *items)
{
	for (size_t i = 0; i < items->count; i++) {
		free(items->list[i].name);
		free(items->list[i].value);
	}
	free(items->list);
}

static bool truth(const char *value)
{
	return strcasecmp(value, "true") == 0 || strcasecmp(value, "yes") == 0 ||
	       strcasecmp(value, "on") == 0 || strcmp(value, "1") == 0;
}

/* `[section "sub"] key = "value"` on two lines. */
static void render(struct buf *out, const char *name, const char *value)
{
	const char *first = strchr(name, '.'), *last = strrchr(name, '.');

	if (!first)
		return;
	buf_addf(out, "[%.*s", (int)(first - name), name);
	if (last > first) {
		buf_adds(out, " \"");
		for (const char *p = first + 1; p < last; p++) {
			if (*p == '"' || *p == '\\')
				buf_addc(out, '\\');
			buf_addc(out, *p);
		}
		buf_addc(out, '"');
	}
	buf_addf(out, "]\n\t%s = \"", last + 1);
	for (const char *p = value; *p; p++) {
		if (*p == '\n')
			buf_adds(out, "\\n");
		else if (*p == '"' || *p == '\\')
			buf_addf(out, "\\%c", *p);
		else
			buf_addc(out, *p);
	}
	buf_adds(out, "\"\n");
}

static void take_item(struct repo *repo, const struct item *item, struct buf *plain,
		      struct buf *drivers)
{
	bool driver;

	if (strcmp(item->name, "user.name") == 0) {
		free(repo->user_name);
		repo->user_name = mem_strdup(item->value);
	} else if (strcmp(item->name, "user.email") == 0) {
		free(repo->user_email);
		repo->user_email = mem_strdup(item->value);
	} else if (strcmp(item->name, "core.sparsecheckout") == 0) {
		repo->sparse = truth(item->value);
	} else if (strcmp(item->name, "extensions.partialclone") == 0) {
		repo->partial = true;
	} else if (text_starts(item->name, "filter.")) {
		repo->filters = true;
	} else if (strcmp(item->name, "core.sharedrepository") == 0) {
		repo->mode = 0; /* the user has said what modes he wants */
	}
	if (is_allowed(item->name, &driver))
		render(driver ? drivers : plain, item->name, item->value);
}

static git_config *open_config(const struct repo *repo)
{
	AUTO_FREE char *path = file_join(repo->common_dir, "config");
	git_config *config = NULL;

	if (repo->handle)
		return git_repository_config(&config, repo->handle) == 0 ? config : NULL;
	if (git_config_open_default(&config) < 0)
		return NULL;
	git_config_add_file_ondisk(config, path, GIT_CONFIG_LEVEL_LOCAL, NULL, 0);
	return config;
}

int repo_config_read(struct repo *repo, struct err *err)
{
	AUTO_BUF struct buf plain = BUF_INIT;
	AUTO_BUF struct buf drivers = BUF_INIT;
	AUTO_FREE char *own = file_join(repo->git_dir, "config.worktree");
	struct items items = {0};
	git_config *config = open_config(repo);

	if (!config)
		return err_set(err, ERR_INVALID, "the configuration of '%s' cannot be read: %s",
			       repo->common_dir,
			       git_error_last() ? git_error_last()->message : "?");
	if (file_exists(own))
		git_config_add_file_ondisk(config, own, GIT_CONFIG_LEVEL_APP, NULL, 0);
	git_config_foreach(config, on_entry, &items);
	git_config_free(config);
	/* libgit2 walks from the strongest file to the weakest; in one file the last entry wins. */
	for (int level = 0; level <= GIT_CONFIG_LEVEL_APP; level++) {
		for (size_t i = 0; i < items.count; i++) {
			if (items.list[i].level == level)
				take_item(repo, &items.list[i], &plain, &drivers);
		}
	}
	items_release(&items);
	repo->config = mem_strdup(buf_str(&plain));
	repo->drivers = mem_strdup(buf_str(&drivers));
	return 0;
}

void repo_config_write(const struct repo *repo, bool private, struct buf *out)
{
	buf_addf(out,
		 "[core]\n\trepositoryformatversion = %d\n\tbare = false\n\tlogallrefupdates = "
		 "true\n",
		 repo->sha256 ? 1 : 0);
	if (repo->sha256)
		buf_adds(out, "[extensions]\n\tobjectformat = sha256\n");
	buf_adds(out, repo->config);
	if (private)
		buf_adds(out, repo->drivers);
	if (repo->sparse)
		buf_adds(out, "[core]\n\tsparseCheckout = true\n");
	buf_adds(out, "[gc]\n\tauto = 0\n[commit]\n\tgpgsign = false\n[tag]\n\tgpgsign = false\n"
		      "[core]\n\tfsync = all\n");
}
