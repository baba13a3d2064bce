/*
 * test_box_files.c - what a command can write and read (X10; facts F, L; trap 114).
 *
 * Every attempt prints "LEAK name" if it worked. The same script runs once without a box, where all
 * of it must leak: an attempt that fails for another reason would show nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "box_rig.h"

struct attempt {
	const char *name;
	const char *script;
};

/* D is the folder that must stay as it is. */
static const struct attempt writes[] = {
	{"create", "echo x >$D/new"},
	{"append", "echo x >>$D/file"},
	{"overwrite", "echo x 1<>$D/file >&1"},
	{"truncate-open", ": >$D/file"},
	{"truncate-call", "$TRY truncate $D/file | grep ' ok'"},
	{"truncate-reading", "$TRY trunc_read $D/file | grep ' ok'"},
	{"truncate-ioctl", "$TRY trunc_three $D/file | grep ' ok'"},
	{"unlink", "echo x >$D/gone; rm $D/file"},
	{"rename-in", "echo x >a; mv -T a $D/moved"},
	{"rename-out", "mv $D/file2 ."},
	{"rename-within", "mv $D/file3 $D/file4"},
	{"exchange", "$TRY exchange $D/file5 | grep ' ok'"},
	{"link-in", "echo x >b; ln b $D/linked"},
	{"link-out", "ln $D/file5 out && echo x >>out"},
	{"mkdir", "mkdir $D/folder"},
	{"rmdir", "rmdir $D/empty"},
	{"symlink", "ln -s /etc/passwd $D/symlink"},
	{"fifo", "mkfifo $D/fifo"},
	{"through-symlink", "ln -s $D/file5 s; echo x >>s"},
	{"through-folder-symlink", "ln -s $D d; echo x >d/through"},
	{"dots", "cd $D/deep && echo x >../dots"},
	{"proc-root", "echo x >/proc/self/root$D/proc"},
	{"proc-cwd", "cd / && echo x >/proc/self/cwd$D/cwd"},
	{"proc-fd", "exec 9<$D && echo x >/proc/self/fd/9/fd"},
	{"proc-fd-file", "exec 9<$D/file5 && echo x >>/proc/self/fd/9"},
	{"remove-all", "rm -rf $D/deep && ! test -e $D/deep"},
};

static const struct attempt reads[] = {
	{"hidden-file", "cat $HIDDEN/file"},
	{"hidden-list", "ls $HIDDEN"},
	{"hidden-dots", "cat ../hidden/file"},
	{"hidden-symlink", "ln -sf $HIDDEN/file look; cat look"},
	{"hidden-link", "ln $HIDDEN/file hard && cat hard"},
	{"hidden-proc", "cat /proc/self/root$HIDDEN/file"},
	{"hidden-move", "mv $HIDDEN/movable . && cat movable"},
	{"ssh", "cat $HOME/.ssh/id"},
	{"netrc", "cat ~/.netrc"},
	{"config", "cat $REPO/.git/config"},
	{"hidden-run", "$HIDDEN/program"},
	{"hidden-cwd", "cd $HIDDEN && cat file"},
	{"environ", "tr '\\0' '\\n' </proc/$OUTSIDER/environ | grep OUTSIDER_KEY"},
	{"mem", "head -c 0 /proc/$OUTSIDER/mem"},
	{"maps", "test -n \"$(cat /proc/$OUTSIDER/maps)\""},
	{"other-cwd", "cat /proc/$OUTSIDER/cwd/file"},
	{"other-root", "cat /proc/$OUTSIDER/root$HIDDEN/file"},
	{"other-fd", "ls -l /proc/$OUTSIDER/fd/0 | grep -e '->'"},
};

static char *script_of(const struct attempt *attempts, size_t count, const char *before)
{
	AUTO_BUF struct buf script = BUF_INIT;

	buf_adds(&script, before);
	for (size_t i = 0; i < count; i++)
		buf_addf(&script, "\n( %s ) </dev/null >/dev/null 2>&1 && echo LEAK %s",
			 attempts[i].script, attempts[i].name);
	buf_adds(&script, "\necho END\n");
	return buf_take(&script);
}

/* Which of the attempts leaked is what `leaks` says, for all of them. */
static void check_leaks(const struct buf *out, const struct attempt *attempts, size_t count,
			bool leaks)
{
	assert_true(box_has_line(out, "END"));
	for (size_t i = 0; i < count; i++) {
		AUTO_FREE char *line = mem_printf("LEAK %s", attempts[i].name);

		if (box_has_line(out, line) != leaks)
			fail_msg("'%s' %s", attempts[i].name,
				 leaks ? "shows nothing: it fails without a box too" : "leaks");
	}
}

static const char fill[] = "cd $WORK && for d in $SHOWN $HIDDEN; do cd $d; mkdir -p empty deep/er; "
			   "for f in file file2 file3 file5 deep/er/file movable; do "
			   "echo 'as it was' >$f; done; cp /bin/true program; done";

static void check_writes(struct box_rig *rig, const char *const *options, const char *folder)
{
	AUTO_FREE char *before = mem_printf("cd $WORK; D=%s", folder);
	AUTO_FREE char *script = script_of(writes, ARRAY_SIZE(writes), before);
	AUTO_BUF struct buf out = BUF_INIT;

	box_prepare(rig, fill);
	AUTO_FREE char *was = box_fingerprint(rig, folder);
	assert_int_equal(box_run(rig, options, script, &out), 0);
	check_leaks(&out, writes, ARRAY_SIZE(writes), false);
	AUTO_FREE char *is = box_fingerprint(rig, folder);
	assert_string_equal(was, is);
	buf_clear(&out);
	box_prepare(rig, "rm -rf $WORK/* && echo mine >$WORK/mine");
	assert_int_equal(box_run_open(rig, script, &out), 0);
	check_leaks(&out, writes, ARRAY_SIZE(writes), true);
}

