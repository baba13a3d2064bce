/*
 * reset_life.c - see reset_life.h.
 */
#include "reset_life.h"

#include "golden_agent.h"
#include "successor.h"

#include "../agent/agent_fixture.h"

#include <fcntl.h>
#include <stdio.h>

#include "agent/handoff_ask.h"
#include "agent/handoff_make.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "orchestrator/handoff_truth.h"

/* The last one is behind all facts. Nothing else fails between what breaks and the cut. */
static const int cuts[RESET_CUTS] = {13, 25, 36, 48, 58};

#define AFTER	   2 /* rounds between what breaks and the cut */
#define WINDOW	   100000
#define DOC_TOKENS 10000 /* R2 */
#define DOC_PCT	   15

const char *reset_form_name(enum reset_form form)
{
	return form == RESET_JUDGED ? "judged" : "facts";
}

const char *reset_break_name(enum reset_break spoilt)
{
	static const char *const list[BREAKS] = {"none",     "no output",  "old action",
						 "no carry", "no sayings", "no files",
						 "no names", "reworded"};

	return list[spoilt];
}

/* ---- a life in generations ---- */

struct life {
	const struct golden *golden;
	enum reset_form form;
	enum reset_break spoilt;
	struct reset_world *world;
	char *home; /* a folder for each generation */
	int64_t generation;
	struct golden_agent *ga;
	struct successor successor;
	struct defect defect;
	struct json_object *files; /* of the worktree at the cut */
	char *task;		   /* the open item of the plan */
	struct reset_score *score;
	size_t cut;
	int exit_code; /* of its newest call */
};

static int answer_from_bytes(void *arg, const struct call_request *request, const char *body,
			     size_t n, struct buf *stream)
{
	struct life *life = arg;

	golden_agent_stream(life->ga, successor_next(&life->successor, body, n), stream);
	return 0;
}

static void run_live(void *arg, const char *tool, struct json_object *input,
		     struct tool_result *ret)
{
	struct life *life = arg;

	reset_world_call(life->world, tool, input, ret);
	life->exit_code = ret->exit_code;
}

static struct golden_agent *agent_of(struct life *life, const char *handoff)
{
	struct golden_options o = {
		.window = WINDOW,
		.context = "{\"notes\":false}",
		.model = answer_from_bytes,
		.arg = life,
		.generation = life->generation,
		.home = life->home,
		.handoff = handoff,
		.live = run_live,
	};

	return golden_agent_new(life->golden, &o);
}

/* Recorded rounds, with their edits made in the world. */
static void play(struct life *life, int round)
{
	struct golden_agent *ga = life->ga;
	size_t from = ga->at;

	golden_agent_play(ga, round);
	for (size_t i = from; i < ga->at; i++)
		reset_world_replay(life->world, &life->golden->steps[i]);
}

static void act(struct life *life, const char *say, const char *tool, const char *key,
		const char *value, const char *content)
{
	AUTO_JSON struct json_object *o = json_object_new_object();
	AUTO_BUF struct buf text = BUF_INIT;

	json_set_str(o, key, value);
	json_set_str(o, "content", content);
	json_write(&text, o);
	buf_adds(&text, "");
	struct golden_step step = {.say = say, .tool = tool, .arguments = text.data};
	assert_true(golden_agent_act(life->ga, &step));
}

static void plan_work(struct life *life)
{
	struct plan plan = {.n = 0};
	AUTO_FREE char *text = NULL;
	struct err e = ERR_INIT;

	free(life->task);
	life->task = mem_printf("let %s() tell the limit of step %zu", life->defect.function,
				life->cut + 1);
	text = mem_printf("- [x] write %s\n- [ ] %s\n", life->defect.file, life->task);
	if (plan_parse(&plan, text, strlen(text), &e) < 0 ||
	    memory_set_plan(&life->ga->agent.memory, &plan, &e) < 0)
		fail_msg("%s", e.message);
	plan_release(&plan);
}

/* The agent writes a file, and its test fails. */
static void break_something(struct life *life)
{
	struct defect *d = &life->defect;

	defect_release(d);
	reset_world_break(life->world, life->cut, d);
	plan_work(life);
	act(life, "The limits of this step.", "write", "path", d->file, d->content);
	act(life, "Its test.", "shell", "command", d->command, NULL);
}

/* ---- the document ---- */

