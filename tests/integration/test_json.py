#!/usr/bin/env python3
"""What a run says while it works: --json, plain lines, the live view; a reader that is slow or gone stops nobody.
Item 11 of the issue.
"""
import json
import os
import pty
import re
import select
import subprocess
import threading

from rig import BATON, answer, check, equal, in_turn, main, report, shell, test, test_plain, wait_for

STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")


def simple(world, rounds=3, text="some words " * 20):
    world.repository()
    return "rehearsal:" + world.scenario(in_turn(*[{"text": text, **answer(shell(f"echo {n} >{n}.txt"))} for n in range(rounds)], answer(report())))


@test_plain
def json_prints_the_journal(world):
    done = world.baton("run", "go on", "--json", "--model", simple(world))
    records = done.records()
    equal((records[0]["type"], records[-1]["type"]), ("run.started", "run.finished"), "first and last record")
    for record in records:
        check(STAMP.match(record["t"]) and isinstance(record["type"], str), "a record without time or type", record)
    equal([r["t"] for r in records], sorted(r["t"] for r in records), "order in time")
    last = records[-1]
    equal((last["status"], last["exit_status"]), ("succeeded", 0), "outcome")
    check(os.path.exists(last["report"]) and last["usage"]["calls"] == 4 and last["cost"] > 0, "report, usage, cost", last)
    run = world.run()
    equal(done.out, world.read(run.dir + "/run.jsonl"), "the very lines of the journal")
    check(done.err == "", "something on stderr", done)


@test_plain
def json_ends_with_run_finished_however_it_ends(world):
    model = simple(world)
    for options, status, name in ((["--max-tokens", "1000"], 4, "budget"), (["--base", "nothing-like-it"], 2, "failed")):
        records = world.baton("run", "go on", "--json", "--model", model, *options, status=status).records()
        equal((records[0]["type"], records[-1]["type"], records[-1].get("status")), ("run.started", "run.finished", name), "records", world.run())
        equal(records[-1]["exit_status"], status, "exit status in the record")


@test
def json_of_a_review(world):
    world.repository({"a.txt": "one\n"})
    world.write(f"{world.repo}/a.txt", "one\ntwo\n")
    scenario = world.scenario(in_turn(answer({"name": "read", "input": {"path": "a.txt"}}), answer(report())))
    records = world.baton("review", "--worktree", "--json", "--model", f"rehearsal:{scenario}").records()
    equal((records[0]["type"], records[-1]["type"]), ("run.started", "run.finished"), "first and last record")
    check(json.load(open(records[-1]["report"].replace("report.md", "report.json"), encoding="utf-8"))["result"]["findings"] == [], "findings")


@test
def a_slow_reader_stops_nobody(world):
    model = simple(world, 40, "many words that fill a pipe " * 30)
    reader, writer = os.pipe()
    started = world.start("run", "go on", "--json", "--model", model, stdout=writer)
    os.close(writer)
    run = world.wait_run(started)
    # Nobody reads: the journal comes to its end all the same.
    wait_for(lambda: run.last("run.finished"), "the end of the run in its journal", 60, lambda: str(run))
    with os.fdopen(reader, "rb") as pipe:
        text = pipe.read()
    equal(started.wait(20).status, 0, "exit status")
    equal(text.decode(), world.read(run.dir + "/run.jsonl"), "all lines come in the end")
    world.no_strays(5)


@test
def a_reader_that_goes_away_stops_nobody(world):
    model = simple(world, 10)
    reader, writer = os.pipe()
    started = world.start("run", "go on", "--json", "--model", model, stdout=writer)
    os.close(writer)
    os.close(reader)
    equal(started.wait(60).status, 0, "exit status")
    equal(world.run().last("run.finished")["status"], "succeeded", "status")
    world.no_strays(5)


@test_plain
def plain_lines_and_quiet(world):
    model = simple(world)
    done = world.baton("run", "go on", "--model", model)
    check("a1" in done.err and "\x1b" not in done.err + done.out, "lines of the run", done)
    check("git merge" in done.out and "Report:" in done.out, "the outcome", done)
    done = world.baton("run", "go on", "--quiet", "--model", model)
    equal(done.err, "", "stderr with --quiet")
    check("Report:" in done.out, "the outcome with --quiet", done)


