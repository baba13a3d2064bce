/*
 * test_image.c - the disk after a power cut is what POSIX promises, and what it does not promise varies (X12, I10).
 *
 * The program starts itself below the tracer with the name of a story: a few file operations in a folder. Then the power
 * is cut, at the end or at a point, and the image is looked at for many seeds.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/memory.h"
#include "tests/faults/image.h"

enum { SEEDS = 60 };

static const char *self;

/* --- stories, played in a process of their own, in its folder --- */

static void put(const char *name, int flags, const char *text, bool sync)
{
	AUTO_FD int fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0640);

	if (fd < 0 || file_write_all(fd, text, strlen(text), NULL) < 0 || (sync && fsync(fd) < 0))
		fprintf(stderr, "%s: %s\n", name, strerror(errno));
}

static void sync_folder(const char *name)
{
	file_sync_dir(name, NULL);
}

static void append(void)
{
	put("log", O_APPEND, "one.", true);
	sync_folder(".");
	put("log", O_APPEND, "two.three.", false);
}

static void create(void)
{
	put("unsynced", 0, "x", false);
	put("only-bytes", 0, "x", true);
	mkdir("folder", 0755);
}

static void create_names(void)
{
	put("empty-or-not", 0, "some bytes", false);
	mkdir("folder", 0750);
	put("folder/below", 0, "x", true);
	if (symlink("old", "link") < 0)
		fprintf(stderr, "link: %s\n", strerror(errno));
	sync_folder(".");
}

static void replace(void)
{
	put("new", 0, "new text", true);
	rename("new", "old");
}

static void replace_and_sync(void)
{
	replace();
	sync_folder(".");
}

static void replace_unsynced_bytes(void)
{
	put("new", 0, "new text", false);
	rename("new", "old");
	sync_folder(".");
}

static void take_away(void)
{
	unlink("old");
	unlink("below/deep");
	rmdir("below");
}

static void take_away_and_sync(void)
{
	take_away();
	sync_folder(".");
}

static void write_over(void)
{
	put("old", O_TRUNC, "OLD TEXT IS LONGER", false);
}

static void sync_everything(void)
{
	create();
	rename("old", "elsewhere");
	AUTO_FD int fd = open(".", O_RDONLY | O_CLOEXEC);
	syncfs(fd);
}

/* The inode's number may be given to the new file: it must not have the old one's bytes. */
static void use_again(void)
{
	unlink("old");
	put("again", 0, "", false);
	sync_folder(".");
}

static const struct story {
	const char *name;
	void (*play)(void);
} stories[] = {
	{"append", append},
	{"create", create},
	{"create-names", create_names},
	{"replace", replace},
	{"replace-and-sync", replace_and_sync},
	{"replace-unsynced-bytes", replace_unsynced_bytes},
	{"take-away", take_away},
	{"take-away-and-sync", take_away_and_sync},
	{"write-over", write_over},
	{"sync-everything", sync_everything},
	{"use-again", use_again},
};

static int play(const char *name, const char *folder)
{
	if (chdir(folder) < 0)
		return 1;
	for (size_t i = 0; i < ARRAY_SIZE(stories); i++) {
		if (strcmp(stories[i].name, name) == 0) {
			stories[i].play();
			return 0;
		}
	}
	return 1;
}

/* --- the tests' side --- */

struct place {
	char base[64], folder[80];
	struct image *image;
	unsigned cuts;
	char *cut; /* the folder of the last cut */
};

static int set_up(void **state)
{
	struct place *p = mem_alloc(sizeof(*p));

	snprintf(p->base, sizeof(p->base), "/tmp/test-image-XXXXXX");
	if (!mkdtemp(p->base))
		return -1;
	snprintf(p->folder, sizeof(p->folder), "%s/folder", p->base);
	AUTO_FREE char *old = file_join(p->folder, "old");
	AUTO_FREE char *below = file_join(p->folder, "below");
	AUTO_FREE char *deep = file_join(below, "deep");
	if (file_mkdirs(below, 0755, NULL) < 0)
		return -1;
	put(old, 0, "old text", false);
	put(deep, 0, "deep text", false);
	*state = p;
	return 0;
}

static int tear_down(void **state)
{
	struct place *p = *state;

	image_free(p->image);
	file_remove_tree(p->base, NULL);
	free(p->cut);
	free(p);
	return 0;
}

struct stop {
	const char *at; /* "fsync"; NULL: never */
	unsigned ordinal;
	int order;
};

static int on_event(void *arg, const struct trace_event *e)
{
	const struct stop *stop = arg;

	return stop->at && strcmp(trace_op_name(e->op), stop->at) == 0 &&
			       e->ordinal == stop->ordinal
		       ? stop->order
		       : TRACE_GO;
}

