#!/usr/bin/env python3
"""The commands round a run: what they remember, what they remove, what they refuse, and how they say it."""
import json
import os
import pty
import signal
import subprocess

from rig import BATON, answer, call, check, equal, in_turn, main, report, shell, test, test_plain, wait_for

COMMIT = "echo work >work.txt && git add work.txt && git commit -q -m Work"


def worked(world, *options, command=COMMIT, status=0):
    """A run whose agent did one shell command and reported."""
    if not os.path.isdir(world.repo):
        world.repository()
    scenario = world.scenario(in_turn(answer(shell(command)), answer(report())))
    done = world.baton("run", "work", "--model", f"rehearsal:{scenario}", *options, status=status)
    return done, world.run()


def refused(world, *args, words, status=2, **kw):
    done = world.baton(*args, status=status, **kw)
    for word in words:
        check(word in done.err, f"the message lacks '{word}'", done)
    return done


# ---- adopt is remembered


@test
def an_adopted_worktree_is_the_users_everywhere(world):
    _, run = worked(world, "--keep")
    os.makedirs(world.path("side"))
    mine = world.path("mine")
    out = world.baton("adopt", f"{run.id}/a1", "../side/../mine").out
    check(mine in out and ".." not in out, "the path is not tidied", out)
    check(".." not in world.git("worktree", "list"), "git lists an untidy path", world.git("worktree", "list"))
    refused(world, "adopt", run.id, words=["adopted before", mine])
    refused(world, "adopt", worked(world, "--keep")[1].id, world.repo + "/.git/baton/mine", words=["lies in the repository's own folder"])
    check("+work" in world.baton("diff", run.id).out, "diff after adopt")
    for args in (("show", run.id), ("show", f"{run.id}/a1")):
        check(mine in world.baton(*args).out, f"{args} does not name the new place")
    equal(json.loads(world.baton("show", run.id, "--json").out)["adopted"], {"a1": mine}, "show --json")
    equal(json.loads(world.baton("ls", "--json").out)[0]["adopted"], {"a1": mine}, "ls --json")
    check("adopted" in world.baton("ls").out, "ls does not say it")
    done = world.baton("clean", run.id)
    check(mine in done.out and "kept" not in done.out and not os.path.exists(run.dir), "clean after adopt", done)
    check(os.path.exists(mine + "/work.txt"), "clean took the adopted worktree")
    check("mark" not in world.baton("clean", "--yes").out, "a later clean stumbles over it")


@test_plain
def an_adopted_worktree_that_was_removed_does_not_hold_its_run(world):
    _, run = worked(world, "--keep")
    world.baton("adopt", run.id, "--json")
    world.git("worktree", "remove", run.worktree())
    refused(world, "adopt", run.id, words=["adopted before", "removed"])
    world.baton("clean", run.id)
    check(not os.path.exists(run.dir), "the run is still there")


@test
def adopt_keeps_what_no_branch_holds(world):
    """I7: other branches of the private repository go with the run's records."""
    _, run = worked(world, "--keep", command=COMMIT + " && git checkout -q -b aside HEAD~0 && echo aside >aside.txt && git add aside.txt && "
                    "git commit -q -m Aside && git rev-parse HEAD >.git-aside && git checkout -q -")
    aside = world.read(run.worktree() + "/.git-aside").strip()
    world.baton("adopt", run.id)
    world.baton("clean", run.id)
    equal(world.git("show", f"{aside}:aside.txt"), "aside", "the other branch's commit")
    check(world.git("for-each-ref", "--contains", aside), "no ref holds it")


@test_plain
def what_the_user_fetched_without_a_ref_is_kept_by_one(world):
    """I7: objects in the user's store that only FETCH_HEAD names go with his next gc."""
    aside = COMMIT + (" && git checkout -q -b other HEAD~0 && echo aside >aside.txt && git add aside.txt && git commit -q -m Aside "
                      "&& git rev-parse HEAD >.git-aside && git checkout -q -")
    for end in (("clean", "--yes"), ("adopt", None)):
        _, run = worked(world, "--keep", command=aside)
        commit = world.read(run.worktree() + "/.git-aside").strip()
        world.git("fetch", "-q", f"{run.dir}/agents/a1/git", "other")
        done = world.baton(*(word or run.id for word in end))
        world.command("rm", "-f", world.repo + "/.git/FETCH_HEAD")
        check(world.git("for-each-ref", "--contains", commit), f"no ref holds it after {end[0]}", done)
        equal(world.git("show", f"{commit}:aside.txt"), "aside", "the other branch's commit")


