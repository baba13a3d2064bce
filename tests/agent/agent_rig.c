/*
 * agent_rig.c - see agent_rig.h.
 */
#include "agent_rig.h"

#include <fcntl.h>

#include "agent/transcript.h"
#include "agent/validate.h"
#include "base/file.h"

char *rig_folder;

int rig_setup(void **state)
{
	AUTO_FREE char *worktree = NULL, *instructions = NULL;

	rig_folder = fixture_folder();
	worktree = rig_path("worktree");
	instructions = rig_path("worktree/AGENTS.md");
	if (file_mkdirs(worktree, 0700, NULL) < 0)
		return -1;
	return file_write_atomic(AT_FDCWD, instructions, "Use tabs.", 9, 0600, NULL);
}

int rig_teardown(void **state)
{
	fixture_remove(rig_folder);
	return 0;
}

void rig_run(struct fake_parent *p, const char *api, const struct fake_step *script, size_t n,
	     const char *members)
{
	AUTO_FREE char *document = fixture_start(rig_folder, api, members);

	p->api = api;
	p->script = script;
	p->n_script = n;
	fake_start(p, document);
	fake_run(p);
	assert_true(p->hello);
}

struct json_object *rig_report(const struct fake_parent *p)
{
	assert_non_null(p->report);
	return json_obj(p->report, "report");
}

char *rig_path(const char *name)
{
	return file_join(rig_folder, name);
}

static int64_t load(struct conversation *c)
{
	AUTO_FREE char *path = rig_path("generation/transcript.jsonl");
	struct transcript_stats stats;
	struct err e = ERR_INIT;

	conversation_init(c);
	if (transcript_load(path, c, &stats, &e) < 0)
		fail_msg("%s", e.message);
	assert_int_equal(stats.bad_lines, 0);
	assert_int_equal(validate_all(c->messages, c->n, NULL), 0);
	return stats.repaired;
}

void rig_load(struct conversation *c)
{
	assert_int_equal(load(c), 0);
}

void rig_load_repaired(struct conversation *c)
{
	load(c);
}

bool rig_transcript_has(const char *text)
{
	AUTO_FREE char *path = rig_path("generation/transcript.jsonl");
	AUTO_BUF struct buf bytes = BUF_INIT;

	assert_int_equal(file_read(AT_FDCWD, path, 64 << 20, &bytes, NULL), 0);
	return strstr(buf_str(&bytes), text) != NULL;
}

void rig_stop_at_request(struct fake_parent *p, size_t index)
{
	fake_control(p, "stop", "the user wants it");
}
