#!/usr/bin/env python3
"""Agents that agents start (A1, A3 to A6, X5 to X7): several in one answer, in the background, by role, and what comes home.
"""
import json

from rig import answer, check, equal, in_turn, kill_quietly, main, report, shell, test, wait_for


def agent(**wish):
    return {"name": "agent", "input": wish}


def child(task, *answers):
    """What an agent with this task does; the first message of the lead does not hold it."""
    return in_turn(*answers, task=task)


def merge(name, turn):
    """The lead takes over the commit that the result of agent `name` names."""
    return {"match": {"turn": turn, "any_result": f"Its work is commit (?<commit>[0-9a-f]{{40}}) on branch \\S+/{name},"},
            "answer": {"tool_calls": [shell("git merge -q --no-edit {{commit}} && echo merged")]}}


@test
def several_in_one_answer(world):
    """Two writers and an explorer work at the same time; the lead merges what came home."""
    world.repository({"base.txt": "base\n"})
    first = child("write one\\.txt", answer(shell("cat note.txt >one.txt && git add one.txt && git commit -qm One")),
                  answer(report("One is there.")))
    second = child("write two\\.txt", answer(shell("echo two >two.txt")), answer(report("Two is there.")))
    third = child("what is in base", answer({"name": "read", "input": {"path": "base.txt"}}), answer(report("It says base.")))
    lead = [merge("a2", 3), merge("a3", 4), *in_turn(answer(shell("echo noted >note.txt")),
                     answer(agent(task="write one.txt"), agent(task="write two.txt", role="worker"),
                            agent(task="what is in base.txt", role="explorer")),
                     answer(shell("git add note.txt && git commit -qm Note")),
                     *[answer(report("All is there."))] * 3)]
    done = world.baton("run", "Use your agents.", "--model", f"rehearsal:{world.scenario([*first, *second, *third, *lead])}",
                       "--agents", "1", status=None)
    run = world.run()
    equal(done.status, 0, "exit status", done, str(run))
    asked = run.records("agent.asked")
    equal([(r["agent"], r["child"]) for r in asked], [("a1", "a2"), ("a1", "a3"), ("a1", "a4")], "asked", asked)
    equal([(r["agent"], r["status"]) for r in run.records("agent.done")][-1], ("a1", "done"), "the lead ends last")
    equal(sorted(r["status"] for r in run.records("agent.done")), ["done"] * 4, "ends", str(run))
    tree = world.git("ls-tree", "-r", "--name-only", run.branch()).split()
    equal(tree, ["base.txt", "note.txt", "one.txt", "two.txt"], "what the lead brought together", done)
    equal(world.git("show", f"{run.branch()}:one.txt"), "noted", "the worker began from the lead's files as they stood")
    told = json.dumps(run.transcript())
    for words in ("One is there.", "Two is there.", "It says base."):
        check(words in told, f"the report '{words}' did not come", told)
    check("1\\tbase" not in told, "the child's conversation stays with the child", told)


@test
def background_words_and_limits(world):
    """One in the background hears a word and is announced once; another is stopped; limits are the parent's (traps 150, 152)."""
    world.repository({"base.txt": "base\n", ".gitignore": "fifo\nstarted\ngo\n"})
    pause = "mkfifo fifo; touch started; while [ ! -e go ]; do read -r -t 0.05 x <>fifo; done"
    slow = [{"match": {"task": "wait for a word", "last_message": "the word is plum"}, "answer": {"tool_calls": [report("I heard plum.")]}},
            {"match": {"task": "wait for a word"}, "answer": {"tool_calls": [shell(pause, timeout_ms=600000)]}}]
    hung = [{"match": {"task": "never end"}, "answer": {"tool_calls": [shell("tail -f /dev/null", timeout_ms=600000)]}}]
    deep = child("go down", answer(agent(task="go down further"), {"name": "agent", "input": {"action": "list"}}), answer(report("Down.")))
    lead = in_turn(answer(agent(task="wait for a word", background=True), agent(task="never end", background=True)),
                   answer(agent(action="say", agent="a2", text="the word is plum"), agent(action="list"),
                          agent(task="one too many", role="explorer")),
                   answer(agent(action="wait", agent="a2"), agent(action="stop", agent="a3", text="enough")),
                   answer(agent(action="wait", agent="a3"), agent(action="say", agent="a9", text="nobody")),
                   answer(agent(task="go down"), agent(task="x", role="nobody")), answer(report("Over.")))
    started = world.start("run", "Use your agents.", "--model", f"rehearsal:{world.scenario([*slow, *hung, *deep, *lead])}",
                          "--max-children", "2", "--max-depth", "1")
    run = world.wait_run(started)
    wait_for(lambda: [r for r in run.records("agent.message") if r["action"] == "say"], "the word is on its way")
    world.wait_tool(run, "started", "a2")
    world.write(f"{run.worktree('a2')}/go", "")
    done = started.wait(60)
    equal(done.status, 0, "exit status", done, str(run))
    told = json.dumps(run.transcript())
    for words in ("I heard plum.", "2 agents that you started are not done, and that is the limit", "(limit 2)",
                  "'a9' is no agent that you started", "no role 'nobody'", "Agent a3 (worker) ended: stopped (enough)"):
        check(words in told, f"'{words}' was not told", told)
    equal(told.count("I heard plum."), 1, "the end of a2 is told once", told)
    down = json.dumps(run.transcript("a4"))
    check("'agent' is not available to this role" in down, "at the greatest depth the tool is not offered", down)
    equal({r["agent"]: r["status"] for r in run.records("agent.done")}, {"a1": "done", "a2": "done", "a3": "stopped", "a4": "done"}, "ends")
    check(not world.strays(), "a process is left")


