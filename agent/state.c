/*
 * state.c - makes and unmakes the parts of an agent, and what all files of its loop do with them.
 *
 * Nothing here waits or sends. A failed agent_make leaves what was made for agent_release.
 */
#include "agent/state.h"

#include <stdarg.h>
#include <stdio.h>

#include "agent/calibration.h"
#include "agent/context/about.h"
#include "agent/events.h"
#include "agent/memory_show.h"
#include "agent/handoff_take.h"
#include "agent/prompt.h"
#include "agent/resume.h"
#include "agent/resume_calls.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"

/* The first reason wins: what comes after it (a stop while the report is delivered, a full disk
 * while the end is recorded) follows from it and would hide it. */
int agent_end(struct agent *a, enum outcome_status status, enum call_class class, const char *fmt,
	      ...)
{
	va_list ap;

	if (a->outcome.status != OUTCOME_NONE)
		return 1;
	a->outcome.status = status;
	a->outcome.class = class;
	va_start(ap, fmt);
	vsnprintf(a->outcome.reason, sizeof(a->outcome.reason), fmt, ap);
	va_end(ap);
	return 1;
}

int agent_set_budget(struct agent *a, struct err *err)
{
	const struct agent_settings *s = a->settings;

	if (budget_init(&a->budget, s->model, &s->knobs, err) < 0)
		return -1;
	user_words_resize(&a->words, a->budget.words);
	return 0;
}

void agent_add_user(struct agent *a, struct message *m)
{
	struct err e = ERR_INIT;

	/* Before the message is immutable: a long one is cut here, once (T3). */
	if (user_words_admit(&a->words, m, a->conversation.next_uid, &a->ledger, &e) < 0)
		event_warning(a->channel, "%s", e.message);
	conversation_append(&a->conversation, m);
	client_render_message(a->client, m);
	ledger_add(&a->ledger, m);
	transcript_message(a->transcript, m);
}

void agent_nudge(struct agent *a, const char *text)
{
	struct message *m = message_new(MESSAGE_USER);

	message_add_text(m, ORIGIN_NUDGE, text, strlen(text));
	agent_add_user(a, m);
}

/* Models that take a number of tokens instead of a level: a quarter, half or three quarters of the
 * wanted answer (W9: it is part of max_tokens). No level asked for: the model's default. */
static int64_t thinking_budget(const struct agent_settings *s)
{
	static const struct {
		const char *effort;
		int quarters;
	} levels[] = {{"low", 1}, {"medium", 2}, {"high", 3}};

	for (size_t i = 0; s->effort && i < ARRAY_SIZE(levels); i++) {
		if (!strcmp(levels[i].effort, s->effort))
			return MAX((int64_t)1024, s->max_output * levels[i].quarters / 4);
	}
	return 0;
}

/* The fixed part of every request is counted here, once: it is in each of them and never changes.
 */
/* H2: names of tools whose results the provider may not clear either. Caller frees the list. */
static const char **uncleared_tools(const struct agent *a)
{
	const char **names = mem_array(NULL, a->toolbox.n_specs + 1, sizeof(*names));
	size_t n = 0;

	for (size_t i = 0; i < a->toolbox.n_specs; i++)
		if (!about_may_clear(a->toolbox.specs[i].name, &a->settings->knobs))
			names[n++] = a->toolbox.specs[i].name;
	names[n] = NULL;
	return names;
}

static int make_client(struct agent *a, struct err *err)
{
	AUTO_FREE const char **uncleared = uncleared_tools(a);
	struct request_params params = {
		.tools = a->toolbox.specs,
		.n_tools = a->toolbox.n_specs,
		.effort = a->settings->effort,
		.thinking_budget = thinking_budget(a->settings),
		.cache_1h = a->settings->knobs.cache_1h,
		.temperature = -1,
		.edits_trigger = a->settings->knobs.provider_edits ? a->budget.clear_at : 0,
		.edits_keep = a->settings->knobs.clear_keep,
		.edits_least = a->budget.clear_gain,
		.edits_exclude = uncleared,
	};

	a->system = prompt_system(a->settings);
	params.system = a->system;
	ledger_fixed(&a->ledger, a->system, a->toolbox.specs, a->toolbox.n_specs);
	return client_new(a->settings->model, &params, &a->client, err);
}

static int make_words(struct agent *a, struct err *err)
{
	struct user_words_settings settings = {
		.dir_generation = a->settings->dir_generation,
		.generation = a->settings->generation,
		.whole_bytes = a->settings->knobs.user_message_bytes,
		.room = a->budget.words,
	};

	return user_words_init(&a->words, &settings, err);
}

int agent_make(struct agent *a, const struct tool *tools, size_t n_tools, struct err *err)
{
	const struct agent_settings *s = a->settings;

	conversation_init(&a->conversation);
	checkpoint_init(a);
	view_init(&a->view);
	breaker_init(&a->breaker);
	instructions_init(&a->instructions, s);
	ledger_init(&a->ledger);
	if (calibration_read(&a->ledger.estimator, s->calibration) > 0)
		log_warn("some rates of earlier runs make no sense and are not used");
	if (agent_set_budget(a, err) < 0 || fork_adopt(s, err) < 0 ||
	    file_mkdirs(s->dir_generation, 0700, err) < 0 ||
	    offload_init(&a->offload, s, &a->budget, err) < 0 ||
	    toolbox_init(&a->toolbox, s, tools, n_tools, err) < 0 || make_client(a, err) < 0 ||
	    make_words(a, err) < 0 || memory_make(a, err) < 0 ||
	    transcript_open(s->dir_generation, &a->transcript, err) < 0)
		return -1;
	a->view.record = a->transcript;
	subagents_init(a);
	a->toolbox.subagents = &a->subagents;
	session_notes_init(a);
	breaks_init(a);
	transcript_follow(a->transcript, a->words.writer);
	if (handoff_load(a, err) < 0 ||
	    ((s->resume || fork_is_first(s)) && resume_load(a, err) < 0))
		return -1;
	if (!s->resume)
		transcript_start(a->transcript, s);
	if (a->toolbox.unknown.len)
		event_warning(a->channel, "role '%s' names tools that do not exist: %s", s->role,
			      buf_str(&a->toolbox.unknown));
	return 0;
}

void agent_release(struct agent *a)
{
	session_notes_release(a);
	resume_calls_free(a->resumed);
	handoff_free(a->handoff);
	free(a->undo.list);
	transcript_close(a->transcript);
	user_words_release(&a->words);
	memory_release(&a->memory);
	subagents_release(&a->subagents);
	breaks_release(&a->breaks);
	hooks_release_texts(&a->hooks);
	instructions_release(&a->instructions);
	client_free(a->client);
	client_free(a->compact_client);
	free(a->system);
	free(a->end_text);
	offload_release(&a->offload);
	record_release(&a->record);
	facts_release(&a->facts);
	ledger_release(&a->ledger);
	prefix_release(&a->prefix);
	view_release(&a->view);
	conversation_release(&a->conversation);
	buf_release(&a->body);
	agent_settings_free(a->settings);
}