static void test_x10_writes_outside_are_refused(void **state)
{
	struct box_rig *rig = *state;

	check_writes(rig, NULL, rig->hidden);
}

static void test_what_may_be_read_cannot_be_written(void **state)
{
	struct box_rig *rig = *state;

	check_writes(rig, NULL, rig->shown);
}

/* The worst kernel's level, asked for by name, holds the same. */
static void test_partial_level_refuses_writes(void **state)
{
	struct box_rig *rig = *state;
	const char *const partial[] = {"--level", "partial", NULL};

	check_writes(rig, partial, rig->shown);
}

static void test_x10_reads_outside_the_list_are_refused(void **state)
{
	struct box_rig *rig = *state;
	AUTO_FREE char *script = script_of(reads, ARRAY_SIZE(reads), "cd $WORK");
	AUTO_BUF struct buf out = BUF_INIT;

	box_prepare(rig, fill);
	box_prepare(rig, "mkdir -p $REPO/.git && echo secret >$REPO/.git/config");
	assert_int_equal(box_run(rig, NULL, script, &out), 0);
	check_leaks(&out, reads, ARRAY_SIZE(reads), false);
	buf_clear(&out);
	box_prepare(rig, "rm -rf $WORK/*");
	assert_int_equal(box_run_open(rig, script, &out), 0);
	check_leaks(&out, reads, ARRAY_SIZE(reads), true);
}

static void test_all_kinds_of_writes_work_inside(void **state)
{
	struct box_rig *rig = *state;
	AUTO_FREE char *script = script_of(writes, ARRAY_SIZE(writes),
					   "cd $WORK; D=$WORK/sub/in; "
					   "mkdir -p $D $WORK/in; ");
	AUTO_BUF struct buf out = BUF_INIT;

	box_prepare(rig, "mkdir -p $WORK/sub/in && cd $WORK/sub/in && mkdir -p empty deep/er && "
			 "for f in file file2 file3 file5; do echo 'as it was' >$f; done");
	assert_int_equal(box_run(rig, NULL, script, &out), 0);
	check_leaks(&out, writes, ARRAY_SIZE(writes), true);
}

static void test_the_list_can_be_read_and_run(void **state)
{
	struct box_rig *rig = *state;
	AUTO_BUF struct buf out = BUF_INIT;

	box_prepare(rig, fill);
	assert_int_equal(box_run(rig, NULL,
				 "set -e; grep -q 'as it was' $SHOWN/file; ls $SHOWN >/dev/null; "
				 "$SHOWN/program; test -r /etc/passwd; head -c 1 /dev/urandom >x; "
				 "cat /proc/self/status >/dev/null; echo x >/dev/null",
				 &out),
			 0);
}

/* Devices cannot be made, not even where everything else may be. */
static void test_devices_cannot_be_made(void **state)
{
	AUTO_BUF struct buf out = BUF_INIT;

	box_run(*state, NULL,
		"mknod dev c 1 3 && echo LEAK; mknod dev b 7 0 && echo LEAK; mknod pipe p && echo "
		"fine",
		&out);
	assert_false(box_has_line(&out, "LEAK"));
	assert_true(box_has_line(&out, "fine"));
}

/* A write rule hangs on the folder that was there at the start, not on its name. */
static void test_a_replaced_folder_gives_nothing(void **state)
{
	struct box_rig *rig = *state;
	AUTO_BUF struct buf out = BUF_INIT;

	box_prepare(rig, fill);
	box_run(rig, NULL,
		"rmdir $WORK 2>&1; mv $WORK $WORK.old && ln -s $HIDDEN $WORK && "
		"cat $WORK/file && echo LEAK; true",
		&out);
	assert_false(box_has_line(&out, "LEAK"));
}

/* `>/dev/stderr` opens by name what is open already; no more rights come with it. */
static void test_open_files_can_be_opened_again(void **state)
{
	AUTO_BUF struct buf out = BUF_INIT;

	assert_int_equal(
		box_run(*state, NULL,
			"echo one >>/dev/stderr; echo two | tee -a /dev/stderr >/dev/null; "
			"echo three >>/proc/self/fd/1",
			&out),
		0);
	assert_string_equal(buf_str(&out), "one\ntwo\nthree\n");
}

int main(void)
{
#define BOX_TEST(f) cmocka_unit_test_setup_teardown(f, box_rig_setup, box_rig_teardown)
	const struct CMUnitTest tests[] = {
		BOX_TEST(test_x10_writes_outside_are_refused),
		BOX_TEST(test_what_may_be_read_cannot_be_written),
		BOX_TEST(test_partial_level_refuses_writes),
		BOX_TEST(test_x10_reads_outside_the_list_are_refused),
		BOX_TEST(test_all_kinds_of_writes_work_inside),
		BOX_TEST(test_the_list_can_be_read_and_run),
		BOX_TEST(test_devices_cannot_be_made),
		BOX_TEST(test_a_replaced_folder_gives_nothing),
		BOX_TEST(test_open_files_can_be_opened_again),
	};

	return box_suite_status() ?: cmocka_run_group_tests(tests, NULL, NULL);
}
