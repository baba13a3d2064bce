/*
 * doc.h - a strict JSON reader that works in place.
 *
 * Why not base/json.h: a provider refuses what a tolerant reader accepts (raw control characters,
 * lone surrogates, bytes that are no UTF-8), and the server reads requests of many megabytes in
 * which nearly everything was seen before. So one pass checks, decodes strings inside the given
 * buffer, and leaves a flat array of nodes; nothing is allocated per value.
 *
 * Node 0 is a null that stands for "absent" in every search, so lookups can be nested without
 * checks; the root is node 1. An object's children are key, value, key, value ...; `next` is the
 * index behind a node's whole subtree.
 */
#ifndef BATON_REHEARSAL_DOC_H
#define BATON_REHEARSAL_DOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum doc_type { DOC_NULL, DOC_FALSE, DOC_TRUE, DOC_NUMBER, DOC_STRING, DOC_ARRAY, DOC_OBJECT };

#define DOC_ROOT      1
#define DOC_MAX_DEPTH 128

struct doc_node {
	enum doc_type type;
	uint32_t next;	/* one past this subtree */
	uint32_t count; /* elements or members */
	size_t len;	/* bytes of a string or number */
	const char *s;	/* string (decoded, not NUL-terminated) or number text */
};

struct doc {
	struct doc_node *nodes;
	uint32_t n;
	size_t cap;
};

/* Why and where parsing stopped; the texts are those of Python's json module, which the Anthropic
 * API passes on ("no low surrogate in string: line 1 column N"). */
struct doc_failure {
	const char *what;
	size_t at;	     /* byte offset */
	size_t line, column; /* from 1 */
};

/* Parses exactly one value. The bytes are rewritten and must outlive the doc. Returns 0 or -1. */
int doc_parse(struct doc *doc, char *s, size_t n, struct doc_failure *failure);
void doc_release(struct doc *doc);

uint32_t doc_get(const struct doc *doc, uint32_t object, const char *key); /* 0: absent */
/* First child of a container and the sibling behind a node. */
static inline uint32_t doc_first(uint32_t node)
{
	return node + 1;
}
static inline uint32_t doc_next(const struct doc *doc, uint32_t node)
{
	return doc->nodes[node].next;
}
enum doc_type doc_type(const struct doc *doc, uint32_t node);
bool doc_is(const struct doc *doc, uint32_t node, const char *text); /* a string equal to text */
int64_t doc_i64(const struct doc *doc, uint32_t node,
		int64_t dflt); /* an integer without fraction */
/* Fingerprint of a subtree by decoded values; members called `skip` are left out (cache_control
 * moves between requests and is not part of a prefix). */
uint64_t doc_hash(const struct doc *doc, uint32_t node, uint64_t seed, const char *skip);

/* JSON_EACH-like loop over the values of an array. */
#define DOC_EACH(doc, array, it)                                                                   \
	for (uint32_t it = doc_first(array), it##_end = (doc)->nodes[array].next; it < it##_end;   \
	     it = (doc)->nodes[it].next)
/* Loop over an object's members; the value of `it` is at it + 1. */
#define DOC_EACH_KEY(doc, object, it)                                                              \
	for (uint32_t it = doc_first(object), it##_end = (doc)->nodes[object].next; it < it##_end; \
	     it = (doc)->nodes[it + 1].next)

#endif