static void add_items(const struct golden *g, int round, enum fact_class class, struct buf *out)
{
	for (size_t i = 0; i < g->n_facts; i++) {
		const struct fact *f = &g->facts[i];

		if (f->class == class && f->at <= round)
			buf_addf(out, "- %s%s%s\n", f->texts[0], f->why ? ": " : "",
				 f->why ? f->why : "");
	}
}

/* What a model with a good memory says. */
static void judge(const struct life *life, struct buf *out)
{
	const struct golden *g = life->golden;
	int round = life->ga->played;

	buf_adds(out, "<handoff>\n<ruled_out>\n");
	add_items(g, round, FACT_REJECTED, out);
	buf_adds(out, "</ruled_out>\n<decisions>\n");
	add_items(g, round, FACT_DECISION, out);
	buf_addf(out,
		 "</decisions>\n<point>\nfile: %s\nfunction: %s\ntest: %s\nIts test still "
		 "fails.\n</point>\n",
		 life->defect.file, life->defect.function, life->defect.test);
	buf_addf(
		out,
		"<first_action>\nfile: %s\nfunction: %s\ntest: %s\ncommand: %s\nLet %s() tell what "
		"its test expects.\n</first_action>\n</handoff>",
		life->defect.file, life->defect.function, life->defect.test, life->defect.command,
		life->defect.function);
}

static void ask_judgement(struct life *life, struct handoff *h)
{
	AUTO_BUF struct buf text = BUF_INIT;
	struct err why = ERR_INIT, e = ERR_INIT;

	judge(life, &text);
	life->ga->judgement = buf_str(&text);
	if (handoff_ask(&life->ga->agent, h, NULL, &why, &e) != 0)
		fail_msg("no judgement: %s%s", why.message, e.message);
	life->ga->judgement = NULL;
}

static void spoil(struct life *life, struct handoff *h)
{
	struct handoff_part *failures = &h->parts[HANDOFF_FAILURES],
			    *constraints = &h->parts[HANDOFF_CONSTRAINTS];
	struct handoff_statement *action = handoff_the(h, HANDOFF_FIRST_ACTION);

	for (size_t i = 0; life->spoilt == BREAK_NO_OUTPUT && i < failures->n; i++)
		handoff_set(&failures->list[i].output, NULL);
	if (life->spoilt == BREAK_OLD_ACTION && failures->n)
		handoff_set(&action->command, failures->list[0].command);
	while (life->spoilt == BREAK_NO_FILES && h->parts[HANDOFF_FILES].n)
		handoff_remove(h, HANDOFF_FILES, 0);
	if (life->spoilt == BREAK_REWORDED && constraints->n)
		*strrchr(constraints->list[0].text, ' ') = '\0';
}

static struct handoff *make(struct life *life)
{
	struct agent *a = &life->ga->agent;
	struct handoff *before = a->handoff, *h;

	facts_take(&a->facts, &a->conversation);
	size_t n_sayings = a->facts.n_sayings, n_names = a->facts.n_names;
	if (life->spoilt == BREAK_NO_CARRY)
		a->handoff = NULL;
	if (life->spoilt == BREAK_NO_SAYINGS)
		a->facts.n_sayings = 0;
	if (life->spoilt == BREAK_NO_NAMES)
		a->facts.n_names = 0;
	h = handoff_make(a, HANDOFF_ROUNDS, "the rounds of this generation are used up");
	a->handoff = before;
	a->facts.n_sayings = n_sayings; /* they are released with the rest */
	a->facts.n_names = n_names;
	if (life->form == RESET_JUDGED)
		ask_judgement(life, h);
	spoil(life, h);
	return h;
}

/* As orchestrator/agent_reset.c does it. */
static void complete(struct life *life, struct handoff *h)
{
	handoff_set(&h->base, life->world->base);
	handoff_set(&h->head, life->world->base);
	handoff_set(&h->branch, "main");
}

static void add_hashes(struct handoff *h, struct json_object *facts)
{
	struct json_object *files = json_obj(facts, "files");

	for (size_t i = 0; i < h->parts[HANDOFF_FILES].n; i++) {
		struct handoff_statement *s = &h->parts[HANDOFF_FILES].list[i];

		handoff_set(&s->hash, json_str(files, s->file ? s->file : "", NULL));
	}
}

