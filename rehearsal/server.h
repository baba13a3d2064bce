/*
 * server.h - the sockets of a rehearsal: HTTP/1.1 on 127.0.0.1 over libevent, with full control
 * over the bytes that go out, because half of what it plays are broken connections.
 */
#ifndef BATON_REHEARSAL_SERVER_H
#define BATON_REHEARSAL_SERVER_H

#include "rehearsal/service.h"

struct event_base;
struct server;

/* Listens at once. port 0: any. The service stays the caller's and must outlive the server. */
int server_new(struct event_base *base, struct service *service, uint16_t port, struct server **ret,
	       struct err *err);
uint16_t server_port(const struct server *server);
void server_free(struct server *server); /* closes all connections; NULL allowed */

#endif
