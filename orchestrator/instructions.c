/*
 * instructions.c - see instructions.h. Runs in the parent; the project's files come from baton-git
 * as bytes of the commit, so a checkout in progress does not matter.
 */
#include "orchestrator/instructions.h"

#include <fcntl.h>
#include <string.h>

#include "base/env.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "orchestrator/run.h"

#define INSTRUCTIONS_MAX (64 << 10)

static void add(struct run *run, const char *origin, const char *path, const char *text, size_t n)
{
	struct json_object *entry = json_object_new_object();
	struct buf clipped = BUF_INIT;
	struct buf clean = BUF_INIT;

	text_clip(&clipped, text, n, INSTRUCTIONS_MAX, path);
	text_sanitize(&clean, buf_str(&clipped), clipped.len);
	json_set_str(entry, "origin", origin);
	json_set_str(entry, "path", path);
	json_set_strn(entry, "text", buf_str(&clean), clean.len);
	json_object_array_add(run->instructions, entry);
	buf_release(&clipped);
	buf_release(&clean);
}

/* The first of these that exists. */
static int add_user(struct run *run, struct err *err)
{
	AUTO_FREE char *config = env_config_dir();
	AUTO_FREE char *own = config ? file_join(config, "AGENTS.md") : NULL;
	AUTO_FREE char *claude = env_home() ? file_join(env_home(), ".claude/CLAUDE.md") : NULL;
	const char *const paths[] = {own, claude};

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		struct buf text = BUF_INIT;
		struct err failure = ERR_INIT;
		if (!paths[i])
			continue;
		int rc = file_read(AT_FDCWD, paths[i], 1 << 20, &text, &failure);
		if (rc == 0)
			add(run, "user", paths[i] == own ? "AGENTS.md" : "CLAUDE.md",
			    buf_str(&text), text.len);
		buf_release(&text);
		if (rc == 0)
			return 0;
		if (failure.code != ERR_NOT_FOUND)
			return err_set(err, failure.code, "%s", failure.message);
	}
	return 0;
}

int instructions_load(struct run *run, struct err *err)
{
	struct json_object *list = json_arr(run->repository, "instructions");

	run->instructions = json_object_new_array();
	if (add_user(run, err) < 0)
		return -1;
	for (size_t i = 0; i < json_len(list); i++) {
		struct json_object *entry = json_at(list, i);
		add(run, "project", json_str(entry, "path", "AGENTS.md"),
		    json_str(entry, "text", ""), json_str_len(entry, "text"));
	}
	return 0;
}
