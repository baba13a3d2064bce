#!/usr/bin/env python3
"""Many agents at once: 256 reviewers in one run without a lost report, and many writers in worktrees of their own.
Under the sanitizers a quarter of them."""
import json

from rig import FEWER, answer, call, check, equal, in_turn, main, report, shell, test, test_plain

N, BODIES, WRITERS = (64, 8, 4) if FEWER else (256, 24, 8)


@test_plain
def many_reviewers_without_a_lost_report(world):
    world.repository({f"d{n % 16}/f{n}.txt": "one\n" for n in range(N)})
    for n in range(N):
        world.write(f"{world.repo}/d{n % 16}/f{n}.txt", "one\n" + f"file {n} has a line that is long enough to fill its own part\n" * 26)
    world.git("commit", "-q", "-a", "-m", "Two")
    rules = [{"match": {"turn": 0, "task": r"^diff --git a/\S+ b/(?<path>\S+)"}, "answer": answer(call("read", path="{{path}}"))},
             {"match": {"turn": 1, "task": r"^diff --git a/\S+ b/(?<path>\S+)", "tool_result": r"\tfile (?<n>\d+) has"},
              "answer": answer(report(findings=[{"file": "{{path}}", "line": 2, "severity": "low", "category": "n{{result.n}}",
                                                 "claim": "wrong", "evidence": "a"}]))}]
    server = world.server(rules)
    world.provider(server.url)
    done = world.baton("review", "HEAD~1..HEAD", "--agents", str(N), "--shard-tokens", "600", "--model", "fake/m", "--window", "200k", "--json")
    run = world.run()
    agents = run.agents()
    check(len(agents) >= N, f"{len(agents)} agents")
    lost = {name: (a["status"], a.get("reason")) for name, a in agents.items() if a["status"] != "done"}
    equal(lost, {}, "agents that did not report")
    found = {f["category"] for f in run.report()["result"]["findings"]}
    equal(found, {f"n{n}" for n in range(N)}, "findings")
    alive = most = 0
    for record in done.records():
        alive += {"agent.spawned": 1, "agent.done": -1}.get(record["type"], 0)
        most = max(most, alive)
    print(f"{len(agents)} agents, {most} of them at once, {run.last('run.finished')['duration_ms']} ms")
    check(most >= N // 2, "agents at once", most)
    equal(server.stats()["n_violations"], 0, "violations", server.stats()["violations"])
    world.no_strays(5)


@test
def bodies_of_many_agents_do_not_block_each_other(world):
    """Large requests and answers of many agents through one gateway; credit keeps every queue bounded."""
    world.repository({f"f{n}.txt": f"file {n} with a line of words\n" * 3000 for n in range(BODIES)})
    for n in range(BODIES):
        world.write(f"{world.repo}/f{n}.txt", f"file {n} with a line of words\n" * 3000 + f"{n} a line that is long enough to fill its part\n" * 30)
    world.git("commit", "-q", "-a", "-m", "Two")
    rules = [{"match": {"turn": 0, "task": r"^diff --git a/\S+ b/(?<path>\S+)"}, "answer": {"text": "word " * 4000, **answer(call("read", path="{{path}}", limit=3000))}},
             {"match": {"turn": 1, "task": r"^diff --git a/\S+ b/(?<path>\S+)"}, "answer": {"text": "word " * 4000, **answer(call("read", path="{{path}}", offset=2))}},
             {"match": {"turn": 2}, "answer": answer(report())}]
    world.baton("review", "HEAD~1..HEAD", "--agents", str(BODIES), "--shard-tokens", "600", "--model", f"rehearsal:{world.scenario(rules)}")
    run = world.run()
    equal([a["status"] for a in run.agents().values()], ["done"] * len(run.agents()), "agents")
    check(len(run.agents()) >= BODIES, "agents", len(run.agents()))


@test
def many_writers_each_with_a_branch(world):
    world.repository({f"f{n}.txt": f"{n}\n" for n in range(50)})
    scenario = world.scenario(in_turn(answer(shell("pwd >where.txt; git add -A; git commit -q -m Where")), answer(report())))
    all_started = [world.start("run", f"task {n}", "--model", f"rehearsal:{scenario}", "--quiet") for n in range(WRITERS)]
    for started in all_started:
        equal(started.wait(120).status, 0, "exit status")
    places = {world.git("show", f"{run.branch()}:where.txt") for run in world.runs()}
    equal(len(places), WRITERS, "worktrees of their own", json.dumps(sorted(places)))
    equal(world.git("fsck", "--full", "--no-dangling"), "", "git fsck")
    world.no_strays(5)


main()
