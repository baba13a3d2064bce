/*
 * test_scenario.c - loading (mistakes name the line), matching, templates and for_each_match, in
 * both protocols: what a scenario answers comes from what the client sent.
 */
#include "dialogue.h"

static void mistakes_name_their_line(void **state)
{
	static const struct {
		const char *text, *message;
	} cases[] = {
		{"name: x\n", "x.yaml:1: 'rules' is missing"},
		{"rules:\n  - {match: {turm: 1}, answer: {text: a}}\n",
		 "x.yaml:2: 'turm' is no key of this place; did you mean 'turn'?"},
		{"rules:\n  - name: a\n", "x.yaml:2: a rule needs an 'answer' or a 'fault'"},
		{"rules:\n  - answer: {text: a}\n  - match: {task: '('}\n    answer: {text: a}\n",
		 "x.yaml:3: 'task' bad pattern '('"},
		{"rules:\n  - answer:\n      text: a\n      quirks: [ollma]\n",
		 "x.yaml:4: 'quirks' names no quirk with 'ollma'; did you mean 'ollama'?"},
		{"rules:\n  - fault: {status: 99}\n", "'status' must be from 200 to 599"},
		{"rules:\n  - answer: {tool_calls: [{input: {}}]}\n", "a tool call needs a 'name'"},
		{"rules:\n  - answer: {text: a}\n    per: turn\n",
		 "must be conversation, all or request"},
		{"window: -1\nrules: [{answer: {text: a}}]\n",
		 "x.yaml:1: 'window' must be a number"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct scenario *scenario;
		struct err err = ERR_INIT;

		assert_int_equal(scenario_parse(cases[i].text, strlen(cases[i].text), "x.yaml",
						&scenario, &err),
				 -1);
		assert_int_equal(err.code, ERR_USAGE);
		assert_has(err.message, cases[i].message);
	}
}

static const char review[] =
	"name: review\n"
	"rules:\n"
	"  - name: read all\n"
	"    match: {turn: 0}\n"
	"    answer:\n"
	"      text: ['Reading:', {for_each_match: {in: task, pattern: '^\\+\\+\\+ b/(\\S+)', "
	"item: '- {{1}}'}}]\n"
	"      tool_calls:\n"
	"        - for_each_match:\n"
	"            in: task\n"
	"            pattern: '^diff --git a/(\\S+) b/'\n"
	"            distinct: true\n"
	"            item: {name: read, input: {path: '{{1}}'}}\n"
	"  - name: report\n"
	"    match: {turn: '1..'}\n"
	"    answer:\n"
	"      tool_calls:\n"
	"        - name: report\n"
	"          input:\n"
	"            status: done\n"
	"            findings:\n"
	"              - for_each_match:\n"
	"                  tool: read\n"
	"                  pattern: '^ *(?<line>\\d+)\\t.*\\bstrcpy\\((?<to>\\w+)'\n"
	"                  unless: 'sizeof\\({{to}}\\)'\n"
	"                  item: {file: '{{call.path}}', line: '{{line|int}}', claim: 'strcpy to "
	"{{to}}'}\n"
	"              - for_each_match:\n"
	"                  pattern: '^ *(\\d+)\\t.*\\bgets\\('\n"
	"                  item: {file: '{{call.path}}', line: '{{1|int}}', claim: 'gets in "
	"{{call.path|base}}'}\n";

static void findings_follow(struct dialogue *d, const char *a, const char *b, const char *expected)
{
	AUTO_JSON struct json_object *input = NULL;
	const char *results[] = {a, b};

	dialogue_say(d, "Review:\ndiff --git a/src/x.c b/src/x.c\n+++ b/src/x.c\n@@ -1 +1 @@\n"
			"diff --git a/y.c b/y.c\n+++ b/y.c\ndiff --git a/y.c b/y.c\n");
	dialogue_turn(d);
	assert_has(rig_body(&d->rig), "Reading:\\n- src/x.c\\n- y.c");
	assert_null(dialogue_call(d, 2)); /* distinct */
	dialogue_results(d, results, 2);
	dialogue_turn(d);
	input = dialogue_input(d, 0);
	assert_string_equal(json_object_to_json_string_ext(json_get(input, "findings"),
							   JSON_C_TO_STRING_PLAIN |
								   JSON_C_TO_STRING_NOSLASHESCAPE),
			    expected);
}

/* Issue 2: moving a planted defect or emptying the file changes the findings. */
static void findings_come_from_results(void **state)
{
	static const struct {
		const char *a, *b, *expected;
	} cases[] = {
		{"     4\tint x;\n    17\tstrcpy(name, arg);\n", "     3\tgets(line);\n",
		 "[{\"file\":\"src/x.c\",\"line\":17,\"claim\":\"strcpy to name\"},"
		 "{\"file\":\"y.c\",\"line\":3,\"claim\":\"gets in y.c\"}]"},
		{"     4\tstrcpy(name, arg);\n", "",
		 "[{\"file\":\"src/x.c\",\"line\":4,\"claim\":\"strcpy to name\"}]"},
		{"     1\tchar name[9]; f(sizeof(name));\n     2\tstrcpy(name, arg);\n", "x", "[]"},
	};

	for (int openai = 0; openai < 2; openai++) {
		for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
			struct dialogue d;

			dialogue_open(&d, openai, review);
			findings_follow(&d, cases[i].a, cases[i].b, cases[i].expected);
			dialogue_close(&d);
		}
	}
}

