#!/usr/bin/env python3
"""The context engine in whole runs: windows that fill, summaries, and what survives them (H5, H9, H10, X1, X2)."""
import json
import re

from rig import answer, call, check, equal, in_turn, main, report, shell, test, test_plain

SECTIONS = ["Primary request and intent", "Key technical concepts", "Files and code sections", "Errors and fixes",
            "Problem solving", "All user messages", "Pending tasks", "Current work", "Optional next step"]
SUMMARY = "<analysis>thinking</analysis>\n<summary>\n" + "".join(
    f"{n}. {name}:\nnone\n" for n, name in enumerate(SECTIONS, 1)) + "</summary>"
# Counts in a file, so that the work goes on wherever it was, and prints what fills a window.
STEP = ("n=$(cat count 2>/dev/null || echo 0); n=$((n+1)); echo $n >count; git add -A; git commit -q -m \"Step $n\"; "
        "seq $((n*1000)) $((n*1000+500)); echo reached $n.")
TASK = "Count to the end. Never push anything."


def counting(world, last, *options, summary=None, window=16000, status=0, collapse="false"):
    world.repository()
    rules = [
        {"match": {"is_compaction": True}, "answer": summary or {"text": SUMMARY}},
        {"match": {"tool_result": rf"reached {last}\."}, "answer": answer(report(f"Counted to {last}."))},
        {"match": {"last_message": "(?i)call .?report.? now"}, "answer": answer(report("What there is.", "partial"))},
        {"match": {}, "answer": answer(shell(STEP))},
    ]
    model = f"rehearsal:{world.scenario(rules, window=window)}"
    done = world.baton("run", TASK, "--model", model, "--window", str(window), "--context", f"collapse={collapse}", *options,
                       status=status)
    run = world.run()
    # The rungs before a summary have events too, but no kind.
    return done, run, [c for c in run.records("agent.compact") if "kind" in c["data"]]


@test_plain
def work_goes_on_through_many_windows(world):
    """Forty rounds in a window that holds about five: a server that enforces it never has to refuse."""
    done, run, _ = counting(world, 40, collapse="true")
    compactions = run.records("agent.compact")
    equal(run.last("run.finished")["status"], "succeeded", "status", done)
    check(len(compactions) >= 5, "compactions", len(compactions))
    check(not any(c["data"]["by_rule"] for c in compactions), "summaries by rule", compactions)
    for c in compactions:
        check(c["data"]["after"] < c["data"]["before"], "nothing was freed", c)
    equal(run.records("agent.retry"), [], "requests that had to be made again")
    equal(world.git("log", "--format=%s", run.branch()).split("\n")[0], "Step 40", "the newest commit")
    world.no_strays(5)


@test
def a_snapshot_by_rule_needs_no_call(world):
    """H3: finished rounds give way to a snapshot before a summary is asked for; the words stay, nothing is refused."""
    done, run, _ = counting(world, 30, collapse="true")
    equal(run.last("run.finished")["status"], "succeeded", "status", done)
    collapses = [c["data"] for c in run.records("agent.compact") if c["data"]["trigger"] == "collapse"]
    check(len(collapses) >= 3, "snapshots", run.records("agent.compact"))
    for c in collapses:
        check(c["saved"] == c["before"] - c["after"] > 0 and c["cache_lost"] > 0, "what it cost and brought", c)
        equal(c["input"], 0, "tokens of a call")
    equal(run.records("agent.retry"), [], "requests that had to be made again")
    edits = [r for r in run.transcript() if r.get("subtype") == "context_edit"]
    equal([e["rung"] for e in edits].count("collapse"), len(collapses), "rewrites on record")
    check("finished rounds shown as a snapshot" in done.err, "a line for the user", done)


def provider_clears(world, *rules):
    world.repository()
    rules = list(rules) + [
        {"match": {"tool_result": r"reached 12\."}, "answer": answer(report("Counted."))},
        {"match": {}, "answer": answer(shell(STEP))},
    ]
    model = f"rehearsal:{world.scenario(rules, window=40000)}"
    done = world.baton("run", TASK, "--model", model, "--window", "40000", "--context", "provider_edits=true",
                       "--context", "clear_keep=2", "--context", "notes=false")
    run = world.run()
    equal(run.last("run.finished")["status"], "succeeded", "status", done)
    return done, run


