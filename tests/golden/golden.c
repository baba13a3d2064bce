/*
 * golden.c - reads a golden conversation and makes its filler rounds.
 */
#include "golden.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/yaml.h"

static const char *const class_names[FACT_CLASSES] = {
	[FACT_GOAL] = "goal",
	[FACT_WORDS] = "words",
	[FACT_CONSTRAINT] = "constraint",
	[FACT_DECISION] = "decision",
	[FACT_REJECTED] = "rejected",
	[FACT_FILE] = "file",
	[FACT_FUNCTION] = "function",
	[FACT_FAILURE] = "failure",
	[FACT_COMMAND] = "command",
	[FACT_NEXT] = "next",
	[FACT_IDENTIFIER] = "identifier",
};

const char *fact_class_name(enum fact_class class)
{
	return class_names[class];
}

uint64_t golden_random(uint64_t *state) /* splitmix64 */
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* ---- filler ---- */

static const char *const vocabulary[] = {
	"acquire", "batch",   "cursor", "digest", "export", "flush",  "guard",	"header",
	"insert",  "journal", "kernel", "lookup", "mirror", "notify", "offset", "parse",
	"quota",   "replay",  "shard",	"ticket", "update", "verify", "window", "yield"};

struct maker {
	struct golden *golden;
	struct json_object *doc;
	uint64_t random;
	int fillers;
};

static size_t pick(struct maker *m, size_t n)
{
	return (size_t)(golden_random(&m->random) % n);
}

/* One line of the list `key` with its {n}, {hex}, {word} and {file} replaced. */
static void add_line(struct maker *m, const char *key, const char *file, struct buf *out)
{
	struct json_object *list = json_arr(m->doc, key);
	const char *s = json_object_get_string(json_at(list, pick(m, json_len(list))));

	while (*s) {
		if (!strncmp(s, "{n}", 3)) {
			buf_addf(out, "%zu", 10 + pick(m, 90));
			s += 3;
		} else if (!strncmp(s, "{hex}", 5)) {
			buf_addf(out, "%08x", (unsigned)pick(m, UINT32_MAX));
			s += 5;
		} else if (!strncmp(s, "{word}", 6)) {
			buf_adds(out, vocabulary[pick(m, ARRAY_SIZE(vocabulary))]);
			s += 6;
		} else if (!strncmp(s, "{file}", 6)) {
			buf_adds(out, file);
			s += 6;
		} else {
			buf_addc(out, *s++);
		}
	}
}

static void add_lines(struct maker *m, size_t n, bool numbered, struct buf *out)
{
	for (size_t i = 0; i < n; i++) {
		if (numbered)
			buf_addf(out, "%6zu\t", i + 1);
		add_line(m, "lines", "", out);
		buf_addc(out, '\n');
	}
}

static const char *own(struct golden *g, char *s)
{
	MEM_GROW(g->owned, g->cap_owned, g->n_owned + 1);
	g->owned[g->n_owned++] = s;
	return s;
}

static struct golden_step *add_step(struct golden *g)
{
	MEM_GROW(g->steps, g->cap_steps, g->n_steps + 1);
	g->steps[g->n_steps] = (struct golden_step){.exit_code = -1};
	return &g->steps[g->n_steps++];
}

static void set_arguments(struct golden_step *step, const char *key, const char *value,
			  const char *key2, const char *value2, const char *key3,
			  const char *value3)
{
	AUTO_JSON struct json_object *o = json_object_new_object();
	struct buf text = BUF_INIT;

	json_set_str(o, key, value);
	if (key2)
		json_set_str(o, key2, value2);
	if (key3)
		json_set_str(o, key3, value3);
	json_write(&text, o);
	step->arguments = buf_take(&text);
}

/* Reads and commands in turn. */
static void add_filler(struct maker *m)
{
	struct golden_step *step = add_step(m->golden);
	struct json_object *files = json_arr(m->doc, "files");
	const char *file = json_object_get_string(json_at(files, pick(m, json_len(files))));
	AUTO_BUF struct buf say = BUF_INIT;
	AUTO_BUF struct buf command = BUF_INIT;

	add_line(m, "says", file, &say);
	step->say = own(m->golden, buf_take(&say));
	m->golden->rounds++;
	if (m->fillers++ % 3) {
		step->tool = "shell";
		step->exit_code = 0;
		add_line(m, "commands", file, &command);
		set_arguments(step, "command", buf_str(&command), NULL, NULL, NULL, NULL);
		add_lines(m, 8 + pick(m, 32), false, &step->result);
	} else {
		step->tool = "read";
		set_arguments(step, "path", file, NULL, NULL, NULL, NULL);
		add_lines(m, 20 + pick(m, 60), true, &step->result);
	}
}

