#!/usr/bin/env python3
"""Faults of the provider over real HTTP: what can be retried is retried and costs nothing else, what cannot ends with
its reason and exit status. Item 4 of the issue; traps of sections G, H and I, trap 68.
"""
import itertools
import json

from rig import FEWER, answer, call, check, equal, in_turn, main, report, shell, test, test_plain

PROTOCOLS = ("rehearsal", "rehearsal+openai")
turns = itertools.count()


def with_fault(world, fault, *options, status=0, times=1, turn=1, protocol="rehearsal", **top):
    """Three rounds, with the fault in the second one (its first `times` attempts)."""
    world.repository()
    rules = in_turn(answer(shell("echo one >>one.txt")), {"text": "some words " * 60, **answer(shell("echo two >>two.txt"))}, answer(report()))
    rules.insert(0, {"match": {"turn": turn}, "times": times, "per": "request", "fault": fault})
    done = world.baton("run", "go on", "--model", f"{protocol}:{world.scenario(rules, **top)}", *options, status=status)
    return done, world.run()


def went_on(world, done, run):
    """The fault cost a retry, and each tool ran once."""
    equal(run.last("run.finished")["status"], "succeeded", "status", done)
    equal(run.agents()["a1"]["rounds"], 3, "rounds")
    equal(world.git("show", f"{run.branch()}:one.txt"), "one", "the first command ran once")
    equal(world.git("show", f"{run.branch()}:two.txt"), "two", "the second command ran once")


def protocols():
    """Both; under the sanitizers one of them, the other one the next time."""
    return [PROTOCOLS[next(turns) % 2]] if FEWER else PROTOCOLS


def retried(world, fault, *options, **kw):
    for protocol in protocols():
        done, run = with_fault(world, fault, *options, protocol=protocol, **kw)
        went_on(world, done, run)
        retries = [r for r in run.records() if "retry" in r["type"] or "limit" in r["type"]]
        check(retries, f"no record of the retry ({protocol})", run)
        world.command("rm", "-rf", world.repo, cwd=world.dir)


@test
def rate_limit_with_retry_after(world):
    retried(world, {"status": 429, "headers": {"retry-after": "1"}})


@test_plain
def overload_and_server_errors(world):
    for status in (529, 500, 503, 408):
        retried(world, {"status": status})


@test_plain
def a_reset_before_any_byte(world):
    retried(world, {"reset": True})


@test
def a_reset_in_mid_answer(world):
    retried(world, {"reset": 4})


@test_plain
def a_cut_in_mid_answer(world):
    retried(world, {"cut": 5})