@test
def reports_wait_for_words_and_children(world):
    """A report that would end a child, or comes before a person's word was read, is sent back once."""
    world.repository({"base.txt": "base\n", ".gitignore": "fifo\nstarted\ngo\n"})
    pause = "mkfifo fifo; touch started; while [ ! -e go ]; do read -r -t 0.05 x <>fifo; done"
    hung = [{"match": {"task": "never end"}, "answer": {"tool_calls": [shell("tail -f /dev/null", timeout_ms=600000)]}}]
    lead = in_turn(answer(agent(task="never end", background=True)), answer(shell(pause, timeout_ms=600000), report("Too early.")),
                   answer(report("Still too early.")), answer(report("Over.")))
    started = world.start("run", "Go.", "--model", f"rehearsal:{world.scenario([*hung, *lead])}")
    run = world.wait_run(started)
    world.wait_tool(run, "started")
    world.baton("say", f"{run.id}/a1", "Never touch base.txt.")
    world.baton("say", f"{run.id}/a1", status=2)
    world.write(f"{run.worktree()}/go", "")
    done = started.wait(60)
    equal(done.status, 0, "exit status", done, str(run))
    told = json.dumps(run.transcript())
    check("words for you came meanwhile" in told and "a2 still work for you" in told, "the report was not sent back", told)
    with open(f"{run.dir}/agents/a1/1/words.jsonl", encoding="utf-8") as f:
        check("Never touch base.txt." in f.read(), "the words are not the user's (X2)")
    equal(run.last("agent.report")["body"]["report"]["summary"], "Over.", "the report that counts")
    ended = {r["agent"]: (r["status"], r.get("reason")) for r in run.records("agent.ended")}
    equal(ended["a2"], ("stopped", "the agent that started it has ended"), "the child")
    check(not world.strays(), "a process is left")


@test
def both_die_and_go_on(world):
    """R6: the parent is killed while a lead waits for two: neither is started twice, what they did before is kept (X12)."""
    world.repository({"base.txt": "base\n", ".gitignore": "fifo\nstarted\ngo\n"})
    pause = "mkfifo fifo; touch started; while [ ! -e go ]; do read -r -t 0.05 x <>fifo; done; echo went"
    quick = child("quick piece", answer(shell("echo 1 >quick.txt")), answer(report("Quick is done.")))
    slow = child("slow piece", answer(shell("echo 2 >slow.txt")), answer(shell(pause, timeout_ms=600000)), answer(report("Slow is done.")))
    lead = [merge("a2", 1), merge("a3", 2), *in_turn(answer(agent(task="quick piece"), agent(task="slow piece")),
                                                      *[answer(report("Both."))] * 3)]
    started = world.start("run", "Go.", "--model", f"rehearsal:{world.scenario([*quick, *slow, *lead])}")
    run = world.wait_run(started)
    world.wait_tool(run, "started", "a3")
    wait_for(lambda: [r for r in run.records("agent.done") if r["agent"] == "a2"], "a2 has ended")
    kill_quietly(run.pid())
    started.wait(60)
    world.write(f"{run.worktree('a3')}/go", "")
    done = world.baton("resume", run.id, status=None)
    equal(done.status, 0, "exit status", done, str(run))
    equal([r["child"] for r in run.records("agent.asked")], ["a2", "a3"], "asked once")
    equal(len([r for r in run.records("agent.spawned") if r["agent"] == "a2"]), 1, "one that had ended is not started again")
    equal(world.git("ls-tree", "-r", "--name-only", run.branch()).split(), [".gitignore", "base.txt", "quick.txt", "slow.txt"], "the tree", json.dumps(run.transcript(), indent=1))
    told = json.dumps(run.transcript())
    for words in ("Quick is done.", "Slow is done."):
        equal(told.count(words), 1, f"'{words}' is told once", told)


@test
def a_child_has_a_budget(world):
    """Trap 156, X8: a child is stopped at its own budget with a report, and the lead hears that it was the budget."""
    world.repository({"base.txt": "base\n"})
    endless = [{"match": {"task": "burn tokens"}, "answer": {"tool_calls": [shell("echo {{turn}}")]}}]
    lead = in_turn(answer(agent(task="burn tokens", max_tokens=60000)), answer(report("It was the budget.")))
    done = world.baton("run", "Go.", "--model", f"rehearsal:{world.scenario([*endless, *lead])}", "--max-output", "4000", status=None)
    run = world.run()
    equal(done.status, 0, "exit status", done, str(run))
    child = [r for r in run.records("agent.done") if r["agent"] == "a2"][0]
    tokens = sum(child[k] for k in ("fresh", "cache_read", "cache_write", "output"))
    check(20000 < tokens <= 60000, f"it used {tokens} tokens of 60,000", child)
    told = json.dumps(run.transcript())
    check("the budget of a2 does not cover this call" in told, "the lead does not hear of the budget", told)
    check("It left no report" not in told, "no report came", told)


if __name__ == "__main__":
    main()
