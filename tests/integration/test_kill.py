#!/usr/bin/env python3
"""kill -9 of anything: no process is left within 5 seconds, work is kept, and the report says what was lost.
The issue's list "Shown by"; I9, X6; traps of sections L and P.
"""
import os
import shutil
import signal
import subprocess

from rig import (alive, answer, call, check, command_of, descendants, equal, fingerprint, in_turn, kill_quietly, main, report,
                 shell, stat_of, test, test_plain, unchanged, wait_for)

# What a tool can do to outlive its agent: leave the session, be an orphan, ignore TERM, clear its environment.
CLINGING = r"""
trap '' TERM HUP INT
cat >cling.sh <<'END'
trap '' TERM HUP INT
echo $$ >>"$1"
while :; do read -r -t 100 x <>"$2"; done
END
mkfifo fifo
for i in 1 2 3; do
	setsid env -i bash -c 'bash cling.sh pids fifo & disown' </dev/null >/dev/null 2>&1 &
done
(setsid bash -c 'exec -a innocent bash cling.sh pids fifo' &) &
while [ "$(wc -l 2>/dev/null <pids || echo 0)" -lt 4 ]; do read -r -t 0.05 x <>fifo; done
touch started
while :; do read -r -t 100 x <>fifo; done
"""
BLOCKED = "mkfifo fifo; touch started; read -r x <>fifo"


def start(world, command, *options, before_it=()):
    """A run whose agent hangs in a shell command."""
    world.repository()
    world.before = fingerprint(world.repo)
    scenario = world.scenario(in_turn(*before_it, answer(shell(command, timeout_ms=600000)), answer(report())))
    started = world.start("run", "hang", "--model", f"rehearsal:{scenario}", *options)
    run = world.wait_run(started)
    world.wait_tool(run, "started")
    return started, run


def pids_of(run):
    with open(os.path.join(run.worktree(), "pids"), encoding="utf-8") as f:
        return [int(n) for n in f.read().split()]


def left_of(world, run, tool_pids=()):
    """Everything that belongs to the run is gone, also what is no descendant of this test any more."""
    world.no_strays(5)
    for pid in tool_pids:
        check(not alive(pid), f"process {pid} of a tool lives on", stat_of(pid), command_of(pid))
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            folder = os.readlink(f"/proc/{pid}/cwd")
        except OSError:
            continue
        check(not folder.startswith(run.worktree()) or not alive(pid), f"process {pid} stands in the worktree", command_of(pid))


def kept(world, run):
    """Worktree and branch are there, and nothing of the user's has changed."""
    check(os.path.isdir(run.worktree()), "the worktree is gone")
    check(world.git("branch", "--list", run.branch()), "the branch is gone")
    unchanged(world, world.before)


@test
def killed_agent_is_named_in_the_report(world):
    work = "echo half >half.txt; git add half.txt; git commit -q -m 'Half of it'; echo more >more.txt"
    started, run = start(world, CLINGING, before_it=[answer(shell(work))])
    tools = pids_of(run)
    os.kill(run.agent_pid(), signal.SIGKILL)
    done = started.wait(30)
    equal(done.status, 1, "exit status", done)
    left_of(world, run, tools)
    agent = run.agents()["a1"]
    equal(agent["status"], "lost", "status of the agent")
    check("signal 9" in agent["reason"] or "SIGKILL" in agent["reason"], "the reason does not say why", agent["reason"])
    check("a1" in done.out and "lost" in done.out, "the printed report does not name the agent", done)
    kept(world, run)
    equal(world.git("log", "-1", "--format=%s", run.branch()), "Half of it", "its commit is on the branch")
    equal(world.read(run.worktree() + "/more.txt"), "more\n", "uncommitted work in the worktree")
    equal(run.last("run.finished")["status"], "failed", "status of the run")


@test
def killed_agent_in_a_model_call_is_reported(world):
    world.repository()
    world.before = fingerprint(world.repo)
    scenario = world.scenario([{"match": {"turn": 0}, "answer": answer(shell("touch started"))},
                               {"match": {"turn": 1}, "fault": {"delay_ms": 600000}, "answer": answer(report())}])
    started = world.start("run", "wait", "--model", f"rehearsal:{scenario}")
    run = world.wait_run(started)
    wait_for(lambda: [r for r in run.records("call.reserved") if r["req"] == 2], "the second call", 20, lambda: str(run))
    os.kill(run.agent_pid(), signal.SIGKILL)
    done = started.wait(30)
    equal((done.status, run.agents()["a1"]["status"]), (1, "lost"), "exit and agent's status", done)
    left_of(world, run)
    kept(world, run)


