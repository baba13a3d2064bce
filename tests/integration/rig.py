"""What the integration tests share: a world of its own for each test, real programs, and waiting.

A test gets a World: a folder with HOME, XDG folders and repositories of its own. It starts the real
`baton`, which starts the real gateway, baton-git, agents and a scripted model server. Nothing is
replaced. The test process is a subreaper, so whatever a run leaves behind becomes its child and is
seen by World.strays(), however it hid: by its session, its environment or its folder.

Scenarios are written as Python values and stored as JSON, which is YAML.

No test sleeps: wait_for() looks at a condition until a deadline.
"""
import ctypes
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import urllib.request

# A shell that starts jobs in the background gives them an ignored SIGINT, which every child would inherit.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

BUILD = os.environ.get("BATON_BUILD") or os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
BATON = os.path.join(BUILD, "orchestrator", "baton")
HERE = os.path.dirname(os.path.abspath(__file__))
SLOW = float(os.environ.get("BATON_TEST_SLOW", "1"))  # factor for deadlines: sanitizers, a loaded machine
# Under the sanitizers, which look into the same code each time, tests play fewer cases of one kind, and those of
# test_plain are left out and counted.
FEWER = bool(os.environ.get("BATON_TEST_FEWER"))

PR_SET_CHILD_SUBREAPER = 36
ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def example_file(example, name):
    """A file of examples/: beside this one in the build folder (meson.build copies it), else in the sources."""
    copied = os.path.join(HERE, f"examples-{example}-{name}")
    return copied if os.path.exists(copied) else os.path.join(HERE, "../../examples", example, name)


class Failure(Exception):
    """A condition of a test does not hold."""


def check(condition, text, *more):
    if not condition:
        raise Failure(text + "".join("\n    " + str(m) for m in more))


def equal(got, expected, what, *more):
    check(got == expected, f"{what}: expected {expected!r}, got {got!r}", *more)


def wait_for(condition, what, seconds=30, more=None):
    """Waits until condition() is true and returns its value; a Failure after the deadline."""
    deadline = time.monotonic() + seconds * SLOW
    pause = threading.Event()
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise Failure(f"not within {seconds * SLOW:.0f} s: {what}" + (f"\n{more()}" if more else ""))
        pause.wait(0.02)


# ---- processes


def stat_of(pid):
    """(parent, state, process group, session, name) of a process; None if it is gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            text = f.read()
    except OSError:
        return None
    name = text[text.index("(") + 1:text.rindex(")")]
    rest = text[text.rindex(")") + 2:].split()
    return int(rest[1]), rest[0], int(rest[2]), int(rest[3]), name


def all_processes():
    found = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            stat = stat_of(entry)
            if stat:
                found[int(entry)] = stat
    return found


def descendants(root, processes=None):
    processes = processes or all_processes()
    children = {}
    for pid, stat in processes.items():
        children.setdefault(stat[0], []).append(pid)
    found, todo = [], [root]
    while todo:
        for pid in children.get(todo.pop(), []):
            found.append(pid)
            todo.append(pid)
    return found


def alive(pid):
    stat = stat_of(pid)
    return bool(stat) and stat[1] not in "ZX"


def command_of(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            return f.read().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""


# ---- scenarios


def call(name, **arguments):
    return {"name": name, "input": arguments}


def shell(command, **arguments):
    return call("shell", command=command, **arguments)


def report(summary="Done.", status="done", **fields):
    return call("report", status=status, summary=summary, **fields)


def answer(*calls, **fields):
    """A rule's answer with these tool calls."""
    return {"tool_calls": list(calls), **fields}


def in_turn(*answers, **match):
    """Rules that give the first answer in the first turn, the second in the second, and so on."""
    rules = [{"match": {"turn": turn, **match}, "answer": a} for turn, a in enumerate(answers)]
    return rules + [{"match": {"turn": f"{len(answers)}..", **match}, "answer": {"text": "Nothing is left to do."}}]


class Done:
    """A program that has ended."""

    def __init__(self, args, status, out, err):
        self.args, self.status, self.out, self.err = args, status, out, err

    def __str__(self):
        return f"$ {' '.join(self.args)}\nexit {self.status}\n{self.out[-6000:]}\n{self.err[-6000:]}"

    def records(self):
        return [json.loads(line) for line in self.out.splitlines()]


