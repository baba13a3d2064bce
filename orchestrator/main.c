/*
 * main.c - the program `baton`: find the command, load its settings, run it.
 *
 * Only this function exits. What stdout could not take is found at the end, for all commands at once;
 * the parent of a run, which leaves by another way, asks itself (launch.c). `baton agent` and `baton view` are the same program in the role of a
 * child; they are looked up first, since their start-up time counts.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "config.h"
#include "orchestrator/command.h"
#include "orchestrator/project.h"

static void print_usage(FILE *out)
{
	size_t n;
	const struct command *table = command_table(&n);

	fputs("usage: baton COMMAND [OPTIONS] [ARGUMENTS]\n\n"
	      "Agents that work in worktrees of their own, and come back with reports.\n\n",
	      out);
	for (size_t i = 0; i < n; i++) {
		char call[64];
		snprintf(call, sizeof(call), "%s %s", table[i].name, table[i].args);
		if (!table[i].hidden)
			fprintf(out, "  %-24s %s\n", call, table[i].summary);
	}
	fputs("\n'baton COMMAND --help' lists a command's options; 'man baton' holds the rest.\n"
	      "Try it without a key:  baton run --model rehearsal:SCENARIO.yaml TASK\n",
	      out);
}

static int unknown_command(const char *name)
{
	size_t n;
	const struct command *table = command_table(&n);
	const char *names[32];
	size_t count = 0;
	struct err err = ERR_INIT;

	for (size_t i = 0; i < n && count < ARRAY_SIZE(names); i++) {
		if (!table[i].hidden)
			names[count++] = table[i].name;
	}
	const char *near = text_nearest(name, names, count);
	if (near)
		err_set(&err, ERR_USAGE, "unknown command '%s'; did you mean '%s'?", name, near);
	else
		err_set(&err, ERR_USAGE, "unknown command '%s'; see 'baton --help'", name);
	return command_fail(&err);
}

static int print_help(const struct command *command)
{
	struct buf out = BUF_INIT;

	printf("usage: baton %s [OPTIONS]%s%s\n\n%s\n\n", command->name, *command->args ? " " : "",
	       command->args, command->summary);
	if (command->more)
		printf("%s\n\n", command->more);
	settings_print_options(command->scope, &out);
	command_write(out.data, out.len);
	buf_release(&out);
	return EXIT_OK;
}

/* What holds for every command: the folder is there, and no word is left over. */
static int check_words(const struct command *command, const struct settings *settings,
		       struct err *err)
{
	const char *dir = settings_str(settings, OPT_DIRECTORY);

	if (dir) {
		AUTO_FD int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0) {
			err_sys(err, "cannot enter '%s'", dir);
			err->code = ERR_USAGE;
			return -1;
		}
	}
	if (settings_n_args(settings) <= command->max_args)
		return 0;
	if (strcmp(command->name, "run") == 0)
		return err_set(err, ERR_USAGE, "run takes one TASK; put it in quotes");
	return err_set(err, ERR_USAGE, "'%s' is one argument too many: baton %s%s%s",
		       settings_arg(settings, command->max_args), command->name,
		       *command->args ? " " : "", command->args);
}

static int run_command(const struct command *command, int argc, char **argv)
{
	AUTO_FREE char *project = NULL;
	struct settings *settings;
	struct err err = ERR_INIT;

	if (command->project)
		project = project_find(argc, argv);
	if (settings_load(argc, argv, command->scope, project, &settings, &err) < 0) {
		err_prefix(&err, "%s", command->name);
		return command_fail(&err);
	}
	if (settings_flag(settings, OPT_VERBOSE))
		log_be_verbose();
	int status;
	if (settings_wants_help(settings))
		status = print_help(command);
	else if (check_words(command, settings, &err) < 0)
		status = command_fail(&err);
	else
		status = command->run(settings);
	settings_free(settings);
	return status;
}

static int dispatch(int argc, char **argv)
{
	if (argc < 2) {
		print_usage(stderr);
		return EXIT_USAGE;
	}
	const struct command *command = command_find(argv[1]);
	if (command && command->run_raw)
		return command->run_raw(argc - 2, argv + 2);
	if (command)
		return run_command(command, argc - 2, argv + 2);
	if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
		puts("baton " BATON_VERSION);
		return EXIT_OK;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
	    strcmp(argv[1], "help") == 0) {
		command = argc > 2 ? command_find(argv[2]) : NULL;
		if (command && !command->hidden)
			return print_help(command);
		if (argc > 2)
			return unknown_command(argv[2]);
		print_usage(stdout);
		return EXIT_OK;
	}
	return unknown_command(argv[1]);
}

int main(int argc, char **argv)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN};

	log_init("baton", LOG_WARN);
	/* A file that may not grow (ulimit -f) is an error of the write, in every role of this program;
	 * the warden's fork inherits it, and what is spawned gets the default back. */
	sigaction(SIGXFSZ, &ignore, NULL);
	return command_end(dispatch(argc, argv));
}
