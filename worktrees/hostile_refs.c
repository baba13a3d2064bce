/*
 * hostile_refs.c - refs of a private repository, parsed as hostile data.
 *
 * Only what git itself writes is understood: loose files "OID\n" or "ref: NAME\n" and packed-refs.
 * Numbers of refs, depth and sizes are bounded; whatever is odd is an error, which callers treat as
 * "keep the worktree", never as "nothing there" (trap 118).
 */
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>

#include "base/memory.h"
#include "base/text.h"
#include "worktrees/hostile.h"

#define REF_FILE_MAX  4096
#define PACKED_MAX    ((size_t)64 << 20)
#define REFLOG_MAX    ((size_t)1 << 20)
#define REF_DEPTH_MAX 12
#define REFS_MAX      20000

static bool ref_name_valid(const char *name)
{
	if (!text_starts(name, "refs/") || strstr(name, "..") || strstr(name, "//") ||
	    strlen(name) > 1000)
		return false;
	for (const unsigned char *p = (const unsigned char *)name; *p; p++) {
		if (*p <= 32 || *p == 127 || strchr("~^:?*[\\", *p))
			return false;
	}
	return true;
}

/* One line of a file, without its end. */
static char *first_line(const struct buf *text)
{
	size_t n = strcspn(buf_str(text), "\r\n");

	return mem_strndup(buf_str(text), n);
}

static int packed_ref(const char *git_dir, const char *ref, size_t hex, char ret_oid[OID_MAX],
		      struct err *err)
{
	AUTO_BUF struct buf text = BUF_INIT;
	struct err ignored = ERR_INIT;
	size_t want = strlen(ref);

	if (hostile_read(git_dir, "packed-refs", PACKED_MAX, &text, &ignored) < 0) {
		if (ignored.code == ERR_NOT_FOUND)
			return err_set(err, ERR_NOT_FOUND, "the ref '%s' does not exist", ref);
		*err = ignored;
		return -1;
	}
	const char *line = buf_str(&text), *end = line + text.len;
	while (line < end) {
		const char *stop = memchr(line, '\n', (size_t)(end - line));
		size_t n = (size_t)((stop ? stop : end) - line);

		if (n == hex + 1 + want && memcmp(line + hex + 1, ref, want) == 0) {
			memcpy(ret_oid, line, hex);
			ret_oid[hex] = '\0';
			return oid_valid(ret_oid, hex)
				       ? 0
				       : err_set(err, ERR_INVALID, "packed-refs is damaged");
		}
		line += n + 1;
	}
	return err_set(err, ERR_NOT_FOUND, "the ref '%s' does not exist", ref);
}

/* Reads a loose ref: *ret_target (caller frees) for a symbolic one, else ret_oid. */
static int loose_ref(const char *git_dir, const char *ref, size_t hex, char **ret_target,
		     char ret_oid[OID_MAX], struct err *err)
{
	AUTO_BUF struct buf text = BUF_INIT;

	if (hostile_read(git_dir, ref, REF_FILE_MAX, &text, err) < 0)
		return -1;
	AUTO_FREE char *line = first_line(&text);
	if (text_starts(line, "ref:")) {
		const char *name = line + 4 + strspn(line + 4, " \t");

		if (!ref_name_valid(name))
			return err_set(err, ERR_INVALID, "'%s' names no valid ref", ref);
		*ret_target = mem_strdup(name);
		return 0;
	}
	if (!oid_valid(line, hex))
		return err_set(err, ERR_INVALID, "'%s' holds no object id", ref);
	memcpy(ret_oid, line, hex + 1);
	return 0;
}

int hostile_ref(const char *git_dir, const char *ref, size_t hex, char ret_oid[OID_MAX],
		struct err *err)
{
	AUTO_FREE char *name = mem_strdup(ref);

	for (int hops = 0; hops < 5; hops++) {
		struct err why = ERR_INIT;
		char *target = NULL;

		if (loose_ref(git_dir, name, hex, &target, ret_oid, &why) < 0) {
			/* A folder of that name is no loose ref either (refs/heads/x/...). */
			if (why.code == ERR_NOT_FOUND)
				return packed_ref(git_dir, name, hex, ret_oid, err);
			if (err)
				*err = why;
			return -1;
		}
		if (!target)
			return 0;
		free(name);
		name = target;
	}
	return err_set(err, ERR_INVALID, "'%s' is a chain of symbolic refs", ref);
}

int hostile_head(const char *git_dir, size_t hex, char **ret_ref, char ret_oid[OID_MAX],
		 struct err *err)
{
	*ret_ref = NULL;
	if (loose_ref(git_dir, "HEAD", hex, ret_ref, ret_oid, err) < 0)
		return -1;
	return *ret_ref ? hostile_ref(git_dir, *ret_ref, hex, ret_oid, err) : 0;
}

