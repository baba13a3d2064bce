/*
 * trace.c - the loop of the tracer: every stop of every process of the command comes by here.
 *
 * PTRACE_SEIZE and not TRACEME: only so a process that is stopped by SIGSTOP (baton stops strays before it kills them)
 * stays stopped. New processes and threads are attached by the kernel before they run, and their first stop may be seen
 * before their maker's event; so whichever comes first makes the entry. PTRACE_O_EXITKILL: when the tracer dies, so do
 * all.
 *
 * A traced call stops before it happens (the seccomp event). There the observers are asked; the stop after it follows only
 * if somebody wants it. A call that must not happen gets the number -1 and its result put in afterwards.
 */
#include "tests/faults/trace.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "tests/faults/trace_calls.h"
#include "tests/faults/trace_role.h"

enum {
	LEFT_S = 5,
	OPTIONS = PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE |
		  PTRACE_O_TRACEEXEC | PTRACE_O_TRACESECCOMP | PTRACE_O_TRACESYSGOOD |
		  PTRACE_O_EXITKILL
};

struct tracee {
	pid_t tid, pid;
	struct trace_role *role;
	struct trace_event *call; /* between entry and exit, if the exit is waited for */
	struct trace_strings *strings;
	int failure; /* the call does not happen and returns this: -errno, 0 for success, 1: it happens */
	bool torn; /* killed at its exit */
};

struct trace {
	const struct trace_observer *observers;
	size_t n_observers;
	bool exits, tools;
	struct trace_roles roles;
	struct tracee **list;
	size_t n, cap;
	pid_t command;
	bool command_ended, all_killed;
	struct trace_end *end;
};

static volatile sig_atomic_t alarm_rang;

static void on_alarm(int sig)
{
	alarm_rang = 1;
}

/* --- the processes --- */

static struct tracee *find(struct trace *t, pid_t tid)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->list[i]->tid == tid)
			return t->list[i];
	return NULL;
}

/* A line of /proc/TID/status; 0 if it is gone. */
static pid_t status_of(pid_t tid, const char *field)
{
	char name[64], line[256];
	int value = 0;

	snprintf(name, sizeof(name), "/proc/%d/status", tid);
	FILE *f = fopen(name, "re");
	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, field, strlen(field)) == 0)
			sscanf(line + strlen(field), " %d", &value);
	if (f)
		fclose(f);
	return value;
}

static struct tracee *add(struct trace *t, pid_t tid, struct trace_role *parent)
{
	struct tracee *p = mem_alloc(sizeof(*p));

	p->tid = tid;
	p->pid = status_of(tid, "Tgid:");
	if (!p->pid)
		p->pid = tid;
	struct tracee *maker = find(t, p->pid == tid ? status_of(tid, "PPid:") : p->pid);
	if (!parent && maker)
		parent = maker->role;
	p->role = p->pid == tid ? trace_role_forked(&t->roles, parent) : parent;
	if (!p->role)
		p->role = trace_role_forked(&t->roles, NULL);
	p->failure = 1;
	MEM_GROW(t->list, t->cap, t->n + 1);
	t->list[t->n++] = p;
	return p;
}

static void free_tracee(struct tracee *p)
{
	free(p->call);
	free(p->strings);
	free(p);
}

static void drop(struct trace *t, pid_t tid)
{
	for (size_t i = 0; i < t->n; i++) {
		if (t->list[i]->tid == tid) {
			free_tracee(t->list[i]);
			t->list[i] = t->list[--t->n];
			return;
		}
	}
}

static void kill_all(struct trace *t)
{
	t->all_killed = true;
	for (size_t i = 0; i < t->n; i++)
		kill(t->list[i]->pid, SIGKILL);
}

/* --- observers --- */

static int ask(struct trace *t, const struct tracee *p, const struct trace_event *e)
{
	int order = TRACE_GO;

	for (size_t i = 0; i < t->n_observers && !t->all_killed; i++) {
		const struct trace_observer *o = &t->observers[i];
		if ((!e->entry && !o->exits) || (p->role->tool && !o->tools))
			continue;
		int said = o->event(o->arg, e);
		if (order == TRACE_GO)
			order = said;
	}
	return order;
}

static void follow(struct trace *t, struct tracee *p, int order)
{
	if (order == TRACE_KILL_ALL)
		kill_all(t);
	else if (order == TRACE_KILL)
		kill(p->pid, SIGKILL);
}

/* --- stops --- */

static void resume(struct tracee *p, int request, int sig)
{
	ptrace(request, p->tid, NULL,
	       (void *)(long)sig); /* NOLINT; it may have been killed meanwhile */
}

