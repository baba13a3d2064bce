#!/usr/bin/env python3
"""Budgets (I11): cost, tokens, time and rounds end a run with exit status 4, a report, and the work kept."""
import json
import os
import re

from rig import answer, check, equal, fingerprint, in_turn, main, report, shell, test, test_plain, unchanged, wait_for

WORK = "echo {n} >{n}.txt; git add -A; git commit -q -m 'Step {n}'"


def busy(world, *options, status, turns=40, extra=""):
    """An agent that would go on for ever, one commit a round."""
    world.repository()
    world.before = fingerprint(world.repo)
    rules = in_turn(*[answer(shell(WORK.format(n=n)), **({"text": extra} if extra else {})) for n in range(turns)])
    # Asked for a last report, it gives one.
    rules.insert(0, {"match": {"last_message": "(?i)report (tool )?now|call the report tool", "turn": "1.."}, "answer": answer(report("What there is."))})
    done = world.baton("run", "go on for ever", "--model", f"rehearsal:{world.scenario(rules)}", *options, status=status)
    return done, world.run()


def ended_well(world, done, run, word):
    last = run.last("run.finished")
    equal((last["status"], last["exit_status"]), ("budget", 4), "status", done)
    check(word in (last["reason"] or "") or word in json.dumps(run.agents()["a1"]), f"no reason with '{word}'", last, run.agents()["a1"])
    check(os.path.exists(run.dir + "/report.md"), "no report")
    check(world.git("log", "--format=%s", f"main..{run.branch()}").startswith("Step "), "the work is not on the branch", done)
    unchanged(world, world.before)
    world.no_strays(5)


@test_plain
def max_rounds_ends_the_run(world):
    done, run = busy(world, "--max-rounds", "4", "--reset", "never", status=4)
    ended_well(world, done, run, "round")
    check(run.agents()["a1"]["rounds"] <= 6, "rounds", run.agents()["a1"])


@test_plain
def max_tokens_is_never_exceeded(world):
    done, run = busy(world, "--max-tokens", "60000", status=4)
    ended_well(world, done, run, "token")
    used = run.report()["usage"]
    total = used["fresh"] + used["cache_read"] + used["cache_write"] + used["output"]
    check(total <= 60000, "more tokens than allowed", used)
    check(total > 20000, "it stopped far too early", used)


@test
def max_cost_is_never_exceeded(world):
    done, run = busy(world, "--max-cost", "0.06", status=4)
    ended_well(world, done, run, "cost")
    cost = run.report()["usage"]["cost"]
    check(0.02 < cost <= 0.06, "cost", cost)
    check(abs(sum(r["cost"] for r in run.records("call.settled")) - cost) < 1e-4, "sum of the calls", cost)


@test_plain
def too_small_a_budget_makes_no_call(world):
    done, run = busy(world, "--max-cost", "0.0001", status=4)
    equal(run.report()["usage"]["calls"], 0, "calls", done)
    equal(run.last("run.finished")["status"], "budget", "status")


HOLD = "mkfifo fifo; touch started; while [ ! -e go ]; do read -r -t 0.05 x <>fifo; done; echo went >>went.txt"


def a_tree(world, *options):
    """A lead with two children: one in a long tool, one that spends until the run's tokens are gone."""
    world.repository({"base.txt": "base\n", ".gitignore": "fifo\nstarted\ngo\n"})
    slow = in_turn(answer(shell(HOLD, timeout_ms=600000)), answer(report("Slow is done.")), task="slow piece")
    eager = in_turn(*[answer(shell(f"echo {n} >>steps.txt")) for n in range(8)], answer(report("Eager is done.")), task="eager piece")
    calls = [{"name": "agent", "input": {"task": f"{which} piece"}} for which in ("slow", "eager")]
    lead = in_turn(answer(*calls), answer(report("Both.")))
    started = world.start("run", "go", "--model", f"rehearsal:{world.scenario([*slow, *eager, *lead])}", "--max-tokens", "36k",
                          "--max-output", "2000", *options)
    run = world.wait_run(started)
    wait_for(lambda: run.records("run.paused"), "the tree pauses", 40, lambda: str(run))
    world.wait_tool(run, "started", [r["child"] for r in run.records("agent.asked") if "slow" in r["wish"]["task"]][0])
    return started, run


