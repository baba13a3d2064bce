#!/usr/bin/env python3
"""Servers that imitate the two protocols deviate from them. A whole run works with each deviation that the scripted
model can play (docs/scenarios.md, "Quirks"): commands run once, reports arrive.
"""
import shutil

from rig import FEWER, answer, check, equal, in_turn, main, report, shell, test

FRAMING = ("crlf", "cr", "split", "comments", "no_space", "padded")
USAGE = ("drop_usage", "usage_on_finish", "usage_in_choice", "usage_late")
CALLS = ("openai_no_index", "openai_index_zero", "whole_args", "new_ids", "args_object", "finish_stop", "no_done", "reasoning",
         "reasoning_twice", "thought_signature", "raw_controls", "azure")
WHOLE = ("gemini", "ollama", "ollama_old", "openrouter", "deepseek", "moonshot", "oci")
ANTHROPIC = ("no_signature", "no_block_stop", "no_input_delta", "no_ping", "drop_usage")


def cases(framing, *others):
    """Each quirk by itself. Under the sanitizers those of different kinds together: all of them, in half of the runs."""
    if not FEWER:
        return [(quirk,) for kind in (framing, *others) for quirk in kind]
    longest = max(len(kind) for kind in (framing, *others))
    return [tuple(kind[n] for kind in (framing, *others) if n < len(kind)) for n in range(longest)]


def works_with(world, protocol, quirks):
    world.repository()
    first = {"thinking": "Hm.", **answer(shell("echo one >>one.txt"))}
    rules = in_turn(first, answer(shell("echo two >>two.txt"), shell("echo three >>three.txt")), answer(report()))
    done = world.baton("run", "go on", "--quiet", "--model", f"{protocol}:{world.scenario(rules, quirks=list(quirks))}", status=None)
    check(done.status == 0, f"{protocol} with {quirks}", done)
    branch = world.run().branch()
    files = world.git("show", *(f"{branch}:{name}.txt" for name in ("one", "two", "three")))
    equal(files, "one\ntwo\nthree", f"files, {protocol} with {quirks}")
    shutil.rmtree(world.repo)


def each(world, protocol, chosen):
    print(f"{sum(map(len, chosen))} quirks in {len(chosen)} runs")
    for quirks in chosen:
        works_with(world, protocol, quirks)


@test
def dialects_of_the_openai_protocol(world):
    each(world, "rehearsal+openai", cases(FRAMING, USAGE, CALLS) + [(quirk,) for quirk in WHOLE])


@test
def dialects_of_the_anthropic_protocol(world):
    each(world, "rehearsal", cases(FRAMING, ANTHROPIC))


main()
