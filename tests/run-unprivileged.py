#!/usr/bin/env python3
"""Runs the test programs of some suites as user nobody: run-unprivileged.py BUILD HOME.

BUILD is the meson build folder, HOME a folder of nobody's with a copy of it in HOME/build.
"""
import concurrent.futures
import json
import os
import subprocess
import sys

SUITES = {"worktrees", "box", "processes"}
NOBODY = 65534
AT_ONCE = 2 * os.cpu_count()  # half of the time they wait for the disk


def run(test, build, home):
    """(exit code or "timeout", output)"""
    command = [part.replace(build, home + "/build") for part in test["cmd"]]
    env = {"PATH": os.environ["PATH"], "HOME": home, "TMPDIR": home + "/tmp", "LANG": "C.UTF-8"}
    env.update({k: v.replace(build, home + "/build") for k, v in test.get("env", {}).items()})
    try:
        done = subprocess.run(command, env=env, cwd=home, user=NOBODY, group=NOBODY, extra_groups=[],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
        return done.returncode, done.stdout.decode(errors="replace")
    except subprocess.TimeoutExpired as late:
        return "timeout", (late.stdout or b"").decode(errors="replace")


def main():
    build, home = os.path.abspath(sys.argv[1]), sys.argv[2]
    out = subprocess.run(["meson", "introspect", "--tests", build], capture_output=True, text=True, check=True)
    tests = [t for t in json.loads(out.stdout) if SUITES & {s.split(":")[-1] for s in t["suite"]}]
    tests.sort(key=lambda t: -t["priority"])
    bad = 0
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for test, (code, text) in zip(tests, pool.map(lambda t: run(t, build, home), tests)):
            print(f"== {test['name']} as nobody: {'ok' if code == 0 else code}")
            if code != 0:
                bad += 1
                print(text)
            else:
                print("\n".join(line for line in text.splitlines() if line.startswith("[")))
    return 1 if bad or not tests else 0


sys.exit(main())
