/*
 * frame.h - reading and writing single frames: the table lookup, the checks, the bytes.
 *
 * Pure functions over buffers, no descriptors: channel.h puts them on a socket. A frame is checked
 * for type, sender, size and fields before anybody sees it.
 */
#ifndef BATON_HANDOFF_FRAME_H
#define BATON_HANDOFF_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "handoff/frame_types.h"

#define FRAME_VERSION	 1
#define FRAME_HEADER_MAX 4096
#define FRAME_BODY_MAX	 65536
#define FRAME_FIELDS_MAX 4000 /* of `fields` below, so that the rest of the header has room */

enum frame_sender { FROM_A = 1, FROM_P = 2, FROM_G = 4, FROM_W = 8 };
enum frame_flag { FRAME_NO_BODY = 1, FRAME_PARTS = 2, FRAME_URGENT = 4 };

enum frame_type {
#define FRAME_ENUM(name, number, wire, senders, flags, max_body, fields) FRAME_##name = number,
	FRAME_CATALOGUE(FRAME_ENUM)
#undef FRAME_ENUM
};

struct frame_info {
	enum frame_type type;
	const char *wire;
	unsigned senders;
	unsigned flags;
	size_t max_body;
	const char *fields;
};

const struct frame_info *frame_info(enum frame_type type); /* NULL for an unknown number */
const char *frame_name(enum frame_type type);		   /* "data"; "?" if unknown */
/* The rows in order; *ret_count of them. For documentation and fuzzers. */
const struct frame_info *frame_table(size_t *ret_count);

/* Walks the `fields` string of a row: false at its end, else *ret and *fields moved on. */
struct frame_field {
	char name[32];
	char kind; /* i, s or b */
	bool optional;
};
bool frame_field_next(const char **fields, struct frame_field *ret);

/* A received frame. header and body are borrowed until the handler returns. */
struct frame {
	enum frame_type type;
	struct json_object *header;
	const char *body;
	size_t len;
	bool more;
};

/* Appends one frame to out. `fields` is the inside of the header after type and len, as JSON text
 * without braces ("\"req\":3"), NULL or "" for none, at most FRAME_FIELDS_MAX bytes; len <=
 * FRAME_BODY_MAX (abort: our own bug). */
void frame_write(struct buf *out, enum frame_type type, const char *fields, const void *body,
		 size_t len, bool more);
/* Only its header line, for a body that goes out from where it is. */
void frame_write_header(struct buf *out, enum frame_type type, const char *fields, size_t len,
			bool more);

/* Looks for one frame at the start of bytes. Returns 1 with *ret (header owned by the caller: put
 * it with json_object_put) and *ret_size bytes used; 0 if more bytes are needed (*ret_size is then
 * the least total that is worth another try); -1 with err (and the peer is to be dropped) on
 * anything malformed, a type that is unknown, or one that `sender` may not send. */
int frame_read(const char *bytes, size_t n, enum frame_sender sender, struct frame *ret,
	       size_t *ret_size, struct err *err);

#endif
