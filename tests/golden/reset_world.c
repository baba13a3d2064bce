/*
 * reset_world.c - see reset_world.h.
 */
#include "reset_world.h"

#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/env.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "orchestrator/handoff_truth.h"

#define FILE_BYTES ((size_t)1 << 20)

/* Sources the file that a test names, calls the function that it is of, and compares. */
static const char check[] = "#!/bin/sh\n"
			    "while read -r test file function want; do\n"
			    "\t[ \"$test\" = \"$1\" ] || continue\n"
			    "\t. \"./$file\"\n"
			    "\tgot=$($function)\n"
			    "\t[ \"$got\" = \"$want\" ] && echo \"$test passed\" && exit 0\n"
			    "\techo \"$test FAILED\"\n"
			    "\tline=0\n"
			    "\twhile read -r text; do\n"
			    "\t\tline=$((line + 1))\n"
			    "\t\t[ \"$text\" != \"$function() {\" ] || break\n"
			    "\tdone < \"$file\"\n"
			    "\techo \"$file:$line: $function() returned $got, expected $want\"\n"
			    "\texit 1\n"
			    "done < tests/expected\n"
			    "echo \"there is no test $1\"\n"
			    "exit 2\n";

/* ---- files ---- */

static char *path_of(const struct reset_world *w, const char *name)
{
	if (*name == '/' || text_starts(name, "../") || strstr(name, "/../"))
		fail_msg("'%s' lies outside of the worktree", name);
	return file_join(w->rig.repo, name);
}

static void put(const struct reset_world *w, const char *name, const char *text, size_t n)
{
	AUTO_FREE char *path = path_of(w, name);
	AUTO_FREE char *folder = file_dir(path);
	struct err e = ERR_INIT;

	if (file_mkdirs(folder, 0700, &e) < 0 ||
	    file_write_atomic(AT_FDCWD, path, text, n, 0600, &e) < 0)
		fail_msg("%s", e.message);
}

static bool get(const struct reset_world *w, const char *name, struct buf *out)
{
	AUTO_FREE char *path = path_of(w, name);

	return file_read(AT_FDCWD, path, FILE_BYTES, out, NULL) == 0;
}

/* False: the text is not there. */
static bool edit(const struct reset_world *w, const char *name, const char *old, const char *new)
{
	AUTO_BUF struct buf before = BUF_INIT, after = BUF_INIT;
	const char *at;

	if (!get(w, name, &before) || !(at = strstr(buf_str(&before), old)))
		return false;
	buf_add(&after, before.data, (size_t)(at - before.data));
	buf_adds(&after, new);
	buf_adds(&after, at + strlen(old));
	put(w, name, after.data, after.len);
	return true;
}

/* ---- the conversation's files ---- */

static struct json_object *arguments(const struct golden_step *step)
{
	struct json_object *o = NULL;

	assert_int_equal(json_parse(step->arguments, strlen(step->arguments), &o, NULL), 0);
	return o;
}

/* Everything that is read or edited has to be there, with what an edit replaces in it. */
static void seed_file(struct reset_world *w, const struct golden_step *step)
{
	AUTO_JSON struct json_object *o = step->user ? NULL : arguments(step);
	const char *name = json_str(o, "path", NULL);
	AUTO_BUF struct buf text = BUF_INIT;

	if (!name || !strcmp(step->tool, "write"))
		return;
	get(w, name, &text);
	if (!text.len)
		buf_addf(&text, "%s\n", name);
	buf_adds(&text, json_str(o, "old_string", ""));
	put(w, name, text.data, text.len);
}

/* The programs that the conversation has: there, but they do nothing. */
static void install_program(const struct reset_world *w, const struct golden_step *step)
{
	AUTO_JSON struct json_object *o = step->user ? NULL : arguments(step);
	const char *command = json_str(o, "command", "");
	AUTO_FREE char *name = mem_strndup(command, strcspn(command, " "));
	AUTO_FREE char *path = mem_printf("%s/bin/%s", w->rig.dir, name);

	if (!*name || strchr(name, '/') || file_exists(path))
		return;
	if (symlink("/bin/true", path) < 0)
		fail_msg("cannot make '%s'", path);
}

