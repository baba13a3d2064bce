/*
 * test_role.c - role files: our form with its errors, the form that is found in public
 * repositories, and where a role is looked up.
 */
#include "config_rig.h"

#include "orchestrator/config/builtin_roles.h"
#include "orchestrator/role.h"

static struct role *parse(const char *text, bool claude)
{
	struct role *role = NULL;
	struct err err = ERR_INIT;

	if (role_parse(text, strlen(text), "r.md", claude, &role, &err) < 0)
		fail_msg("%s", err.message);
	return role;
}

static void refuse(const char *text, size_t n, bool claude, const char *part)
{
	struct role *role = NULL;
	struct err err = ERR_INIT;

	assert_int_equal(role_parse(text, n, "r.md", claude, &role, &err), -1);
	assert_null(role);
	if (err.code != ERR_USAGE || !strstr(err.message, part))
		fail_msg("'%s' lacks '%s'", err.message, part);
}

static void refused(const char *text, const char *part)
{
	refuse(text, strlen(text), false, part);
}

static void has_tools(const struct role *role, const char *want)
{
	AUTO_BUF struct buf names = BUF_INIT;

	assert_non_null(role->tools);
	for (char **tool = role->tools; *tool; tool++)
		buf_addf(&names, "%s%s", names.len ? " " : "", *tool);
	assert_string_equal(buf_str(&names), want);
}

static bool noted(const struct role *role, const char *part)
{
	for (char **note = role->notes; note && *note; note++) {
		if (strstr(*note, part))
			return true;
	}
	return false;
}

/* ---- built in ---- */

static void test_built_in_roles(void **state)
{
	static const char *const names[] = {"lead",	  "worker",	"explorer",  "reviewer",
					    "verifier",	  "planner",	"generator", "evaluator",
					    "integrator", "log-analyst"};

	assert_int_equal(builtin_roles_count, ARRAY_SIZE(names));
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct role *role = NULL;
		struct err err = ERR_INIT;
		if (role_load(names[i], NULL, &role, &err) < 0)
			fail_msg("%s: %s", names[i], err.message);
		assert_string_equal(role->name, names[i]);
		assert_string_equal(role->path, "built in");
		assert_non_null(role->description);
		assert_true(strlen(role->prompt) > 100);
		assert_null(role->notes);
		assert_null(strstr(role->prompt, "/home"));
		role_free(role);
	}
}

/* A reviewer gets read-only tools (issue 2, review). */
static void test_rights_of_built_in_roles(void **state)
{
	struct role *role = NULL;

	assert_int_equal(role_load("reviewer", NULL, &role, NULL), 0);
	has_tools(role, "read glob grep notes recall");
	assert_false(role->write);
	role_free(role);
	assert_int_equal(role_load("lead", NULL, &role, NULL), 0);
	assert_null(role->tools);
	assert_true(role->write);
	role_free(role);
	assert_int_equal(role_load("log-analyst", NULL, &role, NULL), 0);
	role_free(role);
}

/* W3: the buffer is a property of the role. */
static void test_buffers_of_built_in_roles(void **state)
{
	static const struct {
		const char *role;
		int64_t buffer;
	} rows[] = {{"log-analyst", 25000},
		    {"planner", 40000},
		    {"evaluator", 30000},
		    {"lead", -2},
		    {"worker", -2}}; /* the default, 13,000 */

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct role *role = NULL;

		assert_int_equal(role_load(rows[i].role, NULL, &role, NULL), 0);
		assert_int_equal(json_i64(role->knobs, "compact_buffer", -2), rows[i].buffer);
		role_free(role);
	}
}

/* ---- our form ---- */

