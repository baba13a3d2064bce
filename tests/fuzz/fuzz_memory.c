/*
 * fuzz_memory.c - plan.md and MEMORY.md from any bytes: a model writes the one, people edit the other.
 *
 * What was read and written reads as the same again, within its bounds; nothing that a text holds makes an
 * entry that was not added.
 */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "agent/plan.h"
#include "base/memory.h"
#include "orchestrator/memory_index.h"

#define TODAY "2026-11-30"

static void need(bool holds)
{
	if (!holds)
		abort();
}

static void check_plan(const char *text, size_t n)
{
	struct plan plan = {.n = 0}, again = {.n = 0};
	AUTO_BUF struct buf first = BUF_INIT;
	AUTO_BUF struct buf second = BUF_INIT;
	AUTO_BUF struct buf shown = BUF_INIT;

	if (plan_parse(&plan, text, n, NULL) < 0) {
		need(plan.n == 0);
		return;
	}
	need(plan.n <= PLAN_ENTRIES_MAX && plan.done <= plan.items && plan.items <= plan.n);
	plan_write(&plan, &first);
	need(plan_parse(&again, first.data ? first.data : "", first.len, NULL) == 0);
	need(again.items == plan.items && again.done == plan.done && again.n == plan.n);
	plan_write(&again, &second);
	need(first.len == second.len &&
	     (!first.len || !memcmp(first.data, second.data, first.len)));
	plan_show(&plan, &shown);
	plan_release(&again);
	need(plan_parse(&again, buf_str(&shown), shown.len, NULL) == 0);
	need(again.items == plan.items && again.done == plan.done);
	plan_release(&plan);
	plan_release(&again);
}

static size_t ours(const struct memory_index *index)
{
	size_t n = 0;

	for (size_t i = 0; i < index->n; i++)
		n += index->list[i].text > 0;
	return n;
}

static void check_index(const char *text, size_t n)
{
	struct memory_index index = {.n = 0}, again = {.n = 0};
	AUTO_BUF struct buf out = BUF_INIT;
	AUTO_BUF struct buf shown = BUF_INIT;
	size_t before, half = MIN(n / 2, (size_t)600);

	memory_index_read(&index, text, n, TODAY);
	before = ours(&index);
	if (memory_index_add(&index, "lesson", text + n - half, half, TODAY) == MEMORY_ADDED)
		need(ours(&index) == before + 1);
	else
		need(ours(&index) <= before + 1);
	memory_index_write(&index, &out);
	memory_index_show(&index, 1000, &shown);
	need(shown.len <= 1000);
	/* What ended before today is gone; a date that was just given may lie in the past too. */
	memory_index_read(&again, buf_str(&out), out.len, "0000-00-00");
	need(ours(&again) == ours(&index) && again.n == index.n);
	memory_index_release(&index);
	memory_index_release(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	check_plan((const char *)data, size);
	check_index((const char *)data, size);
	return 0;
}
