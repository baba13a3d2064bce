/*
 * test_box_program.c - baton-box as a program: its command line, its exit codes, the probe, and
 * that ordinary toolchains run in it.
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
#include "base/json.h"
#include "base/memory.h"
#include "box_rig.h"

struct line {
	const char *words[8];
	int code;
	const char *says; /* in its output */
};

static const struct line lines[] = {
	{{"--", "true"}, 0, ""},
	{{"--", "/bin/sh", "-c", "exit 7"}, 7, ""},
	{{"--level", "partial", "--", "true"}, 0, ""},
	{{"--level", "unconfined", "--", "true"}, 0, ""},
	{{"--network", "open", "--", "true"}, 0, ""},
	{{"--", "echo", "--write", "/nowhere"}, 0, "--write /nowhere\n"},
	{{"--", "no-such-program"}, 127, "cannot execute 'no-such-program'"},
	{{"--", "/etc/passwd"}, 126, "cannot execute '/etc/passwd'"},
	{{NULL}, 125, "no program is named"},
	{{"--"}, 125, "no program is named"},
	{{"true"}, 125, "'true' needs a value"},
	{{"--writ", "/tmp", "--", "true"}, 125, "unknown option '--writ'"},
	{{"--write"}, 125, "'--write' needs a value"},
	{{"--level", "strict", "--", "true"}, 125, "unknown level 'strict'"},
	{{"--level", "none", "--", "true"}, 125, "unknown level 'none'"},
	{{"--network", "some", "--", "true"}, 125, "unknown network 'some'"},
	{{"--read", "/no/such/folder", "--", "true"}, 125, "'/no/such/folder'"},
	{{"--write", "/no/such/folder", "--", "true"}, 125, "'/no/such/folder'"},
	/* a level that this program cannot give is refused, never lowered */
	{{"--level", "namespaces", "--", "true"}, 125, "'namespaces'"},
};

static void test_command_line(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		AUTO_BUF struct buf out = BUF_INIT;
		int code = box_run_words(*state, lines[i].words, &out);

		if (code != lines[i].code || !strstr(buf_str(&out), lines[i].says))
			fail_msg("line %zu: exit %d, '%s'", i, code, buf_str(&out));
	}
}

static void test_probe(void **state)
{
	static const char *const words[] = {"--probe", NULL};
	struct box_rig *rig = *state;
	AUTO_JSON struct json_object *doc = NULL;
	AUTO_BUF struct buf out = BUF_INIT;
	struct err err = ERR_INIT;

	assert_int_equal(box_run_words(rig, words, &out), 0);
	if (json_parse(out.data, out.len, &doc, &err) < 0)
		fail_msg("%s", err.message);
	assert_string_equal(json_str(doc, "level", ""), box_level_name(rig->facts.best));
	assert_int_equal(json_i64(doc, "landlock_abi", -1), rig->facts.landlock_abi);
	assert_int_equal(json_flag(doc, "seccomp", !rig->facts.seccomp), rig->facts.seccomp);
	assert_int_equal(json_flag(doc, "namespaces", !rig->facts.user_namespaces),
			 rig->facts.user_namespaces);
	assert_true(json_len(json_arr(doc, "notes")) > 0);
}

static void test_notes_grow_as_the_kernel_gets_older(void **state)
{
	const char *texts[BOX_NOTES_MAX];
	struct box_facts facts = {.seccomp = true, .best = BOX_PARTIAL};
	size_t last = 0;

	for (int abi = 7; abi >= 1; abi--) {
		facts.landlock_abi = abi;
		size_t count = box_notes(&facts, texts);
		assert_true(count >= last && count < BOX_NOTES_MAX);
		last = count;
	}
	assert_true(last >= 6);
	facts = (struct box_facts){.best = BOX_NONE};
	assert_int_equal(box_notes(&facts, texts), 1);
}

static void test_descriptors_and_environment_pass_through(void **state)
{
	AUTO_BUF struct buf out = BUF_INIT;

	assert_int_equal(box_run(*state, NULL,
				 "pwd; echo $HOME; exec 5>kept; exec $TRY unix_pair >&5", &out),
			 0);
	struct box_rig *rig = *state;
	assert_true(box_has_line(&out, rig->work));
	assert_true(box_has_line(&out, rig->home));
}