@test
def the_provider_clears_old_results(world):
    """H2, wire.md 1.9: the provider leaves old results out of the prompt, and the account follows: no rung of ours and
    no warning about a server that cuts prompts."""
    done, run = provider_clears(world)
    used = [r["used"] for r in run.transcript() if r["type"] == "usage"]
    check(any(b < a - 2000 for a, b in zip(used, used[1:])), "what is used fell", used)
    check(max(used) < 20000, "and stayed low", used)
    equal(run.records("agent.compact"), [], "compactions")
    check("read only a part" not in done.err, "a wrong warning", done)


@test_plain
def a_server_without_edits_is_asked_once(world):
    """wire.md 4: a member that the server does not know is left out from then on."""
    refused = {"match": {"turn": 2}, "times": 1,
               "fault": {"status": 400, "type": "invalid_request_error",
                         "message": "context_management: Extra inputs are not permitted"}}
    done, run = provider_clears(world, refused)
    check("clears no results by itself" in done.err, "a word about it", done)
    equal(run.records("agent.warning")[0]["data"]["message"].count("not asked again"), 1, "told", done)


@test_plain
def boundaries_are_on_record(world):
    """H12, and a line for the user."""
    done, run, compactions = counting(world, 20)
    boundaries = [r for r in run.transcript() if r.get("subtype") == "compact_boundary"]
    equal(len(boundaries), len(compactions), "boundary records (H12)", done)
    for b in boundaries:
        equal(b["subtype"], "compact_boundary", "subtype")
        check(set(b["compactMetadata"]["preservedSegment"]) == {"headUuid", "anchorUuid", "tailUuid"}, "segment", b)
    check("context compacted" in done.err, "a line for the user", done)


@test_plain
def the_users_words_are_put_back_and_nothing_is_added(world):
    """X2, traps 14 and 16: constraints stand verbatim in the first request after a compaction; a rule that only the
    summary knows is not in it. A request without them would not leave, so the run's end is the proof for the others."""
    invented = SUMMARY.replace("5. Problem solving:\nnone", "5. Problem solving:\nThe user said: never use recursion.")
    done, run, compactions = counting(world, 12, "--context", "notes=false", summary={"text": invented})
    check(len(compactions) >= 1, "compactions", done)
    heads = [r for r in run.transcript() if r.get("subtype") == "compact_boundary"]
    check(all("never use recursion" not in h["content"] for h in heads), "an invented rule", heads[:1])
    check("nobody gave" in done.err, "a word about it", done)
    words = [json.loads(line) for line in open(f"{run.dir}/agents/a1/1/words.jsonl", encoding="utf-8")]
    check(any("Never push anything." in json.dumps(w) for w in words), "the words on disk (I6)", words)


@test
def progress_survives_a_compaction(world):
    """H18, trap 18: nine of ten items are ticked, and a summary says three; the head of what follows says nine."""
    world.repository()
    plan = "".join(f"- [ ] step {n}\n" for n in range(1, 11))
    lying = SUMMARY.replace("7. Pending tasks:\nnone", "7. Pending tasks:\nseven of ten steps are open")
    rules = [
        {"match": {"is_compaction": True}, "answer": {"text": lying}},
        {"match": {"task": r"your plan\.md, 9 done, 1 open"}, "answer": answer(report("Nine of ten."))},
        {"match": {"last_message": "(?i)call .?report.? now"}, "answer": answer(report("It is lost.", "partial"))},
        {"match": {"turn": 0}, "answer": answer(call("notes", operation="plan_write", plan=plan))},
        {"match": {"tool_result": "0 done, 10 open"},
         "answer": answer(call("notes", operation="plan_tick", numbers=list(range(1, 10))))},
        {"match": {}, "answer": answer(shell(STEP))},
    ]
    done = world.baton("run", TASK, "--model", f"rehearsal:{world.scenario(rules, window=16000)}", "--window", "16000")
    run = world.run()
    check(len(run.records("agent.compact")) >= 1, "compactions", done)
    equal(run.last("run.finished")["status"], "succeeded", "status", done)
    check("Nine of ten." in json.dumps(run.report()), "the report", run.report())
    with open(f"{run.dir}/agents/a1/1/plan.md", encoding="utf-8") as file:
        equal(file.read().count("- [x]"), 9, "plan.md")