/* ---- what is written by hand ---- */

static void add_shell(struct golden_step *step, struct json_object *r)
{
	const char *command = json_str(r, "shell", "");

	step->tool = "shell";
	step->exit_code = (int)json_i64(r, "exit", 0);
	set_arguments(step, "command", command, NULL, NULL, NULL, NULL);
	if (step->exit_code)
		buf_addf(&step->result, "exit code %d\n", step->exit_code);
	buf_adds(&step->result, json_str(r, "out", "(no output)\n"));
}

static void add_edit(struct golden_step *step, struct json_object *r)
{
	const char *path = json_str(r, "edit", ""), *text = json_str(r, "new", "");

	step->tool = "edit";
	set_arguments(step, "path", path, "old_string", json_str(r, "old", ""), "new_string", text);
	buf_addf(&step->result, "edited %s (1 replacement); it now reads:\n%s", path, text);
}

static void add_write(struct golden_step *step, struct json_object *r)
{
	const char *path = json_str(r, "write", ""), *text = json_str(r, "content", "");

	step->tool = "write";
	set_arguments(step, "path", path, "content", text, NULL, NULL);
	buf_addf(&step->result, "created %s (%zu bytes)", path, strlen(text));
}

static void add_read(struct maker *m, struct golden_step *step, struct json_object *r)
{
	step->tool = "read";
	set_arguments(step, "path", json_str(r, "read", ""), NULL, NULL, NULL, NULL);
	if (json_has(r, "out"))
		buf_adds(&step->result, json_str(r, "out", ""));
	else
		add_lines(m, (size_t)json_i64(r, "lines", 30), true, &step->result);
}

static int add_round(struct maker *m, struct json_object *r, struct err *err)
{
	struct golden_step *step = add_step(m->golden);

	m->golden->rounds++;
	step->say = json_str(r, "say", NULL);
	if (json_has(r, "shell")) {
		add_shell(step, r);
	} else if (json_has(r, "edit")) {
		add_edit(step, r);
	} else if (json_has(r, "write")) {
		add_write(step, r);
	} else if (json_has(r, "read")) {
		add_read(m, step, r);
	} else if (json_has(r, "grep")) {
		step->tool = "grep";
		set_arguments(step, "pattern", json_str(r, "grep", ""), NULL, NULL, NULL, NULL);
		buf_adds(&step->result, json_str(r, "out", ""));
	} else {
		return err_set(err, ERR_INVALID, "round %d has no call", m->golden->rounds);
	}
	return 0;
}

/* Words of the user, with a pasted part if there is one. */
static void add_user(struct maker *m, struct json_object *r)
{
	struct golden_step *step = add_step(m->golden);
	struct buf text = BUF_INIT;

	buf_adds(&text, json_str(r, "user", ""));
	if (json_has(r, "paste")) {
		add_lines(m, (size_t)json_i64(r, "paste", 0), false, &text);
		buf_adds(&text, json_str(r, "end", ""));
	}
	step->user = own(m->golden, buf_take(&text));
}

static int make_steps(struct golden *g, struct json_object *doc, struct err *err)
{
	struct maker m = {.golden = g, .doc = doc, .random = (uint64_t)json_i64(doc, "seed", 1)};
	struct json_object *rounds = json_arr(doc, "rounds");

	for (size_t i = 0; i < json_len(rounds); i++) {
		struct json_object *r = json_at(rounds, i);

		if (json_has(r, "user"))
			add_user(&m, r);
		else if (!json_has(r, "filler") && add_round(&m, r, err) < 0)
			return -1;
		for (int64_t n = json_i64(r, "filler", 0); n > 0; n--)
			add_filler(&m);
	}
	return 0;
}

/* ---- facts ---- */

static int fill_fact(struct fact *f, struct json_object *r, struct err *err)
{
	struct json_object *all = json_arr(r, "all");

	f->at = (int)json_i64(r, "at", 0);
	f->why = json_str(r, "why", NULL);
	if (!all)
		f->texts[f->n++] = json_str(r, "text", "");
	for (size_t i = 0; i < json_len(all) && f->n < FACT_TEXTS; i++)
		f->texts[f->n++] = json_object_get_string(json_at(all, i));
	return *f->texts[0] ? 0 : err_set(err, ERR_INVALID, "a fact has no text");
}

