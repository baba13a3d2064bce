#!/usr/bin/env python3
"""The long run (X14, R1, R6, X12): one job over hundreds or thousands of rounds, through compactions and Context Resets, with a
provider that fails and processes that are killed, ends with the right tree; memory, descriptors, processes and time of a
round stay what they were. long_job.py is the job, and why a forgotten word makes the tree wrong.

    BATON_LONG_ROUNDS=3000 python3 test_long.py      the long form (meson test --benchmark)
    BATON_LONG_SEED=7 BATON_LONG_JSON=figures.json   other places for kills and faults; the figures as a file
"""
import json
import os
import random
import resource
import signal
import time

import long_job
from rig import Failure, check, command_of, descendants, equal, main, test_plain, wait_for

ROUNDS = int(os.environ.get("BATON_LONG_ROUNDS", "300"))
SEED = int(os.environ.get("BATON_LONG_SEED", "4"))
LONG = ROUNDS >= 1000
PROGRAMS = ("baton", "agent", "baton-gateway", "baton-git")  # the parent, and what it starts


class Tail:
    """The journal, read on from where it was last read."""

    def __init__(self, run):
        self.path, self.at = os.path.join(run.dir, "run.jsonl"), 0

    def more(self):
        with open(self.path, "rb") as f:
            f.seek(self.at)
            text = f.read()
        whole = text[:text.rfind(b"\n") + 1]
        self.at += len(whole)
        records = []
        for line in whole.split(b"\n"):
            try:
                records.append(json.loads(line))
            except ValueError:
                continue
        return records


def number(pid, file, key):
    try:
        with open(f"/proc/{pid}/{file}", encoding="utf-8", errors="replace") as f:
            for line in f:
                if line.startswith(key):
                    return int(line.split()[1])
    except (OSError, ValueError):
        pass
    return 0


def programs_of(parent):
    """{name: pid} of the run's processes that live as long as it does, or as long as a generation."""
    found = {"baton": parent}
    for pid in descendants(parent):
        words = command_of(pid).split(" ")
        name = os.path.basename(words[0])
        name = "agent" if "agent" in name or (len(words) > 1 and words[1] == "agent") else name
        if name in PROGRAMS and name != "baton":
            found.setdefault(name, pid)
    return found


