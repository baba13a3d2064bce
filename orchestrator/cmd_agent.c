/*
 * cmd_agent.c - `baton agent`: one generation of one agent over a channel.
 *
 * Started by the parent with the channel on descriptor 3. With --stdio the channel is standard
 * input and output, so that any launcher that carries stdio can host an agent; both are moved away
 * first, since tools must never get them.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent.h"
#include "orchestrator/command.h"

static int move_away(int fd, int flags)
{
	int moved = fcntl(fd, F_DUPFD_CLOEXEC, 10);
	int null = open("/dev/null", flags | O_CLOEXEC);

	if (null >= 0) {
		dup2(null, fd);
		close(null);
	}
	return moved;
}

int cmd_agent(int argc, char **argv)
{
	if (argc == 1 && strcmp(argv[0], "--stdio") == 0)
		return agent_main(move_away(STDIN_FILENO, O_RDONLY),
				  move_away(STDOUT_FILENO, O_WRONLY));
	if (argc != 0 || fcntl(3, F_GETFD) < 0) {
		fputs("baton: 'baton agent' is started by baton itself; use 'baton run TASK'\n",
		      stderr);
		return EXIT_USAGE;
	}
	return agent_main(3, 3);
}