def finished_well(world, run, done):
    equal(done.status, 0, "exit status", done, str(run))
    equal({a["status"] for a in run.agents().values()}, {"done"}, "ends", done)
    names = {r["wish"]["task"]: r["child"] for r in run.records("agent.asked")}
    equal(world.git("show", f"{run.branch(names['eager piece'])}:steps.txt").split(), [str(n) for n in range(8)], "each step once")
    equal(world.git("show", f"{run.branch(names['slow piece'])}:went.txt"), "went", "the tool that was running, once")
    world.no_strays(5)


@test
def at_the_budget_the_tree_pauses_and_goes_on(world):
    """X8, I11: what runs is not killed; when nobody works the run ends, says how to go on, and goes on so."""
    started, run = a_tree(world)
    equal(run.last("run.paused")["why"], "budget", "why")
    check(not started.ended() and not run.records("agent.ended"), "somebody was ended", str(run))
    world.write(f"{run.worktree('a2')}/go", "")
    done = started.wait(40)
    equal(done.status, 4, "exit status", done)
    used = run.report()["usage"]
    check(sum(used[k] for k in ("fresh", "cache_read", "cache_write", "output")) <= 36000, "more than allowed", used)
    check("--max-tokens 36000" in run.last("run.finished")["reason"], "the reason", run.last("run.finished"))
    line = f"baton resume {run.id} --max-tokens 72000"
    check(line in done.out, f"it does not say '{line}'", done)
    equal({a["status"] for a in run.agents().values()}, {"stopped"}, "ends", done)
    done = world.baton("resume", run.id, "--max-tokens", "400k", status=None)
    finished_well(world, run, done)


@test_plain
def a_budget_is_raised_while_it_works(world):
    """`baton resume RUN --max-tokens N` of a run that has paused, and is still there: nobody is stopped at all."""
    started, run = a_tree(world)
    check("give it more" in world.baton("resume", run.id, "--max-tokens", "1k", status=None).err, "less than was used")
    world.baton("resume", run.id, "--max-tokens", "400k")
    world.write(f"{run.worktree('a2')}/go", "")
    finished_well(world, run, started.wait(60))
    equal([r["type"] for r in run.records() if r["type"] in ("run.paused", "run.limits", "run.continued")],
          ["run.paused", "run.limits", "run.continued"], "records")
    equal(len(run.records("agent.spawned")), 3, "nobody was started again")


@test_plain
def the_table_adds_up(world):
    """Per agent and role: what the report's table says is what the calls were settled with."""
    world.repository()
    child = in_turn(answer(shell("echo one >one.txt")), answer(report()), task="a piece")
    lead = in_turn(answer({"name": "agent", "input": {"task": "a piece", "max_cost": 5}}), answer(report()))
    done = world.baton("run", "go", "--model", f"rehearsal:{world.scenario([*child, *lead])}")
    run = world.run()
    table = run.report()["table"]
    for row in table["agents"]:
        settled = [r for r in run.records("call.settled") if r["agent"] == row["agent"]]
        equal((row["fresh"], row["cached"], row["output"]),
              (sum(r["fresh"] + r["cache_write"] for r in settled), sum(r["cache_read"] for r in settled), sum(r["output"] for r in settled)), "tokens")
        check(abs(row["cost"] - sum(r["cost"] for r in settled)) < 1e-4, "money", row)
        equal((row["rounds"], row["compactions"], row["resets"]), (2, 0, 0), "counts", row)
        check(0 < row["wall_ms"] <= run.report()["duration_ms"], "time", row)
    equal([(r["role"], r["agents"], r["rounds"]) for r in table["roles"]], [("lead", 1, 2), ("worker", 1, 2)], "roles")
    equal(table["stages"], [], "stages")
    equal(table["agents"][1]["started_by"], "a1", "who started it")
    for text in (done.out, world.read(run.dir + "/report.md")):
        for word in ("| a1 lead |", "| a2 worker |", "| role worker (1) |", "compactions"):
            check(word in text, f"'{word}' is missing", text)


