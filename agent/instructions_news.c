/*
 * instructions_news.c - gives instructions their room and tells of them.
 *
 * They arrive with the results of a round, which had the whole window to themselves before: half of what is
 * left below the threshold is theirs, so that they never are what forces a compaction.
 */
#include "agent/instructions_news.h"

#include "agent/events.h"
#include "base/memory.h"

static void warn(struct agent *a, const struct buf *lines)
{
	const char *s = buf_str(lines);

	for (size_t n; *s; s += n + (s[n] == '\n')) {
		n = strcspn(s, "\n");
		event_warning(a->channel, "%.*s", (int)n, s);
	}
}

/* M6: such a hook only hears of it. A stop during the wait is seen again by the next wait. */
void instructions_tell(struct agent *a)
{
	size_t n;
	const struct instructions_load *loads = instructions_loads(&a->instructions, &n);

	while (a->instructions_told < n) {
		const struct instructions_load *load = &loads[a->instructions_told++];

		event_instructions(a->channel, load);
		if (load->why != INSTRUCTIONS_START)
			hooks_instructions_loaded(a, instructions_why_name(load->why), load->origin,
						  load->path, NULL);
	}
}

void instructions_news(struct agent *a, struct message *m)
{
	AUTO_BUF struct buf warnings = BUF_INIT;
	int64_t used = ledger_used(&a->ledger);

	for (size_t i = 0; i < m->n_blocks; i++)
		if (m->blocks[i].kind != BLOCK_IMAGE)
			used += ledger_estimate_text(&a->ledger, m->blocks[i].text,
						     m->blocks[i].text_len);
	struct instructions_round round = {
		.files = a->toolbox.context,
		.view = &a->view,
		.ledger = &a->ledger,
		.room = MAX((a->budget.compact - used) / 2, INT64_C(0)),
		.warnings = &warnings,
	};
	instructions_add(&a->instructions, &round, m);
	warn(a, &warnings);
	instructions_tell(a);
}

void instructions_head(struct agent *a, struct message *head, bool opening_stays)
{
	AUTO_BUF struct buf warnings = BUF_INIT;

	instructions_add_head(&a->instructions, a->toolbox.context, opening_stays, head, &warnings);
	warn(a, &warnings);
	instructions_tell(a);
}
