/*
 * fuzz_handoff_check.c - what `baton handoff check` does with a document of any bytes, but for git and the terminal.
 *
 * The records are made from the document itself, so that each answer occurs: its first word was said, its files are there and
 * gone in turn, a command ran. A document that was cut to nearly nothing is still one, and is checked again.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memory.h"
#include "fuzz.h"
#include "orchestrator/handoff_truth.h"

/* yes and no in turn */
static struct json_object *answers(struct json_object *asked, bool flags)
{
	struct json_object *found = json_object_new_object();

	for (size_t i = 0; i < json_len(asked); i++) {
		const char *name = json_object_get_string(json_at(asked, i));

		if (flags)
			json_set_bool(found, name, i % 2);
		else
			json_set_str(found, name, i % 3 ? "on" : "");
	}
	return found;
}

static void add_git(struct handoff_records *records, const struct handoff *handoff)
{
	AUTO_JSON struct json_object *question = handoff_facts_question(handoff);
	AUTO_JSON struct json_object *answer = json_object_new_object();

	json_set(answer, "commits", answers(json_arr(question, "commits"), false));
	json_set(answer, "files", answers(json_arr(question, "files"), false));
	json_set(answer, "names", answers(json_arr(question, "names"), true));
	handoff_records_git(records, answer);
}

/* The first message of the document, with all of it marked as a constraint. */
static void add_word(struct handoff_records *records, const struct handoff *handoff)
{
	const struct handoff_part *words = &handoff->parts[HANDOFF_WORDS];
	AUTO_BUF struct buf line = BUF_INIT;
	char path[64];
	AUTO_FD int fd = memfd_create("words", MFD_CLOEXEC);

	if (!words->n || fd < 0)
		return;
	buf_adds(&line, "{\"type\":\"word\",\"generation\":1,\"uid\":1,\"text\":");
	json_write_cstr(&line, words->list[0].text);
	buf_addf(&line, ",\"constraints\":[[0,%zu]]}\n", strlen(words->list[0].text));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (write(fd, line.data, line.len) == (ssize_t)line.len)
		handoff_records_words(records, path, NULL);
}

static void check(const struct handoff *handoff)
{
	struct handoff_records *records = handoff_records_new();
	struct handoff_findings findings;
	struct handoff_truth truth;

	add_git(records, handoff);
	add_word(records, handoff);
	handoff_records_ran(records, "make check", 2, NULL);
	truth = handoff_records_truth(records);
	bool good = handoff_check(handoff, &truth, &findings);
	/* What refuses it says why. */
	for (size_t i = 0; i < findings.n; i++)
		if (!findings.list[i].text || !*findings.list[i].text)
			abort();
	if (good != (findings.refusing == 0))
		abort();
	handoff_findings_release(&findings);
	handoff_records_free(records);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct handoff *handoff = NULL;

	if (size > HANDOFF_BYTES_MAX / 16 ||
	    handoff_parse((const char *)data, size, &handoff, NULL) < 0)
		return 0;
	check(handoff);
	handoff_bound(handoff, 200, NULL, NULL);
	check(handoff);
	handoff_free(handoff);
	return 0;
}
