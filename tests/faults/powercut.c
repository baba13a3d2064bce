/*
 * powercut.c - runs a command, cuts the power at one of its points, and writes the disk as it is found afterwards.
 *
 *   powercut POINT --seed N --names synced|all|mixed --folder DIR... --into DIR [--out FILE] [--limit SECONDS] -- COMMAND...
 *
 * POINT is one of `faults list`. At it all processes are killed, before the call; the first --folder is then written to
 * DIR/0, the second to DIR/1, and so on (image.h says what is in them). Was the point not reached, nothing is written.
 * FILE and the exit status are those of `faults at`.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/memory.h"
#include "tests/faults/image.h"
#include "tests/faults/trace.h"

enum { EXIT_SKIP = 77, EXIT_OURS = 125, MOST_FOLDERS = 8 };

struct powercut {
	char process[64];
	enum trace_op op;
	unsigned ordinal, limit_s;
	uint64_t seed;
	enum image_names names;
	const char *folders[MOST_FOLDERS];
	size_t n_folders;
	const char *into;
	FILE *out;
	bool reached;
};

static int on_event(void *arg, const struct trace_event *e)
{
	struct powercut *p = arg;

	if (p->reached || !e->entry || e->op != p->op || e->ordinal != p->ordinal ||
	    strcmp(e->process, p->process) != 0)
		return TRACE_GO;
	p->reached = true;
	fprintf(p->out, "%s:%s:%u\t%s\t%s\n", e->process, trace_op_name(e->op), e->ordinal, e->call,
		e->path ? e->path : "");
	return TRACE_KILL_ALL;
}

static bool parse_point(struct powercut *p, const char *text)
{
	char op[32];

	return sscanf(text, "%63[^:]:%31[^:]:%u", p->process, op, &p->ordinal) == 3 &&
	       trace_op_named(op, &p->op);
}

static bool parse_option(struct powercut *p, const char *name, const char *value)
{
	if (strcmp(name, "--seed") == 0)
		p->seed = strtoull(value, NULL, 10);
	else if (strcmp(name, "--limit") == 0)
		p->limit_s = (unsigned)strtoul(value, NULL, 10);
	else if (strcmp(name, "--into") == 0)
		p->into = value;
	else if (strcmp(name, "--names") == 0)
		return image_names_named(value, &p->names);
	else if (strcmp(name, "--out") == 0)
		return (p->out = fopen(value, "we"));
	else if (strcmp(name, "--folder") == 0 && p->n_folders < MOST_FOLDERS)
		p->folders[p->n_folders++] = value;
	else
		return false;
	return true;
}

/* Returns the index of the command's first word, or 0. */
static int parse(struct powercut *p, int argc, char **argv)
{
	int i = 2;

	if (argc < 2 || !parse_point(p, argv[1]))
		return 0;
	for (; i + 1 < argc && strcmp(argv[i], "--") != 0; i += 2)
		if (!parse_option(p, argv[i], argv[i + 1]))
			return 0;
	return p->into && p->n_folders && i + 1 < argc ? i + 1 : 0;
}

static int write_disk(const struct powercut *p, struct image *image, struct err *err)
{
	if (mkdir(p->into, 0700) < 0)
		return err_sys(err, "cannot make '%s'", p->into);
	for (size_t i = 0; i < p->n_folders; i++) {
		AUTO_FREE char *target = mem_printf("%s/%zu", p->into, i);
		if (image_cut(image, i, p->names, p->seed, target, err) < 0)
			return -1;
	}
	return 0;
}

static int cut(struct powercut *p, struct image *image, char **command, struct err *err)
{
	struct trace_observer observers[] = {{.arg = p, .event = on_event}, image_observer(image)};
	struct trace_end end = {0};
	int status = trace_run(command, p->limit_s, observers, ARRAY_SIZE(observers), &end, err);

	if (status < 0 || (p->reached && write_disk(p, image, err) < 0))
		return -1;
	fprintf(p->out, "left %u\n", end.left);
	if (end.timed_out)
		fprintf(p->out, "timed-out\n");
	return end.status;
}

int main(int argc, char **argv)
{
	struct powercut p = {.out = stderr};
	struct err err = ERR_INIT;
	int first = parse(&p, argc, argv);

	if (!first) {
		fprintf(stderr,
			"usage: powercut POINT --seed N --names synced|all|mixed --folder DIR "
			"--into DIR [--out FILE] [--limit SECONDS] -- COMMAND...\n");
		return EXIT_OURS;
	}
	struct image *image = image_start(p.folders, p.n_folders, &err);
	int status = image ? cut(&p, image, argv + first, &err) : -1;
	image_free(image);
	if (status < 0) {
		fprintf(stderr, "powercut: %s\n", err.message);
		return err.code == ERR_UNSUPPORTED ? EXIT_SKIP : EXIT_OURS;
	}
	return fclose(p.out) == 0 ? status : EXIT_OURS;
}
