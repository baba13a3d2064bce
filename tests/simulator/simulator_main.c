/*
 * simulator_main.c - the command line, the worker processes, the printed counts.
 *
 * One worker a processor; session i goes to worker i modulo their number. The counts are in shared memory. What a
 * worker finds goes up a pipe as one line, so a worker that dies loses nothing but its own session, whose seed is
 * known from shared memory too.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <signal.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "cost.h"
#include "mutants.h"
#include "pairs.h"
#include "session.h"

#define WORKERS_MAX   64
#define FINDINGS_MOST 10 /* then a worker gives up */
#define MUTANT_TRIES  400
#define LOAD_EVERY    20
#define STUCK_S	      120 /* a long session under a sanitizer on a loaded machine takes less */
#define PAIR_EVERY    100 /* such a session runs with another one beside it */
#define CI_SESSIONS   10000
#define ASAN_SESSIONS 300

struct options {
	enum form form;
	int64_t first, sessions, workers;
	bool mutants, cost, quiet, trace;
	const struct mutant *mutant;
	const char *mode;
};

struct worker { /* in shared memory */
	struct tallies tallies;
	int64_t seed; /* of the session that runs */
	int64_t findings;
};

static char *make_folder(void)
{
	const char *base = env_get("TMPDIR");
	char *path;

	if (!base && file_is_dir("/dev/shm"))
		base = "/dev/shm";
	path = mem_printf("%s/baton-simulator-XXXXXX", base ? base : "/tmp");
	if (!mkdtemp(path)) {
		free(path);
		return NULL;
	}
	return path;
}

static void tell_finding(const struct options *o, int64_t seed, const struct finding *f)
{
	AUTO_FREE char *line =
		mem_printf("FOUND seed %lld, %s at request %lld: %s\n      again: simulator "
			   "%s--seed %lld%s%s\n",
			   (long long)seed, f->rule, (long long)f->request, f->text,
			   o->form == FORM_NIGHTLY ? "--nightly " : "", (long long)seed,
			   o->mutant ? " --mutant " : "", o->mutant ? o->mutant->name : "");

	if (!o->quiet && write(STDOUT_FILENO, line, strlen(line)) < 0)
		return;
}

/* One session in a folder of its own. */
static int run_session(const struct options *o, const char *base, int64_t seed, struct tallies *t,
		       struct finding *ret)
{
	AUTO_FREE char *folder = mem_printf("%s/%lld", base, (long long)seed);
	struct session_options options = {
		.seed = (uint64_t)seed,
		.form = o->form,
		.mutant = o->mutant,
		.folder = folder,
		.trace = o->trace,
		.load = o->mutant || seed % LOAD_EVERY == 0 || o->sessions == 1,
	};
	int found;

	if (file_mkdirs(folder, 0700, NULL) < 0)
		return -1;
	/* Time is virtual: one that really waits is stuck, and its worker dies with the seed on record. */
	alarm(STUCK_S);
	if (o->mutant ? o->mutant->pair != NULL : seed % PAIR_EVERY == 0)
		found = pair_run(&options, t, ret);
	else
		found = session_run(&options, t, ret);
	alarm(0);
	file_remove_tree(folder, NULL);
	return found;
}

/* ---- many sessions ---- */

static void work(const struct options *o, const char *base, int64_t index, struct worker *w)
{
	for (int64_t i = index; i < o->sessions && w->findings < FINDINGS_MOST; i += o->workers) {
		struct finding finding = {.found = false};

		w->seed = o->first + i;
		if (run_session(o, base, w->seed, &w->tallies, &finding)) {
			w->findings++;
			tell_finding(o, w->seed, &finding);
		}
	}
}

/* Alone it runs in this process, for a debugger's sake. */
static pid_t start_worker(const struct options *o, const char *base, int64_t index,
			  struct worker *w)
{
	pid_t pid = o->sessions > 1 ? fork() : 0;