@test
def stopped_agent_does_not_stop_the_run(world):
    started, run = start(world, BLOCKED, "--time-limit", "3s")
    os.kill(run.agent_pid(), signal.SIGSTOP)
    done = started.wait(60)
    equal(done.status, 4, "exit status: the time limit ended it", done)
    left_of(world, run)
    kept(world, run)


def kill_parent(world, *others):
    started, run = start(world, CLINGING)
    tools, everyone = pids_of(run), descendants(started.pid)
    targets = {"parent": run.pid(), "warden": started.pid, "agent": run.agent_pid()}
    for name in others:
        os.kill(targets[name], signal.SIGSTOP)  # so that all of them die in one moment
    for name in others:
        os.kill(targets[name], signal.SIGKILL)
    left_of(world, run, tools)
    for pid in everyone:
        check(not alive(pid), f"process {pid} lives on", command_of(pid))
    kept(world, run)
    return started, run


@test_plain
def killed_parent_leaves_nothing(world):
    started, run = kill_parent(world, "parent")
    done = started.wait(10)
    equal(done.status, 128 + 9, "exit status", done)
    check("killed by signal 9" in done.err and "baton ls" in done.err, "the warden says what happened", done)
    listed = world.baton("ls").out
    check(run.id in listed and "running" not in listed, "baton ls shows a cut run as ended", listed)
    check(run.branch() in world.baton("show", run.id).out, "baton show of a cut run", listed)


@test_plain
def killed_warden_leaves_nothing(world):
    _, run = kill_parent(world, "warden")
    wait_for(lambda: run.last("run.finished"), "a good end of the run", 10)
    check(run.last("run.finished")["status"] in ("stopped", "failed"), "status", run.last("run.finished"))


@test_plain
def killed_parent_and_agent_leave_nothing(world):
    kill_parent(world, "agent", "parent")


@test
def killed_warden_and_parent_leave_nothing(world):
    kill_parent(world, "parent", "warden")


@test_plain
def killed_warden_and_agent_leave_nothing(world):
    kill_parent(world, "agent", "warden")


# ---- checkpoints: what is lost with a worktree is what changed since the last one


def checkpointed(world, *options):
    """A run that has uncommitted work, and its first checkpoint on record, and hangs in a command."""
    started, run = start(world, BLOCKED, "--checkpoint-every", "1ms", *options,
                         before_it=[answer(shell("echo half >half.txt; mkdir d; echo deep >d/deep.txt"))])
    record = wait_for(lambda: run.last("agent.checkpoint"), "a checkpoint", 20, lambda: str(run))
    check(record.get("commit"), "the checkpoint failed", record)
    return started, run, record["commit"]


@test
def killed_agent_and_parent_and_a_lost_worktree_lose_no_checkpoint(world):
    started, run, commit = checkpointed(world)
    everyone = descendants(started.pid)
    for pid in (run.agent_pid(), run.pid()):
        os.kill(pid, signal.SIGSTOP)
    for pid in (run.agent_pid(), run.pid()):
        os.kill(pid, signal.SIGKILL)
    left_of(world, run)
    for pid in everyone:
        check(not alive(pid), f"process {pid} lives on", command_of(pid))
    shutil.rmtree(run.worktree())
    ref = f"refs/baton/{run.id}/a1/ckpt"
    equal(world.git("rev-parse", ref), commit, "the ref of the checkpoint")
    equal(world.git("show", f"{ref}:half.txt") + world.git("show", f"{ref}:d/deep.txt"), "halfdeep", "its files")
    world.baton("clean", run.id)
    equal(world.git("show", f"{ref}:half.txt"), "half", "its files after baton clean")
    unchanged(world, world.before)


