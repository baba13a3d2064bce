/*
 * fuzz_handoff.c - a handoff document of any bytes: people edit them, and they are carried between machines.
 *
 * What can be read in one form is the same document after it was written and read again in both.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "fuzz.h"
#include "handoff/document.h"

static void as_json(const struct handoff *handoff, struct buf *out)
{
	AUTO_JSON struct json_object *json = handoff_to_json(handoff);

	json_write(out, json);
}

static void need_same(const struct buf *written, const struct buf *want)
{
	struct handoff *again = NULL;
	AUTO_BUF struct buf json = BUF_INIT;

	if (handoff_parse(buf_str(written), written->len, &again, NULL) < 0)
		abort();
	as_json(again, &json);
	if (json.len != want->len || memcmp(json.data, want->data, json.len) != 0)
		abort();
	handoff_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct handoff *handoff = NULL;
	AUTO_BUF struct buf json = BUF_INIT;
	AUTO_BUF struct buf markdown = BUF_INIT;

	/* The form that is written may be longer: six bytes for one that JSON has to escape. */
	if (size > HANDOFF_BYTES_MAX / 16 ||
	    handoff_parse((const char *)data, size, &handoff, NULL) < 0)
		return 0;
	as_json(handoff, &json);
	handoff_to_markdown(handoff, &markdown);
	need_same(&json, &json);
	need_same(&markdown, &json);
	handoff_free(handoff);
	return 0;
}
