/*
 * outcome.h - the end of a run: report.json, report.md, the run.finished record, the printed
 * summary.
 */
#ifndef BATON_ORCHESTRATOR_OUTCOME_H
#define BATON_ORCHESTRATOR_OUTCOME_H

struct agent_record;
struct buf;
struct run;

/* Lets the driver fill run->report, writes both files and the record. Failures are logged: the
 * journal still tells all. */
void outcome_write(struct run *run);
/* What a person reads at the end (stdout); nothing with --json. */
void outcome_print(const struct run *run);

/* What contradicts the agent's report, as a run's reason (X5); NULL: nothing does. Known only after
 * its work was collected. Caller frees. */
char *outcome_contradiction(const struct agent_record *agent);

#endif
