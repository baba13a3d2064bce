/*
 * test_settings.c - the command line, the layers of M5 and their strength, and every value's type.
 */
#include "config_rig.h"

#include "base/text.h"
#include "orchestrator/config/store.h"

/* Loads with these words, a NULL ends them. */
static int load(void **state, enum option_scope scope, const char *const *words,
		struct settings **ret, struct err *err)
{
	AUTO_FREE char *project = rig_path(state, "project");
	int n = 0;

	while (words[n])
		n++;
	return settings_load(n, (char **)words, scope, project, ret, err);
}

#define WORDS(...)                                                                                 \
	(const char *const[])                                                                      \
	{                                                                                          \
		__VA_ARGS__, NULL                                                                  \
	}

static struct settings *must(void **state, const char *const *words)
{
	struct settings *s = NULL;
	struct err err = ERR_INIT;

	if (load(state, SCOPE_RUN, words, &s, &err) < 0)
		fail_msg("%s", err.message);
	return s;
}

static struct settings *none(void **state)
{
	static const char *const words[] = {NULL};

	return must(state, words);
}

static void refused(void **state, const char *const *words, const char *part)
{
	struct settings *s = NULL;
	struct err err = ERR_INIT;

	assert_int_equal(load(state, SCOPE_RUN, words, &s, &err), -1);
	if (err.code != ERR_USAGE || !strstr(err.message, part))
		fail_msg("'%s' (code %d) lacks '%s'", err.message, err.code, part);
}

/* The user's file with this text is refused, with this in the message. */
static void file_refused(void **state, const char *text, const char *part)
{
	rig_write(state, "config/baton/config.yaml", text);
	refused(state, WORDS("task"), part);
}

static void project_refused(void **state, const char *text, const char *part)
{
	rig_write(state, "project/.baton/config.yaml", text);
	refused(state, WORDS("task"), part);
}

/* ---- the command line ---- */

static void test_forms_of_options(void **state)
{
	struct settings *s = must(state, WORDS("--role", "worker", "--max-rounds=7", "fix", "-v",
					       "--dirty", "--no-keep", "it", "-", "--", "--role"));

	assert_string_equal(settings_str(s, OPT_ROLE), "worker");
	assert_int_equal(settings_i64(s, OPT_MAX_ROUNDS), 7);
	assert_true(settings_flag(s, OPT_VERBOSE));
	assert_true(settings_flag(s, OPT_DIRTY));
	assert_false(settings_flag(s, OPT_KEEP));
	assert_true(settings_is_set(s, OPT_KEEP));
	assert_int_equal(settings_n_args(s), 4);
	assert_string_equal(settings_arg(s, 1), "it");
	assert_string_equal(settings_arg(s, 2), "-");
	assert_string_equal(settings_arg(s, 3), "--role");
	assert_null(settings_arg(s, 4));
	assert_string_equal(settings_origin(s, OPT_ROLE), "command line");
	assert_string_equal(settings_origin(s, OPT_AGENTS), "default");
	settings_free(s);
}

static void test_paths_become_absolute(void **state)
{
	AUTO_FREE char *cwd = getcwd(NULL, 0);
	AUTO_FREE char *want = file_join(cwd, "sub/task.txt");
	AUTO_FREE char *dir = file_join(cwd, "x");
	struct settings *s = must(state, WORDS("--file", "sub/task.txt", "-C", "/abs",
					       "--read-paths", "x", "--read-paths=/y"));

	assert_string_equal(settings_str(s, OPT_FILE), want);
	assert_string_equal(settings_str(s, OPT_DIRECTORY), "/abs");
	assert_string_equal(settings_list(s, OPT_READ_PATHS)[0], dir);
	assert_string_equal(settings_list(s, OPT_READ_PATHS)[1], "/y");
	settings_free(s);
}

