/*
 * test_server.c - baton-rehearse as a process, spoken to over a raw socket: what a client really
 * receives, byte by byte, when all is well and when each fault is on.
 */
#include "rehearsal_rig.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/file.h"
#include "base/spawn.h"
#include "base/sse.h"

#define DEADLINE_MS 20000

struct program {
	pid_t pid;
	int out, watch; /* its stdout; our end of --watch-fd */
	uint16_t port;
	char *folder, *log;
};

static void write_file(const char *path, const char *text)
{
	assert_int_equal(file_write_atomic(AT_FDCWD, path, text, strlen(text), 0600, NULL), 0);
}

static void program_start(struct program *p, const char *scenario)
{
	AUTO_FREE char *file = NULL;
	const char *tmp = env_get("TMPDIR");
	AUTO_BUF struct buf line = BUF_INIT;
	struct err err = ERR_INIT;
	int out[2], watch[2];

	p->folder = mem_printf("%s/baton-rehearse-XXXXXX", tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(p->folder));
	file = file_join(p->folder, "scenario.yaml");
	p->log = file_join(p->folder, "log.jsonl");
	write_file(file, scenario);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	assert_int_equal(pipe2(watch, O_CLOEXEC), 0);
	const char *argv[] = {"baton-rehearse", "--watch-fd", "4", "--log", p->log, file, NULL};
	struct spawn_opts opts = SPAWN_OPTS_INIT;
	opts.path = REHEARSE_PROGRAM;
	opts.argv = argv;
	opts.fd_out = out[1];
	opts.fd_err = STDERR_FILENO;
	opts.fd_extra = watch[0];
	opts.death_signal = SIGKILL;
	if (spawn_process(&opts, &p->pid, NULL, &err) < 0)
		fail_msg("%s", err.message);
	close(out[1]);
	close(watch[0]);
	p->out = out[0];
	p->watch = watch[1];
	while (!memchr(buf_str(&line), '\n', line.len))
		assert_true(buf_read(&line, p->out, 200) > 0);
	AUTO_JSON struct json_object *ready = NULL;
	assert_int_equal(json_parse(buf_str(&line), line.len, &ready, NULL), 0);
	p->port = (uint16_t)json_i64(ready, "port", 0);
	assert_int_not_equal(p->port, 0);
}

/* Waits for the end; the status as waitpid gives it. */
static int program_wait(struct program *p)
{
	int status;

	assert_int_equal(waitpid(p->pid, &status, 0), p->pid);
	close(p->out);
	if (p->watch >= 0)
		close(p->watch);
	return status;
}

static void program_release(struct program *p)
{
	assert_int_equal(file_remove_tree(p->folder, NULL), 0);
	free(p->folder);
	free(p->log);
}

static void program_stop(struct program *p)
{
	kill(p->pid, SIGTERM);
	int status = program_wait(p);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	program_release(p);
}

static int dial(const struct program *p)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_port = htons(p->port),
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct timeval limit = {.tv_sec = DEADLINE_MS / 1000};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

#define BODY(model, stream)                                                                        \
	"{\"model\":\"" model "\",\"max_tokens\":100,\"stream\":" stream                           \
	",\"messages\":[{\"role\":\"user\",\"content\":\"go\"}]}"

static void put_request(int fd, const char *path, const char *body)
{
	AUTO_BUF struct buf out = BUF_INIT;

	buf_addf(&out,
		 "POST %s HTTP/1.1\r\nHost: x\r\nAnthropic-Version: 2023-06-01\r\nContent-Length: "
		 "%zu\r\n\r\n%s",
		 path, strlen(body), body);
	assert_int_equal(file_write_all(fd, out.data, out.len, NULL), 0);
}

/* Reads until the peer closes (returns 0), resets (ECONNRESET) or `end` was seen (returns 1). */
static int read_until(int fd, struct buf *in, const char *end)
{
	for (;;) {
		if (end && in->len && memmem(in->data, in->len, end, strlen(end)))
			return 1;
		ssize_t n = buf_read(in, fd, 65536);
		if (n == 0)
			return 0;
		if (n < 0)
			return errno;
	}
}

/* The body of an answer that came in chunks. Returns whether it is complete. */
static bool body_of(const struct buf *in, struct buf *out)
{
	size_t head = http_head_length(in->data, in->len), used;
	struct http_chunks chunks = {.state = CHUNK_SIZE};

	assert_true(head > 0);
	int done = http_chunks_feed(&chunks, in->data + head, in->len - head, &used, out, NULL);
	assert_int_not_equal(done, -1);
	return done == 1;
}

/* One answer on a connection of its own. Returns what ended it: 1 the whole body, 0 close, or
 * errno. */
