/*
 * call_assembly.c - see call_assembly.h; the numbers in the comments are the rules of wire.md 4.
 */
#include "agent/model/call_assembly.h"

#include "base/memory.h"

void call_assembly_release(struct call_assembly *a)
{
	for (size_t i = 0; i < a->n; i++) {
		free(a->calls[i].id);
		free(a->calls[i].name);
		buf_release(&a->calls[i].arguments);
		json_object_put(a->calls[i].extra);
	}
	free(a->calls);
	*a = (struct call_assembly){.calls = NULL};
}

/* What one fragment says; strings borrowed, NULL for "" too. */
struct fragment {
	int64_t index;
	const char *id, *name;
	struct json_object *arguments;
};

static const char *non_empty(const char *s)
{
	return s && *s ? s : NULL;
}

static struct fragment read_fragment(struct json_object *json)
{
	struct json_object *function = json_obj(json, "function");
	return (struct fragment){
		.index = json_i64(json, "index", -1),
		.id = non_empty(json_str(json, "id", NULL)),
		.name = non_empty(json_str(function, "name", NULL)),
		.arguments = json_get(function, "arguments"),
	};
}

static struct call_part *find_id(struct call_assembly *a, const char *id)
{
	for (size_t i = a->n; i-- > 0;)
		if (a->calls[i].id && strcmp(a->calls[i].id, id) == 0)
			return &a->calls[i];
	return NULL;
}

/* The call that the fragment continues unless it begins a new one; NULL: it can only be new. */
static struct call_part *find_candidate(struct call_assembly *a, const struct fragment *f,
					size_t place, size_t count)
{
	struct call_part *known = f->id ? find_id(a, f->id) : NULL;
	if (a->n == 0)
		return NULL;
	if (f->index >= 0) {
		if (known && known->index == f->index)
			return known;
		for (size_t i = a->n; i-- > 0;)
			if (a->calls[i].index == f->index)
				return &a->calls[i];
		return NULL; /* rule 1: a different index */
	}
	if (known)
		return known;
	if (!f->id && count > 1) { /* rule 2: position in the array */
		for (size_t i = a->n; i-- > 0;)
			if (a->calls[i].place == place)
				return &a->calls[i];
		return NULL;
	}
	return &a->calls[a->current];
}

static bool adds_nothing(const struct fragment *f)
{
	return !f->arguments || (json_object_is_type(f->arguments, json_type_string) &&
				 json_object_get_string_len(f->arguments) == 0);
}

static bool begins_new(struct call_assembly *a, const struct call_part *c, const struct fragment *f)
{
	bool own_id = f->id && c->id && strcmp(f->id, c->id) == 0;
	if (own_id)
		return false;
	/* Rule 1: an unseen id and a name. Without a name it continues an unfinished call (some
	 * proxies make a new id for each fragment), but cannot reopen a finished one. */
	if (f->id && !find_id(a, f->id)) {
		if (f->name)
			return c->id || c->name;
		return c->id && c->scan.complete && !adds_nothing(f);
	}
	if (!f->name || !c->name)
		return false;
	/* Rule 1: a name behind complete arguments; a call has one name only. A server that repeats
	 * the name with nothing else is not calling again. */
	if (strcmp(f->name, c->name) != 0)
		return true;
	return c->scan.complete && !adds_nothing(f);
}

static struct call_part *add_call(struct call_assembly *a, int64_t index, size_t place)
{
	MEM_GROW(a->calls, a->cap, a->n + 1);
	a->calls[a->n] = (struct call_part){.index = index, .place = place};
	return &a->calls[a->n++];
}

/* Some servers give a finished call once more, whole, at the end. */
static bool repeats(const struct call_part *c, const char *text, size_t n)
{
	return c->scan.complete && c->arguments.len == n && memcmp(c->arguments.data, text, n) == 0;
}

/* Rule 3: a string, a whole value, null or nothing. */
static size_t add_arguments(struct call_part *c, struct json_object *arguments)
{
	AUTO_BUF struct buf text = BUF_INIT;
	if (!arguments)
		return 0;
	if (json_object_is_type(arguments, json_type_string))
		buf_add(&text, json_object_get_string(arguments),
			(size_t)json_object_get_string_len(arguments));
	else
		json_write(&text, arguments);
	if (text.len == 0 || repeats(c, text.data, text.len))
		return 0;
	buf_add(&c->arguments, text.data, text.len);
	arguments_scan(&c->scan, text.data, text.len);
	return text.len;
}

static bool is_known_member(const char *key)
{
	return strcmp(key, "id") == 0 || strcmp(key, "index") == 0 || strcmp(key, "type") == 0 ||
	       strcmp(key, "function") == 0;
}

static size_t keep_member(struct json_object *into, const char *key, struct json_object *value)
{
	if (!value)
		return 0;
	json_set(into, key, json_object_get(value));
	return strlen(key) + strlen(json_object_to_json_string(value));
}

/* Rule 6: fields that we do not know go back as they came (trap 50). */
static size_t add_extra(struct call_part *c, struct json_object *fragment)
{
	size_t bytes = 0;
	struct json_object *function = json_obj(fragment, "function");
	/* Replaced by key and not joined: a signature comes whole, if late. */
	if (!c->extra)
		c->extra = json_object_new_object();
	json_object_object_foreach (fragment, key, value)
		if (!is_known_member(key))
			bytes += keep_member(c->extra, key, value);
	if (!function)
		return bytes;
	json_object_object_foreach (function, inner_key, inner) {
		if (strcmp(inner_key, "name") == 0 || strcmp(inner_key, "arguments") == 0 || !inner)
			continue;
		if (!json_obj(c->extra, "function"))
			json_set(c->extra, "function", json_object_new_object());
		bytes += keep_member(json_obj(c->extra, "function"), inner_key, inner);
	}
	return bytes;
}

struct call_part *call_assembly_add(struct call_assembly *a, struct json_object *json, size_t place,
				    size_t count, size_t *ret_bytes)
{
	struct fragment f = read_fragment(json);
	struct call_part *c = find_candidate(a, &f, place, count);
	if (!c || begins_new(a, c, &f))
		c = add_call(a, f.index, place);
	a->current = (size_t)(c - a->calls);
	if (!c->id)
		c->id = mem_strdup(f.id);
	if (!c->name)
		c->name = mem_strdup(f.name);
	*ret_bytes = add_arguments(c, f.arguments);
	if (json_object_is_type(json, json_type_object))
		*ret_bytes += add_extra(c, json);
	return c;
}