static void test_all_fields(void **state)
{
	struct role *role = parse(
		"---\nname: x\ndescription: d\ntools: [read, Bash, edit]\n"
		"model: openai/a/b\neffort: low\nwrite: false\nnetwork: loopback\n"
		"max_rounds: 3\ncontext: {max_rounds: 5, compact_buffer: 9000, reset: never}\n"
		"output_schema: {type: object}\n---\n\n\r\n Do it.\n",
		false);

	assert_string_equal(role->name, "x");
	assert_string_equal(role->description, "d");
	has_tools(role, "read shell edit");
	assert_string_equal(role->model, "openai/a/b");
	assert_string_equal(role->effort, "low");
	assert_false(role->write);
	assert_string_equal(role->network, "loopback");
	assert_int_equal(role->max_rounds, 5);
	assert_int_equal(json_i64(role->knobs, "compact_buffer", 0), 9000);
	assert_int_equal(json_object_object_length(role->knobs), 1);
	assert_string_equal(json_str(role->context, "reset", ""), "never");
	assert_string_equal(json_str(role->output_schema, "type", ""), "object");
	assert_string_equal(role->prompt, "Do it.\n");
	assert_null(role->notes);
	role_free(role);
}

/* M5: every number of the context engine, checked where it is read. */
static void test_numbers_of_the_context(void **state)
{
	struct role *role = parse("---\ncontext: {compact_buffer: auto, tail-messages: 9, "
				  "decay: true, budget_notes: true}\n---\nGo.",
				  false);

	assert_int_equal(json_i64(role->knobs, "compact_buffer", 0), -1);
	assert_int_equal(json_i64(role->knobs, "tail_messages", 0), 9);
	assert_int_equal(json_i64(role->knobs, "decay", 0), 1);
	role_free(role);
	refused("---\nname: x\ncontext:\n  decy: true\n---\nGo.", "r.md:4: unknown");
	refused("---\ncontext: {decy: true}\n---\nGo.", "did you mean 'decay'?");
	refused("---\ncontext: {tail_messages: 0}\n---\nGo.", "from 1 to 1000");
	refused("---\ncontext: {decay: 7}\n---\nGo.", "true or false");
	role = parse("---\ncontext: {decy: true, tail_messages: 0, clear_keep: 7}\n---\nGo.", true);
	assert_true(noted(role, "'decy'"));
	assert_true(noted(role, "'tail_messages'"));
	assert_int_equal(json_i64(role->knobs, "clear_keep", 0), 7);
	assert_int_equal(json_object_object_length(role->knobs), 1);
	role_free(role);
}

/* H16: who summarises is a name beside the numbers. */
static void test_the_model_of_compactions(void **state)
{
	struct role *role =
		parse("---\ncontext: {compact_model: acme/small, clear_keep: 7}\n---\nGo.", false);

	assert_string_equal(role->compact_model, "acme/small");
	assert_int_equal(json_object_object_length(role->knobs), 1);
	role_free(role);
	role = parse("---\ncontext: {compact_model: inherit}\n---\nGo.", false);
	assert_string_equal(role->compact_model, "inherit");
	role_free(role);
	refused("---\nname: x\ncontext:\n  compact_model: small\n---\nGo.",
		"r.md:4: write PROVIDER/");
	refused("---\ncontext: {compact_model: 7}\n---\nGo.", "PROVIDER/NAME");
	role = parse("---\ncontext: {compact_model: small}\n---\nGo.", true);
	assert_null(role->compact_model);
	assert_true(noted(role, "'small'"));
	role_free(role);
}

/* R1: whether an agent of this role may go on in an empty window, and when it must. */
static void test_resets(void **state)
{
	struct role *role = parse("---\ncontext: {reset: per_stage}\n---\nGo.", false);

	assert_string_equal(role->reset, "per_stage");
	role_free(role);
	role = parse("---\ncontext: {reset: {after_compactions: 3}}\n---\nGo.", false);
	assert_string_equal(role->reset, "auto");
	assert_int_equal(json_i64(role->knobs, "max_compactions", 0), 3);
	role_free(role);
	refused("---\ncontext: {reset: sometimes}\n---\nGo.", "auto, never, per_stage");
	refused("---\ncontext: {reset: {after_compactions: 0}}\n---\nGo.", "1 or more");
	role = parse("---\ncontext: {reset: true}\n---\nGo.", true);
	assert_null(role->reset);
	role_free(role);
	assert_int_equal(role_load("reviewer", NULL, &role, NULL), 0);
	assert_string_equal(role->reset, "never");
	role_free(role);
}