@test_plain
def a_branch_that_the_user_deleted_is_not_brought_back(world):
    """The private repository was given it; that makes it no work of the agent's."""
    world.repository()
    world.git("checkout", "-q", "-b", "doomed")
    world.git("commit", "-q", "--allow-empty", "-m", "Doomed")
    commit = world.git("rev-parse", "HEAD").strip()
    world.git("checkout", "-q", "-")
    _, run = worked(world, "--keep")
    world.git("branch", "-q", "-D", "doomed")
    done = world.baton("clean", run.id)
    equal(world.git("for-each-ref", "--contains", commit), "", "refs that hold it", done)
    check("kept" not in done.out, "something is kept", done)


@test
def adopt_says_where_the_work_of_a_removed_worktree_is(world):
    _, run = worked(world)
    refused(world, "adopt", run.id, words=["was removed", run.branch(), "--keep"])
    refused(world, "adopt", run.id, "/nosuch/x", words=["was removed"])
    _, run = worked(world, "--keep")
    refused(world, "adopt", run.id, "/nosuch/x", words=["/nosuch", "No such file"])
    refused(world, "adopt", run.id, world.path("home"), words=["exists"])


@test
def a_diff_of_nothing_says_so(world):
    """On stderr: what goes into a pipe as a patch is a patch or empty."""
    for keep in ((), ("--keep",)):
        _, run = worked(world, *keep, command="true")
        done = world.baton("diff", run.id)
        equal(done.out, "", "the patch", done)
        check(f"{run.id}/a1 changed nothing" in done.err, "it is not said", done)


# ---- clean


@test
def clean_of_all_runs_has_to_be_agreed_to(world):
    _, first = worked(world)
    _, second = worked(world)
    done = refused(world, "clean", words=["nothing was removed", "--yes"])
    check(first.id in done.out and second.id in done.out, "what would go is not listed", done)
    check(os.path.exists(first.dir) and os.path.exists(second.dir), "a report went unasked")
    unborn = os.path.join(os.path.dirname(first.dir), ".260101-dead")  # killed while it opened its folder
    for folder in (unborn, unborn + "-young"):
        os.makedirs(folder)
        world.write(folder + "/lock", "")
    os.utime(unborn, (0, 0))
    doc = json.loads(world.baton("clean", "--yes", "--json").out)
    equal(sorted(d["ref"] for d in doc["dropped"]), sorted(f"refs/baton/{r.id}/a1/ckpt" for r in (first, second)), "what was dropped")
    equal(os.listdir(os.path.dirname(first.dir)), [".260101-dead-young"], "what is left of runs")
    equal(os.listdir(world.path("state/baton/worktrees")), [], "empty folders")
    equal(sorted(doc["removed"]), sorted([first.id, second.id]), "clean --json")
    equal(doc["kept"], [], "clean --json")
    check("nothing" in world.baton("clean").out, "a clean of nothing says nothing")


@test
def clean_asks_on_a_terminal(world):
    _, run = worked(world)
    for word, status in (("n\n", 130), ("y\n", 0)):
        master, slave = pty.openpty()
        process = subprocess.Popen([BATON, "clean"], cwd=world.repo, env=world.env, stdin=slave, stdout=slave, stderr=slave,
                                   start_new_session=True)
        os.close(slave)
        check(os.path.exists(run.dir), "it was removed without an answer")
        os.write(master, word.encode())
        wait_for(lambda: process.poll() is not None, "end of clean", 30)
        equal(process.returncode, status, "exit status", os.read(master, 65536))
        os.close(master)
    check(not os.path.exists(run.dir), "yes did not remove it")


@test
def clean_drops_saved_states_that_a_branch_holds(world):
    """I7: the last checkpoint of a finished run has its branch's own files; one with more stays until the user says so."""
    _, run = worked(world)
    check(world.git("for-each-ref", f"refs/baton/{run.id}"), "there is no saved state to begin with")
    done = world.baton("clean", run.id)
    equal(world.git("for-each-ref", "refs/baton"), "", "refs that are left")
    check(f"branch {run.branch()} holds the same files" in done.out, "the branch is not named", done)
    for options in ((), ("--checkpoints",)):
        _, run = worked(world, "--keep")
        world.write(run.worktree() + "/notes.txt", "more\n")
        done = world.baton("clean", run.id, *options)
        left = world.git("for-each-ref", "--format=%(refname)", f"refs/baton/{run.id}")
        if options:
            equal(left, "", "refs that are left with --checkpoints", done)
        else:
            check(left and left in done.out, "what only the checkpoint held is gone or not told", left, done)
            check(f"git checkout {left} -- ." in done.out and f"git branch NAME {left}" in done.out,
                  "how to get it back is not said", done)
            equal(world.git("show", f"{left}:notes.txt"), "more", "what only the checkpoint held")


