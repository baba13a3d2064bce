/*
 * file_rig.c - see file_rig.h.
 */
#include "tests/agent/file_rig.h"

#include <stdio.h>

int file_rig_setup(void **state)
{
	struct file_rig *r = mem_alloc(sizeof(*r));
	void *f = NULL;
	struct message *m = message_new(MESSAGE_USER);

	if (fixture_setup(&f) < 0)
		return -1;
	r->f = f;
	conversation_init(&r->c);
	view_init(&r->view);
	ledger_init(&r->ledger);
	knobs_init(&r->knobs);
	message_add_text(m, ORIGIN_USER, "Mend it.", 8);
	conversation_append(&r->c, m);
	view_sync(&r->view, &r->c);
	*state = r;
	return 0;
}

int file_rig_teardown(void **state)
{
	struct file_rig *r = *state;
	void *f = r->f;

	view_release(&r->view);
	conversation_release(&r->c);
	ledger_release(&r->ledger);
	free(r);
	return fixture_teardown(&f);
}

struct message *file_round(struct file_rig *r, const char *tool, const char *json)
{
	struct message *answer = message_new(MESSAGE_ASSISTANT);
	struct message *result = message_new(MESSAGE_USER);
	AUTO_BUF struct buf input = BUF_INIT;
	char id[32];

	buf_adds(&input, json);
	for (size_t i = 0; i < input.len; i++)
		if (input.data[i] == '\'')
			input.data[i] = '"';
	assert_int_equal(call(r->f, tool, "%s", buf_str(&input)), 0);
	snprintf(id, sizeof(id), "c%lld", (long long)conversation_next_round(&r->c));
	message_add_call(answer, id, tool, buf_str(&input), input.len, NULL);
	message_add_result(result, id, tool, said(r->f), r->f->result.text.len,
			   r->f->result.is_error);
	conversation_append(&r->c, answer);
	ledger_add(&r->ledger, answer);
	conversation_append(&r->c, result);
	ledger_add(&r->ledger, result);
	view_sync(&r->view, &r->c);
	return result;
}

void file_compact(struct file_rig *r, size_t from, struct message *head)
{
	epoch_end(&r->view, &r->ledger, &r->c, 0, from, head, false);
}

char *file_blocks(const struct message *m, enum block_origin origin)
{
	struct buf out = BUF_INIT;

	for (size_t i = 0; i < m->n_blocks; i++)
		if (m->blocks[i].kind == BLOCK_TEXT && m->blocks[i].origin == origin)
			buf_add(&out, m->blocks[i].text, m->blocks[i].text_len);
	return out.data ? buf_take(&out) : mem_strdup("");
}

size_t file_count(const struct message *m, enum block_origin origin)
{
	size_t n = 0;

	for (size_t i = 0; i < m->n_blocks; i++)
		n += m->blocks[i].kind == BLOCK_TEXT && m->blocks[i].origin == origin;
	return n;
}
