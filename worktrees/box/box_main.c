/*
 * box_main.c - the program baton-box: put the boundary round yourself, then become PROGRAM.
 *
 * It runs between the agent (or the parent, for jobs) and every command that a model chose.
 * Descriptors, environment (but for GIT_CONFIG_GLOBAL, see apply) and working folder are passed
 * through as they are. Exit 125: the boundary could not be made and nothing was executed; 126, 127:
 * PROGRAM could not be executed or found.
 *
 * Started before each command, it is kept small: a static program that loads no library. So it
 * prints its one line of JSON by hand, and takes HOME from its own environment instead of from
 * base/env.c, which would bring the user database in.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "worktrees/box/box.h"

#define EXIT_NO_BOX  125
#define EXIT_NO_EXEC 126
#define EXIT_NO_FILE 127

static const char usage[] =
	"usage: baton-box [--level auto|namespaces|landlock|partial|unconfined] [--read DIR]...\n"
	"                 [--write DIR]... [--network none|loopback|open] -- PROGRAM ARG...\n"
	"       baton-box --probe\n";

struct request {
	struct box_policy policy;
	bool automatic, unconfined, probe;
	const char **read, **write;
	size_t n_read, n_write;
	char **program;
};

static const char *truth(bool value)
{
	return value ? "true" : "false";
}

static void print_probe(void)
{
	const char *notes[BOX_NOTES_MAX];
	struct box_facts facts;

	box_probe(&facts);
	size_t count = box_notes(&facts, notes);
	printf("{\"level\":\"%s\",\"landlock_abi\":%d,\"seccomp\":%s,\"namespaces\":%s,\"notes\":[",
	       box_level_name(facts.best), facts.landlock_abi, truth(facts.seccomp),
	       truth(facts.user_namespaces));
	for (size_t i = 0; i < count; i++)
		printf("%s\"%s\"", i ? "," : "", notes[i]);
	puts("]}");
}

static const char *find_home(char **envp)
{
	for (; *envp; envp++) {
		if (strncmp(*envp, "HOME=/", 6) == 0)
			return *envp + 5;
	}
	return NULL;
}

static int parse_level(struct request *r, const char *text, struct err *err)
{
	r->automatic = strcmp(text, "auto") == 0;
	r->unconfined = strcmp(text, "unconfined") == 0;
	if (r->automatic || r->unconfined)
		return 0;
	for (enum box_level level = BOX_PARTIAL; level <= BOX_NAMESPACES; level++) {
		if (strcmp(text, box_level_name(level)) == 0) {
			r->policy.level = level;
			return 0;
		}
	}
	return err_set(err, ERR_USAGE, "unknown level '%s'", text);
}

static int parse_network(struct request *r, const char *text, struct err *err)
{
	static const char *const names[] = {"none", "loopback", "open"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (strcmp(names[i], text) == 0) {
			r->policy.network = (enum box_network)i;
			return 0;
		}
	}
	return err_set(err, ERR_USAGE, "unknown network '%s'", text);
}

static int parse_option(struct request *r, const char *name, const char *value, struct err *err)
{
	if (strcmp(name, "--level") == 0)
		return parse_level(r, value, err);
	if (strcmp(name, "--network") == 0)
		return parse_network(r, value, err);
	if (strcmp(name, "--read") == 0)
		r->read[r->n_read++] = value;
	else if (strcmp(name, "--write") == 0)
		r->write[r->n_write++] = value;
	else
		return err_set(err, ERR_USAGE, "unknown option '%s'", name);
	return 0;
}

static int parse(struct request *r, int argc, char **argv, struct err *err)
{
	int i = 1;

	r->automatic = true;
	r->read = mem_alloc(((size_t)argc + 1) * sizeof(*r->read));
	r->write = mem_alloc(((size_t)argc + 1) * sizeof(*r->write));
	r->policy.read = r->read;
	r->policy.write = r->write;
	if (argc == 2 && strcmp(argv[1], "--probe") == 0) {
		r->probe = true;
		return 0;
	}
	for (; i < argc && strcmp(argv[i], "--") != 0; i += 2) {
		if (i + 1 >= argc)
			return err_set(err, ERR_USAGE, "'%s' needs a value", argv[i]);
		if (parse_option(r, argv[i], argv[i + 1], err) < 0)
			return -1;
	}
	if (i + 1 >= argc)
		return err_set(err, ERR_USAGE, "no program is named after '--'");
	r->program = argv + i + 1;
	return 0;
}

static int apply(struct request *r, struct err *err)
{
	struct box_facts facts;

	if (r->unconfined)
		return 0;
	if (r->automatic) {
		box_probe_level(&facts);
		r->policy.level = facts.best;
	}
	/* Git refuses to work if the configuration in HOME is there and cannot be read. */
	setenv("GIT_CONFIG_GLOBAL", "/dev/null", 0);
	/* For people and for programs that would start agents of their own (orchestrator/ancestry.h). */
	setenv("BATON_BOX", box_level_name(r->policy.level), 1);
	return box_apply(&r->policy, err);
}

int main(int argc, char **argv, char **envp)
{
	struct request request = {.policy.home = find_home(envp)};
	struct err err = ERR_INIT;

	if (parse(&request, argc, argv, &err) < 0) {
		fprintf(stderr, "baton-box: %s\n%s", err.message, usage);
		return EXIT_NO_BOX;
	}
	if (request.probe) {
		print_probe();
		return 0;
	}
	if (apply(&request, &err) < 0) {
		fprintf(stderr, "baton-box: %s\n", err.message);
		return EXIT_NO_BOX;
	}
	execvp(request.program[0], request.program);
	fprintf(stderr, "baton-box: cannot execute '%s': %s\n", request.program[0],
		strerror(errno));
	return errno == ENOENT ? EXIT_NO_FILE : EXIT_NO_EXEC;
}
