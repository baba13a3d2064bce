/*
 * words.c - keeps the ledger of the user's words, in memory and on disk.
 *
 * What a person said is the one thing that nobody can get again: files are read anew, commands run
 * anew, but a prohibition that a summary dropped is gone. So this is no view of the conversation. It has
 * a file of its own, which outlives the messages that leave the window, is read by later generations,
 * and holds whole what the conversation shows as head and tail. The transcript flushes it before
 * itself (transcript_follow), so that no request can go out whose words are not on disk.
 */
#include "agent/context/words.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>

#include "agent/context/said.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/jsonl.h"
#include "base/memory.h"
#include "base/text.h"

#define FILE_NAME      "words.jsonl"
#define LINE_MAX_BYTES ((size_t)256 << 20)
#define CUT_SHARE      4 /* head and tail have this part of what a message may have */
#define CUT_LEAST      800

static const char *const speaker_names[] = {
	[SPEAKER_PERSON] = "user",
	[SPEAKER_AGENT] = "agent",
	[SPEAKER_EVALUATOR] = "evaluator",
};

const char *speaker_name(enum speaker_kind speaker)
{
	return speaker_names[speaker];
}

size_t user_words_constraints(const struct user_words *words)
{
	size_t sum = 0;

	for (size_t i = 0; i < words->n; i++)
		sum += words->list[i].constraints.n;
	return sum;
}

/* ---- on disk ---- */

/* JSON text is UTF-8 without NUL: anything else is kept a second time, as it came. */
static bool needs_raw(const struct word *w)
{
	return memchr(w->text, '\0', w->n) || !text_is_utf8(w->text, w->n);
}

static void write_hex(struct buf *out, const struct word *w)
{
	buf_adds(out, ",\"hex\":\"");
	for (size_t i = 0; i < w->n; i++)
		buf_addf(out, "%02x", (unsigned char)w->text[i]);
	buf_addc(out, '"');
}

static void write_word(struct user_words *words, const struct word *w)
{
	struct buf *out = jsonl_begin(words->writer, "word");
	char stamp[CLOCK_STAMP_SIZE];

	buf_addf(out, ",\"version\":%d,\"speaker\":\"%s\"", USER_WORDS_VERSION,
		 speaker_name(w->speaker));
	if (w->name) {
		buf_adds(out, ",\"name\":");
		json_write_cstr(out, w->name);
	}
	buf_addf(out, ",\"generation\":%" PRId64 ",\"uid\":%" PRIu64 ",\"said\":\"%s\"",
		 w->generation, w->uid, clock_stamp(w->time, stamp));
	buf_adds(out, ",\"text\":");
	json_write_string(out, w->text, w->n);
	if (needs_raw(w))
		write_hex(out, w);
	if (w->cut)
		buf_adds(out, ",\"cut\":true");
	if (w->file) {
		buf_adds(out, ",\"file\":");
		json_write_cstr(out, w->file);
	}
	buf_adds(out, ",\"constraints\":[");
	for (size_t i = 0; i < w->constraints.n; i++)
		buf_addf(out, "%s[%zu,%zu]", i ? "," : "", w->constraints.list[i].at,
			 w->constraints.list[i].n);
	buf_addc(out, ']');
	jsonl_end(words->writer);
}

static void word_release(struct word *w)
{
	free(w->name);
	free(w->text);
	free(w->file);
	constraints_release(&w->constraints);
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int read_hex(struct word *w, const char *hex, size_t n)
{
	char *bytes = mem_alloc(n / 2 + 1);

	for (size_t i = 0; i + 1 < n; i += 2) {
		int high = hex_digit(hex[i]), low = hex_digit(hex[i + 1]);

		if (high < 0 || low < 0) {
			free(bytes);
			return -1;
		}
		bytes[i / 2] = (char)(high << 4 | low);
	}
	free(w->text);
	w->text = bytes;
	w->n = n / 2;
	return 0;
}

static int read_speaker(const char *name, enum speaker_kind *ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(speaker_names); i++) {
		if (!strcmp(speaker_names[i], name)) {
			*ret = (enum speaker_kind)i;
			return 0;
		}
	}
	return -1;
}

/* Spans that do not fit the text were not written by us: it is marked anew. */
static void read_spans(struct word *w, struct json_object *list)
{
	size_t end = 0;

	for (size_t i = 0; i < json_len(list); i++) {
		struct json_object *pair = json_at(list, i);
		int64_t at = json_object_get_int64(json_at(pair, 0));
		int64_t n = json_object_get_int64(json_at(pair, 1));
		struct constraints *c = &w->constraints;

		if (at < (int64_t)end || n <= 0 || at > (int64_t)w->n || n > (int64_t)w->n - at) {
			constraints_release(c);
			constraints_find(w->text, w->n, c);
			return;
		}
		MEM_GROW(c->list, c->cap, c->n + 1);
		c->list[c->n++] = (struct text_span){.at = (size_t)at, .n = (size_t)n};
		end = (size_t)(at + n);
	}
}

