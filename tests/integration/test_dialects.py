#!/usr/bin/env python3
"""Servers that imitate the two protocols deviate from them. A whole run works with each deviation that the scripted
model can play (docs/scenarios.md, "Quirks"): commands run once, reports arrive.
"""
from rig import answer, check, equal, in_turn, main, report, shell, test

OPENAI = ("gemini", "ollama", "ollama_old", "openrouter", "deepseek", "moonshot", "azure", "oci", "crlf", "cr", "split", "comments",
          "no_space", "padded", "openai_no_index", "openai_index_zero", "whole_args", "new_ids", "args_object", "finish_stop", "no_done",
          "drop_usage", "usage_on_finish", "usage_in_choice", "usage_late", "reasoning", "reasoning_twice", "thought_signature", "raw_controls")
ANTHROPIC = ("no_signature", "no_block_stop", "no_input_delta", "no_ping", "crlf", "cr", "comments", "no_space", "split", "padded", "drop_usage")


def works_with(world, protocol, quirk):
    world.repository()
    first = {"thinking": "Hm.", **answer(shell("echo one >>one.txt"))}
    rules = in_turn(first, answer(shell("echo two >>two.txt"), shell("echo three >>three.txt")), answer(report()))
    done = world.baton("run", "go on", "--quiet", "--model", f"{protocol}:{world.scenario(rules, quirks=[quirk])}", status=None)
    check(done.status == 0, f"{protocol} with {quirk}", done)
    branch = world.run().branch()
    files = world.git("show", *(f"{branch}:{name}.txt" for name in ("one", "two", "three")))
    equal(files, "one\ntwo\nthree", f"files, {protocol} with {quirk}")
    world.command("rm", "-rf", world.repo, cwd=world.dir)


@test
def dialects_of_the_openai_protocol(world):
    for quirk in OPENAI:
        works_with(world, "rehearsal+openai", quirk)


@test
def dialects_of_the_anthropic_protocol(world):
    for quirk in ANTHROPIC:
        works_with(world, "rehearsal", quirk)


main()
