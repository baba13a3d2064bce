/*
 * star_peers.h - the processes round the parent in test_star.c: a gateway and agents, in earnest.
 *
 * They use the product's own caller and window code, but read slowly: small socket buffers, emptied
 * once per tick of a timer. Each function is the whole life of a forked child and returns its exit
 * status.
 */
#ifndef BATON_TESTS_STAR_PEERS_H
#define BATON_TESTS_STAR_PEERS_H

#include <stdbool.h>

enum {
	STAR_AGENTS = 32,
	STAR_BODY = 600 << 10,
	STAR_ANSWER = 600 << 10,
	STAR_CANCELLERS = 8, /* the first agents open a second call and cancel it */
	STAR_CANCEL_BODY = 4 << 20,
	STAR_TICK_MS = 2,
};

int star_agent(int fd, int index); /* sends event "cancel" with the microseconds, then result */
int star_gateway(int fd);

#endif