@test_plain
def a_worktree_that_its_agent_removes_is_in_the_checkpoint(world):
    world.repository()
    scenario = world.scenario(in_turn(answer(shell("echo half >half.txt")), answer(shell("mkfifo go; touch started; read -r x <go; rm -rf ./* ./.[a-z]*")),
                                      answer(report())))
    started = world.start("run", "hurt", "--model", f"rehearsal:{scenario}", "--checkpoint-every", "1ms")
    run = world.wait_run(started)
    world.wait_tool(run, "started")
    commit = wait_for(lambda: run.last("agent.checkpoint"), "a checkpoint", 20, lambda: str(run))["commit"]
    with open(run.worktree() + "/go", "w", encoding="utf-8") as f:
        f.write("x\n")
    started.wait(60)
    equal(world.git("show", f"{commit}:half.txt"), "half", "the work before")
    world.git("merge-base", "--is-ancestor", commit, f"refs/baton/{run.id}/a1/ckpt")


@test
def checkpoints_wait_for_their_time_and_for_a_change(world):
    world.repository()
    rounds = [answer(shell(f"echo {n} >file.txt")) for n in range(3)]
    run = world.baton("run", "x", "--model", f"rehearsal:{world.scenario(in_turn(*rounds, answer(report())))}") and world.run()
    equal(run.records("agent.checkpoint"), [], "checkpoints of a run that is shorter than the time between two")
    world.baton("run", "x", "--model", f"rehearsal:{world.scenario(in_turn(*rounds, answer(report())))}", "--checkpoint-every", "0")
    equal(world.run().records("agent.checkpoint"), [], "checkpoints of a run that wants none")
    reads = [answer(call("read", path="README.md", offset=n + 1)) for n in range(3)]
    world.baton("run", "x", "--model", f"rehearsal:{world.scenario(in_turn(*reads, answer(report())))}", "--checkpoint-every", "1ms")
    equal(world.run().records("agent.checkpoint"), [], "checkpoints of a run that changed nothing")


@test
def clean_and_ls_work_after_a_killed_parent(world):
    _, run = kill_parent(world, "parent")
    worktree = run.worktree()
    world.baton("clean", run.id)
    check(not os.path.exists(worktree) and not os.path.exists(run.dir), "baton clean left something of a cut run")
    check(world.git("branch", "--list", run.branch()), "baton clean took the branch")
    unchanged(world, world.before)


@test
def killed_gateway_costs_a_retry_and_nothing_else(world):
    world.repository()
    rules = in_turn(answer(shell("echo one >one.txt")), {"text": "word " * 400, **answer(shell("echo two >two.txt"))}, answer(report()))
    rules.insert(0, {"match": {"turn": 1}, "times": 1, "per": "all", "fault": {"slow": 400}})
    scenario = world.scenario(rules)
    started = world.start("run", "go on", "--model", f"rehearsal:{scenario}")
    run = world.wait_run(started)
    wait_for(lambda: [r for r in run.records("call.reserved") if r["req"] == 2], "the second call", 20, lambda: str(run))
    gateway = run.children()["baton-gateway"][0]
    os.kill(gateway, signal.SIGKILL)
    done = started.wait(40)
    equal(done.status, 0, "exit status", done)
    equal(len(run.records("gateway.died")), 1, "deaths of the gateway")
    equal(run.agents()["a1"]["rounds"], 3, "rounds")
    equal(world.git("show", f"{run.branch()}:two.txt"), "two", "the work after it")
    left_of(world, run)


@test_plain
def gateway_that_keeps_dying_ends_the_run(world):
    world.repository()
    scenario = world.scenario([{"match": {"turn": 0}, "fault": {"delay_ms": 600000}, "answer": answer(report())}])
    started = world.start("run", "wait", "--model", f"rehearsal:{scenario}")
    run = world.wait_run(started)
    killed = set()

    def kill_next():
        for pid in run.children().get("baton-gateway", []):
            if pid not in killed:
                killed.add(pid)
                kill_quietly(pid)
        return started.ended()
    wait_for(kill_next, "end of the run", 40, lambda: str(run))
    check(started.wait().status != 0, "a success without an answer", str(run))
    check(2 <= len(killed) <= 6, "deaths of the gateway", killed)
    check("gateway" in (run.last("run.finished")["reason"] or "") or "gateway" in run.agents()["a1"]["reason"], "the reason", run)
    left_of(world, run)


