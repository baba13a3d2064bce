/*
 * calls.c - draws calls: which tool, about what, and which of them is an old one again.
 *
 * The members are those of the real tools, since the rungs read them: a read of lines that an earlier one showed,
 * a command that failed and is run again, a search that is made twice are what snip and the facts live on.
 */
#include "calls.h"

#include <stdio.h>

#include "base/json.h"
#include "base/memory.h"

size_t calls_size(struct session *s, const struct server_call *c, int64_t median, int parts)
{
	int64_t most = MAX(c->max_tokens / parts / 2, 8);

	return (size_t)random_log_normal(&s->random, (double)median, 1.0, most);
}

static void add_text(struct session *s, struct buf *out, const char *member, enum sample_kind kind,
		     size_t n)
{
	AUTO_BUF struct buf text = BUF_INIT;

	sample_add(&text, &s->random, kind, n);
	buf_addf(out, "\"%s\":", member);
	json_write_string(out, text.data, text.len);
}

static enum sample_kind some_kind(struct session *s)
{
	return (enum sample_kind)random_between(&s->random, 0, SAMPLE_KINDS - 1);
}

static int64_t some_file(struct session *s)
{
	return random_between(&s->random, 1, s->plan.files);
}

static void say_path(struct session *s, struct buf *out)
{
	buf_addf(out, "\"path\":\"src/file_%lld.c\"", (long long)some_file(s));
}

static void read_args(struct session *s, size_t size, struct buf *out)
{
	say_path(s, out);
	if (random_chance(&s->random, 3000))
		buf_addf(out, ",\"offset\":%lld,\"limit\":%lld",
			 (long long)random_between(&s->random, 1, 40),
			 (long long)random_between(&s->random, 20, 200));
}

static void search_args(struct session *s, size_t size, struct buf *out)
{
	add_text(s, out, "pattern", SAMPLE_PROSE, 12);
}

static void fetch_args(struct session *s, size_t size, struct buf *out)
{
	buf_addf(out, "\"url\":\"https://example.org/page_%lld\"", (long long)some_file(s));
}

static void shell_args(struct session *s, size_t size, struct buf *out)
{
	static const char *const forms[] = {"git status src/file_#.c",
					    "cat src/file_#.c | wc -l",
					    "ls -l src/part_#",
					    "make test_#",
					    "make test_#",
					    "python3 tool_#.py --all",
					    "git commit -am part_#"};
	const char *form = forms[random_next(&s->random) % ARRAY_SIZE(forms)];
	const char *at = strchr(form, '#');

	buf_addf(out, "\"command\":\"%.*s%lld%s\"", (int)(at - form), form, (long long)some_file(s),
		 at + 1);
}

static void write_args(struct session *s, size_t size, struct buf *out)
{
	AUTO_BUF struct buf text = BUF_INIT;
	int64_t index = some_file(s);

	buf_addf(&text, "/* file_%lld revision %lld */\n", (long long)index,
		 (long long)++s->numbers);
	sample_add(&text, &s->random, SAMPLE_C, size);
	buf_addf(out, "\"path\":\"src/file_%lld.c\",\"content\":", (long long)index);
	json_write_string(out, text.data, text.len);
}

/* The simulated tool takes any text; the real one the revision that the model knows. */
static void edit_args(struct session *s, size_t size, struct buf *out)
{
	int64_t index = some_file(s);
	const struct world_file *f = &s->world.files[index];

	buf_addf(out, "\"path\":\"src/file_%lld.c\",\"old_string\":\"file_%lld revision %lld \"",
		 (long long)index, (long long)index, (long long)f->known);
	if (s->plan.real) {
		buf_addf(out, ",\"new_string\":\"file_%lld revision %lld \"", (long long)index,
			 (long long)++s->numbers);
		return;
	}
	buf_addc(out, ',');
	add_text(s, out, "new_string", some_kind(s), size);
}