@test_plain
def clean_does_not_call_a_branch_at_its_base_the_work(world):
    world.repository()
    scenario = world.scenario(in_turn(answer(shell("true")), answer(report())))
    world.baton("run", "work", "--keep", "--model", f"rehearsal:{scenario}")
    run = world.run()
    world.write(run.worktree() + "/notes.txt", "more\n")
    done = world.baton("clean", run.id)
    check(f"nothing was committed to {run.branch()}" in done.out and "commits are on" not in done.out, "the branch", done)
    ref = world.git("for-each-ref", "--format=%(refname)", f"refs/baton/{run.id}")
    check(f"kept {ref}" in done.out, "the saved state is not named", done)
    world.git("checkout", ref, "--", ".")
    equal(world.read(world.repo + "/notes.txt"), "more\n", "what the command brings back")


@test
def clean_removes_no_folder_that_is_not_batons(world):
    """run.json is a file that anybody may have written: its path is not followed wherever it leads."""
    _, run = worked(world)
    victim = world.path(f"precious/{run.id}")
    world.write(victim + "/a.txt", "mine\n")
    request = json.loads(world.read(run.dir + "/run.json"))
    for path in (victim, world.path("state/baton/worktrees"), world.path(f"state/baton/worktrees/../../../precious/{run.id}")):
        world.write(run.dir + "/run.json", json.dumps({**request, "worktrees": path}))
        done = world.baton("clean", run.id)
        check(os.path.exists(victim + "/a.txt"), f"clean followed {path}", done)
        check("kept" in done.out, "it is not told", done)


@test_plain
def clean_leaves_what_was_adopted_in_the_runs_own_folder(world):
    """A6: in place, or to a new folder beside; the run's folder of worktrees does not go with it."""
    for where in ("", "other", "side/other"):
        _, run = worked(world, "--keep")
        folder = os.path.dirname(run.worktree())
        mine = f"{folder}/{where}" if where else run.worktree()
        os.makedirs(os.path.dirname(mine), exist_ok=True)
        world.baton("adopt", f"{run.id}/a1", *([mine] if where else []))
        world.write(mine + "/precious", "mine\n")
        done = world.baton("clean", "--yes", run.id)
        check(mine in done.out and not os.path.exists(run.dir), "clean after adopt", where, done)
        equal(world.read(mine + "/precious"), "mine\n", f"a file in the worktree adopted {where or 'in place'}")
        check("precious" in world.git("-C", mine, "status", "--porcelain"), "git works there no more")
    check("nothing" in world.baton("clean", "--yes").out, "a later clean stumbles over it")


@test
def clean_leaves_files_that_nobody_proved_to_be_batons(world):
    _, run = worked(world, "--keep")
    folder = os.path.dirname(run.worktree())
    world.write(folder + "/notes/a.txt", "mine\n")
    os.makedirs(folder + "/empty")
    done = world.baton("clean", run.id)
    check(f"kept {folder}/notes" in done.out and os.path.exists(run.dir), "it is not named", done)
    equal(os.listdir(folder), ["notes"], "what is left")
    equal(world.read(folder + "/notes/a.txt"), "mine\n", "the user's file")
    os.rename(folder + "/notes", world.path("notes"))
    world.baton("clean", run.id)
    check(not os.path.exists(run.dir) and not os.path.exists(folder), "the run is still there")


