/*
 * scale.c - see picture.h. Runs in baton-image.
 *
 * In units of 1/(width * shown width) a source pixel is `shown width` long and a shown pixel is
 * `width` long, so every overlap is a whole number and the weights of a shown pixel sum up to width
 * (times height, downwards). Sums stay below 255 * 255 * 10^8, far from 64 bits.
 */
#include "agent/image/picture.h"

#include <stdbool.h>

#include "base/memory.h"

struct scaler {
	uint32_t width, height;
	unsigned channels;
	struct picture shown;
	uint64_t *line;		 /* one source row, scaled to the shown width */
	uint64_t *total;	 /* the shown row that is being summed up */
	uint32_t row, shown_row; /* next source row, shown row of `total` */
};

void picture_release(struct picture *picture)
{
	free(picture->pixels);
	*picture = (struct picture){0};
}

unsigned picture_tokens(const struct picture *picture)
{
	uint64_t pixels = (uint64_t)picture->width * picture->height;

	return (unsigned)((pixels + PICTURE_PIXELS_PER_TOKEN - 1) / PICTURE_PIXELS_PER_TOKEN);
}

int picture_check_size(uint64_t width, uint64_t height, uint64_t max_pixels, struct err *err)
{
	if (width == 0 || height == 0)
		return err_set(err, ERR_INVALID, "the picture is empty");
	if (width > PICTURE_EDGE_MAX || height > PICTURE_EDGE_MAX || width * height > max_pixels)
		return err_set(err, ERR_TOO_LARGE, "the picture has %llu x %llu pixels, too many",
			       (unsigned long long)width, (unsigned long long)height);
	return 0;
}

static uint32_t isqrt(uint64_t n)
{
	uint64_t root = 0;

	for (uint64_t bit = (uint64_t)1 << 31; bit; bit >>= 1) {
		if ((root + bit) * (root + bit) <= n)
			root += bit;
	}
	return (uint32_t)root;
}

/* The largest size with the same shape that fits both limits. */
static void choose_size(struct scaler *s, unsigned max_tokens)
{
	uint64_t most = (uint64_t)max_tokens * PICTURE_PIXELS_PER_TOKEN;
	uint64_t w = s->width, h = s->height;
	uint64_t longest = w > h ? w : h;

	if (longest > PICTURE_SHOWN_EDGE) {
		w = w * PICTURE_SHOWN_EDGE / longest;
		h = h * PICTURE_SHOWN_EDGE / longest;
	}
	w = w ? w : 1;
	h = h ? h : 1;
	if (w * h > most) {
		uint64_t scaled = isqrt(most * s->width / s->height);
		w = scaled < 1 ? 1 : scaled < w ? scaled : w;
		h = most / w < h ? most / w : h;
		/* The shape again: h from w, unless that is more than there is room for. */
		uint64_t shaped = (w * s->height + s->width / 2) / s->width;
		h = shaped < 1 ? 1 : shaped < h ? shaped : h;
	}
	s->shown.width = (uint32_t)w;
	s->shown.height = (uint32_t)h;
}

struct scaler *scaler_new(uint32_t width, uint32_t height, unsigned channels, unsigned max_tokens)
{
	struct scaler *s = mem_alloc(sizeof(*s));

	s->width = width;
	s->height = height;
	s->channels = s->shown.channels = channels;
	choose_size(s, max_tokens);
	size_t stride = picture_stride(&s->shown);
	s->shown.pixels = mem_alloc(stride * s->shown.height);
	s->line = mem_alloc(stride * sizeof(*s->line));
	s->total = mem_alloc(stride * sizeof(*s->total));
	return s;
}

void scaler_free(struct scaler *scaler)
{
	if (!scaler)
		return;
	picture_release(&scaler->shown);
	free(scaler->line);
	free(scaler->total);
	free(scaler);
}

static void add_pixel(const struct scaler *s, uint64_t *to, const uint8_t *pixel, uint64_t weight)
{
	bool alpha = s->channels % 2 == 0;
	unsigned colours = alpha ? s->channels - 1 : s->channels;

	if (alpha) {
		to[colours] += weight * pixel[colours];
		weight *= pixel[colours];
	}
	for (unsigned c = 0; c < colours; c++)
		to[c] += weight * pixel[c];
}

static void scale_line(struct scaler *s, const uint8_t *row)
{
	uint64_t source = s->shown.width, shown = s->width; /* lengths of a pixel, see above */
	uint64_t *to = s->line;
	uint64_t left = shown; /* what is still missing to the shown pixel */

	memset(s->line, 0, picture_stride(&s->shown) * sizeof(*s->line));
	for (uint32_t x = 0; x < s->width; x++, row += s->channels) {
		uint64_t part = source < left ? source : left;

		add_pixel(s, to, row, part);
		left -= part;
		if (left > 0)
			continue;
		to += s->channels;
		left = shown;
		if (source > part) {
			add_pixel(s, to, row, source - part);
			left -= source - part;
		}
	}
}

static void add_line(struct scaler *s, uint64_t weight)
{
	size_t stride = picture_stride(&s->shown);

	for (size_t i = 0; i < stride; i++)
		s->total[i] += weight * s->line[i];
}

static uint8_t mean(uint64_t sum, uint64_t weight)
{
	return weight ? (uint8_t)((sum + weight / 2) / weight) : 0;
}

static void finish_row(struct scaler *s)
{
	size_t stride = picture_stride(&s->shown);
	uint8_t *to = s->shown.pixels + stride * s->shown_row;
	uint64_t area = (uint64_t)s->width * s->height;
	bool alpha = s->channels % 2 == 0;
	unsigned colours = alpha ? s->channels - 1 : s->channels;

	for (size_t i = 0; i < stride; i += s->channels) {
		uint64_t weight = alpha ? s->total[i + colours] : area;

		for (unsigned c = 0; c < colours; c++)
			to[i + c] = mean(s->total[i + c], weight);
		if (alpha)
			to[i + colours] = mean(s->total[i + colours], area);
	}
	memset(s->total, 0, stride * sizeof(*s->total));
	s->shown_row++;
}

void scaler_add(struct scaler *s, const uint8_t *row)
{
	uint64_t source = s->shown.height, shown = s->height;
	uint64_t from = s->row * source, edge = ((uint64_t)s->shown_row + 1) * shown;

	if (s->row == s->height)
		return;
	s->row++;
	scale_line(s, row);
	uint64_t part = from + source < edge ? source : edge - from;
	add_line(s, part);
	if (from + source < edge)
		return;
	finish_row(s);
	if (source > part)
		add_line(s, source - part);
}

void scaler_take(struct scaler *s, struct picture *ret)
{
	*ret = s->shown;
	s->shown.pixels = NULL;
}