/* Half of the bytes; a message and a vector of parts cannot be cut by a register and go whole. */
static void halve(struct user_regs_struct *regs, const struct trace_event *e)
{
	if (strcmp(e->call, "write") == 0 || strcmp(e->call, "pwrite64") == 0 ||
	    strcmp(e->call, "sendto") == 0)
		regs->rdx /= 2;
}

/* What has to be changed in the registers before the call. True: its exit has to be seen. */
static bool prepare(struct tracee *p, struct user_regs_struct *regs, const struct trace_event *e,
		    int order)
{
	if (order < 0) {
		p->failure = order;
		regs->orig_rax = (unsigned long long)-1;
	} else if (order == TRACE_TEAR) {
		p->torn = true;
		halve(regs, e);
	} else {
		return false;
	}
	ptrace(PTRACE_SETREGS, p->tid, NULL, regs);
	return true;
}

static void remember_call(struct tracee *p, const struct trace_event *e,
			  const struct trace_strings *s)
{
	if (!p->call) {
		p->call = mem_alloc(sizeof(*p->call));
		p->strings = mem_alloc(sizeof(*p->strings));
	}
	*p->call = *e;
	/* Where the strings are, not the strings: another stop of another process uses the buffers that these lie in. */
	snprintf(p->strings->path, sizeof(p->strings->path), "%s", s->path);
	snprintf(p->strings->path2, sizeof(p->strings->path2), "%s", s->path2);
	p->call->path = e->path ? p->strings->path : NULL;
	p->call->path2 = e->path2 ? p->strings->path2 : NULL;
}

static void on_hiding(struct tracee *p, struct user_regs_struct *regs)
{
	regs->orig_rax = (unsigned long long)-1;
	ptrace(PTRACE_SETREGS, p->tid, NULL, regs);
	p->failure = 0;
	resume(p, PTRACE_SYSCALL, 0);
}

static void on_entry(struct trace *t, struct tracee *p)
{
	static struct trace_strings strings;
	struct user_regs_struct regs;
	struct trace_event e;

	if (ptrace(PTRACE_GETREGS, p->tid, NULL, &regs) < 0)
		return;
	if (trace_hides(&regs)) {
		on_hiding(p, &regs);
		return;
	}
	strings.path[0] = strings.path2[0] = '\0';
	if ((p->role->tool && !t->tools) || !trace_decode(p->tid, &regs, &e, &strings)) {
		resume(p, PTRACE_CONT, 0);
		return;
	}
	e.pid = p->pid;
	p->role = trace_role_touched(&t->roles, p->role, e.path);
	e.process = p->role->name;
	e.ordinal = ++p->role->counts[e.op];
	int order = ask(t, p, &e);
	bool changed = prepare(p, &regs, &e, order);
	follow(t, p, order);
	if (t->exits)
		remember_call(p, &e, &strings);
	resume(p, changed || t->exits ? PTRACE_SYSCALL : PTRACE_CONT, 0);
}

static void on_exit_of_call(struct trace *t, struct tracee *p)
{
	struct user_regs_struct regs;

	if (ptrace(PTRACE_GETREGS, p->tid, NULL, &regs) < 0)
		return;
	if (p->failure <= 0) {
		regs.rax = (unsigned long long)(long)p->failure;
		ptrace(PTRACE_SETREGS, p->tid, NULL, &regs);
		p->failure = 1;
	}
	if (p->call && p->call->entry) {
		p->call->entry = false;
		p->call->result = (long)regs.rax;
		if (p->call->op == TRACE_WRITE)
			p->call->offset = trace_write_offset(p->call);
		follow(t, p, ask(t, p, p->call));
	}
	if (p->torn)
		kill(p->pid, SIGKILL);
	p->torn = false;
	resume(p, PTRACE_CONT, 0);
}

/* The first stop of a new process, or one that was stopped by a signal and waits for SIGCONT. */
static void on_event_stop(struct tracee *p, int sig)
{
	bool stopped = sig == SIGSTOP || sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU;

	resume(p, stopped ? PTRACE_LISTEN : PTRACE_CONT, 0);
}

static void on_stop(struct trace *t, struct tracee *p, int status)
{
	int sig = WSTOPSIG(status), event = status >> 16;
	unsigned long made = 0;

	if (sig == (SIGTRAP | 0x80)) {
		on_exit_of_call(t, p);
	} else if (event == PTRACE_EVENT_SECCOMP) {
		on_entry(t, p);
	} else if (event == PTRACE_EVENT_STOP) {
		on_event_stop(p, sig);
	} else if (event) {
		if (event == PTRACE_EVENT_EXEC)
			p->role = trace_role_executed(&t->roles, p->role, p->pid);
		else if (ptrace(PTRACE_GETEVENTMSG, p->tid, NULL, &made) == 0 &&
			 !find(t, (pid_t)made))
			add(t, (pid_t)made, p->role);
		/* The fork's own exit is still to come. */
		resume(p, p->call && p->call->entry ? PTRACE_SYSCALL : PTRACE_CONT, 0);
	} else {
		resume(p, p->call && p->call->entry ? PTRACE_SYSCALL : PTRACE_CONT, sig);
	}
}

