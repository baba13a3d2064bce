/*
 * faults.c - runs a command and lists its points, or lets one of them go wrong.
 *
 *   faults list [--out FILE] [--limit SECONDS] -- COMMAND...
 *   faults at PROCESS:OPERATION:ORDINAL KIND [--out FILE] [--limit SECONDS] -- COMMAND...
 *
 * Kinds: kill-before, kill-after (this process alone), kill-all (every process, before the call), tear (half of a write, then
 * kill), enospc, eio, emfile. FILE gets a line for each point ("a1.1:fsync:7 PATH"), or the one that was reached; then
 * "left N" for processes that outlived the command, and "timed-out". The exit status is the command's; 125 for our own
 * failure, 77 where the machine cannot trace.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "tests/faults/trace.h"

enum { EXIT_SKIP = 77, EXIT_OURS = 125 };

static const struct kind {
	const char *name;
	bool entry;
	int order;
} kinds[] = {
	{"kill-before", true, TRACE_KILL},  {"kill-after", false, TRACE_KILL},
	{"kill-all", true, TRACE_KILL_ALL}, {"tear", true, TRACE_TEAR},
	{"enospc", true, -ENOSPC},	    {"eio", true, -EIO},
	{"emfile", true, -EMFILE},
};

struct faults {
	FILE *out;
	char *process; /* NULL: list */
	enum trace_op op;
	unsigned ordinal;
	const struct kind *kind;
	bool reached;
};

static void print_event(const struct faults *f, const struct trace_event *e)
{
	fprintf(f->out, "%s:%s:%u\t%s\t%s%s%s\n", e->process, trace_op_name(e->op), e->ordinal,
		e->call, e->path ? e->path : "", e->path2 ? "\t" : "", e->path2 ? e->path2 : "");
}

static int on_event(void *arg, const struct trace_event *e)
{
	struct faults *f = arg;

	if (!f->process) {
		print_event(f, e);
		return TRACE_GO;
	}
	if (f->reached || e->op != f->op || e->ordinal != f->ordinal ||
	    e->entry != f->kind->entry || strcmp(e->process, f->process) != 0)
		return TRACE_GO;
	f->reached = true;
	print_event(f, e);
	/* A fork has no room or no number left, never a full disk. */
	return e->op == TRACE_FORK && f->kind->order < 0 ? -EAGAIN : f->kind->order;
}

static int usage(void)
{
	fprintf(stderr, "usage: faults list|at POINT KIND [--out FILE] [--limit SECONDS] -- "
			"COMMAND...\nkinds:");
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		fprintf(stderr, " %s", kinds[i].name);
	fputc('\n', stderr);
	return EXIT_OURS;
}

/* a1.1:fsync:7 */
static bool parse_point(struct faults *f, const char *text)
{
	char process[64], op[32];

	if (sscanf(text, "%63[^:]:%31[^:]:%u", process, op, &f->ordinal) != 3 ||
	    !trace_op_named(op, &f->op))
		return false;
	f->process = mem_strdup(process);
	return true;
}

static bool parse_kind(struct faults *f, const char *text)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (strcmp(kinds[i].name, text) == 0)
			f->kind = &kinds[i];
	return f->kind;
}

/* Returns the index of the command's first word, or 0. */
static int parse(struct faults *f, int argc, char **argv, unsigned *ret_limit)
{
	int i = 2;

	if (argc > 3 && strcmp(argv[1], "at") == 0) {
		if (!parse_point(f, argv[2]) || !parse_kind(f, argv[3]))
			return 0;
		i = 4;
	} else if (argc < 2 || strcmp(argv[1], "list") != 0) {
		return 0;
	}
	for (; i + 1 < argc && strcmp(argv[i], "--") != 0; i += 2) {
		if (strcmp(argv[i], "--limit") == 0)
			*ret_limit = (unsigned)strtoul(argv[i + 1], NULL, 10);
		else if (strcmp(argv[i], "--out") != 0 || !(f->out = fopen(argv[i + 1], "we")))
			return 0;
	}
	return i + 1 < argc ? i + 1 : 0;
}

int main(int argc, char **argv)
{
	struct faults f = {.out = stderr};
	struct trace_end end = {0};
	struct err err = ERR_INIT;
	unsigned limit = 0;
	int first = parse(&f, argc, argv, &limit);

	if (!first)
		return usage();
	struct trace_observer observer = {
		.arg = &f, .event = on_event, .exits = f.kind && !f.kind->entry};
	int status = trace_run(argv + first, limit, &observer, 1, &end, &err);
	free(f.process);
	if (status < 0) {
		fprintf(stderr, "faults: %s\n", err.message);
		return err.code == ERR_UNSUPPORTED ? EXIT_SKIP : EXIT_OURS;
	}
	fprintf(f.out, "left %u\n", end.left);
	if (end.timed_out)
		fprintf(f.out, "timed-out\n");
	return fclose(f.out) == 0 ? end.status : EXIT_OURS;
}
