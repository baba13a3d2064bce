#!/usr/bin/env python3
"""Where a run starts from: uncommitted work, other commits, setup commands, and all kinds of repositories. Item 8 of
the issue; traps 116, 126 and those of section N. Each kind works, or is refused with the reason.
"""
import glob
import json
import os
import shutil
import signal
import time

from rig import BATON, answer, check, equal, fingerprint, in_turn, main, report, shell, test, test_plain, unchanged, wait_for

COMMIT = "git add -A; git commit -q -m 'By the agent'"


def go(world, *answers, options=(), status=0, cwd=None, repo=None):
    scenario = world.scenario(in_turn(*(answers or [answer(shell("ls -A >seen.txt; " + COMMIT))]), answer(report())))
    done = world.baton("run", "go on", "--model", f"rehearsal:{scenario}", *options, status=status, cwd=cwd)
    run = world.run() if status == 0 else None
    if run:
        run.done = done
    return run or done


def committed(world, run, name, cwd=None):
    return world.git("show", f"{run.branch()}:{name}", cwd=cwd)


@test
def dirty_puts_uncommitted_work_into_the_base(world):
    world.repository({"a.txt": "one\n", "gone.txt": "x\n", "staged.txt": "x\n", ".gitignore": "*.o\n", "run.sh": "true\n"})
    for name, text in (("a.txt", "changed\n"), ("new.txt", "untracked\n"), ("deep/new.txt", "untracked\n"), ("x.o", "ignored\n"), ("staged.txt", "staged\n")):
        world.write(f"{world.repo}/{name}", text)
    os.remove(world.repo + "/gone.txt")
    os.chmod(world.repo + "/run.sh", 0o755)
    os.symlink("a.txt", world.repo + "/link")
    world.git("add", "staged.txt")
    world.write(f"{world.repo}/staged.txt", "staged and then changed\n")
    before, status = fingerprint(world.repo), world.git("status", "--porcelain")
    run = go(world, answer(shell("cat a.txt new.txt deep/new.txt staged.txt >seen.txt; ls -A >names.txt; git status --porcelain >status.txt; test -x run.sh && test -L link && echo yes >kinds.txt; "
                                 "git add seen.txt names.txt status.txt kinds.txt; git commit -q -m Seen")), options=["--dirty"])
    equal(committed(world, run, "seen.txt"), "changed\nuntracked\nuntracked\nstaged and then changed", "what the agent saw")
    names = committed(world, run, "names.txt").split("\n")
    check("gone.txt" not in names and "x.o" not in names, "deleted or ignored files in the base", names)
    check("a.txt" not in committed(world, run, "status.txt"), "the user's changes are changes of the agent", committed(world, run, "status.txt"))
    equal(committed(world, run, "kinds.txt"), "yes", "modes and links")
    unchanged(world, before)
    equal(world.git("status", "--porcelain"), status, "git status of the user")


@test_plain
def without_dirty_uncommitted_work_stays_out(world):
    world.repository({"a.txt": "one\n"})
    world.write(f"{world.repo}/a.txt", "changed\n")
    before = fingerprint(world.repo)
    run = go(world, answer(shell("cp a.txt seen.txt; " + COMMIT)))
    equal(committed(world, run, "seen.txt"), "one", "what the agent saw")
    unchanged(world, before)


@test_plain
def base_names_another_commit(world):
    world.repository({"a.txt": "one\n"})
    world.git("tag", "-a", "-m", "first", "first")
    world.write(f"{world.repo}/a.txt", "two\n")
    world.git("commit", "-q", "-a", "-m", "Two")
    for rev in ("HEAD~1", "first", world.git("rev-parse", "HEAD~1")[:9]):
        run = go(world, answer(shell("cp a.txt seen.txt; " + COMMIT)), options=["--base", rev])
        equal(committed(world, run, "seen.txt"), "one", f"base {rev}")
        equal(world.git("rev-parse", f"{run.branch()}~1"), world.git("rev-parse", "HEAD~1"), "parent of the agent's commit")


@test_plain
def detached_head_works(world):
    world.repository({"a.txt": "one\n"})
    world.git("checkout", "-q", "--detach")
    before = fingerprint(world.repo)
    run = go(world)
    check("a.txt" in committed(world, run, "seen.txt"), "files")
    unchanged(world, before)


