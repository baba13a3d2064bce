#!/usr/bin/env python3
"""Stopping a run: SIGINT once in good order, twice at once; SIGTERM, SIGHUP and `baton stop` like one SIGINT.
Item 3 of the issue.
"""
import os
import signal
import time

from rig import answer, check, equal, fingerprint, in_turn, main, report, shell, test, test_plain, unchanged, wait_for

WORK = "echo one >one.txt; git add one.txt; git commit -q -m One; echo two >two.txt"
HANG = "mkfifo fifo; touch started; read -r x <>fifo"
STUBBORN = "trap '' TERM INT HUP; mkfifo fifo; touch started; while :; do read -r -t 100 x <>fifo; done"


def hang(world, command=HANG, *options):
    world.repository()
    world.before = fingerprint(world.repo)
    scenario = world.scenario(in_turn(answer(shell(WORK)), answer(shell(command)), answer(report())))
    started = world.start("run", "hang", "--model", f"rehearsal:{scenario}", *options)
    run = world.wait_run(started)
    world.wait_tool(run, "started")
    return started, run


def stopped_well(world, started, run, seconds=20, status=130):
    done = started.wait(seconds)
    equal(done.status, status, "exit status", done)
    world.no_strays(5)
    last = run.records()[-1]
    equal((last["type"], last["status"]), ("run.finished", "stopped"), "last record")
    equal(run.agents()["a1"]["status"], "stopped", "status of the agent")
    equal(world.git("log", "--format=%s", f"main..{run.branch()}").split("\n")[-1], "One", "its commit is on the branch")
    refs = [run.branch(), *world.git("for-each-ref", "--format=%(refname)", f"refs/baton/{run.id}").split("\n")]
    check("two" in [world.git("show", f"{ref}:two.txt", status=None) for ref in refs if ref] or
          os.path.exists(run.worktree() + "/two.txt"), "uncommitted work is nowhere", refs)
    check(os.path.isdir(run.worktree()), "the worktree is gone")
    unchanged(world, world.before)
    return done


@test
def one_sigint_stops_in_good_order(world):
    started, run = hang(world)
    started.signal(signal.SIGINT)
    done = stopped_well(world, started, run)
    check("interrupted" in done.out, "the report does not say why", done)


@test_plain
def one_sigint_from_the_terminal_counts_once(world):
    started, run = hang(world)
    os.killpg(started.pid, signal.SIGINT)  # warden and parent, as a terminal sends it
    stopped_well(world, started, run)


@test_plain
def sigterm_is_like_one_sigint(world):
    started, run = hang(world)
    started.signal(signal.SIGTERM)
    stopped_well(world, started, run)


@test_plain
def sighup_is_like_one_sigint(world):
    started, run = hang(world)
    started.signal(signal.SIGHUP)
    stopped_well(world, started, run)


@test
def baton_stop_is_like_one_sigint(world):
    started, run = hang(world)
    done = world.baton("stop", run.id)
    check(run.id in done.out, "baton stop says nothing", done)
    check(run.last("run.finished"), "baton stop came back before the run had ended")
    stopped_well(world, started, run)
    check("not running" in world.baton("stop", run.id).out, "a second baton stop")


@test_plain
def a_stubborn_tool_is_ended_too(world):
    started, run = hang(world, STUBBORN)
    started.signal(signal.SIGINT)
    stopped_well(world, started, run)


@test
def two_sigints_end_it_at_once(world):
    started, run = hang(world, STUBBORN)
    os.kill(run.agent_pid(), signal.SIGSTOP)  # no good order is to be had
    started.signal(signal.SIGINT)
    wait_for(lambda: run.records("run.stopping"), "the first one is noticed", 10)
    first = time.monotonic()
    # Within a quarter of a second a second one counts as the same.
    wait_for(lambda: time.monotonic() - first > 0.3, "a while", 5)
    started.signal(signal.SIGINT)
    done = started.wait(10)
    check(time.monotonic() - first < 4, "at once took as long as good order", time.monotonic() - first)
    equal(done.status, 130, "exit status", done)
    world.no_strays(5)
    equal(run.last("run.finished")["status"], "stopped", "status")
    equal(world.read(run.worktree() + "/two.txt"), "two\n", "work in the worktree")
    unchanged(world, world.before)