class Terminal:
    """A program whose standard error (and output) is a terminal of 24 lines."""

    def __init__(self, world, *args, env=None):
        self.master, slave = pty.openpty()
        import fcntl
        import struct
        import termios
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
        self.process = subprocess.Popen([BATON, *args], cwd=world.repo, env={**world.env, "TERM": "xterm", **(env or {})},
                                        stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
        os.close(slave)
        self.text = b""
        self.thread = threading.Thread(target=self.read)
        self.thread.start()

    def read(self):
        while True:
            try:
                data = os.read(self.master, 65536)
            except OSError:
                return
            if not data:
                return
            self.text += data

    def end(self):
        wait_for(lambda: self.process.poll() is not None, "end of the program", 60)
        self.thread.join(20)
        os.close(self.master)
        return self.text.decode(errors="replace")


@test
def a_terminal_gets_a_live_view(world):
    model = simple(world, 5)
    terminal = Terminal(world, "run", "go on", "--model", model)
    text = terminal.end()
    equal(terminal.process.returncode, 0, "exit status")
    check("\x1b[" in text, "no live view", repr(text[-500:]))
    check("a1" in text and "lead" in text, "no line of the agent", repr(text[-800:]))
    check("\x1b[?25l" not in text or "\x1b[?25h" in text, "the cursor stays hidden", repr(text[-300:]))
    check("Report:" in text, "no outcome")


@test_plain
def no_color_gives_plain_lines(world):
    model = simple(world)
    for env, options in (({"NO_COLOR": "1"}, []), ({}, ["--plain"])):
        terminal = Terminal(world, "run", "go on", "--model", model, *options, env=env)
        text = terminal.end()
        check("\x1b" not in text, "control sequences", repr(text[:500]))


@test_plain
def a_terminal_that_stops_reading_stops_nobody(world):
    model = simple(world, 30)
    master, slave = pty.openpty()
    started = world.start_program([BATON, "run", "go on", "--model", model], cwd=world.repo, env={"TERM": "xterm"}, stdout=slave)
    os.close(slave)
    run = world.wait_run(started)
    wait_for(lambda: run.last("run.finished"), "the end of the run in its journal", 60, lambda: str(run))
    while not started.ended():
        if select.select([master], [], [], 0.2)[0]:
            try:
                os.read(master, 65536)
            except OSError:
                break
    equal(started.wait(20).status, 0, "exit status")
    os.close(master)


@test_plain
def the_journal_is_whole_at_each_moment(world):
    """Every line that a reader sees is complete, and records stand in order of their cause."""
    model = simple(world, 6)
    started = world.start("run", "go on", "--json", "--model", model)
    run = world.wait_run(started)
    while not started.ended():
        run.records()  # a torn line would not parse
    types = [r["type"] for r in run.records()]
    for first, second in (("agent.spawned", "worktree.created"), ("agent.report", "agent.ended"), ("agent.ended", "branch.imported"),
                          ("branch.imported", "agent.done"), ("agent.done", "run.finished")):
        check(types.index(first) < types.index(second), f"{first} before {second}", types)
    reserved, settled = run.records("call.reserved"), run.records("call.settled")
    equal(sorted(r["req"] for r in reserved), sorted(r["req"] for r in settled), "each reservation is settled")


@test
def verbose_reaches_every_process(world):
    world.repository()
    scenario = world.scenario(in_turn(answer(shell("true")), answer(report())))
    done = world.baton("run", "look", "-v", "--model", f"rehearsal:{scenario}")
    for process in ("git", "gateway", "agent a1"):
        check(f"Z {process} debug: " in done.err, f"no diagnostics of '{process}'", done)
    done = world.baton("run", "look", "--model", f"rehearsal:{scenario}")
    check(" debug: " not in done.err, "diagnostics without being asked", done)
    done = world.baton("diff", f"{world.run().id}/a1", "-v", status=None)
    check("Z git debug: " in done.err, "no diagnostics of 'git' in a command", done)


main()
