/*
 * handoff_source.c - see handoff_source.h.
 *
 * A document that was carried to another clone has no run there, and its agent's repository may be gone: then the branch, the
 * head and the checkpoint that it names are looked for among the user's own commits, and the rest is not known.
 */
#include "orchestrator/handoff_source.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "orchestrator/project.h"

/* ---- the document ---- */

static int read_document(const char *path, struct handoff_source *source, struct err *err)
{
	AUTO_BUF struct buf text = BUF_INIT;

	if (file_read(AT_FDCWD, path, HANDOFF_BYTES_MAX, &text, err) < 0)
		return -1;
	if (handoff_parse(buf_str(&text), text.len, &source->handoff, err) < 0)
		return err_prefix(err, "%s", path);
	const char *s = buf_str(&text);
	source->json = s[strspn(s, " \t\r\n")] == '{';
	source->path = mem_strdup(path);
	return 0;
}

/* The newest generation whose folder holds a handoff; 0: none does. */
static int64_t newest(const char *agent_dir)
{
	int64_t found = 0;

	for (int64_t i = 1;; i++) {
		AUTO_FREE char *dir = mem_printf("%s/%lld", agent_dir, (long long)i);
		AUTO_FREE char *path = file_join(dir, "handoff.json");
		if (!file_is_dir(dir))
			return found;
		if (file_exists(path))
			found = i;
	}
}

/* "RUN/AGENT/2": the number is cut off. */
static char *split_generation(const char *name, int64_t *ret)
{
	const char *first = strchr(name, '/'), *second = first ? strchr(first + 1, '/') : NULL;

	*ret = 0;
	if (!second || text_parse_i64(second + 1, ret) < 0 || *ret < 1)
		return mem_strdup(name);
	return mem_strndup(name, (size_t)(second - name));
}

static int open_of_run(const struct settings *s, const char *name, struct handoff_source *source,
		       struct err *err)
{
	struct past_run run;
	struct past_agent *agent;
	int64_t generation;
	AUTO_FREE char *of = split_generation(name, &generation);

	if (runs_find(s, of, true, &run, &agent, err) < 0)
		return -1;
	AUTO_FREE char *dir = mem_printf("%s/agents/%s", run.dir, agent->name);
	if (!generation)
		generation = newest(dir);
	AUTO_FREE char *path = mem_printf("%s/%lld/handoff.json", dir, (long long)generation);
	int rc = file_exists(path) ? read_document(path, source, err)
				   : err_set(err, ERR_NOT_FOUND, "%s/%s has left no handoff",
					     run.id, agent->name);
	if (rc == 0)
		source->other = mem_printf("%s/%lld/handoff.md", dir, (long long)generation);
	run_release(&run);
	return rc;
}

int handoff_source_open(const struct settings *s, const char *name, struct handoff_source *ret,
			struct err *err)
{
	struct err why = ERR_INIT;

	*ret = (struct handoff_source){.json = false};
	if (file_exists(name) && !file_is_dir(name))
		return read_document(name, ret, err);
	if (open_of_run(s, name, ret, &why) == 0)
		return 0;
	if (why.code == ERR_NOT_FOUND && !ret->handoff && (*name == '/' || *name == '.'))
		return err_set(err, ERR_NOT_FOUND, "there is no file '%s'", name);
	return err_set(err, why.code, "%s", why.message);
}

void handoff_source_release(struct handoff_source *source)
{
	handoff_free(source->handoff);
	free(source->path);
	free(source->other);
	*source = (struct handoff_source){.json = false};
}

/* ---- the records ---- */

/* The run and agent that it says it is of, if they are of this repository. */
static bool find_run(const struct settings *s, const struct handoff *handoff, struct past_run *run,
		     struct past_agent **ret)
{
	if (!handoff->run || !handoff->agent || strchr(handoff->run, '/') ||
	    strchr(handoff->agent, '/'))
		return false;
	AUTO_FREE char *name = mem_printf("%s/%s", handoff->run, handoff->agent);
	if (runs_find(s, name, true, run, ret, NULL) < 0)
		return false;
	if (strcmp(run->id, handoff->run) == 0 && strcmp((*ret)->name, handoff->agent) == 0)
		return true;
	run_release(run);
	return false;
}

