/*
 * record_types.h - the catalogue of all records of a journal (run.jsonl).
 *
 * One row a type: RECORD(NAME, "type", durability, "fields")
 *   NAME        the type in capitals, '_' for '.'
 *   durability  DURABLE: synced before what depends on it happens. EVENT: written with the others of its turn, not
 *               synced for its own sake. DURABLE_WITH_BUDGET: an event that journal_sync makes durable in
 *               runs with a limit
 *   fields      "name:kind" as journal_add takes them, beside `t` and `type`; each may be left out of a record
 *
 * Names and meanings are an interface: added to, never changed. docs/journal.md is the long form; tests/docs checks it
 * against this table, and each call of journal_add too.
 */
#define RECORD_CATALOGUE(RECORD)                                                                   \
	/* The run. */                                                                             \
	RECORD(RUN_STARTED, "run.started", DURABLE,                                                \
	       "run:s version:s command:s task:s model:s window:i repository:s toplevel:s "        \
	       "worktrees:s pid:i box:s max_cost:d max_tokens:i time_limit_ms:i settings:j")       \
	RECORD(RUN_RESUMED, "run.resumed", DURABLE,                                                \
	       "run:s version:s model:s window:i pid:i box:s max_cost:d max_tokens:i "             \
	       "time_limit_ms:i elapsed_ms:i bad_lines:i duplicates:i unsettled:i settings:j")     \
	RECORD(RUN_BASE, "run.base", DURABLE, "commit:s")                                          \
	RECORD(RUN_STOPPING, "run.stopping", EVENT, "reason:s")                                    \
	RECORD(RUN_FINISHED, "run.finished", DURABLE,                                              \
	       "run:s status:s exit_status:i reason:s resumable:b report:s duration_ms:i "         \
	       "usage:j cost:d")                                                                   \
	RECORD(RUN_PAUSED, "run.paused", EVENT, "why:s reason:s")                                  \
	RECORD(RUN_CONTINUED, "run.continued", EVENT, "why:s")                                     \
	RECORD(RUN_LIMITS, "run.limits", DURABLE, "max_cost:d max_tokens:i")                       \
	RECORD(MEMORY_SAVED, "memory.saved", EVENT,                                                \
	       "added:i known:i refused:i expired:i total:i lines:j")                              \
	RECORD(BUDGET_REACHED, "budget.reached", DURABLE,                                          \
	       "agent:s estimate:i max_tokens:i affordable:i kind:s")                              \
	RECORD(REVIEW_SHARDED, "review.sharded", DURABLE,                                          \
	       "title:s files:i shards:i budget:i old:s new:s")                                    \
	/* Agents: what the parent decides and promises. */                                        \
	RECORD(AGENT_SPAWNED, "agent.spawned", DURABLE,                                            \
	       "agent:s key:s role:s stage:s generation:i pid:i branch:s worktree:s base:s "       \
	       "task:s")                                                                           \
	RECORD(AGENT_REPORT, "agent.report", DURABLE, "agent:s generation:i call:s body:j")        \
	RECORD(AGENT_CHECKPOINT, "agent.checkpoint", DURABLE,                                      \
	       "agent:s generation:i call:s commit:s message:s")                                   \
	RECORD(AGENT_RESET, "agent.reset", DURABLE,                                                \
	       "agent:s generation:i call:s reason:s why:s handoff:s checkpoint:s head:s tree:s "  \
	       "facts_only:b progress:b chain:i first_action:s")                                   \
	RECORD(AGENT_RESET_REFUSED, "agent.reset_refused", DURABLE,                                \
	       "agent:s generation:i call:s final:b reasons:j")                                    \
	RECORD(AGENT_RESET_ASKED, "agent.reset_asked", EVENT, "agent:s why:s")                     \
	RECORD(AGENT_ASKED, "agent.asked", DURABLE,                                                \
	       "agent:s generation:i call:s child:s key:s base:s wish:j")                          \
	RECORD(AGENT_MESSAGE, "agent.message", DURABLE,                                            \
	       "agent:s generation:i call:s action:s to:s text:s")                                 \
	RECORD(AGENT_SAID, "agent.said", DURABLE, "agent:s text:s")                                \
	RECORD(AGENT_PAUSED, "agent.paused", EVENT, "agent:s")                                     \
	RECORD(AGENT_CONTINUED, "agent.continued", EVENT, "agent:s")                               \
	RECORD(AGENT_STOP_ASKED, "agent.stop_asked", DURABLE, "agent:s")                           \
	RECORD(AGENT_COMPACT_ASKED, "agent.compact_asked", EVENT, "agent:s wish:j")                \
	RECORD(AGENT_ENDED, "agent.ended", DURABLE,                                                \
	       "agent:s generation:i status:s reason:s class:s rounds:i tool_calls:i "             \
	       "failed_calls:i memory:j")                                                          \
	RECORD(AGENT_DONE, "agent.done", DURABLE,                                                  \
	       "agent:s status:s branch:s commit:s kept:s incomplete:b rounds:i fresh:i "          \
	       "cache_read:i cache_write:i output:i cost:d")                                       \
	RECORD(HOOK_RAN, "hook.ran", EVENT,                                                        \
	       "agent:s event:s subject:s hook:s duration_ms:i exit:j timed_out:b bytes:i used:i " \
	       "decision:s reason:s failure:s")                                                    \
	/* Agents: what they tell, one row for each of handoff/event_types.h. */                   \
	RECORD(AGENT_ROUND, "agent.round", EVENT, "agent:s data:j")                                \
	RECORD(AGENT_TOOL, "agent.tool", EVENT, "agent:s data:j")                                  \
	RECORD(AGENT_STATE, "agent.state", EVENT, "agent:s data:j")                                \
	RECORD(AGENT_TEXT, "agent.text", EVENT, "agent:s data:j")                                  \
	RECORD(AGENT_WARNING, "agent.warning", EVENT, "agent:s message:s data:j")                  \
	RECORD(AGENT_RETRY, "agent.retry", EVENT, "agent:s data:j")                                \
	RECORD(AGENT_JOB, "agent.job", EVENT, "agent:s data:j")                                    \
	RECORD(AGENT_COMPACT, "agent.compact", EVENT, "agent:s data:j")                            \
	RECORD(AGENT_BUDGET, "agent.budget", EVENT, "agent:s data:j")                              \
	RECORD(AGENT_REMINDER, "agent.reminder", EVENT, "agent:s data:j")                          \
	RECORD(AGENT_ALARM, "agent.alarm", EVENT, "agent:s data:j")                                \
	RECORD(AGENT_CACHE_BREAK, "agent.cache_break", EVENT, "agent:s data:j")                    \
	RECORD(AGENT_COMPACT_RETURN, "agent.compact_return", EVENT, "agent:s data:j")              \
	RECORD(AGENT_COMPACT_REVIEW, "agent.compact_review", EVENT, "agent:s data:j")              \
	RECORD(AGENT_INSTRUCTIONS, "agent.instructions", EVENT, "agent:s data:j")                  \
	RECORD(AGENT_CHILD, "agent.child", EVENT, "agent:s data:j")                                \
	/* Calls of the model; what the gateway tells, by its notes' names. */                     \
	RECORD(CALL_RESERVED, "call.reserved", DURABLE_WITH_BUDGET,                                \
	       "agent:s req:i tokens:i cost:d model:s")                                            \
	RECORD(CALL_SETTLED, "call.settled", EVENT,                                                \
	       "agent:s req:i fresh:i cache_read:i cache_write:i output:i cost:d estimated:b "     \
	       "total_cost:d model:s")                                                             \
	RECORD(CALL_RELEASED, "call.released", EVENT, "agent:s req:i")                             \
	RECORD(GATEWAY_CONNECTION, "gateway.connection", EVENT, "data:j")                          \
	RECORD(GATEWAY_RETRY, "gateway.retry", EVENT, "data:j")                                    \
	RECORD(GATEWAY_LIMIT, "gateway.limit", EVENT, "data:j")                                    \
	RECORD(GATEWAY_DIED, "gateway.died", EVENT, "reason:s")                                    \
	/* Worktrees and branches. */                                                              \
	RECORD(WORKTREE_CREATED, "worktree.created", DURABLE,                                      \
	       "agent:s path:s branch:s files:i notes:j")                                          \
	RECORD(WORKTREE_REOPENED, "worktree.reopened", DURABLE,                                    \
	       "agent:s path:s how:s commit:s notes:j")                                            \
	RECORD(WORKTREE_FAILED, "worktree.failed", DURABLE, "agent:s message:s")                   \
	RECORD(WORKTREE_SETUP_FAILED, "worktree.setup_failed", DURABLE, "agent:s message:s")       \
	RECORD(WORKTREE_SAVED, "worktree.saved", DURABLE, "agent:s commit:s")                      \
	RECORD(WORKTREE_KEPT, "worktree.kept", DURABLE, "agent:s path:s reason:s")                 \
	RECORD(BRANCH_IMPORTED, "branch.imported", DURABLE,                                        \
	       "agent:s branch:s old:s new:s commits:j")