static void note(struct life *life, const char *what, const char *text)
{
	buf_addf(&life->score->facts.missing, "%s %s, cut %zu: %s: %s\n", life->golden->name,
		 reset_form_name(life->form), life->cut + 1, what, text);
}

/* R4, with the records of the generation and the objects of the repository. */
static void check(struct life *life, const struct handoff *h, struct json_object *facts)
{
	struct handoff_records *records = handoff_records_new();
	struct handoff_findings found;
	AUTO_FREE char *transcript =
		mem_printf("%s/%lld/transcript.jsonl", life->home, (long long)life->generation);
	struct err e = ERR_INIT;

	for (int64_t g = 1; g <= life->generation; g++) {
		AUTO_FREE char *words = mem_printf("%s/%lld/words.jsonl", life->home, (long long)g);
		if (handoff_records_words(records, words, &e) < 0)
			fail_msg("%s", e.message);
	}
	if (handoff_records_calls(records, transcript, &e) < 0)
		fail_msg("%s", e.message);
	handoff_records_git(records, facts);
	struct handoff_truth truth = handoff_records_truth(records);
	life->score->accepted += handoff_check(h, &truth, &found);
	for (size_t i = 0; i < found.n; i++)
		note(life, found.list[i].fault == HANDOFF_UNPROVED ? "unproved" : "refused",
		     found.list[i].text);
	handoff_findings_release(&found);
	handoff_records_free(records);
}

/* Returns the path. Caller frees. */
static char *write_document(struct life *life, struct handoff *h)
{
	char *path = mem_printf("%s/%lld/handoff.json", life->home, (long long)life->generation);
	AUTO_JSON struct json_object *json = NULL;
	AUTO_BUF struct buf text = BUF_INIT;
	struct err e = ERR_INIT;
	int64_t tokens = handoff_bound(h, MIN((int64_t)DOC_TOKENS, (int64_t)WINDOW * DOC_PCT / 100),
				       NULL, NULL);

	life->score->tokens = MAX(life->score->tokens, tokens);
	json = handoff_to_json(h);
	json_write_pretty(&text, json);
	if (file_write_atomic(AT_FDCWD, path, text.data, text.len, 0600, &e) < 0)
		fail_msg("%s", e.message);
	return path;
}

static char *hand_over(struct life *life)
{
	struct handoff *h = make(life);
	AUTO_JSON struct json_object *facts = NULL;
	char *path;

	transcript_sync(life->ga->agent.transcript, NULL);
	json_object_put(life->files);
	life->files = reset_world_files(life->world);
	complete(life, h);
	facts = reset_world_facts(life->world, h);
	add_hashes(h, facts);
	check(life, h, facts);
	path = write_document(life, h);
	handoff_free(h);
	return path;
}

/* ---- what the successor has ---- */

/* The exit code that this command ended with when it ran last before the cut; -1: it did not run. */
static int last_exit(const struct life *life, const char *command)
{
	int code = -1;

	for (size_t i = 0; i < life->ga->at; i++) {
		const struct golden_step *step = &life->golden->steps[i];

		if (!step->user && !strcmp(step->tool, "shell") &&
		    golden_holds(step->arguments, strlen(step->arguments), command))
			code = step->exit_code;
	}
	return code;
}

static bool states_exit(const struct handoff *h, const char *command, int code)
{
	const enum handoff_part_name parts[] = {HANDOFF_FINISHED, HANDOFF_FAILURES};

	for (size_t k = 0; k < ARRAY_SIZE(parts); k++) {
		const struct handoff_part *part = &h->parts[parts[k]];

		for (size_t i = 0; i < part->n; i++)
			if (part->list[i].command && strstr(part->list[i].command, command) &&
			    part->list[i].has_exit && part->list[i].exit_code == code)
				return true;
	}
	return false;
}

/* Of the document as it stands in the bytes, read back. */
static void score_exits(struct life *life, const struct handoff *h)
{
	const struct golden *g = life->golden;
	struct reset_score *s = life->score;

	for (size_t i = 0; i < g->n_facts; i++) {
		const struct fact *f = &g->facts[i];
		int code = f->class == FACT_COMMAND && f->at <= life->ga->played
				   ? last_exit(life, f->texts[0])
				   : -1;

		if (code < 0)
			continue;
		s->all_exits++;
		if (states_exit(h, f->texts[0], code))
			s->exits++;
		else
			note(life, "exit code of", f->texts[0]);
	}
	s->all_exits++;
	if (states_exit(h, life->defect.command, 1))
		s->exits++;
	else
		note(life, "exit code of", life->defect.command);
}

