/*
 * viewer.c - see viewer.h. What is shown comes from the fold alone (display.h); --json needs none.
 */
#include "orchestrator/view/viewer.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"

#define REDRAW_MS 100
#define CLOCK_MS  1000

int viewer_open(struct viewer *v, enum viewer_mode mode, int fd, const char *journal,
		struct err *err)
{
	*v = (struct viewer){.mode = mode, .fd = fd, .out = BUF_INIT, .table = BUF_INIT};
	display_init(&v->state);
	return tail_open(&v->tail, journal, err);
}

void viewer_release(struct viewer *v)
{
	tail_release(&v->tail);
	display_release(&v->state);
	buf_release(&v->out);
	buf_release(&v->table);
}

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

	ioctl(v->fd, TIOCGWINSZ, &size);
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
	int rc = file_write_all(v->fd, v->out.data, v->out.len, &why);

	buf_clear(&v->out);
	if (rc == 0)
		return 0;
	errno = why.sys;
	return err_sys(err, "cannot write to standard %s",
		       v->fd == STDOUT_FILENO ? "output" : "error");
}

int viewer_show(struct viewer *v, int (*wait_news)(int timeout_ms, void *arg), void *arg,
		struct err *err)
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
		news = wait_news(v->mode != VIEW_LIVE ? -1 : v->dirty ? REDRAW_MS : CLOCK_MS, arg);
	}
	if (tail_read(&v->tail, on_line, v, err) < 0)
		return -1;
	if (v->mode == VIEW_LIVE)
		redraw(v);
	return put_out(v, err);
}
