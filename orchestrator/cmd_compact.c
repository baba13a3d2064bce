/*
 * cmd_compact.c - `baton compact RUN/AGENT [FOCUS]`: a person's word on an agent's window (H6, H8, X4).
 *
 * The wish goes to the run's parent (control.h) and from there to the agent, which follows it before its next
 * request; what came of it is an event of the run, which is waited for. --show needs no living run: it compares
 * the files that the agent left of its compactions.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "orchestrator/command.h"
#include "orchestrator/compact_wait.h"
#include "orchestrator/compactions.h"
#include "orchestrator/control.h"
#include "orchestrator/runs.h"

#define SUMMARY_MAX (512 << 10)
#define WAIT_MS	    600000 /* as long as a command of an agent may take by default */

/* More than one of these at once means nothing. */
static int check_options(const struct settings *s, struct err *err)
{
	static const enum option_id kinds[] = {OPT_UNDO, OPT_ACCEPT, OPT_REJECT, OPT_SHOW};
	int64_t from = settings_i64(s, OPT_FROM), up_to = settings_i64(s, OPT_UP_TO);
	bool focus = settings_n_args(s) > 1;
	int n = settings_str(s, OPT_EDIT) != NULL;

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		n += settings_flag(s, kinds[i]);
	if (n > 1)
		return err_set(err, ERR_USAGE,
			       "only one of --undo, --accept, --reject, --edit and --show at once");
	if (from && up_to)
		return err_set(err, ERR_USAGE, "either --from or --up-to, not both");
	if (n && (from || up_to || focus))
		return err_set(err, ERR_USAGE,
			       "a FOCUS, --from and --up-to belong to a compaction that is asked "
			       "for");
	return 0;
}

static int add_summary(struct json_object *wish, const char *path, struct err *err)
{
	AUTO_BUF struct buf text = BUF_INIT;

	if (file_read(AT_FDCWD, path, SUMMARY_MAX, &text, err) < 0)
		return -1;
	if (!text.len || !text_is_utf8(text.data, text.len))
		return err_set(err, ERR_USAGE, "'%s' is empty or not UTF-8", path);
	json_set_strn(wish, "summary", text.data, text.len);
	return 0;
}

static struct json_object *make_wish(const struct settings *s, struct err *err)
{
	struct json_object *wish = json_object_new_object();
	int64_t from = settings_i64(s, OPT_FROM), up_to = settings_i64(s, OPT_UP_TO);
	const char *edit = settings_str(s, OPT_EDIT);

	if (settings_flag(s, OPT_UNDO))
		json_set_bool(wish, "undo", true);
	if (settings_flag(s, OPT_ACCEPT))
		json_set_bool(wish, "accept", true);
	if (settings_flag(s, OPT_REJECT))
		json_set_bool(wish, "reject", true);
	if (from || up_to) {
		json_set_str(wish, "mode", from ? "from" : "up_to");
		json_set_i64(wish, "round", from ? from : up_to);
	}
	if (settings_n_args(s) > 1)
		json_set_str(wish, "focus", settings_arg(s, 1));
	if (edit && add_summary(wish, edit, err) < 0) {
		json_object_put(wish);
		return NULL;
	}
	return wish;
}

static int tell(const struct settings *s, const struct past_run *run,
		const struct past_agent *agent, struct json_object **ret, struct err *err)
{
	AUTO_JSON struct json_object *request = json_object_new_object();
	struct json_object *wish = make_wish(s, err);

	if (!wish)
		return -1;
	json_set_str(request, "op", "compact");
	json_set_str(request, "agent", agent->name);
	json_set(request, "wish", wish);
	return control_ask(run->dir, request, ret, err);
}

static void say_outcome(const struct settings *s, const char *who, struct json_object *end)
{
	int64_t before = json_i64(end, "before", 0), after = json_i64(end, "after", 0);
	const char *summary = json_str(end, "summary", NULL);

	if (summary)
		command_say("%s: the summary waits for a look: %s\n(baton compact %s --accept, "
			    "--reject or --edit FILE)\n",
			    who, summary, who);
	else if (settings_flag(s, OPT_ACCEPT) || settings_flag(s, OPT_REJECT) ||
		 settings_str(s, OPT_EDIT))
		command_say("%s took the word\n", who);
	else
		command_say("%s: %s; %" PRId64 " tokens were in use, %" PRId64 " are now\n", who,
			    settings_flag(s, OPT_UNDO) ? "undone" : "compacted", before, after);
}

/* The agent has been told. 0: it has followed, or a person has to look first. */
static int wait_for_it(const struct settings *s, struct compact_wait *wait, const char *who,
		       struct json_object *got, struct err *err)
{
	struct json_object *end;

	if (compact_wait_for(wait, WAIT_MS, &end, err) < 0)
		return err_prefix(err, "%s", who);
	if (json_has(end, "followed") && !json_flag(end, "followed", false))
		return err_set(err, ERR_DENIED, "%s: %s", who,
			       json_str(end, "why", "not followed"));
	if (settings_flag(s, OPT_JSON)) {
		json_set(got, "outcome", json_object_get(end));
		command_print_json(got);
	} else {
		say_outcome(s, who, end);
	}
	return 0;
}

static int ask(const struct settings *s, const struct past_run *run, const struct past_agent *agent,
	       struct err *err)
{
	AUTO_FREE char *who = mem_printf("%s/%s", run->id, agent->name);
	AUTO_JSON struct json_object *got = NULL;
	struct compact_wait wait;
	int rc;

	if (!run->alive)
		return err_set(err, ERR_USAGE, "run %s is not running (%s)", run->id, run->status);
	if (compact_wait_begin(&wait, run->dir, agent->name, err) < 0)
		return -1;
	rc = tell(s, run, agent, &got, err);
	if (rc == 0 && !settings_flag(s, OPT_NO_WAIT))
		rc = wait_for_it(s, &wait, who, got, err);
	else if (rc == 0 && settings_flag(s, OPT_JSON))
		command_print_json(got);
	else if (rc == 0)
		command_say("%s was told; it follows before its next request (baton context %s)\n",
			    who, who);
	compact_wait_end(&wait);
	return rc;
}

int cmd_compact(struct settings *s)
{
	struct past_run run;
	struct past_agent *agent;
	struct err err = ERR_INIT;
	int rc;

	if (settings_n_args(s) < 1) {
		err_set(&err, ERR_USAGE, "compact needs a RUN/AGENT; see 'baton ls'");
		return command_fail(&err);
	}
	if (check_options(s, &err) < 0 ||
	    runs_find(s, settings_arg(s, 0), true, &run, &agent, &err) < 0)
		return command_fail(&err);
	rc = settings_flag(s, OPT_SHOW) ? compactions_show(&run, agent, &err)
					: ask(s, &run, agent, &err);
	run_release(&run);
	return rc < 0 ? command_fail(&err) : EXIT_OK;
}
