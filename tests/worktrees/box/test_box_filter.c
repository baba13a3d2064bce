/*
 * test_box_filter.c - the filter's program decides as the table of rules says (X10), for every call
 * number, both kinds of list and arguments at the rules' edges.
 *
 * The program is run here, by the few instructions of BPF that it uses: most of these calls cannot
 * be tried for real.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#include <errno.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/memory.h"
#include "worktrees/box/syscall_filter.h"

static uint32_t load(const struct seccomp_data *data, uint32_t offset)
{
	uint32_t word;

	assert_true(offset % 4 == 0 && offset + 4 <= sizeof(*data));
	memcpy(&word, (const char *)data + offset, 4);
	return word;
}

/* What the kernel would answer; *ret_steps: how many instructions that took. */
static uint32_t run(const struct sock_filter *code, size_t len, const struct seccomp_data *data,
		    unsigned *ret_steps)
{
	uint32_t a = 0;

	*ret_steps = 0;
	for (size_t pc = 0; pc < len; pc++) {
		const struct sock_filter *i = &code[pc];
		bool yes = false;

		++*ret_steps;
		switch (i->code) {
		case BPF_LD | BPF_W | BPF_ABS: a = load(data, i->k); continue;
		case BPF_ALU | BPF_AND | BPF_K: a &= i->k; continue;
		case BPF_RET | BPF_K: return i->k;
		case BPF_JMP | BPF_JEQ | BPF_K: yes = a == i->k; break;
		case BPF_JMP | BPF_JGE | BPF_K: yes = a >= i->k; break;
		case BPF_JMP | BPF_JSET | BPF_K: yes = (a & i->k) != 0; break;
		default: fail_msg("an instruction that is not expected: %x", i->code);
		}
		pc += yes ? i->jt : i->jf;
	}
	fail_msg("the program runs out of its end");
	return 0;
}

/* The first rule that matches, as syscall_filter.h says. */
static uint32_t expected(const struct syscall_rules *rules, const struct seccomp_data *data)
{
	if (data->nr < 0 || data->nr > SYSCALL_NEWEST)
		return SECCOMP_RET_ERRNO | ENOSYS;
	for (size_t i = 0; i < rules->count; i++) {
		const struct syscall_rule *rule = &rules->list[i];

		if (rule->nr != data->nr)
			continue;
		if (rule->arg < 0 || ((uint32_t)data->args[rule->arg] & rule->mask) == rule->value)
			return rule->error ? SECCOMP_RET_ERRNO | (uint32_t)rule->error
					   : SECCOMP_RET_ALLOW;
	}
	return SECCOMP_RET_ALLOW;
}

/* Values of one argument that rules tell apart, with and without an upper half. */
static size_t edges(const struct syscall_rules *rules, int nr, int arg, uint64_t values[64])
{
	size_t n = 0;

	values[n++] = 0;
	values[n++] = UINT64_MAX;
	for (size_t i = 0; i < rules->count && n + 5 < 64; i++) {
		const struct syscall_rule *rule = &rules->list[i];

		if (rule->nr != nr || rule->arg != arg)
			continue;
		values[n++] = rule->value;
		values[n++] = rule->value | ~(uint64_t)rule->mask;
		values[n++] = rule->value | 0x100000000u;
		values[n++] = rule->value ^ 1;
		values[n++] = (uint64_t)rule->value << 32;
	}
	return n;
}

static void check_call(const struct syscall_rules *rules, const struct sock_filter *code,
		       size_t len, int nr)
{
	uint64_t first[64], second[64], third[64];
	struct seccomp_data data = {.nr = nr, .arch = SYSCALL_ARCH};
	size_t n = edges(rules, nr, 0, first), m = edges(rules, nr, 1, second);
	size_t o = edges(rules, nr, 2, third);
	unsigned steps;

	for (size_t i = 0; i < n * m * o; i++) {
		data.args[0] = first[i % n];
		data.args[1] = second[i / n % m];
		data.args[2] = third[i / n / m];
		uint32_t answer = run(code, len, &data, &steps);
		if (answer != expected(rules, &data))
			fail_msg("call %d (%llx, %llx, %llx): %x", nr,
				 (unsigned long long)data.args[0], (unsigned long long)data.args[1],
				 (unsigned long long)data.args[2], answer);
		assert_true(steps < 32); /* the kernel walks it for every call there is */
	}
}

static void test_program_decides_as_the_rules_say(void **state)
{
	for (unsigned kind = 0; kind < 6; kind++) {
		struct sock_filter code[SYSCALL_FILTER_MAX];
		struct syscall_rules rules;

		syscall_rules_fill(&rules, (enum box_network)(kind / 2), kind % 2);
		size_t len = syscall_filter_build((enum box_network)(kind / 2), kind % 2, code);
		for (int nr = -2; nr < 1000; nr++)
			check_call(&rules, code, len, nr);
		check_call(&rules, code, len, 0x40000000 + SYS_getpid);
		check_call(&rules, code, len, 0x40000000 + SYS_ptrace);
	}
}

static void test_other_architectures_have_no_calls(void **state)
{
	struct sock_filter code[SYSCALL_FILTER_MAX];
	size_t len = syscall_filter_build(BOX_NETWORK_OPEN, false, code);
	unsigned steps;

	for (int nr = 0; nr < 500; nr++) {
		const struct seccomp_data data = {.nr = nr, .arch = AUDIT_ARCH_I386};

		assert_int_equal(run(code, len, &data, &steps), SECCOMP_RET_ERRNO | ENOSYS);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_program_decides_as_the_rules_say),
		cmocka_unit_test(test_other_architectures_have_no_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
