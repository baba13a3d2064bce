/*
 * fuzz_transcript.c - any file in place of a transcript.
 *
 * Input: the bytes of transcript.jsonl. Properties beside "no crash": what was loaded passes the
 * request validator (I2), renders in both protocols, and is the same conversation again when it is
 * written as a transcript and loaded once more.
 */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "agent/model/client.h"
#include "agent/transcript.h"
#include "agent/validate.h"
#include "base/env.h"
#include "base/file.h"
#include "base/memory.h"
#include "fuzz.h"

/* One folder for the life of the process, gone with its last user. */
static const char *folder(void)
{
	static char path[256];

	if (!*path) {
		const char *base = env_get("TMPDIR");

		snprintf(path, sizeof(path), "%s/baton-fuzz-XXXXXX", base ? base : "/tmp");
		if (!mkdtemp(path))
			abort();
	}
	return path;
}

static int load(const char *path, struct conversation *c)
{
	struct transcript_stats stats;

	conversation_init(c);
	return transcript_load(path, c, &stats, NULL);
}

/* What ends with an answer can be sent once a user message follows. */
static void complete(struct conversation *c)
{
	struct message *m;

	if (conversation_last(c)->role == MESSAGE_USER)
		return;
	m = message_new(MESSAGE_USER);
	message_add_text(m, ORIGIN_NUDGE, "Go on.", 6);
	conversation_append(c, m);
}

static void render(const struct conversation *c, enum model_api api)
{
	struct model model = {
		.provider = (char *)"p",
		.name = (char *)"m",
		.api = api,
		.window = 100000,
		.max_tokens_field = (char *)"max_tokens",
		.system_role = (char *)"system",
		.dialect = (char *)(api == MODEL_API_OPENAI ? "openai" : "anthropic"),
	};
	struct request_params params = {.system = "s", .temperature = -1};
	struct model_client *client = NULL;
	AUTO_BUF struct buf body = BUF_INIT;
	AUTO_JSON struct json_object *json = NULL;
	const char *beta;

	if (client_new(&model, &params, &client, NULL) < 0)
		abort();
	for (size_t i = 0; i < c->n; i++) {
		free(c->messages[i]->rendered);
		c->messages[i]->rendered = NULL;
		client_render_message(client, c->messages[i]);
	}
	if (client_render_request(client, c->messages, c->n, 1000, -1, &body, &beta, NULL) < 0 ||
	    json_parse(body.data, body.len, &json, NULL) < 0)
		abort();
	client_free(client);
}

/* Writes the conversation as a transcript of its own and loads it. */
static void check_again(const struct conversation *c, const char *path)
{
	struct conversation again;
	struct transcript *t = NULL;

	unlink(path);
	if (transcript_open(folder(), &t, NULL) < 0)
		abort();
	for (size_t i = 0; i < c->n; i++)
		transcript_message(t, c->messages[i]);
	transcript_close(t);
	if (load(path, &again) < 0 || again.n != c->n)
		abort();
	for (size_t i = 0; i < c->n; i++)
		if (again.messages[i]->n_blocks != c->messages[i]->n_blocks)
			abort();
	conversation_release(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_FREE char *path = file_join(folder(), "transcript.jsonl");
	struct conversation c;

	if (file_write_atomic(AT_FDCWD, path, data, size, 0600, NULL) < 0)
		abort();
	if (load(path, &c) == 0) {
		complete(&c);
		if (validate_all(c.messages, c.n, NULL) < 0)
			abort();
		render(&c, MODEL_API_ANTHROPIC);
		render(&c, MODEL_API_OPENAI);
		check_again(&c, path);
	}
	conversation_release(&c);
	unlink(path);
	return 0;
}
