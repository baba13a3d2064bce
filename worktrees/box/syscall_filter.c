/*
 * syscall_filter.c - see syscall_filter.h. Runs in baton-box.
 *
 * The list of syscall_rules.c becomes segments of the line of all call numbers (allowed, refused,
 * looked at), and those a search tree whose leaves are shared. It is written by hand, since it runs
 * before every command of every agent: libseccomp takes longer to build the program than everything
 * else that baton-box does, is a shared library more to load, and cannot say "this family or that,
 * nothing else". The kernel compiles each instruction and runs the program once for every call
 * there is, so what counts is few instructions and short paths.
 */
#include "worktrees/box/syscall_filter.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

#include "base/memory.h"

/* Calls above it are unknown to the rules (and might be io_uring's successor): not there. x32
 * numbers are far above it. */
#define SYSCALL_NEWEST 470

#define OFFSET_NR      offsetof(struct seccomp_data, nr)
#define OFFSET_ARCH    offsetof(struct seccomp_data, arch)
/* The low half of an argument, on a little-endian machine. */
#define OFFSET_ARG(n) (offsetof(struct seccomp_data, args) + 8 * (n))
#define RULES_MAX     ARRAY_SIZE(((struct syscall_rules *)NULL)->list)

/* Where a path through the tree ends: an answer, or FIRST_CALL + the index of the first rule of a
 * call whose arguments are looked at. */
enum label { ALLOW, REFUSE, MISSING, FIRST_CALL };

/* From this number on, up to the next segment. */
struct segment {
	uint32_t start;
	unsigned label;
};

struct jump {
	unsigned short at; /* the instruction */
	bool if_true;
	unsigned label;
};

struct program {
	struct sock_filter *code; /* SYSCALL_FILTER_MAX */
	unsigned short len;
	struct segment segments[2 * RULES_MAX + 2];
	size_t n_segments;
	struct jump jumps[512]; /* to labels that have no place yet */
	size_t n_jumps;
};

static unsigned label_of(int error)
{
	return error == 0 ? ALLOW : error == EPERM ? REFUSE : MISSING;
}

static void emit(struct program *p, uint16_t code, uint32_t k)
{
	if (p->len == SYSCALL_FILTER_MAX)
		abort();
	p->code[p->len++] = (struct sock_filter){.code = code, .k = k};
}

static void emit_load(struct program *p, size_t offset)
{
	emit(p, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset);
}

/* The instruction that was emitted last jumps there. */
static void jump_to(struct program *p, bool if_true, unsigned label)
{
	if (p->n_jumps == ARRAY_SIZE(p->jumps))
		abort();
	p->jumps[p->n_jumps++] = (struct jump){
		.at = (unsigned short)(p->len - 1), .if_true = if_true, .label = label};
}

/* The label stands at the next instruction. Short jumps reach 255 instructions, more than any list
 * of ours needs; a longer one is our bug. */
static void place(struct program *p, unsigned label)
{
	for (size_t i = 0; i < p->n_jumps; i++) {
		struct sock_filter *from = &p->code[p->jumps[i].at];
		unsigned distance = p->len - p->jumps[i].at - 1u;

		if (p->jumps[i].label != label)
			continue;
		if (distance > UINT8_MAX)
			abort();
		*(p->jumps[i].if_true ? &from->jt : &from->jf) = (uint8_t)distance;
	}
}

/* By number; the order of the rules of one call stays (insertion: they are few). */
static void sort_rules(struct syscall_rules *rules)
{
	for (size_t i = 1; i < rules->count; i++) {
		struct syscall_rule rule = rules->list[i];
		size_t at = i;

		for (; at > 0 && rules->list[at - 1].nr > rule.nr; at--)
			rules->list[at] = rules->list[at - 1];
		rules->list[at] = rule;
	}
}

static bool is_first(const struct syscall_rules *rules, size_t i)
{
	return i == 0 || rules->list[i - 1].nr != rules->list[i].nr;
}

static void add_segment(struct program *p, uint32_t start, unsigned label)
{
	struct segment *last = p->n_segments ? &p->segments[p->n_segments - 1] : NULL;

	if (last && last->start == start)
		last->label = label;
	else if (!last || last->label != label)
		p->segments[p->n_segments++] = (struct segment){.start = start, .label = label};
}

