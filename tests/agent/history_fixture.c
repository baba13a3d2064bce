/*
 * history_fixture.c - see the header.
 */
#include "tests/agent/history_fixture.h"

#include "agent/context/edit_record.h"
#include "agent/validate.h"
#include "base/file.h"
#include "base/memory.h"

#define THOUGHT "{\"type\":\"thinking\",\"thinking\":\"hm\",\"signature\":\"s\"}"

static void append(struct history *h, struct message *m)
{
	conversation_append(&h->c, m);
	ledger_add(&h->ledger, m);
	if (h->transcript)
		transcript_message(h->transcript, m);
}

void history_start(struct history *h, int64_t window)
{
	*h = (struct history){
		.model = {.window = window,
			  .max_output = 4000,
			  .cache = CACHE_EXPLICIT,
			  .price = {.known = true,
				    .input = 3,
				    .output = 15,
				    .cache_read = 0.3,
				    .cache_write = 3.75}},
	};
	conversation_init(&h->c);
	view_init(&h->view);
	ledger_init(&h->ledger);
	knobs_init(&h->knobs);
	ledger_fixed(&h->ledger, "You are an agent.", NULL, 0);
	assert_int_equal(budget_init(&h->budget, &h->model, &h->knobs, NULL), 0);
	h->in = (struct rung_input){
		.view = &h->view,
		.conversation = &h->c,
		.model = &h->model,
		.knobs = &h->knobs,
		.rounds_left = 50,
		.ledger = &h->ledger,
		.budget = &h->budget,
	};
	history_user(h, ORIGIN_USER, "Make the tests pass. Never touch gen/.");
}

void history_record(struct history *h, const char *folder)
{
	assert_int_equal(transcript_open(folder, &h->transcript, NULL), 0);
	for (size_t i = 0; i < h->c.n; i++)
		transcript_message(h->transcript, h->c.messages[i]);
	h->view.record = h->transcript;
}

void history_end(struct history *h)
{
	transcript_close(h->transcript);
	view_release(&h->view);
	conversation_release(&h->c);
	ledger_release(&h->ledger);
}

void history_user(struct history *h, enum block_origin origin, const char *text)
{
	struct message *m = message_new(MESSAGE_USER);

	message_add_text(m, origin, text, strlen(text));
	append(h, m);
}

void history_round(struct history *h, const char *text, const struct history_call *calls, size_t n)
{
	struct message *answer = message_new(MESSAGE_ASSISTANT);
	struct message *results = message_new(MESSAGE_USER);

	conversation_next_round(&h->c);
	message_add_thinking(answer, NULL, "hm", 2, THOUGHT);
	if (text)
		message_add_text(answer, ORIGIN_MODEL, text, strlen(text));
	for (size_t i = 0; i < n; i++) {
		char id[24];

		snprintf(id, sizeof(id), "c%d", h->calls++);
		message_add_call(answer, id, calls[i].tool, calls[i].input, strlen(calls[i].input),
				 NULL);
		message_add_result(results, id, calls[i].tool, calls[i].result,
				   strlen(calls[i].result), calls[i].is_error);
		if (calls[i].image)
			message_add_image(results, id, "image/png", "iVBORw0KGgo=", 12);
	}
	append(h, answer);
	append(h, results);
}

static char *words(int n, const char *about)
{
	struct buf text = BUF_INIT;

	buf_addf(&text, "%s\n", about);
	for (int i = 0; i < n; i++)
		buf_adds(&text, i % 12 == 11 ? "word\n" : "word ");
	return buf_take(&text);
}

void history_call(struct history *h, const char *tool, const char *input, int n)
{
	AUTO_FREE char *text = words(n, input);
	struct history_call call = {.tool = tool, .input = input, .result = text};

	history_round(h, NULL, &call, 1);
}

/* ---- by chance ---- */

uint64_t history_random(struct history *h, uint64_t below)
{
	h->seed = h->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (h->seed >> 33) % below;
}

/* Few names, so that things come again. */
static void random_call(struct history *h, struct history_call *call, char **input, char **result)
{
	uint64_t what = history_random(h, 10), name = history_random(h, 12);
	bool fails = history_random(h, 6) == 0;
	AUTO_FREE char *about = mem_printf("what %llu is", (unsigned long long)name);

	*call = (struct history_call){.tool = "read", .is_error = fails};
	if (what < 4) {
		*input = mem_printf("{\"path\":\"src/f%llu.c\"}", (unsigned long long)name);
	} else if (what < 6) {
		call->tool = "grep";
		*input = mem_printf("{\"pattern\":\"name%llu\"}", (unsigned long long)name);
	} else if (what < 8) {
		call->tool = "shell";
		*input = mem_printf("{\"command\":\"%s %llu\"}", what == 6 ? "ls" : "make test",
				    (unsigned long long)name);
	} else if (what == 8) {
		call->tool = "edit";
		*input = mem_printf(
			"{\"path\":\"src/f%llu.c\",\"old_string\":\"a\",\"new_string\":\"b\"}",
			(unsigned long long)name);
	} else {
		call->tool = "agent";
		*input = mem_printf("{\"task\":\"look at %llu\"}", (unsigned long long)name);
	}
	call->image = what < 4 && history_random(h, 20) == 0;
	*result =
		fails ? mem_printf("error: no such thing as %llu", (unsigned long long)name)
		      : words(5 + (int)history_random(h, history_random(h, 8) ? 200 : 1500), about);
}