	if (pid)
		return pid;
	if (o->sessions == 1) {
		work(o, base, index, w);
		return 0;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	work(o, base, index, w);
	fflush(NULL);
	_exit(w->findings ? 1 : 0);
}

/* A worker that died of a signal is a finding of its own. */
static int reap(const struct worker *workers, const pid_t *pids, int64_t n)
{
	int failed = 0, status;

	for (int64_t i = 0; i < n; i++) {
		if (!pids[i]) {
			failed += workers[i].findings > 0;
			continue;
		}
		if (waitpid(pids[i], &status, 0) < 0 ||
		    (WIFEXITED(status) && WEXITSTATUS(status) == 0))
			continue;
		failed++;
		if (!WIFEXITED(status) || WEXITSTATUS(status) != 1)
			printf("FOUND seed %lld: the process died (%d)\n",
			       (long long)workers[i].seed, status);
	}
	return failed;
}

static int run_many(struct options *o, const char *base)
{
	struct tallies *sum = mem_alloc(sizeof(*sum));
	size_t size = sizeof(struct worker) * WORKERS_MAX;
	struct worker *workers =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int64_t began = clock_mono_ms();
	pid_t pids[WORKERS_MAX];
	int failed;

	if (workers == MAP_FAILED)
		return 1;
	fflush(NULL);
	for (int64_t i = 0; i < o->workers; i++)
		pids[i] = start_worker(o, base, i, &workers[i]);
	failed = reap(workers, pids, o->workers);
	for (int64_t i = 0; i < o->workers; i++)
		tallies_add(sum, &workers[i].tallies);
	failed += tallies_print(sum, o->form == FORM_NIGHTLY && o->sessions >= 100);
	printf("%lld sessions from seed %lld in %.1f s: %s\n", (long long)o->sessions,
	       (long long)o->first, (double)(clock_mono_ms() - began) / 1000,
	       failed ? "FAILED" : "well");
	munmap(workers, size);
	free(sum);
	return failed != 0;
}

/* ---- mutants ---- */

/* Sessions until the watcher names the rule. Another rule first is no proof, but no failure either. */
static bool is_noticed(struct options *o, const char *base, const struct mutant *m)
{
	struct tallies *t = mem_alloc(sizeof(*t));
	bool noticed = false;

	o->mutant = m;
	for (int64_t seed = 1; seed <= MUTANT_TRIES && !noticed; seed++) {
		struct finding finding = {.found = false};

		noticed = run_session(o, base, seed, t, &finding) && !strcmp(finding.rule, m->rule);
		if (noticed)
			printf("  %s: seed %lld, %s at request %lld: %s\n", m->name,
			       (long long)seed, finding.rule, (long long)finding.request,
			       finding.text);
	}
	free(t);
	return noticed;
}

static int run_mutants(struct options *o, const char *base)
{
	size_t n, failed = 0;
	const struct mutant *table = mutant_table(&n);

	printf("[==========] Running %zu test(s).\n", n);
	for (size_t i = 0; i < n; i++) {
		bool noticed = is_noticed(o, base, &table[i]);

		printf("[ RUN      ] mutant_%s\n[  %s ] mutant_%s\n", table[i].name,
		       noticed ? "     OK" : "FAILED ", table[i].name);
		failed += !noticed;
	}
	return failed != 0;
}

/* ---- the command line ---- */

static int usage(void)
{
	printf("simulator [--trace] [--ci | --nightly | --asan] [--sessions N] [--first SEED] "
	       "[--workers N]\n"
	       "simulator --seed N [--nightly] [--mutant NAME]     one session again\n"
	       "simulator --mutants                               each mutant must be noticed\n"
	       "simulator --cost                                  the price of the ladder\n");
	return 2;
}

static int take_option(struct options *o, const char *name, const char *value)
{
	int64_t *number = !strcmp(name, "--sessions")  ? &o->sessions
			  : !strcmp(name, "--first")   ? &o->first
			  : !strcmp(name, "--workers") ? &o->workers
						       : NULL;

	if (!strcmp(name, "--mutant") && value)
		return (o->mutant = mutant_find(value)) ? 1 : -1;
	if (!strcmp(name, "--seed") && value && text_parse_i64(value, &o->first) == 0) {
		o->sessions = o->workers = 1;
		return 1;
	}
	return number && value && text_parse_i64(value, number) == 0 ? 1 : -1;
}

static int parse(int argc, char **argv, struct options *o)
{
	for (int i = 1; i < argc; i++) {
		int more = 0;

		if (!strcmp(argv[i], "--nightly"))
			o->form = FORM_NIGHTLY;
		else if (!strcmp(argv[i], "--asan"))
			o->sessions = ASAN_SESSIONS;
		else if (!strcmp(argv[i], "--trace"))
			o->trace = true;
		else if (!strcmp(argv[i], "--mutants"))
			o->mutants = true;
		else if (!strcmp(argv[i], "--cost"))
			o->cost = true;
		else if (strcmp(argv[i], "--ci") != 0)
			more = take_option(o, argv[i], i + 1 < argc ? argv[i + 1] : NULL);
		if (more < 0)
			return -1;
		i += more;
	}
	if (o->workers < 1 || o->workers > WORKERS_MAX || o->sessions < 1)
		return -1;
	return 0;
}

int main(int argc, char **argv)
{
	struct options o = {.form = FORM_CI, .first = 1, .sessions = CI_SESSIONS};
	AUTO_FREE char *base = NULL;
	int failed;

	o.workers = MIN(MAX(sysconf(_SC_NPROCESSORS_ONLN), 1), WORKERS_MAX);
	if (parse(argc, argv, &o) < 0)
		return usage();
	base = make_folder();
	if (!base) {
		printf("no folder can be made\n");
		return 1;
	}
	samples_make();
	failed = o.mutants ? run_mutants(&o, base) : o.cost ? cost_run(base) : run_many(&o, base);
	file_remove_tree(base, NULL);
	return failed;
}