static void test_what_follows_from_tools(void **state)
{
	static const struct {
		const char *front;
		bool write;
	} rows[] = {
		{"", true},
		{"tools: '*'", true},
		{"tools: all", true},
		{"tools: [read, grep]", false},
		{"tools: [read, write]", true},
		{"tools: [edit]", true},
		{"tools: [shell]", true},
		{"tools: []", false},
		{"tools: [shell]\nwrite: false", false},
		{"tools: [read]\nwrite: true", true},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		AUTO_FREE char *text = mem_printf("---\n%s\n---\nGo.\n", rows[i].front);
		struct role *role = parse(text, false);
		if (role->write != rows[i].write)
			fail_msg("%s", rows[i].front);
		role_free(role);
	}
}

static void test_strict_errors(void **state)
{
	refused("---\nname: x\ntool: [read]\n---\nGo.",
		"r.md:3: unknown key (did you mean 'tools'?)");
	refused("---\ncolor: red\n---\nGo.", "r.md:2: unknown key 'color'");
	refused("---\na/b: red\n---\nGo.", "r.md:2: unknown key 'a/b'");
	refused("---\nname: [x]\n---\nGo.", "r.md:2: text is expected for 'name'");
	refused("---\nname: x\ntools: [read, WebFetch]\n---\nGo.",
		"r.md:3: there is no tool 'WebFetch'");
	refused("---\ntools: [~]\n---\nGo.", "r.md:2: a list of names");
	refused("---\ntools: [[read]]\n---\nGo.", "r.md:2: a list of names");
	refused("---\ntools: {read: true}\n---\nGo.", "r.md:2: a list of names");
	refused("---\ntools: 5\n---\nGo.", "r.md:2: a list of names");
	refused("---\ntools: [Bash(git:*)]\n---\nGo.", "r.md:2: a tool is named without limits");
	refused("---\nmodel: opus\n---\nGo.", "r.md:2: write PROVIDER/NAME or inherit");
	refused("---\neffort: huge\n---\nGo.", "r.md:2: unknown value 'huge'");
	refused("---\nnetwork: all\n---\nGo.", "r.md:2: unknown value 'all'");
	refused("---\n\nwrite: no\n---\nGo.", "r.md:3: true or false"); /* YAML's "no" is text */
	refused("---\nmax_rounds: -1\n---\nGo.", "r.md:2: a number from 0 to");
	refused("---\ncontext:\n  max_rounds: ten\n---\nGo.", "r.md:3: a number from 0 to");
	refused("---\ncontext: 5\n---\nGo.", "r.md:2: a mapping is expected");
	refused("---\noutput_schema: x\n---\nGo.", "r.md:2: a mapping is expected");
	refused("---\n- a\n---\nGo.", "must be a mapping");
	refused("---\nname: x\nname: y\n---\nGo.", "r.md:3: duplicate key 'name'");
	refused("---\nname: x\ndescription: Use it: so\n---\nGo.", "r.md:3:");
}

static void test_roles_without_a_prompt(void **state)
{
	refused("---\nname: x\n---\n \n\t\n", "no prompt");
	refused("---\nname: x\n---", "no prompt");
	refused("", "no prompt");
	refuse("---\n---\n", 8, true, "no prompt");
}

static void test_empty_front_matter(void **state)
{
	static const char *const texts[] = {"---\n---\nGo.", "---\n# nothing\n---\nGo.",
					    "---\n~\n---\nGo.", "Go."};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct role *role = parse(texts[i], i % 2 == 0);
		assert_string_equal(role->prompt, "Go.");
		assert_null(role->name);
		role_free(role);
	}
}

/* ---- the form found in the wild ---- */