/* A verifier looks at the claimed line: a value from the task, quoted, in a pattern over the
 * result. */
static void task_values_in_patterns(void **state)
{
	static const char scenario[] =
		"name: v\nrules:\n"
		"  - match: {turn: 0, task: '\"line\": (?<line>\\d+)'}\n"
		"    answer: {tool_calls: [{name: read, input: {offset: '{{line|add:-3|int}}'}}]}\n"
		"  - match: {task: '\"line\": (?<line>\\d+)', tool_result: '^ "
		"*{{task.line}}\\t.*gets'}\n"
		"    answer: {text: confirmed}\n"
		"  - answer: {text: refuted}\n";
	static const char *const hit[] = {"   7\tx\n   8\tgets(b);"},
				 *const miss[] = {"   8\tx\n   9\tgets(b);"};

	for (int openai = 0; openai < 2; openai++) {
		for (int found = 0; found < 2; found++) {
			struct dialogue d;
			AUTO_JSON struct json_object *input = NULL;

			dialogue_open(&d, openai, scenario);
			dialogue_say(&d, "{\"line\": 8}");
			dialogue_turn(&d);
			input = dialogue_input(&d, 0);
			assert_int_equal(json_i64(input, "offset", 0), 5);
			dialogue_results(&d, found ? hit : miss, 1);
			dialogue_turn(&d);
			assert_has(rig_body(&d.rig), found ? "confirmed" : "refuted");
			dialogue_close(&d);
		}
	}
}

static const char *answer_to(struct dialogue *d)
{
	assert_int_equal(dialogue_send(d), 200);
	return rig_body(&d->rig);
}