static void test_wrong_command_lines(void **state)
{
	refused(state, WORDS("--modle", "x"), "did you mean '--model'?");
	refused(state, WORDS("--zzzzzzzzz"), "see --help");
	refused(state, WORDS("--staged"), "not an option of this command");
	refused(state, WORDS("--role"), "needs a value: --role NAME");
	refused(state, WORDS("-C"), "needs a value");
	refused(state, WORDS("-x"), "unknown option '-x'");
	refused(state, WORDS("-vq"), "unknown option '-vq'");
	refused(state, WORDS("--no-role", "x"), "unknown option");
	refused(state, WORDS("--no-keep=false"), "takes no value");
	refused(state, WORDS("--keep=perhaps"), "true or false");
	refused(state, WORDS("--="), "unknown option");
}

static void test_help_needs_no_readable_configuration(void **state)
{
	rig_write(state, "config/baton/config.yaml", "no: [yaml");
	struct settings *s = must(state, WORDS("--help"));

	assert_true(settings_wants_help(s));
	settings_free(s);
}

/* ---- types, ranges, units ---- */

static void test_units(void **state)
{
	struct settings *s =
		must(state, WORDS("--window", "64k", "--time-limit", "1h30m", "--max-cost", "$2.50",
				  "--max-tokens=2M", "--bytes-idle", "90", "--effort", "high"));

	assert_int_equal(settings_i64(s, OPT_WINDOW), 64000);
	assert_int_equal(settings_i64(s, OPT_TIME_LIMIT), 5400000);
	assert_true(settings_double(s, OPT_MAX_COST) == 2.5);
	assert_int_equal(settings_i64(s, OPT_MAX_TOKENS), 2000000);
	assert_int_equal(settings_i64(s, OPT_BYTES_IDLE), 90000);
	assert_string_equal(settings_str(s, OPT_EFFORT), "high");
	settings_free(s);
}

static void test_what_is_unset(void **state)
{
	struct settings *s = none(state);

	assert_true(settings_double(s, OPT_MAX_COST) < 0);
	assert_int_equal(settings_i64(s, OPT_MAX_TOKENS), 0);
	assert_null(settings_str(s, OPT_MODEL));
	assert_null(settings_str(s, OPT_EFFORT));
	assert_null(settings_list(s, OPT_PASS_ENV)[0]);
	assert_false(settings_is_set(s, OPT_MAX_ROUNDS));
	assert_int_equal(settings_i64(s, OPT_MAX_ROUNDS), 100);
	assert_string_equal(settings_str(s, OPT_NETWORK), "none");
	settings_free(s);
}

static void test_wrong_values(void **state)
{
	static const char *const money[] = {"inf", "nan", "-1", "1e3", "0x10", ".", "", "$"};

	refused(state, WORDS("--max-rounds", "0"), "at least 1, not '0'");
	refused(state, WORDS("--retries", "101"), "at most 100, not");
	refused(state, WORDS("--window", "1999"), "at least 2000");
	refused(state, WORDS("--max-rounds", "many"), "a number such as");
	refused(state, WORDS("--max-rounds", "-3"), "a number such as");
	refused(state, WORDS("--time-limit", "1x"), "a time such as");
	refused(state, WORDS("--time-limit", "0ms"), "at least 1ms");
	refused(state, WORDS("--network", "Open"), "one of none|loopback|open");
	refused(state, WORDS("--effort", ""), "one of low|medium|high");
	refused(state, WORDS("--network", "none|open"), "one of");
	for (size_t i = 0; i < ARRAY_SIZE(money); i++)
		refused(state, WORDS("--max-cost", money[i]), "an amount in USD");
	/* What a double cannot hold exactly is no limit that one could keep. */
	refused(state, WORDS("--max-tokens", "9223372036854775807"), "at most");
}

/* Each row of the table is usable: its default parses, its choices are words, its name is unique.
 */
static void test_option_table(void **state)
{
	size_t n;
	const struct option *table = option_table(&n);

	assert_int_equal(n, OPT_COUNT_);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(table[i].id, i);
		assert_ptr_equal(option_find(table[i].name), &table[i]);
		assert_true(*table[i].help);
		assert_true(table[i].scope != 0);
		assert_int_equal(table[i].type == OPTION_FLAG, !*table[i].metavar);
	}
}

