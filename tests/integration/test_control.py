#!/usr/bin/env python3
"""Control while it runs (item 10 of the issue): pause and going on, stopping one agent, watching from another terminal,
and who may not do any of it. The rest of docs/control.md is shown by test_compact, test_reset and test_commands.
"""
import os
import time

from rig import BUILD, answer, check, equal, in_turn, main, report, shell, test, test_plain, wait_for

HOLD = "mkfifo fifo; touch started; while [ ! -e go ]; do read -r -t 0.05 x <>fifo; done; echo went"
FILES = {"base.txt": "base\n", ".gitignore": "fifo\nstarted\ngo\n"}


def states(run, agent="a1"):
    return [(r["data"]["state"], r["data"].get("detail", "")) for r in run.records("agent.state") if r["agent"] == agent]


@test
def a_pause_holds_the_next_request(world):
    """What has left goes on to its end; no watchdog and no time limit counts the time (X6); another terminal sees it."""
    world.repository(FILES)
    server = world.server(in_turn(answer(shell(HOLD, timeout_ms=600000)), answer(report("Done after all."))))
    world.provider(server.url)
    started = world.start("run", "go", "--model", "fake/m", "--window", "100k", "--model-idle", "1s", "--tool-idle", "60s",
                          "--time-limit", "60s")
    run = world.wait_run(started)
    watch, lines = world.start("watch", run.id), world.start("watch", "--json", run.id)
    world.wait_tool(run, "started")
    check("baton resume" in world.baton("pause", run.id).out, "it does not say how to go on")
    check("already" in world.baton("pause", run.id, status=None).err, "a second pause")
    paused = time.monotonic()
    world.write(f"{run.worktree()}/go", "")
    wait_for(lambda: run.records("agent.tool"), "the tool goes on to its end", 20, lambda: str(run))
    wait_for(lambda: states(run)[-1][0] == "waiting", "the next request waits", 20, lambda: str(run))
    # Longer than the watchdog's second and its look once a second.
    wait_for(lambda: time.monotonic() - paused > 2.5, "a while", 20)
    equal(server.stats()["requests"], 1, "requests that left", str(run))
    equal(run.records("agent.warning"), [], "a watchdog counted the time of the pause")
    check("goes on" in world.baton("resume", run.id).out, "the answer")
    check("not paused" in world.baton("resume", run.id, status=None).err or started.ended(), "a second resume")
    done = started.wait(60)
    equal(done.status, 0, "exit status", done, str(run))
    text = watch.wait(20).out
    for words in ("paused: baton pause", "goes on", "done after 2 rounds"):
        check(words in text, f"'{words}' is not in what another terminal saw", text)
    equal(lines.wait(20).out, world.read(run.dir + "/run.jsonl"), "baton watch --json")
    equal([r["type"] for r in run.records() if r["type"] in ("run.paused", "run.continued")], ["run.paused", "run.continued"], "records")
    done = world.baton("watch", run.id)
    check("done after 2 rounds" in done.out, "a run that has ended can be watched too", done)


@test
def one_agent_of_several(world):
    """`pause RUN/AGENT` and `stop RUN/AGENT` concern that agent; the others work on, and the lead hears of the end."""
    world.repository(FILES)
    hold = [answer(shell(HOLD, timeout_ms=600000)), answer(report("It went."))]
    first, second = in_turn(*hold, task="first piece"), in_turn(*hold, task="second piece")
    call = [{"name": "agent", "input": {"task": f"{which} piece"}} for which in ("first", "second")]
    lead = in_turn(answer(*call), answer(report("Both are over.")))
    started = world.start("run", "go", "--model", f"rehearsal:{world.scenario([*first, *second, *lead])}")
    run = world.wait_run(started)
    for name in ("a2", "a3"):
        world.wait_tool(run, "started", name)
    world.baton("pause", f"{run.id}/a3")
    for name in ("a2", "a3"):
        world.write(f"{run.worktree(name)}/go", "")
    wait_for(lambda: states(run, "a3")[-1][0] == "waiting", "a3 waits", 20, lambda: str(run))
    wait_for(lambda: [r for r in run.records("agent.done") if r["agent"] == "a2"], "a2 works on to its end", 20, lambda: str(run))
    done = world.baton("stop", f"{run.id}/a3")
    check("a3" in done.out and "kept" in done.out, "the answer", done)
    done = started.wait(60)
    equal(done.status, 0, "exit status", done, str(run))
    agents = run.agents()
    equal({n: agents[n]["status"] for n in agents}, {"a1": "done", "a2": "done", "a3": "stopped"}, "ends", done)
    equal(agents["a3"]["reason"], "stopped from outside (baton stop)", "reason")
    check("stopped" in str(run.results()), "the lead does not hear of it", run.results())
    world.no_strays(5)


@test_plain
def a_run_does_not_control_itself(world):
    """What an agent executes can start no run, and reaches no socket of one; what the user starts can do both."""
    world.repository(FILES)
    program = os.path.join(BUILD, "orchestrator", "baton")
    commands = [f"{program} run x --model rehearsal:none.yaml; echo status $?; echo box $BATON_BOX",
                f"env -u BATON_BOX {program} run x --model rehearsal:none.yaml; echo status $?"]
    rules = in_turn(*[answer(shell(c)) for c in commands], answer(report()))
    done = world.baton("run", "go", "--model", f"rehearsal:{world.scenario(rules)}", "--read-paths", BUILD)
    results = [text for name, text in world.run().results() if name == "shell"]
    for text in results:
        check("agents start others with the tool 'agent'" in text and "status 2" in text, "a nested run", text, done)
    check("box none" not in results[0] and "box \n" not in results[0] + "\n", "the box leaves no mark", results[0])
    equal(len(world.runs()), 1, "runs")


main()
