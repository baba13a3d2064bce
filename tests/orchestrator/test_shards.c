/*
 * test_shards.c - a diff becomes shards that fit, and every changed line is in one of them.
 */
#include "tests/base/test_base.h"

#include "base/json.h"
#include "base/text.h"
#include "orchestrator/review/review.h"

struct change {
	struct json_object *doc, *files;
};

static struct change change_new(void)
{
	struct change c = {json_object_new_object(), json_object_new_array()};

	json_set(c.doc, "files", c.files);
	return c;
}

static void add_file(struct change *c, const char *path, const char *patch, bool binary)
{
	struct json_object *file = json_object_new_object();

	json_set_str(file, "path", path);
	json_set_str(file, "patch", patch);
	json_set_bool(file, "binary", binary);
	json_object_array_add(c->files, file);
}

static void add_header(struct buf *out, const char *path)
{
	buf_addf(out, "diff --git a/%s b/%s\n--- a/%s\n+++ b/%s\n", path, path, path, path);
}

/* A hunk of added lines "+NNNN\n" from line `first` on. */
static void add_hunk(struct buf *out, int first, int count)
{
	buf_addf(out, "@@ -%d,0 +%d,%d @@ f()\n", first, first, count);
	for (int i = 0; i < count; i++)
		buf_addf(out, "+%04d\n", first + i);
}

static struct shards cut(struct change *c, int64_t budget)
{
	struct shards shards;
	struct err err = ERR_INIT;

	if (shards_make(c->doc, budget, &shards, &err) < 0)
		fail_msg("%s", err.message);
	json_object_put(c->doc);
	return shards;
}

static bool covered(const struct shards *shards, const char *file, int64_t line)
{
	for (size_t i = 0; i < shards->count; i++) {
		const struct shard *s = &shards->list[i];
		for (size_t k = 0; k < s->n_ranges; k++) {
			const struct shard_range *r = &s->ranges[k];
			if (strcmp(r->file, file) == 0 && line >= r->first && line <= r->last)
				return true;
		}
	}
	return false;
}

static void check_sizes(const struct shards *shards, size_t bytes)
{
	for (size_t i = 0; i < shards->count; i++) {
		assert_true(shards->list[i].patch_len <= bytes);
		assert_int_equal(strlen(shards->list[i].patch), shards->list[i].patch_len);
		assert_true(shards->list[i].n_files > 0);
		assert_true(shards->list[i].n_ranges > 0);
	}
}

static void test_small_files_share_a_shard(void **state)
{
	struct change c = change_new();

	for (int i = 0; i < 10; i++) {
		AUTO_BUF struct buf patch = BUF_INIT;
		AUTO_FREE char *path = mem_printf("src/%d.c", i);
		add_header(&patch, path);
		add_hunk(&patch, 10 * i + 1, 5);
		add_file(&c, path, buf_str(&patch), false);
	}
	struct shards shards = cut(&c, 200); /* 800 bytes: six or so of about 110 */
	assert_int_equal(shards.count, 2);
	check_sizes(&shards, 800);
	assert_string_equal(shards.list[0].files[0], "src/0.c");
	for (int i = 0; i < 10; i++) {
		AUTO_FREE char *path = mem_printf("src/%d.c", i);
		assert_true(covered(&shards, path, 10 * i + 1));
		assert_true(covered(&shards, path, 10 * i + 5));
		assert_false(covered(&shards, path, 10 * i + 6));
		assert_false(covered(&shards, path, 10 * i));
	}
	shards_release(&shards);
}

static void test_large_file_is_cut_at_hunks(void **state)
{
	struct change c = change_new();
	AUTO_BUF struct buf patch = BUF_INIT;

	add_header(&patch, "a.c");
	for (int i = 0; i < 20; i++)
		add_hunk(&patch, 100 * i + 1, 20);
	add_file(&c, "a.c", buf_str(&patch), false);
	struct shards shards = cut(&c, 150);
	assert_true(shards.count > 3);
	check_sizes(&shards, 600);
	for (size_t i = 0; i < shards.count; i++) {
		assert_true(text_starts(shards.list[i].patch, "diff --git a/a.c"));
		assert_int_equal(shards.list[i].n_files, 1);
	}
	for (int i = 0; i < 20; i++)
		assert_true(covered(&shards, "a.c", 100 * i + 20));
	assert_false(covered(&shards, "a.c", 50));
	shards_release(&shards);
}

