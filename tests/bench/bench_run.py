#!/usr/bin/env python3
"""Benchmarks of whole runs: bench_run.py BUILD [JSON-FILE] [--quick]

Start to first request, overhead of a round at two sizes of history beside its floor in the same run, the cost of a
hook, CPU of a run, memory per process, and many agents at once. Figures are printed as a table and written as JSON; nothing
fails on a time.
"""
import glob
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from model_server import ModelServer  # noqa: E402

REPORT = ("report", {"status": "done", "summary": "done"})
TRUE = ("shell", {"command": "true"})


class Bench:
    def __init__(self, build, scratch):
        self.build, self.scratch = build, scratch
        self.baton = f"{build}/orchestrator/baton"
        self.rows = []
        self.hooks = ""

    def env(self, url):
        """The user's configuration: hooks of the user need no trust."""
        home = f"{self.scratch}/home"
        os.makedirs(f"{home}/.config/baton", exist_ok=True)
        with open(f"{home}/.config/baton/config.yaml", "w") as f:
            f.write(f"providers:\n  bench: {{api: anthropic, base_url: '{url}'}}\n{self.hooks}")
        return {"HOME": home, "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "TMPDIR": self.scratch,
                "XDG_STATE_HOME": f"{self.scratch}/state"}

    def repository(self, files):
        path = tempfile.mkdtemp(dir=self.scratch, prefix="repo-")
        for i in range(files):
            with open(f"{path}/file{i:03}.c", "w") as f:
                f.write(f"int value{i}(void)\n{{\n\treturn {i};\n}}\n")
        git = ["git", "-C", path, "-c", "user.name=b", "-c", "user.email=b@example.org"]
        for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "base"]):
            subprocess.run(git + command, check=True)
        return path

    def run(self, server, repo, *args, command="run"):
        full = [self.baton, command, "-C", repo, "--model", "bench/bench", "--window", "1000000", "--quiet", *args]
        return subprocess.Popen(full, env=self.env(server.url), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def add(self, name, value, unit, note=""):
        self.rows.append({"name": name, "value": round(value, 3), "unit": unit, "note": note})
        print(f"  {name:<52} {value:>10.2f} {unit:<5} {note}", flush=True)

    # ---- the measurements ----

    def first_request(self, times, warm_up):
        """A virtual processor that has slept runs at two thirds of its speed for the first seconds, whatever runs
        on it: the first runs are a figure of their own."""
        repo, figures = self.repository(20), []
        while len(figures) < warm_up + times:
            server = ModelServer(lambda turn: [REPORT])
            start = time.monotonic_ns()
            self.run(server, repo, "task").wait()
            figures.append((server.arrivals[0] - start) / 1e6)
            server.close()
        self.add("start to first model request, 20 files", statistics.median(figures[-times:]), "ms",
                 f"median of {times} after {warm_up} others")
        self.add("  the first five", statistics.median(figures[:5]), "ms")

    def shell_environment(self, repo):
        """What a command of an agent finds in its environment: the locale alone costs bash 25 opened files."""
        server = ModelServer(lambda turn: [REPORT] if turn else [("shell", {"command": "env -0"})])
        self.run(server, repo, "task").wait()
        server.close()
        path = max(glob.glob(f"{repo}/.git/baton/runs/*/agents/a1/1/results/shell-1.txt"), key=os.path.getmtime)
        with open(path) as f:
            return dict(pair.split("=", 1) for pair in f.read().split("\0") if "=" in pair)

    def floor(self, repo):
        """The same command in the same box with the same environment, started by a program that does nothing else."""
        box, folders = f"{self.build}/worktrees/box/baton-box", []
        for option, name in (("--write", "worktree"), ("--write", "git"), ("--write", "scratch"), ("--write", "cache"),
                             ("--read", "results"), ("--read", "objects")):
            os.makedirs(f"{self.scratch}/floor/{name}", exist_ok=True)
            folders += [option, f"{self.scratch}/floor/{name}"]
        out = subprocess.run([f"{self.build}/tests/bench/bench_baseline", "41", self.scratch, box, "--level", "auto", *folders,
                              "--network", "none", "--", "/bin/bash", "-c", "true"],
                             capture_output=True, text=True, check=True, env=self.shell_environment(repo))
        figures = json.loads(out.stdout)
        return figures["command_us"] / 1e3, figures["two_syncs_us"] / 1e3

    def rounds(self, repo, count, task_bytes):
        task = f"{self.scratch}/task.txt"
        with open(task, "w") as f:
            line = "The quick brown fox jumps over the lazy dog and goes on to the next line of text.\n"
            f.write("Task\n" + line * (task_bytes // len(line)))
        # Commands differ, so that no loop detection steps in.
        server = ModelServer(lambda turn: [REPORT] if turn >= count else [("shell", {"command": f"true {turn}"})])
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        start = time.monotonic_ns()
        self.run(server, repo, "--file", task).wait()
        wall = (time.monotonic_ns() - start) / 1e6
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        gaps = [(a - e) / 1e6 for e, a in zip(server.ends, server.arrivals[1:])]
        server.close()
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return statistics.median(gaps), cpu, wall

    def round_overhead(self, count):
        repo = self.repository(20)
        command, syncs = self.floor(repo)
        self.add("bash -c true in the same box", command, "ms")
        self.add("two fdatasyncs", syncs, "ms")
        for name, size in (("10,000", 40_000), ("150,000", 600_000)):
            gap, cpu, wall = self.rounds(repo, count, size)
            self.add(f"a round with `true`, {name} tokens of history", gap, "ms")
            self.add(f"  above the two lines before", gap - command - syncs, "ms")
            self.add(f"  CPU seconds of {count} rounds, all processes", cpu, "s", f"wall {wall / 1e3:.2f} s")

    def hook_cost(self, count):
        """M6: what a PreToolUse hook that says nothing adds to a round, and one that never matches."""
        repo, gaps = self.repository(20), {}
        for name, matcher in (("none", None), ("no match", "write"), ("true", "shell")):
            self.hooks = "" if matcher is None else f"hooks: {{PreToolUse: [{{matcher: {matcher}, command: 'true'}}]}}\n"
            gaps[name] = self.rounds(repo, count, 40_000)[0]
        self.hooks = ""
        self.add("a PreToolUse hook `true` adds to a round", gaps["true"] - gaps["none"], "ms")
        self.add("  one that does not match", gaps["no match"] - gaps["none"], "ms")

    def many(self, agents, turns):
        repo = self.repository(2)
        for i in range(agents):
            with open(f"{repo}/new{i:03}.c", "w") as f:
                f.write("".join(f"int changed{i}_{k}(void) {{ return {k}; }}\n" for k in range(10)))
        server = ModelServer(lambda turn: [REPORT] if turn >= turns else [("read", {"path": f"new{turn:03}.c"})])
        start = time.monotonic_ns()
        process = self.run(server, repo, "--worktree", "--verify", "off", "--agents", str(agents), "--shard-tokens", "200",
                           command="review")
        status = process.wait()
        wall = (time.monotonic_ns() - start) / 1e9
        report = subprocess.run([self.baton, "show", "-C", repo, "--json"], env=self.env(server.url), capture_output=True,
                                text=True)
        done = sum(a["status"] == "done" for a in json.loads(report.stdout)["agents"])
        server.close()
        self.add(f"{agents} agents of {turns + 1} rounds at once", wall, "s", f"exit {status}, {done} reports home")

    def pss_of(self, root):
        """PSS in KiB of all processes below root, by program."""
        total, kids = 0, {}
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/stat") as f:
                    kids.setdefault(int(f.read().rsplit(")", 1)[1].split()[1]), []).append(int(pid))
            except OSError:
                continue
        todo = [root]
        while todo:
            pid = todo.pop()
            todo += kids.get(pid, [])
            try:
                with open(f"/proc/{pid}/smaps_rollup") as f:
                    total += next(int(line.split()[1]) for line in f if line.startswith("Pss:"))
            except OSError:
                continue
        return total

    def memory(self, agents, turns=0):
        """PSS while all agents wait for the model: at their first request, or after so many rounds of tools."""
        repo = self.repository(2)
        for i in range(agents):
            with open(f"{repo}/new{i:03}.c", "w") as f:
                f.write("".join(f"int changed{i}_{k}(void) {{ return {k}; }}\n" for k in range(10)))
        server = ModelServer(lambda turn: [REPORT] if turn >= turns else [("read", {"path": "new000.c", "limit": turn + 1})])
        server.hold_turn = turns
        server.hold.clear()
        process = self.run(server, repo, "--worktree", "--verify", "off", "--agents", str(agents), "--shard-tokens", "200",
                           command="review")
        deadline = time.monotonic() + 60
        while server.held < agents and time.monotonic() < deadline:
            threading.Event().wait(0.01)
        if server.held < agents:
            raise RuntimeError(f"{server.held} of {agents} agents came as far as they should")
        pss = self.pss_of(process.pid)
        live = server.held
        server.hold.set()
        process.wait()
        server.close()
        return pss / 1024, live

    def all_memory(self):
        one, _ = self.memory(1)
        self.add("all processes of a run of one agent, PSS", one, "MiB")
        nine, live = self.memory(9)
        self.add("each further agent, PSS", (nine - one) / (live - 1), "MiB", f"from {live} agents waiting")
        one, _ = self.memory(1, 20)
        nine, live = self.memory(9, 20)
        self.add("each further agent that has worked, PSS", (nine - one) / (live - 1), "MiB", f"{live} agents, 20 rounds each")


def main():
    args = [a for a in sys.argv[1:] if not a.startswith("--")]
    quick = "--quick" in sys.argv
    if len(args) < 1:
        print(__doc__)
        return 2
    with tempfile.TemporaryDirectory(prefix="baton-bench-") as scratch:
        bench = Bench(os.path.abspath(args[0]), scratch)
        bench.first_request(3 if quick else 15, 0 if quick else 20)
        bench.round_overhead(5 if quick else 30)
        bench.hook_cost(5 if quick else 30)
        bench.all_memory()
        for agents in (8,) if quick else (8, 64, 256):
            bench.many(agents, 3 if quick else 9)
        rows = bench.rows
    if len(args) > 1:
        with open(args[1], "w") as f:
            json.dump(rows, f, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
