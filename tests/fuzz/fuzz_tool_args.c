/*
 * fuzz_tool_args.c - the arguments of tool calls, and calls in fragments.
 *
 * Input: lines. Each is taken as the argument text of a call, and, where it is a JSON array, as one
 * delta's list of fragments. Properties: what is accepted is a JSON object in strict form, stable
 * under normalising again, and no proper prefix of it is accepted; the scan does not depend on how
 * the text is cut; assembly never loses argument bytes that it had, and takes all of a fragment or
 * none.
 */
#include "agent/model/arguments.h"
#include "agent/model/call_assembly.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"
#include "fuzz.h"

static void check_strict(const struct buf *text)
{
	AUTO_JSON struct json_object *value = NULL;
	AUTO_BUF struct buf again = BUF_INIT;
	if (json_parse(text->data, text->len, &value, NULL) < 0 ||
	    !json_object_is_type(value, json_type_object) || !text_is_utf8(text->data, text->len))
		abort();
	for (size_t i = 0; i < text->len; i++)
		if ((unsigned char)text->data[i] < 0x20)
			abort();
	if (!arguments_normalise(&again, text->data, text->len) || again.len != text->len ||
	    memcmp(again.data, text->data, text->len) != 0)
		abort();
}

/* Cutting a call must never make another call of it (trap 39). */
static void check_prefixes(const struct buf *text)
{
	AUTO_BUF struct buf out = BUF_INIT;
	for (size_t n = 1; n < MIN(text->len, 200); n++)
		if (arguments_normalise(&out, text->data, n))
			abort();
}

static void check_scan(const char *text, size_t n)
{
	struct arguments_scan whole = {.depth = 0}, pieces = {.depth = 0};
	arguments_scan(&whole, text, n);
	for (size_t i = 0; i < n; i++)
		arguments_scan(&pieces, text + i, 1);
	if (whole.complete != pieces.complete || whole.depth != pieces.depth ||
	    whole.in_string != pieces.in_string)
		abort();
}

static void check_arguments(const char *text, size_t n)
{
	AUTO_BUF struct buf out = BUF_INIT;
	check_scan(text, n);
	if (arguments_normalise(&out, text, n)) {
		check_strict(&out);
		check_prefixes(&out);
	} else if (out.len > 0) {
		abort();
	}
}

static size_t total_bytes(const struct call_assembly *calls)
{
	size_t bytes = 0;
	for (size_t i = 0; i < calls->n; i++)
		bytes += calls->calls[i].arguments.len;
	return bytes;
}

static void add_list(struct call_assembly *calls, const char *line, size_t n)
{
	AUTO_JSON struct json_object *list = NULL;
	if (json_parse(line, n, &list, NULL) < 0)
		return;
	for (size_t i = 0; i < json_len(list); i++) {
		struct json_object *fragment = json_at(list, i);
		size_t before = total_bytes(calls), bytes = 0;
		size_t text = json_str_len(json_obj(fragment, "function"), "arguments");
		call_assembly_add(calls, fragment, i, json_len(list), &bytes);
		size_t added = total_bytes(calls) - before;
		if (total_bytes(calls) < before || (text && added && added != text))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct call_assembly calls = {.calls = NULL};
	const char *at = (const char *)data, *end = at + size;
	while (at < end) {
		const char *nl = memchr(at, '\n', (size_t)(end - at));
		size_t n = nl ? (size_t)(nl - at) : (size_t)(end - at);
		check_arguments(at, n);
		add_list(&calls, at, n);
		at += n + 1;
	}
	for (size_t i = 0; i < calls.n; i++)
		check_arguments(buf_str(&calls.calls[i].arguments), calls.calls[i].arguments.len);
	call_assembly_release(&calls);
	return 0;
}
