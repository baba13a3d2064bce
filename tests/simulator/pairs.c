/*
 * pairs.c - what an agent sends must not depend on who else is there.
 *
 * In the product each agent is a process, which hides what is shared by mistake until somebody puts two into one. Here both run in
 * one, so any variable outside of `struct agent` shows as a request that differs from that of the agent alone.
 */
#include "pairs.h"

#include <stdio.h>

#include "base/file.h"
#include "base/memory.h"
#include "mutants.h"

#define TWO 2

struct pair {
	struct session_options options[TWO];
	struct session_cost alone[TWO], together[TWO];
	struct tallies *scratch;
};

static char *make_folder(const char *base, int i)
{
	char *path = mem_printf("%s/%c", base, 'a' + i);

	file_remove_tree(path, NULL);
	file_mkdirs(path, 0700, NULL);
	return path;
}

static int run_alone(struct pair *p, int i, const char *base, struct tallies *tallies,
		     struct finding *ret)
{
	AUTO_FREE char *folder = make_folder(base, i);

	p->options[i].folder = folder;
	p->options[i].ret_cost = &p->alone[i];
	return session_run(&p->options[i], tallies, ret);
}

static int run_together(struct pair *p, const char *base, struct finding *ret)
{
	AUTO_FREE char *first = make_folder(base, 0);
	AUTO_FREE char *second = make_folder(base, 1);
	const struct mutant *mutant = p->options[0].mutant;
	struct finding other = {.found = false};
	struct session *s[TWO];
	bool more[TWO] = {true, true};
	int found;

	p->options[0].folder = first;
	p->options[1].folder = second;
	for (int i = 0; i < TWO; i++) {
		p->options[i].ret_cost = &p->together[i];
		s[i] = session_open(&p->options[i], p->scratch);
	}
	while (more[0] || more[1]) {
		for (int i = 0; i < TWO; i++)
			more[i] = more[i] && session_step(s[i]);
		if (mutant && mutant->pair)
			mutant->pair(s[0], s[1]);
	}
	found = session_close(s[0], &p->options[0], ret);
	if (session_close(s[1], &p->options[1], &other) && !found) {
		*ret = other;
		found = 1;
	}
	return found;
}

static void compare(const struct pair *p, struct finding *ret)
{
	for (int i = 0; i < TWO && !ret->found; i++) {
		if (p->alone[i].trail == p->together[i].trail)
			continue;
		ret->found = true;
		snprintf(ret->rule, sizeof(ret->rule), "H11");
		snprintf(ret->text, sizeof(ret->text),
			 "the agent of seed %llu says other things when another one runs",
			 (unsigned long long)p->options[i].seed);
	}
}

int pair_run(const struct session_options *options, struct tallies *tallies, struct finding *ret)
{
	struct pair p = {.scratch = mem_alloc(sizeof(*p.scratch))};

	for (int i = 0; i < TWO; i++) {
		p.options[i] = *options;
		p.options[i].seed += (uint64_t)i;
		p.options[i].load = false;
	}
	/* The first counts as the session of its seed. */
	if (!run_alone(&p, 0, options->folder, tallies, ret) &&
	    !run_alone(&p, 1, options->folder, p.scratch, ret) &&
	    !run_together(&p, options->folder, ret))
		compare(&p, ret);
	tallies->count[TALLY_PAIRS]++;
	free(p.scratch);
	return ret->found;
}
