/*
 * many_tests.c - several cmocka programs as one: PROGRAM NAME runs the test file test_NAME.c.
 *
 * Linking takes longer than compiling for most test files, under the sanitizers above all, so those that link the
 * same libraries are linked once. Each file keeps its own main() and stays a program of its own for meson, with its
 * suite, timeout and log; it is compiled with main renamed. TESTS is a list of X(name).
 */
#include <stdio.h>
#include <string.h>

#define X(name) int test_main_##name(int argc, char **argv);
TESTS
#undef X

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
} tests[] = {
#define X(name) {#name, test_main_##name},
	TESTS
#undef X
};

int main(int argc, char **argv)
{
	size_t n = sizeof(tests) / sizeof(tests[0]);

	for (size_t i = 0; argc > 1 && i < n; i++) {
		if (strcmp(argv[1], tests[i].name) == 0)
			return tests[i].run(argc - 1, argv + 1);
	}
	fprintf(stderr, "which of:");
	for (size_t i = 0; i < n; i++)
		fprintf(stderr, " %s", tests[i].name);
	fprintf(stderr, "\n");
	return 2;
}