static void conditions(void **state)
{
	static const char scenario[] =
		"name: c\nrules:\n"
		"  - {match: {is_compaction: true}, answer: {text: compacting}}\n"
		"  - {match: {role: tester}, answer: {text: by role}}\n"
		"  - {match: {model: '^big'}, answer: {text: by model}}\n"
		"  - {match: {min_tokens: 2000}, answer: {text: by size}}\n"
		"  - {match: {has_tools: false}, answer: {text: no tools}}\n"
		"  - {match: {last_message: 'ping (\\w+)', not: {last_message: 'ping pong'}}, "
		"answer: {text: 'pong {{1}}'}}\n"
		"  - {match: {protocol: openai}, answer: {text: openai}}\n"
		"  - {answer: {text: 'other {{missing|default:x}}{{round}}'}}\n";

	for (int openai = 0; openai < 2; openai++) {
		struct dialogue d;

		dialogue_open(&d, openai, scenario);
		dialogue_say(&d, "ping pong");
		assert_has(answer_to(&d), openai ? "\"openai\"" : "other x1");
		dialogue_say(&d, "ping you");
		assert_has(answer_to(&d),
			   openai ? "openai" : "other x1"); /* pong still stands there */
		json_object_array_del_idx(d.messages, 0, 1);
		assert_has(answer_to(&d), "pong you");
		json_object_object_del(d.request, "tools");
		assert_has(answer_to(&d), "no tools");
		AUTO_BUF struct buf large = BUF_INIT;
		for (int i = 0; i < 2000; i++)
			buf_adds(&large, "word ");
		dialogue_say(&d, buf_str(&large));
		assert_has(answer_to(&d), "by size");
		json_set_str(d.request, "model", "big-1");
		assert_has(answer_to(&d), "by model");
		if (!openai) {
			json_set_str(d.request, "system", "You test.\n**Role: tester**\n");
			assert_has(answer_to(&d), "by role");
		}
		dialogue_say(&d, "Write <analysis> and <summary>.");
		assert_has(answer_to(&d), "compacting");
		dialogue_close(&d);
	}
}

/* What was said in the middle of a conversation is found too, the newest of it, and what a model said is not meant. */
static void any_text_of_the_user(void **state)
{
	static const char scenario[] = "name: a\nrules:\n"
				       "  - {match: {turn: 2, any_text: 'code (?<code>\\w+)'}, "
				       "answer: {text: 'it is {{seen.code}}'}}\n"
				       "  - {match: {turn: 1}, answer: {text: code three}}\n"
				       "  - {answer: {text: none}}\n";

	for (int openai = 0; openai < 2; openai++) {
		struct dialogue d;

		dialogue_open(&d, openai, scenario);
		dialogue_say(&d, "code one");
		dialogue_turn(&d);
		dialogue_say(&d, "code two");
		dialogue_turn(&d);
		dialogue_say(&d, "and now?");
		assert_has(answer_to(&d), "it is two");
		dialogue_close(&d);
	}
}

static void role_by_word_or_line(void **state)
{
	static const char scenario[] = "name: r\nrules:\n"
				       "  - {match: {role: reviewer}, answer: {text: yes}}\n"
				       "  - {answer: {text: no}}\n";
	static const struct {
		const char *system;
		bool is;
	} cases[] = {{"You are a reviewer of code.", true},
		     {"You are a Reviewer", true},
		     {"You are no reviewers' friend", false},
		     {"Role: verifier\nYou help the reviewer.", false},
		     {"# Role: reviewer\nx", true},
		     {"role:\nreviewer", true},
		     {"x", false}};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct dialogue d;

		dialogue_open(&d, false, scenario);
		dialogue_say(&d, "go");
		json_set_str(d.request, "system", cases[i].system);
		assert_has(answer_to(&d), cases[i].is ? "\"yes\"" : "\"no\"");
		dialogue_close(&d);
	}
}

static void times_and_scopes(void **state)
{
	static const char scenario[] =
		"name: t\nrules:\n"
		"  - {match: {task: one}, times: 1, answer: {text: first}}\n"
		"  - {match: {task: all}, times: 1, per: all, answer: {text: first}}\n"
		"  - {match: {task: req}, times: 2, per: request, fault: {status: 500}}\n"
		"  - {answer: {text: later}}\n";
	struct dialogue a, b;

	dialogue_open(&a, false, scenario);
	dialogue_say(&a, "one");
	assert_has(answer_to(&a), "first");
	assert_has(answer_to(&a), "later");
	json_set_str(a.request, "system", "another conversation");
	assert_has(answer_to(&a), "first");
	dialogue_close(&a);

	dialogue_open(&b, true, scenario);
	dialogue_say(&b, "all");
	assert_has(answer_to(&b), "first");
	dialogue_say(&b, "more");
	assert_has(answer_to(&b), "later");
	dialogue_say(&b, "req");
	assert_int_equal(dialogue_send(&b), 500);
	assert_int_equal(dialogue_send(&b), 500);
	assert_int_equal(dialogue_send(&b), 200);
	dialogue_close(&b);
}

