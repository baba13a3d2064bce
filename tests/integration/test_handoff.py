#!/usr/bin/env python3
"""Handoff documents in a person's hands (R4): checked against the repository and the run's records, shown, edited."""
import json
import os
import pty
import subprocess

from rig import BATON, answer, check, equal, in_turn, main, report, shell, test, wait_for

FILES = {"src/reader.c": "int read_torn(void) { return 6; }\n", "tests/test_reader.c": "int test_torn(void);\n",
         "check.sh": "echo checking >out.txt\nexit 3\n"}


def document(world, **header):
    """One that is true of the repository: its head, a file and the blob of it."""
    head = world.git("rev-parse", "HEAD").strip()
    blob = world.git("rev-parse", "HEAD:src/reader.c").strip()
    lines = ["---", "schema: baton.handoff", "version: 1", f'base: "{head}"', f'head: "{head}"', "branch: main"]
    lines += [f"{key}: {value}" for key, value in header.items()] + ["---", "# Handoff", ""]
    return "\n".join(lines) + f"""
## Goal

- Make the reader survive torn lines.
  - origin: user

## Point of work

- read_torn drops the last record
  - origin: record
  - file: src/reader.c
  - function: read_torn

## Present failures

- test_torn expects 7 records and gets 6
  - origin: record
  - file: tests/test_reader.c
  - test: tests/test_reader.c::test_torn
  - command: sh check.sh
  - exit_code: 3

## First action

- Keep the unfinished line in read_torn
  - origin: model
  - function: read_torn
  - command: sh check.sh

## Commits

- the work so far
  - origin: record
  - commit: {head}

## Files touched

- changed
  - origin: record
  - file: src/reader.c
  - hash: {blob}
"""


def prepared(world):
    world.repository(FILES)
    world.git("branch", "-M", "main")
    world.git("checkout", "-q", "-b", "other")
    world.write("repo/other.c", "int x;\n")
    world.git("add", ".")
    world.git("commit", "-q", "-m", "elsewhere")
    foreign = world.git("rev-parse", "HEAD").strip()
    world.git("checkout", "-q", "main")
    return document(world), foreign


def faults(done):
    return [f"{f['part']} {f['fault']}: {f['text']}" for f in json.loads(done.out)["findings"] if f["refuses"]]


@test
def a_document_is_held_against_the_repository(world):
    good, foreign = prepared(world)
    head = world.git("rev-parse", "HEAD").strip()
    done = world.baton("handoff", "check", world.write("good.md", good))
    check("good.md: good" in done.out and "first_action  present, concrete, true" in done.out, "the check", done)
    check("what the user said was not compared" in done.out, "what nobody can answer is told", done)
    blob = world.git("rev-parse", "HEAD:src/reader.c").strip()
    spoiled = [
        (f"hash: {blob}", "hash: " + "1" * 40, "files untrue: 'src/reader.c' was changed since"),
        (f"  - commit: {head}", f"  - commit: {foreign}", f"commits untrue: commit {foreign[:12]} is not on the branch"),
        (f"  - commit: {head}", "  - commit: " + "2" * 40, "commits untrue: commit 222222222222 does not exist"),
        (f'head: "{head}"', f'head: "{foreign}"', f"commits untrue: head {foreign[:12]} is not on the branch"),
        ("file: tests/test_reader.c", "file: other.c", "failures untrue: 'other.c' is not there"),
        ("file: tests/test_reader.c", "file: ../good.md", "failures untrue: '../good.md' lies outside"),
        ("::test_torn", "::test_turn", "stands nowhere in the files"),
        ("  - command: sh check.sh\n  - exit", "  - command: no-such-program x\n  - exit", "which is not installed"),
    ]
    for old, new, want in spoiled:
        check(old in good, f"'{old}' is not in the document")
        done = world.baton("handoff", "check", world.write("bad.md", good.replace(old, new, 1)), "--json", status=1)
        check(any(want in fault for fault in faults(done)), f"'{want}' is not told of", done)
    bad = world.write("bad.md", good.replace("## Goal", "## Gaol"))
    done = world.baton("handoff", "check", bad, status=1)
    check("bad.md: line 10: the part 'Gaol' is not known; did you mean 'Goal'?" in done.err, "the line", done)
    world.baton("handoff", "check", "none.md", status=2)
    world.baton("handoff", "check", status=2)
    world.baton("handoff", "chekc", "good.md", status=2)
    world.baton("handoff", "show", world.path("good.md"), "--run", status=2)
    equal(world.git("status", "--porcelain").strip(), "", "the checkout is as it was")
    session = world.write("session.jsonl", json.dumps(
        {"type": "user", "cwd": world.repo, "message": {"content": "Make read_torn keep the line. Never push."}}) + "\n" + json.dumps(
        {"type": "assistant", "cwd": world.repo, "message": {"content": [
            {"type": "tool_use", "id": "t", "name": "Edit", "input": {"file_path": world.repo + "/src/reader.c"}}]}}) + "\n")
    done = world.baton("handoff", "import", session, "--output", world.path("imported.md"))
    check("2 records, 0 of unknown types" in done.err, "what was read", done)
    check("good" in world.baton("handoff", "check", world.path("imported.md")).out, "it is enough to go on from")
    world.baton("handoff", "import", world.path("good.md"), status=1)


