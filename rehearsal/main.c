/*
 * main.c - baton-rehearse: the scripted model as a process.
 *
 * `baton run --model rehearsal:FILE` starts it for one run, `baton rehearse FILE` for a user. It
 * says where it listens in one line of JSON, and it ends on SIGTERM, SIGINT, or when the descriptor
 * given by --watch-fd reaches its end: its starter holds the other side, so it cannot be left
 * behind.
 */
#include <event2/event.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "rehearsal/quirks.h"
#include "rehearsal/server.h"

struct options {
	const char *scenario;
	struct service_opts service;
	int64_t port, ready_fd, watch_fd;
	bool check;
};

static const char usage_text[] =
	"Usage: baton-rehearse [OPTION]... SCENARIO\n"
	"A scripted model server on 127.0.0.1 that speaks the Anthropic and the OpenAI "
	"protocol.\n\n"
	"  --port N       port to listen on (0, the default: any free one)\n"
	"  --ready-fd N   write the line with the address to this descriptor (default: stdout)\n"
	"  --watch-fd N   end when this descriptor reaches its end\n"
	"  --log FILE     append each request and decision as JSON Lines; keys never stand in it\n"
	"  --log-bodies   with the whole bodies of requests\n"
	"  --window N     enforce this context window instead of the scenario's\n"
	"  --check        read the scenario, report mistakes, and end\n"
	"  --quirks       list the names of quirks, and end\n"
	"  --help         this text\n";

static int parse_number(const char *name, const char *text, int64_t max, int64_t *ret,
			struct err *err)
{
	int64_t value;

	if (text_parse_count(text, &value) < 0 || value < 0 || value > max)
		return err_set(err, ERR_USAGE, "option '%s' needs a number, not '%s'", name, text);
	*ret = value;
	return 0;
}

/* Returns 1 if there is nothing more to do. */
static int parse_options(int argc, char **argv, struct options *o, struct err *err)
{
	static const struct option longs[] = {
		{"port", required_argument, NULL, 'p'},
		{"ready-fd", required_argument, NULL, 'r'},
		{"watch-fd", required_argument, NULL, 'f'},
		{"log", required_argument, NULL, 'l'},
		{"log-bodies", no_argument, NULL, 'b'},
		{"window", required_argument, NULL, 'w'},
		{"check", no_argument, NULL, 'c'},
		{"quirks", no_argument, NULL, 'q'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	int c, bad = 0;

	while (!bad && (c = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
		switch (c) {
		case 'p': bad = parse_number("--port", optarg, 65535, &o->port, err); break;
		case 'r':
			bad = parse_number("--ready-fd", optarg, 1 << 20, &o->ready_fd, err);
			break;
		case 'f':
			bad = parse_number("--watch-fd", optarg, 1 << 20, &o->watch_fd, err);
			break;
		case 'w':
			bad = parse_number("--window", optarg, INT32_MAX, &o->service.window, err);
			break;
		case 'l': o->service.log = optarg; break;
		case 'b': o->service.log_bodies = true; break;
		case 'c': o->check = true; break;
		case 'q':
			for (size_t i = 0; quirk_names()[i]; i++)
				puts(quirk_names()[i]);
			return 1;
		case 'h': fputs(usage_text, stdout); return 1;
		default: return err_set(err, ERR_USAGE, "see baton-rehearse --help");
		}
	}
	if (!bad && optind + 1 != argc)
		return err_set(err, ERR_USAGE,
			       "one scenario file is needed; see baton-rehearse --help");
	o->scenario = bad ? NULL : argv[optind];
	return bad;
}

static void on_end(evutil_socket_t fd, short what, void *arg)
{
	event_base_loopbreak(arg);
}

/* Bytes on the watched descriptor mean nothing; its end means that the starter is gone. */
static void on_watch(evutil_socket_t fd, short what, void *arg)
{
	char bytes[256];
	ssize_t n = read(fd, bytes, sizeof(bytes));

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		event_base_loopbreak(arg);
}

/* Written after the port is open, so whoever read the line can connect. */
static int announce(const struct options *o, uint16_t port, struct err *err)
{
	AUTO_FREE char *line =
		mem_printf("{\"url\":\"http://127.0.0.1:%u\",\"port\":%u}\n", port, port);
	int fd = (int)o->ready_fd;

	if (file_write_all(fd, line, strlen(line), err) < 0)
		return err_prefix(err, "cannot tell where the server listens");
	if (fd > STDERR_FILENO)
		close(fd);
	return 0;
}

static int serve(const struct options *o, struct event_base *base, struct service *service,
		 struct err *err)
{
	struct event *term = evsignal_new(base, SIGTERM, on_end, base);
	struct event *interrupt = evsignal_new(base, SIGINT, on_end, base);
	struct event *watch = NULL;
	struct server *server = NULL;
	int result;

	evsignal_add(term, NULL);
	evsignal_add(interrupt, NULL);
	if (o->watch_fd >= 0) {
		fcntl((int)o->watch_fd, F_SETFL, fcntl((int)o->watch_fd, F_GETFL) | O_NONBLOCK);
		watch = event_new(base, (int)o->watch_fd, EV_READ | EV_PERSIST, on_watch, base);
		event_add(watch, NULL);
	}
	result = server_new(base, service, (uint16_t)o->port, &server, err);
	if (result == 0)
		result = announce(o, server_port(server), err);
	if (result == 0)
		event_base_dispatch(base);
	server_free(server);
	if (watch)
		event_free(watch);
	event_free(term);
	event_free(interrupt);
	return result;
}

static int run(const struct options *o, struct err *err)
{
	struct scenario *scenario;
	struct service *service;
	struct event_base *base;
	int result;

	/* Whatever keeps a scenario from being read is for its author to mend. */
	if (scenario_load(o->scenario, &scenario, err) < 0) {
		err->code = ERR_USAGE;
		return -1;
	}
	if (o->check) {
		printf("%s: no mistakes\n", o->scenario);
		scenario_free(scenario);
		return 0;
	}
	if (service_new(scenario, &o->service, &service, err) < 0)
		return -1;
	base = event_base_new();
	result = serve(o, base, service, err);
	event_base_free(base);
	service_free(service);
	return result;
}

int main(int argc, char **argv)
{
	struct options o = {.ready_fd = STDOUT_FILENO, .watch_fd = -1};
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	struct err err = ERR_INIT;
	int parsed;

	log_init("rehearsal", LOG_INFO);
	sigaction(SIGPIPE, &ignore, NULL);
	sigaction(SIGXFSZ, &ignore, NULL); /* a log that may not grow is no reason to die */
	parsed = parse_options(argc, argv, &o, &err);
	if (parsed > 0)
		return 0;
	if (parsed < 0 || run(&o, &err) < 0) {
		fprintf(stderr, "baton-rehearse: %s\n", err.message);
		return err.code == ERR_USAGE ? 2 : 1;
	}
	return 0;
}