void history_generate(struct history *h, uint64_t seed, int rounds)
{
	h->seed = seed;
	for (int i = 0; i < rounds; i++) {
		struct history_call calls[3];
		char *owned[6] = {NULL};
		size_t n = 1 + history_random(h, 3);
		bool decides = history_random(h, 9) == 0;
		AUTO_FREE char *text =
			decides ? mem_printf("Decision %d: use plan %d because it is shorter.", i,
					     i)
				: mem_strdup(i % 2 ? "Let me look." : NULL);

		for (size_t k = 0; k < n; k++) {
			random_call(h, &calls[k], &owned[2 * k], &owned[2 * k + 1]);
			calls[k].input = owned[2 * k];
			calls[k].result = owned[2 * k + 1];
		}
		history_round(h, text, calls, n);
		for (size_t k = 0; k < 2 * n; k++)
			free(owned[k]);
		if (history_random(h, 15) == 0) {
			AUTO_FREE char *word = mem_printf("And never do thing %d.%llu, please.", i,
							  (unsigned long long)seed);

			history_user(h, ORIGIN_USER, word);
		} else if (history_random(h, 15) == 0) {
			history_user(h, ORIGIN_NUDGE, "job j1 ended with exit code 0");
		}
	}
	history_sync(h);
}

/* ---- looking ---- */

void history_sync(struct history *h)
{
	view_sync(&h->view, &h->c);
	history_check(h);
}

/* What the view holds by the ledger's count of each message. */
static int64_t sum_of_view(const struct history *h)
{
	int64_t sum = h->ledger.category[LEDGER_SYSTEM] + h->ledger.category[LEDGER_TOOLS];

	for (size_t i = 0; i < h->view.n; i++)
		sum += h->view.list[i]->estimate;
	return sum;
}

void history_check(struct history *h)
{
	struct err err = ERR_INIT;

	if (validate_all(h->view.list, h->view.n, &err) < 0)
		fail_msg("%s", err.message);
	assert_int_equal(ledger_used(&h->ledger), sum_of_view(h));
}

static size_t count_in_view(const struct history *h, const char *text)
{
	size_t n = 0;

	for (size_t i = 0; i < h->view.n; i++)
		for (size_t k = 0; k < h->view.list[i]->n_blocks; k++) {
			const char *at = h->view.list[i]->blocks[k].text;

			for (; at && (at = strstr(at, text)); at++)
				n++;
		}
	return n;
}

void history_check_kept(const struct history *h, enum block_origin origin)
{
	for (size_t i = 0; i < h->c.n; i++)
		for (size_t k = 0; k < h->c.messages[i]->n_blocks; k++) {
			const struct block *b = &h->c.messages[i]->blocks[k];

			if (b->kind == BLOCK_TEXT && b->origin == origin &&
			    count_in_view(h, b->text) != 1)
				fail_msg("'%s' stands %zu times in the view", b->text,
					 count_in_view(h, b->text));
		}
}

bool history_view_has(const struct history *h, const char *text)
{
	return count_in_view(h, text) > 0;
}

static void same_message(const struct message *a, const struct message *b)
{
	AUTO_JSON struct json_object *x = message_to_json(a), *y = message_to_json(b);

	assert_string_equal(json_object_to_json_string(x), json_object_to_json_string(y));
}

void history_check_rebuilt(struct history *h, const char *folder)
{
	AUTO_FREE char *path = file_join(folder, "transcript.jsonl");
	struct conversation c;
	struct view view;
	struct transcript_stats stats;
	size_t left_out = 0;
	struct err err = ERR_INIT;

	assert_int_equal(transcript_sync(h->transcript, &err), 0);
	conversation_init(&c);
	view_init(&view);
	assert_int_equal(transcript_load(path, &c, &stats, &err), 0);
	assert_int_equal(stats.repaired, 0);
	assert_int_equal(edit_record_rebuild(path, &c, &view, &left_out, &err), 0);
	assert_int_equal(left_out, 0);
	assert_int_equal(view.n, h->view.n);
	assert_int_equal(view.epoch, h->view.epoch);
	for (size_t i = 0; i < view.n; i++)
		same_message(view.list[i], h->view.list[i]);
	assert_true(c.next_uid > view.list[0]->uid);
	view_release(&view);
	conversation_release(&c);
}
