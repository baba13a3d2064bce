/*
 * json_tree.c - getters, builders and the writer of json.h.
 *
 * Getters take whatever a model or a peer sent and never fail; a strict reader uses the json_need_*
 * forms. The writer sanitises every string on its way out, so nothing that is written can be
 * refused for its encoding (traps 87, 89, 95), and prints a double with the fewest digits that read
 * back as the same number (json-c prints 0.1 as 0.10000000000000001).
 */
#include <math.h>
#include <stdio.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"

/* --- lenient getters --- */

struct json_object *json_get(struct json_object *obj, const char *key)
{
	struct json_object *value = NULL;
	if (!json_object_is_type(obj, json_type_object))
		return NULL;
	json_object_object_get_ex(obj, key, &value);
	return value;
}

bool json_has(struct json_object *obj, const char *key)
{
	return json_object_is_type(obj, json_type_object) &&
	       json_object_object_get_ex(obj, key, NULL);
}

static struct json_object *get_typed(struct json_object *obj, const char *key, enum json_type type)
{
	struct json_object *value = json_get(obj, key);
	return value && json_object_is_type(value, type) ? value : NULL;
}

const char *json_str(struct json_object *obj, const char *key, const char *dflt)
{
	struct json_object *value = get_typed(obj, key, json_type_string);
	return value ? json_object_get_string(value) : dflt;
}

size_t json_str_len(struct json_object *obj, const char *key)
{
	struct json_object *value = get_typed(obj, key, json_type_string);
	return value ? (size_t)json_object_get_string_len(value) : 0;
}

/* A whole number, also when written as 5.0 or 5e3: some servers and models do. */
static bool whole_number(struct json_object *value, int64_t *ret)
{
	if (json_object_is_type(value, json_type_int)) {
		*ret = json_object_get_int64(value);
		return true;
	}
	if (!json_object_is_type(value, json_type_double))
		return false;
	double d = json_object_get_double(value);
	if (!(d >= -0x1p53 && d <= 0x1p53) || d != floor(d))
		return false;
	*ret = (int64_t)d;
	return true;
}

int64_t json_i64(struct json_object *obj, const char *key, int64_t dflt)
{
	struct json_object *value = json_get(obj, key);
	int64_t number;
	return value && whole_number(value, &number) ? number : dflt;
}

double json_double(struct json_object *obj, const char *key, double dflt)
{
	struct json_object *value = json_get(obj, key);
	if (value && (json_object_is_type(value, json_type_double) ||
		      json_object_is_type(value, json_type_int)))
		return json_object_get_double(value);
	return dflt;
}

bool json_flag(struct json_object *obj, const char *key, bool dflt)
{
	struct json_object *value = get_typed(obj, key, json_type_boolean);
	return value ? json_object_get_boolean(value) : dflt;
}

struct json_object *json_obj(struct json_object *obj, const char *key)
{
	return get_typed(obj, key, json_type_object);
}

struct json_object *json_arr(struct json_object *obj, const char *key)
{
	return get_typed(obj, key, json_type_array);
}

size_t json_len(struct json_object *arr)
{
	return json_object_is_type(arr, json_type_array) ? json_object_array_length(arr) : 0;
}

struct json_object *json_at(struct json_object *arr, size_t i)
{
	return i < json_len(arr) ? json_object_array_get_idx(arr, i) : NULL;
}

/* --- strict getters --- */

/* The message is read by whoever wrote the document, often a model: it names the field alone, and
 * the caller puts the place before it (err_prefix). */

static int need(struct json_object *obj, const char *key, enum json_type type, const char *what,
		struct json_object **ret, struct err *err)
{
	if (!json_has(obj, key))
		return err_set(err, ERR_INVALID, "missing field '%s'", key);
	struct json_object *value = json_get(obj, key);
	if (!value || !json_object_is_type(value, type))
		return err_set(err, ERR_INVALID, "field '%s' must be %s", key, what);
	*ret = value;
	return 0;
}

int json_need_str(struct json_object *obj, const char *key, const char **ret, struct err *err)
{
	struct json_object *value;
	if (need(obj, key, json_type_string, "a string", &value, err) < 0)
		return -1;
	*ret = json_object_get_string(value);
	return 0;
}

int json_need_i64(struct json_object *obj, const char *key, int64_t *ret, struct err *err)
{
	if (!json_has(obj, key))
		return err_set(err, ERR_INVALID, "missing field '%s'", key);
	struct json_object *value = json_get(obj, key);
	if (!value || !whole_number(value, ret))
		return err_set(err, ERR_INVALID, "field '%s' must be a whole number", key);
	return 0;
}

int json_need_obj(struct json_object *obj, const char *key, struct json_object **ret,
		  struct err *err)
{
	return need(obj, key, json_type_object, "an object", ret, err);
}

int json_need_arr(struct json_object *obj, const char *key, struct json_object **ret,
		  struct err *err)
{
	return need(obj, key, json_type_array, "an array", ret, err);
}

/* --- building --- */

void json_set(struct json_object *obj, const char *key, struct json_object *value)
{
	json_object_object_add(obj, key, value);
}

