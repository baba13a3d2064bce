#!/usr/bin/env python3
"""Prints "passed failed skipped left-out" for a meson testlog.json, or for a log of cmocka programs (--cmocka).

A program that prints cmocka's lines counts by them; any other program counts as one test.
Left out is what a program does not run by choice, as integration/rig.py does under the sanitizers.
"""
import json
import re
import sys


def count_text(text):
    """Counts of one program's output, None where it has no cmocka lines."""
    if "[==========]" not in text:
        return None
    passed = len(re.findall(r"^\[       OK \]", text, re.M))
    failed = len(re.findall(r"^\[  FAILED  \] \w+$", text, re.M))
    skipped = len(re.findall(r"^\[  SKIPPED \] \w+$", text, re.M))
    failed_names = set(re.findall(r"^\[  FAILED  \] (\w+)$", text, re.M))
    skipped_names = set(re.findall(r"^\[  SKIPPED \] (\w+)$", text, re.M))
    return passed, max(len(failed_names), failed and 1), len(skipped_names) if skipped else 0


def main():
    passed = failed = skipped = left_out = 0
    if sys.argv[1] == "--cmocka":
        with open(sys.argv[2], errors="replace") as f:
            passed, failed, skipped = count_text(f.read()) or (0, 0, 0)
    else:
        with open(sys.argv[1], errors="replace") as f:
            for line in f:
                test = json.loads(line)
                text = test.get("stdout", "") + test.get("stderr", "")
                counts = count_text(text)
                left_out += len(re.findall(r"^\[ LEFT OUT \] \w+$", text, re.M))
                result = test["result"]
                if counts is None or (result not in ("OK", "SKIP") and counts[1] == 0):
                    counts = (int(result == "OK"), int(result not in ("OK", "SKIP")), int(result == "SKIP"))
                passed, failed, skipped = passed + counts[0], failed + counts[1], skipped + counts[2]
    print(passed, failed, skipped, left_out)


main()
