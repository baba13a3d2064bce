/*
 * fuzz_stream.h - hostile answers of a model server, for both protocols.
 *
 * Input: a byte that is the size of the pieces (0: at once), and the stream. Properties beside "no
 * crash": the answer does not depend on the pieces, its record form reads back the same, and what
 * came in goes out again as a request that is valid JSON and UTF-8, with no blank assistant turn.
 */
#ifndef BATON_TESTS_FUZZ_STREAM_H
#define BATON_TESTS_FUZZ_STREAM_H

#include "agent/model/client.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "fuzz.h"

static int64_t stream_time(void *arg)
{
	return 1700000000000; /* ids that are made up depend on it */
}

/* NULL if the stream was refused. */
static struct message *stream_read(const struct model_client *client, const char *bytes, size_t n,
				   size_t piece, enum stop_reason *ret_stop)
{
	struct stream_parser *parser = stream_new(client, NULL, NULL);
	struct stream_answer answer = {.message = NULL};
	int rc = 0;
	for (size_t i = 0; i < n && rc == 0; i += piece)
		rc = stream_feed(parser, bytes + i, MIN(piece, n - i), NULL);
	if (rc == 0 && stream_finish(parser, &answer, NULL) < 0)
		answer.message = NULL;
	stream_free(parser);
	*ret_stop = answer.stop;
	free(answer.refusal);
	return answer.message;
}

static void record_write(const struct message *m, struct buf *out)
{
	AUTO_JSON struct json_object *json = message_to_json(m);
	json_write(out, json);
}

static void check_record(const struct message *m, const struct buf *record)
{
	AUTO_JSON struct json_object *json = NULL;
	AUTO_BUF struct buf again = BUF_INIT;
	struct message *back = NULL;
	if (json_parse(record->data, record->len, &json, NULL) < 0 ||
	    message_from_json(json, &back, NULL) < 0)
		abort();
	record_write(back, &again);
	if (again.len != record->len || memcmp(again.data, record->data, again.len) != 0)
		abort();
	message_free(back);
}

static void check_request(struct model_client *client, struct message *m)
{
	struct message *user = message_new(MESSAGE_USER);
	struct message *view[] = {user, m};
	AUTO_BUF struct buf body = BUF_INIT;
	AUTO_JSON struct json_object *json = NULL;
	const char *beta;
	message_add_text(user, ORIGIN_USER, "go", 2);
	if (client_render_request(client, view, ARRAY_SIZE(view), 100, 0, &body, &beta, NULL) < 0 ||
	    !text_is_utf8(body.data, body.len))
		abort();
	/* What the provider sent as opaque may be nested as deep as we read, and stands deeper now.
	 */
	struct err err = ERR_INIT;
	if (json_parse(body.data, body.len, &json, &err) < 0 && !strstr(err.message, "nesting"))
		abort();
	if (message_is_blank(m) && m->rendered_len > 0)
		abort();
	message_free(user);
}

static int stream_fuzz(struct model *model, const uint8_t *data, size_t size)
{
	const struct request_params params = {.temperature = -1};
	struct model_client *client = NULL;
	enum stop_reason stop[2];
	if (size < 2)
		return 0;
	clock_fake(NULL, stream_time, NULL);
	if (client_new(model, &params, &client, NULL) < 0)
		abort();
	const char *bytes = (const char *)data + 1;
	struct message *whole = stream_read(client, bytes, size - 1, size, &stop[0]);
	struct message *pieces =
		stream_read(client, bytes, size - 1, data[0] ? data[0] : 1, &stop[1]);
	if (!whole != !pieces || stop[0] != stop[1])
		abort();
	if (whole) {
		AUTO_BUF struct buf one = BUF_INIT;
		AUTO_BUF struct buf two = BUF_INIT;
		record_write(whole, &one);
		record_write(pieces, &two);
		if (one.len != two.len || memcmp(one.data, two.data, one.len) != 0)
			abort();
		check_record(whole, &one);
		check_request(client, whole);
	}
	message_free(whole);
	message_free(pieces);
	client_free(client);
	return 0;
}

#endif
