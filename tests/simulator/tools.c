/*
 * tools.c - results of a size that is log-normal with a heavy tail, of all kinds of text.
 *
 * Names, flags and members are those of the real tools, since the ladder's rules hang on them. In sessions with files
 * (world.h) some of them are the real ones. Nothing runs.
 */
#include "tools.h"

#include <stdlib.h>

#include "agent/tools/tool.h"
#include "base/json.h"
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

/* The product's own tool, where the session has files. */
static int run_own(const char *name, struct tool_context *ctx, const char *call_id,
		   struct json_object *input, struct tool_result *ret, struct err *err)
{
	int rc = tool_find(name)->run(ctx, call_id, input, ret, err);

	session_lay(session_now);
	return rc;
}

/* A file that the model names before it was made; its next read finds it (H1). */
static bool is_missing(struct session *s, int64_t index, struct tool_result *ret)
{
	bool *refused = &s->world.refused[index];

	if (*refused || !random_chance(&s->random, s->plan.repeats / 4)) {
		*refused = false;
		return false;
	}
	*refused = ret->is_error = true;
	buf_addf(&ret->text, "there is no file 'src/file_%lld.c'", (long long)index);
	return true;
}

static int run_read(struct tool_context *ctx, const char *call_id, struct json_object *input,
		    struct tool_result *ret, struct err *err)
{
	struct session *s = session_now;
	int64_t index = world_index(json_str(input, "path", ""));
	int rc;

	if (maybe_interrupt(s, err) < 0)
		return -1;
	if (s->plan.images && random_chance(&s->random, 300)) {
		add_image(s, ret);
		return 0;
	}
	if (!s->plan.real || !index) {
		if (!is_missing(s, index, ret))
			add_text(s, text_of_file(s), ret);
		return 0;
	}
	world_need(s, index);
	rc = run_own("read", ctx, call_id, input, ret, err);
	if (rc == 0 && !ret->is_error && json_i64(input, "offset", 1) == 1)
		s->world.files[index].known = s->world.files[index].revision;
	return rc;
}

static int run_search(struct tool_context *ctx, const char *call_id, struct json_object *input,
		      struct tool_result *ret, struct err *err)
{
	add_text(session_now, SAMPLE_C, ret);
	return 0;
}

/* The revision that the call writes is in its input. */
static void note_revision(struct session *s, int64_t index, const char *text)
{
	struct world_file *f = &s->world.files[index];
	const char *at = strstr(text, "revision ");

	f->state = FILE_THERE;
	if (at)
		f->revision = f->known = strtoll(at + strlen("revision "), NULL, 10);
}

static int run_change(const char *name, const char *member, struct tool_context *ctx,
		      const char *call_id, struct json_object *input, struct tool_result *ret,
		      struct err *err)
{
	struct session *s = session_now;
	int64_t index = world_index(json_str(input, "path", ""));
	int rc;

	if (!s->plan.real || !index) {
		ret->has_effects = true;
		buf_addf(&ret->text, "changed line %lld", (long long)++s->numbers);
		return 0;
	}
	rc = run_own(name, ctx, call_id, input, ret, err);
	if (rc == 0 && !ret->is_error)
		note_revision(s, index, json_str(input, member, ""));
	return rc;
}

static int run_edit(struct tool_context *ctx, const char *call_id, struct json_object *input,
		    struct tool_result *ret, struct err *err)
{
	return run_change("edit", "new_string", ctx, call_id, input, ret, err);
}

static int run_write(struct tool_context *ctx, const char *call_id, struct json_object *input,
		     struct tool_result *ret, struct err *err)
{
	return run_change("write", "content", ctx, call_id, input, ret, err);
}

static int run_shell(struct tool_context *ctx, const char *call_id, struct json_object *input,
		     struct tool_result *ret, struct err *err)
{
	struct session *s = session_now;

	if (maybe_interrupt(s, err) < 0)
		return -1;
	if (s->plan.real)
		world_touch(s);
	ret->has_effects = true;
	ret->exit_code =
		random_chance(&s->random, 2000) ? (int)random_between(&s->random, 1, 139) : 0;
	ret->is_error = ret->exit_code != 0;
	s->now_us += random_between(&s->random, 1000, 60000000);
	add_text(s, random_chance(&s->random, 7000) ? SAMPLE_LOG : text_of_file(s), ret);
	return 0;
}

