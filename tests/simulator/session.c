/*
 * session.c - runs one session: the agent's loop round by round, with what a parent and a user do in between.
 *
 * The agent is whole but for its process: its loop, its files and its end of the channel are the real ones. The other
 * end is read here. An answer to a report must lie in the channel before the agent waits for it, because nobody
 * else runs: the one for a report by rule lies there always.
 */
#include "session.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>

#include "agent/round.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "mutants.h"
#include "tools.h"

#define HEADER_MAX 4096

struct session *session_now;

static int64_t fake_mono_us(void *arg)
{
	return session_now->now_us;
}

static int64_t fake_wall_ms(void *arg)
{
	return INT64_C(1796000000000) + session_now->now_us / 1000;
}

/* ---- the channel ---- */

static void tell(struct session *s, const char *frame)
{
	size_t n = strlen(frame);

	if (write(s->peer, frame, n) != (ssize_t)n)
		watch_fail(s, "X1", "bug of the simulator: the channel is full");
}

void session_acknowledge(struct session *s, const char *key)
{
	AUTO_FREE char *frame =
		mem_printf("{\"type\":\"ack\",\"len\":2,\"call\":\"%s\",\"ok\":true}\n{}", key);

	tell(s, frame);
}

void session_lay(struct session *s)
{
	static const char key[] = "\"by-rule\"";
	char there[4096];
	ssize_t n = recv(s->agents_end, there, sizeof(there), MSG_PEEK | MSG_DONTWAIT);

	if (n <= 0 || !memmem(there, (size_t)n, key, sizeof(key) - 1))
		session_acknowledge(s, "by-rule");
}

/* One frame: header line and body. Events and the report are what we want to know of. */
static size_t take_frame(struct session *s, const char *at, size_t n)
{
	const char *line = memchr(at, '\n', n);
	const char *len = line ? memmem(at, (size_t)(line - at), "\"len\":", 6) : NULL;
	const char *name;
	size_t head, body;

	if (!len)
		return 0;
	head = (size_t)(line + 1 - at);
	body = strtoul(len + 6, NULL, 10);
	if (n < head + body)
		return 0;
	name = memmem(at, head, "\"name\":\"", 8);
	if (memmem(at, head, "\"type\":\"report\"", 15)) {
		s->watch.reported = true;
	} else if (name) {
		AUTO_FREE char *word = mem_strndup(name + 8, strcspn(name + 8, "\""));

		watch_event(s, word, at + head, body);
	}
	return head + body;
}

/* Reads all that is there; what is queued at the agent's side goes out first. */
static void drain(struct session *s)
{
	struct channel *ch = s->agent.channel;
	size_t done = 0, n;

	do {
		if (channel_wants_write(ch))
			channel_on_writable(ch, NULL);
		while (buf_read(&s->heard, s->peer, 65536) > 0)
			;
	} while (channel_wants_write(ch));
	while ((n = take_frame(s, buf_str(&s->heard) + done, s->heard.len - done)))
		done += n;
	buf_drop(&s->heard, done);
}

void session_hear(struct session *s)
{
	drain(s);
}

void session_control(struct session *s, const char *action, const char *body)
{
	AUTO_FREE char *frame =
		mem_printf("{\"type\":\"control\",\"len\":%zu,\"action\":\"%s\"}\n%s", strlen(body),
			   action, body);
	struct err e = ERR_INIT;

	tell(s, frame);
	wait_poll(s->agent.waiter, NULL, 0, 0, &e);
	session_lay(s);
	s->stopping = s->stopping || waiter_stopping(s->agent.waiter);
}

/* ---- the user ---- */

static void say_constraint(struct session *s, struct buf *text)
{
	size_t at = text->len;

	sample_constraint(text, &s->random, ++s->numbers);
	watch_keep(&s->watch.constraints, text->data + at, text->len - at);
	buf_addc(text, '\n');
}

static void user_words(struct session *s, struct buf *text, int64_t constraints)
{
	struct random *r = &s->random;
	int64_t size = random_log_normal(r, 150, 1.2, MAX(s->plan.window / 2, 2000));

	sample_add(text, r, random_chance(r, 2000) ? SAMPLE_CHINESE : SAMPLE_PROSE, (size_t)size);
	buf_adds(text, "\n\n");
	for (int64_t i = 0; i < constraints; i++)
		say_constraint(s, text);
}

static void interject(struct session *s)
{
	AUTO_BUF struct buf text = BUF_INIT;
	struct message *m = message_new(MESSAGE_USER);

	/* Sometimes nobody was there for longer than the provider keeps its cache (T8). */
	if (random_chance(&s->random, 2000))
		s->now_us += INT64_C(3600000000);
	user_words(s, &text, random_chance(&s->random, 4000) ? 1 : 0);
	message_add_text(m, ORIGIN_USER, text.data, text.len);
	agent_add_user(&s->agent, m);
	s->tallies->count[TALLY_INTERJECTIONS]++;
}

