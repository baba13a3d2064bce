/*
 * edit.c - the edit tool: exact replacements in one file, all or none.
 *
 * A file that changed since it was read is refused (trap 108). A file never read may be edited: the
 * model may know the text from grep or the shell, and an exact, unique match proves that it does.
 * Line ends, a byte order mark and the mode stay as they are.
 */
#include "agent/tools/edit_match.h"

#include <inttypes.h>

#include "agent/tools/write.h"
#include "base/memory.h"
#include "base/text.h"

enum { SNIPPET_BEFORE = 2, SNIPPET_LINES = 12, SNIPPET_LINE = 300 };

const char edit_description[] =
	"Replaces exact text in a file: old_string, which must stand in it exactly once (or set "
	"replace_all), becomes new_string. Give old_string with its indent and enough lines around "
	"it to be unique, without the line numbers that read shows. Several replacements go into "
	"`edits`; they are applied in order, all or none. Refused if the file changed since it was "
	"read. A file's CRLF line ends are matched by plain line feeds and kept.";

const char edit_schema[] =
	"{\"type\":\"object\",\"properties\":{"
	"\"path\":{\"type\":\"string\",\"minLength\":1,\"description\":\"file to change\"},"
	"\"old_string\":{\"type\":\"string\",\"description\":\"text to be replaced\"},"
	"\"new_string\":{\"type\":\"string\",\"description\":\"text to put there\"},"
	"\"replace_all\":{\"type\":\"boolean\",\"description\":\"replace every occurrence\"},"
	"\"edits\":{\"type\":\"array\",\"minItems\":1,\"maxItems\":100,"
	"\"description\":\"several replacements, instead of the three above\",\"items\":"
	"{\"type\":\"object\",\"properties\":{\"old_string\":{\"type\":\"string\"},"
	"\"new_string\":{\"type\":\"string\"},\"replace_all\":{\"type\":\"boolean\"}},"
	"\"required\":[\"old_string\",\"new_string\"],\"additionalProperties\":false}}},"
	"\"required\":[\"path\"],\"additionalProperties\":false}";

static struct edit edit_from(struct json_object *json)
{
	return (struct edit){
		.old_text = json_str(json, "old_string", ""),
		.old_len = json_str_len(json, "old_string"),
		.new_text = json_str(json, "new_string", ""),
		.new_len = json_str_len(json, "new_string"),
		.all = json_flag(json, "replace_all", false),
	};
}

/* The edits of the call, single or listed. */
static int take_edits(struct json_object *input, struct edit **ret, size_t *ret_count,
		      struct err *err)
{
	struct json_object *list = json_arr(input, "edits");
	bool single = json_has(input, "old_string") || json_has(input, "new_string");
	if (!!list == single)
		return err_set(err, ERR_INVALID, "give either old_string and new_string, or edits");
	if (single && !(json_has(input, "old_string") && json_has(input, "new_string")))
		return err_set(err, ERR_INVALID, "old_string and new_string are both needed");
	*ret_count = list ? json_len(list) : 1;
	*ret = mem_array(NULL, *ret_count, sizeof(**ret));
	for (size_t i = 0; i < *ret_count; i++)
		(*ret)[i] = edit_from(list ? json_at(list, i) : input);
	return 0;
}

/* Each edit works on the outcome of the one before; nothing reaches the file until all have
 * matched. */
static int apply_all(const struct edit *edits, size_t count, const struct target *target,
		     struct buf *out, size_t *ret_first, size_t *ret_replaced, struct err *err)
{
	AUTO_BUF struct buf text = BUF_INIT;
	buf_add(&text, buf_str(&target->old), target->old.len);
	for (size_t i = 0; i < count; i++) {
		AUTO_BUF struct buf next = BUF_INIT;
		size_t first = 0, replaced = 0;
		if (edit_apply(&edits[i], buf_str(&text), text.len, &next, &first, &replaced, err) <
		    0)
			return count > 1 ? err_prefix(err, "edit %zu of %zu", i + 1, count) : -1;
		*ret_first = i ? MIN(*ret_first, first) : first;
		*ret_replaced += replaced;
		buf_release(&text);
		text = next;
		next = (struct buf)BUF_INIT;
	}
	*out = text;
	text = (struct buf)BUF_INIT;
	return 0;
}

/* The lines round the first change, as read would show them; returns the number of the first. */
static size_t add_snippet(struct buf *out, const struct buf *file, size_t first)
{
	const char *s = buf_str(file);
	size_t start = first, number = 1;
	for (int back = 0; start; start--)
		if (s[start - 1] == '\n' && back++ == SNIPPET_BEFORE)
			break;
	for (size_t i = 0; i < start; i++)
		number += s[i] == '\n';
	size_t top = number;
	for (size_t i = 0; i < SNIPPET_LINES && start < file->len; i++) {
		const char *lf = memchr(s + start, '\n', file->len - start);
		size_t n = lf ? (size_t)(lf - s) - start : file->len - start;
		size_t shown = text_floor(s + start, n, MIN(n, SNIPPET_LINE));
		while (shown && s[start + shown - 1] == '\r')
			shown--;
		buf_addf(out, "%6zu\t", number++);
		text_sanitize(out, s + start, shown);
		buf_addc(out, '\n');
		start += n + 1;
	}
	return top;
}

/* A file that was never read was seen round its change only. */
static void note_range(struct tool_context *ctx, const struct place *place, size_t top)
{
	struct file_state *state = file_states_touch(&ctx->files, place);

	if (state->lines)
		return;
	state->first = (int64_t)top;
	state->lines = SNIPPET_LINES;
}

int edit_run(struct tool_context *ctx, const char *call_id, struct json_object *input,
	     struct tool_result *ret, struct err *err)
{
	AUTO_PLACE struct place place = {0};
	AUTO_TARGET struct target target = {0};
	AUTO_FREE struct edit *edits = NULL;
	AUTO_BUF struct buf out = BUF_INIT;
	struct err e = ERR_INIT;
	size_t count = 0, first = 0, replaced = 0, added, removed;
	ret->exit_code = -1;
	if (take_edits(input, &edits, &count, &e) < 0 ||
	    input_place(ctx, input, "path", &place, &e) < 0 ||
	    target_open(ctx, &place, &target, &e) < 0)
		return result_fail(ret, &e);
	if (!target.exists)
		return result_failf(ret, "'%s' does not exist; use write to create it",
				    place.shown);
	if (target_check_seen(ctx, &place, &target, false, &e) < 0)
		return result_fail(ret, &e);
	if (apply_all(edits, count, &target, &out, &first, &replaced, &e) < 0) {
		err_prefix(&e, "%s", place.shown);
		return result_fail(ret, &e);
	}
	if (target_replace(ctx, &place, &target, buf_str(&out), out.len, &e) < 0)
		return result_fail(ret, &e);
	ret->has_effects = true;
	count_changed_lines(buf_str(&target.old), target.old.len, buf_str(&out), out.len, &added,
			    &removed);
	buf_addf(&ret->text, "edited %s (%zu replacement%s); it now reads:\n", place.shown,
		 replaced, replaced == 1 ? "" : "s");
	note_range(ctx, &place, add_snippet(&ret->text, &out, first));
	result_summary(ret, "edit %s (+%zu -%zu)", place.shown, added, removed);
	return 0;
}
