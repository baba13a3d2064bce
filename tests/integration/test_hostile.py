#!/usr/bin/env python3
"""An agent that tries to write outside its worktree fails each time, and nothing that it plants runs outside its
box. X10, I8, I12; traps of sections M and N. The agent here is a scenario that only means harm.
"""
import json
import os
import re

from rig import answer, call, check, equal, fingerprint, in_turn, main, report, shell, test, test_plain, unchanged


def hostile(world, *answers, status=0, options=(), files=None):
    """Runs an agent that gives these answers in a repository with a hook, and returns its run."""
    if not os.path.isdir(world.repo):
        world.repository(files)
    world.write(world.repo + "/.git/hooks/post-commit", "#!/bin/sh\ntouch " + world.path("user-hook-ran") + "\n", 0o755)
    world.git("stash", "list")
    world.before = fingerprint(world.repo)
    scenario = world.scenario(in_turn(*answers, answer(report())))
    done = world.baton("run", "do harm", "--keep", "--model", f"rehearsal:{scenario}", *options, status=status)
    run = world.run()
    run.done = done
    return run


def nothing_ran(world, *names):
    for name in names or ("planted-ran", "user-hook-ran"):
        check(not os.path.exists(world.path(name)), f"a planted program ran outside the box ({name})")


def outside(world):
    """Ways to name a file of the user's checkout."""
    return [world.repo + "/README.md", "../../../../../repo/README.md", "../" * 30 + world.repo.lstrip("/") + "/README.md",
            "src/../../" + os.path.basename(world.repo) + "/README.md", "/proc/self/cwd" + world.repo + "/README.md"]


@test
def write_and_edit_cannot_leave_the_worktree(world):
    world.repository()
    calls = []
    for path in outside(world):
        calls += [call("write", path=path, content="hacked\n"), call("read", path=path),
                  call("edit", path=path, old_string="A project.", new_string="hacked")]
    run = hostile(world, answer(*calls))
    unchanged(world, world.before)
    check(all(not t["ok"] for t in run.tools()), "a call succeeded", run.tools())
    equal(len(run.tools()), len(calls), "tool calls")


@test_plain
def symbolic_links_lead_nowhere(world):
    world.repository()
    target = world.repo + "/README.md"
    links = f"ln -s {target} link; ln -s {world.repo} folder; ln -s / root; ln -s {world.path('new')} fresh; ln -s .git/config git"
    names = ["link", "folder/README.md", "folder/new.txt", f"root{target}", "fresh", "git", "root/proc/self/root/etc/passwd"]
    calls = [c for n in names for c in (call("write", path=n, content="hacked\n"), call("read", path=n),
                                        call("edit", path=n, old_string="A project.", new_string="hacked"))]
    run = hostile(world, answer(shell(links)), answer(*calls),
                  answer(shell(f"echo hacked >>link; echo hacked >folder/x; cp src/a.txt fresh; sed -i s/A/hacked/ {target}")))
    unchanged(world, world.before)
    check(not os.path.exists(world.path("new")), "a file was made through a link")
    check(all(not t["ok"] for t in run.tools() if t["tool"] in ("read", "edit")), "a link was followed out", run.tools())
    check("A project" not in json.dumps(run.results()), "what a link points to was read")


@test_plain
def hard_links_do_not_reach_out(world):
    world.repository()
    run = hostile(world, answer(shell(f"ln {world.repo}/README.md hard && echo hacked >>hard"),
                                shell(f"ln {world.repo}/.git/config conf && echo hacked >>conf")))
    unchanged(world, world.before)
    check(all(not t["ok"] for t in run.tools()), "a hard link was made", run.tools())


@test_plain
def the_shell_cannot_write_elsewhere(world):
    world.repository()
    home = world.path("home")
    targets = [world.repo + "/README.md", world.repo + "/new.txt", world.repo + "/.git/config", world.repo + "/.git/HEAD",
               world.repo + "/.git/index", world.repo + "/.git/hooks/pre-commit", world.repo + "/.git/info/exclude",
               world.repo + "/.git/objects/zz", world.repo + "/.git/refs/heads/main", world.repo + "/.git/packed-refs",
               home + "/.bashrc", home + "/.gitconfig", world.path("config/baton/config.yaml"), world.path("state/x"),
               "/tmp/baton-hostile", "/var/tmp/baton-hostile", "/dev/shm/baton-hostile", "/etc/baton-hostile"]
    lines = "\n".join(f"(echo hacked >>'{t}') 2>/dev/null && echo 'wrote {t}' >>wrote.txt" for t in targets)
    lines += "\n" + "\n".join(f"test -e '{t}' && (truncate -s 0 '{t}' || rm -f '{t}' || mv '{t}' moved) 2>/dev/null && echo 'hurt {t}' >>wrote.txt"
                              for t in targets)
    run = hostile(world, answer(shell(lines)))
    wrote = world.read(run.worktree() + "/wrote.txt") if os.path.exists(run.worktree() + "/wrote.txt") else ""
    unchanged(world, world.before)
    equal([w for w in wrote.split("\n") if world.dir in w], [], "files outside that were written")
    check("hostile" not in wrote, "a system folder was written", wrote)
    check("hacked" not in world.read(home + "/.gitconfig"), "the user's git configuration was written")


