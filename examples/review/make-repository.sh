#!/bin/sh
# Builds a small git repository with a real history: four commits that make a parcel tracker, and two
# that add features together with the defects a review should find. Usage: make-repository.sh DIR
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
step=0
commit() {
	step=$((step + 1))
	GIT_AUTHOR_DATE="2026-03-0${step}T10:00:00Z"
	GIT_COMMITTER_DATE=$GIT_AUTHOR_DATE
	export GIT_AUTHOR_DATE GIT_COMMITTER_DATE
	git add -A
	git commit -q -m "$1" -m "$2"
}
git init -q -b main .
git config user.name "Ada Example"
git config user.email ada@example.org

# ---- 1: the skeleton
mkdir -p src tests tools
cat >README.md <<'END'
# parcels

Tracks parcels: reads lines `id;name;weight`, keeps them in a file, prints a daily report.

    make && make test
END
cat >Makefile <<'END'
CFLAGS = -std=c11 -Wall -Wextra -O1 -pthread -Isrc
OBJECTS = src/parse.o src/store.o src/report.o src/worker.o

parcels: src/main.o $(OBJECTS)
	$(CC) $(CFLAGS) -o $@ $^

test: tests/test_parse
	./tests/test_parse

tests/test_parse: tests/test_parse.o $(OBJECTS)
	$(CC) $(CFLAGS) -o $@ $^

clean:
	rm -f parcels tests/test_parse src/*.o tests/*.o

.PHONY: test clean
END
printf '*.o\n/parcels\n/tests/test_parse\n' >.gitignore
cat >src/parse.h <<'END'
#ifndef PARSE_H
#define PARSE_H

#define MAX_FIELDS 8

/* Splits a line at ';' in place. Returns the number of fields, at most MAX_FIELDS. */
int parse_fields(char *line, char *fields[MAX_FIELDS]);

#endif
END
cat >src/parse.c <<'END'
#include "parse.h"

#include <string.h>

int parse_fields(char *line, char *fields[MAX_FIELDS])
{
	int n = 0;

	for (char *at = line; at && n < MAX_FIELDS; n++) {
		char *end = strchr(at, ';');

		fields[n] = at;
		if (end)
			*end++ = '\0';
		at = end;
	}
	return n;
}
END
cat >src/store.h <<'END'
#ifndef STORE_H
#define STORE_H

struct parcel {
	char id[16];
	char name[32];
	int weight;
};

/* Appends a parcel to the file at path. Returns 0, or -1 if it could not be written. */
int store_add(const char *path, const struct parcel *parcel);

#endif
END
cat >src/store.c <<'END'
#include "store.h"

#include <stdio.h>

int store_add(const char *path, const struct parcel *parcel)
{
	FILE *f = fopen(path, "a");

	if (!f)
		return -1;
	fprintf(f, "%s;%s;%d\n", parcel->id, parcel->name, parcel->weight);
	return fclose(f) == 0 ? 0 : -1;
}
END
cat >src/report.h <<'END'
#ifndef REPORT_H
#define REPORT_H

#include <stdio.h>

/* Prints one line per parcel in the file at path. Returns the number of lines or -1. */
int report_print(const char *path, FILE *out);

#endif
END
cat >src/report.c <<'END'
#include "report.h"

int report_print(const char *path, FILE *out)
{
	char line[256];
	int count = 0;
	FILE *f = fopen(path, "r");

	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f)) {
		fputs(line, out);
		count++;
	}
	fclose(f);
	return count;
}
END
cat >src/worker.h <<'END'
#ifndef WORKER_H
#define WORKER_H

#include <pthread.h>

struct queue {
	pthread_mutex_t lock;
	const char *items[64];
	int count;
	int done;
};

void queue_init(struct queue *queue);
/* Adds an item; -1 if the queue is full. Safe from any thread. */
int queue_push(struct queue *queue, const char *item);
/* Takes the newest item, or NULL. Safe from any thread. */
const char *queue_pop(struct queue *queue);

#endif
END
cat >src/worker.c <<'END'
#include "worker.h"

#include <string.h>

