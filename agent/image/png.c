/*
 * png.c - see codec.h. Runs in baton-image.
 *
 * libpng reports fatal errors by longjmp, which jumps over cleanup attributes: what a job owns
 * stands in a struct of the caller, and the functions between setjmp and libpng hold nothing.
 */
#include "agent/image/codec.h"

#include <png.h>
#include <stdbool.h>

#include "base/memory.h"

#define CHUNK_MAX  (8 << 20) /* profiles and texts of a file */
#define CHUNKS_MAX 64
#define LEVEL	   6

struct reader {
	const struct buf *file;
	size_t at;
	unsigned max_tokens;
	struct err *err;
	bool failed; /* err is set already */
	png_structp png;
	png_infop info;
	struct scaler *scaler;
	uint8_t *pixels; /* a row, or the whole picture if it is interlaced */
	png_bytepp rows;
};

/* The first error counts; libpng may go on to complain about its consequences. */
static void on_error(png_structp png, png_const_charp message)
{
	struct reader *r = png_get_error_ptr(png);

	if (r && !r->failed)
		err_set(r->err, ERR_INVALID, "not a valid PNG: %s", message);
	if (r)
		r->failed = true;
	png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp message)
{
}

static void on_read(png_structp png, png_bytep to, size_t n)
{
	struct reader *r = png_get_io_ptr(png);

	if (n > r->file->len - r->at)
		png_error(png, "the file ends too early");
	memcpy(to, r->file->data + r->at, n);
	r->at += n;
}

/* All kinds of PNG become 8 bits a channel, grey or RGB, with alpha if they have any. */
static void ask_for_bytes(struct reader *r)
{
	png_set_scale_16(r->png);
	png_set_expand(r->png);
	png_set_packing(r->png);
}

static void read_whole(struct reader *r, uint32_t height, size_t stride)
{
	r->pixels = mem_alloc(stride * height);
	r->rows = mem_alloc(height * sizeof(*r->rows));
	for (uint32_t y = 0; y < height; y++)
		r->rows[y] = r->pixels + y * stride;
	png_read_image(r->png, r->rows);
	for (uint32_t y = 0; y < height; y++)
		scaler_add(r->scaler, r->rows[y]);
}

static void read_rows(struct reader *r, uint32_t height, size_t stride)
{
	r->pixels = mem_alloc(stride);
	for (uint32_t y = 0; y < height; y++) {
		png_read_row(r->png, r->pixels, NULL);
		scaler_add(r->scaler, r->pixels);
	}
}

static void read_picture(struct reader *r)
{
	png_read_info(r->png, r->info);
	uint32_t width = png_get_image_width(r->png, r->info);
	uint32_t height = png_get_image_height(r->png, r->info);
	bool whole = png_get_interlace_type(r->png, r->info) != PNG_INTERLACE_NONE;
	if (picture_check_size(width, height, whole ? PICTURE_WHOLE_MAX : PICTURE_PIXELS_MAX,
			       r->err) < 0) {
		r->failed = true;
		png_error(r->png, "size");
	}
	ask_for_bytes(r);
	if (whole)
		png_set_interlace_handling(r->png);
	png_read_update_info(r->png, r->info);
	unsigned channels = png_get_channels(r->png, r->info);
	size_t stride = png_get_rowbytes(r->png, r->info);
	if (channels < 1 || channels > 4 || stride != (size_t)width * channels)
		png_error(r->png, "unknown kind of pixels");
	r->scaler = scaler_new(width, height, channels, r->max_tokens);
	if (whole)
		read_whole(r, height, stride);
	else
		read_rows(r, height, stride);
	png_read_end(r->png, NULL);
}

/* The frame that longjmp comes back to: no locals. */
static int run_reader(struct reader *r)
{
	if (setjmp(png_jmpbuf(r->png)))
		return -1;
	png_set_user_limits(r->png, PICTURE_EDGE_MAX, PICTURE_EDGE_MAX);
	png_set_chunk_malloc_max(r->png, CHUNK_MAX);
	png_set_chunk_cache_max(r->png, CHUNKS_MAX);
	png_set_read_fn(r->png, r, on_read);
	read_picture(r);
	return 0;
}

int png_decode(const struct buf *file, unsigned max_tokens, struct picture *ret, struct err *err)
{
	struct err local = ERR_INIT;
	struct reader r = {.file = file, .max_tokens = max_tokens, .err = err ? err : &local};
	int rc = -1;

	r.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &r, on_error, on_warning);
	r.info = r.png ? png_create_info_struct(r.png) : NULL;
	if (r.info)
		rc = run_reader(&r);
	else
		err_set(err, ERR_UNSUPPORTED, "libpng cannot be used");
	if (rc == 0)
		scaler_take(r.scaler, ret);
	png_destroy_read_struct(&r.png, &r.info, NULL);
	scaler_free(r.scaler);
	free(r.pixels);
	free(r.rows);
	return rc;
}

struct writer {
	const struct picture *picture;
	struct buf *out;
	struct err *err;
	png_structp png;
	png_infop info;
};

static void on_write_error(png_structp png, png_const_charp message)
{
	struct writer *w = png_get_error_ptr(png);

	if (w)
		err_set(w->err, ERR_INVALID, "cannot write a PNG: %s", message);
	png_longjmp(png, 1);
}

static void on_write(png_structp png, png_bytep bytes, size_t n)
{
	struct writer *w = png_get_io_ptr(png);

	if (buf_add(w->out, bytes, n) < 0)
		png_error(png, "it is too large");
}

static void on_flush(png_structp png)
{
}

static int run_writer(struct writer *w)
{
	static const int types[] = {0, PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA,
				    PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_RGB_ALPHA};
	const struct picture *p = w->picture;

	if (setjmp(png_jmpbuf(w->png)))
		return -1;
	png_set_write_fn(w->png, w, on_write, on_flush);
	png_set_compression_level(w->png, LEVEL);
	png_set_IHDR(w->png, w->info, p->width, p->height, 8, types[p->channels],
		     PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
	png_write_info(w->png, w->info);
	for (uint32_t y = 0; y < p->height; y++)
		png_write_row(w->png, p->pixels + y * picture_stride(p));
	png_write_end(w->png, NULL);
	return 0;
}

int png_encode(const struct picture *picture, struct buf *out, struct err *err)
{
	struct writer w = {.picture = picture, .out = out, .err = err};
	int rc = -1;

	w.png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &w, on_write_error, on_warning);
	w.info = w.png ? png_create_info_struct(w.png) : NULL;
	if (w.info)
		rc = run_writer(&w);
	else
		err_set(err, ERR_UNSUPPORTED, "libpng cannot be used");
	png_destroy_write_struct(&w.png, &w.info);
	return rc;
}
