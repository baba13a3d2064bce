#!/usr/bin/env python3
"""`baton run` on examples/fix: the work is on the branch, the user's repository is as it was, and the
commands that follow a run (ls, show, diff, clean, adopt) do what they say. Items 8 to 10 of the issue; I8, X5.
"""
import json
import os

from rig import check, equal, fingerprint, main, test, test_plain, unchanged

TASK = "make test fails: find out why and repair it"


def fix(world, *options, protocol="rehearsal"):
    scenario = world.example("fix")
    world.before = fingerprint(world.repo)
    done = world.baton("run", TASK, "--model", f"{protocol}:{scenario}", *options)
    return done, world.run()


def repaired(world, run):
    """The branch holds one commit that makes the test pass, shown in a clone of the user's own."""
    branch = run.branch()
    equal(world.git("log", "--format=%s", f"main..{branch}"), "count: see the start of a word", "the branch's commits")
    equal(world.git("diff", "--name-only", "main", branch), "src/count.c", "the branch's changes")
    world.git("clone", "-q", "--branch", branch, world.repo, world.path("clone"))
    check("all 4 checks passed" in world.command("make", "test", cwd=world.path("clone")).out,
          "the test does not pass on the branch")


@test
def fix_repairs_the_test_and_leaves_the_user_alone(world):
    done, run = fix(world)
    repaired(world, run)
    unchanged(world, world.before)
    equal(world.git("status", "--porcelain"), "", "git status of the user's checkout")
    equal(run.last("run.finished")["status"], "succeeded", "status")
    check(f"git merge {run.branch()}" in done.out, "how to merge is not printed", done)
    check("1 file changed" in done.out and "report.md" in done.out, "diff stat or report is not printed", done)
    world.git("merge", "-q", "--ff-only", run.branch())
    world.no_strays(0)


@test_plain
def fix_works_over_the_openai_protocol(world):
    _, run = fix(world, protocol="rehearsal+openai")
    repaired(world, run)
    unchanged(world, world.before)
    equal(run.agents()["a1"]["claimed"]["status"], "done", "claim")


@test_plain
def fix_removes_its_worktree_and_pins_what_it_held(world):
    _, run = fix(world)
    check(not os.path.exists(run.worktree()), "the worktree is still there")
    equal(len(world.git("worktree", "list").splitlines()), 1, "registered worktrees", world.git("worktree", "list"))
    saved = world.git("for-each-ref", "--format=%(refname)", f"refs/baton/{run.id}")
    check(f"refs/baton/{run.id}/a1" in saved, "no ref keeps what the worktree held (I7)", saved)


@test_plain
def report_says_what_was_claimed_and_what_was_seen(world):
    _, run = fix(world)
    agent = run.agents()["a1"]
    equal(agent["seen"]["state"], "verified", "state (X5)", agent)
    equal(agent["seen"]["tool_calls"], 8, "tool calls")
    equal(agent["seen"]["failed_calls"], 1, "failed calls")
    equal(agent["claimed"]["commits"], [world.git("rev-parse", run.branch())], "claimed commits")
    equal(agent["seen"]["claimed_commits_missing"], [], "claimed commits that are missing")
    calls = sum(1 for r in run.transcript() if r["type"] == "tool_started" and r["tool"] != "report")
    equal(calls, 8, "tools started, by the transcript")


@test
def commands_show_a_run(world):
    _, run = fix(world)
    listed = json.loads(world.baton("ls", "--json").out)
    equal([(r["run"], r["status"], r["agents"]) for r in listed], [(run.id, "succeeded", 1)], "baton ls --json")
    check(TASK in world.baton("ls").out, "baton ls does not show the task")
    shown = json.loads(world.baton("show", run.id, "--json").out)
    equal(shown, run.report(), "baton show --json")
    check("count_words was inverted" in world.baton("show").out, "baton show without a name shows no report")
    check(run.branch() in world.baton("show", f"{run.id}/a1").out, "baton show RUN/AGENT names no branch")
    diff = world.baton("diff", f"{run.id}/a1").out
    check("-\t\t} else if (inside) {" in diff and "+\t\t} else if (!inside) {" in diff, "baton diff", diff)
    equal(json.loads(world.baton("show", run.id, "--json", cwd=world.repo + "/src").out)["run"], run.id,
          "from a folder below the root")
    world.baton("show", "no-such-run", status=2)


@test
def keep_then_clean(world):
    _, run = fix(world, "--keep")
    worktree = run.worktree()
    check(os.path.exists(worktree + "/tests/test_count"), "--keep did not keep the worktree with its ignored files")
    equal(len(world.git("worktree", "list").splitlines()), 2, "git worktree list names the agent's worktree too")
    world.command("git", "worktree", "remove", worktree, status=128)
    world.write(worktree + "/notes.txt", "written after the end\n")
    world.baton("clean", run.id)
    check(not os.path.exists(worktree), "baton clean left the worktree")
    check(not os.path.exists(run.dir), "baton clean left the run's folder")
    refs = world.git("for-each-ref", "--format=%(refname)", f"refs/baton/{run.id}").split("\n")
    kept = [world.git("show", f"{ref}:notes.txt", status=None) for ref in refs]
    check("written after the end" in kept, "what was in the worktree is reachable from no ref (I7)", refs)
    equal(world.git("show", f"{run.branch()}:src/count.c").count("!inside"), 1, "the repaired line on the branch")
    equal(world.git("log", "-1", "--format=%s", run.branch()), "count: see the start of a word", "the branch after clean")
    unchanged(world, world.before)


@test
def adopt_makes_an_ordinary_worktree(world):
    _, run = fix(world, "--keep")
    world.baton("adopt", f"{run.id}/a1", world.path("mine"))
    mine = world.path("mine")
    equal(world.git("rev-parse", "--abbrev-ref", "HEAD", cwd=mine), run.branch(), "branch of the adopted worktree")
    equal(world.git("status", "--porcelain", cwd=mine), "", "git status in the adopted worktree")
    world.write(mine + "/more.txt", "more\n")
    world.git("add", "more.txt", cwd=mine)
    world.git("commit", "-q", "-m", "More", cwd=mine)
    equal(world.git("log", "-1", "--format=%s", run.branch()), "More", "a commit there moves the user's branch")
    world.baton("clean", status=2)
    world.baton("clean", "--yes")
    check(os.path.exists(mine + "/more.txt"), "baton clean took a worktree that is the user's now")
    world.git("worktree", "remove", mine)


@test
def a_task_comes_from_stdin_or_a_file(world):
    scenario = world.example("fix")
    world.baton("run", "-", "--model", f"rehearsal:{scenario}", stdin=TASK)
    world.write("task.md", TASK + "\n")
    world.baton("run", "--file", world.path("task.md"), "--model", f"rehearsal:{scenario}")
    equal([r.records("run.started")[0]["task"].strip() for r in world.runs()], [TASK, TASK], "tasks")


@test
def work_of_an_agent_that_does_not_pass_is_not_claimed(world):
    scenario = world.example("fix")
    text = world.read(world.repo + "/tests/test_count.c").replace('"  one  "), 1', '"  one  "), 7')
    world.write(world.repo + "/tests/test_count.c", text)
    world.git("commit", "-q", "-a", "-m", "Expect seven")
    done = world.baton("run", TASK, "--model", f"rehearsal:{scenario}", status=1)
    agent = world.run().agents()["a1"]
    equal(agent["claimed"]["status"], "blocked", "claim", done)
    equal(world.git("log", "-1", "--format=%s", "main"), "Expect seven", "the user's branch")


main()