void queue_init(struct queue *queue)
{
	memset(queue, 0, sizeof(*queue));
	pthread_mutex_init(&queue->lock, NULL);
}

int queue_push(struct queue *queue, const char *item)
{
	int result = -1;

	pthread_mutex_lock(&queue->lock);
	if (queue->count < 64) {
		queue->items[queue->count++] = item;
		result = 0;
	}
	pthread_mutex_unlock(&queue->lock);
	return result;
}

const char *queue_pop(struct queue *queue)
{
	const char *item = NULL;

	pthread_mutex_lock(&queue->lock);
	if (queue->count > 0)
		item = queue->items[--queue->count];
	pthread_mutex_unlock(&queue->lock);
	return item;
}
END
cat >src/main.c <<'END'
#include <stdio.h>

#include "report.h"

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: parcels FILE\n");
		return 2;
	}
	return report_print(argv[1], stdout) < 0;
}
END
commit "Start a parcel tracker" "Parsing, storing and printing are apart from the start, so that each can be tested."

# ---- 2: tests
cat >tests/test_parse.c <<'END'
#include <assert.h>
#include <string.h>

#include "parse.h"

int main(void)
{
	char line[] = "p1;books;12";
	char *fields[MAX_FIELDS];

	assert(parse_fields(line, fields) == 3);
	assert(strcmp(fields[1], "books") == 0);
	return 0;
}
END
commit "Test the parser" "The format of lines is what other tools rely on."

# ---- 3: an importer
cat >tools/import.py <<'END'
#!/usr/bin/env python3
"""Imports parcels from a CSV file into the tracker's database."""
import csv
import sqlite3
import sys


def import_file(db, path):
    with open(path, newline="") as source:
        for row in csv.reader(source):
            db.execute("INSERT INTO parcels (id, name, weight) VALUES (?, ?, ?)", row[:3])
    db.commit()


if __name__ == "__main__":
    import_file(sqlite3.connect(sys.argv[1]), sys.argv[2])
END
commit "Add an importer" "Parcels of the old system come as CSV."

# ---- 4: documentation
cat >>README.md <<'END'

## Files

`src/parse.c` splits lines, `src/store.c` writes them, `src/report.c` prints them, `src/worker.c` is the queue
between threads, `tools/import.py` reads the old system's exports.
END
commit "Describe the files" "Newcomers asked where the format is read."

# ---- 5: features, with three defects and one place that only looks like one
cat >src/parse.c <<'END'
#include "parse.h"

#include <stdlib.h>
#include <string.h>

int parse_fields(char *line, char *fields[MAX_FIELDS])
{
	int n = 0;

	for (char *at = line; at && n < MAX_FIELDS; n++) {
		char *end = strchr(at, ';');

		fields[n] = at;
		if (end)
			*end++ = '\0';
		at = end;
	}
	return n;
}

int parse_total_length(char *const fields[], int count)
{
	int total = 0;

	for (int i = 0; i <= count; i++)
		total += (int)strlen(fields[i]);
	return total;
}

char *parse_copy(const char *text)
{
	size_t length = strlen(text);
	char *copy = malloc(length + 1);

	memcpy(copy, text, length + 1);
	return copy;
}
END
cat >src/parse.h <<'END'
#ifndef PARSE_H
#define PARSE_H

#define MAX_FIELDS 8

/* Splits a line at ';' in place. Returns the number of fields, at most MAX_FIELDS. */
int parse_fields(char *line, char *fields[MAX_FIELDS]);
/* Letters in all fields together. */
int parse_total_length(char *const fields[], int count);
/* A copy that the caller frees. */
char *parse_copy(const char *text);

#endif
END
cat >src/store.c <<'END'
#include "store.h"

#include <stdio.h>
#include <string.h>

int store_add(const char *path, const struct parcel *parcel)
{
	FILE *f = fopen(path, "a");

	if (!f)
		return -1;
	fprintf(f, "%s;%s;%d\n", parcel->id, parcel->name, parcel->weight);
	return fclose(f) == 0 ? 0 : -1;
}

int store_rename(struct parcel *parcel, const char *name)
{
	if (strlen(name) >= sizeof(parcel->name))
		return -1;
	strcpy(parcel->name, name);
	return 0;
}