static void notes_args(struct session *s, size_t size, struct buf *out)
{
	static const char *const fields[WORLD_MEMOS] = {"task", "decisions", "pending"};
	size_t i = random_next(&s->random) % WORLD_MEMOS;

	if (random_chance(&s->random, 2000)) {
		buf_addf(out,
			 "\"operation\":\"plan_write\",\"plan\":\"- [ ] step %lld\\n- [x] step "
			 "%lld\\n\"",
			 (long long)s->numbers + 1, (long long)s->numbers + 2);
		s->numbers += 2;
		return;
	}
	buf_addf(out,
		 "\"operation\":\"set\",\"field\":\"%s\",\"lines\":[\"memo-%lld of the work\"]",
		 fields[i], (long long)++s->numbers);
}

/* A word with a number of its own, out of something that the user laid down: "origin-17". */
static void recall_args(struct session *s, size_t size, struct buf *out)
{
	const struct buf *list = &s->watch.constraints;
	const char *text = list->data, *from, *to;
	size_t skip = random_next(&s->random) % 8;

	buf_adds(out, "\"operation\":\"search\",\"query\":\"");
	if (!list->len) {
		buf_adds(out, "parser\"");
		return;
	}
	while (skip-- && text + strlen(text) + 1 < list->data + list->len)
		text += strlen(text) + 1;
	for (from = text; *from && (*from < '0' || *from > '9');)
		from++;
	to = from + strspn(from, "0123456789");
	while (from > text &&
	       (from[-1] == '-' || from[-1] == '_' || (from[-1] >= 'a' && from[-1] <= 'z')))
		from--;
	buf_addf(out, "%.*s\"", (int)(to - from), from);
}

static const struct row {
	const char *name;
	int weight;
	bool real, large; /* only where the product's own is there; its text is long */
	bool again;	  /* may be made again as it is */
	void (*arguments)(struct session *s, size_t size, struct buf *out);
} rows[] = {
	{"read", 34, false, false, true, read_args},
	{"shell", 26, false, false, true, shell_args},
	{"grep", 12, false, false, true, search_args},
	{"edit", 12, false, true, false, edit_args},
	{"glob", 4, false, false, true, search_args},
	{"write", 5, false, true, false, write_args},
	{"web_fetch", 2, false, false, true, fetch_args},
	{"notes", 4, true, false, false, notes_args},
	{"recall", 1, true, false, false, recall_args},
};

static const struct row *some_row(struct session *s)
{
	int64_t at = random_between(&s->random, 0, 99);

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		at -= rows[i].weight;
		if (at < 0)
			return rows[i].real && !s->plan.real ? &rows[0] : &rows[i];
	}
	return &rows[0];
}

static void send(struct session *s, struct server_call *c, const char *tool, const char *arguments,
		 size_t n)
{
	char id[40];

	snprintf(id, sizeof(id), "call_%lld", (long long)++s->numbers);
	speech_call(&c->speech, id, tool, arguments, n);
}

static void say_call(struct session *s, struct server_call *c, int parts, bool cut)
{
	AUTO_BUF struct buf arguments = BUF_INIT;
	AUTO_FREE char *old = NULL;
	const struct row *row;
	const char *tool;

	if (random_chance(&s->random, s->plan.repeats) && world_recall(s, &tool, &old)) {
		send(s, c, tool, old, strlen(old));
		return;
	}
	row = some_row(s);
	buf_addc(&arguments, '{');
	row->arguments(s, row->large ? calls_size(s, c, s->plan.text_size * 2, parts) : 30,
		       &arguments);
	buf_addc(&arguments, '}');
	if (row->again && s->plan.repeats)
		world_remember(s, row->name, &arguments);
	send(s, c, row->name, arguments.data, cut ? arguments.len * 2 / 3 : arguments.len);
}

void calls_say(struct session *s, struct server_call *c, bool cut)
{
	int n = 1;

	if (s->plan.parallel && random_chance(&s->random, 2500))
		n = (int)random_log_normal(&s->random, 3, 0.6, 12);
	for (int i = 0; i < n; i++)
		say_call(s, c, n, cut && i == n - 1);
}
