#!/usr/bin/env python3
"""Lets each point of a run go wrong once (R6, X12): kills, torn writes, a full disk, a failing device; resumes, and compares
with an undisturbed run. Without options: 200 points, chosen by a seed over all kinds and jobs.

    test_faults.py                             the seeded form, as in the suite
    test_faults.py --all                       every point, with every kind that it can have
    test_faults.py --count N --seed S          others
    test_faults.py --only writer a1.1:fsync:7 kill-before [--keep]
    test_faults.py --list                      the points of each job

The end prints how many points there were, were reached and passed, for each kind. A point that another order of events kept from
being reached is counted apart.
"""
import argparse
import collections
import json
import os
import random
import re
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../integration")]

import check  # noqa: E402
import rig  # noqa: E402
from jobs import JOBS  # noqa: E402

FAULTS = os.path.join(rig.BUILD, "tests/faults/faults")
LIMIT_S = 60
SKIP = 77
MODEL = ["--model", "fake/m", "--window", "200k", "--plain"]
NO_ROOM = {"write", "create", "mkdir", "rename", "link", "truncate", "fsync"}
KINDS = {  # kind -> operations that can end so
    "kill-before": None, "kill-after": None, "kill-all": None, "tear": {"write"},
    "enospc": NO_ROOM, "eio": {"write", "fsync", "rename", "create"}, "emfile": {"create", "fork"},
}
# What was found once: (job, process:operation, what it touches, which of those: 0 the first to 1 the last, kind).
NAMED = [
    ("writer", "a1.1:write", r"/\.a\.txt\.[0-9a-f]{16}$", 0, "kill-after"),  # the half of an edit was committed
    ("writer", "a1.1:fsync", r"transcript\.jsonl$", 0.6, "enospc"),  # unfinished work was committed, with the task as its name
    ("writer", "a1.2:fsync", r"transcript\.jsonl$", 1, "kill-before"),  # an agent that had reported was called lost
    ("writer", "git:write", r"/ckpt\.lock$", 0, "kill-all"),  # no checkpoint could be stored any more
    ("writer", "git:unlink", r"git\.state/base\.index$", 1, "kill-before"),  # a killed worker, in the middle of a removal
    ("writer", "git:link", r"git\.state/incoming/", 1, "enospc"),  # the worktree stayed, and nothing offered to go on
    ("writer", "git:write", r"git\.state/scratch\.index\.lock$", 1, "kill-after"),  # a killed git, the same
    ("writer", "git:fsync", r"refs/baton/[^/]+/a1$", 0, "eio"),  # a ref of our own was in the way of its second attempt
    ("writer", "parent:rename", r"runs/\.[^/]+$", 0, "kill-after"),  # a run without a beginning
    ("writer", "parent:create", r"/lock$", 0, "emfile"),  # a start that failed left its folder
    ("writer", "parent:write", r"run\.json$", 0, "eio"),  # the message named no file
    ("writer", "parent:write", r"run\.jsonl$", 0.8, "enospc"),
    ("writer", "gateway:frame", r"", 0.5, "kill-before"),
    ("writer", "gateway:frame", r"", 0.7, "kill-all"),
    ("review", "a1.1:fsync", r"transcript\.jsonl$", 0.5, "eio"),  # a failed device was for good
    ("review", "a2.1:fsync", r"transcript\.jsonl$", 1, "kill-before"),  # the same report twice
    ("review", "parent:create", r"report\.sarif\.", 0, "enospc"),  # nothing offered to go on
    ("review", "parent:write", r"run\.jsonl$", 0.7, "enospc"),  # it offered to go on for ever
    ("review", "git:write", r"/view/", 0, "kill-after"),  # the lock file of a killed git stayed
    ("review", "git:unlink", r"/view-[0-9a-f]{16}\.index\.lock$", 0, "kill-after"),  # a view begun again met its own half
    ("review", "parent:create", r"calibration\.json", 1, "kill-after"),  # the reserve stayed
]
# Not ours: the scripted server; what stands on the terminal.
OUTSIDE = {"rehearsal", "other", "tool"}