@test
def its_commands_are_run_in_a_copy(world):
    good, _ = prepared(world)
    done = world.baton("handoff", "check", world.write("good.md", good), "--run")
    check("failures      present, concrete, true" in done.out, "it fails as stated", done)
    bad = good.replace("  - exit_code: 3", "  - exit_code: 0").replace("## Present failures", "## What done means")
    done = world.baton("handoff", "check", world.write("bad.md", bad), "--run", "--json", status=1)
    check(any("ended with exit code 3, not 0" in fault for fault in faults(done)), "it does not pass", done)
    slow = good.replace("sh check.sh\n  - exit", "tail -f check.sh\n  - exit")
    done = world.baton("handoff", "check", world.write("slow.md", slow), "--run", "--shell-timeout", "300ms")
    check("'tail -f check.sh' reached its time limit" in done.out, "a limit proves nothing", done)
    check(not os.path.exists(world.path("repo/out.txt")), "it was run elsewhere")


@test
def of_a_run_and_in_an_editor(world):
    """The run's own records: the user's words, the last calls. An edit is checked, and the old document stays."""
    world.repository(FILES)
    world.git("branch", "-M", "main")
    rules = in_turn(answer(shell("cat src/reader.c; sh check.sh")), answer(report("Done.")))
    world.baton("run", "Make the reader survive torn lines. Never change the file format.", "--model",
                f"rehearsal:{world.scenario(rules)}")
    run = world.run()
    good = document(world, run=run.id, agent="a1", generation=1)
    path = world.write("doc.md", good)
    done = world.baton("handoff", "check", path, "--json", status=1)
    equal([fault.split(":")[0] for fault in faults(done)], ["constraints absent", "words absent"],
          "a constraint and the message that it is in are missing", done)
    good += ("\n## Constraints, in the user's words\n\n- Never change the file format.\n  - origin: user\n"
             "\n## What the user said\n\n- Make the reader survive torn lines. Never change the file format.\n"
             "  - origin: user\n")
    world.write("doc.md", good)
    done = world.baton("handoff", "check", path, "--json")
    equal(json.loads(done.out)["findings"], [], "all is proved", done)
    for old, new, want in [("- Make the reader survive", "- Let the reader survive", "goal untrue: the user did not say"),
                           ("Never change the file format.\n", "Never change the format.\n", "constraints absent"),
                           ("- Never change the file format.", "- change the file format.", "constraints untrue: the user did"),
                           ("in read_torn\n  - origin: model\n  - function: read_torn\n  - command: sh check.sh",
                            "in lex_all\n  - origin: model\n  - function: lex_all", "first_action untrue: what it names")]:
        check(old in good, f"'{old}' is not in the document")
        done = world.baton("handoff", "check", world.write("bad.md", good.replace(old, new, 1)), "--json", status=1)
        check(any(want in fault for fault in faults(done)), f"'{want}' is not told of", done)

    # As the run's own file: both forms change, the old one stays.
    folder = os.path.join(run.dir, "agents/a1/1")
    shown = world.baton("handoff", "show", path, "--json").out
    with open(f"{folder}/handoff.json", "w", encoding="utf-8") as f:
        f.write(shown)
    name = f"{run.id}/a1"
    equal(json.loads(world.baton("handoff", "show", f"{name}/1", "--json").out), json.loads(shown), "the same by name")
    check("## Point of work" in world.baton("handoff", "show", name).out, "as Markdown")
    world.baton("handoff", "show", f"{name}/2", status=2)
    editor = world.write("editor.sh", 'sed -i "$1" "$2"\n')

    def edit(script, status=0):
        return world.baton("handoff", "edit", name, status=status, env={"EDITOR": f"sh {editor} '{script}'", "VISUAL": ""})

    done = edit("s/Keep the unfinished line/Keep the torn line/")
    check("handoff.json.old-1" in done.out, "the old one is named", done)
    for form in ("handoff.json", "handoff.md"):
        check("Keep the torn line" in world.read(f"{folder}/{form}"), form)
    check("Keep the unfinished line" in world.read(f"{folder}/handoff.json.old-1"), "the old one")
    done = edit("s/^- Keep .*/- Continue with the remaining tasks/", status=1)
    check("fits any task" in done.out and ".edit-" in done.out, "a vague action does not come in", done)
    done = edit("s/^## Goal/## Gaol/", status=1)
    check("did you mean 'Goal'?" in done.out and "line 1" in done.out, "nor what cannot be read", done)
    check("nothing was changed" in edit("s/x/x/").out, "no edit")
    check("Keep the torn line" in world.read(f"{folder}/handoff.json"), "it is as it was")
    equal(sorted(n for n in os.listdir(folder) if "old" in n), ["handoff.json.old-1"], "old documents")
    saves = world.write("saves.sh", 'sed -i "s/torn line/cut line/" "$1"; exit 3\n')
    done = world.baton("handoff", "edit", name, status=None, env={"EDITOR": f"sh {saves}", "VISUAL": ""})
    check(done.status and "failed" in done.err and ".edit-" in done.err, "an editor that saved and failed", done)
    kept = [n for n in os.listdir(folder) if ".edit-" in n and n in done.err]
    check(len(kept) == 1 and "cut line" in world.read(f"{folder}/{kept[0]}"), "the edit is kept", done)
    done = world.baton("handoff", "edit", name, status=None, env={"EDITOR": "false", "VISUAL": ""})
    check(done.status and ".edit-" not in done.err, "nothing was saved", done)
    on_a_terminal(world, name, folder)


