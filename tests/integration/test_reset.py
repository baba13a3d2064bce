#!/usr/bin/env python3
"""Context Resets through the real programs (R1, R4, R5): a person asks for one, the parent completes and checks the document,
the next generation goes on from it in the same worktree; a document begins a run in another clone.
"""
import json
import os
import shutil

from rig import answer, check, equal, in_turn, main, report, shell, test, test_plain

WAIT = "mkfifo fifo; touch started; while [ ! -e go ]; do read -r -t 0.05 x <>fifo; done"
HANDOFF = """<handoff>
<done_means>
- sh check.sh exits with 0
</done_means>
<point>
file: check.sh
command: sh check.sh
two.txt is missing, which check.sh asks for
</point>
<ruled_out>
- emptying check.sh: it is what the task is measured by
</ruled_out>
<first_action>
file: check.sh
command: sh check.sh
Write two.txt and run sh check.sh again
</first_action>
</handoff>"""


def scenario(world, judgement=HANDOFF):
    """The first generation fails a check and waits; the second, which has the document alone, repairs it."""
    asked = {"match": {"is_handoff": True}, "answer": {"text": judgement}}
    second = in_turn(answer(shell("echo two >two.txt; sh check.sh && git add two.txt && git commit -q -m Two")),
                     answer(report("The check passes.")), task="check\\.sh exits with 0|generation 1")
    first = in_turn(answer(shell("sh check.sh")), answer(shell(WAIT, timeout_ms=600000)), answer(report("Too early.", "partial")))
    return world.scenario([asked, *second, *first])


def repository(world):
    world.repository({"check.sh": "test -e two.txt\n", ".gitignore": "fifo\nstarted\ngo\n"})


@test
def a_person_asks(world):
    repository(world)
    started = world.start("run", "Make check.sh pass. Never touch README.", "--model", f"rehearsal:{scenario(world)}", "--keep")
    run = world.wait_run(started)
    world.wait_tool(run, "started")
    world.baton("reset", f"{run.id}/a1", "--why", "I want to see one")
    with open(os.path.join(run.worktree(), "go"), "w", encoding="utf-8"):
        pass
    done = started.wait(60)
    equal(done.status, 0, "exit status", done, str(run))
    reset = run.last("agent.reset")
    equal((reset["reason"], reset["facts_only"], reset["chain"]), ("request", False, 1), "the reset", reset)
    spawned = run.records("agent.spawned")
    equal([(r["generation"], r["worktree"]) for r in spawned], [(1, run.worktree()), (2, run.worktree())], "generations")
    equal(len(run.records("worktree.created")), 1, "one worktree")
    equal(len(run.records("agent.ended")), 1, "a generation that ended with a handoff has no other end")
    equal(world.git("show", f"{run.branch()}:two.txt"), "two", "the work")
    document = json.loads(world.read(reset["handoff"]))
    equal(document["checkpoint"], reset["checkpoint"], "the checkpoint")
    words = json.dumps(document)
    check("Never touch README." in words, "the user's constraint", document)
    check("sh check.sh" in words, "the failing command", document)
    agent = run.agents()["a1"]
    equal((agent["generations"], len(agent["resets"])), (2, 1), "the report")
    check("generation 1 ended with a handoff (request" in done.out, "the printed report", done)
    check("generation 1 ends with a handoff" in done.err, "the view", done.err)
    equal(json.loads(world.baton("context", f"{run.id}/a1", "--json").out)["generation"], 2, "context")
    check("generations: 2" in world.baton("show", f"{run.id}/a1").out, "show does not name the generations")
    # The second conversation began from nothing but the document.
    with open(os.path.join(run.dir, "agents/a1/2/transcript.jsonl"), encoding="utf-8") as f:
        first = [r for r in map(json.loads, f) if r["type"] == "message"][0]
    check("sh check.sh" in json.dumps(first), "the document is not in its first message", first)
    check(f"baton reset {run.id}" not in world.baton("reset", f"{run.id}/a1", status=2).out, "an ended run is refused")
    cut_off_after_the_reset(world, run)
    in_another_clone(world, run, reset["handoff"])


def cut_off_after_the_reset(world, run):
    """The parent dies when the reset is on record and nobody succeeds it yet."""
    path = os.path.join(run.dir, "run.jsonl")
    with open(path, encoding="utf-8") as f:
        lines = f.read().split("\n")[:-1]
    at = max(i for i, line in enumerate(lines) if '"type":"agent.reset"' in line)
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(lines[:at + 1]) + "\n")
    shutil.rmtree(os.path.join(run.dir, "agents/a1/2"))
    done = world.baton("resume", run.id, "--json", status=None)
    equal(done.status, 0, "resume", done)
    equal([r["generation"] for r in run.records("agent.spawned")], [1, 2], "the successor", done)
    equal(run.records("agent.spawned")[-1].get("key"), "lead", "its key")


def in_another_clone(world, run, handoff):
    """What was never pushed is told, and the work goes on all the same."""
    other = world.path("other")
    world.command("git", "clone", "-q", "--no-local", "--single-branch", world.repo, other, cwd=world.dir)
    document = json.loads(world.read(handoff))
    document["head"] = "1234567890123456789012345678901234567890"
    carried = world.write("carried.json", json.dumps(document))
    done = world.baton("run", "--handoff", carried, "--plain", "--model", f"rehearsal:{scenario(world)}", cwd=other)
    check("123456789012" in done.err and "not in this repository" in done.err, "what is missing is not told", done)
    branch = world.git("branch", "--list", "baton/*", "--format=%(refname:short)", cwd=other)
    equal(world.git("show", f"{branch}:two.txt", cwd=other), "two", "the work")


@test_plain
def without_a_judgement_facts_are_enough(world):
    repository(world)
    started = world.start("run", "Make check.sh pass.", "--model",
                          f"rehearsal:{scenario(world, 'I would rather go on.')}")
    run = world.wait_run(started)
    world.wait_tool(run, "started")
    world.baton("reset", f"{run.id}/a1")
    with open(os.path.join(run.worktree(), "go"), "w", encoding="utf-8"):
        pass
    done = started.wait(60)
    check(run.last("agent.reset")["facts_only"], "not of facts alone", run.last("agent.reset"))
    equal(len(run.records("agent.spawned")), 2, "generations", done, str(run))


@test
def the_long_run_example(world):
    """examples/long-run: summaries fail, the breaker opens, and a successor finishes what the handoff says."""
    scenario_file = world.example("long-run")
    done = world.baton("run", "Convert all price lists. Never change a file in data/.", "--model", f"rehearsal:{scenario_file}",
                       "--window", "20k", "--context", "notes=false", "--context", "collapse=false", "--context", "clear_share=100")
    run = world.run()
    reset = run.last("agent.reset")
    equal((reset["reason"], reset["facts_only"], len(run.records("agent.reset"))), ("breaker", False, 1), "the reset", reset)
    failed = [c["data"] for c in run.records("agent.compact") if c["data"].get("by_rule")]
    check(len(failed) >= 3, "failed compactions", failed)
    check("The handoff says where the work stands" in done.err, "the successor", done.err)
    equal(len(world.git("ls-tree", "--name-only", f"{run.branch()}:out").split()), 25, "lists on the branch, and .gitkeep")
    equal(world.git("diff", "--stat", "main", run.branch(), "--", "data"), "", "what the user forbade")
    world.baton("handoff", "check", reset["handoff"])

main()