@test
def a_cut_in_mid_call(world):
    world.repository()
    long = "echo " + "x" * 600 + " >/dev/null; echo two >>two.txt"
    for events in (20, 28):
        rules = in_turn(answer(shell("echo one >>one.txt")), answer(shell(long)), answer(report()))
        rules.insert(0, {"match": {"turn": 1}, "times": 1, "per": "request", "fault": {"cut": events // 2}})
        done = world.baton("run", "go on", "--model", f"rehearsal:{world.scenario(rules)}")
        went_on(world, done, world.run())


@test
def a_stall_is_noticed_by_the_idle_timer(world):
    retried(world, {"stall": 4}, "--bytes-idle", "2s", "--content-idle", "3s")


@test
def a_malformed_event(world):
    retried(world, {"malformed": 3})


@test_plain
def an_error_event_in_the_stream(world):
    done, run = with_fault(world, {"error_event": {"after": 3, "type": "overloaded_error", "message": "Overloaded"}})
    went_on(world, done, run)


@test_plain
def a_slow_answer_is_no_fault(world):
    done, run = with_fault(world, {"delay_ms": 1500, "slow": 20}, "--bytes-idle", "5s")
    went_on(world, done, run)
    equal([r for r in run.records() if "retry" in r["type"]], [], "retries")


@test
def tries_are_used_up(world):
    done, run = with_fault(world, {"status": 503, "message": "out of order"}, "--retries", "2", times=99, status=3)
    equal(len([r for r in run.records() if r["type"] == "gateway.retry"]), 2, "retries", run)
    check("503" in done.out or "out of order" in done.out, "the reason is not told", done)
    equal(world.git("show", f"{run.branch()}:one.txt"), "one", "the work before it is on the branch")


@test_plain
def refusals_are_not_retried(world):
    for status, expected in ((400, 1), (401, 3)) if FEWER else ((400, 1), (401, 3), (403, 3), (404, 1), (422, 1)):
        done, run = with_fault(world, {"status": status, "message": "no such thing here"}, status=None, times=99)
        check(done.status in (expected, 1, 3), f"exit status of {status}", done)
        equal([r for r in run.records() if r["type"] == "gateway.retry"], [], f"retries of {status}")
        check("no such thing here" in done.out, f"the provider's words are not told ({status})", done)
        equal(world.git("show", f"{run.branch()}:one.txt"), "one", "the work before it is on the branch")
        world.command("rm", "-rf", world.repo, cwd=world.dir)


@test_plain
def a_spent_quota_is_no_rate_limit(world):
    """A 429 whose body says that money is gone never helps to wait for."""
    done, run = with_fault(world, {"status": 429, "body": {"error": {"type": "insufficient_quota", "code": "insufficient_quota",
                                                                     "message": "You exceeded your current quota, please check your plan and billing details."}}},
                           times=99, status=3, protocol="rehearsal+openai")
    check("quota" in done.out, "the reason", done)
    check(run.last("run.finished")["duration_ms"] < 10000, "it waited for money")


@test
def an_overflow_ends_in_good_order(world):
    for protocol in PROTOCOLS:
        done, run = with_fault(world, {"overflow": True}, times=99, status=1, protocol=protocol)
        agent = run.agents()["a1"]
        check("too long" in json.dumps(agent) or "overflow" in json.dumps(agent) or "context" in json.dumps(agent), "the reason", agent)
        check(agent["claimed"], "no report, not even one made by rule", agent)
        equal(world.git("show", f"{run.branch()}:one.txt"), "one", "the work before it")
        world.command("rm", "-rf", world.repo, cwd=world.dir)


@test_plain
def a_small_window_is_never_exceeded(world):
    """I3, W7: the server enforces its window and counts what exceeds it."""
    world.repository({f"f{n}.txt": "some words that fill a line of this file\n" * 400 for n in range(12)})
    rules = in_turn(*[answer(call("read", path=f"f{n}.txt")) for n in range(12)], answer(report()))
    server = world.server(rules, window=24000)
    world.provider(server.url)
    done = world.baton("run", "read", "--model", "fake/m", "--window", "24000", "--max-output", "2000", status=None)
    stats = server.stats()
    equal(stats["n_violations"], 0, "violations", stats["violations"], done)
    check("400" not in stats.get("status", {}), "a request was refused", stats)
    check(world.run().last("run.finished"), "no end", done)
    check(world.run().agents()["a1"]["claimed"], "no report at the blocking limit", done)


@test_plain
def a_rate_limit_in_a_fan_out_loses_nothing(world):
    """Trap 68: six reviewers, two finish, then 429 for a while: all six come home."""
    world.repository({f"f{n}.txt": "one\n" for n in range(6)})
    for n in range(6):
        world.write(f"{world.repo}/f{n}.txt", "one\n" + f"{n} a line that is long enough to fill its part\n" * 40)
    world.git("commit", "-q", "-a", "-m", "Two")
    rules = [{"match": {"turn": 0, "task": "b/(?<path>f[0-9].txt)"}, "answer": answer(call("read", path="{{path}}"))}]
    rules += [{"match": {"turn": 1, "task": f"b/f{n}"}, "times": 3, "per": "request",
               "fault": {"status": 429, "headers": {"retry-after": "1"}}} for n in range(2, 6)]
    rules += [{"match": {"turn": 1, "task": "b/(?<path>f[0-9].txt)"},
               "answer": answer(report(findings=[{"file": "{{path}}", "line": 2, "severity": "low", "category": "x", "claim": "wrong", "evidence": "a"}]))}]
    done = world.baton("review", "HEAD~1..HEAD", "--agents", "6", "--shard-tokens", "600", "--model", f"rehearsal:{world.scenario(rules)}")
    run = world.run()
    equal(sorted({f["file"] for f in run.report()["result"]["findings"]}), [f"f{n}.txt" for n in range(6)], "findings", done)
    check(all(a["status"] == "done" for a in run.agents().values()), "an agent was lost", run.agents())


@test_plain
def a_rate_limit_without_end_keeps_what_is_finished(world):
    world.repository({f"f{n}.txt": "one\n" for n in range(6)})
    for n in range(6):
        world.write(f"{world.repo}/f{n}.txt", "one\n" + f"{n} a line that is long enough to fill its part\n" * 40)
    world.git("commit", "-q", "-a", "-m", "Two")
    rules = [{"match": {"task": f"b/f{n}"}, "fault": {"status": 429, "headers": {"retry-after": "9000"}}} for n in range(2, 6)]
    rules += [{"match": {"turn": 0}, "answer": answer(call("read", path="f0.txt"))},
              {"match": {"turn": 1, "task": "b/(?<path>f[01].txt)"},
               "answer": answer(report(findings=[{"file": "{{path}}", "line": 2, "severity": "low", "category": "x", "claim": "wrong", "evidence": "a"}]))}]
    scenario = world.scenario(rules)
    done = world.baton("review", "HEAD~1..HEAD", "--agents", "6", "--shard-tokens", "600", "--max-sleep", "2s", "--model", f"rehearsal:{scenario}", status=None)
    run = world.run()
    check(done.status in (1, 3), "exit status", done)
    equal(sorted({f["file"] for f in run.report()["result"]["findings"]}), ["f0.txt", "f1.txt"], "finished results are kept", done)
    for n in range(2, 6):
        check(f"f{n}.txt" in done.out, f"f{n}.txt is not named as not reviewed", done)


@test
def broken_arguments_go_back_to_the_model(world):
    for protocol in PROTOCOLS:
        world.repository()
        rules = in_turn(answer({"name": "shell", "input": "{\"command\": \"echo"}), answer(call("shell", comand="ls")), answer(call("shel", command="ls")),
                        answer(shell("echo two >two.txt")), answer(report()))
        world.baton("run", "go on", "--model", f"{protocol}:{world.scenario(rules)}")
        run = world.run()
        equal(world.git("show", f"{run.branch()}:two.txt"), "two", "work after broken calls")
        check("missing field 'command'" in run.results()[1][1] and "Available:" in run.results()[2][1], "what was wrong is not told", run.results())
        world.command("rm", "-rf", world.repo, cwd=world.dir)


main()
