/*
 * services.c - starting and restarting the run's service processes. Runs in the parent.
 *
 * None of them sees the user's whole environment: each gets an allow list. Only the gateway
 * inherits the sealed memory file with the keys (I1).
 */
#include "orchestrator/services.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "orchestrator/agents.h"
#include "orchestrator/calls.h"
#include "orchestrator/project.h"
#include "orchestrator/replay.h"
#include "orchestrator/run.h"
#include "orchestrator/spare.h"

#define GATEWAY_DEATHS	 5
#define GATEWAY_DEATH_MS 60000
#define SERVICE_GRACE_MS 2000
#define VIEW_GRACE_MS	 10000 /* a terminal that takes longer loses the last lines */

static const char *const gateway_env[] = {"PATH",
					  "HOME",
					  "LANG",
					  "LC_*",
					  "TZ",
					  "TMPDIR",
					  "http_proxy",
					  "https_proxy",
					  "HTTPS_PROXY",
					  "all_proxy",
					  "ALL_PROXY",
					  "no_proxy",
					  "NO_PROXY",
					  "SSL_CERT_FILE",
					  "SSL_CERT_DIR",
					  "CURL_CA_BUNDLE",
					  "ASAN_OPTIONS",
					  "UBSAN_OPTIONS",
					  NULL};
static const char *const plain_env[] = {
	"PATH",	 "HOME",     "LANG",  "LC_*", "TZ",	      "TMPDIR",	       "TERM", "COLUMNS",
	"LINES", "NO_COLOR", "XDG_*", "USER", "ASAN_OPTIONS", "UBSAN_OPTIONS", NULL};

/* ---- gateway ---- */

static char *gateway_start_document(struct run *run)
{
	AUTO_JSON struct json_object *doc = json_object_new_object();
	struct json_object *providers = json_object_new_array();
	struct json_object *timeouts = json_object_new_object();
	struct buf out = BUF_INIT;

	json_object_array_add(providers, json_object_get(run->provider_json));
	json_set(doc, "providers", providers);
	json_set_i64(timeouts, "connect_ms", 10000);
	json_set_i64(timeouts, "bytes_idle_ms", settings_i64(run->settings, OPT_BYTES_IDLE));
	json_set_i64(timeouts, "content_idle_ms", settings_i64(run->settings, OPT_CONTENT_IDLE));
	json_set_i64(timeouts, "max_sleep_ms", settings_i64(run->settings, OPT_MAX_SLEEP));
	json_set_bool(doc, "verbose", log_is_verbose());
	json_set(doc, "timeouts", timeouts);
	json_set_i64(doc, "retries", settings_i64(run->settings, OPT_RETRIES));
	json_set_i64(doc, "backoff_ms", 500);
	json_set_i64(doc, "backoff_max_ms", 32000);
	json_write(&out, doc);
	return buf_take(&out);
}

/* Sends the start document once the provider's address is known: at its start, or when the
 * rehearsal server told its port. */
static void gateway_configure(struct run *run)
{
	AUTO_FREE char *doc = NULL;

	if (!run->gateway || !run->gateway->channel || !run->provider_json ||
	    !json_str(run->provider_json, "base_url", NULL))
		return;
	doc = gateway_start_document(run);
	channel_send(run->gateway->channel, FRAME_START, NULL, doc, strlen(doc));
}

static int on_gateway_frame(struct child *child, const struct frame *frame, struct err *err)
{
	struct run *run = child->arg;

	switch (frame->type) {
	case FRAME_HELLO: return 0;
	case FRAME_READY:
		run->gateway_ready = true;
		call_relay_gateway(run->relay, child->channel);
		call_relay_reissue(run->relay);
		return 0;
	case FRAME_NOTE: calls_note(run, frame); return 0;
	default: return calls_from_gateway(run, frame, err);
	}
}

static int gateway_spawn(struct run *run, struct err *err);

static bool too_many_deaths(struct run *run)
{
	int64_t now = clock_mono_ms();

	memmove(run->gateway_deaths + 1, run->gateway_deaths,
		sizeof(run->gateway_deaths) - sizeof(run->gateway_deaths[0]));
	run->gateway_deaths[0] = now;
	if (run->n_gateway_deaths < GATEWAY_DEATHS)
		run->n_gateway_deaths++;
	return run->n_gateway_deaths == GATEWAY_DEATHS &&
	       now - run->gateway_deaths[GATEWAY_DEATHS - 1] < GATEWAY_DEATH_MS;
}

static void on_gateway_closed(struct child *child)
{
	struct run *run = child->arg;

	call_relay_gateway(run->relay, NULL);
	run->gateway_ready = false;
}

static void on_gateway_exit(struct child *child, int status, const char *failure)
{
	struct run *run = child->arg;
	struct err err = ERR_INIT;
	char text[64];

	run->gateway = NULL;
	run->gateway_ready = false;
	if (run->state >= RUN_CLOSING)
		return;
	child_describe_exit(status, text, sizeof(text));
	log_warn("gateway %s", failure ? failure : text);
	if (run->journal)
		journal_add(run->journal, RECORD_GATEWAY_DIED, "reason:s",
			    failure ? failure : text);
	calls_gateway_died(run);
	if (too_many_deaths(run)) {
		run_stop(run, EXIT_FAILED, "the gateway died 5 times within a minute");
		return;
	}
	if (gateway_spawn(run, &err) < 0)
		run_stop(run, EXIT_FAILED, err.message);
}