/* Neighbours with the same answer become one. */
static void make_segments(struct program *p, const struct syscall_rules *rules)
{
	add_segment(p, 0, ALLOW);
	for (size_t i = 0; i < rules->count; i++) {
		const struct syscall_rule *rule = &rules->list[i];

		if (!is_first(rules, i))
			continue;
		/* what a gap left at this number may equal what stands before it */
		if (p->n_segments > 1 && p->segments[p->n_segments - 1].start == (uint32_t)rule->nr)
			p->n_segments--;
		add_segment(p, (uint32_t)rule->nr,
			    rule->arg < 0 ? label_of(rule->error) : FIRST_CALL + (unsigned)i);
		add_segment(p, (uint32_t)rule->nr + 1, ALLOW);
	}
	add_segment(p, SYSCALL_NEWEST + 1, MISSING);
}

/* The accumulator holds the number, and it lies in one of these segments (two at least). */
static void emit_tree(struct program *p, const struct segment *segments, size_t count)
{
	size_t middle = count / 2;

	emit(p, BPF_JMP | BPF_JGE | BPF_K, segments[middle].start);
	unsigned short node = (unsigned short)(p->len - 1);
	if (count - middle == 1)
		jump_to(p, true, segments[middle].label);
	if (middle == 1)
		jump_to(p, false, segments[0].label);
	else
		emit_tree(p, segments, middle);
	if (count - middle == 1)
		return;
	if (p->len - node - 1u > UINT8_MAX)
		abort();
	p->code[node].jt = (uint8_t)(p->len - node - 1);
	emit_tree(p, segments + middle, count - middle);
}

static void emit_always(struct program *p, unsigned label)
{
	emit(p, BPF_JMP | BPF_JGE | BPF_K, 0);
	jump_to(p, true, label);
}

/* All rules of one call in their order; what none of them decides is allowed. */
static void emit_call(struct program *p, const struct syscall_rules *rules, size_t i)
{
	int loaded = -1; /* the argument that the accumulator holds */
	int nr = rules->list[i].nr;

	for (; i < rules->count && rules->list[i].nr == nr; i++) {
		const struct syscall_rule *rule = &rules->list[i];

		if (rule->arg < 0) {
			emit_always(p, label_of(rule->error));
			return;
		}
		bool one_bit = rule->mask == rule->value && (rule->mask & (rule->mask - 1)) == 0;
		if (loaded != rule->arg)
			emit_load(p, OFFSET_ARG((size_t)rule->arg));
		loaded = rule->arg;
		if (rule->mask != UINT32_MAX && !one_bit) {
			emit(p, BPF_ALU | BPF_AND | BPF_K, rule->mask);
			loaded = -1;
		}
		emit(p, BPF_JMP | BPF_K | (one_bit ? BPF_JSET : BPF_JEQ), rule->value);
		jump_to(p, true, label_of(rule->error));
	}
	emit_always(p, ALLOW);
}

/* Other tables (32-bit programs) number other calls: none of them is there. */
static void emit_all(struct program *p, const struct syscall_rules *rules)
{
	emit_load(p, OFFSET_ARCH);
	emit(p, BPF_JMP | BPF_JEQ | BPF_K, SYSCALL_ARCH);
	jump_to(p, false, MISSING);
	emit_load(p, OFFSET_NR);
	emit_tree(p, p->segments, p->n_segments);
	for (size_t i = 0; i < rules->count; i++) {
		if (!is_first(rules, i) || rules->list[i].arg < 0)
			continue;
		place(p, FIRST_CALL + (unsigned)i);
		emit_call(p, rules, i);
	}
	place(p, ALLOW);
	emit(p, BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	place(p, REFUSE);
	emit(p, BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
	place(p, MISSING);
	emit(p, BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS);
}

size_t syscall_filter_build(enum box_network network, bool guard_truncate,
			    struct sock_filter code[SYSCALL_FILTER_MAX])
{
	struct syscall_rules rules;
	struct program program = {.code = code};

	syscall_rules_fill(&rules, network, guard_truncate);
	sort_rules(&rules);
	make_segments(&program, &rules);
	emit_all(&program, &rules);
	return program.len;
}

int syscall_filter_apply(enum box_network network, bool guard_truncate, struct err *err)
{
	struct sock_filter code[SYSCALL_FILTER_MAX];

	if (SYSCALL_ARCH == 0)
		return err_set(err, ERR_UNSUPPORTED, "no system call filter for this machine");
	size_t len = syscall_filter_build(network, guard_truncate, code);
	struct sock_fprog filter = {.len = (unsigned short)len, .filter = code};
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) < 0)
		return err_sys(err, "cannot install the system call filter");
	return 0;
}
