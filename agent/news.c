/*
 * news.c - the table of news and the loop over it.
 */
#include "agent/news.h"

#include "agent/events.h"
#include "agent/instructions_news.h"
#include "agent/memory_show.h"
#include "agent/occupancy.h"
#include "agent/subagents.h"
#include "agent/tools/tool.h"
#include "base/memory.h"
#include "base/text.h"

/* Ends of background jobs, each told once. */
static void add_job_ends(struct agent *a, struct message *m)
{
	AUTO_BUF struct buf clean = BUF_INIT;
	struct job_end end;

	while (a->toolbox.context && tool_context_next_end(a->toolbox.context, &end)) {
		text_sanitize(&clean, end.line.data, end.line.len);
		buf_addc(&clean, '\n');
		event_job_ended(a->channel, &end);
		buf_release(&end.line);
	}
	message_add_text(m, ORIGIN_NUDGE, clean.data, clean.len);
}

static const struct news table[] = {
	{"job-ends", add_job_ends},	     {"agents", subagents_news},
	{"memory", memory_add_news},	     {"budget", occupancy_add_note},
	{"instructions", instructions_news},
};

void news_add(struct agent *a, struct message *m)
{
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		table[i].add(a, m);
}
