/*
 * wrap_syscall.h - kernels that lack a system call, for the tests that are linked with
 * --wrap=syscall.
 *
 * The fallbacks for old kernels would otherwise only ever run where nobody tests.
 */
#ifndef BATON_TESTS_WRAP_SYSCALL_H
#define BATON_TESTS_WRAP_SYSCALL_H

#include <errno.h>
#include <stdarg.h>
#include <sys/syscall.h>

/* The number of the call that this kernel does not have; -1: it has all. */
static long missing_call = -1;

long __wrap_syscall(long number, ...);
long __real_syscall(long number, ...);

/* Also runs in the child of spawn_process, on a stack that the sanitizers do not know. */
__attribute__((no_sanitize("address", "undefined"))) long __wrap_syscall(long number, ...)
{
	long arg[6];
	va_list ap;
	if (number == missing_call) {
		errno = ENOSYS;
		return -1;
	}
	va_start(ap, number);
	for (int i = 0; i < 6; i++)
		arg[i] = va_arg(ap, long);
	va_end(ap);
	return __real_syscall(number, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
}

#endif