/* What the memory holds from now on must be before the model in every request (watch_world.c). */
static int run_notes(struct tool_context *ctx, const char *call_id, struct json_object *input,
		     struct tool_result *ret, struct err *err)
{
	static const char *const fields[WORLD_MEMOS] = {"task", "decisions", "pending"};
	struct session *s = session_now;
	struct json_object *lines = json_arr(input, "lines");
	int rc = run_own("notes", ctx, call_id, input, ret, err);

	for (size_t i = 0; rc == 0 && !ret->is_error && lines && i < WORLD_MEMOS; i++) {
		if (strcmp(json_str(input, "field", ""), fields[i]) != 0)
			continue;
		free(s->world.memos[i]);
		s->world.memos[i] = mem_strdup(json_object_get_string(json_at(lines, 0)));
		s->tallies->count[TALLY_MEMOS]++;
	}
	return rc;
}

static int run_recall(struct tool_context *ctx, const char *call_id, struct json_object *input,
		      struct tool_result *ret, struct err *err)
{
	struct session *s = session_now;
	const char *query = json_str(input, "query", "");
	int rc = run_own("recall", ctx, call_id, input, ret, err);

	s->tallies->count[TALLY_RECALLS]++;
	if (rc == 0 && s->watch.constraints.len && *query && !strstr(buf_str(&ret->text), query))
		watch_fail(s, "X4", "recall does not find '%s', which the user said", query);
	return rc;
}

#define STRINGS(first, second)                                                                     \
	"{\"type\":\"object\",\"properties\":{\"" first "\":{\"type\":\"string\"},\"" second       \
	"\":{\"type\":\"string\"}},\"required\":[\"" first "\"],\"additionalProperties\":false}"

/* What the product's own take, too: the same rows serve both kinds of sessions. */
static const char read_form[] =
	"{\"type\":\"object\",\"properties\":{\"path\":{\"type\":\"string\"},\"offset\":{\"type\":"
	"\"integer\"},\"limit\":{\"type\":\"integer\"}},\"required\":[\"path\"],"
	"\"additionalProperties\":false}";
static const char edit_form[] =
	"{\"type\":\"object\",\"properties\":{\"path\":{\"type\":\"string\"},\"old_string\":{"
	"\"type\":"
	"\"string\"},\"new_string\":{\"type\":\"string\"}},\"required\":[\"path\"],"
	"\"additionalProperties\":false}";
static const char notes_form[] =
	"{\"type\":\"object\",\"properties\":{\"operation\":{\"type\":\"string\"},\"field\":{"
	"\"type\":"
	"\"string\"},\"lines\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},\"plan\":{"
	"\"type\":"
	"\"string\"}},\"required\":[\"operation\"],\"additionalProperties\":false}";

/* The last two need files. */
#define REAL_ONLY 2
static const struct tool tools[] = {
	{"read", "Reads a file.", read_form, TOOL_READS | TOOL_REOBTAINABLE | TOOL_NO_OFFLOAD, 0,
	 run_read, NULL},
	{"grep", "Searches files.", STRINGS("pattern", "path"), TOOL_READS | TOOL_REOBTAINABLE,
	 20000, run_search, NULL},
	{"glob", "Lists files.", STRINGS("pattern", "path"), TOOL_READS | TOOL_REOBTAINABLE, 0,
	 run_search, NULL},
	{"edit", "Changes a file.", edit_form, TOOL_WRITES | TOOL_REOBTAINABLE, 0, run_edit, NULL},
	{"write", "Writes a file.", STRINGS("path", "content"), TOOL_WRITES | TOOL_REOBTAINABLE, 0,
	 run_write, NULL},
	{"shell", "Runs a command.", STRINGS("command", "text"), TOOL_REOBTAINABLE, 30000,
	 run_shell, NULL},
	{"web_fetch", "Reads a page.", STRINGS("url", "text"), TOOL_READS | TOOL_REOBTAINABLE, 0,
	 run_search, NULL},
	{"notes", "Keeps notes.", notes_form, 0, 0, run_notes, NULL},
	{"recall", "Searches the history.", STRINGS("operation", "query"),
	 TOOL_READS | TOOL_REOBTAINABLE, 0, run_recall, NULL},
};

const struct tool *sim_tools(const struct session_plan *plan, size_t *ret_count)
{
	*ret_count = ARRAY_SIZE(tools) - (plan->real ? 0 : REAL_ONLY);
	return tools;
}