/* ---- layers ---- */

static void test_strength_of_layers(void **state)
{
	rig_write(state, "config/baton/config.yaml", "role: user\n");
	struct settings *s = none(state);
	assert_string_equal(settings_str(s, OPT_ROLE), "user");
	assert_true(text_ends(settings_origin(s, OPT_ROLE), "config/baton/config.yaml:1"));
	settings_free(s);

	rig_write(state, "project/.baton/config.yaml", "# shared\n\nrole: shared\n");
	s = none(state);
	assert_string_equal(settings_str(s, OPT_ROLE), "shared");
	assert_true(text_ends(settings_origin(s, OPT_ROLE), ".baton/config.yaml:3"));
	settings_free(s);

	rig_write(state, "project/.baton/config.local.yaml", "role: local\n");
	s = none(state);
	assert_string_equal(settings_str(s, OPT_ROLE), "local");
	settings_free(s);

	setenv("BATON_ROLE", "environment", 1);
	s = none(state);
	assert_string_equal(settings_str(s, OPT_ROLE), "environment");
	assert_string_equal(settings_origin(s, OPT_ROLE), "environment BATON_ROLE");
	settings_free(s);

	s = must(state, WORDS("--role", "cli"));
	assert_string_equal(settings_str(s, OPT_ROLE), "cli");
	static const char managed[] = "role: managed\n";
	assert_int_equal(layer_parse(s, "/etc/baton/config.yaml", managed, strlen(managed),
				     LAYER_MANAGED, NULL),
			 0);
	assert_string_equal(settings_str(s, OPT_ROLE), "managed");
	assert_string_equal(settings_origin(s, OPT_ROLE), "/etc/baton/config.yaml:1");
	settings_free(s);
}

static void test_flags_and_numbers_of_layers(void **state)
{
	rig_write(state, "config/baton/config.yaml", "keep: true\nmax_rounds: 5\nmax-cost: 2.5\n");
	rig_write(state, "project/.baton/config.yaml", "keep: false\n");
	setenv("BATON_MAX_ROUNDS", "9", 1);
	struct settings *s = none(state);

	assert_false(settings_flag(s, OPT_KEEP));
	assert_int_equal(settings_i64(s, OPT_MAX_ROUNDS), 9);
	assert_true(settings_double(s, OPT_MAX_COST) == 2.5);
	settings_free(s);
}

/* M5, I11: a project lowers the user's limits of money, tokens and time, and does not raise them.
 */
static void test_projects_only_lower_limits(void **state)
{
	rig_write(state, "config/baton/config.yaml",
		  "max-cost: 5\nmax-tokens: 10000\ntime-limit: 1h\nmax-rounds: 5\n");
	rig_write(state, "project/.baton/config.yaml",
		  "max-cost: 3\nmax-tokens: 20000\ntime-limit: 2h\nmax-rounds: 50\n");
	rig_write(state, "project/.baton/config.local.yaml", "max-cost: 1000\n");
	struct settings *s = none(state);

	assert_true(settings_double(s, OPT_MAX_COST) == 3);
	assert_int_equal(settings_i64(s, OPT_MAX_TOKENS), 10000);
	assert_int_equal(settings_i64(s, OPT_TIME_LIMIT), 3600000);
	assert_int_equal(settings_i64(s, OPT_MAX_ROUNDS), 50);
	settings_free(s);
	s = must(state, WORDS("--max-cost", "1000")); /* he himself may */
	assert_true(settings_double(s, OPT_MAX_COST) == 1000);
	settings_free(s);
	rig_write(state, "config/baton/config.yaml", "max-cost: 0\n");
	s = none(state);
	assert_true(settings_double(s, OPT_MAX_COST) == 0);
	settings_free(s);
	rig_write(state, "config/baton/config.yaml", "");
	s = none(state);
	assert_true(settings_double(s, OPT_MAX_COST) == 1000);
	settings_free(s);
}