/* What comes out of the box of a root is no root: nothing but what builds do with files. */
static void test_capabilities_are_given_up(void **state)
{
	AUTO_BUF struct buf out = BUF_INIT;

	box_run(*state, NULL, "grep -e CapEff -e CapPrm -e CapInh -e NoNewPrivs /proc/self/status",
		&out);
	assert_true(box_has_line(&out, "NoNewPrivs:\t1"));
	assert_true(box_has_line(&out, "CapInh:\t0000000000000000"));
	assert_true(box_has_line(&out, geteuid() == 0 ? "CapEff:\t00000000000044db"
						      : "CapEff:\t0000000000000000"));
}

/* Each must print its name; one that is not installed here says so with exit 127. */
static const struct {
	const char *name, *script;
} tools[] = {
	{"here-document", "cat <<E\n$(seq 20000)\nE"},
	{"process-substitution", "diff <(echo a) <(echo a)"},
	{"temporary", "f=$(mktemp) && echo x >$f && rm $f"},
	{"sort", "seq 200000 | sort -S 100k -R | wc -l"},
	{"parallel", "for i in 1 2 3; do (echo $i >f$i) & done; wait; cat f1 f2 f3"},
	{"gcc", "printf '#include <stdio.h>\\nint main(void){puts(\"hi\");return 0;}' >a.c; "
		"gcc -O1 -g -pipe -o a a.c && ./a && gcc -o b a.c && ./b"},
	{"make", "printf 'all: x y\\nx y:\\n\\ttouch $@\\n' >Makefile; make -j2 all"},
	{"python", "python3 -c 'import subprocess,tempfile,threading,socket,asyncio\n"
		   "subprocess.run([\"true\"],check=True)\ntempfile.TemporaryFile().write(b\"x\")\n"
		   "socket.socketpair()\nasyncio.run(asyncio.create_subprocess_exec(\"true\"))'"},
	{"perl", "perl -e 'open(F,\">\",\"p\");print F 1;close F;fork;wait'"},
	{"tar", "mkdir t && echo x >t/x && tar czf t.tgz t && rm -r t && tar xzf t.tgz && cat t/x"},
	{"install",
	 "echo x >src && install -m 755 src dst && touch -d 2020-01-01 dst && cp -a dst e"},
	{"pipe", "mkfifo p && (echo x >p &) && cat p"},
	{"signals", "sleep 100 & kill $! && ! wait $!"},
	{"timeout", "timeout 0.1 sleep 100; test $? = 124"},
};

static void test_ordinary_tools_run(void **state)
{
	struct box_rig *rig = *state;

	for (size_t i = 0; i < ARRAY_SIZE(tools); i++) {
		AUTO_FREE char *script = mem_printf("mkdir $WORK/%s && cd $WORK/%s && { %s\n}",
						    tools[i].name, tools[i].name, tools[i].script);
		AUTO_BUF struct buf out = BUF_INIT;
		int code = box_run(rig, NULL, script, &out);

		if (code != 0 && code != 127)
			fail_msg("%s: exit %d: %s", tools[i].name, code, buf_str(&out));
	}
}

/* No folder of HOME is readable but the tools' own, which stand beside credentials. */
static void test_tool_folders_of_home(void **state)
{
	AUTO_BUF struct buf out = BUF_INIT;

	box_prepare(*state, "mkdir -p ~/.cargo/bin ~/.local/bin && echo 'echo tool runs' "
			    ">~/.cargo/bin/tool && chmod +x ~/.cargo/bin/tool && echo token "
			    ">~/.cargo/credentials.toml");
	box_run(*state, NULL,
		"sh ~/.cargo/bin/tool; cat ~/.cargo/credentials.toml && echo LEAK; "
		"echo x >~/.cargo/bin/tool && echo LEAK; ls ~ && echo LEAK; true",
		&out);
	assert_true(box_has_line(&out, "tool runs"));
	assert_false(box_has_line(&out, "LEAK"));
}

int main(void)
{
#define BOX_TEST(f) cmocka_unit_test_setup_teardown(f, box_rig_setup, box_rig_teardown)
	const struct CMUnitTest tests[] = {
		BOX_TEST(test_command_line),
		BOX_TEST(test_probe),
		BOX_TEST(test_notes_grow_as_the_kernel_gets_older),
		BOX_TEST(test_descriptors_and_environment_pass_through),
		BOX_TEST(test_capabilities_are_given_up),
		BOX_TEST(test_ordinary_tools_run),
		BOX_TEST(test_tool_folders_of_home),
	};

	return box_suite_status() ?: cmocka_run_group_tests(tests, NULL, NULL);
}
