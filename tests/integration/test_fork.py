#!/usr/bin/env python3
"""Forks (A2): the spawner's request prefix, a place of their own, what is refused by a result, killed and gone on with."""
import json
import os

from rig import answer, call, check, equal, kill_quietly, main, report, shell, test, test_plain


def agent(**wish):
    return {"name": "agent", "input": wish}


def own(run, name):
    """The records of a fork's transcript behind what it took over."""
    records = run.transcript(name)
    start = [i for i, r in enumerate(records) if r["type"] == "start"][-1]
    check(start > 0, f"{name} took nothing over", json.dumps(records)[:2000])
    return records[start:]


def share(run, name):
    """Of the first request of a fork, the part that was read from the cache."""
    usage = [r for r in own(run, name) if r["type"] == "usage"][0]
    prompt = usage["input"] + usage["cache_read"] + usage["cache_write"]
    return usage["cache_read"] / prompt


def said(run, name):
    return json.dumps([r for r in own(run, name) if r["type"] == "message"])


FIRST = "You are the fork that this call started"


MAPPED = [
    {"match": {"last_message": "TASK-WRITE", "any_result": r"root=(?<root>\S+)"},
     "answer": {"tool_calls": [call("write", path="{{root}}/mapped.txt", content="by the fork\n"), agent(task="again", fork=True),
                               call("read", path="{{root}}/noted.txt")]}},
    {"match": {"last_message": "a fork cannot fork"}, "answer": {"tool_calls": [report("Mapped is there.")]}},
]
LOOKING = [
    {"match": {"last_message": "TASK-LOOK"},
     "answer": {"tool_calls": [call("write", path="never.txt", content="x"), agent(action="wait", agent="a2")]}},
    {"match": {"last_message": "read-only"}, "answer": {"tool_calls": [report("I looked.")]}},
]


def lead():
    return [
        {"match": {"turn": 0}, "answer": {"tool_calls": [shell("echo root=$PWD; echo noted >noted.txt"), call("read", path="large.txt")]}},
        {"match": {"turn": 1}, "answer": {"tool_calls": [
            call("write", path="before.txt", content="before\n"), agent(task="TASK-WRITE mapped.txt", fork=True),
            agent(task="TASK-LOOK around", fork=True, isolate="view"), agent(task="x", fork=True, role="explorer"),
            agent(task="x", fork=True, output_schema={"type": "object"}),
            shell("echo behind >behind.txt")]}},
        {"match": {"turn": 2, "any_result": "Its work is commit (?<commit>[0-9a-f]{40})"},
         "answer": {"tool_calls": [shell("git add -A && git commit -qm Lead && git merge -q --no-edit {{commit}}")]}},
        {"match": {"turn": 3}, "answer": {"tool_calls": [report("Both forks came home.")]}},
    ]


def forks_over(world, provider):
    world.repository({"large.txt": "".join(f"line {n} of a file that fills the conversation\n" for n in range(1500))})
    scenario = world.scenario([*MAPPED, *LOOKING, *lead()])
    done = world.baton("run", "Use your forks.", "--model", f"{provider}:{scenario}", status=None)
    run = world.run()
    equal(done.status, 0, "exit status", done, str(run))
    for name in ("a2", "a3"):
        part = share(run, name)
        print(f"{provider}: the first request of {name} was read to {100 * part:.1f} % from the cache")
        check(part >= 0.95, f"the prefix of {name} is not its spawner's", str(run))
    equal({r["agent"]: r["status"] for r in run.records("agent.done")}, {"a1": "done", "a2": "done", "a3": "done"}, "ends")
    write, look = said(run, "a2"), said(run, "a3")
    for words in (FIRST, "before it forked", "runs it, later and for itself", "a fork cannot fork", "1\\tnoted", "on branch baton/"):
        check(words in write, f"'{words}' was not told", write)
    for words in ("read-only", "is no agent that you started", "cannot change them"):
        check(words in look, f"'{words}' was not told", look)
    for words in ("a fork has your role", "a fork reports in the form that you report in"):
        check(words in json.dumps(run.transcript()), f"'{words}' was not told")
    tree = world.git("ls-tree", "-r", "--name-only", run.branch("a2")).split()
    equal(tree, ["before.txt", "large.txt", "mapped.txt", "noted.txt"], "the fork begins from the files as they stood")
    tree = world.git("ls-tree", "-r", "--name-only", run.branch()).split()
    equal(tree, ["before.txt", "behind.txt", "large.txt", "mapped.txt", "noted.txt"], "what came home")
    done = {r["agent"]: r for r in run.records("agent.done")}
    equal((done["a2"]["rounds"], done["a3"]["rounds"]), (2, 2), "rounds of its own")