static const struct child_handler gateway_handler = {
	.on_frame = on_gateway_frame,
	.on_closed = on_gateway_closed,
	.on_exit = on_gateway_exit,
};

/* One of our programs as a service with a channel. */
static int service_spawn(struct run *run, enum child_kind kind, const char *program,
			 const struct child_handler *handler, const char *const *allow,
			 enum frame_sender sender, int fd_extra, struct child **ret,
			 struct err *err)
{
	AUTO_FREE char *path = NULL;
	char **env = env_filter(allow, NULL);
	const char *argv[] = {program, NULL};

	path = file_find_program(program, err);
	struct child_spec spec = {
		.kind = kind,
		.name = child_kind_name(kind),
		.handler = handler,
		.arg = run,
		.channel = true,
		.sender = sender,
		.hello = child_kind_name(kind),
		.opts = SPAWN_OPTS_INIT,
	};
	spec.opts.path = path;
	spec.opts.argv = argv;
	spec.opts.envp = (const char *const *)env;
	spec.opts.fd_err = STDERR_FILENO;
	spec.opts.fd_extra = fd_extra;
	spec.opts.death_signal = SIGTERM;
	int rc = path ? children_spawn(run->children, &spec, ret, err) : -1;
	env_list_free(env);
	return rc;
}

static int gateway_spawn(struct run *run, struct err *err)
{
	if (service_spawn(run, CHILD_GATEWAY, "baton-gateway", &gateway_handler, gateway_env,
			  FROM_G, run->key_fd, &run->gateway, err) < 0)
		return -1;
	gateway_configure(run);
	return 0;
}

/* ---- baton-git ---- */

static int on_git_frame(struct child *child, const struct frame *frame, struct err *err)
{
	struct run *run = child->arg;

	switch (frame->type) {
	case FRAME_HELLO:
	case FRAME_READY: return 0;
	default: return git_client_frame(run->git_client, frame, err);
	}
}

static void on_git_closed(struct child *child)
{
	struct run *run = child->arg;
	struct err err = ERR_INIT;

	err_set(&err, ERR_CLOSED, "the worktree service ended");
	git_client_set_channel(run->git_client, NULL);
	git_client_fail_all(run->git_client, &err);
}

static void on_git_exit(struct child *child, int status, const char *failure)
{
	struct run *run = child->arg;
	char text[64], reason[192];

	run->git = NULL;
	if (run->state >= RUN_CLOSING)
		return;
	child_describe_exit(status, text, sizeof(text));
	snprintf(reason, sizeof(reason), "the worktree service %s", failure ? failure : text);
	run_stop(run, EXIT_FAILED, reason);
}

static const struct child_handler git_handler = {
	.on_frame = on_git_frame,
	.on_closed = on_git_closed,
	.on_exit = on_git_exit,
};

/* ---- rehearsal server ---- */

static void on_rehearsal_exit(struct child *child, int status, const char *failure)
{
	struct run *run = child->arg;
	char text[64], reason[192];

	run->rehearsal_child = NULL;
	if (run->state >= RUN_CLOSING)
		return;
	child_describe_exit(status, text, sizeof(text));
	snprintf(reason, sizeof(reason), "the rehearsal server %s (its messages stand above)",
		 text);
	/* Before it told its address the scenario was at fault. */
	bool served = json_str(run->provider_json, "base_url", NULL) != NULL;
	run_stop(run, served ? EXIT_UNREACHABLE : EXIT_USAGE, reason);
}

static const struct child_handler rehearsal_handler = {.on_exit = on_rehearsal_exit};

/* The first line of the server: its URL. */
static void on_rehearsal_line(evutil_socket_t fd, short what, void *arg)
{
	struct run *run = arg;
	AUTO_JSON struct json_object *line = NULL;

	ssize_t n = buf_read(&run->rehearsal_line, fd, 4096);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0 && !strchr(buf_str(&run->rehearsal_line), '\n'))
		return;
	event_free(run->ev_rehearsal);
	run->ev_rehearsal = NULL;
	if (n <= 0 ||
	    json_parse(run->rehearsal_line.data, run->rehearsal_line.len, &line, NULL) < 0)
		return; /* its exit tells the reason */
	const char *url = json_str(line, "url", "");
	AUTO_FREE char *base = NULL;
	bool anthropic = strcmp(json_str(run->provider_json, "api", "anthropic"), "anthropic") == 0;
	base = mem_printf("%s%s", url, anthropic ? "" : "/v1");
	json_set_str(run->provider_json, "base_url", base);
	gateway_configure(run);
}