class Started:
    """A program that runs; its output goes to files."""

    def __init__(self, world, args, cwd, env, stdout=None):
        self.world, self.args = world, args
        self.outlives_runs = False
        self.base = world.path(f"out{len(world.started)}")
        with open(self.base + ".err", "wb") as err, open(self.base + ".out", "wb") as out:
            self.process = subprocess.Popen(args, cwd=cwd, env=env, stdin=subprocess.DEVNULL,
                                            stdout=stdout or out, stderr=err, start_new_session=True)
        world.started.append(self)

    @property
    def pid(self):
        return self.process.pid

    def text(self, which="out"):
        with open(f"{self.base}.{which}", encoding="utf-8", errors="replace") as f:
            return f.read()

    def ended(self):
        return self.process.poll() is not None

    def signal(self, sig):
        os.kill(self.process.pid, sig)

    def wait(self, seconds=60):
        wait_for(self.ended, f"end of {' '.join(self.args)}", seconds,
                 lambda: self.text("out")[-3000:] + self.text("err")[-3000:])
        return Done(self.args, self.process.returncode, self.text("out"), self.text("err"))


class Server:
    """`baton rehearse`: the scripted model as a server that outlives the run."""

    def __init__(self, world, path, *options):
        program = os.path.join(BUILD, "rehearsal", "baton-rehearse")
        self.started = world.start_program([program, *options, path])
        self.started.outlives_runs = True
        line = wait_for(lambda: self.started.text() if "\n" in self.started.text() else None,
                        "address of the rehearsal server", 20, lambda: self.started.text("err"))
        self.url = json.loads(line.splitlines()[0])["url"]

    @property
    def pid(self):
        return self.started.pid

    def stats(self):
        with urllib.request.urlopen(self.url + "/__rehearsal/stats", timeout=20) as answer_of_server:
            return json.load(answer_of_server)

    def stop(self):
        self.started.signal(signal.SIGTERM)
        self.started.wait(20)


class Run:
    """One run, seen through its journal on disk."""

    def __init__(self, world, folder):
        self.world, self.dir = world, folder
        self.id = os.path.basename(folder)

    def records(self, kind=None):
        try:
            with open(os.path.join(self.dir, "run.jsonl"), encoding="utf-8", errors="replace") as f:
                lines = f.read().split("\n")[:-1]
        except OSError:
            return []
        found = [json.loads(line) for line in lines]
        return [r for r in found if kind is None or r["type"] == kind]

    def last(self, kind):
        found = self.records(kind)
        return found[-1] if found else None

    def report(self):
        with open(os.path.join(self.dir, "report.json"), encoding="utf-8") as f:
            return json.load(f)

    def agents(self):
        return {a["agent"]: a for a in self.report()["agents"]}

    def pid(self):
        return self.records("run.started")[0]["pid"]

    def agent_pid(self, agent="a1"):
        found = [r for r in self.records("agent.spawned") if r["agent"] == agent]
        return found[-1]["pid"] if found else None

    def worktree(self, agent="a1"):
        found = [r for r in self.records("agent.spawned") if r["agent"] == agent]
        return found[-1]["worktree"] if found else None

    def branch(self, agent="a1"):
        return f"baton/{self.id}/{agent}"

    def transcript(self, agent="a1"):
        with open(os.path.join(self.dir, "agents", agent, "1", "transcript.jsonl"), encoding="utf-8") as f:
            return [json.loads(line) for line in f]

    def results(self, agent="a1"):
        """(tool name, text) of each tool result, in order."""
        return [(b["name"], b.get("text", "")) for r in self.transcript(agent) if r["type"] == "message"
                for b in r["blocks"] if b["kind"] == "tool_result"]

    def tools(self, agent="a1"):
        return [r["data"] for r in self.records("agent.tool") if r["agent"] == agent]

    def children(self):
        """Living processes below the parent: {name: [pid]}, named by program or by `baton WORD`."""
        found = {}
        for pid in descendants(self.pid()):
            words = command_of(pid).split(" ")
            name = os.path.basename(words[0]) if words[0] else ""
            if name == "baton" and len(words) > 1:
                name = words[1]
            if name:
                found.setdefault(name, []).append(pid)
        return found

    def __str__(self):
        return "\n".join(json.dumps(r)[:300] for r in self.records()[-25:])


