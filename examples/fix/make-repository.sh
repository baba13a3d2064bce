#!/bin/sh
# Builds a small C project in a git repository whose test fails. Usage: make-repository.sh DIR
set -eu

if [ $# -ne 1 ]; then
	echo "usage: $0 DIR" >&2
	exit 2
fi
if [ -e "$1" ] && [ -n "$(ls -A "$1")" ]; then
	echo "$0: '$1' is not empty" >&2
	exit 2
fi
mkdir -p "$1"
cd "$1"

# Dates, names and settings are fixed, so that commit ids are the same on every machine.
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
export GIT_AUTHOR_NAME="Ada Example" GIT_AUTHOR_EMAIL=ada@example.org
export GIT_COMMITTER_NAME="Ada Example" GIT_COMMITTER_EMAIL=ada@example.org
export GIT_AUTHOR_DATE="2026-03-01T10:00:00Z" GIT_COMMITTER_DATE="2026-03-01T10:00:00Z"
git init -q -b main .
git config user.name "Ada Example"
git config user.email ada@example.org

mkdir -p src tests
cat >README.md <<'END'
# count

Counts lines and words of a text. `make test` builds and runs the tests.
END
printf '*.o\n/tests/test_count\n' >.gitignore
cat >Makefile <<'END'
CFLAGS = -std=c11 -Wall -Wextra -O1 -Isrc

test: tests/test_count
	./tests/test_count

tests/test_count: tests/test_count.c src/count.c src/count.h
	$(CC) $(CFLAGS) -o $@ tests/test_count.c src/count.c

clean:
	rm -f tests/test_count

.PHONY: test clean
END
cat >src/count.h <<'END'
#ifndef COUNT_H
#define COUNT_H

#include <stddef.h>

/* Line ends in the text. */
size_t count_lines(const char *text);
/* Words: runs of characters that are no white space. */
size_t count_words(const char *text);

#endif
END
cat >src/count.c <<'END'
#include "count.h"

#include <ctype.h>
#include <stdbool.h>

size_t count_lines(const char *text)
{
	size_t lines = 0;

	for (const char *p = text; *p; p++)
		if (*p == '\n')
			lines++;
	return lines;
}

size_t count_words(const char *text)
{
	size_t words = 0;
	bool inside = false;

	for (const char *p = text; *p; p++) {
		if (isspace((unsigned char)*p)) {
			inside = false;
		} else if (inside) {
			inside = true;
			words++;
		}
	}
	return words;
}
END
cat >tests/test_count.c <<'END'
#include <stdio.h>

#include "count.h"

static int failed, run;

static void check(const char *what, const char *text, size_t got, size_t expected)
{
	run++;
	if (got == expected)
		return;
	failed++;
	printf("FAIL: %s of \"%s\": expected %zu, got %zu\n", what, text, expected, got);
}

int main(void)
{
	check("lines", "a b c", count_lines("a b c"), 0);
	check("words", "a b c", count_words("a b c"), 3);
	check("words", "  one  ", count_words("  one  "), 1);
	check("words", "", count_words(""), 0);
	if (failed) {
		printf("%d of %d checks failed\n", failed, run);
		return 1;
	}
	printf("all %d checks passed\n", run);
	return 0;
}
END
git add -A
git commit -q -m "Count lines and words" -m "The word count does not work yet: the test shows it."

echo "repository: $(pwd)"
echo "let an agent repair it with: baton run 'make test fails: find out why and repair it'"