@test
def the_window_can_be_looked_at(world):
    """W5: by category, with thresholds and compactions; as data too."""
    done, run, compactions = counting(world, 20)
    text = world.baton("context").out
    for word in ("tokens used", "warning", "blocking", "system", "shell", f"Compactions: {len(compactions)}", "threshold", "Cache: ", "Cost: "):
        check(word in text, f"'{word}' is missing", text)
    data = json.loads(world.baton("context", f"{run.id}/a1", "--json").out)
    equal(len(data["compactions"]), len(compactions), "compactions", data)
    check(data["request"]["warning"] < data["request"]["compact"] < data["request"]["blocking"], "thresholds", data)
    check(abs(run.last("run.finished")["cost"] - data.get("cost", 0)) < 1e-4, "cost", data)
    world.baton("context", f"{run.id}/a9", status=2)
    equal(data["version"], 1, "version")
    # W5: the parts of the measured prompt add up to the provider's number.
    counted = data["usage"]
    equal(sum(counted["by"].values()), counted["input"] + counted["cache_read"] + counted["cache_write"], "shares", counted)
    check(data["budget"]["working_space"] > 1000, "working space", data["budget"])
    cache = data["cache"]
    check(cache["hits"] + cache["misses"] == len(run.records("agent.round")), "hits and misses", cache)
    # H15: what was freed, cost and returned; the last one is settled at the end.
    calls = [c for c in data["compactions"] if "trigger_source" in c["data"]]
    check(all("return" in c for c in calls), "settled returns", calls)
    for word in ("working space", "measured", " freed", "hits"):
        check(word in text, f"'{word}' is missing", text)


@test_plain
def the_numbers_of_the_window_are_set_in_every_layer(world):
    """M5, W4: file, role, environment and command line reach the agent's start document."""
    world.repository()
    world.config(context={"working_ceiling": 14000, "compact_buffer": 1000, "collapse_pct": 50})
    world.write(f"{world.repo}/.baton/agents/own.md",
                "---\nname: own\ncontext: {compact_buffer: 2500, collapse_pct: 60}\n---\nDo it.\n")
    rules = [{"match": {}, "answer": answer(report("Done."))}]
    model = f"rehearsal:{world.scenario(rules, window=30000)}"
    world.baton("run", "x", "--model", model, "--role", "own", "--context", "collapse_pct=70",
                env={"BATON_CONTEXT_WINDOW": "20000", "BATON_BLOCKING_LIMIT": "13000"})
    data = json.loads(world.baton("context", "--json").out)["request"]
    equal(data["window"], 20000, "BATON_CONTEXT_WINDOW")
    equal(data["blocking"], 13000, "BATON_BLOCKING_LIMIT")
    equal(data["effective"], 14000, "the file's ceiling")
    equal(data["compact"], 11500, "the role's buffer, not the file's")
    equal(data["collapse"], 9800, "the command line's share, not the role's")


@test
def a_cache_that_is_lost_is_told(world):
    """H17: nothing of ours changed, and the provider read nothing: an event says so."""
    world.repository()
    steps = [answer(shell("seq 3000"), usage={"input": 50, "cache_read": 0, "cache_write": 9000}),
             answer(shell("seq 2"), usage={"input": 50, "cache_read": 9000, "cache_write": 500}),
             answer(shell("seq 3"), usage={"input": 9550, "cache_read": 0, "cache_write": 0})]
    steps.append(answer(report("Done.")))
    world.baton("run", "x", "--model", f"rehearsal:{world.scenario(in_turn(*steps), window=60000)}")
    broken = world.run().records("agent.cache_break")
    equal(len(broken), 1, "cache breaks", broken)
    equal(broken[0]["data"]["part"], "provider", "part", broken)
    check("1 unexpected break" in world.baton("context").out, "baton context", broken)


@test_plain
def a_model_that_cannot_summarise_stops_nobody(world):
    """X1: the cut by rule each time, until the breaker opens; then a report, with the work kept."""
    done, run, compactions = counting(world, 40, "--context", "notes=false", "--reset", "never", summary={"text": "No."}, status=1)
    check(1 <= len(compactions) <= 3, "compactions", compactions)
    check(all(c["data"]["by_rule"] for c in compactions), "by rule", compactions)
    check(run.agents()["a1"]["rounds"] > 8, "rounds", run.agents()["a1"])
    check(re.search("reset is wanted", done.err), "the alarm", done)
    check("Step" in world.git("log", "--format=%s", run.branch()), "the work", done)
    world.no_strays(5)


@test_plain
def compaction_can_be_switched_off(world):
    done, run, compactions = counting(world, 40, "--compact", "off", "--reset", "never", status=1)
    equal(compactions, [], "compactions", done)
    check(run.agents()["a1"]["rounds"] < 12, "rounds", run.agents()["a1"])


if __name__ == "__main__":
    main()
