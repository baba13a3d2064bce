/*
 * fuzz_frame.c - hostile bytes into the channel and what stands behind it.
 *
 * Input: a byte that picks who speaks (agent, parent, gateway, worktree service), a byte that picks
 * the size of the pieces in which the rest arrives (0: at once), and the bytes. They pass a real
 * channel; what comes out of it goes to the relay or to the caller, as it would in the parent or an
 * agent. Properties beside "no crash": a frame that was accepted reads back the same after being
 * written again, and the relay never lets more than the credit through.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

#include "base/memory.h"
#include "fuzz.h"
#include "handoff/call.h"

struct target {
	enum frame_sender sender;
	struct call_relay *relay;
	struct call_callers *callers;
	struct channel *agent, *gateway; /* where the relay sends; nobody reads there */
};

static void rewrite_fields(struct buf *out, const struct frame *frame)
{
	const char *fields = frame_info(frame->type)->fields;
	struct frame_field field;
	while (frame_field_next(&fields, &field)) {
		struct json_object *value = json_get(frame->header, field.name);
		if (!value)
			continue;
		buf_addf(out, "%s\"%s\":", out->len ? "," : "", field.name);
		json_write(out, value);
	}
}

static void check_round_trip(enum frame_sender sender, const struct frame *frame)
{
	AUTO_BUF struct buf fields = BUF_INIT;
	AUTO_BUF struct buf bytes = BUF_INIT;
	struct frame again;
	size_t size;
	rewrite_fields(&fields, frame);
	if (fields.len > FRAME_FIELDS_MAX || frame->len > FRAME_BODY_MAX)
		return;
	frame_write(&bytes, frame->type, buf_str(&fields), frame->body, frame->len, false);
	if (frame_read(bytes.data, bytes.len, sender, &again, &size, NULL) != 1)
		abort();
	if (again.type != frame->type || again.len != frame->len || size != bytes.len ||
	    memcmp(again.body, frame->body, frame->len) != 0)
		abort();
	json_object_put(again.header);
}

static void check_entry(struct call_entry *entry, void *arg)
{
	if (entry->out_up > CALL_CREDIT || entry->out_down > CALL_CREDIT || entry->out_up < 0 ||
	    entry->out_down < 0 || entry->marks_stale > entry->marks_owed)
		abort();
}

static int from_agent(struct target *t, const struct frame *frame, struct err *err)
{
	if (frame->type == FRAME_REQUEST) {
		struct call_entry *entry =
			call_relay_open(t->relay, t->agent, NULL, frame, "a1", err);
		if (!entry)
			return -1;
		call_relay_release(t->relay, entry);
		return 0;
	}
	if (frame->type < FRAME_REQUEST || frame->type > FRAME_CREDIT)
		return 0;
	return call_relay_from_agent(t->relay, t->agent, frame, err);
}

static int on_frame(struct channel *ch, const struct frame *frame, void *arg, struct err *err)
{
	struct target *t = arg;
	struct call_entry *entry;
	bool over;
	int rc = 0;
	check_round_trip(t->sender, frame);
	if (t->sender == FROM_A)
		rc = from_agent(t, frame, err);
	else if (t->sender == FROM_G)
		rc = call_relay_from_gateway(t->relay, frame, &entry, &over, err);
	else if (t->sender == FROM_P)
		rc = call_callers_frame(t->callers, frame, err);
	call_relay_each(t->relay, check_entry, NULL);
	return rc;
}

static int on_nothing(struct channel *ch, const struct frame *frame, void *arg, struct err *err)
{
	return 0;
}

static const char *on_body(void *arg, size_t *ret_len)
{
	*ret_len = 5;
	return "hello";
}

static int on_data(void *arg, const char *bytes, size_t n, struct err *err)
{
	return n == 3 ? err_set(err, ERR_INVALID, "three bytes") : 0;
}

static void on_again(void *arg, int attempt, int status, const char *reason, int64_t until)
{
}

static void on_waiting(void *arg, const char *reason, int64_t until)
{
}

static void on_end(void *arg, const struct call_end *end)
{
}

/* A channel whose other end takes nothing: /dev/null swallows what is sent. */
static struct channel *sink(void)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		abort();
	return channel_new(fd, fd, FROM_P, on_nothing, NULL);
}

/* Calls that are open before the bytes come, so that numbers 1 and 2 mean something. */
static void open_calls(struct target *t)
{
	static const struct call_events events = {on_body, on_data, on_again, on_waiting, on_end};
	static const char line[] =
		"{\"type\":\"request\",\"len\":0,\"req\":1,\"class\":\"main\",\"provider\":\"p\","
		"\"model\":\"m\",\"api\":\"openai\",\"length\":5,\"estimate\":1,\"max_tokens\":1}"
		"\n";
	struct call_request request = {.provider = "p", .model = "m", .api = "openai", .length = 5};
	struct frame frame;
	size_t size;
	if (frame_read(line, sizeof(line) - 1, FROM_A, &frame, &size, NULL) != 1)
		abort();
	from_agent(t, &frame, NULL);
	json_object_put(frame.header);
	call_start(t->callers, &request, &events, NULL, NULL);
}

/* Puts the bytes in, piece by piece, reading after each; a channel that failed takes no more. */
static void feed(struct channel *ch, int fd, const uint8_t *data, size_t size, size_t piece)
{
	while (size > 0) {
		ssize_t n = send(fd, data, MIN(size, piece), MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return;
		if (n > 0) {
			data += n;
			size -= (size_t)n;
		}
		if (channel_on_readable(ch, NULL) < 0)
			return;
	}
	shutdown(fd, SHUT_WR);
	while (channel_on_readable(ch, NULL) == 0)
		continue;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const enum frame_sender senders[] = {FROM_A, FROM_P, FROM_G, FROM_W};
	int fds[2];
	if (size < 2 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		return 0;
	struct target t = {.sender = senders[data[0] % ARRAY_SIZE(senders)],
			   .relay = call_relay_new(),
			   .agent = sink(),
			   .gateway = sink()};
	t.callers = call_callers_new(t.agent);
	call_relay_gateway(t.relay, t.gateway);
	open_calls(&t);
	struct channel *ch = channel_new(fds[0], fds[0], t.sender, on_frame, &t);
	feed(ch, fds[1], data + 2, size - 2, data[1] ? data[1] : 65536);
	call_relay_gateway_died(t.relay, NULL, NULL);
	call_relay_drop_agent(t.relay, t.agent, NULL, NULL);
	channel_free(ch);
	call_callers_free(t.callers);
	call_relay_free(t.relay);
	channel_free(t.agent);
	channel_free(t.gateway);
	close(fds[1]);
	return 0;
}