/* M5: lists are merged without duplicates. */
static void test_lists_are_merged(void **state)
{
	rig_write(state, "config/baton/config.yaml", "pass-env: [TERM, LANG]\nread-paths: [a]\n");
	setenv("BATON_PASS_ENV", "LANG,TZ", 1);
	setenv("BATON_READ_PATHS", "/one:/two", 1);
	AUTO_FREE char *beside = rig_path(state, "config/baton/a");
	struct settings *s = must(state, WORDS("--pass-env", "TZ", "--pass-env=EDITOR"));
	static const char *const want[] = {"TZ", "EDITOR", "TERM", "LANG", NULL};
	const char *const *list = settings_list(s, OPT_PASS_ENV);

	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		if (!want[i])
			assert_null(list[i]);
		else
			assert_string_equal(list[i], want[i]);
	}
	list = settings_list(s, OPT_READ_PATHS);
	assert_string_equal(list[0], beside);
	assert_string_equal(list[1], "/one");
	assert_string_equal(list[2], "/two");
	settings_free(s);
}

static void test_environment_is_checked(void **state)
{
	setenv("BATON_AGENTS", "lots", 1);
	refused(state, WORDS("task"), "environment BATON_AGENTS: 'agents' must be a number");
	setenv("BATON_AGENTS", "", 1);
	setenv("BATON_BASE", "HEAD~1", 1); /* the command line alone sets it */
	struct settings *s = none(state);
	assert_null(settings_str(s, OPT_BASE));
	settings_free(s);
}

/* Unknown keys and wrong types are errors with file, line and the nearest name. */
static void test_wrong_files(void **state)
{
	file_refused(state, "role: x\nmax-ronds: 3\n",
		     "config.yaml:2: unknown key 'max-ronds'; did you mean 'max-rounds'?");
	file_refused(state, "\n\na/b~c: 1\n", "config.yaml:3: unknown key 'a/b~c'");
	file_refused(state, "role: [a, b]\n", "config.yaml:1: a single value is expected");
	file_refused(state, "role: true\n", "config.yaml:1: true and false are no values");
	file_refused(state, "role:\n", "config.yaml:1: a single value is expected");
	file_refused(state, "role: x\nmax_rounds: {a: 1}\n", "config.yaml:2: a single value");
	file_refused(state, "keep: maybe\n", "config.yaml:1: 'keep' must be true or false");
	file_refused(state, "max-rounds: soon\n", "config.yaml:1: 'max-rounds' must be a number");
	file_refused(state, "pass-env: [A, {b: c}]\n", "config.yaml:1: a list of words");
	file_refused(state, "pass-env: [~]\n", "config.yaml:1: a list of words");
	file_refused(state, "dirty: true\n", "config.yaml:1: only the command line sets 'dirty'");
	file_refused(state, "- a\n", "must be a mapping");
	file_refused(state, "role: x\nrole: y\n", "config.yaml:2: duplicate key 'role'");
	file_refused(state, "role: [x\n", "config.yaml");
	rig_write(state, "config/baton/config.yaml", "# nothing\n");
	settings_free(none(state));
}

/* M5, M7: what decides where keys go and what is confined is not for the repository to say. */
static void test_project_files_may_not(void **state)
{
	static const char *const lines[] = {
		"model: openai/x\n",
		"unconfined: true\n",
		"network: open\n",
		"read-paths: [/etc]\n",
		"pass-env: [TOKEN]\n",
		"providers:\n  openai: {base_url: 'http://evil/'}\n",
		"models:\n  openai/x: {window: 5}\n",
	};

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		project_refused(state, lines[i], "config.yaml:1: a project's file may not set");
		rig_write(state, "project/.baton/config.yaml", "");
		rig_write(state, "project/.baton/config.local.yaml", lines[i]);
		refused(state, WORDS("task"), "config.local.yaml:1: a project's file may not set");
		rig_write(state, "project/.baton/config.local.yaml", "");
		rig_write(state, "config/baton/config.yaml", lines[i]);
		settings_free(none(state));
		rig_write(state, "config/baton/config.yaml", "");
	}
}

