/*
 * image.c - see image.h.
 *
 * A node is a file or folder by device, inode number and time of birth (numbers are used again). What it durably holds
 * is kept in memory: the bytes, or the names. What it holds now is on the disk until the cut, for the machine that is
 * "cut off" goes on; so the walk at the cut finds it under the name that it has by then.
 */
#include "tests/faults/image.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/memory.h"

enum { MOST_BYTES = 64 << 20, MOST_DEPTH = 60, BLOCK = 512 };

struct node;

struct entry {
	char *name;
	struct node *node; /* NULL: a symbolic link */
	char *text;	   /* its text */
};

struct names {
	struct entry *list;
	size_t n, cap;
};

struct node {
	uint64_t ino, born;
	uint32_t dev_minor;
	mode_t mode;
	struct timespec changed;
	struct buf bytes;   /* durable; of a file */
	struct names names; /* durable; of a folder */
	struct buf asked;   /* between entry and exit of a sync: what it will have made durable */
	char *live;	    /* at the cut: where it is now */
};

struct image {
	struct node **nodes;
	size_t n, cap;
	struct node **folders;
	char **paths;
	size_t n_folders;
};

static const char *const names_names[IMAGE_NAMES] = {"synced", "all", "mixed"};

const char *image_names_name(enum image_names names)
{
	return names < IMAGE_NAMES ? names_names[names] : "?";
}

bool image_names_named(const char *name, enum image_names *ret)
{
	for (unsigned i = 0; i < IMAGE_NAMES; i++) {
		if (strcmp(names_names[i], name) == 0) {
			*ret = i;
			return true;
		}
	}
	return false;
}

/* --- nodes --- */

static void names_release(struct names *names)
{
	for (size_t i = 0; i < names->n; i++) {
		free(names->list[i].name);
		free(names->list[i].text);
	}
	free(names->list);
	*names = (struct names){0};
}

/* The node of what stands at a path below a folder ("" : the descriptor itself); NULL if it is gone or neither file nor
 * folder. */
static struct node *node_at(struct image *image, int dir, const char *path)
{
	struct statx st;

	if (statx(dir, path, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS | STATX_BTIME,
		  &st) < 0 ||
	    (!S_ISREG(st.stx_mode) && !S_ISDIR(st.stx_mode)))
		return NULL;
	uint64_t born = (uint64_t)st.stx_btime.tv_sec * 1000000000 + st.stx_btime.tv_nsec;
	struct node *node = NULL;
	for (size_t i = 0; i < image->n && !node; i++)
		if (image->nodes[i]->ino == st.stx_ino && image->nodes[i]->born == born &&
		    image->nodes[i]->dev_minor == st.stx_dev_minor)
			node = image->nodes[i];
	if (!node) {
		node = mem_alloc(sizeof(*node));
		node->ino = st.stx_ino;
		node->born = born;
		node->dev_minor = st.stx_dev_minor;
		MEM_GROW(image->nodes, image->cap, image->n + 1);
		image->nodes[image->n++] = node;
	}
	node->mode = st.stx_mode;
	node->changed = (struct timespec){st.stx_mtime.tv_sec, st.stx_mtime.tv_nsec};
	return node;
}

/* The names of a folder as they are now. */
static void read_names(struct image *image, int fd, struct names *out)
{
	int again = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = again < 0 ? NULL : fdopendir(again);
	struct dirent *d;

	while (dir && (d = readdir(dir))) {
		char text[PATH_MAX];
		if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
			continue;
		ssize_t n = readlinkat(again, d->d_name, text, sizeof(text) - 1);
		struct node *node = n < 0 ? node_at(image, again, d->d_name) : NULL;
		if (n < 0 && !node)
			continue;
		MEM_GROW(out->list, out->cap, out->n + 1);
		out->list[out->n++] = (struct entry){mem_strdup(d->d_name), node,
						     n < 0 ? NULL : mem_strndup(text, (size_t)n)};
	}
	if (dir)
		closedir(dir);
}

