/*
 * stats.c - counters as a json-c tree's sources, and the log as JSON Lines (base/jsonl.h).
 */
#include "rehearsal/stats.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/jsonl.h"
#include "base/memory.h"

#define MAX_EXAMPLES 20 /* different texts kept per server; counts go on */

struct violation {
	const char *rule; /* static */
	char *text;
	int64_t first, count;
};

struct role_count {
	char *role;
	int64_t requests, output;
	struct cache_usage cache;
};

struct stats {
	struct jsonl_writer *log;
	int64_t requests, answered, refused, faults, unmatched, bad_http, output, violations;
	struct cache_usage cache;
	struct violation *list;
	size_t n_list, cap_list;
	struct role_count *roles;
	size_t n_roles, cap_roles;
	int64_t by_status[600];
};

struct stats *stats_new(void)
{
	return mem_alloc(sizeof(struct stats));
}

int stats_open_log(struct stats *stats, const char *path, struct err *err)
{
	return jsonl_open(path, &stats->log, err);
}

/* Texts are kept apart although the rule is the same: they name the place. Past the bound only the
 * sum grows. */
static void count_violation(struct stats *s, const char *rule, const char *text, int64_t number)
{
	s->violations++;
	for (size_t i = 0; i < s->n_list; i++) {
		if (strcmp(s->list[i].rule, rule) == 0 && strcmp(s->list[i].text, text) == 0) {
			s->list[i].count++;
			return;
		}
	}
	if (s->n_list == MAX_EXAMPLES)
		return;
	MEM_GROW(s->list, s->cap_list, s->n_list + 1);
	s->list[s->n_list++] = (struct violation){
		.rule = rule, .text = mem_strdup(text), .first = number, .count = 1};
}

static void add_usage(struct cache_usage *to, const struct cache_usage *from)
{
	to->read += from->read;
	to->write += from->write;
	to->write_1h += from->write_1h;
	to->fresh += from->fresh;
}

/* Roles come from requests, so their number is bounded too. */
static void count_role(struct stats *s, const struct stats_record *r)
{
	struct role_count *role = NULL;

	for (size_t i = 0; i < s->n_roles && !role; i++)
		if (strlen(s->roles[i].role) == r->role_len &&
		    memcmp(s->roles[i].role, r->role, r->role_len) == 0)
			role = &s->roles[i];
	if (!role && s->n_roles < 100) {
		MEM_GROW(s->roles, s->cap_roles, s->n_roles + 1);
		role = &s->roles[s->n_roles++];
		*role = (struct role_count){.role = mem_strndup(r->role, r->role_len)};
	}
	if (!role)
		return;
	role->requests++;
	role->output += r->output;
	if (r->counted)
		add_usage(&role->cache, &r->cache);
}

/* Written at once: a test reads the log while the server runs. Only named members, so no key can
 * slip in. */
static void log_request(struct stats *s, const struct stats_record *r)
{
	struct buf *out = jsonl_begin(s->log, "request");

	buf_addf(out, ",\"n\":%" PRId64 ",\"path\":", r->number);
	json_write_string(out, r->path, r->path_len);
	buf_addf(out, ",\"status\":%d,\"bytes\":%zu,\"us\":%" PRId64, r->status, r->bytes,
		 r->duration_us);
	if (r->model) {
		buf_addf(out, ",\"protocol\":\"%s\",\"model\":", r->protocol);
		json_write_cstr(out, r->model);
		buf_adds(out, ",\"role\":");
		json_write_string(out, r->role, r->role_len);
		buf_addf(out,
			 ",\"conversation\":\"%016" PRIx64
			 "\",\"turn\":%zu,\"messages\":%zu,\"tools\":%zu"
			 ",\"markers\":%zu,\"stream\":%s,\"input\":%" PRId64 ",\"output\":%" PRId64
			 ",\"cache_read\":%" PRId64 ",\"cache_write\":%" PRId64,
			 r->conversation, r->turn, r->messages, r->tools, r->markers,
			 r->stream ? "true" : "false", r->input, r->output, r->cache.read,
			 r->cache.write);
	}
	if (r->rule) {
		buf_adds(out, ",\"rule\":");
		json_write_cstr(out, r->rule);
	}
	if (r->fault) {
		buf_adds(out, ",\"fault\":");
		json_write_cstr(out, r->fault);
	}
	if (r->refusal) {
		buf_addf(out, ",\"refused\":\"%s\",\"message\":", r->refusal->rule);
		json_write_cstr(out, r->refusal->text);
	}
	if (r->notes && *r->notes) {
		buf_adds(out, ",\"notes\":");
		json_write_cstr(out, r->notes);
	}
	if (r->body) {
		buf_adds(out, ",\"body\":");
		json_write_string(out, r->body, r->body_len);
	}
	jsonl_end(s->log);
	jsonl_flush(s->log, false, NULL);
}