@test
def forks_share_the_prefix(world):
    forks_over(world, "rehearsal")


@test_plain
def forks_share_the_prefix_in_the_other_protocol(world):
    forks_over(world, "rehearsal+openai")


@test_plain
def many_forks_of_one_answer_all_find_the_prefix(world):
    """H17: a batch of more blocks than a provider looks back over; each fork sets a marker that still sees the prefix."""
    world.repository({"large.txt": "".join(f"line {n} of a file that fills the conversation\n" for n in range(1500))})
    names = [f"a{n}" for n in range(2, 14)]
    scenario = world.scenario([
        {"match": {"last_message": "TASK-MANY"}, "answer": {"tool_calls": [report("One of many.")]}},
        {"match": {"turn": 0}, "answer": {"tool_calls": [call("read", path="large.txt")]}},
        {"match": {"turn": 1}, "answer": {"tool_calls": [agent(task="TASK-MANY", fork=True, isolate="view") for _ in names]}},
        {"match": {"turn": 2}, "answer": {"tool_calls": [report("All.")]}}])
    done = world.baton("run", "Use many.", "--model", f"rehearsal:{scenario}", "--agents", "4", status=None)
    run = world.run()
    equal(done.status, 0, "exit status", done, str(run))
    least = min(share(run, name) for name in names)
    print(f"of {len(names)} forks the least read {100 * least:.1f} % of its first request from the cache")
    check(least >= 0.9, "a fork did not find the prefix", str(run))


@test
def a_fork_is_killed_and_goes_on(world):
    """R6: the parent dies while a fork works: it goes on from its own transcript, and is not introduced twice."""
    world.repository({"base.txt": "base\n", ".gitignore": "fifo\nstarted\ngo\n"})
    pause = "mkfifo fifo; touch started; while [ ! -e go ]; do read -r -t 0.05 x <>fifo; done; echo went"
    scenario = world.scenario([
        {"match": {"last_message": "TASK-WAIT"}, "answer": {"tool_calls": [shell("echo 1 >one.txt")]}},
        {"match": {"turn": 2, "any_result": FIRST}, "answer": {"tool_calls": [shell(pause, timeout_ms=600000)]}},
        {"match": {"turn": "3..", "any_result": FIRST}, "answer": {"tool_calls": [report("I waited.")]}},
        {"match": {"turn": 0}, "answer": {"tool_calls": [agent(task="TASK-WAIT", fork=True)]}},
        {"match": {"turn": "1.."}, "answer": {"tool_calls": [report("Over.")]}}])
    started = world.start("run", "Go.", "--model", f"rehearsal:{scenario}")
    run = world.wait_run(started)
    world.wait_tool(run, "started", "a2")
    kill_quietly(run.pid())
    started.wait(60)
    world.write(os.path.join(run.worktree("a2"), "go"), "")
    done = world.baton("resume", run.id, status=None)
    equal(done.status, 0, "exit status", done, str(run))
    told = said(run, "a2")
    equal(told.count(FIRST), 1, "introduced once", told)
    check("This work was cut off" in told, "it hears that it was cut off", told)
    equal({r["agent"]: r["status"] for r in run.records("agent.done")}, {"a1": "done", "a2": "done"}, "ends")
    equal(json.dumps(run.transcript()).count("I waited."), 1, "its report is told once")
    report_of_it = [r for r in run.records("agent.report") if r["agent"] == "a2"][-1]["body"]
    equal(report_of_it["tool_calls"], 2, "only calls of its own count (X5)", report_of_it)


if __name__ == "__main__":
    main()
