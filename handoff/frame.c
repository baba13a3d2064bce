/*
 * frame.c - one frame as bytes: the table made readable, the writer, and the reader with its
 * checks.
 *
 * The reader is where hostile bytes meet the program (every child is outside the trust of the
 * parent), so its order matters: the header's length before its JSON is parsed, type and sender
 * before sizes, sizes before a single byte of the body is waited for. A length of 1 GiB is thus
 * refused at the header, and nobody keeps memory for it. What it refuses is a value in err, never
 * an abort: the peer is dropped and the process goes on.
 *
 * Field checks read the same strings ("req:i reason:s?") that documentation and fuzzers read; they
 * are short, and a lookup in json-c's hash costs less than the line's parse.
 */
#include "handoff/frame.h"

#include <inttypes.h>

#include "base/memory.h"

static const struct frame_info table[] = {
#define FRAME_ROW(name, number, wire, senders, flags, max_body, fields)                            \
	{FRAME_##name, wire, senders, flags, max_body, fields},
	FRAME_CATALOGUE(FRAME_ROW)
#undef FRAME_ROW
};

const struct frame_info *frame_table(size_t *ret_count)
{
	*ret_count = ARRAY_SIZE(table);
	return table;
}

const struct frame_info *frame_info(enum frame_type type)
{
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (table[i].type == type)
			return &table[i];
	return NULL;
}

const char *frame_name(enum frame_type type)
{
	const struct frame_info *info = frame_info(type);
	return info ? info->wire : "?";
}

bool frame_field_next(const char **fields, struct frame_field *ret)
{
	const char *p = *fields + strspn(*fields, " ");
	size_t n = strcspn(p, ":");
	if (!*p)
		return false;
	if (n >= sizeof(ret->name) || !p[n] || !p[n + 1])
		abort();
	memcpy(ret->name, p, n);
	ret->name[n] = '\0';
	ret->kind = p[n + 1];
	ret->optional = p[n + 2] == '?';
	*fields = p + n + 2 + ret->optional;
	return true;
}

/* The limits are checked by channel.c, which can turn a caller's oversized text into a failed
 * channel; what arrives here above them is a bug, and half a frame on the wire would be a worse
 * one. */
void frame_write_header(struct buf *out, enum frame_type type, const char *fields, size_t len,
			bool more)
{
	size_t start = out->len;
	if (!frame_info(type) || len > FRAME_BODY_MAX)
		abort();
	buf_addf(out, "{\"type\":\"%s\",\"len\":%zu", frame_name(type), len);
	if (more)
		buf_adds(out, ",\"more\":true");
	if (fields && *fields) {
		buf_addc(out, ',');
		buf_adds(out, fields);
	}
	buf_adds(out, "}\n");
	if (out->len - start > FRAME_HEADER_MAX)
		abort();
}

void frame_write(struct buf *out, enum frame_type type, const char *fields, const void *body,
		 size_t len, bool more)
{
	frame_write_header(out, type, fields, len, more);
	buf_add(out, body, len);
}

/* The length is compared too: json-c gives "ping\\u0000x" as a C string that equals "ping". */
static const struct frame_info *info_by_wire(struct json_object *type)
{
	if (!json_object_is_type(type, json_type_string))
		return NULL;
	const char *wire = json_object_get_string(type);
	if (strlen(wire) != (size_t)json_object_get_string_len(type))
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (strcmp(table[i].wire, wire) == 0)
			return &table[i];
	return NULL;
}

/* A string with a NUL inside would read differently to strcmp and to the next hop: refused. */
static bool value_has_kind(struct json_object *value, char kind)
{
	switch (kind) {
	case 'i':
		return json_object_is_type(value, json_type_int) &&
		       json_object_get_int64(value) >= 0;
	case 's':
		return json_object_is_type(value, json_type_string) &&
		       strlen(json_object_get_string(value)) ==
			       (size_t)json_object_get_string_len(value);
	case 'b': return json_object_is_type(value, json_type_boolean);
	}
	return false;
}

static int check_fields(const struct frame_info *info, struct json_object *header, struct err *err)
{
	const char *fields = info->fields;
	struct frame_field field;
	while (frame_field_next(&fields, &field)) {
		if (!json_has(header, field.name)) {
			if (field.optional)
				continue;
			return err_set(err, ERR_INVALID, "frame '%s' lacks the field '%s'",
				       info->wire, field.name);
		}
		if (!value_has_kind(json_get(header, field.name), field.kind))
			return err_set(err, ERR_INVALID, "frame '%s': wrong kind of field '%s'",
				       info->wire, field.name);
	}
	return 0;
}

/* `len` is the only number that decides how much we wait for, so it is never defaulted. A type's
 * own maximum may be below that of a frame; for documents the sum of the parts is checked by
 * channel.c. */
static int check_sizes(const struct frame_info *info, struct json_object *header, size_t *ret_len,
		       bool *ret_more, struct err *err)
{
	if (!value_has_kind(json_get(header, "len"), 'i'))
		return err_set(err, ERR_INVALID, "frame '%s' lacks a length", info->wire);
	int64_t len = json_i64(header, "len", -1);
	bool parts = info->flags & FRAME_PARTS;
	size_t max = MIN(info->max_body, (size_t)FRAME_BODY_MAX);
	if (len > (int64_t)max)
		return err_set(err, ERR_TOO_LARGE, "frame '%s': a body of %" PRId64 " bytes",
			       info->wire, len);
	if (json_has(header, "more")) {
		if (!parts || !value_has_kind(json_get(header, "more"), 'b'))
			return err_set(err, ERR_INVALID, "frame '%s' cannot have more parts",
				       info->wire);
		*ret_more = json_flag(header, "more", false);
	}
	*ret_len = (size_t)len;
	return 0;
}

/* Type, then sender, then sizes, then fields: a peer that may not send a type learns nothing about
 * its fields, and no check relies on one that comes later. */
static int check_header(struct json_object *header, enum frame_sender sender, struct frame *ret,
			struct err *err)
{
	if (!json_object_is_type(header, json_type_object))
		return err_set(err, ERR_INVALID, "a frame header is not a JSON object");
	const struct frame_info *info = info_by_wire(json_get(header, "type"));
	if (!info)
		return err_set(err, ERR_INVALID, "a frame of an unknown type");
	if (!(info->senders & sender))
		return err_set(err, ERR_DENIED, "frame '%s' came from a peer that may not send it",
			       info->wire);
	if (check_sizes(info, header, &ret->len, &ret->more, err) < 0)
		return -1;
	ret->type = info->type;
	return check_fields(info, header, err);
}

int frame_read(const char *bytes, size_t n, enum frame_sender sender, struct frame *ret,
	       size_t *ret_size, struct err *err)
{
	const char *end = n ? memchr(bytes, '\n', MIN(n, (size_t)FRAME_HEADER_MAX)) : NULL;
	if (!end) {
		if (n >= FRAME_HEADER_MAX)
			return err_set(err, ERR_TOO_LARGE, "a frame header exceeds %d bytes",
				       FRAME_HEADER_MAX);
		*ret_size = n + 1;
		return 0;
	}
	/* A header that came before its body is parsed again when the body is there; the least size
	 * that is told to the caller keeps that to one more time. */
	size_t header_len = (size_t)(end - bytes) + 1;
	AUTO_JSON struct json_object *header = NULL;
	struct frame frame = {.more = false};
	if (json_parse(bytes, header_len - 1, &header, err) < 0)
		return err_prefix(err, "frame header");
	if (check_header(header, sender, &frame, err) < 0)
		return -1;
	*ret_size = header_len + frame.len;
	if (n < *ret_size)
		return 0;
	frame.body = end + 1;
	frame.header = take_ptr(header);
	*ret = frame;
	return 1;
}
