/*
 * run_handoff.c - see run_handoff.h. Runs in the parent.
 *
 * A document is carried as a file, and what it names may not have come along: commits that were never pushed, files of
 * a branch that is elsewhere. None of that stops the run; the successor and the user are told, because a successor that
 * looks for a commit which cannot be there would doubt everything else.
 */
#include "orchestrator/run_handoff.h"

#include <fcntl.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "orchestrator/handoff_truth.h"
#include "orchestrator/run.h"

#define NAMED_MAX 8 /* in the line that is told */

int run_handoff_read(const struct settings *s, struct handoff **ret, struct err *err)
{
	const char *path = settings_str(s, OPT_HANDOFF);
	AUTO_BUF struct buf text = BUF_INIT;

	*ret = NULL;
	if (!path)
		return 0;
	if (file_read(AT_FDCWD, path, HANDOFF_BYTES_MAX, &text, err) < 0)
		return -1;
	if (handoff_parse(buf_str(&text), text.len, ret, err) == 0)
		return 0;
	if (err)
		err->code = ERR_USAGE;
	return err_prefix(err, "'%s' is no handoff document", path);
}

char *run_handoff_task(const struct handoff *handoff)
{
	const struct handoff_part *goal = &handoff->parts[HANDOFF_GOAL];
	AUTO_BUF struct buf text = BUF_INIT;

	for (size_t i = 0; i < goal->n; i++)
		buf_addf(&text, "%s%s", i ? "\n" : "", goal->list[i].text);
	return text.len ? mem_strdup(buf_str(&text)) : NULL;
}

struct placing {
	struct run *run;
	struct handoff *handoff;
	char *base;
	run_handoff_fn done;
};

static void name_one(struct buf *out, size_t *n, const char *what)
{
	if ((*n)++ < NAMED_MAX)
		buf_addf(out, "%s%s", out->len ? ", " : "", what);
}

/* What the document names and this repository does not have; NULL: nothing. Caller frees. */
static char *not_here(struct json_object *facts)
{
	AUTO_BUF struct buf names = BUF_INIT;
	struct json_object *commits = json_obj(facts, "commits"), *files = json_obj(facts, "files");
	size_t n = 0;

	if (commits) {
		json_object_object_foreach (commits, id, answer)
			if (answer && strcmp(json_object_get_string(answer), "none") == 0) {
				AUTO_FREE char *text = mem_printf("commit %.12s", id);
				name_one(&names, &n, text);
			}
	}
	if (files) {
		json_object_object_foreach (files, path, blob)
			if (blob && *json_object_get_string(blob) == '\0')
				name_one(&names, &n, path);
	}
	if (!n)
		return NULL;
	return mem_printf(
		"%zu of the things that the handoff names %s not in this repository here: %s%s", n,
		n == 1 ? "is" : "are", buf_str(&names), n > NAMED_MAX ? " and more" : "");
}

static void complete(struct placing *p, const char *told)
{
	struct handoff *h = p->handoff;
	char stamp[CLOCK_STAMP_SIZE];

	if (!h->repository)
		h->repository = mem_strdup(json_str(p->run->repository, "name", NULL));
	if (!h->created)
		h->created = mem_strdup(clock_stamp(clock_wall_ms(), stamp));
	if (!h->reason)
		h->reason = mem_strdup("person");
	if (told)
		handoff_add(h, HANDOFF_MISSING, HANDOFF_FROM_RECORD, told, strlen(told));
}

static int write_it(struct placing *p, struct err *err)
{
	AUTO_FREE char *dir = run_path(p->run, "agents/a1");
	AUTO_FREE char *path = file_join(dir, "handoff-0.json");
	AUTO_JSON struct json_object *json = handoff_to_json(p->handoff);
	AUTO_BUF struct buf text = BUF_INIT;

	json_write_pretty(&text, json);
	if (file_mkdirs(dir, 0700, err) < 0)
		return -1;
	return file_write_atomic(AT_FDCWD, path, text.data, text.len, 0600, err);
}

static void on_facts(struct json_object *answer, const struct err *failure, void *arg)
{
	struct placing *p = arg;
	struct err err = ERR_INIT;
	AUTO_FREE char *told = failure ? NULL : not_here(answer);

	complete(p, told);
	int rc = write_it(p, &err);
	p->done(p->run, p->base, told, rc < 0 ? &err : NULL);
	free(p->base);
	free(p);
}

void run_handoff_place(struct run *run, struct handoff *handoff, const char *base,
		       run_handoff_fn done)
{
	struct placing *p = mem_alloc(sizeof(*p));
	AUTO_JSON struct json_object *question = handoff_facts_question(handoff);
	struct json_object *tips = json_object_new_array();

	*p = (struct placing){
		.run = run, .handoff = handoff, .base = mem_strdup(base), .done = done};
	json_object_array_add(tips, json_object_new_string(base));
	json_set(question, "tips", tips);
	json_set_str(question, "tree", base);
	git_client_call(run->git_client, "facts", question, on_facts, p);
}