@test
def time_limit_ends_a_model_call(world):
    world.repository()
    scenario = world.scenario([{"match": {"turn": 0}, "answer": answer(shell("echo x >x.txt"))},
                               {"match": {"turn": 1}, "fault": {"delay_ms": 600000}, "answer": answer(report())}])
    world.baton("run", "wait", "--model", f"rehearsal:{scenario}", "--time-limit", "2s", status=4)
    run = world.run()
    equal(run.last("run.finished")["status"], "budget", "status")
    check(run.last("run.finished")["duration_ms"] < 15000, "it took too long", run.last("run.finished"))
    check(os.path.exists(run.worktree() + "/x.txt") or world.git("show", f"{run.branch()}:x.txt", status=None) == "x", "the work is gone")
    world.no_strays(5)


@test
def time_limit_ends_a_tool(world):
    world.repository()
    scenario = world.scenario(in_turn(answer(shell("mkfifo f; read -r x <>f", timeout_ms=600000)), answer(report())))
    world.baton("run", "wait", "--model", f"rehearsal:{scenario}", "--time-limit", "2s", status=4)
    world.no_strays(5)


@test
def time_limit_holds_in_a_rate_limit(world):
    world.repository()
    scenario = world.scenario([{"match": {"turn": 0}, "fault": {"status": 429, "headers": {"retry-after": "60"}}}])
    world.baton("run", "wait", "--model", f"rehearsal:{scenario}", "--time-limit", "2s", status=4)


@test_plain
def both_kinds_of_rehearsal_have_prices(world):
    world.repository()
    scenario = world.scenario(in_turn(answer(report())))
    for kind in ("rehearsal", "rehearsal+openai"):
        done = world.baton("run", "x", "--model", f"{kind}:{scenario}", "--max-cost", "1")
        check("USD" in done.out, f"the costs of {kind}", done)


@test
def a_model_without_prices_refuses_max_cost(world):
    world.repository()
    world.provider("http://127.0.0.1:9")
    done = world.baton("run", "x", "--model", "fake/unheard-of", "--window", "100k", "--max-cost", "1", status=2)
    check("price" in done.err and "max-tokens" in done.err, "the message says what to do instead", done)
    for typed, origin in ((["--max-cost", "1"], None), ([], "BATON_MAX_COST")):
        done = world.baton("run", "x", "--model", "fake/unheard-of", "--window", "100k", *typed, status=2, env={"BATON_MAX_COST": "2"})
        check("(" not in done.err if typed else origin in done.err, "where the limit comes from", done)
    equal(world.runs(), [], "runs")


def window_of(world, *options):
    """(window, effective) of a run's first request, with a model of 100,000 tokens and one of a role that has 40,000."""
    server = world.server(in_turn(answer(report())), "--log", world.path("log"), "--log-bodies")
    world.config(providers={"fake": {"api": "anthropic", "base_url": server.url, "key_env": "FAKE_KEY"}},
                 models={"fake/m": {"window": 100000, "max_output": 8000}, "fake/small": {"window": 40000, "max_output": 4000}})
    world.write(world.path("config/baton/agents/small.md"), "---\nname: small\nmodel: fake/small\n---\nWork.\n")
    world.baton("run", "x", "--model", "fake/m", *options, env={"FAKE_KEY": "sk-test-0123456789"})
    found = [r for r in world.run().transcript() if r["type"] == "request"][0]
    return found["window"], found["effective"]


@test
def one_rule_for_windows(world):
    """--window stands above the table, for the run's model and for that of a role; W14: a ceiling bounds what is used."""
    world.repository()
    equal(window_of(world), (100000, 92000), "as the table says")
    equal(window_of(world, "--window", "60k"), (60000, 52000), "--window")
    equal(window_of(world, "--role", "small"), (40000, 36000), "a role's model, as the table says")
    equal(window_of(world, "--role", "small", "--window", "60k"), (60000, 56000), "a role's model and --window")
    equal(window_of(world, "--working-ceiling", "30k"), (100000, 30000), "--working-ceiling")


@test_plain
def cache_life_is_asked_for(world):
    """H17: an hour for what never changes, if the user says so."""
    world.repository()
    window_of(world)
    check('1h' not in re.sub(r'"text":"[^"]*"', "", world.read("log")), "an hour without being asked", world.read("log"))
    window_of(world, "--cache-life", "1h")
    check(re.search(r'ttl\W+1h', world.read("log")), "no marker of an hour", world.read("log"))