int store_replace(const char *path, const char *fresh)
{
	if (rename(fresh, path) != 0)
		return 0;
	return 0;
}
END
cat >src/store.h <<'END'
#ifndef STORE_H
#define STORE_H

struct parcel {
	char id[16];
	char name[32];
	int weight;
};

/* Appends a parcel to the file at path. Returns 0, or -1 if it could not be written. */
int store_add(const char *path, const struct parcel *parcel);
/* Returns 0, or -1 if the name is too long. */
int store_rename(struct parcel *parcel, const char *name);
/* Puts the file `fresh` in the place of the one at path. Returns 0 or -1. */
int store_replace(const char *path, const char *fresh);

#endif
END
commit "store: rename parcels and replace the file" "Customers rename parcels after they were sent."

# ---- 6: more features, with three more defects
cat >src/report.c <<'END'
#include "report.h"

#include <string.h>

int report_print(const char *path, FILE *out)
{
	char line[256];
	int count = 0;
	FILE *f = fopen(path, "r");

	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f)) {
		fputs(line, out);
		count++;
	}
	fclose(f);
	return count;
}

int report_find(const char *path, const char *id)
{
	char line[256];
	int number = 0;
	FILE *f = fopen(path, "r");

	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f)) {
		number++;
		if (strncmp(line, id, strlen(id)) == 0)
			return number;
	}
	fclose(f);
	return 0;
}
END
cat >src/report.h <<'END'
#ifndef REPORT_H
#define REPORT_H

#include <stdio.h>

/* Prints one line per parcel in the file at path. Returns the number of lines or -1. */
int report_print(const char *path, FILE *out);
/* Number of the first line whose id starts with `id`, 0 if there is none, -1 without the file. */
int report_find(const char *path, const char *id);

#endif
END
cat >src/worker.c <<'END'
#include "worker.h"

#include <string.h>

void queue_init(struct queue *queue)
{
	memset(queue, 0, sizeof(*queue));
	pthread_mutex_init(&queue->lock, NULL);
}

int queue_push(struct queue *queue, const char *item)
{
	int result = -1;

	pthread_mutex_lock(&queue->lock);
	if (queue->count < 64) {
		queue->items[queue->count++] = item;
		result = 0;
	}
	pthread_mutex_unlock(&queue->lock);
	return result;
}

const char *queue_pop(struct queue *queue)
{
	const char *item = NULL;

	pthread_mutex_lock(&queue->lock);
	if (queue->count > 0)
		item = queue->items[--queue->count];
	pthread_mutex_unlock(&queue->lock);
	return item;
}

void queue_finish_one(struct queue *queue)
{
	queue->done++;
}
END
cat >src/worker.h <<'END'
#ifndef WORKER_H
#define WORKER_H

#include <pthread.h>

struct queue {
	pthread_mutex_t lock;
	const char *items[64];
	int count;
	int done;
};

void queue_init(struct queue *queue);
/* Adds an item; -1 if the queue is full. Safe from any thread. */
int queue_push(struct queue *queue, const char *item);
/* Takes the newest item, or NULL. Safe from any thread. */
const char *queue_pop(struct queue *queue);
/* Counts an item as done. Safe from any thread. */
void queue_finish_one(struct queue *queue);

#endif
END
cat >tools/import.py <<'END'
#!/usr/bin/env python3
"""Imports parcels from a CSV file into the tracker's database."""
import csv
import sqlite3
import sys


def import_file(db, path):
    with open(path, newline="") as source:
        for row in csv.reader(source):
            db.execute("INSERT INTO parcels (id, name, weight) VALUES (?, ?, ?)", row[:3])
    db.commit()


def find_by_name(db, name):
    return db.execute(f"SELECT id FROM parcels WHERE name = '{name}'").fetchall()


if __name__ == "__main__":
    import_file(sqlite3.connect(sys.argv[1]), sys.argv[2])
END
commit "report, worker, import: search and count" "The front desk searches by id and by name, and wants to see progress."

echo "repository: $(pwd)"
echo "review the last two commits with: baton review HEAD~2..HEAD"
