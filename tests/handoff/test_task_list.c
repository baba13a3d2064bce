/*
 * test_task_list.c - the list of tasks: who may have which one, and when (A7, X11).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/memory.h"
#include "handoff/task_list.h"

#define LEASE 100

static struct json_object *parse(const char *text)
{
	struct json_object *value = NULL;
	struct err err = ERR_INIT;
	if (json_parse(text, strlen(text), &value, &err) < 0)
		fail_msg("%s in %s", err.message, text);
	return value;
}

static void add(struct task_list *list, const char *wishes)
{
	AUTO_JSON struct json_object *value = parse(wishes);
	struct err err = ERR_INIT;
	if (task_list_add(list, value, "a1", NULL, NULL, &err) < 0)
		fail_msg("%s: %s", wishes, err.message);
}

static void make(struct task_list *list, const char *wishes)
{
	task_list_init(list, LEASE, 3);
	add(list, wishes);
}

static void expect_refusal(struct task_list *list, const char *wishes, size_t at, const char *field,
			   const char *words)
{
	AUTO_JSON struct json_object *value = parse(wishes);
	size_t n = list->n, bad = 99;
	int64_t number = list->next_number;
	const char *got = "none";
	struct err err = ERR_INIT;
	assert_int_equal(task_list_add(list, value, "a1", &bad, &got, &err), -1);
	if (!strstr(err.message, words))
		fail_msg("'%s' lacks '%s'", err.message, words);
	assert_int_equal(bad, at);
	if (field)
		assert_string_equal(got, field);
	assert_int_equal(list->n, n);
	assert_int_equal(list->next_number, number);
	for (size_t i = 0; i < n; i++)
		assert_ptr_equal(task_find(list, list->list[i]->id), list->list[i]);
}

/* The id of what it gets, or "-" with a note that holds `words`. */
static void expect_claim(struct task_list *list, const char *owner, const char *role,
			 const char *id, const char *words)
{
	struct task_claim claim;
	struct err err = ERR_INIT;
	assert_int_equal(task_claim(list, NULL, owner, role, 0, &claim, &err), 0);
	AUTO_FREE char *note = claim.note;
	assert_string_equal(claim.task ? claim.task->id : "-", id);
	if (words && (!note || !strstr(note, words)))
		fail_msg("'%s' lacks '%s'", note ? note : "", words);
}

static void expect_error(int rc, const struct err *err, const char *words)
{
	assert_int_equal(rc, -1);
	if (!strstr(err->message, words))
		fail_msg("'%s' lacks '%s'", err->message, words);
}

static void finish(struct task_list *list, const char *id, enum task_status status, const char *by)
{
	struct err err = ERR_INIT;
	if (task_finish(list, task_find(list, id), status, by, "as told", &err) < 0)
		fail_msg("%s: %s", id, err.message);
}

static void test_a_batch_is_made_whole_or_not_at_all(void **state)
{
	struct task_list list;
	make(&list,
	     "[{\"id\":\"b\",\"title\":\"B\",\"needs\":[\"c\"]},{\"id\":\"c\",\"title\":\"C\"}]");
	expect_refusal(&list, "[{\"title\":\"x\"},{\"title\":\"y\",\"needs\":[\"z\"]}]", 1, "needs",
		       "'z', which is no task");
	expect_refusal(&list, "[{\"title\":\"x\"},{\"id\":\"b\",\"title\":\"y\"}]", 1, "id",
		       "'b' already");
	expect_refusal(&list, "[{\"title\":\"x\",\"parent\":\"q\"}]", 0, "parent", "parent 'q'");
	expect_refusal(&list, "[{\"details\":\"x\"}]", 0, "title", "needs a 'title'");
	expect_refusal(&list, "[{\"title\":\"x\",\"prio\":1}]", 0, "prio", "no field 'prio'");
	expect_refusal(&list, "[{\"title\":\"x\",\"priority\":\"high\"}]", 0, "priority",
		       "whole number");
	expect_refusal(&list, "[{\"title\":\"x\",\"effort\":0}]", 0, "effort", "from 1 to 1000");
	expect_refusal(&list, "[{\"title\":\"x\",\"files\":[\"../y\"]}]", 0, "files", "below it");
	expect_refusal(&list, "[{\"title\":\"x\",\"files\":[\"/etc/y\"]}]", 0, "files", "below it");
	expect_refusal(&list, "[{\"title\":\"x\",\"id\":\"a b\"}]", 0, "id", "letters");
	expect_refusal(&list, "[7]", 0, NULL, "set of fields");
	expect_refusal(&list, "[]", 99, NULL, "no task in it");
	add(&list, "[{\"title\":\"x\"}]");
	assert_string_equal(list.list[2]->id, "t3");
	task_list_release(&list);
}