/* Which lines "+NNNN" of the patch stand in this shard, by their text. */
static void mark_lines(const struct shard *shard, bool *seen, int n)
{
	for (int i = 0; i < n; i++) {
		AUTO_FREE char *line = mem_printf("\n+%04d\n", i + 1);
		seen[i] |= strstr(shard->patch, line) != NULL;
	}
}

/* A hunk larger than a shard becomes runs that overlap by 10 lines and name their place. */
static void test_large_hunk_is_cut_into_runs(void **state)
{
	struct change c = change_new();
	AUTO_BUF struct buf patch = BUF_INIT;
	static bool seen[500];

	add_header(&patch, "a.c");
	add_hunk(&patch, 1, 500);
	add_file(&c, "a.c", buf_str(&patch), false);
	struct shards shards = cut(&c, 150);
	assert_true(shards.count > 4);
	check_sizes(&shards, 600);
	for (size_t i = 0; i < shards.count; i++) {
		const struct shard_range *r = shards.list[i].ranges;
		AUTO_FREE char *first =
			mem_printf("(part of a larger hunk)\n+%04d\n", (int)r->first);
		AUTO_FREE char *last = mem_printf("+%04d\n", (int)r->last);
		assert_non_null(strstr(shards.list[i].patch, first));
		assert_true(text_ends(shards.list[i].patch, last));
		if (i > 0)
			assert_int_equal(shards.list[i - 1].ranges->last - r->first, 9);
		mark_lines(&shards.list[i], seen, 500);
	}
	for (int i = 0; i < 500; i++)
		assert_true(seen[i]);
	shards_release(&shards);
}

/* Deleted lines do not count on the new side, context lines count on both. */
static void test_lines_of_a_cut_hunk(void **state)
{
	struct change c = change_new();
	AUTO_BUF struct buf patch = BUF_INIT;

	add_header(&patch, "a.c");
	buf_adds(&patch, "@@ -1,300 +1,200 @@\n");
	for (int i = 0; i < 100; i++)
		buf_addf(&patch, " c%03d\n-d%03d\n+a%03d\n-e%03d\n", i, i, i, i);
	add_file(&c, "a.c", buf_str(&patch), false);
	struct shards shards = cut(&c, 150);
	const struct shard *last = &shards.list[shards.count - 1];
	long long old_line, new_line;
	assert_int_equal(last->ranges->last, 200);
	/* Each run's header agrees with its first line, whichever kind that is. */
	for (size_t i = 0; i < shards.count; i++) {
		const char *at = strstr(shards.list[i].patch, "@@ -");
		int n;
		assert_int_equal(sscanf(at, "@@ -%lld +%lld", &old_line, &new_line), 2);
		at = strchr(at, '\n') + 1;
		assert_int_equal(sscanf(at + 2, "%d", &n), 1);
		/* Per n: a line of both, an old one, a new one, an old one. */
		assert_int_equal(new_line, 2 * n + (at[1] == 'c' ? 1 : at[1] == 'e' ? 3 : 2));
		assert_int_equal(old_line, 3 * n + (at[1] == 'c' ? 1 : at[1] == 'd' ? 2 : 3));
	}
	shards_release(&shards);
}