@test
def an_unknown_model_needs_a_window(world):
    world.repository()
    world.provider("http://127.0.0.1:9")
    done = world.baton("run", "x", "--model", "fake/unheard-of", status=2)
    check("--window" in done.err and "unheard-of" in done.err, "the message", done)
    server = world.server(in_turn(answer(report())))
    world.provider(server.url)
    world.baton("run", "x", "--model", "fake/unheard-of", "--window", "100k")


@test
def a_budget_holds_for_all_agents_of_a_review_together(world):
    world.repository({f"f{n}.txt": "one\n" for n in range(12)})
    for n in range(12):
        world.write(f"{world.repo}/f{n}.txt", "one\n" + f"{n} a line that is long enough to fill its part\n" * 40)
    world.git("commit", "-q", "-a", "-m", "Two")
    scenario = world.scenario(in_turn(answer({"name": "read", "input": {"path": "f1.txt"}}), answer(report())))
    done = world.baton("review", "HEAD~1..HEAD", "--agents", "6", "--max-tokens", "40k", "--model", f"rehearsal:{scenario}", status=4)
    run = world.run()
    used = run.report()["usage"]
    check(used["fresh"] + used["cache_read"] + used["cache_write"] + used["output"] <= 40000, "tokens", used)
    check(any(a["status"] == "done" for a in run.agents().values()), "no agent could finish", done)
    world.no_strays(5)


@test_plain
def usage_is_split_and_adds_up(world):
    done, run = busy(world, "--max-rounds", "4", status=4)
    settled = run.records("call.settled")
    used = run.report()["usage"]
    for kind in ("fresh", "cache_read", "cache_write", "output"):
        equal(sum(r[kind] for r in settled), used[kind], kind, done)
    equal(len(settled), used["calls"], "calls")
    check(used["cache_read"] > 0, "nothing was read from the cache", used)


def thirty_rounds(world, model, server, *options):
    """Shares of the input in a run of thirty rounds, as the server counted them."""
    before = server.stats()["cache"]
    world.baton("run", "read it all", "--model", model, *options)
    stats = server.stats()
    equal(stats["n_violations"], 0, f"violations ({model})", stats["violations"])
    equal(world.run().agents()["a1"]["rounds"], 30, "rounds")
    read, write, fresh = (stats["cache"][k] - before[k] for k in ("read", "write", "fresh"))
    share = read / (read + write + fresh)
    print(f"{model}: {100 * share:.1f} % of {read + write + fresh} input tokens were read from the cache")
    check(share >= 0.9, f"cache share ({model}), of read, written, fresh:", read, write, fresh)


def readable_server(world):
    world.repository({f"f{n}.txt": "some words in a line\n" * 30 for n in range(30)})
    return world.server(in_turn(*[answer({"name": "read", "input": {"path": f"f{n}.txt"}}) for n in range(29)], answer(report())),
                        "--log", world.path("log"), "--log-bodies")


@test_plain
def a_long_run_reads_its_input_from_the_cache(world):
    """Thirty rounds: at least 90 % of the input is cache read, with at most 4 markers (H17)."""
    server = readable_server(world)
    world.env.update(ANTHROPIC_API_KEY="k", ANTHROPIC_BASE_URL=server.url, OPENAI_API_KEY="k", OPENAI_BASE_URL=server.url + "/v1")
    thirty_rounds(world, "anthropic/claude-opus-5", server)
    thirty_rounds(world, "openai/gpt-5.5", server)
    markers = [json.loads(line).get("body", "").count('"cache_control"') for line in world.read("log").splitlines()]
    check(max(markers) <= 4, "more than 4 cache markers", markers)
    check(max(markers) >= 2, "no markers were seen (the test looks at nothing)", markers)


@test_plain
def a_provider_of_ones_own_is_cached_too(world):
    server = readable_server(world)
    for api in ("openai", "anthropic"):
        world.provider(server.url, api)
        thirty_rounds(world, "fake/m", server, "--window", "200k")


main()
