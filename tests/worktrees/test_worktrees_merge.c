/*
 * test_worktrees_merge.c - merging in memory, landing, the checkout of a gate, and what a merge into the user's checkout
 * would meet (issue 5, item 6; I8).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "rig.h"

/* main and three branches: two that merge, one that does not. */
static const char branches[] =
	"cd repo; seq 9 > n; echo a > a; git add -A; git commit -qm first; git branch base; "
	"git checkout -qb one; sed -i s/^1$/one/ n; echo 1 > new-one; git add -A; git commit -qm "
	"one; "
	"git checkout -qb two base; sed -i s/^9$/nine/ n; git commit -qam two; "
	"git checkout -qb three base; sed -i s/^9$/NINE/ n; echo b > a; git commit -qam three; "
	"git checkout -q main; mkdir -p src; echo m > src/m; git add -A; git commit -qm main";

static const char state_of_user[] =
	"sha1sum .git/index .git/config .git/HEAD; git for-each-ref; git status --porcelain; "
	"git worktree list";

static char *commit_of(struct rig *rig, const char *rev)
{
	AUTO_FREE char *script = mem_printf("git rev-parse '%s'", rev);

	return rig_sh(rig, "repo", script);
}

/* Heads are revisions, NULL-terminated. */
static struct json_object *try_merge(struct rig *rig, const char *onto, const char *const *revs)
{
	struct json_object *body = json_object_new_object();
	struct json_object *heads = json_object_new_array();
	AUTO_FREE char *at = commit_of(rig, onto);

	for (; *revs; revs++) {
		struct json_object *head = json_object_new_object();
		AUTO_FREE char *commit = commit_of(rig, *revs);
		AUTO_FREE char *message = mem_printf("merge %s\n", *revs);

		json_set_str(head, "commit", commit);
		json_set_str(head, "message", message);
		json_object_array_add(heads, head);
	}
	json_set_str(body, "onto", at);
	json_set(body, "heads", heads);
	return rig_ok(rig, "merge_try", body);
}

static const char *first_conflict(struct json_object *answer)
{
	return json_object_get_string(json_at(json_arr(answer, "conflicts"), 0));
}

static void check_tries(struct rig *rig)
{
	AUTO_FREE char *before = rig_sh(rig, "repo", state_of_user);
	AUTO_JSON struct json_object *both =
		try_merge(rig, "main", (const char *const[]){"one", "two", NULL});
	AUTO_FREE char *show =
		mem_printf("git show %s:n | tr '\\n' ' '; git log --format=%%s --first-parent -3 "
			   "%s | tr '\\n' ' '",
			   json_str(both, "commit", ""), json_str(both, "commit", ""));
	AUTO_FREE char *merged = rig_sh(rig, "repo", show);
	assert_string_equal(merged, "one 2 3 4 5 6 7 8 nine merge two merge one main ");
	assert_int_equal(json_i64(both, "merged", 0), 2);
	assert_null(json_arr(both, "conflicts"));
	/* What came before the conflict is merged, and the files are named. */
	AUTO_JSON struct json_object *stop =
		try_merge(rig, "main", (const char *const[]){"one", "two", "three", "one", NULL});
	assert_int_equal(json_i64(stop, "merged", 0), 2);
	assert_int_equal(json_len(json_arr(stop, "conflicts")), 1);
	assert_string_equal(first_conflict(stop), "n");
	assert_string_equal(json_str(stop, "tree", "?"), json_str(both, "tree", "!"));
	/* No commit where none is needed. */
	AUTO_FREE char *one = commit_of(rig, "one");
	AUTO_JSON struct json_object *forward =
		try_merge(rig, "base", (const char *const[]){"one", "base", NULL});
	assert_string_equal(json_str(forward, "commit", ""), one);
	assert_int_equal(json_i64(forward, "merged", 0), 2);
	AUTO_FREE char *after = rig_sh(rig, "repo", state_of_user);
	assert_string_equal(before, after);
	free(rig_sh(rig, "repo", "git fsck --strict"));
}

