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
import copy
import os
import random
import re
import shutil

import crew
import check
import rig

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


class Place(crew.Place):
    def cut(self, point, way, seed):
        """Runs the job until the point and puts the disk of after the cut into place. False: not reached."""
        folders = [self.world.repo, self.world.path("state")]
        into, out = self.world.path("disk"), self.world.path("points")
        words = [w for f in folders for w in ("--folder", f)]
        done = self.world.command(POWERCUT, point, "--seed", str(seed), "--names", way, *words, "--into", into, "--out", out,
                                  "--limit", str(crew.LIMIT_S), "--", rig.BATON, *self.job.args, *crew.MODEL, status=None)
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
    run = crew.the_run(place.world)
    records = check.Records(run) if run else None
    run, _ = crew.finish(place, None)
    sound(place.world, run, place.expected, records or check.Records(run))
    return True


def options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    crew.add_options(p, 60)
    return p.parse_args()


def selected(o, jobs, points):
    if o.only:
        return [(j, [point], way, o.seed) for name, point, way in o.only for j in jobs if j.name == name]
    everything = [(j, p) for j in jobs for p in points[j.name]
                  if p[0].split(":")[0] not in crew.OUTSIDE and o.match in p[0]]
    rng = random.Random(o.seed)
    if o.all:
        return [(j, p, way, rng.randrange(1 << 32)) for j, p in everything for way in WAYS]
    some = crew.spread(everything, o.count, rng, lambda c: (c[0].name, *c[1][0].split(":")[:2]))
    return [(j, p, rng.choice(SEEDED), rng.randrange(1 << 32)) for j, p in some]


if __name__ == "__main__":
    crew.play("power cuts", options(), Place, selected, one, WAYS)