/* json-c counts in int: what is longer is cut, which no caller with a stated maximum can reach. */
void json_set_strn(struct json_object *obj, const char *key, const char *value, size_t n)
{
	if (value)
		json_set(obj, key, json_object_new_string_len(value, (int)MIN(n, INT32_MAX)));
}

void json_set_str(struct json_object *obj, const char *key, const char *value)
{
	if (value)
		json_set_strn(obj, key, value, strlen(value));
}

void json_set_i64(struct json_object *obj, const char *key, int64_t value)
{
	json_set(obj, key, json_object_new_int64(value));
}

void json_set_double(struct json_object *obj, const char *key, double value)
{
	json_set(obj, key, json_object_new_double(value));
}

void json_set_bool(struct json_object *obj, const char *key, bool value)
{
	json_set(obj, key, json_object_new_boolean(value));
}

/* --- writing --- */

/* Valid UTF-8 without NUL. Runs of plain characters are copied at once: most of a request is text,
 * and a request is megabytes. '/' and what is above ASCII need no escape. */
static void write_escaped(struct buf *out, const char *s, size_t n)
{
	static const char short_form[0x20] = {
		['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r',
	};
	size_t run = 0;
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)s[i];
		if (c >= 0x20 && c != '"' && c != '\\')
			continue;
		buf_add(out, s + run, i - run);
		run = i + 1;
		if (c >= 0x20 || short_form[c]) {
			char pair[2] = {'\\', c >= 0x20 ? (char)c : short_form[c]};
			buf_add(out, pair, 2);
		} else {
			buf_addf(out, "\\u%04x", c);
		}
	}
	buf_add(out, s + run, n - run);
}

void json_write_string(struct buf *out, const char *s, size_t n)
{
	buf_addc(out, '"');
	if (n && (!text_is_utf8(s, n) || memchr(s, '\0', n))) {
		AUTO_BUF struct buf clean = BUF_INIT;
		text_sanitize(&clean, s, n);
		write_escaped(out, clean.data, clean.len);
	} else if (n) {
		write_escaped(out, s, n);
	}
	buf_addc(out, '"');
}

void json_write_cstr(struct buf *out, const char *s)
{
	json_write_string(out, s, strlen(s));
}

static void write_double(struct buf *out, struct json_object *obj)
{
	/* A number that was read keeps its text as json-c's user data. */
	if (json_object_get_userdata(obj)) {
		buf_adds(out, json_object_to_json_string(obj));
		return;
	}
	double d = json_object_get_double(obj);
	char text[40] = "null"; /* JSON has no infinities */
	for (int digits = 15; isfinite(d) && digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, d);
		if (strtod(text, NULL) == d)
			break;
	}
	buf_adds(out, text);
}

/* Compact with indent < 0, else the level of this value. */
static void write_break(struct buf *out, int indent)
{
	if (indent < 0)
		return;
	buf_addc(out, '\n');
	for (int i = 0; i < indent; i++)
		buf_adds(out, "  ");
}

static void write_value(struct buf *out, struct json_object *obj, int indent);

static void write_array(struct buf *out, struct json_object *arr, int indent)
{
	int inner = indent < 0 ? -1 : indent + 1;
	size_t n = json_object_array_length(arr);
	buf_addc(out, '[');
	for (size_t i = 0; i < n; i++) {
		if (i)
			buf_addc(out, ',');
		write_break(out, inner);
		write_value(out, json_object_array_get_idx(arr, i), inner);
	}
	if (n)
		write_break(out, indent);
	buf_addc(out, ']');
}

static void write_object(struct buf *out, struct json_object *obj, int indent)
{
	int inner = indent < 0 ? -1 : indent + 1;
	bool first = true;
	buf_addc(out, '{');
	json_object_object_foreach (obj, key, value) {
		if (!first)
			buf_addc(out, ',');
		first = false;
		write_break(out, inner);
		json_write_cstr(out, key);
		buf_adds(out, inner < 0 ? ":" : ": ");
		write_value(out, value, inner);
	}
	if (!first)
		write_break(out, indent);
	buf_addc(out, '}');
}

static void write_value(struct buf *out, struct json_object *obj, int indent)
{
	switch (json_object_get_type(obj)) {
	case json_type_null: buf_adds(out, "null"); break;
	case json_type_boolean:
		buf_adds(out, json_object_get_boolean(obj) ? "true" : "false");
		break;
	case json_type_int: buf_adds(out, json_object_to_json_string(obj)); break;
	case json_type_double: write_double(out, obj); break;
	case json_type_string:
		json_write_string(out, json_object_get_string(obj),
				  (size_t)json_object_get_string_len(obj));
		break;
	case json_type_array: write_array(out, obj, indent); break;
	case json_type_object: write_object(out, obj, indent); break;
	}
}

void json_write(struct buf *out, struct json_object *obj)
{
	write_value(out, obj, -1);
}

void json_write_pretty(struct buf *out, struct json_object *obj)
{
	write_value(out, obj, 0);
	buf_addc(out, '\n');
}