static void read_bytes(int fd, struct buf *out)
{
	char path[64];

	buf_clear(out);
	out->max = MOST_BYTES;
	/* Its own descriptor may be for writing only, and its offset is not ours to move. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	file_read(AT_FDCWD, path, MOST_BYTES, out, NULL);
}

static void sync_folder(struct image *image, struct node *node, int fd)
{
	names_release(&node->names);
	read_names(image, fd, &node->names);
}

/* What every folder and file below holds is durable. */
static void sync_tree(struct image *image, struct node *node, int fd, unsigned depth)
{
	sync_folder(image, node, fd);
	for (size_t i = 0; i < node->names.n && depth < MOST_DEPTH; i++) {
		struct entry *e = &node->names.list[i];
		if (!e->node)
			continue;
		AUTO_FD int below = openat(fd, e->name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
		if (below >= 0 && S_ISDIR(e->node->mode))
			sync_tree(image, e->node, below, depth + 1);
		else if (below >= 0)
			read_bytes(below, &e->node->bytes);
	}
}

static void sync_all(struct image *image)
{
	for (size_t i = 0; i < image->n_folders; i++) {
		AUTO_FD int fd = open(image->paths[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd >= 0)
			sync_tree(image, image->folders[i], fd, 0);
	}
}

/* --- life --- */

struct image *image_start(const char *const folders[], size_t n, struct err *err)
{
	struct image *image = mem_alloc(sizeof(*image));

	for (size_t i = 0; i < n; i++) {
		struct node *node = node_at(image, AT_FDCWD, folders[i]);
		if (!node) {
			err_sys(err, "cannot look at '%s'", folders[i]);
			image_free(image);
			return NULL;
		}
		image->folders = mem_array(image->folders, i + 1, sizeof(*image->folders));
		image->paths = mem_array(image->paths, i + 1, sizeof(*image->paths));
		image->folders[i] = node;
		image->paths[i] = mem_strdup(folders[i]);
		image->n_folders = i + 1;
	}
	sync_all(image);
	return image;
}

void image_free(struct image *image)
{
	if (!image)
		return;
	for (size_t i = 0; i < image->n; i++) {
		struct node *node = image->nodes[i];
		buf_release(&node->bytes);
		buf_release(&node->asked);
		names_release(&node->names);
		free(node->live);
		free(node);
	}
	for (size_t i = 0; i < image->n_folders; i++)
		free(image->paths[i]);
	free(image->nodes);
	free(image->folders);
	free(image->paths);
	free(image);
}

/* --- observing --- */

/* A file's bytes are read before the call: what is written while it is under way has no promise. */
static void on_sync(struct image *image, const struct trace_event *e)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", e->pid, e->fd);
	AUTO_FD int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	struct node *node = fd < 0 ? NULL : node_at(image, fd, "");
	if (!node)
		return;
	if (S_ISDIR(node->mode)) {
		if (!e->entry && e->result == 0)
			sync_folder(image, node, fd);
	} else if (e->entry) {
		read_bytes(fd, &node->asked);
	} else if (e->result == 0) {
		struct buf before = node->bytes;
		node->bytes = node->asked;
		node->asked = before;
	}
}

static int on_event(void *arg, const struct trace_event *e)
{
	struct image *image = arg;

	if (e->op != TRACE_FSYNC)
		return TRACE_GO;
	if (strcmp(e->call, "syncfs") != 0)
		on_sync(image, e);
	else if (!e->entry && e->result == 0)
		sync_all(image);
	return TRACE_GO;
}

struct trace_observer image_observer(struct image *image)
{
	return (struct trace_observer){
		.arg = image, .event = on_event, .exits = true, .tools = true};
}

/* --- the cut --- */

struct cut {
	struct image *image;
	enum image_names names;
	uint64_t seed;
};

/* splitmix64; of the seed and the place, so that one file's luck does not hang on another's. */
static uint64_t next_random(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15U);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
	return z ^ (z >> 31);
}

static uint64_t luck_of(uint64_t seed, const char *path)
{
	uint64_t state = seed;

	for (const char *p = path; *p; p++)
		state = state * 31 + (unsigned char)*p;
	next_random(&state);
	return state;
}

/* What was appended: nothing of it, all, some, or some and then a length for which the bytes did not come. */
static void add_tail(const char *tail, size_t n, uint64_t *luck, struct buf *out)
{
	uint64_t how = next_random(luck) % 4;
	size_t some = next_random(luck) % (n + 1);

	if (how == 1)
		some = n;
	if (how == 0)
		return;
	buf_add(out, tail, some);
	if (how == 3)
		for (size_t more = next_random(luck) % (n - some + 1); more; more--)
			buf_addc(out, '\0');
}

/* Written over or cut shorter: the length of before or of now, and each block as it was or is. */
static void mix_blocks(const struct buf *was, const struct buf *is, uint64_t *luck, struct buf *out)
{
	size_t len = next_random(luck) % 2 ? was->len : is->len;

	for (size_t at = 0; at < len; at += BLOCK) {
		const struct buf *from = next_random(luck) % 2 ? was : is;
		size_t n = MIN((size_t)BLOCK, len - at);
		size_t have = at < from->len ? MIN(n, from->len - at) : 0;
		if (have)
			buf_add(out, from->data + at, have);
		for (size_t i = have; i < n; i++)
			buf_addc(out, '\0');
	}
}

static void mix(const struct buf *was, const struct buf *is, uint64_t *luck, struct buf *out)
{
	if (is->len >= was->len && (!was->len || memcmp(is->data, was->data, was->len) == 0)) {
		buf_add(out, was->data, was->len);
		if (is->len > was->len)
			add_tail(is->data + was->len, is->len - was->len, luck, out);
	} else {
		mix_blocks(was, is, luck, out);
	}
}

static int put_file(const struct cut *cut, const struct node *node, const char *inner,
		    const char *target, struct err *err)
{
	struct buf now = BUF_INIT, out = BUF_INIT;
	uint64_t luck = luck_of(cut->seed, inner);
	int status = -1;

	if (!node->live || file_read(AT_FDCWD, node->live, MOST_BYTES, &now, err) < 0)
		buf_add(&now, node->bytes.data, node->bytes.len);
	mix(&node->bytes, &now, &luck, &out);
	AUTO_FD int fd = open(target, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	struct timespec times[2] = {node->changed, node->changed};
	if (fd < 0 || fchmod(fd, node->mode & 07777) < 0)
		err_sys(err, "cannot make '%s'", target);
	else if (file_write_all(fd, out.data, out.len, err) == 0 && futimens(fd, times) == 0)
		status = 0;
	buf_release(&now);
	buf_release(&out);
	return status;
}

/* Where each node is now. */
static void find_live(struct image *image, const char *folder, unsigned depth)
{
	AUTO_FD int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct names now = {0};

	if (fd < 0 || depth > MOST_DEPTH)
		return;
	read_names(image, fd, &now);
	for (size_t i = 0; i < now.n; i++) {
		struct node *node = now.list[i].node;
		if (!node)
			continue;
		free(node->live);
		node->live = file_join(folder, now.list[i].name);
		if (S_ISDIR(node->mode))
			find_live(image, node->live, depth + 1);
	}
	names_release(&now);
}

static bool takes_live(const struct cut *cut, const char *inner)
{
	uint64_t luck = luck_of(cut->seed ^ 1, inner);

	return cut->names == IMAGE_ALL ||
	       (cut->names == IMAGE_MIXED && next_random(&luck) % 2 == 1);
}

static int put_folder(const struct cut *cut, struct node *node, const char *inner,
		      const char *target, unsigned depth, struct err *err);

static int put_entry(const struct cut *cut, const struct entry *e, const char *inner,
		     const char *target, unsigned depth, struct err *err)
{
	AUTO_FREE char *path = file_join(target, e->name);
	AUTO_FREE char *name = mem_printf("%s/%s", inner, e->name);

	if (!e->node)
		return symlink(e->text, path) < 0 ? err_sys(err, "cannot link '%s'", path) : 0;
	if (S_ISDIR(e->node->mode))
		return put_folder(cut, e->node, name, path, depth + 1, err);
	return put_file(cut, e->node, name, path, err);
}

static int put_folder(const struct cut *cut, struct node *node, const char *inner,
		      const char *target, unsigned depth, struct err *err)
{
	struct names now = {0};
	const struct names *names = &node->names;
	int status = 0;

	if (depth > MOST_DEPTH)
		return err_set(err, ERR_INVALID, "'%s': a folder in itself", target);
	if (mkdir(target, 0700) < 0)
		return err_sys(err, "cannot make '%s'", target);
	if (node->live && takes_live(cut, inner)) {
		AUTO_FD int fd = open(node->live, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd >= 0)
			read_names(cut->image, fd, &now);
		names = &now;
	}
	for (size_t i = 0; i < names->n && status == 0; i++)
		status = put_entry(cut, &names->list[i], inner, target, depth, err);
	names_release(&now);
	if (status == 0 && chmod(target, node->mode & 07777) < 0)
		status = err_sys(err, "cannot set the mode of '%s'", target);
	return status;
}

int image_cut(struct image *image, size_t which, enum image_names names, uint64_t seed,
	      const char *target, struct err *err)
{
	struct cut cut = {.image = image, .names = names, .seed = seed};

	for (size_t i = 0; i < image->n; i++) {
		free(image->nodes[i]->live);
		image->nodes[i]->live = NULL;
	}
	for (size_t i = 0; i < image->n_folders; i++) {
		image->folders[i]->live = mem_strdup(image->paths[i]);
		find_live(image, image->paths[i], 0);
	}
	return put_folder(&cut, image->folders[which], "", target, 0, err);
}