def on_a_terminal(world, name, folder):
    """It asks whether to go back in: yes by default, into the same edit; no leaves the edit beside the document."""
    script = world.write("steps.sh", 'sed -i "$(sed -n 1p steps)" "$1"; sed -i 1d steps\n')

    def edit(steps, answers):
        world.write("repo/steps", steps)
        master, slave = pty.openpty()
        process = subprocess.Popen([BATON, "handoff", "edit", name], cwd=world.repo, stdin=slave, stdout=slave, stderr=slave,
                                   env={**world.env, "VISUAL": f"sh {script}", "EDITOR": "false"}, start_new_session=True)
        os.close(slave)
        seen = b""
        for answer_text in answers + [None]:
            asked = seen.count(b"[Y/n]")
            try:
                while answer_text is None or seen.count(b"[Y/n]") == asked:
                    part = os.read(master, 4096)
                    check(part, "the terminal was closed", seen)
                    seen += part
            except OSError:
                check(answer_text is None, "it ended without a question", seen)
                break
            os.write(master, answer_text)
        os.close(master)
        wait_for(lambda: process.poll() is not None, "end of edit", 30)
        return process.returncode, seen.decode()

    status, seen = edit("s/^## Goal/## Gaol/\ns/the torn line/the broken line/; s/Gaol/Goal/\n", [b"\n"])
    check(status == 0 and "did you mean" in seen and "was replaced" in seen, "back in, and good", seen)
    check("broken line" in world.read(f"{folder}/handoff.md"), "the document")
    status, seen = edit("s/^## Goal/## Gaol/\ns/Gaol/Gool/\n", [b"Yes, of course I want to go on\n", b"n\n"])
    check(status == 1 and seen.count("[Y/n]") == 2 and "was not changed" in seen, "out", seen)
    kept = [n for n in os.listdir(folder) if n in seen and ".edit-" in n]
    check(len(kept) == 1 and "## Gool" in world.read(f"{folder}/{kept[0]}"), "both edits are in it", seen)
    status, seen = edit("s/^## Goal/## Gaol/\n", [b"\x04"])
    check(status == 1 and seen.count("[Y/n]") == 1, "the end of input is no yes", seen)


main()
