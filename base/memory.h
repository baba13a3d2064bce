/*
 * memory.h - allocation that aborts when memory is out, cleanup attributes, and the arena.
 *
 * Three lifespans exist: process, conversation, turn. Turn memory comes from an arena that its
 * owner resets at the top of each turn. Everything else has one owner named in its header.
 */
#ifndef BATON_BASE_MEMORY_H
#define BATON_BASE_MEMORY_H

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* These never return NULL; out of memory aborts the process. */
void *mem_alloc(size_t size);			       /* zeroed */
void *mem_resize(void *ptr, size_t size);	       /* as realloc */
void *mem_array(void *ptr, size_t count, size_t size); /* realloc(count * size), overflow aborts */
char *mem_strdup(const char *s);		       /* NULL gives NULL */
char *mem_strndup(const char *s, size_t n);	       /* copies n bytes and a NUL */
void *mem_dup(const void *p, size_t n);
char *mem_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Grows an array to hold at least `need` elements: doubles *cap. */
#define MEM_GROW(ptr, cap, need)                                                                   \
	do {                                                                                       \
		if ((size_t)(need) > (size_t)(cap)) {                                              \
			size_t mem_cap_ = (cap) ? (size_t)(cap) : 8;                               \
			while (mem_cap_ < (size_t)(need))                                          \
				mem_cap_ *= 2;                                                     \
			(ptr) = mem_array((ptr), mem_cap_, sizeof(*(ptr)));                        \
			(cap) = mem_cap_;                                                          \
		}                                                                                  \
	} while (0)

static inline void mem_free_ptr(void *p)
{
	void **pp = p;
	free(*pp);
	*pp = NULL;
}

static inline void mem_close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* Locals that clean up after themselves. Initialise them: AUTO_FREE char *s = NULL; AUTO_FD int fd
 * = -1; */
#define AUTO_FREE __attribute__((cleanup(mem_free_ptr)))
#define AUTO_FD	  __attribute__((cleanup(mem_close_fd)))

/* Hands a pointer or descriptor over: returns it and disarms the local. */
#define take_ptr(p)                                                                                \
	({                                                                                         \
		__typeof__(p) take_ = (p);                                                         \
		(p) = NULL;                                                                        \
		take_;                                                                             \
	})
#define take_fd(fd)                                                                                \
	({                                                                                         \
		int take_ = (fd);                                                                  \
		(fd) = -1;                                                                         \
		take_;                                                                             \
	})

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b)     ((a) < (b) ? (a) : (b))
#define MAX(a, b)     ((a) > (b) ? (a) : (b))

struct arena; /* grows by chunks, freed as a whole */
struct arena *arena_new(void);
void arena_free(struct arena *arena);		     /* NULL allowed */
void arena_reset(struct arena *arena);		     /* keeps the first chunk */
void *arena_alloc(struct arena *arena, size_t size); /* zeroed, aligned for any type */
char *arena_strdup(struct arena *arena, const char *s);
char *arena_strndup(struct arena *arena, const char *s, size_t n);
char *arena_printf(struct arena *arena, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