@test
def clean_takes_nothing_of_a_run_that_started_while_it_asked(world):
    """The list of runs is as old as the prompt; what is alive is seen at the moment itself."""
    _, old = worked(world)
    master, slave = pty.openpty()
    process = subprocess.Popen([BATON, "clean"], cwd=world.repo, env=world.env, stdin=slave, stdout=slave, stderr=slave,
                               start_new_session=True)
    os.close(slave)
    seen = b""
    while b"[y/N]" not in seen:
        seen += os.read(master, 4096)
    scenario = world.scenario(in_turn(answer(shell("echo mine >new.txt; while [ ! -e go ]; do read -t 0.1 x <> /dev/null; done", timeout_ms=600000)),
                                      answer(report())))
    started = world.start("run", "work", "--model", f"rehearsal:{scenario}", "--keep")
    new = lambda: [r for r in world.runs() if r.id != old.id and r.records("agent.spawned") and os.path.exists(r.worktree() + "/new.txt")]
    wait_for(new, "the new run's file", 30)
    run = new()[0]
    os.write(master, b"y\n")
    wait_for(lambda: process.poll() is not None, "end of clean", 30)
    os.close(master)
    check(not os.path.exists(old.dir), "the old run is still there")
    check(os.path.exists(f"{run.dir}/agents/a1/git") and os.path.exists(run.worktree()), "clean took the worktree of a run at work")
    world.write(run.worktree() + "/go", "")
    equal(started.wait(60).status, 0, "the run's exit status")


@test_plain
def clean_names_no_branch_that_is_gone(world):
    _, run = worked(world, "--keep")
    world.git("worktree", "list")
    done = world.baton("clean", run.id)
    check(run.branch() in done.out and run.branch() in world.git("for-each-ref"), "the branch", done)


# ---- stop


@test
def stop_signals_only_the_holder_of_the_lock(world):
    """A pid in a file may be another process's by now."""
    world.repository()
    blocked = "mkfifo go; touch started; read -r x <go"
    scenario = world.scenario(in_turn(answer(shell(blocked, timeout_ms=600000)), answer(report())))
    started = world.start("run", "wait", "--model", f"rehearsal:{scenario}")
    run = world.wait_run(started)
    world.wait_tool(run, "started")
    bystander = world.start_program(["sleep", "1000"])
    lock = world.read(run.dir + "/lock")
    world.write(run.dir + "/lock", f"{bystander.pid}\n")  # the same file: it stays locked
    refused(world, "stop", run.id, words=["cannot be seen"])
    check(not bystander.ended(), "another process was signalled")
    world.write(run.dir + "/lock", lock)
    equal(json.loads(world.baton("stop", run.id, "--json").out), {"run": run.id, "stopped": True}, "stop --json")
    started.wait(30)
    bystander.signal(signal.SIGKILL)
    bystander.wait(10)


# ---- names and words


@test
def misspelt_names_get_the_nearest(world):
    _, run = worked(world)
    wrong = run.id[:-1] + ("x" if run.id[-1] != "x" else "y")
    refused(world, "show", wrong, words=[wrong, run.id])
    refused(world, "run", "x", "--model", "anthropic/claud-opus-5", words=["claud-opus-5", "anthropic/claude-opus-5", "--window"])
    world.config(models={"work/large": {"window": 1000}}, providers={"work": {"api": "openai", "base_url": "http://127.0.0.1:1/v1"}})
    refused(world, "run", "x", "--model", "work/larg", words=["work/larg'", "work/large'"])
    refused(world, "run", "x", "--effort", "hihg", words=["hihg", "did you mean 'high'"])
    refused(world, "help", "rnu", words=["rnu", "'run'"])
    path = world.write("config/baton/config.yaml", "providers:\n  work: {api: opnai, base_url: 'http://x'}\n")
    refused(world, "ls", words=[path + ":2", "opnai", "openai"])
    world.write("config/baton/config.yaml", "")
    done = world.baton("ls", env={"BATON_MODLE": "x", "BATON_HOUSE": "y"})
    check("BATON_MODEL" in done.err and "BATON_HOUSE" not in done.err, "the misspelt variable", done)


@test_plain
def words_that_are_left_over_are_refused(world):
    _, run = worked(world)
    for command in (["ls"], ["doctor"], ["config"], ["show", run.id], ["stop", run.id], ["diff", run.id], ["adopt", run.id, "x"]):
        refused(world, *command, "foo", words=["'foo'", command[0]])
    refused(world, "clean", f"{run.id}/a1", words=["whole runs"])


@test_plain
def a_folder_that_is_not_there_is_said_by_every_command(world):
    worked(world)
    nowhere = world.path("nowhere")
    for command in (["run", "x"], ["review"], ["ls"], ["show"], ["diff"], ["stop", "x"], ["adopt", "x"], ["clean"], ["config"], ["trust"], ["doctor"]):
        refused(world, *command, "-C", nowhere, words=[nowhere, "No such file or directory"])
    refused(world, "ls", "-C", world.repo + "/README.md", words=["Not a directory"])