/* Another model, or the same one on another server: the window is smaller from here on. */
static void shrink_window(struct session *s)
{
	struct model *m = s->agent.settings->model;
	int64_t window = MAX(m->window * random_between(&s->random, 60, 95) / 100, 7000);

	if (window >= m->window)
		return;
	m->window = window;
	s->server.window = MIN(s->server.window, window);
	agent_set_budget(&s->agent, NULL);
	s->tallies->count[TALLY_SWITCHES]++;
}

/* H6, H8, X4: by hand. */
static void wish_to_compact(struct session *s)
{
	static const char *const modes[] = {"from", "up_to"};
	int64_t kind = random_between(&s->random, 0, 3);
	AUTO_FREE char *body = NULL;

	if (kind < 2)
		body = mem_printf(
			"{\"mode\":\"%s\",\"round\":%lld}", modes[kind],
			(long long)random_between(&s->random, 1, s->agent.conversation.round));
	s->watch.wished = true;
	session_control(s, "compact",
			body	    ? body
			: kind == 2 ? "{\"focus\":\"the failing test\"}"
				    : "{\"undo\":true}");
	s->tallies->count[TALLY_MANUAL]++;
}

/* What comes between two rounds. */
static void between_rounds(struct session *s)
{
	struct random *r = &s->random;

	if (s->plan.interject && random_chance(r, s->plan.interject))
		interject(s);
	if (s->plan.shrink && random_chance(r, s->plan.shrink))
		shrink_window(s);
	if (s->plan.interrupt && random_chance(r, s->plan.interrupt / 8)) {
		session_control(s, "report", "");
		s->tallies->count[TALLY_WISHES]++;
	}
	if (s->plan.by_hand && random_chance(r, s->plan.by_hand))
		wish_to_compact(s);
	if (s->mutant && s->mutant->round)
		s->mutant->round(s);
}

/* ---- one session ---- */

static int make_settings(struct session *s, struct err *err)
{
	AUTO_BUF struct buf document = BUF_INIT;

	if (!s->task.len) {
		user_words(s, &s->task, random_between(&s->random, 0, 3));
		if (s->plan.instructions)
			sample_add(&s->rules, &s->random, SAMPLE_PROSE,
				   (size_t)s->plan.instructions);
	}
	plan_document(&s->plan, s->folder, buf_str(&s->task), buf_str(&s->rules), &document);
	return agent_settings_parse(document.data, document.len, &s->agent.settings, err);
}

static int make_tree(const struct session *s, struct err *err)
{
	static const char *const names[] = {"worktree/src", "scratch", "cache"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		AUTO_FREE char *path = file_join(s->folder, names[i]);

		if (file_mkdirs(path, 0700, err) < 0)
			return -1;
	}
	return 0;
}

static int make(struct session *s, struct err *err)
{
	struct agent *a = &s->agent;
	int fds[2];
	size_t n;
	const struct tool *tools = sim_tools(&s->plan, &n);

	if (make_settings(s, err) < 0 || (s->plan.real && make_tree(s, err) < 0))
		return -1;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0)
		return err_sys(err, "cannot make a channel");
	s->peer = fds[1];
	s->agents_end = fds[0];
	a->waiter = waiter_new(fds[0], fds[0], err);
	if (!a->waiter)
		return -1;
	a->channel = waiter_channel(a->waiter);
	a->transport = server_transport(s);
	if (agent_make(a, tools, n, err) < 0)
		return -1;
	a->toolbox.needs_nothing = !s->plan.real;
	session_lay(s);
	return 0;
}

static void count_agent(struct session *s);

static void count_end(struct session *s)
{
	static const enum tally ends[] = {
		[OUTCOME_NONE] = TALLY_END_STOPPED,  [OUTCOME_DONE] = TALLY_END_DONE,
		[OUTCOME_FAILED] = TALLY_END_FAILED, [OUTCOME_STOPPED] = TALLY_END_STOPPED,
		[OUTCOME_LIMIT] = TALLY_END_LIMIT,   [OUTCOME_LOST] = TALLY_END_FAILED,
	};
	struct tallies *t = s->tallies;
	int64_t rounds = s->agent.conversation.round;

	t->count[TALLY_SESSIONS]++;
	t->count[TALLY_ROUNDS] += rounds;
	t->sessions_of[MIN(rounds, TALLY_ROUNDS_MAX - 1)]++;
	t->count[TALLY_SESSIONS_OF_3] += s->watch.all_compactions >= 3;
	count_agent(s);
	t->count[TALLY_FORCED_WINDOW] += s->agent.forced == FORCED_WINDOW;
	t->count[ends[s->agent.outcome.status]]++;
}

