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
import json
import os
import random
import re

import crew
import check
import rig

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
    ("writer", "git:fork", r"", 0.87, "kill-before"),  # the service died while it removed a worktree: nothing offered to go on
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


def said_where(done, kind, point, run):
    """A write that failed and ended something says which file it was."""
    if kind not in ("enospc", "eio", "emfile") or done.status == 0:
        return
    words = done.out + done.err + "".join(json.dumps(r) for r in run.records() if r["type"] in ("agent.ended", "run.finished")) if run else done.err
    names = [os.path.basename(p) for p in point[2:] if p]
    op = point[0].split(":")[1]
    rig.check(op in ("fork", "frame") or any(n in words or n.split(".")[0] in words for n in names) or ".git" in words,
              "the message does not name the file", point, done)


def one(place, point, kind, _):
    """True if the point was reached; a Failure if something does not hold after it."""
    place.restore()
    done, met = place.traced(["at", point[0], kind], place.job.args + crew.MODEL)
    run = crew.the_run(place.world)
    if met:
        said_where(done, kind, met[0], run)
    records = check.Records(run) if run else None
    run, _ = crew.finish(place, done)
    check.sound(place.world, run, place.expected, records or check.Records(run))
    return bool(met)


# ---- which


def combinations(job, points):
    for point in points:
        process, op, _ = point[0].split(":")
        if process in crew.OUTSIDE:
            continue
        for kind, ops in KINDS.items():
            if (ops is None or op in ops) and not (process == "view" and kind not in ("kill-before", "kill-all")):
                yield job, point, kind, ""


def named(jobs, points):
    """The points of NAMED in this listing."""
    for job in jobs:
        for name, start, pattern, where, kind in NAMED:
            if name == job.name:
                found = [p for p in points[name] if p[0].startswith(start + ":") and re.search(pattern, "\n".join(p[2:]), re.M)]
                rig.check(found, f"the listing has no {start} of '{pattern}'")
                yield job, found[round(where * (len(found) - 1))], kind, ""


def options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    crew.add_options(p, 200)
    return p.parse_args()


def selected(o, jobs, points):
    if o.only:
        return [(j, [point], kind, "") for name, point, kind in o.only for j in jobs if j.name == name]
    everything = [c for j in jobs for c in combinations(j, points[j.name])]
    everything = [c for c in everything if o.match in f"{c[1][0]} {c[2]}"]
    if o.all:
        return everything
    first = [c for c in named(jobs, points) if o.match in f"{c[1][0]} {c[2]}"]
    return first + crew.spread(everything, max(o.count - len(first), 0), random.Random(o.seed),
                               lambda c: (c[0].name, *c[1][0].split(":")[:2], c[2]))


if __name__ == "__main__":
    crew.play("faults", options(), crew.Place, selected, one, KINDS)
