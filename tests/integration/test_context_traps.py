#!/usr/bin/env python3
"""Traps of the sections A, C and F that need real calls: slow and silent summaries, windows that shrink, bound thinking."""
import time

from rig import answer, check, equal, main, report, shell, test, test_plain

SECTIONS = ["Primary request and intent", "Key technical concepts", "Files and code sections", "Errors and fixes",
            "Problem solving", "All user messages", "Pending tasks", "Current work", "Optional next step"]
SUMMARY = "<analysis>thinking</analysis>\n<summary>\n" + "".join(
    f"{n}. {name}:\nnone\n" for n, name in enumerate(SECTIONS, 1)) + "</summary>"
STEP = ("n=$(cat count 2>/dev/null || echo 0); n=$((n+1)); echo $n >count; "
        "seq $((n*1000)) $((n*1000+500)); echo reached $n.")


def counting(world, last, *options, first=(), step=None, window=16000, status=0, **top):
    world.repository()
    rules = list(first) + [
        {"match": {"tool_result": rf"reached {last}\."}, "answer": answer(report(f"Counted to {last}."))},
        {"match": {"last_message": "(?i)call .?report.? now"}, "answer": answer(report("What there is.", "partial"))},
        {"match": {}, "answer": step or answer(shell(STEP))},
    ]
    model = f"rehearsal:{world.scenario(rules, window=window, **top)}"
    done = world.baton("run", "Count to the end.", "--model", model, "--window", str(window),
                       "--context", "notes=false", "--context", "collapse=false", *options, status=status)
    run = world.run()
    return done, run, run.records("agent.compact")


def summary_calls(run):
    return [r for r in run.records("agent.state") if r["data"]["state"] == "compacting"]


@test_plain
def trap_5_a_slow_summary_is_waited_for(world):
    """Each piece comes in time, the whole takes several times the idle limit: one call, its result is used."""
    slow = {"match": {"is_compaction": True}, "answer": {"text": SUMMARY}, "fault": {"slow": 60}}
    started = time.monotonic()
    done, run, compactions = counting(world, 5, "--content-idle", "1s", "--bytes-idle", "1s", first=[slow], delta_bytes=4)
    equal(run.last("run.finished")["status"], "succeeded", "status", done)
    check(len(compactions) >= 1, "compactions", done)
    check(not any(c["data"]["by_rule"] for c in compactions), "the summary counts", compactions)
    equal(run.records("gateway.retry") + run.records("agent.retry"), [], "second calls", done)
    check(max(c["data"]["duration_ms"] for c in compactions) > 2000, "it was slow", compactions)
    check(time.monotonic() - started < 120, "an end")


@test_plain
def trap_13_a_silent_summary_is_given_up(world):
    """The idle limit ends each try, then the cut by rule; all of it bounded and on record."""
    silent = {"match": {"is_compaction": True}, "answer": {"text": SUMMARY}, "fault": {"stall": 0}}
    done, run, compactions = counting(world, 5, "--content-idle", "1s", "--bytes-idle", "1s", "--retries", "0", first=[silent])
    equal(run.last("run.finished")["status"], "succeeded", "status", done)
    check(compactions and compactions[0]["data"]["by_rule"], "by rule", compactions)
    check(1000 <= compactions[0]["data"]["duration_ms"] < 30000, "bounded", compactions)
    check(compactions[0]["data"]["reason"], "the reason is on record", compactions)


@test
def trap_9_a_smaller_window_makes_room_once(world):
    """The server has a quarter of the window that was told: it says so, and everything fits from then on (H7, H9)."""
    world.repository()
    compaction = {"match": {"is_compaction": True}, "answer": {"text": SUMMARY}}
    full = {"match": {"min_tokens": 15000}, "fault": {"overflow": {"used": 15500, "limit": 15000}}}
    rules = [full, compaction,
             {"match": {"tool_result": r"reached 12\."}, "answer": answer(report("Counted to 12."))},
             {"match": {}, "answer": answer(shell(STEP))}]
    model = f"rehearsal:{world.scenario(rules, window=16000)}"
    done = world.baton("run", "Count.", "--model", model, "--window", "64000", "--context", "notes=false",
                       "--context", "compact_price=false")
    run = world.run()
    equal(run.last("run.finished")["status"], "succeeded", "status", done)
    compactions = run.records("agent.compact")
    equal([c["data"]["trigger"] for c in compactions][:1], ["reactive"], "the first one", compactions)
    equal(sum(c["data"]["trigger"] == "reactive" for c in compactions), 1, "what the error said is kept", compactions)
    check(all(c["data"]["messages"] > 0 for c in compactions), "each removes something", compactions)


@test
def traps_44_46_bound_thinking(world):
    """Signatures are bound to all that stands before them: after a compaction none that is bound to something else goes out."""
    step = {"thinking": "what comes next", **answer(shell(STEP))}
    first = [{"match": {"is_compaction": True}, "answer": {"text": SUMMARY}}]
    done, run, compactions = counting(world, 10, first=first, step=step, bind_thinking=True)
    equal(run.last("run.finished")["status"], "succeeded", "status", done)
    check(len(compactions) >= 1, "compactions", done)
    # The table does not know that this model does so: it is told once, and nothing bound goes out afterwards.
    equal(done.err.count("the server binds thinking"), 1, "learned", done)


@test_plain
def trap_1_fixed_part_and_tail_above_the_threshold(world):
    """At most two compactions in a row, then a clear end; the run does not go on calling."""
    first = [{"match": {"is_compaction": True}, "answer": {"text": SUMMARY}}]
    step = answer(shell("seq 1000 2100; date +%N"))
    done, run, compactions = counting(world, 99, "--max-output", "1500", "--context", "compact_buffer=2500",
                                      first=first, step=step, window=8000, status=1)
    futile = [c for c in compactions if c["data"]["after"] > c["data"]["before"] * 0.9]
    check(len(futile) <= 2, "futile compactions", compactions)
    check(run.last("run.finished")["reason"], "the reason", done)
    world.no_strays(5)


if __name__ == "__main__":
    main()