static void test_usual_file(void **state)
{
	struct role *role =
		parse("---\nname: code-reviewer\ndescription: Reviews code.\n"
		      "tools: Read, Grep, Glob , Bash, WebFetch, mcp__x__y, MultiEdit, TodoWrite\n"
		      "model: sonnet\ncolor: purple\n---\n\nYou review.\n",
		      true);

	assert_string_equal(role->name, "code-reviewer");
	has_tools(role, "read grep glob shell edit notes");
	assert_true(role->write);
	assert_null(role->model);
	assert_string_equal(role->prompt, "You review.\n");
	assert_true(noted(role, "'WebFetch'"));
	assert_true(noted(role, "'mcp__x__y'"));
	assert_true(noted(role, "'sonnet'"));
	assert_true(noted(role, "'color'"));
	role_free(role);
}

static void test_models_of_the_wild(void **state)
{
	struct role *role = parse("---\nmodel: inherit\n---\nGo.", true);

	assert_null(role->model);
	assert_null(role->notes);
	role_free(role);
	role = parse("---\nmodel:\n---\nGo.", true);
	assert_null(role->model);
	role_free(role);
}

/* A limit that is not enforced must be told: the whole shell is more than git. */
static void test_limited_tools(void **state)
{
	struct role *role =
		parse("---\ntools: Read, Bash(git add:*, git commit:*), Grep\n---\nGo.", true);

	has_tools(role, "read shell grep");
	assert_true(noted(role, "without the limits of 'Bash(git add:*, git commit:*)'"));
	role_free(role);
}

/* A list of tools that we have not is no list of all. */
static void test_unknown_tools_are_no_tools(void **state)
{
	static const char *const fronts[] = {
		"tools: WebFetch, WebSearch",  "tools: []", "tools: {a: b}", "tools: ''",
		"tools:\n  - WebFetch\n  - ~", "tools: 5"};

	for (size_t i = 0; i < ARRAY_SIZE(fronts); i++) {
		AUTO_FREE char *text = mem_printf("---\n%s\n---\nGo.", fronts[i]);
		struct role *role = parse(text, true);
		has_tools(role, "");
		assert_false(role->write);
		role_free(role);
	}
}

static void test_odd_types_of_the_wild(void **state)
{
	struct role *role = parse("---\nname: 5\ndescription: [a]\nwrite: no\nmax_rounds: x\n"
				  "effort: max\nnetwork: yes\ncontext: c\n---\nGo.",
				  true);

	assert_null(role->name);
	assert_null(role->description);
	assert_false(role->write);
	assert_int_equal(role->max_rounds, 0);
	assert_null(role->effort);
	assert_null(role->network);
	assert_null(role->context);
	role_free(role);
}

/* Descriptions with ": " in them, as generators of such files write them: no YAML at all. */
static void test_front_matter_that_is_no_yaml(void **state)
{
	struct role *role = parse("---\r\nname: helper\r\ndescription: Use this agent when: so. "
				  "Examples: <example>Context: "
				  "a: b</example>\r\n  more: text\r\ntools:\r\n  - Read\r\n  - "
				  "\"Grep\"\r\nmodel: opus\r\n"
				  "---\r\nYou help.",
				  true);

	assert_string_equal(role->name, "helper");
	assert_non_null(strstr(role->description, "Use this agent when: so."));
	assert_non_null(strstr(role->description, "more: text"));
	has_tools(role, "read grep");
	assert_true(noted(role, "read line by line"));
	role_free(role);
	role = parse("---\nname: 'q'\ndescription: >-\n  a: b: c\n d: [\ntools: Read\n---\nGo.",
		     true);
	assert_string_equal(role->name, "q");
	assert_int_equal(strncmp(role->description, "a: b: c", 7), 0);
	has_tools(role, "read");
	role_free(role);
	refuse("---\n[ no key\n---\nGo.", 20, true, "r.md:");
}

/* ---- hostile files ---- */

static void test_hostile_bytes(void **state)
{
	AUTO_BUF struct buf deep = BUF_INIT;

	refuse("---\nname: \xff\n---\nGo.", 18, true, "not UTF-8");
	refuse("---\nname: a\0b\n---\nGo.", 20, true, "not UTF-8");
	buf_adds(&deep, "---\ncontext: ");
	for (int i = 0; i < 500; i++)
		buf_addc(&deep, '[');
	buf_adds(&deep, "\n---\nGo.");
	refuse(deep.data, deep.len, false, "r.md:2:");
	refused("---\na: &a [x, x]\nb: &b [*a, *a, *a, *a]\nc: *c\n---\nGo.",
		"r.md:4: unknown anchor");
}

