#!/usr/bin/env python3
"""`baton run` and `baton review` against aimock, a model server that we did not write, over both protocols:
an ordinary dialogue, and the same with its 429, cut-stream, malformed and disconnect faults. Issue 2,
"Shown by"; section 1 of wire.md. Started by tests/integration/peers.sh; README.md here says what aimock is not.
"""
import json
import signal
import sys

import aimock
from aimock import Aimock, call, only_grows, outcome, script, turn, turn_of, well_formed
from rig import check, equal, fingerprint, main, tests, unchanged, wait_for

TASK = "check.sh fails: find out why and repair it"
CHECK_AND_COMMIT = ("sh check.sh && git commit -q -a -m 'greet: spell world' && "
                    "echo \"committed as number $(git rev-list --count HEAD)\"")
SCRIPT = {"greet.sh": "echo 'Hello, wrold'\n",
          "check.sh": "sh greet.sh | grep -qx 'Hello, world' && echo 'check passed'\n"}


def over_both_protocols(function):
    for api in ("anthropic", "openai"):
        def one(world, api=api):
            function(world, api)
        one.__name__ = f"{function.__name__}_{api}"
        tests.append(one)
    return function


def provider(world, server, api):
    """As a user writes it into his configuration."""
    world.config(providers={"peer": {"api": api, "base_url": server.url + ("/v1" if api == "openai" else ""),
                                     "key_env": "PEER_API_KEY"}},
                 models={"peer/peer-model": {"window": 200000, "max_output": 8000}})
    world.env["PEER_API_KEY"] = "sk-peer-0123456789abcdef"
    return ["--model", "peer/peer-model"]


def repair(faults=((), (), (), ())):
    """The dialogue of the repair: what comes next depends on what the tools gave."""
    return script(
        turn(0, {"content": "I read both scripts before I change one.",
                 "toolCalls": [call("read", path="check.sh"), call("read", path="greet.sh")]},
             faults[0], userMessage=TASK),
        turn(1, {"content": "The greeting is misspelt.",
                 "toolCalls": [call("edit", path="greet.sh", old_string="wrold", new_string="world")]},
             faults[1], toolResultContains="Hello, wrold"),
        turn(2, {"content": "Now the check, and a commit if it passes.", "toolCalls": [call("shell", command=CHECK_AND_COMMIT)]},
             faults[2], hasToolResult=True),
        turn(3, {"toolCalls": [call("report", status="done", summary="greet.sh misspelt world; check.sh passes now.",
                                    changed_files=["greet.sh"],
                                    tests=[{"command": "sh check.sh", "result": "passed"}])]},
             faults[3], toolResultContains="committed as number 2"))


def job(world, api, fixtures, *options, status=0, server_options=(), meanwhile=None):
    """`baton run` against aimock with these fixtures, bounded in time."""
    world.repository(SCRIPT)
    server = Aimock(world, fixtures, *server_options)
    options = provider(world, server, api) + ["--time-limit", "90s", *options]
    before = fingerprint(world.repo)
    started = world.start("run", TASK, *options)
    if meanwhile:
        meanwhile(server)
    done = started.wait(100)
    equal(done.status, status, "exit status", done, json.dumps([outcome(e) for e in server.journal()]))
    unchanged(world, before)
    world.no_strays()
    for entry in server.journal():
        well_formed(entry, api)
    only_grows(server.journal())
    return done, world.run(), server.journal()


def repaired(world, run, done):
    """The branch holds the one commit, every tool ran once, and the report says so."""
    branch = run.branch()
    equal(world.git("log", "--format=%s", f"main..{branch}"), "greet: spell world", "commits of the branch", done)
    equal(world.git("show", f"{branch}:greet.sh"), "echo 'Hello, world'", "the repaired file")
    equal([name for name, _ in run.results()], ["read", "read", "edit", "shell", "report"], "tools that ran", run.results())
    check("check passed" in run.results()[3][1], "what the shell said", run.results()[3])
    agent = run.agents()["a1"]
    equal((agent["claimed"]["status"], agent["claimed"]["changed_files"]), ("done", ["greet.sh"]), "claim", agent)
    equal(run.last("run.finished")["status"], "succeeded", "status", run)
    check(f"git merge {branch}" in done.out, "how to merge is not printed", done)


def tries(entries):
    """What became of the requests, by turn of the dialogue."""
    found = {}
    for entry in entries:
        found.setdefault(turn_of(entry), []).append(outcome(entry))
    return [found[n] for n in sorted(found)]


@over_both_protocols
def a_job_is_done(world, api):
    done, run, entries = job(world, api, repair())
    repaired(world, run, done)
    equal(tries(entries), [["ok"]] * 4, "requests")
    usage = run.report()["usage"]
    equal((usage["fresh"], usage["output"], usage["estimated_calls"]), (4000, 200, 0), "tokens as the server counted them")


@over_both_protocols
def a_job_survives_every_fault(world, api):
    faults = ([aimock.RATE_LIMIT, aimock.CUT], [aimock.DISCONNECT, aimock.DROP], [aimock.LATE_DISCONNECT],
              [aimock.CUT, aimock.DISCONNECT])
    done, run, entries = job(world, api, repair(faults))
    equal(tries(entries), [["rateLimit", "truncateAfterChunks", "ok"], ["disconnect", "drop", "ok"], ["disconnectAfterMs", "ok"],
                           ["truncateAfterChunks", "disconnect", "ok"]], "requests", done)
    repaired(world, run, done)
    waited = entries[1]["timestamp"] - entries[0]["timestamp"]
    check(1000 <= waited < 10000, f"Retry-After: 1 was not kept, or overruled by reset headers: {waited} ms")