class Place:
    """A folder in which the same job is run again and again: it is put back as it was before each point, at the same path."""

    def __init__(self, job, url):
        self.job, self.world = job, rig.World()
        job.prepare(self.world)
        self.world.provider(url)
        self.template = self.world.dir + ".as-it-was"
        subprocess.run(["cp", "-a", self.world.dir, self.template], check=True)
        self.expected = None

    def restore(self):
        rig.remove(self.world.dir)
        subprocess.run(["cp", "-a", self.template, self.world.dir], check=True)

    def traced(self, words, args):
        """Runs baton below the tracer: (exit status, points that were met, what it printed)."""
        out = self.world.path("points")
        done = self.world.command(FAULTS, *words, "--out", out, "--limit", str(LIMIT_S), "--", rig.BATON, *args, status=None)
        lines = self.world.read(out).splitlines()
        left = [line for line in lines if line.startswith("left ")]
        rig.equal(left, ["left 0"], "processes that are left", done)
        rig.check("timed-out" not in lines, f"it did not end within {LIMIT_S} s", done)
        return done, [line.split("\t") for line in lines if ":" in line.split("\t")[0]]

    def undisturbed(self):
        self.restore()
        done, points = self.traced(["list"], self.job.args + MODEL)
        rig.equal(done.status, 0, f"the undisturbed job '{self.job.name}'", done)
        run = self.world.run()
        check.sound(self.world, run, check.outcome(self.world, run), check.Records(run))
        self.expected = check.outcome(self.world, run)
        rig.equal(self.expected["left"], [], "what an undisturbed run leaves")
        return points

    def close(self):
        rig.remove(self.template)
        rig.remove(self.world.dir)  # not close(): the servers belong to another world


def goes_on(run):
    last = run.last("run.finished") if run else None
    resumed = run.last("run.resumed") if run else None
    if resumed and last and run.records().index(last) < run.records().index(resumed):
        last = None
    return last is None or last.get("resumable", False)


class Run(rig.Run):
    """One whose journal may hold torn lines."""

    def records(self, kind=None):
        found = check.parsed(check.read_lines(os.path.join(self.dir, "run.jsonl"))[0])
        return [r for r in found if kind is None or r["type"] == kind]


def the_run(world):
    """The run, or None if the fault came before there was one (a folder with a dot is one that is not begun)."""
    folder = os.path.join(world.repo, ".git/baton/runs")
    names = [n for n in os.listdir(folder) if not n.startswith(".")] if os.path.isdir(folder) else []
    rig.check(len(names) <= 1, "more than one run", *names)
    return Run(world, os.path.join(folder, names[0])) if names else None


def said_where(done, kind, point, run):
    """A write that failed and ended something says which file it was."""
    if kind not in ("enospc", "eio", "emfile") or done.status == 0:
        return
    words = done.out + done.err + "".join(json.dumps(r) for r in run.records() if r["type"] in ("agent.ended", "run.finished")) if run else done.err
    names = [os.path.basename(p) for p in point[2:] if p]
    op = point[0].split(":")[1]
    rig.check(op in ("fork", "frame") or any(n in words or n.split(".")[0] in words for n in names) or ".git" in words,
              "the message does not name the file", point, done)


def finish(place, done):
    """Resumes until the run has come to its end, as its own words tell; starts it where there is none. Returns the run."""
    for _ in range(4):
        run = the_run(place.world)
        if run and not goes_on(run):
            return run, done
        args = ["resume", run.id, "--plain"] if run else place.job.args + MODEL
        done, _ = place.traced(["list"], args)
    raise rig.Failure("it does not come to an end", done, the_run(place.world))


def one(place, point, kind):
    """True if the point was reached; a Failure if something does not hold after it."""
    place.restore()
    done, met = place.traced(["at", point[0], kind], place.job.args + MODEL)
    run = the_run(place.world)
    if met:
        said_where(done, kind, met[0], run)
    records = check.Records(run) if run else None
    run, _ = finish(place, done)
    check.sound(place.world, run, place.expected, records or check.Records(run))
    return bool(met)


# ---- which


def combinations(job, points):
    for point in points:
        process, op, _ = point[0].split(":")
        if process in OUTSIDE:
            continue
        for kind, ops in KINDS.items():
            if (ops is None or op in ops) and not (process == "view" and kind not in ("kill-before", "kill-all")):
                yield job, point, kind


def named(jobs, points):
    """The points of NAMED in this listing."""
    for job in jobs:
        for name, start, pattern, where, kind in NAMED:
            if name == job.name:
                found = [p for p in points[name] if p[0].startswith(start + ":") and re.search(pattern, "\n".join(p[2:]), re.M)]
                rig.check(found, f"the listing has no {start} of '{pattern}'")
                yield job, found[round(where * (len(found) - 1))], kind


def chosen(everything, count, seed):
    """By the seed, but of each class (job, process, operation, kind) one before any has two."""
    shuffled = list(everything)
    random.Random(seed).shuffle(shuffled)
    depth, ranked = collections.Counter(), []
    for i, (job, point, kind) in enumerate(shuffled):
        group = (job.name, *point[0].split(":")[:2], kind)
        ranked.append((depth[group], i))
        depth[group] += 1
    return [shuffled[i] for _, i in sorted(ranked)[:count]]


# ---- at work


