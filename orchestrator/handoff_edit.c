/*
 * handoff_edit.c - see handoff_edit.h.
 *
 * What is edited is a copy beside the document, so that an editor that dies, a full disk or a second thought leaves the document as it
 * was. The copy of an edit that was not taken is kept, and its path told: it may be an hour's work.
 */
#include "orchestrator/handoff_edit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/env.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/spawn.h"
#include "base/text.h"
#include "orchestrator/command.h"

/* The user's own editor with the user's own environment, by the rules of git: a shell line with the file behind it. */
static int run_editor(const char *path, struct err *err)
{
	static const char *const allow[] = {"*", NULL};
	const char *editor = env_get("VISUAL");
	struct spawn_opts opts = SPAWN_OPTS_INIT;
	int status = 0;
	pid_t pid;

	if (!editor)
		editor = env_get("EDITOR");
	if (!editor)
		return err_set(err, ERR_USAGE, "set EDITOR to your editor first");
	AUTO_FREE char *line = mem_printf("%s \"$1\"", editor);
	const char *const argv[] = {"sh", "-c", line, "sh", path, NULL};
	char **env = env_filter(allow, NULL);
	opts.path = "/bin/sh";
	opts.argv = argv;
	opts.envp = (const char *const *)env;
	opts.fd_in = STDIN_FILENO;
	opts.fd_out = STDOUT_FILENO;
	opts.fd_err = STDERR_FILENO;
	opts.same_group = true;
	/* An interrupt key is meant for the editor. */
	struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
	int rc = spawn_process(&opts, &pid, NULL, err);
	env_list_free(env);
	if (rc < 0)
		return -1;
	sigaction(SIGINT, &ignore, &before);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	sigaction(SIGINT, &before, NULL);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return err_set(err, ERR_CANCELLED,
			       "the editor '%s' failed; the document is as it was", editor);
	return 0;
}

static bool back_in(void)
{
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return false;
	printf("Back into the editor? [Y/n] ");
	int answer = command_answer();
	return answer && answer != 'n';
}

/* 0: good, 1: refused (told), -1: it cannot be read. */
static int check_edit(const struct settings *s, const struct handoff *handoff)
{
	struct git_session *git = NULL;
	AUTO_FREE char *commit = NULL;
	struct handoff_records *records = handoff_source_records(s, handoff, &git, &commit);
	struct handoff_truth truth = handoff_records_truth(records);
	struct handoff_findings findings;
	bool good = handoff_check(handoff, &truth, &findings);

	for (size_t i = 0; i < findings.n; i++)
		if (findings.list[i].fault != HANDOFF_UNPROVED)
			command_say("%s: %s\n", handoff_part_key(findings.list[i].part),
				    findings.list[i].text);
	handoff_findings_release(&findings);
	handoff_records_free(records);
	git_session_close(git);
	return good ? 0 : 1;
}

static int read_edit(const char *path, struct handoff **ret, struct err *err)
{
	AUTO_BUF struct buf text = BUF_INIT;

	if (file_read(AT_FDCWD, path, HANDOFF_BYTES_MAX, &text, err) < 0)
		return -1;
	return handoff_parse(buf_str(&text), text.len, ret, err);
}

static int write_form(const struct handoff *handoff, const char *path, bool as_json,
		      struct err *err)
{
	AUTO_BUF struct buf text = BUF_INIT;
	AUTO_JSON struct json_object *json = as_json ? handoff_to_json(handoff) : NULL;

	if (as_json)
		json_write_pretty(&text, json);
	else
		handoff_to_markdown(handoff, &text);
	return file_write_atomic(AT_FDCWD, path, text.data, text.len, 0600, err);
}

/* A name that nobody has: an older edit's old document stays, too. */
static int keep_old(const char *path, char **ret, struct err *err)
{
	for (int i = 1; i < 10000; i++) {
		AUTO_FREE char *old = mem_printf("%s.old-%d", path, i);
		if (link(path, old) == 0) {
			*ret = take_ptr(old);
			return 0;
		}
		if (errno != EEXIST)
			return err_sys(err, "cannot keep the old document as '%s'", old);
	}
	return err_set(err, ERR_EXISTS, "there are too many old documents beside '%s'", path);
}

static int take_edit(const struct handoff_source *source, const struct handoff *edited,
		     const char *copy, struct err *err)
{
	AUTO_FREE char *old = NULL;

	if (keep_old(source->path, &old, err) < 0 ||
	    write_form(edited, source->path, source->json, err) < 0 ||
	    (source->other && write_form(edited, source->other, !source->json, err) < 0))
		return err_prefix(err, "your edit is in '%s'", copy);
	unlink(copy);
	command_say("%s was replaced; the old one is %s\n", source->path, old);
	return EXIT_OK;
}

/* Is it the same document as before? Then nothing is replaced. */
static bool same(const struct handoff *a, const struct handoff *b)
{
	AUTO_BUF struct buf x = BUF_INIT;
	AUTO_BUF struct buf y = BUF_INIT;

	handoff_to_markdown(a, &x);
	handoff_to_markdown(b, &y);
	return strcmp(buf_str(&x), buf_str(&y)) == 0;
}

/* An editor that failed may have saved before. */
static bool drop_untouched(const struct handoff_source *source, const char *copy)
{
	AUTO_BUF struct buf before = BUF_INIT;
	AUTO_BUF struct buf now = BUF_INIT;

	handoff_to_markdown(source->handoff, &before);
	if (file_read(AT_FDCWD, copy, HANDOFF_BYTES_MAX, &now, NULL) < 0 ||
	    strcmp(buf_str(&before), buf_str(&now)) != 0)
		return false;
	unlink(copy);
	return true;
}

/* One time in the editor. 1: the user wants in again. */
static int edit_once(const struct settings *s, const struct handoff_source *source,
		     const char *copy, int *ret_status, struct err *err)
{
	struct handoff *edited = NULL;
	struct err why = ERR_INIT;
	int rc = 0;

	if (run_editor(copy, err) < 0)
		return drop_untouched(source, copy) ? -1 : err_prefix(err, "your edit is %s", copy);
	if (read_edit(copy, &edited, &why) < 0) {
		command_say("%s\n", why.message);
	} else if (same(edited, source->handoff)) {
		command_say("nothing was changed\n");
		unlink(copy);
		*ret_status = EXIT_OK;
		goto out;
	} else if (check_edit(s, edited) == 0) {
		rc = take_edit(source, edited, copy, err);
		*ret_status = EXIT_OK;
		goto out;
	}
	*ret_status = EXIT_FAILED;
	rc = back_in();
	if (!rc)
		command_say("%s was not changed; your edit is %s\n", source->path, copy);
out:
	handoff_free(edited);
	return rc;
}

int handoff_edit(const struct settings *s, const struct handoff_source *source, struct err *err)
{
	AUTO_FREE char *copy = mem_printf("%s.edit-%ld.md", source->path, (long)getpid());
	int status = EXIT_FAILED, rc;

	if (write_form(source->handoff, copy, false, err) < 0)
		return -1;
	do {
		rc = edit_once(s, source, copy, &status, err);
	} while (rc > 0);
	return rc < 0 ? -1 : status;
}
