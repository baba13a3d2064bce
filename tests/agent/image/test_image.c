/*
 * test_image.c - baton-image: what a model is shown of a picture (W6), and what a hostile file
 * cannot do.
 *
 * Pictures are made here, so that no binary lies in the tree: the two libraries write the kinds
 * that our own encoders do not (interlaced, palette, 16 bits, progressive, print colours).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#include <jpeglib.h>
#include <png.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "agent/image/codec.h"
#include "base/env.h"
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/spawn.h"

static struct picture make_picture(uint32_t width, uint32_t height, unsigned channels)
{
	struct picture p = {.width = width, .height = height, .channels = channels};

	p.pixels = mem_alloc(picture_stride(&p) * height);
	for (uint32_t y = 0; y < height; y++) {
		for (uint32_t x = 0; x < width; x++) {
			uint8_t *at = p.pixels + y * picture_stride(&p) + (size_t)x * channels;

			for (unsigned c = 0; c < channels; c++)
				at[c] = (uint8_t)(x * 3 + y * 5 + c * 40);
		}
	}
	return p;
}

static void make_png(struct buf *out, uint32_t width, uint32_t height, unsigned channels)
{
	struct picture p = make_picture(width, height, channels);

	assert_int_equal(png_encode(&p, out, NULL), 0);
	picture_release(&p);
}

static void on_png(png_structp png, png_bytep bytes, size_t n)
{
	buf_add(png_get_io_ptr(png), bytes, n);
}

/* Kinds that png_encode does not write: palette with transparency, 16 bits, 1 bit, interlaced. */
static void make_odd_png(struct buf *out, uint32_t size, int type, int depth, int interlace)
{
	png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
	png_infop info = png_create_info_struct(png);
	const png_color colours[] = {{255, 0, 0}, {0, 0, 255}};
	const png_byte clear[] = {0};
	AUTO_FREE uint8_t *row = mem_alloc((size_t)size * 8);

	memset(row, 0x55, (size_t)size * 8);
	png_set_write_fn(png, out, on_png, NULL);
	png_set_IHDR(png, info, size, size, depth, type, interlace, 0, 0);
	if (type == PNG_COLOR_TYPE_PALETTE) {
		png_set_PLTE(png, info, colours, 2);
		png_set_tRNS(png, info, clear, 1, NULL);
	}
	png_write_info(png, info);
	for (int pass = 0, n = png_set_interlace_handling(png); pass < n; pass++) {
		for (uint32_t y = 0; y < size; y++)
			png_write_row(png, row);
	}
	png_write_end(png, NULL);
	png_destroy_write_struct(&png, &info);
}

static void make_jpeg(struct buf *out, uint32_t size, J_COLOR_SPACE space, bool progressive)
{
	struct jpeg_compress_struct c;
	struct jpeg_error_mgr errors;
	unsigned char *bytes = NULL;
	unsigned long n = 0;

	c.err = jpeg_std_error(&errors);
	jpeg_create_compress(&c);
	jpeg_mem_dest(&c, &bytes, &n);
	c.image_width = c.image_height = size;
	c.input_components = space == JCS_CMYK ? 4 : space == JCS_RGB ? 3 : 1;
	c.in_color_space = space;
	jpeg_set_defaults(&c);
	if (progressive)
		jpeg_simple_progression(&c);
	jpeg_start_compress(&c, TRUE);
	AUTO_FREE uint8_t *row = mem_alloc((size_t)size * 4);
	memset(row, 200, (size_t)size * 4);
	for (uint32_t y = 0; y < size; y++)
		jpeg_write_scanlines(&c, &row, 1);
	jpeg_finish_compress(&c);
	jpeg_destroy_compress(&c);
	buf_add(out, bytes, n);
	free(bytes);
}

static struct picture decode(const struct buf *file, unsigned max_tokens)
{
	struct picture p = {0};
	struct err err = ERR_INIT;

	if (picture_decode(file, max_tokens, &p, &err) < 0)
		fail_msg("%s", err.message);
	return p;
}

