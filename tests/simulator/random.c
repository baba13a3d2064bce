/*
 * random.c - splitmix64, and the distributions that the simulator draws from.
 *
 * The C library's generators differ between systems, and a failing seed must replay anywhere.
 */
#include "random.h"

#include <math.h>
#include <string.h>

void random_init(struct random *r, uint64_t seed)
{
	r->state = hash_mix(seed, 0x5eed);
}

uint64_t random_next(struct random *r)
{
	uint64_t z = (r->state += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

int64_t random_between(struct random *r, int64_t low, int64_t high)
{
	if (high <= low)
		return low;
	return low + (int64_t)(random_next(r) % (uint64_t)(high - low + 1));
}

bool random_chance(struct random *r, unsigned per_10000)
{
	return random_next(r) % 10000 < per_10000;
}

static double unit(struct random *r)
{
	return ((double)(random_next(r) >> 11) + 0.5) / 9007199254740992.0;
}

int64_t random_log_normal(struct random *r, double median, double sigma, int64_t max)
{
	double normal = sqrt(-2 * log(unit(r))) * cos(6.283185307179586 * unit(r));
	double value = median * exp(sigma * normal);

	if (value < 1)
		return 1;
	return value > (double)max ? max : (int64_t)value;
}

int64_t random_log_uniform(struct random *r, int64_t low, int64_t high)
{
	double value = (double)low * pow((double)high / (double)low, unit(r));

	return value > (double)high ? high : (int64_t)value;
}

uint64_t hash_mix(uint64_t a, uint64_t b)
{
	uint64_t z = (a ^ (b + 0x9e3779b97f4a7c15u + (a << 6) + (a >> 2))) * 0xff51afd7ed558ccdu;

	z ^= z >> 33;
	z *= 0xc4ceb9fe1a85ec53u;
	return z ^ (z >> 29);
}

uint64_t hash_bytes(const void *p, size_t n)
{
	const char *s = p;
	uint64_t h = n, word;

	for (; n >= 8; s += 8, n -= 8) {
		memcpy(&word, s, 8);
		h = (h ^ word) * 0x9fb21c651e98df25u;
		h ^= h >> 32;
	}
	word = 0;
	memcpy(&word, s, n);
	return hash_mix(h, word);
}