static void a_merge_in_memory_names_its_conflicts(void **state)
{
	struct rig rig;

	rig_make(&rig, "git init -q repo");
	free(rig_sh(&rig, "", branches));
	/* A driver of the configuration is a program: it is not run on what agents wrote. */
	free(rig_sh(&rig, "repo",
		    "git config merge.evil.driver \"touch $PWD/../ran\"; echo 'n merge=evil' > "
		    ".git/info/attributes"));
	rig_start(&rig, rig.repo);
	check_tries(&rig);
	assert_int_not_equal(rig_sh_status(&rig, "", "test -e ran"), 0);
	struct err err = ERR_INIT;
	AUTO_JSON struct json_object *body = json_object_new_object();
	json_set_str(body, "onto", "0123456789012345678901234567890123456789");
	json_set(body, "heads", json_object_new_array());
	assert_null(rig_call(&rig, "merge_try", json_object_get(body), &err));
	assert_int_equal(err.code, ERR_INVALID);
	rig_free(&rig);
}

/* libgit2 cannot read it, the program can. */
static void a_repository_of_sha256_merges_too(void **state)
{
	struct rig rig;

	rig_make(&rig, "git init -q --object-format=sha256 repo");
	free(rig_sh(&rig, "", branches));
	rig_start(&rig, rig.repo);
	check_tries(&rig);
	rig_free(&rig);
}

static struct json_object *land_body(struct rig *rig, const char *new, const char *old)
{
	struct json_object *body = json_object_new_object();
	AUTO_FREE char *to = commit_of(rig, new);
	AUTO_FREE char *from = old ? commit_of(rig, old) : NULL;

	json_set_str(body, "branch", "baton/r1/result");
	json_set_str(body, "new", to);
	json_set_str(body, "old", from);
	return body;
}

static void a_result_lands_by_compare_and_swap(void **state)
{
	struct err err = ERR_INIT;
	struct rig rig;

	rig_make(&rig, "git init -q repo");
	free(rig_sh(&rig, "", branches));
	rig_start(&rig, rig.repo);
	json_object_put(rig_ok(&rig, "merge_land", land_body(&rig, "base", NULL)));
	json_object_put(rig_ok(&rig, "merge_land", land_body(&rig, "one", "base")));
	/* Once more, since nobody lived to hear of it: it is there. */
	json_object_put(rig_ok(&rig, "merge_land", land_body(&rig, "one", "base")));
	assert_null(rig_call(&rig, "merge_land", land_body(&rig, "two", "base"), &err));
	assert_int_equal(err.code, ERR_CHANGED);
	assert_null(rig_call(&rig, "merge_land", land_body(&rig, "two", NULL), &err));
	assert_int_equal(err.code, ERR_CHANGED);
	/* The lock of a git that was killed; a branch that the user looks at. */
	free(rig_sh(&rig, "repo", "touch .git/refs/heads/baton/r1/result.lock"));
	json_object_put(rig_ok(&rig, "merge_land", land_body(&rig, "two", "one")));
	free(rig_sh(&rig, "repo", "git worktree add -q ../seen baton/r1/result"));
	assert_null(rig_call(&rig, "merge_land", land_body(&rig, "one", "two"), &err));
	assert_int_equal(err.code, ERR_BUSY);
	assert_non_null(strstr(err.message, "/seen'"));
	AUTO_FREE char *at = rig_sh(&rig, "repo", "git log --format=%s -1 baton/r1/result");
	assert_string_equal(at, "two");
	rig_free(&rig);
}

static struct json_object *gate_body(struct rig *rig, const char *rev)
{
	AUTO_FREE char *commit = commit_of(rig, rev);
	struct json_object *body = rig_entry(rig, "r1", "gate", commit);

	json_set_str(body, "branch", "baton/r1/result");
	return body;
}

