/*
 * resume.c - see resume.h. Nothing here sends but through the calls that run again.
 *
 * Three looks at the file, each for one thing: the loader for messages, edit_record for the view, and one here for the
 * records round them, which skips messages unparsed. A generation has some hundred rounds, and this happens once.
 */
#include "agent/resume.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/calls.h"
#include "agent/context/about.h"
#include "agent/context/edit_record.h"
#include "agent/context/epoch.h"
#include "agent/events.h"
#include "agent/hooks.h"
#include "agent/resume_calls.h"
#include "agent/state.h"
#include "agent/tools/output.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/jsonl.h"
#include "base/memory.h"
#include "base/text.h"

#define LINE_MAX_BYTES ((size_t)64 << 20)
#define CHANGED_SHOWN  20

/* ---- what stands round the messages ---- */

static bool is_wanted(const char *line, size_t n, void *arg)
{
	static const char *const skipped[] = {"\"type\":\"message\"", "\"type\":\"request\"",
					      "\"type\":\"usage\""};
	const char *type = n > 40 ? memmem(line, 80 < n ? 80 : n, "\"type\":", 7) : NULL;

	for (size_t i = 0; type && i < ARRAY_SIZE(skipped); i++) {
		size_t len = strlen(skipped[i]);

		if (n - (size_t)(type - line) > len && !memcmp(type, skipped[i], len))
			return false;
	}
	return true;
}

struct look {
	struct agent *a;
	bool same_model; /* as the process before */
};

static bool is_same_model(const struct model *m, struct json_object *record)
{
	return !strcmp(json_str(record, "model", ""), m->name) &&
	       !strcmp(json_str(record, "provider", ""), m->provider);
}

static int on_record(struct json_object *record, int64_t offset, void *arg)
{
	struct look *look = arg;
	struct agent *a = look->a;
	const char *type = json_str(record, "type", "");
	const char *subtype = json_str(record, "subtype", "");

	a->resumes += !strcmp(type, "resume");
	if (!strcmp(type, "start") || !strcmp(type, "resume"))
		look->same_model = is_same_model(a->settings->model, record);
	if (!strcmp(type, "start"))
		a->resumes = 0; /* a fork's own, behind what it took over */
	if (!strcmp(type, "tool_ended"))
		resume_calls_note(a->resumed, record);
	else if (!strcmp(subtype, "compact_boundary"))
		a->boundaries++;
	else if (!strcmp(subtype, "compact_undone") && a->boundaries)
		a->boundaries--;
	return 0;
}

