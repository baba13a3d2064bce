"""What the drivers of faults and of power cuts share: places to play the jobs in, workers, counts and the printed end.

A driver says which points there are, how each is played (`one`), and which words tell the ways in which it can be.
"""
import collections
import os
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


def finish(place, done):
    """Resumes until the run has come to its end, as its own words tell; starts it where there is none. Returns the run."""
    for _ in range(4):
        run = the_run(place.world)
        if run and not goes_on(run):
            return run, done
        args = ["resume", run.id, "--plain"] if run else place.job.args + MODEL
        done, _ = place.traced(["list"], args)
    raise rig.Failure("it does not come to an end", done, the_run(place.world))


# ---- at work


def spread(items, count, rng, group):
    """In an order by chance, but of each group one before any has two."""
    shuffled = list(items)
    rng.shuffle(shuffled)
    depth, ranked = collections.Counter(), []
    for i, item in enumerate(shuffled):
        ranked.append((depth[group(item)], i))
        depth[group(item)] += 1
    return [shuffled[i] for _, i in sorted(ranked)[:count]]


class Work:
    """Items are (job, point, way, more): one(place, point, way, more) plays it and says whether the point was reached."""

    def __init__(self, todo, one, keep):
        self.todo, self.one, self.keep, self.lock = collections.deque(todo), one, keep, threading.Lock()
        self.points, self.reached, self.passed = collections.Counter(), collections.Counter(), collections.Counter()
        self.failed = 0

    def next(self):
        with self.lock:
            return self.todo.popleft() if self.todo else None

    def fail(self, item, problem, world):
        job, point, way, more = item
        self.failed += 1
        print(f"FAILED: --only {job.name} {point[0]} {way}{more and f' --seed {more}'}    ({' '.join(point[1:])})\n{problem}", flush=True)
        if self.keep:
            kept = f"{world.dir}.{self.failed}"
            subprocess.run(["cp", "-a", world.dir, kept], check=True)
            print(f"kept: {kept}", flush=True)

    def run(self, places):
        while item := self.next():
            job, point, way, more = item
            problem, reached = None, True
            try:
                reached = self.one(places[job.name], point, way, more)
            except (rig.Failure, OSError, ValueError, KeyError, subprocess.SubprocessError) as e:
                problem = f"{type(e).__name__}: " + "\n".join(str(a) for a in e.args)
            with self.lock:
                self.points[way] += 1
                self.reached[way] += reached
                self.passed[way] += reached and not problem
                if self.points.total() % 20 == 0:
                    print(f"{self.points.total()} points, {self.failed} failed so far", flush=True)
                if problem:
                    self.fail(item, problem, places[job.name].world)


def work(w, servers, at_once, first):
    """So many at a time, each in places of its own; `first` are those that the lists were made in."""
    places = [first] + [{n: type(p)(p.job, servers[n].url) for n, p in first.items()} for _ in range(at_once - 1)]
    for more in places[1:]:
        for name, place in more.items():
            place.expected = first[name].expected
    threads = [threading.Thread(target=w.run, args=(p,)) for p in places]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for more in places:
        for place in more.values():
            place.close()


def tell(w, ways, title, seconds):
    for way in ways:
        if w.points[way]:
            print(f"{way}: {w.points[way]} points, {w.reached[way]} reached, {w.passed[way]} passed")
    print(f"{title}: {w.points.total()} points, {w.reached.total()} reached, {w.passed.total()} passed, "
          f"{w.failed} failed, in {seconds:.0f} s")


def cannot_trace():
    if not os.path.exists(FAULTS):
        return "the tracer is for x86-64 Linux"
    done = subprocess.run([FAULTS, "list", "--out", "/dev/null", "--", "true"], capture_output=True, text=True, check=False)
    return done.stderr.strip() if done.returncode == SKIP else None


def add_options(p, count):
    p.add_argument("--all", action="store_true")
    p.add_argument("--count", type=int, default=count)
    p.add_argument("--seed", type=int, default=4)
    p.add_argument("--at-once", type=int, default=2)
    p.add_argument("--only", nargs=3, metavar=("JOB", "POINT", "WAY"), action="append", default=[])
    p.add_argument("--job")
    p.add_argument("--match", default="", help="only points whose name holds this text")
    p.add_argument("--keep", action="store_true")
    p.add_argument("--list", action="store_true")


def play(name, o, place, selected, one, ways):
    """The whole test: exits with its status. selected(o, jobs, points): the items."""
    print(f"[==========] Running 1 test(s).\n[ RUN      ] {name}", flush=True)
    if reason := cannot_trace():
        print(f"skipped: {reason}\n[  SKIPPED ] {name}\n[  SKIPPED ] 1 test(s).")
        sys.exit(0)
    begin = time.monotonic()
    names = [only[0] for only in o.only] or [o.job]
    jobs = [j for j in JOBS if j.name in names or names == [None]]
    home = rig.World()
    servers = {j.name: home.server(j.rules) for j in jobs}
    first = {j.name: place(j, servers[j.name].url) for j in jobs}
    points = {n: p.undisturbed() for n, p in first.items()}
    for n, found in points.items():
        print(f"{n}: {len(found)} points", flush=True)
    if o.list:
        print(*["\t".join(p) for found in points.values() for p in found], sep="\n")
    todo = [] if o.list else selected(o, jobs, points)
    w = Work(todo, one, o.keep)
    work(w, servers, o.at_once if len(todo) > 1 else 1, first)
    for server in servers.values():
        server.stop()
    home.close()
    tell(w, ways, f"{name}, seed {o.seed}", time.monotonic() - begin)
    good = not w.failed and (o.list or w.passed.total() > 0)
    print(f"[{'       OK' if good else '  FAILED '} ] {name}\n[  PASSED  ] {int(good)} test(s).")
    sys.exit(not good)
