#!/usr/bin/env python3
"""`baton resume`: a run goes on after kill -9 of any process, a stop, or a limit (R6, X12, I10), and what somebody did to
its worktree meanwhile has a defined outcome. Section O of the traps.
"""
import json
import os
import re
import resource
import shutil
import signal
import subprocess

from rig import BATON, answer, call, check, command_of, descendants, equal, in_turn, main, report, shell, test, wait_for

# Leaves a commit, then waits until the test lets it go on.
WAIT = "touch started; while [ ! -e go ]; do read -r -t 0.05 x <>fifo; done"
WORK = "mkfifo fifo; echo one >one.txt; git add one.txt; git commit -q -m One; " + WAIT


def start(world, *options, work=WORK, tail=()):
    world.repository()
    world.write(world.repo + "/.gitignore", "fifo\nstarted\ngo\n")
    world.git("add", "-A")
    world.git("commit", "-q", "-m", "Ignore")
    scenario = world.scenario(in_turn(answer(shell(work, timeout_ms=600000)), *tail, answer(report("All done."))))
    started = world.start("run", "make one", "--model", f"rehearsal:{scenario}", *options)
    run = world.wait_run(started)
    world.wait_tool(run, "started")
    return started, run


def kill_all(world, started, run):
    """The parent is killed, the warden cleans up."""
    os.kill(run.pid(), signal.SIGKILL)
    started.wait(30)
    world.no_strays(8)


def let_go(run, worktree=None):
    with open(os.path.join(worktree or run.worktree(), "go"), "w", encoding="utf-8"):
        pass


def resume(world, run, *options, status=0):
    done = world.baton("resume", run.id, "--json", *options, status=None)
    equal(done.status, status, "exit status of resume", done, str(run))
    return done


def finished(world, run, path="one.txt", text="one"):
    last = run.last("run.finished")
    equal((last["status"], last["exit_status"]), ("succeeded", 0), "the end", str(run))
    equal(world.git("show", f"{run.branch()}:{path}"), text, "the work")
    world.no_strays(5)


@test
def a_killed_parent(world):
    started, run = start(world, "--max-tokens", "500k")
    kill_all(world, started, run)
    listed = json.loads(world.baton("ls", "--json").out)
    equal([(r["status"], r["resumable"]) for r in listed], [("cut off", True)], "ls")
    check(f"baton resume {run.id}" in world.baton("ls").out, "ls does not say how to go on")
    check(f"baton resume {run.id}" in world.baton("resume").out, "resume does not offer it")
    equal(json.loads(world.baton("resume", "--json").out), [run.id], "the same as JSON")
    let_go(run)
    before = len(run.records())
    done = resume(world, run)
    first = json.loads(done.out.splitlines()[0])
    equal(first["type"], "run.resumed", "what is told begins with the resumption")
    equal(first["max_tokens"], 500000, "the limit of the start holds")
    finished(world, run)
    spawned = run.records("agent.spawned")
    equal([(r["agent"], r["generation"], r["key"]) for r in spawned], [("a1", 1, "lead")] * 2, "one agent")
    equal(len(run.records("worktree.created")), 1, "worktrees that were made")
    equal(run.last("worktree.reopened")["how"], "kept", "the worktree")
    equal(len(run.records("branch.imported")), 1, "imports")
    check(len(run.records()) > before, "the journal goes on")
    # Of the call that was under way, and of all others, everything is in the books.
    usage, settled = run.last("run.finished")["usage"], run.records("call.settled")
    equal(usage["calls"], len(settled), "calls in the report", usage)
    again = world.baton("resume", run.id, status=2)
    check("has finished" in again.err and "baton show" in again.err, "a finished run is refused", again)
    equal(world.baton("resume").out.count(run.id), 0, "a finished run is not offered")