/* Each request is one of refused, fault, answered or unmatched, in this order. */
void stats_add(struct stats *s, const struct stats_record *r)
{
	s->requests++;
	if (r->status >= 0 && r->status < (int)ARRAY_SIZE(s->by_status))
		s->by_status[r->status]++;
	if (r->refusal && r->refusal->violation)
		count_violation(s, r->refusal->rule, r->refusal->text, r->number);
	if (r->refusal)
		s->refused++;
	else if (r->fault)
		s->faults++;
	else if (r->counted)
		s->answered++;
	if (r->model && !r->rule && !r->refusal && !r->counted)
		s->unmatched++;
	if (r->counted) {
		s->output += r->output;
		add_usage(&s->cache, &r->cache);
	}
	if (r->model)
		count_role(s, r);
	if (s->log)
		log_request(s, r);
}

void stats_add_bad_http(struct stats *s, const char *why)
{
	s->bad_http++;
	count_violation(s, "http", why, s->requests);
}

static struct json_object *usage_json(const struct cache_usage *u, int64_t output)
{
	struct json_object *o = json_object_new_object();

	json_set_i64(o, "read", u->read);
	json_set_i64(o, "write", u->write);
	json_set_i64(o, "fresh", u->fresh);
	json_set_i64(o, "output", output);
	return o;
}

static struct json_object *violations_json(const struct stats *s)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < s->n_list; i++) {
		struct json_object *o = json_object_new_object();

		json_set_str(o, "rule", s->list[i].rule);
		json_set_str(o, "message", s->list[i].text);
		json_set_i64(o, "count", s->list[i].count);
		json_set_i64(o, "first_request", s->list[i].first);
		json_object_array_add(list, o);
	}
	return list;
}

struct json_object *stats_json(const struct stats *s)
{
	struct json_object *o = json_object_new_object(), *roles = json_object_new_object();
	struct json_object *status = json_object_new_object();

	json_set_i64(o, "requests", s->requests);
	json_set_i64(o, "answered", s->answered);
	json_set_i64(o, "refused", s->refused);
	json_set_i64(o, "faults", s->faults);
	json_set_i64(o, "unmatched", s->unmatched);
	json_set_i64(o, "bad_http", s->bad_http);
	json_set_i64(o, "n_violations", s->violations);
	json_set(o, "violations", violations_json(s));
	json_set(o, "cache", usage_json(&s->cache, s->output));
	for (size_t i = 0; i < s->n_roles; i++) {
		struct json_object *role = usage_json(&s->roles[i].cache, s->roles[i].output);

		json_set_i64(role, "requests", s->roles[i].requests);
		json_set(roles, s->roles[i].role, role);
	}
	json_set(o, "by_role", roles);
	for (int i = 0; i < (int)ARRAY_SIZE(s->by_status); i++) {
		char key[8];

		if (!s->by_status[i])
			continue;
		snprintf(key, sizeof(key), "%d", i);
		json_set_i64(status, key, s->by_status[i]);
	}
	json_set(o, "by_status", status);
	return o;
}

void stats_free(struct stats *s)
{
	if (!s)
		return;
	if (s->log) {
		AUTO_JSON struct json_object *summary = stats_json(s);

		jsonl_add(s->log, "summary", summary);
		jsonl_flush(s->log, false, NULL);
		jsonl_close(s->log);
	}
	for (size_t i = 0; i < s->n_list; i++)
		free(s->list[i].text);
	for (size_t i = 0; i < s->n_roles; i++)
		free(s->roles[i].role);
	free(s->list);
	free(s->roles);
	free(s);
}