@test_plain
def json_is_given_or_refused(world):
    _, run = worked(world)
    equal(json.loads(world.baton("stop", run.id, "--json").out)["stopped"], False, "stop")
    path = world.write(world.repo + "/.baton/config.yaml", "setup: true\n")
    equal(json.loads(world.baton("trust", "--json").out)["trusted"], path, "trust")
    equal(json.loads(world.baton("show", f"{run.id}/a1", "--json").out)["branch"], run.branch(), "show RUN/AGENT")
    refused(world, "rehearse", "--json", "x.yaml", words=["--json", "not an option"])
    refused(world, "rehearse", "-q", "x.yaml", words=["-q", "not an option"])


@test
def rehearse_checks_a_scenario(world):
    world.repository()
    good = world.scenario(in_turn(answer(report())))
    world.baton("rehearse", "--check", good)
    bad = world.write("bad.yaml", "rulse: []\n")
    torn = world.write("torn.yaml", "rules: [\n")
    for rule in ('{match: {task: "(?<a>x)"}, answer: {text: ["fine {{a|upper}}", "{{a|uper}}"]}}',
                 '{match: {last_message: "{{task.1|uper}}"}, answer: {text: x}}'):
        filtered = world.write("filter.yaml", f"rules:\n  - {rule}\n")
        refused(world, "rehearse", "--check", filtered, words=["filter.yaml:2", "unknown filter 'uper'"])
    world.baton("rehearse", "--check", world.write("good.yaml", 'rules: [{match: {}, answer: {text: "{{a | default:x | trim}} {{b|add:2}}"}}]\n'))
    for path, word in ((bad, "rules"), (torn, "torn.yaml"), (world.path("none.yaml"), "none.yaml")):
        refused(world, "rehearse", "--check", path, words=[word])
        refused(world, "rehearse", path, words=[word])
    started = world.start("rehearse", "--log", world.path("log"), "--log-bodies", good)
    started.outlives_runs = True
    wait_for(lambda: "url" in started.text(), "the server's address", 20, lambda: started.text("err"))
    check(os.path.exists(world.path("log")), "there is no log")
    started.signal(signal.SIGTERM)
    equal(started.wait(20).status, 0, "exit status")


# ---- doctor


@test
def doctor_tells_of_keys_and_programs(world):
    world.repository()
    out = world.baton("doctor").out
    check("key          none" in out and "ANTHROPIC_API_KEY" in out, "no key", out)
    world.config(providers={"work": {"api": "openai", "base_url": "http://127.0.0.1:1/v1", "key_env": "WORK_API_KEY"}})
    keys = world.write("config/baton/keys.yaml", "anthropic: sk-secret-1\n", 0o600)
    done = world.baton("doctor", env={"WORK_API_KEY": "sk-secret-2"})
    check("work" in done.out and "WORK_API_KEY" in done.out and keys in done.out, "keys that are there", done)
    check("secret" not in done.out + done.err, "doctor prints a key", done)
    doc = json.loads(world.baton("doctor", "--json", env={"WORK_API_KEY": "sk-secret-2"}).out)
    equal(sorted((k["provider"], k["from"]) for k in doc["keys"]), [("anthropic", "key file"), ("work", "WORK_API_KEY")], "--json")
    check(doc["git"].endswith("/git") and len(doc["helpers"]) == 5 and all(doc["helpers"].values()) and doc["ok"], "--json", doc)
    os.chmod(keys, 0o644)
    for args in ((), ("--json",)):
        check("open to others" in world.baton("doctor", *args, status=1).out, "a key file that others can read is not told")
    world.write("config/baton/keys.yaml", "anthropc: sk-secret-1\n", 0o600)
    done = world.baton("doctor", status=1)
    check("anthropc" in done.out and "'anthropic'" in done.out and "secret" not in done.out, "a misspelt provider", done)
    refused(world, "run", "x", "--model", "anthropic/claude-opus-5", words=["anthropc", "'anthropic'"])