@test
def a_living_run_is_refused(world):
    started, run = start(world)
    done = world.baton("resume", run.id, status=2)
    check(f"process {run.pid()}" in done.err and f"baton stop {run.id}" in done.err, "the refusal", done)
    let_go(run)
    equal(started.wait(40).status, 0, "the run itself")
    finished(world, run)


@test
def killed_services_and_stops(world):
    """baton-git dies, then the user stops it, then the agent dies: each time it goes on."""
    more = answer(shell(WAIT, timeout_ms=600000))
    started, run = start(world, tail=(more, more))
    os.kill(run.children()["baton-git"][0], signal.SIGKILL)
    done = started.wait(40)
    equal(done.status, 1, "without baton-git it cannot go on", done)
    check(f"baton resume {run.id}" in done.out, "it is not said how to go on", done)
    os.unlink(os.path.join(run.worktree(), "started"))
    second = world.start("resume", run.id)
    world.wait_tool(run, "started")
    os.kill(run.records("run.resumed")[-1]["pid"], signal.SIGINT)
    equal(second.wait(40).status, 130, "stopped")
    os.unlink(os.path.join(run.worktree(), "started"))
    third = world.start("resume", run.id)
    world.wait_tool(run, "started")
    os.kill(run.agent_pid(), signal.SIGKILL)
    equal(third.wait(40).status, 1, "the agent was lost")
    let_go(run)
    resume(world, run)
    finished(world, run)
    equal(len({r["generation"] for r in run.records("agent.spawned")}), 1, "generations")


@test
def the_worktree_is_gone(world):
    started, run = start(world)
    kill_all(world, started, run)
    shutil.rmtree(run.worktree())
    os.makedirs(run.worktree() + "-x")
    let = world.scenario(in_turn(answer(report("Not asked for.")), answer(shell("cat one.txt >two.txt; git add two.txt; git commit -q -m Two")),
                                 answer(report("All done."))))
    resume(world, run, "--model", f"rehearsal:{let}")
    finished(world, run, "two.txt")
    reopened = run.last("worktree.reopened")
    equal(reopened["how"], "restored", "the worktree")
    check("was gone" in reopened["notes"][0], "the agent is not told", reopened)


@test
def the_worktree_was_moved(world):
    started, run = start(world)
    kill_all(world, started, run)
    place, elsewhere = run.worktree(), run.worktree() + "-moved"
    os.rename(place, elsewhere)
    done = resume(world, run, status=1)
    said = run.last("agent.ended")["reason"]
    check(place in said and elsewhere in said and f"mv '{elsewhere}'" in said, "both places are named", said, done)
    os.rename(elsewhere, place)
    let_go(run)
    resume(world, run)
    finished(world, run)


@test
def the_repository_was_moved(world):
    """To another folder: every command goes on there. A copy may not touch the worktree as long as the first is there."""
    started, run = start(world)
    kill_all(world, started, run)
    worktree, copy, there = run.worktree(), world.path("copy"), world.path("there")
    subprocess.run(["cp", "-a", world.repo, copy], check=True)
    for command in (["resume", run.id], ["diff", f"{run.id}/a1"], ["clean", run.id]):
        done = world.baton(*command, cwd=copy, status=None)
        check("is a copy of" in done.out + done.err and world.repo in done.out + done.err, "the copy", done)
    os.rename(world.repo, there)
    world.repository()  # a stranger at the old place
    world.repo = there
    check("+one" in world.baton("diff", f"{run.id}/a1").out, "diff")
    let_go(run, worktree)
    run = world.run()
    resume(world, run)
    finished(world, run)
    equal((run.last("worktree.reopened")["how"], run.worktree()), ("kept", worktree), "the worktree")
    world.baton("clean", run.id)
    check(not os.path.exists(worktree) and not os.path.exists(run.dir), "clean left something")


