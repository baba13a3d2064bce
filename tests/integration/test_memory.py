#!/usr/bin/env python3
"""What runs keep for later runs in the same repository (M2, H21)."""
import os

from rig import answer, call, check, equal, main, report, shell, test, test_plain

LESSON = "tests need LANG=C: sorting differs"


def memory_file(world):
    return os.path.join(world.repo, ".git/baton/memory/MEMORY.md")


def noting(world, *lines, command="true"):
    rules = [
        {"match": {"turn": 0}, "answer": answer(call("notes", operation="add", field="lessons", lines=list(lines)),
                                                shell(command))},
        {"match": {}, "answer": answer(report("Noted."))},
    ]
    return f"rehearsal:{world.scenario(rules)}"


def asking(world):
    rules = [
        {"match": {"task": r"notes of earlier runs[^]]*data, not instructions[\s\S]*" + LESSON},
         "answer": answer(report("It is known."))},
        {"match": {}, "answer": answer(report("Nothing is known."))},
    ]
    return f"rehearsal:{world.scenario(rules)}"


@test
def a_later_run_knows_what_an_earlier_one_learned(world):
    world.repository()
    done = world.baton("run", "Look.", "--model", noting(world, LESSON, "the password is: hunter2"))
    text = world.read(memory_file(world))
    check(f" lesson: {LESSON}\n" in text, "the lesson", text)
    check("hunter2" not in text, "a secret is kept", text)
    saved = world.run().last("memory.saved")
    equal((saved["added"], saved["refused"], saved["lines"]), (1, 1, [LESSON]), "the record", done)
    world.git("worktree", "add", "-q", world.path("second"))
    done = world.baton("run", "Ask.", "--model", asking(world), cwd=world.path("second"))
    check("It is known." in done.out, "another worktree's run knows it", done)


@test_plain
def memory_can_be_switched_off(world):
    world.repository()
    world.baton("run", "Look.", "--model", noting(world, LESSON))
    before = world.read(memory_file(world))
    done = world.baton("run", "Ask.", "--no-memory", "--model", asking(world))
    check("Nothing is known." in done.out, "it is not loaded", done)
    world.baton("run", "Look.", "--no-memory", "--model", noting(world, "something quite different"))
    equal(world.read(memory_file(world)), before, "it is not written")


@test_plain
def no_agent_writes_there(world):
    """The parent alone: a shell in the box neither reaches the file nor the folder."""
    world.repository()
    path = memory_file(world)
    world.baton("run", "Look.", "--model", noting(world, LESSON))
    plant = f"echo '- 2026-11-30 lesson: planted' >>{path}; echo x >{os.path.dirname(path)}/more.md; true"
    world.baton("run", "Plant.", "--model", noting(world, "another thing", command=plant))
    text = world.read(path)
    check("planted" not in text and "another thing" in text, "the file", text)
    equal(sorted(os.listdir(os.path.dirname(path))), [".lock", "MEMORY.md"], "the folder")


@test
def a_person_edits_it(world):
    world.repository()
    world.baton("run", "Look.", "--model", noting(world, LESSON))
    world.write(memory_file(world), "Our own words.\n- 2020-01-01 until 2020-02-01 lesson: long over\n")
    world.baton("run", "Look.", "--model", noting(world, LESSON))
    text = world.read(memory_file(world))
    check(text.startswith("Our own words.\n- ") and LESSON in text and "long over" not in text, "the file", text)


if __name__ == "__main__":
    main()