@test
def a_key_file_is_refused_as_a_whole(world):
    """Of one file doctor does not say both that it has a key and that it is refused; a run says the same."""
    world.repository()
    good = "openai: sk-secret-1\n"
    for bad, line in (("anthropic: 123456", 2), ("anthropic:", 2), ("anthropic: ''", 2), ("anthropic: [sk]", 2), ("anthropc: sk-2", 2)):
        keys = world.write("config/baton/keys.yaml", good + bad + "\n", 0o600)
        done = world.baton("doctor", status=1)
        check("REFUSED" in done.out and f"{keys}:{line}:" in done.out, f"'{bad}' is not refused with its line", done)
        check("openai  " not in done.out and "secret" not in done.out and "123456" not in done.out, f"a key beside '{bad}'", done)
        for model in (["--model", "anthropic/claude-opus-5"], ["--model", "openai/gpt-5.5"], []):
            done = refused(world, "run", "x", *model, words=[f"{keys}:{line}:"])
            check("123456" not in done.err, "the value is shown", done)


@test
def doctor_finds_git_as_a_run_does(world):
    os.makedirs(world.path("bin"))
    os.symlink(world.command("sh", "-c", "command -v git", cwd=world.dir).out.strip(), world.path("bin/git"))
    out = world.baton("doctor", cwd=world.dir, env={"PATH": world.path("bin")}).out
    check(world.path("bin/git") in out, "git of PATH", out)


# ---- files that a review writes


@test
def a_file_that_cannot_be_written_is_refused_before_the_first_request(world):
    world.repository({"a.txt": "one\n"})
    server = world.server([{"match": {}, "answer": answer(report(findings=[]))}])
    world.provider(server.url)
    model = ("--model", "fake/m", "--window", "100k", "--verify", "off")
    for option in ("--sarif", "--output"):
        refused(world, "review", *model, option, "/nosuch/x", words=[option, "/nosuch"])
        refused(world, "review", *model, option, world.dir, words=[option, "folder"])
    equal(world.runs(), [], "runs that were made")
    os.symlink("later/report.md", world.path("link"))
    refused(world, "review", *model, "--output", world.path("link"), words=["--output", "later"])
    os.makedirs(world.path("later"))
    world.baton("review", *model, "--output", world.path("link"))
    check(os.path.islink(world.path("link")) and "Review of" in world.read("later/report.md"), "a link to what is not there yet")


# ---- what is said


@test
def the_terminal_sees_no_escapes_of_markdown(world):
    world.repository()
    summary = "All of `make` < 4 [checks]\n## forged\n- claimed: forged"
    scenario = world.scenario(in_turn(answer(shell("true")), answer(report(summary=summary))))
    done = world.baton("run", "x", "--keep", "--model", f"rehearsal:{scenario}")
    run = world.run()
    for out in (done.out, world.baton("show").out):
        check("> All of `make` < 4 [checks]" in out and "kept (--keep)" in out, "escapes", out)
        check("\n## forged" not in out and "\n- claimed: forged" not in out, "the summary passes for the report", out)
    check("\\`make\\`" in world.read(run.dir + "/report.md"), "report.md lost its escapes")


@test_plain
def a_long_command_is_cut_before_its_status(world):
    worked_done, run = worked(world, command="true " + "argument " * 40)
    check("(exit 0, " in worked_done.err and "... (exit 0, " in worked_done.err, "the progress line", worked_done)


@test_plain
def no_price_means_no_cost(world):
    """docs/journal.md: what is not known is left out."""
    world.repository()
    server = world.server(in_turn(answer(shell("true")), answer(report())))
    world.provider(server.url)
    world.baton("run", "x", "--model", "fake/m", "--window", "100k")
    run = world.run()
    for record in run.records():
        check("cost" not in record and "total_cost" not in record, "a cost without prices", record)
    check("USD" not in world.read(run.dir + "/report.md") and "cost" not in json.dumps(run.report()), "the report")
    check("USD" not in world.baton("ls").out and "cost" not in json.loads(world.baton("ls", "--json").out)[0], "ls")


@test
def ls_names_what_a_review_looked_at(world):
    world.repository({"a.txt": "one\n"})
    scenario = world.scenario([{"match": {}, "answer": answer(report(findings=[]))}])
    world.baton("review", "HEAD", "--verify", "off", "--model", f"rehearsal:{scenario}")
    world.write(world.repo + "/a.txt", "two\n")
    world.baton("review", "--worktree", "--verify", "off", "--model", f"rehearsal:{scenario}")
    equal([r["task"] for r in json.loads(world.baton("ls", "--json").out)], ["HEAD", "worktree"], "tasks")


