/*
 * instructions.c - finds, bounds and shows instructions; knows which stand in the view.
 *
 * A folder is looked into once per epoch, and the list of rules is read once per epoch, both at the first
 * access that asks for them: a repository without nested files costs two failed opens per folder. What the
 * view holds is found out from its blocks when an epoch has ended, by the first line that was put there:
 * whichever rung rewrote the view, nothing is shown twice and nothing is missed.
 */
#include "agent/instructions.h"

#include <stdlib.h>

#include "agent/instruction_rules.h"
#include "agent/tools/files.h"
#include "base/memory.h"
#include "base/text.h"

#define FILE_MAX   (256 << 10)
#define ROOT_MAX   (64 << 10) /* as the start document has it */
#define LEAST_ROOM 200	      /* tokens: less is no room for instructions */
#define ROOM_BYTES 3	      /* bytes a token, on the safe side */
#define WARN_LINES 5

static const char *const names[] = {"AGENTS.md", "CLAUDE.md"};

const char *instructions_why_name(enum instructions_why why)
{
	static const char *const list[] = {
		[INSTRUCTIONS_START] = "start",
		[INSTRUCTIONS_NESTED] = "nested",
		[INSTRUCTIONS_RULE] = "rule",
		[INSTRUCTIONS_COMPACTION] = "compact",
	};

	return list[why];
}

/* ---- what is known ---- */

/* A user's file has the name of the project's: the origin tells them apart. */
static struct instruction_file *file_of(struct instructions *in, const char *path,
					const char *origin)
{
	for (size_t i = 0; i < in->n_files; i++)
		if (strcmp(in->files[i].path, path) == 0 &&
		    strcmp(in->files[i].origin, origin) == 0)
			return &in->files[i];
	MEM_GROW(in->files, in->cap_files, in->n_files + 1);
	struct instruction_file *f = &in->files[in->n_files++];
	*f = (struct instruction_file){
		.path = mem_strdup(path), .origin = mem_strdup(origin), .text = mem_strdup("")};
	return f;
}

struct load {
	const char *path, *origin, *file;
	enum instructions_why why;
	const char *text;
	size_t n;
};

static void note_load(struct instructions *in, const struct load *load)
{
	struct instruction_file *f = file_of(in, load->path, load->origin);

	free(f->text);
	f->text = mem_strndup(load->text, load->n);
	f->in_view = true;
	MEM_GROW(in->loads, in->cap_loads, in->n_loads + 1);
	in->loads[in->n_loads++] = (struct instructions_load){
		.path = mem_strdup(load->path),
		.origin = mem_strdup(load->origin),
		.why = load->why,
		.file = mem_strdup(load->file),
		.bytes = load->n,
	};
}

void instructions_init(struct instructions *in, const struct agent_settings *settings)
{
	*in = (struct instructions){.settings = settings};
	for (size_t i = 0; i < settings->n_instructions; i++) {
		const struct start_instructions *s = &settings->instructions[i];
		struct load load = {.path = s->path,
				    .origin = s->origin,
				    .why = INSTRUCTIONS_START,
				    .text = s->text,
				    .n = strlen(s->text)};

		note_load(in, &load);
	}
}

/* What belongs to one epoch. */
static void forget_epoch(struct instructions *in)
{
	for (size_t i = 0; i < in->n_folders; i++)
		free(in->folders[i]);
	free(in->folders);
	in->folders = NULL;
	in->n_folders = in->cap_folders = 0;
	instruction_rules_free(in->rules, in->n_rules);
	in->rules = NULL;
	in->n_rules = 0;
	in->rules_read = false;
}

void instructions_release(struct instructions *in)
{
	forget_epoch(in);
	for (size_t i = 0; i < in->n_files; i++) {
		free(in->files[i].path);
		free(in->files[i].origin);
		free(in->files[i].text);
	}
	for (size_t i = 0; i < in->n_loads; i++) {
		free(in->loads[i].path);
		free(in->loads[i].origin);
		free(in->loads[i].file);
	}
	free(in->files);
	free(in->loads);
	*in = (struct instructions){.settings = NULL};
}

const struct instructions_load *instructions_loads(const struct instructions *in, size_t *ret_n)
{
	*ret_n = in->n_loads;
	return in->loads;
}

const char **instructions_texts(const struct instructions *in, size_t *ret_n)
{
	size_t n = in->settings ? in->settings->n_instructions : 0;
	const char **list = mem_array(NULL, n + in->n_files + 1, sizeof(*list));

	for (size_t i = 0; i < n; i++)
		list[i] = in->settings->instructions[i].text;
	for (size_t i = 0; i < in->n_files; i++)
		list[n++] = in->files[i].text;
	*ret_n = n;
	return list;
}

/* ---- what the view holds ---- */

static void write_title(struct buf *out, const char *path, const char *origin)
{
	buf_adds(out, "Instructions from ");
	text_printable(out, path, strlen(path), true);
	buf_addf(out, " (%s", origin);
}

