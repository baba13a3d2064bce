/*
 * jpeg.c - see codec.h. Runs in baton-image.
 *
 * As in png.c, fatal errors of the library arrive by longjmp in a frame that holds nothing.
 * A file that ends too early is shown as far as it goes: what leaves is a whole picture anyway.
 * Files with very many scans are a known way to burn time, so scans are counted.
 */
#include "agent/image/codec.h"

#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>

#include <jpeglib.h>
#include <jerror.h>

#include "base/memory.h"

#define QUALITY	  90
#define SCANS_MAX 200

struct job {
	struct jpeg_error_mgr errors; /* first: libjpeg hands out a pointer to it */
	struct jpeg_progress_mgr progress;
	jmp_buf back;
	struct err *err;
	struct jpeg_decompress_struct in;
	struct jpeg_compress_struct out;
	unsigned max_tokens;
	struct scaler *scaler;
	uint8_t *row, *rgb;
	unsigned char *bytes; /* of the encoder; malloc'ed by libjpeg */
	unsigned long n_bytes;
};

static void on_error(j_common_ptr common)
{
	struct job *job = (struct job *)common->err;
	char text[JMSG_LENGTH_MAX];

	common->err->format_message(common, text);
	err_set(job->err, ERR_INVALID, "not a valid JPEG: %s", text);
	longjmp(job->back, 1);
}

static void on_message(j_common_ptr common)
{
}

static void refuse(struct job *job)
{
	longjmp(job->back, 1);
}

static void on_progress(j_common_ptr common)
{
	struct job *job = (struct job *)common->err;

	if (job->in.input_scan_number <= SCANS_MAX)
		return;
	err_set(job->err, ERR_TOO_LARGE, "the JPEG has more than %d scans", SCANS_MAX);
	refuse(job);
}

static void catch_errors(struct job *job)
{
	jpeg_std_error(&job->errors);
	job->errors.error_exit = on_error;
	job->errors.output_message = on_message;
}

/* Print colours; Adobe's programs store them inverted. */
static void cmyk_to_rgb(const struct job *job, const uint8_t *from, uint8_t *to)
{
	for (JDIMENSION x = 0; x < job->in.output_width; x++, from += 4, to += 3) {
		unsigned k = job->in.saw_Adobe_marker ? from[3] : 255u - from[3];

		for (unsigned c = 0; c < 3; c++) {
			unsigned v = job->in.saw_Adobe_marker ? from[c] : 255u - from[c];
			to[c] = (uint8_t)((v * k + 127) / 255);
		}
	}
}

/* Before anything is allocated for the pixels. Progressive files are held as a whole. */
static void read_header(struct job *job)
{
	struct jpeg_decompress_struct *in = &job->in;

	jpeg_read_header(in, TRUE);
	if (picture_check_size(in->image_width, in->image_height,
			       jpeg_has_multiple_scans(in) ? PICTURE_WHOLE_MAX : PICTURE_PIXELS_MAX,
			       job->err) < 0)
		refuse(job);
	switch (in->jpeg_color_space) {
	case JCS_GRAYSCALE: in->out_color_space = JCS_GRAYSCALE; break;
	case JCS_CMYK:
	case JCS_YCCK: in->out_color_space = JCS_CMYK; break;
	default: in->out_color_space = JCS_RGB; break;
	}
	/* The exact transforms: the same bytes on every machine. */
	in->dct_method = JDCT_ISLOW;
}

static void read_rows(struct job *job)
{
	struct jpeg_decompress_struct *in = &job->in;
	bool cmyk = in->out_color_space == JCS_CMYK;
	unsigned channels = in->out_color_space == JCS_GRAYSCALE ? 1 : 3;

	job->row = mem_alloc((size_t)in->output_width * (size_t)in->output_components);
	job->rgb = cmyk ? mem_alloc((size_t)in->output_width * 3) : NULL;
	job->scaler = scaler_new(in->output_width, in->output_height, channels, job->max_tokens);
	while (in->output_scanline < in->output_height) {
		jpeg_read_scanlines(in, &job->row, 1);
		if (cmyk)
			cmyk_to_rgb(job, job->row, job->rgb);
		scaler_add(job->scaler, cmyk ? job->rgb : job->row);
	}
}

static int run_decode(struct job *job, const struct buf *file)
{
	if (setjmp(job->back))
		return -1;
	jpeg_create_decompress(&job->in);
	job->in.progress = &job->progress;
	job->progress.progress_monitor = on_progress;
	jpeg_mem_src(&job->in, (const unsigned char *)file->data, file->len);
	read_header(job);
	jpeg_start_decompress(&job->in);
	read_rows(job);
	jpeg_finish_decompress(&job->in);
	return 0;
}

int jpeg_decode(const struct buf *file, unsigned max_tokens, struct picture *ret, struct err *err)
{
	struct job job = {.err = err, .max_tokens = max_tokens};

	catch_errors(&job);
	job.in.err = &job.errors;
	int rc = run_decode(&job, file);
	if (rc == 0)
		scaler_take(job.scaler, ret);
	jpeg_destroy_decompress(&job.in);
	scaler_free(job.scaler);
	free(job.row);
	free(job.rgb);
	return rc;
}

/* Over white; JPEG has no transparency. */
static void flatten(const struct picture *p, const uint8_t *from, uint8_t *to)
{
	unsigned colours = p->channels < 3 ? 1 : 3;
	bool alpha = p->channels % 2 == 0;

	for (uint32_t x = 0; x < p->width; x++, from += p->channels) {
		unsigned a = alpha ? from[colours] : 255;

		for (unsigned c = 0; c < colours; c++)
			*to++ = (uint8_t)((from[c] * a + 255 * (255 - a) + 127) / 255);
	}
}

static int run_encode(struct job *job, const struct picture *p)
{
	struct jpeg_compress_struct *out = &job->out;

	if (setjmp(job->back))
		return -1;
	jpeg_create_compress(out);
	jpeg_mem_dest(out, &job->bytes, &job->n_bytes);
	out->image_width = p->width;
	out->image_height = p->height;
	out->input_components = p->channels < 3 ? 1 : 3;
	out->in_color_space = p->channels < 3 ? JCS_GRAYSCALE : JCS_RGB;
	jpeg_set_defaults(out);
	jpeg_set_quality(out, QUALITY, TRUE);
	out->dct_method = JDCT_ISLOW;
	jpeg_start_compress(out, TRUE);
	job->row = mem_alloc((size_t)p->width * 3);
	for (uint32_t y = 0; y < p->height; y++) {
		flatten(p, p->pixels + y * picture_stride(p), job->row);
		jpeg_write_scanlines(out, &job->row, 1);
	}
	jpeg_finish_compress(out);
	return 0;
}

int jpeg_encode(const struct picture *picture, struct buf *out, struct err *err)
{
	struct job job = {.err = err};

	catch_errors(&job);
	job.out.err = &job.errors;
	int rc = run_encode(&job, picture);
	if (rc == 0 && buf_add(out, job.bytes, job.n_bytes) < 0)
		rc = err_set(err, ERR_TOO_LARGE, "the picture as shown is too large");
	jpeg_destroy_compress(&job.out);
	free(job.bytes);
	free(job.row);
	return rc;
}