templates = {}  # files of a repository -> a folder with it


class World:
    def __init__(self):
        self.dir = os.path.realpath(tempfile.mkdtemp(prefix="baton-test-"))
        self.started, self.stderr = [], []
        self.scenarios = 0
        self.env = {k: v for k, v in os.environ.items()
                    if not re.match(r"BATON_|XDG_|GIT_|ANTHROPIC_|OPENAI_|NO_COLOR|.*_(proxy|PROXY)$", k)}
        for name in ("home", "config/baton", "state", "cache", "tmp"):
            os.makedirs(self.path(name))
        self.env.update(HOME=self.path("home"), XDG_CONFIG_HOME=self.path("config"), XDG_STATE_HOME=self.path("state"),
                        XDG_CACHE_HOME=self.path("cache"), TMPDIR=self.path("tmp"), LANG="C.UTF-8", TZ="UTC",
                        GIT_CONFIG_NOSYSTEM="1", GIT_AUTHOR_DATE="2026-03-01T10:00:00Z",
                        GIT_COMMITTER_DATE="2026-03-01T10:00:00Z")
        with open(self.path("home/.gitconfig"), "w", encoding="utf-8") as f:
            f.write("[user]\n\tname = Ada Example\n\temail = ada@example.org\n[init]\n\tdefaultBranch = main\n")
        self.repo = self.path("repo")

    def path(self, name):
        return os.path.join(self.dir, name)

    def write(self, name, text, mode=0o644):
        """A file in the world, or in the repository where `name` is relative to it: see files()."""
        path = name if name.startswith("/") else self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(path, mode)
        return path

    def read(self, name):
        with open(name if name.startswith("/") else self.path(name), encoding="utf-8", errors="replace") as f:
            return f.read()

    def command(self, *args, cwd=None, env=None, status=0, stdin=""):
        done = subprocess.run(args, cwd=cwd or self.repo, env={**self.env, **(env or {})}, input=stdin,
                              capture_output=True, text=True, errors="replace", timeout=120 * SLOW)
        result = Done(list(args), done.returncode, done.stdout, done.stderr)
        self.stderr.append(done.stderr)
        if status is not None:
            check(done.returncode == status, f"exit status {status} was expected", result)
        return result

    def git(self, *args, cwd=None, status=0):
        return self.command("git", *args, cwd=cwd, status=status).out.rstrip("\n")

    def repository(self, files=None, *init_options):
        """With as few git commands as can be: they are a good part of the suite's time. The second repository with the
        same files is a copy of the first, whose index then learns its own files."""
        files = files or {"README.md": "A project.\n", "src/a.txt": "one\ntwo\nthree\n"}
        key = json.dumps([files, init_options])
        fresh = not os.path.isdir(self.repo) or not os.listdir(self.repo)
        if fresh and key in templates:
            shutil.copytree(templates[key], self.repo, symlinks=True, dirs_exist_ok=True)
            self.git("update-index", "-q", "--refresh")
            return
        os.makedirs(self.repo, exist_ok=True)
        self.git("init", "-q", *init_options)
        with open(os.path.join(self.repo, ".git/config"), "a", encoding="utf-8") as f:
            f.write("[user]\n\tname = Ada Example\n\temail = ada@example.org\n")
        for name, text in files.items():
            self.write(os.path.join(self.repo, name), text)
        self.git("add", "-A")
        self.git("-c", "maintenance.auto=false", "commit", "-q", "-m", "Start")
        if fresh:
            templates[key] = shutil.copytree(self.repo, tempfile.mkdtemp(prefix="baton-test-"), symlinks=True, dirs_exist_ok=True)

    def example(self, name):
        self.command("sh", example_file(name, "make-repository.sh"), self.repo, cwd=self.dir)
        return example_file(name, "scenario.yaml")

    def scenario(self, rules, **top):
        self.scenarios += 1
        return self.write(f"scenario{self.scenarios}.yaml", json.dumps({"name": "test", **top, "rules": rules}))

    def config(self, **fields):
        self.write("config/baton/config.yaml", json.dumps(fields))

    def provider(self, url, api="anthropic", key="sk-test-0123456789abcdef", **fields):
        """Makes `fake/MODEL` the provider at url, with its key in FAKE_API_KEY."""
        self.config(providers={"fake": {"api": api, "base_url": url + ("/v1" if api == "openai" else ""),
                                        "key_env": "FAKE_API_KEY", **fields}})
        self.env["FAKE_API_KEY"] = key

    def server(self, rules, *options, **top):
        path = rules if isinstance(rules, str) else self.scenario(rules, **top)
        return Server(self, path, *options)

    # ---- baton

    def baton(self, *args, status=0, **kw):
        return self.command(BATON, *args, status=status, **kw)

    def start_program(self, args, cwd=None, env=None, stdout=None):
        return Started(self, list(args), cwd or self.dir, {**self.env, **(env or {})}, stdout)

    def start(self, *args, cwd=None, env=None, stdout=None):
        return self.start_program([BATON, *args], cwd or self.repo, env, stdout)

    def runs(self):
        common = os.path.join(self.repo, ".git")
        if not os.path.isdir(common):  # bare, linked, moved elsewhere
            common = self.git("rev-parse", "--path-format=absolute", "--git-common-dir")
        folder = os.path.join(common, "baton", "runs")
        names = os.listdir(folder) if os.path.isdir(folder) else []
        return [Run(self, os.path.join(folder, n)) for n in
                sorted((n for n in names if not n.startswith(".")), key=lambda n: os.stat(os.path.join(folder, n)).st_ctime_ns)]

    def run(self):
        """The only run, or the newest."""
        found = self.runs()
        check(found, "there is no run in the repository")
        return found[-1]

    def wait_run(self, started=None):
        """The run of a baton that has just been started, once its journal is there."""
        def look():
            if started and started.ended():
                raise Failure("baton ended before its run began", started.wait())
            found = self.runs()
            return found[-1] if found and found[-1].records("run.started") else None
        return wait_for(look, "a run with a journal", 30, lambda: started.text("err") if started else "")

    def wait_tool(self, run, name, agent="a1"):
        """Waits until a shell command of the agent has made the file NAME in its worktree."""
        def look():
            folder = run.worktree(agent)
            return folder and os.path.exists(os.path.join(folder, name))
        wait_for(look, f"file '{name}' of agent {agent}", 40, lambda: str(run))

    # ---- what is left

    def strays(self):
        """Living processes that descend from this test, but for the servers that it started."""
        processes = all_processes()
        known = {s.pid for s in self.started if s.outlives_runs or s.ended()}
        found = []
        for pid in descendants(os.getpid(), processes):
            stat = processes[pid]
            if pid in known:
                continue
            if stat[1] in "ZX":
                if stat[0] == os.getpid() and all(s.pid != pid for s in self.started):
                    reap(pid)
                continue
            found.append(pid)
        return found

    def no_strays(self, seconds=5):
        wait_for(lambda: not self.strays(), "no process is left", seconds,
                 lambda: "\n".join(f"{p} {stat_of(p)} {command_of(p)}" for p in self.strays()))

    def close(self):
        for started in self.started:
            if not started.ended():
                kill_quietly(started.pid)
                started.process.wait()
        for _ in range(100):
            left = self.strays()
            if not left:
                break
            for pid in left:
                kill_quietly(pid)
        remove(self.dir)