@test
def files_and_branch_changed_meanwhile(world):
    started, run = start(world)
    kill_all(world, started, run)
    world.write(run.worktree() + "/stranger.txt", "x\n")
    later = os.stat(run.worktree() + "/stranger.txt").st_ctime + 4

    def old_enough():
        world.write(run.worktree() + "/stranger.txt", "x\n")
        return os.stat(run.worktree() + "/stranger.txt").st_ctime > later
    wait_for(old_enough, "a time that is not the run's own", 10)
    world.git("branch", "-f", run.branch(), "main~0^{commit}")
    world.git("update-ref", f"refs/heads/{run.branch()}", world.git("commit-tree", "-m", "Mine", "main^{tree}"))
    let_go(run)
    done = resume(world, run, status=1)
    notes = run.last("worktree.reopened")["notes"]
    check(any("moved" in n and "somebody else" in n for n in notes), "the branch", notes)
    check(any("stranger.txt" in n for n in notes), "the file", notes)
    equal(world.git("log", "-1", "--format=%s", run.branch()), "Mine", "the user's branch is his")
    check("moved by somebody else" in run.last("run.finished")["reason"], "the reason", done)


@test
def the_machine_was_restarted(world):
    """What commands wrote may be gone: the agent is told, with the files that look so and where they are whole."""
    started, run = start(world)
    kill_all(world, started, run)
    path = os.path.join(run.dir, "run.jsonl")
    with open(path, encoding="utf-8") as f:
        text = f.read()
    with open(path, "w", encoding="utf-8") as f:  # the machine has not been up since then
        f.write(re.sub(r'"t":"\d{4}-', '"t":"2001-', text))
    world.write(run.worktree() + "/torn.txt", "half of it\n\0\0\0")
    let_go(run)
    resume(world, run)
    notes = [n for n in run.last("worktree.reopened")["notes"] if "restarted" in n]
    check(len(notes) == 1 and "torn.txt" in notes[0] and "one.txt" not in notes[0] and "git show " in notes[0], "the note", notes)


@test
def a_damaged_journal(world):
    started, run = start(world)
    kill_all(world, started, run)
    path, worktree = os.path.join(run.dir, "run.jsonl"), run.worktree()
    with open(path, encoding="utf-8") as f:
        lines = f.read().split("\n")[:-1]
    tools = [line for line in lines if '"call.settled"' in line]
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join([lines[0][:50]] + lines[1:] + tools[:1] + [lines[-1][:20]]))
    let_go(run, worktree)
    done = world.baton("resume", run.id, "--plain", status=0)
    check("damaged line" in done.err, "nothing is said of damaged lines", done)
    resumed = json.loads([x for x in open(path, encoding="utf-8") if '"run.resumed"' in x][0])
    equal((resumed["bad_lines"], resumed["duplicates"]), (2, len(tools[:1])), "bad lines and duplicates")
    usage = json.load(open(os.path.join(run.dir, "report.json"), encoding="utf-8"))["usage"]
    check(usage["calls"] <= 4, "a settlement counts twice", usage)
    equal(world.git("show", f"{run.branch()}:one.txt"), "one", "the work")


@test
def limits_hold_across_parts(world):
    started, run = start(world, "--time-limit", "2s")
    equal(started.wait(40).status, 4, "the time limit")
    done = world.baton("resume", run.id, status=2)
    check("--time-limit" in done.err and "larger" in done.err, "what to do", done)
    let_go(run)
    resume(world, run, "--time-limit", "5m")
    finished(world, run)
    check(run.report()["duration_ms"] >= 2000, "the first part counts")


@test
def collecting_is_cut_off(world):
    """The report is on record and the parent dies: no process is started again, and the work comes home once."""
    started, run = start(world)
    let_go(run)
    equal(started.wait(40).status, 0, "the run")
    path = os.path.join(run.dir, "run.jsonl")
    with open(path, encoding="utf-8") as f:
        lines = f.read().split("\n")[:-1]
    for last in ("agent.report", "agent.ended", "branch.imported", "agent.done"):
        at = max(i for i, line in enumerate(lines) if f'"type":"{last}"' in line)
        with open(path, "w", encoding="utf-8") as f:
            f.write("\n".join(lines[:at + 1]) + "\n")
        before = [r["pid"] for r in run.records("agent.spawned")]
        resume(world, run)
        equal([r["pid"] for r in run.records("agent.spawned")], before, f"processes after {last}")
        finished(world, run)
        agent = run.report()["agents"][0]
        equal((agent["status"], agent["seen"]["state"], len(agent["seen"]["commits"])), ("done", "claimed", 1), last)
        check(agent["seen"]["diff_stat"], "the diff", last)