@test_plain
def modes_and_times_of_the_users_files(world):
    """Landlock has no right for modes: where the box is no better than that, doctor must say so."""
    world.repository()
    names = [world.repo + "/README.md", world.repo + "/.git/config", world.repo + "/.git/HEAD"]
    hostile(world, answer(shell("; ".join(f"chmod 777 {n}; touch -d 2001-01-01 {n}; chown 65534 {n}" for n in names))))
    if fingerprint(world.repo) != world.before:
        check(re.search("not held back:.*mode.*times", world.baton("doctor", status=None).out),
              "a box let modes be changed, and doctor does not name it")
        for name in names:
            os.chmod(name, 0o644)
    unchanged(world, world.before)


@test_plain
def git_in_the_box_cannot_reach_the_user(world):
    world.repository()
    world.git("branch", "other")
    git = f"git -C {world.repo}"
    commands = [f"{git} commit --allow-empty -m hacked", f"{git} branch -f other HEAD~0", f"{git} branch -D other",
                f"{git} config user.name hacked", f"{git} tag hacked", f"{git} update-ref refs/heads/main 0000000000000000000000000000000000000000",
                f"{git} add -A", f"{git} checkout other", f"{git} gc --prune=now", f"{git} worktree prune", f"{git} reset --hard",
                f"git push {world.repo} HEAD:refs/heads/main", f"git push {world.repo} HEAD:refs/heads/evil", f"git --git-dir={world.repo}/.git stash",
                "git update-ref refs/heads/main HEAD~0", "git branch -f main HEAD", "git branch -D other", "git config core.hooksPath hooks",
                "git remote add origin https://example.org/x.git", "git tag mine", "git gc --prune=now -q", "git worktree prune"]
    run = hostile(world, answer(shell("echo x >x.txt; git add x.txt; git commit -q -m x\n" + "\n".join(f"{c} 2>/dev/null" for c in commands))))
    unchanged(world, world.before)
    equal(world.git("for-each-ref", "--format=%(refname)", "refs/heads", "refs/tags").split("\n"),
          [f"refs/heads/{run.branch()}", "refs/heads/main", "refs/heads/other"], "the user's refs")
    equal(world.git("log", "-1", "--format=%s", run.branch()), "x", "its commit")
    nothing_ran(world)


@test_plain
def rm_rf_of_everything_reachable(world):
    world.repository({f"f{n}.txt": f"{n}\n" for n in range(50)})
    world.git("gc", "-q")
    run = hostile(world, answer(shell("cd /; rm -rf --no-preserve-root / 2>/dev/null; cd; rm -rf ~ .* * 2>/dev/null; true")),
                  answer(shell("rm -rf \"$PWD\"/* \"$PWD\"/.[a-z]* \"$TMPDIR\" $(git rev-parse --git-common-dir 2>/dev/null) 2>/dev/null; true")), status=None)
    unchanged(world, world.before)
    check(run.done.status in (0, 1), "exit status", run.done)
    check(run.last("run.finished"), "the run has no end", run)
    equal(world.git("log", "-1", "--format=%s", run.branch()), "Start", "the branch is where it was")
    world.no_strays(5)
    world.baton("ls")


@test
def a_rewritten_git_file_stops_the_agent(world):
    evil = world.path("evil")
    run = hostile(world, answer(shell("echo work >work.txt")),
                  answer(shell("rm .git; mkdir evil; git init -q evil; echo 'gitdir: evil/.git' >.git")),
                  answer(shell("echo more >more.txt")), status=1)
    unchanged(world, world.before)
    agent = run.agents()["a1"]
    equal(agent["status"], "lost", "status of the agent (X10)", run.done)
    check(".git" in agent["reason"], "the reason", agent)
    check(not os.path.exists(run.worktree() + "/more.txt"), "the agent went on")
    equal(world.read(run.worktree() + "/work.txt"), "work\n", "its work is kept")
    check(not os.path.exists(evil), "something was made outside")


@test_plain
def a_moved_head_is_noticed(world):
    run = hostile(world, answer(shell("git checkout -q -b elsewhere; echo x >x; git add x; git commit -q -m x")), answer(shell("true")), status=None)
    unchanged(world, world.before)
    check(run.agents()["a1"]["status"] in ("lost", "done"), "status", run.done)
    told = json.dumps(run.results()) + str(run.agents()["a1"].get("reason"))
    check("HEAD" in told or "branch" in told, "nobody says that HEAD is elsewhere", told)