/* ---- finding ---- */

static struct role *find(void **state, const char *name)
{
	AUTO_FREE char *project = rig_path(state, "project");
	struct role *role = NULL;
	struct err err = ERR_INIT;

	if (role_load(name, project, &role, &err) < 0)
		fail_msg("%s", err.message);
	return role;
}

static void check_prompt(void **state, const char *name, const char *want)
{
	struct role *role = find(state, name);

	assert_string_equal(role->prompt, want);
	assert_string_equal(role->name, name);
	role_free(role);
}

static void test_order_of_places(void **state)
{
	rig_write(state, ".claude/agents/mine.md", "home claude");
	check_prompt(state, "mine", "home claude");
	rig_write(state, "project/.claude/agents/mine.md", "---\ncolor: red\n---\nclaude");
	check_prompt(state, "mine", "claude");
	rig_write(state, "config/baton/agents/mine.md", "user");
	check_prompt(state, "mine", "user");
	rig_write(state, "project/.baton/agents/mine.md", "project");
	check_prompt(state, "mine", "project");
}

static void find_refused(void **state, const char *name, enum err_code code, const char *part)
{
	AUTO_FREE char *project = rig_path(state, "project");
	struct role *role = NULL;
	struct err err = ERR_INIT;

	assert_int_equal(role_load(name, project, &role, &err), -1);
	assert_int_equal(err.code, code);
	if (!strstr(err.message, part))
		fail_msg("'%s' lacks '%s'", err.message, part);
}

static void test_roles_that_are_not_found(void **state)
{
	find_refused(state, "reviewr", ERR_NOT_FOUND, "did you mean 'reviewer'?");
	find_refused(state, "nosuchthing", ERR_NOT_FOUND, "looked in .baton/agents/");
	find_refused(state, "../x", ERR_USAGE, "no role name");
	find_refused(state, ".x", ERR_USAGE, "no role name");
	find_refused(state, "", ERR_USAGE, "no role name");
	rig_write(state, "project/.baton/agents/bad.md", "---\nfoo: 1\n---\nx");
	find_refused(state, "bad", ERR_USAGE, "bad.md:2: unknown key 'foo'");
}

/* I12: a repository must not make a prompt of a file outside it. */
static void test_links_out_of_the_project(void **state)
{
	AUTO_FREE char *link = rig_path(state, "project/.baton/agents/leak.md");
	AUTO_FREE char *secret = rig_path(state, "secret");

	rig_write(state, "secret", "private");
	rig_write(state, "project/.baton/agents/real.md", "inside");
	assert_int_equal(symlink(secret, link), 0);
	find_refused(state, "leak", ERR_DENIED, "leads out of");
	AUTO_FREE char *other = rig_path(state, "project/.baton/agents/other.md");
	assert_int_equal(symlink("real.md", other), 0);
	check_prompt(state, "other", "inside");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(test_built_in_roles),
		rig_test(test_rights_of_built_in_roles),
		rig_test(test_buffers_of_built_in_roles),
		rig_test(test_numbers_of_the_context),
		rig_test(test_the_model_of_compactions),
		rig_test(test_resets),
		rig_test(test_all_fields),
		rig_test(test_what_follows_from_tools),
		rig_test(test_strict_errors),
		rig_test(test_roles_without_a_prompt),
		rig_test(test_empty_front_matter),
		rig_test(test_usual_file),
		rig_test(test_models_of_the_wild),
		rig_test(test_limited_tools),
		rig_test(test_unknown_tools_are_no_tools),
		rig_test(test_odd_types_of_the_wild),
		rig_test(test_front_matter_that_is_no_yaml),
		rig_test(test_hostile_bytes),
		rig_test(test_order_of_places),
		rig_test(test_roles_that_are_not_found),
		rig_test(test_links_out_of_the_project),
	};
	return cmocka_run_group_tests_name("orchestrator/role", tests, NULL, NULL);
}