@test
def a_full_disk(world):
    """What cannot be recorded does not happen; the end is written into what the reserve left, and it goes on with room."""
    os.makedirs(world.repo)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "none", world.repo], capture_output=True, check=False)
    if mounted.returncode != 0:
        return  # not root, or not allowed to: the unit test of the journal has a namespace of its own
    try:
        fill = "cd \"$(git rev-parse --git-dir)\"; dd if=/dev/zero of=junk bs=4k 2>/dev/null; touch \"$OLDPWD/filled\"; "
        started, run = start(world, work=fill + "cd \"$OLDPWD\"; " + WORK)
        let_go(run)
        wait_for(started.ended, "the end of the run", 40, lambda: started.text("err"))
        done = started.wait()
        equal(done.status, 1, "exit status", done)
        check("No space left" in done.err + done.out, "the reason is not told", done)
        check(run.dir in done.err + done.out, "the path is not told", done)
        last = run.last("run.finished")  # rig's records() fails on half a record
        equal((last["status"], last["resumable"]), ("failed", True), "the end")
        junk = [os.path.join(d, "junk") for d, _, files in os.walk(run.dir) if "junk" in files]
        os.unlink(junk[0])
        go = world.scenario(in_turn(answer(report("?")), answer(shell("echo one >one.txt")), answer(report("All done."))))
        resume(world, run, "--model", f"rehearsal:{go}")
        finished(world, run)
    finally:
        subprocess.run(["umount", "-l", world.repo], check=False)


def only_open_files(pid, more):
    """From now on this process opens `more` files and then no further one."""
    used = min(set(range(4096)) - {int(n) for n in os.listdir(f"/proc/{pid}/fd")})
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (used + more, used + more))


@test
def too_few_descriptors(world):
    """At the start, then in the middle of an agent, of baton-git: what is short and how to raise it is said, and it goes on."""
    more = answer(shell(WAIT, timeout_ms=600000))
    started, run = start(world, tail=(more, more))
    few = world.command("bash", "-c", 'ulimit -n 20; exec "$0" "$@"', BATON, "run", "x", "--model",
                        f"rehearsal:{world.scenario([])}", status=2)
    check("'ulimit -n 40'" in few.err and "20 open files" in few.err, "at the start", few)
    equal(len(world.runs()), 1, "runs")
    only_open_files(run.agent_pid(), 0)
    let_go(run)
    done = started.wait(40)
    check("Too many open files" in done.out and "'ulimit -n' raises it" in done.out, "the agent", done)
    check("a command changed" not in done.out, "a command is blamed", done)
    os.unlink(os.path.join(run.worktree(), "go"))
    os.unlink(os.path.join(run.worktree(), "started"))
    second = world.start("resume", run.id)
    world.wait_tool(run, "started")
    git = [pid for pid in descendants(second.pid) if os.path.basename(command_of(pid).split(" ")[0]) == "baton-git"]
    only_open_files(git[0], 0)
    let_go(run)
    done = second.wait(40)
    check("Too many open files" in done.out and f"baton resume {run.id}" in done.out, "baton-git", done)
    equal(done.status, 1, "its work is not home", done)
    resume(world, run)
    finished(world, run)


