#!/usr/bin/env python3
"""W6: what a run learned of a model's tokenizer makes the next run's estimates better, and a damaged record of it harms
nobody."""
import json
import os

from rig import answer, check, equal, in_turn, main, report, shell, test, test_plain

FILE = "state/baton/calibration.json"
# A task with text enough to learn from.
TASK = "Go on. " + "The parser reads one byte too many when the line ends in 0x0d, see ticket 48213. " * 60


def run_once(world, server):
    world.provider(server.url)
    done = world.baton("run", TASK, "--quiet", "--model", "fake/some-model", "--window", "200000")
    # The second request holds what is far from an average tokenizer here: 400 lines of digits.
    second = world.run().records("agent.round")[1]["data"]
    prompt = second["input"] + second["cache_read"] + second["cache_write"]
    return done, abs(second["estimate"] - prompt) / prompt


def scripted(world):
    world.repository()
    return world.server(in_turn(*[answer(shell("seq 1 400")), answer(report())]))


@test
def the_next_run_starts_with_what_was_learned(world):
    server = scripted(world)
    done, cold = run_once(world, server)
    kept = json.loads(world.read(FILE))
    equal((kept["version"], list(kept["models"])), (1, ["fake/some-model"]), "the file", kept)
    check(kept["models"]["fake/some-model"]["words"]["tokens"] > 500, "nothing was learned of words", kept)
    equal(os.stat(world.path(FILE)).st_mode & 0o777, 0o600, "mode of the file")
    _, warm = run_once(world, server)
    check(warm < cold / 2, "the second run's estimate is no better", cold, warm)


@test
def a_damaged_file_is_told_and_replaced(world):
    server = scripted(world)
    world.write(FILE, '{"version": 1, "mod')
    done, _ = run_once(world, server)
    check("calibration.json" in done.err, "no warning", done)
    check(json.loads(world.read(FILE))["models"], "the file was not replaced", done)


@test
def the_buffer_of_a_role_is_learned(world):
    """W3: `auto` is 13,000 until enough answers are known, then their 99th percentile and 20 %."""
    server = scripted(world)

    def buffer():
        world.provider(server.url)
        world.baton("run", TASK, "--quiet", "--model", "fake/some-model", "--window", "200000", "--context", "compact_buffer=auto")
        request = json.loads(world.baton("context", "--json").out)["request"]
        return request["effective"] - request["compact"]

    equal(buffer(), 13000, "before anything is known")
    kept = json.loads(world.read(FILE))
    equal(sum(kept["responses"]["fake/some-model"]["lead"].values()), 2, "answers that were counted", kept)
    kept["responses"]["fake/some-model"]["lead"] = {"120": 300}  # 2^15 tokens each
    world.write(FILE, json.dumps(kept))
    equal(buffer(), 32768 * 12 // 10, "the learned buffer")
    equal(sum(json.loads(world.read(FILE))["responses"]["fake/some-model"]["lead"].values()), 302, "what was kept and what came")


@test_plain
def a_rehearsal_teaches_nothing(world):
    world.repository()
    rules = in_turn(*[answer(shell("seq 1 400")), answer(report())])
    world.baton("run", TASK, "--quiet", "--model", f"rehearsal:{world.scenario(rules)}")
    check(not os.path.exists(world.path(FILE)), "a scripted model's tokens were kept")


main()