static bool is_in(const struct view *view, const struct instruction_file *f)
{
	AUTO_BUF struct buf title = BUF_INIT;

	write_title(&title, f->path, f->origin);
	for (size_t i = 0; i < view->n; i++) {
		const struct message *m = view->list[i];

		for (size_t k = 0; k < m->n_blocks; k++)
			if (m->blocks[k].origin == ORIGIN_INSTRUCTIONS &&
			    text_starts(m->blocks[k].text, buf_str(&title)))
				return true;
	}
	return false;
}

static void follow_epoch(struct instructions *in, const struct view *view)
{
	if (in->epoch == view->epoch)
		return;
	in->epoch = view->epoch;
	forget_epoch(in);
	for (size_t i = 0; i < in->n_files; i++)
		in->files[i].in_view = is_in(view, &in->files[i]);
}

/* ---- one file ---- */

struct adding {
	struct instructions *in;
	const struct instructions_round *round;
	struct message *m;
	int64_t room;
	int added;
	bool full; /* something did not fit: the rest waits */
};

static void warn_of(struct buf *warnings, const struct err *e)
{
	if (warnings && text_count_lines(buf_str(warnings), warnings->len) < WARN_LINES)
		buf_addf(warnings, "instructions are not loaded: %s\n", e->message);
}

/* Bounded by its own limit and by the room, decided before anything is appended. */
static bool put_block(struct adding *add, const struct load *load, const char *scope)
{
	size_t budget = MIN((size_t)INSTRUCTIONS_BYTES, (size_t)add->room * ROOM_BYTES);
	AUTO_BUF struct buf clean = BUF_INIT;
	AUTO_BUF struct buf text = BUF_INIT;

	if (add->added >= INSTRUCTIONS_ROUND || add->room < LEAST_ROOM) {
		add->full = true;
		return false;
	}
	text_sanitize(&clean, load->text, load->n);
	write_title(&text, load->path, load->origin);
	buf_addf(&text, "; %s):\n\n", scope);
	text_clip(&text, buf_str(&clean), clean.len, budget, load->path);
	message_add_text(add->m, ORIGIN_INSTRUCTIONS, text.data, text.len);
	add->room -= ledger_estimate_text(add->round->ledger, buf_str(&text), text.len);
	add->added++;
	note_load(add->in, load);
	return true;
}

/* The folder's file, if it has one that is not in the view. */
static void add_folder(struct adding *add, const char *folder, const char *file)
{
	for (size_t i = 0; i < ARRAY_SIZE(names) && !add->full; i++) {
		AUTO_FREE char *path = mem_printf("%s%s%s", folder, *folder ? "/" : "", names[i]);
		AUTO_FREE char *real = NULL;
		AUTO_BUF struct buf text = BUF_INIT;
		AUTO_BUF struct buf scope = BUF_INIT;
		struct err e = ERR_INIT;

		if (files_read(add->round->files, path, FILE_MAX, &text, &real, &e) < 0) {
			if (e.code != ERR_NOT_FOUND)
				warn_of(add->round->warnings, &e);
			continue;
		}
		struct load load = {.path = real,
				    .origin = "project",
				    .file = file,
				    .why = INSTRUCTIONS_NESTED,
				    .text = buf_str(&text),
				    .n = text.len};
		buf_adds(&scope, "for files below ");
		text_printable(&scope, *folder ? folder : ".", strlen(*folder ? folder : "."),
			       true);
		if (!file_of(add->in, real, load.origin)->in_view)
			put_block(add, &load, buf_str(&scope));
		return;
	}
}

static bool was_looked_into(const struct instructions *in, const char *folder)
{
	for (size_t i = 0; i < in->n_folders; i++)
		if (strcmp(in->folders[i], folder) == 0)
			return true;
	return false;
}

/* A folder counts as looked into only when what it has is in. */
static void look_into(struct adding *add, const char *folder, const char *file)
{
	struct instructions *in = add->in;

	if (add->full || was_looked_into(in, folder))
		return;
	add_folder(add, folder, file);
	if (add->full)
		return;
	MEM_GROW(in->folders, in->cap_folders, in->n_folders + 1);
	in->folders[in->n_folders++] = mem_strdup(folder);
}

/* The opening has the root's file, unless there was none then. */
static bool root_is_known(const struct instructions *in)
{
	for (size_t i = 0; i < in->settings->n_instructions; i++)
		if (strcmp(in->settings->instructions[i].origin, "project") == 0)
			return true;
	return false;
}