/* Found behind the real ones. */
static void install_programs(struct reset_world *w, const struct golden *golden)
{
	AUTO_FREE char *bin = file_join(w->rig.dir, "bin");
	AUTO_FREE char *path = mem_printf("%s:%s", w->path, bin);

	if (file_mkdirs(bin, 0700, NULL) < 0 || setenv("PATH", path, 1) < 0)
		fail_msg("cannot make '%s'", bin);
	for (size_t i = 0; i < golden->n_steps; i++)
		install_program(w, &golden->steps[i]);
}

void reset_world_make(struct reset_world *w, const struct golden *golden)
{
	*w = (struct reset_world){.random = 7, .path = mem_strdup(env_get("PATH"))};
	rig_make(&w->rig, "git init -q repo");
	install_programs(w, golden);
	put(w, "tests/check.sh", check, strlen(check));
	put(w, "tests/expected", "", 0);
	for (size_t i = 0; i < golden->n_steps; i++)
		seed_file(w, &golden->steps[i]);
	w->base = rig_sh(
		&w->rig, "repo",
		"git add -A; git -c maintenance.auto=false commit -qm base; git rev-parse HEAD");
	rig_start(&w->rig, w->rig.repo);
}

void reset_world_free(struct reset_world *w)
{
	rig_free(&w->rig);
	setenv("PATH", w->path, 1);
	free(w->path);
	free(w->base);
}

void reset_world_replay(struct reset_world *w, const struct golden_step *step)
{
	AUTO_JSON struct json_object *o = step->user ? NULL : arguments(step);
	const char *name = json_str(o, "path", "");

	if (!step->user && !strcmp(step->tool, "write"))
		put(w, name, json_str(o, "content", ""), json_str_len(o, "content"));
	else if (!step->user && !strcmp(step->tool, "edit") &&
		 !edit(w, name, json_str(o, "old_string", ""), json_str(o, "new_string", "")))
		fail_msg("%s: the text that is to be replaced is not there", name);
}

/* ---- what is broken ---- */

/* Two functions of one body: who only looks for the value mends the wrong one. */
static char *content_of(const char *word, int got)
{
	return mem_printf("# The limits of %s.\nread_%s() {\n\techo %d\n}\n%s_limit() {\n\techo "
			  "%d\n}\n",
			  word, word, got, word, got);
}

void reset_world_break(struct reset_world *w, size_t cut, struct defect *ret)
{
	static const char *const words[] = {"lease", "quota", "spool", "shard", "ticket"};
	const char *word = words[cut % ARRAY_SIZE(words)];
	AUTO_BUF struct buf expected = BUF_INIT;

	*ret = (struct defect){.got = 10 + (int)(golden_random(&w->random) % 40),
			       .want = 100 + (int)(golden_random(&w->random) % 800)};
	ret->file = mem_printf("steps/%s.sh", word);
	ret->function = mem_printf("%s_limit", word);
	ret->test = mem_printf("test_%s_limit", word);
	ret->command = mem_printf("sh tests/check.sh %s", ret->test);
	ret->content = content_of(word, ret->got);
	get(w, "tests/expected", &expected);
	buf_addf(&expected, "%s %s %s %d\n", ret->test, ret->file, ret->function, ret->want);
	put(w, "tests/expected", expected.data, expected.len);
}

void defect_release(struct defect *d)
{
	free(d->file);
	free(d->function);
	free(d->test);
	free(d->command);
	free(d->content);
	*d = (struct defect){.file = NULL};
}

/* ---- calls ---- */

