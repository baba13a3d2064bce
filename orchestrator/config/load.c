/*
 * load.c - the command line and the order of the layers. Runs in the parent, before anything is
 * started.
 *
 * The command line is read first, since it may ask for help, and help must not fail on a broken
 * file. Order of reading does not matter for scalars: each value remembers the layer that set it
 * and gives way to stronger ones only (store.c).
 *
 * getopt is not used: the table has long names with types and scopes, and an unknown option should
 * be answered with the nearest name, or with the fact that it belongs to another command.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "orchestrator/config/store.h"

/* The few that have a letter. */
static const char *short_name(char letter)
{
	switch (letter) {
	case 'C': return "directory";
	case 'q': return "quiet";
	case 'v': return "verbose";
	default: return NULL;
	}
}

/* -1, with the best that can be said of the word. */
static int unknown_option(const char *word, enum option_scope scope, struct err *err)
{
	const char *name = word + strspn(word, "-");
	AUTO_FREE char *bare = mem_strndup(name, strcspn(name, "="));
	const struct option *elsewhere = option_find(bare);
	const char *near = option_nearest(bare, scope);

	if (elsewhere)
		return err_set(err, ERR_USAGE,
			       "'--%s' is not an option of this command; see --help", bare);
	if (near)
		return err_set(err, ERR_USAGE, "unknown option '%s'; did you mean '--%s'?", word,
			       near);
	return err_set(err, ERR_USAGE, "unknown option '%s'; see --help", word);
}

/* Where the reading of the command line stands. */
struct cursor {
	int argc;
	char **argv;
	int i;
	enum option_scope scope;
	const char *cwd;
};

/* --name, --name=VALUE, --name VALUE, --no-name. */
static int parse_long(struct settings *s, struct cursor *c, struct err *err)
{
	const char *word = c->argv[c->i];
	AUTO_FREE char *name = mem_strndup(word + 2, strcspn(word + 2, "="));
	const char *value = strchr(word, '=');
	const struct option *o = option_find(name);
	bool negated = !o && text_starts(name, "no-");

	if (negated)
		o = option_find(name + 3);
	if (!o || !(o->scope & c->scope) || (negated && o->type != OPTION_FLAG))
		return unknown_option(word, c->scope, err);
	if (negated && value)
		return err_set(err, ERR_USAGE, "'--%s' takes no value", name);
	if (o->type == OPTION_FLAG && !value) {
		store_flag(s, o, !negated, LAYER_COMMAND_LINE, "command line");
		return 0;
	}
	if (!value && c->i + 1 >= c->argc)
		return err_set(err, ERR_USAGE, "'--%s' needs a value: --%s %s", o->name, o->name,
			       o->metavar);
	const char *text = value ? value + 1 : c->argv[++c->i];
	return store_text(s, o, text, LAYER_COMMAND_LINE, "command line", c->cwd, err);
}

/* One letter a word: "-vq" could be a misspelt long option. */
static int parse_short(struct settings *s, struct cursor *c, struct err *err)
{
	const char *word = c->argv[c->i];
	const char *name = short_name(word[1]);
	const struct option *o = name && !word[2] ? option_find(name) : NULL;

	if (o && !(o->scope & c->scope))
		return err_set(err, ERR_USAGE, "'%s' is not an option of this command; see --help",
			       word);
	if (!o)
		return unknown_option(word, c->scope, err);
	if (o->type == OPTION_FLAG) {
		store_flag(s, o, true, LAYER_COMMAND_LINE, "command line");
		return 0;
	}
	if (c->i + 1 >= c->argc)
		return err_set(err, ERR_USAGE, "'%s' needs a value: %s %s", word, word, o->metavar);
	return store_text(s, o, c->argv[++c->i], LAYER_COMMAND_LINE, "command line", c->cwd, err);
}

static void add_argument(struct settings *s, const char *word)
{
	s->args = mem_array(s->args, s->n_args + 1, sizeof(*s->args));
	s->args[s->n_args++] = mem_strdup(word);
}

static int parse_command_line(struct settings *s, struct cursor *c, struct err *err)
{
	bool options = true;

	for (c->i = 0; c->i < c->argc; c->i++) {
		const char *word = c->argv[c->i];
		int rc = 0;
		if (options && strcmp(word, "--") == 0)
			options = false;
		else if (options && (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0))
			s->wants_help = true;
		else if (options && text_starts(word, "--"))
			rc = parse_long(s, c, err);
		else if (options && word[0] == '-' && word[1])
			rc = parse_short(s, c, err);
		else
			add_argument(s, word);
		if (rc < 0)
			return -1;
	}
	return 0;
}

static int read_file_in(struct settings *s, const char *dir, const char *name, enum layer layer,
			struct err *err)
{
	if (!dir)
		return 0;
	AUTO_FREE char *path = file_join(dir, name);
	return layer_read_file(s, path, layer, err);
}

/* Weakest first, for the tables that are merged in the order of reading (layers.c). */
static int read_layers(struct settings *s, const char *project_dir, struct err *err)
{
	AUTO_FREE char *user = env_config_dir();

	if (read_file_in(s, user, "config.yaml", LAYER_USER, err) < 0 ||
	    read_file_in(s, project_dir, ".baton/config.yaml", LAYER_PROJECT, err) < 0 ||
	    read_file_in(s, project_dir, ".baton/config.local.yaml", LAYER_PROJECT_LOCAL, err) <
		    0 ||
	    layer_read_environment(s, err) < 0)
		return -1;
	return read_file_in(s, "/etc/baton", "config.yaml", LAYER_MANAGED, err);
}

int settings_load(int argc, char **argv, enum option_scope scope, const char *project_dir,
		  struct settings **ret, struct err *err)
{
	AUTO_FREE char *cwd = getcwd(NULL, 0);
	struct settings *s = store_new();
	struct cursor c = {.argc = argc, .argv = argv, .scope = scope, .cwd = cwd ? cwd : "/"};

	if (parse_command_line(s, &c, err) < 0 ||
	    (!s->wants_help && read_layers(s, project_dir, err) < 0)) {
		settings_free(s);
		return -1;
	}
	*ret = s;
	return 0;
}