static void assert_refused(const struct buf *file, const char *why)
{
	struct picture p = {0};
	struct err err = ERR_INIT;

	assert_int_equal(picture_decode(file, 2000, &p, &err), -1);
	if (!strstr(err.message, why))
		fail_msg("'%s' does not say '%s'", err.message, why);
}

static void test_small_png_keeps_its_pixels(void **state)
{
	for (unsigned channels = 1; channels <= 4; channels++) {
		AUTO_BUF struct buf file = BUF_INIT;
		struct picture want = make_picture(37, 23, channels);

		if (channels % 2 == 0) { /* opaque: what is clear has no colour */
			for (size_t i = channels - 1; i < 37 * 23 * channels; i += channels)
				want.pixels[i] = 255;
		}
		assert_int_equal(png_encode(&want, &file, NULL), 0);
		struct picture got = decode(&file, 2000);
		assert_int_equal(got.width, 37);
		assert_int_equal(got.channels, channels);
		assert_memory_equal(got.pixels, want.pixels, picture_stride(&want) * want.height);
		picture_release(&got);
		picture_release(&want);
	}
}

static void test_w6_scaled_until_the_formula_fits(void **state)
{
	static const struct {
		uint32_t width, height;
		unsigned tokens;
	} cases[] = {{3000, 2000, 2000}, {2000, 3000, 2000}, {1225, 1224, 2000},
		     {1226, 1226, 2000}, {9000, 10, 2000},   {7, 9000, 2000},
		     {500, 500, 10},	 {300, 2, 1},	     {1, 1, 1}};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		AUTO_BUF struct buf file = BUF_INIT;

		make_png(&file, cases[i].width, cases[i].height, 1);
		struct picture got = decode(&file, cases[i].tokens);
		assert_true(picture_tokens(&got) <= cases[i].tokens);
		assert_true(got.width >= 1 && got.width <= MIN(cases[i].width, PICTURE_SHOWN_EDGE));
		assert_true(got.height >= 1 &&
			    got.height <= MIN(cases[i].height, PICTURE_SHOWN_EDGE));
		picture_release(&got);
	}
	AUTO_BUF struct buf file = BUF_INIT;
	make_png(&file, 3000, 2000, 3);
	struct picture got = decode(&file, 2000);
	/* 1,500,000 pixels at 3:2; not much smaller than need be */
	assert_int_equal(got.width, 1500);
	assert_int_equal(got.height, 1000);
	picture_release(&got);
}

static void test_scaling_averages_areas(void **state)
{
	static const uint8_t block[2][2] = {{0, 90}, {30, 60}};
	struct scaler *s = scaler_new(60, 50, 1, 1); /* 750 pixels: half as wide and high */
	uint8_t row[60];
	struct picture got;

	for (int y = 0; y < 50; y++) {
		for (int x = 0; x < 60; x++)
			row[x] = (uint8_t)(block[y % 2][x % 2] + x / 2);
		scaler_add(s, row);
	}
	scaler_take(s, &got);
	scaler_free(s);
	assert_int_equal(got.width, 30);
	assert_int_equal(got.height, 25);
	for (unsigned i = 0; i < 30 * 25; i++)
		assert_int_equal(got.pixels[i], 45 + i % 30);
	picture_release(&got);
}

/* Pixels that do not fit a whole number of times: no brightness is lost. */
static void test_scaling_keeps_the_mean(void **state)
{
	struct scaler *s = scaler_new(1009, 997, 1, 100);
	AUTO_FREE uint8_t *row = mem_alloc(1009);
	uint64_t before = 0, after = 0;
	struct picture got;

	for (unsigned y = 0; y < 997; y++) {
		for (unsigned x = 0; x < 1009; x++)
			before += row[x] = (uint8_t)(x * y);
		scaler_add(s, row);
	}
	scaler_take(s, &got);
	scaler_free(s);
	size_t n = (size_t)got.width * got.height;
	for (size_t i = 0; i < n; i++)
		after += got.pixels[i];
	assert_in_range(after * 1000 / n, before * 1000 / (1009 * 997) - 20,
			before * 1000 / (1009 * 997) + 20);
	picture_release(&got);
}