@test_plain
def sigint_before_anything_runs(world):
    world.repository()
    scenario = world.scenario([{"match": {"turn": 0}, "fault": {"delay_ms": 600000}, "answer": answer(report())}])
    started = world.start("run", "wait", "--model", f"rehearsal:{scenario}")
    run = world.wait_run(started)
    started.signal(signal.SIGINT)
    equal(started.wait(20).status, 130, "exit status")
    equal(run.last("run.finished")["status"], "stopped", "status")
    world.no_strays(5)


@test
def a_stop_while_the_worktree_is_made(world):
    world.repository({f"d{n % 40}/f{n}.txt": f"{n}\n" for n in range(4000)})
    before = fingerprint(world.repo)
    scenario = world.scenario(in_turn(answer(shell("true")), answer(report())))
    started = world.start("run", "stop early", "--model", f"rehearsal:{scenario}")
    run = world.wait_run(started)
    wait_for(lambda: run.records("agent.spawned"), "the agent", 20)
    started.signal(signal.SIGINT)
    equal(started.wait(30).status, 130, "exit status")
    world.no_strays(5)
    equal(run.records()[-1]["type"], "run.finished", "last record", run)
    worktree = run.worktree()
    check(os.path.exists(worktree) == (worktree in world.git("worktree", "list")), "folder and registration disagree")
    check(not os.path.exists(worktree) or run.agents()["a1"].get("kept"), "a worktree is left and the report does not say so", run.agents())
    world.baton("clean", run.id)
    equal(len(world.git("worktree", "list").split("\n")), 1, "worktrees after clean")
    check(not os.path.exists(worktree), "the worktree is left after clean")
    unchanged(world, before)


@test
def sigint_in_a_queue_for_the_rate_limit(world):
    world.repository()
    scenario = world.scenario([{"match": {"turn": 0}, "fault": {"status": 429, "headers": {"retry-after": "100"}}}])
    started = world.start("run", "wait", "--model", f"rehearsal:{scenario}")
    run = world.wait_run(started)
    wait_for(lambda: run.records("gateway.retry") or run.records("gateway.limit") or run.records("agent.retry"),
             "the limit is noticed", 20, lambda: str(run))
    started.signal(signal.SIGINT)
    equal(started.wait(20).status, 130, "exit status")
    world.no_strays(5)


@test
def a_review_stops_with_what_it_has(world):
    world.repository({"a.txt": "one\n", "b.txt": "one\n"})
    for name in ("a.txt", "b.txt"):
        world.write(f"{world.repo}/{name}", "one\ntwo\n" + f"{name} text that makes the diff longer\n" * 40)
    world.git("commit", "-q", "-a", "-m", "Two")
    before = fingerprint(world.repo)
    finding = {"file": "a.txt", "line": 2, "severity": "low", "category": "x", "claim": "wrong", "evidence": "two"}
    scenario = world.scenario([{"match": {"task": "diff --git a/b.txt"}, "fault": {"delay_ms": 600000}, "answer": answer(report())},
                               *in_turn({"tool_calls": [{"name": "read", "input": {"path": "a.txt"}}]},
                                        answer(report(findings=[finding])))])
    started = world.start("review", "HEAD~1..HEAD", "--model", f"rehearsal:{scenario}")
    run = world.wait_run(started)
    wait_for(lambda: run.records("agent.done"), "a reviewer is done", 30)
    started.signal(signal.SIGINT)
    equal(started.wait(20).status, 130, "exit status")
    equal([f["file"] for f in run.report()["result"]["findings"]], ["a.txt"], "findings that were there")
    world.no_strays(5)
    equal(len(world.git("worktree", "list").split("\n")), 1, "worktrees")
    check(not os.path.exists(os.path.join(os.path.dirname(run.worktree()), "view")), "the review's checkout is left")
    unchanged(world, before)


main()