static void a_gate_has_a_clean_checkout_with_git(void **state)
{
	struct err err = ERR_INIT;
	struct rig rig;

	rig_make(&rig, "git init -q repo");
	free(rig_sh(&rig, "", branches));
	free(rig_sh(&rig, "repo", "git tag -m v v1 base"));
	rig_start(&rig, rig.repo);
	AUTO_FREE char *before = rig_sh(&rig, "repo", state_of_user);
	AUTO_FREE char *path = rig_worktree(&rig, "r1", "gate");
	AUTO_FREE char *inside = mem_strdup(path + strlen(rig.dir) + 1);
	json_object_put(rig_ok(&rig, "checkout_gate", gate_body(&rig, "one")));
	AUTO_FREE char *seen =
		rig_sh(&rig, inside,
		       "git status --porcelain; git describe | cut -d- -f1-2; head -1 n; ls");
	assert_string_equal(seen, "v1-1\none\na\nn\nnew-one");
	/* Whatever a gate did to it, the next one finds it clean, also after a kill. */
	free(rig_sh(&rig, inside,
		    "echo junk > junk; rm n; git commit -qam junk; mkdir -p d; "
		    "touch d/x; chmod 500 d"));
	json_object_put(rig_ok(&rig, "checkout_gate", gate_body(&rig, "two")));
	AUTO_FREE char *again = rig_sh(&rig, inside, "git status --porcelain; tail -1 n; ls");
	assert_string_equal(again, "nine\na\nn");
	json_object_put(rig_ok(&rig, "remove_gate", gate_body(&rig, "two")));
	assert_false(file_exists(path));
	AUTO_FREE char *after = rig_sh(&rig, "repo", state_of_user);
	assert_string_equal(before, after);
	free(rig_sh(&rig, "repo", "git fsck --strict"));
	/* Not ours, not removed. */
	assert_int_equal(mkdir(path, 0700), 0);
	assert_null(rig_call(&rig, "remove_gate", gate_body(&rig, "two"), &err));
	assert_int_equal(err.code, ERR_DENIED);
	assert_true(file_exists(path));
	rig_free(&rig);
}

/* "key: a b" for each list that is not empty. */
static char *obstacles(struct json_object *answer)
{
	static const char *const keys[] = {"conflicts", "dirty", "staged", "in_way"};
	AUTO_BUF struct buf out = BUF_INIT;

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		struct json_object *list = json_arr(answer, keys[i]);

		if (json_len(list))
			buf_addf(&out, "%s:", keys[i]);
		for (size_t k = 0; k < json_len(list); k++)
			buf_addf(&out, " %s", json_object_get_string(json_at(list, k)));
		if (json_len(list))
			buf_adds(&out, "; ");
	}
	return mem_strdup(buf_str(&out));
}

static struct json_object *check_merge(struct rig *rig, const char *rev)
{
	struct json_object *body = json_object_new_object();
	AUTO_FREE char *commit = commit_of(rig, rev);

	json_set_str(body, "tip", commit);
	return rig_ok(rig, "merge_check", body);
}

