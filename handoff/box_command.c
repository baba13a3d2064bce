/*
 * box_command.c - what a command sees of the world: its box and its environment.
 *
 * The environment is an allow list, not a clean-up: keys, agents' sockets and GIT_* variables of
 * whoever started baton never reach a command. An editor is refused with a message that says what
 * to do instead: a silent `true` would let `git rebase -i` succeed without having done anything.
 * Caches go to a folder of this agent, so that no two agents meet in one.
 */
#include "handoff/box_command.h"

#include <fcntl.h>

#include "base/env.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"

void words_add(struct words *words, const char *word)
{
	MEM_GROW(words->items, words->cap, words->count + 2);
	words->items[words->count++] = word;
	words->items[words->count] = NULL;
}

void words_release(struct words *words)
{
	free(words->items);
	*words = (struct words){0};
}

static void add_folder(struct words *argv, const char *option, const char *folder)
{
	if (!folder || !*folder)
		return;
	words_add(argv, option);
	words_add(argv, folder);
}

void box_command_argv(const struct box_command *s, struct words *argv)
{
	if (!s->program)
		return;
	words_add(argv, s->program);
	words_add(argv, "--level");
	words_add(argv, s->level ? s->level : "auto");
	add_folder(argv, s->read_only ? "--read" : "--write", s->worktree);
	add_folder(argv, s->read_only ? "--read" : "--write", s->git_dir);
	add_folder(argv, "--write", s->scratch);
	add_folder(argv, "--write", s->cache);
	add_folder(argv, "--read", s->results);
	for (size_t i = 0; s->read_paths && s->read_paths[i]; i++)
		add_folder(argv, "--read", s->read_paths[i]);
	words_add(argv, "--network");
	words_add(argv, s->network ? s->network : "none");
	words_add(argv, "--");
}

static const char *const allowed[] = {
	"PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "LC_*", "TZ",
};

#define NO_EDITOR(advice) "sh -c 'echo \"no editor can be opened here: " advice "\" >&2; exit 1'"

static const char *const fixed[] = {
	"TERM=dumb",
	"NO_COLOR=1",
	"PAGER=cat",
	"GIT_PAGER=cat",
	"MANPAGER=cat",
	"EDITOR=false",
	"VISUAL=false",
	"GIT_EDITOR=" NO_EDITOR("give the text with -m or -F, or --no-edit"),
	"GIT_SEQUENCE_EDITOR=" NO_EDITOR(
		"set GIT_SEQUENCE_EDITOR to a command that edits the list"),
	"GIT_TERMINAL_PROMPT=0",
	"GIT_ASKPASS=false",
	"SSH_ASKPASS=false",
	"DEBIAN_FRONTEND=noninteractive",
	"PIP_NO_INPUT=1",
	"SHELL=/bin/bash",
	"ASAN_OPTIONS=detect_leaks=0", /* LeakSanitizer traces, which a box refuses */
};

/* NAME=folder/sub for the tools that keep caches. */
static const struct {
	const char *name, *sub;
} caches[] = {
	{"XDG_CACHE_HOME", "xdg"}, {"npm_config_cache", "npm"}, {"YARN_CACHE_FOLDER", "yarn"},
	{"GOCACHE", "go-build"},   {"GOMODCACHE", "go-mod"},	{"PIP_CACHE_DIR", "pip"},
	{"CCACHE_DIR", "ccache"},  {"UV_CACHE_DIR", "uv"},
};

/* Takes out what a pattern in pass_env let through: no GIT_* but our own. */
static void drop_git_variables(char **list, const struct words *ours)
{
	size_t kept = 0;
	for (size_t i = 0; list[i]; i++) {
		bool keep = !text_starts(list[i], "GIT_");
		for (size_t k = 0; !keep && k < ours->count; k++)
			keep = strcmp(list[i], ours->items[k]) == 0;
		if (keep)
			list[kept++] = list[i];
		else
			free(list[i]);
	}
	list[kept] = NULL;
}

/* The box hides HOME, and git ends with an error on a configuration that is there and cannot be
 * read. So in the box git gets one of ours: an identity for repositories that commands make (a
 * repository's own wins), and no look at the user's attributes and ignore files. Caller frees. */
static char *git_variable(const struct box_command *s)
{
	static const char text[] =
		"[user]\n\tname = baton\n\temail = baton@localhost\n"
		"[core]\n\tattributesFile = /dev/null\n\texcludesFile = /dev/null\n";
	const char *folder = s->cache ? s->cache : s->scratch;
	AUTO_FREE char *path = file_join(folder, "gitconfig");
	struct err err = ERR_INIT;
	if (file_write_atomic(AT_FDCWD, path, text, strlen(text), 0644, &err) == 0)
		return mem_printf("GIT_CONFIG_GLOBAL=%s", path);
	log_warn("no git configuration for commands: %s", err.message);
	return mem_strdup("GIT_CONFIG_GLOBAL=/dev/null");
}

char **box_command_env(const struct box_command *s)
{
	struct words allow = {0}, extra = {0};
	char *owned[ARRAY_SIZE(caches) + 4];
	size_t n_owned = 0;
	if (!env_get("PATH"))
		words_add(&extra, "PATH=/usr/local/bin:/usr/bin:/bin");
	for (size_t i = 0; i < ARRAY_SIZE(allowed); i++)
		words_add(&allow, allowed[i]);
	for (size_t i = 0; s->pass_env && s->pass_env[i]; i++)
		words_add(&allow, s->pass_env[i]);
	for (size_t i = 0; i < ARRAY_SIZE(fixed); i++)
		words_add(&extra, fixed[i]);
	owned[n_owned++] = mem_printf("TMPDIR=%s", s->scratch);
	if (s->results)
		owned[n_owned++] = mem_printf("BATON_RESULTS=%s", s->results);
	if (s->program) {
		owned[n_owned++] = git_variable(s);
		owned[n_owned++] = mem_printf("npm_config_userconfig=%s/npmrc", s->scratch);
	}
	for (size_t i = 0; s->cache && i < ARRAY_SIZE(caches); i++)
		owned[n_owned++] = mem_printf("%s=%s/%s", caches[i].name, s->cache, caches[i].sub);
	for (size_t i = 0; i < n_owned; i++)
		words_add(&extra, owned[i]);
	for (size_t i = 0; s->set_env && s->set_env[i]; i++)
		words_add(&extra, s->set_env[i]);
	char **env = env_filter(allow.items, extra.items);
	drop_git_variables(env, &extra);
	for (size_t i = 0; i < n_owned; i++)
		free(owned[i]);
	words_release(&allow);
	words_release(&extra);
	return env;
}
