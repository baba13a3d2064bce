/*
 * fuzz_hook.c - what a hook printed.
 *
 * Input: a first byte for event, end and whether it is required; the rest is its output, up to a line of dots, and
 * its errors. Properties: texts and reasons are printable UTF-8 within their limits; nothing is said twice (a
 * failure has no text, and no decision unless it is required); who denies has a reason; only events that
 * can be denied are.
 */
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "fuzz.h"
#include "handoff/hook.h"

static size_t count_chars(const char *s, size_t n)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++)
		count += ((unsigned char)s[i] & 0xc0) != 0x80;
	return count;
}

static void check_text(const char *s, size_t n, size_t chars)
{
	if (!text_is_utf8(s, n) || count_chars(s, n) > chars)
		abort();
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)s[i] < 0x20 && s[i] != '\n' && s[i] != '\t')
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const int ends[] = {0, 2 << 8, 1 << 8, 9};
	struct hook_result r = {.err = ""};
	struct hook_answer a;

	if (!size)
		return 0;
	r.event = (enum hook_event)(data[0] % HOOK_EVENTS_COUNT);
	r.wait_status = ends[data[0] / 8 % 4];
	r.required = data[0] & 64;
	r.timed_out = data[0] & 128;
	r.out = (const char *)data + 1;
	r.out_len = size - 1;
	const char *mark = memmem(r.out, r.out_len, "\n...\n", 5);
	if (mark) {
		r.err = mark + 5;
		r.err_len = r.out_len - (size_t)(r.err - r.out);
		r.out_len = (size_t)(mark - r.out);
	}
	hook_read(&r, &a);
	check_text(buf_str(&a.text), a.text.len, HOOK_TEXT_CHARS);
	if ((a.decision == HOOK_DENY) != (a.reason != NULL) || (a.reason && !*a.reason))
		abort();
	if (a.reason)
		check_text(a.reason, strlen(a.reason), HOOK_TEXT_CHARS);
	if (a.failure && (a.text.len || (a.decision != HOOK_UNDECIDED && !r.required)))
		abort();
	if (a.decision == HOOK_DENY && !(hook_event_flags(r.event) & HOOK_DECIDES))
		abort();
	hook_answer_release(&a);
	return 0;
}