/* The agent's process ends, whatever it was about. */
static void release_agent(struct session *s)
{
	if (s->agent.channel)
		session_hear(s);
	toolbox_release(&s->agent.toolbox);
	server_release(s);
	agent_release(&s->agent);
	waiter_free(s->agent.waiter);
	close(s->peer);
	buf_clear(&s->heard);
	s->agent = (struct agent){.settings = NULL};
}

static void release(struct session *s)
{
	release_agent(s);
	watch_release(&s->watch);
	world_release(&s->world);
	buf_release(&s->heard);
	buf_release(&s->task);
	buf_release(&s->rules);
}

static void count_agent(struct session *s)
{
	tallies_add_context(s->tallies, &s->agent.counts);
	s->tallies->count[TALLY_H0_OFFLOAD] += s->agent.offload.next_file - s->offloaded;
	s->offloaded = s->agent.offload.next_file;
}

/* The run is cut off between two rounds and goes on with another model (R6, X12): other form, window, tokenizer. What the
 * transcript holds is all that there is. */
static int switch_model(struct session *s, struct err *err)
{
	count_agent(s);
	release_agent(s);
	if (random_chance(&s->random, 3000))
		s->now_us += INT64_C(3600000000);
	plan_switch(&s->plan, &s->random);
	server_init(s);
	watch_switch(&s->watch);
	s->tallies->count[TALLY_RESUMES]++;
	if (make(s, err) < 0) {
		watch_fail(s, "X1", "the agent could not be made again: %s", err->message);
		return -1;
	}
	return work_begin(&s->agent, err);
}

/* One round and what comes behind it; nonzero: that was the last one. */
static int step(struct session *s, struct err *err)
{
	int rc;

	session_lay(s);
	rc = work_round(&s->agent, err);
	session_hear(s);
	if (!rc && !s->watch.finding.found)
		between_rounds(s);
	if (!rc && s->plan.switches && !s->stopping && !s->watch.finding.found &&
	    random_chance(&s->random, s->plan.switches))
		rc = switch_model(s, err);
	return s->watch.finding.found ? 1 : rc;
}

/* ---- life ---- */

static void enter(struct session *s)
{
	session_now = s;
	clock_fake(fake_mono_us, fake_wall_ms, NULL);
}

struct session *session_open(const struct session_options *options, struct tallies *tallies)
{
	struct session *s = mem_alloc(sizeof(*s));

	s->mutant = options->mutant;
	s->tallies = tallies;
	s->trace = options->trace;
	s->folder = options->folder;
	s->watch.epoch = s->watch.checked_epoch = s->watch.checked_request = -1;
	if (options->plan)
		s->plan = *options->plan;
	else
		plan_make(&s->plan, options->seed, options->form);
	if (s->mutant && s->mutant->plan)
		s->mutant->plan(&s->plan);
	random_init(&s->random, options->seed ^ 0xabcdef);
	s->offloaded = 1;
	enter(s);
	server_init(s);
	s->rc = make(s, &s->err);
	if (s->rc < 0) {
		watch_fail(s, "X1", "the agent could not be made: %s", s->err.message);
		s->over = true;
	} else {
		s->rc = work_begin(&s->agent, &s->err);
		s->over = s->rc || s->watch.finding.found;
	}
	return s;
}

bool session_step(struct session *s)
{
	enter(s);
	if (!s->over) {
		s->rc = step(s, &s->err);
		s->over = s->rc != 0;
	}
	return !s->over;
}

int session_close(struct session *s, const struct session_options *options, struct finding *ret)
{
	int found;

	enter(s);
	if (s->agent.channel && !s->watch.finding.found) {
		session_lay(s);
		s->rc = work_end(&s->agent, s->rc, &s->err);
		session_hear(s);
		if (!s->watch.finding.found)
			watch_end(s, s->rc, &s->err);
		count_end(s);
		if (options->load && !s->watch.finding.found)
			watch_load(s);
	}
	s->cost.counts = s->agent.counts;
	s->cost.trail = s->server.trail;
	if (options->ret_cost)
		*options->ret_cost = s->cost;
	*ret = s->watch.finding;
	found = ret->found;
	release(s);
	clock_fake(NULL, NULL, NULL);
	session_now = NULL;
	free(s);
	return found;
}

int session_run(const struct session_options *options, struct tallies *tallies, struct finding *ret)
{
	struct session *s = session_open(options, tallies);

	while (session_step(s))
		;
	return session_close(s, options, ret);
}