PLANT = """
cat >planted.sh <<'END'
#!/bin/sh
touch MARK
END
chmod 755 planted.sh
g=$(git rev-parse --git-dir)
for c in core.fsmonitor core.sshCommand core.editor core.pager diff.external gpg.program credential.helper filter.x.clean filter.x.smudge core.askPass; do
	git config $c "$PWD/planted.sh"
done
git config core.hooksPath "$PWD"; git config core.alternateRefsCommand "$PWD/planted.sh"
printf '[include]\\n\\tpath = %s/more.config\\n' "$PWD" >>"$g/config"
printf '[core]\\n\\tfsmonitor = %s/planted.sh\\n' "$PWD" >more.config
mkdir -p "$g/hooks"
for h in pre-commit post-commit post-checkout reference-transaction post-index-change pre-auto-gc post-merge update post-update pre-receive; do
	cp planted.sh "$g/hooks/$h"; cp planted.sh $h
done
echo '* filter=x diff=x' >.gitattributes
echo "$PWD/evil-objects" >>"$g/objects/info/alternates"
git update-index --fsmonitor 2>/dev/null
rm -f MARK
"""


@test
def planted_configuration_and_hooks_never_run_outside(world):
    world.repository()
    plant = PLANT.replace("MARK", world.path("planted-ran"))
    run = hostile(world, answer(shell(plant)), answer(shell("echo x >x.txt; true")))
    world.baton("diff", f"{run.id}/a1", status=None)
    world.baton("show", f"{run.id}/a1")
    world.baton("clean", run.id)
    unchanged(world, world.before)
    nothing_ran(world)
    check(not os.path.exists(world.path("planted-ran")), "a planted program ran")


@test
def planted_commondir_and_links_in_the_private_repository_never_work(world):
    world.repository()
    plant = f"""
g=$(git rev-parse --git-dir)
git init -q trap; git -C trap config core.fsmonitor "touch {world.path('planted-ran')};false"
echo "$PWD/trap/.git" >"$g/commondir"
echo "$PWD/trap/.git" >"$g/gitdir"
ln -sf "{world.repo}/.git/config" "$g/config.lock"
rm -f "$g/index"; ln -s {world.repo}/.git/index "$g/index"
rm -rf "$g/refs/heads/baton"; ln -s {world.repo}/.git/refs/heads "$g/refs/heads/baton"
"""
    run = hostile(world, answer(shell(plant)), status=None)
    world.baton("clean", run.id, status=None)
    unchanged(world, world.before)
    nothing_ran(world)
    check(run.last("run.finished"), "the run has no end", run)


@test
def objects_that_git_would_refuse_are_not_imported(world):
    world.repository()
    forge = r"""
t=$(printf '100644 .git\0\1\2\3\4\5\6\7\10\11\12\13\14\15\16\17\20\21\22\23\24' | git hash-object -t tree -w --stdin --literally)
c=$(printf 'tree %s\nparent %s\nauthor A <a@b> 1 +0000\ncommitter A <a@b> 1 +0000\n\nevil\n' "$t" "$(git rev-parse HEAD)" | git hash-object -t commit -w --stdin)
git update-ref "$(git symbolic-ref HEAD)" "$c"
"""
    run = hostile(world, answer(shell("echo good >good.txt; git add good.txt; git commit -q -m Good")), answer(shell(forge)), status=None)
    unchanged(world, world.before)
    check(world.git("log", "-1", "--format=%s", run.branch()) in ("Start", "Good"), "an evil commit is in the user's repository")
    check(os.path.isdir(run.worktree()), "the worktree is gone though it could not be imported")
    text = json.dumps(run.report())
    check("import" in text or "invalid path" in text, "the report does not say why it is kept", text)
    equal(run.done.status, 1, "exit status: the work did not come home", run.done)


@test
def names_and_output_cannot_deceive_the_terminal(world):
    world.repository()
    run = hostile(world, answer(shell("printf '\\033]0;hacked\\007\\033[2J\\033[31mred\\n'; echo x >$'evil\\033[2Jname.txt'; git add -A; git commit -q -m $'sub\\033[2Jject'")),
                  answer(report(summary="\x1b[2Jcleared \x1b]0;title\x07 \u202e reversed \x9b31m")))
    for text in (run.done.out, run.done.err, world.baton("show").out, world.baton("show", f"{run.id}/a1").out,
                 world.baton("ls").out, world.read(run.dir + "/report.md")):
        for bad in ("\x1b", "\x07", "\x9b", "\u202e"):
            check(bad not in text, f"a control sequence {bad!r} reaches the terminal", repr(text))


@test_plain
def other_agents_folders_cannot_be_read_or_written(world):
    world.repository()
    first = hostile(world, answer(shell("echo secret-of-the-first >secret.txt; git add -A; git commit -q -m secret")))
    own = first.worktree()
    world_before = fingerprint(own)
    second = hostile(world, answer(shell(f"cat {own}/secret.txt {first.dir}/run.jsonl {first.dir}/agents/a1/1/transcript.jsonl; ls {own}; "
                                         f"echo hacked >{own}/secret.txt; rm -rf {first.dir} {own}")))
    check("secret-of-the-first" not in json.dumps(second.results()), "another agent's folder was read", second.results())
    equal(fingerprint(own), world_before, "another agent's worktree")
    check(first.last("run.finished"), "another run's journal is gone")


main()
