/*
 * fork.c - see fork.h.
 *
 * The spawner works on while its files are read. That is no race: a transcript only grows, and where its part for this
 * agent ends is found by the call and not by a length, so that neither a power cut nor a later record moves it. Files
 * of results are written once, so a second name for each costs nothing; whoever goes on writes to new names.
 */
#include "agent/fork.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "agent/hooks.h"
#include "agent/instructions_news.h"
#include "agent/state.h"
#include "base/file.h"
#include "base/jsonl.h"
#include "base/memory.h"

#define TRANSCRIPT     "transcript.jsonl"
#define WORDS	       "words.jsonl"
#define LINE_MAX_BYTES ((size_t)64 << 20)
#define SMALL_MAX      ((size_t)8 << 20)

bool fork_is_first(const struct agent_settings *s)
{
	return s->fork_call && s->generation == 1;
}

int64_t fork_own_rounds(const struct agent *a)
{
	return a->conversation.round - a->fork.round;
}

/* ---- where its part ends ---- */

struct point {
	const char *call;
	int64_t offset; /* of the line with the answer; -1: not found */
	uint64_t uid;
};

static bool holds_call(const char *line, size_t n, void *arg)
{
	const struct point *p = arg;

	return p->offset < 0 && memmem(line, n, p->call, strlen(p->call));
}

static int on_candidate(struct json_object *record, int64_t offset, void *arg)
{
	struct point *p = arg;
	struct message *m = NULL;

	if (strcmp(json_str(record, "type", ""), "message") != 0 ||
	    message_from_json(record, &m, NULL) < 0)
		return 0;
	for (size_t i = 0; i < m->n_blocks && p->offset < 0; i++) {
		if (m->blocks[i].kind == BLOCK_TOOL_CALL && !strcmp(m->blocks[i].id, p->call))
			p->offset = offset;
	}
	p->uid = m->uid;
	message_free(m);
	return p->offset >= 0;
}

static int find_point(const char *path, struct point *p, struct err *err)
{
	struct jsonl_stats stats;

	if (jsonl_search(path, LINE_MAX_BYTES, holds_call, on_candidate, p, &stats, err) < 0)
		return -1;
	if (p->offset < 0)
		return err_set(err, ERR_NOT_FOUND, "'%s' holds no call '%.80s'", path, p->call);
	return 0;
}

/* ---- taking over ---- */

/* All lines up to and with the one at `last`. */
static int copy_lines(int from, int to, int64_t last, struct err *err)
{
	AUTO_BUF struct buf piece = BUF_INIT;
	int64_t at = 0;

	for (;;) {
		buf_clear(&piece);
		ssize_t n = buf_read(&piece, from, 256 << 10);
		if (n < 0)
			return err_sys(err, "cannot read");
		if (n == 0)
			return err_set(err, ERR_INVALID, "the line ends nowhere");
		size_t skip = last > at ? (size_t)MIN(last - at, (int64_t)n) : 0;
		const char *lf = memchr(buf_str(&piece) + skip, '\n', (size_t)n - skip);
		size_t take = lf ? (size_t)(lf - buf_str(&piece)) + 1 : (size_t)n;
		if (file_write_all(to, buf_str(&piece), take, err) < 0)
			return -1;
		if (lf)
			return 0;
		at += n;
	}
}