/* The same seed gives the same faults, in whatever order the agents ask. */
static void probability_is_seeded(void **state)
{
	static const char scenario[] =
		"name: p\nrules:\n"
		"  - {probability: 0.3, seed: 5, fault: {status: 503}}\n  - {answer: {text: ok}}\n";
	bool failed[2][200];
	int faults = 0;

	for (int pass = 0; pass < 2; pass++) {
		struct dialogue d;

		dialogue_open(&d, false, scenario);
		dialogue_say(&d, "go");
		for (int k = 0; k < 200; k++) {
			int i = pass ? 199 - k : k;
			AUTO_FREE char *system = mem_printf("agent %d", i);

			json_set_str(d.request, "system", system);
			failed[pass][i] = dialogue_send(&d) == 503;
			faults += failed[pass][i];
		}
		dialogue_close(&d);
	}
	assert_memory_equal(failed[0], failed[1], sizeof(failed[0]));
	assert_in_range(faults, 2 * 40, 2 * 80);
}

/* A resumed agent says something more in the turn in which it was cut off: another attempt, which may fare better. */
static void chance_of_a_turn_that_grows(void **state)
{
	static const char scenario[] = "name: p\nrules:\n"
				       "  - {match: {turn: 1}, probability: 0.5, seed: 5, fault: "
				       "{status: 503}}\n  - {answer: {text: ok}}\n";
	struct dialogue d;
	int faults = 0;

	dialogue_open(&d, false, scenario);
	dialogue_say(&d, "go");
	dialogue_turn(&d);
	for (int i = 0; i < 100; i++) {
		dialogue_say(&d, "the work was cut off");
		faults += dialogue_send(&d) == 503;
	}
	dialogue_close(&d);
	assert_in_range(faults, 25, 75);
}

static void no_rule_is_told(void **state)
{
	struct dialogue d;

	dialogue_open(&d, false, "name: none\nrules: [{match: {turn: 5}, answer: {text: a}}]\n");
	dialogue_say(&d, "go");
	assert_int_equal(dialogue_send(&d), 400);
	assert_has(rig_body(&d.rig), "no rule of scenario 'none' answers this request");
	AUTO_JSON struct json_object *stats = stats_json(service_stats(d.rig.service));
	assert_int_equal(json_i64(stats, "unmatched", 0), 1);
	dialogue_close(&d);
}

static void repeat_makes_long_texts(void **state)
{
	struct dialogue d;

	dialogue_open(&d, false,
		      "name: l\nrules: [{answer: {text: {repeat: 'ab {{turn}} ', times: 300}}}]\n");
	dialogue_say(&d, "go");
	dialogue_turn(&d);
	const char *text = json_str(json_at(json_arr(d.answer, "content"), 0), "text", "");
	assert_int_equal(strlen(text), 300 * 5);
	assert_memory_equal(text, "ab 0 ab 0 ", 10);
	dialogue_close(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mistakes_name_their_line),
		cmocka_unit_test(findings_come_from_results),
		cmocka_unit_test(task_values_in_patterns),
		cmocka_unit_test(conditions),
		cmocka_unit_test(any_text_of_the_user),
		cmocka_unit_test(role_by_word_or_line),
		cmocka_unit_test(times_and_scopes),
		cmocka_unit_test(probability_is_seeded),
		cmocka_unit_test(chance_of_a_turn_that_grows),
		cmocka_unit_test(no_rule_is_told),
		cmocka_unit_test(repeat_makes_long_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