static void test_no_circles(void **state)
{
	struct task_list list;
	struct err err = ERR_INIT;
	make(&list,
	     "[{\"id\":\"a\",\"title\":\"A\"},{\"id\":\"b\",\"title\":\"B\",\"needs\":[\"a\"]},"
	     "{\"id\":\"c\",\"title\":\"C\",\"needs\":[\"b\"]}]");
	expect_refusal(&list, "[{\"title\":\"x\",\"id\":\"x\",\"needs\":[\"x\"]}]", 0, "needs",
		       "waits for itself");
	expect_refusal(&list,
		       "[{\"title\":\"o\"},{\"id\":\"x\",\"title\":\"x\",\"needs\":[\"y\"]},"
		       "{\"id\":\"y\",\"title\":\"y\",\"needs\":[\"x\"]}]",
		       1, "needs", "waits for itself");
	/* A part needs what waits for the whole. */
	expect_refusal(&list, "[{\"title\":\"x\",\"parent\":\"a\",\"needs\":[\"c\"]}]", 0, "needs",
		       "waits for itself");
	AUTO_JSON struct json_object *change = parse("{\"needs\":[\"c\"]}");
	const char *field = NULL;
	expect_error(task_edit(&list, task_find(&list, "a"), change, &field, &err), &err,
		     "would wait for itself");
	assert_string_equal(field, "needs");
	expect_claim(&list, "a1", NULL, "a", NULL);
	task_list_release(&list);
}

static void test_order(void **state)
{
	struct task_list list;
	/* A long chain begins with c1; p is urgent, and so is what it needs. */
	make(&list, "[{\"id\":\"s\",\"title\":\"s\"},{\"id\":\"c1\",\"title\":\"c\"},"
		    "{\"id\":\"c2\",\"title\":\"c\",\"needs\":[\"c1\"],\"effort\":5},"
		    "{\"id\":\"low\",\"title\":\"l\",\"priority\":-1},"
		    "{\"id\":\"p\",\"title\":\"p\",\"priority\":9,\"needs\":[\"q\"]},{\"id\":\"q\","
		    "\"title\":\"q\"}]");
	expect_claim(&list, "a1", NULL, "q", NULL);
	expect_claim(&list, "a2", NULL, "c1", NULL);
	expect_claim(&list, "a3", NULL, "s", NULL);
	expect_claim(&list, "a3", NULL, "s", NULL); /* it has it */
	expect_claim(&list, "a4", NULL, "low", NULL);
	expect_claim(&list, "a5", NULL, "-", "4 in progress, 2 waiting");
	finish(&list, "q", TASK_COMPLETED, "a1");
	expect_claim(&list, "a1", NULL, "p", NULL);
	task_list_release(&list);
}