@test
def killed_baton_git_ends_the_run_with_the_work_kept(world):
    started, run = start(world, BLOCKED, before_it=[answer(shell("echo half >half.txt"))])
    os.kill(run.children()["baton-git"][0], signal.SIGKILL)
    done = started.wait(40)
    equal(done.status, 1, "exit status", done)
    check("worktree service" in done.out + done.err, "the reason is not printed", done)
    left_of(world, run)
    equal(world.read(run.worktree() + "/half.txt"), "half\n", "work in the worktree")
    kept(world, run)
    world.baton("clean", run.id)
    refs = world.git("for-each-ref", "--format=%(refname)", f"refs/baton/{run.id}").split("\n")
    check("half" in [world.git("show", f"{ref}:half.txt", status=None) for ref in refs if ref], "no ref keeps the work", refs)


@test_plain
def killed_view_stops_nobody(world):
    started, run = start(world, "touch started; read -r x <go", "--plain", before_it=[answer(shell("mkfifo go"))])
    wait_for(lambda: run.children().get("view"), "the view", 10)
    os.kill(run.children()["view"][0], signal.SIGKILL)
    world.command("bash", "-c", "echo >go", cwd=run.worktree())
    equal(started.wait(30).status, 0, "exit status")


@test_plain
def killed_shell_and_box_are_an_ordinary_failure_of_the_tool(world):
    world.repository()
    scenario = world.scenario(in_turn(answer(shell("kill -9 $$")), answer(shell("echo on >on.txt")), answer(report())))
    world.baton("run", "go on", "--model", f"rehearsal:{scenario}")
    run = world.run()
    equal([t["ok"] for t in run.tools()][:2], [False, True], "tool calls")


@test_plain
def an_ended_run_leaves_no_background_job(world):
    world.repository()
    scenario = world.scenario(in_turn(answer(shell("mkfifo f; touch started; read -r x <>f", background=True)),
                                      answer(shell(CLINGING.replace("while :; do read -r -t 100 x <>fifo; done\n", "", 1)
                                                   .rpartition("while :")[0])), answer(report())))
    world.baton("run", "leave jobs", "--model", f"rehearsal:{scenario}")
    run = world.run()
    equal(run.last("run.finished")["status"], "succeeded", "status", run)
    left_of(world, run)


@test_plain
def an_agent_of_a_review_that_is_killed_leaves_the_others(world):
    world.repository({"a.txt": "one\n", "b.txt": "one\n"})
    for name in ("a.txt", "b.txt"):
        world.write(f"{world.repo}/{name}", "one\ntwo\n" + f"{name} text that makes the diff longer\n" * 40)
    world.git("commit", "-q", "-a", "-m", "Two")
    finding = {"file": "a.txt", "line": 2, "severity": "low", "category": "x", "claim": "wrong", "evidence": "two"}
    scenario = world.scenario([{"match": {"task": "diff --git a/b.txt"}, "fault": {"delay_ms": 600000}, "answer": answer(report())},
                               *in_turn({"tool_calls": [{"name": "read", "input": {"path": "a.txt"}}]},
                                        answer(report(findings=[finding])))])
    started = world.start("review", "HEAD~1..HEAD", "--model", f"rehearsal:{scenario}")
    run = world.wait_run(started)

    def kill_hanging():
        ended = {r["agent"] for r in run.records("agent.done")}
        for record in run.records("agent.spawned"):
            path = f"{run.dir}/agents/{record['agent']}/1/transcript.jsonl"
            if ended and os.path.exists(path) and "b.txt" in world.read(path):
                kill_quietly(record["pid"])
        return started.ended()
    wait_for(kill_hanging, "end of the review", 30, lambda: str(run))
    done = started.wait(30)
    equal(done.status, 1, "exit status", done)
    equal([f["file"] for f in run.report()["result"]["findings"]], ["a.txt"], "findings of the other")
    check("not reviewed: b.txt" in done.out, "what was not reviewed is not named", done)
    left_of_review(world)


def left_of_review(world):
    world.no_strays(5)
    equal(subprocess.run(["git", "-C", world.repo, "worktree", "list"], env=world.env, capture_output=True, text=True,
                         check=True).stdout.count("\n"), 1, "registered worktrees")


main()