const char *hostile_in_progress(const char *git_dir)
{
	static const struct {
		const char *file, *what;
	} marks[] = {
		{"rebase-merge", "rebase"},	   {"rebase-apply", "rebase"},
		{"MERGE_HEAD", "merge"},	   {"CHERRY_PICK_HEAD", "cherry-pick"},
		{"REVERT_HEAD", "revert"},	   {"BISECT_LOG", "bisect"},
		{"sequencer/todo", "cherry-pick"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(marks); i++) {
		if (hostile_exists(git_dir, marks[i].file))
			return marks[i].what;
	}
	return NULL;
}

struct tips {
	const char *git_dir;
	size_t hex;
	struct buf *out;
	size_t count;
};

static int tips_add(struct tips *tips, const char *oid, struct err *err)
{
	if (++tips->count > REFS_MAX)
		return err_set(err, ERR_TOO_LARGE, "more than %d refs in '%s'", REFS_MAX,
			       tips->git_dir);
	buf_addf(tips->out, "%.*s\n", (int)tips->hex, oid);
	return 0;
}

static int tips_walk(struct tips *tips, const char *rel, int depth, struct err *err);

static int tips_visit(struct tips *tips, const char *rel, int depth, struct err *err)
{
	AUTO_FREE char *target = NULL;
	char oid[OID_MAX];
	struct err why = ERR_INIT;

	int dir = hostile_open_dir(tips->git_dir, rel, NULL);
	if (dir >= 0) {
		close(dir);
		return tips_walk(tips, rel, depth + 1, err);
	}
	if (text_ends(rel, ".lock"))
		return 0; /* a killed git leaves these */
	if (loose_ref(tips->git_dir, rel, tips->hex, &target, oid, &why) < 0) {
		*err = why;
		return -1;
	}
	return target ? 0 : tips_add(tips, oid, err);
}

static int tips_walk(struct tips *tips, const char *rel, int depth, struct err *err)
{
	int fd = hostile_open_dir(tips->git_dir, rel, err);

	if (fd < 0)
		return -1;
	DIR *dir = fdopendir(fd);
	int result = depth > REF_DEPTH_MAX
			     ? err_set(err, ERR_TOO_LARGE, "refs nest too deeply in '%s'", rel)
			     : 0;
	struct dirent *item;
	while (result == 0 && (item = readdir(dir)) != NULL) {
		if (item->d_name[0] == '.')
			continue;
		AUTO_FREE char *child = mem_printf("%s/%s", rel, item->d_name);
		result = tips_visit(tips, child, depth, err);
	}
	closedir(dir);
	return result;
}

/* Adds the object ids that stand at `offset` of each line. */
static int tips_lines(struct tips *tips, const char *file, size_t max, size_t offset,
		      struct err *err)
{
	AUTO_BUF struct buf text = BUF_INIT;
	struct err why = ERR_INIT;
	char oid[OID_MAX];

	if (hostile_read(tips->git_dir, file, max, &text, &why) < 0) {
		if (why.code == ERR_NOT_FOUND)
			return 0;
		*err = why;
		return -1;
	}
	const char *line = buf_str(&text), *end = line + text.len;
	while (line < end) {
		const char *stop = memchr(line, '\n', (size_t)(end - line));
		size_t n = (size_t)((stop ? stop : end) - line);

		if (n >= offset + tips->hex && isxdigit((unsigned char)line[0])) {
			memcpy(oid, line + offset, tips->hex);
			oid[tips->hex] = '\0';
			if (oid_valid(oid, tips->hex) && tips_add(tips, oid, err) < 0)
				return -1;
		}
		line += n + 1;
	}
	return 0;
}

int hostile_tips(const char *git_dir, size_t hex, struct buf *out, struct err *err)
{
	static const char *const heads[] = {"HEAD",
					    "MERGE_HEAD",
					    "CHERRY_PICK_HEAD",
					    "REVERT_HEAD",
					    "ORIG_HEAD",
					    "rebase-merge/orig-head",
					    "rebase-apply/orig-head"};
	struct tips tips = {.git_dir = git_dir, .hex = hex, .out = out};

	for (size_t i = 0; i < ARRAY_SIZE(heads); i++) {
		if (tips_lines(&tips, heads[i], REF_FILE_MAX, 0, err) < 0)
			return -1;
	}
	if (tips_walk(&tips, "refs", 0, err) < 0)
		return -1;
	if (tips_lines(&tips, "packed-refs", PACKED_MAX, 0, err) < 0)
		return -1;
	/* All entries of the stash but the newest stand in its reflog only: "OLD NEW who when". */
	return tips_lines(&tips, "logs/refs/stash", REFLOG_MAX, hex + 1, err);
}
