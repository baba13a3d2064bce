/*
 * codec.h - PNG and JPEG in, PNG and JPEG out (internal to image/).
 *
 * The input is hostile: each decoder checks the size in the header before it allocates, and the
 * libraries' fatal errors come back here as ordinary ones.
 */
#ifndef BATON_AGENT_IMAGE_CODEC_H
#define BATON_AGENT_IMAGE_CODEC_H

#include <stdbool.h>

#include "agent/image/picture.h"

/* By the first bytes. The caller releases *ret. A picture that came as a PNG goes out as one,
 * unless that would be larger than providers take. */
int picture_decode(const struct buf *file, unsigned max_tokens, struct picture *ret,
		   struct err *err);
int picture_encode(const struct picture *picture, bool jpeg, struct buf *out,
		   const char **ret_media_type, struct err *err);
bool picture_is_jpeg(const struct buf *file);

int png_decode(const struct buf *file, unsigned max_tokens, struct picture *ret, struct err *err);
int jpeg_decode(const struct buf *file, unsigned max_tokens, struct picture *ret, struct err *err);

/* Appends a file to out. What is transparent is white in a JPEG. */
int png_encode(const struct picture *picture, struct buf *out, struct err *err);
int jpeg_encode(const struct picture *picture, struct buf *out, struct err *err);

#endif