@test
def a_linked_worktree_is_a_fine_start(world):
    """Trap 116: all tools of the agent work in one and the same root."""
    world.repository({"a.txt": "one\n"})
    linked = world.path("linked")
    world.git("worktree", "add", "-q", "-b", "side", linked)
    world.write(linked + "/b.txt", "side\n")
    world.git("add", "b.txt", cwd=linked)
    world.git("commit", "-q", "-m", "Side", cwd=linked)
    before = fingerprint(world.repo)
    linked_before = {n: world.read(f"{linked}/{n}") for n in os.listdir(linked)}
    run = go(world, answer({"name": "write", "input": {"path": "f.txt", "content": "by write\n"}}), answer(shell("git status --porcelain; cat f.txt b.txt")),
             answer(shell(COMMIT)), cwd=linked)
    text = run.results()[1][1]
    check("?? f.txt" in text and "by write" in text and "side" in text, "the shell does not see what write wrote", text)
    equal(committed(world, run, "f.txt"), "by write", "the branch in the user's repository")
    unchanged(world, before)
    equal({n: world.read(f"{linked}/{n}") for n in os.listdir(linked)}, linked_before, "files of the linked worktree")
    equal(world.git("status", "--porcelain", cwd=linked), "", "git status of the linked worktree")


@test_plain
def a_folder_below_the_root_is_a_fine_start(world):
    world.repository({"a.txt": "one\n", "sub/b.txt": "two\n"})
    run = go(world, cwd=world.repo + "/sub")
    check("a.txt" in committed(world, run, "seen.txt"), "the agent does not start at the root")
    done = world.baton("ls", "-C", world.repo + "/sub", cwd=world.dir)
    check(run.id in done.out, "-C from elsewhere", done)


@test
def sha256_repositories_work(world):
    world.repository({"a.txt": "one\n"}, "--object-format=sha256")
    before = fingerprint(world.repo)
    run = go(world)
    equal(len(world.git("rev-parse", run.branch())), 64, "length of the commit id")
    unchanged(world, before)
    world.write(f"{world.repo}/a.txt", "one\ntwo\n")
    world.git("commit", "-q", "-a", "-m", "Two")
    scenario = world.scenario(in_turn(answer({"name": "read", "input": {"path": "a.txt"}}), answer(report())))
    world.baton("review", "HEAD~1..HEAD", "--model", f"rehearsal:{scenario}")


@test
def submodules_are_there_or_named(world):
    world.repository({"a.txt": "one\n"})
    world.repo, outer = world.path("inner"), world.repo
    world.repository({"inside.txt": "inside\n"})
    world.repo = outer
    world.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", world.path("inner"), "sub")
    world.git("commit", "-q", "-m", "With a submodule")
    before = fingerprint(world.repo)
    run = go(world, answer(shell("ls sub >seen.txt; git status --porcelain >status.txt; git add seen.txt status.txt; git commit -q -m Seen")))
    seen = committed(world, run, "seen.txt")
    check("inside.txt" in seen or "sub" in json.dumps(run.records("worktree.created")), "the submodule is neither there nor named", seen,
          run.records("worktree.created"))
    check("sub" not in committed(world, run, "status.txt"), "the submodule shows as a change of the agent")
    unchanged(world, before)


@test_plain
def sparse_checkouts_work_or_are_refused(world):
    world.repository({"a/a.txt": "one\n", "b/b.txt": "two\n", "c.txt": "three\n"})
    world.git("sparse-checkout", "set", "a")
    before = fingerprint(world.repo)
    done = world.baton("run", "go on", "--model", "rehearsal:" + world.scenario(in_turn(answer(shell("ls -A >seen.txt; " + COMMIT)), answer(report()))), status=None)
    check(done.status == 0 or (done.status == 2 and "sparse" in done.err), "neither works nor says why not", done)
    if done.status == 0:
        names = world.git("ls-tree", "-r", "--name-only", world.run().branch()).split("\n")
        check({"a/a.txt", "b/b.txt", "c.txt"} <= set(names), "files outside the sparse part were deleted by the commit", names)
    unchanged(world, before)


@test_plain
def bare_repositories_work_or_are_refused(world):
    world.repository({"a.txt": "one\n"})
    world.git("clone", "-q", "--bare", world.repo, world.path("bare.git"))
    scenario = world.scenario(in_turn(answer(shell("ls -A >seen.txt; " + COMMIT)), answer(report())))
    done = world.baton("run", "go on", "--model", f"rehearsal:{scenario}", cwd=world.path("bare.git"), status=None)
    if done.status == 0:
        check(world.git("for-each-ref", "refs/heads/baton", cwd=world.path("bare.git")), "no branch", done)
    else:
        check(done.status == 2 and "bare" in done.err, "neither works nor says why not", done)