static void call_shell(struct reset_world *w, const char *command, struct tool_result *ret)
{
	AUTO_FREE char *script = mem_printf("exec 2>&1; %s", command);
	AUTO_BUF struct buf out = BUF_INIT;

	ret->exit_code = WEXITSTATUS(rig_sh_output(&w->rig, "repo", script, &out));
	if (ret->exit_code)
		buf_addf(&ret->text, "exit code %d\n", ret->exit_code);
	buf_adds(&ret->text, buf_str(&out));
	ret->summary = mem_printf("shell: %s (exit %d, 0.1 s)", command, ret->exit_code);
}

static void call_read(struct reset_world *w, const char *name, struct tool_result *ret)
{
	AUTO_BUF struct buf text = BUF_INIT;
	size_t number = 0;

	ret->is_error = !get(w, name, &text);
	for (const char *at = buf_str(&text); *at;) {
		size_t n = strcspn(at, "\n");

		buf_addf(&ret->text, "%6zu\t%.*s\n", ++number, (int)n, at);
		at += n + (at[n] == '\n');
	}
}

void reset_world_call(void *arg, const char *tool, struct json_object *input,
		      struct tool_result *ret)
{
	struct reset_world *w = arg;
	const char *name = json_str(input, "path", "");

	ret->exit_code = -1;
	ret->has_effects = strcmp(tool, "read") != 0;
	if (!strcmp(tool, "shell")) {
		call_shell(w, json_str(input, "command", ""), ret);
	} else if (!strcmp(tool, "read")) {
		call_read(w, name, ret);
	} else if (!strcmp(tool, "write")) {
		put(w, name, json_str(input, "content", ""), json_str_len(input, "content"));
		buf_addf(&ret->text, "wrote %s", name);
	} else {
		ret->is_error = !edit(w, name, json_str(input, "old_string", ""),
				      json_str(input, "new_string", ""));
		buf_addf(&ret->text, ret->is_error ? "old_string is not in %s" : "edited %s", name);
	}
	ret->is_error |= ret->exit_code > 0;
	if (!ret->summary)
		ret->summary = mem_printf("%s %s", tool, name);
}

/* ---- all of it ---- */

static struct json_object *walked;
static size_t walked_root;

static int on_file(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	AUTO_BUF struct buf text = BUF_INIT;

	if (kind == FTW_D && !strcmp(path + ftw->base, ".git"))
		return FTW_SKIP_SUBTREE;
	if (kind != FTW_F)
		return FTW_CONTINUE;
	if (file_read(AT_FDCWD, path, FILE_BYTES, &text, NULL) < 0)
		return FTW_STOP;
	json_set_strn(walked, path + walked_root, buf_str(&text), text.len);
	return FTW_CONTINUE;
}

struct json_object *reset_world_files(struct reset_world *w)
{
	walked = json_object_new_object();
	walked_root = strlen(w->rig.repo) + 1;
	assert_int_equal(nftw(w->rig.repo, on_file, 8, FTW_PHYS | FTW_ACTIONRETVAL), 0);
	return walked;
}

char *reset_world_changed(struct reset_world *w, struct json_object *before)
{
	AUTO_JSON struct json_object *now = reset_world_files(w);
	AUTO_BUF struct buf names = BUF_INIT;

	json_object_object_foreach (before, gone, text) {
		if (text && !json_has(now, gone))
			buf_addf(&names, "%s\n", gone);
	}
	json_object_object_foreach (now, name, value) {
		if (strcmp(json_object_get_string(value), json_str(before, name, "")) != 0)
			buf_addf(&names, "%s\n", name);
	}
	return mem_strndup(buf_str(&names), names.len ? names.len - 1 : 0);
}

struct json_object *reset_world_facts(struct reset_world *w, const struct handoff *handoff)
{
	struct json_object *question = handoff_facts_question(handoff);
	struct json_object *tips = json_object_new_array();

	json_object_array_add(tips, json_object_new_string("refs/heads/main"));
	json_set(question, "tips", tips);
	json_set_bool(question, "worktree", true);
	return rig_ok(&w->rig, "facts", question);
}

void reset_world_restore(struct reset_world *w)
{
	free(rig_sh(&w->rig, "repo", "git read-tree -u --reset HEAD; git clean -qfd"));
}
