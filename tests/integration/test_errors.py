#!/usr/bin/env python3
"""Wrong usage and configuration: exit status 2, and a message that says what is wrong, where, and what to do."""
import json
import os

from rig import answer, check, equal, in_turn, main, report, test


def refused(world, *args, words, status=2, **kw):
    done = world.baton(*args, status=status, **kw)
    for word in words:
        check(word in done.err, f"the message lacks '{word}'", done)
    check(len(done.err.strip().split("\n")) <= 6, "the message is too long", done)
    check("baton" in done.err.split("\n")[0], "the message does not start with the program's name", done)
    return done


def simple(world):
    world.repository()
    return "rehearsal:" + world.scenario(in_turn(answer(report())))


@test
def an_unknown_key_is_named_with_file_line_and_the_nearest(world):
    model = simple(world)
    path = world.write("config/baton/config.yaml", "window: 100k\nmax-ruonds: 5\n")
    refused(world, "run", "x", "--model", model, words=[path, ":2", "max-ruonds", "max-rounds"])
    path = world.write(world.repo + "/.baton/config.yaml", "# ours\n\nshel-timeout: 5s\n")
    world.write("config/baton/config.yaml", "")
    refused(world, "run", "x", "--model", model, words=[path, ":3", "shel-timeout", "shell-timeout"])


@test
def a_wrong_type_is_named_with_file_and_line(world):
    model = simple(world)
    for text, word in (("max-rounds: many\n", "max-rounds"), ("time-limit: [1, 2]\n", "time-limit"), ("keep: perhaps\n", "keep"),
                       ("effort: enormous\n", "effort"), ("max-rounds: 0\n", "max-rounds")):
        path = world.write("config/baton/config.yaml", text)
        refused(world, "run", "x", "--model", model, words=[path, ":1", word])


@test
def broken_yaml_is_named_with_file_and_line(world):
    model = simple(world)
    path = world.write("config/baton/config.yaml", "window: 100k\n  keep: [true\n")
    refused(world, "run", "x", "--model", model, words=[path])


@test
def a_project_may_not_name_the_model_or_weaken_the_box(world):
    """M5: project layers only narrow."""
    model = simple(world)
    for text in ("model: anthropic/claude-opus-5\n", "unconfined: true\n", "network: open\n", "pass-env: [AWS_SECRET_ACCESS_KEY]\n",
                 "providers: {anthropic: {base_url: 'http://evil.example'}}\n", "read-paths: [/root]\n"):
        path = world.write(world.repo + "/.baton/config.yaml", text)
        refused(world, "run", "x", "--model", model, words=[path, ":1", text.split(":")[0]])


@test
def unknown_options_and_commands_name_the_nearest(world):
    model = simple(world)
    refused(world, "run", "x", "--model", model, "--max-roundz", "3", words=["--max-roundz", "--max-rounds"])
    refused(world, "run", "x", "--model", model, "--staged", words=["--staged"])
    refused(world, "run", "x", "--model", model, "--max-rounds", "three", words=["max-rounds", "three"])
    refused(world, "run", "x", "--model", model, "--max-rounds", words=["--max-rounds", "needs a value"])
    refused(world, "reviwe", words=["reviwe", "review"])
    refused(world, "run", "--model", model, words=["TASK"])
    refused(world, "run", "a", "b", "--model", model, words=["quotes"])
    refused(world, "run", "  ", "--model", model, words=["empty"])
    refused(world, "run", "x", "--file", "y", "--model", model, words=["--file"])
    refused(world, "run", "x", "--dirty", "--base", "HEAD", "--model", model, words=["--dirty", "--base"])
    refused(world, "review", "--staged", "--worktree", "--model", model, words=["--staged"])
    refused(world, "review", "HEAD", "--fail-on", "bad", "--model", model, words=["fail-on", "critical"])


@test
def an_early_end_says_its_own_reason_only(world):
    """The agent process that waited for work is ended unheard: its end concerns nobody."""
    model = simple(world)
    os.makedirs(world.path("plain"))
    for args in (("run", "x", "--role", "nosuch"), ("run", "x", "-C", world.path("plain")), ("review", "HEAD..HEAD")) * 3:
        done = world.baton(*args, "--model", model, status=None)
        check("waiting agent" not in done.err and "spare" not in done.err, "the waiting agent's end is told", done)


@test
def an_unknown_role_is_named(world):
    model = simple(world)
    refused(world, "run", "x", "--model", model, "--role", "revewer", words=["revewer", "reviewer"])