@test_plain
def the_user_may_gc_and_pack_while_agents_run(world):
    world.repository({f"f{n}.txt": f"{n}\n" for n in range(20)})
    step = "echo {n} >n{n}.txt; " + COMMIT + "; touch ready{n}; mkfifo go{n}; read -r x <>go{n}"
    scenario = world.scenario(in_turn(answer(shell(step.format(n=1))), answer(shell(step.format(n=2))), answer(shell(COMMIT)), answer(report())))
    started = world.start("run", "go on", "--dirty", "--model", f"rehearsal:{scenario}")
    run = world.wait_run(started)
    for n in (1, 2):
        world.wait_tool(run, f"ready{n}")
        world.git("commit", "-q", "--allow-empty", "-m", f"By the user {n}")
        world.git("pack-refs", "--all", "--prune")
        world.git("gc", "-q", "--prune=now")
        world.git("worktree", "prune", "--expire=now")
        equal(world.git("fsck", "--full", "--no-dangling"), "", "git fsck during the run")
        wait_for(lambda n=n: os.path.exists(f"{run.worktree()}/go{n}"), "the pipe", 10)
        world.command("bash", "-c", f"echo >go{n}", cwd=run.worktree())
    equal(started.wait(40).status, 0, "exit status")
    world.git("gc", "-q", "--prune=now")
    equal(committed(world, run, "n2.txt"), "2", "work after gc")
    equal(world.git("fsck", "--full", "--no-dangling"), "", "git fsck after it")


@test
def setup_runs_once_before_the_model_starts(world):
    """Trap 126."""
    world.repository({"setup.sh": "mkdir deps && echo built >deps/lib; echo run >>count.txt\n", ".gitignore": "deps\ncount.txt\n"})
    run = go(world, answer(shell("cat deps/lib count.txt >seen.txt; git add seen.txt; git commit -q -m Seen")), options=["--setup", "sh setup.sh"])
    equal(committed(world, run, "seen.txt"), "built\nrun", "what setup made")
    types = [r["type"] for r in run.records()]
    check("call.reserved" in types, "no call", types)
    check(not os.path.exists(world.repo + "/deps"), "setup ran in the user's checkout")


@test
def a_failing_setup_is_told_before_the_model_starts(world):
    world.repository({"setup.sh": "echo no compiler here >&2; exit 7\n"})
    scenario = world.scenario(in_turn(answer(shell("true")), answer(report())))
    done = world.baton("run", "go on", "--setup", "sh setup.sh", "--model", f"rehearsal:{scenario}", status=None)
    run = world.run()
    check("no compiler here" in done.out and "7" in done.out, "the failure is not told", done)
    check(done.status != 0, "the run succeeded", done)
    equal(run.report()["usage"]["calls"], 0, "model calls")
    world.no_strays(5)


@test
def a_hanging_setup_reaches_its_time_limit(world):
    world.repository()
    scenario = world.scenario(in_turn(answer(shell("true")), answer(report())))
    command = "trap '' TERM; mkfifo f; (setsid bash -c 'trap \"\" TERM; read -r x <>f' &); read -r x <>f"
    done = world.baton("run", "go on", "--setup", command, "--setup-timeout", "1s", "--model", f"rehearsal:{scenario}", status=None)
    check("time limit" in done.out and done.status != 0, "the time limit is not told", done)
    world.no_strays(5)


@test
def setup_of_a_project_needs_trust(world):
    world.repository({".baton/config.yaml": "setup: touch ran.txt\n"})
    scenario = world.scenario(in_turn(answer(shell("ls -A >seen.txt; git add seen.txt; git commit -q -m Seen")), answer(report())))
    done = world.baton("run", "go on", "--model", f"rehearsal:{scenario}", status=None)
    check("trust" in done.err, "baton trust is not named", done)
    if done.status == 0:
        check("ran.txt" not in committed(world, world.run(), "seen.txt"), "a command of an untrusted project ran")
    world.baton("trust")
    world.baton("run", "go on", "--model", f"rehearsal:{scenario}")
    check("ran.txt" in committed(world, world.run(), "seen.txt"), "setup did not run after baton trust")
    world.write(world.repo + "/.baton/config.yaml", "setup: touch other.txt\n")
    done = world.baton("run", "go on", "--model", f"rehearsal:{scenario}", status=None)
    check("trust" in done.err, "trust outlived an edit", done)


@test_plain
def setup_is_confined_as_an_agent_is(world):
    world.repository()
    before = fingerprint(world.repo)
    go(world, options=["--setup", f"echo hacked >>{world.repo}/README.md; rm -rf {world.repo}/.git/hooks; true"])
    unchanged(world, before)


