/* memory: the arena, growth, hand-over, and that running out aborts. */
#include "test_base.h"

#include <signal.h>
#include <stdalign.h>
#include <sys/resource.h>
#include <sys/wait.h>

static void test_strings(void **state)
{
	AUTO_FREE char *a = mem_strndup("abcdef", 3);
	AUTO_FREE char *b = mem_printf("%s-%d", a, 5);
	assert_string_equal(a, "abc");
	assert_string_equal(b, "abc-5");
	assert_null(mem_strdup(NULL));
	AUTO_FREE char *c = mem_dup("x\0y", 4);
	assert_memory_equal(c, "x\0y", 4);
	AUTO_FREE char *zero = mem_alloc(16);
	for (int i = 0; i < 16; i++)
		assert_int_equal(zero[i], 0);
}

static void test_grow_keeps_what_was_there(void **state)
{
	int *list = NULL;
	size_t cap = 0;
	for (int i = 0; i < 1000; i++) {
		MEM_GROW(list, cap, i + 1);
		list[i] = i;
	}
	for (int i = 0; i < 1000; i++)
		assert_int_equal(list[i], i);
	free(list);
}

static void test_take_disarms(void **state)
{
	char *kept;
	int kept_fd;
	{
		AUTO_FREE char *local = mem_strdup("x");
		AUTO_FD int fd = dup(0);
		kept = take_ptr(local);
		kept_fd = take_fd(fd);
		assert_null(local);
		assert_int_equal(fd, -1);
	}
	assert_string_equal(kept, "x");
	assert_int_equal(close(kept_fd), 0);
	free(kept);
}

static void test_arena_is_aligned_zeroed_and_separate(void **state)
{
	struct arena *arena = arena_new();
	for (int round = 0; round < 3; round++) {
		unsigned char *before = NULL;
		for (size_t size = 1; size < 5000; size += 37) {
			unsigned char *p = arena_alloc(arena, size);
			assert_int_equal((uintptr_t)p % alignof(max_align_t), 0);
			for (size_t i = 0; i < size; i++)
				assert_int_equal(p[i], 0);
			memset(p, 0xaa, size);
			assert_true(p != before);
			before = p;
		}
		char *large = arena_alloc(arena, 3 << 20);
		large[(3 << 20) - 1] = 1;
		arena_reset(arena);
	}
	arena_free(arena);
	arena_free(NULL);
}

static void test_arena_strings(void **state)
{
	struct arena *arena = arena_new();
	char *a = arena_strdup(arena, "abc");
	char *b = arena_strndup(arena, "defghi", 3);
	char *c = arena_printf(arena, "%s%s%0500d", a, b, 7);
	assert_string_equal(a, "abc");
	assert_string_equal(b, "def");
	assert_int_equal(strlen(c), 506);
	assert_null(arena_strdup(arena, NULL));
	arena_free(arena);
}

/* Runs fn in a child; true if it died of SIGABRT. */
static int aborts(void (*fn)(void))
{
	pid_t pid = fork();
	if (pid == 0) {
		struct rlimit none = {0, 0};
		setrlimit(RLIMIT_CORE, &none);
		sigaction(SIGABRT, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
		close(2);
		fn();
		_exit(0);
	}
	int status = 0;
	waitpid(pid, &status, 0);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void overflowing_array(void)
{
	volatile size_t count = SIZE_MAX / 2;
	free(mem_array(NULL, count, 16));
}

static void harmless(void)
{
	free(mem_array(NULL, 2, 16));
}

static void test_overflow_aborts(void **state)
{
	assert_true(aborts(overflowing_array));
	assert_false(aborts(harmless));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_strings),
		cmocka_unit_test(test_grow_keeps_what_was_there),
		cmocka_unit_test(test_take_disarms),
		cmocka_unit_test(test_arena_is_aligned_zeroed_and_separate),
		cmocka_unit_test(test_arena_strings),
		cmocka_unit_test(test_overflow_aborts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