static int rehearsal_spawn(struct run *run, struct err *err)
{
	AUTO_FREE char *path = NULL;
	AUTO_FREE char *window = NULL;
	AUTO_FD int out = -1;
	int pipefd[2];

	path = file_find_program("baton-rehearse", err);
	if (!path)
		return -1;
	if (pipe2(pipefd, O_CLOEXEC | O_NONBLOCK) < 0)
		return err_sys(err, "cannot make a pipe");
	run->rehearsal_out = pipefd[0];
	out = pipefd[1];
	int64_t tokens = settings_i64(run->settings, OPT_WINDOW);
	window = mem_printf("%lld", (long long)tokens);
	const char *argv[] = {"baton-rehearse", run->rehearsal, tokens ? "--window" : NULL, window,
			      NULL};
	char **env = env_filter(plain_env, NULL);
	struct child_spec spec = {
		.kind = CHILD_REHEARSAL,
		.name = "rehearsal",
		.handler = &rehearsal_handler,
		.arg = run,
		.opts = SPAWN_OPTS_INIT,
	};
	spec.opts.path = path;
	spec.opts.argv = argv;
	spec.opts.envp = (const char *const *)env;
	spec.opts.fd_out = out;
	spec.opts.fd_err = STDERR_FILENO;
	spec.opts.death_signal = SIGTERM;
	int rc = children_spawn(run->children, &spec, &run->rehearsal_child, err);
	env_list_free(env);
	if (rc < 0)
		return -1;
	run->ev_rehearsal = event_new(run->base, run->rehearsal_out, EV_READ | EV_PERSIST,
				      on_rehearsal_line, run);
	event_add(run->ev_rehearsal, NULL);
	return 0;
}

/* ---- view ---- */

static void on_view_exit(struct child *child, int status, const char *failure)
{
	struct run *run = child->arg;

	run->view = NULL;
	if (run->poke_fd >= 0)
		close(run->poke_fd);
	run->poke_fd = -1;
}

static const struct child_handler view_handler = {.on_exit = on_view_exit};

static const char *view_mode(const struct run *run)
{
	if (settings_flag(run->settings, OPT_JSON))
		return "json";
	if (settings_flag(run->settings, OPT_QUIET))
		return "quiet";
	if (settings_flag(run->settings, OPT_PLAIN) || !isatty(STDERR_FILENO) ||
	    env_get("NO_COLOR"))
		return "plain";
	return "live";
}

int services_start_view(struct run *run, struct err *err)
{
	AUTO_FREE char *journal = NULL;
	AUTO_FD int theirs = -1;
	int pair[2];

	if (strcmp(view_mode(run), "quiet") == 0)
		return 0;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return err_sys(err, "cannot make the view's pipe");
	run->poke_fd = pair[0];
	theirs = pair[1];
	journal = run_path(run, "run.jsonl");
	AUTO_FREE char *told =
		run->replay ? mem_printf("%lld", (long long)run->replay->size) : NULL;
	const char *argv[] = {"baton", "view", view_mode(run), journal, told, NULL};
	char **env = env_filter(plain_env, NULL);
	struct child_spec spec = {
		.kind = CHILD_VIEW,
		.name = "view",
		.handler = &view_handler,
		.arg = run,
		.opts = SPAWN_OPTS_INIT,
	};
	spec.opts.path = "/proc/self/exe";
	spec.opts.argv = argv;
	spec.opts.envp = (const char *const *)env;
	spec.opts.fd_out = STDOUT_FILENO;
	spec.opts.fd_err = STDERR_FILENO;
	spec.opts.fd_channel = theirs;
	int rc = children_spawn(run->children, &spec, &run->view, err);
	env_list_free(env);
	return rc;
}

void services_poke_view(struct run *run)
{
	if (run->poke_fd >= 0)
		(void)!send(run->poke_fd, "\n", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* ---- all ---- */

int services_start_gateway(struct run *run, struct err *err)
{
	return gateway_spawn(run, err);
}

int services_start_git(struct run *run, struct err *err)
{
	if (service_spawn(run, CHILD_GIT, "baton-git", &git_handler, plain_env, FROM_W, -1,
			  &run->git, err) < 0)
		return -1;
	AUTO_FREE char *start = project_git_start(NULL);
	channel_send(run->git->channel, FRAME_START, NULL, start, strlen(start));
	run->git_client = git_client_new(run->git->channel);
	return 0;
}

int services_start(struct run *run, struct err *err)
{
	if (run->rehearsal && rehearsal_spawn(run, err) < 0)
		return -1;
	spare_start(run);
	return 0;
}

void services_stop(struct run *run)
{
	spare_stop(run);
	children_stop_all(run->children, CHILD_GATEWAY, SERVICE_GRACE_MS);
	children_stop_all(run->children, CHILD_GIT, SERVICE_GRACE_MS);
	children_stop_all(run->children, CHILD_REHEARSAL, SERVICE_GRACE_MS);
	if (run->poke_fd >= 0) {
		close(run->poke_fd);
		run->poke_fd = -1;
	}
	/* The view ends with that pipe, after its last line. */
	if (run->view)
		child_expect_end(run->view, VIEW_GRACE_MS);
}