static void test_ends(void **state)
{
	struct task_list list;
	struct err err = ERR_INIT;
	make(&list,
	     "[{\"id\":\"a\",\"title\":\"A\"},{\"id\":\"b\",\"title\":\"B\",\"needs\":[\"a\"]},"
	     "{\"id\":\"w\",\"title\":\"whole\"},{\"id\":\"w1\",\"title\":\"part\",\"parent\":"
	     "\"w\"}]");
	struct task *a = task_find(&list, "a"), *w = task_find(&list, "w");
	expect_error(task_finish(&list, a, TASK_COMPLETED, "a1", NULL, &err), &err,
		     "claim it first");
	expect_claim(&list, "a2", NULL, "a", NULL);
	expect_error(task_finish(&list, a, TASK_COMPLETED, "a1", NULL, &err), &err,
		     "a2 has it in hand");
	expect_error(task_finish(&list, a, TASK_CANCELLED, "a1", NULL, &err), &err,
		     "another agent has it");
	finish(&list, "a", TASK_FAILED, "a2");
	expect_error(task_finish(&list, a, TASK_COMPLETED, NULL, NULL, &err), &err,
		     "over already: failed");
	expect_claim(&list, "a2", NULL, "w1", NULL);
	expect_claim(&list, "a3", NULL, "-", "1 stuck");
	expect_error(task_finish(&list, w, TASK_COMPLETED, NULL, NULL, &err), &err,
		     "a part that is not over: w1");
	expect_error(task_reopen(&list, a, "a5", &err), &err, "not yours");
	assert_int_equal(task_reopen(&list, a, "a1", &err), 0);
	expect_claim(&list, "a3", NULL, "a", NULL);
	finish(&list, "w1", TASK_CANCELLED, "a2");
	expect_claim(&list, "a2", NULL, "w", NULL);
	finish(&list, "w", TASK_COMPLETED, "a2");
	finish(&list, "a", TASK_COMPLETED, NULL); /* a person */
	finish(&list, "b", TASK_COMPLETED, NULL);
	struct task_claim claim;
	assert_int_equal(task_claim(&list, NULL, "a2", NULL, 0, &claim, &err), 0);
	assert_true(claim.over);
	assert_non_null(strstr(claim.note, "3 completed, 0 failed, 1 cancelled"));
	free(claim.note);
	task_list_release(&list);
}

static void test_leases(void **state)
{
	struct task_list list;
	struct err err = ERR_INIT;
	struct task_claim claim;
	make(&list, "[{\"id\":\"a\",\"title\":\"A\"}]");
	struct task *a = task_find(&list, "a");
	assert_int_equal(task_claim(&list, NULL, "a2", NULL, 1000, &claim, &err), 0);
	assert_null(task_list_lapse(&list, 1000 + LEASE - 1));
	task_list_renew(&list, "a2", 1000 + LEASE + 50);
	assert_null(task_list_lapse(&list, 1000 + LEASE));
	assert_ptr_equal(task_list_lapse(&list, 1000 + LEASE + 50), a);
	assert_null(task_list_lapse(&list, 5000));
	/* It was only slow, and nobody else took the task: its result counts. */
	finish(&list, "a", TASK_COMPLETED, "a2");
	assert_int_equal(task_reopen(&list, a, "a1", &err), 0);
	/* Somebody else took it: too late. */
	expect_claim(&list, "a2", NULL, "a", NULL);
	assert_ptr_equal(task_list_owner_gone(&list, "a2"), a);
	assert_null(task_list_owner_gone(&list, "a2"));
	expect_claim(&list, "a3", NULL, "a", NULL);
	expect_error(task_finish(&list, a, TASK_COMPLETED, "a2", NULL, &err), &err,
		     "a3 has it in hand");
	/* What ends everybody who tries it is given up. */
	task_list_owner_gone(&list, "a3");
	expect_claim(&list, "a4", NULL, "a", NULL);
	task_list_owner_gone(&list, "a4");
	assert_int_equal(a->status, TASK_FAILED);
	assert_non_null(strstr(a->result, "3 owners of it died"));
	task_list_release(&list);
}