static char *resolve(struct git_session *git, const char *rev)
{
	AUTO_JSON struct json_object *body = json_object_new_object();
	AUTO_JSON struct json_object *answer = NULL;

	if (!rev || !*rev || *rev == '-')
		return NULL;
	json_set_str(body, "rev", rev);
	if (git_session_call(git, "resolve", body, &answer, NULL) < 0)
		return NULL;
	return mem_strdup(json_str(answer, "commit", NULL));
}

/* The checkpoint has uncommitted work, too. Its head counts as the branch only where no branch tells otherwise. */
static char *add_places(struct git_session *git, const struct handoff *handoff,
			struct json_object *body)
{
	struct json_object *tips = json_object_new_array();
	AUTO_FREE char *ref = handoff->branch ? mem_printf("refs/heads/%s", handoff->branch) : NULL;
	AUTO_FREE char *branch = resolve(git, ref);
	AUTO_FREE char *head = resolve(git, handoff->head);
	char *tree = resolve(git, handoff->checkpoint);

	if (branch || head)
		json_object_array_add(tips, json_object_new_string(branch ? branch : head));
	json_set(body, "tips", tips);
	if (!tree && (head || branch))
		tree = mem_strdup(head ? head : branch);
	if (tree)
		json_set_str(body, "tree", tree);
	else
		json_set_bool(body, "worktree", true);
	return tree;
}

/* The agent's own repository, while it is there: its commits may not have been taken over yet. */
static void add_entry(const struct past_run *run, const struct past_agent *agent,
		      struct json_object *body)
{
	AUTO_JSON struct json_object *entry = past_agent_entry(run, agent);
	const char *git_dir = json_str(entry, "git_dir", "");

	if (agent->adopted || !agent->worktree_made || !file_is_dir(git_dir))
		return;
	json_object_object_foreach (entry, key, value)
		json_set(body, key, json_object_get(value));
}

static void ask_git(struct git_session *git, const struct handoff *handoff,
		    const struct past_run *run, const struct past_agent *agent,
		    struct handoff_records *records, char **ret_commit)
{
	AUTO_JSON struct json_object *body = handoff_facts_question(handoff);
	AUTO_JSON struct json_object *answer = NULL;
	struct err err = ERR_INIT;

	*ret_commit = add_places(git, handoff, body);
	if (agent)
		add_entry(run, agent, body);
	if (git_session_call(git, "facts", body, &answer, &err) < 0 && json_has(body, "agent")) {
		json_object_object_del(body, "agent");
		git_session_call(git, "facts", body, &answer, &err);
	}
	if (!answer)
		fprintf(stderr, "baton: commits and files could not be looked up: %s\n",
			err.message);
	if (answer)
		handoff_records_git(records, answer);
}

struct handoff_records *handoff_source_records(const struct settings *s,
					       const struct handoff *handoff,
					       struct git_session **ret_git, char **ret_commit)
{
	struct handoff_records *records = handoff_records_new();
	AUTO_FREE char *top = project_above(settings_str(s, OPT_DIRECTORY));
	struct past_run run;
	struct past_agent *agent = NULL;
	bool known = find_run(s, handoff, &run, &agent);

	*ret_git = NULL;
	*ret_commit = NULL;
	if (known) {
		AUTO_FREE char *dir = mem_printf("%s/agents/%s/%lld", run.dir, agent->name,
						 (long long)MAX(handoff->generation, (int64_t)1));
		AUTO_FREE char *words = file_join(dir, "words.jsonl");
		AUTO_FREE char *transcript = file_join(dir, "transcript.jsonl");
		handoff_records_words(records, words, NULL);
		handoff_records_calls(records, transcript, NULL);
	}
	if (top && git_session_open(top, ret_git, NULL) == 0)
		ask_git(*ret_git, handoff, &run, known ? agent : NULL, records, ret_commit);
	if (known)
		run_release(&run);
	return records;
}
