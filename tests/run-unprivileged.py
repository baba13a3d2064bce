#!/usr/bin/env python3
"""Runs the test programs of some suites as user nobody: run-unprivileged.py BUILD HOME [FAST].

BUILD is the meson build folder, HOME a folder of nobody's with a copy of it in HOME/build. FAST is a folder in memory
that anybody may enter and write: the suite that runs nowhere else has its files there, the repeated ones have them on
the disk, so that both are tried.
"""
import concurrent.futures
import json
import os
import subprocess
import sys
import time

ONCE = "unprivileged"  # not run as root before
SUITES = {"worktrees", "box", "processes", ONCE}
NOBODY = 65534
AT_ONCE = 2 * os.cpu_count()  # half of the time they wait for the disk


def suites_of(test):
    return {s.split(":")[-1] for s in test["suite"]}


def run(test, build, home, fast):
    """(exit code or "timeout", output, seconds)"""
    begin = time.monotonic()
    command = [part.replace(build, home + "/build") for part in test["cmd"]]
    temporary = fast if fast and ONCE in suites_of(test) else home + "/tmp"
    env = {"PATH": os.environ["PATH"], "HOME": home, "TMPDIR": temporary, "LANG": "C.UTF-8"}
    env.update({k: v.replace(build, home + "/build") for k, v in test.get("env", {}).items()})
    try:
        done = subprocess.run(command, env=env, cwd=home, user=NOBODY, group=NOBODY, extra_groups=[],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
        return done.returncode, done.stdout.decode(errors="replace"), time.monotonic() - begin
    except subprocess.TimeoutExpired as late:
        return "timeout", (late.stdout or b"").decode(errors="replace"), time.monotonic() - begin


def main():
    build, home = os.path.abspath(sys.argv[1]), sys.argv[2]
    fast = sys.argv[3] if len(sys.argv) > 3 else None
    out = subprocess.run(["meson", "introspect", "--tests", build], capture_output=True, text=True, check=True)
    tests = [t for t in json.loads(out.stdout) if SUITES & suites_of(t)]
    tests.sort(key=lambda t: -t["priority"])
    bad = 0
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for test, (code, text, seconds) in zip(tests, pool.map(lambda t: run(t, build, home, fast), tests)):
            print(f"== {test['name']} as nobody: {'ok' if code == 0 else code} ({seconds:.0f} s)")
            if code != 0:
                bad += 1
                print(text)
            else:
                print("\n".join(line for line in text.splitlines() if line.startswith("[")))
    return 1 if bad or not tests else 0


sys.exit(main())