static void score_tasks(struct life *life, const struct handoff *h)
{
	const struct handoff_part *tasks = &h->parts[HANDOFF_TASKS];
	bool found = false;

	for (size_t i = 0; i < tasks->n; i++)
		found |= tasks->list[i].state == HANDOFF_OPEN &&
			 !strcmp(tasks->list[i].text, life->task);
	life->score->all_tasks++;
	life->score->tasks += found;
	if (!found)
		note(life, "open task", life->task);
}

/* `body`: the first request of the successor, and nothing else. */
static void score_request(struct life *life, const struct buf *body)
{
	AUTO_BUF struct buf text = BUF_INIT;
	struct handoff *h = NULL;
	const char *document;
	struct err e = ERR_INIT;
	size_t n;

	golden_check(life->golden, life->ga->played, body->data, body->len,
		     reset_form_name(life->form), &life->score->facts);
	request_text(body->data, body->len, false, &text);
	if (!request_document(buf_str(&text), &document, &n) ||
	    handoff_from_markdown(document, n, &h, &e) < 0) {
		note(life, "the document", e.message);
		return;
	}
	score_exits(life, h);
	score_tasks(life, h);
	handoff_free(h);
}

/* ---- the successor ---- */

/* Only this file was changed, and the test command itself says that it is green. */
static bool is_green(struct life *life)
{
	AUTO_FREE char *changed = reset_world_changed(life->world, life->files);

	if (life->successor.lacks)
		note(life, "the bytes have not", life->successor.lacks);
	if (life->successor.calls < SUCCESSOR_CALLS || life->exit_code != 0)
		return false;
	if (strcmp(changed, life->defect.file) != 0)
		note(life, "other files were changed", changed);
	return strcmp(changed, life->defect.file) == 0;
}

/* What is wrong stays wrong for nobody else: the next cut begins from a green world. */
static void mend_for_it(struct life *life)
{
	AUTO_FREE char *command =
		mem_printf("printf '%s() {\\n\\techo %d\\n}\\n' > %s", life->defect.function,
			   life->defect.want, life->defect.file);

	act(life, "I mend it.", "shell", "command", command, NULL);
	act(life, "And run its test.", "shell", "command", life->defect.command, NULL);
}

static void replace_agent(struct life *life, const char *path)
{
	struct golden_agent *old = life->ga;
	AUTO_FREE char *transcript =
		mem_printf("%s/%lld/transcript.jsonl", life->home, (long long)life->generation);

	assert_int_equal(unlink(transcript), 0);
	life->generation++;
	life->ga = agent_of(life, path);
	life->ga->at = old->at;
	life->ga->played = old->played;
	golden_agent_free(old);
}

static void reset(struct life *life)
{
	AUTO_FREE char *path = hand_over(life);
	bool green;

	life->score->resets++;
	replace_agent(life, path);
	successor_release(&life->successor);
	bool goes_on = golden_agent_act(life->ga, NULL);
	score_request(life, &life->ga->body);
	while (goes_on && life->successor.calls < SUCCESSOR_CALLS)
		goes_on = golden_agent_act(life->ga, NULL);
	green = is_green(life);
	life->score->green += green;
	if (!green)
		mend_for_it(life);
}

void reset_live(const struct golden *golden, struct reset_world *world,
		const struct reset_plan *plan, struct reset_score *score)
{
	struct life life = {.golden = golden,
			    .form = plan->form,
			    .spoilt = plan->spoilt,
			    .world = world,
			    .home = fixture_folder(),
			    .generation = 1,
			    .score = score};

	reset_world_restore(world);
	life.ga = agent_of(&life, NULL);
	for (life.cut = 0; life.cut < RESET_CUTS; life.cut++) {
		if (!(plan->cuts & 1u << life.cut))
			continue;
		play(&life, cuts[life.cut] - AFTER);
		break_something(&life);
		play(&life, cuts[life.cut]);
		reset(&life);
	}
	golden_agent_free(life.ga);
	fixture_remove(life.home);
	successor_release(&life.successor);
	defect_release(&life.defect);
	json_object_put(life.files);
	free(life.task);
}