static void on_status(struct trace *t, pid_t tid, int status)
{
	struct tracee *p = find(t, tid);

	if (WIFSTOPPED(status)) {
		if (!p)
			p = add(t, tid, NULL);
		if (t->all_killed)
			kill(p->pid, SIGKILL);
		on_stop(t, p, status);
		return;
	}
	drop(t, tid);
	if (tid == t->command) {
		t->command_ended = true;
		t->end->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
		alarm(LEFT_S);
	}
}

/* --- start and end --- */

static void report_left(struct trace *t)
{
	char command[512], name[64];

	for (size_t i = 0; i < t->n; i++) {
		const struct tracee *p = t->list[i];
		if (p->tid != p->pid)
			continue;
		snprintf(name, sizeof(name), "/proc/%d/cmdline", p->pid);
		FILE *f = fopen(name, "re");
		size_t n = f ? fread(command, 1, sizeof(command) - 1, f) : 0;
		if (f)
			fclose(f);
		for (size_t at = 0; at < n; at++)
			command[at] = command[at] ? command[at] : ' ';
		command[n] = '\0';
		fprintf(stderr, "left: %d %s: %s\n", p->pid, p->role->name, command);
		t->end->left++;
	}
}

/* The limit is over, or what outlived the command has had its time. */
static void on_rung(struct trace *t)
{
	alarm_rang = 0;
	if (t->all_killed)
		return;
	if (t->command_ended)
		report_left(t);
	else
		t->end->timed_out = true;
	kill_all(t);
}

static void loop(struct trace *t)
{
	int status;

	for (;;) {
		if (alarm_rang)
			on_rung(t);
		pid_t tid = waitpid(-1, &status, __WALL);
		if (tid > 0)
			on_status(t, tid, status);
		else if (errno == ECHILD)
			return;
	}
}

/* Waits to be seized before it installs the filter: a filtered call without a tracer fails. */
static _Noreturn void become_command(char *const argv[], int go)
{
	char byte;

	if (read(go, &byte, 1) != 1 || trace_filter_install() < 0)
		_exit(126);
	close(go);
	execvp(argv[0], argv);
	fprintf(stderr, "cannot start '%s': %s\n", argv[0], strerror(errno));
	_exit(127);
}

static int seize(struct trace *t, char *const argv[], struct err *err)
{
	int go[2];

	fflush(NULL);
	if (pipe(go) < 0)
		return err_sys(err, "cannot make a pipe");
	pid_t pid = fork();
	if (pid < 0)
		return err_sys(err, "cannot fork");
	if (pid == 0) {
		close(go[1]);
		become_command(argv, go[0]);
	}
	close(go[0]);
	AUTO_FD int start = go[1];
	if (ptrace(PTRACE_SEIZE, pid, NULL, (void *)(long)OPTIONS) < 0) { /* NOLINT */
		int why = errno;
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		return err_set(err, ERR_UNSUPPORTED, "this machine refuses ptrace: %s",
			       strerror(why));
	}
	t->command = pid;
	add(t, pid, NULL)->role = trace_role_first(&t->roles);
	if (write(start, "g", 1) != 1)
		return err_sys(err, "cannot start the command");
	return 0;
}

static void set_alarm(unsigned limit_s)
{
	struct sigaction action = {.sa_handler =
					   on_alarm}; /* without SA_RESTART: waitpid returns */

	sigemptyset(&action.sa_mask);
	sigaction(SIGALRM, &action, NULL);
	alarm_rang = 0;
	alarm(limit_s);
}

int trace_run(char *const argv[], unsigned limit_s, const struct trace_observer *observers,
	      size_t n, struct trace_end *ret, struct err *err)
{
	struct trace_end end = {0};
	struct trace t = {.observers = observers, .n_observers = n, .end = &end};

	for (size_t i = 0; i < n; i++) {
		t.exits |= observers[i].exits;
		t.tools |= observers[i].tools;
	}
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0,
	      0); /* who outlives the command is seen, wherever it hid */
	set_alarm(limit_s);
	int status = seize(&t, argv, err);
	if (status == 0)
		loop(&t);
	alarm(0);
	for (size_t i = 0; i < t.n; i++)
		free_tracee(t.list[i]);
	free(t.list);
	trace_roles_release(&t.roles);
	if (status == 0)
		*ret = end;
	return status;
}