static void test_setup_needs_trust(void **state)
{
	static const char *const names[] = {"project/.baton/config.yaml",
					    "project/.baton/config.local.yaml"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		AUTO_FREE char *path = rig_path(state, names[i]);
		rig_write(state, names[i], "setup: make\nrole: x\n");
		struct settings *s = none(state);
		assert_null(settings_str(s, OPT_SETUP));
		assert_string_equal(settings_str(s, OPT_ROLE), "x");
		settings_free(s);
		assert_int_equal(trust_grant(path, NULL), 0);
		s = none(state);
		assert_string_equal(settings_str(s, OPT_SETUP), "make");
		settings_free(s);
		rig_write(state, names[i], "setup: make\nrole: x \n"); /* one byte more */
		s = none(state);
		assert_null(settings_str(s, OPT_SETUP));
		settings_free(s);
		rig_write(state, names[i], "");
	}
}

/* Trust is in a file's place too: the same bytes elsewhere are another file. */
static void test_trust_is_for_one_file(void **state)
{
	static const char text[] = "setup: make\n";
	AUTO_BUF struct buf content = BUF_INIT;
	AUTO_FREE char *here = rig_path(state, "project/.baton/config.yaml");
	AUTO_FREE char *there = rig_path(state, "other/.baton/config.yaml");
	AUTO_FREE char *missing = rig_path(state, "nowhere.yaml");
	struct err err = ERR_INIT;

	rig_write(state, "project/.baton/config.yaml", text);
	rig_write(state, "other/.baton/config.yaml", text);
	buf_adds(&content, text);
	assert_false(trust_holds(here, &content));
	assert_int_equal(trust_grant(here, NULL), 0);
	assert_true(trust_holds(here, &content));
	assert_false(trust_holds(there, &content));
	assert_int_equal(trust_grant(missing, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	/* The user's own file needs none. */
	rig_write(state, "project/.baton/config.yaml", "");
	rig_write(state, "config/baton/config.yaml", text);
	struct settings *s = none(state);
	assert_string_equal(settings_str(s, OPT_SETUP), "make");
	settings_free(s);
}

/* ---- printing ---- */

static void test_effective_values(void **state)
{
	AUTO_BUF struct buf text = BUF_INIT;
	AUTO_BUF struct buf json = BUF_INIT;
	AUTO_JSON struct json_object *doc = NULL;
	size_t n;
	const struct option *table = option_table(&n);

	setenv("BATON_ROLE", "a\033[31mb", 1);
	struct settings *s = must(state, WORDS("--max-cost", "2.5", "--pass-env", "A"));
	settings_print_effective(s, false, &text);
	settings_print_effective(s, true, &json);
	assert_null(strchr(buf_str(&text), '\033'));
	assert_non_null(strstr(buf_str(&text), "environment BATON_ROLE\n"));
	assert_int_equal(json_parse(json.data, json.len, &doc, NULL), 0);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(json_obj(doc, table[i].name) != NULL,
				 table[i].layers != CFG_CLI && table[i].id != OPT_CONTEXT);
	assert_string_equal(json_str(json_obj(doc, "setup-timeout"), "value", ""), "10m");
	assert_string_equal(json_str(json_obj(doc, "bytes-idle"), "value", ""), "90s");
	assert_string_equal(json_str(json_obj(doc, "max-cost"), "value", ""), "2.5");
	assert_string_equal(json_str(json_obj(doc, "max-cost"), "origin", ""), "command line");
	settings_free(s);
}

/* ---- numbers of the context engine ---- */

static int64_t knob(const struct settings *s, const char *name)
{
	return settings_knob(s, knob_find(name), NULL);
}

static const char *knob_origin(const struct settings *s, const char *name)
{
	return settings_knob_origin(s, knob_find(name));
}

/* M5: each layer can set each of them. */
static void test_knobs_in_all_layers(void **state)
{
	rig_write(state, "config/baton/config.yaml",
		  "context:\n  tail_messages: 8\n  snip: false\n  compact-buffer: auto\n"
		  "  notes_total: 9k\n");
	rig_write(state, "project/.baton/config.yaml", "context: {tail_messages: 9}\n");
	setenv("BATON_NOTES_TOTAL", "7000", 1);
	setenv("BATON_CONTEXT", "decay=true,clear_keep=3", 1);
	struct settings *s =
		must(state, WORDS("--context", "clear_keep=4", "--context=collapse_pct=80%"));

	assert_int_equal(knob(s, "tail_messages"), 9);
	assert_int_equal(knob(s, "snip"), 0);
	assert_int_equal(knob(s, "compact_buffer"), KNOB_AUTO);
	assert_int_equal(knob(s, "notes_total"), 7000);
	assert_int_equal(knob(s, "decay"), 1);
	assert_int_equal(knob(s, "clear_keep"), 4);
	assert_int_equal(knob(s, "collapse_pct"), 80);
	assert_int_equal(knob(s, "rehydrate_files"), 5);
	assert_non_null(strstr(knob_origin(s, "snip"), "config/baton/config.yaml:3"));
	assert_string_equal(knob_origin(s, "notes_total"), "environment BATON_NOTES_TOTAL");
	assert_string_equal(knob_origin(s, "clear_keep"), "command line");
	assert_string_equal(knob_origin(s, "rehydrate_files"), "default");
	settings_free(s);
}

/* M5 as it is for knobs: the command line and the environment stand above a role, files below it. */
static void test_a_role_stands_between_files_and_environment(void **state)
{
	AUTO_JSON struct json_object *role = json_object_new_object();

	json_set_i64(role, "tail_messages", 12);
	json_set_i64(role, "clear_keep", 13);
	json_set_i64(role, "compact_buffer", 25000);
	rig_write(state, "config/baton/config.yaml",
		  "context: {tail_messages: 8, compact_buffer: 1000, notes_total: 800}\n");
	struct settings *s = must(state, WORDS("--context", "clear_keep=4"));

	assert_int_equal(settings_knob(s, knob_find("tail_messages"), role), 12);
	assert_int_equal(settings_knob(s, knob_find("compact_buffer"), role), 25000);
	assert_int_equal(settings_knob(s, knob_find("clear_keep"), role), 4);
	assert_int_equal(settings_knob(s, knob_find("notes_total"), role), 800);
	settings_free(s);
}

/* W4: the names as they are written there. */
static void test_w4_variables(void **state)
{
	setenv("BATON_CONTEXT_WINDOW", "64000", 1);
	setenv("BATON_COMPACT_PCT", "60", 1);
	setenv("BATON_BLOCKING_LIMIT", "50000", 1);
	setenv("BATON_DISABLE_COMPACT", "1", 1);
	setenv("BATON_DISABLE_AUTO_COMPACT", "true", 1);
	struct settings *s = none(state);

	assert_int_equal(settings_i64(s, OPT_WINDOW), 64000);
	assert_int_equal(knob(s, "compact_pct"), 60);
	assert_int_equal(knob(s, "blocking_limit"), 50000);
	assert_int_equal(knob(s, "compact_any"), 0);
	assert_int_equal(knob(s, "compact"), 0);
	settings_free(s);
	setenv("BATON_DISABLE_COMPACT", "0", 1);
	s = none(state);
	assert_int_equal(knob(s, "compact_any"), 1);
	settings_free(s);
}

/* Options that are knobs under a name of their own: one number, whatever name set it. */
static void test_old_names_of_knobs(void **state)
{
	AUTO_BUF struct buf json = BUF_INIT;
	AUTO_JSON struct json_object *doc = NULL;

	rig_write(state, "config/baton/config.yaml",
		  "compact: off\ncache-life: 1h\ncontext: {compact_pct: 70}\n");
	struct settings *s = must(state, WORDS("--working-ceiling", "30k"));

	assert_int_equal(knob(s, "compact"), 0);
	assert_int_equal(knob(s, "cache_1h"), 1);
	assert_int_equal(knob(s, "working_ceiling"), 30000);
	assert_int_equal(knob(s, "user_message_bytes"), 50000);
	settings_print_effective(s, true, &json);
	assert_int_equal(json_parse(json.data, json.len, &doc, NULL), 0);
	assert_string_equal(json_str(json_obj(doc, "compact-pct"), "value", ""), "70");
	assert_string_equal(json_str(json_obj(doc, "compact"), "value", ""), "off");
	assert_string_equal(json_str(json_obj(doc, "context.compact"), "value", ""), "false");
	assert_string_equal(json_str(json_obj(doc, "context.compact_pct"), "value", ""), "70");
	assert_non_null(strstr(json_str(json_obj(doc, "context.cache_1h"), "origin", ""), ":2"));
	settings_free(s);
	s = must(state, WORDS("--compact=auto"));
	assert_int_equal(knob(s, "compact"), 1);
	settings_free(s);
}

static void test_wrong_knobs(void **state)
{
	refused(state, WORDS("--context", "tail_mesages=3"), "did you mean 'tail_messages'?");
	refused(state, WORDS("--context", "snip"), "--context snip=VALUE");
	refused(state, WORDS("--context", "collapse_pct=5"), "from 10 to 100");
	refused(state, WORDS("--context", "snip=perhaps"), "true or false");
	refused(state, WORDS("--context", "tail_messages=auto"), "must be a number");
	refused(state, WORDS("--context", "compact_buffer=x"), "a number or auto");
	setenv("BATON_TAIL_MESSAGES", "0", 1);
	refused(state, WORDS("x"),
		"environment BATON_TAIL_MESSAGES: 'tail_messages' must be from 1");
	unsetenv("BATON_TAIL_MESSAGES");
	file_refused(state, "role: lead\ncontext:\n  snipp: true\n", "config.yaml:3: unknown");
	file_refused(state, "context:\n  snipp: true\n", "did you mean 'snip'?");
	file_refused(state, "context:\n  tail_messages: true\n", ":2: a number is expected");
	file_refused(state, "context:\n  snip: [true]\n", ":2: true or false is expected");
	file_refused(state, "context: [snip]\n", ":1: a mapping is expected");
}

static void test_help_of_a_scope(void **state)
{
	AUTO_BUF struct buf run = BUF_INIT;
	AUTO_BUF struct buf review = BUF_INIT;

	settings_print_options(SCOPE_RUN, &run);
	settings_print_options(SCOPE_REVIEW, &review);
	assert_non_null(strstr(buf_str(&run), "--dirty"));
	assert_null(strstr(buf_str(&run), "--sarif"));
	assert_non_null(strstr(buf_str(&review), "--sarif FILE"));
	assert_non_null(strstr(buf_str(&review), "(critical|high|medium|low|info)"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(test_forms_of_options),
		rig_test(test_paths_become_absolute),
		rig_test(test_wrong_command_lines),
		rig_test(test_help_needs_no_readable_configuration),
		rig_test(test_units),
		rig_test(test_what_is_unset),
		rig_test(test_wrong_values),
		rig_test(test_option_table),
		rig_test(test_strength_of_layers),
		rig_test(test_flags_and_numbers_of_layers),
		rig_test(test_projects_only_lower_limits),
		rig_test(test_lists_are_merged),
		rig_test(test_environment_is_checked),
		rig_test(test_wrong_files),
		rig_test(test_project_files_may_not),
		rig_test(test_setup_needs_trust),
		rig_test(test_trust_is_for_one_file),
		rig_test(test_effective_values),
		rig_test(test_help_of_a_scope),
		rig_test(test_knobs_in_all_layers),
		rig_test(test_a_role_stands_between_files_and_environment),
		rig_test(test_w4_variables),
		rig_test(test_old_names_of_knobs),
		rig_test(test_wrong_knobs),
	};
	return cmocka_run_group_tests_name("orchestrator/settings", tests, NULL, NULL);
}