static void test_held_back(void **state)
{
	struct task_list list;
	struct err err = ERR_INIT;
	make(&list, "[{\"id\":\"a\",\"title\":\"A\"},{\"id\":\"b\",\"title\":\"B\",\"needs\":["
		    "\"a\"]},{\"id\":\"c\",\"title\":\"C\"}]");
	struct task *a = task_find(&list, "a");
	expect_claim(&list, "a2", NULL, "a", NULL);
	assert_int_equal(task_hold_back(&list, a, "a2", "to be merged", &err), 0);
	assert_null(task_list_lapse(&list, 100000));
	assert_null(task_list_owner_gone(&list, "a2"));
	expect_claim(&list, "a2", NULL, "c", NULL); /* it may go on meanwhile; b waits */
	finish(&list, "a", TASK_COMPLETED, NULL);
	expect_claim(&list, "a3", NULL, "b", NULL);
	assert_int_equal(task_hold_back(&list, task_find(&list, "b"), "a3", NULL, &err), 0);
	assert_int_equal(task_block(&list, task_find(&list, "b"), "the gate is red", &err), 0);
	expect_claim(&list, "a3", NULL, "-", "1 blocked");
	AUTO_JSON struct json_object *change = parse("{\"blocked\":\"\"}");
	assert_int_equal(task_edit(&list, task_find(&list, "b"), change, NULL, &err), 0);
	expect_claim(&list, "a3", NULL, "b", NULL);
	/* A change that is refused in one part changes nothing. */
	AUTO_JSON struct json_object *both = parse("{\"title\":\"Other\",\"blocked\":\"x\"}");
	assert_int_equal(task_edit(&list, a, both, NULL, &err), -1);
	assert_string_equal(a->title, "A");
	task_list_release(&list);
}

/* X11: what names the same file is ordered, or flagged before it starts. */
static void test_shared_files(void **state)
{
	struct task_list list;
	struct err err = ERR_INIT;
	struct task_claim claim;
	make(&list, "[{\"id\":\"a\",\"title\":\"A\",\"files\":[\"src/x.c\"],\"priority\":2},"
		    "{\"id\":\"b\",\"title\":\"B\",\"files\":[\"./src/*.c\"],\"priority\":1},"
		    "{\"id\":\"c\",\"title\":\"C\",\"files\":[\"src/x.cc\",\"srcs\"]}]");
	expect_claim(&list, "a1", NULL, "a", NULL);
	expect_claim(&list, "a2", NULL, "c", NULL);
	expect_claim(&list, "a3", NULL, "-",
		     "1 held until a task that names the same files is over");
	assert_int_equal(task_claim(&list, "b", "a3", NULL, 0, &claim, &err), 0);
	assert_non_null(strstr(claim.note,
			       "'src/x.c' is also a file of task a, which is in progress (a1)"));
	free(claim.note);
	task_list_release(&list);
}

static void test_roles(void **state)
{
	struct task_list list;
	struct err err = ERR_INIT;
	struct task_claim claim;
	make(&list, "[{\"id\":\"a\",\"title\":\"A\",\"role\":\"documents\"},{\"id\":\"b\","
		    "\"title\":\"B\"}]");
	expect_claim(&list, "a1", "fix", "b", NULL);
	expect_claim(&list, "a2", NULL, "-", "1 for other roles");
	assert_int_equal(task_claim(&list, "a", "a2", "fix", 0, &claim, &err), 0);
	assert_non_null(strstr(claim.note, "for the role documents"));
	free(claim.note);
	task_list_release(&list);
}

/* Neither a stream of urgent ones nor one of ones that share its file keeps a task from its turn for ever. */
static void test_no_starvation(void **state)
{
	struct task_list list;
	struct err err = ERR_INIT;
	make(&list, "[{\"id\":\"old\",\"title\":\"o\",\"files\":[\"f\",\"g\"]},{\"id\":\"g\","
		    "\"title\":\"g\",\"priority\":1,\"files\":[\"g\"]}]");
	expect_claim(&list, "a1", NULL, "g", NULL);
	for (int i = 0; i <= TASK_OVERTAKEN; i++) {
		struct task_claim claim;
		add(&list, "[{\"title\":\"urgent\",\"priority\":5,\"files\":[\"f\"]},{\"title\":"
			   "\"other\"}]");
		assert_int_equal(task_claim(&list, NULL, "a2", NULL, 0, &claim, &err), 0);
		bool other = strcmp(claim.task->title, "other") == 0;
		assert_int_equal(other, i >= TASK_OVERTAKEN);
		finish(&list, claim.task->id, TASK_COMPLETED, "a2");
		free(claim.note);
	}
	finish(&list, "g", TASK_COMPLETED, "a1");
	expect_claim(&list, "a2", NULL, "old", NULL);
	task_list_release(&list);
}