static void play_until(struct place *p, const char *story, struct stop stop)
{
	char *argv[] = {(char *)self, (char *)story, p->folder, NULL};
	const char *folders[] = {p->folder};
	struct err err = ERR_INIT;
	struct trace_end end;

	p->image = image_start(folders, 1, &err);
	assert_non_null(p->image);
	struct trace_observer observers[] = {{.arg = &stop, .event = on_event},
					     image_observer(p->image)};
	int status = trace_run(argv, 60, observers, 2, &end, &err);
	if (status < 0 && err.code == ERR_UNSUPPORTED) {
		print_message("skipped: %s\n", err.message);
		skip();
	}
	assert_int_equal(status, 0);
	assert_int_equal(end.status, stop.order == TRACE_KILL_ALL ? 128 + 9 : 0);
}

static void play_all(struct place *p, const char *story)
{
	play_until(p, story, (struct stop){0});
}

static void cut(struct place *p, enum image_names names, uint64_t seed)
{
	struct err err = ERR_INIT;

	free(p->cut);
	p->cut = mem_printf("%s/cut-%u", p->base, p->cuts++);
	if (image_cut(p->image, 0, names, seed, p->cut, &err) < 0)
		fail_msg("%s", err.message);
}

/* Of a file of the last cut; NULL: not there. The caller frees. */
static char *text_of(const struct place *p, const char *name)
{
	AUTO_FREE char *path = file_join(p->cut, name);
	struct buf text = BUF_INIT;

	if (file_read(AT_FDCWD, path, 1 << 20, &text, NULL) < 0)
		return NULL;
	buf_addc(&text, '\0');
	return buf_take(&text);
}

static void assert_text(const struct place *p, const char *name, const char *expected)
{
	AUTO_FREE char *text = text_of(p, name);

	if (!expected)
		assert_null(text);
	else if (!text)
		fail_msg("'%s' is missing", name);
	else
		assert_string_equal(text, expected);
}

static bool is_there(const struct place *p, const char *name)
{
	AUTO_FREE char *path = file_join(p->cut, name);
	struct stat st;

	return lstat(path, &st) == 0;
}

static void test_synced_bytes_stay_and_later_ones_may_come_in_part(void **state)
{
	struct place *p = *state;
	bool none = false, all = false, part = false, zeros = false;

	play_all(p, "append");
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		cut(p, IMAGE_SYNCED, seed);
		AUTO_FREE char *path = file_join(p->cut, "log");
		struct buf text = BUF_INIT;
		assert_int_equal(file_read(AT_FDCWD, path, 100, &text, NULL), 0);
		assert_true(text.len >= 4 && text.len <= 14);
		size_t same = 0;
		while (same < text.len && text.data[same] == "one.two.three."[same])
			same++;
		assert_true(same >= 4);
		for (size_t i = same; i < text.len; i++)
			assert_int_equal(text.data[i], '\0');
		none |= text.len == 4;
		all |= same == 14;
		part |= same > 4 && same < 14;
		zeros |= same < text.len;
		buf_release(&text);
	}
	assert_true(none && all && part && zeros);
}

static void test_a_name_that_was_not_synced_is_absent(void **state)
{
	struct place *p = *state;

	play_all(p, "create");
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		cut(p, IMAGE_SYNCED, seed);
		assert_false(is_there(p, "unsynced") || is_there(p, "only-bytes") ||
			     is_there(p, "folder"));
		assert_text(p, "old", "old text");
		assert_text(p, "below/deep", "deep text");
	}
}

static void test_names_that_came_to_disk_by_themselves(void **state)
{
	struct place *p = *state;
	bool empty = false, there = false, absent = false;

	play_all(p, "create");
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		cut(p, IMAGE_ALL, seed);
		assert_text(p, "only-bytes", "x");
		AUTO_FREE char *text = text_of(p, "unsynced");
		assert_non_null(text);
		empty |= !*text;
		cut(p, IMAGE_MIXED, seed);
		there |= is_there(p, "only-bytes");
		absent |= !is_there(p, "only-bytes");
	}
	assert_true(empty && there && absent);
}

static void test_a_synced_folder_has_its_names_and_no_contents(void **state)
{
	struct place *p = *state;
	bool empty = false, whole = false;
	char link[16] = "";

	play_all(p, "create-names");
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		cut(p, IMAGE_SYNCED, seed);
		AUTO_FREE char *text = text_of(p, "empty-or-not");
		assert_non_null(text);
		empty |= !*text;
		whole |= strcmp(text, "some bytes") == 0;
		assert_true(is_there(p, "folder"));
		assert_false(is_there(p, "folder/below"));
	}
	AUTO_FREE char *path = file_join(p->cut, "link");
	assert_int_equal(readlink(path, link, sizeof(link) - 1), 3);
	assert_string_equal(link, "old");
	assert_true(empty && whole);
}

