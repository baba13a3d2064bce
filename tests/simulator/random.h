/*
 * random.h - numbers that follow from a seed alone, on every machine.
 */
#ifndef SIMULATOR_RANDOM_H
#define SIMULATOR_RANDOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct random {
	uint64_t state;
};

void random_init(struct random *r, uint64_t seed);
uint64_t random_next(struct random *r);
int64_t random_between(struct random *r, int64_t low, int64_t high); /* both included */
bool random_chance(struct random *r, unsigned per_10000);
/* exp(N(log(median), sigma)), at least 1 and at most `max`. */
int64_t random_log_normal(struct random *r, double median, double sigma, int64_t max);
/* Every power of two of the range as often as another. */
int64_t random_log_uniform(struct random *r, int64_t low, int64_t high);

/* Eight bytes at a time: for bodies of hundreds of kilobytes. */
uint64_t hash_bytes(const void *p, size_t n);
uint64_t hash_mix(uint64_t a, uint64_t b);

#endif
