/*
 * tools.c - results of a size that is log-normal with a heavy tail, of all kinds of text.
 *
 * Names and flags are those of the real tools, since the ladder's rules hang on them. Nothing runs.
 */
#include "tools.h"

#include "base/memory.h"
#include "session.h"

#define RESULT_MOST (INT64_C(3) << 20)

static void add_text(struct session *s, enum sample_kind kind, struct tool_result *ret)
{
	const struct session_plan *p = &s->plan;
	int64_t size = random_log_normal(&s->random, (double)p->result_size, p->result_spread,
					 RESULT_MOST);

	if (random_chance(&s->random, 30))
		size = random_log_uniform(&s->random, 100000, RESULT_MOST);
	if (random_chance(&s->random, 200))
		return; /* no output */
	/* The same answer twice is a case of its own (X13); a number makes all others differ. */
	if (!random_chance(&s->random, 100))
		buf_addf(&ret->text, "#%lld\n", (long long)++s->numbers);
	sample_add_raw(&ret->text, &s->random, kind, (size_t)size);
}

static void add_image(struct session *s, struct tool_result *ret)
{
	AUTO_BUF struct buf data = BUF_INIT;

	sample_add(&data, &s->random, SAMPLE_BASE64, (size_t)random_between(&s->random, 400, 4000));
	for (size_t i = 0; i < data.len; i++)
		if (data.data[i] == '\n')
			data.data[i] = 'A';
	ret->images = mem_alloc(sizeof(*ret->images));
	ret->n_images = 1;
	ret->images[0] =
		(struct tool_image){.media_type = mem_strdup("image/png"), .base64_len = data.len};
	ret->images[0].base64 = buf_take(&data);
	s->tallies->count[TALLY_IMAGES]++;
}

/* The parent's wish in the middle of a tool: it ends the wait that a real tool would be in. */
static int maybe_interrupt(struct session *s, struct err *err)
{
	if (!s->plan.interrupt || !random_chance(&s->random, s->plan.interrupt / 8))
		return 0;
	s->tallies->count[TALLY_WISHES]++;
	session_control(s, "report", "");
	return wait_poll(s->agent.waiter, NULL, 0, 0, err) < 0 && err->code != ERR_TIMEOUT ? -1 : 0;
}

static enum sample_kind text_of_file(struct session *s)
{
	return (enum sample_kind)random_between(&s->random, 0, SAMPLE_KINDS - 1);
}

static int run_read(struct tool_context *ctx, const char *call_id, struct json_object *input,
		    struct tool_result *ret, struct err *err)
{
	struct session *s = session_now;

	if (maybe_interrupt(s, err) < 0)
		return -1;
	if (s->plan.images && random_chance(&s->random, 300))
		add_image(s, ret);
	else
		add_text(s, text_of_file(s), ret);
	return 0;
}

static int run_search(struct tool_context *ctx, const char *call_id, struct json_object *input,
		      struct tool_result *ret, struct err *err)
{
	add_text(session_now, SAMPLE_C, ret);
	return 0;
}

static int run_edit(struct tool_context *ctx, const char *call_id, struct json_object *input,
		    struct tool_result *ret, struct err *err)
{
	struct session *s = session_now;

	ret->has_effects = true;
	buf_addf(&ret->text, "changed line %lld", (long long)++s->numbers);
	return 0;
}

static int run_shell(struct tool_context *ctx, const char *call_id, struct json_object *input,
		     struct tool_result *ret, struct err *err)
{
	struct session *s = session_now;

	if (maybe_interrupt(s, err) < 0)
		return -1;
	ret->has_effects = true;
	ret->exit_code =
		random_chance(&s->random, 2000) ? (int)random_between(&s->random, 1, 139) : 0;
	ret->is_error = ret->exit_code != 0;
	s->now_us += random_between(&s->random, 1000, 60000000);
	add_text(s, random_chance(&s->random, 7000) ? SAMPLE_LOG : text_of_file(s), ret);
	return 0;
}

#define SCHEMA                                                                                     \
	"{\"type\":\"object\",\"properties\":{\"path\":{\"type\":\"string\"},\"text\":{\"type\":"  \
	"\"string\"}},\"required\":[\"path\"],\"additionalProperties\":false}"

static const struct tool tools[] = {
	{"read", "Reads a file.", SCHEMA, TOOL_READS | TOOL_REOBTAINABLE | TOOL_NO_OFFLOAD, 0,
	 run_read, NULL},
	{"grep", "Searches files.", SCHEMA, TOOL_READS | TOOL_REOBTAINABLE, 20000, run_search,
	 NULL},
	{"glob", "Lists files.", SCHEMA, TOOL_READS | TOOL_REOBTAINABLE, 0, run_search, NULL},
	{"edit", "Changes a file.", SCHEMA, TOOL_WRITES | TOOL_REOBTAINABLE, 0, run_edit, NULL},
	{"write", "Writes a file.", SCHEMA, TOOL_WRITES | TOOL_REOBTAINABLE, 0, run_edit, NULL},
	{"shell", "Runs a command.", SCHEMA, TOOL_REOBTAINABLE, 30000, run_shell, NULL},
	{"web_fetch", "Reads a page.", SCHEMA, TOOL_READS | TOOL_REOBTAINABLE, 0, run_search, NULL},
};

const struct tool *sim_tools(size_t *ret_count)
{
	*ret_count = ARRAY_SIZE(tools);
	return tools;
}
