#!/usr/bin/env python3
"""Cuts the power at points of a run (X12, I5, I10): the disk is then what was synced and a part of the rest, by a seed; resumes
from it, and compares with an undisturbed run. Without options: 60 cuts, chosen by a seed over all kinds and jobs.

    test_powercut.py                             the seeded form, as in the suite
    test_powercut.py --all                       every point, with each way in which names come to disk
    test_powercut.py --count N --seed S          others
    test_powercut.py --only writer a1.1:fsync:7 synced [--seed S] [--keep]

Ways: synced (no name that was not synced), all (every name, and contents that lag behind), mixed. What holds is what holds after
a fault (check.py). Commands count from the log of before the cut: baton must not run one again because its result was lost.
"""
import argparse
import collections
import copy
import os
import random
import re
import shutil
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../integration")]

import check  # noqa: E402
import rig  # noqa: E402
import test_faults as faults  # noqa: E402
from jobs import JOBS  # noqa: E402

POWERCUT = os.path.join(rig.BUILD, "tests/faults/powercut")
WAYS = ["synced", "all", "mixed"]
# A run of what POSIX promises alone is the hardest and counts twice.
SEEDED = ["synced", "synced", "all", "mixed"]


def numbers_of(folder):
    return {d: os.stat(d).st_ino for d, _, _ in os.walk(folder)}


def give_numbers(repo, before):
    """A disk keeps the numbers of its folders over a power cut; the image has others. What baton wrote down of them follows."""
    git = os.path.join(repo, ".git")
    for path in check.files_named(os.path.join(git, "baton/views"), r".*\.json") + check.files_named(os.path.join(git, "worktrees"), "baton"):
        with open(path, encoding="utf-8", errors="replace") as f:
            text = f.read()
        for folder, number in before.items():
            if f'"{folder}"' in text.replace("\\/", "/") and os.path.isdir(folder):
                text = re.sub(rf'("inode": *){number}\b', rf"\g<1>{os.stat(folder).st_ino}", text)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)


class Place(faults.Place):
    def cut(self, point, way, seed):
        """Runs the job until the point and puts the disk of after the cut into place. False: not reached."""
        folders = [self.world.repo, self.world.path("state")]
        into, out = self.world.path("disk"), self.world.path("points")
        words = [w for f in folders for w in ("--folder", f)]
        done = self.world.command(POWERCUT, point, "--seed", str(seed), "--names", way, *words, "--into", into, "--out", out,
                                  "--limit", str(faults.LIMIT_S), "--", rig.BATON, *self.job.args, *faults.MODEL, status=None)
        if not os.path.isdir(into):
            rig.check(done.status != 125, "the cut failed", done)
            return False
        logs = {path: self.world.read(path) for path in check.files_named(self.world.repo, r"calls\.log")}
        numbers = {d: n for f in folders for d, n in numbers_of(f).items()}
        for n, folder in enumerate(folders):
            rig.remove(folder)
            shutil.move(os.path.join(into, str(n)), folder)
        give_numbers(self.world.repo, numbers)
        for path, text in logs.items():
            if os.path.isdir(os.path.dirname(path)):
                self.world.write(path, text)
        return True


def drop_unbegun(world):
    """A run's folder whose name came to disk before what is in it: nothing was begun (docs/resume.md)."""
    runs = os.path.join(world.repo, ".git/baton/runs")
    for name in os.listdir(runs) if os.path.isdir(runs) else []:
        folder = os.path.join(runs, name)
        begun = any(b'"run.started"' in line for line in check.read_lines(os.path.join(folder, "run.jsonl"))[0])
        if not begun and not os.path.exists(os.path.join(folder, "run.json")):
            rig.remove(folder)


def without_lost_commits(outcome):
    """git never syncs the folders of its objects, so by POSIX alone the last commits of a command may be lost. Edits after them
    are kept, and a commit that is made again then holds more: the subjects are the same, and what all comes to."""
    for agent in outcome["agents"]:
        agent["commits"] = agent["commits"][:1] + [line.split(" ", 1)[1] for line in agent["commits"][1:]]
    return outcome


def sound(world, run, expected, records):
    records.are_kept()
    check.journal_is_sound(run)
    check.transcripts_are_sound(run)
    check.no_command_ran_twice(run)
    wrong = check.differences(without_lost_commits(check.outcome(world, run)), without_lost_commits(copy.deepcopy(expected)))
    rig.check(not wrong, "the outcome differs from that of an undisturbed run", *wrong)
    fsck = world.command("git", "fsck", "--strict", "--no-dangling", "--no-progress")
    rig.equal(fsck.out.strip(), "", "git fsck has something to say", fsck)