def remove(folder):
    shutil.rmtree(folder, ignore_errors=True)
    if os.path.isdir(folder):
        subprocess.run(["chmod", "-R", "u+rwX", folder], check=False, stderr=subprocess.DEVNULL)
        shutil.rmtree(folder, ignore_errors=True)


def reap(pid):
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        pass


def kill_quietly(pid, sig=signal.SIGKILL):
    try:
        os.kill(pid, sig)
    except ProcessLookupError:
        pass


# ---- what must not change

OURS = re.compile(r"^\.git/(baton|worktrees|refs/baton|logs/refs/baton|refs/heads/baton|logs/refs/heads/baton)(/|$)")


def fingerprint(repo):
    """{path: (mode, bytes' hash)} of a checkout and its .git, without what baton may make there."""
    found = {}
    for folder, folders, files in os.walk(repo):
        for name in files + [f for f in folders if os.path.islink(os.path.join(folder, f))]:
            path = os.path.join(folder, name)
            short = os.path.relpath(path, repo)
            if OURS.match(short):
                continue
            mode = os.lstat(path).st_mode
            if os.path.islink(path):
                found[short] = (mode, os.readlink(path))
            else:
                with open(path, "rb") as f:
                    found[short] = (mode, hashlib.sha256(f.read()).hexdigest())
    return found


