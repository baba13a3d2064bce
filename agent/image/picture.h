/*
 * picture.h - pixels on their way from a file of unknown origin to a picture that a model is shown.
 *
 * A decoder gives its rows to a scaler, which keeps the scaled picture only: the memory that a file
 * can ask for depends on what is shown, not on what its header claims. 8 bits a channel; channels
 * are grey, grey and alpha, RGB, or RGB and alpha.
 */
#ifndef BATON_AGENT_IMAGE_PICTURE_H
#define BATON_AGENT_IMAGE_PICTURE_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

#define PICTURE_FILE_MAX	 ((size_t)32 << 20)
#define PICTURE_EDGE_MAX	 30000u	   /* of a file */
#define PICTURE_PIXELS_MAX	 100000000 /* of a file, read row by row */
#define PICTURE_WHOLE_MAX	 32000000  /* of a file that must be in memory as a whole */
#define PICTURE_SHOWN_EDGE	 2000u	   /* providers refuse longer ones among many pictures */
#define PICTURE_PIXELS_PER_TOKEN 750u	   /* the provider's formula (W6) */

struct picture {
	uint32_t width, height;
	unsigned channels;
	uint8_t *pixels; /* rows without padding */
};
void picture_release(struct picture *picture);
static inline size_t picture_stride(const struct picture *picture)
{
	return (size_t)picture->width * picture->channels;
}
unsigned picture_tokens(const struct picture *picture); /* rounded up */

/* Refuses sizes that are nothing or too much, before anything is allocated for them. */
int picture_check_size(uint64_t width, uint64_t height, uint64_t max_pixels, struct err *err);

/* Averages over areas, exactly and in whole numbers: the same file gives the same bytes on every
 * machine, which the prompt cache needs. Colour counts by its opacity. */
struct scaler;
/* Width and height of what is to come (checked by picture_check_size) decide the scaled size: at
 * most max_tokens and PICTURE_SHOWN_EDGE, never larger than the file. */
struct scaler *scaler_new(uint32_t width, uint32_t height, unsigned channels, unsigned max_tokens);
void scaler_free(struct scaler *scaler); /* NULL allowed */
void scaler_add(struct scaler *scaler,
		const uint8_t *row); /* width * channels bytes, from the top */
/* The picture, once all rows were added; rows that are missing are black. */
void scaler_take(struct scaler *scaler, struct picture *ret);

#endif