class Work:
    def __init__(self, todo, keep):
        self.todo, self.keep, self.lock = collections.deque(todo), keep, threading.Lock()
        self.points, self.reached, self.passed = collections.Counter(), collections.Counter(), collections.Counter()
        self.failed = []

    def next(self):
        with self.lock:
            return self.todo.popleft() if self.todo else None

    def run(self, places):
        while item := self.next():
            job, point, kind = item
            problem, reached = None, True
            try:
                reached = one(places[job.name], point, kind)
            except (rig.Failure, OSError, ValueError, KeyError, subprocess.SubprocessError) as e:
                problem = f"{type(e).__name__}: {e}"
            with self.lock:
                self.points[kind] += 1
                self.reached[kind] += reached
                self.passed[kind] += reached and not problem
                if self.points.total() % 20 == 0:
                    print(f"{self.points.total()} points, {len(self.failed)} failed so far", flush=True)
                if problem:
                    self.failed.append(item)
                    print(f"FAILED: --only {job.name} {point[0]} {kind}    ({' '.join(point[1:])})\n{problem}", flush=True)
                    if self.keep:
                        kept = f"{places[job.name].world.dir}.{len(self.failed)}"
                        subprocess.run(["cp", "-a", places[job.name].world.dir, kept], check=True)
                        print(f"kept: {kept}", flush=True)


def work(todo, servers, at_once, first, keep):
    """Two at a time, each in places of its own; `first` are those that the lists were made in."""
    places = [first] + [{j.name: Place(j, servers[j.name].url) for j in JOBS if j.name in first} for _ in range(at_once - 1)]
    for more in places[1:]:
        for name, place in more.items():
            place.expected = first[name].expected
    w = Work(todo, keep)
    threads = [threading.Thread(target=w.run, args=(p,)) for p in places]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for more in places:
        for place in more.values():
            place.close()
    return w


def tell(w, seed, seconds):
    for kind in KINDS:
        if w.points[kind]:
            print(f"{kind}: {w.points[kind]} points, {w.reached[kind]} reached, {w.passed[kind]} passed")
    print(f"seed {seed}: {w.points.total()} points, {w.reached.total()} reached, {w.passed.total()} passed, "
          f"{len(w.failed)} failed, in {seconds:.0f} s")


def options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--all", action="store_true")
    p.add_argument("--count", type=int, default=200)
    p.add_argument("--seed", type=int, default=4)
    p.add_argument("--at-once", type=int, default=2)
    p.add_argument("--only", nargs=3, metavar=("JOB", "POINT", "KIND"), action="append")
    p.add_argument("--job")
    p.add_argument("--match", default="", help="only points whose name and kind hold this text")
    p.add_argument("--keep", action="store_true")
    p.add_argument("--list", action="store_true")
    return p.parse_args()


def selected(o, jobs, points):
    if o.only:
        return [(j, [point], kind) for name, point, kind in o.only for j in jobs if j.name == name]
    everything = [c for j in jobs for c in combinations(j, points[j.name])]
    everything = [c for c in everything if o.match in f"{c[1][0]} {c[2]}"]
    if o.all:
        return everything
    first = [c for c in named(jobs, points) if o.match in f"{c[1][0]} {c[2]}"]
    return first + chosen(everything, max(o.count - len(first), 0), o.seed)


def cannot_trace():
    if not os.path.exists(FAULTS):
        return "the tracer is for x86-64 Linux"
    done = subprocess.run([FAULTS, "list", "--out", "/dev/null", "--", "true"], capture_output=True, text=True, check=False)
    return done.stderr.strip() if done.returncode == SKIP else None


def main():
    o = options()
    print("[==========] Running 1 test(s).\n[ RUN      ] faults", flush=True)
    if reason := cannot_trace():
        print(f"skipped: {reason}\n[  SKIPPED ] faults\n[  SKIPPED ] 1 test(s).")
        sys.exit(0)
    begin = time.monotonic()
    names = [only[0] for only in o.only or []] or [o.job]
    jobs = [j for j in JOBS if j.name in names or names == [None]]
    home = rig.World()
    servers = {j.name: home.server(j.rules) for j in jobs}
    first = {j.name: Place(j, servers[j.name].url) for j in jobs}
    points = {name: place.undisturbed() for name, place in first.items()}
    for name, found in points.items():
        print(f"{name}: {len(found)} points", flush=True)
    if o.list:
        print(*["\t".join(p) for found in points.values() for p in found], sep="\n")
        todo = []
    else:
        todo = selected(o, jobs, points)
    w = work(todo, servers, o.at_once if len(todo) > 1 else 1, first, o.keep)
    for server in servers.values():
        server.stop()
    home.close()
    tell(w, o.seed, time.monotonic() - begin)
    good = not w.failed and (o.list or w.passed.total() > 0)
    print(f"[{'       OK' if good else '  FAILED '} ] faults\n[  PASSED  ] {int(good)} test(s).")
    sys.exit(not good)


if __name__ == "__main__":
    main()