/* When the last record was written: by the file's own time, which needs no whole last line. */
static int64_t last_written_ms(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return clock_wall_ms();
	return (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000;
}

/* ---- the parts ---- */

/* X5: the report counts the calls of the whole generation. Results say how a command ended in their first line. */
static void count_calls(struct agent *a)
{
	const struct conversation *c = &a->conversation;
	int exit_code;

	/* The first message of a fork gives results to calls of another one. */
	for (size_t i = a->fork.begin ? a->fork.begin + 1 : 0; i < c->n; i++) {
		const struct message *m = c->messages[i];

		for (size_t k = 0; m->role == MESSAGE_USER && k < m->n_blocks; k++) {
			const struct block *b = &m->blocks[k];

			if (b->kind != BLOCK_TOOL_RESULT)
				continue;
			exit_code = about_kind(b->name) == ABOUT_RUN
					    ? output_exit_code(b->text, b->is_error)
					    : -1;
			record_call(&a->record, b->name, b->is_error, exit_code);
		}
	}
}

/* The uids that the view took for its own are given to nobody else. */
static void reserve_uids(struct agent *a)
{
	for (size_t i = 0; i < a->view.n; i++)
		a->conversation.next_uid = MAX(a->conversation.next_uid, a->view.list[i]->uid + 1);
}

/* Only what is in the view is sent; what comes back into one is rendered by whoever puts it there. */
static void render_view(struct agent *a)
{
	for (size_t i = 0; i < a->view.n; i++)
		client_render_message(a->client, a->view.list[i]);
}

static int load_view(struct agent *a, const char *path, struct err *err)
{
	struct transcript *record = take_ptr(a->view.record); /* what is done again is no news */
	size_t left_out = 0;
	int rc = edit_record_rebuild(path, &a->conversation, &a->view, &left_out, err);

	a->view.record = record;
	if (left_out)
		event_warning(a->channel,
			      "%zu rewrites of the window could not be done again: it holds more "
			      "than before",
			      left_out);
	return rc;
}

/* A fork whose first message is not there yet begins, and goes on from nothing of its own. */
static void note_resume(struct agent *a, int64_t idle_ms, const struct transcript_stats *stats)
{
	struct transcript_resume resume = {
		.idle_ms = idle_ms,
		.repaired = stats->repaired,
		.bad_lines = stats->bad_lines,
	};

	a->settings->resume = !a->fork.fresh;
	if (a->fork.fresh)
		return;
	a->resumes++;
	transcript_resume(a->transcript, &resume, a->settings->model);
}

int resume_load(struct agent *a, struct err *err)
{
	AUTO_FREE char *path = file_join(a->settings->dir_generation, "transcript.jsonl");
	struct transcript_stats stats = {.records = 0};
	struct jsonl_stats lines = {.records = 0};
	int64_t written = last_written_ms(path);
	struct err why = ERR_INIT;
	struct look look = {.a = a, .same_model = true};
	bool open = false;

	if (transcript_load_open(path, &a->conversation, &stats, &open, &why) < 0) {
		a->settings->resume = false;
		if (!fork_is_first(a->settings) &&
		    (why.code == ERR_INVALID || why.code == ERR_NOT_FOUND))
			return 0;
		return err_set(err, why.code, "%s", why.message);
	}
	if (fork_is_first(a->settings) && fork_find(a, err) < 0)
		return -1;
	a->resumed = resume_calls_new(open, written);
	if (jsonl_search(path, LINE_MAX_BYTES, is_wanted, on_record, &look, &lines, err) < 0 ||
	    load_view(a, path, err) < 0)
		return -1;
	reserve_uids(a);
	render_view(a);
	ledger_restart(&a->ledger, a->view.list, a->view.n);
	user_words_take_conversation(&a->words, &a->conversation);
	facts_take(&a->facts, &a->conversation);
	count_calls(a);
	int64_t idle = MAX(clock_wall_ms() - written, INT64_C(0));
	a->asked_ms = clock_mono_ms() - idle; /* T8: the provider's cache may have lapsed */
	a->checkpoints.changed = !a->settings->read_only;
	note_resume(a, idle, &stats);
	/* W11: what another model thought carries no signature that this one would take. */
	if (a->settings->model->preserved_thinking && !look.same_model)
		epoch_unbind(&a->view, &a->ledger, &a->conversation);
	return 0;
}

/* ---- going on ---- */

static void add_duration(struct buf *out, int64_t ms)
{
	int64_t minutes = ms / 60000;

	if (minutes < 2)
		buf_addf(out, "%" PRId64 " s", ms / 1000);
	else if (minutes < 120)
		buf_addf(out, "%" PRId64 " minutes", minutes);
	else
		buf_addf(out, "%" PRId64 " h %" PRId64 " min", minutes / 60, minutes % 60);
}

/* T8: of the files that the model read or changed, those that somebody touched since. */
static void add_changed(struct agent *a, struct buf *out)
{
	size_t n = 0;

	for (size_t i = 0; i < a->facts.n_files; i++) {
		const char *path = a->facts.files[i].path;
		int64_t changed;
		bool there = tool_context_file_time(a->toolbox.context, path, &changed);

		if (there && changed <= resume_calls_cut(a->resumed))
			continue;
		if (n++ == CHANGED_SHOWN) {
			buf_adds(out, "\n- and others");
			break;
		}
		buf_addf(out, "%s\n- %s%s",
			 n == 1 ? "\nFiles that you know and that are not as they were then:" : "",
			 path, there ? "" : " (gone)");
	}
}

static void write_note(struct agent *a, struct buf *out)
{
	buf_adds(out, "[This work was cut off, and goes on now after ");
	add_duration(out, MAX(clock_wall_ms() - resume_calls_cut(a->resumed), INT64_C(0)));
	buf_adds(out, ". Nothing of it is lost but what ran at that moment; background jobs have "
		      "ended.");
	if (a->settings->resume_note && *a->settings->resume_note)
		buf_addf(out, " %s", a->settings->resume_note);
	if (a->toolbox.context)
		add_changed(a, out);
	buf_addc(out, ']');
}

/* The worktree is waited for: what is said of its files must be of those that are there. */
static int open_tools(struct agent *a, struct err *err)
{
	struct err why = ERR_INIT;

	if (a->toolbox.needs_nothing || toolbox_open(&a->toolbox, a->waiter, &why) == 0)
		return 0;
	if (why.code == ERR_CANCELLED || why.code == ERR_CLOSED) {
		if (err)
			*err = why;
		return -1;
	}
	return agent_end(a, OUTCOME_FAILED, CALL_CLASS_NONE, "%s", why.message);
}

int resume_begin(struct agent *a, struct err *err)
{
	AUTO_BUF struct buf note = BUF_INIT;
	int rc = open_tools(a, err);

	if (rc)
		return rc;
	write_note(a, &note);
	if (resume_calls_open(a->resumed))
		return calls_finish(a, conversation_last(&a->conversation), buf_str(&note), err);
	agent_nudge(a, buf_str(&note));
	return 0;
}