static int ask(const struct program *p, const char *path, const char *body, struct buf *raw)
{
	int fd = dial(p);
	int end;

	put_request(fd, path, body);
	end = read_until(fd, raw, "\r\n0\r\n\r\n");
	close(fd);
	return end;
}

static const char plain[] =
	"name: plain\nrules:\n  - answer: {text: 'Hello, this is a text of some length.'}\n";

static void streams_over_one_connection(void **state)
{
	struct program p;

	program_start(&p, plain);
	int fd = dial(&p);
	for (int i = 0; i < 3; i++) {
		AUTO_BUF struct buf raw = BUF_INIT, body = BUF_INIT;

		put_request(fd, i == 1 ? "/some/prefix/v1/chat/completions" : "/v1/messages",
			    BODY("m", "true"));
		assert_int_equal(read_until(fd, &raw, "\r\n0\r\n\r\n"), 1);
		assert_true(body_of(&raw, &body));
		assert_has(buf_str(&raw), "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream");
		assert_has(buf_str(&body), i == 1 ? "data: [DONE]\n\n" : "event: message_stop\n");
	}
	close(fd);
	program_stop(&p);
}

static void pipelined_requests_are_answered_in_order(void **state)
{
	struct program p;
	AUTO_BUF struct buf raw = BUF_INIT;
	size_t answers = 0;

	program_start(&p, plain);
	int fd = dial(&p);
	for (int i = 0; i < 20; i++)
		put_request(fd, "/v1/messages", BODY("m", "false"));
	while (answers < 20) {
		assert_true(buf_read(&raw, fd, 65536) > 0);
		answers = 0;
		for (char *s = raw.data; (s = strstr(s, "\"stop_reason\":\"end_turn\"")); s++)
			answers++;
	}
	close(fd);
	program_stop(&p);
}

/* A body in chunks, in single bytes, after "Expect: 100-continue". */
static void body_in_single_bytes(void **state)
{
	static const char head[] =
		"POST /v1/messages HTTP/1.1\r\nHost: x\r\nanthropic-version: 1\r\n"
		"Transfer-Encoding: chunked\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n";
	static const char body[] = BODY("m", "false");
	struct program p;
	AUTO_BUF struct buf raw = BUF_INIT;

	program_start(&p, plain);
	int fd = dial(&p);
	for (size_t i = 0; i < sizeof(head) - 1; i++)
		assert_int_equal(send(fd, head + i, 1, MSG_NOSIGNAL), 1);
	assert_int_equal(read_until(fd, &raw, "100 Continue\r\n\r\n"), 1);
	for (size_t i = 0; i < sizeof(body) - 1; i++) {
		char chunk[8];
		int n = snprintf(chunk, sizeof(chunk), "1\r\n%c\r\n", body[i]);

		assert_int_equal(send(fd, chunk, (size_t)n, MSG_NOSIGNAL), n);
	}
	assert_int_equal(send(fd, "0\r\n\r\n", 5, MSG_NOSIGNAL), 5);
	assert_int_equal(read_until(fd, &raw, NULL), 0);
	assert_has(buf_str(&raw), "connection: close");
	assert_has(buf_str(&raw), "Hello, this is a text");
	close(fd);
	program_stop(&p);
}

static const char faults[] =
	"name: faults\nmodels: {crlf: {quirks: [crlf]}, cr: {quirks: [cr, comments]}, split: "
	"{quirks: [split, no_space]}}\n"
	"rules:\n"
	"  - {match: {model: '^cut$'}, fault: {cut: 4}}\n"
	"  - {match: {model: '^reset$'}, fault: {reset: 4}}\n"
	"  - {match: {model: '^reset0$'}, fault: {reset: true}}\n"
	"  - {match: {model: '^malformed$'}, fault: {malformed: 3}}\n"
	"  - {match: {model: '^error$'}, fault: {error_event: {after: 4, message: too busy}}}\n"
	"  - {match: {model: '^stall$'}, fault: {stall: 4}}\n"
	"  - {match: {model: '^slow$'}, fault: {slow: 5, delay_ms: 10}}\n"
	"  - {match: {model: '^limit$'}, fault: {status: 429, headers: {retry-after: 7}, message: "
	"'slow down'}}\n"
	"  - {match: {model: '^html$'}, fault: {status: 413, body: '<html>Request Entity Too "
	"Large</html>'}}\n"
	"  - {match: {model: '^over$'}, fault: {overflow: {used: 210000, limit: 200000}}}\n"
	"  - {match: {model: '^nousage$'}, fault: {drop_usage: true}}\n"
	"  - answer: {text: 'Hello, this is a text of some length that is sent in several pieces, "
	"one after the other.'}\n";