def cpu_ms(pid):
    """Time that a process has worked: unlike the clock's it does not depend on what else the machine does."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            rest = f.read().rpartition(")")[2].split()
        return (int(rest[11]) + int(rest[12])) * 1000 // os.sysconf("SC_CLK_TCK")
    except OSError:
        return 0


def open_files(pid):
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return 0


def children_ms():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) * 1000


def size(path):
    if os.path.isfile(path):
        return os.path.getsize(path)
    return sum(os.path.getsize(os.path.join(d, f)) for d, _, names in os.walk(path) for f in names if os.path.exists(os.path.join(d, f)))


class Watch:
    """Follows a run through all its parts: rounds, peaks, what happens at given rounds."""

    def __init__(self, world, marks, kills):
        self.world, self.marks, self.kills = world, list(marks), list(kills)  # (round, program)
        self.parent = None
        self.rounds = self.compactions = self.resets = 0
        self.peak = dict.fromkeys(PROGRAMS, 0)  # kB, of all processes of that name so far
        self.files = dict.fromkeys(PROGRAMS, 0)
        self.processes = 0
        self.cpu = {}  # (name, pid) -> ms when it was last seen
        self.last_look, self.last_mark = 0.0, (0, time.monotonic(), dict.fromkeys(PROGRAMS, 0))
        self.table, self.resumed = [], []

    def look(self, parent):
        """Peaks are those of the kernel; a process that ends between two looks is missed by what it grew since."""
        self.last_look = time.monotonic()
        found = programs_of(parent)
        for name, pid in found.items():
            self.peak[name] = max(self.peak[name], number(pid, "status", "VmHWM:"))
            self.files[name] = max(self.files[name], open_files(pid))
            self.cpu[name, pid] = cpu_ms(pid) or self.cpu.get((name, pid), 0)
        self.processes = max(self.processes, len(descendants(parent)))
        return found

    def mark(self, run, parent):
        found = self.look(parent)
        rounds, since, cpu = self.last_mark
        worked = {n: sum(ms for (name, _), ms in self.cpu.items() if name == n) for n in PROGRAMS}
        now = time.monotonic()
        row = {"rounds": self.rounds, "compactions": self.compactions, "resets": self.resets,
               "ms_per_round": round((now - since) * 1000 / max(1, self.rounds - rounds)),
               "cpu_ms_per_round": {n: round((worked[n] - cpu[n]) / max(1, self.rounds - rounds), 2) for n in PROGRAMS},
               "peak_kb": dict(self.peak), "pss_kb": {n: number(p, "smaps_rollup", "Pss:") for n, p in found.items()},
               "files": {n: open_files(p) for n, p in found.items()}, "processes": len(descendants(parent)),
               "journal": size(run.dir + "/run.jsonl"), "agents": size(run.dir + "/agents"), "run_folder": size(run.dir)}
        for command in ("show", "ls", "context"):
            begin = children_ms()
            self.world.baton(command, *([] if command == "ls" else [run.id]))
            row[command + "_cpu_ms"] = round(children_ms() - begin)
        self.table.append(row)
        self.last_mark = (self.rounds, time.monotonic(), worked)

    def records(self, tail):
        for record in tail.more():
            kind = record["type"]
            self.parent = record["pid"] if kind in ("run.started", "run.resumed") else self.parent
            self.rounds += kind == "agent.round"
            self.resets += kind == "agent.reset"
            self.compactions += kind == "agent.compact" and record["data"].get("trigger") in ("threshold", "reactive", "notes", "manual")

    def victim(self, run, parent):
        """The process that is to be killed now; None: none."""
        if not self.kills or self.rounds < self.kills[0][0]:
            return None
        name = self.kills[0][1]
        pid = programs_of(parent).get(name)
        if pid:
            self.kills.pop(0)
        return pid

    def follow(self, started, run, tail):
        """Until this part of the run has ended."""
        def look():
            self.records(tail)
            parent = self.parent
            if self.marks and self.rounds >= self.marks[0]:
                self.marks.pop(0)
                self.mark(run, parent)
            pid = self.victim(run, parent)
            if pid:
                os.kill(pid, signal.SIGKILL)
            if time.monotonic() - self.last_look > 0.3:
                self.look(parent)
            return started.ended()
        wait_for(look, "the end of this part of the run", 60 + ROUNDS, lambda: str(run))
        self.records(tail)


def play(world, steps, watch, options):
    """Runs the job to its end, resuming it as often as something was killed."""
    salt = random.Random(SEED).randrange(1, 60000)
    world.repository(long_job.files(salt, steps))
    log = world.path("requests.jsonl")
    server = world.server([*long_job.faults(SEED, 0.03), *long_job.rules()], "--log", log, window=20000)
    world.provider(server.url)
    started = world.start("run", long_job.TASK, "--model", "fake/large", "--window", "20k", *options)
    run = world.wait_run(started)
    tail = Tail(run)
    begin = time.monotonic()
    watch.records(tail)
    while True:
        watch.follow(started, run, tail)
        last = run.last("run.finished")
        if last and last["status"] == "succeeded":
            break
        check(len(watch.resumed) < 20 and (not last or last.get("resumable")), "it cannot go on", last, started.wait(), str(run))
        world.no_strays(10)
        begun, seen = time.monotonic(), watch.rounds
        started = world.start("resume", run.id)

        def goes_on():
            watch.records(tail)
            return watch.rounds > seen or started.ended()
        wait_for(goes_on, "a round after the resumption", 60, lambda: started.text("err") + str(run))
        watch.resumed.append((seen, round((time.monotonic() - begun) * 1000)))
    return salt, run, server, log, time.monotonic() - begin


def right_tree(world, run, salt, steps):
    for path, text in long_job.expected_books(salt, steps).items():
        got = world.git("show", f"{run.branch()}:{path}") + "\n"
        if got != text:
            wrong = [(a, b) for a, b in zip(got.split("\n"), text.split("\n")) if a != b]
            raise Failure(f"{path} is not as it must be (is, must be): {wrong[:6]} {len(got)} {len(text)}")


def used(log):
    """How often each rule answered."""
    counts = {}
    with open(log, encoding="utf-8") as f:
        for line in f:
            record = json.loads(line)
            name = str(record.get("rule"))
            counts[name] = counts.get(name, 0) + 1
    return counts


def kills_of(rounds):
    """One of each program early and, in the long form, late: in between one parent lives as long as can be."""
    chance = random.Random(SEED)
    names = list(PROGRAMS)
    chance.shuffle(names)
    if not LONG:
        return [(chance.randrange(60, 95), "agent"), ]
    early = sorted(chance.sample(range(20, 280), 4))
    late = sorted(chance.sample(range(rounds - 280, rounds - 20), 4))
    return list(zip(early, names)) + list(zip(late, reversed(names)))


def table_of(rows):
    """The figures at each mark, one column a mark."""
    lines = {}
    for row in rows:
        for key, value in row.items():
            for name, number_ in value.items() if isinstance(value, dict) else [("", value)]:
                lines.setdefault(f"{key} {name}".strip(), []).append(str(number_))
    return "\n".join(f"  {key:32}" + "".join(f"{v:>12}" for v in values) for key, values in lines.items())


def flat(rows):
    """X14. Generous: what grows with the rounds grows tenfold from the first to the last mark of the long form, threefold here."""
    first, last = rows[0], rows[-1]
    for name in PROGRAMS:
        check(last["peak_kb"][name] <= 1.5 * first["peak_kb"][name] + 1024, f"the memory of {name} grows", table_of(rows))
        check(last["files"].get(name, 0) <= first["files"].get(name, 0) + 4, f"the open files of {name} grow", table_of(rows))
    check(last["processes"] <= first["processes"] + 2, "processes are left over", table_of(rows))
    for what in ("journal", "agents"):  # both are append-only: so much for each round, early and late
        check(last[what] / last["rounds"] <= 1.5 * first[what] / first["rounds"] + 200, f"{what} takes more for each round", table_of(rows))


def documents_hold(run, watch):
    """Each handoff has the user's rule word for word, and none is larger than its share of the window (R2)."""
    documents = [r["handoff"] for r in run.records("agent.reset")]
    for path in documents:
        with open(path, encoding="utf-8") as f:
            document = json.load(f)
        check(long_job.RULE in [s["text"] for s in document["parts"]["constraints"]], "the user's rule is not in it", path)
        check(size(path[:-5] + ".md") < 15000, "the handoff outgrows the window", [size(d) for d in documents])
    equal(len(documents), watch.resets, "resets")