/* I10: the records of all changes, put one after the other, give the same list and the same choices. */
static void test_records_give_the_same_list(void **state)
{
	struct task_list list, copy;
	struct err err = ERR_INIT;
	AUTO_JSON struct json_object *docs = json_object_new_array();
	make(&list, "[{\"id\":\"a\",\"title\":\"A\",\"details\":\"long\",\"files\":[\"x\"],"
		    "\"priority\":1},"
		    "{\"id\":\"b\",\"title\":\"B\",\"needs\":[\"a\"],\"parent\":\"c\",\"role\":"
		    "\"fix\",\"effort\":3},"
		    "{\"id\":\"c\",\"title\":\"C\"},{\"id\":\"d\",\"title\":\"D\"}]");
	task_list_init(&copy, LEASE, 3);
	for (size_t i = 0; i < list.n; i++)
		json_object_array_add(docs, task_document(list.list[i]));
	task_list_put(&copy, docs, false);
	expect_claim(&list, "a1", NULL, "a", NULL);
	AUTO_JSON struct json_object *one = json_object_new_array();
	json_object_array_add(one, task_document(task_find(&list, "a")));
	json_object_array_add(one, json_object_new_int(3)); /* damaged ones change nothing */
	task_list_put(&copy, one, true);
	assert_int_equal(task_block(&list, task_find(&list, "d"), "no key", &err), 0);
	AUTO_JSON struct json_object *two = json_object_new_array();
	json_object_array_add(two, task_document(task_find(&list, "d")));
	task_list_put(&copy, two, false);
	assert_int_equal(list.n, copy.n);
	assert_int_equal(list.next_number, copy.next_number);
	for (size_t i = 0; i < list.n; i++) {
		AUTO_JSON struct json_object *x = task_document(list.list[i]);
		AUTO_JSON struct json_object *y = task_document(copy.list[i]);
		assert_true(json_object_equal(x, y));
		assert_int_equal(list.list[i]->overtaken, copy.list[i]->overtaken);
		assert_int_equal(list.list[i]->chain, copy.list[i]->chain);
	}
	task_list_release(&list);
	task_list_release(&copy);
}

/* A damaged journal may hold a circle: nothing of it gets ready, and nothing hangs. */
static void test_a_circle_on_record(void **state)
{
	struct task_list list;
	AUTO_JSON struct json_object *docs =
		parse("[{\"id\":\"x\",\"number\":1,\"title\":\"x\",\"status\":\"pending\","
		      "\"needs\":[\"y\"]},"
		      "{\"id\":\"y\",\"number\":2,\"title\":\"y\",\"status\":\"pending\",\"needs\":"
		      "[\"x\",\"gone\"]},"
		      "{\"id\":\"z\",\"number\":3,\"title\":\"z\",\"status\":\"in_progress\"},"
		      "{\"id\":\"z\",\"number\":3,\"title\":\"z\",\"status\":\"pending\"}]");
	task_list_init(&list, LEASE, 3);
	task_list_put(&list, docs, false);
	assert_int_equal(list.n, 3);
	expect_claim(&list, "a1", NULL, "z", NULL);
	expect_claim(&list, "a2", NULL, "-", "1 waiting for others, 0 blocked, 1 stuck");
	task_list_release(&list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_batch_is_made_whole_or_not_at_all),
		cmocka_unit_test(test_no_circles),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_leases),
		cmocka_unit_test(test_held_back),
		cmocka_unit_test(test_shared_files),
		cmocka_unit_test(test_roles),
		cmocka_unit_test(test_no_starvation),
		cmocka_unit_test(test_records_give_the_same_list),
		cmocka_unit_test(test_a_circle_on_record),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