/* How each fault ends, and what of the answer arrives. */
static void faults_break_streams(void **state)
{
	static const struct {
		const char *model;
		int end; /* as ask() gives it */
		const char *has, *lacks;
	} cases[] = {
		{"cut", 0, "content_block_delta", "message_stop"},
		{"reset", ECONNRESET, NULL, "message_stop"},
		{"reset0", ECONNRESET, NULL, "HTTP/1.1"},
		{"malformed", 1, "message_stop", NULL},
		{"error", 1,
		 "event: error\ndata: "
		 "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"too "
		 "busy\"}",
		 "message_stop"},
		{"slow", 1, "message_stop", NULL},
		{"nousage", 1, "\"output_tokens\":0", "\"stop_sequence\":null},\"usage\""},
	};
	struct program p;

	program_start(&p, faults);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		AUTO_FREE char *body = mem_printf(BODY("%s", "true"), cases[i].model);
		AUTO_BUF struct buf raw = BUF_INIT;

		assert_int_equal(ask(&p, "/v1/messages", body, &raw), cases[i].end);
		if (cases[i].has)
			assert_has(buf_str(&raw), cases[i].has);
		if (cases[i].lacks)
			assert_lacks(buf_str(&raw), cases[i].lacks);
	}
	program_stop(&p);
}

static void stall_keeps_the_connection(void **state)
{
	struct program p;
	AUTO_BUF struct buf raw = BUF_INIT;

	program_start(&p, faults);
	int fd = dial(&p);
	put_request(fd, "/v1/messages", BODY("stall", "true"));
	assert_int_equal(read_until(fd, &raw, "content_block_delta"), 1);
	/* Nothing more comes, and no end either, while another connection is served. */
	AUTO_BUF struct buf other = BUF_INIT;
	assert_int_equal(ask(&p, "/v1/messages", BODY("m", "true"), &other), 1);
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
	assert_int_equal(poll(&poll_fd, 1, 50), 0);
	assert_lacks(buf_str(&raw), "message_stop");
	close(fd);
	program_stop(&p);
}

static void faults_answer_with_a_status(void **state)
{
	static const struct {
		const char *model, *path, *has, *also;
	} cases[] = {
		{"limit", "/v1/messages", "HTTP/1.1 429 Too Many Requests\r\n",
		 "retry-after: 7\r\n"},
		{"limit", "/v1/messages", "\"type\":\"rate_limit_error\"", "slow down"},
		{"limit", "/v1/chat/completions", "\"type\":\"rate_limit_exceeded\"", "slow down"},
		{"html", "/v1/messages", "HTTP/1.1 413", "content-type: text/html"},
		{"over", "/v1/messages", "prompt is too long: 210000 tokens > 200000 maximum",
		 "HTTP/1.1 400"},
		{"over", "/v1/chat/completions", "your messages resulted in 210000 tokens",
		 "context_length_exceeded"},
	};
	struct program p;

	program_start(&p, faults);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		AUTO_FREE char *body = mem_printf(BODY("%s", "true"), cases[i].model);
		AUTO_BUF struct buf raw = BUF_INIT;
		int fd = dial(&p);

		put_request(fd, cases[i].path, body);
		bool openai = strstr(cases[i].path, "chat") != NULL;
		assert_int_equal(read_until(fd, &raw,
					    i == 3   ? "</html>"
					    : openai ? "}}"
						     : "\"}"),
				 1);
		assert_has(buf_str(&raw), cases[i].has);
		assert_has(buf_str(&raw), cases[i].also);
		close(fd);
	}
	program_stop(&p);
}

struct joined {
	struct buf text;
	int events;
};

static int on_event(const char *name, const char *data, size_t n, void *arg, struct err *err)
{
	struct joined *joined = arg;
	AUTO_JSON struct json_object *doc = NULL;

	joined->events++;
	if (json_parse(data, n, &doc, err) < 0)
		return -1;
	buf_adds(&joined->text, json_str(json_obj(doc, "delta"), "text", ""));
	return 0;
}

/* Trap 52, 54, 56: every framing gives the same text to a parser that follows the standard. */
static void framings_mean_the_same(void **state)
{
	static const char *const models[] = {"m", "crlf", "cr", "split"};
	struct program p;
	int events = 0;

	program_start(&p, faults);
	for (size_t i = 0; i < ARRAY_SIZE(models); i++) {
		AUTO_FREE char *body = mem_printf(BODY("%s", "true"), models[i]);
		AUTO_BUF struct buf raw = BUF_INIT, stream = BUF_INIT;
		struct joined joined = {.text = BUF_INIT};
		struct sse_parser parser;

		assert_int_equal(ask(&p, "/v1/messages", body, &raw), 1);
		assert_true(body_of(&raw, &stream));
		sse_init(&parser, on_event, &joined);
		assert_int_equal(sse_feed(&parser, stream.data, stream.len, NULL), 0);
		assert_int_equal(sse_finish(&parser, NULL), 0);
		sse_release(&parser);
		assert_string_equal(buf_str(&joined.text),
				    "Hello, this is a text of some length that is sent "
				    "in several pieces, one after the other.");
		events = events ? events : joined.events;
		assert_int_equal(joined.events, events);
		assert_int_equal(strstr(buf_str(&stream), "\r\n") != NULL,
				 strcmp(models[i], "crlf") == 0);
		buf_release(&joined.text);
	}
	program_stop(&p);
}

