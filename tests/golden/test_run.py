#!/usr/bin/env python3
"""tests/golden/run against `baton rehearse`: the runner for real models works, without one.

    test_run.py REHEARSE BUILD

The scripted server is as strict as a provider: what the runner sends it has to be a request of that API. A summariser
that says nothing of the work is enough for the bars, since they are about what code guarantees. Exit status 1: a mistake.
"""
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SECTIONS = ["Primary request and intent", "Key technical concepts", "Files and code sections", "Errors and fixes",
            "Problem solving", "All user messages", "Pending tasks", "Current work", "Optional next step"]
SUMMARY = "<analysis>in order</analysis>\n<summary>\n" + "".join(
    f"{n}. {title}:\nThe work goes on.\n" for n, title in enumerate(SECTIONS, 1)) + "</summary>"
NOTES = '<section name="current state">\nThe work goes on, NOTED.\n</section>'
ANSWER = "test_fill_level_after_wrap fails; run `make -C fw check TEST=test_ring_bulk SEED=9`."
SCENARIO = {"name": "golden", "window": 400000, "rules": [
    {"match": {"is_compaction": True}, "answer": {"text": SUMMARY}},
    {"match": {"is_notes": True}, "answer": {"text": NOTES}},
    {"match": {"last_message": "Answer in text, from what you know"}, "answer": {"text": ANSWER}},
]}


def start_server(program, folder):
    path = os.path.join(folder, "scenario.yaml")
    with open(path, "w", encoding="utf-8") as f:
        json.dump(SCENARIO, f)
    server = subprocess.Popen([program, path], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    return server, json.loads(server.stdout.readline())["url"]


def play(url, build, keep, *words):
    keys = {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": url, "OPENAI_API_KEY": "k", "OPENAI_BASE_URL": url + "/v1"}
    run = subprocess.run([sys.executable, os.path.join(HERE, "run"), "--build", build, "--keep", keep, *words,
                          "ring-buffer"], env={**os.environ, **keys}, capture_output=True, text=True, timeout=100)
    if run.returncode:
        sys.exit(f"{words}: status {run.returncode}\n{run.stdout}{run.stderr}")
    with open(os.path.join(keep, "ring-buffer", "result.json"), encoding="utf-8") as f:
        return json.load(f), os.path.join(keep, "ring-buffer")


def check(condition, what, *shown):
    if not condition:
        sys.exit(f"{what}: {shown}")


def read(folder, name):
    with open(os.path.join(folder, name), encoding="utf-8") as f:
        return f.read()


def check_play(url, build, keep, model, notes):
    result, folder = play(url, build, keep, "--model", model, *(["--notes"] if notes else []))
    check(result["answered"] == 100 and result["by_rule"] == 0, f"{model}: the model did not answer", result)
    check(result["by_notes"] == notes, f"{model}: by notes", result)
    check(ANSWER in read(folder, "answer.txt"), "answer.txt", read(folder, "answer.txt"))
    check(("NOTED" in read(folder, "compacted.txt")) == bool(notes), "compacted.txt")
    check(len(read(folder, "original.txt")) > len(read(folder, "compacted.txt")), "nothing was compacted")


def refuses_without_a_key(build):
    clean = {k: v for k, v in os.environ.items() if not k.endswith("_API_KEY")}
    run = subprocess.run([sys.executable, os.path.join(HERE, "run"), "--build", build, "--model", "openai/gpt-5.5"],
                         env=clean, capture_output=True, text=True, timeout=60)
    check(run.returncode == 77 and "OPENAI_API_KEY" in run.stderr, "without a key", run)


def main():
    program, build = sys.argv[1], sys.argv[2]
    refuses_without_a_key(build)
    with tempfile.TemporaryDirectory() as folder:
        server, url = start_server(program, folder)
        try:
            for model in ("anthropic/claude-opus-5", "openai/gpt-5.5"):
                for notes in (0, 1):
                    check_play(url, build, os.path.join(folder, f"{model.split('/', 1)[0]}{notes}"), model, notes)
        finally:
            server.terminate()
            server.wait(20)


main()
