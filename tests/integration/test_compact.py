#!/usr/bin/env python3
"""A person's word on an agent's window: baton compact (H6, H8, X4), and what was kept as a diff."""
import json

from rig import answer, check, equal, main, report, shell, test, wait_for

SECTIONS = ["Primary request and intent", "Key technical concepts", "Files and code sections", "Errors and fixes",
            "Problem solving", "All user messages", "Pending tasks", "Current work", "Optional next step"]
SUMMARY = "<analysis>thinking</analysis>\n<summary>\n" + "".join(
    f"{n}. {name}:\nSUMMARISED {n}\n" for n, name in enumerate(SECTIONS, 1)) + "</summary>"


def waiting(world, *options, focus=None):
    """An agent that has done five rounds and waits in a command until the file `go` is there."""
    world.repository()
    step = [answer(shell(f"seq {n * 1000} {n * 1000 + 300}; echo did {n}.")) for n in range(1, 6)]
    hold = answer(shell("touch waits; until [ -e go ]; do sleep 0.1; done; echo went on."))
    compaction = {"is_compaction": True}
    if focus:
        compaction["last_message"] = focus
    rules = [{"match": compaction, "answer": {"text": SUMMARY}}]
    rules += [{"match": {"turn": n, "not": {"is_compaction": True}}, "answer": a} for n, a in enumerate(step)]
    rules += [{"match": {"turn": 5, "not": {"is_compaction": True}}, "answer": hold},
              {"match": {"tool_result": "went on"}, "answer": answer(shell("echo one more."))},
              {"match": {}, "answer": answer(report("Done."))}]
    started = world.start("run", "Never push anything. Count.", "--model", f"rehearsal:{world.scenario(rules, window=60000)}",
                          "--window", "60000", *options)
    run = world.wait_run(started)
    world.wait_tool(run, "waits")
    return started, run


def go_on(world, started, run):
    with open(f"{run.worktree()}/go", "w", encoding="utf-8"):
        pass
    return started.wait()


@test
def a_window_is_compacted_with_a_focus(world):
    started, run = waiting(world, focus="keep the numbers")
    asked = world.baton("compact", f"{run.id}/a1", "keep the numbers", "--json")
    equal(json.loads(asked.out)["ok"], True, "the answer", asked)
    done = go_on(world, started, run)
    equal(run.last("run.finished")["status"], "succeeded", "status", done)
    compactions = run.records("agent.compact")
    equal([c["data"]["trigger"] for c in compactions], ["manual"], "compactions", done)
    equal(run.last("agent.compact_asked")["wish"], {"focus": "keep the numbers"}, "the wish on record")
    shown = world.baton("compact", f"{run.id}/a1", "--show").out
    check("-result of shell: 1000" in shown and "+baton:" in shown and "SUMMARISED 8" in shown, "the diff", shown[:3000])
    check("Never push anything." in shown, "the user's words", shown[:3000])


@test
def partly_and_undone(world):
    """H8 `from`, and X4: the window as it was."""
    started, run = waiting(world)
    world.baton("compact", f"{run.id}/a1", "--from", "2")
    done = go_on(world, started, run)
    equal([c["data"]["kind"] for c in run.records("agent.compact")], ["from"], "kind", done)
    world.baton("compact", f"{run.id}/a1", "--undo", status=2)  # it has ended


@test
def wrong_wishes_are_refused(world):
    started, run = waiting(world)
    for words in (("--from", "2", "--up-to", "3"), ("--undo", "--accept"), ("focus", "--undo")):
        world.baton("compact", f"{run.id}/a1", *words, status=2)
    world.baton("compact", status=2)
    world.baton("compact", f"{run.id}/a7", status=2)
    world.baton("compact", f"{run.id}/a1", "--edit", world.write("empty", ""), status=2)
    world.baton("compact", f"{run.id}/a1", "--up-to", "1")  # nothing lies before it: the agent says so
    done = go_on(world, started, run)
    equal(run.records("agent.compact"), [], "compactions", done)
    check("nothing lies before round 1" in done.err, "why not", done)
    world.baton("compact", f"{run.id}/a1", "--show", status=2)


@test
def an_unattended_review_goes_on(world):
    """X4: it waits for a person, a while."""
    started, run = waiting(world, "--context", "compact_review=true", "--context", "compact_review_ms=400")
    world.baton("compact", f"{run.id}/a1")
    done = go_on(world, started, run)
    equal(run.last("run.finished")["status"], "succeeded", "status", done)
    equal(len(run.records("agent.compact")), 1, "compactions", done)
    equal(run.last("agent.compact_review")["data"]["waits_ms"], 400, "the event", done)
    states = [(r["data"]["state"], r["data"]["detail"]) for r in run.records("agent.state")]
    check(("waiting", "compact_review") in states, "a state that no watchdog counts (X6)", states)


@test
def a_summary_is_edited_before_it_is_used(world):
    started, run = waiting(world, "--context", "compact_review=true")
    world.baton("compact", f"{run.id}/a1")
    with open(f"{run.worktree()}/go", "w", encoding="utf-8"):
        pass
    wait_for(lambda: run.records("agent.compact_review"), "the review", 30)
    world.baton("compact", f"{run.id}/a1", "--edit", world.write("mine.md", "EDITED BY A PERSON\n"))
    done = started.wait()
    equal(run.last("run.finished")["status"], "succeeded", "status", done)
    shown = world.baton("compact", f"{run.id}/a1", "--show").out
    check("EDITED BY A PERSON" in shown and "SUMMARISED" not in shown, "the summary", shown[:3000])


@test
def a_rejected_summary_changes_nothing(world):
    started, run = waiting(world, "--context", "compact_review=true")
    world.baton("compact", f"{run.id}/a1")
    with open(f"{run.worktree()}/go", "w", encoding="utf-8"):
        pass
    wait_for(lambda: run.records("agent.compact_review"), "the review", 30)
    world.baton("compact", f"{run.id}/a1", "--reject")
    done = started.wait()
    equal(run.records("agent.compact"), [], "compactions", done)
    check("rejected" in done.err, "a word about it", done)


if __name__ == "__main__":
    main()
