/*
 * image.c - PNG and JPEG files for the model (W6).
 *
 * Decoding pictures of unknown origin is not done in the agent: the image program does it, in the
 * box if there is one, with the file as its stdin and a memfd as its stdout. It answers one line of
 * JSON and then the scaled picture (docs/documents.md).
 */
#include "agent/tools/read.h"

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "agent/tools/output.h"
#include "agent/tools/shell.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/spawn.h"

enum { IMAGE_TIMEOUT_MS = 20000 };
#define IMAGE_TOKENS	"2000"
#define IMAGE_BYTES_MAX ((off_t)32 << 20)

const char *image_type(const char *head, size_t n)
{
	if (n >= 8 && memcmp(head, "\x89PNG\r\n\x1a\n", 8) == 0)
		return "image/png";
	if (n >= 3 && memcmp(head, "\xff\xd8\xff", 3) == 0)
		return "image/jpeg";
	return NULL;
}

static char *base64(const char *s, size_t n, size_t *ret_len)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *u = (const unsigned char *)s;
	char *out = mem_alloc(n / 3 * 4 + 5), *p = out;
	for (size_t i = 0; i < n; i += 3) {
		unsigned long v = (unsigned long)u[i] << 16;
		v |= i + 1 < n ? (unsigned long)u[i + 1] << 8 : 0;
		v |= i + 2 < n ? u[i + 2] : 0;
		*p++ = digits[v >> 18 & 63];
		*p++ = digits[v >> 12 & 63];
		*p++ = i + 1 < n ? digits[v >> 6 & 63] : '=';
		*p++ = i + 2 < n ? digits[v & 63] : '=';
	}
	*ret_len = (size_t)(p - out);
	return out;
}

/* The decoder gets the tightest box there is: no folder to write, nothing to read but itself. */
static void add_image_box(const struct tool_context *ctx, const char *folder, struct words *argv)
{
	const struct tool_settings *s = &ctx->settings;
	const char *const words[] = {
		s->box_program, "--level", s->box_level ? s->box_level : "auto",
		"--read",	folder,	   "--network",
		"none",		"--",
	};
	for (size_t i = 0; s->box_program && i < ARRAY_SIZE(words); i++)
		words_add(argv, words[i]);
}

static int start_program(struct tool_context *ctx, int fd_in, int fd_out, pid_t *ret_pid,
			 int *ret_pidfd, struct err *err)
{
	struct words argv = {0};
	const char *program = ctx->settings.image_program;
	AUTO_FREE char *folder = file_dir(program);
	add_image_box(ctx, folder, &argv);
	words_add(&argv, program);
	words_add(&argv, IMAGE_TOKENS);
	struct spawn_opts opts = SPAWN_OPTS_INIT;
	opts.path = argv.items[0];
	opts.argv = argv.items;
	opts.envp = (const char *const *)shell_environment(ctx);
	opts.fd_in = fd_in;
	opts.fd_out = fd_out;
	opts.new_session = true;
	int rc = spawn_process(&opts, ret_pid, ret_pidfd, err);
	words_release(&argv);
	return rc;
}

/* Waits for its end and reaps it, whatever happens; ret_status as waitpid. */
static int await_program(struct tool_context *ctx, pid_t pid, int pidfd, int *ret_status,
			 struct err *err)
{
	int64_t deadline = clock_mono_ms() + IMAGE_TIMEOUT_MS;
	int rc = 0;
	while (waitpid(pid, ret_status, WNOHANG) == 0) {
		struct pollfd fd = {.fd = pidfd, .events = POLLIN};
		if (wait_poll(ctx->waiter, &fd, 1, deadline, err) >= 0)
			continue;
		kill(-pid, SIGKILL);
		waitpid(pid, ret_status, 0);
		rc = -1;
		break;
	}
	return rc;
}

static int take_answer(const struct buf *answer, struct tool_result *ret, struct err *err)
{
	AUTO_JSON struct json_object *head = NULL;
	const char *s = buf_str(answer);
	const char *lf = memchr(s, '\n', answer->len);
	if (!lf || json_parse(s, (size_t)(lf - s), &head, err) < 0)
		return err_set(err, ERR_INVALID, "the image program gave no answer");
	const char *type = json_str(head, "media_type", "image/png");
	size_t n = answer->len - (size_t)(lf + 1 - s);
	ret->images = mem_array(ret->images, ret->n_images + 1, sizeof(*ret->images));
	struct tool_image *image = &ret->images[ret->n_images++];
	image->media_type = mem_strdup(type);
	image->base64 = base64(lf + 1, n, &image->base64_len);
	buf_addf(&ret->text, "%s, %lld x %lld pixels as shown\n", type,
		 (long long)json_i64(head, "width", 0), (long long)json_i64(head, "height", 0));
	return 0;
}

static int run_program(struct tool_context *ctx, int fd, struct tool_result *ret, struct err *err)
{
	AUTO_FD int out = memfd_create("image", MFD_CLOEXEC);
	AUTO_FD int pidfd = -1;
	AUTO_BUF struct buf answer = BUF_INIT;
	pid_t pid;
	int status = 0;
	if (out < 0)
		return err_sys(err, "cannot make room for the image");
	if (start_program(ctx, fd, out, &pid, &pidfd, err) < 0 ||
	    await_program(ctx, pid, pidfd, &status, err) < 0)
		return -1;
	if (status != 0)
		return err_set(err, ERR_INVALID, "it cannot be decoded as an image");
	if (output_size(out) > IMAGE_BYTES_MAX)
		return err_set(err, ERR_TOO_LARGE, "the image is too large");
	output_read(out, 0, output_size(out), &answer);
	return take_answer(&answer, ret, err);
}

int read_image(struct tool_context *ctx, int fd, const struct place *place, struct tool_result *ret,
	       struct err *err)
{
	struct err e = ERR_INIT;
	if (!ctx->settings.image_program)
		return result_failf(ret,
				    "'%s' is an image, and the program that shows images is not "
				    "installed (baton-image)",
				    place->shown);
	buf_addf(&ret->text, "%s: ", place->shown);
	result_summary(ret, "read %s (image)", place->shown);
	if (run_program(ctx, fd, ret, &e) == 0)
		return 0;
	err_prefix(&e, "'%s' cannot be shown", place->shown);
	return result_end(ret, &e, err);
}
