/*
 * syscall_filter.c - see syscall_filter.h. Runs in baton-box.
 *
 * The list of syscall_rules.c becomes a chain of comparisons. Written by hand, since libseccomp
 * takes longer to build the program than everything else that baton-box does (and a shared library
 * more to load, before every command of every agent), and cannot say "this family or that, nothing
 * else". A chain is fast enough: the kernel keeps a bitmap of the calls that a filter allows
 * whatever their arguments, and runs it for the others only.
 */
#include "worktrees/box/syscall_filter.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/memory.h"

/* Calls above it are unknown to the rules (and might be io_uring's successor): not there. */
#define NEWEST_KNOWN 470
#define X32_BIT	     0x40000000u

#define OFFSET_NR    offsetof(struct seccomp_data, nr)
#define OFFSET_ARCH  offsetof(struct seccomp_data, arch)
#define OFFSET_ARG(n)                                                                              \
	(offsetof(struct seccomp_data, args) + 8 * (n)) /* low half: little-endian                 \
							 */
#define ANSWER(err_nr)	((err_nr) ? SECCOMP_RET_ERRNO | (uint32_t)(err_nr) : SECCOMP_RET_ALLOW)
#define RULE_LEN_MAX	6
#define PROGRAM_LEN_MAX (8 + RULE_LEN_MAX * ARRAY_SIZE(((struct syscall_rules *)NULL)->list))

struct program {
	struct sock_filter code[PROGRAM_LEN_MAX];
	unsigned short len;
};

static void emit(struct program *p, struct sock_filter instruction)
{
	p->code[p->len++] = instruction;
}

static void emit_load(struct program *p, size_t offset)
{
	emit(p, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

static void emit_answer(struct program *p, int error)
{
	emit(p, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, ANSWER(error)));
}

/* Skips `skip` instructions unless the accumulator is `value`. */
static void emit_unless(struct program *p, uint32_t value, uint8_t skip)
{
	emit(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skip));
}

/* The accumulator holds the number before and after each rule. */
static void emit_rule(struct program *p, const struct syscall_rule *rule)
{
	if (rule->arg < 0) {
		emit_unless(p, (uint32_t)rule->nr, 1);
		emit_answer(p, rule->error);
		return;
	}
	emit_unless(p, (uint32_t)rule->nr, 5);
	emit_load(p, OFFSET_ARG((size_t)rule->arg));
	emit(p, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, rule->mask));
	emit_unless(p, rule->value, 1);
	emit_answer(p, rule->error);
	emit_load(p, OFFSET_NR);
}

/* Other tables (32-bit, x32) number other calls: none of them is there. */
static void emit_start(struct program *p)
{
	emit_load(p, OFFSET_ARCH);
	emit(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYSCALL_ARCH, 1, 0));
	emit_answer(p, ENOSYS);
	emit_load(p, OFFSET_NR);
	/* Unsigned, so x32 numbers are above it as well. */
	_Static_assert(NEWEST_KNOWN < X32_BIT, "x32 calls are refused by this comparison");
	emit(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, NEWEST_KNOWN, 0, 1));
	emit_answer(p, ENOSYS);
}

int syscall_filter_apply(enum box_network network, bool guard_truncate, struct err *err)
{
	struct syscall_rules rules;
	struct program program = {.len = 0};

	if (SYSCALL_ARCH == 0)
		return err_set(err, ERR_UNSUPPORTED, "no system call filter for this machine");
	syscall_rules_fill(&rules, network, guard_truncate);
	emit_start(&program);
	for (size_t i = 0; i < rules.count; i++)
		emit_rule(&program, &rules.list[i]);
	emit_answer(&program, 0);
	struct sock_fprog filter = {.len = program.len, .filter = program.code};
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) < 0)
		return err_sys(err, "cannot install the system call filter");
	return 0;
}
