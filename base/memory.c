/*
 * memory.c - allocation that cannot fail, and the arena.
 *
 * Why abort: an agent that is out of memory is one lost agent, which the parent survives and
 * reports; code that limps on past a failed malloc is code nobody has tested. What comes from
 * outside never gets here with a size of its own choosing: buffers that meet outside data carry a
 * maximum (buf.h), so an abort here means the machine is out of memory or the bug is ours.
 *
 * The arena serves the lifespan of one turn. Chunks double up to a limit; a request above the
 * limit gets a chunk of its own.
 */
#include "base/memory.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

static void out_of_memory(void)
{
	static const char text[] = "out of memory\n";
	ssize_t ignored = write(STDERR_FILENO, text, sizeof(text) - 1);
	(void)ignored;
	abort();
}

void *mem_alloc(size_t size)
{
	void *p = calloc(1, size ? size : 1);
	if (!p)
		out_of_memory();
	return p;
}

void *mem_resize(void *ptr, size_t size)
{
	void *p = realloc(ptr, size ? size : 1);
	if (!p)
		out_of_memory();
	return p;
}

void *mem_array(void *ptr, size_t count, size_t size)
{
	size_t total;
	if (__builtin_mul_overflow(count, size, &total))
		out_of_memory();
	return mem_resize(ptr, total);
}

void *mem_dup(const void *p, size_t n)
{
	void *copy = mem_resize(NULL, n);
	if (n)
		memcpy(copy, p, n);
	return copy;
}

char *mem_strndup(const char *s, size_t n)
{
	char *copy = mem_resize(NULL, n + 1);
	if (n)
		memcpy(copy, s, n);
	copy[n] = '\0';
	return copy;
}

char *mem_strdup(const char *s)
{
	return s ? mem_strndup(s, strlen(s)) : NULL;
}

char *mem_printf(const char *fmt, ...)
{
	va_list ap;
	char *s;
	va_start(ap, fmt);
	int n = vasprintf(&s, fmt, ap);
	va_end(ap);
	if (n < 0)
		out_of_memory();
	return s;
}

enum { ARENA_FIRST = 16 << 10, ARENA_LARGEST = 1 << 20 };

struct chunk {
	struct chunk *next; /* older */
	size_t used, size;
	alignas(max_align_t) char bytes[];
};

struct arena {
	struct chunk *newest;
	size_t next_size;
};

struct arena *arena_new(void)
{
	struct arena *arena = mem_alloc(sizeof(*arena));
	arena->next_size = ARENA_FIRST;
	return arena;
}

void arena_free(struct arena *arena)
{
	if (!arena)
		return;
	while (arena->newest) {
		struct chunk *chunk = arena->newest;
		arena->newest = chunk->next;
		free(chunk);
	}
	free(arena);
}

void arena_reset(struct arena *arena)
{
	while (arena->newest && arena->newest->next) {
		struct chunk *chunk = arena->newest;
		arena->newest = chunk->next;
		free(chunk);
	}
	if (arena->newest)
		arena->newest->used = 0;
	arena->next_size = ARENA_FIRST;
}

/* Room that is not cleared: arena_alloc clears, the string functions fill it at once. */
static void *arena_take(struct arena *arena, size_t size)
{
	const size_t align = alignof(max_align_t);
	if (size > SIZE_MAX - sizeof(struct chunk) - align)
		out_of_memory();
	size = (size + align - 1) & ~(align - 1);
	struct chunk *chunk = arena->newest;
	if (!chunk || chunk->size - chunk->used < size) {
		size_t room = size > arena->next_size ? size : arena->next_size;
		chunk = mem_resize(NULL, sizeof(*chunk) + room);
		chunk->used = 0;
		chunk->size = room;
		chunk->next = arena->newest;
		arena->newest = chunk;
		if (arena->next_size < ARENA_LARGEST)
			arena->next_size *= 2;
	}
	void *p = chunk->bytes + chunk->used;
	chunk->used += size;
	return p;
}

void *arena_alloc(struct arena *arena, size_t size)
{
	void *p = arena_take(arena, size);
	memset(p, 0, size);
	return p;
}

char *arena_strndup(struct arena *arena, const char *s, size_t n)
{
	if (n == SIZE_MAX)
		out_of_memory();
	char *copy = arena_take(arena, n + 1);
	if (n)
		memcpy(copy, s, n);
	copy[n] = '\0';
	return copy;
}

char *arena_strdup(struct arena *arena, const char *s)
{
	return s ? arena_strndup(arena, s, strlen(s)) : NULL;
}

char *arena_printf(struct arena *arena, const char *fmt, ...)
{
	va_list ap;
	AUTO_FREE char *text = NULL;
	va_start(ap, fmt);
	int n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0)
		out_of_memory();
	return arena_strndup(arena, text, (size_t)n);
}
