/*
 * request_blocks.h - the blocks of an Anthropic message: for request_anthropic.c only.
 */
#ifndef BATON_REHEARSAL_REQUEST_BLOCKS_H
#define BATON_REHEARSAL_REQUEST_BLOCKS_H

#include "rehearsal/request.h"

struct block_reader {
	struct request *r;
	struct id_set *ids;
	uint8_t last_ttl; /* of the markers so far: an hour must not follow five minutes */
};

/* All that return int give 0, or -1 with the request's refusal. */

/* Reads block `index` of the message that was added last. */
int block_read(struct block_reader *rd, uint32_t block, size_t index, enum speaker speaker);
/* A message whose content is a string: one text block. */
void block_add_text(struct request *r, const struct doc_node *text);
/* Sets *ret to 0 (no marker), 5 or 60 minutes. */
int block_read_marker(struct block_reader *rd, uint32_t block, const char *path, uint8_t *ret);
/* A text block that may be neither empty nor blank (traps 28, 30). `where` begins the message. */
int block_check_text(struct block_reader *rd, uint32_t block, const char *where, const char *path);
bool block_is_blank(const char *s, size_t n);
bool block_is_name(const struct doc_node *node, size_t max); /* [a-zA-Z0-9_-]{1,max} */
bool block_key_in(const struct doc *doc, uint32_t key, const char *const *list, size_t n);

#endif
