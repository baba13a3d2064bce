"""What has to hold after a fault and its resumption, whatever the fault was. Used for faults at points and for power cuts.

outcome() is what a run left, without names, times and numbers that differ between two runs of the same job; the outcome after a
fault equals that of an undisturbed run. Records are what was on disk right after the fault: each of them must still be there at the end.
"""
import collections
import json
import os
import re

from rig import check, equal


def read_lines(path):
    """(whole lines, bytes of a torn last one)"""
    try:
        with open(path, "rb") as f:
            lines = f.read().split(b"\n")
    except FileNotFoundError:
        return [], b""
    return lines[:-1], lines[-1]


def parsed(lines):
    found = []
    for line in lines:
        try:
            found.append(json.loads(line))
        except ValueError:  # torn by the fault, isolated by the resumption
            pass
    return found


def files_named(folder, pattern):
    return sorted(os.path.join(d, name) for d, _, names in os.walk(folder) for name in names if re.fullmatch(pattern, name))


# ---- what was acknowledged


class Records:
    """Whole lines of the journal and of all transcripts, as they are now."""

    def __init__(self, run):
        self.run = run
        self.lines = {path: read_lines(path)[0] for path in
                      [os.path.join(run.dir, "run.jsonl"), *files_named(run.dir, r"transcript\.jsonl")]}

    def are_kept(self):
        for path, before in self.lines.items():
            # A transcript in which the model had said nothing yet is begun anew and the old one kept beside it.
            kept = collections.Counter(line for name in files_named(os.path.dirname(path), re.escape(os.path.basename(path)) + r"(\.\d+)?")
                                       for line in read_lines(name)[0])
            lost = [line for line in before if not kept[line]]
            check(not lost, f"{len(lost)} records of '{path}' are lost", *[line[:300] for line in lost[:3]])


def once(values, what):
    twice = [v for v, n in collections.Counter(values).items() if n > 1]
    check(not twice, f"{what} happened twice", *twice)


def journal_is_sound(run):
    records = parsed(read_lines(os.path.join(run.dir, "run.jsonl"))[0])
    parts, part = [], 0
    for r in records:
        part += r["type"] == "run.resumed"
        parts.append(part)
    of = collections.defaultdict(list)
    for r, n in zip(records, parts):
        of[r["type"]].append((n, r))
    once([(n, r["agent"], r["generation"]) for n, r in of["agent.spawned"]], "a spawn (in one part of the run)")
    once([(n, r["agent"], r["generation"], r["call"]) for n, r in of["agent.report"]], "a report")
    once([r["agent"] for _, r in of["agent.report"] if r["call"] != "by-rule"], "an agent's report")
    once([(r["agent"], r["generation"]) for _, r in of["agent.reset"]], "a reset")
    once([(r["agent"], r["new"]) for _, r in of["branch.imported"]], "an import")
    keys = {}
    for _, r in of["agent.spawned"]:
        equal(keys.setdefault(r["key"], r["agent"]), r["agent"], f"the agent of '{r['key']}'")
    done = [(r["agent"]) for _, r in of["agent.done"] if not r.get("incomplete") and r["status"] == "done"]
    once(done, "the end of an agent")


def transcripts_are_sound(run):
    for path in files_named(run.dir, r"transcript\.jsonl"):
        asked, answered = [], []
        for record in parsed(read_lines(path)[0]):
            for block in record.get("blocks", []) if record.get("type") == "message" else []:
                if block["kind"] == "tool_call":
                    asked.append(block["id"])
                elif block["kind"] == "tool_result":
                    answered.append(block["id"])
        once(asked, f"a tool call of '{path}'")
        once(answered, f"a tool result of '{path}'")
        # The report's own result is not needed by anybody: the run goes on without the agent.
        check(set(answered) <= set(asked), f"results without calls in '{path}'", set(answered) - set(asked))


def no_command_ran_twice(run):
    for path in files_named(run.dir, r"calls\.log"):
        once(read_lines(path)[0], f"a command of '{path}'")


# ---- what is left


def leftovers(world, run):
    git = os.path.join(world.repo, ".git")
    found = []
    for folder in (os.path.join(git, "worktrees"), os.path.join(git, "baton/tmp")):
        found += [os.path.join(folder, name) for name in (os.listdir(folder) if os.path.isdir(folder) else [])]
    found += files_named(world.path("state/baton/worktrees"), ".*")  # the folders of earlier checkouts may stand empty
    found += files_named(git, r".*\.lock")
    found += [os.path.join(git, "baton/runs", n) for n in os.listdir(os.path.join(git, "baton/runs")) if n != run.id and not n.startswith(".")]
    found += [f for f in (os.path.join(run.dir, "run.jsonl.reserve"),) if os.path.exists(f)]
    return found


def plain_claim(claim):
    return {k: v for k, v in (claim or {}).items() if k != "commits"}


def outcome(world, run):
    report = run.report()
    # Without subjects: of a checkpoint it tells when it was made.
    # An agent that could not be started at all gives its place to one with another number.
    refs = world.git("for-each-ref", "--format=%(refname) %(tree)")
    refs = re.sub(run.id + r"/a\d+", "RUN/aN", refs).split("\n")
    agents = []
    for a in report["agents"]:
        log = []
        if a.get("branch"):
            log = world.git("log", "--format=%T %s", f"main..{a['branch']}").split("\n")
        seen = a["seen"]
        agents.append({"role": a["role"], "status": a["status"], "kept": a.get("kept"), "commits": log, "claimed": plain_claim(a.get("claimed")),
                       "files": seen["files"], "diff_stat": seen.get("diff_stat"), "state": seen["state"],
                       "missing": seen["claimed_commits_missing"]})
    result = report["result"]
    if result:
        numbers = ("found_by", "verified_by", "markdown")
        result = {**result, "findings": [{k: v for k, v in f.items() if k not in numbers} for f in result["findings"]]}
        result.pop("markdown", None)
    return {"status": (report["status"], report["exit_status"], report.get("reason")),
            "agents": sorted(agents, key=lambda a: json.dumps(a, sort_keys=True)), "result": result,
            "refs": [r for r in refs if r], "checkout": world.git("status", "--porcelain"), "left": leftovers(world, run)}


def differences(got, expected, at=""):
    """Where two outcomes differ, one line each."""
    if isinstance(got, dict) and isinstance(expected, dict):
        return [d for k in sorted(set(got) | set(expected)) for d in differences(got.get(k), expected.get(k), f"{at}/{k}")]
    if isinstance(got, list) and isinstance(expected, list) and len(got) == len(expected):
        return [d for i, (g, e) in enumerate(zip(got, expected)) for d in differences(g, e, f"{at}/{i}")]
    return [] if got == expected else [f"{at}: {json.dumps(got)[:700]} instead of {json.dumps(expected)[:700]}"]


def same_outcome(world, run, expected):
    wrong = differences(outcome(world, run), expected)
    check(not wrong, "the outcome differs from that of an undisturbed run", *wrong)
    fsck = world.command("git", "fsck", "--strict", "--no-dangling", "--no-progress")
    equal(fsck.out.strip(), "", "git fsck has something to say", fsck)


def sound(world, run, expected, records):
    """All of it, after the run has come to its end."""
    records.are_kept()
    journal_is_sound(run)
    transcripts_are_sound(run)
    no_command_ran_twice(run)
    same_outcome(world, run, expected)