/* A line beyond the budget (a minified file) stands alone, and only its start. */
static void test_endless_line(void **state)
{
	struct change c = change_new();
	AUTO_BUF struct buf patch = BUF_INIT;

	add_header(&patch, "min.js");
	buf_adds(&patch, "@@ -1 +1,3 @@\n+first\n+");
	for (int i = 0; i < 100000; i++)
		buf_adds(&patch, "\xc3\xa9");
	buf_adds(&patch, "\n+last\n");
	add_file(&c, "min.js", buf_str(&patch), false);
	struct shards shards = cut(&c, 250);
	check_sizes(&shards, 1000);
	assert_true(covered(&shards, "min.js", 2));
	assert_true(covered(&shards, "min.js", 3));
	bool noted = false;
	for (size_t i = 0; i < shards.count; i++) {
		noted |= strstr(shards.list[i].patch, "bytes of this line are left out]") != NULL;
		assert_true(text_is_utf8(shards.list[i].patch, shards.list[i].patch_len));
	}
	assert_true(noted);
	/* Whoever reads the review is told too. */
	assert_int_equal(shards.n_skipped, 1);
	assert_true(text_starts(shards.skipped[0], "min.js: not reviewed: "));
	assert_true(text_ends(shards.skipped[0], " bytes of line 2"));
	shards_release(&shards);
}

static void test_what_is_left_out(void **state)
{
	struct change c = change_new();

	add_file(&c, "logo.png", "Binary files differ\n", true);
	add_file(&c, "moved.c", "diff --git a/x b/moved.c\nrename from x\nrename to moved.c\n",
		 false);
	add_file(&c, "none.c", NULL, false);
	json_object_array_add(c.files, NULL);
	json_object_array_add(c.files, json_object_new_int(5));
	struct shards shards = cut(&c, 1000);
	assert_int_equal(shards.count, 0);
	assert_int_equal(shards.n_skipped, 3);
	assert_string_equal(shards.skipped[0], "logo.png: binary");
	assert_string_equal(shards.skipped[1], "moved.c: no changed lines");
	shards_release(&shards);
}

static void test_odd_patches(void **state)
{
	static const char *const patches[] = {
		"@@ -1 +1 @@\n-a\n+b\n\\ No newline at end of file",
		"@@ -1,2 +0,0 @@\n-a\n-b\n",
		"@@ -x,2 +1 @@\n+a\n",
		"@@ -1,2 +\n",
		"@@ -1,2",
		"@@ -999999999999999999999999 +1 @@\n+a\n",
		"x\n@@ -",
	};

	for (size_t i = 0; i < ARRAY_SIZE(patches); i++) {
		struct change c = change_new();
		add_file(&c, "a.c", patches[i], false);
		struct shards shards = cut(&c, 1000);
		assert_int_equal(shards.n_skipped + shards.count, 1);
		assert_int_equal(covered(&shards, "a.c", 1), i == 0);
		shards_release(&shards);
	}
}

static void test_no_list_of_files(void **state)
{
	AUTO_JSON struct json_object *doc = json_object_new_object();
	struct shards shards;
	struct err err = ERR_INIT;

	assert_int_equal(shards_make(doc, 1000, &shards, &err), -1);
	assert_int_equal(err.code, ERR_INVALID);
}

/* Time grows with the size of the patch and not faster. */
static void test_many_hunks(void **state)
{
	struct change c = change_new();
	AUTO_BUF struct buf patch = BUF_INIT;

	add_header(&patch, "a.c");
	for (int i = 0; i < 100000; i++)
		buf_addf(&patch, "@@ -%d +%d @@\n-old line of text\n+new line of text\n", i + 1,
			 i + 1);
	add_file(&c, "a.c", buf_str(&patch), false);
	struct shards shards = cut(&c, 12000);
	assert_true(shards.count > 50);
	assert_true(covered(&shards, "a.c", 100000));
	shards_release(&shards);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_small_files_share_a_shard),
		cmocka_unit_test(test_large_file_is_cut_at_hunks),
		cmocka_unit_test(test_large_hunk_is_cut_into_runs),
		cmocka_unit_test(test_lines_of_a_cut_hunk),
		cmocka_unit_test(test_endless_line),
		cmocka_unit_test(test_what_is_left_out),
		cmocka_unit_test(test_odd_patches),
		cmocka_unit_test(test_no_list_of_files),
		cmocka_unit_test(test_many_hunks),
	};
	return cmocka_run_group_tests_name("orchestrator/shards", tests, NULL, NULL);
}
