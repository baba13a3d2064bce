/*
 * agent.h - the one entry of the agent's program.
 */
#ifndef BATON_AGENT_AGENT_H
#define BATON_AGENT_AGENT_H

/* Runs one generation of one agent over the channel on the given descriptors (both 3 when started
 * by the parent; 0 and 1 for `baton agent` on stdio, after moving them away). Sends hello, takes
 * start, works until a report, a limit, a stop or the end of the channel, and returns the process's
 * exit status: 0 the result frame was sent, 1 a failure that could not be told, 2 a bad start
 * document. The caller is main: it exits with this value. */
int agent_main(int fd_in, int fd_out);

#endif
