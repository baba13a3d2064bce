/*
 * plan.c - draws sessions.
 *
 * Two forms of the same distributions: CI has short sessions in small windows, where every threshold is near; the
 * nightly one has long ones in all windows.
 */
#include "plan.h"

#include "base/json.h"
#include "base/memory.h"

static void draw_window(struct session_plan *p, struct random *r, enum form form)
{
	if (form == FORM_NIGHTLY && random_chance(r, 4000))
		p->window = random_log_uniform(r, 32000, 1000000);
	else if (random_chance(r, form == FORM_CI ? 8500 : 7000))
		p->window = random_log_uniform(r, 8000, 32000);
	else
		p->window = random_log_uniform(r, 32000, 200000);
	p->true_window = p->window;
	if (random_chance(r, 2500))
		p->true_window =
			MAX(p->window * random_between(r, 45, 95) / 100 / 1024 * 1024, 6144);
	p->overflow = (enum fault)random_between(r, 0, OVERFLOW_FORMS - 1);
	/* Several models list as much output as they have window. */
	p->max_output = random_chance(r, 1000) ? p->window : random_between(r, 2000, 32000);
	p->wanted_output = MIN(p->max_output, random_between(r, 1500, 16000));
}

static void draw_model(struct session_plan *p, struct random *r)
{
	p->api = random_chance(r, 6000) ? MODEL_API_ANTHROPIC : MODEL_API_OPENAI;
	p->thinks = random_chance(r, 5000);
	p->priced = random_chance(r, 5000);
	p->parallel = random_chance(r, 8000);
	p->images = random_chance(r, 5000);
	if (p->api == MODEL_API_ANTHROPIC) {
		p->bound = p->thinks && random_chance(r, 5000);
		p->dialect = random_chance(r, 7000) ? "anthropic" : "anthropic-compatible";
	} else {
		p->demands_reasoning = p->thinks && random_chance(r, 3000);
		p->dialect = p->demands_reasoning     ? "deepseek"
			     : random_chance(r, 6000) ? "openai"
						      : "openai-compatible";
	}
}

static void draw_length(struct session_plan *p, struct random *r, enum form form)
{
	if (form == FORM_CI)
		p->rounds = random_log_normal(r, 34, 0.8, 400);
	else
		p->rounds = random_log_normal(r, 180, 0.85, 1990);
	p->max_rounds = random_chance(r, 9000) ? p->rounds + 10 : MAX(p->rounds * 2 / 3, 2);
	p->text_size = random_log_uniform(r, 60, 1500);
	p->result_size = random_log_uniform(r, 200, 6000);
	p->result_spread = (double)random_between(r, 8, 19) / 10;
	if (random_chance(r, 8000))
		p->instructions = random_log_uniform(r, 100, MAX(p->window / 4, 200));
}

static void draw_knobs(struct session_plan *p, struct random *r)
{
	p->decay = random_chance(r, 2500);
	p->clear_idle = random_chance(r, 2500);
	p->budget_notes = random_chance(r, 2000);
	p->proactive_pct = random_chance(r, 1000) ? random_between(r, 30, 80) : 0;
	p->files = random_chance(r, 3000) ? random_between(r, 6, 12) : 40;
	p->repeats = random_chance(r, 7000) ? (unsigned)random_between(r, 200, 2500) : 0;
	p->real = p->window >= 12000 && random_chance(r, 3500);
	if (p->api == MODEL_API_ANTHROPIC && !strcmp(p->dialect, "anthropic"))
		p->edits = random_chance(r, 3000);
	p->refuses_edits = p->edits && random_chance(r, 1500);
	p->switches = random_chance(r, 1500) ? (unsigned)random_between(r, 40, 300) : 0;
	p->apart = random_chance(r, 1200);
	p->apart_api = random_chance(r, 5000) ? MODEL_API_ANTHROPIC : MODEL_API_OPENAI;
	p->apart_window = random_log_uniform(r, 8000, 200000);
}

void plan_make(struct session_plan *plan, uint64_t seed, enum form form)
{
	struct random r;

	random_init(&r, seed);
	*plan = (struct session_plan){.seed = seed};
	draw_window(plan, &r, form);
	draw_model(plan, &r);
	draw_length(plan, &r, form);
	plan->fault_percent =
		random_chance(&r, 3000) ? 0 : (unsigned)random_log_uniform(&r, 20, 400);
	/* Long sessions meet as much in all. */
	if (form == FORM_NIGHTLY)
		plan->fault_percent /= 5;
	plan->bad_summaries = random_chance(&r, 6000) ? 50 : (unsigned)random_between(&r, 0, 400);
	plan->interject = random_chance(&r, 6000) ? (unsigned)random_between(&r, 50, 1500) : 0;
	plan->interrupt = random_chance(&r, form == FORM_NIGHTLY ? 2600 : 2000)
				  ? (unsigned)random_between(&r, 20, 400)
				  : 0;
	if (form == FORM_NIGHTLY) /* it ends a session */
		plan->interrupt = MIN(plan->interrupt, 120);
	plan->shrink = random_chance(&r, 1500) ? (unsigned)random_between(&r, 20, 300) : 0;
	plan->by_hand = random_chance(&r, 1500) ? (unsigned)random_between(&r, 50, 600) : 0;
	plan->stubborn = random_chance(&r, 500);
	draw_knobs(plan, &r);
	plan->compact_off = random_chance(&r, 800);
}