static void test_an_unsynced_rename_did_not_happen(void **state)
{
	struct place *p = *state;

	play_all(p, "replace");
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		cut(p, IMAGE_SYNCED, seed);
		assert_text(p, "old", "old text");
		assert_false(is_there(p, "new"));
	}
}

static void test_a_synced_rename_happened(void **state)
{
	struct place *p = *state;

	play_all(p, "replace-and-sync");
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		cut(p, seed % IMAGE_NAMES, seed);
		assert_text(p, "old", "new text");
		assert_false(is_there(p, "new"));
	}
}

/* The mistake that empties files: renamed before the bytes were synced. */
static void test_a_rename_of_unsynced_bytes_can_lose_both(void **state)
{
	struct place *p = *state;
	bool lost = false;

	play_all(p, "replace-unsynced-bytes");
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		cut(p, IMAGE_SYNCED, seed);
		AUTO_FREE char *text = text_of(p, "old");
		assert_non_null(text);
		lost |= !*text;
	}
	assert_true(lost);
}

static void test_what_was_removed_is_back(void **state)
{
	struct place *p = *state;

	play_all(p, "take-away");
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		cut(p, IMAGE_SYNCED, seed);
		assert_text(p, "old", "old text");
		assert_text(p, "below/deep", "deep text");
	}
	cut(p, IMAGE_ALL, 1);
	assert_false(is_there(p, "old") || is_there(p, "below"));
}

static void test_a_synced_removal_stays(void **state)
{
	struct place *p = *state;

	play_all(p, "take-away-and-sync");
	cut(p, IMAGE_SYNCED, 1);
	assert_false(is_there(p, "old") || is_there(p, "below"));
}

static void test_bytes_written_over_are_the_old_or_the_new(void **state)
{
	struct place *p = *state;
	bool before = false, after = false;

	play_all(p, "write-over");
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		cut(p, IMAGE_SYNCED, seed);
		AUTO_FREE char *text = text_of(p, "old");
		assert_non_null(text);
		before |= strcmp(text, "old text") == 0;
		after |= strcmp(text, "OLD TEXT IS LONGER") == 0;
	}
	assert_true(before && after);
}

static void test_syncfs_keeps_everything(void **state)
{
	struct place *p = *state;

	play_all(p, "sync-everything");
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		cut(p, seed % IMAGE_NAMES, seed);
		assert_text(p, "unsynced", "x");
		assert_text(p, "only-bytes", "x");
		assert_text(p, "elsewhere", "old text");
		assert_true(is_there(p, "folder"));
		assert_false(is_there(p, "old"));
	}
}

static void test_a_number_that_is_used_again_is_another_file(void **state)
{
	struct place *p = *state;

	play_all(p, "use-again");
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		cut(p, IMAGE_SYNCED, seed);
		assert_text(p, "again", "");
		assert_false(is_there(p, "old"));
	}
}

static void test_a_sync_that_was_cut_off_or_failed_promises_nothing(void **state)
{
	struct place *p = *state;

	/* The folder's sync, the second one, does not happen. */
	play_until(p, "replace-and-sync", (struct stop){"fsync", 2, TRACE_KILL_ALL});
	cut(p, IMAGE_SYNCED, 1);
	assert_text(p, "old", "old text");
	image_free(p->image);
	play_until(p, "replace-and-sync", (struct stop){"fsync", 2, -EIO});
	cut(p, IMAGE_SYNCED, 1);
	assert_false(is_there(p, "new"));
}

static void test_the_same_seed_gives_the_same_disk(void **state)
{
	struct place *p = *state;

	play_all(p, "append");
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		cut(p, IMAGE_MIXED, seed);
		AUTO_FREE char *first = text_of(p, "log");
		cut(p, IMAGE_MIXED, seed);
		assert_text(p, "log", first);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		TEST(test_synced_bytes_stay_and_later_ones_may_come_in_part),
		TEST(test_a_name_that_was_not_synced_is_absent),
		TEST(test_names_that_came_to_disk_by_themselves),
		TEST(test_a_synced_folder_has_its_names_and_no_contents),
		TEST(test_an_unsynced_rename_did_not_happen),
		TEST(test_a_synced_rename_happened),
		TEST(test_a_rename_of_unsynced_bytes_can_lose_both),
		TEST(test_what_was_removed_is_back),
		TEST(test_a_synced_removal_stays),
		TEST(test_bytes_written_over_are_the_old_or_the_new),
		TEST(test_syncfs_keeps_everything),
		TEST(test_a_number_that_is_used_again_is_another_file),
		TEST(test_a_sync_that_was_cut_off_or_failed_promises_nothing),
		TEST(test_the_same_seed_gives_the_same_disk),
	};

	if (argc == 3)
		return play(argv[1], argv[2]);
	self = argv[0];
	return cmocka_run_group_tests_name("image", tests, NULL, NULL);
}
