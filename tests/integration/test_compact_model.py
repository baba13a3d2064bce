#!/usr/bin/env python3
"""Summaries by another model (H16): two models in one scenario, what each call costs, and what is refused."""
import json
import os

from rig import answer, check, equal, main, report, shell, test, test_plain

SECTIONS = ["Primary request and intent", "Key technical concepts", "Files and code sections", "Errors and fixes",
            "Problem solving", "All user messages", "Pending tasks", "Current work", "Optional next step"]
SUMMARY = "<analysis>thinking</analysis>\n<summary>\n" + "".join(
    f"{n}. {name}:\nSUMMARISED {n}\n" for n, name in enumerate(SECTIONS, 1)) + "</summary>"
LARGE = {"input": 3.0, "output": 15.0, "cache_read": 0.3, "cache_write": 3.75}
SMALL = {"input": 1.0, "output": 5.0}
WARNING = "no golden-set result is on record"


def two_models(world, *options, role=None, status=0, config=None):
    """Ten long rounds in a window of 30,000 tokens, whose summaries only the small model is willing to make."""
    if not os.path.isdir(world.repo + "/.git"):
        world.repository()
    rules = [{"match": {"is_compaction": True, "model": "^small$"}, "answer": {"text": SUMMARY}},
             {"match": {"is_compaction": True}, "answer": {"text": "The large model was asked."}}]
    rules += [{"match": {**({"tool_result": f"did {n - 1}[.]"} if n else {"turn": 0}), "not": {"is_compaction": True}},
               "answer": answer(shell(f"seq {n * 2000} {n * 2000 + 1200}; echo did {n}."))} for n in range(10)]
    rules += [{"match": {}, "answer": answer(report("Done."))}]
    server = world.server(rules, "--log", world.path("log"), window=30000,
                          models={"large": {"window": 30000}, "small": {"window": 20000, "max_output": 3000}})
    world.config(providers={"fake": {"api": "anthropic", "base_url": server.url, "key_env": "FAKE_KEY"}},
                 models={"fake/large": {"window": 30000, "max_output": 2000, "cache": "explicit", "price": LARGE},
                         "fake/small": {"window": 20000, "max_output": 3000, "cache": "none", "price": SMALL}},
                 context={"notes": False, "collapse": False, "snip": False, "clear_share": 100, "compact_price": False}, **(config or {}))
    if role:
        world.write(world.path("config/baton/agents/other.md"), f"---\nname: other\ncontext:\n  compact_model: {role}\n---\nWork.\n")
        options = ("--role", "other", *options)
    done = world.baton("run", "Count.", "--model", "fake/large", *options, env={"FAKE_KEY": "sk-test-0123456789"}, status=status)
    return done, server


def price_of(record, price):
    tokens = {"input": record["fresh"], "output": record["output"], "cache_read": record["cache_read"],
              "cache_write": record["cache_write"]}
    return sum(n * price.get(kind, price["input"]) for kind, n in tokens.items()) / 1e6


@test
def each_call_has_the_price_of_its_model(world):
    done, server = two_models(world, "--compact-model", "fake/small", "--max-cost", "5")
    run = world.run()
    compactions = [c["data"] for c in run.records("agent.compact") if "kind" in c["data"]]
    check(compactions and not any(c["by_rule"] for c in compactions), "compactions", compactions, done)
    settled, reserved = run.records("call.settled"), run.records("call.reserved")
    small = [r for r in settled if r.get("model") == "small"]
    equal(len(small), len(compactions), "calls of the small model", done)
    check(len(settled) > len(small), "calls of the large one", settled)
    for r in settled:
        want = price_of(r, SMALL if r.get("model") else LARGE)
        check(abs(r["cost"] - want) < 1e-5, f"cost {r['cost']}, expected {want}", r)
    # W12: what is set aside is the price of the whole answer, which is small's own.
    for r in (r for r in reserved if r.get("model") == "small"):
        check(r["cost"] <= r["tokens"] * SMALL["output"] / 1e6 and r["cost"] >= r["tokens"] * SMALL["input"] / 1e6, "reserved", r)
    cost = run.report()["usage"]["cost"]
    check(abs(sum(r["cost"] for r in settled) - cost) < 1e-4, "the sum", cost, settled)
    spent = sum(c["call_cost"] for c in compactions)
    check(abs(spent - sum(r["cost"] for r in small)) < 1e-5, "what the compactions say that they cost", spent, small)
    # The server's own count of requests by model, and nothing that it had to refuse.
    log = [json.loads(line) for line in world.read("log").splitlines()]
    equal(sum(1 for r in log if r.get("model") == "small"), len(small), "requests that name the small model", log[:3])
    equal(server.stats()["n_violations"], 0, "violations", server.stats())
    warnings = [r["message"] for r in run.records("agent.warning") if WARNING in r.get("message", "")]
    equal(len(warnings), 1, "warnings", done)
    check("'fake/small' for 'fake/large'" in warnings[0], "the pair", warnings)


@test_plain
def a_budget_counts_the_price_of_the_called_model(world):
    """All of it costs 0.2 USD. Reserved at other prices than it is settled by, the limit would not hold."""
    two_models(world, "--compact-model", "fake/small", "--max-cost", "0.14", status=4)
    run = world.run()
    cost = run.report()["usage"]["cost"]
    check(0.07 < cost <= 0.14, "cost", cost)
    equal(run.last("run.finished")["status"], "budget", "status")


@test_plain
def a_role_names_it(world):
    two_models(world, role="fake/small")
    check([r for r in world.run().records("call.settled") if r.get("model") == "small"], "calls of the small model")
    two_models(world, "--compact-model", "fake/large", role="fake/small")  # the command line is above a role
    equal([r for r in world.run().records("call.settled") if r.get("model")], [], "calls of another model")
    two_models(world, role="inherit", config={"compact-model": "fake/small"})  # a role is above a file
    equal([r for r in world.run().records("call.settled") if r.get("model")], [], "calls of another model")


@test
def what_cannot_be_used_is_refused_first(world):
    done, _ = two_models(world, "--compact-model", "other/small", status=2)
    check("is not of this run's provider 'fake'" in done.err, "another provider", done)
    done, _ = two_models(world, "--compact-model", "fake/unheard", status=2)
    check("no known window" in done.err, "no window", done)


if __name__ == "__main__":
    main()