static void test_clear_pixels_lend_no_colour(void **state)
{
	AUTO_BUF struct buf file = BUF_INIT;
	struct picture p = make_picture(1000, 2, 4);

	for (size_t i = 0; i < 2000; i++) { /* every other pixel: green, but wholly clear */
		const uint8_t red[] = {200, 0, 0, 255}, hidden[] = {0, 255, 0, 0};

		memcpy(p.pixels + 4 * i, i % 2 ? hidden : red, 4);
	}
	png_encode(&p, &file, NULL);
	picture_release(&p);
	p = decode(&file, 1);
	assert_int_equal(p.pixels[0], 200);
	assert_int_equal(p.pixels[1], 0);
	assert_in_range(p.pixels[3], 100, 160);
	picture_release(&p);
}

static void test_every_kind_of_png(void **state)
{
	static const struct {
		int type, depth, interlace;
		unsigned channels;
	} kinds[] = {
		{PNG_COLOR_TYPE_PALETTE, 1, 0, 4},    {PNG_COLOR_TYPE_GRAY, 1, 0, 1},
		{PNG_COLOR_TYPE_GRAY, 16, 1, 1},      {PNG_COLOR_TYPE_RGB, 16, 0, 3},
		{PNG_COLOR_TYPE_RGB_ALPHA, 16, 1, 4},
	};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		AUTO_BUF struct buf file = BUF_INIT;

		make_odd_png(&file, 33, kinds[i].type, kinds[i].depth, kinds[i].interlace);
		struct picture got = decode(&file, 2000);
		assert_int_equal(got.channels, kinds[i].channels);
		if (kinds[i].type == PNG_COLOR_TYPE_PALETTE) { /* bits 0101: clear, blue */
			assert_int_equal(got.pixels[3], 0);
			assert_memory_equal(got.pixels + 4, "\0\0\377\377", 4);
		}
		if (kinds[i].depth == 16)
			assert_int_equal(got.pixels[0], 0x55);
		picture_release(&got);
	}
}

static void test_every_kind_of_jpeg(void **state)
{
	static const struct {
		J_COLOR_SPACE space;
		bool progressive;
		unsigned channels, value;
	} kinds[] = {
		{JCS_GRAYSCALE, false, 1, 200},
		{JCS_RGB, false, 3, 200},
		{JCS_RGB, true, 3, 200},
		{JCS_CMYK, false, 3, 157}, /* Adobe: 200 * 200 / 255 */
	};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		AUTO_BUF struct buf file = BUF_INIT;

		make_jpeg(&file, 2500, kinds[i].space, kinds[i].progressive);
		struct picture got = decode(&file, 2000);
		assert_int_equal(got.channels, kinds[i].channels);
		assert_true(picture_tokens(&got) <= 2000);
		assert_in_range(got.pixels[0], kinds[i].value - 2, kinds[i].value + 2);
		picture_release(&got);
	}
}

static void test_claimed_sizes_are_refused_before_memory_is_taken(void **state)
{
	AUTO_BUF struct buf png = BUF_INIT;
	AUTO_BUF struct buf wide = BUF_INIT;
	AUTO_BUF struct buf jpeg = BUF_INIT;

	make_png(&png, 4, 4, 3);
	memcpy(png.data + 16, "\x7f\xff\xff\xff\x7f\xff\xff\xff", 8);
	assert_refused(&png, "PNG"); /* the sum does not fit any more; still no crash */
	make_odd_png(&wide, 20000, PNG_COLOR_TYPE_GRAY, 1, 0);
	assert_refused(&wide, "too many");
	make_jpeg(&jpeg, 16, JCS_RGB, false);
	for (size_t i = 0; i + 9 < jpeg.len; i++) { /* the frame header: height, width */
		if (memcmp(jpeg.data + i, "\xff\xc0", 2) == 0)
			memcpy(jpeg.data + i + 5, "\xf0\x00\xf0\x00", 4);
	}
	assert_refused(&jpeg, "too many");
}