@over_both_protocols
def a_server_that_refuses_all_is_asked_until_it_recovers(world, api):
    def recover(server):
        wait_for(lambda: len(server.journal()) >= 3, "three refused requests", 40)
        server.chaos()

    done, run, entries = job(world, api, repair(), server_options=["--chaos-ratelimit", "1"], meanwhile=recover)
    repaired(world, run, done)
    first = tries(entries)[0]
    check(len(first) >= 4 and first[-1] == "ok" and set(first[:-1]) == {"rateLimit"}, "requests of the first turn", first)


def given_up(world, api, fault, status, n_tries):
    """A fault that does not end: so many tries, then the run fails with its reason and the edit is kept."""
    fixtures = repair()
    for fixture in fixtures:
        if fixture["match"].get("turnIndex") == 2:
            fixture.update(fault)
    done, run, entries = job(world, api, fixtures, "--retries", "2", status=status)
    equal(tries(entries), [["ok"], ["ok"], [aimock.name_of(fault)] * n_tries], "requests", done)
    equal(run.last("run.finished")["status"], "failed", "status", done)
    refs = [run.branch(), *world.git("for-each-ref", "--format=%(refname)", f"refs/baton/{run.id}").split("\n")]
    kept = [world.git("show", f"{ref}:greet.sh", status=None) for ref in refs if ref]
    check("echo 'Hello, world'" in kept, "the edit is reachable from no ref (I7)", refs, kept)
    return done


@over_both_protocols
def a_server_that_hangs_up_is_given_up_and_the_work_is_kept(world, api):
    done = given_up(world, api, aimock.DISCONNECT, 3, 3)
    check("network" in done.out, "why is not said", done)


@over_both_protocols
def a_server_that_talks_nonsense_is_given_up_and_the_work_is_kept(world, api):
    """An answer that is no stream is no fault of the moment: it is not asked for again."""
    done = given_up(world, api, aimock.MALFORMED, 1, 1)
    check("not with a stream of events" in done.out, "why is not said", done)


# ---- review

OLD = "def total(prices):\n    return sum(prices)\n"
NEW = OLD + "\n\ndef mean(prices):\n    return total(prices) / (len(prices) - 1)\n"
FINDING = {"file": "prices.py", "line": 6, "severity": "high", "category": "off-by-one",
           "claim": "The mean divides by one too few.", "evidence": "(len(prices) - 1)"}


def reviewers(faults=((), ()), verifier_faults=((), ())):
    """A reviewer that reads the file and claims the planted defect, and a verifier that reads it too."""
    diff, claim = {"userMessage": "diff --git"}, {"userMessage": FINDING["claim"]}
    confirmed = {"verdict": "confirmed", "reason": "Line 6 still divides by len - 1.", "evidence": FINDING["evidence"]}
    read = {"toolCalls": [call("read", path="prices.py")]}
    return script(
        turn(0, read, verifier_faults[0], **claim),
        turn(1, {"toolCalls": [call("report", status="done", summary="Confirmed.", data=confirmed)]},
             verifier_faults[1], toolResultContains="len(prices) - 1", **claim),
        turn(0, read, faults[0], **diff),
        turn(1, {"toolCalls": [call("report", status="done", summary="One defect.", findings=[FINDING])]},
             faults[1], toolResultContains="len(prices) - 1", **diff))


def review(world, api, *faults, status=0):
    """`baton review` of the planted defect; returns its findings and the tries of reviewer and verifier."""
    world.repository({"prices.py": OLD})
    world.write(f"{world.repo}/prices.py", NEW)
    world.git("commit", "-q", "-a", "-m", "Add the mean")
    server = Aimock(world, reviewers(*faults))
    before = fingerprint(world.repo)
    started = world.start("review", "HEAD~1..HEAD", "--time-limit", "90s", *provider(world, server, api))
    done = started.wait(100)
    entries = server.journal()
    equal(done.status, status, "exit status", done, [outcome(e) for e in entries])
    check("off-by-one" in done.out, "the finding is not printed", done)
    unchanged(world, before)
    world.no_strays()
    agents = [[e for e in entries if (FINDING["claim"] in json.dumps(e["body"]["messages"][1])) == verifies]
              for verifies in (False, True)]
    for one in agents:
        only_grows(one)
    for entry in entries:
        well_formed(entry, api)
    found = world.run().report()["result"]["findings"]
    return [(f["file"], f["line"], f["verdict"]) for f in found], [tries(one) for one in agents]


@over_both_protocols
def a_review_survives_faults(world, api):
    found, seen = review(world, api, ([aimock.DISCONNECT], [aimock.CUT]), ([aimock.RATE_LIMIT], [aimock.LATE_DISCONNECT]))
    equal(found, [("prices.py", 6, "confirmed")], "findings")
    equal(seen, [[["disconnect", "ok"], ["truncateAfterChunks", "ok"]],
                 [["rateLimit", "ok"], ["disconnectAfterMs", "ok"]]], "requests of reviewer and verifier")


@over_both_protocols
def a_finding_whose_verifier_is_lost_still_stands(world, api):
    found, seen = review(world, api, ((), ()), ((), [aimock.MALFORMED]), status=1)
    equal(found, [("prices.py", 6, "not verified")], "findings")
    equal(seen, [[["ok"], ["ok"]], [["ok"], ["malformed"]]], "requests of reviewer and verifier")


def stop(*_):
    sys.exit(1)  # through the finally clauses: what a test has started is killed


signal.signal(signal.SIGTERM, stop)
main()