static void what_a_merge_would_meet_is_named(void **state)
{
	/* What the user has lying about; which branch would come; what is said. */
	static const struct {
		const char *script, *tip, *say;
	} rows[] = {
		{"true", "two", ""},
		{"echo x >> n", "one", "dirty: n; "},
		{"echo x >> n; git add n", "one", "dirty: n; staged: n; "},
		{"echo x >> a", "one", ""}, /* it does not matter */
		{"echo x >> a; git add a", "one", "staged: a; "},
		{"git rm -q --cached n", "one", "dirty: n; staged: n; "},
		{"rm n", "one", "dirty: n; "},
		{"echo x > new-one", "one", "in_way: new-one; "},
		{"echo x > new-one; echo new-one > .git/info/exclude", "one", "in_way: new-one; "},
		{"ln -s nowhere new-one", "one", "in_way: new-one; "},
		{"echo x > deep", "deep", "in_way: deep; "},
		{"mkdir deep; echo x > deep/er", "deep", "in_way: deep/er; "},
		{"mkdir deep; echo x > deep/other", "deep", ""},
		{"git merge -q --no-edit two", "three", "conflicts: n; "},
		{"git mv a b", "three", "dirty: a; staged: a b; "},
	};
	struct rig rig;

	rig_make(&rig, "git init -q repo");
	free(rig_sh(&rig, "", branches));
	free(rig_sh(&rig, "repo",
		    "git checkout -qb deep base; mkdir -p deep/er; echo 1 > deep/er/f; "
		    "echo 2 > deep/er/g; git add -A; git commit -qm deep; git checkout -q main"));
	rig_start(&rig, rig.repo);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		free(rig_sh(&rig, "repo", rows[i].script));
		AUTO_FREE char *before = rig_sh(&rig, "repo", state_of_user);
		AUTO_JSON struct json_object *answer = check_merge(&rig, rows[i].tip);
		AUTO_FREE char *after = rig_sh(&rig, "repo", state_of_user);
		AUTO_FREE char *said = obstacles(answer);
		if (strcmp(said, rows[i].say) != 0)
			fail_msg("%s: said '%s' and not '%s'", rows[i].script, said, rows[i].say);
		assert_string_equal(before, after);
		free(rig_sh(
			&rig, "repo",
			"git reset -q --hard; git clean -qfdx; : > .git/info/exclude; git reset -q "
			"--hard $(git log --format=%h --grep '^main$' -1)"));
	}
	rig_free(&rig);
}

static void the_state_of_the_checkout_is_told(void **state)
{
	struct rig rig;

	rig_make(&rig, "git init -q repo");
	free(rig_sh(&rig, "", branches));
	free(rig_sh(&rig, "repo", "git worktree add -q ../other two"));
	rig_start(&rig, rig.repo);
	AUTO_JSON struct json_object *plain = check_merge(&rig, "one");
	assert_string_equal(json_str(plain, "branch", ""), "main");
	assert_int_equal(json_i64(plain, "commits", 0), 1);
	assert_false(json_flag(plain, "fast_forward", true) || json_flag(plain, "already", true));
	assert_int_equal(json_len(json_arr(plain, "checkouts")), 2);
	assert_null(json_str(plain, "in_progress", NULL));
	AUTO_JSON struct json_object *already = check_merge(&rig, "base");
	assert_true(json_flag(already, "already", false));
	free(rig_sh(&rig, "repo", "git checkout -q --detach; git merge -q --no-commit two"));
	AUTO_JSON struct json_object *detached = check_merge(&rig, "one");
	assert_null(json_str(detached, "branch", NULL));
	assert_string_equal(json_str(detached, "in_progress", ""), "merge");
	free(rig_sh(&rig, "repo", "git merge --abort; git checkout -q --orphan fresh"));
	AUTO_JSON struct json_object *unborn = check_merge(&rig, "one");
	assert_string_equal(json_str(unborn, "branch", ""), "fresh");
	assert_null(json_str(unborn, "head", NULL));
	rig_stop(&rig);
	free(rig_sh(&rig, "",
		    "mv repo/.git bare; git -C bare config core.bare true; rm -rf repo; "
		    "git clone -q --bare bare repo"));
	rig_start(&rig, rig.repo);
	AUTO_JSON struct json_object *bare = check_merge(&rig, "one");
	assert_true(json_flag(bare, "bare", false));
	rig_free(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_merge_in_memory_names_its_conflicts),
		cmocka_unit_test(a_repository_of_sha256_merges_too),
		cmocka_unit_test(a_result_lands_by_compare_and_swap),
		cmocka_unit_test(a_gate_has_a_clean_checkout_with_git),
		cmocka_unit_test(what_a_merge_would_meet_is_named),
		cmocka_unit_test(the_state_of_the_checkout_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