@test_plain
def the_long_run(world):
    steps = ROUNDS  # a round is a step, but for some that look or ask: all marks and kills are reached
    marks = [m for m in ((300, 1000, 3000) if LONG else (100, ROUNDS - 20)) if m <= ROUNDS]
    kills = kills_of(ROUNDS)
    watch = Watch(world, marks, kills)
    salt, run, server, log, seconds = play(world, steps, watch, [
        "--max-rounds", "400", "--max-resets", "500", "--bytes-idle", "2s", "--content-idle", "3s", "--retries", "20",
        "--context", "collapse=false", "--context", "clear_share=100"])  # what is cheaper than a summary would make room first
    faults = server.stats()
    figures = {"seed": SEED, "rounds": watch.rounds, "compactions": watch.compactions, "resets": watch.resets,
               "seconds": round(seconds, 1), "kills": kills, "resumed_ms": watch.resumed, "provider_faults": faults["faults"],
               "peak_kb": watch.peak, "open_files": watch.files, "processes": watch.processes, "rules": used(log), "marks": watch.table}
    print(f"seed {SEED}: {watch.rounds} rounds, {watch.compactions} compactions, {watch.resets} resets, {faults['faults']} faults of the "
          f"provider, killed at {kills}, in {seconds:.0f} s", table_of(watch.table), sep="\n", flush=True)
    if os.environ.get("BATON_LONG_JSON"):
        with open(os.environ["BATON_LONG_JSON"], "w", encoding="utf-8") as f:
            json.dump(figures, f, indent=1)
    right_tree(world, run, salt, steps)
    equal((watch.kills, watch.marks), ([], []), "kills and marks that were not reached")
    equal(faults["violations"], [], "requests that the provider refuses")
    check(watch.resets >= (10 if LONG else 2) and watch.compactions >= (60 if LONG else 6), "too few resets or compactions", figures)
    check(faults["faults"] >= ROUNDS // 150, "the provider made no faults", faults)
    documents_hold(run, watch)
    flat(watch.table)
    world.no_strays(10)


main()