static int read_word(struct json_object *o, struct word *ret)
{
	const char *text = json_str(o, "text", NULL), *hex = json_str(o, "hex", NULL);
	struct word w = {.generation = json_i64(o, "generation", 0)};

	if (!text || read_speaker(json_str(o, "speaker", ""), &w.speaker) < 0)
		return -1;
	w.n = json_str_len(o, "text");
	w.text = mem_strndup(text, w.n);
	if (hex && read_hex(&w, hex, json_str_len(o, "hex")) < 0) {
		free(w.text);
		return -1;
	}
	w.name = mem_strdup(json_str(o, "name", NULL));
	w.uid = (uint64_t)json_i64(o, "uid", 0);
	w.time = clock_parse_stamp(json_str(o, "said", ""));
	w.cut = json_flag(o, "cut", false);
	w.file = mem_strdup(json_str(o, "file", NULL));
	read_spans(&w, json_arr(o, "constraints"));
	*ret = w;
	return 0;
}

static struct word *push(struct user_words *words, const struct word *w)
{
	MEM_GROW(words->list, words->cap, words->n + 1);
	words->list[words->n] = *w;
	return &words->list[words->n++];
}

static bool is_same(const struct word *a, const struct word *b)
{
	return a->generation == b->generation && a->uid == b->uid && a->n == b->n &&
	       !memcmp(a->text, b->text, a->n);
}

static bool is_known(const struct user_words *words, const struct word *w)
{
	for (size_t i = 0; i < words->n; i++)
		if (is_same(&words->list[i], w))
			return true;
	return false;
}

static int on_own_record(struct json_object *record, int64_t offset, void *arg)
{
	struct user_words *words = arg;
	struct word w;

	if (!strcmp(json_str(record, "type", ""), "rendered")) {
		words->own_len = (size_t)json_i64(record, "bytes", 0);
		words->own_hash = (uint64_t)json_i64(record, "hash", 0);
	} else if (!strcmp(json_str(record, "type", ""), "word") && read_word(record, &w) == 0) {
		push(words, &w);
	}
	return 0;
}

static int on_inherited_record(struct json_object *record, int64_t offset, void *arg)
{
	struct user_words *words = arg;
	struct word w;

	if (strcmp(json_str(record, "type", ""), "word") != 0 || read_word(record, &w) < 0)
		return 0;
	if (is_known(words, &w)) {
		word_release(&w);
		return 0;
	}
	/* Its file is in the earlier generation's results, where this one's tools do not reach. */
	free(w.file);
	w.file = NULL;
	w.cut = false;
	write_word(words, push(words, &w));
	return 0;
}

int user_words_inherit(struct user_words *words, const char *path, struct err *err)
{
	struct jsonl_stats stats;

	return jsonl_read(path, 0, LINE_MAX_BYTES, on_inherited_record, words, &stats, err);
}

void user_words_resize(struct user_words *words, int64_t room)
{
	words->room = room;
}

int user_words_init(struct user_words *words, const struct user_words_settings *settings,
		    struct err *err)
{
	AUTO_FREE char *path = file_join(settings->dir_generation, FILE_NAME);
	struct jsonl_stats stats;

	*words = (struct user_words){
		.results_dir = file_join(settings->dir_generation, "results"),
		.generation = settings->generation,
		.whole_bytes = settings->whole_bytes,
		.said = said_new(),
	};
	user_words_resize(words, settings->room);
	if (file_mkdirs(words->results_dir, 0700, err) < 0)
		return -1;
	if (file_exists(path) &&
	    jsonl_read(path, 0, LINE_MAX_BYTES, on_own_record, words, &stats, err) < 0)
		return -1;
	return jsonl_open(path, &words->writer, err);
}

void user_words_release(struct user_words *words)
{
	for (size_t i = 0; i < words->n; i++)
		word_release(&words->list[i]);
	free(words->list);
	free(words->results_dir);
	jsonl_close(words->writer);
	said_free(words->said);
	*words = (struct user_words){.list = NULL};
}

/* ---- from the conversation ---- */

/* X2: who may speak. Everything else is baton's, the model's or a tool's. */
static bool speaker_of(const struct block *b, enum speaker_kind *ret)
{
	if (b->kind != BLOCK_TEXT)
		return false;
	switch (b->origin) {
	case ORIGIN_USER: *ret = SPEAKER_PERSON; return true;
	case ORIGIN_TASK: *ret = SPEAKER_AGENT; return true;
	case ORIGIN_EVALUATOR: *ret = SPEAKER_EVALUATOR; return true;
	case ORIGIN_MODEL:
	case ORIGIN_INSTRUCTIONS:
	case ORIGIN_ENVIRONMENT:
	case ORIGIN_TOOL:
	case ORIGIN_NUDGE:
	case ORIGIN_SUMMARY:
	case ORIGIN_ATTACHMENT:
	case ORIGIN_HOOK:
	case ORIGIN_HANDOFF:
	case ORIGIN_MEMORY: break;
	}
	return false;
}

