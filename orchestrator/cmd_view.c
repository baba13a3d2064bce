/*
 * cmd_view.c - `baton view MODE JOURNAL`: the view's process.
 *
 * Started by the parent. Descriptor 3 tells that the journal grew (a byte) and that the run is over
 * (its end); without it the file is read once. Modes: json (the journal's own lines, to stdout),
 * plain (lines, to stderr), live (a table, redrawn at most ten times a second, to stderr).
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "orchestrator/command.h"
#include "orchestrator/view/tail.h"
#include "orchestrator/view/display.h"

#define POKE_FD	  3
#define REDRAW_MS 100
#define CLOCK_MS  1000

enum view_mode { VIEW_JSON, VIEW_PLAIN, VIEW_LIVE };

struct viewer {
	enum view_mode mode;
	struct display state;
	struct tail tail;
	struct buf out;
	struct buf table; /* what stands on the screen */
	bool dirty;
	int64_t told; /* bytes of the journal that an earlier part of the run has shown */
};

static void on_line(const char *line, size_t n, void *arg)
{
	struct viewer *v = arg;
	AUTO_JSON struct json_object *record = NULL;
	bool told = v->told > 0;

	v->told -= (int64_t)n + 1;
	if (v->mode == VIEW_JSON && told)
		return;
	if (v->mode == VIEW_JSON) {
		buf_add(&v->out, line, n);
		buf_addc(&v->out, '\n');
		return;
	}
	if (json_parse(line, n, &record, NULL) < 0 || !record)
		return;
	AUTO_BUF struct buf text = BUF_INIT;
	display_fold(&v->state, record, &text);
	if (v->mode == VIEW_PLAIN && !told)
		buf_add(&v->out, buf_str(&text), text.len);
	v->dirty = true;
}

static void redraw(struct viewer *v)
{
	struct winsize size = {.ws_row = 24, .ws_col = 80};
	int lines;

	ioctl(STDERR_FILENO, TIOCGWINSZ, &size);
	int columns = size.ws_col ? size.ws_col : 80;
	int above = display_rows(&v->table, columns);
	if (above > 0)
		buf_addf(&v->out, "\033[%dA", above);
	buf_adds(&v->out, "\r\033[J");
	buf_clear(&v->table);
	display_draw(&v->state, columns, size.ws_row ? size.ws_row : 24, clock_wall_ms(), true,
		     &v->table, &lines);
	buf_add(&v->out, v->table.data, v->table.len);
	v->dirty = false;
}

/* Writes what is collected; a reader that went away ends the view (EPIPE), and so does a full disk. */
static int put_out(struct viewer *v, struct err *err)
{
	struct err why = ERR_INIT;
	int fd = v->mode == VIEW_JSON ? STDOUT_FILENO : STDERR_FILENO;
	int rc = file_write_all(fd, v->out.data, v->out.len, &why);

	buf_clear(&v->out);
	if (rc == 0)
		return 0;
	errno = why.sys;
	return err_sys(err, "cannot write to standard %s",
		       v->mode == VIEW_JSON ? "output" : "error");
}

/* Only so that poll ends and the table fits the terminal again at once. */
static void on_resize(int sig)
{
	(void)sig;
}

/* Waits for news: 1 there is some, 0 only time passed, -1 the run is over. */
static int wait_news(int timeout_ms)
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

static int show(struct viewer *v, struct err *err)
{
	int64_t drawn = 0;

	for (int news = 1; news >= 0;) {
		int64_t now = clock_mono_ms();
		if (tail_read(&v->tail, on_line, v, err) < 0)
			return -1;
		if (v->mode == VIEW_LIVE && now - drawn >= REDRAW_MS) {
			redraw(v);
			drawn = now;
		}
		if (put_out(v, err) < 0)
			return -1;
		news = wait_news(v->mode != VIEW_LIVE ? -1 : v->dirty ? REDRAW_MS : CLOCK_MS);
	}
	if (tail_read(&v->tail, on_line, v, err) < 0)
		return -1;
	if (v->mode == VIEW_LIVE)
		redraw(v);
	return put_out(v, err);
}

int cmd_view(int argc, char **argv)
{
	static const char *const modes[] = {"json", "plain", "live"};
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	struct sigaction resize = {.sa_handler = on_resize};
	struct viewer v = {.out = BUF_INIT, .table = BUF_INIT};
	struct err err = ERR_INIT;
	size_t mode = 0;

	while ((argc == 2 || argc == 3) && mode < ARRAY_SIZE(modes) &&
	       strcmp(modes[mode], argv[0]) != 0)
		mode++;
	if ((argc != 2 && argc != 3) || mode == ARRAY_SIZE(modes)) {
		fputs("baton: 'baton view' is started by baton itself; see 'baton show'\n", stderr);
		return EXIT_USAGE;
	}
	v.mode = (enum view_mode)mode;
	if (argc == 3)
		text_parse_count(argv[2], &v.told);
	sigaction(SIGPIPE, &ignore, NULL);
	sigaction(SIGINT, &ignore, NULL);
	sigaction(SIGTTOU, &ignore, NULL);
	sigaction(SIGWINCH, &resize, NULL);
	display_init(&v.state);
	if (tail_open(&v.tail, argv[1], &err) < 0)
		return command_fail(&err);
	int rc = show(&v, &err);
	tail_release(&v.tail);
	display_release(&v.state);
	buf_release(&v.out);
	buf_release(&v.table);
	return rc < 0 && err.sys != EPIPE ? command_fail(&err) : EXIT_OK;
}
