/*
 * cmd_view.c - `baton view MODE JOURNAL`: the view's process.
 *
 * Started by the parent. Descriptor 3 tells that the journal grew (a byte) and that the run is over
 * (its end); without it the file is read once. Modes: json (the journal's own lines, to stdout),
 * plain (lines, to stderr), live (a table, redrawn at most ten times a second, to stderr).
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "orchestrator/command.h"
#include "orchestrator/view/viewer.h"

#define POKE_FD 3

/* Only so that poll ends and the table fits the terminal again at once. */
static void on_resize(int sig)
{
	(void)sig;
}

/* Waits for news: 1 there is some, 0 only time passed, -1 the run is over. */
static int wait_news(int timeout_ms, void *arg)
{
	struct pollfd fd = {.fd = POKE_FD, .events = POLLIN};
	char bytes[4096];

	if (poll(&fd, 1, timeout_ms) <= 0)
		return 0;
	ssize_t n = read(POKE_FD, bytes, sizeof(bytes));
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	return n > 0 ? 1 : -1;
}

int cmd_view(int argc, char **argv)
{
	static const char *const modes[] = {"json", "plain", "live"};
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	struct sigaction resize = {.sa_handler = on_resize};
	struct viewer v;
	struct err err = ERR_INIT;
	size_t mode = 0;

	while ((argc == 2 || argc == 3) && mode < ARRAY_SIZE(modes) &&
	       strcmp(modes[mode], argv[0]) != 0)
		mode++;
	if ((argc != 2 && argc != 3) || mode == ARRAY_SIZE(modes)) {
		fputs("baton: 'baton view' is started by baton itself; see 'baton watch'\n",
		      stderr);
		return EXIT_USAGE;
	}
	sigaction(SIGPIPE, &ignore, NULL);
	sigaction(SIGINT, &ignore, NULL);
	sigaction(SIGTTOU, &ignore, NULL);
	sigaction(SIGWINCH, &resize, NULL);
	int rc = viewer_open(&v, (enum viewer_mode)mode,
			     mode == VIEW_JSON ? STDOUT_FILENO : STDERR_FILENO, argv[1], &err);
	if (argc == 3)
		text_parse_count(argv[2], &v.told);
	if (rc == 0)
		rc = viewer_show(&v, wait_news, NULL, &err);
	viewer_release(&v);
	return rc < 0 && err.sys != EPIPE ? command_fail(&err) : EXIT_OK;
}