@test
def config_names_the_model_and_where_requests_go(world):
    world.repository()
    world.config(providers={"work": {"api": "openai", "base_url": "http://127.0.0.1:1/v1", "headers": {"x-auth": "secret"}}},
                 models={"work/large": {"window": 5000}})
    done = world.baton("config", env={"ANTHROPIC_API_KEY": "sk-secret"})
    for word in ("anthropic/claude", "the one key", "providers.work", "http://127.0.0.1:1/v1", "models.work/large", "5000"):
        check(word in done.out, f"'{word}' is not shown", done)
    check("secret" not in done.out and "\nforce" not in done.out, "too much is shown", done)
    check("providers.work" in json.loads(world.baton("config", "--json").out), "--json")


@test_plain
def folders_to_read_have_to_be_there(world):
    world.repository()
    scenario = world.scenario(in_turn(answer(report())))
    refused(world, "run", "x", "--model", f"rehearsal:{scenario}", "--read-paths", "/nosuch", words=["read-paths", "/nosuch"])
    equal(world.runs(), [], "runs that were made")


@test
def a_blocked_agent_is_not_called_done(world):
    world.repository()
    scenario = world.scenario(in_turn(answer(shell("true")), answer(report(status="blocked"))))
    done = world.baton("run", "x", "--model", f"rehearsal:{scenario}", status=1)
    check("## a1 (lead): blocked" in done.out and "1 tool call (" in done.out and "0 commits" in done.out, "the outcome", done)


@test_plain
def a_review_that_failed_has_no_counts(world):
    world.repository()
    scenario = world.scenario(in_turn(answer(report())))
    done = world.baton("review", "nosuch..HEAD", "--model", f"rehearsal:{scenario}", status=2)
    check("refuted" not in done.out and "was reviewed" in done.out, "zero findings read as a result", done)


@test_plain
def a_bare_repository_has_its_runs_too(world):
    world.repository()
    bare = world.path("bare.git")
    world.git("clone", "-q", "--bare", world.repo, bare)
    scenario = world.scenario(in_turn(answer(shell(COMMIT)), answer(report())))
    world.baton("run", "x", "--keep", "--model", f"rehearsal:{scenario}", cwd=bare)
    run = json.loads(world.baton("ls", "--json", cwd=bare).out)[0]["run"]
    check("+work" in world.baton("diff", run, cwd=bare).out, "diff")
    check("Done." in world.baton("show", cwd=bare + "/refs").out, "show, from a folder below")
    check("removed run" in world.baton("clean", run, cwd=bare).out, "clean")


@test
def a_state_folder_that_cannot_be_made_is_said_before_money_is_spent(world):
    world.repository()
    scenario = world.scenario(in_turn(answer(report())))
    refused(world, "run", "x", "--model", f"rehearsal:{scenario}", words=["XDG_STATE_HOME", "/dev/null"], env={"XDG_STATE_HOME": "/dev/null/x"})
    equal(world.runs(), [], "runs that were made")


@test_plain
def a_branch_prefix_that_git_would_refuse_is_refused_before_the_run(world):
    """Also what stands before a slash, and a name that leaves no room for the run's and the agent's."""
    world.repository()
    scenario = world.scenario(in_turn(answer(report())))
    for prefix in ("a.lock/b", "a/b.lock", "a/.b", "a//b", "a/", "/a", "", "x" * 300, "a b"):
        refused(world, "run", "x", "--model", f"rehearsal:{scenario}", f"--branch-prefix={prefix}", words=["branch-prefix"])
    equal(world.runs(), [], "runs that were made")
    world.baton("run", "x", "--model", f"rehearsal:{scenario}", "--branch-prefix", "a.b/" + "x" * 156)


@test
def a_damaged_head_is_not_called_a_missing_commit(world):
    """git sees no repository there; 'make a first commit' would be wrong advice."""
    world.repository()
    scenario = world.scenario(in_turn(answer(report())))
    for text in ("garbage\n", ""):
        world.write(world.repo + "/.git/HEAD", text)
        done = refused(world, "run", "x", "--model", f"rehearsal:{scenario}", words=["HEAD", "cannot be read"])
        check("no commits yet" not in done.err, "the wrong reason", done)
    world.write(world.repo + "/.git/HEAD", "ref: refs/heads/unborn\n")
    refused(world, "run", "x", "--model", f"rehearsal:{scenario}", words=["no commits yet"])


main()
