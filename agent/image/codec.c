/*
 * codec.c - which decoder, and which encoder. See codec.h. Runs in baton-image.
 *
 * Screenshots come as PNG and stay PNG: text would suffer as a JPEG. Photographs saved as PNG can
 * exceed what providers take, and then a JPEG serves better than an error.
 */
#include "agent/image/codec.h"

#include "base/memory.h"

bool picture_is_jpeg(const struct buf *file)
{
	return file->len >= 3 && memcmp(file->data, "\xff\xd8\xff", 3) == 0;
}

int picture_decode(const struct buf *file, unsigned max_tokens, struct picture *ret,
		   struct err *err)
{
	if (file->len >= 8 && memcmp(file->data, "\x89PNG\r\n\x1a\n", 8) == 0)
		return png_decode(file, max_tokens, ret, err);
	if (picture_is_jpeg(file))
		return jpeg_decode(file, max_tokens, ret, err);
	return err_set(err, ERR_INVALID, "neither a PNG nor a JPEG file");
}

int picture_encode(const struct picture *picture, bool jpeg, struct buf *out,
		   const char **ret_media_type, struct err *err)
{
	size_t start = out->len;

	*ret_media_type = "image/png";
	if (!jpeg && png_encode(picture, out, NULL) == 0)
		return 0;
	buf_truncate(out, start);
	out->overflow = false;
	*ret_media_type = "image/jpeg";
	return jpeg_encode(picture, out, err);
}
