/*
 * http.h - a small strict reader of HTTP/1.1 requests.
 *
 * evhttp hides the bytes that the faults need, so the server reads requests itself. Strict means:
 * what a careful server refuses is refused here (folded lines, two lengths, length with chunks,
 * bare line feeds), since a client that sends it has a bug.
 */
#ifndef BATON_REHEARSAL_HTTP_H
#define BATON_REHEARSAL_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

#define HTTP_MAX_HEAD	 (64 * 1024)
#define HTTP_MAX_HEADERS 64

struct http_slice {
	const char *s;
	size_t n;
};

/* All slices are borrowed from the bytes that were parsed. */
struct http_head {
	struct http_slice method, target;
	int minor; /* HTTP/1.x */
	struct {
		struct http_slice name, value;
	} headers[HTTP_MAX_HEADERS];
	size_t n_headers;
	int64_t length; /* -1: none given */
	bool chunked, keep_alive, expect_continue;
};

/* Length of the head with its empty line, or 0 if it is not complete yet. */
size_t http_head_length(const char *s, size_t n);
int http_parse_head(const char *s, size_t n, struct http_head *ret, struct err *err);
/* Value of a header by name without regard to case, or an empty slice with s == NULL. */
struct http_slice http_header(const struct http_head *head, const char *name);
bool http_slice_is(struct http_slice slice, const char *text);
/* The target without its query. */
struct http_slice http_path(const struct http_head *head);

enum http_chunk_state { CHUNK_SIZE, CHUNK_DATA, CHUNK_DATA_END, CHUNK_TRAILER, CHUNK_DONE };

struct http_chunks {
	enum http_chunk_state state;
	uint64_t left; /* of the chunk's data */
};

/* Decodes what is there: *used bytes were taken. Returns 1 when the body is complete, 0 if more is
 * needed, -1 with err. `out` should have a maximum. */
int http_chunks_feed(struct http_chunks *c, const char *s, size_t n, size_t *used, struct buf *out,
		     struct err *err);

#endif
