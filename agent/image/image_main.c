/*
 * image_main.c - the program baton-image: a picture of unknown origin in, one that a model can be
 * shown out (W6).
 *
 *     baton-image MAX_TOKENS < FILE
 *
 * A program of its own, because decoders of pictures are where hostile files do harm: the agent
 * starts it in a box without files or network, and its death is an error message. What it writes is
 * always encoded afresh, so that no byte of the file's own structure (profiles, positions, what
 * follows the end) reaches a provider. Exit 1: not a picture that can be shown; 2: wrong usage.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "agent/image/codec.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"

#define TOKENS_MAX  100000
#define SHOWN_MAX   ((size_t)3700 * 1000) /* providers take 5 MB of base64 */
#define CPU_SECONDS 30

static int read_input(struct buf *file, struct err *err)
{
	ssize_t n;

	do
		n = buf_read(file, STDIN_FILENO, 1 << 16);
	while (n > 0);
	if (n < 0)
		return errno == EOVERFLOW ? err_set(err, ERR_TOO_LARGE,
						    "the file is larger than %zu bytes", file->max)
					  : err_sys(err, "cannot read the picture");
	return 0;
}

static int show(unsigned max_tokens, struct buf *out, struct err *err)
{
	AUTO_BUF struct buf file = BUF_INIT_MAX(PICTURE_FILE_MAX);
	struct picture picture = {0};
	const char *media_type = NULL;

	if (read_input(&file, err) < 0 || picture_decode(&file, max_tokens, &picture, err) < 0)
		return -1;
	AUTO_BUF struct buf encoded = BUF_INIT_MAX(SHOWN_MAX);
	int rc = picture_encode(&picture, picture_is_jpeg(&file), &encoded, &media_type, err);
	if (rc == 0) {
		buf_addf(out, "{\"media_type\":\"%s\",\"width\":%u,\"height\":%u,\"tokens\":%u}\n",
			 media_type, picture.width, picture.height, picture_tokens(&picture));
		buf_add(out, encoded.data, encoded.len);
	}
	picture_release(&picture);
	return rc;
}

int main(int argc, char **argv)
{
	const struct rlimit cpu = {.rlim_cur = CPU_SECONDS, .rlim_max = CPU_SECONDS};
	AUTO_BUF struct buf out = BUF_INIT;
	struct err err = ERR_INIT;
	int64_t max_tokens;

	if (argc != 2 || text_parse_i64(argv[1], &max_tokens) < 0 || max_tokens < 1 ||
	    max_tokens > TOKENS_MAX) {
		fprintf(stderr, "usage: baton-image MAX_TOKENS < FILE (MAX_TOKENS: 1 to %d)\n",
			TOKENS_MAX);
		return 2;
	}
	setrlimit(RLIMIT_CPU, &cpu);
	if (show((unsigned)max_tokens, &out, &err) < 0 ||
	    file_write_all(STDOUT_FILENO, out.data, out.len, &err) < 0) {
		fprintf(stderr, "baton-image: %s\n", err.message);
		return 1;
	}
	return 0;
}
