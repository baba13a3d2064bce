/*
 * option_table.h - every option of baton: the parser, --help, the man page, completion, environment
 * (BATON_<NAME>) and `baton config` read this one table.
 *
 * OPTION(ID, "name", type, scope, layers, min, max, "default", "METAVAR", "help")
 *   type      FLAG, COUNT (text_parse_count), DURATION (text_parse_duration_ms, stored in ms), MONEY
 *             (USD), PERCENT, STRING, PATH, LIST (may be repeated; lists of layers are merged without
 *             duplicates), CHOICE (the default column lists "default|other|...")
 *   scope     which commands take it: a mask of SCOPE_*
 *   layers    which configuration layers may set it: CFG_ANY, or CFG_TRUSTED (managed, user,
 *             environment, command line, never a project file: M5), or CFG_CLI (command line only)
 *   min, max  for numbers; max 0: none
 */
#define OPTION_TABLE(OPTION)                                                                       \
	OPTION(DIRECTORY, "directory", PATH, SCOPE_REPLY, CFG_CLI, 0, 0, "", "DIR",                \
	       "work on the repository that holds DIR (short: -C)")                                \
	OPTION(MODEL, "model", STRING, SCOPE_WORK, CFG_TRUSTED, 0, 0, "", "PROVIDER/NAME",         \
	       "the model; rehearsal:FILE plays a scenario")                                       \
	OPTION(WINDOW, "window", COUNT, SCOPE_WORK, CFG_ANY, 2000, 1000000000, "", "TOKENS",       \
	       "context window, instead of what the model table says")                             \
	OPTION(CEILING, "working-ceiling", COUNT, SCOPE_WORK, CFG_ANY, 2000, 1000000000, "",       \
	       "TOKENS", "use no more of the window (default: 400,000, and no dearer price tier)") \
	OPTION(USER_MESSAGE, "user-message-bytes", COUNT, SCOPE_WORK, CFG_ANY, 1000, 64000000,     \
	       "50000", "BYTES", "a longer message to an agent is shown to it as head and tail")   \
	OPTION(CACHE_LIFE, "cache-life", CHOICE, SCOPE_WORK, CFG_ANY, 0, 0, "5m|1h", "TIME",       \
	       "how long a provider that asks keeps tools and system prompt in its cache")         \
	OPTION(COMPACT, "compact", CHOICE, SCOPE_WORK, CFG_ANY, 0, 0, "auto|off", "WHEN",          \
	       "summarise an agent's older rounds when its window fills, or never")                \
	OPTION(COMPACT_PCT, "compact-pct", PERCENT, SCOPE_WORK, CFG_ANY, 0, 100, "", "PERCENT",    \
	       "share of the usable window at which that happens, instead of the role's buffer")   \
	OPTION(COMPACT_MODEL, "compact-model", STRING, SCOPE_WORK, CFG_TRUSTED, 0, 0, "",          \
	       "PROVIDER/NAME", "another model makes the summaries (default: the agent's own)")    \
	OPTION(CONTEXT, "context", LIST, SCOPE_WORK, CFG_ANY, 0, 0, "", "NAME=VALUE",              \
	       "a number of the context engine; may be repeated")                                  \
	OPTION(MEMORY, "memory", FLAG, SCOPE_WORK, CFG_TRUSTED, 0, 0, "true", "",                  \
	       "use and keep what runs noted for later ones (--no-memory: neither)")               \
	OPTION(EFFORT, "effort", CHOICE, SCOPE_WORK, CFG_ANY, 0, 0, "|low|medium|high", "LEVEL",   \
	       "reasoning effort asked from the model")                                            \
	OPTION(ROLE, "role", STRING, SCOPE_RUN, CFG_ANY, 0, 0, "lead", "NAME",                     \
	       "role of the agent")                                                                \
	OPTION(BASE, "base", STRING, SCOPE_RUN, CFG_CLI, 0, 0, "", "REV",                          \
	       "commit that the work starts from (default: HEAD)")                                 \
	OPTION(DIRTY, "dirty", FLAG, SCOPE_RUN, CFG_CLI, 0, 0, "", "",                             \
	       "put uncommitted work, untracked files too, into the base")                         \
	OPTION(FILE, "file", PATH, SCOPE_RUN, CFG_CLI, 0, 0, "", "FILE",                           \
	       "read the task from FILE")                                                          \
	OPTION(AGENTS, "agents", COUNT, SCOPE_PARALLEL, CFG_ANY, 1, 1000, "4", "N",                \
	       "agents that work at the same time")                                                \
	OPTION(MAX_AGENTS, "max-agents", COUNT, SCOPE_RUN, CFG_ANY, 1, 10000, "100", "N",          \
	       "agents of the whole run, those that agents start too")                             \
	OPTION(MAX_CHILDREN, "max-children", COUNT, SCOPE_RUN, CFG_ANY, 1, 1000, "16", "N",        \
	       "agents that one agent has started and that are not done")                          \
	OPTION(MAX_DEPTH, "max-depth", COUNT, SCOPE_RUN, CFG_ANY, 0, 5, "5", "N",                  \
	       "levels of agents that start agents; 0: the lead works alone")                      \
	OPTION(MAX_COST, "max-cost", MONEY, SCOPE_WORK, CFG_ANY, 0, 0, "", "USD",                  \
	       "stop before the run would cost more")                                              \
	OPTION(MAX_TOKENS, "max-tokens", COUNT, SCOPE_WORK, CFG_ANY, 1000, 0, "", "TOKENS",        \
	       "stop before the run uses more tokens, input and output")                           \
	OPTION(TIME_LIMIT, "time-limit", DURATION, SCOPE_WORK, CFG_ANY, 1, 0, "", "TIME",          \
	       "stop after TIME (90s, 10m, 2h)")                                                   \
	OPTION(MAX_ROUNDS, "max-rounds", COUNT, SCOPE_WORK, CFG_ANY, 1, 0, "100", "N",             \
	       "rounds of one generation of an agent")                                             \
	OPTION(RESET, "reset", CHOICE, SCOPE_WORK, CFG_ANY, 0, 0, "auto|never|per_stage", "WHEN",  \
	       "go on in an empty window from a handoff document when compaction cannot help")     \
	OPTION(MAX_RESETS, "max-resets", COUNT, SCOPE_WORK, CFG_ANY, 0, 1000, "20", "N",           \
	       "such resets of one agent; 0: none")                                                \
	OPTION(WHY, "why", STRING, SCOPE_RESET, CFG_CLI, 0, 0, "", "TEXT",                         \
	       "the reason, for the records")                                                      \
	OPTION(HANDOFF, "handoff", PATH, SCOPE_RUN, CFG_CLI, 0, 0, "", "FILE",                     \
	       "begin from this handoff document (JSON or Markdown)")                              \
	OPTION(MAX_OUTPUT, "max-output", COUNT, SCOPE_WORK, CFG_ANY, 256, 0, "16000", "TOKENS",    \
	       "wanted room for one answer")                                                       \
	OPTION(UNCONFINED, "unconfined", FLAG, SCOPE_WORK, CFG_TRUSTED, 0, 0, "", "",              \
	       "let agents write although this kernel gives no boundary")                          \
	OPTION(NETWORK, "network", CHOICE, SCOPE_WORK, CFG_TRUSTED, 0, 0, "none|loopback|open",    \
	       "MODE", "network of the agents' shells")                                            \
	OPTION(READ_PATHS, "read-paths", LIST, SCOPE_WORK, CFG_TRUSTED, 0, 0, "", "DIR",           \
	       "further folders that agents' shells may read")                                     \
	OPTION(PASS_ENV, "pass-env", LIST, SCOPE_WORK, CFG_TRUSTED, 0, 0, "", "NAME",              \
	       "environment variables passed to agents' shells")                                   \
	OPTION(SETUP, "setup", STRING, SCOPE_RUN, CFG_ANY, 0, 0, "", "COMMAND",                    \
	       "command run once in each new worktree")                                            \
	OPTION(SETUP_TIMEOUT, "setup-timeout", DURATION, SCOPE_RUN, CFG_ANY, 1, 0, "10m", "TIME",  \
	       "time limit of the setup command")                                                  \
	OPTION(HOOK_TIMEOUT, "hook-timeout", DURATION, SCOPE_WORK, CFG_ANY, 1, 600000, "10s",      \
	       "TIME", "time limit of a hook that names none")                                     \
	OPTION(BRANCH_PREFIX, "branch-prefix", STRING, SCOPE_RUN, CFG_ANY, 0, 0, "baton", "NAME",  \
	       "first part of the branches' names")                                                \
	OPTION(SHELL_TIMEOUT, "shell-timeout", DURATION, SCOPE_SHELLS, CFG_ANY, 1, 0, "2m",        \
	       "TIME", "time limit of a shell call that asks for none")                            \
	OPTION(MODEL_IDLE, "model-idle", DURATION, SCOPE_WORK, CFG_ANY, 1, 0, "15m", "TIME",       \
	       "watchdog: an agent without model progress for so long is stopped")                 \
	OPTION(TOOL_IDLE, "tool-idle", DURATION, SCOPE_WORK, CFG_ANY, 1, 0, "10m", "TIME",         \
	       "watchdog: time in one tool")                                                       \
	OPTION(BYTES_IDLE, "bytes-idle", DURATION, SCOPE_WORK, CFG_ANY, 1, 0, "90s", "TIME",       \
	       "an answer without any byte for so long is asked for again")                        \
	OPTION(CONTENT_IDLE, "content-idle", DURATION, SCOPE_WORK, CFG_ANY, 1, 0, "5m", "TIME",    \
	       "an answer without content for so long is asked for again")                         \
	OPTION(MAX_SLEEP, "max-sleep", DURATION, SCOPE_WORK, CFG_ANY, 1, 0, "2m", "TIME",          \
	       "longest wait for a rate limit before the agent ends")                              \
	OPTION(RETRIES, "retries", COUNT, SCOPE_WORK, CFG_ANY, 0, 100, "8", "N",                   \
	       "tries of one model call after the first")                                          \
	OPTION(FAIL_ON, "fail-on", CHOICE, SCOPE_REVIEW, CFG_ANY, 0, 0,                            \
	       "|critical|high|medium|low|info", "SEVERITY",                                       \
	       "exit with 5 if a finding of SEVERITY or above stands")                             \
	OPTION(STAGED, "staged", FLAG, SCOPE_REVIEW, CFG_CLI, 0, 0, "", "", "review the index")    \
	OPTION(WORKTREE, "worktree", FLAG, SCOPE_REVIEW, CFG_CLI, 0, 0, "", "",                    \
	       "review all uncommitted changes, untracked files too")                              \
	OPTION(SHARD_TOKENS, "shard-tokens", COUNT, SCOPE_REVIEW, CFG_ANY, 200, 0, "12000",        \
	       "TOKENS", "largest share of the diff for one reviewer")                             \
	OPTION(VERIFY, "verify", CHOICE, SCOPE_REVIEW, CFG_ANY, 0, 0, "medium|low|high|off",       \
	       "SEVERITY", "findings from SEVERITY on are tried to be refuted")                    \
	OPTION(SARIF, "sarif", PATH, SCOPE_REVIEW, CFG_CLI, 0, 0, "", "FILE",                      \
	       "write the findings as SARIF 2.1.0 too")                                            \
	OPTION(OUTPUT, "output", PATH, SCOPE_WRITERS, CFG_CLI, 0, 0, "", "FILE",                   \
	       "write the Markdown report, or the handoff that is imported, to FILE")              \
	OPTION(CHECKPOINT, "checkpoint-every", DURATION, SCOPE_RUN, CFG_ANY, 0, 0, "2m", "TIME",   \
	       "store uncommitted work at most so often while it changes; 0: never")               \
	OPTION(KEEP, "keep", FLAG, SCOPE_RUN, CFG_ANY, 0, 0, "", "",                               \
	       "keep the worktree after a successful run")                                         \
	OPTION(FORCE, "force", FLAG, SCOPE_CLEAN, CFG_CLI, 0, 0, "", "",                           \
	       "also worktrees with a merge or rebase in progress")                                \
	OPTION(YES, "yes", FLAG, SCOPE_CLEAN, CFG_CLI, 0, 0, "", "",                               \
	       "remove all ended runs without asking")                                             \
	OPTION(CHECKPOINTS, "checkpoints", FLAG, SCOPE_CLEAN, CFG_CLI, 0, 0, "", "",               \
	       "also saved states (refs/baton/RUN) that no branch holds")                          \
	OPTION(FROM, "from", COUNT, SCOPE_COMPACT, CFG_CLI, 1, 0, "", "ROUND",                     \
	       "replace what came from this round on")                                             \
	OPTION(UP_TO, "up-to", COUNT, SCOPE_COMPACT, CFG_CLI, 1, 0, "", "ROUND",                   \
	       "replace what came before this round")                                              \
	OPTION(UNDO, "undo", FLAG, SCOPE_COMPACT, CFG_CLI, 0, 0, "", "",                           \
	       "the window as it was before the last compaction")                                  \
	OPTION(ACCEPT, "accept", FLAG, SCOPE_COMPACT, CFG_CLI, 0, 0, "", "",                       \
	       "use the summary that waits for a review")                                          \
	OPTION(REJECT, "reject", FLAG, SCOPE_COMPACT, CFG_CLI, 0, 0, "", "", "do not use it")      \
	OPTION(EDIT, "edit", PATH, SCOPE_COMPACT, CFG_CLI, 0, 0, "", "FILE",                       \
	       "use the text of FILE in its place")                                                \
	OPTION(SHOW, "show", FLAG, SCOPE_COMPACT, CFG_CLI, 0, 0, "", "",                           \
	       "what the last compaction replaced, and by what, as a diff")                        \
	OPTION(RUN, "run", FLAG, SCOPE_HANDOFF, CFG_CLI, 0, 0, "", "",                             \
	       "handoff check: run its commands too, in a box, in a copy of its files")            \
	OPTION(CHECK, "check", FLAG, SCOPE_REHEARSE, CFG_CLI, 0, 0, "", "",                        \
	       "only read the scenario and report mistakes")                                       \
	OPTION(LOG, "log", PATH, SCOPE_REHEARSE, CFG_CLI, 0, 0, "", "FILE",                        \
	       "append each request and decision to FILE as JSON Lines")                           \
	OPTION(LOG_BODIES, "log-bodies", FLAG, SCOPE_REHEARSE, CFG_CLI, 0, 0, "", "",              \
	       "with the whole bodies of requests")                                                \
	OPTION(PORT, "port", COUNT, SCOPE_REHEARSE, CFG_CLI, 0, 65535, "", "N",                    \
	       "port of the rehearsal server (default: any free one)")                             \
	OPTION(JSON, "json", FLAG, SCOPE_REPLY, CFG_CLI, 0, 0, "", "", "machine-readable output")  \
	OPTION(PLAIN, "plain", FLAG, SCOPE_WORK, CFG_ANY, 0, 0, "", "",                            \
	       "plain lines, no live view")                                                        \
	OPTION(QUIET, "quiet", FLAG, SCOPE_WORK, CFG_ANY, 0, 0, "", "",                            \
	       "only the result (short: -q)")                                                      \
	OPTION(VERBOSE, "verbose", FLAG, SCOPE_ALL, CFG_ANY, 0, 0, "", "",                         \
	       "diagnostics of all processes on stderr (short: -v)")