/* Its name appears when it is whole: that is how another process knows that all is there. */
static int copy_transcript(const struct agent_settings *s, const char *from, int64_t last,
			   struct err *err)
{
	AUTO_FREE char *path = file_join(s->dir_generation, TRANSCRIPT);
	AUTO_FREE char *half = mem_printf("%s.half", path);
	AUTO_FD int in = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	AUTO_FD int out = open(half, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (in < 0 || out < 0)
		return err_sys(err, "cannot open '%s'", in < 0 ? from : half);
	if (copy_lines(in, out, last, err) < 0)
		return err_prefix(err, "'%s'", from);
	if (fsync(out) < 0 || rename(half, path) < 0)
		return err_sys(err, "cannot write '%s'", path);
	return file_sync_dir(s->dir_generation, err);
}

static int link_results(const struct agent_settings *s, struct err *err)
{
	AUTO_FREE char *from = file_join(s->fork_folder, "results");
	AUTO_FREE char *to = file_join(s->dir_generation, "results");
	int rc = file_mkdirs(to, 0700, err);
	DIR *dir = rc < 0 ? NULL : opendir(from);

	for (struct dirent *entry; dir && !rc && (entry = readdir(dir));) {
		AUTO_FREE char *there = file_join(from, entry->d_name);
		AUTO_FREE char *here = file_join(to, entry->d_name);

		if (*entry->d_name != '.' && link(there, here) < 0 && errno != EEXIST &&
		    errno != ENOENT)
			rc = err_sys(err, "cannot link '%s'", here);
	}
	if (dir)
		closedir(dir);
	return rc;
}

struct words {
	const struct agent_settings *settings;
	uint64_t last; /* uid of the answer that asked */
	struct buf out;
};

/* A word is known by its generation and the number of its message. Those of the conversation so far become this one's;
 * of earlier generations of the spawner this agent has no other trace, so they are of none. */
static int on_word(struct json_object *record, int64_t offset, void *arg)
{
	struct words *w = arg;
	int64_t generation = json_i64(record, "generation", 0);
	bool present = generation == w->settings->fork_generation;

	if (present && (uint64_t)json_i64(record, "uid", 0) > w->last)
		return 0; /* said to the other one, later */
	if (json_has(record, "generation"))
		json_set_i64(record, "generation", present ? w->settings->generation : 0);
	json_write(&w->out, record);
	buf_addc(&w->out, '\n');
	return 0;
}

static int adopt_words(const struct agent_settings *s, uint64_t last, struct err *err)
{
	AUTO_FREE char *from = file_join(s->fork_folder, WORDS);
	AUTO_FREE char *to = file_join(s->dir_generation, WORDS);
	struct words w = {.settings = s, .last = last};
	struct jsonl_stats stats;
	int rc = 0;

	if (file_exists(from))
		rc = jsonl_read(from, 0, LINE_MAX_BYTES, on_word, &w, &stats, err);
	if (rc >= 0)
		rc = file_write_atomic(AT_FDCWD, to, buf_str(&w.out), w.out.len, 0600, err);
	buf_release(&w.out);
	return rc;
}

static int copy_small(const struct agent_settings *s, const char *name, struct err *err)
{
	AUTO_FREE char *from = file_join(s->fork_folder, name);
	AUTO_FREE char *to = file_join(s->dir_generation, name);
	AUTO_BUF struct buf bytes = BUF_INIT;
	struct err why = ERR_INIT;

	if (file_read(AT_FDCWD, from, SMALL_MAX, &bytes, &why) < 0) {
		if (why.code == ERR_NOT_FOUND)
			return 0;
		if (err)
			*err = why;
		return -1;
	}
	return file_write_atomic(AT_FDCWD, to, buf_str(&bytes), bytes.len, 0600, err);
}

int fork_adopt(const struct agent_settings *s, struct err *err)
{
	AUTO_FREE char *own = file_join(s->dir_generation, TRANSCRIPT);

	if (!fork_is_first(s) || file_exists(own))
		return 0;
	AUTO_FREE char *from = file_join(s->fork_folder, TRANSCRIPT);
	struct point point = {.call = s->fork_call, .offset = -1};
	if (file_mkdirs(s->dir_generation, 0700, err) < 0 || find_point(from, &point, err) < 0 ||
	    link_results(s, err) < 0 || adopt_words(s, point.uid, err) < 0 ||
	    copy_small(s, "memory.json", err) < 0 || copy_small(s, "plan.md", err) < 0 ||
	    copy_small(s, "notes.md", err) < 0 || copy_transcript(s, from, point.offset, err) < 0)
		return err_prefix(err, "the conversation of %s cannot be taken over",
				  s->fork_agent);
	return 0;
}

/* ---- its own part ---- */

static bool has_call(const struct message *m, const char *call)
{
	for (size_t i = 0; i < m->n_blocks; i++)
		if (m->blocks[i].kind == BLOCK_TOOL_CALL && !strcmp(m->blocks[i].id, call))
			return true;
	return false;
}

int fork_find(struct agent *a, struct err *err)
{
	const struct conversation *c = &a->conversation;

	for (size_t i = c->n; i-- > 0;) {
		if (!has_call(c->messages[i], a->settings->fork_call))
			continue;
		a->fork = (struct fork_point){
			.begin = i + 1,
			.round = c->messages[i]->round,
			.fresh = i + 1 == c->n,
		};
		return 0;
	}
	return err_set(err, ERR_INVALID,
		       "the call that this fork began with is not in its transcript");
}

/* I2: every call has one result. What stood before this one in the answer had run when the files were stored. */
static void answer_calls(const struct agent *a, const struct message *answer, struct message *m)
{
	static const char own[] = "You are the fork that this call started: see below.";
	static const char agents[] = "This call belongs to the agent that you were forked from.";
	static const char before[] =
		"This call was run by the agent that you were forked from, before it forked: "
		"its effect on the files stands, its result is not yours.";
	static const char behind[] =
		"Not run: the agent that you were forked from runs it, later and for itself.";
	bool passed = false;

	for (size_t i = 0; i < answer->n_blocks; i++) {
		const struct block *b = &answer->blocks[i];

		if (b->kind != BLOCK_TOOL_CALL)
			continue;
		bool is_own = !strcmp(b->id, a->settings->fork_call);
		bool is_agent = !strcmp(b->name, "agent");
		const char *text = is_own ? own : is_agent ? agents : passed ? behind : before;

		passed |= is_own;
		message_add_result(m, b->id, b->name, text, strlen(text), !is_agent);
	}
}

static void add_place(const struct agent_settings *s, struct buf *out)
{
	if (s->fork_worktree && s->branch)
		buf_addf(out,
			 "- Your worktree is a new one, %s, on branch %s. It begins (commit %s) "
			 "with the files of the "
			 "other one as they stood at this call. File tools take a path below %s as "
			 "the same path in "
			 "yours; commands do not: use relative paths.\n",
			 s->dir_worktree, s->branch, s->base ? s->base : "?", s->fork_worktree);
	else
		buf_addf(out,
			 "- You look at the files of the other one, in %s, and cannot change "
			 "them.\n",
			 s->dir_worktree);
}

/* Working directory and branch stand here and in no prompt: the bytes before are those of the other one (A2). */
static void add_introduction(const struct agent *a, struct message *m)
{
	const struct agent_settings *s = a->settings;
	AUTO_BUF struct buf text = BUF_INIT;

	buf_addf(&text,
		 "From here on you are an agent of your own, a fork of %s, with all of the above "
		 "as your "
		 "memory. What is different for you:\n",
		 s->fork_agent);
	add_place(s, &text);
	buf_adds(&text, "- You do the task below and nothing else. The other one goes on with the "
			"rest, and gets "
			"your report alone.\n"
			"- Agents and background jobs that were started above are not yours.\n"
			"- You cannot fork again.\n\n"
			"The task follows, from the agent that delegates it to you.");
	message_add_text(m, ORIGIN_ENVIRONMENT, text.data, text.len);
	message_add_text(m, s->task_origin, s->task, strlen(s->task));
	if (s->resume_note && *s->resume_note) {
		AUTO_FREE char *note = mem_printf("[%s]", s->resume_note);
		message_add_text(m, ORIGIN_NUDGE, note, strlen(note));
	}
}

/* The other one's last request ended before its answer: a marker that is set within reach of that end finds it, also
 * behind a large batch of calls. */
static void note_sent(struct agent *a)
{
	if (a->view.n > 1)
		client_sent_end(a->client, a->view.list[a->view.n - 2]);
}

int fork_begin(struct agent *a, struct err *err)
{
	struct message *m = message_new(MESSAGE_USER);

	note_sent(a);
	answer_calls(a, conversation_last(&a->conversation), m);
	add_introduction(a, m);
	int rc = hooks_at_start(a, m, err);
	agent_add_user(a, m);
	instructions_tell(a);
	return rc;
}