static void test_interlaced_files_have_a_smaller_limit(void **state)
{
	AUTO_BUF struct buf rows = BUF_INIT;
	AUTO_BUF struct buf whole = BUF_INIT;

	make_odd_png(&rows, 6000, PNG_COLOR_TYPE_GRAY, 1, 0);
	struct picture got = decode(&rows, 2000);
	picture_release(&got);
	make_odd_png(&whole, 6000, PNG_COLOR_TYPE_GRAY, 1, 1);
	assert_refused(&whole, "too many");
}

static void test_damaged_files_end_in_an_error_or_a_picture(void **state)
{
	AUTO_BUF struct buf png = BUF_INIT;
	AUTO_BUF struct buf jpeg = BUF_INIT;
	AUTO_BUF struct buf slow = BUF_INIT;
	struct buf *files[] = {&png, &jpeg, &slow};
	unsigned refused = 0;

	make_odd_png(&png, 24, PNG_COLOR_TYPE_RGB_ALPHA, 16, 1);
	make_jpeg(&jpeg, 24, JCS_RGB, false);
	make_jpeg(&slow, 24, JCS_RGB, true);
	for (size_t f = 0; f < ARRAY_SIZE(files); f++) {
		for (size_t i = 0; i < files[f]->len; i++) {
			struct picture p = {0};
			char was = files[f]->data[i];

			files[f]->data[i] = (char)(was ^ (1 << i % 8));
			refused += picture_decode(files[f], 2000, &p, NULL) < 0;
			picture_release(&p);
			files[f]->data[i] = was;
		}
		for (size_t n = files[f]->len; n-- > 0;) { /* cut anywhere */
			struct buf cut = {.data = files[f]->data, .len = n};
			struct picture p = {0};

			refused += picture_decode(&cut, 2000, &p, NULL) < 0;
			picture_release(&p);
		}
	}
	assert_true(refused > 100);
}

static void test_a_jpeg_of_very_many_scans_is_refused(void **state)
{
	AUTO_BUF struct buf file = BUF_INIT;
	AUTO_BUF struct buf bomb = BUF_INIT;
	size_t scan = 0;

	make_jpeg(&file, 64, JCS_GRAYSCALE, true);
	for (size_t i = 0; i + 1 < file.len; i++) { /* the last scan, again and again */
		if (memcmp(file.data + i, "\xff\xda", 2) == 0)
			scan = i;
	}
	assert_true(scan > 0);
	buf_add(&bomb, file.data, scan);
	for (int i = 0; i < 5000; i++)
		buf_add(&bomb, file.data + scan, file.len - 2 - scan);
	buf_add(&bomb, "\xff\xd9", 2);
	assert_refused(&bomb, "scans");
}