static void bad_http_is_refused_and_counted(void **state)
{
	struct program p;
	AUTO_BUF struct buf raw = BUF_INIT, stats = BUF_INIT;

	program_start(&p, plain);
	int fd = dial(&p);
	assert_int_equal(file_write_all(fd, "GET / HTTP/1.1\r\nhost : x\r\n\r\n", 28, NULL), 0);
	assert_int_equal(read_until(fd, &raw, NULL), 0);
	assert_has(buf_str(&raw), "HTTP/1.1 400");
	close(fd);
	fd = dial(&p);
	static const char get[] =
		"GET /__rehearsal/stats HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
	assert_int_equal(file_write_all(fd, get, sizeof(get) - 1, NULL), 0);
	assert_int_equal(read_until(fd, &stats, NULL), 0);
	assert_has(buf_str(&stats), "\"bad_http\":1");
	close(fd);
	program_stop(&p);
}

/* It ends with its starter: no signal, only the end of the watched descriptor. */
static void ends_with_its_watcher(void **state)
{
	struct program p;

	program_start(&p, plain);
	int fd = dial(&p);
	close(p.watch);
	p.watch = -1;
	int status = program_wait(&p);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	close(fd);
	program_release(&p);
}

static void log_has_requests_and_summary_but_no_keys(void **state)
{
	static const char request[] =
		"POST /v1/messages HTTP/1.1\r\nHost: x\r\nanthropic-version: 1\r\n"
		"X-Api-Key: sk-very-secret\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}";
	struct program p;
	AUTO_BUF struct buf raw = BUF_INIT, log = BUF_INIT;

	program_start(&p, plain);
	int fd = dial(&p);
	assert_int_equal(file_write_all(fd, request, sizeof(request) - 1, NULL), 0);
	assert_int_equal(read_until(fd, &raw, NULL), 0);
	close(fd);
	kill(p.pid, SIGTERM);
	program_wait(&p);
	assert_int_equal(file_read(AT_FDCWD, p.log, 1 << 20, &log, NULL), 0);
	assert_has(buf_str(&log), "\"type\":\"request\"");
	assert_has(buf_str(&log), "\"refused\":\"model\"");
	assert_has(buf_str(&log), "\"type\":\"summary\",\"requests\":1,");
	assert_lacks(buf_str(&log), "secret");
	program_release(&p);
}

/* Issue 2 item 14: it stands in benches with 256 children; 100 KB are read in about a millisecond.
 */
static void large_requests_are_light(void **state)
{
	struct rig rig;
	AUTO_BUF struct buf body = BUF_INIT;
	int64_t best = INT64_MAX;

	rig_open(&rig, plain);
	buf_adds(&body, "{\"model\":\"m\",\"max_tokens\":9,\"messages\":[");
	for (int i = 0; i < 100; i++) {
		buf_addf(&body, "%s{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"",
			 i ? "," : "");
		for (int k = 0; k < 25; k++)
			buf_addf(&body, "line %d of text %d\\n\\twith \\\"escapes\\\" inside", k,
				 i);
		buf_adds(&body, "\"}]}");
	}
	buf_adds(&body, "]}");
	assert_true(body.len > 100000);
	for (int i = 0; i < 20; i++) {
		int64_t started = clock_mono_us();

		assert_int_equal(rig_anthropic(&rig, buf_str(&body)), 200);
		best = MIN(best, clock_mono_us() - started);
	}
	print_message("%zu bytes: %lld us\n", body.len, (long long)best);
	assert_true(best < 10000); /* generous: sanitizers and a busy machine */
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(streams_over_one_connection),
		cmocka_unit_test(pipelined_requests_are_answered_in_order),
		cmocka_unit_test(body_in_single_bytes),
		cmocka_unit_test(faults_break_streams),
		cmocka_unit_test(stall_keeps_the_connection),
		cmocka_unit_test(faults_answer_with_a_status),
		cmocka_unit_test(framings_mean_the_same),
		cmocka_unit_test(bad_http_is_refused_and_counted),
		cmocka_unit_test(ends_with_its_watcher),
		cmocka_unit_test(log_has_requests_and_summary_but_no_keys),
		cmocka_unit_test(large_requests_are_light),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