@test
def a_missing_key_says_where_to_put_it(world):
    simple(world)
    refused(world, "run", "x", "--model", "anthropic/claude-opus-5", words=["ANTHROPIC_API_KEY", "keys.yaml"])
    refused(world, "run", "x", words=["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "--model", "rehearsal:"])
    refused(world, "run", "x", "--model", "antropic/claude", words=["antropic", "anthropic"])
    refused(world, "run", "x", "--model", "claude", words=["claude", "PROVIDER/NAME"])
    equal(world.runs(), [], "runs that were made")


@test
def a_key_of_a_provider_without_a_model_of_its_own(world):
    world.repository()
    refused(world, "run", "x", words=["openrouter", "--model openrouter/NAME"], env={"OPENROUTER_API_KEY": "sk-or-secret"})


@test
def no_repository_is_said(world):
    model = simple(world)
    os.makedirs(world.path("empty"))
    odd = world.path("r").encode() + b"\xe9po"
    os.makedirs(odd)
    refused(world, "run", "x", "--model", model, words=["is not UTF-8", "rename"], cwd=odd)
    refused(world, "run", "x", "--model", model, words=["repository"], cwd=world.path("empty"))
    refused(world, "run", "x", "--model", model, "-C", world.path("nowhere"), words=["nowhere"])
    refused(world, "ls", words=["repository"], cwd=world.path("empty"))
    refused(world, "show", words=["run"])
    world.no_strays(3)


@test
def a_head_whose_commit_is_gone_costs_nothing(world):
    world.repository()
    server = world.server(in_turn(answer(report())))
    world.provider(server.url)
    world.write(world.repo + "/.git/refs/heads/main", "12" * 20 + "\n")
    done = world.baton("run", "x", "--model", "fake/m", "--window", "100k", status=2)
    check("12" * 20 in done.err and "git fsck" in done.err, "the commit is not named", done)
    equal(server.stats()["requests"], 0, "requests to the model")
    check(not os.path.isdir(world.repo + "/.git/baton/runs") or not os.listdir(world.repo + "/.git/baton/runs"), "a run's folder", done)


@test
def a_repository_without_commits_is_said(world):
    model = simple(world)
    os.makedirs(world.path("fresh"))
    world.git("init", "-q", cwd=world.path("fresh"))
    refused(world, "run", "x", "--model", model, words=["commit"], cwd=world.path("fresh"))
    refused(world, "review", "--model", model, words=["commit"], cwd=world.path("fresh"))


@test
def a_branch_in_the_way_is_named(world):
    """A user's branch 'baton', loose or packed: an error at the start that names it and branch_prefix."""
    model = simple(world)
    world.git("branch", "baton")
    refused(world, "run", "x", "--model", model, words=["baton", "branch-prefix"])
    world.git("pack-refs", "--all")
    refused(world, "run", "x", "--model", model, words=["baton", "branch-prefix"])
    world.baton("run", "x", "--model", model, "--branch-prefix", "agents")
    check(world.git("branch", "--list", "agents/*"), "no branch under the other prefix")
    world.no_strays(3)


@test
def bad_scenarios_are_said(world):
    world.repository()
    refused(world, "run", "x", "--model", "rehearsal:" + world.path("none.yaml"), words=["none.yaml"])
    path = world.write("bad.yaml", "name: x\nrules:\n  - match: {tern: 1}\n    answer: {text: hi}\n")
    done = world.baton("run", "x", "--model", "rehearsal:" + path, status=2)
    check("tern" in done.err and ":3" in done.err, "the mistake is not named with its line", done)
    world.write("secret.yaml", "rules: []\n", 0)
    if os.geteuid() != 0:
        done = world.baton("run", "x", "--model", "rehearsal:" + world.path("secret.yaml"), status=2)
        check("secret.yaml" in done.err, "the file is not named", done)
    world.no_strays(5)


@test
def bad_revisions_are_named(world):
    model = simple(world)
    refused(world, "run", "x", "--model", model, "--base", "no-such-rev", words=["no-such-rev"])
    refused(world, "review", "no-such-rev..HEAD", "--model", model, words=["no-such-rev"])


@test
def an_unreachable_model_is_exit_3(world):
    world.repository()
    world.provider("http://127.0.0.1:1")
    done = world.baton("run", "x", "--model", "fake/m", "--window", "100k", "--retries", "1", status=3)
    text = done.out + done.err
    check("127.0.0.1" in text or "connect" in text, "the reason", done)


@test
def help_fits_a_screen_and_names_all(world):
    out = world.baton("--help", cwd=world.dir).out
    check(len(out.split("\n")) <= 30, "--help is longer than a screen", out)
    for name in ("run", "review", "ls", "show", "diff", "stop", "clean", "doctor", "rehearse", "config"):
        check(f"\n  {name}" in out, f"--help does not name {name}")
        sub = world.baton(name, "--help", cwd=world.dir).out
        check(f"baton {name}" in sub, f"baton {name} --help", sub)
    world.baton("--version", cwd=world.dir)


@test
def config_prints_values_with_their_origins(world):
    simple(world)
    path = world.write("config/baton/config.yaml", "max-rounds: 7\nagents: 3\n")
    project = world.write(world.repo + "/.baton/config.yaml", "shell-timeout: 9s\nagents: 5\n")
    out = world.baton("config", env={"BATON_RETRIES": "2"}).out
    for name, origin in (("max-rounds", path + ":1"), ("shell-timeout", project + ":1"), ("agents", project + ":2"), ("retries", "BATON_RETRIES"), ("verify", "default")):
        lines = [line for line in out.split("\n") if line.strip().startswith(name)]
        check(lines and origin in lines[0], f"origin of {name}", lines, out)
    json.loads(world.baton("config", "--json").out)


@test
def roles_of_projects_are_used(world):
    world.repository({"README.md": "x\n", ".claude/agents/helper.md": "---\nname: helper\ndescription: Helps.\ntools: Read, Grep\nmodel: sonnet\n---\nYou help.\n",
                      ".baton/agents/own.md": "---\nname: own\ndescription: Own.\ntools: [read]\nwrite: false\n---\nYou are our own.\n"})
    server = world.server(in_turn(answer({"name": "read", "input": {"path": "README.md"}}), answer(report())), "--log", world.path("log"), "--log-bodies")
    world.provider(server.url)
    for role, text in (("helper", "You help."), ("own", "You are our own.")):
        world.baton("run", "x", "--model", "fake/m", "--window", "100k", "--role", role)
        check(text in world.read("log"), f"the prompt of {role} was not sent")


main()