static int run_program(const char *argument, const struct buf *in, struct buf *out)
{
	const char *argv[] = {"baton-image", argument, NULL};
	struct spawn_opts opts = SPAWN_OPTS_INIT;
	AUTO_FD int input = memfd_create("in", MFD_CLOEXEC);
	AUTO_FD int output = memfd_create("out", MFD_CLOEXEC);
	struct err err = ERR_INIT;
	int status;
	pid_t pid;

	assert_int_equal(file_write_all(input, in->data, in->len, &err), 0);
	lseek(input, 0, SEEK_SET);
	opts.path = env_get("BATON_IMAGE");
	opts.argv = argv;
	opts.fd_in = input;
	opts.fd_out = output;
	if (spawn_process(&opts, &pid, NULL, &err) < 0)
		fail_msg("%s", err.message);
	waitpid(pid, &status, 0);
	lseek(output, 0, SEEK_SET);
	while (buf_read(out, output, 1 << 16) > 0)
		;
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void check_answer(const struct buf *in, const char *media_type)
{
	AUTO_BUF struct buf out = BUF_INIT;
	AUTO_BUF struct buf again = BUF_INIT;
	AUTO_JSON struct json_object *head = NULL;

	assert_int_equal(run_program("2000", in, &out), 0);
	assert_int_equal(run_program("2000", in, &again), 0);
	assert_int_equal(out.len, again.len); /* deterministic */
	assert_memory_equal(out.data, again.data, out.len);
	const char *lf = memchr(out.data, '\n', out.len);
	assert_non_null(lf);
	assert_int_equal(json_parse(out.data, (size_t)(lf - out.data), &head, NULL), 0);
	assert_string_equal(json_str(head, "media_type", ""), media_type);
	buf_drop(&out, (size_t)(lf - out.data) + 1);
	assert_true(out.len < 3750000);
	struct picture p = decode(&out, 100000);
	assert_int_equal(p.width, json_i64(head, "width", 0));
	assert_int_equal(p.height, json_i64(head, "height", 0));
	assert_int_equal(picture_tokens(&p), json_i64(head, "tokens", 0));
	picture_release(&p);
}

static void test_program(void **state)
{
	AUTO_BUF struct buf png = BUF_INIT;
	AUTO_BUF struct buf jpeg = BUF_INIT;
	AUTO_BUF struct buf noise = BUF_INIT;
	AUTO_BUF struct buf out = BUF_INIT;
	AUTO_BUF struct buf text = BUF_INIT;
	struct picture p = make_picture(1200, 1200, 4);
	uint32_t seed = 1;

	make_png(&png, 1600, 1200, 3);
	check_answer(&png, "image/png");
	make_jpeg(&jpeg, 2000, JCS_RGB, false);
	check_answer(&jpeg, "image/jpeg");
	for (size_t i = 0; i < picture_stride(&p) * p.height; i++)
		p.pixels[i] = (uint8_t)((seed = seed * 1664525 + 1013904223) >> 24);
	png_encode(&p, &noise, NULL);
	picture_release(&p);
	check_answer(&noise, "image/jpeg"); /* 5.8 MB as a PNG */
	buf_adds(&text, "GIF89a no");
	assert_int_equal(run_program("2000", &text, &out), 1);
	assert_int_equal(out.len, 0);
	assert_int_equal(run_program("none", &png, &out), 2);
	assert_int_equal(run_program("0", &png, &out), 2);
}

static void test_nothing_of_the_file_but_pixels_leaves(void **state)
{
	AUTO_BUF struct buf file = BUF_INIT;
	AUTO_BUF struct buf out = BUF_INIT;

	make_png(&file, 20, 20, 3);
	buf_adds(&file, "SECRET behind the end");
	assert_int_equal(run_program("2000", &file, &out), 0);
	assert_null(memmem(out.data, out.len, "SECRET", 6));
	buf_clear(&out);
	buf_clear(&file);
	make_jpeg(&file, 20, JCS_RGB, false);
	AUTO_BUF struct buf marked = BUF_INIT;
	buf_add(&marked, file.data, 2);
	buf_add(&marked, "\xff\xfe\x00\x08SECRET", 10); /* a comment */
	buf_add(&marked, file.data + 2, file.len - 2);
	assert_int_equal(run_program("2000", &marked, &out), 0);
	assert_null(memmem(out.data, out.len, "SECRET", 6));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_small_png_keeps_its_pixels),
		cmocka_unit_test(test_w6_scaled_until_the_formula_fits),
		cmocka_unit_test(test_scaling_averages_areas),
		cmocka_unit_test(test_scaling_keeps_the_mean),
		cmocka_unit_test(test_clear_pixels_lend_no_colour),
		cmocka_unit_test(test_every_kind_of_png),
		cmocka_unit_test(test_every_kind_of_jpeg),
		cmocka_unit_test(test_claimed_sizes_are_refused_before_memory_is_taken),
		cmocka_unit_test(test_interlaced_files_have_a_smaller_limit),
		cmocka_unit_test(test_damaged_files_end_in_an_error_or_a_picture),
		cmocka_unit_test(test_a_jpeg_of_very_many_scans_is_refused),
		cmocka_unit_test(test_program),
		cmocka_unit_test(test_nothing_of_the_file_but_pixels_leaves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
