/*
 * conversation.c - appends messages and knows where the user's words are.
 *
 * The opening is one message with a block for each part, and not one message each: some servers'
 * templates refuse two user messages in a row. What agents of one run share stands first in it, so
 * that servers which cache by prefix find it; what differs between agents (branch, task) comes
 * after it. The newest state is always at the end because everything that is new is appended (W11).
 */
#include "agent/conversation.h"

#include "base/buf.h"
#include "base/memory.h"

void conversation_init(struct conversation *conversation)
{
	*conversation = (struct conversation){.next_uid = 1};
}

void conversation_release(struct conversation *conversation)
{
	for (size_t i = 0; i < conversation->n; i++)
		message_free(conversation->messages[i]);
	free(conversation->messages);
	free(conversation->words);
	conversation_init(conversation);
}

/* X2: only text that a person wrote. A nudge, a task of another agent or a tool's output never
 * counts as his words, whatever it says (trap 152). */
static void note_words(struct conversation *c, const struct message *m)
{
	for (size_t i = 0; i < m->n_blocks; i++) {
		if (m->blocks[i].kind != BLOCK_TEXT || m->blocks[i].origin != ORIGIN_USER)
			continue;
		MEM_GROW(c->words, c->cap_words, c->n_words + 1);
		c->words[c->n_words++] = (struct conversation_word){.message = c->n, .block = i};
	}
}

int64_t conversation_next_round(struct conversation *conversation)
{
	return ++conversation->round;
}

struct message *conversation_append(struct conversation *conversation, struct message *message)
{
	struct conversation *c = conversation;

	c->round = MAX(c->round, message->round);
	message->round = c->round;
	if (message->uid < c->next_uid)
		message->uid = c->next_uid;
	c->next_uid = message->uid + 1;
	note_words(c, message);
	MEM_GROW(c->messages, c->cap, c->n + 1);
	c->messages[c->n++] = message;
	return message;
}

uint64_t conversation_take_uid(struct conversation *conversation)
{
	return conversation->next_uid++;
}

struct message *conversation_last(const struct conversation *conversation)
{
	return conversation->n ? conversation->messages[conversation->n - 1] : NULL;
}

/* M1: each with its origin; none silently overrides another. */
static void add_instructions(struct message *m, const struct start_instructions *in)
{
	AUTO_BUF struct buf text = BUF_INIT;

	buf_addf(&text, "Instructions from %s (%s):\n\n", in->path, in->origin);
	buf_adds(&text, in->text);
	message_add_text(m, ORIGIN_INSTRUCTIONS, text.data, text.len);
}

static void add_line(struct buf *out, const char *name, const char *value)
{
	if (value && *value)
		buf_addf(out, "- %s: %s\n", name, value);
}

/* No absolute path and no id of the agent: the same words for every agent of a role as far as
 * possible. */
static void add_environment(struct message *m, const struct agent_settings *s)
{
	AUTO_BUF struct buf text = BUF_INIT;

	buf_adds(&text, "Environment:\n");
	add_line(&text, "repository", s->repository);
	add_line(&text, "branch", s->branch);
	add_line(&text, "base commit", s->base);
	add_line(&text, "platform", s->platform);
	add_line(&text, "date", s->date);
	if (s->read_only || !s->write)
		buf_adds(&text, "- the files are read-only for you\n");
	buf_adds(&text, "- paths are relative to the root of the worktree, which is where commands "
			"start\n\n");
	buf_adds(&text, s->task_origin == ORIGIN_USER
				? "The task follows in the user's own words."
				: "The task follows, from the agent that delegates it to you.");
	message_add_text(m, ORIGIN_ENVIRONMENT, text.data, text.len);
}

struct message *conversation_opening(const struct agent_settings *settings)
{
	struct message *m = message_new(MESSAGE_USER);

	for (size_t i = 0; i < settings->n_instructions; i++)
		add_instructions(m, &settings->instructions[i]);
	add_environment(m, settings);
	message_add_text(m, settings->task_origin, settings->task, strlen(settings->task));
	message_add_text(m, ORIGIN_ENVIRONMENT, settings->brief, strlen(settings->brief));
	/* One that goes on from its transcript is told elsewhere (resume.c); this one has none. */
	if (!settings->resume && settings->resume_note && *settings->resume_note) {
		AUTO_FREE char *note = mem_printf("[%s]", settings->resume_note);
		message_add_text(m, ORIGIN_NUDGE, note, strlen(note));
	}
	return m;
}

const struct block *conversation_user_word(const struct conversation *conversation, size_t i)
{
	const struct conversation_word *w;

	if (i >= conversation->n_words)
		return NULL;
	w = &conversation->words[i];
	return &conversation->messages[w->message]->blocks[w->block];
}