@test_plain
def setup_works_where_shells_work(world):
    """One function puts a command into the box: what setup reads, caches and inherits, a shell does too."""
    world.repository({"a.txt": "a\n"})
    lent = world.path("lent")
    os.makedirs(lent)
    world.write(f"{lent}/tool", "from outside\n")
    world.git("clone", "-q", "--shared", ".", world.path("shared"))
    look = f"cat {lent}/tool; git log -1 --format=%s; echo $WANTED $XDG_CACHE_HOME $TMPDIR; git --version >/dev/null && git status --porcelain"
    setup = f"mkdir -p $XDG_CACHE_HOME && echo warm >$XDG_CACHE_HOME/kept; ({look}) >setup.out 2>&1"
    both = f"cat $XDG_CACHE_HOME/kept; ({look}) >shell.out 2>&1; sed -i '/^??/d' setup.out shell.out; cmp setup.out shell.out && cat setup.out"
    scenario = world.scenario(in_turn(answer(shell(both)), answer(report())))
    world.command(BATON, "run", "go on", "--setup", setup, "--read-paths", lent, "--pass-env", "WANTED", "--model", f"rehearsal:{scenario}",
                  cwd=world.path("shared"), env={"WANTED": "inherited"})
    with open(sorted(glob.glob(world.path("shared/.git/baton/runs/*/agents/a1/1/transcript.jsonl")))[0], encoding="utf-8") as f:
        text = next(b["text"] for line in f for b in json.loads(line).get("blocks", []) if b["kind"] == "tool_result")
    for word in ("warm", "from outside", "Start", "inherited /"):
        check(word in text, f"'{word}' is not in what setup and shell saw", text)


@test
def an_agent_that_dies_takes_its_setup_with_it(world):
    world.repository()
    scenario = world.scenario(in_turn(answer(report())))
    started = world.start("run", "go on", "--setup", "touch started; mkfifo f; read -r x <>f; touch late", "--model", f"rehearsal:{scenario}")
    run = world.wait_run(started)
    world.wait_tool(run, "started")
    os.kill(run.agent_pid(), signal.SIGKILL)
    done = started.wait(30)
    equal((done.status, run.agents()["a1"]["status"]), (1, "lost"), "exit and status", done)
    types = [r["type"] for r in run.records()]
    check(types.index("agent.ended") < types.index("agent.done"), "the order of its end", types)
    world.no_strays(5)


@test
def instructions_of_the_project_are_sent(world):
    world.repository({"AGENTS.md": "Always write tests first.\n", "sub/x.txt": "x\n"})
    server = world.server(in_turn(answer(shell("true")), answer(report())), "--log", world.path("log"), "--log-bodies")
    world.provider(server.url)
    world.baton("run", "go on", "--model", "fake/m", "--window", "100k")
    check("Always write tests first." in world.read("log"), "AGENTS.md was not sent")


@test
def a_helper_that_is_missing_ends_the_run_at_once(world):
    """Nothing has been started that could wake the loop: it must not wait for anything."""
    world.repository()
    beside = world.path("bin")
    os.mkdir(beside)
    for name in ("baton", "baton-git", "baton-gateway", "baton-rehearse", "baton-box"):
        (source,) = glob.glob(f"{os.path.dirname(os.path.dirname(BATON))}/**/{name}", recursive=True)[:1]
        os.link(source, f"{beside}/{name}") if os.stat(source).st_dev == os.stat(beside).st_dev else shutil.copy(source, beside)
    scenario = world.scenario(in_turn(answer(report())))
    for name in ("baton-gateway", "baton-git", "baton-rehearse"):
        os.rename(f"{beside}/{name}", f"{beside}/gone")
        for command in (["run", "x"], ["review"]):
            started = world.start_program([f"{beside}/baton", *command, "--model", f"rehearsal:{scenario}"])
            done = started.wait(20)
            check(done.status in (1, 2), "exit status", done)
            check(name in done.err, f"{name} is not named", done)
        os.rename(f"{beside}/gone", f"{beside}/{name}")
    world.no_strays(5)


@test
def a_stop_before_the_repository_is_known_says_why(world):
    """Whenever the signal comes in the first tenth of a second: exit 130, no word of services, nothing left."""
    world.repository()
    scenario = world.scenario(in_turn(answer(shell("sleep 60"))))
    for step in range(12):
        started = world.start("run", "x", "--model", f"rehearsal:{scenario}")
        begin = time.monotonic()
        wait_for(lambda: time.monotonic() - begin > step * 0.008, "its moment")
        started.signal(signal.SIGINT)
        done = started.wait(30)
        check(done.status in (130, -signal.SIGINT), "exit status", done)
        check("worktree service" not in done.err and "was killed" not in done.err, "the wrong reason", done)
    world.no_strays(5)


@test_plain
def two_runs_at_once_do_not_meet(world):
    world.repository()
    scenario = world.scenario(in_turn(answer(shell("echo x >x.txt; " + COMMIT)), answer(report())))
    all_started = [world.start("run", f"task {n}", "--model", f"rehearsal:{scenario}") for n in range(4)]
    for started in all_started:
        equal(started.wait(90).status, 0, "exit status")
    equal(len({r.id for r in world.runs()}), 4, "runs")
    for run in world.runs():
        equal(committed(world, run, "x.txt"), "x", "work")
    world.no_strays(5)


main()