def unchanged(world, before, repo=None):
    """The checkout, index, refs, configuration and hooks are as they were; objects may only have come."""
    repo = repo or world.repo
    after = fingerprint(repo)
    for path in sorted(set(before) | set(after)):
        new_object = path not in before and path.startswith(".git/objects/")
        check(new_object or before.get(path) == after.get(path),
              f"'{path}' of the user's repository is not as it was",
              "before: " + str(before.get(path)), "after: " + str(after.get(path)))
    fsck = world.command("git", "fsck", "--full", "--strict", "--no-dangling", cwd=repo)
    equal(fsck.out.strip(), "", "git fsck has something to say", fsck)


# ---- the program around the tests

tests = []
plain_only = set()  # names of those that the sanitizers do not see


def test(function):
    tests.append(function)
    return function


def test_plain(function):
    """A test that the plain suite runs and the sanitized one leaves out: the lines of C that it reaches are those of
    other tests, and what it shows besides (nothing left over, a repository untouched, a message) is no matter of memory.
    README.md says how to find out whether that is true."""
    plain_only.add(function.__name__)
    return test(function)


SANITIZED = re.compile(r"ERROR: \w+Sanitizer|runtime error:")


def sanitizers_are_silent(world):
    """What a sanitizer says in any process of a run stands on a stderr that we kept or in an agent's log."""
    texts = [s.text("err") for s in world.started] + world.stderr
    for folder, _, files in os.walk(world.dir):
        texts += [world.read(os.path.join(folder, name)) for name in files if name == "stderr.log"]
    for text in texts:
        check(not SANITIZED.search(text), "a sanitizer found something", text[:6000])


def run_one(function):
    world = World()
    try:
        function(world)
        sanitizers_are_silent(world)
        return True
    except Failure as problem:
        frames = [f for f in traceback.extract_tb(problem.__traceback__) if "/rig.py" not in f.filename]
        print(problem, *[f"  {os.path.basename(f.filename)}:{f.lineno}: {f.line}" for f in frames], sep="\n")
        return False
    except Exception:  # a failed test must not hide the others
        traceback.print_exc(file=sys.stdout)
        return False
    finally:
        if os.environ.get("BATON_TEST_KEEP"):
            print(f"kept: {world.dir}")
        else:
            world.close()


def main():
    """Runs the tests of the program, or those whose names contain a word of the command line."""
    chosen = [t for t in tests if len(sys.argv) == 1 or any(word in t.__name__ for word in sys.argv[1:])]
    left_out = [t for t in chosen if FEWER and t.__name__ in plain_only]
    chosen = [t for t in chosen if t not in left_out]
    failed = []
    print(f"[==========] Running {len(chosen)} test(s).", flush=True)
    if FEWER:
        print("fewer cases of one kind (BATON_TEST_FEWER)", flush=True)
    for function in left_out:
        print(f"[ LEFT OUT ] {function.__name__}", flush=True)
    for function in chosen:
        print(f"[ RUN      ] {function.__name__}", flush=True)
        good = run_one(function)
        print(f"[{'       OK' if good else '  FAILED '} ] {function.__name__}", flush=True)
        if not good:
            failed.append(function.__name__)
    print(f"[  PASSED  ] {len(chosen) - len(failed)} test(s).", flush=True)
    for folder in templates.values():
        remove(folder)
    sys.exit(1 if failed or not (chosen or left_out) else 0)
