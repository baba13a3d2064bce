/*
 * golden_play_main.c - plays one golden conversation with a summariser or with a real model, scores it, and
 * keeps what it saw. Run by tests/golden/run, which has the key and the network.
 *
 *   golden_play FOLDER NAME COMPACTIONS good|lazy|lying KEEP [notes]
 *   golden_play FOLDER NAME COMPACTIONS PROVIDER/MODEL KEEP [notes]
 *
 * KEEP is a folder that exists, or "-"; `notes`: those of the session are kept (H4). With a model a call is one line on
 * stdout, "CALL purpose bytes beta", and the body behind it; the answer is one line on stdin, "OK bytes" with the stream's bytes behind it, or "FAIL". The last
 * line on stdout is "RESULT" and a JSON object.
 */
#include "golden_agent.h"
#include "golden_check.h"

#include "../agent/agent_fixture.h"

#include <stdio.h>
#include <string.h>

#include <fcntl.h>

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/model_table.h"
#include "base/text.h"

#define ROUNDS	   60
#define ANSWER_MAX (64 << 20)

static int ask_script(void *arg, const struct call_request *request, const char *body, size_t n,
		      struct buf *stream)
{
	char line[64];
	long long bytes = 0;

	(void)arg;
	printf("CALL %s %zu %s\n", call_purpose_name(request->purpose), n,
	       request->beta ? request->beta : "");
	fwrite(body, 1, n, stdout);
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin) || sscanf(line, "OK %lld", &bytes) != 1 ||
	    bytes < 0 || bytes > ANSWER_MAX)
		return -1;
	AUTO_FREE char *answer = mem_alloc((size_t)bytes + 1);
	if (fread(answer, 1, (size_t)bytes, stdin) != (size_t)bytes)
		return -1;
	buf_add(stream, answer, (size_t)bytes);
	return 0;
}

static void keep(const char *folder, const char *name, const char *bytes, size_t n)
{
	AUTO_FREE char *path = file_join(folder, name);
	struct err e = ERR_INIT;

	if (strcmp(folder, "-") != 0 && file_write_atomic(AT_FDCWD, path, bytes, n, 0600, &e) < 0)
		fail_msg("%s", e.message);
}

/* Line by line, so that two of them can be compared: for people and diff, no JSON any more. */
static void keep_request(const char *folder, const char *name, const struct buf *body)
{
	AUTO_JSON struct json_object *request = NULL;
	AUTO_BUF struct buf text = BUF_INIT;

	if (json_parse(body->data, body->len, &request, NULL) == 0)
		json_write_pretty(&text, request);
	for (size_t i = 0; i + 1 < text.len; i++) {
		if (text.data[i] != '\\')
			continue;
		if (text.data[i + 1] == 'n')
			memcpy(text.data + i, " \n", 2);
		i++;
	}
	keep(folder, name, buf_str(&text), text.len);
}

static void print_result(const struct golden_agent *ga, const struct golden_score *score,
			 const char *answer)
{
	AUTO_JSON struct json_object *result = json_object_new_object();
	AUTO_BUF struct buf out = BUF_INIT;
	size_t hits = 0;

	for (int i = 0; i < FACT_CLASSES; i++)
		json_set_i64(result, fact_class_name((enum fact_class)i),
			     golden_recall(score, 1u << i));
	json_set_i64(result, "invented", (int64_t)score->invented);
	json_set_i64(result, "compactions", ga->compactions);
	json_set_i64(result, "by_rule", ga->agent.counts.by_rule);
	json_set_i64(result, "by_notes", ga->agent.counts.by_notes);
	for (size_t i = 0; i < ga->golden->answer.n; i++)
		hits += strstr(answer, ga->golden->answer.texts[i]) != NULL;
	json_set_i64(result, "answered", (int64_t)(hits * 100 / ga->golden->answer.n));
	json_set_strn(result, "missing", buf_str(&score->missing), score->missing.len);
	json_write(&out, result);
	printf("RESULT %s\n", buf_str(&out));
}

/* The question is asked in the words of the conversation; it must be answered from what is left. */
static void play(const struct golden *g, const struct golden_options *o, int n, const char *folder)
{
	struct golden_agent *ga = golden_agent_new(g, o);
	struct golden_score score = {.invented = 0};
	AUTO_BUF struct buf answer = BUF_INIT;
	AUTO_FREE char *ask = mem_printf("%s\n(%s)", g->follow_up,
					 "Answer in text, from what you know; call no tool.");

	for (int i = 1; i <= n; i++) {
		golden_agent_play(ga, ROUNDS * i / n);
		keep_request(folder, "original.txt", &ga->body);
		golden_agent_compact(ga);
	}
	keep_request(folder, "question.txt", &ga->question);
	golden_agent_request(ga, ask, &answer);
	keep_request(folder, "compacted.txt", &ga->body);
	keep(folder, "answer.txt", buf_str(&answer), answer.len);
	golden_check(g, ROUNDS, ga->body.data, ga->body.len, "live", &score);
	golden_check_lies((const char *const *)ga->lies.list, ga->lies.n, ga->body.data,
			  ga->body.len, "live", &score);
	print_result(ga, &score, buf_str(&answer));
	golden_score_release(&score);
	golden_agent_free(ga);
}

/* false: the word names no model. */
static bool find_model(const char *word, struct model **ret)
{
	const char *slash = strchr(word, '/');
	struct err e = ERR_INIT;

	if (!slash)
		return false;
	AUTO_FREE char *provider = mem_strndup(word, (size_t)(slash - word));
	if (model_find(provider, slash + 1, NULL, ret, &e) < 0)
		fail_msg("%s", e.message);
	return true;
}

int main(int argc, char **argv)
{
	struct golden_options o = {.seed = 1, .context = "{\"notes\":false}"};
	struct golden *g;
	struct err e = ERR_INIT;
	int64_t n;

	bool notes = argc == 7 && !strcmp(argv[6], "notes");

	if ((argc != 6 && !notes) || text_parse_i64(argv[3], &n) < 0 || n < 1 || n > 12) {
		fprintf(stderr, "usage: golden_play FOLDER NAME COMPACTIONS SUMMARISER|MODEL KEEP "
				"[notes]\n");
		return 2;
	}
	if (notes)
		o.context = "{\"notes\":true}";
	o.window = n <= 2 ? 100000 : n <= 6 ? 48000 : 24000;
	while (o.summariser < SUMMARISERS && strcmp(summariser_name(o.summariser), argv[4]) != 0)
		o.summariser++;
	if (o.summariser == SUMMARISERS) {
		if (!find_model(argv[4], &o.model_row)) {
			fprintf(stderr, "'%s' is no summariser and no PROVIDER/MODEL\n", argv[4]);
			return 2;
		}
		o.model = ask_script;
	}
	if (golden_load(argv[1], argv[2], &g, &e) < 0) {
		fprintf(stderr, "%s\n", e.message);
		return 2;
	}
	play(g, &o, (int)n, argv[5]);
	golden_free(g);
	return 0;
}
