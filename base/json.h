/*
 * json.h - the only home of json-c: values at the edges, typed getters, and writing into buffers.
 *
 * Messages of a conversation are kept as rendered bytes; json-c trees exist only where a program
 * reads a document. Parsing has limits (depth 64, size given by the caller) and accepts exactly
 * one value. Getters never fail: a missing or wrongly typed member gives the default; use the
 * json_need_* forms where absence is an error.
 */
#ifndef BATON_BASE_JSON_H
#define BATON_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <json-c/json.h>

#include "base/buf.h"
#include "base/err.h"

static inline void json_put_ptr(struct json_object **o)
{
	json_object_put(*o);
	*o = NULL;
}
/* AUTO_JSON struct json_object *doc = NULL; */
#define AUTO_JSON __attribute__((cleanup(json_put_ptr)))

/* Parses exactly one value (leading and trailing blanks allowed). Raw control characters inside
 * strings are accepted (trap 39); unterminated values, lone surrogates (they become U+FFFD), depth
 * above 64 and bytes after the value are errors with the byte offset. *ret is owned by the caller;
 * a JSON null gives *ret = NULL and 0. */
int json_parse(const char *s, size_t n, struct json_object **ret, struct err *err);
int json_parse_file(const char *path, size_t max, struct json_object **ret, struct err *err);

/* Lenient getters on an object (obj may be NULL or of another type). Strings are borrowed. */
const char *json_str(struct json_object *obj, const char *key, const char *dflt);
size_t json_str_len(struct json_object *obj,
		    const char *key); /* bytes, NULs counted; 0 if absent */
int64_t json_i64(struct json_object *obj, const char *key, int64_t dflt);
double json_double(struct json_object *obj, const char *key, double dflt);
bool json_flag(struct json_object *obj, const char *key, bool dflt);
struct json_object *json_obj(struct json_object *obj, const char *key); /* object or NULL */
struct json_object *json_arr(struct json_object *obj, const char *key); /* array or NULL */
struct json_object *json_get(struct json_object *obj, const char *key); /* anything or NULL */
bool json_has(struct json_object *obj, const char *key);	/* present, also when null */
size_t json_len(struct json_object *arr);			/* 0 for NULL or no array */
struct json_object *json_at(struct json_object *arr, size_t i); /* NULL past the end */

/* Strict getters: -1 with "missing field 'x'" or "field 'x' must be a string". */
int json_need_str(struct json_object *obj, const char *key, const char **ret, struct err *err);
int json_need_i64(struct json_object *obj, const char *key, int64_t *ret, struct err *err);
int json_need_obj(struct json_object *obj, const char *key, struct json_object **ret,
		  struct err *err);
int json_need_arr(struct json_object *obj, const char *key, struct json_object **ret,
		  struct err *err);

/* Building trees: the value passes to the object. NULL strings are left out. */
void json_set_str(struct json_object *obj, const char *key, const char *value);
void json_set_strn(struct json_object *obj, const char *key, const char *value, size_t n);
void json_set_i64(struct json_object *obj, const char *key, int64_t value);
void json_set_double(struct json_object *obj, const char *key, double value);
void json_set_bool(struct json_object *obj, const char *key, bool value);
void json_set(struct json_object *obj, const char *key, struct json_object *value);

/* Appends the compact text of a tree (NULL gives null). Always valid UTF-8. */
void json_write(struct buf *out, struct json_object *obj);
void json_write_pretty(struct buf *out, struct json_object *obj); /* 2 spaces, \n at the end */

/* Appends "..." with the quotes. Bytes are sanitised to valid UTF-8 first: the output is always a
 * valid JSON string and valid UTF-8 (traps 87, 89, 95). '/' is not escaped; U+2028/9 are left. */
void json_write_string(struct buf *out, const char *s, size_t n);
void json_write_cstr(struct buf *out, const char *s);

/* Checks `value` against a schema of the part of JSON Schema that tool schemas use: type (also a
 * list), properties, required, additionalProperties (bool), items, enum, const, $ref within the
 * document, minimum, maximum, minLength, maxLength, minItems, maxItems. Error names the place as a
 * JSON pointer and what was expected. */
int json_check_schema(struct json_object *schema, struct json_object *value, struct err *err);

#endif