/* The window is one in which the fixed part still fits; no server that wants reasoning of a model that gave none. */
void plan_switch(struct session_plan *p, struct random *r)
{
	int64_t files = p->files;
	bool edits = p->edits;

	draw_model(p, r);
	p->demands_reasoning = false;
	if (!strcmp(p->dialect, "deepseek"))
		p->dialect = "openai";
	p->window = p->true_window = p->window * random_between(r, 70, 250) / 100;
	p->window = p->true_window = MIN(MAX(p->window, 8000 + 6 * p->instructions / 3), 1000000);
	p->edits = edits && !strcmp(p->dialect, "anthropic");
	p->refuses_edits &= p->edits;
	p->files = files;
	p->lives++;
}

static void add_model(const struct session_plan *p, struct buf *out)
{
	bool anthropic = p->api == MODEL_API_ANTHROPIC;

	buf_addf(out,
		 "\"model\":{\"provider\":\"%s\",\"name\":\"own-%d\",\"api\":\"%s\",\"window\":%"
		 "lld,"
		 "\"max_output\":%lld,\"max_tokens_field\":\"max_tokens\",\"system_role\":"
		 "\"system\","
		 "\"dialect\":\"%s\",\"usage_in_stream\":true,\"keeps_thinking\":true",
		 anthropic ? "anthropic" : "openai", p->lives, anthropic ? "anthropic" : "openai",
		 (long long)p->window, (long long)p->max_output, p->dialect);
	buf_addf(out, ",\"parallel_tools\":%s,\"images\":%s,\"cache\":\"%s\",\"reasoning\":\"%s\"",
		 p->parallel ? "true" : "false", p->images ? "true" : "false",
		 anthropic ? "explicit" : "automatic", p->thinks && anthropic ? "always" : "none");
	if (p->bound)
		buf_adds(out, ",\"preserved_thinking\":true");
	if (p->edits)
		buf_adds(out, ",\"context_edits\":true");
	if (!anthropic && p->thinks)
		buf_adds(out, ",\"reasoning_field\":\"reasoning_content\"");
	if (p->price.known)
		buf_addf(out,
			 ",\"price\":{\"input\":%g,\"output\":%g,\"cache_read\":%g,\"cache_write\":"
			 "%g}",
			 p->price.input, p->price.output, p->price.cache_read,
			 p->price.cache_write);
	else if (p->priced)
		buf_adds(out, ",\"price\":{\"input\":3,\"output\":15,\"cache_read\":0.3,"
			      "\"cache_write\":3.75}");
	buf_adds(out, "}");
}

/* H16: in another form, behind another tokenizer. */
static void add_model_apart(const struct session_plan *p, struct buf *out)
{
	const char *api = p->apart_api == MODEL_API_ANTHROPIC ? "anthropic" : "openai";

	buf_addf(out,
		 ",\"compact_model\":{\"provider\":\"%s\",\"name\":\"" MODEL_APART
		 "\",\"api\":\"%s\",\"window\":%lld,\"max_output\":8000,\"max_tokens_field\":"
		 "\"max_tokens\",\"system_role\":\"system\",\"dialect\":\"%s\",\"usage_in_stream\":"
		 "true,\"reasoning\":\"none\"}",
		 api, api, (long long)p->apart_window, api);
}

static void add_knobs(const struct session_plan *p, struct buf *out)
{
	buf_addf(out,
		 ",\"context\":{\"compact\":%s,\"decay\":%s,"
		 "\"clear_idle\":%s,\"budget_notes\":%s,\"provider_edits\":%s,"
		 "\"proactive_pct\":%lld%s},",
		 p->compact_off ? "false" : "true", p->decay ? "true" : "false",
		 p->clear_idle ? "true" : "false", p->budget_notes ? "true" : "false",
		 p->edits ? "true" : "false", (long long)p->proactive_pct,
		 p->context ? p->context : "");
}

void plan_document(const struct session_plan *p, const char *folder, const char *task,
		   const char *instructions, struct buf *out)
{
	buf_addf(out,
		 "{\"run\":\"r-%llu\",\"agent\":\"a1\",\"generation\":1,\"role\":{\"name\":"
		 "\"worker\","
		 "\"prompt\":\"You work on one "
		 "task.\",\"tools\":[\"read\",\"write\",\"edit\",\"shell\","
		 "\"grep\",\"glob\",\"web_fetch\",\"notes\",\"recall\"],\"write\":true,\"network\":"
		 "\"none\","
		 "\"max_rounds\":%lld,\"max_output\":%lld},\"task_origin\":\"user\",\"brief\":\"\","
		 "\"worktree_ready\":true,\"box\":{\"level\":\"unconfined\"},\"environment\":"
		 "{\"platform\":\"Linux\"},\"task\":",
		 (unsigned long long)p->seed, (long long)p->max_rounds,
		 (long long)p->wanted_output);
	json_write_cstr(out, task);
	add_knobs(p, out);
	if (*instructions) {
		buf_adds(out, "\"instructions\":[{\"origin\":\"project\",\"path\":\"AGENTS.md\","
			      "\"text\":");
		json_write_cstr(out, instructions);
		buf_adds(out, "}],");
	}
	add_model(p, out);
	if (p->lives)
		buf_adds(out, ",\"resume\":true");
	if (p->apart)
		add_model_apart(p, out);
	buf_adds(out, ",\"dirs\":{");
	static const char *const dirs[] = {"generation", "worktree", "scratch", "cache"};
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
		AUTO_FREE char *path = mem_printf("%s/%s", folder, dirs[i]);

		buf_addf(out, "%s\"%s\":", i ? "," : "", dirs[i]);
		json_write_cstr(out, path);
	}
	buf_adds(out, "}}");
}