def one(place, point, way, seed):
    """True if the point was reached; a Failure if something does not hold after it."""
    place.restore()
    if not place.cut(point[0], way, seed):
        return False
    drop_unbegun(place.world)
    run = faults.the_run(place.world)
    records = check.Records(run) if run else None
    run, _ = faults.finish(place, None)
    sound(place.world, run, place.expected, records or check.Records(run))
    return True


def chosen(everything, count, seed):
    """By the seed, but of each class (job, process, operation) one before any has two."""
    rng = random.Random(seed)
    shuffled = list(everything)
    rng.shuffle(shuffled)
    depth, ranked = collections.Counter(), []
    for i, (job, point) in enumerate(shuffled):
        group = (job.name, *point[0].split(":")[:2])
        ranked.append((depth[group], i))
        depth[group] += 1
    return [(*shuffled[i], rng.choice(SEEDED), rng.randrange(1 << 32)) for _, i in sorted(ranked)[:count]]


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
            job, point, way, seed = item
            problem, reached = None, True
            try:
                reached = one(places[job.name], point, way, seed)
            except (rig.Failure, OSError, ValueError, KeyError, subprocess.SubprocessError) as e:
                problem = f"{type(e).__name__}: " + "\n".join(str(a) for a in e.args)
            with self.lock:
                self.points[way] += 1
                self.reached[way] += reached
                self.passed[way] += reached and not problem
                if problem:
                    self.failed.append(item)
                    print(f"FAILED: --only {job.name} {point[0]} {way} --seed {seed}    ({' '.join(point[1:])})\n{problem}", flush=True)
                if problem and self.keep:
                    kept = f"{places[job.name].world.dir}.{len(self.failed)}"
                    subprocess.run(["cp", "-a", places[job.name].world.dir, kept], check=True)
                    print(f"kept: {kept}", flush=True)


def work(todo, servers, at_once, first, keep):
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


def options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--all", action="store_true")
    p.add_argument("--count", type=int, default=60)
    p.add_argument("--seed", type=int, default=4)
    p.add_argument("--at-once", type=int, default=2)
    p.add_argument("--only", nargs=3, metavar=("JOB", "POINT", "WAY"))
    p.add_argument("--job")
    p.add_argument("--match", default="", help="only points whose name holds this text")
    p.add_argument("--keep", action="store_true")
    return p.parse_args()


def selected(o, jobs, points):
    if o.only:
        return [(j, [o.only[1]], o.only[2], o.seed) for j in jobs]
    everything = [(j, p) for j in jobs for p in points[j.name]
                  if p[0].split(":")[0] not in faults.OUTSIDE and o.match in p[0]]
    if o.all:
        rng = random.Random(o.seed)
        return [(j, p, way, rng.randrange(1 << 32)) for j, p in everything for way in WAYS]
    return chosen(everything, o.count, o.seed)


def tell(w, seed, seconds):
    for way in WAYS:
        if w.points[way]:
            print(f"{way}: {w.points[way]} points, {w.reached[way]} reached, {w.passed[way]} passed")
    print(f"power cuts, seed {seed}: {w.points.total()} points, {w.reached.total()} reached, {w.passed.total()} passed, "
          f"{len(w.failed)} failed, in {seconds:.0f} s")


def main():
    o = options()
    print("[==========] Running 1 test(s).\n[ RUN      ] power cuts", flush=True)
    if reason := faults.cannot_trace():
        print(f"skipped: {reason}\n[  SKIPPED ] power cuts\n[  SKIPPED ] 1 test(s).")
        sys.exit(0)
    begin = time.monotonic()
    jobs = [j for j in JOBS if j.name in (o.only[0] if o.only else o.job or j.name)]
    home = rig.World()
    servers = {j.name: home.server(j.rules) for j in jobs}
    first = {j.name: Place(j, servers[j.name].url) for j in jobs}
    points = {name: place.undisturbed() for name, place in first.items()}
    todo = selected(o, jobs, points)
    w = work(todo, servers, o.at_once if len(todo) > 1 else 1, first, o.keep)
    for server in servers.values():
        server.stop()
    home.close()
    tell(w, o.seed, time.monotonic() - begin)
    good = not w.failed and w.passed.total() > 0
    print(f"[{'       OK' if good else '  FAILED '} ] power cuts\n[  PASSED  ] {int(good)} test(s).")
    sys.exit(not good)


if __name__ == "__main__":
    main()