static int add_fact(struct golden *g, struct json_object *r, struct err *err)
{
	const char *name = json_str(r, "class", "");
	struct fact f = {.n = 0};

	if (!strcmp(name, "followup")) {
		g->follow_up = json_str(r, "ask", NULL);
		return fill_fact(&g->answer, r, err);
	}
	while (f.class < FACT_CLASSES && strcmp(class_names[f.class], name) != 0)
		f.class ++;
	if (f.class == FACT_CLASSES)
		return err_set(err, ERR_INVALID, "there is no class '%s' of facts", name);
	MEM_GROW(g->facts, g->cap_facts, g->n_facts + 1);
	if (fill_fact(&f, r, err) < 0)
		return -1;
	g->facts[g->n_facts++] = f;
	return 0;
}

/* What the user said is a fact as a whole. */
static void add_words(struct golden *g, const char *text, int at)
{
	MEM_GROW(g->facts, g->cap_facts, g->n_facts + 1);
	g->facts[g->n_facts++] =
		(struct fact){.class = FACT_WORDS, .at = at, .texts = {text}, .n = 1};
}

static int make_facts(struct golden *g, struct json_object *list, struct err *err)
{
	int round = 0;

	for (size_t i = 0; i < json_len(list); i++)
		if (add_fact(g, json_at(list, i), err) < 0)
			return -1;
	add_words(g, g->task, 0);
	for (size_t i = 0; i < g->n_steps; i++) {
		if (g->steps[i].user)
			add_words(g, g->steps[i].user, round);
		round += !g->steps[i].user;
	}
	return 0;
}

/* ---- all of it ---- */

static int load(struct golden *g, const char *folder, const char *name, struct err *err)
{
	AUTO_FREE char *conversation = mem_printf("%s/conversations/%s.yaml", folder, name);
	AUTO_FREE char *facts = mem_printf("%s/facts/%s.yaml", folder, name);
	struct json_object *doc;

	if (yaml_parse_file(conversation, &g->conversation_doc, err) < 0 ||
	    yaml_parse_file(facts, &g->facts_doc, err) < 0)
		return -1;
	doc = yaml_root(g->conversation_doc);
	if (json_need_str(doc, "name", &g->name, err) < 0 ||
	    json_need_str(doc, "task", &g->task, err) < 0 ||
	    json_need_str(doc, "language", &g->language, err) < 0)
		return -1;
	g->instructions = json_str(doc, "instructions", NULL);
	return make_steps(g, doc, err) < 0 ? -1 : make_facts(g, yaml_root(g->facts_doc), err);
}

int golden_load(const char *folder, const char *name, struct golden **ret, struct err *err)
{
	struct golden *g = mem_alloc(sizeof(*g));

	if (load(g, folder, name, err) < 0) {
		golden_free(g);
		return err_prefix(err, "%s", name);
	}
	*ret = g;
	return 0;
}

void golden_free(struct golden *g)
{
	if (!g)
		return;
	for (size_t i = 0; i < g->n_steps; i++) {
		free(g->steps[i].arguments);
		buf_release(&g->steps[i].result);
	}
	for (size_t i = 0; i < g->n_owned; i++)
		free(g->owned[i]);
	yaml_free(g->conversation_doc);
	yaml_free(g->facts_doc);
	free(g->owned);
	free(g->steps);
	free(g->facts);
	free(g);
}

/* ---- all of them ---- */

static const char *const names[GOLDENS] = {
	"ring-buffer",	   "invoices-api",  "ledger-migration", "night-errors",
	"scheduler-split", "flaky-upload",  "operator-guide",	"cmake-cross",
	"token-review",	   "query-latency", "orders-zh",	"gateway-zh",
};

int golden_load_all(const char *folder, struct golden *ret[GOLDENS], struct err *err)
{
	for (size_t i = 0; i < GOLDENS; i++)
		if (golden_load(folder, names[i], &ret[i], err) < 0)
			return -1;
	return 0;
}

void golden_free_all(struct golden *goldens[GOLDENS])
{
	for (size_t i = 0; i < GOLDENS; i++)
		golden_free(goldens[i]);
}
