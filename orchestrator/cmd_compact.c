/*
 * cmd_compact.c - `baton compact RUN/AGENT [FOCUS]`: a person's word on an agent's window (H6, H8, X4).
 *
 * The wish goes to the run's parent (control.h) and from there to the agent, which follows it before its next
 * request; what came of it is an event of the run. --show needs no living run: it compares the files that
 * the agent left of its compactions.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "orchestrator/command.h"
#include "orchestrator/compactions.h"
#include "orchestrator/tell.h"

#define SUMMARY_MAX (512 << 10)

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

static int ask(const struct settings *s, const struct past_run *run, const struct past_agent *agent,
	       struct err *err)
{
	AUTO_JSON struct json_object *request = json_object_new_object();
	struct json_object *wish;

	if (settings_flag(s, OPT_SHOW))
		return compactions_show(run, agent, err);
	wish = make_wish(s, err);
	if (!wish)
		return -1;
	json_set_str(request, "op", "compact");
	json_set(request, "wish", wish);
	return tell_agent(s, run, agent, request, "follows", "context", err);
}

int cmd_compact(struct settings *s)
{
	struct err err = ERR_INIT;

	if (settings_n_args(s) < 1) {
		err_set(&err, ERR_USAGE, "compact needs a RUN/AGENT; see 'baton ls'");
		return command_fail(&err);
	}
	if (check_options(s, &err) < 0)
		return command_fail(&err);
	return tell_command(s, true, ask);
}