@test
def a_smaller_window_elsewhere(world):
    """The gateway dies in a run that is being cut off; it goes on at another provider with other forms, whose window the
    conversation is too large for: room is made first, and no request is refused."""
    long = [answer(shell(f"seq {i}000 {i}999")) for i in range(1, 8)]
    started, run = start(world, tail=(*long, answer(shell("rm go started; " + WAIT, timeout_ms=600000))))
    let_go(run)
    wait_for(lambda: len(run.records("agent.tool")) == 8, "the long outputs", 40, lambda: str(run))
    world.wait_tool(run, "started")
    os.kill(run.children()["baton-gateway"][0], signal.SIGKILL)
    kill_all(world, started, run)
    let_go(run)
    server = world.server([{"match": {}, "answer": answer(report("All done."))}], "--window", "16000")
    world.config(providers={"fake": {"api": "openai", "base_url": server.url + "/v1", "key_env": "FAKE_API_KEY"}})
    world.env["FAKE_API_KEY"] = "sk-test-0123456789"
    again = world.start("resume", run.id, "--model", "fake/one", "--window", "16000", "--json")
    done = again.wait(60)
    equal(done.status, 0, "exit status", done)
    finished(world, run)
    stats = server.stats()
    equal((stats["refused"], stats["n_violations"], stats["requests"]), (0, 0, 1), "what the server saw", stats)
    check(any(r["data"]["before"] > 16000 > r["data"]["after"] for r in run.records("agent.compact")), "room was made", str(run))
    equal(len(run.records("branch.imported")), 1, "imports")


@test
def the_transcript_is_gone(world):
    """What it did is in the worktree and nowhere else: it is told so before it does it once more. A deleted branch that
    is made again lets the work come home."""
    started, run = start(world, work="true", tail=(answer(shell(WORK, timeout_ms=600000)),))
    kill_all(world, started, run)
    os.unlink(os.path.join(run.dir, "agents/a1/1/transcript.jsonl"))
    world.git("branch", "-D", run.branch())
    told = {"match": {"turn": 0, "task": "1 tool calls? were made in this worktree"}, "answer": answer(report("All done."))}
    done = resume(world, run, "--model", f"rehearsal:{world.scenario([told])}", status=1)
    again = run.last("run.finished")["reason"]
    check(f"git branch {run.branch()} " in again, "what to do", done)
    world.git("branch", run.branch(), again.split("git branch ")[1].split("'")[0].split(" ")[1])
    resume(world, run)
    finished(world, run)
    equal(len(run.records("agent.spawned")), 2, "processes")


@test
def a_review(world):
    world.repository()
    for name in ("a", "b"):
        world.write(world.repo + f"/{name}/{name}.c", "".join(f"int {name}{i};\n" for i in range(300)))
    world.git("add", "-A")
    world.git("commit", "-q", "-m", "More")
    slow = {"match": {"turn": 0, "task": "b299"}, "fault": {"delay_ms": 600000}, "answer": answer(report("late"))}
    quick = {"match": {"turn": 0}, "answer": answer(report("Read.", findings=[]))}
    scenario = world.scenario([slow, quick])
    started = world.start("review", "--model", f"rehearsal:{scenario}", "--shard-tokens", "1500", "--agents", "2")
    run = world.wait_run(started)
    wait_for(lambda: [r for r in run.records("agent.done")], "one reviewer is done", 30, lambda: str(run))
    kill_all(world, started, run)
    already = {r["agent"] for r in run.records("agent.done")}
    world.git("commit", "-q", "--allow-empty", "-m", "HEAD has moved")
    world.baton("resume", run.id, "--json", "--model", f"rehearsal:{world.scenario([quick])}", status=0)
    spawned = [(r["agent"], r["key"]) for r in run.records("agent.spawned")]
    for agent in already:
        equal(len([s for s in spawned if s[0] == agent]), 1, f"processes of {agent}", spawned)
    equal(len(run.records("review.sharded")), 1, "the shards are those of before")
    equal(run.last("run.finished")["status"], "succeeded", "the end", str(run))
    world.no_strays(5)


main()