static void add_nested(struct adding *add, const char *file)
{
	AUTO_FREE char *folder = mem_strdup(file);

	if (!root_is_known(add->in))
		look_into(add, "", file);
	for (char *slash = strchr(folder, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		look_into(add, folder, file);
		*slash = '/';
	}
}

static void add_rules(struct adding *add, const char *file)
{
	struct instructions *in = add->in;

	if (!in->rules_read)
		instruction_rules_read(add->round->files, &in->rules, &in->n_rules,
				       add->round->warnings);
	in->rules_read = true;
	for (size_t i = 0; i < in->n_rules && !add->full; i++) {
		const struct instruction_rule *rule = &in->rules[i];
		AUTO_BUF struct buf scope = BUF_INIT;
		struct load load = {.path = rule->path,
				    .origin = "project",
				    .file = file,
				    .why = INSTRUCTIONS_RULE,
				    .text = rule->text,
				    .n = rule->n};

		if (file_of(in, rule->path, load.origin)->in_view ||
		    !instruction_rule_matches(rule, file))
			continue;
		buf_adds(&scope, rule->shown ? "for files that match " : "for all files");
		if (rule->shown)
			text_printable(&scope, rule->shown, strlen(rule->shown), true);
		put_block(add, &load, buf_str(&scope));
	}
}

void instructions_add(struct instructions *in, const struct instructions_round *round,
		      struct message *m)
{
	struct adding add = {.in = in, .round = round, .m = m, .room = round->room};
	AUTO_FREE struct file_look *looks = NULL;

	if (!round->files || files_clock(round->files) == in->clock)
		return;
	follow_epoch(in, round->view);
	size_t n = files_looked_at(round->files, in->clock, &looks);
	for (size_t i = 0; i < n; i++) {
		if (looks[i].in_tree) {
			add_nested(&add, looks[i].path);
			add_rules(&add, looks[i].path);
		}
		if (add.full)
			return;
		in->clock = looks[i].access;
	}
}

/* ---- the head after a compaction ---- */

struct head {
	struct instructions *in;
	struct tool_context *files;
	bool opening_stays;
	struct message *m;
	struct buf *warnings;
};

static bool is_known(const struct head *head, const struct load *load)
{
	const struct instruction_file *f = file_of(head->in, load->path, load->origin);

	return head->opening_stays && strlen(f->text) == load->n &&
	       memcmp(f->text, load->text, load->n) == 0;
}

static void put_head(struct head *head, const struct load *load, const char *note)
{
	AUTO_BUF struct buf text = BUF_INIT;

	if (is_known(head, load))
		return;
	/* The form of conversation_opening: unchanged files give the bytes of the opening. */
	write_title(&text, load->path, load->origin);
	buf_addf(&text, "%s):\n\n", note);
	buf_add(&text, load->text, load->n);
	message_add_text(head->m, ORIGIN_INSTRUCTIONS, text.data, text.len);
	note_load(head->in, load);
}

/* As the start document has it: clipped and valid. */
static int read_root(struct tool_context *files, const char *path, struct buf *out, struct err *err)
{
	AUTO_BUF struct buf raw = BUF_INIT;
	AUTO_BUF struct buf clipped = BUF_INIT;
	AUTO_FREE char *real = NULL;

	if (!files)
		return err_set(err, ERR_UNSUPPORTED, "no file was opened yet");
	if (files_read(files, path, FILE_MAX, &raw, &real, err) < 0)
		return -1;
	text_clip(&clipped, buf_str(&raw), raw.len, ROOT_MAX, path);
	text_sanitize(out, buf_str(&clipped), clipped.len);
	return 0;
}

static void again_project(struct head *head, const struct start_instructions *was)
{
	AUTO_BUF struct buf now = BUF_INIT;
	struct err e = ERR_INIT;
	struct load load = {.path = was->path,
			    .origin = was->origin,
			    .why = INSTRUCTIONS_COMPACTION,
			    .text = was->text,
			    .n = strlen(was->text)};
	const char *note = "";

	if (read_root(head->files, was->path, &now, &e) == 0) {
		bool same = now.len == load.n && memcmp(buf_str(&now), was->text, load.n) == 0;

		note = same ? "" : "; the text is not the one that stood here at the start";
		load.text = buf_str(&now);
		load.n = now.len;
	} else if (e.code == ERR_NOT_FOUND) {
		note = "; the file is gone from the worktree, this is its text of the start";
	} else if (e.code != ERR_UNSUPPORTED) {
		note = "; the file cannot be read now, this is its text of the start";
		warn_of(head->warnings, &e);
	}
	put_head(head, &load, note);
}

/* A file that was written since. */
static void add_new_root(struct head *head)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		AUTO_BUF struct buf text = BUF_INIT;
		struct load load = {
			.path = names[i], .origin = "project", .why = INSTRUCTIONS_COMPACTION};

		if (read_root(head->files, names[i], &text, NULL) < 0)
			continue;
		load.text = buf_str(&text);
		load.n = text.len;
		put_head(head, &load, "; new since the start");
		return;
	}
}

void instructions_add_head(struct instructions *in, struct tool_context *files, bool opening_stays,
			   struct message *m, struct buf *warnings)
{
	struct head head = {in, files, opening_stays, m, warnings};

	for (size_t i = 0; i < in->settings->n_instructions; i++) {
		const struct start_instructions *was = &in->settings->instructions[i];
		struct load load = {.path = was->path,
				    .origin = was->origin,
				    .why = INSTRUCTIONS_COMPACTION,
				    .text = was->text,
				    .n = strlen(was->text)};

		if (strcmp(was->origin, "project") == 0)
			again_project(&head, was);
		else
			put_head(&head, &load, "");
	}
	if (!root_is_known(in))
		add_new_root(&head);
}
