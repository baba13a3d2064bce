/*
 * ancestry.h - from whom a process comes, by the kernel's word (/proc/PID/stat).
 */
#ifndef BATON_ORCHESTRATOR_ANCESTRY_H
#define BATON_ORCHESTRATOR_ANCESTRY_H

#include <stdbool.h>
#include <sys/types.h>

/* Is `pid` this ancestor or below it? A process that cannot be looked up is taken for one, but for pid 0: that is how
 * the kernel names one outside of our pid namespace, where no child of ours can be. */
bool ancestry_has(pid_t pid, pid_t ancestor);
/* Does this process work for an agent of a run? By the mark that baton-box leaves in the environment, or because an
 * agent is among those that it comes from. */
bool ancestry_is_agents(void);

#endif