static size_t enter(struct user_words *words, const struct block *b, enum speaker_kind speaker,
		    uint64_t uid)
{
	struct word w = {
		.speaker = speaker,
		.name = mem_strdup(b->name),
		.generation = words->generation,
		.uid = uid,
		.time = clock_wall_ms(),
		.text = mem_strndup(b->text, b->text_len),
		.n = b->text_len,
	};

	constraints_find(w.text, w.n, &w.constraints);
	push(words, &w);
	return words->n - 1;
}

/* Is it a part of what is known? A constraint is, of the message that it stands in. */
static bool is_part(const struct user_words *words, const char *text, size_t n)
{
	for (size_t i = 0; i < words->n; i++)
		if (memmem(words->list[i].text, words->list[i].n, text, n))
			return true;
	return false;
}

void user_words_enter(struct user_words *words, enum speaker_kind speaker, const char *text,
		      size_t n)
{
	struct block b = {.kind = BLOCK_TEXT, .text = (char *)text, .text_len = n};

	if (!n || is_part(words, text, n))
		return;
	size_t i = enter(words, &b, speaker, 0); /* which may move the list */
	write_word(words, &words->list[i]);
}

static bool is_long(const struct user_words *words, const struct word *w,
		    const struct ledger *ledger)
{
	if ((int64_t)w->n <= words->room) /* a token has a byte at least */
		return (int64_t)w->n > words->whole_bytes;
	return (int64_t)w->n > words->whole_bytes ||
	       ledger_estimate_text(ledger, w->text, w->n) > words->room;
}

static size_t cut_budget(const struct user_words *words)
{
	int64_t bound = MIN(words->whole_bytes, words->room * BYTES_PER_TOKEN);

	return (size_t)MAX(bound / CUT_SHARE, (int64_t)CUT_LEAST);
}

static void replace_text(struct block *b, struct buf *text)
{
	free(b->text);
	b->text_len = text->len;
	b->text = buf_take(text);
}

static int cut_block(struct user_words *words, size_t index, struct block *b,
		     const struct ledger *ledger, struct err *err)
{
	struct word *w = &words->list[index];
	AUTO_BUF struct buf text = BUF_INIT;
	int64_t tokens;

	w->cut = true;
	user_words_cut(words, index, cut_budget(words), &text);
	tokens = ledger_estimate_text(ledger, buf_str(&text), text.len);
	replace_text(b, &text);
	if (tokens <= words->room)
		return 0;
	return err_set(err, ERR_TOO_LARGE,
		       "the constraints in a message of %zu bytes take about %" PRId64
		       " tokens of a window in which all user words may take %" PRId64
		       ": put what is no constraint into a file and name it",
		       w->n, tokens, words->room);
}

int user_words_admit(struct user_words *words, struct message *m, uint64_t uid,
		     const struct ledger *ledger, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; m->role == MESSAGE_USER && i < m->n_blocks; i++) {
		enum speaker_kind speaker;
		size_t index;

		if (!speaker_of(&m->blocks[i], &speaker))
			continue;
		index = enter(words, &m->blocks[i], speaker, uid);
		if (is_long(words, &words->list[index], ledger) &&
		    cut_block(words, index, &m->blocks[i], ledger, err) < 0)
			rc = -1;
		write_word(words, &words->list[index]);
	}
	return rc;
}

/* The block as it stands in the conversation: whole, or cut with the file's name in it. */
static bool holds_block(const struct user_words *words, const struct block *b, uint64_t uid)
{
	for (size_t i = 0; i < words->n; i++) {
		const struct word *w = &words->list[i];

		if (w->generation != words->generation || w->uid != uid)
			continue;
		if (w->n == b->text_len && !memcmp(w->text, b->text, w->n))
			return true;
		if (w->cut && w->file && memmem(b->text, b->text_len, w->file, strlen(w->file)))
			return true;
	}
	return false;
}

void user_words_take_conversation(struct user_words *words, const struct conversation *conversation)
{
	for (size_t i = 0; i < conversation->n; i++) {
		const struct message *m = conversation->messages[i];

		for (size_t k = 0; m->role == MESSAGE_USER && k < m->n_blocks; k++) {
			enum speaker_kind speaker;

			if (!speaker_of(&m->blocks[k], &speaker) ||
			    holds_block(words, &m->blocks[k], m->uid))
				continue;
			size_t at = enter(words, &m->blocks[k], speaker, m->uid);
			write_word(words, &words->list[at]);
		}
	}
}
